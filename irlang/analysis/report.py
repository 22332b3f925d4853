"""Verdicts as diagnostics, for people and SARIF."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.analysis.absorbed import absorbed
from irlang.analysis.confirm import Shown
from irlang.analysis.search import Witness
from irlang.analysis.subject import Subject
from irlang.analysis.verdict import Report, Verdicts
from irlang.diagnostics import Diagnostic, Note, Span
from irlang.dtypes import DTYPES
from irlang.interp.range import Point, Range
from irlang.interp.values import Array
from irlang.render import visible

_WHOLE = 1e6  # below which a number is told with all digits before the point
_MOST_NAMES = 6  # listed in a line
_MOST_GRANTED = 3  # preconditions that are told
_MOST_ALIKE = 3  # possible overflows that are shown
_LARGE = frozenset({"sum", "prod", "*", "+", "-", "sq"})
_NEAR = 2  # calls before the one that is reported, whose numbers are looked at
_UNPROVED = (
    "state narrower ranges for the inputs, or bound what the call is given (clip, maximum): "
    "that may settle it"
)
_SETTLED = "the change above settles this, too"
_ONE_NUMBER = " everywhere"  # of a tensor
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
    if all_of_them:
        return [diagnostic(report, found.subject) for report in shown]
    left = _alike(found)
    return _said_once([diagnostic(report, found.subject) for report in shown if report not in left])


def _said_once(told: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The same, but for a way out that was said of the same piece of text: of a call, then of its
    gradient.
    """
    said: set[tuple[Span, str]] = set()
    once = []
    for one in told:
        if one.help and (one.span, one.help) in said:
            one = replace(one, help=_SETTLED if one.edits else "")
        said.add((one.span, one.help))
        once.append(one)
    return once


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
    elif report.witness is not None:
        told = (
            f"{what} may give NaN or infinity: by the definitions it does for the inputs shown, "
            "but no framework that was asked does"
        )
    else:
        told = (
            f"{what} may give NaN or infinity: no input that does it was found, nor a proof that "
            "there is none"
        )
    if report.node != report.call:
        told = f"{report.node}: {told}"
    lies = f"{operand(report.point.function)} lies in {told_range(report.point.operand)}"
    label, *reasons = report.point.reasons or (lies,)
    if report.point.stage == "gradient":  # of what stands there in the text it would not be true
        label = f"in the gradient, {label}"
    notes = [Note(reason) for reason in (*reasons, *lost_numbers(report, subject))]
    if report.witness is not None:
        notes += [Note(text) for text in absorbed(report.witness, report.call, subject)]
        notes += [Note(text) for text in told_witness(report.witness, subject, report.point)]
    way = "" if reachable else _UNPROVED
    if guard:
        way = f"write {guard.text}. {guard.why}{_own_names(guard.text, subject)}"
    return Diagnostic(
        f"analyze.{report.status}", told, report.span,
        "error" if reachable else "warning", report.node,
        label=label,
        help=way,
        notes=tuple(notes), edits=guard.edits if guard else (),
    )  # fmt: skip


def _own_names(text: str, subject: Subject) -> str:
    """What the calls and inputs in a piece of text are called in the model that was imported."""
    words = dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*\b(?!\s*[(=])", text))
    others = {word: subject.names.get(word, word) for word in words}
    found = [f"{word} is {other}" for word, other in others.items() if word != other]
    return f" (In the model, {', '.join(found[:_MOST_NAMES])}.)" if found else ""


def lost_numbers(report: Report, subject: Subject) -> list[str]:
    """The numbers of the text near a call that are 0 or 1 in the type that they are kept in,
    although they were written as others, or infinite.
    """
    graph = subject.source
    makers = {value: node for node in graph.nodes for value in node.outputs}
    near = [node for node in graph.nodes if node.name == report.call]
    for _ in range(_NEAR):
        near += [makers[v] for node in near for v in node.operands() if v in makers]
    found = [
        (written, graph.values[node.outputs[0]].dtype)
        for node in near
        for written in node.attrs.values()
        if isinstance(written, float)
    ]
    for value in (value for node in near for value in node.operands()):
        param = graph.params.get(value)
        if param is None or param.initial is None or param.initial.kind != "constant":
            continue
        found += [(float(written), param.info.dtype) for written in param.initial.args[:1]]
    told = (told_loss(written, dtype) for written, dtype in dict.fromkeys(found))
    return [line for line in told if line]


# What a number became that its type has not, and why.
_TOLD_OF = {
    0.0: "the smallest number of that type is larger",
    1.0: "its next numbers are too far",
    math.inf: "the largest number of that type is {largest:g}",
}


def told_loss(written: float, dtype: str) -> str:
    """What becomes of a number in a type, where that is 0, 1 or infinite and the number is not."""
    row = DTYPES[dtype]
    if row.kind != "real" or not math.isfinite(written):
        return ""
    with np.errstate(over="ignore"):
        kept = float(row.numpy.type(written))
    if kept == written or abs(kept) not in _TOLD_OF:
        return ""
    why = _TOLD_OF[abs(kept)].format(largest=row.largest)
    return f"{written:.12g} is {kept:g} in {dtype}: {why}".replace("inf ", "infinity ")


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
        told = "The same may happen, as little is known of how large sums of sums become"
        lines.append(f"{told}: {_some(alike)}")
    following = [subject.written(report.call) for report in found.reports if report.because]
    if following:
        told = "Not judged yet, as what a call above hands on may be of any size till it is changed"
        lines.append(f"{told}: {_some(following)}. Run the analysis again then.")
    if subject.source.sizes:
        said = ", ".join(f"{name} = {size}" for name, size in subject.source.sizes.items())
        lines.append(f"Analysed for {said}. --bind NAME=NUMBER says another size.")
    lines += _told_ranges(subject, imported)
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
    if not found.gradient and (subject.graph.loss is not None or subject.graph.params):
        lines.append("Gradients were not analysed: --gradient does that.")
    guards = {report.guard.edits for report in found.reports if report.guard}
    if guards:
        ways = "this change" if len(guards) == 1 else f"these {len(guards)} changes"
        where = " on that text" if imported else ""
        more = any(not (r.guard or r.because) for r in found.reports)
        longer = ", and looks longer for others" if more else ""
        lines.append(f"irlang analyze --fix{where} makes {ways}{longer}.")
    if imported and found.reports:
        told = f"Lines are those of the text that `irlang import {name}` writes."
        lines.insert(len(lines) - bool(guards), told)
    return lines


def _told_ranges(subject: Subject, imported: bool) -> list[str]:
    """Which ranges had to be assumed, and how to say others; which were given for nothing here."""
    lines = [_told_assumed(subject, imported)] if subject.assumed else []
    if subject.unmet:
        lines.append(f"A range is given for what is no input or parameter: {_some(subject.unmet)}.")
    return lines


def _told_assumed(subject: Subject, imported: bool) -> str:
    some = _some([subject.called(name) for name in subject.assumed])
    told = f"No range is stated for {some}: [-1, 1] is assumed, 0 and 1 for integers"
    if not imported:
        return f"{told}. Write `in [low, high]` behind the type, or use --ranges."
    form = visible(json.dumps({subject.called(subject.assumed[0]): [-1, 1]}))
    return f"{told}. To say others, use --ranges FILE.json with {form} in that file."


def _counted(found: Verdicts) -> str:
    """At how many places something was shown, or could not be excluded; nothing for none."""
    own = [report for report in found.reports if not report.because]
    shown = sum(report.status == "reachable" for report in own)
    defined = sum(report.status == "possible" and report.witness is not None for report in own)
    kinds = (
        ("arises at {} for the inputs shown", shown),
        ("arises at {} by the definitions, and in no framework that was asked", defined),
        ("may arise at {}, for which neither an input nor a proof was found",
         len(own) - shown - defined),
    )  # fmt: skip
    told: list[str] = []
    for text, count in kinds:
        if count:
            what = "it" if told else "NaN or infinity"
            told.append(f"{what} {text.format(f'{count} more' if told else _places(count))}")
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


def operand(function: str) -> str:
    """What decides at a point, in words."""
    return _OPERAND.get(function, f"what `{function}` is applied to")


def number(value: float) -> str:
    """A number as a person reads it; what lies next to a whole number is not told as that, as it
    is what `acos` is not defined for.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    told = f"{value + 0.0:.6g}"
    beside = abs(value) < _WHOLE and float(told).is_integer() and float(told) != value
    return f"{value:.9g}" if beside else told


def told_range(found: Range) -> str:
    """A range as a person reads it."""
    if found.low > found.high:
        return "no number at all"
    ends = f"[{number(found.low)}, {number(found.high)}]"
    return f"{ends} or is NaN" if found.nan else ends


def told_witness(witness: Witness, subject: Subject, point: Point) -> list[str]:
    """The inputs that do it, who says so, and what the call is given there."""
    alike: dict[str, list[str]] = {}  # what is one number is said once of all that are it
    for name, array in witness.values.items():
        told = told_tensor(array)
        key = told if told.endswith(_ONE_NUMBER) else f"{told} {name}"
        alike.setdefault(key, []).append(name)
    inputs = "; ".join(
        f"{', '.join(map(subject.called, names))} {told_tensor(witness.values[names[0]])}"
        for names in alike.values()
    )
    lines = [f"with {inputs}" if inputs else "whatever the inputs are"]
    shown = witness.shown
    if shown is None:
        lines.append("by the definitions; no installed framework shows the same")
    else:
        gives = f"{shown.target} {shown.version} gives {number(shown.value)}"
        computed = "" if shown.fed is None else f", {_told_operands(point, shown.fed)}"
        lines.append(f"{gives} at {told_place(shown, subject)}{computed}")
    return lines


def _told_operands(point: Point, operands: Sequence[float]) -> str:
    """What an element was computed from, in words."""
    call = f"({', '.join(map(number, operands))})"
    if point.stage == "gradient":
        return f"where {point.operator.removesuffix('_gradient')}{call} is differentiated"
    return f"which is {point.operator}{call}"


def told_place(shown: Shown, subject: Subject) -> str:
    """Where a framework gave it: an element of a value, or of the gradient by one."""
    place = f"[{', '.join(map(str, shown.index))}]" if shown.index else ""
    known = subject.graph.values
    of = shown.result.removeprefix(subject.prefix)
    of = of if of in known else of.rpartition(".")[0]  # what one of several calls makes of it
    if of not in known:
        return f"{shown.result}{place}"
    if shown.result in known:
        told = subject.written(shown.result)
        inside = told not in (shown.result, subject.called(shown.result))
        return f"{place} of {told}" if inside and place else f"{shown.result}{place}"
    by = f"the gradient by {subject.written(of)}"
    return f"{place} of {by}" if place else by


def told_tensor(array: Array) -> str:
    """What a tensor holds, in a few words."""
    wide = array.astype(np.float64)
    if not array.size:
        return "empty"
    if np.all(wide == wide.reshape(-1)[0]):
        told = f"= {_short(array.reshape(-1)[0])}"
        return told if not array.ndim else told + _ONE_NUMBER
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
