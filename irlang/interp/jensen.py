"""Functions of means and means of functions: a curve that bends one way lies on one side of its
chords (Jensen's inequality).

The logarithm of a mean is no less than the mean of the logarithms, so that a geometric mean is no
more than the mean, nor a harmonic one; the logarithm of a sum of n exponentials is no less than
log(n) and the mean of the exponents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum, has_default
from irlang.interp.range_eval import Limits
from irlang.interp.triangles import Triangles
from irlang.interp.unfolding import settled
from irlang.scalar import SCALARS

_FAR_OFF = 0.125  # of a mean, which rounding may have made wrong
_FURTHER = 1.25  # times the error of a mean, as that is a share of another mean, hardly smaller
_SQUARED = 2.0  # a power that says nothing of a sign
_OPPOSITE = {"exp": "log", "log": "exp"}
_POWERS = {"sqrt": 0.5, "rsqrt": -0.5, "sq": 2.0}


@dataclass(frozen=True, slots=True)
class Curve:
    """`factor * base ** power`, or, with no power, an exponential or a logarithm of the base."""

    function: str
    base: eq.Expr
    power: float | None = None
    factor: float = 1.0

    @property
    def convex(self) -> bool:
        """Whether it lies below its chords, where the base is positive."""
        return self.function == "exp" if self.power is None else not 0 < self.power < 1


@dataclass(frozen=True, slots=True)
class _Mean:
    """`near * mean(body)` over indices of a box, which are so many."""

    body: eq.Expr
    count: int
    inner: Limits
    near: float


class Jensen(Triangles):
    """An evaluator that knows how a function of a mean lies to the mean of the function."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        term = self.meaning(atom, box) if rest.factors else None
        if term is None or not any(self._adds_up_to(other, box) for other in rest.factors):
            return
        for base in self._curved_over(term, below, box):
            yield from self._by_mean(atom, term, base, below, rest, box)

    def _curved_over(self, term: eq.Expr, below: bool, box: Limits) -> Iterator[eq.Expr]:
        """What a term may be a curve over: sums, alone or, as a curve that rises is no less
        without what was added and is not negative, in a sum.
        """
        base = _base_of(term)
        if base is None:
            return
        if self._adds_up_to(base, box):
            yield base
        look = self.meaning(base, box)
        if not (below and isinstance(look, eq.Apply) and look.function == "+"):
            return
        for one, other in (look.args, look.args[::-1]):
            if self._adds_up_to(one, box) and self.interval(other, box, {}).low >= 0:
                curve = self._curve(term, box)
                rises = curve is not None and (
                    curve.function == "log" or (curve.power is not None and 0 < curve.power < 1)
                )
                if rises and self.interval(one, box, {}).low >= 0:
                    yield one

    def _by_mean(
        self, atom: eq.Expr, term: eq.Expr, base: eq.Expr, below: bool, rest: Sum, box: Limits
    ) -> Iterator[Sum]:
        """The mean of a curve, for the curve over a mean."""
        found = self._mean(base, box)
        curve = None if found is None else self._curve(term, box)
        if found is None or curve is None or curve.convex == below:
            return
        curve = replace(curve, base=base)
        own = _Mean(*found)
        if own.count * self.own.row.unit > _FAR_OFF or own.near <= 0:
            return
        if has_default(own.body) or (own.near != 1 and curve.function == "exp"):
            return
        size = self.interval(atom, box, {}).magnitude
        for term, lost in self._applied(curve, own):
            error = self._off(atom, curve, own, lost, box)
            for mean in self._as_means(term, own, rest, box) if math.isfinite(error) else ():
                # f(n y) is so many times f(y), or so much more
                if curve.power is not None:
                    scaled = Sum({}).plus(mean, curve.factor * _raised(own.near, curve.power))
                else:
                    more = math.log(own.near) if curve.function == "log" else 0.0
                    scaled = mean.plus(Sum({}, more))
                if not all(map(math.isfinite, scaled.factors.values())):
                    continue
                if self._by_share and curve.function == "exp":
                    yield self._as_share(scaled, _FURTHER * error / max(size, self.own.least))
                else:
                    yield replace(scaled, error=scaled.error + error)

    def _as_share(self, made: Sum, share: float) -> Sum:
        """A sum times a number that is hardly more than 1, by a share of what it bounds."""
        scaled = Sum({}).plus(made, 1 + share)
        return replace(scaled, error=scaled.error + 2 * self.own.least)

    def _adds_up_to(self, expr: eq.Expr, box: Limits) -> bool:
        """Whether an expression is a sum, or may be a multiple of one, by how it is written."""
        term = self.meaning(expr, box)
        parts: tuple[eq.Expr, ...] = (term,)
        if isinstance(term, eq.Apply) and term.function in ("*", "/"):
            parts = term.args[: 1 + (term.function == "*")]
        terms = (self.meaning(part, box) for part in parts)
        return any(isinstance(one, eq.Reduce) and one.kind == "sum" for one in terms)

    def _curve(self, term: eq.Expr, box: Limits) -> Curve | None:
        """A term as one of these functions; None where its base may be where that bends otherwise,
        or may be 0.
        """
        if not isinstance(term, eq.Apply) or self.kind(term) != "real":
            return None
        if term.function == "*":
            square = self.square_of(term, box)
            term = term if square is None else eq.Apply("sq", (square,))
        base = _base_of(term)
        if base is None:
            return None
        power, factor = _POWERS.get(term.function), 1.0
        if term.function == "pow":
            exponent = self.value(term.args[1], box, {}).only
            power = None if exponent in (None, 0, 1) else float(exponent or 0)
        elif term.function == "/":
            over = self.value(term.args[0], box, {}).only
            factor = float(over or 0)
            power = -1.0 if over is not None and over > 0 else None
        if power is None and term.function not in _OPPOSITE:
            return None
        ends = self.interval(base, box, {})
        both = term.function == "exp" or power == _SQUARED  # these bend one way on both sides of 0
        if not ends.finite or ends.empty or (ends.low < 0 and not both):
            return None
        return Curve(term.function, base, power, factor)

    def _applied(self, curve: Curve, own: _Mean) -> Iterator[tuple[eq.Expr, tuple[float, float]]]:
        """The function of a term of the mean, but for its factor: as it would be written, or what
        the term is the inverse function of. With that by how much the term is rounded: a share of
        it, and what is lost beside.
        """
        for look in self.looks(own.body, own.inner):
            other = self._curve(look, own.inner)
            if other is None or not isinstance(look, eq.Apply):
                continue
            size = self.interval(other.base, own.inner, {})
            if other.power is None:
                met = _OPPOSITE.get(other.function) == curve.function
            else:
                met = curve.power is not None and other.power * curve.power == 1
                met = met and (size.low >= 0 or other.power == _SQUARED)
            if met and (other.function != "log" or size.low > 0):
                roundings = 2 * SCALARS[other.function].ulps + 1
                made = self.interval(own.body, own.inner, {}).magnitude
                share = self.own.changed_by(math.ceil(roundings))
                lost = share * made if other.function == "log" else 0.0
                times = _raised(other.factor, curve.power or 1.0)
                base = other.base
                if times != 1:
                    base = eq.Apply("*", (eq.Const(times), base))
                off = (0.0 if lost else share, lost + self.own.least)
                yield base, off
                if size.low < 0:  # the root of its square is its size, no less than its opposite
                    yield eq.Apply("neg", (base,)), off
                    yield eq.Apply("abs", (base,)), off
        if curve.power is None:
            yield eq.Apply(curve.function, (own.body,)), (0.0, 0.0)
        else:
            yield eq.Apply("pow", (own.body, eq.Const(curve.power))), (0.0, 0.0)

    def _off(
        self, atom: eq.Expr, curve: Curve, own: _Mean, lost: tuple[float, float], box: Limits
    ) -> float:
        """How far an element may be from the function of the exact mean. lost: of its terms."""
        terms, mean = (
            self.interval(one, at, {}) for one, at in ((own.body, own.inner), (curve.base, box))
        )
        size = self.interval(atom, box, {}).magnitude
        if not (terms.finite and mean.finite and math.isfinite(size)):
            return math.inf
        share, beside = self.own.changed_by(own.count + 4) + 2 * lost[0], own.near * lost[1]
        beside += (own.count + 2) * self.own.least * max(1.0, own.near)
        row = SCALARS[curve.function]
        rounding = 2 * (row.ulps + 1) * self.own.row.unit * max(size, row.least) + self.own.least
        if curve.function == "exp":
            beside += share * own.near * terms.magnitude
            return size * math.expm1(beside) + rounding if beside < _FAR_OFF else math.inf
        if terms.low < 0:
            return math.inf
        if curve.power is not None and 0 < curve.power < 1:  # as near to 0 as the mean may be
            return size * share * _FURTHER + curve.factor * _raised(beside, curve.power) + rounding
        power = abs(curve.power or 1.0)
        if curve.power is not None and curve.power >= 1:  # it is steepest where the mean is largest
            most = mean.high * (1 + share) + beside
            steep = power * curve.factor * _raised(most, power - 1)
            rounding += steep * beside
        else:
            share += math.inf if mean.low <= 0 else beside / mean.low
        if share * max(power, 1.0) >= _FAR_OFF:
            return math.inf
        by = 1.0 if curve.power is None else power * size
        return by * share * _FURTHER**2 + rounding

    def _as_means(self, term: eq.Expr, own: _Mean, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The mean of a term over all indices, by means that are elements of a sum, and by what is
        the same of all terms.
        """
        whole, apart = self.whole(term, own.inner), self.sum_of(term, own.inner, {})
        for made in (whole,) if whole == apart else (whole, apart):
            total: Sum | None = Sum({}, made.constant, made.error)
            for atom, factor in made.factors.items():
                if not eq.indices(atom) & (own.inner.keys() - box.keys()):
                    its: Sum | None = Sum({atom: 1.0})
                else:
                    its = self._its_mean(atom, own, rest, box)
                total = None if total is None or its is None else total.plus(its, factor)
            if total is not None:
                yield total

    def _its_mean(self, term: eq.Expr, own: _Mean, rest: Sum, box: Limits) -> Sum | None:
        """The mean of an element over all indices, as an element of a sum; None for none."""
        looks = self.looks(term, own.inner)
        curve = self._curve(term, own.inner)
        for other in rest.factors:
            found = self._mean(other, box)
            its = None if found is None else _Mean(*found)
            if its is None or its.count != own.count or not its.near or has_default(its.body):
                continue
            if list(its.inner.values()) != list(own.inner.values()):
                continue
            new: dict[str, eq.Expr] = {
                a: eq.Index(b) for a, b in zip(its.inner, own.inner, strict=True)
            }
            body = settled(eq.substitute(its.body, new))
            alike = any(look in looks for look in self.looks(body, own.inner))
            times = 1.0 if alike else self._times_curve(body, curve, own.inner)
            if not times:
                continue
            ends = self.interval(its.body, its.inner, {})
            share = self.own.changed_by(own.count + 4)
            if curve is not None:
                share += 2 * (SCALARS[curve.function].ulps + 1) * self.own.row.unit
            lost = (own.count + 2) * self.own.least * (1 + 1 / abs(its.near))
            if self._by_share and ends.low >= 0:
                return Sum({other: (1 + share) / its.near / times}, error=lost / times)
            error = share * ends.magnitude + lost
            if math.isfinite(error):
                return Sum({other: 1 / its.near / times}, error=error / times)
        return None

    def _times_curve(self, expr: eq.Expr, curve: Curve | None, box: Limits) -> float:
        """How many times a function of one base an expression is, however it is written; 0 for
        others.
        """
        for look in self.looks(expr, box) if curve is not None else ():
            its = self._curve(look, box)
            if its is None or curve is None or its.power != curve.power:
                continue
            same = its.power is not None or its.function == curve.function
            if same and set(self.looks(its.base, box)) & set(self.looks(curve.base, box)):
                return its.factor
        return 0.0


def _base_of(term: eq.Expr | None) -> eq.Expr | None:
    """What a term is a curve over, if it is one of these functions."""
    if not isinstance(term, eq.Apply):
        return None
    if term.function == "/":
        return term.args[1]
    return term.args[0] if term.function in (*_OPPOSITE, *_POWERS, "pow") else None


def _raised(base: float, power: float) -> float:
    """A power of a number that is not negative; infinite where it is too large, or of 0."""
    try:
        return float(base**power)
    except (OverflowError, ZeroDivisionError):
        return math.inf
