"""What is inside a node, directly and at any depth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from irlang.ast.expressions import Node

_PARTS: dict[type[Node], tuple[str, ...]] = {}  # fields that can hold nodes, by class


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside `node`, in the order of its fields."""
    return iter(_inside(node))


def _inside(node: Node) -> list[Node]:
    names = _PARTS.get(type(node))
    if names is None:
        names = _PARTS[type(node)] = tuple(f.name for f in fields(node) if f.compare)
    found: list[Node] = []
    for name in names:
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _gather(value, found)
    return found


def _gather(items: tuple[object, ...], found: list[Node]) -> None:
    for item in items:
        if isinstance(item, Node):
            found.append(item)
        elif isinstance(item, tuple):
            _gather(item, found)


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(_inside(node))
