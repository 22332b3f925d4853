"""Reductions as terms: sums of products as einsum, the rest over axes that are there in full."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang import equations as eq
from irlang.kinds import kind as kind_of
from irlang.known import EMPTY
from irlang.lower.terms import Axes, Known, Term, Traced, number, signed
from irlang.lower.value import Unsupported

if TYPE_CHECKING:
    from irlang.lower.expressions import Expressions

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KINDS = {"int": np.int64, "real": np.float64, "bool": np.bool_}
_NUMPY: dict[str, Any] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "all": np.all, "any": np.any,
    "count": np.sum,
}  # fmt: skip


def reduction(walker: Expressions, expr: eq.Reduce) -> Term:
    """The value of a reduction; its indices are in scope only here."""
    outer = list(walker.order)
    mask: Term = number(True)
    names = tuple(name for name, _ in expr.binders)
    for name, bound in expr.binders:
        limit = walker.term(bound)
        if not isinstance(limit, Known):
            raise Unsupported("the range of a reduction depends on data")
        walker.extents[name] = max(int(limit.array.max()), 0)
        walker.order.append(name)
        if limit.axes and bool((limit.array != walker.extents[name]).any()):
            below = walker.applied("<", [walker.term(eq.Index(name)), limit])
            mask = walker.applied("and", [mask, below])
    if any(walker.extents[name] == 0 for name in names):
        result: Term = number(_empty(expr.kind, kind_of(expr, walker.tensors)))
    else:
        if expr.where is not None:
            mask = walker.applied("and", [mask, walker.term(expr.where)])
        result = _reduced(walker, expr, names, mask)
    walker.order = outer
    return result


def _reduced(walker: Expressions, expr: eq.Reduce, names: Axes, mask: Term) -> Term:
    always = isinstance(mask, Known) and bool(mask.array.all())
    if expr.kind == "count":
        return _over(walker, "count", mask, names, "int")
    assert expr.body is not None
    guarded, walker.guarded = walker.guarded, walker.guarded or not always
    with nullcontext() if always else walker.under(mask, True):
        factors = [walker.term(factor) for factor in _factors(expr.body)]
    walker.guarded = guarded
    if expr.kind == "sum" and always and _contracts(factors, names):
        return _contraction(walker, factors, names)
    body = reduce(lambda a, b: walker.applied("*", [a, b]), factors)
    if expr.kind == "the":
        return _the(walker, body, mask, names)
    wanted = "bool" if expr.kind in ("all", "any") else body.kind
    if wanted == "bool" and expr.kind not in ("all", "any"):
        wanted = "int"
    if not always:
        base = {"argmax": "max", "argmin": "min"}.get(expr.kind, expr.kind)
        arms = [_as(walker, body, wanted), number(_empty(base, wanted))]
        body = walker.applied("select", [mask, *arms])
    return _over(walker, expr.kind, body, names, wanted)


def _over(walker: Expressions, kind: str, body: Term, names: Axes, wanted: str) -> Term:
    """The body in full over the indices of the reduction, reduced."""
    axes = walker.union([body, Known(np.zeros(()), names)])
    kept = tuple(axis for axis in axes if axis not in names)
    positions = tuple(i for i, axis in enumerate(axes) if axis in names)
    full = tuple(walker.extents[axis] for axis in axes)
    if isinstance(body, Known):
        walker.limited(axes)
        array = np.broadcast_to(walker.array(body, axes), full)
        if kind in ("argmax", "argmin"):
            return Known(getattr(np, kind)(array, axis=positions[0]), kept)
        return Known(np.asarray(_NUMPY[kind](array.astype(_KINDS[wanted]), axis=positions)), kept)
    if kind in ("max", "min", "argmax", "argmin"):
        signed([body])
    value = walker.over(body, axes, walker.dtype(wanted))
    if value.shape != full:
        value = walker.builder.expand(value, full)
    if kind in ("argmax", "argmin"):
        return Traced(walker.builder.position(kind, value, positions[0]), kept)
    kind = "sum" if kind == "count" else kind
    return Traced(walker.builder.reduce(kind, value, positions), kept)


def _as(walker: Expressions, term: Term, kind: str) -> Term:
    if kind == "bool" and term.kind != "bool":
        return walker.applied("!=", [term, number(0)])
    return walker.as_kind(term, kind)


def _factors(expr: eq.Expr) -> list[eq.Expr]:
    if isinstance(expr, eq.Apply) and expr.function == "*":
        return [*_factors(expr.args[0]), *_factors(expr.args[1])]
    return [expr]


def _contracts(terms: list[Term], names: Axes) -> bool:
    """Whether a sum over `names` of the product of terms is worth an einsum."""
    traced = [term for term in terms if isinstance(term, Traced)]
    covered = {axis for term in traced for axis in term.axes}
    if len(traced) < 2 or not covered >= set(names):
        return False
    if all(set(term.axes) == set(names) for term in terms):
        return False  # of all elements: the sum of a product says it, and frameworks do it right
    return all(term.kind == "real" and term.axes for term in terms)


def _contraction(walker: Expressions, terms: list[Term], names: Axes) -> Term:
    axes = walker.union(terms)
    letters = {axis: _LETTERS[i] for i, axis in enumerate(axes)}
    kept = tuple(axis for axis in axes if axis not in names)
    spec = ",".join("".join(letters[axis] for axis in term.axes) for term in terms)
    spec += "->" + "".join(letters[axis] for axis in kept)
    values = [walker.over(term, term.axes, walker.real) for term in terms]
    return Traced(walker.builder.einsum(spec, values), kept)


def _the(walker: Expressions, body: Term, mask: Term, names: Axes) -> Term:
    """The body at the first place where the mask holds: both with all of `names` as one axis."""
    axes = walker.union([body, mask, Known(np.zeros(()), names)])
    kept = tuple(axis for axis in axes if axis not in names)
    place = "the " + " ".join(names)
    walker.extents[place] = math.prod(walker.extents[name] for name in names)
    walker.order.append(place)
    lined = (*kept, place)
    found = _first(walker, _lined(walker, mask, axes, names, lined), len(kept))
    count = np.arange(walker.extents[place])
    itself = isinstance(body, Known) and body.axes == names and np.array_equal(body.array, count)
    if itself and len(names) == 1:
        return found
    here = walker.applied("==", [Known(count, (place,)), found])
    line = _lined(walker, body, axes, names, lined)
    wanted = "int" if line.kind == "bool" else line.kind
    chosen = walker.applied("select", [here, walker.as_kind(line, wanted), number(0)])
    if isinstance(chosen, Known):
        result: Term = Known(chosen.array.sum(axis=-1), kept)
    else:
        last = (len(chosen.axes) - 1,)
        result = Traced(walker.builder.reduce("sum", chosen.value, last), kept)
    return _as(walker, result, line.kind)


def _lined(walker: Expressions, term: Term, axes: Axes, names: Axes, lined: Axes) -> Term:
    """A term in full over `axes`, those of `names` last and as one."""
    kept = tuple(axis for axis in axes if axis not in names)
    full = tuple(walker.extents[axis] for axis in axes)
    order = tuple(axes.index(axis) for axis in (*kept, *names))
    flat = tuple(walker.extents[axis] for axis in lined)
    if isinstance(term, Known):
        array = np.broadcast_to(walker.array(term, walker.limited(axes)), full)
        return Known(array.transpose(order).reshape(flat), lined)
    dtype = walker.dtype(term.kind)
    value = walker.builder.expand(walker.over(term, axes, dtype), full)
    if order != tuple(range(len(order))):
        value = walker.builder.transpose(value, order)
    return Traced(walker.reshaped(value, flat), lined)


def _first(walker: Expressions, mask: Term, axis: int) -> Term:
    """Where a mask first holds along its last axis."""
    if isinstance(mask, Known):
        return Known(mask.array.argmax(axis=-1), mask.axes[:-1])
    value = walker.builder.cast(mask.value, "i32")
    return Traced(walker.builder.position("argmax", value, axis), mask.axes[:-1])


def _empty(kind: str, of: str) -> Any:
    """The value of a reduction over nothing; the extremes of integers are those of 64 bits."""
    if kind in ("max", "min") and of == "int":
        return -(2**63) if kind == "max" else 2**63 - 1
    return EMPTY[kind]
