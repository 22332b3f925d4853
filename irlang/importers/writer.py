"""Writes a model as text, statement by statement, and knows the type of every value it has named.

Types come from the definitions themselves (`instantiate`). A call that its definition refuses is
written too, and ends the text: what would follow it has no types. Whether the text is valid is
for `irlang.interp.shape` to say.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.sizes import Dim
from irlang.instance import Instance, instantiate

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH = 100
_WRITTEN = 8  # numbers of a parameter that stand in the text
_REMARK = 80  # characters of a name from outside that a remark shows
_RESERVED = frozenset(
    {
        *("op", "model", "block", "param", "require", "ensure", "some", "let", "grad"),
        *("unspecified", "when", "for", "in", "if", "then", "else", "match", "and", "or", "not"),
        *("true", "false", "inf", "nan", "pi", "e_"),
    }
)


class Fault(Exception):
    """A call is written that its definition refuses; no value comes of it.

    faults: (code, message) of every precondition that does not hold, where a definition refused.
    """

    def __init__(self, name: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__("; ".join(message for _, message in faults) or name)
        self.faults = tuple(faults)


class Writer:
    """The text of one model as it grows.

    data: the name of the file beside the text that takes parameters of more than a few numbers
    (`tensors`, by the names that the model outside has for them); without it every number is
    written. A parameter stands before the first call that uses it; one that nothing uses is left
    out. A size of a type, and a number of an attribute, may be open (`irlang.importers.sizes`).

    results: names outside that are for calls, not for parameters. types: of every value by name.
    owners: whose statement (`owner` at the time) names a value.
    """

    def __init__(self, catalog: Catalog, data: str | None = None) -> None:
        self.catalog = catalog
        self.data = data
        self.tensors: dict[str, Array] = {}
        self.types: dict[str, TensorInfo] = {}
        self.owners: dict[str, str] = {}
        self.owner = ""
        self.inputs: dict[str, TensorInfo] = {}
        self.params: set[str] = set()
        self.results: set[str] = set()
        self.lines: list[str] = []
        self._taken: set[str] = set()
        self._original: dict[str, str] = {}  # of names that had to change
        self._waiting: dict[str, tuple[str, tuple[str, Array] | None]] = {}
        self._called: list[list[str]] = []  # the results of every call
        self._read: set[str] = set()

    def name(self, wanted: str, info: TensorInfo | None = None) -> str:
        """A name that is free, as near to the wanted one as the language allows.

        info: what it will stand for; `loss` is a single real number.
        """
        base = re.sub(r"\W+", "_", wanted, flags=re.ASCII)
        if base != wanted:
            base = base.strip("_")
        base = f"v_{base}" if not base or base[0].isdigit() else base
        lossy = base == "loss" and info is not None and (info.shape or info.kind != "real")
        base = f"{base}_" if base in _RESERVED or lossy else base
        found, count = base, 1
        while found in self._taken:
            count += 1
            found = f"{base}_{count}"
        self._taken.add(found)
        self.owners[found] = self.owner
        if found != wanted:
            self._original[found] = wanted
        return found

    def original(self, name: str) -> str:
        """The name that was wanted for a value."""
        return self._original.get(name, name)

    def size(self, wanted: str, example: int) -> Dim:
        """An open size, under a name that nothing else has; the first input to use it binds it."""
        return Dim.symbol(self.name(wanted), example)

    def input(self, wanted: str, info: TensorInfo) -> str:
        """An input of the model."""
        name = self.name(wanted, info)
        self.inputs[name] = self.types[name] = info
        return name

    def param(self, wanted: str, info: TensorInfo, value: Array | float | str) -> str:
        """A parameter with its values, or the text of what they are drawn from."""
        wanted = f"{wanted}_value" if wanted in self.results else wanted
        name = self.name(wanted, info)
        self.params.add(name)
        stored = None
        if isinstance(value, str):
            text = value
        elif isinstance(value, (int, float)):
            text = number(value)
        elif self._apart(value):
            key = wanted if wanted not in self.tensors else name
            stored = key, value
            text = f"data({json.dumps(self.data)}, {_quoted(key)})"
            if _quoted(key) != f'"{key}"':  # no text of the language has it
                stored = name, value
                text = f'data({json.dumps(self.data)}, "{name}")'
        elif self.data is not None and value.size and _uniform(value):
            text = scalar(value.reshape(-1)[0], info)
        else:
            text = numbers(value, info)
        line = f"param {name}: {info} = {text}" if text else f"param {name}: {info}"
        self.types[name] = info
        if isinstance(value, np.ndarray) and value.shape != info.shape:
            self._line(line)
            raise Fault(name)
        self._waiting[name] = line, stored
        return name

    def _apart(self, value: Array) -> bool:
        """Whether the values belong into the file of parameters."""
        small = value.size <= _WRITTEN or value.dtype == object or _uniform(value)
        return self.data is not None and not small

    def call(
        self,
        wanted: Sequence[str],
        op: str,
        *operands: Any,
        by_name: Mapping[str, str] | None = None,
        **attrs: Any,
    ) -> list[str]:
        """A call; gives the names of its results, as near to the wanted ones as may be.

        operands: names of values, or numbers. by_name: optional inputs. attrs: numbers, truth
        values, lists, or the choice of an enum. Raises `Fault` where the definition refuses it.
        """
        extra = dict(by_name or {})
        for operand in (*operands, *extra.values()):
            if isinstance(operand, str):
                self._use(operand)
                self._read.add(operand)
        given = {key: self.types[value] for key, value in extra.items()}
        types = [self._type(item, operands) for item in operands]
        refusal: Fault | None = None
        results: list[TensorInfo] = []
        try:
            results = [info for _, info in self.instance(op, types, given, attrs).outputs or ()]
        except Fault as fault:
            refusal = fault
        pairs = zip(wanted, [*results, *[None] * len(wanted)], strict=False)
        names = [self.name(item, info) for item, info in pairs]
        settings = {**extra, **{key: written(value) for key, value in attrs.items()}}
        inside = ", ".join(item if isinstance(item, str) else written(item) for item in operands)
        if settings:
            inside += "; " + ", ".join(f"{key} = {value}" for key, value in settings.items())
        self._line(f"{', '.join(names)} = {op}({inside})", self._remarks(names))
        if refusal is not None:
            raise refusal
        self.types.update(zip(names, results, strict=False))
        self._called.append(names)
        return names

    def ends(self) -> list[str]:
        """Of every call that no other reads anything of, the first result."""
        return [names[0] for names in self._called if self._read.isdisjoint(names)]

    def instance(
        self,
        op: str,
        operands: Sequence[TensorInfo],
        by_name: Mapping[str, TensorInfo],
        attrs: Mapping[str, Any],
    ) -> Instance:
        """A call judged, without writing it; raises `Fault` where the definition refuses it."""
        definition = self.catalog.op(op)
        if definition is None:
            raise KeyError(op)
        given: dict[str, Any] = dict(by_name)
        for position, formal in enumerate(definition.inputs):
            if formal.family:
                given[formal.name] = tuple(operands[position:])
            elif position < len(operands):
                given[formal.name] = operands[position]
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
        try:
            made = instantiate(definition, given, values)
        except InvalidInput as error:
            raise Fault(op, [(d.code, d.message) for d in error.diagnostics]) from None
        if made.faults or made.outputs is None:
            raise Fault(op, [(fault.code, fault.message) for fault in made.faults])
        return made

    def _type(self, item: Any, operands: Sequence[Any]) -> TensorInfo:
        if isinstance(item, str):
            return self.types[item]
        peers = [self.types[other].dtype for other in operands if isinstance(other, str)]
        numeric = [dtype for dtype in peers if dtype != "bool"] or peers
        return TensorInfo((), numeric[0] if numeric else "f32")

    def _use(self, name: str) -> None:
        """A parameter is written before its first use."""
        if name in self._waiting:
            line, stored = self._waiting.pop(name)
            self._line(line, () if stored or name not in self._original else [self._shown(name)])
            if stored:
                self.tensors[stored[0]] = stored[1]

    def _shown(self, name: str) -> str:
        """The original name of a value, for a remark."""
        return _printable(self._original[name])

    def _remarks(self, names: Sequence[str]) -> list[str]:
        """What a call and its results were called, where that is not what the text calls them."""
        found = [self._shown(name) for name in names if name in self._original]
        owner = _printable(self.owner)
        if owner and owner not in (*names, *found):
            found[-1:] = [f"{found[-1]} of {owner}" if found else f"of {owner}"]
        return found

    def _line(self, text: str, remarks: Sequence[str] = ()) -> None:
        """remarks: names that are kept beside the statement."""
        remark = f"  # {', '.join(remarks)}" if remarks and self.data is not None else ""
        if len(text) + len(remark) <= WIDTH - 2:
            self.lines.append(f"  {text}{remark}")
            return
        if remark:
            self.lines.append(remark)
        if len(text) > WIDTH - 2:
            text = textwrap.fill(
                text,
                WIDTH - 2,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        self.lines.append(textwrap.indent(text, "  "))

    def text(self, name: str, doc: str, outputs: Sequence[str]) -> str:
        """The whole file."""
        inputs = ",\n    ".join(f"{key}: {info}" for key, info in self.inputs.items())
        results = ", ".join(f"{key}: {self.types[key]}" for key in outputs)
        body = "\n".join(self.lines)
        changed = [key for key in dict.fromkeys((*self.inputs, *outputs)) if key in self._original]
        if self.data is not None and changed:
            olds = (f"{key} is {_printable(self._original[key])}" for key in changed)
            told = re.sub(r'["\\]', "'", "; ".join(olds))
            doc += "\n\n" + textwrap.fill(f"Its own names: {told}.", WIDTH)
        head = f"model {name}({inputs})\n    -> {results}"
        return f'nnir 1\n\n"""{doc}"""\n{head} {{\n{body}\n}}\n'

    def save(self, folder: Path) -> None:
        """Writes the parameters that the text refers to, into the folder of the text.

        Raises `InvalidInput` where that is not possible.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        if not self.tensors or self.data is None:
            return
        dense = {key: np.ascontiguousarray(value) for key, value in self.tensors.items()}
        try:
            save_file(dense, folder / self.data)
        except (OSError, SafetensorError) as error:
            raise fail("file.write", f"{folder / self.data} cannot be written: {error}") from None


def _quoted(text: str) -> str:
    """A text of the language, which has no quotation marks and no line breaks inside; else ''."""
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else ""


def _printable(text: str) -> str:
    """A name from outside in a remark: one line, not too long."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= _REMARK else f"{shown[: _REMARK - 1]}…"


def _uniform(value: Array) -> bool:
    """Whether all numbers are the same, to the last bit."""
    if value.dtype == object or not value.size:
        return False
    first = value.reshape(-1)[:1]
    if value.reshape(-1)[-1:].tobytes() != first.tobytes():
        return False
    return value.tobytes() == first.tobytes() * value.size


def numbers(value: Any, info: TensorInfo) -> str:
    """Nested lists of numbers as the language writes them. value: an array, or an element."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"[{', '.join(numbers(item, info) for item in value)}]"
    return scalar(value[()] if isinstance(value, np.ndarray) else value, info)


def scalar(value: Any, info: TensorInfo) -> str:
    """An element of a tensor: the shortest text that gives it back."""
    if isinstance(value, Dim):
        return str(value)
    if info.kind == "bool":
        return "true" if value else "false"
    if info.kind == "int":
        return str(int(value))
    if info.dtype in ("f16", "f32") and np.isfinite(value):
        return str(DTYPES[info.dtype].numpy.type(value))
    return repr(float(value))


def number(value: float) -> str:
    """A number as the language writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int) else repr(float(value))


def written(value: Any) -> str:
    """The value of an attribute as the language writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(written(item) for item in value)}]"
    return number(value)
