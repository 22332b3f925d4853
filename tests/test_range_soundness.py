"""Values that are computed lie in the ranges of the analysis; see `tests.soundness`."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.analysis.trace import trace
from irlang.api import loads
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Param, Port
from irlang.interp.range import Analysis, analyse
from tests import soundness
from tests.soundness import programs, ranges, violations
from tests.test_range import CASES

CATALOG = builtin()
NAMES = sorted(op.name for op in CATALOG)
SMALL = Limits(elements=12, length=3)


@pytest.mark.parametrize("name", NAMES)
def test_every_definition_stays_in_its_ranges(name: str) -> None:
    for graph, seed in programs(CATALOG, name, 16, SMALL):
        try:
            faults, _, compared = violations(graph, CATALOG, seed, count=4)
        except InvalidInput:
            continue  # of no value in these ranges
        assert not faults
        if compared:
            return
    pytest.fail("no call of this definition could be compared")


@pytest.mark.parametrize("seed", range(24))
def test_programs_and_their_gradients_stay_in_their_ranges(seed: int) -> None:
    graph = ranges(generate(CATALOG, seed, size=(1, 4), limits=SMALL).graph, seed)
    for domain in ("relations", "regions", "tensor"):
        faults, _, _ = violations(
            graph, CATALOG, seed, gradient=domain == "relations", domain=domain, count=4
        )
        assert not faults, domain


@pytest.mark.parametrize(
    ("number", "case"), enumerate(CASES), ids=[case.split(":")[0] for case in CASES]
)
def test_relations_hold_of_what_is_computed(number: int, case: str) -> None:
    """Models that need relations: by turns in either type, in their own ranges or in others."""
    _, signature, *body = case.strip().split("\n")
    text = "nnir 1\n" + f"model m{signature} {{\n" + "\n".join(body) + "\n}\n"
    try:
        graph = loads(text.replace("f32", "f16") if number % 4 > 1 else text).graph
    except InvalidInput:
        graph = loads(text).graph  # a range that f16 does not have
    if number % 2:
        graph = ranges(deepcopy(graph), number)
    faults, _, _ = violations(graph, CATALOG, number, count=10)
    assert not faults


def test_what_lies_outside_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test itself: ranges that are too narrow, and points that are called safe, are faults."""
    graph = generate(CATALOG, 3, ops=("exp",), size=(1, 1), limits=SMALL).graph
    given: list[Port | Param] = [*graph.inputs.values(), *graph.params.values()]
    for one in given:
        one.within = 0.0, 100.0
    assert not violations(graph, CATALOG, 3)[0]

    def wrong(*args: Any, **options: Any) -> Analysis:
        found = analyse(*args, **options)
        values = {
            name: replace(one, high=min(one.high, 50.0)) for name, one in found.values.items()
        }
        points = tuple(replace(point, status="safe") for point in found.points)
        return replace(found, values=values, points=points)

    monkeypatch.setattr(soundness, "analyse", wrong)
    told = [fault.what for fault in violations(graph, CATALOG, 3)[0]]
    assert any("no point is possible" in what for what in told)
    assert any("the range is" in what for what in told)


@settings(max_examples=150)
@given(data=st.data())
def test_order_is_kept_by_functions_and_multiples_as_far_as_rounding_keeps_it(
    data: st.DataObject,
) -> None:
    """f(k (a + w)) - f(k a), all operations rounded: proofs say on which side of 0 it is."""
    function = data.draw(
        st.sampled_from(["sigmoid", "tanh", "exp", "erf", "sqrt", "softplus", "cosh", "square"])
    )
    dtype = data.draw(st.sampled_from(["f32", "f16"]))
    low = 0.0 if function == "sqrt" else data.draw(st.sampled_from([-3.0, -1.0, 0.0]))
    wide = data.draw(st.sampled_from([(0.0, 1.0), (0.0, 1e-3), (-1e-3, 1.0), (-1.0, 0.0)]))
    times = data.draw(st.sampled_from([(0.5, 2.0), (0.0, 1.0), (-2.0, -0.5), (-1.0, 1.0)]))
    if function == "sqrt":
        wide, times = (0.0, abs(wide[1])), (0.0, 1.0)
    text = f"""nnir 1
    model m(a: {dtype}[40] in [{low}, 3], w: {dtype}[40] in [{wide[0]}, {wide[1]}],
        k: {dtype}[40] in [{times[0]}, {times[1]}]) -> y: {dtype}[40] {{
      y = subtract({function}(multiply(k, add(a, w))), {function}(multiply(k, a)))
    }}"""
    model = loads(text)
    found = analyse(model.graph, model.catalog).values["y"]
    numbers = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = {}
    for name, port in model.graph.inputs.items():
        assert port.within is not None
        ends = [np.asarray(end).astype(DTYPES[dtype].numpy) for end in port.within]
        drawn = numbers.uniform(*port.within, 40)
        if name == "w":
            drawn[::3], drawn[1::3] = 0, drawn[1::3] * 1e-5
        values[name] = np.clip(drawn.astype(DTYPES[dtype].numpy), *ends)
    y = trace(model.graph, values, model.catalog, rounding=True)["y"]
    assert found.low <= y.min()
    assert y.max() <= found.high
