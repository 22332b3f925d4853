"""Idioms: the list is well-formed, equal parts are one call, and programs hold them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import irlang.gen.idiom
from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.gen.build import generate
from irlang.gen.choice import Chooser
from irlang.gen.draft import Fixed, Value
from irlang.gen.draw import Limits
from irlang.gen.idiom import GIVEN, New, Result, Step, fix, idiom, idioms, otherwise
from irlang.gen.idiomatic import Idioms
from irlang.gen.kit import kit_of
from irlang.gen.mark import mark
from irlang.gen.pattern import pattern
from irlang.gen.profile import profile
from irlang.gen.solve import solve
from irlang.graph import Graph, Port
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse

NAMES = frozenset(builtin().names())
TEXT = Path(irlang.gen.idiom.__file__).with_name("idioms.txt").read_text("utf-8")
LINES = [line for line in TEXT.splitlines() if line and not line.startswith("#")]


def test_every_line_is_an_idiom_of_the_catalogue_and_none_is_there_twice() -> None:
    assert len(LINES) == len(set(LINES))
    assert len(idioms(NAMES)) == len(LINES)
    for line in LINES:
        for step in idiom(line):
            op = builtin().op(step.op)
            assert op is not None
            assert set(step.attrs) <= {attr.name for attr in op.attrs}, line
            assert len(step.operands) <= len(op.inputs) or op.inputs[-1].family, line


def test_equal_parts_are_one_call_unless_something_is_left_open() -> None:
    assert idiom("divide(exp(x), reduce_sum(exp(x)))") == (
        Step("exp", (GIVEN,), {}),
        Step("reduce_sum", (0,), {}),
        Step("divide", (0, 1), {}),
    )
    assert [step.op for step in idiom("add(dense(x, _), dense(x, _))")] == ["dense", "dense", "add"]


def test_a_call_gives_any_of_its_results() -> None:
    assert idiom("take_along_axis(x, result(sort(x), 1))") == (
        Step("sort", (GIVEN,), {}),
        Step("take_along_axis", (GIVEN, Result(0, 1)), {}),
    )


@pytest.mark.parametrize("line", [line for line in LINES if "result(" in line])
def test_what_reads_a_second_result_is_made_and_reads_it(line: str) -> None:
    steps, made = idiom(line), 0
    kit = kit_of(builtin(), None)
    for seed in range(40):
        graph = Idioms(kit, Chooser(seed), Limits()).piece(steps)
        read = {name for node in graph.nodes for name in node.operands()}
        made += any(name in read for node in graph.nodes for name in node.outputs[1:])
    assert made >= 2, line


def test_what_is_new_is_of_the_type_that_is_said() -> None:
    steps, kit = idiom("matmul_integer(x_u8, _i8, _u8, _i8)"), kit_of(builtin(), None)
    assert steps[0].operands == (GIVEN, New("i8"), New("u8"), New("i8"))
    types = set()
    for seed in range(20):
        graph = Idioms(kit, Chooser(seed), Limits()).piece(steps)
        for node in graph.nodes[:1]:
            types.add(tuple(graph.values[name].dtype for name in node.operands()))
    assert ("u8", "i8", "u8", "i8") in types


def test_numbers_choices_and_lists_are_read() -> None:
    assert idiom("power(x, -0.5)") == (Step("power", (GIVEN, -0.5), {}),)
    assert idiom("slice(x; axes = [0], end = [-1])")[0].attrs == {"axes": (0,), "end": (-1,)}
    assert idiom("gelu(x; approximate = tanh)")[0].attrs == {"approximate": "tanh"}
    assert idiom("cast(x; to = f16)")[0].attrs == {"to": "f16"}
    assert idiom("reduce_max(x; keepdims = true)")[0].attrs == {"keepdims": True}


def _holds(graph: Graph, steps: tuple[Step, ...]) -> bool:
    """Whether the last call of an idiom is there, reading what the idiom says it reads."""
    producer = {value: node for node in graph.nodes for value in node.outputs}

    def matches(name: str, number: int) -> bool:
        node = producer.get(name)
        step = steps[number]
        if node is None or node.op.name != step.op:
            return False
        operands = list(node.operands())
        return all(
            any(matches(operand, before) for operand in operands)
            for before in step.operands
            if type(before) is int and before != GIVEN
        )

    return any(matches(name, len(steps) - 1) for name in producer)


def test_programs_are_valid_and_hold_idioms_that_random_wiring_would_not_make() -> None:
    wanted = [one for one in idioms(NAMES) if len(one) >= 3]
    held: Counter[str] = Counter()
    for seed in range(150):
        program = generate(builtin(), seed, size=(6, 16))
        assert check(parse(program.text), builtin()).valid, program.text
        held.update(str(one) for one in wanted if _holds(program.graph, one))
    assert len(held) >= 8  # without idioms: none in 300 programs


@pytest.mark.parametrize("seed", range(5))
def test_idioms_are_part_of_what_is_replayed(seed: int) -> None:
    program = generate(builtin(), seed, size=(10, 10))
    again = generate(builtin(), seed + 1000, size=(10, 10), replay=program.choices)
    calls = [(n.op.name, n.inputs, n.attrs) for n in program.graph.nodes]
    assert [(n.op.name, n.inputs, n.attrs) for n in again.graph.nodes] == calls


def test_programs_of_idioms_alone_hold_most_of_them_whole() -> None:
    wanted = idioms(NAMES)
    held: Counter[str] = Counter()
    ones = 0
    calls: Counter[bool] = Counter()
    own = {step.op for one in wanted for step in one}
    for seed in range(60):
        graph = generate(builtin(), seed, size=(4, 16), pieces=100).graph
        assert 1 <= len(graph.nodes) <= 16
        calls.update(node.op.name in own for node in graph.nodes)
        held.update(str(one) for one in wanted if len(one) >= 3 and _holds(graph, one))
        lone = [p for p in graph.params.values() if p.initial and not p.literal]
        ones += any(set(p.info.shape) == {1} for p in lone)
    assert calls[False] * 50 <= calls[True]  # what mends a call may stand before it
    assert len(held) >= 25  # of 60; where idioms were taken as far as they went, 8 in 150 programs
    assert ones >= 3  # numbers that have axes


def test_what_an_idiom_does_not_say_may_be_drawn_or_plain() -> None:
    op = builtin().op("relu")
    assert op is not None
    made = pattern(op)
    steps = {plain: Fixed({}, {}, plain) for plain in (True, False)}
    for seed in range(20):
        drawn = solve(made, Chooser(seed), Limits(), [], [], profile(made), 0, steps[True])
        assert drawn is not None
        assert drawn.attrs == {}
    free = [
        solve(made, Chooser(seed), Limits(), [], [], profile(made), 0, steps[False])
        for seed in range(20)
    ]
    assert any(one is not None and one.attrs for one in free)


def test_a_call_that_does_not_fit_leaves_nothing_behind() -> None:
    graph = generate(builtin(), 3, size=(2, 2)).graph
    live = [Value("v", next(iter(graph.values.values())), "", 1)]
    named = {"v": live[0]}
    before = list(graph.values), list(graph.inputs), list(graph.params), len(graph.nodes)
    undo = mark(graph, live, named)
    info = TensorInfo((2,), "f32")
    graph.values["new"] = info
    graph.inputs["new"] = Port(info, None)
    graph.nodes.append(graph.nodes[0])
    live[0].uses += 1
    live.append(Value("new", info))
    named["new"] = live[-1]
    undo()
    assert (list(graph.values), list(graph.inputs), list(graph.params), len(graph.nodes)) == before
    assert [v.name for v in live] == ["v"]
    assert live[0].uses == 1
    assert list(named) == ["v"]


def test_numbers_that_a_type_does_not_reach_are_not_put_into_it() -> None:
    (step,) = idiom("multiply(x, 1e30)")
    op = builtin().op("multiply")
    assert op is not None
    slots = pattern(op).slots
    for dtype, fits in (("f32", True), ("bf16", True), ("f16", False), ("i32", False)):
        fixed = fix(step, slots, {GIVEN: Value("x", TensorInfo((3,), dtype))})
        assert (fixed is not None) == fits


def _made(text: str, count: int = 40) -> list[Graph]:
    steps = idiom(text)
    made = [generate(builtin(), seed, piece=steps).graph for seed in range(count)]
    return [graph for graph in made if len(graph.nodes) == len(steps)]


def _before(graph: Graph, op: str) -> TensorInfo:
    """What the first operand of a call of an operator is."""
    node = next(node for node in graph.nodes if node.op.name == op)
    return graph.values[next(iter(node.operands()))]


def test_x_is_of_the_type_that_is_said() -> None:
    assert idiom("relu(x_i8)") == (Step("relu", (GIVEN,), {}, "i8"),)
    assert idiom("relu(x)") == (Step("relu", (GIVEN,), {}),)
    made = _made("reshape(dequantize_linear(x_i8, 0.02))")
    assert len(made) > 20
    assert {_before(graph, "dequantize_linear").dtype for graph in made} == {"i8"}
    scales = {graph.values[graph.nodes[0].inputs["scale"]].dtype for graph in made}  # type: ignore[index]
    assert scales == {"f32"}  # a number beside integers


@pytest.mark.parametrize(
    "text",
    [
        "conv(pad(x; before = [0, 0, 1, 0], after = [0, 0, 0, 2]))",
        "max_pool(pad(negate(abs(x)); before = [0, 0, 1, 0], after = [0, 0, 0, 1]))",
    ],
)
def test_there_are_as_many_axes_as_an_attribute_has_numbers(text: str) -> None:
    made = _made(text)
    assert len(made) > 20
    told = [graph for graph in made if isinstance(_attrs(graph, "pad").get("before"), tuple)]
    assert len(told) > 0.7 * len(made)  # of some, an attribute is dropped on purpose
    assert {len(_before(graph, "pad").shape) for graph in told} == {4}


def _attrs(graph: Graph, op: str) -> dict[str, object]:
    return next(dict(node.attrs) for node in graph.nodes if node.op.name == op)


def test_windows_behind_another_call_mostly_have_axes_to_slide_along() -> None:
    made = _made("avg_pool(pad(x))", 60)  # others read what comes of some, which are not counted
    ranks = [len(_before(graph, "avg_pool").shape) for graph in made]
    assert len(made) > 20
    assert sum(rank > 2 for rank in ranks) > 0.7 * len(ranks)


def test_what_an_idiom_names_is_given_though_it_need_not_be() -> None:
    for text, dtype in (
        ("quantize_linear(relu(x), 0.5, _; to = i8)", "i8"),
        ("quantize_linear(relu(x), 0.5, _)", "u8"),
    ):
        made = [
            graph
            for seed in range(40)
            for graph in [generate(builtin(), seed, piece=idiom(text)).graph]
            if [node.op.name for node in graph.nodes[:2]] == ["relu", "quantize_linear"]
        ]
        given = [graph.nodes[1].inputs.get("zero_point") for graph in made]
        assert len(given) > 20
        found = Counter(
            graph.values[name].dtype if isinstance(name, str) else ""
            for graph, name in zip(made, given, strict=True)
        )
        assert found[dtype] > 0.8 * len(given)  # of some, the type is dropped on purpose
        assert found[""] == 0


def test_all_calls_of_a_layer_go_along_another_axis_together() -> None:
    steps = idiom(
        "divide(subtract(x, reduce_mean(x; axes = [-1], keepdims = true)), reduce_mean("
        "square(subtract(x, reduce_mean(x; axes = [-1], keepdims = true))); axes = [-1], "
        "keepdims = true))"
    )
    found = {
        tuple(step.attrs["axes"] for step in made if "axes" in step.attrs)
        for made in (otherwise(steps, Chooser(seed)) for seed in range(60))
    }
    assert found >= {((-2,), (-2,)), ((-2, -1), (-2, -1)), ((-1,), (-1,))}
    plain = idiom("relu(conv(x))")
    assert all(len(otherwise(plain, Chooser(seed))) == 2 for seed in range(5))


def test_small_and_large_scales_are_written() -> None:
    """A scale may be any number above 0."""
    for scale in ("0.004", "64"):
        line = f"quantize_linear(sigmoid(dequantize_linear(x_u8, {scale})), {scale})"
        drawn = (generate(builtin(), seed, piece=idiom(line)).graph for seed in range(8))
        assert any(len(graph.nodes) >= 3 for graph in drawn), scale


def test_scales_run_along_an_axis_at_times() -> None:
    line = "quantize_linear(concat(dequantize_linear(x_u8, 0.1), dequantize_linear(_, 0.2)), 0.1)"
    made = [otherwise(idiom(line), Chooser(seed)) for seed in range(60)]
    bare = [one for one in made if all(step.operands[1] is None for step in one[:2])]
    assert bare  # both at once, as parts of one layer
    shapes = {
        graph.values[node.inputs["scale"]].shape
        for seed in range(20)
        for graph in [generate(builtin(), seed, piece=bare[0]).graph]
        for node in graph.nodes
        if node.op.name == "dequantize_linear" and isinstance(node.inputs["scale"], str)
    }
    assert (1,) in shapes
    assert any(size > 1 for shape in shapes for size in shape)


@pytest.mark.parametrize("exponent", [-2, 2])
def test_a_number_that_no_call_may_read_is_not_written(exponent: int) -> None:
    """An integer has no negative power."""
    read = set()
    for seed in range(12):
        graph = generate(builtin(), seed, piece=idiom(f"power(x_i32, {exponent})")).graph
        run(graph, {**inputs(graph, 1), **initial_values(graph, 1)}, builtin())
        numbers = {n: p.initial for n, p in graph.params.items() if p.initial is not None}
        powers = [node.inputs["b"] for node in graph.nodes if node.op.name == "power"]
        read |= {numbers[name].args[0] for name in powers if name in numbers}
    assert (exponent in read) == (exponent > 0)


@pytest.mark.parametrize("text", ["equal(x, x)", "abs(multiply(x, x))", "matmul(x, x)"])
def test_what_reads_one_value_twice_begins_a_piece(text: str) -> None:
    """Its first call would read two new tensors where `x` is not drawn before it."""
    steps = idiom(text)
    first = [
        tuple(graph.nodes[0].inputs.values())
        for seed in range(24)
        for graph in [generate(builtin(), seed, piece=steps).graph]
        if graph.nodes
    ]
    twice = [inputs for inputs in first if inputs[0] == inputs[1]]
    assert len(twice) > len(first) / 2 >= 4  # in a few one operand is another tensor


def test_an_idiom_that_leaves_nothing_of_a_tensor_is_made() -> None:
    steps = idiom("broadcast_to(reduce_max(x1; axes = [0], keepdims = true); shape = [0])")
    kit, whole = kit_of(builtin(), None), 0
    for seed in range(20):
        graph = Idioms(kit, Chooser(seed), Limits()).piece(steps)
        whole += any(0 in graph.values[node.outputs[0]].shape for node in graph.nodes)
    assert whole >= 18
