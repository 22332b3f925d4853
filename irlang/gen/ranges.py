"""What values a new tensor may take: what preconditions on values demand, and what keeps results
moderate.

A precondition such as `all(s.. < S..) 0 <= at(ids[s..]) < K` is tried on values: the longest run
for which it holds is the range. So it does not matter how the condition is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irlang import equations as eq
from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.gen.choice import Chooser
from irlang.gen.pattern import Slot
from irlang.instance import Instance
from irlang.known import EMPTY, KNOWN

Range = tuple[float, float]
_MOST = 64  # integers that are tried on either side of the numbers in a condition
_REAL_STEPS = (-3.0, -1.0, -0.9, -0.5, -0.1, 0.0, 0.1, 0.5, 0.9, 1.0, 3.0)
_MARGIN, _REACH = 0.1, 3.0  # distance from the end of a domain, and how far into an open one
_INPUTS: tuple[Range | None, ...] = (None, (-2.0, 2.0), (-4.0, 4.0), (0.0, 1.0))
_WIDE = 4  # where nothing bounds an integer


def demands(instance: Instance) -> dict[str, Range] | None:
    """The range that every constrained input of a call must keep to, by formal name.

    None where a condition ties several tensors, or cannot be met by a range of one.
    """
    found: dict[str, Range] = {}
    for _, condition in instance.deferred:
        tensors = {part.tensor for part in eq.walk(condition) if isinstance(part, eq.Read)}
        if len(tensors) != 1:
            return None
        tensor = tensors.pop()
        given = instance.binding.inputs.get(tensor.partition("[")[0])
        info = given[0] if isinstance(given, tuple) else given
        if info is None:
            return None
        run = _run(condition, _candidates(condition, info))
        if run is None:
            return None
        name = tensor.partition("[")[0]
        low, high = found.get(name, (-math.inf, math.inf))
        found[name] = (max(low, run[0]), min(high, run[1]))
    return found


def _candidates(condition: eq.Expr, info: TensorInfo) -> Sequence[float]:
    kind = DTYPES[info.dtype].kind
    if kind == "real":
        return _REAL_STEPS
    if kind == "bool":
        return (0, 1)
    numbers = [
        int(part.value)
        for part in eq.walk(condition)
        if isinstance(part, (eq.Const, eq.Size)) and abs(float(part.value)) <= _MOST**2
    ]
    least, most = integer_range(info.dtype)
    low = max(least, min([*numbers, -_WIDE]) - 1)
    return range(low, min(most, max([*numbers, _WIDE]) + 1, low + _MOST**2) + 1)


def _run(condition: eq.Expr, values: Sequence[float]) -> Range | None:
    """The longest run of values for which a condition holds, the last of equals."""
    best: tuple[int, Range] | None = None
    start = 0
    good = [_holds(condition, value) for value in values]
    for position in range(len(values) + 1):
        if position < len(values) and good[position]:
            continue
        if position > start and (best is None or position - start >= best[0]):
            best = (position - start, (values[start], values[position - 1]))
        start = position + 1
    return None if best is None else best[1]


def _holds(node: eq.Expr, value: float) -> bool:
    try:
        return bool(_value(node, value))
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return False


def _value(node: eq.Expr, element: float) -> Any:
    """The value of a condition when every element that it reads is `element`."""
    match node:
        case eq.Const() | eq.Size():
            return node.value
        case eq.Read():
            return element
        case eq.Apply():
            return KNOWN[node.function](*(_value(arg, element) for arg in node.args))
        case eq.Reduce():
            if node.kind in ("all", "any") and node.body is not None:
                if node.where is not None and not _value(node.where, element):
                    return EMPTY[node.kind]
                return _value(node.body, element)
            raise KeyError(node.kind)
        case _:
            raise KeyError(type(node).__name__)  # a position: the condition is not one on values


def usual(slot: Slot, info: TensorInfo, weight: bool, chooser: Chooser) -> Range | None:
    """The range of a tensor that nothing constrains; None for the default of inputs."""
    kind = DTYPES[info.dtype].kind
    if kind == "bool":
        return None
    if kind == "int":
        return (
            (0.0, float(_WIDE))
            if integer_range(info.dtype)[0] == 0
            else (-float(_WIDE), float(_WIDE))
        )
    if slot.domain is not None:
        low, high = slot.domain
        return low + _MARGIN, high - _MARGIN if high < math.inf else low + _REACH
    if not weight:
        return chooser.pick(_INPUTS)
    bound = math.sqrt(3 / max(1, fan_in(slot, info)))
    bound = float(f"{bound:.2g}")
    return (-bound, bound)


def fan_in(slot: Slot, info: TensorInfo) -> int:
    """How many elements of a weight a sum takes: it keeps results near one in size."""
    if not slot.fan or slot.placed or slot.spreads or len(slot.rests) > 1:
        return 1
    dims = slot.item.type.dims
    wide = len(info.shape) - slot.fixed
    product, axis = 1, 0
    for position, dim in enumerate(dims):
        width = wide if dim.kind == "rest" else 1
        if position in slot.fan:
            product *= math.prod(info.shape[axis : axis + width])
        axis += width
    return product
