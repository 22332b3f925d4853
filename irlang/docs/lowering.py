"""What targets make of an operator, found by lowering calls of it: their own operator, or not.

Whether a target's operator serves depends on a call's attributes, types and sizes. The condition
that is told is the simplest that separates the calls that were tried.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.equations import TensorInfo
from irlang.graph import Graph, Node
from irlang.interp.values import initial_values
from irlang.lower.lower import lower, tables
from irlang.parser.printer import print_expr


@dataclass(slots=True)
class Lowering:
    """A target's way with one operator.

    spelling: of its own operator, empty where it has none. native, composed: the calls for which
    that, or the definition's equations, are what is run. refused: reasons why neither can be, and
    how often each was met. when: the condition of the first, where both occur.
    """

    target: str
    spelling: str
    native: int = 0
    composed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    when: str = ""

    @property
    def how(self) -> str:
        """`native`, `composed`, `partly` (one or the other, or refused), `not` or `untried`."""
        kinds = [self.native > 0, self.composed > 0, bool(self.refused)]
        if sum(kinds) > 1:
            return "partly"
        return ("native", "composed", "not")[kinds.index(True)] if any(kinds) else "untried"

    def sentence(self) -> str:
        """What is lowered to, and when."""
        own, other = self.spelling, "composed from the definition"
        match self.how:
            case "native":
                said = own
            case "composed" | "untried":
                said = other
            case "not":
                said = "not"
            case _ if not self.native:
                said = other
            case _:
                said = f"{own} {self.when}"
                said += f"; else {other}" if self.composed else ""
        if self.refused:
            said += f"; refused: {'; '.join(sorted(self.refused))}"
        return said

    def as_json(self) -> dict[str, object]:
        """As `irlang ops NAME --format json` shows it."""
        return {
            "target": self.target,
            "how": self.how,
            "spelling": self.spelling or None,
            "when": self.when or None,
            "text": self.sentence(),
            "calls": {"native": self.native, "composed": self.composed,
                      "refused": dict(sorted(self.refused.items()))},
        }  # fmt: skip


def lowerings(op: ast.Op, catalog: Catalog, graphs: Sequence[Graph]) -> list[Lowering]:
    """What every target makes of an operator, by the calls given."""
    found = []
    for target, table in tables().items():
        row = table.get(op.name)
        lowering = Lowering(target, row.spellings if row is not None else "")
        outcomes: list[tuple[Node, bool]] = []
        for graph in graphs:
            result = lower(graph, target, catalog, initial_values(graph, 0))
            for reason in result.unsupported:
                lowering.refused[_general(reason, op)] += 1
            if not result.unsupported:
                outcomes.append((graph.nodes[0], bool(result.native)))
        lowering.native = sum(own for _, own in outcomes)
        lowering.composed = len(outcomes) - lowering.native
        if lowering.native and lowering.composed:
            lowering.when = condition(op, outcomes)
        found.append(lowering)
    return found


def _general(reason: str, op: ast.Op) -> str:
    """A reason without the name of the operator, which whoever reads it knows."""
    return reason.removeprefix(f"{op.name}: ")


# ---- conditions

_FEWEST = 4  # native calls from which a condition can be told
_MOST = 4  # statements in one

Test = Callable[[Node], bool]


def condition(op: ast.Op, outcomes: Sequence[tuple[Node, bool]]) -> str:
    """The fewest simple statements that hold for every native call and for no other.

    Where what is tried does not separate them, what does for many, and how often it is native.
    """
    native = [node for node, own in outcomes if own]
    others = [node for node, own in outcomes if not own]
    many = f"for {len(native)} of {len(outcomes)} calls tried"
    if len(native) < _FEWEST:
        return many
    statements = [
        (text, test) for text, test in _statements(op, outcomes) if all(map(test, native))
    ]
    chosen: list[str] = []
    while others:
        left = {text: [node for node in others if test(node)] for text, test in statements}
        best = min(left, key=lambda text: len(left[text]), default="")
        if not best or len(left[best]) == len(others) or len(chosen) == _MOST:
            return f"only if {' and '.join(chosen)}, {many}" if chosen else many
        others = left[best]
        chosen.append(best)
    return f"if {' and '.join(chosen)}"


def _statements(op: ast.Op, outcomes: Sequence[tuple[Node, bool]]) -> Iterator[tuple[str, Test]]:
    """Simple statements about a call, the plainest first."""
    nodes = [node for node, _ in outcomes]
    native = [node for node, own in outcomes if own]
    for attr in op.attrs:
        yield from _of_attribute(attr, nodes, native)
    lists = [attr.name for attr in op.attrs if attr.type.kind == "vector"]
    for one, other in itertools.combinations(lists, 2):
        yield f"{one} = {other}", partial(_equal, one=one, other=other)
    for item in op.inputs:
        if item.default is not None:
            yield f"{item.name} is given", _among(partial(_is_given, name=item.name), {True})
            yield f"{item.name} is absent", _among(partial(_is_given, name=item.name), {False})
    yield "tensors have elements and axes", _has_elements
    yield "tensors have the same shape", lambda node: len(set(_given(node))) <= 1
    for variable, _ in op.dtypes:
        dtype = partial(_dtype, variable=variable)
        yield from _of_values(variable, dtype, {dtype(node) for node in native})
    for item in op.inputs:
        if item.family or item.default is not None:
            continue
        rank = partial(_rank, name=item.name)
        yield from _of_values(f"rank({item.name})", rank, {rank(node) for node in native})


def _of_attribute(
    attr: ast.Attr, nodes: Sequence[Node], native: Sequence[Node]
) -> Iterator[tuple[str, Test]]:
    name = attr.name
    value = partial(_value, name=name)
    if attr.type.kind == "enum" or attr.type.name in ("bool", "dtype"):
        met = sorted({value(node) for node in nodes}, key=str)
        yield from ((f"{name} = {_shown(choice)}", _among(value, {choice})) for choice in met)
        good = {value(node) for node in native}
        if 1 < len(good) < len(met):
            yield f"{name} is {_either(sorted(map(_shown, good)))}", _among(value, good)
        yield from (
            (f"{name} ≠ {_shown(choice)}", _among(value, set(met) - {choice})) for choice in met
        )
        return
    if attr.default is not None:
        usual = print_expr(attr.default)
        yield f"{name} = {usual}", lambda node: name not in node.attrs
    for number in (0, 1, 2):
        yield f"{name} = {number}", partial(_all, name=name, test=partial(operator.eq, number))
    yield f"{name} ≥ 0", partial(_all, name=name, test=partial(operator.le, 0))
    yield f"{name} > 0", partial(_all, name=name, test=partial(operator.lt, 0))
    yield f"{name} < 0", partial(_all, name=name, test=partial(operator.gt, 0))
    yield f"{name} is the same on all axes", lambda node: len(set(_numbers(node, name))) <= 1
    yield f"{name} names one axis", lambda node: len(_numbers(node, name)) == 1


def _of_values(name: str, value: Get, good: set[Any]) -> Iterator[tuple[str, Test]]:
    """`name` is one of the values of native calls."""
    if good:
        yield f"{name} is {_either(sorted(map(str, good)))}", _among(value, good)


Get = Callable[[Node], Any]


def _among(value: Get, good: set[Any]) -> Test:
    return lambda node: value(node) in good


def _all(node: Node, name: str, test: Callable[[Any], bool]) -> bool:
    return all(map(test, _numbers(node, name)))


def _is_given(node: Node, name: str) -> bool:
    return name in node.inputs


def _value(node: Node, name: str) -> Any:
    return node.instance.binding.scope.names.get(name)


def _numbers(node: Node, name: str) -> tuple[Any, ...]:
    value = _value(node, name)
    return value if isinstance(value, tuple) else (value,)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _either(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _dtype(node: Node, variable: str) -> str:
    return node.instance.binding.dtypes.get(variable, "")


def _rank(node: Node, name: str) -> int:
    """How many axes an input has that every call gives."""
    info = node.instance.binding.inputs[name]
    assert isinstance(info, TensorInfo)
    return len(info.shape)


def _equal(node: Node, one: str, other: str) -> bool:
    return bool(_value(node, one) == _value(node, other))


def _given(node: Node) -> list[tuple[int, ...]]:
    """The shapes of the inputs that a call has."""
    return [
        member.shape
        for info in node.instance.binding.inputs.values()
        if info is not None
        for member in (info if isinstance(info, tuple) else (info,))
    ]


def _has_elements(node: Node) -> bool:
    results = [info.shape for _, info in node.instance.outputs or ()]
    given = _given(node)
    return any(given) and not any(0 in shape for shape in [*results, *given])
