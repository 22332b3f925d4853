"""What must be cut together: the axes that share a size in the definitions of the calls.

A cut of one axis goes along with every other axis that the definition gives the same name, with
sizes that are computed from it (`4 * H`), and through results to the calls that read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.graph import Node
from irlang.placement import place_known
from irlang.scope import Scope
from irlang.signature_inputs import bound_name

Cuts = dict[tuple[str, int], int | None]  # (value, axis): the new size; None where the axis goes
evaluate = Evaluator()
_PASSES = 3  # over all calls, until nothing more follows


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of an operand: the size that the definition declares there.

    name, index: of the size that it binds; index is None where that is one number. expression: of
    one that is computed.
    """

    name: str | None
    index: int | None
    expression: ast.Expr | None = None


def axes(dims: tuple[ast.Dim, ...], info: TensorInfo, scope: Scope) -> list[Axis] | None:
    """What a definition declares for every axis of a tensor; None where that is not known."""
    declared: list[Axis] = []
    try:
        for dim in dims:
            name = bound_name(dim)
            if dim.kind == "rest":
                count = len(evaluate.known(dim.size, scope))
                declared += [Axis(name, i, None) for i in range(count)]
            else:
                declared.append(Axis(name, None, None if name else dim.size))
        rank = len(info.shape)
        if any(dim.broadcast for dim in dims):
            return declared[len(declared) - rank :] if rank <= len(declared) else None
        placed = place_known(dims, rank, scope)
    except InvalidInput:
        return None
    found: list[Axis] = [Axis(None, None)] * rank
    for axis, entry in zip(placed, declared, strict=True):
        found[axis] = entry
    return found


def operands(node: Node) -> Iterator[tuple[str, ast.Input, Scope]]:
    """Every operand of a call with its declaration, and the scope that it is declared in."""
    scope = node.instance.binding.scope
    items = {item.name: item for item in node.op.inputs}
    for formal, operand in node.inputs.items():
        item = items[formal]
        if isinstance(operand, str):
            yield operand, item, scope
            continue
        for member, value in enumerate(operand):
            inner = scope.inner()
            if item.family:
                inner.names[item.family] = member
            yield value, item, inner


def follow(case: Case, cuts: Cuts) -> tuple[list[Node], Cuts] | None:
    """The calls with attributes that fit, and every cut that follows; None where some cannot be."""
    cuts = dict(cuts)
    free = case.values.keys()
    nodes = list(case.graph.nodes)
    for _ in range(_PASSES):
        before = len(cuts)
        nodes = []
        for node in case.graph.nodes:
            changed = _changes(node, case, cuts)
            _operands(node, case, cuts, changed, set(free))
            _outputs(node, case, cuts, changed)
            nodes.append(_attributes(node, case, cuts, changed))
        if len(cuts) == before:
            break
    if any(size is not None and size < 0 for size in cuts.values()):
        return None
    return nodes, cuts


def _changes(node: Node, case: Case, cuts: Cuts) -> dict[tuple[str, int | None], int | None]:
    """The declared sizes that change, by name and index."""
    found: dict[tuple[str, int | None], int | None] = {}
    for value, item, scope in operands(node):
        info = case.graph.values[value]
        for axis, entry in enumerate(axes(item.type.dims, info, scope) or ()):
            if (value, axis) in cuts and entry.name is not None:
                found[entry.name, entry.index] = cuts[value, axis]
    return found


def _operands(
    node: Node,
    case: Case,
    cuts: Cuts,
    changed: dict[tuple[str, int | None], int | None],
    free: set[str],
) -> None:
    for value, item, scope in operands(node):
        if value not in free:
            continue
        info = case.graph.values[value]
        broadcast = any(dim.broadcast for dim in item.type.dims)
        for axis, entry in enumerate(axes(item.type.dims, info, scope) or ()):
            if (value, axis) in cuts:
                continue
            if (entry.name, entry.index) in changed and entry.name is not None:
                size = changed[entry.name, entry.index]
                if size is None or not (broadcast and info.shape[axis] == 1):
                    cuts[value, axis] = size
            elif entry.expression is not None and changed:
                computed = _computed(entry.expression, scope, changed)
                if computed is not None and computed != info.shape[axis]:
                    cuts[value, axis] = computed


def _computed(
    node: ast.Expr, scope: Scope, changed: dict[tuple[str, int | None], int | None]
) -> int | None:
    inner = scope.inner()
    for (name, index), size in changed.items():
        old = inner.names.get(name, scope.names.get(name))
        if index is None:
            inner.names[name] = size
        elif isinstance(old, tuple) and size is not None:
            inner.names[name] = (*old[:index], size, *old[index + 1 :])
    try:
        found: Any = evaluate.known(node, inner)
    except (InvalidInput, TypeError, ArithmeticError):
        return None
    return found if type(found) is int else None


def _outputs(
    node: Node,
    case: Case,
    cuts: Cuts,
    changed: dict[tuple[str, int | None], int | None],
) -> None:
    """Cuts of results; where a size is computed otherwise, the calls behind are mended."""
    for value, output in zip(node.outputs, node.op.outputs, strict=False):
        if output.family:
            return
        scope = node.instance.binding.scope
        found = axes(output.type.dims, case.graph.values[value], scope)
        for axis, entry in enumerate(found or ()):
            if entry.name is not None and (entry.name, entry.index) in changed:
                cuts[value, axis] = changed[entry.name, entry.index]


def _attributes(
    node: Node,
    case: Case,
    cuts: Cuts,
    changed: dict[tuple[str, int | None], int | None],
) -> Node:
    """The call with a number fewer for an axis that goes, and with axes counted without it."""
    gone = [(name, index) for (name, index), size in changed.items() if size is None]
    if not gone:
        return node
    attrs = dict(node.attrs)
    for attr in node.op.attrs:
        value = attrs.get(attr.name)
        if attr.type.kind == "vector" and attr.type.rest and isinstance(value, tuple):
            about = attr.type.dims.id if isinstance(attr.type.dims, ast.Name) else None
            left = {index for name, index in gone if name == about}
            attrs[attr.name] = tuple(v for i, v in enumerate(value) if i not in left)
    for value, item, _ in operands(node):
        rank = len(case.graph.values[value].shape)
        out = [a for a in range(rank) if cuts.get((value, a), 0) is None]
        for dim in item.type.dims:
            if out and isinstance(dim.at, ast.Name) and dim.at.id in node.attrs:
                attrs[dim.at.id] = _recounted(node.attrs[dim.at.id], rank, out)
        if out:
            break
    return replace(node, attrs=attrs)


def _recounted(value: Any, rank: int, out: list[int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_recounted(v, rank, out) for v in value if v % rank not in out)
    place = value % rank
    left = place - sum(axis < place for axis in out)
    return left if value >= 0 else left - (rank - len(out))
