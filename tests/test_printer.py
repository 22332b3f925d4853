"""Printing is the inverse of parsing, on texts and on generated trees with every kind of node."""

import dataclasses
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import ast
from irlang.parser import parse, parse_expr, parse_type
from irlang.parser.layout import WIDTH
from irlang.parser.printer import print_expr, print_file, print_number, print_type

ROOT = Path(__file__).parent.parent
TEXTS = sorted(ROOT.glob("irlang/ops/*.nnir")) + sorted(ROOT.glob("examples/**/*.nnir"))

RESERVED = set(
    re.findall(
        r"\w+",
        """
op model block param require ensure some let grad unspecified when for in if then else match and or
not
""",
    )
)
# Followed by `(`, these are no calls.
FORMS = {"count"}


def same(left: object, right: object) -> bool:
    """Equality that tells 1 from 1.0, which the tree does and Python does not."""
    if type(left) is not type(right):
        return False
    if isinstance(left, ast.Node):
        compared = [f.name for f in dataclasses.fields(left) if f.compare]
        return all(same(getattr(left, name), getattr(right, name)) for name in compared)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


Strategy = st.SearchStrategy[Any]

# ---- trees --------------------------------------------------------------------------------------

names = st.one_of(
    st.sampled_from(["x", "y", "S", "k", "w1", "_", "ties", "nnir", "true", "inf", "e1", "sum_"]),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).filter(
        lambda n: n not in RESERVED
    ),
)
functions = names.filter(lambda n: n not in FORMS) | st.sampled_from(["max", "sum", "all"])
small = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,3}", fullmatch=True).filter(
    lambda n: n not in RESERVED
)
texts = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cn"), exclude_characters='"\u202a\u202b\u202c'
                  "\u202d\u202e\u2066\u2067\u2068\u2069"), max_size=12,
)  # fmt: skip
numbers = st.one_of(
    st.integers(0, 3),
    st.integers(0),
    st.integers(0, 10**300),
    st.floats(0, allow_infinity=False, allow_nan=False).map(abs),
).map(ast.Number)


def several(strategy: Strategy, least: int = 0, most: int = 3) -> Strategy:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


rests = names.map(ast.Name)


def binders(expr: Strategy) -> Strategy:
    return st.builds(ast.Binder, small, expr) | st.builds(
        ast.Binder, small, rests, rest=st.just(True)
    )


def grow(expr: Strategy) -> Strategy:
    index = expr | names.map(ast.Rest) | expr.map(ast.Each)
    bound = several(binders(expr), 1)
    one_bound = st.builds(ast.Binder, names, expr)
    return st.one_of(
        st.builds(ast.Unary, st.sampled_from(["-", "not"]), expr),
        st.builds(
            ast.Binary,
            st.sampled_from(["+", "-", "*", "/", "//", "%", "and", "or", "in"]),
            expr,
            expr,
        ),
        several(expr, 2, 4).flatmap(
            lambda operands: st.builds(
                ast.Chain,
                st.just(operands),
                several(
                    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
                    len(operands) - 1,
                    len(operands) - 1,
                ),
            )
        ),
        st.builds(ast.If, expr, expr, expr),
        st.builds(ast.Match, names, several(st.tuples(names, expr), 1)),
        st.builds(ast.Call, functions, several(expr), several(st.tuples(names, expr))),
        st.builds(ast.Read, names, several(index), st.none() | expr, st.none() | expr),
        st.builds(
            ast.Reduce,
            st.sampled_from(["sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "the"]),
            bound,
            st.none() | expr,
            expr,
        ),
        st.builds(ast.Reduce, st.just("count"), bound, expr, st.none()),
        st.builds(ast.ListOf, several(expr)),
        st.builds(ast.Comprehension, expr, one_bound, st.none() | expr),
    )


expressions = st.recursive(
    st.one_of(numbers, names.map(ast.Name), texts.map(ast.Text), names.map(ast.Arity)),
    grow,
    max_leaves=12,
)
dims = st.one_of(
    st.builds(ast.Dim, st.just("size"), expressions, st.none() | expressions),
    st.builds(ast.Dim, st.just("rest"), rests, st.none() | expressions),
    st.builds(ast.Dim, st.sampled_from(["size", "rest"]), rests, broadcast=st.just(True)),
)
types = st.builds(ast.TensorType, names, several(dims))
attr_types = st.one_of(
    st.builds(ast.AttrType, st.just("scalar"), names),
    st.builds(ast.AttrType, st.just("vector"), names, st.none() | expressions),
    st.builds(ast.AttrType, st.just("vector"), names, rests, rest=st.just(True)),
    st.builds(ast.AttrType, st.just("enum"), choices=several(names, 1)),
)
attrs = several(st.builds(ast.Attr, names, attr_types, st.none() | expressions))
indices = several(
    st.one_of(
        st.builds(ast.Index, names, st.none() | expressions),
        st.builds(ast.Index, names, st.none() | rests, rest=st.just(True)),
    )
)
calls = st.builds(ast.Call, names, several(expressions), several(st.tuples(names, expressions)))
within = st.none() | st.tuples(expressions, expressions)
assigns = st.builds(ast.Assign, several(names, 1), calls)
constants = st.builds(ast.Let, names, expressions)
op_statements = st.one_of(
    st.builds(ast.Require, names, expressions, texts),
    st.builds(ast.Ensure, names, expressions, texts),
    st.builds(ast.Some, names, types, st.none() | calls),
    st.builds(ast.Let, names, expressions, several(names)),
    st.builds(ast.Let, names, expressions, rest=st.just(True)),
    st.builds(ast.Grad, names, names),
    st.builds(ast.Unspecified, names, indices, expressions),
    st.builds(ast.Equation, names, indices, expressions, st.just("") | names),
    assigns,
)
model_statements = st.recursive(
    st.one_of(
        st.builds(ast.Param, names, types, within, st.none() | expressions), constants, assigns
    ),
    lambda inner: st.builds(ast.For, names, expressions, several(inner)),
    max_leaves=4,
)
docs = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cn"), include_characters="\n",
                  exclude_characters="\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
    max_size=20,
).map(str.strip).filter(lambda doc: '"""' not in doc)  # fmt: skip
model_inputs = several(st.builds(ast.ModelInput, names, types, within))
model_outputs = several(st.builds(ast.ModelOutput, names, types), 1)
inputs = several(st.builds(ast.Input, names, types, st.none() | expressions, st.just("") | names))
outputs = several(
    st.builds(ast.Output, names, types)
    | st.builds(ast.Output, names, types, family=names, count=expressions),
    1,
)
items = st.one_of(
    st.builds(
        ast.Op, names, several(st.tuples(names, names)), inputs, attrs, outputs,
        several(op_statements, 0, 4), docs,
    ),
    st.builds(ast.Model, names, model_inputs, model_outputs, several(model_statements), docs),
    st.builds(
        ast.Block, names, model_inputs, attrs, model_outputs, several(model_statements), docs
    ),
    constants,
)  # fmt: skip
files = st.builds(ast.File, several(items), st.none() | st.just(1))

# ---- the inverse --------------------------------------------------------------------------------


@given(expressions)
@settings(max_examples=500)
def test_an_expression_reads_back_as_itself(expr: ast.Expr) -> None:
    assert same(parse_expr(print_expr(expr)), expr)


@given(types)
def test_a_type_reads_back_as_itself(tensor: ast.TensorType) -> None:
    assert same(parse_type(print_type(tensor)), tensor)


@given(files)
@settings(max_examples=75)
def test_a_file_reads_back_as_itself(file: ast.File) -> None:
    text = print_file(file)
    assert same(parse(text), file)
    assert print_file(parse(text)) == text


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_texts_of_the_repository_are_as_the_formatter_writes_them(path: Path) -> None:
    file = parse(path.read_text("utf-8"))
    text = print_file(file)
    assert text == path.read_text("utf-8")
    assert same(parse(text), file)
    assert print_file(parse(text)) == text


def test_every_kind_of_node_is_generated() -> None:
    """The strategies above leave no class of the syntax out."""
    kinds = {
        cls for cls in vars(ast).values()
        if isinstance(cls, type) and issubclass(cls, ast.Node)
        and cls not in (ast.Node, ast.Statement)
    }  # fmt: skip
    seen: set[type] = set()

    @given(files, several(op_statements, 3, 6), several(model_statements, 2, 4))
    @settings(max_examples=200)
    def collect(
        file: ast.File, inner: tuple[ast.Statement, ...], outer: tuple[ast.Statement, ...]
    ) -> None:
        for part in (file, *inner, *outer):
            seen.update(type(node) for node in ast.walk(part))

    collect()
    assert kinds - seen == set()


# ---- numbers ------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=500)
def test_every_float_reads_back_bit_for_bit(bits: int) -> None:
    value = abs(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if value != value or value == float("inf"):
        assert print_number(value) in ("nan", "inf")
        return
    read = parse_expr(print_number(value))
    assert isinstance(read, ast.Number)
    assert isinstance(read.value, float)
    assert struct.pack("<d", read.value) == struct.pack("<d", value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1.0"), (1e-5, "1e-5"), (1e16, "1e16"), (0.1, "0.1"), (10**30, "1" + "0" * 30),
     (5e11, "5e11"), (1234.5e9, "1.2345e12"), (-2e6, "-2e6"), (200000.0, "200000.0"),
     (1000001.0, "1000001.0"), (5e-324, "5e-324"), (1.5e300, "1.5e300"), (-2, "-2"),
     (True, "true")],
)  # fmt: skip
def test_numbers_are_short(value: float, text: str) -> None:
    assert print_number(value) == text


# ---- taste --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("((a)) + (b*c)", "a + b * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a or (b and c)", "a or b and c"),
        ("(a or b) and c", "(a or b) and c"),
        ("not (a and b)", "not (a and b)"),
        ("-(-x)", "--x"),
        ("-(a + b)", "-(a + b)"),
        ("(a * b) // (c * d)", "a * b // (c * d)"),
        ("(sum(k<K) x[k]) / n", "(sum(k < K) x[k]) / n"),
        ("b + (sum(k<K) x[k])", "b + sum(k < K) x[k]"),
        ("(sum(k<K) x[k]) + b", "(sum(k < K) x[k]) + b"),
        ("a*(sum(k<K) x[k])", "a * sum(k < K) x[k]"),
        ("(x[i] ?? 0) * 2", "(x[i] ?? 0) * 2"),
        ("(if a then b else c) + 1", "(if a then b else c) + 1"),
        ("f(x,y;k=1)", "f(x, y; k = 1)"),
        ("f(;k=1)", "f(; k = 1)"),
        ("x[ (o*s+k).. ,j..]", "x[(o * s + k).., j..]"),
        ("0.00001 + 1.50", "1e-5 + 1.5"),
        ("max((a < b), c)", "max((a < b), c)"),
        ("[i*2 for i<n if i!=k]", "[i * 2 for i < n if i != k]"),
    ],
)
def test_parentheses_are_few(source: str, printed: str) -> None:
    assert print_expr(parse_expr(source)) == printed


LONG = """\
op conv[T: float](x: T[N, C, S..], w: T[F, G, K..], b: T[F] = 0;
    stride: int[S..] = 1, dilation: int[S..] = 1, groups: int = 1,
    pad: {valid, same, given} = valid, before: int[S..] = 0, after: int[S..] = 0)
    -> y: T[N, F, O..], an_output_with_a_long_name: T[N, F, O..] {
  require channels: C == groups * G
      else "input has {C} channels; {groups} groups of {G} need {groups*G}"
  let O.. = S
  y[n, f, o..] = b[f]
      + sum(c < G, k.. < K..)
          (x[n, first(f) + c, (o * stride + k * dilation - lo)..] ?? 0) * w[f, c, k..]
}
"""


def test_long_lines_are_wrapped_where_one_would_do_it() -> None:
    printed = print_file(parse(LONG))
    assert printed == LONG
    assert max(map(len, printed.splitlines())) <= WIDTH


def test_reserved_words_are_those_of_the_grammar() -> None:
    grammar = (ROOT / "grammar" / "nnir.lark").read_text("utf-8")
    listed = re.search(r"NAME: /\(\?!\(([\w|]+)\)", grammar)
    assert listed is not None
    assert set(listed.group(1).split("|")) == RESERVED
