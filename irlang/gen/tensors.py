"""New tensors of a call that is being drawn: of the sizes that are settled, and of new ones where
none is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.gen import draw
from irlang.gen.choice import Chooser
from irlang.gen.draw import Limits
from irlang.gen.pattern import Pattern, Slot
from irlang.gen.required import evaluate, names_in
from irlang.gen.settle import Settled, Stuck, Weights
from irlang.placement import place
from irlang.scope import Scope

_RANKS = (1, 1, 2, 2, 2, 3)  # of the axes beside single ones
_AROUND = (0, 0, 1, 1, 1, 2)  # of these where there may be some on either side
_BATCHES = (0, 0, 1, 1, 2, 3)  # of those in front of several single ones
_NAMED = (0, 1, 1, 1, 2, 2, 2, 3)  # axes that a list names
_DEEP = 4  # axes that are more than usual
_LONE_AXIS = 6  # of so many shapes that broadcast, three have one axis or none
_WIDER = (4, 16)  # one in so many is wider where what is bound has size 1; has an axis more
_SMALLER = 4  # one in so many of the first of such shapes is small already
_BESIDE = 8  # elements that entries beside a long axis may have, so that there is room for it
_HOLLOW = 50  # percent of calls with empty axes that have them where no result has one, if they can
_SUMMED = 60  # percent of these axes
_ALIKE_TYPES = 40  # percent of type variables that are as another of the call, where they may be
_ALIKE = 60  # percent of the others that are as large where many elements are wanted


class Tensors(Settled):
    """Draws tensors beside what is settled.

    bare: whether a tensor may have the single axes of its declaration alone. hollow: the sizes that
    alone may be 0, as a sum of nothing has a value to be compared; any may where there is none.
    """

    def __init__(
        self, made: Pattern, chooser: Chooser, limits: Limits, weights: Weights, bare: bool
    ) -> None:
        super().__init__(made, chooser, limits, weights)
        self.bare = bare
        summed = made.summed if limits.empty else frozenset()
        self.hollow = summed if summed and chooser.chance(_HOLLOW) else frozenset()
        # The input that has a long axis: results of two would have more elements than there may be.
        names = [slot.item.name for slot in made.slots] if limits.length >= draw.LONG else []
        self.long = chooser.pick(names) if names else ""

    def build(self, slot: Slot, member: int | None) -> TensorInfo:
        """A tensor of the sizes that are bound, and new ones where none is."""
        dtype = self.dtypes.get(slot.variable or slot.item.name, "") or self.new_type(slot)
        dims = slot.item.type.dims
        if slot.spreads:
            return TensorInfo(self.stretched(dims), dtype)
        sizes = self.sizes(slot, member)
        shape = [n for part in sizes for n in part]
        if min(shape, default=1) < 0:
            raise Stuck
        if slot.placed:
            rank = len(shape)
            if member is None:
                self.names.setdefault(slot.item.name, tuple(shape))
            for name in slot.axis_attrs:
                if name not in self.names:
                    self.axis(name, rank)
            lengths: list[int | None] = [len(part) for part in sizes]
            placed = place(dims, lengths, rank, Scope(self.names, {}, set()))
            if isinstance(placed, str):
                raise Stuck
            for part, axes in zip(sizes, placed, strict=True):
                for size, axis in zip(part, axes, strict=True):
                    shape[axis] = size
        return TensorInfo(tuple(shape), dtype)

    def sizes(self, slot: Slot, member: int | None) -> list[tuple[int, ...]]:
        """The sizes of every entry: those that are bound, and new ones."""
        dims, budget = slot.item.type.dims, self.limits.elements
        parts: list[tuple[int, ...] | None] = []
        for dim in dims:
            known = self.bound(dim, slot, member)
            parts.append(known)
            budget //= max(1, math.prod(known or ()))
        waiting = [number for number, part in enumerate(parts) if part is None]
        # Those come last that may be asked to be what others of them decide, which are bound while
        # they are drawn.
        new = {_key(dims[number]) for number in waiting}
        waiting.sort(key=lambda number: len(self.made.required.behind(_key(dims[number])) & new))
        before = self.names
        self.names = dict(before)
        long = self.chooser.pick(waiting) if waiting and slot.item.name == self.long else None
        for done, number in enumerate(waiting, 1):
            dim = dims[number]
            share = int(budget / 2 ** (len(waiting) - done))
            if self.long and number != long:
                share = min(share, _BESIDE)
            part = self.drawn(dim, slot, max(1, share))
            parts[number] = part
            budget //= max(1, math.prod(part))
            if _key(dim):
                self.names[_key(dim)] = part if dim.kind == "rest" else part[0]
        self.names = {k: v for k, v in self.names.items() if k in before or k in self.made.attrs}
        return [part or () for part in parts]

    def new_type(self, slot: Slot) -> str:
        """An element type for an input whose type is still open."""
        dtypes = self.limits.dtypes(slot.allowed) or sorted(slot.allowed)
        if not dtypes:
            raise Stuck
        if self.primary and slot.variable:
            self.ready(slot.variable)
        if slot.variable:
            dtypes = self.allowed_types(slot, dtypes)
        return self.type_of(dtypes)

    def allowed_types(self, slot: Slot, dtypes: list[str]) -> list[str]:
        """Those of some types that nothing known speaks against, or all such, or just these."""
        for some in (dtypes, sorted(slot.allowed)):
            good = [dtype for dtype in some if self.allows(slot.variable, dtype)]
            if good:
                return good
        return dtypes

    def type_of(self, dtypes: list[str]) -> str:
        """One of some element types: the first is the likeliest, after those that other operands
        have, as kernels for two types are mostly for two of a kind.
        """
        others = [dtype for dtype in self.dtypes.values() if dtype in dtypes]
        if others and self.chooser.chance(_ALIKE_TYPES):
            return self.chooser.pick(others)
        if len(dtypes) == 1 or self.chooser.below(3):
            return dtypes[0]
        return self.chooser.pick(dtypes)

    def bound(self, dim: ast.Dim, slot: Slot, member: int | None) -> tuple[int, ...] | None:
        """The sizes of an entry, where they are known or follow from what is."""
        node = dim.size
        if isinstance(node, ast.Name):
            value = self.names.get(node.id)
            if value is None and dim.kind == "size":
                value = self.derived(node.id)
                if value is not None:
                    (value,) = self.emptied(node.id, (value,), lambda sizes: sizes[0])
            if value is None:
                return None
            return value if isinstance(value, tuple) else (value,)
        if (
            member is not None
            and isinstance(node, ast.Read)
            and len(self.names.get(node.name, ())) <= member
        ):
            return None
        for name in sorted(names_in(node) - self.names.keys() - {slot.item.family}):
            if name in self.made.attrs:
                self.attribute(name)
            else:
                self.names[name] = self.derived(name) or draw.length(self.chooser, 6)
        extra = {} if member is None else {slot.item.family: member}
        value = evaluate.known(node, Scope({**self.names, **extra}, {}, set()))
        if not isinstance(value, int):
            raise Stuck
        return (value,)

    def within(self, elements: int) -> Limits:
        """The limits of a part of a tensor that has so many elements."""
        return Limits(elements, self.limits.length, alike=self.limits.alike)

    def lengths(self) -> list[int]:
        """The lengths of axes that are known by now."""
        known = [value for name, value in self.names.items() if name not in self.made.attrs]
        parts = (part if isinstance(part, tuple) else (part,) for part in known)
        return [n for part in parts for n in part if type(n) is int]

    def drawn(self, dim: ast.Dim, slot: Slot, budget: int) -> tuple[int, ...]:
        """New sizes for an entry, of at most `budget` elements together."""
        chooser = self.chooser
        key = _key(dim)
        if self.primary:
            self.ready(key)
        if dim.kind == "size":
            most = min(budget, self.limits.length)
            alike = self.limits.alike
            equal = [n for n in self.lengths() if 1 < n <= most] if alike else []
            size = chooser.pick(equal) if equal and chooser.chance(alike) else None
            size = self.moderated(key, size or draw.length(chooser, most))
            return self.emptied(key, (size,), lambda sizes: sizes[0])
        peers = [
            self.names[o]
            for o in sorted(self.made.required.ranked_with(key))
            if isinstance(self.names.get(o), tuple)
        ]
        if peers:
            return self.allowed(
                key, tuple(chooser.between(1, min(4, max(1, n))) for n in peers[0]), budget
            )
        if slot.placed:
            axes = [n for n in slot.axis_attrs if n not in self.names]
            if axes and dim.at is not None:  # a list of axes is as long as it is drawn here
                kind = self.made.attrs[axes[0]].type
                if kind.kind == "vector":
                    count = chooser.pick(_NAMED)
                    sizes = draw.shape(chooser, count, self.within(budget))
                    return self.emptied(key, sizes, lambda sizes: sizes)
        most = max(0, min(3, self.limits.rank - slot.fixed))
        # Beside axes that an attribute names there may be no others: a vector is one of these.
        least = 0 if slot.placed else 1
        rank = min(most, chooser.pick(_RANKS)) if slot.fixed else chooser.between(least, most)
        if slot.fixed and self.bare:
            rank = chooser.below(2) * rank
        if slot.fixed > 1 and dim is slot.item.type.dims[0]:  # a matrix is no less usual than many
            rank = min(most, chooser.pick(_BATCHES))
        around = [d for d in slot.item.type.dims if d.kind == "rest" and _key(d) != key]
        if slot.fixed and around:  # as those before a channel, and behind it
            rank = min(most, chooser.pick(_AROUND))
            if not self.bare and all(self.names.get(_key(other)) == () for other in around):
                rank = max(rank, min(most, 1))
        rank = self.told(key, self.deeper(rank, slot.fixed))
        wide = self.limits.many and len(slot.item.type.dims) == 1 and not self.primary
        sizes = (
            draw.wide_shape(chooser, 1, self.limits)
            if wide
            else draw.shape(chooser, rank, self.within(budget))
        )
        if isinstance(dim.size, ast.Read):  # members have sizes in common, or nothing to say
            others = [n for other in self.names.get(dim.size.name, ()) for n in other]
            sizes = tuple(chooser.pick(others) if others and chooser.below(3) else n for n in sizes)
        return self.emptied(key, self.allowed(key, sizes, budget), lambda sizes: sizes)

    def told(self, key: str, rank: int) -> int:
        """How many axes there are by an attribute that is settled and has a number for each; `rank`
        where none says.
        """
        lengths = self.made.lengths(self.attrs)
        return next(
            (lengths[one] for one in self.made.required.ranked_with(key) if one in lengths), rank
        )

    def deeper(self, rank: int, fixed: int) -> int:
        """How many axes there are beside `fixed` ones, at times more than kernels are written for
        by the number: what these have no more room for is merged, or refused.
        """
        most = self.limits.rank - fixed
        if most > rank and self.limits.deep and self.chooser.chance(self.limits.deep):
            return self.chooser.between(min(_DEEP, most), most)
        return rank

    def emptied(
        self, name: str, sizes: tuple[int, ...], value: Callable[[tuple[int, ...]], Any]
    ) -> tuple[int, ...]:
        """Sizes, at times with an axis of none, if what is known admits that.

        value: what `name` is of them.
        """
        share = self.limits.empty
        if self.hollow:
            share = _SUMMED if name in self.hollow else 0
        for axis in range(len(sizes) if share else 0):
            if self.chooser.chance(share):
                without = (*sizes[:axis], 0, *sizes[axis + 1 :])
                sizes = without if self.allows(name, value(without)) else sizes
        return sizes

    def allowed(self, name: str, sizes: tuple[int, ...], budget: int) -> tuple[int, ...]:
        """Drawn sizes if what is known admits them; else some that it does, made of known ones."""
        asked = self.asked(name)
        if self.allows(name, sizes):
            return sizes
        known = sorted({n for n in self.names.values() if type(n) is int and n > 0})
        lists = [n for n in self.names.values() if isinstance(n, tuple) and _whole(n)]
        found = [*asked, (), *((n,) for n in (1, *known))]
        for other in (sizes, *lists):
            found += [
                other[start:stop]
                for start in range(len(other))
                for stop in range(start + 1, len(other) + 1)
            ]
            found += [(*sizes[:count], *other) for count in range(1, len(sizes) + 1)]
        good = [
            one
            for one in dict.fromkeys(found)
            if math.prod(one) <= max(1, budget) and self.allows(name, one)
        ]
        return self.chooser.pick(good) if good else sizes

    def stretched(self, dims: tuple[ast.Dim, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with what is bound: axes of size 1, and leading ones left out.

        Often that of the last axis alone, of the second one, or of none, as biases and scales have;
        at times one that what is bound broadcasts to. The first says what is bound: it is mostly as
        it is drawn, or hardly an operand would have more than one element.
        """
        chooser = self.chooser
        sizes: list[int] = []
        droppable = 0
        first = not any(isinstance(d.size, ast.Name) and d.size.id in self.names for d in dims)
        whole = first and chooser.below(_SMALLER) > 0
        many = self.limits.many if len(dims) == 1 else 0
        whole = whole or bool(many and chooser.chance(_ALIKE))
        for dim in dims:
            key = _key(dim)
            value = self.names.get(key)
            if value is None and dim.kind == "rest":
                rank = chooser.between(0 if self.bare else 1, 3)
                if len(dims) > 2:
                    rank = chooser.pick(_BATCHES)
                rank = self.deeper(rank, 0)
                value = (
                    draw.wide_shape(chooser, 1, self.limits)
                    if many
                    else draw.shape(chooser, rank, self.within(64))
                )
                value = self.emptied(key, value, lambda sizes: sizes)
            elif value is None:
                value = self.derived(key)
            if value is None:
                size = draw.length(chooser, self.limits.length // 2)
                value = self.emptied(key, (size,), lambda sizes: sizes[0])
            part = list(value) if isinstance(value, tuple) else [value]
            if whole:
                pass
            elif dim.broadcast and 1 in part and chooser.below(_WIDER[0]) == 0:
                part = [draw.length(chooser, 6) if n == 1 else n for n in part]
            elif dim.broadcast:
                part = [1 if chooser.below(5) == 0 else n for n in part]
                if len(sizes) == droppable:
                    droppable += len(part)
            sizes += part
        if whole:
            return tuple(sizes)
        if dims[0].broadcast and dims[0].kind == "rest" and chooser.below(_WIDER[1]) == 0:
            return (draw.length(chooser, 2), *sizes)
        lone = chooser.below(_LONE_AXIS) if len(sizes) == droppable > 1 else _LONE_AXIS
        if lone == 0:
            return tuple(sizes[-1:])
        if lone == 1:
            return (*(1,) * chooser.below(2), sizes[1], *(1,) * (len(sizes) - 2))
        if lone == 2:
            return (1,) * chooser.between(0, len(sizes))
        drop = chooser.between(0, droppable) if droppable and chooser.below(3) == 0 else 0
        return tuple(sizes[drop:])


def _key(dim: ast.Dim) -> str:
    """The name of the size, or of the sizes, of an entry; nothing where it is computed."""
    return dim.size.id if isinstance(dim.size, ast.Name) else ""


def _whole(sizes: tuple[Any, ...]) -> bool:
    return all(type(size) is int and size > 0 for size in sizes)
