"""Differences that frameworks are known for are classed as what they are.

Those of formulas (a variance in one pass, with a large mean) are in `test_alternatives`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irlang
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import FINDINGS, at_edge
from irlang.interp.values import initial_values

TARGETS = ("torch", "tf", "onnxruntime", "jax")
for _name, _module in zip(TARGETS, ("torch", "tensorflow", "onnxruntime", "jax"), strict=True):
    pytest.importorskip(_module, reason=f"{_name} is not installed")
NAN, INF = np.nan, np.inf


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(TARGETS) as made:
        yield made


def _case(declared: str, call: str, loss: bool = False, **given: Any) -> Case:
    ending = "  loss = reduce_sum(multiply(y, c))\n" if loss else ""
    inputs, _, result = declared.partition(" -> ")
    given_back = "loss: f32[]" if loss else f"y: {result}"
    text = f"nnir 1\nmodel m({inputs}) -> {given_back} {{\n  y = {call}\n{ending}}}"
    made = irlang.loads(text)
    arrays = {name: np.array(value, np.float32) for name, value in given.items()}
    params = initial_values(made.graph, 0)
    return Case(made.graph, arrays, params, made.catalog, edge=not loss)


# What each target is known to give there, by its class; the others agree.
FORWARD: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "a window of -inf alone": (
        "x: f32[1, 1, 4] -> f32[1, 1, 2]", "max_pool(x; window = 2)", [[[-INF, -INF, 1, 2]]],
        {"tf": "edge", "onnxruntime": "edge"},
    ),
    "erf of NaN": ("x: f32[2] -> f32[2]", "erf(x)", [NAN, 1], {}),
    "exp of NaN": ("x: f32[2] -> f32[2]", "exp(x)", [NAN, 1], {}),
    "relu of NaN": ("x: f32[2] -> f32[2]", "relu(x)", [NAN, 1], {}),
    "the lowest quantile beside -inf": (
        "x: f32[3] -> f32[]", "quantile(x; q = 0)", [-INF, 1, 2],
        {"torch": "edge", "jax": "edge"},
    ),
    "a quantile between two infinities": (
        "x: f32[2] -> f32[]", "quantile(x)", [INF, INF], {"torch": "edge"},
    ),
    "a quantile between inf and a number": (
        "x: f32[2] -> f32[]", "quantile(x)", [1, INF],
        dict.fromkeys(TARGETS, "unstable"),
    ),
    "the largest beside NaN": (
        "x: f32[2, 2] -> f32[2]", "reduce_max(x; axes = 1)", [[1, NAN], [NAN, 1]],
        {"onnxruntime": "edge"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARD)
def test_values_at_the_edges(name: str, session: Session) -> None:
    declared, call, x, known = FORWARD[name]
    outcome = session.compare([_case(declared, call, x=x)])[0]
    for target in TARGETS:
        (verdict,) = outcome.verdicts[target]
        assert at_edge(verdict.verdict) == known.get(target, "agrees"), (target, verdict)


# A variance in one pass, of numbers around 1e4: its digits are gone, and with them its sign.
LARGE_MEAN = {
    "layer_norm(x)": {"jax": "inaccurate"},
    "instance_norm(x)": {},
    "group_norm(x; groups = 2)": {"onnxruntime": "nonfinite"},
    "batch_norm_train(x)": {},
}


@pytest.mark.parametrize("call", LARGE_MEAN)
def test_a_large_mean(call: str, session: Session) -> None:
    x = 1e4 + np.random.default_rng(0).standard_normal((2, 4, 16))
    declared = "x: f32[2, 4, 16] -> f32[2, 4, 16]"
    case = replace(_case(declared, call, x=x), edge=False)
    outcome = session.compare([case])[0]
    for target in TARGETS:
        worst = {v.verdict for v in outcome.verdicts[target]} & FINDINGS
        known = LARGE_MEAN[call]
        assert worst == ({known[target]} if target in known else set()), (
            target, outcome.verdicts[target],
        )  # fmt: skip


BACKWARD: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    "a power of 0": ("x: f32[3], c: f32[3]", "power(x, 2)", {"x": [0, 1, -2]}, {}),
    "0 to the power of 0": (
        "x: f32[2], e: f32[2], c: f32[2]", "power(x, e)", {"x": [0, 2], "e": [0, 1]}, {},
    ),
    "a root at 0": ("x: f32[2], c: f32[2]", "power(x, 0.5)", {"x": [0, 4]}, {}),
    "a running product with a zero": (
        "x: f32[3], c: f32[3]", "cumprod(x; axis = 0)", {"x": [2, 0, 3]}, {"tf": "wrong"},
    ),
    "a tie of what is pooled": (
        "x: f32[1, 1, 4], c: f32[1, 1, 2]", "max_pool(x; window = 2)", {"x": [[[1, 1, 2, 2]]]}, {},
    ),
    "a tie of the largest": (
        "x: f32[2, 2], c: f32[2]", "reduce_max(x; axes = 1)", {"x": [[1, 1], [2, 3]]}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_at_kinks_and_ties(name: str, session: Session) -> None:
    declared, call, given, known = BACKWARD[name]
    case = _case(declared, call, loss=True, **given)
    port = case.graph.values["c"]
    case.inputs["c"] = np.arange(1, 1 + np.prod(port.shape, dtype=int), dtype=np.float32).reshape(
        port.shape
    )
    outcome = session.compare([case], grad=True)[0]
    for target in TARGETS:
        worst = {v.verdict for v in outcome.verdicts[target]} & FINDINGS
        assert worst == ({known[target]} if target in known else set()), (
            target, outcome.verdicts[target],
        )  # fmt: skip
        slopes = {v.name for v in outcome.verdicts[target]}
        assert "d_x" in slopes
