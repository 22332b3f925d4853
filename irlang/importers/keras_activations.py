"""Activations of Keras, by name and as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call, Value, same
from irlang.importers.keras_text import Config
from irlang.importers.keras_weights import NONE

_KERNEL_SLOPE = float(np.float32(0.2))
_NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("identity", {}),
    "relu": ("relu", {}),
    "relu6": ("relu", {"max_value": 6}),
    "leaky_relu": ("leaky_relu", {"alpha": _KERNEL_SLOPE}),
    "sigmoid": ("sigmoid", {}),
    "tanh": ("tanh", {}),
    "softmax": ("softmax", {"axis": -1}),
    "log_softmax": ("log_softmax", {"axis": -1}),
    "sparsemax": ("sparsemax", {"axis": -1}),
    "glu": ("glu", {"axis": -1}),
    "elu": ("elu", {}),
    "selu": ("selu", {}),
    "celu": ("celu", {}),
    "gelu": ("gelu", {}),
    "softplus": ("softplus", {}),
    "softsign": ("softsign", {}),
    "squareplus": ("squareplus", {}),
    "exponential": ("exp", {}),
    "silu": ("silu", {}),
    "swish": ("silu", {}),
    "mish": ("mish", {}),
    "hard_silu": ("hard_swish", {}),
    "hard_swish": ("hard_swish", {}),
    "hard_tanh": ("hard_tanh", {}),
    "hard_shrink": ("hard_shrink", {}),
    "soft_shrink": ("soft_shrink", {}),
    "tanh_shrink": ("tanh_shrink", {}),
    "log_sigmoid": ("log_sigmoid", {}),
    "sparse_plus": ("sparse_plus", {}),
    "sparse_sigmoid": ("hard_sigmoid", {"alpha": 0.5}),
}
_BY_VERSION: dict[int, dict[str, tuple[str, dict[str, Any]]]] = {
    2: {"hard_sigmoid": ("hard_sigmoid", {})},
    3: {"hard_sigmoid": ("hard_sigmoid", {"alpha": 1 / 6})},
}


def activation_name(wanted: Any) -> Any:
    """An activation as its name, where it has one; `linear` for none."""
    if wanted is None:
        return "linear"
    if isinstance(wanted, Config) and wanted.kind == "function":
        wanted = wanted.kwargs.get("name")
    return wanted


def named(version: int, wanted: Any) -> tuple[str, dict[str, Any]] | None:
    """The definition and the attributes of an activation by its name, if it is known."""
    table: dict[str, tuple[str, dict[str, Any]]] = {**_NAMED, **_BY_VERSION[version]}
    return table.get(wanted) if isinstance(wanted, str) else None


def activated(c: Call, write: Callable[[str], str]) -> str:
    """A layer's result; `write` writes what its activation is applied to."""
    wanted = c.a["activation"] if "activation" in c.a.defaults else None
    if activation_name(wanted) == "linear":
        return write("")
    return activation(c, wanted, write("z"))


def activation(c: Call, wanted: Any, value: str, suffix: str = "") -> str:
    """An activation of a value, which keeps its order of axes."""
    wanted = activation_name(wanted)
    if isinstance(wanted, Config):  # a layer as an activation
        name = f"{c.name}_{suffix}" if suffix else c.name
        return c.sheet.apply(c.sheet, name, wanted, [Value(value)], NONE)[0].name
    found = named(c.version, wanted)
    if found is None:
        raise Uncovered(c.a.kind, f"the activation {wanted!r}")
    op, attrs = found
    moved = value in c.sheet.moved
    if wanted == "gelu" and c.version == 2 and c.info(value).dtype == "f64":
        result = _single_root(c, value, suffix)
        if moved:
            c.sheet.moved.add(result)
        return result
    if "axis" in attrs and moved:
        attrs = {**attrs, "axis": 1}
    result = c.write(suffix, op, value, **attrs)
    if moved:
        c.sheet.moved.add(result)
    return result


def _single_root(c: Call, value: str, suffix: str) -> str:
    """TensorFlow 2.4 has the root of 2 in `gelu` in single precision."""
    part = c.write("part", "erf", c.write("scaled", "divide", value, float(np.float32(2**0.5))))
    half = c.write("half", "multiply", value, 0.5)
    return c.write(suffix, "multiply", half, c.write("whole", "add", part, 1.0))


# ---- layers


def _slope(value: float) -> float:
    """TensorFlow keeps the slope of its leaky ReLU kernel in single precision."""
    return float(np.float32(value))


def _relu(c: Call) -> str:
    attrs: dict[str, Any] = {}
    leaky = c.a["max_value"] is None
    if not leaky:
        attrs["max_value"] = c.a.real("max_value")
    slope, threshold = c.a.real("negative_slope"), c.a.real("threshold")
    if slope:
        leaky = leaky and not threshold
        attrs["negative_slope"] = _slope(slope) if leaky else slope
    if threshold:
        attrs["threshold"] = threshold
    return c.keep(c.write("", "relu", c.held(), **attrs))


def _leaky_relu(c: Call) -> str:
    name = "alpha" if c.a["negative_slope"] is None else "negative_slope"
    return c.keep(c.write("", "leaky_relu", c.held(), alpha=_slope(c.a.real(name))))


def _prelu(c: Call) -> str:
    shape = c.shape()[1:]
    shared = c.a.ints("shared_axes") if c.a["shared_axes"] is not None else []
    for axis in shared:
        if not 1 <= axis <= len(shape):
            raise Uncovered(c.a.kind, f"`shared_axes` is {shared}")
        shape[axis - 1] = 1
    slope = c.weight("slope", 0, shape, same)
    return c.write("", "prelu", c.x[0], slope)


def _softmax(c: Call) -> str:
    axes = c.a.ints("axis")
    x = c.held()
    if c.mask is not None:  # the mask broadcasts from the last axis on
        x = masked(c, c.x[0], c.mask)
    place = c.axis if x == c.held() else int
    if len(axes) == 1:
        result = c.write("", "softmax", x, axis=place(axes[0]))
    else:
        axes = [place(axis) for axis in axes]
        total = c.write("total", "reduce_logsumexp", x, axes=axes, keepdims=True)
        result = c.write("", "exp", c.write("log", "subtract", x, total))
    return c.keep(result) if x == c.held() else result


def masked(c: Call, x: str, mask: str) -> str:
    """Where the mask does not hold, Keras 3 puts a large negative number, Keras 2 adds one."""
    if c.version == 3:
        return c.write("x", "where", mask, x, -3e4 if c.dtype == "f16" else -1e9)
    if c.info(mask).kind == "real":  # of any numbers
        dropped = c.write("dropped", "subtract", 1.0, mask)
    else:
        dropped = c.write("dropped", "cast", c.write("hidden", "logical_not", mask), to=c.dtype)
    return c.write("x", "add", x, c.write("shift", "multiply", dropped, -1e9))


def plain(op: str, **attributes: str) -> Callable[[Call], str]:
    """A layer of one call, whatever the order of axes; its arguments by the attributes' names."""

    def write(c: Call) -> str:
        attrs = {key: c.a.real(argument) for key, argument in attributes.items()}
        return c.keep(c.write("", op, c.held(), **attrs))

    return write


ACTIVATIONS: dict[str, Callable[[Call], str]] = {
    "Activation": lambda c: activation(c, c.a["activation"], c.held()),
    "ReLU": _relu,
    "LeakyReLU": _leaky_relu,
    "PReLU": _prelu,
    "ELU": plain("elu", alpha="alpha"),
    "ThresholdedReLU": plain("thresholded_relu", theta="theta"),
    "Softmax": _softmax,
}
