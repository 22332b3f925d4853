"""Which bound indices make index expressions equal to given ones: what a read's transpose asks.

`sum over i with f(i) == s` becomes a sum over fewer indices: equations over the integers are solved
by rules that are tried in turn (digits of a mixed radix, quotients, remainders, affine forms), each
exact; what solves nothing stays behind as a condition. Extents are numbers, so that a condition
which always holds is seen to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from irlang import equations as eq
from irlang.affine import Affine, affine, interval
from irlang.equation_rules import (
    apply,
    conjuncts,
    difference,
    is_false,
    is_true,
    linear,
    simplify,
    whole,
)

_NARROW_LIMIT = 4096  # values of an index that are tried one by one


@dataclass(frozen=True, slots=True)
class Condition:
    """`bound`: 0 <= expr < number. `divides`: number divides expr. `holds`: expr is true."""

    kind: str
    expr: eq.Expr
    number: int = 0

    def expression(self) -> eq.Expr:
        """As an expression of kind bool."""
        zero = eq.Const(0)
        if self.kind == "bound":
            below = apply("<", self.expr, eq.Const(self.number))
            return apply("and", apply("<=", zero, self.expr), below)
        if self.kind == "divides":
            return apply("==", apply("%", self.expr, eq.Const(self.number)), zero)
        return self.expr

    def replaced(self, change: Callable[[eq.Expr], eq.Expr]) -> Condition:
        """The condition on another expression."""
        return Condition(self.kind, change(self.expr), self.number)


Equality = tuple[eq.Expr, eq.Expr]


class Solver:
    """Equalities `left == right` over binders, right sides and `outer` indices being given.

    After `run`: `binders` (name, extent) are still to be ranged over, `conditions` to be held,
    `values` say what every other binder is. `empty`: nothing satisfies the equalities.
    """

    def __init__(
        self,
        outer: Mapping[str, int],
        binders: Mapping[str, int],
        equalities: Iterable[Equality],
        where: Iterable[eq.Expr],
        tensors: Mapping[str, eq.TensorInfo],
        fresh: Callable[[str], str],
    ) -> None:
        self.outer = outer
        self.binders = dict(binders)
        self.tensors = tensors
        self.fresh = fresh
        self.values: dict[str, eq.Expr] = {}
        self.conditions: list[Condition] = []
        self.empty = any(extent <= 0 for extent in binders.values())
        self._bounds: dict[str, eq.Expr] = {
            name: eq.Const(extent) for name, extent in {**outer, **binders}.items()
        }
        self.equalities: list[Equality] = []
        for left, right in self._without_plain(equalities):
            self.equalities.append((self.tidy(left), self.tidy(right)))
        for part in where:
            self._given(self.tidy(eq.substitute(part, self.values)))

    def _without_plain(self, equalities: Iterable[Equality]) -> list[Equality]:
        """Settles indices that are equal to given ones, as most are; gives the other equalities."""
        others: list[Equality] = []
        limits: list[tuple[eq.Expr, int]] = []
        for left, right in equalities:
            if (
                isinstance(left, eq.Index)
                and isinstance(right, eq.Index)
                and left.name in self.binders
                and right.name in self.outer
            ):
                extent = self.binders.pop(left.name)
                if extent < self.outer[right.name]:
                    limits.append((right, extent))
                self.values[left.name] = right
            else:
                others.append((left, right))
        for value, extent in limits:
            self.require("bound", value, extent)
        return [(eq.substitute(left, self.values), right) for left, right in others]

    def tidy(self, expr: eq.Expr, *, deep: bool = False) -> eq.Expr:
        """`expr` simplified by the ranges of all indices."""
        if isinstance(expr, (eq.Const, eq.Index, eq.Size)):
            return expr
        return simplify(expr, self._bounds, self.tensors, deep=deep)

    def require(self, kind: str, expr: eq.Expr, number: int = 0) -> None:
        """Adds a condition, unless it always holds."""
        found = self.tidy(Condition(kind, expr, number).expression())
        if is_false(found):
            self.empty = True
        elif not is_true(found):
            condition = Condition(kind, expr, number) if kind != "holds" else Condition(kind, found)
            if condition not in self.conditions:
                self.conditions.append(condition)

    def run(self) -> None:
        """Solves what can be solved."""
        plain = {left.name for left, _ in self.equalities if isinstance(left, eq.Index)}
        self._settle_single(plain)
        while self.equalities and not self.empty:
            if not any(rule(self) for rule in _RULES):
                break
        for left, right in self.equalities:
            self.require("holds", apply("==", left, right))
        self.equalities = []
        self._settle_single(set())
        while not self.empty and self._narrow():
            pass
        pending, self.conditions = self.conditions, []
        for condition in pending:
            self.require(condition.kind, self.tidy(condition.expr, deep=True), condition.number)
        self.values = {name: self.tidy(value, deep=True) for name, value in self.values.items()}

    def _settle_single(self, apart: set[str]) -> None:
        """An index with a single value is zero."""
        for name, extent in list(self.binders.items()):
            if extent == 1 and name not in apart:
                self._assign(name, eq.Const(0))

    # ---- bookkeeping

    def _given(self, condition: eq.Expr) -> None:
        """A condition of the text; equalities of indices are solved like those of reads."""
        for part in conjuncts(condition):
            if isinstance(part, eq.Apply) and part.function == "==":
                left, right = part.args
                if not self._free(left):
                    left, right = right, left
                if self._free(left) and not self._free(right) and not eq.reads(part):
                    self.equalities.append((left, right))
                    continue
            self.require("holds", part)

    def _free(self, expr: eq.Expr) -> list[str]:
        used = eq.indices(expr)
        return [name for name in self.binders if name in used]

    def _assign(self, name: str, value: eq.Expr) -> None:
        self._rewrite(lambda expr: eq.substitute(expr, {name: value}), without=name)
        self.values[name] = value

    def _rewrite(self, change: Callable[[eq.Expr], eq.Expr], without: str) -> None:
        del self.binders[without]
        self.values = {name: self.tidy(change(value)) for name, value in self.values.items()}
        self.equalities = [(self.tidy(change(a)), self.tidy(change(b))) for a, b in self.equalities]
        pending, self.conditions = self.conditions, []
        for condition in pending:
            self.require(condition.kind, self.tidy(change(condition.expr)), condition.number)

    def _bind(self, base: str, extent: int) -> eq.Expr:
        """A new binder; one that has a single value is a number."""
        if extent <= 1:
            self.empty = self.empty or extent <= 0
            return eq.Const(0)
        name = self.fresh(base)
        self.binders[name] = extent
        self._bounds[name] = eq.Const(extent)
        return eq.Index(name)

    def _form(self, equality: Equality) -> tuple[dict[str, int], eq.Expr] | None:
        """`sum of coefficient * binder == expression without those binders`."""
        form = affine(equality[0])
        if form is None or self._free(equality[1]):
            return None
        own = {n: c for n, c in form.coefficients.items() if n in self.binders}
        rest = Affine({n: c for n, c in form.coefficients.items() if n not in own}, form.constant)
        return own, difference(equality[1], linear(rest))

    def _interval(self, expr: eq.Expr) -> tuple[int, int] | None:
        found = interval(expr, self._bounds, self.tensors)
        return None if found is None else (int(found[0]), int(found[1]))

    # ---- rules: each says whether it changed anything

    def _settled(self) -> bool:
        """Equalities without unknowns are conditions."""
        for equality in self.equalities:
            if not self._free(equality[0]) and not self._free(equality[1]):
                self.equalities.remove(equality)
                self.require("holds", apply("==", *equality))
                return True
        return False

    def _digits(self) -> bool:
        """All digits of a number: `e // 6 == p` and `e % 6 == q` are `e == 6p + q`."""
        groups: dict[eq.Expr, list[tuple[int, int, Equality]]] = {}
        for equality in self.equalities:
            left = equality[0]
            size = unit = 0
            if isinstance(left, eq.Apply) and left.function == "%":
                size = whole(left.args[1]) or 0
                left = left.args[0] if size > 0 else left
            if isinstance(left, eq.Apply) and left.function == "//":
                unit = whole(left.args[1]) or 0
                left = left.args[0] if unit > 0 else left
            if size > 0 or unit > 0:
                groups.setdefault(left, []).append((max(unit, 1), size, equality))
        for base, digits in groups.items():
            digits.sort(key=lambda digit: digit[0])
            units = [unit for unit, _, _ in digits]
            sizes = [size for _, size, _ in digits]
            following = [u * s for u, s in zip(units, sizes, strict=True)]
            if len(digits) < 2 or units[0] != 1 or units[1:] != following[:-1]:
                continue
            if sizes[-1]:  # a remainder of the leading digit says nothing if it may be larger
                reach = self._interval(base)
                if reach is None or reach[0] < 0 or reach[1] >= following[-1]:
                    continue
            total: eq.Expr = eq.Const(0)
            for unit, size, equality in digits:
                self.equalities.remove(equality)
                if size:
                    self.require("bound", equality[1], size)
                total = apply("+", apply("*", eq.Const(unit), equality[1]), total)
            self.equalities.append((base, self.tidy(total)))
            return True
        return False

    def _split(self) -> bool:
        """An index of which quotient and remainder occur becomes two."""
        for left, _ in self.equalities:
            for part in eq.walk(left):
                if not (isinstance(part, eq.Apply) and part.function in ("//", "%")):
                    continue
                index, size = part.args[0], whole(part.args[1])
                if not (isinstance(index, eq.Index) and index.name in self.binders and size):
                    continue
                name, extent = index.name, self.binders[index.name]
                if size <= 1 or size >= extent or extent % size:
                    continue
                high, low = self._bind(name, extent // size), self._bind(name, size)
                quotient = apply("//", index, part.args[1]), apply("%", index, part.args[1])
                value = apply("+", apply("*", eq.Const(size), high), low)
                mapping = {quotient[0]: high, quotient[1]: low, index: value}
                self._rewrite(lambda expr, mapping=mapping: _mapped(expr, mapping), without=name)  # type: ignore[misc]
                self.values[name] = value
                return True
        return False

    def _radix(self) -> bool:
        """Affine forms that tell all their indices apart, as `6p + 2q + r` with q < 3, r < 2."""
        for equality in self.equalities:
            form = self._form(equality)
            if form is None or not form[0]:
                continue
            own, value = form
            order = sorted(own, key=lambda name: abs(own[name]))
            units = [abs(own[name]) for name in order]
            extents = [self.binders[name] for name in order]
            ratios = [b // a for a, b in pairwise(units)]
            if any(b % a for a, b in pairwise(units)):
                continue
            if any(n > ratio for n, ratio in zip(extents, ratios, strict=False)):
                continue
            self.equalities.remove(equality)
            backward = sum(own[n] * (self.binders[n] - 1) for n in order if own[n] < 0)
            value = self.tidy(difference(value, eq.Const(backward)))
            if units[0] > 1:
                self.require("divides", value, units[0])
            for position, name in enumerate(order):
                digit = value
                if units[position] > 1:
                    digit = apply("//", digit, eq.Const(units[position]))
                if position < len(ratios):
                    digit = apply("%", digit, eq.Const(ratios[position]))
                digit = self.tidy(digit)
                self.require("bound", digit, extents[position])
                if own[name] < 0:
                    digit = self.tidy(difference(eq.Const(extents[position] - 1), digit))
                self._assign(name, digit)
            return True
        return False

    def _modulo(self) -> bool:
        """`(b + rest) % m == s`: b is `(s - rest) % m`, or that and a multiple of m."""
        for equality in self.equalities:
            left, right = equality
            if not (isinstance(left, eq.Apply) and left.function == "%") or self._free(right):
                continue
            size, form = whole(left.args[1]), affine(left.args[0])
            if not size or size < 0 or form is None or whole(right) is not None:
                continue  # divisibility is better served by a quotient of its own
            own = [n for n, c in form.coefficients.items() if n in self.binders and abs(c) == 1]
            if not own:
                continue
            name = max(own, key=self.binders.__getitem__)
            sign, extent = form.coefficients[name], self.binders[name]
            rest = linear(form.plus(Affine({name: 1}), -sign))
            gap = difference(right, rest) if sign > 0 else difference(rest, right)
            self.equalities.remove(equality)
            self.require("bound", right, size)
            times = self._bind(name, -(-extent // size))
            value = apply("%", self.tidy(gap), eq.Const(size))
            value = self.tidy(apply("+", value, apply("*", eq.Const(size), times)))
            self.require("bound", value, extent)
            self._assign(name, value)
            return True
        return False

    def _quotient(self) -> bool:
        """`e // q == s` is `e - r == q s` with r < q; `e % q == s` is `e - q m == s`."""
        for position, (left, right) in enumerate(self.equalities):
            if not (isinstance(left, eq.Apply) and left.function in ("//", "%", "ceildiv")):
                continue
            inner, size = left.args[0], whole(left.args[1])
            if not size or size < 0 or affine(inner) is None or self._free(right):
                continue
            if left.function == "%":
                reach = self._interval(inner)
                if reach is None:
                    continue
                times = self._bind("m", reach[1] // size - reach[0] // size + 1)
                offset = apply("+", times, eq.Const(reach[0] // size))
                equality = difference(inner, apply("*", eq.Const(size), offset)), right
                self.require("bound", right, size)
            else:
                rest = self._bind("r", size)
                sign = "-" if left.function == "//" else "+"
                equality = apply(sign, inner, rest), apply("*", eq.Const(size), right)
            self.equalities[position] = self.tidy(equality[0]), self.tidy(equality[1])
            return True
        return False

    def _general(self) -> bool:
        """An affine form is solved for the index with the largest range."""
        for equality in self.equalities:
            form = self._form(equality)
            if form is None or not form[0]:
                continue
            own, value = form
            name = max(own, key=lambda n: (self.binders[n], -abs(own[n])))
            extent, factor = self.binders[name], own[name]
            others = linear(Affine({n: c for n, c in own.items() if n != name}))
            value = difference(value, others) if factor > 0 else difference(others, value)
            value = self.tidy(value)
            self.equalities.remove(equality)
            if abs(factor) > 1:
                self.require("divides", value, abs(factor))
                value = apply("//", value, eq.Const(abs(factor)))
            self.require("bound", value, extent)
            self._assign(name, value)
            return True
        return False

    def _pull(self) -> bool:
        """Multiples go out of quotients."""
        for position, (left, right) in enumerate(self.equalities):
            changed = self.tidy(left, deep=True)
            if changed != left:
                self.equalities[position] = changed, right
                return True
        return False

    # ---- ranges

    def _narrow(self) -> bool:
        """A condition on a single index bounds its range: last those that take one number away."""
        for condition in sorted(self.conditions, key=lambda c: _is_inequality(c.expr)):
            used = eq.indices(condition.expr)
            if len(used) != 1 or not used <= self.binders.keys() or eq.reads(condition.expr):
                continue
            (name,) = used
            extent = self.binders[name]
            if extent > _NARROW_LIMIT:
                continue
            expr = condition.expression()
            tried = [self.tidy(eq.substitute(expr, {name: eq.Const(v)})) for v in range(extent)]
            held = [v for v, found in enumerate(tried) if is_true(found)]
            if len(held) + sum(map(is_false, tried)) < extent:
                continue
            if not held:
                self.empty = True
                return False
            if held[-1] - held[0] + 1 != len(held):
                continue
            self.conditions.remove(condition)
            index = self._bind(name, len(held))
            self._assign(name, self.tidy(apply("+", index, eq.Const(held[0]))))
            return True
        return False


_RULES: tuple[Callable[[Solver], bool], ...] = (
    Solver._settled,
    Solver._digits,
    Solver._split,
    Solver._radix,
    Solver._modulo,
    Solver._quotient,
    Solver._general,
    Solver._pull,
)


def _is_inequality(expr: eq.Expr) -> bool:
    return isinstance(expr, eq.Apply) and expr.function == "!="


def _mapped(expr: eq.Expr, mapping: Mapping[eq.Expr, eq.Expr]) -> eq.Expr:
    found = mapping.get(expr) if isinstance(expr, (eq.Index, eq.Apply)) else None
    return found if found is not None else eq.rebuild(expr, lambda part: _mapped(part, mapping))
