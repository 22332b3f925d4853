"""Edits that make a case smaller, as data, and `apply`, which makes the case that an edit leaves.

An edit names calls by their first result. What it leaves is judged again by the definitions: sizes
are derived anew, attributes and operands that no longer fit are mended where they can be, and
`apply` gives None where they cannot. Nothing here knows whether an edit keeps a disagreement;
`irlang.diff.reduce` tries that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from irlang.diff.calls import Case
from irlang.diff.edits_settle import settled, sliced_to, with_values
from irlang.diff.edits_shapes import Cuts, follow
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node, Operand, Param, Port

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Keep:
    """Only these calls stay; what the others fed to them becomes an input."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """Only these results stay."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forward:
    """What reads `value` reads `by` instead, a value of the same type."""

    value: str
    by: str


@dataclass(frozen=True, slots=True)
class Omit:
    """An operand is not given: an optional one, or a member of a family."""

    node: str
    formal: str
    member: int | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute is given a value; None leaves it out."""

    node: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Resize:
    """Axes of what is given get a new size, each: elements go from `at` on, or the last ones."""

    cuts: tuple[tuple[str, int, int], ...]
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Squeeze:
    """Axes of size 1 of what is given go."""

    axes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Elements from `start` to `stop` become rounder: see `ROUNDER`."""

    value: str
    start: int
    stop: int
    how: str


@dataclass(frozen=True, slots=True)
class Both:
    """An attribute is given a value, and axes are cut: where neither helps without the other."""

    attribute: Attribute
    resize: Resize


@dataclass(frozen=True, slots=True)
class Unbound:
    """What is given has no range any more."""

    value: str


@dataclass(frozen=True, slots=True)
class Fed:
    """A parameter becomes an input, without a range."""

    value: str


Edit = (
    Unbound | Fed | Keep | Results | Forward | Omit | Attribute | Resize | Squeeze | Numbers | Both
)


def _digits(count: int) -> Callable[[Array], Array]:
    def rounded(array: Array) -> Array:
        numbers = [float(f"{float(x):.{count}g}") for x in array]
        if array.dtype.kind in "iu":  # what is rounded up may be beyond the type's end
            ends = np.iinfo(array.dtype)
            whole = [min(max(int(x), int(ends.min)), int(ends.max)) for x in numbers]
            return np.array(whole, dtype=array.dtype)
        with np.errstate(over="ignore"):
            return np.array(numbers, dtype=array.dtype)

    return rounded


def _whole(array: Array) -> Array:
    if array.dtype.kind in "biu":
        return array
    return np.round(array.astype(np.float64)).astype(array.dtype)


def _sign(array: Array) -> Array:
    if array.dtype == bool:
        return array
    return np.sign(array.astype(np.float64)).astype(array.dtype)


def _halved(array: Array) -> Array:
    if array.dtype == bool:
        return array
    return np.trunc(array.astype(np.float64) / 2).astype(array.dtype)


# How elements become rounder, the roundest first.
ROUNDER: dict[str, Callable[[Array], Array]] = {
    "zero": np.zeros_like,
    "one": np.ones_like,
    "sign": _sign,
    "whole": _whole,
    "half": _halved,
    "one digit": _digits(1),
    "two digits": _digits(2),
    "four digits": _digits(4),
}


def apply(case: Case, edit: Edit, held: Mapping[str, Array]) -> Case | None:
    """The case that an edit leaves; None where it does not apply.

    held: what the values of the program were, for those that become inputs.
    """
    return _APPLY[type(edit)](case, edit, held)


def named(graph: Graph, node: str) -> Node | None:
    """The call whose first result has that name."""
    return next((n for n in graph.nodes if n.outputs[0] == node), None)


# ---- calls and their operands


def _keep(case: Case, edit: Keep, held: Mapping[str, Array]) -> Case | None:
    nodes = [n for n in case.graph.nodes if n.outputs[0] in edit.nodes]
    if not nodes or len(nodes) == len(case.graph.nodes):
        return None
    given = {value for node in nodes for value in node.outputs}
    inputs, ports = dict(case.inputs), dict(case.graph.inputs)
    for node in nodes:
        for value in node.operands():
            if value in given or value in case.values or value in inputs:
                continue
            if value not in held:
                return None
            info = case.graph.values[value]
            inputs[value] = held[value]
            ports[value] = Port(info)
    left = [n for n in case.graph.nodes if n.outputs[0] not in edit.nodes]
    wanted = {value for node in left for value in node.operands()} & given
    outputs = {name: v for name, v in case.graph.outputs.items() if v in given}
    outputs.update({value: value for value in sorted(wanted) if value not in outputs.values()})
    loss = case.graph.loss if case.graph.loss in given else None
    graph = replace(case.graph, inputs=ports, nodes=nodes, outputs=outputs, loss=loss)
    return settled(replace(case, graph=graph, inputs=inputs), nodes)


def _results(case: Case, edit: Results, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    outputs = {n: v for n, v in case.graph.outputs.items() if n in edit.names}
    graph = replace(case.graph, outputs=outputs)
    return settled(replace(case, graph=graph), graph.nodes) if outputs else None


def _forward(case: Case, edit: Forward, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    values = case.graph.values
    if values.get(edit.value) is None or values[edit.value] != values.get(edit.by):
        return None
    if edit.by in case.graph.outputs.values():
        return None

    def operand(value: Operand) -> Operand:
        if isinstance(value, tuple):
            return tuple(edit.by if v == edit.value else v for v in value)
        return edit.by if value == edit.value else value

    nodes = [
        replace(n, inputs={f: operand(v) for f, v in n.inputs.items()}) for n in case.graph.nodes
    ]
    given = {value for node in nodes for value in node.outputs}
    outputs = {
        name: edit.by if value == edit.value else value
        for name, value in case.graph.outputs.items()
    }
    if any(value not in given for value in outputs.values()) or case.graph.loss == edit.value:
        return None
    return settled(replace(case, graph=replace(case.graph, outputs=outputs)), nodes)


def _omit(case: Case, edit: Omit, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    node = named(case.graph, edit.node)
    if node is None:
        return None
    inputs: dict[str, Operand] = {}
    for formal, value in node.inputs.items():
        if formal != edit.formal:
            inputs[formal] = value
        elif edit.member is not None and isinstance(value, tuple):
            inputs[formal] = value[: edit.member] + value[edit.member + 1 :]
    return settled(case, _with(case, edit.node, inputs=inputs))


def _attribute(case: Case, edit: Attribute, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    node = named(case.graph, edit.node)
    if node is None:
        return None
    attrs = dict(node.attrs)
    if edit.value is None:
        attrs.pop(edit.name, None)
    else:
        attrs[edit.name] = edit.value
    return settled(case, _with(case, edit.node, attrs=attrs))


def _with(case: Case, name: str, **changes: Any) -> list[Node]:
    return [replace(n, **changes) if n.outputs[0] == name else n for n in case.graph.nodes]


# ---- sizes and numbers


def _resize(case: Case, edit: Resize, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    if any(_size(case, value, axis) <= size for value, axis, size in edit.cuts):
        return None
    return _cut(case, {(value, axis): size for value, axis, size in edit.cuts}, edit.at)


def _size(case: Case, value: str, axis: int) -> int:
    """The size of an axis of what is given; 0 where there is none."""
    array = case.values.get(value)
    return array.shape[axis] if array is not None and axis < array.ndim else 0


def _both(case: Case, edit: Both, held: Mapping[str, Array]) -> Case | None:
    made = _attribute(case, edit.attribute, held)
    return None if made is None else _resize(made, edit.resize, held)


def _squeeze(case: Case, edit: Squeeze, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    if any(_size(case, value, axis) != 1 for value, axis in edit.axes):
        return None
    return _cut(case, dict.fromkeys(edit.axes))


def _cut(case: Case, cuts: Cuts, at: int | None = None) -> Case | None:
    followed = follow(case, cuts)
    if followed is None:
        return None
    nodes, cuts = followed
    arrays = dict(case.values)
    for name, array in case.values.items():
        sliced = sliced_to(array, [cuts.get((name, a), n) for a, n in enumerate(array.shape)], at)
        if sliced is None:
            return None
        arrays[name] = sliced
    return settled(with_values(case, arrays), nodes)


def _numbers(case: Case, edit: Numbers, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    if edit.value not in case.values:
        return None
    array = case.values[edit.value].copy()
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        flat[edit.start : edit.stop] = ROUNDER[edit.how](flat[edit.start : edit.stop])
    within = (case.graph.inputs.get(edit.value) or case.graph.params[edit.value]).within
    if within is not None:
        wide = flat.astype(np.float64)
        if not np.all((wide >= within[0]) & (wide <= within[1])):
            return None
    return with_values(case, {**case.values, edit.value: array})


def _unbound(case: Case, edit: Unbound, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    graph, name = case.graph, edit.value
    port, param = graph.inputs.get(name), graph.params.get(name)
    if port is not None and port.within is not None:
        inputs = {**graph.inputs, name: replace(port, within=None)}
        return replace(case, graph=replace(graph, inputs=inputs))
    if param is not None and param.within is not None:
        params = {**graph.params, name: replace(param, within=None)}
        return replace(case, graph=replace(graph, params=params))
    return None


def _fed(case: Case, edit: Fed, held: Mapping[str, Array]) -> Case | None:  # noqa: ARG001
    params, arrays = dict(case.graph.params), dict(case.params)
    param = params.pop(edit.value, None)
    if param is None or param.literal:
        return None
    inputs = {**case.inputs, edit.value: arrays.pop(edit.value)}
    ports = {**case.graph.inputs, edit.value: Port(param.info)}
    graph = replace(case.graph, inputs=ports, params=params)
    return replace(case, graph=graph, inputs=inputs, params=arrays)


_APPLY: dict[type, Callable[[Case, Any, Mapping[str, Array]], Case | None]] = {
    Keep: _keep, Results: _results, Forward: _forward, Omit: _omit, Attribute: _attribute,
    Resize: _resize, Squeeze: _squeeze, Numbers: _numbers, Both: _both, Unbound: _unbound,
    Fed: _fed,
}  # fmt: skip


# ---- how small a case is


def cost(case: Case) -> tuple[float, ...]:
    """What a reduction makes smaller, the weightiest first: calls, elements, axes, attributes,
    numbers that are not round, parameters and ranges.
    """
    graph = case.graph
    arrays = case.values
    ports: list[Port | Param] = [*graph.inputs.values(), *graph.params.values()]
    attributes = [value for node in graph.nodes for value in node.attrs.values()]
    return (
        len(graph.nodes),
        sum(a.size for a in arrays.values()),
        sum(a.ndim for a in arrays.values()),
        len(arrays),
        len(graph.outputs),
        len(attributes),
        sum(map(_weight, attributes)),
        # after the attributes: a smaller window has more results, until its input is smaller too
        made_of(graph),
        sum(_roughness(a) for a in arrays.values()),
        len([one for one in graph.params.values() if not one.literal]),
        len([one for one in ports if one.within]),
    )


def made_of(graph: Graph) -> int:
    """How many elements the results of all calls have."""
    return sum(math.prod(graph.values[v].shape) for n in graph.nodes for v in n.outputs)


def _weight(value: Any) -> float:
    if isinstance(value, tuple):
        return 2 + sum(map(_weight, value))
    if isinstance(value, (bool, str)):
        return 1
    number = float(value)
    if not math.isfinite(number):
        return 4
    return min(abs(number), 1e6) + (number < 0) * 0.5 + (0 if number == int(number) else 3)


def _roughness(array: Array) -> float:
    """0 for zeros, 1 for ones, more for other numbers: by the characters that write them.

    A number by itself may as well be 1: many are scales, of which 0 makes a strange program.
    """
    flat = array.reshape(-1)
    if not array.ndim and flat[0] == 1:
        return 0.0
    plain = np.count_nonzero(flat == 1) if array.dtype != bool else np.count_nonzero(flat)
    rough = flat[(flat != 0) & (flat != 1)] if array.dtype != bool else flat[:0]
    numbers: list[float] = rough[:4096].tolist()
    return float(plain) + sum(_written(n, array.dtype) for n in numbers)


@lru_cache(maxsize=1 << 16)
def _written(number: float, dtype: np.dtype[Any]) -> float:
    """What a number is to write; most are those of the case before."""
    text = str(dtype.type(number)).removesuffix(".0")
    return 1.5 + len(text) + (text[:1] == "-") * 0.5


def typed(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """The oracle's values in the types of the program."""
    with np.errstate(all="ignore"):
        return {
            name: np.asarray(array).astype(DTYPES[graph.values[name].dtype].numpy)
            for name, array in values.items()
            if name in graph.values
        }


__all__ = [
    "ROUNDER", "Attribute", "Both", "Edit", "Fed", "Forward", "Keep", "Numbers", "Omit", "Resize",
    "Results", "Squeeze", "Unbound", "apply", "cost", "named", "typed",
]  # fmt: skip
