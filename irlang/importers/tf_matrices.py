"""TensorFlow's operators on the diagonals of matrices, systems of equations, and in circles."""

from __future__ import annotations

import numpy as np

from irlang.equations import TensorInfo
from irlang.importers.tf_node import Node, Result, Row
from irlang.importers.value import Unsupported, Value, check_shape


def _middle(n: Node, place: int) -> None:
    """Of all diagonals only the middle one is read."""
    if any(n.known_ints(place)):
        raise Unsupported("a diagonal that is not the middle one")
    n.ignore("align")  # of diagonals of several lengths


def _of_diagonal(n: Node) -> Value:
    """A square matrix, all else being 0."""
    _middle(n, 1)
    if n.known_number(4) or any(n.known_number(place) != -1 for place in (2, 3)):
        raise Unsupported("a matrix that is not square, or not 0 beside its diagonal")
    return n.call("diag_embed", n.input(0))


def _diagonal(n: Node) -> Value:
    _middle(n, 1)
    n.optional(2)  # what stands in for elements that a diagonal lacks: the middle one lacks none
    return n.call("diagonal", n.input(0), axes=[-2, -1])


def _with_diagonal(n: Node) -> Value:
    """A matrix with another diagonal; which elements these are is a constant."""
    if len(n.given) > 2:
        _middle(n, 2)
    x, diagonal = n.input(0), n.input(1)
    rows, columns = x.shape[-2:]
    check_shape((rows, columns), "a matrix")
    if rows != columns:
        raise Unsupported("a matrix that is not square")
    at = n.const(np.eye(rows, dtype=np.bool_), f"{n.outputs[0]}_at")
    return n.call("where", at, n.step("diagonal", "diag_embed", diagonal), x)


def _vector(op: str, rank: int, **attrs: object) -> Row:
    def row(n: Node) -> Value:
        if n.input(0).rank != rank:
            raise Unsupported(f"of more than {rank} axes")
        return n.call(op, n.input(0), **attrs)

    return row


def _roll(n: Node) -> Value:
    """Shifts along one axis add up."""
    total: dict[int, int] = {}
    for shift, axis in zip(n.known_ints(1), n.known_ints(2), strict=True):
        axis %= n.input(0).rank
        total[axis] = total.get(axis, 0) + shift
    return n.call("roll", n.input(0), shift=list(total.values()), axes=list(total))


def _solved(n: Node) -> Value:
    """The y for which a matrix times y is the second input."""
    a = n.input(0)
    if n.flag("adjoint"):
        a = _flipped(n, a)
    return n.call("solve", a, n.input(1))


def _solved_triangle(n: Node) -> Value:
    a, lower = n.input(0), n.flag("lower", True)
    if n.flag("adjoint"):
        a, lower = _flipped(n, a), not lower
    return n.call("triangular_solve", a, n.input(1), lower=lower)


def _of_three_diagonals(n: Node) -> Value:
    n.ignore("partial_pivoting", "perturb_singular")  # of how it is computed
    return n.call("tridiagonal_solve", n.input(0), n.input(1))


def _of_bands(n: Node) -> Value:
    if n.flag("adjoint"):
        raise Unsupported("the adjoint of a matrix of bands")
    return n.call("banded_triangular_solve", n.input(0), n.input(1), lower=n.flag("lower", True))


def _flipped(n: Node, a: Value) -> Value:
    perm = [*range(a.rank - 2), a.rank - 1, a.rank - 2]
    return n.step("flipped", "transpose", a, perm=perm)


def _dense(n: Node, ids: Value, values: Value, sizes: list[int]) -> Value:
    """A matrix that is 0 but where it is said; what is said twice is added up."""
    check_shape(tuple(sizes), "the matrix")
    zeros = n.const(0, f"{n.outputs[0]}_zeros", TensorInfo(tuple(sizes), values.dtype))
    return n.step("dense", "scatter_nd", zeros, ids, values, reduction="add")


def _sparse_product(n: Node) -> Value:
    """Of a matrix that is given by its elements."""
    a = _dense(n, n.input(0), n.input(1), n.known_ints(2))
    flags = (("transpose_a", n.flag("adjoint_a")), ("transpose_b", n.flag("adjoint_b")))
    return n.call("matmul", a, n.input(3), **{name: True for name, is_ in flags if is_})


def _spread(n: Node) -> Value:
    """Values, or one for all, at positions in a tensor of another value."""
    n.ignore("validate_indices")
    ids, sizes, values = n.input(0), n.known_ints(1), n.input(2)
    check_shape(tuple(sizes), "the result")
    number = n.known_number(3)
    rest = n.const(number, f"{n.outputs[0]}_rest", TensorInfo(tuple(sizes), values.dtype))
    if ids.rank < 2:  # positions along one axis
        ids = n.step("at", "reshape", ids, shape=[-1, 1])
    if values.rank == 0:
        values = n.step("values", "broadcast_to", values, shape=[ids.shape[0]])
    return n.call("scatter_nd", rest, ids, values)


def _sign_and_log(n: Node) -> Result:
    return n.calls(2, "log_determinant", n.input(0))


def _running(n: Node) -> Value:
    if n.flag("exclusive"):
        raise Unsupported("sums that leave out their own element")
    return n.call("logcumsumexp", n.input(0), axis=n.known_number(1), reverse=n.flag("reverse"))


def _polygamma(n: Node) -> Value:
    """The order is a tensor in TensorFlow; where all of it is one number it is that."""
    order = n.input(0).known()
    if order is None or not order.size or np.any(order != order.reshape(-1)[0]):
        raise Unsupported("an order that is not the same, known number everywhere")
    number = float(order.reshape(-1)[0])
    x = n.input(1)
    if number != int(number) or order.ndim > x.rank:
        raise Unsupported(f"the order {number:g}")
    return n.call("polygamma", x, n=int(number))


ROWS: dict[str, Row] = {
    "Diag": _vector("diag_embed", 1),
    "DiagPart": _vector("diagonal", 2, axes=[-2, -1]),
    "MatrixDiagV2": _of_diagonal,
    "MatrixDiagV3": _of_diagonal,
    "MatrixDiagPartV2": _diagonal,
    "MatrixDiagPartV3": _diagonal,
    "MatrixSetDiag": _with_diagonal,
    "MatrixSetDiagV2": _with_diagonal,
    "MatrixSetDiagV3": _with_diagonal,
    "Roll": _roll,
    "MatrixSolve": _solved,
    "MatrixTriangularSolve": _solved_triangle,
    "TridiagonalSolve": _of_three_diagonals,
    "BandedTriangularSolve": _of_bands,
    "SparseTensorDenseMatMul": _sparse_product,
    "SparseToDense": _spread,
    "LogMatrixDeterminant": _sign_and_log,
    "CumulativeLogsumexp": _running,
    "Polygamma": _polygamma,
}
