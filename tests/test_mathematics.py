"""Definitions as mathematics: every one is well formed in all three printings, and means the same.

What a form says is checked on small definitions of this file; that nothing of Python leaks and
that everything is balanced, on the whole catalogue.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from random import Random
from xml.etree import ElementTree as ET

import pytest

from irlang import ast
from irlang.catalog import builtin
from irlang.mathematics import latex, mathml, terminal
from irlang.mathematics.build import Builder
from irlang.mathematics.definition import condition, mathematics
from irlang.mathematics.form import (
    Fence,
    Form,
    Mathematics,
    Number,
    Row,
    Script,
    Sign,
    Symbol,
)
from irlang.mathematics.form import Fraction as FractionForm
from irlang.mathematics.notation import symbol
from irlang.parser import parse, parse_expr

OPS = list(builtin())
NAMES = [op.name for op in OPS]
# Pieces of the printed form of Python's own values.
LEAKED = re.compile(r"\b(None|Symbol\(|Row\(|Sign\(|ast\.|Span\(|<irlang|Name\(id)")
MAY_HOLD = {  # what MathML lets stand in an element that has a fixed number of children
    "mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3,
}  # fmt: skip


@pytest.mark.parametrize("op", OPS, ids=NAMES)
def test_mathml_is_well_formed(op: ast.Op) -> None:
    root = ET.fromstring(f"<div>{mathml.blocks(mathematics(op))}</div>")
    for element in root.iter():
        assert len(element) == MAY_HOLD.get(element.tag, len(element)), op.name
        if element.tag in ("mi", "mn", "mo"):
            assert element.text, op.name
    shown = "".join(root.itertext())
    assert not LEAKED.search(shown)
    for output in op.outputs:
        assert output.name[0] in shown


@pytest.mark.parametrize("op", OPS, ids=NAMES)
def test_latex_is_balanced(op: ast.Op) -> None:
    shown = "\n".join(latex.displays(mathematics(op)))
    assert max(map(len, latex.displays(mathematics(op)))) < 5120  # all that MathJax takes
    assert not LEAKED.search(shown)
    depth = 0
    for brace in re.findall(r"\\[{}]|[{}]", shown):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        assert depth >= 0
    assert depth == 0
    opened: list[str] = []
    for kind, name in re.findall(r"\\(left|right|begin|end)(?![a-z])(\{[a-z]+\})?", shown):
        if kind in ("left", "begin"):
            opened.append(kind + name)
        else:
            assert opened.pop() == {"right": "left", "end": "begin"}[kind] + name
    assert not opened
    assert set(re.findall(r"[^\x00-\x7f]", shown)) <= {"∗"}
    assert not re.search(r"\\text\{[^}]*\\", shown)  # which MathJax would show as it is
    assert "operatorname" not in shown  # not allowed where Markdown is rendered


@pytest.mark.parametrize("op", OPS, ids=NAMES)
def test_terminal_shows_every_equation(op: ast.Op) -> None:
    shown = terminal.text(mathematics(op))
    assert not LEAKED.search(shown)
    assert shown.splitlines() == [line.rstrip() for line in shown.splitlines()]
    for statement in op.body:
        if isinstance(statement, ast.Equation):
            name = terminal.text(mathematics_of_name(statement.name))
            assert name in shown


def mathematics_of_name(name: str) -> Mathematics:
    """A block that shows one name alone."""
    return Mathematics((), (), (), (symbol(name),))


def shown(text: str) -> str:
    """An expression on the terminal."""
    form = Builder().form(parse_expr(text))
    return terminal.text(Mathematics((), (), (), (form,)))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a * (b + c)", "a · (b + c)"),
        ("a - (b - c)", "a − (b − c)"),
        ("a - b - c", "a − b − c"),
        ("-(a + b) * c", "−(a + b) · c"),
        ("a * -b", "a · (−b)"),
        ("a // 2 % c", "⌊a/2⌋ mod c"),
        ("a * b % c", "(a · b) mod c"),
        ("a % b + c", "(a mod b) + c"),
        ("ceildiv(a, b)", "⌈a/b⌉"),
        ("abs(a - b)", "│a − b│"),
        ("sq(a + b)", "(a + b)²"),
        ("sqrt(a)", "√a"),
        ("0 <= a < n and b != c", "0 ≤ a < n ∧ b ≠ c"),
        ("(a or b) and not c", "(a ∨ b) ∧ ¬c"),
        ("a or b and c", "a ∨ (b ∧ c)"),
        ("if a < b then 1 else 0", "𝟏[a < b]"),
        ("[a, b]", "(a, b)"),
        ("1e-5 * alpha", "10⁻⁵ · α"),
        ("h0[n]", "h₀[n]"),
        ("d in order", "d ∈ order"),
        ("log(max(a, eps))", "ln(max(a, ε))"),
        ("isinf(a)", "│a│ = ∞"),
    ],
)
def test_expressions(text: str, printed: str) -> None:
    assert shown(text) == printed


DEFINITION = '''
"""A recurrence, a window, cases and a sum under a condition."""
op shown[T: float](x: T[L, S..], start: T[S..] = 0; width: int[S..] = 1, mode: {up, down} = up)
    -> y: T[L, S..], n: i64[L] {
  h[t < L, s.. < S..] = 0.5 * x[t, s..] + (h[t - 1, s..] ?? start[s..])
  let sense = match mode { up: 1, down: -1 }
  y[t, s..] = sense * h[t, s..] / (sum(k < L | k != t) exp(x[k, (s * width)..] ?? 0))
  n[t] = count(k < L | k < t)
  unspecified y[t, s..] when t == 0
}
'''


def test_a_definition() -> None:
    (op,) = parse(DEFINITION, "shown.nnir").ops
    assert terminal.text(mathematics(op)) == EXPECTED


EXPECTED = """\
x ∈ T[L × 𝐒]
start ∈ T[𝐒]   (absent: 0)
y ∈ T[L × 𝐒]
n ∈ i64[L]

h[t, 𝐬] = 0.5 · x[t, 𝐬] + ⎧ h[t − 1, 𝐬]   if t ≥ 1  ⎫    for t < L, 𝐬 < 𝐒
                          ⎩ start[𝐬]      otherwise ⎭

                       sense · h[t, 𝐬]
y[t, 𝐬] = ──────────────────────────────────────────
             ∑   exp⎛⎧ x[k, 𝐬 · width]   inside x ⎞
           k < L    ⎝⎩ 0                 otherwise⎠
           k ≠ t

n[t] = #{k < L such that k < t}

where

  sense = ⎧ 1    if mode = up
          ⎩ −1   if mode = down

y[t, 𝐬] is unspecified if t = 0"""


def test_conditions() -> None:
    (op,) = parse(DEFINITION, "shown.nnir").ops
    form = condition(op, parse_expr("all(d < rank(S)) 1 <= width[d]"))
    assert terminal.text(Mathematics((), (), (), (form,))) == ("∀d < rank(𝐒): 1 ≤ width[d]")


# ---- parentheses: what is printed, read by the rules of arithmetic, has the value of the text

_SIGNS = {"+": "+", "−": "-", "·": "*", "mod": "%", "=": "==", "≠": "!=", "<": "<", "≤": "<=",
          "∧": " and ", "∨": " or ", "¬": " not "}  # fmt: skip
_NAMES = {"a": Fraction(7, 2), "b": Fraction(-3), "c": Fraction(5), "d": Fraction(-1, 3)}


def as_python(form: Form) -> str:
    """A form as an expression of Python, adding parentheses only where a drawing groups."""
    match form:
        case Symbol():
            return form.text
        case Number():
            return f"F({form.text})"
        case Sign():
            return _SIGNS[form.text]
        case Row():
            return "".join(map(as_python, form.parts))
        case Fence():
            inside = as_python(form.body)
            return {"(": f"({inside})", "⌊": f"floor({inside})", "|": f"abs({inside})"}[form.left]
        case FractionForm():
            return f"(({as_python(form.above)})/({as_python(form.below)}))"
        case Script(sup=Number(text)):
            base = as_python(form.base)  # the power binds to the last letter or parenthesis alone
            return f"{base}**{text}"
    raise TypeError(form)


def expression(random: Random, depth: int) -> str:
    """An expression of numbers with as few parentheses as the language needs."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*_NAMES, "2", "3"])
    left, right = expression(random, depth - 1), expression(random, depth - 1)
    kind = random.randrange(9)
    if kind < 6:
        return f"({left}) {random.choice(['+', '-', '*', '/', '//', '%'])} ({right})"
    return [f"-({left})", f"abs({left})", f"sq({left})"][kind - 6]


def exact(text: str) -> str:
    """The text with its numbers as fractions, so that Python divides them exactly."""
    return re.sub(r"\d+", r"F(\g<0>)", text)


def value(text: str) -> object:
    """The value by Python's rules, exact; None where something is divided by zero."""
    given = {**_NAMES, "F": Fraction, "floor": math.floor, "abs": abs, "sq": lambda x: x * x}
    try:
        return eval(text, {"__builtins__": {}}, given)  # noqa: S307  (made in this file)
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize("seed", range(8))
def test_parentheses_are_where_the_meaning_needs_them(seed: int) -> None:
    random = Random(seed)
    compared = 0
    for _ in range(150):
        text = expression(random, 4)
        wanted = value(exact(text))
        compared += wanted is not None
        assert value(as_python(Builder().form(parse_expr(text)))) == wanted, text
    assert compared > 50


@pytest.mark.parametrize("seed", range(4))
def test_parentheses_of_conditions(seed: int) -> None:
    random = Random(seed)

    def condition_(depth: int) -> str:
        if depth == 0:
            first, second = expression(random, 1), expression(random, 1)
            return f"{first} {random.choice(['<', '<=', '==', '!='])} {second}"
        if random.random() < 0.25:
            return f"not ({condition_(depth - 1)})"
        left, right = condition_(depth - 1), condition_(depth - 1)
        return f"({left}) {random.choice(['and', 'or'])} ({right})"

    for _ in range(100):
        text = condition_(3)
        assert value(as_python(Builder().form(parse_expr(text)))) == value(exact(text)), text


def test_a_reading_that_may_be_outside_in_more_than_one_way_is_not_told_by_one() -> None:
    text = """
op shown(x: f32[L, C]) -> y: f32[L, C] {
  let before(t, c) = h[t - 1, c] ?? 0
  h[t < L, c < C] = x[t, c] + (h[t - 1, c] ?? 0)
  y[t, c] = before(t, c - 1) + (h[t - 1, c - 1] ?? 0) + (h[t - 1, 0] ?? 1)
}
"""
    (op,) = parse(text, "shown.nnir").ops
    printed = terminal.text(mathematics(op))
    assert printed.count("if t ≥ 1") == 1  # where `h` is given
    assert printed.count("inside h") == 3
