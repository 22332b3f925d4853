"""The Python interface: a model from a file or a text, run, compared and lowered.

import irlang

model = irlang.load("lenet.nnir", bind={"N": 4})
model.run()["probs"]            # the oracle's value, a NumPy array
model.diff(["torch", "tf"])     # one verdict an output and target
model.lower("torch").code       # the text of the program

irlang.import_model("lenet.onnx")   # the same of a model of another system
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Initial
from irlang.interp.program import run
from irlang.interp.shape import check as check_file
from irlang.interp.values import initial_values, inputs, require_memory
from irlang.parser import parse
from irlang.parser.source import read_source

if TYPE_CHECKING:
    from irlang.diff.verdict import Verdict
    from irlang.lower.lower import Lowered

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model. text: what it was read from."""

    graph: Graph
    catalog: Catalog
    text: str

    def values(self, given: Mapping[str, Array] | None = None, seed: int = 0) -> dict[str, Array]:
        """Values of all inputs and parameters: those given, the others drawn or initialised."""
        return {**inputs(self.graph, seed, given), **initial_values(self.graph, seed)}

    def run(self, given: Mapping[str, Array] | None = None, seed: int = 0) -> dict[str, Array]:
        """The oracle's outputs by name, rounded to their own types.

        Raises `InvalidInput` where an input does not fit or a precondition on values fails.
        """
        wanted = set(self.graph.outputs.values())
        found = run(self.graph, self.values(given, seed), self.catalog, keep=wanted)
        with np.errstate(over="ignore"):
            return {
                name: found[value].astype(DTYPES[self.graph.values[value].dtype].numpy)
                for name, value in self.graph.outputs.items()
            }

    def diff(
        self, targets: Sequence[str], given: Mapping[str, Array] | None = None, seed: int = 0
    ) -> list[Verdict]:
        """Every output judged on every target."""
        from irlang.diff.runner import Case, Session

        case = Case(
            self.graph,
            inputs(self.graph, seed, given),
            initial_values(self.graph, seed),
            self.catalog,
        )
        with Session(targets) as session:
            outcome = session.compare([case])[0]
        if outcome.refusal is not None:
            raise outcome.refusal
        return [verdict for found in outcome.verdicts.values() for verdict in found]

    def lower(self, target: str, seed: int = 0) -> Lowered:
        """The program of a target, with the parameters' values for this seed."""
        from irlang.lower.lower import lower

        return lower(self.graph, target, self.catalog, initial_values(self.graph, seed))

    def _repr_html_(self) -> str:
        """The text and the types of the results, for a notebook."""
        results = ", ".join(
            f"{name}: {self.graph.values[value]}" for name, value in self.graph.outputs.items()
        )
        shown = html.escape(self.text)
        return f"<pre>{shown}</pre><p>{html.escape(self.graph.name)} → {html.escape(results)}</p>"


def loads(text: str, bind: Mapping[str, int] | None = None, file: str = "") -> Model:
    """The first model of a text. Raises `InvalidInput` with every fault."""
    checked = check_file(parse(text, file), builtin(), dict(bind or {}))
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if errors:
        raise InvalidInput(*errors)
    if not checked.graphs:
        raise fail("file.model", "there is no model")
    require_memory(checked.graphs[0])
    return Model(checked.graphs[0], checked.catalog, text)


def load(path: str | Path, bind: Mapping[str, int] | None = None) -> Model:
    """The first model of a file."""
    return loads(read_source(Path(path)), bind, str(path))


def import_model(
    path: str | Path,
    bind: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Model:
    """A model of another system: `.onnx`, `.keras`, `.h5` or `.pt2`.

    bind: numbers for sizes that the model leaves open; those of ONNX and Keras models that are not
    bound stay names in `text`, and are 2 in `graph`. constants: inputs of an ONNX model that are
    fixed to values. Raises `InvalidInput` with everything that cannot be translated.
    """
    from irlang.importers.files import read

    made = read(Path(path), "parameters", bind, constants)
    model = loads(made.text)
    for param in model.graph.params.values():
        if param.initial is not None and param.initial.kind == "data":
            param.initial = Initial("array", (made.writer.tensors[param.initial.args[1]],))
    return model


def check(text: str, file: str = "") -> tuple[Diagnostic, ...]:
    """Every fault of a text."""
    try:
        return check_file(parse(text, file), builtin()).diagnostics
    except InvalidInput as error:
        return error.diagnostics
