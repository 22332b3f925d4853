"""The arguments of a layer, by the names that its signature gives them."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

from irlang.importers.keras_left_out import LEFT_OUT
from irlang.importers.keras_signatures import ALIASES, PASSED, SIGNATURES
from irlang.importers.keras_text import Config

UNSET = object()


class Uncovered(Exception):
    """A kind of layer, or an argument of one, that is not translated."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


class Arguments:
    """The arguments of a layer by name; knows which of them have been asked for."""

    def __init__(self, config: Config) -> None:
        self.kind = ALIASES.get(config.kind, config.kind)
        if self.kind not in SIGNATURES:
            reason = LEFT_OUT.get(self.kind, "this kind of layer is not translated")
            raise Uncovered(config.kind, reason)
        self.defaults = signature(SIGNATURES[self.kind])
        names = list(self.defaults)
        if len(config.args) > len(names):
            raise Uncovered(config.kind, "more arguments than are known")
        self.given = {**dict(zip(names, config.args, strict=False)), **config.kwargs}
        self._open = {
            name
            for name in self.given
            if name not in names or self.given[name] != self.defaults[name]
        }

    def __getitem__(self, name: str) -> Any:
        """The value of an argument; raises `Uncovered` where a needed one is missing."""
        self._open.discard(name)
        value = self.given.get(name, self.defaults[name])
        if value is UNSET:
            raise Uncovered(self.kind, f"the argument `{name}` is needed")
        return value

    def integer(self, name: str) -> int:
        """An argument that is a whole number."""
        value = self[name]
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if not isinstance(value, int):
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return value

    def real(self, name: str) -> float:
        """An argument that is a number."""
        value = self[name]
        if not isinstance(value, (int, float)):
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """An argument that is true or false."""
        return bool(self[name])

    def ints(self, name: str, rank: int = 1) -> list[int]:
        """An argument that has one number an axis, or one for all."""
        value = self[name]
        items = list(value) if isinstance(value, (list, tuple)) else [value] * rank
        if not all(isinstance(item, int) for item in items):
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return items

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """An argument that has a number before and one after an axis: (1, 2), ((1, 2), (3, 4)), …

        One number serves all; for several axes a flat list has one number an axis.
        """
        value = self[name]
        if isinstance(value, int):
            return [(value, value)] * rank
        items = list(value) if isinstance(value, (list, tuple)) else []
        if rank == 1 and len(items) == 2 and all(isinstance(item, int) for item in items):
            return [(items[0], items[1])]
        found: list[tuple[int, int]] = []
        for item in items:
            pair = (item, item) if isinstance(item, int) else item
            if not isinstance(pair, (list, tuple)) or list(map(type, pair)) != [int, int]:
                raise Uncovered(self.kind, f"`{name}` is {value!r}")
            found.append((pair[0], pair[1]))
        return found

    def choice(self, name: str, *known: str) -> str:
        """An argument that is one of a few words."""
        value = self[name]
        if value not in known:
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return str(value)

    def pass_over(self) -> None:
        """No argument has a meaning to what is computed."""
        self._open.clear()

    def finish(self) -> None:
        """Raises `Uncovered` where an argument says something that nobody asked for."""
        for name in sorted(self._open):
            if name == "data_format" and self.given[name] == "channels_last":
                continue
            if re.fullmatch(PASSED, name) is None and self.given[name] is not None:
                raise Uncovered(self.kind, f"the argument `{name}` is {self.given[name]!r}")


@cache
def signature(text: str) -> dict[str, Any]:
    """The arguments that a text lists, and their defaults; `UNSET` where one is needed."""
    tree = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(tree, ast.Lambda)
    names = [item.arg for item in tree.args.args]
    values = [ast.literal_eval(item) for item in tree.args.defaults]
    return dict(zip(names, [UNSET] * (len(names) - len(values)) + values, strict=True))
