"""Idioms: the list is well-formed, equal parts are one call, and programs hold them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import irlang.gen.idiom
from irlang.catalog import builtin
from irlang.gen.build import generate
from irlang.gen.idiom import GIVEN, Step, idiom, idioms
from irlang.graph import Graph
from irlang.interp.shape import check
from irlang.parser import parse

NAMES = frozenset(op.name for op in builtin())
TEXT = Path(irlang.gen.idiom.__file__).with_name("idioms.txt").read_text("utf-8")
LINES = [line for line in TEXT.splitlines() if line and not line.startswith("#")]


def test_every_line_is_an_idiom_of_the_catalogue_and_none_is_there_twice() -> None:
    assert len(LINES) == len(set(LINES))
    assert len(idioms(NAMES)) == len(LINES)
    for line in LINES:
        for step in idiom(line):
            op = builtin().op(step.op)
            assert op is not None
            assert set(step.attrs) <= {attr.name for attr in op.attrs}, line
            assert len(step.operands) <= len(op.inputs) or op.inputs[-1].family, line


def test_equal_parts_are_one_call_unless_something_is_left_open() -> None:
    assert idiom("divide(exp(x), reduce_sum(exp(x)))") == (
        Step("exp", (GIVEN,), {}),
        Step("reduce_sum", (0,), {}),
        Step("divide", (0, 1), {}),
    )
    assert [step.op for step in idiom("add(dense(x, _), dense(x, _))")] == ["dense", "dense", "add"]


def test_numbers_choices_and_lists_are_read() -> None:
    assert idiom("power(x, -0.5)") == (Step("power", (GIVEN, -0.5), {}),)
    assert idiom("slice(x; axes = [0], end = [-1])")[0].attrs == {"axes": (0,), "end": (-1,)}
    assert idiom("gelu(x; approximate = tanh)")[0].attrs == {"approximate": "tanh"}
    assert idiom("cast(x; to = f16)")[0].attrs == {"to": "f16"}
    assert idiom("reduce_max(x; keepdims = true)")[0].attrs == {"keepdims": True}


def _holds(graph: Graph, steps: tuple[Step, ...]) -> bool:
    """Whether the last call of an idiom is there, reading what the idiom says it reads."""
    producer = {value: node for node in graph.nodes for value in node.outputs}

    def matches(name: str, number: int) -> bool:
        node = producer.get(name)
        step = steps[number]
        if node is None or node.op.name != step.op:
            return False
        operands = list(node.operands())
        return all(
            any(matches(operand, before) for operand in operands)
            for before in step.operands
            if type(before) is int and before != GIVEN
        )

    return any(matches(name, len(steps) - 1) for name in producer)


def test_programs_are_valid_and_hold_idioms_that_random_wiring_would_not_make() -> None:
    wanted = [one for one in idioms(NAMES) if len(one) >= 3]
    held: Counter[str] = Counter()
    for seed in range(150):
        program = generate(builtin(), seed, size=(6, 16))
        assert check(parse(program.text), builtin()).valid, program.text
        held.update(str(one) for one in wanted if _holds(program.graph, one))
    assert len(held) >= 8  # without idioms: none in 300 programs


@pytest.mark.parametrize("seed", range(5))
def test_idioms_are_part_of_what_is_replayed(seed: int) -> None:
    program = generate(builtin(), seed, size=(10, 10))
    again = generate(builtin(), seed + 1000, size=(10, 10), replay=program.choices)
    calls = [(n.op.name, n.inputs, n.attrs) for n in program.graph.nodes]
    assert [(n.op.name, n.inputs, n.attrs) for n in again.graph.nodes] == calls
