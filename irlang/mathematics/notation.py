"""Levels, names and marks: what all that builds mathematics shares."""

from __future__ import annotations

import re

from irlang.mathematics.form import Fence, Form, Sign, Symbol, Words

# How tightly a form holds together, loosest first.
OR, AND, NOT, COMPARISON, MODULO, SUM, PRODUCT, FACTOR, ATOM = range(9)

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "rho": "ρ", "tau": "τ", "phi": "φ", "omega": "ω",
    "inf": "∞", "pi": "π",
}  # fmt: skip

Made = tuple[Form, int]


def symbol(name: str, *, bold: bool = False) -> Symbol:
    """A name as it is set: Greek letters by their names, digits at the end lowered."""
    found = re.fullmatch(r"(.*?[A-Za-z])_?(\d+)", name)
    head, digits = found.groups() if found else (name, "")
    head = head.rstrip("_") or head
    return Symbol(_GREEK.get(head, head), bold, digits)


def mark(number: int) -> Words:
    """What stands for the condition of that number, counted from 1."""
    return Words(f"({'∗' * number})")


def infix(sign: str, kind: str = "plus") -> Sign:
    """A sign between two forms."""
    return Sign(sign, kind)


def fenced(form: Form, left: str = "(", right: str = ")") -> Form:
    """A form in parentheses."""
    return Fence(left, form, right)
