"""Refusals that a mode has lost: of invalid calls that a framework refuses where it runs them
plainly, and takes where it compiles them, or infers their shapes.

To take a call is to compile it, several times. So what the framework takes without the mode, which
is nothing that the mode has lost, waits until every requirement has had its turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.handed import Programs
from irlang.diff.verdict import only_shapes
from irlang.gen.spoil import breakable
from irlang.graph import Graph
from irlang.lower.lower import spelt
from irlang.lower.narrows import narrower
from irlang.lower.pool import Limits, Program, Result

if TYPE_CHECKING:
    from irlang.diff.runner import Session


def is_early(target: str, ops: Sequence[str], first: int | None) -> bool:
    """Whether not every requirement has been broken by the time of some spoilt calls. first: the
    number of these in their campaign. ops: as of `judge_invalid`.
    """
    names = ops or sorted({*builtin().names()} & spelt(target))
    return first is not None and first < len(breakable(builtin(), names, narrower(target)))


def plain_of(session: Session, target: str) -> str:
    """The target that is asked first, as it runs a framework without the target's mode; empty where
    that is no mode which compiles, or infers shapes alone.
    """
    asks = session.compiles[target] or only_shapes(target)
    return session.plain[target] if asks else ""


def told_by(
    mode: str,
    session: Session,
    programs: Programs,
    target: str,
    graphs: Mapping[int, Graph],
    cases: Sequence[Case],
    limits: Limits,
) -> dict[int, Result]:
    """What becomes of some calls in another mode of a target's framework, by their numbers; nothing
    where no mode is named. cases: by number, of these and others. limits: of each.
    """
    lowered = {n: programs.own(mode, one) for n, one in graphs.items()} if mode else {}
    asked = {
        n: Program(made.kind, made.code, cases[n].inputs, made.params)
        for n, made in lowered.items()
        if made is not None
    }
    ran = session.ran_as(mode, target, list(asked.values()), limits) if asked else []
    return dict(zip(asked, ran, strict=True))
