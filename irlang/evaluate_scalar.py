"""A scalar function applied to the values of a partial evaluation.

Numbers give a number, computed as whole numbers, fractions and float64 are; anything else an
equation expression. Lists go element by element, and a lone value serves every element.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from irlang import ast
from irlang import equations as eq
from irlang.diagnostics import Span, fail
from irlang.known import KNOWN
from irlang.scalar import SCALARS
from irlang.scope import RESIDUAL_KINDS, Scope, Value, is_residual, label, lift


def folded(node: eq.Expr) -> Value:
    """A function of numbers alone, in float64 (`1 / sqrt(3)`); anything else as it is."""
    if isinstance(node, (eq.Const, eq.Size)):
        return node.value
    if not isinstance(node, eq.Apply):
        return node
    args = [folded(arg) for arg in node.args]
    if any(is_residual(arg) for arg in args):
        return node
    try:
        if node.function in KNOWN:
            value = KNOWN[node.function](*args)
        else:
            with np.errstate(all="ignore"):
                value = SCALARS[node.function].numpy(*map(np.float64, args)).item()
    except (ArithmeticError, ValueError):
        return node
    return node if isinstance(value, complex) or value != value else value


def apply(
    function: str,
    nodes: tuple[ast.Expr, ...],
    values: tuple[Value, ...],
    scope: Scope,
    span: Span,
) -> Value:
    """A scalar function on the values of `nodes`, element by element where they are tuples."""
    if tuple in map(type, values):
        lengths = {len(v) for v in values if isinstance(v, tuple)}
        if len(lengths) > 1:
            raise fail(
                "definition.lengths",
                f"lists of different lengths meet: {', '.join(map(str, sorted(lengths)))}",
                span,
            )
        return tuple(
            apply_one(
                function,
                tuple(v[d] if isinstance(v, tuple) else v for v in values),
                lambda i, d=d: (
                    label(nodes[i], scope)
                    if not isinstance(values[i], tuple)
                    else f"({label(nodes[i], scope)})[{d}]"
                ),  # type: ignore[misc]
                span,
            )
            for d in range(lengths.pop())
        )
    return apply_one(function, values, lambda i: label(nodes[i], scope), span)


def apply_one(
    function: str, values: tuple[Value, ...], text: Callable[[int], str], span: Span
) -> Value:
    """The same where no value is a tuple; `text(i)` is the source of the i-th."""
    if RESIDUAL_KINDS.isdisjoint(map(type, values)):
        known = KNOWN.get(function)
        if known is not None:
            try:
                return known(*values)
            except ZeroDivisionError:
                if function != "/":
                    raise fail("definition.zero", "division by zero", span) from None
                # of real numbers: infinite, or NaN; where nothing is summed, nobody asks
            except (TypeError, ValueError, OverflowError):
                raise fail(
                    "definition.value", f"`{function}` does not apply to these values", span
                ) from None
        if any(not isinstance(v, (int, float, Fraction)) for v in values):
            raise fail("definition.value", f"`{function}` does not apply to these values", span)
    return eq.Apply(function, tuple(lift(v, text(i), span) for i, v in enumerate(values)))


def conjunction(values: tuple[Value, ...]) -> Value:
    """Whether all hold; those that are known are left out."""
    result: Value = True
    for value in values:
        if value is False:
            return False
        if value is not True:
            result = value if result is True else eq.Apply("and", (result, value))
    return result
