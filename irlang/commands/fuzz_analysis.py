"""`irlang fuzz --analyze`: a campaign against the analysis, with what it finds as files."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

import click
import numpy as np

from irlang.analysis.campaign import TRIES, Finding, Tally, run_batch
from irlang.diagnostics import fail
from irlang.diff.spread import processes, submit

_BATCH = 10  # programs that a process examines at a time


def run(
    programs: int | None,
    seconds: float | None,
    seed: int,
    jobs: int,
    ops: tuple[str, ...],
    grad: bool,
    out: Path | None,
    form: str,
) -> int:
    """Examines programs until they are done or the time is up; exit status 1 for a finding."""
    if out is not None:
        _made(out)
    start = time.monotonic()
    tally = Tally()
    if form == "text":
        click.echo(f"irlang fuzz --analyze  seed {seed}  jobs {jobs}")
    for part in _batches(programs, seconds, seed, jobs, ops, grad):
        tally.add(part)
        if form == "text" and sys.stderr.isatty():
            found = len(tally.findings)
            click.echo(f"\r{tally.programs:,} programs  {found} findings", nl=False, err=True)
    took = time.monotonic() - start
    paths = [_written(finding, out) for finding in tally.findings] if out is not None else []
    if form == "json":
        click.echo(json.dumps({"seed": seed, "seconds": round(took, 1), **tally.as_json()}))
    else:
        _show(tally, took, paths)
    return int(bool(tally.findings))


def _batches(
    programs: int | None, seconds: float | None, seed: int, jobs: int, ops: tuple[str, ...],
    grad: bool,
) -> Iterator[Tally]:  # fmt: skip
    """What every batch brings, as it comes; no more are begun once the time is up."""
    deadline = None if seconds is None else time.monotonic() + seconds
    numbers = range(programs) if programs is not None else itertools.count()
    source = iter(numbers)
    running: set[Future[Tally]] = set()
    with processes(jobs) as pool:
        while True:
            late = deadline is not None and time.monotonic() > deadline
            while not late and len(running) < 2 * jobs:
                seeds = [seed * 1_000_003 + n for n in itertools.islice(source, _BATCH)]
                if not seeds:
                    break
                running.add(submit(pool, run_batch, seeds, ops, grad))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                yield one.result()


def _show(tally: Tally, took: float, paths: list[Path]) -> None:
    count = tally.points.total()
    click.echo(
        f"{tally.programs:,} programs in {took:.0f} s: {tally.calls:,} calls, run {TRIES} times; "
        f"{count:,} places where something could go wrong"
    )
    told = {"safe": "proved safe", "reached": "reached", "possible": "neither"}
    shares = (f"{tally.points[key] / count:.1%} {word}" for key, word in told.items() if count)
    click.echo(", ".join(shares) or "no place where something could go wrong")
    broken = [finding for finding in tally.findings if finding.error]
    if len(broken) == len(tally.findings):
        click.echo("nothing that was called safe went wrong")
    for finding in broken:
        click.echo(f"the analysis broke: seed {finding.seed}\n{finding.error.rstrip()}")
    for finding in tally.findings:
        if finding.error:
            continue
        what = f"{finding.node} ({finding.operator}) gave {finding.value}"
        click.echo(f"called safe, and wrong: seed {finding.seed}, {what}")
    for path in paths:
        click.echo(f"wrote {path}")


def _made(folder: Path) -> None:
    """Makes a folder before anything is run for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail("usage.out", f"{folder} cannot be made: {error.strerror}") from None


def _written(finding: Finding, folder: Path) -> Path:
    """The program of a finding, and its inputs beside it."""
    from safetensors.numpy import save_file

    name = finding.node.replace("/", "_") or "broken"
    path = folder / f"seed-{finding.seed}-{name}.nnir"
    try:
        path.write_text(finding.text, "utf-8")
        if finding.error:
            path.with_suffix(".txt").write_text(finding.error, "utf-8")
        else:
            inputs = {name: np.asarray(value) for name, value in finding.inputs.items()}
            save_file(inputs, path.with_suffix(".safetensors"))
    except OSError as error:
        raise fail("usage.out", f"{path} cannot be written: {error.strerror}") from None
    return path
