"""Attention against PyTorch and Keras, in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")


def values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-2, 2, shape)


def looking(rng: np.random.Generator, *shape: int) -> Array:
    """A mask that lets every row look at its first position at least."""
    mask = rng.random(shape) < 0.5
    mask[..., 0] = True
    return mask


@settings(max_examples=40)
@given(st.data())
def test_attention_is_that_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b, n, m, e, d = (data.draw(st.integers(1, 3)) for _ in range(5))
    g, per = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    q, k, v = values(rng, b, g * per, n, e), values(rng, b, g, m, e), values(rng, b, g, m, d)
    inputs = {"q": q, "k": k, "v": v}
    scale = data.draw(st.sampled_from((None, 0.25)))
    attrs = {} if scale is None else {"scale": scale}
    how = data.draw(st.sampled_from(("plain", "causal", "mask", "bias")))
    extra = None
    if how == "mask":
        shape = data.draw(st.sampled_from(((n, m), (1, 1, m), (b, 1, n, m))))
        inputs["mask"] = looking(rng, *shape)
        extra = torch.tensor(inputs["mask"])
    elif how == "bias":
        shape = data.draw(st.sampled_from(((n, m), (g * per, n, 1), (b, 1, n, m))))
        inputs["bias"] = values(rng, *shape)
        extra = torch.tensor(inputs["bias"]).expand(b, g * per, n, m)
    native = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, (q, k, v)), attn_mask=extra, is_causal=how == "causal", scale=scale,
        enable_gqa=True,
    )  # fmt: skip
    call("attention", inputs, causal=how == "causal", **attrs)["y"].check(native.numpy())


def test_who_may_look_at_nothing_gets_no_verdict() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (values(rng, 1, 1, 2, 3) for _ in range(3))
    mask = np.array([[False, False], [True, False]])
    result = call("attention", {"q": q, "k": k, "v": v, "mask": mask})["y"]
    assert np.isinf(result.radius[0, 0]).tolist() == [[True] * 3, [False] * 3]
    np.testing.assert_array_equal(result.value[0, 0, 1], v[0, 0, 0])
    # the first may look at itself only, which the mask forbids
    mask = np.array([[False, True], [True, True]])
    result = call("attention", {"q": q, "k": k, "v": v, "mask": mask}, causal=True)["y"]
    assert np.isinf(result.radius[0, 0, :, 0]).tolist() == [True, False]


@settings(max_examples=25)
@given(st.data())
def test_multi_head_attention_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b, n, m, h, o = (data.draw(st.integers(1, 3)) for _ in range(5))
    # Keras rounds 1 / sqrt(d) to float32, which 1 / 2 survives; and its TensorFlow backend adds a
    # bias of shape [h, 1] along the second axis (keras.ops.add, 3.15), so no head has size 1.
    d, p = 4, data.draw(st.integers(2, 3))
    q, k, v = values(rng, b, n, 3), values(rng, b, m, 2), values(rng, b, m, 4)
    weights = {
        "wq": values(rng, 3, h, d), "bq": values(rng, h, d),
        "wk": values(rng, 2, h, d), "bk": values(rng, h, d),
        "wv": values(rng, 4, h, p), "bv": values(rng, h, p),
        "wo": values(rng, h, p, o), "bo": values(rng, o),
    }  # fmt: skip
    layer = tf.keras.layers.MultiHeadAttention(
        h, d, p, output_shape=o, dtype="float64", flash_attention=False
    )
    layer.build(q.shape, v.shape, k.shape)
    layer.set_weights(list(weights.values()))
    inputs = {"q": q, "k": k, "v": v, **weights}
    causal, masked = data.draw(st.booleans()), data.draw(st.booleans())
    mask = looking(rng, b, n, m) if masked else None
    native = layer(q, v, k, attention_mask=mask, use_causal_mask=causal).numpy()
    if mask is not None:
        inputs["mask"] = mask[:, None]
    call("multi_head_attention", inputs, causal=causal)["y"].check(native)


@settings(max_examples=25)
@given(st.data())
def test_rotary_embedding_turns_complex_numbers(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lead = data.draw(st.lists(st.integers(1, 2), max_size=2))
    steps, pairs = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    rest = data.draw(st.integers(0, 2))
    x, angle = values(rng, *lead, steps, 2 * pairs + rest), values(rng, steps, pairs)
    cos, sin = np.cos(angle), np.sin(angle)
    interleaved = data.draw(st.booleans())
    part = x[..., : 2 * pairs]
    re, im = (part[..., ::2], part[..., 1::2]) if interleaved else np.split(part, 2, axis=-1)
    turned = (re + 1j * im) * (cos + 1j * sin)
    halves = [turned.real, turned.imag]
    whole = np.stack(halves, -1).reshape(part.shape) if interleaved else np.concatenate(halves, -1)
    expected = np.concatenate([whole, x[..., 2 * pairs :]], axis=-1)
    inputs = {"x": x, "cos": cos, "sin": sin}
    call("rotary_embedding", inputs, interleaved=interleaved)["y"].check(expected)
