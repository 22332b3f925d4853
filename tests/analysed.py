"""Models for the tests of `irlang analyze`, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irlang.analysis.confirm import Frameworks
from irlang.analysis.patterns import tries
from irlang.analysis.subject import Subject, subject
from irlang.analysis.trace import trace
from irlang.analysis.verdict import Report, Verdicts, verdicts
from irlang.api import loads
from irlang.cli import status
from irlang.dtypes import DTYPES

ROOT = Path(__file__).parents[1]
Ranges = Mapping[str, tuple[float, float]]


def ready(text: str, ranges: Ranges | None = None) -> Subject:
    model = loads(text, file="model.nnir")
    return subject(model.graph, model.catalog, ranges=ranges, file="model.nnir", text=text)


def judged(text: str, made: Frameworks, ranges: Ranges | None = None, **options: Any) -> Verdicts:
    return verdicts(ready(text, ranges), made, **options)


def by_call(found: Verdicts) -> dict[str, Report]:
    return {report.point.node: report for report in found.reports}


def model(body: str, inputs: str = "x: f32[2, 3] in [0, 1]", result: str = "y: f32[2, 3]") -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return f"nnir 1\n\nmodel m({inputs}) -> {result} {{\n{lines}\n}}\n"


DIFFERENCE = model(
    "d = subtract(a, b)\ny = divide(1, d)", "a: f32[3] in [0, 1], b: f32[3] in [0, 1]", "y: f32[3]"
)
SMALL_EPSILON = "log(add(p, 1e-8))"
ROOT_AT_ZERO = model("y = sqrt(x)\nloss = reduce_sum(y)")
BOXES = (ROOT / "examples" / "boxes.nnir").read_text("utf-8")


def assert_holds(report: Report, made: Subject) -> None:
    """The witness lies in its ranges, and the definitions alone give what is not finite there."""
    assert report.witness is not None
    assert report.witness.shown is not None
    first = next(tries(made.graph, 0))
    values = {**first, **report.witness.values}
    for name, array in report.witness.values.items():
        low, high = made.ranges[name]
        assert low <= float(array.min())
        assert float(array.max()) <= high
        assert array.dtype == DTYPES[made.graph.inputs[name].info.dtype].numpy
    found = trace(made.graph, {**values, **made.fixed}, made.catalog)
    node = next(one for one in made.graph.nodes if one.name == report.point.node)
    finite = all(np.isfinite(found[name]).all() for name in node.operands())
    wrong = (lambda array: ~np.isfinite(array)) if finite else np.isnan
    assert any(wrong(found[name]).any() for name in node.outputs)
    # an operand may be infinite where the model says so: a mask, or a number too large for its type
    assert finite or not any(np.isnan(found[name]).any() for name in node.operands())


def run(*arguments: str, capsys: Any) -> tuple[int, str, str]:
    code = status(["analyze", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def onnx_file(
    folder: Path, log: str = "net/Log", ends: tuple[str, str] = ("in:0", "net/Log:0")
) -> Path:
    """log(softmax(x)) with names that the language does not have, written by ONNX itself."""
    import onnx
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Softmax", ends[:1], ["p:0"], name="net/Softmax", axis=-1),
        helper.make_node("Log", ["p:0"], ends[1:], name=log),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ends]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    path = folder / "made.onnx"
    onnx.save(made, path)
    return path
