"""Where the processor's time of a campaign goes: seconds by what for and by stage.

Run as `python -m bench.stages [--programs N] [--seed S] [--targets A,B]`. One process runs the
batches, so that its clock is the campaign's; what the targets' processes use is read from /proc and
counted to what the campaign was at. All figures are seconds of a processor, which a busy machine
stretches little, and shares of them.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import os
import resource
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from irlang.diff import (  # noqa: E402
    apart,
    batch,
    calls,
    campaign,
    edits,
    finding,
    gradients,
    invalid,
    localise,
    programs,
    reduce,
    refine,
    report_folder,
    runner,
    suspects,
    verdict,
)
from irlang.gen import build, spoil  # noqa: E402
from irlang.interp import program  # noqa: E402
from irlang.lower import lower, pool  # noqa: E402

# What for, the innermost counts; of a campaign nothing else is done.
PURPOSES: dict[str, tuple[object, ...]] = {
    "start": (runner.Session.__enter__, runner.Session.versions),
    "programs": (batch.run_batch,),
    "calls apart": (apart.case_apart, suspects.judge_apart),
    "spoilt calls": (invalid.judge_invalid,),
    "localise": (localise.culprits, suspects.wrong_calls, finding.charge, finding.find),
    "reduce": (reduce.reduce,),
    "confirm": (finding._reduced,),
    "report": (report_folder.write,),
}
STAGES: dict[str, tuple[object, ...]] = {
    "generate": (build.generate, spoil.spoilt),
    "oracle": (program.balls, program.run, program.node_balls),
    "first order": (refine.Refiner.refined,),
    "lower": (lower.lower, gradients.ask),
    "judge": (verdict.judge, calls.judge_call, calls.judge_following, verdict.softened),
    "edits": (edits.apply, edits.cost),
    "send": (pool.Worker.send,),
    "wait": (pool.Worker.collect, pool.Worker.hello),
}


class Clock:
    """Seconds of the processor by (purpose, stage); targets' by (purpose, "target")."""

    def __init__(self) -> None:
        self.spent: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._purposes = ["other"]
        self._stages = ["other"]
        self._main = time.thread_time()
        self._all = time.process_time()
        self._workers: dict[str, float] = {}
        self._mine = str(os.getpid())

    def turn(self, *, whole: bool) -> None:
        """Counts what was used since the last turn; `whole` looks at other processes, too."""
        now = time.thread_time()
        place = self._purposes[-1], self._stages[-1]
        self.spent[place] += now - self._main
        used = time.process_time()
        self.spent[self._purposes[-1], "threads"] += used - self._all - (now - self._main)
        self._main, self._all = now, used
        if whole:
            for pid, target, seconds in _children(self._mine):
                more = seconds - self._workers.get(pid, 0.0)
                self.spent[self._purposes[-1], target] += more
                self._workers[pid] = seconds

    def around(self, function: Callable[..., Any], name: str, purpose: bool) -> Callable[..., Any]:
        """The function, with its time counted to `name`."""
        kept = self._purposes if purpose else self._stages

        def enter() -> None:
            self.turn(whole=purpose)
            kept.append(name)
            if purpose:
                self._stages.append("other")

        def leave() -> None:
            self.turn(whole=purpose)
            kept.pop()
            if purpose:
                self._stages.pop()

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*given, **named)  # its time is that of "threads"
            enter()
            try:
                return function(*given, **named)
            finally:
                leave()

        @functools.wraps(function)
        def stepped(*given: Any, **named: Any) -> Iterator[Any]:
            made = function(*given, **named)
            while True:
                enter()
                try:
                    one = next(made, self)
                finally:
                    leave()
                if one is self:
                    return
                yield one

        return stepped if inspect.isgeneratorfunction(function) else timed


def _children(pid: str) -> Iterator[tuple[str, str, float]]:
    """The processes below one: what it is called, and its seconds of the processor with those of
    all below it.
    """
    for child in _below(pid):
        try:
            line = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names = [part.decode() for part in line]
        worker = next((i for i, part in enumerate(names) if part.endswith("worker.py")), None)
        target = names[worker + 1] if worker is not None else "other"
        yield child, target, _ticks(child) / os.sysconf("SC_CLK_TCK")


def _below(pid: str) -> list[str]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        found = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return list(dict.fromkeys(found))


def _ticks(pid: str) -> int:
    below = sum(map(_ticks, _below(pid)))
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return below
    return below + sum(int(n) for n in fields[11:15])  # with its children that have ended


def watch(clock: Clock) -> None:
    """Puts the clock around the functions of `PURPOSES` and `STAGES`, wherever they are named."""
    for table, purpose in ((PURPOSES, True), (STAGES, False)):
        for name, functions in table.items():
            for function in functions:
                _replace(function, clock.around(function, name, purpose))  # type: ignore[arg-type]


def _replace(old: Any, new: Any) -> None:
    owner, _, name = old.__qualname__.rpartition(".")
    if owner:
        setattr(getattr(sys.modules[old.__module__], owner), name, new)
        return
    for module in [m for n, m in sys.modules.items() if n.startswith("irlang")]:
        for key, value in list(vars(module).items()):
            if value is old:
                setattr(module, key, new)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=320)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--targets", default="torch,tf,onnxruntime")
    parser.add_argument("--grad", action="store_true")
    options = parser.parse_args()
    targets = tuple(options.targets.split(","))
    settings = programs.Settings(targets, options.seed, options.programs, grad=options.grad)
    clock = Clock()
    watch(clock)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = campaign.Campaign(Path(folder) / "campaign", settings)
        run.run(lambda _: None)
        clock.turn(whole=True)
        report = run.report()
        run.close()
    wall = time.perf_counter() - start
    _print(clock, wall, report)


def _print(clock: Clock, wall: float, report: dict[str, Any]) -> None:
    total = sum(clock.spent.values())
    own = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime
    judged, aside = report["programs"], report["aside"]
    print(
        f"{judged} programs, {aside} of calls apart or spoilt, {len(report['findings'])} findings: "
        f"{used:.1f} s of a processor in {wall:.1f} s, {(judged + aside) / used:.1f} a second of it"
    )
    column, rows = _by(clock.spent, 1), _by(clock.spent, 0)
    shown = [name for name, seconds in column.items() if seconds >= 0.002 * total]
    print(f"{'':14}{'all':>7}{'share':>7}" + "".join(f"{name[:11]:>12}" for name in shown))
    for purpose, row in rows.items():
        cells = "".join(f"{clock.spent[purpose, stage]:12.2f}" for stage in shown)
        print(f"{purpose:14}{row:7.1f}{100 * row / total:6.1f}%{cells}")
    print(f"{'all':14}{total:7.1f}{100:6.1f}%" + "".join(f"{column[s]:12.2f}" for s in shown))
    for found in sorted({(f["target"], f["verdict"], f["operator"]) for f in report["findings"]}):
        print("  " + " ".join(found))


def _by(spent: Mapping[tuple[str, str], float], place: int) -> dict[str, float]:
    """Sums by purpose or by stage, the largest first."""
    found: defaultdict[str, float] = defaultdict(float)
    for key, seconds in spent.items():
        found[key[place]] += seconds
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


if __name__ == "__main__":
    main()
