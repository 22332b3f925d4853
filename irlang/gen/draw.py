"""Sizes, element types and attributes, drawn by type.

What an attribute means is not known here. A number or list of numbers is drawn by one of a few
recipes (a permutation, the sizes of a tensor, an axis, something small); which recipe suits which
attribute is found by trying them on the definition (`irlang.gen.profile`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.gen.choice import Chooser

# As long some tensors' axes may be: loops over blocks of 64 or 128 have several, and part of one.
LONG = 160
_SHORT = 4  # elements of the others of such a tensor


@dataclass(frozen=True, slots=True)
class Limits:
    """How large things may get.

    elements: of a tensor. length: of an axis; where that is `LONG`, one entry of a tensor has most
    of its elements. rank: of a tensor. dtypes: which are drawn, by
    kind, the first of each the likeliest. empty: percent of new axes that have no element. many:
    how many elements a tensor of any shape is to have, as far as that goes. whole: whether integers
    are likelier than real numbers where either may be. usual: whether attributes are often as they
    are when they are not said. plain: percent of calls of which no more attributes are drawn than
    must be said. alike: percent of shapes whose axes are all as long, and of axes that are as long
    as another one of the call: what confuses two of them runs there, and shows. deep: percent of
    tensors of any number of axes that have more than three, up to `rank`.
    """

    elements: int = 4096
    length: int = 33
    rank: int = 5
    reals: tuple[str, ...] = ("f32",)
    ints: tuple[str, ...] = ("i64", "i32")
    empty: int = 0
    many: int = 0
    whole: bool = False
    usual: bool = False
    plain: int = 50
    alike: int = 15
    deep: int = 0

    def dtypes(self, allowed: frozenset[str]) -> list[str]:
        """The types of `allowed` that are drawn."""
        kinds = (self.ints, self.reals) if self.whole else (self.reals, self.ints)
        return [d for d in (*kinds[0], *kinds[1], "bool") if d in allowed]


# Of sixteen programs: the real types, the integer types, and the percentage of empty axes. Programs
# of mixed types are few: radii are those of the coarsest.
_VARIED: tuple[Limits, ...] = (
    *(Limits() for _ in range(7)),
    Limits(length=LONG),
    *(Limits(empty=12) for _ in range(2)),
    *(Limits(reals=("f64",)) for _ in range(2)),
    Limits(reals=("f16",)),
    Limits(reals=("bf16",)),
    Limits(reals=("f32", "f64", "f16", "bf16"), empty=6),
    Limits(ints=("i32", "u8", "i8", "i64", "i16")),
)


def varied(number: int) -> Limits:
    """The limits of a campaign's program: mostly as usual, some with other types or empty axes."""
    return Chooser(f"limits {number}").pick(_VARIED)


_EDGES = (7, 8, 9, 15, 16, 17, 31, 32, 33)  # around the widths of vector registers
_FAR_EDGES = (63, 64, 65, 127, 128, 129)  # around those of blocks


def length(chooser: Chooser, limit: int) -> int:
    """A length in [1, limit]: small ones, edges of vector lanes, and all others."""
    if limit <= 2:
        return max(1, limit if limit < 2 else chooser.between(1, 2))
    kind = chooser.below(10)
    if kind < (4 if limit < LONG else 2):
        return chooser.between(1, min(5, limit))
    if kind < 6:
        edge = chooser.pick(_EDGES if limit < _FAR_EDGES[0] else _FAR_EDGES)
        return edge if edge <= limit else chooser.between(1, limit)
    return chooser.between(1, limit)


def shape(chooser: Chooser, rank: int, limits: Limits) -> tuple[int, ...]:
    """Sizes of `rank` axes within the limits."""
    budget = limits.elements
    if rank > 1 and limits.alike and chooser.chance(limits.alike):
        most = min(limits.length, max(1, int(budget ** (1 / rank))))
        return (max(length(chooser, most), min(2, most)),) * rank
    sizes: list[int] = []
    if rank > 1 and limits.length >= LONG:
        sizes = [length(chooser, min(limits.length, max(1, budget)))]
        budget = min(_SHORT, budget // sizes[0])
    for axis in range(len(sizes), rank):
        left = rank - axis - 1
        most = min(limits.length, max(1, int(budget / 2**left)))
        if left:
            most = min(most, max(2, int(budget ** (1 / (left + 1)) * 2)))
        size = length(chooser, most)
        sizes.append(size)
        budget //= size
    return tuple(chooser.shuffled(sizes)) if rank > 1 else tuple(sizes)


def wide_shape(chooser: Chooser, least: int, limits: Limits) -> tuple[int, ...]:
    """Sizes of `least` axes or one more, but two at least, that hold about `limits.many` elements.

    Where all that is known of a tensor is that there is one, more elements meet more.
    """
    sizes: list[int] = []
    left = limits.many
    for others in reversed(range(max(least, 2) + chooser.below(2))):
        low = max(2, -(-left // limits.length**others))  # what others cannot make up for
        size = chooser.between(low, max(low, math.isqrt(left))) if others else left
        sizes.append(max(1, min(size, limits.length)))
        left //= sizes[-1]
    return tuple(chooser.shuffled(sizes))


# ---- attributes -------------------------------------------------------------------------------


@dataclass(slots=True)
class Context:
    """What an attribute may refer to: the first tensor's sizes, all sizes by name, how many numbers
    are wanted (None: any), the default, and the numbers that the definition compares it with.
    """

    sizes: tuple[int, ...]
    names: Mapping[str, Any]
    count: int | None = None
    default: float | None = None
    compared: tuple[float, ...] = ()

    @property
    def rank(self) -> int:
        """Of the first tensor."""
        return len(self.sizes)

    def lengths(self) -> list[int]:
        """Every size that is known, by any name."""
        named = (value for value in self.names.values() if type(value) is int)
        return [*self.sizes, *named] or [1]


Recipe = Callable[[Chooser, Context], Any]


def divisors(of: int) -> list[int]:
    """The divisors of a number in order; of one beyond 2**20 the small ones, and what each leaves:
    an attribute may be an end of its type, and to try all numbers up to that would never end.
    """
    of = max(1, of)
    small = [d for d in range(1, min(of, _SMALL_DIVISORS) + 1) if of % d == 0]
    return sorted({*small, *(of // d for d in small)})


_SMALL_DIVISORS = 2**10


def _divisor(chooser: Chooser, of: int) -> int:
    return chooser.pick(divisors(of))


def _factors(chooser: Chooser, total: int) -> tuple[int, ...]:
    parts = []
    for _ in range(chooser.below(4)):
        parts.append(_divisor(chooser, total))
        total //= parts[-1]
    return (*parts, total)


def _partition(chooser: Chooser, total: int) -> tuple[int, ...]:
    parts = []
    for _ in range(chooser.below(3)):
        if total > 1:
            parts.append(chooser.between(1, total - 1))
            total -= parts[-1]
    return (*parts, total)


def _axes(chooser: Chooser, rank: int) -> tuple[int, ...]:
    """Some axes, most often in order; in half of the lists some are counted from the last."""
    found = [axis for axis in range(rank) if chooser.below(2)]
    if len(found) > 1 and not chooser.below(4):
        found = chooser.shuffled(found)
    back = chooser.below(4)
    return tuple(
        axis - rank if back == 0 or (back == 1 and chooser.below(2)) else axis for axis in found
    )


def _permuted(chooser: Chooser, context: Context) -> tuple[int, ...]:
    return tuple(chooser.shuffled(range(context.rank)))


def _grown(chooser: Chooser, context: Context) -> tuple[int, ...]:
    sizes = tuple(chooser.between(1, 4) if n == 1 else n for n in context.sizes)
    more = chooser.below(2) if context.rank < 4 else 0
    return (*(chooser.between(1, 3) for _ in range(more)), *sizes)


# Where 1 is nothing special, as a window of one element is: the others say more.
_SMALL = (1, 2, 2, 3, 3)


def _per_axis(*numbers: int) -> Recipe:
    def draw(chooser: Chooser, context: Context) -> tuple[int, ...]:
        count = context.rank if context.count is None else context.count
        return tuple(chooser.pick(numbers) for _ in range(count))

    return draw


def _along(low: int, slack: int) -> Recipe:
    """One number an axis, from `low` to its size and `slack` more."""

    def draw(chooser: Chooser, context: Context) -> tuple[int, ...]:
        sizes = context.sizes
        if context.count is not None:
            sizes = sizes[len(sizes) - context.count :] if context.count <= len(sizes) else ()
        return tuple(chooser.between(low, n + slack) for n in sizes)

    return draw


def _labels(chooser: Chooser, context: Context) -> tuple[int, ...]:
    """A label for every axis of all tensors; those of one size may share one."""
    found: list[tuple[int, int]] = []
    members = [v for v in context.names.values() if isinstance(v, tuple) and v]
    shapes = [info.shape for v in members for info in v if isinstance(info, TensorInfo)]
    for size in (n for shape in shapes or [context.sizes] for n in shape):
        same = [label for label, other in found if other == size]
        fresh = max((label for label, _ in found), default=-1) + 1
        found.append((chooser.pick(same) if same and chooser.below(3) else fresh, size))
    return tuple(label for label, _ in found)


INTS: tuple[Recipe, ...] = (
    lambda chooser, _: chooser.pick(_SMALL),
    lambda chooser, _: chooser.between(0, 2),
    lambda chooser, context: chooser.between(-context.rank, max(context.rank - 1, 0)),
    lambda chooser, context: chooser.between(-context.rank - 1, context.rank),
    lambda chooser, context: chooser.between(1, chooser.pick(context.lengths())),
    lambda chooser, context: chooser.between(0, chooser.pick(context.lengths())),
    lambda chooser, context: _divisor(chooser, chooser.pick(context.lengths())),
    lambda chooser, _: chooser.between(-3, 3),
)

# How much each is wanted where several suit: small numbers say more about more definitions; but
# of what has no tensors they are its sizes.
INTS_WANTED = (4.0, 2.0, 2.0, 1.0, 1.0, 0.5, 1.0, 0.5)
SIZES_WANTED = (2.0, 1.0, 0.5, 0.5, 6.0, 1.0, 1.0, 0.5)
BOUNDS_WANTED = (1.0, 1.0, 0.5, 1.0, 4.0)

LISTS: tuple[Recipe, ...] = (
    _per_axis(*_SMALL),
    _per_axis(0, 1, 2),
    lambda chooser, context: (
        (chooser.pick(_SMALL),) * (context.rank if context.count is None else context.count)
    ),
    _along(1, 0),
    _along(0, -1),
    _along(1, 6),
    _per_axis(0),
    _permuted,
    lambda _, context: context.sizes,
    lambda chooser, context: _axes(chooser, context.rank),
    lambda chooser, context: _factors(chooser, math.prod(context.sizes)),
    _grown,
    lambda chooser, context: _partition(chooser, chooser.pick(context.lengths())),
    lambda chooser, _: tuple(chooser.between(1, 3) for _ in range(chooser.between(1, 4))),
    _labels,
    lambda chooser, _: tuple(chooser.shuffled(range(chooser.between(2, 5)))),
)

# A number near its default keeps its sense: what is tiny (an epsilon) stays so, and so does a
# share near 1. At 0 and at 1 terms and factors vanish, and what a definition compares it with (an
# order of infinity) may mean something else.
SCALED: tuple[Recipe, ...] = (
    lambda chooser, context: chooser.pick(_scaled(context.default or 1.0)),
    lambda chooser, _: chooser.pick((0.0, 1.0)),
    lambda chooser, context: float(
        chooser.pick(special(context.compared, context.default) or _scaled(context.default or 1.0))
    ),
)

# How much each is wanted where it suits; the last as much for every number that it may give.
SCALED_WANTED = (3.0, 1.0, 1.0)


def special(compared: Sequence[float], default: float | None) -> tuple[float, ...]:
    """The numbers that a definition compares an attribute with, but for its default: each is a case
    of the definition, as a word would be.
    """
    return tuple(number for number in compared if number != default)


def _scaled(default: float) -> tuple[float, ...]:
    upper = (1 + default) / 2 if 0.5 <= default < 1 else 2 * default
    return (default / 2, default, upper)


REALS: tuple[Recipe, ...] = (
    lambda chooser, _: chooser.pick((0.5, 1.0, 2.0)),
    lambda chooser, _: chooser.pick((0.0, 0.1, 0.25, 0.5, 0.9)),
    lambda chooser, _: chooser.pick((1e-5, 1e-3, 1e-2)),
    lambda chooser, _: chooser.between(-8, 8) / 4,
    lambda chooser, context: float(chooser.between(1, max(context.lengths()))),
)


# One number an axis, as a scale or a share of it: what all formats hold.
_FRACTIONS = (0.5, 0.25, 0.75, 1.0, 1.5, 2.0, 3.0)
# So many numbers a list may have whose length nothing says: a search of it takes several steps.
_MOST_NUMBERS = 9


def _fractions(chooser: Chooser, context: Context) -> tuple[float, ...]:
    count = context.rank if context.count is None else context.count
    return tuple(chooser.pick(_FRACTIONS) for _ in range(count))


def _ascending(chooser: Chooser, context: Context) -> tuple[float, ...]:
    """Quarters in order, each but once: of seven that are drawn by themselves few ever ascend."""
    most = chooser.between(1, _MOST_NUMBERS)
    count = min(most if context.count is None else context.count, len(_QUARTERS))
    return tuple(sorted(chooser.shuffled(_QUARTERS)[:count]))


_QUARTERS = tuple(n / 4 for n in range(-8, 13))
NUMBERS: tuple[Recipe, ...] = (_fractions, _ascending)


def default_number(attr: ast.Attr) -> float | None:
    """The default of an attribute, if it is written as a number."""
    node, sign = attr.default, 1
    if isinstance(node, ast.Unary) and node.op == "-":
        node, sign = node.operand, -1
    return sign * node.value if isinstance(node, ast.Number) else None


def recipes(attr: ast.Attr) -> tuple[Recipe, ...]:
    """The recipes for an attribute; none where its type says all."""
    kind = attr.type
    if kind.kind == "vector":
        return LISTS if kind.name == "int" else NUMBERS if kind.name == "real" else ()
    if kind.kind == "scalar" and kind.name == "real":
        return SCALED if default_number(attr) else REALS
    return INTS if kind.kind == "scalar" and kind.name == "int" else ()


def attribute(
    chooser: Chooser, kind: ast.AttrType, context: Context, limits: Limits, recipe: Recipe | None
) -> Any:
    """A value of the attribute's type."""
    if recipe is not None:
        return recipe(chooser, context)
    if kind.kind == "enum":
        return chooser.pick(kind.choices)
    if kind.kind == "vector":
        count = context.rank if context.count is None else context.count
        one = ast.AttrType("scalar", kind.name)
        return tuple(attribute(chooser, one, context, limits, None) for _ in range(count))
    if kind.name == "bool":
        return bool(chooser.below(2))
    if kind.name == "dtype":
        return chooser.pick([*limits.reals, *limits.ints, "bool"])
    return chooser.pick(_FRACTIONS) if kind.name == "real" else 1
