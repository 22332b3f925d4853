"""How tight radii are: the radius of an element over the error that a target really makes there.

    python -m bench.tightness [TARGET] [--ops A,B]

Every definition in small programs of one call, in float32 where it has that type; radii are those
of the target's own arithmetic. A line gives the median ratio over the elements whose error is not
zero, the smallest one (below 1 it is a disagreement), and the share of elements that are exact;
loosest definitions first. The last line is the median over definitions. A ratio of 10 means that a
fault of ten roundings goes unseen.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from irlang.arithmetic import Arithmetic  # noqa: E402
from irlang.catalog import builtin  # noqa: E402
from irlang.diagnostics import InvalidInput  # noqa: E402
from irlang.diff.calls import Case  # noqa: E402
from irlang.diff.runner import Session  # noqa: E402
from irlang.gen.build import generate  # noqa: E402
from irlang.interp.balls import Ball  # noqa: E402
from irlang.interp.program import balls, precision  # noqa: E402
from irlang.interp.values import initial_values, inputs  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
PROGRAMS = 12  # of each definition


def cases(name: str, arithmetic: Arithmetic) -> list[tuple[Case, dict[str, Ball]]]:
    """Programs of one call of a definition whose values the oracle knows, with their radii."""
    catalog = builtin()
    found = []
    for seed in range(4 * PROGRAMS):
        graph = generate(catalog, seed, ops=[name], size=(1, 1)).graph
        if len(graph.nodes) != 1 or precision(graph) != "f32":
            continue
        case = Case(graph, inputs(graph, seed), initial_values(graph, seed), catalog)
        try:
            found.append((case, balls(graph, case.values, catalog, "f32", arithmetic)))
        except InvalidInput:  # the drawn values do not meet a precondition
            continue
        if len(found) == PROGRAMS:
            break
    return found


def ratios(session: Session, name: str, target: str) -> Iterator[tuple[Array, Array]]:
    """Radius and error of every element that has a verdict."""
    made = cases(name, session.arithmetic[target])
    outcomes = session.compare([case for case, _ in made])
    for (case, own), outcome in zip(made, outcomes, strict=True):
        result = outcome.results.get(target)
        if result is None or result.status != "ok":
            continue
        for name, value in case.graph.outputs.items():
            if case.graph.values[value].kind != "real" or value not in outcome.balls:
                continue
            ball, got = own[value], np.asarray(result.outputs[name], dtype=np.float64)
            radius = np.broadcast_to(np.asarray(ball.bound, dtype=np.float64), got.shape)
            with np.errstate(invalid="ignore"):  # equal infinities
                error = np.abs(got - ball.value)
            known = np.isfinite(radius) & np.isfinite(error)
            yield radius[known], error[known]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target", nargs="?", default="torch")
    parser.add_argument("--ops", default="")
    chosen = parser.parse_args()
    names = [name for name in chosen.ops.split(",") if name] or builtin().names()
    rows: list[tuple[float, float, float, str]] = []
    with Session([chosen.target]) as session:
        for name in names:
            pairs = list(ratios(session, name, chosen.target))
            radius = np.concatenate([r.reshape(-1) for r, _ in pairs]) if pairs else np.empty(0)
            error = np.concatenate([e.reshape(-1) for _, e in pairs]) if pairs else np.empty(0)
            off = error > 0
            if off.any():
                found = radius[off] / error[off]
                exact = 1 - float(off.mean())
                rows.append((float(np.median(found)), float(found.min()), exact, name))
    print("radius/error   smallest   exact   definition")
    for middle, least, exact, name in sorted(rows, reverse=True):
        print(f"{middle:12.1f} {least:10.2f} {exact:6.0%}   {name}")
    if rows:
        print(f"{np.median([row[0] for row in rows]):12.1f}   median of {len(rows)} definitions")


if __name__ == "__main__":
    main()
