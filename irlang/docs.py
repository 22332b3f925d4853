"""`docs/operators.md`, written from the definitions: `python -m irlang.docs docs/operators.md`.

Everything on the page is read off the text of a definition, so it cannot say anything else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from irlang import ast
from irlang.catalog import Catalog, builtin
from irlang.parser.printer import print_attr_type, print_expr, print_statement

_HEAD = """# Operators

<!-- Written by `python -m irlang.docs docs/operators.md` from irlang/ops/*.nnir; do not edit. -->

{count} operators, each defined by a text that is all there is to it;
[language.md](language.md) says how to read one. A precondition's name is the code of the diagnostic
that a violation gets.
"""


def operators_page(catalog: Catalog) -> str:
    """The page, in Markdown: an index by family, and a section for every operator."""
    families: dict[str, list[ast.Op]] = {}
    for op in catalog:
        families.setdefault(catalog.families[op.name], []).append(op)
    parts = [_HEAD.format(count=len(catalog))]
    for family, ops in sorted(families.items()):
        links = " · ".join(f"[{op.name}](#{op.name})" for op in ops)
        parts.append(f"**{family}**: {links}\n")
    for family, ops in sorted(families.items()):
        parts.append(f"## Family `{family}`\n")
        parts += (_section(op) for op in ops)
    return "\n".join(parts)


def _section(op: ast.Op) -> str:
    lines = [f"### {op.name}", ""]
    if op.doc:
        lines += [op.doc.strip(), ""]
    lines += [f"`{signature(op)}`", ""]
    lines += ["```nnir", _definition(op), "```", ""]
    if op.attrs:
        lines += ["| attribute | type | default |", "| --- | --- | --- |"]
        lines += (_attribute(attr) for attr in op.attrs)
        lines.append("")
    preconditions = [s for s in op.body if isinstance(s, ast.Require)]
    if preconditions:
        lines += ["Preconditions:", ""]
        for s in preconditions:
            condition = " ".join(print_expr(s.condition).split())
            lines.append(f"- `{op.name}.{s.name}`: `{condition}`, or else: {s.message}")
        lines.append("")
    return "\n".join(lines)


def signature(op: ast.Op) -> str:
    """How the operator is called, without types: `conv(x, w, b?; stride, …) -> y`."""
    inputs = [
        item.name + ("..." if item.family else "") + ("?" if item.default is not None else "")
        for item in op.inputs
    ]
    attrs = f"; {', '.join(attr.name for attr in op.attrs)}" if op.attrs else ""
    outputs = [item.name + ("..." if item.family else "") for item in op.outputs]
    return f"{op.name}({', '.join(inputs)}{attrs}) -> {', '.join(outputs)}"


def _definition(op: ast.Op) -> str:
    """The definition without its doc, which stands above it."""
    text = print_statement(op).strip()
    return text[text.index('"""', 3) + 3 :].strip() if text.startswith('"""') else text


def _attribute(attr: ast.Attr) -> str:
    default = "must be given" if attr.default is None else f"`{print_expr(attr.default)}`"
    return f"| `{attr.name}` | `{print_attr_type(attr.type)}` | {default} |"


def main(arguments: list[str]) -> None:
    """Writes the page to the file that is named."""
    Path(arguments[0]).write_text(operators_page(builtin()), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
