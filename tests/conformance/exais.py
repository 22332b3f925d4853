"""Compares the oracle with TensorFlow on a folder of ExAIS program files.

    python -m tests.conformance.exais DIR [--format json] [--jobs J]

Every file becomes `.nnir` text, which the ordinary parser, checker and oracle take. Its verdict:

- agree: the result is TensorFlow's recorded one, as far as that was printed (`allowance`);
- refused: the file is one that must be refused, and the checker (or the oracle, where it depends on
  values) refuses it at a value that the recorded layer at fault makes, and says nothing before it;
- uncovered: a layer, an argument or the file itself is not understood; nothing is claimed;
- disagree: anything else: another result, a valid program refused, an invalid one accepted or
  refused elsewhere.

Exit status: 0 nothing disagrees, 1 something does, 2 there is nothing to read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from irlang.catalog import builtin  # noqa: E402
from irlang.diagnostics import Diagnostic, InvalidInput  # noqa: E402
from irlang.dtypes import DTYPES  # noqa: E402
from irlang.importers import exais, keras_text  # noqa: E402
from irlang.importers.keras_arguments import Uncovered  # noqa: E402
from irlang.importers.keras_text import Unreadable  # noqa: E402
from irlang.interp import reference  # noqa: E402
from irlang.interp.balls import Ball  # noqa: E402
from irlang.interp.plain import load  # noqa: E402
from irlang.interp.program import node_balls, run  # noqa: E402
from irlang.interp.shape import Checked, check  # noqa: E402
from irlang.interp.values import initial_values, inputs, require_memory  # noqa: E402
from irlang.parser import parse  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
VERDICTS = ("agree", "disagree", "refused", "uncovered")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is found of a file. kind: the layer that the reason is about; kinds: all in the file."""

    file: str
    verdict: str
    kind: str = ""
    reason: str = ""
    kinds: tuple[str, ...] = ()


def judge(path: Path) -> Outcome:
    """The verdict on one file."""
    name = str(path)
    kinds: tuple[str, ...] = ()
    try:
        record = exais.split(path.read_text("utf-8"))
        program = keras_text.read(record.keras)
        kinds = tuple(sorted({layer.config.name for layer in program.layers}))
        made = exais.translate(program, path.stem)
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        return Outcome(name, "uncovered", "", f"cannot be read: {error}", kinds)
    except Uncovered as error:
        return Outcome(name, "uncovered", error.kind, error.reason, kinds)
    checked = check(parse(made.text, f"{path.stem}.nnir"), builtin())
    if record.at_fault in made.kinds:
        verdict, kind, reason = _refusal(made, checked, record.at_fault)
    elif record.actual.startswith("["):
        verdict, kind, reason = _result(made, checked, record.actual)
    else:
        verdict, kind, reason = "uncovered", "", "neither a result nor a layer at fault is recorded"
    return Outcome(name, verdict, kind, reason, kinds)


def _refusal(made: exais.Translation, checked: Checked, at_fault: str) -> tuple[str, str, str]:
    """The verdict on a program that must be refused at a layer."""
    diagnostics = [d for d in checked.diagnostics if d.severity == "error"]
    if not diagnostics:
        try:
            _evaluate(made, checked)
        except InvalidInput as error:
            diagnostics = list(error.diagnostics)
    kind = made.kinds.get(at_fault, "")
    if not diagnostics:
        return "disagree", kind, f"accepted; `{at_fault}` is at fault"
    layers = [_layer(made, d) for d in diagnostics]
    told = "; ".join(f"{d.code} at {d.node}: {d.message}" for d in diagnostics)
    if set(layers) == {at_fault}:
        return "refused", kind, told
    return "disagree", kind, f"refused elsewhere than at `{at_fault}`: {told}"


def _layer(made: exais.Translation, diagnostic: Diagnostic) -> str:
    """The layer that makes the value at which a fault is reported."""
    return made.owners.get(diagnostic.node.split(".")[0], "")


def _result(made: exais.Translation, checked: Checked, printed: str) -> tuple[str, str, str]:
    """The verdict on a program whose result is recorded."""
    kind = made.kinds.get(made.owners.get(made.output, ""), "")
    try:
        wanted = exais.numbers(printed)
    except Unreadable as error:
        return "uncovered", kind, str(error)
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    try:
        found = None if errors else _evaluate(made, checked)
    except InvalidInput as error:
        errors = list(error.diagnostics)
    if errors or found is None:
        first = errors[0]
        culprit = made.kinds.get(_layer(made, first), kind)
        return "disagree", culprit, f"refused: {first.code} at {first.node}: {first.message}"
    if found.shape != wanted.shape:
        return "disagree", kind, f"shape {list(found.shape)}; TensorFlow has {list(wanted.shape)}"
    off = _beyond(found, wanted, half_unit(printed))
    if off.any():
        radius = _radius(made, checked)
        off = _beyond(found, wanted, half_unit(printed), radius)
        if not off.any() and not np.isfinite(radius).all():
            return "uncovered", kind, "a decision of the program hangs on rounding"
    if not off.any():
        return "agree", kind, ""
    at = tuple(int(i[0]) for i in np.nonzero(off))
    many = f"{int(off.sum())} of {off.size} elements differ"
    return "disagree", kind, f"{many}; {list(at)} is {found[at]:.10g}, not {wanted[at]:.10g}"


# ---- how far a recorded number may be from the oracle's
#
# TensorFlow computed t and printed p, a decimal nearest to t: |p - t| is at most half a unit of the
# last decimal. t and the oracle's o are both float64 evaluations of the same equations: |t - o| is
# at most the rounding radius of the program at float64, which counts both (see
# `irlang.interp.rounding`). Reading p and subtracting are off by a spacing of p.


def half_unit(printed: str) -> float:
    """Half a unit of the last decimal that every number of a printed array has."""
    decimals = [len(found) for found in re.findall(r"\d\.(\d*)", printed)]
    return 0.5 * 10.0 ** -min(decimals, default=0)


def _beyond(found: Array, wanted: Array, half: float, radius: Array | float = 0.0) -> Array:
    """Which elements are further from the printed ones than printing and rounding explain."""
    with np.errstate(invalid="ignore"):
        allowance = half + np.spacing(np.abs(wanted)) + radius
        near = np.abs(found - wanted) <= allowance
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    return np.asarray(~(near | same))


def _radius(made: exais.Translation, checked: Checked) -> Array:
    """The rounding radius of the result, every call at the precision of its own tensors."""
    graph = checked.graphs[0]
    values = {**inputs(graph, 0, made.inputs), **initial_values(graph, 0)}
    found = {name: Ball(load(graph.values[name], item)) for name, item in values.items()}
    for node in graph.nodes:
        infos = [graph.values[name] for name in (*node.operands(), *node.outputs)]
        reals = [info.dtype for info in infos if info.kind == "real"]
        coarsest = max(reals, key=lambda name: DTYPES[name].unit, default="f64")
        found.update(node_balls(node, found, checked.catalog, coarsest))
    ball = found[graph.outputs[made.output]]
    return np.asarray(np.broadcast_to(ball.bound, ball.value.shape))


def _evaluate(made: exais.Translation, checked: Checked) -> Array:
    """The oracle's value of the result."""
    graph = checked.graphs[0]
    require_memory(graph)
    values = {**inputs(graph, 0, made.inputs), **initial_values(graph, 0)}
    found = run(graph, values, checked.catalog, reference.evaluate)
    return np.asarray(found[graph.outputs[made.output]], dtype=np.float64)


# ---- folders and reports


def files(folder: Path) -> list[Path]:
    """The program files of a folder and of those inside it: texts with a record."""
    marks = (b"Actual (Unparsed):", b"Expected (Unparsed):")
    return [p for p in sorted(folder.rglob("*.txt")) if any(m in _bytes(p) for m in marks)]


def _bytes(path: Path) -> bytes:
    """The content of a file; one that cannot be opened is no program file."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def outcomes(paths: Sequence[Path], jobs: int = 1) -> Iterator[Outcome]:
    """The verdicts, in the order of the files."""
    if jobs == 1:
        yield from map(judge, paths)
        return
    # a worker that cannot start ends this; a `Pool` would start others for ever
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(judge, paths, chunksize=8)


def summary(found: Iterable[Outcome]) -> dict[str, Any]:
    """What `--format json` prints."""
    found = list(found)
    counts = Counter(item.verdict for item in found)
    failures = [
        {"file": item.file, "kind": item.kind, "verdict": item.verdict, "reason": item.reason}
        for item in found
        if item.verdict in ("disagree", "uncovered")
    ]
    by_kind: dict[str, Counter[str]] = {}
    for item in found:
        for kind in item.kinds:
            by_kind.setdefault(kind, Counter())[item.verdict] += 1
    table = {kind: {v: by_kind[kind][v] for v in VERDICTS} for kind in sorted(by_kind)}
    return {
        **{verdict: counts[verdict] for verdict in VERDICTS},
        "failures": failures,
        "kinds": table,
    }


def report(result: dict[str, Any]) -> str:
    """The summary as text: by layer kind, then the failures, then the totals."""
    heads = ("programs with it that:", *VERDICTS)
    width = max(len(heads[0]), *(len(kind) for kind in result["kinds"]))
    lines = [f"{heads[0]:{width}}" + "".join(f"{head:>11}" for head in heads[1:])]
    for kind, row in result["kinds"].items():
        lines.append(f"{kind:{width}}" + "".join(f"{row[v] or '.':>11}" for v in VERDICTS))
    lines.append("")
    for item in result["failures"]:
        about = f" ({item['kind']})" if item["kind"] else ""
        lines.append(f"{item['verdict']}: {item['file']}{about}: {item['reason']}")
    lines.append(
        f"{result['agree']} agree with TensorFlow, {result['disagree']} disagree, "
        f"{result['refused']} that must be refused are refused at the layer at fault, "
        f"{result['uncovered']} are not covered yet"
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.exais")
    parser.add_argument("folder", type=Path, metavar="DIR", help="program files, at any depth")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        print(f"{options.folder} is not a folder", file=sys.stderr)
        return 2
    if options.jobs < 1:
        print("--jobs must be 1 or more", file=sys.stderr)
        return 2
    paths = files(options.folder)
    if not paths:
        print(f"{options.folder} holds no program files", file=sys.stderr)
        return 2
    result = summary(outcomes(paths, options.jobs))
    print(json.dumps(result) if options.format == "json" else report(result))
    return 1 if result["disagree"] else 0


if __name__ == "__main__":
    sys.exit(main())
