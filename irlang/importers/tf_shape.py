"""TensorFlow's operators on shapes: their results are known when a graph is read, or attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.tf_node import Node, Result, Row, is_open
from irlang.importers.value import Unsupported, Value, check_shape, integers

_MOST = 1 << 24  # numbers of a constant that is made here
_FAR = 2**30

# ---- sizes, constants


def _whole(n: Node, items: Sequence[int], rank: int, name: str = "") -> Value:
    """Whole numbers, some of which may be open sizes, of the type that the node says."""
    kind = n.element_type("out_type", "i32")
    array = integers(items)
    if array.dtype != object:
        array = array.astype(DTYPES[kind].numpy)
    shape = (len(items),) if rank else ()
    return n.const(array.reshape(shape), name, TensorInfo(shape, kind))


def _shape(n: Node) -> Value:
    return _whole(n, n.input(0).shape, 1)


def _shapes(n: Node) -> Result:
    pairs = zip(n.x, n.outputs, strict=False)
    return [_whole(n, x.shape, 1, name) if name else None for x, name in pairs]


def _rank(n: Node) -> Value:
    return _whole(n, [n.input(0).rank], 0)


def _size(n: Node) -> Value:
    return _whole(n, [math.prod(n.input(0).shape)], 0)


def _alike(number: int) -> Row:
    def row(n: Node) -> Value:
        x = n.input(0)
        return n.const(number, info=x.info)

    return row


def _fill(n: Node) -> Value:
    sizes, value = tuple(n.known_ints(0)), n.input(1)
    check_shape(sizes, "what is filled")
    if value.known() is None:
        return n.call("broadcast_to", value, shape=list(sizes))
    number = n.known_number(1)
    if value.info.kind == "real":
        number = float(str(DTYPES[value.dtype].numpy.type(number)))
    return n.const(number, info=TensorInfo(sizes, value.dtype))


def _range(n: Node) -> Value:
    """From a start, by a step, up to a limit; the size of the result must be known."""
    start, limit, step = (n.known_number(place) for place in range(3))
    kind = n.input(0).dtype
    if step == 0:
        raise Unsupported("a step of 0")
    if any(is_open(item) for item in (start, limit, step)):
        if (start, step) != (0, 1):
            raise Unsupported("over an open size, unless from 0 in steps of 1")
        one = n.const(1, f"{n.outputs[0]}_ones", TensorInfo((limit,), kind))
        return n.call("cumsum", one, axis=0, exclusive=True)
    if n.input(0).info.kind == "real":
        count = _few(max(math.ceil((limit - start) / step), 0))
    else:
        count = _few(max(-(-(limit - start) // step), 0))
    items = np.asarray(start + np.arange(count) * step)
    return n.const(items.astype(DTYPES[kind].numpy))


def _linspace(n: Node) -> Value:
    start, stop, count = (n.known_number(place) for place in range(3))
    if is_open(count) or count < 1:
        raise Unsupported(f"{count} numbers")
    kind: Any = DTYPES[n.input(0).dtype].numpy.type
    step = (kind(stop) - kind(start)) / kind(max(count - 1, 1))
    items = kind(start) + step * np.arange(_few(count)).astype(kind)
    if count > 1:
        items[-1] = kind(stop)
    return n.const(items)


def _few(count: int) -> int:
    if count > _MOST:
        raise Unsupported(f"{count} numbers are too many for a constant")
    return count


# ---- the same elements


def _reshape(n: Node) -> Value:
    return n.call("reshape", n.input(0), shape=n.known_ints(1))


def _expand_dims(n: Node) -> Value:
    return n.call("expand_dims", n.input(0), axes=[n.known_number(1)])


def _squeeze(n: Node) -> Value:
    x, axes = n.input(0), n.ints("squeeze_dims", n.ints("axis", []))
    if not axes:
        if any(is_open(size) for size in x.shape):
            raise Unsupported("its axes are not given, and a size that is left open may be 1")
        axes = [d for d, size in enumerate(x.shape) if size == 1]
    return n.call("squeeze", x, axes=axes)


def _transpose(n: Node) -> Value:
    return n.call("transpose", n.input(0), perm=n.known_ints(1))


def _broadcast(n: Node) -> Value:
    return n.call("broadcast_to", n.input(0), shape=n.known_ints(1))


# ---- parts


def _slice(n: Node) -> Value:
    """So many elements from a position on; -1 are all that are left."""
    x, begin, size = n.input(0), n.known_ints(1), n.known_ints(2)
    if not len(begin) == len(size) == x.rank:
        raise Unsupported(f"positions {begin} and sizes {size} of {x.rank} axes")
    pairs = zip(begin, size, x.shape, strict=True)
    end = [whole if _is(s, -1) else b + s for b, s, whole in pairs]
    axes = [d for d in range(x.rank) if not (_is(begin[d], 0) and end[d] is x.shape[d])]
    if not axes:
        return x
    at = {"begin": [begin[d] for d in axes], "end": [end[d] for d in axes]}
    return n.call("slice", x, axes=axes, **at)


def _is(value: int, number: int) -> bool:
    return not is_open(value) and value == number


def _strided(n: Node) -> Value:
    """Python's indexing: the bits of the masks say what the entries of the three lists mean."""
    x = n.input(0)
    begin, end, step = (n.known_ints(place) for place in (1, 2, 3))
    if not len(begin) == len(end) == len(step):
        raise Unsupported(f"{len(begin)}, {len(end)} and {len(step)} positions")
    names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    mask = {name: n.int(f"{name}_mask", 0) for name in names}

    def said(name: str, entry: int) -> bool:
        return bool(mask[name] >> entry & 1)

    entries = range(len(begin))
    dots = [entry for entry in entries if said("ellipsis", entry)]
    if len(dots) > 1:
        raise Unsupported("two ellipses")
    taken = [e for e in entries if e not in dots and not said("new_axis", e)]
    hidden = x.rank - len(taken)
    if hidden < 0:
        raise Unsupported(f"{len(taken)} positions of {x.rank} axes")
    attrs: dict[str, list[Any]] = {"axes": [], "begin": [], "end": [], "step": []}
    gone: list[int] = []  # axes of the input
    new: list[int] = []  # axes of the result
    axis = place = 0
    for entry in entries:
        if entry in dots:
            axis, place = axis + hidden, place + hidden
        elif said("new_axis", entry):
            new.append(place)
            place += 1
        else:
            size = x.shape[axis]
            if said("shrink_axis", entry):
                at = begin[entry]
                span = (at, size if _is(at, -1) else at + 1, 1)
                gone.append(axis)
            else:
                by = step[entry]
                first = (size - 1 if by < 0 else 0) if said("begin", entry) else begin[entry]
                last = (-size - 1 if by < 0 else size) if said("end", entry) else end[entry]
                span = (first, _bounded(last, by, size), by)
                place += 1
            if not (_is(span[0], 0) and span[1] is size and span[2] == 1):
                for name, number in zip(attrs, (axis, *span), strict=True):
                    attrs[name].append(number)
            axis += 1
    return _indexed(n, attrs, gone, new)


def _bounded(end: int, step: int, size: int) -> int:
    """Beyond the tensor is its end; programs write the largest integers there."""
    if is_open(end):
        return end
    return size if step > 0 and end > _FAR else -size - 1 if step < 0 and end < -_FAR else end


def _indexed(n: Node, attrs: dict[str, list[Any]], gone: list[int], new: list[int]) -> Value:
    """A part of the input, without some of its axes, and with new ones: what is needed of that."""
    steps: list[tuple[str, dict[str, Any]]] = []
    if attrs["axes"]:
        if all(_is(by, 1) for by in attrs["step"]):
            attrs = {name: items for name, items in attrs.items() if name != "step"}
        steps.append(("slice", attrs))
    if gone:
        steps.append(("squeeze", {"axes": gone}))
    if new:
        steps.append(("expand_dims", {"axes": new}))
    x = n.input(0)
    for op, given in steps[:-1]:
        x = n.step("part" if op == "slice" else "rest", op, x, **given)
    return n.call(steps[-1][0], x, **steps[-1][1]) if steps else x


def _split(n: Node) -> Result:
    parts, axis, x = n.int("num_split"), n.known_number(0), n.input(1)
    if -x.rank <= axis < x.rank and not is_open(x.shape[axis]) and x.shape[axis] % max(parts, 1):
        raise Unsupported(f"{parts} equal parts along axis {axis} of {x.info}")
    return n.calls(parts, "split", x, axis=axis, parts=parts)


def _split_sizes(n: Node) -> Result:
    """One of the sizes may be -1: what is left."""
    x, sizes, axis = n.input(0), n.known_ints(1), n.known_number(2)
    n.ignore("num_split")
    if sum(_is(size, -1) for size in sizes) == 1 and -x.rank <= axis < x.rank:
        rest = x.shape[axis] - sum(size for size in sizes if not _is(size, -1))
        sizes = [rest if _is(size, -1) else size for size in sizes]
    return n.calls(len(sizes), "split", x, axis=axis, sizes=sizes)


def _unpack(n: Node) -> Result:
    """A tensor for every position along an axis."""
    x, axis, count = n.input(0), n.int("axis", 0), n.int("num")
    if not -x.rank <= axis < x.rank or not _is(x.shape[axis], count):
        raise Unsupported(f"{count} parts along axis {axis} of {x.info}")
    found: list[Value | None] = []
    for place in range(count):
        if not n.wants(place):
            found.append(None)
            continue
        at = {"begin": [place], "end": [place + 1]}
        part = n.step(f"part_{place}", "slice", x, axes=[axis], **at)
        found.append(n.result(place, "squeeze", part, axes=[axis]))
    return found


def _pack(n: Node) -> Value:
    return n.call("stack", *n.x, axis=n.int("axis", 0))


def _concat(axis: int) -> Row:
    """axis: the input that says along which axis."""

    def row(n: Node) -> Value:
        at = n.known_number(axis % len(n.given))
        parts = [value for place, value in enumerate(n.x) if place != axis % len(n.given)]
        return parts[0] if len(parts) == 1 else n.call("concat", *parts, axis=at)

    return row


def _tile(n: Node) -> Value:
    return n.call("tile", n.input(0), repeats=n.known_ints(1))


def _pads(n: Node) -> dict[str, Any]:
    """Two numbers for every axis."""
    pairs = n.known_ints(1)
    return {"before": pairs[::2], "after": pairs[1::2]}


def _pad(n: Node) -> Value:
    return n.call("pad", n.input(0), **_pads(n))


def _pad_with(n: Node) -> Value:
    return n.call("pad", n.input(0), **_pads(n), value=n.known_number(2))


def _mirror(n: Node) -> Value:
    return n.call("pad", n.input(0), **_pads(n), mode=n.word("mode").lower())


def _reverse(n: Node) -> Value:
    x, axes = n.input(0), n.known_ints(1)
    return n.call("reverse", x, axes=axes) if axes else x


def _reverse_flagged(n: Node) -> Value:
    """A truth value for every axis."""
    axes = [axis for axis, flag in enumerate(n.known(1).reshape(-1).tolist()) if flag]
    return n.call("reverse", n.input(0), axes=axes) if axes else n.input(0)


def _joined(n: Node) -> Value:
    n.ignore("shape")
    return n.call("concat", *n.x, axis=0) if len(n.x) > 1 else n.input(0)


def _common(n: Node) -> Value:
    """The shape that two shapes are broadcast to."""
    shapes = [n.known_ints(place) for place in (0, 1)]
    rank = max(map(len, shapes))
    first, second = ([1] * (rank - len(shape)) + shape for shape in shapes)
    found = []
    for a, b in zip(first, second, strict=True):
        if not (_is(a, 1) or _is(b, 1) or a is b or (not is_open(a) and _is(b, a))):
            raise Unsupported(f"the shapes {first} and {second} together")
        found.append(b if _is(a, 1) else a)
    array, kind = integers(found), n.input(0).dtype
    return n.const(array, info=TensorInfo((rank,), kind))


def _invert(n: Node) -> Value:
    order = n.known_ints(0)
    if sorted(order) != list(range(len(order))):
        raise Unsupported(f"{order} is no order")
    return n.const(np.argsort(order).astype(DTYPES[n.input(0).dtype].numpy))


def _stitch(n: Node) -> Value:
    """Numbers put at places that lists say, the last of several: sizes that a gradient takes."""
    half = len(n.x) // 2
    found: dict[int, int] = {}
    for place in range(half):
        at, numbers = n.known_ints(place), n.known_ints(half + place)
        found.update(zip(at, numbers, strict=True))
    if sorted(found) != list(range(len(found))) or n.x[half].info.kind != "int":
        raise Unsupported("of other numbers than sizes, or with gaps")
    kind = n.x[half].dtype
    array = integers([found[place] for place in range(len(found))])
    if array.dtype != object:
        array = array.astype(DTYPES[kind].numpy)
    return n.const(array, info=TensorInfo((len(found),), kind))


ROWS: dict[str, Row] = {
    "Shape": _shape,
    "ShapeN": _shapes,
    "Rank": _rank,
    "Size": _size,
    "ZerosLike": _alike(0),
    "OnesLike": _alike(1),
    "Fill": _fill,
    "Range": _range,
    "LinSpace": _linspace,
    "Reshape": _reshape,
    "ExpandDims": _expand_dims,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "BroadcastTo": _broadcast,
    "Slice": _slice,
    "StridedSlice": _strided,
    "Split": _split,
    "SplitV": _split_sizes,
    "Unpack": _unpack,
    "Pack": _pack,
    "ConcatV2": _concat(-1),
    "Concat": _concat(0),
    "Tile": _tile,
    "Pad": _pad,
    "PadV2": _pad_with,
    "MirrorPad": _mirror,
    "Reverse": _reverse_flagged,
    "ReverseV2": _reverse,
    "InvertPermutation": _invert,
    "ParallelConcat": _joined,
    "BroadcastArgs": _common,
    "DynamicStitch": _stitch,
}
