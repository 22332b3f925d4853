"""What follows from indices alone, computed for every one of them: what weights come to that an
image is resized with, and whether a sum meets every element of a tensor.

Where no weight is negative and they add up to 1, what is between numbers lies among them; a cubic
that overshoots does so by no more than its weights say. A sum over all elements of a tensor of
parts, however it was reshaped before, is of all wholes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.equation_rules import factors_of
from irlang.interp.balls import Balls
from irlang.interp.interval import Numbers, number
from irlang.interp.parts import tell_apart
from irlang.interp.plain import Plain
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import own_index
from irlang.interp.vector import Vector
from irlang.interp.views import Frame
from irlang.interp.weights import Weights

_MOST = 1 << 22  # weights that are computed
_KEPT = 16  # sums of which they are remembered

Array = Any


class Interpolated(Weights):
    """An evaluator that knows what weights add up to that hang on indices alone."""

    def by_positions(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum of numbers that are weighted by where they are, or of weights, less what is beyond
        all of these.
        """
        inner = self.inner_box(expr, box) if expr.kind == "sum" else None
        if inner is None or expr.body is None or (expr.where and _reads(expr.where)):
            return found
        factors = factors_of(expr.body)
        weights = tuple(one for one in factors if not _reads(one) and self.kind(one) == "real")
        numbers = [one for one in factors if one not in weights]
        if not weights or len(numbers) > 1:
            return found
        ends = self.interval(numbers[0], inner, {}) if numbers else number(1.0)
        if not ends.finite or ends.empty:
            return found
        names = {name for name, _ in expr.binders}
        used = names.union(*map(eq.indices, weights), eq.indices(expr.where) if expr.where else ())
        ranges = tuple((name, *inner[name]) for name in inner if name in used)
        both = _weights(weights, expr.where, ranges, self.own.row.name)
        if both is None:
            return found
        summed = tuple(axis for axis, (name, _, _) in enumerate(ranges) if name in names)
        low, high = np.float64(ends.low), np.float64(ends.high)
        products = [weight * end for weight in both for end in (low, high)]
        count = math.prod(inner[name][1] + 1 for name in names)
        sizes = np.maximum.reduce([np.abs(one) for one in products])
        size = float(sizes.sum(axis=summed).max())
        slack = self.own.changed_by(count + len(factors)) * size + 4 * count * self.own.least
        if not size + slack <= self.own.largest:
            return found  # what is summed up so far may be too large, though it cancels at last
        least = float(np.minimum.reduce(products).sum(axis=summed).min()) - slack
        most = float(np.maximum.reduce(products).sum(axis=summed).max()) + slack
        if not (math.isfinite(least) and math.isfinite(most)):
            return found
        return self.cut(found, least, most, "what lies between numbers is weighted by where it is")

    def _weight_of_part(self, expr: eq.Expr, inner: Limits, names: Sequence[str]) -> float:
        """What the sizes of parts of wholes add up to at most; infinite where that is unknown."""
        best = super()._weight_of_part(expr, inner, names)
        every = None if math.isfinite(best) else self._every_whole(expr, inner, names)
        return best if every is None else every[0] * (1 + every[1])

    def _least_weight(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """What some terms that are not negative add up to at least, rounding aside."""
        best = super()._least_weight(expr, inner, names, depth)
        known = best > 0 or not depth or self.done()
        every = None if known else self._every_whole(expr, inner, names)
        return best if every is None else every[0] * max(0.0, 1 - every[1])

    def _every_whole(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str]
    ) -> tuple[int, float] | None:
        """How many wholes there are in a tensor of which each element is met once, and by which
        share the sum of all parts of one may be off; None where it is not so.
        """
        read = self.copies(expr, inner)[-1]
        if not isinstance(read, eq.Read) or read.default is not None:
            return None
        shape = self.infos[read.tensor].shape
        used = frozenset[str]().union(*map(eq.indices, read.index))
        ranges = tuple((name, *inner[name]) for name in inner if name in used)
        if not used <= set(names) or not _meets_all(read.index, ranges, shape):
            return None
        plain = eq.Read(read.tensor, tuple(eq.Index(own_index(at)) for at in range(len(shape))))
        box = self.one_box({own_index(at): (0, size - 1) for at, size in enumerate(shape)})
        part = self.part_of(plain, box)
        if part is None or part.more:
            return None
        taken = {name for one in part.at for name in eq.indices(one)}
        if not tell_apart(taken, part.at, box):
            return None
        if math.prod(box[name][1] + 1 for name in taken) != part.count:
            return None
        apart = math.prod(inner[name][1] + 1 for name in names if name not in used)
        return math.prod(shape) // part.count * apart, part.count * part.off


def _reads(expr: eq.Expr) -> bool:
    return any(isinstance(part, (eq.Read, eq.Inside)) for part in eq.walk(expr))


@lru_cache(_KEPT)
def _weights(
    factors: tuple[eq.Expr, ...],
    where: eq.Expr | None,
    ranges: tuple[tuple[str, int, int], ...],
    dtype: str,
) -> tuple[Array, Array] | None:
    """Between which numbers every product of some factors lies, in every order and rounding, at all
    indices that lie in ranges, ends included; 0 where a condition does not hold. None where they
    are too many, or no numbers.
    """
    shape = tuple(last + 1 - first for _, first, last in ranges)
    if math.prod(shape) > _MOST:
        return None
    frame = _frame(ranges)
    vector = Vector(Balls(dtype), {}, {})
    least, most = np.ones((1,) * len(shape)), np.ones((1,) * len(shape))
    with np.errstate(all="ignore"):
        for factor in factors:
            ball = vector(factor, frame)
            ends = [least * one for one in _ends(ball)] + [most * one for one in _ends(ball)]
            least, most = np.minimum.reduce(ends), np.maximum.reduce(ends)
        if where is not None:
            held = np.asarray(vector(where, frame).value)
            least, most = np.where(held, least, 0.0), np.where(held, most, 0.0)
    if not (np.isfinite(least).all() and np.isfinite(most).all()):
        return None
    return np.broadcast_to(least, shape), np.broadcast_to(most, shape)


@lru_cache(_KEPT)
def _meets_all(
    index: tuple[eq.Expr, ...], ranges: tuple[tuple[str, int, int], ...], shape: tuple[int, ...]
) -> bool:
    """Whether every place of a shape is met once, by indices that lie in ranges, ends included."""
    sizes = tuple(last + 1 - first for _, first, last in ranges)
    if math.prod(sizes) != math.prod(shape) or math.prod(shape) > _MOST or any(map(_reads, index)):
        return False
    frame = _frame(ranges)
    vector = Vector(Plain(), {}, {})
    place, met = np.zeros(sizes, np.int64), np.zeros(math.prod(shape), bool)
    for part, size in zip(index, shape, strict=True):
        at = np.asarray(vector(part, frame))
        if at.min() < 0 or at.max() >= size:
            return False
        place = place * size + at
    met[place] = True
    return bool(met.all())


def _frame(ranges: tuple[tuple[str, int, int], ...]) -> Frame:
    axes = {name: axis for axis, (name, _, _) in enumerate(ranges)}
    return Frame(axes, [(first, last + 1) for _, first, last in ranges])


def _ends(ball: Any) -> tuple[Array, Array]:
    return ball.value - ball.bound, ball.value + ball.bound
