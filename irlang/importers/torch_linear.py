"""Linear equations: factors, inverses and determinants of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.torch_call import Call, Rule, Uncovered, Value
from irlang.importers.torch_shapes import permuted


def _turned(c: Call, x: Value) -> Value:
    """With the last two axes exchanged."""
    return permuted(c, x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def _matrix(c: Call) -> Value:
    return c.tensor("A" if c.has("A") else "self")


def _lead(c: Call, a: Value, b: Value) -> tuple[Value, Value]:
    """Two stacks of matrices, with the same axes before them."""
    lead = list(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    return c.broadcast(a, [*lead, *a.shape[-2:]]), c.broadcast(b, [*lead, *b.shape[-2:]])


def _cholesky(c: Call) -> Value:
    x, upper = _matrix(c), c.flag("upper")
    found = c("cholesky", _turned(c, x) if upper else x)
    return _turned(c, found) if upper else found


def _triangular(
    c: Call, a: Value, b: Value, upper: bool, turned: bool = False, unit: bool = False
) -> Value:
    """The solution of a y = b, or of a' y = b."""
    a, b = _lead(c, _turned(c, a) if turned else a, b)
    return c("triangular_solve", a, b, lower=upper == turned, unit_diagonal=unit)


def _solve_triangular(c: Call) -> Value:
    a, b = c.tensor("self"), c.tensor("B")
    upper, unit = c.flag("upper"), c.flag("unitriangular")
    if c.flag("left", True):
        return _triangular(c, a, b, upper, unit=unit)
    return _turned(c, _triangular(c, a, _turned(c, b), upper, turned=True, unit=unit))


def _triangular_solve(c: Call) -> list[Value]:
    a, b = c.tensor("A"), c.tensor("self")
    found = _triangular(
        c, a, b, c.flag("upper", True), c.flag("transpose"), c.flag("unitriangular")
    )
    return [found, c.broadcast(a, c.result(1).shape)]


def _by_factor(c: Call, factor: Value, b: Value) -> Value:
    """The solution for the matrix whose Cholesky factor is given."""
    upper = c.flag("upper")
    half = _triangular(c, factor, b, upper, turned=upper)
    return _triangular(c, factor, half, upper, turned=not upper)


def _cholesky_solve(c: Call) -> Value:
    return _by_factor(c, c.tensor("input2"), c.tensor("self"))


def _cholesky_inverse(c: Call) -> Value:
    factor = c.tensor("self")
    one = c.param(np.eye(int(factor.shape[-1]), dtype=DTYPES[factor.dtype].numpy))
    return _by_factor(c, factor, one)


def _log_determinant(c: Call) -> Value:
    return c("log", c("determinant", c.tensor("self")))


def _signed_determinant(c: Call) -> list[Value]:
    found = c("determinant", _matrix(c))
    return [c("sign", found), c("log", c("abs", found))]


def _solve(c: Call) -> Value:
    a, b = c.tensor("A"), c.tensor("B")
    vector = b.rank == 1 or (b.rank == a.rank - 1 and b.shape == a.shape[:-1])
    if vector:
        b = c.reshape(b, [*b.shape, 1])
    turned = not c.flag("left", True)
    if turned and vector:
        raise Uncovered("a vector has no other side")
    inverse = c("inverse", a)
    found = c("matmul", b, inverse) if turned else c("matmul", inverse, b)
    return c.reshape(found, found.shape[:-1]) if vector else found


def _flat(c: Call, x: Value, first: int) -> Value:
    """As a matrix whose rows are the first axes."""
    return c.reshape(x, [math.prod(x.shape[:first]), math.prod(x.shape[first:])])


def _tensor_inverse(c: Call) -> Value:
    x, first = c.tensor("self"), c.whole("ind", 2)
    return c.reshape(c("inverse", _flat(c, x, first)), [*x.shape[first:], *x.shape[:first]])


def _tensor_solve(c: Call) -> Value:
    x, b = c.tensor("self"), c.tensor("other")
    moved: Sequence[int] = [axis % x.rank for axis in c.get("dims") or []]
    if moved:
        x = permuted(c, x, [*[d for d in range(x.rank) if d not in moved], *moved])
    rest = x.shape[b.rank :]
    count = math.prod(b.shape)
    inverse = c("inverse", c.reshape(x, [count, math.prod(rest)]))
    return c.reshape(c("matmul", inverse, c.reshape(b, [count, 1])), rest)


LINEAR: dict[str, Rule] = {
    "cholesky": _cholesky,
    "linalg_cholesky": _cholesky,
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    "linalg_solve_triangular": _solve_triangular,
    "triangular_solve": _triangular_solve,
    "det": lambda c: c("determinant", _matrix(c)),
    "linalg_det": lambda c: c("determinant", _matrix(c)),
    "logdet": _log_determinant,
    "slogdet": _signed_determinant,
    "linalg_slogdet": _signed_determinant,
    "inverse": lambda c: c("inverse", _matrix(c)),
    "linalg_inv": lambda c: c("inverse", _matrix(c)),
    "linalg_solve": _solve,
    "linalg_tensorinv": _tensor_inverse,
    "linalg_tensorsolve": _tensor_solve,
}
