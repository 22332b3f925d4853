"""Small numbers of a model that do nothing where it goes wrong, beside what they are added to.

`1e-8 + 1` is 1 in f32, so that a logarithm of `(1e-8 + 1) - p` is no safer than one of `1 - p`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from irlang import equations as eq
from irlang.analysis.search import Witness
from irlang.analysis.subject import Subject
from irlang.analysis.trace import trace
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.graph import Node, cone
from irlang.interp.values import Array

_DEEP = 4  # calls before the one that goes wrong, one behind the other


def absorbed(witness: Witness, call: str, subject: Subject) -> list[str]:
    """What is lost on the way to the element of a call at which a witness makes it go wrong."""
    graph = subject.graph
    makers = {value: node for node in graph.nodes for value in node.outputs}
    node = next((one for one in graph.nodes if one.name == call), None)
    if node is None or witness.shown is None or witness.shown.result not in node.outputs:
        return []
    near, level = [node], [node]
    for _ in range(_DEEP):
        level = [one for one in level if _by_element(one, subject)]
        level = [makers[name] for one in level for name in one.operands() if name in makers]
        near += level
    sums = [one for one in near if _sums(one, subject)]
    if not any(name in subject.fixed for one in sums for name in one.operands()):
        return []
    try:
        given = {**witness.values, **subject.fixed}
        found = trace(cone(graph, [*node.operands()]), given, subject.catalog)
    except InvalidInput:
        return []
    told = (_told(one, subject, found, witness.shown.index) for one in sums)
    return list(dict.fromkeys(line for line in told if line))


def _elements(node: Node, subject: Subject) -> Iterator[tuple[eq.Equation, eq.Read]]:
    for equation in node.expansion(subject.catalog).equations:
        for part in eq.walk(equation.body):
            if isinstance(part, eq.Read):
                yield equation, part


def _by_element(node: Node, subject: Subject) -> bool:
    """Whether an element of a result is computed from those at the same place."""
    equations = node.expansion(subject.catalog).equations
    return not any(eq.reduces(equation.body) for equation in equations) and all(
        isinstance(at, eq.Const) or at == eq.Index(name)
        for equation, read in _elements(node, subject)
        for at, (name, _) in zip(read.index[::-1], equation.binders[::-1], strict=False)
    )


def _sums(node: Node, subject: Subject) -> bool:
    """Whether a call adds two elements, or takes one from the other."""
    equations = node.expansion(subject.catalog).equations
    body = equations[0].body if len(equations) == 1 else None
    if not isinstance(body, eq.Apply) or body.function not in ("+", "-"):
        return False
    return all(isinstance(arg, eq.Read) for arg in body.args) and _by_element(node, subject)


def _told(node: Node, subject: Subject, found: Mapping[str, Array], index: tuple[int, ...]) -> str:
    """That a constant of a sum is lost beside the other number, where it is; else nothing."""
    operands, result = list(node.operands()), node.outputs[0]
    dtype = subject.graph.values[result].dtype
    row = DTYPES[dtype]
    if row.kind != "real" or len(operands) != 2 or not {*operands, result} <= found.keys():
        return ""
    one, other, made = (_at(found[name], index) for name in (*operands, result))
    for (name, small), beside in product(zip(operands, (one, other), strict=True), (one, other)):
        if name not in subject.fixed or not small or not beside or made is None:
            continue
        if abs(small) < abs(beside) == abs(made):
            apart = float(np.spacing(row.numpy.type(abs(beside))))
            where = f"there the numbers of {dtype} are {apart:.2g} apart"
            return f"{abs(small):.6g} is lost beside {beside:.6g}: {where}"
    return ""


def _at(array: Array, index: tuple[int, ...]) -> float | None:
    """The element at a place of a tensor that is spread over others; None where it has none."""
    if array.ndim > len(index):
        return None
    at = index[len(index) - array.ndim :]
    if any(place >= size > 1 for place, size in zip(at, array.shape, strict=True)):
        return None
    return float(array[tuple(min(p, size - 1) for p, size in zip(at, array.shape, strict=True))])
