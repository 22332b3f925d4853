"""What ONNX Runtime is said to compute is what it makes sessions of, operator by operator."""

from __future__ import annotations

from typing import Any

import pytest

from irlang.catalog import builtin
from irlang.diff.runner import Case, Session
from irlang.interp.shape import check
from irlang.lower.lower import lower
from irlang.lower.onnx_file import code_of
from irlang.lower.onnx_kernels import _NAMES, KERNELS, Runtime, runtime
from irlang.parser import parse

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

_TYPES = tuple(dict.fromkeys(_NAMES.values()))
# Of which kernels take some pairs of types alone, and which irlang's own calls are asked for.
_PAIRS = frozenset(
    {"BatchNormalization", "OneHot", "Attention", "RotaryEmbedding", "RMSNormalization"}
)
_GIVEN = {
    "axis": 1, "equation": "ij->ji", "direction": "LEFT", "kernel_shape": [2, 2], "num_groups": 1,
    "pooled_shape": [1, 1], "blocksize": 2, "size": 3, "hidden_size": 2,
}  # fmt: skip
# More than is said: recurrent layers that refuse to run, a function that is expanded to operators
# without such kernels once there are bounds, and functions that were not looked into.
_UNTOLD = {
    "GRU": {"f64"}, "LSTM": {"f64"},
    "Clip": {"bf16", "i16", "u16"}, "HardSwish": {"f64"}, "PRelu": {"u32"},
    "ReduceLogSumExp": {"u32", "u64", "bf16"},
}  # fmt: skip
# Refused by a fault of the function itself, which adds a number of float32 to halves.
_REFUSED = {"MeanVarianceNormalization": {"f16"}}


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in ort.__version__.split(".")[:3])


def _one(op: str, dtype: str, own: Runtime) -> bytes | None:
    """A model of one call, all operands that may be of a type being of it; None where none is."""
    try:
        schema = onnx.defs.get_schema(op, own.opset)
    except onnx.defs.SchemaError:
        return None
    allowed = {
        one.type_param_str: [_NAMES[t] for t in one.allowed_type_strs if t in _NAMES]
        for one in schema.type_constraints
    }
    operands = [
        one
        for one in schema.inputs
        if one.option != onnx.defs.OpSchema.FormalParameterOption.Optional
    ]
    main = "T" if op == "Where" else operands[0].type_str
    if schema.deprecated or dtype not in allowed.get(main, ()):
        return None
    names, infos = [], []
    for place, operand in enumerate(operands):
        others = allowed.get(operand.type_str, [_NAMES.get(operand.type_str, "")])
        plain = next((t for t in ("i64", "f32", "bool") if t in others), others[0])
        taken = dtype if operand.type_str == main else plain
        for number in range(max(1, operand.min_arity)):
            names.append(f"x{place}_{number}")
            infos.append(onnx.helper.make_tensor_value_info(names[-1], code_of(taken), None))
    given = {name: _GIVEN[name] for name, one in schema.attributes.items() if one.required}
    results = [f"y{place}" for place in range(schema.min_output or 1)]
    node = onnx.helper.make_node(op, names, results, **given)
    told = [onnx.helper.make_empty_tensor_value_info(name) for name in results]
    graph = onnx.helper.make_graph([node], "g", infos, told)
    opset = onnx.helper.make_opsetid("", own.opset)
    model: Any = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=own.ir_version)
    return bytes(model.SerializeToString())


def _is_made(model: bytes) -> bool:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 (the runtime's own kinds, of one base)
        return "Exception during initialization" in str(error)  # of a kernel, which is there
    return True


@pytest.mark.parametrize("op", sorted(KERNELS.keys() - _PAIRS))
def test_the_usual_opset_has_the_kernels_that_it_is_said_to_have(op: str) -> None:
    own = runtime(_release(), {}).usual
    assert own is not None
    models = {dtype: _one(op, dtype, own) for dtype in _TYPES}
    made = {dtype for dtype, model in models.items() if model is not None and _is_made(model)}
    said = {dtype for dtype in own.kernels[op] if models[dtype] is not None}
    assert said - made == _REFUSED.get(op, set())
    assert made - said <= _UNTOLD.get(op, set())


def test_older_files_call_no_kernel_that_is_not_there() -> None:
    """ONNX allows IsNaN of bfloat16 since opset 13; ONNX Runtime has it since 20."""
    own = runtime(_release(), {})
    found = {}
    for one in (own, *own.elder):
        model = _one("IsNaN", "bf16", one)
        found[one.opset] = model is not None and _is_made(model)
        assert ("bf16" in one.kernels["IsNaN"]) == found[one.opset]
    assert set(found.values()) == {True, False}


@pytest.mark.parametrize(
    ("release", "op", "dtype", "there"),
    [((1, 15, 0), "Less", "i8", False), ((1, 20, 1), "Less", "i8", False),
     ((1, 23, 2), "Less", "i8", True), ((1, 23, 2), "Where", "u32", False),
     ((1, 31, 1), "Where", "u32", True), ((1, 17, 0), "ArgMax", "i64", False),
     ((1, 20, 1), "ArgMax", "i64", True), ((1, 15, 0), "Elu", "f64", False),
     ((1, 17, 0), "Elu", "f64", True), ((1, 15, 0), "PRelu", "i32", True)],
)  # fmt: skip
def test_releases_have_kernels_since_they_had_them(
    release: tuple[int, ...], op: str, dtype: str, there: bool
) -> None:
    found = runtime(release, {})
    usual = found.usual or found
    assert usual.opset == 18
    assert (dtype in usual.kernels[op]) == there


def test_what_the_usual_opset_alone_has_for_a_type_is_called_there() -> None:
    """Its functions are expanded for float64 there; the newest kernels are of float32."""
    text = "nnir 1\nmodel m(x: f64[4]) -> y: f64[4] { y = softplus(x) }\n"
    graph = check(parse(text), builtin()).graphs[0]
    model = onnx.load_from_string(lower(graph, "onnxruntime", builtin(), {}).code)
    assert [node.op_type for node in model.graph.node] == ["Softplus"]
    assert model.opset_import[0].version == 18


@pytest.mark.parametrize(("dtype", "step"), [("i64", "3e38"), ("i16", "40000"), ("i32", "2")])
def test_a_count_in_steps_that_its_type_does_not_hold_is_right(dtype: str, step: str) -> None:
    text = f"""nnir 1
model m() -> y: {dtype}[1] {{
  y = arange(; stop = 1, step = {step}, to = {dtype})
}}"""
    graph = check(parse(text), builtin()).graphs[0]
    with Session(["onnxruntime"]) as session:
        (outcome,) = session.compare([Case(graph, {}, {}, builtin())])
    assert [v.verdict for v in outcome.verdicts["onnxruntime"]] == ["agrees"]
