"""How TensorFlow spells what flows back through windows and images: kernels of gradients, called by
themselves. Channels are last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any

from irlang.lower.call import Call, Native, Rule
from irlang.lower.channels import channels_last
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_images import first
from irlang.lower.tf_words import raw
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")
_DEPTH = {2: "", 3: "3D"}  # by spatial axes, as kernels of windows have it in their names


def kernel(
    name: str,
    rule: Callable[[Tf, str], Any],
    constant: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
) -> Native:
    """A row for a kernel by its name, which the rule is told as it is called. others: further
    kernels, which are called alike.
    """
    own, *more = (raw(one, rule, constant=constant) for one in (name, *others))
    return replace(own, others=tuple(more))


def _kernel(names: str, rule: Rule, constant: tuple[str, ...] = ()) -> Native:
    """A row for kernels, where there are all."""
    return Native(names, lambda call: rule(call) if call.build.raw else None, constant)


def _windows(call: Tf) -> dict[str, Any]:
    """The window, the stride and the padding, as kernels are given them."""
    return {
        "ksize": str([1, *call["window"], 1]),
        "strides": str([1, *call["stride"], 1]),
        "padding": f'"{call["pad"].upper()}"',
    }


def _avg_pool(call: Tf) -> Value | None:
    g = call.input("g")
    if g.rank - 2 not in _DEPTH or g.dtype not in _WIDE:
        return None
    function = f"tf.raw_ops.AvgPool{_DEPTH[g.rank - 2]}Grad"
    shape = str([g.shape[0], *call["size"], g.shape[1]])
    inner = channels_last(call, g)
    return first(call, invoke(function, orig_input_shape=shape, grad=inner, **_windows(call)))


def _max_pool(suffix: str) -> Native:
    def rule(call: Tf) -> Value | None:
        """The kernel is handed the maxima, too."""
        x, rank = call.input("x"), call.input("x").rank - 2
        if rank not in _DEPTH or x.dtype != "f32":
            return None
        inner = call.build.let(channels_last(call, x), "inner")
        sizes = tuple(call["window"]), tuple(call["stride"]), f'"{call["pad"].upper()}"'
        given = {
            "orig_input": inner,
            "orig_output": invoke(f"tf.nn.max_pool{rank}d", inner, *sizes),
            "grad": channels_last(call, call.input("g")),
        }
        return first(
            call, invoke(f"tf.raw_ops.MaxPool{_DEPTH[rank]}{suffix}", **given, **_windows(call))
        )

    return _kernel(f"tf.raw_ops.MaxPool{suffix}, tf.raw_ops.MaxPool3D{suffix}", rule, ("x",))


def _fractional(call: Tf) -> Value | None:
    g = call.input("g")
    if g.dtype not in _WIDE:
        return None
    given = {
        "orig_input_tensor_shape": str([g.shape[0], *call.out.shape[2:], g.shape[1]]),
        "out_backprop": channels_last(call, g),
        "row_pooling_sequence": str([0, *accumulate(call["rows"])]),
        "col_pooling_sequence": str([0, *accumulate(call["columns"])]),
        "overlapping": call["overlapping"] or None,
    }
    return first(call, invoke("tf.raw_ops.FractionalAvgPoolGrad", **given))


COORDINATES: dict[str, dict[str, bool]] = {
    "half_pixel": {"half_pixel_centers": True},
    "asymmetric": {},
    "align_corners": {"align_corners": True},
}


def _resize(call: Tf) -> Value | None:
    g, x = call.input("g"), call.input("x")
    if g.dtype != "f32" or g.rank != 4 or x.rank != 4:
        return None
    inner = [channels_last(call, value) for value in (g, x)]
    options = COORDINATES[call["coord"]]
    text = invoke(
        "tf.raw_ops.ResizeBilinearGrad", grads=inner[0], original_image=inner[1], **options
    )
    return first(call, text)


_WEIGHTS = {
    2: "tf.compat.v1.nn.conv2d_backprop_filter",
    3: "tf.compat.v1.nn.conv3d_backprop_filter_v2",
}


def _weights(call: Tf) -> Value | None:
    """Weights have their own channels and the filters last. One group takes all channels, and on a
    processor no window is spread.
    """
    x, g = call.input("x"), call.input("g")
    rank = x.rank - 2
    plain = call["groups"] == 1 and set(call["dilation"]) == {1}
    if rank not in _DEPTH or x.dtype != "f32" or not plain:
        return None
    filters, channels, *sizes = call.out.shape
    text = invoke(
        _WEIGHTS[rank],
        channels_last(call, x),
        str([*sizes, channels, filters]),
        channels_last(call, g),
        str([1, *call["stride"], 1]),
        f'"{call["pad"].upper()}"',
    )
    order = (rank + 1, rank, *range(rank))
    return call.build.transpose(Value(text, (*sizes, channels, filters), x.dtype), order)


BACKWARD: dict[str, Native] = {
    "avg_pool_gradient": _kernel("tf.raw_ops.AvgPoolGrad, tf.raw_ops.AvgPool3DGrad", _avg_pool),
    "max_pool_gradient": _max_pool("Grad"),
    "max_pool_tangent": _max_pool("GradGrad"),
    "fractional_avg_pool_gradient": _kernel("tf.raw_ops.FractionalAvgPoolGrad", _fractional),
    "resize_linear_gradient": _kernel("tf.raw_ops.ResizeBilinearGrad", _resize, ("g", "x")),
    "conv_weight_gradient": Native(", ".join(_WEIGHTS.values()), _weights),
}
