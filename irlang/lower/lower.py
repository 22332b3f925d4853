"""`lower`: a checked model as a program of a target, and `write_program`: that program as files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import fail
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.lower import (
    mx_ops,
    onnx_scripts,
    python_program,
    to_jax,
    to_keras,
    to_keras2,
    to_mx,
    to_onnx,
    to_tf,
    to_torch,
)
from irlang.lower.call import Native, in_turn
from irlang.lower.emit import spell
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.keras_builder import JaxKerasBuilder, KerasBuilder, TorchKerasBuilder
from irlang.lower.manner import USUAL, Manner
from irlang.lower.modes import FIRST, KIN
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.names import Names
from irlang.lower.onnx_kernels import OPENVINO, Runtime, runtime, with_elder
from irlang.lower.promotes import PROMOTES
from irlang.lower.python_builder import PythonBuilder
from irlang.lower.target import Description, describe
from irlang.lower.tf_builder import LiteBuilder, TensorFlowBuilder
from irlang.lower.theano_builder import TheanoBuilder
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Array

_REASONS = 4  # that are told
_WRITTEN = 64  # elements of a number along axes that is written where it stands


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program.

    code: a module's text (kind `python`) or a model file (kind `onnx`). params: the arrays that
    `run` needs beside the inputs, by name; a model file holds its own, so that there are none.
    unsupported: why the target cannot run it, a reason for every node at fault; then the code is
    empty. gradients: whether it can give them; constant: the values by which it does not
    differentiate, and the operator that has no derivative there. native: the nodes that became an
    operator of the target's own. watched: whether results have gradients too. slopes: how gradients
    are written without functions, where they can be. dared: whether the target is handed a form
    that it may refuse. turned: whether it is another program than at the usual turn. loose: whether
    the sizes of its inputs are not known before it is run. left: the operators of conversions that
    it does not say, as the target makes them by itself.
    """

    target: str
    kind: Literal["python", "onnx"]
    code: str | bytes
    params: dict[str, Array]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    unsupported: tuple[str, ...] = ()
    gradients: bool = False
    native: frozenset[str] = frozenset()
    constant: Mapping[str, str] = field(default_factory=dict)
    watched: bool = False
    slopes: python_program.Slopes | None = None
    dared: bool = False
    turned: bool = False
    loose: bool = False
    left: frozenset[str] = frozenset()

    @property
    def refusal(self) -> str:
        """The target, and the first few different reasons why it cannot run the program."""
        reasons = list(dict.fromkeys(self.unsupported))
        more = [f"{len(reasons) - _REASONS} more reasons"] if len(reasons) > _REASONS else []
        return f"{self.target}: {'; '.join((*reasons[:_REASONS], *more))}"


@dataclass(frozen=True, slots=True)
class _Python:
    builder: type[PythonBuilder]
    table: Mapping[str, Native]
    layout: Callable[[str, tuple[int, ...]], python_program.Layout]
    shuns: frozenset[str]
    # What the names of operators begin with that are given any tensors without elements: not those
    # of layers, which ask for positive sizes, but for the number of samples.
    hollow: tuple[str, ...] = ("",)


_WIDE_UNSIGNED = frozenset({"u16", "u32", "u64"})
_NARROW = _WIDE_UNSIGNED | {"i8", "i16", "u8"}
_PYTHON = {
    "torch": _Python(TorchBuilder, to_torch.TABLE, to_torch.layout, _WIDE_UNSIGNED),
    "tf": _Python(TensorFlowBuilder, to_tf.TABLE, to_tf.layout, _NARROW),
    "jax": _Python(JaxBuilder, to_jax.TABLE, to_jax.layout, frozenset()),
    "keras": _Python(KerasBuilder, to_keras.TABLE, to_keras.layout, _NARROW, ("ops.",)),
    "mxnet": _Python(MxBuilder, mx_ops.TABLE, to_mx.layout, _NARROW),
}
# Modes whose programs have other words, by the framework's name and theirs.
_MODES = {
    "keras:jax": replace(_PYTHON["keras"], builder=JaxKerasBuilder),
    "keras:torch": replace(_PYTHON["keras"], builder=TorchKerasBuilder),
    "keras:theano": _Python(TheanoBuilder, to_keras2.THEANO, to_keras2.layout, _NARROW, ()),
    "tf:keras": _Python(
        to_keras2.OldKerasBuilder, to_keras2.TENSORFLOW, to_keras2.layout, _NARROW, ()
    ),
    "torch:forward": replace(_PYTHON["torch"], table=to_torch.FORWARD),
    "tf:tflite": replace(_PYTHON["tf"], builder=LiteBuilder),
}


_ONNX = "onnxruntime"


def tables() -> dict[str, Mapping[str, Native]]:
    """The table of operators of every framework, by a target that runs its programs."""
    found = {name: row.table for name, row in _PYTHON.items()} | {_ONNX: to_onnx.TABLE}
    bases = {name: name.partition(":")[0] for name in FIRST}
    return {name: found[base] for name, base in bases.items() if base in found}


def spelt(target: str) -> frozenset[str]:
    """The operators for which a target has one of its own, whatever their attributes."""
    known = describe(target)
    python = known.framework in _PYTHON
    table = _row(known).table if python else to_onnx.TABLE
    release = known.release if python else ()
    return frozenset(
        name for name, own in table.items() if any(one.is_in(release) for one in own.words)
    )


def promoting(target: str) -> frozenset[str]:
    """The operators of which a target has a word that converts operands by itself."""
    known = describe(target)
    if known.framework not in _PYTHON:
        return frozenset()
    row = _row(known)
    made = PROMOTES.get(row.builder.framework, {})
    return frozenset(
        name for name, own in row.table.items() if any(one.spelling in made for one in own.words)
    )


def differentiates(target: str) -> bool:
    """Whether a target gives gradients by itself."""
    known = describe(target)
    if known.framework not in _PYTHON:
        return False
    return bool(_row(known).layout(known.mode, known.release).gradients)


def lower(
    graph: Graph,
    target: str | Description,
    catalog: Catalog,
    params: Mapping[str, Array],
    *,
    grad: bool = False,
    watched: bool = False,
    native: bool = True,
    whole: bool = True,
    hollow: bool = False,
    manner: Manner = USUAL,
) -> Lowered:
    """The program of a model for a target (see `irlang targets`).

    params: an array for every parameter. grad: whether gradients of the loss are wanted, where
    there is a loss; watched: those by its real results as well, each of which is a tensor of its
    own then (a program that is compiled whole tells nothing of these). native: False lowers every
    operator from its definition, which is how the two ways are held against each other. whole:
    False lowers none from its definition: what the target has no operator for is unsupported.
    hollow: layers that are made for tensors with elements are given others, too, and operators
    tensors of no axes alone. manner: in which of its ways it is written. Raises `usage.target` for
    a target that there is not.
    """
    known = describe(target) if isinstance(target, str) else target
    if known.framework in _PYTHON:
        return _python(graph, known, catalog, params, grad, watched, native, whole, hollow, manner)
    if find_spec("onnx") is None:
        raise fail("target.missing", known.reason)
    code, body, builder = to_onnx.model_file(
        graph, catalog, params, _runtime(known), native=native, whole=whole, manner=manner
    )
    return Lowered(
        known.name, "onnx", code, {}, tuple(graph.inputs), tuple(graph.outputs),
        tuple(body.unsupported.values()), False, frozenset(body.native), dared=builder.dared,
        turned=builder.runtime.is_elder or builder.loose or bool(builder.measured)
        or _has_turned(
            graph, body.native, in_turn(to_onnx.TABLE, graph.operators(), manner), to_onnx.TABLE
        ),
        loose=builder.loose,
    )  # fmt: skip


_RUNTIMES: dict[str, tuple[Description, Runtime]] = {}  # by target; its tables take milliseconds


def _runtime(target: Description) -> Runtime:
    """What reads the file, as of the last time that the target was like this."""
    known = _RUNTIMES.get(target.name)
    if known is None or known[0] != target:
        known = _RUNTIMES[target.name] = target, _made_runtime(target)
    return known[1]


def _made_runtime(target: Description) -> Runtime:
    """What reads the file; ONNX's own evaluator reads what the newest runtime does."""
    if target.framework == "openvino":
        return with_elder(OPENVINO)
    found = with_elder(Runtime()) if target.mode in KIN else runtime(target.release, target.kernels)
    if target.mode == "shapes":
        found = replace(found, declares=False, usual=None)
    return replace(found, loosens="shapes" not in target.mode)


def _row(target: Description) -> _Python:
    mode = f"{target.framework}:{target.mode}"
    if mode in ("keras:tensorflow", "keras:shapes") and () < target.release < (3,):
        mode = "tf:keras"  # which it is
    return _MODES.get(mode) or _PYTHON[target.framework]


def _python(
    graph: Graph,
    target: Description,
    catalog: Catalog,
    params: Mapping[str, Array],
    grad: bool,
    watched: bool,
    native: bool,
    whole: bool,
    hollow: bool,
    manner: Manner,
) -> Lowered:
    row = _row(target)
    builder = row.builder(Names(python_program.RESERVED))
    builder.bold = manner.bold
    builder.release, builder.strided = target.release, manner.older
    layout = row.layout(target.mode, target.release)
    gradients = grad and graph.loss is not None and bool(layout.gradients)
    loose = layout.loose if manner.loose and not gradients else None
    otherwise = bool(manner.turn and layout.fixed) and not gradients
    again = layout.again if manner.again and graph.loss is not None else None
    layout = loose or (again if gradients else None) or layout
    # what is traced for inputs of any size is given its parameters as arguments, too
    fixed = (
        otherwise and manner.fixed and bool(layout.fixed) and bool(python_program.parameters(graph))
    )
    told = graph
    if otherwise and not fixed:
        graph = _with_numbers(graph)
    values = python_program.begin(graph, builder)
    builder.sloped = gradients
    compiled = layout.decorator or layout.wrapper
    table = in_turn(row.table, graph.operators(), manner, target.release, bool(compiled))
    body = spell(
        graph, builder, table, catalog, values, native=native, shuns=row.shuns, lacks=builder.lacks,
        detach=builder.detach if gradients else None, apart=builder.apart if watched else None,
        blunt=builder.blunt, whole=whole, hollow=("",) if hollow else row.hollow,
        lone=hollow,
    )  # fmt: skip
    code = ""
    if not body.unsupported:
        code = python_program.program(graph, builder, body, layout, gradients, watched, fixed)
    arrays = {
        name: np.asarray(params[name], DTYPES[graph.values[name].dtype].numpy)
        for name in python_program.parameters(graph)
    }
    arrays.update({name: array for name, (_, array) in builder.constants.items()})
    return Lowered(
        target.name, "python", code, arrays, tuple(graph.inputs), tuple(graph.outputs),
        tuple(body.unsupported.values()), gradients, frozenset(body.native),
        body.constant, watched and gradients and not compiled and bool(layout.watched),
        None if compiled else layout.slopes, builder.dared,
        fixed or graph is not told or builder.laid or bool(loose or again)
        or _has_turned(graph, body.native, table, row.table),
        bool(loose), frozenset(builder.left),
    )  # fmt: skip


def _with_numbers(graph: Graph) -> Graph:
    """The same; what is one number along axes is written where it stands, as one without axes is.
    The graph itself where there is no such parameter.
    """
    numbers = {
        name: replace(param, literal=True)
        for name, param in graph.params.items()
        if not param.literal and param.initial is not None and param.initial.kind == "constant"
        if param.info.shape and 0 < math.prod(param.info.shape) <= _WRITTEN
    }
    return replace(graph, params={**graph.params, **numbers}) if numbers else graph


def _has_turned(
    graph: Graph, native: Sequence[str], table: Mapping[str, Native], usual: Mapping[str, Native]
) -> bool:
    """Whether a call has another word of the target than at the usual turn."""
    called = {node.op.name for node in graph.nodes if node.name in native}
    return any(table[name] is not usual[name] for name in called)


def write_program(lowered: Lowered, stem: Path, inputs: Mapping[str, Array] | None = None) -> Path:
    """Writes a program and what it reads; gives the file that is to be run, or loaded.

    A Python program is `stem.py` with its parameters in `stem.npz` and, if given, inputs in
    `stem.inputs.npz`; a model file is `stem.onnx`, with a script `stem.py` that runs it where
    inputs are given.
    """
    if lowered.unsupported:
        raise fail("lower.unsupported", lowered.refusal)
    script = stem.with_name(f"{stem.name}.py")
    if isinstance(lowered.code, str):
        script.write_text(lowered.code, "utf-8")
        _save(stem.with_name(f"{stem.name}.npz"), lowered.params)
    else:
        model = stem.with_name(f"{stem.name}.onnx")
        model.write_bytes(lowered.code)
        if inputs is None:
            return model
        known = describe(lowered.target)
        script.write_text(onnx_scripts.beside(known.framework, known.mode), "utf-8")
    if inputs is not None:
        _save(stem.with_name(f"{stem.name}.inputs.npz"), inputs)
    return script


def _save(path: Path, arrays: Mapping[str, Array]) -> None:
    """An .npz file of arrays by name; bfloat16 as its bits, which NumPy has no type for."""
    with path.open("wb") as file:
        stored = {
            n: a.view(np.uint16) if a.dtype.name == "bfloat16" else a for n, a in arrays.items()
        }
        np.savez(file, **stored)  # type: ignore[arg-type]
