"""How PyTorch spells operators on elements and along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import is_whole
from irlang.lower.spelling import default, functions, invoke, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def _infix(call: Torch, sign: str) -> Value:
    values = list(call.values.values())
    several = sum(value.literal is None for value in values)
    spell = call.build.beside if several else call.build.inner
    return call.value(f" {sign} ".join(map(spell, values)))


def _softplus(call: Torch) -> Value:
    # beyond its threshold it is x itself, which at 20 is right to the digits of f32 alone
    options = {"beta": call["beta"]}
    if call.out.dtype == "f64":
        options["threshold"] = 40
    return call.value(invoke("F.softplus", call.build.full(call.input("x")), **options))


def _divide(call: Torch) -> Value:
    mode = '"trunc"' if DTYPES[call.out.dtype].kind == "int" else None
    return call.value(
        invoke("torch.div", *map(call.build.solid, call.values.values()), rounding_mode=mode)
    )


def _modulo(call: Torch) -> Value:
    function = {"divisor": "torch.remainder", "dividend": "torch.fmod"}[call["sign_of"]]
    return call.value(invoke(function, *map(call.build.solid, call.values.values())))


def _clip(call: Torch) -> Value | None:
    low, high = call["low"], call["high"]
    bounds = {"min": None if low == -math.inf else low, "max": None if high == math.inf else high}
    if bounds == {"min": None, "max": None}:
        return None
    return call.value(invoke("torch.clamp", call.input("x"), **bounds))


def _isinf(call: Torch) -> Value | None:
    functions = {(True, True): "isinf", (False, True): "isposinf", (True, False): "isneginf"}
    function = functions.get((call["negative"], call["positive"]))
    return function and call.value(invoke(f"torch.{function}", call.input("x")))  # type: ignore[return-value]


def _chain(function: str) -> Native:
    """A function of two, over any number."""

    def rule(call: Torch) -> Value:
        text, *rest = [value.text for value in call.family("xs")]
        for other in rest:
            text = f"{function}({text}, {other})"
        return call.value(text)

    return Native(function, rule)


def _cast(call: Torch) -> Value:
    return call.value(f"{call.build.inner(call.input('x'))}.to({call.build.dtype(call.out.dtype)})")


# ---- activations


def _relu(call: Torch) -> Value | None:
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    function = {(math.inf, 0.0, 0.0): "F.relu", (6.0, 0.0, 0.0): "F.relu6"}.get(shape)
    return None if function is None else call.value(invoke(function, call.input("x")))


def _prelu(call: Torch) -> Value | None:
    """One slope, or one for every channel."""
    x, slope = call.input("x"), call.input("slope")
    size = math.prod(slope.shape)
    channels = len(x.shape) > 1 and size == x.shape[1] and x.rank - slope.rank <= 1
    if channels and size > 1:
        channels = slope.shape[1 - (x.rank - slope.rank)] == size
    if size != 1 and not channels:
        return None
    flat = slope if slope.rank == 1 else call.build.reshape(slope, (size,))
    return call.value(invoke("F.prelu", x, flat))


def _gelu(call: Torch) -> Value:
    approximate = None if call["approximate"] == "none" else '"tanh"'
    return call.value(invoke("F.gelu", call.input("x"), approximate=approximate))


# ---- reductions


def _dims(call: Torch, axes: Sequence[int]) -> Any:
    """Axes as the argument `dim`; none where the program says none and means all, unless they are
    kept: functions that keep all of them want to be told which.
    """
    if not call.says("axes") and not call["keepdims"]:
        return None
    return axes[0] if len(axes) == 1 else axes


def _reduction(function: str, named: bool = False, **more: str) -> Native:
    """Over the axes; named: whether the function wants to be told all of them, too."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes:
            return None
        options: dict[str, Any] = {key: call[name] for key, name in more.items()}
        dim = axes if named else _dims(call, axes)
        keep = call["keepdims"] or None
        return call.value(invoke(function, x, dim=dim, keepdim=keep, **options))

    return Native(function, rule)


def _with_places(function: str, part: str) -> Native:
    """What gives extremes along one axis and the places of the first of them; `part` is one of the
    two.
    """

    def rule(call: Torch) -> Value | None:
        x, places = call.input("x"), part == "indices"
        if not x.rank or x.dtype == "bool" or (places and call["select_last"]):
            return None
        name = "axis" if places else "axes"
        if len(call.axes(name, x.rank)) != 1:
            return None
        dim, keep = call.axes_said(name, x.rank)[0], call["keepdims"] or None
        return call.value(f"{invoke(function, x, dim=dim, keepdim=keep)}.{part}")

    return Native(function, rule)


def _mean(call: Torch) -> Value | Sequence[Value] | None:
    """Of reals; there is no mean of integers."""
    return _reduction("torch.mean").rule(call) if DTYPES[call.out.dtype].kind == "real" else None


def _sum(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    if not axes:
        return None
    dtype = call.build.dtype(x.dtype) if DTYPES[x.dtype].kind == "int" else None
    dim, keep = _dims(call, axes), call["keepdims"] or None
    return call.value(invoke("torch.sum", x, dim=dim, keepdim=keep, dtype=dtype))


def _prod(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    dim = _dims(call, axes)
    if not axes or isinstance(dim, tuple):
        return None
    dtype = call.build.dtype(x.dtype) if DTYPES[x.dtype].kind == "int" else None
    keep = call["keepdims"] or None
    return call.value(invoke("torch.prod", x, dim=dim, keepdim=keep, dtype=dtype))


def _spread(function: str) -> Native:
    """Variance and deviation, where the divisor is positive."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        count = math.prod(x.shape[axis] for axis in axes)
        if not axes or count <= call["correction"]:
            return None
        options = {"correction": call["correction"], "keepdim": call["keepdims"] or None}
        return call.value(invoke(function, x, dim=_dims(call, axes), **options))

    return Native(function, rule)


def _norm(order: int) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes or DTYPES[x.dtype].kind != "real":
            return None
        options = {"dim": axes[0] if len(axes) == 1 else axes, "keepdim": call["keepdims"] or None}
        return call.value(invoke("torch.linalg.vector_norm", x, order, **options))

    return Native("torch.linalg.vector_norm", rule)


def _norm_of_any(call: Torch) -> Value | None:
    x, p = call.input("x"), call["p"]
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    if not axes:
        return None
    options = {"dim": axes[0] if len(axes) == 1 else axes, "keepdim": call["keepdims"] or None}
    order = int(p) if is_whole(p) else float(p)
    return call.value(invoke("torch.linalg.vector_norm", x, order, **options))


def _position(function: str) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        if call["select_last"] or x.dtype == "bool":
            return None
        keep = call["keepdims"] or None
        return call.value(invoke(function, x, dim=call.axis_said("axis", x.rank), keepdim=keep))

    return Native(function, rule)


def _scan(function: str) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axis = call.axis_said("axis", x.rank)
        if call["exclusive"]:
            return None
        dtype = call.build.dtype(x.dtype) if DTYPES[x.dtype].kind == "int" else None
        if not call["reverse"]:
            return call.value(invoke(function, x, dim=axis, dtype=dtype))
        text = invoke(function, f"{call.build.inner(x)}.flip({axis})", dim=axis, dtype=dtype)
        return call.value(f"{text}.flip({axis})")

    return Native(function, rule)


def _top_k(call: Torch) -> list[Value]:
    """`torch.topk` leaves the order of equal elements open; a stable sort does not."""
    x = call.input("x")
    axis, count = call.axis_said("axis", x.rank), call["k"]
    names = [call.build.names.fresh("v") for _ in range(2)]
    if not call["stable"]:
        given = {"k": count, "dim": axis, "largest": call["largest"], "sorted": call["sorted"]}
        call.build.lines.append(f"{', '.join(names)} = {invoke('torch.topk', x, **given)}")
        shapes = [info.shape for info in call.outputs]
        return [Value(names[0], shapes[0], x.dtype), Value(names[1], shapes[1], "i64")]
    options = {"dim": axis, "descending": call["largest"] or None, "stable": True}
    call.build.lines.append(f"{', '.join(names)} = {invoke('torch.sort', x, **options)}")
    found = [Value(names[0], x.shape, x.dtype), Value(names[1], x.shape, "i64")]
    return [call.build.slice(value, call.axis("axis", x.rank), 0, count, 1) for value in found]


def _signed(sign: str) -> Native:
    return Native(f"a {sign} b", lambda call: _infix(call, sign))


_UNARY = (
    "negate=neg abs sign square reciprocal floor ceil round trunc sqrt rsqrt exp expm1 log log1p "
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf isnan logical_not sigmoid "
    "maximum minimum equal=eq not_equal=ne less=lt less_equal=le "
    "greater=gt greater_equal=ge logical_and logical_or logical_xor where "
    "lgamma digamma erfc erfinv ndtr=special.ndtr"
)

ELEMENTS: dict[str, Native] = {
    **{name: plain(f"torch.{function}") for name, function in functions(_UNARY)},
    "add": _signed("+"),
    "subtract": _signed("-"),
    "multiply": _signed("*"),
    "add_n": _signed("+"),
    "multiply_n": _signed("*"),
    "maximum_n": _chain("torch.maximum"),
    "minimum_n": _chain("torch.minimum"),
    "floor_divide": replace(plain("torch.floor_divide"), constant=("a", "b")),
    "divide": Native("torch.div", _divide),
    "modulo": Native("torch.remainder, torch.fmod", _modulo),
    "clip": Native("torch.clamp", _clip),
    "isinf": Native("torch.isinf", _isinf),
    "cast": Native("torch.Tensor.to", _cast),
    "relu": Native("F.relu, F.relu6", _relu),
    "leaky_relu": plain("F.leaky_relu", negative_slope="alpha"),
    "prelu": Native("F.prelu", _prelu),
    "thresholded_relu": Native(
        "F.threshold",
        lambda call: call.value(invoke("F.threshold", call.input("x"), call["theta"], 0.0)),
    ),
    "elu": plain("F.elu", alpha="alpha"),
    "selu": default("F.selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    "celu": plain("F.celu", alpha="alpha"),
    "gelu": Native("F.gelu", _gelu),
    "silu": default("F.silu", alpha=1),
    "mish": plain("F.mish"),
    "softplus": Native("F.softplus", _softplus),
    "softsign": plain("F.softsign"),
    "hard_sigmoid": default("F.hardsigmoid", alpha=1 / 6, beta=0.5),
    "hard_swish": default("F.hardswish", alpha=1 / 6, beta=0.5),
    "hard_tanh": plain("F.hardtanh", min_val="min", max_val="max"),
    "log_sigmoid": plain("F.logsigmoid"),
    "tanh_shrink": plain("F.tanhshrink"),
    "soft_shrink": plain("F.softshrink", lambd="threshold"),
    "hard_shrink": plain("F.hardshrink", lambd="threshold"),
    "glu": plain("F.glu", dim="axis"),
    "reduce_sum": Native("torch.sum", _sum),
    "reduce_mean": Native("torch.mean", _mean),
    "reduce_prod": Native("torch.prod", _prod),
    **{
        f"reduce_{name}": replace(
            _reduction(f"torch.a{name}"), others=(_with_places(f"torch.{name}", "values"),)
        )
        for name in ("max", "min")
    },
    **{
        f"arg{name}": replace(
            _position(f"torch.arg{name}"), others=(_with_places(f"torch.{name}", "indices"),)
        )
        for name in ("max", "min")
    },
    "reduce_all": replace(_reduction("torch.all"), since=(2, 2)),
    "reduce_any": replace(_reduction("torch.any"), since=(2, 2)),
    "reduce_variance": _spread("torch.var"),
    "reduce_std": _spread("torch.std"),
    "reduce_logsumexp": _reduction("torch.logsumexp", named=True),
    "reduce_l1": _norm(1),
    "reduce_l2": _norm(2),
    "reduce_lp": Native("torch.linalg.vector_norm", _norm_of_any),
    "cumsum": _scan("torch.cumsum"),
    "cumprod": _scan("torch.cumprod"),
    "top_k": Native("torch.sort", _top_k),
}
