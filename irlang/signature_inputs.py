"""The tensors of a call against the inputs of a signature: types, sizes, axes that broadcast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irlang import ast
from irlang.binding import Binding
from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import CLASSES, DTYPES
from irlang.equations import Const, TensorInfo
from irlang.evaluate import Evaluator
from irlang.parser.printer import print_expr
from irlang.placement import declared_sizes, place, reference
from irlang.scope import FamilyRef, TensorRef, Unbound, lift, show

_evaluate = Evaluator()


@dataclass(slots=True)
class Pending:
    """Work of `bind` that has to wait until every input has been seen."""

    equal: list[tuple[str, int, int, ast.Expr, dict[str, Any]]] = field(default_factory=list)
    spread: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)
    refs: list[tuple[str, int | None, TensorInfo, ast.Input]] = field(default_factory=list)


def match_dtype(binding: Binding, item: ast.Input, info: TensorInfo, shown: str) -> None:
    """Binds the type variable of an input, or finds that its type is another."""
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


def bound_name(dim: ast.Dim) -> str | None:
    """The name that a declared entry binds, if it is one."""
    return dim.size.id if isinstance(dim.size, ast.Name) else None


def match_input(
    binding: Binding, pending: Pending, item: ast.Input, info: TensorInfo, member: int | None
) -> None:
    """Binds the sizes of an input, entry by entry; what has to wait is left in `pending`."""
    names = binding.scope.names
    dims = item.type.dims
    if any(dim.broadcast for dim in dims):
        _match_broadcast(binding, pending, item, info)
        return
    lengths: list[int | None] = []
    for dim in dims:
        key = bound_name(dim)
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
        key = bound_name(dim)
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


def _match_broadcast(binding: Binding, pending: Pending, item: ast.Input, info: TensorInfo) -> None:
    """From the right: ordinary entries as they are, `~` entries gathered for `broadcast`."""
    shape = list(info.shape)
    for dim in reversed(item.type.dims):
        key = bound_name(dim) or ""
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


def broadcast(binding: Binding, pending: Pending) -> None:
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


def compare(binding: Binding, pending: Pending) -> None:
    """Axes whose declared size is an expression, or was bound by another input."""
    for name, axis, actual, expression, extra in pending.equal:
        scope = binding.scope.inner()
        scope.names.update(extra)
        try:
            wanted = _evaluate.known(expression, scope)
        except InvalidInput:
            if not binding.faults:
                raise
            binding.complete = False
            continue
        if isinstance(wanted, (str, tuple)):
            message = f"a size is {show(wanted)}, not an integer"
            raise fail("definition.size", message, expression.span)
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
                name, message, abs(wanted - actual), name, *(o for o in others if o != name),
                size=text,
            )  # fmt: skip


def references(binding: Binding, pending: Pending) -> None:
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
            value = _evaluate(item.default, binding.scope)
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
