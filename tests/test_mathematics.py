"""Definitions as mathematics: every one is well formed in all three printings, and means the same.

What a form says is checked on small definitions of this file; that nothing of Python leaks and
that everything is balanced, on the whole catalogue.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from irlang import ast
from irlang.catalog import builtin
from irlang.mathematics import latex, mathml, terminal
from irlang.mathematics.build import Builder, symbol
from irlang.mathematics.definition import condition, mathematics
from irlang.mathematics.form import Mathematics
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
