"""A call as the targets' tables see it: operands as values, attributes and sizes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from irlang.equations import TensorInfo
from irlang.graph import Node
from irlang.listed import is_listed
from irlang.lower.manner import Manner
from irlang.lower.value import Builder, Value

B = TypeVar("B", bound=Builder)


@dataclass(slots=True)
class Call(Generic[B]):
    """A node to spell. `values` holds its inputs under the definition's names (`xs[0]`, …).

    wanted: the results that something reads; a rule may leave out the last of the others.
    """

    node: Node
    build: B
    values: Mapping[str, Value]
    wanted: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        """An attribute, a size, or a list that the definition names (`stride`, `C`, `lo`)."""
        return self.node.instance.binding.scope.names[name]

    def get(self, name: str, usual: Any) -> Any:
        """The same, `usual` where the definition has no such name."""
        return self.node.instance.binding.scope.names.get(name, usual)

    def has(self, name: str) -> bool:
        """Whether an input was given."""
        return name in self.values

    def says(self, name: str) -> bool:
        """Whether the program says an attribute; what people leave out, a framework is not told."""
        return name in self.node.attrs

    def wants(self, name: str) -> bool:
        """Whether a result is read by anything."""
        return name in self.wanted

    def input(self, name: str) -> Value:
        """An input, a number as a tensor."""
        return self.build.solid(self.values[name])

    def text(self, name: str, absent: str = "None") -> str:
        """The text of an input, `absent` where it was not given."""
        return self.input(name).text if name in self.values else absent

    def number(self, name: str, absent: float = 0.0) -> float | None:
        """An input of one number, as the text has it, or as it is where it was left out; None where
        it is computed. absent: of an input that the operator has not.
        """
        if self.has(name):
            literal = self.values[name].literal
            return None if literal is None else float(literal)
        default = next((one.default for one in self.node.op.inputs if one.name == name), absent)
        return float(getattr(default, "value", default))  # type: ignore[arg-type]

    def family(self, name: str) -> list[Value]:
        """The members of a variadic input."""
        names = [key for key in self.values if key.startswith(f"{name}[")]
        return [self.input(key) for key in names]

    def dares(self) -> bool:
        """Whether a form is to be handed on that targets may refuse (`bold` of
        `irlang.lower.lower`); that there was one is noted.
        """
        self.build.dared |= self.build.bold
        return self.build.bold

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The types of the results."""
        return tuple(info for _, info in self.node.instance.outputs or ())

    @property
    def out(self) -> TensorInfo:
        """The type of the only, or first, result."""
        return self.outputs[0]

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Axes that an attribute names, counted from the first."""
        given = self[name]
        return tuple(_counted(a, rank) for a in (given if isinstance(given, tuple) else (given,)))

    def axis(self, name: str, rank: int) -> int:
        """The axis that an attribute names, counted from the first."""
        return _counted(self[name], rank)

    def axes_said(self, name: str, rank: int) -> tuple[int, ...]:
        """Axes as the program says them, counted from either end; of a tensor of no axes the first.

        For operators that are documented to count from the last too: what they make of that is
        under test.
        """
        given = self[name]
        axes = given if isinstance(given, tuple) else (given,)
        return tuple(int(a) for a in axes) if rank else self.axes(name, rank)

    def axis_said(self, name: str, rank: int) -> int:
        """The axis as the program says it; see `axes_said`."""
        given: int = self[name]
        return given if is_listed(given) else self.axes_said(name, rank)[0]

    def value(self, text: str, number: int = 0) -> Value:
        """The text of a result."""
        info = self.outputs[number]
        return Value(text, info.shape, info.dtype)


def _counted(axis: int, rank: int) -> int:
    """An axis from the first; one that is not there stays as it is, so as not to name another."""
    several = max(rank, 1)
    return int(axis) % several if -several <= axis < several else int(axis)


# How a target spells an operator. None: not with these attributes, so by its definition.
Rule = Callable[[Call[Any]], Value | Sequence[Value] | None]


@dataclass(frozen=True, slots=True)
class Native:
    """A row of a target's table: the operator's name there, for people, and the rule.

    constant: the inputs by which the target's operator has no derivative. eager: whether it has a
    place only in programs that are run line by line. since: the release that it needs. others:
    further words of the target for the operator, which have their turns, and stand in where the
    first does not serve. narrow: whether it takes the types of few bits that others do not.
    """

    spelling: str
    rule: Rule
    constant: tuple[str, ...] = ()
    eager: bool = False
    since: tuple[int, ...] = ()
    others: tuple[Native, ...] = ()
    narrow: bool = False

    @property
    def words(self) -> tuple[Native, ...]:
        """Itself and the others."""
        return (self, *self.others)

    @property
    def spellings(self) -> str:
        """All words, for people, each once."""
        names = (name for one in self.words for name in one.spelling.split(", "))
        return ", ".join(dict.fromkeys(names))

    def is_in(self, release: tuple[int, ...]) -> bool:
        """Whether a release has the word; no release is the current one, which has all."""
        return self.since <= (release or self.since)


def in_turn(
    table: Mapping[str, Native],
    called: Set[str],
    manner: Manner,
    release: tuple[int, ...] = (),
    compiled: bool = False,
) -> dict[str, Native]:
    """The rows of the operators that are called, with the words that a release has in a mode, those
    first whose turn it is; what is as ever is the very row. compiled: whether programs are not run
    line by line.
    """
    found = {}
    for name in called & table.keys():
        own = table[name]
        words = [one for one in own.words if one.is_in(release) and not (compiled and one.eager)]
        first = manner.words % max(len(words), 1)
        turned = words[first:] + words[:first]
        if turned == [*own.words]:
            found[name] = own
        elif turned:
            found[name] = replace(turned[0], others=tuple(turned[1:]))
    return found
