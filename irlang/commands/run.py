"""`irlang run`: a model's results, by the oracle or on a target."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irlang.commands import options

if TYPE_CHECKING:
    import numpy as np

    from irlang.catalog import Catalog
    from irlang.graph import Graph

_LIMIT = 1000  # elements of a result that a terminal is shown


@click.command()
@options.file
@click.option("--on", "target", metavar="TARGET", help="Run on a target instead of the oracle.")
@options.given
@options.bind
@options.model
@options.seed
@click.option("--grad", is_flag=True, help="Gradients of the loss as well.")
@click.option("--out", type=click.Path(path_type=Path), help="Write one .npy file a result.")
@options.text_or_json
def command(
    file: str,
    target: str | None,
    given: tuple[str, ...],
    bind: tuple[str, ...],
    model: str | None,
    seed: int,
    grad: bool,
    out: Path | None,
    form: str,
) -> int:
    """Run a model: inputs are drawn from their ranges unless they are given."""
    from irlang.commands.cases import require_names
    from irlang.commands.loading import load_inputs, load_model
    from irlang.gen.lines import drawn
    from irlang.interp.draws import open_values

    arrays = load_inputs(given)
    graph, catalog = load_model(file, bind, model, {n: a.shape for n, a in arrays.items()})
    if grad:
        require_names(graph)
    values, params = drawn(graph, catalog, seed, arrays)
    values |= {**params, **open_values(graph, seed, catalog)}
    results = (
        _on_target(graph, catalog, values, target, grad, file)
        if target
        else _by_oracle(graph, catalog, values, grad)
    )
    if out is not None:
        _save(results, out)
    if form == "json":
        click.echo(
            json.dumps({"outputs": {name: as_json(array) for name, array in results.items()}})
        )
    elif out is None:
        _show(results)
    return 0


def _by_oracle(
    graph: Graph, catalog: Catalog, values: dict[str, Any], grad: bool
) -> dict[str, Any]:
    import numpy as np

    from irlang.dtypes import DTYPES
    from irlang.interp import reference
    from irlang.interp.program import run

    wanted = {*graph.outputs.values(), *([graph.loss] if graph.loss else [])}
    found = run(graph, values, catalog, reference.evaluate, keep=wanted)
    with np.errstate(over="ignore"):
        results = {
            name: found[value].astype(DTYPES[graph.values[value].dtype].numpy)
            for name, value in graph.outputs.items()
        }
    if graph.loss and graph.loss not in graph.outputs.values():
        results["loss"] = found[graph.loss]
    if grad:
        from irlang.graph import gradient_by
        from irlang.interp.gradient import gradients

        slopes = gradients(graph, values, catalog)
        results.update({gradient_by(name): array for name, array in slopes.items()})
    return results


def _on_target(
    graph: Graph, catalog: Catalog, values: dict[str, Any], target: str, grad: bool, file: str
) -> dict[str, Any]:
    from irlang.diagnostics import fail
    from irlang.diff.reduce_files import manner_of
    from irlang.diff.runner import Case, Session, program
    from irlang.graph import gradient_by
    from irlang.lower.lower import lower

    params = {name: values[name] for name in graph.params}
    case = Case(graph, {name: values[name] for name in graph.inputs}, params, catalog)
    with Session([target]) as session:
        session.versions()
        manner = manner_of(Path(file))
        lowered = lower(graph, target, catalog, params, grad=grad, manner=manner)
        if lowered.unsupported:
            raise fail("lower.unsupported", f"{target}: {lowered.unsupported[0]}")
        if grad and not lowered.gradients:
            raise fail("lower.gradient", f"{target} gives no gradient of this model")
        sent = program(lowered, case, grad)
        (result,) = session.workers[target].submit([sent])
    if result.status != "ok":
        raise fail(f"run.{result.status}", f"{target}: {result.error}")
    slopes = {gradient_by(name): array for name, array in result.gradients.items()}
    return {**{name: result.outputs[name] for name in graph.outputs}, **slopes}


def as_json(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Type, shape and nested values; NaN and infinities as text, since JSON has neither."""
    import numpy as np

    from irlang.dtypes import DTYPES

    name = next((n for n, d in DTYPES.items() if d.numpy == array.dtype), str(array.dtype))
    wide = array.astype(np.float64) if name in ("bf16", "f16", "f32", "f64") else array
    return {"dtype": name, "shape": list(array.shape), "values": _plain(wide.tolist())}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value


def _save(results: dict[str, Any], out: Path) -> None:
    import numpy as np

    from irlang.diagnostics import fail

    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, array in results.items():
            stored = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
            np.save(out / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.npy", stored)
    except OSError as error:
        raise fail("file.write", f"{out} cannot be written: {error.strerror}") from None


def _show(results: dict[str, Any]) -> None:
    import numpy as np

    for name, array in results.items():
        described = as_json(array[:0] if array.ndim else array)
        click.echo(f"{name}: {described['dtype']}{list(array.shape)}")
        shown = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        click.echo(np.array2string(shown, threshold=_LIMIT, separator=", "))
