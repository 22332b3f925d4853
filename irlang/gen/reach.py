"""What whole numbers that a program computes can be, whatever it is fed with.

Places that a call gives (of the largest element, of those that are sorted) may be read as places by
a later one, as models do. They are where they have to be for certain if the abstract meaning says
so of any inputs at all: what is drawn for these is settled later, and edge values among it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.gen.ranges import Range
from irlang.graph import Graph, Param, cone
from irlang.instance import Definitions
from irlang.interp.range import analyse


def reach(graph: Graph, name: str, definitions: Definitions) -> Range | None:
    """The least and the largest number that a computed value has, both included; None of a value
    that is given, or that is not of whole numbers.
    """
    if graph.values[name].kind != "int":
        return None
    part = cone(graph, [name])
    if not part.nodes:
        return None
    made = {value for node in part.nodes for value in node.outputs}
    read = {value for node in part.nodes for value in node.operands()}
    found = analyse(
        replace(
            part,
            inputs={n: _any(one) for n, one in graph.inputs.items() if n in read},
            params={n: _any(one) for n, one in graph.params.items() if n in read},
            values={n: info for n, info in graph.values.items() if n in made | read},
            outputs={name: name},
        ),
        definitions,
        domain="tensor",
    ).values[name]
    return found.low, found.high


def _any(given: Any) -> Any:
    """An input or a parameter that may be whatever its type holds; a number that is known stays."""
    if isinstance(given, Param) and given.initial is not None:
        return given
    return replace(given, within=_all(given.info))


def _all(info: TensorInfo) -> Range | None:
    if info.kind == "real":
        return -DTYPES[info.dtype].largest, DTYPES[info.dtype].largest
    return integer_range(info.dtype) if info.kind == "int" else None
