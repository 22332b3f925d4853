"""How PyTorch spells what flows back through windows."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


def _avg_pool(call: Torch) -> Value | None:
    """The kernel is handed the input, whose size alone is of matter, and no padding."""
    g = call.input("g")
    if g.rank not in (4, 5) or g.dtype not in _WIDE or call["pad"] != "valid":
        return None
    shape = [*g.shape[:2], *call["size"]]
    like = f"torch.zeros({shape}, dtype={call.build.dtype(g.dtype)})"
    sizes = tuple(call["window"]), tuple(call["stride"])
    none = (0,) * (g.rank - 2)
    function = f"torch.ops.aten.avg_pool{g.rank - 2}d_backward"
    return call.value(invoke(function, g, like, *sizes, none, False, True, None))


def _weights(call: Torch) -> Value | None:
    x, g = call.input("x"), call.input("g")
    if not 3 <= x.rank <= 5 or x.dtype not in _WIDE or call["pad"] != "valid":
        return None
    given = {
        "stride": tuple(call["stride"]),
        "dilation": tuple(call["dilation"]),
        "groups": call["groups"],
    }
    function = f"torch.nn.grad.conv{x.rank - 2}d_weight"
    return call.value(invoke(function, x, call.out.shape, g, **given))


BACKWARD: dict[str, Native] = {
    "avg_pool_gradient": Native(
        "torch.ops.aten.avg_pool2d_backward, torch.ops.aten.avg_pool3d_backward", _avg_pool
    ),
    "conv_weight_gradient": Native("torch.nn.grad.conv{1,2,3}d_weight", _weights),
}
