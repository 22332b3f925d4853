"""Products of vectors and matrices against NumPy, PyTorch, TensorFlow and Keras, in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees
from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")

SIZE = st.integers(1, 4)


def values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-2, 2, shape)


@settings(max_examples=20)
@given(st.data())
def test_dense(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lead = data.draw(st.lists(SIZE, max_size=3))
    c, f = data.draw(st.integers(0, 5)), data.draw(SIZE)
    x, w, b = values(rng, *lead, c), values(rng, c, f), values(rng, f)
    linear = torch.nn.functional.linear
    call("dense", {"x": x, "w": w, "b": b})["y"].check(
        linear(torch.tensor(x), torch.tensor(w.T), torch.tensor(b)).numpy()
    )
    call("dense", {"x": x, "w": w})["y"].check(x @ w)


@settings(max_examples=30)
@given(st.data())
def test_matmul_broadcasts_and_transposes(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    thin = [[n if data.draw(st.booleans()) else 1 for n in batch] for _ in range(2)]
    short = data.draw(st.integers(0, len(batch)))
    m, k, n = (data.draw(SIZE) for _ in range(3))
    ta, tb = data.draw(st.booleans()), data.draw(st.booleans())
    a = values(rng, *thin[0][short:], *((k, m) if ta else (m, k)))
    b = values(rng, *thin[1], *((n, k) if tb else (k, n)))
    result = call("matmul", {"a": a, "b": b}, transpose_a=ta, transpose_b=tb)["y"]
    result.check(tf.linalg.matmul(a, b, transpose_a=ta, transpose_b=tb).numpy())
    left, right = torch.tensor(a), torch.tensor(b)
    result.check(((left.mT if ta else left) @ (right.mT if tb else right)).numpy())


@settings(max_examples=25)
@given(st.data())
def test_dot_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    ranks = data.draw(st.sampled_from([(2, 2), (2, 3), (3, 2), (3, 3), (4, 3), (3, 4)]))
    axes = [data.draw(st.integers(1, rank - 1)) for rank in ranks]
    n, k = data.draw(SIZE), data.draw(st.integers(1, 4))
    shapes = [[n, *(data.draw(st.integers(1, 3)) for _ in range(rank - 1))] for rank in ranks]
    for shape, axis in zip(shapes, axes, strict=True):
        shape[axis] = k
    a, b = values(rng, *shapes[0]), values(rng, *shapes[1])
    normalize = data.draw(st.booleans())
    signed = [
        axis - rank if data.draw(st.booleans()) else axis
        for axis, rank in zip(axes, ranks, strict=True)
    ]
    result = call("dot", {"a": a, "b": b}, axes=tuple(signed), normalize=normalize)["y"]
    layer = tf.keras.layers.Dot(axes=tuple(axes), normalize=normalize, dtype="float64")
    result.check(layer([tf.constant(a), tf.constant(b)]).numpy())


def test_dot_of_a_zero_vector_divides_by_the_least_length() -> None:
    a, b = np.zeros((1, 3)), np.ones((1, 3))
    assert call("dot", {"a": a, "b": b}, normalize=True)["y"].value == 0


@settings(max_examples=15)
@given(st.data())
def test_outer_and_bilinear(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lead = data.draw(st.lists(SIZE, min_size=1, max_size=2))
    p, q, f = (data.draw(SIZE) for _ in range(3))
    a, b, w, c = values(rng, *lead, p), values(rng, *lead, q), values(rng, f, p, q), values(rng, f)
    call("outer", {"a": a, "b": b})["y"].check(np.multiply.outer(a, b))
    call("bilinear", {"a": a, "b": b, "w": w, "c": c})["y"].check(
        torch.nn.functional.bilinear(*map(torch.tensor, (a, b, w, c))).numpy()
    )


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 1), (1, 4), (2, 4)])
def test_gemm_is_a_scaled_sum(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    a, b, c = rng.uniform(-2, 2, (3, 2)), rng.uniform(-2, 2, (4, 3)), rng.uniform(-2, 2, shape)
    size = np.abs(0.5 * a.T) @ np.abs(b.T) + np.abs(2 * c)
    attrs = {"alpha": 0.5, "beta": 2, "transpose_a": True, "transpose_b": True}
    inputs = {"a": a, "b": b, "c": c}
    agrees("gemm", inputs, 0.5 * (a.T @ b.T) + 2 * c, operations=5, magnitude=size, **attrs)
    whole = {name: (4 * array).astype(np.int32) for name, array in inputs.items()}
    expected = whole["a"].T @ whole["b"].T + whole["c"]
    agrees("gemm", whole, expected.astype(np.int32), transpose_a=True, transpose_b=True)


def test_gemm_of_no_columns_is_what_is_added() -> None:
    inputs = {"a": np.ones((2, 0)), "b": np.ones((0, 3)), "c": np.array([1.0, 2.0, 3.0])}
    agrees("gemm", inputs, np.array([[1.0, 2.0, 3.0]] * 2))
