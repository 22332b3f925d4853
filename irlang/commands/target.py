"""`irlang target add` and `irlang target remove`: versions of frameworks side by side."""

from __future__ import annotations

import click


@click.group(name="target")
def command() -> None:
    """Add a version of a framework as a target, in an environment of its own, or remove one."""


@command.command()
@click.argument("name")
@click.option(
    "--pip", "first", multiple=True, required=True, metavar="REQUIREMENT...",
    help="What to install, as in --pip onnxruntime==1.17.0 'numpy<2'.",
)  # fmt: skip
@click.option("--python", metavar="3.8", help="A version, or an interpreter's path.")
@click.argument("more", nargs=-1, metavar="")
def add(name: str, first: tuple[str, ...], python: str | None, more: tuple[str, ...]) -> int:
    """Make an environment with a framework in it, check that it works, and remember it."""
    from irlang.commands.ends import asked_to_end
    from irlang.lower.install import add as install

    def tell(text: str) -> None:
        click.echo(f"{name}: {text}", err=True)

    with asked_to_end():
        added = install(name, [*first, *more], python, tell)
    click.echo(f"{name}: {added.about}")
    return 0


@command.command()
@click.argument("name")
def remove(name: str) -> int:
    """Delete a target that was added, and its environment."""
    from irlang.lower.added import remove as delete

    delete(name)
    click.echo(f"{name}: removed")
    return 0
