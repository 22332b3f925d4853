"""What an element of a region is: a term over its tensor's indices, for relations to rest on."""

from __future__ import annotations

import math

from irlang import equations as eq
from irlang.dtypes import integer_range
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.range_eval import Evaluator, Limits
from irlang.interp.regions import Tensor
from irlang.interp.unfolding import instance, small, source, specialised

_NEUTRAL = {"+": 0, "-": 0, "*": 1, "/": 1, "min": math.inf, "max": -math.inf}
_EITHER = frozenset({"+", "*", "min", "max"})  # of which both arguments may be the neutral one


class Terms:
    """Terms of the elements that a call computes. walk: what evaluates its equations. tensors: all
    that are known, by name.
    """

    def __init__(self, walk: Evaluator, own: Arithmetic, tensors: dict[str, Tensor]) -> None:
        self.walk = walk
        self.own = own
        self.tensors = tensors

    def of(self, body: eq.Expr, box: Limits, info: eq.TensorInfo) -> eq.Expr | None:
        """What an element is, where that is a copy, or short and computed in the tensor's type."""
        if not small(body):
            return None
        term = specialised(body, box, self.tensors, self.walk.decided)
        while isinstance(term, eq.Apply) and term.function == "constant":  # of the same value
            term = term.args[0]
        term = self._without_neutral(term, box)
        if isinstance(term, eq.Read):
            dtype = self.tensors[term.tensor].info.dtype
            if dtype == "bool" and info.kind == "real":  # 0 and 1 are what they are in any type
                return eq.Apply("real", (term,))
            if info.kind == "real" and info.dtype == self.own.row.name:
                chosen = self._chosen(term, box)
                if chosen is not None:
                    return chosen
                if self._fits(term, box):
                    return eq.Apply("real", (term,))
            return term if dtype == info.dtype or self._holds(info, term, box) else None
        known = info.dtype in (self.own.row.name, "bool") or _is_choice(term, info)
        return term if known else None

    def _chosen(self, read: eq.Read, box: Limits) -> eq.Expr | None:
        """Which of two whole numbers an element is, as real ones that the type holds: a one-hot
        vector of integers is made real so.
        """
        read, region = source(read, box, self.tensors)
        if region is None or region.term is None:
            return None
        known = _is_choice(region.term, self.tensors[read.tensor].info)
        if not known or region.numbers.magnitude * self.own.row.unit > 1:
            return None
        made = instance(region.term, read)
        assert isinstance(made, eq.Apply)
        condition, *arms = made.args
        ends = (eq.Const(float(arm.value)) for arm in arms if isinstance(arm, (eq.Const, eq.Size)))
        return eq.Apply("select", (condition, *ends))

    def _fits(self, read: eq.Read, box: Limits) -> bool:
        """Whether whole numbers are numbers of the type of this call, all of them."""
        numbers = self.walk.plainly(read, box)
        whole = self.tensors[read.tensor].info.kind == "int"
        return whole and numbers.finite and numbers.magnitude * self.own.row.unit <= 1

    def _holds(self, info: eq.TensorInfo, read: eq.Read, box: Limits) -> bool:
        """Whether a tensor of whole numbers has a type that holds those of another."""
        if info.kind != "int" or self.tensors[read.tensor].info.kind != "int":
            return False
        numbers, (least, largest) = self.walk.plainly(read, box), integer_range(info.dtype)
        return numbers.finite and least <= numbers.low and numbers.high <= largest

    def _without_neutral(self, term: eq.Expr, box: Limits) -> eq.Expr:
        """A term without what leaves it as it is: 0 that is added, 1 as a factor, no bound."""
        told, self.walk.note = self.walk.note, None
        try:
            while isinstance(term, eq.Apply) and term.function in _NEUTRAL and not self.own.flush:
                pairs = list(zip(term.args, term.args[::-1], strict=True))
                kept = [
                    one
                    for one, other in (pairs if term.function in _EITHER else pairs[:1])
                    if self._is_neutral(other, _NEUTRAL[term.function], box)
                ]
                if not kept:
                    break
                term = kept[0]
        finally:
            self.walk.note = told
        return term

    def _is_neutral(self, expr: eq.Expr, neutral: float, box: Limits) -> bool:
        """Whether an expression is a number for sure."""
        if math.isinf(neutral):  # as a bound that is none stands in the text
            return isinstance(expr, (eq.Const, eq.Size)) and expr.value == neutral
        if eq.reduces(expr):
            return False  # which would be evaluated once more
        return self.walk.plainly(expr, box).only == neutral


def _is_choice(term: eq.Expr, info: eq.TensorInfo) -> bool:
    """Whether a whole number is one of two, as a condition says, that its type holds."""
    if info.kind != "int" or not isinstance(term, eq.Apply) or term.function != "select":
        return False
    least, largest = integer_range(info.dtype)
    return all(
        isinstance(arm, (eq.Const, eq.Size))
        and least <= arm.value <= largest
        and arm.value == int(arm.value)
        for arm in term.args[1:]
    )
