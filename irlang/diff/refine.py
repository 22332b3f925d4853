"""Verdicts on outputs whose balls say little, by the derivative (`irlang.interp.first_order`).

A row of the derivative costs about as much as the program, so that only elements are asked for: of
those whose radius is wide, the ones that a target has farthest off. They decide. The others have no
radius then; a target is nearer to the oracle there.

It is asked, too, of elements that are farther off than targets mostly are, whatever their balls
allow: those of an elimination allow twenty times what the derivative does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irlang.arithmetic import STANDARD, Arithmetic, half
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.pace import PACE
from irlang.diff.verdict import FINDINGS, Verdict, judge, softened
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.interp.balls import Ball
from irlang.interp.first_order import FirstOrder
from irlang.interp.flows import TooLongError
from irlang.interp.program import precision

Array = np.ndarray[Any, np.dtype[Any]]

ELEMENTS = 16  # of each output
_AGREES = "agrees"
_WEAK = frozenset({"unstable", "rounding", _AGREES})
_PROVED = 1 << 15  # elements of a program in which what an estimate speaks against is proved
STRANGE = 16.0  # roundings of an output's largest element that are reason to look closer


def largest(value: Any) -> float:
    """The size of the largest finite element."""
    size = np.abs(np.asarray(value, dtype=np.float64))
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


@dataclass(slots=True)
class Refiner:
    """A program with its values, and what is known of it in each arithmetic that was asked for.

    thorough: whether to look closer wherever balls say little, and not only where a target is
    stranger than it mostly is. sketched: whether an estimate is asked first, of what the whole sum
    takes long for.
    """

    graph: Graph
    values: Mapping[str, Array]
    catalog: Catalog
    thorough: bool = True
    sketched: bool = False
    _orders: dict[tuple[Arithmetic, bool | None], FirstOrder] = field(default_factory=dict)
    _until: float = math.inf  # of the look under way

    def refined(
        self,
        found: list[Verdict],
        balls: Mapping[str, Ball],
        results: Mapping[str, Any],
        target: str,
        own: Arithmetic,
    ) -> list[Verdict]:
        """The verdicts on a program's outputs, those that are weak anew where that says more.

        balls: by value, in standard arithmetic or in the target's own; results: by output.
        """
        # Values and gradients have a look each: together what one finding may take.
        self._until = time.monotonic() + PACE.for_one(math.inf) / 2
        better = {
            v.name: self._again(v, balls, results, target, own) for v in found if self._weak(v)
        }
        return [better.get(v.name) or v for v in found]

    def _weak(self, verdict: Verdict) -> bool:
        value = self.graph.outputs.get(verdict.name)
        weak = verdict.verdict in _WEAK and not verdict.message
        return weak and value is not None and self.graph.values[value].kind == "real"

    def _again(
        self,
        verdict: Verdict,
        balls: Mapping[str, Ball],
        results: Mapping[str, Any],
        target: str,
        own: Arithmetic,
    ) -> Verdict | None:
        try:
            return self._judged(verdict, balls, results, target, own)
        except InvalidInput:  # an adjoint that has no order of evaluation, or too large for memory
            return None
        except RecursionError:  # one that is deeper than Python goes
            return None
        except TooLongError:  # what speaks against a target is not proved
            return None

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _judged(
        self,
        verdict: Verdict,
        balls: Mapping[str, Ball],
        results: Mapping[str, Any],
        target: str,
        own: Arithmetic,
    ) -> Verdict | None:
        name = verdict.name
        value, got = self.graph.outputs[name], np.asarray(results[name])
        info, ball = self.graph.values[value], balls[value]
        places, wide = self._farthest(ball, got, DTYPES[info.dtype].unit)
        if not places.size:
            return None
        plain = STANDARD if not own.narrower else own

        first = True if self.sketched else None

        def found(arithmetic: Arithmetic, estimates: bool | None = first) -> Ball:
            return self._ball(value, ball, places, wide, arithmetic, estimates)

        again = judge(name, target, info, found(plain), got)
        if again.verdict in FINDINGS and plain != own:
            again = judge(name, target, info, found(own), got)
        estimates = None
        if again.verdict in FINDINGS and self._order(own, first).estimates:
            estimates = self._order(own, first).size > _PROVED
            if not estimates:
                again = judge(name, target, info, found(own, estimates), got)
        if again.verdict == "unstable":
            return None
        if verdict.verdict == _AGREES and again.verdict not in FINDINGS:
            return None
        if again.verdict in FINDINGS:
            if estimates:
                again = replace(again, message="by an estimate", estimated=True)
            return softened(
                [again], {name: info}, {name: got}, lambda: {name: found(half(own), estimates)}
            )[0]
        return replace(again, message=f"first order, {places.size} of {got.size} elements")

    def _order(self, arithmetic: Arithmetic, estimates: bool | None = None) -> FirstOrder:
        """estimates: as in `FirstOrder`."""
        key = arithmetic, estimates
        if key not in self._orders:
            self._orders[key] = FirstOrder(
                self.graph, self.values, self.catalog, precision(self.graph), arithmetic, estimates,
                self._left,
            )  # fmt: skip
        return self._orders[key]

    def _farthest(self, ball: Ball, got: Array, unit: float) -> tuple[Array, Array]:
        """The elements to ask for, by position in a row, and where balls say little."""
        right = np.asarray(ball.value, dtype=np.float64).reshape(-1)
        radius = np.broadcast_to(np.asarray(ball.bound, np.float64), got.shape).reshape(-1)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(got.reshape(-1).astype(np.float64) - right)
        scale = largest(right)
        wide = ~(radius <= math.sqrt(unit) * scale)
        strange = STRANGE * unit * scale
        asked = np.isfinite(right) & (wide | (error > strange))
        error = np.where(asked, np.where(np.isnan(error), np.inf, error), -1.0)
        if not scale or not np.any(error > (0.0 if self.thorough else strange)):
            return np.zeros(0, int), wide
        places = np.argsort(-error, kind="stable")[:ELEMENTS]
        return places[error[places] >= 0], wide

    def _ball(
        self,
        value: str,
        ball: Ball,
        places: Array,
        wide: Array,
        arithmetic: Arithmetic,
        estimates: bool | None,
    ) -> Ball:
        """The value with a radius where balls have a good one, or the derivative has one."""
        order = self._order(arithmetic, estimates)
        shape = np.shape(ball.value)
        before = np.broadcast_to(np.asarray(ball.bound, np.float64), shape).reshape(-1)
        radius = np.where(wide, np.inf, before)
        middle = np.array(ball.value, dtype=np.float64).reshape(-1)
        found = order.radius(value, places)
        lost = np.isinf(found)
        if estimates and self.sketched and lost.any():  # the whole sum may know of poles
            found[lost] = self._order(arithmetic).radius(value, places[lost])
        tighter = found < before[places]  # else the ball, around its own middle
        radius[places] = np.where(tighter, found, before[places])
        middle[places] = np.where(tighter, order.value(value).reshape(-1)[places], middle[places])
        # What may pass the largest number of the type may be infinite.
        with np.errstate(over="ignore"):
            beyond = np.abs(middle) + radius > DTYPES[self.graph.values[value].dtype].largest
        radius[wide & beyond] = np.inf
        return Ball(middle.reshape(shape), radius.reshape(shape))
