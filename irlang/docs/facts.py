"""All that is known about an operator, as data: what `irlang ops` and the pages show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.docs.calls import calls
from irlang.docs.gradients import gradient
from irlang.docs.lowering import Lowering, lowerings
from irlang.dtypes import CLASSES, DTYPES
from irlang.graph import Graph
from irlang.mathematics import latex, mathml, terminal
from irlang.mathematics.definition import mathematics, of_equations
from irlang.parser.printer import print_attr_type, print_expr, print_statement, print_type

_CALLS = 48  # tried on every target

# A framework's name for an operator, and in parentheses how it differs.
_DIFFERS = re.compile(
    r"((?:ONNX|Keras|PyTorch|TensorFlow|torch|keras|tf|numpy)\b[^(),;]*?)\s*\(([^()]*)\)"
)


def describe(op: ast.Op, catalog: Catalog) -> dict[str, Any]:
    """Everything that is derived from a definition's text, as data."""
    shown = mathematics(op)
    graphs = calls(op, catalog, _CALLS)
    ways = lowerings(op, catalog, graphs)
    return {
        "name": op.name,
        "family": catalog.family(op.name),
        "doc": op.doc,
        "signature": signature(op),
        "definition": definition(op),
        "dtypes": dict(op.dtypes),
        "types": dtype_names(op),
        "inputs": [_input(item) for item in op.inputs],
        "outputs": [{"name": o.name, "type": print_type(o.type)} for o in op.outputs],
        "attributes": attributes(op),
        "preconditions": preconditions(op),
        "ensured": ensured(op),
        "mathematics": {
            "text": terminal.text(shown),
            "latex": latex.displays(shown),
            "mathml": mathml.blocks(shown),
        },
        "gradient": gradient_facts(op, catalog, graphs),
        "lowers_to": spellings(ways),
        "lowering": [way.as_json() for way in ways],
        "differs": differences(op),
    }


def signature(op: ast.Op) -> str:
    """How the operator is called, without types: `conv(x, w, b?; stride, …) -> y`."""
    inputs = [
        item.name + ("..." if item.family else "") + ("?" if item.default is not None else "")
        for item in op.inputs
    ]
    attrs = f"; {', '.join(attr.name for attr in op.attrs)}" if op.attrs else ""
    outputs = [item.name + ("..." if item.family else "") for item in op.outputs]
    return f"{op.name}({', '.join(inputs)}{attrs}) -> {', '.join(outputs)}"


def definition(op: ast.Op) -> str:
    """The text of a definition without its doc, which stands above it."""
    return print_statement(replace(op, doc="", comments=())).strip()


def _input(item: ast.Input) -> dict[str, Any]:
    return {
        "name": item.name,
        "type": print_type(item.type),
        "optional": item.default is not None,
        "default": None if item.default is None else print_expr(item.default),
        "variadic": bool(item.family),
    }


def attributes(op: ast.Op) -> list[dict[str, Any]]:
    """Attributes with types and defaults; None where one must be given."""
    return [
        {
            "name": attr.name,
            "type": print_attr_type(attr.type),
            "default": None if attr.default is None else print_expr(attr.default),
        }
        for attr in op.attrs
    ]


def preconditions(op: ast.Op) -> list[dict[str, str]]:
    """Preconditions by the codes of their diagnostics."""
    return [
        {
            "code": f"{op.name}.{s.name}",
            "condition": " ".join(print_expr(s.condition).split()),
            "message": s.message,
        }
        for s in op.body
        if isinstance(s, ast.Require)
    ]


def ensured(op: ast.Op) -> list[dict[str, str]]:
    """What holds of every right result where values are left open."""
    return [
        {
            "code": f"{op.name}.{s.name}",
            "condition": " ".join(print_expr(s.condition).split()),
            "message": s.message,
        }
        for s in op.body
        if isinstance(s, ast.Ensure)
    ]


def gradient_facts(op: ast.Op, catalog: Catalog, graphs: Sequence[Graph] = ()) -> dict[str, Any]:
    """The equations for one of these calls, or under `reason` why there are none."""
    try:
        found = gradient(op, catalog, graphs)
    except InvalidInput as error:
        return {"reason": "; ".join(fault.message for fault in error.diagnostics)}
    ties = {s.name: s.ties for s in op.body if isinstance(s, ast.Grad)}
    return {
        "call": found.call,
        "outputs": list(found.outputs),
        "text": found.text,
        "mathml": mathml.blocks(of_equations(found.equations)).strip(),
        "ties": ties,
    }


def spellings(ways: Sequence[Lowering]) -> dict[str, str]:
    """What each target's own operator is called; "from its definition" where it has none."""
    return {way.target: way.spelling or "from its definition" for way in ways}


def differences(op: ast.Op) -> list[dict[str, str]]:
    """What the doc says of conventions of frameworks that are not those of the definition."""
    text = " ".join(op.doc.split())
    return [{"of": of.strip(), "how": how.strip()} for of, how in _DIFFERS.findall(text)]


def dtype_names(op: ast.Op) -> dict[str, list[str]]:
    """The element types that every type variable may stand for."""
    return {
        variable: [name for name in DTYPES if name in CLASSES[kind]] for variable, kind in op.dtypes
    }
