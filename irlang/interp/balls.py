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

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DType, integer_range
from irlang.interp import wide
from irlang.interp.ball import (
    Ball,
    ends,
    gamma,
    gap,
    least,
    magnitude,
    running,
    spread,
    unrounded_sum,
    whole,
)
from irlang.interp.ball_factors import moved
from irlang.interp.ball_functions import BallFunctions
from irlang.interp.ball_sure import no_number
from irlang.interp.ball_zeros import extreme_zero, sum_of_zero_products, sum_of_zeros
from irlang.interp.endless import separable, settled_product, settled_sum
from irlang.interp.plain import FOLD, Plain, contract, convert
from irlang.interp.running import Running

__all__ = ["Ball", "Balls", "gamma"]

Array = Any


class Balls(BallFunctions):
    """The domain of balls: what `vector.Plain` does, with radii."""

    any_order = True
    cached = 1 << 21  # what a sum is of is lost where it is put together from pieces

    def sum(self, terms: list[Ball]) -> Ball:
        """The sum of a few terms, which may be added up in any order."""
        terms = self.mixed(terms)
        if any(term.terms > 1 for term in terms):
            value = functools.reduce(lambda a, b: a + b, (term.value for term in terms))
            return replace(self.longer(terms, value), least=_together(terms))
        found = functools.reduce(lambda a, b: self.apply("+", [a, b]), terms)
        if np.asarray(found.value).dtype.kind != "f":
            return found
        total = np.asarray(sum(map(magnitude, terms)), dtype=np.float64)  # some may be integers
        slack = sum(term.bound for term in terms)
        more, most = self.summed(len(terms) - 1, 0, total, found.value, slack)
        # That one order rounds nothing, as where two terms cancel, says nothing of another. Of a
        # term that is a running sum it is not known what others its own terms may be added to.
        exact = not self.arithmetic.halved and found.running is None
        exact = exact & unrounded_sum(terms, total, self.unit, self.lost) & (most <= self.most)
        if found.radius is None and np.all(exact):
            return found
        with np.errstate(invalid="ignore"):
            radius = np.maximum(found.bound, slack + more)
            radius = np.where(most + more <= self.most, radius, np.inf)  # a part may overflow
        radius = np.where(exact, 0.0, radius)
        radius = np.where(np.isfinite(total), radius, found.bound)
        return self.bounded(replace(found, radius=radius))

    def number(self, value: eq.Scalar) -> Ball:
        """A number; one that the type cannot represent is off by its rounding."""
        if isinstance(value, (bool, int)):
            return Ball(wide.number(value))
        number = float(value)
        if not math.isfinite(number) or (isinstance(value, float) and self._exactly(number)):
            return Ball(number)
        if isinstance(value, Fraction) and self._exactly(number) and Fraction(number) == value:
            return Ball(number)
        radius = self.unit * abs(number) + self.lost
        return Ball(number, radius, least=number - radius)

    def _exactly(self, number: float) -> bool:
        with np.errstate(over="ignore"):
            return float(np.asarray(number).astype(self.dtype.numpy)) == number

    def array(self, value: Any) -> Ball:
        """Whole numbers or truth values, free of error."""
        return Ball(value)

    def parts(self, value: Ball, change: Callable[[Any], Any]) -> Ball:
        """A ball whose arrays are rearranged by `change`."""
        shape = np.shape(value.value)
        unsigned = None if value.signless is None else change(whole(value.signless, shape))
        if value.radius is None:
            found = Ball(change(value.value), signless=unsigned)
            found.factors, found.unrounded = moved(value.factors, change, shape), value.unrounded
            return found
        changed = Ball(change(value.value), change(whole(value.radius, shape)), least=value.least)
        changed.signless = unsigned
        if value.ends is not None:
            low, high = (change(whole(end, shape)) for end in value.ends)
            changed.ends = low, high
        if value.terms > 1:
            changed.terms, changed.spare = value.terms, value.spare
            changed.magnitude = change(whole(magnitude(value), shape))
        changed.factors, changed.unrounded = moved(value.factors, change, shape), value.unrounded
        if value.running is not None:
            changed.running = value.running.changed(lambda array: change(whole(array, shape)))
        return changed

    def padded(self, value: Ball, default: Ball, change: Callable[[Any, Any], Any]) -> Ball:
        """A ball rearranged with a default around it."""
        if value.radius is None and default.radius is None:
            return Ball(change(value.value, default.value))
        radius = np.asarray(np.broadcast_to(value.bound, np.shape(value.value)), order="C")
        floor = min(least(value), least(default))
        found = Ball(change(value.value, default.value), change(radius, default.bound), least=floor)
        if value.running is not None:
            shape, around = np.shape(value.value), running(default, self.unit)
            found.running = value.running.beside(
                around, lambda one, other: change(whole(one, shape), other)
            )
        return found

    def sample(self, value: Ball) -> Any:
        """The values alone."""
        return value.value

    def sure(self, value: Ball) -> bool:
        """Whether truth values are what they are whoever computes them."""
        return not np.any(value.bound)

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
            signless = extreme_zero(ball, value, axes)
            if radius is None:
                return Ball(value, signless=signless)
            full = replace(ball, radius=radius)
            lower, upper = (FOLD[kind](end, axis=axes) for end in ends(full))
            reach = spread(value, lower, upper)
            if not whole:  # whatever else there is, it is no number where one surely is none
                none = np.broadcast_to(no_number(ball), np.shape(ball.value))
                reach = np.where(np.any(none, axis=axes), 0.0, reach)
            return Ball(value, reach, least=ball.least, signless=signless)
        if radius is None and whole:
            return Ball(value)
        size = np.abs(ball.value) if radius is None else np.abs(ball.value) + radius
        if kind == "prod":
            total = np.prod(size, axis=axes)
            slack = 0.0 if radius is None else total - np.abs(value)
            if whole:
                return Ball(value, slack)
            # on the way, in some order: below the normal numbers, or beyond the largest
            least = np.prod(np.where(size > 0, np.minimum(size, 1.0), 1.0), axis=axes)
            most = np.prod(np.maximum(size, 1.0), axis=axes)
            slack = slack + np.where(least < self.tiny, np.abs(value), 0.0)
            reach = slack + self.growth(count) * total + self.lost
            reach = np.where(most > self.dtype.largest, np.inf, reach)
            return Ball(value, np.where(settled_product(ball, axes, self.tiny), 0.0, reach))
        own = 0.0 if radius is None else np.sum(radius, axis=axes)
        if whole and ball.ends is not None:
            shape = np.shape(ball.value)
            low, high = (np.sum(np.broadcast_to(end, shape), axis=axes) for end in ball.ends)
            reach = np.where(np.isinf(own), np.inf, spread(value, low, high))
            return Ball(value, reach, ends=(low, high))
        if whole:
            return Ball(value, own)
        made, total = self.summed(count - 1, 0, np.sum(size, axis=axes), value, own)
        floor = _together([ball])
        radius = own + made + self.flushed(count - 1, total)
        sure = settled_sum(
            value,
            [(ball.value, ball.radius)],
            lambda parts: np.sum(parts[0] * parts[1], axis=axes),
            self.most,
        )
        if sure is not None:
            radius = np.where(sure, 0.0, radius)
        zeros = sum_of_zeros(ball, value, axes)
        return self.bounded(Ball(value, radius, count, total, least=floor, signless=zeros))

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
        factors = self.mixed(factors)
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
        roundings = max(terms - 1 + len(factors) - 1, 1)
        made, most = self.summed(terms - 1, roundings - terms + 1, total, value, slack)
        radius = slack + made + terms * self.lost * self._vanished(factors)
        rougher = self.arithmetic.rougher(terms, len(factors), self.unit)
        if rougher > 0:
            radius = radius + rougher * total
        if self.arithmetic.fast:
            radius = radius + self._by_largest(factors, rank, terms)
        if len(factors) > 2 and self._peak(factors) * terms > self.dtype.largest:
            radius = np.inf * np.ones_like(value)  # a sum of products of two may overflow first
        floor = _together(factors)
        sure = settled_sum(
            value,
            [(f.value, f.radius) for f in factors],
            lambda parts: contract(list(parts), rank),
            self.most,
        )
        if sure is not None:
            radius = np.where(sure, 0.0, radius)
        more = self.narrowed(
            [(f.value, f.radius) for f in factors], terms, lambda parts: contract(parts, rank)
        )
        if more is not None:
            radius = radius + more
        apart = separable([(f.value, f.radius) for f in factors], rank, self.most)
        if apart is not None:
            radius = np.where(apart, np.inf, radius)
        zeros = sum_of_zero_products(factors, value, total, lambda parts: contract(parts, rank))
        ball = Ball(value, radius, roundings + 1, most, least=floor, signless=zeros)
        return self.bounded(ball)

    def _by_largest(self, factors: list[Ball], rank: int, terms: int) -> Any:
        """The error of a fast algorithm: every element of a factor counts as its largest."""
        wide = [np.abs(f.value) + np.zeros_like(f.value, np.float64) + f.bound for f in factors]
        bounds = [
            contract(
                [np.full_like(w, np.max(w, initial=0.0)) if w is own else w for w in wide], rank
            )
            for own in wide
        ]
        most = bounds[0]
        for bound in bounds[1:]:
            most = np.maximum(most, bound)
        return self.arithmetic.fast * self.growth(terms) * most

    def _vanished(self, factors: list[Ball]) -> float:
        """What the loss of a product of two, or of their sum, may be multiplied by thereafter."""
        if len(factors) < 3:
            return 1.0
        least = 1.0
        for factor in factors:
            size = np.abs(factor.value) - factor.bound
            least *= float(np.min(size, initial=1.0, where=np.asarray(factor.value) != 0))
        if least >= self.tiny:  # no product of some of them is a denormal number
            return 1.0
        return math.prod(sorted(map(_largest, factors))[2:])

    @staticmethod
    def _peak(factors: list[Ball]) -> float:
        """What no product of some of the factors exceeds."""
        return math.prod(map(_largest, factors))

    def place(self, kind: str, ball: Ball, among: Ball | None) -> Ball:
        """The position of the extreme element; uncertain where another may be it."""
        at = Plain().place(kind, ball.value, None if among is None else among.value)
        shape = np.shape(ball.value)
        possible = sure = np.ones(shape, dtype=bool)
        if among is not None:
            doubt = np.broadcast_to(np.asarray(among.bound) > 0, shape)
            asked = np.asarray(among.value, dtype=bool)
            possible, sure = asked | doubt, asked & ~doubt
        if ball.radius is None and np.all(possible == sure):
            return Ball(at)
        sign = 1.0 if kind == "argmax" else -1.0
        reach = sign * ball.value + ball.bound
        floor = np.take_along_axis(sign * ball.value - ball.bound, at[..., None], -1)
        floor = np.where(np.take_along_axis(sure, at[..., None], -1), floor, -np.inf)
        # not surely below: where nothing is known, a sum of infinities is NaN and compares false
        rivals = possible & ~(reach < floor)
        known = sure & (np.broadcast_to(ball.bound, shape) == 0)
        exact = np.all(~rivals | known, axis=-1)
        return Ball(at, np.where((np.sum(rivals, axis=-1) > 1) & ~exact, np.inf, 0.0))

    def pick(self, ball: Ball, at: Array, certain: Ball) -> Ball:
        """The elements at positions `at` along the last axis.

        Where it is in doubt which one is meant, any may be of which that is true or in doubt.
        """
        picked = self.parts(ball, lambda a: np.take_along_axis(a, at[..., None], -1)[..., 0])
        if certain.radius is None:
            return picked
        doubts = np.asarray(certain.radius) > 0
        apart = gap(ball.value, np.asarray(picked.value)[..., None]) + ball.bound
        apart = np.where(np.isnan(apart), np.inf, apart)  # of a NaN
        possible = np.asarray(certain.value, dtype=bool) | doubts
        reach = np.max(np.where(possible, apart, 0.0), axis=-1)
        if np.asarray(picked.value).dtype.kind not in "f":
            reach = np.where(reach > 0, np.inf, 0.0)  # a whole number that rounding has a say in
        reach = np.where(doubts.any(axis=-1), reach, picked.bound)
        return Ball(picked.value, reach, least=least(ball))

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

    def within(self, inside: Any, positions: list[Ball], shape: tuple[int, ...]) -> Ball:
        """Whether positions are inside a shape; in doubt where another is not surely outside."""
        doubtful, outside = np.zeros((), dtype=bool), np.zeros((), dtype=bool)
        for at, size in zip(positions, shape, strict=True):
            if at.radius is None:
                outside = outside | (np.asarray(at.value) < 0) | (np.asarray(at.value) >= size)
                continue
            with np.errstate(invalid="ignore"):
                least, most = at.value - at.bound, at.value + at.bound
            doubtful = doubtful | (np.asarray(at.bound) > 0)
            outside = outside | (most < 0) | (least >= size)
        if not doubtful.any():
            return Ball(np.asarray(inside))
        return Ball(np.asarray(inside), np.asarray(doubtful & ~outside, np.float64))

    def store(self, ball: Ball, info: eq.TensorInfo, shape: tuple[int, ...]) -> Ball:
        """Assignment to a tensor: conversion, and nothing finite beyond the largest number."""
        value = np.asarray(np.broadcast_to(convert(ball.value, info), shape), order="C")
        if info.kind == "real" and np.asarray(ball.value).dtype.kind in "iuO":
            ball = self.converted(ball)
        radius, beyond = ball.radius, ball.beyond
        if info.kind == "real":
            narrow = self.row(info.dtype)
            less = narrow.unit > self.unit or narrow.tiny > self.tiny  # digits, or range
            held = _held(narrow, value) & (np.asarray(ball.bound) == 0) if less else np.True_
            if not np.all(held):
                size = np.abs(value) + ball.bound  # wherever it lies, it is rounded there
                radius = np.where(held, 0.0, ball.bound + narrow.unit * size + narrow.tiny)
            with np.errstate(invalid="ignore"):
                over = np.isfinite(value) & (
                    np.abs(value) + (0 if radius is None else radius) > narrow.largest
                )
            if np.any(over):
                if beyond is None:
                    exact = np.asarray(ball.bound) == 0
                    beyond = exact & over & (np.abs(value) > narrow.largest * (1 + 2 * narrow.unit))
                radius = np.where(over, np.inf, 0.0 if radius is None else radius)
        elif radius is not None:
            radius = _wrapped(ball, info)
        if radius is not None:
            radius = whole(np.asarray(radius, dtype=np.float64), shape)
            # NaN: a radius that has no value says nothing
            radius = np.where(np.isnan(radius), np.inf, radius)
        stored = Ball(value, radius, least=ball.least if info.kind == "real" else -math.inf)
        if ball.terms > 1 and info.kind == "real":
            stored.terms, stored.spare = ball.terms, ball.spare
            stored.magnitude = whole(magnitude(ball), shape)
        if beyond is not None and info.kind == "real":
            stored.beyond = whole(beyond, shape)
        if ball.signless is not None and info.kind == "real":
            stored.signless = whole(ball.signless, shape)
        if ball.running is not None and info.kind == "real":
            stored.running = ball.running.changed(lambda array: whole(array, shape))
        if info.kind == "real":
            stored.factors, stored.unrounded = ball.factors, ball.unrounded
        if info.kind == "int" and ball.ends is not None and not np.any(np.isinf(radius)):
            low, high = (whole(end, shape) for end in ball.ends)
            stored.ends = low, high
        return stored

    def empty(self, info: eq.TensorInfo) -> Ball:
        """A tensor to be filled step by step."""
        return Ball(Plain().empty(info), np.zeros(info.shape))

    def adding(self, info: eq.TensorInfo) -> Ball:
        """The same, of a recurrence that adds to what it had before."""
        ball = self.empty(info)
        if info.kind == "real":
            ball.running = Running(*(np.zeros(info.shape) for _ in range(4)))
        return ball

    def assign(self, target: Ball, where: tuple[Any, ...], value: Ball) -> None:
        """Fills a part of a tensor."""
        target.value[where] = value.value
        target.radius[where] = value.bound
        if target.running is not None:
            target.running.assign(where, running(value, self.unit))


def _largest(factor: Ball) -> float:
    """What no element exceeds, nor 1. What is open says nothing of the others, nor does what is
    infinite to begin with, or no number.
    """
    size = np.abs(factor.value) + factor.bound
    known = np.where(np.isinf(size), 0.0, size)
    return max(1.0, float(np.fmax.reduce(known, axis=None, initial=0.0)))


def _together(parts: list[Ball]) -> float:
    """What a sum or a product of such numbers is not smaller than."""
    return 0.0 if all(least(part) >= 0 for part in parts) else -math.inf


def _wrapped(ball: Ball, info: eq.TensorInfo) -> Any:
    """The radius of what becomes a whole number or a truth value.

    Whole numbers wrap around: where some may do so once more than others, either end is meant.
    """
    given = np.asarray(ball.value)
    bound = np.asarray(ball.bound)
    if given.dtype.kind == "b":
        return bound
    value = np.asarray(given, dtype=np.float64)
    if info.kind == "bool":
        return ((bound > 0) & (np.abs(value) <= bound)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        low = np.trunc(np.maximum(value - bound, least(ball)))
        high = np.trunc(value + bound)
        first, last = integer_range(info.dtype)
        around = [np.floor((end - first) / (last - first + 1)) for end in (low, high)]
        known = (low == high) | (around[0] == around[1])
        reach = np.where(known, spread(np.trunc(value), low, high), np.inf)
    return np.where(bound > 0, reach, 0.0)


def _held(narrow: DType, value: Any) -> Any:
    """Which of these numbers a type has, and nobody flushes to zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        same = value.astype(narrow.numpy).astype(np.float64) == value
        normal = (value == 0) | (np.abs(value) >= narrow.tiny)
    return same & normal | np.isnan(value)


def _terms(arrays: list[Any], rank: int) -> int:
    """How many products one sum of a contraction has."""
    width = max(np.ndim(a) for a in arrays)
    if width == 0:
        return 1
    shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
    return math.prod(shape[rank:])
