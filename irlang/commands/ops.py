"""`irlang ops`: the catalogue, or all that one definition says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from irlang import ast
    from irlang.catalog import Catalog


@click.command()
@click.argument("name", required=False)
@click.option("--file", "path", help="A .nnir file whose own definitions count as well.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(name: str | None, path: str | None, form: str) -> int:
    """List the operators, or show a definition, its preconditions and attributes."""
    from pathlib import Path

    from irlang.catalog import builtin
    from irlang.diagnostics import fail
    from irlang.parser import parse
    from irlang.parser.source import read_source

    catalog = builtin()
    if path:
        catalog = catalog.with_file(parse(read_source(Path(path)), path))
    if name is None:
        _list(catalog, form)
        return 0
    op = catalog.op(name)
    if op is None:
        near = ", ".join(catalog.nearest(name))
        raise fail(
            "usage.op",
            f"there is no operator `{name}`",
            help=f"did you mean {near}?" if near else "",
        )
    described = describe(op, catalog)
    if form == "json":
        click.echo(json.dumps(described))
    else:
        _show(described)
    return 0


def _list(catalog: Catalog, form: str) -> None:
    families: dict[str, list[str]] = {}
    for op in catalog:
        families.setdefault(catalog.families[op.name], []).append(op.name)
    if form == "json":
        click.echo(json.dumps(families))
        return
    for family, names in sorted(families.items()):
        click.secho(family, bold=True)
        click.echo(click.wrap_text("  ".join(sorted(names)), 98, "  ", "  "))
    click.echo(f"\n{len(catalog)} operators; irlang ops NAME shows one")


def describe(op: ast.Op, catalog: Catalog) -> dict[str, Any]:
    """Everything that is derived from a definition's text, as data."""
    from dataclasses import replace

    from irlang import ast
    from irlang.lower.target import spellings
    from irlang.parser.printer import print_attr_type, print_expr, print_statement, print_type

    return {
        "name": op.name,
        "family": catalog.families[op.name],
        "doc": op.doc,
        "definition": print_statement(replace(op, doc="", comments=())),
        "dtypes": dict(op.dtypes),
        "inputs": [
            {
                "name": i.name,
                "type": print_type(i.type),
                "optional": i.default is not None,
                "variadic": bool(i.family),
            }
            for i in op.inputs
        ],
        "outputs": [{"name": o.name, "type": print_type(o.type)} for o in op.outputs],
        "attributes": [
            {
                "name": a.name,
                "type": print_attr_type(a.type),
                "default": None if a.default is None else print_expr(a.default),
            }
            for a in op.attrs
        ],
        "preconditions": [
            {
                "code": f"{op.name}.{s.name}",
                "condition": print_expr(s.condition),
                "message": s.message,
            }
            for s in op.body
            if isinstance(s, ast.Require)
        ],
        "lowers_to": spellings(op.name),
    }


def _show(described: dict[str, Any]) -> None:
    doc = described["doc"] or "no description"
    click.secho(f"{described['name']}", bold=True, nl=False)
    click.echo(f": {doc}\n")
    click.echo(described["definition"].rstrip())
    if described["attributes"]:
        click.secho("\nattributes", bold=True)
        for a in described["attributes"]:
            default = "must be given" if a["default"] is None else f"default {a['default']}"
            click.echo(f"  {a['name']}: {a['type']}, {default}")
    if described["preconditions"]:
        click.secho("\npreconditions", bold=True)
        for p in described["preconditions"]:
            click.echo(f"  {p['code']}: {p['condition']}")
    click.secho("\nlowers to", bold=True)
    for target, spelling in described["lowers_to"].items():
        click.echo(f"  {target}: {spelling}")
