"""Invalid calls: made so that one requirement is broken, and what targets do with them."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.cli import status
from irlang.diff import answers, breach, handed, invalid
from irlang.diff.calls import Case
from irlang.diff.campaign import Campaign, Settings
from irlang.diff.cause import LONG
from irlang.diff.finding import find_accepted
from irlang.diff.found import Found
from irlang.diff.handed import Programs, is_handed_over, is_telling
from irlang.diff.invalid import (
    _documents,
    _turn,
    judge_invalid,
)
from irlang.diff.pace import PACE
from irlang.diff.report_folder import write
from irlang.diff.report_issue import issue
from irlang.diff.rounds import Fruitless, Rarest
from irlang.diff.runner import Session
from irlang.diff.seen import Symptom
from irlang.diff.verdict import Verdict
from irlang.gen.changes import (
    Resize,
)  # fmt: skip
from irlang.gen.fed import fed
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.spoil import breakable, breaks, spoils, spoilt
from irlang.gen.spoilt import OPEN, RULED_OUT, Spoilt
from irlang.graph import Graph
from irlang.interp.shape import check
from irlang.lower.lower import Lowered, lower
from irlang.lower.narrows import narrower
from irlang.lower.pool import Limits, Worker
from irlang.parser import parse
from irlang.signature import Fault
from tests.lower_calls import case
from tests.spoilt_calls import SEEDS, text_of, wanted_of
from tests.targets import usable

pytest.importorskip("torch", reason="torch is not installed")


def test_a_target_that_takes_what_has_no_value_is_caught_and_one_that_refuses_is_not() -> None:
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), SEEDS[:6], ("softplus",))
        assert {one.case.graph.nodes[0].op.name for _, one in found} == {"softplus"}
        assert found[0][1].given.keys() == {"beta"}
        assert counts["torch"]["accepted"] == len(found)
        found, counts = judge_invalid(session, builtin(), SEEDS, ("matmul", "gather", "concat"))
        assert found == []
        assert counts["torch"]["refused"] > 5


def _beginning(lines: str) -> Callable[..., Lowered]:
    """What writes programs that begin with some lines."""

    def written(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        assert isinstance(made.code, str)
        return replace(made, code=f"{lines}\n{made.code}")

    return written


def test_a_process_that_ends_has_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed, "lower", _beginning("import os\nos.kill(os.getpid(), 8)"))
    monkeypatch.setattr(breach, "_FATAL", set())
    with Session(("torch",)) as session:
        (one, *others), counts = judge_invalid(session, builtin(), range(2), ("softplus",))
        assert counts["torch"]["crash"] >= 1 + len(others)  # each requirement is told of once
        assert one[1].verdict.verdict == "crash"
        assert sum(array.size for array in one[1].case.values.values()) == 1  # it is made small
        assert judge_invalid(session, builtin(), SEEDS[:1], ("softplus",))[0] == []  # known by now
        found = find_accepted(session, one[1], one[0])
    assert "SIGFPE" in found.verdict.message
    assert "invalid" in found.signature
    assert found.signature.endswith("softplus")  # the function of the target
    text = issue(found, "", "")
    assert "the process dies of an invalid program" in text
    assert 'require beta: beta != 0 else "beta is 0"' in text


@pytest.mark.parametrize("command", ["diff", "localize", "reduce"])
def test_a_finding_that_is_invalid_on_purpose_says_so(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), range(6), ("softplus",))
        seed, one = next(one for one in found if one[1].verdict.verdict == "accepted")
        made = find_accepted(session, one, seed)
    write(made, tmp_path, "f-001")
    assert status([command, str(tmp_path), "--targets", "torch"]) == 1
    said = capsys.readouterr().err
    assert "torch does not refuse this, which is the finding" in said
    assert f"python {tmp_path / 'show_torch.py'} shows it" in " ".join(said.split())
    assert "softplus.beta" in said


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


LAST_STRAW = """import os
if "SPOILT" in os.environ:
    os.kill(os.getpid(), 8)
os.environ["SPOILT"] = "1"
"""


def test_an_end_that_comes_of_what_ran_before_is_said_not_to_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every program leaves behind what ends the next one of its process."""
    monkeypatch.setattr(handed, "lower", _beginning(LAST_STRAW))
    monkeypatch.setattr(breach, "_FATAL", set())
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

    with Session(("torch",)) as session:
        seed = judge_invalid(session, builtin(), SEEDS[:6], ("softplus",))[0][0][0]
        monkeypatch.setattr(handed, "lower", _beginning(ONCE.format(mark=mark)))
        found, counts = judge_invalid(session, builtin(), [seed], ("softplus",))
        assert found == []
        assert counts["torch"] == {"unconfirmed": 1}
        found, counts = judge_invalid(session, builtin(), [seed], ("softplus",))
        assert counts["torch"] == {"refused": 1}


@pytest.mark.parametrize("huge", [True, False])
def test_no_answer_in_time_is_a_timeout_unless_a_number_beyond_all_sizes_was_asked_for(
    huge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed, "lower", _beginning("import time\ntime.sleep(60)"))
    monkeypatch.setattr(breach, "_FATAL", set())
    monkeypatch.setattr(breach, "_SILENT", set())
    monkeypatch.setattr(invalid, "PATIENCE", Limits(seconds=0.5))
    monkeypatch.setattr(answers, "is_huge", lambda _: huge)
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
    with Session(("torch",)) as session:
        found, plain = judge_invalid(session, builtin(), SEEDS[:4], ("softplus",))
        monkeypatch.setattr(
            handed, "lower", _beginning("import warnings\nwarnings.warn('beta is 0')")
        )
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
        monkeypatch.setattr(invalid, "is_run_first", lambda _: False)  # it does run such calls
        monkeypatch.setattr(invalid, "only_shapes", lambda _: False)
        _, counts = judge_invalid(session, builtin(), SEEDS[:20], ops)
        assert counts["onnx:shapes"]["accepted"] > 0


def test_numbers_of_which_nothing_is_said_must_end_no_process() -> None:
    """A histogram of NaN has no value by its definition, and TensorFlow 2.4 dies of it."""
    found = [one for seed in range(16) for one in spoils(builtin(), seed, (), ("histogram", None))]
    made = [one for one in found if one.fault.message == OPEN]
    assert all(one.hollow for one in made)
    numbers = {str(fed(one, builtin())["x"].flat[0]) for one in made}
    assert {"nan", "inf"} <= numbers


def test_a_turn_has_given_something_where_what_it_is_for_was_broken() -> None:
    """Else a requirement that a target has no words for has all of its turns again."""
    one = spoilt(builtin(), 1, (), wanted_of("max_pool", "stride"))
    assert one is not None
    code = one.fault.code.removeprefix("max_pool.")
    assert breaks(one, wanted_of("max_pool", code))
    assert breaks(one, ("max_pool", None))
    assert not breaks(one, wanted_of("max_pool", "halo"))


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


def test_what_is_accepted_is_known_by_what_it_breaks_and_not_run_again() -> None:
    before: set[Symptom] = set()
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), SEEDS[:12], ("softplus",), before=before)
        assert {(known[1], known[2], known[3]) for known in before} == {
            ("accepted", "softplus", "beta")
        }
        assert find_accepted(session, found[0][1], found[0][0]).signature.endswith("invalid beta")
        again, counts = judge_invalid(session, builtin(), SEEDS[:12], ("softplus",), before=before)
        assert again == []
        assert not counts["torch"]["accepted"]


def test_what_is_accepted_in_one_way_may_end_a_process_in_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quotient that wraps is told of; another that ends a process is told of as well."""
    monkeypatch.setattr(breach, "_FATAL", set())
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
    assert {one.verdict.verdict for _, one in found if one.requirement == "quotient"} == {"crash"}


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


def test_pytorch_accepts_a_label_that_its_documentation_rules_out() -> None:
    with Session(("torch",)) as session:
        found, _ = judge_invalid(session, builtin(), range(20), ["hinge_embedding"], 0, set())
    assert "signs" in {one.requirement for _, one in found}


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
        return [SimpleNamespace(fault=Fault(code, "", 1.0, ()), graph=None)] if fruit else []

    monkeypatch.setattr(invalid, "spoils", drawn)
    monkeypatch.setattr(invalid, "functions_of", lambda *_: "one_hot")
    programs, fruitless, rarest = Programs(catalog), Fruitless(), Rarest()
    for turn in range(turns):
        invalid._spoiled(programs, ["torch"], [turn], ["one_hot"], turn, fruitless, rarest)
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


def test_what_a_framework_takes_without_a_mode_waits_for_what_it_refuses() -> None:
    """PyTorch itself takes a softplus of no steepness, and refuses a matrix of other sizes."""
    with Session(("torch",)) as session:
        session.compiles["torch"], session.plain["torch"] = True, "torch"  # as of a mode
        early, counts = judge_invalid(session, builtin(), SEEDS[:6], ("softplus", "matmul"), 0)
        assert not early
        assert set(counts["torch"]) == {"refused"}
        later, _ = judge_invalid(session, builtin(), SEEDS[:6], ("softplus", "matmul"), 1000)
    assert {one.case.graph.nodes[0].op.name for _, one in later} == {"softplus"}


def test_more_axes_than_tensors_have_end_a_process_once_whatever_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handed, "lower", _beginning("import os\nos.kill(os.getpid(), 8)"))
    monkeypatch.setattr(breach, "_FATAL", set())
    signatures = []
    with Session(("torch",)) as session:
        for operator in ("reshape", "tile"):
            turns = (_turn(builtin(), (operator,), "torch", n)[1] for n in range(8))
            place = next(n for n, one in enumerate(turns) if one is None)
            for seed in range(6):
                told = judge_invalid(session, builtin(), [seed], (operator,), place)[0]
                found = [find_accepted(session, one, number) for number, one in told]
                signatures += [one.signature for one in found if one.requirement == "long"]
    assert len(signatures) > 1
    assert set(signatures) == {f"torch {LONG}"}


def test_the_end_of_a_process_is_told_of_every_function_of_an_operator() -> None:
    """`irfft` may end a process by a length by which `rfft` has ended one."""
    one = spoilt(builtin(), 0, ["dft"], wanted_of("dft", "length"))
    assert one is not None
    first, other = (breach.symptom_of_breach("tf", one, "crash", f) for f in ("rfft", "irfft"))
    assert breach.is_told(first, {first})
    assert not breach.is_told(other, {first})
    assert breach.has_ended("tf", one, {first}, "rfft")
    assert not breach.has_ended("tf", one, {first}, "irfft")
    accepted = (breach.symptom_of_breach("tf", one, "accepted", f) for f in ("rfft", "irfft"))
    assert len(set(accepted)) == 1


@pytest.mark.parametrize("verdict", ["accepted", "crash"])
@pytest.mark.parametrize(
    ("requirement", "names", "one"),
    [
        ("range", ("low", "high"), {"accepted"}),  # what is not looked at is that one requirement
        ("beyond", ("low", "bins"), set()),  # of numbers beyond all sizes, each by itself
    ],
)
def test_accepted_calls_that_break_one_requirement_are_one_finding(
    requirement: str, names: tuple[str, ...], one: set[str], verdict: str
) -> None:
    made = Case(case("x: f32[2]", "histogram(x)").graph, {}, {}, builtin())
    told = Verdict("y", "torch", cast("Any", verdict))
    signatures = {
        Found(1, "torch", told, "histogram", {name: "2"}, "1", made, made,
              fault="there is nothing", requirement=requirement).signature
        for name in names
    }  # fmt: skip
    assert (len(signatures) == 1) == (verdict in one)


def test_ends_of_a_process_by_one_check_are_one_finding() -> None:
    """Whichever number of whichever attribute it is that the check does not like."""
    made = Case(case("x: f32[2]", "histogram(x)").graph, {}, {}, builtin())
    told = Verdict("y", "tf", cast("Any", "crash"))
    printed = "F0000 00:00:1 7 {}] Check failed: 0 <= size ({} vs. 0)"
    first, second, other, silent = (
        Found(1, "tf", told, "histogram", {name: "2"}, "1", made, made, fault="it is too large",
              requirement=name, output=output, functions="Histogram").signature
        for name, output in (
            ("low", printed.format("shape.cc:352", -1)),
            ("bins", printed.format("shape.cc:352", -2)),
            ("low", printed.format("shape.cc:173", -1)),
            ("low", "killed"),
        )
    )  # fmt: skip
    assert first == second
    assert len({first, other, silent}) == 3


def test_what_has_axes_too_many_or_too_few_is_told_by_its_name() -> None:
    """Where a target has one axis and the input two, it does not matter which was changed."""
    made = [one for seed in SEEDS for one in spoils(builtin(), seed, ["kl_div"])]
    ranks = [one for one in made if one.fault.code == "kl_div.target.rank"]
    assert {one.changed.name for one in ranks if isinstance(one.changed, Retype)} >= {"log_probs"}
    assert {breach.requirement_of(one) for one in ranks} == {"sizes"}
    assert {breach.subject_of(one) for one in ranks} == {"target"}
