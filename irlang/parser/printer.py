"""Syntax tree to text: the one layout of the language, and the inverse of `parse`.

Expressions become one line with marks where it may break (`expression_text`); `layout` decides.
Printing takes no account of spans, so equal trees give equal texts, comments aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irlang import ast
from irlang.parser.expression_text import ARITH, ATOM, expr, print_number
from irlang.parser.layout import ALIGN, END, FILL, SOFT, STEP, WIDTH, flat, layout

__all__ = [
    "print_attr_type", "print_expr", "print_file", "print_number", "print_statement", "print_type",
]  # fmt: skip

INDENT = "  "
CONTINUED = " " * STEP


def print_expr(node: ast.Expr) -> str:
    """One line."""
    return flat(expr(node))


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


# ---- types and signatures -----------------------------------------------------------------------


def _dim(node: ast.Dim) -> str:
    tilde = "~" if node.broadcast else ""
    at = "" if node.at is None else f" @ {expr(node.at, ATOM)}"
    if node.kind == "rest":
        return f"{tilde}{expr(node.size)}..{at}"
    return f"{tilde}{expr(node.size, ARITH)}{at}"


def _type(node: ast.TensorType) -> str:
    return f"{node.dtype}[{', '.join([_dim(dim) for dim in node.dims])}]"


def _attr_type(node: ast.AttrType) -> str:
    if node.kind == "enum":
        return f"{{{', '.join(node.choices)}}}"
    if node.kind == "scalar":
        return node.name
    dims = "" if node.dims is None else expr(node.dims, ARITH)
    return f"{node.name}[{dims}{'..' if node.rest else ''}]"


def _attr(node: ast.Attr) -> str:
    default = "" if node.default is None else f" = {expr(node.default)}"
    return f"{node.name}: {_attr_type(node.type)}{default}"


def _within(within: tuple[ast.Expr, ast.Expr] | None) -> str:
    return "" if within is None else f" in [{expr(within[0])}, {expr(within[1])}]"


def _input(node: ast.Input | ast.ModelInput) -> str:
    if isinstance(node, ast.ModelInput):
        return f"{node.name}: {_type(node.type)}{_within(node.within)}"
    family = f"[{node.family}]" if node.family else ""
    default = "" if node.default is None else f" = {expr(node.default, ARITH)}"
    return f"{node.name}{family}: {_type(node.type)}{default}"


def _output(node: ast.Output | ast.ModelOutput) -> str:
    family = ""
    if isinstance(node, ast.Output) and node.family and node.count is not None:
        family = f"[{node.family} < {expr(node.count, ARITH)}]"
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
            parts.append(f"{index.name}{dots} < {expr(index.bound, ARITH)}{dots}")
    return ", ".join(parts)


def _line(node: ast.Statement) -> str:
    """A statement without a body, with marks."""
    match node:
        case ast.Require() | ast.Ensure():
            keyword = type(node).__name__.lower()
            condition = expr(node.condition)
            return f'{FILL}{keyword} {node.name}: {condition}{SOFT}else "{node.message}"{END}'
        case ast.Some():
            law = "" if node.law is None else f" = {_value(node.law)}"
            return f"some {node.name}: {_type(node.type)}{law}"
        case ast.Let():
            params = f"({', '.join(node.params)})" if node.params else ""
            dots = ".." if node.rest else ""
            return f"let {node.name}{params}{dots} = {_value(node.value)}"
        case ast.Grad():
            return f"grad {node.name} ties {node.ties}"
        case ast.Unspecified():
            condition = expr(node.condition)
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
    return expr(node)


def _statement(node: ast.Statement, indent: str) -> Iterator[str]:
    """The lines of a statement or item, comments included."""
    yield from _comments(node.comments, indent)
    if isinstance(node, (ast.Op, ast.Model, ast.Block)):
        if node.doc:
            yield from _doc(node.doc, indent)
        header = _header(node)
    elif isinstance(node, ast.For):
        header = layout(f"for {node.name} < {expr(node.bound, ARITH)} {{", len(indent)).split("\n")
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
