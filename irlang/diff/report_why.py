"""Why an element has its value: its equations with the indices put in, then the numbers.

The equations of the definition are unfolded at one element: bounds, conditions and indices are
computed, a sum is written term by term, and what is read stands once by name and once as a number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.interp.exact_scalar import apply

Array = np.ndarray[Any, np.dtype[Any]]
Env = dict[str, int]
_MOST_TERMS = 12  # of a sum that are written out
_MOST_SEEN = 1000  # of a sum that are looked at
_MOST_LINES = 10  # elements that are explained
_LINE = 96  # characters beyond which the steps stand below each other
_WIDEST = 300  # characters of an equation that are worth reading
_INFIX = frozenset({"+", "-", "*", "/", "//", "%", "and", "or", "<", "<=", ">", ">=", "==", "!="})
_JOINS = {"sum": " + ", "prod": " * "}


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of text, and whether it must be bracketed inside a larger one."""

    text: str
    loose: bool = False

    def closed(self) -> str:
        return f"({self.text})" if self.loose else self.text


def explain(
    expansion: eq.Expansion, tensors: Mapping[str, Array], output: str, index: tuple[int, ...]
) -> list[str]:
    """Lines that derive an element of a result; none where they would say too little or too much.

    tensors: the oracle's value of every tensor of the expansion, by name.
    """
    equations = {equation.target: equation for equation in expansion.equations}
    waiting, done = [(output, index)], set()
    lines: list[str] = []
    while waiting and len(lines) < _MOST_LINES:
        tensor, place = waiting.pop(0)
        equation = equations.get(tensor)
        if equation is None or (tensor, place) in done:
            continue
        done.add((tensor, place))
        env = {name: at for (name, _), at in zip(equation.binders, place, strict=True)}
        named, plain = _Writer(tensors, numbers=False), _Writer(tensors, numbers=True)
        try:
            texts = named.text(equation.body, env).text, plain.text(equation.body, env).text
        except (InvalidInput, ArithmeticError, KeyError, ValueError, IndexError):
            break  # something that one element does not say
        value = shown(np.asarray(tensors[tensor])[place])
        steps = [text for text in dict.fromkeys(texts) if len(text) <= _WIDEST and text != value]
        parts = [_place(tensor, place), *steps, *_wrapped(plain, equation, env, value)]
        line = " = ".join(parts)
        lines.append(line if len(line) <= _LINE else "\n    = ".join(parts))
        waiting += [read for read in named.read if read[0] in equations]
    return lines


def _wrapped(writer: _Writer, equation: eq.Equation, env: Env, value: str) -> list[str]:
    """The value; of a whole number that its type cannot hold, what it is and what is left of it."""
    if equation.info.kind != "int":
        return [value]
    try:
        exact = writer.value(equation.body, env)
    except (InvalidInput, ArithmeticError, ValueError):
        return [value]
    bits = DTYPES[equation.info.dtype].bits
    return [value] if str(exact) == value else [str(exact), f"{value} modulo 2^{bits}"]


def shown(number: Any) -> str:
    """A number as it is written in a report."""
    plain = number.item() if hasattr(number, "item") else number
    if isinstance(plain, bool) or not isinstance(plain, float):
        return str(plain).lower() if isinstance(plain, bool) else str(plain)
    if math.isfinite(plain) and plain == int(plain) and abs(plain) < 1e16:
        return "-0" if plain == 0 and math.copysign(1, plain) < 0 else str(int(plain))
    return repr(plain)


def _place(tensor: str, place: tuple[int, ...]) -> str:
    return f"{tensor}[{', '.join(map(str, place))}]"


class _Writer:
    """Writes an expression at known indices."""

    def __init__(self, tensors: Mapping[str, Array], *, numbers: bool) -> None:
        self.tensors = tensors
        self.numbers = numbers
        self.read: list[tuple[str, tuple[int, ...]]] = []

    def text(self, expr: eq.Expr, env: Env) -> _Part:
        """The expression as text."""
        if isinstance(expr, eq.Read):
            return self._read(expr, env)
        if isinstance(expr, eq.Reduce):
            return self._reduce(expr, env)
        if isinstance(expr, eq.Apply) and eq.reads(expr):
            return self._apply(expr, env)
        number = shown(self.value(expr, env))
        return _Part(number, number.startswith("-"))

    def _read(self, expr: eq.Read, env: Env) -> _Part:
        place = self._position(expr.index, env)
        if not _inside(place, self.tensors[expr.tensor].shape):
            return self.text(expr.default, env) if expr.default is not None else _Part("outside")
        self.read.append((expr.tensor, place))
        if not self.numbers:
            return _Part(_place(expr.tensor, place))
        number = shown(self.tensors[expr.tensor][place])
        return _Part(number, number.startswith("-"))

    def _apply(self, expr: eq.Apply, env: Env) -> _Part:
        if expr.function == "select":
            condition, yes, no = expr.args
            return self.text(yes if self.value(condition, env) else no, env)
        parts = [self.text(arg, env) for arg in expr.args]
        if expr.function in _INFIX:
            return _Part(f" {expr.function} ".join(part.closed() for part in parts), True)
        if expr.function == "neg":
            return _Part(f"-{parts[0].closed()}", True)
        return _Part(f"{expr.function}({', '.join(part.text for part in parts)})")

    def _reduce(self, expr: eq.Reduce, env: Env) -> _Part:
        if expr.body is None:
            return _Part(shown(self.value(expr, env)))
        parts = list(itertools.islice(self._terms(expr, expr.body, env), _MOST_TERMS + 1))
        rest = ["…"] if len(parts) > _MOST_TERMS else []
        del parts[_MOST_TERMS:]
        if expr.kind in _JOINS:
            if not parts:
                return _Part("0" if expr.kind == "sum" else "1")
            closed = [p.text if "*" in p.text and expr.kind == "sum" else p.closed() for p in parts]
            return _Part(_JOINS[expr.kind].join([*closed, *rest]), len(parts) > 1)
        return _Part(f"{expr.kind}({', '.join([*(p.text for p in parts), *rest])})")

    def _terms(self, expr: eq.Reduce, body: eq.Expr, env: Env) -> Iterator[_Part]:
        """What is joined; of a sum not the terms that are 0 whatever is read."""
        for number, now in enumerate(self._inner(expr, env)):
            if number == _MOST_SEEN:
                yield _Part("…")
                return
            before = len(self.read)
            part = self.text(body, now)
            if expr.kind != "sum" or part.text != "0" or len(self.read) > before:
                yield part

    def _inner(self, expr: eq.Reduce, env: Env) -> Iterator[Env]:
        def along(binders: tuple[tuple[str, eq.Expr], ...], now: Env) -> Iterator[Env]:
            if not binders:
                yield now
                return
            (name, bound), *others = binders
            for i in range(int(self.value(bound, now))):
                yield from along(tuple(others), {**now, name: i})

        for now in along(expr.binders, env):
            if expr.where is None or self.value(expr.where, now):
                yield now

    def _position(self, index: tuple[eq.Expr, ...], env: Env) -> tuple[int, ...]:
        return tuple(int(self.value(part, env)) for part in index)

    def value(self, expr: eq.Expr, env: Env) -> Any:
        """The number that an expression is."""
        match expr:
            case eq.Const() | eq.Size():
                number = expr.value
                return number if isinstance(number, (bool, int)) else float(number)
            case eq.Index():
                return env[expr.name]
            case eq.Read():
                place = self._position(expr.index, env)
                if _inside(place, self.tensors[expr.tensor].shape):
                    return self.tensors[expr.tensor][place].item()
                return self.value(expr.default, env) if expr.default is not None else math.nan
            case eq.Inside():
                return _inside(self._position(expr.index, env), self.tensors[expr.tensor].shape)
            case eq.Apply(function="select", args=(condition, yes, no)):
                return self.value(yes if self.value(condition, env) else no, env)
            case eq.Apply():
                args = [self.value(arg, env) for arg in expr.args]
                if expr.function == "/" and args[1] == 0 and args[0]:  # of a zero with its sign
                    return math.copysign(args[0], args[0] * math.copysign(1, args[1])) * math.inf
                made = apply(expr.function, args)
                return made if isinstance(made, (bool, int)) else float(made)
            case eq.Reduce(kind="count"):
                return sum(1 for _ in self._inner(expr, env))
            case eq.Reduce(kind="sum" | "prod", body=body) if body is not None:
                terms = (self.value(body, now) for now in self._inner(expr, env))
                return sum(terms) if expr.kind == "sum" else math.prod(terms)
        raise ValueError(expr)


def _inside(place: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(0 <= i < n for i, n in zip(place, shape, strict=True))
