"""Calls on numbers of other types, each behind a conversion to the type that it takes.

Frameworks convert some operands by themselves: of the sum of an f16 and an f32, of the root of a
whole number. What they make of these is a kernel, or a path, of its own, which no call reaches
whose operands have the type that the definition asks for. A program says the conversion, and
whoever lowers it leaves that to a target that documents to make it (`irlang.lower.promotes`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from irlang.catalog import Catalog
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.adapt import Adapters
from irlang.gen.pattern import pattern
from irlang.gen.ranges import Range, demands
from irlang.gen.spoilt import alone
from irlang.graph import Graph, Node, Operand, Port

_WHOLE = ("i32", "u8", "i8", "i64")
_NARROWER: Mapping[str, tuple[str, ...]] = {"f32": ("f16", "bf16"), "f64": ("f32", "f16")}
_ALL, _SEVERAL = 0.3, 0.5  # shares of calls of whole numbers alone; and of these of several types
_FEW = 9.0  # whole numbers up to there, most of the time; and those below 0, or any
_known: dict[int, tuple[Catalog, Adapters]] = {}  # what converts, by the catalogue


def converted(node: Node, catalog: Catalog, seed: int) -> Graph | None:
    """The program of a call of which real operands are conversions of inputs of other types: all of
    them of whole numbers, or one of these or of a narrower type. None where there is no such
    program.
    """
    chance = random.Random(seed)
    given = {name: info for name, info in node.instance.binding.inputs.items() if info is not None}
    reals = {n: t for n, t in given.items() if isinstance(t, TensorInfo) and t.kind == "real"}
    demanded = demands(node.instance)
    if not reals or demanded is None:
        return None
    graph = alone(node, given, node.attrs, node.instance, demanded)
    calls = []
    for name, dtype in _types(reals, chance).items():
        want, have = reals[name], TensorInfo(reals[name].shape, dtype)
        within = _within(dtype, demanded.get(name), chance)
        call = _conversion(catalog, f"{name}_given", have, name, want)
        if within == () or call is None:
            return None
        del graph.inputs[name]
        graph.inputs[f"{name}_given"] = Port(have, within or None)
        graph.values[f"{name}_given"] = have
        calls.append(call)
    graph.nodes[:0] = calls
    return graph


def _types(reals: Mapping[str, TensorInfo], chance: random.Random) -> dict[str, str]:
    """The types that operands are to have, those of which there is anything to say."""
    if len(reals) == 1 or chance.random() < _ALL:
        several = chance.random() < _SEVERAL
        drawn = chance.choice(_WHOLE)
        return {name: chance.choice(_WHOLE) if several else drawn for name in reals}
    name = chance.choice(sorted(reals))
    narrower = _NARROWER.get(reals[name].dtype, ())
    return {name: chance.choice(narrower or _WHOLE if chance.random() < 0.5 else _WHOLE)}


def _within(dtype: str, demanded: Range | None, chance: random.Random) -> Range | tuple[()] | None:
    """The range of an input; () where there is no number in that which is demanded."""
    if DTYPES[dtype].kind == "real":
        return demanded
    if demanded is None:
        low = 0.0 if dtype.startswith("u") else -_FEW
        return chance.choice(((0.0, _FEW), (low, _FEW), None))
    low, high = math.ceil(max(demanded[0], -_FEW)), math.floor(min(demanded[1], _FEW))
    low = max(low, 0) if dtype.startswith("u") else low
    return (float(low), float(high)) if low <= high else ()


def _conversion(
    catalog: Catalog, source: str, have: TensorInfo, name: str, want: TensorInfo
) -> Node | None:
    nested = _converters(catalog).adapt(source, have, want)
    if nested is None:
        return None
    draft = nested.draft
    inputs: dict[str, Operand] = dict.fromkeys(draft.inputs, source)
    return Node(name, draft.op, inputs, dict(draft.attrs), (name,), nested.instance)


def _converters(catalog: Catalog) -> Adapters:
    """The first operator that converts, so that no definition behind it need be read."""
    known = _known.get(id(catalog))
    if known is None or known[0] is not catalog:
        have, want = TensorInfo((1,), "i32"), TensorInfo((1,), "f32")
        found = Adapters([])
        for name in catalog.names():
            op = catalog.op(name)
            if op is None or all(attr.type.name != "dtype" for attr in op.attrs):
                continue
            one = Adapters([pattern(op)])
            if one.adapt("", have, want) is not None:
                found = one
                break
        known = _known[id(catalog)] = catalog, found
    return known[1]
