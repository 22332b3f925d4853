"""Where a layer finds its weights: by position; those of the layers inside it by their place."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang.importers.writer import Array

_owners = itertools.count()


class Weights:
    """The weights of a layer, numbered. owner: the same for every use of one layer's weights."""

    def __init__(self) -> None:
        self.owner = next(_owners)

    def get(self, position: int) -> Array | None:
        """A weight, if there is one."""
        raise NotImplementedError

    def part(self, names: tuple[str, ...], first: int, count: int | None = None) -> Weights:
        """The weights of a layer inside: found by one of its names, or from `first` on."""
        raise NotImplementedError

    def __len__(self) -> int:
        """How many there are."""
        raise NotImplementedError


class Listed(Weights):
    """Weights in one list, those of the layers inside among them, as `get_weights` gives them."""

    def __init__(self, given: Mapping[int, Any], parts: dict[Any, Weights] | None = None) -> None:
        super().__init__()
        self.given = given
        self.parts: dict[Any, Weights] = {} if parts is None else parts

    def get(self, position: int) -> Array | None:
        """A weight, if there is one; raises `ValueError` where it is no tensor of numbers."""
        if position not in self.given:
            return None
        try:
            return np.array(self.given[position], dtype=np.float64)
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from None

    def part(self, _: tuple[str, ...], first: int, count: int | None = None) -> Weights:
        """The weights from `first` on."""
        key = (first, count)
        if key not in self.parts:
            taken = {
                position - first: value
                for position, value in self.given.items()
                if position >= first and (count is None or position < first + count)
            }
            self.parts[key] = Listed(taken)
        return self.parts[key]

    def __len__(self) -> int:
        """How many there are, by the last one that is given."""
        return max(self.given, default=-1) + 1


NONE = Listed({})
