"""Formulas that the field takes for the same operator are never called `wrong`.

Each is evaluated in float32 by NumPy, as a target of a user's might, and judged as targets are:
inside the radius, or `inaccurate`. One that overflows where the definition does not is `nonfinite`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from irlang.arithmetic import STANDARD, Arithmetic
from irlang.catalog import builtin
from irlang.diff.verdict import judge, softened
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import rounding
from irlang.interp.balls import Ball
from irlang.interp.plain import load

Array = Any
CATALOG = builtin()
F = np.float32
_ERF = np.frompyfunc(math.erf, 1, 1)
_ERFC = np.frompyfunc(math.erfc, 1, 1)
_ERFCX = np.frompyfunc(lambda t: float(mpmath.erfc(t) * mpmath.exp(t * t)), 1, 1)


def verdict(name: str, arrays: Mapping[str, Array], got: Array, attrs: Mapping[str, Any]) -> str:
    """The verdict on a first result in f32."""
    op = CATALOG.op(name)
    assert op is not None
    infos = {
        key: TensorInfo(array.shape, "i64" if array.dtype.kind == "i" else "f32")
        for key, array in arrays.items()
    }
    expansion = expand(instantiate(op, infos, attrs), CATALOG)
    first = expansion.outputs[0]
    feeds = {key: Ball(load(infos[key], array)) for key, array in arrays.items()}

    def ball(own: Arithmetic) -> Mapping[str, Ball]:
        return {"y": rounding.evaluate(expansion, feeds, "f32", own)[first]}

    info = expansion.tensors[first]
    found = [judge("y", "numpy", info, ball(STANDARD)["y"], np.asarray(got))]
    infos = {"y": info}
    return softened(found, infos, {"y": got}, lambda: ball(Arithmetic(halved=True)))[0].verdict


def _normal(moments: Callable[[Array], tuple[Array, Array]]) -> Callable[[Array], Array]:
    """To mean 0 and variance 1 along the last axis."""

    def value(x: Array) -> Array:
        mean, variance = moments(x)
        return (x - mean) / np.sqrt(variance + F(1e-5))

    return value


def _one_pass(x: Array) -> tuple[Array, Array]:
    mean = np.mean(x, -1, keepdims=True, dtype=F)
    return mean, np.mean(x * x, -1, keepdims=True, dtype=F) - mean * mean


def _welford(x: Array) -> tuple[Array, Array]:
    mean, square = np.zeros_like(x[..., :1]), np.zeros_like(x[..., :1])
    for number in range(x.shape[-1]):
        apart = x[..., number : number + 1] - mean
        mean = mean + apart / F(number + 1)
        square = square + apart * (x[..., number : number + 1] - mean)
    return mean, square / F(x.shape[-1])


def _folded(x: Array) -> Array:
    mean = np.mean(x, -1, keepdims=True, dtype=F)
    scale = F(1) / np.sqrt(np.mean(np.square(x - mean), -1, keepdims=True, dtype=F) + F(1e-5))
    return x * scale + (-mean * scale)


def _softmax(x: Array) -> Array:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def _scan(x: Array) -> Array:
    found = [x[..., 0]]
    for number in range(1, x.shape[-1]):
        a, b = found[-1], x[..., number]
        found.append(np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b))))
    return np.stack(found, -1)


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x: Array) -> Array:
    return F(1) / (F(1) + np.exp(-x))


def _mish(x: Array) -> Array:
    n = np.square(F(1) + np.exp(x))
    return x * (n - 1) / (n + 1)


@dataclass(frozen=True, slots=True)
class Formula:
    """Another formula for a definition.

    attrs: of the definition. within: the sizes that its numbers may have. overflows: whether it may
    where the definition does not.
    """

    name: str
    value: Callable[[Array], Array]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    within: float = 100.0
    overflows: bool = False


FORMULAS = {
    "layer_norm in one pass": Formula("layer_norm", _normal(_one_pass), within=1e6, overflows=True),
    "layer_norm, Welford": Formula("layer_norm", _normal(_welford), within=1e6),
    "layer_norm, folded": Formula("layer_norm", _folded, within=1e6),
    "instance_norm in one pass": Formula(
        "instance_norm", _normal(_one_pass), within=1e5, overflows=True
    ),
    "variance in one pass": Formula(
        "reduce_variance", lambda x: _one_pass(x)[1][..., 0], {"axes": -1}, 1e6
    ),
    "log_softmax of softmax": Formula(
        "log_softmax", lambda x: np.log(_softmax(x)), within=40, overflows=True
    ),
    "softmax unshifted": Formula(
        "softmax", lambda x: np.exp(x) / np.sum(np.exp(x), -1, keepdims=True), overflows=True
    ),
    "logsumexp unshifted": Formula(
        "reduce_logsumexp", lambda x: np.log(np.sum(np.exp(x), -1)), {"axes": -1}, 85.0,
        overflows=True,
    ),
    "logsumexp shifted": Formula(
        "reduce_logsumexp",
        lambda x: np.max(x, -1) + np.log(np.sum(np.exp(x - np.max(x, -1, keepdims=True)), -1)),
        {"axes": -1},
    ),
    "logcumsumexp by a scan": Formula("logcumsumexp", _scan),
    "softplus, log(1 + exp)": Formula(
        "softplus", lambda x: np.log(F(1) + np.exp(x)), overflows=True
    ),
    "softplus, log1p": Formula("softplus", lambda x: np.log1p(np.exp(x)), overflows=True),
    "softplus, stable": Formula("softplus", _softplus),
    "softplus, x where large": Formula(
        "softplus", lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))
    ),
    "log_sigmoid of sigmoid": Formula(
        "log_sigmoid", lambda x: np.log(_sigmoid(x)), within=85.0, overflows=True
    ),
    "gelu, erf": Formula(
        "gelu", lambda x: F(0.5) * x * (F(1) + _ERF(x * F(np.sqrt(0.5))).astype(F)), within=20
    ),
    "gelu, erfc": Formula(
        "gelu", lambda x: F(0.5) * x * _ERFC(-x * F(np.sqrt(0.5))).astype(F), within=20
    ),
    "gelu, x² in the cube": Formula(
        "gelu",
        lambda x: F(0.5) * x * (1 + np.tanh(F(np.sqrt(2 / np.pi)) * x * (1 + F(0.044715) * x * x))),
        {"approximate": "tanh"}, 20,
    ),
    "gelu, sigmoid for tanh": Formula(
        "gelu",
        lambda x: x * _sigmoid(F(2 * np.sqrt(2 / np.pi)) * (x + F(0.044715) * x * x * x)),
        {"approximate": "tanh"}, 20,
    ),
    "sigmoid of tanh": Formula("sigmoid", lambda x: F(0.5) * (F(1) + np.tanh(F(0.5) * x))),
    "sigmoid, exp(x) above": Formula(
        "sigmoid", lambda x: np.exp(x) / (F(1) + np.exp(x)), within=85
    ),
    "tanh of exp": Formula("tanh", lambda x: F(1) - F(2) / (np.exp(F(2) * x) + F(1))),
    "tanh of sigmoid": Formula("tanh", lambda x: F(2) * _sigmoid(F(2) * x) - F(1)),
    "expm1, exp - 1": Formula("expm1", lambda x: np.exp(x) - F(1), within=80),
    "log1p, log(1 + x)": Formula("log1p", lambda x: np.log(F(1) + np.abs(x)), within=1.0),
    "elu, exp - 1": Formula("elu", lambda x: np.where(x > 0, x, np.exp(x) - F(1))),
    "selu, exp - 1": Formula(
        "selu",
        lambda x: F(1.0507009873554805)
        * np.where(x > 0, x, F(1.6732632423543772) * (np.exp(x) - F(1))),
    ),
    "sinh of exp": Formula("sinh", lambda x: (np.exp(x) - np.exp(-x)) * F(0.5), within=80),
    "cosh of exp": Formula("cosh", lambda x: (np.exp(x) + np.exp(-x)) * F(0.5), within=80),
    "silu, x / (1 + exp(-x))": Formula("silu", lambda x: x / (F(1) + np.exp(-x)), within=85),
    "mish by squares": Formula("mish", _mish, within=20),
    "l2_normalize by rsqrt": Formula(
        "l2_normalize",
        lambda x: x * (F(1) / np.sqrt(np.maximum(np.sum(x * x, -1, keepdims=True), F(1e-12)))),
    ),
    "a mean by a reciprocal": Formula(
        "reduce_mean", lambda x: np.sum(x, -1) * (F(1) / F(x.shape[-1])), {"axes": -1}
    ),
}  # fmt: skip


def _numbers(seed: int, within: float, shape: tuple[int, ...]) -> Array:
    """Numbers of one size around another, up to a size: what cancels, and what does not."""
    random = np.random.default_rng(seed)
    center = random.choice((0.0, 1.0)) * random.uniform(-1, 1) * within
    spread = within * 10.0 ** -random.uniform(0, 5)
    x = center + spread * random.uniform(-1, 1, shape)
    return np.clip(x, -within, within).astype(F)


def _given(name: str, x: Array) -> tuple[dict[str, Array], Array]:
    """The inputs of a definition, and what its formula is given."""
    if name == "log1p":
        return {"x": np.abs(x)}, x
    return {"x": x}, x


@pytest.mark.parametrize("key", FORMULAS)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_another_formula_is_not_wrong(key: str, seed: int, size: int) -> None:
    row = FORMULAS[key]
    x = _numbers(seed, row.within, (2, 3, size))
    arrays, own = _given(row.name, x)
    with np.errstate(all="ignore"):
        got = np.asarray(row.value(own), F)
    found = verdict(row.name, arrays, got, row.attrs)
    allowed = {"agrees", "rounding", "inaccurate", "unstable"}
    assert found in (allowed | {"nonfinite"} if row.overflows else allowed)


@given(seed=st.integers(0, 2**32), size=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_a_distance_by_the_squares_of_rows_is_not_wrong_where_rows_are_equal(
    seed: int, size: int
) -> None:
    """As torch.cdist has it of many rows: what should be 0 is what cancels."""
    x = _numbers(seed, 1e3, (5, size))
    squares: Array = np.sum(x * x, -1, dtype=F)
    apart = squares[:, None] + squares[None, :] - F(2) * (x @ x.T)
    got = np.sqrt(np.maximum(apart, 0))
    assert verdict("cdist", {"a": x, "b": x}, got, {}) in ("agrees", "rounding", "inaccurate")


def test_squares_that_overflow_where_those_of_differences_do_not() -> None:
    """A variance in one pass is infinite there, so that the result is 0."""
    x = np.zeros((1, 1, 8), F)
    x[..., 2] = 1.9e19
    with np.errstate(all="ignore"):
        got = _normal(lambda x: (x.mean(-1, keepdims=True), np.mean(x * x, -1, keepdims=True)))(x)
    assert not got[..., 2].any()
    assert verdict("layer_norm", {"x": x}, got, {}) == "inaccurate"


# What a formula differs in by more than half of the digits stays wrong.
WRONG: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "the wrong axis": ("softmax", lambda x: np.exp(x) / np.sum(np.exp(x), 0, keepdims=True)),
    "gelu by tanh": ("gelu", lambda x: x * _sigmoid(F(1.702) * x)),
    "the divisor n - 1": (
        "layer_norm",
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1)),
    ),
    "no eps": ("layer_norm", lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)),
    "leaky": ("elu", lambda x: np.where(x > 0, x, F(1.01) * (np.exp(x) - F(1)))),
}


@pytest.mark.parametrize("key", WRONG)
def test_what_is_another_function_is_wrong(key: str) -> None:
    name, value = WRONG[key]
    attrs = {"eps": 0.01} if key == "no eps" else {}
    for seed in range(5):
        x = np.random.default_rng(seed).uniform(-2, 2, (4, 5, 6)).astype(F)
        assert verdict(name, {"x": x}, np.asarray(value(x), F), attrs) == "wrong"


def test_a_formula_within_the_radius_agrees() -> None:
    """So that the sets above do not hold by being all `inaccurate`."""
    for key in ("layer_norm, Welford", "layer_norm, folded", "logsumexp shifted",
                "softplus, stable", "gelu, erf", "a mean by a reciprocal",
                "l2_normalize by rsqrt"):  # fmt: skip
        row = FORMULAS[key]
        for seed in range(20):
            x = _numbers(seed, min(row.within, 10.0), (2, 3, 8))
            assert verdict(row.name, {"x": x}, np.asarray(row.value(x), F), row.attrs) in (
                "agrees", "rounding", "unstable",
            ), key  # fmt: skip


@pytest.mark.parametrize("rule", [lambda p, r: p * (F(1) - r), lambda p, r: p - r * p])
@pytest.mark.parametrize("rate", [0.001, 0.3, 1.0])
@pytest.mark.parametrize("decay", [0.5, 1.25])  # 1 - 1.0 * 1.25 is exact, and a power of 2
def test_a_decay_may_be_a_factor_or_a_part_that_is_taken_away(
    rule: Callable[[Array, Array], Array], rate: float, decay: float
) -> None:
    random = np.random.default_rng(5)
    x = random.uniform(-4, 4, 4000).astype(F)
    arrays = {"x": x, "gradient": np.zeros_like(x), "lr": np.array(rate, F)}
    attrs = {"weight_decay": decay, "decoupled": True}
    assert verdict("sgd", arrays, rule(x, F(rate) * F(decay)), attrs) == "agrees"
    arrays["x"] = np.array([np.inf, -np.inf], F)
    arrays["gradient"] = np.zeros(2, F)
    with np.errstate(invalid="ignore"):
        assert verdict("sgd", arrays, rule(arrays["x"], F(rate) * F(decay)), attrs) == "unstable"


def test_a_blend_may_count_from_the_nearer_end() -> None:
    """As torch.lerp does."""
    random = np.random.default_rng(6)
    a, b, w = (random.uniform(-2, 2, 4000).astype(F) for _ in range(3))
    near = np.where(np.abs(w) < F(0.5), a + w * (b - a), b - (b - a) * (F(1) - w))
    assert verdict("lerp", {"a": a, "b": b, "w": w}, near, {}) == "agrees"


@given(seed=st.integers(0, 2**32), size=st.integers(2, 7), q=st.sampled_from([0.1, 0.25, 0.5, 0.7]))
@example(seed=0, size=2, q=0.25)
@settings(max_examples=60, deadline=None)
def test_what_is_between_two_in_order_may_be_the_sum_of_parts_of_both(
    seed: int, size: int, q: float
) -> None:
    """As Keras on TensorFlow has it; by their difference it is rounded otherwise."""
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, (200, size)).astype(F) * F(random.uniform(0.1, 10))
    ranks, place = np.sort(x, axis=-1), F(q) * F(size - 1)
    below = int(np.floor(q * (size - 1)))
    part = F(below + 1) - place
    low, high = ranks[:, below], ranks[:, min(below + 1, size - 1)]
    for got in (high * (F(1) - part) + low * part, low + (F(1) - part) * (high - low)):
        assert verdict("quantile", {"x": x}, got, {"q": q}) in ("agrees", "rounding")
    off = low + (F(1) - part) * (high - low) * F(1 + 1e-5) + F(1e-5)
    assert verdict("quantile", {"x": x}, off, {"q": q}) in ("inaccurate", "wrong")


def test_the_logarithm_of_a_quotient_rounds_the_quotient() -> None:
    """As Keras documents the divergence; the logarithm of a target of 1 is exact by itself."""
    random = np.random.default_rng(7)
    probs, target = random.uniform(0.9, 1, (4000, 1)).astype(F), np.ones((4000, 1), F)
    got = (target * np.log(target / probs))[:, 0]
    arrays = {"probs": probs, "target": target}
    assert verdict("kl_divergence", arrays, got, {"reduction": "none"}) == "agrees"


@given(seed=st.integers(0, 2**32), size=st.floats(2.0, 1e6))
@settings(max_examples=40, deadline=None)
def test_half_a_square_may_be_that_of_what_erfc_is_given(seed: int, size: float) -> None:
    x = np.random.default_rng(seed).uniform(-size, -2.0, 50).astype(F)
    scaled = x * F(math.sqrt(0.5))
    rest = np.log(_ERFCX(-scaled.astype(np.float64)).astype(np.float64) / 2).astype(F)
    for square in (scaled * scaled, x * x / F(2)):
        assert verdict("log_ndtr", {"x": x}, rest - square, {}) == "agrees"


@given(seed=st.integers(0, 2**32), size=st.floats(1e-6, 1.0))
@settings(max_examples=40, deadline=None)
def test_a_logarithm_of_one_more_rounds_the_sum(seed: int, size: float) -> None:
    """As Keras documents the error: log(y + 1), which of a small y has few digits."""
    random = np.random.default_rng(seed)
    prediction, target = (random.uniform(-size, size, 400).astype(F) for _ in range(2))
    logs = [np.log(np.maximum(y, F(1e-7)) + F(1)) for y in (prediction, target)]
    arrays = {"prediction": prediction, "target": target}
    found = verdict("msle", arrays, np.square(logs[0] - logs[1]), {"reduction": "none"})
    assert found in ("agrees", "rounding")


@pytest.mark.parametrize("coord", ["align_corners", "half_pixel", "asymmetric"])
@given(seed=st.integers(0, 2**32), size=st.integers(2, 40), into=st.integers(2, 40))
@example(seed=1, size=27, into=12)
@settings(max_examples=80, deadline=None)
def test_a_position_may_be_rounded_to_either_side_of_a_whole_one(
    coord: str, seed: int, size: int, into: int
) -> None:
    """As in PyTorch: the last of 12 of 27 elements is at 25.999998, where a neighbour has a say."""
    x = np.random.default_rng(seed).uniform(1, 2, (1, 1, size)).astype(F)
    x[..., seed % 2 :: 2] *= 1000
    o = np.arange(into, dtype=F)
    step = F(size - 1) / F(into - 1) if coord == "align_corners" else F(size) / F(into)
    half = F(0.5) if coord == "half_pixel" else F(0)
    attrs = {"size": (into,), "mode": "linear", "coord": coord}
    for place in (step * (o + half) - half, o * F(size - 1) / F(max(into - 1, 1))):
        place = np.clip(place, 0, size - 1).astype(F)
        low = np.minimum(np.floor(place).astype(int), size - 1)
        part = (place - low).astype(F)
        got = x[..., low] * (F(1) - part) + x[..., np.minimum(low + 1, size - 1)] * part
        assert verdict("resize", {"x": x}, got.astype(F), attrs) in ("agrees", "rounding")
        if coord != "align_corners":
            break


def test_what_is_beyond_an_integer_type_is_its_end_and_no_other_number() -> None:
    """The end of i32 is none of f32's numbers: by way of the next of them it wraps around."""
    x, attrs = {"x": np.array([3e9, -3e9, 1.5], F)}, {"to": "i32"}
    right = np.array([2**31 - 1, -(2**31), 1], np.int32)
    assert verdict("saturate_cast", x, right, attrs) == "agrees"
    assert verdict("saturate_cast", x, np.array([-(2**31), *right[1:]], np.int32), attrs) == "wrong"


def test_a_logarithm_next_to_1_keeps_its_digits() -> None:
    near = {"prediction": np.array([1e-3], F), "target": np.zeros(1, F)}
    d = near["prediction"]
    stable = np.log1p(2 * np.sinh(d / 2) ** 2)
    cancelling = d + np.log1p(np.exp(-2 * d)) - F(math.log(2))
    attrs = {"reduction": "none"}
    assert verdict("log_cosh", near, stable, attrs) == "agrees"
    assert verdict("log_cosh", near, cancelling.astype(F), attrs) == "inaccurate"


@pytest.mark.parametrize("got", [0, 1, np.nan])
def test_whether_a_difference_of_nan_counts_in_how_many_places_rows_differ_is_open(
    got: float,
) -> None:
    a, b = np.full((1, 1), np.nan, F), np.zeros((1, 1), F)
    assert verdict("cdist", {"a": a, "b": b}, np.full((1, 1), got, F), {"p": 0}) == "unstable"
    wrong = np.full((1, 1), 2, F)
    assert verdict("cdist", {"a": b + 1, "b": b}, wrong, {"p": 0}) == "wrong"


@pytest.mark.parametrize("name", ["adam", "adamax", "nadam"])
def test_a_mean_and_a_decay_that_overflow_on_their_way_are_open(name: str) -> None:
    """Whose difference is beyond the type: mean + share * (g - mean), and p - p * decay * lr."""
    far = np.array([3e38], F)
    one = {"x": np.array([1], F), "gradient": far, "mean": -far}
    for got in (np.inf, -2.4e38):
        assert _at(name, "new_mean", one, {}, got) == "unstable"
    near = {**one, "mean": far}
    assert _at(name, "new_mean", near, {}, np.inf) == "nonfinite"
    decayed = {"x": far, "gradient": np.array([0], F)}
    attrs = {"weight_decay": 2.0, "decoupled": True}
    assert _at(name, "y", decayed, attrs, -np.inf) == "unstable"
    assert _at(name, "y", {**decayed, "x": np.array([1], F)}, attrs, -np.inf) == "nonfinite"


def _at(
    name: str, result: str, arrays: Mapping[str, Array], attrs: Mapping[str, Any], got: float
) -> str:
    """The verdict on the only element of a result in f32."""
    op = CATALOG.op(name)
    assert op is not None
    infos = {key: TensorInfo(array.shape, "f32") for key, array in arrays.items()}
    expansion = expand(instantiate(op, infos, attrs), CATALOG)
    feeds = {key: Ball(load(infos[key], array)) for key, array in arrays.items()}
    ball = rounding.evaluate(expansion, feeds, "f32", STANDARD)[result]
    return judge("y", "numpy", expansion.tensors[result], ball, np.array([got], F)).verdict


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [1, 3, 5, 7, 9, 33, 100])
def test_positions_of_a_grid_may_be_so_many_steps_from_its_end(
    size: int, align_corners: bool
) -> None:
    """As in the function that ONNX gives for AffineGrid, with steps in f32."""
    theta = np.array([[[0.7, 0, 0.3], [0, -1.3, 0.1]]], F)
    if align_corners:
        first, step = F(-1), F(2) / F(max(size - 1, 1))
        first = F(0) if size == 1 else first
    else:
        first, step = F(-1) + F(1) / F(size), F(2) / F(size)
    at = first + np.arange(size, dtype=F) * step
    x, y = np.meshgrid(at, at)
    got = np.stack([x * F(0.7) + F(0.3), y * F(-1.3) + F(0.1)], -1)[None]
    attrs = {"size": (size, size), "align_corners": align_corners}
    assert verdict("affine_grid", {"theta": theta}, got, attrs) in ("agrees", "rounding")
    off = got + F(1e-4)
    assert verdict("affine_grid", {"theta": theta}, off, attrs) in ("wrong", "inaccurate")
