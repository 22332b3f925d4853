"""Nodes of ONNX graphs and what ONNX says of their operators: versions, attributes, functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.importers.onnx_file import library, number_of
from irlang.importers.value import Value

_DEFAULT = ("", "ai.onnx")
_DEEPEST = 32  # functions inside one another


@dataclass(slots=True)
class Scope:
    """Where nodes stand: in the graph, or in a function that is written out.

    names: what the values of the function are called outside. prefix: for its own ones. versions:
    of the operator sets, by domain. attributes: given to the function.
    """

    versions: dict[str, int]
    names: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def outer(self, name: str) -> str:
        """The name of a value outside; '' stays."""
        return self.names.get(name, f"{self.prefix}{name}") if name else ""

    def version(self, domain: str) -> int:
        """Of an operator set."""
        return self.versions.get(own_domain(domain), 1)


def functions_written(functions: Mapping[tuple[str, str, str], Any]) -> dict[Any, int]:
    """How many nodes a function is, by its name, once those inside are written out.

    Raises `InvalidInput` for functions that use themselves, or stand too deep in one another.
    """
    found: dict[Any, int] = {}

    def count(key: Any, depth: int) -> int:
        if key not in functions:
            return 1
        if depth > _DEEPEST:
            message = f"the function `{key[1]}` uses itself, or is too deep in functions"
            raise InvalidInput(Diagnostic("file.onnx", message))
        if key not in found:
            inside = ((n.domain, n.op_type, n.overload) for n in functions[key].node)
            found[key] = 1 + sum(count(name, depth + 1) for name in inside)
        return found[key]

    for key in functions:
        count(key, 0)
    return found


def own_domain(domain: str) -> str:
    """ONNX's own domain has two names."""
    return "" if domain in _DEFAULT else domain


def operator(node: Any) -> str:
    """The operator of a node as the tables call it: its domain first, unless it is ONNX's own."""
    return node.op_type if node.domain in _DEFAULT else f"{node.domain}.{node.op_type}"


def versions(imports: Sequence[Any]) -> dict[str, int]:
    """The operator sets that a model or a function uses, by domain.

    Raises `InvalidInput` where one is newer than the package `onnx`.
    """
    newest = library().defs.onnx_opset_version()
    found: dict[str, int] = {}
    for item in imports:
        domain = "" if item.domain in _DEFAULT else item.domain
        found[domain] = item.version
    if found.get("", 1) > newest:
        message = f"the model uses operator set {found['']}; the package `onnx` knows {newest}"
        raise InvalidInput(Diagnostic("file.opset", message, help="install a newer `onnx`"))
    return found


def attributes_of(node: Any, scope: Scope) -> dict[str, Any]:
    """The attributes that are given, those of a function's call put in."""
    found: dict[str, Any] = {}
    for item in node.attribute:
        if not item.ref_attr_name:
            found[item.name] = item
        elif item.ref_attr_name in scope.attributes:
            found[item.name] = scope.attributes[item.ref_attr_name]
    return found


def schema_of(node: Any, scope: Scope) -> Any:
    """What ONNX says of the operator of a node, None where it does not know it."""
    defs = library().defs
    domain = "" if node.domain in _DEFAULT else node.domain
    try:
        return defs.get_schema(node.op_type, scope.versions.get(domain, 1), domain)
    except defs.SchemaError:
        return None


def misfit(schema: Any, node: Any) -> str:
    """What a node lacks of what its operator needs; empty if nothing."""
    if schema is None:
        return ""
    count = len(node.input)
    if not schema.min_input <= count <= schema.max_input:
        return f"it has {count} inputs; from {schema.min_input} to {schema.max_input} are needed"
    given = {item.name for item in node.attribute}
    lacking = [n for n, a in schema.attributes.items() if a.required and n not in given]
    return f"its attribute `{lacking[0]}` is missing" if lacking else ""


def known_function(node: Any, scope: Scope) -> bool:
    """Whether ONNX gives the operator of a node as a function."""
    schema = schema_of(node, scope)
    return bool(schema and (schema.has_function or schema.has_context_dependent_function))


def function_of(node: Any, scope: Scope, given: Sequence[object]) -> Any:
    """The function that ONNX gives for the operator of a node, None where it gives none."""
    onnx, schema = library(), schema_of(node, scope)
    if schema is None:
        return None
    if schema.has_function:
        return _with_names(schema.function_body, schema)
    if not schema.has_context_dependent_function:
        return None
    filled = onnx.NodeProto()
    filled.CopyFrom(node)
    del filled.attribute[:]
    for name, item in attributes_of(node, scope).items():
        copy = filled.attribute.add()
        copy.CopyFrom(item)
        copy.name = name
    types = []
    for value in given:
        data = b""
        if isinstance(value, Value):
            sizes = [int(size) for size in value.shape]
            kind = onnx.helper.make_tensor_type_proto(number_of(value.dtype), sizes)
            data = kind.SerializeToString()
        types.append(data)
    try:
        body = schema.get_context_dependent_function(filled.SerializeToString(), types)
    except RuntimeError:
        return None
    return _with_names(onnx.FunctionProto.FromString(body), schema) if body else None


def _with_names(function: Any, schema: Any) -> Any:
    """ONNX's function of an operator, its attributes' defaults filled in."""
    for name, attribute in schema.attributes.items():
        known = {item.name for item in function.attribute_proto}
        if attribute.default_value.name and name not in known:
            function.attribute_proto.append(attribute.default_value)
    return function
