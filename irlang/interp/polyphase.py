"""Sums of which most terms are zero, parted by the remainders of their indices.

A strided convolution flows back to one input position in `stride`, and a transposed convolution
reads one in `stride`: `(o - k) % 2 == 0`. For even and for odd `o` apart, `k` goes in steps of two
and no such condition is left. Signal processing calls these the phases of a filter (Vaidyanathan,
Multirate Systems and Filter Banks, 1993, section 4.3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.equation_rules import (
    apply,
    conjuncts,
    factors_of,
    linear,
    simplify,
    terms_of,
    whole,
)

Array = np.ndarray[Any, np.dtype[Any]]
Place = tuple[slice, ...]
_MOST = 1024  # choices of remainders of all indices together
_ZERO = eq.Const(0)


@dataclass(frozen=True, slots=True)
class Phases:
    """An equation as one for each part of its target.

    parts: where a part lies, and the equation that defines it; there is 0 where none lies.
    finite: the tensors of which no element may be infinite or NaN, since zeros times these are left
    out.
    """

    parts: tuple[tuple[Place, eq.Equation], ...]
    finite: frozenset[str]

    def applies(self, tensors: Mapping[str, Array]) -> bool:
        """Whether what is left out is zero for these tensors."""
        return all(bool(np.isfinite(tensors[name]).all()) for name in self.finite)


@dataclass(frozen=True, slots=True)
class Spread:
    """A tensor with `step - 1` zeros between the elements of `source` along an axis."""

    source: str
    axis: int
    step: int


def spreads(
    equations: Sequence[eq.Equation], tensors: Mapping[str, eq.TensorInfo]
) -> dict[str, Spread]:
    """The equations of that form, by their targets."""
    found = {}
    for equation in equations:
        one = _spread(equation, tensors)
        if one is not None:
            found[equation.target] = one
    return found


def _spread(equation: eq.Equation, tensors: Mapping[str, eq.TensorInfo]) -> Spread | None:
    body = equation.body
    if not (isinstance(body, eq.Apply) and body.function == "select" and body.args[2] == _ZERO):
        return None
    condition, read, _ = body.args
    residue = _residue(condition)
    if residue is None or not isinstance(read, eq.Read) or read.default not in (None, _ZERO):
        return None
    names = [eq.Index(name) for name, _ in equation.binders]
    for axis, name in enumerate(names):
        step = residue[1]
        quotient = apply("//", name, eq.Const(step))
        index = (*names[:axis], quotient, *names[axis + 1 :])
        inside = tensors[read.tensor].shape
        if residue[0] == Affine({name.name: 1}) and read.index == index:
            reach = (inside[axis] - 1) * step + 1, inside[axis] * step
            fits = reach[0] <= equation.info.shape[axis] <= reach[1]
            return Spread(read.tensor, axis, step) if fits else None
    return None


def _residue(condition: eq.Expr) -> tuple[Affine, int] | None:
    """`e % m == c` as the form that `m` has to divide, and `m`."""
    if not (isinstance(condition, eq.Apply) and condition.function == "=="):
        return None
    left, right = condition.args
    number = whole(right)
    if not (isinstance(left, eq.Apply) and left.function == "%") or number is None:
        return None
    form, size = affine(left.args[0]), whole(left.args[1])
    if form is None or size is None or not 0 <= number < size or size == 1:
        return None
    return form.plus(Affine({}, -number)), size


@dataclass(frozen=True, slots=True)
class _Sum:
    """The sum in an equation, without its conditions on remainders, and what is added to it."""

    binders: tuple[tuple[str, int], ...]
    where: tuple[eq.Expr, ...]
    factors: tuple[eq.Expr, ...]
    others: tuple[eq.Expr, ...]
    residues: tuple[tuple[Affine, int], ...]
    finite: frozenset[str]


def phases(
    equation: eq.Equation,
    tensors: Mapping[str, eq.TensorInfo],
    spread: Mapping[str, Spread],
) -> Phases | None:
    """The phases of an equation; None where it has no sum of products under such a condition."""
    if equation.info.kind != "real":
        return None
    found = _sum(equation, spread)
    if found is None:
        return None
    free = dict(zip((name for name, _ in equation.binders), equation.info.shape, strict=True))
    extents = {**free, **dict(found.binders)}
    split = _split(found.residues, extents)
    if not split or not split.keys() & free.keys():
        return None
    outer, inner = ([n for n in split if (n in free) == own] for own in (True, False))
    parts = []
    for number, starts in enumerate(_remainders(outer, split)):
        sizes = {n: _count(extent, starts.get(n, 0), split.get(n, 1)) for n, extent in free.items()}
        terms = [
            term
            for rest in _remainders(inner, split)
            if (term := _term(found, {**starts, **rest}, split, tensors, sizes)) is not None
        ]
        terms = [_moved(other, starts, split, tensors, sizes) for other in found.others] + terms
        if not terms or 0 in sizes.values():
            continue
        body = terms[0]
        for term in terms[1:]:
            body = apply("+", body, term)
        place = tuple(slice(starts.get(n, 0), None, split.get(n, 1)) for n in free)
        info = eq.TensorInfo(tuple(sizes.values()), equation.info.dtype)
        binders = tuple((n, eq.Const(size)) for n, size in sizes.items())
        parts.append((place, eq.Equation(f"{equation.target}/{number}", binders, body, info)))
    return Phases(tuple(parts), found.finite)


def _sum(equation: eq.Equation, spread: Mapping[str, Spread]) -> _Sum | None:
    """The sum of an equation, if it has one, with conditions on remainders."""
    terms = terms_of(equation.body)
    sums = [term for term in terms if isinstance(term, eq.Reduce)]
    if len(sums) != 1 or sums[0].kind != "sum" or sums[0].body is None:
        return None
    (own,) = sums
    assert own.body is not None
    binders = []
    for name, bound in own.binders:
        size = whole(bound)
        if size is None:
            return None
        binders.append((name, size))
    residues, where = _parted([] if own.where is None else conjuncts(own.where))
    factors, fixed = [], list[eq.Expr]()
    guarded = 0
    for factor in factors_of(own.body):
        conditions, inner = _guarded(factor, spread)
        some, rest = _parted(conditions)
        residues += some
        guarded += bool(some)
        for condition in reversed(rest):
            inner = apply("select", condition, inner, _ZERO)
        factors.append(inner)
        if not some:
            fixed.append(inner)
    # zeros of one factor are left out: of two such factors, either would have to be finite
    if not residues or guarded > 1 or (guarded and not all(map(_is_number, fixed))):
        return None
    finite = frozenset(name for one in fixed for name in eq.reads(one)) if guarded else frozenset()
    others = tuple(term for term in terms if term is not own)
    return _Sum(tuple(binders), tuple(where), tuple(factors), others, tuple(residues), finite)


def _parted(conditions: Sequence[eq.Expr]) -> tuple[list[tuple[Affine, int]], list[eq.Expr]]:
    """The conditions on remainders, and the others."""
    pairs = [(condition, _residue(condition)) for condition in conditions]
    return [r for _, r in pairs if r is not None], [c for c, r in pairs if r is None]


def _guarded(factor: eq.Expr, spread: Mapping[str, Spread]) -> tuple[list[eq.Expr], eq.Expr]:
    """The conditions under which a factor is not zero, and what it is then."""
    conditions: list[eq.Expr] = []
    while True:
        if isinstance(factor, eq.Apply) and factor.function == "select":
            if factor.args[2] != _ZERO:
                break
            conditions += conjuncts(factor.args[0])
            factor = factor.args[1]
        elif isinstance(factor, eq.Read) and factor.tensor in spread:
            if factor.default not in (None, _ZERO):
                break
            one = spread[factor.tensor]
            at, step = factor.index[one.axis], eq.Const(one.step)
            conditions.append(apply("==", apply("%", at, step), _ZERO))
            index = list(factor.index)
            index[one.axis] = apply("//", at, step)
            factor = eq.Read(one.source, tuple(index), factor.default)
        else:
            break
    return conditions, factor


def _is_number(expr: eq.Expr) -> bool:
    """Whether an expression reads a tensor, or outside it a finite number."""
    if not isinstance(expr, eq.Read):
        return False
    if expr.default is None:
        return True
    return isinstance(expr.default, (eq.Const, eq.Size)) and math.isfinite(expr.default.value)


def _split(
    residues: Sequence[tuple[Affine, int]], extents: Mapping[str, int]
) -> dict[str, int] | None:
    """By what every index is divided; None where that is not one number, or there are too many."""
    split: dict[str, int] = {}
    for form, size in residues:
        for name, coefficient in form.coefficients.items():
            if name not in extents:
                return None
            if coefficient % size and split.setdefault(name, size) != size:
                return None
    # a remainder by one number says nothing of that by another
    for form, size in residues:
        if any(split.get(n, size) != size for n in form.coefficients):
            return None
    return split if math.prod(split.values()) <= _MOST else None


def _remainders(names: Sequence[str], split: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for numbers in itertools.product(*(range(split[name]) for name in names)):
        yield dict(zip(names, numbers, strict=True))


def _count(extent: int, start: int, step: int) -> int:
    """How many numbers below an extent have a remainder."""
    return max(0, -((start - extent) // step))


def _term(
    found: _Sum,
    starts: Mapping[str, int],
    split: Mapping[str, int],
    tensors: Mapping[str, eq.TensorInfo],
    free: Mapping[str, int],
) -> eq.Expr | None:
    """The terms of a sum with some remainders; None where there are none."""
    for form, size in found.residues:
        at = form.constant + sum(c * starts.get(n, 0) for n, c in form.coefficients.items())
        if at % size:
            return None
    sizes = {n: _count(size, starts.get(n, 0), split.get(n, 1)) for n, size in found.binders}
    if 0 in sizes.values():
        return None
    body = found.factors[0]
    for factor in found.factors[1:]:
        body = apply("*", body, factor)
    where = None
    for condition in found.where:
        where = condition if where is None else apply("and", where, condition)
    # binders are unique in an equation, and a sum may have several such terms
    own = {n: f"{n}%{'.'.join(str(starts.get(b, 0)) for b in sizes)}" for n in sizes}
    bounds = tuple((own[n], eq.Const(size)) for n, size in sizes.items())
    return _moved(eq.Reduce("sum", bounds, where, body), starts, split, tensors, free, own)


def _moved(
    expr: eq.Expr,
    starts: Mapping[str, int],
    split: Mapping[str, int],
    tensors: Mapping[str, eq.TensorInfo],
    free: Mapping[str, int],
    names: Mapping[str, str] | None = None,
) -> eq.Expr:
    """An expression at remainders: each index that is split is `m * i + r`, others are renamed."""
    names = names or {}
    values: dict[str, eq.Expr] = {
        n: linear(Affine({names.get(n, n): split.get(n, 1)}, starts.get(n, 0)))
        for n in (*split, *names)
    }
    bounds = {n: eq.Const(size) for n, size in free.items()}
    return simplify(eq.substitute(expr, values), bounds, tensors, deep=True)
