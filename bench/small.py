"""Small programs: a warm run of ten operators, and the first one where no kernel is cached.

    python -m bench.small

Milliseconds of the processor, of the best of many runs, for values and for values with radii: as
they are at first, and once kernels have been compiled for all that kernels can do (what a process
does by itself after it has spent as long without them). Then the first run of larger programs of
the same kind in a process of its own whose kernels are not cached: seconds of the processor for
values and for radii, numba's import and whatever is compiled among them.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import irlang  # noqa: E402
from irlang.interp import kernel_cache, reference, rounding  # noqa: E402
from irlang.interp.program import balls, run  # noqa: E402

PROGRAM = """nnir 1

model ten(x: f32[{batch}, 8, {side}, {side}] in [-1, 1]) -> y: f32[{batch}, 10] {{
  param w1: f32[16, 8, 3, 3] in [-0.2, 0.2]
  param b1: f32[16] in [-0.1, 0.1]
  r = relu(conv(x, w1, b1; pad = same))
  p = max_pool(r; window = 2, stride = 2)
  f = flatten(multiply(tanh(p), p))
  param w2: f32[{features}, 32] in [-0.1, 0.1]
  param w3: f32[32, 10] in [-0.1, 0.1]
  y = softmax(dense(gelu(dense(f, w2)), w3))
}}
"""
RUNS = 300
LARGER = ((8, 16), (16, 32), (64, 32))  # batch, side


def program(batch: int, side: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Values, and values with radii, of ten operators."""
    text = PROGRAM.format(batch=batch, side=side, features=16 * (side // 2) ** 2)
    model = irlang.loads(text)
    given = model.values()
    return (
        lambda: run(model.graph, given, model.catalog),
        lambda: balls(model.graph, given, model.catalog, "f32"),
    )


def timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def best(call: Callable[[], object]) -> float:
    return 1e3 * min(timed(call) for _ in range(RUNS))


def first(batch: int, side: int) -> None:
    """Prints seconds of first runs; in a process whose folder of kernels is empty."""
    calls = program(batch, side)
    value, radius = map(timed, calls)
    print(f"{value:10.3f}{radius:10.3f}   {kernel_cache.held()} kernels")


def main() -> None:
    if len(sys.argv) > 1:
        first(*map(int, sys.argv[1:]))
        return
    calls = program(4, 8)
    print(f"{'warm, ms':24}{'values':>10}{'radii':>10}")
    print(f"{'by NumPy':24}" + "".join(f"{best(call):10.2f}" for call in calls), flush=True)
    reference.COMPILE = reference.LOAD = reference.IMPORT = rounding._NEST = 0
    for call in calls:
        call()
    print(f"{'kernels where they can':24}" + "".join(f"{best(call):10.2f}" for call in calls))
    print(f"{'first run, s':24}{'values':>10}{'radii':>10}")
    for batch, side in ((4, 8), *LARGER):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{f'  {batch} x 8 x {side} x {side}':24}", end="", flush=True)
            again = [sys.executable, "-m", "bench.small", str(batch), str(side)]
            subprocess.run(again, env={**os.environ, "XDG_CACHE_HOME": folder}, check=True)


if __name__ == "__main__":
    main()
