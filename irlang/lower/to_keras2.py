"""Keras 2: the program around a model, on Theano and inside TensorFlow."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower import to_keras, to_tf
from irlang.lower.call import Native
from irlang.lower.python_program import Layout
from irlang.lower.spelling import default
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.theano_ops import BACKEND

_OLD = {name: row for name, row in to_keras.TABLE.items() if row.since < (3,)}
# The rows of others whose layers and losses Keras 2.3 has in the same words, and activations.
_ON_THEANO = (
    "conv_transpose depthwise_conv separable_conv add_n multiply_n maximum_n minimum_n concat selu "
    "sigmoid softplus softsign gaussian_noise gaussian_dropout alpha_dropout"
)
THEANO: dict[str, Native] = {
    **BACKEND,
    **_OLD,
    **{name: replace(to_keras.TABLE[name], since=()) for name in _ON_THEANO.split()},
    "hard_sigmoid": default("keras.activations.hard_sigmoid", alpha=0.2, beta=0.5),
}
# The release of TensorFlow from which its Keras has the layers of other rows, in the same words.
_SINCE = {
    (2, 4): "conv_transpose depthwise_conv separable_conv layer_norm cosine_similarity "
    "gaussian_noise gaussian_dropout alpha_dropout simple_rnn_cell gru_cell lstm_cell",
    (2, 12): "group_norm l2_normalize attention additive_attention",
}
_LATER: dict[str, Native] = {
    name: replace(to_keras.TABLE[name], since=release)
    for release, names in _SINCE.items()
    for name in names.split()
}
TENSORFLOW: dict[str, Native] = {**to_tf.TABLE, **_OLD, **_LATER}


class OldKerasBuilder(TensorFlowBuilder):
    """TensorFlow's words, beside which its Keras stands."""


_APPLIED = '''


def applied(layer, weights, *inputs, **options):
    """What a layer gives with these weights, which are put in the places of its own."""
    if not layer.built:
        layer.build(inputs[0].shape)
    places = {}
    for own, weight in zip(layer.weights, weights):
        if own.shape != weight.shape:  # as `set_weights` does
            raise ValueError(f"a weight of shape {own.shape}, not {weight.shape}")
        places[id(own)] = tf.cast(weight, own.dtype)  # some of half precision stay in single
    for part in (layer, *layer.submodules):
        for name, own in list(vars(part).items()):
            if id(own) in places:
                object.__setattr__(part, name, places[id(own)])
    return layer(*inputs, **options)
'''

_THEANO_HELPERS = '''
def tensor(value):
    return theano.shared(value, broadcastable=[size == 1 for size in value.shape])


def thunk(op, node, storage_map, compute_map, no_recycling, impl=None):
    """What computes an operator: Python, as compiling takes seconds, unless it has to be C."""
    impl = "c" if isinstance(op, COMPILED) else "py"
    op.prepare_node(node, storage_map, compute_map, impl)
    make = op.make_c_thunk if impl == "c" else op.make_py_thunk
    return make(node, storage_map, compute_map, no_recycling)


# Convolutions have no form in Python, and that of pools needs an older NumPy.
COMPILED = (corr.BaseCorrMM, corr3d.BaseCorr3dMM, pool.Pool, pool.PoolGrad)
theano.Op.make_thunk = thunk


def computed(results):
    """The values of expressions, optimised as is usual: not very many, nor loops.

    The first takes minutes, the second a compiler. What is fused would be computed in Python one
    number after another.
    """
    results = [T.as_tensor_variable(result) for result in results]
    nodes = gof.graph.ops([], results)
    usual = len(nodes) <= 512 and not any(isinstance(node.op, Scan) for node in nodes)
    name = "FAST_RUN" if usual else "FAST_COMPILE"
    mode = theano.compile.get_mode(name).excluding("fusion")
    return theano.function([], results, mode=mode, no_default_updates=True)()


def shaped(x, shape):
    """A tensor of which Keras knows the shape, as it does of what layers give."""
    x._keras_shape = shape
    return x


def applied(layer, weights, *inputs, **options):
    """What a layer gives with these weights; inputs are pairs of a tensor and its shape."""
    given = [keras.layers.Input(batch_shape=shape, dtype=x.dtype) for x, shape in inputs]
    result = layer(given if len(given) > 1 else given[0], **options)
    new = map(T.as_tensor_variable, [*(x for x, _ in inputs), *weights])
    pairs = zip([*given, *layer.weights], new)
    places = {own: T.unbroadcast(value, *range(value.ndim)) for own, value in pairs}
    return theano.clone(result, places)
'''
_GRADIENTS = '''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(inputs[name]) for name in INPUTS}}
    values.update((name, tensor(params[name])) for name in PARAMS)
    wanted = {{name: v for name, v in values.items() if v.dtype.startswith("float")}}
    *_, loss = {function}(*values.values())
    found = T.grad(loss, list(wanted.values()), disconnected_inputs="ignore")
    return dict(zip(wanted, computed(found)))
'''
_OF_RESULTS = """
    wanted.update((n, v) for n, v in zip(OUTPUTS, results) if v.dtype in ("float32", "float64"))
    found ="""
_WATCHED = _GRADIENTS.replace("*_, loss", "*results, loss").replace("\n    found =", _OF_RESULTS)
_THEANO = Layout(
    framework="Keras 2 on Theano",
    imports="""
import collections
import collections.abc
import os
import sys
from pathlib import Path

collections.Iterable = collections.abc.Iterable  # which Keras 2.3 looks for there
os.environ["KERAS_BACKEND"] = "theano"
os.environ["THEANO_FLAGS"] = "blas.ldflags=,floatX=float32,optimizer_excluding=fusion"

import keras
import numpy as np
import theano
import theano.tensor as T
from keras import backend as K
from theano import gof
from theano.scan_module.scan_op import Scan
from theano.tensor.nnet import corr
from theano.tensor.nnet import corr3d
from theano.tensor.signal import pool
""",
    helpers=_THEANO_HELPERS,
    bfloat16_helpers=_THEANO_HELPERS,
    run='''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(inputs[name]) for name in INPUTS]
    values += [tensor(params[name]) for name in PARAMS]
    results = {function}(*values)
    return dict(zip(OUTPUTS, computed(results[: len(OUTPUTS)])))
''',
    gradients=_GRADIENTS,
    watched=_WATCHED,
)


def layout(mode: str, release: tuple[int, ...]) -> Layout:
    """The program's layout: inside TensorFlow, unless on Theano."""
    if mode == "theano":
        return _THEANO
    plain = to_tf.layout("", release)
    helpers = plain.helpers.rstrip("\n") + _APPLIED
    wide = plain.bfloat16_helpers.rstrip("\n") + _APPLIED
    return replace(plain, framework="TensorFlow's Keras", helpers=helpers, bfloat16_helpers=wide)
