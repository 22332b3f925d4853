"""JAX: the program around a model, and how its operators are called there."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.chance import JAX as CHANCE
from irlang.lower.jax_creation import CREATION
from irlang.lower.jax_lax import WORDS as LAX
from irlang.lower.jax_lax_shapes import WORDS as LAX_SHAPES
from irlang.lower.jax_layers import LAYERS
from irlang.lower.jax_matrices import MATRICES
from irlang.lower.jax_numeric import NUMERIC
from irlang.lower.jax_ops import ELEMENTS
from irlang.lower.jax_places import PLACES
from irlang.lower.jax_shapes import SHAPES
from irlang.lower.jax_statistics import STATISTICS
from irlang.lower.jax_words import WORDS
from irlang.lower.python_program import Layout, Slopes
from irlang.lower.selections import JAX_SELECTIONS
from irlang.lower.spectra import JAX_SIGNALS
from irlang.lower.spelling import with_words
from irlang.lower.transforms import jax_transformed

_ROWS: dict[str, Native] = {
    **ELEMENTS, **SHAPES, **LAYERS, **CREATION, **MATRICES, **NUMERIC, **STATISTICS,
    **JAX_SIGNALS,
    **JAX_SELECTIONS,
    **CHANCE,
}  # fmt: skip
TABLE = with_words(_ROWS, WORDS, PLACES, LAX, LAX_SHAPES)

# What flows back to values inside of a function, which JAX differentiates as a whole.
TAPPED = '''
SHOWN, TAPS = {{}}, {{}}


@jax.custom_vjp
def tapped(value, tap):
    """The value; what flows back to it flows back to the tap, too."""
    return value


tapped.defvjp(lambda value, tap: (value, None), lambda _, slope: (slope, slope))


def watched(name, value):
    """The value, by which is differentiated where there is a tap of its name."""
    SHOWN[name] = value
    return tapped(value, TAPS[name]) if name in TAPS else value
'''
TAKEN = """
    {function}(*values.values())
    places = {places}
    taps = {{n: jax.numpy.zeros_like(SHOWN[p]) for n, p in places.items() if p in SHOWN}}

    def loss(wanted, taps):
        TAPS.update((places[name], tap) for name, tap in taps.items())
        return {function}(*{{**values, **wanted}}.values())[-1]

    found, inner = jax.grad(loss, (0, 1))(wanted, taps)
    TAPS.clear()
    return {{name: array(name, value) for name, value in {{**found, **inner}}.items()}}
"""
_WATCHED = (
    TAPPED
    + '''

def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs, parameters and results."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = {{n: v for n, v in values.items() if jnp.issubdtype(v.dtype, jnp.floating)}}
'''
    + TAKEN.strip("\n")
    + "\n"
)

_SLOPES = Slopes(
    taken="(_, [{results}]), [{slopes}] = "
    "jax.value_and_grad({function}, {places}, has_aux=True)({arguments})",
    function=True,
)

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
    watched=_WATCHED,
    slopes=_SLOPES,
)

_FIXED = '''
def run(inputs, params):
    """The outputs as arrays by name; the parameters are constants."""

    def fixed(*values):
        return {function}(*values, *(tensor(name, params[name]) for name in PARAMS))

    values = [tensor(name, inputs[name]) for name in INPUTS]
    results = jax.jit(fixed)(*values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
'''

_GPU = """\
jax.config.update("jax_platforms", "cuda")
jax.config.update("jax_default_matmul_precision", "{}")
"""
# By default XLA may compute products of f32 in TF32.
_PRECISIONS = {"gpu": "highest", "tf32": "tensorfloat32"}


def layout(mode: str, release: tuple[int, ...]) -> Layout:  # noqa: ARG001 (as TensorFlow's)
    """The program's layout in a mode."""
    if mode == "jit":
        return replace(
            LAYOUT, framework="JAX, compiled by XLA", decorator="@jax.jit\n", fixed=_FIXED
        )
    if mode in ("vmap", "forward"):
        return jax_transformed(LAYOUT, mode)
    if mode in _PRECISIONS:
        imports = LAYOUT.imports + _GPU.format(_PRECISIONS[mode])
        return replace(LAYOUT, framework="JAX, on a GPU", imports=imports)
    return LAYOUT
