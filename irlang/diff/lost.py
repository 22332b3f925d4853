"""Refusals that a mode has lost: of invalid calls that a framework refuses where it runs them
plainly, and takes where it compiles them.

To take a call is to compile it, several times. So what the framework takes without the mode, which
is nothing that the mode has lost, waits until every requirement has had its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.handed import Programs
from irlang.gen.spoil import breakable
from irlang.graph import Graph
from irlang.lower.lower import spelt
from irlang.lower.narrows import narrower
from irlang.lower.pool import Limits, Program

if TYPE_CHECKING:
    from irlang.diff.runner import Session


def is_early(session: Session, target: str, ops: Sequence[str], first: int | None) -> bool:
    """Whether spoilt calls are for a mode that compiles, and not every requirement has been broken
    by now. first: the number of these in their campaign. ops: as of `judge_invalid`.
    """
    if first is None or not (session.compiles[target] and session.plain[target]):
        return False
    names = ops or sorted({*builtin().names()} & spelt(target))
    return first < len(breakable(builtin(), names, narrower(target)))


def taken_plainly(
    session: Session,
    programs: Programs,
    target: str,
    graphs: Sequence[Graph],
    cases: Sequence[Case],
    limits: Limits,
) -> set[int]:
    """Which of some calls a mode's framework takes without it. limits: of each."""
    lowered = {n: programs.own(session.plain[target], one) for n, one in enumerate(graphs)}
    asked = {
        n: Program(made.kind, made.code, cases[n].inputs, made.params)
        for n, made in lowered.items()
        if made is not None
    }
    ran = session.ran_plainly(target, list(asked.values()), limits)
    return {n for n, result in zip(asked, ran, strict=True) if result.status == "ok"}
