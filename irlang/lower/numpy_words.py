"""Rules for functions that frameworks have from NumPy, under its names and with its arguments."""

from __future__ import annotations

from typing import Any

from irlang.lower.call import Call, Native
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
