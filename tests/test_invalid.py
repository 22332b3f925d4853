"""Invalid calls: made so that one requirement is broken, and what targets do with them."""

from __future__ import annotations

import functools
import math
import random
import resource
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import ast
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.diff import handed, invalid
from irlang.diff.campaign import Campaign, Settings
from irlang.diff.finding import find_accepted
from irlang.diff.handed import Programs, is_handed_over, is_telling
from irlang.diff.invalid import (
    _breaks,
    _documents,
    _turn,
    judge_invalid,
)
from irlang.diff.pace import PACE
from irlang.diff.report_issue import issue
from irlang.diff.rounds import Fruitless
from irlang.diff.runner import Case, Session
from irlang.diff.seen import Symptom
from irlang.gen.build import generate
from irlang.gen.changes import (
    Resize,
    SetElements,
    changes,
    in_other_words,
    in_turn,
    way_of,
)  # fmt: skip
from irlang.gen.draw import Limits as Sizes
from irlang.gen.judge import judge
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.smaller import smaller
from irlang.gen.spoil import breakable, spoils, spoilt
from irlang.gen.spoilt import OPEN, RULED_OUT, Spoilt, spoilt_call, types_of
from irlang.graph import Graph
from irlang.graph_text import to_ast
from irlang.instance import instantiate
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import inputs
from irlang.lower.admits import admitted, fixed
from irlang.lower.direct import is_direct, numbers, says
from irlang.lower.lower import Lowered, lower, spelt
from irlang.lower.narrows import narrower
from irlang.lower.pool import Limits, Worker
from irlang.parser import parse
from irlang.parser.printer import print_file
from irlang.signature import Fault
from tests.targets import usable

pytest.importorskip("torch", reason="torch is not installed")
SEEDS = range(60)


@pytest.fixture(scope="module")
def many() -> list[Spoilt]:
    return [one for seed in range(120) if (one := spoilt(builtin(), seed)) is not None]


def text_of(graph: Graph) -> str:
    return print_file(ast.File((to_ast(graph),), 1))


def test_a_spoilt_call_has_one_fault_which_the_checker_finds(many: list[Spoilt]) -> None:
    assert len(many) > 100
    for one in many:
        codes = [d.code for d in check(parse(text_of(one.graph)), builtin()).diagnostics]
        if isinstance(one.changed, SetElements):
            assert codes == []  # the checker knows no values
            if one.fault.message == OPEN:  # of which the definition may have something to say
                assert one.hollow
                continue
            with pytest.raises(InvalidInput, match=one.fault.code):
                run(one.graph, one.values(3), builtin())
        else:
            assert one.fault.code in codes, text_of(one.graph)
    kinds = {type(one.changed) for one in many}
    assert kinds == {SetAttr, Retype, SetElements}


def test_spoilt_calls_are_of_many_operators_and_a_function_of_the_seed(many: list[Spoilt]) -> None:
    assert len({one.graph.nodes[0].op.name for one in many}) > 60
    again = spoilt(builtin(), 7)
    assert again is not None
    assert text_of(again.graph) in map(text_of, (one.graph for one in many))


def lowered(text: str, target: str = "torch", hollow: bool = False) -> Lowered:
    (graph,) = check(parse(f"nnir 1\nmodel m{text}"), builtin()).graphs
    return lower(graph, target, builtin(), {}, hollow=hollow)


def test_one_operator_with_its_arguments_as_they_are_is_direct() -> None:
    assert is_direct(lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(x) }"))
    assert not is_direct(lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(relu(x)) }"))
    composed = (
        "(x: f32[1, 1, 8], w: f32[1, 1, 3]) -> y: f32[1, 1, 8] { y = conv(x, w; before = 2) }"
    )
    assert not is_direct(lowered(composed.replace("before", "pad = given, before")))


def test_pairs_of_real_numbers_around_a_complex_operator_hand_its_arguments_over() -> None:
    """Where a number is the matter; of their own shapes it is the pairs that say no."""
    text = "model m(x: f32[2, 6, 2]) -> y: f32[2, 4, 2] {\n  y = dft(x; axis = 1, length = 4)\n}"
    graph = check(parse(f"nnir 1\n{text}"), builtin()).graphs[0]
    lowered = lower(graph, "torch", builtin(), {}, whole=False)
    assert is_direct(lowered, shaped=True)
    assert not is_direct(lowered)


def test_what_is_said_is_the_same_whatever_the_shapes() -> None:
    one = lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(x; beta = 2) }")
    wide = lowered("(x: f32[9]) -> y: f32[9] { y = softplus(x; beta = 2) }")
    other = lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(x; beta = 3) }")
    assert says(one) == says(wide) != says(other)


def test_a_target_that_takes_what_has_no_value_is_caught_and_one_that_refuses_is_not() -> None:
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), SEEDS[:6], ("softplus",))
        assert {one.case.graph.nodes[0].op.name for _, one in found} == {"softplus"}
        assert found[0][1].given.keys() == {"beta"}
        assert counts["torch"]["accepted"] == len(found)
        found, counts = judge_invalid(session, builtin(), SEEDS, ("matmul", "gather", "concat"))
        assert found == []
        assert counts["torch"]["refused"] > 5


def test_a_process_that_ends_has_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        assert isinstance(made.code, str)
        return replace(made, code=f"import os\nos.kill(os.getpid(), 8)\n{made.code}")

    monkeypatch.setattr(handed, "lower", deadly)
    monkeypatch.setattr(invalid, "_FATAL", set())
    with Session(("torch",)) as session:
        (one, *others), counts = judge_invalid(session, builtin(), range(2), ("softplus",))
        assert counts["torch"]["crash"] >= 1 + len(others)  # each requirement is told of once
        assert one[1].verdict.verdict == "crash"
        assert judge_invalid(session, builtin(), SEEDS[:1], ("softplus",))[0] == []  # known by now
        found = find_accepted(session, one[1], one[0])
    assert "SIGFPE" in found.verdict.message
    assert "invalid" in found.signature
    text = issue(found, "", "")
    assert "the process dies of an invalid program" in text
    assert 'require beta: beta != 0 else "beta is 0"' in text


@pytest.mark.parametrize("operator", ["softplus", "group_norm", "bernoulli", "lp_pool"])
def test_what_is_accepted_is_made_small(operator: str) -> None:
    """The fault stays, and what it is a fault of is as short as can be."""
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), range(6), (operator,))
    made = [one for _, one in found if one.verdict.verdict == "accepted"]
    made = [one for one in made if not one.requirement.endswith(("rank", "sizes"))]
    assert made or operator == "bernoulli"
    for one in made:
        checked = check(parse(text_of(one.case.graph)), builtin())
        said = {d.code for d in checked.diagnostics}
        assert said <= {f"{operator}.{one.requirement}"}
        if one.given.keys() & {"beta", "p", "threshold"}:
            assert sum(array.size for array in one.case.values.values()) <= 8
        if "eps" in one.given:  # one number by itself has no spread, and gives NaN
            assert not any(np.isnan(array).any() for array in one.got.values())
        if one.given.keys() & {"beta", "eps", "p", "threshold"}:
            assert one.case.graph.nodes[0].attrs.keys() <= {*one.given, "groups", "window"}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_smaller_spoilt_calls_have_the_same_fault(seed: int) -> None:
    one = spoilt(builtin(), seed)
    if one is None:
        return
    size = sum(math.prod(port.info.shape) for port in one.graph.inputs.values())
    for other in smaller(one, builtin()):
        assert other.fault.code == one.fault.code
        assert other.changed == one.changed
        assert sum(math.prod(p.info.shape) for p in other.graph.inputs.values()) <= size
        values = other.values(seed)
        assert {n: a.shape for n, a in values.items()} == {
            n: port.info.shape for n, port in other.graph.inputs.items()
        }


LAST_STRAW = """import os
if "SPOILT" in os.environ:
    os.kill(os.getpid(), 8)
os.environ["SPOILT"] = "1"
"""


def test_an_end_that_comes_of_what_ran_before_is_said_not_to_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every program leaves behind what ends the next one of its process."""

    def fragile(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        return replace(made, code=f"{LAST_STRAW}\n{made.code!s}")

    monkeypatch.setattr(handed, "lower", fragile)
    monkeypatch.setattr(invalid, "_FATAL", set())
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), SEEDS[:12], ("softplus", "matmul"))
        ends = [(seed, one) for seed, one in found if one.verdict.verdict == "crash"]
        assert ends
        assert not any(one.repeated for _, one in ends)
        made = find_accepted(session, ends[0][1], ends[0][0])
    assert "not repeated" in issue(made, "", "").splitlines()[0]


ONCE = """import os
if os.path.exists({mark!r}):
    raise ValueError("no")
open({mark!r}, "w").close()
"""


def test_what_is_refused_when_it_runs_again_is_counted_and_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that takes the first program it is given, and none after that."""
    mark = str(tmp_path / "mark")

    def once(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        assert isinstance(made.code, str)
        return replace(made, code=ONCE.format(mark=mark) + made.code)

    with Session(("torch",)) as session:
        seed = judge_invalid(session, builtin(), SEEDS[:6], ("softplus",))[0][0][0]
        monkeypatch.setattr(handed, "lower", once)
        found, counts = judge_invalid(session, builtin(), [seed], ("softplus",))
        assert found == []
        assert counts["torch"] == {"unconfirmed": 1}
        found, counts = judge_invalid(session, builtin(), [seed], ("softplus",))
        assert counts["torch"] == {"refused": 1}


@pytest.mark.parametrize("huge", [True, False])
def test_no_answer_in_time_is_a_timeout_unless_a_number_beyond_all_sizes_was_asked_for(
    huge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        assert isinstance(made.code, str)
        return replace(made, code=f"import time\ntime.sleep(60)\n{made.code}")

    monkeypatch.setattr(handed, "lower", endless)
    monkeypatch.setattr(invalid, "_FATAL", set())
    monkeypatch.setattr(invalid, "_SILENT", set())
    monkeypatch.setattr(invalid, "_PATIENCE", Limits(seconds=0.5))
    monkeypatch.setattr(invalid, "is_huge", lambda _: huge)
    with Session(("torch",), Limits(seconds=2.0)) as session:
        found, counts = judge_invalid(session, builtin(), range(1), ("softplus",))
        assert set(counts["torch"]) == {"late" if huge else "timeout"}
        assert [one.verdict.verdict for _, one in found] == ([] if huge else ["timeout"])
        again, more = judge_invalid(session, builtin(), range(1), ("softplus",))
        assert again == []  # known by now
        if huge:  # numbers of its kind are not asked for again: each takes all of its time
            assert sum(more["torch"].values()) < sum(counts["torch"].values())


def test_what_a_target_warns_of_is_counted_and_not_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def warning(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        assert isinstance(made.code, str)
        return replace(made, code=f"import warnings\nwarnings.warn('beta is 0')\n{made.code}")

    with Session(("torch",)) as session:
        found, plain = judge_invalid(session, builtin(), SEEDS[:4], ("softplus",))
        monkeypatch.setattr(handed, "lower", warning)
        assert judge_invalid(session, builtin(), SEEDS[:4], ("softplus",)) == (
            [],
            {"torch": {"warned": plain["torch"]["accepted"]}},
        )
    assert found


def test_a_second_run_is_had_without_a_fork_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "spare", lambda *_: None)
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), SEEDS[:4], ("softplus",))
    assert counts["torch"]["accepted"] == len(found) > 0


def test_a_target_that_says_shapes_only_accepts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    ops = ("gather", "one_hot", "softmax", "cumsum", "concat")
    with Session(("onnx:shapes",)) as session:
        found, counts = judge_invalid(session, builtin(), SEEDS, ops)
        assert found == []
        assert counts["onnx:shapes"] == {}
        monkeypatch.setattr(invalid, "only_shapes", lambda _: False)  # it does run such calls
        _, counts = judge_invalid(session, builtin(), SEEDS[:20], ops)
        assert counts["onnx:shapes"]["accepted"] > 0


def test_every_requirement_of_an_operator_is_broken_by_some_seed() -> None:
    op = builtin().op("conv")
    assert op is not None
    own = {f"conv.{s.name}" for s in op.body if isinstance(s, ast.Require)}
    codes: set[str] = set()
    for seed in range(80):
        if len(codes & own) > len(own) // 2:
            break
        codes.update(one.fault.code for one in [spoilt(builtin(), seed, ("conv",))] if one)
    assert len(codes & own) > len(own) // 2


def test_a_requirement_on_values_is_broken_by_one_element() -> None:
    made = spoilt(builtin(), 1, ("gather",))
    assert made is not None
    assert made.fault.code == "gather.in_range"
    assert isinstance(made.changed, SetElements)
    ((name, value),) = made.changed.values
    assert made.values(5)[name].flat[0] == value
    wanted = (spoilt(builtin(), seed, ("floor_divide",)) for seed in range(30))
    both = next(one for one in wanted if one and one.fault.code == "floor_divide.quotient")
    assert "give a an element -" in str(both.changed)
    assert "give b an element -1" in str(both.changed)
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), range(8), ("gather", "embedding"))
    assert found == []
    assert counts["torch"]["refused"] > 1


@pytest.mark.parametrize("name", ["gather", "scatter_nd", "embedding", "reverse_sequence"])
def test_a_requirement_on_integers_is_broken_from_near_and_from_far(name: str) -> None:
    """What refuses the first place that is none may follow one that no memory has."""
    found: set[int] = set()
    for require in (r for op, r in breakable(builtin(), [name]) if r is not None):
        for seed in range(3):
            for one in spoils(builtin(), seed, [name], (name, require)):
                if isinstance(one.changed, SetElements):
                    found |= {int(value) for _, value in one.changed.values}
    assert {2**31 - 1, -(2**31)} & found or {2**63 - 1, -(2**63)} & found
    assert any(0 < n < 100 for n in found)


def test_numbers_of_which_nothing_is_said_must_end_no_process() -> None:
    """A histogram of NaN has no value by its definition, and TensorFlow 2.4 dies of it."""
    found = [one for seed in range(16) for one in spoils(builtin(), seed, (), ("histogram", None))]
    made = [one for one in found if one.fault.message == OPEN]
    assert all(one.hollow for one in made)
    numbers = {str(one.values(0)["x"].flat[0]) for one in made}
    assert {"nan", "inf"} <= numbers


@pytest.mark.parametrize("name", ["max_pool", "conv", "resize"])
def test_a_call_in_other_words_is_valid_and_says_another_word(name: str) -> None:
    """Of a target's own operator a padding is only where the word says that it is given."""
    turned = 0
    for seed in range(8):
        node = generate(builtin(), seed, apart=[name]).graph.nodes[-1]
        other = in_other_words(node, random.Random(seed))
        before, after = (one.instance.binding.scope.names for one in (node, other))
        words = [n for n in before if isinstance(before[n], str) and before[n] != after[n]]
        assert not other.instance.faults
        assert len(words) == (other is not node)
        turned += other is not node
    assert turned


def test_numbers_that_are_declared_alike_change_together() -> None:
    """MXNet has one number for both ends of an axis."""
    requires = [one for _, one in breakable(builtin(), ["max_pool"]) if one is not None]
    wanted = next(one for one in requires if one.name == "halo")
    ends = [
        (one.graph.nodes[0].attrs.get("before"), one.graph.nodes[0].attrs.get("after"))
        for seed in range(12)
        for one in spoils(builtin(), seed, ["max_pool"], ("max_pool", wanted))
        if one.fault.code == "max_pool.halo"
    ]
    assert any(low is not None and low == high for low, high in ends)
    assert any(low != high for low, high in ends)


def test_a_list_may_have_an_axis_twice_from_either_end() -> None:
    found = [one for seed in range(8) for one in spoils(builtin(), seed, (), ("reverse", None))]
    lists = [one.changed.value for one in found if isinstance(one.changed, SetAttr)]
    assert any(len(set(axes)) < len(axes) for axes in lists)


def test_parts_of_negative_sizes_are_handed_over() -> None:
    """TensorFlow 2.4 dies of one."""
    programs = Programs(builtin())
    wanted = next(one for _, one in breakable(builtin(), ["split"]) if one and one.name == "sizes")

    def tells(one: Spoilt) -> bool:
        return not one.hollow and is_telling(programs, "tf", one)

    found = [
        one
        for seed in range(6)
        for one in spoils(builtin(), seed, ["split"], ("split", wanted), tells=tells)
    ]
    given = [one.graph.nodes[0].attrs["sizes"] for one in found if one.fault.code == "split.sizes"]
    assert any(len(sizes) > 1 and sum(sizes) > 0 for sizes in given)  # as much as there is


@pytest.mark.parametrize(
    ("target", "name", "requirement"),
    [("tf", "non_max_suppression", "iou_threshold"), ("torch", "unravel_index", "in_range")],
)
def test_what_is_made_of_results_does_not_hide_what_an_operator_was_handed(
    target: str, name: str, requirement: str
) -> None:
    """Boxes that were found are filled up to a size, and positions along axes are stacked."""
    programs, wanted = Programs(builtin()), _wanted(name, requirement)
    able = functools.partial(programs.has, target)
    found = [
        (one, programs.own(target, one.graph))
        for seed in range(3)
        for one in spoils(builtin(), seed, (), wanted, able)
        if one.fault.code == f"{name}.{requirement}" and not one.hollow
    ]
    assert any(low is not None and is_handed_over(one, low, target, programs) for one, low in found)


def test_no_more_is_drawn_of_what_has_taken_its_time() -> None:
    tried: list[Spoilt] = []

    def tells(one: Spoilt) -> bool:
        tried.append(one)
        return False

    wanted = _wanted("max_pool", "halo")
    draw = functools.partial(spoils, builtin(), 1, (), wanted, lambda _: True, tells)
    assert draw(enough=lambda: len(tried) >= 5) == []
    assert len(tried) == 5
    draw()
    assert len(tried) > 50


def test_a_turn_has_given_something_where_what_it_is_for_was_broken() -> None:
    """Else a requirement that a target has no words for has all of its turns again."""
    one = spoilt(builtin(), 1, (), _wanted("max_pool", "stride"))
    assert one is not None
    code = one.fault.code.removeprefix("max_pool.")
    assert _breaks(one, _wanted("max_pool", code))
    assert _breaks(one, ("max_pool", None))
    assert not _breaks(one, _wanted("max_pool", "halo"))


def test_reals_are_put_outside_of_their_bounds_and_nan_says_that_there_is_no_value() -> None:
    p = spoilt(builtin(), 1, (), _wanted("bernoulli", "p"))
    assert p is not None
    assert p.fault.code == "bernoulli.p"
    assert isinstance(p.changed, SetElements)
    ((_, value),) = p.changed.values
    assert not 0 <= value <= 1
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), range(12), ("batch_norm",))
    assert counts["torch"]["warned"] > 0  # a variance below 0
    assert not [one for _, one in found if one.requirement == "spread"]


@pytest.mark.parametrize(
    ("name", "requirement"), [("divide", "divisor"), ("modulo", "divisor"), ("divide", "quotient")]
)
def test_a_requirement_on_integers_is_broken_in_a_call_of_integers(
    name: str, requirement: str
) -> None:
    """Most calls are of reals, of which there is no such requirement."""
    made = [spoilt(builtin(), seed, (), _wanted(name, requirement)) for seed in range(16)]
    assert sum(one is not None and one.fault.code == f"{name}.{requirement}" for one in made) >= 12


def _wanted(name: str, requirement: str) -> tuple[str, ast.Require | None]:
    plan = breakable(builtin(), (name,))
    return next(one for one in plan if one[1] is not None and one[1].name == requirement)


def test_operators_that_a_target_lacks_are_not_tried() -> None:
    with Session(("torch",)) as session:
        _, counts = judge_invalid(session, builtin(), range(40), ())
    assert sum(counts["torch"].values()) > 6
    assert "conv" in spelt("torch")
    assert "softmax" in spelt("onnxruntime")
    assert "matmul_integer" not in spelt("tf")


def test_an_axis_that_is_not_there_is_handed_over_as_it_is() -> None:
    def spoils(seed: int) -> Spoilt | None:
        return spoilt(builtin(), seed, ("cumsum", "softmax", "sort"))

    many = [one for seed in range(60) if (one := spoils(seed)) is not None]
    axes = [one for one in many if isinstance(one.changed, SetAttr) and one.changed.name == "axis"]
    assert axes
    for one in axes:
        assert isinstance(one.changed, SetAttr)
        made = lower(one.graph, "torch", builtin(), {})
        if made.native:
            assert str(one.changed.value) in str(made.code)


# By how many numbers there are in a list that is too short for its axes.
UNSAID = {"tf": (["avg_pool", "conv"], 1), "onnxruntime": (["lp_pool"], 0)}


@pytest.mark.parametrize("target", UNSAID)
def test_lists_that_targets_are_given_as_one_number_or_not_at_all_say_nothing(target: str) -> None:
    """`stride = [2]` of two axes becomes 2 in TensorFlow; no list at all is ONNX's default."""
    names, length = UNSAID[target]
    programs = handed.Programs(builtin())
    able = functools.partial(programs.has, target)
    made = (one for seed in range(100) for one in spoils(builtin(), seed, names, None, able))
    short = (
        one for one in made
        if "numbers;" in one.fault.message
        and isinstance(one.changed, SetAttr) and len(one.changed.value) == length
        and one.changed.name in ("stride", "dilation")
    )  # fmt: skip
    lowered = ((one, handed.own_program(one.graph, target, builtin())) for one in short)
    one, low = next((one, low) for one, low in lowered if low is not None and is_direct(low))
    assert not handed.is_handed_over(one, low, target, programs)


@pytest.mark.parametrize(
    "operator", ["gather", "gather_nd", "take_along_axis", "scatter_elements", "scatter_nd"]
)
def test_places_count_from_the_end_where_a_target_documents_it(operator: str) -> None:
    """What lies beyond that is no place there either."""
    plan = breakable(builtin(), (operator,))
    wanted = next(w for w in plan if w[1] is not None and w[1].name == "in_range")
    target = "onnxruntime"
    programs = handed.Programs(builtin())
    found = Counter[bool]()
    for seed in range(40):
        for one in spoils(builtin(), seed, (operator,), wanted):
            if not isinstance(one.changed, SetElements) or one.hollow:
                continue
            ((_, number),) = one.changed.values
            sizes = one.graph.inputs["x"].info.shape
            taken = number == -1 and 0 not in sizes
            if taken or not -max(sizes) <= number < 0:
                found[taken] += 1
                assert handed.is_valid_as_fixed(one, target, programs.catalog) == taken
    assert found[True]
    assert found[False]
    with Session((target,)) as session:
        accepted, _ = judge_invalid(session, builtin(), SEEDS, (operator,))
    assert not [one for _, one in accepted if one.requirement == "in_range"]


@pytest.mark.parametrize(("target", "told"), [("tf", False), ("onnxruntime", True)])
def test_a_whole_number_is_not_told_where_a_conversion_makes_another_of_it(
    target: str, told: bool
) -> None:
    """Of -2**63, 32 bits keep nothing: TensorFlow is given the first image."""
    plan = breakable(builtin(), ("crop_and_resize", "gather"))
    wanted = [w for w in plan if w[1] is not None and w[1].name in ("batch", "in_range")]
    programs = handed.Programs(builtin())
    operators = ("crop_and_resize",) if target == "tf" else ("gather",)
    found = Counter[tuple[bool, bool]]()
    for wish in (w for w in wanted if w[0] in operators):
        for one in (o for seed in range(60) for o in spoils(builtin(), seed, operators, wish)):
            lowered = programs.own(target, one.graph)
            if lowered is None or not isinstance(one.changed, SetElements) or one.hollow:
                continue
            ((name, number),) = one.changed.values
            wide = one.graph.values[name].dtype == "i64" and not -(2**31) <= number < 2**31
            found[wide, handed.is_wrapped(one, lowered)] += 1
    assert found[False, True] == 0
    assert found[True, told] == 0
    assert found[True, not told]
    assert found[False, False]


def test_what_a_target_documents_to_be_wider_is_not_held_against_it() -> None:
    assert admitted("torch", "take_along_axis", "take_along_axis.ids")
    assert admitted("torch:compile", "take_along_axis", "take_along_axis.ids")
    assert admitted("keras:theano", "transpose", "transpose.permutation")
    assert not admitted("keras:tensorflow", "transpose", "transpose.permutation")
    assert not admitted("torch", "softplus", "softplus.beta")
    assert admitted("tf", "batch_norm", "batch_norm.scale")
    assert not admitted("tf", "batch_norm", "batch_norm.scale", ["fused_batch_norm"])
    assert admitted("torch", "floor_divide", "floor_divide.quotient")
    assert admitted("torch", "matrix_power", "matrix_power.power")
    assert admitted("torch", "solve", "solve.b")
    assert admitted("keras:jax", "group_norm", "group_norm.groups")
    assert admitted("tf:xla", "confusion_matrix", "confusion_matrix.labels")
    assert not admitted("torch", "group_norm", "group_norm.groups")
    for target in ("onnxruntime", "onnxruntime:plain", "openvino", "onnx-reference"):
        assert admitted(target, "embedding", "embedding.table.rank")
        assert admitted(target, "broadcast_to", "broadcast_to.fits")
        assert not admitted(target, "broadcast_to", "broadcast_to.shape")
        assert fixed(target, "gather")
    assert fixed("keras:torch", "gather")
    assert not fixed("torch", "gather")
    assert not fixed("keras:torch", "embedding")
    assert admitted("openvino", "tile", "tile.repeats")
    assert admitted("jax:jit", "kron", "kron.ranks")
    assert admitted("keras:jax", "kron", "kron.ranks")
    assert admitted("jax", "embedding", "embedding.table.rank")
    assert admitted("jax", "pad", "pad.reach")
    assert not admitted("onnxruntime", "tile", "tile.repeats")
    assert admitted("torch", "tensordot", "tensordot.b")
    assert admitted("torch", "cosine_similarity", "cosine_similarity.target.rank")
    assert admitted("torch", "gaussian_nll", "gaussian_nll.target")
    assert not admitted("torch", "gaussian_nll", "gaussian_nll.eps")
    assert not admitted("keras:torch", "softplus", "softplus.beta")
    assert not admitted("torch", "floor_divide", "floor_divide.divisor")
    with Session(("torch",)) as session:
        assert judge_invalid(session, builtin(), SEEDS, ("take_along_axis", "kron"))[0] == []


def test_a_campaign_reports_it_with_a_script(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, Settings(("torch",), 1, 32, ops=("softplus",)))
    campaign.run(lambda _: None)
    report = campaign.report()
    assert report["invalid"]["torch"]["accepted"] >= 1
    assert sum(report["targets"]["torch"].values()) == report["programs"]
    (finding,) = [f for f in report["findings"] if f["verdict"] == "accepted"]
    assert finding["operator"] == "softplus"
    issue = Path(finding["report"]).read_text("utf-8")
    assert 'require beta: beta != 0 else "beta is 0"' in issue
    assert "an invalid program is accepted (beta is 0)" in issue.splitlines()[0]
    assert "It runs, and nothing is said of it." in issue
    ran = subprocess.run(
        [sys.executable, finding["script"]], capture_output=True, text=True, check=True
    )
    assert "got" in ran.stdout


def test_everything_that_can_be_broken_has_its_turn_before_one_comes_again() -> None:
    ops = ("conv", "softplus", "gather")
    plan = breakable(builtin(), ops)
    assert {op for op, _ in plan} == set(ops)
    turns = [_turn(builtin(), ops, "torch", place) for place in range(2 * len(plan))]
    named = [(op, one.name if one else "") for op, one in turns]
    assert len(set(named)) == len(plan)
    assert set(named[: len(plan)]) == set(named[len(plan) :])
    assert [name for _, name in named[:6]].count("") == 2  # what definitions name comes faster
    assert named[: len(plan)] != named[len(plan) :]


def test_numbers_beyond_all_sizes_stand_beside_what_else_there_is_to_break() -> None:
    """A product of sizes that 64 bits do not hold, and such a number beside an input of nothing."""
    found = [one for seed in range(6) for one in spoils(builtin(), seed, (), ("tile", None))]
    beyond = [one for one in found if one.fault.code == "tile.beyond"]
    assert beyond
    # Beside an input of nothing it is asked that no process ends, and no more.
    assert {one.hollow for one in beyond} == {True, False}
    for one in beyond:
        assert one.hollow == any(0 in port.info.shape for port in one.graph.inputs.values())
    made = [next(iter(one.graph.nodes)) for one in beyond]
    repeats = [node.attrs["repeats"] for node in made]
    assert all(max(n if isinstance(n, tuple) else (n,)) >= 2**29 for n in repeats)
    sizes = [[info.shape for info in one.graph.values.values()] for one in beyond]
    assert any(0 in shapes[0] for shapes in sizes)
    assert any(0 not in shapes[0] for shapes in sizes)


def test_a_size_that_follows_from_a_real_number_is_beyond_all_sizes_too() -> None:
    found = [one for seed in range(24) for one in spoils(builtin(), seed, (), ("arange", None))]
    beyond = [one for one in found if one.fault.code == "arange.beyond"]
    numbers = {n for one in beyond for n in one.graph.nodes[0].attrs.values()}
    assert {2.0**62, 1e19, 3e38} <= numbers
    sizes = [info.shape[0] for one in beyond for info in one.graph.values.values()]
    assert min(sizes) >= 2**55


def test_what_is_documented_to_wrap_must_end_no_process() -> None:
    """The least integer by -1 is valid in most frameworks, and ends the process in some."""
    (wanted,) = (w for w in breakable(builtin(), ("divide",)) if w[1] and w[1].name == "quotient")
    programs = Programs(builtin())
    able = functools.partial(programs.has, "torch")
    tells = functools.partial(is_telling, programs, "torch")
    found = [spoils(builtin(), n, (), wanted, able, tells) for n in range(6)]
    made = [one for some in found for one in some if one.fault.code == "divide.quotient"]
    assert made
    for one in made:
        lowered = programs.own("torch", one.graph)
        assert lowered is not None
        assert not is_handed_over(one, lowered, "torch", programs)  # nothing else is held against


def test_what_is_wanted_is_broken() -> None:
    for wanted in breakable(builtin(), ("softplus", "max_pool")):
        got = [one.fault.code for n in range(3) if (one := spoilt(builtin(), n, (), wanted))]
        code = f"{wanted[0]}.{wanted[1].name}" if wanted[1] is not None else f"{wanted[0]}."
        assert any(one.startswith(code) for one in got), (wanted[0], code, got)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "lp_pool"])
def test_a_default_that_follows_what_was_changed_is_no_second_fault(name: str) -> None:
    """A window of nothing has a stride of nothing, where no stride is given."""
    op = builtin().op(name)
    assert op is not None
    window = next(one for one in op.body if isinstance(one, ast.Require) and one.name == "window")
    made = [one for s in range(6) for one in spoils(builtin(), s, [name], (name, window))]
    plain = [one for one in made if "stride" not in one.graph.nodes[0].attrs]
    assert plain
    assert {one.fault.code for one in plain} == {f"{name}.window"}


@pytest.mark.parametrize("name", ["lp_pool", "max_pool_with_argmax"])
def test_a_default_that_follows_what_was_changed_is_not_what_was_changed(name: str) -> None:
    """PyTorch is given a window of its rule's own beside a stride of nothing."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, "torch")
    made = (one for seed in range(400) for one in spoils(builtin(), seed, [name], None, able))
    one = next(
        one for one in made
        if isinstance(one.changed, SetAttr)
        and (one.changed.name, one.changed.value) == ("window", ())
        and "stride" not in one.graph.nodes[0].attrs
    )  # fmt: skip
    lowered = programs.own("torch", one.graph)
    assert lowered is not None
    assert not is_handed_over(one, lowered, "torch", programs)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "max_pool_with_argmax"])
def test_what_would_follow_what_is_changed_is_said_as_well(name: str) -> None:
    """A target that refuses strides of nothing has not been asked about windows of nothing."""
    wanted = _wanted(name, "window")
    made = [one for s in range(8) for one in spoils(builtin(), s, [name], wanted)]
    attrs = [one.graph.nodes[0].attrs for one in made if isinstance(one.changed, SetAttr)]
    apart = [one for one in attrs if one["window"] != one.get("stride", one["window"])]
    assert apart
    for one in apart:
        stride = one["stride"]
        assert min(stride if isinstance(stride, tuple) else (stride,)) >= 1


def test_where_only_nothing_is_found_to_be_broken_another_call_is_tried() -> None:
    """A window that lies beside its input says more than an input without elements."""
    wanted = _wanted("max_pool", "fits")

    def direct(one: Spoilt) -> bool:
        return one.hollow or not {"pad", "dilation", "after"} & one.graph.nodes[0].attrs.keys()

    made = (spoils(builtin(), seed, ["max_pool"], wanted, tells=direct) for seed in range(24))
    assert sum(any(not one.hollow for one in ways) for ways in made) >= 18


@pytest.mark.parametrize("seed", range(4))
def test_changes_are_tried_by_their_ways_in_turn(seed: int) -> None:
    program = generate(builtin(), seed, apart=["avg_pool"], limits=Sizes(elements=48, length=5))
    node = program.graph.nodes[-1]
    found = changes(node, random.Random(seed))
    turned = in_turn(node, found, {"window"}, random.Random(seed))
    assert sorted(map(str, turned)) == sorted(map(str, found))
    about = [move for move in turned if move.name == "window"]
    assert turned[: len(about)] == about
    ways = [way_of(move) for move in about]
    first = len(set(ways))
    assert len(set(ways[:first])) == first  # one of every way before another of one


def test_a_number_that_stands_elsewhere_is_not_handed_over() -> None:
    """A transform of no points is asked of torch as one of one, of `x[..., 0]`, along axis 0."""
    text = "model m(x: f32[2, 1]) -> y: f32[1, 2] { y = dft(x; axis = 0, length = 1) }"
    lowered = lower(check(parse(text), builtin()).graphs[0], "torch", builtin(), {})
    assert "[..., 0]" in str(lowered.code)
    assert 1.0 in numbers(lowered)
    assert 0.0 not in numbers(
        replace(lowered, code=str(lowered.code).replace(", 1, 0)", ", 1, 5)"))
    )
    programs = Programs(builtin())
    for seed in range(8):
        for one in spoils(builtin(), seed, ["dft"], _wanted("dft", "length")):
            own = programs.own("torch", one.graph)
            if own is not None and one.graph.nodes[0].attrs.get("length") == 0:
                assert not is_handed_over(one, own, "torch", programs)


def test_a_number_that_is_wrapped_in_a_tensor_is_handed_over() -> None:
    """`tf.linspace(tf.constant(0.), tf.constant(1.), n)` is one operator of TensorFlow's."""
    made = (one for s in range(6) for one in spoils(builtin(), s, (), ("linspace", None)))
    one = next(one for one in made if one.fault.code == "linspace.beyond")
    lowered = lower(one.graph, "tf", builtin(), {}, whole=False, hollow=True)
    assert "tf.constant" in str(lowered.code)
    assert is_direct(lowered, shaped=True)


def test_one_requirement_is_broken_in_several_ways_and_one_call_by_all_it_says() -> None:
    plan = {one.name if one else "": one for _, one in breakable(builtin(), ("max_pool",))}
    made = (spoils(builtin(), seed, (), ("max_pool", plan["window"])) for seed in range(3))
    several = max(made, key=len)  # some calls have an input too small for a window to be changed
    assert {one.fault.code for one in several} == {"max_pool.window"}
    given = {str(one.changed) for one in several}
    assert len(given) == len(several) > 1
    rest = [spoils(builtin(), n, (), ("conv", None)) for n in range(4)]
    assert max(len({one.fault.code for one in some}) for some in rest) > 1


def test_what_is_accepted_is_known_by_what_it_breaks_and_not_run_again() -> None:
    before: set[Symptom] = set()
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), SEEDS[:12], ("softplus",), before=before)
        assert {(known[1], known[2], known[3]) for known in before} == {
            ("accepted", "softplus", "beta")
        }
        assert find_accepted(session, found[0][1], found[0][0]).signature.endswith("beta beta")
        again, counts = judge_invalid(session, builtin(), SEEDS[:12], ("softplus",), before=before)
        assert again == []
        assert not counts["torch"]["accepted"]


def test_what_is_accepted_in_one_way_may_end_a_process_in_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quotient that wraps is told of; another that ends a process is told of as well."""
    monkeypatch.setattr(invalid, "_FATAL", set())
    turns = (_turn(builtin(), ("divide",), "torch", n)[1] for n in range(8))
    place = next(n for n, one in enumerate(turns) if one and one.name == "quotient")
    accepted = ("torch", "accepted", "divide", "quotient", "a b", "")
    before: set[Symptom] = {accepted}
    seeds = range(12)
    with Session(("torch",)) as session:
        found = []
        for seed in seeds:
            found += judge_invalid(session, builtin(), [seed], ("divide",), place, before)[0]
    assert ("torch", "crash", "divide", "quotient", "a b") in {known[:5] for known in before}
    assert [one.verdict.verdict for _, one in found if one.requirement == "quotient"] == ["crash"]


@pytest.mark.parametrize(
    ("operator", "condition", "change"),
    [("leaky_relu", "slope", SetAttr), ("dense", "units", Resize)],
)
def test_a_call_that_documentation_rules_out_is_held_against_its_target_alone(
    operator: str, condition: str, change: type
) -> None:
    (wanted,) = narrower("keras:tensorflow")[operator]
    assert wanted.name == condition
    one = spoilt(builtin(), 5, (), (operator, wanted))
    assert one is not None
    assert one.added
    assert isinstance(one.changed, change)
    assert one.fault.message.startswith(RULED_OUT)
    assert not check(parse(text_of(one.graph)), builtin()).diagnostics  # it has a value
    assert _documents("keras:tensorflow", one)
    assert not _documents("torch", one)


@pytest.mark.parametrize("operator", ["gru", "simple_rnn", "separable_conv", "dense"])
def test_layers_without_units_are_drawn_and_handed_over(operator: str) -> None:
    """Whatever else may be changed of a call of many inputs, and however its weights are shaped."""
    programs, target = Programs(builtin()), "keras:tensorflow"
    wanted, *_ = narrower(target)[operator]

    def tells(one: Spoilt) -> bool:
        return not one.hollow and is_telling(programs, target, one)

    able = functools.partial(programs.has, target)
    made = [
        one
        for seed in range(8)
        for one in spoils(builtin(), seed, [operator], (operator, wanted), able, tells)
    ]
    added = [one for one in made if one.added and isinstance(one.changed, Resize)]
    assert len(added) >= 2
    for one in added:
        assert any(0 in port.info.shape for port in one.graph.inputs.values())


def test_operators_are_given_tensors_without_elements_but_for_layers_of_keras() -> None:
    text = "(x: f32[0, 3, 4]) -> y: f32[0, 3] { y = global_avg_pool(x) }"
    assert lowered(text, "torch").native
    assert not lowered(text, "keras:tensorflow").native
    assert lowered(text, "keras:tensorflow", hollow=True).native


def test_a_target_need_not_have_a_largest_of_nothing() -> None:
    text = "nnir 1\nmodel m(x: f32[0, 2]) -> y: f32[2] { y = reduce_max(x; axes = 0) }"
    (graph,) = check(parse(text), builtin()).graphs
    assert lower(graph, "torch", builtin(), {}).native
    with Session(("torch",)) as session:
        (outcome,) = session.compare([Case(graph, inputs(graph, 0, {}), {}, builtin())])
    assert [v.verdict for v in outcome.verdicts["torch"]] == ["unsupported"]


def test_a_call_is_broken_by_numbers_beyond_all_sizes_and_by_having_nothing() -> None:
    op = builtin().op("conv")
    assert op is not None
    wanted = {one.name: (op.name, one) for one in op.body if isinstance(one, ast.Require)}
    made = [
        one
        for name in ("channels", "stride")
        for seed in range(12)
        for one in spoils(builtin(), seed, ["conv"], wanted[name])
    ]
    assert any("2147483649" in str(one.changed) for one in made)
    hollow = [one for one in made if one.hollow]
    assert hollow
    for one in made:
        empty = any(0 in port.info.shape for port in one.graph.inputs.values())
        assert empty == one.hollow


def test_of_a_call_without_elements_only_an_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def hollow(*args: Any) -> list[Spoilt]:
        return [one for one in spoils(*args) if one.hollow]

    monkeypatch.setattr(invalid, "spoils", hollow)
    with Session(["torch"]) as session:
        found, counts = judge_invalid(session, builtin(), range(12), ["conv", "matmul"])
    assert not found
    assert not counts["torch"]


def test_what_traces_is_asked_for_its_share_of_them() -> None:
    """Shapes that are inferred first may end a process where an operator would have said no."""
    usable("tf:graph")
    with Session(["tf", "tf:graph"]) as session:
        _, counts = judge_invalid(session, builtin(), range(24), ["squeeze", "concat"])
    few, many = (sum(counts[target].values()) for target in ("tf:graph", "tf"))
    assert 0 < few < many / 2


def test_what_is_learnt_from_is_what_the_target_itself_is_given() -> None:
    programs = handed.Programs(builtin())
    able = functools.partial(programs.has, "tf")
    tells = functools.partial(handed.is_telling, programs, "tf")
    ops = ["max_pool", "one_hot", "transpose"]
    made = [one for seed in range(8) for one in spoils(builtin(), seed, ops, None, able, tells)]
    assert {one.graph.nodes[0].op.name for one in made} == {*ops}
    for one in made:
        low = handed.own_program(one.graph, "tf", builtin())
        assert low is not None
        assert one.hollow or handed.is_handed_over(one, low, "tf", programs)


def test_a_rule_that_repeats_a_text_beyond_all_sizes_says_nothing() -> None:
    """An axis of 2**33 is so many colons; the call is left out, and memory is as before."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    call = "model m(x: f32[2], ids: i64[2, 2]) -> y: f32[2, 2] { y = gather(x, ids; axis = 0) }"
    graph = check(parse(call), builtin()).graphs[0]
    (node,) = graph.nodes
    assert handed.own_program(graph, "torch", builtin()) is not None
    attrs = {**node.attrs, "axis": 1 << 33}
    names = {**node.instance.binding.scope.names, "axis": 1 << 33}
    scope = replace(node.instance.binding.scope, names=names)
    binding = replace(node.instance.binding, scope=scope)
    wrong = replace(node, attrs=attrs, instance=replace(node.instance, binding=binding))
    assert handed.own_program(replace(graph, nodes=[wrong]), "torch", builtin()) is None
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def told(op: str, requirement: str, target: str, seed: int) -> list[Spoilt]:
    """The calls of a seed that break a requirement, and of which a target tells something."""
    (wanted,) = (
        one
        for one in breakable(builtin(), [op], narrower(target))
        if one[1] is not None and one[1].name == requirement
    )
    programs = Programs(builtin())
    able = functools.partial(programs.has, target)
    tells = functools.partial(is_telling, programs, target)
    found = spoils(builtin(), seed, [op], wanted, able, tells)
    code = f"{op}.{requirement}"
    return [one for one in found if one.fault.code == code and not one.hollow]


@pytest.mark.parametrize(
    ("target", "op", "requirement"),
    [
        ("torch", "col2im", "stride"),  # whose `size` must be said
        ("torch", "histogram", "bins"),  # of which PyTorch's counts are real numbers
        ("torch", "fake_quantize", "range"),  # with a zero point where none is given
        ("torch", "avg_pool", "halo"),  # where the word for the padding is that it is given
        ("torch", "max_pool", "halo"),
        ("torch", "avg_pool", "padding"),  # of which PyTorch has one number for both ends
        ("torch", "bucketize", "ascending"),  # of a list that is in order as it is drawn
        ("torch", "random_normal", "stddev"),
        ("torch", "full", "shape"),
        ("torch", "categorical_cross_entropy", "label_smoothing"),
        ("torch", "conv_transpose", "output_padding"),
        ("torch", "conv_transpose", "padding"),  # beside another number that is declared alike
        ("tf", "conv", "fits"),  # with a padding beside a word that leaves it out
        ("tf", "conv", "padding"),
        ("tf", "depthwise_conv", "padding"),
        ("tf", "einsum", "labels"),  # of an equation that does not fit its operands
        ("torch", "einsum", "sizes"),
        ("torch", "ctc", "no_blank"),  # of labels, and of how many of them count
    ],
)
def test_what_breaks_a_requirement_reaches_the_operator(
    target: str, op: str, requirement: str
) -> None:
    if target == "tf":
        pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    assert any(told(op, requirement, target, seed) for seed in range(12))


@pytest.mark.parametrize(
    ("target", "op", "requirement"),
    [
        ("torch", "margin_ranking", "signs"),
        ("torch", "cosine_embedding", "signs"),
        ("torch", "binary_cross_entropy_logits", "shares"),
        ("tf", "binary_cross_entropy_logits", "shares"),
    ],
)
def test_elements_that_a_documentation_alone_rules_out(
    target: str, op: str, requirement: str
) -> None:
    """The rest of the call keeps to what is documented, and by the definition it has a value."""
    found = [one for seed in range(3) for one in told(op, requirement, target, seed)]
    assert found
    for one in found:
        assert isinstance(one.changed, SetElements)
        assert one.added
        assert one.fault.message.startswith(RULED_OUT)
        target_values = one.values(3)["target"].ravel()
        usual = set(target_values[1:].tolist())
        assert usual <= {1.0} or usual <= {-1.0} or all(0 <= n <= 1 for n in usual)
        assert target_values[0] not in (-1.0, 1.0) or requirement == "shares"
        assert run(one.graph, one.values(3), builtin()) is not None


def test_pytorch_accepts_a_label_that_its_documentation_rules_out() -> None:
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), range(20), ["hinge_embedding"], 0, set())
    assert "signs" in {one.requirement for _, one in found}


def test_words_beneath_which_a_number_is_read_come_first() -> None:
    op = builtin().op("max_pool")
    assert op is not None
    seen = 0
    for seed in range(12):
        node = generate(builtin(), seed, apart=["max_pool"]).graph.nodes[-1]
        binding, given = node.instance.binding, {**node.attrs, "pad": "given"}
        if binding.scope.names["pad"] != "given":
            other = in_other_words(node, random.Random(seed), {"before", "after"})
            valid = not instantiate(op, binding.inputs, given).faults
            assert not valid or other.instance.binding.scope.names["pad"] == "given"
            seen += valid
    assert seen >= 3


def test_what_a_requirement_sets_a_number_against_is_handed_over_too() -> None:
    """Of a stable `top_k` PyTorch sorts all, and the first `k` are cut off."""
    found = [one for seed in range(12) for one in told("top_k", "k", "torch", seed)]
    programs = Programs(builtin())
    for one in found:
        lowered = programs.own("torch", one.graph)
        assert lowered is not None
        assert isinstance(lowered.code, str)
        assert "torch.topk" in lowered.code


def test_the_ends_of_64_bits_are_among_the_numbers_that_spoil() -> None:
    told: set[object] = set()
    ends = {2**63 - 1, -(2**63)}
    for seed in range(160):
        for one in spoils(builtin(), seed, ["max_pool", "conv", "top_k"]):
            value = one.changed.value if isinstance(one.changed, SetAttr) else ()
            told.update(value if isinstance(value, tuple) else (value,))
        if ends <= told:
            break
    assert ends <= told


def test_a_mode_may_document_more_than_its_framework() -> None:
    """XLA clamps positions, where TensorFlow's own kernels refuse them."""
    assert "clamped" in admitted("tf:xla", "gather", "gather.in_range")
    assert "divided by 0" in admitted("tf:xla", "floor_divide", "floor_divide.divisor")
    assert not admitted("tf", "gather", "gather.in_range")
    assert "both directions" in admitted("onnxruntime", "broadcast_to", "broadcast_to.fits")
    assert not admitted("onnxruntime", "broadcast_to", "broadcast_to.shape")
    wraps = [admitted(target, "divide", "divide.quotient") for target in ("tf", "tf:xla")]
    assert wraps[0] == wraps[1]


@pytest.mark.parametrize("operator", ["gather", "embedding", "roi_align"])
def test_elements_are_asked_for_of_an_axis_of_nothing(operator: str) -> None:
    (wanted,) = (
        one for one in breakable(builtin(), (operator,))
        if one[1] and one[1].name in ("in_range", "in_vocab", "batch")
    )  # fmt: skip
    found = [one for seed in range(3) for one in spoils(builtin(), seed, (), wanted)]
    hollow = [one for one in found if isinstance(one.changed, Retype)]
    assert hollow
    for one in hollow:
        assert isinstance(one.changed, Retype)
        assert wanted[1]
        assert 0 in one.changed.info.shape
        assert one.fault.code == f"{operator}.{wanted[1].name}"
        assert all(0 not in info.shape for _, info in one.graph.nodes[0].instance.outputs or ())


def _spoiled_turns(
    monkeypatch: pytest.MonkeyPatch, turns: int, fruit: bool, handed: bool = True
) -> list[Any]:
    """What is wanted of spoilt calls in so many turns, each of which gives something or nothing.

    handed: whether the target is handed any valid call.
    """
    catalog, asked = builtin(), []

    def drawn(*args: Any) -> list[Any]:
        asked.append(args[3])
        args[4].ops.update(["one_hot"] if handed else [])
        operator, require = args[3]
        code = f"{operator}.{'' if require is None else require.name}"
        return [SimpleNamespace(fault=Fault(code, "", 1.0, ()))] if fruit else []

    monkeypatch.setattr(invalid, "spoils", drawn)
    programs, fruitless = Programs(catalog), Fruitless()
    for turn in range(turns):
        invalid._spoiled(programs, ["torch"], [turn], ["one_hot"], turn, fruitless)
    return asked


def test_what_cannot_be_broken_is_tried_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is drawn is tried in vain each time, which takes seconds."""
    plan = len(breakable(builtin(), ["one_hot"], narrower("torch")))
    rounds = 16
    each = Counter(map(str, _spoiled_turns(monkeypatch, rounds * plan, fruit=False)))
    assert len(each) == plan
    assert set(each.values()) == {4}  # the first, the third, the seventh and the fifteenth
    none = _spoiled_turns(monkeypatch, rounds * plan, fruit=False, handed=False)
    assert len(none) <= 2 * plan  # of an operator of which there is no call all are tried as seldom
    each = Counter(map(str, _spoiled_turns(monkeypatch, rounds * plan, fruit=True)))
    assert set(each.values()) == {rounds}


def test_no_call_is_spoilt_after_the_end_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PACE, "until", 0.0)
    assert not _spoiled_turns(monkeypatch, 8, fruit=True)


def test_a_program_of_a_valid_call_says_nothing_of_an_invalid_one() -> None:
    """A window of 1 is no longer than what is padded at both ends; but ONNX's MaxPool that pads by
    itself is told of neither end.
    """
    text = """
    model m(x: f32[1, 1, 4]) -> y: f32[1, 1, 2] {
      y = max_pool(x; window = [2], pad = same, before = 1, after = 1)
    }"""
    graph = check(parse(text), builtin()).graphs[0]
    node, types = graph.nodes[0], types_of(graph)
    attrs = {**node.attrs, "window": (1,)}
    instance = judge(node.op, types, attrs)
    assert instance is not None
    assert [fault.code for fault in instance.faults] == ["max_pool.halo"]
    one = spoilt_call(node, graph, {}, SetAttr("window", (1,)), instance, types, attrs)
    own = Programs(builtin())
    assert own.has("onnxruntime", one.graph)
    assert not is_telling(own, "onnxruntime", one)
