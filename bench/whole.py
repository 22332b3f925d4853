"""Whole models in float64 on one thread: the oracle against torch and ONNX's ReferenceEvaluator.

    python -m bench.whole [MODEL...]

The models are those of bench/models. A line gives milliseconds of the oracle, of torch in eager
mode (the program that `irlang lower --to torch` writes) and of onnx.reference (on what is written
for ONNX Runtime, turned into double precision), the ratio to torch, the factor gained over
onnx.reference, what would be gained over it by products of matrices alone, as NumPy has them and
everything else for nothing (a convolution as one product, its columns being there already), and
what values with radii, and values with gradients, cost over values (radii are those of the model in
single precision, which frameworks compute in).

Time is that of the processor, of which each candidate uses one thread; they alternate, and a ratio
is the median of those of the rounds, so that what else the machine does falls on both. Kernels are
compiled before.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import types  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import onnx.numpy_helper  # noqa: E402
import onnx.reference  # noqa: E402
import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import irlang  # noqa: E402
from irlang.interp import reference, rounding  # noqa: E402
from irlang.interp.gradient import gradients  # noqa: E402
from irlang.interp.program import balls, run  # noqa: E402

MODELS = Path(__file__).parent / "models"
ROUNDS = 9
Array = np.ndarray[Any, Any]


def by_torch(model: irlang.Model, values: dict[str, Array]) -> Callable[[], list[Array]]:
    program = types.ModuleType("lowered")
    exec(compile(model.lower("torch").code, "lowered.py", "exec"), program.__dict__)  # noqa: S102
    tensors = [torch.from_numpy(values[n]) for n in (*program.INPUTS, *program.PARAMS)]
    forward = getattr(program, model.graph.name)

    def call() -> list[Array]:
        with torch.no_grad():
            return [value.numpy() for value in forward(*tensors)]

    return call


def by_onnx(model: irlang.Model, values: dict[str, Array]) -> Callable[[], list[Array]]:
    # lowered in float32, in which ONNX Runtime has all of ONNX's own operators, and turned into
    # float64, which the evaluator takes anywhere
    lowered = irlang.loads(model.text.replace("f64", "f32")).lower("onnxruntime")
    assert isinstance(lowered.code, bytes)
    session = onnx.reference.ReferenceEvaluator(doubled(onnx.load_from_string(lowered.code)))
    feeds = {name: values[name] for name in lowered.inputs}
    return lambda: list(session.run(None, feeds))


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model in float32 as one in float64: its inputs and results, constants and casts."""
    graph = model.graph
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            info.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    tensors = [
        *graph.initializer,
        *(a.t for n in graph.node for a in n.attribute if a.HasField("t")),
    ]
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.DOUBLE
    return model


class _Products(TorchDispatchMode):  # type: ignore[misc]  # PyTorch has no types for it
    """Collects the operands of the products that PyTorch makes of a program."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Array, Array]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = function(*args, **(kwargs or {}))
        match function.overloadpacket:
            case torch.ops.aten.mm | torch.ops.aten.bmm:
                self.pairs.append((args[0].numpy(), args[1].numpy()))
            case torch.ops.aten.addmm:
                self.pairs.append((args[1].numpy(), args[2].numpy()))
            case torch.ops.aten.convolution:
                weight = args[1].flatten(1).numpy()
                positions = found.numel() // len(weight)
                self.pairs.append((weight, np.ones((weight.shape[1], positions))))
        return found


def products(eager: Callable[[], object]) -> Callable[[], object]:
    """The products of matrices of a program of PyTorch, and nothing else, by NumPy."""
    with _Products() as seen:
        eager()
    ready = [(a, b, np.matmul(a, b)) for a, b in seen.pairs]

    def call() -> None:
        for a, b, out in ready:
            np.matmul(a, b, out=out)

    return call


def oracle(model: irlang.Model, values: dict[str, Array]) -> object:
    """The outputs, as `irlang run` computes them."""
    return run(model.graph, values, model.catalog, keep=set(model.graph.outputs.values()))


def with_radius(model: irlang.Model, values: dict[str, Array]) -> object:
    """The outputs, and their radii at the precision of the model."""
    keep = set(model.graph.outputs.values())
    return balls(model.graph, values, model.catalog, "f32", keep=keep)


def with_gradient(model: irlang.Model, values: dict[str, Array]) -> object:
    """The outputs, and the gradient of their sum by every parameter and input."""
    return gradients(model.graph, values, model.catalog)


def timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of two candidates in each round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def main() -> None:
    torch.set_num_threads(1)
    # kernels at once, and not when NumPy has been at it for as long as compiling them takes
    reference.COMPILE = reference.LOAD = reference.IMPORT = rounding._NEST = 0
    names = sys.argv[1:] or sorted(path.stem for path in MODELS.glob("*.nnir"))
    print(
        "model         oracle    torch     onnx  oracle/torch  onnx/oracle  onnx/products"
        "  radius/value  gradient/value"
    )
    for name in names:
        model = irlang.load(MODELS / f"{name}.nnir")
        values = model.values()
        narrow = irlang.loads(model.text.replace("f64", "f32"))  # whose values are in float64, too
        singles = {n: a.astype("f4") if a.dtype == "f8" else a for n, a in values.items()}
        by_eager = by_torch(model, values)
        calls: list[Callable[[], object]] = [
            partial(oracle, model, values),
            by_eager,
            by_onnx(model, values),
            products(by_eager),
            partial(with_radius, narrow, singles),
            partial(with_gradient, model, values),
        ]
        for call in calls:
            call()
            call()  # the second compiles what the first has made
        rounds = [[timed(call) for call in calls] for _ in range(ROUNDS)]
        own, eager, other, least, radius, slope = zip(*rounds, strict=True)
        shown = (statistics.median(column) * 1e3 for column in (own, eager, other))
        print(
            "{:10} {:9.1f} {:8.1f} {:8.1f} ".format(name, *shown)
            + f"{ratio(own, eager):13.2f} {ratio(other, own):12.1f} "
            f"{ratio(other, least):14.1f} {ratio(radius, own):13.2f} "
            f"{ratio(slope, own):15.2f}"
        )


if __name__ == "__main__":
    main()
