"""What a name stands for in the types of a definition: the size of one axis, or of several axes."""

from __future__ import annotations

from collections.abc import Iterator

from irlang import ast
from irlang.diagnostics import Diagnostic

_ROLES = {
    "size": "the size of one axis",
    "rest": "the sizes of any number of axes",
    "tensor": "a tensor",
    "dtype": "an element type",
    "word": "a word",
    "real": "no whole number",
}
_OF_ATTRS = {"dtype": "dtype", "bool": "word", "real": "real"}


def role_faults(op: ast.Op) -> list[Diagnostic]:
    """Names that stand for one thing, and in the type of a tensor for another (`definition.axes`).

    What is left out are names that the body gives a value.
    """
    roles = {name: "dtype" for name, _ in op.dtypes}
    roles |= {item.name: "tensor" for item in op.inputs}
    roles |= {attr.name: _of_attribute(attr) for attr in op.attrs}
    found = []
    for item in op.inputs:
        for name, dim in _named(item.type):
            roles.setdefault(name, dim.kind)
    for kind in _types(op):
        for name, dim in _named(kind):
            if roles.get(name, dim.kind) != dim.kind:
                written = f"{name}.." if dim.kind == "rest" else name
                message = f"`{written}` is {_ROLES[dim.kind]}; `{name}` is {_ROLES[roles[name]]}"
                found.append(Diagnostic("definition.axes", message, dim.span, node=op.name))
    return found


def _of_attribute(attr: ast.Attr) -> str:
    if attr.type.dims is not None:
        return "rest"
    return "word" if attr.type.kind == "enum" else _OF_ATTRS.get(attr.type.name, "size")


def _types(op: ast.Op) -> Iterator[ast.TensorType]:
    yield from (item.type for item in op.inputs)
    yield from (output.type for output in op.outputs)
    yield from (statement.type for statement in op.body if isinstance(statement, ast.Some))


def _named(kind: ast.TensorType) -> Iterator[tuple[str, ast.Dim]]:
    """The entries that are names."""
    for dim in kind.dims:
        if isinstance(dim.size, ast.Name):
            yield dim.size.id, dim
