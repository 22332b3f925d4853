"""Equations over balls by compiled loop nests: values, and their radii beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp import kernel, memory
from irlang.interp.ball import Ball, least, whole
from irlang.interp.ball_kernel_numbers import RADIUS, SIZE, Unfit
from irlang.interp.ball_kernel_source import Operands, generate
from irlang.interp.balls import Balls
from irlang.interp.schedule import Recurrence

Array = np.ndarray[Any, Any]
_LOOKED = 1 << 12  # elements of an exact tensor that are looked through for negative ones


class Prepared(kernel.Prepared):
    """A kernel over balls for one call's shapes."""

    def __init__(
        self,
        step: eq.Equation | Recurrence,
        infos: Mapping[str, eq.TensorInfo],
        domain: Balls,
        operands: Operands,
        kept: frozenset[str],
    ) -> None:
        equations = step.equations if isinstance(step, Recurrence) else (step,)
        known = {**infos, **{e.target: e.info for e in equations}}
        source, self.sums, self.least = generate(step, known, domain, operands, kept)
        super().__init__(step, infos, source)
        self.domain = domain

    def balls(self) -> dict[str, Ball]:
        """Balls for the results, to be filled."""
        found = {}
        for equation in self.equations:
            shape = equation.info.shape
            ball = Ball(
                memory.empty(shape, np.float64),
                memory.empty(shape, np.float64),
                least=self.least[equation.target],
            )
            if equation.target in self.sums:
                ball.terms, ball.spare = self.sums[equation.target]
                ball.magnitude = memory.empty(shape, np.float64)
            found[equation.target] = ball
        return found

    def arrays(self, tensors: Mapping[str, Ball]) -> dict[str, Array]:
        """The arrays that the kernel takes, by their names there."""
        found = {}
        for name in self.source.tensors:
            ball = tensors[name.removesuffix(RADIUS).removesuffix(SIZE)]
            array = ball.value
            if name.endswith(RADIUS):
                array = _spread(ball)
            elif name.endswith(SIZE):
                array = ball.magnitude
            found[name] = np.asarray(array)
        return found


def _spread(ball: Ball) -> Array:
    """The radii, one for every element; the array itself where it has them, as it is written to."""
    radius, shape = np.asarray(ball.bound, dtype=np.float64), np.shape(ball.value)
    return radius if radius.shape == shape else whole(radius, shape)


def prepare(
    step: eq.Equation | Recurrence,
    infos: Mapping[str, eq.TensorInfo],
    domain: Balls,
    operands: Operands,
    kept: frozenset[str],
) -> Prepared | None:
    """The kernel of an equation or a recurrence; None where NumPy has to do it."""
    steps = step.equations if isinstance(step, Recurrence) else (step,)
    if not all(kernel.compiles(equation.body) for equation in steps):
        return None
    try:
        return Prepared(step, infos, domain, operands, kept)
    except Unfit:
        return None


def chooses(expr: eq.Expr) -> bool:
    """Whether it hangs on the order of evaluation which sign a zero has: the larger or the smaller
    of some numbers, or their sum.
    """
    names = ("max", "min", "sum")
    return any(
        part.function in names if isinstance(part, eq.Apply) else part.kind in names
        for part in eq.walk(expr)
        if isinstance(part, (eq.Apply, eq.Reduce))
    )


def multiplied(expr: eq.Expr) -> int:
    """How many factors the longest product or quotient in an expression has."""
    return max((_factors(part) for part in eq.walk(expr)), default=1)


def _factors(expr: eq.Expr) -> int:
    if not isinstance(expr, eq.Apply) or expr.function not in ("*", "/"):
        return 1
    return sum(map(_factors, expr.args))


def known(
    names: Collection[str],
    tensors: Mapping[str, Ball],
    domain: Balls,
    choosing: bool,
    factors: int,
) -> Operands | None:
    """What the text of a kernel depends on; None where a tensor holds what kernels do not.

    choosing: whether there are choices among numbers; kernels do not tell which of zeros of either
    sign they take. factors: of the longest product; kernels multiply them in one order alone.
    """
    unit = domain.unit
    if any(np.asarray(tensors[name].value).dtype.kind not in "fib" for name in names):
        return None
    if any(tensors[name].signless is not None for name in names):
        return None
    if choosing and any(_negative_zero(tensors[name].value) for name in names):
        return None
    if factors > 1 and _far_apart([tensors[name] for name in names], factors, domain):
        return None
    return Operands(
        frozenset(name for name in names if tensors[name].radius is None),
        {
            name: (tensors[name].terms, tensors[name].spare)
            for name in sorted(names)
            if tensors[name].radius is not None and tensors[name].terms > 1
        },
        {name: tensors[name].share for name in sorted(names) if tensors[name].share},
        frozenset(name for name in names if _positive(tensors[name])),
        frozenset(name for name in names if _small(tensors[name], unit)),
    )


def _far_apart(balls: Sequence[Ball], factors: int, domain: Balls) -> bool:
    """Whether a product of so many may leave the range of a type on its way.

    Large tensors are not looked through, nor is what functions make of the numbers.
    """
    made = [one.ball for ball in balls for one in ball.factors]
    factors += sum(max(len(ball.factors) - 1, 0) for ball in balls)
    if factors < 3:
        return False
    lowest, highest = domain.tiny ** (1 / factors), domain.most ** (1 / factors)
    for ball in (*balls, *made):
        value = np.asarray(ball.value)
        if value.dtype.kind != "f" or value.size > _LOOKED:
            continue
        size = np.abs(value)
        with np.errstate(invalid="ignore"):
            far = (size > highest) | ((size < lowest) & (size > 0))
        if np.any(far & np.isfinite(size)):
            return True
    return False


def _small(ball: Ball, unit: float) -> bool:
    """Whether a type has all whole numbers up to the largest of these."""
    value = np.asarray(ball.value)
    if ball.radius is not None or value.dtype.kind != "i":
        return False
    ends = [float(end(value, initial=0)) for end in (np.min, np.max)]
    return max(map(abs, ends)) * unit <= 1


def _negative_zero(value: Any) -> bool:
    """Whether there is a zero below zero; large tensors are not looked through."""
    given = np.asarray(value)
    if given.dtype.kind != "f" or given.size > _LOOKED:
        return False
    return bool(np.any((given == 0) & np.signbit(given)))


def _positive(ball: Ball) -> bool:
    """Whether surely no element is negative; large exact tensors are not looked through."""
    return (ball.radius is not None or np.size(ball.value) <= _LOOKED) and least(ball) >= 0
