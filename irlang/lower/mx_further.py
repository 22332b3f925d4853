"""MXNet's further words: boxes, laws of numbers, packed attention and sequences, and functions of
`mx.nd` and `mx.np` by which other operators are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.keras_call import quoted
from irlang.lower.mx_arrays import WIDE, called, row
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Mx = Call[MxBuilder]


def _plain(function: str, **attributes: str) -> Native:
    """Of the inputs in their order, all with elements, with attributes under MXNet's names."""

    def rule(call: Mx) -> Value | None:
        values = [call.input(name) for name in call.values]
        if any(not v.rank or v.dtype != values[0].dtype for v in values) or not call.out.shape:
            return None
        options = {key: call[name] for key, name in attributes.items()}
        return call.value(called(function, *values, **options))

    return row(function, rule)


def _density(name: str, *parameters: str) -> Native:
    def rule(call: Mx) -> Value | None:
        values = [call.input(key) for key in ("x", *parameters)]
        if values[0].rank != 2 or not all(value.rank and all(value.shape) for value in values):
            return None
        return call.value(called(f"random_pdf_{name}", *values, is_log=call["logarithm"]))

    return row(f"random_pdf_{name}", rule)


# ---- boxes


def _overlaps(call: Mx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    form = quoted("center" if call["center"] else "corner")
    return call.value(called("contrib.box_iou", a, b, format=form))


def _decoded(call: Mx) -> Value | None:
    """Of boxes that are the same for all samples."""
    x, anchors = call.input("x"), call.input("anchors")
    if anchors.rank != 2 or x.dtype != "f32":  # in which deviations are kept
        return None
    one = call.build.reshape(anchors, (1, *anchors.shape))
    deviations = {f"std{n}": float(value) for n, value in enumerate(call["deviations"])}
    form = quoted("center" if call["center"] else "corner")
    return call.value(called("contrib.box_decode", x, one, **deviations, format=form))


def _priors(call: Mx, function: str) -> Value | None:
    if call.out.dtype != "f32":
        return None
    image = f"mx.np.zeros((1, 1, {call['rows']}, {call['columns']}))"
    options = {name: tuple(map(float, call[name])) for name in ("sizes", "ratios")}
    text = (
        invoke(function, image, **options)
        if function.startswith("mx.npx")
        else called(function.removeprefix("mx.nd."), image, **options)
    )
    return call.build.reshape(Value(text, (1, *call.out.shape), "f32"), call.out.shape)


def _prior(function: str) -> Native:
    return Native(function, lambda call: _priors(call, function))


def _correlation(call: Mx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank != 4 or b.rank != 4 or a.dtype != "f32":
        return None
    options = {
        "kernel_size": call["window"], "max_displacement": call["reach"],
        "stride1": call["stride"], "stride2": call["step"], "pad_size": call["pad"],
        "is_multiply": call["multiply"],
    }  # fmt: skip
    return call.value(called("Correlation", a, b, **options))


# ---- sequences and matrices


def _lengths(call: Mx) -> Value:
    """Lengths, which are of the type of the sequences."""
    return call.build.cast(call.input("lengths"), call.input("x").dtype)


def _last(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank < 2:
        return None
    return call.value(called("SequenceLast", x, _lengths(call), use_sequence_length=True))


def _filled(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank < 2:
        return None
    options = {"use_sequence_length": True, "value": float(call["value"])}
    return call.value(called("SequenceMask", x, _lengths(call), **options))


def _filled_anew(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank < 2 or x.dtype not in WIDE:
        return None
    options = {"use_sequence_length": True, "value": float(call["value"])}
    return call.value(invoke("mx.npx.sequence_mask", x, _lengths(call), **options))


def _triangular(call: Mx) -> Value | None:
    a, b = call.input("t"), call.input("b")
    if a.rank < 2 or a.shape[:-2] != b.shape[:-2] or 0 in (*a.shape, *b.shape):
        return None
    options = {
        "lower": call["lower"], "transpose": call["transpose"], "rightside": call["right"],
        "alpha": float(call["alpha"]),
    }  # fmt: skip
    return call.value(called("linalg_trmm", a, b, **options))


def _diagonal_sum(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank < 2 or 0 in x.shape:
        return None
    text = called("linalg_sumlogdiag", x)
    found = Value(text, (1,) if x.rank == 2 else call.out.shape, x.dtype)
    return call.build.reshape(found, ()) if x.rank == 2 else found


def _ravel(call: Mx) -> Value | None:
    ids, shape = call.input("ids"), tuple(call["shape"])
    if ids.dtype not in ("i32", "i64") or not shape or ids.rank != 2:
        return None
    return call.value(called("ravel_multi_index", ids, shape=shape))


# ---- other ways to ask


def _like(function: str, module: str = "mx.nd") -> Native:
    """As another tensor is."""

    def rule(call: Mx) -> Value | None:
        x, shape = call.input("x"), tuple(call.out.shape)
        if not x.rank or 0 in (*x.shape, *shape) or not shape or call.node.instance.faults:
            return None
        if function == "broadcast_like" and len(shape) != x.rank:
            return None
        other = f"mx.np.zeros({shape})"
        if module == "mx.npx":
            return call.value(invoke(f"{module}.{function}", x, other))
        return call.value(called(function, x, other))

    name = f"{module}.{function}"
    return Native(name, lambda call: rule(call) if call.out.dtype in WIDE else None)


def _first(call: Mx) -> Value | None:
    """The first elements along all axes, as many as of another tensor."""
    x, shape = call.input("x"), tuple(call.out.shape)
    if any(call["before"]) or not x.rank or 0 in (*x.shape, *shape):
        return None
    return call.value(called("slice_like", x, f"mx.np.zeros({shape})"))


def _window(call: Mx) -> Value | None:
    """Of images, whose channels come second."""
    x, before, after = call.input("x"), tuple(call["before"]), tuple(call["after"])
    if (
        x.rank != 4
        or x.dtype != "f32"
        or any((*before[:2], *after[:2]))
        or 0 in (*x.shape, *call.out.shape)
    ):
        return None
    options = {"num_args": 1, "offset": before[2:], "h_w": tuple(call.out.shape[2:])}
    return call.value(called("Crop", x, **options))


def _channel(call: Mx) -> Value | None:
    x = call.input("x")
    plain = x.rank == 2 and call.axis("axis", 2) == 1 and not call["keepdims"]
    if not plain or call["select_last"] or 0 in x.shape or x.dtype not in WIDE:
        return None
    found = Value(called("argmax_channel", x), call.out.shape, x.dtype)
    return call.build.cast(found, call.out.dtype)


def _squares(call: Mx) -> Value | None:
    """Of a whole tensor."""
    x = call.input("x")
    whole = x.rank and set(call.axes("axes", x.rank)) == set(range(x.rank))
    if not whole or call["keepdims"] or 0 in x.shape or x.dtype != "f32":
        return None
    found = Value(called("multi_sum_sq", x, num_arrays=1), (1,), x.dtype)
    return call.build.reshape(found, ())


def _entropy(call: Mx) -> Value | None:
    x = call.input("logits")
    plain = x.rank == 2 and call.axis("axis", 2) == 1 and call["reduction"] == "sum"
    if not plain or call["label_smoothing"] or call.has("weight") or call["ignore_index"]:
        return None
    if 0 in x.shape:
        return None
    labels = call.build.cast(call.input("labels"), x.dtype)
    found = Value(called("softmax_cross_entropy", x, labels), (1,), x.dtype)
    return call.build.reshape(found, ())


def _output(function: str) -> Native:
    """What layers that end a network give, which have a slope of their own."""

    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if x.rank != 2 or 0 in x.shape:
            return None
        if function == "SoftmaxOutput" and call.axis("axis", 2) != 1:
            return None
        flat = function in ("SoftmaxOutput", "SVMOutput")
        shape, dtype = x.shape[:1] if flat else x.shape, call.build.dtype(x.dtype)
        labels = f"mx.np.zeros({shape}, dtype={dtype})"
        return call.value(called(function, x, labels))

    return row(function, rule, constant=("x",))


def _scaled(call: Mx) -> Value | None:
    x = call.input("x")
    return call.value(called("contrib.gradientmultiplier", x, scalar=1.0)) if x.rank else None


def _sign(call: Mx) -> Value | None:
    x = call.input("x")
    return call.value(called("contrib.sign_ste", x)) if x.rank else None


def _flipped(call: Mx) -> Value | None:
    """Of one image, whose channels come last."""
    x = call.input("x")
    if x.rank != 3 or 0 in x.shape or x.shape[2] not in (1, 3):
        return None
    names: dict[tuple[int, ...], str] = {(0,): "flip_top_bottom", (1,): "flip_left_right"}
    name = names.get(call.axes("axes", 3))
    return call.value(called(f"image.{name}", x)) if name else None


def _split(name: str, axis: int) -> Native:
    """Of parts that are alike."""

    def rule(call: Mx) -> list[Value] | None:
        x = call.input("x")
        shapes = {info.shape for info in call.outputs}
        if not x.rank or call.axis("axis", x.rank) != axis or len(shapes) != 1 or 0 in x.shape:
            return None
        if x.rank < 2 or len(call.outputs) < 2:
            return None
        names = call.build.several(invoke(name, x, len(call.outputs)), *call.node.outputs)
        return [call.value(found, n) for n, found in enumerate(names)]

    return Native(name, rule)


def _interleaved(function: str) -> Callable[[Mx], Value | None]:
    def rule(call: Mx) -> Value | None:
        values: list[Any] = [call.input(name) for name in call.values]
        if values[0].rank != 3 or any(v.dtype != "f32" for v in values):
            return None
        return call.value(called(function, *values, heads=call["heads"]))

    return rule


_SCORES = "contrib.interleaved_matmul_selfatt_qk"
_VALUES = "contrib.interleaved_matmul_selfatt_valatt"
FURTHER: dict[str, Native | tuple[Native, ...]] = {
    "normal_density": _density("normal", "mean", "deviation"),
    "uniform_density": _density("uniform", "low", "high"),
    "exponential_density": _density("exponential", "rate"),
    "gamma_density": _density("gamma", "shape", "rate"),
    "poisson_density": _density("poisson", "rate"),
    "box_iou": row("contrib.box_iou", _overlaps, constant=("a", "b")),
    "box_decode": row("contrib.box_decode", _decoded, constant=("x", "anchors")),
    "box_priors": (_prior("mx.nd.contrib.MultiBoxPrior"), _prior("mx.npx.multibox_prior")),
    "correlation": row("Correlation", _correlation),
    "packed_scores": row(_SCORES, _interleaved(_SCORES)),
    "packed_values": row(_VALUES, _interleaved(_VALUES)),
    "sequence_last": row("SequenceLast", _last),
    "sequence_fill": (
        row("SequenceMask", _filled),
        Native("mx.npx.sequence_mask", _filled_anew),
    ),
    "triangular_matmul": row("linalg_trmm", _triangular),
    "sum_log_diagonal": row("linalg_sumlogdiag", _diagonal_sum),
    "ravel_index": Native("mx.nd.ravel_multi_index", _ravel),
    "rcbrt": _plain("rcbrt"),
    "softmin": _plain("softmin", axis="axis"),
    "reshape": (_like("reshape_like"), _like("reshape_like", "mx.npx")),
    "broadcast_to": _like("broadcast_like"),
    "crop": (row("slice_like", _first), row("Crop", _window)),
    "argmax": Native("mx.nd.argmax_channel", _channel),
    "reduce_sum_square": row("multi_sum_sq", _squares, constant=("x",)),
    "cross_entropy": row("softmax_cross_entropy", _entropy),
    "softmax": _output("SoftmaxOutput"),
    "sigmoid": _output("LogisticRegressionOutput"),
    "identity": (
        _output("LinearRegressionOutput"),
        _output("MAERegressionOutput"),
        _output("SVMOutput"),
        row("contrib.gradientmultiplier", _scaled),
    ),
    "sign": row("contrib.sign_ste", _sign, constant=("x",)),
    "reverse": Native("mx.nd.image.flip_left_right, mx.nd.image.flip_top_bottom", _flipped),
    "split": (_split("mx.np.vsplit", 0), _split("mx.np.hsplit", 1)),
}
