"""Functions of `keras.ops` that move elements and leave them as they are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from irlang.importers.keras_node import Node, Write


def _axis(op: str, **names: str) -> Write:
    """One tensor and attributes by the names that Keras has for them."""

    def write(n: Node) -> str:
        attrs = {key: n.get(name) for key, name in names.items()}
        return n.write(op, n.x(), **{key: _listed(value) for key, value in attrs.items()})

    return write


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _axes_list(op: str) -> Write:
    def write(n: Node) -> str:
        axis = n.get("axis", None)
        if axis is None and op == "squeeze":
            x = n.x()
            axis = tuple(d for d, size in enumerate(n.info(x).shape) if size == 1)
        axes = list(axis) if isinstance(axis, tuple) else [axis]
        if axis is None:
            axes = list(range(n.rank(n.x())))
        return n.write(op, n.x(), axes=axes)

    return write


def _reshape(n: Node) -> str:
    shape = n.get("newshape")
    shape = list(shape) if isinstance(shape, tuple) else [shape]
    x = n.x()
    own = n.info(x).shape
    if -1 not in shape or shape[0] != -1 or len(own) == 0:
        return n.write("reshape", x, shape=[-1 if size is None else size for size in shape])
    return n.write("reshape", x, shape=shape)


def _transpose(n: Node) -> str:
    axes = n.get("axes", None)
    order: dict[str, Any] = {} if axes is None else {"perm": list(axes)}
    return n.write("transpose", n.x(), **order)


def _swap(n: Node) -> str:
    x = n.x()
    order = list(range(n.rank(x)))
    first, second = n.get("axis1") % len(order), n.get("axis2") % len(order)
    order[first], order[second] = order[second], order[first]
    return n.write("transpose", x, perm=order)


def _move(n: Node) -> str:
    x = n.x()
    rank = n.rank(x)
    source, target = n.get("source"), n.get("destination")
    sources = [s % rank for s in (source if isinstance(source, tuple) else (source,))]
    targets = [t % rank for t in (target if isinstance(target, tuple) else (target,))]
    left = iter(d for d in range(rank) if d not in sources)
    by_place = dict(zip(targets, sources, strict=True))
    order = [by_place[d] if d in by_place else next(left) for d in range(rank)]
    return n.write("transpose", x, perm=order)


def _together(op: str) -> Write:
    def write(n: Node) -> str:
        items = n.args[0] if isinstance(n.args[0], tuple) else tuple(n.args)
        operands = n.alike([n.operand(item, number) for number, item in enumerate(items)])
        return n.write(op, *operands, axis=n.get("axis", 0))

    return write


def _split(n: Node) -> list[str]:
    x, axis = n.x(), n.get("axis", 0)
    parts = n.get("indices_or_sections")
    size = n.info(x).shape[axis]
    if isinstance(parts, int):
        sizes = [size // max(1, parts)] * parts
    else:
        ends = [0, *parts, size]
        sizes = [b - a for a, b in pairwise(ends)]
    names = [f"{n.name}_{number}" for number in range(len(sizes))]
    return n.writer.call(names, "split", x, axis=axis, sizes=sizes)


def _item(n: Node) -> str:
    """x[...]: slices, positions, new axes and what is left out."""
    x, given = n.x(), n.args[1] if len(n.args) > 1 else n.get("key")
    keys = list(given) if isinstance(given, tuple) else [given]
    known = (int, slice, type(None), type(...))
    if any(not isinstance(key, known) or isinstance(key, bool) for key in keys):
        raise n.uncovered("an index is no number and no slice")
    used = sum(key is not None and key is not ... for key in keys)
    if used > n.rank(x) or keys.count(...) > 1:
        raise n.uncovered("there are more indices than axes")
    if ... not in keys:
        keys.append(...)
    at = keys.index(...)
    keys[at : at + 1] = [slice(None)] * (n.rank(x) - used)
    axes, begin, end, step, dropped, added = [], [], [], [], [], []
    source = place = 0
    for key in keys:
        if key is None:
            added.append(place)
            place += 1
            continue
        if isinstance(key, int):
            # the last element ends where the axis does
            key, single = slice(key, None if key == -1 else key + 1), True
            dropped.append(source)
        else:
            single = False
        if key != slice(None):
            size = n.info(x).shape[source]
            back = key.step is not None and key.step < 0
            ends = (size - 1, -size - 1) if back else (0, size)
            axes.append(source)
            begin.append(ends[0] if key.start is None else key.start)
            end.append(ends[1] if key.stop is None else key.stop)
            step.append(key.step or 1)
        source += 1
        place += not single
    last = len(axes) > 0, len(dropped) > 0, len(added) > 0
    stages = [
        stage for stage, there in zip(("part", "dropped", "added"), last, strict=True) if there
    ]
    suffix = {stage: "" if stage == stages[-1] else stage for stage in stages}
    if not stages:
        return n.write("identity", x)
    if axes:
        steps = {} if set(step) == {1} else {"step": step}
        x = n.write("slice", x, suffix=suffix["part"], axes=axes, begin=begin, end=end, **steps)
    if dropped:
        x = n.write("squeeze", x, suffix=suffix["dropped"], axes=dropped)
    if added:
        x = n.write("expand_dims", x, suffix=suffix["added"], axes=added)
    return x


def _pad(n: Node) -> str:
    x, pairs = n.x(), n.get("pad_width")
    if isinstance(pairs, int):
        pairs = ((pairs, pairs),)
    pairs = pairs * n.rank(x) if len(pairs) == 1 else pairs
    attrs: dict[str, Any] = {"before": [p[0] for p in pairs], "after": [p[1] for p in pairs]}
    mode = n.get("mode", "constant")
    if mode not in ("constant", "reflect", "symmetric"):
        raise n.uncovered(f"`mode` is {mode!r}")
    if mode != "constant":
        attrs["mode"] = mode
    elif n.get("constant_values", 0):
        attrs["value"] = n.get("constant_values")
    return n.write("pad", x, **attrs)


def _take(n: Node) -> str:
    x, ids, axis = n.x(0), n.x(1), n.get("axis", None)
    if axis is None:
        x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
    return n.write("gather", x, ids, axis=axis, negative="from_end")


def _repeat(n: Node) -> str:
    x, axis, repeats = n.x(), n.get("axis", None), n.get("repeats")
    if not isinstance(repeats, int):
        raise n.uncovered("`repeats` is no number")
    if axis is None:
        x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
    return n.write("repeat", x, repeats=repeats, axis=axis)


def _tile(n: Node) -> str:
    x, repeats = n.x(), n.get("repeats")
    repeats = list(repeats) if isinstance(repeats, tuple) else [repeats]
    missing = n.rank(x) - len(repeats)
    if missing < 0:
        x = n.write("expand_dims", x, suffix="wide", axes=list(range(-missing)))
    return n.write("tile", x, repeats=[1] * missing + repeats)


MOVING: dict[str, Write] = {
    "Reshape": _reshape,
    "Ravel": lambda n: n.write("reshape", n.x(), shape=[-1]),
    "Transpose": _transpose,
    "Swapaxes": _swap,
    "Moveaxis": _move,
    "ExpandDims": _axes_list("expand_dims"),
    "Squeeze": _axes_list("squeeze"),
    "Flip": _axes_list("reverse"),
    "BroadcastTo": _axis("broadcast_to", shape="shape"),
    "Tile": _tile,
    "Repeat": _repeat,
    "Concatenate": _together("concat"),
    "Stack": _together("stack"),
    "Split": _split,
    "GetItem": _item,
    "Pad": _pad,
    "Take": _take,
    "Tril": lambda n: n.write("trilu", n.x(), k=n.get("k", 0), upper=False),
    "Triu": lambda n: n.write("trilu", n.x(), k=n.get("k", 0)),
    "TakeAlongAxis": lambda n: n.write(
        "take_along_axis", n.x(0), n.x(1), axis=n.get("axis"), negative="from_end"
    ),
}
