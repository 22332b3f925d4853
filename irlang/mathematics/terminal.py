"""Mathematics for a terminal: Unicode in two dimensions, bounds under sums, cases in braces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irlang.mathematics.form import (
    Big,
    Cases,
    Element,
    Fence,
    Form,
    Fraction,
    Line,
    Mathematics,
    Noted,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Symbol,
    Tilde,
    Words,
    lines,
    listed,
    row,
)
from irlang.mathematics.letters import bold, lowered, raised

WIDTH = 96


@dataclass(frozen=True, slots=True)
class Box:
    """Lines of equal width; `base` is the number of the one that is written on."""

    lines: tuple[str, ...]
    base: int = 0

    @property
    def width(self) -> int:
        """How many columns it takes."""
        return len(self.lines[0])

    @property
    def height(self) -> int:
        """How many lines it takes."""
        return len(self.lines)


# Fences by their pieces: alone, top, middle, bottom.
_TALL = {
    "(": ("(", "⎛", "⎜", "⎝"), ")": (")", "⎞", "⎟", "⎠"), "[": ("[", "⎡", "⎢", "⎣"),
    "]": ("]", "⎤", "⎥", "⎦"), "|": ("│", "│", "│", "│"), "⌊": ("⌊", "⎢", "⎢", "⎣"),
    "⌋": ("⌋", "⎥", "⎥", "⎦"), "⌈": ("⌈", "⎡", "⎢", "⎢"), "⌉": ("⌉", "⎤", "⎥", "⎥"),
    "{": ("{", "⎧", "⎪", "⎩"), "}": ("}", "⎫", "⎪", "⎭"),
}  # fmt: skip
_POINT = {"{": "⎨", "}": "⎬"}


def text(mathematics: Mathematics) -> str:
    """The whole, for people to read."""
    parts = ["\n".join(_typed(line) for line in mathematics.types)]
    parts += [_line(line) for line in mathematics.equations]
    if mathematics.where:
        parts.append("where\n\n" + "\n\n".join(_line(line, "  ") for line in mathematics.where))
    parts += [_remark(remark) for remark in mathematics.remarks]
    return "\n\n".join(part for part in parts if part)


def _typed(line: Line) -> str:
    over = [] if line.over is None else [_text("   ("), _box(line.over), _text(")")]
    box = _beside(_box(line.left), _text(f" {line.relation} "), _box(line.right), *over)
    return "\n".join(text.rstrip() for text in box.lines)


def _remark(form: Form) -> str:
    """A sentence; what follows its words is on lines of its own where it is long."""
    pieces = [form]
    if _box(form).width > WIDTH and isinstance(form, Row):
        last = max(n for n, part in enumerate(form.parts) if _begins_condition(part))
        pieces = [row(*form.parts[: last + 1])]
        pieces += lines(row(*form.parts[last + 1 :]), WIDTH, lambda part: _box(part).width)
    printed = [_printed(piece) for piece in pieces]
    return "\n".join(
        (f"    {line}" if n else line).rstrip() for n, part in enumerate(printed) for line in part
    )


def _begins_condition(part: Form) -> bool:
    return isinstance(part, Words) and part.text.endswith((" if ", ": "))


def _printed(form: Form) -> list[str]:
    return [line.rstrip() for line in _box(form).lines]


def _line(line: Line, indent: str = "") -> str:
    """`left = right`, on as many lines of mathematics as it needs."""
    left = _beside(_text(indent), _box(line.left), _text(f" {line.relation} "))
    shown: list[str] = []
    pieces = lines(line.right, WIDTH - left.width, lambda form: _box(form).width)
    for number, piece in enumerate(pieces):
        head = left if number == 0 else _text(" " * (len(indent) + 4))
        over = [_text("    for "), _box(line.over)] if line.over and piece is pieces[-1] else []
        if over and head.width + _box(piece).width + sum(box.width for box in over) > WIDTH + 4:
            shown += [text.rstrip() for text in _beside(head, _box(piece)).lines]
            shown += [text.rstrip() for text in _beside(_text(f"{indent}  "), *over).lines]
        else:
            shown += [text.rstrip() for text in _beside(head, _box(piece), *over).lines]
    return "\n".join(shown)


# ---- boxes


def _text(text: str) -> Box:
    return Box((text,))


def _beside(*boxes: Box) -> Box:
    if not boxes:
        return _text("")
    above = max(box.base for box in boxes)
    below = max(box.height - box.base for box in boxes)
    shown = []
    for number in range(-above, below):
        parts = []
        for box in boxes:
            place = number + box.base
            parts.append(box.lines[place] if 0 <= place < box.height else " " * box.width)
        shown.append("".join(parts))
    return Box(tuple(shown), above)


def _stacked(boxes: list[Box], base: int, *, centre: bool) -> Box:
    """Boxes under each other; `base` is the line that is written on."""
    wide = max(box.width for box in boxes)
    shown = [
        line.center(wide) if centre else line.ljust(wide) for box in boxes for line in box.lines
    ]
    return Box(tuple(shown), base)


def _fence(mark: str, box: Box) -> Box:
    alone, top, middle, bottom = _TALL[mark]
    if box.height == 1:
        return _text(alone)
    if mark in _POINT and box.height == 2:
        return Box((top, bottom), box.base)
    pieces = [top, *[middle] * (box.height - 2), bottom]
    if mark in _POINT:
        pieces[min(max(box.base, 1), box.height - 2)] = _POINT[mark]
    return Box(tuple(pieces), box.base)


def _box(form: Form) -> Box:
    return _PRINTERS[type(form)](form)


def _symbol(form: Symbol) -> Box:
    """Letters alone are bold: a word has to be found again in the definition."""
    name = bold(form.text) if form.bold and len(form.text) == 1 else form.text
    return _text(name + lowered(form.sub))


def _fenced(form: Fence) -> Box:
    body = _box(form.body)
    return _beside(_fence(form.left, body), body, _fence(form.right, body))


def _space(form: Space) -> Box:
    return _beside(_box(form.dtype), _text("["), _box(_times(form.sizes)), _text("]"))


def _sign(sign: Sign) -> str:
    if sign.kind in ("prefix", "open", "close"):
        return sign.text
    return f"{sign.text} " if sign.kind == "comma" else f" {sign.text} "


def _times(parts: tuple[Form, ...]) -> Form:
    found: list[Form] = []
    for part in parts:
        found += [Sign("×", "plus"), part] if found else [part]
    return row(*found) if found else Words("")


def _fraction(form: Fraction) -> Box:
    above, below = _box(form.above), _box(form.below)
    if all(isinstance(part, (Symbol, Number, Element)) for part in (form.above, form.below)):
        return _beside(above, _text("/"), below)
    wide = max(above.width, below.width) + 2
    bar = _text("─" * wide)
    return _stacked([above, bar, below], above.height, centre=True)


def _root(body: Box) -> Box:
    if body.height == 1 and body.width == 1:
        return _text(f"√{body.lines[0]}")
    if body.height == 1:
        return _text(f"√({body.lines[0]})")
    return _beside(_text("√"), _fence("(", body), body, _fence(")", body))


def _script(form: Script) -> Box:
    """What stands higher and lower: beside the ends of a tall base, above and below a flat one."""
    base = _box(form.base)
    flat = base.height == 1
    parts = [base]
    if form.sup is not None:
        digits = raised(form.sup.text) if isinstance(form.sup, Number) else None
        up = _box(form.sup) if digits is None else _text(digits)
        parts.append(Box(up.lines, up.height - 1 + base.base + (flat and digits is None)))
    if form.sub is not None:
        down = _box(form.sub)
        parts.append(Box(down.lines, base.base - base.height + 1 - flat))
    return _beside(*parts)


def _element(form: Element) -> Box:
    parts = [_box(form.base)]
    if form.member is not None:
        parts += _bracketed(_box(form.member))
    if form.index:
        parts += _bracketed(_box(listed(form.index)))
    return _beside(*parts)


def _bracketed(body: Box) -> list[Box]:
    return [_fence("[", body), body, _fence("]", body)]


def _big(form: Big) -> Box:
    body = _box(form.body)
    under = [_box(line) for line in form.under]
    head = _stacked([_text(form.sign), *under], 0, centre=True)
    return _beside(head, _text(" "), body)


def _cases(form: Cases) -> Box:
    values = [_box(value) for value, _ in form.rows]
    conditions = [_box(condition) for _, condition in form.rows]
    wide = max(box.width for box in values) + 3
    rows = [
        _beside(value, _text(" " * (wide - value.width)), condition)
        for value, condition in zip(values, conditions, strict=True)
    ]
    stacked = _stacked(rows, 0, centre=False)
    body = Box(stacked.lines, (stacked.height - 1) // 2)
    right = [_text(" "), _fence("}", body)] if form.closed else []
    return _beside(_fence("{", body), _text(" "), body, *right)


_PRINTERS: dict[type, Callable[[Any], Box]] = {
    Symbol: _symbol,
    Number: lambda form: _text(form.text),
    Words: lambda form: _text(form.text),
    Sign: lambda form: _text(_sign(form)),
    Row: lambda form: _beside(*map(_box, form.parts)),
    Fence: _fenced,
    Fraction: _fraction,
    Root: lambda form: _root(_box(form.body)),
    Script: _script,
    Element: _element,
    Space: _space,
    Noted: lambda form: _beside(_box(form.base), _text("@"), _box(form.note)),
    Tilde: lambda form: _beside(_text("~"), _box(form.base)),
    Big: _big,
    Cases: _cases,
}
