"""A call that has met the signature of its definition: what its names stand for, and its faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irlang import ast
from irlang.diagnostics import fail
from irlang.dtypes import DEFAULT_OF_KIND, DTYPES
from irlang.equations import TensorInfo
from irlang.scope import Scope

Given = TensorInfo | tuple[TensorInfo, ...] | None


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a call does not fit its definition.

    sources: the inputs and attributes that take part, the likeliest culprit first. size: of an axis
    that is too long or too short what the definition declares it to be.
    """

    code: str
    message: str
    badness: float
    sources: tuple[str, ...]
    size: str = ""


@dataclass(slots=True)
class Binding:
    """A call that has met a signature.

    scope: sizes, attributes and tensors by name. dtypes: what type variables stand for.
    origins: for a size, the inputs that say it. complete: whether the body can be looked at.
    """

    op: ast.Op
    inputs: Mapping[str, Given]
    scope: Scope
    dtypes: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    origins: dict[str, list[str]] = field(default_factory=dict)
    complete: bool = True

    def fault(self, code: str, message: str, badness: float, *sources: str, size: str = "") -> None:
        """Records a fault."""
        self.faults.append(Fault(f"{self.op.name}.{code}", message, badness, sources, size))


def resolve_dtype(binding: Binding, name: str) -> str:
    """The element type that a name in a definition stands for in this call."""
    if name in binding.dtypes:
        return binding.dtypes[name]
    if name in DTYPES:
        return name
    if name in DEFAULT_OF_KIND:
        return DEFAULT_OF_KIND[name]
    value = binding.scope.names.get(name)
    if isinstance(value, str) and value in DTYPES:
        return value
    raise fail("definition.dtype", f"there is no type `{name}`", binding.op.span)


def involved(binding: Binding, node: ast.Node) -> Iterator[str]:
    """The inputs and attributes that an expression of the definition goes back to."""
    attrs = {attr.name for attr in binding.op.attrs}
    inputs = {item.name for item in binding.op.inputs}
    lets = {s.name: s.value for s in binding.op.body if isinstance(s, ast.Let)}
    seen: set[str] = set()
    stack: list[ast.Node] = [node]
    while stack:
        for part in ast.walk(stack.pop(0)):
            field_ = {
                ast.Name: "id",
                ast.Read: "name",
                ast.Arity: "name",
                ast.Call: "function",
                ast.Match: "subject",
            }.get(type(part))
            name = getattr(part, field_) if field_ else ""
            if not name or name in seen:
                continue
            seen.add(name)
            if name in attrs or name in inputs:
                yield name
            yield from binding.origins.get(name, ())
            if name in lets:
                stack.append(lets[name])
