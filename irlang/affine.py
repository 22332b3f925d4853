"""Affine forms of index expressions: `o*stride + k - lo` as coefficients of indices and a constant.

Numbers known at the call take part with their values. Shared by the scheduler, which asks how far
apart two steps are, and by whoever must know where an index may point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irlang import equations as eq
from irlang.dtypes import DTYPES, integer_range


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum of coefficient * index`; no coefficient is zero."""

    coefficients: Mapping[str, int]
    constant: int = 0

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """`self + times * other`."""
        merged = dict(self.coefficients)
        for name, coefficient in other.coefficients.items():
            merged[name] = merged.get(name, 0) + times * coefficient
        return Affine(
            {name: value for name, value in merged.items() if value},
            self.constant + times * other.constant,
        )

    @property
    def known(self) -> bool:
        """Whether no index is left."""
        return not self.coefficients


def affine(expr: eq.Expr) -> Affine | None:
    """The affine form of an expression, None where it has none over the integers."""
    if isinstance(expr, eq.Apply):
        if expr.function not in _AFFINE:
            return None
        try:
            found: Affine | None = expr.kept_form
        except AttributeError:
            found = expr.kept_form = _applied_form(expr)
        return found
    if isinstance(expr, eq.Index):
        return Affine({expr.name: 1})
    if isinstance(expr, (eq.Const, eq.Size)):
        whole = isinstance(expr.value, int) and not isinstance(expr.value, bool)
        return Affine({}, int(expr.value)) if whole else None
    return None


_AFFINE = frozenset(("+", "-", "*", "neg"))


def _applied_form(expr: eq.Apply) -> Affine | None:
    left = affine(expr.args[0])
    if left is None:
        return None
    if expr.function == "neg":
        return Affine({}).plus(left, -1)
    right = affine(expr.args[1])
    if right is None:
        return None
    if expr.function != "*":
        return left.plus(right, 1 if expr.function == "+" else -1)
    if not left.known:
        left, right = right, left
    return Affine({}).plus(right, left.constant) if left.known else None


def extreme(form: Affine, bounds: Mapping[str, eq.Expr], *, least: bool) -> Affine | None:
    """The least or largest value of `form` as each index of `bounds` goes from 0 to bound - 1.

    Other indices stay. None where a bound is not affine. What is found bounds the form; it is
    attained where bounds do not depend on one another.
    """
    for _ in range(len(bounds) + 1):
        name = next((n for n in form.coefficients if n in bounds), None)
        if name is None:
            return form
        coefficient = form.coefficients[name]
        rest = Affine({n: c for n, c in form.coefficients.items() if n != name}, form.constant)
        if (coefficient > 0) == least:
            form = rest  # the index is 0
            continue
        bound = affine(bounds[name])
        if bound is None:
            return None
        form = rest.plus(bound, coefficient).plus(Affine({}, 1), -coefficient)
    return None


def bounds_of(expr: eq.Expr) -> dict[str, eq.Expr]:
    """The bounds of all indices that are bound inside an expression."""
    return {
        name: bound
        for part in eq.walk(expr)
        if isinstance(part, eq.Reduce)
        for name, bound in part.binders
    }


Interval = tuple[float, float]


def interval(
    expr: eq.Expr, bounds: Mapping[str, eq.Expr], tensors: Mapping[str, eq.TensorInfo]
) -> Interval | None:
    """Where the values of an index expression lie; None where nothing is known.

    bounds: of every index in the expression. An interval with its ends reversed is empty.
    """
    form = affine(expr)
    if form is not None:
        ends = [extreme(form, bounds, least=least) for least in (True, False)]
        low, high = (end.constant if end is not None and end.known else None for end in ends)
        if low is not None and high is not None:
            return low, high
    if isinstance(expr, eq.Apply):
        if expr.function == "select":
            arms = [interval(arg, bounds, tensors) for arg in expr.args[1:]]
            found = [arm for arm in arms if arm is not None]
            if len(found) < 2:
                return None
            return min(low for low, _ in found), max(high for _, high in found)
        args = [interval(arg, bounds, tensors) for arg in expr.args]
        known = [arg for arg in args if arg is not None]
        return _applied(expr.function, known) if len(known) == len(args) else None
    if isinstance(expr, eq.Read) and expr.default is None and expr.tensor in tensors:
        info = tensors[expr.tensor]  # wider types say next to nothing
        narrow = info.kind == "int" and DTYPES[info.dtype].bits <= 16
        return integer_range(info.dtype) if narrow else None
    return None


def _applied(function: str, args: list[Interval]) -> Interval | None:
    a = args[0]
    b = args[-1]
    match function:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            ends = [x * y for x in a for y in b]
            return min(ends), max(ends)
        case "//" if b[0] == b[1] > 0:
            return a[0] // b[0], a[1] // b[0]
        case "%" if b[0] == b[1] > 0:
            return 0, b[0] - 1
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case _:
            return None


def surely_inside(
    read: eq.Read | eq.Inside,
    bounds: Mapping[str, eq.Expr],
    tensors: Mapping[str, eq.TensorInfo],
) -> bool:
    """Whether a read is within its tensor for all values of its indices."""
    for part, extent in zip(read.index, tensors[read.tensor].shape, strict=True):
        found = interval(part, bounds, tensors)
        if found is None or not (found[0] >= 0 and found[1] < extent):
            return found is not None and found[0] > found[1]
    return True


# ---- indices in quotients ---------------------------------------------------------------------


def split_indices(expr: eq.Expr, extents: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Indices that occur as `f // q` or `f % q` with q dividing their extent: (extent / q, q)."""
    found: dict[str, tuple[int, int]] = {}
    for part in eq.walk(expr):
        if isinstance(part, eq.Apply) and part.function in ("//", "%"):
            index, divisor = part.args
            form = affine(divisor)
            if isinstance(index, eq.Index) and form is not None and form.known:
                extent, size = extents.get(index.name, 0), form.constant
                if size > 0 and extent and extent % size == 0:
                    found.setdefault(index.name, (extent // size, size))
    return found


def divided(expr: eq.Expr, split: Mapping[str, tuple[int, int]]) -> eq.Expr:
    """The expression over quotients and remainders of the indices that are split."""
    if isinstance(expr, eq.Index) and expr.name in split:
        size = eq.Const(split[expr.name][1])
        whole = eq.Apply("*", (eq.Index(f"{expr.name}//"), size))
        return eq.Apply("+", (whole, eq.Index(f"{expr.name}%")))
    if isinstance(expr, eq.Apply) and expr.function in ("//", "%"):
        index, divisor = expr.args
        if isinstance(index, eq.Index) and index.name in split:
            form = affine(divisor)
            if form is not None and form.known and form.constant == split[index.name][1]:
                return eq.Index(index.name + expr.function)
    return eq.rebuild(expr, lambda part: divided(part, split))
