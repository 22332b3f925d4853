"""From the command line to a case: a model with the values of its inputs and parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irlang.commands.loading import load_inputs, load_model
from irlang.diagnostics import Diagnostic, InvalidInput, Span, fail

if TYPE_CHECKING:
    from irlang.diff.runner import Case, Session
    from irlang.graph import Graph
    from irlang.interp.values import Array


def load_case(
    file: str,
    given: Sequence[str],
    bind: Sequence[str],
    model: str | None,
    seed: int,
    grad: bool = False,
) -> Case:
    """The model of a file, or of a finding's folder. Inputs that are not given come from the file
    beside it, or are drawn, in the order that a definition wants. grad: whether gradients are asked
    for as well, which `require_names` is about; without a loss that is `usage.loss`.
    """
    from irlang.diff.reduce_files import is_edge, manner_of
    from irlang.diff.runner import Case
    from irlang.gen.lines import drawn

    arrays = load_inputs(given)
    file = _model_in(file)
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        graph, catalog = load_model(file, bind, model, shapes)
    except InvalidInput as error:
        raise InvalidInput(*error.diagnostics, *_on_purpose(Path(file))) from None
    if grad:
        if graph.loss is None:
            raise fail("usage.loss", "the model has no loss, so that there are no gradients")
        require_names(graph)
    known = {**_inputs_beside(file, graph), **arrays}
    values, params = drawn(graph, catalog, seed, known)
    path = Path(file)
    return Case(graph, values, params, catalog, edge=is_edge(path), manner=manner_of(path))


def _on_purpose(path: Path) -> list[Diagnostic]:
    """What a finding says whose model is invalid because that is what it is about."""
    from irlang.diff.reduce_files import is_invalid, target_of

    if not is_invalid(path):
        return []
    message = f"{target_of(path)} does not refuse this, which is the finding: nothing is compared"
    scripts = " or ".join(f"python {one}" for one in sorted(path.parent.glob("show_*.py")))
    help_ = f"{scripts} shows it" if scripts else "issue.md of its campaign tells of it"
    return [Diagnostic("finding.invalid", message, Span(str(path), 0, 0, 0, 0), help=help_)]


def targets_for(file: str, named: str | None) -> list[str]:
    """The targets that are named; else that of a finding, if it is one and is installed, and those
    that are usual.
    """
    from irlang.commands.loading import split_names
    from irlang.diff.reduce_files import target_of
    from irlang.lower.target import usual

    own = None if named else target_of(Path(_model_in(file)))
    own = own if own is not None and _is_installed(own) else None
    return split_names(named, ",".join((*([own] if own else []), *usual())))


def asks_gradients(file: str) -> bool:
    """Whether a file is of a finding in gradients, which are compared though nobody asks for it."""
    from irlang.diff.reduce_files import is_of_gradients

    return is_of_gradients(Path(_model_in(file)))


def _is_installed(target: str) -> bool:
    """Whether there is such a target; a line of a file may name anything."""
    from irlang.lower.target import describe

    try:
        return describe(target).installed
    except InvalidInput:
        return False


def _model_in(file: str) -> str:
    """The file of a finding's folder; any other name as it is."""
    finding = Path(file) / "finding.nnir"
    with contextlib.suppress(OSError):  # a name that is too long is told when it is read
        return str(finding) if finding.is_file() else file
    return file


def require_names(graph: Graph) -> None:
    """Raises `usage.names` where a result is called what the gradient by an input or a parameter
    is: one of both would be lost.
    """
    from irlang.graph import gradient_by

    for name in (*graph.inputs, *graph.params):
        if (gradient := gradient_by(name)) in graph.outputs:
            raise fail(
                "usage.names",
                f"the result `{gradient}` has the name of the gradient by `{name}`",
                help=f"rename the result, `{name}_d` for instance, or the input",
            )


def _inputs_beside(file: str, graph: Graph) -> dict[str, Array]:
    """The inputs in the safetensors file beside a model's, where there is one."""
    from irlang.diff.reduce_files import load_beside

    return {n: a for n, a in load_beside(Path(file)).items() if n in graph.inputs}


def disagreeing(session: Session, case: Case, grad: bool = False) -> tuple[str, Case] | None:
    """The first target that does not agree with the oracle, and the case in which it does not.

    That is the model, or the first of its calls that is wrong by itself where the radii of the
    whole hide it. Raises where the oracle refuses.
    """
    from irlang.diff.localise import isolate, localise
    from irlang.diff.reduce import is_finding, symptom
    from irlang.diff.stages import blamed_gradient

    session.versions()
    outcome = session.compare([case], grad=grad)[0]
    if outcome.refusal is not None:
        raise outcome.refusal
    for target in session.targets:
        if is_finding(seen := symptom(case, outcome, target)):
            return target, blamed_gradient(session, case, target)[1] if seen.backward else case
    for target in session.targets:
        culprit = localise(session.only(target), case, target)
        if culprit is not None:
            alone = isolate(case, culprit)
            (again,) = session.only(target).compare([alone])
            if is_finding(symptom(alone, again, target)):
                return target, alone
    return None
