"""The reference: the value of an operator in float64, by whatever evaluates it soonest.

An equation is given to NumPy (`vector`) where that takes less time than anything else would need
to start; sums of products go to BLAS (`contraction`); the rest to compiled loop nests (`kernel`),
which are compiled (or loaded, or numba imported) only when NumPy has already spent, or is about to
spend, longer on them than that would take.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.interp import contraction, kernel, kernel_cache, polyphase, vector, wide
from irlang.interp.draws import completed
from irlang.interp.notes import Notes
from irlang.interp.plain import Plain, load, require_arrays
from irlang.interp.schedule import Recurrence, hoist, schedule, separate
from irlang.scalar import SPECIAL

Array = np.ndarray[Any, Any]

SMALL = 200_000  # scalar steps (about a nanosecond each) that NumPy has done before a kernel loads
COMPILE = 250_000  # scalar steps by NumPy that are worth compiling a character of a kernel
LOAD = 2_000_000  # that are worth loading a kernel that was compiled before
IMPORT = 1_000_000_000  # that are worth importing numba, once in a process
LONGEST = 12_000  # characters of a kernel that are compiled in two or three seconds
_PRODUCT = 4096  # multiplications from which on BLAS is worth its preparation
_FASTER = 8  # multiplications of a product of matrices that NumPy does in one scalar step
_NUMBER = 100  # scalar steps of a function that is called for every number by itself
CALL = 5_000  # scalar steps that the calls for one node of one step cost NumPy

_spent: dict[str, int] = {}  # scalar steps that NumPy has done in place of each kernel, and of all


def evaluate(expansion: eq.Expansion, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Every tensor of the expansion by name: float64, int64 or bool by its kind, u64 as uint64.

    Integers are wrapped to their stored type. Raises InvalidInput: a check's own code as soon as
    what it reads is there, `run.input` (missing, of another shape, or beyond 64 bits with a sign),
    `run.memory`, `run.outside`, `run.none`, `run.empty`.
    """
    plan = _plan(expansion)
    _fits(plan.size)
    given = completed(expansion, inputs) if expansion.drawn else inputs
    tensors = {name: _load(name, expansion, given) for name in plan.given}
    run = _Run(expansion, plan, tensors)
    with np.errstate(all="ignore"):
        run.check()
        for step in plan.steps:
            if isinstance(step, Recurrence):
                run.recurrence(step)
            else:
                run.tensors[step.target] = run.equation(step)
            run.check()
    found = {name: run.tensors[name] for name in expansion.tensors}
    return {name: wide.narrowed(array) for name, array in found.items()} if plan.wide else found


class _Plan(Notes):
    """What evaluations of one expansion share: the order, and how equations are taken apart.

    given: the tensors that no equation makes. size: bytes of all. wide: whether some are of u64.
    """

    def __init__(self, expansion: eq.Expansion) -> None:
        super().__init__()
        require_arrays(expansion)
        infos = expansion.tensors.values()
        self.given = (*expansion.inputs, *(one.tensor for one in expansion.drawn))
        self.size = sum(8 * math.prod(info.shape) for info in infos)
        self.wide = any(info.dtype == "u64" for info in infos)
        self.equations = expansion.equations
        self.steps = schedule(expansion.equations)
        self.spreads = polyphase.spreads(expansion.equations, expansion.tensors)

    def reads(self, item: object, expr: eq.Expr) -> frozenset[str]:
        """The tensors that an expression of an item reads."""
        return self.note("reads", item, lambda: eq.reads(expr))


def _plan(expansion: eq.Expansion) -> _Plan:
    found = expansion.notes.get(__name__)
    if not isinstance(found, _Plan) or found.equations is not expansion.equations:
        found = expansion.notes[__name__] = _Plan(expansion)
    return found


class _Run:
    """One evaluation; `tensors` and `infos` also hold the helpers that equations are split into."""

    def __init__(self, expansion: eq.Expansion, plan: _Plan, tensors: dict[str, Array]) -> None:
        self.tensors = tensors
        self._plan = plan
        self.infos: dict[str, eq.TensorInfo] = dict(expansion.tensors)
        self._checks = list(expansion.checks)
        self._vectors = vector.Vector(Plain(), self.tensors, self.infos, plan)

    def check(self) -> None:
        """Runs the checks whose tensors are there; raises with all that do not hold."""
        if not self._checks:
            return
        ready = [c for c in self._checks if self._plan.reads(c, c.condition) <= self.tensors.keys()]
        if not ready:
            return
        self._checks = [check for check in self._checks if check not in ready]
        faults: list[Diagnostic] = []
        for check in ready:
            value = self.equation(self._plan.note("check", check, partial(_condition, check)))
            if not value.all():
                faults.append(Diagnostic(check.code, check.message))
        if faults:
            raise InvalidInput(*faults)

    # ---- equations

    def equation(self, equation: eq.Equation, plan: _Plan | None = None) -> Array:
        """The tensor of an equation that does not read itself."""
        plan = plan or self._plan
        size = math.prod(equation.info.shape)
        if not size:
            return np.empty(equation.info.shape, kernel.STORED[equation.info.kind])
        work = size * plan.note("work", equation, lambda: work_of(equation.body))
        if work <= SMALL // 10 or plan.note("wide", equation, lambda: self._wide(equation, plan)):
            return self._vector(equation, plan)
        if plan is self._plan:
            phases = plan.note("phases", equation, lambda: self._phases(equation))
            if phases is not None and phases.applies(self.tensors):
                array = np.zeros(equation.info.shape)
                for place, part in phases.parts:
                    array[place] = self.equation(part)
                return array
        products, rest = plan.note(
            "products", equation, lambda: contraction.find(equation, self.infos)
        )
        if products and all(_pays(p) and p.applies(self.tensors) for p in products):
            for product in products:
                self._keep(product.target, product.info, product.run(self.tensors, self._lasting))
            return self._remainder(rest, plan)
        if work <= SMALL or not plan.note(
            "compiles", equation, lambda: kernel.compiles(equation.body)
        ):
            return self._vector(equation, plan)
        return self._nest(equation, work, plan)

    def _phases(self, equation: eq.Equation) -> polyphase.Phases | None:
        return polyphase.phases(equation, self.infos, self._plan.spreads)

    def _wide(self, equation: eq.Equation, plan: _Plan) -> bool:
        """Whether integers take part that neither kernels nor products hold."""
        names = plan.reads(equation, equation.body)
        read = (self.infos[name].dtype for name in names if name in self.infos)
        return equation.info.dtype == "u64" or "u64" in read

    def _keep(self, name: str, info: eq.TensorInfo, array: Array) -> None:
        self.tensors[name] = array
        self.infos[name] = info

    def _lasting(self, equation: eq.Equation, tensors: Mapping[str, Array]) -> Array:
        """A factor whose equation is the same at every run."""
        del tensors  # those of this run
        return self.equation(equation)

    def _passing(self, equation: eq.Equation, tensors: Mapping[str, Array]) -> Array:
        """A factor whose equation was made for this step."""
        del tensors
        return self.equation(equation, _Plan(eq.Expansion((), (), (), {})))

    def _remainder(self, equation: eq.Equation, plan: _Plan) -> Array:
        """What is left of an equation whose sums of products are there.

        Where that is one product and a term to add (a bias), it is added in place.
        """
        body = equation.body
        names = tuple(eq.Index(name) for name, _ in equation.binders)
        parts = body.args if isinstance(body, eq.Apply) and body.function == "+" else (body,)
        product = next(
            (p for p in parts if isinstance(p, eq.Read) and p.index == names and "*" in p.tensor),
            None,
        )
        others = [part for part in parts if part is not product]
        if product is None or any(product.tensor in eq.reads(part) for part in others):
            return self.equation(equation, plan)
        if equation.info.kind != "real":
            return self.equation(equation, plan)
        array = self.tensors.pop(product.tensor)
        for part in others:
            term = plan.note("term", part, partial(_term, part, equation))
            np.add(array, self.equation(term, plan), out=array)
        return array

    def _vector(self, equation: eq.Equation, plan: _Plan) -> Array:
        own = plan is self._plan  # nothing is remembered of what is made for one step
        walk = self._vectors if own else vector.Vector(Plain(), self.tensors, self.infos)
        return walk.equation(equation)  # type: ignore[no-any-return]

    def _nest(self, equation: eq.Equation, work: int, plan: _Plan) -> Array:
        """By a compiled loop nest if there is one, or if it is worth compiling."""
        before, prepared = plan.note("nest", equation, lambda: _nested(equation, self.infos))
        if not worth([prepared], work):
            return self._vector(equation, plan)
        for part in before:
            self._keep(part.target, part.info, self.equation(part, plan))
        targets = prepared.targets()
        prepared.run({**self.tensors, **targets})
        return targets[equation.target]

    # ---- recurrences

    def recurrence(self, group: Recurrence) -> None:
        """Fills in the tensors of a group of equations that read one another."""
        steps = group.length
        if not all(kernel.compiles(equation.body) for equation in group.equations):
            self._vectors.recurrence(group)
            return
        before, parts, work = self._plan.note("parts", group, lambda: parted(group, self.infos))
        wanted = not any(self._wide(equation, self._plan) for equation in group.equations)
        if not (wanted and worth([part.kernel for part in parts], work)):
            self._vectors.recurrence(group)
            return
        for equation in before:
            self._keep(equation.target, equation.info, self.equation(equation))
        for part in parts:
            self.tensors.update(part.kernel.targets())
            for made in part.products:
                self._keep(made.target, made.info, np.empty(made.shape))
        if not any(part.products for part in parts):
            for part in parts:
                part.kernel.run(self.tensors)
            return
        runs = []
        for part in parts:
            products = [
                p.stepper(self.tensors, self._passing, self.tensors[p.target], steps)
                for p in part.products
            ]
            runs.append((part.length, products, part.kernel.bind(self.tensors)))
        for step in range(steps - 1, -1, -1) if group.descending else range(steps):
            for length, products, run in runs:
                if step < length:
                    for multiply in products:
                        multiply(step)
                run(step, step + 1)


class Part:
    """Equations of a recurrence that one kernel takes through a step, and products before them.

    group: the equations, without the products. length: the steps that the first of them has.
    """

    def __init__(
        self,
        products: Sequence[contraction.Contraction],
        group: Recurrence,
        infos: Mapping[str, eq.TensorInfo],
    ) -> None:
        self.products = products
        self.group = group
        self.length = group.equations[0].info.shape[group.axes[0]]
        known = {**infos, **{product.target: product.info for product in products}}
        self.kernel = kernel.Prepared(group, known)
        self.work = sum(map(steps_of, group.equations))
        self.work += sum(p.work for p in products) * self.length // _FASTER


def parted(
    group: Recurrence, infos: Mapping[str, eq.TensorInfo]
) -> tuple[tuple[eq.Equation, ...], list[Part], int]:
    """What is evaluated before the loop, the parts of a step, and the work for NumPy alone."""
    nodes = sum(calls_of(equation.body) for equation in group.equations)
    before, rest = hoist(group, infos)
    known = {**infos, **{e.target: e.info for e in (*before, *rest.equations)}}
    parts = _parts(rest, known)
    work = sum(part.work for part in parts)
    return before, parts, work + group.length * nodes * CALL


def _nested(
    equation: eq.Equation, infos: Mapping[str, eq.TensorInfo]
) -> tuple[tuple[eq.Equation, ...], kernel.Prepared]:
    before, rest = separate(equation, infos)
    known = {**infos, **{e.target: e.info for e in before}}
    return before, kernel.Prepared(rest, known)


def _condition(check: eq.Check) -> eq.Equation:
    return eq.Equation("check", (), check.condition, eq.TensorInfo((), "bool"))


def _term(expr: eq.Expr, equation: eq.Equation) -> eq.Equation:
    """A summand of an equation, with extent 1 along the indices that it does not have."""
    used = eq.indices(expr)
    pairs = list(zip(equation.binders, equation.info.shape, strict=True))
    shape = tuple(extent if name in used else 1 for (name, _), extent in pairs)
    binders = tuple(pair if pair[0] in used else (pair[0], eq.Const(1)) for pair, _ in pairs)
    return eq.Equation(f"{equation.target}+", binders, expr, eq.TensorInfo(shape, "f64"))


def _parts(group: Recurrence, infos: Mapping[str, eq.TensorInfo]) -> list[Part]:
    """A part begins at each equation that needs a product of matrices in every step."""
    found: list[tuple[Sequence[contraction.Contraction], list[eq.Equation], list[int]]] = []
    for equation, axis in zip(group.equations, group.axes, strict=True):
        name = equation.binders[axis][0]
        products, rest = contraction.find(equation, infos, name)
        if not all(_pays(product) or product.bare for product in products):
            products, rest = (), equation
        if products or not found:
            found.append((products, [], []))
        found[-1][1].append(rest)
        found[-1][2].append(axis)
    return [
        Part(products, Recurrence(tuple(members), tuple(axes), group.descending), infos)
        for products, members, axes in found
    ]


# ---- what is worth what -----------------------------------------------------------------------


def steps_of(equation: eq.Equation) -> int:
    """Scalar steps of an equation."""
    return math.prod(equation.info.shape) * work_of(equation.body)


def work_of(expr: eq.Expr) -> int:
    """Scalar steps for one element; bounds that are not known count with half their tensor."""
    if isinstance(expr, eq.Reduce):
        rounds = 1
        for _, bound in expr.binders:
            known = isinstance(bound, (eq.Const, eq.Size))
            rounds *= max(int(bound.value), 1) if known else 64  # type: ignore[union-attr]
        return rounds * (1 + sum(map(work_of, eq.children(expr))))
    slow = isinstance(expr, eq.Apply) and expr.function in SPECIAL
    return (_NUMBER if slow else 1) + sum(map(work_of, eq.children(expr)))


def calls_of(expr: eq.Expr) -> int:
    """Nodes of an expression for which NumPy is called."""
    called = (eq.Apply, eq.Read, eq.Reduce)
    return sum(isinstance(node, called) for node in eq.walk(expr))


def _pays(product: contraction.Contraction) -> bool:
    return product.work >= _PRODUCT and (not product.narrow or (product.bare and product.plain))


def worth(prepared: Sequence[kernel.Prepared], work: int) -> bool:
    """Whether to use kernels: as much work was done without them as getting them takes."""
    missing = [p for p in prepared if not kernel_cache.loaded(p.source.text)]
    if not missing:
        return True
    if any(len(p.source.text) > LONGEST and not p.ready for p in missing):
        return False
    for key in ("numba", *(p.source.text for p in missing)):
        _spent[key] = _spent.get(key, 0) + work
    if "numba" not in sys.modules and _spent["numba"] < IMPORT:
        return False
    return all(_spent[p.source.text] >= _price(p) for p in missing)


def _price(prepared: kernel.Prepared) -> int:
    """Scalar steps that getting a kernel takes."""
    return LOAD if prepared.ready else COMPILE * len(prepared.source.text)


# ---- what is given ----------------------------------------------------------------------------


def _load(name: str, expansion: eq.Expansion, inputs: Mapping[str, Any]) -> Array:
    info = expansion.tensors[name]
    if name not in inputs:
        raise fail("run.input", f"no value is given for `{name}`")
    array = np.asarray(inputs[name])
    if array.shape != info.shape:
        shapes = f"{list(info.shape)}, not {list(array.shape)}"
        raise fail("run.input", f"`{name}` must have the shape {shapes}")
    if info.dtype == "u64":
        return load(info, array).reshape(info.shape)
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise fail(
            "run.input", f"`{name}` holds {array.max()}; the largest whole number is 2**63 - 1"
        )
    stored = kernel.STORED[info.kind]
    if array.dtype == stored and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array.astype(stored, copy=False)).reshape(info.shape)


@cache
def _memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _fits(size: int, memory: Callable[[], int] = _memory) -> None:
    if size > memory() * 3 // 4:
        raise fail("run.memory", f"the tensors take {size / 2**30:.0f} GiB in double precision")
