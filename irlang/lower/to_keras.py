"""Keras: the program around a model, on each of its backends, and how operators are called."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.chance import KERAS as CHANCE
from irlang.lower.keras_attention import ATTENTION
from irlang.lower.keras_backends import BACKENDS
from irlang.lower.keras_creation import CREATION
from irlang.lower.keras_further import WORDS as FURTHER
from irlang.lower.keras_layers import LAYERS
from irlang.lower.keras_losses import LOSSES
from irlang.lower.keras_losses import WORDS as LOSS_WORDS
from irlang.lower.keras_matrices import MATRICES
from irlang.lower.keras_numeric import NUMERIC
from irlang.lower.keras_ops import ELEMENTS
from irlang.lower.keras_places import PLACES
from irlang.lower.keras_recurrent import RECURRENT
from irlang.lower.keras_statistics import STATISTICS
from irlang.lower.keras_windows import WINDOWS
from irlang.lower.keras_words import WORDS
from irlang.lower.python_program import Layout
from irlang.lower.selections import KERAS_SELECTIONS
from irlang.lower.spectra import KERAS_SIGNALS
from irlang.lower.spelling import with_words
from irlang.lower.tf_optimizers import KERAS as OPTIMIZERS
from irlang.lower.to_jax import TAKEN, TAPPED

_ROWS: dict[str, Native] = {
    **ELEMENTS, **PLACES, **LAYERS, **WINDOWS, **RECURRENT, **LOSSES, **CREATION,
    **MATRICES, **NUMERIC, **STATISTICS, **OPTIMIZERS, **ATTENTION,
    **KERAS_SIGNALS, **KERAS_SELECTIONS, **CHANCE,
}  # fmt: skip
TABLE = with_words(_ROWS, WORDS, LOSS_WORDS, FURTHER)

_APPLIED = '''
def applied(layer, weights, *inputs, **options):
    """What a layer gives with these weights."""
    if not layer.built:
        layer.build(tuple(inputs[0].shape))
    for own, weight in zip(layer.weights, weights):
        if tuple(own.shape) != tuple(weight.shape):  # as `set_weights` does
            raise ValueError(f"a weight of shape {own.shape}, not {weight.shape}")
    with keras.StatelessScope(list(zip(layer.weights, weights))):
        return layer(*inputs, **options)
'''

_LAYOUT = Layout(
    framework="Keras",
    imports="",
    helpers=f"""
def tensor(name, value):
    return ops.convert_to_tensor(value)


def array(name, value):
    return ops.convert_to_numpy(value)


def is_real(name, value):
    return value.dtype.kind == "f"

{_APPLIED}
""",
    bfloat16_helpers=f"""
def tensor(name, value):
    if name not in BFLOAT16:
        return ops.convert_to_tensor(value)
    return ops.cast((value.astype(np.uint32) << np.uint32(16)).view(np.float32), "bfloat16")


def array(name, value):
    if keras.backend.standardize_dtype(value.dtype) != "bfloat16":
        return ops.convert_to_numpy(value)
    value = np.asarray(ops.convert_to_numpy(ops.cast(value, "float32")))
    return (value.view(np.uint32) >> 16).astype(np.uint16)


def is_real(name, value):
    return value.dtype.kind == "f" or name in BFLOAT16

{_APPLIED}
""",
    run='''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    results = {function}(*values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
''',
    gradients="",
    watched="",
)
_HEAD = '''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    import %s

    given = {{**{{n: inputs[n] for n in INPUTS}}, **{{n: params[n] for n in PARAMS}}}}
    values = {{name: tensor(name, value) for name, value in given.items()}}
    wanted = {{name: values[name] for name, value in given.items() if is_real(name, value)}}
'''
_TAPE = (
    _HEAD % "tensorflow as tf"
    + """\
    with tf.GradientTape() as tape:
        tape.watch(list(wanted.values()))
        *results, loss = {function}(*values.values())
    found = tape.gradient(loss, wanted, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return {{name: array(name, tf.convert_to_tensor(value)) for name, value in found.items()}}
"""
)
_GRADIENTS = {
    "tensorflow": _TAPE,
    "torch": _HEAD % "torch" + """\
    for name, value in wanted.items():
        values[name] = value.clone().requires_grad_()
    *_, loss = {function}(*values.values())
    found = [None] * len(wanted)
    if loss.requires_grad:  # it may depend on none of them
        found = torch.autograd.grad(loss, [values[name] for name in wanted], allow_unused=True)
    pairs = zip(wanted.items(), found)
    found = {{n: ops.zeros_like(value) if g is None else g for (n, value), g in pairs}}
    return {{name: array(name, value) for name, value in found.items()}}
""",
    "jax": _HEAD % "jax" + """\

    def loss(wanted):
        return {function}(*{{**values, **wanted}}.values())[-1]

    return {{name: array(name, value) for name, value in jax.grad(loss)(wanted).items()}}
""",
}  # fmt: skip
_TAPE_WATCHED = _TAPE.replace(
    "    found = tape.gradient(loss, wanted, unconnected_gradients=tf.UnconnectedGradients.ZERO)\n",
    """\
    inner = {{n: v for n, v in zip(OUTPUTS, results) if tf.as_dtype(v.dtype).is_floating}}
    found = tape.gradient(loss, {{**wanted, **inner}})  # None: nothing connects the two
    found.update((n, ops.zeros_like(value)) for n, value in wanted.items() if found[n] is None)
    found = {{n: value for n, value in found.items() if value is not None}}
""",
)
_TORCH_WATCHED = (
    _GRADIENTS["torch"]
    .replace("*_, loss", "*results, loss")
    .replace(
        "    found = [None]",
        "    wanted.update((n, v) for n, v in zip(OUTPUTS, results) if v.requires_grad)\n"
        "    found = [None]",
    )
    .replace("[values[name] for name in wanted]", "[values.get(n, wanted[n]) for n in wanted]")
)
_JAX_WATCHED = "import jax\n\n" + TAPPED + "\n" + _HEAD % "jax" + TAKEN.strip("\n") + "\n"
_WATCHED = {"tensorflow": _TAPE_WATCHED, "torch": _TORCH_WATCHED, "jax": _JAX_WATCHED}
_IMPORTS = """
import os
import sys
from pathlib import Path

{environment}

import keras
import numpy as np
from keras import ops
"""


# Symbols are traced with all sizes known, without the batch's, and with none.
_INFERRED = '''
def inferred(*values):
    """The results; empty ones of the shape that Keras infers for symbols, where that is another."""
    results = list({function}(*values))
    for known in (
        lambda shape: shape,
        lambda shape: shape and (None, *shape[1:]),
        lambda shape: (None,) * len(shape),
    ):
        given = [symbol(known(tuple(value.shape)), value) for value in values]
        try:
            said = {function}(*given)
        except (TypeError, ValueError, NotImplementedError, AttributeError, tf.errors.OpError):
            continue  # what is not known is asked for, or no symbol is taken here
        for place, symbolic in enumerate(said):
            results[place] = agreed(results[place], symbolic)
    return results


def symbol(shape, value):
    """A symbol for a tensor of real numbers; others are what they are."""
    dtype = keras.backend.standardize_dtype(value.dtype)
    return keras.KerasTensor(shape, dtype) if value.dtype.is_floating else value


def agreed(value, said):
    """The value, unless what is said of it is another shape or type."""
    if not isinstance(said, keras.KerasTensor):
        return value
    shape, dtype = tuple(said.shape), keras.backend.standardize_dtype(said.dtype)
    pairs = zip(shape, value.shape)
    alike = len(shape) == len(value.shape) and all(a is None or a == b for a, b in pairs)
    if alike and dtype == keras.backend.standardize_dtype(value.dtype):
        return value
    return ops.zeros([0 if size is None else size for size in shape], dtype)
'''
_SYMBOLIC = """\
    if any(isinstance(value, keras.KerasTensor) for value in inputs):
        return layer(*inputs, **options)
    if not layer.built:"""


def layout(mode: str, release: tuple[int, ...]) -> Layout:
    """The program's layout on a backend."""
    backend = BACKENDS[mode]
    if mode == "shapes":
        symbolic = {
            name: getattr(_LAYOUT, name).replace("    if not layer.built:", _SYMBOLIC)
            for name in ("helpers", "bfloat16_helpers")
        }
        plain = layout("tensorflow", release)
        return replace(
            plain, framework="Keras, by the shapes that it infers", wrapper=_INFERRED,
            imports=plain.imports + "import tensorflow as tf\n", wrapped="inferred", gradients="",
            watched="", **symbolic,
        )  # fmt: skip
    variables = (f'os.environ["{key}"] = "{value}"' for key, value in backend.environment.items())
    return replace(
        _LAYOUT,
        framework=f"Keras with its backend {backend.name}",
        imports=_IMPORTS.format(environment="\n".join(variables)),
        gradients=_GRADIENTS[mode],
        watched=_WATCHED[mode],
    )
