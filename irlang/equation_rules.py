"""Rewriting of equation expressions: identities, and what the ranges of indices decide."""

from __future__ import annotations

from collections.abc import Mapping

from irlang import equations as eq
from irlang.affine import Affine, affine, interval

TRUE = eq.Const(True)
FALSE = eq.Const(False)
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def apply(function: str, *args: eq.Expr) -> eq.Expr:
    """A scalar function on expressions."""
    return eq.Apply(function, args)


def is_true(expr: eq.Expr) -> bool:
    """Whether an expression is the constant `true` (which equals the number 1 for Python)."""
    return isinstance(expr, eq.Const) and expr.value is True


def is_false(expr: eq.Expr) -> bool:
    """Whether an expression is the constant `false`."""
    return isinstance(expr, eq.Const) and expr.value is False


def is_number(expr: eq.Expr, value: int) -> bool:
    """Whether an expression is that number, known at the call."""
    if not isinstance(expr, (eq.Const, eq.Size)) or isinstance(expr.value, bool):
        return False
    return expr.value == value


def whole(expr: eq.Expr) -> int | None:
    """The integer that an expression is known to be."""
    form = affine(expr)
    return form.constant if form is not None and form.known else None


def linear(form: Affine) -> eq.Expr:
    """The expression of an affine form, what is added first."""
    result: eq.Expr | None = None
    for name, factor in sorted(form.coefficients.items(), key=lambda item: item[1] < 0):
        index: eq.Expr = eq.Index(name)
        scaled = index if abs(factor) == 1 else apply("*", eq.Const(abs(factor)), index)
        if result is None:
            first = form.constant if factor < 0 else 0
            result = scaled if factor > 0 else apply("-", eq.Const(first), scaled)
            form = form if factor > 0 else Affine(form.coefficients)
        else:
            result = apply("+" if factor > 0 else "-", result, scaled)
    if result is None:
        return eq.Const(form.constant)
    if form.constant:
        sign = "+" if form.constant > 0 else "-"
        result = apply(sign, result, eq.Const(abs(form.constant)))
    return result


def difference(left: eq.Expr, right: eq.Expr) -> eq.Expr:
    """`left - right`, as an affine form where it is one."""
    forms = affine(left), affine(right)
    if forms[0] is not None and forms[1] is not None:
        return linear(forms[0].plus(forms[1], -1))
    return left if is_number(right, 0) else apply("-", left, right)


def conjuncts(condition: eq.Expr) -> list[eq.Expr]:
    """The parts of a conjunction."""
    if isinstance(condition, eq.Apply) and condition.function == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [] if is_true(condition) else [condition]


def factors_of(expr: eq.Expr) -> list[eq.Expr]:
    """The factors of a product."""
    if isinstance(expr, eq.Apply) and expr.function == "*":
        return [factor for arg in expr.args for factor in factors_of(arg)]
    return [expr]


def terms_of(expr: eq.Expr) -> list[eq.Expr]:
    """The terms of a sum."""
    if isinstance(expr, eq.Apply) and expr.function == "+":
        return [term for arg in expr.args for term in terms_of(arg)]
    return [expr]


def negation(condition: eq.Expr) -> eq.Expr:
    """The opposite of a condition. Comparisons of reals keep their `not`, for NaN."""
    if is_true(condition) or is_false(condition):
        return FALSE if is_true(condition) else TRUE
    if isinstance(condition, eq.Apply):
        if condition.function == "not":
            return condition.args[0]
        if condition.function in _OPPOSITE and not eq.reads(condition):
            return apply(_OPPOSITE[condition.function], *condition.args)
        if condition.function in ("and", "or"):
            other = "or" if condition.function == "and" else "and"
            return apply(other, *map(negation, condition.args))
    return apply("not", condition)


class _Simplifier:
    def __init__(
        self, bounds: Mapping[str, eq.Expr], tensors: Mapping[str, eq.TensorInfo], deep: bool
    ) -> None:
        self.bounds = bounds
        self.tensors = tensors
        self.deep = deep

    def __call__(self, expr: eq.Expr) -> eq.Expr:
        if isinstance(expr, (eq.Const, eq.Index, eq.Size)):
            return expr
        if isinstance(expr, eq.Reduce):
            self.bounds = {**self.bounds, **dict(expr.binders)}
        expr = eq.rebuild(expr, self)
        if isinstance(expr, eq.Inside):
            return self._inside(expr)
        if not isinstance(expr, eq.Apply):
            return expr
        if expr.function in ("+", "-", "*", "neg"):
            return self._arithmetic(expr)
        if expr.function in ("//", "%"):
            return self._quotient(expr)
        if expr.function in _COMPARISONS:
            return self._comparison(expr)
        if expr.function in ("and", "or", "not", "select"):
            return self._logic(expr)
        if expr.function in ("max", "min"):
            return self._extreme(expr)
        return expr

    def _inside(self, expr: eq.Inside) -> eq.Expr:
        result: eq.Expr = TRUE
        for index, extent in zip(expr.index, self.tensors[expr.tensor].shape, strict=True):
            for part in (apply("<=", eq.Const(0), index), apply("<", index, eq.Const(extent))):
                result = self._logic(eq.Apply("and", (result, self._comparison_of(part))))
        return result

    def _arithmetic(self, expr: eq.Apply) -> eq.Expr:
        form = affine(expr)
        if form is not None:
            return expr if form.known and not eq.indices(expr) else linear(form)
        args = expr.args
        if expr.function in ("+", "-") and is_number(args[1], 0):
            return args[0]
        if expr.function == "+" and is_number(args[0], 0):
            return args[1]
        if expr.function == "*":
            for one, other in (args, args[::-1]):
                if is_number(one, 1):
                    return other
        return expr

    def _quotient(self, expr: eq.Apply) -> eq.Expr:
        inner, divisor = expr.args
        size = whole(divisor)
        if not size or size < 0:
            return expr
        known = whole(inner)
        if known is not None:
            return eq.Const(known // size if expr.function == "//" else known % size)
        reach = interval(inner, self.bounds, self.tensors)
        if reach is not None and reach[0] <= reach[1] and reach[0] // size == reach[1] // size:
            quotient = int(reach[0] // size)
            if expr.function == "//":
                return eq.Const(quotient)
            return difference(inner, eq.Const(quotient * size))
        if size == 1:
            return inner if expr.function == "//" else eq.Const(0)
        form = affine(inner) if self.deep else None
        if form is None:
            return expr
        high = Affine(
            {n: int(c / size) for n, c in form.coefficients.items() if abs(c) >= size},
            int(form.constant / size),
        )
        low = form.plus(high, -size)
        if not high.coefficients and not high.constant:
            return expr
        rest = self._quotient(eq.Apply(expr.function, (linear(low), divisor)))
        if expr.function == "%":
            return rest
        if high.known and not isinstance(rest, eq.Const):
            return expr  # (i + 3) // 2 reads better than (i + 1) // 2 + 1
        return self._arithmetic(eq.Apply("+", (linear(high), rest)))

    def _comparison_of(self, expr: eq.Expr) -> eq.Expr:
        assert isinstance(expr, eq.Apply)
        return self._comparison(expr)

    def _comparison(self, expr: eq.Apply) -> eq.Expr:
        reach = self._gap(*expr.args)
        if reach is None or reach[0] > reach[1]:
            return expr
        low, high = reach
        decided = {
            "<": (high < 0, low >= 0),
            "<=": (high <= 0, low > 0),
            ">": (low > 0, high <= 0),
            ">=": (low >= 0, high < 0),
            "==": (low == high == 0, low > 0 or high < 0),
            "!=": (low > 0 or high < 0, low == high == 0),
        }[expr.function]
        return TRUE if decided[0] else FALSE if decided[1] else expr

    def _gap(self, left: eq.Expr, right: eq.Expr) -> tuple[float, float] | None:
        """The range of `left - right`."""
        forms = affine(left), affine(right)
        if forms[0] is not None and forms[1] is not None:
            return interval(linear(forms[0].plus(forms[1], -1)), self.bounds, self.tensors)
        one = interval(left, self.bounds, self.tensors)
        other = interval(right, self.bounds, self.tensors)
        if one is None or other is None:
            return None
        return one[0] - other[1], one[1] - other[0]

    def _logic(self, expr: eq.Apply) -> eq.Expr:
        args = expr.args
        if expr.function == "not":
            return negation(args[0])
        if expr.function == "select":
            if is_true(args[0]) or is_false(args[0]):
                return args[1] if is_true(args[0]) else args[2]
            return args[1] if args[1] == args[2] else expr
        settles, neutral = (is_false, is_true) if expr.function == "and" else (is_true, is_false)
        if any(map(settles, args)):
            return FALSE if expr.function == "and" else TRUE
        kept = [arg for arg in args if not neutral(arg)]
        if len(kept) == 2 and kept[0] != kept[1]:
            return expr
        return kept[0] if kept else (TRUE if expr.function == "and" else FALSE)

    def _extreme(self, expr: eq.Apply) -> eq.Expr:
        reach = self._gap(*expr.args)
        if reach is None or reach[0] > reach[1]:
            return expr
        first, second = expr.args if expr.function == "max" else expr.args[::-1]
        return first if reach[0] >= 0 else second if reach[1] <= 0 else expr


def simplify(
    expr: eq.Expr,
    bounds: Mapping[str, eq.Expr],
    tensors: Mapping[str, eq.TensorInfo],
    *,
    deep: bool = False,
) -> eq.Expr:
    """An expression of the same value, by the ranges of its indices (bounds: of the free ones).

    deep: multiples also go out of quotients, `(4i + j) // 4` becomes `i` where j < 4.
    """
    return _Simplifier(bounds, tensors, deep)(expr)
