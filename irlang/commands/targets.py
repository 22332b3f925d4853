"""`irlang targets`: what programs can be run on here."""

from __future__ import annotations

import json

import click


@click.command(name="targets")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(form: str) -> int:
    """List the targets, their versions, and what is missing."""
    from irlang.lower.target import targets

    found = targets()
    if form == "json":
        click.echo(json.dumps([target.as_json() for target in found], indent=2))
        return 0
    width = max(len(target.name) for target in found)
    column = max(len(target.version or "-") for target in found)
    for target in found:
        share = f" (1 program in {target.share} of a campaign)" if target.share > 1 else ""
        state = target.about + share if target.installed else target.reason
        click.secho(target.name.ljust(width), bold=True, nl=False)
        click.echo(f"  {(target.version or '-').ljust(column)}  {state}")
    return 0
