"""How PyTorch spells indexing and changes of shape."""

from __future__ import annotations

from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import filling, parts, spatial
from irlang.lower.spelling import invoke, named, reshaped, text_of, with_others
from irlang.lower.subscript import subscript
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


# ---- indexing


def _embedding(call: Torch) -> Value:
    ids = call.input("ids")
    ids = ids if ids.dtype in ("i32", "i64") else call.build.cast(ids, "i64")
    return call.value(invoke("F.embedding", ids, call.input("table")))


def _unravel(call: Torch) -> Value | None:
    if not call["shape"]:
        return None  # no places, which are not stacked
    found = invoke("torch.unravel_index", call.input("ids"), tuple(call["shape"]))
    stacked = Value(f"torch.stack({found})", call.out.shape, "i64")
    return call.build.cast(stacked, call.out.dtype)


def _detach(call: Torch) -> Value:
    return call.value(f"{call.build.inner(call.input('x'))}.detach()")


def _frames(call: Torch) -> Value | None:
    x, length = call.input("x"), call["length"]
    if x.shape[-1] < length:
        return None
    return call.value(f"{call.build.inner(x)}.unfold(-1, {length}, {call['step']})")


def _gather(call: Torch) -> Value | None:
    x, ids = call.input("x"), call.build.cast(call.input("ids"), "i64")
    if call["negative"] == "refused" and ids.rank == 1:
        return call.value(invoke("torch.index_select", x, call.axis_said("axis", x.rank), ids))
    return call.value(f"{call.build.inner(x)}[{':, ' * call.axis('axis', x.rank)}{ids.text}]")


def _take_along(call: Torch) -> Value | None:
    if call["negative"] != "refused":
        return None
    x, ids = call.input("x"), call.build.cast(call.input("ids"), "i64")
    return call.value(invoke("torch.gather", x, call.axis_said("axis", x.rank), ids))


def _slice_update(call: Torch) -> Value | None:
    """Along one axis; all of the others is replaced."""
    x, update = call.input("x"), call.input("update")
    if x.rank != update.rank or not x.rank:
        return None
    rows = zip(call["begin"], call["step"], x.shape, update.shape, strict=True)
    part = [axis for axis, (b, s, n, m) in enumerate(rows) if (b, s, n) != (0, 1, m)]
    if len(part) > 1:
        return None
    axis = part[0] if part else 0
    first, step, count = call["begin"][axis], call["step"][axis], update.shape[axis]
    end = first + (count - 1) * step + 1 if count else first
    given = {"dim": axis, "start": first, "end": end, "step": step}
    return call.value(invoke("torch.slice_scatter", x, update, **given))


# ---- shapes


def _unflatten(call: Torch) -> Value | None:
    """One axis as several, of which the first is what is left."""
    before, shape = call.input("x").shape, call.out.shape
    more = len(shape) - len(before)
    axis = next((n for n, size in enumerate(before) if shape[n : n + 1] != (size,)), len(before))
    fits = axis < len(before) and before[axis + 1 :] == shape[axis + more + 1 :]
    if not fits or more < 1 or 0 in shape or call.node.instance.faults:
        return None
    sizes = (-1, *shape[axis + 1 : axis + more + 1])
    return call.value(invoke("torch.unflatten", call.input("x"), axis, sizes))


def _flatten(call: Torch) -> Value | None:
    x = call.input("x")
    first, last = call["first"], call["last"]
    if first > last:
        return None
    end = () if last == x.rank - 1 else (last,)
    return call.value(invoke("torch.flatten", x, first, *end))


def _squeeze(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    given = [axes] if call.says("axes") else []
    return call.value(invoke("torch.squeeze", x, *given)) if axes else None


def _unsqueeze(call: Torch) -> Value | None:
    axes = call["axes"]
    if len(axes) != 1:
        return None
    return call.value(invoke("torch.unsqueeze", call.input("x"), axes[0]))


def _transpose(call: Torch) -> Value:
    return call.value(invoke("torch.permute", call.input("x"), tuple(call["order"])))


def _joined(function: str, rank: int) -> Native:
    def rule(call: Torch) -> Value:
        values = call.family("xs")
        axis = call.axis_said("axis", values[0].rank + rank)
        listed = ", ".join(map(call.build.full, values))
        return call.value(f"{function}([{listed}], dim={axis})")

    return Native(function, rule)


def _split(call: Torch) -> list[Value]:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    wanted = parts(call, x)
    function = "torch.split" if isinstance(wanted, list) else "torch.chunk"
    text = invoke(function, x, str(wanted), dim=axis)
    return named(call, text)


def _pad(call: Torch) -> Value | None:
    x = call.input("x")
    before, after, mode = call["before"], call["after"], call["mode"]
    pairs = list(zip(reversed(before), reversed(after), strict=True))
    spelt = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}
    if mode not in spelt or x.dtype == "bool":
        return None
    if mode != "constant":
        # Only of the last axes, behind a batch and channels, and nothing taken away.
        space = x.rank - 2
        outside = any(map(any, pairs[space:]))
        negative = any(amount < 0 for pair in pairs for amount in pair)
        sizes = zip(pairs, reversed(x.shape), strict=True)
        if mode == "wrap" and any(max(pair) > size for pair, size in sizes):
            return None  # it goes round once at most, as is documented
        if not 1 <= space <= 3 or outside or negative or DTYPES[x.dtype].kind != "real":
            return None
        pairs = pairs[:space]
        amounts = tuple(amount for pair in pairs for amount in pair)
        return call.value(invoke("F.pad", x, amounts, mode=f'"{spelt[mode]}"'))
    amounts = tuple(amount for pair in pairs for amount in pair)
    return call.value(invoke("F.pad", x, amounts, value=filling(call) or None))


def _tile(call: Torch) -> Value:
    return call.value(invoke("torch.tile", call.input("x"), tuple(call["repeats"])))


def _repeat(call: Torch) -> Value:
    x = call.input("x")
    text = invoke("torch.repeat_interleave", x, call["repeats"], dim=call.axis_said("axis", x.rank))
    return call.value(text)


def _repeat_each(call: Torch) -> Value:
    x = call.input("x")
    numbers = f"torch.tensor({list(call['repeats'])}, dtype=torch.int64)"
    axis = call.axis_said("axis", x.rank)
    return call.value(invoke("torch.repeat_interleave", x, numbers, dim=axis))


def _flip(call: Torch) -> Value:
    x = call.input("x")
    return call.value(invoke("torch.flip", x, call.axes_said("axes", x.rank)))


def _roll(call: Torch) -> Value | None:
    x, axes = call.input("x"), call.axes_said("axes", call.input("x").rank)
    return call.value(invoke("torch.roll", x, tuple(call["shift"]), axes)) if axes else None


def _broadcast(call: Torch) -> Value:
    return call.value(invoke("torch.broadcast_to", call.input("x"), call.out.shape))


def _trilu(call: Torch) -> Value:
    function = "torch.triu" if call["upper"] else "torch.tril"
    return call.value(invoke(function, call.input("x"), call["k"]))


def interpolate(call: Torch, mode: str, **options: Any) -> Value | None:
    """An image, or what has fewer or more axes, of the size that is wanted."""
    x = call.input("x")
    if not 1 <= x.rank - 2 <= 3 or DTYPES[x.dtype].kind != "real":
        return None
    size = {"size": text_of(call.out.shape[2:])}
    scale = tuple(map(float, call.get("scale", ())))
    if any(scale):
        size = {"scale_factor": text_of(scale)}
    return call.value(invoke("F.interpolate", x, **size, mode=f'"{mode}"', **options))


def _scaled(call: Torch, x: Value) -> bool:
    """Whether all axes behind batch and channels are resized by factors alone, of which PyTorch
    makes the same sizes; corners are aligned by sizes, which are those times the factors then.
    """
    scale, (space, out) = tuple(map(float, call["scale"])), (x.shape[2:], call.out.shape[2:])
    if call.axes("axes", x.rank) != tuple(range(2, x.rank)) or call.says("size"):
        return False
    if call["aspect"] != "stretch" or 0 in call.out.shape or not all(s > 0 for s in scale):
        return False
    sizes = [n * s for n, s in zip(space, scale, strict=True)]
    whole = call["coord"] != "align_corners" or all(n == int(n) for n in sizes)
    return whole and out == tuple(map(int, sizes))


def _resize(call: Torch) -> Value | None:
    x, coord, antialias = call.input("x"), call["coord"], call["antialias"]
    resized = _scaled if any(call["scale"]) else spatial
    if not resized(call, x) or call["exclude_outside"] != antialias:
        return None
    if call["mode"] == "nearest":
        modes = {
            ("asymmetric", "floor"): "nearest",
            ("half_pixel", "round_prefer_ceil"): "nearest-exact",
        }
        mode = modes.get((coord, call["rounding"]))
        return None if mode is None else interpolate(call, mode)
    align = {"half_pixel": False, "align_corners": True}.get(coord)
    names = {3: "linear", 4: "bilinear", 5: "trilinear"}
    mode = names.get(x.rank)
    if call["mode"] == "cubic":
        mode = "bicubic" if x.rank == 4 and call["cubic_coeff"] == -0.75 + antialias / 4 else None
    if align is None or mode is None:
        return None
    if antialias and (align or x.rank != 4 or x.dtype not in ("f32", "f64")):
        return None
    return interpolate(call, mode, align_corners=align, antialias=antialias or None)


def _shuffle(function: str) -> Native:
    def rule(call: Torch) -> Value | None:
        if call["mode"] != "crd":
            return None
        return call.value(invoke(function, call.input("x"), call["block_size"]))

    return Native(function, rule)


SHAPES: dict[str, Native] = {
    "embedding": Native("F.embedding", _embedding),
    "gather": Native("torch.index_select, x[ids]", _gather),
    "take_along_axis": Native("torch.gather", _take_along),
    "unravel_index": Native("torch.unravel_index", _unravel, since=(2, 2)),
    "frames": Native("torch.Tensor.unfold", _frames),
    "stop_gradient": Native("torch.Tensor.detach", _detach),
    "reshape": with_others(reshaped("torch.reshape"), Native("torch.unflatten", _unflatten)),
    "flatten": Native("torch.flatten", _flatten),
    "squeeze": Native("torch.squeeze", _squeeze, since=(2,)),  # before, of one axis
    "expand_dims": Native("torch.unsqueeze", _unsqueeze),
    "transpose": Native("torch.permute", _transpose),
    "concat": _joined("torch.cat", 0),
    "stack": _joined("torch.stack", 1),
    "split": Native("torch.split, torch.chunk", _split),
    "pad": Native("F.pad", _pad),
    "tile": Native("torch.tile", _tile),
    "repeat": Native("torch.repeat_interleave", _repeat),
    "repeat_each": Native("torch.repeat_interleave", _repeat_each),
    "reverse": Native("torch.flip", _flip),
    "roll": Native("torch.roll", _roll),
    "slice": subscript(backward=False),
    "slice_update": Native("torch.slice_scatter", _slice_update),
    "broadcast_to": Native("torch.broadcast_to", _broadcast),
    "trilu": Native("torch.triu, torch.tril", _trilu),
    "upsample": Native("F.interpolate", lambda call: interpolate(call, "nearest")),
    "resize": Native("F.interpolate", _resize),
    "space_to_depth": _shuffle("F.pixel_unshuffle"),
    "depth_to_space": _shuffle("F.pixel_shuffle"),
}
