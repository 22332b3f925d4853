"""ONNX's own cases agree; and every operator of ONNX has a row, a function, or a reason.

`IRLANG_REWRITE=1 pytest -n 0 tests/test_import_onnx_nodes.py` writes which cases are not supported,
and the list of operators in the documentation; read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from irlang.diagnostics import InvalidInput
from irlang.importers.onnx_left_out import LEFT_OUT
from irlang.importers.onnx_model import translate
from irlang.importers.onnx_table import ROWS
from tests.conformance import onnx_nodes
from tests.onnx_models import model, node, value

PARTS = 16
AT_LEAST = 1730  # of 1884 cases agree
NOT_SUPPORTED = Path(__file__).parent / "conformance" / "onnx_unsupported.txt"
DOCUMENT = Path(__file__).parents[1] / "docs" / "import.md"
REWRITE = os.environ.get("IRLANG_REWRITE")


def listed() -> set[str]:
    """The cases that are known not to be supported."""
    return set(NOT_SUPPORTED.read_text("utf-8").split())


@pytest.mark.skipif(bool(REWRITE), reason="the list is being written")
@pytest.mark.parametrize("part", range(PARTS))
def test_cases_agree(part: int) -> None:
    names = sorted(onnx_nodes.cases())[part::PARTS]
    outcomes = list(onnx_nodes.outcomes(names))
    off = [o for o in outcomes if o.verdict == "disagree" and not onnx_nodes.cited(o.case)]
    assert not off
    lost = {o.case: o.reason for o in outcomes if o.verdict == "unsupported"}
    assert not lost.keys() - listed(), lost
    stale = [o.case for o in outcomes if o.verdict == "agree" and onnx_nodes.cited(o.case)]
    assert not stale, "cited, and agrees"


@pytest.mark.skipif(not REWRITE, reason="the list is only written when asked for")
def test_the_list_is_written() -> None:
    outcomes = onnx_nodes.outcomes(sorted(onnx_nodes.cases()), 2)
    names = [o.case for o in outcomes if o.verdict == "unsupported"]
    NOT_SUPPORTED.write_text("\n".join(names) + "\n", "utf-8")


def test_most_cases_are_supported() -> None:
    cases = set(onnx_nodes.cases())
    assert listed() <= cases
    disputed = {name for name in cases if onnx_nodes.cited(name)}
    assert len(disputed) <= 12
    assert len(cases - listed() - disputed) >= AT_LEAST


# ---- operators

NEWEST = max(26, onnx.defs.onnx_opset_version())


def operators(version: int) -> dict[str, bool]:
    """The operators of a version of ONNX that are not deprecated; whether ONNX has a function."""
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    found: dict[str, bool] = {}
    for name in names:
        try:
            schema = onnx.defs.get_schema(name, version, "")
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated:
            found[name] = schema.has_function or schema.has_context_dependent_function
    return found


@pytest.mark.parametrize("version", [26, NEWEST])
def test_every_operator_is_mapped_or_left_out(version: int) -> None:
    open_ = {
        name
        for name, function in operators(version).items()
        if name not in ROWS and name not in LEFT_OUT and not function
    }
    assert not open_
    assert not ROWS.keys() & LEFT_OUT.keys()
    assert LEFT_OUT.keys() <= operators(NEWEST).keys()


def test_reasons_are_told() -> None:
    made = model([node("Unique", "x", "y", sorted=1)], [value("x", 3)], ["y"])
    with pytest.raises(InvalidInput, match="depends on the values"):
        translate(made, None, "w")


def test_the_document_lists_what_is_left_out() -> None:
    by_reason: dict[str, list[str]] = {}
    for name, reason in LEFT_OUT.items():
        by_reason.setdefault(reason, []).append(name)
    rows = [f"| {', '.join(names)} | {reason} |" for reason, names in by_reason.items()]
    table = "\n".join(["| operator | why it is left out |", "| --- | --- |", *rows])
    text = DOCUMENT.read_text("utf-8")
    start, end = "<!-- left out -->\n", "\n<!-- end -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    written = f"{before}{start}{table}{end}{after}"
    if REWRITE:
        DOCUMENT.write_text(written, "utf-8")
    assert DOCUMENT.read_text("utf-8") == written
