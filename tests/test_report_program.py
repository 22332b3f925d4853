"""The program that the reports of a finding show."""

from __future__ import annotations

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.found import Found
from irlang.diff.report_program import program_of
from irlang.diff.verdict import Verdict
from irlang.interp.shape import check
from irlang.parser import parse


def _found(text: str, fault: str) -> Found:
    graph = check(parse(f"nnir 1\nmodel m{text}", "m"), builtin()).graphs[0]
    case = Case(graph, {}, {}, builtin())
    verdict = Verdict("y", "tf:keras", "accepted")
    return Found(0, "tf:keras", verdict, "dense", {}, "", case, case, fault=fault)


def test_what_no_layer_is_made_for_is_shown_as_it_was_handed_to_one() -> None:
    """`Dense(0)` was run, and not the zeros that the definition is lowered to elsewhere."""
    text = "(x: f32[1, 5], w: f32[5, 0]) -> y: f32[1, 0] { y = dense(x, w) }"
    invalid = program_of(_found(text, "units are positive"), "tf:keras")
    assert invalid is not None
    assert "Dense(units=0" in str(invalid.code)
    valid = program_of(_found(text, ""), "tf:keras")
    assert valid is not None
    assert "Dense(" not in str(valid.code)
