"""What a target's result is worth, element by element, against a value and its radius.

No tolerance is chosen here: an element agrees when it lies inside its radius. The two remaining
distinctions only name a disagreement or the strength of an agreement:

- `rounding` agrees, but within a radius so wide (beyond the square root of the unit roundoff,
  relative to the largest element) that the agreement says little;
- `inaccurate` lies outside the radius, yet within that same distance, the largest element being
  taken as 16 at most where the element itself is smaller: half of the digits are right, and a huge
  number beside it excuses nothing; or within the radius of arithmetic that has half of the digits
  (`Arithmetic.halved`): so far off is a formula that squares what a problem's condition makes of a
  rounding, as a variance in one pass does, or a distance by the squares of both rows, or that adds
  1 to what is small. Further off, it is `wrong`.

A program that was fed with values at the edges of their types (`irlang.gen.edge`) has what is
`wrong` or `nonfinite` counted apart, as `edge`. There an infinity or NaN is none of the digits that
a formula loses: half of them know nothing of what is near the largest number.

`inconsistent` is what a mode that compiles or optimises gives where a definition leaves everything
open, and the same framework without it gives something else (`irlang.diff.plainly`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang.diff.report_words import bare
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.interp.balls import Ball
from irlang.interp.overflow import shown
from irlang.lower.profile import is_short

Array = np.ndarray[Any, np.dtype[Any]]

# From the least to the gravest; a program's verdict is the gravest of its outputs'. An unstable
# output has no verdict, so that the others decide; so it is with a gradient that a target has not.
SEVERITY = (
    "unstable", "unsupported", "agrees", "rounding", "refused", "inconsistent", "inaccurate",
    "edge", "nonfinite", "wrong", "accepted", "memory", "timeout", "crash",
)  # fmt: skip
_READ = (
    "crash", "memory", "timeout", "wrong", "nonfinite", "refused", "edge", "inaccurate",
    "inconsistent", "accepted",
)  # fmt: skip
FINDINGS = frozenset(_READ)
INCONSISTENT = "inconsistent"
_OF_VALUES = ("nonfinite", "wrong")
NOT_REPEATED = "not repeated"
_MODERATE = 16.0  # the largest element that says how accurate those are that are smaller
_REASON = 24  # words of a message that tell reasons apart


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one output on one target.

    max_error: the largest |got - expected| over elements that have a verdict. radius: at that
    element. index: of the element that is furthest outside its radius, or nearest to its edge.
    expected, got: there, as whole numbers where the output has such. stage: of training, in which
    it was computed: `forward`, `loss`, `backward` or `step`. estimated: whether the radius is an
    estimate (`irlang.interp.first_order`), and no proof.
    """

    name: str
    target: str
    verdict: str
    max_error: float | None = None
    radius: float | None = None
    index: tuple[int, ...] | None = None
    expected: float | None = None
    got: float | None = None
    message: str = ""
    stage: str = "forward"
    estimated: bool = False

    def as_json(self) -> dict[str, Any]:
        """The keys of `irlang diff --format json`; what is not finite becomes text."""
        return {
            "name": self.name, "target": self.target, "verdict": self.verdict,
            "stage": self.stage,
            "max_error": _plain(self.max_error), "radius": _plain(self.radius),
            "index": None if self.index is None else list(self.index),
            "expected": _plain(self.expected), "got": _plain(self.got), "message": self.message,
        }  # fmt: skip


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def gravest(verdicts: list[str]) -> str:
    """The gravest of several verdicts; `unstable` for none."""
    return max(verdicts, key=SEVERITY.index, default="unstable")


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The first of the gravest of some verdicts, of which there is one at least."""
    grave = gravest([v.verdict for v in verdicts])
    return next(v for v in verdicts if v.verdict == grave)


def finding_of(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The gravest of some verdicts where that is a finding."""
    found = worst(verdicts) if verdicts else None
    return found if found is not None and found.verdict in FINDINGS else None


def worst_first(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Findings, as JSON has them, in the order in which somebody wants to read them: last those
    that were not repeated.
    """
    return sorted(
        findings,
        key=lambda found: (not found.get("repeated", True), _READ.index(found["verdict"])),
    )


def worded(found: Mapping[str, Any]) -> str:
    """The verdict of a finding, as JSON has it, in words."""
    once = "" if found.get("repeated", True) else f" ({NOT_REPEATED})"
    return f"{found['verdict']}{once}"


def reason_of(message: str) -> str:
    """The words of a reason without what stands in brackets or quotes: names, numbers, sizes."""
    plain = re.sub(r"\([^()]*\)|`[^`]*`|'[^']*'|\"[^\"]*\"|\{[^{}]*\}", " ", bare(message))
    return " ".join(re.findall(r"[A-Za-z]{3,}", plain)[:_REASON])


def of_values(verdicts: Sequence[Verdict]) -> bool:
    """Whether nothing but values of a program's results speaks against a target; no gradient."""
    amiss = [v for v in verdicts if v.verdict in FINDINGS]
    kinds = ("inaccurate", *_OF_VALUES)
    return all(v.verdict in kinds and v.stage in ("forward", "loss") for v in amiss)


def only_estimated(verdicts: Sequence[Verdict]) -> bool:
    """Whether all that speaks against a target is a radius that is an estimate."""
    amiss = [v for v in verdicts if v.verdict in FINDINGS]
    return bool(amiss) and all(v.estimated for v in amiss)


def at_edge(verdict: str) -> str:
    """The class of a verdict in a program that was fed with values at the edges of their types."""
    return "edge" if verdict in _OF_VALUES else verdict


def softened(
    found: list[Verdict],
    infos: Mapping[str, TensorInfo],
    got: Mapping[str, Any],
    coarse: Callable[[], Mapping[str, Ball]],
    edge: bool = False,
) -> list[Verdict]:
    """Verdicts of which `wrong` and `nonfinite` are `inaccurate` where half the digits explain it.

    infos, got, coarse: by the names of results; the last gives balls of half the digits, and is
    called only where they are asked for. edge: of values at the edges of their types, of which half
    the digits know nothing as soon as something may overflow: what is no number there stays so.
    """
    kinds = ("wrong",) if edge else _OF_VALUES
    doubtful = [v for v in found if v.verdict in kinds and v.index is not None]
    doubtful = [v for v in doubtful if v.name in infos and infos[v.name].kind == "real"]
    if not doubtful:
        return found
    balls = coarse()
    milder = {
        v.name: replace(v, verdict="inaccurate", message="within half of the digits")
        for v in doubtful
        if judge(v.name, v.target, infos[v.name], balls[v.name], got[v.name]).verdict
        not in FINDINGS
    }
    return [milder.get(v.name, v) for v in found]


def only_shapes(target: str) -> bool:
    """Whether a target says shapes only, so that its values have no verdict."""
    return target.endswith((":shapes", ":meta"))


def is_run_first(target: str) -> bool:
    """Whether a target that says shapes says them of what has run, and been refused, before."""
    return target.endswith(":shapes")


def is_of_type(info: TensorInfo, array: np.ndarray[Any, Any], target: str) -> bool:
    """Whether a target's array has the type that is declared, or what stands for it there."""
    narrowed = info.dtype == "i64" and array.dtype == np.int32 and is_short(target)
    return bool(array.dtype == DTYPES[info.dtype].numpy) or narrowed


def judge(name: str, target: str, info: TensorInfo, ball: Ball, got: Any) -> Verdict:
    """Judges an output."""
    array = np.asarray(got)
    if array.shape != info.shape:
        message = f"shape {list(array.shape)}, not {list(info.shape)}"
        return Verdict(name, target, "wrong", message=message)
    if not is_of_type(info, array, target):
        message = f"type {array.dtype}, not {DTYPES[info.dtype].numpy}"
        return Verdict(name, target, "wrong", message=message)
    if not array.size or only_shapes(target):
        return Verdict(name, target, "agrees", 0.0, 0.0)
    if info.kind == "int":
        return _judge_whole(name, target, ball, array)
    value, radius = (
        np.broadcast_to(np.asarray(part, dtype=np.float64), info.shape) for part in shown(ball)
    )
    with np.errstate(invalid="ignore", over="ignore"):
        actual = array.astype(np.float64)  # a NaN may be a signalling one
        same = (value == actual) | (np.isnan(value) & np.isnan(actual))
        error = np.where(same, 0.0, np.abs(actual - value))
    known = ~(np.isinf(radius) | np.isnan(radius))
    if not known.any():
        return Verdict(name, target, "unstable")
    strange = known & ~same & ~(np.isfinite(actual) & np.isfinite(value))
    if strange.any():
        return _at(
            name, target, "nonfinite", strange.astype(np.float64), value, radius, actual, error
        )
    with np.errstate(invalid="ignore"):  # an infinite radius: no verdict
        outside = np.where(known, error - radius, -np.inf)
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    scale = float(np.max(size))
    half = math.sqrt(DTYPES[info.dtype].unit) * scale
    if (outside > 0).any():
        near = math.sqrt(DTYPES[info.dtype].unit) * np.maximum(size, min(scale, _MODERATE))
        far = (outside > 0) & (error > near)  # of those outside: a tie may be as far off, rightly
        grave = "wrong" if far.any() else "inaccurate"
        measured = np.where(far, outside, -np.inf) if far.any() else outside
        return _at(name, target, grave, measured, value, radius, actual, error)
    wide = float(np.max(np.where(known, radius, 0.0))) > half and float(np.max(error[known])) > 0
    return _at(
        name,
        target,
        "rounding" if wide else "agrees",
        np.where(known, error, -1.0),
        value,
        radius,
        actual,
        error,
    )


def _judge_whole(name: str, target: str, ball: Ball, array: Array) -> Verdict:
    """Integers are compared as integers: no float stands between."""
    value = np.broadcast_to(np.asarray(ball.value), array.shape)
    radius = np.broadcast_to(np.asarray(ball.bound, dtype=np.float64), array.shape)
    actual = array if array.dtype == np.uint64 else array.astype(np.int64)
    known = np.isfinite(radius)
    if not known.any():
        return Verdict(name, target, "unstable")
    # the difference wraps where it does not fit; then it is far from small in any case
    error = np.where(
        value == actual,
        0.0,
        np.maximum(np.abs(actual.astype(np.float64) - value.astype(np.float64)), 1.0),
    )
    outside = np.where(known, error - radius, -np.inf)
    verdict = "wrong" if (outside > 0).any() else "agrees"
    measured = outside if verdict == "wrong" else np.where(known, error, -1.0)
    return _at(name, target, verdict, measured, value, radius, actual, error)


def _at(
    name: str,
    target: str,
    verdict: str,
    measure: Array,
    value: Array,
    radius: Array,
    actual: Array,
    error: Array,
) -> Verdict:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(measure)), measure.shape))
    return Verdict(
        name,
        target,
        verdict,
        float(error[index]),
        float(radius[index]),
        index,
        _number(value[index]),
        _number(actual[index]),
    )


def _number(element: Any) -> float:
    """An element as it is: a whole number beyond 2**53 is no float."""
    return int(element) if isinstance(element, np.integer) else float(element)
