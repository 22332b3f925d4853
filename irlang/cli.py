"""The command `irlang`: finds the verb, runs it, and turns what goes wrong into an exit status.

Each verb is a module of `irlang.commands` with a click command named `command`, which returns its
exit status: 0 nothing to report, 1 something found, 2 wrong usage or unreadable input. Modules are
imported when their verb is used; what is heavy they import when they run.
"""

from __future__ import annotations

import errno
import importlib
import keyword
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

import irlang
from irlang.commands import exit_status
from irlang.diagnostics import InvalidInput

# The verbs in the order of the help text. One is offered as soon as its module is there.
VERBS = {
    "check": "Say what is wrong with models and definitions.",
    "fmt": "Rewrite files in the one layout.",
    "run": "Compute a model's outputs.",
    "diff": "Compare a model's outputs on several targets.",
    "lower": "Write a model as a program for a target.",
    "import": "Read a model of another format.",
    "fuzz": "Generate models and compare targets on them.",
    "localize": "Find the operator that makes targets disagree.",
    "reduce": "Make a disagreeing model as small as possible.",
    "report": "Show the findings of a campaign.",
    "analyze": "Find where a model can become NaN or infinite.",
    "ops": "Show the operators and their definitions.",
    "targets": "List the targets and whether they are installed.",
    "target": "Add a target in an environment of its own.",
}


class Verbs(click.Group):
    """A group whose commands are modules, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs that there are."""
        folder = Path(__file__).parent / "commands"
        return [verb for verb in VERBS if (folder / f"{_module(verb)}.py").exists()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"irlang.commands.{_module(cmd_name)}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any."""
        rows = [(verb, VERBS[verb]) for verb in self.list_commands(ctx)]
        with formatter.section("Verbs"):
            formatter.write_dl(rows)


def _module(verb: str) -> str:
    return f"{verb}_" if keyword.iskeyword(verb) else verb


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(irlang.__version__, prog_name="irlang", message="%(prog)s %(version)s")
def cli() -> None:
    """Neural network operators, each defined once as text, and all that follows from it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(status(arguments))


def status(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit status."""
    if sys.stdout is None:  # it was closed before the start
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        result = cli.main(arguments, prog_name="irlang", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        _silence()
        return 141
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _silence()
        click.echo(f"error: what is to be written cannot be: {error.strerror}", err=True)
        return 2
    except InvalidInput as error:
        return refuse(error)
    except RecursionError:
        click.echo(
            "error: what is given is nested too deeply to be followed\n"
            "help: say it in several calls, or by fewer operands of one",
            err=True,
        )
        return 2
    return result if isinstance(result, int) else 0


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def _silence() -> None:
    """The reader, or the room, is gone: let Python's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse(error: InvalidInput) -> int:
    """Show why input was refused, on standard error; the exit status."""
    from irlang.parser.source import read_source
    from irlang.render import show

    sources: dict[str, str] = {}
    for file in {diagnostic.span.file for diagnostic in error.diagnostics} - {""}:
        try:
            sources[file] = read_source(file)
        except InvalidInput:
            continue  # shown without its lines
    show(error.diagnostics, sources, sys.stderr)
    return max(1, exit_status(error.diagnostics))


if __name__ == "__main__":  # `python -m irlang.cli` had said nothing, with status 0
    main()
