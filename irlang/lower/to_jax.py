"""JAX: the program around a model, and how its operators are called there."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.jax_creation import CREATION
from irlang.lower.jax_layers import LAYERS
from irlang.lower.jax_matrices import MATRICES
from irlang.lower.jax_numeric import NUMERIC
from irlang.lower.jax_ops import ELEMENTS
from irlang.lower.jax_shapes import SHAPES
from irlang.lower.jax_statistics import STATISTICS
from irlang.lower.python_program import Layout
from irlang.lower.selections import JAX_SELECTIONS
from irlang.lower.spectra import JAX_SIGNALS

TABLE: dict[str, Native] = {
    **ELEMENTS, **SHAPES, **LAYERS, **CREATION, **MATRICES, **NUMERIC, **STATISTICS,
    **JAX_SIGNALS,
    **JAX_SELECTIONS,
}  # fmt: skip

LAYOUT = Layout(
    framework="JAX",
    imports="""
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

jax.config.update("jax_enable_x64", True)
""",
    helpers="""
def tensor(name, value):
    return jnp.asarray(value)


def array(name, value):
    return np.asarray(value)
""",
    bfloat16_helpers="""
def tensor(name, value):
    value = jnp.asarray(value)
    return jax.lax.bitcast_convert_type(value, jnp.bfloat16) if name in BFLOAT16 else value


def array(name, value):
    return np.asarray(
        jax.lax.bitcast_convert_type(value, jnp.uint16) if name in BFLOAT16 else value
    )
""",
    run='''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    results = {function}(*values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
''',
    gradients='''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = {{n: v for n, v in values.items() if jnp.issubdtype(v.dtype, jnp.floating)}}

    def loss(wanted):
        return {function}(*{{**values, **wanted}}.values())[-1]

    return {{name: array(name, value) for name, value in jax.grad(loss)(wanted).items()}}
''',
    watched="",
)


def layout(mode: str, release: tuple[int, ...]) -> Layout:  # noqa: ARG001 (as TensorFlow's)
    """The program's layout in a mode."""
    if mode == "jit":
        return replace(LAYOUT, framework="JAX, compiled by XLA", decorator="@jax.jit\n")
    if mode == "gpu":
        imports = LAYOUT.imports + 'jax.config.update("jax_platforms", "cuda")\n'
        return replace(LAYOUT, framework="JAX, on a GPU", imports=imports)
    return LAYOUT
