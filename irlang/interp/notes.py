"""What evaluations of the same equations share: what hangs on their text and sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Notes:
    """What was found out about equations, their parts and groups, by what for and which."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[object, Any]] = {}

    def note(self, what: str, item: object, make: Callable[[], T], *key: object) -> T:
        """What `make` gave for this very item, and for an equal key, the first time."""
        full = what, id(item), *key
        found = self._found.get(full)
        if found is None:  # the item is kept, so that its id stays its own
            found = self._found[full] = item, make()
        return cast(T, found[1])
