"""The first meaning: sizes, element types, and every violated precondition of a file.

Takes a syntax tree; gives one `Graph` a valid model, and all diagnostics. A value that a fault
leaves unknown silences what depends on it, so that no fault is a cascade of another. Symbolic
sizes that nobody binds are taken as 2. Non-goal: what depends on the values of elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import Diagnostic, Note, Span
from irlang.graph import Graph
from irlang.interp.definition import block_faults, definition_faults, function_faults
from irlang.interp.model import ModelCheck
from irlang.interp.operation import FileScope


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that has been checked: its valid models, and what is wrong with the others."""

    graphs: tuple[Graph, ...]
    diagnostics: tuple[Diagnostic, ...]
    catalog: Catalog

    @property
    def valid(self) -> bool:
        """Whether nothing is an error."""
        return not any(d.severity == "error" for d in self.diagnostics)


def check(file: ast.File, catalog: Catalog, bind: Mapping[str, int] | None = None) -> Checked:
    """Checks every definition and every model of a file, with its definitions over the catalogue.

    bind: symbolic sizes by name.
    """
    own = catalog.with_file(file)
    diagnostics = _duplicates(file)
    broken: set[str] = set()
    shared = function_faults(file.functions, own)
    diagnostics += shared
    told = {(d.code, d.span) for d in shared}
    for name in dict.fromkeys(op.name for op in file.ops):
        op = own.op(name)
        assert op is not None
        faults = definition_faults(op, own)
        diagnostics += (d for d in faults if (d.code, d.span) not in told)
        broken |= {name} if faults else set()
    whole = FileScope(file, own, _with_users(file, broken))
    diagnostics += whole.diagnostics
    graphs = []
    entered: set[str] = set()
    for model in file.models:
        checker = ModelCheck(whole, dict(bind or {}))
        graph = checker.model(model)
        diagnostics += checker.diagnostics
        entered |= checker.entered
        if not any(d.severity == "error" for d in checker.diagnostics):
            graphs.append(graph)
            if not any(d.severity == "error" for d in diagnostics):
                diagnostics += _unused(graph)  # what uses it may be what is at fault
    for block in file.blocks:
        if block.name not in entered:  # what is called is checked where it is called
            diagnostics += block_faults(block, own, whole.blocks, whole.root.names)
    return Checked(tuple(graphs), tuple(dict.fromkeys(diagnostics)), own)


def _duplicates(file: ast.File) -> list[Diagnostic]:
    seen: dict[str, Span] = {}
    found = []
    for item in file.items:
        if item.name in seen:
            message = f"`{item.name}` is defined twice in this file"
            notes = (Note("first here", seen[item.name]),)
            found.append(Diagnostic("model.duplicate", message, item.span, notes=notes))
        seen.setdefault(item.name, item.span)
    return found


def _with_users(file: ast.File, broken: set[str]) -> set[str]:
    """The definitions that are at fault, and those that use them."""
    uses = {
        op.name: {
            node.function
            for statement in op.body
            if isinstance(statement, ast.Assign)
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
        }
        for op in file.ops
    }
    found = set(broken)
    while more := {name for name, used in uses.items() if used & found} - found:
        found |= more
    return found


def _unused(graph: Graph) -> list[Diagnostic]:
    """Parameters that nothing reads: not wrong, but hardly meant."""
    read = {name for node in graph.nodes for name in node.operands()}
    read |= set(graph.outputs.values())
    found = []
    for name, param in graph.params.items():
        if name not in read and not param.literal:
            message = f"the parameter `{name}` is not used"
            found.append(
                Diagnostic("param.unused", message, param.span, severity="warning", node=name)
            )
    return found
