"""What calls require of real numbers, and frameworks compute with whatever they are.

A definition has no value for a variance below 0. No framework looks at it: its root is NaN, out of
finite numbers, as any other root is. So where the question is what arises in frameworks, calls are
not taken to have refused such numbers. Numbers that say places are: what is read there is no number
of the model's.
"""

from __future__ import annotations

from dataclasses import replace

from irlang import equations as eq


def unheld(expansion: eq.Expansion) -> eq.Expansion:
    """The equations of a call without what they require of real numbers that say no places."""
    if not expansion.checks:
        return expansion
    found = expansion.notes.get(__name__)
    if found is None:
        places = _places(expansion)
        kept = tuple(one for one in expansion.checks if not _of_reals(one, expansion, places))
        same = len(kept) == len(expansion.checks)
        found = expansion if same else replace(expansion, checks=kept, notes={})
        expansion.notes[__name__] = found
    return found


def _of_reals(check: eq.Check, expansion: eq.Expansion, places: frozenset[str]) -> bool:
    """Whether a condition is about real numbers alone, none of which says a place."""
    read = eq.reads(check.condition)
    kinds = {expansion.tensors[name].kind for name in read}
    return kinds == {"real"} and not read & places


def _places(expansion: eq.Expansion) -> frozenset[str]:
    """The tensors of which numbers are made whole, as places are."""
    return frozenset(
        name
        for equation in expansion.equations
        for part in eq.walk(equation.body)
        if isinstance(part, eq.Apply) and part.function == "int"
        for name in eq.reads(part)
    )
