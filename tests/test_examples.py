"""The models in `examples/`: laid out, valid, computed by every meaning, compared on targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irlang import equations as eq
from irlang.catalog import Catalog, builtin
from irlang.commands.check import check_text
from irlang.commands.fmt import format_text
from irlang.diff.calls import judge_call
from irlang.diff.runner import Case, Session, expose
from irlang.diff.verdict import FINDINGS
from irlang.graph import Graph, Node
from irlang.interp import exact, reference, rounding, vector
from irlang.interp.balls import Ball
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.profile import arithmetic, read_profile
from irlang.lower.target import describe, usual
from irlang.parser import parse

FOLDER = Path(__file__).parents[1] / "examples"
FILES = sorted(FOLDER.glob("*.nnir"))
EXPECTED = {
    "boxes", "lenet", "lstm_classifier", "mobilenet_block", "resnet_block", "transformer_encoder",
    "unet_level", "user_operator", "vae",
}  # fmt: skip
TRAINED = {"lenet", "lstm_classifier", "resnet_block", "unet_level", "vae"}
SEEDS = (0, 1)
SMALL = 20_000  # multiplications of a call that `exact` is asked for
INSTALLED = usual()
Array = np.ndarray[Any, np.dtype[Any]]

each_example = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@cache
def load(path: Path) -> tuple[Graph, Catalog]:
    checked = check(parse(path.read_text("utf-8"), str(path)), builtin())
    assert checked.diagnostics == ()
    (graph,) = checked.graphs
    return graph, checked.catalog


@cache
def values(path: Path, seed: int) -> dict[str, Array]:
    graph, _ = load(path)
    return {**inputs(graph, seed), **initial_values(graph, seed)}


@cache
def computed(path: Path, seed: int) -> dict[str, Array]:
    graph, catalog = load(path)
    return run(graph, values(path, seed), catalog, reference.evaluate)


def test_every_kind_of_network_is_there() -> None:
    assert {path.stem for path in FILES} == EXPECTED


@each_example
def test_is_laid_out_and_valid(path: Path) -> None:
    text = path.read_text("utf-8")
    assert format_text(text, str(path)) == text
    assert check_text(text, str(path)) == ()


@each_example
def test_has_a_loss_where_it_is_trained(path: Path) -> None:
    graph, _ = load(path)
    assert (graph.loss is not None) == (path.stem in TRAINED)


@pytest.mark.parametrize("seed", SEEDS)
@each_example
def test_outputs_are_finite_and_not_all_the_same(path: Path, seed: int) -> None:
    graph, _ = load(path)
    found = computed(path, seed)
    for name, value in graph.outputs.items():
        assert np.isfinite(found[value]).all(), name
        assert found[value].size == 1 or np.ptp(found[value]) > 0, name
    assert graph.loss is None or 0 < found[graph.loss] < 100


def calls(path: Path, seed: int) -> Iterator[tuple[Node, eq.Expansion, dict[str, Array]]]:
    """The calls of a model, each with the oracle's values for its inputs."""
    graph, catalog = load(path)
    found = computed(path, seed)
    for node in graph.nodes:
        feeds = {formal: found[name] for formal, name in node.feeds().items()}
        yield node, node.expansion(catalog), feeds


def inside(expansion: eq.Expansion, feeds: Mapping[str, Array], got: Mapping[str, Array]) -> bool:
    """Whether results lie within the radius of rounding in double precision."""
    balls = rounding.evaluate(expansion, {name: Ball(feed) for name, feed in feeds.items()}, "f64")
    for name in expansion.outputs:
        value = np.asarray(balls[name].value, np.float64)
        # one more roundoff: what is compared is itself rounded to double precision
        radius = np.asarray(balls[name].bound, np.float64) + 2.0**-52 * np.abs(value)
        if not (np.abs(np.asarray(got[name], np.float64) - value) <= radius).all():
            return False
    return True


@pytest.mark.parametrize("seed", SEEDS)
@each_example
def test_both_evaluators_are_within_the_radius(path: Path, seed: int) -> None:
    for node, expansion, feeds in calls(path, seed):
        assert inside(expansion, feeds, reference.evaluate(expansion, feeds)), node.name
        assert inside(expansion, feeds, vector.evaluate(expansion, feeds)), node.name


@each_example
def test_small_calls_are_exact_within_the_radius(path: Path) -> None:
    held = 0
    for node, expansion, feeds in calls(path, 0):
        if sum(node_size(equation) for equation in expansion.equations) > SMALL:
            continue
        true = exact.evaluate(expansion, feeds)
        assert inside(expansion, feeds, {n: true[n].numpy() for n in expansion.outputs}), node.name
        held += 1
    assert held >= 3


def node_size(equation: eq.Equation) -> int:
    """About how many terms an equation has for all of its elements."""
    size = int(np.prod(equation.info.shape))
    for part in eq.walk(equation.body):
        if isinstance(part, eq.Reduce):
            for _, bound in part.binders:
                size *= int(bound.value) if isinstance(bound, (eq.Const, eq.Size)) else 8
    return size


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(INSTALLED) as opened:
        opened.versions()
        yield opened


needs_target = pytest.mark.skipif(not INSTALLED, reason="no framework is installed")


def case_of(path: Path, seed: int) -> Case:
    graph, catalog = load(path)
    return Case(graph, inputs(graph, seed), initial_values(graph, seed), catalog)


@needs_target
@each_example
def test_targets_agree(path: Path, session: Session) -> None:
    cases = [case_of(path, seed) for seed in SEEDS]
    for case, outcome in zip(cases, session.compare(cases), strict=True):
        assert outcome.refusal is None
        assert set(outcome.verdicts) == set(INSTALLED)
        for target, verdicts in outcome.verdicts.items():
            assert {v.name for v in verdicts} == set(case.graph.outputs)
            # A bound that has gone through many normalisations may say nothing; see the next test.
            assert {v.verdict for v in verdicts} <= {"agrees", "rounding", "unstable"}, target


def alone(path: Path, session: Session, factor: float) -> Iterator[tuple[str, Node, set[str]]]:
    """Every call on every target, judged by what the target itself fed it.

    factor: what the target's results are multiplied with beforehand.
    """
    case = case_of(path, 0)
    accepted = read_profile(path.parent / "profile.toml")  # as gelu of some processors
    (outcome,) = session.compare([case], exposed=True)
    outputs = expose(case.graph).outputs
    for target, result in outcome.results.items():
        assert result.status == "ok", result.error
        got = {value: np.asarray(result.outputs[name]) for name, value in outputs.items()}
        given = {**case.values, **got}
        for node in case.graph.nodes:
            fed = {name: given[name] for name in node.operands()}
            # what nobody reads is not exposed
            read = [value for value in node.outputs if value in given]
            changed = {v: (given[v] * factor).astype(given[v].dtype) for v in read}
            own = arithmetic(describe(target), accepted)
            judged = judge_call(case, node, fed, {**given, **changed}, target, own)
            assert len(judged) == len(read) > 0
            yield target, node, {verdict.verdict for verdict in judged}


@needs_target
@each_example
def test_every_call_agrees_by_itself(path: Path, session: Session) -> None:
    judged = list(alone(path, session, 1.0))
    assert {target for target, _, _ in judged} == set(INSTALLED)
    for target, node, verdicts in judged:
        assert verdicts <= {"agrees", "rounding"}, (target, node.name)


@needs_target
@each_example
def test_a_result_that_is_off_is_found(path: Path, session: Session) -> None:
    for target, node, verdicts in alone(path, session, 1.01):
        assert FINDINGS & verdicts, (target, node.name)
