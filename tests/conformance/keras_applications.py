"""Imports the networks of `keras.applications` with random weights and holds them to Keras.

    python -m tests.conformance.keras_applications [NAME...] [--size 70] [--targets torch,tf]
        [--precision float64]

Each is saved, imported, checked, and judged call by call: the oracle's radius of a layer given
Keras's own inputs to it, because the radius of fifty layers at once says nothing. With `--targets`
the frameworks that the text is lowered to are judged in the same way. Exit status: 0 all agree, 1
otherwise. A size of which no layer's is its number of channels tells the two apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from irlang.catalog import builtin
from irlang.diff.localise import call_by_call
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import FINDINGS
from irlang.graph import Graph
from irlang.interp import reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.draws import feeds
from irlang.interp.plain import load as loaded
from irlang.interp.program import node_balls, precision, run
from irlang.interp.values import initial_values
from tests.keras_models import Array, graph, imported

NAMES = (
    "ResNet50", "MobileNetV2", "EfficientNetB0", "DenseNet121", "InceptionV3", "ConvNeXtTiny",
)  # fmt: skip
LEAST = {"InceptionV3": 75}


def network(name: str, size: int, floats: str) -> Any:
    """A network whose weights are drawn, statistics of normalisation among them."""
    keras.config.set_floatx(floats)
    keras.config.set_dtype_policy(floats)
    keras.utils.set_random_seed(0)
    shape = (max(size, LEAST.get(name, 0)),) * 2 + (3,)
    make = getattr(keras.applications, name)
    model = make(weights=None, input_shape=shape, classes=10, name=name.lower())
    rng = np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            for weight in layer.weights:
                low, high = (
                    (0.5, 1.5) if weight.name in ("gamma", "moving_variance") else (-0.1, 0.1)
                )
                weight.assign(rng.uniform(low, high, weight.shape))
    return model


def layer_by_layer(model: Any, found: Graph, start: dict[str, Any], x: Array) -> Iterator[str]:
    """What is wrong, given for every layer what Keras made of the layers before it."""
    inside = (keras.layers.InputLayer, keras.Model)  # whose layers have names of their own
    layers = [layer for layer in model.layers if not isinstance(layer, inside)]
    rounded = tuple(layer.name for layer in layers if _in_single(layer))
    told = keras.Model(model.inputs, [layer.output for layer in layers])(x)
    known = {layer.name: np.asarray(y) for layer, y in zip(layers, told, strict=True)}
    balls = {name: Ball(loaded(found.values[name], item)) for name, item in start.items()}
    usual = precision(found)
    for node in found.nodes:
        if node.outputs[0].startswith(rounded or ("?",)):
            expansion = node.expansion(builtin())
            made = rounding.evaluate(expansion, feeds(node, expansion, balls, Ball), "f32")
            balls.update((name, made[formal]) for formal, name in node.results().items())
        else:
            balls.update(node_balls(node, balls, builtin(), usual))
        for name in node.outputs:
            if name not in known:
                continue
            ball = balls[name]
            value = np.asarray(ball.value, dtype=np.float64)
            other = known.pop(name).astype(np.float64)
            if other.shape != value.shape:  # channels come first here
                other = np.moveaxis(other, -1, 1)
            if other.shape != value.shape:
                yield f"{name}: shape {value.shape}, Keras has {other.shape}"
                return
            over = np.abs(other - value) - np.broadcast_to(ball.bound, value.shape)
            if (over > np.spacing(np.abs(other))).any():
                yield f"{name}: {over.max()} beyond the radius"
            balls[name] = Ball(loaded(found.values[name], other))
    yield from (f"{name}: no value of this name" for name in known)


def _in_single(layer: Any) -> bool:
    """Whether TensorFlow rounds a constant of the layer to single precision in any case."""
    constants = (keras.layers.Rescaling, keras.layers.Normalization)
    gelu = getattr(layer, "activation", None) is keras.activations.gelu
    return isinstance(layer, constants) or gelu


def judged(name: str, size: int, floats: str, targets: Sequence[str]) -> Iterator[str]:
    """Prints what is measured of one network; gives what disagrees."""
    model = network(name, size, floats)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        began = time.perf_counter()
        made = imported(model, place)
        took = time.perf_counter() - began
        found = graph(made, place, {"N": 1})
        shape = (1, *model.inputs[0].shape[1:])
        x = np.random.default_rng(1).uniform(0, 255, shape).astype(floats)
        params = initial_values(found, 0)
    given = {next(iter(made.inputs.values())): x}
    start = {**given, **params}
    run(found, start, builtin(), reference.evaluate)
    began = time.perf_counter()
    run(found, start, builtin(), reference.evaluate)
    oracle = time.perf_counter() - began
    model(x)
    began = time.perf_counter()
    model(x)
    eager = time.perf_counter() - began
    print(
        f"{name}: saved and imported in {took:.1f} s, {len(made.text.splitlines())} lines, "
        f"{len(found.nodes)} calls; oracle {oracle:.2f} s, Keras {floats} {eager:.2f} s",
        flush=True,
    )
    yield from layer_by_layer(model, found, start, x)
    if targets:
        case = Case(found, given, dict(params), builtin())
        with Session(targets) as session:
            for target in targets:
                yield from _lowered(session, case, target)


def _lowered(session: Session, case: Case, target: str) -> Iterator[str]:
    """What a target gets wrong, call by call."""
    counts: Counter[str] = Counter()
    for node, verdicts, _ in call_by_call(session, case, target):
        for verdict in verdicts:
            counts[verdict.verdict] += 1
            if verdict.verdict in FINDINGS:
                yield f"{target} at {node.name}: {verdict.verdict}"
    print(f"  {target}: {dict(counts)}", flush=True)
    if not counts:
        yield f"{target}: no values"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.keras_applications")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--size", type=int, default=70, help="of the image (default: 70)")
    parser.add_argument("--targets", default="", help="frameworks to lower to")
    parser.add_argument("--precision", choices=("float32", "float64"), default="float64")
    options = parser.parse_args(arguments)
    targets = [target for target in options.targets.split(",") if target]
    wrong = 0
    for name in options.names:
        for problem in judged(name, options.size, options.precision, targets):
            print(f"  {problem}", flush=True)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
