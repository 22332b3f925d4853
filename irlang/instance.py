"""A call judged: whether it fits its definition, and the types of what it gives.

This is all that shape checking needs; `irlang.expand` writes out the equations of a call that fits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from irlang import ast
from irlang import equations as eq
from irlang.badness import badness, interpolate
from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.kinds import join
from irlang.laws import LAWS
from irlang.placement import declared_sizes, place_known
from irlang.scope import Macro, Scope, is_residual, show
from irlang.signature import Binding, Fault, Given, bind, involved, resolve_dtype

evaluate = Evaluator()
_MOST_RESULTS = 4096  # members of a family
_MOST_KNOWN = 2048  # calls that are remembered


class Definitions(Protocol):
    """Where definitions are looked up by name (`irlang.catalog.Catalog`)."""

    def op(self, name: str) -> ast.Op | None:
        """The definition of that name."""


@dataclass(slots=True)
class Instance:
    """A call that has been judged.

    outputs: (name, type) pairs, members of a family one by one as `ys.0`; None where faults leave
    them unknown. deferred: preconditions on values, not decidable from shapes.
    """

    binding: Binding
    outputs: tuple[tuple[str, TensorInfo], ...] | None = None
    deferred: list[tuple[ast.Require, eq.Expr]] = field(default_factory=list)
    _expanded: tuple[Definitions, eq.Expansion] | None = field(default=None, repr=False)

    @property
    def faults(self) -> list[Fault]:
        """Every violated precondition."""
        return self.binding.faults


_known: OrderedDict[Any, tuple[ast.Op, Instance]] = OrderedDict()


def instantiate(op: ast.Op, inputs: Mapping[str, Given], attrs: Mapping[str, Any]) -> Instance:
    """Judges a call: binds it, evaluates `let`s and `require`s, and sizes its outputs.

    Equal calls share one instance, and with it their equations and what is known about these;
    numbers that know more than their value (open sizes of importers) are equal to nothing.
    """
    if not (_numbers_only(attrs.values()) and all(map(_numbers_only, _shapes(inputs)))):
        return _judged(op, inputs, attrs)
    key = id(op), *((name, value) for name, value in inputs.items()), _typed(attrs.items())
    found = _known.pop(key, None)
    if found is None:
        found = op, _judged(op, inputs, attrs)  # the definition is kept: its id stays its own
    if found[1].outputs is not None and not found[1].faults:
        _known[key] = found
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return found[1]


def _shapes(inputs: Mapping[str, Given]) -> Iterator[tuple[int, ...]]:
    for given in inputs.values():
        if given is not None:
            yield from (info.shape for info in (given if isinstance(given, tuple) else (given,)))


def _numbers_only(value: Any) -> bool:
    """Whether every integer inside is no more than that."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return all(map(_numbers_only, value))
    return not isinstance(value, int) or type(value) in (int, bool)


def _typed(value: Any) -> Any:
    """A key that keeps 1, 1.0 and true apart."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(map(_typed, value))
    return type(value), value


def _judged(op: ast.Op, inputs: Mapping[str, Given], attrs: Mapping[str, Any]) -> Instance:
    binding = bind(op, inputs, attrs)
    instance = Instance(binding)
    if not binding.complete:
        return instance
    try:
        for statement in op.body:
            if isinstance(statement, ast.Let):
                _let(statement, binding.scope)
            elif isinstance(statement, ast.Require):
                _require(statement, instance)
        for statement in op.body:
            if isinstance(statement, ast.Some) and statement.law is not None and not binding.faults:
                _law(statement, statement.law, binding)
        outputs = tuple(_output_types(binding))
        # A violated precondition may leave a size that means nothing; what follows from it is not
        # another fault.
        if not binding.faults or all(size > 0 for _, info in outputs for size in info.shape):
            instance.outputs = outputs
    except InvalidInput:
        # A size that cannot be computed because a precondition is violated is not a second fault.
        if not binding.faults:
            raise
    return instance


def _let(statement: ast.Let, scope: Scope) -> None:
    if statement.params:
        scope.names[statement.name] = Macro(statement.params, statement.value, scope)
        return
    value = evaluate(statement.value, scope)
    if statement.rest and not isinstance(value, tuple):
        message = f"`{statement.name}..` needs a list, as `S..` or [1, 2]"
        raise fail("definition.rest", message, statement.span)
    scope.names[statement.name] = value


def _require(statement: ast.Require, instance: Instance) -> None:
    binding = instance.binding
    try:
        value = evaluate(statement.condition, binding.scope)
    except InvalidInput:
        if binding.faults:
            return
        if _reads_elements(statement.condition, binding):
            return  # decided when the equations are built
        raise
    if is_residual(value):
        instance.deferred.append((statement, value))
        return
    if value is True:
        return
    binding.fault(
        statement.name,
        interpolate(statement.message, binding.scope),
        max(badness(statement.condition, binding.scope), 1e-9),
        *involved(binding, statement.condition),
    )


def _law(some: ast.Some, law: ast.Call, binding: Binding) -> None:
    """A law whose numbers are not allowed is a fault of the call: they come from its attributes.

    So is an element type that does not hold what the law gives.
    """
    row, name = LAWS[law.function], some.name
    dtype = resolve_dtype(binding, some.type.dtype)
    if join(DTYPES[dtype].kind, row.kind) != DTYPES[dtype].kind:
        message = f"`{name}` is {dtype}, which does not hold what {law.function} gives"
        binding.fault(name, message, 1, some.type.dtype)
    params = law_numbers(law, binding)
    if any(not isinstance(value, (int, float, Fraction)) for value in params):
        return  # a violated precondition has left no number
    distance = row.distance(*params)
    if distance > 0:
        message = f"`{name}` follows {law.function}({', '.join(map(show, params))}): {row.domain}"
        binding.fault(name, message, distance, *involved(binding, law))


def law_numbers(law: ast.Call, binding: Binding) -> tuple[eq.Scalar, ...]:
    """The numbers of the law of a `some`, which depend on sizes and attributes alone."""
    return tuple(evaluate.known(arg, binding.scope) for arg in law.args)


def _reads_elements(node: ast.Expr, binding: Binding) -> bool:
    declared = {s.name for s in binding.op.body if isinstance(s, ast.Equation)}
    return any(isinstance(part, ast.Read) and part.name in declared for part in ast.walk(node))


def outputs_said(instance: Instance) -> tuple[tuple[str, TensorInfo], ...] | None:
    """What the results of a call are declared to be, whatever is wrong with it: a size may be 0 or
    below. None where the declaration has no number for a size.
    """
    try:
        return tuple(_output_types(instance.binding, below=True))
    except InvalidInput:
        return None


def _output_types(binding: Binding, below: bool = False) -> list[tuple[str, TensorInfo]]:
    """The types of all results. below: whether a size may be below 0."""
    found: list[tuple[str, TensorInfo]] = []
    for output in binding.op.outputs:
        dtype = resolve_dtype(binding, output.type.dtype)
        if not output.family:
            shape = _actual(output.type, binding.scope, below)
            found.append((output.name, TensorInfo(shape, dtype)))
            continue
        count = evaluate.known(output.count, binding.scope) if output.count else 0
        if not isinstance(count, int) or count > _MOST_RESULTS:
            raise fail(
                "definition.size", f"{show(count)} results cannot be written out", output.span
            )
        for member in range(count):
            scope = binding.scope.inner()
            scope.names[output.family] = member
            info = TensorInfo(_actual(output.type, scope, below), dtype)
            found.append((f"{output.name}.{member}", info))
    return found


def _actual(kind: ast.TensorType, scope: Scope, below: bool) -> tuple[int, ...]:
    """The shape that a declared type has once `@` has placed its axes."""
    sizes = declared_sizes(kind.dims, scope)
    found: tuple[Any, ...] = sizes  # what a definition computes may be anything
    for size, dim in zip(found, kind.dims, strict=False):
        if not isinstance(size, int) or isinstance(size, bool):
            raise fail("definition.size", f"a size is {show(size)}, not an integer", dim.span)
    placed = place_known(kind.dims, len(sizes), scope) if sizes else ()
    shape = [0] * len(sizes)
    for size, axis in zip(sizes, placed, strict=True):
        if size < 0 and not below:
            raise fail("definition.size", f"a size is {size}", kind.span)
        shape[axis] = size
    return tuple(shape)
