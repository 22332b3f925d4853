"""A graph as the syntax tree of a model, so that it can be printed, read and checked again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.graph import LOSS, Graph, Initial, Node, Operand, Param
from irlang.graph_numbers import number_type
from irlang.listed import plain

_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_OTHER = re.compile(r"[^A-Za-z0-9_]")


def to_ast(graph: Graph) -> ast.Model:
    """A model without blocks, repetitions or symbolic sizes, whose graph is `graph`.

    A name that is no identifier (`stage1.w`) is spelled with underscores; otherwise names are
    kept. A parameter stands before the first call that reads it, and so does a number whose type
    would be another if it stood in the call.
    """
    names = spelled(graph)
    body: list[ast.Statement] = []
    literals = {name for name, param in graph.params.items() if param.literal}
    for node in graph.nodes:
        literals -= _mistaken(node, graph, literals)
    waiting = {name: param for name, param in graph.params.items() if name not in literals}

    def declare(wanted: Iterable[str]) -> None:
        for name in wanted:
            param = waiting.pop(name, None)
            if param is not None:
                body.append(_param(names[name], param))

    for node in graph.nodes:
        declare(node.operands())
        body.append(_assign(node, graph, names, literals))
    declare(list(waiting))
    inputs = tuple(
        ast.ModelInput(names[name], to_type(port.info), _within(port.within))
        for name, port in graph.inputs.items()
    )
    outputs = tuple(
        ast.ModelOutput(names[value], to_type(_written(graph.values[value])))
        for value in graph.outputs.values()
    )
    return ast.Model(graph.name, inputs, outputs, tuple(body), graph.doc)


def _written(info: TensorInfo) -> TensorInfo:
    """A result's type as it can be written: what a fault has left below 0 is no size."""
    return replace(info, shape=tuple(max(size, 0) for size in info.shape))


def spelled(graph: Graph) -> dict[str, str]:
    """The identifier for every name of a graph that its text has. What is differentiated is known
    by its name there.
    """
    found = {} if graph.loss is None else {graph.loss: LOSS}
    taken = set(found.values())
    for name in dict.fromkeys((*graph.values, *graph.outputs)):
        if name in found:
            continue
        base = word = name if _PLAIN.fullmatch(name) else _OTHER.sub("_", name)
        count = 1
        while word in taken:
            count += 1
            word = f"{base}_{count}"
        taken.add(word)
        found[name] = word
    return found


def to_type(info: TensorInfo) -> ast.TensorType:
    """`f32[2, 3]`."""
    return ast.TensorType(info.dtype, tuple(ast.Dim("size", ast.Number(n)) for n in info.shape))


def to_expr(value: Any) -> ast.Expr:
    """A known value (number, flag, list, name of a choice) as it is written."""
    if isinstance(value, bool):
        return ast.Name("true" if value else "false")
    value = plain(value)
    if isinstance(value, str):
        return ast.Name(value)
    if isinstance(value, (tuple, list)):
        return ast.ListOf(tuple(map(to_expr, value)))
    if isinstance(value, Fraction):
        return ast.Binary("/", to_expr(value.numerator), ast.Number(value.denominator))
    if isinstance(value, float) and not math.isfinite(value):
        named: ast.Expr = ast.Name("nan" if math.isnan(value) else "inf")
        return ast.Unary("-", named) if value < 0 else named
    if value < 0 or (value == 0 and math.copysign(1, value) < 0):
        return ast.Unary("-", to_expr(-value))
    return ast.Number(value)


def _within(within: tuple[float, float] | None) -> tuple[ast.Expr, ast.Expr] | None:
    if within is None:
        return None
    low, high = (to_expr(int(end) if end == int(end) else end) for end in within)
    return low, high


def _param(name: str, param: Param) -> ast.Param:
    """An array, which no text holds, is left out: it is given beside the text."""
    initial = param.initial
    value = None if initial is None or initial.kind == "array" else _initial(initial)
    return ast.Param(name, to_type(param.info), _within(param.within), value)


def _initial(initial: Initial) -> ast.Expr:
    if initial.kind == "constant":
        return to_expr(initial.args[0])
    if initial.kind == "literal":
        return to_expr(initial.args)
    args = tuple(ast.Text(a) if isinstance(a, str) else to_expr(a) for a in initial.args)
    seed = () if initial.seed is None else (("seed", to_expr(initial.seed)),)
    return ast.Call(initial.kind, args, seed)


def _mistaken(node: Node, graph: Graph, literals: set[str]) -> set[str]:
    """The literals of a call of which one has a type that is not read from there."""
    given: dict[str, list[str]] = {}
    numbers: list[tuple[ast.Input, str]] = []
    for item in node.op.inputs:
        operand = node.inputs.get(item.name)
        members = (operand,) if isinstance(operand, str) else operand or ()
        numbers += [(item, name) for name in members if name in literals]
        given[item.name] = [graph.values[n].dtype for n in members if n not in literals]
    for item, name in numbers:
        initial, dtype = graph.params[name].initial, graph.values[name].dtype
        value = None if initial is None else initial.args[0]
        if number_type(node.op, item.type.dtype, value, given) != dtype:
            return {name for _, name in numbers}
        given[item.name].append(dtype)
    return set()


def _assign(node: Node, graph: Graph, names: dict[str, str], literals: set[str]) -> ast.Assign:
    def written(value: str) -> ast.Expr:
        initial = graph.params[value].initial if value in literals else None
        return ast.Name(names[value]) if initial is None else to_expr(initial.args[0])

    def operand(value: Operand) -> ast.Expr:
        if isinstance(value, str):
            return written(value)
        return ast.ListOf(tuple(map(written, value)))

    args: list[ast.Expr] = []
    named: list[tuple[str, ast.Expr]] = []
    formals = node.op.inputs
    for position, item in enumerate(formals):
        given = node.inputs.get(item.name)
        if given is None:
            continue
        if len(args) != position:
            named.append((item.name, operand(given)))
        elif isinstance(given, tuple) and position == len(formals) - 1:
            args += map(written, given)
        else:
            args.append(operand(given))
    named += [(key, to_expr(value)) for key, value in node.attrs.items()]
    targets = tuple(names[value] for value in node.outputs)
    return ast.Assign(targets, ast.Call(node.op.name, tuple(args), tuple(named)))
