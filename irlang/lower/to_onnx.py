"""ONNX: the model file, and how operators are called there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from irlang.catalog import Catalog
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.lower.call import Native, in_turn
from irlang.lower.chance import ONNX
from irlang.lower.emit import Body, spell
from irlang.lower.manner import USUAL, Manner
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_contrib import with_contributed
from irlang.lower.onnx_images import IMAGES
from irlang.lower.onnx_kernels import PLAIN, Runtime
from irlang.lower.onnx_layers import LAYERS
from irlang.lower.onnx_ops import ELEMENTS
from irlang.lower.onnx_places import PLACES
from irlang.lower.onnx_resize import RESIZED
from irlang.lower.onnx_selections import SELECTIONS
from irlang.lower.onnx_signals import SIGNALS
from irlang.lower.onnx_transformers import TRANSFORMERS
from irlang.lower.value import Array, Value

_STANDARD: dict[str, Native] = {
    **ELEMENTS, **PLACES, **LAYERS, **IMAGES, **SIGNALS, **SELECTIONS, **TRANSFORMERS, **RESIZED,
    **ONNX,
}  # fmt: skip
TABLE: dict[str, Native] = with_contributed(_STANDARD)


def model_file(
    graph: Graph,
    catalog: Catalog,
    params: Mapping[str, Array],
    runtime: Runtime,
    *,
    native: bool,
    whole: bool = True,
    manner: Manner = USUAL,
) -> tuple[bytes, Body, OnnxBuilder]:
    """The model file, empty where something cannot be spelt, what became of the nodes, and what
    wrote it.

    native, whole, manner: as of `irlang.lower.lower`. At some turns the file is one of an older
    opset, if that has all of the program, and of a lone call an operator of its own.

    Calls that feed one another are written in the usual opset, if no operator is lost by that: it
    is there that optimisers take several for one. Lone calls are those of the newest kernels, where
    no more of them are operators of their own in the usual opset.
    """
    words = TABLE if manner.words else _STANDARD  # a file that is usual has operators of ONNX alone
    table, bold = in_turn(words, graph.operators(), manner), manner.bold
    write = partial(
        _written, graph, catalog, params, table, native=native, whole=whole, bold=bold,
        loose=manner.loose and runtime.loosens, measures=manner.loose and whole,
    )  # fmt: skip
    if manner.older and runtime.elder:
        made = write(runtime.elder[manner.words % len(runtime.elder)])
        own = len(made[1].native)
        if not made[1].unsupported and (own or not native or len(graph.nodes) > 1):
            return made
    if runtime.usual is not None and _chained(graph):
        made = write(runtime.usual)
        body = made[1]
        if not body.unsupported and body.native == _native(
            graph, catalog, table, runtime, native=native, bold=bold
        ):
            return made
    made = write(runtime)
    own = len(made[1].native)
    if native and runtime.usual is not None and own < len(graph.nodes):
        older = write(runtime.usual)
        if not older[1].unsupported and len(older[1].native) > own:
            return older
    return made


def _native(
    graph: Graph,
    catalog: Catalog,
    table: Mapping[str, Native],
    runtime: Runtime,
    *,
    native: bool,
    bold: bool,
) -> list[str]:
    """The calls that are operators of their own in a runtime."""
    values = _given(graph)
    builder = OnnxBuilder(values, [*graph.outputs], runtime, bold)
    body = spell(
        graph, builder, table, catalog, values, native=native, lacks=runtime.lacks, whole=False
    )
    if builder.gone and runtime.older is not None:
        return _native(graph, catalog, table, runtime.older, native=native, bold=bold)
    return body.native


def _given(graph: Graph) -> dict[str, Value]:
    given = {n: graph.values[n] for n in (*graph.inputs, *graph.params)}
    return {n: Value(n, info.shape, info.dtype) for n, info in given.items()}


def _chained(graph: Graph) -> bool:
    """Whether a call reads another's result, all in the types that networks are made of."""
    made = {value for node in graph.nodes for value in node.outputs}
    plain = all(info.dtype in PLAIN for info in graph.values.values())
    return plain and any(made.intersection(node.operands()) for node in graph.nodes)


def _written(
    graph: Graph,
    catalog: Catalog,
    params: Mapping[str, Array],
    table: Mapping[str, Native],
    runtime: Runtime,
    *,
    native: bool,
    whole: bool,
    bold: bool,
    loose: bool,
    measures: bool,
) -> tuple[bytes, Body, OnnxBuilder]:
    values = _given(graph)
    builder = OnnxBuilder(values, [*graph.outputs], runtime, bold, loose=loose, measures=measures)
    held: dict[str, tuple[str, Array]] = {}
    for name, param in graph.params.items():
        dtype = param.info.dtype
        held[name] = (dtype, np.asarray(params[name], DTYPES[dtype].numpy))
    body = spell(
        graph, builder, table, catalog, values, native=native, lacks=runtime.lacks, whole=whole
    )
    if builder.gone and runtime.older is not None:
        return _written(
            graph, catalog, params, table, runtime.older, native=native, whole=whole, bold=bold,
            loose=loose, measures=measures,
        )  # fmt: skip
    if body.unsupported:
        return b"", body, builder
    inputs = {name: port.info for name, port in graph.inputs.items()}
    outputs = {name: values[value] for name, value in graph.outputs.items()}
    code = builder.model(graph.name, graph.doc, inputs, held, outputs)
    return code, body, builder
