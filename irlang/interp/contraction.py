"""Sums of products as products of matrices, whatever operator they came from.

`find` takes the contractions out of an equation; `Contraction.run` gathers each factor as a strided
view (a copy, in blocks that stay in cache, where BLAS cannot read the view) and multiplies. A
convolution, a dense layer, attention and a recurrent projection differ here in their strides only.
Factors may be any expression: one that is not an affine read is evaluated first, over the indices
that it has. Non-goal: sums whose bounds depend on other indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.affine import (
    Affine,
    affine,
    bounds_of,
    divided,
    split_indices,
    surely_inside,
)
from irlang.equation_rules import factors_of
from irlang.interp import memory
from irlang.interp.gemm import Operand, matrices, product
from irlang.interp.views import Frame, view
from irlang.kinds import kind

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
Evaluate = Callable[[eq.Equation, Arrays], Array]

_LARGE = 1 << 12  # elements of a matrix whose product with a vector BLAS does sooner than a loop
_MASKED = 1 << 25  # elements of a factor that a filter is taken into
_PADDED = 4  # a padded copy may be this many times as large as the tensor (and a bit)


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a product, over the indices `names`.

    equation: that evaluates it where it is no view; the same object at every run of a contraction,
    so that an evaluator may remember what it found out about it. frame: its indices.
    """

    expr: eq.Expr
    names: tuple[str, ...]
    equation: eq.Equation | None = None
    frame: Frame = field(default_factory=lambda: Frame({}, []), compare=False)

    def evaluated(self, target: str, extents: Mapping[str, int]) -> Factor:
        """The factor with its equation."""
        binders = tuple((name, eq.Size(name, extents[name])) for name in self.names)
        info = eq.TensorInfo(tuple(extents[name] for name in self.names), "f64")
        frame = Frame({name: n for n, name in enumerate(self.names)}, [(0, n) for n in info.shape])
        return Factor(self.expr, self.names, eq.Equation(target, binders, self.expr, info), frame)


@dataclass(frozen=True, slots=True)
class Contraction:
    """`target[free] = sum over the other indices of the product of two or more factors`.

    free: the indices of the result, after the split of those that occur in quotients; shape: of
    the result before the split. step: an index that is fixed in each run (of a recurrence).
    masked: the sum has a filter, which makes one factor zero where it does not hold; that is the
    same as long as the other factors are finite (`applies`).
    """

    target: str
    free: tuple[str, ...]
    shape: tuple[int, ...]
    extents: Mapping[str, int]
    factors: tuple[Factor, ...]
    summed: tuple[str, ...]
    step: str = ""
    masked: int | None = None

    @property
    def work(self) -> int:
        """Multiplications."""
        return math.prod(self.extents[name] for name in (*self.free, *self.summed))

    @property
    def info(self) -> eq.TensorInfo:
        """The type of the result."""
        return eq.TensorInfo(self.shape, "f64")

    @property
    def narrow(self) -> bool:
        """Whether the matrices are so thin that gathering costs more than multiplying."""
        sets = [frozenset(factor.names) for factor in self.factors]
        sides = (
            [n for n in self.free if n in one and not any(n in s for s in sets if s is not one)]
            for one in sets
        )
        return min(math.prod(self.extents[n] for n in side) for side in sides) < 4

    @property
    def bare(self) -> bool:
        """Whether it pays although it is narrow: a large matrix is read where it lies."""
        largest = max(math.prod(self.extents[n] for n in factor.names) for factor in self.factors)
        return largest >= _LARGE and all(isinstance(f.expr, eq.Read) for f in self.factors)

    @property
    def plain(self) -> bool:
        """Whether every factor is a tensor as it lies, no window of one: nothing is gathered."""
        return all(
            isinstance(index, eq.Index)
            for factor in self.factors
            for index in (factor.expr.index if isinstance(factor.expr, eq.Read) else (factor.expr,))
        )

    def applies(self, arrays: Arrays) -> bool:
        """Whether the tensors have values for which the product of matrices is the sum."""
        if self.masked is None:
            return True
        for number, factor in enumerate(self.factors):
            if number != self.masked and not all(
                np.isfinite(arrays[name]).all() for name in eq.reads(factor.expr)
            ):
                return False
        return True

    def run(
        self, arrays: Arrays, evaluate: Evaluate, at: int = 0, out: Array | None = None
    ) -> Array:
        """The result, of shape `shape`, in `out` if given. at: the value of `step`."""
        return self.multiply([self._gather(f, arrays, evaluate, at) for f in self.factors], out)

    def multiply(self, gathered: Sequence[Array], out: Array | None = None) -> Array:
        """The result from its factors, each an array with one axis for each of its indices."""
        operands = [(a, f.names) for a, f in zip(gathered, self.factors, strict=True)]
        while len(operands) > 2:
            operands = self._merge(operands)
        left, right = operands
        result = memory.empty(self.shape, left[0].dtype) if out is None else out
        parted = result.reshape([self.extents[name] for name in self.free])
        product(left, right, parted, self.free)
        return result

    def stepper(
        self, arrays: Arrays, evaluate: Evaluate, out: Array, steps: int
    ) -> Callable[[int], None]:
        """Runs one step after another; what is the same in all of them is done once."""
        prepared = self._prepared(arrays, out, steps)

        def run(at: int) -> None:
            if prepared is None or not prepared.first <= at < prepared.last:
                self.run(arrays, evaluate, at, out)
            else:
                prepared.run(at)

        return run

    def _prepared(self, arrays: Arrays, out: Array, steps: int) -> _Steps | None:
        if len(self.factors) != 2:
            return None
        reads = [factor.expr for factor in self.factors]
        if not all(isinstance(read, eq.Read) for read in reads):
            return None
        first, last = 0, steps
        views = []
        moves = []
        for factor, read in zip(self.factors, reads, strict=True):
            assert isinstance(read, eq.Read)
            array = arrays[read.tensor]
            forms = [affine(part) for part in read.index]
            extents = {name: self.extents[name] for name in factor.names}
            inside = _steps_inside(array, forms, extents, self.step, range(first, last))
            if array.dtype != out.dtype or not inside:
                return None
            first, last = inside.start, inside.stop
            coefficients = [form.coefficients.get(self.step, 0) for form in forms if form]
            moves.append(sum(c * s for c, s in zip(coefficients, array.strides, strict=True)))
        for factor, read in zip(self.factors, reads, strict=True):
            assert isinstance(read, eq.Read)
            lies = self.view(factor, arrays[read.tensor], first)
            if lies is None:
                return None
            views.append(lies)
        parted = out.reshape([self.extents[name] for name in self.free])
        left, right = ((v, f.names) for v, f in zip(views, self.factors, strict=True))
        found = matrices(left, right, parted, self.free)
        if found is None or not np.may_share_memory(found[2], out):
            return None
        if found[3]:
            moves.reverse()
            reads.reverse()
        bases = [arrays[read.tensor] for read in reads if isinstance(read, eq.Read)]
        return _Steps(first, last, found[:3], (bases[0], bases[1]), (moves[0], moves[1]))

    def _merge(self, operands: list[Operand]) -> list[Operand]:
        """One pair less: the pair whose product is smallest."""
        best: tuple[int, int, int, tuple[str, ...]] | None = None
        for i, (_, first) in enumerate(operands):
            for j in range(i):
                others = [n for k, o in enumerate(operands) if k not in (i, j) for n in o[1]]
                needed = {*self.free, *others}
                both = dict.fromkeys((*operands[j][1], *first))
                names = tuple(name for name in both if name in needed)
                size = math.prod(self.extents[name] for name in names)
                if best is None or size < best[0]:
                    best = size, i, j, names
        assert best is not None
        _, i, j, names = best
        shape = tuple(self.extents[name] for name in names)
        out = memory.empty(shape, operands[i][0].dtype)
        product(operands[j], operands[i], out, names)
        return [*(o for k, o in enumerate(operands) if k not in (i, j)), (out, names)]

    def view(self, factor: Factor, array: Array, at: int = 0) -> Array | None:
        """A factor that reads `array` as a view of it, of a padded copy where it may lie outside.

        None where that is no affine read, or outside there is no number, or too much of it.
        """
        read, frame = factor.expr, factor.frame
        if not isinstance(read, eq.Read):
            return None
        if self.step:
            frame = Frame(frame.axes, frame.ranges, {self.step: at})
        found = view(read, frame, array.shape)
        if found is None:
            return None
        if found.padded:
            around = zip(found.below, array.shape, found.above, strict=True)
            size = math.prod(map(sum, around))
            if not isinstance(read.default, (eq.Const, eq.Size)) or (
                size > _PADDED * array.size + 1024
            ):
                return None
            array = found.pad(array, float(read.default.value))
        lies = found.of(array)
        return lies if lies.dtype.kind == "f" else lies.astype(np.float64)

    @staticmethod
    def pads(factor: Factor, shape: tuple[int, ...]) -> bool:
        """Whether a factor that is a view of a tensor of that shape reads outside it."""
        assert isinstance(factor.expr, eq.Read)
        found = view(factor.expr, factor.frame, shape)
        return found is not None and found.padded

    def _gather(self, factor: Factor, arrays: Arrays, evaluate: Evaluate, at: int) -> Array:
        """The factor as an array with one axis for each of its indices."""
        if isinstance(factor.expr, eq.Read):
            lies = self.view(factor, arrays[factor.expr.tensor], at)
            if lies is not None:
                return lies
        equation = factor.equation
        assert equation is not None
        if self.step:
            body = eq.substitute(equation.body, {self.step: eq.Size("step", at)})
            equation = replace(equation, body=body)
        return evaluate(equation, arrays)


@dataclass(frozen=True, slots=True)
class _Steps:
    """A product whose operands move through memory: `moves` bytes a step, from step `first` on."""

    first: int
    last: int
    matrices: tuple[Array, Array, Array]
    bases: tuple[Array, Array]
    moves: tuple[int, int]

    def run(self, at: int) -> None:
        left, right, out = self.matrices
        operands = []
        for matrix, base, move in zip((left, right), self.bases, self.moves, strict=True):
            if move:
                offset = matrix.ctypes.data - base.ctypes.data + move * (at - self.first)
                matrix = np.ndarray(matrix.shape, matrix.dtype, base, offset, matrix.strides)
            operands.append(matrix)
        np.matmul(operands[0], operands[1], out=out)


def _steps_inside(
    array: Array,
    forms: Sequence[Affine | None],
    extents: Mapping[str, int],
    step: str,
    steps: range,
) -> range:
    """The steps, one after another, in which all that is read lies inside."""
    first, last = steps.start, steps.stop
    for form, extent in zip(forms, array.shape, strict=True):
        if form is None:
            return range(0)
        spans = [c * (extents[n] - 1) for n, c in form.coefficients.items() if n != step]
        least = form.constant + sum(span for span in spans if span < 0)
        largest = form.constant + sum(span for span in spans if span > 0)
        move = form.coefficients.get(step, 0)
        room = extent - 1 - largest  # -least <= move * at <= room
        if move == 0:
            first, last = (first, last) if least >= 0 and room >= 0 else (0, 0)
        elif move > 0:
            first, last = max(first, -(least // move)), min(last, room // move + 1)
        else:
            first, last = max(first, -(room // -move)), min(last, least // -move + 1)
    return range(first, max(first, last))


# ---- contractions of an equation --------------------------------------------------------------


def find(
    equation: eq.Equation, tensors: Mapping[str, eq.TensorInfo], step: str = ""
) -> tuple[tuple[Contraction, ...], eq.Equation]:
    """The contractions in an equation, and what remains of it: reads of `y*1`, `y*2`, ….

    step: the index of a recurrence, whose equation is evaluated for one value of it at a time.
    The results then have no axis for it.
    """
    found: list[Contraction] = []
    bounds = dict(equation.binders)

    def taken(expr: eq.Expr) -> eq.Expr:
        if isinstance(expr, eq.Reduce):
            name = f"{equation.target}*{len(found) + 1}"
            made = _contraction(name, expr, bounds, tensors, step)
            if made is None:
                return expr
            found.append(made)
            free = [index for index in bounds if index in eq.indices(expr) and index != step]
            return eq.Read(name, tuple(map(eq.Index, free)))
        return eq.rebuild(expr, taken) if isinstance(expr, eq.Apply) else expr

    body = taken(equation.body)
    return tuple(found), eq.Equation(equation.target, equation.binders, body, equation.info)


def _contraction(
    name: str,
    expr: eq.Reduce,
    outer: Mapping[str, eq.Expr],
    tensors: Mapping[str, eq.TensorInfo],
    step: str,
) -> Contraction | None:
    if expr.kind != "sum" or expr.body is None or (expr.where is not None and step):
        return None
    if kind(expr.body, tensors) != "real":
        return None
    free = [index for index in outer if index in eq.indices(expr)]
    bounds = {**{index: outer[index] for index in free}, **dict(expr.binders)}
    extents: dict[str, int] = {}
    for index, bound in bounds.items():
        form = affine(bound)
        if form is None or not form.known:
            return None
        extents[index] = max(form.constant, 0)
    parts = factors_of(expr.body)
    whole = expr.body if expr.where is None else eq.Apply("select", (expr.where, expr.body))
    if len(parts) < 2 or not harmless(whole, bounds, tensors):
        return None
    free = [index for index in free if index != step]
    shape = tuple(extents[index] for index in free)
    extents.pop(step, None)
    split = split_indices(whole, extents)
    parts = [divided(part, split) for part in parts]
    extents = {index: extents[index] for index in extents if index not in split}
    names: list[str] = []
    for index in free:
        if index in split:
            count, size = split[index]
            names += [f"{index}//", f"{index}%"]
            extents |= {f"{index}//": count, f"{index}%": size}
        else:
            names.append(index)
    factors = []
    for part in parts:
        used = eq.indices(part)
        factors.append(Factor(part, tuple(n for n in (*names, *dict(expr.binders)) if n in used)))
    covered = {n for factor in factors for n in factor.names}
    if not covered >= {*names, *dict(expr.binders)}:
        return None
    summed = tuple(index for index, _ in expr.binders)
    joined = _joined(factors)
    if len(joined) < 2:
        return None
    masked = None
    if expr.where is not None:
        condition = divided(expr.where, split)
        masked = _host(condition, joined, extents)
        if masked is None:
            return None
        zero = eq.Apply("select", (condition, joined[masked].expr, eq.Const(0.0)))
        hidden = Factor(zero, joined[masked].names)
        joined = (*joined[:masked], hidden, *joined[masked + 1 :])
    factors = [factor.evaluated(f"{name}*", extents) for factor in joined]
    return Contraction(name, tuple(names), shape, extents, tuple(factors), summed, step, masked)


def _host(condition: eq.Expr, factors: Sequence[Factor], extents: Mapping[str, int]) -> int | None:
    """The one of two factors that takes a filter in, if the other is a read of numbers."""
    fitting = [
        (math.prod(extents[n] for n in factor.names), number)
        for number, factor in enumerate(factors)
        if eq.indices(condition) <= {*factor.names}
    ]
    size, host = min(fitting, default=(0, None))
    others = [factor.expr for number, factor in enumerate(factors) if number != host]
    finite = all(
        isinstance(expr, eq.Read) and isinstance(expr.default, (eq.Const, type(None)))
        for expr in others
    )
    finite = finite and all(
        math.isfinite(expr.default.value)
        for expr in others
        if isinstance(expr, eq.Read) and isinstance(expr.default, eq.Const)
    )
    return host if len(factors) == 2 and finite and size <= _MASKED else None


def _joined(factors: list[Factor]) -> tuple[Factor, ...]:
    """Factors whose indices another one has too are multiplied into that one beforehand."""
    kept: list[Factor] = []
    for factor in sorted(factors, key=lambda f: -len(f.names)):
        host = next((k for k in kept if set(factor.names) <= set(k.names)), None)
        second = len(kept) == 1 and len(factors) == 2
        if host is None or second:
            kept.append(factor)
        else:
            kept[kept.index(host)] = Factor(eq.Apply("*", (host.expr, factor.expr)), host.names)
    return tuple(kept)


def harmless(
    expr: eq.Expr, bounds: Mapping[str, eq.Expr], tensors: Mapping[str, eq.TensorInfo]
) -> bool:
    """Whether evaluation cannot fail, so that a branch not taken does not matter."""
    inner = {**bounds, **bounds_of(expr)}
    for part in eq.walk(expr):
        if isinstance(part, eq.Read) and part.default is None:
            if not surely_inside(part, inner, tensors):
                return False
        elif isinstance(part, eq.Reduce) and part.kind in ("the", "argmax", "argmin"):
            return False
    return True
