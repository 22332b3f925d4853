"""Which recipes suit an attribute, found by trying them on its definition.

A profile depends on the definition alone: the experiments have a seed of their own, so that a
program does not depend on what was generated before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from irlang import ast
from irlang.gen import draw
from irlang.gen.choice import Chooser
from irlang.gen.judge import judge, types
from irlang.gen.pattern import Pattern
from irlang.gen.solve import solve

_TRIALS = 120
_LEAST = 0.02  # every recipe keeps a chance
_profiles: dict[int, tuple[ast.Op, dict[str, Sequence[float]]]] = {}


def profile(made: Pattern) -> dict[str, Sequence[float]]:
    """Weights of the recipes for every attribute that has some."""
    found = _profiles.get(id(made.op))
    if found is None or found[0] is not made.op:
        found = _profiles[id(made.op)] = (made.op, _learn(made))
    return found[1]


def _learn(made: Pattern) -> dict[str, Sequence[float]]:
    counts = {
        name: [[1.0, 4.0] for _ in draw.recipes(attr)]
        for name, attr in made.attrs.items()
        if draw.recipes(attr)
    }
    if not counts:
        return {}
    limits = draw.Limits(elements=512, length=12)
    for trial in range(_TRIALS):
        chooser = Chooser(f"{made.op.name} {trial}")
        weights = {name: [a / b for a, b in rows] for name, rows in counts.items()}
        draft = solve(made, chooser, limits, (), (), weights)
        if draft is None or not draft.recipes:
            continue
        instance = judge(made.op, types(draft, {}), draft.attrs)
        blamed = set(draft.recipes)
        if instance is not None and instance.faults:
            blamed &= set(instance.faults[0].sources)
        good = instance is not None and not instance.faults
        for name in blamed:
            row = counts[name][draft.recipes[name]]
            row[0] += good
            row[1] += 1
    found: dict[str, Sequence[float]] = {}
    for name, rows in counts.items():
        wanted = (
            draw.INTS_WANTED if draw.recipes(made.attrs[name]) is draw.INTS else (1.0,) * len(rows)
        )
        found[name] = [w * max(_LEAST, a / b) ** 2 for w, (a, b) in zip(wanted, rows, strict=True)]
    return found
