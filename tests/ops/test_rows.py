"""Rows of different lengths, places in other shapes, outlines and labels, against plain loops."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, reals

few = settings(max_examples=25)
Lengths = st.lists(st.integers(0, 4), max_size=4)


def splits(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int64)


@given(data=st.data(), lengths=Lengths, size=st.integers(0, 4))
@few
def test_how_often_rows_have_numbers(data: st.DataObject, lengths: list[int], size: int) -> None:
    rows = [data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)) for n in lengths]
    wanted = np.zeros((len(rows), size), np.int64)
    for r, row in enumerate(rows):
        for number in row:
            if number < size:
                wanted[r, number] += 1
    x = np.array([n for row in rows for n in row], np.int32)
    agrees("ragged_bincount", {"splits": splits(lengths), "x": x}, wanted, size=size)


@given(data=st.data(), lengths=Lengths, columns=st.integers(0, 5))
@few
def test_rows_as_a_matrix(data: st.DataObject, lengths: list[int], columns: int) -> None:
    x = data.draw(reals((sum(lengths),)))
    wanted = np.full((len(lengths), columns), -3.0)
    for r, row in enumerate(np.split(x, splits(lengths)[1:-1]) if lengths else []):
        wanted[r, : len(row)] = row[:columns]
    given_ = {"splits": splits(lengths), "x": x}
    agrees("ragged_to_dense", given_, wanted, columns=columns, value=-3.0)


@given(data=st.data(), shapes=st.sampled_from([((6,), (2, 3)), ((4, 6), (3, 2, 4)),
                                               ((2, 3, 2), (12,)), ((2, 2), (4, 1))]))  # fmt: skip
@few
def test_places_in_another_shape(
    data: st.DataObject, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    old, new = shapes
    flat = np.array(data.draw(st.lists(st.integers(0, int(np.prod(old)) - 1), max_size=5)), int)
    ids = np.stack(np.unravel_index(flat, old), -1).astype(np.int64).reshape(-1, len(old))
    wanted = np.stack(np.unravel_index(flat, new), -1).astype(np.int64).reshape(-1, len(new))
    agrees("sparse_reshape", {"ids": ids}, wanted, shape=old, new=new)


@given(data=st.data(), channels=st.sampled_from([1, 3, 4]), many=st.integers(0, 3))
@few
def test_outlines_of_boxes(data: st.DataObject, channels: int, many: int) -> None:
    x, colors = data.draw(reals((1, 5, 4, channels))), data.draw(reals((2, channels)))
    boxes = data.draw(reals((1, many, 4), -0.5, 1.5))
    wanted = x.copy()
    for k, box in enumerate(boxes[0]):
        top, left, bottom, right = (int(v * n) for v, n in zip(box, (4, 3, 4, 3), strict=True))
        if top > bottom or left > right:
            continue
        for i in range(max(top, 0), min(bottom, 4) + 1):
            for j in range(max(left, 0), min(right, 3) + 1):
                if i in (top, bottom) or j in (left, right):
                    wanted[0, i, j] = colors[k % 2]
    agrees("draw_bounding_boxes", {"x": x, "boxes": boxes, "colors": colors}, wanted)


@given(data=st.data(), each=st.booleans())
@few
def test_what_is_within_a_range_flows_back(data: st.DataObject, each: bool) -> None:
    g, x = data.draw(reals((2, 3))), data.draw(reals((2, 3), -2, 2))
    low = data.draw(reals((3,) if each else (), -2, 0))
    high = data.draw(reals((3,) if each else (), 0, 2))
    wanted = [np.where((low <= x) & (x <= high), g, 0), 0 * low, 0 * high]
    given_ = {"g": g, "x": x, "low": low, "high": high}
    agrees("quantize_and_dequantize_gradient", given_, wanted, axis=1 if each else -1)


@given(data=st.data(), lengths=st.lists(st.integers(0, 5), min_size=2, max_size=2))
@few
def test_the_likeliest_labels(data: st.DataObject, lengths: list[int]) -> None:
    best = np.array(data.draw(st.lists(st.integers(0, 2), min_size=10, max_size=10))).reshape(5, 2)
    logits = data.draw(reals((5, 2, 3), -1, 1))
    np.put_along_axis(logits, best[..., None], 2.0, -1)
    y = np.full((2, 5), -1, np.int64)
    for n, length in enumerate(lengths):
        word = [k for k, _ in groupby(best[:length, n]) if k != 2]
        y[n, : len(word)] = word
    wanted = [y, np.array([-2.0 * length for length in lengths])]
    agrees("ctc_greedy", {"logits": logits, "lengths": np.array(lengths, np.int32)}, wanted)
