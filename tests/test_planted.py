"""Faults planted into emitted programs are found, and charged to the operator that has them.

What a framework might get wrong is put into the text that its worker runs: a text edit of the
emitted program stands in for a defect of the framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff import runner
from irlang.diff.finding import find
from irlang.diff.localise import localise
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import gravest
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.parser import parse

pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(["torch"]) as made:
        yield made


def _case(body: str, result: str, head: str = "x: f32[2, 4, 9, 9] in [-1, 1]") -> Case:
    text = f"nnir 1\nmodel m({head}) -> {result} {{\n{body}\n}}\n"
    checked = check(parse(text, "planted.nnir"), builtin())
    assert not checked.diagnostics, checked.diagnostics
    graph = checked.graphs[0]
    return Case(graph, inputs(graph, 3), initial_values(graph, 3), checked.catalog)


CONV = """
  param w: f32[6, 4, 3, 3] in [-1, 1]
  a = relu(x)
  h = conv(a, w; dilation = 2, pad = same)
  y = tanh(h)"""
POOL = """
  a = tanh(x)
  h = max_pool(a; window = 2, stride = 2)
  y = multiply(h, 2.0)"""
SOFT = """
  a = multiply(x, 3.0)
  h = softmax(a; axis = 1)
  y = sqrt(h)"""

DROP = """
  a = relu(x)
  h = dropout(a; rate = 0.3, training = true)
  y = tanh(h)"""
CHANNELS = """
  a = tanh(x)
  h = dropout(a; rate = 0.3, training = true, shared_axes = [2, 3])
  y = tanh(h)"""
NOISE = """
  a = relu(x)
  h = gaussian_noise(a; stddev = 0.3, training = true)
  y = tanh(h)"""

# The model, the culprit, and the edit of its emitted text.
PLANTED: dict[str, tuple[str, str, str, tuple[str, str]]] = {
    "dilation is ignored": (
        CONV,
        "y: f32[2, 6, 9, 9]",
        "conv",
        ("dilation=(2, 2)", "dilation=(1, 1)"),
    ),
    "a small bias": (
        CONV,
        "y: f32[2, 6, 9, 9]",
        "tanh",
        ("torch.tanh(h)", "(torch.tanh(h) + 1e-5)"),
    ),
    "a window too few": (
        POOL,
        "y: f32[2, 4, 4, 4]",
        "max_pool",
        ("F.max_pool2d(a,", "F.max_pool2d(-a,"),
    ),
    "the rate is what is kept": (
        DROP,
        "y: f32[2, 4, 9, 9]",
        "dropout",
        ("F.dropout(a, 0.3, training=True)", "F.dropout(a, 0.7, training=True) * (0.3 / 0.7)"),
    ),
    "nothing is scaled": (
        DROP,
        "y: f32[2, 4, 9, 9]",
        "dropout",
        ("F.dropout(a, 0.3, training=True)", "F.dropout(a, 0.3, training=True) * 0.7"),
    ),
    "all rows have one mask": (
        DROP,
        "y: f32[2, 4, 9, 9]",
        "dropout",
        ("F.dropout(a, ", "a * F.dropout(torch.ones(1, 1, 1, 9), "),
    ),
    "a mask for every pixel": (
        CHANNELS,
        "y: f32[2, 4, 9, 9]",
        "dropout",
        ("F.dropout2d(", "F.dropout("),
    ),
    "noise of another width": (
        NOISE,
        "y: f32[2, 4, 9, 9]",
        "gaussian_noise",
        (".normal_(0.0, 0.3)", ".normal_(0.0, 0.4)"),
    ),
    "what follows noise": (NOISE, "y: f32[2, 4, 9, 9]", "tanh", ("torch.tanh(h)", "torch.sin(h)")),
    "along the wrong axis": (SOFT, "y: f32[2, 4, 9, 9]", "softmax", ("dim=1", "dim=2")),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_localised(
    name: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, result, culprit, (before, after) = PLANTED[name]
    case = _case(body, result)
    assert gravest([v.verdict for v in session.compare([case])[0].verdicts["torch"]]) == "agrees"

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        assert isinstance(made.code, str)
        return _edited(made, before, after)

    monkeypatch.setattr(runner, "lower", faulty)
    monkeypatch.setattr(session, "_last", {})  # the program as it was lowered above
    outcome = session.compare([case])[0]
    assert gravest([v.verdict for v in outcome.verdicts["torch"]]) in ("wrong", "inaccurate")
    blamed = localise(session, case, "torch")
    assert blamed is not None
    assert blamed.node.op.name == culprit
    found = find(session, case, 0, "torch", outcome)
    assert found.operator == culprit
    if before in str(lower(found.reduced.graph, "torch", case.catalog, found.reduced.params).code):
        assert len(found.reduced.graph.nodes) == 1


def _edited(made: Lowered, before: str, after: str) -> Lowered:
    import dataclasses

    return dataclasses.replace(made, code=str(made.code).replace(before, after))


def test_a_refusal_names_what_the_framework_said(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _case(SOFT, "y: f32[2, 4, 9, 9]")
    edit: Callable[[Lowered], Lowered] = lambda made: _edited(made, "dim=1", "dim=9")  # noqa: E731
    monkeypatch.setattr(runner, "lower", lambda *a, **k: edit(lower(*a, **k)))
    verdicts = session.compare([case])[0].verdicts["torch"]
    assert [v.verdict for v in verdicts] == ["refused"]
    assert "out of range" in verdicts[0].message


def test_a_crash_costs_one_program(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = _case(SOFT, "y: f32[2, 4, 9, 9]"), _case(POOL, "y: f32[2, 4, 4, 4]")

    def crashing(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        return _edited(made, "F.max_pool2d(", "__import__('os').abort() or F.max_pool2d(")

    monkeypatch.setattr(runner, "lower", crashing)
    found = session.compare([good, bad, good])
    assert [gravest([v.verdict for v in o.verdicts["torch"]]) for o in found] == [
        "agrees", "crash", "agrees",
    ]  # fmt: skip
    assert "SIGABRT" in found[1].verdicts["torch"][0].message


def test_the_values_that_a_culprit_was_fed_are_kept(session: Session) -> None:
    case = _case(CONV, "y: f32[2, 6, 9, 9]")
    outcome = session.compare([case], exposed=True)[0]
    exposed = outcome.results["torch"].outputs
    assert {"a", "h", "y"} <= exposed.keys()
    assert np.array_equal(exposed["a"], np.maximum(case.inputs["x"], 0))
