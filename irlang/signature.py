"""Matches the inputs and attributes of a call against the signature of a definition.

Takes a definition, the types of the tensors given and the values of the attributes given; gives
the sizes that the signature names (`N`, `S..`), the completed attributes, and every way in which
the call does not fit. Non-goal: the body of the definition (`irlang.expand`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irlang import ast
from irlang.binding import Binding, Fault, Given, involved, resolve_dtype
from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import DTYPES
from irlang.evaluate import Evaluator
from irlang.scope import Macro, Scope, Unbound, show
from irlang.signature_inputs import (
    Pending,
    bound_name,
    broadcast,
    compare,
    match_dtype,
    match_input,
    references,
)

__all__ = [
    "Binding", "Fault", "Given", "attribute_problem", "bind", "involved", "resolve_dtype",
]  # fmt: skip

_evaluate = Evaluator()

_LONGEST = 1_000_000  # numbers of an attribute


def bind(op: ast.Op, inputs: Mapping[str, Given], attrs: Mapping[str, Any]) -> Binding:
    """Binds a call; see `Binding`. Names in `inputs` and `attrs` are those of the definition."""
    binding = Binding(op, inputs, _first_names(op, inputs))
    names = binding.scope.names
    late = [attr for attr in op.attrs if not _early(attr, attrs, binding)]
    pending = Pending()
    for item in op.inputs:
        given = inputs.get(item.name)
        if given is None:
            if item.default is None:
                binding.fault("inputs", f"input `{item.name}` is missing", 1, item.name)
                binding.complete = False
            continue
        members = given if isinstance(given, tuple) else (given,)
        if item.family and not members:
            binding.fault("inputs", f"`{item.name}` needs at least one tensor", 1, item.name)
            binding.complete = False
        for number, info in enumerate(members):
            member = number if item.family else None
            shown = item.name if member is None else f"{item.name}[{member}]"
            match_dtype(binding, item, info, shown)
            match_input(binding, pending, item, info, member)
            pending.refs.append((shown, member, info, item))
    for item in op.inputs:  # the axes that only an absent input would say are none
        if inputs.get(item.name) is None and not any(dim.broadcast for dim in item.type.dims):
            for dim in item.type.dims:
                key = bound_name(dim)
                if dim.kind == "rest" and key is not None:
                    names.setdefault(key, ())
    broadcast(binding, pending)
    for attr in late:
        if not _early(attr, attrs, binding, final=True):
            binding.complete = False
    for attr in op.attrs:
        _stretch(binding, attr)
    compare(binding, pending)
    for variable, dtype in binding.dtypes.items():
        names.setdefault(variable, dtype)  # so that the body may say `integral(T)`
    if binding.complete:
        references(binding, pending)
    return binding


def _first_names(op: ast.Op, inputs: Mapping[str, Given]) -> Scope:
    """What the defaults of attributes may use: functions, `#xs`, `rank(x)`."""
    scope = Scope({}, {}, set())
    for statement in op.body:
        if isinstance(statement, ast.Let) and statement.params:
            scope.names[statement.name] = Macro(statement.params, statement.value, scope)
    for item in op.inputs:
        given = inputs.get(item.name)
        if given is not None:
            scope.names[item.name] = given if isinstance(given, tuple) else given.shape
    return scope


# ---- attributes -------------------------------------------------------------------------------


def _early(attr: ast.Attr, attrs: Mapping[str, Any], binding: Binding, final: bool = False) -> bool:
    """Gives an attribute its value; False where the default has to wait for a size."""
    names = binding.scope.names
    if attr.name in attrs:
        value = attrs[attr.name]
    elif attr.default is None:
        binding.fault(attr.name, f"attribute `{attr.name}` must be given", 1, attr.name)
        binding.complete = False
        return True
    elif attr.type.kind == "enum" or attr.type.name == "dtype":
        value = attr.default.id if isinstance(attr.default, ast.Name) else None
    else:
        try:
            value = _evaluate.known(attr.default, binding.scope)
        except Unbound:
            if final and not binding.faults:
                raise
            return False
    problem = attribute_problem(attr.type, value)
    if problem:
        binding.fault(attr.name, f"`{attr.name}` {problem}", 1, attr.name)
        binding.complete = False
    else:
        # A list of any length is a list before it says where axes lie; one number is a list of one.
        lone = (
            attr.type.kind == "vector" and attr.type.dims is None and not isinstance(value, tuple)
        )
        names[attr.name] = (value,) if lone else value
    return True


_SCALAR_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "real": (int, float), "bool": (bool,)}


def _is_a(value: Any, name: str) -> bool:
    if name == "dtype":
        return isinstance(value, str) and value in DTYPES
    kinds = _SCALAR_TYPES.get(name, ())
    if isinstance(value, bool):
        return bool in kinds
    if hasattr(value, "denominator") and not isinstance(value, int):
        return float in kinds  # a fraction, from a quotient of sizes
    return isinstance(value, kinds)


def attribute_problem(kind: ast.AttrType, value: Any) -> str:
    """What is wrong with the value of an attribute; empty if nothing is."""
    if kind.kind == "enum":
        if value in kind.choices:
            return ""
        return f"is {show(value)}; it is one of {', '.join(kind.choices)}"
    if kind.kind == "scalar":
        return "" if _is_a(value, kind.name) else f"is {show(value)}; it must be {_a(kind.name)}"
    items = value if isinstance(value, tuple) else (value,)
    if all(_is_a(item, kind.name) for item in items):
        return ""
    return f"is {show(value)}; it must be {_a(kind.name)} or a list of them"


def _a(name: str) -> str:
    full = {"int": "an integer", "real": "a number", "bool": "true or false"}
    return full.get(name, "an element type")


def _stretch(binding: Binding, attr: ast.Attr) -> None:
    """A scalar serves all axes; a list must have one number an axis."""
    names = binding.scope.names
    if attr.type.kind != "vector" or attr.name not in names:
        return
    value = names[attr.name]
    wanted: int | None = None
    if attr.type.dims is not None:
        try:
            size = _evaluate.known(attr.type.dims, binding.scope)
        except InvalidInput:
            if not binding.faults:
                raise
            binding.complete = False
            return
        if attr.type.rest:
            wanted = len(size)
        elif isinstance(size, int) and 0 <= size <= _LONGEST:
            wanted = size
        else:
            message = f"the length of `{attr.name}` is {show(size)}: no number from 0 to {_LONGEST}"
            raise fail("definition.size", message, attr.span)
    if not isinstance(value, tuple):
        names[attr.name] = (value,) * (1 if wanted is None else wanted)
    elif wanted is not None and len(value) != wanted:
        message = f"`{attr.name}` has {len(value)} numbers; {wanted} are needed, or one for all"
        binding.fault(attr.name, message, abs(len(value) - wanted), attr.name)
        binding.complete = False
