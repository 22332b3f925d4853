"""The domain of balls: a value and its radius, the tolerance of every comparison.

The radius of an element bounds |computed - true| for *every* way of evaluating the equations in
floating point of the given precision: any order and association of sums, fused multiply-add or
not, scalar functions within the allowance of `irlang.scalar` (forward error analysis; Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 3 and 4). An infinite radius says
that nothing can be said: the element is *unstable* (a decision hangs on rounding) or unspecified.

u is the unit roundoff, gamma_n = n u / (1 - n u). Every rounding adds u |value| + tiny, tiny being
the least normal number, so that flushing of denormals is covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DTYPES, DType
from irlang.interp import wide
from irlang.interp.plain import FOLD, Plain, contract, convert
from irlang.scalar import SCALARS, WHOLE

Array = Any


@dataclass(slots=True)
class Ball:
    """Values and their radii; None is exact everywhere. For truth values: 1 is uncertain.

    A sum of `terms` numbers keeps their total `magnitude`: what is added to it later may be added
    in any order with them (a bias that starts the accumulation), and is rounded as often.
    """

    value: Any
    radius: Any = None
    terms: int = 1
    magnitude: Any = None

    @property
    def bound(self) -> Any:
        """The radius, 0 where it is exact."""
        return 0.0 if self.radius is None else self.radius


_STEPS = frozenset({"floor", "ceil", "round", "trunc", "sign", "int"})
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# How far a value can move when its argument does: |f(a) - f(b)| <= L |a - b| everywhere.
_LIPSCHITZ = {"sin": 1.0, "cos": 1.0, "tanh": 1.0, "sigmoid": 0.25, "erf": 1.1283791670955126}


class Balls:
    """The domain of balls at the precision of one floating-point type."""

    def __init__(self, dtype: str) -> None:
        self.dtype = DTYPES[dtype]
        self.unit = self.dtype.unit
        self.tiny = self.dtype.tiny

    # ---- what `vector.Plain` does, with radii

    def number(self, value: eq.Scalar) -> Ball:
        """A number; one that the type cannot represent is off by its rounding."""
        if isinstance(value, (bool, int)):
            return Ball(wide.number(value))
        number = float(value)
        if not math.isfinite(number) or (isinstance(value, float) and self._exactly(number)):
            return Ball(number)
        if isinstance(value, Fraction) and self._exactly(number) and Fraction(number) == value:
            return Ball(number)
        return Ball(number, self.unit * abs(number) + self.tiny)

    def _exactly(self, number: float) -> bool:
        with np.errstate(over="ignore"):
            return float(np.asarray(number).astype(self.dtype.numpy)) == number

    def array(self, value: Any) -> Ball:
        """Whole numbers or truth values, free of error."""
        return Ball(value)

    def parts(self, value: Ball, change: Callable[[Any], Any]) -> Ball:
        """A ball whose arrays are rearranged by `change`."""
        if value.radius is None:
            return Ball(change(value.value))
        shape = np.shape(value.value)
        changed = Ball(change(value.value), change(_whole(value.radius, shape)))
        if value.magnitude is not None:
            changed.terms = value.terms
            changed.magnitude = change(_whole(value.magnitude, shape))
        return changed

    def padded(self, value: Ball, default: Ball, change: Callable[[Any, Any], Any]) -> Ball:
        """A ball rearranged with a default around it."""
        if value.radius is None and default.radius is None:
            return Ball(change(value.value, default.value))
        radius = np.asarray(np.broadcast_to(value.bound, np.shape(value.value)), order="C")
        return Ball(change(value.value, default.value), change(radius, default.bound))

    def sample(self, value: Ball) -> Any:
        """The values alone."""
        return value.value

    def select(self, condition: Ball, yes: Ball, no: Ball) -> Ball:
        """A choice; where the condition is uncertain, either value may be meant."""
        value = np.where(condition.value, yes.value, no.value)
        if condition.radius is None:
            if yes.radius is None and no.radius is None:
                return Ball(value)
            return Ball(value, np.where(condition.value, yes.bound, no.bound))
        apart = _gap(yes.value, no.value) + np.maximum(yes.bound, no.bound)
        own = np.where(condition.value, yes.bound, no.bound)
        if value.dtype == np.bool_:
            apart = np.minimum(apart, 1.0)
        return Ball(value, np.where(np.asarray(condition.radius) > 0, apart, own))

    def fold(self, kind: str, ball: Ball, axes: tuple[int, ...]) -> Ball:
        """A reduction over the trailing axes."""
        if kind in ("max", "min") and np.asarray(ball.value).dtype == np.bool_:
            kind = "any" if kind == "max" else "all"
        value = Plain().fold(kind, ball.value, axes)
        count = math.prod(np.shape(ball.value)[axis] for axis in axes)
        whole = np.asarray(ball.value).dtype.kind in "ibO"
        radius = None if ball.radius is None else np.broadcast_to(ball.radius, np.shape(ball.value))
        if kind in ("all", "any"):
            return self._quantified(kind, ball, value, radius, axes)
        if kind in ("max", "min"):
            if radius is None:
                return Ball(value)
            upper = FOLD[kind](ball.value + radius, axis=axes)
            lower = FOLD[kind](ball.value - radius, axis=axes)
            return Ball(value, _spread(value, lower, upper))
        if radius is None and whole:
            return Ball(value)
        size = np.abs(ball.value) if radius is None else np.abs(ball.value) + radius
        growth = gamma(count if kind == "prod" else count - 1, self.unit)
        if kind == "prod":
            total = np.prod(size, axis=axes)
            slack = 0.0 if radius is None else total - np.abs(value)
            if whole:
                return Ball(value, slack)
            # on the way, in some order: below the normal numbers, or beyond the largest
            least = np.prod(np.where(size > 0, np.minimum(size, 1.0), 1.0), axis=axes)
            most = np.prod(np.maximum(size, 1.0), axis=axes)
            slack = slack + np.where(least < self.tiny, np.abs(value), 0.0)
            reach = slack + growth * total + self.tiny
            return Ball(value, np.where(most > self.dtype.largest, np.inf, reach))
        own = 0.0 if radius is None else np.sum(radius, axis=axes)
        if whole:
            return Ball(value, own)
        total = np.sum(size, axis=axes)
        return self.bounded(Ball(value, own + growth * total, count, total))

    @staticmethod
    def _quantified(kind: str, ball: Ball, value: Any, radius: Any, axes: tuple[int, ...]) -> Ball:
        if radius is None:
            return Ball(value)
        certain = radius == 0
        decided = ~ball.value if kind == "all" else ball.value
        settled = np.any(certain & decided, axis=axes)
        return Ball(value, (~settled & np.any(~certain, axis=axes)).astype(np.float64))

    def contract(self, factors: list[Ball], rank: int) -> Ball:
        """The sum over all axes from `rank` on of the product of the factors."""
        value = contract([f.value for f in factors], rank)
        if all(f.radius is None and np.asarray(f.value).dtype.kind in "ibO" for f in factors):
            return Ball(value)
        sizes = [np.abs(f.value) for f in factors]
        total = contract(sizes, rank)
        slack: Any = 0.0
        if any(f.radius is not None for f in factors):
            wide = [
                s if f.radius is None else s + f.radius for s, f in zip(sizes, factors, strict=True)
            ]
            widest = contract(wide, rank)
            # the difference of two nearly equal sums would lose the radius in its own rounding
            slack = np.maximum(widest - total, 0.0) + gamma(8, 2.0**-53) * widest
            total = widest
        terms = _terms([f.value for f in factors], rank)
        roundings = terms - 1 + len(factors) - 1
        radius = slack + gamma(max(roundings, 1), self.unit) * total + terms * self.tiny
        if len(factors) > 2 and self._peak(factors) * terms > self.dtype.largest:
            radius = np.inf * np.ones_like(value)  # a sum of products of two may overflow first
        return self.bounded(Ball(value, radius, terms, total))

    @staticmethod
    def _peak(factors: list[Ball]) -> float:
        """What no product of some of the factors exceeds."""
        peak = 1.0
        for factor in factors:
            size = np.abs(factor.value) + factor.bound  # what is open says nothing of the others
            known = np.where(np.isinf(factor.bound), 0.0, size)
            peak *= max(1.0, float(np.fmax.reduce(known, axis=None, initial=0.0)))  # nor does a NaN
        return peak

    def place(self, kind: str, ball: Ball) -> Ball:
        """The position of the extreme element; uncertain where another may be it."""
        at = Plain().place(kind, ball.value)
        if ball.radius is None:
            return Ball(at)
        sign = 1.0 if kind == "argmax" else -1.0
        reach = sign * ball.value + ball.radius
        floor = np.take_along_axis(sign * ball.value - ball.radius, at[..., None], -1)
        # not surely below: where nothing is known, a sum of infinities is NaN and compares false
        rivals = ~(reach < floor)
        exact = np.all(~rivals | (np.broadcast_to(ball.radius, np.shape(ball.value)) == 0), axis=-1)
        return Ball(at, np.where((np.sum(rivals, axis=-1) > 1) & ~exact, np.inf, 0.0))

    def pick(self, ball: Ball, at: Array, certain: Ball) -> Ball:
        """The elements at positions `at` along the last axis."""
        picked = self.parts(ball, lambda a: np.take_along_axis(a, at[..., None], -1)[..., 0])
        if certain.radius is None:
            return picked
        doubtful = np.any(np.asarray(certain.radius).reshape((*at.shape, -1)) > 0, axis=-1)
        return Ball(picked.value, np.where(doubtful, np.inf, picked.bound))

    def gather(self, ball: Ball, index: tuple[Any, ...], positions: list[Ball]) -> Ball:
        """Elements at computed positions; nothing is known where a position is uncertain."""
        found = self.parts(ball, lambda a: a[index])
        doubts = [p.radius for p in positions if p.radius is not None]
        if not doubts:
            return found
        doubtful = np.zeros((), dtype=bool)
        for doubt in doubts:
            doubtful = doubtful | (np.asarray(doubt) > 0)
        return Ball(found.value, np.where(doubtful, np.inf, found.bound))

    def store(self, ball: Ball, info: eq.TensorInfo, shape: tuple[int, ...]) -> Ball:
        """Assignment to a tensor: conversion, and nothing finite beyond the largest number."""
        value = np.asarray(np.broadcast_to(convert(ball.value, info), shape), order="C")
        radius = ball.radius
        if info.kind == "real":
            narrow = DTYPES[info.dtype]
            if narrow.unit > self.unit and not (radius is None and _holds(narrow, value)):
                radius = ball.bound + narrow.unit * np.abs(value) + narrow.tiny
            with np.errstate(invalid="ignore"):
                over = np.isfinite(value) & (
                    np.abs(value) + (0 if radius is None else radius) > narrow.largest
                )
            if np.any(over):
                radius = np.where(over, np.inf, 0.0 if radius is None else radius)
        elif radius is not None and np.asarray(ball.value).dtype.kind == "f":
            radius = self._step("trunc", Ball(ball.value, radius)).bound
            if info.kind == "bool":
                doubtful = (np.asarray(ball.bound) > 0) & (np.abs(ball.value) <= ball.bound)
                radius = doubtful.astype(np.float64)
        if radius is not None:
            radius = _whole(np.asarray(radius, dtype=np.float64), shape)
            # NaN: a radius that has no value says nothing
            radius = np.where(np.isnan(radius), np.inf, radius)
        stored = Ball(value, radius)
        if ball.magnitude is not None and info.kind == "real":
            stored.terms = ball.terms
            stored.magnitude = _whole(ball.magnitude, shape)
        return stored

    def empty(self, info: eq.TensorInfo) -> Ball:
        """A tensor to be filled step by step."""
        return Ball(Plain().empty(info), np.zeros(info.shape))

    def assign(self, target: Ball, where: tuple[Any, ...], value: Ball) -> None:
        """Fills a part of a tensor."""
        target.value[where] = value.value
        target.radius[where] = value.bound

    # ---- scalar functions

    def apply(self, function: str, args: list[Ball]) -> Ball:
        """A scalar function: propagated radii, and the rounding of the result."""
        if any(wide.is_wide(arg.value) for arg in args):
            value = wide.apply(function, [arg.value for arg in args])
            if np.asarray(value).dtype.kind != "f":
                return self._of_integers(value, args)
            args = [Ball(np.asarray(a.value, dtype=np.float64), a.radius) for a in args]
        rule = _RULES.get(function)
        if rule is not None:
            return rule(self, function, args)
        return self._function(function, args)

    def bounded(self, ball: Ball) -> Ball:
        """Nothing is known beyond the largest number: on the way there a program may overflow.

        Nor is anything where the radius itself has no value (0 times an infinite one).
        """
        size = np.abs(ball.value) if ball.magnitude is None else ball.magnitude
        with np.errstate(invalid="ignore"):
            within = size + ball.bound <= self.dtype.largest
        lost = ~(within | ~np.isfinite(ball.value)) | np.isnan(ball.bound)
        if np.any(lost):
            ball.radius = np.where(lost, np.inf, ball.bound)
        return ball

    def _rounded(self, value: Any, slack: Any, half_ulps: float = 1.0) -> Ball:
        """A result that is rounded: `half_ulps` is 1 for a correctly rounded operation."""
        with np.errstate(invalid="ignore"):
            own = half_ulps * self.unit * np.abs(value) + self.tiny
            own = np.where(np.isfinite(value), own, 0.0)
            return self.bounded(Ball(value, slack + own))

    def _arithmetic(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        exact = a.radius is None and b.radius is None
        if exact and np.asarray(value).dtype.kind in "ib":
            return Ball(value)
        if function in "+-":
            slack: Any = a.bound + b.bound
        elif exact:
            slack = 0.0
        elif function == "*":
            slack = np.abs(a.value) * b.bound + np.abs(b.value) * a.bound + a.bound * b.bound
            slack = np.where(np.isnan(slack), np.inf, slack)  # 0 * inf
        else:
            low = np.abs(b.value) - b.bound
            slack = (a.bound + np.abs(value) * b.bound) / np.where(low > 0, low, np.nan)
            # a divisor that may be zero, or a numerator that may: the quotient may be NaN
            doubtful = (np.asarray(b.bound) > 0) | ((a.bound > 0) & (np.abs(a.value) <= a.bound))
            slack = np.where(low > 0, slack, np.where(doubtful, np.inf, 0.0))
        if np.asarray(value).dtype.kind in "ib":
            return Ball(value, slack)
        if function in "+-" and a.terms + b.terms > 2:
            terms = a.terms + b.terms
            total = _magnitude(a) + _magnitude(b)
            return self.bounded(
                Ball(value, slack + gamma(terms - 1, self.unit) * total, terms, total)
            )
        if function in "+-" and exact and self._integers(a, b, value):
            return Ball(value)
        found = self._rounded(value, slack)
        zero = (np.asarray(a.value) == 0) | (np.asarray(b.value) == 0)
        free = _free(function, a, b) & (zero | (np.abs(value) >= self.tiny))
        if function != "/":
            free = free | self._coarse(a, b, value)
        if np.any(free):
            found.radius = np.where(free & np.isfinite(found.bound), slack, found.bound)
        return found

    def _coarse(self, a: Ball, b: Ball, value: Any) -> Any:
        """Where operands and result are multiples of a unit so large that any order is exact."""
        grid = 2.0 ** (math.log2(1.0 / self.unit) // 3)
        limit = 1.0 / (self.unit * grid * 4)

        def simple(numbers: Any) -> Any:
            with np.errstate(invalid="ignore", over="ignore"):
                return (np.abs(numbers) < limit) & (np.floor(numbers * grid) == numbers * grid)

        found = simple(np.asarray(value, dtype=np.float64))
        if not np.any(found):
            return found
        return found & _exactly(a, simple) & _exactly(b, simple)

    def _integers(self, a: Ball, b: Ball, value: Any) -> bool:
        """Whether a sum is one of small whole numbers, which no format rounds."""
        with np.errstate(invalid="ignore"):
            return bool(
                np.ndim(a.value) + np.ndim(b.value) > 0
                and np.all(np.abs(value) < 1.0 / self.unit)
                and np.all(np.floor(a.value) == a.value)
                and np.all(np.floor(b.value) == b.value)
            )

    def _exact(self, function: str, args: list[Ball]) -> Ball:
        return self._of_integers(SCALARS[function].numpy(*(arg.value for arg in args)), args)

    @staticmethod
    def _of_integers(value: Any, args: list[Ball]) -> Ball:
        """A function of integers; of one that rounding has a say in nothing is known."""
        if all(arg.radius is None for arg in args):
            return Ball(value)
        doubtful = np.asarray(sum(np.asarray(arg.bound) for arg in args)) > 0
        return Ball(value, np.where(doubtful, np.inf, 0.0))

    def _same(self, function: str, args: list[Ball]) -> Ball:
        a = args[0]
        return Ball(SCALARS[function].numpy(a.value), a.radius, a.terms, a.magnitude)

    def _about(self, function: str, args: list[Ball]) -> Ball:  # noqa: ARG002
        """A value that is rounded even where no arithmetic would."""
        return self._rounded(args[0].value, args[0].bound)

    def _extreme(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper = SCALARS[function].numpy(a.value + a.bound, b.value + b.bound)
            lower = SCALARS[function].numpy(a.value - a.bound, b.value - b.bound)
        return _settled(value, _spread(value, lower, upper))

    def _comparison(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return Ball(value)
        reach = np.asarray(a.bound + b.bound)
        with np.errstate(invalid="ignore"):
            near = np.isinf(reach) | ((_gap(a.value, b.value) <= reach) & (reach > 0))
        return Ball(value, near.astype(np.float64))

    def _logic(self, function: str, args: list[Ball]) -> Ball:
        value = SCALARS[function].numpy(*(x.value for x in args))
        if all(x.radius is None for x in args):
            return Ball(value)
        if function == "not":
            return Ball(value, args[0].radius)
        a, b = args
        doubt_a, doubt_b = np.asarray(a.bound) > 0, np.asarray(b.bound) > 0
        settling_a = ~doubt_a & (
            ~np.asarray(a.value, bool) if function == "and" else np.asarray(a.value, bool)
        )
        settling_b = ~doubt_b & (
            ~np.asarray(b.value, bool) if function == "and" else np.asarray(b.value, bool)
        )
        doubt = (doubt_a | doubt_b) & ~settling_a & ~settling_b
        return Ball(value, doubt.astype(np.float64))

    def _test(self, function: str, args: list[Ball]) -> Ball:
        value = SCALARS[function].numpy(np.asarray(args[0].value, dtype=np.float64))
        if args[0].radius is None:
            return Ball(value)
        return Ball(value, np.isinf(args[0].radius).astype(np.float64))

    def _select(self, function: str, args: list[Ball]) -> Ball:  # noqa: ARG002
        return self.select(*args)

    def _step(self, function: str, args: list[Ball] | Ball) -> Ball:
        ball = args if isinstance(args, Ball) else args[0]
        step = SCALARS[function].numpy
        value = step(ball.value)
        if ball.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper, lower = step(ball.value + ball.bound), step(ball.value - ball.bound)
            return _settled(value, _spread(value, lower, upper))

    def _nearest(self, function: str, args: list[Ball]) -> Ball:
        """A number put into few digits: a step function, exact at what is exact."""
        ball, *kind = args
        step = SCALARS[function].numpy
        given = [arg.value for arg in kind]
        value = step(ball.value, *given)
        if ball.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper, lower = (step(ball.value + sign * ball.bound, *given) for sign in (1, -1))
            return Ball(value, _spread(value, lower, upper))

    def _quotient(self, function: str, args: list[Ball]) -> Ball:
        """`//`, `%` and `ceildiv`: exact on whole numbers; on reals a step, or a jump near one."""
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if np.asarray(value).dtype.kind in "ib" and a.radius is None and b.radius is None:
            return Ball(value)
        radius = self._jumping(function, a, b, value)
        if a.radius is not None or b.radius is not None:
            with np.errstate(invalid="ignore"):
                known = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)
                exact = known & (np.floor(a.value) == a.value) & (np.floor(b.value) == b.value)
            radius = np.where(exact & (np.abs(a.value) * self.unit < 1), 0.0, radius)
        return Ball(value, radius)

    def _jumping(self, function: str, a: Ball, b: Ball, value: Any) -> Any:
        """The radius of a quotient of numbers that are not known, or not whole."""
        with np.errstate(all="ignore"):
            ratio = np.true_divide(a.value, b.value)
            low = np.abs(b.value) - b.bound
            slack = (a.bound + np.abs(ratio) * b.bound) / np.maximum(low, 0.0)
            slack = slack + 2 * self.unit * np.abs(ratio)
            jump = np.floor(ratio + slack) != np.floor(ratio - slack)
            # a divisor that may be zero, or a denormal that may be flushed to it
            lost = (low <= 0) & (np.asarray(b.bound) > 0) | (b.value != 0) & (low < self.tiny)
            if function != "%":
                return np.where(lost, np.inf, np.where(jump, np.ceil(slack) + 1.0, 0.0))
            own = a.bound + np.abs(np.floor(ratio)) * b.bound + self.unit * np.abs(value)
            whole = (a.radius is None and b.radius is None) & (value == 0)
            own = np.where(jump & ~whole, np.abs(b.value) + own, own)
            return np.where(lost, np.inf, own)

    def _power(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        row = SCALARS[function]
        value = row.numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return self._rounded(value, 0.0, 2 * row.ulps)
        slack: Any = 0.0
        for da in (a.bound, -np.asarray(a.bound)):
            for db in (b.bound, -np.asarray(b.bound)):
                corner = row.numpy(a.value + da, b.value + db)
                slack = np.maximum(slack, np.abs(corner - value))
        whole = (b.radius is None) & (np.floor(b.value) == b.value)
        crosses = np.abs(a.value) <= a.bound  # a turning point, or a pole, at zero
        near_zero = np.where(np.asarray(b.value) > 0, np.abs(value), np.inf)
        slack = np.where(crosses, np.maximum(slack, near_zero), slack)
        with np.errstate(invalid="ignore"):
            fits = np.where(whole, True, np.asarray(a.value) - a.bound >= 0)
        return self._rounded(value, np.where(fits, slack, np.inf), 2 * row.ulps)

    def _function(self, function: str, args: list[Ball]) -> Ball:
        """A function of one argument, by its monotone pieces or its Lipschitz constant."""
        row = SCALARS[function]
        a = args[0]
        value = row.numpy(a.value)
        slack = 0.0 if a.radius is None else self._slack(function, a, value)
        found = self._rounded(value, slack, 2 * row.ulps)
        origin = _exactly(a, _is_zero) & (value == 0)  # of which no library is unsure
        if np.any(origin):
            found.radius = np.where(origin, 0.0, found.bound)
        return found

    def _slack(self, function: str, a: Ball, value: Any) -> Any:
        """How far a function moves while its argument moves in a ball."""
        row = SCALARS[function]
        radius = np.asarray(a.radius)
        bound = _LIPSCHITZ.get(function)
        if row.monotone is None:
            if bound is None:
                bound_at = self._slope(function, a)
                slack = np.where(radius > 0, bound_at * radius, 0.0)
            else:
                slack = np.minimum(bound * radius, 2.0)
        else:
            low, high = a.value - radius, a.value + radius
            at_low, at_high = row.numpy(low), row.numpy(high)
            slack = np.maximum(np.abs(at_high - value), np.abs(at_low - value))
            for turn in row.monotone:
                crossed = (low < turn) & (turn < high)
                slack = np.where(crossed, np.maximum(slack, np.abs(row.numpy(turn) - value)), slack)
            if bound is not None:  # differences of nearby values lose digits; the slope does not
                slack = np.minimum(
                    np.where(np.isnan(slack), np.inf, slack) + self._own(value), bound * radius
                )
            else:
                slack = slack + self._own(np.maximum(np.abs(at_low), np.abs(at_high)))
            with np.errstate(invalid="ignore"):
                outside = (low < row.domain[0]) | (high > row.domain[1])
            slack = np.where(radius == 0, 0.0, np.where(outside | np.isnan(slack), np.inf, slack))
        # an argument of which nothing is known may be NaN: then nothing is known of the value
        return np.where(np.isinf(radius), np.inf, slack)

    @staticmethod
    def _own(value: Any) -> Any:
        """The error of the oracle's own function values."""
        return 4 * 2.0**-53 * np.abs(value)

    def _slope(self, function: str, a: Ball) -> Any:
        """The steepest slope over a ball, for `tan`: infinite over a pole."""
        row = SCALARS[function]
        low, high = a.value - a.bound, a.value + a.bound
        at_low, at_high = row.numpy(low), row.numpy(high)
        steepest = 1.0 + np.maximum(np.abs(at_low), np.abs(at_high)) ** 2
        return np.where((at_low > at_high) | (np.asarray(a.bound) > 1.0), np.inf, steepest)


def _holds(narrow: DType, value: Any) -> bool:
    """Whether a type has all of these numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        same = value.astype(narrow.numpy).astype(np.float64) == value
    return bool(np.all(same | np.isnan(value)))


def _whole(array: Any, shape: tuple[int, ...]) -> Any:
    """An array spread to a shape, contiguous so that it can be viewed."""
    return np.asarray(np.broadcast_to(array, shape), order="C")


def _magnitude(ball: Ball) -> Any:
    """The sum of the magnitudes of what a value was summed from."""
    return np.abs(ball.value) + ball.bound if ball.magnitude is None else ball.magnitude


def _gap(a: Any, b: Any) -> Any:
    """|a - b|, 0 between equal infinities."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, np.abs(a - b))


def _settled(value: Any, radius: Any) -> Ball:
    """A value that a step may have freed of its error: whole numbers are then counted exactly."""
    return Ball(value, radius) if np.any(radius) else Ball(value)


def _free(function: str, a: Ball, b: Ball) -> Any:
    """Where arithmetic rounds nothing: with zero, and times or by a power of two.

    Zero times anything is zero, and what is added to zero stays. A power of two moves the exponent,
    which is exact between the least normal number and the largest.
    """
    if function in "+-":
        return _exactly(a, _is_zero) | _exactly(b, _is_zero)
    if function == "/":
        return _exactly(a, _is_zero) | _exactly(b, _is_power)
    return _exactly(a, _moves) | _exactly(b, _moves)


def _exactly(ball: Ball, test: Callable[[Any], Any]) -> Any:
    """Where a value is exact and passes a test."""
    return test(np.asarray(ball.value)) & (np.asarray(ball.bound) == 0)


def _is_zero(value: Any) -> Any:
    return value == 0


def _is_power(value: Any) -> Any:
    """Not of 1: programs fold a divisor of one element, or an open gate, into other factors."""
    with np.errstate(invalid="ignore"):
        return (np.abs(np.frexp(value)[0]) == 0.5) & (np.abs(value) != 1)


def _moves(value: Any) -> Any:
    return (value == 0) | _is_power(value)


def _spread(value: Any, lower: Any, upper: Any) -> Any:
    """How far an interval reaches from a value inside it."""
    reach = np.maximum(_gap(upper, value), _gap(value, lower))
    return np.where(np.isnan(reach), np.inf, reach)


def gamma(n: int, unit: float) -> float:
    """gamma_n of the error analysis; infinite where n u reaches 1."""
    return n * unit / (1 - n * unit) if n * unit < 1 else math.inf


def _terms(arrays: list[Any], rank: int) -> int:
    """How many products one sum of a contraction has."""
    width = max(np.ndim(a) for a in arrays)
    if width == 0:
        return 1
    shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
    return math.prod(shape[rank:])


_RULES: dict[str, Callable[[Balls, str, list[Ball]], Ball]] = {
    **dict.fromkeys(("+", "-", "*", "/"), Balls._arithmetic),
    **dict.fromkeys(("neg", "abs", "real"), Balls._same),
    **dict.fromkeys(("max", "min"), Balls._extreme),
    **dict.fromkeys(_COMPARISONS, Balls._comparison),
    **dict.fromkeys(("and", "or", "not"), Balls._logic),
    **dict.fromkeys(("isnan", "isinf"), Balls._test),
    "about": Balls._about,
    **dict.fromkeys(_STEPS, Balls._step),
    **dict.fromkeys(("//", "%", "ceildiv"), Balls._quotient),
    **dict.fromkeys(WHOLE, Balls._exact),
    "rounded": Balls._nearest,
    "select": Balls._select,
    "pow": Balls._power,
}
