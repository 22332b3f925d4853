"""Keras 3's further words: functions beside those that people write, functions of functions, which
each backend maps and scans in its way, and layers around layers.
"""

from __future__ import annotations

from typing import Any

from irlang.lower.call import Native, Rule
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.keras_call import KERAS_3, Keras, layer, made, positions, quoted, weighted
from irlang.lower.spelling import default, invoke, named, plain
from irlang.lower.value import Value

_LATE = (3, 15)
_IMAGE = 4  # axes of a batch of images


def _word(spelling: str, rule: Rule, since: tuple[int, ...] = KERAS_3) -> Native:
    return Native(spelling, rule, since=since)


# ---- elements


def _activation(name: str, **only: float) -> Native:
    """A layer that is told a function's name; only: attributes, which have these values there."""
    row = default(name, **only)

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if row.rule(call) is None or not x.rank:
            return None
        return call.value(layer(call, "Activation", x, activation=quoted(name)))

    return _word("keras.layers.Activation", rule)


def _rescaled(scale: bool) -> Native:
    """A number that is multiplied with, or added."""

    def rule(call: Keras) -> Value | None:
        first, second = call.values["a"], call.values["b"]
        x, number = (second, first) if first.literal is not None else (first, second)
        if number.literal is None or x.literal is not None or call.out.kind != "real":
            return None
        told = float(number.literal)
        options: dict[str, Any] = {"scale": told} if scale else {"scale": 1.0, "offset": told}
        return call.value(layer(call, "Rescaling", x, **options)) if x.rank else None

    return _word("keras.layers.Rescaling", rule)


def _remainder(call: Keras) -> Value | None:
    if call["sign_of"] != "dividend" or call.out.kind != "real":
        return None
    return call.value(invoke("ops.fmod", *map(call.build.full, call.values.values())))


def _selected(call: Keras) -> Value:
    """Of a list of choices, which has one, and another."""
    condition, a, b = (call.build.full(value) for value in call.values.values())
    return call.value(f"ops.select([{condition}], [{a}], default={b})")


def _absolute(call: Keras) -> Value | None:
    """Of reals, which it makes of whole numbers."""
    return call.value(invoke("ops.fabs", call.input("x"))) if call.out.kind == "real" else None


def _true_divide(call: Keras) -> Value | None:
    values = map(call.build.full, call.values.values())
    return call.value(invoke("ops.true_divide", *values)) if call.out.kind == "real" else None


# ---- functions of functions


def _scanned(function: str) -> Native:
    """By an associative function, in pairs."""

    def rule(call: Keras) -> Value | list[Value] | None:
        x = call.input("x")
        if call.get("exclusive", False) or call.wants("at") or call.out.kind != "real":
            return None
        if 0 in x.shape:
            return None
        options = {"reverse": call["reverse"] or None, "axis": call.axis("axis", x.rank)}
        found = call.value(invoke("ops.associative_scan", function, x, **options))
        return [found] if len(call.outputs) > 1 else found

    return _word("ops.associative_scan", rule)


def _stepped(sign: str) -> Native:
    """From one number along the first axis to the next, in a loop."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if call["exclusive"] or call["reverse"] or x.rank < 1 or call.out.kind != "real":
            return None
        if call.axis("axis", x.rank) or 0 in x.shape:
            return None
        first = invoke("ops.zeros_like" if sign == "+" else "ops.ones_like", f"{x.text}[0]")
        step = f"lambda so_far, each: (so_far {sign} each, so_far {sign} each)"
        return call.value(f"ops.scan({step}, {first}, {x.text})[1]")

    return _word("ops.scan", rule)


def _mapped(function: str) -> Native:
    """Matrix by matrix, of as many on either side."""

    def rule(call: Keras) -> Value | None:
        a, b = call.input("a"), call.input("b")
        turned = call["transpose_a"] or call["transpose_b"]
        if turned or a.rank != 3 or b.rank != 3 or a.shape[0] != b.shape[0]:
            return None
        if 0 in (*a.shape, *b.shape):
            return None
        step = "lambda pair: ops.matmul(pair[0], pair[1])"
        return call.value(f"{function}({step}, ({a.text}, {b.text}))")

    return _word(function, rule)


def _rows(call: Keras) -> Value | None:
    """Row by row, each by the same matrix."""
    x = call.input("x")
    if x.rank < 2 or 0 in x.shape:
        return None
    text = f"ops.vectorized_map(lambda row: ops.matmul(row, {call.text('w')}), {x.text})"
    return call.value(f"{text} + {call.build.inner(call.input('b'))}" if call.has("b") else text)


# ---- layers around layers


def _distributed(call: Keras) -> Value | None:
    """A layer for every step of a sequence."""
    x, w = call.input("x"), call.input("w")
    if x.rank < 3 or 0 in x.shape:
        return None
    bias = None if call.has("b") else False
    inner = made(call, "Dense", w.shape[1], use_bias=bias)
    weights = [w, *([call.input("b")] if call.has("b") else [])]
    return call.value(weighted(call, "TimeDistributed", weights, x, layer=inner))


# ---- images


def _cropped(call: Keras, centre: bool) -> Value | None:
    """Of images alone their height and width."""
    x, before = call.input("x"), tuple(map(int, call["before"]))
    if x.rank != _IMAGE or x.dtype != "f32" or call.out.shape[:2] != x.shape[:2]:
        return None
    n, c, *space = call.out.shape
    if 0 in call.out.shape:
        return None
    told = {"data_format": quoted("channels_last")}
    inner = channels_last(call, x)
    if centre:
        middle = tuple((a - b) // 2 for a, b in zip(x.shape[2:], space, strict=True))
        if before[2:] != middle:
            return None
        text = layer(call, "CenterCrop", inner, height=space[0], width=space[1], **told)
    else:
        sizes = {"target_height": space[0], "target_width": space[1]}
        places = {"top_cropping": before[2], "left_cropping": before[3]}
        text = invoke("ops.image.crop_images", inner, **places, **sizes, **told)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


def _padded(call: Keras) -> Value | None:
    """Images, by zeros."""
    x, before, after = call.input("x"), tuple(call["before"]), tuple(call["after"])
    amounts = (*before, *after)
    if x.rank != _IMAGE or x.dtype != "f32" or call["mode"] != "constant" or call["fill"] != 0:
        return None
    if any(before[:2]) or any(after[:2]) or min(amounts) < 0 or 0 in x.shape:
        return None
    n, c, *space = call.out.shape
    places = {"top_padding": int(before[2]), "left_padding": int(before[3])}
    sizes = {"target_height": space[0], "target_width": space[1]}
    told: dict[str, Any] = {**places, **sizes, "data_format": quoted("channels_last")}
    text = invoke("ops.image.pad_images", channels_last(call, x), **told)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


def _similarity(call: Keras) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank != _IMAGE or a.shape != b.shape or call["size"] % 2 == 0 or a.dtype != "f32":
        return None
    names = {
        "max_val": "max_value", "filter_size": "size", "filter_sigma": "sigma", "k1": "k1",
        "k2": "k2",
    }  # fmt: skip
    options = {key: call[name] for key, name in names.items()}
    return call.value(
        invoke("ops.image.ssim", a, b, **options, data_format=quoted("channels_last"))
    )


def _edges(call: Keras) -> Value | None:
    x = call.input("x")
    if x.dtype != "f32" or 0 in x.shape:
        return None
    text = invoke("ops.image.sobel_edges", x, data_format=quoted("channels_last"))
    return call.value(text)


# ---- places


def _segments(call: Keras) -> Value | None:
    if call["reduction"] not in ("min", "prod") or call.out.kind == "int":
        return None
    function, ids = f"ops.segment_{call['reduction']}", positions(call, "ids")
    return call.value(invoke(function, call.input("x"), ids, num_segments=call["segments"]))


def _scattered(call: Keras) -> Value | None:
    """With what is done where there is something already; of elements, as it is documented."""
    x, ids = call.input("x"), call.input("ids")
    if call["reduction"] == "none" or call["negative"] != "refused" or call.out.kind != "real":
        return None
    if ids.rank != 2 or not ids.shape[-1]:
        return None
    ids = call.build.cast(ids, "i64")
    given = (x, ids, call.input("updates"), quoted(call["reduction"]))
    return call.value(invoke("ops.scatter_update", *given))


def _placed(call: Keras) -> Value | None:
    """Among zeros, to which the rest is added."""
    x, ids = call.input("x"), call.input("ids")
    usual = (call["reduction"], call["negative"]) == ("add", "refused")
    if not usual or call.out.kind != "real" or ids.rank != 2 or not ids.shape[-1]:
        return None
    given = (call.build.cast(ids, "i64"), call.input("updates"), tuple(x.shape))
    return call.value(f"{call.build.inner(x)} + {invoke('ops.scatter', *given)}")


def _item(call: Keras) -> Value | None:
    """Slices as Python writes them, as an argument."""
    x, steps = call.input("x"), tuple(call["step"])
    if not x.rank or min(steps, default=1) < 1 or call.node.instance.faults:
        return None
    parts = ["slice(None)"] * x.rank
    told = zip(call.axes("axes", x.rank), call["begin"], call["end"], steps, strict=True)
    for axis, begin, end, step in told:
        parts[axis] = f"slice({begin}, {end}, {step})"
    return call.value(f"ops.get_item({x.text}, ({', '.join(parts)},))")


def _kth(call: Keras) -> list[Value] | None:
    """Where a partition has it, and what is there."""
    x, k = call.input("x"), call["k"] - 1
    axis = call.axis("axis", x.rank)
    if call.out.kind != "real" or 0 in x.shape:
        return None
    picked = f"[{':, ' * axis}{k}:{k + 1}]"
    text = f'ops.cast({invoke("ops.argpartition", x, k, axis=axis)}{picked}, "int64")'
    shape = tuple(1 if n == axis else size for n, size in enumerate(x.shape))
    at = call.build.let(Value(text, shape, "i64"), "at")
    y = Value(invoke("ops.take_along_axis", x, at, axis=axis), shape, x.dtype)
    return [call.build.reshape(value, call.out.shape) for value in (y, at)]


def _unravelled(call: Keras) -> Value | None:
    if not call["shape"] or not call.out.shape[1]:
        return None
    found = invoke("ops.unravel_index", call.input("ids"), tuple(call["shape"]))
    stacked = Value(f'ops.cast(ops.stack({found}), "int64")', call.out.shape, "i64")
    return call.build.cast(stacked, call.out.dtype)


# ---- shapes


def _diagonal(more: int, functions: tuple[str, ...]) -> tuple[Native, ...]:
    """Of one matrix, or one vector."""

    def word(function: str) -> Native:
        def rule(call: Keras) -> Value | None:
            x = call.input("x")
            if x.rank + more != 2 or call.axes("axes", 2) != (0, 1) or x.dtype == "bool":
                return None
            return call.value(invoke(function, x, call["offset"])) if 0 not in x.shape else None

        return _word(function, rule)

    return tuple(map(word, functions))


def _triangle(call: Keras) -> Value | None:
    """Where a triangle of truths holds."""
    x, k = call.input("x"), call["k"]
    if call.out.kind != "real" or abs(k) > 1 << 16:
        return None
    m, n = x.shape[-2:]
    text = invoke("ops.tri", m, n, k - 1 if call["upper"] else k, quoted("bool"))
    zero = invoke("ops.zeros_like", x)
    given = (zero, x) if call["upper"] else (x, zero)
    return call.value(invoke("ops.where", text, *given))


def _identity(call: Keras) -> Value | None:
    if call["rows"] != call["columns"] or call["k"]:
        return None
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("ops.identity", call["rows"], dtype))


def _split(call: Keras) -> list[Value] | None:
    """At places along the first, the second or the third axis."""
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    counts = [info.shape[axis] for info in call.outputs]
    function = {0: "ops.vsplit", 1: "ops.hsplit", 2: "ops.dsplit"}.get(axis, "")
    if x.rank < 2 or not function or len(counts) == 1 or sum(counts) != x.shape[axis]:
        return None
    if function == "ops.dsplit" and x.rank < 3:
        return None
    places = [sum(counts[: n + 1]) for n in range(len(counts) - 1)]
    return named(call, invoke(function, x, str(places)))


def _parts(call: Keras) -> list[Value] | None:
    """Parts of which the first may be longer by one."""
    x = call.input("x")
    axis, count = call.axis_said("axis", x.rank), len(call.outputs)
    whole, more = divmod(x.shape[axis], count)
    sizes = [info.shape[axis] for info in call.outputs]
    if sizes != [whole + (n < more) for n in range(count)]:
        return None
    return named(call, invoke("ops.array_split", x, count, axis=axis))


def _flipped(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if axes not in ((0,), (1,)):
        return None
    return call.value(invoke("ops.fliplr" if axes[0] else "ops.flipud", x))


def _vectors(call: Keras) -> Value | None:
    a, b = call.input("a"), call.input("b")
    known = a.rank == b.rank == 1 and call.out.kind == "real"
    return call.value(invoke("ops.vdot", a, b)) if known else None


WORDS: dict[str, Native | tuple[Native, ...]] = {
    **{
        name: _activation(name)
        for name in ("sigmoid", "tanh", "softsign", "mish", "tanh_shrink", "log_sigmoid")
    },
    "softplus": _activation("softplus", beta=1),
    "silu": _activation("silu", alpha=1),
    "exp": _activation("exponential"),
    "elu": _activation("elu", alpha=1),
    "selu": _activation("selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    "hard_sigmoid": _activation("hard_sigmoid", alpha=1 / 6, beta=0.5),
    "multiply": _rescaled(scale=True),
    "add": _rescaled(scale=False),
    "modulo": _word("ops.fmod", _remainder, _LATE),
    "divide": _word("ops.true_divide", _true_divide),
    "where": _word("ops.select", _selected),
    "abs": _word("ops.fabs", _absolute, _LATE),
    "erfc": _word("ops.erfc", plain("ops.erfc").rule, _LATE),
    "cumsum": (_scanned("ops.add"), _stepped("+")),
    "cumprod": (_scanned("ops.multiply"), _stepped("*")),
    "logcumsumexp": _scanned("ops.logaddexp"),
    "cummax": _scanned("ops.maximum"),
    "cummin": _scanned("ops.minimum"),
    "matmul": (_mapped("ops.vectorized_map"), _mapped("ops.map")),
    "dense": (
        _word("keras.layers.TimeDistributed", _distributed),
        _word("ops.vectorized_map", _rows),
    ),
    "crop": (
        _word("keras.layers.CenterCrop", lambda call: _cropped(call, centre=True)),
        _word("ops.image.crop_images", lambda call: _cropped(call, centre=False)),
    ),
    "pad": _word("ops.image.pad_images", _padded),
    "ssim": _word("ops.image.ssim", _similarity, _LATE),
    "sobel_edges": _word("ops.image.sobel_edges", _edges, _LATE),
    "segment_reduce": _word("ops.segment_min, ops.segment_prod", _segments, _LATE),
    "scatter_nd": (
        _word("ops.scatter_update with a reduction", _scattered, (3, 14)),
        _word("ops.scatter", _placed),
    ),
    "slice": _word("ops.get_item", _item),
    "kth_value": _word("ops.argpartition", _kth),
    "unravel_index": _word("ops.unravel_index", _unravelled, _LATE),
    "diagonal": _diagonal(0, ("ops.diag",)),
    "diag_embed": _diagonal(1, ("ops.diag", "ops.diagflat")),
    "trilu": _word("ops.tri", _triangle),
    "eye": _word("ops.identity", _identity),
    "split": (
        _word("ops.hsplit, vsplit, dsplit", _split, _LATE),
        _word("ops.array_split", _parts, _LATE),
    ),
    "reverse": _word("ops.flipud, ops.fliplr", _flipped, _LATE),
    "inner": _word("ops.vdot", _vectors),
}
