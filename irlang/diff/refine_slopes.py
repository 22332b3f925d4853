"""Verdicts on gradients of which balls say little: as on values (`irlang.diff.refine`), of the
program that all calls and their adjoints are together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irlang.adjoint_graph import gradient_graph, prepare
from irlang.arithmetic import Arithmetic
from irlang.catalog import Catalog
from irlang.diff.refine import Refiner
from irlang.diff.verdict import Verdict
from irlang.graph import Graph, gradient_by
from irlang.interp.balls import Ball
from irlang.interp.gradient import gradient_balls
from irlang.interp.reference import steps_of

Array = np.ndarray[Any, np.dtype[Any]]

# Scalar steps of a program and its gradient up to which it is looked at: a row of the derivative
# takes some more, over balls, so that a tenth of these is a second, and some take many more.
_MOST, _MOST_BY_THE_WAY = 100_000_000, 10_000_000


@dataclass(slots=True)
class SlopeRefiner:
    """A program with its values; thorough: as of a `Refiner`."""

    graph: Graph
    values: Mapping[str, Array]
    catalog: Catalog
    thorough: bool = True
    _inner: Refiner | None = field(default=None)
    _work: int = 0

    def refined(
        self,
        found: list[Verdict],
        balls: Mapping[str, Ball],
        slopes: Mapping[str, Ball],
        gradients: Mapping[str, Array],
        target: str,
        own: Arithmetic,
    ) -> list[Verdict]:
        """The verdicts, those that are weak anew where that says more.

        balls, slopes: of values and of gradients, by name, in standard arithmetic or in the
        target's own. gradients: the target's, by what they are by.
        """
        known = {gradient_by(name): ball for name, ball in slopes.items() if name in gradients}
        # How far off factors may be that are rounded first follows from the terms of a gradient.
        if not known or own.factors or own.fast:
            return found
        inner = self._program()
        if self._work > (_MOST if self.thorough else _MOST_BY_THE_WAY):
            return found
        if any(np.any(np.isinf(np.asarray(ball.bound))) for ball in known.values()):
            opened: set[str] = set()
            gradient_balls(
                self.graph, self.values, self.catalog, balls, arithmetic=own, opened=opened
            )
            if opened:
                known = {name: _where_known(ball) for name, ball in known.items()}
        given = {inner.graph.outputs[name]: ball for name, ball in known.items()}
        weak = [verdict for verdict in found if verdict.name in known]
        shown = {gradient_by(name): slope for name, slope in gradients.items()}
        again = {v.name: v for v in inner.refined(weak, given, shown, target, own)}
        return [again.get(verdict.name, verdict) for verdict in found]

    def _program(self) -> Refiner:
        """The program whose results are the gradients alone; at a tie any that is allowed."""
        if self._inner is None:
            whole = gradient_graph(prepare(self.graph, self.catalog, ties="any"))
            named = {gradient_by(name): value for name, value in whole.cotangents.items()}
            wanted = set(whole.graph.outputs.values())
            outputs = {name: value for name, value in named.items() if value in wanted}
            graph = replace(whole.graph, outputs=outputs)
            self._inner = Refiner(
                graph, self.values, self.catalog, self.thorough, sketched=not self.thorough
            )
            self._work = sum(
                steps_of(equation)
                for node in graph.nodes
                for equation in node.expansion(self.catalog).equations
            )
        return self._inner


def _where_known(ball: Ball) -> Ball:
    """A ball that is no number where nothing is known, so that nobody asks for it."""
    return replace(ball, value=np.where(np.isinf(ball.bound), np.nan, ball.value))
