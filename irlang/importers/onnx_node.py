"""A node of an ONNX graph that is being written: what rows of the mapping tables are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irlang.importers.node import NodeBase
from irlang.importers.onnx_file import dtype, tensor
from irlang.importers.value import Unsupported, Value, constant, integers
from irlang.importers.writer import Array, Writer

__all__ = ["ByFunction", "Node", "Value", "constant", "integers"]


class ByFunction(Exception):
    """A row leaves a node to the function that ONNX gives for its operator."""


class Node(NodeBase):
    """A call of an ONNX operator, with its attributes. version: of its operator set."""

    def __init__(
        self,
        writer: Writer,
        kind: str,
        version: int,
        x: Sequence[Value | None],
        outputs: Sequence[str],
        attributes: Mapping[str, Any],
    ) -> None:
        super().__init__(writer, kind, x, outputs)
        self.version = version
        self._attributes = dict(attributes)
        self._open = set(attributes)

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self._attributes

    def _attribute(self, name: str, kind: str) -> Any:
        """The field of an attribute, None where it is not given."""
        self._open.discard(name)
        found = self._attributes.get(name)
        if found is None:
            return None
        types = {"i": 2, "f": 1, "s": 3, "t": 4, "floats": 6, "ints": 7, "strings": 8}
        if found.type not in (0, types[kind]):
            raise Unsupported(f"the attribute `{name}` is not of the kind that the operator has")
        return getattr(found, kind)

    def int(self, name: str, default: Any = None) -> Any:
        """A whole number."""
        found = self._attribute(name, "i")
        return default if found is None else found

    def flag(self, name: str, default: bool = False) -> bool:
        """A whole number that says yes or no."""
        return bool(self.int(name, default))

    def ints(self, name: str, default: Any = None) -> Any:
        """Whole numbers."""
        found = self._attribute(name, "ints")
        return default if found is None else list(found)

    def real(self, name: str, default: Any = None) -> Any:
        """A number: as short as single precision allows, unless the node computes in double."""
        found = self._attribute(name, "f")
        if found is None:  # a default is of single precision as well
            found = None if default is None else float(np.float32(default))
        return None if found is None else self.single(found)

    def reals(self, name: str, default: Any = None) -> Any:
        """Numbers."""
        found = self._attribute(name, "floats")
        return default if found is None else [self.single(item) for item in found]

    def single(self, value: float) -> float:
        """A number of single precision; exactly, where the node computes in double precision."""
        if any(value_ and value_.dtype == "f64" for value_ in self.given):
            return float(value)
        return float(str(np.float32(value)))

    def word(self, name: str, default: str = "") -> str:
        """A text."""
        found = self._attribute(name, "s")
        return default if found is None else found.decode("utf-8", "replace")

    def words(self, name: str, default: Any = None) -> Any:
        """Texts."""
        found = self._attribute(name, "strings")
        return default if found is None else [item.decode("utf-8", "replace") for item in found]

    def tensor(self, name: str) -> Array | None:
        """A tensor."""
        found = self._attribute(name, "t")
        return None if found is None else tensor(found, None, f"the attribute `{name}`")

    def element_type(self, name: str, default: str = "") -> str:
        """An element type by its number."""
        found = self._attribute(name, "i")
        return default if found is None else dtype(found)

    def ignore(self, *names: str) -> None:
        """Attributes that say nothing about the values."""
        self._open.difference_update(names)

    def finish(self) -> None:
        """Raises `Unsupported` for attributes that nobody asked for."""
        if self._open:
            raise Unsupported(f"the attribute `{min(self._open)}`")
