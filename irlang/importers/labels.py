"""The text of an einsum (`bij,bjk->bik`) as labels of axes."""

from __future__ import annotations

from collections.abc import Sequence

_ELLIPSIS = "..."


class Malformed(ValueError):
    """A text that is no equation for these tensors; `str` says why."""


def labels_of(equation: str, ranks: Sequence[int]) -> tuple[list[int], list[int]]:
    """A number for every axis of all inputs, and those of the result in their order.

    Axes that an ellipsis stands for are aligned from the last on. Without `->` the result has those
    axes, then the letters that stand once, by their order in the alphabet.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise Malformed(
            f"the equation {equation!r} is one of {len(terms)} inputs, not {len(ranks)}"
        )
    lists = [_axes(term, rank, equation) for term, rank in zip(terms, ranks, strict=True)]
    wide = max((sum(type(axis) is int for axis in axes) for axes in lists), default=0)
    hidden: list[str | int] = list(range(-wide, 0))
    if arrow:
        ends = right.partition(_ELLIPSIS)
        middle = hidden if ends[1] else []
        result: list[str | int] = [*ends[0], *middle, *ends[2]]
    else:
        letters = [axis for axes in lists for axis in axes if isinstance(axis, str)]
        result = [*hidden, *sorted(letter for letter in letters if letters.count(letter) == 1)]
    known = {axis: number for number, axis in enumerate(hidden)}
    for axes in lists:
        for axis in axes:
            known.setdefault(axis, len(known))
    missing = [axis for axis in result if axis not in known]
    if missing or len(set(result)) < len(result):
        raise Malformed(f"the result of {equation!r} has labels that no input has, or one twice")
    return [known[axis] for axes in lists for axis in axes], [known[axis] for axis in result]


def _axes(term: str, rank: int, equation: str) -> list[str | int]:
    """A letter for every axis, or how far from the last of them one of an ellipsis is."""
    before, dots, after = term.partition(_ELLIPSIS)
    if not all(letter.isalpha() for letter in before + after):
        raise Malformed(f"{term!r} in the equation {equation!r} is not made of letters")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise Malformed(f"{term!r} in the equation {equation!r} does not fit {rank} axes")
    return [*before, *range(-count, 0), *after]
