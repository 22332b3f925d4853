"""What shares memory in PyTorch, and how a change of a view becomes a change of its base."""

from __future__ import annotations

import numpy as np

from irlang.importers.torch_call import Call, Uncovered, Value

# Results that are, or may be, views of their first argument.
VIEWS = frozenset(
    {
        *("alias", "detach", "lift_fresh", "view", "reshape", "flatten", "unflatten", "view_as"),
        *("expand", "expand_as", "permute", "transpose", "t", "numpy_T", "mT", "movedim"),
        *("squeeze", "unsqueeze", "select", "slice", "narrow", "unbind", "split", "chunk"),
        *("split_with_sizes", "tensor_split", "diagonal", "unfold", "swapaxes", "contiguous"),
        *("to", "ravel", "swapdims", "moveaxis", "hsplit", "vsplit", "dsplit", "reshape_as"),
    }
)
_SAME = frozenset({"alias", "detach", "lift_fresh", "contiguous", "to"})
_RESHAPED = frozenset(
    {"view", "reshape", "flatten", "unflatten", "view_as", "squeeze", "unsqueeze", "ravel"}
)


def put_back(call: Call, value: Value) -> Value:
    """The base of a view with the view's new value in it. call: the node that made the view."""
    kind = call.node.target.split(".")[1].removesuffix("_")
    base = call.tensor("self")
    if kind in _SAME:
        return value
    if kind in _RESHAPED or kind == "reshape_as":
        return call.reshape(value, base.shape)
    if kind == "transpose":
        order = list(range(base.rank))
        i, j = call.axis("dim0", base.rank), call.axis("dim1", base.rank)
        order[i], order[j] = order[j], order[i]
        return call.first("transpose", value, perm=order)
    if kind in ("t", "mT", "numpy_T"):
        order = list(range(base.rank))
        order = order[::-1] if kind == "numpy_T" else [*order[:-2], *order[-2:][::-1]]
        return call.first("transpose", value, perm=order)
    if kind == "permute":
        order = [int(d) % max(base.rank, 1) for d in call.numbers("dims")]
        return call.first("transpose", value, perm=[order.index(d) for d in range(base.rank)])
    if kind == "select":
        axis = call.axis("dim", base.rank)
        at = call.whole("index")
        return inserted(call, base, call("expand_dims", value, axes=[axis]), axis, at, 1)
    if kind == "slice":
        axis = call.axis("dim", base.rank, 0)
        first, _, step = bounds(call, base.shape[axis])
        return inserted(call, base, value, axis, first, step)
    if kind == "narrow":
        axis = call.axis("dim", base.rank)
        return inserted(call, base, value, axis, call.whole("start"), 1)
    raise Uncovered(f"it changes in place what {kind} gave, a view of another tensor")


def bounds(call: Call, size: int) -> tuple[int, int, int]:
    """First position, end and step of a slice, inside the axis."""
    first, end, step = call.get("start"), call.get("end"), call.whole("step", 1)
    first = 0 if first is None else first
    end = size if end is None else end
    first = max(first + size, 0) if first < 0 else size if first > size else first
    end = max(end + size, 0) if end < 0 else size if end > size else end
    return first, max(first, end), step


def inserted(call: Call, base: Value, value: Value, axis: int, first: int, step: int) -> Value:
    """`base` with `value` at the positions first, first + step, … of an axis."""
    size = base.shape[axis]
    first = first + size if first < 0 else first
    count = value.shape[axis]
    if step != 1:
        places = np.arange(int(size)) + int(count)
        places[first : first + step * int(count) : step] = np.arange(int(count))
        both = call("concat", call.cast(value, base.dtype), base, axis=axis)
        return call.first("gather", both, call.param(places), axis=axis)
    parts = []
    if first != 0:
        parts.append(call("slice", base, axes=[axis], begin=[0], end=[first]))
    parts.append(call.cast(value, base.dtype))
    if first + count != size:
        parts.append(call("slice", base, axes=[axis], begin=[first + count], end=[size]))
    return parts[0] if len(parts) == 1 else call.first("concat", *parts, axis=axis)
