"""Products of two arrays with named axes, by BLAS.

Axes are classified by where they occur and collapsed to matrices. What BLAS can read in place is
read in place; what it cannot is copied in blocks that stay in cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.interp import memory

Array = np.ndarray[Any, Any]

BLOCK = 1 << 17  # elements gathered at a time: a mebibyte, within a core's second-level cache


Operand = tuple[Array, tuple[str, ...]]


def product(left: Operand, right: Operand, out: Array, names: tuple[str, ...]) -> None:
    """`out[names] = sum left * right` over all other indices; an operand is an array and its names.

    Indices are rows (of `left` alone), columns (of `right` alone), summed (of both) or repeat the
    product (of both, and in the result).
    """
    left, right = _summed(left, {*right[1], *names}), _summed(right, {*left[1], *names})
    if not {*left[1], *right[1]} - {*names} and {*left[1]} == {*right[1]}:
        first, second = (
            array.transpose([own.index(n) for n in names]) for array, own in (left, right)
        )
        np.multiply(first, second, out=out)
        return
    first, second, target, ranks = _laid_out(left, right, out, names)
    if _fast(target):
        _multiply(first, second, target, ranks)
        return
    buffer = memory.empty(target.shape, target.dtype)
    _multiply(first, second, buffer, ranks)
    target[...] = buffer


def matrices(
    left: Operand, right: Operand, out: Array, names: tuple[str, ...]
) -> tuple[Array, Array, Array, bool] | None:
    """Views a, b, c with `np.matmul(a, b, out=c)` the product of `product`; None if there are none.

    With them, whether a is of the right operand and b of the left. For a product that is taken
    again and again over memory that changes.
    """
    if {*left[1], *right[1]} - {*names} != {*left[1]} & {*right[1]} - {*names}:
        return None
    first, second, target, ranks = _laid_out(left, right, out, names)
    if not (_fast(target) and target.size):
        return None
    if not all(_readable(operand, ranks.repeated, ranks.inner) for operand in (first, second)):
        return None
    flat = [_matrix(operand, ranks.repeated, ranks.inner) for operand in (first, second)]
    result = _matrix(target, ranks.repeated, ranks.columns)
    return flat[0], flat[1].swapaxes(-1, -2), result, _turned(left, right, names)


def _laid_out(
    left: Operand, right: Operand, out: Array, names: tuple[str, ...]
) -> tuple[Array, Array, Array, _Ranks]:
    """Both operands with axes repeated, own, summed; the result with repeated, rows, columns."""
    if _turned(left, right, names):
        left, right = right, left
    rows = [n for n in names if n not in right[1]]
    columns = [n for n in names if n not in left[1]]
    repeated = [n for n in names if n in left[1] and n in right[1]]
    inner = [n for n in left[1] if n in right[1] and n not in names]
    axis = {name: position for position, name in enumerate(names)}
    while not _collapses(out, [axis[n] for n in rows]):
        repeated.append(rows.pop(0))
    while not _collapses(out, [axis[n] for n in columns]):
        repeated.append(columns.pop(0))
    target = out.transpose([axis[n] for n in (*repeated, *rows, *columns)])
    ranks = _Ranks(len(repeated), len(rows), len(columns), len(inner))
    first = _arranged(*left, repeated, rows, inner)
    return first, _arranged(*right, repeated, columns, inner), target, ranks


def _turned(left: Operand, right: Operand, names: tuple[str, ...]) -> bool:
    """Whether the operands change sides, so that the result's last axis is one of columns."""
    return bool(names) and names[-1] in left[1] and names[-1] not in right[1]


def _fast(target: Array) -> bool:
    """Whether the result can be written where it belongs: its last axis is contiguous."""
    return not target.ndim or not target.size or target.strides[-1] == target.itemsize


def _matrix(array: Array, repeated: int, last: int) -> Array:
    """The own axes as one, and the `last` ones as another."""
    split = array.ndim - last
    own, rest = array.shape[repeated:split], array.shape[split:]
    return array.reshape(*array.shape[:repeated], math.prod(own), math.prod(rest))


def _summed(operand: Operand, used: set[str]) -> Operand:
    """Without the indices that occur nowhere else: they are summed at once."""
    array, names = operand
    alone = tuple(axis for axis, name in enumerate(names) if name not in used)
    if not alone:
        return operand
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
    flat = []
    for operand in (left, right):
        readable = _readable(operand, r, ranks.inner)
        flat.append(
            _matrix(operand if readable else _copied(operand, r, ranks.inner), r, ranks.inner)
        )
    target = _matrix(out, r, ranks.columns)
    result = np.matmul(flat[0], flat[1].swapaxes(-1, -2), out=target)
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
