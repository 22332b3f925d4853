"""TensorFlow's reductions of segments, whose rows are told by numbers, and its counts."""

from __future__ import annotations

import math

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.importers.tf_node import Node, Row
from irlang.importers.value import Unsupported, Value, check_shape
from irlang.importers.writer import Array


def _in_rows(n: Node, x: Value, ids: Value) -> tuple[Value, Value]:
    """Rows and their segments where these have several axes, which are the first of the rows'."""
    if ids.rank == 1:
        return x, ids
    count, rest = math.prod(ids.shape), x.shape[ids.rank :]
    return (
        n.step("rows", "reshape", x, shape=[count, *rest]),
        n.step("ids", "reshape", ids, shape=[count]),
    )


def _unsorted(reduction: str) -> Row:
    """What the extreme of no rows is the definition leaves open, and TensorFlow does not: each
    segment gets one row more, of the numbers that it starts from.
    """

    def row(n: Node) -> Value:
        segments = n.known_number(2)
        check_shape((segments,), "the result")
        x, ids = _in_rows(n, n.input(0), n.input(1))
        if reduction in ("max", "min"):
            x, ids = _with_first(n, x, ids, segments, lowest=reduction == "max")
        return n.call("segment_reduce", x, ids, segments=segments, reduction=reduction)

    return row


def _with_first(
    n: Node, x: Value, ids: Value, segments: int, *, lowest: bool
) -> tuple[Value, Value]:
    """Rows and their segments, and a row for every segment of its type's lowest number, or of its
    largest; as they are where it is known that each has a row.
    """
    known = ids.known()
    if known is not None and len(np.unique(known[known >= 0])) == segments:
        return x, ids
    row = DTYPES[x.dtype]
    least, largest = integer_range(x.dtype) if row.kind == "int" else (-row.largest, row.largest)
    info = TensorInfo((segments, *x.shape[1:]), x.dtype)
    first = n.const(least if lowest else largest, f"{n.outputs[0]}_first", info)
    each = n.const(np.arange(segments, dtype=DTYPES[ids.dtype].numpy), f"{n.outputs[0]}_each")
    return (
        n.step("joined", "concat", x, first, axis=0),
        n.step("all", "concat", ids, each, axis=0),
    )


def _ascending(n: Node, place: int) -> Array:
    """Segments that ascend, which must be known: the last of them is the size of the result."""
    ids = n.known(place)
    if ids.ndim != 1 or np.any(np.diff(ids) < 0) or (ids.size and ids[0] < 0):
        raise Unsupported("segments that do not ascend from 0")
    return ids


def _sorted(reduction: str, *, empty: bool) -> Row:
    """empty: whether the definition says what becomes of a segment without rows."""

    def row(n: Node) -> Value:
        ids = _ascending(n, 1)
        segments = int(ids[-1]) + 1 if ids.size else 0
        if not empty and len(np.unique(ids)) < segments:
            raise Unsupported("a segment without rows")
        return n.call(
            "segment_reduce", n.input(0), n.input(1), segments=segments, reduction=reduction
        )

    return row


def _of_chosen(reduction: str, *, root: bool = False) -> Row:
    """Of rows that are chosen by their numbers. root: the sum over the root of how many."""

    def row(n: Node) -> Value:
        ids = _ascending(n, 2)
        least = int(ids[-1]) + 1 if ids.size else 0
        segments = n.known_number(3) if n.kind.endswith("WithNumSegments") else least
        n.ignore("sparse_gradient")
        if segments < least:
            raise Unsupported(f"{least} segments, of which {segments} are kept")
        check_shape((segments,), "the result")
        x = n.step("rows", "gather", n.input(0), n.input(1), axis=0)
        how = {"segments": segments, "reduction": reduction}
        if not root:
            return n.call("segment_reduce", x, n.input(2), **how)
        total = n.step("sum", "segment_reduce", x, n.input(2), **how)
        many = np.sqrt(np.maximum(np.bincount(ids, minlength=segments), 1))
        shape = (segments,) + (1,) * (x.rank - 1)
        unit = many.astype(DTYPES[x.dtype].numpy).reshape(shape)
        return n.call("divide", total, n.const(unit, f"{n.outputs[0]}_root"))

    return row


def _count(n: Node) -> Value:
    """How often a number occurs, or what the elements weigh where it does."""
    numbers, size, weights = n.input(0), n.known_number(1), n.input(2)
    check_shape((size,), "the result")
    if n.flag("binary_output") or (n.kind == "DenseBincount" and numbers.rank != 1):
        raise Unsupported("counts of rows, or whether there are any")
    flat = numbers if numbers.rank == 1 else n.step("flat", "reshape", numbers, shape=[-1])
    if 0 not in weights.shape:
        heavy = weights if weights.rank == 1 else n.step("weights", "reshape", weights, shape=[-1])
        return n.call("segment_reduce", heavy, flat, segments=size)
    made = n.step("counts", "bincount", flat, size=size)
    return n.call("cast", made, to=weights.dtype)


ROWS: dict[str, Row] = {
    "UnsortedSegmentSum": _unsorted("sum"),
    "UnsortedSegmentProd": _unsorted("prod"),
    "UnsortedSegmentMax": _unsorted("max"),
    "UnsortedSegmentMin": _unsorted("min"),
    "SegmentSum": _sorted("sum", empty=True),
    "SegmentMean": _sorted("mean", empty=True),
    "SegmentProd": _sorted("prod", empty=True),
    "SegmentMax": _sorted("max", empty=False),
    "SegmentMin": _sorted("min", empty=False),
    "SparseSegmentSum": _of_chosen("sum"),
    "SparseSegmentMean": _of_chosen("mean"),
    "SparseSegmentSqrtN": _of_chosen("sum", root=True),
    "SparseSegmentSumWithNumSegments": _of_chosen("sum"),
    "SparseSegmentMeanWithNumSegments": _of_chosen("mean"),
    "SparseSegmentSqrtNWithNumSegments": _of_chosen("sum", root=True),
    "Bincount": _count,
    "DenseBincount": _count,
}
