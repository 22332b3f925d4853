"""Values that are drawn anew: more is known of them than before, and they are what is declared."""

from __future__ import annotations

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.programs import informed, with_balls
from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.gen.anew import ENOUGH, _whole, known
from irlang.gen.build import generate
from irlang.graph import Param, Port
from irlang.interp.values import accept, initial_values, inputs

# Of which evenly drawn values leave most open: negative numbers, matrices without a root, ends of
# which the lower is the greater, scales below 0.
OPEN = ("logit", "poisson", "cholesky", "fake_quantize_range", "qlinear_matmul", "qlinear_conv")


def calls(name: str, count: int) -> list[Case]:
    found = []
    for seed in range(count):
        graph = generate(builtin(), seed, ops=[name], size=(1, 1)).graph
        if graph.nodes:
            found.append(Case(graph, inputs(graph, seed), initial_values(graph, seed), builtin()))
    return found


def share(case: Case) -> float:
    return 0.0 if case.balls is None else known(case.graph, case.balls)


@pytest.mark.parametrize("name", OPEN)
def test_of_values_drawn_anew_more_is_known(name: str) -> None:
    cases = calls(name, 20)
    before = np.array([share(with_balls(case)) for case in cases])
    after = np.array([share(informed(case, seed)) for seed, case in enumerate(cases)])
    assert np.all(before <= after)
    few = before < ENOUGH
    assert few.sum() >= 3
    assert np.mean(after[few]) >= ENOUGH


@pytest.mark.parametrize("seed", range(30))
def test_values_drawn_anew_are_what_is_declared(seed: int) -> None:
    graph = generate(builtin(), seed, size=(1, 6)).graph
    case = Case(graph, inputs(graph, seed), initial_values(graph, seed), builtin())
    again = informed(case, seed)
    places: dict[str, Port | Param] = {**graph.inputs, **graph.params}
    assert again.values.keys() == case.values.keys()
    for name, array in again.values.items():
        place = places[name]
        if isinstance(place, Param) and place.initial is not None:
            assert array is case.values[name]
        else:
            assert np.array_equal(accept(name, place, array), array)
    same = informed(case, seed)
    assert all(np.array_equal(same.values[n], a) for n, a in again.values.items())


def test_what_is_known_stays_as_it_is() -> None:
    (case,) = calls("tanh", 1)
    assert all(informed(case, 0).values[n] is a for n, a in case.values.items())


def test_what_is_spared_stays_as_it_is() -> None:
    case = next(c for c in calls("logit", 12) if share(with_balls(c)) < ENOUGH)
    again = informed(case, 0, spared=case.values.keys())
    assert all(again.values[n] is a for n, a in case.values.items())


@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "u8", "u64", "i64"])
@pytest.mark.parametrize("within", [(-4.0, 4.0), (-np.inf, np.inf), (0.0, np.inf)])
def test_whole_numbers_are_those_of_their_type(dtype: str, within: tuple[float, float]) -> None:
    """A range that nobody said holds more than the narrowest have, and none below 0 for others."""
    least, greatest = integer_range(dtype)
    info, random = TensorInfo((7,), dtype), np.random.default_rng(0)
    for way in (*range(5), None):
        drawn = _whole(info, within, random, 3, way)
        assert drawn.dtype == DTYPES[dtype].numpy
        told = [int(number) for number in drawn]
        assert all(max(least, within[0]) <= n <= min(greatest, within[1]) for n in told), way
