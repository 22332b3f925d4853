"""The text of emitted programs: readable, deterministic, and out of reach for what a file says."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.lower.modes import FIRST
from irlang.lower.names import Names, comment, docstring
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_kernels import Runtime
from irlang.lower.pool import Program, Result, Worker
from irlang.lower.target import describe
from irlang.lower.value import Unsupported
from irlang.parser import parse
from tests.lower_calls import disagreement
from tests.targets import usable

GOLDEN = Path(__file__).parent / "golden"
SMALL = '''nnir 1

"""A small model."""
model small(image: f32[2, 3, 8, 8], label: i32[2] in [0, 4]) -> probs: f32[2, 5] {
  param w: f32[4, 3, 3, 3] in [-0.2, 0.2]
  param b: f32[4] = 0
  h = relu(conv(image, w, b; stride = 2, pad = same))
  v = mish(max_pool(h; window = 2))
  param k: f32[16, 5] in [-0.5, 0.5]
  logits = scaled(dense(flatten(v), k); by = 0.5)
  probs = softmax(logits)
  loss = cross_entropy(logits, label)
}

op scaled[T: float](x: T[N, C]; by: real) -> y: T[N, C] {
  y[n, c] = by * x[n, c] + sum(k < C | k <= c) x[n, k]
}
'''


def lowered(text: str, target: str, grad: bool = False) -> tuple[Lowered, Program, dict[str, Ball]]:
    checked = check(parse(text, "model.nnir"), builtin())
    assert checked.valid, checked.diagnostics
    graph = checked.graphs[0]
    params, given = initial_values(graph, 1), inputs(graph, 1)
    found = lower(graph, target, checked.catalog, params, grad=grad)
    assert not found.unsupported
    values = balls(graph, {**params, **given}, checked.catalog, precision(graph))
    wanted = {name: values[value] for name, value in graph.outputs.items()}
    return found, Program(found.kind, found.code, given, found.params), wanted


def ran(program: Program, target: str) -> Result:
    with Worker(describe(target).worker) as worker:
        (result,) = worker.submit([program])
    assert result.status == "ok", result.error
    return result


def onnx_text(code: bytes) -> str:
    """A model file, a line for every node."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(code)
    onnx.checker.check_model(model, full_check=True)
    lines = [f"ir {model.ir_version}, opset {model.opset_import[0].version}"]
    for node in model.graph.node:
        given = [onnx.helper.printable_attribute(a) for a in node.attribute]
        attributes = f" {{{', '.join(given)}}}" if given else ""
        call = f"{node.op_type}({', '.join(node.input)})"
        lines.append(f"{', '.join(node.output)} = {call}{attributes}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("target", FIRST)
def test_golden_text(target: str) -> None:
    """Rewritten with IRLANG_REWRITE=1."""
    found, _, _ = lowered(SMALL, target, grad=True)
    text = found.code if isinstance(found.code, str) else onnx_text(found.code)
    path = GOLDEN / f"small_{target.replace(':', '_')}.txt"
    if os.environ.get("IRLANG_REWRITE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
    assert lowered(SMALL, target, grad=True)[0].code == found.code


@pytest.mark.parametrize("target", FIRST)
def test_small_model_runs(target: str) -> None:
    usable(target)
    _, program, wanted = lowered(SMALL, target)
    result = ran(program, target)
    assert disagreement(result.outputs["probs"], wanted["probs"], "f32") is None


def test_a_users_operator_of_a_builtin_name_is_the_users() -> None:
    text = """nnir 1
op relu[T: float](x: T[S..]) -> y: T[S..] { y[s..] = x[s..] + 1 }
model m(x: f32[3]) -> y: f32[3] { y = relu(x) }
"""
    found, program, wanted = lowered(text, "torch")
    assert not found.native
    assert disagreement(ran(program, "torch").outputs["y"], wanted["y"], "f32") is None


@pytest.mark.filterwarnings("error")
def test_a_number_that_a_type_does_not_hold_is_infinite_without_a_warning() -> None:
    text = """nnir 1
op far[T: float](x: T[N]) -> y: T[N] {
  y[n] = if n == 0 then 70000 else 1
}
model m(x: f16[2]) -> y: f16[2] { y = far(x) }
"""
    checked = check(parse(text), builtin())
    assert "inf" in str(lower(checked.graphs[0], "torch", checked.catalog, {}).code)


@pytest.mark.parametrize("target", ["keras:theano", "keras:tensorflow"])
def test_empty_tensors_of_different_shapes_are_not_one(target: str) -> None:
    """A list of no numbers does not say the sizes behind a 0."""
    text = """nnir 1
model m(x: f32[3, 0, 2]) -> y: f32[3, 0, 1] {
  a = avg_pool(x; window = 1)
  y = avg_pool(a; window = 2)
}
"""
    found, _, _ = lowered(text, target)
    assert isinstance(found.code, str)
    assert "zeros((3, 0, 2)" in found.code
    assert "zeros((3, 0, 1)" in found.code


HOSTILE = [
    "quotes \"\"\" and \\'''",
    '"""\nimport os\nos.abort()\n"""',
    "ends in a backslash \\\\",
    "\x00\x1b[31m\u202e\u2028 \U0001f600 \\N{BULLET} {function} {{x}} %s",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_docstrings_hold_any_text(text: str) -> None:
    source = f'"""{docstring(text)}"""\n'
    tree = ast.parse(source)
    assert len(tree.body) == 1
    assert ast.get_docstring(tree, clean=False) == text
    assert "\n" not in comment(text)


def test_a_models_docstring_and_names_stay_text() -> None:
    for doc in HOSTILE:
        checked = check(parse(SMALL, "m"), builtin())
        graph = checked.graphs[0]
        graph.doc = doc
        graph.name = "x():\n  import os; os.abort()\ndef y"
        # As a reader of another format might name them.
        graph.params['w"); import os; os.abort(); ("'] = graph.params.pop("w")
        graph.values['w"); import os; os.abort(); ("'] = graph.values["w"]
        for node in graph.nodes:
            node.inputs = {
                key: 'w"); import os; os.abort(); ("' if value == "w" else value
                for key, value in node.inputs.items()
            }
        params = initial_values(graph, 1)
        for target in ("torch", "tf"):
            found = lower(graph, target, checked.catalog, params, grad=True)
            assert isinstance(found.code, str)
            tree = ast.parse(found.code)
            imported = [n for n in ast.walk(tree) if isinstance(n, ast.Import)]
            assert {a.name for n in imported for a in n.names} <= {
                "sys", "numpy", "torch", "torch.nn.functional", "tensorflow",
            }  # fmt: skip
            called = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
            names = {f.attr for f in called if isinstance(f, ast.Attribute)}
            assert "abort" not in names


def test_names() -> None:
    names = Names(("np", "run"))
    wanted = [
        "x",
        "x",
        "a.b",
        "a_b",
        "lambda",
        "print",
        "np",
        "run",
        "größe",
        "1st",
        "__class__",
        "",
    ]
    found = [names.fresh(name) for name in wanted]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() and name.isascii() for name in found)
    assert not {"lambda", "print", "np", "run", "__class__"} & set(found)
    assert found[:4] == ["x", "x_2", "a_b", "a_b_2"]


@pytest.mark.parametrize("target", FIRST)
def test_names_of_the_source_may_be_anything(target: str) -> None:
    """Keywords of Python, builtins and what programs call their own."""
    usable(target)
    text = """nnir 1
model run(lambda: f32[2], print: f32[2], np: f32[2], torch: f32[2], tf: f32[2])
    -> INPUTS: f32[2], v: f32[2] {
  param F: f32[2] in [0, 1]
  tensor = add(lambda, print)
  array = multiply(np, torch)
  values = subtract(tensor, array)
  v = add(values, tf)
  INPUTS = add(v, F)
}
"""  # fmt: skip
    _, program, wanted = lowered(text, target)
    result = ran(program, target)
    assert set(result.outputs) == {"INPUTS", "v"}
    for name in ("INPUTS", "v"):
        assert disagreement(result.outputs[name], wanted[name], "f32") is None


def test_what_takes_too_large_a_tensor_is_named_as_the_reason() -> None:
    """Samples of a region are averaged: written out, there are 121 times as many numbers."""
    text = """
model m(x: f32[23, 5, 15, 2], boxes: f32[22, 4], at: i64[22]) -> y: f32[22, 5, {0}, {0}] {{
  y = roi_align(x, boxes, at; size = {0}, sampling_ratio = 11)
}}"""
    for size, kept in ((1, True), (100, False)):
        graph = check(parse(text.format(size), "m"), builtin()).graphs[0]
        made = lower(graph, "torch", builtin(), {})
        assert bool(made.unsupported) != kept
    assert "would take a tensor of" in made.unsupported[0]


def test_a_long_recurrence_is_named_as_the_reason() -> None:
    """It is written out step by step, which has to end somewhere."""
    text = """nnir 1
model m(x: f32[3000]) -> y: f32[3000] { y = cumsum(x; exclusive = true) }
"""
    checked = check(parse(text, "m"), builtin())
    found = lower(checked.graphs[0], "torch", checked.catalog, {})
    assert found.unsupported == ("cumsum: 3000 steps would have to be written out",)
    assert found.code == ""
    text = """nnir 1
model m(x: f32[600]) -> y: f32[600], at: i64[600] { y, at = cummin(x) }
"""
    checked = check(parse(text, "m"), builtin())  # two equations
    found = lower(checked.graphs[0], "onnxruntime", checked.catalog, {})
    assert found.unsupported == ("cummin: 600 steps would have to be written out",)


_FROM_THE_LAST = [
    ("softmax(x; axis = {})", "f32[1, 4, 3]", "Softmax"),
    ("log_softmax(x; axis = {})", "f32[1, 4, 3]", "LogSoftmax"),
    ("hardmax(x; axis = {})", "f32[1, 4, 3]", "Hardmax"),
    ("cumsum(x; axis = {}, exclusive = true)", "f32[1, 4, 3]", "CumSum"),
    ("concat(x, x; axis = {})", "f32[2, 4, 3]", "Concat"),
    ("slice(x; begin = [0], end = [1], axes = [{}])", "f32[1, 4, 3]", "Slice"),
    ("gather(x, ids; axis = {})", "f32[2, 4, 3]", "Gather"),
    ("argmax(x; axis = {}, keepdims = true)", "i64[1, 4, 3]", "ArgMax"),
    ("reduce_max(x; axes = [{}])", "f32[4, 3]", "ReduceMax"),
    ("reduce_logsumexp(x; axes = [{}], keepdims = true)", "f32[1, 4, 3]", "ReduceLogSumExp"),
    ("squeeze(x; axes = [{}])", "f32[4, 3]", "Squeeze"),
]


@pytest.mark.parametrize(("call", "result", "operator"), _FROM_THE_LAST)
def test_onnx_is_told_axes_as_the_program_says_them(call: str, result: str, operator: str) -> None:
    """Counting them from the last is ONNX's own, and under test."""
    onnx = pytest.importorskip("onnx")
    for axis in (0, -3):
        operands = "x: f32[1, 4, 3] in [-3, 3], ids: i64[2] in [0, 0]"
        body = f"y = {call.format(axis)}"
        found, program, wanted = lowered(
            f"nnir 1\nmodel m({operands}) -> y: {result} {{ {body} }}\n", "onnxruntime"
        )
        assert isinstance(found.code, bytes)
        graph = onnx.load_from_string(found.code).graph
        (node,) = [node for node in graph.node if node.op_type == operator]
        held = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        told = [a.i for a in node.attribute if a.name == "axis"]
        if not told:  # the bounds of a slice stand before its axes, its steps behind them
            told = held[node.input[3 if operator == "Slice" else 1]].reshape(-1).tolist()
        assert told == [axis]
        if describe("onnxruntime").installed:
            got = ran(program, "onnxruntime").outputs["y"]
            assert disagreement(got, wanted["y"], result[:3]) is None


_SAID = [
    *((call, result) for call, result, _ in _FROM_THE_LAST if not call.startswith("slice")),
    ("stack(x, x; axis = {})", "f32[1, 2, 4, 3]"),
    ("reverse(x; axes = [{}])", "f32[1, 4, 3]"),
    ("roll(x; axes = [{}], shift = [1])", "f32[1, 4, 3]"),
    ("repeat(x; axis = {}, repeats = 2)", "f32[2, 4, 3]"),
    ("reduce_sum(x; axes = [{}])", "f32[4, 3]"),
    ("count_nonzero(x; axes = [{}])", "i64[4, 3]"),
    ("sort(x; axis = {})", "f32[1, 4, 3]"),
    ("take_along_axis(x, at; axis = {})", "f32[1, 4, 3]"),
    ("l2_normalize(x; axes = [{}])", "f32[1, 4, 3]"),
    ("reduce_l1(x; axes = [{}])", "f32[4, 3]"),
    ("reduce_variance(x; axes = [{}], correction = 0)", "f32[4, 3]"),
    ("rot90(x; axes = [{}, 1])", "f32[4, 1, 3]"),
    ("tensordot(x, x; a_axes = [{0}], b_axes = [{0}])", "f32[4, 3, 4, 3]"),
    ("trace(x; axes = [{}, 1])", "f32[3]"),
]


@pytest.mark.parametrize("target", ["torch", "tf", "jax", "keras:tensorflow", "mxnet"])
def test_frameworks_are_told_axes_as_the_program_says_them(target: str) -> None:
    """Counting them from the last is the frameworks' own, and under test."""
    operands = "x: f32[1, 4, 3] in [-3, 3], ids: i64[2] in [0, 0], at: i64[1, 4, 3] in [0, 0]"
    told, results, lines = 0, [], []
    for number, (call, result) in enumerate(_SAID):
        several = ", at_" if call.startswith("sort") else ""
        line = f"y_{number}{f'{several}{number}' if several else ''} = {call.format(-3)}"
        text = f"nnir 1\nmodel m({operands}) -> y_{number}: {result} {{ {line} }}\n"
        found, _, _ = lowered(text, target)
        assert isinstance(found.code, str)
        assert ("-3" in found.code) or not found.native, call
        told += "-3" in found.code
        results.append(f"y_{number}: {result}")
        lines.append(f"  {line}\n")
    assert told >= 15
    if target in FIRST and describe(target).installed:  # MXNet 1.6 refuses some of them
        text = f"nnir 1\nmodel m({operands}) -> {', '.join(results)} {{\n{''.join(lines)}}}\n"
        _, program, wanted = lowered(text, target)
        got = ran(program, target).outputs
        for name, ball in wanted.items():
            at = int(name[2:])
            assert disagreement(got[name], ball, _SAID[at][1][:3]) is None, lines[at]


@pytest.mark.parametrize("call", ["soft_shrink(x; threshold = {})", "layer_norm(x; eps = {})"])
def test_onnx_is_not_given_numbers_that_its_attributes_round(call: str) -> None:
    """They are float32: in float64 the definition takes the place of the operator."""
    usable("onnxruntime")
    found = {}
    for number in ("0.1", "0.125"):
        text = f"nnir 1\nmodel m(x: f64[4, 3] in [-3, 3]) -> y: f64[4, 3] {{ y = {call} }}\n"
        made, program, wanted = lowered(text.replace("{}", number), "onnxruntime")
        assert isinstance(made.code, bytes)
        found[number] = onnx_text(made.code)
        if number == "0.1":
            result = ran(program, "onnxruntime").outputs["y"]
            assert disagreement(result, wanted["y"], "f64") is None
    assert not any(name in found["0.1"] for name in ("Shrink", "LayerNormalization"))
    assert any(name in found["0.125"] for name in ("Shrink", "LayerNormalization"))


def test_nor_lists_of_such_numbers() -> None:
    for dtype, numbers in (("f64", [0.5, 0.1]), ("f64", [0.5]), ("f32", [0.5, 0.1])):
        builder = OnnxBuilder({}, ["x"], Runtime())
        types = [TensorInfo((1,), dtype)]
        if 0.1 in numbers and dtype == "f64":
            with pytest.raises(Unsupported, match="activation_alpha is a float32"):
                builder.node("RNN", ["x"], types, activation_alpha=numbers)
        else:
            assert builder.node("RNN", ["x"], types, activation_alpha=numbers)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("power(x, 0.5)", "pow(x, 0.5)"),
        ("power(2, x)", "pow(2.0, x)"),
        ("power(i, 3)", "pow(i, 3)"),
        ("power(x, s)", "pow(x, s)"),
    ],
)
def test_torch_is_told_a_power_by_a_number_as_a_number(call: str, said: str) -> None:
    """It has a way of its own for these: by 0.5 it takes a root, which is NaN of -inf."""
    usable("torch")
    kind = "i64[4]" if "(i" in call else "f32[4]"
    types = "x: f32[4] in [0.5, 2], i: i64[4] in [-9, 9], s: f32[] in [1, 2]"
    text = f"nnir 1\nmodel m({types}) -> y: {kind} {{ y = {call} }}\n"
    found, program, wanted = lowered(text, "torch")
    assert said in str(found.code)
    assert disagreement(ran(program, "torch").outputs["y"], wanted["y"], kind[:3]) is None


def test_whole_numbers_beside_a_tensor_of_pytorch_are_written_as_people_write_them() -> None:
    text = """nnir 1
model m(x: f32[4]) -> y: f32[4] {
  a = multiply(x, 0)
  b = add(power(a, 2), -0.0)
  c = subtract(2.5, b)
  y = multiply(c, 16777218)
}
"""
    (graph,) = check(parse(text, "m.nnir"), builtin()).graphs
    code = str(lower(graph, "torch", builtin(), {}).code)
    for line in ("a = x * 0  #", "torch.pow(a, 2)", "+ (-0.0)", "2.5 - b", "c * 16777218.0"):
        assert line in code, (line, code)


@pytest.mark.parametrize("target", ["torch", "tf", "jax"])
def test_a_slice_is_a_subscript(target: str) -> None:
    text = """nnir 1
model m(x: f32[5, 6, 2]) -> y: f32[4, 2, 2] {
  y = slice(x; axes = [-2, 0], begin = [1, 1], end = [-2, 99], step = [2, 1])
}
"""
    (graph,) = check(parse(text, "m.nnir"), builtin()).graphs
    code = str(lower(graph, target, builtin(), {}, whole=False).code)
    assert "y = x[1:99, 1:-2:2]  #" in code, code


@pytest.mark.parametrize(
    ("numbers", "dtype", "kept"),
    [
        ([1.5, np.nan], "i32", False),
        ([1.5, 3e10], "i32", False),
        ([-1.0], "u8", False),
        ([2.0**63], "i64", False),
        ([-(2.0**63)], "i64", True),
        ([1.5, -2.5], "i32", True),
        ([np.nan, np.inf, 1e300], "f16", True),
    ],
)
def test_what_no_integer_type_holds_is_for_onnx_runtime_to_convert(
    numbers: list[float], dtype: str, kept: bool
) -> None:
    """A constant is converted beforehand; of such numbers NumPy would make its own."""
    builder = OnnxBuilder({}, ["x"], Runtime())
    made = builder.cast(builder.constant(np.array(numbers), "f64"), dtype)
    assert made.dtype == dtype
    assert (made.text.startswith("constant")) == kept
