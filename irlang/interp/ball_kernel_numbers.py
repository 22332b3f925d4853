"""Numbers with radii in the text of a kernel: constants, arithmetic and sums over balls."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace

from irlang import equations as eq
from irlang.arithmetic import Allowance
from irlang.interp.ball import coarse, far_above
from irlang.interp.ball_kernel_functions import ARITHMETIC
from irlang.interp.balls import Balls
from irlang.interp.kernel_source import Writer

RADIUS, SIZE = "±", "|"  # after a tensor's name: its radii, the magnitudes of its sums
EXACT = "0.0"


class Unfit(Exception):
    """What a kernel over balls has no rule for."""


@dataclass(frozen=True, slots=True)
class Number:
    """The texts of a value and its radius; of a sum, its terms and the text of its magnitude.

    It says what `ball.Ball` says.
    """

    value: str
    radius: str = EXACT
    terms: int = 1
    size: str = ""
    spare: int = 0
    least: float = -math.inf

    @property
    def roundings(self) -> int:
        """How many roundings of the magnitude there are in the radius."""
        return self.terms - 1 + self.spare


def written_out(expr: eq.Expr) -> list[eq.Expr]:
    """What a sum that is written out adds up: `a + b + c`."""
    if isinstance(expr, eq.Apply) and expr.function == "+":
        return [term for arg in expr.args for term in written_out(arg)]
    return [expr]


@dataclass(slots=True)
class NumberWriter(Writer):
    """Writes numbers with radii; domain: whose arithmetic they have."""

    domain: Balls = field(default_factory=lambda: Balls("f32"))

    def constant(self, label: str, value: float) -> str:
        """The name of a number that the kernel is given."""
        return self.real.setdefault((label, value), f"r{len(self.real)}")

    def gamma(self, roundings: int) -> str:
        """The name of what so many roundings make of a relative error."""
        return self.constant("gamma", self.domain.growth(roundings))

    def allowed(self, function: str) -> tuple[str, str, str]:
        """`place`, `absolute` and `least` of a function."""
        own = self.domain.allowed(function)
        correct = function in ARITHMETIC and own.ulps <= 0.5
        if correct:
            own = Allowance(0.5)
        last = 2 * self.domain.unit
        return (
            self.constant("place", last * own.ulps),
            self.constant("absolute", last * own.absolute),
            self.constant("least", self.domain.lost if correct else self.domain.tiny),
        )

    @property
    def limits(self) -> tuple[str, str, str, str]:
        """`tiny`, `largest`, `grid` and `reach`."""
        dtype = self.domain.dtype
        grid, reach = coarse(self.domain.unit)
        return (
            self.constant("tiny", self.domain.tiny),
            self.constant("largest", dtype.largest),
            self.constant("grid", grid),
            self.constant("reach", reach),
        )

    def pair(self, text: str) -> Number:
        """A call that gives a value and a radius."""
        v, r = self.fresh("v"), self.fresh("e")
        self.put(f"{v}, {r} = {text}")
        return Number(v, r)

    def number(self, expr: eq.Const | eq.Size) -> Number:
        """A number of the text or of the call."""
        label = expr.label if isinstance(expr, eq.Size) else ""
        made = self.domain.number(expr.value)
        value = self.constant(label, float(made.value))
        if made.radius is None:
            return Number(value, least=float(made.value))
        return Number(
            value, self.constant(f"{label}{RADIUS}", float(made.radius)), least=made.least
        )

    def bottom(self, number: Number) -> str:
        """The text of what a number is not smaller than."""
        return "-np.inf" if number.least == -math.inf else self.constant("least", number.least)

    def arithmetic(self, function: str, a: Number, b: Number) -> Number:
        """A sum, a difference, a product or a quotient."""
        floor = self.domain.floor(function, a.least, b.least)
        if function == "*" and a == b:
            floor = 0.0
        if function in "+-":
            if b.value[:1] != "(" and not b.value.isidentifier():
                b = replace(b, value=f"({b.value})")
            if a.terms + b.terms > 2:
                value = self.fresh("v")
                self.put(f"{value} = {a.value} {function} {b.value}")
                return replace(self.longer([a, b], value), least=floor)
        right = f"(-{b.value})" if function == "-" else b.value
        own = [*self.allowed(function), *self.limits]
        if function == "/":
            own.append(self.bottom(b))
        given = ", ".join((a.value, a.radius, right, b.radius, *own))
        return replace(self.pair(f"{ARITHMETIC[function]}({given})"), least=floor)

    def any_order(self, terms: list[Number]) -> Number:
        """A sum of a few terms, which may be added up in any order."""
        if any(term.terms > 1 for term in terms):
            value = self.fresh("v")
            self.put(f"{value} = {' + '.join(term.value for term in terms)}")
            floor = 0.0 if all(term.least >= 0 for term in terms) else -math.inf
            return replace(self.longer(terms, value), least=floor)
        found = functools.reduce(lambda a, b: self.arithmetic("+", a, b), terms)
        radii = [term.radius for term in terms if term.radius != EXACT]
        slack = " + ".join(radii) or EXACT
        sizes = [f"abs({term.value}) + {term.radius}" for term in terms]
        growth = self.gamma(len(terms) - 1)
        total, far, radius = self.fresh("s"), self.fresh("s"), self.fresh("e")
        self.put(f"{total} = {' + '.join(sizes)}")
        times, floor = far_above(self.domain.unit, self.domain.lost)
        high = f"{self.constant('far', times)} * {total}"
        self.put(f"{far} = larger({high}, {self.constant('floor', floor)})")
        exact = " & ".join(f"kept({term.value}, {term.radius}, {far})" for term in terms)
        given = f"{found.value}, {found.radius}, {slack}, {total}, {growth}"
        self.put(f"{radius} = any_order({given}, {self.limits[1]}, {exact})")
        return replace(found, radius=radius)

    def longer(self, parts: list[Number], value: str) -> Number:
        """Sums and what is added to them, as one sum; its roundings take the place of theirs."""
        parts = [p for p in parts if p.radius != EXACT or p.value not in self.zeros]
        if len(parts) == 1:
            return replace(parts[0], value=value)
        terms = sum(part.terms for part in parts)
        roundings = max(terms - 1, *(part.roundings for part in parts))
        sizes, radii = [], []
        for part in parts:
            size = self.fresh("s")
            self.put(f"{size} = {part.size or f'abs({part.value}) + {part.radius}'}")
            sizes.append(size)
            radii.append(part.radius)
            if part.roundings < roundings:
                growth = self.domain.growth
                more = growth(roundings) - growth(part.roundings)
                radii.append(f"{self.constant('more', more)} * {size}")
        total, radius = self.fresh("s"), self.fresh("e")
        self.put(f"{total} = {' + '.join(sizes)}")
        radii.append(self.flushed(len(parts) - 1, total))
        self.put(f"{radius} = bounded({value}, {' + '.join(radii)}, {total}, {self.limits[1]})")
        return Number(value, radius, terms, total, roundings - (terms - 1))

    def flushed(self, additions: int, total: str) -> str:
        """The text of what so many additions lose to denormal partial sums."""
        lost = self.constant("lost", self.domain.lost)
        return f"{float(additions)!r} * smaller({lost}, {total})"

    @property
    def zeros(self) -> frozenset[str]:
        """The texts of zero."""
        own = (name for (_, value), name in self.real.items() if value == 0)
        return frozenset({"0.0", "float(0)", *own})

    def either(self, text: str, doubt: str, a: Number, b: Number) -> Number:
        """One of two numbers; where that is in doubt, the middle, as far as both."""
        value, radius = self.fresh("v"), self.fresh("e")
        self.put(f"{value} = {a.value} if {text} else {b.value}")
        self.put(f"{radius} = {a.radius} if {text} else {b.radius}")
        with self.block(f"if {doubt}:"):
            apart = self.fresh("e")
            self.put(f"{apart} = gap({a.value}, {b.value})")
            with self.block(f"if finite({apart}):"):
                self.put(f"{value} = {a.value} / 2.0 + {b.value} / 2.0")
                self.put(f"{apart} /= 2.0")
            self.put(f"{radius} = {apart} + larger({a.radius}, {b.radius})")
        return Number(value, radius, least=min(a.least, b.least))
