"""A spoilt call in smaller ones, with the same fault: shorter axes, less that is said.

A call whose sizes are what is wrong stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from irlang.catalog import Catalog
from irlang.equations import TensorInfo
from irlang.gen.changes import SetElements
from irlang.gen.fed import fed
from irlang.gen.judge import judge
from irlang.gen.moves import SetAttr
from irlang.gen.spoilt import Spoilt, alone, broken_by, faulty, spoilt_call, types_of
from irlang.graph import Node
from irlang.signature import Given


def smaller(one: Spoilt, catalog: Catalog) -> Iterator[Spoilt]:
    """Spoilt calls that break what `one` breaks, by the same change, each smaller than that.

    catalog: the definitions that its own calls.
    """
    of_attribute = isinstance(one.changed, SetAttr)
    if one.added or one.hollow or not (of_attribute or isinstance(one.changed, SetElements)):
        return
    node = one.graph.nodes[0]
    before = one.beside[0].nodes[0].attrs if of_attribute and one.beside else node.attrs
    types = types_of(one.graph)
    for other in _shorter(types):
        yield from _made(one, catalog, node, other, node.attrs, before)
    for item in node.op.inputs:
        touched = isinstance(one.changed, SetElements) and item.name in dict(one.changed.values)
        if item.name in types and item.default is not None and not touched:
            left = {name: given for name, given in types.items() if name != item.name}
            yield from _made(one, catalog, node, left, node.attrs, before)
    changed = one.changed.name if isinstance(one.changed, SetAttr) else None
    said = [name for name in node.attrs if name != changed]
    for name in said:
        yield from _made(
            one, catalog, node, types, _without(node.attrs, name), _without(before, name)
        )
    for name in said:  # which may have to be said: windows
        ones = _ones(node.attrs[name])
        if ones != node.attrs[name]:
            yield from _made(
                one, catalog, node, types, {**node.attrs, name: ones}, {**before, name: ones}
            )


def _made(
    one: Spoilt,
    catalog: Catalog,
    node: Node,
    types: dict[str, Given],
    attrs: dict[str, Any],
    before: dict[str, Any],
) -> Iterator[Spoilt]:
    """The call of other types and attributes, if it is valid but for the one fault.

    before: its attributes before the change.
    """
    valid = judge(node.op, types, before)
    if valid is None or valid.faults:
        return
    demanded = {name: port.within for name, port in one.graph.inputs.items() if port.within}
    own = replace(node, attrs=before, instance=valid)
    graph = alone(own, types, before, valid, demanded)
    if isinstance(one.changed, SetElements):
        made = replace(one, graph=graph, beside=())
        why = broken_by(graph, fed(made, catalog), catalog)
        if why is not None and why.code == one.fault.code:
            yield replace(made, fault=replace(one.fault, message=why.message))
        return
    assert isinstance(one.changed, SetAttr)
    broken = faulty(node.op, types, attrs, None, one.changed.name)
    if broken is not None and broken.faults[0].code == one.fault.code:
        move, said = one.changed, one.said
        yield spoilt_call(own, graph, demanded, move, broken, types, attrs, said)


def _shorter(types: Mapping[str, Given]) -> Iterator[dict[str, Given]]:
    """All axes of size 1, or else all that have one size."""
    sizes = {
        size
        for given in types.values()
        for info in (given if isinstance(given, tuple) else (given,))
        if info is not None
        for size in info.shape
        if size > 1
    }
    for cut in ([sizes] if len(sizes) > 1 else []) + [{size} for size in sorted(sizes)[::-1]]:
        yield {name: _cut(given, cut) for name, given in types.items()}


def _cut(given: Given, sizes: set[int]) -> Given:
    if given is None:
        return None
    if isinstance(given, tuple):
        return tuple(_short(info, sizes) for info in given)
    return _short(given, sizes)


def _short(info: TensorInfo, sizes: set[int]) -> TensorInfo:
    return TensorInfo(tuple(1 if size in sizes else size for size in info.shape), info.dtype)


def _without(attrs: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if key != name}


def _ones(value: Any) -> Any:
    """An attribute whose whole numbers above 1 are 1."""
    if isinstance(value, tuple):
        return tuple(map(_ones, value))
    return 1 if type(value) is int and value > 1 else value
