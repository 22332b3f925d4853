"""A witness looked for by gradients and bisection: what patterns do not meet by chance.

The adjoint says which way every input moves the operand of an unsafe point. Steps go straight to
the ends of the ranges, then less far; where a divisor changes its sign between two inputs, the
place where it is zero is closed in on, first along the line between them, then in one tensor.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time

import numpy as np

from irlang.adjoint_graph import Backward, prepare
from irlang.analysis.patterns import stored
from irlang.analysis.probe import Probe
from irlang.analysis.steps import shaken, stepped
from irlang.analysis.subject import Subject
from irlang.analysis.trace import Seen, is_given, originates, results, trace
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.graph import Node
from irlang.interp import gradient
from irlang.interp.draws import generator
from irlang.interp.values import Array

Values = dict[str, Array]
Way = tuple[Values, Values]  # from inputs to others
Met = tuple[Values, Array]  # inputs, and the operand there
Run = Callable[[Mapping[str, Array]], dict[str, Array]]
_REACHES = (1.0, 0.5, 0.1, 0.01)  # shares of the way to the end of a range
_ROUNDS = 12
_MET = 6  # of the latest starts that a new one is held against
_MARGIN = 2.0**-12  # of a line, at its ends
_ROUNDINGS, _BESIDE = 64, 40  # from an end of a domain; tries beside inputs that come so near
_FEW_BESIDE, _SHAKEN = 5, 0.1  # tries after which one has to have moved that share of what is left
_TOUCHES, _NEARER = 16, 0.75  # steps towards an end, each of which has to leave that share at most
_TOUCHED = 1e-3  # of an end, beside which rounding may decide
_DIGITS = 10  # binary ones, that what is left of numbers has at most
_BEFORE = 8  # halvings, up to those that may be beside the place where others have it
_HALVINGS = 160  # more than there are numbers of f64 between two ends, if zero is far from both


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where an element of the operand changes its sign. ways: between inputs that differ in the
    tensors `names` alone, the shorter first.
    """

    ways: tuple[Way, ...]
    names: Sequence[str]
    element: tuple[int, ...]


@dataclass(slots=True)
class Pursuit:
    """The search for one point, with one thing to watch.

    deadline: by `clock`. run: gives all values for some inputs, without it the oracle; a framework
    closes in on what only it rounds to zero. near: inputs, those of the latest starts last, that
    bring the operand to the end of its domain, and with all their neighbours not beyond it.
    climbed: the starts for which there was time. crossing: where the latest hit was closed in on.
    """

    subject: Subject
    node: Node
    probe: Probe
    deadline: float
    run: Run | None = None
    clock: Callable[[], float] = process_time
    backward: Backward | None = None
    seen: Seen = field(default_factory=dict)
    near: list[Values] = field(default_factory=list)
    climbed: int = 0
    crossing: Crossing | None = None

    def hits(self, starts: Iterable[Values]) -> Iterator[Values]:
        """Inputs at which the call goes wrong, from one start after the other."""
        met: list[Met] = []
        for values in starts:
            if self.over():
                return
            hit, best = self.climb(values)
            operand, _ = self.look(best) if hit is None else (None, False)
            if operand is not None and not self.over():
                hit, best, operand = self._touch(best, operand)
            if hit is None and operand is not None and self._at_edge(operand):
                hit, rounded = self._beside(best, operand)
                if hit is None and rounded:
                    self.near.append(best)
            if hit is None and operand is not None and self.probe.goal == "zero":
                hit = self.cross((best, operand), met)
                met = [*met[1 - _MET :], (best, operand)]
            self.climbed += not self.over()
            if hit is not None:
                yield hit

    def look(self, values: Mapping[str, Array]) -> tuple[Array | None, bool]:
        """The operand for some inputs, and whether the call goes wrong there.

        No operand where something before the call is not finite, or a precondition fails.
        """
        try:
            found = self.run(values) if self.run is not None else self._oracle(values)
        except InvalidInput:
            return None, False
        needed = (*self.node.operands(), *self.node.outputs[:1])
        if not all(name in found for name in needed):
            return None, False
        endless = self.subject.endless
        if not all(is_given(name, found[name], endless) for name in self.node.operands()):
            return None, False
        return found[self.probe.value], originates(self.node, found, endless) is not None

    def _oracle(self, values: Mapping[str, Array]) -> dict[str, Array]:
        graph, catalog = self.probe.graph, self.subject.catalog
        found = trace(graph, {**values, **self.subject.fixed}, catalog, self.seen)
        return {**found, **results(self.node, found, graph, catalog)}

    def over(self) -> bool:
        """Whether the time is up."""
        return self.clock() > self.deadline

    # ---- gradients

    def climb(self, start: Values) -> tuple[Values | None, Values]:
        """Inputs at which the call goes wrong, if they are found, and the best that was met."""
        values = start
        operand, wrong = self.look(values)
        if wrong or operand is None:
            return (values if wrong else None), values
        for _ in range(_ROUNDS):
            slopes = self._slopes(values, operand)
            if slopes is None:
                break
            best = None
            for moved in self._moves(values, slopes):
                if self.over():
                    return None, values
                reached, wrong = self.look(moved)
                if wrong:
                    return moved, moved
                if reached is None:
                    continue
                hit = self._between(values, operand, moved, reached)
                if hit is not None:
                    return hit, hit
                if best is None or self._score(reached) > self._score(best[1]):
                    best = moved, reached
            if best is None or self._score(best[1]) <= self._score(operand):
                break
            values, operand = best
        return None, values

    def _score(self, operand: Array) -> float:
        """How near the operand is to trouble, the greater the nearer."""
        goal = self.probe.goal
        if goal == "high":
            return float(operand.max())
        if goal == "low":
            return float(-operand.min())
        size = np.abs(operand)
        return float(size.max() if goal == "large" else -size.min())

    def _slopes(self, values: Values, operand: Array) -> Values | None:
        """How every input moves the operand's decisive element towards its goal."""
        goal = self.probe.goal
        key = {"high": operand, "low": -operand, "zero": -np.abs(operand)}.get(
            goal, np.abs(operand)
        )
        at = np.unravel_index(int(np.argmax(key)), operand.shape)
        towards = {"high": 1.0, "low": -1.0, "zero": -np.sign(operand[at])}.get(
            goal, np.sign(operand[at])
        )
        start = np.zeros(operand.shape)
        start[at] = towards or 1.0
        try:
            if self.backward is None:
                own = replace(self.probe.graph, params={}, loss=None)
                self.backward = prepare(own, self.subject.catalog, self.probe.value)
            given = {**values, **self.subject.fixed}
            found = trace(self.probe.graph, given, self.subject.catalog, self.seen)
            with np.errstate(all="ignore"):
                slopes = gradient.run(self.backward, found, start=start)
        except (InvalidInput, NotImplementedError):
            return None
        if not any(slope.any() for slope in slopes.values()):
            return None
        return slopes

    def _moves(self, values: Values, slopes: Values) -> Iterator[Values]:
        for reach in _REACHES:
            moved = dict(values)
            for name, slope in slopes.items():
                if name not in values or not slope.any():
                    continue
                low, high = self.subject.ranges[name]
                with np.errstate(invalid="ignore"):
                    aim = np.where(slope > 0, high, np.where(slope < 0, low, values[name]))
                    aim = np.where(np.isnan(slope), values[name], aim)
                    aim = values[name] + reach * (aim - values[name].astype(np.float64))
                moved[name] = stored(aim, self.subject.graph.inputs[name].info, (low, high))
            yield moved

    # ---- ends that are met and not passed

    def _touch(self, values: Values, operand: Array) -> tuple[Values | None, Values, Array]:
        """Inputs at which the call goes wrong, if any, and the nearest that was met: what
        touches an end and turns back, as a square does, is close to it in few places. A step goes
        twice as far as a line would have it, which is the way for a square; then rounding decides.
        """
        end = 0.0 if self.probe.goal == "zero" else self.probe.edge
        if not math.isfinite(end):
            return None, values, operand
        for _ in range(_TOUCHES):
            slopes = self._slopes(values, operand)
            squares = sum(float(np.sum(np.square(one))) for one in (slopes or {}).values())
            if slopes is None or not 0 < squares < math.inf:
                return None, values, operand
            gap = self._gap(operand, end)
            far = gap / squares
            if not math.isfinite(2 * far):  # of slopes that are hardly any
                return None, values, operand
            for times in (2.0, 1.0):
                moved = stepped(self.subject, values, slopes, times * far)
                reached, wrong = self.look(moved)
                if wrong:
                    return moved, moved, operand
                if reached is not None and self._gap(reached, end) <= _NEARER * gap:
                    values, operand = moved, reached
                    break
            else:
                break
            if self.over():
                return None, values, operand
        if self.probe.goal != "zero" or self._gap(operand, end) > _TOUCHED:
            return None, values, operand
        numbers = generator(0, "touched")
        for _ in range(_BESIDE):
            moved = shaken(self.subject, values, numbers)
            if self.look(moved)[1]:
                return moved, moved, operand
            if self.over():
                break
        return None, values, operand

    def _gap(self, operand: Array, end: float) -> float:
        """How far the nearest number of an operand is from an end."""
        return float(np.abs(operand - end).min())

    # ---- roundings

    def _at_edge(self, operand: Array) -> bool:
        """Whether the operand is as far as exact numbers bring it: a few roundings from the end."""
        edge = self.probe.edge
        if not np.isfinite(edge):
            return False
        nearest = self._nearest(operand)
        units = [DTYPES[port.info.dtype].unit for port in self.subject.graph.inputs.values()]
        return abs(nearest - edge) <= _ROUNDINGS * max(units, default=0.0) * max(1.0, abs(edge))

    def _nearest(self, operand: Array) -> float:
        """The number of an operand that is nearest to the end of its domain."""
        return float(operand.max() if self.probe.goal == "high" else operand.min())

    def _beside(self, values: Values, operand: Array) -> tuple[Values | None, bool]:
        """Inputs a few roundings beside others, at which the call goes wrong: what is 1 at most in
        exact numbers is a little more in some. And whether roundings decide there: of a small
        probability they change next to nothing, which soon shows.
        """
        numbers, nearest = generator(0, "beside"), self._nearest(operand)
        gap = abs(nearest - self.probe.edge)
        rounded = _has_few_digits(gap)  # as what is left where numbers of some size cancel
        met = False
        for number in range(_BESIDE):
            moved = shaken(self.subject, values, numbers)
            reached, wrong = self.look(moved)
            if wrong:
                return moved, True
            change = math.inf if reached is None else abs(self._nearest(reached) - nearest)
            met |= change > 0 and change >= _SHAKEN * gap
            if self.over() or (number >= _FEW_BESIDE and not met and (gap == 0 or not rounded)):
                break
        return None, rounded or met

    # ---- bisection

    def cross(self, last: Met, met: Sequence[Met]) -> Values | None:
        """Looks between the last inputs and those before, where a divisor has another sign."""
        for others, another in met:
            hit = self._between(others, another, *last)
            if hit is not None or self.over():
                return hit
        return None

    def close_in(self, crossing: Crossing) -> Values | None:
        """Looks where another run has found the operand to be zero: it rounds in another order, so
        that the exact place is beside that.
        """
        for way in crossing.ways:
            ends: list[float] = []
            for one in way:
                operand, wrong = self.look(one)
                if wrong:
                    return one
                if self.over():
                    return None
                if operand is not None:
                    ends.append(float(operand[crossing.element]))
            if len(ends) == 2 and ends[0] * ends[1] <= 0:
                return self._bisect(way, crossing.names, crossing.element, ends)
        return None

    def _between(self, a: Values, at_a: Array, b: Values, at_b: Array) -> Values | None:
        if self.probe.goal != "zero":
            return None
        opposite = np.argwhere(np.sign(at_a) * np.sign(at_b) < 0)
        if not len(opposite):
            return None
        element = tuple(opposite[0])
        differing = [name for name in a if a[name] is not b[name]]
        ends = [float(at[element]) for at in (at_a, at_b)]
        hit = self._bisect((a, b), differing, element, ends)
        if hit is not None:
            return hit
        now, before = dict(a), ends[0]
        for name in differing:  # the tensor that changes the sign, the others standing still
            then = {**now, name: b[name]}
            operand, wrong = self.look(then)
            if wrong:
                return then
            if operand is None or self.over():
                return None
            after = float(operand[element])
            if np.sign(after) != np.sign(before):
                return self._bisect((now, then), (name,), element, [before, after])
            now, before = then, after
        return None

    def _bisect(
        self, line: Way, names: Sequence[str], element: tuple[int, ...], at: Sequence[float]
    ) -> Values | None:
        """Closes in on where an element of the operand is zero, then with some numbers from either
        end.

        at: the element at both ends, which differ in the tensors `names`. The line through them
        says where to look, every third time the middle.
        """
        way, ends, sign = line, list(at), np.sign(at[0])
        passed: deque[Way] = deque(maxlen=_BEFORE)
        for number in range(_HALVINGS):
            shares = (0.5,) if number % 3 == 2 else (_crossing(*ends), 0.5)
            inside = next(self._inside(way, names, shares), None)
            passed.append(way)
            if inside is None:
                hit = self._one_by_one(way, names, element, sign)
                break
            operand, wrong = self.look(inside)
            if wrong:
                hit = inside
                break
            if operand is None or self.over():
                return None
            if np.sign(operand[element]) == sign:
                way, ends[0] = (inside, way[1]), float(operand[element])
            else:
                way, ends[1] = (way[0], inside), float(operand[element])
        else:
            return None
        if hit is not None:
            self.crossing = Crossing((passed[0], line), names, element)
        return hit

    def _inside(self, way: Way, names: Sequence[str], shares: Sequence[float]) -> Iterator[Values]:
        """Inputs on the way, where those that are stored are neither of its ends."""
        ports, ranges = self.subject.graph.inputs, self.subject.ranges
        for share in shares:
            found = dict(way[0])
            for name in names:
                first, last = (end[name].astype(np.float64) for end in way)
                found[name] = stored(first + share * (last - first), ports[name].info, ranges[name])
            if not any(all(np.array_equal(found[n], end[n]) for n in names) for end in way):
                yield found

    def _one_by_one(
        self, way: Way, names: Sequence[str], element: tuple[int, ...], sign: float
    ) -> Values | None:
        """The same between inputs that are next to each other, with some of their numbers from
        either: what is one number everywhere moves a sum by many roundings at once.
        """
        places = {name: np.flatnonzero(way[0][name] != way[1][name]) for name in names}
        low, high = 0, sum(map(len, places.values()))
        while high - low > 1:
            left = middle = (low + high) // 2
            mixed = dict(way[0])
            for name, differing in places.items():
                mixed[name] = way[0][name].copy()
                taken = differing[:left]
                mixed[name].reshape(-1)[taken] = way[1][name].reshape(-1)[taken]
                left -= len(taken)
            operand, wrong = self.look(mixed)
            if wrong:
                return mixed
            if operand is None or self.over():
                return None
            if np.sign(operand[element]) == sign:
                low = middle
            else:
                high = middle
        return None


def _has_few_digits(number: float) -> bool:
    """Whether a number is a small multiple of a power of two."""
    return bool((np.frexp(number)[0] * 2.0**_DIGITS) % 1 == 0)


def _crossing(first: float, last: float) -> float:
    """Where on the way from one number to another of another sign a line is zero, inside it."""
    if not (np.isfinite(first) and np.isfinite(last)) or first == last:
        return 0.5
    share = first / (first - last) if np.isfinite(first - last) else 0.5
    return float(min(max(share, _MARGIN), 1 - _MARGIN))
