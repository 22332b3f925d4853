"""Programs that are run apart: what one does to its process costs a fork, and nobody else."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.lower import worker as wire
from irlang.lower.message import read_answer, read_hello
from irlang.lower.pool import Limits, Program, Target, Worker

Array = np.ndarray[Any, np.dtype[Any]]


def body(statements: str, **inputs: Array) -> Program:
    """A program whose `run` is `statements`."""
    head = "import os, sys, time\nimport numpy as np\nINPUTS, OUTPUTS = (), ()\n"
    run = "def run(inputs, params):\n" + textwrap.indent(textwrap.dedent(statements), "    ")
    return Program("python", head + run, inputs)


def same(value: float) -> Program:
    return body("return {'y': inputs['x'], 'pid': np.array(os.getpid())}", x=np.array([value]))


@pytest.fixture(scope="module")
def spare() -> Iterator[Worker]:
    with Worker(Target("numpy"), Limits(seconds=1.0)) as worker:
        found = worker.spare()
        assert found is not None
        yield found


def around(worker: Worker, poison: Program) -> Any:
    """The result of `poison`, after a check that its neighbours in the batch are unharmed."""
    before, result, after = worker.submit([same(1), poison, same(2)])
    assert [before.status, after.status] == ["ok", "ok"]
    assert [other.outputs["y"].item() for other in (before, after)] == [1, 2]
    return result


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
        ("print('last words'); os.abort()", "killed by SIGABRT"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os._exit(3)", "exited with status 3"),
        ("os._exit(0)", "exited with status 0"),
    ],
)
def test_a_death_is_the_same_crash_as_in_a_process_of_its_own(
    spare: Worker, statement: str, error: str
) -> None:
    apart = around(spare, body(statement))
    assert (apart.status, apart.error) == ("crash", error)
    with Worker(Target("numpy")) as worker:
        alone = worker.submit([body(statement)])[0]
    assert (alone.status, alone.error) == ("crash", error)
    for key in ("signal", "exit_code"):
        assert apart.detail.get(key) == alone.detail.get(key)
    for words in ("last words", "Fatal Python error"):
        assert (words in apart.detail["output"]) == (words in alone.detail["output"])


def test_what_was_printed_is_of_the_program_that_was_lost(spare: Worker) -> None:
    first, second = spare.submit([body("print('said first'); os.abort()"), body("os.abort()")])
    assert "said first" in first.detail["output"]
    assert "said first" not in second.detail["output"]


def test_a_hang_is_a_timeout_that_tells_where(spare: Worker) -> None:
    start = time.monotonic()
    result = around(spare, body("while True: pass"))
    assert (result.status, result.error) == ("timeout", "no answer within 1 s")
    assert 'File "<program>", line 5 in run' in result.detail["output"]
    assert time.monotonic() - start < 10


def test_a_stopped_process_is_a_timeout(spare: Worker) -> None:
    result = around(spare, body("os.kill(os.getpid(), 19); return {}"))
    assert result.status == "timeout"


def test_memory_is_bounded() -> None:
    hoard = "kept = []\nwhile True:\n    kept.append(np.ones(1 << 20))\n    time.sleep(0.005)"
    with Worker(Target("numpy"), Limits(memory=300 << 20), apart=True) as worker:
        assert around(worker, body(hoard)).error == "resident memory passed 300 MiB"


def test_programs_share_nothing_and_the_process_that_forks_stays(spare: Worker) -> None:
    """Also behind a program that leaves a process which holds the pipe."""
    pid = spare.hello().pid
    left = "if not os.fork():\n    time.sleep(60)\nreturn {'y': inputs['x']}"
    results = spare.submit([same(1), body(left, x=np.ones(1)), body("os.abort()"), same(2)])
    assert [r.status for r in results] == ["ok", "ok", "crash", "ok"]
    used = {int(results[n].outputs["pid"]) for n in (0, 3)}
    assert len(used) == 2
    assert pid not in used
    os.kill(pid, 0)


def test_many_crashes_cost_little(spare: Worker) -> None:
    """A hundred within the time of some dozen starts of an interpreter with NumPy."""
    start = time.monotonic()
    results = spare.submit([body("os.abort()")] * 100)
    assert {r.status for r in results} == {"crash"}
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("written", "ending", "error"),
    [
        (wire._PREFIX.pack(b"irl1", 9, 1 << 20), "os.abort()", "killed by SIGABRT"),
        (wire._PREFIX.pack(b"irl1", 9, 1 << 20), "time.sleep(60)", "no answer within 1 s"),
        (b"x" * 100, "time.sleep(60)", "wrote something else than answers to its private pipe"),
    ],
)
def test_half_an_answer_and_what_is_none(
    spare: Worker, written: bytes, ending: str, error: str
) -> None:
    scribble = f"""
        for fd in range(3, 20):
            try:
                os.write(fd, {written!r})
            except OSError:
                continue
        {ending}
    """
    pid = spare.hello().pid
    assert around(spare, body(scribble)).error == error
    os.kill(pid, 0)  # it can reach neither the process that forks nor its pipes


ANSWER = wire.pack_frame(
    {
        "status": "ok", "error": "", "detail": {}, "seconds": 0.5, "gradients": [],
        "outputs": [["y", "float32", [2]]], "retire": False,
    },
    [np.ones(2, "<f4").tobytes()],
)  # fmt: skip
HELLO = wire.pack_frame(
    {"hello": 1, "framework": "numpy", "version": "2", "python": "3", "numpy": "2", "pid": 1}, ()
)


def test_what_moves_a_terminal_is_not_told() -> None:
    """Keras writes its messages in bold; what they say reaches terminals, pages and issues."""
    said = "a\x1b[1mb\x1b[0m \x1b]0;title\x07c\x1b[2J\x00\rd\u202ee\tf\ng"
    header = {"status": "refused", "error": said, "detail": {}, "seconds": 0, "retire": False}
    assert read_answer(bytearray(wire.pack_frame(header, ())))[1].error == "ab cde\tf\ng"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_is_no_answer_is_never_more_than_a_wire_error(data: st.DataObject) -> None:
    """Bytes of a frame behind its prefix are cut, changed and put in."""
    frame = bytearray(data.draw(st.sampled_from([ANSWER, HELLO])))
    assert read_answer(bytearray(ANSWER))[1].outputs["y"].tolist() == [1, 1]
    assert read_hello(bytearray(HELLO))["framework"] == "numpy"
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(frame) - 1)))
        how = data.draw(st.sampled_from(["cut", "put", "change", "drop"]))
        if how == "cut":
            del frame[max(place, wire._PREFIX.size) :]
        elif how == "put":
            frame[place:place] = data.draw(
                st.sampled_from([b"9", b"-", b"[", b'"', b"\x00", b"e9"])
            )
        elif how == "change":
            frame[place : place + 1] = data.draw(st.binary(min_size=1, max_size=1))
        else:
            del frame[place : place + 3]
    for read in (read_answer, read_hello):
        try:
            read(frame)
        except wire.WireError:
            continue


@pytest.mark.parametrize(
    ("statement", "late"), [("while True: pass", True), ("time.sleep(60)", False)]
)
def test_late_for_want_of_the_processor(statement: str, late: bool) -> None:
    """A process that wants it is late, until it had its share or eight times its time."""
    work = "sum(range(5_000_000))"  # more than a tick of the clock
    code = f"import time\n{work}\nprint('on', flush=True)\n{statement}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        time.sleep(0.5)
        pid = str(process.pid)
        assert wire.starved(pid, worked=0.9, seconds=1.0, beyond=0.1) is late
        assert not wire.starved(pid, worked=1.0, seconds=1.0, beyond=0.1)
        assert not wire.starved(pid, worked=0.9, seconds=1.0, beyond=7.0)
        assert wire.processor_seconds(pid) > 0
        process.kill()
    assert not wire.starved(pid, worked=0.9, seconds=1.0, beyond=0.1)
    assert wire.processor_seconds(pid) == 0
