"""`irlang report`: a campaign as one page of HTML."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irlang.commands import options

if TYPE_CHECKING:
    from irlang.diff.campaign import Campaign


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Default: report.html in the folder."
)
@options.text_or_json
def command(folder: Path, out: Path | None, form: str) -> int:
    """Show a campaign's verdicts, findings and coverage on one page that needs nothing else."""
    from irlang.diff.campaign import Campaign

    campaign = Campaign(folder, None)
    path = write_page(campaign, out) if out or form == "text" or _writable(folder) else None
    if form == "json":
        click.echo(json.dumps({**campaign.report(), "page": str(path or "")}))
    else:
        click.echo(f"wrote {path}")
    return 1 if campaign.findings else 0


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def _report(campaign: Campaign) -> dict[str, Any]:
    """What the campaign says of itself; its time is in its own report if it is not running."""
    report = campaign.report()
    saved = campaign.folder / "report.json"
    if not report["seconds"] and saved.is_file():
        try:
            report["seconds"] = float(json.loads(saved.read_text("utf-8"))["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            click.echo(f"{saved} does not say how long the campaign ran", err=True)
    return report


def write_page(campaign: Campaign, out: Path | None = None) -> Path:
    """Writes the page of a campaign; raises where it cannot be written."""
    from irlang.diagnostics import fail
    from irlang.diff.report_page import page
    from irlang.lower.target import targets

    versions = {t.name: t.version or "" for t in targets()}
    path = out or campaign.folder / "report.html"
    try:
        text = page(campaign.folder, _report(campaign), versions, path.parent)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise fail(
            "usage.out", f"{path} cannot be written: {error.strerror}", help="--out PATH.html"
        ) from None
    return path
