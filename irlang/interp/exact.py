"""The exact meaning: every element on its own, in real arithmetic of as many digits as asked for.

Slow and plain on purpose: it is what the other meanings are tested against, so it shares nothing
with them but the equations and the table of scalar functions. An element is computed when it is
first read. Reals are mpmath numbers whose range is that of IEEE binary128 (beyond it they are
infinite or zero); there is one zero, without a sign. Integers are Python's, and wrap when they are
stored. Conversions to an integer truncate; what no 64 bits can hold, NaN included, becomes the
least 64-bit integer. An integer divided by zero gives zero, as NumPy has it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from irlang import equations as eq
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.dtypes import DTYPES, integer_range
from irlang.interp.draws import completed
from irlang.interp.exact_scalar import Value, number, scalar, whole, whole_or_least

Environment = dict[str, int]
Code = Callable[[Environment], Value]

STEP_LIMIT = 20_000_000  # scalar steps; about a microsecond each
_FRAMES = 500  # of Python's stack that nested reads may take


@dataclass(frozen=True, slots=True)
class Exact:
    """A tensor: its elements in row-major order (mpf, int or bool, by the kind of its type)."""

    info: eq.TensorInfo
    values: tuple[Value, ...]

    def numpy(self) -> np.ndarray[Any, Any]:
        """As an array: reals rounded to float64, integers in their own type, booleans."""
        dtype = DTYPES[self.info.dtype]
        if dtype.kind == "real":
            flat = np.array([float(value) for value in self.values], dtype=np.float64)
        else:
            flat = np.array(self.values, dtype=dtype.numpy)
        return flat.reshape(self.info.shape)


def evaluate(
    expansion: eq.Expansion,
    inputs: Mapping[str, Any],
    digits: int = 50,
    limit: int = STEP_LIMIT,
) -> dict[str, Exact]:
    """Every tensor of the expansion, by name.

    inputs: arrays or nested lists, mpmath numbers allowed, of the shapes in `expansion.tensors`.
    Raises InvalidInput: a check's own code, `run.input` (missing or of another shape),
    `run.outside`, `run.none` (`the` finds nothing), `run.empty` (argmax of nothing), `run.work`
    (more than `limit` steps).
    """
    with mpmath.workdps(digits):
        machine = _Machine(expansion, inputs, limit)
        machine.check(expansion)
        for equation in expansion.equations:
            machine.complete(equation.target)
        return {
            name: Exact(expansion.tensors[name], tuple(values))
            for name, values in machine.values.items()
        }


class _Later(Exception):
    """An element is too deep in other reads: it has to be computed before its reader."""

    def __init__(self, tensor: str, offset: int) -> None:
        super().__init__(tensor, offset)
        self.element = tensor, offset


class _Machine:
    """Elements that are known so far, and the code of the equations that give the others."""

    def __init__(self, expansion: eq.Expansion, inputs: Mapping[str, Any], limit: int) -> None:
        self.tensors = expansion.tensors
        self.values: dict[str, list[Value]] = {}
        self._left = limit
        self._limit = limit
        self._open: set[tuple[str, int]] = set()
        given = completed(expansion, inputs)
        for name in (*expansion.inputs, *(one.tensor for one in expansion.drawn)):
            self.values[name] = _input(name, self.tensors[name], given)
        self._code: dict[str, tuple[eq.Equation, Code, int]] = {}
        deepest = 1
        for equation in expansion.equations:
            size = math.prod(equation.info.shape)
            self.spend(size)
            self.values[equation.target] = [None] * size
            self._code[equation.target] = (
                equation,
                self.compile(equation.body),
                _size(equation.body),
            )
            deepest = max(deepest, _depth(equation.body))
        self._nesting = max(1, _FRAMES // (deepest + 2))

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise fail(
                "run.work",
                f"more than {self._limit} scalar steps: too much for exact evaluation",
                help="evaluate smaller shapes",
            )

    # ---- checks and elements

    def check(self, expansion: eq.Expansion) -> None:
        """Raises with every violated check; those on inputs alone come first."""
        given = frozenset(expansion.inputs)
        for early in (True, False):
            faults = [
                Diagnostic(check.code, check.message)
                for check in expansion.checks
                if (eq.reads(check.condition) <= given) is early and not self._holds(check)
            ]
            if faults:
                raise InvalidInput(*faults)

    def _holds(self, check: eq.Check) -> bool:
        for name in sorted(eq.reads(check.condition) & self._code.keys()):
            self.complete(name)
        return bool(self.compile(check.condition)({}))

    def complete(self, name: str) -> None:
        """Computes every element of a tensor, and whatever they need."""
        values = self.values[name]
        for offset in range(len(values)):
            pending = [(name, offset)]
            while pending:
                tensor, position = pending[-1]
                self._open.clear()
                try:
                    if self.values[tensor][position] is None:
                        self._element(tensor, position)
                except _Later as later:
                    if later.element in pending:
                        raise _circle(later.element[0]) from None
                    pending.append(later.element)
                else:
                    pending.pop()

    def _element(self, tensor: str, offset: int) -> Value:
        """An element that is not known yet."""
        key = tensor, offset
        if key in self._open:
            raise _circle(tensor)
        if len(self._open) >= self._nesting:
            raise _Later(tensor, offset)
        equation, code, size = self._code[tensor]
        self.spend(size)
        environment: Environment = {}
        rest = offset
        for (name, _), extent in zip(
            reversed(equation.binders), reversed(equation.info.shape), strict=True
        ):
            rest, environment[name] = divmod(rest, extent)
        self._open.add(key)
        value = _stored(code(environment), equation.info)
        self._open.remove(key)
        self.values[tensor][offset] = value
        return value

    # ---- expressions

    def compile(self, expr: eq.Expr) -> Code:
        """A function from the values of the indices to the value of the expression."""
        match expr:
            case eq.Const() | eq.Size():
                constant = number(expr.value)
                return lambda _: constant
            case eq.Index():
                name = expr.name
                return lambda environment: environment[name]
            case eq.Inside():
                shape = self.tensors[expr.tensor].shape
                index = [self.compile(part) for part in expr.index]
                return lambda environment: _inside([whole(i(environment)) for i in index], shape)
            case eq.Read():
                return self._read(expr)
            case eq.Apply():
                return self._apply(expr)
            case eq.Reduce():
                return self._reduce(expr)

    def _read(self, expr: eq.Read) -> Code:
        shape = self.tensors[expr.tensor].shape
        values = self.values
        index = [self.compile(part) for part in expr.index]
        default = None if expr.default is None else self.compile(expr.default)
        along = list(zip(shape, index, strict=True))

        def read(environment: Environment) -> Value:
            offset = 0
            for extent, i in along:
                at = i(environment)
                if at.__class__ is not int:
                    at = whole(at)
                if at is None or not 0 <= at < extent:
                    break
                offset = offset * extent + at
            else:
                value = values[expr.tensor][offset]
                return self._element(expr.tensor, offset) if value is None else value
            if default is not None:
                return default(environment)
            position = [whole(i(environment)) for i in index]
            raise fail(
                "run.outside",
                f"`{expr.tensor}` of shape {list(shape)} is read at {position}",
                help="say what is read there with `??`",
            )

        return read

    def _apply(self, expr: eq.Apply) -> Code:
        args = [self.compile(arg) for arg in expr.args]
        if expr.function == "select":
            condition, yes, no = args
            return lambda environment: (yes if condition(environment) else no)(environment)
        if expr.function == "and":
            return lambda environment: all(arg(environment) for arg in args)
        if expr.function == "or":
            return lambda environment: any(arg(environment) for arg in args)
        function = scalar(expr.function)
        return lambda environment: function([arg(environment) for arg in args])

    def _reduce(self, expr: eq.Reduce) -> Code:
        bounds = [(name, self.compile(bound)) for name, bound in expr.binders]
        where = None if expr.where is None else self.compile(expr.where)
        body = None if expr.body is None else self.compile(expr.body)
        size = _size(expr)
        reduction = _REDUCTIONS[expr.kind]

        def values(environment: Environment) -> Iterator[tuple[int, Value]]:
            for inner in _ranges(bounds, environment):
                self.spend(size)
                if where is None or where(inner):
                    place = inner[bounds[0][0]] if bounds else 0
                    yield place, True if body is None else body(inner)

        return lambda environment: reduction(values(environment))


def _ranges(bounds: Sequence[tuple[str, Code]], environment: Environment) -> Iterator[Environment]:
    """Environments for all values of the binders, the last going fastest."""
    if not bounds:
        yield environment
        return
    name, bound = bounds[0]
    for i in range(whole(bound(environment)) or 0):
        yield from _ranges(bounds[1:], {**environment, name: i})


# ---- reductions -------------------------------------------------------------------------------

Terms = Iterator[tuple[int, Value]]


def _folded(function: str, start: Value) -> Callable[[Terms], Value]:
    apply = scalar(function)

    def reduce(terms: Terms) -> Value:
        result = start
        for _, value in terms:
            result = apply([result, value])
        return result

    return reduce


def _extremum(function: str, empty: Value) -> Callable[[Terms], Value]:
    apply = scalar(function)

    def reduce(terms: Terms) -> Value:
        first = next(terms, None)
        if first is None:
            return mpmath.mpf(empty)
        result = first[1]
        for _, value in terms:
            result = apply([result, value])
        return result

    return reduce


def _place(better: Callable[[Value, Value], bool], name: str) -> Callable[[Terms], Value]:
    def reduce(terms: Terms) -> Value:
        best: tuple[int, Value] | None = None
        for index, value in terms:
            if (
                best is None
                or better(value, best[1])
                or mpmath.isnan(value) > mpmath.isnan(best[1])
            ):
                best = index, value
            if mpmath.isnan(best[1]):
                break
        if best is None:
            raise fail("run.empty", f"`{name}` over nothing has no value")
        return best[0]

    return reduce


def _the(terms: Terms) -> Value:
    for _, value in terms:
        return value
    raise fail("run.none", "`the` finds no value that satisfies its condition")


_REDUCTIONS: dict[str, Callable[[Terms], Value]] = {
    "sum": _folded("+", 0),
    "prod": _folded("*", 1),
    "max": _extremum("max", -math.inf),
    "min": _extremum("min", math.inf),
    "all": lambda terms: all(value for _, value in terms),
    "any": lambda terms: any(value for _, value in terms),
    "count": lambda terms: sum(1 for _ in terms),
    "argmax": _place(operator.gt, "argmax"),
    "argmin": _place(operator.lt, "argmin"),
    "the": _the,
}


# ---- storing ----------------------------------------------------------------------------------


def _inside(position: Sequence[int | None], shape: Sequence[int]) -> bool:
    return all(i is not None and 0 <= i < extent for i, extent in zip(position, shape, strict=True))


def _stored(value: Value, info: eq.TensorInfo) -> Value:
    """What an element of that type holds when `value` is assigned to it."""
    if info.kind == "bool":
        return bool(value != 0)
    if info.kind == "real":
        return mpmath.mpf(int(value)) if isinstance(value, int) else value
    least, largest = integer_range(info.dtype)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= largest:
        return value  # as it is: an integer may know what it was made of
    if info.dtype == "u64" and not isinstance(value, int) and 2**63 <= value < 2**64:
        return int(value)
    return (whole_or_least(value) - least) % (largest - least + 1) + least


def _input(name: str, info: eq.TensorInfo, inputs: Mapping[str, Any]) -> list[Value]:
    if name not in inputs:
        raise fail("run.input", f"no value is given for `{name}`")
    array = np.asarray(inputs[name])
    if array.shape != info.shape:
        raise fail(
            "run.input", f"`{name}` must have the shape {list(info.shape)}, not {list(array.shape)}"
        )
    if array.dtype.kind not in "biufO":  # float16, bfloat16 and float32 are all exact in float64
        array = array.astype(np.float64)
    return [_stored(number(value), info) for value in array.reshape(-1).tolist()]


def _circle(tensor: str) -> InvalidInput:
    return fail("definition.recurrence", f"an element of `{tensor}` needs itself")


def _size(expr: eq.Expr) -> int:
    return sum(1 for _ in eq.walk(expr))


def _depth(expr: eq.Expr) -> int:
    frames = 3 + len(expr.binders) if isinstance(expr, eq.Reduce) else 1
    return frames + max(map(_depth, eq.children(expr)), default=0)
