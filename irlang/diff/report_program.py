"""The program of a finding that its reports show: the one that a target was given."""

from __future__ import annotations

from irlang.diff.found import Found
from irlang.diff.handed import own_program
from irlang.lower.lower import Lowered, lower


def program_of(found: Found, target: str) -> Lowered | None:
    """The forward program; None where the target cannot run it.

    Of an invalid call it is the target's own operator alone, which tensors without elements and
    numbers beyond all sizes are handed to, too: what a definition is lowered to is not at fault.
    """
    case = found.reduced
    if found.fault:
        return own_program(case.graph, target, case.catalog, case.manner)
    lowered = lower(case.graph, target, case.catalog, case.params, manner=case.manner)
    return None if lowered.unsupported else lowered
