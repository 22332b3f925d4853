"""Invalid programs: a target that runs one, and says nothing, has accepted it.

A campaign runs spoilt calls (`irlang.gen.spoil`) beside its programs. Only what reaches a target's
own operator as it is tells anything (`irlang.lower.direct`); a requirement that a target documents
to be wider is noted in its table (`irlang.lower.call.Native.admits`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.verdict import Verdict
from irlang.gen.moves import SetAttr
from irlang.gen.spoil import Spoilt, spoilt
from irlang.graph import Graph
from irlang.interp.values import inputs
from irlang.lower.admits import admitted
from irlang.lower.direct import is_direct, numbers, says
from irlang.lower.lower import Lowered, lower
from irlang.lower.pool import Program, WorkerError
from irlang.scope import show

if TYPE_CHECKING:
    from irlang.diff.runner import Session

Array = np.ndarray[Any, np.dtype[Any]]

# What a rule for valid calls may raise on an invalid one, which says nothing of the target.
_LOST = (ArithmeticError, AssertionError, InvalidInput, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Accepted:
    """An invalid call that a target has run.

    given: what was changed to spoil it. got: the results. others: what other targets did.
    """

    case: Case
    target: str
    verdict: Verdict
    given: dict[str, str]
    got: dict[str, Array]
    others: dict[str, str]


def judge_invalid(
    session: Session, catalog: Catalog, seeds: Sequence[int], ops: Sequence[str]
) -> tuple[list[tuple[int, Accepted]], dict[str, Counter[str]]]:
    """Runs the spoilt call of every seed; gives what was accepted, and counts by target."""
    found: list[tuple[int, Accepted]] = []
    counts = {target: Counter[str]() for target in session.targets}
    spoiled = [(seed, one) for seed in seeds if (one := spoilt(catalog, seed, ops)) is not None]
    cases = [Case(one.graph, inputs(one.graph, seed), {}, catalog) for seed, one in spoiled]
    said: list[dict[str, str]] = [{} for _ in spoiled]
    got: dict[tuple[int, str], dict[str, Array]] = {}
    for target, worker in session.workers.items():
        if session.shares[target] > 1:
            continue  # what compiles says the same as what it compiles
        programs, sent = [], []
        for number, ((_, one), case) in enumerate(zip(spoiled, cases, strict=True)):
            lowered = _handed_over(one, target, catalog)
            if lowered is not None:
                programs.append(Program(lowered.kind, lowered.code, case.inputs, lowered.params))
                sent.append(number)
        worker.send(programs)
        try:
            ran = worker.collect()
        except WorkerError:
            continue  # the campaign's own programs say so, with the worker's last words
        for number, result in zip(sent, ran, strict=True):
            accepted = result.status == "ok"
            said[number][target] = "accepted" if accepted else "refused"
            counts[target][said[number][target]] += 1
            got[number, target] = dict(result.outputs)
    for number, ((seed, one), case) in enumerate(zip(spoiled, cases, strict=True)):
        verdicts = said[number]
        for target in (t for t, verdict in verdicts.items() if verdict == "accepted"):
            name = next(iter(case.graph.outputs))
            verdict = Verdict(name, target, "accepted", message=one.fault.message)
            others = {t: v for t, v in verdicts.items() if t != target}
            results = got[number, target]
            found.append((seed, Accepted(case, target, verdict, _given(one), results, others)))
    return found, counts


def _handed_over(one: Spoilt, target: str, catalog: Catalog) -> Lowered | None:
    """The program of a spoilt call; None where it says nothing of the target."""
    lowered = _lowered(one.graph, target, catalog)
    if lowered is None or not is_direct(lowered):
        return None
    if admitted(target, one.graph.nodes[0].op.name, one.fault.code):
        return None
    if isinstance(one.changed, SetAttr) and not _numbers(one.changed.value) <= numbers(lowered):
        return None  # what is computed from it is given instead
    text = says(lowered)
    for graph in one.beside:
        other = _lowered(graph, target, catalog)
        if other is not None and says(other) == text:
            return None
    return lowered


def _lowered(graph: Graph, target: str, catalog: Catalog) -> Lowered | None:
    try:
        lowered = lower(graph, target, catalog, {})
    except _LOST:
        return None
    return lowered if lowered.native and not lowered.unsupported else None


def _numbers(value: Any) -> frozenset[float]:
    """The numbers of an attribute, in single precision."""
    several = value if isinstance(value, tuple) else (value,)
    return frozenset(float(np.float32(n)) for n in several if isinstance(n, (int, float)))


def _given(one: Spoilt) -> dict[str, str]:
    move = one.changed
    return {move.name: show(move.value) if isinstance(move, SetAttr) else str(move.info)}
