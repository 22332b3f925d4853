"""Functions of frameworks that calls are handed to, and what these give."""

from __future__ import annotations

import onnx
import pytest

from irlang.lower.lower import lower
from irlang.lower.manner import Manner
from irlang.lower.pool import Program
from tests.lower_calls import case
from tests.targets import usable
from tests.test_lower_text import ran

_LSTM = "x: f32[2, 3], w: f32[4, 5, 3], r: f32[4, 5, 5]"
_GRU = "x: f32[2, 3], w: f32[3, 5, 3], r: f32[3, 5, 5]"
_RNN = "x: f32[2, 3], w: f32[5, 3], r: f32[5, 5], b: f32[5], h: f32[2, 5]"
_HALF = "periodic = false"
_BLACKMAN = "terms = [0.42, 0.5, 0.08]"

# A target, inputs, a call, and what is read in the program; nothing where it is composed.
_CALLS = (
    ("torch", _LSTM, "lstm_cell(x, w, r)", "torch.lstm_cell(x, ("),
    ("torch", f"{_LSTM}, b: f32[4, 5], h: f32[2, 5], c: f32[2, 5]",
     "lstm_cell(x, w, r, b, h, c)", "torch.lstm_cell(x, (h, c)"),
    ("torch", _LSTM, "lstm_cell(x, w, r; activation = relu)", ""),
    ("torch", f"{_GRU}, b: f32[3, 5], rb: f32[3, 5], h: f32[2, 5]",
     "gru_cell(x, w, r, b, rb, h)", "torch.gru_cell(x, h"),
    ("torch", _GRU, "gru_cell(x, w, r; reset_after = false)", ""),
    ("torch", _RNN, "simple_rnn_cell(x, w, r, b, h)", "torch.rnn_tanh_cell(x, h, w, r, b"),
    ("torch", _RNN, "simple_rnn_cell(x, w, r, b, h; activation = relu)", "torch.rnn_relu_cell("),
    ("torch", _RNN, "simple_rnn_cell(x, w, r, b, h; activation = elu)", ""),
    ("torch", "x: f32[1, 1, 5]", "resize(x; scale = 1.5, mode = linear)", "scale_factor=(1.5,)"),
    ("torch", "x: f32[1, 1, 4]",
     "resize(x; scale = 1.5, mode = linear, coord = align_corners)", "scale_factor=(1.5,)"),
    ("torch", "x: f32[1, 1, 5]",
     "resize(x; scale = 1.5, mode = linear, coord = align_corners)", ""),
    ("torch", "x: f32[1, 1, 5]", "resize(x; size = 7, mode = linear)", "size=(7,)"),
    ("torch", "x: f32[1]", "cosine_window(; size = 7)", "torch.hann_window(7"),
    ("torch", "x: f32[1]", f"cosine_window(; size = 5, {_BLACKMAN}, to = f64)", "blackman_window"),
    ("torch", "x: f32[1]", "cosine_window(; size = 5, terms = [0.25, 0.75])", ""),
    ("tf", "x: f32[1]", "cosine_window(; size = 6)", "tf.signal.hann_window(6"),
    ("tf", "x: f32[1]", f"cosine_window(; size = 7, terms = [0.54, 0.46], {_HALF})",
     "tf.signal.hamming_window(7, periodic=False"),
    ("jax", "x: f32[1]", f"cosine_window(; size = 7, {_HALF}, to = f64)", "jnp.hanning(7)"),
    ("jax", "x: f32[1]", "cosine_window(; size = 7, to = f64)", ""),
    ("tf", "p: f32[4], x: f32[2, 3]", "polyval(p, x)", "tf.math.polyval("),
    ("tf", "p: f64[0], x: f64[2]", "polyval(p, x)", "tf.math.polyval("),
    # images that are computed in their own type, and those that are not
    ("tf", "x: f64[2, 3]", "rgb_to_hsv(x)", "tf.image.rgb_to_hsv("),
    ("tf", "x: f64[1, 2, 3, 1]", "sobel_edges(x)", "tf.image.sobel_edges("),
    ("tf", "x: f64[1, 2, 3, 1]", "total_variation(x)", "tf.image.total_variation("),
    ("tf", "x: f64[1, 2, 3, 3]", "rgb_to_grayscale(x)", ""),
    # of all axes, of which none is named
    ("torch", "x: f32[2, 3]", "reduce_sum(x)", "torch.sum(x)"),
    ("torch", "x: f32[2, 3]", "reduce_sum(x; axes = [0, 1])", "torch.sum(x, dim=(0, 1))"),
    ("torch", "x: f32[2, 3]", "reduce_max(x)", "torch.amax(x)"),
    ("torch", "x: f32[2, 3]", "reduce_max(x; keepdims = true)", "dim=(0, 1), keepdim=True"),
    ("torch", "x: f32[2, 3]", "reduce_prod(x)", "torch.prod(x)"),
    ("torch", "x: f32[2, 3]", "reduce_std(x)", "torch.std(x, correction=0)"),
    ("torch", "x: f32[2, 3]", "reduce_logsumexp(x)", "torch.logsumexp(x, dim=(0, 1))"),
    ("tf", "x: f32[2, 3]", "reduce_mean(x; keepdims = true)", "tf.reduce_mean(x, keepdims=True)"),
    ("tf", "x: f32[2, 3]", "reduce_mean(x; axes = [])", "axis=[]"),
    ("jax", "x: f32[2, 3]", "reduce_variance(x)", "jnp.var(x)"),
    ("jax", "x: f32[2, 3]", "reduce_nansum(x; keepdims = true)", "jnp.nansum(x, keepdims=True)"),
    ("keras:torch", "x: f32[2, 3]", "reduce_mean(x; keepdims = true)", "ops.mean(x, keepdims"),
    *((target, "x: f32[1, 3, 1]", "squeeze(x)", said) for target, said in (
        ("torch", "torch.squeeze(x)"), ("tf", "tf.squeeze(x)"), ("jax", "jnp.squeeze(x)"),
        ("keras:torch", "ops.squeeze(x)"),
    )),
    *((target, "x: f32[2, 3, 4]", "transpose(x)", said) for target, said in (
        ("torch", "torch.permute(x, (2, 1, 0))"), ("tf", "tf.transpose(x)"),
        ("jax", "jnp.transpose(x)"), ("keras:torch", "ops.transpose(x)"),
    )),
    ("tf", "x: f32[2, 3, 4]", "transpose(x; perm = [2, 1, 0])", "tf.transpose(x, [2, 1, 0])"),
    ("jax", "x: f32[2, 3]", "reverse(x)", "jnp.flip(x)"),
    ("keras:torch", "x: f32[2, 3]", "reverse(x)", "ops.flip(x)"),
    # what signs are between tensors of a layer
    ("keras:torch", "x: f32[2, 3], z: f32[3]", "add(x, z)", "ops.add(x, z)"),
    ("keras:tensorflow", "x: f32[2, 3], z: f32[3]", "subtract(x, z)", "ops.subtract(x, z)"),
    ("keras:tensorflow", "x: f16[2, 3]", "multiply(x, 3)", "ops.multiply(x, 3"),
    ("keras:torch", "x: f32[2, 3], z: f32[3] in [1, 2]", "divide(x, z)", "ops.divide(x, z)"),
    ("torch", "x: f32[2, 3]", "stop_gradient(x)", ".detach()"),
    ("tf", "x: i64[2] in [0, 3]", "stop_gradient(x)", "tf.stop_gradient("),
    ("jax", "x: f32[2, 3]", "stop_gradient(x)", "jax.lax.stop_gradient("),
    ("keras:torch", "x: f32[2, 3]", "stop_gradient(x)", "ops.stop_gradient("),
)  # fmt: skip


def assert_handed(target: str, inputs: str, call: str, said: str) -> None:
    """A call is handed to what is said, or to nothing of the kind, and gives what is defined."""
    usable(target)
    made = case(inputs, call)
    lowered = lower(made.graph, target, made.catalog, made.params)
    assert bool(lowered.native) == bool(said), lowered.code
    assert said in str(lowered.code)
    program = Program(lowered.kind, lowered.code, made.inputs, lowered.params)
    assert made.faults(ran(program, target).outputs) == []


@pytest.mark.parametrize(("target", "inputs", "call", "said"), _CALLS)
def test_calls_are_handed_to_functions_which_give_what_is_defined(
    target: str, inputs: str, call: str, said: str
) -> None:
    assert_handed(target, inputs, call, said)


@pytest.mark.parametrize("number", ["1e-30", "inf"])
def test_a_number_is_true_whatever_function_it_is_handed_to(number: str) -> None:
    """One that is not whole is not cut to 0 first."""
    made = case("x: f32[1]", f"full(; shape = 2, value = {number}, to = bool)")
    texts = set()
    for turn in range(0, 8, 2):
        manner = Manner(turn=turn)
        lowered = lower(made.graph, "jax", made.catalog, made.params, manner=manner)
        if lowered.code not in texts:
            texts.add(lowered.code)
            program = Program(lowered.kind, lowered.code, made.inputs, lowered.params)
            assert made.faults(ran(program, "jax").outputs) == []
    assert len(texts) > 0


def test_statistics_of_a_batch_are_those_of_onnx() -> None:
    """None of its operands is another's tensor, in whose place ONNX Runtime would write."""
    one = case("x: f32[5, 2]", "batch_norm_train(x)")
    lowered = lower(one.graph, "onnxruntime", one.catalog, one.params)
    assert isinstance(lowered.code, bytes)
    (node,) = onnx.load_from_string(lowered.code).graph.node
    assert node.op_type == "BatchNormalization"
    assert len(set(node.input)) == len(node.input) == 5
