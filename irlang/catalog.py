"""The definitions that irlang ships (`irlang/ops/*.nnir`), and those of a user's file over them.

A built-in definition is parsed when somebody asks for it: most commands need a few of them, and
all take most of a second.
"""

from __future__ import annotations

import copyreg
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import irlang
from irlang import ast
from irlang.parser import parse

# In the text of a definition: what is said and does not mean anything, and a list of words.
_SAID = re.compile(r'"""[\s\S]*?"""|"[^"\n]*"|#.*')
_CHOICES = re.compile(r":\s*\{([^{}:]*)\}")


@dataclass(slots=True)
class _Entry:
    """A definition, or the text that it will be: lines of a file, from after its line `before`.

    functions: what definitions of its catalogue may use. words: its `choices`, once they are known.
    """

    family: str
    functions: Mapping[str, ast.Let]
    made: ast.Op | None = None
    text: str = ""
    file: str = ""
    before: int = 0
    words: frozenset[str] | None = None

    @property
    def op(self) -> ast.Op:
        """The definition, the same one each time."""
        if self.made is None:
            (op,) = self.parse().ops
            self.made = _whole(op, self.functions)
        return self.made

    @property
    def choices(self) -> frozenset[str]:
        """What attributes that are one of several words may be, without parsing for it."""
        if self.words is None:
            if self.made is not None:
                lists = [attr.type.choices for attr in self.made.attrs]
            else:
                found = _CHOICES.findall(_SAID.sub("", self.text))
                lists = [tuple(map(str.strip, words.split(","))) for words in found]
            self.words = frozenset().union(*lists)
        return self.words

    def parse(self) -> ast.File:
        """The text, at its place in the file."""
        return parse("\n" * self.before + self.text, self.file)


class Catalog:
    """Definitions by name; the later of two wins, so that a file's own come before the built-in.

    functions: what a `let f(a) = …` outside the definitions names; a definition that uses one is
    given it as a statement of its own, so that whoever reads a definition reads it whole.
    """

    def __init__(
        self, ops: Iterable[tuple[str, ast.Op]], functions: Mapping[str, ast.Let] | None = None
    ) -> None:
        self.functions = dict(functions or {})
        self._entries: dict[str, _Entry] = {}
        self._names: dict[str, frozenset[str]] | None = None
        self._choices: frozenset[str] | None = None
        for family, op in ops:
            self._entries[op.name] = _Entry(family, self.functions, _whole(op, self.functions))

    def op(self, name: str) -> ast.Op | None:
        """The definition of that name."""
        entry = self._entries.get(name)
        return None if entry is None else entry.op

    def __iter__(self) -> Iterator[ast.Op]:
        return (entry.op for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def names(self) -> list[str]:
        """The names of all definitions."""
        return list(self._entries)

    def choices(self) -> frozenset[str]:
        """The words that attributes of any definition may be."""
        if self._choices is None:
            self._choices = frozenset().union(*(one.choices for one in self._entries.values()))
        return self._choices

    def family(self, name: str) -> str:
        """The family of the definition of that name: what the file that holds it is called."""
        return self._entries[name].family

    def families(self) -> dict[str, list[str]]:
        """The names of each family's definitions."""
        found: dict[str, list[str]] = {}
        for name, entry in self._entries.items():
            found.setdefault(entry.family, []).append(name)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has the built-in definitions: only those that are over them are sent."""
        known = builtin()
        if self is known:
            return builtin, ()
        if not known._entries.keys() <= self._entries.keys():
            return object.__reduce_ex__(self, 2)  # type: ignore[return-value]
        own = [
            (entry.family, entry.op)
            for name, entry in self._entries.items()
            if known._entries.get(name) is not entry
        ]
        return _over_builtin, (own, self.functions)

    def with_file(self, file: ast.File) -> Catalog:
        """This catalogue and the definitions of a file."""
        if not file.ops:
            return self
        functions = {**self.functions, **{item.name: item for item in file.functions}}
        return self._with(((Path(file.path).stem, op) for op in file.ops), functions)

    def _with(self, ops: Iterable[tuple[str, ast.Op]], functions: Mapping[str, ast.Let]) -> Catalog:
        """This catalogue and others over it, which may use `functions`; its own keep theirs."""
        found = Catalog(ops, functions)
        found._entries = {**self._entries, **found._entries}
        return found

    def called(self, name: str) -> list[str]:
        """Definitions of that name, and those that say that a framework calls them so, in order.

        Case, underscores and a number of axes (`Conv2D`) make no difference.
        """
        wanted = _bare(name)
        if not wanted:
            return []
        if self._names is None:
            self._names = {op.name: _names_in(op.doc) for op in self}
        own = [key for key in self._entries if _bare(key) == wanted]
        return own or [key for key, names in self._names.items() if wanted in names]

    def nearest(self, name: str, more: Iterable[str] = ()) -> list[str]:
        """Names that are meant by `name` or look like it, best first."""
        known = [*self._entries, *more]
        close = difflib.get_close_matches(_snake(name), known, n=3, cutoff=0.55)
        return [*dict.fromkeys([*self.called(name), *close])][:3]


_NAMES = re.compile(r"(?:\b(?:ONNX|Keras|Torch|torch|tf|NumPy)[ .])?\b[A-Za-z_]\w*(?:\.\w+)*")


def _names_in(doc: str) -> frozenset[str]:
    """The names of other systems in a text: after a system's own name, or spelt as no word is."""
    found = set()
    for match in _NAMES.finditer(doc):
        text = match.group()
        last = re.split(r"[ .]", text)[-1]
        if text != last or "_" in last or re.search(r"\w[A-Z0-9]", last):
            found.add(_bare(last))
    return frozenset(found)


def _bare(name: str) -> str:
    """A name without case, underscores, module and number of axes."""
    return re.sub(
        r"_?[1-3]d$|(?<=[A-Za-z])[1-3]D(?=[A-Z]|$)|_", "", name.rpartition(".")[2]
    ).lower()


def _snake(name: str) -> str:
    """`LayerNormalization` as `layer_normalization`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _whole(op: ast.Op, functions: Mapping[str, ast.Let]) -> ast.Op:
    """A definition with the functions that it uses, itself or by others, before its statements.

    A function of its own comes before one of the same name outside; where both are used, both are
    there, and that is a fault of the definition.
    """
    if not functions:
        return op
    own = {item.name for item in op.body if isinstance(item, ast.Let)}
    used = _called(op, functions) - own
    while more := {name for known in used for name in _called(functions[known], functions)} - used:
        used |= more
    if not used:
        return op
    shared = (item for name, item in functions.items() if name in used)
    body = (*(replace(item, comments=(), trailing="") for item in shared), *op.body)
    return replace(op, body=body)


def _called(node: ast.Node, functions: Mapping[str, ast.Let]) -> set[str]:
    calls = {part.function for part in ast.walk(node) if isinstance(part, ast.Call)}
    return calls & functions.keys()


def ops_folder() -> Path:
    """Where the built-in definitions are."""
    return Path(irlang.__file__).parent / "ops"


# In the built-in files a definition ends with the first line that closes a brace.
_ITEM = re.compile(r"[\s\S]*?^op (\w+)[\s\S]*?^\}\n", re.MULTILINE)
_FUNCTION = re.compile(r"^let ", re.MULTILINE)


@cache
def builtin() -> Catalog:
    """The built-in catalogue; a family is the name of the file that holds it."""
    found = Catalog(())
    for path in sorted(ops_folder().glob("*.nnir")):
        text = path.read_text("utf-8")
        file = f"irlang/ops/{path.name}"
        for item in _ITEM.finditer(text):
            before = text.count("\n", 0, item.start())
            entry = _Entry(path.stem, found.functions, None, item[0], file, before)
            found._entries[item[1]] = entry
            if _FUNCTION.search(item[0]):
                found.functions.update((one.name, one) for one in entry.parse().functions)
    return found


def _over_builtin(own: list[tuple[str, ast.Op]], functions: Mapping[str, ast.Let]) -> Catalog:
    return builtin()._with(own, functions)


def _sent(op: ast.Op) -> tuple[Any, ...]:
    """What `pickle` writes of a definition: of a built-in one its name, and it stays the one."""
    if builtin().op(op.name) is op:
        return _named, (op.name,)
    return object.__reduce_ex__(op, 2)  # type: ignore[return-value]


def _named(name: str) -> ast.Op:
    op = builtin().op(name)
    assert op is not None, name
    return op


copyreg.pickle(ast.Op, _sent)
