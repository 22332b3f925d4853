"""PyTorch's further words for products, convolutions, pools and norms."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from irlang.lower.call import Call, Native
from irlang.lower.legalise import Windows, moved, windows
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.torch_layers import max_pool, pooled
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


# ---- products


def _dense(call: Torch) -> Value | None:
    x, w = call.input("x"), call.input("w")
    if call.has("b"):
        return call.value(invoke("torch.addmm", call.input("b"), x, w)) if x.rank == 2 else None
    return call.value(invoke("torch.matmul", x, w))


def _sides(call: Torch) -> list[str]:
    texts = ((call.build.inner(call.input(name)), call[f"transpose_{name}"]) for name in "ab")
    return [f"{text}.mT" if turned else text for text, turned in texts]


def _linear(call: Torch) -> Value | None:
    """A product as a layer has it: of any number of axes by a matrix."""
    if call.input("b").rank != 2 or call.out.kind != "real":
        return None
    a, b = _sides(call)
    return call.value(invoke("F.linear", a, b[:-3] if call["transpose_b"] else f"{b}.mT"))


def _baddbmm(call: Torch) -> Value | None:
    """Beside a tensor that counts for nothing."""
    a, b = call.input("a"), call.input("b")
    if a.rank != 3 or b.rank != 3 or a.shape[0] != b.shape[0] or call.out.kind != "real":
        return None
    nothing = invoke("torch.zeros", call.out.shape, dtype=call.build.dtype(call.out.dtype))
    return call.value(invoke("torch.baddbmm", nothing, *_sides(call), beta=0))


# ---- windows


def _conv_tbc(call: Torch) -> Value | None:
    """Over time, which comes first, then samples and channels."""
    x, frame = call.input("x"), windows(call)
    plain_ = (frame.stride, frame.dilation, call["groups"]) == ((1,), (1,), 1)
    if frame.rank != 1 or not plain_ or not frame.symmetric or x.dtype not in _WIDE:
        return None
    build, w = call.build, call.input("w")
    turned = build.transpose(x, (2, 0, 1)), build.transpose(w, (2, 1, 0))
    inner, kernel = (f"{build.inner(value)}.contiguous()" for value in turned)
    zeros = invoke("torch.zeros", (w.shape[0],), dtype=build.dtype(x.dtype))
    bias = call.text("b", zeros)
    text = invoke("torch.conv_tbc", inner, kernel, bias, int(frame.before[0]))
    n, c, length = call.out.shape
    return build.transpose(Value(text, (length, n, c), x.dtype), (1, 2, 0))


def _pooled_with_places(call: Torch, x: Value, frame: Windows, ceil: bool) -> Value:
    """The kernel that says also where the maxima are."""
    return call.value(f"{pooled(x, frame, ceil, return_indices=True)}[0]")


def _global(function: str) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        if not call["keepdims"] or x.rank < 3:
            return None
        return call.value(invoke(function, x, dim=tuple(range(2, x.rank)), keepdim=True))

    return Native(function, rule)


# ---- norms


def _given(call: Torch, *names: str) -> list[Value | None]:
    return [call.input(name) if call.has(name) else None for name in names]


def _batch_norm(call: Torch) -> Value | None:
    """What is normalised, the first of three results."""
    x = call.input("x")
    if x.rank < 2:
        return None
    axis = call.axis("axis", x.rank)
    inner = moved(call, x, axis, 1)
    given = _given(call, "scale", "bias", "mean", "var")
    text = invoke("torch.native_batch_norm", inner, *given, False, 0.0, float(call["eps"]))
    return moved(call, Value(f"{text}[0]", inner.shape, x.dtype), 1, axis)


def _group_norm(call: Torch) -> Value | None:
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    inner = moved(call, x, axis, 1)
    (n, c), size = inner.shape[:2], math.prod(inner.shape[2:])
    inner = Value(f"{call.build.inner(inner)}.contiguous()", inner.shape, x.dtype)
    given = _given(call, "gamma", "beta")
    sizes = (n, c, size, int(call["groups"]))
    text = invoke("torch.native_group_norm", inner, *given, *sizes, float(call["eps"]))
    return moved(call, Value(f"{text}[0]", inner.shape, x.dtype), 1, axis)


def _instance_norm(call: Torch) -> Value | None:
    """A group for every channel."""
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    inner = moved(call, x, axis, 1)
    if x.rank < 3 or math.prod(inner.shape[2:]) < 2 or not inner.shape[1]:
        return None
    given = {"weight": "gamma", "bias": "beta"}
    options = {key: call.input(name) for key, name in given.items() if call.has(name)}
    text = invoke("F.group_norm", inner, inner.shape[1], **options, eps=float(call["eps"]))
    return moved(call, Value(text, inner.shape, x.dtype), 1, axis)


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "dense": Native("torch.addmm, torch.matmul", _dense),
    "matmul": (Native("F.linear", _linear), Native("torch.baddbmm", _baddbmm)),
    "conv": Native("torch.conv_tbc", _conv_tbc),
    "max_pool": Native(
        "F.max_pool{1,2,3}d with places", partial(max_pool, given=_pooled_with_places)
    ),
    "global_max_pool": _global("torch.amax"),
    "global_avg_pool": _global("torch.mean"),
    "batch_norm": replace(Native("torch.native_batch_norm", _batch_norm), constant=("mean", "var")),
    "group_norm": Native("torch.native_group_norm", _group_norm),
    "instance_norm": Native("F.group_norm", _instance_norm),
}
