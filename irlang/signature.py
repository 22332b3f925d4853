"""Matches the inputs and attributes of a call against the signature of a definition.

Takes a definition, the types of the tensors given and the values of the attributes given; gives
the sizes that the signature names (`N`, `S..`), the completed attributes, and every way in which
the call does not fit. Non-goal: the body of the definition (`irlang.expand`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import CLASSES, DEFAULT_OF_KIND, DTYPES
from irlang.equations import Const, TensorInfo
from irlang.evaluate import Evaluator
from irlang.parser.printer import print_expr
from irlang.placement import declared_sizes, place, reference
from irlang.scope import FamilyRef, Macro, Scope, TensorRef, Unbound, lift, show

Given = TensorInfo | tuple[TensorInfo, ...] | None
evaluate = Evaluator()

_LONGEST = 1_000_000  # numbers of an attribute


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a call does not fit its definition.

    sources: the inputs and attributes that take part, the likeliest culprit first.
    """

    code: str
    message: str
    badness: float
    sources: tuple[str, ...]


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

    def fault(self, code: str, message: str, badness: float, *sources: str) -> None:
        """Records a fault."""
        self.faults.append(Fault(f"{self.op.name}.{code}", message, badness, sources))


@dataclass(slots=True)
class _Pending:
    """Work of `bind` that has to wait until every input has been seen."""

    equal: list[tuple[str, int, int, ast.Expr, dict[str, Any]]] = field(default_factory=list)
    spread: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)
    refs: list[tuple[str, int | None, TensorInfo, ast.Input]] = field(default_factory=list)


def bind(op: ast.Op, inputs: Mapping[str, Given], attrs: Mapping[str, Any]) -> Binding:
    """Binds a call; see `Binding`. Names in `inputs` and `attrs` are those of the definition."""
    binding = Binding(op, inputs, _first_names(op, inputs))
    names = binding.scope.names
    late = [attr for attr in op.attrs if not _early(attr, attrs, binding)]
    pending = _Pending()
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
            _match_dtype(binding, item, info, shown)
            _match_input(binding, pending, item, info, member)
            pending.refs.append((shown, member, info, item))
    for item in op.inputs:  # the axes that only an absent input would say are none
        if inputs.get(item.name) is None and not any(dim.broadcast for dim in item.type.dims):
            for dim in item.type.dims:
                key = _key(dim)
                if dim.kind == "rest" and key is not None:
                    names.setdefault(key, ())
    _broadcast(binding, pending)
    for attr in late:
        if not _early(attr, attrs, binding, final=True):
            binding.complete = False
    for attr in op.attrs:
        _stretch(binding, attr)
    _compare(binding, pending)
    for variable, dtype in binding.dtypes.items():
        names.setdefault(variable, dtype)  # so that the body may say `integral(T)`
    if binding.complete:
        _references(binding, pending)
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
            value = evaluate.known(attr.default, binding.scope)
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
            size = evaluate.known(attr.type.dims, binding.scope)
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


# ---- tensors ----------------------------------------------------------------------------------


def _match_dtype(binding: Binding, item: ast.Input, info: TensorInfo, shown: str) -> None:
    wanted = item.type.dtype
    variables = dict(binding.op.dtypes)
    if wanted in variables:
        allowed = CLASSES.get(variables[wanted])
        if allowed is None:
            message = f"`{variables[wanted]}` is not a class of types: {', '.join(CLASSES)}"
            raise fail("definition.dtype", message, binding.op.span)
        bound = binding.dtypes.get(wanted)
        if info.dtype not in allowed:
            message = f"{shown} is {info}; {wanted} is one of {', '.join(sorted(allowed))}"
            binding.fault(f"{item.name}.dtype", message, 1, item.name)
        elif bound is None:
            binding.dtypes[wanted] = info.dtype
        elif bound != info.dtype:
            message = f"{shown} is {info}; the other inputs are {bound}"
            binding.fault(f"{item.name}.dtype", message, 1, item.name)
        return
    allowed = CLASSES.get(wanted, frozenset({wanted} & DTYPES.keys()))
    if not allowed:
        raise fail("definition.dtype", f"there is no type `{wanted}`", item.span)
    if info.dtype not in allowed:
        binding.fault(f"{item.name}.dtype", f"{shown} is {info}; {wanted} is needed", 1, item.name)


def _key(dim: ast.Dim) -> str | None:
    """The name that a declared entry binds, if it is one."""
    return dim.size.id if isinstance(dim.size, ast.Name) else None


def _match_input(
    binding: Binding, pending: _Pending, item: ast.Input, info: TensorInfo, member: int | None
) -> None:
    names = binding.scope.names
    dims = item.type.dims
    if any(dim.broadcast for dim in dims):
        _match_broadcast(binding, pending, item, info)
        return
    lengths: list[int | None] = []
    for dim in dims:
        key = _key(dim)
        bound = names.get(key) if key else None
        lengths.append(
            1 if dim.kind == "size" else len(bound) if isinstance(bound, tuple) else None
        )
    try:
        placed = place(dims, lengths, len(info.shape), binding.scope)
    except Unbound:
        if not binding.faults:
            raise
        binding.complete = False
        return
    if isinstance(placed, str):
        declared = sum(length or 0 for length in lengths)
        message = f"{item.name} is {info}: {placed}"
        sources = [n.id for d in dims if d.at for n in ast.walk(d.at) if isinstance(n, ast.Name)]
        badness = max(1, abs(len(info.shape) - declared))
        binding.fault(
            f"{item.name}.rank",
            message,
            badness,
            *(sources if "axis" in placed[:7] else ()),
            item.name,
        )
        binding.complete = False
        return
    for dim, axes in zip(dims, placed, strict=True):
        sizes = tuple(info.shape[a] for a in axes)
        key = _key(dim)
        if dim.kind == "rest" and isinstance(dim.size, ast.Read):
            key = dim.size.name
            names[key] = (*names.get(key, ()), sizes)
            binding.origins.setdefault(key, []).append(item.name)
        elif dim.kind == "rest":
            _bind_rest(binding, item, info, key or "", sizes)
        elif key is not None and key not in names:
            names[key] = sizes[0]
            binding.origins.setdefault(key, []).append(item.name)
        elif (
            member is not None
            and isinstance(dim.size, ast.Read)
            and len(names.get(dim.size.name, ())) == member
        ):
            key = dim.size.name
            names[key] = (*names.get(key, ()), sizes[0])
            binding.origins.setdefault(key, []).append(item.name)
        else:
            if key is not None:
                binding.origins.setdefault(key, []).append(item.name)
            pending.equal.append(
                (
                    item.name,
                    axes[0],
                    sizes[0],
                    dim.size,
                    {item.family: member} if item.family else {},
                )
            )


def _bind_rest(
    binding: Binding, item: ast.Input, info: TensorInfo, key: str, sizes: tuple[int, ...]
) -> None:
    names = binding.scope.names
    bound = names.get(key)
    if bound is None:
        names[key] = sizes
    elif bound != sizes:
        message = f"{item.name} is {info}; {key}.. is {show(bound)} elsewhere"
        distance = sum(abs(a - b) for a, b in zip(bound, sizes, strict=False)) + 10 * abs(
            len(bound) - len(sizes)
        )
        binding.fault(item.name, message, distance, item.name, *binding.origins.get(key, ()))
        binding.complete = False
    binding.origins.setdefault(key, []).append(item.name)


def _match_broadcast(
    binding: Binding, pending: _Pending, item: ast.Input, info: TensorInfo
) -> None:
    """From the right: ordinary entries as they are, `~` entries gathered for `_broadcast`."""
    shape = list(info.shape)
    for dim in reversed(item.type.dims):
        key = _key(dim) or ""
        if dim.broadcast and dim.kind == "rest":
            pending.spread.setdefault(key + "..", []).append((item.name, tuple(shape)))
            shape = []
        elif dim.broadcast:
            pending.spread.setdefault(key, []).append((item.name, tuple(shape[-1:])))
            shape = shape[:-1]
        elif not shape:
            message = f"{item.name} is {info}: more axes are needed"
            binding.fault(f"{item.name}.rank", message, 1, item.name)
            binding.complete = False
            return
        else:
            size = shape.pop()
            if key and key not in binding.scope.names:
                binding.scope.names[key] = size
            else:
                pending.equal.append((item.name, len(shape), size, dim.size, {}))
            binding.origins.setdefault(key, []).append(item.name)
    if shape:
        message = (
            f"{item.name} is {info}: at most {len(info.shape) - len(shape)} axes broadcast here"
        )
        binding.fault(f"{item.name}.rank", message, len(shape), item.name)
        binding.complete = False


def _broadcast(binding: Binding, pending: _Pending) -> None:
    """The common size of `~` entries: NumPy's rule, from the right, 1 or absent gives way."""
    names = binding.scope.names
    for entry, uses in pending.spread.items():
        key = entry.removesuffix("..")
        whole = entry.endswith("..")
        binding.origins.setdefault(key, []).extend(name for name, _ in uses)
        known: tuple[int, ...] | None = None
        if key in names:
            known = names[key] if whole else (names[key],)
        length = len(known) if known is not None else max(len(sizes) for _, sizes in uses)
        common = list(known or (1,) * length)
        for name, sizes in uses:
            if len(sizes) > length:
                message = f"{name} has {len(sizes)} axes to broadcast along {length}"
                binding.fault(name, message, len(sizes) - length, name)
                binding.complete = False
                continue
            for axis, size in enumerate(sizes, length - len(sizes)):
                if size != common[axis] and size != 1:
                    if common[axis] != 1 or known is not None:
                        message = (
                            f"{name} has size {size} where {common[axis]} (or 1) is needed "
                            f"(axis {axis - length})"
                        )
                        binding.fault(
                            name,
                            message,
                            abs(size - common[axis]),
                            name,
                            *(n for n, _ in uses if n != name),
                        )
                        binding.complete = False
                    else:
                        common[axis] = size
        names[key] = tuple(common) if whole else (common or [1])[0]


def _compare(binding: Binding, pending: _Pending) -> None:
    """Axes whose declared size is an expression, or was bound by another input."""
    for name, axis, actual, expression, extra in pending.equal:
        scope = binding.scope.inner()
        scope.names.update(extra)
        try:
            wanted = evaluate.known(expression, scope)
        except InvalidInput:
            if not binding.faults:
                raise
            binding.complete = False
            continue
        if wanted != actual:
            text = print_expr(expression)
            told = f"{text} = {wanted}" if text != str(wanted) else text
            message = f"{name} has size {actual} on axis {axis}; {told} is needed"
            others = [
                o
                for n in ast.walk(expression)
                if isinstance(n, ast.Name)
                for o in binding.origins.get(n.id, [n.id])
            ]
            binding.fault(
                name, message, abs(wanted - actual), name, *(o for o in others if o != name)
            )


def _references(binding: Binding, pending: _Pending) -> None:
    """Puts the tensors themselves into scope."""
    names = binding.scope.names
    families: dict[str, list[TensorRef]] = {}
    for shown, member, info, item in pending.refs:
        scope = binding.scope.inner()
        if item.family:
            scope.names[item.family] = member
        ref = reference(shown, item.type.dims, info, scope)
        if member is None:
            names[item.name] = ref
        else:
            families.setdefault(item.name, []).append(ref)
    for name, refs in families.items():
        names[name] = FamilyRef(tuple(refs))
    for item in binding.op.inputs:
        if binding.inputs.get(item.name) is None and item.default is not None:
            value = evaluate(item.default, binding.scope)
            constant = (
                lift(value, "", item.span) if not isinstance(value, (int, float)) else Const(value)
            )
            dtype = binding.dtypes.get(item.type.dtype, item.type.dtype)
            kind = DTYPES[dtype].kind if dtype in DTYPES else "int" if dtype == "int" else "real"
            try:
                sizes = declared_sizes(item.type.dims, binding.scope)
            except Unbound:  # a size that this input alone would bind: it has no elements to read
                sizes = ()
            names[item.name] = TensorRef(
                item.name, sizes, dtype, kind, tuple(range(len(sizes))), sizes, constant=constant
            )


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
