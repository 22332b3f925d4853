"""How many valid programs a second the generator makes on one core.

    python -m bench.generator

What is made once a process (which recipes suit which attribute) is timed apart. Every program is
counted valid only if the checker, reading its text, says so; that check is not part of the time.
"""

from __future__ import annotations

import time

from irlang.catalog import builtin
from irlang.gen.build import Program, generate
from irlang.interp.shape import check
from irlang.parser import parse

PROGRAMS = 1000
SIZES = (10, 20)


def measure(size: int, seeds: range) -> tuple[list[Program], float]:
    """Programs of so many calls, and the seconds of processor time that they took."""
    start = time.process_time()
    programs = [generate(builtin(), seed, size=(size, size)) for seed in seeds]
    return programs, time.process_time() - start


def main() -> None:
    start = time.process_time()
    catalog = builtin()
    read = time.process_time() - start
    start = time.process_time()
    measure(30, range(10**6, 10**6 + 60))  # meets every operator: its profile is made
    warm = time.process_time() - start
    print(f"{len(catalog)} definitions read in {read:.1f} s; warm after {warm:.1f} s")
    for size in SIZES:
        programs, seconds = measure(size, range(PROGRAMS))
        valid = sum(check(parse(p.text), catalog).valid for p in programs)
        calls = sum(len(p.graph.nodes) for p in programs)
        repaired = sum(p.repaired for p in programs)
        mended = sum(p.repaired > 0 for p in programs)
        print(
            f"{size} operators: {valid / seconds:6.0f} valid programs/s "
            f"({valid} of {PROGRAMS} valid; {seconds / calls * 1e6:.0f} us a call; "
            f"{mended / PROGRAMS:.0%} of programs and {repaired / calls:.1%} of calls repaired)"
        )


if __name__ == "__main__":
    main()
