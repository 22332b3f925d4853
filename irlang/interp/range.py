"""The sixth meaning: between which numbers every value lies, and where NaN or Inf can arise.

Equations are evaluated once per region with sets of numbers (`irlang.interp.interval`) in place of
numbers. A call is judged as its user sees it: a point is *possible* where its results may be NaN or
Inf although all that it reads is finite, *safe* where the operation could give one for some
argument and is proved not to for these. What comes after a possible point is not reported for
passing on what it was handed; what it makes anew, as of the 0 that the reciprocal of Inf is, is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang.adjoint_graph import Pullback, gradient_graph, prepare
from irlang.graph import Graph, Node, Param, Port
from irlang.instance import Definitions
from irlang.interp import regions
from irlang.interp.declared import given_tensor
from irlang.interp.fixed import Fixed
from irlang.interp.interval import Numbers
from irlang.interp.range_call import Call
from irlang.interp.range_eval import Place
from irlang.interp.reasons import is_overflow
from irlang.interp.recall import NONE, Trials, likeness, together
from irlang.interp.regions import Tensor, copied

DOMAINS = ("relations", "regions", "tensor")
_UNBOUNDED = 0.75  # the power of the largest number that no bound reaches: a mean of it is less
_AGAIN = 600  # expressions of proofs about a call that is handed what may not be finite


@dataclass(frozen=True, slots=True)
class Range:
    """What a value may be, in its element type, rounding included.

    low, high: of its numbers; infinite where Inf is possible. nan: whether NaN is.
    """

    low: float
    high: float
    nan: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a call where NaN or Inf may arise out of finite numbers, or cannot.

    node: the name of the call (of a gradient's: its own). operator: the name of the definition.
    stage: `forward` or `gradient`. function: the scalar function or reduction. tensor: the target
    of the equation. operand: the range of the argument that decides. status: `safe` or `possible`.
    reasons: short sentences. region: the box of indices of `tensor`, ends excluded. after: an
    operand that has no bound but that of its type, since an earlier call is not safe.
    """

    node: str
    operator: str
    stage: str
    function: str
    tensor: str
    operand: Range
    status: str
    reasons: tuple[str, ...]
    region: tuple[tuple[int, int], ...]
    after: str = ""


@dataclass(frozen=True, slots=True)
class Granted:
    """What a call requires of the numbers that it reads, and is taken to have: the ranges alone do
    not say so. node: the name of the call. code, message: of the precondition.
    """

    node: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """values: the range of every value of the graph, by name. points: in the order of the calls.
    regions: for every value, its boxes of indices and what lies there. endless: the values that
    may be infinite because the model says so, as a mask of -inf, and not because of a point.
    granted: what calls require and are taken to have. left_open: the calls of which a definition
    leaves open which integers some numbers become, as those too large for a type. steps: the calls
    as they were judged, in their order, for models that begin alike.
    """

    values: dict[str, Range]
    points: tuple[Point, ...]
    regions: dict[str, tuple[tuple[tuple[tuple[int, int], ...], Range], ...]]
    endless: frozenset[str] = frozenset()
    granted: tuple[Granted, ...] = ()
    left_open: tuple[str, ...] = ()
    steps: tuple[Step, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """A call that was judged. outputs: the values that it gives. number: its own, for the names of
    what it has inside. look: all that this hung on, but for the calls before. tensors: what it made
    or changed.
    """

    outputs: tuple[str, ...]
    number: int
    look: Any
    tensors: dict[str, Tensor]
    points: tuple[Point, ...]
    granted: tuple[Granted, ...]
    left_open: bool

    @property
    def narrows(self) -> bool:
        """Whether it changed what it does not make: by what it requires of what it reads."""
        own = f"{self.number}."
        return any(not (n in self.outputs or n.startswith(own)) for n in self.tensors)


class Known:
    """The steps of another model. One holds here, too, where the call is the same, and so is all
    that it hangs on. Calls that narrow what they read have to be the same in both models, up to
    there: others see that.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._places = {step.outputs: place for place, step in enumerate(steps)}
        self._next = 0  # the first that comes after all that hold
        self._others: set[str] = set()  # values that may be others than in that model
        self._number = 1 + max((step.number for step in steps), default=-1)

    def number(self) -> int:
        """One that no call has, neither there nor here."""
        self._number += 1
        return self._number - 1

    def step(self, outputs: tuple[str, ...], look: Any, reads: Collection[str]) -> Step | None:
        """The step of a call, if it holds. reads: the values that it hangs on directly."""
        place = self._places.get(outputs, -1)
        if place < self._next or not self._others.isdisjoint(reads):
            return None
        if self._steps[place].look != look:
            return None
        if any(step.narrows for step in self._steps[self._next : place]):
            self._places = {}
            return None
        self._next = place + 1
        return self._steps[place]

    def judged(self, step: Step) -> None:
        """A call was judged anew: what it gives may be something else."""
        self._others.update(step.outputs)
        if step.narrows:
            self._places = {}


class Store(dict[str, Tensor]):
    """Tensors by name, and what they were before they were set: a call changes few of very many."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Tensor | None] = {}

    def __setitem__(self, name: str, tensor: Tensor) -> None:
        self.before.setdefault(name, self.get(name))
        super().__setitem__(name, tensor)

    def update(self, made: Mapping[str, Tensor]) -> None:  # type: ignore[override]
        """Sets some, one by one: a dictionary would not tell."""
        for name, tensor in made.items():
            self[name] = tensor

    def changed(self) -> dict[str, Tensor]:
        """The tensors that are others than before."""
        return {name: self[name] for name, old in self.before.items() if self[name] is not old}


def analyse(
    graph: Graph,
    definitions: Definitions,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    gradient: bool = False,
    domain: str = "relations",
    flush: bool = False,
    known: Sequence[Step] = (),
) -> Analysis:
    """Where NaN and Inf can arise in a model, and what its values may be.

    ranges: of inputs and parameters whose text declares none. gradient: whether the gradient of the
    loss is analysed too. domain: one of `DOMAINS`, how much is known of a value: an interval for
    every tensor, for every region, or relations between elements as well. flush: whether a target
    may flush denormal numbers to zero. known: the steps of a model that is alike, analysed under
    the same options: those that hold here are not judged again. Raises `InvalidInput` where data
    cannot be read.
    """
    whole = gradient_graph(prepare(graph, definitions)).graph if gradient else graph
    tensors = Store()
    points: list[Point] = []
    others, steps = Known(known), list[Step]()
    trials: dict[Any, Trials] = {}
    with np.errstate(all="ignore"):
        given: dict[str, Port | Param] = {**graph.inputs, **graph.params}
        for name, one in given.items():
            tensors[name] = given_tensor(graph, name, one, dict(ranges or {}), domain)
        equal = _equal_constants(graph, tensors)
        if domain == "relations":
            for name, same in equal.items():
                tensors[name] = copied(tensors[name], same)
        start = dict(tensors)
        fixed = Fixed(whole, definitions, ranges or {}) if domain == "relations" else None
        first: dict[Any, Node] = {}
        for node in whole.nodes:
            twin = _twin(node, first, equal, definitions) if domain == "relations" else ()
            look = _look(node, whole, start), twin
            exact = {} if fixed is None else fixed.results(node, domain)
            step = others.step(tuple(node.outputs), look, (*node.operands(), *twin))
            if step is None:
                tensors.before.clear()
                number = others.number()
                own = _judged(node, number, definitions, tensors, domain, flush, trials)
                tensors.update(
                    {name: one for name, one in exact.items() if not _is_told(tensors[name])}
                )
                step = Step(tuple(node.outputs), number, look, tensors.changed(), *own)
                others.judged(step)
            tensors.update(step.tensors)
            points += step.points
            steps.append(step)
            for name, same in zip(node.outputs, twin, strict=False):
                equal[name] = same
                tensors[name] = copied(tensors[name], same)
    return Analysis(
        {name: _range(tensors[name].hull) for name in whole.values},
        tuple(points),
        {
            name: tuple((region.box, _range(region.numbers)) for region in tensors[name].regions)
            for name in whole.values
        },
        frozenset(name for name in whole.values if _endless(tensors[name].hull)),
        tuple(one for step in steps for one in step.granted),
        tuple(node.name for node, step in zip(whole.nodes, steps, strict=True) if step.left_open),
        tuple(steps),
    )


def _is_told(tensor: Tensor) -> bool:
    """Whether every element is one number in its region: on a diagonal another than beside it."""
    return all(region.numbers.only is not None for region in tensor.regions)


def _endless(numbers: Numbers) -> bool:
    """Whether infinities are in a set that no point has made."""
    return (numbers.below or numbers.above) and not (numbers.nan or numbers.origins)


def _look(node: Node, graph: Graph, given: Mapping[str, Tensor]) -> Any:
    """What the judgement of a call hangs on, the calls before it being the same."""
    values = [
        (name, graph.values[name], given[name].regions if name in given else None)
        for name in (*node.operands(), *node.outputs)
    ]
    instance = node.equations if isinstance(node, Pullback) else None
    return node.name, node.op.name, repr(sorted(node.attrs.items())), node.feeds(), values, instance


def _judged(
    node: Node,
    number: int,
    definitions: Definitions,
    tensors: dict[str, Tensor],
    domain: str,
    flush: bool,
    trials: dict[Any, Trials],
) -> tuple[tuple[Point, ...], tuple[Granted, ...], bool]:
    """The points of a call, what it is taken to have, whether its definition leaves a result open;
    its results are put among the tensors.

    trials: what proofs have brought, by what calls have in common that are alike.
    """
    handed = {name: tensors[name] for name in node.operands() if tensors[name].handed}
    tensors.update({name: tensor.finite() for name, tensor in handed.items()})
    equations = node.expansion(definitions).equations
    key = likeness(equations, node.feeds(), tensors) if domain == "relations" else node.name
    before = trials.get(key, NONE)
    call = Call(node, number, definitions, tensors, domain, flush, before=before)
    most = call.own.largest**_UNBOUNDED
    free = next((name for name in handed if tensors[name].hull.magnitude >= most), "")
    points = tuple(_point(node, place, free) for place in call.run())
    before = together(before, call.trials)
    if key in trials and _any_unsafe(points):
        call = Call(node, number, definitions, tensors, domain, flush)
        points = tuple(_point(node, place, free) for place in call.run())
        before = together(before, call.trials)
    if domain == "relations" and _any_unsafe(points):
        alone = _by_itself(call, tensors, free)
        call, points = (call, points) if alone is None else alone
    own = () if isinstance(node, Pullback) else call.granted
    granted = tuple(Granted(node.name, check.code, check.message) for check in own)
    left_open = not isinstance(node, Pullback) and call.leaves_open()
    if handed:  # judged as if it read finite numbers only; what it gives may be more
        tensors.update(handed)
        call = Call(node, number, definitions, tensors, domain, flush, proofs=_AGAIN, before=before)
        call.run()
        before = together(before, call.trials)
    trials[key] = before
    call.leave()
    return points, granted, left_open


def _any_unsafe(points: Sequence[Point]) -> bool:
    """Whether something may go wrong in a call, beside what goes wrong after it has."""
    return any(point.status != "safe" and not point.after for point in points)


def _by_itself(
    made: Call, tensors: dict[str, Tensor], free: str
) -> tuple[Call, tuple[Point, ...]] | None:
    """A call and its points, judged by what numbers it reads and not by how these were made, where
    it is safe so; else None, and the tensors are as they were.

    That is soon done, and all that a softmax takes of scores that were put together of many parts,
    in which proofs come to no end. made: the call as it has been run already.
    """
    node = made.node
    before = {name: tensors[name] for name in made.names.values() if name in tensors}
    for name in set(node.operands()):
        if not tensors[name].hull.origins:
            tensors[name] = regions.whole(tensors[name].info, tensors[name].hull)
    call = Call(node, made.number, made.definitions, tensors, made.domain, made.own.flush)
    points = tuple(_point(node, place, free) for place in call.run())
    safe = all(point.status == "safe" for point in points)
    tensors.update({name: before[name] for name in (node.operands() if safe else before)})
    return (call, points) if safe else None


def _equal_constants(graph: Graph, given: Mapping[str, Tensor]) -> dict[str, str]:
    """The parameters that are the same number as an earlier one, and which: models of other systems
    have a constant for every place that it stands at.
    """
    first: dict[Any, str] = {}
    found: dict[str, str] = {}
    for name, param in graph.params.items():
        only = given[name].hull.only
        if only is not None and given[name].hull.finite:
            twin = first.setdefault((param.info, str(only)), name)
            if twin != name:
                found[name] = twin
    return found


def _twin(
    node: Node, first: dict[Any, Node], equal: Mapping[str, str], definitions: Definitions
) -> tuple[str, ...]:
    """The results of an earlier call that gives the same, if there is one."""
    if isinstance(node, Pullback) or node.expansion(definitions).is_open:
        return ()
    twin = first.setdefault(_key(node, equal), node)
    return () if twin is node else tuple(twin.outputs)


def _key(node: Node, equal: Mapping[str, str]) -> Any:
    """What calls have in common that give the same. equal: values that are known to be others."""
    feeds = tuple((formal, equal.get(name, name)) for formal, name in node.feeds().items())
    return node.op.name, repr(sorted(node.attrs.items())), feeds


def _point(node: Node, place: Place, free: str) -> Point:
    large = place.possible and is_overflow(place.function, place.operand)
    return Point(
        node.name,
        node.op.name,
        "gradient" if isinstance(node, Pullback) else "forward",
        place.function,
        place.target,
        _range(place.operand),
        "possible" if place.possible else "safe",
        tuple(place.reasons),
        place.box,
        free if large else "",
    )


def _range(numbers: Numbers) -> Range:
    if numbers.empty:
        return Range(math.inf, -math.inf)
    if not numbers.pieces and not (numbers.below or numbers.above):
        return Range(math.nan, math.nan, True)
    return Range(float(numbers.low), float(numbers.high), numbers.nan)
