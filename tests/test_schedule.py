"""The order of equations: dependencies, recurrences in both directions, what need not wait."""

import random

import pytest

from irlang import equations as eq
from irlang.diagnostics import InvalidInput
from irlang.interp.schedule import Recurrence, components, hoist, schedule

T, W, K = eq.Index("t"), eq.Index("i"), eq.Index("k")
LENGTH, WIDTH = eq.Size("L", 5), eq.Size("W", 3)


def plus(left: eq.Expr, right: eq.Expr) -> eq.Expr:
    return eq.Apply("+", (left, right))


def minus(left: eq.Expr, right: eq.Expr) -> eq.Expr:
    return eq.Apply("-", (left, right))


def read(tensor: str, *index: eq.Expr) -> eq.Read:
    return eq.Read(tensor, index, eq.Const(0))


def total(bound: eq.Expr, body: eq.Expr, where: eq.Expr | None = None) -> eq.Expr:
    return eq.Reduce("sum", (("k", bound),), where, body)


def equation(target: str, body: eq.Expr, rank: int = 1) -> eq.Equation:
    binders = (("t", LENGTH), ("i", WIDTH))[:rank]
    return eq.Equation(target, binders, body, eq.TensorInfo((5, 3)[:rank], "f32"))


def targets(step: eq.Equation | Recurrence) -> list[str]:
    if isinstance(step, Recurrence):
        return [member.target for member in step.equations]
    return [step.target]


def test_each_equation_comes_after_what_it_reads() -> None:
    steps = schedule(
        [
            equation("c", plus(read("b", T), read("a", T))),
            equation("b", read("a", minus(eq.Const(4), T))),
            equation("a", read("x", T)),
        ]
    )
    assert [targets(step) for step in steps] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("seed", range(20))
def test_components_agree_with_reachability(seed: int) -> None:
    rng = random.Random(seed)
    names = [str(n) for n in range(rng.randint(1, 9))]
    graph = {n: [m for m in names if rng.random() < 0.2] for n in names}
    reach = {n: {n, *graph[n]} for n in names}
    for k in names:
        for n in names:
            if k in reach[n]:
                reach[n] |= reach[k]
    found = components(graph)
    assert sorted(n for group in found for n in group) == sorted(names)
    seen: set[str] = set()
    for group in found:
        assert all(
            set(group) == {m for m in names if m in reach[n] and n in reach[m]} for n in group
        )
        seen |= set(group)
        assert all(set(graph[n]) <= seen for n in group)


@pytest.mark.parametrize(("sign", "descending"), [(minus, False), (plus, True)])
def test_a_recurrence_goes_the_way_its_reads_point(sign, descending) -> None:  # type: ignore[no-untyped-def]
    (step,) = schedule([equation("h", plus(read("x", T), read("h", sign(T, eq.Const(2)))))])
    assert isinstance(step, Recurrence)
    assert step.descending is descending
    assert step.axes == (0,)
    assert step.length == 5


def test_members_of_a_step_are_in_the_order_of_their_reads() -> None:
    (step,) = schedule(
        [
            equation("h", read("c", T)),
            equation("c", read("g", T)),
            equation("g", read("h", minus(T, eq.Const(1)))),
        ]
    )
    assert targets(step) == ["g", "c", "h"]


def test_the_axis_may_stand_at_different_positions() -> None:
    first = eq.Equation(
        "a",
        (("i", WIDTH), ("t", LENGTH)),
        read("b", minus(T, eq.Const(1)), W),
        eq.TensorInfo((3, 5), "f32"),
    )
    (step,) = schedule([first, equation("b", read("a", W, T), rank=2)])
    assert isinstance(step, Recurrence)
    assert dict(zip(targets(step), step.axes, strict=True)) == {"a": 1, "b": 0}


def test_a_triangle_of_earlier_elements_is_a_recurrence() -> None:
    """Forward substitution: each unknown reads all earlier ones."""
    body = total(T, eq.Apply("*", (read("a", T, K), read("x", K))))
    (step,) = schedule([equation("x", minus(read("b", T), body))])
    assert isinstance(step, Recurrence)
    assert not step.descending


@pytest.mark.parametrize(
    "group",
    [
        [equation("h", read("h", T))],
        [equation("a", read("b", T)), equation("b", read("a", T))],
        [equation("h", plus(read("h", minus(T, eq.Const(1))), read("h", plus(T, eq.Const(1)))))],
        [equation("h", read("h", minus(eq.Const(4), T)))],
        [equation("h", read("h", eq.Read("x", (T,))))],
        [equation("h", total(LENGTH, read("h", K)))],
        [equation("h", total(plus(T, eq.Const(1)), read("h", K)))],
        [eq.Equation("s", (), eq.Read("s", ()), eq.TensorInfo((), "f32"))],
    ],
)
def test_a_circle_is_reported_with_its_equations(group: list[eq.Equation]) -> None:
    with pytest.raises(InvalidInput) as caught:
        schedule(group)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "definition.recurrence"
    assert all(f"`{member.target}`" in diagnostic.message for member in group)


def test_a_target_has_one_equation() -> None:
    with pytest.raises(InvalidInput, match="more than one equation"):
        schedule([equation("a", read("x", T)), equation("a", read("x", T))])


def test_reductions_that_need_no_step_are_evaluated_before_the_loop() -> None:
    tensors = {"x": eq.TensorInfo((5, 4), "f32"), "h": eq.TensorInfo((5,), "f32")}
    input_part = total(eq.Size("C", 4), read("x", T, K))
    own_part = eq.Reduce("sum", (("m", LENGTH),), None, read("h", minus(T, eq.Const(1))))
    (step,) = schedule([equation("h", plus(input_part, own_part))])
    assert isinstance(step, Recurrence)
    before, rest = hoist(step, tensors)
    (moved,) = before
    assert moved.target == "h#1"
    assert moved.info == eq.TensorInfo((5,), "f64")
    assert not {name for name, _ in moved.binders} & {"t", "i", "k"}
    assert eq.indices(moved.body) == {name for name, _ in moved.binders}
    assert rest.equations[0].body == plus(eq.Read("h#1", (T,)), own_part)


def test_a_guarded_reduction_stays_where_it_is() -> None:
    inner = total(eq.Size("C", 4), eq.Read("x", (minus(T, eq.Const(1)), K)))
    guarded = eq.Apply("select", (eq.Apply(">", (T, eq.Const(0))), inner, eq.Const(0)))
    (step,) = schedule([equation("h", plus(guarded, read("h", minus(T, eq.Const(1)))))])
    assert isinstance(step, Recurrence)
    before, rest = hoist(step, {"x": eq.TensorInfo((5, 4), "f32")})
    assert before == ()
    assert rest == step
