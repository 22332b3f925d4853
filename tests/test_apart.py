"""Calls that stand apart, each operator in turn, fed with values at the edges."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import ast
from irlang.catalog import builtin
from irlang.diff import apart, runner, suspects
from irlang.diff.apart import CALLS, COMPILED, Asked, case_apart, cases_apart
from irlang.diff.calls import Case
from irlang.diff.idle import is_idle
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.promised import documented
from irlang.diff.reduce import number_kind
from irlang.diff.rounds import Rounds
from irlang.diff.runner import Session
from irlang.diff.seen import Seen
from irlang.diff.suspects import judge_apart, wrong_calls
from irlang.diff.unfold import is_composed
from irlang.diff.unmixed import unmixed
from irlang.diff.verdict import Verdict
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.gen.edge import with_edges_apart
from irlang.gen.extreme import has_extreme
from irlang.gen.spoil import spoils
from irlang.graph import Graph, Port
from irlang.graph_text import to_ast
from irlang.lower.lower import Lowered, lower
from irlang.parser.printer import print_file
from tests.test_reduce import case_of

pytest.importorskip("torch", reason="torch is not installed")

NAMES = ("add", "tanh", "sign", "reshape", "reduce_max", "multiply", "negate", "square")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(["torch"]) as made:
        yield made


def _text(case: Case) -> str:
    return print_file(ast.File((to_ast(case.graph),), 1))


def _in_turn(made: Iterable[tuple[int, int, Case]]) -> list[str]:
    """The operators that are called, but for those that are once more as they did nothing."""
    called: list[str] = []
    idle: set[tuple[int, str]] = set()
    for number, _, case in made:
        names = [(number, node.op.name) for node in case.graph.nodes]
        called += [name for place, name in names if (place, name) not in idle]
        idle |= {(number, n.op.name) for n in case.graph.nodes if is_idle(case, n)}
    return called


def test_what_did_nothing_is_called_once_more() -> None:
    """A padding of nothing, a window of one element: nobody is wrong about these."""
    names = ("pad", "transpose", "crop", "band_part", "identity")
    made = list(cases_apart(builtin(), 5, 0, names, False, 36))
    nodes = [(case, node) for *_, case in made for node in case.graph.nodes]
    idle = Counter(node.op.name for case, node in nodes if is_idle(case, node))
    busy = Counter(node.op.name for case, node in nodes if not is_idle(case, node))
    assert idle["identity"] == 0  # nothing is told that could be otherwise
    assert idle.total() > 8
    assert min(busy.values()) > 6


def test_every_operator_has_its_turn_before_one_has_it_again() -> None:
    rounds = 3
    count = rounds * len(NAMES) // CALLS
    made = list(cases_apart(builtin(), 5, 0, NAMES, False, count))
    assert len({number for number, *_ in made}) == count
    assert Counter(_in_turn(made)) == dict.fromkeys(NAMES, rounds)
    for *_, case in made:
        given = {*case.graph.inputs, *case.graph.params}
        assert all(given.issuperset(node.operands()) for node in case.graph.nodes)


def test_what_a_target_has_of_its_own_comes_first_and_twice_as_often() -> None:
    own = frozenset(NAMES[: len(NAMES) // 2])
    rounds = Rounds(NAMES, [name for name in NAMES if name in own], 5)
    turns = [rounds.turn(place) for place in range(2 * (len(NAMES) + len(own)))]
    assert {name for name, _ in turns[: len(own)]} == own
    assert Counter(name for name, _ in turns) == {n: 4 if n in own else 2 for n in NAMES}
    assert [around for _, around in turns] == sorted(around for _, around in turns)
    of_own = {around for name, around in turns if name in own}
    assert of_own == {0, 1, 2, 3}
    called = _in_turn(cases_apart(builtin(), 5, 0, NAMES, False, 4, native=own))
    assert called == [name for name, _ in turns[: len(called)]]


def test_calls_are_such_as_a_target_has_an_operator_of_its_own_for() -> None:
    """A comparison of booleans is composed, and so are products of wide integers."""

    def own(graph: Graph) -> bool:
        return not lower(graph, "onnxruntime", builtin(), {}, whole=False).unsupported

    def share(name: str, preferred: Callable[[Graph], bool]) -> float:
        made = (case_apart(builtin(), seed, [name], False, 0, preferred) for seed in range(40))
        found = [
            lower(case.graph, "onnxruntime", builtin(), case.params).native
            for case in made
            if case is not None
        ]
        return sum(map(bool, found)) / len(found)

    for name in ("add", "equal"):
        assert share(name, own) >= max(0.9, share(name, lambda _: True))
    name = "matmul_integer"
    assert share(name, own) >= share(name, lambda _: True) + 0.25


def test_a_batch_is_a_function_of_its_number() -> None:
    first, again, other = (
        [_text(case) for *_, case in cases_apart(builtin(), 5, batch, (), False, 6)]
        for batch in (2, 2, 3)
    )
    assert first == again
    assert not set(first) & set(other)


@pytest.mark.parametrize("grad", [False, True])
def test_tensors_are_at_an_edge_and_what_is_demanded_of_them_holds(grad: bool) -> None:
    seen: set[str] = set()
    made = [case for *_, case in cases_apart(builtin(), 9, 0, (), grad, 60)]
    assert len(made) > 50
    for case in made:
        if has_extreme(case.graph.nodes[0]):
            continue  # which is odd by itself
        assert case.edge != grad
        for name, array in case.values.items():
            place = case.graph.params.get(name) or case.graph.inputs[name]
            if place.within is not None and array.size and place.info.kind == "real":
                low, high = place.within
                assert not np.any(array.astype(np.float64) < low)
                assert not np.any(array.astype(np.float64) > high)
            values = array.astype(np.float64)
            where = "param" if name in case.graph.params else "input"
            seen |= {f"nan {where}"} if np.isnan(values).any() else set()
            seen |= {f"inf {where}"} if np.isinf(values).any() else set()
            seen |= {f"-0 {where}"} if (np.signbit(values) & (values == 0)).any() else set()
            seen |= {f"far {where}"} if (np.abs(values) == 30).any() else set()
    finite = {f"{kind} {where}" for kind in ("-0", "far") for where in ("input", "param")}
    wild = {f"{kind} {where}" for kind in ("nan", "inf") for where in ("input", "param")}
    assert seen >= finite
    assert not seen & wild if grad else seen >= wild


def test_what_no_target_can_run_costs_the_calls_beside_it_nothing() -> None:
    """What there is none of waits longer every time: of four turns it has two."""
    asked = 0

    def able(case: Case) -> bool:
        nonlocal asked
        has = "tanh" in {node.op.name for node in case.graph.nodes}
        asked += has
        return not has

    called: dict[int, set[str]] = {}
    for number, _, case in cases_apart(
        builtin(), 5, 0, ("tanh", "square", "negate"), False, 4, able
    ):
        called.setdefault(number, set()).update(node.op.name for node in case.graph.nodes)
    assert called == {number: {"negate", "square"} for number in range(4)}
    assert 2 <= asked <= 8


def test_gradients_are_asked_for_where_results_overflow_as_well() -> None:
    made = list(cases_apart(builtin(), 5, 0, ("square",) * CALLS, True, 12))
    overflown = []
    for number, _, case in made:
        assert case.balls is not None
        # of a mask among scores, and of the ends of what saturates, there are infinities
        finite = all(np.all(np.isfinite(a.astype(np.float64))) for a in case.values.values())
        assert case.edge or finite
        assert not any(np.any(np.isnan(a.astype(np.float64))) for a in case.values.values())
        for value in case.graph.outputs.values():
            largest = DTYPES[case.graph.values[value].dtype].largest
            if np.any(np.abs(case.balls[value].value) > largest):
                overflown.append(number)
        assert case.edge == (number % 3 == 2)
    assert 2 in {number % 3 for number in overflown}


def test_a_call_that_no_target_can_run_is_drawn_anew() -> None:
    asked: list[tuple[int, ...]] = []

    def able(case: Case) -> bool:
        asked.append(tuple(a.size for a in case.values.values()))
        return len(asked) % 3 == 0  # of the program, and of a first call by itself, it says no

    (one, *_) = cases_apart(builtin(), 5, 0, ("square",), False, 1, able)
    assert one[2].graph.nodes[0].op.name == "square"
    assert len(set(asked)) > 1


def test_every_second_pair_of_rounds_is_at_all_edges_at_once() -> None:
    """A round of what targets have and one of all; rounds differ in the types of what is fed."""
    kinds: list[Counter[int]] = [Counter(), Counter()]
    types = set()
    made = [cases_apart(builtin(), seed, 0, ("square",) * CALLS, False, 28) for seed in (5, 6)]
    for number, _, case in itertools.chain(*made):
        for array in case.values.values():
            types.add(array.dtype.name)
            values = array.astype(np.float64).ravel()
            found = {
                name
                for name, one in (
                    ("nan", np.isnan(values)),
                    ("inf", np.isinf(values)),
                    ("far", np.abs(values) == 30),
                )
                if one.any()
            }
            kinds[number // 2 % 2][len(found)] += 1
    # In the others some are, by all pairs or line by line; in these all that have room for it: two
    # in five, as many have empty axes, are integers, or are called once more with usual values.
    assert kinds[0][3] >= 2 / 5 * kinds[0].total()
    assert kinds[1][3] < kinds[0][3]
    assert types >= {"float32", "float64", "float16", "bfloat16"}


def test_integers_take_the_ends_of_their_range_and_what_lies_between() -> None:
    seen: set[int] = set()
    for seed in range(40):
        case = case_apart(builtin(), seed, ["bit_count"], False)
        assert case is not None
        values = {n: np.zeros_like(a) + 2 for n, a in case.inputs.items()}
        for array in with_edges_apart(case.graph, values, seed).values():
            seen.update(int(n) for n in array.ravel())
    assert {0, 1, -1} <= seen
    assert {2**31 - 1, 2**63 - 1} & seen


def _planted(edits: dict[str, str]) -> Any:
    def made(*args: Any, **options: Any) -> Lowered:
        lowered = lower(*args, **options)
        code = lowered.code
        assert isinstance(code, str)
        for old, new in edits.items():
            code = code.replace(old, new)
        return lowered.__class__(
            **{n: getattr(lowered, n) for n in lowered.__dataclass_fields__} | {"code": code}
        )

    return made


def test_two_defects_of_one_program_are_two_findings(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = {"torch.tanh(": "torch.nan_to_num(", "torch.neg(": "torch.abs("}
    monkeypatch.setattr(runner, "lower", _planted(edits))
    seed = next(
        seed for seed in range(100)
        if (case := case_apart(builtin(), seed, ["tanh", "square", "negate"], False)) is not None
        and len(case.graph.nodes) == 3
        and sum(float(np.max(np.abs(np.nan_to_num(a.astype(np.float64))))) > 2
                for a in case.values.values()) == 3
    )  # fmt: skip
    case = case_apart(builtin(), seed, ["tanh", "square", "negate"], False)
    assert case is not None
    (outcome,) = session.compare([case])
    blamed = [operator for *_, operator, _ in wrong_calls(session, case, "torch", outcome)]
    assert blamed == ["tanh", "negate"]
    seen = Seen()
    with monkeypatch.context() as late:
        late.setattr(PACE, "until", 0.0)
        found, counts = judge_apart(session, [(0, seed, case)], seen, grad=False)
    assert not found
    assert not counts["torch"], "it is for --resume"
    found, counts = judge_apart(session, [(0, seed, case)], seen, grad=False)
    assert list(dict.fromkeys(one.operator for one in found)) == ["tanh", "negate"]
    assert all(len(one.reduced.graph.nodes) == 1 for one in found)
    assert sum(counts["torch"].values()) == 1
    assert not judge_apart(session, [(0, seed, case)], seen, grad=False)[0]  # they are known


def test_a_call_that_a_target_has_no_word_for_hides_none_beside_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of three calls is unsupported if one of them is."""
    planted = _planted({"torch.tanh(": "torch.nan_to_num("})

    def made(graph: Graph, *args: Any, **options: Any) -> Lowered:
        lowered: Lowered = planted(graph, *args, **options)
        if any(node.op.name == "square" for node in graph.nodes):
            return replace(lowered, code="", unsupported=("no word for `square`",))
        return lowered

    monkeypatch.setattr(runner, "lower", made)
    cases = (case_apart(builtin(), seed, ["tanh", "square"], False) for seed in range(100))
    case = next(
        one
        for one in cases
        if one is not None
        and len(one.graph.nodes) == 2
        and np.isnan(one.values[next(iter(one.graph.nodes[0].operands()))]).any()
    )
    found, counts = judge_apart(session, [(0, 1, case)], Seen(), grad=False)
    assert {one.operator for one in found} == {"tanh"}
    assert counts["torch"] == {"edge": 1}
    alone = case_apart(builtin(), 5, ["square"], False)
    assert alone is not None
    assert judge_apart(session, [(0, 5, alone)], Seen(), grad=False)[1]["torch"] == {
        "unsupported": 1
    }


@given(
    st.integers(1, 40), st.integers(0, 40), st.sampled_from((CALLS, COMPILED)), st.integers(0, 9)
)
def test_every_kind_of_round_comes_of_few_operators_and_of_many(
    names: int, native: int, calls: int, seed: int
) -> None:
    """Of a campaign of one operator, too, some calls have empty axes, and some whole numbers."""
    rounds = Rounds(range(names), range(min(names, native)), seed)
    met = [rounds.of(number, calls) % len(apart._ROUNDS) for number in range(9 * names + 18)]
    assert set(met) == set(range(len(apart._ROUNDS)))
    assert all(0 <= b - a <= 1 or not b for a, b in itertools.pairwise(met)), "one after another"


def test_what_a_target_asks_for_beside_a_definition_is_mostly_kept_to() -> None:
    """Of labels other than 1 and -1, at edges or not, PyTorch promises nothing."""
    asked = documented(("torch",))

    def labels(seed: int, around: int, rows: Asked) -> set[float]:
        case = case_apart(builtin(), seed, ["soft_margin"], False, around, asked=rows)
        node = case.graph.nodes[0] if case is not None else None
        return (
            set() if case is None or node is None else {*case.values[node.feeds()["target"]].flat}
        )

    kept = [labels(seed, 1, asked) for seed in range(12)]
    assert all(found <= {-1.0, 1.0} for found in kept)
    assert set().union(*kept) == {-1.0, 1.0}
    for around, rows in ((4, asked), (1, {})):
        found = set().union(*(labels(seed, around, rows) for seed in range(4)))
        assert not found <= {-1.0, 1.0}, around


def test_a_call_that_is_a_program_of_its_own_is_run_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not be run again to know that it is the one that is wrong."""
    monkeypatch.setattr(runner, "lower", _planted({"torch.tanh(": "torch.nan_to_num("}))
    monkeypatch.setattr(suspects, "find", lambda *_: SimpleNamespace(repeated=True))
    ran: list[int] = []
    compare = Session.compare

    def watched(self: Session, cases: Sequence[Case], *args: Any, **options: Any) -> list[Outcome]:
        ran.append(len(cases))
        return compare(self, cases, *args, **options)

    monkeypatch.setattr(Session, "compare", watched)
    monkeypatch.setattr(Seen, "looks_behind", lambda *_: False)
    cases = (case_apart(builtin(), seed, ["tanh"], False) for seed in range(100))
    case = next(c for c in cases if c is not None and not c.params)
    assert len(judge_apart(session, [(0, 1, case)], Seen(), grad=False)[0]) == 1
    assert ran == [1]


@pytest.mark.parametrize(("ops", "tried", "repeated", "kept"), [
    (["tanh"], True, False, True), (["tanh"], False, False, False),
    (["tanh", "exp"], True, False, False), (["tanh", "exp"], True, True, True),
])  # fmt: skip
def test_a_hang_that_nobody_has_waited_for_is_none(
    session: Session, monkeypatch: pytest.MonkeyPatch, ops: list[str], tried: bool, repeated: bool,
    kept: bool,
) -> None:  # fmt: skip
    """A call alone is hurried, as a busy machine is, and the time of the campaign may end then. One
    of a program that is late has a second to begin with: where it answers later it was slow.
    """
    monkeypatch.setattr(runner, "lower", _planted({"torch.tanh(": "torch.nan_to_num("}))
    hung = Verdict("y", "torch", "timeout", message="no answer within 1 s")
    monkeypatch.setattr(suspects, "_wrong", lambda ran, _: [(*ran[0][1:], "tanh", hung)])
    monkeypatch.setattr(
        suspects, "find", lambda *_: SimpleNamespace(repeated=repeated, tried=tried)
    )
    cases = (case_apart(builtin(), seed, ops, False) for seed in range(100))
    case = next(c for c in cases if c is not None and not c.params)
    assert len(judge_apart(session, [(0, 1, case)], Seen(), grad=False)[0]) == kept


@pytest.mark.parametrize("name", ["transpose", "pad", "add", "matmul"])
def test_a_round_has_more_axes_than_kernels_are_written_for(name: str) -> None:
    """Operators that take any number of axes are met with up to seven in one round of all."""
    deep: dict[bool, list[int]] = {True: [], False: []}
    for around, limits in enumerate(apart._ROUNDS):
        for seed in range(24):
            case = case_apart(builtin(), seed, [name], False, around)
            if case is not None:
                for node in case.graph.nodes:
                    first = case.graph.values[next(iter(node.operands()))]
                    deep[limits.deep > 0].append(len(first.shape))
    assert max(deep[True]) >= 6
    assert max(deep[False]) <= 5
    assert len([n for n in deep[True] if n > 4]) >= len(deep[True]) / 8


def test_what_stands_behind_the_worst_element_is_found_too(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN that becomes 0 is worse than an infinity that becomes a number."""
    monkeypatch.setattr(runner, "lower", _planted({"torch.tanh(": "torch.nan_to_num("}))
    made = (case_apart(builtin(), seed, ["tanh"], False) for seed in range(100))
    case = next(
        one
        for one in made
        if one is not None
        and all(np.isnan(a).any() and np.isinf(a).any() for a in one.inputs.values())
    )
    found, _ = judge_apart(session, [(0, 1, case)], Seen(), grad=False)
    kinds = {(number_kind(f.verdict.expected), number_kind(f.verdict.got)) for f in found}
    assert kinds == {("nan", "zero"), ("finite", "finite")}


def test_a_call_that_is_composed_hides_none_of_an_operator_of_its_own(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are wrong in the same way, and may be so by different functions of the target."""
    wrong = {"results = m(*values)": "results = [result + 7 for result in m(*values)]"}
    monkeypatch.setattr(runner, "lower", _planted(wrong))
    monkeypatch.setattr(suspects, "find", lambda *_: SimpleNamespace(repeated=True))
    monkeypatch.setattr(Seen, "looks_behind", lambda *_: False)
    said = "y, i = max_pool_with_argmax(x; window = 2, whole = {})"
    text = "model m(x: f32[1, 1, 2]) -> y: f32[1, 1, 1], i: i64[1, 1, 1] {{\n  " + said + "\n}}"
    composed, native = (case_of(text.format(one)) for one in ("true", "false"))
    assert (is_composed(composed, "torch"), is_composed(native, "torch")) == (True, False)
    seen = Seen()
    found = [judge_apart(session, [(0, 1, one)], seen, grad=False)[0] for one in (composed, native)]
    assert list(map(len, found)) == [1, 1]
    for one in (composed, native):
        assert not judge_apart(session, [(0, 1, one)], seen, grad=False)[0]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf, 1e30, 1e-42]), min_size=1))
def test_an_operand_keeps_edges_of_one_kind_at_a_time(numbers: list[float]) -> None:
    x = np.array(numbers, np.float32)
    info = TensorInfo(x.shape, "f32")
    graph = Graph("m", inputs={"x": Port(info, None)}, values={"x": info})
    kinds = {repr(float(n)) for n in x} - {"1.0"}
    made = [one.inputs["x"] for one in unmixed(Case(graph, {"x": x}, {}, builtin()))]
    assert len(made) == (len(kinds) if len(kinds) > 1 else 0)
    usual = 1.0 if 1.0 in numbers else 0.75
    for kept in made:
        left = {repr(float(n)) for n in kept} - {repr(usual)}
        assert len(left) == 1
        here = np.array([repr(float(n)) in left for n in x])
        assert np.array_equal(kept[here], x[here], equal_nan=True)


def test_what_is_refused_for_one_reason_is_looked_into_twice(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three operators are refused with the same words; the third has nothing new to say."""
    names = ["tanh", "square", "negate"]
    said = "torch.no_such_function("
    edits = dict.fromkeys(("torch.tanh(", "torch.square(", "torch.neg("), said)
    made = _planted(edits)
    monkeypatch.setattr(runner, "lower", made)
    case = case_apart(builtin(), 3, names, False)
    assert case is not None
    assert made(case.graph, "torch", builtin(), case.params).code.count(said) == len(names)
    monkeypatch.setattr(session, "says_no", {"torch": ""})  # it says so of what came later, too
    seen = Seen()
    found, _ = judge_apart(session, [(0, 3, case)], seen, grad=False)
    assert [one.verdict.verdict for one in found] == ["refused", "refused"]
    assert not judge_apart(session, [(0, 3, case)], seen, grad=False)[0]


def test_the_gradient_of_a_call_apart_is_blamed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its value is right: only what flows back is cut."""
    monkeypatch.setattr(runner, "lower", lower)
    import irlang.diff.gradients as gradients

    monkeypatch.setattr(
        gradients,
        "lower",
        _planted({"torch.tanh(": "(lambda v: v.tanh() + 0 * v - v + v.detach())("}),
    )
    case = case_apart(builtin(), 3, ["square", "tanh"], True)
    assert case is not None
    (outcome,) = session.compare([case], grad=True)
    found = list(wrong_calls(session, case, "torch", outcome))
    assert [operator for *_, operator, _ in found] == ["tanh"]
    assert found[0][-1].stage == "backward"


def test_a_reply_that_nobody_waited_for_is_not_taken_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule that raises for the second target leaves the first with an answer to give."""
    one, other = (case_apart(builtin(), 3, [name], False) for name in ("tanh", "reshape"))
    assert one is not None
    assert other is not None
    lost = "onnx-reference"

    def raises(graph: Graph, target: str, *args: Any, **options: Any) -> Lowered:
        if target == lost:
            raise LookupError(graph.name)
        return lower(graph, target, *args, **options)

    with Session(["torch", lost]) as both:
        monkeypatch.setattr(runner, "lower", raises)
        with pytest.raises(LookupError):
            both.compare([one])
        monkeypatch.setattr(runner, "lower", lower)
        (outcome,) = both.compare([other])
    assert outcome.results["torch"].outputs.keys() == other.graph.outputs.keys()
    assert {v.verdict for v in outcome.verdicts["torch"]} == {"agrees"}


def test_operands_of_one_type_are_at_different_edges() -> None:
    """A NaN beside a number, zero to the power of something: edges meet others than themselves."""
    pairs = differ = 0
    for name in ("maximum", "floor_divide", "atan2", "power", "hypot"):
        for seed in range(24):
            case = case_apart(builtin(), seed, [name], False, seed % 6)
            if case is None:
                continue
            one, other = (case.values[operand] for operand in case.graph.nodes[0].operands())
            if one.dtype.kind == "f" and one.shape == other.shape and one.size > 1:
                pairs += 1
                differ += not np.array_equal(one, other, equal_nan=True)
    assert pairs >= 20
    assert 0.6 * pairs < differ < pairs  # ties and poles are met as well


@pytest.mark.parametrize("name", ["fake_quantize_range", "qlinear_matmul", "bilinear", "bit_shift"])
def test_a_call_that_edges_leave_without_a_value_has_them_in_one_operand(name: str) -> None:
    """A scale below 0, a shift that is too far, infinities that cancel: such calls say nothing."""
    made = [case_apart(builtin(), seed, [name], False, seed % 7) for seed in range(20)]
    assert sum(case is not None for case in made) >= 16


def test_what_could_not_be_drawn_beside_others_is_drawn_by_itself() -> None:
    """`quantize_linear` is left out of half of the programs of three calls."""
    names = ("quantize_linear", "tanh", "negate")
    rounds = 12
    count = rounds * len(names) // CALLS
    made = [case for *_, case in cases_apart(builtin(), 5, 0, names, False, count)]
    called = Counter(node.op.name for case in made for node in case.graph.nodes)
    assert called["quantize_linear"] >= rounds - 2


def test_a_call_of_another_type_comes_rather_than_one_that_is_composed() -> None:
    """Of f16 and bf16 alone ONNX Runtime has hardly an operator, and is asked for f32 then."""

    def own(graph: Graph) -> bool:
        return not lower(graph, "onnxruntime", builtin(), {}, whole=False).unsupported

    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for name in ("dynamic_quantize_linear", "softmax", "hardmax"):
        made = [case_apart(builtin(), seed, [name], False, seed, own) for seed in range(28)]
        found = [
            bool(lower(case.graph, "onnxruntime", builtin(), case.params).native)
            for case in made
            if case is not None
        ]
        assert sum(found) >= 24


@pytest.mark.parametrize(("name", "attribute", "usual"), [
    ("gelu", "approximate", "none"), ("relu", "max_value", np.inf),
])  # fmt: skip
def test_what_an_idiom_says_of_an_operator_leaves_room_for_its_defaults(
    name: str, attribute: str, usual: Any
) -> None:
    """One idiom of one call says another word for each."""
    made = (generate(builtin(), seed, apart=[name]).graph.nodes[-1] for seed in range(60))
    said = [node.instance.binding.scope.names[attribute] == usual for node in made]
    assert 20 <= sum(said) <= 45


def test_gradients_are_asked_of_what_may_have_some() -> None:
    made = [case for *_, case in cases_apart(builtin(), 5, 0, (), True, 130)]
    called = {node.op.name for case in made for node in case.graph.nodes}
    assert len(called & set(builtin().names())) > 200
    assert not called & {"equal", "bit_and", "argmax", "one_hot", "full", "random_normal"}
    assert {"cast", "clip", "embedding"} <= called
    asked = [node.op.name for *_, c in cases_apart(builtin(), 5, 0, ("argmax", "tanh"), True, 4)
             for node in c.graph.nodes]  # fmt: skip
    assert "argmax" in asked  # whoever names it is given it


@pytest.mark.parametrize("seed", range(6))
def test_at_last_a_call_is_given_what_it_needs_and_no_more(seed: int) -> None:
    """Frameworks have layers for few of the operands and labels that a definition allows."""

    def needed(graph: Graph) -> bool:
        return graph.nodes[-1].inputs.keys() == {"x", "w", "r"}

    def labelled(graph: Graph) -> bool:
        node = graph.nodes[-1]
        types = {name: graph.values[str(value)].dtype for name, value in node.inputs.items()}
        return types in ({"logits": "f32", "labels": kind} for kind in ("i32", "i64"))

    for name, preferred in (("lstm", needed), ("cross_entropy", labelled)):
        drawn = generate(builtin(), seed, apart=[name], preferred=preferred).graph
        assert preferred(drawn)


def test_whole_numbers_are_divided_by_those_below_nothing() -> None:
    """The least one by -1 among them, whose remainder ends a process that asks the processor."""
    met = set()
    for seed in range(60):
        case = case_apart(builtin(), seed, ["modulo"], False, 3)
        if case is None:
            continue
        for node in case.graph.nodes:
            a, b = (case.values[name] for name in node.operands())
            if a.dtype.kind != "i" or not {a.ndim, b.ndim} <= {len(np.broadcast(a, b).shape)}:
                continue
            left, right = np.broadcast_arrays(a, b)
            least = left == np.iinfo(a.dtype).min
            met |= {"end"} if np.any(least & (right == -1)) else set()
            met |= {"signs"} if np.any((left > 0) & (right < -1)) else set()
    assert met == {"end", "signs"}


def test_what_has_no_value_is_asked_for_all_the_same() -> None:
    """A histogram of NaN says nothing, and must end no process."""
    aside: list[Case] = []
    for seed in range(28):
        case_apart(builtin(), 5000 + seed, ["histogram", "tanh"], False, seed % 7, aside=aside)
    assert {node.op.name for case in aside for node in case.graph.nodes} == {"histogram"}
    assert all(len(case.graph.nodes) == 1 and case.edge for case in aside)
    wild = [array for case in aside for array in case.values.values() if array.dtype.kind == "f"]
    assert any(np.isnan(array).any() for array in wild)


def test_operands_of_two_types_are_often_of_one_and_rounds_of_integers_are_of_these() -> None:
    """A whole number to the power of a whole number was met once in ninety calls."""

    def kinds(limits: Limits) -> Counter[tuple[str, ...]]:
        made = [generate(builtin(), n, apart=["power"], limits=limits).graph for n in range(60)]
        return Counter(
            tuple(graph.values[operand].dtype for operand in graph.nodes[0].operands())
            for graph in made
            if graph.nodes
        )

    real, whole = kinds(Limits()), kinds(Limits(whole=True))
    assert real["f32", "f32"] > 20
    assert whole["i64", "i64"] > 15
    assert any(limits.whole for limits in apart._ROUNDS)
    assert len(apart._ROUNDS) % 2  # or some would only be of what a target has, others of all


def test_attributes_that_are_said_are_seldom_their_defaults() -> None:
    drawn = [
        node.attrs
        for seed in range(150)
        for node in generate(builtin(), seed, apart=["cumsum", "reduce_max"]).graph.nodes
    ]
    said = Counter((name, value) for one in drawn for name, value in one.items() if name != "axes")
    for name in ("exclusive", "reverse", "keepdims"):
        assert said[name, True] > 1.4 * said[name, False] > 0


def test_windows_have_padding_that_counts_where_one_is_added() -> None:
    """Three attributes at once: 3 of 450 calls of average pooling had these before."""
    drawn = [
        graph.nodes[0].attrs
        for seed in range(60)
        if (graph := generate(builtin(), seed, apart=["avg_pool"]).graph).nodes
    ]
    odd = [one for one in drawn if one.get("ceil_mode") and one.get("count_include_pad")]
    assert sum(one.get("pad") == "given" for one in odd) > 5


def test_as_many_kinds_of_edges_are_looked_behind_as_there_is_time_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    case = next(
        one
        for seed in range(100)
        if (one := case_apart(builtin(), seed, ["add"], False)) is not None
        and len(list(unmixed(one))) > 4
    )

    def compare(_: Session, cases: Sequence[Case], **__: Any) -> list[Outcome]:
        ran.append(len(cases))
        return [Outcome(verdicts={"torch": []}) for _ in cases]

    monkeypatch.setattr(Session, "compare", compare)
    monkeypatch.setattr(suspects, "gravest", lambda _: "agrees")
    suspects._behind(session, case, "torch", False, 1.0)
    monkeypatch.setattr(PACE, "until", time.monotonic() + 20.0)  # of which one finding has 2.5
    suspects._behind(session, case, "torch", False, 1.0)
    assert not suspects._behind(session, case, "torch", False, 60.0)
    assert ran[0] > 4
    assert ran[1:] == [2]


def test_a_campaign_of_one_operator_reads_few_definitions() -> None:
    """All of them take longer to read than many calls to draw."""
    own = builtin.__wrapped__()
    assert case_apart(own, 1, ["tanh"], False, ops=["tanh"]) is not None
    assert spoils(own, 1, ["softplus"])
    read = [name for name in own.names() if own._entries[name].made is not None]
    assert {"tanh", "softplus"} <= set(read)
    assert len(read) < 10


def test_a_target_that_has_the_first_result_alone_is_handed_it() -> None:
    def of_one(graph: Graph) -> bool:
        return len(graph.outputs) == 1

    found = [
        generate(builtin(), seed, apart=["cummax"], preferred=preferred).graph
        for preferred in (of_one, lambda _: True)
        for seed in range(8)
    ]
    shown = [len(graph.outputs) for graph in found]
    assert shown[:8] == [1] * 8
    assert set(shown[8:]) == {1, 2}  # whoever has both is asked for both, too


def test_places_of_all_channels_together_are_drawn() -> None:
    """What is asked of an index must not hang on where it stands, or none has a range."""
    made = [generate(builtin(), seed, apart=["max_unpool"]).graph for seed in range(24)]
    whole = [graph.nodes[0] for graph in made if graph.nodes and graph.nodes[0].attrs.get("whole")]
    shapes = [node.instance.outputs[0][1].shape for node in whole if node.instance.outputs]
    assert any(min(shape[0], shape[1]) > 1 for shape in shapes)


def test_what_is_known_is_told_before_more_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes all memory took all 60 seconds of a campaign so, and was not told."""
    looked: list[str] = []

    def behind(*_: object) -> list[str]:
        looked.append("behind")
        return ["more"]

    monkeypatch.setattr(suspects, "_behind", behind)
    nobody: Any = None
    for verdict, more in (("wrong", ["more"]), ("memory", []), ("timeout", [])):
        wrong: Any = None, SimpleNamespace(took=0.1), SimpleNamespace(verdict=verdict)
        shown: Iterator[Any] = suspects._shown(nobody, wrong, "torch", False, lambda: True)
        assert next(shown) is wrong
        assert looked == []
        assert list(shown) == more
        looked.clear()
