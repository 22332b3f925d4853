"""ONNX models as text: what `irlang import` does with a `.onnx` file.

A size that the model leaves open becomes a name of the signature. The walk is done for three
examples of every open size; where the texts are the same, nothing in them hangs on the example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.importers import onnx_file
from irlang.importers.onnx_graph import Walk
from irlang.importers.open_sizes import examples, settle
from irlang.importers.partly import left_out, may_be_left_out, results
from irlang.importers.writer import Array, Writer


@dataclass(frozen=True, slots=True)
class Imported:
    """A model as text. writer: has the parameters that belong beside it.

    inputs, outputs: names in the text by those in the model; outputs in the model's order.
    spare: inputs and parameters that nothing reads; all of them, where something is left out.
    """

    text: str
    writer: Writer
    inputs: dict[str, str]
    outputs: tuple[str, ...]
    spare: frozenset[str] = frozenset()
    left_out: tuple[Diagnostic, ...] = ()


class Refused(InvalidInput):
    """What a model has that is not supported. needed: inputs whose values would help."""

    def __init__(self, *diagnostics: Any, needed: frozenset[str] = frozenset()) -> None:
        super().__init__(*diagnostics)
        self.needed = needed


def load(
    path: Path,
    data: str,
    bind: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
    *,
    partly: bool = False,
) -> Imported:
    """A file as text; see `translate`. Raises `InvalidInput` where it is no ONNX model."""
    return translate(onnx_file.read(path), path.parent, data, bind, constants, partly=partly)


def translate(
    model: Any,
    folder: Path | None,
    data: str,
    bind: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
    catalog: Catalog | None = None,
    *,
    partly: bool = False,
) -> Imported:
    """A model as text.

    folder: where external data may lie. data: the name of the file of parameters beside the text.
    bind: numbers for sizes that the model leaves open. constants: inputs that are fixed to values.
    partly: whether what cannot be translated may be left out (`irlang.importers.partly`).
    Raises `Refused` with everything that cannot be translated, `InvalidInput` for a broken file.
    """
    bound = dict(bind or {})
    open_ = _open_sizes(model, bound, constants or {})
    needed: set[str] = set()

    def written(sizes: Mapping[str, int], rest: bool) -> Imported | list[Diagnostic]:
        writer = Writer(catalog or builtin(), data)
        walk = Walk(model, folder, writer, {**bound, **sizes}, constants or {})
        outputs = walk.run()
        missing: tuple[Diagnostic, ...] = ()
        if rest and may_be_left_out(walk.problems):
            outputs = results(writer, outputs)
            missing = left_out(walk.problems, walk.missing)
        if walk.problems and not (missing and outputs):
            needed.update(walk.needed)
            return walk.problems
        text = _text(walk, model, outputs)
        spare = _spare(model.graph, every=bool(missing))
        return Imported(text, writer, walk.inputs, tuple(outputs), spare, missing)

    made = settle(open_, examples(open_), lambda sizes: written(sizes, False))
    if partly and not isinstance(made, Imported) and may_be_left_out(made):
        made = settle(open_, examples(open_), lambda sizes: written(sizes, True))
    if isinstance(made, Imported):
        return made
    raise Refused(*made, needed=frozenset(needed))


def _spare(graph: Any, *, every: bool) -> frozenset[str]:
    """The inputs and parameters of a graph that nothing reads, or all of them."""
    given = frozenset(i.name for i in (*graph.input, *graph.initializer))
    if every:
        return given
    read = {item.name for item in graph.output}
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            read.update(node.input)
            waiting += [item.g for item in node.attribute if item.HasField("g")]
    return given - read


def _text(walk: Walk, model: Any, outputs: list[str]) -> str:
    title = re.sub(r"\W+", "_", model.graph.name, flags=re.ASCII).strip("_") or "imported"
    title = f"model_{title}" if title[0].isdigit() else title
    doc = "".join(c if c.isprintable() and c not in '"\\' else " " for c in model.producer_name)
    by = f", made by {doc.strip()[:60]}" if doc.strip() else ""
    return walk.writer.text(walk.writer.name(title), f"An ONNX model{by}.", outputs)


def _open_sizes(model: Any, bind: dict[str, int], constants: Mapping[str, Array]) -> list[str]:
    """The names of the sizes that inputs leave open."""
    given = {item.name for item in model.graph.initializer} | set(constants)
    found: dict[str, None] = {}
    for item in model.graph.input:
        if item.name not in given:
            for axis, dim in enumerate(item.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value"):
                    found[dim.dim_param or f"{item.name}_{axis}"] = None
    unknown = set(bind) - set(found)
    if unknown:
        known = ", ".join(found) or "none"
        raise fail(
            "usage.bind",
            f"`{min(unknown)}` is not a size that the model leaves open",
            help=f"it has {known}",
        )
    return [name for name in found if name not in bind]
