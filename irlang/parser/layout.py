"""Where to break long lines: text with marks, no syntax.

The printer writes one flat line with invisible marks (Unicode noncharacters, which no source may
contain): `SOFT` is a blank or a line break, `NONE` nothing or a line break; `FILL`, `ALIGN` and
`ALL` open a group, `END` closes it. A group that fits on its line stays there; else `FILL` breaks
where it must and `ALL` everywhere. Inside a group, lines are indented one step more than around it;
`ALIGN` is `FILL` without that.
"""

from __future__ import annotations

import re

WIDTH = 100
STEP = 4

SOFT, NONE, FILL, ALIGN, ALL, END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4", "\ufdd5"
_FLAT = str.maketrans({SOFT: " ", NONE: None, FILL: None, ALIGN: None, ALL: None, END: None})
_PIECES = re.compile(
    f"[{SOFT}{NONE}{FILL}{ALIGN}{ALL}{END}]|[^{SOFT}{NONE}{FILL}{ALIGN}{ALL}{END}]+"
)


def flat(marked: str) -> str:
    """All on one line."""
    return marked.translate(_FLAT)


def layout(marked: str, indent: int = 0) -> str:
    """Broken so that lines end before `WIDTH` where there is a mark to break at."""
    whole = flat(marked)
    if indent + len(whole) <= WIDTH:
        return whole
    pieces = _PIECES.findall(marked)
    to_mark, to_end = _lengths(pieces)
    out: list[str] = []
    column = indent
    # Of each open group: its kind ("" where it fits on its line) and its lines' indent.
    groups: list[tuple[str, int]] = [("", indent)]
    for position, piece in enumerate(pieces):
        if piece in (FILL, ALIGN, ALL):
            kind, deep = groups[-1]
            fits = kind == "" and len(groups) > 1
            fits = fits or column + to_end[position] <= WIDTH
            groups.append(("", deep) if fits else (piece, deep if piece == ALIGN else deep + STEP))
        elif piece == END:
            groups.pop()
        elif piece in (SOFT, NONE):
            kind, deep = groups[-1]
            blank = 1 if piece == SOFT else 0
            if kind == ALL or (
                kind in (FILL, ALIGN) and column + blank + to_mark[position] > WIDTH
            ):
                out.append("\n" + " " * deep)
                column = deep
            elif blank:
                out.append(" ")
                column += 1
        else:
            out.append(piece)
            column += len(piece)
    return re.sub(" +\n", "\n", "".join(out))


def _lengths(pieces: list[str]) -> tuple[list[int], list[int]]:
    """For each mark, the flat length of what follows: to the next mark of the same group (or of one
    around it), and to the end of the group that it opens together with what is glued to it.
    """
    count = len(pieces)
    to_mark, to_end = [0] * count, [0] * count
    before = [0] * (count + 1)
    for position, piece in enumerate(pieces):
        width = 1 if piece == SOFT else 0 if piece in (NONE, FILL, ALIGN, ALL, END) else len(piece)
        before[position + 1] = before[position] + width
    # The next mark at which a line may end, seen from each depth.
    breaks = [count]
    for position in range(count - 1, -1, -1):
        piece = pieces[position]
        if piece == END:
            breaks.append(breaks[-1])
        elif piece in (FILL, ALIGN, ALL):
            breaks.pop()
            to_end[position] = before[breaks[-1]] - before[position]
        elif piece in (SOFT, NONE):
            to_mark[position] = before[breaks[-1]] - before[position + 1]
            breaks[-1] = position
    return to_mark, to_end
