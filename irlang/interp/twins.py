"""Elements of calls apart that are computed in one way: the largest score in a softmax, and that in
the logarithm of a softmax of the same scores.
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeGuard

from irlang import equations as eq
from irlang.interp.elements import Sum
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import anonymous, small
from irlang.interp.wholes import Wholes

_DEEP = 5  # definitions, one inside another
_EXACT = ("max", "min")
_ROUNDED_ONCE = ("+", "-", "neg")


class Twins(Wholes):
    """An evaluator that writes elements out, so that two can be compared."""

    def written(self, expr: eq.Expr, box: Limits, depth: int = _DEEP) -> eq.Expr:
        """An element as it is computed from those of other calls, or as far as that is written out
        for so many definitions. Two that are alike are equal but for rounding.
        """
        if isinstance(expr, eq.Read) and expr.default is None:
            read = self.source(expr, box)[0]
            term = self.meaning(read, box) if depth else read
            return read if term == read or not small(term) else self.written(term, box, depth - 1)
        if isinstance(expr, eq.Reduce):
            inner = self.inner_box(expr, box)
            if inner is None or expr.where is not None or expr.body is None:
                return expr
            body = self.written(expr.body, inner, depth)
            found = anonymous(eq.Reduce(expr.kind, expr.binders, None, body))
            return found if small(found) else expr
        return eq.rebuild(expr, lambda part: self.written(part, box, depth))

    def without_twins(self, made: Sum, box: Limits) -> Sum:
        """A sum without the elements of which one is taken away from the other, its equal: two that
        are the largest, or the least, of the same elements, which does not hang on rounding.
        """
        looks = {atom: self.meaning(atom, box) for atom in made.factors}
        exact = [atom for atom, look in looks.items() if _is_extreme(look)]
        for one, other in combinations(exact, 2):
            factors = made.factors
            opposite = factors.get(one, 0.0) == -factors.get(other, 0.0) != 0
            if opposite and self.written(one, box, 1) == self.written(other, box, 1):
                made = made.plus(Sum({one: factors[one], other: factors[other]}), -1.0)
        return made


def _is_extreme(look: eq.Expr) -> bool:
    """Whether a term is the largest of some elements, or the least, as they are."""
    return isinstance(look, eq.Reduce) and look.kind in _EXACT and isinstance(look.body, eq.Read)


def of_differences(look: eq.Expr) -> TypeGuard[eq.Reduce]:
    """Whether a term, written out, is a sum of exponentials of what any two calls round alike:
    differences of elements and extremes. Products may be rounded with what is added to them.
    """
    if not isinstance(look, eq.Reduce) or look.kind != "sum":
        return False
    body = look.body
    if not isinstance(body, eq.Apply) or body.function != "exp":
        return False
    parts = [part for part in eq.walk(body.args[0]) if isinstance(part, (eq.Apply, eq.Reduce))]
    applied = (part.function for part in parts if isinstance(part, eq.Apply))
    reduced = (part.kind for part in parts if isinstance(part, eq.Reduce))
    return all(one in _ROUNDED_ONCE for one in applied) and all(one in _EXACT for one in reduced)
