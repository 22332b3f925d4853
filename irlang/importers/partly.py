"""Models of which a part cannot be translated: the rest is written, as far as it goes.

What an operator without a translation gives is not there, nor is what is computed from that.
Whatever else is computed is then a result of the text, as nothing of it may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irlang.diagnostics import Diagnostic
from irlang.importers.writer import Writer

_CODE = "import.operator"  # of what is sound, and not translated


def may_be_left_out(problems: Sequence[Diagnostic]) -> bool:
    """Whether nothing is wrong with a model but that some of its operators are not translated."""
    return bool(problems) and all(problem.code == _CODE for problem in problems)


def left_out(problems: Sequence[Diagnostic], nodes: int) -> tuple[Diagnostic, ...]:
    """What is to be said of a part that is missing. nodes: how many are, all told."""
    said = [replace(problem, severity="warning") for problem in problems]
    all_told = f"{nodes} node{'s are' if nodes != 1 else ' is'} left out"
    said[-1] = replace(said[-1], help=f"{all_told}: such operators, and what is computed from them")
    return tuple(said)


def results(writer: Writer, outputs: Sequence[str]) -> list[str]:
    """The results that are there, and the values that nothing goes on to use."""
    return list(dict.fromkeys((*outputs, *writer.ends())))
