"""What puts a fault of `bench.planted` into a framework: a `sitecustomize.py` for its workers."""

from __future__ import annotations

import textwrap

from bench._planted_faults import Fault

_MODULES = {
    "torch": "torch",
    "tf": "tensorflow",
    "onnxruntime": "onnxruntime",
    "jax": "jax",
    "keras:tensorflow": "keras",
}

# What the code of faults may name, beside `replace` and `edited`. `sloped(x)` is x, what flows back
# to which is 1 + 1e-4 times what it should be.
_TORCH = """
import torch, torch.nn.functional as F
import torch.nn.grad
class _Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return g * (1 + 1e-4)
def sloped(x):
    return _Slope.apply(x) if x.requires_grad else x
"""

_TF = """
import tensorflow as tf, keras
@tf.custom_gradient
def sloped(x):
    return tf.identity(x), lambda g: g * (1 + 1e-4)
"""

_JAX = """
import jax, jax.numpy as jnp, jax.scipy.special, jax.scipy.ndimage
@jax.custom_vjp
def sloped(x):
    return x
sloped.defvjp(lambda x: (x, None), lambda _, g: (g * (1 + 1e-4),))
"""

# `rewritten(op_type, change)` has `change(node, add, known, number)` called for every node of a
# type: it adds others, and gives the name of what is read in the place of the node's result, or
# None. known(name) is a type and a shape, as far as they are inferred.
_ONNX = """
import numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper
_held = {}
def constant(name):
    return numpy_helper.to_array(_held[name]).item() if name in _held else None
def ints(number, values):
    return number(values, 7)
def joined(add, number, y, axis, n):
    ends = [ints(number, [v]) for v in (0, 1, n - 1, axis)]
    return add("Concat", add("Slice", y, ends[0], ends[2], ends[3]),
               add("Slice", y, ends[0], ends[1], ends[3]), axis=axis)
def _rewrite(model, op_type, change):
    made = onnx.load_from_string(model)
    graph, nodes = made.graph, []
    try:
        inferred = onnx.shape_inference.infer_shapes(made).graph
    except Exception:
        return model
    types = {v.name: v.type.tensor_type
             for v in [*inferred.value_info, *graph.input, *graph.output]}
    _held.clear()
    _held.update({one.name: one for one in graph.initializer})
    def known(name):
        if name in _held:
            return _held[name].data_type, tuple(_held[name].dims)
        if name not in types:
            return 0, None
        kind = types[name]
        return kind.elem_type, tuple(d.dim_value for d in kind.shape.dim)
    def add(kind, *given, **attributes):
        name = f"planted_{len(nodes)}"
        domain = attributes.pop("domain", "")
        nodes.append(helper.make_node(kind, given, [name], name, domain=domain, **attributes))
        return name
    def number(value, kind):
        name = f"planted_number_{len(graph.initializer)}"
        array = np.array(value, helper.tensor_dtype_to_np_dtype(kind))
        graph.initializer.append(numpy_helper.from_array(array, name))
        return name
    for node in list(graph.node):
        nodes.append(node)
        if node.op_type != op_type:
            continue
        said, right = node.output[0], f"{node.output[0]}_right"
        types[right] = types.get(said, onnx.TypeProto.Tensor())
        node.output[0] = right
        wrong = change(node, add, known, number) if known(right)[0] else None
        if wrong is None:
            node.output[0] = said
            if known(said)[0] == 0:
                types.pop(right)
        else:
            nodes.append(helper.make_node("Identity", [wrong], [said], f"{said}_planted"))
    del graph.node[:]
    graph.node.extend(nodes)
    return made.SerializeToString()
def rewritten(op_type, change):
    def make(right):
        class Session(right):
            def __init__(self, model, *rest, **options):
                if isinstance(model, bytes):
                    model = _rewrite(model, op_type, change)
                super().__init__(model, *rest, **options)
        return Session
    replace(ort, ("InferenceSession",), make)
"""

_NAMES = {
    "torch": _TORCH,
    "tf": _TF,
    "onnxruntime": _ONNX,
    "jax": _JAX,
    "keras:tensorflow": _TF,
}

# Runs at the start of every Python that finds it; does something once the framework is imported.
_HOOK = """
import importlib.util, sys
class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader = spec.loader
        right = loader.exec_module
        def exec_module(module):
            right(module)
            _plant()
        loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, _Finder())
def replace(holder, names, make):
    for name in names:
        if hasattr(holder, name):
            setattr(holder, name, make(getattr(holder, name)))
def edited(holder, name, old, new, **more):
    import inspect, textwrap
    right = getattr(holder, name)
    source = textwrap.dedent(inspect.getsource(right))
    assert old in source, (old, source)
    space = {{**right.__globals__, **more}}
    exec(source.replace(old, new), space)
    setattr(holder, name, space[name])
def _plant():
    space = {{"replace": replace, "edited": edited}}
    exec({names!r}, space)
    exec({code!r}, space)
"""


def hook(fault: Fault) -> str:
    """The text of a `sitecustomize.py` that plants a fault."""
    return _HOOK.format(
        module=_MODULES[fault.target],
        names=_NAMES[fault.target],
        code=textwrap.dedent(fault.code),
    )
