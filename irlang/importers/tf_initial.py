"""What a variable of a TensorFlow graph starts from, where the graph says so.

Programs that train draw their variables: a random number, scaled and shifted. That is one number
that does not vary plus one that is a multiple of what is drawn, which this computes with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.tf_file import NodeDef, tensor
from irlang.importers.tf_select import ASSIGNMENTS
from irlang.importers.value import Unsupported
from irlang.importers.writer import Array, number, scalar

_DEEPEST = 32
_LAWS = {
    "RandomUniform": "uniform",
    "RandomStandardNormal": "normal",
    "TruncatedNormal": "normal",  # its tails apart
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """`still` + `by` * a number that is drawn from a law; no law where nothing is drawn."""

    still: Any
    by: Any = 0.0
    law: str = ""


def assignments(nodes: Mapping[str, NodeDef]) -> dict[str, tuple[str, int]]:
    """What the variables start from, by their names."""
    found: dict[str, tuple[str, int]] = {}
    for node in nodes.values():
        if node.op in ASSIGNMENTS and len(node.inputs) == 2:
            (name, _), value = node.inputs
            if name not in found or node.name == f"{name}/Assign":
                found[name] = value
    return found


def initial(
    nodes: Mapping[str, NodeDef], source: tuple[str, int] | None, info: TensorInfo
) -> Array | str:
    """The values of a parameter, the text of what they are drawn from, or '' for any."""
    found = _value(nodes, source, 0) if source else None
    if found is None:
        return ""
    if not found.law:
        array = np.asarray(found.still).astype(DTYPES[info.dtype].numpy)
        if array.shape == info.shape:
            return array
        return scalar(array.reshape(-1)[0], info) if array.size == 1 else ""
    ends = np.asarray(found.still), np.asarray(found.by)
    if any(end.size != 1 for end in ends):
        return ""
    first, by = _short(ends[0]), _short(ends[1])
    if found.law == "uniform":
        return f"uniform({number(first)}, {number(_short(ends[0] + ends[1]))})"
    return f"normal({number(first)}, {number(abs(by))})"


def _short(array: Array) -> float:
    """A number as short as its precision allows."""
    return float(str(array.reshape(-1)[0]))


def _value(nodes: Mapping[str, NodeDef], source: tuple[str, int], depth: int) -> Drawn | None:
    node = nodes.get(source[0])
    if node is None or source[1] or depth > _DEEPEST:
        return None
    if node.op in _LAWS:
        return Drawn(np.float32(0), np.float32(1), _LAWS[node.op])
    if node.op == "Const":
        value = node.attributes.get("value")
        if value is None or value.kind != "tensor":
            return None
        try:
            return Drawn(tensor(value.value, node.name)[0])
        except (Unsupported, InvalidInput):  # the walk tells what it reads itself
            return None
    if node.op == "Fill" and len(node.inputs) == 2:
        return _value(nodes, node.inputs[1], depth + 1)
    rule = _RULES.get(node.op)
    if rule is None:
        return None
    given = [_value(nodes, item, depth + 1) for item in node.inputs]
    known = [item for item in given if item is not None]
    if not known or len(known) != len(given):
        return None
    sizes = [np.size(item.still) for item in known]
    if len(known) != (1 if node.op == "Identity" else 2) or min(sizes) > 1:
        return None  # nothing is made that is larger than what is there
    with np.errstate(all="ignore"):
        return rule(*known)


def _sum(a: Drawn, b: Drawn, sign: int = 1) -> Drawn | None:
    if a.law and b.law:
        return None
    return Drawn(a.still + sign * b.still, a.by + sign * b.by, a.law or b.law)


def _product(a: Drawn, b: Drawn) -> Drawn | None:
    if a.law and b.law:
        return None
    return Drawn(a.still * b.still, a.by * b.still + a.still * b.by, a.law or b.law)


_RULES: dict[str, Callable[..., Drawn | None]] = {
    "Identity": lambda a: a,
    "Add": _sum,
    "AddV2": _sum,
    "Sub": lambda a, b: _sum(a, b, -1),
    "Mul": _product,
}
