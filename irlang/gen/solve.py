"""A signature solved backwards: live values where they match, and new tensors of the sizes that
are then still wanted.

Takes a definition, the values that a program has so far, and choices; gives a `Draft` of a call.
What the signature and the equations among its `require`s determine is met by construction; the
rest is judged by `irlang.expand.instantiate` and mended by `irlang.gen.repair`.
"""

from __future__ import annotations

from collections.abc import Sequence

from irlang import ast
from irlang import equations as eq
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.gen.choice import Chooser
from irlang.gen.draft import NOTHING, Draft, Fixed, Number, Source, Value, source_of
from irlang.gen.draw import Limits
from irlang.gen.pattern import Pattern, Slot
from irlang.gen.required import evaluate, names_in
from irlang.gen.settle import Stuck, Weights
from irlang.gen.tensors import Tensors
from irlang.placement import place
from irlang.scope import Scope, TensorRef

_ALWAYS = 100
_TRIES = 4  # live values that are tried for one input
_MEMBERS = (1, 2, 2, 2, 2, 2, 3, 3, 4, 9)  # of a variadic input, of which loops take eight at once
_SAID = 25  # percent of the new operands of one number are written in the call
_WRITTEN = {"int": (1, 2, 3), "real": (0.5, 1.0, 2.0, 0.1, 0.01)}
# An optional input that is not given, as `given` asks.
_ABSENT = TensorRef("", (), "", "", (), (), constant=eq.Const(0))


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


class _Solver(Tensors):
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
        super().__init__(made, chooser, limits, weights, bare)
        self.live = live
        self.order = list(order)
        self.eager = eager
        self.fixed = fixed
        self.plain, self.said, self.few = fixed.plain, fixed.said, fixed.few
        self.attrs.update(fixed.attrs)
        self.names.update(fixed.attrs)
        self.dtypes.update(fixed.dtypes)

    def draft(self) -> Draft:
        chooser = self.chooser
        found = self.settled()
        slots = [
            s
            for s in self.made.slots
            if s.item.name not in found
            and (
                s.item.default is None
                or s.item.name in self.fixed.asked
                or (not self.fixed.lean and chooser.below(2))
            )
        ]
        for slot in self.made.slots:
            if slot.item.name not in found and slot not in slots:
                self.names[slot.item.name] = _ABSENT
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
        told = slot.variable in self.dtypes or len(slot.allowed) == 1
        info = self.build(slot, member)
        if not self.admit(slot, info, member):
            raise Stuck
        return self.written(slot, info) if told and member is None else info

    def written(self, slot: Slot, info: TensorInfo) -> Source:
        """A new tensor, or a number that the call says in its place, at times where one is declared
        without axes: a rate, a step, a scale. Some functions take no other.
        """
        numbers = _WRITTEN.get(info.kind, ())
        if slot.item.type.dims or not numbers or not self.chooser.chance(_SAID):
            return info
        return Number(self.chooser.pick(numbers), info)

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
            if bound is None and not self.allows(slot.variable, info.dtype):
                return False
        kept = dict(self.names)
        kept_attrs = dict(self.attrs) if slot.placed else None
        fits = self.spread(slot, info) if slot.spreads else self.bind(slot, info, member)
        fits = fits and all(
            self.allows(name, self.names[name]) for name in sorted(self.names.keys() - kept.keys())
        )
        if not fits or (self.made.required.equal and not self.consistent(kept.keys())):
            self.names = kept
            if kept_attrs is not None:
                self.attrs = kept_attrs
            return False
        if slot.variable:
            self.dtypes[slot.variable] = info.dtype
        self.begun = True
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
                group = self.made.required.ranked_with(dim.size.id)
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


def _broadcast(known: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common sizes, from the right; None where two differ and neither is 1."""
    common = list(known if len(known) >= len(sizes) else sizes)
    for back in range(1, min(len(known), len(sizes)) + 1):
        a, b = known[-back], sizes[-back]
        if a != b and a != 1 and b != 1:
            return None
        common[-back] = b if a == 1 else a
    return tuple(common)
