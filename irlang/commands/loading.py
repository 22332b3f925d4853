"""From a path on the command line to a checked model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput, fail
from irlang.graph import Graph
from irlang.importers.files import READERS, read
from irlang.interp.shape import check
from irlang.interp.values import Array, load_npy, require_memory
from irlang.parser import parse
from irlang.parser.source import read_source


def load_model(
    path: str,
    bind: Sequence[str] = (),
    model: str | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
) -> tuple[Graph, Catalog]:
    """The model of a file, and the catalogue with the file's own definitions.

    bind: `N=4` texts. shapes: of inputs that are given, which bind symbolic sizes. A model of
    another system is imported first. Raises `InvalidInput` with every fault of the file.
    """
    sizes = dict(binding(text) for text in bind)
    imported = None
    if Path(path).suffix.lower() in READERS:
        imported = read(Path(path), "parameters", sizes)
        file = parse(imported.text)
        sizes, bind = {}, ()
    else:
        file = parse(read_source(Path(path)), path)
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
    return graph, checked.catalog


def binding(text: str) -> tuple[str, int]:
    """A size and its number, of a text like `N=4`."""
    name, _, size = text.partition("=")
    if not name.isidentifier() or not size.isascii() or not size.isdigit() or len(size) > 18:
        raise fail("usage.bind", f"`{text}` does not bind a size", help="write --bind N=4")
    return name, int(size)


def load_inputs(given: Sequence[str]) -> dict[str, Array]:
    """Arrays of `NAME=FILE.npy` texts."""
    found = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not separator or not name:
            raise fail(
                "usage.input", f"`{text}` names no input and file", help="write --input x=x.npy"
            )
        found[name] = load_npy(path)
    return found


def split_names(text: str | None, default: str) -> list[str]:
    """The names of a comma-separated option."""
    return [name.strip() for name in (text or default).split(",") if name.strip()]
