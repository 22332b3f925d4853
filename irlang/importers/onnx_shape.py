"""ONNX's operators on shapes: their results are known when a model is read, or attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.onnx_node import Node, Value, integers
from irlang.importers.sizes import Dim
from irlang.importers.value import Unsupported, check_shape

Row = Callable[[Node], Value | Sequence[Value | None]]


def axes_of(n: Node, place: int, since: int) -> list[int] | None:
    """`axes`: an attribute before version `since`, an input from then on; None if not given."""
    if n.version < since:
        found: list[int] | None = n.ints("axes")
        return found
    return None if n.optional(place) is None else n.known_ints(place)


# ---- sizes, constants


def _shape(n: Node) -> Value:
    shape = n.input(0).shape
    start, end = n.int("start", 0), n.int("end", len(shape))
    return n.const(integers(shape[slice(start, end)]))


def _size(n: Node) -> Value:
    total = math.prod(n.input(0).shape)
    return n.const(integers([total]).reshape(()))


def _constant(n: Node) -> Value:
    found: Any = n.tensor("value")
    for name, kind in (("value_float", np.float32), ("value_floats", np.float32)):
        if n.has(name):
            read = n.real if name == "value_float" else n.reals
            found = np.array(read(name), kind)
    for name in ("value_int", "value_ints"):
        if n.has(name):
            found = np.array(n.int(name) if name == "value_int" else n.ints(name), np.int64)
    if found is None:
        raise Unsupported("a constant that is neither a tensor nor numbers")
    return n.const(found)


def _constant_of_shape(n: Node) -> Value:
    value = n.tensor("value")
    value = np.zeros(1, np.float32) if value is None else value
    sizes = tuple(n.known_ints(0))
    name = next(name for name, row in DTYPES.items() if row.numpy == value.dtype)
    check_shape(sizes, "the constant")
    return n.const(value.reshape(-1).tolist()[0], info=TensorInfo(sizes, name))


def _range(n: Node) -> Value:
    """From a start, by a step, up to a limit; the size of the result must be known."""
    start, limit, step = (n.known_number(place) for place in range(3))
    name = n.input(0).dtype
    if name.startswith(("f", "b")):
        count = _few(max(math.ceil((limit - start) / step), 0))
        items = np.asarray(start + np.arange(count) * step).astype(DTYPES[name].numpy)
        return n.const(items)
    count = max(-(-(limit - start) // step), 0)
    if not any(isinstance(item, Dim) for item in (start, limit, step)):
        items = start + step * np.arange(_few(count))
        return n.const(items.astype(DTYPES[name].numpy))
    one = n.const(1, f"{n.outputs[0]}_ones", TensorInfo((count,), name))
    if (start, step) == (0, 1) and not isinstance(start, Dim):
        return n.call("cumsum", one, axis=0, exclusive=True)
    places = n.step("places", "cumsum", one, axis=0, exclusive=True)
    by = n.const(integers([step]).reshape(()), f"{n.outputs[0]}_step", TensorInfo((), name))
    first = n.const(integers([start]).reshape(()), f"{n.outputs[0]}_start", TensorInfo((), name))
    return n.call("add", n.step("scaled", "multiply", places, by), first)


def _few(count: int) -> int:
    if count > _MOST:
        raise Unsupported(f"{count} numbers are too many for a constant")
    return count


_MOST = 1 << 24

# ---- the same elements


def _reshape(n: Node) -> Value:
    n.ignore("consumed_inputs")
    x = n.input(0)
    wanted = n.ints("shape") if n.version < 5 else n.known_ints(1)
    if not n.flag("allowzero"):
        if any(size == 0 and place >= x.rank for place, size in enumerate(wanted)):
            raise Unsupported(f"a size is copied from an axis that the input has not: {wanted}")
        wanted = [x.shape[i] if _zero(size) else size for i, size in enumerate(wanted)]
    return n.call("reshape", x, shape=wanted)


def _zero(size: int) -> bool:
    return size == 0 and not isinstance(size, Dim)


def _flatten(n: Node) -> Value:
    x, axis = n.input(0), n.int("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    shape = [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])]
    if x.rank >= 2 and axis == 1:
        return n.call("flatten", x)
    return n.call("reshape", x, shape=shape)


def _squeeze(n: Node) -> Value:
    axes = axes_of(n, 1, 13)
    if axes is None:
        if any(isinstance(size, Dim) for size in n.input(0).shape):
            raise Unsupported("its axes are not given, and a size that is left open may be 1")
        axes = [d for d, size in enumerate(n.input(0).shape) if size == 1]
    return n.call("squeeze", n.input(0), axes=axes)


def _unsqueeze(n: Node) -> Value:
    axes = axes_of(n, 1, 13)
    if axes is None:
        raise Unsupported("its axes are missing")
    return n.call("expand_dims", n.input(0), axes=axes)


def _transpose(n: Node) -> Value:
    perm = n.ints("perm")
    return n.call("transpose", n.input(0), **({} if perm is None else {"perm": perm}))


def _expand(n: Node) -> Value:
    """Both shapes broadcast, the given one and that of the input."""
    x, wanted = n.input(0), n.known_ints(1)
    rank = max(x.rank, len(wanted))
    own = [*[1] * (rank - x.rank), *x.shape]
    wanted = [*[1] * (rank - len(wanted)), *wanted]
    shape = [a if b == 1 else b for a, b in zip(own, wanted, strict=True)]
    return n.call("broadcast_to", x, shape=shape)


# ---- parts


def _slice(n: Node) -> Value:
    x = n.input(0)
    if n.version < 10:
        begin, end = n.ints("starts"), n.ints("ends")
        axes = n.ints("axes", list(range(len(begin))))
        step = [1] * len(begin)
    else:
        begin, end = n.known_ints(1), n.known_ints(2)
        given, by = n.optional(3), n.optional(4)
        axes = list(range(len(begin))) if given is None else n.known_ints(3)
        step = [1] * len(begin) if by is None else n.known_ints(4)
    if not begin:
        return x
    if not all(-x.rank <= axis < x.rank for axis in axes) or len(axes) != len(begin):
        raise Unsupported(f"axes {axes} of {x.rank}")
    sizes = [x.shape[axis] for axis in axes]
    end = [_end(*item) for item in zip(end, step, sizes, strict=True)]
    begin = [_begin(*item) for item in zip(begin, step, sizes, strict=True)]
    attrs = {"axes": axes, "begin": begin, "end": end}
    if any(by != 1 for by in step):
        attrs["step"] = step
    return n.call("slice", x, **attrs)


def _end(end: int, step: int, size: int) -> int:
    """Beyond the tensor is its end; ONNX writes the largest integers there."""
    if isinstance(end, Dim):
        return end
    return size if step > 0 and end > _FAR else -size - 1 if step < 0 and end < -_FAR else end


def _begin(begin: int, step: int, size: int) -> int:
    """Going backwards from before the tensor, ONNX starts at its first element, Python nowhere."""
    if isinstance(begin, Dim):
        return begin
    if step < 0:
        return 0 if begin < -size else size - 1 if begin > _FAR else begin
    return -size if begin < -_FAR else begin


_FAR = 2**30


def _split(n: Node) -> list[Value]:
    x, axis = n.input(0), n.int("axis", 0)
    parts = n.int("num_outputs", len(n.outputs)) if n.version >= 18 else len(n.outputs)
    if parts != len(n.outputs):
        raise Unsupported(f"{parts} parts for {len(n.outputs)} results")
    sizes = n.ints("split") if n.version < 13 else None
    if n.version >= 13 and n.optional(1) is not None:
        sizes = n.known_ints(1)
    if sizes is not None:
        if len(sizes) != len(n.outputs):
            raise Unsupported(f"{len(sizes)} parts for {len(n.outputs)} results")
        return n.calls(len(sizes), "split", x, axis=axis, sizes=sizes)
    return n.calls(parts, "split", x, axis=axis, parts=parts)


def _concat(n: Node) -> Value:
    axis = n.int("axis", 1 if n.version < 4 else None)
    if axis is None:
        raise Unsupported("its axis is missing")
    return n.call("concat", *n.x, axis=axis)


def _tile(n: Node) -> Value:
    return n.call("tile", n.input(0), repeats=n.known_ints(1))


def _pad(n: Node) -> Value:
    x = n.input(0)
    mode = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}.get(
        n.word("mode", "constant")
    )
    if mode is None:
        raise Unsupported(f"the mode {n.word('mode')}")
    if n.version < 11:
        pads, value = n.ints("pads", n.ints("paddings")), n.real("value", 0.0)
    else:
        pads = n.known_ints(1)
        value = 0 if n.optional(2) is None else n.known_number(2)
    axes = list(range(x.rank))
    if n.optional(3) is not None:
        axes = [axis % max(x.rank, 1) for axis in n.known_ints(3)]
    before, after = [0] * x.rank, [0] * x.rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[len(axes) + place]
    attrs: dict[str, Any] = {"before": before, "after": after}
    if mode != "constant":
        attrs["mode"] = mode
    elif value:
        attrs["value"] = value
    return n.call("pad", x, **attrs)


def _trilu(n: Node) -> Value:
    attrs: dict[str, Any] = {"upper": n.flag("upper", True)}
    if n.optional(1) is not None:
        attrs["k"] = n.known_number(1)
    return n.call("trilu", n.input(0), **attrs)


def _blocks(op: str) -> Row:
    def row(n: Node) -> Value:
        attrs: dict[str, Any] = {"block_size": n.int("blocksize")}
        if n.word("mode", "DCR") == "CRD":
            attrs["mode"] = "crd"
        return n.call(op, n.input(0), **attrs)

    return row


def _eye_like(n: Node) -> Value:
    """A matrix with ones on a diagonal, which depends on the shape alone."""
    x = n.input(0)
    rows, columns = x.shape
    name = n.element_type("dtype", x.dtype)
    if any(isinstance(size, Dim) for size in x.shape):
        raise Unsupported("for a size that is left open")
    _few(rows * columns)
    return n.const(np.eye(rows, columns, n.int("k", 0)).astype(DTYPES[name].numpy))


ROWS: dict[str, Row] = {
    "Shape": _shape,
    "Size": _size,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "com.microsoft.Range": _range,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Slice": _slice,
    "Split": _split,
    "Concat": _concat,
    "Tile": _tile,
    "Pad": _pad,
    "Trilu": _trilu,
    "EyeLike": _eye_like,
    "SpaceToDepth": _blocks("space_to_depth"),
    "DepthToSpace": _blocks("depth_to_space"),
}
