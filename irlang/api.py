"""The Python interface: a model from a file or a text, run, compared and lowered.

import irlang

model = irlang.load("lenet.nnir", bind={"N": 4})
model.run()["probs"]            # the oracle's value, a NumPy array
model.diff(["torch", "tf"])     # one verdict an output and target
model.lower("torch").code       # the text of the program
print(model.analyze())          # where NaN and infinity can arise

irlang.import_model("lenet.onnx")   # the same of a model of another system
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang import ast
from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.dtypes import DTYPES
from irlang.gen.lines import drawn
from irlang.graph import Graph
from irlang.interp.draws import open_values
from irlang.interp.program import run
from irlang.interp.shape import check as check_file
from irlang.interp.values import initial_values, require_memory
from irlang.parser import parse
from irlang.parser.printer import print_statement
from irlang.parser.source import read_source

if TYPE_CHECKING:
    from irlang.analysis.verdict import Verdicts
    from irlang.diff.verdict import Verdict
    from irlang.docs.gradients import Gradient
    from irlang.lower.lower import Lowered

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model.

    text: what it was read from. file: where that was. names: what an imported model calls its
    inputs, parameters and calls, by their names in the text. left_out: what of it is not here, as
    it has no translation. spare: its inputs and parameters on which nothing hangs that is here.
    """

    graph: Graph
    catalog: Catalog
    text: str
    file: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[Diagnostic, ...] = ()
    spare: frozenset[str] = frozenset()

    def values(self, given: Mapping[str, Array] | None = None, seed: int = 0) -> dict[str, Array]:
        """Values of inputs, parameters and what is left open: given, drawn or initialised."""
        values, params = drawn(self.graph, self.catalog, seed, given)
        return {**values, **params, **open_values(self.graph, seed, self.catalog)}

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

        values, params = drawn(self.graph, self.catalog, seed, given)
        case = Case(self.graph, values, params, self.catalog)
        with Session(targets) as session:
            outcome = session.compare([case])[0]
        if outcome.refusal is not None:
            raise outcome.refusal
        return [verdict for found in outcome.verdicts.values() for verdict in found]

    def analyze(
        self,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        *,
        gradient: bool | None = None,
        domain: str = "relations",
        flush: bool = False,
        seconds: float = 6.0,
        seed: int = 0,
    ) -> Verdicts:
        """Where NaN and infinity can arise: `irlang analyze`, see docs/analysis.md.

        ranges: of inputs and parameters, before those that the text declares. gradient: whether
        the gradients are analysed as well; those of a text with a loss are unless it is said.
        flush: whether numbers below the smallest normal one may be taken for 0. seconds: that the
        search for witnesses may take. Raises `usage.range` where no name is there.
        """
        from irlang.analysis.confirm import Frameworks
        from irlang.analysis.subject import subject
        from irlang.analysis.verdict import verdicts

        ready = subject(
            self.graph, self.catalog, ranges=ranges, seed=seed, file=self.file, text=self.text,
            names=self.names, spare=self.spare, left_out=self.left_out, flush=flush,
        )  # fmt: skip
        gradient = ready.trains if gradient is None else gradient
        with Frameworks() as frameworks:
            return verdicts(
                ready, frameworks, gradient=gradient, domain=domain, seconds=seconds, seed=seed
            )

    def lower(self, target: str, seed: int = 0) -> Lowered:
        """The program of a target, with the parameters' values for this seed."""
        from irlang.lower.lower import lower

        return lower(self.graph, target, self.catalog, initial_values(self.graph, seed))

    def _repr_html_(self) -> str:
        """The text, and every call with the type of its result, for a notebook."""
        from irlang.docs.page import fragment
        from irlang.mathematics import mathml
        from irlang.mathematics.model import model

        shown = f"<details><summary>{html.escape(self.graph.name)}</summary>"
        shown += f"<pre>{html.escape(self.text)}</pre></details>"
        return fragment(shown + mathml.blocks(model(self.graph)))


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that a catalogue defines."""

    definition: ast.Op
    catalog: Catalog

    @property
    def name(self) -> str:
        """What it is called."""
        return self.definition.name

    @property
    def text(self) -> str:
        """Its definition in the language."""
        return print_statement(self.definition)

    def facts(self) -> dict[str, Any]:
        """All that is known of it, as `irlang ops NAME --format json` shows it."""
        from irlang.docs.facts import describe

        return describe(self.definition, self.catalog)

    def gradient(self) -> Gradient:
        """The equations of its gradient, for one call. Raises `InvalidInput` where it has none."""
        from irlang.docs.gradients import gradient

        return gradient(self.definition, self.catalog)

    def __str__(self) -> str:
        from irlang.mathematics import terminal
        from irlang.mathematics.definition import mathematics

        return (
            f"{self.name}: {self.definition.doc}\n\n{terminal.text(mathematics(self.definition))}"
        )

    def _repr_html_(self) -> str:
        """The definition's doc, mathematics and text, for a notebook."""
        from irlang.docs.page import fragment, marked
        from irlang.mathematics import mathml
        from irlang.mathematics.definition import mathematics

        shown = f"<p><b>{html.escape(self.name)}</b>: {marked(self.definition.doc)}</p>"
        shown += mathml.blocks(mathematics(self.definition))
        shown += "<details><summary>definition</summary>"
        return fragment(f"{shown}<pre>{html.escape(self.text)}</pre></details>")


def op(name: str, text: str = "") -> Operator:
    """The operator of that name, built-in or defined in `text`, the contents of a file.

    Raises `usage.op`, with names that look like it, where there is none.
    """
    catalog = builtin().with_file(parse(text, "")) if text else builtin()
    found = catalog.op(name)
    if found is None:
        near = ", ".join(catalog.nearest(name))
        help_ = f"did you mean {near}?" if near else ""
        raise fail("usage.op", f"there is no operator `{name}`", help=help_)
    return Operator(found, catalog)


def loads(text: str, bind: Mapping[str, int] | None = None, file: str = "") -> Model:
    """The first model of a text. Raises `InvalidInput` with every fault."""
    checked = check_file(parse(text, file), builtin(), dict(bind or {}))
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if errors:
        raise InvalidInput(*errors)
    if not checked.graphs:
        raise fail("file.model", "there is no model")
    require_memory(checked.graphs[0])
    return Model(checked.graphs[0], checked.catalog, text, file)


def load(path: str | Path, bind: Mapping[str, int] | None = None) -> Model:
    """The first model of a file."""
    return loads(read_source(Path(path)), bind, str(path))


def import_model(
    path: str | Path,
    bind: Mapping[str, int | Sequence[int]] | None = None,
    constants: Mapping[str, Array] | None = None,
    *,
    partly: bool = False,
) -> Model:
    """A model of another system: `.onnx`, `.keras`, `.h5`, `.pt2` or `.pb`.

    bind: numbers for sizes that the model leaves open; those of ONNX and Keras models that are not
    bound stay names in `text`, and are 2 in `graph`. So do those of TensorFlow graphs, where a
    variable of unknown shape needs all of it. constants: inputs of an ONNX model that are fixed to
    values. partly: whether operators without a translation may be left out, with what is computed
    from them; what nothing goes on to use is then a result (ONNX, TensorFlow). Raises
    `InvalidInput` with everything that cannot be translated.
    """
    from irlang.importers.files import read

    made = read(Path(path), "parameters", bind, constants, partly=partly)
    model = loads(made.text)
    made.fill(model.graph)
    names = made.names(model.graph)
    return replace(model, names=names, left_out=made.left_out, spare=made.spare)


def analyze(
    model: Model | str | Path,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    *,
    gradient: bool | None = None,
    domain: str = "relations",
    flush: bool = False,
    seconds: float = 6.0,
    seed: int = 0,
) -> Verdicts:
    """Where NaN and infinity can arise in a model, or a file of one; see `Model.analyze`.

    Of a file of another system, what has no translation is left out (`Model.left_out`).
    """
    if not isinstance(model, Model):
        from irlang.importers.files import READERS

        imported = Path(model).suffix.lower() in READERS
        model = import_model(model, partly=True) if imported else load(model)
    return model.analyze(
        ranges, gradient=gradient, domain=domain, flush=flush, seconds=seconds, seed=seed
    )


def check(text: str, file: str = "") -> tuple[Diagnostic, ...]:
    """Every fault of a text."""
    try:
        return check_file(parse(text, file), builtin()).diagnostics
    except InvalidInput as error:
        return error.diagnostics
