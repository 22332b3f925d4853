"""A definition and a call become flat equations.

`instantiate` says whether a call fits and what it gives (all that shape checking needs);
`expand` writes out the equations of a call that fits. Both evaluate the same text in the same
scope. Non-goal: judging the definition itself beyond what this call meets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from irlang import ast
from irlang import equations as eq
from irlang.badness import interpolate
from irlang.diagnostics import fail
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.instance import Definitions, Instance, instantiate, law_numbers
from irlang.kinds import join, kind_of
from irlang.laws import LAWS
from irlang.nesting import unnested
from irlang.placement import declared_sizes, place_known
from irlang.reached import reached, tensors
from irlang.scope import FamilyRef, Macro, Scope, TensorRef, is_residual, lift, show
from irlang.signature import Binding, Given, resolve_dtype

evaluate = Evaluator()
_DEPTH_LIMIT = 32  # definitions that use one another
_MOST_USES = 1000  # of definitions inside one that is called


# ---- equations --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Build:
    """One expansion in the making; `prefix` sets apart the tensors of a definition used inside."""

    definitions: Definitions
    equations: list[eq.Equation] = field(default_factory=list)
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    checks: list[eq.Check] = field(default_factory=list)
    unspecified: list[eq.Equation] = field(default_factory=list)
    drawn: list[eq.Draw] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    ensures: list[eq.Ensure] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    depth: int = 0
    uses: int = 0


def expand(instance: Instance, definitions: Definitions) -> eq.Expansion:
    """The equations of a call that fits (`instance.faults` is empty); made once."""
    if instance._expanded is not None and instance._expanded[0] is definitions:
        return instance._expanded[1]
    build = _Build(definitions)
    binding = instance.binding
    inputs: list[str] = []
    for item in binding.op.inputs:
        given = binding.inputs.get(item.name)
        if isinstance(given, tuple):
            for member, info in enumerate(given):
                build.tensors[f"{item.name}[{member}]"] = info
                inputs.append(f"{item.name}[{member}]")
        elif given is not None:
            build.tensors[item.name] = given
            inputs.append(item.name)
    _body(build, instance, {})
    outputs = tuple(name for name, _ in instance.outputs or ())
    idle = {one.target for one in build.equations} - _reached(build, outputs)
    made = eq.Expansion(
        tuple(inputs),
        outputs,
        tuple(one for one in build.equations if one.target not in idle),
        {name: info for name, info in build.tensors.items() if name not in idle},
        tuple(build.checks),
        tuple(one for one in build.unspecified if one.target not in idle),
        tuple(build.drawn),
        tuple(build.chosen),
        tuple(build.ensures),
        frozenset(s.name for s in binding.op.body if isinstance(s, ast.Grad) and s.beyond),
    )
    instance._expanded = (definitions, made)
    return made


def _reached(build: _Build, outputs: tuple[str, ...]) -> set[str]:
    """The tensors that results, preconditions and promises are made of."""
    conditions = [check.condition for check in build.checks]
    conditions += [part for ensure in build.ensures for part in ensure.parts]
    asked = set(outputs).union(*map(tensors, conditions))
    return reached((*build.equations, *build.unspecified), asked)


def _body(build: _Build, instance: Instance, renamed: dict[str, str], prefix: str = "") -> None:
    """Adds the equations of an instance.

    renamed: what its inputs are called in the expansion, where that differs.
    """
    binding = _own(instance.binding, renamed, build.used)
    op, scope = binding.op, binding.scope
    build.depth += 1
    if build.depth > _DEPTH_LIMIT:
        message = f"`{op.name}` uses itself, or too many definitions inside one another"
        raise fail("definition.depth", message, op.span)
    outputs = dict(instance.outputs or ())
    _declare_outputs(binding, outputs, prefix)
    for name, info in outputs.items():
        build.tensors[prefix + name] = info
    # What is left open for some inputs may be ensured of all; of a call inside nobody asks.
    leaves_open = not prefix and not any(isinstance(s, ast.Some) for s in op.body)
    statements = unnested(op.body, build.definitions)
    for statement in statements:  # all is in scope before any equation: recurrences read ahead
        if isinstance(statement, ast.Equation) and statement.name not in scope.names:
            _declare(build, binding, statement, prefix)
        elif isinstance(statement, ast.Assign):
            _declare_composed(build, binding, statement, prefix)
        elif isinstance(statement, ast.Some):
            leaves_open = _some(build, binding, statement, prefix) or leaves_open
    _widen(build, binding, prefix)
    for statement in statements:
        if isinstance(statement, ast.Equation):
            _equation(build, binding, statement)
        elif isinstance(statement, ast.Assign):
            _compose(build, binding, statement, prefix)
        elif isinstance(statement, ast.Unspecified):
            _unspecified(build, binding, statement)
        elif isinstance(statement, ast.Require):
            _check(build, binding, statement)
        elif isinstance(statement, ast.Ensure) and leaves_open:
            _ensure(build, binding, statement)
    build.depth -= 1


def _own(binding: Binding, renamed: dict[str, str], used: set[str]) -> Binding:
    """A binding whose scope may be written to: an instance may be expanded many times."""
    scope = Scope({}, dict(binding.scope.labels), used)

    def copied(value: Any) -> Any:
        if isinstance(value, TensorRef):
            return replace(value, name=renamed.get(value.name, value.name))
        if isinstance(value, FamilyRef):
            return FamilyRef(tuple(map(copied, value.members)))
        if isinstance(value, Macro) and value.scope is binding.scope:
            return Macro(value.params, value.body, scope)
        return value

    scope.names.update((name, copied(value)) for name, value in binding.scope.names.items())
    return replace(binding, scope=scope)


def _declare_outputs(binding: Binding, outputs: dict[str, TensorInfo], prefix: str) -> None:
    scope = binding.scope
    for output in binding.op.outputs:
        if output.family:
            members = []
            for member in range(sum(name.startswith(f"{output.name}.") for name in outputs)):
                inner = scope.inner()
                inner.names[output.family] = member
                name = f"{output.name}.{member}"
                members.append(_reference(prefix + name, output.type, outputs[name], inner))
            scope.names[output.name] = FamilyRef(tuple(members))
        else:
            ref = _reference(prefix + output.name, output.type, outputs[output.name], scope)
            scope.names[output.name] = ref


def _reference(name: str, kind: ast.TensorType, info: TensorInfo, scope: Scope) -> TensorRef:
    sizes = declared_sizes(kind.dims, scope)
    placed = place_known(kind.dims, len(sizes), scope) if sizes else ()
    return TensorRef(name, info.shape, info.dtype, info.kind, placed, sizes)


def _compute_dtype(binding: Binding, kind: str) -> str:
    """The type of an intermediate: reals are kept in the type of the call's own reals."""
    if kind == "bool":
        return "bool"
    if kind == "int":
        return "i64"
    reals = [d for d in binding.dtypes.values() if DTYPES[d].kind == "real"]
    return reals[0] if reals else "f64"


def _declare(build: _Build, binding: Binding, statement: ast.Equation, prefix: str) -> None:
    scope = binding.scope
    sizes: list[int] = []
    for index in statement.index:
        if index.bound is None:
            message = f"`{index.name}` needs a bound here, as `{index.name} < N`"
            raise fail("definition.bound", message, index.span)
        value = evaluate.known(index.bound, scope)
        if index.rest and not isinstance(value, tuple):
            raise fail("definition.rest", f"`{index.name}..` needs a list of sizes", index.span)
        for size in value if index.rest else (value,):
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                message = f"a size is a whole number, 0 or more, not {show(size)}"
                raise fail("definition.size", message, index.span)
            sizes.append(size)
    dtype = _compute_dtype(binding, kind_of(statement.value, scope) or "real")
    shape = tuple(sizes)
    build.tensors[prefix + statement.name] = TensorInfo(shape, dtype)
    scope.names[statement.name] = TensorRef(
        prefix + statement.name, shape, dtype, DTYPES[dtype].kind, tuple(range(len(shape))), shape
    )


def _widen(build: _Build, binding: Binding, prefix: str) -> None:
    """Widens the kind of what reads equations further down, which had no kind before."""
    outputs = {output.name for output in binding.op.outputs}
    changed = True
    while changed:
        changed = False
        for statement in binding.op.body:
            if not isinstance(statement, ast.Equation) or statement.name in outputs:
                continue
            inner = binding.scope.inner()
            inner.names.update((index.name, 0) for index in statement.index)
            ref = binding.scope.names[statement.name]
            found = join(ref.kind, kind_of(statement.value, inner))
            if found is not None and found != ref.kind:
                ref.kind, ref.dtype = found, _compute_dtype(binding, found)
                build.tensors[prefix + statement.name] = TensorInfo(ref.shape, ref.dtype)
                changed = True


def _equation(build: _Build, binding: Binding, statement: ast.Equation) -> None:
    target = binding.scope.names[statement.name]
    if not isinstance(target, FamilyRef):
        _one_equation(build, binding, statement, target, binding.scope.inner())
        return
    for member, ref in enumerate(target.members):
        scope = binding.scope.inner()
        scope.names[statement.member] = member
        scope.labels[statement.member] = str(member)
        _one_equation(build, binding, statement, ref, scope)


def _one_equation(
    build: _Build, binding: Binding, statement: ast.Equation, ref: TensorRef, inner: Scope
) -> None:
    binders = _left_side(binding, statement.index, statement.name, ref, inner)
    body = evaluate.scalar(statement.value, inner)
    info = build.tensors.get(ref.name) or TensorInfo(ref.shape, ref.dtype)
    build.equations.append(eq.Equation(ref.name, binders, body, info))


def _left_side(
    binding: Binding, left: tuple[ast.Index, ...], name: str, ref: TensorRef, inner: Scope
) -> tuple[tuple[str, eq.Expr], ...]:
    """Binds the indices of an equation's left side; gives (name, bound) by actual axis."""
    output = next((o for o in binding.op.outputs if o.name == name), None)
    declared: list[tuple[str, eq.Expr]] = []
    for position, index in enumerate(left):
        bound_node = index.bound
        if bound_node is None and output is not None and position < len(output.type.dims):
            bound_node = output.type.dims[position].size
        if bound_node is None:
            raise fail("definition.bound", f"`{index.name}` needs a bound", index.span)
        declared += evaluate.bind(
            (ast.Binder(index.name, bound_node, index.rest, span=index.span),), inner
        )
    if len(declared) != len(ref.sizes):
        message = f"`{name}` has {len(ref.sizes)} axes; {len(declared)} indices are given"
        raise fail("definition.rank", message, left[0].span if left else binding.op.span)
    actual: list[tuple[str, eq.Expr]] = [("", eq.Const(0))] * len(declared)
    for pair, axis in zip(declared, ref.placement, strict=True):
        actual[axis] = pair
    return tuple(actual)


def _check(build: _Build, binding: Binding, statement: ast.Require) -> None:
    value = evaluate(statement.condition, binding.scope)
    if is_residual(value):
        code = f"{binding.op.name}.{statement.name}"
        message = interpolate(statement.message, binding.scope)
        build.checks.append(eq.Check(code, lift(value, "", statement.span), message))
    elif value is not True:
        message = interpolate(statement.message, binding.scope)
        raise fail(f"{binding.op.name}.{statement.name}", message, statement.span)


# ---- what is left open ------------------------------------------------------------------------


def _some(build: _Build, binding: Binding, statement: ast.Some, prefix: str) -> bool:
    """Declares a value that is left open; whether more than one is right in this call.

    One whose law gives a single value is that constant, and leaves nothing open.
    """
    name = prefix + statement.name
    if statement.law is None:
        build.chosen.append(name)
        return True
    scope = binding.scope
    sizes = declared_sizes(statement.type.dims, scope)
    for size in sizes:
        if type(size) is not int or size < 0:  # a truth value is an int to isinstance
            message = f"a size is a whole number, 0 or more, not {show(size)}"
            raise fail("definition.size", message, statement.span)
    dtype = resolve_dtype(binding, statement.type.dtype)
    law, params = statement.law.function, law_numbers(statement.law, binding)
    certain = LAWS[law].certain(*params)
    ref = TensorRef(name, sizes, dtype, DTYPES[dtype].kind, tuple(range(len(sizes))), sizes)
    if certain is not None:
        ref.constant = eq.Const(certain)
    else:
        build.tensors[name] = TensorInfo(sizes, dtype)
        build.drawn.append(eq.Draw(name, law, params))
    scope.names[statement.name] = ref
    return certain is None


def _ensure(build: _Build, binding: Binding, statement: ast.Ensure) -> None:
    value = evaluate(statement.condition, binding.scope)
    parts = _conjuncts(lift(value, "", statement.span))
    for part in parts:
        inner = part.args if isinstance(part, eq.Apply) and part.function in LAWS else (part,)
        for sub in (sub for arg in inner for sub in eq.walk(arg)):
            if isinstance(sub, eq.Apply) and sub.function in LAWS:
                message = f"`{sub.function}` judges a statistic by itself: join it by `and` alone"
                raise fail("definition.law", message, statement.span)
    code = f"{binding.op.name}.{statement.name}"
    message = interpolate(statement.message, binding.scope)
    build.ensures.append(eq.Ensure(code, tuple(parts), message))


def _conjuncts(expr: eq.Expr) -> list[eq.Expr]:
    if isinstance(expr, eq.Apply) and expr.function == "and":
        return [part for arg in expr.args for part in _conjuncts(arg)]
    return [expr]


def _unspecified(build: _Build, binding: Binding, statement: ast.Unspecified) -> None:
    inner = binding.scope.inner()
    ref = binding.scope.names.get(statement.name)
    if not isinstance(ref, TensorRef):
        raise fail("definition.name", f"`{statement.name}` is not a result", statement.span)
    binders = _left_side(binding, statement.index, statement.name, ref, inner)
    value = evaluate(statement.condition, inner)
    if value is False:
        return
    mask = lift(value, "", statement.span)
    build.unspecified.append(eq.Equation(ref.name, binders, mask, TensorInfo(ref.shape, "bool")))


# ---- definitions used inside definitions ------------------------------------------------------


def _declare_composed(build: _Build, binding: Binding, statement: ast.Assign, prefix: str) -> None:
    instance, _ = _inner_instance(build, binding, statement)
    outputs = instance.outputs or ()
    if len(outputs) < len(statement.targets):
        message = f"`{statement.value.function}` gives {len(outputs)} results"
        raise fail("definition.results", message, statement.span)
    for target, (name, info) in zip(statement.targets, outputs, strict=False):
        full = f"{prefix}{statement.targets[0]}.{name}"
        axes = tuple(range(len(info.shape)))
        binding.scope.names[target] = TensorRef(
            full, info.shape, info.dtype, info.kind, axes, info.shape
        )


def _absent(binding: Binding, formal: ast.Input, node: ast.Expr) -> bool:
    """Whether `node` is an input that the call lacks, and `formal` has the same default."""
    own = {item.name: item for item in binding.op.inputs}
    outer = own.get(node.id) if isinstance(node, ast.Name) else None
    if outer is None or outer.default is None or binding.inputs.get(outer.name) is not None:
        return False
    return outer.default == formal.default


def _inner_instance(
    build: _Build, binding: Binding, statement: ast.Assign
) -> tuple[Instance, dict[str, str]]:
    call = statement.value
    build.uses += 1
    if build.uses > _MOST_USES:
        raise fail("definition.depth", "too many definitions inside one another", call.span)
    op = build.definitions.op(call.function)
    if op is None:
        raise fail("definition.op", f"there is no operator `{call.function}`", call.span)
    given: dict[str, Given] = {}
    renamed: dict[str, str] = {}

    def tensor(node: ast.Expr) -> TensorRef:
        value = evaluate(node, binding.scope)
        if not isinstance(value, TensorRef) or value.constant is not None:
            raise fail("definition.tensor", "a whole tensor is needed here", node.span)
        return value

    formals = list(op.inputs)
    pairs: list[tuple[ast.Input, ast.Expr]] = []
    for number, node in enumerate(call.args):
        formal = formals[min(number, len(formals) - 1)] if formals else None
        if formal is None or (number >= len(formals) and not formal.family):
            raise fail(
                "definition.arguments", f"`{op.name}` takes {len(formals)} inputs", node.span
            )
        pairs.append((formal, node))
    attrs: dict[str, Any] = {}
    declared = {attr.name: attr for attr in op.attrs}
    for key, node in call.attrs:
        formal = next((f for f in formals if f.name == key), None)
        if formal is not None:
            pairs.append((formal, node))
        elif key in declared:
            enum = declared[key].type.kind == "enum" or declared[key].type.name == "dtype"
            literal = enum and isinstance(node, ast.Name) and node.id not in binding.scope.names
            attrs[key] = (
                node.id
                if literal and isinstance(node, ast.Name)
                else evaluate.known(node, binding.scope)
            )
        else:
            raise fail("definition.attribute", f"`{op.name}` has no attribute `{key}`", node.span)
    for formal, node in pairs:
        if _absent(binding, formal, node):
            continue
        ref = tensor(node)
        info = TensorInfo(ref.shape, ref.dtype)
        if formal.family:
            earlier = given.get(formal.name) or ()
            assert isinstance(earlier, tuple)
            renamed[f"{formal.name}[{len(earlier)}]"] = ref.name
            given[formal.name] = (*earlier, info)
        else:
            renamed[formal.name] = ref.name
            given[formal.name] = info
    instance = instantiate(op, given, attrs)
    if instance.faults or instance.outputs is None:
        fault = instance.faults[0]
        raise fail(fault.code, f"inside `{binding.op.name}`: {fault.message}", call.span)
    return instance, renamed


def _compose(build: _Build, binding: Binding, statement: ast.Assign, prefix: str) -> None:
    instance, renamed = _inner_instance(build, binding, statement)
    _body(build, instance, renamed, f"{prefix}{statement.targets[0]}.")
