"""What MXNet has for its arrays of the older kind, `mx.nd`: they stand for the same memory as those
of `mx.np`, and are differentiated with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irlang.lower.call import Call, Native, Rule
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.selections import MX
from irlang.lower.spelling import functions, invoke
from irlang.lower.value import Value

Mx = Call[MxBuilder]
WIDE = ("f32", "f64")  # which all of them have


def old(value: Value | str) -> str:
    """An array of `mx.np` as one of `mx.nd`."""
    return f"{value if isinstance(value, str) else value.text}.as_nd_ndarray()"


def of_old(function: str, *values: Value | str, **options: Any) -> str:
    """A function of such arrays, before it is turned into another."""
    return invoke(f"mx.nd.{function}", *map(old, values), **options)


def called(function: str, *values: Value | str, **options: Any) -> str:
    """A function of such arrays, as an array of `mx.np`."""
    return f"{of_old(function, *values, **options)}.as_np_ndarray()"


def row(function: str, rule: Rule, eager: bool = False, constant: tuple[str, ...] = ()) -> Native:
    """A row for the types that all these functions have."""

    def only(call: Mx) -> Value | Sequence[Value] | None:
        return rule(call) if call.out.dtype in WIDE else None

    return Native(f"mx.nd.{function}", only, constant, eager)


def plain(function: str, **attributes: str) -> Native:
    """Of the inputs in their order, with attributes under MXNet's names."""

    def rule(call: Mx) -> Value:
        options = {key: call[name] for key, name in attributes.items()}
        values = [call.input(name) for name in call.values]
        return call.value(called(function, *values, **options))

    return row(function, rule)


def _truth(function: str) -> Native:
    """Numbers that say which elements it is true of."""

    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        half = "negative" in call.node.attrs or "positive" in call.node.attrs
        if x.dtype not in WIDE or half:
            return None
        return call.value(f"{called(function, x)} != 0")

    return Native(f"mx.nd.{function}", rule)


def reduction(function: str, single: bool = False, **options: Any) -> Native:
    """Over the axes; of all of them MXNet keeps one. single: whether of one axis alone."""

    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes or 0 in x.shape or (single and len(axes) > 1):
            return None
        said = axes[0] if single else tuple(axes)
        keep = call["keepdims"] or None
        found = call.value(called(function, x, axis=said, keepdims=keep, **options))
        whole = len(axes) == x.rank and not keep
        return call.build.reshape(replace(found, shape=(1,)), ()) if whole else found

    return row(function, rule)


def _gemm(call: Mx) -> Value | None:
    """What is added has the shape of the result."""
    a, b = call.input("a"), call.input("b")
    options = {name: call[name] for name in ("transpose_a", "transpose_b", "alpha")}
    if 0 in (*a.shape, *b.shape):
        return None
    if not call.has("c"):
        return call.value(called("linalg_gemm2", a, b, **options))
    c = call.build.expand(call.input("c"), call.out.shape)
    return call.value(called("linalg_gemm", a, b, c, beta=call["beta"], **options))


def _diagonal(call: Mx) -> Value | None:
    x, (first, second) = call.input("x"), call.axes_said("axes", call.input("x").rank)
    if not call.out.shape[-1]:
        return None
    options = {"k": call["offset"], "axis1": first, "axis2": second}
    return call.value(called("diag", x, **options))


def _diagonals(call: Mx) -> Value | None:
    x = call.input("x")
    if call.axes("axes", x.rank + 1) != (x.rank - 1, x.rank) or 0 in x.shape:
        return None
    return call.value(called("linalg_makediag", x, offset=call["offset"]))


def _sort(call: Mx) -> list[Value] | None:
    x, places = call.input("x"), call.outputs[1]
    if call["nans"] == "largest" or call["stable"] or not x.rank:
        return None
    options: dict[str, Any] = {"is_ascend": not call["descending"]}
    if call.says("axis"):
        options["axis"] = call.axis_said("axis", x.rank)
    found = called("argsort", x, dtype='"int64"', **options)
    return [
        call.value(called("sort", x, **options)),
        call.build.cast(Value(found, places.shape, "i64"), places.dtype),
    ]


def _scales(call: Mx, count: int) -> list[str]:
    """A factor and a bias for each of so many, as they are given or of no matter."""
    dtype = call.build.dtype(call.out.dtype)
    return [
        call.text(name, f"mx.np.{made}(({count},), dtype={dtype})")
        for name, made in (("gamma", "ones"), ("beta", "zeros"))
    ]


def _group_norm(call: Mx) -> Value | None:
    """A factor is one of a group, not of a channel; a number that is no number of groups is handed
    over as it is, whatever the factors are.
    """
    x, groups = call.input("x"), call["groups"]
    given = call.has("gamma") or call.has("beta")
    if call.axis("axis", x.rank) != 1 or x.rank < 3 or (given and 1 <= groups != x.shape[1]):
        return None
    scales = _scales(call, max(groups, 0))
    return call.value(called("GroupNorm", x, *scales, num_groups=groups, eps=call["eps"]))


def _l2_normalize(call: Mx) -> Value | None:
    """Along the axes that a mode has; its epsilon is added, so that it must be 0."""
    x = call.input("x")
    axes = tuple(sorted(call.axes("axes", x.rank)))
    modes = {
        tuple(range(2, x.rank)): "spatial",
        (1,): "channel",
        tuple(range(1, x.rank)): "instance",
    }
    if axes not in modes or call["eps"] != 0 or x.rank < 3:
        return None
    return call.value(called("L2Normalization", x, eps=0.0, mode=f'"{modes[axes]}"'))


def _resize(call: Mx) -> Value | None:
    """From corner to corner."""
    x = call.input("x")
    fits = call["mode"] == "linear" and call["coord"] == "align_corners" and not call["antialias"]
    fits = fits and not call.says("scale")  # by which corners may be others
    if x.rank != 4 or not fits or tuple(call.axes("axes", 4)) != (2, 3) or 0 in x.shape:
        return None
    height, width = call.out.shape[2:]
    return call.value(called("contrib.BilinearResize2D", x, height=height, width=width))


def _index_copy(call: Mx) -> Value | None:
    x, ids, updates = (call.input(name) for name in ("x", "ids", "updates"))
    fits = call["reduction"] == "none" and call["negative"] == "refused"
    if not fits or call.axis("axis", x.rank) or 0 in (*x.shape, *updates.shape):
        return None
    return call.value(called("contrib.index_copy", x, ids, updates))


def _compress(call: Mx) -> Value | None:
    x, keep = call.input("x"), call.build.cast(call.input("keep"), "i32")
    if 0 in x.shape or call.axis("axis", x.rank):
        return None
    return MX.room(call, called("contrib.boolean_mask", x, keep))


def _khatri_rao(call: Mx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    return None if 0 in (*a.shape, *b.shape) else call.value(called("khatri_rao", a, b))


def _add_n(call: Mx) -> Value | None:
    values = call.family("xs")
    same = all(value.shape == call.out.shape for value in values)
    return call.value(called("add_n", *values)) if same else None


ARRAYS: dict[str, Native] = {
    **{
        name: plain(function)
        for name, function in functions("lgamma=gammaln rsqrt erf erfinv identity")
    },
    "stop_gradient": plain("BlockGrad"),
    "isnan": _truth("contrib.isnan"),
    "isinf": _truth("contrib.isinf"),
    "isfinite": _truth("contrib.isfinite"),
    "reduce_l1": reduction("norm", single=True, ord=1),
    "gemm": row("linalg_gemm, mx.nd.linalg_gemm2", _gemm),
    "diagonal": row("diag", _diagonal),
    "diag_embed": row("linalg_makediag", _diagonals),
    "sort": row("sort, mx.nd.argsort", _sort),
    "group_norm": row("GroupNorm", _group_norm),
    "l2_normalize": row("L2Normalization", _l2_normalize),
    "resize": row("contrib.BilinearResize2D", _resize),
    "scatter_slices": row("contrib.index_copy", _index_copy),
    "compress": row("contrib.boolean_mask", _compress, eager=True),
    "khatri_rao": row("khatri_rao", _khatri_rao, constant=("a", "b")),
    "add_n": row("add_n", _add_n),
}
