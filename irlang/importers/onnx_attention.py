"""ONNX's attention, rotary embedding and gates; heads get an axis before that of the sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irlang.importers.onnx_node import ByFunction, Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]
_STAGES = ("product", "softcap", "bias", "softmax")


def _heads(n: Node, value: Value, heads: Any, name: str) -> Value:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    if value.rank == 4:
        return value
    if not heads:
        raise Unsupported("three axes, and no number of heads")
    batch, length, width = value.shape
    shape = [batch, length, heads, width // heads]
    split = n.step(f"{name}_split", "reshape", value, shape=shape)
    return n.step(f"{name}_heads", "transpose", split, perm=[0, 2, 1, 3])


def _joined(n: Node, value: Value, like: Value) -> Value:
    """The heads side by side again, where the input has them so."""
    if like.rank == 4:
        return value
    batch, heads, length, size = value.shape
    turned = n.step("turned", "transpose", value, perm=[0, 2, 1, 3])
    return n.call("reshape", turned, shape=[batch, length, heads * size])


def _masks(n: Node, keys: Any) -> dict[str, Value]:
    """The mask, of truth values or to be added; one shorter than the keys is left to ONNX."""
    by_name = {}
    mask, lengths = n.optional(3), n.optional(6)
    if mask is not None:
        if not mask.rank or mask.shape[-1] != keys:
            raise ByFunction
        if mask.dtype == "bool":
            by_name["mask"] = mask
        else:
            same = mask.dtype == n.input(0).dtype
            by_name["bias"] = mask if same else n.step("bias", "cast", mask, dtype=n.input(0).dtype)
    if lengths is not None:
        by_name["kv_lengths"] = lengths
    return by_name


def _attention(n: Node) -> list[Value | None]:
    """Of a position that may look at nothing ONNX says that its result is zero."""
    n.ignore("softmax_precision")  # how exact, not what
    x, stage = n.input(0), _STAGES[n.int("qk_matmul_output_mode", 0)]
    q = _heads(n, x, n.int("q_num_heads"), "q")
    k, v = (_heads(n, n.input(i), n.int("kv_num_heads"), "kv"[i - 1]) for i in (1, 2))
    attrs: dict[str, Any] = {}
    past_k, past_v = n.optional(4), n.optional(5)
    if past_k is not None and past_v is not None:
        attrs["past"] = past_k.shape[2]
        k = n.step("keys", "concat", past_k, k, axis=2)
        v = n.step("values", "concat", past_v, v, axis=2)
    by_name = _masks(n, k.shape[2])
    if n.flag("is_causal"):
        attrs["causal"] = True
    for name in ("left_window_size", "right_window_size"):
        if n.int(name, -1) >= 0:
            attrs[name] = n.int(name)
    if by_name or len(attrs) > (attrs.get("causal", 0) + ("past" in attrs)):
        attrs["masked_rows"] = "zero"
    if n.real("softcap", 0.0):
        attrs["softcap"] = n.real("softcap")
    if n.has("scale"):
        attrs["scale"] = n.real("scale")
    if n.wants(3) and stage == "product" and "softcap" in attrs:
        raise ByFunction  # where its text and its function differ
    y = n.step("", "attention", q, k, v, by_name=by_name, **attrs)
    scores = None
    if n.wants(3):
        scores = n.step("scores", "attention_scores", q, k, by_name=by_name, stage=stage, **attrs)
    wanted = [k if n.wants(1) else None, v if n.wants(2) else None, scores]
    return [_joined(n, y, x), *wanted]


def _linear(n: Node) -> list[Value | None]:
    """Heads are packed; the decay is one number a head, or one for each of a key's elements."""
    n.ignore("chunk_size")  # of the work, not of the result
    many, few = n.int("q_num_heads"), n.int("kv_num_heads")
    rule = n.word("update_rule", "gated_delta")
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        raise Unsupported(f"the rule {rule}")
    q, k, v = (_heads(n, n.input(i), (many, few, few)[i], "qkv"[i]) for i in range(3))
    state, decay, beta = (n.optional(i) for i in (3, 4, 5))
    by_name = {} if state is None else {"state": state}
    if decay is not None and "gated" in rule:
        by_name["decay"] = _heads(n, decay, few, "decay")
    if beta is not None and "delta" in rule:
        by_name["beta"] = n.step("beta_heads", "transpose", beta, perm=[0, 2, 1])
    attrs: dict[str, Any] = {"update_rule": "delta"} if "delta" in rule else {}
    if n.real("scale", 0.0):
        attrs["scale"] = n.real("scale")
    y, last = n.steps(["", "state"], "linear_attention", q, k, v, by_name=by_name, **attrs)
    return [_joined(n, y, n.input(0)), last]


def _rotary(n: Node) -> Value:
    """Positions pick the rows of the caches; these are the same for all heads."""
    x, cos, sin, ids = n.input(0), n.input(1), n.input(2), n.optional(3)
    n.ignore("rotary_embedding_dim")  # which the sizes of the caches say
    inner = _heads(n, x, n.int("num_heads"), "x")
    angles = []
    for name, cache in (("cos", cos), ("sin", sin)):
        if ids is not None:
            cache = n.step(f"{name}_rows", "gather", cache, ids, axis=0)
        angles.append(n.step(name, "expand_dims", cache, axes=[1]))
    attrs = {"interleaved": True} if n.flag("interleaved") else {}
    y = n.step("", "rotary_embedding", inner, *angles, **attrs)
    return _joined(n, y, x)


def _swiglu(n: Node) -> Value:
    alpha = n.real("alpha", 1.0)
    return n.call("swiglu", n.input(0), n.input(1), **({} if alpha == 1 else {"alpha": alpha}))


ROWS: dict[str, Row] = {
    "Attention": _attention,
    "LinearAttention": _linear,
    "RotaryEmbedding": _rotary,
    "SwiGLU": _swiglu,
}
