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
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.affine import Affine, affine, bounds_of, surely_inside
from irlang.kinds import kind

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
Operand = tuple[Array, tuple[str, ...]]
Evaluate = Callable[[eq.Equation, Arrays], Array]

BLOCK = 1 << 17  # elements gathered at a time: a mebibyte, within a core's second-level cache
_PADDED = 4  # a padded copy may be this many times as large as the tensor (and a bit)


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a product, over the indices `names`."""

    expr: eq.Expr
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """`target[free] = sum over the other indices of the product of two or more factors`.

    free: the indices of the result, after the split of those that occur in quotients; shape: of
    the result before the split. step: an index that is fixed in each run (of a recurrence).
    """

    target: str
    free: tuple[str, ...]
    shape: tuple[int, ...]
    extents: Mapping[str, int]
    factors: tuple[Factor, ...]
    summed: tuple[str, ...]
    step: str = ""

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

    def run(
        self, arrays: Arrays, evaluate: Evaluate, at: int = 0, out: Array | None = None
    ) -> Array:
        """The result, of shape `shape`, in `out` if given. at: the value of `step`."""
        gathered = [(self._gather(f, arrays, evaluate, at), f.names) for f in self.factors]
        while len(gathered) > 2:
            gathered = self._merge(gathered)
        (left, left_names), (right, right_names) = gathered
        result = np.empty(self.shape) if out is None else out
        parted = result.reshape([self.extents[name] for name in self.free])
        product(left, left_names, right, right_names, parted, self.free)
        return result

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
        out = np.empty([self.extents[name] for name in names])
        product(*operands[j], *operands[i], out, names)
        return [*(o for k, o in enumerate(operands) if k not in (i, j)), (out, names)]

    def _gather(self, factor: Factor, arrays: Arrays, evaluate: Evaluate, at: int) -> Array:
        """The factor as an array with one axis for each of its indices."""
        shape = tuple(self.extents[name] for name in factor.names)
        if isinstance(factor.expr, eq.Read):
            view = _view(
                factor.expr, factor.names, shape, arrays[factor.expr.tensor], self.step, at
            )
            if view is not None:
                return view
        body = factor.expr
        if self.step:
            body = eq.substitute(body, {self.step: eq.Size("step", at)})
        binders = tuple((name, eq.Size(name, self.extents[name])) for name in factor.names)
        info = eq.TensorInfo(shape, "f64")
        return evaluate(eq.Equation(f"{self.target}*", binders, body, info), arrays)


def _view(
    read: eq.Read, names: tuple[str, ...], shape: tuple[int, ...], array: Array, step: str, at: int
) -> Array | None:
    """A strided view of what is read, of a padded copy where it may lie outside."""
    if 0 in shape:
        return np.empty(shape)
    forms: list[Affine] = []
    padding: list[tuple[int, int]] = []
    extents = dict(zip(names, shape, strict=True))
    for part, extent in zip(read.index, array.shape, strict=True):
        form = affine(part)
        if form is None:
            return None
        if step in form.coefficients:
            form = form.plus(Affine({step: 1}, -at), -form.coefficients[step])
        spans = [c * (extents[name] - 1) for name, c in form.coefficients.items()]
        least = form.constant + sum(span for span in spans if span < 0)
        largest = form.constant + sum(span for span in spans if span > 0)
        forms.append(form)
        padding.append((max(0, -least), max(0, largest - extent + 1)))
    if any(before or after for before, after in padding):
        padded = _padded(array, padding, read.default)
        if padded is None:
            return None
        array = padded
    strides = dict.fromkeys(names, 0)
    offset = 0
    for form, (before, _), stride in zip(forms, padding, array.strides, strict=True):
        offset += (form.constant + before) * stride
        for name, coefficient in form.coefficients.items():
            strides[name] += coefficient * stride
    if array.dtype != np.float64:
        view = np.ndarray(shape, array.dtype, array, offset, tuple(strides.values()))
        return view.astype(np.float64)
    return np.ndarray(shape, np.float64, array, offset, tuple(strides.values()))


def _padded(
    array: Array, padding: Sequence[tuple[int, int]], default: eq.Expr | None
) -> Array | None:
    if not isinstance(default, (eq.Const, eq.Size)):
        return None
    pairs = list(zip(padding, array.shape, strict=True))
    shape = [before + extent + after for (before, after), extent in pairs]
    if math.prod(shape) > _PADDED * array.size + 1024:
        return None
    padded = np.full(shape, float(default.value))
    padded[tuple(slice(before, before + extent) for (before, _), extent in pairs)] = array
    return padded


# ---- the product of two -----------------------------------------------------------------------


def product(
    left: Array,
    left_names: tuple[str, ...],
    right: Array,
    right_names: tuple[str, ...],
    out: Array,
    names: tuple[str, ...],
) -> None:
    """`out[names] = sum left[left_names] * right[right_names]` over all other indices.

    Indices are rows (of `left` alone), columns (of `right` alone), summed (of both) or repeat the
    product (of both, and in the result).
    """
    left, left_names = _summed(left, left_names, {*right_names, *names})
    right, right_names = _summed(right, right_names, {*left_names, *names})
    if names and names[-1] in left_names and names[-1] not in right_names:
        left, left_names, right, right_names = right, right_names, left, left_names
    rows = [n for n in names if n not in right_names]
    columns = [n for n in names if n not in left_names]
    repeated = [n for n in names if n in left_names and n in right_names]
    inner = [n for n in left_names if n in right_names and n not in names]
    if not rows and not columns and not inner:  # nothing to sum, nothing to spread
        left = left.transpose([left_names.index(n) for n in names])
        right = right.transpose([right_names.index(n) for n in names])
        np.multiply(left, right, out=out)
        return
    axis = {name: position for position, name in enumerate(names)}
    while not _collapses(out, [axis[n] for n in rows]):
        repeated.append(rows.pop(0))
    while not _collapses(out, [axis[n] for n in columns]):
        repeated.append(columns.pop(0))
    target = out.transpose([axis[n] for n in (*repeated, *rows, *columns)])
    last = columns or rows
    if last and target.size and out.strides[axis[last[-1]]] != out.itemsize:
        buffer = np.empty(target.shape)
    else:
        buffer = target
    left = _arranged(left, left_names, repeated, rows, inner)
    right = _arranged(right, right_names, repeated, columns, inner)
    _multiply(left, right, buffer, _Ranks(len(repeated), len(rows), len(columns), len(inner)))
    if buffer is not target:
        target[...] = buffer


def _summed(array: Array, names: tuple[str, ...], used: set[str]) -> tuple[Array, tuple[str, ...]]:
    """Without the indices that occur nowhere else: they are summed at once."""
    alone = tuple(axis for axis, name in enumerate(names) if name not in used)
    if not alone:
        return array, names
    return array.sum(axis=alone), tuple(name for name in names if name in used)


def _collapses(array: Array, axes: Sequence[int]) -> bool:
    """Whether the axes can be read as a single one."""
    stride = None
    for axis in reversed(axes):
        extent = array.shape[axis]
        if extent == 1:
            continue
        if stride is not None and array.strides[axis] != stride:
            return False
        stride = array.strides[axis] * extent
    return True


def _arranged(
    array: Array, names: tuple[str, ...], repeated: list[str], own: list[str], inner: list[str]
) -> Array:
    """Axes in the order repeated, own, inner; what is repeated and not there has extent 1."""
    order = [names.index(n) for n in (*repeated, *own, *inner) if n in names]
    array = array.transpose(order)
    absent = tuple(axis for axis, name in enumerate(repeated) if name not in names)
    return np.expand_dims(array, absent) if absent else array


@dataclass(frozen=True, slots=True)
class _Ranks:
    """How many axes of an operand are repeated, rows, columns, and summed."""

    repeated: int
    rows: int
    columns: int
    inner: int


def _multiply(left: Array, right: Array, out: Array, ranks: _Ranks) -> None:
    """Multiplies; an operand that has to be copied for BLAS is copied block by block."""
    r = ranks.repeated
    copies = [not _readable(left, r, ranks.inner), not _readable(right, r, ranks.inner)]
    if copies[0] and (left.size <= right.size or not copies[1]) and left.size <= BLOCK:
        left, copies[0] = _copied(left, r, ranks.inner), False
    if copies[1] and (right.size < left.size or not copies[0]) and right.size <= BLOCK:
        right, copies[1] = _copied(right, r, ranks.inner), False
    for side, operand in enumerate((left, right)):
        if not copies[side] or operand.size <= BLOCK:
            continue
        shift = 0 if side == 0 else ranks.rows
        own = ranks.columns if side else ranks.rows
        axis = next((x for x in range(r + own) if operand.shape[x] > 1), None)
        if axis is None:
            continue
        extent = operand.shape[axis]
        step = max(1, BLOCK * extent // operand.size)
        place = axis if axis < r else axis + shift
        for start in range(0, extent, step):
            part = slice(start, start + step)
            operands = [left, right]
            operands[side] = operand[(slice(None),) * axis + (part,)]
            other = operands[1 - side]
            if axis < r and other.shape[axis] > 1:
                operands[1 - side] = other[(slice(None),) * axis + (part,)]
            target = out[(slice(None),) * place + (part,)]
            _multiply(operands[0], operands[1], target, ranks)
        return
    matrices = []
    for operand in (left, right):
        matrix = operand if _readable(operand, r, ranks.inner) else _copied(operand, r, ranks.inner)
        head, middle = matrix.shape[:r], matrix.shape[r : matrix.ndim - ranks.inner]
        tail = matrix.shape[matrix.ndim - ranks.inner :]
        matrices.append(matrix.reshape(*head, math.prod(middle), math.prod(tail)))
    shape = (*out.shape[:r], matrices[0].shape[-2], matrices[1].shape[-2])
    flat = out.reshape(shape)
    result = np.matmul(matrices[0], matrices[1].swapaxes(-1, -2), out=flat)
    if not np.may_share_memory(result, out):
        out[...] = result.reshape(out.shape)


def _readable(array: Array, repeated: int, inner: int) -> bool:
    """Whether BLAS can read each matrix (own axes by summed axes) where it lies."""
    own = list(range(repeated, array.ndim - inner))
    summed = list(range(array.ndim - inner, array.ndim))
    if not (_collapses(array, own) and _collapses(array, summed)):
        return False
    strides = []
    for axes in (own, summed):
        used = [axis for axis in axes if array.shape[axis] > 1]
        if used:
            strides.append(array.strides[used[-1]])
    if any(stride <= 0 for stride in strides):
        return False
    return not strides or array.itemsize in strides


def _copied(array: Array, repeated: int, inner: int) -> Array:
    """A copy that BLAS can read, running along the axis that is the fastest in the source."""
    split = array.ndim - inner
    used = [axis for axis in range(repeated, array.ndim) if array.shape[axis] > 1]
    fastest = min(used, key=lambda axis: (abs(array.strides[axis]), -axis), default=array.ndim)
    if fastest >= split:
        return np.ascontiguousarray(array)
    order = [*range(repeated), *range(split, array.ndim), *range(repeated, split)]
    back = [order.index(axis) for axis in range(array.ndim)]
    return np.ascontiguousarray(array.transpose(order)).transpose(back)


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
    if expr.kind != "sum" or expr.where is not None or expr.body is None:
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
    parts = _factors(expr.body)
    if len(parts) < 2 or not _harmless(expr.body, bounds, tensors):
        return None
    free = [index for index in free if index != step]
    shape = tuple(extents[index] for index in free)
    extents.pop(step, None)
    split = _split(expr.body, extents)
    parts = [_divided(part, split) for part in parts]
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
    return Contraction(name, tuple(names), shape, extents, joined, summed, step)


def _factors(expr: eq.Expr) -> list[eq.Expr]:
    if isinstance(expr, eq.Apply) and expr.function == "*":
        return [*_factors(expr.args[0]), *_factors(expr.args[1])]
    return [expr]


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


def _harmless(
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


# ---- indices in quotients ---------------------------------------------------------------------


def _split(expr: eq.Expr, extents: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Indices that occur as `f // q` or `f % q` with q dividing their extent: (extent / q, q)."""
    found: dict[str, tuple[int, int]] = {}
    for part in eq.walk(expr):
        if isinstance(part, eq.Apply) and part.function in ("//", "%"):
            index, divisor = part.args
            form = affine(divisor)
            if isinstance(index, eq.Index) and form is not None and form.known:
                extent, size = extents.get(index.name, 0), form.constant
                if size > 0 and extent and extent % size == 0:
                    found.setdefault(index.name, (extent // size, size))
    return found


def _divided(expr: eq.Expr, split: Mapping[str, tuple[int, int]]) -> eq.Expr:
    """The expression over quotients and remainders of the indices that are split."""
    if isinstance(expr, eq.Index) and expr.name in split:
        size = eq.Const(split[expr.name][1])
        whole = eq.Apply("*", (eq.Index(f"{expr.name}//"), size))
        return eq.Apply("+", (whole, eq.Index(f"{expr.name}%")))
    if isinstance(expr, eq.Apply) and expr.function in ("//", "%"):
        index, divisor = expr.args
        if isinstance(index, eq.Index) and index.name in split:
            form = affine(divisor)
            if form is not None and form.known and form.constant == split[index.name][1]:
                return eq.Index(index.name + expr.function)
    return eq.rebuild(expr, lambda part: _divided(part, split))
