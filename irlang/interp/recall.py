"""What proofs brought in a call, for the calls that are like it: the layers of a deep model.

Calls are alike where their equations are the same, what they read is made in the same way and lies
on the same side of 0. A proof that has brought nothing in any of them so far is not tried in those
after it, which leaves these more tries for others. That takes away precision at most, and no
verdict hangs on it: where a place of a call is left possible, the call is judged anew with all
proofs (`irlang.interp.range`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from irlang import equations as eq
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.assumptions import Facts
from irlang.interp.interval import Numbers, Origin
from irlang.interp.range_eval import Limits, Note
from irlang.interp.regions import Tensor
from irlang.interp.splits import Splits

_LITTLE = 2.0**-8  # of what lies between two ends: so much less is nothing
_DEPTH = 2  # definitions behind one another by which calls are compared

# an operation, the box, which proofs, and on which sides of some numbers it was before them
Site = tuple[Origin, tuple[tuple[int, int], ...], str, Any]
Trials = Mapping[Site, bool]  # whether proofs that were tried there have ever brought anything
NONE: Trials = MappingProxyType({})


class Recall(Splits):
    """An evaluator that tries no proof where others like it brought nothing."""

    before: Trials = NONE  # of the calls before it that are like it

    def __init__(
        self,
        tensors: dict[str, Tensor],
        own: Arithmetic,
        note: Note | None = None,
        split: bool = True,
    ) -> None:
        super().__init__(tensors, own, note, split)
        self.trials: dict[Site, bool] = {}

    def related(
        self, expr: eq.Apply, found: Numbers, args: list[Numbers], box: Limits, facts: Facts
    ) -> Numbers:
        """A result, less what relations exclude, unless they excluded nothing in a call alike."""
        tried = super().related
        return self._tried(
            expr, "related", found, box, lambda: tried(expr, found, args, box, facts)
        )

    def summed(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """The same of a reduction."""
        tried = super().summed
        return self._tried(expr, "summed", found, box, lambda: tried(expr, found, box, facts))

    def _tried(
        self, expr: eq.Expr, which: str, found: Numbers, box: Limits, proofs: Callable[[], Numbers]
    ) -> Numbers:
        origin = self.origins.get(id(expr))
        if origin is None or self._level or self.left < 0:
            return proofs()
        site = origin, tuple(box.values()), which, _side(found)
        if not self.before.get(site, True):
            return found
        made = proofs()
        self.trials[site] = self.trials.get(site, False) or narrower(made, found)
        return made


def together(one: Trials, other: Trials) -> Trials:
    """What proofs have brought in either: where one call ran out of tries, another had some."""
    return {**one, **{site: use or one.get(site, False) for site, use in other.items()}}


def likeness(
    equations: Sequence[eq.Equation], feeds: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> Any:
    """What calls that are alike have in common. feeds: the values that a call reads."""
    looks = _Looks(tensors)
    return tuple(equations), tuple((f, looks.tensor(name, _DEPTH)) for f, name in feeds.items())


class _Looks:
    """How tensors look: how they are made and on which side of 0 they are, their names aside."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors
        self.numbers: dict[str, int] = {}  # of tensors, in the order in which they are met

    def tensor(self, name: str, depth: int) -> Any:
        """A tensor and, so many definitions deep, what it is made of."""
        seen = name in self.numbers
        number = self.numbers.setdefault(name, len(self.numbers))
        tensor = self.tensors[name]
        if seen or not depth:
            return number, tensor.info
        parts = tuple(
            (region.box, _side(region.numbers), self._term(region.term, depth - 1))
            for region in tensor.regions
        )
        made = (self._term(term, depth - 1) for term in (tensor.body, tensor.written))
        return number, tensor.info, parts, *made

    def _term(self, term: eq.Expr | None, depth: int) -> Any:
        if isinstance(term, eq.Index):
            return term.name.partition("@")[0]  # of the call that bound it
        if isinstance(term, eq.Read):
            inner = tuple(self._term(part, depth) for part in eq.children(term))
            return self.tensor(term.tensor, depth), inner
        if term is None or isinstance(term, (eq.Const, eq.Size)):
            return term
        inner = tuple(self._term(part, depth) for part in eq.children(term))
        own = term.function if isinstance(term, eq.Apply) else type(term).__name__
        return own, getattr(term, "kind", ""), inner


def _side(numbers: Numbers) -> Any:
    """What conditions of proofs ask of numbers: their signs, whether they are larger than 1."""
    ends = tuple(end for at in (-1.0, 0.0, 1.0) for end in (numbers.low < at, numbers.high > at))
    return (
        *ends,
        numbers.low > 0,
        numbers.high < 0,
        numbers.finite,
        numbers.empty,
        numbers.only is None,
    )


def narrower(made: Numbers, found: Numbers) -> bool:
    """Whether a proof has brought more than a few digits of an end."""
    if made == found:
        return False
    kinds = [(len(one.pieces), one.nan, _side(one)) for one in (made, found)]
    if kinds[0] != kinds[1]:
        return True
    return made.high - made.low < (1 - _LITTLE) * (found.high - found.low)
