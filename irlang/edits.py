"""Suggested edits applied to a text: what `irlang check --fix` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irlang.diagnostics import Diagnostic, Edit

_MOST_ROUNDS = 100

Check = Callable[[str], Sequence[Diagnostic]]


def apply(text: str, edits: Iterable[Edit]) -> str | None:
    """`text` with all `edits`, whose places are in `text`; None where two of them overlap."""
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)

    def offset(line: int, column: int) -> int | None:
        if not 1 <= line < len(lines) or not 1 <= column <= lines[line] - lines[line - 1]:
            return None
        return lines[line - 1] + column - 1

    changes = []
    for edit in edits:
        start = offset(edit.span.line, edit.span.column)
        end = offset(edit.span.end_line, edit.span.end_column)
        if start is None or end is None or end < start:
            return None
        changes.append((start, end, edit.text))
    changes.sort()
    pieces: list[str] = []
    position = 0
    for number, (start, end, new) in enumerate(changes):
        if start < position or (number and changes[number - 1][:2] == (start, end)):
            return None
        pieces += (text[position:start], new)
        position = end
    return "".join((*pieces, text[position:]))


def repair(text: str, check: Check) -> tuple[str, list[Diagnostic]]:
    """Apply the edits of one diagnostic after the other, as long as each makes `text` better.

    Gives the text and the diagnostics whose edits were applied; their places are in the text as it
    was at the time.
    """
    applied: list[Diagnostic] = []
    found = check(text)
    for _ in range(_MOST_ROUNDS):
        better = _one(text, found, check)
        if better is None:
            break
        diagnostic, text, found = better
        applied.append(diagnostic)
    return text, applied


def _one(
    text: str, found: Sequence[Diagnostic], check: Check
) -> tuple[Diagnostic, str, Sequence[Diagnostic]] | None:
    # From the end of the file, so that what is reported of earlier places keeps its lines.
    for diagnostic in sorted(found, key=lambda d: d.span, reverse=True):
        if not diagnostic.edits:
            continue
        changed = apply(text, diagnostic.edits)
        if changed is None or changed == text:
            continue
        after = check(changed)
        if _better(diagnostic, found, after):
            return diagnostic, changed, after
    return None


def _better(mended: Diagnostic, before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> bool:
    """Fewer syntax errors, or, as many, less badness; a syntax error may give way to a later one,
    because a statement shows its first error only.
    """
    syntax = len(_syntax(after)) - len(_syntax(before))
    if syntax or not mended.code.startswith("syntax."):
        return (syntax, _badness(after)) < (0, _badness(before))
    known = {(d.code, d.span) for d in before}
    new = [d for d in _syntax(after) if (d.code, d.span) not in known]
    return bool(new) and all(d.span > mended.span for d in new)


def _syntax(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [diagnostic for diagnostic in found if diagnostic.code.startswith("syntax.")]


def _badness(found: Sequence[Diagnostic]) -> float:
    return sum(diagnostic.badness for diagnostic in found if diagnostic.severity == "error")
