"""`irlang ops`: the catalogue, or all that one definition says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from irlang import ast
    from irlang.catalog import Catalog
    from irlang.equations import Expansion
    from irlang.graph import Node


@click.command()
@click.argument("name", required=False)
@click.option("--file", "path", help="A .nnir file whose own definitions count as well.")
@click.option("--gradient", is_flag=True, help="Show the equations of its gradient.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(name: str | None, path: str | None, gradient: bool, form: str) -> int:
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
    if gradient:
        shown = describe_gradient(op, catalog)
        click.echo(json.dumps(shown) if form == "json" else f"{shown['call']}\n\n{shown['text']}")
        return 0
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


def describe_gradient(op: ast.Op, catalog: Catalog) -> dict[str, Any]:
    """The gradient of a generated call: the call, and its equations as text of the language."""
    from irlang.adjoint import adjoint
    from irlang.diagnostics import fail
    from irlang.equation_text import show

    calls: list[tuple[int, int, int, Node, Expansion]] = []
    for node in _calls(op, catalog):
        expansion = node.expansion(catalog)
        real = {name for name, info in expansion.tensors.items() if info.kind == "real"}
        if real.intersection(expansion.inputs) and real.intersection(expansion.outputs):
            # what has about four axes and few attributes is the easiest to read
            rank = max(len(expansion.tensors[name].shape) for name in expansion.inputs)
            calls.append((abs(rank - 4), len(node.attrs), len(calls), node, expansion))
    if not calls:
        raise fail("usage.gradient", f"`{op.name}` takes no real numbers to real numbers")
    *_, node, expansion = min(calls)
    inputs = ", ".join(f"{name}: {expansion.tensors[name]}" for name in expansion.inputs)
    outputs = ", ".join(f"{name}: {expansion.tensors[name]}" for name in expansion.outputs)
    attrs = ", ".join(f"{name} = {value}" for name, value in node.attrs.items())
    call = f"{op.name}({inputs}{'; ' if attrs else ''}{attrs}) -> {outputs}"
    backward = adjoint(expansion)
    return {"call": call, "outputs": list(backward.outputs), "text": show(backward)}


def _calls(op: ast.Op, catalog: Catalog) -> Iterator[Node]:
    """Some generated calls of an operator."""
    from irlang.gen.build import generate

    for seed in range(24):
        try:
            graph = generate(catalog, seed, ops=[op.name], size=(1, 1)).graph
        except ValueError:  # one that cannot be computed
            return
        yield from (node for node in graph.nodes if node.op is op)


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
