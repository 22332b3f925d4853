"""Windows, caches, soft caps, grouped heads and other attentions against ONNX's and Keras's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call
from tests.ops.test_attention import looking, values

onnx = pytest.importorskip("onnx")
tf = pytest.importorskip("tensorflow")
torch = pytest.importorskip("torch")


def by_onnx(op: str, inputs: dict[str, Array | None], outputs: int, **attrs: Any) -> list[Array]:
    """The results of a node of ONNX's reference implementation; None for an input left out."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    node = helper.make_node(
        op,
        [name if array is not None else "" for name, array in inputs.items()],
        [f"y{i}" for i in range(outputs)],
        **attrs,
    )
    given_ = {name: array for name, array in inputs.items() if array is not None}

    def info(name: str, array: Array) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, array.shape)

    graph = helper.make_graph(
        [node], "g", [info(name, array) for name, array in given_.items()],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)])
    return list(ReferenceEvaluator(model).run(None, given_))


_STAGES = ("product", "softcap", "bias", "softmax")  # qk_matmul_output_mode


@settings(max_examples=60)
@given(st.data())
def test_attention_is_that_of_onnx(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    b, n, m, e, d = (data.draw(st.integers(1, 3)) for _ in range(5))
    g, per = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    past = data.draw(st.integers(0, 2))
    q, k, v = values(rng, b, g * per, n, e), values(rng, b, g, m, e), values(rng, b, g, m, d)
    inputs: dict[str, Array] = {"q": q, "k": k, "v": v}
    given_: dict[str, Array | None] = dict.fromkeys(("attn_mask", "pk", "pv", "lengths"))
    attrs: dict[str, Any] = {"scale": 0.25, "masked_rows": "zero"}
    if past:
        given_["pk"], given_["pv"] = values(rng, b, g, past, e), values(rng, b, g, past, d)
        inputs["k"] = np.concatenate([given_["pk"], k], axis=2)
        inputs["v"] = np.concatenate([given_["pv"], v], axis=2)
        attrs["past"] = past
    elif data.draw(st.booleans()):
        given_["lengths"] = inputs["kv_lengths"] = rng.integers(0, m + 1, b)
    how = data.draw(st.sampled_from(("plain", "mask", "bias")))
    shape = data.draw(st.sampled_from(((n, m + past), (g * per, n, m + past), (b, 1, n, m + past))))
    if how == "mask":
        given_["attn_mask"] = inputs["mask"] = rng.random(shape) < 0.6
    elif how == "bias":
        drawn = values(rng, *shape)
        given_["attn_mask"] = inputs["bias"] = np.where(rng.random(shape) < 0.3, -np.inf, drawn)
    more = {
        "left_window_size": data.draw(st.integers(-1, 2)),
        "right_window_size": data.draw(st.integers(-1, 2)),
        "softcap": data.draw(st.sampled_from((0.0, 2.0, -2.0))),
    }
    # where there is a soft cap, the reference has no way to give the product before it
    causal, mode = data.draw(st.booleans()), data.draw(st.integers(bool(more["softcap"]), 3))
    y, *_, scores = by_onnx(
        "Attention", {"Q": q, "K": k, "V": v, **given_}, 4, scale=0.25, is_causal=int(causal),
        qk_matmul_output_mode=mode, **more,
    )  # fmt: skip
    attrs |= {"causal": causal, **more}
    call("attention", inputs, **attrs)["y"].check(y)
    del inputs["v"]
    call("attention_scores", inputs, stage=_STAGES[mode], **attrs)["p"].check(scores)


def test_no_keys_at_all_give_zero_if_so_specified() -> None:
    q, k, v = np.ones((1, 2, 3, 2)), np.ones((1, 1, 0, 2)), np.ones((1, 1, 0, 4))
    found = call("attention", {"q": q, "k": k, "v": v}, masked_rows="zero")["y"]
    np.testing.assert_array_equal(found.value, np.zeros((1, 2, 3, 4)))
    assert np.isinf(call("attention", {"q": q, "k": k, "v": v})["y"].radius).all()


@settings(max_examples=20)
@given(st.data())
def test_grouped_query_attention_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b, n, m = (data.draw(st.integers(1, 3)) for _ in range(3))
    d, g, h = 4, 2, data.draw(st.sampled_from((2, 4)))  # whose scale 1 / 2 float32 has too
    q, k, v = values(rng, b, n, 3), values(rng, b, m, 3), values(rng, b, m, 3)
    weights = {
        "wq": values(rng, 3, h, d), "bq": values(rng, h, d),
        "wk": values(rng, 3, g, d), "bk": values(rng, g, d),
        "wv": values(rng, 3, g, d), "bv": values(rng, g, d),
        "wo": values(rng, h, d, 3), "bo": values(rng, 3),
    }  # fmt: skip
    layer = tf.keras.layers.GroupQueryAttention(d, h, g, dtype="float64", flash_attention=False)
    layer.build(q.shape, v.shape, k.shape)
    layer.set_weights(list(weights.values()))
    causal, masked = data.draw(st.booleans()), data.draw(st.booleans())
    mask = looking(rng, b, n, m) if masked else None
    native = layer(q, v, k, attention_mask=mask, use_causal_mask=causal).numpy()
    inputs = {"q": q, "k": k, "v": v, **weights}
    if mask is not None:
        inputs["mask"] = mask[:, None]
    call("multi_head_attention", inputs, causal=causal)["y"].check(native)


@settings(max_examples=25)
@given(st.data())
def test_additive_attention_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b, n, m, e, d = (data.draw(st.integers(1, 3)) for _ in range(5))
    q, k, v = values(rng, b, n, e), values(rng, b, m, e), values(rng, b, m, d)
    inputs = {"q": q, "k": k, "v": v}
    mode, causal = (
        data.draw(st.sampled_from(("plain", "scale", "concat"))),
        data.draw(st.booleans()),
    )
    if mode == "concat":
        layer = tf.keras.layers.Attention(score_mode="concat", dtype="float64")
        layer.build([q.shape, v.shape, k.shape])
        inputs["scale"] = values(rng)
        layer.set_weights([inputs["scale"]])
    else:
        layer = tf.keras.layers.AdditiveAttention(use_scale=mode == "scale", dtype="float64")
        layer.build([q.shape, v.shape, k.shape])
        if mode == "scale":
            inputs["scale"] = values(rng, e)
            layer.set_weights([inputs["scale"]])
    masks = None
    if data.draw(st.booleans()):
        mask = looking(rng, b, m)
        inputs["mask"], masks = mask[:, None], [None, tf.constant(mask)]
    y, weights = layer(
        [tf.constant(a) for a in (q, v, k)], mask=masks, use_causal_mask=causal,
        return_attention_scores=True,
    )  # fmt: skip
    found = call("additive_attention", inputs, causal=causal)
    found["y"].check(y.numpy())
    found["weights"].check(weights.numpy())


@settings(max_examples=25)
@given(st.data())
def test_linear_attention_goes_step_by_step(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b, g, per, n, d, p = (data.draw(st.integers(1, 2)) for _ in range(6))
    q, k = values(rng, b, g * per, n, d), values(rng, b, g, n, d)
    v, state = values(rng, b, g, n, p), values(rng, b, g, d, p)
    inputs = {"q": q, "k": k, "v": v, "state": state}
    delta, gated = data.draw(st.booleans()), data.draw(st.booleans())
    decay, beta = np.zeros((b, g, n, 1)), np.ones((b, g, n))
    if gated:
        inputs["decay"] = decay = -rng.uniform(0, 1, (b, g, n, data.draw(st.sampled_from((1, d)))))
    if delta:
        inputs["beta"] = beta = rng.uniform(0, 1, (b, g, n))
    y = np.zeros((b, g * per, n, p))
    for t in range(n):
        state = np.exp(decay[:, :, t, :, None]) * state
        held = np.einsum("bgdp,bgd->bgp", state, k[:, :, t]) if delta else 0
        new = beta[:, :, t, None] * (v[:, :, t] - held)
        state = state + k[:, :, t, :, None] * new[:, :, None]
        y[:, :, t] = 0.25 * np.einsum("bhd,bhdp->bhp", q[:, :, t], np.repeat(state, per, 1))
    rule = "delta" if delta else "linear"
    found = call("linear_attention", inputs, scale=0.25, update_rule=rule)
    found["y"].check(y)
    found["last"].check(state)


def test_alibi_falls_with_the_distance() -> None:
    slopes = np.array([0.5, 0.25])
    found = call("alibi_bias", {"slopes": slopes}, queries=2, keys=4, past=2)["y"]
    gap = np.array([[2, 1, 0, 1], [3, 2, 1, 0]])
    found.check(-slopes[:, None, None] * gap)


@settings(max_examples=15)
@given(st.data())
def test_rotary_embedding_is_that_of_onnx(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b, h, n, pairs = (data.draw(st.integers(1, 3)) for _ in range(4))
    rest, interleaved = 2 * data.draw(st.integers(0, 1)), data.draw(st.booleans())
    x, angle = values(rng, b, h, n, 2 * pairs + rest), values(rng, b, n, pairs)
    cos, sin = np.cos(angle), np.sin(angle)
    (y,) = by_onnx(
        "RotaryEmbedding", {"x": x, "c": cos, "s": sin}, 1, interleaved=int(interleaved),
        rotary_embedding_dim=2 * pairs,
    )  # fmt: skip
    inputs = {"x": x, "cos": cos[:, None], "sin": sin[:, None]}
    call("rotary_embedding", inputs, interleaved=interleaved)["y"].check(y)


def test_swiglu_is_silu_times_the_other() -> None:
    rng = np.random.default_rng(0)
    gate, x = values(rng, 2, 5), values(rng, 2, 5)
    native = torch.nn.functional.silu(torch.tensor(gate)).numpy() * x
    call("swiglu", {"gate": gate, "x": x})["y"].check(native)
    native = gate / (1 + np.exp(-1.5 * gate)) * x
    call("swiglu", {"gate": gate, "x": x}, alpha=1.5)["y"].check(native)
