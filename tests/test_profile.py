"""Arithmetic profiles: what a target may do to its numbers widens its radii, by no more than that.

Each kind of arithmetic is imitated in NumPy and held against the radius that its profile gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.arithmetic import FORMATS, STANDARD, Allowance, Arithmetic
from irlang.catalog import builtin
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import rounding
from irlang.interp.balls import Ball, Balls
from irlang.interp.plain import load
from irlang.interp.program import balls, given_ball
from irlang.interp.shape import check
from irlang.lower.profile import PROFILES, arithmetic, read_profile
from irlang.lower.target import describe
from irlang.parser import parse
from irlang.scalar import SCALARS

Array = Any
CATALOG = builtin()
ROOT = Path(__file__).parents[1]


def ball(
    name: str, arrays: Mapping[str, Array], own: Arithmetic, attrs: Mapping[str, Any] | None = None
) -> Ball:
    """The first result of a definition in f32, in an arithmetic."""
    op = CATALOG.op(name)
    assert op is not None
    infos = {key: TensorInfo(array.shape, "f32") for key, array in arrays.items()}
    expansion = expand(instantiate(op, infos, attrs or {}), CATALOG)
    feeds = {key: given_ball(infos[key], load(infos[key], a), own) for key, a in arrays.items()}
    return rounding.evaluate(expansion, feeds, "f32", own)[expansion.outputs[0]]


def _inside(found: Ball, got: Array) -> bool:
    return bool(np.all(np.abs(np.asarray(got, np.float64) - found.value) <= found.bound))


def _single(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _matmul(seed: int, size: int) -> dict[str, Array]:
    return {"a": _single(seed, 4, size), "b": _single(seed + 1, size, 5)}


@given(st.integers(0, 10_000), st.sampled_from((2, 8, 300)))
@settings(max_examples=40, deadline=None)
def test_factors_of_few_digits(seed: int, size: int) -> None:
    arrays = _matmul(seed, size)
    for name, kind in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        a, b = (array.astype(kind).astype(np.float64) for array in arrays.values())
        assert _inside(ball("matmul", arrays, Arithmetic(factors=name)), a @ b)
        assert not _inside(ball("matmul", arrays, STANDARD), a @ b)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_sums_of_few_digits(seed: int) -> None:
    arrays = _matmul(seed, 20)
    total = np.zeros((4, 5), ml_dtypes.bfloat16)
    for k in range(20):
        total = (total + (arrays["a"][:, k, None] * arrays["b"][k])).astype(ml_dtypes.bfloat16)
    own = Arithmetic(sums="bf16")
    assert _inside(ball("matmul", arrays, own), total)
    assert not _inside(ball("matmul", arrays, STANDARD), total)
    assert np.isinf(ball("matmul", _matmul(seed, 400), own).bound).all()  # no digit is sure


@given(st.integers(0, 10_000), st.sampled_from((1.0, 1e-3, 1e-5, 1e-7)))
@settings(max_examples=40, deadline=None)
def test_what_a_format_has_no_digits_for_is_lost(seed: int, size: float) -> None:
    """f16 has 11 digits down to 6e-5, and none below 3e-8."""
    arrays = {name: (array * np.float32(size)) for name, array in _matmul(seed, 8).items()}
    halves = [array.astype(np.float16) for array in arrays.values()]
    product = halves[0].astype(np.float64) @ halves[1].astype(np.float64)
    flushed = [np.where(np.abs(a) < 2.0**-14, 0, a).astype(np.float64) for a in halves]
    for kept, results in ((False, (product, flushed[0] @ flushed[1])), (True, (product,))):
        own = Arithmetic(factors="f16", flush=not kept)
        assert all(_inside(ball("matmul", arrays, own), got) for got in results)
    total = np.zeros((4, 5), np.float16)
    for k in range(8):
        total = (total + arrays["a"][:, k, None] * arrays["b"][k]).astype(np.float16)
    assert _inside(ball("matmul", arrays, Arithmetic(sums="f16")), total)
    if size < 1e-3:
        assert not _inside(ball("matmul", arrays, Arithmetic(factors="bf16")), product * 0)


def test_a_sum_may_be_infinite_in_a_format_that_ends_before() -> None:
    arrays = {"a": np.full((1, 8), 100, np.float32), "b": np.full((8, 1), 100, np.float32)}
    assert np.isinf(ball("matmul", arrays, Arithmetic(sums="f16")).bound).all()
    assert np.isfinite(ball("matmul", arrays, Arithmetic(sums="bf16")).bound).all()
    arrays["a"][0, 1:] = 0
    assert np.isfinite(ball("matmul", arrays, Arithmetic(sums="f16")).bound).all()


def test_a_finer_format_than_the_program_changes_nothing() -> None:
    arrays = _matmul(0, 20)
    wide = ball("matmul", arrays, Arithmetic(factors="f32", sums="f64"))
    assert np.array_equal(wide.bound, ball("matmul", arrays, STANDARD).bound)


@given(st.integers(0, 10_000), st.sampled_from((8, 40)))
@settings(max_examples=20, deadline=None)
def test_a_convolution_by_fourier_transform(seed: int, size: int) -> None:
    """Its error is that of the largest elements, where the terms of a sum may be tiny."""
    random = np.random.default_rng(seed)
    x = (random.uniform(-1, 1, (1, 1, size)) * 10.0 ** random.integers(-4, 5, (1, 1, size))).astype(
        np.float32
    )
    w = _single(seed, 1, 1, 3)
    by_transform = np.fft.irfft(
        (
            np.fft.rfft(x[0, 0], 2 * size).astype(np.complex64)
            * np.fft.rfft(w[0, 0, ::-1], 2 * size).astype(np.complex64)
        ).astype(np.complex64),
        2 * size,
    ).astype(np.float32)[None, None, 2:size]
    arrays = {"x": x, "w": w}
    assert _inside(ball("conv", arrays, Arithmetic(fast=8.0)), by_transform)


def test_the_largest_elements_count_in_both_ways_of_evaluating_a_product() -> None:
    """By BLAS and without, over padding too."""
    for size in (6, 60):
        arrays = {"x": _single(1, 2, 4, size, size), "w": _single(2, 8, 4, 3, 3)}
        arrays["x"][0, 0, 0, 0] = 1e4
        found = ball("conv", arrays, Arithmetic(fast=1.0), {"pad": "same"})
        plain = ball("conv", arrays, STANDARD, {"pad": "same"})
        least = 2.0**-24 * 1e4 * np.abs(arrays["w"]).sum((1, 2, 3))
        assert np.all(found.bound >= plain.bound + least[:, None, None])


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_scale_that_is_multiplied_into_the_terms(seed: int) -> None:
    """(a · b - c) * s, as a · (b * s) - c * s in single precision."""
    random = np.random.default_rng(seed)
    a, b = _single(seed, 2, 2), _single(seed + 1, 2, 2)
    s = random.uniform(0.5, 2, (2, 2)).astype(np.float32)
    c = (a.astype(np.float64) @ b).astype(np.float32)  # so that nearly nothing is left
    own = Arithmetic(distributes=True)
    product = ball("matmul", {"a": a, "b": b}, own)
    domain = Balls("f32", own)
    left = domain.apply("-", [product, Ball(c.astype(np.float64))])
    found = domain.apply("*", [left, Ball(s.astype(np.float64))])
    for column in range(2):
        scaled = (b[:, column] * s[0, column]).astype(np.float32)
        got = np.float32(0)
        for k in range(2):
            got = np.float32(got + np.float32(a[0, k] * scaled[k]))
        got = np.float32(got - np.float32(c[0, column] * s[0, column]))
        assert abs(float(got) - found.value[0, column]) <= found.bound[0, column]


def test_an_infinite_scale_that_is_multiplied_into_the_terms() -> None:
    """Of terms of either sign it makes infinities of either sign, whose sum is NaN."""
    arrays = {"x": np.array([[[0, 1.0]]]), "gamma": np.array([-np.inf])}
    assert np.all(ball("instance_norm", arrays, STANDARD).bound == 0)
    own = ball("instance_norm", arrays, Arithmetic(distributes=True))
    assert np.all(np.isinf(own.bound))
    finite = {**arrays, "gamma": np.array([-2.0])}
    assert np.all(ball("instance_norm", finite, Arithmetic(distributes=True)).bound < 1e-4)


def test_denormal_numbers_that_are_kept() -> None:
    least = np.array([2.0**-130, 3 * 2.0**-128], np.float32)
    kept = ball("multiply", {"a": least, "b": np.ones(2, np.float32)}, Arithmetic(flush=False))
    assert _inside(kept, least)
    assert not _inside(kept, np.zeros(2))
    flushed = ball("multiply", {"a": least, "b": np.ones(2, np.float32)}, STANDARD)
    assert _inside(flushed, np.zeros(2))


@pytest.mark.parametrize("name", ["exp", "sigmoid", "/"])
def test_an_allowance_is_relative_or_absolute(name: str) -> None:
    row = SCALARS[name]
    args = [Ball(np.array([-9.0, 3.0]))] * row.arity
    if row.arity == 2:
        args[1] = Ball(np.array([7.0, 7.0]))
    relative = Balls("f32", Arithmetic({name: Allowance(100.0)})).apply(name, args)
    assert np.allclose(relative.bound, 100 * 2.0**-23 * np.abs(relative.value), rtol=1e-6)
    absolute = Balls("f32", Arithmetic({name: Allowance(0.5, 3.0)})).apply(name, args)
    assert np.all(absolute.bound >= 3 * 2.0**-23)
    assert np.all(Balls("f32").apply(name, args).bound < relative.bound)


def test_a_profile_widens_only() -> None:
    for own in PROFILES:
        assert own.reason
        assert not own.added(STANDARD).narrower


GOOD = """
[[accept]]
target = "onnxr*"
function = "sigmoid"
absolute = 2.0
reason = "a rational approximation"

[[accept]]
target = "tf"
flush = false
factors = "tf32"
reason = "a flag"
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "profile.toml"
    path.write_text(text)
    return path


def test_a_file_speaks_of_the_targets_it_names(tmp_path: Path) -> None:
    accepted = read_profile(_file(tmp_path, GOOD))
    assert arithmetic(describe("torch"), accepted) == arithmetic(describe("torch"))
    own = arithmetic(describe("onnxruntime:plain"), accepted)
    assert own.functions["sigmoid"] == Allowance(SCALARS["sigmoid"].ulps, 2.0)
    other = arithmetic(describe("tf"), accepted)
    assert (other.flush, other.factors) == (False, "tf32")


_HEAD = "[[accept]]\ntarget = 'tf'\nreason = 'r'\n"
BAD = {
    "is no TOML": "[[accept]",
    "is no TOML: Exceeds the limit": "accept = 1" + "0" * 5000,
    "is no TOML: ": "accept = " + "[" * 50_000,
    "is not [[accept]]": "[[known]]\ntarget = 'tf'",
    "has `functions`": _HEAD + "functions = 'exp'",
    "says no `target`": "[[accept]]\nreason = 'r'\nflush = true",
    "says no `reason`": "[[accept]]\ntarget = 'tf'\nflush = true",
    "there is no function `exq`": _HEAD + "function = 'exq'\nulps = 1",
    "`ulps` must be a number": _HEAD + "function = 'exp'\nulps = nan",
    "`absolute` must be a number": _HEAD + "function = 'exp'\nabsolute = true",
    "`factors` must be one of": _HEAD + "factors = 'f8'",
    "`flush` must be true or false": _HEAD + "flush = 1",
    "accepts nothing": _HEAD,
    "or several things": _HEAD + "function = 'exp'\nulps = 1\nflush = true",
    "is no table": "accept = [1]",
}


@pytest.mark.parametrize("said", BAD)
def test_a_file_at_fault_is_told_what_is_wrong(said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        read_profile(_file(tmp_path, BAD[said]))
    assert error.value.diagnostics[0].code == "file.profile"
    assert said in error.value.diagnostics[0].message


def test_what_is_accepted_is_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ONNX Runtime's sigmoid has an absolute error."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    model = tmp_path / "m.nnir"
    model.write_text(
        "nnir 1\nmodel m(x: f32[64] in [-20, -10]) -> y: f32[64] {\n  y = sigmoid(x)\n}\n"
    )
    arguments = ["diff", str(model), "--targets", "onnxruntime"]
    assert status(arguments) == 1
    assert "inaccurate" in capsys.readouterr().out
    assert status([*arguments, "--profile", str(_file(tmp_path, GOOD))]) == 0
    assert status([*arguments, "--profile", str(tmp_path / "none.toml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_formats_have_the_digits_they_are_known_for() -> None:
    one = ml_dtypes.bfloat16(1)
    assert one + ml_dtypes.bfloat16(1.01 * FORMATS["bf16"]) > one
    assert one + ml_dtypes.bfloat16(FORMATS["bf16"]) == one
    assert FORMATS["f16"] == float(np.finfo(np.float16).eps) / 2
    assert FORMATS["f32"] == float(np.finfo(np.float32).eps) / 2


@pytest.mark.parametrize(
    ("target", "package", "name"),
    [
        ("onnxruntime", "onnxruntime", "sigmoid"),
        ("onnxruntime", "onnxruntime", "elu"),
        ("tf", "tensorflow", "elu"),
        ("tf", "tensorflow", "reciprocal"),
    ],
)
def test_the_example_accepts_what_is_known(target: str, package: str, name: str) -> None:
    """By default it is inaccurate: the standard allowance is sharp."""
    pytest.importorskip(package, reason=f"{package} is not installed")
    size = 4000
    text = f"nnir 1\nmodel m(x: f32[{size}]) -> y: f32[{size}] {{\n  y = {name}(x)\n}}\n"
    graph = check(parse(text, "m"), CATALOG).graphs[0]
    random = np.random.default_rng(0)
    sizes = 10.0 ** random.uniform(-4, 1.3, size) * random.choice((-1, 1), size)
    case = Case(graph, {"x": sizes.astype(np.float32)}, {}, CATALOG)
    accepted = read_profile(ROOT / "examples" / "profile.toml")
    for own, right in (((), "inaccurate"), (accepted, "agrees")):
        with Session([target], accepted=own) as session:
            (found,) = session.compare([case])[0].verdicts[target]
        assert found.verdict == right


@pytest.mark.parametrize(
    ("target", "package", "call", "numbers"),
    [
        ("torch", "torch", "y = instance_norm(x)", [1.0, 1.001]),
        ("keras:tensorflow", "keras", "y = layer_norm(x)", [9.9981, 9.9919]),
        ("tf", "tensorflow", "y, mean, var = batch_norm_train(x)", [1.0, 1.001]),
        ("onnxruntime:plain", "onnxruntime", "y = instance_norm(x)", [1.0, 1.001]),
    ],
)
def test_a_normalisation_with_its_scale_multiplied_in_agrees(
    target: str, package: str, call: str, numbers: list[float]
) -> None:
    """PyTorch computes x * s - mean * s, of which little is left where the mean is large; so do
    Keras, TensorFlow and ONNX Runtime.
    """
    pytest.importorskip(package, reason=f"{package} is not installed")
    shape = f"f32[1, 1, {len(numbers)}]"
    text = f"nnir 1\nmodel m(x: {shape}) -> y: {shape} {{\n  {call}\n}}\n"
    graph = check(parse(text, "m"), CATALOG).graphs[0]
    case = Case(graph, {"x": np.array([[numbers]], np.float32)}, {}, CATALOG)
    with Session([target]) as session:
        (found,) = session.compare([case])[0].verdicts[target]
        assert found.verdict in ("agrees", "rounding")
        session.arithmetic[target] = STANDARD
        (found,) = session.compare([case])[0].verdicts[target]
        assert found.verdict == "inaccurate"


def test_keras_2_multiplies_scales_in_as_the_tensorflow_that_it_calls() -> None:
    assert arithmetic(describe("tf:keras")).distributes


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
def test_what_theano_counts_as_zero_in_python_is_not_held_against_it(name: str) -> None:
    """Its compiled forms go on to exp(-88), but compiling takes seconds an operator."""
    own = arithmetic(describe("keras:theano"))
    numbers = np.array([-31, -29], np.float32)
    small = np.exp(numbers.astype(np.float64))
    assert _inside(ball(name, {"x": numbers}, own), np.array([0, small[1]], np.float32))
    assert not _inside(ball(name, {"x": numbers}, own), np.zeros(2, np.float32))
    assert not _inside(ball(name, {"x": numbers}, STANDARD), np.array([0, small[1]], np.float32))


_CHAIN = """
nnir 1
model m(x: f32[7] in [-1, 1], a: f32[] in [-1, 1], b: f32[] in [1, 2]) -> y: f32[7] {
  y = add(add(x, a), b)
}
"""


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_terms_of_several_calls_may_be_added_in_another_order(seed: int) -> None:
    (graph,) = check(parse(_CHAIN), CATALOG).graphs
    x, (a, b) = _single(seed, 7), _single(seed + 1, 2)
    values = {"x": x, "a": a, "b": np.float32(abs(b) + 1)}
    own, plain = (
        balls(graph, values, CATALOG, "f32", arithmetic)["y"]
        for arithmetic in (Arithmetic(reorders=True), STANDARD)
    )
    assert _inside(own, x + (a + values["b"]))
    # one rounding more, and no whole digit
    assert np.all(own.bound <= plain.bound + 2.0**-23 * (np.abs(own.value) + 1))
