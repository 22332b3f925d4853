"""Functions of `keras.ops` that convolve, pool and resample."""

from __future__ import annotations

from typing import Any

from irlang.importers.keras_node import Node, Write
from irlang.importers.keras_resample import resize


def _numbers(n: Node, key: str, rank: int, default: Any = 1) -> list[int]:
    value = n.get(key, default)
    return list(value) if isinstance(value, (tuple, list)) else [value] * rank


def _steps(n: Node, rank: int) -> dict[str, Any]:
    """Stride, dilation and padding; those that say nothing are left out."""
    stride = _numbers(n, "strides", rank)
    dilation = _numbers(n, "dilation_rate", rank)
    pad = n.get("padding", "valid")
    if pad not in ("valid", "same"):
        raise n.uncovered(f"`padding` is {pad!r}")
    attrs: dict[str, Any] = {"stride": stride} if stride != [1] * rank else {}
    if dilation != [1] * rank:
        attrs["dilation"] = dilation
    return attrs | ({"pad": pad} if pad != "valid" else {})


def _kernel(n: Node, position: int, rank: int, *channels: int) -> str:
    """A kernel whose channel axes, by their place after the spatial ones, go before them."""
    order = [*(rank + place for place in channels), *range(rank)]
    kernel = n.like_first(n.x(position))
    return n.write("transpose", kernel, suffix=f"kernel{position}", perm=order)


def _conv(n: Node) -> str:
    x = n.first()
    rank = n.rank(x) - 2
    w = _kernel(n, 1, rank, 1, 0)
    return n.last(n.write("conv", x, w, **_steps(n, rank)))


def _depthwise(n: Node) -> str:
    x = n.first()
    rank = n.rank(x) - 2
    w = _kernel(n, 1, rank, 0, 1)
    return n.last(n.write("depthwise_conv", x, w, **_steps(n, rank)))


def _separable(n: Node) -> str:
    x = n.first()
    rank = n.rank(x) - 2
    w = _kernel(n, 1, rank, 0, 1)
    point = _kernel(n, 2, rank, 1, 0)
    p = n.write("reshape", point, suffix="point", shape=list(n.info(point).shape[:2]))
    return n.last(n.write("separable_conv", x, w, p, **_steps(n, rank)))


def _pool(op: str) -> Write:
    def write(n: Node) -> str:
        x = n.first()
        rank = n.rank(x) - 2
        attrs: dict[str, Any] = {"window": _numbers(n, "pool_size", rank)}
        if n.get("strides", None) is not None:
            attrs["stride"] = _numbers(n, "strides", rank)
        pad = n.get("padding", "valid")
        if pad not in ("valid", "same"):
            raise n.uncovered(f"`padding` is {pad!r}")
        return n.last(n.write(op, x, **attrs, **({"pad": pad} if pad != "valid" else {})))

    return write


def _adaptive(op: str) -> Write:
    def write(n: Node) -> str:
        x = n.first()
        return n.last(n.write(op, x, size=_numbers(n, "output_size", n.rank(x) - 2)))

    return write


WINDOWS: dict[str, Write] = {
    "Conv": _conv,
    "DepthwiseConv": _depthwise,
    "SeparableConv": _separable,
    "MaxPool": _pool("max_pool"),
    "AveragePool": _pool("avg_pool"),
    "AdaptiveMaxPool": _adaptive("adaptive_max_pool"),
    "AdaptiveAveragePool": _adaptive("adaptive_avg_pool"),
    "Resize": resize,
}
