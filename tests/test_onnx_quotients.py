"""Quotients of whole numbers in a model file: rounded downwards, up to the ends of the type."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.runner import Case, Session
from irlang.dtypes import DTYPES, integer_range
from irlang.interp.shape import check
from irlang.parser import parse

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


@pytest.mark.parametrize("dtype", ["i32", "i64", "u8"])
def test_no_difference_overflows_on_the_way(dtype: str) -> None:
    least, most = map(int, integer_range(dtype))
    some = sorted({least, least + 1, most - 1, most, *range(max(least, -4), 5), 2**30 % most})
    pairs = [(a, b) for a, b in product(some, some) if b != 0 and (a, b) != (least, -1)]
    text = f"""nnir 1
model m(a: {dtype}[{len(pairs)}], b: {dtype}[{len(pairs)}]) -> y: {dtype}[{len(pairs)}] {{
  y = floor_divide(a, b)
}}"""
    graph = check(parse(text), builtin()).graphs[0]
    columns = np.array(pairs, dtype=object).T.astype(DTYPES[dtype].numpy)
    given = {"a": columns[0], "b": columns[1]}
    with Session(["onnxruntime"]) as session:
        (outcome,) = session.compare([Case(graph, given, {}, builtin())])
    assert outcome.results["onnxruntime"].outputs["y"].tolist() == [a // b for a, b in pairs]
    assert [v.verdict for v in outcome.verdicts["onnxruntime"]] == ["agrees"]
