"""Two processes for a target that takes its time."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterator

import pytest

from irlang.diff import runner
from irlang.diff.runner import Session
from irlang.lower.pair import Pair
from irlang.lower.pool import Limits, Program, Target, Worker, WorkerError
from tests.targets import usable

_HEAD = "import os, time\nimport numpy as np\nINPUTS, OUTPUTS = (), ()\n"


def body(statements: str) -> Program:
    """A program whose `run` is `statements`."""
    run = "def run(inputs, params):\n" + textwrap.indent(textwrap.dedent(statements), "    ")
    return Program("python", _HEAD + run, {})


def number(value: int) -> Program:
    """One that gives a number, and the process that it ran in."""
    return body(f"return {{'n': np.array({value}), 'pid': np.array(os.getpid())}}")


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair(Target("numpy"), Limits(seconds=20.0)) as made:
        yield made


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_results_are_in_the_order_of_the_programs(pair: Pair, count: int) -> None:
    found = pair.submit([number(n) for n in range(count)])
    assert [int(one.outputs["n"]) for one in found] == list(range(count))
    assert len({int(one.outputs["pid"]) for one in found}) == min(count, 2)


def test_several_batches_are_collected_one_after_another(pair: Pair) -> None:
    sizes = (3, 1, 4)
    for size in sizes:
        pair.send([number(n) for n in range(size)])
    found = [[int(one.outputs["n"]) for one in pair.collect()] for _ in sizes]
    assert found == [list(range(size)) for size in sizes]
    with pytest.raises(WorkerError):
        pair.collect()


def test_both_are_at_work_at_once(pair: Pair) -> None:
    """Of two programs each waits for the other's beginning, in a file's name."""
    meet = """
        import tempfile, pathlib
        place = pathlib.Path(tempfile.gettempdir())
        mine, other = (place / f"irlang-pair-{os.getppid()}-{one}" for one in {names})
        mine.touch()
        until = time.monotonic() + 10
        while not other.exists() and time.monotonic() < until:
            time.sleep(0.01)
        met = other.exists()
        time.sleep(0.1)
        mine.unlink()
        return {{'met': np.array(met)}}
    """
    names = [("'a', 'b'"), ("'b', 'a'")]
    made = [body(meet.replace("{names}", f"({one})").replace("{{", "{").replace("}}", "}"))
            for one in names]  # fmt: skip
    assert [bool(one.outputs["met"]) for one in pair.submit(made)] == [True, True]


def test_a_crash_is_that_of_one_program(pair: Pair) -> None:
    programs = [number(0), body("os.abort()"), number(2), number(3)]
    assert [one.status for one in pair.submit(programs)] == ["ok", "crash", "ok", "ok"]


def test_what_is_forgotten_is_no_answer(pair: Pair) -> None:
    pair.send([number(1), number(2)])
    pair.forget()
    assert [int(one.outputs["n"]) for one in pair.submit([number(3), number(4)])] == [3, 4]


def test_none_is_left_when_it_is_closed() -> None:
    with Pair(Target("numpy"), Limits()) as both:
        pids = [int(one.outputs["pid"]) for one in both.submit([number(0), number(1)])]
    until = time.monotonic() + 10
    while time.monotonic() < until and any(map(_lives, pids)):
        time.sleep(0.05)
    assert not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_targets_that_take_their_time_have_two(monkeypatch: pytest.MonkeyPatch) -> None:
    usable("onnxruntime")
    usable("tf:xla")
    several = Session(["onnxruntime", "tf:xla"], side_by_side=True)
    kinds = {name: type(worker) for name, worker in several.workers.items()}
    assert kinds == {"onnxruntime": Worker, "tf:xla": Pair}
    alone = Session(["onnxruntime", "tf:xla"])
    assert {type(worker) for worker in alone.workers.values()} == {Worker}
    monkeypatch.setattr(runner, "on_gpu", lambda _: True)
    shared = Session(["tf:xla"], side_by_side=True)
    assert type(shared.workers["tf:xla"]) is Worker
