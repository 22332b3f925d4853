"""What the parser gives: spans, limits, words that are names elsewhere, and a table kept safely."""

import gc
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import ast
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.parser import grammar_text, parse, parse_expr, parse_type, table
from irlang.parser.parse import DEEPEST

MODEL = """\
nnir 1

model m(x: f32[N, 3] in [0, 1]) -> y: f32[N, 4] {
  param w: f32[3, 4] in [-0.2, 0.2]
  for i < 2 {
    x = f(x; k = [1,
      2])
  }
  y = g(h(x), w)
}
"""


def faults(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a text; none where it is a file."""
    try:
        parse(text, "f.nnir")
    except InvalidInput as error:
        return error.diagnostics
    return ()


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in faults(text)]


def test_every_node_has_the_span_of_its_text() -> None:
    file = parse(MODEL, "m.nnir")
    (model,) = file.models
    assert model.span == ("m.nnir", 3, 1, 10, 2)
    param, loop, assign = model.body
    assert param.span[1:] == (4, 3, 4, 36)
    assert isinstance(loop, ast.For)
    assert isinstance(assign, ast.Assign)
    assert loop.span[1:] == (5, 3, 8, 4)
    assert loop.body[0].span[1:] == (6, 5, 7, 10)
    inner = assign.value.args[0]
    assert isinstance(inner, ast.Call)
    assert inner.span[1:] == (9, 9, 9, 13)
    lines = MODEL.split("\n")
    for node in ast.walk(model):
        if isinstance(node, (ast.Name, ast.Number)):
            line = lines[node.span.line - 1]
            text = line[node.span.column - 1 : node.span.end_column - 1]
            assert text == (node.id if isinstance(node, ast.Name) else node.text)


@given(st.text("ab c(){}[];,=+*\n#\"'.<:in1", max_size=60))
@settings(max_examples=1500)
def test_any_text_is_a_file_or_has_diagnostics_with_places(text: str) -> None:
    lines = text.split("\n")
    for diagnostic in faults(text):
        span = diagnostic.span
        assert 1 <= span.line <= len(lines)
        assert 1 <= span.column <= len(lines[span.line - 1]) + 1
        assert (span.end_line, span.end_column) >= (span.line, span.column)


@given(st.data())
@settings(max_examples=300)
def test_a_spoiled_file_has_diagnostics(data: st.DataObject) -> None:
    """Any token of a good file removed, doubled or replaced: a tree or diagnostics, no more."""
    tokens = MODEL.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(tokens) - 1))
        tokens[at : at + 1] = data.draw(
            st.sampled_from([[], [tokens[at]] * 2, ["{"], ["}"], ["("], ["op"], [";"], ["\n"]])
        )
    text = " ".join(tokens)
    assert all(diagnostic.code.startswith("syntax.") for diagnostic in faults(text))


@pytest.mark.parametrize(
    "text",
    [
        "let x = " + "(" * 100_000 + "1" + ")" * 100_000,
        "let x = 1" + " + 1" * 100_000,
        "let x = " + "-" * 100_000 + "1",
        "let x = " + "f(" * 10_000 + "1" + ")" * 10_000,
        "let x = " + "[" * 100_000,
        "let x = " + "if a then b else " * 10_000 + "c",
        "let x = " + "a[" * 10_000,
        "model m() -> y: f32[] {" + "for i < 2 {" * 10_000 + "}" * 10_001,
    ],
    ids=["parentheses", "chain", "signs", "calls", "brackets", "ifs", "reads", "loops"],
)
def test_what_nests_too_deeply_is_refused(text: str) -> None:
    assert codes(text) == ["syntax.depth"]


def test_what_nests_just_deeply_enough_can_be_walked_compared_and_shown() -> None:
    text = "1" + " + 1" * (DEEPEST - 10)
    tree = parse_expr(text)
    assert tree == parse_expr(text + " ")
    assert sum(1 for _ in ast.walk(tree)) == 2 * DEEPEST - 19
    assert len(repr(tree)) > DEEPEST


def test_long_files_take_linear_time() -> None:
    def seconds(count: int) -> float:
        lines = "\n".join(f"  h{i} = f(x, w; pad = same)" for i in range(count))
        text = f"model m(x: f32[1]) -> y: f32[1] {{\n{lines}\n}}\n"
        start = time.process_time()
        parse(text)
        return time.process_time() - start

    seconds(100)
    gc.disable()  # which looks through all that other tests have left, too
    try:
        assert seconds(8000) < 24 * max(seconds(1000), 1e-3)
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["ties", "nnir", "count", "sum", "all", "max", "the"])
def test_words_of_the_grammar_are_names_elsewhere(name: str) -> None:
    file = parse(f"let {name} = 1\nmodel {name}({name}: f32[1]) -> {name}: f32[1] {{\n"
                 f"  {name} = f({name}; {name} = {name})\n}}\n")  # fmt: skip
    assert file.models[0].name == name
    assert parse_expr(f"{name} + {name}[{name}] - 1") == ast.Binary(
        "-",
        ast.Binary("+", ast.Name(name), ast.Read(name, (ast.Name(name),))),
        ast.Number(1),
    )


def test_a_reduction_is_told_from_a_call() -> None:
    assert isinstance(parse_expr("max(k < K) x[k]"), ast.Reduce)
    assert isinstance(parse_expr("max(k, K)"), ast.Call)
    assert isinstance(parse_expr("max( # a comment\n k < K) x[k]"), ast.Reduce)


def test_both_brackets_of_a_family_are_told_from_one() -> None:
    assert parse_expr("x[0][]") == ast.Read("x", (), ast.Number(0))
    assert parse_expr("x[0]") == ast.Read("x", (ast.Number(0),))


def test_line_breaks_and_byte_order_marks_make_no_difference() -> None:
    assert parse("\ufeff" + MODEL.replace("\n", "\r\n")) == parse(MODEL)
    assert parse(MODEL.replace("\n", "\r")).models[0].span == parse(MODEL).models[0].span


def test_numbers_have_limits() -> None:
    assert parse_expr("9" * 4000) == ast.Number(int("9" * 4000))
    assert codes("let x = " + "9" * 5000) == ["syntax.number"]
    assert codes("let x = 1e999") == ["syntax.number"]
    assert codes("let x = \u0663") == ["syntax.character"]


def test_a_type_stands_alone() -> None:
    assert parse_type("f32[N, ~S.., K @ axis]") == ast.TensorType(
        "f32",
        (
            ast.Dim("size", ast.Name("N")),
            ast.Dim("rest", ast.Name("S"), broadcast=True),
            ast.Dim("size", ast.Name("K"), ast.Name("axis")),
        ),
    )


# ---- the table ----------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    table.table.cache_clear()
    yield tmp_path / "irlang"
    table.table.cache_clear()


def assert_works(grammar: table.Table) -> None:
    assert grammar.scanner.fullmatch("model") is not None
    assert len(parse(MODEL).models) == 1


def test_the_grammar_has_no_conflict() -> None:
    """Lark raises where `strict` finds two rules, or two terminals, for one text."""
    assert len(table.compile_grammar(grammar_text())["states"]) > 100


def test_the_table_is_kept_for_the_user_alone(cache: Path) -> None:
    compiled = table.table()
    (file,) = cache.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert cache.stat().st_mode & 0o077 == 0
    table.table.cache_clear()
    assert table.table() == compiled


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"scanner": "("}', "\x00", "null"])
def test_a_damaged_cache_is_not_used(cache: Path, damage: str) -> None:
    table.table()
    (file,) = cache.iterdir()
    file.write_text(damage)
    table.table.cache_clear()
    assert_works(table.table())


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
def test_a_cache_that_others_can_write_to_is_not_read(cache: Path) -> None:
    table.table()
    (file,) = cache.iterdir()
    data = json.loads(file.read_text())
    data["scanner"] = "(?P<NAME>evil)"
    file.write_text(json.dumps(data))
    file.chmod(0o666)
    table.table.cache_clear()
    assert_works(table.table())
