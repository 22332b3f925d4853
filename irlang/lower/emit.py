"""From a checked model to a program of a target: node by node, the target's own operator first.

An operator that the target's table spells is native; one that it does not, a user's own among
them, is lowered from its definition. What neither can spell is named with the reason.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from irlang import ast
from irlang.adjoint import adjoint
from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equation_rules import is_number
from irlang.equations import TensorInfo
from irlang.graph import Graph, Node
from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_first, inside
from irlang.lower.generic import lower_expansion
from irlang.lower.promotes import unconverted
from irlang.lower.python_builder import PythonBuilder
from irlang.lower.value import Builder, Unsupported, Value

_CONVERSION = "cast"  # the operator that converts


@dataclass(slots=True)
class Body:
    """What the nodes of a graph became: a value for every name, and what could not be spelt.

    native: the nodes for which the target's own operator was used. constant: values by which the
    target does not differentiate, and the operator that it has no derivative of.
    """

    values: dict[str, Value]
    unsupported: dict[str, str] = field(default_factory=dict)
    native: list[str] = field(default_factory=list)
    constant: dict[str, str] = field(default_factory=dict)


def spell(
    graph: Graph,
    builder: Builder,
    table: Mapping[str, Native],
    catalog: Catalog,
    values: dict[str, Value],
    *,
    native: bool = True,
    shuns: frozenset[str] = frozenset(),
    lacks: Mapping[str, str] = MappingProxyType({}),
    detach: Callable[[Value], Value] | None = None,
    apart: Callable[[Value, str], Value] | None = None,
    blunt: set[str] | None = None,
    whole: bool = True,
    hollow: tuple[str, ...] = ("",),
    lone: bool = False,
) -> Body:
    """Spells every node; `values` holds inputs and parameters, and gets the results.

    native: whether the target's own operators are used at all. shuns: element types that it has
    few operators for, so that definitions are lowered instead, which compute in wider ones.
    lacks: those that it does not compute in at all, and why. detach: makes a constant of an operand
    by which an operator has no derivative, where gradients are asked for. apart:
    makes a tensor of its own of every real result, where it is asked what
    flows back to each. blunt: the functions that were spelt so far of which the target has no
    derivative, as the builder keeps them. whole: otherwise no definition is lowered, and what is
    not native is unsupported: to know what is, that is not asked for. hollow: with what the
    names of those of its own operators begin that are given any tensors without elements; others
    are given batches of no samples. lone: whether they are given tensors of no axes alone.
    """
    body = Body(values)
    used = frozenset(graph.used())
    readers = Counter(name for node in graph.nodes for name in node.operands())
    readers.update(graph.outputs.values())
    once = frozenset(name for name, count in readers.items() if count == 1 and apart is None)
    for node in graph.nodes:
        try:
            _computed(graph, node, lacks)
            shunned = any(values[name].dtype in shuns for name in node.operands())
            row = table.get(node.op.name)
            taken = not shunned or (row is not None and row.narrow)
            own_table = table if native and taken else {}
            sloped = detach is not None
            fitting = [
                one
                for one in _words(own_table, node)
                if _is_ordinary(node, values, one.spelling.startswith(hollow), lone)
                and not (sloped and _both(node, one))
            ]
            results, own, constant, lacking = _by_words(
                node, builder, fitting, catalog, values, used, detach, once
            )
            if not own:  # its definition has all derivatives
                results = _defined(node, builder, catalog, values, sloped, whole, lacking)
            if blunt and detach is not None:
                real = [n for n in node.operands() if graph.values[n].kind == "real"]
                body.constant.update(dict.fromkeys(real, node.op.name))
                blunt.clear()
        except Unsupported as reason:
            body.unsupported[node.name] = f"{node.op.name}: {reason}"
            results, own = {}, False
        except InvalidInput as error:
            body.unsupported[node.name] = f"{node.op.name}: {error}"
            results, own = {}, False
        if own:
            body.native.append(node.name)
            body.constant.update(dict.fromkeys(constant, node.op.name))
        for formal, name in node.results().items():
            info = graph.values[name]
            given = results.get(formal)
            if given is not None and node.instance.faults and given.dtype == info.dtype:
                given = replace(given, shape=info.shape)  # nobody knows that of an invalid call
            if given is not None and node.instance.faults and not _is_of(given, info):
                body.unsupported[node.name] = f"{node.op.name}: {node.instance.faults[0].message}"
                given = None
            if given is None:  # so that later nodes are judged too
                # Of its own, so that no two expressions read alike.
                values[name] = Value(f"unsupported_{len(values)}", info.shape, info.dtype)
            else:
                assert _is_of(given, info), (node, given, info)
                values[name] = builder.result(given, name)
                if detach is None and node.op.name == _CONVERSION:
                    _note(builder, values[name], node, values)
                if apart is not None and info.kind == "real":
                    values[name] = apart(values[name], name)
    read = {name for node in graph.nodes for name in node.operands()}
    for name in sorted({*graph.inputs, *graph.params} - read):  # a program is given it all the same
        dtype = graph.values[name].dtype
        if DTYPES[dtype].stored:
            body.unsupported[name] = f"{name}: {_kept(dtype)}"
    _spread(graph, body.constant)
    return body


def _note(builder: Builder, made: Value, node: Node, values: Mapping[str, Value]) -> None:
    """A conversion, which words may make by themselves."""
    (operand,) = node.operands()
    if isinstance(builder, PythonBuilder) and made.text != values[operand].text:
        builder.unconverted[made.text] = values[operand]


def _detached(
    node: Node,
    word: Native,
    catalog: Catalog,
    values: Mapping[str, Value],
    detach: Callable[[Value], Value] | None,
) -> tuple[Mapping[str, Value], list[str]]:
    """The operands' values, constant where a word of the target's has no derivative by them, and
    those of these by which the definition has one.
    """
    named = {f: v for f, v in node.feeds().items() if f in word.constant}
    named = {f: v for f, v in named.items() if values[v].literal is None}
    if not named or detach is None:
        return values, []
    fed = {**values, **{name: detach(values[name]) for name in named.values()}}
    return fed, [v for f, v in named.items() if _has_slope(node, catalog, f)]


def _by_words(
    node: Node,
    builder: Builder,
    words: Sequence[Native],
    catalog: Catalog,
    values: Mapping[str, Value],
    used: frozenset[str],
    detach: Callable[[Value], Value] | None,
    once: frozenset[str],
) -> tuple[dict[str, Value], bool, list[str], str]:
    """The results by the first word that serves, whether one does, the values by which that has no
    derivative though the definition has one, and why the target has no kernel where it says so.
    once: see `_spell`.
    """
    for alike in _alike(words):
        fed, constant = _detached(node, alike[0], catalog, values, detach)
        results, own, lacking = _spell(node, builder, alike, catalog, fed, used, once)
        if own or lacking:
            return results, own, constant, lacking
    return {}, False, [], ""


def _alike(words: Sequence[Native]) -> Iterator[list[Native]]:
    """Words in their order, those together that have derivatives by the same operands."""
    for _, some in itertools.groupby(words, attrgetter("constant")):
        yield list(some)


def _both(node: Node, word: Native) -> bool:
    """Whether one value is both an operand without a derivative and another operand."""
    held = {v for f, v in node.feeds().items() if f in word.constant}
    return any(v in held for f, v in node.feeds().items() if f not in word.constant)


def _has_slope(node: Node, catalog: Catalog, formal: str) -> bool:
    """Whether the gradient by an operand is anything but 0 everywhere."""
    expansion = node.expansion(catalog)
    if expansion.tensors[formal].kind != "real":
        return False
    found = adjoint(expansion, [formal])
    return any(not is_number(e.body, 0) for e in found.equations if e.target in found.outputs)


def _spread(graph: Graph, constant: dict[str, str]) -> None:
    """What a constant was computed from has no whole gradient either."""
    for node in reversed(graph.nodes):
        reason = next((constant[name] for name in node.outputs if name in constant), None)
        if reason is not None:
            for name in node.operands():
                constant.setdefault(name, reason)


def _kept(dtype: str) -> str:
    return f"numbers are kept, not computed with, in {dtype}"


def _computed(graph: Graph, node: Node, lacks: Mapping[str, str]) -> None:
    """Raises `Unsupported` for types that numbers are only kept in, or that the target lacks."""
    for name in (*node.operands(), *node.outputs):
        dtype = graph.values[name].dtype
        if DTYPES[dtype].stored:
            raise Unsupported(_kept(dtype))
        if dtype in lacks:
            raise Unsupported(lacks[dtype])


def _spell(
    node: Node,
    builder: Builder,
    words: Sequence[Native],
    catalog: Catalog,
    values: Mapping[str, Value],
    used: frozenset[str],
    once: frozenset[str],
) -> tuple[dict[str, Value], bool, str]:
    """The results by the first word that serves, whether one does, and why the target has no kernel
    where it says so: the definition may be written with others. once: what one other call alone
    reads, and nobody is shown.
    """
    feeds = {formal: values[name] for formal, name in node.feeds().items()}
    wanted = frozenset(f for f, name in node.results().items() if name in used)
    call = Call(node, builder, feeds, wanted)
    try:
        within = inside(call, catalog) if words else None
        spelt = _first(_told(one, call, within) for one in words)
    except Unsupported as reason:
        return {}, False, f"{reason}; "
    if spelt is None:
        return {}, False, ""
    found = [spelt] if isinstance(spelt, Value) else list(spelt)
    assert used.isdisjoint(node.outputs[len(found) :]), (node, found)
    alone = len(node.outputs) == 1 and once.issuperset(node.outputs)
    if alone and isinstance(builder, PythonBuilder):
        builder.ahead(found[0], partial(_ahead, call, words, catalog))
    return dict(zip(node.results(), found, strict=False)), True, ""


def _defined(
    node: Node,
    builder: Builder,
    catalog: Catalog,
    values: Mapping[str, Value],
    sloped: bool,
    whole: bool,
    lacking: str,
) -> dict[str, Value]:
    """The results by what the definition says; lacking: why they are not by a word."""
    if not whole:
        raise Unsupported("there is no operator of its own for it")
    feeds = {formal: values[name] for formal, name in node.feeds().items()}
    try:
        return lower_expansion(
            builder, node.expansion(catalog), feeds, node.name, node.results(), sloped
        )
    except Unsupported as reason:
        raise Unsupported(f"{lacking}{reason}") from None


def _told(
    word: Native, call: Call[Any], within: Call[Any] | None
) -> Value | Sequence[Value] | None:
    """What a word makes of a call. within: the same on operands whose channels come last."""
    build = call.build
    if build.bold and isinstance(build, PythonBuilder) and build.unconverted:
        left = unconverted(build.framework, word.spelling, call.values, build.unconverted)
        found = word.rule(replace(call, values=left)) if left is not None else None
        if found is not None:
            call.dares()
            build.left.add(_CONVERSION)
            return found
    found = word.rule(within) if within is not None else None
    if within is None or found is None:
        return word.rule(call)
    results = [found] if isinstance(found, Value) else found
    return [channels_first(within, value) for value in results]


def _ahead(call: Call[Any], words: Sequence[Native], catalog: Catalog) -> Value | None:
    """The only result of a call, made with its channels last; None where that cannot be."""
    within = inside(call, catalog, asked=True)
    if within is None:
        return None
    try:
        found = _first(one.rule(within) for one in words)
    except Unsupported:
        return None
    return found if found is None or isinstance(found, Value) else found[0]


def _first(
    told: Iterable[Value | Sequence[Value] | None],
) -> Value | Sequence[Value] | None:
    """What the first word makes that makes anything."""
    return next((found for found in told if found is not None), None)


def _words(table: Mapping[str, Native], node: Node) -> tuple[Native, ...]:
    """What a table has for a call, in its order."""
    row = table.get(node.op.name) if _is_builtin(node.op) else None
    return (row, *row.others) if row is not None else ()


def _is_of(given: Value, info: TensorInfo) -> bool:
    return (given.shape, given.dtype) == (info.shape, info.dtype)


def _is_builtin(op: ast.Op) -> bool:
    """Whether a definition is irlang's own: tables know those, not a user's of the same name."""
    own = builtin().op(op.name)
    return own is op or own == op


def _is_ordinary(node: Node, values: Mapping[str, Value], hollow: bool, lone: bool) -> bool:
    """Whether tensors have axes, and elements unless they need not: else frameworks' operators have
    no common opinion. What is made of numbers alone has none to begin with.

    hollow: whether any tensor may have no elements; else the samples of a batch alone may be none,
    which all layers take. lone: whether no tensor need have axes.
    """
    operands = [values[name].shape for name in node.operands()]
    results = [info.shape for _, info in node.instance.outputs or ()]
    if not any(operands):
        return lone or not operands
    batch, *others = operands
    if len(batch) > 1 and all(shape[:1] == (0,) for shape in (batch, *results)):
        batch, *results = (shape[1:] for shape in (batch, *results))
    return hollow or not any(0 in shape for shape in [batch, *others, *results])
