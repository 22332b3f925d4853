"""A signature solved backwards: live values where they match, and new tensors of the sizes that
are then still wanted.

Takes a definition, the values that a program has so far, and choices; gives a `Draft` of a call.
What the signature and the equations among its `require`s determine is met by construction; the
rest is judged by `irlang.expand.instantiate` and mended by `irlang.gen.repair`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.gen import draw
from irlang.gen.choice import Chooser
from irlang.gen.draft import NOTHING, Draft, Fixed, Number, Source, Value, source_of
from irlang.gen.draw import Limits
from irlang.gen.pattern import Pattern, Slot, names_in
from irlang.gen.settle import Settled, Stuck, Weights, evaluate
from irlang.placement import place
from irlang.scope import Scope

_ALWAYS = 100
_TRIES = 4  # live values that are tried for one input
_RANKS = (1, 1, 2, 2, 2, 3)  # of the axes beside single ones
_MEMBERS = (1, 2, 2, 2, 3, 4)  # of a variadic input
_LONE_AXIS = 6  # of so many shapes that broadcast, three have one axis or none
_WIDER = (4, 16)  # one in so many is wider where what is bound has size 1; has an axis more
_SMALLER = 4  # one in so many of the first of such shapes is small already
_ALIKE = 60  # percent of the others that are as large where many elements are wanted


def solve(
    made: Pattern,
    chooser: Chooser,
    limits: Limits,
    live: Sequence[Value],
    order: Sequence[int],
    weights: Weights,
    eager: int = 60,
    fixed: Fixed = NOTHING,
    bare: bool = True,
) -> Draft | None:
    """A draft that the signature admits, or None where the choices lead nowhere.

    order: positions in `live`, those to be tried first in front. weights: see `irlang.gen.profile`.
    eager: percent of the inputs after the first that look for a live value. fixed: what is not
    drawn. bare: whether a tensor may have the single axes of its declaration alone, and none where
    any number may be: an image of no height and no width.
    """
    try:
        return _Solver(made, chooser, limits, live, order, weights, eager, fixed, bare).draft()
    except (Stuck, InvalidInput):
        return None


class _Solver(Settled):
    """One attempt; see `solve`."""

    def __init__(
        self,
        made: Pattern,
        chooser: Chooser,
        limits: Limits,
        live: Sequence[Value],
        order: Sequence[int],
        weights: Weights,
        eager: int,
        fixed: Fixed,
        bare: bool,
    ) -> None:
        super().__init__(made, chooser, limits, weights)
        self.bare = bare
        self.live = live
        self.order = list(order)
        self.eager = eager
        self.fixed = fixed
        self.dtypes: dict[str, str] = {}
        self.plain, self.said = fixed.plain, fixed.said
        self.attrs.update(fixed.attrs)
        self.names.update(fixed.attrs)

    def draft(self) -> Draft:
        chooser = self.chooser
        found = self.settled()
        slots = [
            s
            for s in self.made.slots
            if s.item.name not in found and (s.item.default is None or chooser.below(2))
        ]
        if len(slots) > 1 and self.order and not found:
            wanted = self.live[self.order[0]].info
            takers = [i for i, slot in enumerate(slots) if slot.takes(wanted)]
            if takers:
                slots.insert(0, slots.pop(takers[0] if chooser.below(4) else chooser.pick(takers)))
        for number, slot in enumerate(slots):
            eager = _ALWAYS if number == 0 and not found else self.eager
            if slot.item.family:
                count = chooser.pick(_MEMBERS)
                members = [self.source(slot, member, eager) for member in range(count)]
                found[slot.item.name] = tuple(members)
                infos = tuple(self.info(m) for m in members)
                self.names[slot.item.name] = infos
            else:
                source = self.source(slot, None, eager)
                found[slot.item.name] = source
                self.names[slot.item.name] = self.info(source).shape
        for name in self.made.attrs:
            if name not in self.names:
                self.attribute(name)
        inputs = {s.item.name: found[s.item.name] for s in self.made.slots if s.item.name in found}
        attrs = {name: self.attrs[name] for name in self.made.attrs if name in self.attrs}
        return Draft(self.made.op, inputs, attrs, self.recipes)

    def settled(self) -> dict[str, Source | tuple[Source, ...]]:
        """The inputs that are fixed, after what they say is bound."""
        found: dict[str, Source | tuple[Source, ...]] = {}
        for slot in self.made.slots:
            given = self.fixed.inputs.get(slot.item.name)
            if given is None:
                continue
            several = isinstance(given, tuple)
            for member, value in enumerate(given if isinstance(given, tuple) else (given,)):
                number = member if several else None
                info = value.info
                admitted = slot.takes(info) and (self.bare or self.clad(slot, info))
                if not admitted or not self.admit(slot, info, number):
                    raise Stuck
            if isinstance(given, tuple):
                found[slot.item.name] = tuple(map(source_of, given))
                self.names[slot.item.name] = tuple(value.info for value in given)
            else:
                found[slot.item.name] = source_of(given)
                self.names[slot.item.name] = given.info.shape
        return found

    def info(self, source: Source) -> TensorInfo:
        if isinstance(source, TensorInfo):
            return source
        if isinstance(source, Number):
            return source.info
        return next(v.info for v in self.live if v.name == source)

    def source(self, slot: Slot, member: int | None, eager: int) -> Source:
        """A live value that matches, or a new tensor; eager: percent that look for a live one."""
        if self.live and (eager == _ALWAYS or self.chooser.chance(eager)):
            tries = 0
            for position in self.order:
                value = self.live[position]
                if not slot.takes(value.info) or not (self.bare or self.clad(slot, value.info)):
                    continue
                if self.admit(slot, value.info, member):
                    self.order = [*(p for p in self.order if p != position), position]
                    return value.name
                tries += 1
                if tries == _TRIES and eager == _ALWAYS:
                    break
        info = self.build(slot, member)
        if not self.admit(slot, info, member):
            raise Stuck
        return info

    # ---- a given tensor

    def clad(self, slot: Slot, info: TensorInfo) -> bool:
        """Whether a tensor has axes beside the single ones, if it is to say how many there are."""
        rests = [dim for dim in slot.item.type.dims if dim.kind == "rest"]
        names = [dim.size.id for dim in rests if isinstance(dim.size, ast.Name)]
        free = any(name not in self.names for name in names)
        return not free or not 0 < slot.fixed == len(info.shape)

    def admit(self, slot: Slot, info: TensorInfo, member: int | None) -> bool:
        """Whether a tensor matches what is bound so far; binds what it says if so."""
        if slot.variable:
            bound = self.dtypes.get(slot.variable)
            if bound is not None and bound != info.dtype:
                return False
        kept = dict(self.names)
        kept_attrs = dict(self.attrs) if slot.placed else None
        fits = self.spread(slot, info) if slot.spreads else self.bind(slot, info, member)
        fits = fits and all(
            self.allows(name, self.names[name]) for name in sorted(self.names.keys() - kept.keys())
        )
        if not fits or (self.made.equal and not self.consistent(kept.keys())):
            self.names = kept
            if kept_attrs is not None:
                self.attrs = kept_attrs
            return False
        if slot.variable:
            self.dtypes[slot.variable] = info.dtype
        if not self.primary:
            self.primary = info.shape
        return True

    def bind(self, slot: Slot, info: TensorInfo, member: int | None) -> bool:
        dims = slot.item.type.dims
        rank = len(info.shape)
        names = self.names
        if member is None:
            names.setdefault(slot.item.name, info.shape)  # whose rank a default may speak of
        for name in slot.axis_attrs:
            if name not in names:
                self.axis(name, rank)
        lengths: list[int | None] = []
        for dim in dims:
            if dim.kind == "size":
                lengths.append(1)
            else:
                known = names.get(dim.size.id) if isinstance(dim.size, ast.Name) else None
                lengths.append(len(known) if isinstance(known, tuple) else None)
        placed = place(dims, lengths, rank, Scope(names, {}, set()))
        if isinstance(placed, str):
            return False
        later = []
        for dim, axes in zip(dims, placed, strict=True):
            if dim.kind == "rest" and isinstance(dim.size, ast.Name):
                sizes = tuple(info.shape[a] for a in axes)
                if names.setdefault(dim.size.id, sizes) != sizes:
                    return False
                group = self.made.ranked_with(dim.size.id)
                if any(len(names[other]) != len(sizes) for other in group if other in names):
                    return False
            elif dim.kind == "rest" and isinstance(dim.size, ast.Read):
                sizes = tuple(info.shape[a] for a in axes)
                names[dim.size.name] = (*names.get(dim.size.name, ()), sizes)
            elif isinstance(dim.size, ast.Name):
                if names.setdefault(dim.size.id, info.shape[axes[0]]) != info.shape[axes[0]]:
                    return False
            else:
                later.append((dim.size, info.shape[axes[0]]))
        return all(self.equals(expression, size, slot, member) for expression, size in later)

    def equals(self, node: ast.Expr, size: int, slot: Slot, member: int | None) -> bool:
        """Whether a declared size is `size`, or can be made so."""
        if (
            member is not None
            and isinstance(node, ast.Read)
            and len(self.names.get(node.name, ())) == member
        ):
            self.names[node.name] = (*self.names.get(node.name, ()), size)
            return True
        unknown = [
            n for n in sorted(names_in(node)) if n not in self.names and n != slot.item.family
        ]
        unknown = [n for n in unknown if n not in self.made.attrs or not self.attribute(n)]
        if not unknown:
            extra = {} if member is None else {slot.item.family: member}
            return bool(evaluate(node, Scope({**self.names, **extra}, {}, set())) == size)
        if len(unknown) > 1:
            return False
        value = self.invert(node, size, unknown[0])
        if value is None:
            return False
        self.names[unknown[0]] = value
        return True

    def spread(self, slot: Slot, info: TensorInfo) -> bool:
        """Entries with `~`, from the right, as NumPy broadcasts."""
        shape = list(info.shape)
        names = self.names
        for dim in reversed(slot.item.type.dims):
            key = dim.size.id if isinstance(dim.size, ast.Name) else ""
            if not dim.broadcast:
                if (
                    not shape
                    or not key
                    or names.setdefault(key, shape.pop()) != info.shape[len(shape)]
                ):
                    return False
            elif dim.kind == "rest":
                common = _broadcast(names.get(key, ()), tuple(shape))
                if common is None:
                    return False
                names[key] = common
                shape = []
            else:
                common = _broadcast((names[key],) if key in names else (), tuple(shape[-1:]))
                if common is None:
                    return False
                names[key] = (common or (1,))[0]
                shape = shape[:-1]
        return not shape

    # ---- a new tensor

    def build(self, slot: Slot, member: int | None) -> TensorInfo:
        """A tensor of the sizes that are bound, and new ones where none is."""
        dtype = self.dtypes.get(slot.variable, "") if slot.variable else ""
        if not dtype:
            dtypes = self.limits.dtypes(slot.allowed) or sorted(slot.allowed)
            if not dtypes:
                raise Stuck
            dtype = (
                dtypes[0]
                if len(dtypes) == 1 or self.chooser.below(3)
                else self.chooser.pick(dtypes)
            )
        dims = slot.item.type.dims
        if slot.spreads:
            return TensorInfo(self.stretched(dims), dtype)
        budget = self.limits.elements
        parts: list[tuple[int, ...] | None] = []
        for dim in dims:
            known = self.bound(dim, slot, member)
            parts.append(known)
            budget //= max(1, math.prod(known or ()))
        waiting = sum(part is None for part in parts)
        for number, dim in enumerate(dims):
            if parts[number] is None:
                waiting -= 1
                part = self.drawn(dim, slot, max(1, int(budget / 2**waiting)))
                parts[number] = part
                budget //= max(1, math.prod(part))
        sizes = [part or () for part in parts]
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

    def bound(self, dim: ast.Dim, slot: Slot, member: int | None) -> tuple[int, ...] | None:
        """The sizes of an entry, where they are known or follow from what is."""
        node = dim.size
        if isinstance(node, ast.Name):
            value = self.names.get(node.id)
            if value is None and dim.kind == "size":
                value = self.derived(node.id)
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

    def drawn(self, dim: ast.Dim, slot: Slot, budget: int) -> tuple[int, ...]:
        """New sizes for an entry, of at most `budget` elements together."""
        chooser = self.chooser
        key = dim.size.id if isinstance(dim.size, ast.Name) else ""
        if dim.kind == "size":
            size = self.moderated(key, draw.length(chooser, min(budget, self.limits.length)))
            return self.emptied(key, (size,), lambda sizes: sizes[0])
        peers = [
            self.names[o]
            for o in sorted(self.made.ranked_with(key))
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
                    count = chooser.below(3)
                    return draw.shape(chooser, count, Limits(budget, self.limits.length))
        most = max(0, min(3, self.limits.rank - slot.fixed))
        rank = min(most, chooser.pick(_RANKS)) if slot.fixed else chooser.between(1, most)
        if slot.fixed and self.bare:
            rank = chooser.below(2) * rank
        wide = self.limits.many and len(slot.item.type.dims) == 1 and not self.primary
        sizes = (
            draw.wide_shape(chooser, 1, self.limits)
            if wide
            else draw.shape(chooser, rank, Limits(budget, self.limits.length))
        )
        if isinstance(dim.size, ast.Read):  # members have sizes in common, or nothing to say
            others = [n for other in self.names.get(dim.size.name, ()) for n in other]
            sizes = tuple(chooser.pick(others) if others and chooser.below(3) else n for n in sizes)
        return self.emptied(key, self.allowed(key, sizes, budget), lambda sizes: sizes)

    def emptied(
        self, name: str, sizes: tuple[int, ...], value: Callable[[tuple[int, ...]], Any]
    ) -> tuple[int, ...]:
        """Sizes, at times with an axis of none, if what is known admits that.

        value: what `name` is of them.
        """
        for axis in range(len(sizes) if self.limits.empty else 0):
            if self.chooser.chance(self.limits.empty):
                without = (*sizes[:axis], 0, *sizes[axis + 1 :])
                sizes = without if self.allows(name, value(without)) else sizes
        return sizes

    def allowed(self, name: str, sizes: tuple[int, ...], budget: int) -> tuple[int, ...]:
        """Drawn sizes if what is known admits them; else some that it does, made of known ones."""
        if self.allows(name, sizes):
            return sizes
        known = sorted({n for n in self.names.values() if type(n) is int and n > 0})
        lists = [n for n in self.names.values() if isinstance(n, tuple) and _whole(n)]
        found = [(), *((n,) for n in (1, *known))]
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
            key = dim.size.id if isinstance(dim.size, ast.Name) else ""
            value = self.names.get(key)
            if value is None and dim.kind == "rest":
                rank = chooser.between(0 if self.bare else 1, 3)
                value = (
                    draw.wide_shape(chooser, 1, self.limits)
                    if many
                    else draw.shape(chooser, rank, Limits(64, self.limits.length))
                )
            elif value is None:
                value = self.derived(key) or draw.length(chooser, self.limits.length // 2)
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


def _whole(sizes: tuple[Any, ...]) -> bool:
    return all(type(size) is int and size > 0 for size in sizes)


def _broadcast(known: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common sizes, from the right; None where two differ and neither is 1."""
    common = list(known if len(known) >= len(sizes) else sizes)
    for back in range(1, min(len(known), len(sizes)) + 1):
        a, b = known[-back], sizes[-back]
        if a != b and a != 1 and b != 1:
            return None
        common[-back] = b if a == 1 else a
    return tuple(common)
