"""Adapters: calls that turn a tensor of one type into one of another, found by search.

The candidates are the calls whose results hold nothing but elements of the one input (and
constants): whatever the catalogue has of reshaping, transposing, padding, slicing, repeating and
converting. Attributes are tried from the two shapes; the definition itself says what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, product
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.gen.draft import Draft, Nested
from irlang.gen.judge import judge, score
from irlang.gen.pattern import Pattern, only_moves

_TRIALS = 6  # calls of one definition that are judged in a search
_AT_ONCE = 1  # optional attributes that are given together


class Adapters:
    """The definitions of a catalogue that can adapt, and what was found with them."""

    def __init__(self, made: Sequence[Pattern]) -> None:
        self.made = [pattern for pattern in made if pattern.moves]
        self._found: dict[
            tuple[TensorInfo, TensorInfo], tuple[ast.Op, str, dict[str, Any]] | None
        ] = {}

    def adapt(self, name: str, have: TensorInfo, want: TensorInfo) -> Nested | None:
        """A call on the value `name` that gives the wanted type; None where there is none."""
        key = (have, want)
        if not _likely(have.shape, want.shape):
            return None
        if key not in self._found:
            self._found[key] = next(self._search(have, want), None)
        row = self._found[key]
        if row is None:
            return None
        op, formal, attrs = row
        instance = judge(op, {formal: have}, attrs)
        assert instance is not None
        return Nested(Draft(op, {formal: name}, dict(attrs)), instance, want)

    def _search(
        self, have: TensorInfo, want: TensorInfo
    ) -> Iterator[tuple[ast.Op, str, dict[str, Any]]]:
        for pattern in self.made:
            slot = next(s for s in pattern.slots if s.item.default is None)
            if have.dtype not in slot.allowed or not slot.may_have_rank(len(have.shape)):
                continue
            for attrs in islice(_attributes(pattern, have, want), _TRIALS):
                instance = judge(pattern.op, {slot.item.name: have}, attrs)
                if instance is None or score(instance) > 0 or instance.deferred:
                    continue
                if (
                    instance.outputs
                    and instance.outputs[0][1] == want
                    and only_moves(pattern, instance.binding.scope)
                ):
                    yield pattern.op, slot.item.name, attrs


def _likely(have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Whether a search is worth its time: as many elements, as many axes, or leading axes more."""
    if math.prod(have) == math.prod(want) or len(have) == len(want):
        return True
    return want[len(want) - len(have) :] == have


def _attributes(pattern: Pattern, have: TensorInfo, want: TensorInfo) -> Iterator[dict[str, Any]]:
    """Settings to try, those with the fewest attributes first."""
    needed = [attr.name for attr in pattern.op.attrs if attr.default is None]
    values = {attr.name: list(_values(attr, have, want)) for attr in pattern.op.attrs}
    for count in range(len(needed), len(needed) + _AT_ONCE + 1):
        for names in combinations(values, count):
            if set(needed) <= set(names):
                for row in product(*(values[name] for name in names)):
                    yield dict(zip(names, row, strict=True))


def _values(attr: ast.Attr, have: TensorInfo, want: TensorInfo) -> Iterator[Any]:
    """Values of one attribute that the two types suggest."""
    kind = attr.type
    if kind.name == "dtype":
        yield want.dtype
    elif kind.kind == "enum":
        yield from kind.choices
    elif kind.name == "bool":
        yield from (False, True)
    elif kind.name == "int" and kind.kind == "scalar":
        yield from range(-1, max(len(have.shape), len(want.shape)) + 1)
    elif kind.name == "int":
        yield from _lists(have.shape, want.shape)


def _lists(have: tuple[int, ...], want: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield want
    if sorted(have) == sorted(want):
        free = list(range(len(have)))
        order = []
        for size in want:
            axis = next(a for a in free if have[a] == size)
            free.remove(axis)
            order.append(axis)
        yield tuple(order)
    if len(have) == len(want):
        yield tuple(max(0, w - h) for h, w in zip(have, want, strict=True))
        yield tuple(max(0, h - w) for h, w in zip(have, want, strict=True))
        if all(h and w % h == 0 for h, w in zip(have, want, strict=True)):
            yield tuple(w // h for h, w in zip(have, want, strict=True))
    for longer in (have, want):
        yield tuple(axis for axis, size in enumerate(longer) if size == 1)
