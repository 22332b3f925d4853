"""Whether a target is handed the fault of a spoilt call, so that its running it says something.

It does where the program is one operator of the target's own that is given what is wrong as it is
(`irlang.lower.direct`), and where the target does not document the requirement to be wider
(`irlang.lower.admits`).
"""

from __future__ import annotations

import contextlib
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.verdict import only_shapes
from irlang.gen.changes import SetElements
from irlang.gen.fed import fed
from irlang.gen.judge import judge
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.pattern import pattern
from irlang.gen.spoilt import Spoilt, alone, broken_by, following, types_of, unsaid
from irlang.graph import Graph
from irlang.listed import is_listed
from irlang.lower.admits import admits_scalars, admitted, fixed
from irlang.lower.direct import (
    is_direct,
    lists,
    named,
    numbers,
    operators,
    reads,
    says,
    shortens,
    takes_as_it_is,
)  # fmt: skip
from irlang.lower.lower import Lowered, lower
from irlang.lower.manner import USUAL, Manner

# What a rule for valid calls may raise on an invalid one, which says nothing of the target.
_LOST = (
    ArithmeticError, AssertionError, InvalidInput, LookupError, MemoryError, TypeError, ValueError,
)  # fmt: skip
_ROOM = 1 << 30  # bytes that one may take
_PAGES = Path("/proc/self/statm")  # the memory of this process, in pages, first


class Programs:
    """Programs of targets' own operators alone, each made once, in one manner."""

    def __init__(self, catalog: Catalog, manner: Manner = USUAL) -> None:
        self.catalog, self.manner = catalog, manner
        self._known: dict[tuple[str, int], tuple[Graph, Lowered | None]] = {}

    def own(self, target: str, graph: Graph) -> Lowered | None:
        """The program of a graph; None where the target has no operator of its own for it."""
        key = target, id(graph)  # the graph is kept, so that no other gets its identity
        if key not in self._known:
            self._known[key] = graph, own_program(graph, target, self.catalog, self.manner)
        return self._known[key][1]

    def has(self, target: str, graph: Graph) -> bool:
        """Whether a target has an operator of its own for every call."""
        return self.own(target, graph) is not None


def functions_of(programs: Programs, target: str, graph: Graph) -> str:
    """The target's functions that a call is handed to, by their names; nothing of one for which it
    has no operator of its own.
    """
    lowered = programs.own(target, graph)
    return " ".join(named(lowered)) if lowered is not None else ""


def is_telling(programs: Programs, target: str, one: Spoilt) -> bool:
    """Whether something is learnt from what a target makes of a spoilt call."""
    lowered = programs.own(target, one.graph)
    if lowered is None:
        return False
    # What a framework documents to be valid must end no process either.
    if isinstance(one.changed, SetElements) and not one.hollow:
        return not (is_wrapped(one, lowered) or is_valid_as_fixed(one, target, programs.catalog))
    if isinstance(one.changed, SetAttr) and is_listed(one.changed.value):
        valid = programs.own(target, one.beside[0])
        return valid is not None and says(valid) != says(lowered)
    documented = _documented(one, lowered, target)
    return (
        one.hollow
        or bool(documented)
        or only_shapes(target)
        or is_handed_over(one, lowered, target, programs)
    )


def is_handed_over(one: Spoilt, lowered: Lowered, target: str, programs: Programs) -> bool:
    """Whether the program of a spoilt call says something of the target by being run."""
    # Whose shapes the definition has nothing against, rules may shape, order and put together.
    shaped = one.added or isinstance(one.changed, SetAttr)
    fed = isinstance(one.changed, SetElements)
    # Other operands may be shaped, and be parts in another order, where this one comes as it is.
    retyped = one.changed.name if isinstance(one.changed, Retype) else None
    whole = retyped is not None and takes_as_it_is(lowered, retyped)
    operator = one.graph.nodes[0].op.name
    if not is_direct(lowered, shaped or whole, shaped or whole, fed, True, operator):
        return False
    if _documented(one, lowered, target):
        return False
    if is_valid_as_fixed(one, target, programs.catalog):
        return False
    if is_wrapped(one, lowered) or _is_of_one_axis(one, target):
        return False
    if retyped in one.graph.inputs and not reads(lowered, retyped):
        return False
    given = numbers(lowered)
    if not all(_numbers(other) <= given.keys() for other in _beside_it(one)):
        return False  # what the requirement sets it against is not given
    said = Counter(n for other in _said(one) for n in _numbers(other))
    if any(given[number] < times for number, times in said.items()):
        return False  # an axis that is as large as a size does not say the size
    if isinstance(one.changed, SetAttr):
        value = one.changed.value
        if not _numbers(value) <= given.keys():
            return False  # what is computed from it is given instead
        valid = programs.own(target, one.beside[0]) if one.beside else None
        if valid is not None and not isinstance(value, tuple):
            usual = numbers(valid)
            if all(given[number] <= usual[number] for number in _numbers(value)):
                return False  # it is another argument that is the same number
        if isinstance(value, tuple) and not _is_list_told(one, value, lowered, valid):
            return False  # one number is one for all axes, and none is none given
    text = says(lowered)
    others = (programs.own(target, graph) for graph in one.beside)
    same = any(other is not None and says(other) == text for other in others)
    if same or _is_untold(one, text, target, programs):
        return False
    return one.added or not _is_gone_untold(one, text, target, programs)


def _is_list_told(
    one: Spoilt, value: tuple[Any, ...], lowered: Lowered, valid: Lowered | None
) -> bool:
    """Whether a list of one number, or of none, is handed over, or one of so many as there are not.

    valid: the call before.
    """
    if len(value) > 1:
        names = one.beside[0].nodes[0].instance.binding.scope.names if one.beside else {}
        before = names.get(_changed(one))
        as_many = not isinstance(before, tuple) or len(before) == len(value)
        # Of what has another length a rule may have read the list of the valid call.
        return as_many or any(Counter(value) <= Counter(other) for other in lists(lowered))
    alike = bool(value) and _is_of_its_number(one, value[0])
    times = lists(lowered)[value]
    if alike and valid is not None:  # as a number, or in a list of more
        (number,) = _numbers(value)
        times = max(times, numbers(lowered)[number] - numbers(valid)[number])
    if isinstance(lowered.code, str):
        optional = pattern(one.graph.nodes[0].op).attrs[_changed(one)].default is not None
        if (value and not alike) or (not value and optional):
            return False
    return times >= _times(one)


def _documented(one: Spoilt, lowered: Lowered, target: str) -> str:
    """Why a call is valid there all the same, as the target documents it; empty where it is not."""
    node = one.graph.nodes[0]
    names = node.instance.binding.scope.names
    return admitted(target, node.op.name, one.fault.code, operators(lowered), names)


def _is_of_one_axis(one: Spoilt, target: str) -> bool:
    """Whether no tensor has axes, or by its change one has none beside others that have one, where
    one without is documented to be as good as one with one.
    """
    shapes = [port.info.shape for port in one.graph.inputs.values()]
    most = 1 if isinstance(one.changed, Retype) else 0
    few = () in shapes and all(len(shape) <= most for shape in shapes)
    return few and bool(admits_scalars(target))


def _is_untold(one: Spoilt, text: Any, target: str, programs: Programs) -> bool:
    """Whether what was changed is not told, as a list of ones too many is not where ones are usual:
    the target says the same where the attribute is left out.
    """
    node, name = one.graph.nodes[0], _changed(one)
    if not isinstance(one.changed, SetAttr) or pattern(node.op).attrs[name].default is None:
        return False
    graph = unsaid(one, (name,))
    lowered = programs.own(target, graph) if graph is not None else None
    return lowered is not None and says(lowered) == text


def _is_gone_untold(one: Spoilt, text: Any, target: str, programs: Programs) -> bool:
    """Whether nothing is wrong without those attributes that a target is not told: what pads by
    itself has no amounts that a window may lie in.
    """
    node = one.graph.nodes[0]
    declared, untold = pattern(node.op).attrs, []
    for name in one.fault.sources:
        if name in node.attrs and name != _changed(one) and declared[name].default is not None:
            graph = unsaid(one, (name,))
            lowered = programs.own(target, graph) if graph is not None else None
            if lowered is not None and says(lowered) == text:
                untold.append(name)
    left = unsaid(one, untold) if untold else None
    if left is None or left.nodes[0].instance.faults:
        return False
    elements = isinstance(one.changed, SetElements)
    return not elements or broken_by(left, fed(one, programs.catalog), programs.catalog) is None


def is_wrapped(one: Spoilt, lowered: Lowered) -> bool:
    """Whether whole numbers among the elements become others before the target sees them."""
    if not isinstance(one.changed, SetElements) or not shortens(lowered):
        return False
    whole = (n for name, n in one.changed.values if one.graph.values[name].kind == "int")
    return any(not -(2**31) <= number < 2**31 for number in whole)


def is_valid_as_fixed(one: Spoilt, target: str, catalog: Catalog) -> bool:
    """Whether a spoilt call is valid with what attributes are in a target's own operator."""
    node, types = one.graph.nodes[0], types_of(one.graph)
    attrs = fixed(target, node.op.name)
    if not attrs:
        return False
    instance = judge(node.op, types, {**node.attrs, **attrs})
    if instance is None or instance.faults:
        return False
    other = alone(node, types, {**node.attrs, **attrs}, instance, {})
    return broken_by(other, fed(one, catalog), catalog) is None


def _beside_it(one: Spoilt) -> Iterator[Any]:
    """What a spoilt call says, as it must, of the other attributes that its fault is about."""
    node = one.graph.nodes[0]
    declared = pattern(node.op).attrs
    for name in one.fault.sources:
        if name in node.attrs and name != _changed(one) and declared[name].default is None:
            yield node.attrs[name]


def _said(one: Spoilt) -> Iterator[Any]:
    """The single numbers that a call is to be told, each by itself: what was changed, and those
    beside it.
    """
    changed = (one.changed.value,) if isinstance(one.changed, SetAttr) else ()
    yield from (value for value in (*changed, *_beside_it(one)) if not isinstance(value, tuple))


def _times(one: Spoilt) -> int:
    """How often a list that was changed is to be handed over: what follows by default is it, too.

    Of a window of nothing its stride alone may be left, beside a window that a rule has made up.
    """
    node = one.graph.nodes[0]
    return 1 + len(following(node.op, node.attrs, _changed(one)))


def _is_of_its_number(one: Spoilt, number: Any) -> bool:
    """Whether a call with a list of one number is wrong in the same way with the number alone: then
    it is not how many there are that is wrong, and -1 is as bad for one axis as for all.
    """
    node = one.graph.nodes[0]
    instance = judge(node.op, types_of(one.graph), {**node.attrs, _changed(one): number})
    return instance is not None and one.fault.code in [fault.code for fault in instance.faults]


def _changed(one: Spoilt) -> str:
    return "" if isinstance(one.changed, SetElements) else one.changed.name


def _numbers(value: Any) -> frozenset[float]:
    """The numbers of an attribute, in single precision."""
    several = value if isinstance(value, tuple) else (value,)
    return frozenset(float(np.float32(n)) for n in several if isinstance(n, (int, float)))


def own_program(
    graph: Graph, target: str, catalog: Catalog, manner: Manner = USUAL
) -> Lowered | None:
    """The program of a spoilt call; None where a rule has no own operator for it, or is lost."""
    try:
        with _room():
            lowered = lower(graph, target, catalog, {}, whole=False, hollow=True, manner=manner)
    except _LOST:
        return None
    return None if lowered.unsupported else lowered


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """So much memory more, and `MemoryError` beyond: a rule may repeat a text as often as a number
    says that is no size at all.
    """
    if not _PAGES.exists():  # only Linux tells
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(_PAGES.read_text("ascii").split()[0]) * resource.getpagesize()
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([taken + _ROOM, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
