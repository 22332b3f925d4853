"""The reference: the value of an operator in float64, by whatever evaluates it soonest.

An equation is given to NumPy (`vector`) where that takes less time than anything else would need
to start; sums of products go to BLAS (`contraction`); the rest to compiled loop nests (`kernel`),
which are compiled only when NumPy has already spent, or is about to spend, longer on them than the
compiler would.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.interp import contraction, kernel, vector
from irlang.interp.schedule import Recurrence, hoist, schedule, separate

Array = np.ndarray[Any, Any]

SMALL = 200_000  # scalar steps (about a nanosecond each) that NumPy has done before a kernel loads
COMPILE = 200_000_000  # scalar steps by NumPy that are worth a compilation
_PRODUCT = 4096  # multiplications from which on BLAS is worth its preparation
_CALL = 5_000  # scalar steps that the calls for one node of one step cost NumPy

_spent: dict[str, int] = {}  # scalar steps that NumPy has done in place of each kernel


def evaluate(expansion: eq.Expansion, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Every tensor of the expansion by name: float64, int64 or bool by its kind.

    Integers are wrapped to their stored type. Raises InvalidInput: a check's own code as soon as
    what it reads is there, `run.input` (missing, of another shape, or beyond 64 bits with a sign),
    `run.memory`, `run.outside`, `run.none`, `run.empty`.
    """
    _fits(expansion)
    run = _Run(expansion, {name: _load(name, expansion, inputs) for name in expansion.inputs})
    with np.errstate(all="ignore"):
        run.check()
        for step in schedule(expansion.equations):
            if isinstance(step, Recurrence):
                run.recurrence(step)
            else:
                run.tensors[step.target] = run.equation(step)
            run.check()
    return {name: run.tensors[name] for name in expansion.tensors}


class _Run:
    """One evaluation; `tensors` and `infos` also hold the helpers that equations are split into."""

    def __init__(self, expansion: eq.Expansion, tensors: dict[str, Array]) -> None:
        self.tensors = tensors
        self.infos: dict[str, eq.TensorInfo] = dict(expansion.tensors)
        self._checks = list(expansion.checks)

    def check(self) -> None:
        """Runs the checks whose tensors are there; raises with all that do not hold."""
        ready = [c for c in self._checks if eq.reads(c.condition) <= self.tensors.keys()]
        if not ready:
            return
        self._checks = [check for check in self._checks if check not in ready]
        faults: list[Diagnostic] = []
        for check in ready:
            value = self.equation(
                eq.Equation("check", (), check.condition, eq.TensorInfo((), "bool"))
            )
            if not value.all():
                faults.append(Diagnostic(check.code, check.message))
        if faults:
            raise InvalidInput(*faults)

    # ---- equations

    def equation(self, equation: eq.Equation) -> Array:
        """The tensor of an equation that does not read itself."""
        size = math.prod(equation.info.shape)
        if not size:
            return np.empty(equation.info.shape, kernel.STORED[equation.info.kind])
        work = size * _work(equation.body)
        if work <= SMALL // 10:
            return self._vector(equation)
        products, rest = contraction.find(equation, self.infos)
        if products and all(p.work >= _PRODUCT and not p.narrow for p in products):
            for product in products:
                self._keep(product.target, product.info, product.run(self.tensors, self._factor))
            return self._remainder(rest)
        if work <= SMALL:
            return self._vector(equation)
        return self._nest(equation, work)

    def _keep(self, name: str, info: eq.TensorInfo, array: Array) -> None:
        self.tensors[name] = array
        self.infos[name] = info

    def _factor(self, equation: eq.Equation, tensors: Mapping[str, Array]) -> Array:
        del tensors  # those of this run
        return self.equation(equation)

    def _remainder(self, equation: eq.Equation) -> Array:
        """What is left of an equation whose sums of products are there."""
        body = equation.body
        added = isinstance(body, eq.Apply) and body.function == "+" and body.args[0] == eq.Const(0)
        read = body.args[1] if added and isinstance(body, eq.Apply) else body
        names = tuple(eq.Index(name) for name, _ in equation.binders)
        if isinstance(read, eq.Read) and read.index == names and equation.info.kind == "real":
            array = self.tensors.pop(read.tensor)
            return np.add(array, 0.0, out=array) if added else array
        return self.equation(equation)

    def _vector(self, equation: eq.Equation) -> Array:
        return vector.evaluate_equation(equation, self.tensors, self.infos)

    def _nest(self, equation: eq.Equation, work: int) -> Array:
        """By a compiled loop nest if there is one, or if it is worth compiling."""
        before, rest = separate(equation, self.infos)
        infos = {**self.infos, **{e.target: e.info for e in before}}
        prepared = kernel.Prepared(rest, infos)
        if not _worth(prepared, work):
            return self._vector(equation)
        for part in before:
            self._keep(part.target, part.info, self.equation(part))
        targets = prepared.targets()
        prepared.run({**self.tensors, **targets})
        return targets[equation.target]

    # ---- recurrences

    def recurrence(self, group: Recurrence) -> None:
        """Fills in the tensors of a group of equations that read one another."""
        steps = group.length
        nodes = sum(sum(1 for _ in eq.walk(e.body)) for e in group.equations)
        work = sum(math.prod(e.info.shape) * _work(e.body) for e in group.equations)
        before, rest = hoist(group, self.infos)
        infos = {**self.infos, **{e.target: e.info for e in (*before, *rest.equations)}}
        parts = _parts(rest, infos)
        if not _worth_all([part.kernel for part in parts], work + steps * nodes * _CALL):
            evaluator = vector.Vector(vector.Plain(), self.tensors, self.infos)
            evaluator.recurrence(group)
            return
        for equation in before:
            self._keep(equation.target, equation.info, self.equation(equation))
        for part in parts:
            self.tensors.update(part.kernel.targets())
            for product in part.products:
                self._keep(product.target, product.info, np.empty(product.shape))
        if not any(part.products for part in parts):
            for part in parts:
                part.kernel.run(self.tensors)
            return
        runs = [(part, part.kernel.bind(self.tensors)) for part in parts]
        for step in range(steps - 1, -1, -1) if group.descending else range(steps):
            for part, run in runs:
                if step < part.length:
                    for product in part.products:
                        out = self.tensors[product.target]
                        product.run(self.tensors, self._factor, step, out)
                run(step, step + 1)


class _Part:
    """Equations of a recurrence that one kernel takes through a step, and products before them.

    length: the number of steps that the first of them has.
    """

    def __init__(
        self,
        products: Sequence[contraction.Contraction],
        group: Recurrence,
        infos: Mapping[str, eq.TensorInfo],
    ) -> None:
        self.products = products
        self.length = group.equations[0].info.shape[group.axes[0]]
        known = {**infos, **{product.target: product.info for product in products}}
        self.kernel = kernel.Prepared(group, known)


def _parts(group: Recurrence, infos: Mapping[str, eq.TensorInfo]) -> list[_Part]:
    """A part begins at each equation that needs a product of matrices in every step."""
    found: list[tuple[Sequence[contraction.Contraction], list[eq.Equation], list[int]]] = []
    for equation, axis in zip(group.equations, group.axes, strict=True):
        name = equation.binders[axis][0]
        products, rest = contraction.find(equation, infos, name)
        if not all(p.work >= _PRODUCT and not p.narrow for p in products):
            products, rest = (), equation
        if products or not found:
            found.append((products, [], []))
        found[-1][1].append(rest)
        found[-1][2].append(axis)
    return [
        _Part(products, Recurrence(tuple(members), tuple(axes), group.descending), infos)
        for products, members, axes in found
    ]


# ---- what is worth what -----------------------------------------------------------------------


def _work(expr: eq.Expr) -> int:
    """Scalar steps for one element; bounds that are not known count with half their tensor."""
    if isinstance(expr, eq.Reduce):
        rounds = 1
        for _, bound in expr.binders:
            known = isinstance(bound, (eq.Const, eq.Size))
            rounds *= max(int(bound.value), 1) if known else 64  # type: ignore[union-attr]
        return rounds * (1 + sum(map(_work, eq.children(expr))))
    return 1 + sum(map(_work, eq.children(expr)))


def _worth(prepared: kernel.Prepared, work: int) -> bool:
    return _worth_all([prepared], work)


def _worth_all(prepared: Sequence[kernel.Prepared], work: int) -> bool:
    """Whether to use kernels: they are there, or as much work as compiling takes was done."""
    missing = [p.source.text for p in prepared if not p.ready]
    for text in missing:
        _spent[text] = _spent.get(text, 0) + work
    return all(_spent[text] >= COMPILE for text in missing)


# ---- what is given ----------------------------------------------------------------------------


def _load(name: str, expansion: eq.Expansion, inputs: Mapping[str, Any]) -> Array:
    info = expansion.tensors[name]
    if name not in inputs:
        raise fail("run.input", f"no value is given for `{name}`")
    array = np.asarray(inputs[name])
    if array.shape != info.shape:
        shapes = f"{list(info.shape)}, not {list(array.shape)}"
        raise fail("run.input", f"`{name}` must have the shape {shapes}")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise fail(
            "run.input", f"`{name}` holds {array.max()}; the largest whole number is 2**63 - 1"
        )
    return np.ascontiguousarray(array.astype(kernel.STORED[info.kind], copy=False)).reshape(
        info.shape
    )


def _memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _fits(expansion: eq.Expansion, memory: Callable[[], int] = _memory) -> None:
    size = sum(8 * math.prod(info.shape) for info in expansion.tensors.values())
    if size > memory() * 3 // 4:
        raise fail("run.memory", f"the tensors take {size / 2**30:.0f} GiB in double precision")
