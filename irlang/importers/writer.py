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
from typing import Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.instance import instantiate

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH = 100
_RESERVED = frozenset(
    {
        *("op", "model", "block", "param", "require", "ensure", "some", "let", "grad"),
        *("unspecified", "when", "for", "in", "if", "then", "else", "match", "and", "or", "not"),
        *("true", "false", "inf", "nan", "pi"),
    }
)


class Fault(Exception):
    """A call is written that its definition refuses; no value comes of it."""


class Writer:
    """The text of one model as it grows.

    types: of every value by name. owners: whose statement (`owner` at the time) names a value.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.types: dict[str, TensorInfo] = {}
        self.owners: dict[str, str] = {}
        self.owner = ""
        self.inputs: dict[str, TensorInfo] = {}
        self.lines: list[str] = []
        self._taken: set[str] = set()

    def name(self, wanted: str) -> str:
        """A name that is free, as near to the wanted one as the language allows."""
        base = re.sub(r"\W", "_", wanted, flags=re.ASCII)
        base = f"v_{base}" if not base or base[0].isdigit() else base
        base = f"{base}_" if base in _RESERVED else base
        found, count = base, 1
        while found in self._taken:
            count += 1
            found = f"{base}_{count}"
        self._taken.add(found)
        self.owners[found] = self.owner
        return found

    def input(self, wanted: str, info: TensorInfo) -> str:
        """An input of the model."""
        name = self.name(wanted)
        self.inputs[name] = self.types[name] = info
        return name

    def param(self, wanted: str, info: TensorInfo, value: Array | float) -> str:
        """A parameter with its values."""
        name = self.name(wanted)
        text = number(value) if isinstance(value, (int, float)) else json.dumps(value.tolist())
        self._line(f"param {name}: {info} = {text}")
        self.types[name] = info
        if isinstance(value, np.ndarray) and value.shape != info.shape:
            raise Fault(name)
        return name

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
        definition = self.catalog.op(op)
        if definition is None:
            raise KeyError(op)
        names = [self.name(item) for item in wanted]
        extra = dict(by_name or {})
        pairs = {**extra, **{key: written(value) for key, value in attrs.items()}}
        inside = ", ".join(item if isinstance(item, str) else written(item) for item in operands)
        if pairs:
            inside += "; " + ", ".join(f"{key} = {value}" for key, value in pairs.items())
        self._line(f"{', '.join(names)} = {op}({inside})")
        types = [self._type(item, operands) for item in operands]
        given: dict[str, Any] = {key: self.types[value] for key, value in extra.items()}
        for position, formal in enumerate(definition.inputs):
            if formal.family:
                given[formal.name] = tuple(types[position:])
            elif position < len(types):
                given[formal.name] = types[position]
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
        try:
            instance = instantiate(definition, given, values)
        except InvalidInput:
            raise Fault(names[0]) from None
        if instance.faults or instance.outputs is None:
            raise Fault(names[0])
        for name, (_, info) in zip(names, instance.outputs, strict=False):
            self.types[name] = info
        return names

    def _type(self, item: Any, operands: Sequence[Any]) -> TensorInfo:
        if isinstance(item, str):
            return self.types[item]
        peers = [self.types[other].dtype for other in operands if isinstance(other, str)]
        return TensorInfo((), peers[0] if peers else "f32")

    def _line(self, text: str) -> None:
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
        return f'nnir 1\n\n"""{doc}"""\nmodel {name}({inputs})\n    -> {results} {{\n{body}\n}}\n'


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
