"""MXNet: the program around a model."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.python_program import Layout, Slopes

_HELPERS = '''
def tensor(name, value):
    return mx.np.array(value, dtype=value.dtype)


def array(name, value):
    return value.asnumpy()


def where(condition, yes, no):
    """Element by element, of tensors of one shape."""
    values = (value.as_nd_ndarray() for value in (condition, yes, no))
    return mx.nd.where(*values).as_np_ndarray()
'''
# What the gradients of a program begin with, and what its loss is made.
_LEAVES = """\
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = {{n: v for n, v in values.items() if np.dtype(v.dtype).kind == "f"}}
    for value in wanted.values():
        value.attach_grad()
    with mx.autograd.record():
"""
_BACKWARD = "    loss.backward()\n"
_ROOT = (
    """\
        root = mx.np.zeros_like(loss)  # by which there is a derivative, if by nothing else
        root.attach_grad()
        loss = loss + root
"""
    + _BACKWARD
)
# By what is computed MXNet has no gradient; by what is taken from it, it has.
_WATCHED = (
    '''
ZEROS = {{}}


def shown(value):
    """The value less a zero, the gradient by which is its own, negated."""
    zero = mx.np.zeros_like(value)
    zero.attach_grad()
    result = value - zero
    ZEROS[id(result)] = result, zero
    return result


def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs, parameters and results."""
'''
    + _LEAVES
    + """        *results, loss = {function}(*values.values())
"""
    + _ROOT
    + """    found = {{name: array(name, value.grad) for name, value in wanted.items()}}
    pairs = {{n: ZEROS[id(v)] for n, v in zip(OUTPUTS, results) if id(v) in ZEROS}}
    found.update((name, -array(name, zero.grad)) for name, (_, zero) in pairs.items())
    return found
"""
)
_SLOPES = Slopes(
    within="for leaf in [{wanted}]:\n    leaf.attach_grad()\nwith mx.autograd.record():",
    taken="{loss}.backward()\n[{slopes}] = [leaf.grad for leaf in [{wanted}]]",
)
LAYOUT = Layout(
    framework="MXNet",
    imports="""
import sys
from pathlib import Path

import mxnet as mx
import numpy as np

mx.npx.set_np()
""",
    helpers=_HELPERS,
    bfloat16_helpers=_HELPERS,
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
'''
    + _LEAVES
    + """        *_, loss = {function}(*values.values())
"""
    + _ROOT
    + """    return {{name: array(name, value.grad) for name, value in wanted.items()}}
""",
    watched=_WATCHED,
    slopes=_SLOPES,
)


# The function is traced for symbols, of which MXNet makes a graph: equal expressions are one there,
# and memory is shared. `mx` is then the module of their functions.
_HYBRID = '''
class Block(mx.gluon.HybridBlock):
    """The function, of which MXNet makes a graph."""

    def hybrid_forward(self, F, *values):
        global mx
        usual, mx = mx, F
        try:
            return {function}(*values)
        finally:
            mx = usual


def hybrid(*values):
    """The results of the graph."""
    block = Block()
    block.hybridize()
    return block(*values)
'''


def _again(usual: Layout) -> Layout:
    """The same, where gradients are taken by halves, of which the second is added to the first:
    what asks for that (`grad_req`) is told every operator, and some overwrite what is there.
    """
    halves = "for _ in range(2):\n    {0}.backward(mx.np.ones_like({0}) / 2, retain_graph=True)\n"
    lines = "".join(f"    {line}\n" for line in halves.format("loss").splitlines())

    def added(text: str) -> str:
        return text.replace("attach_grad()", 'attach_grad("add")').replace(_BACKWARD, lines)

    slopes = Slopes(
        within=added(_SLOPES.within),
        taken=_SLOPES.taken.replace("{loss}.backward()\n", halves.format("{loss}")),
    )
    return replace(
        usual, gradients=added(usual.gradients), watched=added(usual.watched), slopes=slopes
    )


_HYBRIDIZED = replace(
    LAYOUT, framework="MXNet, hybridized", wrapper=_HYBRID, wrapped="hybrid", watched=""
)
_USUAL, _GRAPH = (replace(one, again=_again(one)) for one in (LAYOUT, _HYBRIDIZED))


def layout(mode: str, release: tuple[int, ...]) -> Layout:  # noqa: ARG001 (as TensorFlow's)
    """The program's layout in a mode."""
    return _GRAPH if mode == "hybrid" else _USUAL
