"""Small numeric faults in what a target is told, in whole programs of five to ten calls.

A target is handed other parameters than the oracle: a weight that is off by one part in 1e5 is what
a framework that computes with such a weight would give. Gradients are changed as they come back.

`python -m tests.planted_params [PROGRAMS [OPERATORS [TARGETS]]]` measures how many programs catch
each: by the verdict on the whole, or by that on one of its calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.catalog import builtin
from irlang.diff import gradients, runner
from irlang.diff.calls import Case
from irlang.diff.localise import localise
from irlang.diff.programs import fed
from irlang.diff.runner import Session
from irlang.diff.stages import gradient_by_calls
from irlang.diff.verdict import FINDINGS, gravest
from irlang.graph import Graph
from irlang.interp.program import precision
from irlang.lower.lower import Lowered, lower
from irlang.lower.pool import Result
from tests.planted_forward import LAYERS, drawn_graph

Array = np.ndarray[Any, np.dtype[Any]]
Edit = Callable[[Array], Array]

TARGETS = ("tf", "onnxruntime")
_SLOPE = "a gradient is off by 1e-4"
_TRIES = 400


@dataclass(frozen=True, slots=True)
class Roles:
    """What the operands of a definition are: of it, the weights; the first of them is what is
    summed over, along an axis; the bias; of a recurrent layer, what has its gates in rows.
    """

    weights: tuple[str, ...]
    last: int | None = None
    bias: str = ""
    gates: tuple[str, ...] = ()


ROLES = {
    "dense": Roles(("w",), 0, "b"),
    "conv": Roles(("w",), -1, "b"),
    "conv_transpose": Roles(("w",), 0, "b"),
    "depthwise_conv": Roles(("w",), -1, "b"),
    "matmul": Roles(("b",), -2),
    "embedding": Roles(("table",)),
    "batch_norm": Roles(("scale",), None, "bias"),
    "layer_norm": Roles(("gamma",), None, "beta"),
    "gru": Roles(("w",), -1, "b", ("w", "r", "b")),
    "lstm": Roles(("w",), -1, "b", ("w", "r", "b")),
}


def _off(array: Array) -> Array:
    return (array * (1 + 1e-5)).astype(array.dtype)


def _without_last(axis: int) -> Edit:
    def edit(array: Array) -> Array:
        changed = array.copy()
        np.moveaxis(changed, axis, 0)[-1:] = 0
        return changed

    return edit


def _swapped(array: Array) -> Array:
    return array[[1, 0, *range(2, len(array))]]


def edits(fault: str, roles: Roles) -> dict[str, Edit]:
    """What becomes of a layer's operands, by the definition's names; nothing where it has no such
    fault.
    """
    if fault == "a weight is off by 1e-5":
        return dict.fromkeys(roles.weights, _off)
    if fault == "the last term is not summed" and roles.last is not None:
        return {roles.weights[0]: _without_last(roles.last)}
    if fault == "the bias is dropped" and roles.bias:
        return {roles.bias: np.zeros_like}
    if fault == "two gates are swapped":
        return dict.fromkeys(roles.gates, _swapped)
    return {}


FAULTS = (
    "a weight is off by 1e-5", "the last term is not summed", "the bias is dropped",
    "two gates are swapped", _SLOPE,
)  # fmt: skip


def _changed(
    graph: Graph, params: Mapping[str, Array], operator: str, made: Mapping[str, Edit]
) -> dict[str, Array]:
    """The parameters that a fault changes."""
    found = {}
    for node in graph.nodes:
        if node.op.name == operator:
            for formal, value in node.feeds().items():
                if formal in made and value in params:
                    found[value] = made[formal](np.asarray(params[value]))
    return found


@contextmanager
def planted(fault: str, operator: str) -> Iterator[None]:
    """All targets have the fault meanwhile."""
    made = edits(fault, ROLES[operator])
    right, sort = vars(runner)["lower"], gradients.Asked.sort

    def wrong(
        graph: Graph, target: Any, catalog: Any, params: Mapping[str, Array], **options: Any
    ) -> Lowered:
        changed = {**params, **_changed(graph, params, operator, made)}
        return lower(graph, target, catalog, changed, **options)

    def scaled(asked: gradients.Asked, result: Result) -> None:
        sort(asked, result)
        for name, slope in result.gradients.items():
            result.gradients[name] = (np.asarray(slope) * (1 + 1e-4)).astype(slope.dtype)

    changes: list[tuple[Any, str, Any, Any]] = [
        (runner, "lower", wrong, right), (gradients, "lower", wrong, right)
    ]  # fmt: skip
    if fault == _SLOPE:
        changes = [(gradients.Asked, "sort", scaled, sort)]
    for holder, name, new, _ in changes:
        setattr(holder, name, new)
    try:
        yield
    finally:
        for holder, name, _, old in changes:
            setattr(holder, name, old)


def programs(fault: str, operator: str, session: Session, most: int) -> Iterator[Case]:
    """Programs in f32, which the generator draws, that hand the operator what the fault changes."""
    made = edits(fault, ROLES[operator])
    found = 0
    for seed in range(_TRIES):
        graph = drawn_graph(LAYERS[operator], seed)
        single = all(i.dtype == "f32" for i in graph.values.values() if i.kind == "real")
        there = any(node.op.name == operator for node in graph.nodes)
        if not there or not single or not 5 <= len(graph.nodes) <= 10:
            continue
        case = fed(graph, builtin(), seed, fault == _SLOPE, False, session.can_run)
        if case is None or precision(case.graph) != "f32":
            continue
        changed = _changed(case.graph, case.params, operator, made)
        if fault != _SLOPE and all(np.array_equal(a, case.params[n]) for n, a in changed.items()):
            continue
        found += 1
        yield case
        if found == most:
            return


Shown = dict[str, Array] | None


def _shown(session: Session, case: Case, target: str, grad: bool) -> Shown:
    """What a target gives for every value of a program; None where it does not run."""
    result = session.only(target).compare([case], exposed=not grad, grad=grad)[0].results[target]
    return {**result.outputs, **result.gradients} if result.status == "ok" else None


def _moved(right: Shown, wrong: Shown) -> bool:
    """Whether a fault shows in any number of a program: none can be caught that does not."""
    if right is None or wrong is None:
        return False
    return any(not np.array_equal(a, wrong[n], equal_nan=True) for n, a in right.items())


def caught(session: Session, case: Case, target: str, grad: bool) -> str:
    """How a fault is caught: by the verdict on the `whole`, on a `call`, or not at all."""
    verdicts = session.only(target).compare([case], grad=grad)[0].verdicts[target]
    if gravest([v.verdict for v in verdicts]) in FINDINGS:
        return "whole"
    only = session.only(target)
    if localise(only, case, target) is not None:
        return "call"
    return "call" if grad and gradient_by_calls(only, case, target).start is not None else ""


def measure(
    fault: str, operator: str, targets: Sequence[str], most: int
) -> dict[str, tuple[list[str], int]]:
    """By target, how each of some programs catches a fault, of those in which it moves a number,
    and how many have a verdict against them without it.
    """
    grad = fault == _SLOPE
    found: dict[str, tuple[list[str], int]] = {}
    with Session(list(targets)) as session:
        cases = list(programs(fault, operator, session, most))
        for target in targets:
            false = sum(bool(caught(session, case, target, grad)) for case in cases)
            before = [_shown(session, case, target, grad) for case in cases]
            with planted(fault, operator):
                after = [_shown(session, case, target, grad) for case in cases]
                there = [c for c, a, b in zip(cases, before, after, strict=True) if _moved(a, b)]
                found[target] = [caught(session, case, target, grad) for case in there], false
    return found


def main() -> None:
    """Prints a line for every fault of every operator on every target."""
    most = int(sys.argv[1]) if sys.argv[1:] else 10
    chosen = sys.argv[2].split(",") if sys.argv[2:] else ROLES
    targets = sys.argv[3].split(",") if sys.argv[3:] else TARGETS
    for fault in FAULTS:
        for name in chosen:
            if fault != _SLOPE and not edits(fault, ROLES[name]):
                continue
            for target, (found, false) in measure(fault, name, targets, most).items():
                whole, call = found.count("whole"), found.count("call")
                sys.stdout.write(
                    f"{fault:28} {name:15} {target:12} {whole + call:3} of {len(found):3}"
                    f"  whole {whole}  without it {false}\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
