"""TensorFlow: the program around a model, and how its operators are called there."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.chance import TF
from irlang.lower.python_program import Layout, Slopes
from irlang.lower.selections import TF_SELECTIONS
from irlang.lower.sparse import TF_SPARSE
from irlang.lower.spectra import TF_SIGNALS
from irlang.lower.spelling import with_words
from irlang.lower.tf_backward import BACKWARD
from irlang.lower.tf_creation import CREATION
from irlang.lower.tf_derivatives import DERIVATIVE_WORDS, DERIVATIVES
from irlang.lower.tf_elements import ROWS_BY_PLACES
from irlang.lower.tf_further import FURTHER
from irlang.lower.tf_images import IMAGE_WORDS, IMAGES
from irlang.lower.tf_kernels import KERNELS
from irlang.lower.tf_layer_words import WORDS as LAYER_WORDS
from irlang.lower.tf_layers import LAYERS
from irlang.lower.tf_matrices import MATRICES
from irlang.lower.tf_numeric import NUMERIC
from irlang.lower.tf_numpy import NUMPY
from irlang.lower.tf_ops import ELEMENTS
from irlang.lower.tf_optimizers import OPTIMIZERS
from irlang.lower.tf_options import OPTIONS
from irlang.lower.tf_places import PLACES
from irlang.lower.tf_quantization import QUANTIZATION
from irlang.lower.tf_ranged import RANGED, RANGED_WORDS
from irlang.lower.tf_raw import RAW
from irlang.lower.tf_recurrent import RECURRENT
from irlang.lower.tf_rows import ROWS
from irlang.lower.tf_statistics import STATISTICS
from irlang.lower.tf_words import WORDS
from irlang.lower.transforms import tf_batched

_ROWS: dict[str, Native] = {
    **ELEMENTS,
    **PLACES,
    **LAYERS,
    **CREATION,
    **MATRICES,
    **NUMERIC,
    **NUMPY,
    **STATISTICS,
    **IMAGES,
    **TF_SIGNALS,
    **TF_SELECTIONS,
    **QUANTIZATION,
    **RANGED,
    **ROWS,
    **ROWS_BY_PLACES,
    **BACKWARD,
    **DERIVATIVES,
    **TF_SPARSE,
    **TF,
    **OPTIMIZERS,
    **RECURRENT,
}
TABLE = with_words(
    _ROWS,
    WORDS,
    LAYER_WORDS,
    OPTIONS,
    IMAGE_WORDS,
    DERIVATIVE_WORDS,
    KERNELS,
    RAW,
    RANGED_WORDS,
    FURTHER,
)

_SLOPES = Slopes(
    within="with tf.GradientTape() as tape:\n    tape.watch([{wanted}])",
    taken='[{slopes}] = tape.gradient({loss}, [{wanted}], unconnected_gradients="zero")',
    slope="tf.convert_to_tensor({slope})",  # some are given by their rows
)

LAYOUT = Layout(
    framework="TensorFlow",
    imports="""
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
""",
    helpers="""
def tensor(name, value):
    return tf.constant(value)


def array(name, value):
    return value.numpy()
""",
    bfloat16_helpers="""
def tensor(name, value):
    value = tf.constant(value)
    return tf.bitcast(value, tf.bfloat16) if name in BFLOAT16 else value


def array(name, value):
    kept = name in BFLOAT16 and value.dtype == tf.bfloat16
    return (tf.bitcast(value, tf.uint16) if kept else value).numpy()
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
    wanted = {{name: value for name, value in values.items() if value.dtype.is_floating}}
    with tf.GradientTape() as tape:
        tape.watch(list(wanted.values()))
        *_, loss = {function}(*values.values())
    found = tape.gradient(loss, wanted, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return {{name: array(name, tf.convert_to_tensor(value)) for name, value in found.items()}}
''',
    watched='''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs, parameters and results."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = {{name: value for name, value in values.items() if value.dtype.is_floating}}
    with tf.GradientTape() as tape:
        tape.watch(list(wanted.values()))
        *results, loss = {function}(*values.values())
    inner = {{n: value for n, value in zip(OUTPUTS, results) if value.dtype.is_floating}}
    found = tape.gradient(loss, {{**wanted, **inner}})  # None: nothing connects the two
    found.update((n, tf.zeros_like(value)) for n, value in wanted.items() if found[n] is None)
    known = {{n: value for n, value in found.items() if value is not None}}
    return {{name: array(name, tf.convert_to_tensor(value)) for name, value in known.items()}}
''',
    slopes=_SLOPES,
)


def layout(mode: str, release: tuple[int, ...]) -> Layout:
    """The program's layout in a mode of a release.

    Where functions are traced there is no control flow in Python for AutoGraph to convert, which
    takes as long as XLA over a small program, and half of the time of TensorFlow Lite.
    """
    if mode == "graph":
        return _traced("TensorFlow, as a graph", "autograph=False")
    if mode == "xla":
        option = "jit_compile" if release >= (2, 5) else "experimental_compile"
        return _traced("TensorFlow, compiled by XLA", f"autograph=False, {option}=True")
    if mode in ("gpu", "tf32"):
        imports = LAYOUT.imports + _GPU.format(mode == "tf32")
        return replace(LAYOUT, framework="TensorFlow, on a GPU", imports=imports)
    if mode == "vmap":
        return tf_batched(LAYOUT)
    if mode == "shapes":
        return replace(
            LAYOUT, framework="TensorFlow, by the shapes that it infers", wrapper=_INFERRED,
            wrapped="inferred", gradients="", watched="",
        )  # fmt: skip
    if mode == "tflite":
        return replace(
            LAYOUT, framework="TensorFlow Lite", wrapper=_CONVERTED,
            run=LAYOUT.run.replace("{function}(*values)", "converted({function}, values)"),
            fixed=_FIXED.format("converted(fixed, values)"), gradients="", watched="",
        )  # fmt: skip
    return LAYOUT


def _traced(framework: str, options: str) -> Layout:
    """The layout of programs whose function is traced."""
    traced = replace(
        LAYOUT, framework=framework, decorator=f"@tf.function({options})\n",
        fixed=_FIXED.format(f"tf.function(fixed, {options})(*values)"),
    )  # fmt: skip
    loose = replace(
        LAYOUT, framework=f"{framework} for inputs of any size", gradients="", watched="",
        wrapper=_LOOSE.replace("OPTIONS", options), wrapped="loosened",
    )  # fmt: skip
    return replace(traced, loose=loose)


_LOOSE = '''
def loosened(*values):
    """The results of the function as it is traced where no size of an input is known, or only the
    first is not, where it wants to know more.
    """
    for known in (lambda shape: [None] * len(shape), lambda shape: shape and [None, *shape[1:]]):
        specs = [tf.TensorSpec(known(v.shape.as_list()), v.dtype) for v in values[:len(INPUTS)]]
        specs += [tf.TensorSpec(v.shape, v.dtype) for v in values[len(INPUTS):]]
        try:
            traced = tf.function({function}, OPTIONS).get_concrete_function(*specs)
        except (TypeError, ValueError, tf.errors.OpError):
            continue
        return traced(*values)
    return tf.function({function}, OPTIONS)(*values)
'''


_FIXED = '''
def run(inputs, params):
    """The outputs as arrays by name; the parameters are constants."""

    def fixed(*values):
        return {{function}}(*values, *(tensor(name, params[name]) for name in PARAMS))

    values = [tensor(name, inputs[name]) for name in INPUTS]
    results = {}
    return {{{{name: array(name, value) for name, value in zip(OUTPUTS, results)}}}}
'''


# By default it is enabled, and costs products 13 of 24 digits.
_GPU = "\ntf.config.experimental.enable_tensor_float_32_execution({})\n"

# What a traced function says of its results' shapes, where all sizes of arguments are known, the
# first is not, none is, and not even their number.
_INFERRED = '''
def inferred(*values):
    """The results; empty ones of the shape that tracing infers, where that is another."""
    results = list({function}(*values))
    for known in (
        lambda shape: shape,
        lambda shape: shape and [None, *shape[1:]],
        lambda shape: [None] * len(shape),
        lambda shape: None,
    ):
        specs = [tf.TensorSpec(known(v.shape.as_list()), v.dtype) for v in values]
        try:
            traced = tf.function({function}, autograph=False).get_concrete_function(*specs)
        except (TypeError, ValueError, tf.errors.OpError):
            if specs == [tf.TensorSpec(v.shape, v.dtype) for v in values]:
                raise
            continue  # some functions want to know more
        for place, said in enumerate(tf.nest.flatten(traced.structured_outputs)):
            value = results[place]
            if said.dtype != value.dtype or not value.shape.is_compatible_with(said.shape):
                shape = said.shape.as_list()
                results[place] = tf.zeros([size or 0 for size in shape], said.dtype)
    return results
'''
# Without a module that keeps variables, of which there are none: the converter does not write the
# function to a disk and read it again then, and takes a third of the time.
_CONVERTED = '''
def converted(function, values):
    """What TensorFlow Lite's interpreter gives for the values, of the converted function."""
    specs = [tf.TensorSpec(v.shape, v.dtype, f"value{{i}}") for i, v in enumerate(values)]
    traced = tf.function(function, autograph=False).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced])
    interpreter = tf.lite.Interpreter(model_content=converter.convert(), num_threads=1)
    interpreter.allocate_tensors()
    given = {{f"value{{i}}": value for i, value in enumerate(values)}}
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], given[detail["name"]])
    interpreter.invoke()
    places = [detail["index"] for detail in interpreter.get_output_details()]
    return [tf.constant(interpreter.get_tensor(place)) for place in places]
'''
