"""The oracle against what one would use instead, in float64, one thread, warm, in one run.

    python -m bench.oracle

A line gives milliseconds, the ratio to torch, the factor gained over ONNX's ReferenceEvaluator,
and how far the oracle and that evaluator are from torch. The equations come from the built-in
catalogue, as in a campaign.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from typing import Any  # noqa: E402

import numba  # noqa: E402, F401 (as in a process that has computed for a second)
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.reference  # noqa: E402
import torch  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

from irlang.catalog import Catalog, builtin  # noqa: E402
from irlang.equations import TensorInfo  # noqa: E402
from irlang.expand import expand  # noqa: E402
from irlang.instance import instantiate  # noqa: E402
from irlang.interp import reference  # noqa: E402

Array = np.ndarray[Any, Any]
ROUNDS = 9


@dataclass(frozen=True, slots=True)
class Case:
    """One operator at one size, in three spellings; each gives one array."""

    name: str
    oracle: Callable[[], Array]
    torch: Callable[[], Array]
    onnx: Callable[[], Array]


def oracle(
    catalog: Catalog, name: str, inputs: dict[str, Array], attrs: dict[str, Any]
) -> Callable[[], Array]:
    op = catalog.op(name)
    assert op is not None
    infos = {key: TensorInfo(value.shape, "f64") for key, value in inputs.items()}
    expansion = expand(instantiate(op, infos, attrs), catalog)
    return lambda: reference.evaluate(expansion, inputs)[expansion.outputs[0]]


def evaluator(
    op: str, inputs: dict[str, Array], outputs: int = 1, **attrs: Any
) -> Callable[[], Array]:
    names = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), names, **attrs)],
        "bench",
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, v.shape) for n, v in inputs.items()],
        [helper.make_tensor_value_info(names[0], TensorProto.DOUBLE, None)],
    )
    session = onnx.reference.ReferenceEvaluator(helper.make_model(graph))
    return lambda: np.asarray(session.run(None, inputs)[0])


def convolution(catalog: Catalog, rng: np.random.Generator) -> Case:
    x, w, b = (rng.standard_normal(s) for s in ((1, 64, 56, 56), (64, 64, 3, 3), (64,)))
    tx, tw, tb = map(torch.from_numpy, (x, w, b))
    return Case(
        "conv 64->64, 56x56, 3x3",
        oracle(catalog, "conv", {"x": x, "w": w, "b": b}, {"pad": "same"}),
        lambda: np.asarray(torch.nn.functional.conv2d(tx, tw, tb, padding=1)),
        evaluator("Conv", {"x": x, "w": w, "b": b}, pads=[1, 1, 1, 1]),
    )


def product(catalog: Catalog, rng: np.random.Generator) -> Case:
    a, b = rng.standard_normal((512, 512)), rng.standard_normal((512, 512))
    ta, tb = map(torch.from_numpy, (a, b))
    return Case(
        "matmul 512x512x512",
        oracle(catalog, "dense", {"x": a, "w": b}, {}),
        lambda: np.asarray(torch.matmul(ta, tb)),
        evaluator("MatMul", {"a": a, "b": b}),
    )


def lstm(catalog: Catalog, rng: np.random.Generator) -> Case:
    length, batch, size = 32, 8, 64
    x = rng.standard_normal((length, batch, size))
    w, r = (rng.standard_normal((4, size, size)) / 8 for _ in range(2))
    module = torch.nn.LSTM(size, size, dtype=torch.float64)
    order = [0, 2, 3, 1]  # ours is input, output, forget, cell; torch's input, forget, cell, output
    with torch.no_grad():
        for name, value in (("weight_ih_l0", w), ("weight_hh_l0", r)):
            getattr(module, name).copy_(torch.from_numpy(value[order].reshape(-1, size)))
        module.bias_ih_l0.zero_()
        module.bias_hh_l0.zero_()
    tx = torch.from_numpy(x)

    def by_torch() -> Array:
        with torch.inference_mode():
            return np.asarray(module(tx)[0])

    onnx_inputs = {"x": x, "w": w.reshape(1, -1, size), "r": r.reshape(1, -1, size)}
    run = evaluator("LSTM", onnx_inputs, 3, hidden_size=size)
    return Case(
        f"lstm L={length} N={batch} C=H={size}",
        oracle(catalog, "lstm", {"x": x, "w": w, "r": r}, {}),
        by_torch,
        lambda: run()[:, 0],
    )


def fastest(runs: list[Callable[[], Array]]) -> list[float]:
    """Seconds of each, taken in turns so that a busy moment hits all of them."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def main() -> None:
    torch.set_num_threads(1)
    # kernels at once, and not when NumPy has been at it for as long as compiling them takes
    reference.COMPILE = reference.LOAD = reference.IMPORT = 0
    rng = np.random.default_rng(0)
    catalog = builtin()
    print(f"{'':26}{'oracle':>10}{'torch':>10}{'onnx':>10}   oracle/torch   onnx/oracle   gaps")
    for make in (convolution, product, lstm):
        case = make(catalog, rng)
        expected = case.torch()
        for _ in range(2):  # the first compiles
            result = case.oracle()
        gaps = " ".join(f"{np.abs(r - expected).max():.0e}" for r in (result, case.onnx()))
        times = fastest([case.oracle, case.torch, case.onnx])
        shown = "".join(f"{1e3 * t:7.2f} ms" for t in times)
        ratios = f"{times[0] / times[1]:15.2f}{times[2] / times[0]:14.1f}"
        print(f"{case.name:26}{shown}{ratios}   {gaps}")


if __name__ == "__main__":
    main()
