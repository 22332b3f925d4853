"""TensorFlow's further words: arguments of its public functions which no other row says.

Each is handed an argument that is another way of asking for the same: a matrix that is transposed
before it is transposed back, frames beyond the end that are then left out, weights that are 1.
"""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_last
from irlang.lower.legalise import spatial
from irlang.lower.spelling import invoke, labelled_sequences
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_images import first
from irlang.lower.tf_words import word
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")


def _adjoint(call: Tf, function: str) -> Value | None:
    """The adjoint of a matrix that is handed as the adjoint of its own."""
    if call.out.dtype not in _WIDE:
        return None
    turned = invoke("tf.linalg.adjoint", call.input("a"))
    return call.value(invoke(function, turned, call.input("b"), adjoint=True))


def _inverse(call: Tf, function: str) -> Value | None:
    """The adjoint of the inverse of the adjoint."""
    if call.out.dtype not in _WIDE:
        return None
    turned = invoke("tf.linalg.adjoint", call.input("x"))
    return call.value(invoke(function, turned, adjoint=True))


def _product(call: Tf, function: str) -> Value | None:
    """Of adjoints for what is transposed, or of one that is handed as the adjoint of its own."""
    a, b, rank = call.input("a"), call.input("b"), len(call.out.shape)
    if call.out.dtype not in _WIDE or not a.rank == b.rank == rank or rank < 2:
        return None
    if a.shape[:-2] != b.shape[:-2]:
        return None
    options = {f"adjoint_{side}": call[f"transpose_{side}"] or None for side in "ab"}
    if any(options.values()):
        return call.value(invoke(function, a, b, **options))
    turned = invoke("tf.linalg.adjoint", b)
    return call.value(invoke(function, a, turned, adjoint_b=True))


def _gather(call: Tf, function: str) -> Value | None:
    """The same twice, as a batch of two, of which the first is taken."""
    x, ids = call.input("x"), call.input("ids")
    if call["negative"] != "refused" or not x.rank:
        return None
    twice = (invoke("tf.stack", f"[{v.text}, {v.text}]") for v in (x, ids))
    axis = call.axis("axis", x.rank) + 1
    return call.value(f"{invoke(function, *twice, axis=axis, batch_dims=1)}[0]")


def _sequences(call: Tf, function: str) -> Value | None:
    """With the batch before time."""
    found = labelled_sequences(call)
    if found is None:
        return None
    labels, logits, *lengths = found
    turned = invoke("tf.transpose", logits, "[1, 0, 2]")
    options = {"logits_time_major": False, "blank_index": call["blank"]}
    return call.value(invoke(function, labels, turned, *lengths, **options))


def _triangular(call: Tf, function: str) -> Value | None:
    if call["unit_diagonal"] or call.out.dtype not in _WIDE:
        return None
    turned = invoke("tf.linalg.adjoint", call.input("a"))
    options = {"lower": not call["lower"], "adjoint": True}
    return call.value(invoke(function, turned, call.input("b"), **options))


def _frames(call: Tf, function: str) -> Value:
    """With those that the end fills up, which are left out."""
    x, count = call.input("x"), call.out.shape[-2]
    text = invoke(function, x, call["length"], call["step"], pad_end=True)
    return call.value(f"{text}[..., :{count}, :]")


def _exclusive(call: Tf, function: str) -> Value:
    """What comes before one element more."""
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    amounts, begin = [[0, 0] for _ in x.shape], [0] * x.rank
    amounts[axis][0 if call["reverse"] else 1] = 1
    begin[axis] = 0 if call["reverse"] else 1
    more = invoke("tf.pad", x, str(amounts))
    options = {"axis": axis, "exclusive": True, "reverse": call["reverse"] or None}
    text = invoke(function, more, **options)
    return call.value(invoke("tf.slice", text, str(begin), str(list(x.shape))))


def _position(call: Tf, function: str) -> Value | None:
    """As a narrow integer."""
    x = call.input("x")
    if call["select_last"] or x.dtype == "bool":
        return None
    axis = call.axis_said("axis", x.rank)
    text = invoke(function, x, axis=axis, output_type="tf.int32")
    text = invoke("tf.expand_dims", text, axis) if call["keepdims"] else text
    return call.build.cast(Value(text, call.out.shape, "i32"), call.out.dtype)


def _weighted(call: Tf, function: str) -> Value:
    """Each element with a weight of 1."""
    values = [call.build.cast(call.input(name), "i64") for name in ("labels", "predictions")]
    weights = f"tf.ones({list(values[0].shape)}, tf.float32)"
    options = {"num_classes": call["classes"], "weights": weights, "dtype": "tf.float32"}
    found = Value(invoke(function, *values, **options), call.out.shape, "f32")
    return call.build.cast(found, call.out.dtype)


def _counted(call: Tf, function: str) -> Value | None:
    """Each element with a weight of 1."""
    ids = call.input("ids")
    if ids.dtype not in ("i8", "i16", "i32", "u8") or ids.rank != 1:
        return None
    size = call["size"]
    weights = f"tf.ones({list(ids.shape)}, tf.float64)"
    options = {"weights": weights, "minlength": size, "maxlength": size}
    found = Value(invoke(function, call.build.cast(ids, "i32"), **options), call.out.shape, "f64")
    return call.build.cast(found, call.out.dtype)


def _resize(call: Tf, function: str) -> Value | None:
    """To sizes of the same proportion, which are then to be kept."""
    x = call.input("x")
    if x.rank != 4 or x.dtype != "f32" or not spatial(call, x) or call["exclude_outside"]:
        return None
    (*_, tall, long), (high, wide) = call.out.shape, x.shape[2:]
    if tall * wide != long * high or call["antialias"]:
        return None
    methods = {
        ("nearest", "half_pixel", "round_prefer_ceil"): "nearest",
        ("nearest", "tf_half_pixel_for_nn", "floor"): "nearest",
    }
    linear = call["mode"] == "linear" and call["coord"] == "half_pixel"
    key = (call["mode"], call["coord"], call["rounding"])
    method = "bilinear" if linear else methods.get(key)
    if method is None:
        return None
    options = {"method": f'"{method}"', "preserve_aspect_ratio": True}
    text = invoke(function, channels_last(call, x), str([tall, long]), **options)
    return first(call, text)


OPTIONS: dict[str, Native | tuple[Native, ...]] = {
    "inverse": word("tf.linalg.inv", _inverse),
    "matmul": word("tf.matmul", _product),
    "gather": word("tf.gather", _gather),
    "ctc_logits": word("tf.nn.ctc_loss", _sequences),
    "solve": word("tf.linalg.solve", _adjoint),
    "triangular_solve": word("tf.linalg.triangular_solve", _triangular),
    "frames": word("tf.signal.frame", _frames),
    "logcumsumexp": word("tf.math.cumulative_logsumexp", _exclusive),
    "argmax": word("tf.argmax", _position),
    "argmin": word("tf.argmin", _position),
    "confusion_matrix": word("tf.math.confusion_matrix", _weighted),
    "bincount": word("tf.math.bincount", _counted),
    "resize": word("tf.image.resize", _resize),
}
