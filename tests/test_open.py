"""Definitions that leave values open: what they draw they ensure, and wrong results are told.

Nothing here knows an operator: the definitions that say `some` are taken from the catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irlang import ast
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.catalog import Catalog, builtin
from irlang.diff.calls import Case, broken_promises, judge_call
from irlang.diff.runner import Session
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.gen.edge import with_edges
from irlang.graph import Graph
from irlang.interp import exact, reference
from irlang.interp.draws import open_values
from irlang.interp.gradient import gradients
from irlang.interp.plain import load
from irlang.interp.program import given_ball, run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.laws import LAWS
from irlang.parser import parse

OPEN = sorted(op.name for op in builtin() if any(isinstance(s, ast.Some) for s in op.body))
# Which leave results open for some inputs, and ensure something of all.
PROMISING = sorted(
    op.name
    for op in builtin()
    if op.name not in OPEN and any(isinstance(s, ast.Ensure) for s in op.body)
)
Array = np.ndarray[Any, Any]


def model(body: str, head: str, result: str, definitions: str = "") -> tuple[Graph, Catalog]:
    text = f"nnir 1\n{definitions}\nmodel m({head}) -> {result} {{\n  {body}\n}}\n"
    checked = check(parse(text, "open.nnir"), builtin())
    assert not checked.diagnostics, checked.diagnostics
    return checked.graphs[0], checked.catalog


def case(graph: Graph, catalog: Catalog, seed: int) -> Case:
    return Case(graph, inputs(graph, seed), initial_values(graph, seed), catalog)


def drawn(made: Case, seed: int) -> dict[str, Array]:
    """Every value of a program as the oracle draws it, rounded to its own type."""
    values = {**made.values, **open_values(made.graph, seed, made.catalog)}
    found = run(made.graph, values, made.catalog)
    with np.errstate(over="ignore"):
        return {
            name: found[name].astype(DTYPES[info.dtype].numpy)
            for name, info in made.graph.values.items()
        }


def judged(made: Case, given: dict[str, Array]) -> list[str]:
    """What is wrong with the last call of a program, by verdict and message."""
    node = made.graph.nodes[-1]
    fed = {name: given[name] for name in node.operands()}
    return [f"{v.verdict} {v.message}" for v in judge_call(made, node, fed, given, "t")]


_ODD: Mapping[str, int] = {"u": 200, "i": -1, "f": -1}  # what no place and hardly a result is


def _is_infinite(attrs: Mapping[str, Any]) -> bool:
    """Whether a number among attributes is infinite, of which no law tells."""
    return any(isinstance(one, float) and not math.isfinite(one) for one in attrs.values())


# ---- what is drawn is ensured -----------------------------------------------------------------


@pytest.mark.parametrize("name", OPEN)
def test_what_is_drawn_is_ensured(name: str) -> None:
    """Over shapes, types, attributes and seeds as the generator makes them."""
    done = 0
    for seed in range(200):
        limits = Limits(elements=(40, 400, 4000)[seed % 3], length=30)
        graph = generate(builtin(), seed, ops=(name,), size=(1, 1), limits=limits).graph
        node = graph.nodes[-1]
        if not node.expansion(builtin()).is_open:
            continue
        made = case(graph, builtin(), seed)
        found = judged(made, drawn(made, seed))
        said = [text for text in found if "ensures nothing of this result alone" not in text]
        assert all(text.startswith("agrees") for text in said), (seed, node.attrs, found)
        assert said or _is_infinite(node.attrs), (seed, node.attrs, found)
        done += bool(said)
        if done == 40:
            break
    assert done >= 20


@pytest.mark.parametrize("name", OPEN)
def test_every_clause_is_judged(name: str) -> None:
    """From results alone, some call of the definition has a judgement of all that it ensures."""
    op = builtin().op(name)
    assert op is not None
    wanted = {f"{name}.{s.name}" for s in op.body if isinstance(s, ast.Ensure)}
    for seed in range(60):
        graph = generate(builtin(), seed, ops=(name,), size=(1, 1)).graph
        expansion = graph.nodes[-1].expansion(builtin())
        if expansion.is_open and {clause.code for clause in expansion.ensures} == wanted:
            return
    raise AssertionError(f"no call of {name} has all of {sorted(wanted)}")


@pytest.mark.parametrize("name", OPEN)
def test_all_meanings_see_one_draw(name: str) -> None:
    for seed in range(40):
        limits = Limits(elements=60, length=9)
        graph = generate(builtin(), seed, ops=(name,), size=(1, 1), limits=limits).graph
        if not graph.nodes[-1].expansion(builtin()).is_open:
            continue
        made = case(graph, builtin(), seed)
        values = {**made.values, **open_values(graph, seed, builtin())}
        first = run(graph, values, builtin(), reference.evaluate)
        again = run(graph, values, builtin(), _exactly)
        for value in graph.outputs.values():
            np.testing.assert_allclose(first[value], again[value], rtol=1e-12)
        return


def _exactly(expansion: Any, feeds: Any) -> dict[str, Any]:
    return {name: t.numpy() for name, t in exact.evaluate(expansion, feeds).items()}


# ---- what is ensured of results that are open for some inputs ---------------------------------


def promises(made: Case, given: dict[str, Array]) -> list[str]:
    """What the results of the only call are not, by messages."""
    node = made.graph.nodes[-1]
    values = made.graph.values
    arrays = {name: load(values[name], given[name]) for name in node.operands()}
    fed = {name: given_ball(values[name], array) for name, array in arrays.items()}
    return [v.message for v in broken_promises(made, node, fed, given, "torch")]


@pytest.mark.parametrize("name", PROMISING)
def test_a_right_result_is_as_it_is_ensured_to_be(name: str) -> None:
    """Of ordinary numbers, and of those at the edges of their types; a position that is none is
    told.
    """
    told = 0
    for seed in range(400):
        if seed >= 40 and told >= 5:
            break
        limits = Limits(elements=60, length=9)
        graph = generate(builtin(), seed, ops=(name,), size=(1, 1), limits=limits).graph
        if graph.nodes[-1].op.name != name or len(graph.nodes) > 1:
            continue
        made = case(graph, builtin(), seed)
        for edges in (False, True):
            if edges:
                made = replace(made, inputs=with_edges(graph, made.inputs, seed))
            with np.errstate(all="ignore"):
                found = {
                    name: array.astype(DTYPES[graph.values[name].dtype].numpy)
                    for name, array in run(graph, made.values, builtin()).items()
                }
            assert promises(made, found) == [], (seed, edges, graph.nodes[-1].attrs)
        given = {v: found[v] for v in graph.outputs.values() if found[v].size}
        places = [v for v in given if graph.values[v].kind == "int"]
        wrong = {
            **found,
            **{v: np.full_like(given[v], _ODD[given[v].dtype.kind]) for v in places or given},
        }
        told += bool(promises(made, wrong))
    assert told >= 5


@pytest.mark.parametrize(
    ("call", "x", "given", "message"),
    [
        ("y, at = top_k(x; k = 2)", [1, np.nan, 3, 2], [[1, np.nan], [0, 1]], "top_k.best"),
        ("y, at = top_k(x; k = 2)", [1, np.nan, 3, 2], [[np.nan, 3], [1, 2]], ""),
        ("y, at = top_k(x; k = 2)", [1, np.nan, 3, 2], [[3, 2], [2, 3]], ""),
        ("y, at = top_k(x; k = 2)", [1, np.nan, 3, 2], [[3, 3], [2, 2]], "top_k.places"),
        ("y, at = sort(x)", [3, np.nan, 1, 2], [[1, 3, np.nan, 2], [2, 0, 1, 3]], "sort.order"),
        ("y, at = sort(x)", [3, np.nan, 1, 2], [[np.nan, 1, 2, 3], [1, 2, 3, 0]], ""),
        ("y, at = sort(x)", [3, np.nan, 1, 2], [[1, 2, 3, np.nan], [2, 3, 0, 1]], ""),
        ("at = argmin(x)", [1, np.nan, 3, 2], [3], "argmin.smallest"),
        ("at = argmin(x)", [1, np.nan, 3, 2], [0], ""),
        ("at = argmax(x)", [1, np.nan, 3, 2], [1], ""),
        ("at = argmax(x)", [1, np.nan, 3, 2], [2**31 - 1], "argmax.place"),
    ],
)
def test_any_order_of_numbers_and_nan_is_right_that_is_one(
    call: str, x: list[float], given: list[Any], message: str
) -> None:
    names = call.partition(" =")[0].split(", ")
    sizes = {name: np.shape(value) for name, value in zip(names, given, strict=True)}
    types = {"y": "f32", "at": "i64"}
    result = ", ".join(f"{n}: {types[n]}{list(sizes[n])}" for n in names)
    graph, catalog = model(call, "x: f32[4]", result)
    made = Case(graph, {"x": np.array(x, np.float32)}, {}, catalog)
    arrays = {n: np.array(v, {"y": "f4", "at": "i8"}[n]) for n, v in zip(names, given, strict=True)}
    found = promises(made, {**made.values, **arrays})
    assert {text.partition(":")[0] for text in found} == ({message} if message else set())


def test_a_seed_is_a_draw() -> None:
    graph, catalog = model("y = dropout(x; training = true)", "x: f32[50]", "y: f32[50]")
    one, two = (open_values(graph, seed, catalog) for seed in (1, 2))
    (key,) = one
    assert np.array_equal(one[key], open_values(graph, 1, catalog)[key])
    assert not np.array_equal(one[key], two[key])


def test_two_calls_draw_apart() -> None:
    body = "a = dropout(x; training = true)\n  y = dropout(x; training = true)"
    graph, catalog = model(body, "x: f32[50]", "y: f32[50]")
    one, two = open_values(graph, 0, catalog).values()
    assert not np.array_equal(one, two)


def test_the_gradient_goes_through_what_was_drawn() -> None:
    graph, catalog = model(
        "y = dropout(x; training = true, rate = 0.25)", "x: f64[40]", "y: f64[40]"
    )
    values = {**inputs(graph, 0), **open_values(graph, 3, catalog)}
    slope = gradients(graph, values, catalog)["x"]
    y = run(graph, values, catalog)["y"]
    np.testing.assert_allclose(slope, np.where(y != 0, 1 / 0.75, 0), rtol=1e-15)
    assert 0 < np.sum(y == 0) < 40


def test_what_leaves_no_choice_is_computed() -> None:
    for body in ("y = dropout(x)", "y = dropout(x; rate = 0, training = true)"):
        graph, catalog = model(body, "x: f32[5]", "y: f32[5]")
        assert not graph.nodes[0].expansion(catalog).is_open
        values = inputs(graph, 0)
        assert np.array_equal(run(graph, values, catalog)["y"], values["x"])


# ---- wrong results are told -------------------------------------------------------------------

_RNG = np.random.default_rng(11)


def _kept(rate: float, shape: tuple[int, ...] = (20, 30, 6)) -> Array:
    return _RNG.random(shape) >= rate


def _normal(shape: tuple[int, ...] = (20, 30, 6)) -> Array:
    return _RNG.standard_normal(shape)


DROPOUT = "dropout(x; rate = 0.3, training = true)"
SPATIAL = "dropout(x; rate = 0.3, training = true, shared_axes = 1)"
ALPHA = "alpha_dropout(x; rate = 0.3, training = true)"
NOISE = "gaussian_noise(x; stddev = 0.5, training = true)"
FACTOR = "gaussian_dropout(x; rate = 0.2, training = true)"
NORMAL = "random_normal(; shape = [20, 30, 6], mean = 1, stddev = 2)"
UNIFORM = "random_uniform(; shape = [20, 30, 6], low = -1, high = 3)"
BERNOULLI = "bernoulli(sigmoid(x))"
TRUNCATED = "truncated_normal(; shape = [20, 30, 6], mean = 1, stddev = 2)"

# A call, what some implementation makes of x instead, and the clause that tells.
WRONG: dict[str, tuple[str, Callable[[Array], Any], str]] = {
    "the rate is the share that is kept": (
        DROPOUT, lambda x: x * _kept(0.7) / 0.7, "dropout.rate"),
    "nothing is scaled": (DROPOUT, lambda x: x * _kept(0.3), "dropout.values"),
    "scaled by the rate": (DROPOUT, lambda x: x * _kept(0.3) / 0.3, "dropout.values"),
    "scaled a thousandth too much": (
        DROPOUT, lambda x: x * _kept(0.3) / 0.7 * 1.001, "dropout.values"),
    "nothing is dropped": (DROPOUT, lambda x: x / 0.7, "dropout.rate"),
    "all rows have one mask": (
        DROPOUT, lambda x: x * _kept(0.3, (1, 30, 6)) / 0.7, "dropout.independent"),
    "pairs of columns are dropped together": (
        DROPOUT, lambda x: x * np.repeat(_kept(0.3, (20, 15, 6)), 2, 1) / 0.7,
        "dropout.independent"),
    "dropped ones are a little": (
        DROPOUT, lambda x: x * np.where(_kept(0.3), 1 / 0.7, 1e-6), "dropout.values"),
    "dropped ones are NaN": (
        DROPOUT, lambda x: np.where(_kept(0.3), x / 0.7, np.nan), "dropout.values"),
    "the mask is not shared": (SPATIAL, lambda x: x * _kept(0.3) / 0.7, "dropout.shared"),
    "the mask is shared along another axis": (
        SPATIAL, lambda x: x * _kept(0.3, (20, 30, 1)) / 0.7, "dropout.shared"),
    "alpha dropout drops to zero": (ALPHA, lambda x: x * _kept(0.3) / 0.7, "alpha_dropout.values"),
    "noise with the variance for the deviation": (
        NOISE, lambda x: x + 0.25 * _normal(), "gaussian_noise.spread"),
    "noise a tenth too wide": (NOISE, lambda x: x + 0.56 * _normal(), "gaussian_noise.spread"),
    "noise with a mean": (NOISE, lambda x: x + 0.5 * _normal() + 0.1, "gaussian_noise.mean"),
    "noise of the right width that is not normal": (
        NOISE, lambda x: x + _RNG.uniform(-0.5, 0.5, x.shape) * 3**0.5, "gaussian_noise.bell"),
    "one noise for all rows": (
        NOISE, lambda x: x + 0.5 * _normal((1, 30, 6)), "gaussian_noise.independent"),
    "the rate for the deviation": (
        FACTOR, lambda x: x * (1 + 0.2 * _normal()), "gaussian_dropout.spread"),
    "factors about zero": (FACTOR, lambda x: x * 0.5 * _normal(), "gaussian_dropout.mean"),
    "normal of deviation one": (NORMAL, lambda _: 1 + _normal(), "random_normal.spread"),
    "uniform from zero to one": (UNIFORM, lambda x: _RNG.random(x.shape), "random_uniform.even"),
    "uniform beyond its ends": (
        UNIFORM, lambda x: _RNG.uniform(-1, 3.01, x.shape), "random_uniform.range"),
    "uniform of four values": (
        UNIFORM, lambda x: np.floor(_RNG.uniform(-1, 3, x.shape)) + 0.3, "random_uniform.even"),
    "normal numbers that are not drawn again": (
        TRUNCATED, lambda _: 1 + 2 * _normal(), "truncated_normal.range"),
    "numbers at the ends in place of those beyond": (
        TRUNCATED, lambda _: 1 + 2 * np.clip(1.3 * _normal(), -2, 2), "truncated_normal.bell"),
    "a truncated normal about zero": (
        TRUNCATED, lambda _: np.clip(2 * _normal(), -2.9, 2.9), "truncated_normal.middle"),
    "ones as often as zeros": (
        BERNOULLI, lambda x: _RNG.random(x.shape) < 0.5, "bernoulli.rate"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_told(name: str) -> None:
    call, make, clause = WRONG[name]
    shape = "f32[20, 30, 6]"
    graph, catalog = model(f"y = {call}", f"x: {shape} in [1, 3]", f"y: {shape}")
    made = case(graph, catalog, 5)
    given = drawn(made, 5)
    assert all(text.startswith("agrees") for text in judged(made, given))
    given["y"] = make(made.inputs["x"].astype(np.float64)).astype(np.float32)
    first, *_ = judged(made, given)
    assert first.startswith("wrong")
    assert clause in first or clause in _all(made, given)


WHOLE = "random_integers(; shape = [600, 6], low = -2, high = 5)"
CLASSES = "random_categorical(log(x); count = 6)"
# The same of whole numbers, of which the call is handed the logarithms of 1 to 3.
WRONG_INTEGERS: dict[str, tuple[str, Callable[[Array], Any], str]] = {
    "numbers up to the end": (
        WHOLE, lambda _: _RNG.integers(-2, 6, (600, 6)), "random_integers.range"),
    "numbers from behind the first": (
        WHOLE, lambda _: _RNG.integers(-1, 5, (600, 6)), "random_integers.ends"),
    "small numbers more often": (
        WHOLE, lambda _: np.minimum(*_RNG.integers(-2, 5, (2, 600, 6))), "random_integers.even"),
    "one number for every line": (
        WHOLE, lambda _: np.repeat(_RNG.integers(-2, 5, (600, 1)), 6, 1),
        "random_integers.independent"),
    "classes that are as likely": (
        CLASSES, lambda _: _RNG.integers(0, 6, (600, 6)), "random_categorical.share"),
    "a class that is none": (
        CLASSES, lambda _: np.full((600, 6), 6), "random_categorical.range"),
    "the likeliest class": (CLASSES, lambda x: np.repeat(x.argmax(1)[:, None], 6, 1),
                            "random_categorical.share"),
    "one class for every line": (
        CLASSES, lambda x: np.repeat(_classes(x, 1), 6, 1), "random_categorical.independent"),
}  # fmt: skip


def _classes(x: Array, count: int) -> Array:
    """By the shares of the elements of a row."""
    up = np.cumsum(x / x.sum(1, keepdims=True), 1)
    above = _RNG.random((len(x), 1, count)) >= up[:, :, None]
    found: Array = np.minimum(above.sum(1), 5)
    return found


@pytest.mark.parametrize("name", WRONG_INTEGERS)
def test_a_wrong_integer_is_told(name: str) -> None:
    call, make, clause = WRONG_INTEGERS[name]
    graph, catalog = model(f"y = {call}", "x: f32[600, 6] in [1, 3]", "y: i64[600, 6]")
    made = case(graph, catalog, 5)
    x = made.inputs["x"]
    x[:, 2:] = 1  # so that the shares are not as if there were none
    x[:, :2] = 3
    given = drawn(made, 5)
    assert all(text.startswith("agrees") for text in judged(made, given))
    given["y"] = np.asarray(make(x.astype(np.float64)), np.int64)
    *_, last = judged(made, given)
    assert last.startswith("wrong")
    assert clause in last or clause in _all(made, given)


def _all(made: Case, given: dict[str, Array]) -> str:
    """The messages of every violated clause."""
    from irlang.interp import ensured
    from irlang.interp.plain import load

    node = made.graph.nodes[-1]
    expansion = node.expansion(made.catalog)
    feeds = {f: load(made.graph.values[v], given[v]) for f, v in node.feeds().items()}
    results = {f: load(made.graph.values[v], given[v]) for f, v in node.results().items()}
    found = ensured.judge(expansion, {**feeds, **results}, "f32", results)
    return " ".join(clause.message for clause in found)


@pytest.mark.parametrize("name", sorted({call for call, _, _ in WRONG.values()}))
def test_right_results_raise_no_alarm(name: str) -> None:
    """A small share of what docs/language.md reports: enough to see a law that is off."""
    shape = "f32[20, 30, 6]"
    graph, catalog = model(f"y = {name}", f"x: {shape} in [1, 3]", f"y: {shape}")
    for seed in range(25):
        made = case(graph, catalog, seed)
        assert all(text.startswith("agrees") for text in judged(made, drawn(made, seed)))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e4, 1e30])
def test_extreme_inputs_raise_no_alarm(dtype: str, scale: float) -> None:
    """Denormal and huge inputs: what overflows, is flushed or is lost beside x says nothing."""
    with np.errstate(over="ignore"):
        numbers = (np.random.default_rng(0).uniform(-1, 1, (40, 30)) * scale).astype(
            DTYPES[dtype].numpy
        )
    numbers[:, ::7] = 0
    numbers = np.where(np.isfinite(numbers), numbers, 0).astype(DTYPES[dtype].numpy)
    for call in (DROPOUT, SPATIAL, ALPHA, NOISE, FACTOR):
        graph, catalog = model(f"y = {call}", f"x: {dtype}[40, 30]", f"y: {dtype}[40, 30]")
        made = Case(graph, {"x": numbers}, {}, catalog)
        given = drawn(made, 1)
        tiny = DTYPES[dtype].tiny
        y = given["y"].astype(np.float64)
        for flushed in (y, np.where(np.abs(y) < tiny, 0, y)):
            given["y"] = flushed.astype(DTYPES[dtype].numpy)
            assert not [t for t in judged(made, given) if t.startswith("wrong")], call


# What a type does not hold, or holds as denormal numbers, which count as 0 where these are flushed.
_LOST = (
    "random_normal(; shape = [6, 8], stddev = 1e-8, dtype = f16)",
    "random_normal(; shape = [6, 8], stddev = 0, dtype = f16)",
    "truncated_normal(; shape = [6, 8], stddev = 1e-8, dtype = f16)",
    "random_uniform(; shape = [6, 8], low = 0, high = 1e-8, dtype = f16)",
    "random_uniform(; shape = [6, 8], low = 0, high = 1e-6, dtype = f16)",
)


@pytest.mark.parametrize("call", _LOST)
def test_numbers_that_are_lost_raise_no_alarm(call: str) -> None:
    graph, catalog = model(f"y = {call}", "x: f32[1]", "y: f16[6, 8]")
    made = Case(graph, {"x": np.zeros(1, np.float32)}, {}, catalog)
    said = judged(made, {"y": np.zeros((6, 8), np.float16)})
    assert not [text for text in said if text.startswith("wrong")]


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_nothing_is_spread_evenly_up_to_infinity(number: float) -> None:
    call = "random_uniform(; shape = [6, 8], high = inf)"
    graph, catalog = model(f"y = {call}", "x: f32[1]", "y: f32[6, 8]")
    made = Case(graph, {"x": np.zeros(1, np.float32)}, {}, catalog)
    said = judged(made, {"y": np.full((6, 8), number, np.float32)})
    assert not [text for text in said if text.startswith("wrong")]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_uniform_number_that_is_rounded_stays_below_one(dtype: str) -> None:
    """What is certain to happen does: ONNX draws in f32, and one in a thousand would round to 1."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    graph, catalog = model("y = bernoulli(p)", f"p: {dtype}[20000]", "y: f32[20000]")
    made = Case(graph, {"p": np.ones(20000, DTYPES[dtype].numpy)}, {}, catalog)
    with Session(["onnxruntime"]) as session:
        (verdict,) = session.compare([made])[0].verdicts["onnxruntime"]
    assert verdict.verdict == "agrees", verdict.message


def test_nothing_is_said_of_a_call_that_does_not_fit() -> None:
    graph, catalog = model("y = bernoulli(p)", "p: f32[3]", "y: f32[3]")
    made = Case(graph, {"p": np.array([0.5, 1.5, 0.5], np.float32)}, {}, catalog)
    (found,) = judged(made, {**made.inputs, "y": np.full(3, 7, np.float32)})
    assert found.startswith("unstable")


@pytest.mark.parametrize(("diagonal", "verdict"), [(0.0, "unstable"), (2.0, "agrees")])
def test_what_is_not_promised_may_be_refused(diagonal: float, verdict: str) -> None:
    """TensorFlow has an exception for a matrix that has no inverse."""
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    graph, catalog = model("y = inverse(x)", "x: f32[2, 2]", "y: f32[2, 2]")
    made = Case(graph, {"x": np.diag(np.full(2, diagonal, np.float32))}, {}, catalog)
    with Session(["tf"]) as session:
        (found,) = session.compare([made])[0].verdicts["tf"]
    assert found.verdict == verdict, found.message


# ---- a result of which the equation gives one choice -------------------------------------------

TIES = """
\"\"\"Where a row has its largest element: any such place.\"\"\"
op place[T: float](x: T[N, C]) -> at: i64[N] {
  require some_: 0 < C else "no element"
  some at: i64[N]
  at[n] = argmax(c < C) x[n, c]
  ensure largest: all(n < N) x[n, at[n]] == max(c < C) x[n, c] else "an element is larger"
}
"""


def test_any_of_equals_is_right() -> None:
    graph, catalog = model("y = place(x)", "x: f32[3, 4]", "y: i64[3]", TIES)
    x = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, 1, 2, 3]], dtype=np.float32)
    made = Case(graph, {"x": x}, {}, catalog)
    for right in ([1, 0, 3], [2, 3, 3]):
        assert judged(made, {"x": x, "y": np.array(right)})[0].startswith("agrees")
    (wrong,) = judged(made, {"x": x, "y": np.array([0, 0, 3])})
    assert wrong == "wrong place.largest: an element is larger"


def test_the_laws_are_documented() -> None:
    from pathlib import Path

    text = (Path(__file__).parent.parent / "docs" / "language.md").read_text("utf-8")
    for law in LAWS:
        assert f"`{law}" in text


# ---- what is carried from call to call in more digits than it is shown in ----------------------


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_what_is_shown_may_have_been_rounded_once_more(dtype: str) -> None:
    """The second call reads the first one's result in f32; shown is what it rounds to."""
    graph, catalog = model(
        "a = exp(x)\n  y = sin(a)", f"x: {dtype}[4096] in [2, 4]", f"y: {dtype}[4096]"
    )
    made = case(graph, catalog, 0)
    narrow = DTYPES[dtype].numpy
    exact_a = np.exp(made.inputs["x"].astype(np.float64))
    right = {"a": exact_a.astype(narrow), "y": np.sin(exact_a).astype(narrow)}
    node = graph.nodes[-1]

    def told(given: dict[str, Array], arithmetic: Arithmetic) -> str:
        (verdict,) = judge_call(made, node, {"a": given["a"]}, given, "t", arithmetic)
        return verdict.verdict

    assert told(right, STANDARD) in ("wrong", "inaccurate")
    carries = Arithmetic(carries=True)
    assert told(right, carries) in ("agrees", "rounding")
    # nothing more is allowed than that: twice as far off is told
    off = right["a"].astype(np.float64) * (1 + 3 * DTYPES[dtype].unit)
    assert told({**right, "y": np.sin(off).astype(narrow)}, carries) in ("wrong", "inaccurate")
    # nor of what is given, which nobody has rounded
    alone = Graph("call", dict(graph.inputs), nodes=[node], values=graph.values)
    made.graph = alone
    assert told(right, carries) in ("wrong", "inaccurate")


@pytest.mark.parametrize("way", ["", "v = identity(a)\n  "])
def test_what_is_shown_of_a_product_may_not_be_what_was_read(way: str) -> None:
    """A scale that has been moved past a call; in between it is only shown."""
    read = "v" if way else "a"
    graph, catalog = model(
        f"a = multiply(x, 0.7)\n  {way}y = add({read}, w)",
        "x: f32[64] in [1, 2], w: f32[64]", "y: f32[64]",
    )  # fmt: skip
    made = case(graph, catalog, 0)
    x = made.inputs["x"].astype(np.float64)
    made.inputs["w"] = w = np.zeros_like(made.inputs["w"])
    a = (made.inputs["x"] * np.float32(0.7)).astype(np.float64)
    towards = np.where(a < x * np.float32(0.7), 9, -9).astype(np.float32)
    scaled = np.nextafter(a.astype(np.float32), towards)
    right = {"a": a, "v": a, "y": scaled}
    right = {name: array.astype(np.float32) for name, array in right.items()}
    node = graph.nodes[-1]

    def told(given: dict[str, Array], arithmetic: Arithmetic) -> str:
        fed = {read: given[read], "w": w}
        (verdict,) = judge_call(made, node, fed, given, "t", arithmetic)
        return verdict.verdict

    assert told(right, STANDARD) in ("wrong", "inaccurate")
    folds = Arithmetic(folds=True)
    assert told(right, folds) in ("agrees", "rounding")
    off = {**right, "y": (right["y"] * np.float32(1 + 1e-6)).astype(np.float32)}
    assert told(off, folds) in ("wrong", "inaccurate")
    # a sum is read as it is shown
    graph, catalog = model(
        "a = add(x, 0.7)\n  y = add(a, w)",
        "x: f32[64] in [1, 2], w: f32[64]", "y: f32[64]",
    )  # fmt: skip
    made, node, read = case(graph, catalog, 0), graph.nodes[-1], "a"
    assert told({"a": right["a"], "y": right["y"]}, folds) in ("wrong", "inaccurate")


def test_an_open_call_is_not_held_to_a_digit_that_is_only_shown() -> None:
    """A probability of 0.99999 is 1 where f16 shows it, and a 0 drawn from it is no fault."""
    graph, catalog = model(
        "p = sigmoid(x)\n  y = bernoulli(p; dtype = f16)", "x: f16[4]", "y: f16[4]"
    )
    made = case(graph, catalog, 0)
    shown = {"p": np.ones(4, np.float16), "y": np.array([0, 1, 1, 1], np.float16)}
    node = graph.nodes[-1]

    def told(arithmetic: Arithmetic) -> str:
        (verdict,) = judge_call(made, node, {"p": shown["p"]}, shown, "t", arithmetic)
        return verdict.verdict

    assert told(STANDARD) == "wrong"
    assert told(Arithmetic(carries=True)) != "wrong"


@pytest.mark.parametrize("target", ["onnxruntime", "onnxruntime:plain"])
def test_no_call_behind_an_open_one_is_blamed_for_what_is_carried(target: str) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    graph, catalog = model(
        "n = gaussian_noise(x; stddev = 1, training = true)\n  a = exp(n)\n  y = sin(a)",
        "x: f16[4096] in [2, 4]", "y: f16[4096]",
    )  # fmt: skip
    with Session([target]) as session:
        (outcome,) = session.compare([case(graph, catalog, 0)])
    assert {v.verdict for v in outcome.verdicts[target]} <= {"agrees", "rounding", "unstable"}


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_what_is_infinite_stays_so_where_it_is_not_dropped(dtype: str) -> None:
    graph, catalog = model(
        "y = dropout(x; rate = 0.5, training = true)", f"x: {dtype}[4]", f"y: {dtype}[4]"
    )
    kind = DTYPES[dtype].numpy
    x = np.array([np.inf, -np.inf, np.inf, 1], kind)
    made = case(graph, catalog, 0)

    def told(results: list[float]) -> str:
        (verdict,) = judged(made, {"x": x, "y": np.array(results, kind)})
        return verdict.split()[0]

    assert told([np.inf, 0, np.inf, 2]) == "agrees"
    assert told([np.inf, 0, np.nan, 2]) == "wrong"  # infinity was multiplied by 0
    assert told([np.inf, np.inf, 0, 2]) == "wrong"
    x[3] = np.nan  # which is equal to nothing, itself neither
    node = graph.nodes[-1]
    assert not judge_call(made, node, {"x": x}, {"x": x, "y": x}, "t")


@pytest.mark.parametrize("name", OPEN)
def test_infinite_operands_raise_no_alarm(name: str) -> None:
    for seed in range(60):
        limits = Limits(elements=60, length=9)
        graph = generate(builtin(), seed, ops=(name,), size=(1, 1), limits=limits).graph
        if not graph.inputs or not graph.nodes[-1].expansion(builtin()).is_open:
            continue
        if graph.nodes[-1].instance.deferred:  # a probability is not infinite
            continue
        made = case(graph, builtin(), seed)
        fed = {
            one: np.where(np.arange(a.size).reshape(a.shape) % 3 == 0, np.inf, a).astype(a.dtype)
            for one, a in made.inputs.items()
        }
        again = Case(graph, fed, made.params, builtin())
        alarms = [one for one in judged(again, drawn(again, seed)) if one.startswith("wrong")]
        assert not alarms, (seed, alarms)
