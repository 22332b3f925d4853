"""Mathematics as LaTeX, within what MathJax knows on pages that render Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
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

_WIDTH = 90  # letters of a line, about what a page has room for
_LONGEST = 4000  # letters of a display: MathJax takes no more than 5120

_LETTERS = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon",
    "θ": r"\theta", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ρ": r"\rho", "τ": r"\tau",
    "φ": r"\varphi", "ω": r"\omega", "σ": r"\sigma", "∞": r"\infty", "π": r"\pi", "…": r"\dots",
}  # fmt: skip
_SIGNS = {
    "+": "+", "−": "-", "·": r"\cdot", "=": "=", "≠": r"\ne", "<": r"\lt", ">": r"\gt",
    "≤": r"\le", "≥": r"\ge", "∈": r"\in", "∧": r"\land", "∨": r"\lor", "¬": r"\lnot",
    "∀": r"\forall", "∃": r"\exists", "#": r"\#", "∏": r"\prod", "⇔": r"\iff",
    "mod": r"\bmod", ",": ",", ";": ";", ":": r":\;", "×": r"\times",
    "(": "(", ")": ")",
}  # fmt: skip
_FENCES = {
    "(": "(", ")": ")", "[": "[", "]": "]", "|": "|", "{": r"\{", "}": r"\}", "⌊": r"\lfloor",
    "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil",
}  # fmt: skip
_BIG = {"∑": r"\sum", "∏": r"\prod", "max": r"\max", "min": r"\min",
        "arg max": r"\mathop{\arg\max}", "arg min": r"\mathop{\arg\min}"}  # fmt: skip
_FUNCTIONS = {"exp": r"\exp", "ln": r"\ln", "sin": r"\sin", "cos": r"\cos", "tan": r"\tan",
              "max": r"\max", "min": r"\min", "tanh": r"\tanh", "sinh": r"\sinh",
              "cosh": r"\cosh"}  # fmt: skip
_ESCAPED = {"_": r"\_", "#": r"\#", "%": r"\%", "&": r"\&", "{": r"\{", "}": r"\}", "$": r"\$"}


def displays(mathematics: Mathematics) -> list[str]:
    """The whole as displays: lines under each other, aligned at their relations."""
    rows = [_typed(line) for line in mathematics.types]
    rows += [row for line in mathematics.equations for row in _rows(line)]
    if mathematics.where:
        rows.append(r"&\text{where}")
        rows += [row for line in mathematics.where for row in _rows(line)]
    rows += [f"&{latex(remark)}" for remark in mathematics.remarks]
    found: list[list[str]] = [[]]
    for line in rows:
        if found[-1] and sum(map(len, found[-1])) + len(line) > _LONGEST:
            found.append([])
        found[-1].append(line)
    return [_display(lines) for lines in found]


def _display(rows: list[str]) -> str:
    return "\\begin{aligned}\n" + " \\\\[0.4em]\n".join(rows) + "\n\\end{aligned}"


def _typed(line: Line) -> str:
    over = "" if line.over is None else rf" \quad ({latex(line.over)})"
    return f"{latex(line.left)} &{_SIGNS[line.relation]} {latex(line.right)}{over}"


def _rows(line: Line) -> list[str]:
    pieces = lines(line.right, _WIDTH)
    rows = [f"{latex(line.left)} &{_SIGNS[line.relation]} {latex(pieces[0])}"]
    rows += [rf"&\quad {latex(piece)}" for piece in pieces[1:]]
    if line.over is not None:
        rows[-1] += rf" \qquad \text{{for }} {latex(line.over)}"
    return rows


def latex(form: Form) -> str:
    """A form."""
    return _PRINTERS[type(form)](form)


def _script(form: Script) -> str:
    sub = "" if form.sub is None else f"_{{{latex(form.sub)}}}"
    sup = "" if form.sup is None else f"^{{{latex(form.sup)}}}"
    return f"{{{latex(form.base)}}}{sub}{sup}"


def _space(form: Space) -> str:
    sizes = r" \times ".join(map(latex, form.sizes))
    return f"{latex(form.dtype)}^{{{sizes}}}" if sizes else latex(form.dtype)


def _big(form: Big) -> str:
    under = r" \\ ".join(map(latex, form.under))
    under = rf"\substack{{{under}}}" if len(form.under) > 1 else under
    return rf"{_BIG[form.sign]}\limits_{{{under}}} {latex(form.body)}"


def _cases(form: Cases) -> str:
    rows = r" \\ ".join(f"{latex(value)} & {latex(when)}" for value, when in form.rows)
    right = r"\right\}" if form.closed else r"\right."
    return rf"\left\{{ \begin{{array}}{{ll}} {rows} \end{{array}} {right}"


def _symbol(form: Symbol) -> str:
    if form.text in _LETTERS:
        name = _LETTERS[form.text]
        name = rf"\boldsymbol{{{name}}}" if form.bold else name
    elif form.text in _FUNCTIONS and not form.sub:
        name = _FUNCTIONS[form.text]
    elif form.bold:
        name = rf"\mathbf{{{escaped(form.text)}}}"
    else:
        name = form.text if len(form.text) == 1 else rf"\mathrm{{{escaped(form.text)}}}"
    return f"{name}_{{{form.sub}}}" if form.sub else name


def _element(form: Element) -> str:
    base = f"{{{latex(form.base)}}}"
    if form.member is not None:
        base += f"^{{({latex(form.member)})}}"
    if not form.index:
        return base
    index = latex(listed(form.index))
    if all(map(is_plain, form.index)):
        return f"{base}_{{{index}}}"
    return rf"{base}\left[ {index} \right]"


def _words(text: str) -> str:
    """Text; letters that have to be escaped stand outside, for MathJax shows the escape inside."""
    parts = re.split(f"([{re.escape(''.join(_ESCAPED))}])", text)
    return "".join(_ESCAPED.get(part) or rf"\text{{{part}}}" for part in parts if part)


def escaped(text: str) -> str:
    """Text with no letter that LaTeX takes for more."""
    return "".join(_ESCAPED.get(letter, letter) for letter in text)


_PRINTERS: dict[type, Callable[[Any], str]] = {
    Symbol: _symbol,
    Number: lambda form: form.text,
    Words: lambda form: _words(form.text),
    Sign: lambda form: _SIGNS[form.text],
    Row: lambda form: " ".join(map(latex, form.parts)),
    Fence: lambda form: (
        rf"\left{_FENCES[form.left]} {latex(form.body)} \right{_FENCES[form.right]}"
    ),
    Fraction: lambda form: rf"\frac{{{latex(form.above)}}}{{{latex(form.below)}}}",
    Root: lambda form: rf"\sqrt{{{latex(form.body)}}}",
    Script: _script,
    Element: _element,
    Space: _space,
    Noted: lambda form: rf"\underset{{{latex(form.note)}}}{{{latex(form.base)}}}",
    Tilde: lambda form: rf"\tilde{{{latex(form.base)}}}",
    Big: _big,
    Cases: _cases,
}
