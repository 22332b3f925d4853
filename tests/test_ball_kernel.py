"""Kernels over balls give what NumPy gives over balls: the value, and a radius as large.

Their texts are run by Python here, which takes no compiler; one is compiled.
"""

from __future__ import annotations

import ast
import functools
import itertools
import sys
import types
from typing import Any

import numpy as np
import pytest

import irlang
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.build import generate
from irlang.graph import Graph
from irlang.instance import instantiate
from irlang.interp import kernel_cache, program, rounding, vector
from irlang.interp.balls import Ball, Balls
from irlang.interp.draws import feeds
from irlang.interp.plain import load
from irlang.interp.values import initial_values, inputs
from tests.narrow import Narrow
from tests.test_rounding import outside

Array = np.ndarray[Any, Any]
CATALOG = builtin()
_PLAIN = "log log1p sin cos tan sinh cosh sqrt isnan isinf isfinite frexp ldexp copysign"
_ARCS = ("asin", "acos", "atan", "asinh", "acosh", "atanh")


def _math() -> types.SimpleNamespace:
    """`math` by NumPy, whose functions give NaN and infinity where Python's raise."""
    found = {name: getattr(np, name) for name in _PLAIN.split()}
    found |= {name: getattr(np, f"arc{name[1:]}") for name in _ARCS}
    import math

    return types.SimpleNamespace(**found, erfc=math.erfc, lgamma=math.lgamma, pow=np.power)


class _Quotients(ast.NodeTransformer):
    """Quotients by NumPy, whose 0 / 0 is NaN as it is in a kernel; Python's raises."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.parse("np.divide", mode="eval").body, [node.left, node.right], [])


def _interpreted(text: str) -> Any:
    """The kernel of a text, by Python."""
    tree = ast.fix_missing_locations(_Quotients().visit(ast.parse(text)))
    tree.body = [one for one in tree.body if ast.unparse(one) != "import math"]
    stub = types.ModuleType("numba")
    stub.njit = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
    kept = sys.modules.get("numba")
    sys.modules["numba"] = stub
    try:
        space: dict[str, Any] = {"math": _math()}
        exec(compile(tree, "<kernel>", "exec"), space)  # noqa: S102
    finally:
        if kept is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = kept
    return space["kernel"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All equations go to kernels, which Python runs; the texts of those that ran."""
    texts: list[str] = []

    def load(text: str) -> Any:
        texts.append(text)
        return _interpreted(text)

    monkeypatch.setattr(kernel_cache, "load", load)
    monkeypatch.setattr(rounding, "_NEST", 1)
    monkeypatch.setattr(rounding, "worth", lambda *_: True)
    return texts


@pytest.fixture(params=[True, False], ids=["kernels", "numpy"])
def compiled(
    request: pytest.FixtureRequest, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether kernels evaluate the equations, or else NumPy."""
    assert not ran
    if not request.param:
        monkeypatch.setattr(rounding, "_NEST", 1 << 60)
    return bool(request.param)


def same(name: str, found: Ball, expected: Ball) -> None:
    """Equal values, and a radius that is no larger than the one that NumPy gives."""
    shape = np.shape(expected.value)
    value = np.asarray(expected.value, dtype=np.float64)
    np.testing.assert_allclose(found.value, value, rtol=1e-9, atol=1e-12, err_msg=name)
    low = np.broadcast_to(np.asarray(expected.bound, dtype=np.float64), shape)
    got = np.broadcast_to(np.asarray(found.bound, dtype=np.float64), shape)
    known = np.isfinite(value)
    slack = 1e-12 * np.abs(np.where(known, value, 0.0)) + 1e-35
    assert np.all((got <= low * 1.1 + slack) | ~known | (low == 0)), name


def inside(graph: Graph, values: dict[str, Array], found: dict[str, Ball], seed: int) -> None:
    """An evaluation in single precision, its sums in some order, lies inside the radii."""
    single = Narrow(seed)
    computed: dict[str, Any] = {n: load(graph.values[n], v) for n, v in values.items()}
    for node in graph.nodes:
        expansion = node.expansion(CATALOG)
        tensors = vector.evaluate(expansion, feeds(node, expansion, computed), single)
        for formal, name in node.results().items():
            computed[name] = tensors[formal]
            assert not outside(found[name], tensors[formal]).any(), (node.op.name, name)


def numbered(graph: Graph, seed: int) -> dict[str, Array]:
    return {**inputs(graph, seed), **initial_values(graph, seed)}


CHOSEN = [
    "layer_norm", "softmax", "gelu", "batch_norm", "max_pool", "conv", "log_softmax", "silu",
    "group_norm", "avg_pool", "huber", "clip", "where", "lp_pool", "cross_entropy", "elu",
    "local_response_norm", "softplus", "hard_swish", "cosine_similarity", "logsumexp", "mish",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CHOSEN if CATALOG.op(name)])
def test_a_kernel_gives_what_numpy_gives(
    name: str, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = 0
    for seed in range(12):
        graph = generate(CATALOG, seed, ops=[name], size=(1, 1)).graph
        values = numbered(graph, seed)
        try:
            found = program.balls(graph, values, CATALOG, "f32")
        except InvalidInput:  # the drawn values do not meet a precondition
            continue
        with monkeypatch.context() as patch:
            patch.setattr(rounding, "_NEST", 1 << 60)
            expected = program.balls(graph, values, CATALOG, "f32")
        for value in graph.outputs.values():
            same(f"{name} {seed} {value}", found[value], expected[value])
        inside(graph, values, found, seed)
        judged += 1
    assert judged
    assert ran


@pytest.mark.parametrize(
    ("name", "batch"), [("lstm", 1), ("lstm", 5), ("gru", 5), ("simple_rnn", 4)]
)
@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_products_of_every_step(
    name: str,
    batch: int,
    uncertain: bool,
    dtype: str,
    ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recurrence whose projections go to BLAS, its weights exact or with radii."""
    random = np.random.default_rng(batch)
    gates = {"lstm": 4, "gru": 3, "simple_rnn": 1}[name]
    shapes: dict[str, tuple[int, ...]] = {
        "x": (4, batch, 64),
        "w": (gates, 64, 64),
        "r": (gates, 64, 64),
    }
    if name == "simple_rnn":
        shapes |= {"w": (64, 64), "r": (64, 64)}
    op = CATALOG.op(name)
    assert op is not None
    given = {key: random.uniform(-0.2, 0.2, shape) for key, shape in shapes.items()}
    given = {key: array.astype(np.float32).astype(np.float64) for key, array in given.items()}
    infos = {key: TensorInfo(shape, dtype) for key, shape in shapes.items()}
    made = expand(instantiate(op, infos, {}), CATALOG)
    off = 16 * DTYPES[dtype].unit
    balls = {key: Ball(array, off * np.abs(array)) for key, array in given.items()}
    if not uncertain:
        balls = {key: Ball(array) for key, array in given.items()}
    found = rounding.evaluate(made, balls, dtype)
    looped = [text for text in ran if "range(first, last)" in text]
    assert looped
    with monkeypatch.context() as patch:
        patch.setattr(rounding, "_NEST", 1 << 60)
        expected = rounding.evaluate(made, balls, dtype)
    for output in made.outputs:
        same(output, found[output], expected[output])
        ratio = np.asarray(found[output].bound) / np.asarray(expected[output].bound)
        assert np.all((ratio > 0.9) & (ratio < 1.1))


def test_a_root_of_what_cannot_be_negative_stays_known(ran: list[str]) -> None:
    """The variance of close numbers has a radius larger than itself, in kernels as elsewhere."""
    x = np.array([[1e-9, -2e-9, 1e-9], [1.0, 2.0, 3.0]])
    op = CATALOG.op("reduce_std")
    assert op is not None
    made = expand(instantiate(op, {"x": TensorInfo(x.shape, "f32")}, {"axes": (1,)}), CATALOG)
    y = rounding.evaluate(made, {"x": Ball(x, np.full(x.shape, 1e-3))}, "f32")["y"]
    assert ran
    assert np.all(np.isfinite(y.radius))
    random = np.random.default_rng(2)
    for _ in range(100):
        moved = x + random.uniform(-1e-3, 1e-3, x.shape)
        assert not outside(y, np.std(moved, axis=1)).any()


def test_a_kernel_rounds_no_whole_numbers(ran: list[str]) -> None:
    """Those that the type may lack are NumPy's to convert, with their radius."""
    op = CATALOG.op("dequantize_linear")
    assert op is not None
    for dtype, values, compiled in (("i8", [3, -100], True), ("i32", [3, 4101], False)):
        ran.clear()
        x, zero = np.array(values), np.array(0)
        given = {"x": x, "scale": np.array(0.5, np.float16), "zero_point": zero}
        types = {"x": dtype, "scale": "f16", "zero_point": dtype}
        infos = {name: TensorInfo(a.shape, types[name]) for name, a in given.items()}
        made = expand(instantiate(op, infos, {}), CATALOG)
        loaded = {name: Ball(load(infos[name], a)) for name, a in given.items()}
        y = rounding.evaluate(made, loaded, "f16")["y"]
        assert not outside(y, x.astype(np.float16) * np.float16(0.5)).any()
        assert np.any(np.asarray(y.bound) > 1) != compiled
        assert bool(ran) == compiled


def test_a_quotient_may_be_a_product_with_a_reciprocal_that_vanishes(
    compiled: bool, ran: list[str]
) -> None:
    """1 / 3e38 is no normal number of f32: a target that flushes those gives 0 for 5e29 / 3e38."""
    b = np.array([3e38, 2.0**127, 8e37, 3.0, np.inf], np.float32)
    a = np.array([5e29, 5e29, 5e29, 5e29, 5e29], np.float32)
    model = irlang.loads("nnir 1\nmodel m(a: f32[5], b: f32[5]) -> y: f32[5] { y = divide(a, b) }")
    found = program.balls(model.graph, {"a": a, "b": b}, CATALOG, "f32")["y"]
    radius = np.broadcast_to(np.asarray(found.bound), (5,))
    reached = (np.abs(found.value) <= radius) & (found.value != 0)
    assert reached.tolist() == [True, True, False, False, False]
    assert bool(ran) == compiled


def test_of_zeros_of_either_sign_any_may_be_the_largest(compiled: bool, ran: list[str]) -> None:
    """IEEE 754 of 2019 has the one above zero for its maximum, that of 2008 either."""
    x = np.tile(np.array([0.0, -0.0, 1.0, -0.0, -2.0], np.float32), 16)
    z = np.tile(np.array([-0.0, 0.0, -0.0, -0.0, 0.0], np.float32), 16)
    graph = irlang.loads("""nnir 1
model m(x: f32[80], z: f32[80]) -> a: f32[80], b: f32[80], c: f32[80] {
  a = copysign(1.0, maximum(x, z))
  b = copysign(1.0, reduce_max(stack(x, z; axis = 1); axes = 1))
  c = copysign(1.0, relu(minimum(x, z)))
}""").graph
    found = program.balls(graph, {**numbered(graph, 0), "x": x, "z": z}, CATALOG, "f32")
    for name, sure in (("a", [1.0, -1.0, 1.0]), ("b", [1.0, -1.0, 1.0])):
        ball = found[name]
        assert not outside(ball, np.ones(80))[:2].any()
        assert not outside(ball, -np.ones(80))[:2].any()
        assert np.asarray(ball.value)[2:5].tolist() == sure
        assert not np.any(np.broadcast_to(ball.bound, (80,))[2:5])
    assert not outside(found["c"], -np.ones(80))[[0, 1, 2, 3]].any()
    assert bool(ran) == compiled


def test_the_largest_beside_what_is_no_number_is_none(compiled: bool, ran: list[str]) -> None:
    """Whatever the others are, and whether they are rounded or not."""
    x = np.ones((40, 3), np.float32)
    x[1, 2] = x[2, 0] = np.nan
    x[3] = np.inf, 1, 2
    graph = irlang.loads("""nnir 1
op far[T: float](x: T[N, M], z: T[N, M]) -> y: T[N] {
  y[n] = max(k < M) abs(x[n, k] - z[n, k])
}
model m(x: f32[40, 3], z: f32[40, 3]) -> y: f32[40] { y = far(x, z) }""").graph
    z = np.full((40, 3), 1e-9, np.float32)
    z[3, 0] = np.inf
    found = program.balls(graph, {"x": x, "z": z}, CATALOG, "f32")["y"]
    bound = np.broadcast_to(found.bound, (40,))
    assert np.isnan(found.value[1:4]).all()
    assert not np.any(bound[1:4])
    assert 0 < bound[0] < 1e-6
    assert bool(ran) == compiled


def _in_all_orders(terms: Array) -> list[Array]:
    """What some terms add up to in single precision, one after the other."""
    return [functools.reduce(np.add, order) for order in itertools.permutations(terms)]


def _added(terms: Array) -> Ball:
    names = [f"x{number}" for number in range(len(terms))]
    taken = ", ".join(f"{name}: f32[{terms.shape[1]}]" for name in names)
    text = f"({taken}) -> y: f32[{terms.shape[1]}] {{ y = add_n({', '.join(names)}) }}"
    graph = irlang.loads(f"nnir 1\nmodel m{text}").graph
    return program.balls(graph, dict(zip(names, terms, strict=True)), CATALOG, "f32")["y"]


def test_terms_that_cancel_may_be_added_up_in_any_order(compiled: bool, ran: list[str]) -> None:
    """One order may round nothing, as 1e8 - 1e8 + 1.5, where another loses the last."""
    random = np.random.default_rng(5)
    terms = random.integers(-3, 4, (5, 400)) * 2.0 ** random.integers(0, 40, (5, 400))
    terms[1] = -terms[0]
    terms[1, ::4] = terms[2, ::4] = 0
    terms[3:, 1:] %= 2.0**14  # so that each sum is a small whole number
    terms[2:] = np.where(np.abs(terms[2:]) < 2.0**20, terms[2:], 3)
    terms[:, 0] = 3, -5, 2.0**20, 1, 0
    single = terms.astype(np.float32)
    found = _added(single)
    assert bool(ran) == compiled
    radius = np.broadcast_to(np.asarray(found.bound), (400,))
    orders = _in_all_orders(single)
    for total in orders:
        assert not outside(found, total).any()
    assert np.count_nonzero(np.any(np.array(orders) != orders[0], axis=0)) > 20
    assert radius[0] == 0
    assert np.count_nonzero(radius == 0) > 50


def test_terms_that_cancel_may_overflow_in_another_order(compiled: bool, ran: list[str]) -> None:
    """(3e38 - 3e38) + 3e38 is 3e38, and (3e38 + 3e38) - 3e38 is infinite."""
    top = 2.0**127  # whose digits no order loses
    terms = np.array([[3e38, top, 1e38], [-3e38, -top, -1e38], [3e38, top, 1e38]])
    found = _added(np.repeat(terms, 20, axis=1).astype(np.float32))
    assert bool(ran) == compiled
    with np.errstate(over="ignore"):
        for total in _in_all_orders(np.repeat(terms, 20, axis=1).astype(np.float32)):
            assert not outside(found, total).any()
    assert np.isinf(found.bound).tolist() == [*[True] * 40, *[False] * 20]


def test_reals_are_added_to_whole_numbers_of_any_width() -> None:
    """What integers are computed in that 64 bits may not hold is no type that NumPy rounds."""
    whole = np.array([2**20, 3], dtype=object)
    domain = Balls("f32")
    found = domain.sum([Ball(np.array([0.5, 0.1])), Ball(np.array([1, 2])), Ball(whole)])
    assert found.value.tolist() == [2**20 + 1.5, 5.1]
    assert (np.asarray(found.bound) > 0).tolist() == [False, True]
