"""How Keras 2 spells operators on elements and reductions on Theano: `keras.backend`."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.keras_call import Keras
from irlang.lower.keras_ops import reduction
from irlang.lower.spelling import functions, invoke, plain
from irlang.lower.value import Value

_ELEMENTS = (
    "abs exp log sqrt square sign round sin cos maximum minimum equal not_equal greater "
    "greater_equal less less_equal"
)
_REDUCTIONS = (
    "reduce_sum=sum reduce_prod=prod reduce_mean=mean reduce_max=max reduce_min=min reduce_all=all "
    "reduce_any=any reduce_logsumexp=logsumexp"
)
_MOMENTS = "reduce_variance=var reduce_std=std"


def _power(call: Keras) -> Value | None:
    """Of whole numbers it has another type."""
    values = list(call.values.values())
    if {value.dtype for value in values} != {"f32"}:
        return None
    return call.value(invoke("K.pow", *map(call.build.full, values)))


def _clip(call: Keras) -> Value | None:
    if call["min"] > call["max"] or call.out.dtype != "f32":
        return None
    return call.value(invoke("K.clip", call.input("x"), call["min"], call["max"]))


def _position(function: str) -> Native:
    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if call["select_last"] or call["keepdims"] or x.dtype == "bool":
            return None
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank)))

    return Native(function, rule)


def _scan(function: str) -> Native:
    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if call["exclusive"] or call["reverse"] or x.dtype != "f32":
            return None
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank)))

    return Native(function, rule)


def _repeat(call: Keras) -> Value:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    return call.value(invoke("K.repeat_elements", x, call["repeats"], axis))


def _tile(call: Keras) -> Value:
    return call.value(invoke("K.tile", call.input("x"), tuple(call["repeats"])))


def _reverse(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    return call.value(invoke("K.reverse", x, axes)) if axes else None


def _tanh(call: Keras) -> Value:
    return call.value(invoke("K.tanh", call.input("x")))


def _one_hot(call: Keras) -> Value | None:
    ids = call.input("ids")
    usual = (call["on"], call["off"], call["negative"]) == (1, 0, "off")
    last = call.axis("axis", ids.rank + 1) == ids.rank
    if not usual or not last or not ids.rank or call.out.dtype != "f32":
        return None
    return call.value(invoke("K.one_hot", ids, call["depth"]))


def _gather(call: Keras) -> Value | None:
    """Along the first axis alone; a number below 0 counts from the end there."""
    x = call.input("x")
    if call.axis("axis", x.rank) or call["negative"] != "refused":
        return None
    return call.value(invoke("K.gather", x, call.input("ids")))


def _l2_normalize(call: Keras) -> Value | None:
    """The sum of squares is bounded by what Keras takes for an epsilon."""
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if len(axes) != 1 or call["eps"] != 1e-7 or x.dtype != "f32":
        return None
    return call.value(invoke("K.l2_normalize", x, axis=axes[0]))


def _squeeze(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    return call.value(invoke("K.squeeze", x, axes[0])) if len(axes) == 1 else None


def _expand(call: Keras) -> Value | None:
    axes = call["axes"]
    return call.value(invoke("K.expand_dims", call.input("x"), axes[0])) if len(axes) == 1 else None


def _stack(call: Keras) -> Value:
    values = call.family("xs")
    listed = f"[{', '.join(map(call.build.full, values))}]"
    return call.value(invoke("K.stack", listed, axis=call.axis_said("axis", values[0].rank + 1)))


def _where(call: Keras) -> Value | None:
    """Of one shape, as Keras documents."""
    given = [call.input(name) for name in ("condition", "a", "b")]
    if len({value.shape for value in given}) > 1:
        return None
    return call.value(invoke("K.switch", *given))


def _of(rows: str) -> list[tuple[str, str]]:
    """Operators, each with the function's name."""
    return [(name, f"K.{function}") for name, function in functions(rows)]


BACKEND: dict[str, Native] = {
    **{name: plain(function) for name, function in _of(_ELEMENTS)},
    **{name: replace(reduction(function), since=()) for name, function in _of(_REDUCTIONS)},
    **{
        name: replace(reduction(function, correction=0), since=())
        for name, function in _of(_MOMENTS)
    },
    "power": Native("K.pow", _power),
    "clip": Native("K.clip", _clip),
    "argmax": _position("K.argmax"),
    "argmin": _position("K.argmin"),
    "cumsum": _scan("K.cumsum"),
    "cumprod": _scan("K.cumprod"),
    "repeat": Native("K.repeat_elements", _repeat),
    "tile": Native("K.tile", _tile),
    "reverse": Native("K.reverse", _reverse),
    "tanh": Native("K.tanh", _tanh),
    "one_hot": Native("K.one_hot", _one_hot),
    "gather": Native("K.gather", _gather),
    "l2_normalize": Native("K.l2_normalize", _l2_normalize),
    "squeeze": Native("K.squeeze", _squeeze),
    "expand_dims": Native("K.expand_dims", _expand),
    "stack": Native("K.stack", _stack),
    "where": Native("K.switch", _where),
}
