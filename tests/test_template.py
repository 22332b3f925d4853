"""Workers that are forked from a process that has imported their framework once.

The framework is a module of this test's under a name that the worker knows; importing it is noted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irlang.lower import launch, template
from irlang.lower.pool import Limits, Program, Result, Target, Worker, WorkerError

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere nothing is forked"
)

_MODULE = """
import os, sys
__version__ = "0"
with open({noted!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
"""


_COMPILING = """
import os, types
__version__ = "0"
_dynamo = types.SimpleNamespace(reset=lambda: None)
def set_num_threads(number): pass
def set_num_interop_threads(number): pass
def ones(size, device): return size
def compile(function):
    with open({noted!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    return function
"""


class Framework:
    """A module that notes its imports, and the target that imports it."""

    def __init__(self, folder: Path, more: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self.noted = folder / "imports"
        (folder / "mxnet.py").write_text(_MODULE.format(noted=str(self.noted)) + more)
        self.target = Target("mxnet", environment={"PYTHONPATH": str(folder)})

    def imported(self) -> list[int]:
        """The processes that have imported it."""
        return [int(line) for line in self.noted.read_text().split()]


@pytest.fixture
def framework(tmp_path: Path) -> Iterator[Framework]:
    yield Framework(tmp_path / "framework")
    template._end_all()  # of a folder that is gone now


def body(statements: str) -> Program:
    """A program whose `run` is `statements`."""
    head = "import os, sys, time\nimport numpy as np\nINPUTS, OUTPUTS = (), ()\n"
    run = "def run(inputs, params):\n" + textwrap.indent(textwrap.dedent(statements), "    ")
    return Program("python", head + run, {})


def pid_of(worker: Worker) -> int:
    (result,) = worker.submit([body("return {'pid': np.array(os.getpid())}")])
    return int(result.outputs["pid"])


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within a time; one that waits to be reaped has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_framework_is_imported_once_for_workers_spares_and_those_that_follow(
    framework: Framework,
) -> None:
    with Worker(framework.target) as one, Worker(framework.target) as other:
        spare = one.spare(1.0)
        assert spare is not None
        pids = {pid_of(one), pid_of(other), pid_of(spare), one.hello().pid, other.hello().pid}
        with one.fresh() as fresh:
            pids.add(pid_of(fresh))
    with Worker(framework.target) as after:
        pids.add(pid_of(after))
    (imported,) = framework.imported()
    assert len(pids) == 5  # the first two say who they are
    assert imported not in pids


def test_another_environment_imports_anew(framework: Framework) -> None:
    other = Target("mxnet", environment={**framework.target.environment, "SAID": "1"})
    for target in (framework.target, other):
        with Worker(target) as worker:
            pid_of(worker)
    assert len(framework.imported()) == 2


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
def test_a_death_is_the_same_crash_as_in_a_process_that_was_started(
    framework: Framework, monkeypatch: pytest.MonkeyPatch, statement: str, error: str
) -> None:
    def lost() -> Result:
        with Worker(framework.target) as worker:
            before, result, after = worker.submit(
                [body("return {}"), body(statement), body("return {}")]
            )
        assert [before.status, after.status] == ["ok", "ok"]
        return result

    forked = lost()
    assert len(framework.imported()) == 1
    monkeypatch.setitem(launch._ALONE, "mxnet", "to compare")
    started = lost()
    assert len(framework.imported()) > 1
    for result in (forked, started):
        assert (result.status, result.error) == ("crash", error)
    for key in ("signal", "exit_code", "programs_before"):
        assert forked.detail.get(key) == started.detail.get(key)
    for words in ("last words", "Fatal Python error"):
        assert (words in forked.detail["output"]) == (words in started.detail["output"])


def test_time_and_memory_are_bounded(framework: Framework) -> None:
    hoard = "kept = []\nwhile True:\n    kept.append(np.ones(1 << 20))\n    time.sleep(0.005)"
    with Worker(framework.target, Limits(seconds=1.0)) as worker:
        late, after = worker.submit([body("while True: pass"), body("return {}")])
    assert (late.status, late.error, after.status) == ("timeout", "no answer within 1 s", "ok")
    assert 'File "<program>", line 5 in run' in late.detail["output"]
    with Worker(framework.target, Limits(memory=300 << 20)) as worker:
        large, after = worker.submit([body(hoard), body("return {}")])
    assert (large.error, after.status) == ("resident memory passed 300 MiB", "ok")
    assert len(framework.imported()) == 1


def test_what_a_program_leaves_behind_ends_with_its_process(framework: Framework) -> None:
    left = "child = os.fork()\nif not child:\n    time.sleep(60)\nreturn {'pid': np.array(child)}"
    with Worker(framework.target) as worker:
        (result,) = worker.submit([body(left)])
        left_behind = int(result.outputs["pid"])
        own = pid_of(worker)
    assert gone(left_behind)
    assert gone(own)


def test_what_starts_threads_is_not_forked(tmp_path: Path) -> None:
    more = (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    framework = Framework(tmp_path / "threads", more)
    with Worker(framework.target) as worker:
        own = pid_of(worker)
    with Worker(framework.target) as worker:
        second = pid_of(worker)
    # The first was the template's, which ended; nobody asked for another.
    assert framework.imported()[1:] == [own, second]


def test_what_is_wrong_with_a_framework_is_said(tmp_path: Path) -> None:
    framework = Framework(tmp_path / "broken", "raise OSError('libmissing.so is not there')\n")
    with (
        Worker(framework.target) as worker,
        pytest.raises(WorkerError, match=r"OSError: libmissing\.so is not there"),
    ):
        worker.hello()


def test_an_import_that_ends_its_process_is_said(tmp_path: Path) -> None:
    framework = Framework(tmp_path / "ends", "os.abort()\n")
    with (
        Worker(framework.target) as worker,
        pytest.raises(WorkerError, match="did not start: killed by SIGABRT"),
    ):
        worker.hello()


def test_closing_does_not_wait_for_an_import(tmp_path: Path) -> None:
    framework = Framework(tmp_path / "slow", "import time\ntime.sleep(60)\n")
    start = time.monotonic()
    worker = Worker(framework.target)
    worker.start()
    while not framework.noted.exists():
        time.sleep(0.02)
    worker.close()
    assert time.monotonic() - start < 30


def test_a_template_that_is_killed_takes_its_workers_and_no_campaign(framework: Framework) -> None:
    with Worker(framework.target) as worker:
        own = pid_of(worker)
        os.kill(framework.imported()[0], signal.SIGKILL)
        assert gone(own)
        second = pid_of(worker)
    assert framework.imported()[1:] == [second]  # a process of its own


def test_a_template_that_is_stopped_stops_no_campaign(
    framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker is ended without its help, and nobody waits for it again."""
    monkeypatch.setattr(template, "_PATIENCE", 0.5)
    with Worker(framework.target, Limits(seconds=1.0)) as worker:
        own = pid_of(worker)
        (stopped,) = framework.imported()
        os.kill(stopped, signal.SIGSTOP)
        start = time.monotonic()
        (late,) = worker.submit([body("time.sleep(600)")])
        assert late.status == "timeout"
        second = pid_of(worker)
        assert time.monotonic() - start < 20
        assert gone(own)
        os.kill(stopped, signal.SIGKILL)  # it cannot hear that its owner ends
    assert framework.imported() == [stopped, second]  # a process of its own


def test_templates_without_workers_are_few(
    framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "_IDLE", 3)
    for number in range(template._IDLE + 2):
        said = {**framework.target.environment, "SAID": str(number)}
        with Worker(Target("mxnet", environment=said)) as worker:
            pid_of(worker)
    first, *others = framework.imported()
    assert gone(first)
    assert not gone(others[-1], 0.1)


_OWNER = """
import os, sys, time
import numpy as np
from irlang.lower import template
from irlang.lower.pool import Limits, Program, Target, Worker

folder, adopted = sys.argv[1:]
template.adopt(adopted)
text = "INPUTS, OUTPUTS = (), ()\\ndef run(inputs, params):\\n    import os, time\\n"
hang = f"    open({folder!r} + '/running', 'w').write(str(os.getpid()))\\n    time.sleep(600)"
worker = Worker(Target("mxnet", environment={"PYTHONPATH": folder}), Limits(seconds=600.0))
worker.send([Program("python", text + hang, {})])
worker.collect()
"""


def _hanging(framework: Framework, adopted: str = "") -> tuple[subprocess.Popen[bytes], int]:
    """A process whose worker is in an endless program, and that worker."""
    folder = framework.noted.parent
    line = [sys.executable, "-c", _OWNER, str(folder), adopted]
    owner = subprocess.Popen(line)
    running = folder / "running"
    while not (running.exists() and running.read_text()):
        assert owner.poll() is None
        time.sleep(0.02)
    return owner, int(running.read_text())


def test_nothing_outlives_a_process_that_is_killed(framework: Framework) -> None:
    owner, worker = _hanging(framework)
    owner.kill()
    owner.wait()
    assert gone(worker)
    assert gone(framework.imported()[0])


def test_a_job_that_is_killed_leaves_the_others_their_template(framework: Framework) -> None:
    with template.sharing([framework.target], Limits()) as folder:
        owner, worker = _hanging(framework, folder)
        owner.kill()
        owner.wait()
        assert gone(worker)
        with Worker(framework.target) as own:
            assert pid_of(own)
    assert len(framework.imported()) == 1


def test_a_target_says_why_it_is_not_forked() -> None:
    said: dict[str, Any] = {
        name: launch.is_alone(Target(name))
        for name in (
            "torch", "tf:xla", "torch:cuda", "torch:compile", "torch:triton", "onnxruntime:plain",
        )
    }  # fmt: skip
    forked = [name for name, reason in said.items() if not reason]
    assert forked == ["torch", "tf:xla", "torch:cuda", "torch:compile"]
    assert np.all([reason[0].islower() for reason in said.values() if reason])


def test_a_compiler_is_at_work_before_the_fork(tmp_path: Path) -> None:
    """What takes seconds at the start of each process has been done in the one that all are of."""
    (tmp_path / "torch.py").write_text(_COMPILING.format(noted=str(tmp_path / "compiled")))
    target = Target("torch:compile", environment={"PYTHONPATH": str(tmp_path)})
    with Worker(target) as first, Worker(target) as second:
        assert pid_of(first) != pid_of(second)
    assert len((tmp_path / "compiled").read_text().split()) == 1
    template._end_all()


def test_folders_of_processes_that_were_killed_are_removed(tmp_path: Path) -> None:
    """By whoever makes the next one; a process that still is keeps its own."""
    line = "from irlang.lower import passing; print(passing.folder('irlang-'), flush=True); input()"
    variables = {**os.environ, "TMPDIR": str(tmp_path)}

    def started() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            text=True,
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    (killed, left), (lives, kept) = started(), started()
    killed.kill()
    killed.communicate()
    assert left.is_dir()
    ends, own = started()
    assert sorted(tmp_path.iterdir()) == sorted([kept, own])
    for process in (lives, ends):
        process.communicate("\n")
        assert process.returncode == 0
    assert not list(tmp_path.iterdir())
