"""A batch that ends in a fault of irlang's own: it costs that batch, and not the campaign.

What has been found in it before is kept. The fault is written down with its place, so that it can
be mended; `--resume` tries the batch again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irlang.diagnostics import InvalidInput
from irlang.diff.batch import close_sessions, run_batch
from irlang.diff.found import Found
from irlang.diff.programs import Settings
from irlang.diff.report_folder import write

# Diagnostics that speak of what irlang has made by itself: the programs of a campaign are its own.
_OWN = ("lower.contract", "definition.")


def _is_own(error: Exception) -> bool:
    """Whether an error is a fault of irlang's own, and not of what it was given."""
    return not isinstance(error, InvalidInput) or error.diagnostics[0].code.startswith(_OWN)


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in a batch, or in writing a finding, with the calls that led there.

    number: the batch's; or the name of the finding.
    """

    number: int | str
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
        if not _is_own(error):
            raise
        text = traceback.format_exc()
    close_sessions()  # their workers may be in the middle of an answer
    return Fault(number, text)


def write_guarded(found: Found, folder: Path) -> dict[str, Any] | Fault:
    """The entry of a finding that is written into a folder of its name
    (`irlang.diff.report_folder.write`), or the fault that this ended in.

    Raises `InvalidInput` as `run_guarded`.
    """
    try:
        return write(found, folder, folder.name)
    except Exception as error:
        if not _is_own(error):
            raise
        return Fault(folder.name, traceback.format_exc())
