"""Rules for functions that frameworks have from NumPy, under its names and with its arguments."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.legalise import is_whole
from irlang.lower.spelling import invoke
from irlang.lower.value import Value


def logspace(function: str, since: tuple[int, ...] = (), typed: str = "") -> Native:
    """Of ends, a number of points, a base and a type. typed: what makes the ends tensors of it."""

    def rule(call: Call[Any]) -> Value | None:
        if call["count"] < 1:
            return None
        dtype = call.build.dtype(call.out.dtype)
        ends: list[Any] = [float(call["start"]), float(call["stop"])]
        if typed:
            ends = [invoke(typed, end, dtype=dtype) for end in ends]
        options = {"base": float(call["base"]), "dtype": dtype}
        return call.value(invoke(function, *ends, call["count"], **options))

    return Native(function, rule, since=since)


def geomspace(function: str, since: tuple[int, ...] = ()) -> Native:
    """Of ends, a number of points and a type."""

    def rule(call: Call[Any]) -> Value | None:
        if call["count"] < 1:
            return None
        ends, dtype = (float(call["start"]), float(call["stop"])), call.build.dtype(call.out.dtype)
        return call.value(invoke(function, *ends, call["count"], dtype=dtype))

    return Native(function, rule, since=since)


def window(
    function: str, dtype: str = "", since: tuple[int, ...] = (), **attributes: str
) -> Native:
    """A window that ends where it begins, in a type that is not said: `dtype`, or any where it is.

    attributes: by the names of the arguments.
    """

    def rule(call: Call[Any]) -> Value | None:
        if call["periodic"] or call["size"] < 1 or dtype not in ("", call.out.dtype):
            return None
        options: dict[str, Any] = {key: float(call[name]) for key, name in attributes.items()}
        if not dtype:
            options["dtype"] = call.build.dtype(call.out.dtype)
        return call.value(invoke(function, call["size"], **options))

    return Native(function, rule, since=since)


def average(function: str, since: tuple[int, ...] = ()) -> Native:
    """With a weight of every place along the axis."""

    def rule(call: Call[Any]) -> Value | None:
        x, weights = call.input("x"), call.input("weights")
        if weights.rank > 1 and weights.shape == x.shape:
            return None  # documented as another program: every element has a weight of its own
        options = {"axis": call.axis_said("axis", x.rank), "weights": weights}
        return call.value(invoke(function, x, **options))

    return Native(function, rule, since=since)


def spread(function: str, correction: str, since: tuple[int, ...] = ()) -> Native:
    """A variance over `axes`. correction: what the function calls it, or that it has none."""

    def rule(call: Call[Any]) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes or (call["correction"] and not correction):
            return None
        options = {"axis": axes[0] if len(axes) == 1 else axes}
        options |= {correction: call["correction"]} if call["correction"] else {}
        return call.value(invoke(function, x, **options, keepdims=call["keepdims"] or None))

    return Native(function, rule, since=since)


def norm(function: str, since: tuple[int, ...] = (), positive: bool = False) -> Native:
    """Along one axis, of any order, or of those above 0."""

    def rule(call: Call[Any]) -> Value | None:
        x, p = call.input("x"), call["p"]
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if len(axes) != 1 or (positive and p <= 0):
            return None
        options = {"ord": int(p) if is_whole(p) else float(p), "axis": axes[0]}
        return call.value(invoke(function, x, **options, keepdims=call["keepdims"] or None))

    return Native(function, rule, since=since)


def percentile(function: str, since: tuple[int, ...] = ()) -> Native:
    """A quantile whose share is said in hundredths, where they divide to the same number."""

    def rule(call: Call[Any]) -> Value | None:
        x, hundredths = call.input("x"), 100 * float(call["q"])
        if hundredths / 100 != call["q"]:
            return None
        options = {"axis": call.axis_said("axis", x.rank), "keepdims": call["keepdims"] or None}
        options["method"] = f'"{call["interpolation"]}"'
        return call.value(invoke(function, x, hundredths, **options))

    return Native(function, rule, since=since)


def without_nan(function: str, since: tuple[int, ...] = ()) -> Native:
    """A quantile of what is a number, or the median, of which there is a function `median`, too."""
    median = function.replace("quantile", "median")

    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        options = {"axis": call.axis_said("axis", x.rank), "keepdims": call["keepdims"] or None}
        if call["q"] == 0.5 and call["interpolation"] == "linear":
            return call.value(invoke(median, x, **options))
        options["method"] = f'"{call["interpolation"]}"'
        return call.value(invoke(function, x, float(call["q"]), **options))

    return Native(f"{function}, {median}", rule, since=since)


_ORDERS = {
    "frobenius": '"fro"', "columns": 1, "rows": inf, "least_column": -1, "least_row": -inf,
}  # fmt: skip


def matrix_norm(
    function: str,
    since: tuple[int, ...] = (),
    axis: bool = False,
    keepdims: str = "keepdims",
    orders: Collection[str] = tuple(_ORDERS),
) -> Native:
    """Of the last two axes, which are said or not.

    keepdims: the name of the argument; orders: those that the function has.
    """

    def rule(call: Call[Any]) -> Value | None:
        x = call.input("x")
        if call["order"] not in orders:
            return None
        options: dict[str, Any] = {"ord": _ORDERS[call["order"]]}
        options |= {"axis": (-2, -1)} if axis else {}
        return call.value(invoke(function, x, **options, **{keepdims: call["keepdims"] or None}))

    return Native(function, rule, since=since)


def place_without_nan(function: str, since: tuple[int, ...] = ()) -> Native:
    """Along an axis; the place in whichever type the function has it in."""

    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        options = {"axis": call.axis_said("axis", x.rank), "keepdims": call["keepdims"] or None}
        found = Value(invoke(function, x, **options), call.out.shape, "i32")
        place: Value = call.build.cast(found, "i64")
        return place

    return Native(function, rule, since=since)


def map_coordinates(function: str, mode: str, value: str, since: tuple[int, ...] = ()) -> Native:
    """mode, value: the names of the function's arguments."""

    def rule(call: Call[Any]) -> Value | None:
        x, places = call.input("x"), call.input("coordinates")
        if places.rank < 2:
            return None
        options = {"order": call["order"], mode: f'"{call["mode"]}"', value: float(call["value"])}
        return call.value(invoke(function, x, places, **options))

    return Native(function, rule, since=since)


def saturating(function: str, since: tuple[int, ...] = ()) -> Native:
    """Of a tensor and a type."""

    def rule(call: Call[Any]) -> Value:
        return call.value(invoke(function, call.input("x"), call.build.dtype(call.out.dtype)))

    return Native(function, rule, since=since)


def running(function: str, since: tuple[int, ...] = ()) -> Native:
    """Along an axis."""

    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank)))

    return Native(function, rule, since=since)


def correlation(function: str, since: tuple[int, ...] = ()) -> Native:
    """Of two vectors; which part is asked for is always said."""

    def rule(call: Call[Any]) -> Value:
        mode = f'"{call["mode"]}"'
        return call.value(invoke(function, call.input("a"), call.input("b"), mode=mode))

    return Native(function, rule, since=since)


def inner(function: str, since: tuple[int, ...] = ()) -> Native:
    """Of tensors that have axes, of reals or the usual integers."""

    def rule(call: Call[Any]) -> Value | None:
        a, b = call.input("a"), call.input("b")
        known = call.out.kind == "real" or call.out.dtype in ("i32", "i64")
        return call.value(invoke(function, a, b)) if known else None

    return Native(function, rule, since=since)


def search(function: str, since: tuple[int, ...] = ()) -> Native:
    """Of one row, on either side; the place in whichever type the function has it in."""

    def rule(call: Call[Any]) -> Value | None:
        row, x = call.input("row"), call.input("x")
        if row.rank != 1:
            return None
        side = '"right"' if call["right"] else '"left"'
        found = Value(invoke(function, row, x, side=side), call.out.shape, "i32")
        place: Value = call.build.cast(found, "i64")
        return place

    return Native(function, rule, since=since)
