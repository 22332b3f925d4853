"""Tensors made of sizes and numbers alone, against NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.dtypes import DTYPES
from tests.ops.compare import Array, agrees, shapes

few = settings(max_examples=30)
TYPES = st.sampled_from(["f32", "f64", "i32", "u8", "bool"])


def held(array: Array, to: str) -> Array:
    """Reals are kept unrounded."""
    return array.astype(np.float64 if DTYPES[to].kind == "real" else DTYPES[to].numpy)


@given(rows=st.integers(0, 4), columns=st.integers(0, 4), k=st.integers(-5, 5), to=TYPES)
@few
def test_eye(rows: int, columns: int, k: int, to: str) -> None:
    expected = held(np.eye(rows, columns, k), to)
    agrees("eye", {}, expected, rows=rows, columns=columns, k=k, to=to)
    agrees("eye", {}, np.eye(rows), rows=rows)


@given(start=st.integers(-5, 5), stop=st.integers(-5, 5), step=st.sampled_from([-3, -1, 1, 2]))
@few
def test_arange(start: int, stop: int, step: int) -> None:
    agrees("arange", {}, np.arange(start, stop, step), start=start, stop=stop, step=step)
    halves = np.arange(start / 2, stop / 2, step / 4)
    agrees("arange", {}, halves, to="f64", start=start / 2, stop=stop / 2, step=step / 4)


@given(shape=shapes(), value=st.sampled_from([0, 1, 2.5, -3]), to=TYPES)
@few
def test_full(shape: tuple[int, ...], value: float, to: str) -> None:
    if to == "u8" and value < 0:
        return
    agrees("full", {}, held(np.full(shape, value), to), shape=shape, value=value, to=to)
