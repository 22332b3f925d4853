"""What programs are made of: patterns of calls, adapters and idioms of a catalogue."""

from __future__ import annotations

from dataclasses import dataclass, field

from irlang.catalog import Catalog, builtin
from irlang.gen.adapt import Adapters
from irlang.gen.idiom import Idiom, idioms
from irlang.gen.pattern import Pattern, pattern
from irlang.gen.tame import Tamers


@dataclass(slots=True)
class Kit:
    """What programs are made of: the same for all programs of a catalogue."""

    catalog: Catalog
    made: list[Pattern]
    adapters: Adapters
    tamers: Tamers
    patterns: dict[str, Pattern]
    idioms: tuple[Idiom, ...]
    _without: dict[frozenset[str], list[Idiom]] = field(default_factory=dict)

    def idioms_without(self, dtypes: frozenset[str]) -> list[Idiom]:
        """The idioms that name none of some element types; kept, as every program asks."""
        if dtypes not in self._without:
            self._without[dtypes] = [
                one for one in self.idioms if not any(step.names(dtypes) for step in one)
            ]
        return self._without[dtypes]


_kits: dict[tuple[int, frozenset[str] | None], Kit] = {}


def kit_of(catalog: Catalog, ops: frozenset[str] | None) -> Kit:
    """What programs of some operators of a catalogue are made of; of all, where `ops` is None.

    Raises ValueError where none of them can be generated.
    """
    key = (id(catalog), ops)
    kit = _kits.get(key)
    if kit is None or kit.catalog is not catalog:
        names = [name for name in catalog.names() if ops is None or name in ops]
        made = [pattern(op) for op in map(catalog.op, names) if op is not None]
        if not made:
            raise ValueError("none of the operators can be generated")
        patterns = {one.op.name: one for one in made}
        known = idioms([name for name, one in patterns.items() if one.op is builtin().op(name)])
        kit = _kits[key] = Kit(
            catalog, made, Adapters(made), Tamers(made, catalog), patterns, known
        )
    return kit
