"""A function of `keras.ops` that is being written: its arguments, and how its calls are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Sheet, Value
from irlang.importers.keras_text import Config

_MISSING = object()


class Node:
    """A function that is being written: its arguments by position, by name and as saved."""

    def __init__(
        self, sheet: Sheet, name: str, config: Config, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.sheet = sheet
        self.writer = sheet.writer
        self.name = name
        self.kind = config.kind
        self.args = list(args)
        self.given = {**config.kwargs, **{k: v for k, v in kwargs.items() if v is not None}}

    def uncovered(self, reason: str) -> Uncovered:
        """The exception for what has no translation."""
        return Uncovered(f"keras.ops {self.kind}", reason)

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """An argument that is no tensor."""
        value = self.given.get(key, default)
        if value is _MISSING:
            raise self.uncovered(f"`{key}` is not given")
        return value

    def x(self, position: int = 0) -> str:
        """A tensor that is an argument; numbers become a parameter."""
        if position >= len(self.args):
            raise self.uncovered("an argument is not there")
        found = self.operand(self.args[position], position)
        if isinstance(found, str):
            return found
        array = np.asarray(found, dtype=np.float32 if isinstance(found, float) else np.int32)
        return self.param(position, array)

    @property
    def channels_first(self) -> bool:
        """Whether Keras itself has channels first here."""
        return bool(self.get("data_format", None) == "channels_first")

    def first(self) -> str:
        """The first tensor with its channels first."""
        value = self.args[0] if self.args else None
        if not isinstance(value, Value) or self.channels_first:
            return self.x()
        return self.sheet.first(value.name)

    def last(self, name: str) -> str:
        """A result whose channels are first, as the function's result."""
        if not self.channels_first:
            self.sheet.moved.add(name)
        return name

    def like_first(self, value: str) -> str:
        """A tensor in the type of the first one."""
        return self.cast(value, self.info(self.x()).dtype)

    def operand(self, item: Any, position: int) -> Any:
        """A tensor by the name of its value, or a number."""
        if isinstance(item, Value):
            return self.sheet.last(item.name)
        if isinstance(item, tuple):
            try:
                item = np.array(item)
            except ValueError:
                raise self.uncovered("an argument is no tensor of numbers") from None
            item = item.astype({"f": np.float32, "i": np.int32}.get(item.dtype.kind, item.dtype))
        if isinstance(item, np.ndarray):
            return self.param(position, item)
        if isinstance(item, (int, float)):
            return item
        raise self.uncovered(f"an argument is {item!r}")

    def param(self, position: int, array: Any) -> str:
        """Numbers as a parameter."""
        known = (key for key, item in DTYPES.items() if item.numpy == array.dtype)
        dtype = next(known, None)
        if dtype is None:
            raise self.uncovered("an argument is no tensor of numbers")
        info = TensorInfo(array.shape, dtype)
        return self.writer.param(f"{self.name}_{position}", info, array)

    def info(self, value: str) -> TensorInfo:
        """The type of a value."""
        return self.writer.types[value]

    def rank(self, value: str) -> int:
        """The number of axes of a value."""
        return len(self.info(value).shape)

    def write(self, op: str, *operands: Any, suffix: str = "", **attrs: Any) -> str:
        """A call; the result of the function has no suffix."""
        wanted = f"{self.name}_{suffix}" if suffix else self.name
        return self.writer.call([wanted], op, *operands, **attrs)[0]

    def alike(self, operands: Sequence[Any]) -> list[Any]:
        """Tensors of one type, as Keras promotes them: reals before integers, then the wider."""
        infos = [self.info(item) for item in operands if isinstance(item, str)]
        reals = [info.dtype for info in infos if info.kind == "real"]
        fraction = any(isinstance(item, float) for item in operands)
        if reals:
            wanted = max(reals, key=lambda name: (DTYPES[name].bits, name == "f16"))
        elif fraction:
            wanted = "f32"
        else:
            wanted = max((info.dtype for info in infos), key=lambda name: DTYPES[name].bits)
        return [self.cast(item, wanted) if isinstance(item, str) else item for item in operands]

    def cast(self, value: str, dtype: str) -> str:
        """A value in another type, if it is not in that one."""
        if self.info(value).dtype == dtype:
            return value
        return self.write("cast", value, suffix=f"as_{dtype}", to=dtype)

    def real(self, value: str) -> str:
        """A value as reals."""
        return value if self.info(value).kind == "real" else self.cast(value, "f32")

    def axes(self, value: str) -> list[int]:
        """The axes that are reduced: all of them unless said."""
        axis = self.get("axis", None)
        if axis is None:
            return list(range(self.rank(value)))
        return list(axis) if isinstance(axis, tuple) else [axis]


Write = Callable[[Node], str | list[str]]
