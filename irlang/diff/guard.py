"""A batch that ends in a fault of irlang's own: it costs that batch, and not the campaign.

What has been found in it before is kept. The fault is written down with its place, so that it can
be mended; `--resume` tries the batch again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irlang.diagnostics import InvalidInput
from irlang.diff.batch import close_sessions, run_batch
from irlang.diff.finding import Found
from irlang.diff.programs import Settings

_OWN = frozenset({"lower.contract"})  # diagnostics that speak of irlang and not of what it is given


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in a batch, with the calls that led there."""

    number: int
    text: str


def run_guarded(
    settings: Settings, number: int, told: Callable[[Found], None]
) -> dict[str, Any] | Fault:
    """The counts of a batch (`irlang.diff.batch.run_batch`), or the fault that ended it.

    Raises `InvalidInput` where something else than irlang is to blame, a full disk for example.
    """
    try:
        return run_batch(settings, number, told)[0]
    except Exception as error:
        if isinstance(error, InvalidInput) and error.diagnostics[0].code not in _OWN:
            raise
        text = traceback.format_exc()
    close_sessions()  # their workers may be in the middle of an answer
    return Fault(number, text)
