"""Whether a program hands its one call to the target's own operator as it is.

Where a rule composes an operator of several, or computes what it passes on, it is the rule that
takes an invalid argument, not the target: nothing follows from such a program being run.
"""

from __future__ import annotations

import ast

from irlang.lower.lower import Lowered

_MOVING = frozenset({"transpose", "permute", "Transpose"})  # which only change the layout
_COMPUTED = (ast.BinOp, ast.Compare, ast.Subscript, ast.BoolOp, ast.IfExp)


def is_direct(lowered: Lowered) -> bool:
    """Whether the program is one operator of the target's, and its inputs as they come."""
    if isinstance(lowered.code, bytes):
        import onnx

        nodes = onnx.load_from_string(lowered.code).graph.node
        return sum(node.op_type not in _MOVING for node in nodes) == 1
    body = [part for node in _statements(lowered.code) for part in ast.walk(node)]
    called = [
        part.func.attr
        for part in body
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
    ]
    computed = any(isinstance(part, _COMPUTED) for part in body)
    return sum(name not in _MOVING for name in called) == 1 and not computed


def says(lowered: Lowered) -> str:
    """What a program hands over, whatever the shapes: the operators with their arguments."""
    if isinstance(lowered.code, bytes):
        import onnx

        graph = onnx.load_from_string(lowered.code).graph
        return f"{list(graph.node)} {list(graph.initializer)}"
    constants = {name: array.tolist() for name, array in lowered.params.items()}
    return f"{[ast.dump(node) for node in _statements(lowered.code)]} {constants}"


def _statements(code: str) -> list[ast.stmt]:
    """The function of a program without its description."""
    functions = (node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef))
    return next(functions).body[1:]
