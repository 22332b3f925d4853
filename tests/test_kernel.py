"""Kernels, products of matrices and the reference that chooses, against the exact meaning."""

import itertools
import math
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import equations as eq
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.equations import Apply, Const, Index, Read, Reduce, Size, TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import contraction, exact, gemm, kernel, kernel_cache, reference, vector
from irlang.interp.kernel_functions import ON_REALS
from irlang.interp.kernel_source import generate
from irlang.interp.plain import load
from irlang.interp.schedule import Recurrence, schedule
from irlang.parser import parse
from irlang.scalar import SCALARS, WHOLE
from tests.bounds import assert_close, radii

R, J, K = Index("i"), Index("j"), Index("k")
X, Y, W = TensorInfo((3, 4), "f64"), TensorInfo((4,), "f64"), TensorInfo((4,), "i64")
INPUTS = {"x": X, "y": Y, "w": W}


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Kernels of this session are compiled anew, so that a cold cache is what is tested."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    kernel_cache.folder.cache_clear()
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before
    kernel_cache.folder.cache_clear()


def expansion_of(*equations: eq.Equation, **inputs: TensorInfo) -> eq.Expansion:
    infos = {**inputs, **{e.target: e.info for e in equations}}
    return eq.Expansion(tuple(inputs), (equations[-1].target,), equations, infos)


def by_kernel(expansion: eq.Expansion, inputs: dict[str, Any]) -> dict[str, Any]:
    tensors = {name: load(expansion.tensors[name], a) for name, a in inputs.items()}
    for step in schedule(expansion.equations):
        tensors |= kernel.evaluate(step, tensors, expansion.tensors)
    return tensors


def agree(expansion: eq.Expansion, inputs: dict[str, Any], got: dict[str, Any]) -> None:
    expected = exact.evaluate(expansion, inputs)
    allowed = radii(expansion, inputs)
    for equation in expansion.equations:
        name = equation.target
        assert_close(got[name], expected[name], allowed.get(name, 0.0))


# ---- random equations -------------------------------------------------------------------------

numbers = st.one_of(st.integers(-3, 3), st.floats(-4, 4, width=32)).map(float)
Place = tuple[eq.Expr, ...]
index_of_x: st.SearchStrategy[Place] = st.sampled_from(
    [(R, J), (R, Apply("-", (Const(3), J))), (Apply("%", (J, Const(3))), J), (R, Read("w", (J,)))]
)
outside: st.SearchStrategy[Place] = st.sampled_from(
    [(Apply("-", (R, Const(1))), J), (R, Apply("-", (Apply("*", (J, Const(2))), Const(1))))]
)
leaves = st.one_of(
    numbers.map(Const),
    st.integers(-2, 2).map(lambda n: Size("n", n)),
    st.just(J),
    index_of_x.map(lambda index: Read("x", index)),
    st.tuples(outside, numbers).map(lambda p: Read("x", p[0], Const(p[1]))),
    outside.map(lambda index: Read("x", index, Read("y", (J,)))),
    st.just(Read("y", (J,))),
    st.just(Read("w", (J,))),
)
conditions: st.SearchStrategy[eq.Expr] = st.sampled_from(
    [
        Apply("<", (R, J)),
        Apply("==", (Read("w", (J,)), Const(1))),
        Apply("and", (Apply(">", (J, Const(0))), Apply("!=", (R, Const(1))))),
        eq.Inside("x", (Apply("+", (R, Const(1))), J)),
    ]
)
bodies = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), inner, inner).map(
            lambda p: Apply(p[0], (p[1], p[2]))
        ),
        st.tuples(st.sampled_from(["neg", "abs", "sq", "tanh", "sin"]), inner).map(
            lambda p: Apply(p[0], (p[1],))
        ),
        st.tuples(conditions, inner, inner).map(lambda p: Apply("select", p)),
    ),
    max_leaves=5,
)
summands = st.tuples(st.sampled_from(["sum", "max", "min", "prod"]), bodies, st.none() | conditions)


@st.composite
def random_equations(draw: st.DrawFn) -> eq.Equation:
    """`z[i, j] = body`, or a reduction over j and k, `k` standing in some places for j."""
    if draw(st.booleans()):
        body = draw(bodies)
        return eq.Equation("z", (("i", Size("N", 3)), ("j", Size("M", 4))), body, _type("z", 3, 4))
    which, inner, where = draw(summands)
    bound = Size("M", 4) if draw(st.booleans()) else Apply("+", (R, Const(1)))
    body = Apply("+", (Reduce(which, (("j", bound),), where, inner), draw(numbers.map(Const))))
    return eq.Equation("z", (("i", Size("N", 3)),), body, _type("z", 3))


def _type(_: str, *shape: int) -> TensorInfo:
    return TensorInfo(shape, "f64")


def some_inputs(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(-4, 4, (3, 4)),
        "y": rng.uniform(-4, 4, 4),
        "w": rng.integers(0, 4, 4),
    }


@settings(max_examples=20)  # each is compiled, for two thirds of a second
@given(random_equations(), st.integers(0, 2**16))
def test_kernels_of_random_equations(equation: eq.Equation, seed: int) -> None:
    expansion = expansion_of(equation, **INPUTS)
    inputs = some_inputs(seed)
    agree(expansion, inputs, by_kernel(expansion, inputs))


@settings(max_examples=150)
@given(random_equations(), st.integers(0, 2**16))
def test_reference_of_random_equations(equation: eq.Equation, seed: int) -> None:
    expansion = expansion_of(equation, **INPUTS)
    inputs = some_inputs(seed)
    agree(expansion, inputs, reference.evaluate(expansion, inputs))


# ---- products of matrices ---------------------------------------------------------------------


@st.composite
def random_contractions(draw: st.DrawFn) -> tuple[eq.Expansion, dict[str, Any]]:
    """A sum of products of two or three reads at affine places, of any orders of axes."""
    extents = {name: draw(st.integers(1, 4)) for name in "abcdef"}
    free = draw(st.permutations("abc"))[: draw(st.integers(0, 3))]
    summed = draw(st.permutations("def"))[: draw(st.integers(1, 2))]
    used = [*free, *summed]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    inputs: dict[str, Any] = {}
    factors: list[eq.Expr] = []
    left = list(used)
    for number in range(draw(st.integers(2, 3))):
        names = [n for n in used if draw(st.booleans())]
        if number == 0:
            names = [n for n in used if n in names or n in left[::2]]
        if number == 1:
            names = [n for n in used if n in names or n not in left[::2]]
        index: list[eq.Expr] = []
        shape: list[int] = []
        for name in draw(st.permutations(names)):
            stride, shift = draw(st.integers(1, 2)), draw(st.integers(-2, 1))
            place = Apply("+", (Apply("*", (Index(name), Const(stride))), Const(shift)))
            index.append(place)
            shape.append(draw(st.integers(1, 7)))
        tensor = f"t{number}"
        inputs[tensor] = rng.integers(-8, 9, shape).astype(float)
        factors.append(Read(tensor, tuple(index), Const(float(draw(st.integers(0, 2))))))
    body = factors[0]
    for factor in factors[1:]:
        body = Apply("*", (body, factor))
    bounds = {n: Size(n, extents[n]) for n in used}
    total = Reduce("sum", tuple((n, bounds[n]) for n in summed), None, body)
    info = TensorInfo(tuple(extents[n] for n in free), "f64")
    equation = eq.Equation("z", tuple((n, bounds[n]) for n in free), total, info)
    types = {name: TensorInfo(value.shape, "f64") for name, value in inputs.items()}
    return expansion_of(equation, **types), inputs


@settings(max_examples=150)
@given(random_contractions(), st.sampled_from([1, 7, gemm.BLOCK]))
def test_contractions_are_exact_on_small_integers(
    case: tuple[eq.Expansion, dict[str, Any]], block: int
) -> None:
    expansion, inputs = case
    (equation,) = expansion.equations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "BLOCK", block)
        products, rest = contraction.find(equation, expansion.tensors)
        tensors = dict(inputs)
        infos = dict(expansion.tensors)

        def plain(part: eq.Equation, _: Any) -> Any:
            return vector.evaluate_equation(part, tensors, infos)

        for product in products:
            tensors[product.target] = product.run(tensors, plain)
            infos[product.target] = product.info
        got = vector.evaluate_equation(rest, tensors, infos)
    np.testing.assert_array_equal(got, exact.evaluate(expansion, inputs)["z"].numpy())


SOURCE = """
op conv[T: float](x: T[N, C, S..], w: T[F, G, K..], b: T[F] = 0;
    stride: int[S..] = 1, dilation: int[S..] = 1, lo: int[S..] = 0, hi: int[S..] = 0)
    -> y: T[N, F, O..] {
  let groups = C // G
  let O.. = (S + lo + hi - dilation * (K - 1) - 1) // stride + 1
  y[n, f, o..] = b[f] + sum(c < G, k.. < K..)
    (x[n, f // (F // groups) * G + c, (o*stride + k*dilation - lo)..] ?? 0) * w[f, c, k..]
}
op spread[T: float](x: T[N, C, S], w: T[C, F, K]; stride: int = 2)
    -> y: T[N, F, (S - 1) * stride + K] {
  y[n, f, o] = sum(c < C, k < K | (o - k) % stride == 0)
    (x[n, c, (o - k) // stride] ?? 0) * w[c, f, k]
}
op gated[T: float](x: T[L, N, C], w: T[2, H, C], r: T[2, H, H], h0: T[N, H] = 0;
    reverse: bool = false) -> y: T[L, N, H] {
  let at(t) = if reverse then L - 1 - t else t
  g[t < L, q < 2, n < N, j < H] = (sum(c < C) x[at(t), n, c] * w[q, j, c])
                                + sum(k < H) (h[t-1, n, k] ?? h0[n, k]) * r[q, j, k]
  h[t < L, n < N, j < H] = sigmoid(g[t, 0, n, j]) * tanh(g[t, 1, n, j])
                         + 0.5 * (h[t-1, n, j] ?? h0[n, j])
  y[t, n, j] = h[at(t), n, j]
}
op later[T: float](x: T[L, N], w: T[N, N]) -> y: T[L, N] {
  y[t, n] = x[t, n] + sum(k < N) (y[t+1, k] ?? 1) * w[k, n]
}
op softmax[T: float](x: T[A.., K @ axis, B..]; axis: int = -1) -> y: T[A.., K @ axis, B..] {
  m[a.. < A.., b.. < B..] = max(k < K) x[a.., k, b..]
  y[a.., k, b..] = exp(x[a.., k, b..] - m[a.., b..]) / sum(j < K) exp(x[a.., j, b..] - m[a.., b..])
}
op pick[T: any](x: T[A.., N]; k: int) -> y: T[A.., k], at: int[A.., k] {
  rank[a.. < A.., i < N] =
    count(j < N | x[a.., j] > x[a.., i] or (x[a.., j] == x[a.., i] and j < i))
  at[a.., r] = the(i < N | rank[a.., i] == r) i
  y[a.., r] = x[a.., at[a.., r]]
}
"""
CATALOG = Catalog(("test", op) for op in parse(SOURCE).ops)


def call(name: str, attrs: dict[str, Any], **shapes: tuple[int, ...]) -> eq.Expansion:
    op = CATALOG.op(name)
    assert op is not None
    instance = instantiate(op, {n: TensorInfo(s, "f64") for n, s in shapes.items()}, attrs)
    assert not instance.faults
    return expand(instance, CATALOG)


def whole(expansion: eq.Expansion, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        n: rng.integers(-8, 9, expansion.tensors[n].shape).astype(float) for n in expansion.inputs
    }


def rough(expansion: eq.Expansion, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {n: rng.uniform(-1, 1, expansion.tensors[n].shape) for n in expansion.inputs}


PRODUCTS_ONLY = {"SMALL": 0, "COMPILE": 2**60, "LOAD": 2**60, "_PRODUCT": 0}
KERNELS_ONLY = {"SMALL": 0, "COMPILE": 0, "LOAD": 0, "IMPORT": 0, "_PRODUCT": 2**60}
ALL_WAYS = [PRODUCTS_ONLY, KERNELS_ONLY, {"SMALL": 2**60}]


@pytest.fixture(params=ALL_WAYS, ids=["products", "kernels", "vector"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in request.param.items():
        monkeypatch.setattr(reference, name, value)
    if request.param is PRODUCTS_ONLY:
        monkeypatch.setattr(contraction.Contraction, "narrow", False)


CONVOLUTIONS = [
    ({"stride": 2, "dilation": (1, 2), "lo": (1, 3), "hi": 2}, (2, 4, 7, 6), (6, 2, 3, 2)),
    ({"lo": 1, "hi": 0}, (1, 3, 9), (4, 3, 2)),
    ({}, (2, 3, 4, 3, 5), (3, 1, 2, 3, 1)),
    ({"stride": (3, 1), "hi": (2, 0)}, (0, 2, 4, 4), (2, 2, 2, 2)),
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("attrs", "x", "w"), CONVOLUTIONS)
def test_convolutions_are_exact_on_small_integers(
    attrs: dict[str, Any], x: tuple[int, ...], w: tuple[int, ...]
) -> None:
    expansion = call("conv", attrs, x=x, w=w, b=(w[0],))
    inputs = whole(expansion)
    got = reference.evaluate(expansion, inputs)["y"]
    np.testing.assert_array_equal(got, exact.evaluate(expansion, inputs)["y"].numpy())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("weight", [1.0, math.inf, math.nan])
def test_a_filter_hides_what_is_not_finite(weight: float) -> None:
    """A transposed convolution: most products are left out, and may be infinite times zero."""
    expansion = call("spread", {}, x=(2, 3, 5), w=(3, 4, 3))
    inputs = whole(expansion)
    inputs["w"][1, :, 1] = weight
    inputs["x"][0, :, 2] = 0
    got = reference.evaluate(expansion, inputs)["y"]
    np.testing.assert_array_equal(got, exact.evaluate(expansion, inputs)["y"].numpy())
    (products, _) = contraction.find(expansion.equations[0], expansion.tensors)
    assert [p.applies({n: np.asarray(a) for n, a in inputs.items()}) for p in products] == [
        math.isfinite(weight)
    ]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences_forward(reverse: bool) -> None:
    expansion = call(
        "gated", {"reverse": reverse}, x=(4, 2, 3), w=(2, 4, 3), r=(2, 4, 4), h0=(2, 4)
    )
    inputs = rough(expansion)
    agree(expansion, inputs, reference.evaluate(expansion, inputs))


@pytest.mark.usefixtures("way")
def test_recurrences_backward() -> None:
    expansion = call("later", {}, x=(5, 4), w=(4, 4))
    inputs = rough(expansion)
    (step,) = schedule(expansion.equations)
    assert isinstance(step, Recurrence)
    assert step.descending
    agree(expansion, inputs, reference.evaluate(expansion, inputs))


def test_a_recurrence_multiplies_matrices_in_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 columns: the choice that users get, not one that a test forces."""
    for name in ("COMPILE", "LOAD", "IMPORT"):
        monkeypatch.setattr(reference, name, 0)
    taken: list[int] = []
    run = contraction.Contraction.run

    def counted(self: contraction.Contraction, *args: Any) -> Any:
        taken.append(self.work)
        return run(self, *args)

    monkeypatch.setattr(contraction.Contraction, "run", counted)
    expansion = call("gated", {}, x=(3, 4, 16), w=(2, 32, 16), r=(2, 32, 32))
    inputs = rough(expansion)
    got = reference.evaluate(expansion, inputs)
    assert len(taken) >= 2  # the input's projection, and the state's where it is no first step
    agree(expansion, inputs, got)


@pytest.mark.usefixtures("way")
def test_equal_elements_keep_their_order() -> None:
    expansion = call("pick", {"k": 5}, x=(2, 5))
    x = np.array([[1.0, 3, 1, 3, 2], [0, 0, 0, 0, 0]])
    got = reference.evaluate(expansion, {"x": x})
    np.testing.assert_array_equal(got["at"], [[1, 3, 4, 0, 2], [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(got["y"], -np.sort(-x, axis=-1))


def test_a_sum_that_lacks_an_index_is_computed_once() -> None:
    expansion = call("softmax", {"axis": 0}, x=(5, 3))
    x = rough(expansion)["x"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KERNELS_ONLY.items():
            patch.setattr(reference, name, value)
        got = reference.evaluate(expansion, {"x": x})["y"]
    want = exact.evaluate(expansion, {"x": x})["y"].numpy()
    # exp is good to 4 ulps, all terms are positive: relative errors add, with 5 terms and 3 steps
    np.testing.assert_allclose(got, want, rtol=(2 * (2 * 4 + 2) + 5 + 3) * 2.0**-53, atol=0)


# ---- scalars, kinds, faults -------------------------------------------------------------------


def one(body: eq.Expr, size: int, dtype: str = "f64", **inputs: Any) -> tuple[Any, Any]:
    """`y[i < size] = body` by a kernel and exactly."""
    kinds = {"f": "f64", "i": "i64", "b": "bool"}
    types = {n: TensorInfo(v.shape, kinds[v.dtype.kind]) for n, v in inputs.items()}
    equation = eq.Equation("z", (("i", Size("N", size)),), body, TensorInfo((size,), dtype))
    expansion = expansion_of(equation, **types)
    return by_kernel(expansion, inputs)["z"], exact.evaluate(expansion, inputs)["z"].numpy()


# Functions that numba has not; their equations are evaluated by NumPy.
RARE = {"polygamma", "erfcx", "erfinv", "ndtri", "i0e", "i1e", "k0e", "k1e"}
RARE |= {"j0", "j1", "y0", "y1", "expint", "spence", "dawson", "fresnel_sin", "fresnel_cos"}
RARE |= {"gammainc", "gammaincc", "zeta"}


def test_every_scalar_function_can_be_compiled_but_for_rare_ones() -> None:
    assert {*ON_REALS, *WHOLE, "select", "and", "or", "not"} == SCALARS.keys() - RARE


def test_large_equations_of_rare_functions_are_evaluated_by_numpy() -> None:
    x = np.linspace(-0.9, 0.9, 300_000)
    info = TensorInfo(x.shape, "f64")
    body = Apply("+", (Apply("erfinv", (Read("x", (R,)),)), Read("x", (R,))))
    equation = eq.Equation("z", (("i", Size("N", len(x))),), body, info)
    found = reference.evaluate(expansion_of(equation, x=info), {"x": x})["z"]
    np.testing.assert_array_equal(found, SCALARS["erfinv"].numpy(x) + x)


def test_recurrences_of_rare_functions_are_evaluated_by_numpy() -> None:
    before = Read("z", (Apply("-", (R, Const(1))),), Const(0.25))
    body = Apply("i0e", (Apply("+", (before, Read("x", (R,)))),))
    got = expansion_of(
        eq.Equation("z", (("i", Size("N", 9)),), body, TensorInfo((9,), "f64")),
        x=TensorInfo((9,), "f64"),
    )
    x, state = np.linspace(-3, 3, 9), 0.25
    found = reference.evaluate(got, {"x": x})["z"]
    for term, value in zip(x, found, strict=True):
        state = float(SCALARS["i0e"].numpy(state + term))
        assert value == state


EDGES = np.array(
    [math.nan, math.inf, -math.inf, 0.0, -1.0, 1.0, 2.5, -2.5, 1e300, -1e300, 3.0, -0.5]
)


@pytest.mark.parametrize("arity", [1, 2])
def test_functions_at_edges(arity: int) -> None:
    """All functions in one kernel, so that one compilation does."""
    names = [
        row.name for row in SCALARS.values()
        if row.arity == arity and row.name in ON_REALS and row.name != "int"
    ]  # fmt: skip
    grid = np.array(list(itertools.product(EDGES, repeat=arity))).T.copy()
    at = Apply("//", (R, Size("C", grid.shape[1])))
    place = Apply("%", (R, Size("C", grid.shape[1])))
    args = tuple(Read("x", (Const(a), place)) for a in range(arity))
    body: eq.Expr = Const(0.0)
    for number, name in enumerate(names):
        body = Apply("select", (Apply("==", (at, Const(number))), Apply(name, args), body))
    with np.errstate(all="ignore"):
        got, want = one(body, grid.shape[1] * len(names), x=grid)
    for name, ours, exactly in zip(
        names, got.reshape(len(names), -1), want.reshape(len(names), -1), strict=True
    ):
        finite = np.isfinite(exactly)
        np.testing.assert_array_equal(ours[~finite], exactly[~finite], err_msg=name)
        allowed = (SCALARS[name].ulps + 1) * np.spacing(
            np.maximum(np.abs(exactly[finite]), SCALARS[name].least)
        )
        assert (np.abs(ours[finite] - exactly[finite]) <= allowed).all(), name


@pytest.mark.parametrize("dtype", ["i8", "u16", "i64"])
def test_integers_wrap(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**40), 2**40, 20)
    got, want = one(Apply("*", (Read("x", (R,)), Const(2**30 - 1))), 20, dtype, x=x)
    np.testing.assert_array_equal(got.astype(np.int64), want.astype(np.int64))


def test_integer_functions() -> None:
    a, b = np.array(list(itertools.product(range(-7, 8, 2), range(-3, 4)))).T.copy()
    first, second = Read("a", (R,)), Read("b", (R,))
    body: eq.Expr = Const(0)
    for name in ("//", "%", "ceildiv", "max", "min", "+", "-"):  # as digits of one number
        body = Apply("+", (Apply("*", (body, Const(100))), Apply(name, (first, second))))
    for name in ("abs", "sign", "neg", "sq"):
        body = Apply("+", (Apply("*", (body, Const(100))), Apply(name, (first,))))
    got, want = one(body, len(a), "i64", a=a, b=b)
    np.testing.assert_array_equal(got, want)


def test_functions_of_integers_alone() -> None:
    edges = [0, 1, -1, 2, 5, -7, 63, 2**31, 2**62 + 1, 2**63 - 1, -(2**63)]
    a, b = np.array(list(itertools.product(edges, repeat=2)), np.int64).T.copy()
    first, second = Read("a", (R,)), Read("b", (R,))
    for name in sorted(WHOLE):
        args = (first, second)[: SCALARS[name].arity]
        got, want = one(Apply(name, args), len(a), "i64", a=a, b=b)
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_reductions_with_ties_nan_and_filters() -> None:
    x = np.array([[2.0, 5, 5, 1], [math.nan, 1, math.nan, 7], [1, math.nan, 1, 1], [0, 0, 0, 0]])
    element = Read("x", (R, K))
    late = Apply(">", (K, Const(0)))
    bound = (("k", Size("M", 4)),)
    parts: list[eq.Expr] = [Reduce(which, bound, late, element) for which in ("argmax", "argmin")]
    parts += [Reduce("count", bound, Apply("==", (element, Const(1))), None)]
    parts += [
        Apply("int", (Reduce(which, bound, None, Apply(">", (element, Const(0)))),))
        for which in ("all", "any")
    ]
    body: eq.Expr = Const(0)
    for part in parts:
        body = Apply("+", (Apply("*", (body, Const(10))), part))
    got, want = one(body, 4, "i64", x=x)
    np.testing.assert_array_equal(got, want)
    got, want = one(Reduce("max", bound, late, element), 4, x=x)
    np.testing.assert_array_equal(got, want)


@pytest.mark.usefixtures("way")
def test_reading_outside_is_reported() -> None:
    info = TensorInfo((3,), "f64")
    equation = eq.Equation("z", (("i", Size("N", 3)),), Read("y", (Read("w", (R,)),)), info)
    expansion = expansion_of(equation, y=Y, w=TensorInfo((3,), "i64"))
    with pytest.raises(InvalidInput) as caught:
        reference.evaluate(expansion, {"y": np.zeros(4), "w": np.array([0, 4, 1])})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "run.outside"
    assert "`y`" in diagnostic.message
    assert "[4]" in diagnostic.message


def test_a_check_comes_before_the_work() -> None:
    info = TensorInfo((3,), "f64")
    equation = eq.Equation("z", (("i", Size("N", 3)),), Read("y", (Read("w", (R,)),)), info)
    expansion = expansion_of(equation, y=Y, w=TensorInfo((3,), "i64"))
    fits = Reduce("all", (("k", Size("N", 3)),), None, Apply("<", (Read("w", (K,)), Const(4))))
    expansion = replace(expansion, checks=(eq.Check("op.fits", fits, "an id is too large"),))
    with pytest.raises(InvalidInput, match=r"op\.fits: an id is too large"):
        reference.evaluate(expansion, {"y": np.zeros(4), "w": np.array([0, 4, 1])})


def test_what_does_not_fit_in_memory_is_refused() -> None:
    info = TensorInfo((2**20, 2**20, 2**20), "f64")
    binders = tuple((n, Size(n, 2**20)) for n in "ijk")
    expansion = expansion_of(eq.Equation("z", binders, Const(0.0), info))
    with pytest.raises(InvalidInput) as caught:
        reference.evaluate(expansion, {})
    assert caught.value.diagnostics[0].code == "run.memory"


def test_what_would_take_long_to_compile_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KERNELS_ONLY.items():
        monkeypatch.setattr(reference, name, value)
    body: eq.Expr = Const(0.0)
    for shift in range(150):
        place = Apply("%", (Apply("+", (R, Const(shift))), Const(4)))
        body = Apply("+", (body, Apply("tanh", (Read("y", (place,)),))))
    equation = eq.Equation("z", (("i", Size("N", 3)),), body, TensorInfo((3,), "f64"))
    expansion = expansion_of(equation, y=Y)
    before = len(kernel_cache._loaded)
    inputs = {"y": some_inputs(0)["y"]}
    agree(expansion, inputs, reference.evaluate(expansion, inputs))
    assert len(kernel_cache._loaded) == before


# ---- text and cache ---------------------------------------------------------------------------


def test_nothing_of_a_file_reaches_the_source() -> None:
    evil = "__import__('os').system('x')\n"
    binders = ((evil, Size(evil, 3)),)
    info = TensorInfo((3,), "f64")
    body = Apply("+", (Read(evil, (Index(evil),)), Size(evil + "2", 0.5)))
    source = generate(eq.Equation("z" + evil, binders, body, info), {evil: info, "z" + evil: info})
    assert "system" not in source.text
    assert "__import__" not in source.text


def test_calls_that_differ_in_sizes_share_a_kernel() -> None:
    texts = set()
    for size in (5, 9):
        expansion = call("conv", {"lo": 1, "hi": 1}, x=(1, 4, size), w=(2, 4, 3))
        texts.add(generate(expansion.equations[0], expansion.tensors).text)
    assert len(texts) == 1


def test_the_cache_is_private_and_what_was_changed_is_not_run() -> None:
    folder = kernel_cache.folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    text = "def kernel():\n    return 1\n"
    assert kernel_cache.load(text)() == 1
    (path,) = [p for p in folder.glob("k*.py") if p.read_text() == text]
    path.write_text("raise SystemExit('not ours')\n")
    kernel_cache._loaded.pop(text)
    assert kernel_cache.load(text)() == 1
    assert path.read_text() == text


def test_a_folder_that_others_could_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "irlang" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_cache.folder.cache_clear()
    used = kernel_cache.folder()
    kernel_cache.folder.cache_clear()
    assert used != folder
    assert stat.S_IMODE(used.stat().st_mode) == 0o700


def test_processes_may_compile_at_the_same_time(tmp_path: Path) -> None:
    program = (
        "from irlang import equations as eq; from irlang.interp import kernel; import numpy as np\n"
        "info = eq.TensorInfo((7,), 'f64')\n"
        "body = eq.Apply('exp', (eq.Read('x', (eq.Index('i'),)),))\n"
        "e = eq.Equation('z', (('i', eq.Size('N', 7)),), body, info)\n"
        "got = kernel.evaluate(e, {'x': np.zeros(7)}, {'x': info})['z']\n"
        "assert (got == 1).all()\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for run in runs:
        _, errors = run.communicate(timeout=120)
        assert run.returncode == 0, errors.decode()
    assert len(list((tmp_path / "irlang" / "kernels").glob("*.py"))) == 1
    assert not list((tmp_path / "irlang" / "kernels").glob("*.tmp"))
