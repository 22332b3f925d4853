"""What a worker does for each framework: their arrays, their refusals, what they keep."""

import dataclasses
import importlib.util
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irlang.lower.pool import Limits, Program, Target, Worker
from tests.targets import usable
from tests.worker_programs import body, double, program


def needs(module: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed")


@needs("torch")
def test_torch() -> None:
    code = """
        import torch
        import torch.nn.functional as F

        INPUTS, OUTPUTS, BFLOAT16 = ("x", "z"), ("y", "z", "threads"), ("z",)

        def forward(x, w):
            return F.conv2d(x, w).relu().sum()

        def run(inputs, params):
            x, w = torch.from_numpy(inputs["x"]), torch.from_numpy(params["w"])
            z = torch.from_numpy(inputs["z"]).view(torch.bfloat16) * 2
            y = forward(x, w).numpy()
            return {"y": y, "z": z.view(torch.uint16).numpy(), "threads": torch.get_num_threads()}

        def gradients(inputs, params):
            w = torch.from_numpy(params["w"]).requires_grad_()
            forward(torch.from_numpy(inputs["x"]), w).backward()
            return {"w": w.grad.numpy()}
    """
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    z = np.array([1.5, -2], ml_dtypes.bfloat16)
    good = Program("python", textwrap.dedent(code), {"x": x, "z": z}, {"w": w}, grad=True)
    bad = dataclasses.replace(good, params={"w": np.ones((1, 2, 2, 2), np.float32)})
    with Worker(Target("torch")) as worker:
        result, refused = worker.submit([good, bad])
    assert result.status == "ok", result.error
    assert result.outputs["y"].item() == 16
    assert result.outputs["threads"].item() == 1
    np.testing.assert_array_equal(result.outputs["z"], z * 2)
    np.testing.assert_array_equal(result.gradients["w"], np.full((1, 1, 2, 2), 4))
    assert (refused.status, refused.detail["type"]) == ("refused", "RuntimeError")
    assert refused.detail["stage"] == "run"


@needs("tensorflow")
def test_tensorflow() -> None:
    code = """
        import tensorflow as tf

        INPUTS, OUTPUTS = ("x",), ("y", "z", "threads")

        @tf.function(autograph=True)
        def steps(x):
            for _ in tf.range(3):  # needs the source of this function
                x = x + 1
            return x

        def run(inputs, params):
            x = tf.constant(inputs["x"])
            y = tf.nn.conv2d(x, params["w"], strides=1, padding="VALID")
            return {
                "y": steps(y).numpy(),
                "z": tf.cast(x, tf.bfloat16).numpy(),
                "threads": tf.config.threading.get_intra_op_parallelism_threads(),
            }

        def gradients(inputs, params):
            w = tf.Variable(params["w"])
            with tf.GradientTape() as tape:
                y = tf.nn.conv2d(inputs["x"], w, strides=1, padding="VALID")
            return {"w": tape.gradient(y, w).numpy()}
    """
    x, w = np.ones((1, 3, 3, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    good = Program("python", textwrap.dedent(code), {"x": x}, {"w": w}, grad=True)
    bad = dataclasses.replace(good, params={"w": np.ones((2, 2, 2, 1), np.float32)})
    with Worker(Target("tf")) as worker:
        result, refused = worker.submit([good, bad])
    assert result.status == "ok", result.error
    np.testing.assert_array_equal(result.outputs["y"], np.full((1, 2, 2, 1), 7, np.float32))
    np.testing.assert_array_equal(result.outputs["z"], x.astype(ml_dtypes.bfloat16))
    assert result.outputs["threads"].item() == 1
    np.testing.assert_array_equal(result.gradients["w"], np.full((2, 2, 1, 1), 4))
    assert (refused.status, refused.detail["stage"]) == ("refused", "run")


@needs("onnx")
@needs("onnxruntime")
@pytest.mark.parametrize("level", ["off", "full"])
def test_onnxruntime(level: str) -> None:
    from onnx import TensorProto, helper

    def value(name: str, dtype: int, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, dtype, shape)

    def model(nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> bytes:
        graph = helper.make_graph(nodes, "test", inputs, outputs)
        opset = [helper.make_opsetid("", 20)]
        data: bytes = helper.make_model(
            graph, ir_version=10, opset_imports=opset
        ).SerializeToString()
        return data

    conv = model(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        [value("x", TensorProto.FLOAT, 1, 1, 3, 3), value("w", TensorProto.FLOAT, 1, 1, 2, 2)],
        [value("y", TensorProto.FLOAT, 1, 1, 2, 2)],
    )
    half = model(
        [
            helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT),
            helper.make_node("Identity", ["x"], ["z"]),
        ],
        [value("x", TensorProto.BFLOAT16, 2)],
        [value("y", TensorProto.FLOAT, 2), value("z", TensorProto.BFLOAT16, 2)],
    )
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    z = np.array([1.5, -2], ml_dtypes.bfloat16)
    with Worker(Target("onnxruntime", options={"graph_optimization": level})) as worker:
        good, bits, garbage, shape, absent = worker.submit(
            [
                Program("onnx", conv, {"x": x, "unused": x}, {"w": w}),
                Program("onnx", half, {"x": z}),
                Program("onnx", b"\x08garbage"),
                Program("onnx", conv, {"x": x[0]}, {"w": w}),
                Program("onnx", conv, {"x": x}),
            ]
        )
    assert good.status == "ok", good.error
    np.testing.assert_array_equal(good.outputs["y"], np.full((1, 1, 2, 2), 4))
    assert bits.status == "ok", bits.error
    np.testing.assert_array_equal(bits.outputs["y"], [1.5, -2])
    np.testing.assert_array_equal(bits.outputs["z"], z)
    failures = [(result.status, result.detail["stage"]) for result in (garbage, shape, absent)]
    assert failures == [("refused", "build"), ("refused", "run"), ("refused", "contract")]
    assert "w" in absent.error


def test_a_compiler_knows_nothing_of_the_program_before() -> None:
    """What stands in one place of a file, with other sizes, is compiled for them, not for any."""
    usable("torch:compile")
    code = """
        import numpy as np
        import torch

        INPUTS = OUTPUTS = ("x",)
        open_sizes = []

        def looks(graph, examples):
            open_sizes.append(any(not isinstance(one, torch.Tensor) for one in examples))
            return graph

        @torch.compile(backend=looks)
        def negated(x):
            return -x

        def run(inputs, params):
            negated(torch.from_numpy(np.array(inputs["x"])))
            return {"x": np.array(open_sizes)}
    """
    with Worker(Target("torch:compile"), Limits(seconds=120.0)) as worker:
        found = worker.submit([program(code, x=np.ones(size)) for size in (2, 3, 4)])
    assert [result.outputs["x"].tolist() for result in found] == [[False]] * 3


# What a framework does whose context on a GPU is gone: everything raises.
LOSES = """
    GONE = False


    class cuda:
        is_available = staticmethod(lambda: True)


    def set_num_threads(number):
        pass


    set_num_interop_threads = set_num_threads


    class ones:
        def __init__(self, size, device):
            if GONE:
                raise RuntimeError("CUDA error: unspecified launch failure")

        def add(self, number):
            return self

        def item(self):
            return 2.0
"""


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("CUDA error: an illegal memory access was encountered", "crash"),
        ("CUDA error: device-side assert triggered", "refused"),
    ],
)
def test_who_loses_the_context_of_a_gpu_loses_it_alone(
    said: str, status: str, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text(textwrap.dedent(LOSES))
    target = Target("torch:cuda", environment={"PYTHONPATH": str(tmp_path)})
    refused = body("raise RuntimeError('wrong shapes')")
    loses = body(f"import torch\ntorch.GONE = True\nraise RuntimeError({said!r})")
    with Worker(target) as worker:
        found = worker.submit([double(1.0), refused, double(2.0), loses, double(3.0)])
    assert [one.status for one in found] == ["ok", "refused", "ok", status, "ok"]
    assert found[3].error == said
