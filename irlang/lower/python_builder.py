"""Python text under construction: what the builders of all Python targets have in common.

Expressions nest until a line is long, and then get a name; the same expression is written once.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.names import Names
from irlang.lower.value import Array, Builder, Literal, Value, broadcast

_WIDTH = 60  # characters of an expression that may stand inside another
_NAMES = re.compile(r"[^\W\d]\w*")
_INLINE = 64  # elements of an array that may stand in the text; longer ones lie beside it
_INFIX = {
    "+": "+", "-": "-", "*": "*", "/": "/", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "==": "==", "!=": "!=", "and": "&", "or": "|",
}  # fmt: skip


class PythonBuilder(Builder, ABC):
    """Lines of a function's body, and the arrays that it needs beside it.

    prefix: of the element types of the framework; dtypes: their names where they differ from
    NumPy's; lacks: those that it does not compute in, and why. Subclasses spell the primitives of
    `irlang.lower.value.Builder`. blunt: the functions
    that were spelt of which the framework has no derivative; sloped: whether one is asked for.
    """

    framework = ""  # its name for people
    prefix = ""
    lacks: Mapping[str, str] = MappingProxyType({})
    copied = "{}"  # a tensor of its own that is equal
    detached = "{}"  # the same, which gradients do not flow through

    def __init__(self, names: Names) -> None:
        self.names = names
        self.lines: list[str] = []
        self.constants: dict[str, tuple[str, Array]] = {}
        self.blunt: set[str] = set()
        self.sloped = False
        self.bold = self.dared = False
        # Whether tensors are to lie in memory in another order than that of axes; and one does.
        self.strided = self.laid = False
        self.release: tuple[int, ...] = ()  # of the framework; none says that it is the current one
        self._named: dict[str, Value] = {}
        # What there is with its channels last, by the text of the same with its channels second.
        self._last: dict[str, Value] = {}
        # What a conversion was made of, by the text of what it gives.
        self.unconverted: dict[str, Value] = {}
        self.left: set[str] = set()  # the operators of conversions that were left to a word
        # What makes that where it is asked for.
        self._ahead: dict[str, Callable[[], Value | None]] = {}

    # ---- text

    def dtype(self, name: str) -> str:
        """The framework's name of an element type; a string, where it has no prefix."""
        own = DTYPES[name].numpy.name
        return f"{self.prefix}.{own}" if self.prefix else f'"{own}"'

    def emit(
        self, text: str, shape: tuple[int, ...], dtype: str, *, atom: bool = True, hint: str = "v"
    ) -> Value:
        """An expression, under a name when it is long."""
        value = Value(text, shape, dtype, atom)
        return self.let(value, hint) if len(text) > _WIDTH else value

    def let(self, value: Value, hint: str) -> Value:
        """`value` under a name of its own; one that has a name keeps it."""
        if value.text.isidentifier() or value.literal is not None:
            return value
        known = self._named.get(value.text)
        if known is None:
            known = self.assign(self.names.fresh(hint), value)
            self._named[value.text] = known
        return known

    def lay(self, value: Value) -> bool:
        """Writes a line that puts what is given into another order in memory; False where that is
        not done, as most frameworks know but one.
        """
        del value
        return False

    def result(self, value: Value, name: str) -> Value:
        """`value` under a name like the source's, with its type beside it."""
        if value.text.isidentifier():
            return value
        value = self.solid(value)
        named = self.names.fresh(name)
        shape = ", ".join(map(str, value.shape))
        self.lines.append(f"{named} = {value.text}  # {value.dtype}[{shape}]")
        return self._known(named, value)

    def assign(self, name: str, value: Value) -> Value:
        """A line `name = value`."""
        self.lines.append(f"{name} = {value.text}")
        return self._known(name, value)

    def _known(self, name: str, value: Value) -> Value:
        """`value` by its name, of which is known what was known of its text."""
        if value.text in self._last:
            self._last[name] = self._last[value.text]
        if value.text in self._ahead:
            self._ahead[name] = self._ahead[value.text]
        return Value(name, value.shape, value.dtype)

    def first(self, value: Value, hint: str) -> Value:
        """What has its channels last with its channels second."""
        inner = self.let(value, hint)
        found = self.transpose(inner, (0, inner.rank - 1, *range(1, inner.rank - 1)))
        self._last[found.text] = inner
        return found

    def last(self, value: Value) -> Value | None:
        """The same with its channels last, where the program has that already."""
        return self._last.get(value.text)

    def ahead(self, value: Value, made: Callable[[], Value | None]) -> None:
        """What makes `value` with its channels last, where that is asked for."""
        self._ahead[value.text] = made

    def pulled(self, value: Value) -> Value | None:
        """The same with its channels last, where the program has that, or can have it."""
        made = self._ahead.pop(value.text, None)
        found = made() if made is not None and value.text not in self._last else None
        if found is not None:
            self._last[value.text] = self.let(found, f"{value.text}_last")
        return self.last(value)

    def needed(self, returned: Sequence[str]) -> list[str]:
        """The lines, but for those that only reorder or convert what nothing reads so."""
        spare = self._last.keys() | self.unconverted.keys()
        if not spare:
            return self.lines
        kept: list[str] = []
        read = set(_NAMES.findall(" ".join(returned)))
        for line in reversed(self.lines):
            name = line.partition(" = ")[0]
            if name in read or name not in spare:
                kept.append(line)
                read.update(_NAMES.findall(line.partition(" = ")[2] or line))
        return kept[::-1]

    def several(self, text: str, *names: str) -> list[str]:
        """A line that unpacks what gives several results, each under a name like one of `names`."""
        fresh = [self.names.fresh(name) for name in names]
        self.lines.append(f"{', '.join(fresh)}{',' * (len(fresh) == 1)} = {text}")
        return fresh

    def once(self, text: str, shape: tuple[int, ...], dtype: str, hint: str) -> Value:
        """An expression that gives something else each time, under a name that nothing shares."""
        return self.assign(self.names.fresh(hint), Value(text, shape, dtype))

    def apart(self, value: Value, name: str) -> Value:
        """`value` as a tensor of its own, so that what flows back to it is told from others."""
        return self.once(self._in(self.copied, value), value.shape, value.dtype, name)

    def tapped(self, value: Value, name: str) -> Value:
        """The same where a function is differentiated, and not what it has done: `watched` is told
        the name.
        """
        named = self.names.fresh(name)
        text = f'watched("{named}", {self.solid(value).text})'
        return self.assign(named, Value(text, value.shape, value.dtype))

    def detach(self, value: Value) -> Value:
        """`value` as a constant, by which nothing is differentiated."""
        return self.emit(self._in(self.detached, value), value.shape, value.dtype)

    def _in(self, template: str, value: Value) -> str:
        """A text that holds `value` as a tensor, which stands before a dot in some."""
        solid = self.solid(value)
        return template.format(self.inner(solid) if template.startswith("{}") else solid.text)

    def inner(self, value: Value) -> str:
        """The text of `value` where an operator stands beside it."""
        return value.text if value.atom else f"({value.text})"

    # ---- numbers

    def constant(self, array: Array, dtype: str) -> Value:
        """A number inline, a short array in the text, a long one beside the program."""
        kind = DTYPES[dtype].kind
        if array.ndim == 0:
            python = {"real": float, "int": int, "bool": bool}[kind](array)
            return self.scalar(python, dtype)
        if array.size > _INLINE and not is_range(array):
            return self._beside(array, dtype)
        return self.array(array, dtype)

    def scalar(self, number: Literal, dtype: str) -> Value:
        """A single number, as Python's own."""
        text = literal(number)
        return Value(text, (), dtype, not text.startswith("-"), number)

    def _beside(self, array: Array, dtype: str) -> Value:
        stored = np.asarray(array, order="C").astype(DTYPES[dtype].numpy)
        for name, (_, other) in self.constants.items():
            alike = other.dtype == stored.dtype and other.shape == stored.shape
            if alike and other.tobytes() == stored.tobytes():
                return Value(name, stored.shape, dtype)
        name = self.names.fresh("table")
        self.constants[name] = (dtype, stored)
        return Value(name, stored.shape, dtype)

    @abstractmethod
    def array(self, array: Array, dtype: str) -> Value:
        """A short array, or an arithmetic progression, as text."""

    def full(self, value: Value) -> str:
        """The text of `value` as a tensor, where the framework takes no bare number."""
        return value.text if value.literal is None else self.tensor(value)

    def solid(self, value: Value) -> Value:
        """`value`, as a tensor where it is a number written inline."""
        if value.literal is None:
            return value
        return Value(self.tensor(value), value.shape, value.dtype)

    @abstractmethod
    def tensor(self, value: Value) -> str:
        """The text of a literal as a tensor of no axes."""

    # ---- what is spelt alike

    def infix(self, function: str, args: Sequence[Value]) -> Value | None:
        """Arithmetic, comparison and logic that Python has signs for."""
        shape = broadcast(args)
        result = args[0].dtype if function in ("+", "-", "*", "/", "neg") else "bool"
        if function == "neg":
            return self.emit(f"-{self.inner(args[0])}", shape, result, atom=False)
        if function not in _INFIX:
            return None
        left, right = map(self.inner, args)
        if all(arg.literal is not None for arg in args):
            left = self.full(args[0])
        return self.emit(f"{left} {_INFIX[function]} {right}", shape, result, atom=False)


def literal(number: Literal) -> str:
    """A Python expression for a number; infinities and NaN are names that NumPy has."""
    if isinstance(number, float) and not math.isfinite(number):
        return "np.nan" if math.isnan(number) else "np.inf" if number > 0 else "-np.inf"
    return repr(number)


def is_range(array: Array) -> bool:
    """Whether `range` says it shorter than a list does."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) < 3:
        return False
    steps = np.diff(array)
    return bool((steps == steps[0]).all()) and int(steps[0]) > 0


def listed(array: Array) -> str:
    """A list of numbers as text, nested as the array is."""
    if array.ndim == 0:
        return literal(array.item())
    return "[" + ", ".join(map(listed, array)) + "]"


def axes_text(axes: Sequence[int]) -> str:
    """One axis as a number, several as a tuple."""
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


def listing(sizes: Sequence[int]) -> str:
    """Sizes as arguments; none of them as an empty tuple."""
    return ", ".join(str(int(size)) for size in sizes) or "()"


def shape_text(shape: Sequence[int]) -> str:
    """A shape as Python writes it."""
    return str(tuple(int(size) for size in shape))


def sliced(axis: int, text: str) -> str:
    """`[:, :, text]`: a subscript at one axis."""
    return "[" + ":, " * axis + text + "]"
