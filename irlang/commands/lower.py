"""`irlang lower`: a model as a program of a target."""

from __future__ import annotations

import json
from pathlib import Path

import click

_ENDINGS = {"python": ".py", "onnx": ".onnx"}


@click.command(name="lower")
@click.argument("file")
@click.option("--to", "target", required=True, metavar="TARGET", help="One of `irlang targets`.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Default: MODEL_TARGET beside FILE."
)
@click.option("--bind", multiple=True, metavar="N=4", help="A size that the model leaves open.")
@click.option("--model", metavar="NAME", help="Of a file with several models.")
@click.option("--seed", default=0, show_default=True, help="Of parameters that are drawn.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(
    file: str,
    target: str,
    out: Path | None,
    bind: tuple[str, ...],
    model: str | None,
    seed: int,
    form: str,
) -> int:
    """Write a model as a program that needs the framework and NumPy only, its weights beside it."""
    from irlang.commands.loading import load_model
    from irlang.diagnostics import fail
    from irlang.diff.reduce_files import manner_of
    from irlang.interp.values import initial_values
    from irlang.lower.lower import lower, write_program

    graph, catalog = load_model(file, bind, model)
    params, manner = initial_values(graph, seed), manner_of(Path(file))
    lowered = lower(graph, target, catalog, params, grad=True, manner=manner)
    if lowered.unsupported:
        raise fail("lower.unsupported", lowered.refusal)
    ending = _ENDINGS[lowered.kind]
    path = out or Path(file).with_name(f"{Path(file).stem}_{target.replace(':', '_')}{ending}")
    if path.suffix != ending:
        raise fail("usage.out", f"{path.name} must end in {ending}")
    try:
        written = write_program(lowered, path.with_suffix(""))
    except OSError as error:
        raise fail("usage.out", f"{path} cannot be written: {error.strerror}") from None
    if form == "json":
        native = sorted(lowered.native)
        click.echo(json.dumps({"target": target, "program": str(written), "native": native}))
    else:
        click.echo(f"wrote {written}")
    return 0
