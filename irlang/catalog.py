"""The definitions that irlang ships (`irlang/ops/*.nnir`), and those of a user's file over them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import irlang
from irlang import ast
from irlang.parser import parse


class Catalog:
    """Definitions by name; the later of two wins, so that a file's own come before the built-in."""

    def __init__(self, ops: Iterable[tuple[str, ast.Op]]) -> None:
        self._ops: dict[str, ast.Op] = {}
        self.families: dict[str, str] = {}
        for family, op in ops:
            self._ops[op.name] = op
            self.families[op.name] = family

    def op(self, name: str) -> ast.Op | None:
        """The definition of that name."""
        return self._ops.get(name)

    def __iter__(self) -> Iterator[ast.Op]:
        return iter(self._ops.values())

    def __len__(self) -> int:
        return len(self._ops)

    def with_file(self, file: ast.File) -> Catalog:
        """This catalogue and the definitions of a file."""
        if not file.ops:
            return self
        own = ((Path(file.path).stem, op) for op in file.ops)
        return Catalog([*((self.families[op.name], op) for op in self), *own])

    def nearest(self, name: str, more: Iterable[str] = ()) -> list[str]:
        """Names that look like `name`, best first."""
        return difflib.get_close_matches(name, [*self._ops, *more], n=3, cutoff=0.55)


def ops_folder() -> Path:
    """Where the built-in definitions are."""
    return Path(irlang.__file__).parent / "ops"


@cache
def builtin() -> Catalog:
    """The built-in catalogue; a family is the name of the file that holds it."""
    return Catalog(
        (path.stem, op)
        for path in sorted(ops_folder().glob("*.nnir"))
        for op in parse(path.read_text("utf-8"), f"irlang/ops/{path.name}").ops
    )
