"""How PyTorch spells what flows back through windows."""

from __future__ import annotations

from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, named
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


def _input(call: Torch) -> Value | None:
    g = call.input("g")
    if not 3 <= g.rank <= 5 or g.dtype not in _WIDE or call["pad"] != "valid":
        return None
    given = {
        "stride": tuple(call["stride"]),
        "dilation": tuple(call["dilation"]),
        "groups": call["groups"],
    }
    function = f"torch.nn.grad.conv{g.rank - 2}d_input"
    return call.value(invoke(function, call.out.shape, call.input("w"), g, **given))


def _indices(call: Torch) -> Value | None:
    """The kernel is handed the input, whose size alone is of matter."""
    g, indices = call.input("g"), call.input("indices")
    if g.rank not in (4, 5) or g.dtype not in _WIDE or indices.dtype != "i64":
        return None
    like = f"torch.zeros({list(call.out.shape)}, dtype={call.build.dtype(g.dtype)})"
    none, ones = (0,) * (g.rank - 2), (1,) * (g.rank - 2)
    sizes = tuple(call["window"]), tuple(call["stride"]), none, ones, False
    function = f"torch.ops.aten.max_pool{g.rank - 2}d_with_indices_backward"
    return call.value(invoke(function, g, like, *sizes, indices))


_PADS = {"reflect": "reflection", "edge": "replication"}


def _pad(call: Torch) -> Value | None:
    """All axes but the first two are padded; the last is said first."""
    g, mode = call.input("g"), _PADS.get(call["mode"])
    pairs = list(zip(call["before"], call["after"], strict=True))
    if min(map(min, pairs), default=0) < 0:  # which takes away there
        return None
    if mode is None or not 3 <= g.rank <= 5 or g.dtype not in _WIDE or pairs[:2] != [(0, 0)] * 2:
        return None
    like = f"torch.zeros({list(call.out.shape)}, dtype={call.build.dtype(g.dtype)})"
    ends = tuple(int(end) for pair in reversed(pairs[2:]) for end in pair)
    function = f"torch.ops.aten.{mode}_pad{g.rank - 2}d_backward"
    return call.value(invoke(function, g, like, ends))


def _batch_norm(call: Torch) -> list[Value] | None:
    """The kernel is handed the reciprocal of the deviation where it trains."""
    x, eps = call.input("x"), float(call["eps"])
    if x.rank < 2 or x.dtype not in _WIDE or call.axis("axis", x.rank) != 1:
        return None
    mean, var = call.build.receiver(call.input("mean")), call.build.receiver(call.input("var"))
    given = [call.input("g"), x, call.input("scale"), mean, var, mean,
             f"torch.rsqrt({var} + {eps})", bool(call["train"]), eps, (True,) * 3]  # fmt: skip
    return named(call, invoke("torch.ops.aten.native_batch_norm_backward", *given))


_NEAREST = {"asymmetric": "upsample_nearest", "half_pixel": "_upsample_nearest_exact"}


def _nearest(call: Torch) -> Value | None:
    g, function = call.input("g"), _NEAREST.get(call["coord"])
    if function is None or not 3 <= g.rank <= 5 or g.dtype not in _WIDE:
        return None
    named_ = f"torch.ops.aten.{function}{g.rank - 2}d_backward"
    return call.value(invoke(named_, g, g.shape[2:], call.out.shape))


_LINEAR = {3: "linear1d", 4: "bilinear2d", 5: "trilinear3d"}


def _linear(call: Torch) -> Value | None:
    """Of the image its size alone is of matter."""
    g = call.input("g")
    if g.rank not in _LINEAR or g.dtype not in _WIDE or call["coord"] == "asymmetric":
        return None
    function = f"torch.ops.aten.upsample_{_LINEAR[g.rank]}_backward"
    corners = call["coord"] == "align_corners"
    return call.value(invoke(function, g, g.shape[2:], call.input("x").shape, corners))


# ---- elements


def _alike(g: Value, x: Value) -> bool:
    """Whether there is a kernel. Kernels broadcast: other shapes make another call."""
    return g.dtype in _WIDE and g.shape == x.shape


def _element(function: str, *arguments: Any, other: str = "x") -> Native:
    """A kernel of what flows back, the argument or the result, and numbers: attributes by name."""
    name = f"torch.ops.aten.{function}"

    def rule(call: Torch) -> Value | None:
        g, x = call.input("g"), call.input(other)
        given = [float(call[one]) if isinstance(one, str) else one for one in arguments]
        return call.value(invoke(name, g, x, *given)) if _alike(g, x) else None

    return Native(name, rule)


def _elu(call: Torch) -> Value | None:
    """Of a result."""
    g, alpha, gamma = call.input("g"), float(call["alpha"]), float(call.get("gamma", 1))
    if not _alike(g, call.input("y")):
        return None
    given = alpha, gamma, 1, True, call.input("y")
    return call.value(invoke("torch.ops.aten.elu_backward", g, *given))


def _softplus(call: Torch) -> Value | None:
    """From 20 on the slope is 1 there, which it is to nine digits."""
    g, x = call.input("g"), call.input("x")
    if g.dtype != "f32" or not _alike(g, x):
        return None
    return call.value(invoke("torch.ops.aten.softplus_backward", g, x, 1, 20))


def _softmax(function: str) -> Native:
    name = f"torch.ops.aten.{function}"

    def rule(call: Torch) -> Value | None:
        g, y = call.input("g"), call.input("y")
        if not _alike(g, y):
            return None
        given = call.axis_said("axis", g.rank), call.build.dtype(g.dtype)
        return call.value(invoke(name, g, y, *given))

    return Native(name, rule)


BACKWARD: dict[str, Native] = {
    "avg_pool_gradient": Native(
        "torch.ops.aten.avg_pool2d_backward, torch.ops.aten.avg_pool3d_backward", _avg_pool
    ),
    "conv_weight_gradient": Native("torch.nn.grad.conv{1,2,3}d_weight", _weights),
    "conv_input_gradient": Native("torch.nn.grad.conv{1,2,3}d_input", _input),
    "max_pool_indices_gradient": Native(
        "torch.ops.aten.max_pool{2,3}d_with_indices_backward", _indices, ("g",)
    ),
    "pad_gradient": Native(
        "torch.ops.aten.reflection_pad{1,2,3}d_backward, replication_pad{1,2,3}d_backward", _pad
    ),
    "batch_norm_gradient": Native("torch.ops.aten.native_batch_norm_backward", _batch_norm),
    "resize_nearest_gradient": Native(
        "torch.ops.aten.upsample_nearest{1,2,3}d_backward", _nearest, ("g",)
    ),
    "resize_linear_gradient": Native(
        "torch.ops.aten.upsample_linear1d_backward, bilinear2d, trilinear3d", _linear, ("g", "x")
    ),
    "tanh_gradient": _element("tanh_backward", other="y"),
    "sigmoid_gradient": _element("sigmoid_backward", other="y"),
    "relu_gradient": _element("threshold_backward", 0),
    "hard_tanh_gradient": _element("hardtanh_backward", "low", "high"),
    "leaky_relu_gradient": _element("leaky_relu_backward", "alpha", False),
    "elu_gradient": Native("torch.ops.aten.elu_backward", _elu),
    "selu_gradient": Native("torch.ops.aten.elu_backward", _elu),
    "softplus_gradient": Native("torch.ops.aten.softplus_backward", _softplus),
    "softmax_gradient": _softmax("_softmax_backward_data"),
    "log_softmax_gradient": _softmax("_log_softmax_backward_data"),
}
