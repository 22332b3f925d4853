"""What relations between elements say of a result: sums of elements in which some cancel, and
reductions that bound what they reduce.

From a few general facts follows what one knows of networks: a maximum is no less than any of its
elements and equals one, so that x - max(x) is 0 at most and the sum of exp(x - max(x)) is 1 at
least; a sum of terms that are not negative is no less than any of them, in every order of
summation, so that e / sum(e) is 1 at most; (c + o) - (c - o) is 2 o but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.factored import Factored
from irlang.interp.interval import Numbers, meet
from irlang.interp.proofs import Known
from irlang.interp.quotients import NO_LESS
from irlang.interp.range_eval import OF_ITSELF, Limits
from irlang.interp.sums import WHOLE
from irlang.interp.unfolding import pinned, settled, taken

_INSIDE = 2  # elements of diagonals, one made of another
_OF_TWO_TERMS = -0.5  # less than two terms of an entropy are, at least
_TOP = float.fromhex("0x1.fffffffffffffp+1023")


class Relations(Factored):
    """An evaluator that uses relations between elements, as far as regions have terms."""

    _looked_into = 0  # elements of diagonals that are taken apart, one made of another
    _telling: dict[tuple[str, int], bool]  # tensors whose elements hang on where they are

    def forget(self) -> None:
        """Tensors have become others: what they are made of is looked up anew."""
        super().forget()
        self._telling = {}

    # ---- what improves on the interval of a function

    def related(
        self, expr: eq.Apply, found: Numbers, args: list[Numbers], box: Limits, facts: Facts
    ) -> Numbers:
        """A result, given those of its arguments, less what relations between them exclude."""
        found = super().related(expr, found, args, box, facts)
        function = expr.function
        if function in OF_ITSELF and not any(a.nan for a in args):
            return self.as_one(expr, found, box, facts)
        kind = self.kind(expr)
        if kind == "int" and function in ("+", "-") and not self.done():
            return self._whole_numbers(expr, found, list(zip(expr.args, args, strict=True)), box)
        if self.done() or function not in ("+", "-", "*", "/") or kind != "real":
            return found
        none = function == "-" and args[1].pieces and args[1].low == args[1].high == 0
        if none and self._equal is None and not self.stepping:
            return found  # nothing is taken away
        known = list(zip(expr.args, args, strict=True))
        if function == "*":
            return self._multiplied(expr, found, known, box, facts)
        if function == "/":
            quotient = partial(self.quotient, expr, found, box, facts)
            return self._use(NO_LESS, found, quotient, known, box, facts)
        if function == "+":
            average = partial(self.mean_of_two, expr, found, box, facts)
            found = self._use("a number is an average of two", found, average, known, box, facts)
            mixture = partial(self.mixture, expr, found, box, facts)
            found = self._use("numbers are mixed", found, mixture, known, box, facts)
        if (function == "+" or found.low < 0 < found.high) and self.has_masks(expr):
            found = self.by_truth(expr, found, box, facts)
        if function == "+" and found.low >= 0.0 and found.pieces:
            found = self._of_means(expr, found, box)
        if function == "+" and 0.0 <= found.low < 1.0:
            found = self._on_circle(expr.args, found, box)
        if function == "+" and 0.0 <= found.low < 1.0 and self._equal is None:
            larger = partial(self._of_larger, expr, found.low, box, facts)
            least = self.aside(larger, known, box, facts)
            found = self.cut(found, least, math.inf, "one of the terms is that of the larger")
        if found.low < 0 < found.high and not self._level:
            found = self.by_branch(expr, found, box, facts)
        if found.low <= 0 < found.high and not self._level and self._equal is None:
            root = partial(self.beside_root, expr, found, box)
            found = self._use("a root is larger than a number", found, root, known, box, facts)
        return self._cancelled(expr, found, [*known, (expr, found)], box, facts)

    def _multiplied(
        self, expr: eq.Apply, found: Numbers, known: Known, box: Limits, facts: Facts
    ) -> Numbers:
        """A product, less what its factors have to do with one another excludes."""
        sign = self.aside(partial(self._sign, expr, box)) if found.low < 0 < found.high else 0
        if sign:
            ends = (0.0, math.inf) if sign > 0 else (-math.inf, 0.0)
            found = self.cut(found, *ends, "a number times itself is not negative")
        found = self._use(
            "the sum of two factors is known", found,
            partial(self.parabola, expr, found, box, facts), known, box, facts,
        )  # fmt: skip
        if found.low < 0 < found.high:
            why = "one factor is a multiple of the other"
            alike = partial(self.likeness, expr, found, box, facts)
            found = self._use(why, found, alike, known, box, facts)
        shared = partial(self.of_parts, expr, found, box, facts)
        found = self._use("two parts share one whole", found, shared, known, box, facts)
        scaled = partial(self._scaled, expr, found, box)
        found = self._use(NO_LESS, found, scaled, known, box, facts)
        if found.magnitude > 1.0 and not self._level:
            found = self.aside(partial(self.by_pairs, expr, found, box), known, box, facts)
        return self.aside(partial(self.over_lengths, expr, found, box), known, box, facts)

    def _whole_numbers(self, expr: eq.Apply, found: Numbers, known: Known, box: Limits) -> Numbers:
        """A sum or difference of whole numbers, less what is beyond what cancels in it."""
        if not (found.finite and found.low < 0 < found.high and found.magnitude < WHOLE):
            return found
        low, high = self.aside(partial(self.sum_ends, expr, box, {}), known, box, {})
        low, high = (
            math.ceil(low) if math.isfinite(low) else low,
            math.floor(high) if math.isfinite(high) else high,
        )
        return self.cut(found, low, high, "elements cancel in a sum")

    def _cancelled(
        self, expr: eq.Apply, found: Numbers, known: Known, box: Limits, facts: Facts
    ) -> Numbers:
        """A sum or difference, less what is beyond what cancels in it."""
        ends = self.aside(partial(self.sum_ends, expr, box, facts), known, box, facts)
        found = self.cut(found, *ends, "elements cancel in a sum")
        if found.magnitude > 1.0 and not self._level:
            shared = partial(self.by_shared_factor, expr, found, box, facts)
            found = self.aside(shared, known, box, facts)
        open_ = found.low < 0 or (found.low == 0 and self._adds_products(expr, box))
        if open_ and found.high > 0 and not self._level:
            ends = self.aside(partial(self.by_form, expr, box, facts), known, box, facts)
            found = self.cut(found, *ends, "it is a polynomial of its elements")
        if expr.function == "-" and found.low < 0 < found.high and not self._level:
            ends = self.aside(partial(self.beside_any, expr, box), known, box, facts)
            found = self.cut(found, *ends, "the largest of some elements is one of them")
        if expr.function == "-" and found.low < 0 < found.high and not self._level:
            lost = self.aside(partial(self.left_over, expr, box), known, box, facts)
            why = "what is taken away is there more than once"
            found = self.cut(found, -lost, math.inf, why)
        return found

    def _adds_products(self, expr: eq.Apply, box: Limits) -> bool:
        """Whether a product is added: where that is 0, what it is added to may be more."""
        terms = [self.meaning(arg, box) for arg in expr.args] if expr.function == "+" else []
        return any(isinstance(term, eq.Apply) and term.function in ("*", "sq") for term in terms)

    def _use(
        self,
        why: str,
        found: Numbers,
        proof: Callable[[], Numbers],
        known: Known,
        box: Limits,
        facts: Facts,
    ) -> Numbers:
        """What a proof leaves of a set, and why."""
        made = self.aside(proof, known, box, facts)
        if made != found:
            self.because(why)
        return made

    def known(self, expr: eq.Expr, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A value, less what the facts exclude for it or for what it is a copy of."""
        found = super().known(expr, found, box, facts)
        if isinstance(expr, eq.Read) and expr.default is None:
            read = self.source(expr, box)[0]
            if read in facts:
                return meet(found, facts[read])
            term = self.meaning(read, box)
            if term is not read and any(part in facts for part in eq.walk(term)):
                found = meet(found, self.aside(lambda: self.value(term, box, facts)))
        return found

    def _read(self, expr: eq.Read, box: Limits, facts: Facts) -> Numbers:
        """An element; the first of sorted ones reaches what the largest of them does, and one of a
        diagonal is what it is made of there.
        """
        found = super()._read(expr, box, facts)
        if self._level or expr.default is not None or not found.pieces:
            return found
        if found.below or found.above:
            found = self._at_row(expr, found, box)
        at = self.source(expr, box)[0] if found.low < 0 else expr
        if found.low < 0 and len(at.index) > 1:
            read = self._twice_at(at, box)
            if read is not None:
                why = "what is on the diagonal is made of equal numbers"
                return self._made_there(read, found, box, why)
        if not 0 <= found.low < 1.0:
            return found
        if any(isinstance(at, eq.Apply) and at.function == "select" for at in expr.index):
            expr = eq.Read(expr.tensor, tuple(taken(at, box, self.decided) for at in expr.index))
        if any(isinstance(at, eq.Read) for at in expr.index):
            found = self._at_place(expr, found, box)
        look = self.meaning(expr, box)
        largest = self.largest(look, box)
        if largest is None:
            most = self.aside(partial(self.most_at_rank, look, box))
            return self.cut(found, -math.inf, most, "those that are larger are parts of a whole")
        reached = meet(found, self.anew(largest, box))
        if reached != found:
            self.because("the first of sorted numbers is the largest")
        return reached

    def _twice_at(self, read: eq.Read, box: Limits) -> eq.Read | None:
        """An element at twice the same index, of axes that have others; None for another, and for
        one at a corner of what is computed place by place, as by a convolution.
        """
        shape = self.tensors[read.tensor].info.shape
        if sum(size > 1 for size in shape) < 2:
            return None
        there = pinned(read, box)
        if not isinstance(there, eq.Read):
            return None
        several = [at for at, size in zip(there.index, shape, strict=True) if size > 1]
        if len(set(several)) == len(several):
            return None
        written = len(set(read.index)) < len(read.index)
        return there if written or self._tells_places(read.tensor, _INSIDE) else None

    def _tells_places(self, tensor: str, depth: int) -> bool:
        """Whether elements are made of two of one tensor, or as a comparison of indices says."""
        key = tensor, depth
        if key not in self._telling:
            known = self.tensors[tensor] if self.as_here(tensor) else None
            terms = () if known is None else {known.body, *(part.term for part in known.regions)}
            self._telling[key] = any(self._tells(term, depth) for term in terms if term is not None)
        return self._telling[key]

    def _tells(self, term: eq.Expr, depth: int) -> bool:
        read = {part for part in eq.parts(term) if isinstance(part, eq.Read)}
        tensors = {part.tensor for part in read}
        if len(tensors) < len(read) or any(
            isinstance(part, eq.Apply) and part.function == "==" and not eq.reads(part)
            for part in eq.parts(term)
        ):
            return True
        return depth > 0 and any(self._tells_places(name, depth - 1) for name in tensors)

    def _at_place(self, expr: eq.Read, found: Numbers, box: Limits) -> Numbers:
        """An element at an index that is read: where the elements are largest, or another is."""
        extreme = self.extreme(expr, box)
        if extreme is not None:
            made = meet(found, self.anew(extreme, box))
            if made != found:
                self.because("it is read where it is largest")
            return made
        return self._made_there(expr, found, box, "it is read where another number is largest")

    def _at_row(self, expr: eq.Read, found: Numbers, box: Limits) -> Numbers:
        """An element that may be infinite, at an index that is read: the segment that a row is in
        has a row, others may have none.
        """
        if not any(map(eq.reads, expr.index)):
            return found
        term = self.meaning(expr, box)
        if not isinstance(term, eq.Apply) or term.function not in ("max", "min"):
            return found
        made = self.anew(term, box)
        if not (made.finite and made.pieces):
            return found
        return self.cut(found, made.low, made.high, f"a term of the {term.function} is finite")

    def _made_there(self, expr: eq.Read, found: Numbers, box: Limits, why: str) -> Numbers:
        """An element at twice the same index, or at one that is read, by what it is made of: of
        what is multiplied on a diagonal both may be one, and what is largest may be in it.
        """
        term = self.meaning(expr, box)
        if term == expr or isinstance(term, eq.Read) or self._looked_into > _INSIDE:
            return found
        self._looked_into += 1
        try:
            made = meet(found, self.anew(term, box))
        finally:
            self._looked_into -= 1
        if made != found:
            self.because(why)
        return made

    def summed(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A maximum, or a sum of terms of one sign, is no less than a term that is met."""
        found = self.of_an_extreme(expr, self.surely(expr, found, box), box)
        weighed = self.aside(partial(self.by_positions, expr, found, box))
        known = weighed != found and expr.where is not None
        if known or self.done() or expr.body is None:
            return weighed
        found = weighed
        if expr.kind in ("max", "min") and (found.below or found.above):
            found = self._met(expr, found, box, facts)
        if expr.where is not None:
            return self.chosen_terms(expr, found, box, facts)
        if expr.kind in ("max", "min") and self.kind(expr) == "real":
            found = self._centred(expr, found, box, facts)
        if expr.kind == "max" and 0 <= found.low < 1.0:
            found = self.aside(partial(self.by_one, expr, found, box))
        if expr.kind == "sum":
            found = self.aside(partial(self.by_single, expr, found, box))
            inner = self.inner_box(expr, box)
            terms = self.terms_of(expr, inner) if inner is not None and found.low >= 0 else ()
            found = self._on_circle(terms, found, box)
            found = self._of_means(expr, found, box) if found.pieces else found
        if expr.kind == "sum" and 0 <= found.low < 1.0 < found.magnitude:
            found = self.aside(partial(self.by_swapping, expr, found, box))
        if expr.kind == "sum" and found.magnitude > 1.0:
            found = self.aside(partial(self.by_lengths, expr, found, box, facts))
            found = self.aside(partial(self.by_spread, expr, found, box, facts))
            if found.low < 0 < found.high and not self._level:
                found = self.aside(partial(self.by_difference, expr, found, box, facts))
        weighs = found.magnitude > 1.0 or found.low < _OF_TWO_TERMS
        if expr.kind == "sum" and (weighs or self._adds_shares(expr, found, box)):
            found = self.aside(partial(self.by_weights, expr, found, box))
        if expr.kind not in ("sum", "max") or self.kind(expr) != "real" or found.low >= 1.0:
            return found
        if expr.kind == "sum" and (not found.pieces or found.pieces[0][0] < 0):
            return found
        least = self.aside(lambda: self._attained(expr, box, facts))
        if least is None and expr.kind == "sum" and (found.low == 0 or not self._level):
            placed = self.aside(lambda: self.placed(expr, box, facts))
            return self.cut(found, placed, math.inf, "a term, that at a corner, is known")
        if least is None:
            return found
        why = f"a term, that at the maximum or minimum, is {least:.6g} at least"
        return self.cut(found, least, math.inf, why)

    def _adds_shares(self, expr: eq.Reduce, found: Numbers, box: Limits) -> bool:
        """Whether a sum is of squares of what may be parts of a whole."""
        inner = self.inner_box(expr, box) if 0 < found.low < found.high else None
        if inner is None or expr.body is None or self.kind(expr) != "real":
            return False
        return self.square_of(expr.body, inner) is not None

    def _on_circle(self, terms: Sequence[eq.Expr], found: Numbers, box: Limits) -> Numbers:
        """A sum of two squares that add up to 1."""
        off = self.aside(partial(self.off_circle, terms, box))
        if off is None:
            return found
        return self.cut(found, 1 - off, 1 + off, "two squares of one argument add up to 1")

    def _of_means(self, expr: eq.Apply | eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum of the squares of means, less what no vector is as long as that these are of."""
        if not found.high > 0:
            return found
        most = self.aside(partial(self.of_means, expr, box))
        return self.cut(found, -math.inf, most, "a mean is no longer than what it is taken of")

    # ---- largest and least elements

    def _met(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A maximum, less what is below the term at some index: the first, the last, one of those
        outside, as on the diagonal of a mask; where that is among those that it is taken over.
        """
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None:
            return found
        names = [name for name, _ in expr.binders]
        tried: list[dict[str, eq.Expr]] = [
            {name: eq.Const(inner[name][end]) for name in names} for end in (0, 1)
        ]
        tried += [
            {names[0]: eq.Index(name)}
            for name, ends in box.items()
            if len(names) == 1 and ends[1] <= inner[names[0]][1]
        ]
        where = expr.where
        if where is not None and self.some_chosen(expr, facts):
            least = self.aside(partial(self.value, expr.body, inner, facts))
            if least.finite and least.pieces:
                return self.cut(
                    found, least.low, least.high, "what holds of some element holds of one"
                )
        if where is not None:
            conditions = (settled(eq.substitute(where, choice)) for choice in tried)
            holds = [self.decided(condition, box) is True for condition in conditions]
            tried = [choice for choice, met in zip(tried, holds, strict=True) if met]
        terms = [settled(eq.substitute(expr.body, choice)) for choice in tried]
        chosen = self.selected(expr, box)
        for term in terms if chosen is None else (*terms, chosen):
            met = self.aside(partial(self.value, self.meaning(term, box), box, facts))
            if met.pieces and expr.kind == "max" and not met.below:
                found = self.cut(found, met.low, math.inf, "a term of the maximum is finite")
            elif met.pieces and expr.kind == "min" and not met.above:
                found = self.cut(found, -math.inf, met.high, "a term of the minimum is finite")
        if where is None and (found.below if expr.kind == "max" else found.above):
            some = self.aside(partial(self.by_some, expr, inner, facts))
            if some is not None:
                ends = (some.low, math.inf) if expr.kind == "max" else (-math.inf, some.high)
                found = self.cut(found, *ends, "what holds of some element holds of one")
        return found

    def _centred(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A largest or least element, less what is on the other side of the mean of all."""
        inner = self.inner_box(expr, box)
        if inner is None or not found.finite or not found.low < 0 < found.high:
            return found
        end = self.aside(partial(self.beside_mean, expr, inner, box, facts))
        ends = (end, math.inf) if expr.kind == "max" else (-math.inf, end)
        return self.cut(found, *ends, "the mean lies between the least and the largest")
