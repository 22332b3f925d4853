"""Pieces that stand apart: every idiom in turn, as a program of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from irlang.catalog import builtin
from irlang.diff import pieces as module
from irlang.diff.pieces import beside, pieces
from irlang.diff.programs import Settings
from irlang.diff.rounds import Rounds
from irlang.diff.seen import Seen, calls_of
from irlang.gen.build import generate
from irlang.gen.choice import Chooser
from irlang.gen.composed import composed
from irlang.gen.draw import Limits
from irlang.gen.idiom import GIVEN, Idiom, idiom, idioms, is_call, otherwise
from irlang.gen.judge import judge
from irlang.gen.kit import kit_of
from irlang.gen.pattern import Pattern
from irlang.graph import Graph

OPS = ("add", "multiply", "relu", "negate", "square", "sqrt", "reduce_mean", "subtract", "divide")
NORM = idiom(
    "divide(subtract(x, reduce_mean(x; axes = [-1], keepdims = true)), "
    "sqrt(add(reduce_mean(square(subtract(x, reduce_mean(x; axes = [-1], keepdims = true))); "
    "axes = [-1], keepdims = true), 0.001)))"
)


def _drawn(steps: Idiom, count: int, limits: Limits | None = None) -> list[Graph]:
    return [generate(builtin(), seed, piece=steps, limits=limits).graph for seed in range(count)]


def test_every_idiom_has_its_turn_before_one_has_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [one for one in kit_of(builtin(), frozenset(OPS)).idioms if not is_call(one)]
    turns: list[Idiom] = []

    def spied(*args: object, piece: Idiom, **more: object) -> object:
        if not turns or turns[-1] != piece:  # one that has no value is drawn again
            turns.append(piece)
        return generate(*args, piece=piece, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "generate", spied)
    monkeypatch.setattr(module, "composable", lambda _: [])  # composed ones have turns of their own
    settings = Settings((), 3, ops=OPS)
    wanted = {str(one): 2 if len(one) < 6 else 4 for one in known}  # long ones twice as often
    assert {2, 4} == {*wanted.values()}
    made = list(pieces(settings, 0, builtin(), lambda _: True, sum(wanted.values())))
    assert Counter(map(str, turns)) == wanted
    assert len(made) > 0.9 * sum(wanted.values())
    assert len({seed for _, seed, _ in made}) == len(made)
    again = islice(pieces(settings, 0, builtin(), lambda _: True), 5)
    assert [case.graph.nodes[-1].op.name for *_, case in again] == [
        case.graph.nodes[-1].op.name for *_, case in made[:5]
    ]


def test_pieces_that_a_target_has_operators_for_come_first_and_twice_as_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is composed of others says little that these do not."""
    monkeypatch.setattr(module, "spelt", lambda _: ("square", "sqrt"))
    monkeypatch.setattr(module, "composable", lambda _: [])
    settings = Settings(("torch",), 3, ops=("square", "sqrt", "abs", "negate"))
    known = [one for one in kit_of(builtin(), frozenset(settings.ops)).idioms if not is_call(one)]
    own = [one for one in known if {step.op for step in one} <= {"square", "sqrt"}]
    assert 0 < len(own) < len(known)
    made = list(pieces(settings, 0, builtin(), lambda _: True, len(own)))
    assert all({n.op.name for n in c.graph.nodes} <= {"square", "sqrt"} for *_, c in made)
    rounds = Rounds(known, own, settings.seed)
    turns = Counter(str(rounds.turn(place)[0]) for place in range(len(own) + len(known)))
    assert turns == Counter(map(str, [*own, *known]))


def test_targets_that_are_given_files_get_more() -> None:
    assert beside(["tf", "onnxruntime"]) == beside(["openvino"]) == 2 * beside(["torch", "tf:xla"])
    settings = Settings(("onnxruntime",), 3, ops=OPS)
    first, second = (list(pieces(settings, n, builtin(), lambda _: True, 40)) for n in (0, 1))
    assert {number for number, *_ in second} <= set(range(beside(["onnxruntime"]), 10**6))
    assert not {seed for _, seed, _ in first} & {seed for _, seed, _ in second}


@pytest.mark.parametrize(("ops", "every"), [(("sqrt", "negate", "add"), 2), ((), 8)])
def test_some_pieces_are_composed_of_the_operators(
    ops: tuple[str, ...], every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in two where operators are named, as few idioms are of these."""
    made: list[Idiom] = []

    def spied(patterns: list[Pattern], chooser: Chooser) -> Idiom:
        made.append(composed(patterns, chooser))
        return made[-1]

    monkeypatch.setattr(module, "composed", spied)
    drawn = list(pieces(Settings((), 3, ops=ops), 0, builtin(), lambda _: True, 32))
    last = [case.edge for number, _, case in drawn if number % every == every - 1]
    assert {*last} == {False, True}
    assert 32 // every <= len(made) <= 3 * 32 // every  # what has no value is drawn again
    if ops:
        assert {step.op for steps in made for step in steps} <= {*ops}


def test_operators_of_which_there_is_no_idiom_are_composed() -> None:
    settings = Settings((), 3, ops=("erfcx", "sinc"))
    made = list(pieces(settings, 0, builtin(), lambda _: True, 16))
    assert len(made) > 12
    assert 3 < sum(case.edge for *_, case in made) < 8
    assert all(1 < len(case.graph.nodes) < 5 for *_, case in made)


def test_operators_without_an_idiom_have_no_pieces() -> None:
    assert not list(pieces(Settings((), 3, ops=("conv_lstm",)), 0, builtin(), lambda _: True))


@pytest.mark.parametrize("together", [1, 6])
@pytest.mark.parametrize("others", [(), ("sqrt",)])
def test_operators_that_take_no_reals_end_no_batch(together: int, others: tuple[str, ...]) -> None:
    """What is composed begins with reals, so that there may be nothing of them among six."""
    whole = ("one_hot", "bit_not", "bit_count", "bit_and", "bit_or", "gcd", *others)
    settings = Settings(("torch",), 1, ops=whole)
    assert len(list(pieces(settings, 0, builtin(), lambda _: True, 24, together))) > 12


def test_most_idioms_can_be_drawn_by_themselves() -> None:
    known = idioms(builtin().names())
    made = [generate(builtin(), seed, piece=one).graph for seed, one in enumerate(known)]
    assert sum(bool(graph.nodes) for graph in made) > 0.9 * len(known)
    for graph in made:
        for node in graph.nodes:
            infos = {
                formal: graph.values[o] if isinstance(o, str) else tuple(map(graph.values.get, o))
                for formal, o in node.inputs.items()
            }
            judged = judge(node.op, infos, node.attrs)  # type: ignore[arg-type]
            assert judged is not None
            assert not judged.faults


@pytest.mark.parametrize("seed", range(40))
def test_one_thing_is_otherwise(seed: int) -> None:
    other = otherwise(NORM, Chooser(seed))
    assert [step.op for step in other] == [step.op for step in NORM]
    changed = [at for at, (a, b) in enumerate(zip(NORM, other, strict=True)) if a != b]
    if len(changed) > 1 and not any(None in other[at].operands for at in changed):
        # the axis of all that name one
        assert {str(other[at].attrs["axes"]) for at in changed} < {"(-2,)", "(-2, -1)"}
        assert all(replace(other[at], attrs=NORM[at].attrs) == NORM[at] for at in changed)
    at = changed[0]
    for operand in other[at].operands:
        assert type(operand) is not int or GIVEN <= operand < at


def test_all_kinds_of_things_are_otherwise_at_times() -> None:
    others = [otherwise(NORM, Chooser(seed)) for seed in range(200)]
    changed = [b for one in others for a, b in zip(NORM, one, strict=True) if a != b]
    attrs = [step.attrs for step in changed if step.op == "reduce_mean"]
    assert {"axes": [-1], "keepdims": False} in attrs or any(
        one.get("keepdims") is False for one in attrs
    )
    assert {"keepdims": True} in attrs  # along other axes than the last
    assert any(None in step.operands for step in changed)  # another value than `x`
    reversed_ = [step for step in changed if step.op == "subtract"]
    assert any(step.operands[-1] == GIVEN for step in reversed_)
    assert len({number for step in changed for number in step.numbers}) > 3
    alone = idiom("relu(x)")
    assert otherwise(alone, Chooser(1)) == alone


def test_values_from_inside_are_results_at_times_and_inputs_parameters() -> None:
    made = [graph for graph in _drawn(NORM, 120) if graph.nodes]
    inner = [{v for n in g.nodes for v in n.operands()} & {*g.outputs.values()} for g in made]
    assert 3 < sum(map(bool, inner)) < 30
    joined = [g for g in _drawn(idiom("add(matmul(x, _), _)"), 80) if g.nodes]
    assert {bool(g.params) for g in joined} == {True, False}
    assert {bool(g.inputs) for g in joined} == {True, False}


def test_an_operand_may_be_wider_than_what_it_meets() -> None:
    made = _drawn(idiom("add(relu(x), _)"), 150, Limits(elements=64, length=3))
    shapes = [
        (g.values[g.nodes[0].outputs[0]].shape, g.values[g.nodes[-1].outputs[0]].shape)
        for g in made
        if len(g.nodes) == 2
    ]
    assert any(len(a) < len(b) for a, b in shapes)
    assert any(len(a) == len(b) and a != b for a, b in shapes)


def test_calls_that_are_wrong_together_do_not_explain_a_piece_of_many() -> None:
    seen = Seen()
    pair = next(g for g in _drawn(idiom("multiply(divide(1, x), _)"), 9) if len(g.nodes) == 2)
    whole = next(g for g in _drawn(NORM + idiom("multiply(x, _)"), 9) if len(g.nodes) > 6)
    culprit = ("onnxruntime", "refused", calls_of("divide + multiply", {}))
    for graph, share, explained in ((whole, 0.5, False), (whole, 0.0, True), (pair, 0.5, True)):
        seen.culprits.clear()
        seen.culprits[culprit] = 2
        assert seen.explains(graph, "onnxruntime", "refused", share) is explained


@pytest.mark.parametrize(
    "text",
    [
        "multiply(exp(x), exp(_))",  # a call that reads nothing else
        "reduce_max(stack(x, _))",  # a member of a family
        "add(relu(x), relu(_))",
        "add(conv(x, _), conv(x, _))",  # two of one operator
        "concat(conv(x, _), conv(x, _); axis = 1)",
        "add(multiply(dense(x, _), sigmoid(dense(x, _))), x)",
    ],
)
def test_what_an_idiom_leaves_open_fits_the_rest_of_it(text: str) -> None:
    steps = idiom(text)
    whole = [graph for graph in _drawn(steps, 60) if len(graph.nodes) >= len(steps)]
    assert len(whole) > 30


def test_calls_of_one_operator_are_alike_and_read_tensors_of_their_own() -> None:
    steps = idiom("add(conv(x, _), conv(x, _))")
    pairs = [graph.nodes[:2] for graph in _drawn(steps, 20) if len(graph.nodes) == len(steps)]
    alike = [(a, b) for a, b in pairs if a.attrs == b.attrs]
    assert len(alike) > len(pairs) / 2
    assert all(a.inputs["w"] != b.inputs["w"] for a, b in pairs)


def test_half_of_the_pieces_are_as_a_pass_asks_for_them() -> None:
    """One input, all else parameters, numbers without axes, where that is not what is otherwise; of
    these another call reads some.
    """
    steps = idiom("relu(multiply(conv(x), 0.5))")
    made = [
        graph for graph in _drawn(steps, 160, Limits(elements=64, reals=("f16",))) if graph.nodes
    ]
    exact = [graph for graph in made if {p.info.dtype for p in graph.params.values()} == {"f32"}]
    assert len(made) / 3 < len(exact) < len(made) * 2 / 3
    for graph in exact:
        assert len(graph.inputs) == 1
        assert [node.op.name for node in graph.nodes[:3]] == ["conv", "multiply", "relu"]
        assert len(graph.nodes[0].inputs) - 1 <= len(graph.params)
    shapes = [
        graph.params[o].info.shape
        for graph in exact
        for o in graph.nodes[1].operands()
        if o in graph.params
    ]
    assert len(exact) > shapes.count(()) > len(exact) * 3 / 4
    longer = [graph for graph in exact if len(graph.nodes) > 3]
    assert len(exact) / 5 < len(longer) < len(exact) * 4 / 5
    for graph in longer:  # the first call that follows may be of a new tensor, as a weight's
        assert any(graph.nodes[2].outputs[0] in node.operands() for node in graph.nodes[3:])


def test_a_table_of_bytes_is_a_parameter_where_a_pass_asks_for_that() -> None:
    steps = idiom("matmul(x, dequantize_linear(_, _, _))")
    kinds = Counter(
        (info.dtype, name in graph.params)
        for graph in _drawn(steps, 60)
        for name, info in graph.values.items()
        if info.kind == "int"
    )
    assert {given for _, given in kinds} == {True, False}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("add(conv(x), _channel)", lambda shape: (shape[1], *(1,) * (len(shape) - 2))),
        ("add(tanh(x3), _row)", lambda shape: shape[-1:]),
        ("add(_row, x2)", lambda shape: shape[-1:]),
    ],
)
def test_a_bias_is_along_an_axis_of_what_it_meets(
    text: str, sizes: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> None:
    steps = idiom(text)
    for graph in _drawn(steps, 20):
        if not graph.nodes or len(graph.values[graph.nodes[0].outputs[0]].shape) < 2:
            continue
        last = graph.nodes[len(steps) - 1]
        infos = [graph.values[operand] for operand in last.operands()]
        one, other = sorted((info.shape for info in infos), key=len)
        assert one == sizes(other) or one == (1,) * len(one)  # or the other way round


def test_a_bias_of_integers_is_of_the_type_that_is_said() -> None:
    """That of a product of bytes, which is scaled by itself."""
    steps = idiom("gemm(dequantize_linear(x_u8, 0.1), dequantize_linear(_), "
                  "dequantize_linear(_row_i32, 0.005))")  # fmt: skip
    made = [graph for graph in _drawn(steps, 40, Limits(elements=256, length=3)) if graph.nodes]
    assert len(made) > 8
    for graph in made:
        bias = graph.values[str(graph.nodes[2].inputs["x"])]
        assert graph.nodes[2].op.name == "dequantize_linear"
        assert (bias.dtype, len(bias.shape)) == ("i32", 1)


def test_parts_with_one_bias_are_one_call_and_axes_are_as_said() -> None:
    steps = idiom("multiply(add(x3, _row), sigmoid(add(x3, _row)))")
    assert [step.op for step in steps] == ["add", "sigmoid", "multiply"]
    assert (steps[0].rank, steps[0].dtype) == (3, "")
    assert (idiom("negate(x2_i8)")[0].rank, idiom("negate(x2_i8)")[0].dtype) == (2, "i8")
    ranks = [len(graph.inputs["x"].info.shape) for graph in _drawn(steps, 20) if graph.nodes]
    assert {*ranks} == {3}
    assert len(ranks) > 10


def _apart(graph: Graph) -> int:
    """How many parts a program has that read nothing of one another."""
    part = {name: {name} for name in graph.values}
    for node in graph.nodes:
        one = set().union(*(part[name] for name in (*node.operands(), *node.outputs)))
        part |= dict.fromkeys(one, one)
    return len({id(part[name]) for node in graph.nodes for name in node.outputs})


def test_pieces_may_stand_beside_one_another_in_one_program() -> None:
    settings = Settings((), 6, ops=OPS)
    alone = [case for *_, case in pieces(settings, 0, builtin(), lambda _: True, 8)]
    joint = [case for *_, case in pieces(settings, 0, builtin(), lambda _: True, 8, 6)]
    assert {_apart(case.graph) for case in alone} == {1}
    counts = [_apart(case.graph) for case in joint]
    assert len(joint) == 8
    assert min(counts) >= 4  # an idiom that cannot be drawn is left out
    assert sum(counts) > 0.9 * 6 * len(counts)


def test_some_pieces_are_of_nothing_as_a_pass_asks_for_them_or_not() -> None:
    """Passes that take constants without elements apart lose results, or find no value; half of the
    pieces are as these ask for them. There are few such pieces: of all others none is.
    """
    scaled, found = idiom("multiply(matmul(x), _)"), dict[bool, Counter[str]]()
    (limits,) = (one for one in module._LIMITS if one.empty)
    for one in (limits, replace(limits, empty=0)):
        empty = found.setdefault(one.empty > 0, Counter())
        for graph in _drawn(scaled, 120, one):
            empty["values"] += any(0 in info.shape for info in graph.values.values())
            empty["constants"] += any(0 in p.info.shape for p in graph.params.values())
    assert found[True]["values"] > 0.6 * 120
    assert found[True]["constants"] > 0.5 * 120
    assert not any(found[False].values())
