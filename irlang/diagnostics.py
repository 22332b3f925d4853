"""What is wrong with a user's input, as data: one type, many renderers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


class Span(NamedTuple):
    """A place in a file; lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


NOWHERE = Span("", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Edit:
    """A suggested replacement of the text at `span`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on another place that explains a diagnostic."""

    message: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault of the input.

    code: the name of the rule, `conv.channels` for the precondition `channels` of `conv`.
    badness: how far the condition is from holding (0 is valid); falls as a repair gets closer.
    node: the statement or value at fault, by its name in the program.
    label: what is written under the caret; help: the way out, in words.
    """

    code: str
    message: str
    span: Span = NOWHERE
    severity: str = "error"
    node: str = ""
    badness: float = 1.0
    label: str = ""
    help: str = ""
    notes: tuple[Note, ...] = ()
    edits: tuple[Edit, ...] = ()

    def at(self, span: Span, node: str = "") -> Diagnostic:
        """The same fault, placed at `span` (of the statement `node`)."""
        return replace(self, span=span, node=node or self.node)


class InvalidInput(Exception):
    """Raised where work cannot go on; carries the diagnostics to show."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


def fail(code: str, message: str, span: Span = NOWHERE, *, help: str = "") -> InvalidInput:
    """The exception for a single fault."""
    return InvalidInput(Diagnostic(code, message, span, help=help))
