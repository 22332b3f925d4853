"""`irlang diff`: a model on several targets, each result judged against the oracle's radius."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from irlang.commands import options

if TYPE_CHECKING:
    from irlang.diff.stages import Calls
    from irlang.diff.verdict import Verdict


_RIGHT = ("agrees", "rounding")


@click.command()
@options.file
@options.targets
@options.given
@options.bind
@options.model
@options.seed
@options.grad
@click.option(
    "--optimizer",
    metavar="NAME(...)",
    help="Take steps of it with the gradients, as in 'NAME(lr = 0.1)'; see `irlang ops NAME`.",
)
@click.option("--steps", type=click.IntRange(1, 1000), help="How many (default: one).")
@options.profile
@options.text_or_json
def command(
    file: str,
    targets: str | None,
    given: tuple[str, ...],
    bind: tuple[str, ...],
    model: str | None,
    seed: int,
    grad: bool,
    optimizer: str | None,
    steps: int | None,
    profile: str | None,
    form: str,
) -> int:
    """Compare targets with the oracle on one model."""
    from irlang.commands.cases import asks_gradients, load_case, targets_for
    from irlang.commands.loading import load_profile
    from irlang.diagnostics import fail
    from irlang.diff import training
    from irlang.diff.runner import Session
    from irlang.diff.stages import by_calls
    from irlang.diff.verdict import FINDINGS

    grad = grad or optimizer is not None or asks_gradients(file)
    case = load_case(file, given, bind, model, seed, grad)
    made = None
    if optimizer is not None:
        made = training.optimizer(optimizer, case.catalog)
    elif steps is not None:
        raise fail("usage.optimizer", "steps of what? --optimizer names it")
    names = targets_for(file, targets)
    with Session(names, accepted=load_profile(profile)) as session:
        session.versions()
        outcome = session.compare([case], grad=grad)[0]
        if outcome.refusal is not None:
            raise outcome.refusal
        calls = {
            target: by_calls(session, case, target, grad)
            for target, found in outcome.verdicts.items()
            if any(v.verdict in ("unstable", "rounding") for v in found)
            or (grad and any(v.verdict in FINDINGS for v in found))
        }
        taken = {
            target: training.train(session, case, target, made, steps or 1, outcome)
            for target in (outcome.verdicts if made is not None else ())
            if made is not None
        }
    verdicts = [v for found in outcome.verdicts.values() for v in found]
    verdicts += [v for one in calls.values() for v in one.found]
    shown = verdicts + [v for found in taken.values() for v in found if v.verdict not in _RIGHT]
    verdicts += [v for found in taken.values() for v in found]
    agree = not any(v.verdict in FINDINGS for v in verdicts)
    if form == "json":
        click.echo(
            json.dumps(
                {
                    "agree": agree,
                    "outputs": [v.as_json() for v in verdicts],
                    "calls": {target: one.forward + one.backward for target, one in calls.items()},
                    "starts": [one.start.as_json() for one in calls.values() if one.start],
                }
            )
        )
    else:
        _show(shown, agree, calls, grad)
        for target, found in taken.items():
            bad = sum(v.verdict in FINDINGS for v in found)
            says = "all agree" if not bad else f"{bad} do not agree"
            click.echo(f"{target}: {len(found)} results of steps of {optimizer}, {says}")
    return 0 if agree else 1


def _summary(verdicts: list[Verdict], agree: bool) -> str:
    """What is to be said of all verdicts; that of a target which runs nothing is no agreement."""
    from irlang.diff.verdict import FINDINGS, INCONSISTENT

    ran = {v.target for v in verdicts if v.verdict != "unsupported"}
    if not agree:
        if {v.verdict for v in verdicts if v.verdict in FINDINGS} == {INCONSISTENT}:
            return "the targets agree with the oracle, but not with what they give plainly"
        return "the targets do not agree with the oracle"
    if not ran:
        return "nothing is compared with the oracle: no target can run it"
    idle = [target for target in dict.fromkeys(v.target for v in verdicts) if target not in ran]
    but = f", but for {' and '.join(idle)}, which cannot run it" if idle else ""
    return f"the targets agree with the oracle{but}"


def _show(verdicts: list[Verdict], agree: bool, calls: dict[str, Calls], grad: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from irlang.diff.verdict import FINDINGS, INCONSISTENT
    from irlang.render import visible

    table = Table(box=None, pad_edge=False)
    for heading, justify in (
        ("verdict", "left"),
        ("target", "left"),
        *([("stage", "left")] if grad else []),
        ("result", "left"),
        ("error", "right"),
        ("radius", "right"),
        ("at", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for v in verdicts:
        style = (
            "green"
            if v.verdict in ("agrees", "rounding")
            else "yellow"
            if v.verdict in ("unstable", "unsupported")
            else "red"
        )
        numbers = ["" if n is None else f"{n:.3g}" for n in (v.max_error, v.radius)]
        place = "" if v.index is None else str(list(v.index))
        table.add_row(
            Text(v.verdict, style),
            v.target,
            *([v.stage] if grad else []),
            Text(visible(v.name)),
            *numbers,
            Text(visible(v.message) or place),
        )
    console = Console()
    console.print(_summary(verdicts, agree), style="bold")
    console.print(table)
    for target, one in calls.items():
        bad = sum(v.target == target and v.verdict in FINDINGS for v in verdicts)
        says = "all agree" if not bad else f"{bad} results do not agree"
        count = f"{one.forward} calls" + f" and {one.backward} gradients" * bool(one.backward)
        console.print(f"{target}: {count} judged by their own inputs, {says}", highlight=False)
        if grad and one.start is not None:
            where = f" (`{visible(one.start.node.name)}`)" if one.start.node is not None else ""
            stage = one.start.verdict.stage
            console.print(
                Text(f"{target}: it starts in the {stage} stage, at {one.start.operator}{where}")
            )
    for v in verdicts:
        if v.expected is not None and v.verdict not in ("agrees", "rounding"):
            expected = f"expected {v.expected!r} ± {v.radius:.3g}"
            told = f"; {visible(v.message)}" if v.verdict == INCONSISTENT else f", {expected}"
            place = f"{visible(v.name)}{list(v.index or ())}"
            console.print(Text(f"{v.target}: {place} is {v.got!r}{told}"))
