"""One call that is spoilt: a change, the only fault that comes of it, and the program that has it.

What a fault leaves without a value has that of the valid call, so that a target's rule finds all
that it asks for, and hands over what is invalid.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.equations import TensorInfo
from irlang.gen.changes import Resize, SetElements, changed, empties
from irlang.gen.judge import judge
from irlang.gen.moves import Move, SetAttr, evaluate
from irlang.gen.pattern import pattern
from irlang.graph import Graph, Node, Operand, Port
from irlang.instance import Instance, outputs_said
from irlang.interp.program import run
from irlang.signature import Fault, Given, involved

Array = np.ndarray[Any, np.dtype[Any]]

_MOST = 192  # elements of one tensor
_REST = -1  # as a size: what is left
RULED_OUT = "the framework's own documentation rules it out: "
OPEN = "a number of which the definition may say nothing"


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A program of one call, read from its inputs, that breaks one requirement.

    changed: the attribute or input that was changed, and what it is now. beside: programs that
    differ from it in an attribute that the requirement is about; a target that is given the same
    text for one of them is not given that attribute. added: whether the requirement is not the
    definition's own, but one that was added to it. hollow: whether an input has no elements, of
    which frameworks say less than of others, or was given a number of which the definition may say
    nothing: it must end no process, that is all. said: whether its results have the sizes that are
    declared, which mean nothing, and not those of the valid call. seed: of the numbers that it is
    fed with: beside some an element is wrong that is right beside others, as where places ascend.
    """

    graph: Graph
    beside: tuple[Graph, ...]
    fault: Fault
    changed: Move | SetElements | Resize
    added: bool = False
    hollow: bool = False
    said: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A call after a change, which has one fault."""

    move: Move | Resize
    types: dict[str, Given]
    attrs: dict[str, Any]
    instance: Instance

    @property
    def code(self) -> str:
        """The code of its fault."""
        return self.instance.faults[0].code

    @property
    def size(self) -> str:
        """What an axis that is too long or too short is declared to be."""
        return self.instance.faults[0].size


@dataclass(frozen=True, slots=True)
class Call:
    """A valid call of which things are changed.

    valid: the program of it. demanded: ranges of inputs. added: a condition that is one more
    requirement of it. stated: whether it says what would follow by default from what is changed.
    twins: whether attributes that are declared alike and have the same value change together, if
    they can: many frameworks have one number for both ends of an axis. hollow: whether it has
    inputs without elements as it is.
    """

    node: Node
    given: dict[str, Given]
    valid: Graph
    demanded: dict[str, tuple[float, float]]
    added: ast.Require | None
    stated: bool
    twins: bool = False
    hollow: bool = False

    def broken(self, move: Move | Resize) -> Broken | None:
        """The call after a change, if it has exactly one fault."""
        types, attrs = changed(self.node, self.given, move)
        if self.stated:
            attrs |= _followers(self.node, attrs, move)
        broken = self._faulty(types, attrs, move)
        twins = _twins(self.node, move) if self.twins else {}
        if twins:
            together = self._faulty(types, {**attrs, **twins}, move)
            if together is None and broken is not None:  # some may be no matter of the requirement
                spoken = {n: v for n, v in twins.items() if n in broken.instance.faults[0].sources}
                together = self._faulty(types, {**attrs, **spoken}, move)
            broken = together or broken
        return broken

    def _faulty(
        self, types: dict[str, Given], attrs: dict[str, Any], move: Move | Resize
    ) -> Broken | None:
        instance = faulty(self.node.op, types, attrs, self.added, move.name)
        return Broken(move, types, attrs, instance) if instance is not None else None

    def spoilt(self, broken: Broken) -> Iterator[Spoilt]:
        """Its program; none where a tensor has too many elements, or none without being asked.

        Where the fault is in what a result is as large as, which some targets are told, there is
        one more with the sizes that the result is declared to have.
        """
        name = self.added.name if self.added is not None else ""
        added = name != "" and broken.code == f"{self.node.op.name}.{name}"
        hollow = self.hollow or empties(broken.move)
        # Results may have no type by now; a program says no more of them than that they are there.
        # What is added may be that there is something.
        outputs = broken.instance.outputs or self.node.instance.outputs or ()
        if not _present(broken.types, outputs, hollow or added):
            return
        if self.hollow and not _has_nothing(broken.types):
            return
        for said in (False, True):
            if said and (broken.instance.outputs or not isinstance(broken.move, SetAttr)):
                return
            made = spoilt_call(
                self.node, self.valid, self.demanded,
                broken.move, broken.instance, broken.types, broken.attrs, said,
            )  # fmt: skip
            if said == made.said:
                yield replace(made, added=added, hollow=hollow)


def faulty(
    op: ast.Op,
    types: Mapping[str, Given],
    attrs: Mapping[str, Any],
    added: ast.Require | None,
    touched: str,
) -> Instance | None:
    """A call, if it has exactly one fault; added: a condition that is one more requirement.

    touched: the name of what was changed. A fault of a default that speaks of it is the same one: a
    stride is as long as its window, where nothing else is said.
    """
    instance = judge(op, types, attrs)
    if instance is not None and added is not None and not instance.faults:
        instance = _broken(added, instance)
    if instance is None or not instance.faults:
        return None
    first, *rest = instance.faults
    if not rest:
        return instance
    behind = following(op, attrs, touched)
    if touched not in first.sources or not all(behind & set(one.sources) for one in rest):
        return None
    return Instance(replace(instance.binding, faults=[first]), instance.outputs)


def _twins(node: Node, move: Move | Resize) -> dict[str, Any]:
    """The attributes that are declared as the one that is changed, and have its value, changed."""
    if not isinstance(move, SetAttr):
        return {}
    declared, names = pattern(node.op).attrs, node.instance.binding.scope.names
    own, value = declared[move.name], names.get(move.name)
    return {
        attr.name: move.value
        for attr in declared.values()
        if attr is not own
        and (attr.type, attr.default) == (own.type, own.default)
        and names.get(attr.name) == value
    }


def _followers(node: Node, attrs: Mapping[str, Any], move: Move | Resize) -> dict[str, Any]:
    """The attributes whose defaults would follow a number that was changed, with what they were.

    A stride is as long as its window, where nothing else is said, and a target that refuses strides
    of nothing has not been asked about windows.
    """
    if not isinstance(move, SetAttr):
        return {}
    known = node.instance.binding.scope.names
    behind = following(node.op, attrs, move.name)
    return {name: known[name] for name in pattern(node.op).attrs if name in behind & known.keys()}


def following(op: ast.Op, attrs: Collection[str], touched: str) -> frozenset[str]:
    """The attributes that are not among those said and whose defaults follow one of them."""
    return frozenset(
        attr.name
        for attr in pattern(op).attrs.values()
        if attr.name not in attrs and attr.default is not None and _names(attr.default, touched)
    )


def _names(node: ast.Expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def broken_by(graph: Graph, values: Mapping[str, Array], catalog: Catalog) -> Diagnostic | None:
    """What the elements of a program's inputs break; None if nothing."""
    try:
        run(graph, values, catalog)
    except InvalidInput as error:
        return error.diagnostics[0]
    return None


def holds(wanted: ast.Require, instance: Instance) -> bool:
    """Whether a condition that is no part of the definition holds of a call."""
    try:
        return evaluate(wanted.condition, instance.binding.scope) is True
    except InvalidInput:
        return False


def _broken(wanted: ast.Require, instance: Instance) -> Instance:
    """A valid call, with the fault of breaking a condition that is no part of the definition."""
    binding = instance.binding
    if holds(wanted, instance):
        return instance
    sources = tuple(involved(binding, wanted.condition))
    code = f"{binding.op.name}.{wanted.name}"
    fault = Fault(code, f"{RULED_OUT}{wanted.message}", 1.0, sources)
    return Instance(replace(binding, faults=[fault]), instance.outputs)


def spoilt_call(
    node: Node,
    valid: Graph,
    demanded: dict[str, tuple[float, float]],
    move: Move | Resize,
    instance: Instance,
    types: dict[str, Given],
    attrs: dict[str, Any],
    said: bool = False,
) -> Spoilt:
    """The program of a call with one fault, which a move has made of a valid one. said: whether
    results have the sizes that are declared where these mean nothing, if there are such.
    """
    fault = instance.faults[0]
    declared = _meaningless(instance) if said and not instance.outputs else None
    outputs = declared or instance.outputs or node.instance.outputs or ()
    whole = _named(instance, node.instance, outputs)
    graph = alone(node, types, attrs, whole, demanded)
    others = []
    if isinstance(move, SetAttr):
        others.append(valid)
    for name, other in _less(attrs, fault.sources):
        without = judge(node.op, types, other)
        if without is None or fault.code in (one.code for one in without.faults):
            continue  # it is invalid without that attribute, too
        plain = _named(without, node.instance, without.outputs or outputs)
        if not _unchanged(name, whole, plain):
            others.append(alone(node, types, other, plain, demanded))
    return Spoilt(graph, tuple(others), fault, move, said=declared is not None)


def _meaningless(instance: Instance) -> tuple[tuple[str, TensorInfo], ...] | None:
    """What a call's results are declared to be, where a size is below 0; else None.

    A size of 0 is one; and -1 stands for whatever there is in many a framework's lists of sizes.
    """
    declared = outputs_said(instance) or ()
    sizes = [size for _, info in declared for size in info.shape]
    return declared if min(sizes, default=0) < _REST and _REST not in sizes else None


def _named(
    instance: Instance, valid: Instance, outputs: Sequence[tuple[str, TensorInfo]]
) -> Instance:
    """A faulty call in which whatever the fault leaves without a value has that of the valid call.

    So a target's rule finds all the names that it asks for, and hands over what is invalid.
    """
    binding = instance.binding
    names = {**valid.binding.scope.names, **binding.scope.names}
    scope = replace(binding.scope, names=names)
    return Instance(replace(binding, scope=scope), tuple(outputs))


def _less(attrs: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The attributes without one of `names`, or without one of its numbers, and that name."""
    for name in dict.fromkeys(names):
        value = attrs.get(name)
        if name in attrs:
            yield name, {key: kept for key, kept in attrs.items() if key != name}
        if isinstance(value, tuple):
            for place in range(len(value)):
                yield name, {**attrs, name: value[:place] + value[place + 1 :]}


def _unchanged(name: str, said: Instance, left: Instance) -> bool:
    """Whether an attribute is what it is where it is not said, so that the text of a target has to
    be the same, too.
    """
    names, others = said.binding.scope.names, left.binding.scope.names
    return name in names and name in others and names[name] == others[name]


def _has_nothing(types: Mapping[str, Given]) -> bool:
    """Whether one of the inputs has no elements."""
    tuples = (given if isinstance(given, tuple) else (given,) for given in types.values())
    return any(info is not None and 0 in info.shape for infos in tuples for info in infos)


def _present(
    types: dict[str, Given], outputs: Sequence[tuple[str, TensorInfo]], empty: bool
) -> bool:
    """Whether there is something in every tensor, unless they may be empty, and not too much."""
    infos = [info for _, info in outputs]
    for given in types.values():
        infos += given if isinstance(given, tuple) else [given] if given is not None else []
    least = 0 if empty else 1
    return all(least <= math.prod(info.shape) <= _MOST for info in infos)


def alone(
    node: Node,
    types: Mapping[str, Given],
    attrs: Mapping[str, Any],
    instance: Instance,
    demanded: dict[str, tuple[float, float]],
) -> Graph:
    """The program of one call; inputs have the ranges that are demanded of them."""
    graph = Graph("spoilt")
    operands: dict[str, Operand] = {}

    def port(name: str, info: TensorInfo, formal: str) -> str:
        graph.inputs[name] = Port(info, demanded.get(formal))
        graph.values[name] = info
        return name

    for formal, given in types.items():
        if isinstance(given, tuple):
            members = enumerate(given, 1)
            operands[formal] = tuple(port(f"{formal}{n}", info, formal) for n, info in members)
        elif given is not None:
            operands[formal] = port(formal, given, formal)
    outputs = tuple(f"result_{name.replace('.', '_')}" for name, _ in instance.outputs or ())
    for name, (_, info) in zip(outputs, instance.outputs or (), strict=True):
        graph.values[name] = info
    graph.outputs[outputs[0]] = outputs[0]  # targets have operators without the further ones
    graph.nodes.append(Node(outputs[0], node.op, operands, dict(attrs), outputs, instance))
    return graph


def unsaid(one: Spoilt, names: Collection[str]) -> Graph | None:
    """The program of a spoilt call that does not say some of its attributes, whatever is wrong with
    it then; None where the definition has no value for that.
    """
    node, types = one.graph.nodes[0], types_of(one.graph)
    attrs = {name: value for name, value in node.attrs.items() if name not in names}
    instance = judge(node.op, types, attrs)
    if instance is None:
        return None
    outputs = instance.outputs or node.instance.outputs or ()
    return alone(node, types, attrs, _named(instance, node.instance, outputs), {})


def types_of(graph: Graph) -> dict[str, Given]:
    """The types of what the call of a program is given, by formal."""

    def info(name: str) -> TensorInfo:
        return graph.values[name]

    return {
        formal: tuple(map(info, value)) if isinstance(value, tuple) else info(value)
        for formal, value in graph.nodes[0].inputs.items()
    }
