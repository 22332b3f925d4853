"""Calls of every definition (`lower_calls.txt`) as models of one node, with inputs and oracle."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from irlang.catalog import Catalog, builtin
from irlang.diff import calls as diff
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse

Array = np.ndarray[Any, np.dtype[Any]]
_FIRST = re.compile(r"\w+: \w+\[[^\]]*\]")
_REAL = re.compile(r"(\w+: (?:f\d+|bf16)\[[^\]]*\])(?! in)")
_INTEGER = re.compile(r"(\w+: [iu]\d+\[[^\]]*\])(?! in)")


def calls() -> list[tuple[str, str]]:
    """Pairs of declarations and call."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    parts = (line.partition(";") for line in lines)
    return [(declared.strip(), call.strip()) for declared, _, call in parts]


def operator(call: str) -> str:
    return call.partition("(")[0]


@dataclass
class Case:
    """A model of one call. outputs: every result of the call."""

    call: str
    graph: Graph
    catalog: Catalog
    inputs: dict[str, Array]
    params: dict[str, Array]
    _oracle: dict[str, Ball] | None = None

    def oracle(self) -> dict[str, Ball]:
        """Value and radius of every output, which are the same for all targets."""
        if self._oracle is None:
            found = balls(
                self.graph, {**self.inputs, **self.params}, self.catalog, precision(self.graph)
            )
            self._oracle = {name: found[value] for name, value in self.graph.outputs.items()}
        return self._oracle

    def faults(self, outputs: dict[str, Array]) -> list[str]:
        """What is wrong with the results of a target, by result."""
        (node,) = self.graph.nodes
        if node.expansion(self.catalog).is_open:
            made = diff.Case(self.graph, self.inputs, self.params, self.catalog)
            given = {value: outputs[name] for name, value in self.graph.outputs.items()}
            judged = diff.judge_call(made, node, made.values, given, "target")
            assert len(judged) == len(given)
            return [f"{v.name}: {v.message}" for v in judged if v.verdict != "agrees"]
        pairs = {
            name: disagreement(outputs[name], ball, self.graph.values[name].dtype)
            for name, ball in self.oracle().items()
        }
        return [f"{name}: {found}" for name, found in pairs.items() if found is not None]


@cache
def every_case(dtype: str) -> tuple[Case, ...]:
    """All calls, in their order; made once for all targets."""
    return tuple(case(declared, call, dtype) for declared, call in calls())


def case(declared: str, call: str, dtype: str = "f32", definitions: str = "") -> Case:
    """The model of a call, its reals in another type."""
    declared = _REAL.sub(r"\1 in [-2, 2]", declared.replace("f32[", f"{dtype}["))
    declared = _INTEGER.sub(r"\1 in [0, 1]", declared)
    first = _FIRST.match(declared)
    assert first is not None
    # An input as the result: the results of the call have types that nobody has written down.
    text = f"nnir 1\n{definitions}\nmodel m({declared}) -> {first[0]} {{\n  y = {call}\n}}\n"
    checked = check(parse(text, "calls.nnir"), builtin())
    assert checked.valid, (call, checked.diagnostics)
    graph = replace(checked.graphs[0])
    graph.outputs = {value: value for value in graph.nodes[-1].outputs}
    drawn = {
        name: array.astype(DTYPES[graph.values[name].dtype].numpy)
        for name, array in inputs(graph, 7).items()
    }
    return Case(call, graph, checked.catalog, drawn, initial_values(graph, 7))


def disagreement(got: Array, ball: Ball, dtype: str) -> str | None:
    """Where a result is further from the oracle than any order of evaluation may take it."""
    kind = DTYPES[dtype]
    want, radius = np.asarray(ball.value), np.asarray(ball.bound, dtype=np.float64)
    if got.shape != want.shape or got.dtype != kind.numpy:
        return f"{got.dtype}{list(got.shape)}, not {dtype}{list(want.shape)}"
    radius = np.broadcast_to(radius, want.shape)
    if kind.kind != "real":
        wrong = (got != want) & (radius == 0)
    else:
        with np.errstate(all="ignore"):
            value = got.astype(np.float64)
            rounded = want.astype(kind.numpy).astype(np.float64)
            allowed = radius + np.abs(want) * kind.unit + kind.tiny
            same = (value == rounded) | np.isnan(value) & np.isnan(want)
            wrong = ~(same | (np.abs(value - want) <= allowed) | ~np.isfinite(radius))
    if not wrong.any():
        return None
    place = tuple(np.argwhere(wrong)[0])
    return f"{got[place]} at {place}, not {want[place]} within {radius[place]}"
