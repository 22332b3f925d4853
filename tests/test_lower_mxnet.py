"""What MXNet has operators of its own for, and what it is not asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import irlang
from irlang.catalog import builtin
from irlang.commands.diff import command as diff
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.interp.shape import check
from irlang.interp.values import inputs as drawn
from irlang.lower.direct import is_direct
from irlang.lower.lower import lower
from irlang.lower.manner import Manner
from irlang.lower.pool import Program, Worker
from irlang.parser import parse
from tests.lower_calls import case, disagreement
from tests.targets import usable
from tests.test_lower_text import lowered, ran

_TARGET, _HYBRID = "mxnet-1.6", "mxnet-1.6:hybrid"
_INPUTS = "x: f32[2, 3, 4] in [-3, 3], s: f32[3] in [-2, 2], v: f32[3] in [0, 2], w: f32[5, 4]"

# A call, the type of its result, and what the program has to say.
_OWN = (
    ("batch_norm_train(x)", "f32[2, 3, 4]", "with mx.autograd.train_mode():"),
    ("batch_norm_train(x, s; eps = 1e-6)", "f32[2, 3, 4]", "fix_gamma=False"),
    ("batch_norm(x, s, s, s, v; eps = 1e-6)", "f32[2, 3, 4]", "eps=1e-06"),
    ("clip(x; max = 1)", "f32[2, 3, 4]", "mx.np.clip(x, "),
    ("layer_norm(x; axes = [-1])", "f32[2, 3, 4]", "mx.npx.layer_norm(x, "),
    ("reduce_variance(x; axes = [-1], correction = 1)", "f32[2, 3]", "ddof=1"),
    ("reduce_std(x; axes = [1], correction = 2)", "f32[2, 4]", "ddof=2"),
    ("avg_pool(x; window = 3, ceil_mode = true)", "f32[2, 3, 2]", 'pooling_convention="full"'),
    ("atan2(1.5, x)", "f32[2, 3, 4]", "mx.np.arctan2(1.5, x)"),
    ("power(2, x)", "f32[2, 3, 4]", "mx.np.power(2.0, x)"),
    ("maximum(x, 0.5)", "f32[2, 3, 4]", "mx.np.maximum(x, 0.5)"),
    ("matmul(x, w; transpose_b = true)", "f32[2, 3, 5]", "mx.np.dot(x, "),
    (
        "cosine_window(; size = 6, terms = [0.42, 0.5, 0.08], periodic = false)",
        "f32[6]",
        "mx.np.blackman(6, ",
    ),
    ("lp_pool(x; window = 3, ceil_mode = true)", "f32[2, 3, 2]", 'pooling_convention="full"'),
)
# The same of what `mx.nd` alone has, of an image, a matrix and places.
_ELDER_INPUTS = (
    "x: f32[2, 4, 6, 6] in [-3, 3], s: f32[4] in [-2, 2], m: f32[2, 3, 3] in [-2, 2], "
    "g: f32[2, 3, 5, 2] in [-1.5, 1.5], t: f32[2, 2, 3] in [-1, 1], at: i32[5, 2] in [0, 1], "
    "r: f32[3, 4] in [0, 6], image: i32[3] in [0, 1], lengths: i32[4] in [0, 2]"
)
_ELDER = (
    ("instance_norm(x, s; eps = 1e-3)", "f32[2, 4, 6, 6]", "mx.nd.InstanceNorm("),
    ("local_response_norm(x; size = 3)", "f32[2, 4, 6, 6]", "mx.nd.LRN("),
    ("space_to_depth(x; block_size = 2)", "f32[2, 16, 3, 3]", "mx.nd.space_to_depth("),
    ("depth_to_space(x; block_size = 2)", "f32[2, 1, 12, 12]", "mx.nd.depth_to_space("),
    ("upsample(x; scale = 3)", "f32[2, 4, 18, 18]", "mx.nd.UpSampling("),
    (
        "pad(x; before = [0, 0, 1, 2], after = [0, 0, 0, 3], mode = reflect)",
        "f32[2, 4, 7, 11]",
        "mx.nd.pad(",
    ),
    ("grid_sample(x, g; align_corners = true)", "f32[2, 4, 3, 5]", "mx.nd.BilinearSampler("),
    ("affine_grid(t; size = [3, 4], align_corners = true)", "f32[2, 3, 4, 2]", "GridGenerator("),
    ("adaptive_avg_pool(x; size = [4, 3])", "f32[2, 4, 4, 3]", "AdaptiveAvgPooling2D("),
    (
        "roi_align(x, r, image; size = 2, sampling_ratio = 2, aligned = false)",
        "f32[3, 4, 2, 2]",
        "mx.nd.contrib.ROIAlign(",
    ),
    ("gather_nd(x, at)", "f32[5, 6, 6]", "mx.nd.gather_nd("),
    ("determinant(m)", "f32[2]", "mx.nd.linalg_det("),
    ("reduce_sum(determinant(reduce_sum(m; axes = [0])))", "f32[]", "()"),
    ("inverse(add(m, scaled))", "f32[2, 3, 3]", "mx.nd.linalg_inverse("),
    ("triangular_solve(add(m, scaled), m)", "f32[2, 3, 3]", "mx.nd.linalg_trsm("),
    ("cholesky(add(matmul(m, m; transpose_b = true), scaled))", "f32[2, 3, 3]", "potrf("),
    ("lgamma(r)", "f32[3, 4]", "mx.nd.gammaln("),
    ("reduce_nansum(x; axes = [1, 3])", "f32[2, 6]", "mx.nd.nansum("),
    (
        "reverse_sequence(x, lengths; axis = 0, batch_axis = 1)",
        "f32[2, 4, 6, 6]",
        "mx.nd.SequenceReverse(",
    ),
    ("unravel_index(image; shape = [2, 3])", "i32[2, 3]", "mx.nd.unravel_index("),
    ("hard_sigmoid(x)", "f32[2, 4, 6, 6]", "mx.nd.hard_sigmoid("),
)


@pytest.mark.parametrize(("call", "result", "said"), _ELDER)
def test_operators_of_before_are_called_and_right(call: str, result: str, said: str) -> None:
    usable(_TARGET)
    scaled = "scaled = multiply(eye(; rows = 3), 9)" if "scaled" in call else ""
    text = f"nnir 1\nmodel m({_ELDER_INPUTS}) -> y: {result} {{ {scaled}\ny = {call} }}\n"
    _, program, wanted = lowered(text, _TARGET)
    assert said in str(program.code)
    kind = result[: result.index("[")]
    assert disagreement(ran(program, _TARGET).outputs["y"], wanted["y"], kind) is None


@pytest.mark.parametrize(("call", "result", "said"), _OWN)
def test_operators_of_its_own_are_called_and_right(call: str, result: str, said: str) -> None:
    usable(_TARGET)
    text = f"nnir 1\nmodel m({_INPUTS}) -> y: {result} {{ y = {call} }}\n"
    found, program, wanted = lowered(text, _TARGET)
    assert found.native == {"y"}
    assert said in str(found.code)
    assert disagreement(ran(program, _TARGET).outputs["y"], wanted["y"], "f32") is None


@pytest.mark.parametrize("call", ["clip(x; min = 1, max = -1)", "arange(; start = 5, stop = 2)"])
def test_what_numpy_has_a_value_for_is_asked_of_it(call: str) -> None:
    """Bounds in the wrong order, which it gets wrong, and a range of nothing."""
    usable(_TARGET)
    made = case("x: f32[2, 3]", call)
    assert lower(made.graph, _TARGET, made.catalog, made.params).native == {"y"}


def test_what_it_has_no_number_for_is_composed() -> None:
    usable(_TARGET)
    made = case("x: f32[2, 3], w: f32[3, 0]", "dense(x, w)")
    assert lower(made.graph, _TARGET, made.catalog, made.params).native == set()


@pytest.mark.parametrize(
    ("beta", "word"), [("0.25", "mx.npx.smooth_l1"), ("2", "mx.gluon.loss.HuberLoss")]
)
def test_a_number_without_a_root_is_for_another_word(beta: str, word: str) -> None:
    usable(_TARGET)
    made = case("a: f32[3], b: f32[3]", f"smooth_l1(a, b; beta = {beta}, reduction = none)")
    assert word in str(lower(made.graph, _TARGET, made.catalog, made.params).code)


_LOSSES = [
    ("a: f32[2, 3], b: f32[2, 3]", "mse(a, b)", "L2Loss"),
    ("a: f32[2, 3], b: f32[2, 3]", "mae(a, b; reduction = sum)", "L1Loss"),
    ("a: f32[2, 3], b: f32[2, 3]", "hinge(a, b; reduction = none)", "HingeLoss"),
    ("a: f32[2, 3], b: f32[2, 3]", "squared_hinge(a, b)", "SquaredHingeLoss"),
    ("a: f32[2], b: f32[2], c: f32[1]", "binary_cross_entropy_logits(a, b, c)", "SigmoidBinary"),
    ("a: f32[2, 3], b: f32[2, 3] in [0.1, 4]", "poisson(a, b; log_input = true)", "PoissonNLL"),
    ("a: f32[2, 3], b: i64[2] in [0, 2]", "cross_entropy(a, b; reduction = sum)", "SoftmaxCross"),
    ("a: f32[2, 3, 4], b: f32[2, 3, 4]", "categorical_cross_entropy(a, b; axis = 1)", "False"),
    (
        "a: f32[4, 2, 3], b: i32[2, 2] in [0, 1], c: i64[2] in [4, 4], d: i64[2] in [1, 2]",
        "ctc_logits(a, b, c, d; blank = 2)",
        "CTCLoss",
    ),
]
_STATE = "a: f32[2, 3], g: f32[2, 3], m: f32[2, 3], s: f32[2, 3] in [0.5, 2]"
_CENTRED = "eps_to = square, velocity_of = steps)"
_STEPS = [
    (_STATE, f"{call}", f"mx.optimizer.{word}")
    for call, word in (
        ("sgd(a, g)", "SGD"),
        ("sgd(a, g, m; momentum = 0.5, velocity_of = steps, weight_decay = 0.1)", "SGD"),
        ("sgd(a, g; momentum = 0.5, velocity_of = steps, nesterov = true)", "NAG"),
        ("rmsprop(a, g, s; eps_to = square)", "RMSProp"),
        ("rmsprop(a, g, s; velocity = m, centered = true, momentum = 0.5, " + _CENTRED, "RMSProp"),
        ("adagrad(a, g, s; eps_to = square, weight_decay = 0.1, decoupled = true)", "AdaGrad"),
        ("adadelta(a, g, s, s)", "AdaDelta"),
        ("adam(a, g, m, s; step = 3, eps_to = raw, weight_decay = 0.1)", "Adam"),
        ("adamax(a, g, m, s; step = 3, eps = 0)", "Adamax"),
        ("nadam(a, g, m, s, 0.75; step = 3)", "Nadam"),
        ("lamb(a, g, m, s; step = 3, weight_decay = 0.1)", "LAMB"),
        ("lamb(a, g, m, s; bias_correction = false)", "LAMB"),
        ("signum(a, g, m; weight_decay = 0.1)", "Signum"),
        ("signum(a, g, m; weight_decay = 0.1, decoupled = true)", "Signum"),
        ("ftrl(a, g, s, m; l1 = 0.25, l2 = 0.5, beta = 1, lr = 0.5)", "Ftrl"),
    )
]


_IMAGE = "x: f32[2, 3, 4, 5]"
_OLD = [
    (inputs, call, f"mx.nd.{word}(")
    for inputs, call, word in (
        ("x: f32[3, 4] in [0.5, 9]", "lgamma(x)", "gammaln"),
        ("x: f32[3, 4]", "reduce_nansum(x; axes = [0, 1])", "nansum"),
        ("x: f32[3, 4]", "reduce_l1(x; axes = [1], keepdims = true)", "norm"),
        ("x: f32[2, 3, 3]", "determinant(x)", "linalg_det"),
        ("x: f32[3, 3]", "determinant(x)", "linalg_det"),
        ("x: f32[2, 3, 3]", "log_determinant(x)", "linalg_slogdet"),
        ("x: f32[2, 3, 3]", "inverse(x)", "linalg_inverse"),
        (
            "a: f32[3, 3] in [1, 2], b: f32[3, 2]",
            "triangular_solve(a, b; lower = false)",
            "linalg_trsm",
        ),
        (
            "a: f32[3, 2], b: f32[3, 4], c: f32[4]",
            "gemm(a, b, c; transpose_a = true)",
            "linalg_gemm",
        ),
        ("x: f32[2, 3, 4]", "diagonal(x; axes = [1, 2], offset = -1)", "diag"),
        ("x: f32[2, 3]", "diag_embed(x; offset = 1)", "linalg_makediag"),
        ("x: f32[2, 3], i: i64[4, 2] in [0, 1]", "gather_nd(x, i)", "gather_nd"),
        ("i: i64[4] in [0, 5]", "unravel_index(i; shape = [2, 3])", "unravel_index"),
        (
            "x: f32[3, 2, 2], n: i32[2] in [1, 3]",
            "reverse_sequence(x, n; axis = 0, batch_axis = 1)",
            "SequenceReverse",
        ),
        ("x: f32[3, 4]", "sort(x; stable = false, descending = true)", "argsort"),
        (f"{_IMAGE}, a: f32[3], b: f32[3]", "instance_norm(x, a, b)", "InstanceNorm"),
        ("x: f32[2, 4, 3]", "group_norm(x; groups = 2)", "GroupNorm"),
        (_IMAGE, "local_response_norm(x; size = 3, alpha = 0.5)", "LRN"),
        (_IMAGE, "l2_normalize(x; axes = [1], eps = 0)", "L2Normalization"),
        (_IMAGE, "pad(x; before = [0, 0, 1, 2], mode = reflect)", "pad"),
        (_IMAGE, "upsample(x)", "UpSampling"),
        (_IMAGE, "adaptive_avg_pool(x; size = [3, 2])", "contrib.AdaptiveAvgPooling2D"),
        (
            _IMAGE,
            "resize(x; size = [3, 7], mode = linear, coord = align_corners)",
            "contrib.BilinearResize2D",
        ),
        (
            f"{_IMAGE}, r: f32[2, 4] in [0, 4], b: i64[2] in [0, 1]",
            "roi_align(x, r, b; size = 2, sampling_ratio = 2, aligned = false)",
            "contrib.ROIAlign",
        ),
        (
            f"{_IMAGE}, g: f32[2, 2, 3, 2]",
            "grid_sample(x, g; align_corners = true)",
            "BilinearSampler",
        ),
        ("t: f32[2, 2, 3]", "affine_grid(t; size = [3, 4], align_corners = true)", "GridGenerator"),
        (
            "x: f32[3, 2], i: i64[1] in [1, 2], u: f32[1, 2]",
            "scatter_slices(x, i, u)",
            "contrib.index_copy",
        ),
        ("x: f32[3, 2], k: bool[3]", "compress(x, k; size = 3)", "contrib.boolean_mask"),
        ("a: f32[3], b: f32[3]", "add_n(a, b)", "add_n"),
    )
]


@pytest.mark.parametrize(("inputs", "call", "word"), [*_LOSSES, *_STEPS, *_OLD])
def test_losses_and_steps_of_its_own(inputs: str, call: str, word: str) -> None:
    known = usable(_TARGET)
    made = case(inputs, call)
    found = lower(made.graph, _TARGET, made.catalog, made.params)
    assert word in str(found.code)
    with Worker(known.worker) as worker:
        result = worker.submit([Program(found.kind, found.code, made.inputs, found.params)])[0]
    assert result.status == "ok", result.error
    assert not list(made.faults(result.outputs))


def test_an_axis_serves_axes_of_other_tensors_alone() -> None:
    usable(_TARGET)
    with pytest.raises(InvalidInput, match="of one input and label have sizes"):
        irlang.loads(
            "nnir 1\nmodel m(x: f32[1, 2]) -> y: f32[] {\n  y = einsum(x; labels = [0, 0])\n}"
        )
    made = case("x: f32[1], z: f32[2]", "einsum(x, z; labels = [0, 0])")
    assert lower(made.graph, _TARGET, made.catalog, made.params).native == {"y"}


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ("a: i32[5] in [-9, 9], b: i32[5] in [1, 4]", "modulo(a, b)"),
        ("a: i64[5] in [-3, 3], b: i64[5] in [0, 9]", "power(a, b)"),
        ("a: i64[2, 3] in [-3, 3], b: i64[3] in [0, 9]", "einsum(a, b; labels = [0, 1, 1])"),
        ("a: i32[4] in [-9, 9], b: i32[4] in [-9, 9]", "lcm(a, b)"),
        ("x: i32[2, 3] in [0, 1]", "nonzero(x; size = 8)"),
        ("a: i32[2, 1] in [-3, 3], b: i32[3] in [0, 9]", "einsum(a, b; labels = [0, 1, 1])"),
    ],
)
def test_whole_numbers_are_given_to_its_own_functions(inputs: str, call: str) -> None:
    """Powers of them are computed in double precision, and wrong beyond 2**53."""
    usable(_TARGET)
    made = case(inputs, call)
    found = lower(made.graph, _TARGET, made.catalog, made.params)
    assert found.native == {"y"}
    program = Program(found.kind, found.code, made.inputs, found.params)
    assert made.faults(ran(program, _TARGET).outputs) == []


def test_powers_of_two_types_are_computed_in_one() -> None:
    usable(_TARGET)
    made = case("a: f32[5], b: f64[5]", "power(abs(a), b)")
    found = lower(made.graph, _TARGET, made.catalog, made.params)
    program = Program(found.kind, found.code, made.inputs, found.params)
    assert ran(program, _TARGET).outputs


def test_vectors_that_stand_for_what_is_not_given_hide_no_argument() -> None:
    usable(_TARGET)
    for call in ("batch_norm_train(x)", "full(; shape = [2, 3], value = 2.0)"):
        text = f"nnir 1\nmodel m(x: f32[2, 3]) -> y: f32[2, 3] {{ y = {call} }}\n"
        assert is_direct(lowered(text, _TARGET)[0], shaped=True)


def _verdicts(body: str, inputs: str, folder: Path) -> dict[str, str]:
    """By result, what is said of it and of its gradients."""
    usable(_TARGET)
    model = folder / "m.nnir"
    model.write_text(f"nnir 1\nmodel m({inputs}) -> y: f32[2, 3, 4] {{ {body} }}\n", "utf-8")
    arguments = [str(model), "--grad", "--targets", _TARGET, "--format", "json"]
    made = CliRunner().invoke(diff, arguments)
    return {row["name"]: row["verdict"] for row in json.loads(made.stdout)["outputs"]}


def test_running_statistics_are_no_operands_that_it_differentiates_by(tmp_path: Path) -> None:
    inputs = f"{_INPUTS}, mean: f32[3] in [-1, 1]"
    body = "y = batch_norm(x, s, s, mean, v; eps = 0.1)\nloss = l2_loss(y)"
    found = _verdicts(body, inputs, tmp_path)
    assert (found["d_mean"], found["d_v"]) == ("unsupported", "unsupported")
    assert {found["d_x"], found["d_s"]} <= {"agrees", "rounding"}


def test_a_loss_that_nothing_leads_to_has_gradients_of_zero(tmp_path: Path) -> None:
    """MXNet itself refuses to differentiate a tensor that comes of no computation."""
    found = _verdicts("y = tanh(x)\nn = full(; shape = [2], value = 3.0)\nloss = l2_loss(n)",
                      _INPUTS, tmp_path)  # fmt: skip
    assert found["d_x"] == "agrees"


def test_hybridized_the_function_is_of_symbols() -> None:
    graph = irlang.loads(
        "nnir 1\nmodel m(x: f32[2, 3]) -> y: f32[2, 3] {\n  y = tanh(x)\n  loss = reduce_sum(y)\n}"
    ).graph
    made = lower(graph, "mxnet:hybrid", builtin(), {}, grad=True)
    assert isinstance(made.code, str)
    assert "class Block(mx.gluon.HybridBlock):" in made.code
    assert "results = hybrid(*values)" in made.code
    assert "*_, loss = hybrid(*values.values())" in made.code
    assert "Block" not in str(lower(graph, "mxnet", builtin(), {}).code)


def test_a_graph_of_symbols_gives_the_same() -> None:
    usable(_HYBRID)
    model = irlang.loads(
        "nnir 1\nmodel m(x: f32[2, 3], w: f32[3, 2]) -> y: f32[2, 2] {\n"
        "  h = matmul(x, w)\n  y = add(tanh(h), tanh(h))\n  loss = reduce_sum(y)\n}"
    )
    values = drawn(model.graph, 3)
    with Session([_HYBRID]) as session:
        (one,) = session.compare([Case(model.graph, values, {}, model.catalog)], grad=True)
    assert {v.verdict for v in one.verdicts[_HYBRID]} == {"agrees"}


def test_gradients_are_added_to_what_is_there_in_one_manner() -> None:
    """By halves: who overwrites what is there gives half of it."""
    usable(_TARGET)
    cases = {}
    for call, shape in (("tanh", "[2, 3]"), ("trace", "[]"), ("reverse", "[2, 3]")):
        text = f"model m(x: f32[2, 3] in [-1, 1]) -> y: f32{shape} {{ y = {call}(x)\n"
        text += " loss = reduce_sum(multiply(y, y))\n}\n"
        (graph,) = check(parse(text), builtin()).graphs
        cases[call] = Case(graph, drawn(graph, 1), {}, builtin())
    given = [replace(one, manner=Manner(turn=n)) for one in cases.values() for n in (0, 1)]
    with Session([_TARGET]) as session:
        outcomes = session.compare(given, grad=True)
    told = [{v.verdict for v in one.verdicts[_TARGET] if v.stage == "backward"} for one in outcomes]
    right = {"agrees", "rounding"}
    usual, added = told[::2], told[1::2]
    assert all(found <= right for found in usual)
    assert added[0] <= right
    assert added[1:] == [{"wrong"}] * 2
