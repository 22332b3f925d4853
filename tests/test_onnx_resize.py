"""What ONNX is asked for where a tensor gets another size, is padded, or is multiplied by a vector:
the program's own words, and the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.interp.shape import check
from irlang.interp.values import inputs
from irlang.lower.lower import lower
from irlang.parser import parse

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
Asked = tuple[str, list[list[float] | None], dict[str, Any]]


def asked(given: str, result: str, call: str) -> Asked:
    """The only operator, its constant inputs, and its attributes; the values must agree."""
    text = f"nnir 1\nmodel m({given}) -> y: {result} {{ y = {call} }}"
    (found,) = check(parse(text), builtin()).graphs
    lowered = lower(found, "onnxruntime", builtin(), {})
    assert isinstance(lowered.code, bytes)
    graph = onnx.load_from_string(lowered.code).graph
    (node,) = graph.node
    held = {
        one.name: onnx.numpy_helper.to_array(one).reshape(-1).tolist() for one in graph.initializer
    }
    with Session(["onnxruntime"]) as session:
        for seed in range(3):
            (outcome,) = session.compare([Case(found, inputs(found, seed), {}, builtin())])
            verdicts = {v.verdict for v in outcome.verdicts["onnxruntime"]}
            assert verdicts <= {"agrees", "rounding"}, outcome.verdicts
    said = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return node.op_type, [held.get(name) for name in node.input[1:]], said


SCALED = [
    ("f32[5]", "f32[7]", "scale = 1.5, axes = [0]", [[1.5]], {"axes": [0]}),
    ("f32[4, 5]", "f32[6, 5]", "scale = 1.5, axes = [-2]", [[1.5]], {"axes": [-2]}),
    ("f32[1, 1, 4, 5]", "f32[1, 1, 3, 3]", "scale = [0.75, 0.625], mode = linear",
     [[1, 1, 0.75, 0.625]], {"mode": b"linear"}),
    ("f32[2, 4, 5, 3]", "f32[2, 6, 7, 3]", "scale = 1.5, axes = [1, 2], mode = linear",
     [[1.5, 1.5]], {"axes": [1, 2]}),
    ("f32[4, 5]", "f32[6, 7]", "scale = 1.5, axes = [0, 1], mode = cubic", [[1.5, 1.5]], {}),
    ("f32[1, 1, 4, 5]", "f32[1, 1, 6, 10]", "scale = [2, 1.5], axes = [3, -2], mode = linear",
     [[2, 1.5]], {"axes": [3, -2]}),
    ("f32[1, 1, 5]", "f32[1, 1, 3]", "scale = 0.75, coord = half_pixel_symmetric", [[1, 1, 0.75]],
     {"coordinate_transformation_mode": b"half_pixel_symmetric"}),
    ("u8[2, 4, 5]", "u8[2, 6, 7]", "scale = 1.5, axes = [1, 2]", [[1.5, 1.5]], {"axes": [1, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "result", "attributes", "scales", "said"), SCALED)
def test_scales_are_handed_over_as_scales(
    given: str, result: str, attributes: str, scales: list[list[float]], said: dict[str, Any]
) -> None:
    op, held, found = asked(f"x: {given}", result, f"resize(x; {attributes})")
    assert op == "Resize"
    assert [one for one in held if one] == scales
    assert said.items() <= found.items()


def test_sizes_are_handed_over_as_sizes_and_a_policy_with_its_axes() -> None:
    call = "resize(x; size = [7, 8], mode = linear, aspect = not_larger)"
    _, held, said = asked("x: f32[1, 1, 4, 5]", "f32[1, 1, 6, 8]", call)
    assert held == [None, None, [7, 8]]
    assert (said["axes"], said["keep_aspect_ratio_policy"]) == ([2, 3], b"not_larger")
    _, held, said = asked("x: f32[1, 1, 4, 5]", "f32[1, 1, 7, 8]", "resize(x; size = [7, 8])")
    assert held == [None, None, [1, 1, 7, 8]]
    assert "axes" not in said


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_part_of_an_image_is_a_region(mode: str) -> None:
    part = "roi_begin = [0.25, 0.5], roi_end = [0.75, 1.25], extrapolation = 7"
    call = f"resize(x; size = [3, 4], mode = {mode}, coord = tf_crop_and_resize, {part})"
    _, held, said = asked("x: f32[1, 1, 4, 5]", "f32[1, 1, 3, 4]", call)
    assert held[0] == [0, 0, 0.25, 0.5, 1, 1, 0.75, 1.25]
    assert said["extrapolation_value"] == 7


@pytest.mark.parametrize(
    "attributes",
    [
        "scale = 0.7",  # which f32 does not hold: seven tenths of ten would be six
        "size = 6, scale = 0.5",  # another size than the scale gives
        "scale = 0.75, coord = align_corners",  # of a size that is no whole number
    ],
)
def test_what_onnx_would_read_otherwise_is_composed(attributes: str) -> None:
    size = {"size = 6, scale = 0.5": 6}.get(attributes, 7)
    given, result = "x: f32[1, 1, 10]", f"y: f32[1, 1, {size}]"
    text = f"nnir 1\nmodel m({given}) -> {result} {{ y = resize(x; {attributes}) }}"
    (found,) = check(parse(text), builtin()).graphs
    assert not lower(found, "onnxruntime", builtin(), {}).native


def test_padded_axes_are_named_but_for_the_last_ones() -> None:
    pads = "pad(x; before = [0, 1, 0], after = [0, 2, 0], mode = edge)"
    _, held, _ = asked("x: f32[2, 3, 4]", "f32[2, 6, 4]", pads)
    assert held == [[1, 2], None, [1]]
    last = "pad(x; before = [0, 0, 1], after = [0, 0, 2], value = 5)"
    _, held, _ = asked("x: f32[2, 3, 4]", "f32[2, 3, 7]", last)
    assert held == [[0, 0, 1, 0, 0, 2], [5]]
    rows = "pad(x; before = [0, 1, 2, 0], after = [0, 0, 1, 0])"  # of images, channels last
    _, held, _ = asked("x: f32[1, 3, 4, 2]", "f32[1, 4, 7, 2]", rows)
    assert held == [[1, 2, 0, 1], [0], [1, 2]]
    image = "pad(x; before = [0, 0, 1, 1], after = [0, 0, 1, 1])"
    _, held, _ = asked("x: f32[1, 2, 3, 4]", "f32[1, 2, 5, 6]", image)
    assert held[0] == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("given", "result", "attributes"),
    [
        ("x: f32[3, 4], u: f32[4]", "f32[3]", ""),
        ("x: f32[4], u: f32[4]", "f32[]", ""),
        ("x: f64[2, 3, 4], u: f64[4, 5]", "f64[2, 3, 5]", ""),
        ("x: i32[3], u: i32[2, 3, 2]", "i32[2, 2]", "; b_axes = [-2]"),
    ],
)
def test_sums_of_products_with_vectors_are_matrix_products(
    given: str, result: str, attributes: str
) -> None:
    op, _, _ = asked(given, result, f"tensordot(x, u{attributes})")
    assert op == "MatMul"


def test_a_transposed_matrix_by_a_vector_is_caught() -> None:
    """Which ONNX Runtime takes for one that is not transposed (1.15 to 1.31)."""
    text = """nnir 1
    model m(x: f32[3, 4], u: f32[3]) -> y: f32[4] {
      t = transpose(x)
      y = tensordot(t, u)
    }"""
    (found,) = check(parse(text), builtin()).graphs
    case = Case(found, inputs(found, 1), {}, builtin())
    lowered = lower(found, "onnxruntime", builtin(), {})
    got = onnxruntime.InferenceSession(lowered.code).run(None, dict(case.inputs))[0]
    right = np.swapaxes(case.inputs["x"], 0, 1) @ case.inputs["u"]
    with Session(["onnxruntime", "onnxruntime:plain"]) as session:
        (outcome,) = session.compare([case])
    assert {v.verdict for v in outcome.verdicts["onnxruntime:plain"]} <= {"agrees", "rounding"}
    caught = {v.verdict for v in outcome.verdicts["onnxruntime"]} == {"wrong"}
    assert caught == (not np.allclose(got, right, rtol=1e-4))
