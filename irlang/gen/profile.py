"""Which recipes suit an attribute, found by trying them on its definition.

A profile depends on the definition alone: the experiments have a seed of their own, so that a
program does not depend on what was generated before it. It takes a tenth of a second to learn, so
that profiles are kept in the user's cache, under the digest of all that they depend on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import irlang
from irlang import ast
from irlang.gen import draw
from irlang.gen.choice import Chooser
from irlang.gen.judge import judge, types
from irlang.gen.pattern import Pattern
from irlang.gen.solve import solve
from irlang.user_cache import private

_TRIALS = 120
_LEAST = 0.02  # every recipe keeps a chance
_profiles: dict[int, tuple[ast.Op, dict[str, Sequence[float]]]] = {}


def profile(made: Pattern) -> dict[str, Sequence[float]]:
    """Weights of the recipes for every attribute that has some."""
    found = _profiles.get(id(made.op))
    if found is None or found[0] is not made.op:
        found = _profiles[id(made.op)] = (made.op, _kept(made))
    return found[1]


def _kept(made: Pattern) -> dict[str, Sequence[float]]:
    """The profile from the user's cache, learned if it is not there."""
    folder = private("profiles")
    if folder is None:
        return _learn(made)
    path = folder / f"{made.op.name}-{hashlib.sha256(f'{_code()}{made.op!r}'.encode()).hexdigest()}"
    found = _read(path, made)
    if found is None:
        found = _learn(made)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            partial.write_text(json.dumps(found), "utf-8")
            partial.replace(path)  # whole or not at all, whoever else writes it
        except OSError:  # no room: it will be learned again
            partial.unlink(missing_ok=True)
    return found


def _read(path: Path, made: Pattern) -> dict[str, Sequence[float]] | None:
    """A profile that was written before; None where there is none or it is none."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    recipes = {name: len(draw.recipes(attr)) for name, attr in made.attrs.items()}
    wanted = {name: count for name, count in recipes.items() if count}
    if not isinstance(found, dict) or {n: len(row) for n, row in found.items()} != wanted:
        return None
    return found


@cache
def _code() -> str:
    """The digest of the modules that experiments run through."""
    root = Path(__file__).parent
    digest = hashlib.sha256(irlang.__version__.encode())
    for path in sorted([*root.glob("*.py"), *root.parent.glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _learn(made: Pattern) -> dict[str, Sequence[float]]:
    counts = {
        name: [[1.0, 4.0] for _ in draw.recipes(attr)]
        for name, attr in made.attrs.items()
        if draw.recipes(attr)
    }
    if not counts:
        return {}
    limits = draw.Limits(elements=512, length=12, alike=0)
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
        wanted = _wanted(made, made.attrs[name], len(rows))
        found[name] = [w * max(_LEAST, a / b) ** 2 for w, (a, b) in zip(wanted, rows, strict=True)]
    return found


def _wanted(made: Pattern, attr: ast.Attr, count: int) -> Sequence[float]:
    """How much the recipes of an attribute are wanted where all of them suit."""
    options = draw.recipes(attr)
    if options is draw.SCALED:
        special = draw.special(made.compared.get(attr.name, ()), draw.default_number(attr))
        *others, each = draw.SCALED_WANTED
        return (*others, each * max(1, len(special)))
    if options is draw.INTS:
        return draw.INTS_WANTED if made.slots else draw.SIZES_WANTED
    if options is draw.REALS and not made.slots:
        return draw.BOUNDS_WANTED
    return (1.0,) * count
