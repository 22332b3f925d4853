"""PyTorch's own samples of a fixed choice of operators, and the list of those that are left out."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from irlang.importers.torch_left_out import LEFT_OUT, table  # noqa: E402
from irlang.importers.torch_rules import RULES  # noqa: E402
from tests.conformance import torch_samples  # noqa: E402

DOCUMENT = Path(__file__).parent.parent / "docs" / "import.md"
REWRITE = os.environ.get("IRLANG_REWRITE") == "1"

# Special functions and linear equations; other families have tests of their own.
CHOSEN = (
    *("erfinv", "lgamma", "special.log_ndtr", "special.i1e", "igamma", "special.zeta"),
    *("cholesky", "linalg.det", "linalg.inv", "linalg.solve_triangular"),
)
FLOOR = 24


def test_a_choice_of_samples_agrees() -> None:
    found = [
        item for op in torch_samples.operators(CHOSEN) for item in torch_samples.outcomes_of(op, 1)
    ]
    assert {item.operator for item in found} >= set(CHOSEN)
    wrong = [item for item in found if item.verdict in ("disagree", "known")]
    assert not wrong
    assert Counter(item.verdict for item in found)["agree"] >= FLOOR


def test_what_is_left_out_has_no_rule_and_is_an_operator() -> None:
    assert not LEFT_OUT.keys() & RULES.keys()
    assert not [name for name in LEFT_OUT if not hasattr(torch.ops.aten, name)]


@pytest.mark.parametrize("name", ["special.airy_ai", "nextafter"])
def test_the_reason_is_told(name: str) -> None:
    (op,) = torch_samples.operators([name])
    for found in torch_samples.outcomes_of(op, 1):
        (target,) = {part for part in found.target.split() if part.split(".")[1] in LEFT_OUT}
        assert found.verdict == "unsupported"
        assert LEFT_OUT[target.split(".")[1]] in found.reason


def test_the_document_lists_what_is_left_out() -> None:
    text = DOCUMENT.read_text("utf-8")
    start, end = "<!-- left out of torch -->\n", "<!-- end -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    written = f"{before}{start}{table()}\n{end}{after}"
    if REWRITE:
        DOCUMENT.write_text(written, "utf-8")
    assert DOCUMENT.read_text("utf-8") == written
