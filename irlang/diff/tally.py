"""The counts of a campaign."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """Sums over finished batches.

    `targets` counts verdicts, `apart` those on calls apart, `pieces` those on idioms by themselves,
    `invalid` what became of invalid calls, `covered` operators, pairs.
    """

    programs: int = 0
    valid: int = 0
    tried: int = 0
    seconds: float = 0.0
    targets: dict[str, Counter[str]] = field(default_factory=dict)
    apart: dict[str, Counter[str]] = field(default_factory=dict)
    pieces: dict[str, Counter[str]] = field(default_factory=dict)
    invalid: dict[str, Counter[str]] = field(default_factory=dict)
    covered: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def aside(self) -> int:
        """What was run beside the programs: those of calls apart, pieces, and spoilt calls.

        Of each as many as the target has that was given most.
        """
        return sum(
            max((sum(one.values()) for one in counts.values()), default=0)
            for counts in (self.apart, self.pieces, self.invalid)
        )

    def add(self, batch: dict[str, Any]) -> None:
        """Adds the result of a batch."""
        self.programs += batch["programs"]
        self.valid += batch["valid"]
        self.tried += batch["tried"]
        _add(self.targets, batch["targets"])
        _add(self.apart, batch.get("apart", {}))
        _add(self.pieces, batch.get("pieces", {}))
        _add(self.invalid, batch.get("invalid", {}))
        _add(self.covered, batch["covered"])


def _add(all_counts: dict[str, Counter[str]], found: dict[str, dict[str, int]]) -> None:
    """Adds counts by name to those there are; raises ValueError or TypeError for what is none."""
    for kind, counts in found.items():
        own = all_counts.setdefault(kind, Counter())
        for name, count in counts.items():
            own[name] += int(count)
