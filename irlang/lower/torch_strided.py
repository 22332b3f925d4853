"""PyTorch's further words for places and shapes: other views of the same memory, and functions that
know which axis they are for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irlang.lower.call import Call, Native
from irlang.lower.legalise import filling
from irlang.lower.spelling import invoke, named
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.torch_further import word
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def _strided(
    call: Torch, x: Value, shape: Sequence[int], strides: Sequence[int], first: int
) -> Value:
    """Another view of the same memory.

    Its first element is told by a view that begins there, and no `storage_offset`: that counts from
    where the memory begins, and not from where a tensor does that is itself a view.
    """
    solid = _from(f"{call.build.inner(x)}.contiguous()", first)
    return call.value(invoke("torch.as_strided", solid, tuple(shape), tuple(strides)))


def _from(solid: str, first: int) -> str:
    return f"{solid}.flatten()[{first}:]" if first else solid


def _steps(x: Value) -> list[int]:
    """How far elements lie from one another."""
    return [math.prod(x.shape[axis + 1 :]) for axis in range(x.rank)]


def _slice(call: Torch) -> Value | None:
    x = call.input("x")
    first, strides = 0, _steps(x)
    if 0 in call.out.shape or call.node.instance.faults:
        return None
    told = zip(call.axes("axes", x.rank), call["first"], call["step"], strict=True)
    for axis, begin, step in told:
        if step < 1:
            return None
        first += begin * strides[axis]
        strides[axis] *= step
    return _strided(call, x, call.out.shape, strides, first)


def _turned(call: Torch) -> Value | None:
    x, order = call.input("x"), tuple(call["order"])
    if 0 in x.shape or call.node.instance.faults:
        return None
    steps = _steps(x)
    return _strided(call, x, call.out.shape, [steps[axis] for axis in order], 0)


def _frames(call: Torch) -> Value | None:
    """Which lie over one another."""
    x = call.input("x")
    if 0 in call.out.shape or call.node.instance.faults:
        return None
    *outer, last = _steps(x)
    return _strided(call, x, call.out.shape, (*outer, last * call["step"], last), 0)


def _broadcast(call: Torch) -> Value | None:
    x = call.input("x")
    if 0 in call.out.shape or call.node.instance.faults:
        return None
    more = len(call.out.shape) - x.rank
    pairs = zip(_steps(x), x.shape, call.out.shape[more:], strict=True)
    steps = [0] * more + [step if size == wide else 0 for step, size, wide in pairs]
    return _strided(call, x, call.out.shape, steps, 0)


def _update_strided(call: Torch) -> Value | None:
    x, update = call.input("x"), call.input("update")
    if not x.rank or 0 in update.shape or call.node.instance.faults:
        return None
    steps = _steps(x)
    first = sum(begin * step for begin, step in zip(call["begin"], steps, strict=True))
    strides = tuple(step * by for step, by in zip(steps, call["step"], strict=True))
    # all of it is the result, so that its memory has to begin where it does (`_strided`)
    solid = f"{call.build.inner(x)}.clone(memory_format=torch.contiguous_format)"
    given = (tuple(update.shape), strides, int(first))
    return call.value(invoke("torch.as_strided_scatter", solid, update, *given))


def _select_scatter(call: Torch) -> Value | None:
    """All elements at one place of an axis."""
    x, update = call.input("x"), call.input("update")
    if not x.rank or x.rank != update.rank or call.node.instance.faults:
        return None
    part = [axis for axis in range(x.rank) if x.shape[axis] != update.shape[axis]]
    if len(part) != 1 or update.shape[part[0]] != 1:
        return None
    axis = part[0]
    picked = f"{call.build.inner(update)}.select({axis}, 0)"
    return call.value(invoke("torch.select_scatter", x, picked, axis, call["begin"][axis]))


def _nonzero(call: Torch) -> Value | None:
    """With room for so many."""
    x = call.input("x")
    if not x.rank or call["size"] > 1 << 16:
        return None
    return call.value(invoke("torch.nonzero_static", x, size=call["size"], fill_value=-1))


def _taken(call: Torch) -> Value | None:
    """Of what has one axis, in any shape."""
    x, ids = call.input("x"), call.build.cast(call.input("ids"), "i64")
    return call.value(invoke("torch.take", x, ids)) if x.rank == 1 else None


def _rows(call: Torch) -> Value:
    ids = call.build.cast(call.input("ids"), "i64")
    return call.value(f"{call.build.inner(call.input('table'))}[{ids.text}]")


# ---- shapes


def _split(call: Torch) -> list[Value] | None:
    """At places along the first, the second or the third axis."""
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    counts = [info.shape[axis] for info in call.outputs]
    if x.rank == 1:
        function = "torch.hsplit"
    else:
        function = {0: "torch.vsplit", 1: "torch.hsplit", 2: "torch.dsplit"}.get(axis, "")
    if not function or len(counts) == 1 or sum(counts) != x.shape[axis]:
        return None
    places = [sum(counts[: n + 1]) for n in range(len(counts) - 1)]
    return named(call, invoke(function, x, str(places)))


def _split_sizes(call: Torch) -> list[Value] | None:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    counts = [info.shape[axis] for info in call.outputs]
    if sum(counts) != x.shape[axis]:
        return None
    return named(call, invoke("torch.split_with_sizes", x, str(counts), dim=axis))


def _columns(call: Torch) -> Value | None:
    values = call.family("xs")
    if values[0].rank != 2 or call.axis("axis", 2) != 1 or len({v.dtype for v in values}) > 1:
        return None
    return call.value(f"torch.column_stack([{', '.join(map(call.build.full, values))}])")


def _padded(call: Torch) -> Value | None:
    x = call.input("x")
    if call["mode"] != "constant" or x.dtype == "bool":
        return None
    pairs = zip(reversed(call["before"]), reversed(call["after"]), strict=True)
    amounts = [int(amount) for pair in pairs for amount in pair]
    return call.value(invoke("torch.constant_pad_nd", x, str(amounts), filling(call)))


def _diagflat(call: Torch) -> Value | None:
    x = call.input("x")
    if x.rank != 1 or call.axes("axes", 2) != (0, 1):
        return None
    return call.value(invoke("torch.diagflat", x, call["offset"]))


def _tiled(call: Torch) -> Value | None:
    x, times = call.input("x"), tuple(call["repeats"])
    if len(times) != x.rank or call.node.instance.faults:
        return None
    return call.value(f"{call.build.inner(x)}.repeat({times})")


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "slice": word("torch.as_strided", _slice),
    "transpose": word("torch.as_strided", _turned),
    "frames": word("torch.as_strided", _frames),
    "broadcast_to": word("torch.as_strided", _broadcast),
    "slice_update": (
        word("torch.as_strided_scatter", _update_strided),
        word("torch.select_scatter", _select_scatter),
    ),
    "nonzero": word("torch.nonzero_static", _nonzero),
    "gather": word("torch.take", _taken),
    "embedding": word("table[ids]", _rows),
    "split": (
        word("torch.hsplit, vsplit, dsplit", _split),
        word("torch.split_with_sizes", _split_sizes),
    ),
    "concat": word("torch.column_stack", _columns),
    "pad": word("torch.constant_pad_nd", _padded),
    "diag_embed": word("torch.diagflat", _diagflat),
    "tile": word("Tensor.repeat", _tiled),
}
