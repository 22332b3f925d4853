"""`irlang check`: every fault of a file in one run, and `--fix`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from irlang import ast
from irlang.commands import exit_status
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.edits import repair
from irlang.parser import parse
from irlang.parser.source import decode, read_bytes, write_source
from irlang.render import Piece, ordered, report, show, visible, write


def check_text(text: str, file: str = "") -> tuple[Diagnostic, ...]:
    """Every fault of `text`, in the order of places."""
    return _read(text, file)[1]


def _read(text: str, file: str) -> tuple[ast.File | None, tuple[Diagnostic, ...]]:
    """The tree of `text`, if it is one, and every fault."""
    tree = None
    try:
        tree = parse(text, file)
        return tree, tuple(ordered(_checked(tree)))
    except InvalidInput as error:
        return tree, tuple(ordered(error.diagnostics))


def _checked(file: ast.File) -> Sequence[Diagnostic]:
    from irlang.catalog import builtin
    from irlang.interp.shape import check

    found = check(file, builtin()).diagnostics
    if all(d.edits or d.severity != "error" for d in found):
        return found
    from irlang.gen.suggest import with_suggestions

    return with_suggestions(file, builtin(), found)


@click.command(name="check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--fix", is_flag=True, help="Apply the suggested edits that make a file better.")
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text")
def command(files: tuple[str, ...], fix: bool, style: str) -> int:
    """Report every fault of FILEs: where, why, and what would mend it."""
    found: list[Diagnostic] = []
    sources: dict[str, str] = {}
    for file in dict.fromkeys(files):
        try:
            data = read_bytes(file)
            text = decode(data, file)
            if fix:
                text = _fix(file, text, crlf=b"\r\n" in data, quiet=style != "text")
        except InvalidInput as error:
            found += error.diagnostics
            continue
        sources[file] = text
        tree, diagnostics = _read(text, file)
        if style == "text":
            show(diagnostics, {file: text})
            write(_verdict(file, tree, diagnostics))
        found += diagnostics
    if style == "text":
        show([d for d in found if d.span.file not in sources], {})
    elif style == "json":
        click.echo(json.dumps(report(found), indent=2))
    else:
        from irlang.sarif import sarif

        click.echo(json.dumps(sarif(found), indent=2))
    return exit_status(found)


def _fix(file: str, text: str, *, crlf: bool, quiet: bool) -> str:
    """The text after all repairs, which is also what `file` then holds."""
    repaired, applied = repair(text, lambda changed: check_text(changed, file))
    if repaired != text:
        write_source(file, repaired.replace("\n", "\r\n") if crlf else repaired)
    for diagnostic in () if quiet else applied:
        edits = "; ".join(f"line {e.span.line}: {_change(e.text)}" for e in diagnostic.edits)
        write([("fixed", "bold green"), (f"[{visible(diagnostic.code)}]: {edits}\n", "")])
    return repaired


def _change(text: str) -> str:
    return f"wrote `{visible(text)}`" if text.strip() else "made a blank" if text else "removed it"


def _verdict(file: str, tree: ast.File | None, diagnostics: Sequence[Diagnostic]) -> list[Piece]:
    """The last line: how many errors, and what can be done about them."""
    name = visible(file)
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    warnings = len(diagnostics) - errors
    others = f", {_counted(warnings, 'warning')}" if warnings else ""
    statements = _statements(tree) if tree else []
    if not errors:
        counted = _counted(len(statements), "statement")
        return [(f"{name}: valid", "bold green"), (f" ({counted}){others}\n", "")]
    line = f" in {name}"
    faulty = {diagnostic.span.line for diagnostic in diagnostics}
    good = sum(faulty.isdisjoint(range(s.span.line, s.span.end_line + 1)) for s in statements)
    if good:
        line += f"; {_counted(good, 'other statement')} {'is' if good == 1 else 'are'} valid"
    fixable = sum(bool(diagnostic.edits) for diagnostic in diagnostics)
    if fixable:
        line += f".   irlang check --fix would try {fixable} of {len(diagnostics)}"
    return [(_counted(errors, "error") + others, "bold red"), (line + ".\n", "")]


def _statements(file: ast.File) -> list[ast.Node]:
    """The statements that have no body of their own."""
    bodies = (ast.Op, ast.Model, ast.Block, ast.For)
    found = (node for item in file.items for node in ast.walk(item))
    return [n for n in found if isinstance(n, ast.Statement) and not isinstance(n, bodies)]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
