"""TensorFlow's operators that read, or write, at positions; matrices; images of another size."""

from __future__ import annotations

from irlang.equations import TensorInfo
from irlang.importers.tf_node import Node, Row, calls
from irlang.importers.value import Unsupported, Value, check_shape


def _gather(n: Node) -> Value:
    """Along an axis, after axes that both tensors share."""
    n.ignore("validate_indices")
    x, ids = n.input(0), n.input(1)
    axis = 0 if n.optional(2) is None else n.known_number(2)
    shared = n.int("batch_dims", 0)
    if shared < 0:
        shared += ids.rank
    if not shared:
        return n.call("gather", x, ids, axis=axis)
    if axis not in (shared, shared - x.rank):
        raise Unsupported(f"axis {axis} after {shared} batch axes")
    at = n.step("at", "expand_dims", ids, axes=[ids.rank])
    return n.call("gather_nd", x, at, batch_dims=shared)


def _gather_nd(n: Node) -> Value:
    _policy(n)
    return n.call("gather_nd", n.input(0), n.input(1))


def _policy(n: Node) -> None:
    if n.word("bad_indices_policy", "") not in ("", "DEFAULT", "ERROR"):
        raise Unsupported("positions outside the tensor that are passed over")


def _one_hot(n: Node) -> Value:
    ids, depth = n.input(0), n.known_number(1)
    on, off = n.known_number(2), n.known_number(3)
    attrs = {"depth": depth, "axis": n.int("axis", -1), "on": on, "off": off}
    return n.call("one_hot", ids, **attrs, to=n.input(2).dtype)


def _scatter(n: Node) -> Value:
    """Added up in a tensor of zeros."""
    _policy(n)
    ids, updates, sizes = n.input(0), n.input(1), tuple(n.known_ints(2))
    check_shape(sizes, "the result")
    zeros = n.const(0, f"{n.outputs[0]}_zeros", TensorInfo(sizes, updates.dtype))
    return n.call("scatter_nd", zeros, ids, updates, reduction="add")


def _scatter_into(reduction: str) -> Row:
    def row(n: Node) -> Value:
        _policy(n)
        x, ids, updates = n.x
        return n.call("scatter_nd", x, ids, updates, reduction=reduction)

    return row


def _scatter_less(n: Node) -> Value:
    _policy(n)
    x, ids, updates = n.x
    less = n.step("less", "negate", updates)
    return n.call("scatter_nd", x, ids, less, reduction="add")


def _reverse_sequence(n: Node) -> Value:
    axes = {"axis": n.int("seq_dim"), "batch_axis": n.int("batch_dim", 0)}
    return n.call("reverse_sequence", n.input(0), n.input(1), **axes)


def _diagonal(n: Node) -> Value:
    return n.call("diagonal", n.input(0), axes=[-2, -1])


def _band(n: Node) -> Value:
    """So many diagonals below the middle one, and above it; negative numbers mean all."""
    x, low, high = n.input(0), n.known_number(1), n.known_number(2)
    if low >= 0:
        x = n.step("low", "trilu", x, k=-low)
    if high >= 0:
        x = n.step("high", "trilu", x, k=high, upper=False)
    return x


def _inverse(n: Node) -> Value:
    if n.flag("adjoint"):
        raise Unsupported("of the adjoint")
    return n.call("inverse", n.input(0))


def _resize(mode: str) -> Row:
    """Places are those of TensorFlow 1 unless its flags say otherwise."""

    def row(n: Node) -> Value:
        x, size = n.first(n.input(0)), n.known_ints(1)
        corners, centres = n.flag("align_corners"), n.flag("half_pixel_centers")
        attrs: dict[str, object] = {"mode": mode, "size": size, "coord": "asymmetric"}
        if corners:
            attrs["coord"] = "align_corners"
        elif centres:
            attrs["coord"] = "half_pixel" if mode == "linear" else "tf_half_pixel_for_nn"
        if mode == "nearest":
            attrs["rounding"] = "round_prefer_ceil" if corners else "floor"
        if mode == "linear" and x.dtype != "f32":
            x = n.step("real", "cast", x, to="f32")
        return n.last(n.call("resize", x, **attrs))

    return row


ROWS: dict[str, Row] = {
    "Gather": _gather,
    "GatherV2": _gather,
    "ResourceGather": _gather,
    "GatherNd": _gather_nd,
    "OneHot": _one_hot,
    "ScatterNd": _scatter,
    "TensorScatterUpdate": _scatter_into("none"),
    "TensorScatterAdd": _scatter_into("add"),
    "TensorScatterSub": _scatter_less,
    "ScatterNdNonAliasingAdd": _scatter_into("add"),
    "TensorScatterMax": _scatter_into("max"),
    "TensorScatterMin": _scatter_into("min"),
    "ReverseSequence": _reverse_sequence,
    "MatrixDiag": calls("diag_embed"),
    "MatrixDiagPart": _diagonal,
    "MatrixBandPart": _band,
    "MatrixInverse": _inverse,
    "MatrixDeterminant": calls("determinant"),
    "Cholesky": calls("cholesky"),
    "Cross": calls("cross"),
    "ResizeBilinear": _resize("linear"),
    "ResizeNearestNeighbor": _resize("nearest"),
}
