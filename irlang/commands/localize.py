"""`irlang localize`: the operator that makes a target leave the oracle, found in two ways."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from irlang.commands import options

if TYPE_CHECKING:
    from irlang.diff.localise import Culprit, Fusion
    from irlang.diff.runner import Case, Session
    from irlang.diff.substitute import Substitution

_SHOWN = 12  # rows of the table


@click.command()
@options.file
@options.targets
@options.given
@click.option(
    "--bind", multiple=True, metavar="N=4", help="A symbolic size; or CALL=TARGET, where it runs."
)
@options.model
@options.seed
@click.option("--grad", is_flag=True, help="Judge the calls of the gradient as well.")
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
    profile: str | None,
    form: str,
) -> int:
    """Say which operator makes targets disagree, by its own inputs and by substitution."""
    from irlang.commands.cases import asks_gradients, load_case, targets_for
    from irlang.commands.loading import load_profile
    from irlang.diff.runner import Session

    sizes = [text for text in bind if text.partition("=")[2].isdigit()]
    calls = [text for text in bind if text not in sizes]
    grad = grad or asks_gradients(file)
    case = load_case(file, given, sizes, model, seed, grad)
    names = targets_for(file, targets)
    with Session(names, accepted=load_profile(profile)) as session:
        session.versions()
        outcome = session.compare([case], grad=grad)[0]
        if outcome.refusal is not None:
            raise outcome.refusal
        if calls:
            return _mixed(session, case, calls, grad, form)
        found = [_one(session, case, target, grad) for target in session.targets]
    if form == "json":
        click.echo(json.dumps({"targets": found}))
    else:
        for one in found:
            _show(one)
    return int(any(one["verdict"] != "agrees" for one in found))


def _mixed(session: Session, case: Case, calls: list[str], grad: bool, form: str) -> int:
    """One program whose calls, and with `grad` their gradients, run where they are bound to."""
    from irlang.diff.substitute import bound, mixed
    from irlang.diff.verdict import FINDINGS, gravest

    binding = bound(case, session, calls, session.targets[0])
    found = mixed(session, case, binding, grad)
    verdict = gravest([one.verdict for one in found])
    if form == "json":
        results = [one.as_json() for one in found]
        click.echo(json.dumps({"binding": binding, "verdict": verdict, "results": results}))
    else:
        click.echo(f"{verdict}: " + ", ".join(f"{name} on {to}" for name, to in binding.items()))
        for one in found:
            off = "" if one.max_error is None else f"  off by {one.max_error:.3g}"
            click.echo(
                f"  {one.name:<16} {one.verdict:<12}{off}{one.message and f'  {one.message}'}"
            )
    return int(verdict in FINDINGS)


def _one(session: Session, case: Case, target: str, grad: bool) -> dict[str, Any]:
    """What both ways say of a target."""
    from irlang.diff.localise import fused, localise
    from irlang.diff.reduce import is_finding, symptom
    from irlang.diff.stages import Calls, judge_gradients
    from irlang.diff.substitute import substitute
    from irlang.diff.verdict import worst

    alone = session.only(target)
    outcome = alone.compare([case], grad=grad)[0]
    seen = symptom(case, outcome, target)
    culprit = localise(alone, case, target)
    if (not is_finding(seen) or seen.backward) and culprit is None:
        found: dict[str, Any] = {"target": target, "verdict": "agrees"}
    else:
        verdict = worst(outcome.verdicts[target]) if culprit is None else culprit.verdict
        told = seen.verdict if is_finding(seen) else verdict.verdict
        fusion = fused(alone, case, target) if culprit is None else None
        replaced = substitute(alone, case, target, grad)
        found = {
            "target": target, "verdict": told, "result": verdict.as_json(),
            **_by_inputs(case, culprit, fusion), **_by_substitution(replaced),
        }  # fmt: skip
        found["agree"] = (found["call"] == found["substitution"]["call"]) if found["call"] else None
        found["others"] = {
            t: symptom(case, o, t).verdict
            for t in session.targets if t != target
            for o in session.only(t).compare([case])
        }  # fmt: skip
    if grad:
        calls = Calls()
        judge_gradients(alone, case, target, calls)
        found["gradient"] = calls.start.as_json() if calls.start else None
        if found["verdict"] == "agrees" and (calls.start or is_finding(seen)):
            found["verdict"] = calls.start.verdict.verdict if calls.start else seen.verdict
            found |= _by_substitution(substitute(alone, case, target, grad))
            call = calls.start.node.name if calls.start and calls.start.node else None
            found |= {"call": call, "agree": call == found["substitution"]["call"]}
    return found


def _by_inputs(case: Case, culprit: Culprit | None, fusion: Fusion | None) -> dict[str, Any]:
    """Which call it is. Where there is one alone it is that, though it gives no values, or shows
    others where further results of it are asked for.
    """
    nodes = [culprit.node] if culprit is not None else case.graph.nodes
    if len(nodes) == 1:
        node = nodes[0]
        return {"call": node.name, "operator": node.op.name, "line": node.span.line,
                "hidden": []}  # fmt: skip
    if fusion is not None:
        names = [node.op.name for node in fusion.nodes]
        return {"call": None, "operator": " + ".join(names), "line": None,
                "hidden": list(fusion.hidden)}  # fmt: skip
    return {"call": None, "operator": None, "line": None, "hidden": []}


def _by_substitution(made: Substitution) -> dict[str, Any]:
    rows = [{"call": row.node.name, "operator": row.node.op.name, "change": row.change,
             "gradients": row.slope, "verdict": row.verdict} for row in made.table]  # fmt: skip
    return {"substitution": {
        "whole": made.whole, "call": made.culprit.name if made.culprit else None,
        "vanishes": made.vanishes, "stays": made.stays, "table": rows,
    }}  # fmt: skip


def _show(found: dict[str, Any]) -> None:
    target, result = found["target"], found.get("result")
    if result is None:
        _in_gradient(found)
        return
    named = found["operator"] or "no operator by itself"
    head = f"{found['verdict']}: {target}, {named}"
    if found["call"]:
        head = f"{found['verdict']}: {target}, operator `{found['call']}` ({named})"
        head += f", line {found['line']}" if found["line"] else ""
    click.secho(head, bold=True)
    if result["expected"] is not None:
        place = "".join(f"[{i}]" for i in result["index"] or ())
        click.echo(f"  at        {result['name']}{place}")
        click.echo(f"  expected  {result['expected']}  (± {result['radius']:.3g})")
        click.echo(f"  got       {result['got']}")
    elif result["message"]:
        click.echo(f"  said      {result['message'].splitlines()[0][:200]}")
    if found["hidden"]:
        hidden = ", ".join(f"`{name}`" for name in found["hidden"])
        click.echo(f"  exposing any of {hidden} makes it vanish: {named} are fused")
    _table(found["substitution"], found)
    agree = [t for t, verdict in found["others"].items() if verdict in ("agrees", "rounding")]
    if agree:
        click.echo(f"  {', '.join(agree)} agree{'s' * (len(agree) == 1)} with the oracle")
    _gradient(found)


def _in_gradient(found: dict[str, Any]) -> None:
    """What is said where every value agrees: the gradients may not."""
    values = f"{found['target']} agrees with the oracle"
    if found["verdict"] == "agrees":
        click.secho(values, bold=True)
        _gradient(found)
        return
    click.secho(f"{values} in its values, and not in its gradients", bold=True)
    _gradient(found)
    _table(found["substitution"], found)


def _table(made: dict[str, Any], found: dict[str, Any]) -> None:
    if made["call"] is None:
        why = "no single operator is to blame"
        if found.get("call"):  # seen by its own radius alone
            why = "the change is inside the radius of the results"
        click.echo(f"  substitution: call by call the program is `{made['whole']}`; {why}")
        if not found.get("call"):
            return
    click.echo("  substitution, one call at a time by the oracle:")
    width = max(len(row["call"]) + len(row["operator"]) + 3 for row in made["table"][:_SHOWN])
    slopes = "gradient" in found
    extra = "  of gradients" if slopes else ""
    click.echo(f"    {'replaced'.ljust(width)}  mean change{extra}  then")
    for row in made["table"][:_SHOWN]:
        name = f"{row['call']} ({row['operator']})".ljust(width)
        slope = f"  {row['gradients']:12.3g}" if slopes else ""
        click.echo(f"    {name}  {row['change']:11.3g}{slope}  {row['verdict']}")
    if len(made["table"]) > _SHOWN:
        click.echo(f"    … {len(made['table']) - _SHOWN} more")
    if made["call"] is None:
        return
    does = ("removes it" if made["vanishes"] else "does not remove it",
            "keeps it" if made["stays"] else "does not keep it")  # fmt: skip
    click.echo(
        f"    replacing `{made['call']}` alone {does[0]}; keeping `{made['call']}` alone {does[1]}"
    )
    if found["agree"] is not None:
        blamed = f"the two ways do not agree: own inputs blame `{found['call']}`"
        click.echo("    both ways agree" if found["agree"] else f"    {blamed}")


def _gradient(found: dict[str, Any]) -> None:
    start = found.get("gradient")
    if start:
        click.echo(f"  gradient: {start['verdict']}, starts at {start['operator']}"
                   f" (`{start['result']}`)")  # fmt: skip
    elif "gradient" in found:
        click.echo("  gradient: every call of it agrees, as far as the target shows them")
