"""`python -m irlang.docs [docs/operators.md]`: writes the index, and the pages of families."""

from __future__ import annotations

from pathlib import Path

import click

from irlang.catalog import builtin
from irlang.docs.markdown import write


@click.command()
@click.argument("index", default="docs/operators.md", type=click.Path(dir_okay=False))
def command(index: str) -> None:
    """Write INDEX, the list of operators, and the pages of their families beside it."""
    for path in write(builtin(), Path(index)):
        click.echo(path)  # what there is to commit


if __name__ == "__main__":
    command()
