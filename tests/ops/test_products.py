"""Powers, systems and distances of matrices, products over axes, and windows that are no sums."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang
from irlang.interp.program import balls
from tests.ops.compare import agrees, integers, reals, shapes

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")
few = settings(max_examples=15)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def regular(data: st.DataObject, *batch: int) -> Any:
    """Square matrices whose diagonals outweigh the rest."""
    n = data.draw(st.integers(1, 3))
    return data.draw(reals((*batch, n, n), -1, 1)) + 4 * np.eye(n)


@given(data=st.data())
@few
def test_systems_of_equations(data: st.DataObject) -> None:
    a = regular(data, 2)
    b = data.draw(reals((2, a.shape[-1], 2)))
    rounded: dict[str, Any] = {"operations": 200, "magnitude": 200.0}
    agrees("solve", {"a": a, "b": b}, np.linalg.solve(a, b), **rounded)
    agrees("log_determinant", {"x": -a}, list(np.linalg.slogdet(-a)), **rounded)


def _eliminated(a: Any, b: Any) -> Any:
    """The solution of a system in f32, of which what is below the least normal number is lost."""
    tiny = np.finfo(np.float32).tiny

    def kept(x: Any) -> Any:
        return np.where(np.abs(x) < tiny, np.float32(0), np.asarray(x, np.float32))

    a, b = np.array(a, np.float32), kept(b)
    n = len(a)
    for k in range(n):
        at = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, at]], b[[k, at]] = a[[at, k]], b[[at, k]]
        for i in range(k + 1, n):
            factor = kept(a[i, k] / a[k, k])
            a[i, k:] = kept(a[i, k:] - kept(factor * a[k, k:]))
            b[i] = kept(b[i] - kept(factor * b[k]))
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            b[k] = kept(b[k] - kept(a[k, j] * b[j]))
        b[k] = kept(b[k] / a[k, k])
    return b


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 5), near=st.sampled_from([1e-3, 0.1, 1]))
@settings(max_examples=60)
def test_a_system_near_the_least_number_may_lose_its_rows(seed: int, n: int, near: float) -> None:
    """As TensorFlow does; an inverse with large elements makes normal numbers of what is lost."""
    random = np.random.default_rng(seed)
    a = random.standard_normal((n, n)).astype(np.float32)
    a[-1] = a[0] + random.standard_normal(n) * near
    b = (random.standard_normal((n, 1)) * 10.0 ** random.uniform(-39, -37)).astype(np.float32)
    made = irlang.loads(
        f"nnir 1\nmodel m(a: f32[{n}, {n}], b: f32[{n}, 1]) -> y: f32[{n}, 1] {{\n"
        "  y = solve(a, b)\n}\n"
    )
    ball = balls(made.graph, {"a": a, "b": b}, made.catalog, "f32")["y"]
    assert np.all(np.abs(_eliminated(a, b) - ball.value) <= ball.bound)


@given(data=st.data(), n=st.integers(0, 4))
@few
def test_powers(data: st.DataObject, n: int) -> None:
    x = data.draw(reals((2, 3, 3), -2, 2))
    agrees("matrix_power", {"x": x}, np.linalg.matrix_power(x, n), operations=24,
           magnitude=1296.0, n=n)  # fmt: skip
    for base in (x[0, 0], data.draw(integers((3,), np.int64, -9, 9))):
        for increasing in (False, True):
            expected = np.vander(base, n, increasing)
            agrees("vander", {"x": base}, expected, operations=4, columns=n, increasing=increasing)


@given(data=st.data(), lower=st.integers(-1, 3), upper=st.integers(-1, 3))
@few
def test_bands(data: st.DataObject, lower: int, upper: int) -> None:
    x = data.draw(reals((2, 3, 4)))
    expected = tf.linalg.band_part(x, min(lower, 3), min(upper, 4)).numpy()
    agrees("band_part", {"x": x}, expected, lower=lower, upper=upper)


@given(data=st.data(), p=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf]))
@few
def test_distances(data: st.DataObject, p: float) -> None:
    a, b = data.draw(reals((2, 3, 3))), data.draw(reals((2, 2, 3)))
    expected = np.linalg.norm(a[:, :, None] - b[:, None], p, -1)
    agrees("cdist", {"a": a, "b": b}, expected, operations=40, magnitude=40.0, p=p)
    if 0 < p < np.inf:
        near = np.linalg.norm(a[:, :2] - b + 1e-6, p, -1)
        agrees("pairwise_distance", {"a": a[:, :2].copy(), "b": b}, near, operations=40,
               magnitude=40.0, p=p)  # fmt: skip


@given(data=st.data())
@few
def test_products_over_axes(data: st.DataObject) -> None:
    a, b = data.draw(reals((2, 3, 4))), data.draw(reals((4, 2, 2)))
    expected = np.tensordot(a, b, ([2, 0], [0, 1]))
    agrees("tensordot", {"a": a, "b": b}, expected, operations=16, magnitude=300.0,
           a_axes=(-1, 0), b_axes=(0, 1))  # fmt: skip
    c, x, y = data.draw(reals((2, 3, 2))), a, data.draw(reals((2, 4, 2)))
    for beta in (0.0, 2.0):
        expected = torch.baddbmm(*map(torch.from_numpy, (c, x, y)), beta=beta, alpha=0.5).numpy()
        agrees("baddbmm", {"c": c, "a": x, "b": y}, expected, operations=16, magnitude=200.0,
               beta=beta, alpha=0.5)  # fmt: skip


@given(data=st.data(), k=st.integers(-5, 5))
@few
def test_quarters(data: st.DataObject, k: int) -> None:
    x = data.draw(reals(data.draw(shapes(least=2))))
    first, second = data.draw(st.permutations(range(x.ndim)))[:2]
    axes = (first, second)
    agrees("rot90", {"x": x}, np.rot90(x, k, axes), k=k, axes=axes)


@given(data=st.data(), mode=st.sampled_from(["sum", "mean", "max"]))
@few
def test_bags(data: st.DataObject, mode: str) -> None:
    table, ids = data.draw(reals((4, 3))), data.draw(integers((2, 3), np.int64, 0, 3))
    weights = data.draw(reals((2, 3))) if mode == "sum" else None
    given_: dict[str, Any] = {"table": table, "ids": ids}
    given_ |= {} if weights is None else {"weights": weights}
    expected = torch.nn.functional.embedding_bag(
        torch.from_numpy(ids), torch.from_numpy(table), mode=mode,
        per_sample_weights=None if weights is None else torch.from_numpy(weights),
    ).numpy()  # fmt: skip
    agrees("embedding_bag", given_, expected, operations=8, magnitude=100.0, mode=mode)


@given(data=st.data(), mode=st.sampled_from(["sum", "mean", "max"]))
@few
def test_bags_behind_one_another(data: st.DataObject, mode: str) -> None:
    """Some of them empty, and the last to the end."""
    table, ids = data.draw(reals((4, 3))), data.draw(integers((5,), np.int64, 0, 3))
    offsets = np.sort(np.append(0, data.draw(integers((2,), np.int64, 0, 5))))
    weights = data.draw(reals((5,))) if mode == "sum" else None
    given_: dict[str, Any] = {"table": table, "ids": ids, "offsets": offsets}
    given_ |= {} if weights is None else {"weights": weights}
    expected = torch.nn.functional.embedding_bag(
        torch.from_numpy(ids), torch.from_numpy(table), torch.from_numpy(offsets), mode=mode,
        per_sample_weights=None if weights is None else torch.from_numpy(weights),
    ).numpy()  # fmt: skip
    agrees("embedding_bag_offsets", given_, expected, operations=12, magnitude=100.0, mode=mode)


@given(data=st.data(), pad=st.sampled_from(["same", "valid"]))
@few
def test_windows_that_are_no_sums(data: st.DataObject, pad: str) -> None:
    x, w = data.draw(reals((1, 2, 5, 4))), data.draw(reals((2, 2, 2)))
    stride, dilation = (tuple(data.draw(st.integers(1, 2)) for _ in range(2)) for _ in range(2))
    for op, function in (("grey_dilation", tf.nn.dilation2d), ("grey_erosion", tf.nn.erosion2d)):
        expected = function(
            x.transpose(0, 2, 3, 1), w.transpose(1, 2, 0), [1, *stride, 1], pad.upper(), "NHWC",
            [1, *dilation, 1],
        ).numpy()  # fmt: skip
        agrees(op, {"x": x, "w": w}, expected.transpose(0, 3, 1, 2).copy(), operations=2,
               magnitude=12.0, stride=stride, dilation=dilation, pad=pad)  # fmt: skip


@given(data=st.data(), reduction=st.sampled_from(["mean", "sum", "none"]))
@few
def test_small_ones(data: st.DataObject, reduction: str) -> None:
    x = data.draw(reals((3, 4)))
    agrees("crelu", {"x": x}, tf.nn.crelu(x, 0).numpy(), axis=0)
    agrees("l2_loss", {"x": x}, np.asarray(tf.nn.l2_loss(x)), operations=16, magnitude=300.0)
    target, weight = data.draw(reals((3, 4), 0, 1)), data.draw(reals((4,), 0, 2))
    expected = torch.nn.functional.multilabel_soft_margin_loss(
        *map(torch.from_numpy, (x, target, weight)), reduction=reduction
    ).numpy()
    given_ = {"x": x, "target": target, "weight": weight}
    agrees("multilabel_soft_margin", given_, expected, operations=32, magnitude=40.0,
           reduction=reduction)  # fmt: skip


@given(data=st.data())
@few
def test_images(data: st.DataObject) -> None:
    a, b = (data.draw(reals((2, 3, 2, 2), 0, 2)) for _ in range(2))
    error = np.square(a - b).mean((1, 2, 3))
    expected = 10 * np.log10(4 / error)
    agrees("psnr", {"a": a, "b": b}, expected, operations=64, magnitude=40.0, max_value=2)
    expected = tf.image.total_variation(tf.constant(a)).numpy()
    agrees("total_variation", {"x": a}, expected, operations=32, magnitude=40.0)
    mean = a.mean((1, 2), keepdims=True)
    agrees("adjust_contrast", {"x": a}, (a - mean) * 3 + mean, operations=32, magnitude=8.0,
           factor=3)  # fmt: skip


@given(start=st.integers(-8, 8), stop=st.integers(-8, 8), count=st.integers(0, 9))
@few
def test_powers_evenly_apart(start: int, stop: int, count: int) -> None:
    expected = np.logspace(start / 4, stop / 4, count, base=3)
    agrees("logspace", {}, expected, operations=64, magnitude=10.0, start=start / 4, stop=stop / 4,
           count=count, base=3, to="f64")  # fmt: skip


@given(start=st.integers(-8, 8), stop=st.integers(-8, 8), count=st.integers(0, 9))
@few
def test_numbers_evenly_apart(start: int, stop: int, count: int) -> None:
    expected = np.linspace(start / 4, stop / 4, count)
    agrees("linspace", {}, expected, operations=4, magnitude=2.0, start=start / 4, stop=stop / 4,
           count=count, to="f64")  # fmt: skip
