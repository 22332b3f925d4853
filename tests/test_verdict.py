"""Verdicts: what lies inside a radius agrees, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.diff.verdict import FINDINGS, SEVERITY, Verdict, gravest, judge, worded, worst_first
from irlang.equations import TensorInfo
from irlang.interp.balls import Ball

INFO = TensorInfo((3,), "f32")
VALUE = np.array([1.0, -2.0, 4.0])


def _judge(got: Any, radius: Any = None, info: TensorInfo = INFO, value: Any = VALUE) -> Verdict:
    return judge("y", "torch", info, Ball(value, radius), got)


def _single(values: list[float]) -> Any:
    return np.array(values, dtype=np.float32)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.floats(1e-6, 1e-3))
def test_agreement_is_being_inside(offsets: list[float], radius: float) -> None:
    got = _single(list(VALUE + radius * np.array(offsets)))
    inside = bool(np.all(np.abs(got.astype(np.float64) - VALUE) <= radius))
    verdict = _judge(got, np.full(3, radius)).verdict
    assert (verdict in ("agrees", "rounding")) == inside


CASES = [
    ("agrees", [1.0, -2.0, 4.0], None),
    ("inaccurate", [1.0001, -2.0, 4.0], np.full(3, 1e-6)),
    ("inaccurate", [1.0001, -1.0, 4.0], np.array([1e-6, 2.0, 1e-6])),  # the second is in a hull
    ("wrong", [1.0, 2.0, 4.0], np.full(3, 1e-6)),
    ("nonfinite", [1.0, np.nan, 4.0], np.full(3, 1e-6)),
    ("nonfinite", [np.inf, -2.0, 4.0], np.full(3, 1e-6)),
    ("unstable", [9.0, 9.0, 9.0], np.full(3, np.inf)),
    ("rounding", [1.1, -2.0, 4.0], np.full(3, 0.5)),
]


@pytest.mark.parametrize(("verdict", "got", "radius"), CASES)
def test_each_verdict(verdict: str, got: list[float], radius: Any) -> None:
    assert _judge(_single(got), radius).verdict == verdict


def test_an_unstable_element_does_not_hide_a_wrong_one() -> None:
    radius = np.array([np.inf, 1e-6, 1e-6])
    found = _judge(_single([77.0, 2.0, 4.0]), radius)
    assert (found.verdict, found.index) == ("wrong", (1,))


def test_shape_and_type_are_part_of_the_result() -> None:
    assert _judge(_single([1.0, -2.0])).verdict == "wrong"
    assert _judge(np.array([1.0, -2.0, 4.0])).verdict == "wrong"  # float64, not float32


def test_integers_are_compared_exactly_beyond_what_a_float_holds() -> None:
    big = np.array([2**53 + 1], dtype=np.int64)
    info = TensorInfo((1,), "i64")
    assert _judge(big, None, info, big).verdict == "agrees"
    assert _judge(big - 1, None, info, big).verdict == "wrong"


def test_not_a_number_agrees_with_itself() -> None:
    value = np.array([np.nan, np.inf, -np.inf])
    assert _judge(_single([np.nan, np.inf, -np.inf]), np.zeros(3), value=value).verdict == "agrees"
    assert (
        _judge(_single([np.nan, -np.inf, -np.inf]), np.zeros(3), value=value).verdict == "nonfinite"
    )


def test_the_gravest_decides_and_no_verdict_decides_nothing() -> None:
    assert gravest(["agrees", "wrong", "rounding"]) == "wrong"
    assert gravest(["unstable", "agrees"]) == "agrees"
    assert set(SEVERITY) >= FINDINGS


def test_json_is_json() -> None:
    found = _judge(_single([1.0, np.nan, 4.0]), np.full(3, 1e-6))
    text = json.dumps(found.as_json(), allow_nan=False)
    assert {"name", "target", "verdict", "max_error", "radius", "index"} <= json.loads(text).keys()


def test_the_largest_whole_numbers_are_compared_as_they_are() -> None:
    info = TensorInfo((2,), "u64")
    right = np.array([2**64 - 1, 2**63 + 1], dtype=np.uint64)
    assert _judge(right, info=info, value=right).verdict == "agrees"
    wrong = np.array([2**64 - 1, 2**63], dtype=np.uint64)
    assert _judge(wrong, info=info, value=right).verdict == "wrong"


def test_every_finding_has_its_place_among_those_to_read() -> None:
    found = [{"verdict": verdict, "id": n} for n, verdict in enumerate(sorted(FINDINGS) * 2)]
    read = [(one["verdict"], one["id"]) for one in worst_first(found)]
    assert {verdict for verdict, _ in read} == FINDINGS
    assert [v for v, _ in read[:2]] == ["crash"] * 2
    assert read[0][1] < read[1][1]  # of one verdict, the first to be found comes first
    assert read[-1][0] == "accepted"


def test_what_was_not_repeated_is_read_last() -> None:
    found = [{"verdict": v, "id": r, "repeated": r} for r in (False, True) for v in FINDINGS]
    read = worst_first([*found, {"verdict": "wrong", "id": True}])  # of an older campaign
    assert [one["id"] for one in read] == [True] * (len(FINDINGS) + 1) + [False] * len(FINDINGS)
    assert [worded(one) for one in read[:1] + read[len(FINDINGS) + 1 :][:1]] == [
        "crash",
        "crash (not repeated)",
    ]


@given(st.floats(1e5, 3e38), st.sampled_from([0.5, 1.0, 3.0, -40.0]))
def test_a_huge_element_excuses_no_other(huge: float, off: float) -> None:
    """A number of whole steps beside 1e38 is as wrong as it is by itself."""
    value = np.array([-2.0, 1.0, huge])
    got = _single([-2.0 + off, 1.0, huge])
    radius = np.array([1e-6, 1e-6, huge])
    found = _judge(got, radius, value=value)
    assert (found.verdict, found.index) == ("wrong", (0,))
    near = _judge(_single([-2.0, 1.0, huge * 1.0001]), np.array([1e-6, 1e-6, 0.0]), value=value)
    assert (near.verdict, near.index) == ("inaccurate", (2,))


def test_whole_numbers_are_told_as_they_are() -> None:
    """Beyond 2**53 two of them are one float."""
    ball = Ball(np.array([2**53 + 1]), np.zeros(1))
    verdict = judge("y", "t", TensorInfo((1,), "i64"), ball, np.array([2**53]))
    assert verdict.verdict == "wrong"
    assert (verdict.expected, verdict.got) == (2**53 + 1, 2**53)
    assert verdict.as_json()["expected"] == 2**53 + 1
