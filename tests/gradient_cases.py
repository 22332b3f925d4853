"""Programs with a loss, of which gradients are compared."""

from __future__ import annotations

from typing import Any

from irlang.catalog import builtin
from irlang.diff.runner import Case
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse


def drawn_case(text: str, **given: Any) -> Case:
    """A program with drawn values, but for those that are given."""
    checked = check(parse(f"nnir 1\n{text}", "planted.nnir"), builtin())
    assert not checked.diagnostics, checked.diagnostics
    graph = checked.graphs[0]
    drawn = {**inputs(graph, 3), **given}
    return Case(graph, drawn, initial_values(graph, 3), checked.catalog)


NETWORK = """
model m(x: f32[2, 2, 6, 6] in [-1, 1], label: i64[2] in [0, 3]) -> logits: f32[2, 4] {
  param w: f32[3, 2, 3, 3] in [-1, 1]
  param b: f32[3] in [-1, 1]
  param v: f32[27, 4] in [-1, 1]
  h = conv(x, w, b; pad = same)
  a = tanh(h)
  p = max_pool(a; window = 2, stride = 2)
  f = flatten(p)
  logits = dense(f, v)
  loss = cross_entropy(logits, label)
}"""
