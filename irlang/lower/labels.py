"""Labels of axes as the letters of an equation, which every target spells alike."""

from __future__ import annotations

import string
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.value import Value


def _equation(call: Call[Any], shapes: list[tuple[int, ...]]) -> str | None:
    """The text; None where an axis of size 1 serves longer ones, or letters run out."""
    labels, sizes = list(call["labels"]), [size for shape in shapes for size in shape]
    if any(
        dict(zip(labels, sizes, strict=True))[n] != s for n, s in zip(labels, sizes, strict=True)
    ):
        return None
    names = dict.fromkeys(labels)
    if len(names) > len(string.ascii_letters):
        return None
    letters = dict(zip(names, string.ascii_letters, strict=False))
    rest = iter(letters[label] for label in labels)
    terms = ["".join(next(rest) for _ in shape) for shape in shapes]
    return f"{','.join(terms)}->{''.join(letters[label] for label in call['output'])}"


def native(function: str, repeats: bool) -> Native:
    """repeats: whether a label may stand twice in one input."""

    def rule(call: Call[Any]) -> Value | None:
        values = call.family("xs")
        spec = _equation(call, [value.shape for value in values])
        if spec is None or DTYPES[call.out.dtype].kind == "int":
            return None
        terms = spec.partition("->")[0].split(",")
        if not repeats and any(len(set(term)) < len(term) for term in terms):
            return None
        found: Value = call.build.einsum(spec, values)
        return found

    return Native(function, rule)
