"""The fourth meaning: equations evaluated over balls (`irlang.interp.balls`), value and radius.

Sums of many products go to BLAS (`ball_products`), all else to vectorised NumPy (`vector`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.interp import ball_kernel, ball_recurrence, contraction, wide
from irlang.interp.ball_kernel_source import Operands
from irlang.interp.ball_products import applies, further, product_ball
from irlang.interp.balls import Ball, Balls
from irlang.interp.draws import draw
from irlang.interp.notes import Notes
from irlang.interp.overflow import alone
from irlang.interp.plain import require_arrays
from irlang.interp.reference import CALL, Part, calls_of, parted, steps_of, worth
from irlang.interp.schedule import Recurrence, Step, schedule, separate
from irlang.interp.vector import Vector, inner, run_ready

_PRODUCT = 1 << 15  # multiplications from which on BLAS is worth its preparation
_NEST = 20_000_000  # scalar steps that NumPy has done for an equation before its kernel is written
_STEP = 50_000  # scalar steps that one step of a recurrence takes at least
_LOOSER = 4  # what a step over balls costs NumPy, in steps over numbers


class _Plan(Notes):
    """What evaluations of one expansion share: the order, and the products in each equation."""

    def __init__(self, expansion: eq.Expansion) -> None:
        super().__init__()
        require_arrays(expansion)
        self.steps: tuple[Step, ...] = schedule(expansion.equations)
        self._all = {e.target for e in expansion.equations}
        self._read = frozenset(n for e in expansion.equations for n in eq.reads(e.body))
        self._spent: dict[int, int] = {}

    def often(self, item: object, work: int) -> bool:
        """Whether an equation or a recurrence has been so much work that a kernel is asked for."""
        self._spent[id(item)] = self._spent.get(id(item), 0) + work
        return self._spent[id(item)] >= _NEST

    def products(self, equation: eq.Equation, infos: Mapping[str, eq.TensorInfo]) -> _Parted:
        """The sums of products in an equation, and what remains of it."""
        return self.note("products", equation, lambda: _products(equation, infos))

    def parts(
        self, equation: eq.Equation, infos: Mapping[str, eq.TensorInfo]
    ) -> tuple[tuple[eq.Equation, ...], eq.Equation]:
        """The reductions that an equation need not repeat, and what remains of it."""
        return self.note("parts", equation, lambda: separate(equation, infos))

    def loop(
        self,
        group: Recurrence,
        parts: Sequence[Part],
        infos: Mapping[str, eq.TensorInfo],
        domain: Balls,
        tensors: Mapping[str, Ball],
    ) -> ball_recurrence.Plan | None:
        """How a recurrence is run, for these operands; None where NumPy has to do it."""
        names = {n for part in parts for e in part.group.equations for n in eq.reads(e.body)}
        choosing = self.note(
            "choosing",
            group,
            lambda: any(
                ball_kernel.chooses(e.body) for part in parts for e in part.group.equations
            ),
        )
        factors = self.note(
            "multiplied",
            group,
            lambda: max(
                ball_kernel.multiplied(e.body) for part in parts for e in part.group.equations
            ),
        )
        operands = ball_kernel.known(names & tensors.keys(), tensors, domain, choosing, factors)
        if operands is None:
            return None
        return self.note(
            "loop",
            group,
            lambda: ball_recurrence.plan(group, parts, infos, domain, operands),
            *_key(domain, operands),
        )

    def kernel(
        self,
        equation: eq.Equation,
        infos: Mapping[str, eq.TensorInfo],
        domain: Balls,
        tensors: Mapping[str, Ball],
    ) -> ball_kernel.Prepared | None:
        """The kernel of an equation, for these operands; None where there is none."""
        names = self.note("reads", equation, lambda: eq.reads(equation.body))
        choosing = self.note("chooses", equation, lambda: ball_kernel.chooses(equation.body))
        factors = self.note("factors", equation, lambda: ball_kernel.multiplied(equation.body))
        operands = ball_kernel.known(names, tensors, domain, choosing, factors)
        if operands is None:
            return None
        name = equation.target
        kept = frozenset({name} if name in self._read or name not in self._all else ())
        return self.note(
            "kernel",
            equation,
            lambda: ball_kernel.prepare(equation, infos, domain, operands, kept),
            *_key(domain, operands),
        )


def _work(equation: eq.Equation) -> int:
    """Scalar steps that an equation takes NumPy, which calls for each as often as for numbers."""
    return _LOOSER * (steps_of(equation) + CALL * calls_of(equation.body))


def _key(domain: Balls, operands: Operands) -> tuple[object, ...]:
    """What the numbers of a kernel hang on besides its equations."""
    arithmetic = id(domain.arithmetic)  # a kernel keeps it, so that its id stays its own
    known = operands.exact, operands.positive, operands.small
    return domain.dtype.name, arithmetic, *known, *operands.terms.items()


_Parted = tuple[tuple[contraction.Contraction, ...], eq.Equation]


def _products(equation: eq.Equation, tensors: Mapping[str, eq.TensorInfo]) -> _Parted:
    """The products in an equation; none are looked for where it is too small to have any."""
    if math.prod(equation.info.shape) * inner(equation.body) < _PRODUCT:
        return (), equation
    return contraction.find(equation, tensors)


def evaluate(
    expansion: eq.Expansion,
    inputs: Mapping[str, Ball],
    dtype: str,
    arithmetic: Arithmetic = STANDARD,
    instead: Mapping[str, Ball] = MappingProxyType({}),
) -> dict[str, Ball]:
    """Every tensor of an expansion as a ball, at the precision of `dtype`.

    inputs: balls over arrays as `vector.load` gives them. instead: what results are where the
    definition leaves them open. Raises `InvalidInput` where a precondition on values fails; one
    that rounding leaves undecided is judged by the values alone.
    """
    domain = Balls(dtype, arithmetic)
    tensors = {name: _widened(ball, expansion.tensors[name]) for name, ball in inputs.items()}
    for one in expansion.drawn:
        if one.tensor not in tensors:
            tensors[one.tensor] = Ball(draw(one, expansion.tensors[one.tensor], 0, one.tensor))
    plan = expansion.notes.get(__name__)
    if not isinstance(plan, _Plan):
        plan = expansion.notes[__name__] = _Plan(expansion)
    run = _Run(domain, tensors, dict(expansion.tensors), plan)
    pending = list(expansion.checks)
    with np.errstate(all="ignore"):
        run_ready(run.walk, pending)
        for step in plan.steps:
            if isinstance(step, Recurrence):
                run.recurrence(step)
            else:
                tensors[step.target] = run.equation(step)
        run_ready(run.walk, pending)
        for mask in expansion.unspecified:
            run.unspecify(mask, instead.get(mask.target))
    found = {name: tensors[name] for name in expansion.tensors}
    for ball in found.values():
        ball.value = wide.narrowed(ball.value)
    return found


def _widened(ball: Ball, info: eq.TensorInfo) -> Ball:
    return replace(ball, value=wide.wrapped(ball.value, info)) if info.dtype == "u64" else ball


class _Run:
    """One evaluation; `tensors` also holds the helpers that equations are split into."""

    def __init__(
        self,
        domain: Balls,
        tensors: dict[str, Ball],
        infos: dict[str, eq.TensorInfo],
        plan: _Plan,
    ) -> None:
        self.tensors = tensors
        self.infos = infos
        self.walk = Vector(domain, tensors, infos, plan)
        self._domain = domain
        self._plan = plan

    def equation(self, equation: eq.Equation) -> Ball:
        """The ball of an equation without recurrence."""
        products, rest = self._plan.products(equation, self.infos)
        if not products or not all(map(self._pays, products)):
            return self._nest(equation)
        for product in products:
            spare = further(rest, product, {n: t.terms for n, t in self.tensors.items()}, products)
            ball = product_ball(product, self._domain, self.tensors, self._factor, spare)
            self._keep(product.target, product.info, ball)
        return self._nest(rest)

    def _factor(self, equation: eq.Equation) -> Ball:
        """A factor of a product, which has no product in it that is worth BLAS."""
        return self._nest(equation)

    def _pays(self, product: contraction.Contraction) -> bool:
        return product.work >= _PRODUCT and applies(product)

    def _keep(self, name: str, info: eq.TensorInfo, ball: Ball) -> None:
        self.tensors[name] = ball
        self.infos[name] = info

    def _nest(self, equation: eq.Equation) -> Ball:
        """By a compiled loop nest if there is one, or if it is worth compiling."""
        work = self._plan.note("work", equation, lambda: _work(equation))
        if not self._plan.often(equation, work):
            return self._vector(equation)
        before, rest = self._plan.parts(equation, self.infos)
        for part in before:
            self._keep(part.target, part.info, self.equation(part))
        prepared = self._plan.kernel(rest, self.infos, self._domain, self.tensors)
        if prepared is None or not worth([prepared], work):
            return self._vector(rest)
        balls = prepared.balls()
        prepared.run(prepared.arrays({**self.tensors, **balls}))
        return balls[equation.target]

    def recurrence(self, group: Recurrence) -> None:
        """Fills in the tensors of a group of equations that read one another."""
        if self._plan.often(group, group.length * _STEP):
            before, parts, work = self._plan.note("loops", group, lambda: parted(group, self.infos))
            for equation in before:
                self._keep(equation.target, equation.info, self.equation(equation))
            made = self._plan.loop(group, parts, self.infos, self._domain, self.tensors)
            if made is not None and worth([p.kernel for p in made.parts], _LOOSER * work):
                ball_recurrence.run(made, self._domain, self.tensors)
                return
        self.walk.recurrence(group)

    def unspecify(self, mask: eq.Equation, instead: Ball | None = None) -> None:
        """No verdict where the definition leaves a value open, or that is in doubt.

        instead: what the value is where it is open for certain; another evaluation of the equations
        may be off from it by what both may be off from them.
        """
        ball = self.tensors[mask.target]
        if instead is None and ball.beyond is None and np.isinf(ball.bound).all():
            return  # nothing is known of it already, and masks may take longer than what they mask
        told = self.equation(self._plan.note("mask", mask, lambda: _asked(mask)))
        doubted = np.asarray(told.bound) > 0
        open_ = np.asarray(told.value) | doubted
        if not open_.any():
            return
        value = np.asarray(ball.value)
        finite = np.isfinite(value) if value.dtype.kind == "f" else True  # whole numbers are
        apart = np.where(finite, 2 * np.asarray(ball.bound), 0.0)
        ball.radius = np.where(open_, np.inf, ball.bound)
        ball.ends = None
        if ball.beyond is not None:
            ball.beyond = ball.beyond & ~open_
        if instead is not None:
            given, known = _widened(instead, self.infos[mask.target]), open_ & ~doubted
            ball.value = np.where(known, given.value, ball.value)
            ball.radius = np.where(known, given.bound + apart, ball.radius)
            ball.least = -math.inf

    def _vector(self, equation: eq.Equation) -> Ball:
        ball: Ball = self.walk.equation(equation)
        if ball.beyond is not None and not alone(equation.body):
            ball.beyond = None
        return ball


def _asked(mask: eq.Equation) -> eq.Equation:
    """The equation of a tensor that says where another one is open."""
    info = eq.TensorInfo(mask.info.shape, "bool")
    return replace(mask, target=f"{mask.target}?", info=info)


def oracle_error(ball: Ball, unit: float) -> Any:
    """The radius with the oracle's own rounding, done in float64, added to it.

    unit: the least unit roundoff of the calls that it came through. A radius that is larger than
    any number is infinite.
    """
    if ball.radius is None:
        return None
    with np.errstate(over="ignore"):
        return np.asarray(ball.radius * (1 + 2.0**-53 / unit))
