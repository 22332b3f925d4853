"""A graph as text: what is read back is the same graph, for models that people wrote too."""

from pathlib import Path

import numpy as np
import pytest

from irlang import ast
from irlang.catalog import Catalog, builtin
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Graph, Initial, Node
from irlang.graph_text import to_ast, to_expr
from irlang.interp.shape import check
from irlang.parser import parse, parse_expr
from irlang.parser.printer import print_expr, print_file

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.nnir"))

MODEL = """nnir 1

block step(x: f32[N, M]; rate: real = 0.5) -> y: f32[N, M] {
  param w: f32[M, M] = uniform(-0.1, 0.1; seed = 3)
  h = dense(x, w)
  y = add(multiply(h, rate), 1)
}

model blocks(a: f32[B, 4] in [-1, 2.5], k: i64[B] in [0, 3]) -> y: f32[B, 8], z: f32[B, 4] {
  param c: f32[2] = [0.5, -1e-7]
  param d: f32[] = -inf
  let rate = 1 / 4
  x = a
  for i < 2 {
    x = step(x; rate = rate)
  }
  z = maximum(x, d)
  y = concat(x, z; axis = 1)
}
"""


def shape_of(graph: Graph) -> list[object]:
    """The graph up to names, and the order of its parameters."""
    own = [p for p in graph.params.values() if not p.literal]
    params = sorted(str((p.info, p.within, p.initial)) for p in own)
    nodes = []
    for node in graph.nodes:
        feeds: list[object] = []
        for operand in node.operands():
            param = graph.params.get(operand)
            literal = param is not None and param.literal
            feeds.append(param.initial if param is not None and literal else graph.values[operand])
            if not literal:
                feeds.append(operand in graph.inputs or operand in graph.params)
        nodes.append((node.op.name, list(node.inputs), feeds, node.attrs))
    inputs = [(port.info, port.within) for port in graph.inputs.values()]
    return [inputs, params, nodes, [graph.values[v] for v in graph.outputs.values()]]


def again(graph: Graph, file: ast.File, catalog: Catalog) -> Graph:
    """The graph of the text of a graph."""
    text = print_file(ast.File((*file.ops, to_ast(graph)), 1))
    checked = check(parse(text), catalog)
    assert checked.valid, (text, checked.diagnostics)
    (found,) = checked.graphs
    return found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_come_back(path: Path) -> None:
    file = parse(path.read_text("utf-8"), str(path))
    for graph in check(file, builtin()).graphs:
        found = again(graph, file, builtin())
        assert shape_of(found) == shape_of(graph)


def test_blocks_literals_and_initial_values_come_back() -> None:
    file = parse(MODEL.replace("  x = a\n", "  x = relu(a)\n"))
    checked = check(file, builtin())
    assert checked.valid, checked.diagnostics
    (graph,) = checked.graphs
    found = again(graph, file, builtin())
    assert shape_of(found) == shape_of(graph)
    assert to_ast(found) == to_ast(again(found, file, builtin()))


@pytest.mark.parametrize(
    "value", [0, -3, 2.5, -1e-7, True, False, "same", (1, -2), ((1.0, 2.0), (3.0, 4.0)), 1e300]
)
def test_values_are_written_as_they_are_read(value: object) -> None:
    node = to_expr(value)
    assert parse_expr(print_expr(node)) == node


def test_values_that_are_no_numbers_have_names() -> None:
    infinite = float("inf")
    shown = [print_expr(to_expr(v)) for v in (infinite, -infinite, float("nan"))]
    assert shown == ["inf", "-inf", "nan"]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_types_of_generated_programs_come_back(dtype: str) -> None:
    """A number beside tensors of other types alone has a type that the text has to say."""
    limits = Limits(reals=(dtype,))
    for seed in range(60):
        graph = generate(builtin(), seed, limits=limits, size=(4, 16), pieces=100).graph
        found = again(graph, ast.File((), 1), builtin())
        assert [_types(found, node) for node in found.nodes] == [
            _types(graph, node) for node in graph.nodes
        ]


def _types(graph: Graph, node: Node) -> list[str]:
    return [str(graph.values[name]) for name in (*node.operands(), *node.outputs)]


@pytest.mark.parametrize("array", [np.zeros((2, 0)), np.ones((2, 3))])
def test_an_array_is_left_to_what_stands_beside_the_text(array: np.ndarray) -> None:
    """Of one without elements as of a large one: a report spells the calls of such a graph."""
    shape = ", ".join(map(str, array.shape))
    file = parse(
        f"nnir 1\nmodel m() -> y: f32[{shape}] {{\n  param w: f32[{shape}]\n  y = relu(w)\n}}"
    )
    (graph,) = check(file, builtin()).graphs
    before = to_ast(graph)
    graph.params["w"].initial = Initial("array", (array,))
    assert to_ast(graph) == before
