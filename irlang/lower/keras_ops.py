"""How Keras 3 spells operators on elements, shapes and axes: `keras.activations`, `keras.ops`."""

from __future__ import annotations

import math
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras, layer, simple, three, weighted
from irlang.lower.labels import native
from irlang.lower.spelling import default, functions, invoke, left_open, named, plain, with_others
from irlang.lower.value import Value


def _applied(call: Keras, sign: str, function: str) -> Value:
    """The function, which is what the sign is between tensors of a layer; of Keras 2 the sign."""
    values = call.values.values()
    if call.build.version == 2:
        return call.value(f" {sign} ".join(map(call.build.inner, values)))
    return call.value(invoke(function, *values))


def _signed(sign: str, function: str) -> Native:
    return Native(f"{function}, a {sign} b", lambda call: _applied(call, sign, function))


def _merged(kind: str, function: str) -> Native:
    """A layer that merges, of tensors of one shape; else the function, one after another."""

    def rule(call: Keras) -> Value | None:
        values = call.family("xs")
        alike = len({value.shape for value in values}) == 1 and len(values) > 1
        if alike and values[0].rank > 0 and call.out.kind == "real":
            return call.value(layer(call, kind, *values))
        if call.build.version == 2:
            return None
        text, *rest = [value.text for value in values]
        for other in rest:
            text = f"{function}({text}, {other})"
        return call.value(text)

    return Native(f"keras.layers.{kind}, {function}", rule)


def _average(call: Keras) -> Value | None:
    values = call.family("xs")
    if len({value.shape for value in values}) != 1 or len(values) < 2 or not values[0].rank:
        return None
    return call.value(layer(call, "Average", *values))


def _clip(call: Keras) -> Value | None:
    low, high, x = call["min"], call["max"], call.input("x")
    if call.out.kind == "int" and math.inf in (-low, high):
        return None
    if call.out.kind == "int":
        if not float(low).is_integer() or not float(high).is_integer():
            return None
        low, high = int(low), int(high)
    return call.value(invoke("ops.clip", x, low, high))


def _cast(call: Keras) -> Value | None:
    if DTYPES[call.input("x").dtype].kind == "real" and call.out.kind == "int":
        return None  # out of range backends differ
    return call.value(invoke("ops.cast", call.input("x"), call.build.dtype(call.out.dtype)))


def _divide(call: Keras) -> Value | None:
    return None if call.out.kind == "int" else _applied(call, "/", "ops.divide")


# ---- activations


def _relu(call: Keras) -> Value:
    slope, threshold = float(call["negative_slope"]), float(call["threshold"])
    options: dict[str, Any] = {
        "negative_slope": slope or None,
        "max_value": None if call["max_value"] == math.inf else float(call["max_value"]),
        "threshold": threshold or None,
    }
    if not any(option is not None for option in options.values()):
        return call.value(invoke(f"{call.build.keras}.activations.relu", call.input("x")))
    return call.value(layer(call, "ReLU", call.input("x"), **options))


def _leaky(call: Keras) -> Value:
    option = "negative_slope" if call.build.version == 3 else "alpha"
    given: dict[str, Any] = {option: float(call["alpha"])}
    return call.value(layer(call, "LeakyReLU", call.input("x"), **given))


def _prelu(call: Keras) -> Value | None:
    """The slope has the sizes of x behind the batch, or 1 where axes share it."""
    x, slope = call.input("x"), call.input("slope")
    shape = (1,) * (x.rank - slope.rank) + slope.shape
    if x.rank < 2 or shape[0] != 1:
        return None
    shared = [axis for axis in range(1, x.rank) if shape[axis] == 1 and x.shape[axis] != 1]
    weight = slope if slope.shape == shape[1:] else call.build.reshape(slope, shape[1:])
    options = {"shared_axes": str(shared)} if shared else {}
    return call.value(weighted(call, "PReLU", [weight], x, **options))


def activations(module: str) -> dict[str, Native]:
    """What Keras 3 has as functions of one tensor in two modules: `keras.activations`, `ops`."""

    def gelu(call: Keras) -> Value:
        tanh = call["approximate"] == "tanh"
        return call.value(invoke(f"{module}.gelu", call.input("x"), approximate=tanh))

    rows = {
        **{name: plain(f"{module}.{name}") for name in _ACTIVATIONS.split()},
        "selu": default(f"{module}.selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
        "celu": plain(f"{module}.celu", alpha="alpha"),
        "gelu": Native(f"{module}.gelu", gelu),
        "silu": default(f"{module}.silu", alpha=1),
        "softplus": default(f"{module}.softplus", beta=1),
        "hard_sigmoid": default(f"{module}.hard_sigmoid", alpha=1 / 6, beta=0.5),
        "hard_swish": default(f"{module}.hard_silu", alpha=1 / 6, beta=0.5),
        "hard_tanh": default(f"{module}.hard_tanh", min=-1, max=1),
        "soft_shrink": plain(f"{module}.soft_shrink", threshold="threshold"),
        "hard_shrink": plain(f"{module}.hard_shrink", threshold="threshold"),
        "squareplus": plain(f"{module}.squareplus", b="b"),
        "sparsemax": plain(f"{module}.sparsemax", axis="axis"),
        "glu": plain(f"{module}.glu", axis="axis"),
        "log_softmax": plain(f"{module}.log_softmax", axis="axis"),
    }
    return {name: three(row) for name, row in rows.items()}


def _thresholded(call: Keras) -> Value:
    if call.build.version != 3:
        return call.value(layer(call, "ThresholdedReLU", call.input("x"), theta=call["theta"]))
    return call.value(invoke("keras.activations.threshold", call.input("x"), call["theta"], 0.0))


MOST_AXES = 5  # that TensorFlow's kernel of softmax takes


def _softmax(call: Keras) -> Value | None:
    """Keras 2.3 says itself that it has none of one axis."""
    x = call.input("x")
    if x.rank < 2 and call.build.backend == "theano":
        return None
    if x.rank <= MOST_AXES:
        return call.value(layer(call, "Softmax", x, axis=call.axis_said("axis", x.rank)))
    axis = call.axis("axis", x.rank)
    around = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    found = layer(call, "Softmax", call.build.reshape(x, around), axis=1)
    return call.build.reshape(Value(found, around, x.dtype), x.shape)


# ---- reductions


def reduction(function: str, **only: Any) -> Native:
    """Over the axes; `only` are attributes with the one value that the function has."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if any(call[name] != value for name, value in only.items()):
            return None
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes or x.dtype == "i32":  # which some of them widen
            return None
        if call.out.kind == "int" and function.endswith(".mean"):  # which is real
            return None
        which = axes if call.says("axes") else None
        return call.value(invoke(function, x, axis=which, keepdims=call["keepdims"] or None))

    return Native(function, rule, since=KERAS_3)


def _position(function: str) -> Native:
    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if call["select_last"] or x.dtype == "bool":
            return None
        axis = call.axis_said("axis", x.rank)
        text = invoke(function, x, axis=axis, keepdims=call["keepdims"] or None)
        return call.value(f'ops.cast({text}, "int64")')

    return Native(function, rule, since=KERAS_3)


def _scan(function: str) -> Native:
    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if call["exclusive"] or call["reverse"] or x.dtype == "i32":
            return None
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank)))

    return Native(function, rule, since=KERAS_3)


def _top_k(call: Keras) -> list[Value] | None:
    x = call.input("x")
    first = call["largest"] and call["nans"] == "open"
    if call.build.backend == "torch" and call["stable"]:
        return None  # `torch.topk` leaves the order of equal elements open
    if not first or call.axis("axis", x.rank) != x.rank - 1 or not call["k"]:
        return None
    values, places = call.build.several(invoke("ops.top_k", x, call["k"]), "v", "v")
    return [
        Value(values, call.out.shape, x.dtype),
        Value(f'ops.cast({places}, "int64")', call.outputs[1].shape, "i64"),
    ]


# ---- shapes


def _reshape(call: Keras) -> Value:
    x, shape = call.input("x"), tuple(call["shape"])
    # a layer keeps the size of every sample, also where there are none
    whole = x.rank and shape and math.prod(x.shape[1:]) == math.prod(call.out.shape[1:])
    if whole and x.shape[0] == shape[0] and call.out.kind == "real":
        return call.value(layer(call, "Reshape", x, target_shape=shape[1:]))
    return call.build.reshape(x, call.out.shape)


def _reshape_open(call: Keras) -> Value | None:
    """A layer that is told all sizes but one."""
    x, shape = call.input("x"), left_open(call)
    if shape is None or shape[0] == -1 or call.out.kind != "real":
        return None
    return call.value(layer(call, "Reshape", x, target_shape=shape[1:]))


def _flatten(call: Keras) -> Value:
    x, shape = call.input("x"), call.out.shape
    least = 3 if call.build.backend == "theano" else 2  # axes that its layer says it takes
    flat = x.rank >= least and shape == (x.shape[0], math.prod(x.shape[1:]))
    if flat and call.out.kind == "real":
        return call.value(layer(call, "Flatten", x))
    return call.build.reshape(x, shape)


def _transpose(call: Keras) -> Value:
    x, order = call.input("x"), tuple(call["order"])
    if order and order[0] == 0 and len(order) > 1 and call.out.kind == "real":
        return call.value(layer(call, "Permute", x, dims=order[1:]))
    if not call.says("perm") and call.build.version == 3:
        return call.value(invoke("ops.transpose", x))
    return call.build.transpose(x, order)


def _squeeze(call: Keras) -> Value:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if not axes:
        return call.build.reshape(x, call.out.shape)
    return call.value(invoke("ops.squeeze", x, axis=axes if call.says("axes") else None))


def _expand(call: Keras) -> Value:
    x, axes = call.input("x"), call["axes"]
    if not axes:
        return call.build.reshape(x, call.out.shape)
    return call.value(invoke("ops.expand_dims", x, axes[0] if len(axes) == 1 else axes))


def _repeat_vector(call: Keras) -> Value:
    return call.value(layer(call, "RepeatVector", call.input("x"), n=call["n"]))


def _concat(call: Keras) -> Value | None:
    values = call.family("xs")
    batch, axis = call.axis("axis", values[0].rank) == 0, call.axis_said("axis", values[0].rank)
    listed = f"[{', '.join(map(call.build.full, values))}]"
    if not batch and len(values) > 1 and call.out.kind == "real":
        return call.value(layer(call, "Concatenate", *values, axis=axis))
    if call.build.version == 2:
        return None
    return call.value(f"ops.concatenate({listed}, {axis})")


def _stack(call: Keras) -> Value:
    values = call.family("xs")
    if call.build.version == 2:
        return call.build.stack(values, call.axis("axis", values[0].rank + 1))
    listed = f"[{', '.join(map(call.build.full, values))}]"
    return call.value(f"ops.stack({listed}, {call.axis_said('axis', values[0].rank + 1)})")


def _split(call: Keras) -> list[Value]:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    counts = [info.shape[axis] for info in call.outputs]
    if len(counts) == 1:  # for which there is no list of places
        return [x]
    places = [sum(counts[: i + 1]) for i in range(len(counts) - 1)]
    text = invoke("ops.split", x, str(places), axis=axis)
    return named(call, text)


def _repeat(call: Keras) -> Value:
    x = call.input("x")
    return call.value(invoke("ops.repeat", x, call["repeats"], axis=call.axis_said("axis", x.rank)))


def _repeat_each(call: Keras) -> Value:
    x, numbers = call.input("x"), f"np.array({list(call['repeats'])}, np.int32)"
    return call.value(invoke("ops.repeat", x, numbers, axis=call.axis_said("axis", x.rank)))


def _tile(call: Keras) -> Value:
    return call.value(invoke("ops.tile", call.input("x"), tuple(call["repeats"])))


def _flip(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    which = axes if call.says("axes") else None
    return call.value(invoke("ops.flip", x, axis=which)) if axes else None


def _roll(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if not axes:
        return None
    return call.value(invoke("ops.roll", x, tuple(call["shift"]), axis=axes))


def _broadcast(call: Keras) -> Value:
    return call.build.expand(call.input("x"), call.out.shape)


def _trilu(call: Keras) -> Value:
    function = "ops.triu" if call["upper"] else "ops.tril"
    return call.value(invoke(function, call.input("x"), call["k"]))


_FUNCTIONS = (
    "negate=negative abs sign square reciprocal floor ceil round trunc sqrt rsqrt exp expm1 log "
    "log1p sin cos tan asin=arcsin acos=arccos atan=arctan sinh cosh tanh asinh=arcsinh "
    "acosh=arccosh atanh=arctanh erf isnan isfinite logical_not maximum minimum floor_divide "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "where bit_and=bitwise_and bit_or=bitwise_or bit_xor=bitwise_xor bit_not=bitwise_not"
)
_ACTIVATIONS = "sigmoid softsign log_sigmoid mish tanh_shrink sparse_plus"


ELEMENTS: dict[str, Native] = {
    **{name: three(plain(f"ops.{function}")) for name, function in functions(_FUNCTIONS)},
    **activations("keras.activations"),
    "add": _signed("+", "ops.add"),
    "subtract": _signed("-", "ops.subtract"),
    "multiply": _signed("*", "ops.multiply"),
    "divide": three(Native("ops.divide, a / b", _divide)),
    "add_n": three(_merged("Add", "ops.add")),
    "multiply_n": three(_merged("Multiply", "ops.multiply")),
    "maximum_n": three(_merged("Maximum", "ops.maximum")),
    "minimum_n": three(_merged("Minimum", "ops.minimum")),
    "average_n": Native("keras.layers.Average", _average),
    "clip": three(Native("ops.clip", _clip)),
    "cast": three(Native("ops.cast", _cast)),
    "relu": Native("keras.activations.relu, keras.layers.ReLU", _relu),
    "leaky_relu": Native("keras.layers.LeakyReLU", _leaky),
    "prelu": Native("keras.layers.PReLU", _prelu),
    "elu": simple("ELU", alpha="alpha"),
    "thresholded_relu": Native("keras.activations.threshold", _thresholded),
    "softmax": Native("keras.layers.Softmax", _softmax),
    "reduce_sum": reduction("ops.sum"),
    "reduce_mean": reduction("ops.mean"),
    "reduce_prod": reduction("ops.prod"),
    "reduce_max": reduction("ops.max"),
    "reduce_min": reduction("ops.min"),
    "reduce_all": reduction("ops.all"),
    "reduce_any": reduction("ops.any"),
    "reduce_variance": reduction("ops.var", correction=0),
    "reduce_std": reduction("ops.std", correction=0),
    "reduce_logsumexp": reduction("ops.logsumexp"),
    "argmax": _position("ops.argmax"),
    "argmin": _position("ops.argmin"),
    "cumsum": _scan("ops.cumsum"),
    "cumprod": _scan("ops.cumprod"),
    "top_k": three(Native("ops.top_k", _top_k)),
    "einsum": three(native("ops.einsum", repeats=False)),
    "reshape": with_others(
        Native("keras.layers.Reshape, ops.reshape", _reshape),
        Native("keras.layers.Reshape", _reshape_open),
    ),
    "flatten": Native("keras.layers.Flatten, ops.reshape", _flatten),
    "transpose": Native("keras.layers.Permute, ops.transpose", _transpose),
    "squeeze": Native("ops.squeeze", _squeeze, since=KERAS_3),
    "expand_dims": Native("ops.expand_dims", _expand, since=KERAS_3),
    "repeat_vector": Native("keras.layers.RepeatVector", _repeat_vector),
    "concat": three(Native("keras.layers.Concatenate, ops.concatenate", _concat)),
    "stack": three(Native("ops.stack", _stack)),
    "split": three(Native("ops.split", _split)),
    "repeat": three(Native("ops.repeat", _repeat)),
    "repeat_each": three(Native("ops.repeat", _repeat_each)),
    "tile": three(Native("ops.tile", _tile)),
    "reverse": three(Native("ops.flip", _flip)),
    "roll": three(Native("ops.roll", _roll)),
    "broadcast_to": three(Native("ops.broadcast_to", _broadcast)),
    "trilu": three(Native("ops.triu, ops.tril", _trilu)),
}
