"""Faults in a worker are found by a campaign and reduced to next to nothing.

`python -m tests.test_planted_campaign` measures all of them over ten seeds.
"""

from __future__ import annotations

import sys
import time

import pytest

from irlang.diff import batch, gradients, runner, substitute
from irlang.diff.found import Found
from irlang.diff.programs import Settings
from irlang.diff.seen import SEEN
from tests.planted import FAULTS, planted

MOST_CALLS, MOST_ELEMENTS = 2, 16
# What a fault shows itself as: that PyTorch refuses a call of no elements, say, is its own doing.
_OF_FAULTS = frozenset({"wrong", "inaccurate", "nonfinite"})
_BATCHES = 8  # of a campaign; most need one
_SEED = 3


class _Enough(Exception):
    """Something small blames the culprit: what is left of the batch has nothing to add."""


def _campaign(name: str, seed: int, asked: bool = True) -> Found | None:
    """What blames the culprit in the first batch in which something does: the first that is small,
    or the smallest.

    asked: whether all gradients are compared, where the fault is in one.
    """
    fault = FAULTS[name]
    settings = Settings(("torch",), seed, ops=fault.ops, grad=fault.grad and asked)
    blaming: list[Found] = []

    def told(found: Found) -> None:
        if found.operator == fault.culprit and found.verdict.verdict in _OF_FAULTS:
            blaming.append(found)
            if _small(found):
                raise _Enough

    SEEN.clear()
    for number in range(_BATCHES):
        try:
            batch.run_batch(settings, number, told)
        except _Enough:
            batch.close_sessions()  # in the midst of their work
        if blaming:
            return min(blaming, key=_size)
    return None


def _size(found: Found) -> int:
    return sum(array.size for array in found.reduced.values.values())


def _small(found: Found | None) -> bool:
    if found is None:
        return False
    return len(found.reduced.graph.nodes) <= MOST_CALLS and _size(found) <= MOST_ELEMENTS


# The others take longer; the command measures them.
QUICK = [name for name, fault in FAULTS.items() if not fault.grad] + [
    "a gradient off by one in ten thousand",
    "a power divides by its base on the way back",
    # seen first where the rounding of the loss hides it in the program's own gradient
    "a running product divides by its elements on the way back",
    "labels are taken to have the sum 1",
]


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_is_found_and_reduced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    for module in (runner, gradients, substitute):
        monkeypatch.setattr(module, "lower", planted(FAULTS[name]))
    try:
        assert _small(_campaign(name, _SEED))
    finally:
        batch.close_sessions()  # the worker has the fault in it


def test_a_campaign_that_asks_for_no_gradients_compares_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    name = "a gradient off by one in ten thousand"
    for module in (runner, gradients, substitute):
        monkeypatch.setattr(module, "lower", planted(FAULTS[name]))
    try:
        found = _campaign(name, _SEED, asked=False)
        assert found is not None
        assert found.verdict.stage == "backward"
        assert _small(found)
    finally:
        batch.close_sessions()


def test_a_campaign_of_gradients_spoils_calls_too() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    SEEN.clear()
    settings = Settings(("torch",), _SEED, 4, ops=("softmax",), grad=True)
    try:
        counts = batch.run_batch(settings, 0)[0]["invalid"]["torch"]
    finally:
        batch.close_sessions()
    assert sum(counts.values()) > 0


def _measure(seeds: range) -> None:
    for name, fault in FAULTS.items():
        for module in (runner, gradients):
            vars(module)["lower"] = planted(fault)
        found, start = [], time.monotonic()
        for seed in seeds:
            one = _campaign(name, seed)
            size = None if one is None else _size(one)
            calls = None if one is None else len(one.reduced.graph.nodes)
            found.append((calls, size, one is None if fault.harmless else _small(one)))
        batch.close_sessions()
        took = (time.monotonic() - start) / len(seeds)
        good = sum(small for _, _, small in found)
        sys.stdout.write(f"{name}: {good} of {len(seeds)}, {took:.1f} s each, {found}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _measure(range(int(sys.argv[1]) if sys.argv[1:] else 10))
