"""`irlang fuzz`: a campaign against targets, with live progress and a table at the end."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irlang.commands import options
from irlang.commands.ends import asked_to_end

if TYPE_CHECKING:
    from rich.table import Table

    from irlang.diff.campaign import Campaign

_WIDTH = 132  # of a table where there is no terminal
_INTERRUPTED = 130  # the exit status
_ASIDE = ("warned", "unconfirmed", "late", "timeout", "crash")  # of invalid calls, where there are
_REASON = 70  # characters of what a framework says
_SHOWN = 20  # findings in the table; all are in the campaign's folder


class Seconds(click.ParamType[float]):
    """A span of time: `90`, `60s`, `5m`, `2h`."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if not match:
            self.fail(f"{value!r} is not a time; write 60s, 5m or 2h", param, ctx)
        return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


@click.command()
@click.option(
    "--targets",
    type=options.Targets(),
    metavar="A,B",
    help="Default: every installed framework.",
)
@click.option("--programs", type=click.IntRange(1), metavar="N", help="How many programs.")
@click.option(
    "--time", "seconds", type=Seconds(), metavar="60s", help="For how long (default: 60s)."
)
@click.option("--seed", type=click.IntRange(0), help="Default: a new one, which is printed.")
@click.option(
    "--jobs", type=click.IntRange(1, 64), help="Processes (default: one a core, at most 4)."
)
@click.option("--ops", metavar="A,B", help="Only these operators, or families.")
@click.option(
    "--grad", is_flag=True, help="Compare gradients of all programs, not of some calls alone."
)
@click.option("--analyze", is_flag=True, help="Test `irlang analyze` instead: no target is needed.")
@click.option("--out", type=click.Path(path_type=Path), help="The campaign's folder.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with a campaign.")
@options.profile
@click.option("--known", type=click.Path(), help="A TOML file of findings that are known.")
@options.text_or_json
def command(
    targets: str | None,
    programs: int | None,
    seconds: float | None,
    seed: int | None,
    jobs: int | None,
    ops: str | None,
    grad: bool,
    analyze: bool,
    out: Path | None,
    resume: Path | None,
    profile: str | None,
    known: str | None,
    form: str,
) -> int:
    """Generate programs, run them on targets, and report where these differ from the oracle."""
    from irlang.commands.loading import split_names
    from irlang.commands.report import write_page
    from irlang.diagnostics import fail
    from irlang.diff.campaign import Campaign, Settings
    from irlang.lower.target import require_installed, usual

    of_its_start = (targets, programs, seed, jobs, ops, out, profile, known)
    if resume is not None and (grad or any(given is not None for given in of_its_start)):
        raise fail(
            "usage.resume",
            "--resume goes on as the campaign was started",
            help="give --time alone with it",
        )
    if analyze and (resume or targets or profile or known):
        raise fail("usage.analyze", "--analyze goes with --programs, --time, --seed, --ops, --grad")
    if analyze:
        from irlang.commands import fuzz_analysis

        seed = random.SystemRandom().randrange(10**7) if seed is None else seed
        span = 60.0 if programs is None and seconds is None else seconds
        count = jobs or min(os.cpu_count() or 1, 4)
        return fuzz_analysis.run(programs, span, seed, count, _operators(ops), grad, out, form)
    if resume is not None:
        campaign = Campaign(resume, None)
        for name in campaign.settings.targets:
            require_installed(name)
        _operators(",".join(campaign.settings.ops))
        seconds = seconds or campaign.settings.seconds
    else:
        names = tuple(split_names(targets, ",".join(usual())))
        for name in names:
            require_installed(name)
        seed = random.SystemRandom().randrange(10**7) if seed is None else seed
        if programs is None and seconds is None:
            seconds = 60.0
        count = jobs or min(os.cpu_count() or 1, 4)
        chosen = _operators(ops)
        stamp = dt.datetime.now(tz=dt.UTC).date().isoformat()
        folder = out or Path("campaigns") / f"{stamp}-{seed}"
        settings = Settings(
            names, seed, programs, seconds, chosen, grad, count, known or "", profile or ""
        )
        campaign = Campaign(folder, settings)
    with closing(campaign):
        _run(campaign, seconds, form)
        report = campaign.report()
        place = campaign.folder / "report.json"
        try:
            place.write_text(json.dumps(report, indent=1), "utf-8")
        except OSError as error:
            raise fail("file.campaign", f"{place} cannot be written: {error.strerror}") from None
        shown = write_page(campaign)
    if form == "json":
        click.echo(json.dumps(report))
    else:
        _show(campaign, report)
        click.echo(shown)
    if campaign.interrupted:
        return _INTERRUPTED
    return 1 if report["findings"] else 0


def _operators(ops: str | None) -> tuple[str, ...]:
    """The operators that are named; of a word that no operator has, those of its family."""
    from irlang.catalog import builtin
    from irlang.commands.loading import split_names
    from irlang.diagnostics import fail

    catalog = builtin()
    families = catalog.families()
    names: list[str] = []
    for name in split_names(ops, ""):
        if catalog.op(name) is None and name not in families:
            near = ", ".join(catalog.nearest(name, families))
            raise fail(
                "usage.ops",
                f"there is no operator, and no family, `{name}`",
                help=f"did you mean {near}?" if near else "",
            )
        names += [name] if catalog.op(name) else families[name]
    return tuple(dict.fromkeys(names))


def _run(campaign: Campaign, seconds: float | None, form: str) -> None:
    """Runs with a progress line on a terminal, silently elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from irlang.lower.target import unasked

    console = Console(stderr=True)
    settings = campaign.settings
    if form == "text":
        Console().print(
            f"irlang fuzz  seed {settings.seed}  targets {' · '.join(settings.targets)}"
            f"  jobs {settings.jobs}",
            highlight=False,
        )
        for other in unasked(settings.targets):
            Console().print(f"not asked: {other.name}, which is {other.about}", highlight=False)
    total = float(settings.programs) if settings.programs else (seconds or 60.0)
    with Progress(
        BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"), console=console,
        disable=form == "json" or not sys.stderr.isatty(),
    ) as bar:  # fmt: skip
        task = bar.add_task("starting the targets", total=total)
        shown = len(campaign.findings)

        def progress(now: Campaign) -> None:
            nonlocal shown
            tally = now.tally
            if not bar.disable:
                for one in now.findings[shown:]:
                    bar.console.print(_line(one), highlight=False, markup=False)
            shown = len(now.findings)
            done = float(tally.programs) if settings.programs else tally.seconds
            rate = (tally.programs + tally.aside) / tally.seconds if tally.seconds else 0.0
            used = len(tally.covered.get("operators", ()))
            text = (
                f"{tally.programs:,} programs + {tally.aside:,} small ones  {rate:.0f}/s  "
                f"{len(now.findings)} findings  "
                f"{used} operators"
            )
            begun = tally.programs or tally.aside or shown
            bar.update(
                task, completed=min(done, total),
                description=text if begun else "starting the targets, drawing programs",
            )  # fmt: skip

        with asked_to_end():
            campaign.run(progress, seconds)


def _line(found: dict[str, Any]) -> str:
    """A finding as it is shown when it is met."""
    from irlang.diff.report_words import together

    calls = together(found["operator"].split(" + "))
    return f"{found['id']}  {found['verdict']}  {found['target']}  {calls}"


def _show(campaign: Campaign, report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    tally = campaign.tally
    ran = report["programs"] + report["aside"]
    rate = ran / report["seconds"] if report["seconds"] else 0.0
    covered = report["coverage"]
    console.print(
        f"{report['programs']:,} programs and {report['aside']:,} small ones (calls apart, spoilt "
        f"calls) in {report['seconds']:.0f} s, {rate:.0f}/s  "
        f"{len(report['findings'])} findings  {covered['operators']} of {covered['of']} operators",
        highlight=False,
    )
    console.print(_verdicts({name: dict(counts) for name, counts in tally.targets.items()}))
    if report["findings"]:
        console.print(_findings(report["findings"]))
    if any(report["invalid"].values()):
        console.print(_invalid(report["invalid"]), highlight=False)
    if report["known"]:
        told = ", ".join(f"{count} ({reason})" for reason, count in report["known"].items())
        console.print(f"known, and not shown: {told}", highlight=False, markup=False)
    if campaign.lost:
        console.print(
            f"{len(campaign.lost)} batches ended their process again and again, and were left out",
            highlight=False,
        )
    if campaign.faults:
        from irlang.diff.campaign import FAULTS

        console.print(
            f"{len(campaign.faults)} batches or findings ended in a fault of irlang's own, which "
            f"{campaign.folder / FAULTS} describes: please report it",
            highlight=False,
        )
    if campaign.interrupted:
        console.print("interrupted: the batches under way are not in it", highlight=False)
    console.print(
        f"{campaign.folder}      irlang fuzz --resume {campaign.folder} continues", highlight=False
    )


def _verdicts(targets: dict[str, dict[str, int]]) -> Table:
    from rich.table import Table

    from irlang.diff.verdict import SEVERITY

    shown = [
        v
        for v in SEVERITY
        if v in ("agrees", "wrong") or any(counts.get(v) for counts in targets.values())
    ]
    table = Table(box=None, pad_edge=True)
    table.add_column("")
    for verdict in shown:
        table.add_column(verdict, justify="right")
    for name, counts in targets.items():
        table.add_row(name, *(f"{counts.get(v, 0):,}" for v in shown))
    return table


def _invalid(targets: dict[str, dict[str, int]]) -> str:
    said = (
        ", ".join(
            [
                f"{name} refused {counts.get('refused', 0)}",
                f"accepted {counts.get('accepted', 0)}",
                *(f"{verdict} {counts[verdict]}" for verdict in _ASIDE if counts.get(verdict)),
            ]
        )
        for name, counts in targets.items()
        if counts
    )
    return f"invalid calls: {' · '.join(said)}"


def _findings(found: list[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from irlang.diff.report_words import first_words, together
    from irlang.diff.verdict import worded, worst_first
    from irlang.render import visible

    findings = [
        {**f, "verdict": worded(f), "operator": together(f["operator"].split(" + "))}
        for f in worst_first(found)
    ]
    table = Table(box=None, pad_edge=True)
    for heading, key in (("finding", "id"), ("verdict",) * 2, ("target",) * 2, ("operator",) * 2):
        widest = max(len(heading), *(len(f[key]) for f in findings[:_SHOWN]))
        table.add_column(heading, no_wrap=True, min_width=widest)
    table.add_column("when", no_wrap=True, overflow="ellipsis", max_width=40)
    table.add_column("", no_wrap=True, min_width=len("30 operators"))
    for f in findings[:_SHOWN]:
        when = ", ".join(f"{k} = {v}" for k, v in f["attributes"].items()) or first_words(
            f["message"], _REASON
        )
        size = f"{f['operators']} operator{'s' * (f['operators'] != 1)}"
        told = (f["id"], f["verdict"], f["target"], f["operator"], when, size)
        table.add_row(*(Text(visible(text)) for text in told))
    if len(findings) > _SHOWN:
        table.add_row("…", f"{len(findings) - _SHOWN} more", "", "", "", "")
    return table
