"""Where edge values stand in a tensor: in all pairs, and in lines of their own."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import equations as eq
from irlang.catalog import builtin
from irlang.diff.apart import case_apart
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.choice import Chooser
from irlang.gen.draw import Limits, wide_shape
from irlang.gen.layout import crossed, is_pointwise, scenes, swept
from irlang.instance import instantiate

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


def _expansion(name: str, *shapes: tuple[int, ...], **attrs: object) -> eq.Expansion:
    op = builtin().op(name)
    assert op is not None
    names = [item.name for item in op.inputs]
    infos = [TensorInfo(shape, "f32") for shape in shapes]
    return expand(instantiate(op, dict(zip(names, infos, strict=False)), attrs), builtin())


@pytest.mark.parametrize("name", ["add", "power", "maximum", "where", "atan2"])
def test_an_operator_that_goes_element_by_element_is_known_by_its_equations(name: str) -> None:
    shapes = [(3, 4)] * (3 if name == "where" else 2)
    assert is_pointwise(_expansion(name, *shapes))


@pytest.mark.parametrize("name", ["softmax", "reduce_max", "cumsum", "reverse", "argmax"])
def test_what_reads_other_elements_does_not(name: str) -> None:
    assert not is_pointwise(_expansion(name, (3, 4)))


def test_axes_that_a_reduction_goes_along_are_read_off_the_equations() -> None:
    assert swept(_expansion("reduce_max", (3, 4, 5), axes=(1,))) == {"x": {1}}
    assert swept(_expansion("softmax", (3, 4), axis=-1)) == {"x": {1}}
    assert swept(_expansion("tanh", (3, 4))) == {"x": frozenset()}
    conv = swept(_expansion("conv", (2, 3, 8, 8), (4, 3, 3, 3)))
    assert conv["x"] == conv["w"] == {1, 2, 3}


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_operands_in_turn_meet_in_all_pairs(one: int, other: int, begin: int) -> None:
    size = one * other
    first = crossed((size,), np.arange(one), 1, begin)
    second = crossed((size,), np.arange(other), one, begin)
    assert set(zip(first, second, strict=True)) == set(product(range(one), range(other)))


@settings(deadline=None)
@given(SHAPES, st.integers(0, 2**32), st.sets(st.integers(0, 3)))
def test_a_line_has_numbers_of_one_palette(
    shape: tuple[int, ...], seed: int, axes: set[int]
) -> None:
    rows = np.arange(1.0, 31.0).reshape(5, 6)
    inside = frozenset(axis for axis in axes if axis < len(shape))
    made = scenes(np.zeros(shape), rows, np.random.default_rng(seed), inside)
    assert made.shape == shape
    assert set(np.unique(made)) <= {0.0, *rows.ravel()}
    if not inside:
        return
    # Either its lines are those that are asked for, or any others: along one axis in any case.
    single = [
        all(
            len({int((n - 1) // 6) for n in line if n}) <= 1
            for line in np.moveaxis(made, axis, -1).reshape(-1, shape[axis])
        )
        for axis in range(len(shape))
    ]
    assert any(single)


def test_lines_differ_and_most_have_an_edge() -> None:
    rows = np.array([[math.nan, math.nan], [math.inf, -math.inf]])
    known = {"nan": 0, "inf": 0, "none": 0}
    for seed in range(50):
        made = scenes(np.zeros((20, 5)), rows, np.random.default_rng(seed), frozenset({1}))
        strange = [bool(np.isnan(row).any()) for row in made]
        known["nan"] += any(strange) and not all(strange)
        known["inf"] += bool(np.isinf(made).any())
        known["none"] += any(not row.any() for row in made)
    assert min(known.values()) >= 35


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(32, 256))
def test_a_wide_shape_has_about_as_many_elements_as_are_wanted(
    seed: int, least: int, many: int
) -> None:
    limits = Limits(elements=256, many=many)
    sizes = wide_shape(Chooser(seed), least, limits)
    assert max(least, 2) <= len(sizes) <= max(least, 2) + 1
    assert many / 3 < math.prod(sizes) <= many
    assert max(sizes) <= limits.length


@pytest.mark.parametrize("name", ["power", "maximum", "divide", "atan2"])
def test_every_pair_of_edges_is_met_within_a_few_turns(name: str) -> None:
    """Of 49 pairs a third was met in as many turns when edges were thrown at random."""
    core = ["nan", "inf", "-inf", "0.0", "-0.0", "1.0", "-1.0"]
    met: set[tuple[str, str]] = set()
    for turn in range(14):
        case = case_apart(builtin(), 4096 + 7919 * turn, [name], False, turn)
        if case is None:
            continue
        (node,) = case.graph.nodes
        one, other = (case.values[n].astype(np.float64) for n in node.operands())
        met |= {(repr(float(a)), repr(float(b))) for a, b in np.broadcast(one, other)}
    assert sum(pair in met for pair in product(core, core)) >= 45


@given(SHAPES, st.integers(0, 2**32), st.data())
def test_lines_of_one_number_are_in_every_level_tensor(
    shape: tuple[int, ...], seed: int, data: st.DataObject
) -> None:
    axes = data.draw(st.frozensets(st.integers(0, len(shape) - 1), min_size=1))
    array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape) + 10
    rows = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    drawn = scenes(array, rows, np.random.default_rng(seed), axes, level=True)
    along = tuple(sorted(axes))
    least, most = drawn.min(axis=along), drawn.max(axis=along)
    assert np.any((least == most) & np.isin(least, rows))


def test_lines_that_are_reduced_are_often_equal_where_there_are_slopes() -> None:
    """A softmax, a norm or a deviation of equal numbers is where gradients are NaN."""
    told = level = 0
    for seed in range(60):
        case = case_apart(builtin(), seed, ["reduce_l2"], True)
        if case is None:
            continue
        node = case.graph.nodes[0]
        axes = tuple(swept(node.expansion(case.catalog))["x"])
        values = case.values[node.inputs["x"]]  # type: ignore[index]
        if math.prod(values.shape[axis] for axis in axes) > 1:
            told += 1
            level += bool(np.any(values.max(axis=axes) == values.min(axis=axes)))
    assert level > 0.42 * told > 10  # a third of them before
