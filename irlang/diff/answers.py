"""What a target says of an invalid call: it refuses it, takes it, warns of it, ends or stays away.

What is taken is run a second time, in a process that has run nothing else: refused there, it is
`unconfirmed`, as what a process has run before may be what makes it take a call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.diff.calls import Case
from irlang.gen.changes import SetElements, is_huge
from irlang.gen.spoilt import Spoilt
from irlang.lower.lower import Lowered
from irlang.lower.pool import Limits, Program, Result, Worker, WorkerError

Array = np.ndarray[Any, np.dtype[Any]]

PATIENCE = Limits(seconds=2.0, memory=2 << 30)  # what a target may take to say no
_TOLD = {"ok": "accepted", "crash": "crash", "timeout": "timeout"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A spoilt call that a target is asked for.

    number: which one. direct: whether something follows from its being run. huge: whether it asks
    for a number beyond all sizes. real: whether elements that are not whole numbers are the matter,
    of which a target may say by NaN, or what is infinite, that they have no value.
    """

    number: int
    program: Program
    direct: bool
    huge: bool
    real: bool = False


def is_beyond(one: Spoilt) -> bool:
    """Whether a spoilt call asks for a number beyond all sizes."""
    return not isinstance(one.changed, SetElements) and is_huge(one.changed)


def is_of_reals(one: Spoilt) -> bool:
    """Whether elements of a tensor of reals were changed."""
    if not isinstance(one.changed, SetElements):
        return False
    return any(one.graph.values[name].kind == "real" for name, _ in one.changed.values)


def words_of(worker: Worker, heard: Sequence[tuple[Sent, Result]]) -> list[str]:
    """What each result says; `accepted` of what is run twice without a word, else `unconfirmed`, or
    `warned`. What takes its time over a number beyond all sizes is `late`: it does as it was told.
    """
    told = [word_of(asked, result) for asked, result in heard]
    places = [place for place, one in enumerate(told) if one == "accepted"]
    again = run_again(worker, [heard[place][0].program for place in places])
    for place, result in zip(places, again, strict=True):
        if result is None or result.status != "ok":
            told[place] = "unconfirmed"
        else:
            told[place] = word_of(heard[place][0], result)
    for place in (place for place, one in enumerate(told) if one == "timeout"):
        if heard[place][0].huge:
            told[place] = "late"
        elif _in_its_own_time(worker, heard[place][0].program) != "timeout":
            told[place] = "unconfirmed"
    return told


def _in_its_own_time(worker: Worker, program: Program) -> str:
    """What comes of a program that may take as long as any other, in a process of its own."""
    try:
        with worker.fresh() as alone:
            return alone.submit([program])[0].status
    except WorkerError:
        return ""


def plain_word(result: Result) -> str:
    """What a result says that nothing is found by."""
    if result.status == "ok" and result.detail.get("warned"):
        return "warned"
    return _TOLD.get(result.status, "refused")


def word_of(asked: Sent, result: Result) -> str:
    """What a result says: `refused`, `accepted`, `warned`, `crash` or `timeout`."""
    if result.status == "ok":
        unsaid = asked.real and says_no_number(result)
        if unsaid or result.detail.get("warned"):
            return "warned"
    return _TOLD.get(result.status, "refused")


def says_nan(result: Result) -> bool:
    """Whether NaN is among what a target gives, which may pass for a refusal."""
    return any(map(_has_nan, result.outputs.values()))


def says_no_number(result: Result) -> bool:
    """Whether what a target gives is not finite throughout, as a reciprocal root of what is taken
    off to 0: who gives real numbers, and no valid ones, is told so.
    """
    reals = (array for array in result.outputs.values() if array.dtype.kind == "f")
    return any(not np.isfinite(array).all() for array in reals)


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def run_again(worker: Worker, programs: Sequence[Program]) -> list[Result | None]:
    """The results in processes that have run nothing before; None where there is no process."""
    found: list[Result | None] = [None] * len(programs)
    spare = worker.spare() if programs else None
    if spare is not None:
        with contextlib.suppress(WorkerError):  # not every framework survives a fork
            found = list(spare.submit(programs))
    for place, result in enumerate(found):
        if result is None or result.status not in ("ok", "refused"):
            with contextlib.suppress(WorkerError), worker.fresh() as alone:
                found[place] = alone.submit([programs[place]])[0]
    return found


def crashes_again(worker: Worker, lowered: Lowered | None, case: Case) -> bool:
    """Whether a spoilt call ends a process that has run nothing before, too."""
    assert lowered is not None  # it has been run
    (again,) = run_again(worker, [Program(lowered.kind, lowered.code, case.inputs, lowered.params)])
    return again is not None and again.status == "crash"
