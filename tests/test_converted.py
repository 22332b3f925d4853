"""Calls on numbers of other types, of which a framework makes the conversions by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.pieces import pieces
from irlang.diff.programs import Settings, with_balls
from irlang.diff.runner import Session
from irlang.diff.verdict import FINDINGS
from irlang.gen.build import generate
from irlang.gen.converted import converted
from irlang.graph import Graph
from irlang.interp.shape import check
from irlang.interp.values import inputs
from irlang.lower import mx_ops, to_jax, to_keras, to_torch
from irlang.lower.lower import lower, promoting
from irlang.lower.manner import Manner
from irlang.lower.promotes import PROMOTES, unconverted
from irlang.lower.value import Value
from irlang.parser import parse

for package in ("torch", "jax", "keras"):
    pytest.importorskip(package, reason=f"{package} is not installed")

BOLD = Manner(bold=True)


def model(text: str) -> Graph:
    checked = check(parse(f"nnir 1\n\n{text}\n"), builtin())
    assert not checked.diagnostics, checked.diagnostics
    (graph,) = checked.graphs
    return graph


def _text(graph: Graph, target: str, manner: Manner) -> str:
    lowered = lower(graph, target, builtin(), {}, manner=manner)
    assert not lowered.unsupported
    assert isinstance(lowered.code, str)
    return lowered.code


@pytest.mark.parametrize(
    ("call", "dtypes", "target", "written"),
    [
        ("divide(cast(a; to = f32), b)", ("f16", "f32"), "torch", "torch.div(a, b)"),
        ("add(a, cast(b; to = f32))", ("f32", "i32"), "torch", "a + b"),
        ("add(a, cast(b; to = f32))", ("f32", "i32"), "jax", "a + b"),
        ("exp(cast(a; to = f32))", ("i64", "f32"), "torch", "torch.exp(a)"),
        ("maximum(cast(a; to = f64), b)", ("f32", "f64"), "keras:torch", None),
        ("maximum(cast(a; to = f32), b)", ("f16", "f32"), "keras:torch", "ops.maximum(a, b)"),
    ],
)
def test_a_conversion_is_left_to_a_word_that_makes_it(
    call: str, dtypes: tuple[str, str], target: str, written: str | None
) -> None:
    first, second = dtypes
    used = "b" in call
    graph = model(
        f"model m(a: {first}[2]{f', b: {second}[2]' if used else ''}) "
        f"-> y: {'f64' if 'f64' in dtypes else 'f32'}[2] {{\n  y = {call}\n}}"
    )
    lowered = lower(graph, target, builtin(), {}, manner=BOLD)
    if written is None:  # the backend has no such type
        assert lowered.unsupported
        return
    text = _text(graph, target, BOLD)
    assert written in text
    assert lowered.dared
    assert lowered.left == {"cast"}
    usual = lower(graph, target, builtin(), {})
    assert written not in str(usual.code)
    assert not usual.left


@pytest.mark.parametrize(
    "call",
    [
        "exp(cast(a; to = f64))",  # PyTorch makes f32 of whole numbers
        "negate(cast(a; to = f32))",  # which whole numbers have themselves
        "add(cast(a; to = f32), cast(a; to = f32))",  # both: it would be a sum of whole numbers
        "add(cast(a; to = f32), 1)",  # numbers give way to tensors
        "floor(cast(a; to = f32))",
    ],
)
def test_a_conversion_is_written_where_another_thing_comes_without_it(call: str) -> None:
    kind = "f64" if "f64" in call else "f32"
    graph = model(f"model m(a: i32[2]) -> y: {kind}[2] {{\n  y = {call}\n}}")
    lowered = lower(graph, "torch", builtin(), {}, manner=BOLD)
    converted_in = str(lowered.code).count(".to(torch.")
    if call.startswith("add(cast(a; to = f32), cast"):
        assert converted_in == 1  # of the other operand
    else:
        assert not lowered.left
        assert converted_in == 1


def test_a_conversion_that_something_else_reads_stays() -> None:
    graph = model(
        "model m(a: f16[2], b: f32[2]) -> y: f32[2], z: f32[2] {\n"
        "  z = cast(a; to = f32)\n  y = add(z, b)\n}"
    )
    text = _text(graph, "torch", BOLD)
    assert "a + b" in text
    assert ".to(torch.float32)" in text


def test_of_two_operands_the_narrower_one_alone_is_left() -> None:
    a, b = Value("a", (2,), "f32"), Value("b", (2,), "f32")
    narrow, wide = Value("n", (2,), "f16"), Value("w", (2,), "f64")
    assert unconverted("PyTorch", "a + b", {"a": a, "b": b}, {"a": narrow}) == {
        "a": narrow, "b": b,
    }  # fmt: skip
    assert unconverted("PyTorch", "a + b", {"a": a, "b": b}, {"a": wide}) is None
    assert unconverted("TensorFlow", "a + b", {"a": a, "b": b}, {"a": narrow}) is None
    scalar = replace(b, shape=())
    assert unconverted("PyTorch", "a + b", {"a": a, "b": scalar}, {"a": narrow}) is None


def test_every_word_that_converts_is_one_of_a_table() -> None:
    tables = {
        "PyTorch": to_torch.TABLE, "JAX": to_jax.TABLE, "Keras": to_keras.TABLE,
        "MXNet": mx_ops.TABLE,
    }  # fmt: skip
    assert tables.keys() == PROMOTES.keys()
    for framework, table in tables.items():
        spellings = {word.spelling for row in table.values() for word in row.words}
        assert not PROMOTES[framework].keys() - spellings, framework


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**40), st.sampled_from(sorted(promoting("torch"))))
def test_what_is_converted_is_valid_and_of_other_types(seed: int, name: str) -> None:
    nodes = generate(builtin(), seed, ops=[name], apart=[name]).graph.nodes
    for node in nodes:
        graph = converted(node, builtin(), seed)
        if graph is None:
            continue
        *calls, last = graph.nodes
        assert last.op is node.op
        assert calls
        assert all(not one.instance.faults for one in graph.nodes)
        for call in calls:
            (given_to,) = call.operands()
            assert graph.values[given_to].dtype != graph.values[call.name].dtype
            assert graph.values[given_to].shape == graph.values[call.name].shape
        fed = inputs(graph, seed)
        assert fed.keys() == graph.inputs.keys()
        case = with_balls(Case(graph, fed, {}, builtin()))
        assert case.balls is not None


def test_what_frameworks_convert_is_what_the_conversion_makes() -> None:
    """Written or not, both are right, and a good part of the pieces leaves something to convert."""
    targets = ("torch", "jax")
    with Session(targets) as session:
        options = Settings(targets, 5, ops=("add", "divide", "maximum", "exp", "log1p"))
        made = [
            case
            for *_, case in pieces(options, 0, builtin(), session.can_run, 96, dares=session.dares)
            if case.manner.bold
        ]
        assert len(made) > 12
        for case, outcome in zip(made, session.compare(made), strict=True):
            for target in targets:
                text = lower(case.graph, target, builtin(), {}, manner=case.manner)
                assert not text.unsupported or not text.left
            found = {v.verdict for some in outcome.verdicts.values() for v in some}
            assert not found & (FINDINGS - {"edge", "inaccurate"}), (case.graph, found)
    assert np.size(next(iter(made[0].inputs.values())))
