"""What a spoilt call is fed with."""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang.catalog import Catalog
from irlang.gen.changes import SetElements
from irlang.gen.edge import on_grid
from irlang.gen.lines import in_line
from irlang.gen.spoilt import Spoilt
from irlang.interp.values import inputs

Array = np.ndarray[Any, np.dtype[Any]]


def fed(one: Spoilt, catalog: Catalog) -> dict[str, Array]:
    """The inputs of its seed: round numbers, in the order that the definition wants, but for what
    is changed.
    """
    drawn = on_grid(one.graph, inputs(one.graph, one.seed))
    found = in_line(one.graph, drawn, {}, catalog, one.seed)
    if isinstance(one.changed, SetElements):
        for name, value in one.changed.values:
            found[name].flat[int(one.changed.place * (found[name].size - 1))] = value
    return found
