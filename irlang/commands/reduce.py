"""`irlang reduce`: the smallest model that shows the same disagreement."""

from __future__ import annotations

import json
from pathlib import Path

import click

from irlang.commands import options
from irlang.commands.fuzz import Seconds


@click.command()
@options.file
@options.targets
@options.given
@options.bind
@options.model
@options.seed
@options.grad
@click.option("--time", "seconds", type=Seconds(), default="60s", show_default=True)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write OUT.nnir and OUT.safetensors."
)
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
    seconds: float,
    out: Path | None,
    profile: str | None,
    form: str,
) -> int:
    """Make a model that targets disagree on as small as possible, its numbers round."""
    from irlang.commands.cases import asks_gradients, disagreeing, load_case, targets_for
    from irlang.commands.loading import load_profile
    from irlang.diagnostics import fail
    from irlang.diff.localise import localise
    from irlang.diff.reduce import reduce
    from irlang.diff.reduce_files import OF_GRADIENTS, save, to_text
    from irlang.diff.report_script import listed
    from irlang.diff.runner import Session
    from irlang.diff.stages import blamed_gradient

    if out is not None and out.suffix != ".nnir":
        raise fail("usage.out", f"{out.name} must end in .nnir")
    grad = grad or asks_gradients(file)
    case = load_case(file, given, bind, model, seed, grad)
    with Session(targets_for(file, targets), accepted=load_profile(profile)) as session:
        found = disagreeing(session, case, grad)
        if found is None:
            none = "no target disagrees with the oracle: there is nothing to reduce"
            click.echo(json.dumps({"reduced": None}) if form == "json" else none)
            return 0
        target, case = found
        culprit = localise(session.only(target), case, target)
        name = culprit.node.op.name if culprit else None
        if grad and culprit is None:
            start, case = blamed_gradient(session, case, target)
            name = start.node.op.name if start is not None and start.node is not None else None
        made = reduce(session, case, target, culprit=name, grad=grad, seconds=seconds)
    assert made is not None
    operators = " + ".join(node.op.name for node in made.case.graph.nodes)
    notes: tuple[str, ...] = (f"{made.symptom.verdict}: {target}, {name or operators}",)
    notes += (OF_GRADIENTS,) if made.symptom.backward else ()
    text = to_text(made.case.graph, made.case.catalog, notes)
    if out is not None:
        try:
            save(made.case, out, notes)
        except OSError as error:
            raise fail("usage.out", f"{out} cannot be written: {error.strerror}") from None
    if form == "json":
        click.echo(json.dumps({
            "reduced": text, "target": target, "verdict": made.symptom.verdict,
            "operators": [node.op.name for node in made.case.graph.nodes],
            "inputs": {name: listed(a) for name, a in made.case.inputs.items()},
            "trials": made.trials, "finished": made.finished,
        }))  # fmt: skip
        return 1
    click.echo(text.rstrip())
    for name, array in made.case.inputs.items():
        if array.size <= _SHOWN:
            click.echo(f"# {name} = {listed(array)}")
    ended = "nothing smaller shows it" if made.finished else "out of time"
    where = f", written to {out}" if out else ""
    click.echo(f"# {made.trials} programs tried, {ended}{where}", err=True)
    return 1


_SHOWN = 64  # elements of an input that are printed
