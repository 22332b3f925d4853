"""Expressions of equations as terms: what is known is computed, the rest is spelt."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DTYPES, integer_range
from irlang.kinds import join
from irlang.kinds import kind as kind_of
from irlang.lower.gather import gather
from irlang.lower.reductions import reduction
from irlang.lower.terms import Axes, Known, Term, Traced, number, signed
from irlang.lower.value import Array, Builder, Unsupported, Value
from irlang.scalar import SCALARS, WHOLE

_KNOWN_LIMIT = 1 << 24  # elements of what is computed at lowering time
_TRACED_LIMIT = 1 << 26  # elements of a tensor on the way, of which a target may hold a few
# Functions whose slope may be infinite, or the slope of which overflows: by which argument; and a
# number at which it is finite, where 0.5 is none.
_STEEP = {
    **dict.fromkeys(("log", "log1p", "sqrt", "rsqrt", "pow", "asin", "acos", "acosh", "atanh"), 0),
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh", "erfcx", "erfinv", "ndtri", "lgamma"), 0),
    **dict.fromkeys(("/", "polygamma"), 1),
}
_TAME = {"acosh": 2.0}
_GROWING = frozenset(("+", "-", "*", "neg", "abs", "sq", "//", "ceildiv"))
_COUNTING = _GROWING | {"%"}
_BEYOND = "its definition counts beyond 64 bits"
_SAFE = 2.0**31  # of integers below it, the results of these are in 64 bits
_FAR = 2**62  # from which on a number that grows by what is not known may leave 64 bits
_WHOLE = frozenset(("floor", "ceil", "round", "trunc"))
# What gives the same bits with a sign as without.
_WRAPPING = WHOLE - {"shift_right"} | frozenset(
    ("+", "-", "*", "neg", "sq", "==", "!=", "select", "and", "or", "not")
)


class Expressions(ABC):
    """The terms of one expansion.

    order: the bound indices in scope, outermost first, which is the order of axes everywhere;
    fixed: those that have a single value now (the step of a recurrence). real: the type of reals.
    guarded: whether what is read may be thrown away, so that it may lie outside. known, partial:
    tensors that are known, and those of a recurrence by their axis and its steps so far. sloped:
    whether gradients are asked for; arms: then, the conditions under which a choice takes what is
    being spelt, and whether it does so where they hold. Where it is not taken, a function is given
    a number at which it has a slope: an infinite one times 0 would be NaN.
    """

    def __init__(
        self,
        builder: Builder,
        tensors: dict[str, eq.TensorInfo],
        values: dict[str, Value],
        hint: str,
        results: Mapping[str, str],
    ) -> None:
        self.builder = builder
        self.tensors = tensors
        self.values = values
        self.known: dict[str, Array] = {}
        self.partial: dict[str, tuple[int, dict[int, Value]]] = {}
        self.hint = hint
        self.results = results
        self.guarded = False
        self.sloped = False
        self.arms: list[tuple[Term, bool]] = []
        self.real = "f64"
        self.order: list[str] = []
        self.extents: dict[str, int] = {}
        self.fixed: dict[str, int] = {}

    @abstractmethod
    def source(self, name: str) -> Value:
        """The whole tensor of that name."""

    # ---- terms and axes

    def union(self, terms: Sequence[Term]) -> Axes:
        """The axes of all terms, in the order of the context."""
        found = {axis for term in terms for axis in term.axes}
        return tuple(axis for axis in self.order if axis in found)

    def array(self, term: Known, axes: Axes) -> Array:
        """A known term over `axes`, with length 1 where it does not depend on one."""
        shape = tuple(self.extents[axis] if axis in term.axes else 1 for axis in axes)
        return term.array.reshape(shape)

    def over(self, term: Term, axes: Axes, dtype: str) -> Value:
        """A term as a value that broadcasts over `axes`."""
        if isinstance(term, Known):
            lead = next((i for i, axis in enumerate(axes) if axis in term.axes), len(axes))
            return self.builder.constant(_within(self.array(term, axes[lead:]), dtype), dtype)
        value = self.builder.cast(term.value, dtype)
        lead = next((i for i, axis in enumerate(axes) if axis in term.axes), len(axes))
        shape = tuple(self.extents[axis] if axis in term.axes else 1 for axis in axes[lead:])
        return self.reshaped(value, shape)

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`value` in another shape of as many elements."""
        return value if value.shape == shape else self.builder.reshape(value, shape)

    def dtype(self, kind: str | None) -> str:
        """In what a kind is computed here."""
        return {"real": self.real, "int": "i64", "bool": "bool"}[kind or "real"]

    def limited(self, axes: Axes) -> Axes:
        """`axes`, unless a table over them is too large to stand in a program."""
        size = math.prod(self.extents[axis] for axis in axes)
        if size > _KNOWN_LIMIT:
            raise Unsupported(f"a table of {size} elements would have to stand in the program")
        return axes

    def held(self, axes: Axes) -> Axes:
        """`axes`, unless a tensor over them is more than a target should have to hold."""
        size = math.prod(self.extents[axis] for axis in axes)
        if size > _TRACED_LIMIT:
            raise Unsupported(f"its definition would take a tensor of {size} elements")
        return axes

    # ---- expressions

    def term(self, expr: eq.Expr) -> Term:
        """The value of an expression."""
        match expr:
            case eq.Const() | eq.Size():
                return number(expr.value)
            case eq.Index():
                if expr.name in self.fixed:
                    return number(self.fixed[expr.name])
                extent = np.arange(self.extents[expr.name], dtype=np.int64)
                return Known(extent, (expr.name,))
            case eq.Read():
                return self._read(expr)
            case eq.Inside():
                index = [self.term(part) for part in expr.index]
                return self.inside(index, self.tensors[expr.tensor].shape)
            case eq.Apply():
                return self._apply(expr)
            case eq.Reduce():
                return reduction(self, expr)

    def _apply(self, expr: eq.Apply) -> Term:
        if self.sloped:
            expr = _chosen(expr)
        function = expr.function
        args = [self.term(expr.args[0])]
        first = args[0]
        if function in ("select", "and", "or") and isinstance(first, Known):
            # An arm that is never taken need not have a value.
            if function == "select" and (first.array.all() or not first.array.any()):
                taken = self.term(expr.args[1 if first.array.all() else 2])
                # The other arm still says whether the result is real.
                return self.as_kind(taken, kind_of(expr, self.tensors))
            if (function == "and" and not first.array.any()) or (
                function == "or" and first.array.all()
            ):
                return number(function == "or")
        guarded = self.guarded
        # An arm that is not taken, and a second operand that does not matter, may read outside.
        self.guarded = guarded or function in ("select", "and", "or")
        for arm, arg in zip((True, False), expr.args[1:], strict=False):
            with self.under(first, arm) if function == "select" else nullcontext():
                args.append(self.term(arg))
        self.guarded = guarded
        reals = any(isinstance(arg, Known) and arg.kind == "real" for arg in args)
        counts = function in _COUNTING and kind_of(expr, self.tensors) == "int"
        if counts and (reals or _may_leave(function, args)):
            raise Unsupported(_BEYOND)  # which a number has become a real for, and is not exact
        return self.applied(function, args)

    @contextmanager
    def under(self, condition: Term, taken: bool) -> Iterator[None]:
        """What is spelt meanwhile counts only where a condition holds, or does not."""
        self.arms.append((condition, taken))
        yield
        self.arms.pop()

    def _sheltered(self, function: str, args: Sequence[Term]) -> Sequence[Term]:
        """The arguments of a function, tame where what it gives is not taken."""
        place = _STEEP.get(function)
        if not self.sloped or place is None or not isinstance(args[place], Traced):
            return args
        tame = number(_TAME.get(function, 0.5))
        found = list(args)
        for condition, taken in self.arms:
            choice = (found[place], tame) if taken else (tame, found[place])
            found[place] = self.applied("select", [condition, *choice])
        return found

    def as_kind(self, term: Term, kind: str) -> Term:
        """A term of a wider kind."""
        if term.kind == kind:
            return term
        if isinstance(term, Known):
            return Known(term.array.astype({"real": np.float64, "int": np.int64}[kind]), term.axes)
        return Traced(self.builder.cast(term.value, self.dtype(kind)), term.axes)

    def applied(self, function: str, args: Sequence[Term]) -> Term:
        """A scalar function of terms."""
        if function == "about":  # which speaks of radii: the number is its own
            return args[0]
        if function in ("constant", "approximate"):
            return self._detached(args[0]) if args[0].kind == "real" else args[0]
        row = SCALARS[function]
        args = self._sheltered(function, args)
        axes = self.union(args)
        operands = args[1:] if function == "select" else args
        kind = "real" if row.kind == "real" else join(*(arg.kind for arg in operands))
        if function in ("and", "or", "not"):
            kind = "bool"
        elif function in ("real", "int"):
            kind = operands[0].kind
        elif kind == "bool" and function != "select" and function not in ("==", "!="):
            kind = "int"
        if all(isinstance(arg, Known) for arg in args):
            known = [arg for arg in args if isinstance(arg, Known)]
            return self._folded(function, known, self.limited(axes), kind)
        if function in ("real", "int"):
            if function == "real":
                signed(args)
            return Traced(self.over(args[0], axes, self.dtype(function)), axes)
        self.held(axes)
        if function in _WHOLE and kind == "int":
            return args[0]
        simple = _simplified(function, args, kind)
        if simple is not None:
            return self.as_kind(simple, kind or "real")
        return self._spelt(function, args, axes, kind)

    def _spelt(self, function: str, args: Sequence[Term], axes: Axes, kind: str | None) -> Term:
        """A function of terms of which some are not known yet, as the target says it."""
        operands = args[1:] if function == "select" else args
        if function not in _WRAPPING:
            signed(operands)
        if function == "logaddexp":
            return self._log_of_sum(*args)
        dtype = self.dtype(kind)
        values = [self.over(arg, axes, dtype) for arg in operands]
        if function == "select":
            value = self.builder.where(self.over(args[0], axes, "bool"), *values)
        elif kind == "int" and function in ("//", "%", "ceildiv"):
            value = self._integer_quotient(function, values, args[1])
        elif function == "ceildiv":
            quotient = self.builder.apply("/", values)
            value = self.builder.apply("ceil", [quotient])
        else:
            value = self.builder.apply(function, values)
        return Traced(value, axes)

    def _detached(self, arg: Term) -> Term:
        """A term as a number that nothing flows back to."""
        return arg if isinstance(arg, Known) else Traced(self.builder.detach(arg.value), arg.axes)

    def _log_of_sum(self, a: Term, b: Term) -> Term:
        """log(exp(a) + exp(b)): from the larger one on, from the middle of equal ones, of which
        each has half of the slope; be they infinite.
        """
        equal = self.applied("==", [a, b])
        apart = self.applied("select", [equal, number(0.0), self.applied("-", [a, b])])
        small = self.applied("neg", [self.applied("abs", [apart])])
        larger = self.applied("+", [self.applied("max", [a, b]), self.applied("softplus", [small])])
        middle = self.applied("*", [self.applied("+", [a, b]), number(0.5)])
        same = self.applied("+", [middle, number(math.log(2))])
        return self.applied("select", [equal, same, larger])

    def _integer_quotient(self, function: str, values: list[Value], divisor: Term) -> Value:
        """Division of integers, which is 0 by 0; processors trap, and targets differ."""
        a, b = values
        build = self.builder
        if function == "ceildiv":
            negative = build.apply("neg", [a])
            return build.apply("neg", [self._integer_quotient("//", [negative, b], divisor)])
        if isinstance(divisor, Known) and bool((divisor.array != 0).all()):
            return build.apply(function, values)
        zero = build.constant(np.asarray(0), "i64")
        one = build.constant(np.asarray(1), "i64")
        empty = build.apply("==", [b, zero])
        quotient = build.apply(function, [a, build.where(empty, one, b)])
        return build.where(empty, zero, quotient)

    def _folded(self, function: str, args: list[Known], axes: Axes, kind: str | None) -> Known:
        kinds = {"real": np.float64, "int": np.int64, "bool": np.bool_}
        arrays = [self.array(arg, axes) for arg in args]
        start = 1 if function == "select" else 0
        if kind == "int" and function in _GROWING:
            _held(function, arrays)
        arrays[start:] = [array.astype(kinds[kind or "real"]) for array in arrays[start:]]
        with np.errstate(all="ignore"):
            result = np.asarray(SCALARS[function].numpy(*arrays))
            if result.dtype.kind == "f" and function == "int":
                result = result.astype(np.int64)  # of what is no number: any integer
        shape = tuple(self.extents[axis] for axis in axes)
        return Known(np.broadcast_to(result, shape), axes)

    # ---- elements

    def inside(self, index: Sequence[Term], shape: Sequence[int]) -> Term:
        """Whether every index lies within its axis."""
        result: Term = number(True)
        for part, extent in zip(index, shape, strict=True):
            if isinstance(part, Known):
                array = (part.array >= 0) & (part.array < extent)
                if bool(array.all()):
                    continue
                within: Term = Known(array, part.axes)
            else:
                low = self.applied("<=", [number(0), part])
                high = self.applied("<", [part, number(extent)])
                within = self.applied("and", [low, high])
            result = self.applied("and", [result, within])
        return result

    def _read(self, expr: eq.Read) -> Term:
        index = [self._whole(self.term(part)) for part in expr.index]
        shape = self.tensors[expr.tensor].shape
        open_ended = expr.default is not None or self.guarded
        judged = [part if open_ended or isinstance(part, Known) else number(0) for part in index]
        mask = number(False) if 0 in shape else self.inside(judged, shape)
        default = None
        if expr.default is not None and not (isinstance(mask, Known) and mask.array.all()):
            default = self.term(expr.default)
        if isinstance(mask, Known) and not mask.array.any():
            # Nothing of it is read; without a default, what is read is thrown away by a `select`.
            return number(0) if default is None else self.as_kind(default, self._join(expr))
        pairs = zip(index, judged, shape, strict=True)
        index = [self._clipped(p, extent) if p is j else p for p, j, extent in pairs]
        term = self._element(expr.tensor, index)
        if default is not None:
            return self.applied("select", [mask, term, default])
        return term

    def _join(self, expr: eq.Read) -> str:
        own = self.tensors[expr.tensor].kind
        return (
            own if expr.default is None else join(own, kind_of(expr.default, self.tensors)) or own
        )

    def _whole(self, term: Term) -> Term:
        if term.kind == "int" and (isinstance(term, Known) or term.value.dtype == "i64"):
            return term
        return self.applied("int", [term])

    def _clipped(self, term: Term, extent: int) -> Term:
        if isinstance(term, Known):
            return Known(np.minimum(np.maximum(term.array, 0), extent - 1), term.axes)
        low = self.applied("max", [term, number(0)])
        return self.applied("min", [low, number(extent - 1)])

    def _element(self, name: str, index: list[Term]) -> Term:
        if name in self.known and all(isinstance(part, Known) for part in index):
            parts = [part for part in index if isinstance(part, Known)]
            axes = self.limited(self.union(parts))
            found = self.known[name][tuple(self.array(part, axes) for part in parts)]
            return Known(np.asarray(found), axes)
        if name in self.partial:
            axis, steps = self.partial[name]
            position = index[axis]
            if isinstance(position, Known) and not position.axes:
                step = steps.get(int(position.array))
                if step is not None:
                    return gather(self, step, index[:axis] + index[axis + 1 :])
        return gather(self, self.source(name), index)


def _simplified(function: str, args: Sequence[Term], kind: str | None) -> Term | None:
    """`x + 0`, `0 + x`, `x * 1`, … without the number: what an absent bias leaves behind."""
    neutral = {"+": 0, "-": 0, "*": 1, "/": 1, "and": 1, "or": 0}.get(function)
    if neutral is None or len(args) != 2:
        return None
    for own, other in ((0, 1), (1, 0)) if function not in ("-", "/") else ((0, 1),):
        given = args[other]
        if not isinstance(given, Known) or given.axes or given.array != neutral:
            continue
        if args[own].kind == kind or kind == "real":
            return args[own]
    return None


def _chosen(expr: eq.Apply) -> eq.Apply:
    """`max(log(p), -100)` as a choice: where the bound is taken, no slope comes through.

    NaN, which no comparison holds of, stays.
    """
    if expr.function not in ("max", "min"):
        return expr
    for steep, bound in (expr.args, expr.args[::-1]):
        if not isinstance(bound, (eq.Const, eq.Size)) or not isinstance(steep, eq.Apply):
            continue
        place = _STEEP.get(steep.function)
        if place is None or isinstance(steep.args[place], (eq.Const, eq.Size)):
            continue
        beyond = eq.Apply("<=" if expr.function == "max" else ">=", (steep, bound))
        return eq.Apply("select", (beyond, bound, steep))
    return expr


def _may_leave(function: str, args: Sequence[Term]) -> bool:
    """Whether a number at the end of 64 bits grows by what a call is fed with, as in `low - zero`:
    a definition counts on, as integers do (`irlang.interp.wide`), and what is written wraps around.
    """
    known = [arg.array for arg in args if isinstance(arg, Known)]
    far = any((np.abs(array.astype(np.float64)) >= _FAR).any() for array in known)
    return far and function in _GROWING and len(known) < len(args)


def _within(array: Array, dtype: str) -> Array:
    """Numbers that stand in a program as they are. Refuses what is finite and beyond its type: it
    would be an infinity there, and the target would be blamed for it.
    """
    known = DTYPES[dtype]
    if known.kind == "real" and array.dtype.kind == "f":
        largest = known.largest * (1 + known.unit / 2)  # what rounds to it is below
        if bool((np.isfinite(array) & (np.abs(array) > largest)).any()):
            raise Unsupported(f"its definition has a number beyond {dtype}")
    return array


def _held(function: str, arrays: Sequence[Array]) -> None:
    """Refuses what leaves the integers that a target counts in: what is written would wrap around,
    and the target would be blamed for it.
    """
    if all((np.abs(array.astype(np.float64)) < _SAFE).all() for array in arrays):
        return
    known = SCALARS[function]
    wide: Sequence[Array] = np.broadcast_arrays(*(array.astype(object) for array in arrays))
    if known.poles is not None:  # where there is no number, and Python raises
        there = ~np.broadcast_to(known.poles(*arrays), wide[0].shape)
        wide = [array[there] for array in wide]
    whole = np.asarray(known.numpy(*wide))
    least, greatest = integer_range("i64")
    if not all(least <= number <= greatest for number in whole.flat):
        raise Unsupported(_BEYOND)
