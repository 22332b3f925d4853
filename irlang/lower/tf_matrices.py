"""How TensorFlow spells products, systems of equations, and windows that are no sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.numpy_words import matrix_norm, norm, saturating
from irlang.lower.spelling import invoke, named, of_wide, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")


def _log_determinant(call: Tf) -> list[Value]:
    return named(call, invoke("tf.linalg.slogdet", call.input("x")))


def _tensordot(call: Tf) -> Value:
    a, b = call.input("a"), call.input("b")
    axes = [list(call.axes_said("a_axes", a.rank)), list(call.axes_said("b_axes", b.rank))]
    return call.value(invoke("tf.tensordot", a, b, axes=str(axes)))


def _band(call: Tf) -> Value:
    """It takes no number of diagonals that is more than there are."""
    rows, columns = call.out.shape[-2:]
    bounds = min(call["lower"], rows), min(call["upper"], columns)
    return call.value(invoke("tf.linalg.band_part", call.input("x"), *bounds))


def _morphology(function: str) -> Native:
    """Of images, channels last."""

    def rule(call: Tf) -> Value | None:
        x, w = call.input("x"), call.input("w")
        if x.rank != 4:
            return None
        inner = channels_last(call, x)
        filters = call.build.transpose(w, (1, 2, 0))
        options = {
            "strides": str([1, *call["stride"], 1]),
            "padding": f'"{call["pad"].upper()}"',
            "data_format": '"NHWC"',
            "dilations": str([1, *call["dilation"], 1]),
        }
        n, c, *space = call.out.shape
        text = invoke(function, inner, filters, **options)
        return channels_first(call, Value(text, (n, *space, c), x.dtype))

    return Native(function, rule)


def _patches(call: Tf) -> Value | None:
    """Of images, the channels of an element together; what is around them is made part of them."""
    x = call.input("x")
    if x.rank != 4 or x.dtype not in _WIDE:
        return None
    (n, c), window = x.shape[:2], tuple(call["window"])
    before, after = ((0, 0, *call[name]) for name in ("before", "after"))
    padded = call.build.pad(x, before, after, 0.0) if any(before) or any(after) else x
    options = {
        name: str([1, *given, 1])
        for name, given in (
            ("sizes", window),
            ("strides", call["stride"]),
            ("rates", call["dilation"]),
        )
    }
    text = invoke(
        "tf.image.extract_patches", channels_last(call, padded), padding='"VALID"', **options
    )
    count, elements = call.out.shape[2], window[0] * window[1]
    flat = call.build.reshape(
        Value(text, (n, *call["O"], elements * c), x.dtype), (n, count, elements, c)
    )
    turned = call.build.transpose(flat, (0, 3, 2, 1))
    return call.build.reshape(turned, call.out.shape)


def _norm(call: Tf) -> Value | None:
    """Along one axis."""
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    if len(axes) != 1 or x.dtype not in _WIDE:
        return None
    options = {"ord": 1, "axis": axes[0], "keepdims": call["keepdims"] or None}
    return call.value(invoke("tf.norm", x, **options))


_OWN = ("f32", "f64")  # what images are in that are computed in their own type


def _of_images(
    function: str, least: int = 1, types: tuple[str, ...] = ("f32",), **attributes: str
) -> Native:
    """Functions of images; least: the axes that they ask for; types: those that they compute in."""
    row = plain(function, **attributes)

    def rule(call: Tf) -> Value | Sequence[Value] | None:
        narrow = next(iter(call.values.values())).rank < least
        return None if narrow or call.out.dtype not in types else row.rule(call)

    return Native(function, rule)


def _without_derivative(row: Native) -> Native:
    """Operators that TensorFlow has no gradient of."""
    return replace(row, constant=("x",))


def _tridiagonal(call: Tf) -> Value:
    """Of three diagonals one by one."""
    rows = ", ".join(f"{call.text('diagonals')}[..., {row}, :]" for row in range(3))
    options = {"diagonals_format": '"sequence"'}
    return call.value(
        invoke("tf.linalg.tridiagonal_solve", f"({rows})", call.input("b"), **options)
    )


def _changes(call: Tf) -> list[Value] | None:
    """It takes no image without elements."""
    x = call.input("x")
    return None if 0 in x.shape else named(call, invoke("tf.image.image_gradients", x))


def _likeness(call: Tf) -> Value | None:
    """It computes in f32."""
    if call.out.dtype != "f32" or 0 in call.input("a").shape:
        return None
    options = {
        "max_val": float(call["max_value"]),
        "filter_size": call["size"],
        "filter_sigma": float(call["sigma"]),
        **{name: float(call[name]) for name in ("k1", "k2")},
    }
    return call.value(invoke("tf.image.ssim", call.input("a"), call.input("b"), **options))


def _standard(call: Tf) -> Value | Sequence[Value] | None:
    """It takes no image without elements."""
    empty = 0 in call.input("x").shape[1:]
    return None if empty else _of_images("tf.image.per_image_standardization").rule(call)


MATRICES: dict[str, Native] = {
    "solve": of_wide(plain("tf.linalg.solve")),
    "log_determinant": of_wide(Native("tf.linalg.slogdet", _log_determinant)),
    "band_part": Native("tf.linalg.band_part", _band),
    "tensordot": Native("tf.tensordot", _tensordot),
    "grey_dilation": _morphology("tf.nn.dilation2d"),
    "grey_erosion": _morphology("tf.nn.erosion2d"),
    "im2col": Native("tf.image.extract_patches", _patches),
    "reduce_l1": Native("tf.norm", _norm),
    "reduce_lp": of_wide(norm("tf.norm", positive=True)),
    "matrix_norm": of_wide(
        matrix_norm("tf.norm", axis=True, orders=("frobenius", "columns", "rows"))
    ),
    "tridiagonal_solve": replace(
        of_wide(plain("tf.linalg.tridiagonal_solve")),
        others=(of_wide(Native("tf.linalg.tridiagonal_solve", _tridiagonal)),),
    ),
    "banded_triangular_solve": of_wide(plain("tf.linalg.banded_triangular_solve", lower="lower")),
    "tridiagonal_matmul": of_wide(plain("tf.linalg.tridiagonal_matmul")),
    "saturate_cast": saturating("tf.saturate_cast"),
    "set_diagonal": plain("tf.linalg.set_diag", k="offset"),
    "psnr": _of_images("tf.image.psnr", max_val="max_value"),
    "total_variation": _of_images("tf.image.total_variation", types=_OWN),
    "image_standardization": Native("tf.image.per_image_standardization", _standard),
    "sobel_edges": _of_images("tf.image.sobel_edges", types=_OWN),
    "rgb_to_grayscale": _of_images("tf.image.rgb_to_grayscale"),
    **{
        name: plain(f"tf.image.{name}")
        for name in ("rgb_to_yuv", "yuv_to_rgb", "rgb_to_yiq", "yiq_to_rgb")
    },
    "adjust_gamma": _of_images("tf.image.adjust_gamma", gamma="gamma", gain="gain"),
    "image_gradients": Native("tf.image.image_gradients", _changes),
    "ssim": Native("tf.image.ssim", _likeness),
    "rgb_to_hsv": _of_images("tf.image.rgb_to_hsv", types=_OWN),
    "hsv_to_rgb": _without_derivative(_of_images("tf.image.hsv_to_rgb", types=_OWN)),
    "adjust_saturation": _without_derivative(
        _of_images("tf.image.adjust_saturation", 3, saturation_factor="factor")
    ),
    "adjust_hue": _without_derivative(_of_images("tf.image.adjust_hue", 3, delta="delta")),
    "adjust_contrast": _of_images("tf.image.adjust_contrast", contrast_factor="factor"),
    "crelu": plain("tf.nn.crelu", axis="axis"),
    "l2_loss": plain("tf.nn.l2_loss"),
}
