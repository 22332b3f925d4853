"""Diagnostics as SARIF 2.1.0, the OASIS format that code-review tools read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import irlang
from irlang.diagnostics import Diagnostic, Span
from irlang.render import ordered

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# What a viewer shows of a rule; others speak for themselves by their code.
_TOLD = {
    "analyze.reachable": "An operation gives NaN or infinity for inputs inside their ranges: "
    "an input is shown, and a framework gave the same.",
    "analyze.possible": "An operation may give NaN or infinity for inputs inside their ranges: "
    "no input that does it was found, nor a proof that there is none.",
}


def sarif(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """One run with one result a diagnostic; suggested edits become its `fixes`."""
    found = ordered(diagnostics)
    codes = list(dict.fromkeys(diagnostic.code for diagnostic in found))
    driver = {
        "name": "irlang",
        "version": irlang.__version__,
        "rules": [_rule(code, found) for code in codes],
    }
    results = [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in found]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                # Columns are counted in characters, as Python does.
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _rule(code: str, diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    level = next(_level(one) for one in diagnostics if one.code == code)
    rule: dict[str, Any] = {"id": code, "defaultConfiguration": {"level": level}}
    if code in _TOLD:
        rule["shortDescription"] = {"text": _TOLD[code]}
    return rule


def _level(diagnostic: Diagnostic) -> str:
    return diagnostic.severity if diagnostic.severity in ("error", "warning") else "note"


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    apart = [note.message for note in diagnostic.notes if not note.span.file]
    lines = [diagnostic.message, diagnostic.label, *apart, diagnostic.help]
    location: dict[str, Any] = {}
    if diagnostic.span.file:
        location["physicalLocation"] = _location(diagnostic.span)
    if diagnostic.node:
        location["logicalLocations"] = [{"name": diagnostic.node}]
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": _level(diagnostic),
        "message": {"text": "\n".join(line for line in lines if line)},
        "locations": [location],
        "properties": {"badness": diagnostic.badness, "node": diagnostic.node},
    }
    if not location:
        del result["locations"]
    related = [
        {"id": number, "physicalLocation": _location(note.span), "message": {"text": note.message}}
        for number, note in enumerate(diagnostic.notes)
        if note.span.file
    ]
    if related:
        result["relatedLocations"] = related
    if diagnostic.edits:
        result["fixes"] = [_fix(diagnostic)]
    return result


def _fix(diagnostic: Diagnostic) -> dict[str, Any]:
    files: dict[str, list[dict[str, Any]]] = {}
    for edit in diagnostic.edits:
        change = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        files.setdefault(edit.span.file, []).append(change)
    return {
        "description": {"text": diagnostic.help or "suggested edit"},
        "artifactChanges": [
            {"artifactLocation": {"uri": _uri(file)}, "replacements": changes}
            for file, changes in files.items()
        ],
    }


def _location(span: Span) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(span.file)}}
    if span.line:
        location["region"] = _region(span)
    return location


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
