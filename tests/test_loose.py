"""Programs whose sizes are not known before they are run: model files that name the sizes of their
inputs, and read others from tensors; functions that are traced or compiled for any size.

What is written so is held to the oracle as ever.
"""

from __future__ import annotations

from dataclasses import replace

import onnx
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case as Given
from irlang.diff.runner import Session
from irlang.interp.shape import check
from irlang.lower.lower import Lowered
from irlang.lower.manner import Manner
from irlang.lower.pool import Program, Worker
from irlang.parser import parse
from tests.lower_calls import Case, case, every_case, operator
from tests.targets import usable
from tests.test_lower_calls import DEFECTS
from tests.test_turns import as_case, written

_NOTHING = """
nnir 1
model m() -> y: f32[2] {
  y = full(; shape = [2], value = 3.0)
}
"""
_LOOSE = 8, 9, 10, 11  # turns
_KNOWN = {"tf:graph": {"saturate_cast"}}  # docs/findings.md
_RESHAPED = "x: f32[2, 3, 4]", "reshape(x; shape = [2, 12])"


def file(lowered: Lowered) -> onnx.ModelProto:
    assert isinstance(lowered.code, bytes)
    return onnx.load_from_string(lowered.code)


def ops(lowered: Lowered) -> list[str]:
    return [node.op_type for node in file(lowered).graph.node]


def test_turns_are_loose_after_those_of_words_and_opsets() -> None:
    assert [turn for turn in range(12) if Manner(turn=turn).loose] == list(_LOOSE)


def test_inputs_of_a_file_name_their_sizes_and_results_say_none() -> None:
    made = file(written(case(*_RESHAPED), "onnxruntime", 8)).graph
    sizes = [size.dim_param for size in made.input[0].type.tensor_type.shape.dim]
    assert sizes == ["size.2", "size.3", "size.4"]
    assert not made.output[0].type.tensor_type.HasField("shape")


@pytest.mark.parametrize("target", ["onnxruntime:shapes", "onnx:shapes"])
def test_what_infers_shapes_is_told_them(target: str) -> None:
    for turn in _LOOSE:
        made = file(written(case(*_RESHAPED), target, turn)).graph
        assert [size.dim_value for size in made.input[0].type.tensor_type.shape.dim] == [2, 3, 4]


def test_sizes_are_read_as_exporters_write_it() -> None:
    one = case(*_RESHAPED)
    assert ops(written(one, "onnxruntime", 8)) == [
        "Shape", "Gather", "Unsqueeze", "Concat", "Reshape",
    ]  # fmt: skip
    assert ops(written(one, "onnxruntime", 0)) == ["Reshape"]


def test_what_is_reshaped_may_be_a_constant() -> None:
    one = case("x: f32[2, 3]", "add(x, reshape(full(; shape = [6], value = 2.0); shape = [2, 3]))")
    made = [written(one, "onnxruntime", turn) for turn in _LOOSE]
    assert all(not lowered.unsupported for lowered in made)


def test_a_number_that_is_no_size_stays() -> None:
    lowered = written(case("x: f32[2, 3]", "tile(x; repeats = [5, 7])"), "onnxruntime", 8)
    assert "Shape" not in ops(lowered)
    assert lowered.turned  # by what its inputs say


def test_all_ways_of_reading_are_met() -> None:
    """Of a call that reshapes three times: by parts, whole, and with what is left as -1."""
    one = case(
        "x: f32[2, 3, 4]", "depth_to_space(reshape(x; shape = [1, 24, 1, 1]); block_size = 2)"
    )
    met = set[str]()
    left = False
    for call in every_case("f32"):
        lowered = written(call, "onnxruntime", 8)
        if lowered.unsupported:
            continue
        made = file(lowered).graph
        met |= {
            f"{node.op_type} {len(node.attribute)}" for node in made.node if node.op_type == "Shape"
        }
        left |= any(-1 in onnx.numpy_helper.to_array(t).ravel() for t in made.initializer)
    assert met == {"Shape 0", "Shape 2"}
    assert left
    assert not written(one, "onnxruntime", 8).unsupported


@pytest.mark.parametrize(("target", "turn"), [
    ("onnxruntime", 8), ("onnxruntime", 9), ("onnxruntime", 10), ("onnxruntime", 11),
    ("tf:graph", 8),
])  # fmt: skip
def test_what_is_loose_computes_the_same(target: str, turn: int) -> None:
    known = usable(target)
    calls = every_case("f32")[turn % 4 :: 4 if target != "tf:graph" else 12]
    made = [(one, written(one, target, turn)) for one in calls]
    turned = [(one, m) for one, m in made if m.turned and not m.unsupported]
    assert len(turned) > 0.8 * len(calls)
    with Worker(known.worker) as worker:
        results = worker.submit([Program(m.kind, m.code, o.inputs, m.params) for o, m in turned])
    faults = {}
    for (one, _), result in zip(turned, results, strict=True):
        if result.status != "ok":
            faults[one.call] = result.error
        else:
            faults.update((one.call, fault) for fault in one.faults(result.outputs))
    accepted = DEFECTS.get((target.partition(":")[0], "f32"), set()) | _KNOWN.get(target, set())
    assert not {c: fault for c, fault in faults.items() if operator(c) not in accepted}


@pytest.mark.parametrize(("target", "said"), [
    ("tf:graph", "get_concrete_function"), ("torch:aot", "dynamic=True"),
    ("torch:compile", "@torch.compile(dynamic=True)"), ("torch:export", "Dim.AUTO"),
])  # fmt: skip
def test_functions_are_made_for_any_size(target: str, said: str) -> None:
    lowered = written(case(*_RESHAPED), target, 8)
    assert lowered.turned
    assert said in str(lowered.code)
    assert said not in str(written(case(*_RESHAPED), target, 0).code)


@pytest.mark.parametrize("target", ["torch:aot", "torch:export", "tf:graph"])
def test_what_takes_any_size_agrees(target: str) -> None:
    usable(target)
    calls: list[Case] = [
        case(*_RESHAPED),
        case("x: f32[2, 3], w: f32[3, 4]", "matmul(x, w)"),
        case("x: f32[1, 2, 5], w: f32[3, 2, 2]", "conv(x, w)"),
    ]
    (graph,) = check(parse(_NOTHING), builtin()).graphs  # takes no tensors
    made = [*map(as_case, calls), Given(graph, {}, {}, builtin())]
    cases = [replace(one, manner=Manner(turn=8)) for one in made]
    with Session([target]) as session:
        outcomes = session.compare(cases)
    said = [{v.verdict for v in outcome.verdicts[target]} for outcome in outcomes]
    assert said == [{"agrees"}] * len(made)


def test_openvino_says_what_does_not_fit_where_it_knows_no_sizes() -> None:
    """With one thread it gives a result without elements, and the error is lost."""
    target = usable("ov")
    one = case("a: f32[2, 3], b: f32[2, 3]", "equal(a, b)")
    lowered = written(one, "ov", 8)
    fed = {**one.inputs, "b": one.inputs["b"][:, :2]}
    with Worker(target.worker) as worker:
        fits, other = worker.submit([
            Program(lowered.kind, lowered.code, inputs, lowered.params)
            for inputs in (one.inputs, fed)
        ])  # fmt: skip
    assert (fits.status, other.status) == ("ok", "refused")
    assert "mismatch" in other.error
