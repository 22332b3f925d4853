"""The exact meaning, against arithmetic that can be checked by hand."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from irlang import equations as eq
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import Apply, Const, Index, Read, Reduce, Size, TensorInfo
from irlang.interp import exact
from irlang.interp.exact_scalar import apply
from irlang.scalar import SCALARS, WHOLE
from irlang.scalar_row import Scalar

R, J = Index("i"), Index("j")
EDGES = [math.nan, math.inf, -math.inf, 0.0, -1.0, 1.0, 2.5, -2.5, 1e300, -1e300, 1e-300, 3.0, -0.5]


def one(body: eq.Expr, size: int = 1, dtype: str = "f64", **inputs: Any) -> list[Any]:
    """The elements of `y[i < size] = body`."""
    dtypes = {"f": "f64", "i": "i64", "O": "f64"}
    infos = {
        name: TensorInfo(np.shape(value), dtypes[np.asarray(value).dtype.kind])
        for name, value in inputs.items()
    }
    info = TensorInfo((size,), dtype)
    equation = eq.Equation("y", (("i", Size("N", size)),), body, info)
    expansion = eq.Expansion(tuple(inputs), ("y",), (equation,), {**infos, "y": info})
    return list(exact.evaluate(expansion, inputs)["y"].values)


def reduce(kind: str, size: int, body: eq.Expr | None, where: eq.Expr | None = None) -> Reduce:
    return Reduce(kind, (("j", Size("M", size)),), where, body)


def code_of(caught: pytest.ExceptionInfo[InvalidInput]) -> str:
    return caught.value.diagnostics[0].code


REALS = [row for row in SCALARS.values() if row.name not in WHOLE]


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_functions_of_integers_are_numpys(name: str) -> None:
    row = SCALARS[name]
    edges = [0, 1, -1, 2, 5, -7, 63, 2**31, 2**62 + 1, 2**63 - 1, -(2**63)]
    for values in itertools.product(edges, repeat=row.arity):
        with np.errstate(all="ignore"):
            want = int(row.numpy(*map(np.int64, values)))
        got = apply(name, values)
        assert (got - want) % 2**64 == 0, (name, values, got, want)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f8e4m3fn", "f8e5m2", "f4e2m1"])
def test_rounding_to_few_digits_is_that_of_the_types(dtype: str) -> None:
    row = DTYPES[dtype]
    digits = round(-math.log2(row.unit))
    edges = [0.0, row.largest, row.tiny, row.tiny * row.unit, 3 * row.tiny * row.unit, math.pi]
    edges += [(1 + k * row.unit) * row.tiny for k in range(5)] + [
        1 + k * row.unit for k in range(5)
    ]
    for value in (*edges, *(-edge for edge in edges)):
        want = float(np.asarray(value).astype(row.numpy))
        given = (value, digits, 2 * row.unit * row.tiny)
        assert float(SCALARS["rounded"].numpy(*given)) == want, value
        assert float(apply("rounded", [mpmath.mpf(given[0]), *given[1:]])) == want, value


@pytest.mark.parametrize("name", [row.name for row in REALS if row.arity == 1])
def test_functions_of_one_argument_are_numpys_at_edges_and_elsewhere(name: str) -> None:
    row = SCALARS[name]
    for value in EDGES:
        if name == "int" and not abs(value) < 2**63:
            continue  # the least integer, by definition
        got = float(apply(name, [mpmath.mpf(value)]))
        with np.errstate(all="ignore"):
            want = float(row.numpy(np.float64(value)))
        assert _same(got, want, row), (name, value, got, want)


@pytest.mark.parametrize("name", [row.name for row in REALS if row.arity == 2])
def test_functions_of_two_arguments_are_numpys_at_edges_and_elsewhere(name: str) -> None:
    row = SCALARS[name]
    for a in EDGES:
        for b in EDGES:
            got = float(apply(name, [mpmath.mpf(a), mpmath.mpf(b)]))
            with np.errstate(all="ignore"):
                want = float(row.numpy(np.float64(a), np.float64(b)))
            assert _same(got, want, row), (name, a, b, got, want)


def _same(got: float, want: float, row: Scalar) -> bool:
    if math.isnan(got) or math.isnan(want) or math.isinf(want):
        return math.isnan(got) == math.isnan(want) and (math.isnan(got) or got == want)
    return abs(got - want) <= (row.ulps + 1) * math.ulp(max(abs(want), row.least))


def test_reals_have_the_digits_that_are_asked_for() -> None:
    (third,) = one(Size("1/3", Fraction(1, 3)))
    with mpmath.workdps(60):
        assert abs(third * 3 - 1) < mpmath.mpf(10) ** -49


def test_a_sum_that_float64_loses_is_kept() -> None:
    assert one(reduce("sum", 3, Read("x", (J,))), x=[1e30, 1.0, -1e30]) == [1]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("sum", 0), ("prod", 1), ("max", mpmath.ninf), ("min", mpmath.inf), ("count", 0)],
)
def test_reductions_over_nothing(kind: str, value: object) -> None:
    assert one(reduce(kind, 0, None if kind == "count" else Read("x", (J,))), x=[1.0]) == [value]


def test_truth_over_nothing() -> None:
    body = Apply("<", (J, Const(0)))
    assert one(reduce("all", 0, body), dtype="bool") == [True]
    assert one(reduce("any", 0, body), dtype="bool") == [False]


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_the_first_among_equals_is_chosen_and_nan_before_all(kind: str) -> None:
    body = reduce(kind, 4, Read("x", (J,)))
    assert one(body, dtype="i64", x=[1.0, 1.0, 1.0, 1.0]) == [0]
    place = getattr(np, kind)
    for x in ([3.0, 1.0, 3.0, 1.0], [1.0, math.nan, 9.0, math.nan], [-1.0, -2.0, 5.0, 5.0]):
        assert one(body, dtype="i64", x=x) == [place(x)]


def test_nan_is_passed_on_by_extrema() -> None:
    for kind in ("max", "min"):
        (value,) = one(reduce(kind, 3, Read("x", (J,))), x=[1.0, math.nan, 2.0])
        assert mpmath.isnan(value)


def test_a_filter_leaves_out_what_would_fail() -> None:
    inside = Apply("<", (J, Const(2)))
    assert one(reduce("sum", 5, Read("x", (J,)), inside), x=[1.0, 2.0]) == [3]


def test_a_branch_that_is_not_taken_reads_nothing() -> None:
    body = Apply("select", (Apply("<", (R, Const(2))), Read("x", (R,)), Const(7)))
    assert one(body, size=3, x=[1.0, 2.0]) == [1, 2, 7]
    guarded = Apply("and", (Apply("<", (R, Const(2))), Apply(">", (Read("x", (R,)), Const(1)))))
    assert one(guarded, size=3, dtype="bool", x=[1.0, 2.0]) == [False, True, False]


def test_reading_outside_names_tensor_index_and_shape() -> None:
    with pytest.raises(InvalidInput, match=r"`x` of shape \[2\] is read at \[2\]") as caught:
        one(Read("x", (R,)), size=3, x=[1.0, 2.0])
    assert code_of(caught) == "run.outside"
    assert one(Read("x", (R,), Const(-4)), size=3, x=[1.0, 2.0]) == [1, 2, -4]


def test_the_is_the_first_that_fits() -> None:
    fits = Apply("==", (Read("x", (J,)), Const(2)))
    assert one(reduce("the", 4, J, fits), dtype="i64", x=[1.0, 2.0, 2.0, 3.0]) == [1]
    with pytest.raises(InvalidInput) as caught:
        one(reduce("the", 2, J, fits), x=[1.0, 3.0])
    assert code_of(caught) == "run.none"


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_integers_wrap_when_they_are_stored(dtype: str) -> None:
    bits = int(dtype[1:])
    body = Apply("*", (Read("x", (R,)), Const(3)))
    values = [2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 5, -1]
    got = one(body, 4, dtype, x=np.array(values, dtype=np.int64))
    width = 2**bits
    for value, stored in zip(values, got, strict=True):
        assert (stored - 3 * value) % width == 0
        assert stored in (range(width) if dtype[0] == "u" else range(-width // 2, width // 2))


def test_conversions_truncate_and_what_cannot_be_held_is_the_least() -> None:
    x = [2.7, -2.7, math.nan, math.inf, 1e30]
    assert one(Read("x", (R,)), 5, "i64", x=x) == [2, -2, *[-(2**63)] * 3]
    assert one(Read("x", (R,)), 3, "bool", x=[0.0, -0.5, math.nan]) == [False, True, True]


def test_a_long_recurrence_does_not_exhaust_the_stack() -> None:
    length = 3000
    before = Read("y", (Apply("-", (R, Const(1))),), Const(0))
    assert one(Apply("+", (before, Const(1))), length) == list(range(1, length + 1))
    after = Read("y", (Apply("+", (R, Const(1))),), Const(0))
    assert one(Apply("+", (after, Const(1))), length) == list(range(length, 0, -1))


@pytest.mark.parametrize("shift", [0, 1])
def test_a_circle_is_a_fault(shift: int) -> None:
    other = Apply("%", (Apply("+", (R, Const(shift))), Const(700)))
    with pytest.raises(InvalidInput) as caught:
        one(Read("y", (other,)), 700)
    assert code_of(caught) == "definition.recurrence"


def test_too_much_work_is_refused() -> None:
    info = TensorInfo((1000,), "f64")
    body = reduce("sum", 10**9, Const(1.0))
    equation = eq.Equation("y", (("i", Size("N", 1000)),), body, info)
    with pytest.raises(InvalidInput) as caught:
        exact.evaluate(eq.Expansion((), ("y",), (equation,), {"y": info}), {}, limit=10_000)
    assert code_of(caught) == "run.work"


def test_every_violated_check_is_told() -> None:
    infos = {"x": TensorInfo((2,), "f64")}
    checks = tuple(
        eq.Check(f"op.{limit}", reduce("all", 2, Apply("<", (Read("x", (J,)), Const(limit)))), "m")
        for limit in (1, 2, 5)
    )
    expansion = eq.Expansion(("x",), (), (), infos, checks)
    with pytest.raises(InvalidInput) as caught:
        exact.evaluate(expansion, {"x": [1.0, 3.0]})
    assert [d.code for d in caught.value.diagnostics] == ["op.1", "op.2"]


@pytest.mark.parametrize("given", [{}, {"x": [1.0, 2.0, 3.0]}])
def test_inputs_must_be_there_and_fit(given: dict[str, Any]) -> None:
    expansion = eq.Expansion(("x",), (), (), {"x": TensorInfo((2,), "f64")})
    with pytest.raises(InvalidInput) as caught:
        exact.evaluate(expansion, given)
    assert code_of(caught) == "run.input"


def test_inputs_may_be_mpmath_numbers() -> None:
    with mpmath.workdps(50):
        x = [mpmath.mpf(1) + mpmath.mpf(10) ** -30]
    (value,) = one(Apply("-", (Read("x", (R,)), Const(1))), x=x)
    assert abs(value * 10**30 - 1) < 1e-15
