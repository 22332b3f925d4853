"""Matrices of some elements, against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, left_open, reals

few = settings(max_examples=25)
Array = np.ndarray[Any, Any]


@st.composite
def places(draw: st.DrawFn, rows: int, columns: int) -> Array:
    """Ascending, each once."""
    every = list(np.ndindex(rows, columns))
    chosen = sorted(draw(st.sets(st.sampled_from(every), max_size=6))) if every else []
    return np.array(chosen, np.int64).reshape(-1, 2)


@given(data=st.data(), rows=st.integers(1, 4), inner=st.integers(1, 4), columns=st.integers(0, 3))
@few
def test_products(data: st.DataObject, rows: int, inner: int, columns: int) -> None:
    ids = np.array(
        data.draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, inner - 1)))),
        np.int64,
    ).reshape(-1, 2)
    values, b = data.draw(reals((len(ids),))), data.draw(reals((inner, columns)))
    matrix = np.zeros((rows, inner))
    np.add.at(matrix, (ids[:, 0], ids[:, 1]), values)
    agrees("sparse_matmul", {"ids": ids, "values": values, "b": b}, matrix @ b,
           operations=64, magnitude=256.0, rows=rows)  # fmt: skip


@given(data=st.data(), rows=st.integers(1, 4), columns=st.integers(1, 4))
@few
def test_elements_of_a_matrix(data: st.DataObject, rows: int, columns: int) -> None:
    ids = data.draw(places(rows, columns))
    values = data.draw(reals((len(ids),)))
    given, size = {"ids": ids, "values": values}, {"rows": rows, "columns": columns}
    dense = np.full((rows, columns), 0.5)
    for (r, c), v in zip(ids, values, strict=True):
        dense[r, c] = v
    agrees("sparse_to_dense", given, dense, value=0.5, **size)
    rows_of = [values[ids[:, 0] == r] for r in range(rows)]
    agrees("sparse_reduce", given, np.array([v.sum() for v in rows_of]), operations=8,
           magnitude=8.0, **size)  # fmt: skip
    top = np.array([v.max() if v.size else 0.0 for v in rows_of])
    agrees("sparse_reduce", given, top, reduction="max", **size)
    shares = [np.exp(v) / np.exp(v).sum() for v in rows_of]
    wanted = np.concatenate([*shares, np.zeros(0)])
    agrees("sparse_softmax", given, wanted, operations=24, **size)


@given(data=st.data(), segments=st.integers(1, 4))
@few
def test_segments_of_chosen_rows(data: st.DataObject, segments: int) -> None:
    x = data.draw(reals((3, 2)))
    ids = np.array(data.draw(st.lists(st.integers(0, 2), max_size=6)), np.int64)
    numbers = st.lists(st.integers(0, segments - 1), min_size=len(ids), max_size=len(ids))
    segment = np.array(sorted(data.draw(numbers)), np.int64)
    rows = [x[ids[segment == g]] for g in range(segments)]
    total = np.array([r.sum(0) for r in rows])
    many = np.array([[max(1, len(r))] for r in rows])
    for reduction, part in (("sum", total), ("mean", total / many), ("sqrt_n", total / many**0.5)):
        agrees("sparse_segment_reduce", {"x": x, "ids": ids, "segment": segment}, part,
               operations=16, magnitude=32.0, segments=segments, reduction=reduction)  # fmt: skip


@given(data=st.data(), ids=st.lists(st.integers(0, 4), max_size=6))
@few
def test_rows_are_stitched(data: st.DataObject, ids: list[int]) -> None:
    size = max(ids, default=-1) + 1
    x = data.draw(reals((len(ids), 2)))
    wanted = np.zeros((size, 2))
    for place, row in zip(ids, x, strict=True):
        wanted[place] = row
    given = {"ids": np.array(ids, np.int32), "x": x}
    agrees("dynamic_stitch", given, wanted, size=size)
    found = left_open("dynamic_stitch", given, size=size)
    missing = [[p not in ids] * 2 for p in range(size)]
    assert (np.zeros((size, 2), bool) if found is None else found).tolist() == missing


@given(data=st.data(), reduction=st.sampled_from(["sum", "mean", "sqrt_n"]))
@few
def test_what_flows_back_to_rows(data: st.DataObject, reduction: str) -> None:
    groups, many, rows = (data.draw(st.integers(1, 4)) for _ in range(3))
    g = data.draw(reals((groups, 2)))
    ids = np.array(data.draw(st.lists(st.integers(0, rows - 1), min_size=many, max_size=many)))
    drawn = data.draw(st.lists(st.integers(0, groups - 1), min_size=many, max_size=many))
    segment = np.array(sorted(drawn))
    counts = np.bincount(segment, minlength=groups).astype(float)
    part = {"sum": np.ones(groups), "mean": counts, "sqrt_n": np.sqrt(counts)}[reduction]
    wanted = np.zeros((rows, 2))
    for place, own in zip(ids, segment, strict=True):
        wanted[place] += g[own] / part[own]
    agrees("sparse_segment_gradient", {"g": g, "ids": ids, "segment": segment}, wanted,
           operations=12, magnitude=24.0, rows=rows, reduction=reduction)  # fmt: skip


@given(data=st.data(), kind=st.sampled_from(["multiply", "divide", "add"]))
@few
def test_arithmetic_at_places(data: st.DataObject, kind: str) -> None:
    rows, columns, many = (data.draw(st.integers(1, 3)) for _ in range(3))
    shape = data.draw(
        st.sampled_from([(), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)])
    )
    places = [data.draw(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)))
              for _ in range(many)]  # fmt: skip
    values, dense = data.draw(reals((many,))), data.draw(reals(shape, low=0.25))
    own = np.broadcast_to(dense, (rows, columns))[tuple(zip(*places, strict=True))]
    function = {"multiply": np.multiply, "divide": np.divide, "add": np.add}[kind]
    inputs = {"ids": np.array(places, np.int64), "values": values, "dense": dense}
    agrees("sparse_dense_arithmetic", inputs, function(values, own), rows=rows, columns=columns,
           kind=kind)  # fmt: skip
