"""A model run once in its own types, and the calls at which NaN or infinity originates.

Every result is the definition's value, computed in float64 and rounded to the type that it has: no
framework can be expected to do better. So what is not finite here is the model's doing. What is
held against a proof is computed as proofs take it, every operation rounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Graph, Node
from irlang.instance import Definitions
from irlang.interp import reference
from irlang.interp.draws import feeds
from irlang.interp.plain import load
from irlang.interp.stepwise import evaluated
from irlang.interp.values import Array


def rounded(array: Array, info: TensorInfo) -> Array:
    """A result as its type holds it, in what the evaluators compute with."""
    if info.kind != "real" or info.dtype == "f64":
        return array
    with np.errstate(all="ignore"):
        return array.astype(DTYPES[info.dtype].numpy).astype(np.float64)


Seen = dict[str, tuple[tuple[Array, ...], dict[str, Array]]]


def trace(
    graph: Graph,
    values: Mapping[str, Array],
    definitions: Definitions,
    seen: Seen | None = None,
    *,
    rounding: bool = False,
) -> dict[str, Array]:
    """Every value of the graph, given inputs, parameters and what is left open.

    seen: what every input and call was last fed, and what came of it; what is fed the
    very same arrays is not computed again. rounding: whether every operation inside a call is
    rounded to its type, and not the results alone. Raises `InvalidInput` where a precondition on
    values does not hold.
    """
    seen = {} if seen is None else seen
    found: dict[str, Array] = {}
    for name, array in values.items():
        if not _same(seen.get(f"{name} as given"), (array,)):
            loaded = load(graph.values[name], array) if name in graph.values else array
            seen[f"{name} as given"] = (array,), {name: loaded}
        found.update(seen[f"{name} as given"][1])
    for node in graph.nodes:
        fed = tuple(found[name] for name in node.operands())
        own = " ".join(node.outputs)  # names of calls need not be unique in gradients
        if not _same(seen.get(own), fed) or not fed:
            if rounding:
                made = evaluated(node, found, definitions)
            else:
                made = results(node, found, graph, definitions)
            seen[own] = fed, made
        found.update(seen[own][1])
    return found


def _same(last: tuple[tuple[Array, ...], dict[str, Array]] | None, fed: tuple[Array, ...]) -> bool:
    return last is not None and all(a is b for a, b in zip(last[0], fed, strict=True))


def results(
    node: Node, found: Mapping[str, Array], graph: Graph, definitions: Definitions
) -> dict[str, Array]:
    """The results of one call, rounded to their types, given its operands."""
    expansion = node.expansion(definitions)
    tensors = reference.evaluate(expansion, feeds(node, expansion, found))
    return {
        name: rounded(tensors[formal], graph.values[name])
        for formal, name in node.results().items()
    }


def has_nan(array: Array) -> bool:
    """Whether there is NaN in it."""
    if array.dtype.kind == "V":  # bfloat16, as frameworks give it
        array = array.astype(np.float64)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def is_finite(array: Array) -> bool:
    """Whether there is neither NaN nor infinity in it."""
    if array.dtype.kind == "V":  # bfloat16, as frameworks give it
        array = array.astype(np.float64)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def is_given(name: str, array: Array, endless: Collection[str]) -> bool:
    """Whether an operand is finite, or infinite because the model says so.

    endless: the values of which it does.
    """
    return is_finite(array) or (name in endless and not has_nan(array))


def originates(node: Node, found: Mapping[str, Array], endless: Collection[str] = ()) -> str | None:
    """The first result of a call that is not finite although all its operands are.

    endless: the values that may be infinite because the model says so. Where they are, a result is
    the doing of the call if it is NaN.
    """
    if not all(is_given(name, found[name], endless) for name in node.operands()):
        return None
    finite = all(is_finite(found[name]) for name in node.operands())
    bad = (lambda array: not is_finite(array)) if finite else has_nan
    return next((v for v in node.outputs if v in found and bad(found[v])), None)


def origins(graph: Graph, found: Mapping[str, Array]) -> Iterator[tuple[Node, str]]:
    """The calls at which NaN or infinity originates, each with the result that has it."""
    for node in graph.nodes:
        bad = originates(node, found)
        if bad is not None:
            yield node, bad
