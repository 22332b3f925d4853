"""Arithmetic on balls: sums, products and quotients, with the terms that sums keep.

Forward error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 2
to 4).
"""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irlang.interp.ball import Ball, coarse, gross, least, magnitude, running, simple
from irlang.interp.ball_factors import are_plain, are_whole, joined, on_the_way
from irlang.interp.ball_precision import CORRECTLY, Precision
from irlang.interp.ball_sure import certain, exactly, unrounded
from irlang.interp.endless import settled_sum
from irlang.interp.running import Running
from irlang.scalar import SCALARS


class BallArithmetic(Precision):
    """`+`, `-`, `*` and `/` over balls."""

    def operation(self, function: str, args: list[Ball]) -> Ball:
        """One of the four operations."""
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        exact, halved = a.radius is None and b.radius is None, self.arithmetic.halved
        kind = np.asarray(value).dtype.kind
        # Then no operand is infinite or no number, but for a divisor, which may be infinite.
        finite = kind == "f" and bool(np.isfinite(value).all())
        if exact and kind in "ib":
            return Ball(value)
        if function in "+-":
            slack: Any = a.bound + b.bound
            if halved:  # (a - b)^2 may be written out: then it goes by the last places of both
                slack = slack + 2 * self.unit * (np.abs(a.value) + np.abs(b.value))
        elif exact:
            slack = 0.0
        elif function == "*":
            slack = np.abs(a.value) * b.bound + np.abs(b.value) * a.bound + a.bound * b.bound
            slack = np.where(np.isnan(slack), np.inf, slack)  # 0 * inf
        else:
            low = np.maximum(np.abs(b.value) - b.bound, least(b))
            slack = (a.bound + np.abs(value) * b.bound) / np.where(low > 0, low, np.nan)
            # a divisor that may be zero, or a numerator that may: the quotient may be NaN
            doubtful = (np.asarray(b.bound) > 0) | ((a.bound > 0) & (np.abs(a.value) <= a.bound))
            slack = np.where(low > 0, slack, np.where(doubtful, np.inf, 0.0))
        if kind in "ib":
            return Ball(value, slack)
        if not finite:
            slack = np.where(certain(function, a, b), 0.0, slack)
        if function in "+-" and a.terms + b.terms > 2:
            return self.longer([a, b], value)
        if function in "+-" and exact and not halved and self._integers(a, b, value):
            return self._added(Ball(value), args)
        found = self.rounded(value, slack, self.allowed(function) if function == "/" else CORRECTLY)
        if halved:  # an exact operation may stand for some that are not
            return self._added(found, args) if function in "+-" else found
        self._freed(function, args, found, slack)
        if function in "+-":
            return self.bounded(self._added(found, args))
        if function in "*/" and self.arithmetic.distributes:
            return self._distributed(found, a, b, function, slack)
        return found

    def _freed(self, function: str, args: list[Ball], found: Ball, slack: Any) -> None:
        """Takes the rounding of an operation away where there is none, whoever computes it."""
        a, b = args
        zero = (np.asarray(a.value) == 0) | (np.asarray(b.value) == 0)
        free = unrounded(function, a, b) & (zero | (np.abs(found.value) - slack >= self.tiny))
        if function in "+-":  # of equal numbers
            free = free | ((found.value == 0) & (np.asarray(slack) == 0))
        found.factors = joined(function, a, b) if function in "*/" else ()
        # exact products that this one is made of, by what their factors happen to be
        before = a.unrounded + b.unrounded if function in "*/" else 0
        several = before > 0 or len(found.factors) > 2
        if function != "/":
            happens = self._coarse(a, b, found.value)
            if several and np.any(happens):
                happens = happens & are_plain(found.factors)
            found.unrounded = function == "*" and bool(np.any(happens & ~free))
            free = free | happens
        if np.any(free):
            found.radius = np.where(free & np.isfinite(found.bound), slack, found.bound)
        if function == "/":
            found.radius = found.bound + self._vanishing(a, b, found.value)
        if several:
            found.radius = self._in_any_order(found, before)

    def _in_any_order(self, found: Ball, unrounded: int) -> Any:
        """The radius of a product of several factors, whichever are multiplied first.

        unrounded: how many of the products that it is made of have no rounding in their radius.
        """
        radius, factors = found.bound, found.factors
        if unrounded:
            size = np.abs(found.value)
            none = are_whole(factors) & (size <= 1 / self.unit)
            none = none | (are_plain(factors) & simple(found.value, self.unit))
            more = np.where(none, 0.0, self.growth(unrounded) * size)
            radius = radius + np.where(np.isfinite(found.value), more, 0.0)
        met = on_the_way(factors, self.tiny, self.most)
        if met is None:
            return radius
        unknown, carried = met
        with np.errstate(invalid="ignore", over="ignore"):
            lost = np.minimum(np.abs(found.value) + radius, len(factors) * self.lost * carried)
            radius = radius + np.where(np.isfinite(found.value) & (carried > 0), lost, 0.0)
        return np.where(unknown, np.inf, radius)

    def _vanishing(self, a: Ball, b: Ball, value: Any) -> Any:
        """What a product with a reciprocal loses where that is below the least normal number."""
        with np.errstate(over="ignore", invalid="ignore"):
            far = (np.abs(b.value) + b.bound) * self.tiny > 1
            if not np.any(far):
                return 0.0
            far = far & np.isfinite(b.value) & np.isfinite(value)
            return np.where(far, (np.abs(a.value) + a.bound) * self.tiny, 0.0)

    def _distributed(self, found: Ball, a: Ball, b: Ball, function: str, slack: Any) -> Ball:
        """A product with a sum whose terms may each have been multiplied instead."""
        if function == "*" and b.terms > a.terms:
            a, b = b, a
        if a.terms == 1:
            return found
        more = 1 if function == "*" else 2  # roundings of each term: the reciprocal's is one
        other = gross(b) if function == "*" else 1 / np.maximum(np.abs(b.value) - b.bound, 0)
        total = gross(a) * other
        grown = self.growth(a.terms - 1 + more)
        if b.terms == 1 or function == "/":
            terms = a.terms + more
            grown -= self.growth(a.terms - 1)  # which the radius of the sum has in it
        else:
            terms = a.terms + b.terms
            grown = self.growth(terms)
        radius = np.maximum(found.bound, slack + grown * total)
        radius = np.where((found.bound == 0) & ~np.isfinite(found.value), 0.0, radius)
        if b.terms == 1:  # of terms of either sign, each by itself times infinity
            endless = np.isinf(b.value) if function == "*" else np.asarray(b.value) == 0
            radius = np.where(endless, np.inf, radius)
        made = Ball(found.value, radius, terms, total)
        made.factors, made.unrounded = found.factors, found.unrounded
        return self.bounded(made)

    def longer(self, parts: list[Ball], value: Any) -> Ball:
        """Sums and what is added to them, as one sum; its roundings take the place of theirs."""
        parts = [p for p in parts if p.radius is not None or np.ndim(p.value) or p.value != 0]
        if len(parts) == 1:
            return replace(parts[0], value=value)
        terms = sum(part.terms for part in parts)
        roundings = max(terms - 1, *(part.roundings for part in parts))
        sizes = [magnitude(part) for part in parts]
        radius = sum(
            part.bound + (self.growth(roundings) - self.growth(part.roundings)) * size
            for part, size in zip(parts, sizes, strict=True)
        )
        spare, total = roundings - (terms - 1), sum(sizes)
        radius = radius + self.flushed(len(parts) - 1, total)
        radius = self._surely(value, parts, radius)
        return self.bounded(self._added(Ball(value, radius, terms, total, spare), parts))

    def _surely(self, value: Any, parts: list[Ball], radius: Any) -> Any:
        """The radius of a sum, none where it is surely infinite or no number."""
        if np.all(np.isfinite(value)):
            return radius
        shape = np.shape(value)
        whole = [
            np.stack([np.broadcast_to(np.asarray(a, np.float64), shape) for a in arrays])
            for arrays in ([p.value for p in parts], [p.bound for p in parts])
        ]
        sure = settled_sum(
            value,
            [(whole[0], whole[1])],
            lambda added: np.sum(added[0] * added[1], axis=0),
            self.most,
        )
        return radius if sure is None else np.where(sure, 0.0, radius)

    def flushed(self, additions: int, total: Any) -> Any:
        """What so many additions lose to denormal partial sums, none of which exceeds `total`."""
        return additions * np.minimum(self.lost, total)

    def _added(self, found: Ball, parts: list[Ball]) -> Ball:
        """A sum that goes on a running one: its terms, and a radius that any order of them has."""
        if all(part.running is None for part in parts):
            return found
        found.running = functools.reduce(Running.plus, (running(part, self.unit) for part in parts))
        _, reach = coarse(self.unit)
        with np.errstate(invalid="ignore"):
            radius, most = found.running.radius(found.value, self._growths, reach, self.lost)
            radius = np.maximum(found.bound, np.where(np.isfinite(found.value), radius, 0.0))
            fits = (most <= self.most) | np.isnan(found.value)
        found.radius = np.where(fits, radius, np.inf)
        return found

    def _growths(self, roundings: Any) -> Any:
        """`growth` of every element."""
        numbers, places = np.unique(roundings, return_inverse=True)
        found = np.array([self.growth(int(number)) for number in numbers])
        return found[places].reshape(np.shape(roundings))

    def _coarse(self, a: Ball, b: Ball, value: Any) -> Any:
        """Where operands and result are multiples of a unit so large that any order is exact."""
        plain = partial(simple, unit=self.unit)
        found = plain(np.asarray(value, dtype=np.float64))
        if not np.any(found):
            return found
        return found & exactly(a, plain) & exactly(b, plain)

    def _integers(self, a: Ball, b: Ball, value: Any) -> bool:
        """Whether a sum is one of small whole numbers, which no format rounds."""
        with np.errstate(invalid="ignore"):
            return bool(
                np.ndim(a.value) + np.ndim(b.value) > 0
                and np.all(np.abs(value) < 1.0 / self.unit)
                and np.all(np.floor(a.value) == a.value)
                and np.all(np.floor(b.value) == b.value)
            )
