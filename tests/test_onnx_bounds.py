"""Bounds in model files: which axes a slice names, and where a range begins."""

from __future__ import annotations

import onnx
import pytest

from irlang.catalog import builtin
from irlang.interp.shape import check
from irlang.lower.lower import lower
from irlang.lower.manner import Manner
from irlang.parser import parse

_LOOSE = 10  # a turn at which sizes are not known


def _nodes(text: str, turn: int = 0) -> list[onnx.NodeProto]:
    graph = check(parse(f"nnir 1\n{text}\n", "model.nnir"), builtin()).graphs[0]
    lowered = lower(graph, "onnxruntime", builtin(), {}, manner=Manner(turn=turn))
    assert isinstance(lowered.code, bytes)
    return list(onnx.load_from_string(lowered.code).graph.node)


@pytest.mark.parametrize(("axes", "named"), [("0, 1", False), ("1, 0", True), ("1", True)])
def test_a_slice_names_its_axes_unless_they_are_all_in_their_order(axes: str, named: bool) -> None:
    ends = ", ".join(["1"] * (axes.count(",") + 1))
    rows = 1 if "0" in axes else 3
    call = f"slice(x; axes = [{axes}], end = [{ends}])"
    (node,) = _nodes(f"model m(x: f32[3, 4]) -> y: f32[{rows}, 1] {{ y = {call} }}")
    assert bool(node.input[3]) is named


def test_a_range_that_begins_at_the_last_place_reads_it_from_a_size() -> None:
    text = """model m(x: f32[7, 2]) -> y: f32[7, 2] {
      y = gather(x, arange(; start = 6, stop = -1, step = -1))
    }"""
    made = {name: node for node in _nodes(text, _LOOSE) for name in node.output}
    bounds = next(node for node in made.values() if node.op_type == "Range").input
    assert made[bounds[0]].op_type == "Sub"
    assert bounds[2] not in made
