"""Equations over balls as the text of a numba kernel: every number with its radius.

The loops are those of `kernel_source`; each real number there is two here, and a sum keeps its
magnitude. What the rules of `ball_kernel_functions` do not cover (decisions that become whole
numbers or truth values of a tensor) raises `Unfit`: NumPy evaluates that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from irlang import equations as eq
from irlang.affine import interval
from irlang.dtypes import DTYPES
from irlang.interp.ball import Ball
from irlang.interp.ball_kernel_functions import ARITHMETIC, FUNCTIONS, HELPERS
from irlang.interp.ball_kernel_numbers import (
    EXACT,
    RADIUS,
    SIZE,
    Number,
    NumberWriter,
    Unfit,
    written_out,
)
from irlang.interp.balls import Balls
from irlang.interp.contraction import harmless
from irlang.interp.kernel_functions import COMPARE
from irlang.interp.kernel_source import Source
from irlang.interp.schedule import Recurrence

T = TypeVar("T")

_EXTREMES = {"max": "greater", "min": "lesser"}


@dataclass(frozen=True, slots=True)
class Operands:
    """What is known of the tensors that are read: which are exact, the terms and spare roundings of
    sums.

    shares: of a sum without an array of magnitudes, what to divide its radius by for a bound.
    positive: those of which no element is negative. small: the whole numbers that the type has.
    """

    exact: frozenset[str] = frozenset()
    terms: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    positive: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()


def generate(
    step: eq.Equation | Recurrence,
    infos: Mapping[str, eq.TensorInfo],
    domain: Balls,
    operands: Operands,
    kept: frozenset[str] = frozenset(),
) -> tuple[Source, dict[str, tuple[int, int]], dict[str, float]]:
    """The kernel of an equation or a recurrence, the terms of the results that are sums, and what
    no element of a result is smaller than.

    kept: the targets whose magnitudes are wanted where they are sums. Raises `Unfit`.
    """
    said = domain.arithmetic
    if said.distributes or said.factors or said.sums or said.fast or said.halved:
        raise Unfit("sums that have more than their own roundings")
    if said.far:
        raise Unfit("another range than that of the type")
    known = dict(infos)
    for name, info in infos.items():
        if info.kind == "real":
            known[name + RADIUS] = known[name + SIZE] = eq.TensorInfo(info.shape, "f64")
    writer = _Writer(known, helpers=HELPERS, domain=domain, operands=operands, kept=kept)
    if isinstance(step, Recurrence):
        writer.recurrence(step)
    else:
        writer.equation(step, None)
    return writer.source(), writer.sums, writer.least


@dataclass(slots=True)
class _Writer(NumberWriter):
    operands: Operands = field(default_factory=Operands)
    kept: frozenset[str] = frozenset()
    sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    guarded: bool = True  # whether what is not chosen is not evaluated either
    known: dict[eq.Expr, Number] = field(default_factory=dict)  # before the innermost loop

    # ---- equations

    def equation(self, equation: eq.Equation, fixed: tuple[int, str] | None) -> None:
        """The loops of one equation; fixed: an axis that is at a step, and the step's variable."""
        info = equation.info
        row = DTYPES[info.dtype]
        if info.kind != "real" or row.unit > self.domain.unit or row.tiny > self.domain.tiny:
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
        self.least[equation.target] = number.least
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
            if self.kind(expr) == "int" and not self.held(expr):
                raise Unfit("whole numbers that the type may not have")
            text = self.convert(self.plain(expr), self.kind(expr), "real")
            least = float(expr.value) if isinstance(expr, (eq.Const, eq.Size)) else -math.inf
            return Number(text, least=least)
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

    def held(self, expr: eq.Expr) -> bool:
        """Whether the type surely has a whole number."""
        if isinstance(expr, eq.Read) and expr.tensor in self.operands.small:
            return expr.default is None or self.held(expr.default)
        ends = interval(expr, self.bounds, self.infos)
        if ends is None:
            return False
        if ends[0] == ends[1]:
            return self.domain.converted(Ball(ends[0])).radius is None
        return max(map(abs, ends)) * self.domain.unit <= 1

    def plain(self, expr: eq.Expr) -> str:
        """A whole number or a truth value that no rounding has a say in."""
        for part in eq.walk(expr):
            if self.kind(part) == "real":
                raise Unfit(str(part))
            if isinstance(part, eq.Read) and part.tensor not in self.operands.exact:
                raise Unfit(part.tensor)
        return self.value(expr)

    def element(self, name: str, position: list[str]) -> Number:
        at = ", ".join(f"np.uint64({p})" for p in position) or "0"
        info = self.infos[name]
        value = self.convert(f"{self.tensor(name)}[{at}]", info.kind, "real")
        floor = 0.0 if name in self.operands.positive else -math.inf
        if name in self.operands.exact and (info.kind != "int" or name in self.operands.small):
            return Number(value, least=floor)
        if info.kind != "real":
            raise Unfit(name)
        terms, spare = self.operands.terms.get(name, self.sums.get(name, (1, 0)))
        radius = f"{self.tensor(name + RADIUS)}[{at}]"
        size = ""
        if name in self.operands.shares:
            size = f"({radius} / {self.constant('share', self.operands.shares[name])})"
        elif terms > 1:
            size = f"{self.tensor(name + SIZE)}[{at}]"
        return Number(value, radius, terms, size, spare, floor)

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
        exact, floor = True, math.inf
        for head, arm in ((f"if {condition}:", yes), ("else:", no)):
            with self.block(head):
                number = arm()
                exact = exact and number.radius == EXACT
                floor = min(floor, number.least)
                self.put(f"{value} = float({number.value})")
                self.put(f"{radius} = {number.radius}")
        return Number(value, EXACT if exact else radius, least=floor)

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
            floor = self.domain.floor(function, a.least, b.least)
            given = f"{_EXTREMES[function]}({a.value}, {a.radius}, {b.value}, {b.radius})"
            if a.radius == b.radius == EXACT:
                return Number(f"{given}[0]", least=floor)
            return replace(self.pair(given), least=floor)
        if function in ("neg", "abs", "real"):
            number = self.ball(expr.args[0])
            text = {"neg": "(-{})", "abs": "abs({})", "real": "{}"}[function]
            floor = self.domain.floor(function, number.least)
            return replace(number, value=text.format(number.value), least=floor)
        if function in FUNCTIONS:
            a = self.ball(expr.args[0])
            own = (*self.allowed(function), self.limits[1], self.bottom(a))
            made = self.pair(f"ball_{function}({a.value}, {a.radius}, {', '.join(own)})")
            return replace(made, least=self.domain.floor(function, a.least))
        raise Unfit(function)

    def select_ball(self, condition: eq.Expr, yes: eq.Expr, no: eq.Expr) -> Number:
        text, doubt = self.truth(condition)
        if not doubt:
            return self.chosen(text, lambda: self.ball(yes), lambda: self.ball(no))
        a, b = self.unguarded(lambda: (self.ball(yes), self.ball(no)))
        return self.either(text, doubt, a, b)

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
            doubt = "" if a.radius == EXACT else f"({a.radius} == np.inf)"
            return f"math.{expr.function}({a.value})", doubt
        if expr.function not in COMPARE:
            raise Unfit(expr.function)
        a, b = map(self.ball, expr.args)
        text = COMPARE[expr.function].format(a.value, b.value)
        if a.radius == b.radius == EXACT:
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
        # value, radii, magnitudes; or value, low, high, and whether it is surely no number
        names = [self.fresh("a") for _ in range(3)]
        for name in names:
            self.put(
                f"{name} = {EXACT if total else '-np.inf' if expr.kind == 'max' else 'np.inf'}"
            )
        if not total:
            names.append(self.fresh("n"))
            self.put(f"{names[-1]} = False")
        depth = self.depth
        for name, bound in expr.binders:
            variable = self.fresh("i")
            limit = self.value(bound)
            self.indices[name], self.bounds[name] = variable, bound
            self.put(f"for {variable} in range({limit}):")
            self.depth += 1
        text, doubt = ("", "") if expr.where is None else self.truth(expr.where)
        neutral = Number(EXACT if total else "-np.inf" if expr.kind == "max" else "np.inf")
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
        value, other, last = names[:3]
        exact = number.radius == EXACT
        if not total:
            if exact:
                return Number(value, least=number.least)
            radius = self.fresh("e")
            self.put(f"{radius} = {EXACT} if {names[3]} else spread({value}, {other}, {last})")
            return Number(value, radius, least=number.least)
        floor = 0.0 if number.least >= 0 else -math.inf
        if count == 1:
            return Number(value, EXACT if exact else other, least=floor)
        radius = self.fresh("e")
        self.put(f"{last} = ({last} + abs({value}) + {other}) / 2.0")  # as `Precision.summed`
        self.put(
            f"{radius} = bounded({value}, {other} + {self.gamma(count - 1)} * {last} + "
            f"{self.flushed(count - 1, last)}, {last}, {self.limits[1]})"
        )
        return Number(value, radius, count, last, least=floor)

    def accumulate(self, kind: str, number: Number, names: list[str]) -> None:
        """What one round of the innermost loop does."""
        value, other, last = names[:3]
        v, exact = self.fresh("v"), number.radius == EXACT
        self.put(f"{v} = {number.value}")
        e = number.radius
        if not exact and not e.isidentifier():
            e = self.fresh("e")
            self.put(f"{e} = {number.radius}")
        if kind == "sum":
            self.put(f"{value} = plus({value}, {v})")
            if not exact:
                self.put(f"{other} = plus({other}, {e})")
            size = f"abs({v})" if exact else f"abs({v}) + {e}"
            self.put(f"{last} = plus({last}, {size})")
            return
        take = "largest_of" if kind == "max" else "smallest_of"
        self.put(f"{value} = {take}({value}, {v})")
        if not exact:
            self.put(f"{other} = {take}({other}, {v} - {e})")
            self.put(f"{last} = {take}({last}, {v} + {e})")
            self.put(f"{names[3]} = {names[3]} | (({v} != {v}) & ({e} == 0.0))")
