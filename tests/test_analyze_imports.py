"""Defects of training programs and their mended twins, as converters write them into ONNX files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from irlang.analysis.confirm import Frameworks
from irlang.analysis.report import diagnostics
from irlang.analysis.verdict import verdicts
from irlang.commands.loading import load_subject

HEAD = '<ir_version: 8, opset_import: ["" : 13]>\n'

# name: inputs with their ranges; the nodes that go wrong; the text without a guard, and with one.
PAIRS: dict[str, Any] = {
    "l2_normalize of tf2onnx, then acos": (
        {"x": "float[4,6] in [-5, 5]", "y": "float[4,6] in [-5, 5]"}, ["acos"],
        """[sx] a = Mul(x, x)   [sy] b = Mul(y, y)
        [nx] c = ReduceSum <keepdims = 1> (a, one)   [ny] d = ReduceSum <keepdims = 1> (b, one)
        [mx] e = Max(c, tiny)   [my] f = Max(d, tiny)
        [rx] g = Sqrt(e)   [ry] h = Sqrt(f)   [ix] i = Reciprocal(g)   [iy] j = Reciprocal(h)
        [ux] k = Mul(x, i)   [uy] l = Mul(y, j)   [p] m = Mul(k, l)
        [cos] n = ReduceSum <keepdims = 0> (m, one)""",
        "[acos] z = Acos(n)", "[less] o = Mul(n, most)   [acos] z = Acos(o)",
    ),
    "F.normalize of PyTorch, then a ratio to 1 - |c|": (
        {"x": "float[4,6] in [-5, 5]"}, ["ratio"],
        """[n] a = ReduceL2 <axes = [1], keepdims = 1> (x)   [m] b = Clip(a, tiny)
        [e] c = Expand(b, shape)   [d] u = Div(x, c)   [g] v = Abs(u)   [r] w = Sub(first, v)""",
        "[ratio] z = Div(x, w)", "[s] t = Add(w, thousandth)   [ratio] z = Div(x, t)",
    ),
    "degrees of a graph": (
        {"x": "float[3,3] in [0, 1]"}, ["inverse"], "",
        """[sum] s = ReduceSum <keepdims = 0> (x, one)   [root] r = Sqrt(s)
        [inverse] z = Reciprocal(r)""",
        """[loops] a = Add(x, eye)   [sum] s = ReduceSum <keepdims = 0> (a, one)
        [root] r = Sqrt(s)   [inverse] z = Reciprocal(r)""",
    ),
    "contrast with all others": (
        {"x": "float[3,3] in [-9, 9]"}, ["log"], "[exp] e = Exp(x)",
        """[own] a = Mul(e, eye)   [others] b = Sub(e, a)   [pos] c = Sub(b, first)
        [relu] d = Relu(c)   [sum] s = ReduceSum <keepdims = 0> (d, one)   [log] z = Log(s)""",
        """[not] a = Sub(first, eye)   [others] b = Mul(e, a)
        [sum] s = ReduceSum <keepdims = 0> (b, one)   [log] z = Log(s)""",
    ),
    "scores masked by -inf": (
        {"x": "float[3,3] in [-9, 9]", "y": "float[3,3] in [0, 1]"}, ["softmax"],
        "[c] m = Greater(y, half)",
        "[w] s = Where(m, x, lowest)   [softmax] z = Softmax <axis = -1> (s)",
        "[w] s = Where(m, x, low)   [softmax] z = Softmax <axis = -1> (s)",
    ),
    "overlap of boxes by centre and size": (
        {"x": "float[4,2] in [0, 1]", "y": "float[4,2] in [0, 1]",
         "s": "float[4,2] in [{least}, 1]", "t": "float[4,2] in [{least}, 1]"}, ["iou"],
        """[hs] a = Mul(s, half)   [ht] b = Mul(t, half)   [xl] c = Sub(x, a)   [xh] d = Add(x, a)
        [yl] e = Sub(y, b)   [yh] f = Add(y, b)   [lo] g = Max(c, e)   [hi] h = Min(d, f)
        [w] i = Sub(h, g)   [cut] j = Clip(i, zero)   [inter] k = ReduceProd <axes = [1]> (j)
        [as] l = ReduceProd <axes = [1]> (s)   [at] m = ReduceProd <axes = [1]> (t)
        [both] n = Add(l, m)   [union] o = Sub(n, k)""",
        "[iou] z = Div(k, o)", "[iou] z = Div(k, o)",
    ),
    "a contrast of pairs, with the pairs as constants": (
        {"x": "float[4,6] in [-2, 2]", "y": "float[4,6] in [-2, 2]"}, ["exp"],
        """[t] a = Transpose(y)   [p] b = MatMul(x, a)   [s] c = Div(b, cold)""",
        "[exp] z = Exp(c)", "[ce] z = SoftmaxCrossEntropyLoss(c, pairs)",
    ),
    "linear attention": (
        {"x": "float[4,6] in [-310, 310]"}, ["inverse"],
        "[elu] a = Elu(x)   [up] b = Add(a, first)   [sum] s = ReduceSum <keepdims = 0> (b, one)",
        "[inverse] z = Reciprocal(s)", "[s1] t = Add(s, thousandth)   [inverse] z = Reciprocal(t)",
    ),
    "Select of tf2onnx, as products": (
        {"x": "float[4,6] in [-50, 50]", "y": "float[6,1] in [-10, 10]"}, ["log"],
        """[xy] a = MatMul(x, y)   [p] b = Sigmoid(a)   [q] c = Sub(first, b)
        [is] d = Greater(c, tiny)   [no] e = Not(d)   [f] f = Cast <to = 1> (d)
        [g] g = Cast <to = 1> (e)   [then] h = Mul(f, c)   [e1] i = Expand(first, column)
        [small] k = Mul(i, thousandth)   [else] l = Mul(k, g)""",
        "[log] z = Log(h)", "[both] m = Add(h, l)   [log] z = Log(m)",
    ),
    "distances by a product": (
        {"x": "float[4,6] in [-5, 5]", "y": "float[5,6] in [-5, 5]"}, ["root"],
        """[sx] a = ReduceSumSquare <axes = [1]> (x)   [sy] b = ReduceSumSquare <axes = [1]> (y)
        [ty] c = Transpose(b)   [yt] d = Transpose(y)   [xy] e = MatMul(x, d)
        [two] f = Mul(e, double)   [add] g = Add(a, c)   [sub] h = Sub(g, f)""",
        "[root] z = Sqrt(h)", "[e1] i = Add(h, hundredth)   [root] z = Sqrt(i)",
    ),
}  # fmt: skip
CONSTANTS = {
    "one": np.array([1]), "shape": np.array([4, 6]), "column": np.array([4, 1]),
    "eye": np.eye(3, dtype=np.float32),
    "tiny": 1e-12, "most": 0.999, "first": 1, "thousandth": 1e-3, "hundredth": 0.01, "double": 2,
    "cold": 0.07, "pairs": np.arange(4), "half": 0.5, "zero": 0, "low": -1e9, "lowest": -np.inf,
}  # fmt: skip


def written(folder: Path, name: str, guarded: bool) -> tuple[Path, dict[str, tuple[float, float]]]:
    """A model as a file, and the ranges of its inputs."""
    given, _, shared, bare, guard = PAIRS[name]
    least = "0.1" if guarded else "0"
    ends = {n: text.replace("{least}", least).split(" in ") for n, text in given.items()}
    signature = ", ".join(f"{shape} {n}" for n, (shape, _) in ends.items())
    nodes = re.split(r"\s{2,}(?=\[)", f"{shared}   {guard if guarded else bare}".strip())
    text = f"{HEAD}g ({signature}) => (float[?] z) {{\n" + "\n".join(nodes) + "\n}"
    model = onnx.parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    read = {value for node in model.graph.node for value in node.input}
    for constant in CONSTANTS.keys() & read:
        array = np.asarray(CONSTANTS[constant])
        array = array if array.ndim else array.astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, constant))
    path = folder / "m.onnx"
    onnx.save(model, path)
    ranges = {}
    for name, (_, said) in ends.items():
        low, high = map(float, said.strip("[]").split(","))
        ranges[name] = low, high
    return path, ranges


@pytest.fixture(scope="module")
def frameworks() -> Iterator[Frameworks]:
    with Frameworks() as made:
        yield made


@pytest.mark.parametrize("name", PAIRS)
def test_a_defect_has_a_witness(name: str, tmp_path: Path, frameworks: Frameworks) -> None:
    path, ranges = written(tmp_path, name, False)
    found = verdicts(load_subject(str(path), ranges=ranges), frameworks)
    reached = {report.node for report in found.reports if report.status == "reachable"}
    assert reached >= set(PAIRS[name][1])
    assert all(report.guard for report in found.reports if report.node in PAIRS[name][1])


def test_constant_labels_leave_enough_proofs_for_the_gradient(
    tmp_path: Path, frameworks: Frameworks
) -> None:
    """Each row of a contrast has a label of its own, and a proof of its own."""
    path, ranges = written(tmp_path, "a contrast of pairs, with the pairs as constants", True)
    subject = load_subject(str(path), ranges=ranges)
    assert verdicts(subject, frameworks, gradient=True).reports == ()


@pytest.mark.parametrize("name", PAIRS)
def test_its_twin_is_quiet(name: str, tmp_path: Path, frameworks: Frameworks) -> None:
    path, ranges = written(tmp_path, name, True)
    assert verdicts(load_subject(str(path), ranges=ranges), frameworks).reports == ()


def test_a_way_out_says_what_its_names_are_in_the_model(
    tmp_path: Path, frameworks: Frameworks
) -> None:
    path, ranges = written(tmp_path, "Select of tf2onnx, as products", False)
    model = onnx.load(path)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["net/h:0" if name == "h" else name for name in names]
    onnx.save(model, path)
    found = verdicts(load_subject(str(path), ranges=ranges), frameworks)
    (told,) = [one for one in diagnostics(found) if one.node == "log"]
    assert told.help.startswith("write log(maximum(net_h_0, 1e-6)).")
    assert told.help.endswith("(In the model, net_h_0 is then.)")


def test_a_way_out_is_silent_about_names_that_are_the_same(
    tmp_path: Path, frameworks: Frameworks
) -> None:
    path, ranges = written(tmp_path, "Select of tf2onnx, as products", False)
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, path)
    found = verdicts(load_subject(str(path), ranges=ranges), frameworks)
    told = [one.help for one in diagnostics(found)]
    assert any(one.startswith("write log(maximum(h, 1e-6)).") for one in told)
    assert not any("In the model" in one for one in told)
