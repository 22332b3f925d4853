"""Attention layers of Keras, with the masks that they are given or find on their operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irlang.equations import TensorInfo
from irlang.importers.keras_activations import masked
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call, Value
from irlang.importers.keras_weights import Weights

# ---- one head, whose query, value and key are tensors of the caller


def _attention(c: Call) -> list[str]:
    """Scores by product or by a sum through tanh, hidden where masked, and a mean by them."""
    query, value, *key = c.x
    key = key or [value]
    scores = _additive(c, query, key[0]) if _adds(c) else _product(c, query, key[0])
    given = c.arguments.get("mask")
    masks = list(given) if isinstance(given, (list, tuple)) else c.masks
    names = [m.name if isinstance(m, Value) else m for m in masks]
    q_mask, v_mask = [*names, None, None][:2]
    causal = bool(c.arguments.get("use_causal_mask")) or c.a.flag("causal")
    parts = [c.write("seen", "expand_dims", v_mask, axes=[-2])] if v_mask is not None else []
    if causal:
        parts.append(_triangle(c, c.info(scores).shape[-2:]))
    if parts:
        seen = _all(c, parts)
        low = c.write("low", "subtract", scores, 65504.0 if c.dtype == "f16" else 1e9)
        scores = c.write("visible", "where", seen, scores, low)
    weights = c.write("weights", "softmax", scores, axis=-1)
    if q_mask is None:
        result = c.write("", "matmul", weights, value)
    else:
        every = c.write("every", "matmul", weights, value)
        kept = c.write("kept", "expand_dims", q_mask, axes=[-1])
        if c.version == 3:
            result = c.write("", "where", kept, every, 0.0)
        else:
            result = c.write("", "multiply", every, c.write("real", "cast", kept, to=c.dtype))
    return [result, weights] if c.arguments.get("return_attention_scores") else [result]


def _adds(c: Call) -> bool:
    return c.a.kind == "AdditiveAttention" or c.a.choice("score_mode", "dot", "concat") == "concat"


def _product(c: Call, query: str, key: str) -> str:
    scores = c.write("scores", "matmul", query, key, transpose_b=True)
    if not c.a.flag("use_scale"):
        return scores
    return c.write("scaled", "multiply", scores, c.weight("scale", 0, [], lambda w: w))


def _additive(c: Call, query: str, key: str) -> str:
    """The sum over features of scale * tanh(query + key), or of tanh(scale * (query + key))."""
    own = c.a.kind == "AdditiveAttention"
    _ = c.a["score_mode"]
    rows = c.write("rows", "expand_dims", query, axes=[-2])
    columns = c.write("columns", "expand_dims", key, axes=[-3])
    both = c.write("pairs", "add", rows, columns)
    scaled = c.a.flag("use_scale")
    sizes = [int(c.info(query).shape[-1])] if own else []
    scale = c.weight("scale", 0, sizes, lambda w: w) if scaled else None
    if scale and not own:
        both = c.write("scaled", "multiply", both, scale)
    both = c.write("tanh", "tanh", both)
    if scale and own:
        both = c.write("scaled", "multiply", both, scale)
    scores = c.write("scores", "reduce_sum", both, axes=[-1])
    if own:
        return scores
    return c.write("all", "multiply", scores, c.weight("weight", int(scaled), [], lambda w: w))


def _all(c: Call, parts: Sequence[str]) -> str:
    """What all of several masks let through."""
    found = parts[0]
    for number, part in enumerate(parts[1:]):
        found = c.write(f"both{number}", "logical_and", found, part)
    return found


def _triangle(c: Call, sizes: Sequence[int], window: int | None = None) -> str:
    """bool[1, T, S]: what position i may look at, j <= i, or |i - j| < window."""
    one = c.writer.param(f"{c.name}_true", TensorInfo((1, 1, 1), "bool"), True)
    full = c.write("square", "broadcast_to", one, shape=[1, *sizes])
    if window is None:
        return c.write("causal", "trilu", full, upper=False)
    band = c.write("above", "trilu", full, k=1 - window)
    return c.write("window", "trilu", band, k=window - 1, upper=False)


# ---- several heads, each with projections


class _Heads:
    """A layer of several heads: its projections, and how its tensors are laid out.

    axes: those along which there is attention; free: the others, between batch and features.
    """

    def __init__(self, c: Call, heads: tuple[int, int], key_dim: int, value_dim: int) -> None:
        self.c = c
        self.heads, self.groups = heads
        self.key_dim, self.value_dim = key_dim, value_dim
        self.query = c.x[0]
        self.value = self._called("value") or self.query
        self.key = self._called("key") or self.value
        rank = len(c.info(self.query).shape)
        given = c.a["attention_axes"] if "attention_axes" in c.a.defaults else None
        wanted = range(1, rank - 1) if given is None else [a % rank for a in _list(given)]
        self.axes = list(wanted)
        self.free = [d for d in range(1, rank - 1) if d not in self.axes]
        self.step = 2 if c.a.flag("use_bias") else 1

    def _called(self, name: str) -> str | None:
        given = self.c.arguments.get(name)
        if given is None:
            return None
        return self.c.tensor(given, f"`{name}`")

    def weights(self, name: str, number: int) -> Weights:
        """Those of a projection, by its name and its number in the order in which they are made."""
        count = self.step
        return self.c.weights.part((f"{name}_dense", f"_{name}_dense"), number * count, count)

    def projection(self, name: str, number: int, sizes: Sequence[int | None]) -> list[str]:
        """The kernel and the bias of a projection, in Keras's arrangement."""
        own = self.weights(name, number)
        found = [self.c.weight(f"w{name[0]}", 0, sizes, lambda w: w, own)]
        if self.c.a.flag("use_bias"):
            last = list(sizes[1:]) if name != "output" else sizes[2:]
            found.append(self.c.weight(f"b{name[0]}", 1, last, lambda b: b, own))
        return found

    def project(self, name: str, number: int, x: str, heads: int, size: int) -> str:
        """The heads of a tensor: (batch, ..., heads, size)."""
        features = int(self.c.info(x).shape[-1])
        flat = self._flat(name, number, [features, heads, size], features, heads * size)
        y = self.c.write(f"{name}_all", "dense", x, *flat)
        shape = [*self.c.info(y).shape[:-1], heads, size]
        return self.c.write(f"{name}_heads", "reshape", y, shape=shape)

    def _flat(
        self, name: str, number: int, sizes: list[int | None], rows: int, columns: int
    ) -> list[str]:
        own = self.weights(name, number)
        w = self.c.weight(f"{name}_w", 0, sizes, lambda w: w.reshape(rows, columns), own)
        if not self.c.a.flag("use_bias"):
            return [w]
        last = sizes[1:] if name != "output" else sizes[2:]
        return [w, self.c.weight(f"{name}_b", 1, last, lambda b: b.reshape(columns), own)]

    def ahead(self, name: str, x: str) -> str:
        """(batch, ..., heads, size) as (batch, free.., heads, all attended positions, size)."""
        rank = len(self.c.info(x).shape)
        perm = [0, *self.free, rank - 2, *self.axes, rank - 1]
        y = self.c.write(name, "transpose", x, perm=perm)
        if len(self.axes) == 1:
            return y
        first = len(self.free) + 2
        return self.c.write(
            f"{name}_flat", "flatten", y, axis=first, end=first + len(self.axes) - 1
        )

    def back(self, x: str) -> str:
        """The same the other way round, heads and size as one axis."""
        c = self.c
        sizes = [c.info(self.query).shape[d] for d in self.axes]
        shape = c.info(x).shape
        if len(self.axes) > 1:
            x = c.write("apart", "reshape", x, shape=[*shape[:-2], *sizes, shape[-1]])
        order = [0, *self.free, -2, *self.axes, -1]
        rank = len(order)
        places = [order.index(d) for d in (*range(rank - 2), -2, -1)]
        return c.write("heads", "transpose", x, perm=places)

    def output(self, x: str) -> str:
        """The projection of all heads together."""
        c = self.c
        given = c.a["output_shape"] if "output_shape" in c.a.defaults else None
        features = int(c.info(self.query).shape[-1])
        shape = [features] if given is None else [int(s) for s in _list(given)]
        rows = self.heads * self.value_dim
        sizes: list[int | None] = [self.heads, self.value_dim, *shape]
        flat = self._flat("output", self.last, sizes, rows, math.prod(shape))
        joined = c.write("joined", "flatten", x, axis=-2, end=-1)
        if len(shape) == 1:
            return c.write("", "dense", joined, *flat)
        y = c.write("product", "dense", joined, *flat)
        return c.write("", "reshape", y, shape=[*c.info(y).shape[:-1], *shape])

    @property
    def last(self) -> int:
        """The number of the projection of the result."""
        return 4 if self.c.version == 3 and self.c.a.flag("use_gate") else 3

    def seen(self) -> list[str]:
        """The masks of a layer, each of them broadcasting to (batch, queries, keys)."""
        c = self.c
        parts = []
        if c.version == 3:
            parts += self._padding("query", c.values[0], -1)
            parts += self._padding("value", c.arguments.get("value"), -2)
            parts += self._padding("key", c.arguments.get("key"), -2)
        given = c.arguments.get("attention_mask")
        if isinstance(given, Value):
            mask = c.sheet.last(given.name)
            if c.info(mask).kind != "bool" and c.version == 3:
                mask = c.write("allowed", "not_equal", mask, 0.0)
            parts.append(mask)
        sizes = [c.info(x).shape[self.axes[0]] for x in (self.query, self.value)]
        if c.a["sliding_window"] is not None:
            parts.append(_triangle(c, sizes, c.a.integer("sliding_window")))
        if c.arguments.get("use_causal_mask"):
            parts.append(_triangle(c, sizes))
        return parts

    def _padding(self, name: str, value: Any, axis: int) -> list[str]:
        given = self.c.arguments.get(f"{name}_mask")
        mask = given.name if isinstance(given, Value) else getattr(value, "mask", None)
        if mask is None or len(self.c.info(mask).shape) != 2:
            return []
        return [self.c.write(f"{name}_seen", "expand_dims", mask, axes=[axis])]


def _list(value: Any) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _multi_head(c: Call) -> list[str]:
    heads, key_dim = c.a.integer("num_heads"), c.a.integer("key_dim")
    value_dim = key_dim if c.a["value_dim"] is None else c.a.integer("value_dim")
    return _headed(c, _Heads(c, (heads, heads), key_dim, value_dim))


def _grouped(c: Call) -> list[str]:
    size, heads = c.a.integer("head_dim"), c.a.integer("num_query_heads")
    return _headed(c, _Heads(c, (heads, c.a.integer("num_key_value_heads")), size, size))


def _headed(c: Call, h: _Heads) -> list[str]:
    seen = h.seen() if not _only_causal(c) else []
    gate, scores = c.a.flag("use_gate"), bool(c.arguments.get("return_attention_scores"))
    ranks = {len(c.info(x).shape) for x in (h.query, h.value, h.key)}
    one = len(h.axes) == 1
    if seen and not one:
        raise Uncovered(c.a.kind, "masks where there is attention along several axes")
    simple = not seen and not gate and not scores and one and not h.free and ranks == {3}
    if simple and h.heads == h.groups and _flat_output(c):
        return [_whole(c, h)]
    # Keras makes the projection of the gate between those of key and value
    numbers = {"query": 0, "key": 1, "gate": 2, "value": 3 if gate else 2}
    q = h.project("query", 0, h.query, h.heads, h.key_dim)
    k = h.project("key", 1, h.key, h.groups, h.key_dim)
    v = h.project("value", numbers["value"], h.value, h.groups, h.value_dim)
    turned = [h.ahead(name, x) for name, x in (("query", q), ("key", k), ("value", v))]
    if simple:
        causal = {"causal": True} if c.arguments.get("use_causal_mask") else {}
        mixed = c.write("mixed", "attention", *turned, **causal)
        return [h.output(h.back(mixed))]
    if not seen and c.arguments.get("use_causal_mask"):
        seen = [_triangle(c, [c.info(x).shape[h.axes[0]] for x in (h.query, h.value)])]
    weights, mixed = _mixed(c, h, turned, seen)
    result = h.back(mixed)
    if gate:
        opened = h.project("gate", numbers["gate"], h.query, h.heads, h.value_dim)
        result = c.write("gated", "multiply", result, c.write("gate", "sigmoid", opened))
    return [h.output(result), *([weights] if scores else [])]


def _mixed(c: Call, h: _Heads, turned: list[str], seen: list[str]) -> tuple[str, str]:
    """The weights of all pairs of positions, and the values mixed by them."""
    query, key, value = turned
    if h.groups != h.heads:
        times = h.heads // max(1, h.groups)
        key = c.write("keys", "repeat", key, repeats=times, axis=-3)
        value = c.write("values", "repeat", value, repeats=times, axis=-3)
    product = c.write("product", "matmul", query, key, transpose_b=True)
    scores = c.write("scores", "multiply", product, float(h.key_dim) ** -0.5)
    if seen:
        mask = _all(c, seen)
        missing = len(c.info(scores).shape) - len(c.info(mask).shape)
        if missing > 0:
            axes = [len(c.info(mask).shape) - 2 + d for d in range(missing)]
            mask = c.write("mask", "expand_dims", mask, axes=axes)
        scores = masked(c, scores, mask)
    weights = c.write("weights", "softmax", scores, axis=-1)
    return weights, c.write("mixed", "matmul", weights, value)


def _only_causal(c: Call) -> bool:
    """Whether nothing but the order of positions says what may be looked at."""
    values = [c.values[0], c.arguments.get("value"), c.arguments.get("key")]
    masks = [getattr(value, "mask", None) for value in values] if c.version == 3 else []
    names = ("attention_mask", "query_mask", "value_mask", "key_mask")
    given = [c.arguments.get(name) for name in names]
    return all(item is None for item in (*masks, *given)) and c.a["sliding_window"] is None


def _flat_output(c: Call) -> bool:
    given = c.a["output_shape"] if "output_shape" in c.a.defaults else None
    return given is None or len(_list(given)) == 1


def _whole(c: Call, h: _Heads) -> str:
    """All of it in one call."""
    sizes = [int(c.info(x).shape[-1]) for x in (h.query, h.key, h.value)]
    given = c.a["output_shape"] if "output_shape" in c.a.defaults else None
    result = sizes[0] if given is None else int(_list(given)[0])
    wanted: list[tuple[str, int, list[int | None]]] = [
        ("query", 0, [sizes[0], h.heads, h.key_dim]),
        ("key", 1, [sizes[1], h.heads, h.key_dim]),
        ("value", 2, [sizes[2], h.heads, h.value_dim]),
        ("output", 3, [h.heads, h.value_dim, result]),
    ]
    found = [h.projection(*item) for item in wanted]
    biases = {f"b{item[0][0]}": w[1] for item, w in zip(wanted, found, strict=True) if w[1:]}
    kernels = [w[0] for w in found]
    causal = {"causal": True} if c.arguments.get("use_causal_mask") else {}
    operands = (h.query, h.key, h.value, *kernels)
    return c.write("", "multi_head_attention", *operands, by_name=biases, **causal)


ATTENTION: dict[str, Callable[[Call], list[str]]] = {
    "Attention": _attention,
    "AdditiveAttention": _attention,
    "MultiHeadAttention": _multi_head,
    "GroupedQueryAttention": _grouped,
}
