"""What is known of a scalar function: a row of the table of `irlang.scalar`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Array = Any


@dataclass(frozen=True, slots=True)
class Scalar:
    """One function.

    kind: `real`, `bool`, `int`, or `same` (that of the arguments). numpy: over arrays, by the
    rules of IEEE 754. exact: over mpmath numbers. derivative: texts, empty where it is zero almost
    everywhere. domain: interval where it is defined (others give NaN). monotone: breakpoints
    between which it is monotone, None for a function of several arguments. ulps: the allowance.
    least: the size whose last place counts where a value is smaller, for functions whose zeros no
    program hits. steepest: of a function that is neither, the largest slope over an interval.
    rises: of a function of several arguments, 1 for each in which it rises and -1 for each in which
    it falls, where it is defined.
    image: of a function that is not monotone, an interval around its values on intervals.
    circle: of a function of one argument, another whose square and its own add up to 1.
    near: of a function of one argument, between which numbers its value less the argument lies, as
    that of `floor` from -1 to 0, and that of `exp` from 1 on.
    lost: the size below which a library may give 0 for it, in 32 bits and fewer.
    poles: where it is infinite by itself, at finite arguments; of one argument without it, at the
    ends of the domain. symbol: how it is printed where it is an operator.
    """

    name: str
    arity: int
    kind: str
    numpy: Callable[..., Array]
    exact: Callable[..., Any]
    derivative: tuple[str, ...] = ()
    domain: tuple[float, float] = (-math.inf, math.inf)
    monotone: tuple[float, ...] | None = None
    ulps: float = 0.0
    symbol: bool = False
    least: float = 0.0
    steepest: Callable[[Array, Array], Array] | None = None
    image: Callable[..., tuple[float, float] | None] | None = None
    near: tuple[float, float] | None = None
    circle: str = ""
    lost: float = 0.0
    poles: Callable[..., Array] | None = None
    rises: tuple[int, ...] = ()
