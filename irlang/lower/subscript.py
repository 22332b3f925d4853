"""Slices as Python writes them, `x[1:4, 5::-2]`: of frameworks whose tensors are subscripted."""

from __future__ import annotations

from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.value import Value


def subscript(*, backward: bool = True) -> Native:
    """The rule for tensors that can be subscripted. backward: whether a step may be negative."""

    def rule(call: Call[Any]) -> Value | None:
        x, steps = call.input("x"), tuple(call["step"])
        if not x.rank or (not backward and any(step < 0 for step in steps)):
            return None
        parts = [":"] * x.rank
        ranges = zip(call["begin"], call["end"], steps, strict=True)
        for axis, (begin, end, step) in zip(call.axes("axes", x.rank), ranges, strict=True):
            if not 0 <= axis < x.rank:
                return None
            parts[axis] = f"{begin}:{end}" if step == 1 else f"{begin}:{end}:{step}"
        while len(parts) > 1 and parts[-1] == ":":
            parts.pop()
        return call.value(f"{call.build.inner(x)}[{', '.join(parts)}]")

    return Native("x[begin:end:step]", rule)
