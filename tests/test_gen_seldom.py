"""What kernels get wrong where something is large, or several things are said, is drawn."""

from __future__ import annotations

import functools

import numpy as np

import irlang
from irlang.catalog import builtin
from irlang.diff.apart import cases_apart
from irlang.diff.calls import Case
from irlang.gen.layout import scenes
from irlang.graph import Graph
from irlang.lower.lower import lower

_COUNT = 60  # programs of three calls


@functools.cache
def _apart(name: str, target: str = "") -> list[Case]:
    """Calls of an operator beside the first batch; target: whose own are preferred."""
    catalog = builtin()

    def own(graph: Graph) -> bool:
        return not target or not lower(graph, target, catalog, {}, whole=False).unsupported

    found = cases_apart(catalog, 1, 0, (name, "relu"), False, _COUNT, native=(name,), own=own)
    return [case for *_, case in found]


def _called(name: str, target: str = "") -> list[tuple[Case, irlang.graph.Node]]:
    return [(c, n) for c in _apart(name, target) for n in c.graph.nodes if n.op.name == name]


def test_some_axes_are_longer_than_blocks() -> None:
    sizes = [case.graph.values[str(node.inputs["x"])].shape for case, node in _called("cumsum")]
    long = [max(shape, default=0) > 64 for shape in sizes]
    assert 0.02 < np.mean(long) < 0.3


def test_some_sizes_that_are_multiples_are_larger_than_blocks() -> None:
    channels = [case.graph.values[node.outputs[0]].shape[1] for case, node in _called("conv")]
    assert 0.01 < np.mean([n > 32 for n in channels]) < 0.3


def test_a_list_that_no_tensor_measures_is_longer_than_a_tensor_has_axes() -> None:
    drawn = [node.attrs.get("boundaries", ()) for _, node in _called("bucketize")]
    assert max(np.size(one) for one in drawn) > 6


def test_calls_that_a_target_has_an_operator_for_say_more_than_they_must() -> None:
    """Keras's Adam must be told where its epsilon goes; of the rest half was never said."""
    said = [set(node.attrs) - {"eps_to"} for _, node in _called("adam", "keras:tensorflow")]
    assert sum(map(bool, said)) > 0.75 * len(said)


def test_a_number_that_is_declared_without_axes_is_written_at_times() -> None:
    given = [(case, node.inputs.get("lr", "")) for case, node in _called("sgd")]
    written = [
        name in case.graph.params and case.graph.params[name].literal for case, name in given
    ]
    assert any(written)
    assert not all(written)


def test_one_edge_of_a_line_is_often_at_its_end() -> None:
    random = np.random.default_rng(0)
    made = scenes(np.zeros((400, 32)), np.array([[1.0]]), random, frozenset({1}))
    lone = made[made.sum(1) == 1]
    ends = lone[:, [0, -1]].sum(0) / len(lone)
    assert (ends > 0.15).all()  # of 32 places one would have 0.03


def test_results_keep_their_names_beside_numbers() -> None:
    text = """nnir 1
model m(x: u8[3] in [0, 9], low: f32[] in [-1, 0]) -> h_high: f32[] {
  h, h_low, h_high = ranged_relu(x, low, 0.5)
}
"""
    graph = irlang.loads(text).graph
    assert graph.nodes[0].outputs == ("h", "h_low", "h_high")
