"""Programs that keep channels last from one operator of windows to the next, as people do."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.graph import Graph
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.channels import goes_by_place
from irlang.lower.lower import lower
from irlang.parser import parse
from tests.lower_calls import case
from tests.targets import usable

# What goes element by element behind a result `h` of 3 channels, with what it reads beside it.
_STEPS = (
    ("relu(h)", ""),
    ("leaky_relu(h; alpha = 0.1)", ""),
    ("add(h, b{n})", "param b{n}: f32[3{ones}] in [-1, 1]"),
    ("multiply(b{n}, h)", "param b{n}: f32[1, 3{ones}] in [-1, 1]"),
    ("add(h, b{n})", "param b{n}: f32[{size}] in [-1, 1]"),
    ("subtract(b{n}, h)", "param b{n}: f32[] in [-1, 1]"),
    ("maximum(h, 0.25)", ""),
    ("add(h, h)", ""),
    ("where(greater(h, 0.0), h, b{n})", "param b{n}: f32[2, 1{ones}] in [-1, 1]"),
    ("batch_norm(h, g, g, g, v)", ""),
    ("conv(h, w)", ""),
    ("max_pool(h; window = 1)", ""),
    ("softmax(h; axis = 1)", ""),
    ("transpose(transpose(h))", ""),
    ("reverse(h; axes = [1])", ""),
    ("cumsum(h; axis = 2)", ""),
    ("pad(h; before = [0, 1{ones}], after = [0, -1{less}])", ""),
    ("pad(h; before = [0, 0{ones}], after = [0, 0{less}], value = 2)", ""),
    ("slice(h; axes = [0, 1], begin = [0, 0], end = [2, 3])", ""),
    ("broadcast_to(h; shape = [2, 3{sizes}])", ""),
)


def model(
    steps: list[int],
    rank: int,
    shown: set[int],
    size: int = 4,
    batch: int = 2,
    first: str = "conv(x, w)",
) -> Graph:
    """A convolution of so many axes and steps behind it; some of the values are results. first:
    what stands there instead.
    """
    ones, less, sizes = ", 1" * rank, ", -1" * rank, f", {size}" * rank
    lines = [f"param w: f32[3, 3{ones}] in [-1, 1]", "param g: f32[3] in [-1, 1]"]
    lines += ["param v: f32[3] in [0.5, 2]", f"h0 = {first}"]
    for n, step in enumerate(steps):
        call, declared = (
            part.format(n=n, ones=ones, less=less, size=size, sizes=sizes) for part in _STEPS[step]
        )
        lines += [declared] * bool(declared)
        lines.append(f"h{n + 1} = {re.sub(r'(?<![a-z])h(?![a-z])', f'h{n}', call)}")
    shape = f"f32[{batch}, 3{sizes}]"
    shown = {n for n in shown if n <= len(steps)} | {len(steps)}
    results = ", ".join(f"h{n}: {shape}" for n in sorted(shown))
    body = "\n  ".join(lines)
    text = f"nnir 1\nmodel m(x: {shape} in [-1, 1]) -> {results} {{\n  {body}\n}}\n"
    (graph,) = check(parse(text), builtin()).graphs
    return graph


_MODELS = st.builds(
    model,
    st.lists(st.integers(0, len(_STEPS) - 1), max_size=6),
    st.integers(1, 3),
    st.sets(st.integers(0, 6), max_size=2),
    st.sampled_from([1, 3, 4]),
    st.just(2),
    st.sampled_from(["conv(x, w)", "relu(x)", "negate(x)"]),
)


@pytest.fixture(scope="module")
def session() -> Session:  # type: ignore[misc]
    usable("tf")
    with Session(["tf"]) as opened:
        yield opened


def agrees(session: Session, graph: Graph) -> bool:
    one = Case(graph, inputs(graph, 1), initial_values(graph, 1), builtin())
    (outcome,) = session.compare([one])
    return all(v.verdict in ("agrees", "rounding") for n in outcome.verdicts.values() for v in n)


@given(_MODELS)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_keeps_its_channels_last_computes_the_same(session: Session, graph: Graph) -> None:
    assert agrees(session, graph)


def test_keras_keeps_them_last_too() -> None:
    usable("keras:tensorflow")
    graph = model([0, 6, 7, 10, 11, 1], 2, set(), batch=3)
    with Session(["keras:tensorflow"]) as session:
        assert agrees(session, graph)
    code = str(lower(graph, "keras:tensorflow", builtin(), initial_values(graph, 1)).code)
    assert code.count("ops.transpose(x") == code.count("(0, 3, 1, 2)") == 1


def text(graph: Graph) -> str:
    return str(lower(graph, "tf", builtin(), initial_values(graph, 1)).code)


def test_a_chain_is_turned_at_its_ends_alone() -> None:
    code = text(model([0, 2, 9, 6, 10, 3, 11, 1], 2, set()))
    assert code.count("[0, 3, 1, 2]") == code.count("[0, 2, 3, 1]") == 1
    assert "tf.nn.relu(h0_last)" in code
    assert "b1_last = tf.reshape(b1, [3])" in code


def test_what_a_convolution_alone_reads_is_made_for_it() -> None:
    code = text(model([6, 2, 10, 0], 2, set(), first="relu(x)"))
    assert code.count("[0, 3, 1, 2]") == code.count("[0, 2, 3, 1]") == 1
    assert "tf.nn.relu(x_last)" in code
    shown = text(model([6, 10], 2, {1}, first="relu(x)"))
    assert "tf.nn.relu(x)" in shown


def test_a_padding_stands_right_in_front_of_its_convolution() -> None:
    pad = "pad(x; before = [1, 0, 2, 0], after = [0, 0, 0, 2])"
    lines = f"param w: f32[3, 3, 1, 1] in [-1, 1]\n  y = conv({pad}, w)"
    shapes = "x: f32[2, 3, 4, 4] in [-1, 1]) -> y: f32[3, 3, 6, 6]"
    code = text(check(parse(f"nnir 1\nmodel m({shapes} {{\n  {lines}\n}}\n"), builtin()).graphs[0])
    assert "tf.pad(x_last, [[1, 0], [2, 0], [0, 2], [0, 0]])" in code
    assert code.count("[0, 3, 1, 2]") == code.count("[0, 2, 3, 1]") == 1


@pytest.mark.parametrize("call", ["reverse(h; axes = [1])", "cumsum(h; axis = 1)"])
def test_an_axis_that_is_named_is_no_other_axis(session: Session, call: str) -> None:
    lines = f"param w: f32[1, 3, 1, 1] in [-1, 1]\n  h = conv(x, w)\n  y = relu({call})"
    shapes = "x: f32[2, 3, 4, 4] in [-1, 1]) -> y: f32[2, 1, 4, 4]"
    (graph,) = check(parse(f"nnir 1\nmodel m({shapes} {{\n  {lines}\n}}\n"), builtin()).graphs
    assert agrees(session, graph)


def test_what_is_shown_on_the_way_is_turned_beside_the_chain() -> None:
    code = text(model([0, 0], 2, {1}))
    assert code.count("[0, 3, 1, 2]") == 2
    assert "tf.nn.relu(h1_last)" in code


@pytest.mark.parametrize(("declared", "call", "by_place"), [
    ("x: f32[2, 3, 4]", "relu(x)", True),
    ("x: f32[2, 3, 4], b: f32[3, 1]", "add(x, b)", True),
    ("x: f32[2, 3, 4]", "clip(x; min = 0)", True),
    ("x: f32[2, 3, 4]", "softmax(x)", False),
    ("x: f32[3, 3]", "transpose(x)", False),
    ("x: f32[3, 3]", "cumsum(x)", False),
    ("x: f32[3, 3]", "reverse(x; axes = [0])", False),
    ("x: f32[3, 4], g: f32[4], v: f32[4]", "batch_norm(x, g, g, g, v)", True),
    ("x: f32[3, 4], g: f32[3], v: f32[3]", "batch_norm(x, g, g, g, v; axis = 0)", False),
    ("x: f32[3, 3]", "dropout(x; training = true)", False),
])  # fmt: skip
def test_what_goes_by_place(declared: str, call: str, by_place: bool) -> None:
    one = case(declared, call)
    assert goes_by_place(one.graph.nodes[0].expansion(one.catalog)) is by_place


def test_what_has_one_element_is_turned_as_others_are(session: Session) -> None:
    shape = "f32[1, 1, 1, 1]"
    lines = "param w: f32[1, 1, 1, 1] in [-1, 1]\n  y = conv(tanh(x), w)"
    source = f"nnir 1\nmodel m(x: {shape} in [-1, 1]) -> y: {shape} {{\n  {lines}\n}}\n"
    (graph,) = check(parse(source), builtin()).graphs
    assert agrees(session, graph)
    assert "tf.reshape" not in text(graph)
