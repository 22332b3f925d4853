"""From a file of another system to text: which importer reads what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irlang.diagnostics import Diagnostic, fail
from irlang.graph import Graph, Initial
from irlang.importers.writer import Array, Writer
from irlang.parser import parse
from irlang.parser.printer import print_file

Sizes = Mapping[str, int]
Bindings = Mapping[str, int | Sequence[int]]


@dataclass(frozen=True, slots=True)
class Imported:
    """A model as text, in the one layout.

    writer: has the parameters that belong beside it. spare: the names of inputs and parameters of
    the model that the text may be without, as no result hangs on them, or none that is there.
    left_out: operators without a translation, where the text may do without them.
    """

    text: str
    writer: Writer
    spare: frozenset[str] = frozenset()
    left_out: tuple[Diagnostic, ...] = ()

    def names(self, graph: Graph) -> dict[str, str]:
        """What inputs, parameters and calls of the text's graph were called in the model."""
        writer = self.writer
        found = {name: writer.original(name) for name in (*graph.inputs, *graph.params)}
        owners = {node.name: writer.owners.get(node.name, "") for node in graph.nodes}
        return found | {name: owner for name, owner in owners.items() if owner}

    def fill(self, graph: Graph) -> None:
        """Gives the parameters of the text's graph their values, without a file."""
        for param in graph.params.values():
            if param.initial is not None and param.initial.kind == "data":
                param.initial = Initial("array", (self.writer.tensors[param.initial.args[1]],))


def _onnx(path: Path, data: str, bind: Sizes, constants: Mapping[str, Array], partly: bool) -> Any:
    from irlang.importers import onnx_model

    return onnx_model.load(path, data, bind, constants, partly=partly)


def _keras(path: Path, data: str, bind: Sizes, constants: Mapping[str, Array], _: bool) -> Any:
    from irlang.importers import keras_model

    _none_fixed(constants, "a Keras model")
    return keras_model.load(path, data, bind)


def _torch(path: Path, data: str, bind: Sizes, constants: Mapping[str, Array], _: bool) -> Any:
    from irlang.importers import torch_import

    _none_fixed(constants, "a PyTorch program")
    if bind:
        message = "the sizes of a PyTorch program are bound when its text is run, not before"
        raise fail("usage.bind", message)
    return torch_import.load(path, path.stem, data=data)


def _tensorflow(
    path: Path, data: str, bind: Sizes, constants: Mapping[str, Array], partly: bool
) -> Any:
    from irlang.importers import tf_model

    _none_fixed(constants, "a TensorFlow graph")
    return tf_model.load(path, data, bind, partly=partly)


def _none_fixed(constants: Mapping[str, Array], what: str) -> None:
    if constants:
        raise fail("usage.constants", f"inputs of {what} cannot be fixed")


READERS: dict[str, Callable[[Path, str, Sizes, Mapping[str, Array], bool], Any]] = {
    ".onnx": _onnx,
    ".keras": _keras,
    ".h5": _keras,
    ".pt2": _torch,
    ".pb": _tensorflow,
}


def single_sizes(bind: Bindings) -> dict[str, int]:
    """Numbers by name: those of a shape are `name[0]`, `name[1]`, and so on."""
    found: dict[str, int] = {}
    for name, said in bind.items():
        if isinstance(said, int):
            found[name] = said
        else:
            found.update({f"{name}[{axis}]": size for axis, size in enumerate(said)})
    return found


def read(
    path: Path,
    data: str,
    bind: Bindings | None = None,
    constants: Mapping[str, Array] | None = None,
    *,
    partly: bool = False,
) -> Imported:
    """A model file as text; what it is follows from the ending of its name.

    data: the name of the file of parameters that goes with the text. bind: numbers for sizes that
    the model leaves open, and shapes of variables that have none. constants: inputs that are fixed
    to values (ONNX). partly: whether operators without a translation may be left out, with what is
    computed from them; what nothing goes on to use is then a result (ONNX, TensorFlow). Raises
    `InvalidInput`: `usage.` and `file.` codes for what is no model, others for what cannot be
    translated.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(READERS)
        raise fail("usage.kind", f"{path} is no file that can be imported", help=f"known: {known}")
    if not path.is_file():
        raise fail("file.read", f"{path} cannot be read: there is no such file")
    made = reader(path, data, single_sizes(bind or {}), constants or {}, partly)
    spare: frozenset[str] = getattr(made, "spare", frozenset())
    text = print_file(parse(made.text, str(path)))
    return Imported(text, made.writer, spare, getattr(made, "left_out", ()))
