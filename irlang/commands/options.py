"""Options that several commands share, so that they are called, read and refused alike."""

from __future__ import annotations

from typing import Any

import click


class Targets(click.ParamType[str]):
    """Names of targets with commas between them; naming none is not to name any."""

    name = "targets"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, which names at least one."""
        if not str(value).strip(" ,"):
            self.fail("no target is named; write torch,onnxruntime", param, ctx)
        return str(value)


file = click.argument("file")
targets = click.option(
    "--targets",
    type=Targets(),
    metavar="A,B",
    help="Default: every installed target that is quick, and that of a finding.",
)
given = click.option(
    "--input", "given", multiple=True, metavar="NAME=FILE.npy", help="The value of an input."
)
bind = click.option("--bind", multiple=True, metavar="N=4", help="The value of a symbolic size.")
model = click.option(
    "--model", metavar="NAME", help="Which model of the file (default: the first)."
)
seed = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of what is drawn."
)
grad = click.option("--grad", is_flag=True, help="Compare gradients as well.")
profile = click.option(
    "--profile", metavar="FILE", help="What is accepted of targets' arithmetic (TOML)."
)
text_or_json = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
