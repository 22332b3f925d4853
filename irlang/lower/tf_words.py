"""TensorFlow's further words: kernels beside those that its public functions take.

`tf.raw_ops` has every kernel there is, as a graph of any age holds it: elder ones that nothing else
calls, and some by which a public function is composed where it might be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.legalise import filling, spatial
from irlang.lower.selections import TF_ROOM
from irlang.lower.spelling import invoke, named
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
NUMBERS = ("f32", "f64", "i32", "i64")  # for which kernels of all kinds are


def raw(
    kernel: str,
    rule: Callable[[Tf, str], Any],
    since: tuple[int, ...] = (),
    eager: bool = False,
    constant: tuple[str, ...] = (),
) -> Native:
    """A row for a kernel by its name, which the rule is told as it is called."""
    name = f"tf.raw_ops.{kernel}"

    def told(call: Tf) -> Any:
        return rule(call, name) if call.build.raw else None

    return Native(name, told, constant, eager, since)


def word(function: str, rule: Callable[[Tf, str], Any]) -> Native:
    """A row for a public function, which the rule is told as it is called."""
    return Native(function, lambda call: rule(call, function))


# ---- elements


def _two(call: Tf, kernel: str) -> Value | None:
    """Of two tensors of numbers."""
    a, b = (Value(call.build.full(v), v.shape, v.dtype) for v in call.values.values())
    return call.value(invoke(kernel, x=a, y=b)) if call.out.dtype in NUMBERS else None


def is_bias(call: Tf, x: Value, b: Value) -> bool:
    """Whether a valid sum is one with a number for each place along the last axis."""
    along = x.rank > 1 and b.shape == x.shape[-1:] and b.literal is None
    return along and call.out.dtype in NUMBERS and not call.node.instance.faults


def _bias(call: Tf, function: str) -> Value | None:
    """Of a number for each place along the last axis, as layers add theirs: passes that look for a
    layer know its bias by that.
    """
    for x, b in permutations(call.values.values()):
        if is_bias(call, x, b):
            return call.value(invoke(function, x, b))
    return None


def _quotient(call: Tf, kernel: str) -> Value | None:
    return _two(call, kernel) if call.out.kind == "real" else None


def _one(call: Tf, kernel: str) -> Value | None:
    real = call.out.dtype in ("f32", "f64")
    return call.value(invoke(kernel, x=call.input("x"))) if real else None


def _clip(call: Tf, kernel: str) -> Value | None:
    """Between numbers in their order, which it is left to the caller to see to."""
    low, high, x = call["low"], call["high"], call.input("x")
    if call.out.dtype not in NUMBERS or low > high:
        return None
    if call.out.kind == "int" and math.inf in (-low, high):
        return None
    dtype = call.build.dtype(x.dtype)
    number = float if call.out.kind == "real" else int
    low, high = (f"tf.constant({_written(number(end))}, {dtype})" for end in (low, high))
    return call.value(invoke(kernel, t=x, clip_value_min=low, clip_value_max=high))


def _written(number: float) -> str:
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def _select(call: Tf, kernel: str) -> Value | None:
    """Of tensors of one shape."""
    values = [call.build.solid(value) for value in call.values.values()]
    if len({value.shape for value in values}) > 1 or len({v.dtype for v in values[1:]}) > 1:
        return None
    condition, x, y = values
    return call.value(invoke(kernel, condition=condition, x=x, y=y))


def _bits(call: Tf, kernel: str) -> Value:
    info = call.input("x")
    found = Value(invoke(kernel, x=info), info.shape, "u8")
    return call.build.cast(found, call.out.dtype)


# ---- places


def _gather(call: Tf, kernel: str) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    if call["negative"] != "refused" or not x.rank or call.axis("axis", x.rank):
        return None
    if ids.dtype not in ("i32", "i64"):
        return None
    return call.value(invoke(kernel, params=x, indices=ids))


def _scatter(call: Tf, kernel: str) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    added = call["reduction"] == "add" and call["negative"] == "refused"
    if not added or ids.rank < 2 or not x.rank or x.dtype not in NUMBERS:
        return None
    if ids.dtype not in ("i32", "i64"):
        return None
    return call.value(invoke(kernel, input=x, indices=ids, updates=call.input("updates")))


def _in_top_k(call: Tf, kernel: str) -> Value | None:
    x, labels = call.input("predictions"), call.input("labels")
    if x.dtype != "f32" or labels.dtype not in ("i32", "i64"):
        return None
    return call.value(invoke(kernel, predictions=x, targets=labels, k=call["k"]))


def _bincount(call: Tf, kernel: str, rank: int = 2, **options: Any) -> Value | None:
    ids = call.input("ids")
    if ids.dtype not in ("i8", "i16", "i32", "u8") or not 1 <= ids.rank <= rank:
        return None
    name = "input" if rank > 1 else "arr"
    given = {name: call.build.cast(ids, "i32"), "size": call["size"]}
    return call.value(invoke(kernel, **given, weights="tf.constant([], tf.int64)", **options))


def _bucketize(call: Tf, kernel: str) -> Value | None:
    x, table = call.input("x"), [float(number) for number in call["boundaries"]]
    if not call["right"] or x.dtype != "f32" or not all(map(math.isfinite, table)):
        return None
    found = Value(invoke(kernel, input=x, boundaries=str(table)), x.shape, "i32")
    return call.build.cast(found, "i64")


def _unique(call: Tf, kernel: str) -> list[Value] | None:
    """Along an axis that is not said, of a vector."""
    x = call.input("x")
    if call["order"] != "first" or x.dtype not in NUMBERS:
        return None
    names = [call.build.names.fresh("v") for _ in range(3)]
    text = invoke(kernel, x=x, axis="tf.constant([], tf.int64)", out_idx="tf.int64")
    call.build.lines.append(f"{', '.join(names)} = {text}")
    found, places, counts = names
    return [TF_ROOM.room(call, found), TF_ROOM.room(call, counts, 1), call.value(places, 2)]


def _kth(call: Tf, kernel: str) -> list[Value] | None:
    """Along the last axis, where it is not asked at which place."""
    x = call.input("x")
    if call.wants("at") or call.axis("axis", x.rank) != x.rank - 1 or x.dtype not in NUMBERS:
        return None
    found = Value(invoke(kernel, input=x, n=call["k"] - 1), x.shape[:-1], x.dtype)
    return [call.build.reshape(found, call.out.shape) if call["keepdims"] else found]


def _upsample(call: Tf, kernel: str) -> Value | None:
    """An image that is made larger by whole numbers."""
    x = call.input("x")
    if x.rank != 4 or x.dtype not in (*NUMBERS, "f16"):
        return None
    n, c, *space = call.out.shape
    text = invoke(kernel, images=channels_last(call, x), size=str(space))
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


def _boxes(call: Tf, kernel: str) -> Value | None:
    boxes, scores = call.input("boxes"), call.input("scores")
    if boxes.dtype != "f32" or call["center"]:
        return None
    given = {
        "boxes": boxes, "scores": scores, "max_output_size": call["size"],
        "iou_threshold": float(call["iou_threshold"]),
        "score_threshold": float(call["score_threshold"]),
    }  # fmt: skip
    if kernel.endswith("V5"):
        given["soft_nms_sigma"] = 0.0
    found = f"tf.cast({invoke(kernel, **given)}[0], tf.int64)"
    return TF_ROOM.room(call, found, filling=-1)


# ---- shapes


def _transpose(call: Tf, kernel: str) -> Value | None:
    """Of what is conjugate to itself."""
    order = str(list(call["order"]))
    whole = call.out.dtype in NUMBERS
    return call.value(invoke(kernel, x=call.input("x"), perm=order)) if whole else None


def _concat(call: Tf, kernel: str) -> Value | None:
    values = call.family("xs")
    if len(values) < 2:
        return None
    listed = f"[{', '.join(map(call.build.full, values))}]"
    axis = call.axis_said("axis", values[0].rank)
    return call.value(invoke(kernel, concat_dim=axis, values=listed))


def _split(call: Tf, function: str) -> list[Value] | None:
    """By their sizes, though they are alike."""
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    sizes = [info.shape[axis] for info in call.outputs]
    text = invoke(function, x, str(sizes), axis=axis)
    return named(call, text)


def _pad(call: Tf, kernel: str) -> Value | None:
    """With a number that is said, also where it is 0."""
    pairs = [list(map(int, p)) for p in zip(call["before"], call["after"], strict=True)]
    below = any(amount < 0 for pair in pairs for amount in pair)
    if call["mode"] != "constant" or below or call.out.dtype not in NUMBERS:
        return None
    number = f"tf.constant({_written(filling(call))}, {call.build.dtype(call.out.dtype)})"
    given = {"paddings": str(pairs), "constant_values": number}
    return call.value(invoke(kernel, input=call.input("x"), **given))


def _reverse(call: Tf, kernel: str) -> Value | None:
    """Of every axis whether it is turned round."""
    x = call.input("x")
    if not 1 <= x.rank <= 8:  # of its kernels
        return None
    turned = call.axes("axes", x.rank)
    marks = [axis in turned for axis in range(x.rank)]
    if sum(marks) != len(turned):  # there is no mark for an axis that is not, or is named twice
        return None
    return call.value(invoke(kernel, tensor=x, dims=str(marks)))


def _quarters(call: Tf, function: str) -> Value | None:
    """Of an image, or of several, in the plane of its rows and columns."""
    x = call.input("x")
    if x.rank not in (3, 4) or call.axes("axes", x.rank) != (x.rank - 3, x.rank - 2):
        return None
    return call.value(invoke(function, x, k=call["k"]))


def _slice(call: Tf, function: str) -> Value | None:
    """Neighbouring elements: from where, and how many."""
    x = call.input("x")
    if not x.rank or any(step != 1 for step in call["step"]):
        return None
    begin = [0] * x.rank
    for axis, first in zip(call.axes("axes", x.rank), call["first"], strict=True):
        begin[axis] = int(first)
    return call.value(invoke(function, x, str(begin), str(list(call.out.shape))))


def _crop(call: Tf, function: str) -> Value | None:
    x, begin = call.input("x"), [int(number) for number in call["before"]]
    if not x.rank or any(number < 0 for number in begin):
        return None
    return call.value(invoke(function, x, str(begin), str(list(call.out.shape))))


def _last_two(call: Tf, rank: int) -> bool:
    return call.axes("axes", rank) == (rank - 2, rank - 1)


def _diagonal(call: Tf, kernel: str) -> Value | None:
    """Of the first of these kernels the one in the middle, of the second any that there is."""
    x = call.input("x")
    if not _last_two(call, x.rank) or not call.out.shape[-1] or x.dtype == "bool":
        return None
    if kernel.endswith("V2"):
        zero = f"tf.constant(0, {call.build.dtype(x.dtype)})"
        return call.value(invoke(kernel, input=x, k=call["offset"], padding_value=zero))
    return None if call["offset"] else call.value(invoke(kernel, input=x))


def _diagonals(call: Tf, kernel: str) -> Value | None:
    x = call.input("x")
    if not _last_two(call, x.rank + 1) or x.dtype == "bool":
        return None
    if kernel.endswith("V2"):
        zero = f"tf.constant(0, {call.build.dtype(x.dtype)})"
        options = {"k": call["offset"], "num_rows": -1, "num_cols": -1, "padding_value": zero}
        return call.value(invoke(kernel, diagonal=x, **options))
    return None if call["offset"] else call.value(invoke(kernel, diagonal=x))


def _square(call: Tf, function: str) -> Value | None:
    """Of one square matrix."""
    x = call.input("x")
    square = x.rank == 2 and x.shape[0] == x.shape[1] and x.dtype in NUMBERS
    kept = square and _last_two(call, 2) and not call["offset"]
    return call.value(invoke(function, x)) if kept else None


def _of_vector(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    kept = x.rank == 1 and x.dtype in NUMBERS and _last_two(call, 2) and not call["offset"]
    return call.value(invoke(function, x)) if kept else None


def _linspace(call: Tf, kernel: str) -> Value | None:
    if call.out.dtype not in ("f32", "f64"):
        return None
    dtype = call.build.dtype(call.out.dtype)
    ends = {
        name: f"tf.constant({_written(float(call[name]))}, {dtype})" for name in ("start", "stop")
    }
    return call.value(invoke(kernel, **ends, num=call["count"]))


def _blocks(call: Tf, kernel: str, amounts: str) -> Value | None:
    """Of images, in square blocks."""
    x, sizes = call.input("x"), tuple(call["block_size"])
    if x.rank != 4 or x.dtype == "bool" or len(set(sizes)) != 1 or len(sizes) != 2 or sizes[0] < 2:
        return None
    pairs = [list(map(int, pair)) for pair in zip(call["before"], call["after"], strict=True)]
    given = {amounts: str(pairs), "block_size": sizes[0]}
    n, c, *space = call.out.shape
    text = invoke(kernel, input=channels_last(call, x), **given)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


# Ways to count from the corners of images: coordinates, and rounding where the nearest is taken.
_CORNERS: dict[tuple[str, str], dict[str, bool]] = {
    ("align_corners", "round_prefer_ceil"): {"align_corners": True},
    ("asymmetric", "floor"): {},
    ("tf_half_pixel_for_nn", "floor"): {"half_pixel_centers": True},
}


def _resize(call: Tf, kernel: str) -> Value | None:
    x, coord = call.input("x"), call["coord"]
    if x.rank != 4 or not spatial(call, x) or call["antialias"] or call["exclude_outside"]:
        return None
    if kernel.endswith("Bilinear"):
        rounding = {"half_pixel": "floor", "asymmetric": "floor"}.get(coord, "round_prefer_ceil")
        coord = "tf_half_pixel_for_nn" if coord == "half_pixel" else coord
        if call["mode"] != "linear" or x.dtype != "f32":
            return None
    else:
        rounding = call["rounding"]
        if call["mode"] != "nearest" or x.dtype not in (*NUMBERS, "f16"):
            return None
    options = _CORNERS.get((coord, rounding))
    if options is None:
        return None
    n, c, *space = call.out.shape
    text = invoke(kernel, images=channels_last(call, x), size=str(space), **options)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "add": (word("tf.nn.bias_add", _bias), raw("Add", _two)),
    "subtract": raw("Sub", _two),
    "divide": raw("Div", _quotient),
    "reciprocal": raw("Inv", _one),
    "round": raw("Rint", _one),
    "clip": raw("ClipByValue", _clip),
    "where": raw("Select", _select),
    "bit_count": raw("PopulationCount", _bits),
    "gather": raw("Gather", _gather),
    "scatter_nd": raw("ScatterNdNonAliasingAdd", _scatter),
    "in_top_k": raw("InTopK", _in_top_k),
    "bincount": (
        raw("DenseBincount", _bincount),
        raw("Bincount", lambda call, kernel: _bincount(call, kernel, 1)),
    ),
    "bucketize": raw("Bucketize", _bucketize),
    "unique": raw("UniqueWithCountsV2", _unique, eager=True),
    "non_max_suppression": (
        raw("NonMaxSuppressionV4", _boxes, eager=True),
        raw("NonMaxSuppressionV5", _boxes, eager=True),
    ),
    "transpose": raw("ConjugateTranspose", _transpose, eager=True),
    "concat": raw("Concat", _concat),
    "split": word("tf.split", _split),
    "pad": raw("PadV2", _pad),
    "reverse": raw("Reverse", _reverse),
    "rot90": word("tf.image.rot90", _quarters),
    "slice": word("tf.slice", _slice),
    "crop": word("tf.slice", _crop),
    "diagonal": (
        raw("MatrixDiagPart", _diagonal),
        raw("MatrixDiagPartV2", _diagonal),
        word("tf.linalg.tensor_diag_part", _square),
    ),
    "diag_embed": (
        raw("MatrixDiag", _diagonals),
        raw("MatrixDiagV2", _diagonals),
        word("tf.linalg.tensor_diag", _of_vector),
    ),
    "kth_value": raw("NthElement", _kth),
    "upsample": raw("ResizeNearestNeighbor", _upsample),
    "linspace": raw("LinSpace", _linspace),
    "space_to_batch": raw("SpaceToBatch", lambda call, k: _blocks(call, k, "paddings")),
    "batch_to_space": raw("BatchToSpace", lambda call, k: _blocks(call, k, "crops")),
    "resize": (raw("ResizeBilinear", _resize), raw("ResizeNearestNeighbor", _resize)),
}
