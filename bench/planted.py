"""Whole campaigns against faults that are planted into a framework: found, blamed, reduced?

`python -m bench.planted [--others | --drawn | --large] [--seeds N] [--time S] [FAULT...]` starts
`irlang fuzz` as a user would, for every fault and seed. The fault is put into the framework by a
`sitecustomize.py` on the path of the workers, so that irlang knows nothing of it, and the scripts
beside findings meet it as well. A campaign that has a finding of at most 2 operators and 16
elements which blames the right operator is ended; the others have their whole time. Seconds are of
the clock.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench._planted_drawn import DRAWN
from bench._planted_faults import OTHERS, SIX, Fault
from bench._planted_hook import hook
from bench._planted_large import LARGE

MOST_CALLS, MOST_ELEMENTS = 2, 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one campaign: seconds until the best finding that blames the right operator, its calls and
    its elements, or of none `calls` is None. worked: seconds of a processor of the whole campaign;
    others: findings that blame somebody else.
    """

    seconds: float
    worked: float
    calls: int | None = None
    elements: int = 0
    others: tuple[str, ...] = ()


def small(size: tuple[int, int]) -> bool:
    """Whether a finding is reduced as far as promised."""
    return size[0] <= MOST_CALLS and size[1] <= MOST_ELEMENTS


def campaign(fault: Fault, seed: int, seconds: int, folder: Path) -> Outcome:
    """Runs one campaign in `folder`."""
    (folder / "path").mkdir(parents=True)
    (folder / "path" / "sitecustomize.py").write_text(hook(fault), "utf-8")
    out = folder / "campaign"
    command = [
        *(sys.executable, "-m", "irlang.cli", "fuzz", "--targets", fault.target),
        *("--ops", fault.ops, "--time", f"{seconds}s", "--jobs", "1", "--seed", str(seed)),
        *("--out", str(out), *(["--grad"] if fault.grad else [])),
    ]
    path = os.pathsep.join(filter(None, (str(folder / "path"), os.environ.get("PYTHONPATH"))))
    start, before, seen = time.monotonic(), _processor_seconds(), Seen(fault)
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=said, env={**os.environ, "PYTHONPATH": path}
        )
        while process.poll() is None:
            time.sleep(0.25)
            seen.look(out)
            if seen.best is not None and small(seen.best[:2]):
                process.terminate()  # an interrupt is not heard behind a shell's `&`
                process.wait()
    seen.look(out)
    worked = _processor_seconds() - before - seen.aside
    if seen.best is None:
        return Outcome(time.monotonic() - start, worked, others=seen.others())
    met = seen.best[2] - time.time() + time.monotonic() - start
    return Outcome(met, worked, *seen.best[:2], seen.others())


def _processor_seconds() -> float:
    """Those of all that has been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Seen:
    """The findings of a campaign, as they are written.

    best: calls, elements and time of the smallest that blames the right operator, and is none
    without the fault. aside: seconds of a processor that were spent to see that.
    """

    def __init__(self, fault: Fault) -> None:
        self.best: tuple[int, int, float] | None = None
        self.aside = 0.0
        self._fault = fault
        self._titles: dict[Path, tuple[str, bool]] = {}
        self._looked: set[tuple[Path, int]] = set()

    def look(self, out: Path) -> None:
        """Looks for new ones."""
        for file in sorted(out.glob("f-*/finding.nnir")):
            try:
                self._read(file)
            except FileNotFoundError:  # the campaign has put it elsewhere, or another in its place
                continue

    def _read(self, file: Path) -> None:
        written = file.stat()
        if (file, written.st_mtime_ns) in self._looked:
            return
        title = file.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        culprit = title.removesuffix(", not repeated").rpartition(", ")[2]
        right = culprit in self._fault.culprits
        found = *_size(file), written.st_mtime
        self._looked.add((file, written.st_mtime_ns))
        self._titles[file] = title, right
        if right and (self.best is None or found[:2] < self.best[:2]) and self._is_of_it(file):
            self.best = found

    def _is_of_it(self, file: Path) -> bool:
        """Whether the framework without the fault is right: others are its own."""
        command = [sys.executable, "-m", "irlang.cli", "diff", str(file)]
        command += ["--targets", self._fault.target, *(["--grad"] if self._fault.grad else [])]
        before = _processor_seconds()
        agrees = subprocess.run(command, capture_output=True, check=False).returncode == 0
        self.aside += _processor_seconds() - before
        return agrees

    def others(self) -> tuple[str, ...]:
        """The titles of those that blame another operator, or tell of something else."""
        return tuple(title for title, right in self._titles.values() if not right)


def _size(file: Path) -> tuple[int, int]:
    """The calls of a finding, and the elements of what it is fed."""
    model = file.read_text("utf-8").rpartition("\nmodel ")[2]
    calls = len(re.findall(r"^ +(?!param )\w[^=\[]* = ", model, re.MULTILINE))
    with file.with_suffix(".safetensors").open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
    return calls, sum(math.prod(shape) for shape in shapes)


def measure(name: str, fault: Fault, seeds: int, seconds: int) -> None:
    """Prints a line about a fault, over seeds 1 to `seeds`."""
    outcomes = []
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(campaign(fault, seed, seconds, Path(folder)))
    blamed = [one for one in outcomes if one.calls is not None]
    reduced = [one for one in blamed if small((one.calls or 0, one.elements))]
    took = sorted(one.seconds for one in blamed)
    sizes = sorted({(one.calls, one.elements) for one in blamed})
    line = f"| {name} | {len(blamed)} of {seeds} | {len(reduced)} of {seeds} "
    line += f"| {statistics.median(took):.1f}, {took[-1]:.1f} " if took else "| - "
    line += f"| {statistics.median(one.worked for one in outcomes):.1f} "
    line += "| " + ", ".join(f"{calls} and {elements}" for calls, elements in sizes) + " |"
    print(line, flush=True)
    others = collections.Counter(other for one in outcomes for other in one.others)
    for other, count in others.most_common(6):
        print(f"    {count} times: {other}", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help="default: the six of the promise"
    )
    parser.add_argument("--others", action="store_true", help="all but those")
    parser.add_argument("--drawn", action="store_true", help="sixty that were drawn")
    parser.add_argument("--large", action="store_true", help="those that need something large")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--time", type=int, default=60, help="seconds of a campaign")
    options = parser.parse_args()
    every = {**SIX, **OTHERS, **DRAWN, **LARGE}
    table = {name: every[name] for name in options.faults if name in every}
    asked = {"others": OTHERS, "drawn": DRAWN, "large": LARGE}
    chosen = [one for name, one in asked.items() if getattr(options, name)]
    table = table or {name: fault for one in chosen or [SIX] for name, fault in one.items()}
    if unknown := set(options.faults) - set(every):
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    print(
        "| fault | blamed | reduced | seconds: median, most | of a processor | calls and elements |"
    )
    for name, fault in table.items():
        measure(name, fault, options.seeds, options.time)


if __name__ == "__main__":
    main()
