"""Where the declared axes of a type lie in the actual axes of a tensor (`K @ axis`, `S..`)."""

from __future__ import annotations

from irlang import ast
from irlang.diagnostics import fail
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.scope import Scope, TensorRef

evaluate = Evaluator()


def place(
    dims: tuple[ast.Dim, ...], lengths: list[int | None], rank: int, scope: Scope
) -> list[list[int]] | str:
    """The actual axes of every declared entry, in declared order; or what does not fit.

    lengths: how many axes each entry has, None where it takes what is left.
    """
    if all(dim.at is None for dim in dims):
        return _in_order(lengths, rank)
    taken = _stated(dims, lengths, rank, scope)
    if isinstance(taken, str):
        return taken
    used = {axis for axes in taken.values() for axis in axes}
    if len(used) != sum(map(len, taken.values())):
        return "an axis is named twice"
    free = [axis for axis in range(rank) if axis not in used]
    others = [i for i in range(len(dims)) if i not in taken]
    open_ = [i for i in others if lengths[i] is None]
    fixed = sum(lengths[i] or 0 for i in others)
    counts = {i: lengths[i] for i in others}
    pivot = next((i for i, axes in taken.items() if axes), None)
    if len(open_) == 2 and pivot is not None:
        before = sum(axis < taken[pivot][0] for axis in free)
        counts[open_[0]] = before - sum(lengths[i] or 0 for i in others if i < pivot)
        counts[open_[1]] = len(free) - fixed - (counts[open_[0]] or 0)
    elif len(open_) == 1:
        counts[open_[0]] = len(free) - fixed
    elif open_:
        return "the definition leaves it open which axes belong together"
    if any(c is None or c < 0 for c in counts.values()) or sum(
        c or 0 for c in counts.values()
    ) != len(free):
        needed = fixed + len(used)
        return _needed(needed, bool(open_), rank)
    result: list[list[int]] = [[] for _ in dims]
    position = 0
    for i in range(len(dims)):
        if i in taken:
            result[i] = taken[i]
        else:
            count = counts[i] or 0
            result[i] = free[position : position + count]
            position += count
    return result


def _stated(
    dims: tuple[ast.Dim, ...], lengths: list[int | None], rank: int, scope: Scope
) -> dict[int, list[int]] | str:
    """The axes that `@` says, by entry."""
    taken: dict[int, list[int]] = {}
    for i, dim in enumerate(dims):
        if dim.at is None:
            continue
        if lengths[i] == 0:  # no axes (reduced ones that are not kept) stand nowhere
            taken[i] = []
            continue
        at = evaluate.known(dim.at, scope)
        for axis in at if isinstance(at, tuple) else (at,):
            if not isinstance(axis, int) or not -rank <= axis < rank:
                return f"axis {axis} is not one of {rank} axes"
        if isinstance(at, tuple):
            taken[i] = [axis % rank for axis in at]
        elif dim.kind == "rest":
            taken[i] = list(range(at % rank, rank))
        else:
            taken[i] = [at % rank]
    return taken


def _needed(count: int, more: bool, rank: int) -> str:
    """Says how many axes an operand must have."""
    if more:
        return f"{count} or more axes are needed, not {rank}"
    return f"1 axis is needed, not {rank}" if count == 1 else f"{count} axes are needed, not {rank}"


def _in_order(lengths: list[int | None], rank: int) -> list[list[int]] | str:
    """`place` for a type without `@`."""
    open_ = lengths.count(None)
    if open_ > 1:
        return "the definition leaves it open which axes belong together"
    fixed = sum(length or 0 for length in lengths)
    if rank < fixed or (rank > fixed and not open_):
        return _needed(fixed, bool(open_), rank)
    result: list[list[int]] = []
    position = 0
    for length in lengths:
        count = rank - fixed if length is None else length
        result.append(list(range(position, position + count)))
        position += count
    return result


def declared_sizes(dims: tuple[ast.Dim, ...], scope: Scope) -> tuple[int, ...]:
    """The sizes that a type declares, in declared order."""
    sizes: list[int] = []
    for dim in dims:
        value = evaluate.known(dim.size, scope)
        sizes += value if dim.kind == "rest" else (value,)
    return tuple(sizes)


def reference(name: str, dims: tuple[ast.Dim, ...], info: TensorInfo, scope: Scope) -> TensorRef:
    """How the declared axes of a tensor lie in the actual ones."""
    sizes = declared_sizes(dims, scope)
    rank = len(info.shape)
    kind = DTYPES[info.dtype].kind
    if any(dim.broadcast for dim in dims):
        absent = len(sizes) - rank
        placement = tuple(max(axis - absent, 0) for axis in range(len(sizes)))
        return TensorRef(name, info.shape, info.dtype, kind, placement, sizes, broadcast=True)
    placed = place_known(dims, rank, scope)
    return TensorRef(name, info.shape, info.dtype, kind, placed, sizes)


def place_known(dims: tuple[ast.Dim, ...], rank: int, scope: Scope) -> tuple[int, ...]:
    """`place` for a type whose sizes are all known."""
    lengths: list[int | None] = [
        len(evaluate.known(dim.size, scope)) if dim.kind == "rest" else 1 for dim in dims
    ]
    placed = place(dims, lengths, rank, scope)
    if isinstance(placed, str):
        raise fail("definition.axes", placed, dims[0].span)
    return tuple(axis for axes in placed for axis in axes)
