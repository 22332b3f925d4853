"""How Keras spells attention: its layers, of one head, and `ops.dot_product_attention`."""

from __future__ import annotations

from typing import Any

from irlang.lower.call import Native
from irlang.lower.keras_call import Keras, made
from irlang.lower.spelling import invoke, named
from irlang.lower.value import Value


def _masked(call: Keras, mask: Value | None, rank: int) -> str | None:
    """What a layer is told of the mask of values, which is one for all queries (and heads); None
    where the mask is another.
    """
    if mask is None:
        return ""
    samples, length = call["B"], call["M"]
    shape = (1,) * (rank - mask.rank) + mask.shape
    if any(size != 1 for size in shape[1:-1]):
        return None
    flat = call.build.reshape(mask, (shape[0], shape[-1]))
    return f"mask=[None, {call.build.expand(flat, (samples, length)).text}]"


def _attended(
    call: Keras, kind: str, weights: list[Value], values: list[Value], told: list[str],
    **options: Any,
) -> str:  # fmt: skip
    """A layer on queries, values and keys. A first call makes its weights."""
    query, key, value = (one.text for one in values)
    inputs = f"[{query}, {value}, {key}]"
    more = "".join(f", {item}" for item in told if item)
    if not weights:
        return f"{made(call, kind, **options)}({inputs}{more})"
    name = call.build.names.fresh(f"{call.node.name}_layer")
    call.build.lines.append(f"{name} = {made(call, kind, **options)}")
    shapes = ", ".join(f"{text}.shape" for text in (query, value, key))
    call.build.lines.append(f"{name}.build([{shapes}])")
    listed = ", ".join(weight.text for weight in weights)
    return f"applied({name}, [{listed}], {inputs}{more})"


def _additive(call: Keras) -> list[Value] | None:
    values = [call.input(name) for name in ("q", "k", "v")]
    masked = _masked(call, call.input("mask") if call.has("mask") else None, 3)
    size = values[0].shape[-1]
    if masked is None or (call.has("scale") and call.input("scale").shape != (size,)):
        return None
    scale = [call.input("scale")] if call.has("scale") else []
    told = [masked, "use_causal_mask=True" if call["causal"] else ""]
    if call.build.version == 2 and call["causal"]:
        return None  # it is an argument of the layer in some releases, and of the call in others
    if scale and call.build.version == 2 and values[0].shape[-1] != values[2].shape[-1]:
        return None  # its scale has the size of the values, which are another number of elements
    options = {"use_scale": None if scale else False}
    if not call.wants("weights"):
        text = _attended(call, "AdditiveAttention", scale, values, told, **options)
        return [call.value(text)]
    told.append("return_attention_scores=True")
    text = _attended(call, "AdditiveAttention", scale, values, told, **options)
    return named(call, text)


def _is_usual(call: Keras) -> bool:
    """Whether scores are as in all words of Keras: of all places, as they are."""
    unusual = call.has("kv_lengths") or call["softcap"] or call["past"]
    windowed = (call["left_window_size"], call["right_window_size"]) != (-1, -1)
    return not unusual and not windowed and bool(call["masked_rows"] == "open")


def _product(call: Keras) -> Value | None:
    """`ops.dot_product_attention`, to which samples and places come before heads."""
    build = call.build
    if not _is_usual(call) or build.version == 2:
        return None
    q, k, v = (build.transpose(call.input(name), (0, 2, 1, 3)) for name in ("q", "k", "v"))
    whole = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    given = [name for name in ("bias", "mask") if call.has(name)]
    beside = {name: build.expand(call.input(name), whole) for name in given}
    causal = call["causal"] or None
    text = invoke(
        "ops.dot_product_attention", q, k, v, **beside, scale=float(call["scale"]), is_causal=causal
    )
    n, heads, length, size = call.out.shape
    return build.transpose(Value(text, (n, length, heads, size), call.out.dtype), (0, 2, 1, 3))


def _one_head(call: Keras) -> Value | None:
    """A layer where there is one head, without a bias."""
    values = [call.input(name) for name in ("q", "k", "v")]
    one = all(value.shape[1] == 1 for value in values)
    masked = _masked(call, call.input("mask") if call.has("mask") else None, 4)
    if call.has("bias") or not _is_usual(call) or not one or masked is None:
        return None
    if call.build.version == 2 and call["causal"]:
        return None
    build = call.build
    flat = [build.reshape(value, (value.shape[0], *value.shape[2:])) for value in values]
    named = [
        build.let(value, f"{call.node.name}_{n}") for value, n in zip(flat, "qkv", strict=True)
    ]
    scale = float(call["scale"])
    weights = [build.scalar(scale, call.out.dtype)] if scale != 1 else []
    weights = [build.solid(weight) for weight in weights]
    told = [masked, "use_causal_mask=True" if call["causal"] else ""]
    text = _attended(call, "Attention", weights, named, told, use_scale=True if weights else None)
    n, _, length, size = call.out.shape
    whole = build.let(Value(text, (n, length, size), call.out.dtype), f"{call.node.name}_head")
    return build.reshape(whole, call.out.shape)


ATTENTION: dict[str, Native] = {
    "attention": Native(
        "keras.layers.Attention",
        _one_head,
        since=(3,),
        others=(Native("ops.dot_product_attention", _product, since=(3, 8)),),
    ),
    "additive_attention": Native("keras.layers.AdditiveAttention", _additive, since=(3,)),
}
