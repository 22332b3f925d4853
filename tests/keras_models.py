"""Models saved by Keras, imported, held to what Keras predicts, within the radius of rounding."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.importers.keras_model import Imported, load
from irlang.interp import reference
from irlang.interp.balls import Ball
from irlang.interp.plain import load as loaded
from irlang.interp.program import node_balls, run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse

Array = np.ndarray[Any, np.dtype[Any]]
DATA = "weights.safetensors"


def imported(model: Any, folder: Path, suffix: str = ".keras") -> Imported:
    """A model by way of a file."""
    path = folder / f"model{suffix}"
    model.save(path)
    return load(path, DATA)


def graph(made: Imported, folder: Path, sizes: Mapping[str, int]) -> Graph:
    """The model that the text is, which must be valid."""
    (folder / "model.nnir").write_text(made.text, "utf-8")
    made.writer.save(folder)
    checked = check(parse(made.text, str(folder / "model.nnir")), builtin(), sizes)
    assert not checked.diagnostics, "\n".join(map(str, checked.diagnostics))
    return checked.graphs[0]


def randomised(model: Any, rng: np.random.Generator, scale: float = 0.5) -> None:
    """Other weights than those that a layer starts from, which are often zeros and ones."""
    for variable in model.weights:
        if variable.dtype.startswith(("float", "bfloat")):
            drawn = rng.uniform(-scale, scale, variable.shape)
            if "variance" in variable.path:
                drawn = np.abs(drawn) + 0.5
            variable.assign(drawn)
    for layer in model.layers:
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()


def fed(model: Any, rng: np.random.Generator, batch: int = 2) -> list[Array]:
    """Inputs for a model: evenly drawn; small numbers where it takes integers."""
    found = []
    for tensor in model.inputs:
        shape = [
            batch if d == 0 and n is None else 5 if n is None else n
            for d, n in enumerate(tensor.shape)
        ]
        if tensor.dtype.startswith("int"):
            found.append(rng.integers(0, 4, shape).astype(tensor.dtype))
        elif tensor.dtype == "bool":
            found.append(rng.integers(0, 2, shape).astype(bool))
        else:
            # with few digits, so that adding a small number to one is exact
            found.append((rng.integers(-256, 257, shape) / 256).astype(tensor.dtype))
    return found


def agrees(model: Any, folder: Path, seed: int = 0, suffix: str = ".keras") -> str:
    """The text of a model whose every result is within the radius; fails where one is not.

    At least half of the elements must have a radius that says something.
    """
    rng = np.random.default_rng(seed)
    values = fed(model, rng)
    made = imported(model, folder, suffix)
    lone = isinstance(model, keras.Sequential)
    called = values[0] if lone else keras.tree.pack_sequence_as(model.input, values)
    wanted = keras.tree.flatten(model(called))
    sizes = {}
    for tensor, value in zip(model.inputs, values, strict=True):
        for axis, size in enumerate(tensor.shape):
            if size is None:
                sizes["N" if axis == 0 else f"D{axis}"] = value.shape[axis]
    found = graph(made, folder, sizes)
    given = dict(zip(made.inputs.values(), values, strict=True))
    within(found, made, given, wanted)
    return made.text


def within(found: Graph, made: Imported, given: dict[str, Array], wanted: list[Any]) -> None:
    """The oracle's results are those that are wanted, as far as rounding allows."""
    assert len(wanted) == len(made.outputs)
    start = {**inputs(found, 0, given), **initial_values(found, 0)}
    computed = run(found, start, builtin(), reference.evaluate)
    balls = _balls(found, start)
    for name, other in zip(made.outputs, wanted, strict=True):
        value = np.asarray(computed[found.outputs[name]])
        ball = balls[found.outputs[name]]
        radius = np.broadcast_to(ball.bound, value.shape)
        _close(name, value, np.asarray(other), radius, found.values[found.outputs[name]].dtype)


def _close(name: str, value: Array, other: Array, radius: Array, dtype: str) -> None:
    assert value.shape == other.shape, f"{name}: {value.shape}, Keras has {other.shape}"
    if DTYPES[dtype].kind != "real":
        np.testing.assert_array_equal(value, other)
        return
    value, other = value.astype(np.float64), other.astype(np.float64)
    decided = np.isfinite(radius)
    assert decided.mean() >= 0.5 or not value.size, f"{name}: {decided.mean():.0%} decided"
    finite = decided & np.isfinite(value)
    np.testing.assert_array_equal(other[decided & ~finite], value[decided & ~finite])
    scale = np.abs(value[finite]).max(initial=1)
    tight = radius[finite] <= 0.01 * scale
    assert tight.mean() >= 0.5 or not tight.size, f"{name}: radii up to {radius[finite].max()}"
    off = np.abs(value[finite] - other[finite]) - radius[finite] - np.spacing(np.abs(other[finite]))
    worst = off.max(initial=-np.inf)
    assert worst <= 0, f"{name}: {worst} beyond the radius (of at most {radius[finite].max()})"


def _balls(found: Graph, start: Mapping[str, Any]) -> dict[str, Ball]:
    """The rounding radii, every call at the precision of its own tensors."""
    balls = {name: Ball(loaded(found.values[name], item)) for name, item in start.items()}
    for node in found.nodes:
        infos = [found.values[name] for name in (*node.operands(), *node.outputs)]
        reals = [info.dtype for info in infos if info.kind == "real"]
        coarsest = max(reals, key=lambda name: DTYPES[name].unit, default="f64")
        balls.update(node_balls(node, balls, builtin(), coarsest))
    return balls
