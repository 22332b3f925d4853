"""Values that definitions leave open, drawn from their laws.

A draw depends on the seed and on the name of the value alone: all meanings of one call, its
gradient among them, see the same one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import fail
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node
from irlang.instance import Definitions
from irlang.interp.plain import load
from irlang.laws import LAWS

Array = np.ndarray[Any, np.dtype[Any]]


def generator(seed: int, name: str) -> np.random.Generator:
    """The generator of random numbers for one name."""
    return np.random.default_rng([seed & (2**63 - 1), zlib.crc32(name.encode())])


def draw(one: eq.Draw, info: eq.TensorInfo, seed: int, name: str) -> Array:
    """Values of a law that the tensor's type has, as the evaluators take them.

    Raises `run.law` where nothing can be drawn from the law.
    """
    row = LAWS[one.law]
    if row.draw is None:
        raise fail("run.law", f"nothing can be drawn from the law `{one.law}`")
    values = row.draw(generator(seed, name), info.shape, *map(float, one.params))
    with np.errstate(over="ignore"):
        return load(info, np.asarray(values).astype(DTYPES[info.dtype].numpy))


def completed(expansion: eq.Expansion, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of an expansion with a value for all that is left open: drawn with seed 0."""
    found = dict(inputs)
    for one in expansion.drawn:
        if one.tensor not in found:
            found[one.tensor] = draw(one, expansion.tensors[one.tensor], 0, one.tensor)
    return found


def key(node: Node, tensor: str) -> str:
    """What a value that a call leaves open is called beside the values of a graph."""
    return f"{node.name}/{tensor}"


def open_values(graph: Graph, seed: int, definitions: Definitions) -> dict[str, Array]:
    """All that the calls of a graph leave open, drawn; to be given beside inputs and parameters."""
    return {
        key(node, one.tensor): draw(
            one, node.expansion(definitions).tensors[one.tensor], seed, key(node, one.tensor)
        )
        for node in graph.nodes
        for one in node.expansion(definitions).drawn
    }


def feeds(
    node: Node, expansion: eq.Expansion, found: Mapping[str, Any], wrap: Any = lambda array: array
) -> dict[str, Any]:
    """What an expansion of a call reads: its operands, and what it leaves open.

    found: values by name, open ones under their `key`; those that are not there have seed 0. wrap:
    makes of an array what `found` holds.
    """
    given = {formal: found[name] for formal, name in node.feeds().items()}
    for one in expansion.drawn:
        name = key(node, one.tensor)
        if name in found:
            given[one.tensor] = found[name]
        else:
            given[one.tensor] = wrap(draw(one, expansion.tensors[one.tensor], 0, name))
    return given
