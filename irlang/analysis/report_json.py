"""Verdicts as JSON, for programs."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang.analysis.search import Witness
from irlang.analysis.subject import Subject
from irlang.analysis.verdict import Report, Verdicts
from irlang.dtypes import DTYPES
from irlang.interp.range import Point
from irlang.interp.values import Array

MOST_LISTED = 10_000  # elements of a tensor that are listed; of more there are the bytes
MOST_BYTES = 16_000_000  # of a tensor; more are in files only (--out)


def to_json(verdicts: Verdicts, files: Mapping[str, list[str]] | None = None) -> dict[str, Any]:
    """What `irlang analyze --format json` prints.

    files: of witnesses, by the name of the point's call. Numbers that JSON has no word for are
    texts: `inf`, `-inf`, `nan`.
    """
    return {
        "seconds": round(verdicts.seconds, 3),
        "reports": [
            _report(report, verdicts.subject, (files or {}).get(report.point.node))
            for report in verdicts.reports
        ],
        "safe": len(verdicts.safe),
        "proved": [_proved(point, verdicts.subject) for point in verdicts.safe],
        "sizes": dict(verdicts.subject.source.sizes),
        "assumed": [verdicts.subject.called(name) for name in verdicts.subject.assumed],
        "unmet": list(verdicts.subject.unmet),
        "nonfinite": [verdicts.subject.called(name) for name in verdicts.subject.nonfinite],
        "granted": [
            {"node": verdicts.subject.called(g.node), "code": g.code, "message": g.message}
            for g in verdicts.granted
        ],
        "left_open": [verdicts.subject.called(name) for name in verdicts.left_open],
        "left_out": [{"node": d.node, "message": d.message} for d in verdicts.subject.left_out],
    }  # fmt: skip


def _report(report: Report, subject: Subject, files: list[str] | None) -> dict[str, Any]:
    point = report.point
    return {
        "node": report.node,
        "operator": point.operator,
        "stage": point.stage,
        "status": report.status,
        "range": [_plain(point.operand.low), _plain(point.operand.high)],
        "function": point.function,
        "reasons": list(point.reasons),
        "witness": None if report.witness is None else _witness(report.witness, subject, files),
        "guard": None if report.guard is None else report.guard.as_json(),
        "because": report.because or None,
        "call": report.call,
        "file": report.span.file or subject.file,
        "line": report.span.line,
        "column": report.span.column,
    }


def _proved(point: Point, subject: Subject) -> dict[str, Any]:
    return {
        "node": subject.called(point.node),
        "operator": point.operator,
        "stage": point.stage,
        "function": point.function,
        "range": [_plain(point.operand.low), _plain(point.operand.high)],
        "reasons": list(point.reasons),
    }


def _witness(witness: Witness, subject: Subject, files: list[str] | None) -> dict[str, Any]:
    shown = witness.shown
    return {
        "inputs": {subject.called(n): tensor(array) for n, array in witness.values.items()},
        "target": shown and shown.target,
        "version": shown and shown.version,
        "result": shown and shown.result,
        "index": None if shown is None else list(shown.index),
        "value": shown and _plain(shown.value),
        "operands": None if not (shown and shown.fed) else [_plain(x) for x in shown.fed],
        "files": files,
    }


def tensor(array: Array) -> dict[str, Any]:
    """A tensor: `values` is to be broadcast to `shape`; where there are too many it is null, and
    `base64` has all elements as they lie in memory, little endian.
    """
    name = next(n for n, row in DTYPES.items() if row.numpy == array.dtype)
    small = array
    for axis in range(array.ndim):
        first = small.take([0], axis) if small.shape[axis] else small
        if small.shape[axis] and np.array_equal(np.broadcast_to(first, small.shape), small):
            small = first
    plain = small.astype(np.float64) if small.dtype.kind == "V" else small
    listed = plain.tolist() if small.size <= MOST_LISTED else None
    told: dict[str, Any] = {"dtype": name, "shape": list(array.shape), "values": listed}
    if listed is None and array.nbytes <= MOST_BYTES:
        little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        told["base64"] = base64.b64encode(little.tobytes()).decode("ascii")
    return told


def _plain(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
