"""Quantised layers against NumPy in integers, and against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import loads
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import exact, reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.gradient import gradients
from irlang.interp.plain import load
from irlang.interp.program import balls
from irlang.interp.shape import check as check_program
from irlang.interp.values import initial_values
from irlang.lower.lower import lower
from irlang.parser import parse
from tests.ops.compare import info
from tests.ops.oracle import Array, call

ort = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

LIMITS = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767)}
NUMPY = {"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}


def found(name: str, inputs: dict[str, Array], **attrs: Any) -> list[tuple[Array, Array]]:
    """Results and radii at the precision of the inputs; reference and exact agree within them."""
    op = builtin().op(name)
    assert op is not None
    types: dict[str, TensorInfo] = {key: info(value) for key, value in inputs.items()}
    instance = instantiate(op, types, attrs)
    assert not instance.faults, instance.faults
    expansion = expand(instance, builtin())
    loaded = {key: Ball(load(types[key], value)) for key, value in inputs.items()}
    dtype = next((t.dtype for t in types.values() if t.dtype.startswith("f")), "f64")
    balls = rounding.evaluate(expansion, loaded, dtype)
    computed, true = reference.evaluate(expansion, inputs), exact.evaluate(expansion, inputs)
    results = []
    for output in expansion.outputs:
        radius = np.broadcast_to(balls[output].bound, true[output].numpy().shape)
        gap = np.abs(computed[output].astype(np.float64) - true[output].numpy())
        assert np.all((gap <= radius + 2.0**-50 * np.abs(computed[output])) | np.isinf(radius))
        results.append((true[output].numpy(), radius))
    return results


def native(op: str, inputs: list[Array], count: int = 1, **attrs: Any) -> list[Array]:
    """Results of ONNX Runtime."""
    names = [f"x{i}" for i in range(len(inputs))]
    outputs = [f"y{i}" for i in range(count)]
    kind = onnx.helper.np_dtype_to_tensor_dtype
    given = [
        onnx.helper.make_tensor_value_info(n, kind(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    node = onnx.helper.make_node(op, names, outputs, **attrs)
    graph = onnx.helper.make_graph([node], "g", given, made)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    model.ir_version = 10
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def check(results: list[tuple[Array, Array]], others: list[Array]) -> None:
    for (value, radius), other in zip(results, others, strict=True):
        assert value.shape == other.shape
        gap = np.abs(value.astype(np.float64) - other.astype(np.float64))
        half = 2.0**-24 * np.abs(value) if other.dtype.kind == "f" else 0.0
        assert np.all((gap <= radius + half) | np.isinf(radius)), (value, other, radius)


@settings(max_examples=40)
@given(st.data())
def test_quantize_rounds_to_even_and_saturates(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    to = data.draw(st.sampled_from(tuple(LIMITS)))
    low, high = LIMITS[to]
    shape, axis = (3, 4), data.draw(st.sampled_from((0, 1, -1)))
    scale = rng.choice([0.25, 0.5, 2.0, 0.1], shape[axis])
    zero = rng.integers(low // 2, high // 2 + 1, shape[axis]).astype(NUMPY[to])
    # half steps, and values beyond the type
    x = rng.integers(-9, 10, shape) / 4 * rng.choice([1, 1, 1e6], shape)
    x[0, 0] = rng.choice([np.inf, -np.inf, 0.0])
    spread = [1, 1]
    spread[axis] = shape[axis]
    by, at = scale.reshape(spread), zero.astype(np.int64).reshape(spread)
    with np.errstate(invalid="ignore"):
        expected = np.clip(np.rint(x / by) + at, low, high).astype(NUMPY[to])
    inputs = {"x": x, "scale": scale, "zero_point": zero}
    ((value, radius),) = found("quantize_linear", inputs, axis=axis, to=to)
    np.testing.assert_array_equal(value[radius == 0], expected[radius == 0])
    assert (radius == 0)[:, by.ravel() != 0.1].all() if axis != 0 else True
    back = call("dequantize_linear", {**inputs, "x": expected}, axis=axis)["y"]
    back.check((expected.astype(np.int64) - at) * by)


def test_blocks_and_what_is_no_number() -> None:
    x = np.array([[1.0, 2.0, 3.0, np.nan, 5.0]])
    scale = np.array([[1.0, 2.0, 4.0]])
    ((value, radius),) = found("quantize_linear", {"x": x, "scale": scale}, block_size=2, to="i8")
    np.testing.assert_array_equal(np.isinf(radius), [[False, False, False, True, False]])
    np.testing.assert_array_equal(value[0, [0, 1, 2, 4]], [1, 2, 2, 1])


@settings(max_examples=15)
@given(st.data())
def test_products_of_integers(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    m, k, n = (data.draw(st.integers(1, 5)) for _ in range(3))
    # of 7 bits: where a processor has no VNNI, ONNX Runtime's sums of two products end at 2**15 - 1
    a, b = rng.integers(0, 256, (m, k), np.uint8), rng.integers(-64, 64, (k, n), np.int8)
    p, q = np.array(rng.integers(0, 256), np.uint8), np.array(rng.integers(-128, 128), np.int8)
    expected = (a.astype(int) - int(p)) @ (b.astype(int) - int(q))
    ((value, radius),) = found("matmul_integer", {"a": a, "b": b, "a_zero": p, "b_zero": q})
    assert not radius.any()
    np.testing.assert_array_equal(value, expected)
    check([(value, radius)], native("MatMulInteger", [a, b, p, q]))
    s, r, t = (np.array(rng.uniform(0.01, 0.1), np.float32) for _ in range(3))
    z = np.array(rng.integers(0, 256), np.uint8)
    names = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero")
    given_ = [a, s, p, b, r, q, t, z]
    results = found("qlinear_matmul", dict(zip(names, given_, strict=True)))
    check(results, native("QLinearMatMul", given_))


@settings(max_examples=15)
@given(st.data())
def test_convolutions_of_integers(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    groups = data.draw(st.sampled_from((1, 2)))
    x = rng.integers(0, 256, (2, 2, 5, 4), np.uint8)
    w = rng.integers(0, 256, (4, 2 // groups, 2, 3), np.uint8)
    p, q = (np.array(rng.integers(0, 256), np.uint8) for _ in range(2))
    stride, before, after = (data.draw(st.integers(low, 2)) for low in (1, 0, 0))
    attrs = {
        "stride": stride, "groups": groups, "pad": "given", "before": before, "after": after,
    }  # fmt: skip
    pads = [before] * 2 + [after] * 2
    options: dict[str, Any] = {"strides": [stride] * 2, "group": groups, "pads": pads}
    results = found("conv_integer", {"x": x, "w": w, "x_zero": p, "w_zero": q}, **attrs)
    assert not results[0][1].any()
    check(results, native("ConvInteger", [x, w, p, q], **options))
    s, t = (np.array(rng.uniform(0.01, 0.1), np.float32) for _ in range(2))
    r = rng.uniform(0.01, 0.1, 4).astype(np.float32)
    z, each = np.array(rng.integers(0, 256), np.uint8), np.full(4, q)
    bias = rng.integers(-999, 999, 4).astype(np.int32)
    names = (
        "x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero", "bias",
    )  # fmt: skip
    given_ = [x, s, p, w, r, each, t, z, bias]
    results = found("qlinear_conv", dict(zip(names, given_, strict=True)), **attrs)
    check(results, native("QLinearConv", given_, **options))


@settings(max_examples=20)
@given(st.data())
def test_a_range_of_its_own(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    low, high = data.draw(st.sampled_from(((-3, 5), (1, 4), (-7, -2))))
    x = rng.uniform(low, high, (2, 5)).astype(np.float32)
    check(found("dynamic_quantize_linear", {"x": x}), native("DynamicQuantizeLinear", [x], 3))


def test_the_range_of_zeros_is_open() -> None:
    for _, radius in found("dynamic_quantize_linear", {"x": np.zeros(3)}):
        assert np.isinf(radius).all()


@pytest.mark.parametrize("scale", [0.0, -0.0, -1, np.nan])
def test_steps_of_a_scale_that_is_not_above_zero_lead_nowhere(scale: float) -> None:
    one, zero, whole = np.array(1.0, np.float32), np.array(0, np.int64), np.array([[2]])
    x = np.array([1.0], np.float32)
    products = {"a": whole, "a_scale": one, "a_zero": zero, "b": whole, "b_scale": one}
    products |= {"b_zero": zero, "y_zero": zero}
    conv = {"x": whole[None], "x_scale": one, "x_zero": zero, "w": whole[None], "w_scale": one}
    conv |= {"w_zero": zero, "y_zero": zero}
    for op, name, inputs in (
        ("quantize_linear", "scale", {"x": x}), ("fake_quantize", "scale", {"x": x}),
        ("qlinear_matmul", "y_scale", products), ("qlinear_conv", "y_scale", conv),
    ):  # fmt: skip
        ((_, radius),) = found(op, inputs | {name: one / 2})
        assert np.isfinite(radius).all()
        with pytest.raises(InvalidInput, match=f"{op}.{name}"):
            found(op, inputs | {name: np.array(scale, np.float32)})


@settings(max_examples=20)
@given(st.data())
def test_there_and_back(data: st.DataObject) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.uniform(-20, 20, 9).astype(np.float32)
    scale, zero = np.array(rng.uniform(0.1, 0.9), np.float32), int(rng.integers(0, 16))
    inputs = {"x": x, "scale": scale, "zero_point": np.array(zero, np.int32)}
    results = found("fake_quantize", inputs, low=0, high=15)
    wanted = torch.fake_quantize_per_tensor_affine(torch.tensor(x), float(scale), zero, 0, 15)
    check(results, [wanted.numpy()])


def test_fake_quantising_may_have_a_scale_a_channel() -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[1.04, -0.7, 9.0], [0.26, 40.0, -40.0]], np.float32)
    scale, zero = np.array([0.1, 0.3, 0.5], np.float32), np.array([3, 0, -5], np.int32)
    for axis in (1, -1):
        results = found("fake_quantize", {"x": x, "scale": scale, "zero_point": zero}, axis=axis)
        wanted = torch.fake_quantize_per_channel_affine(
            *map(torch.tensor, (x, scale, zero)), 1, -128, 127
        )
        check(results, [wanted.numpy()])


def test_a_range_is_moved_so_that_it_has_zero_in_it() -> None:
    """The documentation of tf.quantization.fake_quant_with_min_max_vars, by hand."""
    x = np.array([-9.0, 0.04, 0.6, 9.0], np.float32)
    for low, high, ends in ((-1.04, 2.0, (-1.0133334, 2.0266666)), (1.0, 2.0, (0.0, 1.0)),
                            (-3.0, -1.5, (-1.5, 0.0))):  # fmt: skip
        given = {"x": x, "low": np.array(low, np.float32), "high": np.array(high, np.float32)}
        step = (high - low) / 15
        inner = [np.clip(np.round(v / step) * step, *ends) for v in x[1:3]]
        check(found("fake_quantize_range", given, bits=4), [np.array([ends[0], *inner, ends[1]])])


@given(
    st.floats(-100, 0, width=32),
    st.floats(2.0**-10, 100, width=32),
    st.integers(2, 8),
    st.booleans(),
)
def test_the_end_of_a_range_is_so_many_steps(
    low: float, high: float, bits: int, narrow: bool
) -> None:
    """What is beyond is rounded as all else is: the documented steps in f32, of places and back."""
    ends = {"low": np.array(low, np.float32), "high": np.array(high, np.float32)}
    first, last = int(narrow), 2**bits - 1
    step = (ends["high"] - ends["low"]) / np.float32(last - first)
    zero = np.float32(np.round(np.float32(first) - ends["low"] / step))
    if abs(float(-ends["low"] / step) % 1 - 0.5) < 1e-3:
        return  # two steps are as near
    bounds = [(np.float32(end) - zero) * step for end in (first, last)]
    x = np.array([-300, 300], np.float32)
    y = np.floor((np.clip(x, *bounds) - bounds[0]) * (1 / step) + np.float32(0.5))
    y = y * step + bounds[0]
    ((value, radius),) = found("fake_quantize_range", {"x": x, **ends}, bits=bits, narrow=narrow)
    assert np.all(np.abs(y - value) <= radius)
    assert np.all(radius <= 2.0**-20 * (high - low))


def test_what_a_range_bounds_flows_back_to_its_ends() -> None:
    tf = pytest.importorskip("tensorflow")
    x = np.array([-9.0, 0.04, 0.6, 9.0, 7.0], np.float32)
    text = """nnir 1
model m(x: f32[5], a: f32[], b: f32[], w: f32[5]) -> loss: f32[] {
  y = fake_quantize_range(x, a, b; bits = 4)
  loss = reduce_sum(multiply(y, w))
}
"""
    graph = check_program(parse(text, "m.nnir"), builtin()).graphs[0]
    given = {"x": x, "a": np.float32(-1.04), "b": np.float32(2.0)}
    weights = np.array([1, 2, 4, 8, 16], np.float32)
    values = {name: np.asarray(value) for name, value in given.items()}
    got = gradients(graph, {**values, "w": weights}, builtin())
    tensors = {name: tf.constant(value) for name, value in given.items()}
    with tf.GradientTape() as tape:
        tape.watch(list(tensors.values()))
        y = tf.quantization.fake_quant_with_min_max_vars(*tensors.values(), num_bits=4)
        loss = tf.reduce_sum(y * weights)
    for name, slope in tape.gradient(loss, tensors).items():
        np.testing.assert_array_equal(np.asarray(got[name]), slope.numpy())


def test_a_sum_that_a_narrow_type_lacks_is_rounded_before_it_is_scaled() -> None:
    """4102 is no float16: the nearest is 4104. All else is exact here."""
    x, w = np.array([[[255], [22]]], np.uint8), np.array([[[16], [1]]], np.uint8)
    two, half = np.array(2, np.float16), np.array(0.5, np.float16)
    zeros = {"x_zero": np.uint8(0), "w_zero": np.uint8(0), "y_zero": np.uint16(0)}
    given: dict[str, Array] = {"x": x, "w": w, "x_scale": two, "w_scale": two, "y_scale": half}
    given |= {name: np.array(number) for name, number in zeros.items()}
    ((value, radius),) = found("qlinear_conv", given, to="u16")
    assert value.item() == 8 * 4102
    narrow = np.float16(4102) * (two * two / half)
    assert narrow == 8 * 4104
    assert abs(float(narrow) - value.item()) <= radius.item() < 24


def test_nothing_is_said_of_a_zero_point_that_the_result_cannot_hold() -> None:
    one = np.array(1.0, np.float32)
    small, large = np.array(255, np.int64), np.array(2**63 - 1)
    zero = np.array(0, np.int64)
    for y_zero, known in ((small, True), (large, False), (np.array(-1), False)):
        given = {"a": np.array([[2]]), "a_scale": one, "a_zero": zero, "b": np.array([[-3]])}
        given |= {"b_scale": one, "b_zero": zero, "y_scale": one, "y_zero": y_zero}
        ((value, radius),) = found("qlinear_matmul", given)
        assert np.isinf(radius).item() is not known
        assert not known or value.item() == 249
    for zero_point, known in ((7, True), (8, False)):
        x = {"x": np.array([2.0], np.float32), "scale": one, "zero_point": np.array(zero_point)}
        ((_, radius),) = found("fake_quantize", x, low=-8, high=7)
        assert np.isinf(radius).item() is not known


def test_nothing_is_said_of_an_integer_for_what_is_no_number() -> None:
    one, none = np.array(1.0, np.float32), np.array(0.0, np.float32)
    zero, x = np.array(0, np.int64), np.array([[2]])
    for scale, known in ((one, True), (np.array(np.inf, np.float32), False)):
        given = {"a": x, "a_scale": scale, "a_zero": zero, "b": x, "b_zero": zero}
        given |= {"b_scale": none, "y_scale": one, "y_zero": zero}
        ((_, radius),) = found("qlinear_matmul", given)
        assert np.isinf(radius).item() is not known
        conv = {"x": x[None], "x_scale": scale, "x_zero": zero, "w": x[None], "w_zero": zero}
        conv |= {"w_scale": none, "y_scale": one, "y_zero": zero}
        ((_, radius),) = found("qlinear_conv", conv)
        assert np.isinf(radius).item() is not known
    text = "nnir 1\nmodel m(x: f32[2]) -> y: u8[2], scale: f32[], z: u8[] {\n"
    graph = loads(f"{text}  y, scale, z = dynamic_quantize_linear(x)\n}}").graph
    for number in (np.nan, np.inf):
        made = balls(graph, {"x": np.array([1, number], np.float32)}, builtin(), "f32")
        assert np.isinf(made["y"].bound).all()
        assert np.isinf(made["z"].bound)
        assert not np.isinf(made["scale"].bound)  # which follows from the equations


@pytest.mark.parametrize(
    ("given", "call", "inputs"),
    [
        (
            "f32[4]",
            "dequantize_linear(quantize_linear(x, 0.1), 0.1)",
            [("QuantizeLinear", 3), ("DequantizeLinear", 3)],
        ),
        ("i8[4]", "dequantize_linear(x, 0.1)", [("DequantizeLinear", 2)]),
        ("i32[4]", "dequantize_linear(x, 0.1)", [("DequantizeLinear", 2)]),  # as biases are
    ],
)
def test_zero_points_of_pairs_are_written_as_by_what_quantises_models(
    given: str, call: str, inputs: list[tuple[str, int]]
) -> None:
    """Passes of optimisers look for three inputs, and do nothing where there are two; others go
    wrong there: what nothing has quantised has the zero point that the program says, or none.
    """
    text = f"nnir 1\nmodel m(x: {given}) -> y: f32[4] {{\n  y = {call}\n}}\n"
    graph = check_program(parse(text, "m.nnir"), builtin()).graphs[0]
    code = lower(graph, "onnxruntime", builtin(), initial_values(graph, 0)).code
    assert isinstance(code, bytes)
    nodes = onnx.load_from_string(code).graph.node
    assert [(node.op_type, len(node.input)) for node in nodes] == inputs
