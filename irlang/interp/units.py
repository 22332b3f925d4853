"""A program as the equations of its calls, one by one: what errors are charged to.

A `Unit` is an equation of a call, or a group of equations that advance together. All tensors of a
program have one name each: a value of the graph its own, what lies inside a call `CALL/TENSOR`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from irlang import equations as eq
from irlang.graph import Graph, Node
from irlang.instance import Definitions
from irlang.interp.draws import key
from irlang.interp.schedule import Recurrence, schedule

_NOISE = "~"  # what is added to a tensor, and the tensor itself where an equation reads it as given


@dataclass(frozen=True, slots=True)
class Piece:
    """Equations of a call that are evaluated together, as an expansion of their own.

    alone: every one of them as an expansion, what it reads of the group being given, under its
    name and `_NOISE`; the same expansion where there is one equation that does not read itself.
    masks: where tensors are left open, of which that is known from here on. notes: what is found
    out about it.
    """

    expansion: eq.Expansion
    alone: tuple[eq.Expansion, ...]
    group: Recurrence | None = None
    masks: tuple[eq.Equation, ...] = ()
    notes: dict[Any, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a call: where its tensors stand in the program."""

    node: Node
    piece: Piece
    names: dict[str, str]

    def given(self, expansion: eq.Expansion) -> dict[str, str]:
        """The name in the program of everything that an expansion of the piece is given."""
        return {name: self.names[true_name(name)] for name in expansion.inputs}

    @property
    def targets(self) -> dict[str, str]:
        """The name in the program of every tensor that the piece gives."""
        return {name: self.names[name] for name in self.piece.expansion.outputs}


def true_name(name: str) -> str:
    """The tensor that is meant where a group's own is given."""
    return name.removesuffix(_NOISE)


def units(graph: Graph, definitions: Definitions) -> Iterator[Unit]:
    """All units of a program, in an order in which each reads only what is there."""
    for node in graph.nodes:
        expansion = node.expansion(definitions)
        names = {name: key(node, name) for name in expansion.tensors}
        names.update(node.feeds())
        names.update(node.results())
        for piece in _pieces(expansion):
            yield Unit(node, piece, names)


def _pieces(expansion: eq.Expansion) -> tuple[Piece, ...]:
    """The pieces of a call, which its expansion remembers."""
    found = expansion.notes.get(__name__)
    if found is None:
        found = expansion.notes[__name__] = tuple(_made(expansion))
    pieces: tuple[Piece, ...] = found
    return pieces


def _made(expansion: eq.Expansion) -> Iterator[Piece]:
    there = set(expansion.inputs)
    pending = list(expansion.unspecified)
    for step in schedule(expansion.equations):
        group = step if isinstance(step, Recurrence) else None
        own = step.equations if isinstance(step, Recurrence) else (step,)
        whole = _expansion(own, expansion.tensors)
        targets = {e.target for e in own}
        there |= targets
        masks = tuple(m for m in pending if {m.target, *eq.reads(m.body)} <= there)
        pending = [mask for mask in pending if mask not in masks]
        alone = (whole,) if group is None else tuple(_given(e, targets, expansion) for e in own)
        yield Piece(whole, alone, group, masks)


def _expansion(
    equations: tuple[eq.Equation, ...], tensors: dict[str, eq.TensorInfo]
) -> eq.Expansion:
    targets = tuple(e.target for e in equations)
    read = {
        part.tensor: None
        for e in equations
        for part in eq.walk(e.body)
        if isinstance(part, (eq.Read, eq.Inside))
    }
    inputs = tuple(name for name in read if name not in targets)
    return eq.Expansion(
        inputs, targets, equations, {name: tensors[name] for name in (*inputs, *targets)}
    )


def _given(equation: eq.Equation, targets: set[str], expansion: eq.Expansion) -> eq.Expansion:
    """An equation of a group alone: of the group it reads what is given."""
    tensors = {**expansion.tensors, **{t + _NOISE: expansion.tensors[t] for t in targets}}

    def renamed(expr: eq.Expr) -> eq.Expr:
        expr = eq.rebuild(expr, renamed)
        if isinstance(expr, (eq.Read, eq.Inside)) and expr.tensor in targets:
            return replace(expr, tensor=expr.tensor + _NOISE)
        return expr

    return _expansion((replace(equation, body=renamed(equation.body)),), tensors)


def disturbed(piece: Piece) -> eq.Expansion:
    """A piece whose real tensors have something added to each element, given as `TENSOR~`."""
    if "disturbed" not in piece.notes:
        piece.notes["disturbed"] = _disturbed(piece.expansion)
    found: eq.Expansion = piece.notes["disturbed"]
    return found


def _disturbed(expansion: eq.Expansion) -> eq.Expansion:
    tensors = dict(expansion.tensors)
    equations = []
    for e in expansion.equations:
        if e.info.kind == "real":
            added = e.target + _NOISE
            tensors[added] = e.info
            noise = eq.Read(added, tuple(eq.Index(name) for name, _ in e.binders))
            e = replace(e, body=eq.Apply("+", (e.body, noise)))
        equations.append(e)
    inputs = (*expansion.inputs, *(n for n in tensors if n not in expansion.tensors))
    return eq.Expansion(inputs, expansion.outputs, tuple(equations), tensors)
