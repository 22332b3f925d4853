"""PyTorch: the program around a model, and how its operators are called there."""

from __future__ import annotations

import re
from dataclasses import replace

from irlang.lower.call import Native
from irlang.lower.chance import TORCH
from irlang.lower.python_program import Layout, Slopes
from irlang.lower.selections import TORCH_SELECTIONS
from irlang.lower.sparse import TORCH_SPARSE
from irlang.lower.spectra import TORCH_SIGNALS
from irlang.lower.spelling import with_words
from irlang.lower.torch_attention import ATTENTION
from irlang.lower.torch_backward import BACKWARD
from irlang.lower.torch_creation import CREATION
from irlang.lower.torch_further import WORDS as FURTHER
from irlang.lower.torch_images import IMAGES
from irlang.lower.torch_in_place import words as in_place
from irlang.lower.torch_layer_words import WORDS as LAYER_WORDS
from irlang.lower.torch_layers import LAYERS
from irlang.lower.torch_matrices import MATRICES
from irlang.lower.torch_numeric import NUMERIC
from irlang.lower.torch_ops import ELEMENTS
from irlang.lower.torch_optimizers import OPTIMIZERS
from irlang.lower.torch_places import PLACES
from irlang.lower.torch_quantization import QUANTIZATION
from irlang.lower.torch_sequences import SEQUENCES
from irlang.lower.torch_shapes import SHAPES
from irlang.lower.torch_statistics import STATISTICS
from irlang.lower.torch_strided import WORDS as STRIDED
from irlang.lower.torch_words import WORDS
from irlang.lower.transforms import torch_transformed

_ROWS: dict[str, Native] = {
    **ELEMENTS, **SHAPES, **PLACES, **CREATION, **MATRICES, **NUMERIC, **STATISTICS, **LAYERS,
    **SEQUENCES, **TORCH_SIGNALS, **TORCH_SELECTIONS, **QUANTIZATION, **IMAGES, **TORCH,
    **OPTIMIZERS, **ATTENTION, **BACKWARD, **TORCH_SPARSE,
}  # fmt: skip


def _spelt_out(row: Native) -> Native:
    """With the full names of functions, in all of its words."""
    spelling = row.spelling.replace("F.", "torch.nn.functional.")
    return replace(row, spelling=spelling, others=tuple(map(_spelt_out, row.others)))


_ALL = with_words(_ROWS, WORDS, LAYER_WORDS, in_place(_ROWS), FURTHER, STRIDED)
TABLE = {name: _spelt_out(row) for name, row in _ALL.items()}

# In forward mode a triangle that is not read has no slope; reverse mode shares it with the other.
# What flows back through a normalisation in training is made of x alone there, whatever mean and
# variance are given, so that these have slopes (`recompute_mean_var` in PyTorch's decompositions).
_OTHERWISE_FORWARD = {"cholesky", "batch_norm_gradient"}
FORWARD = {name: row for name, row in TABLE.items() if name not in _OTHERWISE_FORWARD}

_SLOPES = Slopes(
    taken="[{slopes}] = torch.autograd.grad({loss}, [{wanted}], materialize_grads=True)",
    tensor="{tensor}.requires_grad_()",
)
_MATERIALIZES = (2, 1)  # the release since which `torch.autograd.grad` gives zeros if asked to

LAYOUT = Layout(
    framework="PyTorch",
    imports="""
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
""",
    helpers="""
def tensor(name, value):
    return torch.from_numpy(np.array(value))


def array(name, value):
    return value.detach().numpy()
""",
    bfloat16_helpers="""
def tensor(name, value):
    if name in BFLOAT16:
        return torch.from_numpy(np.array(value).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))


def array(name, value):
    value = value.detach().contiguous()
    if name in BFLOAT16:
        return value.view(torch.int16).numpy().view(np.uint16)
    return value.numpy()
""",
    run='''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    with torch.no_grad():
        results = {function}(*values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
''',
    gradients='''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = [name for name, value in values.items() if value.is_floating_point()]
    for name in wanted:
        values[name].requires_grad_()
    *_, loss = {function}(*values.values())
    found = [None] * len(wanted)
    if loss.requires_grad:  # it may depend on none of them
        found = torch.autograd.grad(loss, [values[name] for name in wanted], allow_unused=True)
    pairs = zip(wanted, found)
    found = {{n: torch.zeros_like(values[n]) if g is None else g for n, g in pairs}}
    return {{name: array(name, value) for name, value in found.items()}}
''',
    # a product of matrices is another kernel where a factor is differentiated by
    watched_run='''
def run(inputs, params):
    """The outputs as arrays by name, computed as for the gradients."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    for value in values:
        value.requires_grad_(value.is_floating_point())
    results = {function}(*values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
''',
    watched='''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs, parameters and results."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = {{name: value for name, value in values.items() if value.is_floating_point()}}
    for value in wanted.values():
        value.requires_grad_()
    *results, loss = {function}(*values.values())
    wanted.update((n, value) for n, value in zip(OUTPUTS, results) if value.requires_grad)
    found = [None] * len(wanted)
    if loss.requires_grad:  # it may depend on none of them
        found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    pairs = zip(wanted.items(), found)
    found = {{n: torch.zeros_like(value) if g is None else g for (n, value), g in pairs}}
    return {{name: array(name, value) for name, value in found.items()}}
''',
)


_COMPILE = "@torch.compile{}\n"
_AOT = 'backend="aot_eager_decomp_partition"'
_ANY = "dynamic=True"  # of any size


def layout(mode: str, release: tuple[int, ...]) -> Layout:
    """The program's layout in a mode of a release."""
    if mode == "compile":
        return _compiled("PyTorch, compiled")
    if mode == "aot":
        return _compiled("PyTorch, compiled without Inductor", _AOT)
    if mode == "export":
        framework = "PyTorch, by way of torch.export"
        firm = _EXPORTED.replace("TENSORS", "values")
        found = replace(LAYOUT, framework=framework, wrapper=firm, wrapped="exported")
        loose = _EXPORTED.replace("TENSORS", _SIZES)
        framework += ", for inputs of any size"
        return replace(
            found,
            loose=replace(found, framework=framework, wrapper=loose, gradients="", watched=""),
        )
    if mode == "meta":
        return replace(
            LAYOUT, framework="PyTorch, by the shapes that it infers", wrapper=_INFERRED,
            wrapped="inferred", gradients="", watched="",
        )  # fmt: skip
    if mode in ("vmap", "forward"):
        return torch_transformed(LAYOUT, mode)
    slopes = _SLOPES if release >= _MATERIALIZES else None
    if mode not in ("cuda", "tf32", "triton"):
        return replace(LAYOUT, slopes=slopes)
    on_gpu = replace(
        LAYOUT, framework="PyTorch, on a GPU", imports=LAYOUT.imports + _GPU.format(mode == "tf32"),
        helpers=_on_gpu(LAYOUT.helpers), bfloat16_helpers=_on_gpu(LAYOUT.bfloat16_helpers),
    )  # fmt: skip
    if mode == "triton":
        framework = "PyTorch, compiled for a GPU"
        return replace(on_gpu, framework=framework, decorator=_COMPILE.format(""), finish=_placed)
    return replace(on_gpu, slopes=slopes)


def _compiled(framework: str, options: str = "") -> Layout:
    """The layout of programs that are compiled, for the sizes that they are given or any."""
    firm = replace(
        LAYOUT, framework=framework, decorator=_COMPILE.format(f"({options})" * bool(options))
    )
    loose = replace(
        LAYOUT, framework=f"{framework}, for tensors of any size", gradients="", watched="",
        decorator=_COMPILE.format(f"({', '.join(filter(None, (options, _ANY)))})"),
    )  # fmt: skip
    return replace(firm, loose=loose)


# By default convolutions and recurrences are computed in TF32 and products of matrices are not.
_GPU = """
torch.set_default_device("cuda")
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {}
"""


# What makes a tensor of nothing but numbers.
_MAKES = re.compile(
    r"\btorch\.(tensor|arange|linspace|zeros|ones|full|empty|eye|rand|randn|randint|\w+_window)\("
)


def _placed(function: str) -> str:
    """What makes tensors is told the GPU: compiled, PyTorch 2.11 makes some on the processor,
    whatever the default is.
    """
    head, quote, body = function.rpartition('"""')  # what the model says of itself stays
    for found in reversed([*_MAKES.finditer(body)]):
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(body[end], 0)
            end += 1
        body = f'{body[: end - 1]}, device="cuda"{body[end - 1 :]}'
    return head + quote + body


def _on_gpu(helpers: str) -> str:
    """Arrays go there and come back."""
    there = helpers.replace("torch.from_numpy(", "torch.tensor(")
    return there.replace("value.detach()", "value.detach().cpu()")


_EXPORTED = '''
class Model(torch.nn.Module):
    def forward(self, *values):
        return {function}(*values)


def exported(*values):
    """What the exported program gives for the values that it was exported with."""
    return torch.export.export(Model(), TENSORS).module()(*values)
'''
_SIZES = """values, dynamic_shapes=(tuple(
        {{axis: torch.export.Dim.AUTO for axis in range(value.dim() * (place < len(INPUTS)))}}
        for place, value in enumerate(values)
    ),) if values else None"""

# What is inferred of a result too large to hold is no more than that.
_INFERRED = '''
def inferred(*values):
    """Zeros of the shapes and types that PyTorch infers on its meta device, without values."""
    with torch.device("meta"):
        results = {function}(*(value.to("meta") for value in values))
    if any(value.numel() > 1 << 24 for value in results):
        raise MemoryError(f"results of {{[tuple(value.shape) for value in results]}}")
    return [torch.zeros(value.shape, dtype=value.dtype) for value in results]
'''
