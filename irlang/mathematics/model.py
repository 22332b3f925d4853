"""A checked model as mathematics: what goes in, and every call with the type of its result."""

from __future__ import annotations

from typing import Any

from irlang.equations import TensorInfo
from irlang.graph import Graph, Node
from irlang.mathematics.form import Form, Line, Mathematics, Number, Sign, Space, Words, listed, row
from irlang.mathematics.notation import fenced, infix, symbol


def model(graph: Graph, most: int = 80) -> Mathematics:
    """Inputs, parameters and calls of a model; of more than `most` calls, how many are left."""
    types = [Line(symbol(name), "∈", _space(port.info)) for name, port in graph.inputs.items()]
    types += [
        Line(symbol(name), "∈", _space(param.info), Words("parameter"))
        for name, param in graph.params.items()
        if not param.literal
    ]
    calls = [_call(node, graph) for node in graph.nodes[:most]]
    left = len(graph.nodes) - most
    remarks: list[Form] = [Words(f"and {left} more calls")] if left > 0 else []
    results = [
        Line(symbol(name), "∈", _space(graph.values[value]), Words("result"))
        for name, value in graph.outputs.items()
    ]
    return Mathematics((*types, *results), tuple(calls), (), tuple(remarks))


def _space(info: TensorInfo) -> Space:
    return Space(Words(info.dtype), tuple(Number(str(size)) for size in info.shape))


def _call(node: Node, graph: Graph) -> Line:
    inputs = [_operand(operand, graph) for operand in node.inputs.values()]
    given = listed(inputs)
    if node.attrs:
        attrs = [
            row(symbol(name), infix("=", "relation"), _value(value))
            for name, value in node.attrs.items()
        ]
        given = row(given, Sign(";", "comma"), listed(attrs))
    left = listed([symbol(name) for name in node.outputs])
    spaces = [_space(graph.values[name]) for name in node.outputs]
    types = row(infix("∈", "relation"), listed(spaces))
    return Line(left, "=", row(symbol(node.op.name), fenced(given), types))


def _operand(operand: str | tuple[str, ...], graph: Graph) -> Form:
    """The name of a value, or a number that stands in the call."""
    if isinstance(operand, tuple):
        return fenced(listed([_operand(member, graph) for member in operand]), "[", "]")
    param = graph.params.get(operand)
    if param is not None and param.literal and param.initial is not None:
        return listed([_value(value) for value in param.initial.args])
    return symbol(operand)


def _value(value: Any) -> Form:
    if isinstance(value, (tuple, list)):
        return fenced(listed([_value(item) for item in value]))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Words(str(value).lower() if isinstance(value, bool) else str(value))
    if value < 0:
        return row(Sign("−", "prefix"), Number(str(-value)))
    return Number(str(value))
