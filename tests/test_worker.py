"""Workers: what a program does to its process is that program's result, and nobody else's."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irlang.diff.report_words import last_words
from irlang.lower import pool
from irlang.lower import worker as wire
from irlang.lower.pool import Late, Limits, Program, Target, Worker, WorkerError
from irlang.lower.process import Process
from tests.worker_programs import DOUBLE, body, double, program


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


@pytest.fixture(scope="module")
def numpy_worker() -> Iterator[Worker]:
    with Worker(Target("numpy"), Limits(seconds=1.0)) as worker:
        yield worker


def around(worker: Worker, poison: Program) -> Any:
    """The result of `poison`, after a check that its neighbours in the batch are unharmed."""
    before, result, *after = worker.submit([double(1), poison, double(2), double(3)])
    assert [before.status] + [other.status for other in after] == ["ok"] * 3
    assert [other.outputs["y"].item() for other in (before, *after)] == [2, 4, 6]
    return result


def test_hello_says_what_runs(numpy_worker: Worker) -> None:
    hello = numpy_worker.hello()
    assert (hello.framework, hello.version, hello.numpy) == ("numpy",) + (np.__version__,) * 2
    assert hello.python == ".".join(map(str, sys.version_info[:3]))
    assert hello.pid != os.getpid()
    assert alive(hello.pid)


def test_results_come_in_the_order_of_the_batch(numpy_worker: Worker) -> None:
    results = numpy_worker.submit([double(value) for value in range(300)])
    assert [result.outputs["y"].item() for result in results] == [2 * v for v in range(300)]
    assert all(result.status == "ok" and result.error == "" for result in results)
    assert all(0 < result.seconds < 1 for result in results)


def test_batches_are_collected_in_the_order_of_sending(numpy_worker: Worker) -> None:
    for value in range(5):
        numpy_worker.send([double(value)])
    assert [numpy_worker.collect()[0].outputs["y"].item() for _ in range(5)] == [0, 2, 4, 6, 8]
    with pytest.raises(WorkerError, match="no batch was sent"):
        numpy_worker.collect()


def test_an_empty_batch_has_no_results(numpy_worker: Worker) -> None:
    assert numpy_worker.submit([]) == []


def test_params_and_gradients(numpy_worker: Worker) -> None:
    x, b = np.arange(3.0), np.array(0.5)
    whole = Program("python", textwrap.dedent(DOUBLE), {"x": x}, {"b": b}, grad=True)
    (result,) = numpy_worker.submit([whole])
    np.testing.assert_array_equal(result.outputs["y"], 2 * x + 0.5)
    np.testing.assert_array_equal(result.gradients["x"], [2, 2, 2])


def test_outputs_survive_a_refused_gradient(numpy_worker: Worker) -> None:
    code = textwrap.dedent(DOUBLE).replace("np.full_like", "np.no_such_function")
    (result,) = numpy_worker.submit([program(code, grad=True, x=np.ones(1))])
    assert (result.status, result.detail["stage"]) == ("refused", "gradient")
    assert result.outputs["y"].item() == 2
    assert result.gradients == {}


@pytest.mark.parametrize("dtype", [*wire._DTYPES])
def test_every_dtype_goes_there_and_back(numpy_worker: Worker, dtype: str) -> None:
    real = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    values = np.array([[0, 1, 2], [3, 100, 1]]).astype(real)
    arrays = {
        "matrix": values,
        "transposed": values.T,
        "scalar": values[1, 1].reshape(()),
        "empty": values[:0],
        "swapped": values if dtype == "bfloat16" else values.astype(real.newbyteorder(">")),
    }
    code = """
        INPUTS = OUTPUTS = ("matrix", "transposed", "scalar", "empty", "swapped")
        BFLOAT16 = OUTPUTS if DTYPE == "bfloat16" else ()

        def run(inputs, params):
            expected = "uint16" if DTYPE == "bfloat16" else DTYPE
            assert {array.dtype.name for array in inputs.values()} == {expected}
            assert all(a.flags.writeable and a.flags.aligned for a in inputs.values())
            return inputs
    """.replace("DTYPE", repr(dtype))
    (result,) = numpy_worker.submit([program(code, **arrays)])
    assert result.status == "ok", result.error
    for name, sent in arrays.items():
        back = result.outputs[name]
        assert (back.dtype, back.shape) == (real, sent.shape)
        np.testing.assert_array_equal(back, sent)


def test_bits_of_nan_and_signed_zero_are_kept(numpy_worker: Worker) -> None:
    bits = np.array([0x7FC00001, 0xFFC00000, 0x80000000, 1], np.uint32)
    code = 'INPUTS = OUTPUTS = ("x",)\ndef run(inputs, params):\n    return inputs\n'
    (result,) = numpy_worker.submit([program(code, x=bits.view(np.float32))])
    np.testing.assert_array_equal(result.outputs["x"].view(np.uint32), bits)


def test_a_dtype_that_cannot_be_sent_is_refused_at_once(numpy_worker: Worker) -> None:
    with pytest.raises(wire.WireError, match="x: arrays of dtype"):
        numpy_worker.send([program(DOUBLE, x=np.array(["text"]))])


@pytest.mark.parametrize(
    ("poison", "kind", "stage", "line"),
    [
        (body("raise ValueError('no such kernel')"), "ValueError", "run", 5),
        (body("return np.ones(2) @ np.ones(3)"), "ValueError", "run", 5),
        (body("sys.exit('leaving')"), "SystemExit", "run", 5),
        (program("INPUTS = 1 / 0"), "ZeroDivisionError", "build", 1),
        (program("def run(:"), "SyntaxError", "build", 1),
        (program("INPUTS = OUTPUTS = ()"), "ContractError", "contract", None),
        (body("return 7"), "ContractError", "contract", None),
        (body("return {'y': object()}"), "WireError", "contract", None),
        (body("raise KeyboardInterrupt"), "KeyboardInterrupt", "run", 5),
        (body("return {}[0]"), "KeyError", "run", 5),
        (Program("onnx", b"a model", grad=True), "ContractError", "contract", None),
        (Program("perl", "print 1"), "ContractError", "contract", None),  # type: ignore[arg-type]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_exception_is_a_refusal(
    numpy_worker: Worker, poison: Program, kind: str, stage: str, line: int | None
) -> None:
    pid = numpy_worker.hello().pid
    result = around(numpy_worker, poison)
    assert result.status == "refused"
    assert any(map(str.isalpha, result.error))
    assert result.detail == {"type": kind, "stage": stage, "line": line}
    assert alive(pid), "an exception does not cost a process"


def test_a_long_message_is_trimmed(numpy_worker: Worker) -> None:
    result = around(numpy_worker, body("raise ValueError('begin' + 'x' * 10**6 + 'end')"))
    assert len(result.error) < 1.1 * wire.MESSAGE_LIMIT
    assert result.error.startswith("begin")
    assert result.error.endswith("end")


def test_a_program_leaves_nothing_to_the_next(numpy_worker: Worker) -> None:
    first = body("global left\nleft = 1\nreturn {'y': inputs['x']}", x=np.ones(1))
    second = body("return {'y': np.array('left' in globals())}")
    assert not numpy_worker.submit([first, second])[1].outputs["y"].item()


def test_abort_is_a_crash_with_its_signal_and_last_words() -> None:
    with Worker(Target("numpy")) as worker:
        result = around(worker, body("print('last words'); os.write(2, b'raw'); os.abort()"))
        assert (result.status, result.detail["signal"]) == ("crash", "SIGABRT")
        assert "SIGABRT" in result.error
        assert "last words" in result.detail["output"]
        assert "raw" in result.detail["output"]
        assert "in run" in result.detail["output"], "the stack"
        assert result.detail["programs_before"] == 1


def test_the_last_words_before_a_long_stack_are_kept() -> None:
    """Every call of what was called from one another is a line of the stack."""
    deep = "def down(n): down(n - 1) if n else os.abort()\nprint('last words')\ndown(90)"
    with Worker(Target("numpy")) as worker:
        result = around(worker, body(deep))
    assert len(result.detail["output"]) > 3000
    assert last_words(result.detail["output"]) == "last words"


@pytest.mark.parametrize(
    ("statement", "key", "value"),
    [
        ("import ctypes; ctypes.string_at(0)", "signal", "SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "signal", "SIGKILL"),
        ("os._exit(3)", "exit_code", 3),
        ("os._exit(0)", "exit_code", 0),
    ],
)
def test_other_deaths(numpy_worker: Worker, statement: str, key: str, value: Any) -> None:
    result = around(numpy_worker, body(statement))
    assert (result.status, result.detail[key]) == ("crash", value)


def test_several_crashes_in_one_batch(numpy_worker: Worker) -> None:
    batch = [double(1), body("os.abort()"), body("os._exit(1)"), double(2), body("os.abort()")]
    statuses = [result.status for result in numpy_worker.submit(batch)]
    assert statuses == ["ok", "crash", "crash", "ok", "crash"]


POISON = "sys.poisoned = True\nreturn {'y': np.array(1)}"
POISONED = "if hasattr(sys, 'poisoned'): os.abort()\nreturn {'y': np.array(2)}"


def test_a_program_that_poisons_its_process_is_found(numpy_worker: Worker) -> None:
    innocent = body(POISONED)
    batch = [double(1), double(2), body(POISON), double(3), innocent, double(4), innocent]
    results = numpy_worker.submit(batch)
    crash = ["ok", "ok", "crash", "ok", "ok", "ok", "ok"]
    assert [result.status for result in results] == crash
    assert results[2].detail["signal"] == "SIGABRT"
    assert results[2].error.startswith("a program that follows it in the process does not survive")
    assert [results[n].outputs["y"].item() for n in (0, 1, 3, 4, 5, 6)] == [2, 4, 6, 2, 8, 2]


def test_a_crash_that_does_not_come_again_stays_where_it_was(
    numpy_worker: Worker, tmp_path: Path
) -> None:
    once = f"""
        mark = {str(tmp_path / "mark")!r}
        if not os.path.exists(mark):
            open(mark, "w").close()
            os.abort()
        return {{"y": np.array(1)}}
    """
    first, crashed, last = numpy_worker.submit([double(1), body(once), double(2)])
    assert (first.status, crashed.status, last.status) == ("ok", "crash", "ok")
    assert crashed.error == "killed by SIGABRT; not when it runs alone"


def test_whose_doing_a_crash_is_is_not_asked_when_the_time_is_over(tmp_path: Path) -> None:
    until = time.monotonic() + 3.0
    late = f"""
        open({str(tmp_path / "ran")!r}, "a").write("once")
        time.sleep(max(0.0, {until} - time.monotonic()))
        os.abort()
    """
    with Worker(Target("numpy"), Limits(until=until)) as worker:
        first, crashed = worker.submit([double(1), body(late)])
    assert (first.status, crashed.status, crashed.error) == ("ok", "crash", "killed by SIGABRT")
    assert (tmp_path / "ran").read_text() == "once"


def test_at_the_end_of_the_time_one_program_is_waited_for_and_no_more() -> None:
    until = time.monotonic() + 1.0
    with Worker(Target("numpy"), Limits(seconds=1.5, until=until)) as worker:
        assert worker.submit([double(1)])[0].status == "ok"
        with pytest.raises(Late):
            worker.submit([body("time.sleep(60)")] * 8)
        assert time.monotonic() - until < 1.5 + 3.0
    assert time.monotonic() - until < 1.5 + 5.0


def test_at_the_end_of_the_time_a_target_with_patience_has_none() -> None:
    """What it may take at other times is minutes."""
    with Worker(Target("numpy")) as warm:
        warm.hello()
        until = time.monotonic() + 1.0
        with Worker(Target("numpy", patience=10.0), Limits(until=until)) as worker:
            with pytest.raises(Late):
                worker.submit([body("time.sleep(60)")])
            assert time.monotonic() - until < 15.0


def test_at_the_end_of_the_time_no_other_program_of_a_batch_begins(tmp_path: Path) -> None:
    slow = f"open({str(tmp_path / 'ran')!r}, 'a').write('.')\ntime.sleep(1.5)\nreturn {{}}"
    with Worker(Target("numpy")) as warm:
        warm.hello()
        until = time.monotonic() + 2.0
        with Worker(Target("numpy"), Limits(seconds=60.0, until=until)) as worker:
            with pytest.raises(Late):
                worker.submit([body(slow)] * 40)
            assert time.monotonic() - until < 10.0
    assert len((tmp_path / "ran").read_text()) < 8


def test_programs_of_one_batch_may_have_less_time(numpy_worker: Worker) -> None:
    assert numpy_worker.submit([double(1)])[0].status == "ok"
    start = time.monotonic()
    numpy_worker.send([body("time.sleep(60)"), double(2)], seconds=0.5)
    late, after = numpy_worker.collect()
    assert (late.status, after.status) == ("timeout", "ok")
    assert late.error == "no answer within 0.5 s"
    assert time.monotonic() - start < 10.0
    assert numpy_worker.submit([body("time.sleep(0.8)\nreturn {}")])[0].status == "ok"


def test_what_hangs_in_a_batch_leaves_less_time_to_those_after_it(
    numpy_worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a campaign of what hangs is over before any of it is told."""
    monkeypatch.setattr(pool, "_HASTY", 0.4)
    endless = body("while True: pass")
    *late, after = numpy_worker.submit([endless, endless, endless, double(2)])
    assert [result.error for result in late] == [f"no answer within {s} s" for s in (1, 0.5, 0.4)]
    assert after.status == "ok"
    assert numpy_worker.submit([body("time.sleep(0.6)\nreturn {}")])[0].status == "ok"


def test_a_short_campaign_waits_for_the_first_that_hangs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of later batches have less time; where there is no end, all of it."""
    monkeypatch.setattr(pool, "_HASTY", 0.4)
    endless = body("while True: pass")
    for until, seconds in ((time.monotonic() + 60.0, "0.4"), (float("inf"), "1")):
        with Worker(Target("numpy"), Limits(seconds=1.0, until=until)) as worker:
            errors = [worker.submit([endless])[0].error for _ in range(2)]
        assert errors == ["no answer within 1 s", f"no answer within {seconds} s"]


def test_what_waits_for_a_busy_machine_takes_no_core_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It looks again after a while: a late process would share its core with who waits for it."""
    looks: list[float] = []

    def starved(_: Process, seconds: float, beyond: float) -> bool:
        looks.append(beyond)
        return beyond < 3 * seconds

    monkeypatch.setattr(Process, "_starved", starved)
    with Worker(Target("numpy"), Limits(seconds=0.2)) as worker:
        assert worker.submit([body("time.sleep(60)")])[0].status == "timeout"
    assert looks[-1] >= 0.6
    assert 2 < len(looks) <= 0.6 / 0.02 + 2


def old_pythons() -> list[Path]:
    """Interpreters of Python 3.6 to 3.8 in pyenv's folder."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    return [path for n in (6, 7, 8) for path in sorted(root.glob(f"3.{n}.*/bin/python"))[:1]]


@pytest.mark.parametrize("python", old_pythons(), ids=lambda path: path.parent.parent.name)
def test_old_interpreters_run_the_worker(python: Path, tmp_path: Path) -> None:
    home, name = tmp_path / "env", python.parent.parent.name
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    short = name.rpartition(".")[0]
    made = subprocess.run(  # by this interpreter's pip: theirs has to be made newer first
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:",
         "--python-version", short, "--target", home / f"lib/python{short}/site-packages",
         "numpy<1.22"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"pip cannot install numpy<1.22 for {name} here: {made.stderr[-300:]}")
    with Worker(Target("numpy", str(home / "bin" / "python"))) as worker:
        assert worker.hello().python == name
        result = around(worker, body("os.abort()"))
        assert (result.status, result.detail["signal"]) == ("crash", "SIGABRT")


def test_a_hang_is_a_timeout_that_tells_where(numpy_worker: Worker) -> None:
    start = time.monotonic()
    result = around(numpy_worker, body("while True: pass"))
    assert result.status == "timeout"
    assert result.error == "no answer within 1 s"
    assert 'File "<program>", line 5 in run' in result.detail["output"]
    assert 1 <= result.seconds < 10
    assert time.monotonic() - start < 20


def test_memory_is_bounded() -> None:
    hoard = "kept = []\nwhile True:\n    kept.append(np.ones(1 << 20))\n    time.sleep(0.005)"
    with Worker(Target("numpy"), Limits(memory=300 << 20)) as worker:
        result = around(worker, body(hoard))
    assert (result.status, result.error) == ("memory", "resident memory passed 300 MiB")
    assert 300 << 20 < result.detail["peak"] < 1 << 30


def test_an_allocation_that_fails_costs_no_process(numpy_worker: Worker) -> None:
    pid = numpy_worker.submit([body("return {'pid': np.array(os.getpid())}")])[0].outputs["pid"]
    result = around(numpy_worker, body("np.zeros(1 << 55)"))
    assert (result.status, result.detail["stage"]) == ("memory", "run")
    assert alive(pid.item())


def test_what_is_printed_is_harmless(numpy_worker: Worker) -> None:
    noisy = """
        print("garbage on stdout" * 10_000, "é\\udc80")
        for _ in range(20):
            os.write(1, b"irl1" + bytes(range(256)) * 1000)
        sys.__stdout__.write("x"); sys.__stdout__.flush()
        os.system("echo from a child")
        assert sys.stdin.read() == "", "there is nothing to read"
        return {"y": np.array(1)}
    """
    result = around(numpy_worker, body(noisy))
    assert result.status == "ok", result.error


def test_what_is_warned_of_is_said_each_time(numpy_worker: Worker) -> None:
    """But not that something will go in a later release."""
    text = "import warnings\nwarnings.warn('{}', {})\nreturn {{}}"
    texts = [("odd", "UserWarning"), ("odd", "UserWarning"), ("old", "DeprecationWarning")]
    results = numpy_worker.submit([body(text.format(*one)) for one in texts])
    assert [result.detail for result in results] == [{"warned": "odd"}, {"warned": "odd"}, {}]


def test_closing_the_pipe_is_a_crash(numpy_worker: Worker) -> None:
    result = around(numpy_worker, body("os.closerange(3, 100)\nreturn {}"))
    assert result.status == "crash"


def test_who_answers_twice_is_told_from_what_is_asked(numpy_worker: Worker) -> None:
    """A program forks, and both processes go on with the batch and answer: every answer that is
    taken is that of its own program, and the next batch is none the worse.
    """
    # the second answer comes while the first process is at the next program
    forks = body("if os.fork():\n    time.sleep(0.1)\nreturn {'y': inputs['x']}", x=np.zeros(1))
    slow = body("time.sleep(0.6)\nreturn {'y': inputs['x']}", x=np.zeros(1))
    for _ in range(2):
        results = numpy_worker.submit([double(7), forks, slow, *map(double, range(40))])
        assert results[0].outputs["y"].item() == 14
        assert "second time" in results[1].error
        assert results[2].status == "ok"
        for value, result in enumerate(results[3:]):
            assert result.status == "ok"
            assert result.outputs["y"].item() == 2 * value
        again = numpy_worker.submit([double(value) for value in range(5)])
        assert [one.outputs["y"].item() for one in again] == [0, 2, 4, 6, 8]


def test_garbage_in_the_private_pipe_is_a_crash(numpy_worker: Worker) -> None:
    scribble = """
        for fd in range(3, 20):
            try:
                os.write(fd, b"x" * 100)
            except OSError:
                continue
        time.sleep(60)
    """
    result = around(numpy_worker, body(scribble))
    assert result.status == "crash"
    assert "private pipe" in result.error


def test_children_of_a_program_end_with_it(numpy_worker: Worker) -> None:
    spawn = """
        import subprocess
        child = subprocess.Popen(["sleep", "600"])
        print("child", child.pid)
        os.abort()
    """
    output = around(numpy_worker, body(spawn)).detail["output"]
    assert gone(int(output.split("child ")[1].split()[0]))


def test_a_death_between_batches_costs_no_program() -> None:
    with Worker(Target("numpy")) as worker:
        first = worker.hello().pid
        os.kill(first, signal.SIGKILL)
        assert gone(first)
        assert worker.submit([double(1)])[0].outputs["y"].item() == 2


def test_processes_are_replaced_after_so_many_programs() -> None:
    pid = body("return {'y': np.array(os.getpid())}")
    with Worker(Target("numpy"), Limits(programs=3)) as worker:
        pids = [result.outputs["y"].item() for result in worker.submit([pid] * 7)]
    assert [pids.count(one) for one in dict.fromkeys(pids)] == [3, 3, 1]


def test_processes_are_replaced_when_they_leak() -> None:
    leak = """
        sys.leak = getattr(sys, "leak", []) + [np.ones(5 << 20)]
        return {"y": np.array(os.getpid())}
    """
    with Worker(Target("numpy"), Limits(growth=100 << 20)) as worker:
        results = worker.submit([body(leak)] * 6)
    assert [result.status for result in results] == ["ok"] * 6
    pids = [result.outputs["y"].item() for result in results]
    assert [pids.count(one) for one in dict.fromkeys(pids)] == [3, 3]


def test_large_batches_and_answers_do_not_block_each_other(numpy_worker: Worker) -> None:
    x = np.arange(1 << 17, dtype=np.float64)
    for _ in range(3):
        numpy_worker.send([program(DOUBLE, x=x)] * 20)
    for _ in range(3):
        for result in numpy_worker.collect():
            np.testing.assert_array_equal(result.outputs["y"], 2 * x)


def test_a_program_costs_little_more_than_it_takes(numpy_worker: Worker) -> None:
    batch = [double(value) for value in range(500)]
    numpy_worker.submit(batch)
    start = time.perf_counter()
    results = numpy_worker.submit(batch)
    overhead = time.perf_counter() - start - sum(result.seconds for result in results)
    # About 0.1 ms of the two processes' own time; the bound leaves room for a busy machine.
    assert overhead / len(batch) < 3e-3


def test_close_leaves_no_process_and_ends_one_at_work() -> None:
    worker = Worker(Target("numpy"))
    pid = worker.hello().pid
    worker.send([double(1), body("while True:\n    pass"), double(2)])
    worker.send([double(3)])
    time.sleep(0.2)
    start = time.monotonic()
    worker.close()
    assert time.monotonic() - start < 2
    assert not alive(pid)
    for _ in range(2):
        with pytest.raises(WorkerError, match="closed"):
            worker.collect()
    with pytest.raises(WorkerError, match="closed"):
        worker.send([double(1)])
    worker.close()


OWNER = """
    import sys, time
    from irlang.lower.pool import Program, Target, Worker

    worker = Worker(Target("numpy"))
    pid = worker.hello().pid
    worker.send([Program("python", "while True: pass")])
    time.sleep(0.2)
    print(pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("ending", ["killed", "returns"])
def test_an_orphan_does_not_survive_its_parent(ending: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(OWNER)]
    root = Path(wire.__file__).parents[2]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert alive(pid)
        if ending == "killed":
            owner.kill()
        owner.communicate()
    assert gone(pid)


def test_an_unknown_target_says_which_there_are() -> None:
    with Worker(Target("no_such_framework")) as worker:
        with pytest.raises(WorkerError, match=r"no target no_such_framework; there are .*torch"):
            worker.hello()
        with pytest.raises(WorkerError, match="no target"):
            worker.submit([double(1)])


def test_an_interpreter_that_is_not_there() -> None:
    with (
        Worker(Target("numpy", python="/no/such/python")) as worker,
        pytest.raises(WorkerError, match="/no/such/python: No such file"),
    ):
        worker.hello()


def test_a_start_that_fails_shows_the_last_output() -> None:
    with (
        Worker(Target("numpy", python="/bin/false")) as worker,
        pytest.raises(WorkerError, match="did not start: exited with status 1"),
    ):
        worker.hello()
    environment = {"PYTHONHOME": "/no/such/library"}
    with Worker(Target("numpy", environment=environment)) as worker:
        with pytest.raises(WorkerError) as caught:
            worker.hello()
        assert "/no/such/library" in caught.value.output


def test_the_worker_is_one_file_for_old_interpreters() -> None:
    tree = ast.parse(Path(wire.__file__).read_text(), feature_version=(3, 6))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names | {"numpy"}
