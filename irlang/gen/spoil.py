"""Calls that break one requirement: what a target should refuse.

Takes a valid call of a generated program and changes one thing after the other
(`irlang.gen.changes`), until the definition has exactly one fault to find; or elements of inputs,
where the requirement is on values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, TypeAlias

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.dtypes import integer_range
from irlang.equations import TensorInfo
from irlang.gen.added import extended, is_added, reads
from irlang.gen.build import generate
from irlang.gen.changes import (
    Resize,
    SetElements,
    changes,
    in_other_words,
    in_turn,
    way_of,
)  # fmt: skip
from irlang.gen.draw import Limits
from irlang.gen.fed import fed
from irlang.gen.hollow import (
    beyond_all,
    number_listed,
    number_unsaid,
    of_nothing,
    without_elements,
)  # fmt: skip
from irlang.gen.judge import judge
from irlang.gen.moves import Move, Retype, SetAttr
from irlang.gen.ranges import demands
from irlang.gen.spoilt import Call, Spoilt, alone, broken_by, holds
from irlang.graph import Graph, Node
from irlang.signature import Fault, Given, involved

Array = np.ndarray[Any, np.dtype[Any]]

_SMALL = Limits(elements=48, length=5, usual=True)
_ANY = replace(_SMALL, usual=False)  # of what a target has for odd attributes alone
_OPERATORS = 4  # that are tried for one that can be spoilt
_DRAWN = 12  # calls that are made for one requirement to be broken
_REWORDED = (0, 1, 3, 5)  # of which what tells nothing is tried in other words, too
_TRIED = 6  # of them that are tried, if there is anything that can be changed
_SOUGHT = 2  # of them that are looked for among many
_UNABLE = 4  # of them after which no more are made, where none of these is to be spoilt
_WAYS = 6  # of breaking one requirement of one call
_FURTHER = 24  # changes that are tried for one more
_CHANGES = 120  # that are tried in all, first of what the requirement is about
_STATED = 0.5  # of the calls say what would follow by default from what is changed
_TOGETHER = 0.5  # of the calls change attributes that are declared alike at once
_MISSES = 12  # spoilt calls of one call that tell nothing
_NUMBERS = 4  # of one call that break a requirement on values
_PLACES = (0.0, 0.5, 1.0)  # in a tensor: a framework may look at its first and last element alone
_EMPTY = 2  # of one call that are asked for elements of an axis of nothing
# Calls without elements that are spoilt beside one that has some, in so many ways each: what else
# is wrong a kernel may see too late, or not at all, where it has nothing to do.
_WITHOUT, _SPOILT_SO = 2, 3
# Calls with a number beyond all sizes, beside those that break what else there is, and as many in
# other words, by which all may be padded, so that a window is as wide as it will; and of how many.
_BEYOND, _ASKED = 3, 16
_LISTED = 4  # calls with a number as a list
NOTHING: Mapping[str, Sequence[ast.Require]] = {}


Wanted = tuple[str, ast.Require | None]
Able: TypeAlias = Callable[[Graph], bool]
Tells: TypeAlias = Callable[[Spoilt], bool]  # whether there is something to be learnt from a call
Enough: TypeAlias = Callable[[], bool]  # whether what is drawn by now has to do


def breakable(
    catalog: Catalog, ops: Sequence[str], added: Mapping[str, Sequence[ast.Require]] = NOTHING
) -> list[Wanted]:
    """What calls of some operators can be made to break: each of their requirements by itself, and
    once for every operator whatever else its signature says.

    added: further conditions, by operator, which are requirements of it too.
    """
    found: list[Wanted] = []
    for name in ops:
        op = catalog.op(name)
        assert op is not None
        found += [(name, one) for one in (*_requirements(op), *added.get(name, ()))]
        found.append((name, None))
    return found


def _requirements(op: ast.Op) -> list[ast.Require]:
    return [statement for statement in op.body if isinstance(statement, ast.Require)]


def spoilt(
    catalog: Catalog, seed: int, ops: Sequence[str] = (), wanted: Wanted | None = None
) -> Spoilt | None:
    """The first of the spoilt calls of a seed (`spoils`), if there are any."""
    return next(iter(spoils(catalog, seed, ops, wanted)), None)


def spoils(
    catalog: Catalog,
    seed: int,
    ops: Sequence[str] = (),
    wanted: Wanted | None = None,
    able: Able = lambda _: True,
    tells: Tells = lambda _: True,
    enough: Enough = lambda: False,
    sought: Able | None = None,
) -> list[Spoilt]:
    """The spoilt calls of a seed, ways to break one requirement of one call; empty where no change
    that was tried breaks exactly one.

    The requirement is drawn, as most changes break the few that speak of ranks, or it is the one
    that is wanted; where none of some calls of the operator can be made to break it, another is
    taken. What is not told apart by its name is whatever else there is to break. able: only such
    valid calls are spoilt. tells: spoilt calls of which it is false are passed over. enough: where
    it is true no more are drawn: all ways of breaking what a target has no word for may take as
    long as ten other requirements. sought: of which valid calls one is looked for first.
    """
    chance = random.Random(seed)
    names = list(ops) or catalog.names()
    unable: set[str] = set()  # operators of which no call could be spoilt

    for number in range(_OPERATORS):
        if number and enough():
            break
        if wanted is None or number:
            op = catalog.op(chance.choice(names))
            assert op is not None
            if op.name in unable:
                continue
            named = _requirements(op)
            require = chance.choice(named) if named else None
        else:
            op, require = catalog.op(wanted[0]), wanted[1]
            assert op is not None
        found = _of_operator(
            op, require, seed, number, chance, catalog, able, tells, enough,
            None if number else sought,
        )  # fmt: skip
        if found:
            return [replace(one, seed=seed) for one in found]
        if found is None:
            unable.add(op.name)
    return []


def _of_operator(
    op: ast.Op,
    wanted: ast.Require | None,
    seed: int,
    number: int,
    chance: random.Random,
    catalog: Catalog,
    able: Able,
    tells: Tells,
    enough: Enough,
    sought: Able | None,
) -> list[Spoilt] | None:
    """What `spoils` gives, of one operator; None where none of the first calls is to be spoilt."""
    found: list[Spoilt] = []
    first = (seed * _OPERATORS + number) * _DRAWN
    tried = handed = 0

    def counted(graph: Graph) -> bool:
        nonlocal tried
        known = able(graph)
        tried += known
        return known

    def fits(graph: Graph) -> bool:
        nonlocal handed
        node = graph.nodes[-1]
        given = {n: info for n, info in node.instance.binding.inputs.items() if info is not None}
        whole = alone(node, given, node.attrs, node.instance, {})
        known = able(whole)
        handed += known
        return known and (attempt >= _SOUGHT or sought is None or sought(whole))

    for attempt in range(_DRAWN):
        if tried == _TRIED or (attempt and enough()):
            break
        if attempt == _UNABLE and not (tried or handed):
            return None
        # Calls apart have defaults by half: what has many attributes is a target's own then.
        looks = sought is not None and attempt < _SOUGHT
        called = {"apart": [op.name]} if attempt % 2 or looks else {"size": (1, 1)}
        program = generate(
            catalog, first + attempt, ops=[op.name], limits=_ANY if attempt % 4 == 3 else _SMALL,
            preferred=fits, **called,
        )  # fmt: skip
        node = program.graph.nodes[-1] if program.graph.nodes else None
        if node is not None and _is_open(node, wanted):
            made = _spoil(node, wanted, seed, chance, catalog, counted, tells, enough)
            if attempt in _REWORDED and _asks_less(made, op, wanted):
                other = in_other_words(node, chance, _speaks_of(node, wanted))
                also = _spoil(other, wanted, seed, chance, catalog, able, tells, enough)
                made = made if _asks_less(also, op, wanted) else also
            if found and _asks_less(made, op, wanted):
                continue
            found = made
            if not _asks_less(made, op, wanted):
                break
    return found


def _asks_less(made: Sequence[Spoilt], op: ast.Op, wanted: ast.Require | None) -> bool:
    """Whether spoilt calls break something else than what is wanted, or are asked no more than to
    end no process, so that another call may tell more.
    """
    return all(one.hollow for one in made if breaks(one, (op.name, wanted)))


def breaks(one: Spoilt, wanted: Wanted) -> bool:
    """Whether a spoilt call breaks what it was made for, not what else there was to break."""
    return wanted[1] is None or one.fault.code == _code(wanted[0], wanted[1])


def _is_open(node: Node, wanted: ast.Require | None) -> bool:
    """Whether values may break a requirement that is on values: of reals there are no quotients of
    integers, and most calls are of reals.
    """
    if wanted is None or any(statement is wanted for statement, _ in node.instance.deferred):
        return True
    return is_added(node.op, wanted) or not reads(node.op, wanted)


def _code(operator: str, wanted: ast.Require) -> str:
    return f"{operator}.{wanted.name}"


def _spoil(
    node: Node,
    wanted: ast.Require | None,
    seed: int,
    chance: random.Random,
    catalog: Catalog,
    able: Able,
    tells: Tells,
    enough: Enough,
) -> list[Spoilt]:
    """The call with one fault: of what is wanted, in several ways, or else of any requirement."""
    binding = node.instance.binding
    given: dict[str, Given] = {n: info for n, info in binding.inputs.items() if info is not None}
    demanded = demands(node.instance)
    if demanded is None:
        return []
    valid = alone(node, given, node.attrs, node.instance, demanded)
    if not able(valid):
        return []
    if any(statement is wanted for statement, _ in node.instance.deferred):
        assert wanted is not None
        found = _of_values(node, given, demanded, wanted, seed, catalog)
        nothing = islice(of_nothing(node, given, demanded, wanted, catalog), _EMPTY)
        return [one for one in (*found, *nothing) if tells(one)]
    added = wanted is not None and is_added(node.op, wanted)
    if wanted is not None and added and reads(node.op, wanted):
        return _of_values_added(node, given, wanted, seed, catalog, tells)
    if wanted is not None and added and not holds(wanted, node.instance):
        return []
    stated = chance.random() < _STATED
    twins = chance.random() < _TOGETHER
    call = Call(node, given, valid, demanded, wanted if added else None, stated, twins)
    about = _speaks_of(node, wanted)
    candidates = changes(node, chance)
    if added:
        sizes = _sizes(node, wanted)
        about.update(sizes)
        candidates += [Resize(name, 0) for name in sizes]
    candidates = in_turn(node, candidates, about, chance)[:_CHANGES]
    if wanted is None:
        found = _ways(call, candidates, "", tells, enough)
        other = in_other_words(node, chance)
        for own in (node, other) if other is not node else (node,):
            needed = demands(own.instance)
            much = () if needed is None else beyond_all(own, given, needed, chance)
            found += islice(filter(tells, islice(much, _ASKED)), _BEYOND)
        found += number_unsaid(node, given, demanded, chance)
        found += islice(filter(tells, number_listed(node, given, demanded, chance)), _LISTED)
        return [*found, *_beside_nothing(call, "", about, chance, tells, enough)]
    code = _code(node.op.name, wanted)
    found = _ways(call, candidates, code, tells, enough) or _ways(
        replace(call, twins=not twins), candidates, code, tells, enough
    )
    if not found:
        return _ways(call, candidates, "", tells, enough, most=1)
    return [*found, *_beside_nothing(call, code, about, chance, tells, enough)]


def _beside_nothing(
    call: Call, code: str, about: set[str], chance: random.Random, tells: Tells, enough: Enough
) -> list[Spoilt]:
    """The call spoilt where inputs have no elements; code: as of `_ways`, about: of `in_turn`."""
    found: list[Spoilt] = []
    node, added = call.node, call.added
    for own, given in without_elements(node, call.given, chance)[:_WITHOUT]:
        demanded = demands(own.instance)
        if demanded is None or (added is not None and not holds(added, own.instance)):
            continue
        valid = alone(own, given, own.attrs, own.instance, demanded)
        plain = replace(call, node=own, given=given, valid=valid, demanded=demanded, hollow=True)
        # A size that does not fit is one more than nothing: a number of axes is told from none.
        told = [move for move in changes(own, chance) if _shows_beside_nothing(move, given)]
        some = in_turn(own, told, about, chance)[:_CHANGES]
        found += _ways(plain, some, code, tells, enough, most=_SPOILT_SO)
    return found


def _shows_beside_nothing(move: Move | Resize, given: Mapping[str, Given]) -> bool:
    """Whether a change is of an attribute, or gives what has no elements another number of axes."""
    if not isinstance(move, Retype):
        return isinstance(move, SetAttr)
    now = given[move.name]
    info = now[move.member or 0] if isinstance(now, tuple) else now
    axes = len(move.info.shape)
    return 0 in move.info.shape and info is not None and axes != len(info.shape)


def _speaks_of(node: Node, wanted: ast.Require | None) -> set[str]:
    """The attributes and inputs that a requirement speaks of, by itself or by what it reads."""
    return set() if wanted is None else set(involved(node.instance.binding, wanted.condition))


def _ways(
    call: Call,
    candidates: Sequence[Move | Resize],
    code: str,
    tells: Tells,
    enough: Enough,
    most: int = _WAYS,
) -> list[Spoilt]:
    """The call spoilt in several ways. code: of the only fault that counts; empty if any does, each
    with each of what was changed.
    """
    found: dict[tuple[Any, ...], Spoilt] = {}
    last, misses = len(candidates), 0
    for number, move in enumerate(candidates):
        if len(found) == most or number > last or misses == _MISSES or enough():
            break
        way = way_of(move)
        broken = None if code and way in found else call.broken(move)
        if broken is None or code not in ("", broken.code):
            continue
        if not code:
            way = (
                broken.code, broken.size, move.name,
                isinstance(move, SetAttr) and way_of(move)[-1] is True,
            )  # fmt: skip
        made = list(call.spoilt(broken)) if way not in found else []
        if not made:
            continue
        told = next(filter(tells, made), None)
        if told is None:
            misses += 1
            continue
        found[way] = told
        last = min(last, number + _FURTHER)
    return list(found.values())


def _sizes(node: Node, wanted: ast.Require | None) -> list[str]:
    """The sizes that a condition speaks of."""
    assert wanted is not None
    named = {part.id for part in ast.walk(wanted.condition) if isinstance(part, ast.Name)}
    return sorted(named & set(node.instance.binding.origins))


def _of_values_added(
    node: Node,
    given: dict[str, Given],
    wanted: ast.Require,
    seed: int,
    catalog: Catalog,
    tells: Tells,
) -> list[Spoilt]:
    """The same of a requirement on elements that is none of the definition's own."""
    op, own = extended(node.op, wanted)
    instance = judge(op, given, node.attrs)
    demanded = demands(instance) if instance is not None and not instance.faults else None
    if instance is None or demanded is None:
        return []
    own_node = replace(node, op=op, instance=instance)
    found = _of_values(own_node, given, demanded, own, seed, catalog)
    # Targets have words for the definition as it is.
    plain = alone(node, given, node.attrs, node.instance, demanded)
    return [one for one in (replace(one, graph=plain, added=True) for one in found) if tells(one)]


def _of_values(
    node: Node,
    given: dict[str, Given],
    demanded: dict[str, tuple[float, float]],
    wanted: ast.Require,
    seed: int,
    catalog: Catalog,
) -> list[Spoilt]:
    """The call with an element of an input just outside of what is required, or far outside, at one
    place after the other; where that takes elements of two, once.
    """
    about = dict.fromkeys(involved(node.instance.binding, wanted.condition))
    tried: dict[str, list[float]] = {}
    for formal in about:
        info = given.get(formal)
        if not isinstance(info, TensorInfo) or 0 in info.shape or info.kind == "bool":
            continue
        low, high = demanded.get(formal, (0, 0))
        if info.kind == "real":
            tried[formal] = [n for n in (high + 1, low - 1, 0.0, -1.0) if math.isfinite(n)]
            continue
        least, greatest = integer_range(info.dtype)
        several = dict.fromkeys((int(high) + 1, int(low) - 1, greatest, least, 0, -1, int(high)))
        tried[formal] = [n for n in several if least <= n <= greatest]
    lone = [((formal, n),) for formal, numbers in tried.items() for n in numbers]
    pairs = [
        ((one, n), (other, m))
        for one, other in combinations(tried, 2)
        for n in tried[one]
        for m in tried[other]
    ]
    code = _code(node.op.name, wanted)
    found: list[Spoilt] = []
    for values in (*lone, *pairs):
        if len(found) == _NUMBERS or (found and len(values) > 1):
            break
        graph = alone(node, given, node.attrs, node.instance, demanded)
        fault = Fault(code, "", 1.0, tuple(name for name, _ in values))
        turn = len(found) % len(_PLACES)
        places = (*_PLACES[turn:], *_PLACES[:turn])
        for place in places if len(values) == 1 else places[:1]:
            made = Spoilt(graph, (), fault, SetElements(values, place), seed=seed)
            why = broken_by(graph, fed(made, catalog), catalog)
            if why is not None and why.code == code:
                found.append(replace(made, fault=replace(fault, message=why.message)))
                break
    return found
