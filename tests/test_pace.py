"""How the time of a short campaign is shared out."""

from __future__ import annotations

import math
import time

import pytest

from irlang.diff.batch import _Turns
from irlang.diff.pace import PACE, Pace


def _shares(
    whole: float, left: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[float], list[float]]:
    """The shares that some turns have, and the seconds that are left after each.

    whole: the seconds that a whole turn takes. left: those of the campaign.
    """
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(PACE, "until", left)

    def take(share: float) -> bool:
        now[0] += whole * share
        return True

    kind = _Turns(take, 1)
    found = []
    for _ in range(turns):
        assert kind.next()
        found.append((kind.share, PACE.left()))
    return [share for share, _ in found], [seconds for _, seconds in found]


@pytest.mark.parametrize(("whole", "left"), [(0.0, 60.0), (1.0, 60.0), (64.0, math.inf)])
def test_turns_are_twice_as_many_where_there_is_time(
    whole: float, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _shares(whole, left, 4, monkeypatch)[0] == [0.25, 0.5, 1.0, 1.0]


def test_turns_that_take_long_are_followed_by_smaller_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = 64.0
    shares, left = _shares(whole, 120.0, 4, monkeypatch)
    assert shares[0] < 1 / 8
    for share, seconds in zip(shares, left, strict=True):
        assert whole * share <= max(seconds / 20, whole / 16) + 1e-9


def test_looks_at_what_may_be_nothing_have_a_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = Pace()
    assert pace.affords(1e9)
    pace.start(60.0)
    assert pace.affords(1.0)
    assert not pace.affords(20.0)
    with pace.looking_closely():
        now[0] += 2.0
        with pace.looking_closely():  # a look within a look counts once
            now[0] += 1.0
    assert pace.closely == 3.0
    assert not pace.affords(1.0)
    now[0] = 20.0
    assert pace.affords(1.0)


def test_what_hangs_has_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it waited for while something is made smaller or not; without an end it has any."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = Pace()
    pace.wait(1e9)
    assert pace.affords_hang()
    pace.start(60.0)
    pace.wait(8.0)
    assert pace.affords_hang()
    with pace.looking():
        pace.wait(7.5)
        now[0] += 9.0
    assert not pace.affords_hang()


def test_a_kind_that_meets_what_hangs_does_not_wait_for_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It pays for as much of the waiting as a turn may have, and for all that it does itself."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(PACE, "until", 60.0)

    def take(_: float) -> bool:
        now[0] += 12.0 + 0.5
        PACE.wait(12.0)
        with PACE.looking():
            now[0] += 3.0
            PACE.wait(3.0)
        return True

    kind = _Turns(take, 1)
    assert kind.next()
    assert kind.taken == pytest.approx((60.0 - 15.5) / 20 + 0.5)
