"""A bound on rounding errors that is derived, not chosen: for equations of sums and products.

With u the unit roundoff, a computed value differs from the true one by at most
((1 + u)^n - 1) * B, where B is the value that the same equation has when every term is replaced by
its magnitude (differences by sums, maxima by sums), and n is the length of the longest path of
roundings: a product adds those of its factors, a sum over k terms adds k. A function f with
|f'| <= 1 and |f| <= 1 gives B + 1 and adds twice its allowance in ulps (and one).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np

from irlang import equations as eq
from irlang.interp import exact
from irlang.interp.schedule import Recurrence, schedule
from irlang.kinds import kind
from irlang.scalar import SCALARS

UNIT = mpmath.mpf(2) ** -53
BOUNDED = {"tanh", "sigmoid", "sin", "cos"}
_SUMS = {"+", "-", "max", "min"}


def magnitude(expr: eq.Expr, infos: dict[str, eq.TensorInfo]) -> eq.Expr:
    """The expression with every term replaced by its magnitude."""
    if kind(expr, infos) != "real":
        return eq.Apply("abs", (eq.Apply("real", (expr,)),))
    match expr:
        case eq.Const() | eq.Size():
            return eq.Apply("abs", (expr,))
        case eq.Read():
            default = None if expr.default is None else magnitude(expr.default, infos)
            return eq.Apply("abs", (eq.Read(expr.tensor, expr.index, default),))
        case eq.Reduce():
            body = None if expr.body is None else magnitude(expr.body, infos)
            which = "sum" if expr.kind in ("max", "min", "the") else expr.kind
            return eq.Reduce(which, expr.binders, expr.where, body)
        case eq.Apply(function="select"):
            condition, *arms = expr.args
            return eq.Apply("select", (condition, *(magnitude(arm, infos) for arm in arms)))
        case eq.Apply():
            args = [magnitude(arg, infos) for arg in expr.args]
            if expr.function in _SUMS:
                return eq.Apply("+", (args[0], args[1]))
            if expr.function == "*":
                return eq.Apply("*", (args[0], args[1]))
            if expr.function in ("neg", "abs", "real"):
                return args[0]
            if expr.function == "sq":
                return eq.Apply("*", (args[0], args[0]))
            if expr.function in BOUNDED:
                return eq.Apply("+", (args[0], eq.Const(1)))
    raise AssertionError(f"no bound for {expr}")


def roundings(expr: eq.Expr, known: dict[str, int], infos: dict[str, eq.TensorInfo]) -> int:
    """The longest path of roundings in an expression, given those of the tensors."""
    if kind(expr, infos) != "real":
        return 1
    parts = [roundings(part, known, infos) for part in eq.children(expr)]
    match expr:
        case eq.Read():
            return max([known.get(expr.tensor, 0), *parts])
        case eq.Reduce():
            length = math.prod(_extent(bound) for _, bound in expr.binders)
            if expr.kind == "prod":
                return length * (1 + max(parts))
            return length + max(parts)
        case eq.Apply(function="*"):
            return 1 + sum(parts)
        case eq.Apply(function="sq"):
            return 1 + 2 * sum(parts)
        case eq.Apply():
            allowance = 2 * math.ceil(SCALARS[expr.function].ulps) + 1
            return allowance + max(parts)
    return 1


def _extent(bound: eq.Expr) -> int:
    return int(bound.value) if isinstance(bound, (eq.Const, eq.Size)) else 16


def radii(expansion: eq.Expansion, inputs: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """For every real target, how far a float64 evaluation may be from the exact one."""
    infos = expansion.tensors
    known: dict[str, int] = {}
    majorant = []
    for step in schedule(expansion.equations):
        group = step.equations if isinstance(step, Recurrence) else (step,)
        for _ in range(step.length if isinstance(step, Recurrence) else 1):
            for equation in group:
                known[equation.target] = roundings(equation.body, known, infos)
        for equation in group:
            body = equation.body
            if equation.info.kind == "real":
                body = magnitude(body, infos)
            majorant.append(replace(equation, body=body))
    bounds = exact.evaluate(replace(expansion, equations=tuple(majorant), checks=()), inputs)
    found = {}
    with mpmath.workdps(50):
        for name in known:
            if infos[name].kind == "real":
                relative = (1 + UNIT) ** known[name] - 1
                flat = [float(relative * value) for value in bounds[name].values]
                found[name] = np.array(flat).reshape(bounds[name].info.shape)
    return found


def assert_close(got: Any, expected: exact.Exact, radius: Any) -> None:
    """Within the radius; equal where it is an integer, a truth value, infinite or NaN."""
    want = expected.numpy()
    assert got.shape == want.shape
    if expected.info.kind != "real":
        np.testing.assert_array_equal(got, want)
        return
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    gap = np.abs(got[finite] - want[finite])
    # the rounding of the exact value to float64 comes on top
    allowed = np.broadcast_to(radius, want.shape)[finite] + np.spacing(np.abs(want[finite]))
    assert (gap <= allowed).all(), f"off by {gap.max()}, allowed {allowed.max()}"
