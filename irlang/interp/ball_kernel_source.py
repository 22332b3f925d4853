"""Equations over balls as the text of a numba kernel: every number with its radius.

The loops are those of `kernel_source`; each real number there is two here, and a sum keeps its
magnitude. What the rules of `ball_kernel_functions` do not cover (decisions that become whole
numbers or truth values of a tensor) raises `Unfit`: NumPy evaluates that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from irlang import equations as eq
from irlang.arithmetic import Allowance
from irlang.dtypes import DTYPES
from irlang.interp.ball_kernel_functions import ARITHMETIC, FUNCTIONS, HELPERS
from irlang.interp.balls import Balls
from irlang.interp.contraction import harmless
from irlang.interp.kernel_functions import COMPARE
from irlang.interp.kernel_source import Source, Writer
from irlang.interp.schedule import Recurrence

T = TypeVar("T")

RADIUS, SIZE = "±", "|"  # after a tensor's name: its radii, the magnitudes of its sums
_EXACT = "0.0"
_EXTREMES = {"max": "greater", "min": "lesser"}


class Unfit(Exception):
    """What a kernel over balls has no rule for."""


@dataclass(frozen=True, slots=True)
class Number:
    """The texts of a value and its radius; of a sum, its terms and the text of its magnitude.

    It says what `ball.Ball` says.
    """

    value: str
    radius: str = _EXACT
    terms: int = 1
    size: str = ""
    spare: int = 0

    @property
    def roundings(self) -> int:
        """How many roundings of the magnitude there are in the radius."""
        return self.terms - 1 + self.spare


@dataclass(frozen=True, slots=True)
class Operands:
    """What is known of the tensors that are read: which are exact, the terms and spare roundings of
    sums.

    shares: of a sum without an array of magnitudes, what to divide its radius by for a bound.
    """

    exact: frozenset[str] = frozenset()
    terms: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)


def generate(
    step: eq.Equation | Recurrence,
    infos: Mapping[str, eq.TensorInfo],
    domain: Balls,
    operands: Operands,
    kept: frozenset[str] = frozenset(),
) -> tuple[Source, dict[str, tuple[int, int]]]:
    """The kernel of an equation or a recurrence, and the terms of the results that are sums.

    kept: the targets whose magnitudes are wanted where they are sums. Raises `Unfit`.
    """
    said = domain.arithmetic
    if said.distributes or said.factors or said.sums or said.fast or said.halved:
        raise Unfit("sums that have more than their own roundings")
    known = dict(infos)
    for name, info in infos.items():
        if info.kind == "real":
            known[name + RADIUS] = known[name + SIZE] = eq.TensorInfo(info.shape, "f64")
    writer = _Writer(known, helpers=HELPERS, domain=domain, operands=operands, kept=kept)
    if isinstance(step, Recurrence):
        writer.recurrence(step)
    else:
        writer.equation(step, None)
    return writer.source(), writer.sums


def written_out(expr: eq.Expr) -> list[eq.Expr]:
    """What a sum that is written out adds up: `a + b + c`."""
    if isinstance(expr, eq.Apply) and expr.function == "+":
        return [term for arg in expr.args for term in written_out(arg)]
    return [expr]


@dataclass(slots=True)
class _Writer(Writer):
    domain: Balls = field(default_factory=lambda: Balls("f32"))
    operands: Operands = field(default_factory=Operands)
    kept: frozenset[str] = frozenset()
    sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    guarded: bool = True  # whether what is not chosen is not evaluated either
    known: dict[eq.Expr, Number] = field(default_factory=dict)  # before the innermost loop

    # ---- numbers

    def constant(self, label: str, value: float) -> str:
        return self.real.setdefault((label, value), f"r{len(self.real)}")

    def gamma(self, roundings: int) -> str:
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
    def limits(self) -> tuple[str, str, str]:
        """`tiny`, `largest` and `unit`."""
        dtype = self.domain.dtype
        return (
            self.constant("tiny", self.domain.tiny),
            self.constant("largest", dtype.largest),
            self.constant("unit", self.domain.unit),
        )

    def pair(self, text: str) -> Number:
        """A call that gives a value and a radius."""
        v, r = self.fresh("v"), self.fresh("e")
        self.put(f"{v}, {r} = {text}")
        return Number(v, r)

    # ---- equations

    def equation(self, equation: eq.Equation, fixed: tuple[int, str] | None) -> None:
        """The loops of one equation; fixed: an axis that is at a step, and the step's variable."""
        info = equation.info
        if info.kind != "real" or DTYPES[info.dtype].unit > self.domain.unit:
            raise Unfit(equation.target)
        depth = self.depth
        position = ", ".join(self.loops(equation, fixed)) or "0"
        number = self.ball(equation.body)
        most = self.constant("most", DTYPES[info.dtype].largest)
        value, radius = self.fresh("v"), self.fresh("e")
        self.put(f"{value} = {number.value}")
        self.put(f"{radius} = held({value}, {number.radius}, {most})")
        self.put(f"{self.tensor(equation.target)}[{position}] = {value}")
        self.put(f"{self.tensor(equation.target + RADIUS)}[{position}] = {radius}")
        if number.size and equation.target in self.kept:
            self.sums[equation.target] = number.terms, number.spare
            self.put(f"{self.tensor(equation.target + SIZE)}[{position}] = {number.size}")
        self.depth = depth
        self.known = {}

    def ahead(self, body: eq.Expr) -> None:
        """Evaluates what does not need the loops to come, outside of them.

        A compiler does not: for all that it knows the results may lie in what is read.
        """
        if body in self.known or not isinstance(body, eq.Apply):
            return
        free = eq.indices(body)
        if free <= self.indices.keys():
            if self.kind(body) == "real" and harmless(body, self.bounds, self.infos):
                self.known[body] = self.ball(body)
            return
        for part in body.args[:1] if body.function in ("select", "and", "or") else body.args:
            self.ahead(part)

    # ---- real numbers

    def ball(self, expr: eq.Expr) -> Number:
        """The number of an expression; statements that it needs are written before."""
        if expr in self.known:
            return self.known[expr]
        if self.kind(expr) != "real":
            return Number(self.convert(self.plain(expr), self.kind(expr), "real"))
        match expr:
            case eq.Const() | eq.Size():
                return self.number(expr)
            case eq.Read():
                return self.read_ball(expr)
            case eq.Apply():
                return self.apply_ball(expr)
            case eq.Reduce():
                return self.reduce_ball(expr)
        raise Unfit(str(expr))

    def plain(self, expr: eq.Expr) -> str:
        """A whole number or a truth value that no rounding has a say in."""
        for part in eq.walk(expr):
            if self.kind(part) == "real":
                raise Unfit(str(part))
            if isinstance(part, eq.Read) and part.tensor not in self.operands.exact:
                raise Unfit(part.tensor)
        return self.value(expr)

    def number(self, expr: eq.Const | eq.Size) -> Number:
        label = expr.label if isinstance(expr, eq.Size) else ""
        made = self.domain.number(expr.value)
        value = self.constant(label, float(made.value))
        if made.radius is None:
            return Number(value)
        return Number(value, self.constant(f"{label}{RADIUS}", float(made.radius)))

    def element(self, name: str, position: list[str]) -> Number:
        at = ", ".join(f"np.uint64({p})" for p in position) or "0"
        info = self.infos[name]
        value = self.convert(f"{self.tensor(name)}[{at}]", info.kind, "real")
        if name in self.operands.exact:
            return Number(value)
        if info.kind != "real":
            raise Unfit(name)
        terms, spare = self.operands.terms.get(name, self.sums.get(name, (1, 0)))
        radius = f"{self.tensor(name + RADIUS)}[{at}]"
        size = ""
        if name in self.operands.shares:
            size = f"({radius} / {self.constant('share', self.operands.shares[name])})"
        elif terms > 1:
            size = f"{self.tensor(name + SIZE)}[{at}]"
        return Number(value, radius, terms, size, spare)

    def read_ball(self, expr: eq.Read) -> Number:
        if any(self.kind(part) == "real" for part in expr.index):
            raise Unfit("a position that is rounded")
        for part in expr.index:
            self.plain(part)
        position = self.positions(expr.index)
        tests = self.tests(expr, position)
        number = self.element(expr.tensor, position)
        if not tests:
            return number
        inside = " and ".join(tests)
        if expr.default is None:
            if not self.guarded:
                raise Unfit("a read that only a rounded decision keeps inside")
            self.reads.append(expr)
            with self.block(f"if not ({inside}):"):
                self.report(1, len(self.reads) - 1, position)
            return number
        default = expr.default
        return self.chosen(
            inside, lambda: replace(number, terms=1, size="", spare=0), lambda: self.ball(default)
        )

    def chosen(self, condition: str, yes: Callable[[], Number], no: Callable[[], Number]) -> Number:
        """One of two numbers, of which only that one is evaluated."""
        value, radius = self.fresh("v"), self.fresh("e")
        exact = True
        for head, arm in ((f"if {condition}:", yes), ("else:", no)):
            with self.block(head):
                number = arm()
                exact = exact and number.radius == _EXACT
                self.put(f"{value} = float({number.value})")
                self.put(f"{radius} = {number.radius}")
        return Number(value, _EXACT if exact else radius)

    def unguarded(self, make: Callable[[], T]) -> T:
        """What is evaluated whether it is chosen or not."""
        kept, self.guarded = self.guarded, False
        made = make()
        self.guarded = kept
        return made

    # ---- functions

    def apply_ball(self, expr: eq.Apply) -> Number:
        function = expr.function
        if function == "select":
            return self.select_ball(*expr.args)
        terms = written_out(expr)
        if len(terms) > 2:
            return self.any_order(list(map(self.ball, terms)))
        if function in ARITHMETIC:
            return self.arithmetic(function, *map(self.ball, expr.args))
        if function in _EXTREMES:
            a, b = map(self.ball, expr.args)
            if a.radius == b.radius == _EXACT:
                return Number(f"{_EXTREMES[function]}({a.value}, 0.0, {b.value}, 0.0)[0]")
            return self.pair(f"{_EXTREMES[function]}({a.value}, {a.radius}, {b.value}, {b.radius})")
        if function in ("neg", "abs", "real"):
            number = self.ball(expr.args[0])
            text = {"neg": "(-{})", "abs": "abs({})", "real": "{}"}[function]
            return replace(number, value=text.format(number.value))
        if function in FUNCTIONS:
            a = self.ball(expr.args[0])
            largest = self.limits[1]
            place = ", ".join(self.allowed(function))
            return self.pair(f"ball_{function}({a.value}, {a.radius}, {place}, {largest})")
        raise Unfit(function)

    def arithmetic(self, function: str, a: Number, b: Number) -> Number:
        if function in "+-":
            if b.value[:1] != "(" and not b.value.isidentifier():
                b = replace(b, value=f"({b.value})")
            if a.terms + b.terms > 2:
                value = self.fresh("v")
                self.put(f"{value} = {a.value} {function} {b.value}")
                return self.longer([a, b], value)
        right = f"(-{b.value})" if function == "-" else b.value
        own = (*self.allowed(function), *self.limits)
        given = ", ".join((a.value, a.radius, right, b.radius, *own))
        return self.pair(f"{ARITHMETIC[function]}({given})")

    def any_order(self, terms: list[Number]) -> Number:
        """A sum of a few terms, which may be added up in any order."""
        if any(term.terms > 1 for term in terms):
            value = self.fresh("v")
            self.put(f"{value} = {' + '.join(term.value for term in terms)}")
            return self.longer(terms, value)
        found = functools.reduce(lambda a, b: self.arithmetic("+", a, b), terms)
        radii = [term.radius for term in terms if term.radius != _EXACT]
        slack = " + ".join(radii) or _EXACT
        sizes = [f"abs({term.value}) + {term.radius}" for term in terms]
        growth = self.gamma(len(terms) - 1)
        radius = self.fresh("e")
        given = f"{found.value}, {found.radius}, {slack}, {' + '.join(sizes)}, {growth}"
        self.put(f"{radius} = any_order({given}, {self.limits[1]})")
        return replace(found, radius=radius)

    def longer(self, parts: list[Number], value: str) -> Number:
        """Sums and what is added to them, as one sum; its roundings take the place of theirs."""
        parts = [p for p in parts if p.radius != _EXACT or p.value not in self.zeros]
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
        self.put(f"{radius} = bounded({value}, {' + '.join(radii)}, {total}, {self.limits[1]})")
        return Number(value, radius, terms, total, roundings - (terms - 1))

    @property
    def zeros(self) -> frozenset[str]:
        """The texts of zero."""
        own = (name for (_, value), name in self.real.items() if value == 0)
        return frozenset({"0.0", "float(0)", *own})

    def select_ball(self, condition: eq.Expr, yes: eq.Expr, no: eq.Expr) -> Number:
        text, doubt = self.truth(condition)
        if not doubt:
            return self.chosen(text, lambda: self.ball(yes), lambda: self.ball(no))
        a, b = self.unguarded(lambda: (self.ball(yes), self.ball(no)))
        return self.either(text, doubt, a, b)

    def either(self, text: str, doubt: str, a: Number, b: Number) -> Number:
        """One of two numbers; where that is in doubt, the middle, as far as both."""
        value, radius = self.fresh("v"), self.fresh("e")
        self.put(f"{value} = {a.value} if {text} else {b.value}")
        self.put(f"{radius} = {a.radius} if {text} else {b.radius}")
        with self.block(f"if {doubt}:"):
            apart = self.fresh("e")
            self.put(f"{apart} = gap({a.value}, {b.value})")
            with self.block(f"if math.isfinite({apart}):"):
                self.put(f"{value} = {a.value} / 2.0 + {b.value} / 2.0")
                self.put(f"{apart} /= 2.0")
            self.put(f"{radius} = {apart} + max({a.radius}, {b.radius})")
        return Number(value, radius)

    # ---- truth values

    def truth(self, expr: eq.Expr) -> tuple[str, str]:
        """A condition and the text of its doubt, "" where there is none."""
        if not isinstance(expr, eq.Apply) or all(self.kind(p) != "real" for p in eq.walk(expr)):
            return self.convert(self.plain(expr), self.kind(expr), "bool"), ""
        if expr.function == "not":
            text, doubt = self.truth(expr.args[0])
            return f"(not {text})", doubt
        if expr.function in ("and", "or"):
            return self.both(expr.function, *expr.args)
        if expr.function in ("isnan", "isinf"):
            a = self.ball(expr.args[0])
            doubt = "" if a.radius == _EXACT else f"({a.radius} == np.inf)"
            return f"math.{expr.function}({a.value})", doubt
        if expr.function not in COMPARE:
            raise Unfit(expr.function)
        a, b = map(self.ball, expr.args)
        text = COMPARE[expr.function].format(a.value, b.value)
        if a.radius == b.radius == _EXACT:
            return text, ""
        if expr.args[0] == expr.args[1]:  # whether it is a number
            return text, f"({a.radius} == np.inf)"
        return text, f"near({a.value}, {a.radius}, {b.value}, {b.radius})"

    def both(self, function: str, first: eq.Expr, second: eq.Expr) -> tuple[str, str]:
        """`and` and `or`; what the first settles the second is not asked."""
        text, doubt = self.truth(first)
        truth, doubtful = self.fresh("c"), self.fresh("d")
        settled = f"not {text}" if function == "and" else text
        if not doubt:
            with self.block(f"if {settled}:"):
                self.put(f"{truth} = {function == 'or'}")
                self.put(f"{doubtful} = False")
            with self.block("else:"):
                other, unsure = self.truth(second)
                self.put(f"{truth} = bool({other})")
                self.put(f"{doubtful} = bool({unsure or 'False'})")
            return truth, doubtful if unsure else ""
        other, unsure = self.unguarded(lambda: self.truth(second))
        unsure = unsure or "False"
        decided = f"not ({other})" if function == "and" else other
        self.put(f"{truth} = ({text}) {function} ({other})")
        self.put(
            f"{doubtful} = (({doubt}) or ({unsure})) and not (not ({doubt}) and ({settled})) "
            f"and not (not ({unsure}) and ({decided}))"
        )
        return truth, doubtful

    # ---- reductions

    def reduce_ball(self, expr: eq.Reduce) -> Number:
        if expr.kind not in ("sum", "max", "min") or expr.body is None:
            raise Unfit(expr.kind)
        count = 1
        for _, bound in expr.binders:
            if not isinstance(bound, (eq.Const, eq.Size)):
                raise Unfit("a bound that is not known")
            count *= max(int(bound.value), 0)
        if not count:
            raise Unfit("nothing to reduce")
        total = expr.kind == "sum"
        names = [self.fresh("a") for _ in range(3)]  # value, radii, magnitudes; or value, low, high
        for name in names:
            self.put(
                f"{name} = {_EXACT if total else '-np.inf' if expr.kind == 'max' else 'np.inf'}"
            )
        depth = self.depth
        for name, bound in expr.binders:
            variable = self.fresh("i")
            limit = self.value(bound)
            self.indices[name], self.bounds[name] = variable, bound
            self.put(f"for {variable} in range({limit}):")
            self.depth += 1
        text, doubt = ("", "") if expr.where is None else self.truth(expr.where)
        neutral = Number(_EXACT if total else "-np.inf" if expr.kind == "max" else "np.inf")
        if doubt:
            body = expr.body
            number = self.unguarded(lambda: self.ball(body))
            number = self.either(text, doubt, number, neutral)
        else:
            if text:
                self.put(f"if {text}:")
                self.depth += 1
            number = self.ball(expr.body)
        self.accumulate(expr.kind, number, names)
        self.depth = depth
        value, other, last = names
        exact = number.radius == _EXACT
        if not total:
            if exact:
                return Number(value)
            radius = self.fresh("e")
            self.put(f"{radius} = spread({value}, {other}, {last})")
            return Number(value, radius)
        if count == 1:
            return Number(value, _EXACT if exact else other)
        radius = self.fresh("e")
        self.put(
            f"{radius} = bounded({value}, {other} + {self.gamma(count - 1)} * {last}, {last}, "
            f"{self.limits[1]})"
        )
        return Number(value, radius, count, last)

    def accumulate(self, kind: str, number: Number, names: list[str]) -> None:
        """What one round of the innermost loop does."""
        value, other, last = names
        v, exact = self.fresh("v"), number.radius == _EXACT
        self.put(f"{v} = {number.value}")
        e = number.radius
        if not exact and not e.isidentifier():
            e = self.fresh("e")
            self.put(f"{e} = {number.radius}")
        if kind == "sum":
            self.put(f"{value} += {v}")
            if not exact:
                self.put(f"{other} += {e}")
            self.put(f"{last} += abs({v})" + ("" if exact else f" + {e}"))
            return
        take = "largest_of" if kind == "max" else "smallest_of"
        self.put(f"{value} = {take}({value}, {v})")
        if not exact:
            self.put(f"{other} = {take}({other}, {v} - {e})")
            self.put(f"{last} = {take}({last}, {v} + {e})")
