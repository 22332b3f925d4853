"""Makes a target of the user's: an environment with one version of a framework in it.

The environment is one of Python's own (`venv`), filled by the pip in it. A target is remembered
when its worker has answered and computed a small program rightly; else nothing is left of it.
"""

from __future__ import annotations

import dataclasses
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from irlang.catalog import builtin
from irlang.diagnostics import fail
from irlang.interp.shape import check
from irlang.lower.added import Added, added, folder, interpreter, remember
from irlang.lower.lower import lower
from irlang.lower.modes import KIN, ROWS
from irlang.lower.onnx_kernels import read_registry
from irlang.lower.pool import Program, Worker, WorkerError
from irlang.lower.target import describe_added, numbers
from irlang.parser import parse

_DISTRIBUTION = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?")
_VERSION = re.compile(r"\d+(\.\d+){0,2}")
_OLD_PIP = (3, 10)  # an older Python brings a pip that does not know today's wheels
# What was compiled for NumPy 1 imports with NumPy 2, or does not, and in both cases fails later.
_OLD_NUMPY = "numpy<2"
_PROBE = """nnir 1
op twice[T: float](x: T[N]) -> y: T[N] { y[n] = 2 * x[n] }
model probe(x: f32[3]) -> y: f32[3] { y = twice(x) }
"""
_REGISTRY = """
import json
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
print(json.dumps([
    (kernel.op_name, *kernel.version_range, kernel.type_constraints)
    for kernel in get_all_opkernel_def()
    if kernel.domain in ("", "ai.onnx") and kernel.provider == "CPUExecutionProvider"
]))
"""

_LOCK = "being-made"

Tell = Callable[[str], None]
Run = Callable[[Sequence[str], str], None]  # a command, and the code of what is said if it fails


def add(name: str, requirements: Sequence[str], python: str | None, tell: Tell) -> Added:
    """Makes the environment of a target, checks that it works, and remembers it.

    requirements: for pip; one of them must be a framework that there are lowerings for. python: a
    version (3.8) or a path; irlang's own by default. tell: gets a line before each long step.
    Raises `usage.target`, `usage.pip`, `usage.python`, `target.pip` or `target.broken`.
    """
    place = folder(name)
    if name in ROWS or name in KIN:
        raise fail("usage.target", f"`{name}` is a target already", help="choose another name")
    if added(name) is not None:
        raise fail(
            "usage.target", f"`{name}` was added before", help=f"irlang target remove {name}, first"
        )
    framework, mode = framework_of(requirements)
    base = find_python(python)
    target = Added(name, framework, "", "", tuple(requirements), mode)
    with _held(place) as run:
        target = _filled(place, target, base, run, tell)
        remember(target)
    return target


@contextmanager
def _held(place: Path) -> Iterator[Run]:
    """What runs a command, while nobody else makes the target of this folder.

    What was left by a process that was killed is cleared first. A lock tells the two apart: it goes
    with the last process that has it, and the commands that are run have it as well, as they may
    outlive the one that is killed. Where something fails, nothing is left.
    """
    place.mkdir(parents=True, exist_ok=True)
    lock = os.open(place / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise fail("usage.target", f"another process adds `{place.name}` just now") from None
        try:
            for path in place.iterdir():
                if path.name != _LOCK:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield functools.partial(_call, lock=lock)
            (place / _LOCK).unlink()
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
    finally:
        os.close(lock)


def _filled(place: Path, target: Added, base: Path, run: Run, tell: Tell) -> Added:
    """Makes an environment that works; the target with what it says of itself."""
    own, requirements = interpreter(place), target.requirements
    tell(f"making an environment of {base}")
    run([str(base), "-m", "venv", str(place / "env")], "target.python")
    release = _release(own)
    if release < _OLD_PIP:
        run(_pip(own, ["--upgrade", "pip<22" if release < (3, 7) else "pip"]), "target.pip")
    tell(f"installing {' '.join(requirements)}")
    run(_pip(own, requirements), "target.pip")
    tell("asking it")
    fault, asked = _asked(target)
    if fault and not any(_name(text) == "numpy" for text in requirements):
        tell(f"it fails ({fault}); trying {_OLD_NUMPY}")
        run(_pip(own, [*requirements, _OLD_NUMPY]), "target.pip")
        fault, asked = _asked(target)
    if fault:
        raise fail("target.broken", f"{target.name} was installed and does not work: {fault}")
    return asked


def framework_of(requirements: Sequence[str]) -> tuple[str, str]:
    """The framework that is asked for, by the names of distributions, and its mode if it needs one.

    Keras stands before the others: they are what it computes with. Raises `usage.pip`.
    """
    for text in requirements:
        if text.startswith("-"):
            raise fail("usage.pip", f"{text} is an option of pip, not a requirement")
    given = {_name(text) for text in requirements}
    for row in sorted(ROWS.values(), key=lambda row: bool(row.about)):
        if given.isdisjoint(row.packages):
            continue
        if row.about:
            return row.name, ""
        for key, mode in row.modes.items():
            if not given.isdisjoint(mode.needs):
                return row.name, key.removeprefix(":")
        known = ", ".join(mode.needs[0] for mode in row.modes.values())
        raise fail("usage.pip", f"{row.name} computes with another", help=f"name one of {known}")
    known = ", ".join(package for row in ROWS.values() for package in row.packages)
    raise fail(
        "usage.pip",
        "none of the requirements is a framework",
        help=f"programs are written for {known}",
    )


def _name(requirement: str) -> str:
    found = _DISTRIBUTION.match(requirement)
    return re.sub(r"[._-]+", "-", found[1]).lower() if found else ""


def find_python(wanted: str | None) -> Path:
    """An interpreter: on the path, or one of pyenv's. Raises `usage.python`."""
    if wanted is None:
        return Path(sys.executable)
    if not _VERSION.fullmatch(wanted):
        given = shutil.which(wanted)
        if given is None:
            raise fail("usage.python", f"{wanted} is no interpreter", help="as in --python 3.8")
        return Path(given)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    end = "python.exe" if os.name == "nt" else "bin/python"
    pyenvs = sorted(
        (p for p in root.glob(f"{wanted}*") if f"{p.name}.".startswith(f"{wanted}.")),
        key=lambda p: numbers(p.name), reverse=True,
    )  # fmt: skip
    on_path = shutil.which(f"python{wanted}")
    for path in [*([Path(on_path)] if on_path else []), *(p / end for p in pyenvs)]:
        if path.exists() and _is(path, wanted):
            return path
    others = sorted({p.name for p in root.glob("[0-9]*")}, key=numbers)
    raise fail(
        "usage.python",
        f"Python {wanted} is not found, neither on the path nor among pyenv's versions",
        help=f"pyenv has {', '.join(others)}" if others else "give the path of an interpreter",
    )


def _is(path: Path, wanted: str) -> bool:
    """Whether an interpreter runs and is of a version: pyenv's shims are there and do not run."""
    try:
        found = ".".join(map(str, _release(path)))
    except (OSError, subprocess.SubprocessError, ValueError):
        return False
    return f"{found}.".startswith(f"{wanted}.")


def _release(path: Path) -> tuple[int, ...]:
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    line = [str(path), "-c", code]
    result = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    return numbers(result.stdout.strip())


def _pip(python: Path, arguments: Sequence[str]) -> list[str]:
    line = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return [*line, *arguments]


def _call(line: Sequence[str], code: str, lock: int) -> None:
    """Runs a command, which holds `lock` as well. Raises `code` with the last that it said.

    Whatever ends this ends the command with all that it has started.
    """
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
            start_new_session=True, pass_fds=[lock],
        )  # fmt: skip
    except OSError as error:
        raise fail(code, f"{line[0]} cannot be run: {error.strerror}") from None
    with process:
        try:
            out, err = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        said = (err.strip() or out.strip()).splitlines()
        faults = [text for text in said if text.lstrip().startswith("ERROR")] or said
        what = "pip install" if "pip" in line else "venv"
        message = f"{what} {' '.join(a for a in line[4:] if not a.startswith('-'))}".strip()
        raise fail(code, f"{message}: status {process.returncode}", help="; ".join(faults[-3:]))


def _asked(target: Added) -> tuple[str, Added]:
    """Why a target cannot be used, if so; and the target with what it says of itself."""
    worker = Worker(describe_added(target).worker)
    try:
        with worker:
            hello = worker.hello()
            target = dataclasses.replace(target, version=hello.version, python=hello.python)
            if target.framework == "onnxruntime":
                target = dataclasses.replace(target, kernels=_kernels(target))
            return _tried(worker, target), target
    except WorkerError as error:
        last = error.output.strip().splitlines()[-1:]
        return ": ".join([str(error), *last]), target


def _tried(worker: Worker, target: Added) -> str:
    """What is wrong with the result of a small program, if anything."""
    checked = check(parse(_PROBE, "probe"), builtin())
    graph = checked.graphs[0]
    lowered = lower(graph, describe_added(target), checked.catalog, {})
    given = {"x": np.array([1, -2, 0.5], np.float32)}
    (result,) = worker.submit([Program(lowered.kind, lowered.code, given, lowered.params)])
    if result.status != "ok":
        return result.error
    y = result.outputs["y"]
    return "" if np.array_equal(y, 2 * given["x"]) else f"2 * {given['x']} is {y} there"


def _kernels(target: Added) -> dict[str, frozenset[str]]:
    """The kernels of a release of ONNX Runtime, by its own registry; none where it has no such."""
    python = interpreter(folder(target.name))
    result = subprocess.run(
        [str(python), "-c", _REGISTRY], capture_output=True, text=True, timeout=120, check=False
    )
    if result.returncode:
        return {}
    return read_registry(json.loads(result.stdout.splitlines()[-1]), numbers(target.version))
