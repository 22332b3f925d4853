"""Affine forms of index expressions: `o*stride + k - lo` as coefficients of indices and a constant.

Numbers known at the call take part with their values. Shared by the scheduler, which asks how far
apart two steps are, and by whoever must know where an index may point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irlang import equations as eq


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum of coefficient * index`; no coefficient is zero."""

    coefficients: Mapping[str, int]
    constant: int = 0

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """`self + times * other`."""
        merged = dict(self.coefficients)
        for name, coefficient in other.coefficients.items():
            merged[name] = merged.get(name, 0) + times * coefficient
        return Affine(
            {name: value for name, value in merged.items() if value},
            self.constant + times * other.constant,
        )

    @property
    def known(self) -> bool:
        """Whether no index is left."""
        return not self.coefficients


def affine(expr: eq.Expr) -> Affine | None:
    """The affine form of an expression, None where it has none over the integers."""
    match expr:
        case eq.Index():
            return Affine({expr.name: 1})
        case eq.Const() | eq.Size():
            whole = isinstance(expr.value, int) and not isinstance(expr.value, bool)
            return Affine({}, int(expr.value)) if whole else None
        case eq.Apply(function="neg"):
            inner = affine(expr.args[0])
            return None if inner is None else Affine({}).plus(inner, -1)
        case eq.Apply(function="+" | "-" | "*"):
            left, right = affine(expr.args[0]), affine(expr.args[1])
            if left is None or right is None:
                return None
            if expr.function != "*":
                return left.plus(right, 1 if expr.function == "+" else -1)
            if not left.known:
                left, right = right, left
            return Affine({}).plus(right, left.constant) if left.known else None
        case _:
            return None


def extreme(form: Affine, bounds: Mapping[str, eq.Expr], *, least: bool) -> Affine | None:
    """The least or largest value of `form` as each index of `bounds` goes from 0 to bound - 1.

    Other indices stay. None where a bound is not affine. What is found bounds the form; it is
    attained where bounds do not depend on one another.
    """
    for _ in range(len(bounds) + 1):
        name = next((n for n in form.coefficients if n in bounds), None)
        if name is None:
            return form
        coefficient = form.coefficients[name]
        rest = Affine({n: c for n, c in form.coefficients.items() if n != name}, form.constant)
        if (coefficient > 0) == least:
            form = rest  # the index is 0
            continue
        bound = affine(bounds[name])
        if bound is None:
            return None
        form = rest.plus(bound, coefficient).plus(Affine({}, 1), -coefficient)
    return None


def bounds_of(expr: eq.Expr) -> dict[str, eq.Expr]:
    """The bounds of all indices that are bound inside an expression."""
    return {
        name: bound
        for part in eq.walk(expr)
        if isinstance(part, eq.Reduce)
        for name, bound in part.binders
    }
