"""How long a whole tensor is: the root of the sum of the squares of all its elements.

A matrix makes a vector longer by its largest singular value at most, where it may add up to the sum
of the sizes of a row: of a layer of hundreds of inputs that is several times as much, and of a
network of fifty such layers, beyond any type. So of a tensor is known, where that is asked for, how
long it is by how it was made: what is read more than once counts as often, a product of matrices
has the product of both lengths or, where the numbers of one are known, of its largest singular
value (the spectral norm; Golub and Van Loan, Matrix Computations, section 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.constants import SLACK
from irlang.interp.range_eval import Evaluator
from irlang.interp.regions import Tensor
from irlang.interp.unfolding import inner_box

_ROUNDED = 0.125  # a sum of so many roundings is not looked at

Box = Mapping[str, tuple[int, int]]


def span(tensor: Tensor) -> float:
    """No less than the length of a tensor as it is computed; infinite where it may overflow."""
    waiting = [tensor]
    while waiting:  # one after the other: networks are deeper than Python's stack
        own = waiting[-1].span
        if own is None or own.found is not None:
            waiting.pop()
            continue
        first = [t for t in own.reads.values() if t.span is not None and t.span.found is None]
        if first:
            waiting += first
            continue
        own.found = _Spans(dict(own.reads), own.own).of(own.body, own.box) * (1 + SLACK)
        waiting.pop()
    made = None if tensor.span is None else tensor.span.found
    return _by_size(tensor) if made is None else min(_by_size(tensor), made)


def _by_size(tensor: Tensor) -> float:
    count, numbers = math.prod(tensor.info.shape), tensor.hull
    return math.sqrt(count) * numbers.magnitude if numbers.finite else math.inf


class _Spans:
    """Lengths of expressions, over all values of the indices of a box."""

    def __init__(self, tensors: dict[str, Tensor], own: Arithmetic) -> None:
        self.tensors = tensors
        self.own = own
        self.walk = Evaluator(tensors, own)

    def of(self, expr: eq.Expr, box: Box) -> float:
        """The length of an expression as it is computed; infinite where it may overflow."""
        plain = math.sqrt(_count(box, box)) * self._size(expr, box)
        made = self._made(expr, box)
        return min(plain, made if made <= self.own.largest else math.inf)

    def _made(self, expr: eq.Expr, box: Box) -> float:
        if isinstance(expr, eq.Read):
            return self._read(expr, box)
        if isinstance(expr, eq.Reduce):
            return self._reduced(expr, box)
        if not isinstance(expr, eq.Apply) or self.walk.kind(expr) != "real":
            return math.inf
        args = expr.args
        match expr.function:
            case "neg" | "abs" | "constant":
                return self.of(args[0], box)
            case "about":
                return self._rounded(self.of(args[0], box), box)
            case "+" | "-":
                return self._rounded(self.of(args[0], box) + self.of(args[1], box), box)
            case "max" | "min":
                return math.hypot(self.of(args[0], box), self.of(args[1], box))
            case "select":
                return math.hypot(self.of(args[1], box), self.of(args[2], box))
            case "*":
                ways = [self._size(a, box) * self.of(b, box) for a, b in (args, args[::-1])]
                return self._rounded(min(ways), box)
            case "/":
                least = _least(self.walk.value(args[1], dict(box), {}))
                return self._rounded(self.of(args[0], box) / least, box) if least else math.inf
        return math.inf

    def _rounded(self, length: float, box: Box) -> float:
        lost = math.sqrt(_count(box, box)) * self.own.least
        return length * (1 + 2 * self.own.row.unit) + lost

    def _size(self, expr: eq.Expr, box: Box) -> float:
        numbers = self.walk.value(expr, dict(box), {})
        return numbers.magnitude if numbers.finite else math.inf

    def _read(self, read: eq.Read, box: Box, endless: bool = False) -> float:
        """Of elements of a tensor, each as often as it is read. endless: what stands outside does
        not count where it is infinite.
        """
        times = repeated(read, box, tuple(box))
        if times is None:
            return math.inf
        found = math.sqrt(times) * span(self.tensors[read.tensor])
        if read.default is None or (endless and self._is_endless(read.default, box)):
            return found
        return math.hypot(found, math.sqrt(_count(box, box)) * self._size(read.default, box))

    def _is_endless(self, expr: eq.Expr, box: Box) -> bool:
        numbers = self.walk.value(expr, dict(box), {})
        return not numbers.pieces and not numbers.nan

    def _reduced(self, expr: eq.Reduce, box: Box) -> float:
        inner = inner_box(expr, box)
        if inner is None or expr.body is None or self.walk.kind(expr.body) != "real":
            return math.inf
        if expr.kind in ("max", "min"):  # one of the terms; the result is finite, so is that
            if isinstance(expr.body, eq.Read):
                return self._read(expr.body, inner, endless=True)
            return self.of(expr.body, inner)
        terms = math.prod(inner[name][1] + 1 for name, _ in expr.binders)
        rounding = (terms + 1) * self.own.row.unit
        if expr.kind != "sum" or rounding > _ROUNDED:
            return math.inf
        lost = math.sqrt(_count(box, box)) * terms * self.own.least
        ways = [math.sqrt(terms) * self.of(expr.body, inner) * (1 + 2 * rounding)]
        product = expr.body
        if isinstance(product, eq.Apply) and product.function == "*" and expr.where is None:
            names = [name for name, _ in expr.binders]
            for matrix, other in (product.args, product.args[::-1]):
                ways.append(self._multiplied(matrix, other, names, inner, rounding))
        return min(ways) + lost

    def _multiplied(
        self, matrix: eq.Expr, other: eq.Expr, names: Sequence[str], box: Box, rounding: float
    ) -> float:
        """Of sums of products: the matrix makes what it multiplies longer."""
        its, others = _indices(matrix), _indices(other)
        if not its & others >= set(names):  # some is added up by one of them alone
            return math.inf
        own = {name: box[name] for name in box if name in others}
        apart = [name for name in box if name not in others | its]  # told by neither
        rows = [name for name in box if name in its and name not in others]
        batch = [name for name in box if name in its & others and name not in names]
        whole, longer = self._norms(matrix, batch, rows, names, box)
        length = (longer + 2 * rounding * whole) * self.of(other, own)
        return length * math.sqrt(_count(apart, box))

    def _norms(
        self,
        matrix: eq.Expr,
        batch: Sequence[str],
        rows: Sequence[str],
        columns: Sequence[str],
        box: Box,
    ) -> tuple[float, float]:
        """The length of a matrix (the Frobenius norm), and its largest singular value."""
        inside = {name: box[name] for name in (*rows, *columns)}
        if isinstance(matrix, eq.Read) and matrix.default is None:
            known = self.tensors[matrix.tensor].known
            axes = plain_axes(matrix)
            if known is not None and axes is not None:
                groups = [[axes[n] for n in group if n in axes] for group in (batch, rows, columns)]
                if sum(map(len, groups)) == len(axes):
                    return known.row([*groups[1], *groups[2]]), known.spectral(*groups)
        if batch:
            size = math.sqrt(_count(inside, box)) * self._size(matrix, box)
        else:
            size = self.of(matrix, inside)
        return size, size


def repeated(read: eq.Read, box: Box, names: Sequence[str]) -> int | None:
    """How often an element of a tensor is read at most, as some indices take all their values.

    None where an index of the tensor is no affine form.
    """
    forms = [form for one in read.index if (form := affine(one)) is not None]
    if len(forms) < len(read.index):
        return None
    users = {
        name: [at for at, form in enumerate(forms) if name in form.coefficients] for name in names
    }
    told: set[str] = set()  # those that follow from the place and the others, one for every axis
    saved = 1
    for at, form in enumerate(forms):
        own = sorted((n for n in names if users[n] == [at]), key=lambda n: -box[n][1])
        if not own:
            continue
        most = own[0]
        told.add(most)
        if len(own) == len(form.coefficients) == 2:  # a window: only every so many of its places
            other = own[1]
            pitch = abs(form.coefficients[most])
            pitch //= math.gcd(pitch, form.coefficients[other])
            told.add(other)
            saved *= -(-(box[other][1] + 1) // pitch)
    return saved * _count([name for name in names if name not in told], box)


def plain_axes(read: eq.Read) -> dict[str, int] | None:
    """The axis that every index counts along; None where an axis is counted otherwise."""
    found = {one.name: at for at, one in enumerate(read.index) if isinstance(one, eq.Index)}
    return found if len(found) == len(read.index) else None


def _indices(expr: eq.Expr) -> set[str]:
    return {part.name for part in eq.walk(expr) if isinstance(part, eq.Index)}


def _count(names: Sequence[str] | Box, box: Box) -> int:
    return reduce(lambda times, name: times * (box[name][1] + 1), names, 1)


def _least(numbers: Any) -> float:
    """The least absolute value of a set of numbers; 0 where it is not known."""
    if not numbers.finite or not numbers.pieces or any(a <= 0 <= b for a, b in numbers.pieces):
        return 0.0
    return float(min(min(abs(a), abs(b)) for a, b in numbers.pieces))
