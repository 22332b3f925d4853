"""A definition's own equations, lowered: what a target runs where it has no operator of its own.

Takes the expansion of a call and the values of its inputs; gives the values of its outputs, spelt
with the primitives of `irlang.lower.value`. What depends on indices and sizes alone is computed
here and now; the rest becomes broadcast arithmetic over named axes, gathers, reductions, sums of
products as einsum, and recurrences written out step by step.

Precision: reals of an equation are computed in the widest real type among what it reads and gives,
integers in 64 bits, and both are converted when they are stored, as the language has it.
Non-goals: speed, and ranges of reduction that depend on data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from irlang import equations as eq
from irlang.certain import certain
from irlang.dtypes import DTYPES
from irlang.interp.schedule import Recurrence, hoist, schedule
from irlang.lower.expressions import Expressions
from irlang.lower.terms import Axes, Known, Term
from irlang.lower.value import Array, Builder, Unsupported, Value

# Of the recurrences of a call, in all of their equations: each is several lines. ONNX Runtime takes
# 15 s to read twice as many.
_MOST_STEPS = 1024


def lower_expansion(
    builder: Builder,
    expansion: eq.Expansion,
    feeds: Mapping[str, Value],
    hint: str,
    results: Mapping[str, str],
    sloped: bool = False,
) -> dict[str, Value]:
    """The values of the outputs by name.

    hint: what the names of intermediate results begin with; results: names for the outputs.
    sloped: whether the target is asked for gradients.
    """
    expansion = certain(expansion, sloped)
    walker = _Walker(builder, dict(expansion.tensors), dict(feeds), hint, results)
    walker.sloped = sloped
    needed = _needed(expansion)
    reads = frozenset().union(*(eq.reads(equation.body) for equation in needed))
    for one in expansion.drawn:
        if one.tensor in reads:
            info = expansion.tensors[one.tensor]
            params = tuple(map(float, one.params))
            value = builder.draw(one.law, params, info.shape, info.dtype)
            walker.values[one.tensor] = builder.let(value, f"{hint}_{one.tensor}")
    for step in schedule(needed):
        if isinstance(step, Recurrence):
            walker.recurrence(step)
        else:
            walker.equation(step)
    return {name: walker.source(name) for name in expansion.outputs}


def _needed(expansion: eq.Expansion) -> list[eq.Equation]:
    """The equations that outputs depend on, in their order."""
    by_target = {equation.target: equation for equation in expansion.equations}
    wanted = set(expansion.outputs)
    pending = list(wanted)
    while pending:
        equation = by_target.get(pending.pop())
        more = (eq.reads(equation.body) - wanted) if equation is not None else ()
        wanted.update(more)
        pending += more
    return [equation for equation in expansion.equations if equation.target in wanted]


class _Walker(Expressions):
    """One expansion on its way: equation by equation.

    steps: of recurrences, that have been written out so far.
    """

    steps = 0

    def equation(self, equation: eq.Equation) -> None:
        """Computes a tensor."""
        term = self._body(equation, {})
        axes = tuple(name for name, _ in equation.binders)
        if isinstance(term, Known):
            self.known[equation.target] = self._stored_known(term, axes, equation.info)
        else:
            self.values[equation.target] = self._stored(term, axes, equation.info, equation.target)

    def recurrence(self, recurrence: Recurrence) -> None:
        """Computes tensors that need their own earlier elements, step by step."""
        self.steps += recurrence.length * len(recurrence.equations)
        if self.steps > _MOST_STEPS:
            raise Unsupported(f"{recurrence.length} steps would have to be written out")
        before, rest = hoist(recurrence, self.tensors)
        for equation in before:
            info = equation.info
            if info.kind == "real":
                info = replace(
                    info, dtype=self._real_dtype(replace(equation, info=info), own=False)
                )
            self.tensors[equation.target] = info
            self.equation(replace(equation, info=info))
        for equation, axis in zip(rest.equations, rest.axes, strict=True):
            self.partial[equation.target] = (axis, {})
        steps = range(rest.length)
        for step in reversed(steps) if rest.descending else steps:
            for equation, axis in zip(rest.equations, rest.axes, strict=True):
                if step < equation.info.shape[axis]:
                    self._step(equation, axis, step)

    def _step(self, equation: eq.Equation, axis: int, step: int) -> None:
        shape = equation.info.shape
        info = replace(equation.info, shape=(*shape[:axis], *shape[axis + 1 :]))
        names = [name for name, _ in equation.binders]
        term = self._body(equation, {names.pop(axis): step})
        value = self._stored(term, tuple(names), info, f"{equation.target}_{step}")
        self.partial[equation.target][1][step] = value

    def _body(self, equation: eq.Equation, fixed: dict[str, int]) -> Term:
        self.real = self._real_dtype(equation)
        pairs = zip(equation.binders, equation.info.shape, strict=True)
        self.extents = {name: extent for (name, _), extent in pairs if name not in fixed}
        self.order = list(self.extents)
        self.fixed = fixed
        if equation.info.too_large:
            raise Unsupported(f"{equation.target} would be {equation.info}")
        if 0 in self.extents.values():
            zero = np.zeros(tuple(self.extents.values()), dtype=np.int64)
            return Known(zero, tuple(self.order))
        return self.term(equation.body)

    def _real_dtype(self, equation: eq.Equation, *, own: bool = True) -> str:
        """In what reals are computed: the widest of those that take part."""
        found = {self.tensors[name].dtype for name in eq.reads(equation.body)}
        if own:
            found.add(equation.info.dtype)
        reals = {name for name in found if DTYPES[name].kind == "real"}
        if reals == {"f16", "bf16"}:
            return "f32"
        return max(reals, key=lambda name: DTYPES[name].bits, default="f64")

    @np.errstate(all="ignore")  # what a format does not hold is infinite in it
    def _stored_known(self, term: Known, axes: Axes, info: eq.TensorInfo) -> Array:
        array = term.array
        if info.kind == "bool":
            array = array != 0
        elif info.kind == "int" and array.dtype.kind == "f":
            array = np.trunc(array).astype(np.int64)
        elif info.kind == "real":
            array = array.astype(DTYPES[info.dtype].numpy).astype(np.float64)
        if info.kind == "int":
            array = array.astype(DTYPES[info.dtype].numpy)
            array = array.astype(np.int64) if info.dtype != "u64" else array
        shape = tuple(
            extent if name in term.axes else 1
            for name, extent in zip(axes, info.shape, strict=True)
        )
        return np.broadcast_to(array.reshape(shape), info.shape)

    def _stored(self, term: Term, axes: Axes, info: eq.TensorInfo, hint: str) -> Value:
        if isinstance(term, Known):
            array = self._stored_known(term, axes, info)
            return self._named(self._constant(array, info.dtype), hint)
        value = self.builder.cast(term.value, info.dtype)
        if value.shape != info.shape:
            shape = tuple(
                extent if name in term.axes else 1
                for name, extent in zip(axes, info.shape, strict=True)
            )
            value = self.reshaped(value, shape)
            if shape != info.shape:
                value = self.builder.expand(value, info.shape)
        return self._named(value, hint)

    def _named(self, value: Value, target: str) -> Value:
        if target in self.results:
            return self.builder.result(value, self.results[target])
        return self.builder.let(value, f"{self.hint}_{target}")

    def _constant(self, array: Array, dtype: str) -> Value:
        """A constant; one that repeats a single number is stored once."""
        if array.size > 1 and array.ndim and bool((array == array.flat[0]).all()):
            return self.builder.expand(
                self.builder.constant(np.asarray(array.flat[0]), dtype), array.shape
            )
        return self.builder.constant(np.asarray(array, order="C"), dtype)

    def source(self, name: str) -> Value:
        """The whole tensor of that name."""
        if name in self.values:
            return self.values[name]
        info = self.tensors[name]
        if name in self.known:
            value = self._constant(self.known[name], info.dtype)
            self.values[name] = self._named(value, name)
            return self.values[name]
        axis, steps = self.partial[name]
        shape = (*info.shape[:axis], *info.shape[axis + 1 :])
        missing = [step for step in range(info.shape[axis]) if step not in steps]
        zero = self._constant(np.zeros(shape), info.dtype) if missing else None
        parts = [steps.get(step, zero) for step in range(info.shape[axis])]
        if not parts:
            return self._constant(np.zeros(info.shape), info.dtype)
        value = self.builder.stack([part for part in parts if part is not None], axis)
        value = self._named(value, name)
        if not missing:
            self.values[name] = value
        return value
