"""Equations by compiled loop nests: what is worth a compiler and is no product of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import InvalidInput, fail
from irlang.interp import kernel_cache, memory, wide
from irlang.interp.kernel_functions import COMPILED
from irlang.interp.kernel_source import EMPTY, NONE, Source, generate
from irlang.interp.schedule import Recurrence

Array = np.ndarray[Any, Any]

STORED = {"real": np.dtype(np.float64), "int": np.dtype(np.int64), "bool": np.dtype(np.bool_)}
_STATUS = 66  # kind, number of the read, and an index of as many axes as NumPy allows


def compiles(expr: eq.Expr) -> bool:
    """Whether all functions in an expression can be compiled, and int64 holds its numbers."""
    return not any(
        part.function not in COMPILED
        if isinstance(part, eq.Apply)
        else isinstance(part, (eq.Const, eq.Size)) and wide.is_wide(part.value)
        for part in eq.walk(expr)
    )


def evaluate(
    step: eq.Equation | Recurrence,
    tensors: Mapping[str, Array],
    infos: Mapping[str, eq.TensorInfo],
) -> dict[str, Array]:
    """The targets of an equation or a recurrence.

    tensors: C-contiguous float64, int64 or bool, by the kind of each. Raises InvalidInput
    `run.outside`, `run.none` and `run.empty` as the exact meaning does.
    """
    prepared = Prepared(step, infos)
    targets = prepared.targets()
    prepared.run({**tensors, **targets})
    return targets


class Prepared:
    """A kernel for one call's shapes, to be run once or, step by step, many times."""

    def __init__(
        self,
        step: eq.Equation | Recurrence,
        infos: Mapping[str, eq.TensorInfo],
        source: Source | None = None,
    ) -> None:
        self.equations = step.equations if isinstance(step, Recurrence) else (step,)
        self.length = step.length if isinstance(step, Recurrence) else 1
        known = {**infos, **{e.target: e.info for e in self.equations}}
        self._infos = known
        self.source: Source = source or generate(step, known)
        self._whole = np.array(self.source.whole, dtype=np.int64)
        self._real = np.array(self.source.real, dtype=np.float64)

    @property
    def ready(self) -> bool:
        """Whether no compiler is needed."""
        return kernel_cache.ready(self.source.text)

    def targets(self) -> dict[str, Array]:
        """Arrays for the results."""
        return {e.target: memory.empty(e.info.shape, STORED[e.info.kind]) for e in self.equations}

    def run(self, tensors: Mapping[str, Array], first: int = 0, last: int | None = None) -> None:
        """Fills the targets, which are among `tensors`; of a recurrence, some steps of them."""
        self.bind(tensors)(first, self.length if last is None else last)

    def bind(self, tensors: Mapping[str, Array]) -> Any:
        """A function of (first, last): the kernel with its tensors."""
        kernel = kernel_cache.load(self.source.text)
        # compiled for arrays that may be written, which a caller's own need not be
        arrays = [
            np.require(tensors[name], requirements=("C", "W")) for name in self.source.tensors
        ]
        arrays = [array if array.ndim else array.reshape(1) for array in arrays]
        whole, real = self._whole, self._real
        status = np.zeros(_STATUS, dtype=np.int64)

        def run(first: int, last: int) -> None:
            kernel(first, last, whole, real, status, *arrays)
            if status[0]:
                raise self._failure(status)

        return run

    def _failure(self, status: Array) -> InvalidInput:
        what, number, *position = status.tolist()
        if what == NONE:
            return fail("run.none", "`the` finds no value that satisfies its condition")
        if what == EMPTY:
            return fail("run.empty", "`argmax` or `argmin` over nothing has no value")
        read = self.source.reads[number]
        shape = list(self._infos[read.tensor].shape)
        return fail(
            "run.outside",
            f"`{read.tensor}` of shape {shape} is read at {position[: len(shape)]}",
            help="say what is read there with `??`",
        )
