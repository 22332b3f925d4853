"""Compares the oracle with the results that ONNX records for the tests of its operators.

    python -m tests.conformance.onnx_nodes [--format json] [--only NAME] [--jobs N]

Every case of `onnx.backend.test.case.node.collect_testcases(None)` goes through import, check and
oracle. An input whose value must be known when a model is read (the shape that Reshape takes) is
fixed to the value that the case gives it. The verdict of a case:

- agree: every result is the recorded one: integers and truth values to the last bit, reals within
  the rounding radius of the program plus half a unit in the last place of the recorded number.
  Where the radius is infinite (a decision hangs on rounding, or the definition leaves the element
  open) nothing is claimed of the element;
- unsupported: the importer refuses it, and says why;
- disagree: anything else. `CITED` says of some why the recorded value is wrong, or only one of
  several that are right.

Exit status: 0 nothing disagrees that is not cited, 1 something does, 2 nothing to compare.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from irlang.catalog import builtin  # noqa: E402
from irlang.diagnostics import InvalidInput  # noqa: E402
from irlang.diff.calls import Case, judge_following, open_values  # noqa: E402
from irlang.diff.verdict import FINDINGS  # noqa: E402
from irlang.dtypes import DTYPES  # noqa: E402
from irlang.graph import Graph, Initial  # noqa: E402
from irlang.importers.onnx_file import tensor  # noqa: E402
from irlang.importers.onnx_model import Imported, Refused, translate  # noqa: E402
from irlang.importers.value import Unsupported  # noqa: E402
from irlang.interp import reference  # noqa: E402
from irlang.interp.balls import Ball  # noqa: E402
from irlang.interp.plain import load  # noqa: E402
from irlang.interp.program import node_balls, run  # noqa: E402
from irlang.interp.shape import check  # noqa: E402
from irlang.interp.values import initial_values, inputs  # noqa: E402
from irlang.parser import parse  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
VERDICTS = ("agree", "disagree", "unsupported")

# Cases whose recorded value is not the only right one, or is wrong, by a pattern of their names.
_DIGITS = "onnx/backend/test/case/node writes the expected values out with four decimal places"
CITED: dict[str, str] = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": _DIGITS,
    "test_gridsample_bicubic": _DIGITS,
    "test_roialign_aligned_(false|true)": _DIGITS,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is found of a case. kind: the operator that the reason is about."""

    case: str
    verdict: str
    kind: str = ""
    reason: str = ""


class Different(Exception):
    """A result is not the recorded one."""


@cache
def cases() -> dict[str, Any]:
    """ONNX's cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases(None)}


def judge(name: str) -> Outcome:
    """The verdict on one case."""
    case = cases()[name]
    ((given, recorded),) = case.data_sets
    names = [item.name for item in case.model.graph.input]
    read = {name: _array(value) for name, value in zip(names, given, strict=False)}
    arrays = {name: array for name, array in read.items() if array is not None}
    try:
        made = _imported(case.model, arrays)
    except InvalidInput as error:
        first = error.diagnostics[0]
        foreign = all(d.code.startswith("import.") for d in error.diagnostics)
        kind, reason = _reason(first.message)
        verdict = "unsupported" if foreign else "disagree"
        return Outcome(name, verdict, kind, reason if foreign else f"{first.code}: {first.message}")
    try:
        judged = _compare(made, arrays, recorded)
    except (Different, InvalidInput) as error:
        return Outcome(name, "disagree", "", f"{error}")
    if not judged:
        return Outcome(name, "unsupported", "", "no element has a verdict")
    return Outcome(name, "agree")


def _array(value: Any) -> Array | None:
    """A recorded value; None where it is no tensor of a type that irlang has."""
    if hasattr(value, "data_type"):
        try:
            return tensor(value, None, "a recorded value")
        except Unsupported:
            return None
    return None if value is None or isinstance(value, list) else np.asarray(value)


def _imported(model: Any, arrays: dict[str, Array]) -> Imported:
    """The model, with inputs fixed that must be known."""
    fixed: dict[str, Array] = {}
    while True:
        try:
            return translate(model, None, "weights.safetensors", constants=fixed)
        except Refused as error:
            more = {n: arrays[n] for n in error.needed if n in arrays and n not in fixed}
            if not more:
                raise
            fixed |= more


def _reason(message: str) -> tuple[str, str]:
    """An operator, and why it is refused, without names that only this case has."""
    found = re.fullmatch(r"(\S+) `[^`]*`: (.*)", message, re.DOTALL)
    kind, reason = (found[1], found[2]) if found else ("", message)
    return kind, re.sub(r"`[^`]*`", "…", reason)


def _compare(made: Imported, arrays: dict[str, Array], recorded: Sequence[Any]) -> bool:
    """Raises `Different` at the first result that is off; False where no element is judged."""
    checked = check(parse(made.text), builtin())
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if errors:
        raise Different(f"the text is refused: {errors[0].code}: {errors[0].message}")
    graph = checked.graphs[0]
    for param in graph.params.values():
        if param.initial is not None and param.initial.kind == "data":
            param.initial = Initial("array", (made.writer.tensors[param.initial.args[1]],))
    given = {text: arrays[name] for name, text in made.inputs.items()}
    values = {**inputs(graph, 0, given), **initial_values(graph, 0)}
    if open_values(graph, checked.catalog):
        return _ensured(Case(graph, values, {}, checked.catalog), made.outputs, recorded)
    found = run(graph, values, checked.catalog, reference.evaluate)
    balls: dict[str, Ball] = {}
    judged = not recorded
    for name, want in zip(made.outputs, recorded, strict=True):
        want = np.asarray(_array(want))
        value, info = graph.outputs[name], graph.values[graph.outputs[name]]
        if want.shape != info.shape or want.dtype != DTYPES[info.dtype].numpy:
            raise Different(f"`{name}` is {info}, recorded as {want.dtype}{list(want.shape)}")
        if not _off(found[value], want, info.dtype).any():
            judged = True
            continue
        balls = balls or _balls(graph, values, checked.catalog)
        radius = np.broadcast_to(balls[value].bound, want.shape)
        off = _off(found[value], want, info.dtype, radius)
        if off.any():
            at = tuple(int(i[0]) for i in np.nonzero(off))
            raise Different(
                f"{int(off.sum())} of {off.size} elements of `{name}` differ; {list(at)} is "
                f"{found[value][at]!r}, recorded {want[at]!r}, radius {radius[at]!r}"
            )
        judged = judged or bool(np.isfinite(radius).any()) or not want.size
    return judged


def _ensured(case: Case, outputs: Sequence[str], recorded: Sequence[Any]) -> bool:
    """`_compare` where values are left open: by what the definitions ensure of the results."""
    results = {n: np.asarray(_array(item)) for n, item in zip(outputs, recorded, strict=True)}
    verdicts = judge_following(case, case.graph, results, "recorded")
    found = [verdicts[value] for value in case.graph.outputs.values() if value in verdicts]
    wrong = [v.message for v in found if v.verdict in FINDINGS]
    if wrong:
        raise Different(wrong[0])
    return any(v.verdict == "agrees" for v in found)


def _balls(graph: Graph, values: dict[str, Array], catalog: Any) -> dict[str, Ball]:
    """Every value with its radius, every call at the precision of its own tensors."""
    found = {name: Ball(load(graph.values[name], item)) for name, item in values.items()}
    for node in graph.nodes:
        infos = [graph.values[name] for name in (*node.operands(), *node.outputs)]
        reals = [i.dtype for i in infos if i.kind == "real" and not DTYPES[i.dtype].stored]
        coarsest = max(reals, key=lambda name: DTYPES[name].unit, default="f64")
        found.update(node_balls(node, found, catalog, coarsest))
    return found


def _off(found: Array, want: Array, dtype: str, radius: Any = 0.0) -> Array:
    """Which elements are further from the recorded ones than rounding explains."""
    if DTYPES[dtype].kind != "real":
        same = found.astype(want.dtype) == want
        return np.asarray(~(same | (np.asarray(radius) > 0)))
    with np.errstate(all="ignore"):
        rounded = found.astype(DTYPES[dtype].numpy)
        wide = want.astype(np.float64)
        half = DTYPES[dtype].unit * np.abs(wide) + DTYPES[dtype].tiny * DTYPES[dtype].unit
        near = np.abs(found - wide) <= half + radius
    same = (rounded == want) | (np.isnan(found) & np.isnan(wide)) | np.isinf(radius)
    return np.asarray(~(near | same))


# ---- reports


def outcomes(names: Sequence[str], jobs: int = 1) -> Iterator[Outcome]:
    """The verdicts, in the order of the cases."""
    if jobs == 1:
        yield from map(judge, names)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(judge, names, chunksize=8)


def cited(name: str) -> str:
    """Why a recorded value is not the only right one; empty if nothing is said."""
    return next((why for pattern, why in CITED.items() if re.fullmatch(pattern, name)), "")


def summary(found: Iterable[Outcome]) -> dict[str, Any]:
    """What `--format json` prints."""
    found = list(found)
    counts = Counter(item.verdict for item in found)
    reasons = Counter(
        f"{item.kind}: {item.reason}" if item.kind else item.reason
        for item in found
        if item.verdict == "unsupported"
    )
    failures = [
        {"case": item.case, "reason": item.reason, "cited": cited(item.case)}
        for item in found
        if item.verdict == "disagree"
    ]
    return {
        **{verdict: counts[verdict] for verdict in VERDICTS},
        "reasons": dict(reasons.most_common()),
        "failures": failures,
    }


def report(result: dict[str, Any]) -> str:
    """The summary as text."""
    lines = [f"{count:5} unsupported: {reason}" for reason, count in result["reasons"].items()]
    for item in result["failures"]:
        why = f" (cited: {item['cited']})" if item["cited"] else ""
        lines.append(f"disagree: {item['case']}: {item['reason']}{why}")
    lines.append(", ".join(f"{result[verdict]} {verdict}" for verdict in VERDICTS))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.onnx_nodes")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--only", metavar="NAME", default="", help="cases whose names contain it")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        print("--jobs must be 1 or more", file=sys.stderr)
        return 2
    names = [name for name in cases() if options.only in name]
    if not names:
        print(f"no case has `{options.only}` in its name", file=sys.stderr)
        return 2
    result = summary(outcomes(names, options.jobs))
    print(json.dumps(result) if options.format == "json" else report(result))
    return 1 if any(not item["cited"] for item in result["failures"]) else 0


if __name__ == "__main__":
    sys.exit(main())
