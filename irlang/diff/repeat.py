"""Whether a disagreement shows itself again, in a process that has run nothing else.

What a process has run before may be what spoils a number: memory that another program has left, or
a thread that was late. A maintainer who runs the script of such a finding sees nothing. So before a
finding is told, its reduced program is run once more; where it agrees then, the finding is kept and
says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.localise import localise
from irlang.diff.runner import Session
from irlang.diff.stages import gradient_by_calls
from irlang.diff.verdict import FINDINGS


def is_repeated(session: Session, case: Case, target: str, grad: bool) -> bool:
    """Whether a target is at fault again in a process that has run no other program.

    A fork of one that has imported the framework is asked first, as it costs least; where it does
    not show the fault a process is started for it, which nothing can have spoilt. grad: whether it
    is one of a gradient.
    """
    return any(_shows(alone, case, target, grad) for alone in _afresh(session, target))


def _afresh(session: Session, target: str) -> Iterator[Session]:
    """A target alone in processes that have run nothing, the cheapest first."""
    apart = session.apart(target)
    if apart is not None:
        yield apart
    with session.afresh(target) as alone:
        yield alone


def _shows(session: Session, case: Case, target: str, grad: bool) -> bool:
    """Whether the program disagrees, or a call of it by itself where its own radius hides that."""
    with contextlib.suppress(InvalidInput):  # not every framework survives a fork
        found = session.compare([case], grad=grad)[0].verdicts[target]
        if any(v.verdict in FINDINGS for v in found):
            return True
        if grad:
            return gradient_by_calls(session, case, target).start is not None
        return localise(session, case, target) is not None
    return False
