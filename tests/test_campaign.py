"""Campaigns: a seed gives the same programs, what is finished is kept, keys are as agreed."""

from __future__ import annotations

import collections
import json
import math
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from irlang import ast
from irlang.catalog import builtin
from irlang.cli import status
from irlang.commands.fuzz import _operators
from irlang.commands.fuzz import command as fuzz
from irlang.diagnostics import InvalidInput
from irlang.diff import batch, judgement, programs, runner
from irlang.diff import campaign as campaigns
from irlang.diff.batch import _spoilt, _words
from irlang.diff.calls import Case
from irlang.diff.campaign import Campaign, Settings
from irlang.diff.finding import find
from irlang.diff.found import Found
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.programs import BATCH, make_case, program_seed
from irlang.diff.report_issue import issue
from irlang.diff.runner import Session
from irlang.diff.seen import Seen, calls_of, symptom_of
from irlang.diff.store import Store
from irlang.diff.verdict import Verdict
from irlang.gen.build import generate
from irlang.gen.coverage import features
from irlang.gen.draw import varied
from irlang.gen.idiom import idioms
from irlang.gen.pattern import pattern
from irlang.gen.spoil import breakable
from irlang.graph import Graph, with_loss
from irlang.graph_text import to_ast
from irlang.interp.shape import check
from irlang.interp.values import inputs
from irlang.lower.lower import lower
from irlang.lower.manner import Manner
from irlang.lower.pool import Late
from irlang.parser import parse
from irlang.parser.printer import print_file

pytest.importorskip("torch", reason="torch is not installed")

# Of a campaign's calls, at least, have this in an operand, a result or an attribute.
SHARES = {
    "empty axis": 0.01, "axis of size 1": 0.1, "no axis": 0.1, "negative axis": 0.02,
    "stride beyond window": 0.001, "f64": 0.05, "f16": 0.02, "bf16": 0.02, "i64": 0.05,
    "i32": 0.01, "bool": 0.02,
}  # fmt: skip
_SOME = ("add", "multiply", "relu", "softmax", "transpose", "matmul")  # of which all is right
_SMALL = 4  # programs of a batch, and an eighth of all that stands beside them
SETTINGS = Settings(("torch",), 3, _SMALL + 2, ops=_SOME)


@contextmanager
def _small() -> Iterator[None]:
    """Batches of this process are small meanwhile, as the last one of a campaign is."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (programs, campaigns):  # `batch` asks what part of a whole one it has
            patched.setattr(module, "BATCH", _SMALL)
        yield


@pytest.fixture
def small() -> Iterator[None]:
    """Batches of this process are small."""
    with _small():
        yield


def _run(folder: Path, settings: Settings | None = SETTINGS) -> Campaign:
    campaign = Campaign(folder, settings)
    campaign.run(lambda _: None)
    return campaign


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a campaign that nobody stopped reports."""
    with _small():
        return _run(tmp_path_factory.mktemp("whole")).report()


@pytest.mark.usefixtures("small")
def test_a_campaign_is_a_function_of_its_seed(whole: dict[str, Any], tmp_path: Path) -> None:
    first, second = whole, _run(tmp_path).report()
    for report in (first, second):
        assert report["programs"] == report["valid"] == _SMALL + 2
        assert sum(report["targets"]["torch"].values()) == _SMALL + 2
        assert report["coverage"]["cells"] > 30
        assert report["coverage"]["features"]["calls"] == sum(report["coverage"]["uses"].values())
    assert first["coverage"] == second["coverage"]
    assert first["targets"] == second["targets"]


@pytest.mark.usefixtures("small")
def test_what_is_finished_is_there_after_a_stop(whole: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    campaign = Campaign(folder, SETTINGS)

    def stop(now: Campaign) -> None:
        if now.tally.programs:
            raise KeyboardInterrupt

    campaign.run(stop)
    assert campaign.interrupted
    assert [number for number, _ in Store(folder, None).batches()] == [0]
    resumed = _run(folder, None).report()
    assert resumed["programs"] == whole["programs"]
    assert resumed["targets"] == whole["targets"]


BROKEN = {
    "no settings": "delete from settings",
    "no JSON": "update settings set value = '{'",
    "another type": "update settings set value = '\"x\"' where key = 'seed'",
    "an unknown setting": "insert into settings values ('other', '1')",
    "no target of ours": "update settings set value = '[\"other\"]' where key = 'targets'",
    "no operator of ours": "update settings set value = '[\"other\"]' where key = 'ops'",
    "an empty batch": "insert into batches values (0, '{}')",
    "a batch of nothing": "insert into batches values (0, 'null')",
    "an empty finding": "insert into findings values ('f-001', 's', '{}')",
    "a finding that is a list": "insert into findings values ('f-001', 's', '[]')",
    "another table": "drop table batches; create table batches (other text)",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_store_that_is_at_fault_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Campaign(tmp_path, SETTINGS).close()
    with closing(sqlite3.connect(tmp_path / "campaign.sqlite")) as file:
        file.executescript(BROKEN[name])
    assert status(["fuzz", "--resume", str(tmp_path), "--time", "1s"]) == 2
    assert "error[" in capsys.readouterr().err


def test_a_campaign_of_so_many_programs_goes_on_without_a_limit_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []
    monkeypatch.setattr("irlang.commands.fuzz._run", lambda _, seconds, __: given.append(seconds))
    for started, name in ((SETTINGS, "counted"), (replace(SETTINGS, seconds=7.0), "timed")):
        Campaign(tmp_path / name, started).close()
        status(["fuzz", "--resume", str(tmp_path / name)])
        status(["fuzz", "--resume", str(tmp_path / name), "--time", "3s"])
    assert given == [None, 3.0, 7.0, 3.0]


@pytest.mark.parametrize(
    "option",
    [
        ["--targets", "torch"], ["--programs", "1"], ["--seed", "1"], ["--jobs", "1"],
        ["--ops", "relu"], ["--grad"], ["--out", "other"], ["--known", "known.toml"],
    ],
)  # fmt: skip
def test_a_campaign_goes_on_as_it_was_started(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Campaign(tmp_path, SETTINGS).close()
    assert status(["fuzz", "--resume", str(tmp_path), "--time", "1s", *option]) == 2
    assert "error[usage.resume]" in capsys.readouterr().err


def test_a_program_is_made_again_from_its_seed() -> None:
    seeds = [program_seed(7, number) for number in range(6)]
    texts = []
    for _ in range(2):
        cases = [make_case(builtin(), seed) for seed in seeds]
        texts.append([print_file(ast.File((to_ast(c.graph),))) if c else "" for c in cases])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1


def test_a_program_depends_neither_on_the_process_nor_on_what_is_kept(tmp_path: Path) -> None:
    """Once with nothing learned yet, once with what the first process has kept."""
    seeds = [program_seed(3, number) for number in range(4)]
    code = (
        "from irlang import ast; from irlang.catalog import builtin\n"
        "from irlang.diff.programs import make_case\n"
        "from irlang.graph_text import to_ast; from irlang.parser.printer import print_file\n"
        f"cases = [make_case(builtin(), seed) for seed in {seeds}]\n"
        "print(*(print_file(ast.File((to_ast(c.graph),))) if c else '' for c in cases))"
    )
    cases = [make_case(builtin(), seed) for seed in seeds]
    here = [print_file(ast.File((to_ast(c.graph),))) if c else "" for c in cases]
    for salt in "1", "2":
        there = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": salt, "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert there == " ".join(here) + "\n"
    assert any(tmp_path.rglob("*-*"))  # something was kept


def test_programs_have_their_share_of_edges_and_types() -> None:
    found: collections.Counter[str] = collections.Counter()
    # many short ones: calls of one program mostly share what is rare
    for number in range(800):
        limits = varied(number)
        found.update(features(generate(builtin(), number, size=(1, 4), limits=limits).graph))
    calls = found["calls"]
    for name, least in SHARES.items():
        assert found[name] >= least * calls, (name, found[name], calls)


@pytest.mark.parametrize(("call", "edge"), [("exp(x)", True), ("tanh(x)", False)])
def test_a_program_that_makes_infinity_is_at_the_edge(
    call: str, edge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In f32 exp(200) is infinite; what follows is fed with that."""
    text = "model m(x: f32[2] in [200, 201]) -> z: f32[2] {{\n y = {}\n z = minimum(x, 1)\n}}"
    graph = check(parse(text.format(call), "m"), builtin()).graphs[0]
    monkeypatch.setattr(programs, "generate", lambda *_, **__: SimpleNamespace(graph=graph))
    case = make_case(builtin(), program_seed(1, 1))
    assert case is not None
    assert case.edge == edge


def test_a_loss_is_a_name_and_changes_no_value() -> None:
    for number in range(20):
        case = make_case(builtin(), program_seed(9, number))
        if case is None:
            continue
        graph = with_loss(case.graph)
        if graph is not case.graph:
            assert graph.values["loss"].shape == ()
            assert [n.op.name for n in graph.nodes] == [n.op.name for n in case.graph.nodes]
            assert len(graph.values) == len(case.graph.values)
            return
    pytest.fail("no program of twenty has a single real number")


def test_the_command_gives_the_keys_of_the_design(tmp_path: Path) -> None:
    arguments = ["--targets", "torch", "--programs", "4", "--seed", "1", "--jobs", "1"]
    out = ["--out", str(tmp_path / "c"), "--format", "json"]
    result = CliRunner().invoke(fuzz, [*arguments, *out], standalone_mode=False)
    report = json.loads(result.output)
    assert {"programs", "valid", "seconds", "targets", "findings", "coverage"} <= report.keys()
    assert result.return_value == (1 if report["findings"] else 0)
    assert (tmp_path / "c" / "report.json").is_file()
    for finding in report["findings"]:
        assert {
            "id",
            "verdict",
            "target",
            "operator",
            "attributes",
            "reduced",
            "script",
            "report",
        } <= finding.keys()


def _graph(text: str) -> Graph:
    return check(parse(f"nnir 1\n{text}", "m"), builtin()).graphs[0]


def test_a_known_culprit_is_looked_into_at_times() -> None:
    """It may have another fault, or stand beside one: of many programs the 2nd, 4th, 8th … are."""
    graph = _graph("model m(x: f32[2]) -> y: f32[2] {\n  a = tanh(x)\n  y = relu(a)\n}")
    seen = Seen(collections.Counter({("torch", "wrong", calls_of("tanh", {})): 1}))
    looked = [number for number in range(2, 40) if not seen.explains(graph, "torch", "wrong")]
    assert looked == [2, 4, 8, 16, 32]
    assert not seen.explains(graph, "torch", "crash")
    assert not seen.explains(graph, "tf", "wrong")


def test_a_call_that_is_right_by_itself_explains_nothing() -> None:
    """Calls that are wrong together are looked into, whatever one of them has shown; so often."""
    graph = _graph("model m(x: f32[2]) -> y: f32[2] {\n  a = tanh(x)\n  y = relu(a)\n}")
    known = [("torch", "wrong", calls_of("tanh", {})), ("torch", "wrong", calls_of("relu", {}))]
    seen = Seen(collections.Counter(dict.fromkeys(known, 2)))
    assert seen.explains(graph, "torch", "wrong")
    looked = [
        number
        for number in range(1, 20)
        if not seen.explains(graph, "torch", "wrong", together=True)
    ]
    assert looked == [1, 2, 4, 8, 16]
    whole = Seen(collections.Counter({("torch", "wrong", calls_of("tanh + relu", {})): 2}))
    assert whole.explains(graph, "torch", "wrong", together=True)


def test_what_another_process_has_looked_into_is_known() -> None:
    """As met twice: the second of it is the other's."""
    graph = _graph("model m(x: f32[2]) -> y: f32[2] {\n  y = tanh(x)\n}")
    other, seen = Seen(), Seen()
    other.culprits["torch", "wrong", calls_of("tanh", {})] = 1
    other.symptoms.add(("torch", "edge", "tanh", "forward", "nan", "zero"))
    for _ in range(2):  # heard again, it is not new again
        seen.learn(other.known())
    looked = [number for number in range(3, 20) if not seen.explains(graph, "torch", "wrong")]
    assert looked == [4, 8, 16]
    assert seen.symptoms == other.symptoms
    assert seen.known() == other.known()


def test_a_symptom_hides_what_is_no_graver_than_it() -> None:
    """A number that is wrong at an edge, or a few digits less, hides none that is wrong by usual
    values.
    """
    grave = [
        symptom_of("torch", "tanh", Verdict("y", "torch", said, expected=1.0, got=2.0), edge)
        for said, edge in (("inaccurate", False), ("wrong", True), ("wrong", False))
    ]
    for at, known in enumerate(grave):
        seen = Seen(symptoms={known})
        assert [seen.knows(one) for one in grave] == [place <= at for place in range(3)]


_INF = math.inf
MIRRORED = {
    ((_INF, math.nan), (-_INF, math.nan)): True,
    ((1.0, _INF), (-3.0, -_INF)): True,
    ((_INF, -_INF), (-_INF, _INF)): True,
    ((_INF, 0.0), (_INF, 1.0)): False,
    ((_INF, -_INF), (_INF, math.nan)): False,
    ((_INF, -_INF), (1.0, _INF)): False,
}


@pytest.mark.parametrize(("one", "other"), MIRRORED)
def test_an_infinity_of_the_other_sign_is_no_other_defect(
    one: tuple[float, float], other: tuple[float, float]
) -> None:
    """`quantile` that gives NaN instead of inf gives it instead of -inf."""
    verdicts = [Verdict("y", "torch", "edge", expected=e, got=g) for e, g in (one, other)]
    symptoms = {symptom_of("torch", "quantile", verdict, edge=True) for verdict in verdicts}
    assert (len(symptoms) == 1) == MIRRORED[one, other]


def test_a_known_fault_explains_no_call_that_lacks_what_it_needs() -> None:
    """A fault of padding by `same` is none of a call that pads by numbers."""
    text = "model m(x: f32[1, 1, 4]) -> y: f32[1, 1, 2] {{\n  a = max_pool(x; {})\n  y = {}\n}}"
    same, given = "window = [3], pad = same", "window = [3], pad = given, before = [1], after = [1]"
    known = {
        "max_pool": {"pad": "same"},
        "max_pool + tanh": {"max_pool.pad": "same", "max_pool.window": "[2]"},
    }
    for operator, attributes in known.items():
        calls = calls_of(operator, attributes)
        for pad, after, explained in (
            (same, "tanh(a)", True),  # another window is no other fault
            (same, "relu(a)", operator == "max_pool"),
            (given, "tanh(a)", False),
        ):
            seen = Seen(collections.Counter({("torch", "wrong", calls): 2}))
            assert seen.explains(_graph(text.format(pad, after)), "torch", "wrong") == explained


@pytest.mark.usefixtures("small")
def test_what_there_is_no_room_for_stays_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as refused and not looked into, it is looked into in the next batch."""
    refused = "raise ValueError('nothing is run here')"
    seen = Seen()
    for module in (batch, judgement):
        monkeypatch.setattr(module, "SEEN", seen)
    monkeypatch.setattr(batch, "cases_apart", lambda *_, **__: ())
    monkeypatch.setattr(runner, "lower", lambda *a, **k: replace(lower(*a, **k), code=refused))
    settings = Settings(("torch",), 3, 2 * _SMALL, ops=("tanh", "relu"))
    looked: list[str] = []

    def found(session: Session, case: Case, seed: int, target: str, outcome: Outcome) -> Found:
        looked.append(target)
        return find(session, case, seed, target, outcome)

    monkeypatch.setattr(judgement, "find", found)
    try:
        with monkeypatch.context() as full:
            full.setattr(judgement, "_LOCALISED", 0)
            counts = batch.run_batch(settings, 0)[0]
        assert counts["targets"]["torch"]["refused"] > 2
        assert not looked
        assert not seen.refusals
        batch.run_batch(settings, 1)
        assert looked
    finally:
        batch.close_sessions()


@pytest.mark.usefixtures("small")
def test_two_processes_share_a_campaign(tmp_path: Path) -> None:
    """Each batch is run by one of them; what a dead one had claimed is run by the other."""
    settings = Settings(("torch",), 5, 4 * _SMALL, ops=("softplus", "add"))
    first, second = Campaign(tmp_path, settings), Campaign(tmp_path, None)
    assert first.store.claim(0)
    assert not second.store.claim(0)
    assert not first.store.claim(0)
    assert first.store.reserve("a") == "f-001"
    assert second.store.reserve("a") is None
    assert second.store.reserve("b") == "f-002"
    second.run(lambda _: None)
    assert [number for number, _ in second.store.batches()] == [1, 2, 3]
    first.close()  # as when it is killed: the lock is gone
    assert second.store.reserve("a") is not None
    second.run(lambda _: None)
    second.close()
    whole = Campaign(tmp_path, None)
    assert whole.report()["programs"] == 4 * _SMALL
    assert len({f["id"] for f in whole.findings}) == len(whole.findings)
    whole.close()
    assert not list(tmp_path.glob(".running-*"))


@pytest.mark.usefixtures("small")
def test_a_batch_is_recorded_after_its_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies while it writes a finding leaves the batch to be run again."""
    settings = Settings(("torch",), 1, _SMALL, ops=("softplus",))
    campaign = Campaign(tmp_path, settings)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("irlang.diff.guard.write", dies)
        campaign.run(lambda _: None)
    assert campaign.interrupted
    campaign.close()
    resumed = _run(tmp_path, None)
    assert resumed.report()["programs"] == _SMALL
    assert any(f["verdict"] == "accepted" for f in resumed.findings)
    resumed.close()


def test_a_fault_in_writing_a_finding_costs_no_more_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LookupError("no such row")

    campaign = Campaign(tmp_path, Settings(("torch",), 1, _SMALL, ops=("softplus",)))
    with monkeypatch.context() as patched:
        patched.setattr("irlang.diff.guard.write", fails)
        campaign.run(lambda _: None)
    report = campaign.report()
    campaign.close()
    assert report["programs"] == _SMALL
    assert not report["findings"]
    assert "f-001" in report["faults"]
    text = (tmp_path / "faults.txt").read_text("utf-8")
    assert "finding f-001 of seed 1\n" in text
    assert "LookupError: no such row" in text


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_finding_is_there_before_its_batch_is_done(tmp_path: Path, jobs: int) -> None:
    seen = []

    def look(now: Campaign) -> None:
        seen.append((len(now.findings), now.tally.programs))

    campaign = Campaign(tmp_path, Settings(("torch",), 1, _SMALL, ops=("softplus",), jobs=jobs))
    campaign.run(look)
    assert any(findings and not programs for findings, programs in seen)
    assert seen[-1] == (len(campaign.findings), _SMALL)
    campaign.close()


def test_a_batch_that_is_cut_short_is_run_again(tmp_path: Path) -> None:
    """Its time is over before the framework has started."""
    settings = Settings(("torch",), 1, _SMALL, ops=("softplus",))
    start = time.monotonic()
    campaign = Campaign(tmp_path / "cut", settings)
    campaign.run(lambda _: None, seconds=0.1)
    assert campaign.report()["programs"] == 0
    begun = sum(campaign.tally.apart["torch"].values())
    assert [batch["cut"] for _, batch in campaign.store.batches()] == [True]
    assert campaign.tally.seconds < time.monotonic() - start
    campaign.close()
    resumed, whole = _run(tmp_path / "cut", None), _run(tmp_path / "whole", settings)
    assert resumed.tally.targets == whole.tally.targets
    assert resumed.tally.apart == whole.tally.apart
    assert begun < sum(whole.tally.apart["torch"].values())
    assert {f["signature"] for f in whole.findings} <= {f["signature"] for f in resumed.findings}
    for one in (resumed, whole):
        one.close()


def test_a_batch_begins_with_some_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow target has run a whole program, too, before the time of a short campaign is over."""
    own, turns = batch._Batch.call, []

    def call(self: batch._Batch, share: float) -> bool:
        turns.append(share)
        if len(turns) == 2:
            monkeypatch.setattr(PACE, "until", 0.0)
        return own(self, share)

    monkeypatch.setattr(batch._Batch, "call", call)
    counts, _ = batch.run_batch(Settings(("torch",), 1, None), 0)
    assert (counts["programs"], counts["cut"]) == (1, True)
    for kind in ("targets", "apart", "pieces", "invalid"):
        assert sum(counts[kind]["torch"].values()) > 0, kind


def _turns(monkeypatch: pytest.MonkeyPatch, seconds: float) -> dict[str, int]:
    """How many turns each kind has of a batch in which programs take long and nothing else does."""
    had: collections.Counter[str] = collections.Counter()

    def kind(name: str, pause: float) -> Callable[[float], bool]:
        def take(_: float) -> bool:
            had[name] += 1
            time.sleep(pause)
            return had[name] < 40

        return take

    names = {"call": 0.01, "fire": 0.01, "spoil": 0.01, "slope": 0.01, "run": 0.2}
    made = SimpleNamespace(
        cut=False, first=1 / 8, **{name: kind(name, p) for name, p in names.items()}
    )
    with monkeypatch.context() as timed:
        timed.setattr(PACE, "until", time.monotonic() + seconds)
        batch._take_turns(cast("batch._Batch", made))
    return dict(had)


def test_what_takes_long_does_not_take_the_time_of_what_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    had = _turns(monkeypatch, 2.0)
    assert had["call"] > 5 * had["run"]
    assert had["run"] >= 2


def test_with_no_end_to_the_time_kinds_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run of so many programs, and in which order, never hangs on time."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert set(_turns(monkeypatch, math.inf).values()) == {40}


def test_of_few_operators_there_are_few_programs_in_a_batch_that_nobody_counts() -> None:
    def places(settings: Settings, batch: int = 0) -> list[int]:
        found = programs.drawn(settings, batch, builtin())
        return sorted({place for place, *_ in found})

    timed = Settings(("torch",), 1, None, 5.0, ops=("relu",))
    assert places(timed) == [0, 1]
    assert places(timed, 2) == [64, 65]
    assert places(replace(timed, programs=6)) == [0, 1, 2, 3, 4, 5]


def test_what_is_drawn_in_vain_takes_a_turn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where little can be said of chains of an operator, they do not take the time of its calls."""
    drawn = ((place, place, None) for place in range(5))
    monkeypatch.setattr(batch, "drawn", lambda *_: drawn)
    made = batch._Batch(Settings(("torch",), 1, None, 5.0, ops=("relu",)), 0, lambda _: None)
    assert [made.run(0.1), made.run(0.1), made.run(1.0), made.run(1.0)] == [True, True, True, False]
    assert made._tried == 5


def test_a_batch_whose_answer_is_late_keeps_what_was_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, turns = batch._Batch.call, []

    def call(self: batch._Batch, share: float) -> bool:
        turns.append(share)
        if len(turns) == 2:
            raise Late("torch: no answer in time")
        return own(self, share)

    monkeypatch.setattr(batch._Batch, "call", call)
    batch.close_sessions()  # what others have learnt of requirements that cannot be broken
    counts, _ = batch.run_batch(Settings(("torch",), 1, None), 0)
    assert counts["cut"]
    for kind in ("apart", "pieces", "invalid"):
        assert sum(counts[kind]["torch"].values()) > 0, kind


def test_what_is_looked_into_when_the_time_ends_is_told_as_it_was_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What hangs takes its time again with every trial: it would never be told."""

    def late(*_: object, **__: object) -> None:
        raise Late("torch: no answer in time")

    monkeypatch.setattr("irlang.diff.finding.reduce", late)
    graph = generate(builtin(), 1, apart=["relu"]).graph
    case = Case(graph, inputs(graph, 1), {}, builtin())
    with Session(["torch"]) as session:
        (outcome,) = session.compare([case])
        outcome.verdicts["torch"] = [Verdict("y", "torch", "timeout", message="no answer")]
        found = find(session, case, 1, "torch", outcome)
    assert (found.operator, found.verdict.verdict) == ("relu", "timeout")
    assert found.reduced.graph.nodes == graph.nodes
    assert not found.tried
    assert not found.repeated
    text = issue(found, "", "torch")
    assert "the time of the campaign ended before it was run once more" in text
    assert "gave what is expected" not in text


def test_what_is_refused_for_one_reason_is_looked_into_twice() -> None:
    seen = Seen()

    def refused(name: str, text: str) -> list[Verdict]:
        return [Verdict(name, "onnxruntime", "refused", message=text)]

    same = [refused(f"y{n}", f"two nodes with one name (node_{n}), 'x{n}'") for n in range(4)]
    assert [seen.heard("onnxruntime", one) for one in same] == [False, False, True, True]
    assert not seen.heard("onnxruntime", refused("y", "no kernel of Clip (int32)"))
    assert not seen.heard("ort-1.17", same[0])
    wrong = [Verdict("y", "onnxruntime", "wrong")]
    assert not any(seen.heard("onnxruntime", wrong) for _ in range(4))


def test_a_reason_that_is_new_is_explained_by_no_other() -> None:
    """What a target refuses for having one element says nothing of one that a pass has broken."""
    seen = Seen()

    def refused(text: str) -> list[Verdict]:
        return [Verdict("y", "onnxruntime", "refused", message=text)]

    small, broken = refused("size of X must be larger than 1"), refused("gamma has 2 dimensions")
    assert seen.unheard("onnxruntime", small)
    assert not seen.heard("onnxruntime", small)
    assert not seen.unheard("onnxruntime", small)
    assert seen.unheard("onnxruntime", broken)
    assert seen.unheard("ort-1.17", small)
    assert not seen.unheard("onnxruntime", [Verdict("y", "onnxruntime", "wrong")])
    assert not seen.unheard("onnxruntime", [])


def test_some_programs_are_made_of_what_optimisers_look_for() -> None:
    known = {step.op for one in idioms(builtin().names()) for step in one}
    adapting = {op.name for op in builtin() if pattern(op).moves}  # between two of these
    numbers = [n for n in range(24) if program_seed(5, n) // 8 % 4 == 2]
    cases = [make_case(builtin(), program_seed(5, n)) for n in numbers]
    found = [case for case in cases if case is not None]
    assert len(numbers) == 6
    assert found
    for case in found:
        called = {node.op.name for node in case.graph.nodes}
        assert called <= known | adapting
        assert called - adapting


def test_of_few_operators_each_requirement_is_broken_a_few_times() -> None:
    """And not 64 times beside every batch, which says the same again and again."""
    few = Settings(("torch",), 3, BATCH, ops=("einsum",))
    assert _spoilt(few, builtin()) == 4 * len(breakable(builtin(), ["einsum"])) == 20
    assert _spoilt(replace(few, ops=()), builtin()) == 64
    many = replace(few, ops=("conv", "max_pool", "lstm", "einsum"), grad=True)
    assert _spoilt(many, builtin()) == 16


def test_of_few_operators_more_is_broken_where_the_time_has_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spoilt calls have a part of it: after a dozen turns nothing would be spoilt any more."""
    few = Settings(("torch",), 3, None, ops=("einsum",))
    monkeypatch.setattr(PACE, "until", time.monotonic() + 60.0)
    assert _spoilt(few, builtin()) == 64
    assert _spoilt(replace(few, grad=True), builtin()) == 16


def test_spoilt_calls_are_soon_written_in_other_words() -> None:
    """Of the three sets of a batch of one operator some are, and batches go on to further words."""
    words = [Manner(turn=_words(number)).words for number in range(24)]
    assert all(0 in words[n : n + 3] and any(words[n : n + 3]) for n in range(20))
    assert set(words) == {0, 1, 2, 3, 4, 5}


def test_a_family_stands_for_its_operators() -> None:
    assert _operators("relu,recurrent,gru")[:2] == ("relu", builtin().families()["recurrent"][0])
    assert len(_operators("gru,recurrent")) == len(builtin().families()["recurrent"])
    assert _operators("attention") == ("attention",)  # an operator of that name comes first
    with pytest.raises(InvalidInput, match="no family, `los`"):
        _operators("los")


def test_the_table_says_what_is_known_and_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from irlang.commands.fuzz import _show

    campaign = Campaign(tmp_path / "campaign", Settings(("onnx-reference",), 1, 4))
    campaign.suppressed["issue [1234]"] = 5
    with closing(campaign):
        _show(campaign, campaign.report())
    assert "known, and not shown: 5 (issue [1234])" in capsys.readouterr().out
