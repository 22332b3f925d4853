"""The names that Keras gives to what it saves: classes in lower case, numbered from the second."""

from __future__ import annotations

import re
from collections.abc import Sequence


def snake_case(name: str) -> str:
    """`TimeDistributed` as `time_distributed`, `Conv2D` as `conv2d`."""
    borders = r"(?<=.)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])"
    return re.sub(borders, "_", re.sub(r"\W+", "", name)).lower()


def unique(names: Sequence[str]) -> list[str]:
    """Names in a list, all different: `dense`, `dense_1`, ..."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        count = seen.get(name, -1) + 1
        seen[name] = count
        found.append(f"{name}_{count}" if count else name)
    return found
