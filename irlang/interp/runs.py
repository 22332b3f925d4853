"""Results of recurrences that go one way: sums so far of what is not negative do not fall, nor do
largest elements so far, nor do products so far of what is 1 at most rise.

So the last of the sums so far is no less than any of them, however far apart they are, and than any
of the terms; and none of them is more than the sum of all terms, taken in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.range_eval import Limits
from irlang.interp.ranked import Ranked
from irlang.interp.regions import Ends, form_ends
from irlang.interp.unfolding import instance, own_index

_COPIES = 8  # of one another


@dataclass(frozen=True, slots=True)
class Run:
    """A recurrence, every step of which is a function of the one before and of a term.

    axis: along which it goes. function: the scalar function. term: over the indices of the tensor.
    start: what is read before the first step. sign: 1 where no step is less than the one before, -1
    where none is more. least: by how much it rises at every step, but for rounding.
    """

    axis: int
    function: str
    term: eq.Expr
    start: float
    sign: int
    least: float


class Runs(Ranked):
    """An evaluator that knows which recurrences rise, and which fall."""

    _runs: dict[str, tuple[Run | None, object]]

    def forget(self) -> None:
        """Tensors have become others: recurrences are looked at anew."""
        super().forget()
        self._runs = {}

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        own = self._in_run(atom, box)
        run = None if own is None else self.run_of(own.tensor)
        if own is None or run is None:
            return
        if below and rest.factors and run.function == "+" and run.sign > 0 and run.start >= 0:
            yield self.sum_of(instance(run.term, own), box, facts)  # the last of its terms
        for other in rest.factors:
            its = self._in_run(other, box)
            steps = None if its is None else _further(own, its, run.axis, box)
            if steps is not None and (steps[0] if below == (run.sign > 0) else -steps[1]) >= 0:
                yield self._after(other, run, steps, below, box, facts)
            elif below and run.sign > 0 and self._has_term(own, run, other, box):
                yield Sum({other: 1.0})

    def _after(
        self, other: eq.Expr, run: Run, steps: Ends, below: bool, box: Limits, facts: Facts
    ) -> Sum:
        """What an element so many steps further is no less than, or one so many before no more. Of
        a recurrence that falls it is the other way round, and by how much is not known.
        """
        if run.sign < 0:
            return Sum({other: 1.0})
        count = steps[0] if below else -steps[1]
        more = count * run.least
        size = self.interval(other, box, facts).magnitude + more
        error = count * (2 * self.own.row.unit * size + self.own.least)
        change = (more if below else -more, error) if more > error else (0.0, 0.0)
        return Sum({other: 1.0}, *change)

    def run_of(self, tensor: str) -> Run | None:
        """What is known of a tensor as a recurrence; None where it is none, or goes both ways."""
        made = self.tensors[tensor].step if tensor in self.tensors else None
        if made is None:
            return None
        found = self._runs.get(tensor)
        if found is None or found[1] is not made:
            found = self._runs[tensor] = self._run(tensor, *made), made
        return found[0]

    def _run(self, tensor: str, axis: int, body: eq.Expr) -> Run | None:
        shape = self.tensors[tensor].info.shape
        if not isinstance(body, eq.Apply) or len(body.args) != 2 or not self.as_here(tensor):
            return None
        box = self.one_box({own_index(at): (0, size - 1) for at, size in enumerate(shape)})
        for one, term in (body.args, body.args[::-1]):
            start = self._start(one, tensor, axis, box)
            if start is None or tensor in eq.reads(term):
                continue
            sign = self._direction(body.function, tensor, term, box)
            rises = sign > 0 and body.function == "+"
            least = float(self.value(term, box, {}).low) if rises else 0.0
            return Run(axis, body.function, term, start, sign, least) if sign else None
        return None

    def _start(self, read: eq.Expr, tensor: str, axis: int, box: Limits) -> float | None:
        """What the step before the first is, where an expression is the step before."""
        if not isinstance(read, eq.Read) or read.tensor != tensor or read.default is None:
            return None
        for at, index in enumerate(read.index):
            form, own = affine(index), affine(eq.Index(own_index(at)))
            assert own is not None
            gap = None if form is None else own.plus(form, -1)
            if gap is None or not gap.known or gap.constant != (1 if at == axis else 0):
                return None
        only = self.plainly(read.default, box).only
        return None if only is None else float(only)

    def _direction(self, function: str, tensor: str, term: eq.Expr, box: Limits) -> int:
        """1 where a step is no less than the one before, -1 where it is no more, else 0."""
        terms = self.value(term, box, {})
        if function in ("max", "min"):
            return 1 if function == "max" else -1
        if not (terms.finite and terms.pieces) or self.own.flush:
            return 0
        if function == "+":
            return int(terms.low >= 0) - int(terms.high <= 0 and terms.low < 0)
        if function == "*" and self.tensors[tensor].hull.low >= 0 and terms.low >= 0:
            return int(terms.low >= 1) - int(terms.high <= 1 and terms.low < 1)
        return 0

    def _in_run(self, expr: eq.Expr, box: Limits) -> eq.Read | None:
        """The element of a recurrence that an element is a copy of."""
        for _ in range(_COPIES):
            if not isinstance(expr, eq.Read) or expr.default is not None:
                return None
            if expr.tensor in self.tensors and self.tensors[expr.tensor].step is not None:
                return expr
            read = self.source(expr, box)[0]
            body = self.tensors[read.tensor].body if read.tensor in self.tensors else None
            if read == expr and isinstance(body, eq.Read) and self.as_here(read.tensor):
                expr = instance(body, read)
            elif read == expr:
                return None
            else:
                expr = self._met_on_the_way(expr, box) or read
        return None

    def _met_on_the_way(self, read: eq.Read, box: Limits) -> eq.Read | None:
        """The element of a recurrence that a copy is one of, be that a copy of another as its first
        step is of the first term.
        """
        body = self.tensors[read.tensor].body
        if not isinstance(body, eq.Read) or body.default is not None:
            return None
        made = instance(body, read)
        assert isinstance(made, eq.Read)
        known = made.tensor in self.tensors and self.tensors[made.tensor].step is not None
        return made if known else self._met_on_the_way(made, box)

    def _has_term(self, own: eq.Read, run: Run, other: eq.Expr, box: Limits) -> bool:
        """Whether a sum or a largest so far has met an element as one of its terms."""
        if run.function not in ("+", "max") or (run.function == "+" and run.start < 0):
            return False
        name, ends = _terms_met(own, run, box)
        if ends is None:
            return False
        term = along(run.term, own, run.axis, name)
        inner = self.one_box({**box, name: ends})
        return self.among(self.looks(term, inner), self.looks(other, box), {name: ends}, box)

    def terms_of_run(self, whole: eq.Reduce, some: eq.Expr, box: Limits) -> int:
        """The number of terms of a sum of which an element is a sum so far, none of them being
        negative; 0 where it is no such sum.
        """
        own = self._in_run(some, box)
        run = None if own is None else self.run_of(own.tensor)
        inner = self.inner_box(whole, box)
        if own is None or run is None or run.function != "+" or run.sign < 0 or run.start != 0:
            return 0
        if inner is None or len(whole.binders) != 1 or whole.body is None or whole.kind != "sum":
            return 0
        name = whole.binders[0][0]
        form = affine(own.index[run.axis])
        ends = None if form is None else form_ends(form, box)
        if whole.where is not None or ends is None or ends[0] < 0 or ends[1] > inner[name][1]:
            return 0
        term = along(run.term, own, run.axis, name)
        if not set(self.looks(term, inner)) & set(self.looks(whole.body, inner)):
            return 0
        count = inner[name][1] + 1
        least = self.value(whole.body, inner, {}).low
        return count if least >= 0 and count * self.own.row.unit <= 0.125 else 0


def _terms_met(own: eq.Read, run: Run, box: Limits) -> tuple[str, tuple[int, int] | None]:
    """An index of the terms that a step has met for sure, and its ends."""
    form = affine(own.index[run.axis])
    ends = None if form is None else form_ends(form, box)
    return f"met {run.axis}", None if ends is None or ends[0] < 0 else (0, ends[0])


def along(term: eq.Expr, own: eq.Read, axis: int, name: str) -> eq.Expr:
    """The term of a recurrence at an index with a name of its own, beside an element."""
    index = (*own.index[:axis], eq.Index(name), *own.index[axis + 1 :])
    return instance(term, eq.Read(own.tensor, index))


def _further(own: eq.Read, its: eq.Read, axis: int, box: Limits) -> Ends | None:
    """How many steps further along an axis an element lies than another, at least and at most; None
    where they are not of one row.
    """
    if own.tensor != its.tensor or own == its:
        return None
    found: Ends | None = None
    for at, (one, other) in enumerate(zip(own.index, its.index, strict=True)):
        forms = affine(one), affine(other)
        if forms[0] is None or forms[1] is None:
            return None
        gap = form_ends(forms[0].plus(forms[1], -1), box)
        if gap is None or (at != axis and gap != (0, 0)):
            return None
        found = gap if at == axis else found
    return found
