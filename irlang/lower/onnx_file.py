"""A model file: nodes in their order, what they begin with, and what of it is the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irlang.equations import TensorInfo
from irlang.lower.onnx_kernels import Runtime
from irlang.lower.value import Array

# Element types as a model file numbers them.
_CODES = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10,
    "f64": 11, "u32": 12, "u64": 13, "bf16": 16,
}  # fmt: skip


def code_of(dtype: str) -> int:
    """The number of an element type in a model file."""
    return _CODES[dtype]


CONTRIBUTED = "com.microsoft"  # the domain of ONNX Runtime's own operators


@dataclass(slots=True)
class OnnxNode:
    """An operator with the names of what it takes and gives."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """What stands in a model file. held: arrays by name, with their element types. names: those
    that names of `nodes` are to be written as. loose: whether inputs say no sizes but by name.
    """

    name: str
    doc: str
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    held: Mapping[str, tuple[str, Array]]
    nodes: Sequence[OnnxNode]
    names: Mapping[str, str]
    loose: bool = False


def _sizes(info: TensorInfo) -> tuple[int, ...]:
    return info.shape


def _named(info: TensorInfo) -> list[str]:
    """A name for each size, the same for equal ones."""
    return [f"size.{size}" for size in info.shape]


def _nothing(_: TensorInfo) -> None:
    return None


def serialized(file: File, runtime: Runtime) -> bytes:
    """The bytes of the file, in the opset and the format that a runtime reads."""
    from onnx import helper

    def named(names: Sequence[str]) -> list[str]:
        return [file.names.get(name, name) for name in names]

    def typed(infos: Mapping[str, TensorInfo], told: Callable[[TensorInfo], Any]) -> list[Any]:
        return [
            helper.make_tensor_value_info(n, _CODES[i.dtype], told(i)) for n, i in infos.items()
        ]

    nodes = [
        helper.make_node(
            node.op, named(node.inputs), named(node.outputs), domain=node.domain or None,
            **{key: value for key, value in node.attributes.items() if value != []},
        )
        for node in file.nodes
    ]  # fmt: skip
    initializers = [
        helper.make_tensor(name, _CODES[dtype], array.shape, array.tobytes(), raw=True)
        for name, (dtype, array) in file.held.items()
    ]
    inputs = typed(file.inputs, _named if file.loose else _sizes)
    results = typed(file.outputs, _sizes if runtime.declares and not file.loose else _nothing)
    graph = helper.make_graph(nodes, file.name, inputs, results, initializers, file.doc)
    domains = sorted({node.domain for node in file.nodes} - {""})
    others = [helper.make_opsetid(domain, 1) for domain in domains]
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", runtime.opset), *others],
        ir_version=runtime.ir_version,
        producer_name="irlang",
    )
    found: bytes = model.SerializeToString(deterministic=True)
    return found
