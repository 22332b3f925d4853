"""Verdicts as diagnostics for people and SARIF, and as JSON for programs."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irlang.adjoint_graph import PREFIX
from irlang.analysis.confirm import Shown
from irlang.analysis.search import Witness
from irlang.analysis.subject import Subject
from irlang.analysis.verdict import Report, Verdicts
from irlang.diagnostics import Diagnostic, Note
from irlang.dtypes import DTYPES
from irlang.interp.range import Point, Range
from irlang.interp.values import Array
from irlang.render import visible

MOST_LISTED = 10_000  # elements of a tensor that JSON lists; of more it has the bytes
MOST_BYTES = 16_000_000  # of a tensor; more are in files only (--out)
_MOST_NAMES = 6  # listed in a line
_MOST_GRANTED = 3  # preconditions that are told
_MOST_ALIKE = 3  # possible overflows that are shown
_LARGE = frozenset({"sum", "prod", "*", "+", "-", "sq"})
_NEAR = 2  # calls before the one that is reported, whose numbers are looked at
_UNPROVED = "narrower ranges of the inputs, or a bound on what the call is given, may settle it"
_MOST_SHOWN = 8  # elements of a tensor that a person is shown
# What the operand that decides is to the function; others are "what FUNCTION is applied to".
_OPERAND = {
    "/": "the divisor", "//": "the divisor", "%": "the divisor", "+": "the sum",
    "-": "the difference", "*": "the product", "sum": "the sum", "prod": "the product",
}  # fmt: skip


def diagnostics(found: Verdicts, *, all_of_them: bool = False) -> list[Diagnostic]:
    """The reports as they are shown, but for what follows from others.

    Of many calls whose sums or products may only be too large, a few are: one wide bound makes the
    next one wider. all_of_them: for programs, which leave nothing out.
    """
    shown = [report for report in found.reports if not report.because]
    left = () if all_of_them else _alike(found)
    return [diagnostic(report, found.subject) for report in shown if report not in left]


def _alike(found: Verdicts) -> list[Report]:
    """The reports that are left out where there are many."""
    large = [
        report
        for report in found.reports
        if not (report.because or report.witness) and report.point.function in _LARGE
    ]
    return large[_MOST_ALIKE:]


def diagnostic(report: Report, subject: Subject) -> Diagnostic:
    """One report as it is shown: verdict, place, reason, way out."""
    reachable = report.status == "reachable"
    guard = report.guard
    what = f"`{report.point.operator}`"
    if report.point.stage == "gradient":
        what = f"the gradient of `{report.point.operator.removesuffix('_gradient')}`"
    shown = report.witness.shown if report.witness else None
    if shown is not None:
        told = f"{what} gives {number(shown.value)} for inputs inside their ranges"
    else:
        told = f"{what} may give NaN or infinity: this could be neither excluded nor shown"
    if report.node != report.call:
        told = f"{report.node}: {told}"
    lies = f"{operand(report.point.function)} lies in {told_range(report.point.operand)}"
    label, *reasons = report.point.reasons or (lies,)
    if report.point.stage == "gradient":  # of what stands there in the text it would not be true
        label = f"in the gradient, {label}"
    notes = [Note(reason) for reason in (*reasons, *lost_numbers(report, subject))]
    if report.witness is not None:
        notes += [Note(text) for text in told_witness(report.witness, subject)]
    way = "" if reachable else _UNPROVED
    if guard:
        way = f"write {guard.text}: {_within(guard.why)}"
    return Diagnostic(
        f"analyze.{report.status}", told, report.span,
        "error" if reachable else "warning", report.node,
        label=label,
        help=way,
        notes=tuple(notes), edits=guard.edits if guard else (),
    )  # fmt: skip


def lost_numbers(report: Report, subject: Subject) -> list[str]:
    """The numbers of the text near a call that are 0 in the type that they are kept in."""
    graph = subject.source
    makers = {value: node for node in graph.nodes for value in node.outputs}
    near = [node for node in graph.nodes if node.name == report.call]
    for _ in range(_NEAR):
        near += [makers[v] for node in near for v in node.operands() if v in makers]
    lost: dict[str, None] = {}
    for value in (value for node in near for value in node.operands()):
        param = graph.params.get(value)
        if param is None or param.initial is None or param.initial.kind != "constant":
            continue
        written, dtype = param.initial.args[0], param.info.dtype
        if written and param.info.kind == "real" and not float(DTYPES[dtype].numpy.type(written)):
            lost[f"{written:g} is 0 in {dtype}: the smallest number of that type is larger"] = None
    return list(lost)


def conclusion(found: Verdicts, *, imported: bool = False) -> list[str]:
    """The last lines: the verdict, what it rests on, and what can be done.

    imported: whether the model's file is that of another system, which has no lines.
    """
    subject = found.subject
    name = visible(subject.file or subject.graph.name)
    none = "no NaN or infinity can arise"
    if subject.left_out:
        none += " in what could be read"
    nonfinite = subject.nonfinite
    if nonfinite:
        none += " out of finite numbers"
    lines = [f"{name}: {_counted(found) or none}{_safe(found)}   ({found.seconds:.1f} s)"]
    alike = [report.node for report in _alike(found)]
    if alike:
        lines.append(f"Possible in the same way, bounds being wide after many sums: {_some(alike)}")
    following = [report.node for report in found.reports if report.because]
    if following:
        told = "Follows from these, and is judged anew once they are mended"
        lines.append(f"{told}: {_some(following)}")
    if subject.source.sizes:
        said = ", ".join(f"{name} = {size}" for name, size in subject.source.sizes.items())
        lines.append(f"Analysed for {said}. --bind NAME=NUMBER says another size.")
    if subject.assumed:
        some = _some([subject.called(name) for name in subject.assumed])
        lines.append(
            f"No range is stated for {some}: [-1, 1] is assumed, 0 and 1 for integers. "
            "Write `in [low, high]` behind the type, or use --ranges."
        )
    for granted in found.granted[:_MOST_GRANTED]:
        call = subject.called(granted.node)
        told = f"Left out are inputs that {visible(call)} refuses: {granted.message}"
        lines.append(f"{told} ({granted.code})")
    if found.left_open:
        calls = _some([visible(subject.called(name)) for name in found.left_open])
        lines.append(
            f"Some numbers in reach of {calls} are too large for the integers there, or have no "
            "result: a framework may give any integer for them."
        )
    masks = [name for name in nonfinite if _is_mask(subject, name)]
    others = [subject.called(name) for name in nonfinite if name not in masks]
    if others:
        lines.append(
            f"NaN or infinity is in the value of {_some(others)}: what comes of it is not "
            "reported. A range, by --ranges, takes the value's place."
        )
    if masks:
        named = _some([subject.called(name) for name in masks])
        lines.append(
            f"-infinity is in the value of {named}, as in a mask: what becomes NaN of that is "
            "reported, what only hands it on is not."
        )
    if any(map(_abridged, found.reports)):
        lines.append(
            "--out DIR writes the inputs in full, each with a script that shows what happens."
        )
    if not found.tried:
        lines.append(
            "No ways out were tried: each means an analysis like this one. --fix tries them."
        )
    guards = {report.guard.edits for report in found.reports if report.guard}
    if guards:
        ways = "this change" if len(guards) == 1 else f"these {len(guards)} changes"
        where = " on that text" if imported else ""
        lines.append(f"irlang analyze --fix{where} makes {ways}.")
    if imported and found.reports:
        told = f"Lines are those of the text that `irlang import {name}` writes."
        lines.insert(len(lines) - bool(guards), told)
    return lines


def _counted(found: Verdicts) -> str:
    """At how many places something was shown, or could not be excluded; nothing for none."""
    statuses = [report.status for report in found.reports if not report.because]
    shown, possible = map(statuses.count, ("reachable", "possible"))
    told = [f"NaN or infinity arises at {_places(shown)} for the inputs shown"] if shown else []
    if possible:
        may = f"it may at {possible} more" if shown else f"NaN or infinity may arise at {possible}"
        more = "" if shown else f" place{'s' if possible > 1 else ''}"
        told.append(f"{may}{more}, which was neither shown nor excluded")
    return "; ".join(told)


def _safe(found: Verdicts) -> str:
    """How many of the places where it could have happened are safe."""
    count = len(found.safe)
    if not count:
        return ""
    others = "others" if count > 1 else "other"
    rest = f"{count} {others}" if found.reports else f"{_places(count)} that could have made one"
    return f"; {rest} {'are' if count > 1 else 'is'} proved safe"


def _places(count: int) -> str:
    return f"{count} place{'s' if count != 1 else ''}"


def _is_mask(subject: Subject, name: str) -> bool:
    """Whether nothing but -infinity, and no NaN, is not finite in the value of a parameter."""
    values = subject.fixed[name].astype(np.float64)
    return not np.isnan(values).any() and not np.any(values == np.inf)


def _abridged(report: Report) -> bool:
    """Whether an input of a witness is told by its size and ends only."""
    values = report.witness.values.values() if report.witness and not report.because else ()
    return any(" numbers " in told_tensor(array) for array in values)


def _some(names: Sequence[str]) -> str:
    """A few of some names."""
    shown = ", ".join(map(visible, names[:_MOST_NAMES]))
    return f"{shown}, …" if len(names) > _MOST_NAMES else shown


def _within(sentence: str) -> str:
    """A sentence inside another."""
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")


def operand(function: str) -> str:
    """What decides at a point, in words."""
    return _OPERAND.get(function, f"what `{function}` is applied to")


def number(value: float) -> str:
    """A number as a person reads it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{value + 0.0:.6g}"


def told_range(found: Range) -> str:
    """A range as a person reads it."""
    if found.low > found.high:
        return "no number at all"
    ends = f"[{number(found.low)}, {number(found.high)}]"
    return f"{ends} or is NaN" if found.nan else ends


def told_witness(witness: Witness, subject: Subject) -> list[str]:
    """The inputs that do it, and who says so."""
    inputs = "; ".join(
        f"{subject.called(name)} {told_tensor(array)}" for name, array in witness.values.items()
    )
    lines = [f"with {inputs}" if inputs else "whatever the inputs are"]
    shown = witness.shown
    if shown is None:
        lines.append("by the definitions; no installed framework shows the same")
    else:
        gives = f"{shown.target} {shown.version} gives {number(shown.value)}"
        lines.append(f"{gives} at {told_place(shown, subject)}")
    return lines


def told_place(shown: Shown, subject: Subject) -> str:
    """Where a framework gave it: an element of a value, or of the gradient by one."""
    place = f"[{', '.join(map(str, shown.index))}]" if shown.index else ""
    known = subject.graph.values
    of = shown.result.removeprefix(PREFIX)
    of = of if of in known else of.rpartition(".")[0]  # what one of several calls makes of it
    if shown.result in known or of not in known:
        return f"{shown.result}{place}"
    by = f"the gradient by {subject.called(of)}"
    return f"{place} of {by}" if place else by


def told_tensor(array: Array) -> str:
    """What a tensor holds, in a few words."""
    wide = array.astype(np.float64)
    if not array.size:
        return "empty"
    if np.all(wide == wide.reshape(-1)[0]):
        told = f"= {_short(array.reshape(-1)[0])}"
        return told if not array.ndim else f"{told} everywhere"
    if array.size <= _MOST_SHOWN:
        return f"= {_nested(array, _short)}".replace("'", "")
    counts = np.unique(wide, return_counts=True)
    if len(counts[0]) == 2 and counts[1].min() == 1:
        common, rare = counts[0][np.argmax(counts[1])], counts[0][np.argmin(counts[1])]
        at = [int(i[0]) for i in np.nonzero(wide == rare)]
        return f"= {common:.9g}, but {rare:.9g} at {at}"
    low, high = f"{wide.min():.6g}", f"{wide.max():.6g}"
    where = f"next to {low}" if low == high else f"from {low} to {high}"
    return f"of {array.size} numbers {where}"


def _short(value: Any) -> str:
    """The shortest text that gives a number of its type back."""
    return str(value) if isinstance(value, np.floating) else f"{float(value):.9g}"


def _nested(array: Array, told: Any) -> Any:
    return told(array[()]) if not array.ndim else [_nested(item, told) for item in array]


# ---- for programs -----------------------------------------------------------------------------


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
