"""Whole numbers that stand for those of a range, against NumPy in what they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, left_open, results

few = settings(max_examples=25)
ENDS = st.tuples(st.integers(-9, 0), st.integers(1, 9))
Shape = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def numbers(data: st.DataObject, shape: tuple[int, ...], dtype: str = "u1") -> np.ndarray:
    info = np.iinfo(dtype)
    seed = data.draw(st.integers(0, 2**32 - 1))
    drawn = np.random.default_rng(seed).integers(info.min, info.max, shape, endpoint=True)
    return np.asarray(drawn).astype(dtype)


def ends(low: float, high: float, prefix: str = "") -> dict[str, np.ndarray]:
    return {f"{prefix}low": np.asarray(float(low)), f"{prefix}high": np.asarray(float(high))}


def steps(value: float, low: float, high: float) -> int:
    """Steps of a byte, of 255 in a range, halves away from 0."""
    count = value * 255 / (high - low)
    return int(np.copysign(np.floor(abs(count) + 0.5), count))


@given(data=st.data(), range_=ENDS, most=st.sampled_from([np.inf, 0.0, 2.0, 6.0]))
@few
def test_what_is_below_zero_is_zero(
    data: st.DataObject, range_: tuple[int, int], most: float
) -> None:
    low, high = range_[0] / 4, range_[1] / 4
    x = numbers(data, data.draw(Shape))
    zero = -steps(low, low, high)
    top = 255 if most == np.inf else min(255, steps(most, low, high) + zero)
    wanted = [np.clip(x, zero, top).astype(np.uint8), np.asarray(low), np.asarray(high)]
    agrees("ranged_relu", {"x": x, **ends(low, high)}, wanted, most=most)


@given(data=st.data(), first=ENDS, second=ENDS)
@few
def test_products(data: st.DataObject, first: tuple[int, int], second: tuple[int, int]) -> None:
    a, b = numbers(data, (2, 3)), numbers(data, (3,))
    zeros = [-steps(low, low, high) for low, high in (first, second)]
    product = (a.astype(np.int32) - zeros[0]) * (b.astype(np.int32) - zeros[1])
    step = (first[1] - first[0]) / 255 * (second[1] - second[0]) / 255
    given_ = {"a": a, "b": b, **ends(*first, "a_"), **ends(*second, "b_")}
    wanted = [product.astype(np.int32), np.asarray(-(2.0**31) * step), (2.0**31 - 1) * step]
    agrees("ranged_multiply", given_, wanted, operations=8)
    # what they stand for is the product, to half a step of each
    exact = (first[0] + a * ((first[1] - first[0]) / 255)) * (
        second[0] + b * ((second[1] - second[0]) / 255)
    )
    slack = sum(max(map(abs, one)) * (other[1] - other[0]) / 255 for one, other in
                ((first, second), (second, first)))  # fmt: skip
    assert (np.abs(product * step - exact) <= 2 * slack).all()


@given(data=st.data(), first=ENDS, second=ENDS)
@few
def test_sums(data: st.DataObject, first: tuple[int, int], second: tuple[int, int]) -> None:
    x, b = numbers(data, (2, 3)), numbers(data, (3,))
    inputs = {"x": x, "b": b, **ends(*first), **ends(*second, "b_")}
    exact = first[0] + x * ((first[1] - first[0]) / 255) + second[0]
    exact = exact + b * ((second[1] - second[0]) / 255)
    top = max(map(abs, (*first, *second))) * 2.0**17
    for y, low, high in results("ranged_bias_add", inputs).values():
        assert [float(low), float(high)] == [-top, top]
        assert (np.abs(y - exact / (2 * top / (2**32 - 1))) <= 0.5 + 1e-6).all()


@given(data=st.data(), same=st.booleans(), mean=st.booleans(), step=st.integers(1, 3))
@few
def test_windows(data: st.DataObject, same: bool, mean: bool, step: int) -> None:
    x = numbers(data, (1, 2, 5))
    out = -(-5 // step) if same else (5 - 2) // step + 1
    lead = max(0, (out - 1) * step + 2 - 5) // 2 if same else 0
    windows = [x[:, :, max(o * step - lead, 0) : o * step - lead + 2] for o in range(out)]
    shown = {"window": (2,), "stride": (step,), "pad": "same" if same else "valid"}
    inputs = {"x": x, **ends(-1, 2)}
    found = results("ranged_pool", inputs, kind="mean" if mean else "max", **shown)
    for y, low, high in found.values():
        assert [float(low), float(high)] == [-1, 2]
        if mean:
            exact = np.stack([w.mean(-1) for w in windows], -1)
            assert (np.abs(y - exact) <= 0.5).all()
        else:
            assert np.array_equal(y, np.stack([w.max(-1) for w in windows], -1))


@given(data=st.data(), dtype=st.sampled_from(["u1", "i4"]))
@few
def test_another_shape(data: st.DataObject, dtype: str) -> None:
    x = numbers(data, data.draw(st.sampled_from([(6,), (2, 3), (3, 1, 2)])), dtype)
    wanted = data.draw(st.sampled_from([(6,), (3, 2), (1, 2, 3)]))
    agrees("ranged_reshape", {"x": x, **ends(-1, 2)},
           [x.reshape(wanted), np.asarray(-1.0), np.asarray(2.0)], shape=wanted)  # fmt: skip


@given(data=st.data(), range_=ENDS)
@few
def test_the_range_that_is_met(data: st.DataObject, range_: tuple[int, int]) -> None:
    x = numbers(data, data.draw(st.sampled_from([(1,), (2, 3)])), "i4")
    low, high = range_
    stood = low + (x.astype(float) + 2**31) * ((high - low) / (2**32 - 1))
    agrees("requantization_range", {"x": x, **ends(low, high)},
           [stood.min(), stood.max()], operations=8, magnitude=18.0)  # fmt: skip


@given(data=st.data(), range_=ENDS, wanted=ENDS)
@few
def test_bytes_of_wide_numbers(
    data: st.DataObject, range_: tuple[int, int], wanted: tuple[int, int]
) -> None:
    x = numbers(data, (2, 3), "i4")
    low, high = range_
    stood = low + (x.astype(float) + 2**31) * ((high - low) / (2**32 - 1))
    place = np.clip((stood - wanted[0]) * 255 / (wanted[1] - wanted[0]), 0, 255)
    inputs = {"x": x, **ends(low, high), **ends(*wanted, "wanted_")}
    for y, first, last in results("requantize", inputs).values():
        assert [float(first), float(last)] == [*wanted]
        assert (np.abs(y - place) <= 0.5 + 1e-6).all()


def test_a_range_that_does_not_ascend_is_open() -> None:
    x = np.array([0, 9], np.uint8)
    found = left_open("ranged_relu", {"x": x, **ends(1, 1)})
    assert found is not None
    assert found.all()
