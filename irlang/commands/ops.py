"""`irlang ops`: the catalogue, all that one definition says, or what works for which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from irlang import ast
    from irlang.catalog import Catalog
    from irlang.docs.coverage import Row

_SHORT = 12  # lines of a gradient that are shown with the rest


@click.command()
@click.argument("name", required=False)
@click.option("--file", "path", help="A .nnir file whose own definitions count as well.")
@click.option("--gradient", is_flag=True, help="Show the equations of its gradient.")
@click.option("--coverage", is_flag=True, help="Show what works for which operator, by trying.")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text")
def command(name: str | None, path: str | None, gradient: bool, coverage: bool, form: str) -> int:
    """List the operators, or show a definition, its mathematics and what targets run."""
    from pathlib import Path

    from irlang.catalog import builtin
    from irlang.diagnostics import fail
    from irlang.parser import parse
    from irlang.parser.source import read_source

    catalog = builtin()
    if path:
        catalog = catalog.with_file(parse(read_source(Path(path)), path))
    if form == "html" and (name is None or gradient or coverage):
        raise fail("usage.format", "html is the page of one operator", help="irlang ops NAME")
    op = None if name is None else _find(name, catalog)
    if coverage:
        return _coverage(catalog, op, form)
    if op is None:
        _list(catalog, form)
    elif gradient:
        _gradient(op, catalog, form)
    else:
        _one(op, catalog, form)
    return 0


def _find(name: str, catalog: Catalog) -> ast.Op:
    from irlang.diagnostics import fail

    op = catalog.op(name)
    if op is None:  # under the name that another system has for it
        called = catalog.called(name)
        op = catalog.op(called[0]) if len(called) == 1 else None
    if op is None:
        near = ", ".join(catalog.nearest(name))
        raise fail(
            "usage.op",
            f"there is no operator `{name}`",
            help=f"did you mean {near}?" if near else "`irlang ops` lists them all",
        )
    return op


def _list(catalog: Catalog, form: str) -> None:
    families = catalog.families()
    if form == "json":
        click.echo(json.dumps(families))
        return
    for family, names in sorted(families.items()):
        click.secho(family, bold=True)
        click.echo(click.wrap_text("  ".join(sorted(names)), 98, "  ", "  "))
    click.echo(f"\n{len(catalog)} operators; irlang ops NAME shows one")


def _gradient(op: ast.Op, catalog: Catalog, form: str) -> None:
    from irlang.docs.gradients import gradient

    found = gradient(op, catalog)
    if form == "json":
        shown = {"call": found.call, "outputs": list(found.outputs), "text": found.text}
        click.echo(json.dumps(shown))
    else:
        click.echo(f"{found.call}\n\n{found.text}")


def _one(op: ast.Op, catalog: Catalog, form: str) -> None:
    from irlang.docs.facts import describe
    from irlang.docs.page import page

    if form == "html":
        click.echo(page(op, catalog), nl=False)
        return
    described = describe(op, catalog)
    if form == "json":
        click.echo(json.dumps(described))
    else:
        _show(described)


def _show(described: dict[str, Any]) -> None:
    click.secho(f"{described['name']}", bold=True, nl=False)
    click.echo(f": {described['doc'] or 'no description'}\n")
    click.echo(described["definition"].rstrip())
    _title("mathematics")
    _indented(described["mathematics"]["text"])
    if described["attributes"]:
        _title("attributes")
        for a in described["attributes"]:
            default = "must be given" if a["default"] is None else f"default {a['default']}"
            click.echo(f"  {a['name']}: {a['type']}, {default}")
    if described["preconditions"]:
        _title("preconditions")
        for p in described["preconditions"]:
            click.echo(f"  {p['code']}: {p['condition']}")
    if described["ensured"]:
        _title("ensured where values are left open")
        for e in described["ensured"]:
            click.echo(f"  {e['code']}, or else: {e['message']}")
    if described["dtypes"]:
        _title("element types")
        for variable, names in described["types"].items():
            click.echo(f"  {variable}: {' '.join(names)}")
    _title("lowers to")
    width = max(len(way["target"]) for way in described["lowering"])
    for way in described["lowering"]:
        head = f"  {way['target'].ljust(width)}  "
        click.echo(click.wrap_text(way["text"], 100, head, " " * len(head)))
    if described["differs"]:
        _title("differs")
        for difference in described["differs"]:
            said = f"{difference['of']}: {difference['how']}"
            click.echo(click.wrap_text(said, 100, "  ", "    "))
    _title("gradient")
    _show_gradient(described["gradient"], described["name"])


def _show_gradient(found: dict[str, Any], name: str) -> None:
    if "reason" in found:
        click.echo(f"  none: {found['reason']}")
    elif found["text"].count("\n") > _SHORT:
        click.echo(f"  {', '.join(found['outputs'])}: irlang ops {name} --gradient")
    else:
        click.echo(f"  of {found['call']}")
        _indented(found["text"].rstrip())


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _indented(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {line}".rstrip())


def _coverage(catalog: Catalog, op: ast.Op | None, form: str) -> int:
    """The table; 1 where something does not work that has no reason to."""
    from irlang.docs.coverage import cover

    rows = [cover(item, catalog) for item in catalog if op is None or item is op]
    if form == "json":
        click.echo(json.dumps([row.as_json() for row in rows]))
    else:
        _show_coverage(rows)
    return int(any(row.faults for row in rows))


def _show_coverage(rows: list[Row]) -> None:
    from irlang.docs.coverage import MEANINGS

    targets = list(rows[0].targets) if rows else []
    width = max(len("operator"), *(len(row.name) for row in rows))
    head = ["operator".ljust(width), *MEANINGS, *(target.ljust(11) for target in targets), "types"]
    click.secho("  ".join(head).rstrip(), bold=True)
    for row in rows:
        cells = [row.name.ljust(width)]
        cells += [row.meanings[name].mark.ljust(len(name)) for name in MEANINGS]
        cells += [row.targets[target].how.ljust(11) for target in targets]
        click.echo("  ".join([*cells, row.types]).rstrip())
    click.echo(f"\n{len(rows)} operators; + works, - does not apply, ! fails")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        remarks = row.remarks()
        if len(rows) == 1:
            remarks += [f"{way.target}: {way.sentence()}" for way in row.targets.values()]
        for text in remarks:
            reasons.setdefault(text, []).append(row.name)
    for text, names in reasons.items():
        said = f"{text} ({', '.join(names)})" if len(rows) > 1 else text
        click.echo(click.wrap_text(said, 100, "  ", "    "))
    if len(rows) > 1:
        click.echo("irlang ops NAME says when a target runs its own operator, where it does partly")
