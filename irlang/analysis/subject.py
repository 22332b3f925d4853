"""What is analysed: a model whose free values all have a range, and the names they came with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from irlang.adjoint_graph import free_prefix
from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.dtypes import DTYPES, integer_range
from irlang.graph import Graph, Param, Port
from irlang.interp.shape import check
from irlang.interp.values import DEFAULT_RANGE, Array, initial_values
from irlang.parser import parse

Ends = tuple[float, float]
_LONG = 40  # a call of so many letters is told as it stands


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to be analysed.

    source: as it was checked. graph: what may vary is an input, each with its range; what has one
    value is a parameter. fixed: these values. given: ranges that were given beside the text.
    file and text: what it was read from, the text being what an importer wrote where `file` is a
    model of another system. names: what calls and values were called there. assumed: the inputs
    and parameters whose range nothing states. endless: values that may be infinite because the
    model says so: what a call makes of their infinities is its own doing only where it is NaN.
    left_out: what of the model is not here, as it could not be imported. flush: whether numbers
    below the smallest normal one may be taken for 0. unmet: names that were given a range and are
    no input or parameter.
    """

    source: Graph
    graph: Graph
    catalog: Catalog
    fixed: dict[str, Array]
    given: Mapping[str, Ends] = field(default_factory=dict)
    seed: int = 0
    file: str = ""
    text: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    endless: frozenset[str] = frozenset()
    left_out: tuple[Diagnostic, ...] = ()
    flush: bool = False
    unmet: tuple[str, ...] = ()

    def called(self, name: str) -> str:
        """What a call or a value was called in the model that was imported."""
        return self.names.get(name, name)

    def written(self, name: str) -> str:
        """What a reader knows a value by: the call itself where it stands inside another and has
        no name in the text, or in the model that was imported.
        """
        node = next((one for one in self.source.nodes if name in one.outputs), None)
        if node is None or name in self.names or not self.text or node.span.line < 1:
            return self.called(name)
        first, last = node.span.line - 1, node.span.end_line - 1
        line = self.text.splitlines()[first]
        call = line[node.span.column - 1 : node.span.end_column - 1 if first == last else None]
        if not call.startswith(f"{node.op.name}("):
            return self.called(name)
        short = first == last and len(call) <= _LONG
        return call if short else f"{node.op.name}(…)"

    @property
    def trains(self) -> bool:
        """Whether the text states that the model is trained: it has a loss. What another system
        calls a loss states nothing.
        """
        return self.graph.loss is not None and not self.names

    @property
    def prefix(self) -> str:
        """What the names of gradients begin with."""
        return free_prefix(self.graph.values)

    @property
    def ranges(self) -> dict[str, Ends]:
        """The range of everything that varies."""
        return {n: port.within for n, port in self.graph.inputs.items() if port.within is not None}

    @property
    def nonfinite(self) -> tuple[str, ...]:
        """The parameters with a value that holds NaN or infinity."""
        return tuple(
            name
            for name, array in self.fixed.items()
            if DTYPES[self.graph.params[name].info.dtype].kind == "real"
            and not self.source.params[name].literal
            and not np.isfinite(array.astype(np.float64)).all()
        )


def subject(
    graph: Graph,
    catalog: Catalog,
    *,
    ranges: Mapping[str, Ends] | None = None,
    seed: int = 0,
    file: str = "",
    text: str = "",
    names: Mapping[str, str] | None = None,
    spare: Collection[str] = (),
    left_out: tuple[Diagnostic, ...] = (),
    flush: bool = False,
) -> Subject:
    """A model made ready: `ranges` go before what the text declares, defaults come last.

    ranges: by a value's name in the text or in the model that it was imported from, with the `:0`
    of TensorFlow or without it. A parameter with a range varies; one with a value and no range is
    that value. spare: names of the model that may have a range although they are not here: of
    what an importer left out. left_out, flush: as in `Subject`. Raises `usage.range` where no name
    is an input or parameter, and for a range that holds no value of its type.
    """
    names = dict(names or {})
    given, unmet = _own_names(graph, ranges or {}, names, spare)
    ports: dict[str, Port] = {}
    params: dict[str, Param] = {}
    assumed = []
    items: dict[str, Port | Param] = {**graph.inputs, **graph.params}
    for name, item in items.items():
        within = given.get(name, item.within)
        if isinstance(item, Param) and within is None and item.initial is not None:
            params[name] = replace(item, literal=item.literal or _is_constant(item))
            continue
        if within is None:
            assumed.append(name)
            within = DEFAULT_RANGE[item.info.kind]
        ports[name] = Port(item.info, _inside(name, within, item), item.span)
    made = replace(graph, inputs=ports, params=params)
    fixed = initial_values(made, seed)
    return Subject(
        graph, made, catalog, fixed, given, seed, file, text, names, tuple(assumed),
        left_out=left_out, flush=flush, unmet=unmet,
    )  # fmt: skip


def _is_constant(item: Param) -> bool:
    """Whether a parameter is one number of the text: nothing flows back to it, as it is not trained
    without a range. So importers write the constants of a model.
    """
    return item.initial is not None and item.initial.kind == "constant" and not item.info.shape


def reread(old: Subject, text: str) -> Subject | None:
    """The same model after an edit of its text; None where that is not valid."""
    try:
        checked = check(parse(text, old.file), builtin(), old.source.sizes)
    except InvalidInput:
        return None
    graph = next((one for one in checked.graphs if one.name == old.source.name), None)
    if graph is None or any(d.severity == "error" for d in checked.diagnostics):
        return None
    for name, param in graph.params.items():
        before = old.source.params.get(name)
        if before is not None and param.initial is not None and param.initial.kind == "data":
            param.initial = before.initial  # an importer has the values, no file does
    return subject(
        graph, checked.catalog, ranges=old.given, seed=old.seed, file=old.file, text=text,
        names=old.names, flush=old.flush,
    )  # fmt: skip


def _own_names(
    graph: Graph, ranges: Mapping[str, Ends], names: Mapping[str, str], spare: Collection[str]
) -> tuple[dict[str, Ends], tuple[str, ...]]:
    """Ranges by the names in the text, and the names that are neither here nor passed over. One
    file of ranges may serve several models, but not be for another one altogether.
    """
    passed = {name.removesuffix(":0") for name in spare}
    known = {*graph.inputs, *(n for n, param in graph.params.items() if not param.literal)}
    own = {original: name for name, original in names.items() if name in known}
    # TensorFlow calls the first result of a node by the node, or by its place, as `x:0`
    for original in (*known - own.keys(), *own):
        stem = original.removesuffix(":0")
        own.setdefault(stem if stem != original else f"{stem}:0", own.get(original, original))
    found, unknown = {}, []
    for wanted, ends in ranges.items():
        name = own.get(wanted, wanted)
        if name in known:
            found[name] = ends
        elif wanted.removesuffix(":0") not in passed:
            unknown.append(wanted)
    if unknown and len(unknown) == len(ranges):
        there = ", ".join(names.get(name, name) for name in sorted(known)) or "none"
        raise InvalidInput(
            *(
                Diagnostic(
                    "usage.range",
                    f"a range is given for `{name}`, which is no input or parameter",
                    help=f"there are: {there}",
                )
                for name in unknown
            )
        )
    return found, tuple(unknown)


def _inside(name: str, within: Ends, item: Port | Param) -> Ends:
    """The ends of a range that the values of a type reach."""
    low, high = map(float, within)
    dtype = DTYPES[item.info.dtype]
    if dtype.kind == "real":
        low, high = max(low, -dtype.largest), min(high, dtype.largest)
        inner = _rounded(low, dtype.numpy, up=True), _rounded(high, dtype.numpy, up=False)
        if low <= high and inner[0] > inner[1]:  # one number, which the type has to round
            inner = (float(np.asarray(low).astype(dtype.numpy)),) * 2
        low, high = inner
    elif dtype.kind == "int":
        least, greatest = integer_range(item.info.dtype)
        low, high = max(float(np.ceil(low)), least), min(float(np.floor(high)), greatest)
    else:
        low, high = max(float(np.ceil(low)), 0.0), min(float(np.floor(high)), 1.0)
    if not low <= high:
        message = f"[{within[0]:g}, {within[1]:g}], the range of `{name}`, holds no {dtype.name}"
        raise InvalidInput(Diagnostic("usage.range", message, item.span))
    return low, high


def _rounded(end: float, dtype: np.dtype[np.generic], *, up: bool) -> float:
    """The number of a type that is nearest to an end of a range, on the inner side."""
    with np.errstate(over="ignore"):  # an end beyond the type is infinite in it
        number = np.asarray(end).astype(dtype)
    if (float(number) < end) if up else (float(number) > end):
        number = np.nextafter(number, np.asarray(np.inf if up else -np.inf, dtype))
    return float(number)
