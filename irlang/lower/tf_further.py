"""TensorFlow's further words: tensors that are kept as lists, as some of their elements, or as what
a solver makes of them, and functions that ask for less than the operators do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_last
from irlang.lower.legalise import all_are, spatial
from irlang.lower.selections import TF_ROOM
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import PLANE, biased, framed, listed, result
from irlang.lower.tf_images import first
from irlang.lower.tf_steps import ROW_KERNELS
from irlang.lower.tf_words import NUMBERS, raw, word
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")
_PLACES = ("i32", "i64")
_IMAGE = 4  # axes of images

# ---- as lists of rows


def _list(x: Value) -> str:
    """A list of the rows of a tensor."""
    shape = f"tf.constant({list(x.shape[1:])}, tf.int32)"
    return invoke("tf.raw_ops.TensorListFromTensor", tensor=x, element_shape=shape)


def _rows(call: Tf, handle: str, row: tuple[int, ...], kernel: str, **options: Any) -> str:
    """What a kernel gives of a list of rows."""
    shape = f"tf.constant({list(row)}, tf.int32)"
    dtype = call.build.dtype(call.out.dtype)
    return invoke(kernel, input_handle=handle, element_shape=shape, element_dtype=dtype, **options)


def _taken(call: Tf, kernel: str) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    along = x.rank and not call.axis("axis", x.rank) and call["negative"] == "refused"
    if not along or x.dtype not in NUMBERS or ids.dtype != "i32" or ids.rank != 1:
        return None
    return call.value(_rows(call, _list(x), x.shape[1:], kernel, indices=ids))


def _piled(call: Tf, kernel: str) -> Value | None:
    values = call.family("xs")
    if call.axis("axis", values[0].rank + 1) or call.out.dtype not in NUMBERS:
        return None
    piled = f"tf.stack([{', '.join(map(call.build.full, values))}])"
    whole = Value(piled, call.out.shape, call.out.dtype)
    many = {"num_elements": len(values)}
    return call.value(_rows(call, _list(whole), call.out.shape[1:], kernel, **many))


def _put(call: Tf, kernel: str) -> Value | None:
    """Rows in the place of others of a list."""
    x, ids, updates = (call.input(name) for name in ("x", "ids", "updates"))
    plain = call["reduction"] == "none" and call["negative"] == "refused"
    if not plain or not x.rank or call.axis("axis", x.rank) or ids.dtype != "i32":
        return None
    if x.dtype not in NUMBERS:
        return None
    changed = invoke(kernel, input_handle=_list(x), tensor=updates, indices=ids)
    return call.value(_rows(call, changed, x.shape[1:], "tf.raw_ops.TensorListStack"))


def _chained(call: Tf, kernel: str) -> Value | None:
    """Rows of tensors that are split and put together again; they may be of several lengths."""
    values = call.family("xs")
    x = values[0]
    if not x.rank or call.axis("axis", x.rank) or call.out.dtype not in NUMBERS:
        return None
    whole = f"tf.concat([{', '.join(map(call.build.full, values))}], 0)"
    row = f"tf.constant({[-1, *x.shape[1:]]}, tf.int32)"
    lengths = f"tf.constant({[v.shape[0] for v in values]}, tf.int64)"
    handle = invoke("tf.raw_ops.TensorListSplit", tensor=whole, element_shape=row, lengths=lengths)
    text = invoke(
        kernel, input_handle=handle, element_dtype=call.build.dtype(x.dtype), element_shape=row,
        leading_dims="tf.constant([], tf.int64)",
    )  # fmt: skip
    return call.value(f"{text}[0]")


def _array(call: Tf, function: str) -> Value | None:
    """Rows of an array of tensors."""
    x, ids = call.input("x"), call.input("ids")
    along = x.rank and not call.axis("axis", x.rank) and call["negative"] == "refused"
    if not along or ids.dtype != "i32" or ids.rank != 1 or x.dtype not in NUMBERS:
        return None
    row = str(list(x.shape[1:]))
    made = invoke(function, call.build.dtype(x.dtype), x.shape[0], element_shape=row)
    return call.value(f"{made}.unstack({x.text}).gather({ids.text})")


# ---- as some of their elements: integers, which have no zero that is negative


def _sparse(value: Value) -> str:
    return f"tf.sparse.from_dense({value.text})"


def _few(value: Value) -> bool:
    return value.dtype in _PLACES and value.rank > 0 and all(value.shape)


def _pair(call: Tf, function: str) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.shape != b.shape or not _few(a) or a.dtype != b.dtype:
        return None
    return call.value(f"tf.sparse.to_dense({invoke(function, _sparse(a), _sparse(b))})")


def _part(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    if not _few(x) or any(step != 1 for step in call["step"]) or not all(call.out.shape):
        return None
    begin = [0] * x.rank
    for axis, start in zip(call.axes("axes", x.rank), call["first"], strict=True):
        begin[axis] = int(start)
    if min(begin) < 0:
        return None
    text = invoke(function, _sparse(x), str(begin), listed(call.out.shape))
    return call.value(f"tf.sparse.to_dense({text})")


def _split(call: Tf, function: str) -> list[Value] | None:
    """Of parts that are alike."""
    x = call.input("x")
    if not _few(x) or len({info.shape for info in call.outputs}) > 1:
        return None
    axis = call.axis("axis", x.rank)
    options = {"num_split": len(call.outputs), "axis": axis}
    found = invoke(function, sp_input=_sparse(x), **options)
    parts = call.build.once(found, (), x.dtype, "parts").text
    return [call.value(f"tf.sparse.to_dense({parts}[{n}])", n) for n in range(len(call.outputs))]


def _turned(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    if not _few(x):
        return None
    text = invoke(function, _sparse(x), listed(tuple(call["order"])))
    return call.value(f"tf.sparse.to_dense({text})")


def _shaped(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    if not _few(x) or not call.out.shape:
        return None
    return call.value(f"tf.sparse.to_dense({invoke(function, _sparse(x), listed(call.out.shape))})")


def _joined(call: Tf, function: str) -> Value | None:
    values = call.family("xs")
    if not all(map(_few, values)) or len({v.dtype for v in values}) > 1:
        return None
    axis = call.axis("axis", values[0].rank)
    text = invoke(function, axis, f"[{', '.join(map(_sparse, values))}]")
    return call.value(f"tf.sparse.to_dense({text})")


def _compressed(call: Tf) -> str:
    """A matrix by its rows."""
    shape = f"tf.constant([{call['rows']}, {call['columns']}], tf.int64)"
    return invoke(
        "tf.raw_ops.SparseTensorToCSRSparseMatrix", indices=call.input("ids"),
        values=call.input("values"), dense_shape=shape,
    )  # fmt: skip


def _dense(call: Tf, kernel: str) -> Value | None:
    if call["value"] or call.out.dtype not in _WIDE:
        return None
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke(kernel, sparse_input=_compressed(call), type=dtype))


def _reduced(call: Tf) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    matrix = invoke(
        "tf.SparseTensor", call.input("ids"), call.input("values"),
        listed((call["rows"], call["columns"])),
    )  # fmt: skip
    name = f"tf.sparse.reduce_{call['reduction']}"
    found = invoke(name, matrix, axis=1, output_is_sparse=True)
    return call.value(f"tf.sparse.to_dense({found})")


def _looked_up(call: Tf, function: str) -> Value | None:
    """Rows of a table by lists of places, as long as the last list says, filled up."""
    x, ids, segment = (call.input(key) for key in ("x", "ids", "segment"))
    if x.dtype not in _WIDE or x.rank != 2 or ids.dtype not in _PLACES or call["segments"] < 0:
        return None
    count = ids.shape[0] if ids.shape else 0
    if not count:
        return None
    build = call.build
    rows = build.cast(segment, "i64").text
    at = f"tf.stack([{rows}, tf.range({count}, dtype=tf.int64)], 1)"
    lists = invoke("tf.SparseTensor", at, ids, listed((call["segments"], count)))
    combiner = {"sqrt_n": "sqrtn"}.get(call["reduction"], call["reduction"])
    return TF_ROOM.room(call, invoke(function, x, lists, None, combiner=f'"{combiner}"'))


# ---- functions that ask for less


def _brighter(call: Tf, function: str) -> Value | None:
    """By a number that is known."""
    a, b = (call.values[name] for name in "ab")
    x, number = (b, a) if a.literal is not None else (a, b)
    if x.literal is not None or number.literal is None or call.out.dtype != "f32":
        return None
    delta = float(str(number.literal))
    return call.value(invoke(function, x, delta)) if math.isfinite(delta) and x.rank else None


def _colours(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    if x.rank < 3 or x.shape[-1] != 1 or tuple(call["repeats"]) != (*[1] * (x.rank - 1), 3):
        return None
    return call.value(invoke(function, x)) if x.dtype in (*NUMBERS, "u8") else None


def _middle(call: Tf, function: str) -> Value | None:
    """A part in the middle, of images, of which a fraction is said."""
    x, before, after = call.input("x"), tuple(call["before"]), tuple(call["after"])
    if x.rank != _IMAGE or before != after or before[0] or before[3] or not all(x.shape):
        return None
    cut = before[1:3]
    for axis in (0, 1):  # one of them decides, and must serve both
        fraction = (x.shape[1 + axis] - 2 * cut[axis]) / x.shape[1 + axis]
        sizes = zip(x.shape[1:3], cut, strict=True)
        if 0 < fraction < 1 and all(int((n - n * fraction) / 2) == c for n, c in sizes):
            return call.value(invoke(function, x, fraction)) if x.dtype in NUMBERS else None
    return None


def _boxes(call: Tf, function: str) -> Value | None:
    boxes, scores, size = call.input("boxes"), call.input("scores"), call["size"]
    if boxes.dtype != "f32" or call["center"]:
        return None
    options: dict[str, Any] = {
        "iou_threshold": float(call["iou_threshold"]),
        "score_threshold": float(call["score_threshold"]),
    }
    if function.endswith("with_scores"):
        text = f"{invoke(function, boxes, scores, size, **options)}[0]"
        return TF_ROOM.room(call, f"tf.cast({text}, tf.int64)", filling=-1)
    if size < 0:
        return None
    options["pad_to_max_output_size"] = True
    text = invoke(function, boxes, scores, size, **options)
    found, many = call.build.several(text, "found", "many")
    none = "tf.constant(-1, tf.int64)"
    places = f"tf.cast({found}, tf.int64)"
    return call.value(f"tf.where(tf.range({size}) < {many}, {places}, {none})")


def _vector(call: Tf, function: str) -> Value | None:
    """Of a matrix of one column, as a vector."""
    a, b = call.input("a"), call.input("b")
    single = a.rank >= 2 and b.rank == a.rank and b.shape[-1] == 1 and not call["transpose_b"]
    if not single or call.out.dtype not in _WIDE or a.shape[:-2] != b.shape[:-2]:
        return None
    options = {"transpose_a": call["transpose_a"] or None}
    text = invoke(function, a, f"tf.squeeze({b.text}, -1)", **options)
    return call.value(f"tf.expand_dims({text}, -1)")


def _chosen(call: Tf, function: str) -> Value | None:
    """One of two parts."""
    x, keep = call.input("x"), call.input("keep")
    if not x.rank or call.axis("axis", x.rank) or x.dtype not in (*NUMBERS, "f16"):
        return None
    text = invoke(function, x, f"tf.cast({keep.text}, tf.int32)", 2)
    return TF_ROOM.room(call, f"{text}[1]")


def _global(call: Tf, function: str) -> Value | None:
    """Of images, with their channels last."""
    x = call.input("x")
    axis = call.axis("axis", x.rank) if x.rank else 0
    if x.rank != _IMAGE or axis not in (1, 3) or call.out.dtype not in _WIDE:
        return None
    dtype = call.build.dtype(x.dtype)
    channels = x.shape[axis]
    told = {
        "mean": call.input("mean"), "variance": call.input("var"),
        "beta": call.text("bias", f"tf.zeros([{channels}], {dtype})"),
        "gamma": call.text("scale", f"tf.ones([{channels}], {dtype})"),
        "variance_epsilon": float(call["eps"]), "scale_after_normalization": True,
    }  # fmt: skip
    inner = channels_last(call, x) if axis == 1 else x
    text = invoke(function, inner, **told)
    return first(call, text) if axis == 1 else call.value(text)


def _moments(call: Tf, function: str) -> Value | None:
    x, weights = call.input("x"), call.input("weights")
    if x.dtype not in _WIDE or not x.rank:
        return None
    axis = call.axis("axis", x.rank)
    shape = tuple(size if n == axis else 1 for n, size in enumerate(x.shape))
    if weights.shape != (x.shape[axis],):
        return None
    row = call.build.reshape(weights, shape)
    return call.value(f"{invoke(function, x, listed((axis,)), row)}[0]")


def _pieces(call: Tf, function: str) -> Value | None:
    """Of a table in two pieces, of which the first is no shorter."""
    table, ids = call.input("table"), call.input("ids")
    if not table.rank or table.shape[0] < 2 or ids.dtype not in _PLACES:
        return None
    half = -(-table.shape[0] // 2)
    return call.value(invoke(function, f"[{table.text}[:{half}], {table.text}[{half}:]]", ids))


def _factors(call: Tf, function: str) -> Value | None:
    """By the factors of a matrix."""
    a = call.input("x" if function.endswith("inverse") else "a")
    if a.dtype not in _WIDE or a.rank < 2 or a.shape[-1] != a.shape[-2] or 0 in a.shape:
        return None
    lu = f"*{invoke('tf.linalg.lu', a)}"
    if function.endswith("inverse"):
        return call.value(invoke(function, lu))
    b = call.input("b")
    fits = b.rank == a.rank and b.shape[:-1] == a.shape[:-1] and 0 not in b.shape
    return call.value(invoke(function, lu, b)) if fits else None


# ---- images


def _padded(call: Tf, kernel: str) -> Value | None:
    """With nothing around it, by the kernel that has the padding, and a resizing, in it."""
    x, frame, padding = framed(call, call.input("x"))
    plain = frame.rank == PLANE and call["groups"] == 1 and all_are(frame.dilation, 1)
    if not plain or len(set(frame.stride)) != 1 or call.out.dtype != "f32":
        return None
    inner = channels_last(call, x)
    given: dict[str, Any] = {"input": inner}
    if kernel.endswith("FusedResizeAndPadConv2D"):
        given["size"] = listed(x.shape[2:])
    w = call.input("w")
    given |= {
        "paddings": str([[0, 0]] * _IMAGE),
        "filter": call.build.transpose(w, (*range(2, w.rank), 1, 0)), "mode": '"REFLECT"',
        "strides": listed((1, *frame.stride, 1)), "padding": padding,
    }  # fmt: skip
    return result(call, biased(call, invoke(kernel, **given)), call.out.shape)


def _scaled(call: Tf, kernel: str) -> Value | None:
    """From edge to edge, by numbers that the sizes say."""
    x = call.input("x")
    if x.rank != _IMAGE or x.dtype != "f32" or not spatial(call, x) or 0 in call.out.shape:
        return None
    usual = call["coord"] == "half_pixel" and call["mode"] == "linear" and not call.says("scale")
    if not usual or call["aspect"] != "stretch" or 0 in x.shape:
        return None
    sizes = list(zip(call.out.shape[2:], x.shape[2:], strict=True))
    given = {
        "images": channels_last(call, x), "size": listed(call.out.shape[2:]),
        "scale": str([out / own for out, own in sizes]), "translation": "[0.0, 0.0]",
        "kernel_type": '"triangle"', "antialias": call["antialias"],
    }  # fmt: skip
    return first(call, invoke(kernel, **given))


def _projected(call: Tf, kernel: str) -> Value | None:
    x, transform = call.input("x"), call.input("transform")
    if x.dtype != "f32" or x.rank != _IMAGE or 0 in x.shape:
        return None
    zeros = f"tf.zeros([{transform.shape[0] if transform.shape else 0}, 2])"
    whole = f"tf.concat([{transform.text}, {zeros}], 1)"  # no perspective
    given = {
        "images": channels_last(call, x), "transforms": whole,
        "output_shape": listed(x.shape[2:]), "fill_value": float(call["value"]),
        "interpolation": {"linear": '"BILINEAR"', "nearest": '"NEAREST"'}[call["interpolation"]],
        "fill_mode": f'"{call["mode"].upper()}"',
    }  # fmt: skip
    return first(call, invoke(kernel, **given))


# ---- what is taken from a variable


def _taken_away(call: Tf, kernel: str) -> Value | None:
    """What is added, as what is negative and is taken away; of a copy, or of the tensor."""
    x, ids, updates = (call.input(name) for name in ("x", "ids", "updates"))
    if call["reduction"] != "add" or call["negative"] != "refused" or x.dtype not in NUMBERS:
        return None
    nd = kernel.endswith("nd_sub")
    if nd:
        if ids.dtype not in _PLACES or ids.rank < 2 or not x.rank:
            return None
        return call.value(invoke(kernel, x, ids, f"-{updates.text}"))
    if not x.rank or call.axis("axis", x.rank) or ids.dtype != "i32" or not all(x.shape):
        return None
    copied = call.build.once(invoke("tf.raw_ops.DeepCopy", x=x), x.shape, x.dtype, "x")
    return call.value(invoke(kernel, x=copied, i=ids, v=f"-{updates.text}"))


def _from_variable(call: Tf, kernel: str) -> Value | None:
    x, ids, updates = (call.input(name) for name in ("x", "ids", "updates"))
    if call["reduction"] != "add" or call["negative"] != "refused" or x.dtype not in NUMBERS:
        return None
    nd = "ScatterNd" in kernel
    fits = ids.rank > 1 if nd else bool(x.rank) and not call.axis("axis", x.rank)
    if not fits or not x.rank or ids.dtype not in _PLACES:
        return None
    held = call.build.once(f"tf.Variable({x.text})", x.shape, x.dtype, "held")
    handle = {"ref" if nd else "resource": f"{held.text}.handle"}
    call.build.lines.append(invoke(kernel, **handle, indices=ids, updates=f"-{updates.text}"))
    return call.value(f"tf.convert_to_tensor({held.text})")


def _held(kernel: str, rule: Callable[[Tf, str], Any]) -> Native:
    return raw(kernel, rule, eager=True, constant=("x", "ids", "updates"))


FURTHER: dict[str, Native | tuple[Native, ...]] = {
    **ROW_KERNELS,
    "gather": (raw("TensorListGather", _taken), word("tf.TensorArray", _array)),
    "stack": raw("TensorListStack", _piled),
    "scatter_slices": (
        raw("TensorListScatterIntoExistingList", _put),
        _held("InplaceSub", _taken_away),
        _held("ResourceScatterSub", _from_variable),
    ),
    "scatter_nd": (
        word("tf.tensor_scatter_nd_sub", _taken_away),
        _held("ResourceScatterNdSub", _from_variable),
    ),
    "concat": (raw("TensorListConcatV2", _chained), word("tf.sparse.concat", _joined)),
    "add": (word("tf.sparse.add", _pair), word("tf.image.adjust_brightness", _brighter)),
    "maximum": word("tf.sparse.maximum", _pair),
    "minimum": word("tf.sparse.minimum", _pair),
    "slice": word("tf.sparse.slice", _part),
    "split": word("tf.sparse.split", _split),
    "transpose": word("tf.sparse.transpose", _turned),
    "reshape": word("tf.sparse.reshape", _shaped),
    "expand_dims": word("tf.sparse.reshape", _shaped),
    "sparse_to_dense": raw("CSRSparseMatrixToDense", _dense),
    "sparse_reduce": Native(
        "tf.sparse.reduce_sum, tf.sparse.reduce_max", _reduced, constant=("values",)
    ),
    "sparse_segment_reduce": word("tf.nn.embedding_lookup_sparse", _looked_up),
    "tile": word("tf.image.grayscale_to_rgb", _colours),
    "crop": word("tf.image.central_crop", _middle),
    "non_max_suppression": (
        word("tf.image.non_max_suppression_with_scores", _boxes),
        word("tf.image.non_max_suppression_padded", _boxes),
    ),
    "matmul": word("tf.linalg.matvec", _vector),
    "compress": word("tf.dynamic_partition", _chosen),
    "batch_norm": word("tf.nn.batch_norm_with_global_normalization", _global),
    "weighted_average": word("tf.nn.weighted_moments", _moments),
    "embedding": word("tf.nn.embedding_lookup", _pieces),
    "solve": word("tf.linalg.lu_solve", _factors),
    "inverse": word("tf.linalg.lu_matrix_inverse", _factors),
    "conv": (raw("FusedPadConv2D", _padded), raw("FusedResizeAndPadConv2D", _padded)),
    "resize": raw("ScaleAndTranslate", _scaled),
    "affine_transform": raw("ImageProjectiveTransformV3", _projected),
}
