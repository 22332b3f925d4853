"""What is known of the error of every tensor of a program, and sums of such errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.ball import Ball, magnitude
from irlang.interp.draws import generator
from irlang.interp.units import Unit

Array = np.ndarray[Any, np.dtype[Any]]

RUNS = 2  # with disturbances of random sign


@dataclass(slots=True)
class Known:
    """What is known of a tensor.

    ball: its value, with the terms of a sum for its readers in the same call. local: what the
    rounding of its own equation may do (None: nothing). reach: how far off it may be (None: it is
    exact). cut: the elements that nothing flows through.
    """

    ball: Ball
    local: Array | None = None
    reach: Array | None = None
    cut: Array | None = None

    @property
    def value(self) -> Array:
        """In float64, int64 or bool."""
        found: Array = self.ball.value
        return found

    def with_radius(self, radius: Array | None) -> Ball:
        """The tensor as an operand with a radius."""
        b = self.ball
        terms = b.terms, b.magnitude, b.spare
        found = Ball(b.value, radius, *terms, least=b.least, signless=b.signless)
        found.factors, found.unrounded = b.factors, b.unrounded
        return found


@dataclass(slots=True)
class Errors:
    """The units of a program and what is known of its tensors.

    whole: the numbers of units of which `local` is what the whole of them may do, not an equation.
    estimates: whether reaches are estimates; then runs are the tensors of programs that are
    disturbed, as far as these have come.
    """

    units: list[Unit] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    known: dict[str, Known] = field(default_factory=dict)
    infos: dict[str, eq.TensorInfo] = field(default_factory=dict)
    estimates: bool = False
    runs: list[dict[str, Array]] = field(default_factory=list)

    def of(self, unit: Unit, expansion: eq.Expansion) -> dict[str, Known]:
        """What is known of all that an expansion of a unit is given."""
        return {f: self.known[n] for f, n in unit.given(expansion).items()}

    def values(self, unit: Unit, expansion: eq.Expansion) -> dict[str, Array]:
        """The values of the same."""
        return {f: known.value for f, known in self.of(unit, expansion).items()}

    def inexact(self, unit: Unit, expansion: eq.Expansion) -> dict[str, str]:
        """The real tensors that an expansion of a unit reads and that are not exact, by name."""
        return {
            f: n
            for f, n in unit.given(expansion).items()
            if self.infos[n].kind == "real" and self.known[n].reach is not None
        }

    def undecided(self, unit: Unit, expansion: eq.Expansion) -> bool:
        """Whether a whole number or a truth value that is read hangs on rounding."""
        return any(
            self.infos[n].kind != "real" and some(self.known[n].reach)
            for n in unit.given(expansion).values()
        )

    def disturbed(self, name: str, run: int) -> Array:
        """A tensor as a disturbed run has it."""
        found = self.runs[run]
        if name not in found:
            known = self.known[name]
            if self.infos[name].kind != "real" or known.local is None:
                return known.value
            found[name] = known.value + self.noise(name, run)
        return found[name]

    def noise(self, name: str, run: int) -> Array:
        """A disturbance of a tensor: what its equation may do, with random signs."""
        local = self.known[name].local
        if local is None:
            return np.zeros(self.known[name].value.shape)
        signs = generator(run, name).choice([-1.0, 1.0], local.shape)
        found: Array = np.where(np.isfinite(local), local, 0.0) * signs
        return found

    def moved(self, name: str, way: float) -> Array:
        """A tensor as far off as it may be, with random signs; way: 1, or -1 for the opposite."""
        known = self.known[name]
        if self.infos[name].kind != "real" or known.reach is None:
            return known.value
        signs = generator(0, name).choice([-way, way], known.reach.shape)
        reach = np.where(np.isfinite(known.reach), known.reach, 0.0)
        found: Array = np.maximum(known.value + signs * reach, known.ball.least)
        return found


def kept(ball: Ball, value: Array) -> Ball:
    """A ball with its terms written out, so that its radius may be replaced; and its true value."""
    size = magnitude(ball) if ball.terms > 1 else None
    found = Ball(value, ball.radius, ball.terms, size, ball.spare, least=ball.least)
    found.factors, found.unrounded = ball.factors, ball.unrounded
    return found


def about(ball: Ball, value: Array) -> Any:
    """How far from a value a ball reaches, which may have another in its middle."""
    if ball.radius is None:
        return None
    reach = np.asarray(ball.radius)
    if np.asarray(ball.value).dtype.kind != "f" or not np.any(reach):
        return reach
    with np.errstate(invalid="ignore"):
        apart = np.abs(ball.value - value)
    return reach + np.where((reach > 0) & ~np.isnan(apart), apart, 0.0)


def some(array: Array | None) -> bool:
    """Whether there is anything but zero."""
    return array is not None and bool(np.any(array))


def spread(radius: Any, value: Any) -> Array | None:
    """A radius at the shape of its value; None where it is 0 everywhere."""
    if radius is None or not np.any(radius):
        return None
    return np.broadcast_to(np.asarray(radius, np.float64), np.shape(value))


def larger(a: Array | None, b: Array | None, where: Array) -> Array:
    """The larger of two bounds, at the elements that are meant; the first elsewhere."""
    first, second = (np.zeros(where.shape) if x is None else x for x in (a, b))
    found: Array = np.where(where, np.maximum(first, second), first)
    return found


def total(flows: Iterable[tuple[Array, Array | None]], rows: int) -> Array:
    """The sum of |flow| times a bound over all elements, for every row.

    An infinite bound counts where something flows at all.
    """
    found = np.zeros(rows)
    for flow, bound in flows:
        if bound is None:
            continue
        wide, flat = np.abs(flow).reshape(rows, -1), bound.reshape(-1)
        if not np.all(flat > 0):
            wide, flat = wide[:, flat != 0], flat[flat != 0]
        unknown = ~np.isfinite(flat)
        if unknown.any():
            found += np.where((wide[:, unknown] != 0).any(axis=1), np.inf, 0.0)
            wide, flat = wide[:, ~unknown], flat[~unknown]
        found += wide @ flat
    return found
