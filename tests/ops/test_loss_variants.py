"""Weights, ignored labels, margins and sequences: losses against PyTorch and Keras, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")
keras = pytest.importorskip("keras")
F = torch.nn.functional

REDUCTIONS = ("mean", "sum", "none")
pytestmark = pytest.mark.filterwarnings("ignore")


def drawn(data: st.DataObject) -> tuple[np.random.Generator, str]:
    return np.random.default_rng(data.draw(st.integers(0, 999))), data.draw(
        st.sampled_from(REDUCTIONS)
    )


def by_torch(loss: Any, *arrays: Array, **options: Any) -> Array:
    given_ = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    found: Array = loss(*map(torch.tensor, arrays), **given_).numpy()
    return found


# ---- classes


@settings(max_examples=50)
@given(st.data())
def test_labelled_classes_are_those_of_torch(data: st.DataObject) -> None:
    rng, reduction = drawn(data)
    n, k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    space = data.draw(st.lists(st.integers(1, 2), max_size=3))
    x = rng.uniform(-3, 3, (n, k, *space))
    labels = rng.integers(0, k, (n, *space))
    attrs: dict[str, Any] = {"reduction": reduction}
    options = dict(attrs)
    inputs: dict[str, Array] = {"labels": labels}
    if data.draw(st.booleans()):
        labels.flat[0] = attrs["ignore_index"] = data.draw(st.sampled_from((-100, -1, 0, 7)))
    options["ignore_index"] = attrs.get("ignore_index", -100)
    if data.draw(st.booleans()):
        inputs["weight"] = options["weight"] = rng.uniform(0.5, 2, k)
    if reduction == "mean" and (labels == options["ignore_index"]).all():
        return  # which divides by nothing
    call("nll", {"log_probs": x, **inputs}, axis=1, **attrs)["y"].check(
        by_torch(F.nll_loss, x, labels, **options)
    )
    smoothing = data.draw(st.sampled_from((0.0, 0.25, 1.0)))
    found = call(
        "cross_entropy", {"logits": x, **inputs}, axis=1, label_smoothing=smoothing, **attrs
    )
    found["y"].check(by_torch(F.cross_entropy, x, labels, label_smoothing=smoothing, **options))
    target = rng.uniform(0, 1, x.shape)
    del inputs["labels"], options["ignore_index"]
    attrs.pop("ignore_index", None)
    found = call(
        "categorical_cross_entropy", {"logits": x, "target": target, **inputs}, axis=1,
        label_smoothing=smoothing, **attrs,
    )  # fmt: skip
    found["y"].check(by_torch(F.cross_entropy, x, target, label_smoothing=smoothing, **options))


def test_a_mean_of_ignored_labels_has_no_value() -> None:
    inputs = {"logits": np.ones((2, 3)), "labels": np.array([-1, -1])}
    assert np.isnan(call("cross_entropy", inputs, ignore_index=-1)["y"].value)
    assert call("cross_entropy", inputs, ignore_index=-1, reduction="sum")["y"].value == 0
    inputs = {"log_probs": np.ones((2, 3)), "labels": np.array([-1, 5])}
    found = call("nll", inputs, ignore_index=(-1, 5), reduction="none")["y"]
    assert found.value.tolist() == [0, 0]


# ---- of every element, or of rows

ROWS: list[tuple[str, dict[str, Any], Any]] = [
    ("smooth_l1", {"beta": 0.5}, F.smooth_l1_loss),
    ("smooth_l1", {"beta": 0}, F.smooth_l1_loss),
    ("poisson", {"log_input": True, "eps": 1e-8}, F.poisson_nll_loss),
    ("poisson", {"log_input": True, "full": True, "eps": 1e-8}, F.poisson_nll_loss),
    ("soft_margin", {}, F.soft_margin_loss),
]


@pytest.mark.parametrize(("op", "attrs", "loss"), ROWS)
@settings(max_examples=15)
@given(data=st.data())
def test_of_every_element(op: str, attrs: dict[str, Any], loss: Any, data: st.DataObject) -> None:
    rng, reduction = drawn(data)
    shape = data.draw(st.lists(st.integers(1, 3), max_size=2))
    x, t = rng.uniform(-3, 3, shape), rng.uniform(0.25, 4, shape)
    native = by_torch(loss, x, t, reduction=reduction, **attrs)
    call(op, {"prediction": x, "target": t}, reduction=reduction, **attrs)["y"].check(native)


@settings(max_examples=25)
@given(st.data())
def test_weights_of_yes_and_no(data: st.DataObject) -> None:
    rng, reduction = drawn(data)
    n, k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    x, t, w = rng.uniform(-3, 3, (n, k)), rng.uniform(0, 1, (n, k)), rng.uniform(0.5, 2, k)
    which = data.draw(st.sampled_from(("weight", "pos_weight")))
    options = {which: w, "reduction": reduction}
    native = by_torch(F.binary_cross_entropy_with_logits, x, t, **options)
    inputs = {"target": t, which: w}
    found = call("binary_cross_entropy_logits", {"logits": x, **inputs}, reduction=reduction)
    found["y"].check(native)
    p = rng.uniform(0.05, 0.95, (n, k))
    native = by_torch(F.binary_cross_entropy, p, t, weight=w, reduction=reduction)
    inputs = {"probs": p, "target": t, "weight": w}
    attrs = {"eps": 0, "floor": -100, "reduction": reduction}
    call("binary_cross_entropy", inputs, **attrs)["y"].check(native)


@settings(max_examples=20)
@given(st.data())
def test_gaussian_nll_is_that_of_torch(data: st.DataObject) -> None:
    rng, reduction = drawn(data)
    x, t = rng.uniform(-3, 3, (2, 3)), rng.uniform(-3, 3, (2, 3))
    var = rng.uniform(0, 2, data.draw(st.sampled_from(((2, 3), (2, 1)))))
    var.flat[0] = 0
    full = data.draw(st.booleans())
    native = by_torch(F.gaussian_nll_loss, x, t, var, full=full, eps=1e-3, reduction=reduction)
    inputs = {"prediction": x, "target": t, "var": var}
    call("gaussian_nll", inputs, full=full, eps=1e-3, reduction=reduction)["y"].check(native)


@settings(max_examples=25)
@given(st.data())
def test_margins_are_those_of_torch(data: st.DataObject) -> None:
    rng, reduction = drawn(data)
    n, k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    a, b, c = (rng.uniform(-3, 3, (n, k)) for _ in range(3))
    how: dict[str, Any] = {"margin": data.draw(st.sampled_from((0.5, 1.0))), "reduction": reduction}
    norm = {"p": data.draw(st.sampled_from((1.0, 2.0, 3.0))), "swap": data.draw(st.booleans())}
    call("triplet_margin", {"anchor": a, "positive": b, "negative": c}, **how, **norm)["y"].check(
        by_torch(F.triplet_margin_loss, a, b, c, **how, **norm)
    )
    signs, sign = rng.choice((-1.0, 1.0), (n, k)), rng.choice((-1.0, 1.0), n)
    call("cosine_embedding", {"a": a, "b": b, "target": sign}, **how)["y"].check(
        by_torch(F.cosine_embedding_loss, a, b, sign, **how)
    )
    call("margin_ranking", {"a": a, "b": b, "target": signs}, **how)["y"].check(
        by_torch(F.margin_ranking_loss, a, b, signs, **how)
    )
    call("hinge_embedding", {"distance": a, "target": signs}, **how)["y"].check(
        by_torch(F.hinge_embedding_loss, a, signs, **how)
    )
    labels, weight, order = (
        rng.integers(0, k, n),
        rng.uniform(0.5, 2, k),
        data.draw(st.integers(1, 2)),
    )
    call("multi_margin", {"x": a, "labels": labels, "weight": weight}, p=order, **how)["y"].check(
        by_torch(F.multi_margin_loss, a, labels, p=order, weight=weight, **how)
    )
    many = rng.integers(-1, k, (n, k))
    call("multilabel_margin", {"x": a, "labels": many}, reduction=reduction)["y"].check(
        by_torch(F.multilabel_margin_loss, a, many, reduction=reduction)
    )


# ---- sequences


@settings(max_examples=40)
@given(st.data())
def test_ctc_is_that_of_torch(data: st.DataObject) -> None:
    rng, reduction = drawn(data)
    steps, n, k, s = (data.draw(st.integers(low, 4)) for low in (1, 1, 2, 0))
    blank = data.draw(st.integers(0, k - 1))
    x = rng.uniform(-3, 3, (steps, n, k))
    log_probs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    labels = rng.choice([c for c in range(k) if c != blank], (n, s))
    lengths, sizes = rng.integers(1, steps + 1, n), rng.integers(0, s + 1, n)
    attrs = {"blank": blank, "zero_infinity": data.draw(st.booleans()), "reduction": reduction}
    native = by_torch(F.ctc_loss, log_probs, labels, lengths, sizes, **attrs)
    inputs = {
        "log_probs": log_probs, "labels": labels, "input_lengths": lengths, "target_lengths": sizes
    }  # fmt: skip
    call("ctc", inputs, **attrs)["y"].check(native)


# ---- Keras


def in_keras(loss: Any, target: Array, prediction: Array, **options: Any) -> Array:
    return np.asarray(loss(target, prediction, **options))


@settings(max_examples=25)
@given(st.data())
def test_smoothed_and_focused_losses_are_those_of_keras(data: st.DataObject) -> None:
    """One sample, whose loss is the mean of its elements."""
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    k = data.draw(st.integers(2, 4))
    p, t = rng.uniform(0.05, 0.95, (1, k)), rng.integers(0, 2, (1, k)).astype(np.float64)
    inputs = {"probs": p, "target": t}
    attrs: dict[str, Any] = {"label_smoothing": data.draw(st.sampled_from((0.0, 0.25)))}
    native = in_keras(keras.losses.binary_crossentropy, t, p, **attrs)[0]
    call("binary_cross_entropy", inputs, **attrs)["y"].check(native)
    x = rng.uniform(-3, 3, (1, k))
    native = in_keras(keras.losses.binary_crossentropy, t, x, from_logits=True, **attrs)[0]
    found = call("binary_cross_entropy_logits", {"logits": x, "target": t}, **attrs)
    found["y"].check(native)
    attrs |= {"gamma": data.draw(st.sampled_from((1.0, 2.0, 2.5))), "alpha": 0.75}
    native = in_keras(keras.losses.categorical_focal_crossentropy, t, p, **attrs)[0]
    call("categorical_focal_cross_entropy", inputs, **attrs)["y"].check(native)
    attrs["apply_class_balancing"] = data.draw(st.booleans())
    native = in_keras(keras.losses.binary_focal_crossentropy, t, p, **attrs)[0]
    call("binary_focal_cross_entropy", inputs, **attrs)["y"].check(native)


@settings(max_examples=15)
@given(st.data())
def test_overlaps_are_those_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    shape = [data.draw(st.integers(1, 3)) for _ in range(3)]
    axis = data.draw(st.sampled_from((None, (1, 2), (0,))))
    p, t = rng.uniform(0, 1, shape), rng.integers(0, 2, shape).astype(np.float64)
    inputs, attrs = {"prediction": p, "target": t}, {} if axis is None else {"axes": axis}
    native = in_keras(keras.losses.dice, t, p, axis=axis)
    call("dice", inputs, reduction="none", **attrs)["y"].check(native)
    native = in_keras(keras.losses.tversky, t, p, alpha=0.25, beta=2.0, axis=axis)
    found = call("tversky", inputs, reduction="none", alpha=0.25, beta=2, **attrs)
    found["y"].check(native)


@settings(max_examples=15)
@given(st.data())
def test_hinges_convert_binary_targets_as_keras_does(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x = rng.uniform(-2, 2, (1, 4))
    t = rng.choice(data.draw(st.sampled_from(((0.0, 1.0), (-1.0, 1.0), (0.0, 1.0, 2.0)))), (1, 4))
    inputs = {"prediction": x, "target": t}
    for op in ("hinge", "squared_hinge"):
        native = in_keras(getattr(keras.losses, op), t, x)[0]
        call(op, inputs, convert_binary=True)["y"].check(native)


def test_a_positive_cosine_is_that_of_the_metric() -> None:
    rng = np.random.default_rng(2)
    x, t = rng.uniform(-2, 2, (3, 4)), rng.uniform(-2, 2, (3, 4))
    found = call("cosine_similarity", {"prediction": x, "target": t}, negative=False,
                 reduction="none")["y"]  # fmt: skip
    found.check(by_torch(F.cosine_similarity, x, t))
