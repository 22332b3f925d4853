"""How Keras spells losses: `keras.losses`, the target first, a mean over the last axis in most."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras, quoted, three
from irlang.lower.legalise import moved
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

_REDUCTIONS = {"mean": quoted("sum_over_batch_size"), "sum": quoted("sum"), "none": quoted("none")}
# Of a call: the arguments; None where Keras has not these attributes.
Options = Callable[[Keras], dict[str, Any] | None]


# Of a kind of loss, the target and the prediction: what is called.
Word = Callable[..., Value]


def _function(kind: str) -> str:
    """The function's name: `mean_squared_error` of `MeanSquaredError`."""
    return re.sub("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()


def _reduced(call: Keras, text: str) -> Value:
    """What a function gives, for which nothing is averaged but what it averages itself."""
    reduction = call["reduction"]
    return call.value(text if reduction == "none" else invoke(f"ops.{reduction}", text))


def _by_function(call: Keras, kind: str, target: Value, prediction: Value, **options: Any) -> Value:
    name = f"{call.build.keras}.losses.{_function(kind)}"
    return _reduced(call, invoke(name, target, prediction, **options))


def _loss(call: Keras, kind: str, target: Value, prediction: Value, **options: Any) -> Value:
    if call.out.dtype != "f32" and call.build.version == 3:
        options["dtype"] = call.build.dtype(call.out.dtype)
    made = invoke(
        f"{call.build.keras}.losses.{kind}", reduction=_REDUCTIONS[call["reduction"]], **options
    )
    text = f"{made}({target.text}, {prediction.text})"
    if call.build.backend == "theano":
        text = f'K.cast({text}, "float32")'  # which some lose
    return call.value(text)


def _functional(kind: str, rule: Callable[..., Value | None]) -> Native:
    """The same by a function, which Keras 3 has for every kind."""
    spelling = f"keras.losses.{_function(kind)}"
    return Native(spelling, partial(rule, word=_by_function), since=KERAS_3)


def _elements(kind: str, options: Options, prediction: str = "prediction") -> Native:
    """A loss of elements: each is an axis of its own, unless all of them are averaged."""

    def rule(call: Keras, word: Word = _loss) -> Value | None:
        given = options(call)
        if given is None or call.has("weight") or call.has("pos_weight"):
            return None
        values = [call.input("target"), call.input(prediction)]
        if call["reduction"] != "mean" or values[0].rank < 2:
            values = [call.build.reshape(v, (*v.shape, 1)) for v in values]
        return word(call, kind, *values, **given)

    return Native(f"keras.losses.{kind}", rule, others=(_functional(kind, rule),))


def _classes(kind: str, options: Options, prediction: str, target: str = "target") -> Native:
    """A loss of distributions along an axis, which is put last."""

    def rule(call: Keras, word: Word = _loss) -> Value | None:
        given = options(call)
        x, t = call.input(prediction), call.input(target)
        if target == "labels" and word is _by_function and _widens(call):
            return None
        if given is None or call.has("weight") or x.rank < 2:
            return None
        if call.build.backend == "theano" and prediction == "logits" and x.rank > 2:
            return None  # its softmax there is one of matrices
        axis = call.axis("axis", x.rank)
        t = moved(call, t, axis, x.rank - 1) if t.rank == x.rank else t
        x = moved(call, x, axis, x.rank - 1)
        if call.build.backend == "theano":  # where expressions do not say their shapes
            x = Value(f"shaped({x.text}, {x.shape})", x.shape, x.dtype)
        return word(call, kind, t, x, **given)

    return Native(f"keras.losses.{kind}", rule, others=(_functional(kind, rule),))


def _only(**wanted: Any) -> Options:
    """No arguments, where the attributes are those that Keras has."""

    def options(call: Keras) -> dict[str, Any] | None:
        return {} if all(call[name] == value for name, value in wanted.items()) else None

    return options


def _cosine(call: Keras) -> dict[str, Any] | None:
    """Keras 2 normalises by tf.nn.l2_normalize, whose bound is larger."""
    eps = 1e-14 if call.build.version == 3 else 1e-12
    return {} if call["eps"] == eps and call["negative"] else None


def _smoothing(call: Keras) -> dict[str, Any]:
    share = float(call["label_smoothing"])
    return {"label_smoothing": share} if share else {}


def _binary(call: Keras) -> dict[str, Any] | None:
    usual = call["eps"] == 1e-7 and call["floor"] == float("-inf")
    return _smoothing(call) if usual else None


def _binary_logits(call: Keras) -> dict[str, Any]:
    return {"from_logits": True, **_smoothing(call)}


def _categorical(call: Keras) -> dict[str, Any] | None:
    return _smoothing(call) if call["eps"] == 1e-7 and call["normalize"] else None


def _widens(call: Keras) -> bool:
    """Whether cross entropy of labels is given in f64, as it is on JAX where that has such
    numbers; the class makes it what is asked for.
    """
    return call.build.backend == "jax"


def _sparse(call: Keras) -> dict[str, Any] | None:
    """One class may be left out; a mean is that of the others then."""
    left_out = tuple(map(int, call["ignore_index"]))
    if call["label_smoothing"] or len(left_out) > (call.build.version == 3):
        return None
    return {"from_logits": True, **({"ignore_class": left_out[0]} if left_out else {})}


def _sparse_probs(call: Keras) -> dict[str, Any] | None:
    """Only TensorFlow's backend divides by the sum after bounding; the others do it before."""
    own = call.build.backend == "tensorflow" and call["normalize"]
    return {} if call["eps"] == 1e-7 and own else None


def _huber(call: Keras) -> dict[str, Any]:
    return {"delta": float(call["delta"])}


def _focal(call: Keras) -> dict[str, Any] | None:
    if call["eps"] != 1e-7:
        return None
    options = {"alpha": float(call["alpha"]), "gamma": float(call["gamma"]), **_smoothing(call)}
    return {"apply_class_balancing": call["apply_class_balancing"], **options}


def _categorical_focal(call: Keras) -> dict[str, Any] | None:
    if call["eps"] != 1e-7:
        return None
    return {"alpha": float(call["alpha"]), "gamma": float(call["gamma"]), **_smoothing(call)}


def _overlap(kind: str, *attributes: str) -> Native:
    """A loss of overlap; without a reduction Keras wants axes that are kept in front."""

    def rule(call: Keras, word: Word = _loss) -> Value | None:
        x, target = call.input("prediction"), call.input("target")
        axes = call.axes("axes", x.rank)
        whole = sorted(axes) == list(range(x.rank))
        if call["eps"] != 1e-7 or not axes or x.rank < 1:
            return None
        if not whole and (list(axes) != sorted(axes) or call["reduction"] != "none"):
            return None
        options: dict[str, Any] = {name: float(call[name]) for name in attributes}
        said = None if whole else call.axes_said("axes", x.rank)
        return word(call, kind, target, x, **options, axis=said)

    functional = _functional(kind, rule)
    return Native(f"keras.losses.{kind}", rule, since=(3, 9), others=(functional,))


def _along(function: str, prediction: str, target: str, **only: Any) -> Native:
    """A cross entropy of `ops`, which is told the axis of the classes; that of labels says on
    TensorFlow that it takes the last alone.
    """

    def rule(call: Keras) -> Value | None:
        if any(call.get(name, value) != value for name, value in only.items()):
            return None
        x, t = call.input(prediction), call.input(target)
        last = call.axis("axis", x.rank) == x.rank - 1
        if target == "labels" and (_widens(call) or not last):
            return None
        if call.has("weight") or x.rank < 2:
            return None
        logits = True if prediction == "logits" else None
        options = {"from_logits": logits, "axis": call.axis_said("axis", x.rank)}
        return _reduced(call, invoke(function, t, x, **options))

    return Native(function, rule, since=KERAS_3)


def _binary_of_elements(call: Keras) -> Value | None:
    prediction = "logits" if "logits" in call.values else "probs"
    usual = prediction == "logits" or (call["eps"], call["floor"]) == (1e-7, float("-inf"))
    if not usual or call["label_smoothing"] or call.has("weight") or call.has("pos_weight"):
        return None
    values = call.input("target"), call.input(prediction)
    logits = True if prediction == "logits" else None
    return _reduced(call, invoke("ops.binary_crossentropy", *values, from_logits=logits))


_BINARY = Native("keras.ops.binary_crossentropy", _binary_of_elements, since=KERAS_3)
_CATEGORICAL, _SPARSE = "ops.categorical_crossentropy", "ops.sparse_categorical_crossentropy"

LOSSES: dict[str, Native] = {
    "mse": _elements("MeanSquaredError", _only()),
    "mae": _elements("MeanAbsoluteError", _only()),
    "mape": _elements("MeanAbsolutePercentageError", _only(eps=1e-7)),
    "msle": _elements("MeanSquaredLogarithmicError", _only(eps=1e-7)),
    "huber": _elements("Huber", _huber),
    "log_cosh": _elements("LogCosh", _only()),
    "hinge": _elements("Hinge", _only(convert_binary=True)),
    "squared_hinge": _elements("SquaredHinge", _only(convert_binary=True)),
    "poisson": _elements("Poisson", _only(eps=1e-7, log_input=False, full=False)),
    "binary_cross_entropy": _elements("BinaryCrossentropy", _binary, "probs"),
    "binary_cross_entropy_logits": _elements("BinaryCrossentropy", _binary_logits, "logits"),
    "binary_focal_cross_entropy": three(_elements("BinaryFocalCrossentropy", _focal, "probs")),
    "dice": _overlap("Dice"),
    "tversky": _overlap("Tversky", "alpha", "beta"),
    "categorical_hinge": _classes("CategoricalHinge", _only(), "prediction"),
    "cosine_similarity": three(_classes("CosineSimilarity", _cosine, "prediction")),
    "kl_divergence": _classes("KLDivergence", _only(eps=1e-7), "probs"),
    "categorical_cross_entropy": _classes("CategoricalCrossentropy", _binary_logits, "logits"),
    "categorical_cross_entropy_probs": _classes("CategoricalCrossentropy", _categorical, "probs"),
    "categorical_focal_cross_entropy": three(
        _classes("CategoricalFocalCrossentropy", _categorical_focal, "probs")
    ),
    "cross_entropy": _classes("SparseCategoricalCrossentropy", _sparse, "logits", "labels"),
    "cross_entropy_probs": three(
        _classes("SparseCategoricalCrossentropy", _sparse_probs, "probs", "labels")
    ),
}

WORDS: dict[str, Native] = {
    "binary_cross_entropy": _BINARY,
    "binary_cross_entropy_logits": _BINARY,
    "categorical_cross_entropy": _along(_CATEGORICAL, "logits", "target", label_smoothing=0),
    "categorical_cross_entropy_probs": _along(
        _CATEGORICAL, "probs", "target", label_smoothing=0, eps=1e-7, normalize=True
    ),
    "cross_entropy": _along(_SPARSE, "logits", "labels", ignore_index=(), label_smoothing=0),
}
