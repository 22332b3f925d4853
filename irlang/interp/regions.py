"""Tensors as a few boxes of indices with a set of numbers each.

Where an equation has to be looked at piece by piece is read from its own conditions, its bounds and
the boxes of what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.constants import Known
from irlang.interp.interval import NOTHING, REPORTED, Numbers, join

Box = tuple[tuple[int, int], ...]  # for every axis the first index and the one after the last
Ends = tuple[int, int]  # both included
LIMIT = 16  # regions of a tensor
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_NUMBERS = 3  # of a tensor, that an index is compared with


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a tensor. term: what an element is, over the indices `#0`, `#1`, … of the tensor."""

    box: Box
    numbers: Numbers
    term: eq.Expr | None = None


@dataclass(slots=True, eq=False)
class Span:
    """How long a tensor is, found once it is asked for. reads: what it is made of."""

    body: eq.Expr
    box: Mapping[str, Ends]
    reads: Mapping[str, Tensor]
    own: Arithmetic
    found: float | None = None


@dataclass(slots=True)
class Tensor:
    """A tensor by regions, which are disjoint and, once it is computed, cover it.

    body: what an element is, wherever it lies. reasons: relations that its numbers rest on.
    span: how long it is as a whole. known: its numbers, where they are known. step: the axis that a
    recurrence goes along, and what an element is by the one before. written: what an element is
    computed as, of whole numbers, and which of those it is.
    """

    info: eq.TensorInfo
    regions: tuple[Region, ...]
    body: eq.Expr | None = None
    reasons: tuple[str, ...] = ()
    span: Span | None = None
    known: Known | None = None
    step: tuple[int, eq.Expr] | None = None
    written: eq.Expr | None = None
    hull: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.hull = join(*(region.numbers for region in self.regions))

    @property
    def handed(self) -> bool:
        """Whether an earlier call, which is reported, may have made it NaN or infinite."""
        return REPORTED in self.hull.origins

    def finite(self) -> Tensor:
        """The same without what was reported, and without what follows from how it was made."""
        regions = tuple(Region(region.box, region.numbers.finite_part()) for region in self.regions)
        return Tensor(self.info, regions, None, self.reasons)

    def at(self, ends: Sequence[Ends]) -> Numbers:
        """What the elements may be whose indices lie between the ends; nothing outside."""
        if len(self.regions) == 1:
            return self.hull if _meets(self.regions[0].box, ends) else NOTHING
        return join(*(r.numbers for r in self.regions if _meets(r.box, ends)))

    def only(self, ends: Sequence[Ends]) -> Region | None:
        """The region that holds all indices between the ends."""
        for region in self.regions:
            for (low, high), (a, b) in zip(ends, region.box, strict=True):
                if low < a or high >= b:
                    break
            else:
                return region
        return None

    def bounds(self, axis: int) -> set[int]:
        """Where along an axis one region ends and another begins, the ends of the axis included."""
        return {end for region in self.regions for end in region.box[axis]}


def _meets(box: Box, ends: Sequence[Ends]) -> bool:
    for (low, high), (a, b) in zip(ends, box, strict=True):  # noqa: SIM110 (asked for most of all)
        if low >= b or high < a:
            return False
    return True


def whole(info: eq.TensorInfo, numbers: Numbers, term: eq.Expr | None = None) -> Tensor:
    """A tensor of one region; of none where it has no elements."""
    box = tuple((0, size) for size in info.shape)
    return Tensor(info, () if 0 in info.shape else (Region(box, numbers, term),))


def copied(tensor: Tensor, name: str) -> Tensor:
    """A tensor of which is known that it equals another."""
    index = tuple(eq.Index(f"#{axis}") for axis in range(len(tensor.info.shape)))
    term = eq.Read(name, index)
    regions = tuple(Region(region.box, region.numbers, term) for region in tensor.regions)
    return Tensor(tensor.info, regions, term, tensor.reasons, tensor.span, tensor.known)


def merged(info: eq.TensorInfo, regions: Sequence[Region]) -> Tensor:
    """A tensor of regions, neighbours joined that are alike, and all where they are too many."""
    found = list(regions)
    for axis in range(len(info.shape)):
        groups: dict[Box, list[Region]] = {}
        for region in found:
            rest = (*region.box[:axis], *region.box[axis + 1 :])
            groups.setdefault(rest, []).append(region)
        found = []
        for group in groups.values():
            group.sort(key=lambda region: region.box[axis])
            kept = [group[0]]
            for region in group[1:]:
                last = kept[-1]
                touching = last.box[axis][1] == region.box[axis][0]
                if touching and last.numbers == region.numbers and last.term == region.term:
                    span = (last.box[axis][0], region.box[axis][1])
                    box = (*last.box[:axis], span, *last.box[axis + 1 :])
                    kept[-1] = Region(box, last.numbers, last.term)
                else:
                    kept.append(region)
            found += kept
    if len(found) > LIMIT:
        return whole(info, join(*(region.numbers for region in found)))
    return Tensor(info, tuple(found))


# ---- where to cut -----------------------------------------------------------------------------


def form_ends(form: Affine, box: Mapping[str, Ends]) -> Ends | None:
    """The least and the largest value of an affine form; None where an index is not in the box."""
    low = high = form.constant
    for name, coefficient in form.coefficients.items():
        if name not in box:
            return None
        first, last = box[name]
        if coefficient < 0:
            first, last = last, first
        low, high = low + coefficient * first, high + coefficient * last
    return low, high


@dataclass(frozen=True, slots=True)
class Borders:
    """Where an expression may change its look.

    forms: what affine forms pass there, by the coefficients of the indices. binders: the indices
    that are bound inside, with the forms of their bounds.
    """

    forms: Mapping[tuple[tuple[str, int], ...], Set[int]]
    binders: tuple[tuple[str, Affine], ...]


def borders(expr: eq.Expr, tensors: Mapping[str, Tensor]) -> Borders:
    """The borders of an expression, whatever box its indices are in."""
    forms: dict[tuple[tuple[str, int], ...], set[int]] = {}
    for form, at in _boundaries(expr, tensors):
        if form.coefficients:
            key = tuple(form.coefficients.items())
            forms.setdefault(key, set()).add(at - form.constant)
    bound = [
        (name, affine(size))
        for part in (eq.walk(expr) if eq.reduces(expr) else ())
        if isinstance(part, eq.Reduce)
        for name, size in part.binders
    ]
    return Borders(forms, tuple((name, form) for name, form in bound if form is not None))


def _dominant(
    coefficients: tuple[tuple[str, int], ...], bounds: Set[int], name: str, box: Mapping[str, Ends]
) -> set[int]:
    """Where along an index the form passes bounds, if the other indices matter little."""
    rest = Affine({other: n for other, n in coefficients if other != name})
    ends = form_ends(rest, box)
    if ends is None:
        return set()
    found: set[int] = set()
    coefficient = dict(coefficients)[name]
    if coefficient < 0:
        coefficient, ends, bounds = -coefficient, (-ends[1], -ends[0]), {1 - at for at in bounds}
    for at in bounds:
        first = -((ends[1] - at) // coefficient)
        last = -((ends[0] - at) // coefficient)
        if last - first <= 2:
            found |= {first, last}
    return found


def cuts(where: Borders, box: Mapping[str, Ends], names: Sequence[str]) -> dict[str, set[int]]:
    """For every one of the indices, where an expression of these borders may change its look.

    box: of all indices whose bounds are known; others, bound inside, are taken from their binders.
    """
    inner = dict(box)
    for name, form in where.binders:
        ends = form_ends(form, inner)
        if ends is not None:
            inner[name] = (0, max(ends[1] - 1, 0))
    found: dict[str, set[int]] = {name: set() for name in names}
    for coefficients, bounds in where.forms.items():
        for name, _ in coefficients:
            if name in found:
                found[name] |= _dominant(coefficients, bounds, name, inner)
    return {
        name: {at for at in places if box[name][0] < at <= box[name][1]}
        for name, places in found.items()
    }


def _boundaries(expr: eq.Expr, tensors: Mapping[str, Tensor]) -> Iterator[tuple[Affine, int]]:
    """Affine forms and the numbers from which on something is different."""
    for part in eq.walk(expr):
        if isinstance(part, eq.Apply) and part.function in _COMPARISONS:
            left, right = affine(part.args[0]), affine(part.args[1])
            if left is not None and right is not None:
                gap = left.plus(right, -1)
                for bound in (0, 1):
                    yield gap, bound
            for form, other in ((left, part.args[1]), (right, part.args[0])):
                if form is not None and isinstance(other, eq.Read):
                    yield from ((form, bound) for bound in _positions(tensors[other.tensor]))
        elif isinstance(part, (eq.Read, eq.Inside)):
            tensor = tensors[part.tensor]
            for axis, index in enumerate(part.index):
                bounds = tensor.bounds(axis) | {0, tensor.info.shape[axis]}
                form = affine(index)
                if form is not None:
                    for bound in bounds:
                        yield form, bound
                else:
                    yield from _quotients(index, bounds, tensor.info.shape[axis])


def _positions(tensor: Tensor) -> Iterator[int]:
    """The whole numbers that a tensor is known to hold, and those after them: an index that is
    compared with its elements is one of them or lies between two. Of many there are none: proofs
    about all of the boxes between them would be cut short.
    """
    regions = tensor.regions if tensor.info.kind == "int" else ()
    known = {int(r.numbers.only) for r in regions if r.numbers.only is not None}
    for number in sorted(known) if len(known) <= _NUMBERS else ():
        yield from (number, number + 1)


def _quotients(index: eq.Expr, bounds: set[int], extent: int) -> Iterator[tuple[Affine, int]]:
    """The same of a quotient, with an affine form beside it or without; of a remainder too where it
    is inside a single period.
    """
    beside = Affine({})
    while isinstance(index, eq.Apply) and index.function == "+":
        forms = [affine(arg) for arg in index.args]
        at = next((at for at, form in enumerate(forms) if form is not None), None)
        if at is None:
            return
        beside, index = beside.plus(forms[at] or Affine({})), index.args[1 - at]
    if not isinstance(index, eq.Apply) or index.function not in ("//", "%"):
        return
    form, divisor = affine(index.args[0]), affine(index.args[1])
    if form is None or divisor is None or not divisor.known or divisor.constant <= 0:
        return
    if index.function == "//":
        for bound in bounds:
            yield form.plus(beside, divisor.constant), bound * divisor.constant
    elif len(bounds) > 2 and beside == Affine({}):
        for period in range(_PERIODS):
            for bound in bounds:
                yield form, period * divisor.constant + bound % max(extent, 1)


_PERIODS = 4


def parted(
    expr: eq.Expr, box: Mapping[str, Ends], tensors: Mapping[str, Tensor]
) -> list[dict[str, Ends]]:
    """The boxes in which an expression may look different: cut once, and then each by itself, as
    where along a row something changes may hang on which row it is.
    """
    names = list(box)
    where = borders(expr, tensors)
    first = pieces(box, cuts(where, box, names))
    if len(first) == 1:
        return first
    found = [part for one in first for part in pieces(one, cuts(where, one, names))]
    return found if len(found) <= LIMIT else first


def pieces(
    box: Mapping[str, Ends], places: Mapping[str, set[int]], limit: int = LIMIT
) -> list[dict[str, Ends]]:
    """The boxes between the cuts; the indices with most cuts go uncut where they would be many."""
    parts: dict[str, list[Ends]] = {}
    for name, ends in box.items():
        at = [ends[0], *sorted(places.get(name, ())), ends[1] + 1]
        parts[name] = [(a, b - 1) for a, b in pairwise(at)]
    while prod(map(len, parts.values())) > limit:
        name = max(parts, key=lambda n: len(parts[n]))
        parts[name] = [box[name]]
    names = list(parts)
    return [dict(zip(names, ends, strict=True)) for ends in product(*parts.values())]
