"""`irlang fmt`: every file in the one layout, comments kept."""

from __future__ import annotations

import json
import sys

import click

from irlang.commands import exit_status
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.parser import parse
from irlang.parser.printer import print_file
from irlang.parser.source import decode, read_bytes, write_source
from irlang.render import report, show, visible


def format_text(text: str, file: str = "") -> str:
    """`text` in the one layout; raises `InvalidInput` where it is not of the language."""
    return print_file(parse(text, file))


@click.command(name="fmt")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Change nothing; list the files that would change.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def command(files: tuple[str, ...], check: bool, style: str) -> int:
    """Rewrite FILEs in the one layout, in place."""
    changed: list[str] = []
    faults: list[Diagnostic] = []
    sources: dict[str, str] = {}
    for file in dict.fromkeys(files):
        try:
            data = read_bytes(file)
            sources[file] = decode(data, file)
            formatted = format_text(sources[file], file)
            # Line breaks and a byte-order mark are part of the layout.
            if formatted.encode() == data:
                continue
            if not check:
                write_source(file, formatted)
            changed.append(file)
        except InvalidInput as error:
            faults += error.diagnostics
    if style == "json":
        click.echo(json.dumps({"changed": changed, **report(faults)}, indent=2))
    else:
        for file in changed:
            click.echo(f"{'would change' if check else 'changed'}  {visible(file)}")
        show(faults, sources, sys.stderr)
    return max(exit_status(faults), int(check and bool(changed)))
