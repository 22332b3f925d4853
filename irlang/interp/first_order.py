"""Radii of whole programs by the derivative, where balls from call to call grow too wide.

What a target computes is off by what its rounding does in every equation, carried on by all that
follows. With x what is right, x + d what is computed, e the rounding of one equation by itself and
J a matrix of our choice, every equation gives

    d[out] = J d[in] + e + (J(z) - J) d[in],    z between x[in] and x[in] + d[in],

which is linear in d. So an element of any tensor is off by no more than

    sum over equations |J to it| (local + |J(z) - J| reach),

where `local` bounds e (it is the radius that balls give the equation when what it reads is right)
and `reach` bounds d. |J to it| is a row of a Jacobian, accumulated backwards in numbers, in which
all cancels that cancels; the second term is what the adjoint of the one equation has for a radius
over balls (the mean value form; Moore, Kearfott, Cloud, Introduction to Interval Analysis, 2009,
chapter 6). It is of second order.

An element that hangs on a decision which rounding leaves open (a comparison, a step) is cut:
nothing flows through it, and all that balls allow there is local.

`reach` is what balls give, as long as that is not wide. Where it is, it is the sum itself, as long
as there are not too many such elements for that; else it is an estimate for all, `SURE` times what
disturbances of the size of `local` and of random sign bring about, and how far J varies is looked
up at two points that are as far off. Then the bound is that of the first order, and an estimate of
what is beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.instance import Definitions
from irlang.interp import program, reference, rounding, vector
from irlang.interp.ball import Ball
from irlang.interp.decisive import Decisive, decides
from irlang.interp.errors import RUNS, Errors, Known, about, kept, larger, spread
from irlang.interp.flows import TooLongError, endless, sums
from irlang.interp.plain import load
from irlang.interp.running import goes_on
from irlang.interp.units import Unit, disturbed, true_name, units
from irlang.scalar import SCALARS

Array = np.ndarray[Any, np.dtype[Any]]

SURE = 4.0  # times what disturbances of random sign bring about
_SLIGHT = 2.0**-22  # roundings that a number is off where all that is to be told is that it is
_NEXT = 2.0**-52  # relative: what moves any number of ours
_LEAST = 1e-280
_SMALL = 1 << 12  # elements of all tensors of a program in which no reach is an estimate
_MIDDLING = 1 << 15  # of one in which none is where balls are wide in few
_STEPS = _SMALL**2  # what these few may take: elements that their sums go over
# Quotients and powers, what is not defined everywhere, and what has poles elsewhere.
_SINGULAR = frozenset(
    {"/", "pow", *(n for n, row in SCALARS.items() if row.domain != (-math.inf, math.inf))}
    | {"tan", "lgamma", "polygamma", "expint", "zeta"}
)


class _TooWideError(Exception):
    """Balls say little of too many elements."""


class FirstOrder:
    """What is known of all tensors of a program, and radii of elements of its values.

    values: as in `irlang.interp.program.balls`, which has found that preconditions hold.
    estimates: whether reaches are estimates, as in large programs unless it is said, and where
    sums take too long. left: the seconds that are left for all of it; `TooLongError` is raised
    where they do not suffice.
    """

    def __init__(
        self,
        graph: Graph,
        values: Mapping[str, Array],
        definitions: Definitions,
        dtype: str,
        arithmetic: Arithmetic = STANDARD,
        estimates: bool | None = None,
        left: Callable[[], float] = endless,
    ) -> None:
        self._seconds = left
        self._dtype, self._arithmetic = dtype, arithmetic
        self._definitions = definitions
        self._unit = DTYPES[program.finest(graph, dtype)].unit
        self._own = dtype  # of the call that is looked at
        made = list(units(graph, definitions))
        shapes = (u.piece.expansion.tensors[t].shape for u in made for t in u.targets)
        self.size = sum(math.prod(shape) for shape in shapes)  # elements of all tensors
        self.estimates = self.size > _MIDDLING if estimates is None else estimates
        wanted = estimates is None and self.size > _SMALL
        self._left: float = _STEPS if wanted else math.inf  # of what sums may take
        try:
            self._look(graph, values, made)
        except _TooWideError:
            self.estimates = True
            self._look(graph, values, made)

    def _look(self, graph: Graph, values: Mapping[str, Array], made: list[Unit]) -> None:
        """Looks through the program, call by call."""
        self._errors = Errors(estimates=self.estimates)
        self._errors.runs = [{} for _ in range(RUNS if self.estimates else 0)]
        for name, info in graph.values.items():
            if name in values:
                ball = program.given_ball(info, load(info, values[name]), self._arithmetic)
                radius = spread(ball.radius, ball.value)
                self._errors.known[name] = Known(Ball(ball.value), radius, radius)
                self._errors.infos[name] = info
        with np.errstate(all="ignore"):
            for unit in made:
                if self._seconds() <= 0:
                    raise TooLongError
                self._add(unit)
        self._errors.runs = []

    def value(self, name: str) -> Array:
        """What a value is, in exact arithmetic but for the oracle's own rounding."""
        return self._errors.known[name].value

    def radius(self, name: str, elements: Array) -> Array:
        """How far off elements of a value may be, by their positions in it as one row."""
        with np.errstate(all="ignore"):
            found = sums(self._errors, name, np.asarray(elements), self._seconds)
            return found * (1 + 2.0**-53 / self._unit)

    # ---- unit by unit

    def _add(self, unit: Unit) -> None:
        """Adds a unit: the values of its tensors, what is local to them, and their reach."""
        piece, known = unit.piece, self._errors.known
        whole = piece.expansion
        self._own = program.call_precision(unit.node.expansion(self._definitions), self._dtype)
        self._errors.infos.update({unit.names[n]: i for n, i in whole.tensors.items()})
        values = reference.evaluate(whole, self._errors.values(unit, whole))
        counted = any(whole.tensors[name].kind != "real" for name in unit.targets)
        reached = self._reached(unit) if counted or not self.estimates else {}
        for name, target in unit.targets.items():
            if self.estimates:  # not exact, as far as its own equation is not
                radius: Array | None = np.ones(np.shape(values[name]))
            else:
                radius = spread(about(reached[name], values[name]), values[name])
            known[target] = Known(Ball(values[name]), None, radius)
        if piece.group is not None and goes_on(piece.group.equations):
            self._errors.whole.add(len(self._errors.units))
            local = self._local(unit, whole)
        else:
            local = {}
            for expansion in piece.alone:
                local.update(self._local(unit, expansion))
        self._errors.units.append(unit)
        for name, target in unit.targets.items():
            ball, real = local[name], whole.tensors[name].kind == "real"
            found = known[target] = Known(kept(ball, values[name]))
            found.ball.signless = reached.get(name, ball).signless
            found.local = self._rounded(unit, name, ball) if real else None
            if not real or not self.estimates:
                found.reach = self._rounded(unit, name, reached[name])
        if self.estimates:
            self._disturb(unit)
        self._cut(unit)
        if not self.estimates:
            for target in unit.targets.values():
                self._anchor(target)

    def _reached(self, unit: Unit) -> dict[str, Ball]:
        """The tensors of a unit as balls, given those that it reads."""
        return self._balls(unit.piece.expansion, self._operands(unit))

    def _local(self, unit: Unit, expansion: eq.Expansion) -> dict[str, Ball]:
        """What the rounding of an expansion alone makes of it, given what is right."""
        given = {}
        for formal, known in self._errors.of(unit, expansion).items():
            radius = known.reach
            if radius is not None and expansion.tensors[formal].kind == "real":
                radius = np.where(radius > 0, self._slight(known.value), 0.0)
                lost = known.reach if self.estimates else known.local
                if lost is not None:
                    radius = np.where(np.isinf(lost), np.inf, radius)
            given[formal] = self._operand(unit, formal, known, radius)
        return self._balls(expansion, given)

    def _operands(self, unit: Unit) -> dict[str, Ball]:
        """All that a unit reads, as balls."""
        known = self._errors.of(unit, unit.piece.expansion)
        return {f: self._operand(unit, f, k, k.reach) for f, k in known.items()}

    def _operand(self, unit: Unit, formal: str, known: Known, radius: Array | None) -> Ball:
        """What a unit reads, as a ball; the sums of another call are summed up, as a rule."""
        if formal in unit.node.feeds() and not self._arithmetic.distributes:
            ball = known.ball
            return Ball(known.value, radius, least=ball.least, signless=ball.signless)
        ball = known.with_radius(radius)
        if formal in unit.node.feeds():
            ball.factors = ()  # as in `program`
        return ball

    def _slight(self, value: Array) -> Array:
        """A radius that says no more than that a number is not exact."""
        found: Array = np.abs(value) * max(self._unit * _SLIGHT, _NEXT) + _LEAST
        return np.where(np.isfinite(found), found, np.inf)

    def _balls(self, expansion: eq.Expansion, given: dict[str, Ball]) -> dict[str, Ball]:
        return rounding.evaluate(expansion, given, self._own, self._arithmetic)

    def _rounded(self, unit: Unit, name: str, ball: Ball) -> Array | None:
        """The radius of a tensor of a unit, with what its call makes of it at its end."""
        value = self._errors.known[unit.names[name]].value
        radius = about(ball, value)
        if name in unit.node.results():
            expansion = unit.node.expansion(self._definitions)
            radius = program.stored(value, radius, expansion, name, self._arithmetic)
        return spread(radius, value)

    # ---- decisions

    def _cut(self, unit: Unit) -> None:
        """Finds the elements that hang on open decisions, and those that are left open."""
        whole = unit.piece.expansion
        known = self._errors.of(unit, whole)
        inexact = any(k.reach is not None for k in known.values())
        deciding = any(decides(e.body) for e in whole.equations)
        if inexact and (deciding or self._errors.undecided(unit, whole)):
            self._cut_open(unit, self._operands(unit))
        if inexact:
            for expansion in unit.piece.alone:
                self._open_at_poles(unit, expansion)
        for mask in unit.piece.masks:
            target = self._errors.known[unit.names[mask.target]]
            names = {n: self._errors.known[unit.names[n]].value for n in eq.reads(mask.body)}
            infos = {n: self._errors.infos[unit.names[n]] for n in names}
            left = vector.evaluate_equation(mask, names, infos)
            everywhere = np.full(left.shape, np.inf)
            target.local = larger(target.local, everywhere, left)
            target.reach = larger(target.reach, everywhere, left)

    def _open_at_poles(self, unit: Unit, expansion: eq.Expansion) -> None:
        """Where an operand reaches a pole, or the end of a domain, nothing is known.

        A derivative does not tell: at some points within reach, as estimates have it, nor by the
        rules of balls, by which zero times anything is zero.
        """
        if not any(map(_singular, expansion.equations)):
            return
        operands = {
            formal: self._operand(unit, formal, known, known.reach)
            for formal, known in self._errors.of(unit, expansion).items()
        }
        found = self._balls(expansion, operands)
        for name in expansion.outputs:
            known = self._errors.known[unit.names[name]]
            shape = np.shape(known.value)
            beyond = np.broadcast_to(np.isinf(found[name].bound), shape)
            if beyond.any():
                everywhere = np.full(shape, np.inf)
                known.local = larger(known.local, everywhere, beyond)
                known.reach = larger(known.reach, everywhere, beyond)

    def _cut_open(self, unit: Unit, balls: dict[str, Ball]) -> None:
        whole = unit.piece.expansion
        decided = vector.evaluate(whole, balls, Decisive(self._own, self._arithmetic))
        shapes = {n: whole.tensors[n].shape for n in whole.outputs}
        unknown = {n: np.broadcast_to(np.isinf(decided[n].bound), shapes[n]) for n in shapes}
        if not any(where.any() for where in unknown.values()):
            return
        if unit.piece.group is not None:
            unknown = {n: np.ones(shape, bool) for n, shape in shapes.items()}
        reached = self._balls(whole, balls) if self.estimates else {}
        for name, target in unit.targets.items():
            known = self._errors.known[target]
            if self.estimates:
                bound = self._rounded(unit, name, reached[name])
                known.reach = larger(known.reach, bound, unknown[name])
            if whole.tensors[name].kind == "real" and unknown[name].any():
                known.cut = unknown[name]
                known.local = larger(known.local, known.reach, known.cut)
                for run, found in enumerate(self._errors.runs):
                    noise = self._errors.noise(target, run)
                    found[target] = found[target] + np.where(known.cut, noise, 0.0)

    # ---- reaches

    def _anchor(self, name: str) -> None:
        """Makes a reach that is wide the sum over all equations before it."""
        known = self._errors.known[name]
        if self._errors.infos[name].kind != "real" or known.reach is None or known.local is None:
            return
        size = np.abs(known.value)
        scale = float(np.max(size, initial=0.0, where=np.isfinite(size)))
        wide = ~(known.reach <= math.sqrt(DTYPES[self._own].unit) * scale) & np.isfinite(
            known.local
        )
        places = np.flatnonzero(wide)
        self._left -= places.size * sum(np.size(k.value) for k in self._errors.known.values())
        if self._left < 0:
            raise _TooWideError
        if places.size:
            flat = known.reach.reshape(-1).copy()
            flat[places] = np.minimum(flat[places], sums(self._errors, name, places))
            known.reach = flat.reshape(known.reach.shape)

    def _disturb(self, unit: Unit) -> None:
        """Estimates the reaches of a unit's tensors by disturbances of random sign."""
        errors, expansion = self._errors, disturbed(unit.piece)
        fed = bool(errors.inexact(unit, unit.piece.expansion))
        gaps: dict[str, Array] = {}
        for run, found in enumerate(errors.runs):
            given = {}
            for formal in expansion.inputs:
                name = unit.names[true_name(formal)]
                own = formal not in unit.piece.expansion.inputs
                given[formal] = errors.noise(name, run) if own else errors.disturbed(name, run)
            values = reference.evaluate(expansion, given)
            for formal, name in unit.targets.items():
                if errors.infos[name].kind == "real":
                    found[name] = values[formal]
                    gap = np.abs(values[formal] - errors.known[name].value)
                    gaps[name] = np.maximum(gaps[name], gap) if name in gaps else gap
        for name, gap in gaps.items():
            known = errors.known[name]
            gap = np.where(np.isfinite(gap), gap, np.inf)
            finite = np.where(np.isfinite(gap), gap, 0.0)
            usual = math.sqrt(float(np.sum(finite**2)) / max(finite.size, 1))
            local = 0.0 if known.local is None else known.local
            reach = np.maximum(SURE * np.maximum(gap, usual), local)
            inexact = np.asarray(fed | (np.asarray(known.ball.bound) > 0))
            known.reach = spread(np.where(inexact, reach, 0.0), known.value)


def _singular(equation: eq.Equation) -> bool:
    """Whether a function of an equation has poles, or an end of where it is defined."""
    return any(
        isinstance(part, eq.Apply) and part.function in _SINGULAR for part in eq.walk(equation.body)
    )
