"""How MXNet spells operators on elements, axes and places: `mx.np`, and `mx.npx` for some."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.chance import MX as CHANCE
from irlang.lower.labels import native
from irlang.lower.mx_arrays import ARRAYS
from irlang.lower.mx_builder import MOST_AXES, MxBuilder
from irlang.lower.mx_creation import CREATION
from irlang.lower.mx_further import FURTHER
from irlang.lower.mx_layers import LAYERS
from irlang.lower.mx_legacy import LEGACY
from irlang.lower.mx_losses import LOSSES
from irlang.lower.mx_optimizers import OPTIMIZERS
from irlang.lower.mx_words import WORDS
from irlang.lower.numpy_words import inner
from irlang.lower.selections import MX_SELECTIONS
from irlang.lower.spelling import (
    functions,
    invoke,
    named,
    of_wide,
    plain,
    reshaped,
    turned,
    with_words,
)
from irlang.lower.value import Value

Mx = Call[MxBuilder]
_WIDE = ("f32", "f64")


def _signed(sign: str) -> Native:
    def rule(call: Mx) -> Value:
        return call.value(f" {sign} ".join(map(call.build.inner, call.values.values())))

    return Native(f"a {sign} b", rule)


def _or_number(function: str) -> Native:
    """Of two operands, of which one may be a number: MXNet has kernels of its own for that."""

    def rule(call: Mx) -> Value:
        return call.value(invoke(function, *_operands(call)))

    return Native(function, rule)


def _operands(call: Mx) -> list[str]:
    values = list(call.values.values())
    written = all(value.literal is not None for value in values)
    return [call.build.full(value) if written else call.build.inner(value) for value in values]


def _divide(call: Mx) -> Value | None:
    if call.out.kind == "int":
        return None
    return call.value(" / ".join(map(call.build.inner, call.values.values())))


def _leaky(kind: str, attribute: str) -> Native:
    def rule(call: Mx) -> Value:
        slope = float(call[attribute])
        return call.value(
            invoke("mx.npx.leaky_relu", call.input("x"), act_type=f'"{kind}"', slope=slope)
        )

    return Native("mx.npx.leaky_relu", rule)


def _relu(call: Mx) -> Value | None:
    usual = (call["max_value"], call["negative_slope"], call["threshold"]) == (math.inf, 0, 0)
    return call.value(invoke("mx.npx.relu", call.input("x"))) if usual else None


def _gelu(call: Mx) -> Value | None:
    if call["approximate"] != "none":
        return None
    return call.value(invoke("mx.npx.leaky_relu", call.input("x"), act_type='"gelu"'))


def _clip(call: Mx) -> Value:
    """Of bounds in the wrong order the upper one counts, as NumPy has it."""
    return call.value(invoke("mx.np.clip", call.input("x"), call["low"], call["high"]))


def _reduction(function: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if call.out.kind != "real":
            return None
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes:
            return None
        return call.value(invoke(function, x, axis=axes, keepdims=call["keepdims"] or None))

    return Native(function, rule)


def _spread(function: str) -> Native:
    """A variance, or its root: of so many elements less."""

    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes:
            return None
        options = {"ddof": call["correction"] or None, "keepdims": call["keepdims"] or None}
        return call.value(invoke(function, x, axis=axes, **options))

    return Native(function, rule)


def _position(function: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if call["select_last"] or call["keepdims"] or not x.dtype.startswith("f"):
            return None
        text = invoke(function, x, axis=call.axis_said("axis", x.rank))
        return call.value(f'{text}.astype("int64")')

    return Native(function, rule)


def _cumsum(call: Mx) -> Value | None:
    x = call.input("x")
    if call["exclusive"] or call["reverse"] or call.out.kind != "real":
        return None
    return call.value(invoke("mx.np.cumsum", x, axis=call.axis_said("axis", x.rank)))


def _norm(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    if not 1 <= len(axes) <= 2 or x.dtype not in _WIDE:
        return None
    axis: Any = axes[0] if len(axes) == 1 else axes
    order = None if len(axes) == 1 else '"fro"'
    keep = call["keepdims"] or None
    return call.value(invoke("mx.np.linalg.norm", x, ord=order, axis=axis, keepdims=keep))


def _modulo(call: Mx) -> Value | None:
    own = call["sign_of"] == "divisor" and (call.out.dtype in _WIDE or call.out.kind == "int")
    return call.value(invoke("mx.np.mod", *_operands(call))) if own else None


def _power(call: Mx) -> Value | None:
    types = {value.dtype for value in call.values.values()}
    if len(types) > 1 or not (types <= {*_WIDE} or call.out.kind == "int"):
        return None  # of numbers of two types it has none
    return call.value(invoke("mx.np.power", *_operands(call)))


def _activation(kind: str, **only: Any) -> Native:
    def rule(call: Mx) -> Value | None:
        if any(float(call[name]) != float(number) for name, number in only.items()):
            return None
        return call.value(invoke("mx.npx.activation", call.input("x"), act_type=f'"{kind}"'))

    return Native("mx.npx.activation", rule)


def _selu(call: Mx) -> Value | None:
    if (float(call["alpha"]), float(call["gamma"])) != (1.6732632423543772, 1.0507009873554805):
        return None
    return call.value(invoke("mx.npx.leaky_relu", call.input("x"), act_type='"selu"'))


# ---- shapes


def _flatten(call: Mx) -> Value:
    return call.build.reshape(call.input("x"), call.out.shape)


def _transpose(call: Mx) -> Value:
    return call.build.transpose(call.input("x"), tuple(call["order"]))


def _squeeze(call: Mx) -> Value | None:
    axes = call.axes_said("axes", call.input("x").rank)
    return call.value(invoke("mx.np.squeeze", call.input("x"), axis=axes)) if axes else None


def _expand_dims(call: Mx) -> Value | None:
    axes = call["axes"]
    if len(axes) != 1:
        return None
    return call.value(invoke("mx.np.expand_dims", call.input("x"), axes[0]))


def _joined(function: str, rank: int) -> Native:
    def rule(call: Mx) -> Value:
        values = call.family("xs")
        axis = call.axis_said("axis", values[0].rank + rank)
        listed = ", ".join(map(call.build.full, values))
        return call.value(f"{function}([{listed}], axis={axis})")

    return Native(function, rule)


def _tile(call: Mx) -> Value:
    return call.value(invoke("mx.np.tile", call.input("x"), tuple(call["repeats"])))


def _repeat(call: Mx) -> Value:
    x = call.input("x")
    return call.value(
        invoke("mx.np.repeat", x, call["repeats"], axis=call.axis_said("axis", x.rank))
    )


def _flip(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    return call.value(invoke("mx.np.flip", x, axis=axes)) if axes else None


def _roll(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if not axes:
        return None
    return call.value(invoke("mx.np.roll", x, tuple(call["shift"]), axis=axes))


def _split(call: Mx) -> list[Value]:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    ends = tuple(accumulate(info.shape[axis] for info in call.outputs))[:-1]
    text = invoke("mx.np.split", x, str(list(ends)), axis=axis)
    return named(call, text)


def _lower(call: Mx) -> Value | None:
    x = call.input("x")
    if call["upper"] or x.dtype not in _WIDE:
        return None
    return call.value(invoke("mx.np.tril", x, call["k"]))


def _broadcast(call: Mx) -> Value:
    return call.value(invoke("mx.np.broadcast_to", call.input("x"), call.out.shape))


def _trace(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if x.dtype not in _WIDE:
        return None
    text = invoke("mx.np.trace", x, offset=call["offset"], axis1=axes[0], axis2=axes[1])
    return call.value(text)


def _take(call: Mx) -> Value | None:
    """An index below zero is one from the end where the axis goes round."""
    x, ids = call.input("x"), call.input("ids")
    mode = '"raise"' if call["negative"] == "refused" else '"wrap"'
    if x.dtype == "bool":
        return None
    return call.value(invoke("mx.np.take", x, ids, axis=call.axis_said("axis", x.rank), mode=mode))


def _pick(call: Mx) -> Value | None:
    """One element along an axis."""
    x, ids = call.input("x"), call.input("ids")
    axis = call.axis("axis", x.rank)
    if ids.shape[axis] != 1 or call["negative"] != "refused":
        return None
    places = call.build.reshape(ids, (*ids.shape[:axis], *ids.shape[axis + 1 :]))
    options = {"axis": call.axis_said("axis", x.rank), "keepdims": True}
    return call.value(invoke("mx.npx.pick", x, places, **options))


def _one_hot(call: Mx) -> Value | None:
    ids = call.input("ids")
    last = call["axis"] in (-1, ids.rank) and call["negative"] == "off"
    if not last or call.out.kind == "bool":
        return None
    options = {"on_value": float(call["on"]), "off_value": float(call["off"])}
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("mx.npx.one_hot", ids, call["depth"], dtype=dtype, **options))


def _prelu(call: Mx) -> Value | None:
    """One slope for every channel, which are the second axis."""
    x, slope = call.input("x"), call.input("slope")
    ahead = x.rank - slope.rank
    shape = (1,) * ahead + slope.shape
    if x.rank < 2 or math.prod(shape) != shape[1] or shape[1] != x.shape[1]:
        return None
    flat = slope if slope.rank == 1 else call.build.reshape(slope, (shape[1],))
    return call.value(invoke("mx.npx.leaky_relu", x, flat, act_type='"prelu"'))


def _top_k(call: Mx) -> list[Value] | None:
    x = call.input("x")
    if call["nans"] != "open" or not call["k"]:
        return None
    options = {
        "k": call["k"], "axis": call.axis_said("axis", x.rank), "ret_typ": '"both"',
        "is_ascend": None if call["largest"] else True, "dtype": '"int64"',
    }  # fmt: skip
    return named(call, invoke("mx.npx.topk", x, **options))


def _slice(call: Mx) -> Value | None:
    x = call.input("x")
    if x.dtype == "bool":
        return None
    begin, end, step = [0] * x.rank, list(x.shape), [1] * x.rank
    rows = zip(call["axes"], call["begin"], call["end"], call["step"], strict=True)
    for axis, low, high, by in rows:
        begin[axis], end[axis], step[axis] = low, high, by
    return call.value(
        invoke("mx.npx.slice", x, begin=tuple(begin), end=tuple(end), step=tuple(step))
    )


def _slice_update(call: Mx) -> Value | None:
    """An array of its own, a part of which is assigned to."""
    x, update = call.input("x"), call.input("update")
    if x.dtype not in _WIDE or not x.rank or update.rank != x.rank:
        return None
    if not all((*x.shape, *update.shape)):
        return None
    rows = zip(call["begin"], call["step"], update.shape, strict=True)
    part = ", ".join(f"{b}:{b + (n - 1) * s + 1}:{s}" for b, s, n in rows)
    held = call.build.once(f"{call.build.receiver(x)}.copy()", x.shape, x.dtype, "held")
    call.build.lines.append(f"{held.text}[{part}] = {update.text}")
    return held


def _diff(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank > MOST_AXES:
        return None
    return call.value(invoke("mx.np.diff", x, n=call["n"], axis=call.axis_said("axis", x.rank)))


def _histogram(call: Mx) -> Value | None:
    if call["outside"] != "dropped":
        return None
    x, ends = call.input("x"), (float(call["low"]), float(call["high"]))
    return call.value(f"{invoke('mx.np.histogram', x, bins=call['bins'], range=ends)}[0]")


def _tensordot(call: Mx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if call.out.dtype not in _WIDE:
        return None
    axes = [list(call.axes_said("a_axes", a.rank)), list(call.axes_said("b_axes", b.rank))]
    return call.value(invoke("mx.np.tensordot", a, b, axes=str(axes)))


def _outer(call: Mx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank != 1 or b.rank != 1 or call.out.dtype not in _WIDE:
        return None
    return call.value(invoke("mx.np.outer", a, b))


def _meshgrid(call: Mx) -> list[Value] | None:
    values = call.family("xs")
    if call.out.kind == "bool":
        return None
    text = invoke("mx.np.meshgrid", *values, indexing=f'"{call["indexing"]}"')
    return named(call, text)


def _ldexp(call: Mx) -> Value:
    x = call.input("x")
    power = call.build.cast(call.input("n"), x.dtype)
    return call.value(invoke("mx.np.ldexp", x, power))


_FUNCTIONS = (
    "negate=negative abs sign square reciprocal floor ceil trunc sqrt exp expm1 log log1p sin cos "
    "tan asin=arcsin acos=arccos atan=arctan sinh cosh tanh asinh=arcsinh acosh=arccosh "
    "atanh=arctanh round=rint cbrt log2 log10 deg2rad=radians rad2deg=degrees logical_not "
    "bit_xor=bitwise_xor lcm"
)
_OF_TWO = (
    "maximum minimum equal not_equal less less_equal greater greater_equal atan2=arctan2 hypot "
    "copysign"
)


def _named(listed: str) -> dict[str, str]:
    """The functions of `mx.np` by the names of the operators that they are."""
    return {name: f"mx.np.{function}" for name, function in functions(listed)}


_ROWS: dict[str, Native] = {
    **LEGACY,
    **{name: plain(function) for name, function in _named(_FUNCTIONS).items()},
    **{name: _or_number(function) for name, function in _named(_OF_TWO).items()},
    "add": _signed("+"),
    "subtract": _signed("-"),
    "multiply": _signed("*"),
    "divide": Native("a / b", _divide),
    "relu": Native("mx.npx.relu", _relu),
    "leaky_relu": _leaky("leaky", "alpha"),
    "elu": _leaky("elu", "alpha"),
    "gelu": Native("mx.npx.leaky_relu", _gelu),
    "sigmoid": plain("mx.npx.sigmoid"),
    "clip": Native("mx.np.clip", _clip),
    "reduce_sum": _reduction("mx.np.sum"),
    "reduce_mean": _reduction("mx.np.mean"),
    "reduce_prod": _reduction("mx.np.prod"),
    "reduce_max": _reduction("mx.np.max"),
    "reduce_min": _reduction("mx.np.min"),
    "reduce_variance": _spread("mx.np.var"),
    "reduce_std": _spread("mx.np.std"),
    "reduce_l2": Native("mx.np.linalg.norm", _norm),
    "modulo": Native("mx.np.mod", _modulo),
    "power": Native("mx.np.power", _power),
    "softplus": _activation("softrelu", beta=1),
    "softsign": _activation("softsign"),
    "selu": Native("mx.npx.leaky_relu", _selu),
    "argmax": _position("mx.np.argmax"),
    "argmin": _position("mx.np.argmin"),
    "cumsum": Native("mx.np.cumsum", _cumsum),
    "einsum": native("mx.np.einsum", repeats=True, serves=True, integers=True),
    "reshape": reshaped("mx.np.reshape"),
    "flatten": Native("mx.np.reshape", _flatten),
    "transpose": Native("mx.np.transpose", _transpose),
    "squeeze": Native("mx.np.squeeze", _squeeze),
    "expand_dims": Native("mx.np.expand_dims", _expand_dims),
    "concat": _joined("mx.np.concatenate", 0),
    "stack": _joined("mx.np.stack", 1),
    "tile": Native("mx.np.tile", _tile),
    "repeat": Native("mx.np.repeat", _repeat),
    "reverse": Native("mx.np.flip", _flip),
    "roll": Native("mx.np.roll", _roll),
    "split": Native("mx.np.split", _split),
    "trilu": Native("mx.np.tril", _lower),
    "broadcast_to": Native("mx.np.broadcast_to", _broadcast),
    "trace": Native("mx.np.trace", _trace),
    "gather": Native("mx.np.take", _take),
    "take_along_axis": Native("mx.npx.pick", _pick),
    "prelu": Native("mx.npx.leaky_relu", _prelu),
    "top_k": Native("mx.npx.topk", _top_k),
    "slice": Native("mx.npx.slice", _slice),
    "slice_update": Native("mx.np.ndarray.__setitem__", _slice_update, ("x", "update"), eager=True),
    "differences": Native("mx.np.diff", _diff),
    "histogram": Native("mx.np.histogram", _histogram),
    "rot90": turned("mx.np.rot90"),
    "tensordot": Native("mx.np.tensordot", _tensordot),
    "outer": Native("mx.np.outer", _outer),
    "inner": of_wide(inner("mx.np.inner")),
    "meshgrid": Native("mx.np.meshgrid", _meshgrid),
    "ldexp": Native("mx.np.ldexp", _ldexp),
    "round_to": of_wide(plain("mx.np.around", decimals="decimals")),
    "one_hot": Native("mx.npx.one_hot", _one_hot),
    **CREATION,
    **MX_SELECTIONS,
    **CHANCE,
    **LAYERS,
    **LOSSES,
    **OPTIMIZERS,
    **ARRAYS,
}
TABLE = with_words(_ROWS, WORDS, FURTHER)
