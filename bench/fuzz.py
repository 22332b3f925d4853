"""Fuzz programs per second, for sets of targets, and where the time of one program goes.

Run as `python -m bench.fuzz [--programs N] [--jobs J]`. All figures come from one run; each set of
targets starts its workers before the clock does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from irlang.catalog import builtin  # noqa: E402
from irlang.diff.campaign import Campaign  # noqa: E402
from irlang.diff.programs import Settings, make_case, program_seed  # noqa: E402
from irlang.gen.coverage import Coverage  # noqa: E402
from irlang.interp.program import balls, precision  # noqa: E402
from irlang.lower.lower import lower  # noqa: E402

SETS = (("torch",), ("onnxruntime",), ("torch", "onnxruntime"), ("torch", "tf", "onnxruntime"))
SEED = 11


def rate(targets: tuple[str, ...], programs: int, jobs: int) -> tuple[float, int]:
    """Programs per second once the workers are warm, and how many findings there were."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(targets, SEED, programs, None, (), False, jobs)
        campaign = Campaign(Path(folder) / "campaign", settings)
        marks: list[tuple[float, int]] = []
        campaign.run(lambda now: marks.append((time.perf_counter(), now.tally.programs)))
        (start, before), (end, after) = marks[0], marks[-1]
        return (after - before) / (end - start), len(campaign.findings)


def shares(programs: int) -> dict[str, float]:
    """Milliseconds of a program: made (with its oracle), the oracle alone, lowered."""
    catalog = builtin()
    coverage = Coverage()
    cases = []
    start = time.perf_counter()
    for number in range(programs):
        case = make_case(catalog, program_seed(SEED, number), (), coverage)
        if case is not None:
            cases.append(case)
    spent = {"generate and judge": (time.perf_counter() - start) / programs}
    start = time.perf_counter()
    for case in cases:
        balls(case.graph, case.values, catalog, precision(case.graph))
    spent["oracle with radius"] = (time.perf_counter() - start) / len(cases)
    for target in ("torch", "tf", "onnxruntime"):
        start = time.perf_counter()
        for case in cases:
            lower(case.graph, target, catalog, case.params)
        spent[f"lower to {target}"] = (time.perf_counter() - start) / len(cases)
    return {name: 1e3 * seconds for name, seconds in spent.items()}


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=640)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    print(f"programs of 3 to 30 operators, seed {SEED}, {options.jobs} jobs")
    first = None
    for targets in SETS:
        speed, findings = rate(targets, options.programs, options.jobs)
        first = first or speed
        shown = " + ".join(targets)
        print(f"  {shown:28} {speed:7.1f}/s  {speed / first:5.2f} of torch  {findings} findings")
    print("one program, one process, warm:")
    shares(32)
    for name, milliseconds in shares(128).items():
        print(f"  {name:28} {milliseconds:7.2f} ms")


if __name__ == "__main__":
    main()
