"""Small ONNX models for tests, made with ONNX's own helper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
Array = np.ndarray[Any, Any]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, *sizes: int | str | None, kind: int = FLOAT) -> Any:
    """What a graph says of an input or of a result."""
    return helper.make_tensor_value_info(name, kind, sizes)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node; names are separated by spaces, `_` is one that is left out."""
    names = [["" if name == "_" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(kind, *names, **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[str],
    parameters: dict[str, Array] | None = None,
    opset: int = OPSET,
    functions: Sequence[Any] = (),
) -> Any:
    """A model; results are given by their names alone."""
    graph = helper.make_graph(
        list(nodes),
        "tested",
        list(inputs),
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (parameters or {}).items()],
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    made = helper.make_model(graph, opset_imports=sets, functions=list(functions))
    made.ir_version = 10  # which any runtime reads
    return made
