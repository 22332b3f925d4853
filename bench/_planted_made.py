"""How faults of `bench.planted` are put into one framework's functions, as most of them are.

Helpers beside those of `_planted_faults`: `edited(holder, name, old, new)` changes a method's
source, `rewritten(op_type, change)` what ONNX Runtime computes for a node.
"""

from __future__ import annotations

import textwrap

from bench._planted_faults import Fault

_WRONG = """
def make(right):
    def wrong(*args, **options):
{body}
    return wrong
for holder, name in ({where},):
    replace(holder, (name,), make)
"""

_AFTER = """
def change(node, add, known, number):
    x, y = node.input[0], node.output[0]
    kind, shape = known(y)
{body}
rewritten({op!r}, change)
"""


def _fault(
    target: str, op: str, others: str, where: str, body: str, *, grad: bool = False
) -> Fault:
    body = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return Fault(target, f"{op},{others}", (op,), _WRONG.format(where=where, body=body), grad)


def on_torch(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("torch", op, others, where, body, grad=grad)


def on_tf(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("tf", op, others, where, body, grad=grad)


def on_jax(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("jax", op, others, where, body, grad=grad)


def on_keras(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("keras:tensorflow", op, others, where, body, grad=grad)


def step(target: str, op: str, others: str, method: str, old: str, new: str) -> Fault:
    """Another line in a method of an optimizer."""
    code = f"edited(keras.optimizers.{method}, 'update_step', {old!r}, {new!r})\n"
    return Fault(target, f"{op},{others}", (op,), code)


def on_onnx(op: str, others: str, node: str, body: str) -> Fault:
    """`change` gives the name of what is to be read in the place of the node's result."""
    body = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    return Fault("onnxruntime", f"{op},{others}", (op,), _AFTER.format(body=body, op=node))
