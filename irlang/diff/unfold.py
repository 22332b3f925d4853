"""A call that a target composes, as the calls that it is composed of.

Where a target has no operator of its own, its program is written from several, and one of those may
be what is wrong. The program is read back from ONNX, in which every target's compositions can be
written down; what comes out is a program like any other, to be localised and reduced.
"""

from __future__ import annotations

from dataclasses import replace

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.gradients import ask
from irlang.diff.weighing import bare, weighed, weights
from irlang.graph import Graph
from irlang.importers import onnx_file, onnx_model
from irlang.importers.files import Imported
from irlang.interp.shape import check
from irlang.interp.values import initial_values
from irlang.lower.direct import is_direct, operators, signs
from irlang.lower.lower import Lowered, lower
from irlang.lower.target import describe
from irlang.parser import parse

_VIA = "onnxruntime"  # whose programs can be read back


def is_composed(case: Case, target: str) -> bool:
    """Whether a target's program of a case is more than one operator of its own."""
    lowered = lower(case.graph, target, case.catalog, case.params, manner=case.manner)
    return not lowered.unsupported and not is_direct(lowered, shaped=True)


def called(case: Case, target: str) -> set[str]:
    """The target's own operators that a case is written in, but for a loss that was added."""
    lowered = lower(bare(case.graph), target, case.catalog, case.params, manner=case.manner)
    return {*operators(lowered), *signs(lowered)}


def unfolded(case: Case, target: str) -> Case | None:
    """The case in other operators; None where ONNX cannot write it, or it is the same again.

    For a runtime of ONNX models these are the very operators that it ran. For others they are
    those that follow from the definition.
    """
    via = _via(target)
    native = via == target
    return _read_back(
        case, lower(case.graph, via, case.catalog, case.params, native=native, manner=case.manner)
    )


def unfolded_gradient(case: Case, target: str) -> Case | None:
    """The case and its gradients in the operators that a target computed them by; None of a target
    that differentiates by itself, or whose programs cannot be read back.
    """
    asked, via = ask(case.graph, target, case), _via(target)
    if not asked.slopes:
        return None
    return _read_back(case, (asked if via == target else ask(case.graph, via, case)).lowered)


def unfolded_with_loss(case: Case, target: str) -> Case | None:
    """The case in other operators for a target that differentiates by itself, which finds the
    gradient by theirs; None of one that does not, where the loss is not a sum that was added, or
    one of what no call gives, and where ONNX cannot write it.
    """
    if ask(case.graph, target, case).slopes:
        return None
    weighed_by = weights(case.graph)
    if not weighed_by.keys() <= {name for node in case.graph.nodes for name in node.outputs}:
        return None
    forward = replace(
        case, graph=replace(bare(case.graph), outputs={value: value for value in weighed_by})
    )
    model = lower(forward.graph, _VIA, case.catalog, case.params, native=False, manner=case.manner)
    made = _read_back(forward, model, least=1) if weighed_by else None
    if made is None:
        return None
    results = [made.graph.outputs[value] for value in weighed_by]
    graph, catalog = weighed(made.graph, case.catalog, results)
    added = list(graph.inputs)[len(made.graph.inputs) :]
    factors = {name: case.inputs[own] for name, own in zip(added, weighed_by.values(), strict=True)}
    return replace(made, graph=graph, catalog=catalog, inputs={**made.inputs, **factors})


def _via(target: str) -> str:
    return target if describe(target).framework == _VIA else _VIA


def _read_back(case: Case, model: Lowered, least: int = 2) -> Case | None:
    """least: as how many calls at least."""
    if model.unsupported or not isinstance(model.code, bytes):
        return None
    try:
        proto = onnx_file.message(model.code, case.graph.name)
        read = onnx_model.translate(proto, None, "parameters", catalog=case.catalog)
        graph = _checked(Imported(read.text, read.writer), case.catalog)
    except InvalidInput:
        return None
    names = {name: read.writer.original(name) for name in (*graph.inputs, *graph.params)}
    if not set(case.values).issuperset(names[name] for name in graph.inputs):
        return None
    inputs = {name: case.values[names[name]] for name in graph.inputs}
    params = initial_values(graph, 0)
    made = Case(graph, inputs, params, case.catalog, edge=case.edge, manner=case.manner)
    before, after = ([n.op.name for n in one.graph.nodes] for one in (case, made))
    return made if len(after) >= least and before != after else None


def _checked(read: Imported, catalog: Catalog) -> Graph:
    """The one model of an importer's text. Raises `InvalidInput` where it has faults."""
    found = check(parse(read.text), catalog)
    errors = [d for d in found.diagnostics if d.severity == "error"]
    if errors or not found.graphs:
        raise InvalidInput(*errors)
    graph = found.graphs[0]
    read.fill(graph)
    return graph
