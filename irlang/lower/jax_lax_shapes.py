"""JAX's further words of `jax.lax` for places, shapes and products, which are told every axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.jax_lax import word
from irlang.lower.legalise import filling, is_whole, replaced
from irlang.lower.spelling import invoke, named
from irlang.lower.value import Value

Jax = Call[JaxBuilder]


# ---- places


def _sliced(call: Jax) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Value]:
    """Where a slice begins along every axis, its sizes and its steps, and of what it is one."""
    x = call.input("x")
    begin, steps = [0] * x.rank, [1] * x.rank
    for axis, first, step in zip(
        call.axes("axes", x.rank), call["first"], call["step"], strict=True
    ):
        begin[axis], steps[axis] = int(first), int(step)
    return tuple(begin), call.out.shape, tuple(steps), x


def _slice(call: Jax, name: str) -> Value | None:
    begin, sizes, steps, x = _sliced(call)
    if min(steps, default=0) < 1:
        return None
    rows = zip(begin, sizes, steps, strict=True)
    ends = tuple(b + (n - 1) * s + 1 if n else b for b, n, s in rows)
    return call.value(invoke(name, x, begin, ends, None if set(steps) == {1} else steps))


def _slice_from(call: Jax, name: str) -> Value | None:
    """Of a size, from a place on that may be computed."""
    begin, sizes, steps, x = _sliced(call)
    if set(steps) != {1}:
        return None
    return call.value(invoke(name, x, f"jnp.array({list(begin)})", sizes))


def _cropped(call: Jax, name: str) -> Value | None:
    """Valid ones alone: a place beyond the end is documented to be moved back."""
    if call.node.instance.faults:
        return None
    x, begin = call.input("x"), tuple(map(int, call["before"]))
    if name.endswith("dynamic_slice"):
        return call.value(invoke(name, x, begin, call.out.shape))
    ends = tuple(b + n for b, n in zip(begin, call.out.shape, strict=True))
    return call.value(invoke(name, x, begin, ends))


def _put(call: Jax, name: str) -> Value | None:
    """In the place of neighbours along one axis."""
    begin, x, update = replaced(call), call.input("x"), call.input("update")
    if begin is None:
        return None
    part = [axis for axis, size in enumerate(x.shape) if update.shape[axis] != size]
    if len(part) != 1:
        return None
    return call.value(invoke(name, x, update, begin[part[0]], part[0]))


def _gathered(call: Jax, name: str) -> Value | None:
    """Of any places, slices of one element along an axis."""
    x, ids = call.input("x"), call.input("ids")
    axis = call.axis("axis", x.rank)
    if call["negative"] != "refused" or not x.shape[axis]:
        return None
    behind = range(axis + ids.rank, x.rank + ids.rank - 1)
    numbers = invoke(
        "jax.lax.GatherDimensionNumbers",
        offset_dims=(*range(axis), *behind), collapsed_slice_dims=(axis,), start_index_map=(axis,),
    )  # fmt: skip
    sizes = tuple(1 if n == axis else size for n, size in enumerate(x.shape))
    places = f"{call.build.inner(ids)}[..., None]"
    return call.value(invoke(name, x, places, numbers, sizes))


def _gathered_nd(call: Jax, name: str) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    if call["batch_dims"] or not ids.rank or not ids.shape[-1] or call["negative"] != "refused":
        return None
    depth = ids.shape[-1]
    if 0 in x.shape[:depth]:
        return None
    numbers = invoke(
        "jax.lax.GatherDimensionNumbers",
        offset_dims=tuple(range(ids.rank - 1, len(call.out.shape))),
        collapsed_slice_dims=tuple(range(depth)), start_index_map=tuple(range(depth)),
    )  # fmt: skip
    return call.value(invoke(name, x, ids, numbers, (*[1] * depth, *x.shape[depth:])))


_SCATTERS = {
    "none": "scatter", "add": "scatter_add", "mul": "scatter_mul", "max": "scatter_max",
    "min": "scatter_min",
}  # fmt: skip


def _scattered(call: Jax) -> Value | None:
    """Slices, at places of as many axes as are told."""
    x, ids, updates = call.input("x"), call.input("ids"), call.input("updates")
    if call["negative"] != "refused" or not ids.rank or not ids.shape[-1]:
        return None
    if call["reduction"] != "none" and x.dtype == "bool":
        return None
    depth = ids.shape[-1]
    numbers = invoke(
        "jax.lax.ScatterDimensionNumbers",
        update_window_dims=tuple(range(ids.rank - 1, updates.rank)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
    )
    function = f"jax.lax.{_SCATTERS[call['reduction']]}"
    return call.value(invoke(function, x, ids, updates, numbers))


# ---- shapes


def _reversed(call: Jax, name: str) -> Value:
    x = call.input("x")
    return call.value(invoke(name, x, call.axes("axes", x.rank)))


def _transposed(call: Jax, name: str) -> Value:
    return call.value(invoke(name, call.input("x"), tuple(call["order"])))


def _reshaped(call: Jax, name: str) -> Value:
    return call.value(invoke(name, call.input("x"), call.out.shape))


def _collapsed(call: Jax, name: str) -> Value | None:
    """Neighbouring axes as one; of none there is none."""
    x, first, last = call.input("x"), call["first"], call["last"]
    return call.value(invoke(name, x, first, last + 1)) if first <= last and x.rank else None


def _squeezed(call: Jax, name: str) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    return call.value(invoke(name, x, axes)) if axes else None


def _expanded(call: Jax, name: str) -> Value | None:
    axes = tuple(call["axes"])
    return call.value(invoke(name, call.input("x"), axes)) if axes else None


def _broadcast(call: Jax, name: str) -> Value:
    x, rank = call.input("x"), len(call.out.shape)
    return call.value(invoke(name, x, call.out.shape, tuple(range(rank - x.rank, rank))))


def _joined(call: Jax, name: str) -> Value | None:
    values = call.family("xs")
    listed = f"[{', '.join(map(call.build.full, values))}]"
    rank = len(call.out.shape)
    return call.value(invoke(name, listed, call.axis("axis", rank)))


def _padded(call: Jax, name: str) -> Value | None:
    """Of a number; what is below 0 is taken away."""
    x = call.input("x")
    if call["mode"] != "constant":
        return None
    pairs = zip(map(int, call["before"]), map(int, call["after"]), strict=True)
    number = invoke("jnp.array", filling(call), call.build.dtype(x.dtype))
    listed = str([(before, after, 0) for before, after in pairs])
    return call.value(invoke(name, x, number, listed))


def _split(call: Jax, name: str) -> list[Value]:
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    sizes = tuple(info.shape[axis] for info in call.outputs)
    return named(call, invoke(name, x, sizes, axis))


def _tiled(call: Jax, name: str) -> Value:
    return call.value(invoke(name, call.input("x"), tuple(call["repeats"])))


def _counted(call: Jax, name: str) -> Value | None:
    if (call["start"], call["step"]) != (0, 1) or len(call.out.shape) != 1:
        return None
    return call.value(invoke(name, call.build.dtype(call.out.dtype), call.out.shape[0]))


def _full(call: Jax, name: str) -> Value | None:
    # A number is cut to whole ones before it is said to be true.
    if call.out.kind != "real" and not is_whole(float(call["value"])):
        return None
    number = call["value"] if call.out.kind == "real" else int(call["value"])
    return call.value(invoke(name, call.out.shape, number, call.build.dtype(call.out.dtype)))


# ---- products


def _numbers(left: Sequence[int], right: Sequence[int], batch: int = 0) -> str:
    """What is summed, and how many axes go side by side."""
    both = tuple(range(batch))
    return str(((tuple(left), tuple(right)), (both, both)))


def _matmul(call: Jax, name: str) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank != b.rank or a.shape[:-2] != b.shape[:-2]:
        return None
    left = a.rank - 2 if call["transpose_a"] else a.rank - 1
    right = b.rank - 1 if call["transpose_b"] else b.rank - 2
    return call.value(invoke(name, a, b, _numbers((left,), (right,), a.rank - 2)))


def _batched(call: Jax, name: str) -> Value | None:
    a, b = call.input("a"), call.input("b")
    turned = call["transpose_a"] or call["transpose_b"]
    if a.rank != b.rank or a.rank < 3 or a.shape[:-2] != b.shape[:-2] or turned:
        return None
    return call.value(invoke(name, a, b))


def _ragged(call: Jax, name: str) -> Value | None:
    """Rows in groups, each by a matrix of its own, as of experts."""
    a, b = call.input("a"), call.input("b")
    turned = call["transpose_a"] or call["transpose_b"]
    if not 2 <= a.rank == b.rank <= 3 or a.shape[:-2] != b.shape[:-2] or turned:
        return None
    groups = math.prod(a.shape[:-2])
    rows = call.build.reshape(a, (groups * a.shape[-2], a.shape[-1]))
    matrices = call.build.reshape(b, (groups, *b.shape[-2:]))
    sizes = f"jnp.full({groups}, {a.shape[-2]}, jnp.int32)"
    found = Value(invoke(name, rows, matrices, sizes), (rows.shape[0], b.shape[-1]), call.out.dtype)
    return call.build.reshape(found, call.out.shape)


def _dense(call: Jax, name: str) -> Value:
    x = call.input("x")
    text = invoke(name, x, call.input("w"), _numbers((x.rank - 1,), (0,)))
    return call.value(f"{text} + {call.build.inner(call.input('b'))}" if call.has("b") else text)


def _tensordot(call: Jax, name: str) -> Value:
    a, b = call.input("a"), call.input("b")
    axes = call.axes("a_axes", a.rank), call.axes("b_axes", b.rank)
    return call.value(invoke(name, a, b, _numbers(*axes)))


def _inner(call: Jax, name: str) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if not a.rank or not b.rank:
        return None
    return call.value(invoke(name, a, b, _numbers((a.rank - 1,), (b.rank - 1,))))


WORDS: dict[str, tuple[Native, ...]] = {
    "slice": (word("slice", _slice), word("dynamic_slice", _slice_from)),
    "crop": (word("dynamic_slice", _cropped), word("slice", _cropped)),
    "slice_update": (word("dynamic_update_slice_in_dim", _put),),
    "gather": (word("gather", _gathered),),
    "gather_nd": (word("gather", _gathered_nd),),
    "scatter_nd": (Native("jax.lax.scatter, scatter_add, …", _scattered),),
    "reverse": (word("rev", _reversed),),
    "transpose": (word("transpose", _transposed),),
    "reshape": (word("reshape", _reshaped),),
    "flatten": (word("collapse", _collapsed),),
    "squeeze": (word("squeeze", _squeezed),),
    "expand_dims": (word("expand_dims", _expanded),),
    "broadcast_to": (word("broadcast_in_dim", _broadcast),),
    "concat": (word("concatenate", _joined),),
    "pad": (word("pad", _padded),),
    "split": (word("split", _split),),
    "tile": (word("tile", _tiled),),
    "arange": (word("iota", _counted),),
    "full": (word("full", _full),),
    "matmul": (
        word("dot_general", _matmul),
        word("batch_matmul", _batched),
        word("ragged_dot", _ragged),
    ),
    "dense": (word("dot_general", _dense),),
    "tensordot": (word("dot_general", _tensordot),),
    "inner": (word("dot_general", _inner),),
}
