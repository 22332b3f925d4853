"""Equations evaluated by vectorised NumPy: every index is an axis of an array.

What is too small to be worth a compiled kernel runs here, and `rounding` runs here too: the walk
over an equation is written once, over a `Domain` that says what a number is (a plain float64, or a
value with its radius). Indices that are affine become strided views, nothing is copied for them;
sums of products become one contraction.

Reals are float64, integers int64 (wrapped to their stored type on assignment), as in `reference`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import InvalidInput, fail
from irlang.equation_rules import factors_of, terms_of
from irlang.interp.draws import completed
from irlang.interp.notes import Notes
from irlang.interp.plain import Plain, load
from irlang.interp.running import accumulates
from irlang.interp.schedule import Recurrence, hoist, schedule
from irlang.interp.views import Frame, View, view

Array = np.ndarray[Any, np.dtype[Any]]
Value = Any  # what the domain says: an array or number, or a value with its radius
_KEPT = 1 << 12  # elements of which positions are kept for the next evaluation
_CHUNK = 1 << 21  # elements of a temporary array; more are done piece by piece
_NEUTRAL = {"sum": 0, "prod": 1, "max": -math.inf, "min": math.inf, "all": True, "any": False}
_WHOLE = {"max": np.iinfo(np.int64).min, "min": np.iinfo(np.int64).max}


class Vector:
    """Evaluates equations over a domain. `tensors` holds what has been computed.

    notes: what evaluations of one expansion share.
    """

    def __init__(
        self,
        domain: Any,
        tensors: dict[str, Value],
        infos: Mapping[str, eq.TensorInfo],
        notes: Notes | None = None,
    ) -> None:
        self.domain = domain
        self.tensors = tensors
        self.infos = infos
        self._notes = notes or Notes()

    def __call__(self, expr: eq.Expr, frame: Frame) -> Value:
        """The value of an expression at all points of a frame at once."""
        return _WALK[type(expr)](self, expr, frame)

    # ---- equations

    def equation(self, equation: eq.Equation) -> Value:
        """The tensor that an equation without recurrence defines."""
        shape = equation.info.shape
        if 0 in shape:  # nothing is read, nothing can be wrong
            return self.domain.empty(equation.info)
        ranges = self._notes.note(
            "ranges", equation, lambda: self._ranges(equation.body, shape), self.domain.cached
        )
        if len(ranges) == 1:
            return self._part(equation, self.frame(equation))
        found = self.domain.empty(equation.info)
        for piece in ranges:
            place = tuple(slice(*r) for r in piece)
            self.domain.assign(found, place, self._part(equation, _frame(equation, piece)))
        return found

    def _part(self, equation: eq.Equation, frame: Frame) -> Value:
        return self.domain.store(self(equation.body, frame), equation.info, frame.shape)

    def frame(self, equation: eq.Equation) -> Frame:
        """The frame of all elements of an equation."""
        whole = [(0, size) for size in equation.info.shape]
        return self._notes.note("whole", equation, lambda: _frame(equation, whole))

    def _ranges(self, body: eq.Expr, shape: tuple[int, ...]) -> list[list[tuple[int, int]]]:
        """Ranges that keep temporary arrays small: the longest axis is cut where it must be.

        Of numbers alone, element by element, so small that the processor's cache has them: there
        the outermost axis is cut whose slices are small enough, so that what is read lies together.
        """
        whole = [(0, size) for size in shape]
        each = inner(body)
        work = math.prod(shape) * each
        most = self.domain.cached if each == 1 and _nested(body) else _CHUNK
        if work <= most or not shape or max(shape) < 2:
            return [whole]
        if most < _CHUNK:
            axis = next(a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= most)
        else:
            axis = max(range(len(shape)), key=shape.__getitem__)
        step = max(1, int(shape[axis] * most / work))
        return [
            [*whole[:axis], (start, min(start + step, shape[axis])), *whole[axis + 1 :]]
            for start in range(0, shape[axis], step)
        ]

    def recurrence(self, group: Recurrence) -> None:
        """Runs a group of equations step by step; their tensors are filled in place."""
        hoisted, group = self._notes.note("hoist", group, lambda: hoist(group, dict(self.infos)))
        for equation in hoisted:
            self.infos = {**self.infos, equation.target: equation.info}
            self.tensors[equation.target] = self.equation(equation)
        made = self.domain.adding if accumulates(group.equations) else self.domain.empty
        for equation in group.equations:
            self.tensors[equation.target] = made(equation.info)
        steps = range(group.length)
        for step in reversed(steps) if group.descending else steps:
            for equation, axis in zip(group.equations, group.axes, strict=True):
                if step < equation.info.shape[axis]:
                    self._step(equation, axis, step)

    def _step(self, equation: eq.Equation, axis: int, step: int) -> None:
        names = [name for name, _ in equation.binders]
        rest = [
            (n, s)
            for a, (n, s) in enumerate(zip(names, equation.info.shape, strict=True))
            if a != axis
        ]
        frame = Frame(
            {n: a for a, (n, _) in enumerate(rest)}, [(0, s) for _, s in rest], {names[axis]: step}
        )
        value = self.domain.store(self(equation.body, frame), equation.info, frame.shape)
        self.domain.assign(self.tensors[equation.target], (slice(None),) * axis + (step,), value)

    # ---- expressions

    def _number(self, expr: eq.Const | eq.Size, frame: Frame) -> Value:  # noqa: ARG002
        return self.domain.number(expr.value)

    def _index(self, expr: eq.Index, frame: Frame) -> Value:
        if expr.name in frame.fixed:
            return self.domain.number(frame.fixed[expr.name])
        axis = frame.axes[expr.name]
        shape = [1] * len(frame.ranges)
        shape[axis] = -1
        low, high = frame.ranges[axis]
        if high - low >= eq.MOST_ELEMENTS:
            raise fail("run.memory", f"`{expr.name}` takes {high - low} numbers, one after another")
        return self.domain.array(np.arange(low, high).reshape(shape))

    def _apply(self, expr: eq.Apply, frame: Frame) -> Value:
        if expr.function == "select":
            condition = self(expr.args[0], frame)
            chosen = np.asarray(self.domain.sample(condition))
            yes = self(expr.args[1], frame.where(chosen))
            no = self(expr.args[2], frame.where(~chosen))
            return self.domain.select(condition, yes, no)
        if expr.function in ("and", "or"):  # what the first settles the second is not asked
            first = self(expr.args[0], frame)
            settled = np.asarray(self.domain.sample(first)) != (expr.function == "and")
            if settled.all() and self.domain.sure(first):
                return first
            second = self(expr.args[1], frame.where(~settled))
            return self.domain.apply(expr.function, [first, second])
        terms = terms_of(expr) if self.domain.any_order else ()
        if len(terms) > 2:
            return self.domain.sum([self(term, frame) for term in terms])
        if len(expr.args) == 2 and expr.args[0] == expr.args[1]:
            return self.domain.apply(expr.function, [self(expr.args[0], frame)] * 2)
        return self.domain.apply(expr.function, [self(arg, frame) for arg in expr.args])

    def _reduce(self, expr: eq.Reduce, frame: Frame) -> Value:
        extents: list[tuple[str, int]] = []
        limits: list[tuple[str, Any]] = []
        for name, bound in expr.binders:
            if isinstance(bound, (eq.Const, eq.Size)):
                extents.append((name, max(int(bound.value), 0)))
                continue
            value = np.asarray(self.domain.sample(self(bound, frame)))
            extents.append((name, max(int(value.max(initial=0)), 0)))
            limits.append((name, value))
        rank = len(frame.ranges)
        inner = frame.deeper(extents)
        condition = self._condition(expr, limits, inner, rank)
        count = len(extents)
        axes = tuple(range(rank, rank + count))
        if expr.kind == "count":
            return self._count(condition, inner, rank)
        assert expr.body is not None
        if condition is not None:
            inner = inner.where(np.asarray(self.domain.sample(condition)))
        if expr.kind == "sum" and isinstance(expr.body, eq.Apply) and expr.body.function == "*":
            return self._contraction(expr.body, inner, condition, rank)
        body = self(expr.body, inner)
        if expr.kind in ("argmax", "argmin", "the"):
            return self._choose(expr.kind, body, condition, inner, frame)
        if condition is not None:
            neutral = self.domain.number(_NEUTRAL[expr.kind])
            if np.asarray(self.domain.sample(body)).dtype.kind == "i":  # which no real number is
                held = np.asarray(self.domain.sample(self._spread(condition, inner, rank)))
                some = np.any(held, axis=tuple(range(rank, held.ndim)))
                if np.all(some | ~_wanted(frame)):  # of none it is one
                    least = _WHOLE.get(expr.kind)
                    neutral = neutral if least is None else self.domain.array(np.asarray(least))
            body = self.domain.select(condition, body, neutral)
        body = self._spread(body, inner, rank)
        if math.prod(inner.shape[rank:]) == 0:
            shape = tuple(np.shape(self.domain.sample(body))[:rank])
            return self.domain.array(np.full(shape, _NEUTRAL[expr.kind]))
        return self.domain.fold(expr.kind, body, axes)

    def _condition(
        self, expr: eq.Reduce, limits: list[tuple[str, Any]], inner: Frame, rank: int
    ) -> Value:
        """The filter of a reduction, with bounds that depend on outer indices; None for none."""
        condition = None if expr.where is None else self(expr.where, inner)
        for name, limit in limits:
            below = np.asarray(self.domain.sample(self._index(eq.Index(name), inner)))
            deep = (
                limit.reshape(limit.shape + (1,) * (len(inner.ranges) - rank))
                if limit.ndim
                else limit
            )
            bound = self.domain.array(below < deep)
            condition = bound if condition is None else self.domain.apply("and", [condition, bound])
        return condition

    def _spread(self, value: Value, inner: Frame, rank: int) -> Value:
        """The value at full extent along the reduced axes, and of full rank."""

        def change(array: Any) -> Any:
            array = np.asarray(array)
            if array.ndim == 0:
                array = array.reshape((1,) * len(inner.ranges))
            shape = array.shape[:rank] + inner.shape[rank:]
            return array if array.shape == shape else np.broadcast_to(array, shape)

        return self.domain.parts(value, change)

    def _count(self, condition: Value, inner: Frame, rank: int) -> Value:
        if condition is None:  # it held of all, and is gone
            return self.domain.number(math.prod(inner.shape[rank:]))
        axes = tuple(range(rank, len(inner.ranges)))
        spread = self._spread(condition, inner, rank)
        return self.domain.fold("sum", self.domain.apply("int", [spread]), axes)

    def _contraction(self, body: eq.Apply, inner: Frame, condition: Value, rank: int) -> Value:
        factors = [self(factor, inner) for factor in factors_of(body)]
        if condition is not None:
            zero = self.domain.number(0)
            for place, factor in enumerate(factors):  # zero times infinity would show
                if place == 0 or not np.all(np.isfinite(self.domain.sample(factor))):
                    factors[place] = self.domain.select(condition, factor, zero)
        widest = [1] * len(inner.ranges)
        for factor in factors:
            shape = np.shape(self.domain.sample(factor))
            for axis, size in enumerate(shape):
                widest[axis] = max(widest[axis], size) if size else 0
        missing = [a for a in range(rank, len(widest)) if widest[a] == 1 and inner.shape[a] != 1]
        if missing or 0 in inner.shape[rank:]:  # a factor of 1 for indices that no factor has
            ones = [
                inner.shape[a] if a in missing or not inner.shape[a] else 1
                for a in range(len(widest))
            ]
            factors.append(self.domain.array(np.ones([1] * rank + ones[rank:], dtype=np.int64)))
        return self.domain.contract(factors, rank)

    def _choose(
        self, kind: str, body: Value, condition: Value, inner: Frame, frame: Frame
    ) -> Value:
        """`argmax`, `argmin` and `the`, over all reduced axes as one."""
        rank = len(frame.ranges)
        if 0 in inner.shape[rank:]:
            if 0 not in frame.shape and (frame.active is None or np.any(frame.active)):
                raise fail("run.empty", f"`{kind}` ranges over nothing")
            return self.domain.array(
                np.zeros(frame.shape, np.asarray(self.domain.sample(body)).dtype)
            )

        def flat(array: Any) -> Any:
            return array.reshape((*array.shape[:rank], math.prod(array.shape[rank:])))

        if kind == "the":
            return self._the(body, condition, inner, frame, flat)
        choices = self.domain.parts(self._spread(body, inner, rank), flat)
        if condition is None:
            return self.domain.place(kind, choices, None)
        among = self.domain.parts(self._spread(condition, inner, rank), flat)
        if _missing(self.domain.sample(among), frame):
            raise fail("run.empty", f"`{kind}` ranges over nothing")
        shape = np.broadcast_shapes(*(np.shape(self.domain.sample(v)) for v in (choices, among)))
        choices, among = (
            self.domain.parts(v, lambda a: np.broadcast_to(a, shape)) for v in (choices, among)
        )
        return self.domain.place(kind, choices, among)

    def _the(
        self,
        body: Value,
        condition: Value,
        inner: Frame,
        frame: Frame,
        flat: Callable[[Any], Any],
    ) -> Value:
        """The body at the first index that satisfies the condition."""
        if condition is None:
            condition = self.domain.array(np.ones((1,) * len(inner.ranges), dtype=bool))
        rank = len(frame.ranges)
        spread = self.domain.parts(self._spread(condition, inner, rank), flat)
        mask = np.asarray(self.domain.sample(spread), dtype=bool)
        if _missing(mask, frame):
            raise fail("run.none", "no value satisfies the condition of `the`")
        at = mask.argmax(-1)
        choices = self.domain.parts(self._spread(body, inner, rank), flat)
        shape = np.broadcast_shapes(at.shape, np.shape(self.domain.sample(choices))[:-1])
        choices = self.domain.parts(choices, lambda a: np.broadcast_to(a, (*shape, a.shape[-1])))
        certain = self.domain.parts(spread, lambda a: np.broadcast_to(a, (*shape, a.shape[-1])))
        return self.domain.pick(choices, np.broadcast_to(at, shape), certain)

    # ---- reads

    def _read(self, expr: eq.Read, frame: Frame) -> Value:
        tensor = self.tensors[expr.tensor]
        shape = np.shape(self.domain.sample(tensor))
        found = view(expr, frame, shape)
        if found is None or (found.padded and not self._pads(expr, found, shape)):
            return self._gather(expr, tensor, shape, frame)
        if found.apart and expr.default is not None:
            return self(expr.default, frame)
        if found.padded:
            assert isinstance(expr.default, (eq.Const, eq.Size))
            default = self.domain.number(expr.default.value)
            tensor = self.domain.padded(tensor, default, found.pad)
        return self.domain.parts(tensor, found.of)

    @staticmethod
    def _pads(expr: eq.Read, found: View, shape: tuple[int, ...]) -> bool:
        """Whether what is read outside the tensor is a number, and not much of it."""
        if found.apart and expr.default is not None:
            return True  # nothing is inside
        around = sum(found.below) + sum(found.above)
        return isinstance(expr.default, (eq.Const, eq.Size)) and around <= 4 * sum(shape) + 64

    def _gather(self, expr: eq.Read, tensor: Value, shape: tuple[int, ...], frame: Frame) -> Value:
        """Elements at computed positions, checked against the shape."""
        key = "gather", id(expr), shape
        if key in frame.known:
            return self.domain.gather(tensor, frame.known[key][1], [])
        positions = [self(position, frame) for position in expr.index]
        found = [self._whole(self.domain.sample(p)) for p in positions]
        inside: Any = True
        for index, size in zip(found, shape, strict=True):
            inside = inside & (index >= 0) & (index < size)
        every = bool(np.all(inside))
        if not every and expr.default is None:
            wanted = (
                ~np.asarray(inside) if frame.active is None else ~np.asarray(inside) & frame.active
            )
            if np.any(wanted) and 0 not in frame.shape:
                raise _outside(expr, found, shape, wanted)
        if 0 in shape:
            if expr.default is None:
                info = self.infos[expr.tensor]
                return self.domain.store(
                    self.domain.number(0), eq.TensorInfo((), info.dtype), (1,) * len(frame.ranges)
                )
            return self(expr.default, frame)
        clipped = tuple(
            np.clip(index, 0, size - 1) for index, size in zip(found, shape, strict=True)
        )
        value = self.domain.gather(tensor, clipped, positions) if clipped else tensor
        if (
            every
            and clipped
            and math.prod(frame.shape) <= _KEPT
            and not any(map(eq.reads, expr.index))
        ):
            frame.known[key] = expr, clipped
        if every or expr.default is None:
            return value
        default = self(expr.default, frame.where(~np.asarray(inside)))
        return self.domain.select(self.domain.within(inside, positions, shape), value, default)

    def _inside(self, expr: eq.Inside, frame: Frame) -> Value:
        shape = self.infos[expr.tensor].shape
        positions = [self(position, frame) for position in expr.index]
        inside: Any = np.asarray(True)
        for position, size in zip(positions, shape, strict=True):
            index = np.asarray(self.domain.sample(position))
            inside = inside & (index >= 0) & (index < size)
        return self.domain.within(inside, positions, shape)

    @staticmethod
    def _whole(index: Any) -> Any:
        array = np.asarray(index)
        if array.dtype.kind == "O":
            array = np.asarray(np.clip(array, -(2**62), 2**62), dtype=np.int64)
        if array.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                return np.where(
                    np.isfinite(array), np.clip(np.trunc(array), -(2**62), 2**62), -1
                ).astype(np.int64)
        return array.astype(np.int64, copy=False)


# functions, not methods of an instance: what holds itself is freed late, and its tensors with it
_WALK: dict[type, Callable[[Vector, Any, Frame], Value]] = {
    eq.Const: Vector._number,
    eq.Size: Vector._number,
    eq.Index: Vector._index,
    eq.Read: Vector._read,
    eq.Inside: Vector._inside,
    eq.Apply: Vector._apply,
    eq.Reduce: Vector._reduce,
}


def _frame(equation: eq.Equation, ranges: list[tuple[int, int]]) -> Frame:
    return Frame({name: axis for axis, (name, _) in enumerate(equation.binders)}, ranges)


def _nested(expr: eq.Expr) -> bool:
    """Whether there are temporary arrays: results of functions that others read."""
    return any(eq.children(child) for child in eq.children(expr) if isinstance(child, eq.Apply))


def inner(expr: eq.Expr) -> int:
    """How many elements a reduction inside an expression ranges over, at most."""
    own = 1
    if isinstance(expr, eq.Reduce):
        for _, bound in expr.binders:
            own *= max(int(bound.value), 1) if isinstance(bound, (eq.Const, eq.Size)) else 64
    return own * max(map(inner, eq.children(expr)), default=1)


def _outside(expr: eq.Read, found: list[Any], shape: tuple[int, ...], wanted: Any) -> InvalidInput:
    place = tuple(int(i[0]) for i in np.nonzero(wanted)) if np.ndim(wanted) else ()
    at = [int(np.broadcast_to(index, np.shape(wanted))[place]) for index in found]
    return fail("run.outside", f"`{expr.tensor}` is read at {at}, outside its shape {list(shape)}")


def _wanted(frame: Frame) -> Any:
    """Where a value is wanted at all."""
    return np.asarray(True if frame.active is None else frame.active, dtype=bool)


def _missing(mask: Any, frame: Frame) -> bool:
    """Whether nothing holds along the last axis of a mask, somewhere where that is asked for."""
    return 0 not in frame.shape and bool(np.any(_wanted(frame) & ~np.asarray(mask).any(-1)))


def evaluate_equation(
    equation: eq.Equation, tensors: Mapping[str, Any], infos: Mapping[str, eq.TensorInfo]
) -> Array:
    """One equation without recurrence, over plain arrays."""
    return Vector(Plain(), dict(tensors), infos).equation(equation)  # type: ignore[no-any-return]


def run_check(vector: Vector, check: eq.Check) -> None:
    """Raises the diagnostic of a precondition on values that does not hold."""
    if not bool(np.all(vector.domain.sample(vector(check.condition, Frame({}, []))))):
        raise fail(check.code, check.message)


def evaluate(
    expansion: eq.Expansion, inputs: Mapping[str, Any], domain: Any = None
) -> dict[str, Value]:
    """Every tensor of an expansion by name; raises `InvalidInput` where a precondition fails."""
    domain = domain or Plain()
    tensors: dict[str, Value] = {
        name: value if domain.__class__ is not Plain else load(expansion.tensors[name], value)
        for name, value in completed(expansion, inputs).items()
    }
    vector = Vector(domain, tensors, expansion.tensors)
    pending = list(expansion.checks)
    with np.errstate(all="ignore"):
        run_ready(vector, pending)
        for step in schedule(expansion.equations):
            if isinstance(step, Recurrence):
                vector.recurrence(step)
            else:
                tensors[step.target] = vector.equation(step)
        run_ready(vector, pending)
    return tensors


def run_ready(vector: Vector, pending: list[eq.Check]) -> None:
    """Runs the checks whose tensors are there, and takes them out of `pending`."""
    for check in list(pending):
        if eq.reads(check.condition) <= vector.tensors.keys():
            run_check(vector, check)
            pending.remove(check)
