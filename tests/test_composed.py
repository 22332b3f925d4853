"""Idioms that nobody wrote: what is drawn, and that it can be called."""

from hypothesis import given
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.gen.build import generate
from irlang.gen.choice import Chooser
from irlang.gen.composed import composable, composed
from irlang.gen.idiom import GIVEN, Idiom, Step
from irlang.gen.pattern import Pattern, pattern


def _patterns(*names: str) -> list[Pattern]:
    return composable(pattern(op) for op in builtin() if not names or op.name in names)


def _drawn(count: int, *names: str) -> list[Idiom]:
    return [composed(_patterns(*names), Chooser(f"composed {seed}")) for seed in range(count)]


@given(st.integers(0, 2**31))
def test_each_call_reads_another_or_the_given_value(seed: int) -> None:
    steps = composed(_patterns(), Chooser(seed))
    assert 0 < len(steps) < 5
    for at, step in enumerate(steps):
        read = [one for one in step.operands if type(one) is int]
        assert read
        assert all(one == GIVEN or 0 <= one < at for one in read)


def test_operators_of_no_result_or_of_any_number_of_tensors_are_left_out() -> None:
    known = {one.op.name for one in _patterns()}
    assert {"add", "relu", "reduce_max", "transpose", "less"} <= known
    assert not {"concat", "lstm", "where", "arange"} & known


def test_what_optimisers_rewrite_is_among_few_draws() -> None:
    """Sums that are put in another order, factors that are taken out, what is monotone."""
    sums = _drawn(400, "add", "subtract", "floor_divide", "divide")
    difference = Step("subtract", (GIVEN, GIVEN), {})
    assert any(s[:1] == (difference,) and s[1].op == "add" and s[1].numbers for s in sums if s[1:])
    assert any(s[0].op == "floor_divide" and Step("add", (0, 0), {}) in s for s in sums)
    assert any(s[0].op == "divide" and Step("add", (0, 0), {}) in s for s in sums)
    largest = _drawn(100, "reduce_max", "sqrt", "log")
    assert any(Step("sqrt", (GIVEN,), {}) == s[0] and s[1].op == "reduce_max" for s in largest)


def test_most_of_them_can_be_called() -> None:
    names = ("add", "multiply", "divide", "relu", "sqrt", "reduce_sum", "transpose", "maximum")
    made = [
        generate(builtin(), seed, ops=names, piece=steps).graph
        for seed, steps in enumerate(_drawn(60, *names))
    ]
    assert sum(bool(graph.nodes) for graph in made) > 54
