"""Losses against PyTorch and Keras, in float64."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import Array, agrees, integers, reals, shapes

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras

few = settings(max_examples=20)
pytestmark = pytest.mark.filterwarnings("ignore")
Loss = Callable[..., Any]
REDUCTIONS: dict[str, Loss] = {"none": np.asarray, "sum": np.sum, "mean": np.mean}
EPS = 1e-7


def by_torch(loss: Loss, **fixed: Any) -> Loss:
    """A loss of PyTorch as a function of arrays."""

    def value(*arrays: Array, **options: Any) -> Array:
        result: Array = loss(*map(torch.from_numpy, arrays), **fixed, **options).numpy()
        return result

    return value


# ---- losses of every element: operator, attributes, reference, its range of values, size rounded

ELEMENTWISE: list[tuple[str, dict[str, Any], Loss, tuple[float, float], float]] = [
    ("mse", {}, by_torch(F.mse_loss), (-6, 6), 36),
    ("mae", {}, by_torch(F.l1_loss), (-6, 6), 6),
    ("huber", {}, by_torch(F.huber_loss), (-6, 6), 36),
    ("huber", {"delta": 2.5}, by_torch(F.huber_loss, delta=2.5), (-6, 6), 36),
    ("kl_div", {}, by_torch(F.kl_div), (0, 1), 1),
    ("kl_div", {"log_target": True}, by_torch(F.kl_div, log_target=True), (-6, 6), 12 * 500),
    ("poisson", {"eps": 1e-8}, by_torch(F.poisson_nll_loss, log_input=False), (0, 6), 6 * 20),
    (
        "binary_cross_entropy",
        {"eps": 0, "floor": -100},
        by_torch(F.binary_cross_entropy),
        (0, 1),
        100,
    ),
    (
        "binary_cross_entropy_logits",
        {},
        by_torch(F.binary_cross_entropy_with_logits),
        (-6, 6),
        40,
    ),
]
FIRST = {
    "kl_div": "log_probs",
    "binary_cross_entropy": "probs",
    "binary_cross_entropy_logits": "logits",
}


@pytest.mark.parametrize(
    ("op", "attrs", "loss", "values", "magnitude"),
    ELEMENTWISE,
    ids=[f"{op}({','.join(map(str, attrs.values()))})" for op, attrs, *_ in ELEMENTWISE],
)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(data=st.data())
@few
def test_of_every_element(
    op: str,
    attrs: dict[str, Any],
    loss: Loss,
    values: tuple[float, float],
    magnitude: float,
    reduction: str,
    data: st.DataObject,
) -> None:
    shape = data.draw(shapes())
    prediction, target = data.draw(reals(shape, *values)), data.draw(reals(shape, *values))
    inputs = {FIRST.get(op, "prediction"): prediction, "target": target}
    options: dict[str, Any] = {"operations": 6 + target.size, "reduction": reduction, **attrs}
    count = target.size if reduction == "sum" else 1
    expected = loss(prediction, target, reduction=reduction)
    agrees(op, inputs, expected, magnitude=magnitude * count, **options)


# ---- losses of Keras, which gives a mean over the last axis: compared by it


def by_keras(name: str) -> Loss:
    """A loss of Keras as a function of a prediction and a target."""

    def value(prediction: Array, target: Array, **options: Any) -> Array:
        loss = getattr(keras.losses, name)
        return np.asarray(loss(target, prediction, **options))

    return value


KERAS: list[tuple[str, str, tuple[float, float], float]] = [
    ("mse", "mean_squared_error", (-6, 6), 36),
    ("mae", "mean_absolute_error", (-6, 6), 6),
    ("mape", "mean_absolute_percentage_error", (-6, 6), 100 * 12 / EPS),
    ("msle", "mean_squared_logarithmic_error", (0, 6), 4),
    ("huber", "huber", (-6, 6), 36),
    ("poisson", "poisson", (0, 6), 100),
    ("binary_cross_entropy", "binary_crossentropy", (0, 1), 20),
]
KERAS_SIGNS: list[tuple[str, str, tuple[float, float], float]] = [
    ("hinge", "hinge", (-6, 6), 7),
    ("squared_hinge", "squared_hinge", (-6, 6), 49),
]


@pytest.mark.parametrize(("op", "name", "values", "magnitude"), KERAS + KERAS_SIGNS)
@given(data=st.data())
@few
def test_as_in_keras(
    op: str, name: str, values: tuple[float, float], magnitude: float, data: st.DataObject
) -> None:
    shape = data.draw(shapes(least=1, low=1))
    prediction, target = data.draw(reals(shape, *values)), data.draw(reals(shape, *values))
    if (op, name, values, magnitude) in KERAS_SIGNS:
        target = np.where(target < 0, -1.0, 1.0)
    expected = by_keras(name)(prediction, target)
    rows: dict[str, Array] = {FIRST.get(op, "prediction"): prediction, "target": target}
    # The mean over the last axis is the mean of every row on its own.
    rows = {key: value.reshape(-1, shape[-1]) for key, value in rows.items()}
    for row, right in enumerate(expected.reshape(-1)):
        inputs = {key: value[row] for key, value in rows.items()}
        agrees(op, inputs, right, operations=10 + shape[-1], magnitude=magnitude)


# ---- classes


def draw_scores(data: st.DataObject, values: tuple[float, float]) -> tuple[Array, int]:
    """Scores of any rank, and the axis of the classes."""
    shape = data.draw(shapes(least=1, most=4, low=1))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    return data.draw(reals(shape, *values)), axis


def draw_labels(data: st.DataObject, scores: Array, axis: int) -> Array:
    shape = list(scores.shape)
    classes = shape.pop(axis)
    drawn: Array = data.draw(integers(tuple(shape), np.int64, 0, classes - 1))
    return drawn


def classes_second(scores: Array, axis: int) -> Array:
    """PyTorch's order of axes: samples, classes."""
    return np.moveaxis(scores, axis, -1).reshape(-1, scores.shape[axis])


@pytest.mark.parametrize("op", ["cross_entropy", "nll"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(data=st.data())
@few
def test_of_labelled_classes_as_in_torch(op: str, reduction: str, data: st.DataObject) -> None:
    scores, axis = draw_scores(data, (-6, 6))
    labels = draw_labels(data, scores, axis)
    loss = by_torch({"cross_entropy": F.cross_entropy, "nll": F.nll_loss}[op])
    expected = loss(classes_second(scores, axis), labels.reshape(-1), reduction=reduction)
    inputs = {{"cross_entropy": "logits", "nll": "log_probs"}[op]: scores, "labels": labels}
    expected = expected.reshape(labels.shape if reduction == "none" else ())
    options: dict[str, Any] = {"axis": axis, "reduction": reduction}
    size = 10 * (labels.size if reduction == "sum" else 1)
    operations = 6 + labels.size + scores.shape[axis]
    agrees(op, inputs, expected, operations=operations, magnitude=size, **options)


def test_cross_entropy_of_images_as_in_torch() -> None:
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(2, 5, 3, 4)), random.integers(0, 5, (2, 3, 4))
    expected = by_torch(F.cross_entropy)(logits, labels)
    inputs = {"logits": logits, "labels": labels}
    agrees("cross_entropy", inputs, expected, operations=40, magnitude=5, axis=1)


def test_cross_entropy_does_not_overflow() -> None:
    logits, labels = np.array([[1000.0, 0.0], [-1000.0, 0.0]]), np.array([1, 1])
    inputs = {"logits": logits, "labels": labels}
    agrees("cross_entropy", inputs, np.array([1000.0, 0.0]), reduction="none")


def softmax(x: Array, axis: int) -> Array:
    exps = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(exps / exps.sum(axis, keepdims=True))


@given(data=st.data())
@few
def test_of_labelled_classes_from_probabilities(data: st.DataObject) -> None:
    probs, axis = draw_scores(data, (0, 1))
    labels = draw_labels(data, probs, axis)
    bounded = np.clip(probs, EPS, 1 - EPS)
    chosen = np.take_along_axis(bounded, np.expand_dims(labels, axis), axis).squeeze(axis)
    inputs = {"probs": probs, "labels": labels}
    options: dict[str, Any] = {"axis": axis, "reduction": "none", "operations": 8, "magnitude": 20}
    agrees("cross_entropy_probs", inputs, -np.log(chosen), **options)
    shares = chosen / bounded.sum(axis)
    agrees("cross_entropy_probs", inputs, -np.log(shares), normalize=True, **options)
    last = np.moveaxis(probs, axis, -1)
    if keras.backend.backend() == "tensorflow":
        expected = keras.losses.sparse_categorical_crossentropy(labels, last)
        inputs = {"probs": last, "labels": labels}
        options["axis"] = -1
        agrees("cross_entropy_probs", inputs, np.asarray(expected), normalize=True, **options)


@pytest.mark.parametrize("label_smoothing", [0, 0.25])
@given(data=st.data())
@few
def test_of_distributions(label_smoothing: float, data: st.DataObject) -> None:
    shape = data.draw(shapes(least=2, most=3, low=1))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    logits, target = data.draw(reals(shape)), softmax(data.draw(reals(shape)), axis)
    probs = data.draw(reals(shape, 0.0625, 1))
    last = np.moveaxis(target, axis, -1)  # Keras smooths by the last axis whatever the axis is
    options: dict[str, Any] = {"axis": axis, "reduction": "none", "operations": 20}
    options |= {"magnitude": 40, "label_smoothing": label_smoothing}
    for op, name, scores in (
        ("categorical_cross_entropy", "logits", logits),
        ("categorical_cross_entropy_probs", "probs", probs),
    ):
        expected = keras.losses.categorical_crossentropy(
            last,
            np.moveaxis(scores, axis, -1),
            from_logits=name == "logits",
            label_smoothing=label_smoothing,
        )
        agrees(op, {name: scores, "target": target}, np.asarray(expected), **options)


@pytest.mark.parametrize("label_smoothing", [0, 0.25])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(data=st.data())
@few
def test_of_distributions_as_in_torch(
    reduction: str, label_smoothing: float, data: st.DataObject
) -> None:
    shape = data.draw(shapes(least=2, most=3, low=1))
    logits, target = data.draw(reals(shape)), softmax(data.draw(reals(shape)), 1)
    options: dict[str, Any] = {"label_smoothing": label_smoothing, "reduction": reduction}
    expected = by_torch(F.cross_entropy)(logits, target, **options)
    inputs = {"logits": logits, "target": target}
    size = 40 * (logits.size if reduction == "sum" else 1)
    options |= {"operations": 20 + logits.size, "magnitude": size, "axis": 1}
    agrees("categorical_cross_entropy", inputs, expected, **options)


@given(data=st.data())
@few
def test_log_cosh(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    prediction, target = data.draw(reals(shape)), data.draw(reals(shape))
    expected = np.log(np.cosh(prediction - target))  # Keras rounds log(2) to float32
    inputs = {"prediction": prediction, "target": target}
    agrees("log_cosh", inputs, expected, operations=6, magnitude=30, reduction="none")
    inputs = {"prediction": np.array([-1e4, 1e4]), "target": np.zeros(2)}
    agrees("log_cosh", inputs, np.full(2, 1e4 - np.log(2)), operations=2, reduction="none")


@given(data=st.data())
@few
def test_over_the_last_axis_as_in_keras(data: st.DataObject) -> None:
    shape = data.draw(shapes(least=1, most=3, low=1))
    prediction, target = data.draw(reals(shape)), data.draw(reals(shape))
    options: dict[str, Any] = {"reduction": "none", "operations": 30}
    inputs = {"prediction": prediction, "target": target}
    expected = by_keras("categorical_hinge")(prediction, target)
    agrees("categorical_hinge", inputs, expected, magnitude=200, **options)
    expected = by_keras("cosine_similarity")(prediction, target)
    # without a length there is no direction, and no accuracy near it
    lengths = np.minimum(np.linalg.norm(prediction, axis=-1), np.linalg.norm(target, axis=-1))
    if lengths.min(initial=1) > 1e-3:
        agrees("cosine_similarity", inputs, expected, magnitude=1, **options)
    probs, other = np.abs(prediction) / 6, np.abs(target) / 6
    expected = by_keras("kl_divergence")(probs, other)
    inputs = {"probs": probs, "target": other}
    agrees("kl_divergence", inputs, expected, magnitude=3 * 20, **options)


def test_no_samples_have_no_mean() -> None:
    inputs = {"prediction": np.zeros((0, 2)), "target": np.zeros((0, 2))}
    agrees("mse", inputs, np.nan)
    agrees("mse", inputs, 0.0, reduction="sum")
    agrees("mse", inputs, np.zeros((0, 2)), reduction="none")
