"""How Keras spells layers of sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from irlang.lower.call import Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.keras_call import KERAS_3, Keras, bias, layer, quoted, sizes, weighted
from irlang.lower.keras_frames import (
    FOR_POOL_3D,
    MOST_SPACE,
    alike,
    either_steps,
    framed,
    laid,
    layout,
    result,
    spaced,
    steps_of,
)
from irlang.lower.legalise import Windows, all_are, around, filling, groupable, windows
from irlang.lower.spelling import invoke
from irlang.lower.value import Value


def _turned(call: Keras, kernel: Value) -> Value:
    """A kernel, space first. Theano turns kernels round, as Keras documents; depthwise ones Keras
    turns itself.
    """
    if call.build.backend == "theano":
        for axis, size in enumerate(kernel.shape[:-2]):
            kernel = call.build.slice(kernel, axis, size - 1, -1, -1)
    return kernel


def _on_theano(call: Keras) -> bool:
    return call.build.backend == "theano"


def _conv(call: Keras) -> Value | None:
    x, frame, padding = framed(call, causal=len(call["S"]) == 1)
    steps = either_steps(frame)
    if not spaced(frame) or steps is None:
        return None
    w = call.input("w")
    if call["groups"] != 1 and call.build.version == 2:
        known = frame.rank == MOST_SPACE or groupable(call.build.release, frame.rank)
        if _on_theano(call) or not (known or call.dares()):
            return None
    kernel = _turned(call, call.build.transpose(w, (*range(2, w.rank), 1, 0)))
    options = {
        **steps, "padding": padding, "groups": None if call["groups"] == 1 else call["groups"],
        "use_bias": None if call.has("b") else False,
    }  # fmt: skip
    text = weighted(
        call, f"Conv{frame.rank}D", [kernel, *bias(call)], laid(call, x),
        filters=w.shape[0], kernel_size=sizes(frame.window), **options, **layout(call),
    )  # fmt: skip
    return result(call, text, call.out.shape)


def _conv_transpose(call: Keras) -> Value | None:
    return deconvolved(call, _transposed)


def _transposed(call: Keras, kernel: Value, options: Mapping[str, Any]) -> str:
    return weighted(
        call, f"Conv{len(call['S'])}DTranspose", [kernel, *bias(call)], laid(call, call.input("x")),
        filters=call.input("w").shape[1], kernel_size=sizes(call["K"]), **options,
        use_bias=None if call.has("b") else False,
    )  # fmt: skip


def deconvolved(
    call: Keras, spelled: Callable[[Keras, Value, Mapping[str, Any]], str]
) -> Value | None:
    """`valid` of Keras goes on to the next window's beginning where it is not told how far; what is
    more is cut off. spelled: a layer, or a function, of a kernel and options.
    """
    w, rank = call.input("w"), len(call["S"])
    stride, dilation = call["stride"], call["dilation"]
    if not (2 if _on_theano(call) else 1) <= rank <= MOST_SPACE or call["groups"] != 1:
        return None
    spread = any(step > 1 for step in dilation)
    if spread and (not all_are(stride, 1) or call.build.version == 2):
        return None
    if spread and call.build.backend == "tensorflow":
        return None  # it has no kernel on a processor
    same = call["pad"] == "same"
    spare = tuple(max(0, s - n) for s, n in zip(stride, call["span"], strict=True))
    extra = tuple(call["output_padding"])
    if same and any(span < s for span, s in zip(call["span"], stride, strict=True)):
        return None  # of windows that leave gaps backends give results of several sizes
    told = not same and any(extra) and call.build.version != 2
    if any(step <= e < d for e, step, d in zip(extra, stride, dilation, strict=True)):
        told = False  # output_padding is less than the stride there, as is documented
    if not same and not told and any(e > s for e, s in zip(extra, spare, strict=True)):
        return None
    base = [full - e + s for full, e, s in zip(call["full"], extra, spare, strict=True)]
    whole = tuple(call["O"]) if same else tuple(call["full"] if told else base)
    kernel = _turned(call, call.build.transpose(w, (*range(2, w.rank), 1, 0)))
    options = {
        "strides": None if all_are(stride, 1) else sizes(stride),
        "dilation_rate": None if all_are(dilation, 1) else sizes(dilation),
        "padding": quoted("same") if same else None,
        "output_padding": sizes(extra) if told else None,
        **layout(call),
    }
    n, c = call.out.shape[:2]
    value = result(call, spelled(call, kernel, options), (n, c, *whole))
    for axis, (low, size) in enumerate(zip(call["lo"], call["O"], strict=True)):
        if not same and (low, size) != (0, whole[axis]):
            value = call.build.slice(value, 2 + axis, low, low + size, 1)
    return value


def _depthwise(call: Keras) -> Value | None:
    x, frame, padding = framed(call)
    least = 2 if call.build.version == 2 else 1
    if not least <= frame.rank <= 2 or not alike(frame.stride):
        return None
    w = call.input("w")
    kernel = call.build.transpose(w, (*range(2, w.rank), 0, 1))
    text = weighted(
        call, f"DepthwiseConv{frame.rank}D", [kernel, *bias(call)], laid(call, x),
        kernel_size=sizes(frame.window), depth_multiplier=w.shape[1], padding=padding,
        use_bias=None if call.has("b") else False, **steps_of(frame), **layout(call),
    )  # fmt: skip
    return result(call, text, call.out.shape)


def _separable(call: Keras) -> Value | None:
    x, frame, padding = framed(call)
    if not 1 <= frame.rank <= 2 or not alike(frame.stride):
        return None
    w, p = call.input("w"), call.input("p")
    kernel = call.build.transpose(w, (*range(2, w.rank), 0, 1))
    point = call.build.reshape(
        call.build.transpose(p, (1, 0)), (*[1] * frame.rank, p.shape[1], p.shape[0])
    )
    text = weighted(
        call, f"SeparableConv{frame.rank}D", [kernel, point, *bias(call)],
        laid(call, x), filters=p.shape[0], kernel_size=sizes(frame.window),
        depth_multiplier=w.shape[1], padding=padding, use_bias=None if call.has("b") else False,
        **steps_of(frame), **layout(call),
    )  # fmt: skip
    return result(call, text, call.out.shape)


def _locally_connected(call: Keras) -> Value | None:
    """A kernel and a bias for every place of the result, which come first."""
    x, frame = call.input("x"), windows(call)
    w, rank = call.input("w"), frame.rank
    if call.build.version != 2 or not 1 <= rank <= 2:
        return None
    x, frame = around(call, x, frame)
    places, filters, channels, *space = w.shape
    out = call.out.shape[2:]
    turned = call.build.transpose(w, (0, *range(3, w.rank), 2, 1))
    kernel = call.build.reshape(turned, (places, math.prod(space) * channels, filters))
    biases = [call.build.reshape(b, (*out, filters)) for b in bias(call)]
    text = weighted(
        call, f"LocallyConnected{rank}D", [kernel, *biases], channels_last(call, x),
        filters=filters, kernel_size=sizes(frame.window),
        strides=None if all_are(frame.stride, 1) else sizes(frame.stride),
        use_bias=None if call.has("b") else False,
    )  # fmt: skip
    return result(call, text, call.out.shape)


# ---- pools


# Of a kind of pool: what is called on an input, its windows and the word for the padding.
Pool = Callable[[Keras, str, Value, Windows, str | None], Value]


def _sized(frame: Windows) -> dict[str, Any]:
    """The windows as arguments; their steps are left out where they lie side by side."""
    steps = {} if frame.stride == frame.window else {"strides": sizes(frame.stride)}
    return {"pool_size": sizes(frame.window), **steps}


def _pooled(call: Keras, kind: str, x: Value, frame: Windows, padding: str | None) -> Value:
    name = f"{kind}Pooling{frame.rank}D"
    text = layer(call, name, laid(call, x), **_sized(frame), padding=padding, **layout(call))
    return result(call, text, call.out.shape)


def _pooled_by_function(
    call: Keras, kind: str, x: Value, frame: Windows, padding: str | None
) -> Value:
    options = {**_sized(frame), "padding": padding, **layout(call)}
    text = invoke(f"ops.{kind.lower()}_pool", laid(call, x), **options)
    return result(call, text, call.out.shape)


def _poolable(call: Keras, frame: Windows) -> bool:
    dtype = call.out.dtype
    fits = call.out.kind == "real" and (frame.rank < MOST_SPACE or dtype in FOR_POOL_3D)
    return fits and spaced(frame) and all_are(frame.dilation, 1)


def _max_pool(call: Keras, pooled: Pool = _pooled) -> Value | None:
    x, frame = call.input("x"), windows(call)
    if not _poolable(call, frame):
        return None
    if call["pad"] == "same":
        return pooled(call, "Max", x, frame, quoted("same"))
    x, frame = around(call, x, frame.reaching(), -math.inf)
    return pooled(call, "Max", x, frame, None)


def _avg_pool(call: Keras, pooled: Pool = _pooled) -> Value | None:
    """Keras counts the elements inside only."""
    x, frame = call.input("x"), windows(call)
    if not _poolable(call, frame):
        return None
    if call["pad"] == "same" and not call["count_include_pad"]:
        return pooled(call, "Average", x, frame, quoted("same"))
    if frame.padded and not call["count_include_pad"]:
        return None
    reaching = frame.reaching()
    if reaching.after != tuple(max(have, 0) for have in frame.after):
        return None  # a last window over less than the padding has
    x, frame = around(call, x, replace(frame, after=reaching.after))
    return pooled(call, "Average", x, frame, None)


def _global(kind: str) -> Native:
    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        rank = x.rank - 2
        if not 1 <= rank <= MOST_SPACE or (call["keepdims"] and call.build.version == 2):
            return None
        name = f"Global{kind}Pooling{rank}D"
        options = {"keepdims": call["keepdims"] or None, **layout(call)}
        text = layer(call, name, laid(call, x), **options)
        return result(call, text, call.out.shape) if call["keepdims"] else call.value(text)

    return Native(f"keras.layers.Global{kind}Pooling{{1,2,3}}D", rule)


def _adaptive(kind: str) -> Native:
    def rule(call: Keras, by_function: bool = False) -> Value | None:
        x = call.input("x")
        if not 1 <= x.rank - 2 <= MOST_SPACE:
            return None
        options = {"output_size": sizes(call.out.shape[2:]), **layout(call)}
        if by_function:
            text = invoke(f"ops.adaptive_{kind.lower()}_pool", laid(call, x), **options)
        else:
            text = layer(call, f"Adaptive{kind}Pooling{x.rank - 2}D", laid(call, x), **options)
        return result(call, text, call.out.shape)

    function = Native(
        f"keras.ops.adaptive_{kind.lower()}_pool", partial(rule, by_function=True), since=(3, 13)
    )
    name = f"keras.layers.Adaptive{kind}Pooling{{1,2,3}}D"
    return Native(name, rule, since=(3, 13), others=(function,))


def _upsample(call: Keras) -> Value | None:
    x = call.input("x")
    rank = x.rank - 2
    if not 1 <= rank <= MOST_SPACE or call.out.kind != "real":
        return None
    size = sizes(call["scale"])
    if rank > 1:
        text = layer(call, f"UpSampling{rank}D", laid(call, x), size=size, **layout(call))
        return result(call, text, call.out.shape)
    n, c, length = call.out.shape
    text = layer(call, "UpSampling1D", channels_last(call, x), size=size)  # which has no layout
    return channels_first(call, Value(text, (n, length, c), x.dtype))


# ---- edges


def _module(call: Keras) -> str:
    return "ops" if call.build.version == 3 else "tf"


def _between(call: Keras, x: Value) -> Value:
    """A tensor between an axis for a batch and one for channels, both of size 1."""
    module = "K" if call.build.backend == "theano" else _module(call)
    text = f"{module}.expand_dims({module}.expand_dims({x.text}, 0), -1)"
    return Value(text, (1, *x.shape, 1), x.dtype)


def _edges(kind: str, argument: str) -> Callable[[Keras], Value | None]:
    """Of an image, or of all axes of a tensor that is put between a batch and a channel of 1."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        pairs = list(zip(call["before"], call["after"], strict=True))
        padding = kind == "ZeroPadding"
        if call.out.kind != "real" or (padding and (call["mode"] != "constant" or call["value"])):
            return None
        if 0 in x.shape:
            return None  # layers ask for sizes above 0
        if padding and any(amount < 0 for pair in pairs for amount in pair):
            return None
        pairs = [(int(low), int(high)) for low, high in pairs]
        none = (0, 0)
        last = x.rank > 2 and pairs[0] == pairs[-1] == none
        first = not last and x.rank > 3 and pairs[:2] == [none, none] and call.build.version == 3
        space = pairs[1:-1] if last else pairs[2:] if first else pairs
        rank = len(space)
        if not 1 <= rank <= MOST_SPACE:
            return None
        inner = x if last or first else _between(call, x)
        options: dict[str, Any] = {argument: space[0] if rank == 1 else tuple(space)}
        if first:
            options["data_format"] = quoted("channels_first")
        text = layer(call, f"{kind}{rank}D", inner, **options)
        if last or first:
            return call.value(text)
        squeezed = {
            "theano": f"K.squeeze(K.squeeze({text}, {rank + 1}), 0)",
        }.get(call.build.backend, f"{_module(call)}.squeeze({text}, (0, {rank + 1}))")
        return call.value(squeezed)

    return rule


_ZEROS = _edges("ZeroPadding", "padding")


def _mirrors(rank: int, last: int) -> bool:
    """Whether PyTorch, as Keras asks it, mirrors what lies along so many of the last axes."""
    return rank - 2 <= last <= max(2, min(rank - 1, MOST_SPACE))


def _pad(call: Keras) -> Value | None:
    """Around any axes; with zeros around some there is a layer."""
    pairs = tuple(zip(call["before"], call["after"], strict=True))
    mode = None if call["mode"] == "constant" else quoted(call["mode"])
    if any(amount < 0 for pair in pairs for amount in pair) or not pairs:
        return None
    if call["mode"] not in ("constant", "reflect", "symmetric"):  # which every backend has
        return None
    first = next((at for at, pair in enumerate(pairs) if any(pair)), len(pairs))
    if mode and call.build.backend == "torch" and not _mirrors(len(pairs), len(pairs) - first):
        return None
    fill = (filling(call) or None) if mode is None and call.out.dtype != "bool" else None
    if mode is None and call.out.dtype == "bool" and call["fill"]:
        return None
    return call.value(invoke("ops.pad", call.input("x"), pairs, mode=mode, constant_values=fill))


def _function(name: str, rule: Callable[..., Value | None]) -> tuple[Native]:
    """A pool by a function, not by a layer; like that it asks for elements."""
    return (Native(f"keras.ops.{name}", partial(rule, pooled=_pooled_by_function), since=KERAS_3),)


_MAX = _function("max_pool", _max_pool)
_AVERAGE = _function("average_pool", _avg_pool)

WINDOWS: dict[str, Native] = {
    "conv": Native("keras.layers.Conv{1,2,3}D", _conv),
    "conv_transpose": Native("keras.layers.Conv{1,2,3}DTranspose", _conv_transpose, since=KERAS_3),
    "depthwise_conv": Native("keras.layers.DepthwiseConv{1,2}D", _depthwise, since=KERAS_3),
    "separable_conv": Native("keras.layers.SeparableConv{1,2}D", _separable, since=KERAS_3),
    "locally_connected": Native("keras.layers.LocallyConnected{1,2}D", _locally_connected),
    "max_pool": Native("keras.layers.MaxPooling{1,2,3}D", _max_pool, others=_MAX),
    "avg_pool": Native(
        "keras.layers.AveragePooling{1,2,3}D",
        _avg_pool,
        others=_AVERAGE,
    ),
    "global_max_pool": _global("Max"),
    "global_avg_pool": _global("Average"),
    "adaptive_avg_pool": _adaptive("Average"),
    "adaptive_max_pool": _adaptive("Max"),
    "upsample": Native("keras.layers.UpSampling{1,2,3}D", _upsample),
    "pad": Native(
        "keras.layers.ZeroPadding{1,2,3}D", _ZEROS, others=(Native("ops.pad", _pad, since=KERAS_3),)
    ),
    "crop": Native("keras.layers.Cropping{1,2,3}D", _edges("Cropping", "cropping")),
}
