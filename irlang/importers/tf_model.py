"""TensorFlow graphs as text: what `irlang import` does with a `.pb` file.

A size that an input leaves open becomes a name of the signature. Graphs leave the size of the batch
open in every input: where sizes that are all different do not fit, first axes are taken as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.importers import tf_functions
from irlang.importers.open_sizes import Example, examples, settle
from irlang.importers.partly import left_out, may_be_left_out
from irlang.importers.partly import results as ends
from irlang.importers.sizes import Dim
from irlang.importers.tf_declared import captured, declared, size_name, unranked
from irlang.importers.tf_file import NodeDef
from irlang.importers.tf_graph import Walk
from irlang.importers.tf_select import INPUTS, VARIABLES, live, results
from irlang.importers.value import Unsupported
from irlang.importers.writer import Writer

_MOST_NAMED = 8  # results that are left out, in the text


@dataclass(frozen=True, slots=True)
class Imported:
    """A model as text. writer: has the parameters that belong beside it.

    inputs: names in the text by those in the graph. outputs: names in the text. spare: inputs and
    variables that no result hangs on; all of them, where something is left out. left_out: what is
    not translated, where that was allowed.
    """

    text: str
    writer: Writer
    inputs: dict[str, str]
    outputs: tuple[str, ...]
    spare: frozenset[str] = frozenset()
    left_out: tuple[Diagnostic, ...] = ()


def load(
    path: Path, data: str, bind: Mapping[str, int] | None = None, *, partly: bool = False
) -> Imported:
    """A file as text; see `translate`. Raises `InvalidInput` where it is no graph."""
    return translate(tf_functions.read(path), path.stem, data, bind, partly=partly)


def translate(
    nodes: list[NodeDef],
    title: str,
    data: str,
    bind: Mapping[str, int] | None = None,
    catalog: Catalog | None = None,
    *,
    partly: bool = False,
) -> Imported:
    """A graph as text.

    data: the name of the file of parameters beside the text. bind: numbers for sizes that the graph
    leaves open. partly: whether some may be left out (`irlang.importers.partly`). Raises
    `InvalidInput` with everything that cannot be translated.
    """
    bound = dict(bind or {})
    nodes = captured(nodes)
    open_ = _open_sizes(nodes, bound)

    def rest(sizes: Mapping[str, int]) -> Imported | list[Diagnostic]:
        """What is left where a part is left out."""
        return _written(nodes, title, catalog or builtin(), data, {**bound, **sizes}, partly=True)

    def attempt(sizes: Mapping[str, int]) -> Imported | list[Diagnostic]:
        made = _written(nodes, title, catalog or builtin(), data, {**bound, **sizes})
        if isinstance(made, Imported):
            return made
        # what is beside the results is seldom what the graph is for: it is left out for a fault
        less = _written(nodes, title, catalog or builtin(), data, {**bound, **sizes}, beside=False)
        return less if isinstance(less, Imported) else made

    made = settle(open_, _rounds(_alike(open_, attempt)), attempt)
    if partly and not isinstance(made, Imported) and may_be_left_out(made):
        made = settle(open_, _rounds(_alike(open_, rest)), rest)
    if isinstance(made, Imported):
        return made
    raise InvalidInput(*made, *_unranked(nodes, bound))


def _written(
    nodes: list[NodeDef],
    title: str,
    catalog: Catalog,
    data: str,
    sizes: Mapping[str, int],
    *,
    beside: bool = True,
    partly: bool = False,
) -> Imported | list[Diagnostic]:
    """The graph as text for some sizes, or what is wrong with it."""
    writer = Writer(catalog, data)
    walk = Walk(nodes, writer, sizes, beside=beside)
    outputs = walk.run()
    missing: tuple[Diagnostic, ...] = ()
    if partly and may_be_left_out(walk.problems):
        outputs = ends(writer, outputs)
        missing = left_out(walk.problems, walk.missing)
    if walk.problems and not (missing and outputs):
        return walk.problems
    name = writer.name(f"model_{title}" if title[:1].isdigit() else title)
    doc = "A TensorFlow graph."
    left = [] if beside else sorted(set(results(nodes)) - set(walk.wanted))
    if left:
        doc += f"\n\nBeside the results, and not translated: {', '.join(left[:_MOST_NAMED])}"
        doc += ", …" if len(left) > _MOST_NAMED else "."
    text = writer.text(name, doc, outputs)
    free = {node.name for node in nodes if node.op in INPUTS | VARIABLES}
    spare = frozenset(free if missing else free - walk.live)
    return Imported(text, writer, walk.inputs, tuple(outputs), spare, missing)


def _unranked(nodes: list[NodeDef], bound: Mapping[str, int]) -> list[Diagnostic]:
    """What to say beside other faults of inputs without a rank, which are often their cause."""
    used = live({node.name: node for node in nodes}, results(nodes))
    return [
        Diagnostic(
            "file.shape",
            f"the input `{node.name}` declares no shape, and was taken for a single number",
            help=f"say its shape, like --bind {size_name(node.name)}=2,3",
        )
        for node in nodes
        if node.name in used and unranked(node, bound)
    ]


def _open_sizes(nodes: list[NodeDef], bind: dict[str, int]) -> list[str]:
    """The names of the sizes that inputs leave open."""
    found: dict[str, None] = {}

    def size(name: str) -> int:
        found[name] = None
        return 1

    used = live({node.name: node for node in nodes}, results(nodes))
    shapes: set[str] = set()
    for node in nodes:
        if node.name in used and node.op in INPUTS | VARIABLES:
            shapes.add(size_name(node.name))
            with suppress(Unsupported):  # which the walk will tell
                if node.op in INPUTS:
                    declared(node, size, bind)
    unknown = {name for name in bind if name not in found and name.partition("[")[0] not in shapes}
    if unknown:
        known = ", ".join(found) or "none"
        raise fail(
            "usage.bind",
            f"`{min(unknown)}` is not a size that the graph leaves open",
            help=f"it has {known}",
        )
    return [name for name in found if name not in bind]


Alike = Mapping[str, str]  # of every open size the one that stands for it


def _alike(names: list[str], attempt: Callable[[Example], Imported | list[Diagnostic]]) -> Alike:
    """Which sizes are one: none, where that fits; else as few of the first axes as may be."""

    def fits(alike: Alike) -> bool:
        return isinstance(attempt(next(_rounds(alike))[0]), Imported)

    apart = {name: name for name in names}
    leading = [name for name in names if name.endswith("_0")]
    together = {**apart, **dict.fromkeys(leading, leading[0])} if leading else apart
    if len(leading) < 2 or fits(apart) or not fits(together):
        return apart
    for name in leading[1:]:
        if fits({**together, name: name}):
            together[name] = name
    return together


def _rounds(alike: Alike) -> Iterator[list[Example]]:
    """What importers try, for sizes some of which are one."""
    kept = [name for name, other in alike.items() if name == other]
    for round_ in examples(kept):
        yield [
            {name: Dim(sizes[other], {(other,): 1}) for name, other in alike.items()}
            for sizes in round_
        ]
