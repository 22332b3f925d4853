"""Definitions and blocks that are judged by their text alone, whether anything calls them or not.

Every name, function and operator in the text of a definition must be one, every element type and
every choice of a `match` must be there, and every result must have an equation. Non-goal: what
depends on the sizes and attributes of a call; that is found where a call is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import Diagnostic, InvalidInput, Span
from irlang.dtypes import CLASSES, DEFAULT_OF_KIND, DTYPES
from irlang.interp.frame import meant, suggestion
from irlang.interp.openness import open_faults
from irlang.interp.roles import role_faults
from irlang.interp.terms import oversize
from irlang.known import BUILTINS, PRELUDE
from irlang.laws import LAWS
from irlang.nesting import whole_calls
from irlang.parser import parse_expr
from irlang.scalar import SCALARS, VARIADIC
from irlang.scope import CONSTANTS

_FUNCTIONS = {*PRELUDE, *BUILTINS, "inside", *(n for n, row in SCALARS.items() if not row.symbol)}


def definition_faults(op: ast.Op, catalog: Catalog) -> list[Diagnostic]:
    """What is wrong with the text of a definition."""
    walk = _Walk(op, catalog)
    walk.definition()
    return list(dict.fromkeys(walk.found))


def function_faults(functions: Sequence[ast.Let], catalog: Catalog) -> list[Diagnostic]:
    """What is wrong with functions outside the definitions: they see their parameters alone."""
    alone = ast.Op("", (), (), (), (), tuple(functions))
    walk = _Walk(alone, catalog)
    walk.macros = {name: len(item.params) for name, item in catalog.functions.items()}
    for item in functions:
        walk.expression(item.value, set(item.params))
    return list(dict.fromkeys(d.at(d.span, "") for d in walk.found))


class _Walk:
    """A pass over one definition; `names` in its methods are those in sight."""

    def __init__(self, op: ast.Op, catalog: Catalog) -> None:
        self.op = op
        self.catalog = catalog
        self.found: list[Diagnostic] = []
        self.enums = {a.name: a.type.choices for a in op.attrs if a.type.kind == "enum"}
        self.enums |= {a.name: ("true", "false") for a in op.attrs if a.type.name == "bool"}
        self.macros: dict[str, int] = {}
        self.reduced: set[str] = set()  # indices of the reductions so far
        self.types = {name for name, _ in op.dtypes}  # what stands for an element type
        self.types |= {a.name for a in op.attrs if a.type.name == "dtype"}
        self.judging = False  # whether a law may be named here

    def report(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Records a fault."""
        self.found.append(
            Diagnostic(f"definition.{code}", message, span, node=self.op.name, help=help)
        )

    def definition(self) -> None:
        """All parts of the definition."""
        op = self.op
        variables = {name for name, _ in op.dtypes}
        for name, kind in op.dtypes:
            if kind not in CLASSES:
                message = f"`{kind}` is not a class of element types"
                self.report("dtype", message, op.span, f"one of {', '.join(CLASSES)}")
            del name
        names = variables | {a.name for a in op.attrs} | {i.name for i in op.inputs}
        for item in op.inputs:
            names |= _bound_by(item.type, item.family)
        names |= {s.name for s in op.body if isinstance(s, (ast.Equation, ast.Let, ast.Some))}
        names |= {t for s in op.body if isinstance(s, ast.Assign) for t in s.targets}
        names |= {o.name for o in op.outputs}
        self.macros = {
            s.name: len(s.params) for s in op.body if isinstance(s, ast.Let) and s.params
        }
        self._duplicates()
        self.found += open_faults(op) + role_faults(op)
        for item in op.inputs:
            self._type(item.type, names | {item.family} - {""}, variables)
            if item.default is not None:
                self.expression(item.default, names)
        for attr in op.attrs:
            self._attribute(attr, names)
        for output in op.outputs:
            self._type(output.type, names | {output.family} - {""}, self.types)
            if output.count is not None:
                self.expression(output.count, names)
        given = {s.name for s in op.body if isinstance(s, ast.Equation)}
        given |= {t for s in op.body if isinstance(s, ast.Assign) for t in s.targets}
        for output in op.outputs:
            if output.name not in given:
                message = f"the result `{output.name}` has no equation"
                self.report("result", message, output.span)
        for statement in op.body:
            self._statement(statement, names)
        self.found += oversize(op)

    def _duplicates(self) -> None:
        seen: set[str] = set()
        results = {output.name for output in self.op.outputs}
        for node in (*self.op.inputs, *self.op.attrs, *self.op.body):
            if isinstance(node, (ast.Input, ast.Attr, ast.Let, ast.Equation)):
                names: tuple[str, ...] = (node.name,)
            elif isinstance(node, ast.Some):  # the name of a result has its equation elsewhere
                names = () if node.name in results else (node.name,)
            else:
                names = node.targets if isinstance(node, ast.Assign) else ()
            for name in names:
                if name in seen:
                    self.report("duplicate", f"`{name}` is already defined", node.span)
                seen.add(name)

    def _type(self, kind: ast.TensorType, names: set[str], variables: Iterable[str]) -> None:
        known = {*variables, *DTYPES, *CLASSES, *DEFAULT_OF_KIND}
        if kind.dtype not in known:
            message = f"there is no element type `{kind.dtype}`"
            self.report("dtype", message, kind.span, suggestion(kind.dtype, known))
        for dim in kind.dims:
            self.expression(dim.size, names)
            if dim.at is not None:
                self.expression(dim.at, names)

    def _attribute(self, attr: ast.Attr, names: set[str]) -> None:
        kind = attr.type
        if kind.kind != "enum" and kind.name not in ("int", "real", "bool", "dtype"):
            message = f"there is no type `{kind.name}` of attributes"
            self.report(
                "dtype", message, attr.span, "int, real, bool, dtype, a list of them, or {a, b}"
            )
        if kind.dims is not None:
            self.expression(kind.dims, names)
        if attr.default is None:
            return
        if kind.kind == "enum":
            chosen = attr.default.id if isinstance(attr.default, ast.Name) else None
            if chosen not in kind.choices:
                message = f"the default of `{attr.name}` is one of {', '.join(kind.choices)}"
                self.report("default", message, attr.span)
        elif kind.name != "dtype":
            self.expression(attr.default, names)

    def _statement(self, statement: ast.Statement, names: set[str]) -> None:
        match statement:
            case ast.Let():
                self.expression(statement.value, names | set(statement.params))
            case ast.Require():
                self.expression(statement.condition, names)
                self._message(statement, names)
            case ast.Ensure():
                self.judging = True
                self.expression(statement.condition, names)
                self.judging = False
                self._message(statement, names)
            case ast.Equation():
                inner = names | ({statement.member} - {""})
                self.expression(statement.value, self._indices(statement.index, inner))
            case ast.Unspecified():
                self.expression(statement.condition, self._indices(statement.index, names))
            case ast.Grad() if statement.name not in names:
                self._unknown(statement.name, statement.span, names)
            case ast.Some():
                self._type(statement.type, names, self.types)
                if statement.law is not None:
                    self._law(statement.law, names)
            case ast.Assign():
                self._composition(statement.value, names)

    def _law(self, law: ast.Call, names: set[str]) -> None:
        """The law of a `some`: one of the table that can be drawn from, with its numbers."""
        row = LAWS.get(law.function)
        for arg in (*law.args, *(node for _, node in law.attrs)):
            self.expression(arg, names)
        if row is None or row.draw is None:
            drawable = [name for name, row in LAWS.items() if row.draw is not None]
            message = f"nothing can be drawn from `{law.function}`"
            near = suggestion(law.function, drawable) or f"a law is one of {', '.join(drawable)}"
            self.report("law", message, law.span, near)
        elif len(law.args) != len(row.params) or law.attrs:
            message = f"`{law.function}` takes {' and '.join(row.params)}: {row.domain}"
            self.report("law", message, law.span)

    def _indices(self, index: tuple[ast.Index, ...], names: set[str]) -> set[str]:
        inner = set(names)
        for place, entry in enumerate(index):
            if entry.bound is not None:
                self.expression(entry.bound, inner)
            if any(entry.name == earlier.name for earlier in index[:place]):
                self.report("duplicate", f"the index `{entry.name}` is bound twice", entry.span)
            inner.add(entry.name)
        return inner

    def _message(self, statement: ast.Require | ast.Ensure, names: set[str]) -> None:
        for text in re.findall(r"\{([^{}]+)\}", statement.message):
            try:
                node = parse_expr(text)
            except InvalidInput:
                self.report("message", f"`{{{text}}}` is not an expression", statement.span)
                continue
            before = len(self.found)
            self.expression(node, names)
            self.found[before:] = [d.at(statement.span) for d in self.found[before:]]

    def _composition(self, call: ast.Call, names: set[str]) -> None:
        op = self.catalog.op(call.function)
        if op is None:
            near = suggestion(call.function, (item.name for item in self.catalog))
            self.report("op", f"there is no operator `{call.function}`", call.span, near)
        nested = list(whole_calls(call, self.catalog))
        for inner in nested:
            self._composition(inner, names)
        for arg in call.args:
            if arg not in nested:
                self.expression(arg, names)
        words = (
            {a.name for a in op.attrs if a.type.kind == "enum" or a.type.name == "dtype"}
            if op
            else ()
        )
        for key, node in call.attrs:
            word = key in words and isinstance(node, ast.Name)
            if not word and node not in nested:
                self.expression(node, names)

    # ---- expressions

    def expression(self, node: ast.Node, names: set[str]) -> None:
        """Reports the names, functions and choices of an expression that are none."""
        match node:
            case ast.Name() | ast.Rest():
                if node.id not in names and node.id not in CONSTANTS and not self._word(node.id):
                    self._unknown(node.id, node.span, names)
                return
            case ast.Read() | ast.Arity():
                if node.name not in names:
                    self._unknown(node.name, node.span, names)
            case ast.Call():
                self._function(node, names)
            case ast.Match():
                self._match(node, names)
            case ast.Reduce():
                self._reduce(node.binders, (node.where, node.body), names)
                return
            case ast.Comprehension():
                self._reduce((node.binder,), (node.condition, node.body), names)
                return
        for child in ast.children(node):
            self.expression(child, names)

    def _word(self, name: str) -> bool:
        """Whether a name is a choice of an attribute, which it may be compared with."""
        return any(name in choices for choices in self.enums.values()) or name in DTYPES

    def _unknown(self, name: str, span: Span, names: Iterable[str]) -> None:
        near = suggestion(name, names)
        if name in self.reduced:
            near = "the body of a reduction ends at the next `+` or `-`, save in parentheses"
        self.report("name", f"`{name}` is not defined", span, near)

    def _reduce(
        self, binders: tuple[ast.Binder, ...], parts: Iterable[ast.Node | None], names: set[str]
    ) -> None:
        inner = set(names)
        for binder in binders:
            self.expression(binder.bound, inner)
            inner.add(binder.name)
            self.reduced.add(binder.name)
        for part in parts:
            if part is not None:
                self.expression(part, inner)

    def _function(self, node: ast.Call, names: set[str]) -> None:
        count = len(node.args)
        if node.attrs:
            message = f"`{node.function}` is a function: it has no attributes"
            self.report("arguments", message, node.attrs[0][1].span)
        wanted = self.macros.get(node.function)
        if wanted is None and node.function in LAWS and self.judging:
            wanted = len(LAWS[node.function].params) + 1
        elif wanted is None and node.function in PRELUDE:
            wanted = len(PRELUDE[node.function][0])
        if wanted is None and node.function in SCALARS and node.function not in BUILTINS:
            wanted = SCALARS[node.function].arity
            if node.function in VARIADIC and count >= 2:
                return
        law = node.function in LAWS
        known = _FUNCTIONS | LAWS.keys() if self.judging else _FUNCTIONS
        if node.function not in self.macros and node.function not in known:
            help_ = suggestion(node.function, {*_FUNCTIONS, *self.macros})
            if node.function in names:
                help_ = f"write `{node.function}[…]` for its elements"
            message = f"there is no function `{node.function}`"
            if law:
                help_ = "a law stands in an `ensure`, or behind the `=` of a `some`"
            elif self.catalog.op(node.function) is not None:
                help_ = f"a whole definition is used as `z = {node.function}(x)`"
            self.report("function", message, node.span, help_)
        elif wanted is not None and wanted != count:
            message = f"`{node.function}` takes {wanted} argument{'s' * (wanted != 1)}, not {count}"
            self.report("arguments", message, node.span)

    def _match(self, node: ast.Match, names: set[str]) -> None:
        if node.subject not in names:
            self._unknown(node.subject, node.span, names)
            return
        choices = self.enums.get(node.subject)
        if choices is None:
            return
        arms = [arm for arm, _ in node.arms]
        missing = [choice for choice in choices if choice not in arms]
        extra = [arm for arm in arms if arm not in choices]
        if missing:
            message = f"`match {node.subject}` has no arm for {', '.join(missing)}"
            self.report("match", message, node.span)
        if extra:
            message = f"`{node.subject}` is never {' or '.join(extra)}"
            self.report("match", message, node.span, f"it is one of {', '.join(choices)}")


def _bound_by(kind: ast.TensorType, family: str) -> set[str]:
    """The names that the type of an input gives a size."""
    found = set()
    for dim in kind.dims:
        if isinstance(dim.size, ast.Name):
            found.add(dim.size.id)
        elif isinstance(dim.size, ast.Read) and family:
            found.add(dim.size.name)
    return found


# ---- blocks -----------------------------------------------------------------------------------


def block_faults(
    block: ast.Block,
    catalog: Catalog,
    blocks: Mapping[str, ast.Block],
    constants: Mapping[str, Any],
) -> list[Diagnostic]:
    """What is wrong with the text of a block that nothing calls: names and operators."""
    numbers = {*constants, *(attr.name for attr in block.attrs)}
    for item in block.inputs:
        numbers |= {dim.size.id for dim in item.type.dims if isinstance(dim.size, ast.Name)}
    tensors = {item.name for item in block.inputs}
    found: list[Diagnostic] = []
    _block_body(block.body, tensors, numbers, catalog, blocks, found)
    for output in block.outputs:
        if output.name not in tensors:
            message = f"the result `{output.name}` is not computed"
            found.append(Diagnostic("model.output", message, output.span, node=output.name))
    return found


def _block_body(
    body: tuple[ast.Statement, ...],
    tensors: set[str],
    numbers: set[str],
    catalog: Catalog,
    blocks: Mapping[str, ast.Block],
    found: list[Diagnostic],
) -> None:
    for statement in body:
        match statement:
            case ast.Param():
                tensors.add(statement.name)
            case ast.Let():
                numbers.add(statement.name)
            case ast.For():
                inner = numbers | {statement.name}
                _block_body(statement.body, tensors, inner, catalog, blocks, found)
            case ast.Assign():
                _operands(statement.value, {*tensors, *numbers}, catalog, blocks, found)
                tensors |= set(statement.targets)


def _operands(
    call: ast.Call,
    names: set[str],
    catalog: Catalog,
    blocks: Mapping[str, ast.Block],
    found: list[Diagnostic],
) -> None:
    if catalog.op(call.function) is None and call.function not in blocks:
        near = meant(catalog.nearest(call.function, blocks))
        message = f"there is no operator `{call.function}`"
        found.append(Diagnostic("model.operator", message, call.span, help=near))
    for arg in call.args:
        if isinstance(arg, ast.Call):
            _operands(arg, names, catalog, blocks, found)
        elif isinstance(arg, ast.Name) and arg.id not in names and arg.id not in CONSTANTS:
            message = f"`{arg.id}` is not defined"
            found.append(
                Diagnostic("model.name", message, arg.span, help=suggestion(arg.id, names))
            )
