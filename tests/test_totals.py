"""What gradients at ties have in common: their sum, where it hangs on no choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irlang.adjoint_graph import leaves_choice, prepare
from irlang.catalog import builtin
from irlang.diff.apart import case_apart
from irlang.diff.totals import with_totals
from irlang.diff.verdict import Verdict, judge
from irlang.interp.gradient import gradient_balls
from irlang.interp.values import Array
from tests.gradient_cases import drawn_case


def _judged(call: str, x: Array, got: Sequence[float]) -> Verdict:
    """The verdict on a gradient of the sum of a call's results."""
    body = f"y = reduce_sum({call})\n loss = multiply(y, 2.0)"
    case = drawn_case(f"model m(x: f32[{x.size}]) -> y: f32[] {{ {body} }}", x=x)
    info = case.graph.values["x"]
    balls = {t: gradient_balls(case.graph, case.values, case.catalog, ties=t) for t in _WAYS}
    slope = np.array(got, np.float32)
    first = judge("x", "torch", info, balls["any"]["x"], slope)
    (found,) = with_totals([first], {"x": slope}, lambda ties: balls[ties])
    return found


_WAYS = ("any", "first", "others", "shared")
TIED, LONE = [3, 3, 1, 3], [3, 2, 1, 0]
# A call, what it is fed, and gradients of twice its sum: those that are allowed, and others.
CASES = {
    "the largest": ("reduce_max(x)", TIED, ([2, 0, 0, 0], [0.5, 1, 0, 0.5]), ([2, 2, 0, 2],)),
    "the least": ("reduce_min(x)", [0, 0, 1], ([1, 1, 0],), ([2, 2, 0], [0, 0, 0])),
    "windows": (
        "max_pool(reshape(x; shape = [1, 1, 4]); window = 2, stride = 2)",
        TIED, ([1, 1, 0, 2],), ([2, 2, 0, 2],),
    ),
    "both": (  # the largest less the least, that are all of them
        "subtract(reduce_max(x), reduce_min(x))", [1, 1], ([0, 0], [2, -2]), ([2, 0],),
    ),
    "a kink": ("relu(x)", [0, 0, 1], ([0, 0, 2], [2, 2, 2], [0, 2, 2]), ()),
    "kinks that are chosen apart": (  # as between two equal elements and behind one that is not
        "add(maximum(0.0, subtract(1.0, abs(x))), maximum(0.0, subtract(1.0, abs(add(x, -1.0)))))",
        [0], ([2], [0], [1]), (),
    ),
    "kinks that make none": ("subtract(relu(x), relu(negate(x)))", [0, 0], ([0, 0], [4, 2]), ()),
    "ties of other numbers": (  # what is not the same of all is not held against anything
        "reduce_max(multiply(x, maximum(x, 1.0)))", [1, 1], ([2, 0], [4, 0], [2, 2]), (),
    ),
    "the end of a range": ("clip(x; min = -1, max = 1)", [1, -1, 1], ([0, 2, 0], [2, 2, 2]), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_equal_elements_share(name: str) -> None:
    call, x, allowed, others = CASES[name]
    given = np.array(x, np.float32)
    for got in allowed:
        assert _judged(call, given, got).verdict in ("agrees", "rounding"), got
    for got in others:
        assert _judged(call, given, got).verdict == "wrong", got


def test_nothing_is_asked_where_there_is_no_choice() -> None:
    given = np.array(LONE, np.float32)
    assert _judged("reduce_max(x)", given, [2, 0, 0, 0]).verdict == "agrees"

    def never(ties: str) -> dict[str, object]:
        raise AssertionError(ties)

    agreed = [Verdict("x", "torch", "agrees")]
    assert with_totals(agreed, {"x": given}, never) == agreed  # type: ignore[arg-type]


def test_infinite_gradients_have_no_sum_and_no_warning_is_given() -> None:
    body = "y = reduce_max(x)\n loss = multiply(y, 2.0)"
    given = np.array(TIED, np.float32)
    case = drawn_case(f"model m(x: f32[4]) -> y: f32[] {{ {body} }}", x=given)
    balls = {t: gradient_balls(case.graph, case.values, case.catalog, ties=t) for t in _WAYS}
    wide, slope = [Verdict("x", "torch", "rounding")], np.array([np.inf, -np.inf, 0, 2], np.float32)
    with np.errstate(all="raise"):
        assert with_totals(wide, {"x": slope}, lambda ties: balls[ties]) == wide


CHOOSE = {
    **dict.fromkeys(("relu", "abs", "maximum", "reduce_max", "max_pool", "clip", "atan2"), True),
    **dict.fromkeys(("atan", "tanh", "matmul", "conv", "multiply", "gru_cell"), False),
}


@pytest.mark.parametrize("name", CHOOSE)
def test_where_nothing_is_chosen_all_ways_to_choose_are_one(name: str) -> None:
    """And need not be computed; at what they choose they differ, or might."""
    case = next(
        case
        for seed in range(20)
        if (case := case_apart(builtin(), seed, [name], True)) is not None and case.graph.loss
    )
    found = {
        ties: gradient_balls(case.graph, case.values, case.catalog, case.balls, ties=ties)
        for ties in ("any", "first", "others", "shared")
    }
    assert leaves_choice(prepare(case.graph, case.catalog, ties="any")) is CHOOSE[name]
    if not CHOOSE[name]:
        for ties, balls in found.items():
            for one, ball in balls.items():
                assert np.array_equal(ball.value, found["any"][one].value, equal_nan=True), ties
                assert np.array_equal(ball.bound, found["any"][one].bound, equal_nan=True), ties
