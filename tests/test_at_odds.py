"""What is ensured of a call is held against its operator, not against what one is composed of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irlang.diff.runner import Session
from tests.lower_calls import case
from tests.targets import usable
from tests.test_turns import as_case


def test_what_is_composed_may_have_a_denormal_otherwise_in_each_operator() -> None:
    """A pool that takes it for 0, and a comparison that does not, find no element of the window."""
    usable("tflite")
    one = as_case(case("x: f32[1, 1, 2]", "max_pool_with_argmax(x; window = 2)"))
    (name,) = one.inputs
    place = next(iter(one.graph.nodes[0].outputs[1:]))
    shown = replace(one, graph=replace(one.graph, outputs={"y": place}))
    sizes = (1e-40, 1e-3)
    cases = [
        replace(shown, inputs={name: np.array([[[-size, size]]], np.float32)}) for size in sizes
    ]
    with Session(["tflite"]) as session:
        outcomes = session.compare(cases)
    said = [{v.verdict for v in outcome.verdicts["tflite"]} for outcome in outcomes]
    assert said == [{"unstable"}, {"agrees"}]
