"""How the process of a worker is started: on what, within which bounds, in which environment."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irlang.lower import worker

# Programs are small and many processes run side by side; and a sum's order, hence its rounding,
# must not depend on how many cores the machine has.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# Programs say themselves whether f32 may be multiplied in TF32.
_GPU_MODES = ("cuda", "gpu", "tf32", "triton")
# Several processes share one GPU, of which each framework would take most for itself at its start.
_SHARES_A_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
# Modes whose start does more than to import, and as it leaves no thread may be done before a fork.
_PREPARED = ("aot", "compile")
# Frameworks, and modes, whose processes start one by one, and why.
_ALONE = {
    "torch:triton": "its start computes on the GPU, whose driver would not survive the fork",
    "onnxruntime": "its import starts a thread, which a fork would lose, and takes little time",
    "numpy": "there is nothing to import that the worker has not",
}


@dataclasses.dataclass(frozen=True)
class Target:
    """What to run programs on: a framework, in one of its modes, under one interpreter.

    `name` is a framework that the worker knows, with a mode behind a colon where it has several
    (``torch``, ``tf:xla``, ``torch:cuda``). `options` reach the worker: ``graph_optimization``
    (off, basic, extended, full) for ONNX Runtime. `environment` is set over irlang's own. Programs
    may take `patience` times as long as `Limits` says. `framework` is what the worker knows, where
    `name` is another.
    """

    name: str
    python: str = sys.executable
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    patience: float = 1.0
    framework: str = ""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on one program, and on how long one process is used. Seconds and bytes.

    A process is replaced, between two programs, when it has run `programs` of them or its
    resident memory has grown by `growth` since its start: what a framework leaks stays bounded.
    `memory` is resident memory too; frameworks reserve address space without bound. Both are
    looked after only where the system tells them (Linux). At `until`, on the monotonic clock, all
    work is to be over: the program that is running then has a few seconds left, and no other
    begins.
    """

    seconds: float = 20.0
    start_seconds: float = 120.0
    memory: int = 6 << 30
    programs: int = 20_000
    growth: int = 2 << 30
    until: float = math.inf


def command(target: Target, limits: Limits, apart: bool = False) -> list[str]:
    """The command line of the process, which with `apart` forks another for every batch."""
    told = json.dumps(options(target, limits, apart))
    return [target.python, str(Path(worker.__file__)), _known(target), told]


def options(target: Target, limits: Limits, apart: bool = False) -> dict[str, Any]:
    """What a worker is told."""
    return {
        "gpu": on_gpu(target),
        "apart": apart,
        "seconds": limits.seconds,
        "memory": limits.memory,
        "retire_programs": limits.programs,
        "retire_growth": limits.growth,
        **target.options,
    }


def is_alone(target: Target) -> str:
    """Why the processes of a target are not forked from one that has imported its framework; empty
    where they are.
    """
    if not sys.platform.startswith("linux"):
        return "elsewhere than on Linux a fork is not safe, or there is none"
    known = _known(target)
    return _ALONE.get(known, "") or _ALONE.get(known.partition(":")[0], "")


def template(target: Target, seconds: float, listen: int) -> tuple[list[str], dict[str, str]]:
    """Command line and variables of a process that forks workers of a target's framework.

    seconds: that it may take to import that. listen: the descriptor of its socket.
    """
    options = json.dumps({"listen": listen, "start_seconds": seconds})
    family, _, mode = _known(target).partition(":")
    known = _known(target) if mode in _PREPARED else family
    return [target.python, str(Path(worker.__file__)), known, options], environment(target)


def environment(target: Target) -> dict[str, str]:
    """The variables that it sees."""
    variables = {**os.environ, **_ENVIRONMENT}
    if on_gpu(target):
        variables.update(_SHARES_A_GPU)
    else:
        variables["CUDA_VISIBLE_DEVICES"] = ""
    if target.python != sys.executable:
        # They point into this interpreter's library.
        variables.pop("PYTHONPATH", None)
        variables.pop("PYTHONHOME", None)
    return {**variables, **target.environment}


def _known(target: Target) -> str:
    return target.framework or target.name


def on_gpu(target: Target) -> bool:
    """Whether it computes on a GPU."""
    return _known(target).partition(":")[2] in _GPU_MODES
