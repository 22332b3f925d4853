"""How new shapes are written: as the program has them, with a size left open, by MXNet's codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.diff.runner import Case, Session
from irlang.graph import Graph
from irlang.interp.shape import check
from irlang.lower.lower import lower
from irlang.lower.manner import Manner
from irlang.lower.mx_reshape import coded
from irlang.parser import parse

for package in ("torch", "jax", "keras", "tensorflow", "onnxruntime"):
    pytest.importorskip(package, reason=f"{package} is not installed")

NPX = {"copy": -2, "drop": -3, "rest": -4, "join": -5, "split": -6}
ND = {"copy": 0, "rest": -2, "join": -3, "split": -4}


def _decoded(before: list[int], codes: tuple[int, ...], names: Mapping[str, int]) -> list[int]:
    """The shape that codes say, as MXNet documents them."""
    kinds = {code: kind for kind, code in names.items()}
    left, told, found = list(before), list(codes), list[int]()
    while told:
        kind = kinds.get(told.pop(0))
        if kind == "copy":
            found.append(left.pop(0))
        elif kind == "drop":
            assert left.pop(0) == 1
        elif kind == "rest":
            found, left = [*found, *left], []
        elif kind == "join":
            found.append(left.pop(0) * left.pop(0))
        elif kind == "split":
            pair = [told.pop(0), told.pop(0)]
            assert math.prod(pair) == left.pop(0)
            found += pair
        else:
            pytest.fail(f"no code in {codes}")
    assert not left
    return found


_SIZES = st.lists(st.integers(1, 4), max_size=5)


@given(_SIZES, _SIZES)
@example([2, 3, 4], [6, 4])
@example([6, 4], [2, 3, 4])
@example([1, 3], [3])
@example([2, 1, 3, 4], [2, 3, 4])
def test_codes_say_the_shape(before: list[int], after: list[int]) -> None:
    for names in (NPX, ND):
        codes = coded(tuple(before), tuple(after), names)
        if codes is not None:
            assert _decoded(before, codes, names) == after


def test_what_is_joined_split_or_dropped_has_codes() -> None:
    assert coded((2, 3, 4), (6, 4), NPX) == (-5, -2)
    assert coded((6, 4, 5), (2, 3, 4, 5), NPX) == (-6, 2, 3, -4)
    assert coded((1, 3), (3,), NPX) == (-3, -2)
    assert coded((1, 3), (3,), ND) == (-3,)  # joined with the next
    assert coded((2, 3), (3, 2), NPX) is None


def _graph(before: tuple[int, ...], shape: tuple[int, ...], after: tuple[int, ...]) -> Graph:
    text = f"nnir 1\n\nmodel m(x: f32{list(before)}) -> y: f32{list(after)} {{\n"
    checked = check(parse(f"{text}  y = reshape(x; shape = {list(shape)})\n}}\n"), builtin())
    assert not checked.diagnostics
    (graph,) = checked.graphs
    return graph


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(("torch", "jax", "keras:tensorflow", "tf", "onnxruntime")) as made:
        yield made


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_all_ways_to_write_it_are_right(session: Session, data: st.DataObject) -> None:
    after = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    total = math.prod(after)
    before = data.draw(
        st.sampled_from(
            [(total,), (1, total), after[::-1], (*after, 1), (after[0], total // after[0])]
        )
    )
    assume(after != before)
    place = data.draw(st.integers(-1, len(after) - 1))
    said = after if place < 0 else (*after[:place], -1, *after[place + 1 :])
    graph = _graph(before, said, after)
    x = np.arange(total, dtype=np.float32).reshape(before)
    turns = [Manner(turn=turn) for turn in (0, 2, 4)]
    outcomes = session.compare([Case(graph, {"x": x}, {}, builtin(), manner=one) for one in turns])
    for outcome in outcomes:
        for target, verdicts in outcome.verdicts.items():
            assert {v.verdict for v in verdicts} == {"agrees"}, (target, before, said)
    for target in ("torch", "jax", "tf"):
        texts = [str(lower(graph, target, builtin(), {}, manner=one).code) for one in turns]
        assert ("-1" in texts[0]) == (-1 in said), target
        assert "-1" in texts[1] or after == before[: len(after)], target
