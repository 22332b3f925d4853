"""What an invalid call breaks, and by what: whereby it is known again, and passed over where others
that break the same have ended a process, or were not answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irlang.diff.answers import is_beyond
from irlang.gen.changes import SetElements, way_of
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.spoilt import Spoilt
from irlang.scope import show

if TYPE_CHECKING:
    from irlang.diff.seen import Symptom

# Faults that have ended this process's workers, and the ways: each costs two starts of a framework,
# and one that takes all of their time costs that.
_FATAL: set[tuple[str, str, str]] = set()
# Targets, and what they have not answered: numbers of a kind of one fault, or what is beyond all
# sizes of one operator. Others hang as well, and each takes all of its time.
_SILENT: set[tuple[str, str]] = set()
_OF = " of "  # between functions, and the ways that calls of them are spoilt in
_ENDS = 3  # ways of one fault that may end a process, until it is passed over


def symptom_of_breach(target: str, one: Spoilt, told: str, functions: str = "") -> Symptom:
    """What is known of an invalid call that was not refused: what it breaks, by what, and what came
    of it. One that is accepted in two axes may end a process in three; a target that broadcasts one
    axis of an input may read beyond the end of another. functions: of the target that it is handed
    to: one may end a process where another that has the same operator did.
    """
    way = _way(one, functions) if told == "crash" else one.fault.size
    operator, changed = one.graph.nodes[0].op.name, " ".join(sorted(given_of(one)))
    return target, told, operator, requirement_of(one), changed, way


def remember(target: str, one: Spoilt, status: str, functions: str = "") -> None:
    """Keeps in mind that a call has ended a target's process, or that it was not answered.

    status: "crash" or "timeout". functions: as of `symptom_of_breach`.
    """
    if status == "timeout":
        _SILENT.add((target, _silence(one)))
    _FATAL.add((target, one.fault.code, _way(one, functions)))


def _way(one: Spoilt, functions: str) -> str:
    """In what ways that break one requirement differ, so that one may end a process where another
    is accepted: by the target's functions, the number of axes, and what kind of number it is.
    """
    ranks = [len(port.info.shape) for port in one.graph.inputs.values()]
    kind = way_of(one.changed)[2:] if isinstance(one.changed, SetAttr) else ()
    return f"{functions}{_OF}{' '.join(map(str, (*ranks, *kind)))}"


def is_told(symptom: Symptom, before: set[Symptom]) -> bool:
    """Whether the end of a process has been told of, in whatever ways the same functions had it."""
    functions = symptom[5].partition(_OF)[0]
    return any(
        known[:5] == symptom[:5] and known[5].partition(_OF)[0] == functions for known in before
    )


def has_ended(target: str, one: Spoilt, before: set[Symptom], functions: str = "") -> bool:
    """Whether a spoilt call need not be run, as others that break the same have ended processes."""
    if (target, _silence(one)) in _SILENT:
        return True
    fatal = {way for name, code, way in _FATAL if (name, code) == (target, one.fault.code)}
    return (
        symptom_of_breach(target, one, "crash", functions) in before
        or _way(one, functions) in fatal
        or len(fatal) >= _ENDS
    )


def _silence(one: Spoilt) -> str:
    """What a spoilt call shares with others that a target takes as long over."""
    if is_beyond(one):
        return one.graph.nodes[0].op.name
    kind = way_of(one.changed)[2:] if isinstance(one.changed, SetAttr) else ()
    return " ".join(map(str, (one.fault.code, *kind)))


def requirement_of(one: Spoilt) -> str:
    """The name of what a spoilt call breaks; `sizes` where that is what its signature says of the
    axes of an input, be it their sizes or their number.
    """
    return "sizes" if subject_of(one) else one.fault.code.partition(".")[2]


def subject_of(one: Spoilt) -> str:
    """The input whose axes are not what the signature says, which may be another than the one that
    was changed: where a target has one axis and x two, either is one too many or too few.
    """
    formal, _, which = one.fault.code.partition(".")[2].partition(".")
    of_axes = isinstance(one.changed, Retype) and which in ("", "rank")
    return formal if of_axes and formal in one.graph.nodes[0].inputs else ""


def given_of(one: Spoilt) -> dict[str, str]:
    """What was changed to spoil a call, by the name of the operand or attribute, as text."""
    move = one.changed
    if isinstance(move, SetElements):
        return {name: show(value) for name, value in move.values}
    return {move.name: str(move.info) if isinstance(move, Retype) else show(move.value)}
