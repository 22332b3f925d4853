"""A call in a model against a signature: its operands, its attributes, and whose fault is whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irlang import ast
from irlang.diagnostics import Diagnostic, Edit, InvalidInput, Note, Span
from irlang.equations import TensorInfo
from irlang.instance import instantiate
from irlang.interp.frame import Frame, suggestion
from irlang.parser.printer import print_expr
from irlang.signature import Fault, Given

Formal = ast.Input | ast.ModelInput
_MOST_SIZES = 8  # of other operands that are tried in place of a wrong one


@dataclass(frozen=True, slots=True)
class Declared:
    """An input or a parameter as it is written: the text that a note quotes, and its type."""

    text: str
    span: Span
    type: ast.TensorType


@dataclass(slots=True)
class Operands:
    """The tensors of a call by the names of the signature, each with its place in the text.

    attrs: the attributes that are given, likewise.
    """

    tensors: dict[str, list[tuple[str, Span]]] = field(default_factory=dict)
    attrs: dict[str, tuple[Any, ast.Expr]] = field(default_factory=dict)

    def given(self, op: ast.Op, values: Mapping[str, TensorInfo]) -> dict[str, Given]:
        """The types of the operands, as `instantiate` takes them."""
        families = {item.name for item in op.inputs if item.family}
        found: dict[str, Given] = {}
        for formal, members in self.tensors.items():
            infos = tuple(values[name] for name, _ in members)
            found[formal] = infos if formal in families else infos[0]
        return found

    def settings(self) -> dict[str, Any]:
        """The attributes' values."""
        return {name: value for name, (value, _) in self.attrs.items()}


def pair(
    definition: ast.Op | ast.Block, call: ast.Call
) -> tuple[list[tuple[Formal, ast.Expr]], list[Diagnostic]]:
    """Which operand is for which input: by position, the last of a family for all the rest, or by
    name after `;`. Faults are `model.arguments`.
    """
    formals: Sequence[Formal] = definition.inputs
    last = formals[-1] if formals else None
    pairs: list[tuple[Formal, ast.Expr]] = []
    faults: list[Diagnostic] = []
    for number, node in enumerate(call.args):
        if number < len(formals):
            pairs.append((formals[number], node))
        elif isinstance(last, ast.Input) and last.family:
            pairs.append((last, node))
        else:
            count = f"{len(formals)} input{'s' * (len(formals) != 1)}"
            message = f"`{definition.name}` takes {count}, not {len(call.args)}"
            if call.args and len(definition.attrs):
                help_ = "attributes follow a semicolon, as in f(x; axis = 1)"
                faults.append(Diagnostic("model.arguments", message, node.span, help=help_))
            else:
                faults.append(Diagnostic("model.arguments", message, node.span))
            break
    by_name = {item.name: item for item in formals}
    taken = {item.name for item, _ in pairs}
    for key, node in call.attrs:
        if key not in by_name:
            continue
        if key in taken:
            faults.append(Diagnostic("model.arguments", f"`{key}` is given twice", node.span))
            continue
        taken.add(key)
        pairs.append((by_name[key], node))
    return pairs, faults


def attributes(
    definition: ast.Op | ast.Block, call: ast.Call, frame: Frame
) -> tuple[dict[str, tuple[Any, ast.Expr]], list[Diagnostic], bool]:
    """The attributes that are given, the faults (`model.attribute`), and whether all are known."""
    declared = {attr.name: attr for attr in definition.attrs}
    inputs = {item.name for item in definition.inputs}
    found: dict[str, tuple[Any, ast.Expr]] = {}
    faults: list[Diagnostic] = []
    known = True
    for key, node in call.attrs:
        attr = declared.get(key)
        if attr is None:
            if key not in inputs:
                message = f"`{definition.name}` has no attribute `{key}`"
                names = (*declared, *inputs)
                help_ = suggestion(key, names)
                help_ = help_ or (f"it has {', '.join(declared)}" if declared else "it has none")
                faults.append(Diagnostic("model.attribute", message, node.span, help=help_))
            continue
        if key in found:
            faults.append(Diagnostic("model.attribute", f"`{key}` is given twice", node.span))
            continue
        try:
            word = attr.type.kind == "enum" or attr.type.name == "dtype"
            if word and isinstance(node, ast.Name) and node.id not in frame.names:
                if node.id in frame.hidden:
                    raise InvalidInput
                found[key] = (node.id, node)
            else:
                found[key] = (frame.setting(node), node)
        except InvalidInput as error:
            faults += error.diagnostics
            known = False
    return found, faults, known


def blame(
    fault: Fault,
    op: ast.Op,
    call: ast.Call,
    operands: Operands,
    values: Mapping[str, TensorInfo],
    declared: Mapping[str, Declared],
) -> Diagnostic:
    """A fault at the attribute or input that is likeliest to be wrong, with a way out if one is
    plain.
    """
    sources = list(dict.fromkeys(fault.sources))
    span = next((operands.attrs[s][1].span for s in sources if s in operands.attrs), None)
    tensors = [s for s in sources if operands.tensors.get(s)]
    if span is None:
        span = operands.tensors[tensors[0]][0][1] if tensors else call.span
    shown: list[str] = []
    notes: list[Note] = []
    for source in tensors:
        for value, _ in operands.tensors[source]:
            shown.append(f"{value} is {values[value]}")
            if value in declared:
                notes.append(Note(f"declared here: {declared[value].text}", declared[value].span))
    edit, help_ = _way_out(fault, op, operands, values, declared)
    return Diagnostic(
        fault.code,
        fault.message,
        span,
        badness=fault.badness,
        label="; ".join(dict.fromkeys(shown)),
        help=help_,
        notes=tuple(dict.fromkeys(notes)),
        edits=(edit,) if edit else (),
    )


# ---- ways out ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Try:
    """A faulty call, to be tried with one number changed; codes: of its faults."""

    op: ast.Op
    given: dict[str, Given]
    attrs: dict[str, Any]
    codes: frozenset[str]
    code: str

    def mends(self, given: Mapping[str, Given], attrs: Mapping[str, Any]) -> bool:
        """Whether a change takes the fault away and brings no other."""
        try:
            faults = instantiate(self.op, {**self.given, **given}, {**self.attrs, **attrs}).faults
        except InvalidInput:
            return False
        return {f.code for f in faults} <= self.codes - {self.code}


def _way_out(
    fault: Fault,
    op: ast.Op,
    operands: Operands,
    values: Mapping[str, TensorInfo],
    declared: Mapping[str, Declared],
) -> tuple[Edit | None, str]:
    """A number to change that makes the condition hold.

    By as much as it is from holding, or to a size that another operand has.
    """
    given, attrs = operands.given(op, values), operands.settings()
    try:
        codes = frozenset(f.code for f in instantiate(op, given, attrs).faults)
    except InvalidInput:
        return None, ""
    call = _Try(op, given, attrs, codes, fault.code)
    step = round(fault.badness) if fault.badness < 2**31 else 0
    read = (name for members in operands.tensors.values() for name, _ in members)
    sizes = sorted({size for name in read for size in values[name].shape})[:_MOST_SIZES]
    for source in dict.fromkeys(fault.sources):
        if source in attrs and isinstance(operands.attrs[source][1], ast.Number):
            value, node = operands.attrs[source]
            if isinstance(value, int) and not isinstance(value, bool):
                for changed in (value - step, value + step):
                    if changed != value and call.mends({}, {source: changed}):
                        return Edit(node.span, str(changed)), f"{source} = {changed}"
        for number, (name, _) in enumerate(operands.tensors.get(source, ())):
            written = declared.get(name)
            if written is not None and written.text.startswith("param "):
                found = _other_size(call, (source, number), values[name], written, (step, sizes))
                if found is not None:
                    return found
    return None, ""


def _other_size(
    call: _Try,
    place: tuple[str, int],
    info: TensorInfo,
    written: Declared,
    tried: tuple[int, list[int]],
) -> tuple[Edit, str] | None:
    """A parameter with one size changed, where that makes the call fit."""
    source, number = place
    step, sizes = tried
    for axis, dim in enumerate(written.type.dims):
        if not isinstance(dim.size, ast.Number):
            continue
        own = info.shape[axis]
        for size in dict.fromkeys((own + step, own - step, *sizes)):
            if size < 1 or size == own:
                continue
            shape = (*info.shape[:axis], size, *info.shape[axis + 1 :])
            other: Given = TensorInfo(shape, info.dtype)
            members = call.given[source]
            if isinstance(members, tuple):
                other = (*members[:number], TensorInfo(shape, info.dtype), *members[number + 1 :])
            if call.mends({source: other}, {}):
                texts = [print_expr(d.size) for d in written.type.dims]
                texts[axis] = str(size)
                name = written.text.removeprefix("param ").split(":")[0]
                wanted = f"declare {name} as {info.dtype}[{', '.join(texts)}]"
                return Edit(dim.span, str(size)), wanted
    return None
