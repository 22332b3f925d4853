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
        for target, counts in batch["targets"].items():
            self.targets.setdefault(target, Counter()).update(counts)
        for target, counts in batch.get("apart", {}).items():
            self.apart.setdefault(target, Counter()).update(counts)
        for target, counts in batch.get("pieces", {}).items():
            self.pieces.setdefault(target, Counter()).update(counts)
        for target, counts in batch.get("invalid", {}).items():
            self.invalid.setdefault(target, Counter()).update(counts)
        for kind, counts in batch["covered"].items():
            self.covered.setdefault(kind, Counter()).update(counts)
