"""Whole networks as ONNX: transformers that torch exports, a large one, irlang's own programs."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

import irlang
from irlang.catalog import builtin
from irlang.diff.calls import open_values
from irlang.diff.runner import Case, Session
from irlang.gen.build import generate
from irlang.gen.lines import drawn
from irlang.graph import Graph
from irlang.importers.onnx_model import translate
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision, run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import lower
from irlang.parser import parse
from tests.onnx_models import Array, model, node, value

F = torch.nn.functional

_SIZED_BY_VALUES = ("Unique", "NonMaxSuppression", "Compress", "NonZero")


class Encoder(torch.nn.Module):  # type: ignore[misc]
    """A small BERT: embeddings of tokens, places and segments, two layers, a pooled result."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(50, 16)
        self.places = torch.nn.Embedding(32, 16)
        self.segments = torch.nn.Embedding(2, 16)
        self.norm = torch.nn.LayerNorm(16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pool = torch.nn.Linear(16, 16)

    def forward(self, ids: torch.Tensor, segments: torch.Tensor) -> tuple[Any, Any]:
        places = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        x = self.norm(self.tokens(ids) + self.places(places) + self.segments(segments))
        x = self.layers(x)
        return x, torch.tanh(self.pool(x[:, 0]))


class Block(torch.nn.Module):  # type: ignore[misc]
    """A layer of the decoder: causal attention over split heads, then a gated product."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.LayerNorm(16), torch.nn.LayerNorm(16)
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
        self.up, self.gate = torch.nn.Linear(16, 32), torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, _ = x.shape
        heads = self.qkv(self.one(x)).view(n, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        scores = heads[0] @ heads[1].transpose(-2, -1) / 8**0.5
        seen = torch.tril(torch.ones(length, length, dtype=torch.bool, device=x.device))
        weights = torch.softmax(scores.masked_fill(~seen, float("-inf")), -1)
        mixed = (weights @ heads[2]).transpose(1, 2).reshape(n, length, 16)
        x = x + self.out(mixed)
        y = self.two(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(torch.nn.Module):  # type: ignore[misc]
    """A small GPT: two layers, logits by the embedding's own table."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(50, 16)
        self.places = torch.nn.Parameter(torch.randn(32, 16) * 0.1)
        self.layers = torch.nn.Sequential(Block(), Block())
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.layers(self.tokens(ids) + self.places[: ids.shape[1]])
        return self.norm(x) @ self.tokens.weight.T


def exported(module: torch.nn.Module, names: list[str], path: Path) -> tuple[Array, ...]:
    """Writes an ONNX file with an open batch; what torch computes of its inputs."""
    torch.manual_seed(3)
    torch.backends.mha.set_fastpath_enabled(False)  # which has no translation to ONNX
    feeds = tuple(torch.randint(0, 2, (2, 6)) for _ in names)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        open_ = {name: {0: "batch"} for name in names}
        torch.onnx.export(
            module, feeds, str(path), dynamo=False, input_names=names, dynamic_axes=open_
        )
        results = module(*feeds)
    several = results if isinstance(results, tuple) else (results,)
    return tuple(array.numpy() for array in (*feeds, *several))


@pytest.mark.parametrize(("module", "names"), [(Encoder, ["ids", "segments"]), (Decoder, ["ids"])])
def test_transformers_that_torch_exports(module: Any, names: list[str], tmp_path: Path) -> None:
    torch.manual_seed(1)
    path = tmp_path / "m.onnx"
    arrays = exported(module().double().eval(), names, path)
    text = irlang.import_model(path).text
    assert "[batch, 6]" in text
    assert not check(parse(text), builtin(), {"batch": 5}).diagnostics
    graph = irlang.import_model(path, {"batch": 2}).graph
    given = dict(zip(graph.inputs, arrays, strict=False))
    values = {**inputs(graph, 0, given), **initial_values(graph, 0)}
    found = balls(graph, values, builtin(), precision(graph))
    for output, want in zip(graph.outputs.values(), arrays[len(names) :], strict=True):
        within(found[output], want)
    with Session(["torch", "tf"]) as session:
        params = initial_values(graph, 0)
        outcome = session.compare([Case(graph, inputs(graph, 0, given), params, builtin())])[0]
    assert outcome.refusal is None
    # TensorFlow holds the root of two of its gelu in f32 (docs/findings.md), which the decoder's
    # activation has no part in.
    known = {"tf": {"inaccurate"}} if module is Encoder else {}
    for target in ("torch", "tf"):
        judged = {verdict.verdict for verdict in outcome.verdicts[target]}
        assert judged
        assert judged <= {"agrees", "rounding"} | known.get(target, set())


def within(ball: Ball, want: Array) -> None:
    """A recorded result inside the radius."""
    radius = np.broadcast_to(ball.bound, want.shape)
    assert np.isfinite(radius).all()
    assert (np.abs(ball.value - want) <= radius).all()


# ---- a large one


def resnet50() -> Any:
    """175 nodes and 25 million numbers."""
    rng = np.random.default_rng(0)
    nodes: list[Any] = []
    numbers: dict[str, Array] = {}

    def parameter(name: str, *shape: int, least: float = -0.05) -> str:
        numbers[name] = rng.uniform(least, least + 0.1, shape).astype(np.float32)
        return name

    def conv(x: str, name: str, sizes: tuple[int, int], k: int, s: int) -> str:
        w = parameter(f"{name}.w", sizes[1], sizes[0], k, k)
        attrs = {"kernel_shape": [k, k], "strides": [s, s], "pads": [k // 2] * 4}
        nodes.append(node("Conv", f"{x} {w}", f"{name}.c", **attrs))
        rest = [parameter(f"{name}.{part}", sizes[1]) for part in ("s", "b", "m")]
        rest.append(parameter(f"{name}.v", sizes[1], least=0.5))
        nodes.append(node("BatchNormalization", f"{name}.c {' '.join(rest)}", name))
        return name

    def relu(x: str) -> str:
        nodes.append(node("Relu", x, f"{x}.r"))
        return f"{x}.r"

    x, c = relu(conv("image", "stem", (3, 64), 7, 2)), 64
    nodes.append(node("MaxPool", x, "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
    x = "pool"
    for stage, (m, rounds) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for i in range(rounds):
            name, stride = f"s{stage}.{i}", 2 if stage and not i else 1
            y = relu(conv(x, f"{name}.a", (c, m), 1, 1))
            y = relu(conv(y, f"{name}.b", (m, m), 3, stride))
            y = conv(y, f"{name}.c", (m, 4 * m), 1, 1)
            z = x if i else conv(x, f"{name}.d", (c, 4 * m), 1, stride)
            nodes.append(node("Add", f"{y} {z}", name))
            x, c = relu(name), 4 * m
    nodes += [node("GlobalAveragePool", x, "gap"), node("Flatten", "gap", "flat")]
    w, b = parameter("fc.w", 1000, 2048), parameter("fc.b", 1000)
    nodes.append(node("Gemm", f"flat {w} {b}", "logits", transB=1))
    return model(nodes, [value("image", "N", 3, "H", "W")], ["logits"], numbers)


def test_a_large_network_takes_seconds(tmp_path: Path) -> None:
    path = tmp_path / "resnet50.onnx"
    onnx.save(resnet50(), path)
    start = time.perf_counter()
    made = irlang.import_model(path, {"N": 1, "H": 224, "W": 224})
    assert time.perf_counter() - start < 20  # two on a machine of its own
    assert len(made.text.splitlines()) < 700
    assert max(map(len, made.text.splitlines())) <= 100
    assert [str(made.graph.values[v]) for v in made.graph.outputs.values()] == ["f32[1, 1000]"]


# ---- irlang's own programs, lowered to ONNX and read again


@pytest.mark.parametrize("native", [True, False])
def test_programs_come_back(native: bool) -> None:
    catalog, count = builtin(), 0
    for seed in range(48):
        program = generate(catalog, seed)
        given, params = drawn(program.graph, catalog, 0)
        lowered = lower(program.graph, "onnxruntime", catalog, params, native=native)
        if lowered.unsupported or open_values(program.graph, catalog):
            continue  # what is left open is drawn anew
        assert isinstance(lowered.code, bytes)
        proto = onnx.ModelProto.FromString(lowered.code)
        if any(node.op_type in _SIZED_BY_VALUES for node in proto.graph.node):
            continue  # the size of their results hangs on values, which is refused
        back = translate(proto, None, "w.safetensors")
        graph = read_back(back)
        names = [back.inputs[item.name] for item in proto.graph.input]
        fed = inputs(graph, 0, dict(zip(names, given.values(), strict=True)))
        ours = run(program.graph, {**given, **params}, catalog)
        values = {**fed, **initial_values(graph, 0)}
        found = balls(graph, values, catalog, precision(graph))
        radii = balls(program.graph, {**given, **params}, catalog, precision(program.graph))
        for old, name in zip(program.graph.outputs.values(), back.outputs, strict=True):
            ball = found[graph.outputs[name]]
            assert ball.value.shape == ours[old].shape
            bound = np.asarray(ball.bound + radii[old].bound, np.float64)
            with np.errstate(all="ignore"):
                gap = np.abs(ball.value.astype(np.float64) - ours[old].astype(np.float64))
                same = (ball.value == ours[old]) | (np.isnan(gap) & np.isnan(ours[old]))
            assert (same | (gap <= bound) | np.isinf(bound)).all(), (seed, name)
        count += 1
    assert count >= 12


def read_back(made: Any) -> Graph:
    """The graph of an import, its parameters in memory."""
    from irlang.importers.files import Imported

    checked = check(parse(made.text), builtin())
    assert not checked.diagnostics
    (graph,) = checked.graphs
    Imported(made.text, made.writer).fill(graph)
    return graph


def test_constants_are_what_the_file_says() -> None:
    array = np.array([[1, -2], [3, 4]], np.int32)
    made = model(
        [node("Constant", "", "c", value=numpy_helper.from_array(array)), node("Neg", "c", "y")],
        [],
        ["y"],
    )
    graph = read_back(translate(made, None, "w.safetensors"))
    found = run(graph, initial_values(graph, 0), builtin())
    np.testing.assert_array_equal(found[graph.outputs["y"]], -array)
