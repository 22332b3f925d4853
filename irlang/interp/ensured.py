"""The meaning of `ensure`: whether results are right where a definition leaves values open.

Given are a call's inputs and the results of whoever computed it; what was drawn on the way is not
known and not asked for. Conditions are evaluated as balls at the target's precision: one that
rounding leaves undecided is not violated. A law is judged at the value of its statistic that is
likeliest among those that rounding allows: there the results are numbers that were rounded once,
and what is done to them is not rounded further.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.dtypes import DTYPES
from irlang.interp.balls import Ball, Balls
from irlang.interp.schedule import Recurrence, schedule
from irlang.interp.vector import Vector
from irlang.interp.views import Frame
from irlang.laws import ALARM, LAWS, probability


@dataclass(frozen=True, slots=True)
class Clause:
    """One `ensure` judged. holds: False where it is violated, then `message` says how.

    results: the outputs that it reads.
    """

    code: str
    holds: bool
    message: str
    results: frozenset[str]


def judge(
    expansion: eq.Expansion,
    given: Mapping[str, Any],
    dtype: str,
    results: Iterable[str],
    arithmetic: Arithmetic = STANDARD,
) -> list[Clause]:
    """Every `ensure` that can be judged from what is given: no other result, and nothing drawn.

    None where a precondition on the inputs' values does not surely hold.
    given: inputs and results, as `plain.load` gives them, inputs as balls where they are not known
    exactly. results: which of them are results.
    dtype: the target's precision, and how it computes.
    """
    results = frozenset(results)
    known = _Known(expansion, frozenset(given))
    found: list[Clause] = []
    domain = Balls(dtype, arithmetic)
    checks = Vector(domain, _balls(given), expansion.tensors)
    for check in expansion.checks:
        if eq.reads(check.condition) <= given.keys():
            with np.errstate(all="ignore"):
                ball = checks(check.condition, Frame({}, []))
            if not (np.all(ball.value) and np.all(np.asarray(ball.bound) == 0)):
                return found
    for clause in expansion.ensures:
        reads = frozenset().union(*map(eq.reads, clause.parts))
        closure = known.closure(reads)
        if closure is None:
            continue
        equations = [e for e in expansion.equations if e.target in closure - given.keys()]
        with np.errstate(all="ignore"):
            told = _violation(expansion, equations, given, domain, results, clause)
        message = f"{clause.code}: {clause.message}{told}" if told is not None else ""
        found.append(Clause(clause.code, told is None, message, closure & results))
    return found


class _Known:
    """What follows from what is given, by the equations that read nothing open."""

    def __init__(self, expansion: eq.Expansion, given: frozenset[str]) -> None:
        self.given = given
        self.by_target = {e.target: e for e in expansion.equations}
        self.hidden = {*expansion.chosen, *(one.tensor for one in expansion.drawn)}

    def closure(self, names: frozenset[str]) -> frozenset[str] | None:
        """All that is needed for the tensors `names`; None where something is not known."""
        found = set(names)
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in self.given:
                continue
            if name in self.hidden or name not in self.by_target:
                return None
            more = eq.reads(self.by_target[name].body) - found
            found |= more
            pending += more
        return frozenset(found)


def _violation(
    expansion: eq.Expansion,
    equations: list[eq.Equation],
    given: Mapping[str, Any],
    domain: Balls,
    results: frozenset[str],
    clause: eq.Ensure,
) -> str | None:
    """What to add to the message of a violated clause; None where it holds."""
    target = Vector(domain, _balls(given), expansion.tensors)
    for step in schedule(equations):
        if isinstance(step, Recurrence):
            target.recurrence(step)
        else:
            target.tensors[step.target] = target.equation(step)
    rounded = {name: _rounded(expansion.tensors[name], given[name]) for name in results}
    judge = Vector(Balls("f64"), {**target.tensors, **rounded}, expansion.tensors)
    for part in clause.parts:
        if isinstance(part, eq.Apply) and part.function in LAWS:
            told = _unlikely(part, judge)
            if told is not None:
                return told
        else:
            ball = target(part, Frame({}, []))
            if not np.all(ball.value) and np.all(np.asarray(ball.bound) == 0):
                return ""
    return None


def _balls(given: Mapping[str, Any]) -> dict[str, Ball]:
    return {n: one if isinstance(one, Ball) else Ball(one) for n, one in given.items()}


def _rounded(info: eq.TensorInfo, array: Any) -> Ball:
    """A result as a number that was rounded to its type: zero is then zero itself."""
    if info.kind != "real":
        return Ball(array)
    dtype = DTYPES[info.dtype]
    size = np.abs(array)
    radius = np.where(size < dtype.tiny, dtype.tiny * (size > 0), dtype.unit * size)
    return Ball(array, np.where(np.isfinite(size), radius, np.inf))


def _unlikely(part: eq.Apply, judge: Vector) -> str | None:
    """How unlikely a statistic is, where that is below `ALARM`."""
    statistic, *params = (judge(arg, Frame({}, [])) for arg in part.args)
    if any(np.any(np.asarray(ball.bound) > _exact(ball)) for ball in params):
        return None
    numbers = tuple(float(np.asarray(ball.value)) for ball in params)
    value, radius = float(np.asarray(statistic.value)), float(np.asarray(statistic.bound))
    if not math.isfinite(value) or not math.isfinite(radius):
        return None
    if LAWS[part.function].distance(*numbers) > 0:
        return None
    likely = probability(part.function, value - radius, value + radius, numbers)
    if likely >= ALARM:
        return None
    law = f"{part.function}({', '.join(f'{number:.6g}' for number in numbers)})"
    return f" ({value:.6g} under {law}: {likely:.1e}, an alarm is below {ALARM:.0e})"


def _exact(ball: Ball) -> Any:
    """What a number of a law may be off: the rounding of double precision."""
    return 2.0**-40 * np.abs(ball.value)
