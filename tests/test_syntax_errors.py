"""Every syntax error names its place, what was expected there, and often the way out."""

import re

import pytest

from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.edits import apply
from irlang.parser import parse


def faults(text: str) -> list[Diagnostic]:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "f.nnir")
    return list(caught.value.diagnostics)


def model(body: str) -> str:
    return f"model m(x: f32[1]) -> y: f32[1] {{\n{body}\n}}\n"


def op(body: str) -> str:
    return f"op f[T: float](x: T[N]) -> y: T[N] {{\n{body}\n}}\n"


# The text, with `«` before the place of the only fault; its code; what its message says.
CASES = [
    # what was expected, in words
    ("«foo", "unexpected", "expected `model`, `block`, `op` or `let`, found `foo`"),
    ("let «3 = x", "unexpected", "expected a name, found `3`"),
    ("let x = 3 + «", "unexpected", "expected a value, found the end of the file"),
    ("let x = «", "unexpected", "expected an expression, found the end of the file"),
    ("model m(x: f32[1]) «{ y = f(x) }", "unexpected", "expected `->`, found `{`"),
    (model("param w «f32[1]"), "unexpected", "expected `:`, found `f32`"),
    (model("y = f(x; «3)"), "unexpected", "expected an attribute, found `3`"),
    (model("y = f(x; k = 1, «)"), "unexpected", "expected an attribute, found `)`"),
    (model("for i «<= 3 { x = f(x) }"), "unexpected", "expected `<`, found `<=`"),
    (op("grad x «any"), "unexpected", "expected `ties`, found `any`"),
    (op('require a: N == 1 «"no"'), "unexpected", "found a text in quotes"),
    (op("y[n] = match p { a: 1, b: «, }"), "unexpected", "expected an expression, found `,`"),
    # slips
    ("«#hello\nlet x = 1", "comment", "a comment needs a blank after its `#`"),
    (model("y = f(x) «#hello"), "comment", "a comment needs a blank after its `#`"),
    (model("y = f(x«, k = 1)"), "attributes", "before the first attribute, `k`, found `,`"),
    (model("y = f(«k = 1)"), "attributes", "expected `;` before the first attribute, `k`"),
    (model("y = f(x; k = 1«; l = 2)"), "attributes", "a second `;`"),
    ("op f(x: T[N]«, k: int = 1) -> y: T[N] { y[n] = x[n] }", "attributes", "attribute, `k`"),
    ("op f(x: T[N]«, k: {a, b}) -> y: T[N] { y[n] = x[n] }", "attributes", "attribute, `k`"),
    (op('require a: N «= 3 else "no"'), "equals", "expected a comparison, found `=`"),
    (op("y[n] «== x[n]"), "equals", "expected `=`, found `==`"),
    (model("«match = f(x)"), "reserved", "expected a name, found the reserved word `match`"),
    (model("y = f(«in)"), "reserved", "expected a name, found the reserved word `in`"),
    (model("y = f(x)«;"), "semicolon", "a statement ends without `;`"),
    (model("y = x «+ 1"), "call", "a value of a model is the result of a call"),
    # what is not closed
    ("model m(x: f32[1]) -> y: f32[1] «{\n y = f(x)\n", "unclosed", "expected `}`, found the end"),
    ("model m(x: f32[1]) -> y: f32[1] «{\n y = f(x)\n\nlet z = 1\nop f() -> y: T[] {}",
     "unclosed", "found the reserved word `op`: this `{` is never closed"),
    (model("h = f«(x\ny = g(h)"), "unclosed", "expected `)`, found `y`: this `(` is never closed"),
    (op("y[n] = x«[n\nlet z = 1"), "unclosed", "expected `]`, found the reserved word `let`"),
    (model("y = f(x)\n}\n«}").removesuffix("}\n"), "unopened", "`}` closes nothing"),
    (op('require a: N == 1 else «"no'), "string", '`"` is missing'),
    ('«"""about\n' + op("y[n] = x[n]"), "string", "this docstring is never closed"),
    # other characters, other languages
    ("let x = a «&& b", "character", "`&&` is no part of the language"),
    ("let x = a «|| b", "character", "`||` is no part of the language"),
    ("let x = «.5", "character", "`.` is no part of the language"),
    ("let x = 5«.", "character", "`.` is no part of the language"),
    ("let x = «'a'", "character", "`'` is no part of the language"),
    ("let «é = 1", "character", "`é` is no part of the language"),
    ('let x = "a«\x1b[31m"', "character", "U+001B may not stand in a .nnir file"),
    ("let x = 1 # «\u202e", "character", "U+202E may not stand in a .nnir file"),
    ("«nnir 2\nlet x = 1", "version", "this file is in version 2 of the language"),
    (op("«y[n, m][n] = 1"), "family", "the first brackets of an equation"),
    # an equation without indices
    (op("y = «2 * x[0]"), "index", "without indices `y` is the result of a call"),
    (op("y = x «/ 2"), "index", "`y` is the result of a call"),
    (op("y = «x\n  y[n] = x[n]"), "index", "`y` is the result of a call"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "code", "message"), CASES)
def test_the_place_and_what_was_expected(marked: str, code: str, message: str) -> None:
    before, after = marked.split("«")
    found = faults(before + after)
    assert len(found) == 1, found
    (fault,) = found
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    if not after:  # the end of a file is shown behind its last token
        column = len(before.rstrip()) + 1
    assert (fault.code, fault.span.line, fault.span.column) == (f"syntax.{code}", line, column)
    assert message in fault.message
    assert fault.span.file == "f.nnir"


@pytest.mark.parametrize(("marked", "code", "message"), CASES)
def test_messages_are_in_the_users_words(marked: str, code: str, message: str) -> None:
    (fault,) = faults(marked.replace("«", ""))
    said = f"{fault.message} {fault.help} {fault.label}"
    assert not re.search(r"\b[A-Z]{3,}\b|__ANON|\$END", said.replace("UTF", "")), (code, message)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (model("y = f(x, k = 1)"), model("y = f(x; k = 1)")),
        (model("y = f(k = 1)"), model("y = f(; k = 1)")),
        (model("y = f(x; k = 1; l = 2)"), model("y = f(x; k = 1, l = 2)")),
        (op('require a: N = 3 else "no"'), op('require a: N == 3 else "no"')),
        (op("y[n] == x[n]"), op("y[n] = x[n]")),
        (model("y = f(x);"), model("y = f(x)")),
        ("#a\nlet x = 1", "# a\nlet x = 1"),
    ],
)
def test_an_edit_mends_the_slip(text: str, mended: str) -> None:
    (fault,) = faults(text)
    assert apply(text, fault.edits) == mended
    parse(mended)


def test_what_is_not_closed_points_at_both_ends() -> None:
    (fault,) = faults(
        "model m(x: f32[1]) -> y: f32[1] {\n  y = f(x)\n\nmodel n() -> y: f32[] {\n}\n"
    )
    assert fault.span.line == 1
    assert [note.span.line for note in fault.notes] == [4]


def test_the_errors_of_a_file_are_told_in_one_run_without_cascades() -> None:
    text = """\
model m(x: f32[1]) -> y: f32[1] {
  a = f(x
  b = f(x;)
  good = f(b)
  c = f(a) + 1
  param w f32[3]
  for i <= 3 {
    x = f(x)
  }
  y = f(h);
}

op g(x: T[N] -> y: T[N] {
  y[n] = x[n]
}

op h(x: T[N]) -> y: T[N] {
  let m = match p { a: 1, b: , }
  z[n] = 1 && 2
  y[n] = x[n
}

op last(x: T[N]) -> y: T[N] {
  y[n] = 3 3
}
"""
    assert [fault.span.line for fault in faults(text)] == [2, 3, 5, 6, 7, 10, 13, 18, 19, 20, 24]


def test_there_is_an_end_to_errors() -> None:
    text = model("\n".join(f"  h{i} = f(x;)" for i in range(500)))
    assert len(faults(text)) == 20
