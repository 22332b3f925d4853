"""Syntax tree to text: the one layout of the language, and the inverse of `parse`.

Parentheses are printed where the grammar needs them, and around two operands that are misread
without: `x[i] ?? 0`, and a reduction with more behind it. Expressions become one line with marks
where it may break; `layout` decides. Printing takes no account of spans, so equal trees give equal
texts, comments aside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from irlang import ast
from irlang.parser.layout import ALIGN, ALL, END, FILL, NONE, SOFT, STEP, WIDTH, flat, layout

INDENT = "  "
CONTINUED = " " * STEP

# How tightly an expression holds together: the nonterminals of the grammar, loosest first.
EXPR, OR, AND, NOT, COMPARISON, ARITH, PRODUCT, FACTOR, UNARY, ATOM = range(10)

# Binary operators: their own level, and those that their operands need at least.
_BINARY = {
    "or": (OR, OR, AND),
    "and": (AND, AND, NOT),
    "in": (COMPARISON, ARITH, ARITH),
    "+": (ARITH, ARITH, PRODUCT),
    "-": (ARITH, ARITH, PRODUCT),
    "*": (FACTOR, FACTOR, UNARY),
    "/": (FACTOR, FACTOR, UNARY),
    "//": (FACTOR, FACTOR, UNARY),
    "%": (FACTOR, FACTOR, UNARY),
}
_QUANTIFIERS = ("all", "any")
_REDUCERS = ("sum", "prod", "max", "min", "argmax", "argmin", "the")
# What makes the scanner see a reduction where a call is meant.
_LIKE_BINDER = re.compile(r"[a-z_]\w*\s*(\.\.)?\s*<")

Printed = tuple[str, int]


def print_expr(node: ast.Expr) -> str:
    """One line."""
    return flat(_expr(node))


def print_type(node: ast.TensorType) -> str:
    """`f32[N, S.., K @ axis]`, one line."""
    return flat(_type(node))


def print_attr_type(node: ast.AttrType) -> str:
    """`int[S..]`, `{valid, same}`, one line."""
    return flat(_attr_type(node))


def print_statement(node: ast.Statement, indent: str = "") -> str:
    """A statement or an item with its comments, without a line break at the end."""
    return "\n".join(_statement(node, indent))


def print_file(file: ast.File) -> str:
    """The whole file; ends in a line break unless it is empty."""
    lines: list[str] = []
    if file.version is not None:
        lines += _comments(file.comments, "")
        lines.append(_trailed(f"nnir {file.version}", file.trailing))
    previous: ast.Item | None = None
    for item in file.items:
        printed = list(_statement(item, ""))
        constants = isinstance(item, ast.Let) and isinstance(previous, ast.Let)
        if lines and not constants and printed[0]:
            lines.append("")
        elif not lines and not printed[0]:
            del printed[0]
        lines += printed
        previous = item
    dangling = list(_comments(file.dangling, ""))
    if lines and previous is None and dangling and dangling[0]:
        lines.append("")
    lines += dangling if lines else dangling[1:] if dangling[:1] == [""] else dangling
    return "\n".join(lines) + "\n" if lines else ""


# ---- expressions: text with marks, and level ----------------------------------------------------


def _expr(node: ast.Expr, level: int = EXPR) -> str:
    """`node` where the grammar wants at least `level`."""
    text, own = _PRINTERS[type(node)](node)
    return text if own >= level else f"({text})"


def _operand(node: ast.Expr, level: int, *, last: bool = True) -> str:
    """As `_expr`, with the parentheses that the grammar can spare and a reader cannot."""
    if type(node) is ast.Read and node.default is not None:
        return f"({_expr(node)})"
    if not last and _ends_in_reduction(node):
        return f"({_expr(node)})"
    return _expr(node, level)


def _ends_in_reduction(node: ast.Expr) -> bool:
    """Whether what follows `node` looks as if it belonged to the body of a reduction."""
    while True:
        match node:
            case ast.Binary():
                node = node.right
            case ast.Unary():
                node = node.operand
            case ast.Reduce():
                return node.body is not None
            case _:
                return False


def print_number(value: int | float) -> str:
    """The shortest text that reads back as the same number: `1e-5`, `0.1`, `3`, `2.0`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    return f"{digits}e{int(exponent)}"


def _number(node: ast.Number) -> Printed:
    text = print_number(node.value)
    return text, UNARY if text.startswith("-") else ATOM


def _text(node: ast.Text) -> Printed:
    return f'"{node.value}"', ATOM


def _name(node: ast.Name) -> Printed:
    return node.id, ATOM


def _unary(node: ast.Unary) -> Printed:
    if node.op == "not":
        return f"not {_expr(node.operand, NOT)}", NOT
    operand = node.operand
    if _is_reduction(operand):
        return f"-{_expr(operand)}", PRODUCT
    return f"-{_operand(operand, UNARY)}", UNARY


def _binary(node: ast.Binary) -> Printed:
    own, left, right = _BINARY[node.op]
    # A chain of one level is one group, so that its lines are indented alike.
    parts: list[str] = []
    while True:
        operand = node.right
        if own == FACTOR and not parts and _is_reduction(operand):
            own = PRODUCT
            text = _expr(operand)
        else:
            text = _operand(operand, right, last=not parts)
        parts.append(f"{SOFT}{node.op} {text}")
        following = node.left
        if (
            type(following) is not ast.Binary
            or own == COMPARISON
            or _BINARY[following.op] != _BINARY[node.op]
            or (right == UNARY and _is_reduction(following.right))
        ):
            break
        node = following
    parts.append(_operand(node.left, left, last=False))
    return f"{FILL}{''.join(reversed(parts))}{END}", own


def _is_reduction(node: ast.Expr) -> bool:
    return type(node) is ast.Reduce and node.kind in _REDUCERS


def _chain(node: ast.Chain) -> Printed:
    final = len(node.ops) - 1
    parts = [_operand(node.operands[0], ARITH, last=False)]
    for position, op in enumerate(node.ops):
        operand = _operand(node.operands[position + 1], ARITH, last=position == final)
        parts.append(f"{SOFT}{op} {operand}")
    return f"{FILL}{''.join(parts)}{END}", COMPARISON


def _if(node: ast.If) -> Printed:
    condition, yes, no = _expr(node.condition), _expr(node.yes), _expr(node.no)
    return f"{ALL}if {condition}{SOFT}then {yes}{SOFT}else {no}{END}", EXPR


def _match(node: ast.Match) -> Printed:
    arms = f",{SOFT}".join(f"{choice}: {_expr(value)}" for choice, value in node.arms)
    return f"match {node.subject} {{{ALL}{SOFT}{arms}{END} }}", ATOM


def _call(node: ast.Call) -> Printed:
    args = [_expr(arg) for arg in node.args]
    if args and node.function in (*_REDUCERS, *_QUANTIFIERS) and _LIKE_BINDER.match(flat(args[0])):
        args[0] = f"({args[0]})"
    inside = f",{SOFT}".join(args)
    if node.attrs:
        attrs = f",{SOFT}".join(f"{name} = {_expr(value)}" for name, value in node.attrs)
        inside += f";{SOFT}{attrs}" if args else f"; {attrs}"
    return f"{node.function}({FILL}{NONE if inside else ''}{inside}{END})", ATOM


def _subscript(node: ast.Subscript) -> str:
    if type(node) is ast.Rest:
        return f"{node.id}.."
    if type(node) is ast.Each:
        return f"({_expr(node.body)}).."
    return _expr(node, ARITH)  # type: ignore[arg-type]


def _read(node: ast.Read) -> Printed:
    index = ", ".join([_subscript(part) for part in node.index])
    member = "" if node.member is None else f"[{_subscript(node.member)}]"
    default = "" if node.default is None else f"{SOFT}?? {_expr(node.default, UNARY)}"
    text = f"{node.name}{member}[{index}]{default}"
    return (f"{FILL}{text}{END}" if default else text), ATOM


def _binder(node: ast.Binder) -> str:
    if node.rest:
        return f"{node.name}.. < {_expr(node.bound)}.."
    return f"{node.name} < {_expr(node.bound, ARITH)}"


def _reduce(node: ast.Reduce) -> Printed:
    binders = ", ".join([_binder(binder) for binder in node.binders])
    where = "" if node.where is None else f" | {_expr(node.where)}"
    head = f"{node.kind}({binders}{where})"
    if node.body is None:
        return head, ATOM
    if node.kind in _QUANTIFIERS:
        return f"{FILL}{head}{SOFT}{_expr(node.body)}{END}", EXPR
    return f"{FILL}{head}{SOFT}{_expr(node.body, PRODUCT)}{END}", PRODUCT


def _arity(node: ast.Arity) -> Printed:
    return f"#{node.name}", ATOM


def _list(node: ast.ListOf) -> Printed:
    items = f",{SOFT}".join([_expr(item) for item in node.items])
    return f"[{FILL}{items}{END}]", ATOM


def _comprehension(node: ast.Comprehension) -> Printed:
    condition = "" if node.condition is None else f"{SOFT}if {_expr(node.condition)}"
    return f"[{FILL}{_expr(node.body)}{SOFT}for {_binder(node.binder)}{condition}{END}]", ATOM


_PRINTERS: dict[type, Callable[[Any], Printed]] = {
    ast.Number: _number,
    ast.Text: _text,
    ast.Name: _name,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Chain: _chain,
    ast.If: _if,
    ast.Match: _match,
    ast.Call: _call,
    ast.Read: _read,
    ast.Reduce: _reduce,
    ast.Arity: _arity,
    ast.ListOf: _list,
    ast.Comprehension: _comprehension,
}

# ---- types and signatures -----------------------------------------------------------------------


def _dim(node: ast.Dim) -> str:
    tilde = "~" if node.broadcast else ""
    at = "" if node.at is None else f" @ {_expr(node.at, ATOM)}"
    if node.kind == "rest":
        return f"{tilde}{_expr(node.size)}..{at}"
    return f"{tilde}{_expr(node.size, ARITH)}{at}"


def _type(node: ast.TensorType) -> str:
    return f"{node.dtype}[{', '.join([_dim(dim) for dim in node.dims])}]"


def _attr_type(node: ast.AttrType) -> str:
    if node.kind == "enum":
        return f"{{{', '.join(node.choices)}}}"
    if node.kind == "scalar":
        return node.name
    dims = "" if node.dims is None else _expr(node.dims, ARITH)
    return f"{node.name}[{dims}{'..' if node.rest else ''}]"


def _attr(node: ast.Attr) -> str:
    default = "" if node.default is None else f" = {_expr(node.default)}"
    return f"{node.name}: {_attr_type(node.type)}{default}"


def _within(within: tuple[ast.Expr, ast.Expr] | None) -> str:
    return "" if within is None else f" in [{_expr(within[0])}, {_expr(within[1])}]"


def _input(node: ast.Input | ast.ModelInput) -> str:
    if isinstance(node, ast.ModelInput):
        return f"{node.name}: {_type(node.type)}{_within(node.within)}"
    family = f"[{node.family}]" if node.family else ""
    default = "" if node.default is None else f" = {_expr(node.default, ARITH)}"
    return f"{node.name}{family}: {_type(node.type)}{default}"


def _output(node: ast.Output | ast.ModelOutput) -> str:
    family = ""
    if isinstance(node, ast.Output) and node.family and node.count is not None:
        family = f"[{node.family} < {_expr(node.count, ARITH)}]"
    return f"{node.name}{family}: {_type(node.type)}"


def _header(node: ast.Op | ast.Model | ast.Block) -> list[str]:
    """`op f(inputs; attributes) -> outputs {`; attributes begin a line where one is not enough."""
    keyword = type(node).__name__.lower()
    dtypes = ""
    if isinstance(node, ast.Op) and node.dtypes:
        dtypes = f"[{', '.join(f'{name}: {kind}' for name, kind in node.dtypes)}]"
    head = f"{keyword} {node.name}{dtypes}("
    inputs = f",{SOFT}".join(_input(item) for item in node.inputs)
    attrs = "" if isinstance(node, ast.Model) else f",{SOFT}".join(_attr(a) for a in node.attrs)
    outputs = f"-> {f',{SOFT}'.join(_output(item) for item in node.outputs)} {{"
    first = f"{head}{inputs}{';' if attrs else ')'}"
    whole = flat(f"{head}{inputs}{'; ' if attrs else ''}{attrs}) {outputs}")
    if len(whole) <= WIDTH:
        return [whole]
    lines = layout(f"{FILL}{first}{END}").split("\n")
    if attrs:
        lines += (CONTINUED + layout(f"{ALIGN}{attrs}){END}", STEP)).split("\n")
    if len(lines[-1]) + 1 + len(flat(outputs)) <= WIDTH:
        lines[-1] += f" {flat(outputs)}"
    else:
        lines += (CONTINUED + layout(f"{FILL}{outputs}{END}", STEP)).split("\n")
    return lines


# ---- statements ---------------------------------------------------------------------------------


def _index(indices: Iterable[ast.Index]) -> str:
    parts = []
    for index in indices:
        dots = ".." if index.rest else ""
        if index.bound is None:
            parts.append(f"{index.name}{dots}")
        else:
            parts.append(f"{index.name}{dots} < {_expr(index.bound, ARITH)}{dots}")
    return ", ".join(parts)


def _line(node: ast.Statement) -> str:
    """A statement without a body, with marks."""
    match node:
        case ast.Require() | ast.Ensure():
            keyword = type(node).__name__.lower()
            condition = _expr(node.condition)
            return f'{FILL}{keyword} {node.name}: {condition}{SOFT}else "{node.message}"{END}'
        case ast.Some():
            return f"some {node.name}: {_type(node.type)}"
        case ast.Let():
            params = f"({', '.join(node.params)})" if node.params else ""
            dots = ".." if node.rest else ""
            return f"let {node.name}{params}{dots} = {_value(node.value)}"
        case ast.Grad():
            return f"grad {node.name} ties {node.ties}"
        case ast.Unspecified():
            condition = _expr(node.condition)
            head = f"unspecified {node.name}[{_index(node.index)}]"
            return f"{FILL}{head}{SOFT}when {condition}{END}"
        case ast.Equation():
            member = f"[{node.member}]" if node.member else ""
            return f"{node.name}{member}[{_index(node.index)}] = {_value(node.value)}"
        case ast.Assign():
            return f"{', '.join(node.targets)} = {_value(node.value)}"
        case ast.Param():
            value = "" if node.value is None else f" = {_value(node.value)}"
            return f"param {node.name}: {_type(node.type)}{_within(node.within)}{value}"
    raise TypeError(f"{type(node).__name__} is no statement")


def _value(node: ast.Expr) -> str:
    return _expr(node)


def _statement(node: ast.Statement, indent: str) -> Iterator[str]:
    """The lines of a statement or item, comments included."""
    yield from _comments(node.comments, indent)
    if isinstance(node, (ast.Op, ast.Model, ast.Block)):
        if node.doc:
            yield from _doc(node.doc, indent)
        header = _header(node)
    elif isinstance(node, ast.For):
        header = layout(f"for {node.name} < {_expr(node.bound, ARITH)} {{", len(indent)).split("\n")
    else:
        yield from _trailed(indent + layout(_line(node), len(indent)), node.trailing).split("\n")
        return
    yield indent + header[0]
    yield from header[1:]
    first = True
    for statement in node.body:
        lines = _statement(statement, indent + INDENT)
        for line in lines:
            if not (first and line == ""):
                yield line
            first = False
    dangling = list(_comments(node.dangling, indent + INDENT))
    yield from dangling[1:] if first and dangling[:1] == [""] else dangling
    yield _trailed(f"{indent}}}", node.trailing)


def _doc(doc: str, indent: str) -> Iterator[str]:
    # A quote at the end would run into those that close the docstring.
    closing = ' """' if doc.endswith('"') else '"""'
    yield from f'{indent}"""{doc}{closing}'.split("\n")


def _comments(lines: tuple[str, ...], indent: str) -> Iterator[str]:
    for line in lines:
        yield indent + line if line else ""


def _trailed(text: str, comment: str) -> str:
    return f"{text}  {comment}" if comment else text
