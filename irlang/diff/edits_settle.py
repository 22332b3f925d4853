"""A case whose calls, sizes or values were edited, made whole again.

Sizes are derived anew by the definitions. A call that does not fit is mended by its attributes, and
by fewer elements of what is given; where that does not help there is no case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.diff.calls import Case
from irlang.equations import TensorInfo
from irlang.gen.judge import judge, score
from irlang.gen.moves import Move, Retype, SetAttr
from irlang.gen.repair import mend
from irlang.graph import Graph, Initial, Node, Operand
from irlang.instance import Instance
from irlang.signature import Given

Array = np.ndarray[Any, np.dtype[Any]]
_TRIALS = 24  # moves that are judged in a round of mending


def sliced_to(array: Array, sizes: list[int | None], at: int | None = None) -> Array | None:
    """So many elements of every axis; an axis whose size is None goes.

    at: where those begin that go, which are the last by default.
    """
    found = array
    for axis, (have, want) in enumerate(zip(array.shape, sizes, strict=True)):
        if want is None and have == 1:
            continue
        if want is None or want > have:
            return None
        if want < have:
            start = want if at is None else min(at, want)
            found = np.delete(found, slice(start, start + have - want), axis)
    return np.ascontiguousarray(found).reshape([n for n in sizes if n is not None])


def with_values(case: Case, arrays: Mapping[str, Array]) -> Case:
    """The case with other arrays for its inputs and parameters, whose types follow."""
    graph = case.graph
    values = dict(graph.values)
    for name, array in arrays.items():
        values[name] = TensorInfo(tuple(array.shape), values[name].dtype)
    ports = {n: replace(p, info=values[n]) for n, p in graph.inputs.items()}
    params = {}
    for name, param in graph.params.items():
        array = arrays[name]
        initial = Initial("constant", (array.item(),)) if param.literal else None
        same = array is case.params[name] and param.initial is not None
        params[name] = replace(
            param,
            info=values[name],
            initial=param.initial if same else initial or Initial("array", (array,)),
        )
    return replace(
        case, graph=replace(graph, inputs=ports, params=params, values=values),
        inputs={n: arrays[n] for n in ports}, params={n: arrays[n] for n in params}, balls=None,
    )  # fmt: skip


def settled(case: Case, nodes: list[Node]) -> Case | None:
    """The case with those calls, judged anew, without what nobody reads; None where one is invalid.

    A call that does not fit is mended by its attributes, and by fewer elements of what is given.
    """
    arrays = dict(case.values)
    types = {name: TensorInfo(tuple(a.shape), case.graph.values[name].dtype) for name, a in
             arrays.items()}  # fmt: skip
    nodes = _read(nodes, case.graph)
    made: list[Node] = []
    free = set(arrays)
    for node in nodes:
        judged = _judged(node, types, free)
        if judged is None:
            return None
        fitted, instance = judged
        for value in dict.fromkeys(node.operands()):
            if value in arrays and types[value].shape != arrays[value].shape:
                sliced = sliced_to(arrays[value], list(types[value].shape))
                if sliced is None:
                    return None
                arrays[value] = sliced
        results = instance.outputs or ()
        if len(results) != len(node.outputs):
            return None
        types.update({value: info for value, (_, info) in zip(node.outputs, results, strict=True)})
        free.difference_update(node.operands())
        made.append(fitted)
    loss = case.graph.loss
    if loss is not None and (loss not in types or types[loss].shape != ()):
        return None
    read = {value for node in made for value in node.operands()} | set(case.graph.outputs.values())
    graph = replace(
        case.graph,
        inputs={n: p for n, p in case.graph.inputs.items() if n in read},
        params={n: p for n, p in case.graph.params.items() if n in read},
        nodes=made,
        values={**{n: t for n, t in types.items() if n in read}, **_typed(made, types)},
    )
    kept = replace(case, graph=graph,
                   inputs={n: case.inputs[n] for n in graph.inputs},
                   params={n: case.params[n] for n in graph.params})  # fmt: skip
    return with_values(kept, {n: arrays[n] for n in (*graph.inputs, *graph.params)})


def _typed(nodes: list[Node], types: dict[str, TensorInfo]) -> dict[str, TensorInfo]:
    return {value: types[value] for node in nodes for value in node.outputs}


def _read(nodes: list[Node], graph: Graph) -> list[Node]:
    """The calls that a result depends on."""
    wanted = set(graph.outputs.values()) | ({graph.loss} if graph.loss else set())
    found = []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            found.append(node)
            wanted.update(node.operands())
    return found[::-1]


def _judged(
    node: Node, types: dict[str, TensorInfo], free: set[str]
) -> tuple[Node, Instance] | None:
    """The call with the attributes that fit, `types` being changed for operands that had to."""

    def known(operand: Operand) -> Given:
        if isinstance(operand, tuple):
            return tuple(types[value] for value in operand)
        return types[operand]

    def judged(attrs: dict[str, Any]) -> Instance | None:
        given = {formal: known(operand) for formal, operand in node.inputs.items()}
        return judge(node.op, given, attrs)

    instance = judged(dict(node.attrs))
    if instance is None:
        return None
    if score(instance) == 0:
        return replace(node, instance=instance), instance

    def value_of(move: Retype) -> str:
        operand = node.inputs[move.name]
        return operand if isinstance(operand, str) else operand[move.member or 0]

    def allowed(move: Move) -> bool:
        if isinstance(move, SetAttr):
            return True
        value = value_of(move)
        old, new = types[value], move.info
        fewer = len(new.shape) == len(old.shape) and all(
            n <= m for n, m in zip(new.shape, old.shape, strict=True)
        )
        return value in free and new.dtype == old.dtype and fewer

    course = mend(instance, dict(node.attrs), allowed, trials=_TRIALS)
    if not course.fits or course.instance is None:
        return None
    for move in course.kept:
        if isinstance(move, Retype):
            types[value_of(move)] = move.info
    again = judged(course.attrs)  # what is read twice was mended in one place
    if again is None or score(again) > 0:
        return None
    return replace(node, attrs=course.attrs, instance=again), again
