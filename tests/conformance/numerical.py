"""Measures `irlang analyze` on a folder of graphs with known numerical defects.

python -m tests.conformance.numerical DIR [--format json] [IDS...]

DIR has a side file `json/ID.json` for every graph: where its `.onnx` (and `.pb`) is, the ranges of
inputs and parameters, the confirmed `defects`, and the labels of other risky nodes. Every witness
is replayed with ONNX Runtime on the original ONNX file, not on what irlang made of it. Nothing may
be reported in a twin (a guarded version), or at a node that is labelled safe.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from irlang.analysis.confirm import Frameworks
from irlang.analysis.verdict import Report, Verdicts, verdicts
from irlang.catalog import builtin
from irlang.commands.loading import load_source, load_subject
from irlang.diagnostics import InvalidInput
from irlang.garbage import keep
from irlang.importers.files import READERS

Array = np.ndarray[Any, np.dtype[Any]]
_SKIPPED = ("original", "twin")


@dataclass(slots=True)
class Score:
    """What became of all graphs. missed, false_alarms, failures: one text each."""

    confirmed: int = 0
    reported: int = 0
    witnessed: int = 0
    missed: list[str] = field(default_factory=list)
    unwitnessed: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The figures."""
        return {
            "confirmed": self.confirmed, "reported": self.reported, "missed": self.missed,
            "witnessed": self.witnessed, "unwitnessed": self.unwitnessed,
            "false_alarms": self.false_alarms, "seconds": self.seconds, "failures": self.failures,
        }  # fmt: skip


def measure(folder: Path, ids: Sequence[str] = (), domain: str = "relations") -> Score:
    """Analyses all graphs of a folder, in each form that there is and that irlang reads."""
    score = Score()
    with Frameworks() as frameworks:
        for side in _sides(folder, ids):
            for kind in ("onnx", "pb"):
                if side.get(kind) and f".{kind}" in READERS:
                    _graph(folder, side, kind, frameworks, domain, score)
    return score


def _sides(folder: Path, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "json").glob("*.json")):
        side = json.loads(path.read_text("utf-8"))
        if side["kind"] in _SKIPPED and (not ids or side["id"] in ids):
            yield side


def _graph(
    folder: Path,
    side: Mapping[str, Any],
    kind: str,
    frameworks: Frameworks,
    domain: str,
    score: Score,
) -> None:
    name = side["id"] if kind == "onnx" else f"{side['id']}.{kind}"
    given = (*side["inputs"], *side["parameters"])
    ranges = {one["name"]: (float(one["range"][0]), float(one["range"][1])) for one in given}
    defects = [d["node"] for d in side.get("defects", ()) if not d.get("extra")]
    score.confirmed += len(defects)
    try:
        subject = load_subject(
            str(folder / side[kind]),
            _shapes(folder / side[kind], given),
            ranges=_known(ranges, kind),
        )
        found = verdicts(subject, frameworks, domain=domain)
    except Exception as error:  # noqa: BLE001 (a graph that irlang breaks at is a failure, too)
        score.failures.append(f"{name}: {type(error).__name__}: {error}")
        score.missed += [f"{name}: {node}" for node in defects]
        return
    score.seconds[name] = round(found.seconds, 3)
    # a node may have become several calls, of which one that is reached says most
    reports = {one.node: one for one in found.reports}
    reports |= {one.node: one for one in found.reports if one.status == "reachable"}
    for node in defects:
        if node not in reports:
            score.missed.append(f"{name}: {node}")
            continue
        score.reported += 1
        problem = replay(folder / side["onnx"], reports[node], found, side, ranges)
        if problem:
            score.unwitnessed.append(f"{name}: {node}: {problem}")
        else:
            score.witnessed += 1
    labels = {one["node"]: one["label"] for one in side.get("risk_nodes", ())}
    score.false_alarms += [
        f"{name}: {report.node} ({report.status})"
        for report in found.reports
        if side["kind"] == "twin" or labels.get(report.node) == "safe"
    ]


def _shapes(path: Path, given: Sequence[Mapping[str, Any]]) -> list[str]:
    """The shapes that a file does not say itself, from the side file, as `--bind` takes them."""
    try:
        load_source(str(path))
    except InvalidInput as error:
        wanting = {diagnostic.node for diagnostic in error.diagnostics}
        sizes = {one["name"].removesuffix(":0"): one["shape"] for one in given}
        return [
            f"{name}={','.join(map(str, sizes[name]))}" for name in sorted(wanting & sizes.keys())
        ]
    return []


def _known(ranges: Mapping[str, tuple[float, float]], kind: str) -> dict[str, tuple[float, float]]:
    """The ranges by the names of a form: a TensorFlow graph names nodes, not their results."""
    if kind == "onnx":
        return dict(ranges)
    return {name.removesuffix(":0"): ends for name, ends in ranges.items()}


def replay(
    path: Path,
    report: Report,
    found: Verdicts,
    side: Mapping[str, Any],
    ranges: Mapping[str, tuple[float, float]],
) -> str:
    """Why a witness does not hold on the original model; nothing if it does."""
    if report.status != "reachable" or report.witness is None:
        return f"{report.status}, no witness"
    subject = found.subject
    values = {subject.called(n).removesuffix(":0"): a for n, a in report.witness.values.items()}
    feeds = {}
    for one in (*side["inputs"], *side["parameters"]):
        name, (low, high) = one["name"], ranges[one["name"]]
        array = values.get(name.removesuffix(":0"))
        if array is None:  # the node does not hang on it
            array = np.full(one["shape"], np.clip(0, low, high))
        ends = np.array([low, high]).astype(array.dtype)  # the nearest that the type has
        if array.size and not (ends[0] <= array.min() and array.max() <= ends[1]):
            return f"`{name}` leaves its range"
        feeds[name] = np.asarray(array, dtype=one["dtype"]).reshape(one["shape"])
    return run(path, report.node, feeds)


def run(path: Path, wanted: str, feeds: Mapping[str, Array]) -> str:
    """Whether a node of an ONNX model originates NaN or infinity, every tensor exposed."""
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    there = {output.name for output in model.graph.output}
    model.graph.output.extend(v for v in model.graph.value_info if v.name not in there)
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    needed = {item.name for item in session.get_inputs()}
    names = [item.name for item in session.get_outputs()]
    results = session.run(names, {n: a for n, a in feeds.items() if n in needed})
    values = dict(zip(names, results, strict=True))
    values.update(feeds)
    node = next((one for one in model.graph.node if one.name == wanted), None)
    if node is None:
        return "the original has no such node"
    if _finite(values[node.output[0]]):
        return "its result is finite in ONNX Runtime"
    if not all(_finite(values[name]) for name in node.input if name in values):
        return "an operand is not finite in ONNX Runtime"
    return ""


def _finite(array: Any) -> bool:
    return np.asarray(array).dtype.kind != "f" or bool(np.isfinite(array).all())


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures; 0 where all defects are reported and witnessed, and nothing else is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--domain", choices=("relations", "regions", "tensor"), default="relations")
    given = parser.parse_args(arguments)
    builtin()
    keep()  # as the command does
    score = measure(given.folder, given.ids, given.domain)
    if given.format == "json":
        print(json.dumps(score.as_json(), indent=1))
    else:
        print(
            f"{score.reported} of {score.confirmed} confirmed defects reported, "
            f"{score.witnessed} with a witness that holds; {len(score.false_alarms)} false alarms; "
            f"{len(score.failures)} graphs cannot be read"
        )
        for what in ("missed", "unwitnessed", "false_alarms", "failures"):
            for line in getattr(score, what):
                print(f"  {what.replace('_', ' ')}: {line}")
        if score.seconds:
            slowest = max(score.seconds, key=lambda name: score.seconds[name])
            total = sum(score.seconds.values())
            print(f"{total:.1f} s in all, at most {score.seconds[slowest]:.1f} s ({slowest})")
    good = not (score.missed or score.unwitnessed or score.false_alarms or score.failures)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
