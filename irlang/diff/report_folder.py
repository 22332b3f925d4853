"""A finding as a folder: what a maintainer needs, and what irlang needs to go on from it.

- `finding.nnir`, the reduced program, its first line the verdict; `finding.safetensors`, its inputs
- `show_TARGET.py`, for every target that runs it: expected, got and versions, without irlang
- `issue.md`, ready to file; `program.nnir`, the program that was generated
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irlang.diagnostics import fail
from irlang.diff.calls import Case
from irlang.diff.found import Found
from irlang.diff.gradients import ask, with_loss_shown
from irlang.diff.reduce_files import INVALID, OF_GRADIENTS, save, to_text
from irlang.diff.report_issue import issue, title, wanted
from irlang.diff.report_numbers import all_expected, all_got, dtype_of
from irlang.diff.report_program import program_of
from irlang.diff.report_script import DEFINITION, script
from irlang.diff.verdict import NOT_REPEATED, only_shapes
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.lower.called import called

_MOST = 64  # elements of a result that the entry of a finding shows


def write(found: Found, folder: Path, identity: str) -> dict[str, Any]:
    """Writes a finding's files; gives its entry in `irlang fuzz --format json`.

    Raises `file.campaign` where they cannot be written.
    """
    try:
        return _written(found, folder, identity)
    except OSError as error:
        raise fail(
            "file.campaign",
            f"{folder} cannot be written: {error.strerror}",
            help=f"what is finished is there; irlang fuzz --resume {folder.parent} goes on",
        ) from None


def _written(found: Found, folder: Path, identity: str) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    verdict, case = found.verdict, found.reduced
    reduced = folder / "finding.nnir"
    once = "" if found.repeated else f", {NOT_REPEATED}"
    notes: tuple[str, ...] = (OF_GRADIENTS,) if verdict.stage == "backward" else ()
    notes += (INVALID,) if found.fault else ()
    save(case, reduced, (f"{verdict.verdict}: {found.target}, {found.operator}{once}", *notes))
    (folder / "program.nnir").write_text(
        to_text(found.whole.graph, found.whole.catalog, (f"seed {found.seed}",)), "utf-8"
    )
    scripts = {}
    for target in (found.target, *found.others):
        path = _script(found, folder, target)
        if path is not None:
            scripts[target] = path
    report = folder / "issue.md"
    main = scripts.get(found.target)
    text = main.read_text("utf-8") if main is not None else ""
    report.write_text(issue(found, text, main.name if main else ""), "utf-8")
    graph = case.graph
    got = {} if only_shapes(found.target) else found.got  # else it has zeros in their place
    return {
        "id": identity, "verdict": verdict.verdict, "target": found.target,
        "operator": found.operator, "attributes": found.attributes,
        "operators": len(graph.nodes), "elements": sum(a.size for a in case.values.values()),
        "message": verdict.message, "title": title(found), "version": found.version,
        "reduced": str(reduced), "script": str(main or ""), "report": str(report),
        "seed": found.seed, "signature": found.signature, "others": found.others,
        "repeated": found.repeated,
        "expected": _values({n: b.value for n, b in found.expected.items()}, graph, all_expected),
        "got": _values(got, graph, all_got), "outside": _outside(found) if got else {},
        "inputs": _values(case.values, graph, all_got),
    }  # fmt: skip


def _script(found: Found, folder: Path, target: str) -> Path | None:
    """Writes the script of a target; None where it does not run the program."""
    case = found.reduced
    if found.verdict.stage == "backward":
        asked = ask(with_loss_shown(case.graph), target, case).lowered
        lowered = None if asked.unsupported else asked
    else:
        lowered = program_of(found, target)
    if lowered is None:
        return None
    path = folder / f"show_{re.sub(r'[^A-Za-z0-9]+', '_', target)}.py"
    if isinstance(lowered.code, bytes):
        path.with_suffix(".onnx").write_bytes(lowered.code)
    about = title(found) if target == found.target else f"On {called(target)}: {title(found)}"
    narrow, typed = _narrow(case, found.expected), _is_of_type(found)
    expected = _expected(found, typed)
    text = script(
        lowered, case.inputs, expected, about, "finding.safetensors", narrow, typed,
        called(found.plain) if found.plain else DEFINITION,
    )  # fmt: skip
    path.write_text(text, "utf-8")
    return path


def _is_of_type(found: Found) -> bool:
    """Whether what is told of results is their type and shape: those are wrong, or all there is."""
    said = found.verdict.message
    if only_shapes(found.target):
        return True
    if found.verdict.expected is None and said.startswith(("type ", "shape ")):
        return True
    sizes = [np.size(ball.value) for ball in found.expected.values()]
    return bool(sizes) and not any(sizes)


def _expected(found: Found, typed: bool) -> dict[str, str]:
    """What a script says of the results that are right: of long ones their type and shape, and the
    element that is furthest off.
    """
    if found.fault:
        return dict.fromkeys(found.reduced.graph.outputs, f"a refusal: {found.fault}")
    values = {}
    for name, ball in found.expected.items():
        array, dtype = np.asarray(ball.value), dtype_of(found.reduced.graph, name)
        values[name] = f"{DTYPES[dtype].numpy if dtype else ''}{list(array.shape)}"
        if array.size <= _MOST and not typed:
            values[name] = all_expected(array, dtype)
        elif name == found.verdict.name and (right := wanted(found)):
            values[name] += f", {right} at {list(found.verdict.index or ())}"
    return values


def _narrow(case: Case, expected: Iterable[str]) -> list[str]:
    """The inputs and results that are bfloat16."""
    given = [name for name, array in case.values.items() if array.dtype.name == "bfloat16"]
    return given + [name for name in expected if dtype_of(case.graph, name) == "bf16"]


def _outside(found: Found) -> dict[str, list[int]]:
    """The places of the elements that are further off than any rounding, by result."""
    places = {}
    for name, ball in found.expected.items():
        got = np.asarray(found.got.get(name, np.zeros(0)))
        value = np.asarray(ball.value)
        if got.shape == value.shape and got.size <= _MOST:
            with np.errstate(invalid="ignore"):
                left, right = got.astype(np.float64), value.astype(np.float64)
                near = (left == right) | (np.isnan(left) & np.isnan(right))
                near |= ~(np.abs(left - right) > ball.bound) & np.isfinite(left)
            places[name] = [int(i) for i in np.flatnonzero(~near)]
    return places


def _values(
    arrays: Mapping[str, Any], graph: Graph, write: Callable[[Any, str], str]
) -> dict[str, str]:
    """Short arrays as text, for tables."""
    return {
        name: write(np.asarray(array), dtype_of(graph, name))
        for name, array in arrays.items()
        if np.asarray(array).size <= _MOST
    }
