"""Campaigns: a seed gives the same programs, what is finished is kept, keys are as agreed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from irlang import ast
from irlang.catalog import builtin
from irlang.commands.fuzz import command as fuzz
from irlang.diff.campaign import BATCH, Campaign, Settings, make_case, program_seed
from irlang.diff.store import Store
from irlang.graph import with_loss
from irlang.graph_text import to_ast
from irlang.parser.printer import print_file

pytest.importorskip("torch", reason="torch is not installed")

SETTINGS = Settings(("torch",), 3, BATCH + 4)


def _run(folder: Path, settings: Settings | None = SETTINGS) -> Campaign:
    campaign = Campaign(folder, settings)
    campaign.run(lambda _: None)
    return campaign


def test_a_campaign_is_a_function_of_its_seed(tmp_path: Path) -> None:
    first, second = _run(tmp_path / "a").report(), _run(tmp_path / "b").report()
    for report in (first, second):
        assert report["programs"] == report["valid"] == BATCH + 4
        assert sum(report["targets"]["torch"].values()) == BATCH + 4
    assert first["coverage"] == second["coverage"]
    assert first["targets"] == second["targets"]


def test_what_is_finished_is_there_after_a_stop(tmp_path: Path) -> None:
    whole = _run(tmp_path / "whole").report()
    folder = tmp_path / "stopped"
    campaign = Campaign(folder, SETTINGS)

    def stop(_: Campaign) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign.run(stop)
    assert [number for number, _ in Store(folder, None).batches()] == [0]
    resumed = _run(folder, None).report()
    assert resumed["programs"] == whole["programs"]
    assert resumed["targets"] == whole["targets"]


def test_a_program_is_made_again_from_its_seed() -> None:
    seeds = [program_seed(7, number) for number in range(6)]
    texts = []
    for _ in range(2):
        cases = [make_case(builtin(), seed) for seed in seeds]
        texts.append([print_file(ast.File((to_ast(c.graph),))) if c else "" for c in cases])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1


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
