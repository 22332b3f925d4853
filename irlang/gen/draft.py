"""A call in the making: where its operands come from, and what is settled of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.instance import Instance


@dataclass(slots=True)
class Value:
    """A value that a call may take: producer is the operator that made it, uses how often it is
    read so far.
    """

    name: str
    info: TensorInfo
    producer: str = ""
    uses: int = 0


@dataclass(slots=True)
class Nested:
    """The result of a call that is made for the sake of another: an adapter before an input."""

    draft: Draft
    instance: Instance
    info: TensorInfo


@dataclass(frozen=True, slots=True)
class Number:
    """A number that stands in a call."""

    value: int | float
    info: TensorInfo


# A live value, a tensor that is yet to be made, an adapter, a number.
Source = str | TensorInfo | Nested | Number
Settling = Value | Number


@dataclass(frozen=True, slots=True)
class Fixed:
    """What is settled of a call before it is drawn.

    inputs: a source, or all members of a family, by formal name. attrs: attributes, as written.
    plain: whether all others have their defaults, where that can be. said: whether none has. few:
    the only ones that have others, if any are named. lean: whether no other input is given that
    need not be. asked: the inputs that are given though they need not be. dtypes: what type
    variables stand for, and of which types inputs without one are.
    """

    inputs: dict[str, Settling | tuple[Settling, ...]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    plain: bool = False
    said: bool = False
    few: frozenset[str] = frozenset()
    lean: bool = False
    asked: frozenset[str] = frozenset()
    dtypes: Mapping[str, str] = field(default_factory=dict)


NOTHING = Fixed()


@dataclass(slots=True)
class Draft:
    """A call in the making.

    inputs: a source, or those of a family's members, by formal name. recipes: which recipe of
    `irlang.gen.draw` gave an attribute.
    """

    op: ast.Op
    inputs: dict[str, Source | tuple[Source, ...]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    recipes: dict[str, int] = field(default_factory=dict)


def source_of(given: Settling) -> Source:
    """A source as a draft has it: a value by its name."""
    return given.name if isinstance(given, Value) else given
