"""Where NaN and Inf can arise: what guards prove, and what relations between elements are worth."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from irlang.api import loads
from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.interp import proofs, reasons
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.declared import inside
from irlang.interp.interval import interval, join
from irlang.interp.monotone import _least_change
from irlang.interp.range import DOMAINS, Analysis, analyse
from irlang.interp.stepwise import evaluated
from irlang.interp.values import beyond
from irlang.scalar import SCALARS

CASES = (Path(__file__).parent / "data" / "ranges.txt").read_text("utf-8").split("\n\n")[1:]


def analysed(text: str, *, gradient: bool = False, domain: str = "relations") -> Analysis:
    model = loads(f"nnir 1\n{text}")
    return analyse(model.graph, model.catalog, gradient=gradient, domain=domain)


def possible(found: Analysis) -> set[tuple[str, str]]:
    return {(p.node, p.function) for p in found.points if p.status == "possible"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.split(":")[0])
def test_guards(case: str) -> None:
    title, signature, *body = case.strip().split("\n")
    verdict = title.split(": ")[1]
    found = possible(analysed(f"model m{signature} {{\n" + "\n".join(body) + "\n}\n"))
    functions = {function for _, function in found}
    assert (verdict in functions) if verdict != "safe" else not functions


@given(
    name=st.sampled_from(["exp", "sigmoid", "tanh", "log", "sqrt", "neg", "acos"]),
    ends=st.tuples(*[st.floats(0.0, 1.0)] * 4),
    at=st.tuples(*[st.floats(0.0, 1.0)] * 2),
    scale=st.sampled_from([1.0, 4.0, 30.0]),
    gap=st.floats(0.0, 1.0),
)
def test_a_rising_function_changes_by_no_less_than_is_said(
    name: str, ends: tuple[float, ...], at: tuple[float, ...], scale: float, gap: float
) -> None:
    """Any two numbers of two ranges, so far from one another or further."""
    row = SCALARS[name]
    scale = 1.0 if name == "acos" else scale
    ranges = [sorted(1e-3 + scale * end for end in pair) for pair in (ends[:2], ends[2:])]
    if name == "acos":
        ranges = [[min(end, 1.0) for end in pair] for pair in ranges]
    less, more = (low + (high - low) * t for (low, high), t in zip(ranges, at, strict=True))
    gap = min(gap * scale, more - less)
    assume(gap > 0)
    smaller, larger = (interval(low, high) for low, high in ranges)
    said = _least_change(row, smaller, larger, gap)
    changes = abs(float(row.numpy(np.float64(more))) - float(row.numpy(np.float64(less))))
    assert said <= changes * (1 + 1e-12)
    event(f"{said > 0.5 * changes}")


@given(
    name=st.sampled_from(["exp", "sigmoid", "tanh", "neg"]),
    far=st.floats(1.0, 30.0),
    ends=st.tuples(*[st.floats(-200.0, 20.0)] * 2),
    width=st.floats(0.0, 0.1),
    falls=st.booleans(),
)
@example(name="exp", far=20.96, ends=(-200.0, 0.0), width=0.03, falls=False)
def test_a_number_that_is_far_away_hides_nothing_of_the_other(
    name: str, far: float, ends: tuple[float, float], width: float, *, falls: bool
) -> None:
    """One of the two numbers is so large that the gap between both hides what the other is."""
    row, sign = SCALARS[name], -1.0 if falls and name != "exp" else 1.0
    low, high = sorted(ends)
    beyond = -(10.0**far) * (1 + width) - 300.0, -(10.0**far) - 300.0
    near, away = (
        interval(min(sign * a, sign * b), max(sign * a, sign * b)) for a, b in ((low, high), beyond)
    )
    less, more = (away, near) if sign > 0 else (near, away)
    said = _least_change(row, less, more, float(np.nextafter(low - beyond[1], 0.0)))
    values = row.numpy(sign * np.array([low, beyond[1]]))
    assert said <= abs(float(values[0] - values[1])) * (1 + 1e-12)


def test_the_change_that_is_said_is_not_far_from_the_least() -> None:
    said = _least_change(SCALARS["sigmoid"], interval(-6.0, 6.0), interval(-5.5, 6.5), 0.5)
    least = 1 / (1 + np.exp(-6.5)) - 1 / (1 + np.exp(-6.0))
    assert 0.9 * least < said <= least


@pytest.mark.parametrize(("ends", "kind"), [("[3e38, 3.1e38]", "f32"), ("[40000, 41000]", "f16")])
def test_what_is_summed_up_so_far_may_be_too_large_though_it_cancels(ends: str, kind: str) -> None:
    """Weights of 1, 1 and -1: the sum lies among the numbers, that of the first two does not."""
    text = f"""op turns[T: float](x: T[S]) -> y: T[O] {{
      let O = S // 3
      y[o] = sum(k < S) x[k] * (if k < S // 3 * 2 then 1.0 else -1.0)
    }}
    model m(x: {kind}[3] in {{ends}}) -> y: {kind}[1] {{
      y = turns(x)
    }}
    """
    assert ("y", "sum") in possible(analysed(text.replace("{ends}", ends)))
    assert not possible(analysed(text.replace("{ends}", "[1000, 1100]")))


CORNERS = """model corners(c: f32[3, 2] in [0, 1], o: f32[3, 2] in [{low}, 2]) -> area: f32[3, 1],
    y: f32[3, 1] {{
  first = subtract(c, o)
  second = add(c, o)
  box = concat(first, second; axis = 1)
  low, high = split(box; axis = 1, parts = 2)
  w, h = split(subtract(high, low); axis = 1, parts = 2)
  area = multiply(w, h)
  y = reciprocal(area)
}}
"""


@pytest.mark.parametrize("count", [2, 6, 40])
@pytest.mark.parametrize("end", [0.0, 0.5, 3.0])
def test_a_part_of_a_whole_has_the_ends_that_the_others_leave(count: int, end: float) -> None:
    text = f"model m(x: f32[3, {count}] in [{-end}, {end}]) -> y: f32[3, {count}] {{\n"
    found = analysed(text + "  y = softmax(x; axis = 1)\n}\n").values["y"]
    most = 1 / (1 + (count - 1) * np.exp(-2 * end))
    least = 1 / (1 + (count - 1) * np.exp(2 * end))
    assert most <= found.high <= most * (1 + 1e-4)
    assert least * np.exp(-2 * end) * (1 - 1e-4) <= found.low <= least  # the maximum is any of them


def test_what_a_term_chooses_is_no_case_of_its_sum() -> None:
    """A condition on what only the terms have is another for each of them."""
    text = """op own[T: float](x: T[I, J], c: T[J]) -> y: T[I] {
      y[i] = (sum(j < J) (if c[j] > 0 then x[i, j] else 0)) - x[i, 0]
    }
    model m(x: f32[4, 6] in [-2, 2], c: f32[6] in [-2, 2]) -> y: f32[4] {
      y = sqrt(own(x, c))
    }"""
    assert possible(analysed(text)) == {("y", "sqrt")}


def test_corners_need_relations() -> None:
    found = {domain: analysed(CORNERS.format(low=1), domain=domain) for domain in DOMAINS}
    assert not possible(found["relations"])
    assert possible(found["tensor"]) == {("y", "/")}
    assert found["regions"].values["area"].low <= 1  # [1, 5] squared: 2 o is seen by relations only
    area = found["relations"].values["area"]
    assert 4 * (1 - 1e-6) < area.low <= 4
    assert 16 <= area.high < 16 * (1 + 1e-6)
    assert possible(analysed(CORNERS.format(low=0))) == {("y", "/")}


def test_regions_tell_what_a_tensor_hides() -> None:
    text = """model m(a: f32[2, 3] in [1, 2], b: f32[2, 3] in [-1, 1]) -> y: f32[2, 3] {
      y = log(slice(concat(a, b; axis = 1); axes = [1], begin = [0], end = [3]))
    }"""
    assert not possible(analysed(text, domain="regions"))
    assert possible(analysed(text, domain="tensor")) == {("y", "log")}


def test_a_reported_infinity_is_no_news_but_what_it_becomes_is() -> None:
    text = """model m(x: f32[3] in [-500, 500]) -> y: f32[3] {
      e = exp(negate(x))
      d = multiply(e, 0.5)
      s = reciprocal(add(e, 1))
      y = log(s)
    }"""
    assert possible(analysed(text)) == {("e", "exp"), ("y", "log")}


def test_infinities_inside_a_call_are_its_own_business() -> None:
    text = """op squash[T: float](x: T[S..]) -> y: T[S..] {
      y[s..] = 1 / (1 + exp(-x[s..]))
    }
    model m(x: f32[3] in [-500, 500]) -> y: f32[3] {
      y = squash(x)
    }"""
    found = analysed(text)
    assert not possible(found)
    safe = next(p for p in found.points if p.function == "exp")
    assert "finite again" in " ".join(safe.reasons)


@pytest.mark.parametrize(
    ("dtype", "eps", "safe"),
    [("f32", 1e-8, True), ("f16", 1e-8, False), ("f16", 1e-4, True), ("bf16", 1e-8, True)],
)
def test_an_epsilon_is_what_the_type_makes_of_it(dtype: str, eps: float, safe: bool) -> None:
    text = f"""model m(x: {dtype}[3] in [0, 1]) -> y: {dtype}[3] {{
      y = log(add(x, {eps}))
    }}"""
    assert (not possible(analysed(text))) == safe


@pytest.mark.parametrize(
    ("body", "alarms"),
    [
        ("sqrt(x)", {("d_h", "/")}),
        ("sqrt(add(x, 0.001))", set()),
        ("log(add(x, 0.001))", set()),
        ("relu(x)", set()),
        ("abs(x)", set()),
        ("power(add(x, 0.001), 0.5)", set()),
        ("power(x, 0.5)", {("d_h", "pow")}),
        ("softmax(x)", set()),
        ("divide(x, add(sqrt(reduce_sum(square(x))), 0.001))", {("d_h_add_sqrt", "/")}),
        ("divide(x, sqrt(add(reduce_sum(square(x)), 0.001)))", set()),
    ],
)
def test_gradients(body: str, alarms: set[tuple[str, str]]) -> None:
    text = f"""model m(x: f32[4] in [0, 4]) -> h: f32[4] {{
      h = {body}
      loss = reduce_sum(h)
    }}"""
    found = analysed(text, gradient=True)
    assert alarms <= possible(found)
    assert bool(alarms) == bool(possible(found))
    assert all(p.stage == "gradient" for p in found.points if p.status == "possible")


def test_ranges_of_norms() -> None:
    text = """model m(x: f32[2, 9] in [-50, 50]) -> y: f32[2, 9], n: f32[2, 9] {
      y = layer_norm(x)
      n = divide(x, add(sqrt(reduce_sum(square(x); axes = 1, keepdims = true)), 1e-8))
    }"""
    values = analysed(text).values
    assert 3 <= values["y"].high < 3.001
    assert 1 <= values["n"].high < 1.001


def test_recurrences_end() -> None:
    text = """op grow[T: float](x: T[L]) -> y: T[L] {
      y[t] = 2 * (y[t - 1] ?? 1) + x[t]
    }
    model m(x: f32[5000] in [0, 1]) -> y: f32[5000] {
      y = grow(x)
    }"""
    found = analysed(text)
    assert found.values["y"].high == np.inf
    assert possible(found)


def test_reasons_are_given() -> None:
    text = """model m(x: f32[2, 4] in [-500, 500], t: f32[1] in [-1, 1]) -> y: f32[2, 4] {
      e = exp(subtract(x, reduce_max(x; axes = 1, keepdims = true)))
      p = divide(e, reduce_sum(e; axes = 1, keepdims = true))
      y = divide(log(p), t)
    }"""
    found = {p.node: p for p in analysed(text).points}
    assert "at the maximum" in " ".join(found["p"].reasons)
    assert "infinite at 0" in " ".join(found["y_log"].reasons)
    assert "may be 0" in " ".join(found["y"].reasons)


@pytest.mark.parametrize(("ends", "pole"), [((0, 10), "0"), ((-3.5, -2.5), "-3"), ((1, 10), "")])
def test_a_pole_is_named_wherever_it_is(ends: tuple[float, float], pole: str) -> None:
    told = reasons.possible("lgamma", interval(*ends), Arithmetic("f32"))
    expected = f"infinite at {pole}" if pole else "beyond 3.4028e+38, the largest number of f32"
    assert expected in told


def test_what_is_too_large_all_around_is_no_pole() -> None:
    told = reasons.possible("exp", interval(0, 1473.5), Arithmetic("f32"))
    assert "beyond 3.4028e+38, the largest number of f32" in told
    assert reasons.is_overflow("exp", interval(0, 1473.5))


@pytest.mark.parametrize(
    ("base", "exponent", "why"),
    [
        ((-3, 3), (0.5, 60), "a negative base has no power unless"),
        (
            (0, 16),
            (-0.5, -0.5),
            "and 16, the exponent -0.5 always: 0 to a negative power",
        ),
        ((0, 100), (0.5, 60), "the result may be beyond 3.4028e+38"),
        ((-9, -3), (90, 90), "the result may be beyond 3.4028e+38"),
    ],
)
def test_a_power_is_told_by_its_base_and_its_exponent(
    base: tuple[float, float], exponent: tuple[float, float], why: str
) -> None:
    args = (interval(*base), interval(*exponent))
    assert why in reasons.possible("pow", join(*args), Arithmetic("f32"), args)


def test_an_overflow_inside_a_call_does_not_bound_what_comes_after() -> None:
    """A target may sum squares with a wider exponent, and give a finite number."""
    text = """model m(x: f32[2, 5] in [0, 7e19]) -> y: f32[5] {
      s = reduce_std(x; axes = [0], keepdims = false)
      y = square(s)
    }"""
    found = analysed(text)
    assert {point.node for point in found.points if point.status == "possible"} == {"s", "y"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("y = log(subtract(0.26, multiply(p, subtract(1, p))))", id="p (1 - p)"),
        pytest.param(
            "s = subtract(add(multiply(a, a), multiply(b, b)), multiply(2, multiply(a, b)))\n"
            "y = sqrt(add(s, 1))", id="the square of a difference, expanded",
        ),
        pytest.param("y = log(add(subtract(sqrt(add(square(a), 1)), abs(a)), 0.001))", id="root"),
        pytest.param(
            "y = sqrt(add(subtract(reduce_mean(multiply(a, a)), square(reduce_mean(a))), 0.1))",
            id="variance as a difference",
        ),
        pytest.param("y = sqrt(multiply(multiply(0.1, a), a))", id="a scaled square"),
        pytest.param("y = log(subtract(add(c, 1), divide(c, add(c, 1.5))))", id="less by division"),
        pytest.param(
            "t = greater(a, 0.01)\n"
            "m = add(multiply(cast(t; to = f32), a), cast(logical_not(t); to = f32))\n"
            "y = log(m)", id="chosen by masks",
        ),
        pytest.param(
            "i = maximum(subtract(minimum(add(c, d), add(p, d)), maximum(c, p)), 0)\n"
            "u = subtract(add(subtract(add(c, d), c), subtract(add(p, d), p)), i)\n"
            "y = divide(i, add(u, 0.001))", id="union of two intervals",
        ),
    ],
)  # fmt: skip
def test_guards_that_need_relations(body: str) -> None:
    inputs = "a: f32[8] in [-10, 10], b: f32[8] in [-10, 10], c: f32[8] in [0, 3]"
    inputs += ", d: f32[8] in [0, 1], l: f32[8] in [-5, 5]"
    text = f"model m({inputs}) -> y: f32[S..] {{\n p = sigmoid(l)\n {body}\n }}"
    text = text.replace("f32[S..]", "f32[]" if "reduce" in body else "f32[8]")
    assert not possible(analysed(text))


def test_an_overflow_inside_a_call_that_leaves_no_trace_bounds_nothing() -> None:
    """What is divided by a sum of squares that is too large is 0 only where that is infinite."""
    text = """model m(x: f32[5, 2] in [1e20, 2e20], g: f32[2] in [-1000, 1000]) -> y: f32[5, 2] {
      r = rms_norm(x, g)
      y = cosh(r)
    }"""
    found = analysed(text)
    assert found.values["r"].high >= 1000
    assert found.values["r"].high < 1500  # it is still known to be no more than a share
    assert ("y", "cosh") in possible(found)


def test_a_result_that_is_surely_too_large_inside_may_be_finite_outside() -> None:
    text = """op scaled[T: float](x: T[N]) -> y: T[N] {
      s[n < N] = x[n] * x[n]
      y[n] = s[n] * 0.1
    }
    model m(x: f32[2] in [3e19, 4e19]) -> y: f32[2] {
      y = exp(scaled(x))
    }"""
    assert ("y", "exp") in possible(analysed(text))


@pytest.mark.parametrize(
    ("many", "result"),
    [
        ("x[n] * 1e10", "top[n] / (x[n] + 1)"),
        ("x[n] * w[n]", "top[n] / (x[n] + 1)"),
        ("sum(k < N) x[k] * w[k]", "top[n] / (1 + sum(k < N) x[k])"),
        ("sum(k < N) x[k] * w[k]", "1 - 2 * top[n] / (sum(k < N) (x[k] + w[k]) + 1e-7)"),
        ("x[n] * w[n]", "top[n] - top[n]"),
    ],
)
def test_what_overflows_is_not_bounded_by_what_it_would_be_part_of(many: str, result: str) -> None:
    """All of these are finite numbers by their values; in f32 infinity is divided, or taken."""
    text = f"""op share[T: float](x: T[N], w: T[N]) -> y: T[N] {{
      top[n < N] = {many}
      y[n] = {result}
    }}
    model m(x: f32[2] in [0, 1e30], w: f32[2] in [0, 1e20]) -> y: f32[2] {{
      y = share(x, w)
    }}"""
    model = loads(f"nnir 1\n{text}")
    ends = {"x": np.full(2, 1e30), "w": np.full(2, 1e20)}
    (node,) = model.graph.nodes
    assert not np.isfinite(evaluated(node, ends, model.catalog)["y"]).any()
    assert possible(analysed(text))
    assert not possible(analysed(text.replace("1e30]", "1e10]")))


def test_an_index_that_is_bound_inside_stays_there() -> None:
    diagonal = """model m(x: f32[3, 2, 1, 3] in [-2, 0], i: i64[3] in [-5, 0],
        j: i32[1, 1, 1, 1] in [0, 0], u: f32[1, 1, 1, 1] in [-2, 2]) -> y: f32[1, 2, 1, 3] {
      y = l2_normalize(scatter_elements(segment_reduce(x, i; segments = 1), j, u; axis = 0))
    }"""
    assert not possible(analysed(diagonal))
    text = """model m(a: f32[2] in [5, 10], b: f32[2] in [-10, 10],
        t: f32[2] in [-1.7, 1.7]) -> y: f32[] {
      s = soft_shrink(margin_ranking(a, b, t; margin = 0.9))
      y = einsum(s, s; labels = [])
    }"""
    assert analysed(text).values["y"].low >= 0


def test_proofs_that_are_cut_short_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """op spread[T: float](x: T[N, K]) -> y: T[N, K] {
      m[n < N] = max(k < K) x[n, k]
      y[n, k] = exp(m[n] - x[n, k])
    }
    model m(x: f32[2, 4] in [-500, 500]) -> y: f32[2, 4] {
      y = spread(x)
    }"""

    def told() -> list[str]:
        return [why for p in analysed(text).points if p.status == "possible" for why in p.reasons]

    assert len(told()) == 1
    monkeypatch.setattr(proofs, "_WORK", 0)
    assert told()[1:] == [reasons.STARVED]


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
def test_what_is_known_of_a_model_serves_one_that_begins_alike(gradient: bool) -> None:
    text = """nnir 1
    model m(x: f32[2, 4] in [-500, 500], t: f32[2, 4] in [0, 1]) -> y: f32[2, 4] {
      a = add(x, 0.5)
      p = softmax(a)
      y = log(p)
      loss = reduce_sum(multiply(y, t))
    }"""
    edits = {"log(p)": "log(add(p, 1e-6))", "softmax(a)": "softmax(x)", "0.5": "0.25"}
    first = loads(text)
    known = analyse(first.graph, first.catalog, gradient=gradient).steps
    assert len(known) >= 5
    for old, new in edits.items():
        model = loads(text.replace(old, new))
        fresh = analyse(model.graph, model.catalog, gradient=gradient)
        again = analyse(model.graph, model.catalog, gradient=gradient, known=known)
        assert again == fresh
        assert len(again.steps) == len(fresh.steps)
        then = analyse(model.graph, model.catalog, gradient=gradient, known=again.steps)
        assert then == fresh
        assert all(a is b for a, b in zip(then.steps, again.steps, strict=True))


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
def test_what_does_not_hang_on_an_edit_is_not_judged_again(gradient: bool) -> None:
    text = """nnir 1
    model m(x: f32[2, 4] in [-50, 50], z: f32[2, 4] in [0, 1]) -> y: f32[2, 4] {
      a = exp(x)
      b = log(a)
      c = sqrt(z)
      d = multiply(c, c)
      e = log(d)
      y = add(b, e)
    }"""
    first, edited = loads(text), loads(text.replace("log(a)", "log(maximum(a, 1e-6))"))
    known = analyse(first.graph, first.catalog, gradient=gradient).steps
    fresh = analyse(edited.graph, edited.catalog, gradient=gradient)
    again = analyse(edited.graph, edited.catalog, gradient=gradient, known=known)
    assert again == fresh
    kept = {name for step in again.steps if step in known for name in step.outputs}
    assert {"a", "c", "d", "e"} <= kept
    assert not {"b", "y"} & kept
    assert len({step.number for step in again.steps}) == len(again.steps)


def test_what_a_call_requires_of_a_value_holds_no_longer_without_it() -> None:
    text = """nnir 1
    op above[T: float](x: T[N]) -> y: T[N] {
      require above: all(n < N) 1 <= x[n] else "x is below 1"
      y[n] = x[n]
    }
    model m(x: f32[4] in [0, 2], z: f32[4] in [0, 1]) -> y: f32[4] {
      a = above(x)
      b = log(x)
      c = sqrt(z)
      y = add(a, add(b, c))
    }"""
    without = text.replace("above(x)\n", "relu(x)\n")
    safe, unsafe = loads(text), loads(without)
    for before, after in ((safe, unsafe), (unsafe, safe)):
        known = analyse(before.graph, before.catalog).steps
        again = analyse(after.graph, after.catalog, known=known)
        assert again == analyse(after.graph, after.catalog)
        assert (("b", "log") in possible(again)) == (after is unsafe)


@pytest.mark.parametrize("seed", range(20))
def test_a_model_with_other_ranges_is_judged_as_if_nothing_were_known(seed: int) -> None:
    """What is known of a generated program serves the same one with one range changed."""
    graph = generate(builtin(), seed, size=(4, 12)).graph
    known = analyse(graph, builtin()).steps
    for name, port in graph.inputs.items():
        if port.info.kind != "real":
            continue
        within, port.within = port.within, (-3.0, 2.0)
        again = analyse(graph, builtin(), known=known)
        fresh = analyse(graph, builtin())
        port.within = within
        assert again.values == fresh.values, name
        assert again.points == fresh.points, name


def test_three_times_as_many_calls_take_three_times_as_long() -> None:
    def work(calls: int) -> int:
        body = "\n".join(f"  v{i + 1} = {'relu' if i % 2 else 'tanh'}(v{i})" for i in range(calls))
        model = loads(f"nnir 1\nmodel m(v0: f32[3]) -> v{calls}: f32[3] {{\n{body}\n}}\n")
        profile = cProfile.Profile()
        profile.runcall(analyse, model.graph, model.catalog)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    work(600)  # what is computed once and kept is no part of it
    assert work(600) < 3.1 * work(200)


@pytest.mark.parametrize("size", ["1e4", "1e10", "1e23", "1e30"])
def test_parts_by_their_logarithms_of_numbers_of_any_size(size: str) -> None:
    """Beyond some size rounding leaves nothing of what their sum is."""
    text = f"""model m(x: f32[4, 6] in [{size}, 1.1{size[1:]}]) -> y: f32[4] {{
  m = reduce_max(x; axes = [1], keepdims = true)
  s = reduce_sum(exp(subtract(x, m)); axes = [1], keepdims = true)
  l = subtract(x, add(log(s), m))
  y = log(subtract(1.01, reduce_sum(exp(l); axes = [1])))
}}
"""
    functions = {function for _, function in possible(analysed(text))}
    assert ("log" in functions) == (size != "1e4")


@pytest.mark.parametrize("rest", ["subtract(1.5, p)", "reduce_sum(square(p))"])
@pytest.mark.parametrize("whole", ["a", "b"])
def test_parts_of_a_whole_that_may_be_0_are_nan_or_add_up_to_1(whole: str, rest: str) -> None:
    text = f"""model m(a: f32[4] in [0, 3], b: f32[4] in [0, 3]) -> y: f32[4] {{
  p = divide(a, reduce_sum({whole}))
  y = broadcast_to(log({rest}); shape = [4])
}}
"""
    functions = {function for _, function in possible(analysed(text))}
    assert "/" in functions
    assert ("log" in functions) == (whole == "b")


def test_both_ends_of_a_domain_are_told() -> None:
    (point,) = analysed("model m(x: f32[3] in [-5, 4]) -> y: f32[3] {\n  y = acos(x)\n}\n").points
    assert point.reasons[0].endswith("the function is not defined below -1 or above 1")


@pytest.mark.parametrize(
    ("condition", "index", "safe"),
    [
        ("i < n[k]", "n[k] - 1 - i", True),
        ("i < n[k]", "n[k] - 2 - i", False),
        ("i <= n[k]", "n[k] - 1 - i", False),
        ("not (i >= n[k])", "n[k] - 1 - i", True),
        ("i < n[0]", "n[k] - 1 - i", False),
        ("n[k] > i + 1", "n[k] - 2 - i", True),
        ("n[k] == i", "n[k] - 1 - i", False),
    ],
)
def test_a_place_that_a_condition_keeps_inside(condition: str, index: str, safe: bool) -> None:
    text = f"""op turned(x: f32[K, N], n: i64[K]) -> y: f32[K, N] {{
      y[k, i] = if {condition} then x[k, {index}] else 1
    }}
    model m(x: f32[3, 5] in [0, 1], n: i64[3] in [0, 5]) -> y: f32[3, 5] {{ y = turned(x, n) }}"""
    assert possible(analysed(text)) == (set() if safe else {("y", "index")})


@pytest.mark.parametrize(("dtype", "number"), [("f32", 0.1), ("f32", 0.127), ("f16", 0.3)])
def test_a_range_of_one_number_holds_what_the_type_has_for_it(dtype: str, number: float) -> None:
    kind = DTYPES[dtype].numpy.type
    near = np.array([kind(number), np.nextafter(kind(number), kind(1)), kind(0.25)])
    assert float(near[0]) != number
    assert beyond(near, (number, number)).tolist() == [False, True, True]
    assert beyond(near, (0.0, 1.0)).tolist() == [False] * 3
    found = inside(Arithmetic(dtype), number, number)
    assert (found.low, found.high) == (float(near[0]), float(near[0]))


@pytest.mark.parametrize(("dtype", "found"), [("f32", set()), ("f16", {("y", "*")})])
def test_a_number_that_the_type_has_not_overflows(dtype: str, found: set[tuple[str, str]]) -> None:
    text = f"""op wider[T: float](x: T[N]) -> y: T[N] {{ y[n] = 131072 * x[n] }}
    model m(x: {dtype}[3] in [0.1, 0.2]) -> y: {dtype}[3] {{ y = wider(x) }}"""
    assert possible(analysed(text)) == found


@pytest.mark.parametrize("correction", [1, 2, 3])
@pytest.mark.parametrize("operator", ["reduce_nanvariance", "reduce_nanstd", "reduce_variance"])
def test_a_variance_of_too_few_is_none(operator: str, correction: int) -> None:
    text = f"""model m(x: f32[2] in [0, 1]) -> y: f32[] {{
      y = {operator}(x; correction = {correction})
    }}"""
    assert bool(possible(analysed(text))) == (correction > 1)


def test_an_order_that_hangs_on_the_condition_that_asks_for_it_comes_to_an_end() -> None:
    text = """model m(x: f32[3, 3, 1, 3] in [0, 671.4]) -> y: i64[3, 3, 1, 3] {
      y = saturate_cast(adjust_hue(x; delta = 0.25); to = i64)
    }"""
    assert not possible(analysed(text))
