"""How many valid programs a second the generator makes on one core.

    python -m bench.generator

What is made once a process (which recipes suit which attribute) is timed apart. Every program is
counted valid only if the checker, reading its text, says so; that check is not part of the time.
"""

from __future__ import annotations

import statistics
import time

from irlang.catalog import Catalog, builtin
from irlang.gen.build import generate
from irlang.interp.shape import check
from irlang.parser import parse

ROUNDS, PROGRAMS = 5, 200
SIZES = (10, 20)


def round_of(catalog: Catalog, size: int, seeds: range) -> tuple[float, list[str], list[int]]:
    """Processor seconds, the texts, and how many calls of each program were repaired."""
    texts, repaired = [], []
    start = time.process_time()
    for seed in seeds:
        program = generate(catalog, seed, size=(size, size))
        texts.append(program.text)
        repaired.append(program.repaired)
    return time.process_time() - start, texts, repaired


def main() -> None:
    start = time.process_time()
    catalog = builtin()
    read = time.process_time() - start
    warm, _, _ = round_of(catalog, 30, range(10**6, 10**6 + 60))  # meets every operator
    print(f"{len(catalog)} definitions read in {read:.1f} s; warm after {warm:.1f} s")
    for size in SIZES:
        rates, valid, repaired = [], 0, []
        for number in range(ROUNDS):
            seeds = range(number * PROGRAMS, (number + 1) * PROGRAMS)
            seconds, texts, mended = round_of(catalog, size, seeds)
            good = sum(check(parse(text), catalog).valid for text in texts)
            valid += good
            repaired += mended
            rates.append(good / seconds)
        total = ROUNDS * PROGRAMS
        print(
            f"{size} operators: {statistics.median(rates):4.0f} valid programs/s "
            f"(rounds {min(rates):.0f} to {max(rates):.0f}; {valid} of {total} valid; "
            f"{sum(map(bool, repaired)) / total:.0%} of programs and "
            f"{sum(repaired) / total / size:.1%} of calls repaired)"
        )


if __name__ == "__main__":
    main()
