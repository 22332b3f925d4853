"""Layers of Keras, in both of its versions, that calls are handed to."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irlang.arithmetic import STANDARD
from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.handed import Programs, is_telling
from irlang.diff.outcome import Outcome, judged
from irlang.diff.report_lines import straight
from irlang.gen.spoil import breakable, spoils
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.lower.direct import is_direct
from irlang.lower.lower import lower
from irlang.lower.manner import Manner
from irlang.lower.pool import Program, Result, Worker
from irlang.lower.target import describe
from irlang.parser import parse
from tests.lower_calls import case
from tests.targets import usable
from tests.test_lower_handed import assert_handed
from tests.test_lower_text import ran

_BOTH = ("keras:tensorflow", "tf-2.12:keras")
_BACKENDS = ("keras:tensorflow", "keras:torch")
_LSTM = "x: f32[2, 2, 3], w: f32[4, 2, 3], r: f32[4, 2, 2]"
_IMAGES = "x: f32[2, 2, 3, 4, 5], w: f32[4, 3, 3, 2, 2], r: f32[4, 3, 3, 2, 2]"
_HEAD = "q: f32[2, 1, 3, 4], k: f32[2, 1, 5, 4], v: f32[2, 1, 5, 3]"
_AROUND = "conv_lstm(x, w, r; mask = m, stride = [1, 2], reverse = true, batch_first = true)"
_SIGMOID = "recurrent_activation = hard_sigmoid, recurrent_alpha = 0.2"
_ALIKE = "q: f32[2, 3, 4], k: f32[2, 5, 4], v: f32[2, 5, 4]"
_QUERIES = "q: f32[2, 3, 4], k: f32[2, 5, 4], v: f32[2, 5, 3]"

# Inputs, a call, the targets, and the layer; none where it has other numbers than Keras.
_CALLS = (
    (f"{_IMAGES}, b: f32[4, 3]", "conv_lstm(x, w, r, b; pad = same)", _BOTH, "ConvLSTM2D("),
    (f"{_IMAGES}, h: f32[2, 3, 3, 4]", "conv_lstm(x, w, r; h0 = h)", _BOTH, "initial_state="),
    (f"{_IMAGES}, m: bool[2, 2]", _AROUND, _BOTH, "go_backwards=True"),
    (_IMAGES, "conv_lstm(x, w, r; pad = given, before = 1)", _BOTH, ""),
    (_HEAD, "attention(q, k, v)", _BOTH, "layers.Attention(use_scale=True)"),
    (_HEAD, "attention(q, k, v; scale = 1)", _BOTH, "layers.Attention()"),
    (f"{_HEAD}, m: bool[2, 1, 1, 5]", "attention(q, k, v; mask = m)", _BOTH, "mask=["),
    (_HEAD, "attention(q, k, v; causal = true)", _BOTH[:1], "use_causal_mask=True"),
    (_HEAD, "attention(q, k, v; softcap = 2)", _BOTH, ""),
    (f"{_QUERIES}, s: f32[4]", "additive_attention(q, k, v, s)", _BOTH[:1], "AdditiveAttention()"),
    (f"{_QUERIES}, s: f32[4]", "additive_attention(q, k, v, s)", _BOTH[1:], ""),
    (f"{_ALIKE}, s: f32[4]", "additive_attention(q, k, v, s)", _BOTH, "AdditiveAttention()"),
    (_QUERIES, "additive_attention(q, k, v)", _BOTH, "AdditiveAttention(use_scale=False)"),
    (f"{_QUERIES}, m: bool[3, 5]", "additive_attention(q, k, v; mask = m)", _BOTH, ""),
    ("x: f32[1, 2, 4, 4], w: f32[4, 3, 2, 3, 3], b: f32[4, 3]", "locally_connected(x, w, b)",
     _BOTH[1:], "LocallyConnected2D("),
    ("x: f32[1, 2, 5], w: f32[3, 3, 2, 3]", "locally_connected(x, w; stride = 2, pad = same)",
     _BOTH[1:], "LocallyConnected1D("),
    (_LSTM, f"lstm(x, w, r; {_SIGMOID})", _BOTH[1:], "hard_sigmoid"),
    (_LSTM, f"lstm(x, w, r; {_SIGMOID}, recurrent_beta = 0.3)", _BOTH[1:], ""),
    (_LSTM, "lstm(x, w, r; alpha = 2, recurrent_beta = 0.3)", _BOTH, "LSTM("),  # not read
    (_LSTM, "lstm(x, w, r; activation = elu, alpha = 2)", _BOTH, ""),
    (_LSTM, "lstm(x, w, r; activation = relu, hidden_activation = relu)", _BOTH, "LSTM("),
    (_LSTM, "lstm(x, w, r; activation = relu, hidden_activation = tanh)", _BOTH, ""),
    (_LSTM, "lstm(x, w, r; activation = silu)", _BOTH[1:], 'activation="swish"'),
    ("x: f32[3, 4, 5]", "slice(x; axes = [-1, 0], begin = [1, 0], end = [3, -1])", _BOTH[:1],
     "ops.slice(x, (0, 0, 1), (2, 4, 2))"),
    ("x: f32[3, 4]", "slice(x; axes = 1, begin = 3, end = 0, step = -1)", _BOTH[:1], ""),
    ("a: i32[2, 3] in [-5, 5], b: i32[3] in [0, 4]", "bit_shift(a, b; direction = right)",
     _BOTH[:1], "ops.right_shift(a, b)"),
    ("x: f32[1]", "arange(; start = 9, stop = 2, step = -3)", _BOTH[:1], "ops.arange(9, 2, -3"),
    ("x: f32[20, 5]", "gaussian_noise(x; stddev = 0.5, training = true)", ("keras-theano",),
     "GaussianNoise(stddev=0.5)"),
    ("x: f32[20, 5]", "alpha_dropout(x; rate = 0.5, training = true)", ("keras-theano",),
     "AlphaDropout(rate=0.5)"),
    ("x: f32[1, 2, 3], w: f32[4, 2, 3], r: f32[4, 2, 2]", "lstm(x, w, r)", ("keras-theano",),
     "LSTM("),
    (_LSTM, "lstm(x, w, r)", ("keras-theano",), "unroll=True"),
    ("x: f16[1, 2, 3], m: f16[2], v: f16[2] in [0.5, 2]", "batch_norm(x; mean = m, var = v)",
     _BOTH[1:], "BatchNormalization("),  # whose weights are f32 all the same
    ("x: f32[4]", "softmax(x)", ("keras-theano",), ""),
    ("x: f32[2, 4]", "softmax(x)", ("keras-theano",), "Softmax("),
    ("x: f32[2, 4, 3]", "flatten(x)", ("keras-theano",), "Flatten("),
    # of so little the bound is divided by, of the norm or of its square
    ("x: f32[2, 3] in [1e-9, 1e-8]", "l2_normalize(x)", _BOTH[:1], "epsilon=1e-06)"),
    ("x: f32[2, 3] in [1e-9, 1e-8]", "l2_normalize(x; axes = [1, 0])", _BOTH[:1], "ops.normalize("),
    ("x: f32[2, 3] in [1e-9, 1e-8]", "l2_normalize(x)", _BOTH[1:], "UnitNormalization("),
    ("x: f32[2, 3] in [1e-14, 1e-13]", "normalize(x)", _BOTH[:1], "UnitNormalization("),
    ("x: f32[2, 3] in [1e-9, 1e-8]", "normalize(x; eps = 1e-3)", _BOTH[:1], "ops.normalize("),
    ("x: f32[2, 4, 3]", "reduce_logsumexp(x; axes = [0, 2])", ("keras-theano",), "K.logsumexp("),
    ("x: i64[2, 4] in [-9, 9]", "reduce_max(x; axes = 1)", ("keras-theano",), "K.max("),
    ("x: f32[2, 4]", "reduce_std(x; axes = 1, correction = 1)", ("keras-theano",), ""),
    ("x: f32[2, 4]", "argmin(x; axis = -1)", ("keras-theano",), "K.argmin(x, axis=-1)"),
    ("x: f32[2, 4]", "argmin(x; keepdims = true)", ("keras-theano",), ""),
    ("a: f32[2, 1] in [0.5, 2], b: f32[3]", "power(a, b)", ("keras-theano",), "K.pow("),
    ("x: f32[2, 1]", "reverse(x; axes = [1, 0])", ("keras-theano",), "K.reverse("),
    ("x: f32[2, 1]", "repeat(x; repeats = 3, axis = 1)", ("keras-theano",), "K.repeat_elements("),
    ("x: f32[3, 4]", "cumsum(x; axis = 1, exclusive = true)", ("keras-theano",), ""),
    ("x: f32[3, 4]", "clip(x; min = 1, max = 0)", ("keras-theano",), ""),
    ("x: f32[3, 4], l: i64[3] in [0, 3]", "cross_entropy(x, l)", ("keras-theano",), "shaped(x"),
    ("i: i64[2, 3] in [0, 3]", "one_hot(i; depth = 4)", ("keras-theano",), "K.one_hot(i, 4)"),
    ("i: i64[2, 3] in [0, 3]", "one_hot(i; depth = 4, axis = 0)", ("keras-theano",), ""),
    ("x: f32[4, 3], i: i64[2] in [0, 3]", "gather(x, i)", ("keras-theano",), "K.gather(x, i)"),
    ("x: f32[4, 3], i: i64[2] in [0, 2]", "gather(x, i; axis = 1)", ("keras-theano",), ""),
    ("x: f32[2, 3]", "l2_normalize(x; eps = 1e-7)", ("keras-theano",), "K.l2_normalize(x, axis="),
    ("x: f32[2, 3]", "l2_normalize(x)", ("keras-theano",), ""),
    ("x: f32[2, 1, 3]", "squeeze(x; axes = -2)", ("keras-theano",), "K.squeeze(x, -2)"),
    ("x: f32[2, 3]", "expand_dims(x; axes = [-1])", ("keras-theano",), "K.expand_dims(x, -1)"),
    ("x: f32[2, 3]", "stack(x, x; axis = 1)", ("keras-theano",), "K.stack([x, x], axis=1)"),
    ("c: bool[2], a: f32[2], b: f32[2]", "where(c, a, b)", ("keras-theano",), "K.switch(c, a, b)"),
    ("c: bool[2], a: f32[2], b: f32[1]", "where(c, a, b)", ("keras-theano",), ""),
    ("x: f32[2, 3]", "tanh(x)", ("keras-theano",), "K.tanh(x)"),
    ("x: f32[5, 3, 2]", "dft(x; axis = 0)", _BOTH[:1], "ops.fft("),
    ("x: f32[2, 6, 1]", "dft(x; axis = 1, onesided = true)", _BOTH[:1], "ops.rfft("),
    ("x: f32[2, 5, 2]", "dft(x; axis = 1, inverse = true)", _BOTH[:1], ""),  # of two axes alone
    ("x: f32[2, 12, 1], w: f32[4]", "stft(x, w; length = 4, step = 3)", _BOTH[:1], "ops.stft("),
    ("x: i64[3, 4] in [-1, 1]", "nonzero(x; size = 7)", ("keras:torch",), "ops.nonzero("),
    ("x: i64[6] in [-2, 2]", "unique(x; size = 6)", ("keras:torch",), "ops.unique("),
    ("x: f32[3, 6]", "corrcoef(x)", ("keras:tensorflow", "keras:torch"), "ops.corrcoef("),
    ("x: f32[1, 6]", "corrcoef(x)", ("keras:tensorflow", "keras:torch"), "ops.corrcoef("),
    ("x: f32[2, 3]", "bessel_i(x)", _BOTH[:1], "ops.i0("),
    ("x: f32[3], i: i64[3] in [0, 1]", "segment_reduce(x, i; segments = 2)", _BACKENDS,
     "ops.segment_sum(x, i, num_segments=2)"),  # in 32 bits -2**63 would be segment 0
    ("x: f32[2, 3], i: i64[2] in [0, 2]", "in_top_k(x, i)", _BACKENDS, "ops.in_top_k(i, x"),
    ("i: i64[3] in [0, 1]", "bincount(i; size = 2)", _BACKENDS, "ops.bincount(i, minlength=2)"),
    ("x: f32[1]", "cosine_window(; size = 6, periodic = false)", _BOTH[:1], "ops.hanning(6)"),
    ("x: f32[5, 2, 4], l: i64[2, 3] in [1, 3], n: i64[2] in [4, 5], m: i64[2] in [1, 2]",
     "ctc_logits(x, l, n, m)", ("keras:tensorflow", "keras:torch"), "ops.ctc_loss("),
    ("x: f32[2, 3]", "sort(x)", _BOTH[:1], "ops.sort("),
    ("x: f32[2, 3]", "sort(x)", ("keras:torch",), ""),  # which promises no order of equal ones
    ("x: f32[2, 3]", "sort(x; stable = false)", ("keras:torch",), "ops.sort("),
    ("x: f32[2, 3, 7, 6]", "pad(x; before = [0, 0, 1, 0], after = [0, 0, 0, 2])", _BACKENDS,
     'ZeroPadding2D(padding=((1, 0), (0, 2)), data_format="channels_first")'),
    ("x: f32[1, 3, 7, 6, 5]", "crop(x; before = [0, 0, 1, 0, 2])", _BACKENDS,
     'Cropping3D(cropping=((1, 0), (0, 0), (2, 0)), data_format="channels_first")'),
    ("x: f32[2, 3, 7, 6]", "crop(x; before = [0, 0, 1, 0])", _BOTH[:1],
     "Cropping2D(cropping=((0, 0), (1, 0)))"),  # nothing is cut from the last axis
    ("x: f32[2, 3, 4], g: f32[2, 4]", "layer_norm(x, g; axes = [0, -1])", _BOTH[:1],
     "axis=[0, 2]"),  # of -1 and 0 Keras makes weights of shape (4, 2)
    ("x: f32[2, 3, 4], g: f32[3, 4]", "layer_norm(x, g; axes = [-2, -1])", _BOTH[:1],
     "axis=[-2, -1]"),
)  # fmt: skip

# Layers with a layout, by the axes of space.
_IMAGES_OF = {
    1: "x: f32[{}, 4, 7], w: f32[3, 4, 2], d: f32[4, 2, 2], p: f32[3, 8]",
    2: "x: f32[{}, 4, 7, 6], w: f32[3, 4, 2, 3], d: f32[4, 2, 2, 3], p: f32[3, 8]",
    3: "x: f32[{}, 4, 5, 6, 7], w: f32[3, 4, 2, 3, 2], d: f32[4, 2, 2, 3, 2], p: f32[3, 8]",
}
_LAYOUTS = (
    ("conv(x, w; stride = 2, pad = same)", 3), ("conv_transpose(x, d; stride = 2)", 3),
    ("depthwise_conv(x, d; pad = same)", 2), ("separable_conv(x, d, p; dilation = 2)", 2),
    ("max_pool(x; window = 2, stride = 3, pad = same)", 3), ("avg_pool(x; window = 3)", 3),
    ("global_max_pool(x; keepdims = true)", 3), ("global_avg_pool(x)", 3),
    ("adaptive_avg_pool(x; size = 3)", 3), ("upsample(x; scale = 3)", 3),
)  # fmt: skip


@pytest.mark.parametrize(("inputs", "call", "targets", "said"), _CALLS)
def test_calls_are_handed_to_layers_which_give_what_is_defined(
    inputs: str, call: str, targets: tuple[str, ...], said: str
) -> None:
    for target in targets:
        assert_handed(target, inputs, call, said)


@pytest.mark.parametrize("target", _BACKENDS)
@pytest.mark.parametrize(("call", "most"), _LAYOUTS)
def test_an_even_number_of_samples_has_its_channels_first(
    call: str, most: int, target: str
) -> None:
    usable(target)
    for rank in range(1, most + 1):
        for samples in (1, 2):
            made = case(_IMAGES_OF[rank].format(samples), call)
            lowered = lower(made.graph, target, made.catalog, made.params)
            assert lowered.native
            first = samples == 2 and not (rank == 1 and call.startswith("upsample"))
            assert ("channels_first" in str(lowered.code)) == first, lowered.code
            program = Program(lowered.kind, lowered.code, made.inputs, lowered.params)
            assert made.faults(ran(program, target).outputs) == [], (rank, samples)


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ("x: f32[2, 3, 4, 1]", "max_pool(x; window = [2, 1])"),
        ("x: f32[2, 3, 4], w: f32[2, 3, 2], b: f32[2]", "conv(x, w, b)"),
        ("x: f32[2, 3, 4, 4], w: f32[3, 2, 2, 2]", "conv_transpose(x, w)"),
        ("x: f32[2, 3, 4]", "upsample(x; scale = 2)"),
    ],
)
def test_layers_on_theano_are_handed_their_arguments(inputs: str, call: str) -> None:
    """Axes in another order, and kernels turned round, are the layout that Keras has there."""
    usable("keras-theano")
    made = case(inputs, call)
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    assert is_direct(lowered, shaped=True)


@pytest.mark.parametrize(
    ("inputs", "call", "compiled"),
    [
        ("x: f32[1, 2, 4]", "sigmoid(avg_pool(x; window = 2, pad = same))", {"Pool"}),
        ("x: f32[1, 2, 4], w: f32[3, 2, 2]", "exp(conv(x, w; stride = 2, pad = same))", {"CorrMM"}),
    ],
)
def test_theano_compiles_what_python_cannot_compute_and_no_more(
    inputs: str, call: str, compiled: set[str], tmp_path: Path
) -> None:
    """Compiling takes seconds an operator."""
    usable("keras-theano")
    made = case(inputs, call)
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    program = Program(lowered.kind, lowered.code, made.inputs, lowered.params)
    target = describe("keras-theano").worker
    flags = f"{target.environment['THEANO_FLAGS']},base_compiledir={tmp_path}"
    with Worker(replace(target, environment={**target.environment, "THEANO_FLAGS": flags})) as one:
        (result,) = one.submit([program])
    assert result.status == "ok", result.error
    sources = [path.read_text() for path in tmp_path.rglob("mod.cpp")]
    assert {kind for text in sources for kind in re.findall(r"// Op class (\w+)", text)} == compiled


@pytest.mark.parametrize(("long", "got"), [(0, 1.0), (6, np.nan)])
def test_theano_optimises_as_for_its_users_unless_that_takes_minutes(long: int, got: float) -> None:
    """One of its passes makes 1 of x / x, whatever x is."""
    usable("keras-theano")
    terms = ["divide(x, x)", "x", *[f"{'sin(' * 90}x{')' * 90}"] * long]
    made = case("x: f32[1]", f"add_n({', '.join(terms)})")
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    program = Program(lowered.kind, lowered.code, {"x": np.zeros(1, np.float32)}, lowered.params)
    np.testing.assert_array_equal(ran(program, "keras-theano").outputs["y"], np.float32(got))


def test_theano_folds_constants() -> None:
    """As it did not, no zero was found in a product whose other factor overflows."""
    usable("keras-theano")
    text = "nnir 1\nmodel m(x: f32[1]) -> y: f32[1] {\n  y = elu(x)\n  loss = reduce_sum(y)\n}\n"
    checked = check(parse(text, "m"), builtin())
    lowered = lower(checked.graphs[0], "keras-theano", checked.catalog, {}, grad=True)
    number = {"x": np.full(1, 5000, np.float32)}
    result = ran(Program(lowered.kind, lowered.code, number, {}, grad=True), "keras-theano")
    assert result.gradients["x"] == 1


def test_what_theano_fuses_is_not_computed_number_by_number() -> None:
    """Python says of 2.0 ** 1e38 that it does not fit, where NumPy and C give infinity."""
    usable("keras-theano")
    made = case("x: f32[1]", "power(2.0, power(x, 2.0))")
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    program = Program(lowered.kind, lowered.code, {"x": np.full(1, 1e19, np.float32)}, {})
    assert ran(program, "keras-theano").outputs["y"] == np.inf


@pytest.mark.parametrize(
    "call",
    [
        "categorical_cross_entropy_probs(x, t)",
        "categorical_hinge(x, t)",
        "kl_divergence(x, t; reduction = sum)",
    ],
)
def test_losses_of_classes_on_theano_know_their_shapes(call: str) -> None:
    usable("keras-theano")
    made = case("x: f32[3, 4] in [0.1, 1], t: f32[3, 4] in [0.1, 1]", call)
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    assert lowered.native
    result = ran(Program(lowered.kind, lowered.code, made.inputs, lowered.params), "keras-theano")
    assert not made.faults(result.outputs)


def test_a_script_of_theano_is_its_program() -> None:
    """It has no form of straight lines, and more settings than the names of its tensors."""
    usable("keras-theano")
    made = case("x: f32[1, 2, 4]", "avg_pool(x; window = 2)")
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    assert straight(str(lowered.code), {"x": "x"}) is None


def test_a_matrix_is_flat_already_on_theano() -> None:
    """Its layer says that it takes three axes and more."""
    usable("keras-theano")
    made = case("x: f32[2, 4]", "flatten(x)")
    lowered = lower(made.graph, "keras-theano", made.catalog, made.params)
    assert "Flatten(" not in str(lowered.code)


def test_what_is_cut_out_is_no_layout() -> None:
    made = case("x: f32[4, 4]", "relu(x)")
    lowered = lower(made.graph, "keras:tensorflow", made.catalog, made.params)
    code = str(lowered.code)
    assert is_direct(lowered, shaped=True)
    for cut in ("[1:]", "[:2]", "[::2]", "[::-2]"):
        part = replace(lowered, code=code.replace("relu(x)", f"relu(x{cut})"))
        assert not is_direct(part, shaped=True)


@pytest.mark.parametrize(
    ("target", "operator", "requirement"),
    [
        ("keras:tensorflow", "conv_transpose", "dilation"),  # beyond 1 it has no kernel everywhere
        ("onnxruntime", "resize", "scale"),  # of one below 0 follows no size
    ],
)
def test_what_is_below_its_least_is_handed_over(
    target: str, operator: str, requirement: str
) -> None:
    """What is invalid is told, though it has no kernel where it is valid, or no result."""
    programs = Programs(builtin())
    ((_, wanted),) = [
        one for one in breakable(builtin(), [operator])
        if one[1] is not None and one[1].name == requirement
    ]  # fmt: skip
    found = [
        one
        for seed in range(4)
        for one in spoils(
            builtin(), seed, [operator], (operator, wanted),
            lambda graph: programs.has(target, graph),
            lambda one: is_telling(programs, target, one),
        )
    ]  # fmt: skip
    assert any(one.fault.code == f"{operator}.{requirement}" for one in found)


def test_layers_are_not_asked_to_cut_from_nothing() -> None:
    """Keras refuses a cropping by 0 of an axis of 0, of which it says nothing."""
    made = case("x: f32[7, 0]", "crop(x; before = [1, 0])")
    lowered = lower(made.graph, "tf", made.catalog, made.params)
    assert isinstance(lowered.code, str)
    assert "tf.slice(x, [1, 0], [6, 0])" in lowered.code
    program = Program(lowered.kind, lowered.code, made.inputs, lowered.params)
    assert made.faults(ran(program, "tf").outputs) == []


def test_keras_2_bounds_lengths_as_its_own_tensorflow() -> None:
    """tf.nn.l2_normalize has 1e-12, where Keras 3 has the square of 1e-7."""
    for target, eps, own in (
        ("tf:keras", "1e-12", True), ("tf:keras", "1e-14", False),
        ("keras:tensorflow", "1e-14", True), ("keras:tensorflow", "1e-12", False),
    ):  # fmt: skip
        text = (
            "nnir 1\nmodel m(x: f32[2, 3], t: f32[2, 3]) -> y: f32[] "
            f"{{ y = cosine_similarity(x, t; eps = {eps}) }}"
        )
        graph = check(parse(text, "m"), builtin()).graphs[0]
        made = lower(graph, target, builtin(), {})
        assert ("CosineSimilarity" in str(made.code)) == own, (target, eps)


def test_strides_beside_dilation_are_handed_to_layers_that_are_documented_to_have_one_of_them() -> (
    None
):
    """Refused or not, nothing is held against them: refusing is right, and taking it is said."""
    text = (
        "nnir 1\nmodel m(x: f32[1, 1, 6, 6], w: f32[1, 1, 2, 2]) -> y: f32[1, 1, 2, 2] "
        "{{ y = {}(x, w; stride = 2, dilation = {}) }}"
    )
    for op, layer in (("depthwise_conv", "DepthwiseConv2D("), ("conv", "")):
        graph = check(parse(text.format(op, 2), "m"), builtin()).graphs[0]
        made = str(lower(graph, "keras:torch", builtin(), {}).code)
        assert ("strides=(2, 2), dilation_rate=(2, 2)" in made) == bool(layer)
        assert layer in made
    graph = check(parse(text.format("depthwise_conv", 2), "m"), builtin()).graphs[0]
    fed = {n: np.ones(graph.values[n].shape, np.float32) for n in graph.inputs}
    whole = Case(graph, fed, {}, builtin())
    said = Result("refused", {}, {}, "strides > 1 with dilation_rate > 1", {"stage": "run"}, 0.0)
    for target, verdict in (("keras:torch", "unsupported"), ("torch", "refused")):
        outcome = Outcome(balls(graph, fed, builtin(), precision(graph)), results={target: said})
        (told,) = judged(graph, target, whole, outcome, STANDARD, says_no="", thorough=False)
        assert told.verdict == verdict


@pytest.mark.parametrize("target", _BOTH)
def test_a_weight_of_another_shape_is_refused_as_by_the_layers_own_method(target: str) -> None:
    """What is put past it into a layer is nothing that its users can do."""
    described = usable(target)
    text = (
        "nnir 1\nmodel m(x: f32[1, 2], b: f32[2]) -> y: f32[1, 2] { y = layer_norm(x; beta = b) }"
    )
    graph = check(parse(text, "m"), builtin()).graphs[0]
    made = lower(graph, target, builtin(), {})
    fed = {"x": np.ones((1, 2), np.float32), "b": np.ones(2, np.float32)}
    with Worker(described.worker) as worker:
        for shape, status in (((2,), "ok"), ((1,), "refused"), ((1, 2), "refused")):
            fed["b"] = np.ones(shape, np.float32)
            (result,) = worker.submit([Program(made.kind, made.code, fed, made.params)])
            assert result.status == status, (shape, result.error)


@pytest.mark.parametrize("target", ["keras:torch", "tf"])
def test_a_noise_shape_says_nothing_of_axes_that_there_are_not(target: str) -> None:
    catalog = builtin()
    programs = Programs(catalog)
    plan = [one for one in breakable(catalog, ["dropout"]) if getattr(one[1], "name", "") == "axes"]
    told = functools.partial(is_telling, programs, target)
    has = functools.partial(programs.has, target)
    for seed in range(8):
        made = spoils(catalog, seed, ["dropout"], plan[0], has, told)
        assert "dropout.axes" not in {one.fault.code for one in made}


def is_told(target: str, model: str, words: str) -> None:
    """A target's own program of a model has these words; without any there is none."""
    (graph,) = check(parse(f"nnir 1\nmodel {model}"), builtin()).graphs
    lowered = lower(graph, target, builtin(), {})
    assert isinstance(lowered.code, str)
    assert bool(lowered.native) is bool(words)
    assert words in lowered.code


@pytest.mark.parametrize(
    ("call", "shape", "out", "words"),
    [
        ("before = 2, after = 1", "f32[1, 3, 1]", "f32[4, 6, 4]", "ZeroPadding3D"),
        ("before = 2, after = 1, value = 1.5", "f32[3]", "f32[6]", "constant_values=1.5"),
        ("before = [1, 2], mode = reflect", "f32[2, 3]", "f32[3, 5]", 'mode="reflect"'),
        ("after = 1, mode = symmetric", "i32[3]", "i32[4]", 'mode="symmetric"'),
        ("before = -1, value = 1", "f32[3]", "f32[2]", ""),  # ops.pad takes nothing away
        ("before = 1, mode = edge", "f32[3]", "f32[4]", ""),
    ],
)
def test_what_no_layer_pads_an_operation_does(call: str, shape: str, out: str, words: str) -> None:
    is_told("keras:tensorflow", f"m(x: {shape}) -> y: {out} {{ y = pad(x; {call}) }}", words)


@pytest.mark.parametrize(
    ("inputs", "call", "layer"),
    [
        ("x: f32[0, 3], w: f32[3, 2]", "dense(x, w)", "layers.Dense("),
        ("x: f32[0, 2, 5]", "global_max_pool(x)", "layers.GlobalMaxPooling1D("),
        ("x: f32[2, 0], w: f32[0, 2]", "dense(x, w)", ""),
        ("x: f32[0, 2, 3], w: f32[3, 3], r: f32[3, 3]", "simple_rnn(x, w, r)", ""),
    ],
)
def test_layers_are_given_batches_of_no_samples_and_nothing_else_without_elements(
    inputs: str, call: str, layer: str
) -> None:
    """No features, or no steps, are not what layers are made for."""
    one = case(inputs, call)
    lowered = lower(one.graph, "keras:torch", one.catalog, one.params)
    assert not lowered.unsupported
    assert re.findall(r"layers\.\w+\(", str(lowered.code)) == ([layer] if layer else [])


@pytest.mark.parametrize(
    ("words", "spelt"),
    [
        ("mode = cubic, cubic_coeff = -0.5, exclude_outside = true", ("torch", "jax")),
        ("mode = cubic", ()),
        ("mode = linear, antialias = true, exclude_outside = true", ("torch", "jax", "tensorflow")),
        ("rounding = round_prefer_ceil", ("torch", "jax", "tensorflow")),
        ("rounding = floor", ()),
    ],
)
def test_images_are_resized_as_a_backend_documents(words: str, spelt: tuple[str, ...]) -> None:
    """TensorFlow has the weights of cubic ones from a table."""
    graph = case("x: f32[1, 2, 4, 4]", f"resize(x; size = [7, 7], {words})").graph
    for backend in ("torch", "jax", "tensorflow"):
        code = str(lower(graph, f"keras:{backend}", builtin(), {}).code)
        assert ("ops.image.resize" in code) == (backend in spelt), backend


@pytest.mark.parametrize(
    ("inputs", "call", "out", "words"),
    [
        ("x: f32[3]", "expand_dims(x; axes = [0, -1])", "f32[1, 3, 1]", "expand_dims(x, (0, -1))"),
        (
            "x: f32[1, 1, 3], w: f32[1, 1, 2]",
            "conv_transpose(x, w; stride = 3, output_padding = 2)", "f32[1, 1, 10]",
            "output_padding=2",
        ),
        (
            "x: f32[2, 3], t: i64[2]", "cross_entropy(x, t; ignore_index = -1, reduction = sum)",
            "f32[]", "ignore_class=-1",
        ),
        (
            "x: f32[1, 1, 3], w: f32[1, 1, 2]",  # documented to be less than the stride
            "conv_transpose(x, w; dilation = 2, output_padding = 1)", "f32[1, 1, 6]", "",
        ),
    ],
)  # fmt: skip
def test_what_a_function_has_an_argument_for_it_is_told(
    inputs: str, call: str, out: str, words: str
) -> None:
    is_told("keras:torch", f"m({inputs}) -> y: {out} {{ y = {call} }}", words)


@pytest.mark.parametrize(
    ("inputs", "call", "out", "words"),
    [
        ("x: f32[1, 2, 3, 3]", "im2col(x; window = 2)", "f32[1, 8, 4]", "image.extract_patches("),
        (
            "x: f32[1, 1, 3], w: f32[1, 1, 2]", "conv_transpose(x, w; stride = 2)",
            "f32[1, 1, 6]", "ops.conv_transpose(",
        ),
    ],
)  # fmt: skip
def test_functions_have_their_turn_beside_layers(
    inputs: str, call: str, out: str, words: str
) -> None:
    text = f"nnir 1\nmodel m({inputs}) -> y: {out} {{ y = {call} }}"
    (graph,) = check(parse(text), builtin()).graphs
    usual, other = (
        lower(graph, "keras:tensorflow", builtin(), {}, manner=Manner(turn=turn)).code
        for turn in (0, 2)
    )
    assert isinstance(usual, str)
    assert isinstance(other, str)
    assert words not in usual
    assert words in other


@pytest.mark.parametrize("turn", range(8))
def test_what_is_flattened_has_no_shape_that_is_told(turn: int) -> None:
    made = case("x: f32[2, 3, 4]", "flatten(x)")
    lowered = lower(made.graph, "keras:tensorflow", made.catalog, {}, manner=Manner(turn=turn))
    assert "Flatten()" in str(lowered.code) or "(2, 12)" in str(lowered.code)


@pytest.mark.parametrize(("columns", "is_layer"), [(1, False), (2, True)])
def test_a_layer_reshapes_samples_also_where_there_are_none(columns: int, is_layer: bool) -> None:
    made = case(f"x: f32[0, {columns}, 1]", "reshape(x; shape = [0, 2])")
    lowered = lower(made.graph, "keras:tensorflow", made.catalog, {})
    assert ("keras.layers.Reshape(" in str(lowered.code)) == is_layer
