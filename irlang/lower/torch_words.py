"""PyTorch's further words: functions that come by the same numbers with other kernels."""

from __future__ import annotations

import math
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.spelling import exchanged, invoke, joined_as_numpy, named, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.torch_matrices import bags, weights_of
from irlang.lower.torch_places import two
from irlang.lower.torch_sequences import loss
from irlang.lower.torch_shapes import interpolate
from irlang.lower.torch_statistics import among
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


# ---- elements


def _clip(call: Torch) -> Value | None:
    """Between tensors of one number each."""
    low, high, x = call["low"], call["high"], call.input("x")
    if call.out.kind != "real" or (low, high) == (-math.inf, math.inf):
        return None
    made = {
        name: invoke("torch.full", (), float(end), dtype=call.build.dtype(x.dtype))
        for name, end, nothing in (("min", low, -math.inf), ("max", high, math.inf))
        if end != nothing
    }
    return call.value(invoke("torch.clamp", x, **made))


def _hard_tanh(call: Torch) -> Value | None:
    """Bounds in their order, which are finite."""
    low, high = float(call["min"]), float(call["max"])
    if call.out.kind != "real" or not -math.inf < low <= high < math.inf:
        return None
    return call.value(invoke("F.hardtanh", call.input("x"), low, high))


def _relu(call: Torch) -> Value | None:
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    if shape == (6.0, 0.0, 0.0):
        return call.value(invoke("F.hardtanh", call.input("x"), 0.0, 6.0))
    plain_ = shape == (math.inf, 0.0, 0.0)
    return call.value(invoke("F.threshold", call.input("x"), 0.0, 0.0)) if plain_ else None


def _leaky(call: Torch) -> Value:
    """One slope for all channels, as a tensor."""
    dtype = call.build.dtype(call.out.dtype)
    slope = invoke("torch.full", (1,), float(call["alpha"]), dtype=dtype)
    return call.value(invoke("F.prelu", call.input("x"), slope))


def _unit(function: str, name: str) -> Native:
    """A function whose only parameter is 1, where another has none."""

    def rule(call: Torch) -> Value | None:
        return call.value(invoke(function, call.input("x"))) if call[name] == 1 else None

    return Native(function, rule)


def _floor_divide(call: Torch) -> Value:
    values = map(call.build.solid, call.values.values())
    return call.value(invoke("torch.div", *values, rounding_mode='"floor"'))


def _subtract(call: Torch) -> Value:
    a, b = map(call.build.solid, call.values.values())
    return call.value(invoke("torch.rsub", b, a))


# ---- reductions


def _moments(function: str, place: int, correction: bool = True) -> Native:
    """Two moments that are computed together, of which one is asked for."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        count = math.prod(x.shape[axis] for axis in axes)
        less = call["correction"] if correction else 0
        if not axes or count <= less or call.out.kind != "real":
            return None
        options = {"dim": axes, "correction": less, "keepdim": call["keepdims"] or None}
        return call.value(f"{invoke(function, x, **options)}[{place}]")

    return Native(function, rule)


def _extreme(part: str) -> Native:
    """Both extremes along one axis."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        if not x.rank or len(call.axes("axes", x.rank)) != 1:
            return None
        options = {"dim": call.axes_said("axes", x.rank)[0], "keepdim": call["keepdims"] or None}
        return call.value(f"{invoke('torch.aminmax', x, **options)}.{part}")

    return Native("torch.aminmax", rule)


def _sum_to_size(call: Torch) -> Value | None:
    """Axes that are kept, with one element."""
    x = call.input("x")
    if not call["keepdims"] or call.out.kind != "real" or not x.rank:
        return None
    return call.value(f"{call.build.inner(x)}.sum_to_size({call.out.shape})")


# ---- order, places


def _sort(call: Torch) -> list[Value] | None:
    """Without an order of equal elements; where it is not asked where they were, along the first
    axis.
    """
    x = call.input("x")
    if not call.wants("at") and not call["descending"] and not call.axis("axis", x.rank):
        return [call.value(invoke("torch.msort", x))]
    if call["stable"]:
        return None
    options = {"dim": call.axis_said("axis", x.rank), "descending": call["descending"] or None}
    return two(call, invoke("torch.sort", x, **options))


def _histogram(call: Torch) -> Value | None:
    x = call.input("x")
    if call["outside"] != "dropped" or x.dtype not in _WIDE:
        return None
    options = {"bins": call["bins"], "range": (float(call["low"]), float(call["high"]))}
    counted = Value(f"{invoke('torch.histogram', x, **options)}[0]", call.out.shape, x.dtype)
    return call.build.cast(counted, call.out.dtype)


def _take_along(call: Torch) -> Value | None:
    if call["negative"] != "refused":
        return None
    x, ids = call.input("x"), call.build.cast(call.input("ids"), "i64")
    axis = call.axis_said("axis", x.rank)
    return call.value(invoke("torch.take_along_dim", x, ids, axis))


def _looked_up(call: Torch) -> Value | None:
    """Rows of a matrix, as of a table."""
    x, ids = call.input("x"), call.input("ids")
    rows = x.rank == 2 and not call.axis("axis", 2)
    if not rows or call["negative"] != "refused" or call.out.kind != "real":
        return None
    return call.value(invoke("F.embedding", call.build.cast(ids, "i64"), x))


def _selected(call: Torch) -> Value | None:
    ids = call.input("ids")
    if ids.rank != 1:
        return None
    table = call.input("table")
    return call.value(invoke("torch.index_select", table, 0, call.build.cast(ids, "i64")))


def _bag(call: Torch) -> Value | None:
    """Bags behind one another, and where each of them begins."""
    ids = call.input("ids")
    count, length = ids.shape
    if not count * length:
        return None
    flat = call.build.reshape(call.build.cast(ids, "i64"), (count * length,))
    weights = weights_of(call)
    if weights is not None:
        weights = call.build.reshape(weights, (count * length,))
    return bags(call, flat, weights, f"torch.arange(0, {count * length}, {length})")


def _bag_ends(call: Torch) -> Value | None:
    """Where bags begin, and where the last one ends."""
    if not call.out.shape[0]:
        return None  # an end alone is taken for a beginning
    ids, offsets = (call.build.cast(call.input(name), "i64") for name in ("ids", "offsets"))
    ends = f"torch.cat(({offsets.text}, torch.tensor([{ids.shape[0]}])))"
    return bags(call, ids, weights_of(call), ends, include_last_offset=True)


def _scatter_add(call: Torch) -> Value | None:
    x, updates = call.input("x"), call.input("updates")
    adds = (call["negative"], call["reduction"]) == ("refused", "add")
    if not adds or x.dtype == "bool":
        return None
    ids, axis = call.build.cast(call.input("ids"), "i64"), call.axis_said("axis", x.rank)
    return call.value(invoke("torch.scatter_add", x, axis, ids, updates))


def _segments(call: Torch) -> Value | None:
    """Rows in the order of their segments, of which it is told how long they are: what is in none
    comes first, and is left out. (The mean of none is NaN there, and the product of what is left
    out may be infinite, so that its gradient is NaN.)
    """
    x, ids = call.input("x"), call.build.cast(call.input("ids"), "i64")
    kind, count = call["reduction"], call["segments"]
    if kind in ("mean", "prod") or x.dtype not in _WIDE or count < 0:
        return None
    shifted = invoke("torch.clamp", ids, min=-1)
    rows = f"{x.text}[{invoke('torch.argsort', shifted, stable=True)}]"
    lengths = invoke("torch.bincount", f"{shifted} + 1", minlength=count + 1)
    text = invoke("torch.segment_reduce", rows, f'"{kind}"', lengths=lengths, axis=0)
    return call.value(f"{text}[1:]")


# ---- shapes


def _split(call: Torch) -> list[Value] | None:
    """At places, as NumPy has it."""
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    counts = [info.shape[axis] for info in call.outputs]
    if len(counts) == 1 or sum(counts) != x.shape[axis]:
        return None
    places = [sum(counts[: i + 1]) for i in range(len(counts) - 1)]
    text = invoke("torch.tensor_split", x, str(places), dim=axis)
    return named(call, text)


def _repeat(call: Torch) -> Value | None:
    """As many of each, as a tensor says."""
    x = call.input("x")
    axis, times = call.axis_said("axis", x.rank), call["repeats"]
    if times < 0:
        return None
    counts = invoke("torch.full", (x.shape[axis],), times)
    return call.value(invoke("torch.repeat_interleave", x, counts, dim=axis))


def _diagonal(more: int) -> Native:
    """Of one matrix, or one vector; see `irlang.lower.torch_places`."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        if x.rank + more != 2 or call.axes("axes", 2) != (0, 1):
            return None
        return call.value(invoke("torch.diag", x, call["offset"]))

    return Native("torch.diag", rule)


def _cdist(call: Torch) -> Value | None:
    """Without a product of matrices."""
    a, b = call.input("a"), call.input("b")
    if call["p"] != 2 or a.dtype not in _WIDE:
        return None
    mode = '"donot_use_mm_for_euclid_dist"'
    return call.value(invoke("torch.cdist", a, b, p=2.0, compute_mode=mode))


def _alike(row: Native, name: str, value: float) -> Native:
    """A row of another loss, which is this one where an attribute has this value."""
    return replace(row, rule=lambda call: row.rule(call) if call[name] == value else None)


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "segment_reduce": Native("torch.segment_reduce", _segments, eager=True),
    "subtract": Native("torch.rsub", _subtract),
    "floor_divide": replace(Native("torch.div", _floor_divide), constant=("a", "b")),
    "square": Native("torch.pow", lambda call: call.value(invoke("torch.pow", call.input("x"), 2))),
    "clip": (Native("torch.clamp", _clip), Native("F.hardtanh", _hard_tanh)),
    "hard_tanh": plain("torch.clamp", min="min", max="max"),
    "relu": Native("F.threshold, F.hardtanh", _relu),
    "leaky_relu": Native("F.prelu", _leaky),
    "elu": _unit("F.celu", "alpha"),
    "celu": _unit("F.elu", "alpha"),
    "reduce_sum": Native("Tensor.sum_to_size", _sum_to_size),
    "reduce_mean": _moments("torch.var_mean", 1, correction=False),
    "reduce_variance": _moments("torch.var_mean", 0),
    "reduce_std": _moments("torch.std_mean", 0),
    "reduce_max": _extreme("max"),
    "reduce_min": _extreme("min"),
    "sort": Native("torch.msort, torch.sort", _sort),
    "bucketize": among("torch.searchsorted", after=True),
    "histogram": Native("torch.histogram", _histogram),
    "take_along_axis": Native("torch.take_along_dim", _take_along),
    "gather": Native("F.embedding", _looked_up),
    "embedding": Native("torch.index_select", _selected),
    "embedding_bag": Native("F.embedding_bag", _bag),
    "embedding_bag_offsets": Native("F.embedding_bag", _bag_ends),
    "scatter_elements": Native("torch.scatter_add", _scatter_add),
    "transpose": exchanged("torch.swapaxes", "torch.movedim"),
    "concat": joined_as_numpy("torch"),
    "split": Native("torch.tensor_split", _split),
    "repeat": Native("torch.repeat_interleave", _repeat),
    "diagonal": _diagonal(0),
    "diag_embed": _diagonal(1),
    "upsample": Native("F.interpolate", lambda call: interpolate(call, "nearest-exact")),
    "cdist": Native("torch.cdist", _cdist),
    "huber": _alike(loss("F.smooth_l1_loss"), "delta", 1),
    "smooth_l1": _alike(loss("F.huber_loss"), "beta", 1),
}
