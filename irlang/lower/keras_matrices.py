"""How Keras 3 spells products, systems of equations and distances: `keras.ops`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.keras_call import KERAS_3, Keras
from irlang.lower.legalise import spatial
from irlang.lower.numpy_words import inner, matrix_norm, norm
from irlang.lower.spelling import invoke, named, plain, turned
from irlang.lower.value import Value

_WIDE = ("f32", "f64")


def _log_determinant(call: Keras) -> list[Value] | None:
    if call.out.dtype not in _WIDE:
        return None
    return named(call, invoke("ops.slogdet", call.input("x")))


def _solve(call: Keras) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    return call.value(invoke("ops.solve", call.input("a"), call.input("b")))


def _vander(call: Keras) -> Value | None:
    if call.out.kind == "int":
        return None
    options = {"N": call["columns"], "increasing": call["increasing"]}
    return call.value(invoke("ops.vander", call.input("x"), **options))


def _cdist(call: Keras) -> Value | None:
    if call["p"] != 2:
        return None
    return call.value(invoke("ops.cdist", call.input("a"), call.input("b")))


def _tensordot(call: Keras) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if call.out.kind == "int":
        return None
    axes = [list(call.axes_said("a_axes", a.rank)), list(call.axes_said("b_axes", b.rank))]
    return call.value(invoke("ops.tensordot", a, b, axes=str(axes)))


def _kron(call: Keras) -> Value | None:
    if call.out.kind == "int":
        return None
    return call.value(invoke("ops.kron", call.input("a"), call.input("b")))


def _columns(function: str, *sizes: str) -> Native:
    """Windows of images as columns, and back: two axes, padded alike at both ends."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        around = tuple(call["before"]), tuple(call["after"])
        if len(around[0]) != 2 or around[0] != around[1]:
            return None
        if call.out.kind != "real" or x.dtype not in _WIDE:
            return None
        options = {name: tuple(call[name]) for name in ("dilation", "stride")}
        given = [tuple(call[name]) for name in sizes]
        return call.value(invoke(function, x, *given, padding=around[0], **options))

    return Native(function, rule, since=KERAS_3)


def _blocks(function: str) -> Native:
    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        if call["mode"] != "dcr" or call["block_size"] < 2 or x.dtype not in _WIDE:
            return None
        n, c, *space = call.out.shape
        text = invoke(function, channels_last(call, x), call["block_size"])
        return channels_first(call, Value(text, (n, *space, c), x.dtype))

    return Native(function, rule, since=KERAS_3)


def _norm(order: int) -> Native:
    """Along one axis."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if len(axes) != 1 or call.out.kind == "int":
            return None
        options = {"ord": order, "axis": axes[0], "keepdims": call["keepdims"] or None}
        return call.value(invoke("ops.norm", x, **options))

    return Native("ops.norm", rule, since=KERAS_3)


_METHODS = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}


def _resize(call: Keras) -> Value | None:
    """Images; half a pixel lies around every element. What lies outside has no weight where it
    antialiases, and in cubic ones, whose coefficient is that of JAX; TensorFlow has their weights
    from a table.
    """
    x, mode, antialias = call.input("x"), call["mode"], call["antialias"]
    if x.rank != 4 or x.dtype != "f32" or not spatial(call, x) or call["coord"] != "half_pixel":
        return None
    if mode == "nearest" and (antialias or call["rounding"] != "round_prefer_ceil"):
        return None
    table = call.build.backend == "tensorflow" and not antialias
    if mode == "cubic" and (call["cubic_coeff"] != -0.5 or table):
        return None
    if mode != "nearest" and call["exclude_outside"] != (antialias or mode == "cubic"):
        return None
    n, c, *space = call.out.shape
    options = {
        "interpolation": f'"{_METHODS[mode]}"', "antialias": antialias or None,
        "data_format": '"channels_last"',
    }  # fmt: skip
    text = invoke("ops.image.resize", channels_last(call, x), tuple(space), **options)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


_BETWEEN = {"linear": "bilinear", "nearest": "nearest"}
_FIRST = '"channels_first"'


def _affine(call: Keras) -> Value | None:
    x, moved = call.input("x"), call.input("transform")
    if x.dtype not in _WIDE:
        return None
    options = {
        "interpolation": f'"{_BETWEEN[call["interpolation"]]}"', "fill_mode": f'"{call["mode"]}"',
        "fill_value": float(call["value"]), "data_format": _FIRST,
    }  # fmt: skip
    whole = f"ops.pad({moved.text}, ((0, 0), (0, 2)))"  # no perspective
    return call.value(invoke("ops.image.affine_transform", x, whole, **options))


def _blurred(call: Keras) -> Value | None:
    x = call.input("x")
    if x.dtype not in _WIDE:
        return None
    sizes = tuple(call["window"]), tuple(map(float, call["sigma"]))
    return call.value(invoke("ops.image.gaussian_blur", x, *sizes, data_format=_FIRST))


def _psnr(call: Keras) -> Value | None:
    """Over all axes."""
    a, b = call.input("a"), call.input("b")
    if a.rank != 3 or a.dtype not in _WIDE:
        return None
    return call.value(invoke("ops.psnr", a, b, max_val=float(call["max_value"])))


def _of_images(function: str) -> Native:
    """Of one image, or a batch of them."""
    row = plain(function)

    def rule(call: Keras) -> Value | Sequence[Value] | None:
        x = call.input("x")
        return row.rule(call) if x.rank in (3, 4) and x.dtype in _WIDE else None

    return Native(function, rule, since=KERAS_3)


MATRICES: dict[str, Native] = {
    "log_determinant": Native("ops.slogdet", _log_determinant, since=KERAS_3),
    "solve": Native("ops.solve", _solve, since=KERAS_3),
    "vander": Native("ops.vander", _vander, since=KERAS_3),
    "cdist": Native("ops.cdist", _cdist, since=KERAS_3),
    "tensordot": Native("ops.tensordot", _tensordot, since=KERAS_3),
    "kron": Native("ops.kron", _kron, since=KERAS_3),
    "im2col": _columns("ops.unfold", "window"),
    "col2im": _columns("ops.fold", "size", "window"),
    "depth_to_space": _blocks("ops.depth_to_space"),
    "space_to_depth": _blocks("ops.space_to_depth"),
    "reduce_l1": _norm(1),
    "reduce_l2": _norm(2),
    "reduce_lp": norm("ops.norm", KERAS_3),
    "affine_transform": Native(
        "ops.image.affine_transform", _affine, constant=("transform",), since=KERAS_3
    ),
    "gaussian_blur": Native("ops.image.gaussian_blur", _blurred, since=(3, 15)),
    "matrix_norm": matrix_norm("ops.norm", KERAS_3, axis=True),
    "inner": inner("ops.inner", KERAS_3),
    "resize": Native("ops.image.resize", _resize, since=KERAS_3),
    "rgb_to_grayscale": _of_images("ops.image.rgb_to_grayscale"),
    "rgb_to_hsv": _of_images("ops.image.rgb_to_hsv"),
    # TensorFlow has no derivative of it, so that Keras has none there.
    "hsv_to_rgb": replace(_of_images("ops.image.hsv_to_rgb"), constant=("x",)),
    "psnr": Native("ops.psnr", _psnr, since=KERAS_3),
    "rot90": replace(turned("ops.rot90"), since=KERAS_3),
}
