"""TensorFlow graphs: what is read computes what TensorFlow computes, within the derived radius."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import irlang
from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.importers import files, tf_file, tf_functions, tf_model
from irlang.importers.tf_functions import SEVERAL
from irlang.importers.tf_left_out import LEFT_OUT
from irlang.importers.tf_table import ROWS
from irlang.interp import program
from irlang.interp.range import analyse
from irlang.interp.values import initial_values
from tests.tf_cases import CASES, Array, Fed

V1 = tf.compat.v1
REWRITE = os.environ.get("IRLANG_REWRITE") == "1"
DOCUMENT = Path(__file__).parents[1] / "docs" / "import.md"
RANDOM = {name for name in ROWS if "Random" in name or "TruncatedNormal" in name}
CLASSES = {name for name in ROWS if "Multinomial" in name}
BOUNDED = {name for name in RANDOM if "UniformInt" in name or "Truncated" in name}


def run(graph: Any, results: Sequence[Any], feeds: Mapping[str, Array]) -> list[Array]:
    """What TensorFlow computes."""
    with V1.Session(graph=graph) as session:
        return list(session.run(list(results), {f"{k}:0": v for k, v in feeds.items()}))


def check(graph: Any, results: Sequence[Any], feeds: Mapping[str, Array]) -> irlang.Model:
    """Imports a graph and holds the results, which must be those of the import, to TensorFlow's."""
    bind = {
        f"{name}_{axis}": size
        for name, array in feeds.items()
        for axis, size in enumerate(array.shape)
        if graph.get_tensor_by_name(f"{name}:0").shape[axis] is None
    }
    data = graph.as_graph_def().SerializeToString()
    made = tf_model.translate(tf_functions.message(data, "g.pb"), "g", "d", bind)
    model = irlang.loads(made.text)
    files.Imported(made.text, made.writer).fill(model.graph)
    values = {**initial_values(model.graph, 0)}
    values |= {own: feeds[name] for name, own in made.inputs.items()}
    types = {info.dtype for info in model.graph.values.values() if info.kind == "real"}
    precision = "f32" if "f32" in types or not types else "f64"
    balls = program.balls(model.graph, values, builtin(), precision)
    names = [result.name.removesuffix(":0") for result in results]
    expected = dict(zip(names, run(graph, results, feeds), strict=True))
    assert {made.writer.original(name) for name in made.outputs} == set(expected)
    for name in made.outputs:
        ball, true = balls[model.graph.outputs[name]], expected[made.writer.original(name)]
        info = model.graph.values[model.graph.outputs[name]]
        assert info.shape == true.shape
        assert info.dtype == irlang_type(true)
        near(ball, true, name)
    return model


def line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def irlang_type(array: Array) -> str:
    """The element type of an array."""
    return next(name for name, row in DTYPES.items() if row.numpy == array.dtype)


def near(ball: Any, true: Array, name: str) -> None:
    """A result within the radius of the oracle's; some of it must have one."""
    value, got = np.asarray(ball.value), np.asarray(true)
    if value.dtype.kind == "f":
        value, got = value.astype(np.float64), got.astype(np.float64)
    radius = np.broadcast_to(ball.bound, value.shape)
    with np.errstate(invalid="ignore"):
        same = (value == got) | (np.isnan(value) & np.isnan(got)) | (abs(value - got) <= radius)
    assert same.all(), (name, value[~same][:3], got[~same][:3], radius[~same][:3])
    assert not value.size or np.isfinite(radius).any()


def call(op: str, given: Mapping[str, Any]) -> tuple[Any, list[Any], dict[str, Array]]:
    """A graph of one call: the graph, its results, and what is fed."""
    feeds: dict[str, Array] = {}
    graph = tf.Graph()
    with graph.as_default():

        def argument(value: Any) -> Any:
            if isinstance(value, list) and any(isinstance(item, Fed) for item in value):
                return [argument(item) for item in value]
            if not isinstance(value, Fed):
                return value
            name = f"x{len(feeds)}"
            feeds[name] = value.array
            shape = [None if value.open and not d else n for d, n in enumerate(value.array.shape)]
            return V1.placeholder(value.array.dtype, shape, name=name)

        made = getattr(tf.raw_ops, op)(name="result", **{k: argument(v) for k, v in given.items()})
    several = made if isinstance(made, (list, tuple)) else [made]
    return graph, list(several), feeds


@pytest.mark.parametrize(
    ("op", "given"), CASES, ids=[f"{i}-{op}" for i, (op, _) in enumerate(CASES)]
)
def test_every_row_computes_what_tensorflow_does(op: str, given: dict[str, Any]) -> None:
    graph, several, feeds = call(op, given)
    with graph.as_default():
        used = several[:1] if op.startswith("FusedBatch") else several
        # what only constants and shapes make is no result: it is added to one
        start = V1.placeholder(tf.float32, [], name="start")
        feeds["start"] = np.zeros((), np.float32)
        results = [_computed(item, start, place) for place, item in enumerate(used)]
    check(graph, results, feeds)


def _computed(item: Any, start: Any, place: int) -> Any:
    """A result that hangs on an input, in the type of the item."""
    zero = tf.cast(start, tf.float32 if item.dtype == tf.bool else item.dtype)
    value = tf.cast(item, tf.float32) if item.dtype == tf.bool else item
    return tf.add(value, zero, name=f"out{place}")


def test_every_row_has_a_case() -> None:
    tested = {op for op, _ in CASES} | RANDOM | CLASSES | {"ReadVariableOp", "ResourceGather"}
    assert set(ROWS) == tested
    assert not set(ROWS) & set(LEFT_OUT)
    for name in (*ROWS, *LEFT_OUT):
        assert hasattr(tf.raw_ops, name) or name in ("Print",), name


def test_functions_know_the_results_of_operators_that_have_several() -> None:
    """Inside a function a result has the name of the operator's argument, not a number."""
    for name in ROWS:
        definition = op_def_registry.get(name)
        own = [argument.name for argument in definition.output_arg]
        assert len(own) == 1 or own == list(SEVERAL[name])[: len(own)], name


# ---- whole graphs


def mlp(v1: Any) -> Any:
    """Two layers, dropout left to a placeholder of no shape, and a loss."""
    x = v1.placeholder(tf.float32, [None, 6], name="data/x")
    y = v1.placeholder(tf.float32, [None, 3], name="y")
    keep = v1.placeholder(tf.float32, name="keep")
    w = v1.get_variable(
        "layer/w", initializer=np.linspace(-1, 1, 30, dtype=np.float32).reshape(6, 5)
    )
    b = v1.get_variable("layer/b", [5], initializer=v1.zeros_initializer())
    hidden = tf.nn.relu(tf.matmul(x, w) + b) * keep
    v = v1.get_variable("v", initializer=np.linspace(1, -1, 15, dtype=np.float32).reshape(5, 3))
    logits = tf.matmul(hidden, v, name="logits")
    loss = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits), name="objective"
    )
    return loss, logits


def test_a_graph_of_training_is_read_as_its_loss() -> None:
    """Gradients, optimizer, initial values, saver and summaries are left aside."""
    graph = tf.Graph()
    with graph.as_default():
        loss, logits = mlp(V1)
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(graph.get_tensor_by_name("y:0"), 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
        V1.train.AdamOptimizer(0.1).minimize(loss)
        V1.summary.scalar("seen", loss)
        V1.train.Saver()
        V1.global_variables_initializer()
        feeds: dict[str, Array] = {
            "data/x": np.eye(4, 6, dtype=np.float32),
            "y": np.eye(4, 3, dtype=np.float32),
        }
        feeds["keep"] = np.full((), 0.5, np.float32)
    data = graph.as_graph_def()
    nodes = tf_file.message(data.SerializeToString(), "g.pb")
    made = tf_model.translate(nodes, "g", "d")
    assert [made.writer.original(name) for name in made.outputs] == ["objective", "accuracy"]
    assert "data_x: f32[data_x_0, 6], y: f32[data_x_0, 3], keep: f32[]" in line(made.text)
    assert 'param layer_w: f32[6, 5] = data("d", "layer/w")' in made.text
    assert "param layer_b: f32[5] = 0.0  # layer/b" in made.text
    with V1.Session(graph=graph) as session:
        session.run("init")
        true = session.run([loss, accuracy], {f"{name}:0": v for name, v in feeds.items()})
    model = irlang.loads(made.text, {"data_x_0": 4})
    files.Imported(made.text, made.writer).fill(model.graph)
    values = {**initial_values(model.graph, 0)}
    values |= {own: feeds[name] for name, own in made.inputs.items()}
    balls = program.balls(model.graph, values, builtin(), "f32")
    for name, expected in zip(made.outputs, true, strict=True):
        near(balls[name], np.asarray(expected), name)


def test_what_variables_start_from() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="x")
        kinds = {
            "normal": tf.random.normal([3, 3], 0.5, 0.25),
            "uniform": tf.random.uniform([3, 3], -0.1, 0.3),
            "cut": tf.random.truncated_normal([3, 3], stddev=0.1),
            "half": tf.fill([3, 3], 0.5),
        }
        for name, start in kinds.items():
            x = tf.matmul(x, V1.Variable(start, name=name), name=f"by_{name}")
        old = V1.get_variable("unknown", [3, 3], use_resource=True)
        tf.matmul(x, old, name="result")
    nodes = [
        node
        for node in tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
        if node.name != "unknown/Assign"
    ]
    text = tf_model.translate(nodes, "g", "d").text
    assert "param normal: f32[3, 3] = normal(0.5, 0.25)" in text
    assert "= uniform(-0.1, 0.3)" in text
    assert "= normal(0.0, 0.1)" in text
    assert "param half: f32[3, 3] = 0.5" in text
    assert "param unknown: f32[3, 3]\n" in text


def network(v1: Any) -> Any:
    """Convolutions whose channels stay first between them, seen from both orders."""
    x = v1.placeholder(tf.float32, [None, 8, 8, 2], name="image")
    for place, channels in enumerate((4, 6)):
        shape = [3, 3, x.shape[-1], channels]
        k = np.random.default_rng(place).normal(size=[int(s) for s in shape]).astype(np.float32)
        x = tf.nn.conv2d(x, k, strides=1, padding="SAME", name=f"conv{place}")
        x = tf.nn.bias_add(x, np.linspace(-1, 1, channels, dtype=np.float32))
        x = tf.nn.relu(x + np.linspace(1, -1, channels, dtype=np.float32))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    size = tf.shape(x)[0]
    return tf.reduce_sum(tf.reshape(x, [size, 2 * 2 * 6]), axis=1, name="out")


def test_channels_are_moved_only_where_they_must_be() -> None:
    graph = tf.Graph()
    with graph.as_default():
        out = network(V1)
    image = np.random.default_rng(2).normal(size=(3, 8, 8, 2)).astype(np.float32)
    model = check(graph, [out], {"image": image})
    turned = [line for line in model.text.splitlines() if "= transpose(" in line]
    images = [line for line in turned if "kernel" not in line]
    assert len(images) == 2, "into the first convolution and out of the last pool"


def test_sizes_that_are_left_open_are_names() -> None:
    graph = tf.Graph()
    with graph.as_default():
        a = V1.placeholder(tf.float32, [None, None], name="a")
        b = V1.placeholder(tf.float32, [None, 3], name="b")
        c = V1.placeholder(tf.float32, [None], name="c")
        tf.add(tf.reduce_sum(a, 1, keepdims=True), b, name="sum")
        tf.tile(c, [2], name="twice")
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    text = tf_model.translate(nodes, "g", "d").text
    # the first axes of a and b are one; that of c has nothing to do with them
    assert "a: f32[a_0, a_1], b: f32[a_0, 3], c: f32[c_0]" in line(text)
    assert "twice: f32[2 * c_0]" in text
    assert "a: f32[5, a_1]" in tf_model.translate(nodes, "g", "d", {"a_0": 5, "b_0": 5}).text


def choice(condition: Any) -> Any:
    """A choice inside a choice; one branch reads nothing that is chosen."""
    V1.disable_control_flow_v2()
    x = V1.placeholder(tf.float32, [2, 3], name="x")
    inner = V1.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.ones([2, 3]))
    return tf.add(V1.cond(condition, lambda: tf.exp(inner), lambda: inner - x), 1.0, name="y")


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_choices_of_two(taken: bool, sign: int) -> None:
    graph = tf.Graph()
    with graph.as_default():
        y = choice(V1.placeholder(tf.bool, [], name="training"))
    x = sign * np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    model = check(graph, [y], {"x": x, "training": np.full((), taken)})
    assert model.text.count("= where(") == 2


@pytest.mark.parametrize("taken", [True, False])
def test_a_condition_may_choose_again_behind_its_choice(taken: bool) -> None:
    """As batch norms do, one behind another: each takes its statistics by the same condition."""
    graph = tf.Graph()
    with graph.as_default():
        V1.disable_control_flow_v2()
        x = V1.placeholder(tf.float32, [4, 3], name="x")
        training = V1.placeholder(tf.bool, [], name="training")
        y = x
        for shift in (0.5, -0.25):
            mean, var = tf.nn.moments(y, [0])
            kept = tf.constant([shift] * 3), tf.ones([3])
            mean, var = V1.cond(training, lambda m=mean, v=var: (m, v), lambda k=kept: k)
            y = (y - mean) / tf.sqrt(var + 0.1)
        y = tf.identity(y, name="y")
    given = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
    check(graph, [y], {"x": given, "training": np.full((), taken)})


def test_a_choice_that_is_known_is_made() -> None:
    graph = tf.Graph()
    with graph.as_default():
        y = choice(V1.placeholder_with_default(False, [], name="training"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    text = check(graph, [y], {"x": x}).text
    assert text.count("= where(") == 1


def called(body: Any, *, name: str = "x") -> Any:
    """A graph in which a placeholder is handed to something that keeps its functions apart."""
    graph = tf.Graph()
    with graph.as_default():
        V1.enable_control_flow_v2()
        y = body(V1.placeholder(tf.float32, [2, 3], name=name))
        V1.disable_control_flow_v2()
        tf.multiply(y, 2.0, name="y")
    return graph


def test_functions_are_written_out_where_they_are_called() -> None:
    def halves(v: Any) -> Any:
        top, at = tf.math.top_k(v, 2)  # two results by name
        return tf.split(top, 2, axis=1)[1] + tf.cast(at[:, :1], tf.float32)

    inner = tf.function(halves)

    def both(v: Any) -> Any:
        return tf.exp(inner(v), name="e") - inner(2.0 * v)

    graph = called(tf.function(both))
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    model = check(graph, [graph.get_tensor_by_name("y:0")], {"x": x})
    names = {node.name for node in model.graph.nodes}
    assert any(name.endswith("_e") for name in names)
    assert sum(node.op.name == "top_k" for node in model.graph.nodes) == 2


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_choice_of_functions(sign: int) -> None:
    def body(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x - 1)

    graph = called(body)
    x = sign * np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    text = check(graph, [graph.get_tensor_by_name("y:0")], {"x": x}).text
    assert text.count("= where(") == 1


@pytest.mark.parametrize("test", [">", "!=", "== 0", "not <="])
@pytest.mark.parametrize("version", [1, 2])
def test_a_branch_is_handed_what_its_condition_allows(version: int, test: str) -> None:
    """A mean of as many as there are is asked for only where there are some."""
    tests = {
        ">": lambda n: n > 0.0, "!=": lambda n: tf.not_equal(n, 0.0),
        "== 0": lambda n: tf.equal(0.0, n), "not <=": lambda n: tf.logical_not(n <= 0.0),
    }  # fmt: skip
    graph = tf.Graph()
    with graph.as_default():
        (V1.enable_control_flow_v2 if version > 1 else V1.disable_control_flow_v2)()
        x, n = V1.placeholder(tf.float32, [], name="x"), V1.placeholder(tf.int32, [], name="n")
        count = tf.cast(n, tf.float32)
        ways = [lambda: x / count, lambda: count + x]
        y = V1.cond(tests[test](count), *(ways[::-1] if test == "== 0" else ways))
        V1.disable_control_flow_v2()
        y = tf.multiply(y, 2.0, name="y")
    for number in (0, 3):
        feeds = {"x": np.full((), 2.5, np.float32), "n": np.full((), number, np.int32)}
        model = check(graph, [y], feeds)
    ranges = {"x": (-9.0, 9.0), "n": (0.0, 12.0)}
    found = analyse(model.graph, model.catalog, ranges=ranges)
    assert [point.status for point in found.points if point.function == "/"] == ["safe"]


def test_what_a_queue_hands_out_is_an_input() -> None:
    graph = tf.Graph()
    with graph.as_default():
        queue = V1.FIFOQueue(8, [tf.float32, tf.int32], shapes=[[3], []])
        x, label = queue.dequeue_many(4, name="batch")
        tf.add(tf.reduce_sum(x, 1), tf.cast(label, tf.float32), name="y")
    data = graph.as_graph_def().SerializeToString()
    made = tf_model.translate(tf_functions.message(data, "g.pb"), "g", "d")
    assert "batch: f32[4, 3]" in made.text
    assert "batch_1: i32[4]" in made.text


def unrolled(body: Any, size: Sequence[int | None], v2: bool) -> Any:
    """A graph with a loop, as TensorFlow 1 or 2 writes one."""
    graph = tf.Graph()
    with graph.as_default():
        (V1.enable_control_flow_v2 if v2 else V1.disable_control_flow_v2)()
        y = body(V1.placeholder(tf.float32, size, name="x"))
        V1.disable_control_flow_v2()
        tf.multiply(y, 2.0, name="y")
    return graph


def recurrent(x: Any) -> Any:
    """A recurrent layer as `dynamic_rnn` writes it: sequences are read and written by arrays."""
    w = tf.constant(np.linspace(-1, 1, 28, dtype=np.float32).reshape(7, 4))
    steps = tf.shape(x)[1]
    read = tf.TensorArray(tf.float32, size=steps).unstack(tf.transpose(x, [1, 0, 2]))
    written = tf.TensorArray(tf.float32, size=steps)

    def body(t: Any, h: Any, out: Any) -> Any:
        h = tf.tanh(tf.matmul(tf.concat([read.read(t), h], 1), w), name="cell")
        return t + 1, h, out.write(t, h * tf.cast(t + 1, tf.float32))

    start = tf.zeros([tf.shape(x)[0], 4])
    _, _, out = V1.while_loop(lambda t, *_: t < steps, body, [0, start, written])
    return tf.reduce_sum(tf.transpose(out.stack(), [1, 0, 2]), 1)


def nested(x: Any) -> Any:
    def inner(_: Any, v: Any) -> Any:
        return V1.while_loop(lambda j, _: j < 2, lambda j, u: (j + 1, tf.sin(u) + x), [0, v])

    def outer(i: Any, v: Any) -> Any:
        return i + 1, inner(i, v)[1] * 0.5

    return V1.while_loop(lambda i, _: i < 3, outer, [0, x])[1]


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize(
    ("body", "size", "op", "count"),
    [(recurrent, (2, 5, 3), "tanh", 5), (recurrent, (None, 5, 3), "tanh", 5),
     (nested, (2, 3), "sin", 6)],
)  # fmt: skip
def test_loops_are_unrolled(
    body: Any, size: Sequence[int | None], op: str, count: int, v2: bool
) -> None:
    graph = unrolled(body, size, v2)
    shape = [2 if one is None else one for one in size]
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    model = check(graph, [graph.get_tensor_by_name("y:0")], {"x": x})
    assert sum(node.op.name == op for node in model.graph.nodes) == count


def test_what_a_gradient_keeps_of_a_loop_is_not_read() -> None:
    """It hands stacks into the loop, which no value of the loop hangs on."""
    graph = tf.Graph()
    with graph.as_default():
        V1.disable_control_flow_v2()
        x = V1.placeholder(tf.float32, [2], name="x")
        w = V1.get_variable("w", [2], use_resource=False)
        loop = V1.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.tanh(v * w)), [0, x])
        loss = tf.reduce_sum(loop[1], name="y")
        V1.train.AdamOptimizer(0.1).minimize(loss)
    assert any(node.type == "StackPushV2" for node in graph.get_operations())
    data = graph.as_graph_def().SerializeToString()
    made = tf_model.translate(tf_functions.message(data, "g.pb"), "g", "d", partly=True)
    assert made.text.count("tanh(") == 3
    assert not made.left_out


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("longest", [1, 3, 5, 9])
def test_a_loop_that_may_end_before_leaves_the_rest_as_it_is(longest: int, v2: bool) -> None:
    """As `dynamic_rnn` ends with the longest sequence of a batch."""

    def body(x: Any) -> Any:
        lengths = V1.placeholder(tf.int32, [2], name="lengths")

        def step(t: Any, h: Any, out: Any) -> Any:
            h = tf.tanh(h + x)
            return t + 1, h, out.write(t, h)

        def goes_on(t: Any, h: Any, _: Any) -> Any:  # noqa: ARG001
            return tf.logical_and(t < 5, t < tf.reduce_max(lengths))

        out = tf.TensorArray(tf.float32, size=5, element_shape=[2, 3])
        last, h, out = V1.while_loop(goes_on, step, [0, x, out])
        return h + tf.cast(last, tf.float32) + tf.reduce_sum(out.stack(), 0)

    graph = unrolled(body, [2, 3], v2)
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3)).astype(np.float32)
    feeds = {"x": x, "lengths": np.array([1, longest], np.int32)}
    model = check(graph, [graph.get_tensor_by_name("y:0")], feeds)
    assert sum(node.op.name == "tanh" for node in model.graph.nodes) == 5


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: V1.while_loop(lambda v: tf.reduce_sum(v) < 9, lambda v: v * 2, [x]),
         "is not known when the model is read"),
        (lambda x: V1.while_loop(lambda i, _: i < 1000, lambda i, v: (i + 1, v * 2), [0, x])[1],
         "more than 256 steps"),
    ],
    ids=["by values", "endless"],
)  # fmt: skip
def test_loops_that_cannot_be_unrolled_are_refused(body: Any, message: str, v2: bool) -> None:
    data = unrolled(body, [2], v2).as_graph_def().SerializeToString()
    with pytest.raises(irlang.InvalidInput) as caught:
        tf_model.translate(tf_functions.message(data, "g.pb"), "g", "d")
    assert {one.code for one in caught.value.diagnostics} == {"import.operator"}
    assert message in caught.value.diagnostics[0].message


def test_a_sequence_of_open_length_is_told() -> None:
    data = unrolled(recurrent, [2, None, 3], False).as_graph_def().SerializeToString()
    nodes = tf_functions.message(data, "g.pb")
    with pytest.raises(irlang.InvalidInput) as caught:
        tf_model.translate(nodes, "g", "d")
    assert "--bind" in caught.value.diagnostics[0].message
    assert tf_model.translate(nodes, "g", "d", {"x_1": 3}).text.count("tanh(") == 3


def test_a_loss_may_hold_a_gradient() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [None, 4], name="x")
        w = tf.constant(np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5))
        b = tf.constant(np.linspace(1, -1, 5, dtype=np.float32))
        hidden = tf.nn.relu(tf.matmul(x, w) + b)
        judged = tf.tanh(tf.reduce_sum(hidden * hidden, 1))
        (slope,) = tf.gradients(judged, [x])
        size = tf.sqrt(tf.reduce_sum(tf.square(slope), 1))
        loss = tf.reduce_mean(tf.square(size - 1), name="penalty")
    check(graph, [judged, loss], {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)})


def test_what_hangs_on_a_shape_alone_is_no_result() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [None, 4], name="x")
        label = V1.placeholder(tf.int64, [None], name="label")
        tf.shape(x)
        tf.zeros_like(x)
        # TensorFlow leaves a node of the shape of the labels beside it
        y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=x, name="y")
        result = tf.reduce_sum(y, name="sum")
    feeds = {"x": np.eye(3, 4, dtype=np.float32), "label": np.array([0, 3, 1])}
    assert "label: i64[3]" in line(check(graph, [result], feeds).text)


def test_shapes_that_no_graph_declares_are_told() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="x")
        w = V1.Variable(tf.zeros([3, 4]), validate_shape=False, name="w", use_resource=False)
        tf.matmul(x, w, name="y")
    data = graph.as_graph_def(add_shapes=False)
    nodes = [n for n in tf_file.message(data.SerializeToString(), "g") if n.name != "w/Assign"]
    with pytest.raises(irlang.InvalidInput) as caught:
        tf_model.translate(nodes, "g", "d")
    assert "--bind w=3,4" in caught.value.diagnostics[0].message
    made = tf_model.translate(nodes, "g", "d", {"w[0]": 3, "w[1]": 4})
    assert "param w: f32[3, 4]\n" in made.text


def test_variables_that_a_function_captures() -> None:
    """Its graph says no shapes of them: these are asked for, and are parameters then."""
    weights = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    spec = tf.TensorSpec((3, 2), tf.float32, name="x")
    graph = tf.function(lambda x: tf.nn.softmax(x @ weights)).get_concrete_function(spec).graph
    nodes = tf_functions.message(graph.as_graph_def().SerializeToString(), "g.pb")
    with pytest.raises(irlang.InvalidInput) as caught:
        tf_model.translate(nodes, "g", "d")
    (fault,) = caught.value.diagnostics
    name = fault.message.split("--bind ")[1].split("=")[0]
    made = tf_model.translate(nodes, "g", "d", files.single_sizes({name: [2, 2]}))
    model = irlang.loads(made.text)
    assert [param.info.shape for param in model.graph.params.values()] == [(2, 2)]
    assert [node.op.name for node in model.graph.nodes][:2] == ["matmul", "softmax"]


def test_what_hangs_on_variables_alone_is_a_result_too() -> None:
    """A penalty that nothing adds to the loss is kept, if it can be translated, beside the loss."""
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="x")
        w = V1.Variable(tf.ones([3]), name="w", use_resource=False)
        tf.reduce_sum(tf.multiply(x, w), name="cost")
        tf.math.log(tf.reduce_sum(w), name="penalty")
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    assert tf_model.translate(nodes, "g", "d").outputs == ("cost", "penalty")
    with graph.as_default():
        tf.where(w > 0, name="positive")  # of a size that depends on values
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    made = tf_model.translate(nodes, "g", "d")
    assert made.outputs == ("cost",)
    assert "Beside the results, and not translated: penalty, positive." in made.text


def test_what_a_variable_becomes_by_an_input_is_a_result_and_by_a_gradient_is_none() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="x")
        w = V1.Variable(tf.ones([3]), name="w", use_resource=False)
        centre = V1.Variable(tf.zeros([3]), name="centre", use_resource=False, trainable=False)
        cost = tf.reduce_sum(tf.multiply(x, w), name="cost")
        moved = tf.divide(tf.reduce_sum(x - centre, 0), tf.reduce_sum(x), name="moved")
        V1.assign_sub(centre, moved)
        (slope,) = V1.gradients(cost, [w.value()])
        V1.assign_sub(w, tf.multiply(slope, 0.1, name="step"))
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    assert tf_model.translate(nodes, "g", "d").outputs == ("cost", "moved")
    with graph.as_default():
        places = tf.cast(tf.where(x[0] > 0), tf.float32)  # of a size that depends on values
        V1.assign_add(centre, tf.reduce_sum(places) * tf.ones([3]))
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    made = tf_model.translate(nodes, "g", "d")
    assert made.outputs == ("cost",)
    assert "Beside the results, and not translated: moved, mul_1." in made.text


def test_an_input_without_a_rank_is_named_beside_what_it_breaks() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, None, name="in/x")
        tf.matmul(x, V1.placeholder(tf.float32, [3, 4], name="w"), name="y")
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    with pytest.raises(irlang.InvalidInput) as caught:
        tf_model.translate(nodes, "g", "d")
    told = caught.value.diagnostics[-1]
    assert told.code == "file.shape"
    assert "`in/x` declares no shape" in told.message
    assert "--bind in_x=2,3" in told.help
    made = tf_model.translate(nodes, "g", "d", {"in_x[0]": 2, "in_x[1]": 3})
    assert made.outputs == ("y",)


def _drawing(op: str, shape: Any) -> dict[str, Any]:
    """The arguments of an operator that draws: of integers, those from 3 up to 8."""
    given: dict[str, Any] = {"shape": shape}
    if op.startswith("Stateless"):
        given |= {"seed": [1, 2]} if not op.endswith("V2") else {
            "key": tf.constant([1], tf.uint64), "counter": tf.constant([1, 2], tf.uint64),
            "alg": 1,
        }  # fmt: skip
    if op.endswith(("Int", "IntV2")):
        given |= {"minval": 3, "maxval": 8}
    elif not op.startswith("Stateless"):
        given["dtype"] = tf.float32
    return given


@pytest.mark.parametrize("op", sorted(BOUNDED))
def test_what_is_drawn_has_the_same_law(op: str) -> None:
    """Of what has ends: every number has its share, and none lies outside."""
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [], name="x")
        noise = getattr(tf.raw_ops, op)(**_drawing(op, [20000]))
        tf.add(tf.cast(noise, tf.float32), x, name="y")
    theirs = run(graph, [graph.get_tensor_by_name("y:0")], {"x": np.zeros((), np.float32)})[0]
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    made = irlang.loads(tf_model.translate(nodes, "g", "d").text)
    (ours,) = made.run({"x": np.zeros((), np.float32)}).values()
    edges = np.arange(2.5, 8) if "Int" in op else np.linspace(-2, 2, 6)
    counts = [np.histogram(found, edges)[0] for found in (theirs, ours)]
    assert [count.sum() for count in counts] == [20000, 20000]
    # the difference of two counts of one law has twice their variance, at the most
    assert (np.abs(counts[0] - counts[1]) < 5 * np.sqrt(2 * counts[0])).all()


@pytest.mark.parametrize("op", sorted(RANDOM))
def test_what_is_drawn_is_left_open(op: str) -> None:
    """A mask of dropout: what is drawn has a law, and the graph goes on from it."""
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="x")
        noise = getattr(tf.raw_ops, op)(**_drawing(op, tf.shape(x)), name="noise")
        tf.multiply(x, tf.cast(noise, tf.float32), name="y")
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    made = tf_model.translate(nodes, "g", "d")
    assert f"noise = {_law(op)}" in made.text
    assert "y = multiply(x, " in made.text


def _law(op: str) -> str:
    if "Int" in op:
        return "random_integers(; shape = [2, 3], low = 3, high = 8, dtype = i32)"
    name = "uniform" if "Uniform" in op else "normal"
    law = "truncated_normal" if "Truncated" in op else f"random_{name}"
    return f"{law}(; shape = [2, 3], dtype = f32)"


@pytest.mark.parametrize("op", sorted(CLASSES))
def test_classes_are_drawn_by_their_logits(op: str) -> None:
    """The counts of theirs and of ours are those of one law."""
    graph = tf.Graph()
    given = {"seed": [1, 2]} if op.startswith("Stateless") else {}
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="x")
        drawn = getattr(tf.raw_ops, op)(logits=x, num_samples=10000, output_dtype=tf.int32, **given)
        tf.identity(drawn, name="y")
    logits = np.array([[0, 1, -np.inf], [2, 0, 0]], np.float32)
    theirs = run(graph, [graph.get_tensor_by_name("y:0")], {"x": logits})[0]
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    made = irlang.loads(tf_model.translate(nodes, "g", "d").text)
    (ours,) = made.run({"x": logits}).values()
    assert ours.dtype == theirs.dtype == np.int32
    for row, other in zip(theirs, ours, strict=True):
        counts = [np.bincount(found, minlength=3) for found in (row, other)]
        assert (np.abs(counts[0] - counts[1]) <= 5 * np.sqrt(2 * counts[0])).all()


def test_names_are_kept_for_the_analysis() -> None:
    """A call has the name of its node; what goes with it belongs to that node."""
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 3], name="in/x")
        V1.placeholder(tf.float32, [2], name="in/unread")
        tf.reduce_sum(tf.math.log(x, name="cost/Log"), name="cost/Sum")
    nodes = tf_file.message(graph.as_graph_def().SerializeToString(), "g.pb")
    made = tf_model.translate(nodes, "g", "d")
    assert made.inputs == {"in/x": "in_x"}
    assert made.spare == {"in/unread"}
    assert "cost_Log = log(in_x)  # cost/Log" in made.text
    assert made.writer.owners["cost_Log"] == made.writer.original("cost_Log") == "cost/Log"


def test_what_is_computed_of_a_draw_alone_keeps_its_name_and_its_openness() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [3], name="x")
        noise = V1.log(V1.random_uniform([3], 1.0, 2.0), name="noise")
        tf.add(x, noise, name="y")
    data = graph.as_graph_def().SerializeToString()
    made = tf_model.translate(tf_file.message(data, "g.pb"), "g", "d")
    assert "noise = log(" in made.text
    assert made.writer.owners["noise"] == "noise"  # whose it is, not that of who reads it first
    assert "random_uniform(; shape = [3]" in made.text


def test_the_document_lists_what_is_left_out() -> None:
    by_reason: dict[str, list[str]] = {}
    for name, reason in LEFT_OUT.items():
        by_reason.setdefault(reason, []).append(name)
    rows = [f"| {', '.join(names)} | {reason} |" for reason, names in by_reason.items()]
    table = "\n".join(["| operator | why it is left out |", "| --- | --- |", *rows])
    text = DOCUMENT.read_text("utf-8")
    start, end = "<!-- left out of tensorflow -->\n", "<!-- end of tensorflow -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    written = f"{before}{start}{table}\n{end}{after}"
    if REWRITE:
        DOCUMENT.write_text(written, "utf-8")
    assert DOCUMENT.read_text("utf-8") == written
