"""How PyTorch spells attention with its projections: the function of `nn.MultiheadAttention`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_FUNCTION = "F.multi_head_attention_forward"


def _several(shown: bool) -> Callable[[Torch], Value | None]:
    """Places come before samples there, and a weight has its columns first, those of all heads
    beside each other; heads are parts of the input. shown: whether the weights of places are asked
    for as well, which are computed otherwise.
    """

    def rule(call: Torch) -> Value | None:
        build, (q, k, v) = call.build, (call.input(name) for name in "qkv")
        heads, size = call["H"], call["D"]
        wide = q.shape[2]
        one = heads == call["G"] and size == call["P"] and wide == heads * size == call["O"]
        if not one or "scale" in call.node.attrs or 0 in (*q.shape, *k.shape, size):
            return None
        weights = {}
        for own, name in (("wq", "q_proj"), ("wk", "k_proj"), ("wv", "v_proj")):
            value = call.input(own)
            flat = build.reshape(value, (value.shape[0], wide))
            weights[f"{name}_weight"] = build.transpose(flat, (1, 0))
        out = build.transpose(build.reshape(call.input("wo"), (wide, wide)), (1, 0))
        turned = [build.transpose(value, (1, 0, 2)) for value in (q, k, v)]
        options: dict[str, Any] = {
            "training": False, "need_weights": shown, "attn_mask": _forbidden(call),
            "use_separate_proj_weight": True, **weights,
        }  # fmt: skip
        if call["causal"] and not call.has("mask") and not shown:
            options["is_causal"] = True
        text = invoke(
            _FUNCTION, *turned, wide, heads, "None", _biases(call), "None", "None", "False", 0.0,
            out, call.text("bo"), **options,
        )  # fmt: skip
        found = Value(f"{text}[0]", (q.shape[1], q.shape[0], wide), q.dtype)
        return build.transpose(found, (1, 0, 2))

    return rule


def _biases(call: Torch) -> Value | str:
    """Those of all three projections, zeros where one has none."""
    names = ("bq", "bk", "bv")
    if not any(call.has(name) for name in names):
        return "None"
    build, wide = call.build, call["H"] * call["D"]
    zeros = build.expand(build.scalar(0.0, call.out.dtype), (wide,))
    given = [build.reshape(call.input(n), (wide,)) if call.has(n) else zeros for n in names]
    return build.concat(given, 0)


def _forbidden(call: Torch) -> Value | None:
    """Where nothing may be looked at: a matrix, or one for every head of every sample."""
    build, (batch, length, _) = call.build, call.input("q").shape
    places, heads = call.input("k").shape[1], call["H"]
    later = None
    if call["causal"]:
        after = np.arange(places) > np.arange(length)[:, None]
        later = build.solid(build.constant(after, "bool"))
    if not call.has("mask"):
        return later
    whole = build.expand(call.input("mask"), (batch, heads, length, places))
    hidden = build.apply("not", [build.reshape(whole, (batch * heads, length, places))])
    return hidden if later is None else build.apply("or", [hidden, later])


ATTENTION: dict[str, Native] = {
    "multi_head_attention": Native(
        _FUNCTION, _several(shown=False), others=(Native(_FUNCTION, _several(shown=True)),)
    ),
}
