"""Recurrences over balls, step by step: products by BLAS, all else by one kernel a step.

As in `reference`, a part begins at each equation that needs a product of matrices in every step.
What bounds the product's error is a product too (`ball_products`): of a tensor that is made of the
recurrence's own values and radii, and grows with them step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp import ball_kernel, reference
from irlang.interp.ball import Ball
from irlang.interp.ball_kernel_source import Operands
from irlang.interp.ball_products import applies, bounds_of, count, further
from irlang.interp.balls import Balls
from irlang.interp.contraction import Contraction
from irlang.interp.running import accumulates
from irlang.interp.schedule import Recurrence
from irlang.interp.vector import evaluate_equation

Array = np.ndarray[Any, Any]
Step = Callable[[int], None]
Parts = list[tuple[Array, float]]


@dataclass(frozen=True, slots=True)
class Part:
    """Equations that one kernel takes through a step, and the products before them.

    products: each with the number of terms that are added to it.
    """

    products: tuple[tuple[Contraction, int], ...]
    kernel: ball_kernel.Prepared
    length: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a step of a recurrence."""

    parts: tuple[Part, ...]
    group: Recurrence


def plan(
    group: Recurrence,
    parts: Sequence[reference.Part],
    infos: Mapping[str, eq.TensorInfo],
    domain: Balls,
    operands: Operands,
) -> Plan | None:
    """How a recurrence is run; None where NumPy has to do it, as for running sums.

    parts: as `reference.parted` gives them. operands: what is known of the tensors that are read.
    """
    if accumulates(group.equations):
        return None
    members = frozenset(equation.target for equation in group.equations)
    made = {e.target: e.info for part in parts for e in part.group.equations}
    found = []
    for part in parts:
        if not all(_fits(product, members, infos) for product in part.products):
            return None
        counts = {name: terms for name, (terms, _) in operands.terms.items()}
        spare = {
            p.target: sum(further(e, p, counts, part.products) for e in part.group.equations)
            for p in part.products
        }
        made_of = {p.target: (count(p) + 1, spare[p.target]) for p in part.products}
        own = replace(
            operands,
            terms={**operands.terms, **made_of},
            shares={p.target: domain.growth(count(p) + spare[p.target]) for p in part.products},
        )
        known = {**infos, **made, **{product.target: product.info for product in part.products}}
        prepared = ball_kernel.prepare(part.group, known, domain, own, frozenset())
        if prepared is None:
            return None
        products = tuple((p, spare[p.target]) for p in part.products)
        found.append(Part(products, prepared, part.length))
    return Plan(tuple(found), group)


def _fits(
    product: Contraction, members: frozenset[str], infos: Mapping[str, eq.TensorInfo]
) -> bool:
    """Whether it is a product of the recurrence's own values with what is known before."""
    reads = [f.expr for f in product.factors if isinstance(f.expr, eq.Read)]
    if not applies(product) or len(reads) != 2:
        return False
    own = [read.tensor in members for read in reads]
    return sorted(own) == [False, True] and all(infos[r.tensor].kind == "real" for r in reads)


def run(plan: Plan, domain: Balls, tensors: dict[str, Ball]) -> None:
    """Fills in the tensors of a recurrence; what is evaluated before the loop is there."""
    for part in plan.parts:
        tensors.update(part.kernel.balls())
    group = plan.group
    axes = {e.target: axis for e, axis in zip(group.equations, group.axes, strict=True)}
    loops = []
    for part in plan.parts:
        products = [
            _Product(product, spare, domain, tensors, axes, group.length)
            for product, spare in part.products
        ]
        loops.append((part.length, products, part.kernel.bind(part.kernel.arrays(tensors))))
    grown = [product for _, products, _ in loops for product in products]
    steps = range(group.length)
    for step in reversed(steps) if group.descending else steps:
        for length, products, advance in loops:
            if step < length:
                for product in products:
                    product.run(step)
                advance(step, step + 1)
        for product in grown:
            product.grow(step)


class _Product:
    """A product of every step, value and radius; its ball is among the tensors from here on."""

    def __init__(
        self,
        product: Contraction,
        spare: int,
        domain: Balls,
        tensors: dict[str, Ball],
        axes: Mapping[str, int],
        steps: int,
    ) -> None:
        first, second = (f.expr for f in product.factors)
        assert isinstance(first, eq.Read)
        assert isinstance(second, eq.Read)
        own, other = (first, second) if first.tensor in axes else (second, first)
        fixed = tensors[other.tensor]
        terms = count(product)
        self._ball = Ball(np.empty(product.shape), np.empty(product.shape), terms + 1)
        tensors[product.target] = self._ball
        values = {name: np.asarray(tensors[name].value) for name in (own.tensor, other.tensor)}
        self._growth = domain.growth(terms + spare)
        self._kind = bounds_of(domain)
        self._factor = self._kind.enlargement(terms)
        self._floor = terms * (self._kind.least + domain.lost)
        self._own, self._axis = tensors[own.tensor], axes[own.tensor]
        self._grown = np.zeros(np.shape(self._own.value), self._kind.dtype)
        wide = [(fixed.value, 1.0)]
        if fixed.radius is not None:
            wide.append((np.broadcast_to(fixed.radius, np.shape(fixed.value)), 1.0))
        self._value = product.stepper(values, _passing, self._ball.value, steps)
        self._bounds = [self._bound(product, own.tensor, self._grown, other.tensor, wide, steps)]
        self._sizes = None
        if fixed.radius is not None:
            self._sizes = np.zeros_like(self._grown)
            self._bounds.append(
                self._bound(product, own.tensor, self._sizes, other.tensor, wide[1:], steps)
            )

    def _bound(
        self, product: Contraction, own: str, grown: Array, other: str, fixed: Parts, steps: int
    ) -> tuple[Step, Array]:
        out = np.empty(product.shape, self._kind.dtype)
        arrays = {own: grown, other: self._kind.upward(fixed)}
        return product.stepper(arrays, _passing, out, steps), out

    def run(self, step: int) -> None:
        """The product of one step, of what the steps before it gave."""
        self._value(step)
        radius = self._ball.radius
        for number, (bound, out) in enumerate(self._bounds):
            bound(step)
            if number:
                radius += out.astype(np.float64) * self._factor
            else:
                np.multiply(out, self._factor, out=radius)
        radius += self._floor

    def grow(self, step: int) -> None:
        """Takes in what a step gave."""
        extent = self._grown.shape[self._axis]
        if step >= extent:
            return
        at = (slice(None),) * self._axis + (step,)
        value, radius = self._own.value[at], self._own.radius[at]
        if self._sizes is not None:
            self._sizes[at] = self._kind.upward([(value, 1.0)])
        parts = [(value, self._growth), (radius, 1 + self._growth)]
        self._grown[at] = self._kind.upward(parts)


def _passing(equation: eq.Equation, tensors: Mapping[str, Array]) -> Array:
    """A factor that is no view."""
    infos = {name: eq.TensorInfo(array.shape, "f64") for name, array in tensors.items()}
    return evaluate_equation(equation, tensors, infos)
