"""Densities, boxes, packed attention and sequences, against loops and Python's own functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, integers, reals

few = settings(max_examples=20, deadline=None)
Array = np.ndarray[Any, Any]


def above(data: st.DataObject, *shape: int) -> Array:
    """Numbers above 0."""
    return np.array(np.abs(data.draw(reals(shape))) + 0.25)


@given(data=st.data(), rows=st.integers(1, 3), logarithm=st.booleans())
@few
def test_densities(data: st.DataObject, rows: int, logarithm: bool) -> None:
    first, second = above(data, rows), above(data, rows)
    x, place = data.draw(reals((rows, 2))), data.draw(reals((rows,)))

    def held(op: str, density: Callable[..., float], x: Array, **laws: Array) -> None:
        wanted = np.zeros(x.shape)
        for n, k in np.ndindex(*x.shape):
            found = density(float(x[n, k]), *(float(law[n]) for law in laws.values()))
            wanted[n, k] = math.log(found) if logarithm else found
        size = np.maximum(np.abs(wanted), 1) * 4000
        agrees(op, {"x": x, **laws}, wanted, operations=64, magnitude=size, logarithm=logarithm)

    near = place[:, None] + x / 4
    held("normal_density", lambda v, m, s: NormalDist(m, s).pdf(v), near, mean=place,
         deviation=first)  # fmt: skip
    inner = place[:, None] + np.array([[0.25, 0.75]]) * first[:, None]
    held(
        "uniform_density",
        lambda _, low, high: 1 / (high - low),
        inner,
        low=place,
        high=place + first,
    )
    positive = above(data, rows, 2)
    held("exponential_density", lambda v, r: r * math.exp(-r * v), positive, rate=first)
    held("gamma_density", lambda v, a, r: r**a * v ** (a - 1) * math.exp(-r * v) / math.gamma(a),
         positive, shape=first, rate=second)  # fmt: skip
    counts = data.draw(integers((rows, 2), np.int64, 0, 6)).astype(np.float64)
    held("poisson_density", lambda v, r: r**v * math.exp(-r) / math.factorial(int(v)), counts,
         rate=first)  # fmt: skip


def corners(boxes: Array, center: bool) -> Array:
    if not center:
        return boxes
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


@given(data=st.data(), n=st.integers(1, 3), m=st.integers(1, 3), center=st.booleans())
@few
def test_boxes(data: st.DataObject, n: int, m: int, center: bool) -> None:
    boxes = [np.concatenate([data.draw(reals((k, 2))), above(data, k, 2)], 1) for k in (n, m)]
    if not center:
        boxes = [np.concatenate([b[:, :2], b[:, :2] + b[:, 2:]], 1) for b in boxes]
    a, b = (corners(x, center) for x in boxes)
    shares = np.zeros((n, m))
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            sides = [max(0.0, min(p[d + 2], q[d + 2]) - max(p[d], q[d])) for d in (0, 1)]
            common = sides[0] * sides[1]
            areas = [(r[2] - r[0]) * (r[3] - r[1]) for r in (p, q)]
            shares[i, j] = common / (sum(areas) - common)
    agrees("box_iou", {"a": boxes[0], "b": boxes[1]}, shares, operations=64, magnitude=1000.0,
           center=center)  # fmt: skip
    x = data.draw(reals((2, n, 4)))
    std = (0.5, 0.25, 0.125, 1.0)
    middles, sizes = (a[:, :2] + a[:, 2:]) / 2, a[:, 2:] - a[:, :2]
    moved = middles + x[..., :2] * std[:2] * sizes
    half = np.exp(x[..., 2:] * std[2:]) * sizes / 2
    agrees("box_decode", {"x": x, "anchors": boxes[0]},
           np.concatenate([moved - half, moved + half], -1), operations=64, magnitude=4000.0,
           deviations=std, center=center)  # fmt: skip


@given(rows=st.integers(1, 3), columns=st.integers(1, 3), many=st.integers(1, 3))
@few
def test_boxes_around_places(rows: int, columns: int, many: int) -> None:
    sizes, ratios = (0.5, 0.75, 0.25)[:many], (1.0, 2.0, 0.5)
    wanted = []
    for r in range(rows):
        for c in range(columns):
            kinds = [(s, ratios[0]) for s in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
            for size, ratio in kinds:
                x, y = (c + 0.5) / columns, (r + 0.5) / rows
                w = size * rows / columns * math.sqrt(ratio) / 2
                h = size / math.sqrt(ratio) / 2
                wanted.append([x - w, y - h, x + w, y + h])
    agrees("box_priors", {}, np.array(wanted), operations=16, magnitude=4.0, rows=rows,
           columns=columns, sizes=sizes, ratios=ratios, to="f64")  # fmt: skip


@given(
    data=st.data(), window=st.sampled_from([1, 3]), reach=st.integers(0, 2),
    stride=st.integers(1, 2), step=st.integers(1, 2), multiply=st.booleans(),
)  # fmt: skip
@few
def test_correlation(
    data: st.DataObject, window: int, reach: int, stride: int, step: int, multiply: bool
) -> None:
    pad, border = 3, reach + window // 2
    a, b = (data.draw(reals((1, 2, 3, 4))) for _ in range(2))
    p, q = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    far = reach // step
    heights, widths = (range(border, n - border, stride) for n in p.shape[2:])
    wanted = np.zeros((1, (2 * far + 1) ** 2, len(heights), len(widths)))
    part = window // 2
    for g, (u, v) in enumerate(
        (u * step, v * step) for u in range(-far, far + 1) for v in range(-far, far + 1)
    ):
        for i, y in enumerate(heights):
            for j, x in enumerate(widths):
                left = p[0, :, y - part : y + part + 1, x - part : x + part + 1]
                right = q[0, :, y + u - part : y + u + part + 1, x + v - part : x + v + part + 1]
                wanted[0, g, i, j] = (left * right if multiply else abs(left - right)).mean()
    agrees("correlation", {"a": a, "b": b}, wanted, operations=64, magnitude=64.0, window=window,
           reach=reach, stride=stride, step=step, pad=pad, multiply=multiply)  # fmt: skip


@given(data=st.data(), length=st.integers(1, 3), n=st.integers(1, 2), heads=st.integers(1, 2))
@few
def test_packed_attention(data: st.DataObject, length: int, n: int, heads: int) -> None:
    size = 2
    x = data.draw(reals((length, n, heads * 3 * size)))
    parts = x.reshape(length, n * heads, 3, size)
    scores = np.einsum("ipd,jpd->pij", parts[:, :, 0], parts[:, :, 1]) / math.sqrt(size)
    agrees("packed_scores", {"x": x}, scores, operations=16, magnitude=64.0, heads=heads)
    weights = data.draw(reals((n * heads, length, length)))
    values = np.einsum("pij,jpd->ipd", weights, parts[:, :, 2]).reshape(length, n, heads * size)
    agrees("packed_values", {"x": x, "weights": weights}, values, operations=16, magnitude=64.0,
           heads=heads)  # fmt: skip


@given(data=st.data(), length=st.integers(1, 4), n=st.integers(1, 3))
@few
def test_sequences(data: st.DataObject, length: int, n: int) -> None:
    x = data.draw(reals((length, n, 2)))
    lengths = data.draw(integers((n,), np.int32, 1, length))
    given = {"x": x, "lengths": lengths}
    agrees("sequence_last", given, x[lengths - 1, np.arange(n)])
    mask = np.arange(length)[:, None] < lengths
    agrees("sequence_fill", given, np.where(mask[..., None], x, 0.5), value=0.5)


@given(
    data=st.data(), m=st.integers(1, 3), n=st.integers(1, 3), lower=st.booleans(),
    transpose=st.booleans(), right=st.booleans(),
)  # fmt: skip
@few
def test_matrices(
    data: st.DataObject, m: int, n: int, lower: bool, transpose: bool, right: bool
) -> None:
    t, b = data.draw(reals((m, m))), data.draw(reals((n, m) if right else (m, n)))
    part = np.tril(t) if lower else np.triu(t)
    part = part.T if transpose else part
    agrees("triangular_matmul", {"t": t, "b": b}, 0.5 * (b @ part if right else part @ b),
           operations=16, magnitude=64.0, lower=lower, transpose=transpose, right=right,
           alpha=0.5)  # fmt: skip
    positive = above(data, 2, m, m)
    logs = np.log(np.diagonal(positive, axis1=1, axis2=2)).sum(1)
    agrees("sum_log_diagonal", {"x": positive}, logs, operations=16, magnitude=16.0)
    ids = np.stack([data.draw(integers((4,), np.int64, 0, k)) for k in (m - 1, 2)])
    flat = np.ravel_multi_index(tuple(ids), (m, 3)).astype(np.int64)
    agrees("ravel_index", {"ids": ids}, flat, shape=(m, 3))
    agrees("rcbrt", {"x": positive}, 1 / np.cbrt(positive), operations=4)
    e = np.exp(-t)
    agrees("softmin", {"x": t}, e / e.sum(0, keepdims=True), operations=32, axis=0)
