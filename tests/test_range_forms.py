"""Polynomials of a few elements, their quotients, and rows of one length: what is proved of them
holds for numbers, every operation rounded to its type.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from irlang import equations as eq
from irlang.api import loads
from irlang.dtypes import DTYPES
from irlang.interp.range import analyse
from irlang.interp.unfolding import instance
from irlang.interp.values import Array

OPS: dict[str, Callable[..., Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "square": np.square, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip
ENDS = ((0.0, 5.0), (-2.0, 2.0), (0.0625, 20.0), (-0.984375, 0.984375))  # numbers of all types
MODELS, CALLS, SAMPLES = 12, 9, 3000


def drawn(numbers: np.random.Generator) -> tuple[list[tuple[float, float]], list[tuple[str, ...]]]:
    """Ranges of inputs, and calls: a name, an operation, and what it reads. Few elements stand in
    many terms, and what divides is a sum of squares and a number.
    """
    ends = [ENDS[i] for i in numbers.integers(len(ENDS), size=3)]
    values = ["a", "b", "c"]
    calls: list[tuple[str, ...]] = []
    for number in range(CALLS):
        names = ["add", "subtract", "subtract", "multiply", "square", "maximum", "minimum"]
        function = str(numbers.choice(names))
        read = [str(one) for one in numbers.choice(values[-5:], 2 - (function == "square"))]
        if number == CALLS // 2:
            own = [str(one) for one in numbers.choice(["a", "b", "c"], 2)]
            calls += [
                ("s", "square", own[0]), ("t", "square", own[1]), ("u", "add", "s", "t"),
                ("d", "add", "u", "0.001"), ("q", "divide", read[0], "d"),
            ]  # fmt: skip
            values.append("q")
        calls.append((f"v{number}", function, *read))
        values.append(f"v{number}")
    return ends, calls


def numbers_of(
    inputs: dict[str, Array], calls: list[tuple[str, ...]], dtype: np.dtype[np.generic]
) -> dict[str, Array]:
    """All values, rounded call by call."""
    found = dict(inputs)
    for name, function, *read in calls:
        args = [found[r] if r in found else np.asarray(float(r)).astype(dtype) for r in read]
        exact = OPS[function](*(arg.astype(np.float64) for arg in args))
        found[name] = exact.astype(dtype)
    return found


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_concrete_polynomials_lie_within(dtype: str) -> None:
    own = DTYPES[dtype].numpy
    for seed in range(MODELS):
        numbers = np.random.default_rng([seed, DTYPES[dtype].bits])
        ends, calls = drawn(numbers)
        signature = ", ".join(
            f"{name}: {dtype}[1] in [{low}, {high}]"
            for name, (low, high) in zip("abc", ends, strict=True)
        )
        body = "\n".join(f"  {name} = {f}({', '.join(read)})" for name, f, *read in calls)
        last = calls[-1][0]
        text = f"nnir 1\nmodel m({signature}) -> {last}: {dtype}[1] {{\n{body}\n}}\n"
        model = loads(text)
        ranges = analyse(model.graph, model.catalog).values
        corners = np.array(
            [*itertools.product(*((low, 0.5 * (low + high), high) for low, high in ends))]
        )
        lows, highs = np.array(ends).T
        even = lows + (highs - lows) * numbers.random((SAMPLES, 3))
        even[: SAMPLES // 3, 1] = even[: SAMPLES // 3, 0]  # where two of them cancel
        given = {
            name: np.clip(array, *end).astype(own)
            for name, array, end in zip("abc", np.concatenate([corners, even]).T, ends, strict=True)
        }
        with np.errstate(all="ignore"):
            made = numbers_of(given, calls, own)
        for name, array in made.items():
            values = array.astype(np.float64)
            values = values[np.isfinite(values)]
            if name in ranges and values.size:
                assert ranges[name].low <= values.min(), (seed, name, text)
                assert values.max() <= ranges[name].high, (seed, name, text)


def test_a_form_of_a_row_lies_within() -> None:
    """`u' G u` of a normalised row is no more than the largest eigenvalue of G."""
    text = """nnir 1
    model m(x: f32[4, 3] in [-3, 3]) -> y: f32[4, 1] {
      u = divide(x, sqrt(add(reduce_sum(square(x); axes = 1, keepdims = true), 1e-6)))
      p = slice(u; axes = 1, begin = 0, end = 1)
      q = slice(u; axes = 1, begin = 1, end = 2)
      r = slice(u; axes = 1, begin = 2, end = 3)
      y = subtract(multiply(p, q), multiply(q, r))
    }"""
    model = loads(text)
    found = analyse(model.graph, model.catalog).values["y"]
    assert np.sqrt(0.5) <= found.high <= 0.72
    assert -0.72 <= found.low <= -np.sqrt(0.5)


CENTRED = """nnir 1
model m(x: {dtype}[1, {count}] in [{low}, {high}]) -> y: {dtype}[1, 1] {{
  m = reduce_mean(x; axes = 1, keepdims = true)
  y = reduce_sum(square(subtract(x, m)); axes = 1, keepdims = true)
}}"""


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("low", "high"), [(-50, 50), (0, 30), (3, 4)])
@pytest.mark.parametrize("count", [2, 5, 16])
def test_squares_about_a_mean_lie_within(dtype: str, low: int, high: int, count: int) -> None:
    """They are the most where half of the numbers are at either end (Popoviciu's inequality),
    added up one after the other in the type itself.
    """
    model = loads(CENTRED.format(dtype=dtype, count=count, low=low, high=high))
    found = analyse(model.graph, model.catalog).values["y"]
    own = np.dtype(DTYPES[dtype].numpy)
    ends = np.where(np.arange(count) % 2, low, high).astype(own)
    between = np.random.default_rng(count).uniform(low, high, (40, count)).astype(own)
    most = 0.0
    for x in (ends, *between):
        mean = (np.cumsum(x, dtype=own)[-1] / own.type(count)).astype(own)
        made = float(np.cumsum(np.square(x - mean), dtype=own)[-1])
        assert found.low <= made <= found.high, x
        most = max(most, made)
    exact = count * (0.5 * (high - low)) ** 2
    assert found.high <= exact * {"f16": 1.4, "f32": 1.0001}[dtype]
    assert most > 0.8 * exact


def _range(text: str, name: str = "y") -> tuple[float, float]:
    model = loads(text)
    found = analyse(model.graph, model.catalog).values[name]
    return found.low, found.high


def test_the_rest_of_a_row_of_one_length_is_no_more_than_it() -> None:
    """As an element of a rotation is made of a quaternion."""
    low, high = _range("""nnir 1
    model m(q: f32[4, 4] in [-3, 3]) -> y: f32[4, 1] {
      u = divide(q, sqrt(add(reduce_sum(square(q); axes = 1, keepdims = true), 1e-6)))
      w, i, j, k = split(u; axis = 1, sizes = [1, 1, 1, 1])
      y = subtract(1.0, multiply(2.0, add(square(i), square(j))))
    }""")
    assert -1.001 <= low <= -0.999
    assert 1 <= high <= 1.001


@pytest.mark.parametrize("slopes", [(0.5, 90.0), (0.0625, 0.125), (300.0, 400.0)])
def test_a_parabola_is_least_at_an_end_or_where_it_is_flat(slopes: tuple[float, float]) -> None:
    """The divisor of a rational spline, of whatever slopes."""
    low, _ = _range(f"""nnir 1
    model m(t: f32[4] in [0, 1], s: f32[4] in [0.0625, 80], d: f32[4] in [{slopes[0]}, {slopes[1]}])
        -> y: f32[4] {{
      q = multiply(t, subtract(1.0, t))
      y = add(s, multiply(subtract(d, multiply(2.0, s)), q))
    }}""")
    t, s, d = np.meshgrid(np.linspace(0, 1, 1001), (0.0625, 80.0), slopes)
    least = float((s + (d - 2 * s) * t * (1 - t)).min())
    assert 0.9 * least <= low <= least


def test_a_logarithm_lies_below_what_its_argument_is_made_of() -> None:
    low, _ = _range("""nnir 1
    model m(x: f32[6] in [0, 20]) -> y: f32[6] { y = subtract(x, log(add(1.0, x))) }""")
    assert -1e-4 <= low <= 0


def test_an_index_of_a_sum_is_not_taken_for_one_that_is_read_at() -> None:
    """A step of a recurrence is read at the index of a sum, and is a sum over an index of the same
    name, in which another has the name that it could be given.
    """
    two = eq.Const(2)
    element = eq.Read("x", (eq.Index("k"), eq.Index("k'")))
    term = eq.Reduce("sum", (("k", two),), None, eq.Reduce("sum", (("k'", two),), None, element))
    found = instance(term, eq.Read("y", (eq.Index("k"),)))
    assert isinstance(found, eq.Reduce)
    assert isinstance(found.body, eq.Reduce)
    ((outer, _),), ((inner, _),) = found.binders, found.body.binders
    assert len({"k", outer, inner}) == 3
    assert found.body.body == eq.Read("x", (eq.Index(outer), eq.Index(inner)))


MEANS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "log": ("log({})", np.log), "sqrt": ("sqrt({})", np.sqrt),
    "reciprocal": ("divide(2.0, {})", lambda x: 2 / x), "cube": ("power({}, 3.0)", lambda x: x**3),
    "exp": ("exp({})", np.exp), "rsqrt": ("rsqrt({})", lambda x: 1 / np.sqrt(x)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("ends", [(0.125, 4.0), (1.0, 1.0625), (0.0078125, 8.0)])
@pytest.mark.parametrize("name", MEANS)
def test_functions_of_means_and_means_of_functions_lie_within(
    name: str, ends: tuple[float, float], dtype: str
) -> None:
    """Each operation rounded: of numbers that are nearly equal that alone says which is more."""
    call, function = MEANS[name]
    model = loads(f"""nnir 1
    model m(x: {dtype}[40, 6] in [{ends[0]}, {ends[1]}]) -> y: {dtype}[40] {{
      y = subtract({call.format("reduce_mean(x; axes = [1])")},
        reduce_mean({call.format("x")}; axes = [1]))
    }}""")
    found = analyse(model.graph, model.catalog).values["y"]
    own, numbers = np.dtype(DTYPES[dtype].numpy), np.random.default_rng(len(name))
    middle = numbers.uniform(*ends, (400, 1))
    near = middle * (1 + numbers.integers(-2, 3, (400, 6)) * DTYPES[dtype].unit)
    far = numbers.uniform(*ends, (400, 6))
    x = np.clip(np.concatenate([near, far]), *ends).astype(own)

    def mean(values: Array) -> Array:
        total: Array = np.cumsum(values, axis=1, dtype=own)[:, -1]
        return np.asarray(total / own.type(6)).astype(own)

    def applied(values: Array) -> Array:
        return np.asarray(function(values.astype(np.float64))).astype(own)

    made = (applied(mean(x)) - mean(applied(x))).astype(np.float64)
    assert found.low <= made.min()
    assert made.max() <= found.high
    rough = 200 * DTYPES[dtype].unit * max(1.0, *map(abs, function(np.array(ends))))
    convex = name not in ("log", "sqrt")
    assert (found.high if convex else -found.low) <= rough


def test_an_element_that_is_read_at_two_indices_is_there_twice() -> None:
    """On the diagonal of a matrix times itself both are one: what a row of them is no longer than
    says nothing of the sum of their squares, each counted twice.
    """
    low, high = _range("""nnir 1
    model m(x: f32[6, 3] in [-5, 5]) -> y: f32[1, 1] {
      s = divide(matmul(x, x; transpose_a = true), 6.0)
      a = slice(s; axes = [0, 1], begin = [0, 0], end = [1, 1])
      b = slice(s; axes = [0, 1], begin = [1, 1], end = [2, 2])
      y = add(a, b)
    }""")
    assert low <= 0
    assert 50 <= high <= 50.001


def test_two_terms_of_a_divisor_are_there_once_each() -> None:
    """Of `a * a / (a + a)` one term is as large as the other: it is added to it, not to both."""
    low, high = _range("""nnir 1
    model m(x: f32[1] in [1024, 1024]) -> y: f32[] {
      y = divide(reduce_sum(square(x); axes = 0),
        add(reduce_sum(x; axes = 0), reduce_sum(x; axes = 0)))
    }""")
    assert low <= 512 <= high


@pytest.mark.parametrize(
    ("condition", "least"),
    [("< 1", 1), ("<= 0", 1), ("> 0", 0), ("< 0", 0), ("< x[k] + 9", 1), ("< x[k]", 0)],
)
def test_what_holds_of_the_largest_holds_of_one(condition: str, least: int) -> None:
    """No element is above the largest: as many as that is true of are one at least."""
    low, _ = _range(f"""nnir 1
    op few[T: float](x: T[K]) -> y: T[] {{
      above[k < K] = sum(j < K) max(x[j] - x[k], 0)
      y[] = count(k < K | above[k] {condition})
    }}
    model m(x: f32[5] in [-8, 8]) -> y: f32[] {{ y = few(x) }}""")
    assert low == least


def test_an_index_around_a_sum_is_not_that_of_the_sum() -> None:
    """A step of a recurrence is a sum that another step is in, over indices of one name, as in a
    determinant by Faddeev and LeVerrier: what is known of an element outside is not known inside.
    """
    low, high = _range("""nnir 1
    op area[T: float](x: T[N, N]) -> y: T[] {
      m[k < N, i < N, j < N] = (sum(l < N) x[i, l] * (m[k - 1, l, j] ?? 0))
          + (if i == j then c[k - 1] ?? 1 else 0)
      c[k < N] = (-sum(i < N, j < N) x[i, j] * m[k, j, i]) / (k + 1)
      y[] = c[N - 1]
    }
    model m(x: f32[2, 2] in [-2, 2]) -> y: f32[] { y = area(x) }""")
    x = np.random.default_rng(0).choice([-2.0, 0.0, 2.0, 1.0, -1.0], (4000, 2, 2))
    made = x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0]
    assert low <= made.min()
    assert made.max() <= high


def test_a_difference_of_sums_either_of_which_may_be_infinite_is_none() -> None:
    """exp(prediction) is beyond f16, and so is a sum of those; one less the other is anything."""
    model = loads(
        """nnir 1
        model m(t: f16[2, 3] in [0, 1843], u: f16[] in [0, 167.5]) -> y: f16[] {
          param p: f16[2, 3] in [16376, 32752]
          y = smooth_l1(poisson(p, t; eps = 2e-7), u; beta = 0.5)
        }
        """
    )
    found = analyse(model.graph, model.catalog).values["y"]
    assert found.high == np.inf
    assert found.nan or found.low >= 0
