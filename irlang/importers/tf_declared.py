"""What a node of a TensorFlow graph declares of the tensors that it gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irlang.equations import TensorInfo
from irlang.importers.tf_file import NodeDef, dtype
from irlang.importers.tf_select import INPUTS
from irlang.importers.value import Unsupported

_RESOURCE = 20  # the number of the type of handles


def declared(
    node: NodeDef, size: Callable[[str], int], told: Mapping[str, int]
) -> list[tuple[str, TensorInfo]]:
    """The tensors that an input of a graph gives, by name; `size` knows open sizes by theirs.

    An input of open rank is a single number, unless its shape is told: programs declare a
    probability, or a rate, like that.
    """
    if node.op == "IteratorGetNext":
        kinds = attribute(node, "output_types", "list type") or []
        shapes = attribute(node, "output_shapes", "list shape") or []
    else:
        kind = attribute(node, "dtype", "type")
        kinds, shapes = [] if kind is None else [kind], [shape_of(node)]
    if not kinds or len(kinds) != len(shapes):
        raise Unsupported("its types and shapes are not declared")
    found = []
    for place, (kind_, shape) in enumerate(zip(kinds, shapes, strict=True)):
        name = f"{node.name}:{place}" if place else node.name
        if shape is None:
            shape = told_shape(size_name(name), told) or ()
        sizes = [
            size(f"{size_name(name)}_{axis}") if item is None else item
            for axis, item in enumerate(shape)
        ]
        found.append((name, TensorInfo(tuple(sizes), dtype(kind_))))
    return found


def shape_of(node: NodeDef) -> tuple[int | None, ...] | None:
    """The shape that a node declares; some programs leave it to what they note beside."""
    noted = attribute(node, "_output_shapes", "list shape")
    found: tuple[int | None, ...] | None = attribute(node, "shape", "shape")
    return found if found is not None or not noted else noted[0]


def captured(nodes: Sequence[NodeDef]) -> list[NodeDef]:
    """The nodes of a function's graph, its variables being variables.

    There each is a placeholder of a handle that says neither type nor shape: the type is that in
    which it is read, the shape has to be told.
    """
    handles = {
        node.name
        for node in nodes
        if node.op == "Placeholder" and attribute(node, "dtype", "type") == _RESOURCE
    }
    types = {
        node.inputs[0][0]: node.attributes["dtype"]
        for node in nodes
        if node.inputs and node.inputs[0][0] in handles and "dtype" in node.attributes
    }
    return [
        NodeDef(node.name, "VarHandleOp", attributes={"dtype": types[node.name]})
        if node.name in types
        else node
        for node in nodes
    ]


def attribute(node: NodeDef, name: str, kind: str) -> Any:
    """The value of an attribute, None where there is none of that kind."""
    found = node.attributes.get(name)
    return found.value if found is not None and found.kind == kind else None


def size_name(name: str) -> str:
    """What `--bind` calls an input or a variable; an open size has the axis behind it."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "input"


def unranked(node: NodeDef, told: Mapping[str, int]) -> bool:
    """Whether an input declares no rank, and none was told: it counts as a single number."""
    declares = node.op in INPUTS and node.op != "IteratorGetNext" and shape_of(node) is None
    return declares and told_shape(size_name(node.name), told) is None


def told_shape(name: str, told: Mapping[str, int]) -> tuple[int, ...] | None:
    """A shape that was told: `name = 3` or `name[0] = 3, name[1] = 4`; None if none was."""
    if name in told:
        return (told[name],)
    found: list[int] = []
    while f"{name}[{len(found)}]" in told:
        found.append(told[f"{name}[{len(found)}]"])
    return tuple(found) or None
