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
