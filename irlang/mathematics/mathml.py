"""Mathematics as MathML, which browsers render without a script."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
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
    is_plain,
    lines,
    listed,
)
from irlang.mathematics.letters import bold

_WIDTH = 90
_GAP = '<mspace width="0.4em"/>'


def blocks(mathematics: Mathematics) -> str:
    """The whole: a display for the types, the equations, and what is abbreviated."""
    parts = [
        _display([_typed(line) for line in mathematics.types]),
        _display([row for line in mathematics.equations for row in _rows(line)]),
    ]
    if mathematics.where:
        rows = [row for line in mathematics.where for row in _rows(line)]
        parts += ["<p>where</p>", _display(rows)]
    parts += [f"<p>{inline(remark)}</p>" for remark in mathematics.remarks]
    return "\n".join(parts)


def inline(form: Form) -> str:
    """A form within text."""
    return f"<math>{mathml(form)}</math>"


def _display(rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    cells = "".join(
        f'<mtr><mtd style="text-align:right">{left}</mtd>'
        f'<mtd style="text-align:left">{right}</mtd></mtr>'
        for left, right in rows
    )
    return (
        f'<div class="mathematics"><math displaystyle="true"><mtable displaystyle="true">'
        f"{cells}</mtable></math></div>"
    )


def _typed(line: Line) -> tuple[str, str]:
    over = "" if line.over is None else f'<mspace width="1em"/>{mathml(Fence("(", line.over, ")"))}'
    return mathml(line.left), _mrow(f"{_relation(line)}{mathml(line.right)}{over}")


def _relation(line: Line) -> str:
    return f'<mo form="infix">{line.relation}</mo>'


def _rows(line: Line) -> list[tuple[str, str]]:
    pieces = [mathml(piece) for piece in lines(line.right, _WIDTH)]
    pieces[0] = _relation(line) + pieces[0]
    pieces[1:] = [f'<mspace width="2em"/>{piece}' for piece in pieces[1:]]
    if line.over is not None:
        pieces[-1] += f'<mspace width="2em"/><mtext>for\u00a0</mtext>{mathml(line.over)}'
    left = [mathml(line.left), *["<mrow></mrow>"] * (len(pieces) - 1)]
    return [(head, _mrow(piece)) for head, piece in zip(left, pieces, strict=True)]


def _mrow(inside: str) -> str:
    return f"<mrow>{inside}</mrow>"


def mathml(form: Form) -> str:
    """A form."""
    return _PRINTERS[type(form)](form)


def _space(form: Space) -> str:
    if not form.sizes:
        return mathml(form.dtype)
    sizes = '<mo form="infix">×</mo>'.join(map(mathml, form.sizes))
    return f"<msup>{mathml(form.dtype)}{_mrow(sizes)}</msup>"


def _tilde(form: Tilde) -> str:
    return f'<mover accent="true">{mathml(form.base)}<mo stretchy="false">~</mo></mover>'


def _spaced(text: str) -> str:
    """Spaces at the ends are kept."""
    kept = escape(text)
    return kept.replace(" ", "\u00a0") if kept != kept.strip() else kept


def _symbol(form: Symbol) -> str:
    """A name; a bold word has no letters of its own, which would stand too far apart."""
    if form.bold and len(form.text) > 1:
        name = f'<mi style="font-weight:bold">{escape(form.text)}</mi>'
    else:
        name = f"<mi>{escape(bold(form.text) if form.bold else form.text)}</mi>"
    return f"<msub>{name}<mn>{form.sub}</mn></msub>" if form.sub else name


def _sign(form: Sign) -> str:
    kind = {"prefix": "prefix", "open": "prefix", "close": "postfix"}.get(form.kind, "infix")
    if form.text == "mod":
        return f"{_GAP}<mi>mod</mi>{_GAP}"
    if form.kind in ("open", "close"):
        return f'<mo form="{kind}" stretchy="false">{form.text}</mo>'
    if form.kind == "comma":
        return f'<mo separator="true">{form.text}</mo>'
    return f'<mo form="{kind}">{escape(form.text)}</mo>'


def _mark(fence: str, form: str) -> str:
    return f'<mo fence="true" form="{form}">{fence}</mo>'


def _script(base: str, sub: Form | None, sup: Form | None) -> str:
    if sub is not None and sup is not None:
        return f"<msubsup>{base}{mathml(sub)}{mathml(sup)}</msubsup>"
    if sub is not None:
        return f"<msub>{base}{mathml(sub)}</msub>"
    assert sup is not None
    return f"<msup>{base}{mathml(sup)}</msup>"


def _element(form: Element) -> str:
    plain = all(map(is_plain, form.index))
    sub = listed(form.index) if form.index and plain else None
    sup = None if form.member is None else Fence("(", form.member, ")")
    base = mathml(form.base)
    if sub is not None or sup is not None:
        base = _script(base, sub, sup)
    if form.index and not plain:
        base += mathml(Fence("[", listed(form.index), "]"))
    return _mrow(base)


def _big(form: Big) -> str:
    if len(form.under) > 1:
        cells = "".join(f"<mtr><mtd>{mathml(line)}</mtd></mtr>" for line in form.under)
        under = f'<mtable rowspacing="0">{cells}</mtable>'
    else:
        under = mathml(form.under[0])
    if form.sign in "∑∏":
        sign = f'<mo largeop="true" movablelimits="false">{form.sign}</mo>'
    else:
        sign = f"<mi>{form.sign}</mi>"
    return _mrow(f"<munder>{sign}{under}</munder>{_GAP}{mathml(form.body)}")


def _cases(form: Cases) -> str:
    cells = "".join(
        f'<mtr><mtd style="text-align:left">{mathml(value)}</mtd>'
        f'<mtd style="text-align:left">{mathml(when)}</mtd></mtr>'
        for value, when in form.rows
    )
    right = _mark("}", "postfix") if form.closed else ""
    return _mrow(f"{_mark('{', 'prefix')}<mtable>{cells}</mtable>{right}")


_PRINTERS: dict[type, Callable[[Any], str]] = {
    Symbol: _symbol,
    Number: lambda form: f"<mn>{escape(form.text)}</mn>",
    Words: lambda form: f"<mtext>{_spaced(form.text)}</mtext>",
    Sign: _sign,
    Row: lambda form: _mrow("".join(map(mathml, form.parts))),
    Fence: lambda form: _mrow(
        f"{_mark(form.left, 'prefix')}{mathml(form.body)}{_mark(form.right, 'postfix')}"
    ),
    Fraction: lambda form: f"<mfrac>{mathml(form.above)}{mathml(form.below)}</mfrac>",
    Root: lambda form: f"<msqrt>{mathml(form.body)}</msqrt>",
    Script: lambda form: _script(mathml(form.base), form.sub, form.sup),
    Element: _element,
    Space: _space,
    Noted: lambda form: f"<munder>{mathml(form.base)}{mathml(form.note)}</munder>",
    Tilde: _tilde,
    Big: _big,
    Cases: _cases,
}
