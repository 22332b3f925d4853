"""Elements of tensors: what they are copies of, what they are computed as, and sums of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TypeGuard

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.dtypes import integer_range
from irlang.equation_rules import linear
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.assumptions import Facts
from irlang.interp.interval import Numbers, meet
from irlang.interp.matching import match, within
from irlang.interp.proofs import Proofs
from irlang.interp.range_eval import Limits, Note
from irlang.interp.regions import Ends, Region, Tensor, form_ends
from irlang.interp.unfolding import (
    canonical,
    ends_of,
    inner_box,
    instance,
    source,
    specialised,
    taken,
)

Looks = tuple[eq.Expr, ...]  # ways in which an element may be written
_KEPT = 1 << 12  # terms of which it is remembered how they choose
_NESTED = 8  # indices of maxima inside one another
_SLACK = 2.0**-50  # of the arithmetic of coefficients, in double precision


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant + sum of factor * element`, but for an error of rounding."""

    factors: Mapping[eq.Expr, float]
    constant: float = 0.0
    error: float = 0.0

    def plus(self, other: Sum, times: float = 1.0) -> Sum:
        """`self + times * other`."""
        merged = dict(self.factors)
        for atom, factor in other.factors.items():
            merged[atom] = merged.get(atom, 0.0) + times * factor
        constant = self.constant + times * other.constant
        error = self.error + abs(times) * other.error
        # a number that is lost beside another one is an error, too
        if (self.constant and other.constant) or abs(times) != 1:
            error += _SLACK * abs(constant)
        return Sum({a: f for a, f in merged.items() if f}, constant, error)


class Elements(Proofs):
    """An evaluator that knows what an element stands for."""

    def __init__(
        self,
        tensors: dict[str, Tensor],
        own: Arithmetic,
        note: Note | None = None,
        split: bool = True,
    ) -> None:
        super().__init__(tensors, own, note, split)
        # what elements come to and are made of, in a box that is kept so that its id stays its own
        self._sources: dict[tuple[eq.Expr, int], tuple[eq.Read, Region | None, Limits]] = {}
        self._meanings: dict[tuple[eq.Expr, int, bool], tuple[eq.Expr, Limits]] = {}
        self._looks: dict[tuple[eq.Expr, int, bool], tuple[Looks, Limits]] = {}
        self._inner: dict[tuple[eq.Expr, int], tuple[Limits | None, Limits]] = {}
        self._values, self._plain, self._proved, self._memory = {}, {}, {}, {}
        self.forget()

    def forget(self) -> None:
        """Tensors have become others: what elements are made of is looked up anew."""
        super().forget()
        self._sources.clear()
        self._meanings.clear()
        self._looks.clear()
        self._values.clear()

    def _read(self, expr: eq.Read, box: Limits, facts: Facts) -> Numbers:
        """An element by its own tensor and, where that knows it in larger boxes only, by what it is
        a copy of, and what is chosen for it by its indices: a diagonal lies on one side of a mask.
        """
        found = super()._read(expr, box, facts)
        if expr.default is not None or self._level > 1 or found.only is not None:
            return found
        read, region = self.source(expr, box)
        if read != expr:
            found = meet(found, super()._read(read, box, facts))
        term = None if region is None else region.term
        if term is None or not self.as_here(read.tensor) or not _by_index(term):
            return found
        here = instance(term, read)
        made = specialised(here, box, self.tensors, self.decided)
        return found if made == here else meet(found, self.aside(lambda: self.plainly(made, box)))

    def as_here(self, tensor: str) -> bool:
        """Whether a tensor was computed in the type of this call, or is of whole numbers that are
        what its equation says.
        """
        info = self.infos[tensor]
        exact = info.kind == "int" and self.inside_type(tensor)
        return exact or info.dtype in (self.own.row.name, "bool")

    def inside_type(self, tensor: str) -> bool:
        """Whether whole numbers are far enough inside their type that none has wrapped around."""
        numbers = self.tensors[tensor].hull
        least, largest = integer_range(self.infos[tensor].dtype)
        return least < numbers.low and numbers.high < largest

    def inner_box(self, expr: eq.Reduce, box: Limits) -> Limits | None:
        """The box with the indices of a reduction; None where their bounds are not known."""
        found = self._inner.get((expr, id(box)))
        if found is None:
            inner = inner_box(expr, box)
            found = self._inner[expr, id(box)] = None if inner is None else self.one_box(inner), box
        return found[0]

    def source(self, read: eq.Read, box: Limits) -> tuple[eq.Read, Region | None]:
        """The element that a read comes to, through copies, and the region that it lies in."""
        found = self._sources.get((read, id(box)))
        if found is None:
            found = self._sources[read, id(box)] = (*self._source(read, box), box)
        return found[0], found[1]

    def _source(self, read: eq.Read, box: Limits) -> tuple[eq.Read, Region | None]:
        """The same, found anew: also through indices that are read from data and known."""
        while True:
            read, region = source(read, box, self.tensors)
            if any(map(_folds, read.index)):
                read = replace(read, index=tuple(_single(at, box) for at in read.index))
            branch = self._branch(read, box) if region is None else None
            if branch is not None:
                read = branch
                continue
            if region is not None or not any(map(eq.reads, read.index)):
                return read, region
            told = tuple(self._told(index, box) for index in read.index)
            if told == read.index:
                return read, region
            read = replace(read, index=told)

    def _branch(self, read: eq.Read, box: Limits) -> eq.Read | None:
        """The element that one is a copy of all over a box in which it lies in several regions, as
        conditions say; None where it is none.
        """
        tensor = self.tensors.get(read.tensor)
        body = None if tensor is None or self.stepping else tensor.body
        if not isinstance(body, eq.Apply) or body.function != "select":
            return None
        made = taken(instance(body, read), box, self.decided)
        copied = isinstance(made, eq.Read) and made.default is None and made.tensor != read.tensor
        return made if isinstance(made, eq.Read) and copied else None

    def _told(self, index: eq.Expr, box: Limits) -> eq.Expr:
        """An index that is read from data, where that is one number."""
        if not eq.reads(index):
            return index
        only = self.interval(index, box, {}).only
        return index if only is None else eq.Const(int(only))

    def meaning(self, expr: eq.Expr, box: Limits) -> eq.Expr:
        """What an element is computed as; itself where that is not known."""
        if not isinstance(expr, eq.Read) or expr.default is not None:
            return expr
        key = expr, id(box), self.stepping
        found = self._meanings.get(key)
        if found is None:
            read, region = self.source(expr, box)
            tensor = self.tensors[read.tensor]
            term = tensor.body if region is None else region.term
            if term is None and tensor.info.kind == "int":
                term = tensor.written
            known = term is not None and self.as_here(read.tensor)
            made = instance(term, read) if term is not None and known else read
            if not self.stepping and _reads_with_default(made):
                made = specialised(made, box, self.tensors, self.decided)
            if not self.stepping and _chooses_by_any(made):  # a row is in its own segment
                made = taken(made, box, self.decided)
            if region is None and isinstance(made, eq.Read) and made.tensor != read.tensor:
                made = self.meaning(made, box)  # a copy that lies in several regions
            found = self._meanings[key] = made, box
        return found[0]

    def as_written(self, expr: eq.Expr, box: Limits) -> eq.Expr | None:
        """What an element is computed as by its equation, copies not seen through."""
        if not isinstance(expr, eq.Read) or expr.default is not None or self.stepping:
            return None
        read = self.source(expr, box)[0]
        body = self.tensors[read.tensor].body
        return None if body is None or not self.as_here(read.tensor) else instance(body, read)

    def nested(self, term: eq.Reduce, box: Limits) -> eq.Reduce | None:
        """A largest of largest elements, or least of least, as that of all at once."""
        whole: eq.Reduce | None = None
        inner = self.inner_box(term, box)
        while inner is not None and isinstance(term.body, eq.Read) and term.where is None:
            far = self.meaning(term.body, inner)
            if not isinstance(far, eq.Reduce) or far.kind != term.kind or far.where is not None:
                break
            if term.kind not in ("max", "min") or len(term.binders) >= _NESTED:
                break
            whole = term = eq.Reduce(term.kind, (*term.binders, *far.binders), None, far.body)
            inner = self.inner_box(term, box)
        return whole

    def started(self, expr: eq.Expr, box: Limits) -> eq.Expr:
        """A step of a recurrence as an element of its tensor, where it is not before the first."""
        if self.stepping or not has_default(expr):
            return expr
        return specialised(expr, box, self.tensors, self.decided)

    def looks(self, expr: eq.Expr, box: Limits) -> Looks:
        """An element, what it is a copy of, and what that is computed as; of a function, it with
        what its operands are copies of, and of one operand, with what that is computed as.
        """
        key = expr, id(box), self.stepping
        found = self._looks.get(key)
        if found is None:
            every = dict.fromkeys((*self.copies(expr, box), self.meaning(expr, box)))
            if isinstance(expr, eq.Apply):
                every[self._of_sources(expr, box)] = None
            for look in [one for one in every if isinstance(one, eq.Apply) and len(one.args) == 1]:
                if isinstance(look.args[0], eq.Read) and eq.indices(look) <= box.keys():
                    every[replace(look, args=(self.meaning(look.args[0], box),))] = None
            found = self._looks[key] = tuple(every), box
        return found[0]

    def _of_sources(self, expr: eq.Apply, box: Limits) -> eq.Expr:
        """A function of what its operands are copies of."""
        args = (self.copies(a, box)[-1] if eq.indices(a) <= box.keys() else a for a in expr.args)
        return replace(expr, args=tuple(args))

    def stays(self, found: Mapping[str, eq.Expr], free: Limits, box: Limits) -> bool:
        """Whether the values of free indices lie within their bounds, those from data as well."""

        def read(index: eq.Expr) -> Ends | None:
            numbers = self.interval(index, box, {})
            known = numbers.finite and bool(numbers.pieces)
            return (math.floor(numbers.low), math.ceil(numbers.high)) if known else None

        return within(found, free, box, read)

    def among(
        self, patterns: Iterable[eq.Expr], targets: Iterable[eq.Expr], free: Limits, box: Limits
    ) -> bool:
        """Whether a target is a pattern at values of its free indices that lie within their bounds.

        box: of the indices of the targets.
        """
        for pattern, target in product(patterns, targets):
            found: dict[str, eq.Expr] = {}
            if match(pattern, target, free, found) and self.stays(found, free, box):
                return True
        return False

    def copies(self, expr: eq.Expr, box: Limits) -> tuple[eq.Expr, ...]:
        """An element, and what it is a copy of."""
        if isinstance(expr, eq.Read) and expr.default is None:
            return expr, self.source(expr, box)[0]
        return (expr,)

    def whole(self, expr: eq.Expr, box: Limits) -> Sum:
        """An expression as one element, with no rounding."""
        expr = self.started(expr, box)
        if isinstance(expr, (eq.Const, eq.Size)):
            return Sum({}, self.own.nearest(float(expr.value)))
        if self._equal is not None and self._equal[0] in self.copies(expr, box):
            return Sum({self._equal[1]: 1.0})
        return Sum({expr: 1.0})


@lru_cache(_KEPT)
def _by_index(expr: eq.Expr) -> bool:
    """Whether an expression chooses by its indices alone."""
    return any(
        isinstance(part, eq.Apply) and part.function == "select" and not eq.reads(part.args[0])
        for part in eq.walk(expr)
    )


@lru_cache(_KEPT)
def _reads_with_default(expr: eq.Expr) -> bool:
    return any(map(has_default, eq.walk(expr)))


def has_default(part: eq.Expr) -> TypeGuard[eq.Read]:
    """Whether an element is read that may lie outside its tensor."""
    return isinstance(part, eq.Read) and part.default is not None


def _single(index: eq.Expr, box: Limits) -> eq.Expr:
    """An index as it is in a box: one number as that, and what is left by a division of which the
    quotient is one number as a difference.
    """
    ends = None if isinstance(index, eq.Const) else ends_of(index, box)
    if ends is not None and ends[0] == ends[1]:
        return eq.Const(ends[0])
    if not isinstance(index, eq.Apply):
        return index
    index = eq.Apply(index.function, tuple(_single(arg, box) for arg in index.args))
    if index.function == "%":
        number, by = index.args
        quotient = ends_of(eq.Apply("//", (number, by)), box)
        if quotient is not None and quotient[0] == quotient[1]:
            whole = eq.Apply("*", (eq.Const(quotient[0]), by))
            return canonical(eq.Apply("-", (number, whole)))
    return canonical(_without_rest(index, box) if index.function == "//" else index)


def _without_rest(quotient: eq.Apply, box: Limits) -> eq.Apply:
    """A quotient without what counts for nothing in it: `(4 k + c) // 24`, with c below 4, is
    `k // 6`.
    """
    number, by = (affine(arg) for arg in quotient.args)
    if number is None or by is None or not by.known or by.constant < 1:
        return quotient
    shared = {math.gcd(count, by.constant) for count in number.coefficients.values()}
    for times in sorted(shared - {1}):
        counted = {name: n for name, n in number.coefficients.items() if n % times == 0}
        whole = number.constant // times
        small = Affine(
            {name: n for name, n in number.coefficients.items() if name not in counted},
            number.constant - whole * times,
        )
        ends = form_ends(small, box)
        if ends is not None and ends[0] >= 0 and ends[1] < times:
            kept = Affine({name: n // times for name, n in counted.items()}, whole)
            return eq.Apply("//", (linear(kept), eq.Const(by.constant // times)))
    return quotient


def _folds(index: eq.Expr) -> bool:
    """Whether an index is made by a division, as that of what was reshaped is."""
    return isinstance(index, eq.Apply) and (
        index.function in ("//", "%") or any(map(_folds, index.args))
    )


def _chooses_by_any(term: eq.Expr) -> bool:
    """Whether an expression is one of two by whether a condition holds of some element."""
    if not isinstance(term, eq.Apply) or term.function != "select":
        return False
    condition = term.args[0]
    return isinstance(condition, eq.Reduce) and condition.kind == "any"
