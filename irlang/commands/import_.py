"""`irlang import`: a model of another system as text, with its parameters beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from irlang.importers.files import Imported


@click.command(name="import")
@click.argument("file")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Default: FILE with the ending .nnir."
)
@click.option("--bind", multiple=True, metavar="N=4", help="A size that the model leaves open.")
@click.option(
    "--partly",
    is_flag=True,
    help="Leave out operators without a translation, and what is computed from them (.onnx, .pb).",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(file: str, out: Path | None, bind: tuple[str, ...], partly: bool, form: str) -> int:
    """Read an ONNX file (.onnx), a Keras model (.keras, .h5), a PyTorch program (.pt2) or a
    TensorFlow graph (.pb).
    """
    from irlang.commands import exit_status
    from irlang.commands.loading import bindings
    from irlang.diagnostics import InvalidInput, fail
    from irlang.importers.files import read
    from irlang.render import report, show

    path = out or Path(file).with_suffix(".nnir")
    try:
        if path.suffix != ".nnir":
            raise fail("usage.out", f"{path.name} must end in .nnir")
        made = read(Path(file), f"{path.stem}.safetensors", bindings(bind), partly=partly)
        try:
            path.write_text(made.text, "utf-8")
        except OSError as error:
            raise fail("usage.out", f"{path} cannot be written: {error.strerror}") from None
        made.writer.save(path.parent)
    except InvalidInput as error:
        if form == "text":
            raise
        click.echo(json.dumps(report(error.diagnostics), indent=2))
        return max(1, exit_status(error.diagnostics))
    told = _told(made, path)
    if form == "json":
        click.echo(json.dumps(told))
    else:
        beside = f" and {told['parameters']}" if told["parameters"] else ""
        show(made.left_out, {})
        click.echo(f"wrote {path}{beside}")
    return 0


def _told(made: Imported, path: Path) -> dict[str, Any]:
    """What `--format json` prints."""
    from irlang.render import report

    writer = made.writer
    return {
        "model": str(path),
        "parameters": str(path.with_name(writer.data)) if writer.tensors and writer.data else None,
        "inputs": {name: str(info) for name, info in writer.inputs.items()},
        "diagnostics": report(made.left_out)["diagnostics"],
    }
