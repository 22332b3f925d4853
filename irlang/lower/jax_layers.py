"""How JAX spells layers: products, convolutions, pools, normalisations, transforms."""

from __future__ import annotations

import math
from typing import Any

from irlang.dtypes import DTYPES, integer_range
from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.legalise import Windows, windows
from irlang.lower.spelling import invoke, of_vectors, of_wide
from irlang.lower.value import Value

Jax = Call[JaxBuilder]
_MOST_SPACE = 3  # spatial axes


def _unless(sizes: Any, number: int) -> tuple[int, ...] | None:
    """Sizes as an argument, none where all are `number`."""
    return None if all(size == number for size in sizes) else tuple(sizes)


def _biased(call: Jax, text: str, space: int = 0) -> Value:
    """The text with a bias added, which has so many axes behind it."""
    if not call.has("b"):
        return call.value(text)
    bias = call.build.inner(call.input("b"))
    behind = f"[:{', None' * space}]" if space else ""
    return call.value(f"{text} + {bias}{behind}")


# ---- products


def _dense(call: Jax) -> Value:
    return _biased(call, invoke("jnp.matmul", call.input("x"), call.input("w")))


def _matmul(call: Jax) -> Value:
    sides = []
    for name in ("a", "b"):
        text = call.build.inner(call.input(name))
        sides.append(f"{text}.mT" if call[f"transpose_{name}"] else text)
    return call.value(invoke("jnp.matmul", *sides))


def _cross(call: Jax) -> Value:
    a, b = call.input("a"), call.input("b")
    return call.value(invoke("jnp.cross", a, b, axis=call.axis_said("axis", a.rank)))


# ---- windows


def _padding(call: Jax, frame: Windows) -> Any:
    """What `jax.lax` is told to pad: the word, where it pads alike, or pairs."""
    if call["pad"] == "same":
        return '"SAME"'
    if not frame.padded:
        return '"VALID"'
    return str(list(zip(frame.before, frame.after, strict=True)))


def _convolve(call: Jax, weight: Value, groups: int) -> Value | None:
    frame = windows(call)
    if not 1 <= frame.rank <= _MOST_SPACE:
        return None
    text = invoke(
        "jax.lax.conv_general_dilated",
        call.input("x"),
        weight,
        frame.stride,
        _padding(call, frame),
        rhs_dilation=_unless(frame.dilation, 1),
        feature_group_count=None if groups == 1 else groups,
    )
    return _biased(call, text, frame.rank)


def _conv(call: Jax) -> Value | None:
    return _convolve(call, call.input("w"), call["groups"])


def _depthwise(call: Jax) -> Value | None:
    """A group for every channel, of which there has to be one."""
    if not call["C"]:
        return None
    weight = call.input("w")
    shape = (weight.shape[0] * weight.shape[1], 1, *weight.shape[2:])
    return _convolve(call, call.build.reshape(weight, shape), call["C"])


_AXES = {
    1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW"), 3: ("NCDHW", "OIDHW", "NCDHW"),
}  # fmt: skip


def _transposed(call: Jax) -> Value | None:
    """The padding that is told is that of the convolution over what lies between the strides."""
    size, stride, span = call["S"], call["stride"], call["span"]
    rank = len(size)
    if not 1 <= rank <= _MOST_SPACE or call["groups"] != 1:
        return None
    pairs = []
    for n, s, k, low, out in zip(size, stride, span, call["lo"], call["O"], strict=True):
        before = k - 1 - low
        pairs.append((before, out + k - 1 - ((n - 1) * s + 1) - before))
    axes = ", ".join(f'"{names}"' for names in _AXES[rank])
    text = invoke(
        "jax.lax.conv_transpose",
        call.input("x"),
        call.input("w"),
        tuple(stride),
        str(pairs),
        rhs_dilation=_unless(call["dilation"], 1),
        dimension_numbers=f"({axes})",
        transpose_kernel=True,
    )
    return _biased(call, text, rank)


def _pooled(frame: Windows, x: str, start: str, function: str) -> str:
    return invoke(
        "jax.lax.reduce_window",
        x,
        start,
        f"jax.lax.{function}",
        (1, 1, *frame.window),
        (1, 1, *frame.stride),
        '"VALID"' if not frame.padded else str(
            [(0, 0), (0, 0), *zip(frame.before, frame.after, strict=True)]
        ),
        window_dilation=_unless((1, 1, *frame.dilation), 1),
    )  # fmt: skip


def _max_pool(call: Jax) -> Value | None:
    x, frame = call.input("x"), windows(call).reaching()
    if not 1 <= frame.rank <= _MOST_SPACE:
        return None
    start = "-jnp.inf"
    if DTYPES[x.dtype].kind == "int":
        start = f"jnp.array({integer_range(x.dtype)[0]}, {call.build.dtype(x.dtype)})"
    return call.value(_pooled(frame, x.text, start, "max"))


def _avg_pool(call: Jax) -> Value | None:
    """The sum of a window, by the number of its elements."""
    x, frame = call.input("x"), windows(call)
    reaching = frame.reaching()
    counts = bool(call["count_include_pad"])
    if not 1 <= frame.rank <= _MOST_SPACE or (counts and reaching != frame):
        return None
    total = _pooled(reaching, x.text, "0.0", "add")
    if counts or not reaching.padded:
        return call.value(f"{total} / {math.prod(frame.window)}")
    ones = f"jnp.ones({(1, 1, *x.shape[2:])}, {call.build.dtype(x.dtype)})"
    return call.value(f"{total} / {_pooled(reaching, ones, '0.0', 'add')}")


def _global(function: str) -> Native:
    def rule(call: Jax) -> Value | None:
        x = call.input("x")
        if x.rank < 3:
            return None
        axes = tuple(range(2, x.rank))
        return call.value(invoke(function, x, axis=axes, keepdims=call["keepdims"] or None))

    return Native(function, rule)


# ---- normalisation


def _scaled(call: Jax, text: str, scale: str, bias: str, shape: tuple[int, ...]) -> Value:
    """What is standardised, times the scale and plus the bias, where these are given."""
    for sign, name in (("*", scale), ("+", bias)):
        if call.has(name):
            value = call.input(name)
            if value.shape != shape and shape:
                value = call.build.reshape(value, shape)
            text = f"{text} {sign} {call.build.inner(value)}"
    return call.value(text)


def _layer_norm(call: Jax) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if not axes or list(axes) != sorted(axes) or call["eps_to"] != "variance":
        return None
    shape = tuple(size if axis in axes else 1 for axis, size in enumerate(x.shape))
    said = call.axes_said("axes", x.rank)
    options = {"axis": said[0] if len(said) == 1 else said, "epsilon": call["eps"]}
    text = invoke("jax.nn.standardize", x, **options)
    return _scaled(call, text, "gamma", "beta", shape)


def _batch_norm(call: Jax) -> Value:
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    shape = tuple(size if i == axis else 1 for i, size in enumerate(x.shape))
    given = {key: call.build.reshape(call.input(name), shape)
             for key, name in (("mean", "mean"), ("variance", "var"))}  # fmt: skip
    axes = tuple(i for i in range(x.rank) if i != axis)
    text = invoke("jax.nn.standardize", x, axis=axes, **given, epsilon=call["eps"])
    return _scaled(call, text, "scale", "bias", shape)


# ---- attention

_PLAIN = {"left_window_size": -1, "right_window_size": -1, "softcap": 0, "masked_rows": "open"}


def _attention(call: Jax) -> Value | None:
    """JAX has heads third; values have the size of keys."""
    values = {name: call.input(name) for name in ("q", "k", "v")}
    if call.has("kv_lengths") or any(call[name] != usual for name, usual in _PLAIN.items()):
        return None
    if (call["causal"] and call["past"] != 0) or values["q"].shape[3] != values["v"].shape[3]:
        return None
    options: dict[str, Any] = {}
    for name in ("bias", "mask"):
        if call.has(name):
            value = call.input(name)
            options[name] = call.build.reshape(value, (1,) * (4 - value.rank) + value.shape)
    options["scale"] = call["scale"] if "scale" in call.node.attrs else None
    options["is_causal"] = call["causal"] or None
    sides = [call.build.transpose(value, (0, 2, 1, 3)) for value in values.values()]
    text = invoke("jax.nn.dot_product_attention", *sides, **options)
    b, h, n, d = call.out.shape
    return call.build.transpose(Value(text, (b, n, h, d), call.out.dtype), (0, 2, 1, 3))


# ---- matrices and transforms


def _determinant(call: Jax) -> Value:
    return call.value(invoke("jnp.linalg.det", call.input("x")))


def _inverse(call: Jax) -> Value:
    return call.value(invoke("jnp.linalg.inv", call.input("x")))


def _triangular(call: Jax) -> Value:
    options = {"lower": call["lower"], "unit_diagonal": call["unit_diagonal"] or None}
    options["left_side"] = True
    return call.value(
        invoke("jax.lax.linalg.triangular_solve", call.input("a"), call.input("b"), **options)
    )


def _dft(call: Jax) -> Value | None:
    """The halves that there are: of the spectrum of a real signal, and back to one."""
    x = call.input("x")
    half, back, real = call["onesided"], call["inverse"], x.shape[-1] == 1
    if half and back == real:
        return None
    function = f"jnp.fft.{'i' if back else ''}{'r' if half else ''}fft"
    source = call.build.inner(x)
    numbers = f"{source}[..., 0]"
    if not real:
        numbers = f"jax.lax.complex({numbers}, {source}[..., 1])"
    text = invoke(function, numbers, call["N"], call.axis("axis", x.rank))
    if half and back:
        return call.value(f"{text}[..., None]")
    name = call.build.names.fresh("spectrum")
    call.build.lines.append(f"{name} = {text}")
    return call.value(f"jnp.stack([{name}.real, {name}.imag], axis=-1)")


LAYERS: dict[str, Native] = {
    "dense": Native("jnp.matmul", _dense),
    "matmul": Native("jnp.matmul", _matmul),
    "outer": of_vectors("jnp.outer"),
    "cross": Native("jnp.cross", _cross),
    "conv": Native("jax.lax.conv_general_dilated", _conv),
    "depthwise_conv": Native("jax.lax.conv_general_dilated", _depthwise),
    "conv_transpose": Native("jax.lax.conv_transpose", _transposed),
    "max_pool": Native("jax.lax.reduce_window", _max_pool),
    "avg_pool": Native("jax.lax.reduce_window", _avg_pool),
    "global_max_pool": _global("jnp.max"),
    "global_avg_pool": _global("jnp.mean"),
    "layer_norm": Native("jax.nn.standardize", _layer_norm),
    "batch_norm": Native("jax.nn.standardize", _batch_norm),
    "attention": Native("jax.nn.dot_product_attention", _attention),
    "determinant": of_wide(Native("jnp.linalg.det", _determinant)),
    "inverse": of_wide(Native("jnp.linalg.inv", _inverse)),
    "triangular_solve": of_wide(Native("jax.lax.linalg.triangular_solve", _triangular)),
    "dft": of_wide(Native("jnp.fft.fft, ifft, rfft, irfft", _dft)),
}
