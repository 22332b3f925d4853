"""What flows back, called by itself, against sums over windows in NumPy and against PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.ops.compare import agrees, all_left_open, integers, left_open, reals, results

few = settings(max_examples=25)
Array = np.ndarray[Any, Any]
padding = st.sampled_from(["valid", "same"])


class Windows:
    """Windows of two axes, and the elements of each that there are."""

    def __init__(self, data: st.DataObject, pad: str) -> None:
        self.window = tuple(data.draw(st.integers(1, 3)) for _ in range(2))
        self.stride = tuple(data.draw(st.integers(1, 3)) for _ in range(2))
        self.size = tuple(data.draw(st.integers(k, 5)) for k in self.window)
        counts = []
        for s, k, t in zip(self.size, self.window, self.stride, strict=True):
            many = -(-s // t) if pad == "same" else (s - k) // t + 1
            beyond = max(0, (many - 1) * t + k - s) // 2 if pad == "same" else 0
            counts.append([[i for i in range(o * t - beyond, o * t - beyond + k) if 0 <= i < s]
                           for o in range(many)])  # fmt: skip
        self.counts = [len(one) for one in counts]
        self.held = {
            (r, c): list(itertools.product(counts[0][r], counts[1][c]))
            for r, c in np.ndindex(*self.counts)
        }
        self.said: dict[str, Any] = {"window": self.window, "stride": self.stride, "pad": pad}


@given(data=st.data(), pad=padding)
@few
def test_means_flow_back_in_equal_parts(data: st.DataObject, pad: str) -> None:
    frame = Windows(data, pad)
    g = data.draw(reals((2, 1, *frame.counts)))
    wanted = np.zeros((2, 1, *frame.size))
    for (r, c), places in frame.held.items():
        for i, j in places:
            wanted[:, :, i, j] += g[:, :, r, c] / len(places)
    agrees("avg_pool_gradient", {"g": g}, wanted, operations=24, magnitude=16.0, size=frame.size,
           **frame.said)  # fmt: skip


@given(data=st.data(), pad=padding)
@few
def test_maxima_flow_back_to_where_they_are(data: st.DataObject, pad: str) -> None:
    frame = Windows(data, pad)
    g = data.draw(reals((1, 2, *frame.counts)))
    along = data.draw(reals((1, 2, *frame.size)))
    order = np.array(data.draw(st.permutations(range(2 * frame.size[0] * frame.size[1]))))
    x = order.reshape(1, 2, *frame.size).astype(np.float64)  # no two are the same
    wanted, passed = np.zeros(x.shape), np.zeros(g.shape)
    for (r, c), places in frame.held.items():
        for channel in range(2):
            i, j = max(places, key=lambda at: x[0, channel, at[0], at[1]])
            wanted[0, channel, i, j] += g[0, channel, r, c]
            passed[0, channel, r, c] = along[0, channel, i, j]
    agrees("max_pool_gradient", {"g": g, "x": x}, wanted, operations=16, magnitude=16.0,
           **frame.said)  # fmt: skip
    agrees("max_pool_tangent", {"g": along, "x": x}, passed, **frame.said)


def test_of_several_maxima_it_is_open_which() -> None:
    x = np.array([[[1.0, 1.0, 0.0, 2.0, np.nan, 0.0]]])
    said: dict[str, Any] = {"window": (2,)}
    found = left_open("max_pool_gradient", {"g": np.ones((1, 1, 3)), "x": x}, **said)
    assert found is not None
    assert found.tolist() == [[[True, True, False, False, True, True]]]
    found = left_open("max_pool_tangent", {"g": np.ones((1, 1, 6)), "x": x}, **said)
    assert found is not None
    assert found.tolist() == [[[True, False, True]]]


@given(data=st.data(), overlapping=st.booleans())
@few
def test_windows_of_any_lengths(data: st.DataObject, overlapping: bool) -> None:
    lengths = [data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)) for _ in range(2)]
    g = data.draw(reals((1, 2, *map(len, lengths))))
    starts = [np.concatenate([[0], np.cumsum(one)]) for one in lengths]
    wanted = np.zeros((1, 2, starts[0][-1], starts[1][-1]))
    for r, c in np.ndindex(g.shape[2:]):
        part = np.s_[:, :, starts[0][r] : starts[0][r + 1] + overlapping,
                     starts[1][c] : starts[1][c + 1] + overlapping]  # fmt: skip
        wanted[part] += g[:, :, r : r + 1, c : c + 1] / wanted[0, 0][part[2:]].size
    agrees("fractional_avg_pool_gradient", {"g": g}, wanted, operations=12, magnitude=16.0,
           rows=tuple(lengths[0]), columns=tuple(lengths[1]), overlapping=overlapping)  # fmt: skip


@given(data=st.data(), coord=st.sampled_from(["half_pixel", "align_corners"]))
@few
def test_interpolation_flows_back(data: st.DataObject, coord: str) -> None:
    low = 2 if coord == "align_corners" else 1
    sizes = [data.draw(st.integers(low, 5)) for _ in range(4)]
    g, x = data.draw(reals((1, 2, *sizes[:2]))), data.draw(reals((1, 2, *sizes[2:])))
    leaf = torch.tensor(x, requires_grad=True)
    resized = torch.nn.functional.interpolate(
        leaf, sizes[:2], mode="bilinear", align_corners=coord == "align_corners"
    )
    resized.backward(torch.tensor(g))
    assert leaf.grad is not None
    agrees("resize_linear_gradient", {"g": g, "x": x}, leaf.grad.numpy(), operations=200,
           magnitude=16.0, coord=coord)  # fmt: skip


def test_interpolation_from_the_corner_flows_back() -> None:
    g, x = np.array([[[1.0, 2.0, 4.0, 8.0]]]), np.zeros((1, 1, 2))
    agrees(
        "resize_linear_gradient", {"g": g, "x": x}, np.array([[[2.0, 13.0]]]), coord="asymmetric"
    )


def _framed(
    data: st.DataObject, pad: str
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[int]]:
    """A kernel's size, stride and dilation, and an image that it fits."""
    size, stride, dilation = (
        tuple(data.draw(st.integers(1, most)) for _ in range(2)) for most in (3, 2, 2)
    )
    if pad == "same" and max(stride) > 1:
        stride = (1, 1)  # PyTorch has no other
    spans = (d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True))
    return size, stride, dilation, [span + data.draw(st.integers(0, 2)) for span in spans]


@given(data=st.data(), pad=padding, groups=st.integers(1, 2))
@few
def test_products_flow_back_to_weights(data: st.DataObject, pad: str, groups: int) -> None:
    size, stride, dilation, space = _framed(data, pad)
    x = data.draw(reals((2, 2 * groups, *space)))
    w = torch.zeros((groups, 2, *size), dtype=torch.float64, requires_grad=True)
    y = torch.nn.functional.conv2d(
        torch.tensor(x), w, stride=stride, padding=pad, dilation=dilation, groups=groups
    )
    g = data.draw(reals(tuple(y.shape)))
    y.backward(torch.tensor(g))
    assert w.grad is not None
    agrees("conv_weight_gradient", {"x": x, "g": g}, w.grad.numpy(), operations=64, magnitude=512.0,
           size=size, stride=stride, dilation=dilation, groups=groups, pad=pad)  # fmt: skip


@given(data=st.data(), pad=padding, groups=st.integers(1, 2))
@few
def test_products_flow_back_to_inputs(data: st.DataObject, pad: str, groups: int) -> None:
    size, stride, dilation, space = _framed(data, pad)
    x = torch.zeros((2, 2 * groups, *space), dtype=torch.float64, requires_grad=True)
    w = data.draw(reals((groups, 2, *size)))
    y = torch.nn.functional.conv2d(
        x, torch.tensor(w), stride=stride, padding=pad, dilation=dilation, groups=groups
    )
    g = data.draw(reals(tuple(y.shape)))
    y.backward(torch.tensor(g))
    assert x.grad is not None
    agrees("conv_input_gradient", {"g": g, "w": w}, x.grad.numpy(), operations=64, magnitude=512.0,
           size=tuple(space), stride=stride, dilation=dilation, groups=groups, pad=pad)  # fmt: skip


@given(data=st.data())
@few
def test_maxima_flow_back_to_places(data: st.DataObject) -> None:
    frame = Windows(data, "valid")
    g = data.draw(reals((2, 1, *frame.counts)))
    most = frame.size[0] * frame.size[1]
    places = data.draw(integers(g.shape, np.int64, 0, most - 1))
    wanted = np.zeros((2, 1, *frame.size))
    for at in np.ndindex(g.shape):
        wanted[at[:2]].flat[places[at]] += g[at]
    agrees("max_pool_indices_gradient", {"g": g, "indices": places}, wanted, operations=16,
           magnitude=64.0, size=frame.size, window=frame.window, stride=frame.stride)  # fmt: skip


@given(data=st.data(), pad=padding)
@few
def test_largest_sums_flow_back_to_both(data: st.DataObject, pad: str) -> None:
    frame = Windows(data, pad)
    g = data.draw(reals((1, 2, *frame.counts)))
    x = np.array(data.draw(st.permutations(range(2 * frame.size[0] * frame.size[1]))))
    x = x.reshape(1, 2, *frame.size) * 64.0
    w = np.arange(2.0 * frame.window[0] * frame.window[1]).reshape(2, *frame.window) - 3
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    begins = [max(0, (o - 1) * t + k - s) // 2 if pad == "same" else 0
              for o, t, k, s in zip(frame.counts, frame.stride, frame.window, frame.size,
                                    strict=True)]  # fmt: skip
    for (r, c), places in frame.held.items():
        spots = {(i, j): (i + begins[0] - r * frame.stride[0], j + begins[1] - c * frame.stride[1])
                 for i, j in places}  # fmt: skip
        for channel in range(2):
            best = max(places, key=lambda at: x[0, channel, *at] + w[channel, *spots[at]])
            dx[0, channel, *best] += g[0, channel, r, c]
            dw[channel, *spots[best]] += g[0, channel, r, c]
    said: dict[str, Any] = {"stride": frame.stride, "pad": pad}
    agrees("grey_dilation_gradient", {"g": g, "x": x, "w": w}, [dx, dw], operations=25,
           magnitude=25 * 6.0, **said)  # fmt: skip


def test_of_several_sums_it_is_open_which() -> None:
    x = np.array([[[1.0, 1.0, 0.0, 2.0]]])
    inputs = {"g": np.ones((1, 1, 2)), "x": x, "w": np.zeros((1, 2))}
    first, second = all_left_open("grey_dilation_gradient", inputs, stride=2)
    assert first.tolist() == [[[True, True, False, False]]]
    assert second.tolist() == [[True, True]]


@given(data=st.data(), size=st.sampled_from([1, 3, 5]), beta=st.sampled_from([0.5, 0.75, 1.0]))
@few
def test_what_neighbours_make_even_flows_back(data: st.DataObject, size: int, beta: float) -> None:
    shape = (1, data.draw(st.integers(1, 4)), 2)
    x, g = data.draw(reals(shape, -2, 2)), data.draw(reals(shape))
    leaf = torch.tensor(x, requires_grad=True)
    torch.nn.functional.local_response_norm(leaf, size, 0.5, beta, 2.0).backward(torch.tensor(g))
    assert leaf.grad is not None
    agrees("local_response_norm_gradient", {"g": g, "x": x}, leaf.grad.numpy(), operations=200,
           magnitude=16.0, size=size, alpha=0.5, beta=beta, bias=2.0)  # fmt: skip


_MODES: tuple[Any, ...] = ("reflect", "symmetric", "edge")


@given(data=st.data(), mode=st.sampled_from(_MODES))
@few
def test_what_padding_shows_flows_back(data: st.DataObject, mode: Any) -> None:
    size = [data.draw(st.integers(2, 4)) for _ in range(2)]
    ends = [tuple(data.draw(st.integers(0, n - 1)) for _ in range(2)) for n in size]
    shown = np.pad(np.arange(size[0] * size[1]).reshape(size), ends, mode)
    g = data.draw(reals(shown.shape))
    wanted = np.zeros(size)
    for at in np.ndindex(g.shape):
        wanted.flat[shown[at]] += g[at]
    before, after = zip(*ends, strict=True)
    agrees("pad_gradient", {"g": g}, wanted, operations=80, magnitude=256.0, before=before,
           after=after, mode=mode)  # fmt: skip


@given(data=st.data(), train=st.booleans())
@few
def test_what_is_made_even_flows_back(data: st.DataObject, train: bool) -> None:
    x, g = (data.draw(reals((2, 3, 2))) for _ in range(2))
    x[0, :, 0] += 8  # no channel is the same everywhere
    scale, mean = (data.draw(reals(3)) for _ in range(2))
    var = data.draw(reals(3, 0.5, 4))
    if train:
        mean, var = x.mean((0, 2)), x.var((0, 2))
    leaf = torch.tensor(x, requires_grad=True)
    weight = torch.tensor(scale, requires_grad=True)
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    y = torch.nn.functional.batch_norm(
        leaf, torch.tensor(mean), torch.tensor(var), weight, bias, training=train, eps=0.01
    )
    y.backward(torch.tensor(g))
    wanted = [one.grad.numpy() for one in (leaf, weight, bias) if one.grad is not None]
    inputs = {"g": g, "x": x, "scale": scale, "mean": mean, "var": var}
    agrees("batch_norm_gradient", inputs, wanted, operations=64, magnitude=1e5, train=train,
           eps=0.01)  # fmt: skip


@given(data=st.data(), overlapping=st.booleans())
@few
def test_maxima_of_windows_of_any_lengths(data: st.DataObject, overlapping: bool) -> None:
    lengths = [data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)) for _ in range(2)]
    g = data.draw(reals((1, 2, *map(len, lengths))))
    starts = [np.concatenate([[0], np.cumsum(one)]) for one in lengths]
    shape = (1, 2, starts[0][-1], starts[1][-1])
    x = np.array(data.draw(st.permutations(range(2 * shape[2] * shape[3]))), float).reshape(shape)
    wanted = np.zeros(shape)
    for channel, r, c in np.ndindex(g.shape[1:]):
        part = np.s_[0, channel, starts[0][r] : starts[0][r + 1] + overlapping,
                     starts[1][c] : starts[1][c + 1] + overlapping]  # fmt: skip
        wanted[part] += np.where(x[part] == x[part].max(), g[0, channel, r, c], 0)
    agrees("fractional_max_pool_gradient", {"g": g, "x": x}, wanted, operations=9, magnitude=36.0,
           rows=tuple(lengths[0]), columns=tuple(lengths[1]), overlapping=overlapping)  # fmt: skip


@given(data=st.data(), mode=st.sampled_from(["nearest", "nearest-exact"]))
@few
def test_the_nearest_flow_back(data: st.DataObject, mode: str) -> None:
    sizes = [data.draw(st.sampled_from([1, 2, 4, 8])) for _ in range(4)]
    g = data.draw(reals((1, 2, *sizes[:2])))
    leaf = torch.zeros((1, 2, *sizes[2:]), dtype=torch.float64, requires_grad=True)
    torch.nn.functional.interpolate(leaf, sizes[:2], mode=mode).backward(torch.tensor(g))
    assert leaf.grad is not None
    coord = "asymmetric" if mode == "nearest" else "half_pixel"
    agrees("resize_nearest_gradient", {"g": g}, leaf.grad.numpy(), operations=64, magnitude=400.0,
           size=tuple(sizes[2:]), coord=coord)  # fmt: skip


def test_the_nearest_of_corners_flow_back() -> None:
    g = np.array([[[1.0, 2.0, 4.0]]])
    said: dict[str, Any] = {"size": (5,), "coord": "align_corners"}
    agrees("resize_nearest_gradient", {"g": g}, np.array([[[1.0, 0, 2, 0, 4]]]), **said)


def _eighth(number: int) -> float:
    return number / 8


@given(data=st.data(), mode=st.sampled_from(["linear", "nearest"]))
@few
def test_regions_flow_back_as_they_were_taken(data: st.DataObject, mode: str) -> None:
    """The sum of what flows back, each times its element of the images, is that of the regions."""
    size, out = (tuple(data.draw(st.integers(1, 4)) for _ in range(2)) for _ in range(2))
    x, g = data.draw(reals((2, 1, *size))), data.draw(reals((3, 1, *out)))
    boxes = data.draw(hnp.arrays(np.float64, (3, 4), elements=st.integers(-2, 10).map(_eighth)))
    batch = data.draw(integers((3,), np.int64, 0, 1))
    inputs = {"boxes": boxes, "batch": batch}
    taken = results("crop_and_resize", {"x": x, **inputs}, size=out, mode=mode)
    back = results("crop_and_resize_gradient", {"g": g, **inputs}, images=2, size=size, mode=mode)
    for name in taken:
        ((regions,), (flown,)) = taken[name], back[name]
        assert flown.shape == x.shape
        assert abs((flown * x).sum() - (regions * g).sum()) <= 1e-12 * (
            1 + np.abs(flown * x).sum() + np.abs(regions * g).sum()
        )


pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")
