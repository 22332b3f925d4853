"""Parts of a program that read nothing of one another."""

from __future__ import annotations

import numpy as np

import irlang
from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.strands import amiss, strands
from irlang.diff.verdict import Verdict
from irlang.graph import Graph

GRAPH = """nnir 1
model m(x: f32[2], z: f32[3]) -> a: f32[2], b: f32[3], c: f32[3] {
  h = square(x)
  k = exp(z)
  a = sqrt(h)
  b = log(k)
  c = negate(k)
}"""


def _graph() -> Graph:
    return irlang.loads(GRAPH).graph


def _case() -> Case:
    given = {"x": np.array([1, 2], np.float32), "z": np.array([1, 2, 3], np.float32)}
    return Case(_graph(), given, {}, builtin())


def _verdicts(**told: str) -> list[Verdict]:
    return [Verdict(name, "torch", verdict) for name, verdict in told.items()]


def test_calls_are_together_that_a_tensor_connects() -> None:
    assert [[node.name for node in part] for part in strands(_graph())] == [
        ["h", "a"],
        ["k", "b", "c"],
    ]


def test_each_part_that_is_amiss_is_a_program_of_its_own() -> None:
    (part,) = amiss(_case(), _verdicts(a="agrees", b="wrong", c="agrees"))
    assert [node.name for node in part.graph.nodes] == ["k", "b", "c"]
    assert [*part.inputs] == ["z"]
    assert {*part.graph.outputs} == {"b", "c"}
    both = amiss(_case(), _verdicts(a="nonfinite", b="wrong", c="wrong"))
    assert [one.graph.nodes[0].name for one in both] == ["h", "k"]


def test_what_is_one_part_or_hangs_is_looked_into_as_it_is() -> None:
    assert not amiss(_case(), _verdicts(a="timeout", b="timeout", c="timeout"))
    (part,) = amiss(_case(), _verdicts(a="wrong", b="agrees", c="agrees"))
    assert not amiss(part, _verdicts(a="wrong"))
