"""What values generated tensors take: domains, fan-in, calls that bring values into a domain."""

import math

import numpy as np
import pytest

from irlang import ast
from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.build import generate
from irlang.gen.choice import Chooser
from irlang.gen.draw import Limits, shape
from irlang.gen.edge import whole_edges
from irlang.gen.judge import judge
from irlang.gen.pattern import Pattern, pattern
from irlang.gen.ranges import admitted, demands, fan_in, usual
from irlang.gen.tame import Tamers
from irlang.interp import vector
from irlang.parser import parse

OWN = """
op scaled_log[T: float](x: T[S..]; eps: real = 1e-6) -> y: T[S..] {
  y[s..] = log(x[s..] + eps)
}

op ratio[T: float](a: T[S..], b: T[S..]) -> y: T[S..] {
  y[s..] = a[s..] / b[s..]
}

op mixed[T: float](x: T[N, C], w: T[F, C, K..], v: T[S..]) -> y: T[N, F] {
  y[n, f] = sum(c < C, k.. < K..) x[n, c] * w[f, c, k..]
}

op stepped[T: float](x: T[S..], square: T[S..] = 0; rho: real = 0.9) -> y: T[S..], new: T[S..] {
  q[s.. < S..] = rho * square[s..] + (1 - rho) * sq(x[s..])
  let root(s) = sqrt(q[s..] + 1e-6)
  new[s..] = q[s..]
  y[s..] = x[s..] / root(s)
}

op edges[T: float](x: T[S..]) -> y: T[S..] {
  y[s..] = asin(x[s..]) + acosh(x[s..] + 3)
}
"""


@pytest.fixture(scope="module")
def own() -> dict[str, Pattern]:
    return {op.name: pattern(op) for op in parse(OWN, "own.nnir").ops}


def test_domains_are_read_off_the_functions_that_read_an_input(own: dict[str, Pattern]) -> None:
    assert own["scaled_log"].slots[0].domain == (0.0, math.inf)
    a, b = own["ratio"].slots
    assert a.domain is None
    assert b.domain == (0.0, math.inf)
    assert own["mixed"].slots[0].domain is None


def test_domains_reach_through_results_that_stand_between(own: dict[str, Pattern]) -> None:
    x, square = own["stepped"].slots
    assert x.domain is None  # behind a square
    assert square.domain == (0.0, math.inf)


def test_ranges_lie_inside_domains(own: dict[str, Pattern]) -> None:
    info = TensorInfo((4,), "f32")
    for made in own.values():
        for slot in made.slots:
            for seed in range(8):
                found = usual(slot, info, weight=False, chooser=Chooser(seed))
                if slot.domain is not None:
                    assert found is not None
                    assert slot.domain[0] < found[0] < found[1] < slot.domain[1]


def test_weights_are_scaled_by_what_a_sum_runs_over(own: dict[str, Pattern]) -> None:
    _, w, v = own["mixed"].slots
    assert fan_in(w, TensorInfo((7, 3, 5, 2), "f32")) == 30
    assert fan_in(v, TensorInfo((7, 3), "f32")) == 1
    low, high = usual(w, TensorInfo((7, 3, 5, 2), "f32"), weight=True, chooser=Chooser(0)) or (0, 0)
    assert -low == high == pytest.approx(math.sqrt(3 / 30), rel=0.02)


@pytest.mark.parametrize("domain", [(0.0, math.inf), (-1.0, 1.0)])
def test_tamers_bring_any_values_into_a_domain(domain: tuple[float, float]) -> None:
    made = list(map(pattern, builtin()))
    tamers = Tamers(made, builtin()).inside(domain)
    assert len(tamers) >= 2
    samples = np.random.default_rng(5).uniform(-8, 8, 40)
    for tamer in tamers:
        formal = next(slot.item.name for slot in tamer.slots if slot.item.default is None)
        instance = judge(tamer.op, {formal: TensorInfo((40,), "f32")}, {})
        assert instance is not None
        (name,) = [n for n, _ in instance.outputs or ()]
        values = vector.evaluate(expand(instance, builtin()), {formal: samples})[name]
        assert (values > domain[0]).all(), tamer.op.name
        assert (values < domain[1]).all(), tamer.op.name


def test_results_of_weighted_sums_stay_moderate() -> None:
    """A chain of weighted sums neither explodes nor dies away."""
    from irlang.interp.program import run
    from irlang.interp.values import initial_values, inputs

    patterns = {op.name: pattern(op) for op in builtin()}
    sums = [name for name, one in patterns.items() if any(slot.fan for slot in one.slots)]
    sums = [n for n in sums if not patterns[n].orders]  # `irlang.gen.lines` arranges what ascends
    sums = [n for n in sums if len(pattern(builtin().op(n)).slots) > 1]  # type: ignore[arg-type]
    sizes = []
    for seed in range(40):
        graph = generate(builtin(), seed, ops=sums, size=(4, 6)).graph
        found = run(graph, {**inputs(graph, seed), **initial_values(graph, seed)}, builtin())
        for name in graph.outputs.values():
            value = np.asarray(found[name], dtype=float)
            if np.isfinite(value).all():
                sizes.append(float(np.mean(np.abs(value))))
    assert np.quantile(sizes, 0.9) < 1e3
    assert np.median(sizes) > 1e-2  # some losses are zero, rightly


def test_factors_are_drawn_at_which_terms_vanish() -> None:
    drawn = {
        node.attrs.get("beta")
        for seed in range(120)
        for node in generate(builtin(), seed, ops=["gemm"], size=(1, 1)).graph.nodes
    }
    assert {0.0, 0.5, 2.0} <= drawn


def test_numbers_on_the_other_side_of_what_is_ruled_out_are_admitted() -> None:
    """A divisor is drawn from one side of 0; at edges it may be on the other one too."""
    infos = {name: TensorInfo((2, 3), "i32") for name in "ab"}

    def of(operator: str) -> list[int]:
        op = builtin().op(operator)
        assert op is not None
        call = judge(op, infos, {})
        assert call is not None
        within = demands(call)
        assert within is not None
        assert within["b"][0] > 0
        return admitted(call, within, whole_edges)["b"]

    assert {-1, -2, 1, 2, -(2**31), 2**31 - 1} <= set(of("modulo"))
    assert 0 not in of("modulo")
    assert {-2, 2, -(2**31)} <= set(of("divide"))
    assert not {0, -1} & set(of("divide"))  # by -1 the least number has no quotient


def test_what_hangs_on_other_elements_admits_nothing() -> None:
    """Boundaries that rise do so beside one another: none is right by itself."""
    text = """op own(x: i32[N]) -> y: i32[N] {
      require rising: all(i < N - 1) x[i] < x[i + 1] + 1 and 3 <= x[i] else "not"
      y[i] = x[i]
    }"""
    (op,) = parse(text).items
    assert isinstance(op, ast.Op)
    call = judge(op, {"x": TensorInfo((4,), "i32")}, {})
    assert call is not None
    assert admitted(call, {"x": (3, 5)}, whole_edges) == {}


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
def test_squares_that_wrap_below_zero_are_among_whole_edges(dtype: str) -> None:
    numbers = np.array(whole_edges(TensorInfo((1,), dtype)), f"int{dtype[1:]}")
    positive = numbers[(numbers > 0) & (numbers < 2 ** (int(dtype[1:]) // 2))]
    assert np.any(positive * positive < 0)


def test_axes_are_as_long_as_one_another_at_times() -> None:
    shapes = [shape(Chooser(seed), 3, Limits()) for seed in range(200)]
    equal = [sizes for sizes in shapes if len(set(sizes)) == 1]
    assert 20 <= len(equal) <= 80
    assert max(sizes[0] for sizes in equal) > 3
    drawn = [
        tuple(graph.values[name].shape)
        for seed in range(40)
        for graph in [generate(builtin(), seed, ops=["batch_norm"], size=(1, 1)).graph]
        for name in graph.nodes[0].inputs.values()
        if isinstance(name, str) and len(graph.values[name].shape) > 1
    ]
    assert sum(len(set(sizes)) < len(sizes) for sizes in drawn) >= 8
