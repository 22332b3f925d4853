"""Normalisation against PyTorch, TensorFlow and Keras, in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call, refused

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")

F = torch.nn.functional


def values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-2, 2, shape)


def shape(data: st.DataObject, low: int, high: int) -> list[int]:
    return data.draw(st.lists(st.integers(1, 4), min_size=low, max_size=high))


@settings(max_examples=30)
@given(st.data())
def test_batch_norm(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = shape(data, 2, 4)
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    x, c = values(rng, *sizes), sizes[axis]
    scale, bias, mean, var = (values(rng, c) for _ in range(4))
    var = np.abs(var)
    eps = data.draw(st.sampled_from((1e-5, 1e-3)))
    given_ = {"x": x, "scale": scale, "bias": bias, "mean": mean, "var": var}
    result = call("batch_norm", given_, axis=axis, eps=eps)["y"]
    over = torch.tensor(np.moveaxis(x, axis, 1 if x.ndim > 1 else 0))
    native = F.batch_norm(over, *map(torch.tensor, (mean, var, scale, bias)), eps=eps).numpy()
    result.check(np.moveaxis(native, 1, axis))
    if axis == -1 or axis == len(sizes) - 1:
        result.check(tf.nn.batch_normalization(x, mean, var, bias, scale, eps).numpy())


@settings(max_examples=25)
@given(st.data())
def test_batch_norm_train(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = [data.draw(st.integers(2, 4)), *shape(data, 1, 3)]
    x = values(rng, *sizes)
    c = sizes[1]
    scale, bias = values(rng, c), values(rng, c)
    result = call("batch_norm_train", {"x": x, "scale": scale, "bias": bias}, correction=1)
    mean, var = torch.zeros(c, dtype=torch.float64), torch.zeros(c, dtype=torch.float64)
    native = F.batch_norm(
        torch.tensor(x), mean, var, torch.tensor(scale), torch.tensor(bias), True, 1.0
    )
    result["y"].check(native.numpy())
    result["mean"].check(mean.numpy())
    result["var"].check(var.numpy())
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    call("batch_norm_train", {"x": x})["var"].check(x.var(axes))
    assert refused("batch_norm_train", {"x": (1, 3)}, correction=1) == ["batch_norm_train.elements"]


@settings(max_examples=30)
@given(st.data())
def test_layer_norm_and_rms_norm(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = shape(data, 1, 4)
    rank = len(sizes)
    axes = sorted(data.draw(st.sets(st.integers(0, rank - 1), min_size=1)))
    inner = [sizes[axis] for axis in axes]
    x, gamma, beta = values(rng, *sizes), values(rng, *inner), values(rng, *inner)
    signed = tuple(axis - rank if data.draw(st.booleans()) else axis for axis in axes)
    result = call("layer_norm", {"x": x, "gamma": gamma, "beta": beta}, axes=signed, eps=1e-3)["y"]
    last = tuple(range(rank - len(axes), rank))
    moved = torch.tensor(np.moveaxis(x, axes, last))
    native = F.layer_norm(moved, inner, torch.tensor(gamma), torch.tensor(beta), 1e-3).numpy()
    result.check(np.moveaxis(native, last, axes))
    root = call("rms_norm", {"x": x, "gamma": gamma}, axes=signed, eps=1e-3)["y"]
    native = F.rms_norm(moved, inner, torch.tensor(gamma), 1e-3).numpy()
    root.check(np.moveaxis(native, last, axes))


@settings(max_examples=20)
@given(st.data())
def test_layer_norm_over_axes_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = values(rng, *(data.draw(st.integers(1, 4)) for _ in range(3)))
    axes = data.draw(st.sampled_from(([1], [2], [1, 2], [-1], [-2, -1])))
    layer = tf.keras.layers.LayerNormalization(axis=axes, epsilon=1e-3, dtype="float64")
    layer.build(x.shape)
    gamma, beta = (values(rng, *weight.shape) for weight in layer.get_weights())
    layer.set_weights([gamma, beta])
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    call("layer_norm", inputs, axes=tuple(axes), eps=1e-3)["y"].check(layer(x).numpy())
    if len(axes) == 1:  # one number is that axis alone
        call("layer_norm", inputs, axes=axes[0], eps=1e-3)["y"].check(layer(x).numpy())


@settings(max_examples=30)
@given(st.data())
def test_group_and_instance_norm(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    groups, per = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    c = groups * per
    # PyTorch refuses a single position
    samples, positions = data.draw(st.integers(1, 2)), data.draw(st.integers(2, 4))
    x = values(rng, samples, c, positions, *shape(data, 0, 1))
    gamma, beta = values(rng, c), values(rng, c)
    arguments = torch.tensor(gamma), torch.tensor(beta)
    # the channels' axis: second, or last
    axis = data.draw(st.sampled_from((1, -1)))
    inputs = {"x": np.moveaxis(x, 1, axis), "gamma": gamma, "beta": beta}
    result = call("group_norm", inputs, groups=groups, axis=axis, eps=1e-3)["y"]
    native = F.group_norm(torch.tensor(x), groups, *arguments, eps=1e-3).numpy()
    result.check(np.moveaxis(native, 1, axis))
    instance = call("instance_norm", inputs, axis=axis, eps=1e-3)["y"]
    native = F.instance_norm(torch.tensor(x), weight=arguments[0], bias=arguments[1], eps=1e-3)
    instance.check(np.moveaxis(native.numpy(), 1, axis))


def test_one_position_is_normalised_to_the_shift() -> None:
    x, beta = values(np.random.default_rng(0), 1, 3, 1), np.array([1.0, 2.0, 3.0])
    call("group_norm", {"x": x, "beta": beta}, groups=3)["y"].check(beta[None, :, None])
    call("instance_norm", {"x": x, "beta": beta})["y"].check(beta[None, :, None])


@settings(max_examples=30)
@given(st.data())
def test_normalize(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = values(rng, *shape(data, 1, 3))
    axis = data.draw(st.integers(0, x.ndim - 1))
    order = data.draw(st.sampled_from((1, 2, 3, 2.5)))
    result = call("normalize", {"x": x}, axes=axis, p=order)["y"]
    result.check(F.normalize(torch.tensor(x), order, axis).numpy())
    axes = data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
    result = call("l2_normalize", {"x": x}, axes=tuple(sorted(axes)))["y"]
    result.check(tf.math.l2_normalize(x, sorted(axes)).numpy())


@pytest.mark.parametrize("limit", [0.5, 4.0])
def test_a_vector_that_is_too_long_is_clipped(limit: float) -> None:
    x = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [0.1, 0.2, -0.2]])
    result = call("clip_by_norm", {"x": x}, limit=limit)["y"]
    result.check(tf.clip_by_norm(x, limit, axes=[-1]).numpy())


def test_normalize_divides_a_zero_vector_by_eps() -> None:
    zero = np.zeros((2, 3))
    for name in ("normalize", "l2_normalize"):
        call(name, {"x": zero})["y"].check(zero)


@settings(max_examples=20)
@given(st.data())
def test_local_response_norm(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = values(rng, 2, data.draw(st.integers(1, 6)), *shape(data, 1, 2))
    size = data.draw(st.integers(1, 5))
    alpha, beta, bias = 0.5, data.draw(st.sampled_from((0.75, 2.0))), 1.5
    # PyTorch has one neighbour more before, where the definition (ONNX) has one more after
    turned = torch.tensor(np.flip(x, 1).copy())
    native = np.flip(F.local_response_norm(turned, size, alpha, beta, bias).numpy(), 1)
    attrs = {"size": size, "alpha": alpha, "beta": beta, "bias": bias}
    call("local_response_norm", {"x": x}, **attrs)["y"].check(native)
    straight = F.local_response_norm(torch.tensor(x), size, alpha, beta, bias).numpy()
    call("local_response_norm", {"x": x}, **attrs, before=size // 2)["y"].check(straight)


@settings(max_examples=10)
@given(st.data())
def test_the_epsilon_of_mean_variance_normalization(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, axes = values(rng, 3, 2, *shape(data, 2, 2)), (0, 2, 3)
    deviation = x.std(axes, keepdims=True) + 0.01
    expected = (x - x.mean(axes, keepdims=True)) / deviation
    attrs = {"axes": axes, "eps": 0.01, "eps_to": "deviation"}
    call("layer_norm", {"x": x}, **attrs)["y"].check(expected)


@settings(max_examples=30)
@given(st.data())
def test_softmax(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = values(rng, *shape(data, 1, 3)) * data.draw(st.sampled_from((1, 100)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    call("softmax", {"x": x}, axis=axis)["y"].check(torch.softmax(torch.tensor(x), axis).numpy())
    result = call("log_softmax", {"x": x}, axis=axis)["y"]
    result.check(torch.log_softmax(torch.tensor(x), axis).numpy())
    result.check(tf.nn.log_softmax(x, axis).numpy())


# ---- of weights


@pytest.mark.parametrize("iterations", [1, 3])
def test_spectral_norm_is_that_of_keras(iterations: int) -> None:
    rng = np.random.default_rng(iterations)
    w, u = rng.uniform(-1, 1, (2, 3, 4)), rng.uniform(-1, 1, 4)
    inner = tf.keras.layers.Conv1D(4, 2, use_bias=False, dtype="float64")
    layer = tf.keras.layers.SpectralNormalization(
        inner, power_iterations=iterations, dtype="float64"
    )
    layer.build((None, 5, 3))
    inner.kernel.assign(w)
    layer.vector_u.assign(u[None])
    new_u, kernel = layer.normalized_weights()
    found = call("spectral_norm", {"w": w, "u": u}, iterations=iterations)
    found["y"].check(np.asarray(kernel))
    found["new_u"].check(np.asarray(new_u)[0])


def test_spectral_norm_without_iterations_is_that_of_torch_evaluating() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 4, bias=False, dtype=torch.float64)
    layer = torch.nn.utils.parametrizations.spectral_norm(layer).eval()
    kept = layer.parametrizations.weight
    inputs = {"w": kept.original, "u": kept[0]._u, "v": kept[0]._v}
    arrays = {name: tensor.detach().numpy() for name, tensor in inputs.items()}
    found = call("spectral_norm", arrays, axis=0, iterations=0)
    found["y"].check(layer.weight.detach().numpy())
    found["new_v"].check(arrays["v"])
