"""From a path on the command line to a checked model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput, fail
from irlang.graph import Graph
from irlang.importers.files import READERS, Imported, read, single_sizes
from irlang.interp.shape import check
from irlang.interp.values import Array, load_npy, require_memory
from irlang.parser import parse
from irlang.parser.source import read_source

if TYPE_CHECKING:
    from irlang.analysis.subject import Subject
    from irlang.diagnostics import Diagnostic
    from irlang.lower.profile import Accepted


def load_model(
    path: str,
    bind: Sequence[str] = (),
    model: str | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
) -> tuple[Graph, Catalog]:
    """The model of a file, and the catalogue with the file's own definitions; see `load_source`."""
    source = load_source(path, bind, model, shapes)
    return source.graph, source.catalog


@dataclass(frozen=True, slots=True)
class Source:
    """A model with the text that it was read from. imported: where that is an importer's."""

    graph: Graph
    catalog: Catalog
    text: str
    imported: Imported | None


def load_source(
    path: str,
    bind: Sequence[str] = (),
    model: str | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
    *,
    partly: bool = False,
) -> Source:
    """The model of a file.

    bind: `N=4` texts. shapes: of inputs that are given, which bind symbolic sizes. A model of
    another system is imported first; partly: as far as it can be. Raises `InvalidInput` with every
    fault of the file.
    """
    sizes = bindings(bind)
    imported = None
    if Path(path).suffix.lower() in READERS:
        imported = read(Path(path), "parameters", sizes, partly=partly)
        text = imported.text
        file = parse(text)
        sizes, bind = {}, ()
    else:
        text = read_source(Path(path))
        file = parse(text, path)
    for item in (item for m in file.models for item in m.inputs):
        for dim, size in zip(item.type.dims, (shapes or {}).get(item.name, ()), strict=False):
            name = getattr(dim.size, "id", None)
            if name is not None and name not in {n for n in sizes if n in bind}:
                sizes.setdefault(name, size)
    checked = check(file, builtin(), sizes)
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if errors:
        raise InvalidInput(*errors)
    if not checked.graphs:
        raise fail("file.model", f"{path} holds no model")
    names = {graph.name: graph for graph in checked.graphs}
    if model is not None and model not in names:
        raise fail(
            "usage.model", f"{path} holds no model `{model}`", help=f"it has {', '.join(names)}"
        )
    graph = names[model] if model else checked.graphs[0]
    unknown = set(sizes) - set(graph.sizes)
    if unknown:
        known = ", ".join(graph.sizes) or "no symbolic size"
        raise fail(
            "usage.bind",
            f"`{unknown.pop()}` is not a size of `{graph.name}`",
            help=f"it has {known}",
        )
    require_memory(graph)
    if imported is not None:
        imported.fill(graph)
    return Source(graph, checked.catalog, text, imported)


def load_subject(
    path: str,
    bind: Sequence[str] = (),
    model: str | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
    flush: bool = False,
) -> Subject:
    """The model of a file, ready to be analysed, as much of it as can be imported.

    ranges, flush: see `irlang.analysis.subject.subject`.
    """
    from irlang.analysis.names import remembered
    from irlang.analysis.subject import subject

    source = load_source(path, bind, model, partly=True)
    left_out: tuple[Diagnostic, ...] = ()
    spare: frozenset[str] = frozenset()
    if source.imported is not None:
        names, spare = source.imported.names(source.graph), source.imported.spare
        left_out = source.imported.left_out
    else:
        models = parse(source.text).models
        names = remembered(next(one for one in models if one.name == source.graph.name))
    return subject(
        source.graph, source.catalog, ranges=ranges, seed=seed, file=path, text=source.text,
        names=names, spare=spare, left_out=left_out, flush=flush,
    )  # fmt: skip


def bindings(texts: Sequence[str]) -> dict[str, int]:
    """Sizes and their numbers, of texts like `N=4`; `w=3,4` says a whole shape, w[0] and w[1]."""
    found: dict[str, int | list[int]] = {}
    for text in texts:
        name, size = _binding(text)
        if found.setdefault(name, size) != size:
            raise fail("usage.bind", f"`{name}` is bound to {found[name]} and to {size}")
    return single_sizes(found)


def _binding(text: str) -> tuple[str, int | list[int]]:
    name, _, said = text.partition("=")
    sizes = said.split(",")
    if not name.isidentifier() or not all(
        size.isascii() and size.isdigit() and len(size) <= 18 for size in sizes
    ):
        raise fail("usage.bind", f"`{text}` does not bind a size", help="write --bind N=4")
    found = [int(size) for size in sizes]
    return name, found if len(found) > 1 else found[0]


def load_inputs(given: Sequence[str]) -> dict[str, Array]:
    """Arrays of `NAME=FILE.npy` texts."""
    found = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not separator or not name:
            raise fail(
                "usage.input", f"`{text}` names no input and file", help="write --input x=x.npy"
            )
        if name in found:
            raise fail("usage.input", f"input `{name}` is given twice")
        found[name] = load_npy(path)
    return found


def load_profile(path: str | None) -> tuple[Accepted, ...]:
    """What a file of `--profile` accepts of targets; nothing without one."""
    from irlang.lower.profile import read_profile

    return read_profile(Path(path)) if path else ()


def split_names(text: str | None, default: str) -> list[str]:
    """The names of a comma-separated option, each once."""
    names = [name.strip() for name in (text or default).split(",") if name.strip()]
    return list(dict.fromkeys(names))
