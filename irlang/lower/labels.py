"""Labels of axes as the letters of an equation, which every target spells alike."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.value import Value

Shapes = Sequence[tuple[int, ...]]


def _equation(call: Call[Any], shapes: Shapes, *, serves: bool) -> str | None:
    """The text; None where letters run out, or an axis of size 1 serves longer ones and must not.

    serves: whether it may. For another axis of its own tensor it never does, and that is for the
    target to say. What is wrong with an equation is said as it is: of labels that are too many or
    too few the last input has more or fewer, and those that no axis has are letters too.
    """
    labels, output = list(call["labels"]), list(call["output"])
    letters = _letters([*labels, *output])
    if letters is None:
        return None
    served = _served(labels, shapes)
    own = {key[0] for key in served if len(key) > 1}
    if not serves and any(key[0] not in own for key in served):
        return None
    terms, rest = [], "".join(letters[label] for label in labels)
    for shape in shapes[:-1]:
        terms.append(rest[: len(shape)])
        rest = rest[len(shape) :]
    return f"{','.join([*terms, rest])}->{''.join(letters[label] for label in output)}"


def _served(labels: Sequence[int], shapes: Shapes) -> set[tuple[int, ...]]:
    """The labels, and the labels with inputs, of which one axis has size 1, and others another."""
    sizes: dict[tuple[int, ...], set[int]] = {}
    axes = ((which, size) for which, shape in enumerate(shapes) for size in shape)
    for label, (which, size) in zip(labels, axes, strict=False):
        sizes.setdefault((label,), set()).add(size)
        sizes.setdefault((label, which), set()).add(size)
    return {key for key, found in sizes.items() if 1 in found and len(found) > 1}


def _letters(labels: Sequence[int]) -> dict[int, str] | None:
    """Each label's letter: that of its place in the alphabet, or else one after the other as they
    come; None where there are not so many.
    """
    names = dict.fromkeys(labels)
    if all(0 <= label < len(string.ascii_letters) for label in names):
        return {label: string.ascii_letters[label] for label in names}
    if len(names) > len(string.ascii_letters):
        return None
    return dict(zip(names, string.ascii_letters, strict=False))


def numbered(equation: str) -> list[int]:
    """What labels the letters of an equation are; nothing of another text."""
    if "->" not in equation or not set(equation) <= {*string.ascii_letters, *",->"}:
        return []
    return [string.ascii_letters.index(letter) for letter in equation if letter.isalpha()]


def _with_ellipsis(call: Call[Any], shapes: Shapes, *, even: bool = False) -> str | None:
    """The equation with an ellipsis for the labels that the result begins with, each input having
    the last of them, or all, at its beginning; there an axis of size 1 serves longer ones, and
    nowhere else. even: whether an ellipsis has to stand for as many axes wherever it is.
    """
    output = list(call["output"])
    terms, rest = [], list(call["labels"])
    for shape in shapes:
        terms.append(rest[: len(shape)])
        rest = rest[len(shape) :]
    letters = _letters([*call["labels"], *output])
    if letters is None or rest or any(len(t) < len(s) for t, s in zip(terms, shapes, strict=True)):
        return None
    served = {key[0] for key in _served(call["labels"], shapes)}
    for count in range(len(output), 0, -1):
        lead = output[:count]
        heads = [_leading(term, lead) for term in terms]
        others = {label for t, head in zip(terms, heads, strict=True) for label in t[head:]}
        ragged = even and len({*heads} - {0}) > 1
        if others.isdisjoint({*lead, *served}) and max(heads) == count and not ragged:
            named = (
                "".join(letters[label] for label in t[h:])
                for t, h in zip(terms, heads, strict=True)
            )
            dots = ("..." if head else "" for head in heads)
            left = ",".join(map("".join, zip(dots, named, strict=True)))
            return f"{left}->...{''.join(letters[label] for label in output[count:])}"
    return None


def _leading(term: Sequence[int], lead: Sequence[int]) -> int:
    """How many labels a term begins with that are the last of those."""
    return next(
        n for n in range(len(lead), -1, -1) if list(term[:n]) == list(lead[len(lead) - n :])
    )


def _implied(call: Call[Any], shapes: Shapes) -> str | None:
    """The equation without its result: where that has the letters that stand once, in order."""
    spec = _equation(call, shapes, serves=False)
    if spec is None:
        return None
    terms, _, result = spec.partition("->")
    once = sorted(letter for letter in terms if letter != "," and terms.count(letter) == 1)
    return terms if "".join(once) == result else None


def native(
    function: str,
    *,
    repeats: bool,
    serves: bool = False,
    integers: bool = False,
    even: bool = False,
) -> Native:
    """repeats: whether a label may stand twice in one input. serves: whether an axis of size 1
    does for longer ones of its label. integers: whether these may be multiplied. even: whether an
    ellipsis stands for as many axes wherever it is.

    Further words are the same equation with an ellipsis, and without its result.
    """

    def row(spelt: Callable[[Call[Any], Shapes], str | None]) -> Native:
        def rule(call: Call[Any]) -> Value | None:
            values = call.family("xs")
            spec = spelt(call, [value.shape for value in values])
            if spec is None or (DTYPES[call.out.dtype].kind == "int" and not integers):
                return None
            terms = spec.partition("->")[0].replace("...", "").split(",")
            if not repeats and any(len(set(term)) < len(term) for term in terms):
                return None
            found: Value = call.build.einsum(spec, values)
            return found

        return Native(function, rule)

    usual = row(partial(_equation, serves=serves))
    return replace(usual, others=(row(partial(_with_ellipsis, even=even)), row(_implied)))
