"""Reads the program files of ExAIS: a Keras program, its Prolog terms, and what came of both.

The Keras text is what TensorFlow ran, so it is what is translated; the terms say nothing more. Such
a file is data: nothing in it is executed.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang.catalog import Catalog, builtin
from irlang.equations import TensorInfo
from irlang.importers import keras_text
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Sheet, Value
from irlang.importers.keras_layers import write_layer
from irlang.importers.keras_text import Layer, Name, Program, Unreadable
from irlang.importers.keras_weights import NONE, Listed
from irlang.importers.writer import Array, Fault, Writer

FLOAT = "f64"
_TERM = re.compile(r"^L\w+ = \w+_layer\(", re.MULTILINE)
_RECORD = re.compile(r"^(Actual|Expected) \(Unparsed\):", re.MULTILINE)
_NEXT = re.compile(r"^(Actual|Expected)\b.*:", re.MULTILINE)
_FAULT = re.compile(r"\s*(\w+):\s*(.*)")


@dataclass(frozen=True, slots=True)
class Record:
    """A file. actual: TensorFlow's output as text. at_fault: the layer to be refused, if any."""

    keras: str
    actual: str
    at_fault: str | None
    error: str = ""


@dataclass(slots=True)
class Translation:
    """A program as a model's text.

    inputs: values by name. output: of the result. owners: the layer that made a value, by the
    value's name. kinds: of every layer, by the layer's name.
    """

    text: str
    inputs: dict[str, Array]
    output: str
    owners: dict[str, str]
    kinds: dict[str, str] = field(default_factory=dict)


def split(text: str) -> Record:
    """The parts of a file; raises `Unreadable` where the records are missing."""
    parts: dict[str, str] = {}
    for found in _RECORD.finditer(text):
        following = _NEXT.search(text, found.end())
        parts[found[1]] = text[found.end() : following.start() if following else None].strip()
    if not parts:
        raise Unreadable("no line begins with `Actual (Unparsed):` or `Expected (Unparsed):`")
    term = _TERM.search(text)
    first = _RECORD.search(text)
    end = term.start() if term else first.start() if first else None
    fault = _FAULT.match(parts.get("Expected", ""))
    return Record(
        text[:end],
        parts.get("Actual", ""),
        fault[1] if fault else None,
        fault[2] if fault else "",
    )


def numbers(text: str) -> Array:
    """A printed array: nested lists of decimals, `nan` and `inf`."""
    plain = re.sub(r"\b(nan|inf)\b", lambda found: {"nan": "None", "inf": "1e999"}[found[1]], text)
    try:
        value = ast.literal_eval(plain)
        return np.array(value, dtype=np.float64)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Unreadable("the recorded output is not an array of numbers") from None


def translate(
    program: Program, name: str = "imported", catalog: Catalog | None = None
) -> Translation:
    """A Keras program as the text of a model.

    Raises `Uncovered` for a layer or an argument that has no translation. Where a definition
    refuses a layer, the text ends with it.
    """
    writer = Writer(catalog or builtin())
    sheet = Sheet(writer, 2, write_layer)
    fed: dict[str, Array] = {}
    values: dict[str, Value] = {}
    for key, constant in program.fed.items():
        array = fed_as(constant)
        values[key] = Value(writer.input(key, TensorInfo(array.shape, FLOAT)))
        fed[values[key].name] = array
    last = next(reversed(values.values()), Value("")).name
    try:
        for layer in program.layers:
            writer.owner = layer.name
            found = _written(sheet, layer, values, program)
            values[layer.name] = found[0]
            last = sheet.last(found[0].name)
        outputs = [values[output] for output in program.outputs if output in values]
        if len(outputs) != 1:
            raise Uncovered("Model", f"a model with {len(program.outputs)} results")
        last = sheet.last(outputs[0].name)
    except Fault:
        pass
    safe = re.sub(r"[^\w .-]", "_", name)
    doc = f"The Keras program {safe}, in TensorFlow 2.4 and float64."
    title = re.sub(r"\W", "_", f"keras_{name}", flags=re.ASCII)
    kinds = {layer.name: layer.config.name for layer in program.layers}
    return Translation(writer.text(title, doc, [last]), fed, last, writer.owners, kinds)


def _written(sheet: Sheet, layer: Layer, values: dict[str, Value], program: Program) -> list[Value]:
    """Writes a layer; what it gives."""

    def given(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(given(inner) for inner in item)
        if not isinstance(item, Name):
            return item
        if item.name not in values:
            raise Unreadable(f"`{layer.name}` is called on what is not there yet")
        return values[item.name]

    operands = [given(Name(operand)) for operand in layer.operands]
    args = [given(item) for item in layer.args]
    kwargs = {key: given(item) for key, item in layer.kwargs.items()}
    own = program.weights.get(layer.title)
    weights = NONE if own is None else Listed(own)
    return write_layer(sheet, layer.name, layer.config, operands, weights, args, kwargs)


def fed_as(constant: keras_text.Constant) -> Array:
    """What a layer gets of a constant: TensorFlow makes it single precision unless told otherwise.

    The `Input` then widens it to the program's float64.
    """
    try:
        array = np.array(constant.value)
        kind = np.dtype(constant.dtype or ("float32" if array.dtype.kind == "f" else "int32"))
        return array.astype(kind).astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Unreadable("a constant is not an array of numbers") from None
