"""What proofs of the analysis remember, and what may not be taken for the same."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang import equations as eq
from irlang import loads
from irlang.interp.range import analyse

GRU = """nnir 1
model m(x: f32[{steps}, 2, 2] in [-1.7, 1.7], mask: bool[{steps}, 2]) -> y: f32[{steps}, 2, 3] {{
  param w: f32[3, 3, 2] in [-1.2, 1.2]
  param r: f32[3, 3, 3] in [-1, 1]
  param b: f32[3, 3] in [-1.7, 1.7]
  y, last = gru(x, w, r, b; mask = mask, recurrent_activation = hard_sigmoid,
      alpha = 0.5, beta = -1.25, recurrent_alpha = 0.2, recurrent_beta = 0.5)
}}
"""

leaves = st.one_of(
    st.builds(eq.Const, st.one_of(st.integers(-3, 3), st.floats(-3, 3), st.booleans())),
    st.builds(eq.Index, st.sampled_from("ij")),
)


def _inside(inner: st.SearchStrategy[eq.Expr]) -> st.SearchStrategy[eq.Expr]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds(eq.Apply, st.sampled_from("+-*"), pair),
        st.builds(eq.Read, st.sampled_from("xy"), pair),
        st.builds(lambda body: eq.Reduce("sum", (("k", eq.Const(2)),), None, body), inner),
    )


expressions = st.recursive(leaves, _inside, max_leaves=12)


@given(expressions)
def test_a_hash_is_that_of_an_equal_expression_and_does_not_travel(expr: eq.Expr) -> None:
    first = hash(expr)
    other = deepcopy(expr)  # as it is sent to another process
    assert not hasattr(other, "_hash")  # it would be wrong there
    assert other == expr
    assert hash(other) == first == hash(expr)


@given(expressions, expressions)
def test_expressions_are_equal_when_they_are_written_alike(one: eq.Expr, other: eq.Expr) -> None:
    assert (one == other) == (repr(one) == repr(other))


@given(st.lists(expressions, min_size=3, max_size=3), st.lists(st.integers(0, 5), max_size=20))
def test_what_was_found_to_be_the_same_stays_that_and_nothing_else_becomes_so(
    exprs: list[eq.Expr], order: list[int]
) -> None:
    every = [*exprs, *map(deepcopy, exprs)]
    for one in order:
        for other in order:
            assert (every[one] == every[other]) == (repr(every[one]) == repr(every[other]))


def test_expressions_are_compared_however_deep_they_are() -> None:
    def tower(last: int) -> eq.Expr:
        found: eq.Expr = eq.Const(last)
        for _ in range(5000):
            found = eq.Apply("+", (found, eq.Const(1)))
            hash(found)  # as rules do that build one
        return found

    assert tower(0) == tower(0)
    assert tower(0) != tower(2)


@given(expressions)
def test_what_is_remembered_of_an_expression_is_what_is_in_it(expr: eq.Expr) -> None:
    parts = list(eq.walk(expr))
    assert eq.reduces(expr) == any(isinstance(part, eq.Reduce) for part in parts)
    assert eq.reads(expr) == {part.tensor for part in parts if isinstance(part, eq.Read)}
    names = {part.name for part in parts if isinstance(part, eq.Index)}
    assert eq.indices(expr) == names - {"k"}


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, False), (2, 2.0)])
def test_numbers_of_different_kinds_are_not_one(one: float, other: float) -> None:
    """`n + 1` is a whole number and exact, `n + 1.0` is rounded to the type of the call."""
    assert eq.Const(one) != eq.Const(other)
    assert eq.Size("n", one) != eq.Size("n", other)
    assert eq.Const(one) == eq.Const(one)
    assert hash(eq.Const(one)) == hash(eq.Const(one))


@pytest.mark.parametrize("steps", [4, 8])
def test_what_is_remembered_leaves_work_for_more_proofs(steps: int) -> None:
    """Of a cell whose state is an average of itself and a tanh; its proofs were cut short once."""
    model = loads(GRU.format(steps=steps))
    found = analyse(model.graph, model.catalog).values["y"]
    assert 1.0 <= found.high <= 1 + 1e-4
    assert -found.high == found.low
