"""Saved Keras models as text: what `irlang import` does with a `.keras` or `.h5` file.

A size that the model leaves open becomes a name of the signature: `N` of the batch, `D1`, … of the
other axes. The walk is done for two examples of every open size; where the texts are the same,
nothing in them hangs on the example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.importers import keras_file
from irlang.importers.keras_graph import Walk, open_sizes
from irlang.importers.writer import Writer

_BATCHES = (3, 5)
_PRIMES = (37, 41, 43, 47, 53, 59)


@dataclass(frozen=True, slots=True)
class Imported:
    """A model as text. writer: has the parameters that belong beside it.

    inputs: names in the text by those in the model. outputs: names, in the model's order.
    """

    text: str
    writer: Writer
    inputs: dict[str, str]
    outputs: tuple[str, ...]


def load(
    path: Path,
    data: str | None,
    bind: Mapping[str, int] | None = None,
    catalog: Catalog | None = None,
) -> Imported:
    """A saved model as text.

    data: the name of the file of parameters beside the text; None writes every number into it.
    bind: numbers for sizes that the model leaves open. Raises `InvalidInput` with everything that
    has no translation.
    """
    return translate(keras_file.read(path), data, bind, catalog, name=path.stem)


def translate(
    saved: keras_file.Saved,
    data: str | None,
    bind: Mapping[str, int] | None = None,
    catalog: Catalog | None = None,
    name: str = "imported",
) -> Imported:
    """What has been read as text; see `load`."""
    bind = dict(bind or {})
    names = open_sizes(saved.config)
    unknown = set(bind) - set(names)
    if unknown:
        known = ", ".join(names) or "none"
        raise fail(
            "usage.bind",
            f"`{min(unknown)}` is not a size that the model leaves open",
            help=f"it has {known}",
        )
    left = [size for size in names if size not in bind]
    first: tuple[Diagnostic, ...] = ()
    for pair in _examples(left):
        made: list[Imported] = []
        for sizes in pair:
            writer = Writer(catalog or builtin(), data)
            named = {size: writer.size(size, example) for size, example in sizes.items()}
            walk = Walk(saved, writer, {**bind, **named})
            try:
                outputs = walk.run()
            except RecursionError:
                raise keras_file.malformed("models in it are nested too deeply") from None
            if walk.problems:
                first = first or tuple(walk.problems)
                break
            text = _text(walk, saved, outputs, name)
            made.append(Imported(text, walk.writer, walk.inputs, tuple(outputs)))
        if len(made) == len(pair) and len({item.text for item in made}) == 1:
            return made[-1]
    if first:
        raise InvalidInput(*first)
    raise fail(
        "import.sizes",
        f"what the model computes takes another form for other sizes {', '.join(left)}",
        help=f"say what they are: --bind {left[0]}=4",
    )


def _examples(names: list[str]) -> Iterator[list[dict[str, int]]]:
    """Pairs of examples: of odd sizes, then of multiples of what networks halve."""
    if not names:
        yield [{}]
        return
    for base in (_PRIMES, (64, 128, 192, 256, 320, 384)):
        pair = []
        for number, batch in enumerate(_BATCHES):
            sizes = iter(base[number:] + base[:number])
            values = {size: batch if size == "N" else next(sizes) for size in names}
            pair.append(values)
        yield pair


def _text(walk: Walk, saved: keras_file.Saved, outputs: list[str], name: str) -> str:
    inner = saved.config["config"].get("name")
    title = re.sub(r"\W+", "_", str(inner or name), flags=re.ASCII).strip("_") or "imported"
    made_by = re.sub(r"[^\w.]", "", saved.made_by)[:20]
    doc = f"A Keras model, saved by version {made_by}."
    return walk.writer.text(walk.writer.name(title), doc, outputs)
