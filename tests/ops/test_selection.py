"""What the data decide how much of there is, against NumPy and loops of its own."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, all_left_open, integers, reals, results, shapes

few = settings(max_examples=25)


def filled(found: Any, size: int, filling: float) -> Any:
    """The first `size` rows of what was found, or with a filling behind it."""
    found = np.asarray(found)
    room = np.full((size, *found.shape[1:]), filling, found.dtype)
    room[: len(found)] = found[:size]
    return room


@given(data=st.data(), size=st.integers(0, 9))
@few
def test_where_elements_are_not_zero(data: st.DataObject, size: int) -> None:
    x = data.draw(reals(data.draw(shapes(least=1)), special=True))
    expected = filled(np.argwhere(x).astype(np.int64).reshape(-1, x.ndim), size, -1)
    agrees("nonzero", {"x": x}, expected, size=size)
    agrees("nonzero", {"x": x != 0}, expected, size=size)


@given(data=st.data(), size=st.integers(0, 5))
@few
def test_what_is_kept(data: st.DataObject, size: int) -> None:
    x = data.draw(reals(data.draw(shapes(least=1)), special=True))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    keep = np.array(
        data.draw(st.lists(st.booleans(), min_size=x.shape[axis], max_size=x.shape[axis])), bool
    )
    kept = np.moveaxis(np.compress(keep, x, axis), axis, 0)
    expected = np.moveaxis(filled(kept, size, 0), 0, axis)
    agrees("compress", {"x": x, "keep": keep}, expected, axis=axis, size=size)


@given(data=st.data(), size=st.integers(0, 5), order=st.sampled_from(["sorted", "first"]))
@few
def test_distinct_elements(data: st.DataObject, size: int, order: str) -> None:
    x = data.draw(integers((data.draw(st.integers(0, 6)),), np.int64, -2, 2))
    distinct, first, places, counts = np.unique(x, True, True, True)
    if order == "first":
        turn = np.argsort(first)
        distinct, counts = distinct[turn], counts[turn]
        places = np.argsort(turn)[places] if len(turn) else places
    expected = [
        filled(distinct, size, 0),
        filled(counts.astype(np.int64), size, 0),
        places.astype(np.int64),
    ]
    agrees("unique", {"x": x}, expected, size=size, order=order)


def overlap(a: Any, b: Any) -> float:
    """Intersection over union of two boxes; 0 where one has no area."""
    (low, high), (least, most) = (
        (np.minimum(c[:2], c[2:]), np.maximum(c[:2], c[2:])) for c in (a, b)
    )
    areas = np.prod(high - low), np.prod(most - least)
    if min(areas) <= 0:
        return 0.0
    common = np.prod(np.maximum(0, np.minimum(high, most) - np.maximum(low, least)))
    return float(common / (sum(areas) - common))


@given(data=st.data(), size=st.integers(0, 6), center=st.booleans())
@few
def test_boxes_without_those_that_overlap(data: st.DataObject, size: int, center: bool) -> None:
    count = data.draw(st.integers(0, 5))
    boxes = data.draw(reals((count, 4), -2, 2))
    scores = np.array(data.draw(st.permutations([n / 4 for n in range(count)])), np.float64)
    corners = boxes
    if center:
        boxes = np.abs(boxes)  # a width
        half = boxes[:, [3, 2]] / 2
        middle = boxes[:, [1, 0]]
        corners = np.concatenate([middle - half, middle + half], 1)
    chosen: list[int] = []
    for n in np.argsort(-scores):
        if scores[n] > 0.2 and all(overlap(corners[n], corners[m]) <= 0.3 for m in chosen):
            chosen.append(int(n))
    expected = filled(np.array(chosen, np.int64), size, -1)
    agrees("non_max_suppression", {"boxes": boxes, "scores": scores}, expected, size=size,
           iou_threshold=0.3, score_threshold=0.2, center=center)  # fmt: skip


def test_what_nan_leaves_open() -> None:
    """Numbers are told apart where they stand before it, and nothing is where it may come first."""
    x = np.array([np.nan, 1, np.nan, 1])
    values, counts, places = all_left_open("unique", {"x": x}, size=3)
    assert list(values) == list(counts) == [False, True, True]
    assert list(places) == [True, False, True, False]
    assert all(mask.all() for mask in all_left_open("unique", {"x": x}, size=3, order="first"))


def test_nan_among_what_is_ordered() -> None:
    """It is left open how much there is of it, but it goes somewhere, behind all numbers."""
    x = np.array([np.nan, 1, np.nan, 1])
    for y, counts, places in results("unique", {"x": x}, size=3).values():
        assert np.nanmin(y) == 0
        assert sorted(counts) == [0, 2, 2]
        assert places[0] == places[2] != places[1] == places[3]
        assert (y[0], counts[0], places[1]) == (1, 2, 0)
    boxes = np.zeros((4, 4))
    for (at,) in results("non_max_suppression", {"boxes": boxes, "scores": x}, size=4).values():
        assert list(at) == [1, 3, -1, -1]
