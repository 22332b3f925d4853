"""Elements by their places, rows one behind the other, permutations, diagonals: against loops."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, all_left_open, integers, reals
from tests.ops.test_sparse import places

few = settings(max_examples=25, deadline=None)
Array = np.ndarray[Any, Any]


@given(data=st.data(), rows=st.integers(1, 4), columns=st.integers(1, 4))
@few
def test_elements_in_order(data: st.DataObject, rows: int, columns: int) -> None:
    ids = data.draw(places(rows, columns))
    turned = ids[np.array(data.draw(st.permutations(range(len(ids)))), int)]
    values = data.draw(reals((len(ids),)))
    order = sorted(range(len(ids)), key=lambda e: tuple(turned[e]))
    size = {"rows": rows, "columns": columns}
    given = {"ids": turned, "values": values}
    agrees("sparse_reorder", given, [turned[order], values[order]], **size)
    open_ = all_left_open("sparse_reorder", given, **size)
    assert not any(part.any() for part in open_)


@given(data=st.data(), axis=st.integers(0, 1), sizes=st.tuples(*[st.integers(1, 3)] * 3))
@few
def test_joined(data: st.DataObject, axis: int, sizes: tuple[int, ...]) -> None:
    common, first, second = sizes
    shapes = [(n, common) if axis == 0 else (common, n) for n in (first, second)]
    ids = [data.draw(places(*shape)) for shape in shapes]
    values = [data.draw(reals((len(part),))) for part in ids]
    dense = [np.full(shape, np.nan) for shape in shapes]
    for whole, part, v in zip(dense, ids, values, strict=True):
        whole[tuple(part.T)] = v
    joined = np.concatenate(dense, axis)
    there = np.argwhere(~np.isnan(joined)).astype(np.int64)
    inputs = {"a_ids": ids[0], "a": values[0], "b_ids": ids[1], "b": values[1]}
    options: dict[str, Any] = {"a_shape": shapes[0], "b_shape": shapes[1], "axis": axis}
    agrees("sparse_concat", inputs, [there, joined[tuple(there.T)]], **options)


@given(data=st.data(), rows=st.integers(1, 3), size=st.integers(0, 4), once=st.booleans())
@few
def test_numbers_of_rows(data: st.DataObject, rows: int, size: int, once: bool) -> None:
    ids = data.draw(places(rows, 3))
    values = data.draw(integers((len(ids),), np.int64, 0, 4))
    counts = np.zeros((rows, size), np.int64)
    kinds: list[set[int]] = [set() for _ in range(rows)]
    for (r, _), v in zip(ids, values, strict=True):
        kinds[r].add(int(v))
        if v < size:
            counts[r, v] = 1 if once else counts[r, v] + 1
    given, shape = {"ids": ids, "values": values}, {"rows": rows, "columns": 3}
    agrees("sparse_bincount", given, counts, size=size, once=once, **shape)
    distinct = np.array([len(kind) for kind in kinds], np.int32)
    agrees("set_size", given, distinct, **shape)


@given(data=st.data(), many=st.integers(1, 5), out=st.integers(0, 5))
@few
def test_what_flows_back_through_a_filling(data: st.DataObject, many: int, out: int) -> None:
    at = data.draw(integers((out,), np.int64, 0, many - 1))
    g = data.draw(reals((many,)))
    rest = [g[m] for m in range(many) if m not in set(at.tolist())]
    agrees("sparse_fill_gradient", {"at": at, "g": g}, [g[at], np.array(sum(rest, 0.0))],
           operations=8, magnitude=8.0)  # fmt: skip


@given(data=st.data(), lengths=st.lists(st.integers(0, 3), max_size=4))
@few
def test_rows(data: st.DataObject, lengths: list[int]) -> None:
    splits = np.cumsum([0, *lengths]).astype(np.int64)
    x = data.draw(reals((int(splits[-1]),)))
    rows = [x[a:b] for a, b in pairwise(splits)]
    at = [(r, i) for r, row in enumerate(rows) for i in range(len(row))]
    wanted = [
        np.array(at, np.int64).reshape(-1, 2), x,
        np.array([len(rows), max(lengths, default=0)], np.int64),
    ]  # fmt: skip
    agrees("ragged_to_sparse", {"splits": splits, "x": x}, wanted)
    top = len(rows) - 1
    ids = np.array(data.draw(st.lists(st.integers(0, top), max_size=4)) if rows else [], np.int64)
    size = data.draw(st.integers(0, 9))
    chosen = np.concatenate([np.zeros(0), *(rows[i] for i in ids)])
    first = np.cumsum([0, *(len(rows[i]) for i in ids)]).astype(np.int64)
    room = np.concatenate([chosen, np.zeros(size)])[:size]
    agrees("ragged_gather", {"splits": splits, "x": x, "ids": ids}, [first, room], size=size)


@given(data=st.data(), n=st.integers(0, 5), strict=st.booleans())
@few
def test_order(data: st.DataObject, n: int, strict: bool) -> None:
    x = data.draw(integers((n,), np.int32, 0, 3))
    pairs = list(pairwise(x))
    right = all(a < b if strict else a <= b for a, b in pairs)
    agrees("is_ascending", {"x": x}, np.array(right), strict=strict)
    if n % 2 == 0:
        agrees("is_ascending", {"x": x.reshape(2, -1)}, np.array(right), strict=strict)
    permutation = np.array(data.draw(st.permutations(range(n))), np.int64)
    agrees("invert_permutation", {"x": permutation}, np.argsort(permutation))
    y = data.draw(integers((2,), np.int32, 0, 3))
    kept = [i for i in range(n) if x[i] not in y]
    found = np.array([*x[kept], *[0] * 5][:5], np.int32)
    agrees("list_difference", {"x": x, "y": y},
           [found, np.array([*kept, *[-1] * 5][:5], np.int64)], size=5)  # fmt: skip


@given(data=st.data(), axes=st.integers(4, 5))
@few
def test_axes(data: st.DataObject, axes: int) -> None:
    order = data.draw(st.permutations(range(axes)))
    x = data.draw(integers((3,), np.int32, -axes, axes - 1))
    agrees("axis_map", {"x": x}, np.array(order, np.int32)[x], order=tuple(order))
    v = data.draw(integers((axes, 2), np.int64, -9, 9))
    agrees("axis_permute", {"x": v}, v[order], order=tuple(order))


def pooled(x: Array) -> Array:
    """Neighbours that are out of order in one block, whose mean they become."""
    blocks: list[list[float]] = []
    for v in x:
        blocks.append([float(v)])
        while len(blocks) > 1 and np.mean(blocks[-2]) < np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    return np.array([np.mean(block) for block in blocks for _ in block])


@given(data=st.data(), n=st.integers(1, 6), decreasing=st.booleans())
@few
def test_isotonic_regression(data: st.DataObject, n: int, decreasing: bool) -> None:
    x = data.draw(reals((2, n)))
    rows = [pooled(row) if decreasing else -pooled(-row) for row in x]
    agrees("isotonic_regression", {"x": x}, np.stack(rows), operations=32, magnitude=8.0,
           decreasing=decreasing)  # fmt: skip


@given(
    data=st.data(), m=st.integers(1, 4), n=st.integers(1, 4),
    above=st.sampled_from(["right", "left"]), below=st.sampled_from(["right", "left"]),
)  # fmt: skip
@few
def test_several_diagonals(data: st.DataObject, m: int, n: int, above: str, below: str) -> None:
    lower = data.draw(st.integers(1 - m, n - 1))
    upper = data.draw(st.integers(lower, n - 1))
    x = data.draw(reals((m, n)))
    diagonals = [np.diagonal(x, o) for o in range(upper, lower - 1, -1)]
    long = max(map(len, diagonals))
    rows, other, mask = [], x.copy(), np.zeros((m, n), bool)
    given = data.draw(reals((len(diagonals), long)))
    for k, (o, diagonal) in enumerate(zip(range(upper, lower - 1, -1), diagonals, strict=True)):
        sides = [above] * (o >= 0) + [below] * (o <= 0)
        first = 0 if "left" in sides else long - len(diagonal)
        row = np.full(long, 0.25)
        row[first : first + len(diagonal)] = diagonal
        rows.append(row)
        for i in range(len(diagonal)):
            place = i + max(0, -o), i + max(0, o)
            other[place], mask[place] = given[k, first + i], True
    options: dict[str, Any] = {"lower": lower, "upper": upper, "above": above, "below": below}
    agrees("matrix_diagonals", {"x": x}, np.stack(rows), value=0.25, **options)
    agrees("set_diagonals", {"x": x, "diagonals": given}, other, **options)
    agrees("diagonals_matrix", {"x": given}, np.where(mask, other, 0.5), value=0.5, rows=m,
           columns=n, **options)  # fmt: skip
