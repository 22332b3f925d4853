"""A gradient that runs across several targets: its program, and its calls one by one.

The calls of a gradient are those of the model and, after these, one for the gradient of each. A
target that differentiates by itself is asked for the gradient of the call with a loss of its own;
one that does not runs the adjoint equations of the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from irlang.adjoint_graph import PREFIX, Pullback, gradient_graph, prepare
from irlang.diff.calls import Array, Case
from irlang.diff.gradients import with_loss_shown
from irlang.diff.isolate_gradient import isolate_gradient
from irlang.diff.localise import plain_name
from irlang.diff.runner import Session, program
from irlang.graph import Node
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, precision
from irlang.lower.lower import lower


def differentiated(session: Session, case: Case, target: str) -> Case:
    """The case with the calls of its gradient, and what the oracle says of all results.

    Raises `InvalidInput` where a precondition on values fails.
    """
    graph = with_loss_shown(case.graph)
    made = gradient_graph(prepare(graph, case.catalog))
    dtype, own = precision(graph), session.arithmetic[target]
    known = balls(graph, case.values, case.catalog, dtype, own)
    slopes = gradient_balls(graph, case.values, case.catalog, known, arithmetic=own)
    known |= {made.cotangents[name]: ball for name, ball in slopes.items()}
    return replace(case, graph=made.graph, balls=known)


def owner(node: Node) -> Node | None:
    """The call of the model whose value or gradient a call is; None for what is only added up."""
    return node.forward if isinstance(node, Pullback) else node


def pulled(
    session: Session, case: Case, target: str, node: Pullback, states: Sequence[Mapping[str, Array]]
) -> list[list[Array] | str] | None:
    """What flows back through a call on a target, for every state of what it is fed.

    None where the target does not differentiate it by itself.
    """
    fed = [{name: state[name] for name in node.operands()} for state in states]
    alone = [isolate_gradient(case, node, given) for given in fed]
    programs = []
    for one in alone:
        if one is None:
            return None
        lowered = lower(one.graph, target, one.catalog, one.params, grad=True, manner=one.manner)
        if not lowered.gradients:
            return None
        programs.append((lowered, program(lowered, one, grad=True)))
    found: list[list[Array] | str] = []
    results = session.workers[target].submit([sent for _, sent in programs])
    for (lowered, _), result in zip(programs, results, strict=True):
        wanted = _operands(node)
        if result.status != "ok":
            found.append(result.status)
        elif any(name in lowered.constant for name in wanted):
            found.append("unsupported")
        else:
            found.append(_parts(wanted, result.gradients))
    return found


def _operands(node: Pullback) -> list[str]:
    """The input of the call alone that each result of its adjoint is the gradient by."""
    assert node.forward is not None
    feeds = node.forward.feeds()
    return [plain_name(feeds[name.removeprefix(PREFIX)]) for name in node.equations.outputs]


def _parts(names: list[str], gradients: Mapping[str, Array]) -> list[Array]:
    """A gradient for every name; where an operand stands twice, all of it is the first's."""
    return [
        np.zeros_like(gradients[name]) if name in names[:place] else np.asarray(gradients[name])
        for place, name in enumerate(names)
    ]
