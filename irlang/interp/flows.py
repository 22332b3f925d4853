"""Errors carried to elements of a tensor: rows of Jacobians, backwards through the units.

What flows back to a tensor from each of its readers counts by itself: a target may have computed
the tensor anew for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp import reference, rounding, vector
from irlang.interp.ball import Ball
from irlang.interp.errors import Errors, some, total
from irlang.interp.linear import Linear
from irlang.interp.pulling import PREFIX, pulled
from irlang.interp.reference import steps_of
from irlang.interp.units import Unit

Array = np.ndarray[Any, np.dtype[Any]]
Flows = dict[str, Array]

_ELSEWHERE = 1 + 2.0**-6  # what an equation's rounding does at a target's numbers, over ours
_MEMORY = 1 << 23  # elements of the cotangents of one tensor, for all rows at once
_ROWS = 256  # at once
_EACH = 5e-8  # seconds that a step of balls takes at least


class TooLongError(Exception):
    """There is no more time for a sum."""


def endless() -> float:
    """The seconds that are left of a time without an end."""
    return math.inf


def sums(errors: Errors, name: str, elements: Array, left: Callable[[], float] = endless) -> Array:
    """How far off elements of a tensor may be, by their positions in it as one row.

    left: the seconds that are left for it. Raises `TooLongError` where they do not suffice.
    """
    known = errors.known
    last = max((i for i, u in enumerate(errors.units) if name in u.targets.values()), default=-1)
    sizes = (known[n].value.size for u in errors.units[: last + 1] for n in u.targets.values())
    most = max(1, min(_ROWS, _MEMORY // max((*sizes, 1))))
    found = [np.zeros(0)]
    for start in range(0, len(elements), most):
        here = elements[start : start + most]
        rows = min(most, 1 << (len(here) - 1).bit_length())  # few sizes, few preparations
        found.append(_Sweep(errors, rows, left).run(name, here, last)[: len(here)])
    bounds = np.concatenate(found) * _ELSEWHERE
    return np.where(np.isnan(bounds), np.inf, bounds)


class _Sweep:
    """One way back, for several elements at once.

    parts: what has flown back to each tensor, from each of its readers. found: the bounds.
    """

    def __init__(self, errors: Errors, rows: int, left: Callable[[], float]) -> None:
        self._errors = errors
        self._left = left
        self._rows = rows
        self._parts: dict[str, list[Array]] = {}
        self._found = np.zeros(rows)

    def run(self, name: str, elements: Array, last: int) -> Array:
        """The bounds of elements; last: the number of the unit that gives the tensor."""
        known = self._errors.known
        seed = np.zeros((self._rows, known[name].value.size))
        seed[np.arange(len(elements)), elements] = 1.0
        self._parts[name] = [seed.reshape((self._rows, *known[name].value.shape))]
        for number in range(last, -1, -1):
            if self._left() <= 0:
                raise TooLongError
            unit = self._errors.units[number]
            seeds = {f: self._parts.pop(n) for f, n in unit.targets.items() if n in self._parts}
            if seeds:
                alone = unit.piece.group is None or number in self._errors.whole
                self._pull(unit, seeds, alone)
        for source, flows in self._parts.items():
            self._charge((flow, known[source].local) for flow in flows)
        return self._found

    def _charge(self, flows: Iterable[tuple[Array, Array | None]]) -> None:
        self._found += total(flows, self._rows)

    def _pull(self, unit: Unit, seeds: dict[str, list[Array]], alone: bool) -> None:
        """Carries what flows to the tensors of a unit on to what it reads."""
        known = {name: self._errors.known[unit.names[name]] for name in seeds}
        stopped = not alone and any(some(k.cut) for k in known.values())
        flows: Flows = {}
        for name, several in seeds.items():
            if alone or stopped:
                self._charge((flow, known[name].local) for flow in several)
            flow = several[0] if len(several) == 1 else np.sum(several, axis=0)
            cut = known[name].cut
            flows[name] = flow if cut is None else np.where(cut, 0.0, flow)
        if stopped:
            return
        if not alone:
            self._recurrence(unit, flows)
            return
        for name, flow in self._piece(unit, unit.piece.expansion, flows).items():
            self._parts.setdefault(name, []).append(flow)

    def _piece(self, unit: Unit, expansion: eq.Expansion, flows: Flows) -> Flows:
        """What flows back through an expansion, by name; its curvature is charged."""
        wanted = self._errors.inexact(unit, expansion)
        if not wanted:
            return {}
        backward = pulled(expansion, tuple(wanted), tuple(flows), self._rows, "any")
        seeds = {PREFIX + name: flow for name, flow in flows.items()}
        read = set().union(*(eq.reads(e.body) for e in backward.equations))
        if not read & wanted.keys() and not self._errors.undecided(unit, expansion):
            found = reference.evaluate(
                backward, {**self._errors.values(unit, expansion), **seeds}
            )  # linear: there is no curvature
            return _by_name(found, backward, wanted)
        left = self._left()
        if left < math.inf and _EACH * sum(map(steps_of, backward.equations)) > left:
            raise TooLongError
        reaches = [self._errors.known[n].reach for n in wanted.values()]
        lost = any(reach is not None and bool(np.isinf(reach).any()) for reach in reaches)
        estimate = self._errors.estimates and not lost
        over = self._over_runs if estimate else self._over_balls
        found, apart = over(unit, expansion, backward, seeds)
        for output, name in zip(backward.outputs, wanted.values(), strict=True):
            self._charge([(apart[output], self._errors.known[name].reach)])
        return _by_name(found, backward, wanted)

    def _over_balls(
        self, unit: Unit, expansion: eq.Expansion, backward: eq.Expansion, seeds: Flows
    ) -> tuple[Flows, Flows]:
        """What flows back, and by how much that differs within the reach of what is read."""
        known = self._errors.of(unit, expansion)
        balls = {f: Ball(k.value, k.reach) for f, k in known.items()}
        balls.update({name: Ball(flow) for name, flow in seeds.items()})
        found = rounding.evaluate(backward, balls, "f64")
        results = {name: found[name] for name in backward.outputs}
        if not all(np.all(np.isfinite(np.asarray(b.bound))) for b in results.values()):
            found = vector.evaluate(backward, balls, Linear("f64"))  # what nothing flows to is 0
            results = {name: found[name] for name in backward.outputs}
        return (
            {n: b.value for n, b in results.items()},
            {n: np.broadcast_to(b.bound, np.shape(b.value)) for n, b in results.items()},
        )

    def _over_runs(
        self, unit: Unit, expansion: eq.Expansion, backward: eq.Expansion, seeds: Flows
    ) -> tuple[Flows, Flows]:
        """The same as an estimate: where what is read is as far off as it may be, either way."""
        errors = self._errors
        found = reference.evaluate(backward, {**errors.values(unit, expansion), **seeds})
        apart = {name: np.zeros(found[name].shape) for name in backward.outputs}
        for way in (1.0, -1.0):
            moved = {f: errors.moved(n, way) for f, n in unit.given(expansion).items()}
            other = reference.evaluate(backward, {**moved, **seeds})
            for name, most in apart.items():
                np.maximum(most, np.abs(other[name] - found[name]), out=most)
        return found, apart

    def _recurrence(self, unit: Unit, flows: Flows) -> None:
        """The same through a recurrence, whose own tensors are charged with all that flows."""
        whole = unit.piece.expansion
        real = [n for n in whole.outputs if whole.tensors[n].kind == "real"]
        wanted = self._errors.inexact(unit, whole)
        backward = pulled(whole, (*wanted, *real), tuple(flows), self._rows, "first")
        seeds = {PREFIX + name: flow for name, flow in flows.items()}
        tensors = reference.evaluate(backward, {**self._errors.values(unit, whole), **seeds})
        found = dict(zip((*wanted, *real), backward.outputs, strict=True))
        for formal, name in wanted.items():
            self._parts.setdefault(name, []).append(tensors[found[formal]])
        for name in real:
            flow = tensors[found[name]]
            self._charge([(flow, self._errors.known[unit.names[name]].local)])
        for expansion in unit.piece.alone:
            (target,) = expansion.outputs
            if target in real:
                self._curved(unit, expansion, {target: tensors[found[target]]})

    def _curved(self, unit: Unit, expansion: eq.Expansion, flows: Flows) -> None:
        """Charges the curvature of one equation of a recurrence."""
        middle = self._piece(unit, expansion, flows)
        if not middle:
            return
        # the recurrence has one of the slopes at a kink, balls have the middle of all
        wanted = self._errors.inexact(unit, expansion)
        backward = pulled(expansion, tuple(wanted), tuple(flows), self._rows, "first")
        seeds = {PREFIX + name: flow for name, flow in flows.items()}
        tensors = reference.evaluate(backward, {**self._errors.values(unit, expansion), **seeds})
        for name, flow in _by_name(tensors, backward, wanted).items():
            self._charge([(middle[name] - flow, self._errors.known[name].reach)])


def _by_name(tensors: Flows, backward: eq.Expansion, wanted: dict[str, str]) -> Flows:
    """What flows back to each tensor; a call may read one more than once."""
    found: Flows = {}
    for output, name in zip(backward.outputs, wanted.values(), strict=True):
        found[name] = found[name] + tensors[output] if name in found else tensors[output]
    return found
