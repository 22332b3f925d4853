"""`irlang analyze`: where NaN and infinity can arise, with inputs that reach it, or proofs."""

from __future__ import annotations

import json
import sys
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irlang.commands import options
from irlang.garbage import keep
from irlang.render import show, visible, write

if TYPE_CHECKING:
    from irlang.analysis.subject import Subject


def _number(_: click.Context, option: click.Parameter, value: float) -> float:
    """A number that is one: every comparison of a range lets NaN pass."""
    if value != value:
        raise click.BadParameter("nan is no number", param=option)
    return value


@click.command(name="analyze")
@options.file
@click.option(
    "--ranges",
    "ranges_file",
    metavar="FILE.json",
    help='Ranges of inputs and parameters, {"x": [0, 1], ...}; they go before those in the text.',
)
@click.option(
    "--gradient/--no-gradient",
    default=None,
    help="Whether to analyse the gradients as well.  [default: those of a text with a loss]",
)
@click.option(
    "--domain",
    type=click.Choice(["relations", "regions", "tensor"]),
    default="relations",
    show_default=True,
    help="What is known of a value: relations between elements, an interval for every region of "
    "a tensor, or one for every tensor.",
)
@click.option(
    "--flush",
    is_flag=True,
    help="Take into account that numbers below the smallest normal one may become 0, as on some "
    "processors.",
)
@click.option("--fix", is_flag=True, help="Write the guards that were proved into the text.")
@options.bind
@options.model
@click.option(
    "--time",
    "seconds",
    type=click.FloatRange(0, 3600),
    callback=_number,
    default=4.5,
    show_default=True,
    help="Seconds of computing that the search for inputs may take, for all points together.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the search.")
@click.option(
    "--targets",
    type=options.Targets(),
    metavar="A,B",
    help="Which frameworks confirm (default: the first that can).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for inputs that break the model, with programs that show it without irlang.",
)
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text")
def command(
    file: str,
    ranges_file: str | None,
    gradient: bool | None,
    domain: str,
    flush: bool,
    fix: bool,
    bind: tuple[str, ...],
    model: str | None,
    seconds: float,
    seed: int,
    targets: str | None,
    out: Path | None,
    style: str,
) -> int:
    """Say where a model can become NaN or infinite out of finite inputs, and how to prevent it.

    FILE is a model in the language, or one that `irlang import` reads; operators of that which have
    no translation are left out, which is said. Exit status 1 where such a place is reachable (an
    input is shown) or possible (it could not be excluded), or where something was left out.
    """
    from irlang.analysis.confirm import Frameworks
    from irlang.analysis.report import conclusion, diagnostics
    from irlang.analysis.report_json import to_json
    from irlang.analysis.verdict import verdicts
    from irlang.analysis.witness import written
    from irlang.commands.loading import load_subject, split_names
    from irlang.diagnostics import Span, fail
    from irlang.importers.files import READERS
    from irlang.lower.target import require_installed

    ranges = read_ranges(ranges_file) if ranges_file else {}
    names = split_names(targets, "") if targets else None
    for name in names or ():
        require_installed(name)
    imported = Path(file).suffix.lower() in READERS
    if fix and imported:
        help_ = f"write its text first: irlang import {file}"
        raise fail("usage.fix", f"{file} is no text that guards could be written into", help=help_)
    with Frameworks(names, named=True) if names else Frameworks() as frameworks:
        frameworks.start()  # which takes as long as reading and proving do
        subject = load_subject(file, bind, model, ranges, seed, flush)
        gradient = subject.trains if gradient is None else gradient
        keep()
        told = style == "text"
        if fix:
            subject = _mended(subject, file, gradient, domain, told)
        found = verdicts(
            subject, frameworks, gradient=gradient, domain=domain, seconds=seconds, seed=seed
        )
        if fix and found.subject.flush and not flush:  # a framework has 0 for denormal numbers
            calls = {report.point.node for report in found.reports}
            subject = _mended(found.subject, file, gradient, domain, told, calls)
            subject = replace(subject, flush=False)
            found = verdicts(
                subject, frameworks, gradient=gradient, domain=domain, seconds=seconds, seed=seed
            )
        files = written(found, out) if out is not None else {}
    shown = [*subject.left_out, *diagnostics(found, all_of_them=style == "sarif")]
    if style == "sarif" and imported:
        # lines and edits are those of the text that an import writes, not of this file
        shown = [replace(one, span=Span(file, 0, 0, 0, 0), edits=()) for one in shown]
    bad = bool(found.reports or subject.left_out)
    if style == "json":
        click.echo(json.dumps(to_json(found, files)))
    elif style == "sarif":
        from irlang.sarif import sarif

        click.echo(json.dumps(sarif(shown), indent=2))
    else:
        show(shown, {subject.file: subject.text})
        verdict, *rest = conclusion(found, imported=imported)
        write([(f"{verdict}\n", "bold red" if bad else "bold green")])
        write([(f"{line}\n", "") for line in rest])
        for paths in files.values():
            click.echo(f"wrote {paths[0]}")
    return int(bad)


def _mended(
    subject: Subject,
    file: str,
    gradient: bool,
    domain: str,
    told: bool,
    only: Set[str] | None = None,
) -> Subject:
    """A model with the guards that are proved, which are written into its file."""
    from irlang.analysis.guards import mend
    from irlang.analysis.subject import reread
    from irlang.commands.fmt import format_text
    from irlang.parser.source import read_bytes, write_source

    before = subject.text
    subject, used = mend(subject, gradient=gradient, domain=domain, only=only)
    if used and format_text(before) == before:  # what was laid out stays so
        subject = reread(subject, format_text(subject.text)) or subject
    if used:
        crlf = b"\r\n" in read_bytes(file)
        write_source(file, subject.text.replace("\n", "\r\n") if crlf else subject.text)
    for guard in used if told else ():
        line = guard.edits[0].span.line
        write([("fixed", "bold green"), (f" line {line}: {visible(guard.text)}\n", "")])
    return subject


def read_ranges(path: str) -> dict[str, tuple[float, float]]:
    """Ranges by name from a JSON file. Raises `file.ranges` where it is something else."""
    from irlang.diagnostics import fail
    from irlang.parser.source import read_source

    text = read_source(Path(path))
    twice: list[str] = []

    def by_name(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice.extend(name for place, name in enumerate(names) if name in names[:place])
        return dict(pairs)

    try:
        found = json.loads(text, object_pairs_hook=by_name)
    except (ValueError, RecursionError) as error:
        raise fail("file.ranges", f"{path} is no JSON: {error}") from None
    form = 'it has the form {"name": [low, high], ...}'
    if not isinstance(found, dict):
        raise fail("file.ranges", f"{path} holds no ranges by name", help=form)
    if twice:
        raise fail("file.ranges", f"{path} gives the range of `{twice[0]}` twice")
    ranges = {}
    for name, ends in found.items():
        fault = _fault(ends)
        if fault:
            raise fail("file.ranges", f"the range of `{name}` in {path} {fault}", help=form)
        ranges[name] = float(ends[0]), float(ends[1])
    return ranges


def _fault(ends: Any) -> str:
    """Why something is no range; nothing where it is one."""
    if not isinstance(ends, list) or len(ends) != 2:
        return "is no [low, high]"
    if not all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends):
        return "is no [low, high]: its ends are not both numbers"
    if any(end != end for end in ends):
        return "has an end that is NaN"
    # JSON has integers that are larger than every float.
    if any(isinstance(end, int) and abs(end) > sys.float_info.max for end in ends):
        return "has an end that is too large"
    if ends[0] > ends[1]:
        return f"is [{ends[0]:g}, {ends[1]:g}]: its low end is above its high end"
    return ""
