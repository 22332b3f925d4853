"""MXNet's own ways to say a shape: a number below 0 says what becomes of axes of the input.

`mx.npx.reshape`: -2 copies a size, -3 drops one of 1, -4 copies all that are left, -5 joins two,
-6 splits one into the two that follow. `mx.nd.reshape`: 0 copies a size, -2 all that are left, -3
joins two, -4 splits one. Both: -1 is what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.mx_arrays import called
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

_NPX: Mapping[str, int] = {"copy": -2, "drop": -3, "rest": -4, "join": -5, "split": -6}
_ND: Mapping[str, int] = {"copy": 0, "rest": -2, "join": -3, "split": -4}


def coded(
    before: tuple[int, ...], after: tuple[int, ...], codes: Mapping[str, int]
) -> tuple[int, ...] | None:
    """The new shape by what becomes of the axes; None where they are cut in another way."""
    found: list[int] = []
    here = there = 0
    while here < len(before):
        rest, left = before[here:], after[there:]
        if rest == left and len(rest) > 1:
            return (*found, codes["rest"])
        if left and rest[0] == left[0]:
            found, here, there = [*found, codes["copy"]], here + 1, there + 1
        elif rest[0] == 1 and "drop" in codes:
            found, here = [*found, codes["drop"]], here + 1
        elif len(rest) > 1 and left and rest[0] * rest[1] == left[0]:
            found, here, there = [*found, codes["join"]], here + 2, there + 1
        elif len(left) > 1 and left[0] * left[1] == rest[0]:
            found, here, there = [*found, codes["split"], *left[:2]], here + 1, there + 2
        else:
            return None
    return tuple(found) if there == len(after) else None


def _of_numpy(call: Call[MxBuilder]) -> Value | None:
    x, codes = call.input("x"), coded(call.input("x").shape, call.out.shape, _NPX)
    if not codes or 0 in x.shape or call.node.instance.faults:
        return None
    return call.value(invoke("mx.npx.reshape", x, codes))


def _of_old(call: Call[MxBuilder]) -> Value | None:
    x, codes = call.input("x"), coded(call.input("x").shape, call.out.shape, _ND)
    if not codes or 0 in x.shape or call.node.instance.faults:
        return None
    options: dict[str, Any] = {"shape": codes}
    return call.value(called("reshape", x, **options))


RESHAPE = (Native("mx.npx.reshape", _of_numpy), Native("mx.nd.reshape", _of_old))
