"""What may be changed of a valid call, so that it breaks a requirement.

An attribute, or the type of an input, becomes what a repair would try (`irlang.gen.moves`), or
something that no repair would: a number beyond all sizes, an input without elements, a size in all
inputs at once, elements of an input.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any, TypeGuard

from irlang import ast
from irlang.equations import TensorInfo
from irlang.gen.judge import judge
from irlang.gen.moves import Move, Retype, SetAttr, attribute_values, change, input_types, moved
from irlang.gen.pattern import pattern
from irlang.graph import Node
from irlang.placement import place_known
from irlang.signature import Given

_VALUES = 32  # of one attribute that are tried
_TYPES = 24  # of one input
_NEAREST = 0.5  # of the ways of changing something begin with the least change
# Whole numbers that do not fit into 32 bits, or whose products do not fit into 64, the last that do
# fit into these, and one whose square does not fit into 32.
_HUGE = (2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63))
_WIDE = 2**16
# So many elements no memory holds, nor do 64 bits count those of two such axes; such of which a
# small multiple comes out as 0 there; and the last that 32 bits hold, of two axes of which 64 bits
# do not count the bytes.
_OVER = (2**40, 2**62, 2**29, 2**31 - 1)
_MANY_AXES = 300  # of one tensor: more than any framework has, and than a byte counts
# The same of real numbers, of which a size may be computed: one that 64 bits of an integer hold,
# and two that they do not.
_OVER_OF: Mapping[str, Sequence[float]] = {"int": _OVER, "real": (2.0**62, 1e19, 3e38)}


@dataclass(frozen=True, slots=True)
class SetElements:
    """An element of some inputs is given another value.

    place: how far behind the first it is, of all the way to the last.
    """

    values: tuple[tuple[str, float], ...]
    place: float = 0.0

    def __str__(self) -> str:
        return " and ".join(f"give {name} an element {value}" for name, value in self.values)


@dataclass(frozen=True, slots=True)
class Resize:
    """A size gets another number, in all inputs at once."""

    name: str
    value: int

    def __str__(self) -> str:
        return f"make the size {self.name} {self.value}"


def changes(node: Node, chance: random.Random) -> list[Move | Resize]:
    """Everything that may be changed of a call by itself, shuffled."""
    found: list[Move | Resize] = [
        *_repairs(node), *_ranked(node), *_huge(node, chance), *_balanced(node, chance),
        *_repeated(node, chance), *_disordered(node), *emptied(node),
    ]  # fmt: skip
    found = list(dict.fromkeys(found))
    chance.shuffle(found)
    return found


def in_turn(
    node: Node, moves: Sequence[Move | Resize], about: Collection[str], chance: random.Random
) -> list[Move | Resize]:
    """Changes in the order in which they are tried: first of what a requirement is `about`, one of
    every way (`way_of`), then another of every way, and so on.

    Of half of the ways the least change comes first: what is just outside of a bound may be taken
    where what is far outside is refused.
    """
    given, now = dict(node.instance.binding.inputs), {**node.instance.binding.scope.names}
    now |= node.attrs

    def size(move: Move | Resize) -> float:
        return 0 if isinstance(move, Resize) else change(given, now, move)

    ways: dict[tuple[Any, ...], list[Move | Resize]] = {}
    for move in moves:
        ways.setdefault(way_of(move), []).append(move)
    for way in ways.values():
        if chance.random() < _NEAREST:
            way.sort(key=size)
    turns = (move for turn in zip_longest(*ways.values()) for move in turn if move is not None)
    return sorted(turns, key=lambda move: move.name not in about)


def way_of(move: Move | Resize) -> tuple[Any, ...]:
    """What tells ways apart in which a requirement may be broken: by which attribute or input, and
    of that by a sign or a size, by a number of numbers, by a rank, by a type, or by having nothing.
    """
    if isinstance(move, Retype):
        return move.name, len(move.info.shape), move.info.dtype, empties(move)
    value = move.value
    numbers = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(n, (int, float)) for n in numbers):
        return move.name, value
    least = min(numbers, default=0)
    twice = len(set(numbers)) < len(numbers)
    much = sum(_reaches(move, bound) for bound in (_WIDE, _HUGE[0]))
    return move.name, len(numbers), (least > 0) - (least < 0), much, twice


def is_huge(move: Move | Resize) -> bool:
    """Whether a move asks for a number beyond all sizes."""
    return _reaches(move, _HUGE[0])


def is_long(move: Move | Resize) -> bool:
    """Whether a move makes a list longer than any tensor has axes."""
    return isinstance(move, SetAttr) and len(_as_list(move.value)) >= _MANY_AXES


def _as_list(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _reaches(move: Move | Resize, bound: int) -> bool:
    numbers = () if isinstance(move, Retype) else _as_list(move.value)
    return any(isinstance(n, (int, float)) and abs(n) >= bound for n in numbers)


def empties(move: Move | Resize) -> bool:
    """Whether a move takes all elements of an input."""
    return isinstance(move, Retype) and 0 in move.info.shape


def changed(
    node: Node, given: dict[str, Given], move: Move | Resize
) -> tuple[dict[str, Given], dict[str, Any]]:
    """The types of the inputs and the attributes after a change."""
    if not isinstance(move, Resize):
        return moved(dict(given), node.attrs, move)
    types = dict(given)
    scope = node.instance.binding.scope
    for slot in pattern(node.op).slots:
        info, dims = given.get(slot.item.name), slot.item.type.dims
        if not isinstance(info, TensorInfo) or any(dim.broadcast for dim in dims):
            continue
        names: list[str] = []
        for dim in dims:
            name = dim.size.id if isinstance(dim.size, ast.Name) else ""
            names += [name] if dim.kind == "size" else [""] * (len(info.shape) - len(dims) + 1)
        shape = list(info.shape)
        for name, axis in zip(names, place_known(dims, len(shape), scope), strict=True):
            if name == move.name:
                shape[axis] = move.value
        types[slot.item.name] = TensorInfo(tuple(shape), info.dtype)
    return types, dict(node.attrs)


def in_other_words(node: Node, chance: random.Random, about: Collection[str] = ()) -> Node:
    """The call with another word for one of its attributes, if it is valid so; else as it is.

    What a number means may hang on a word: a padding is that of a target's own operator where the
    word says that it is given, and no part of the program elsewhere. Words that the definition
    reads something of `about` beneath come first.
    """
    now = {**node.instance.binding.scope.names, **node.attrs}
    words = [
        (attr.name, word)
        for attr in pattern(node.op).attrs.values()
        for word in attr.type.choices
        if word != now.get(attr.name)
    ]
    reading = _words_that_read(node.op, about)
    shuffled = chance.sample(words, len(words))
    for name, word in sorted(shuffled, key=lambda one: one not in reading):
        attrs = {**node.attrs, name: word}
        instance = judge(node.op, node.instance.binding.inputs, attrs)
        if instance is not None and not instance.faults:
            return replace(node, attrs=attrs, instance=instance)
    return node


def _words_that_read(op: ast.Op, about: Collection[str]) -> set[tuple[str, str]]:
    """The attributes with those of their words beneath which alone something is read."""
    return {
        (match.subject, word)
        for match in ast.walk(op)
        if isinstance(match, ast.Match)
        for word, arm in match.arms
        if any(isinstance(part, ast.Name) and part.id in about for part in ast.walk(arm))
    }


def _repairs(node: Node) -> Iterator[Move]:
    """Other attributes and types, as repairs try them."""
    binding = node.instance.binding
    known = binding.scope.names.values()
    numbers = [value for value in known if type(value) is int]
    lists = [v for v in known if type(v) is tuple and v and all(type(n) is int for n in v)]
    made = pattern(node.op)
    for attr in made.attrs.values():
        current = node.attrs.get(attr.name, binding.scope.names.get(attr.name))
        for value in islice(attribute_values(attr, current, numbers, lists), _VALUES):
            yield SetAttr(attr.name, value)
    for slot in made.slots:
        given = binding.inputs.get(slot.item.name)
        members = given if isinstance(given, tuple) else (given,)
        for number, info in enumerate(members):
            if info is not None:
                member = number if isinstance(given, tuple) else None
                for other in islice(input_types(slot, info, binding, numbers, lists), _TYPES):
                    yield Retype(slot.item.name, member, other)


def _ranked(node: Node) -> Iterator[Move]:
    """Inputs and lists of whole numbers with one axis less, and with one more, at either end: of
    what repairs try, numbers of axes come last, and seldom have their turn.
    """
    binding = node.instance.binding
    for slot in pattern(node.op).slots:
        given = binding.inputs.get(slot.item.name)
        members = given if isinstance(given, tuple) else (given,)
        for number, info in enumerate(members):
            if info is not None:
                member = number if isinstance(given, tuple) else None
                for shape in _lengthened(info.shape):
                    yield Retype(slot.item.name, member, replace(info, shape=shape))
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, binding.scope.names.get(attr.name))
        if attr.type.name == "int" and isinstance(current, tuple) and current:
            for numbers in _lengthened(current):
                yield SetAttr(attr.name, numbers)


def _lengthened(numbers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """A list without its first, or its last, number, and with one more at either end; of none also
    an axis of nothing, as what takes a number of a tensor may not look whether there is one.
    """
    if numbers:
        yield from (numbers[1:], numbers[:-1], (numbers[0], *numbers), (*numbers, numbers[-1]))
    else:
        yield (0,)
    yield from ((1, *numbers), (*numbers, 1))


def _huge(node: Node, chance: random.Random) -> Iterator[Move]:
    """Attributes that are whole numbers, one of which is far beyond all sizes."""
    names = node.instance.binding.scope.names
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, names.get(attr.name))
        if attr.type.name != "int":
            continue
        for value in (_WIDE, *_HUGE):
            if type(current) is int:
                yield SetAttr(attr.name, value)
            elif isinstance(current, tuple) and current:
                place = chance.randrange(len(current))
                yield SetAttr(attr.name, (*current[:place], value, *current[place + 1 :]))


def _balanced(node: Node, chance: random.Random) -> Iterator[Move]:
    """Lists of whole numbers in which one is below 0, and another is so much more."""
    names = node.instance.binding.scope.names
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, names.get(attr.name))
        if attr.type.name != "int" or not isinstance(current, tuple) or len(current) < 2:
            continue
        less, more = chance.sample(range(len(current)), 2)
        numbers = list(current)
        numbers[less], numbers[more] = -2, current[more] + current[less] + 2
        yield SetAttr(attr.name, tuple(numbers))


def _repeated(node: Node, chance: random.Random) -> Iterator[Move]:
    """Lists of whole numbers that have one of theirs twice: as it is, or from the other end."""
    names = node.instance.binding.scope.names
    ranks = [len(info.shape) for info in node.instance.binding.inputs.values() if _is_one(info)]
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, names.get(attr.name))
        if attr.type.name != "int" or not isinstance(current, tuple) or not current:
            continue
        one = chance.choice(current)
        yield SetAttr(attr.name, (*current, one))
        if ranks:
            yield SetAttr(attr.name, (*current, one + (ranks[0] if one < 0 else -ranks[0])))


def _disordered(node: Node) -> Iterator[Move]:
    """Lists of real numbers from the last to the first, and with one more, below the last."""
    names = node.instance.binding.scope.names
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, names.get(attr.name))
        if attr.type.name == "real" and isinstance(current, tuple) and current:
            yield SetAttr(attr.name, (*current, current[-1] - 1))
            if len(set(current)) > 1:
                yield SetAttr(attr.name, current[::-1])


def _is_one(info: Given | None) -> TypeGuard[TensorInfo]:
    return isinstance(info, TensorInfo)


def beyond(node: Node, chance: random.Random) -> list[tuple[Move, ...]]:
    """Changes after which no memory holds the result, or that ask for such a number of nothing:
    an attribute far beyond all sizes, in one place or in all, by itself or beside an input without
    elements; and a list that may have any length, with so many ones in front as no tensor has axes.
    """
    names = node.instance.binding.scope.names
    numbers: list[SetAttr] = []
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, names.get(attr.name))
        over = _OVER_OF.get(attr.type.name, ())
        if type(current) in (int, float):
            numbers += [SetAttr(attr.name, value) for value in over]
        elif isinstance(current, tuple) and current and over:
            numbers += [SetAttr(attr.name, (value,) * len(current)) for value in over]
            numbers += [SetAttr(attr.name, (*current[:-1], n)) for n in (over[0], over[-1])]
        if isinstance(current, tuple) and attr.type.name == "int" and attr.type.dims is None:
            numbers.append(SetAttr(attr.name, (1,) * _MANY_AXES + current))
    hollow = list(emptied(node))
    found: list[tuple[Move, ...]] = [(number,) for number in numbers]
    whole = [one for one in numbers if not (isinstance(one.value, float) or is_long(one))]
    found += [(number, chance.choice(hollow)) for number in whole if hollow]
    chance.shuffle(found)
    return found


def sizes_of(node: Node) -> list[str]:
    """The sizes that inputs of a call say, by name, where it is plain which axes have them."""
    declared = [slot.item.type.dims for slot in pattern(node.op).slots]
    if any(sum(dim.kind != "size" for dim in dims) > 1 for dims in declared):
        return []
    return list(node.instance.binding.origins)


def emptied(node: Node) -> Iterator[Move]:
    """Inputs of which one axis has the size 0."""
    for formal, given in node.instance.binding.inputs.items():
        members = given if isinstance(given, tuple) else (given,)
        for number, info in enumerate(members):
            if info is not None and 0 not in info.shape:
                member = number if isinstance(given, tuple) else None
                for axis in range(len(info.shape)):
                    shape = (*info.shape[:axis], 0, *info.shape[axis + 1 :])
                    yield Retype(formal, member, replace(info, shape=shape))
