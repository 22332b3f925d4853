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

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DTYPES
from irlang.interp.schedule import Recurrence, hoist, schedule
from irlang.kinds import join
from irlang.kinds import kind as kind_of
from irlang.known import EMPTY
from irlang.lower.gather import gather
from irlang.lower.terms import Axes, Known, Term, Traced, number
from irlang.lower.value import Array, Builder, Unsupported, Value
from irlang.scalar import SCALARS

_KNOWN_LIMIT = 1 << 24  # elements of what is computed at lowering time
_WHOLE = frozenset(("floor", "ceil", "round", "trunc"))
_NUMPY_REDUCE: dict[str, Any] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "all": np.all, "any": np.any,
    "count": np.sum,
}  # fmt: skip


def lower_expansion(
    builder: Builder,
    expansion: eq.Expansion,
    feeds: Mapping[str, Value],
    hint: str,
    results: Mapping[str, str],
) -> dict[str, Value]:
    """The values of the outputs by name.

    hint: what the names of intermediate results begin with; results: names for the outputs.
    """
    walker = _Walker(builder, dict(expansion.tensors), dict(feeds), hint, results)
    for step in schedule(_needed(expansion)):
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


class _Walker:
    """One expansion on its way.

    order: the bound indices in scope, outermost first, which is the order of axes everywhere;
    fixed: those that have a single value now (the step of a recurrence).
    """

    def __init__(
        self,
        builder: Builder,
        tensors: dict[str, eq.TensorInfo],
        values: dict[str, Value],
        hint: str,
        results: Mapping[str, str],
    ) -> None:
        self.builder = builder
        self.tensors = tensors
        self.values = values
        self.known: dict[str, Array] = {}
        self.partial: dict[str, tuple[int, dict[int, Value]]] = {}
        self.hint = hint
        self.results = results
        self.guarded = False
        self.real = "f64"
        self.order: list[str] = []
        self.extents: dict[str, int] = {}
        self.fixed: dict[str, int] = {}

    # ---- equations

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

    # ---- terms and axes

    def union(self, terms: Sequence[Term]) -> Axes:
        """The axes of all terms, in the order of the context."""
        found = {axis for term in terms for axis in term.axes}
        return tuple(axis for axis in self.order if axis in found)

    def array(self, term: Known, axes: Axes) -> Array:
        """A known term over `axes`, with length 1 where it does not depend on one."""
        shape = tuple(self.extents[axis] if axis in term.axes else 1 for axis in axes)
        return term.array.reshape(shape)

    def over(self, term: Term, axes: Axes, dtype: str) -> Value:
        """A term as a value that broadcasts over `axes`."""
        if isinstance(term, Known):
            lead = next((i for i, axis in enumerate(axes) if axis in term.axes), len(axes))
            return self.builder.constant(self.array(term, axes[lead:]), dtype)
        value = self.builder.cast(term.value, dtype)
        lead = next((i for i, axis in enumerate(axes) if axis in term.axes), len(axes))
        shape = tuple(self.extents[axis] if axis in term.axes else 1 for axis in axes[lead:])
        return self.reshaped(value, shape)

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`value` in another shape of as many elements."""
        return value if value.shape == shape else self.builder.reshape(value, shape)

    def dtype(self, kind: str | None) -> str:
        """In what a kind is computed here."""
        return {"real": self.real, "int": "i64", "bool": "bool"}[kind or "real"]

    def _limited(self, axes: Axes) -> Axes:
        size = math.prod(self.extents[axis] for axis in axes)
        if size > _KNOWN_LIMIT:
            raise Unsupported(f"a table of {size} elements would have to stand in the program")
        return axes

    # ---- expressions

    def term(self, expr: eq.Expr) -> Term:
        """The value of an expression."""
        match expr:
            case eq.Const() | eq.Size():
                return number(expr.value)
            case eq.Index():
                if expr.name in self.fixed:
                    return number(self.fixed[expr.name])
                extent = np.arange(self.extents[expr.name], dtype=np.int64)
                return Known(extent, (expr.name,))
            case eq.Read():
                return self._read(expr)
            case eq.Inside():
                index = [self.term(part) for part in expr.index]
                return self.inside(index, self.tensors[expr.tensor].shape)
            case eq.Apply():
                return self._apply(expr)
            case eq.Reduce():
                return self._reduce(expr)

    def _apply(self, expr: eq.Apply) -> Term:
        function = expr.function
        args = [self.term(expr.args[0])]
        first = args[0]
        if function in ("select", "and", "or") and isinstance(first, Known):
            # An arm that is never taken need not have a value.
            if function == "select" and (first.array.all() or not first.array.any()):
                taken = self.term(expr.args[1 if first.array.all() else 2])
                # The other arm still says whether the result is real.
                return self._as_kind(taken, kind_of(expr, self.tensors))
            if (function == "and" and not first.array.any()) or (
                function == "or" and first.array.all()
            ):
                return number(function == "or")
        guarded = self.guarded
        # An arm that is not taken, and a second operand that does not matter, may read outside.
        self.guarded = guarded or function in ("select", "and", "or")
        args += [self.term(arg) for arg in expr.args[1:]]
        self.guarded = guarded
        return self.applied(function, args)

    def _as_kind(self, term: Term, kind: str) -> Term:
        if term.kind == kind:
            return term
        if isinstance(term, Known):
            return Known(term.array.astype({"real": np.float64, "int": np.int64}[kind]), term.axes)
        return Traced(self.builder.cast(term.value, self.dtype(kind)), term.axes)

    def applied(self, function: str, args: Sequence[Term]) -> Term:
        """A scalar function of terms."""
        row = SCALARS[function]
        axes = self.union(args)
        operands = args[1:] if function == "select" else args
        kind = "real" if row.kind == "real" else join(*(arg.kind for arg in operands))
        if function in ("and", "or", "not"):
            kind = "bool"
        elif function in ("real", "int"):
            kind = operands[0].kind
        elif kind == "bool" and function != "select" and function not in ("==", "!="):
            kind = "int"
        if all(isinstance(arg, Known) for arg in args):
            known = [arg for arg in args if isinstance(arg, Known)]
            return self._folded(function, known, self._limited(axes), kind)
        if function in ("real", "int"):
            value = self.over(args[0], axes, self.dtype(function))
            return Traced(value, axes)
        if function in _WHOLE and kind == "int":
            return args[0]
        simple = _simplified(function, args, kind)
        if simple is not None:
            return self._as_kind(simple, kind or "real")
        dtype = self.dtype(kind)
        values = [self.over(arg, axes, dtype) for arg in operands]
        if function == "select":
            value = self.builder.where(self.over(args[0], axes, "bool"), *values)
        elif kind == "int" and function in ("//", "%", "ceildiv"):
            value = self._integer_quotient(function, values, args[1])
        elif function == "ceildiv":
            quotient = self.builder.apply("/", values)
            value = self.builder.apply("ceil", [quotient])
        else:
            value = self.builder.apply(function, values)
        return Traced(value, axes)

    def _integer_quotient(self, function: str, values: list[Value], divisor: Term) -> Value:
        """Division of integers, which is 0 by 0; processors trap, and targets differ."""
        a, b = values
        build = self.builder
        if function == "ceildiv":
            negative = build.apply("neg", [a])
            return build.apply("neg", [self._integer_quotient("//", [negative, b], divisor)])
        if isinstance(divisor, Known) and bool((divisor.array != 0).all()):
            return build.apply(function, values)
        zero = build.constant(np.asarray(0), "i64")
        one = build.constant(np.asarray(1), "i64")
        empty = build.apply("==", [b, zero])
        quotient = build.apply(function, [a, build.where(empty, one, b)])
        return build.where(empty, zero, quotient)

    def _folded(self, function: str, args: list[Known], axes: Axes, kind: str | None) -> Known:
        kinds = {"real": np.float64, "int": np.int64, "bool": np.bool_}
        arrays = [self.array(arg, axes) for arg in args]
        start = 1 if function == "select" else 0
        arrays[start:] = [array.astype(kinds[kind or "real"]) for array in arrays[start:]]
        with np.errstate(all="ignore"):
            result = np.asarray(SCALARS[function].numpy(*arrays))
        if result.dtype.kind == "f" and function == "int":
            result = result.astype(np.int64)
        shape = tuple(self.extents[axis] for axis in axes)
        return Known(np.broadcast_to(result, shape), axes)

    # ---- elements

    def inside(self, index: Sequence[Term], shape: Sequence[int]) -> Term:
        """Whether every index lies within its axis."""
        result: Term = number(True)
        for part, extent in zip(index, shape, strict=True):
            if isinstance(part, Known):
                within: Term = Known((part.array >= 0) & (part.array < extent), part.axes)
                if bool(within.array.all()):
                    continue
            else:
                low = self.applied("<=", [number(0), part])
                high = self.applied("<", [part, number(extent)])
                within = self.applied("and", [low, high])
            result = self.applied("and", [result, within])
        return result

    def _read(self, expr: eq.Read) -> Term:
        index = [self._whole(self.term(part)) for part in expr.index]
        shape = self.tensors[expr.tensor].shape
        open_ended = expr.default is not None or self.guarded
        judged = [part if open_ended or isinstance(part, Known) else number(0) for part in index]
        mask = number(False) if 0 in shape else self.inside(judged, shape)
        default = None
        if expr.default is not None and not (isinstance(mask, Known) and mask.array.all()):
            default = self.term(expr.default)
        if isinstance(mask, Known) and not mask.array.any():
            # Nothing of it is read; without a default, what is read is thrown away by a `select`.
            return number(0) if default is None else self._as_kind(default, self._join(expr))
        pairs = zip(index, judged, shape, strict=True)
        index = [self._clipped(p, extent) if p is j else p for p, j, extent in pairs]
        term = self._element(expr.tensor, index)
        if default is not None:
            return self.applied("select", [mask, term, default])
        return term

    def _join(self, expr: eq.Read) -> str:
        own = self.tensors[expr.tensor].kind
        return (
            own if expr.default is None else join(own, kind_of(expr.default, self.tensors)) or own
        )

    def _whole(self, term: Term) -> Term:
        if term.kind == "int" and (isinstance(term, Known) or term.value.dtype == "i64"):
            return term
        return self.applied("int", [term])

    def _clipped(self, term: Term, extent: int) -> Term:
        if isinstance(term, Known):
            return Known(np.clip(term.array, 0, extent - 1), term.axes)
        low = self.applied("max", [term, number(0)])
        return self.applied("min", [low, number(extent - 1)])

    def _element(self, name: str, index: list[Term]) -> Term:
        if name in self.known and all(isinstance(part, Known) for part in index):
            parts = [part for part in index if isinstance(part, Known)]
            axes = self._limited(self.union(parts))
            found = self.known[name][tuple(self.array(part, axes) for part in parts)]
            return Known(np.asarray(found), axes)
        if name in self.partial:
            axis, steps = self.partial[name]
            position = index[axis]
            if isinstance(position, Known) and not position.axes:
                step = steps.get(int(position.array))
                if step is not None:
                    return gather(self, step, index[:axis] + index[axis + 1 :])
        return gather(self, self.source(name), index)

    # ---- reductions

    def _reduce(self, expr: eq.Reduce) -> Term:
        outer = list(self.order)
        mask: Term = number(True)
        names = tuple(name for name, _ in expr.binders)
        for name, bound in expr.binders:
            limit = self.term(bound)
            if not isinstance(limit, Known):
                raise Unsupported("the range of a reduction depends on data")
            self.extents[name] = max(int(limit.array.max()), 0)
            self.order.append(name)
            if limit.axes and bool((limit.array != self.extents[name]).any()):
                mask = self.applied("and", [mask, self.applied("<", [self.term(eq.Index(name)), limit])])  # fmt: skip
        if any(self.extents[name] == 0 for name in names):
            result: Term = number(_empty(expr.kind, kind_of(expr, self.tensors)))
        else:
            if expr.where is not None:
                mask = self.applied("and", [mask, self.term(expr.where)])
            result = self._reduced(expr, names, mask)
        self.order = outer
        return result

    def _reduced(self, expr: eq.Reduce, names: Axes, mask: Term) -> Term:
        always = isinstance(mask, Known) and bool(mask.array.all())
        if expr.kind == "count":
            body = mask
        else:
            assert expr.body is not None
            if expr.kind == "sum" and always:
                product = self._contraction(expr.body, names)
                if product is not None:
                    return product
            guarded, self.guarded = self.guarded, self.guarded or not always
            body = self.term(expr.body)
            self.guarded = guarded
        if expr.kind == "the":
            return self._the(body, mask, names)
        kind = expr.kind
        wanted = body.kind
        if kind in ("all", "any"):
            wanted = "bool"
        elif wanted == "bool":
            wanted = "int"
        if not always and kind != "count":
            base = {"argmax": "max", "argmin": "min"}.get(kind, kind)
            neutral = number(_empty(base, wanted))
            body = self.applied("select", [mask, self._as_wanted(body, wanted), neutral])
        axes = self.union([body, Known(np.zeros(()), names)])
        kept = tuple(axis for axis in axes if axis not in names)
        positions = tuple(i for i, axis in enumerate(axes) if axis in names)
        full = tuple(self.extents[axis] for axis in axes)
        if isinstance(body, Known):
            self._limited(axes)
            array = np.broadcast_to(self.array(body, axes), full)
            if kind in ("argmax", "argmin"):
                return Known(getattr(np, kind)(array, axis=positions[0]), kept)
            array = array.astype({"int": np.int64, "real": np.float64, "bool": np.bool_}[wanted])
            return Known(np.asarray(_NUMPY_REDUCE[kind](array, axis=positions)), kept)
        value = self.over(body, axes, self.dtype(wanted))
        if value.shape != full:
            value = self.builder.expand(value, full)
        if kind in ("argmax", "argmin"):
            return Traced(self.builder.position(kind, value, positions[0]), kept)
        kind = "sum" if kind == "count" else kind
        return Traced(self.builder.reduce(kind, value, positions), kept)

    def _as_wanted(self, term: Term, kind: str) -> Term:
        if kind == "bool" and term.kind != "bool":
            return self.applied("!=", [term, number(0)])
        return self._as_kind(term, kind)

    def _contraction(self, body: eq.Expr, names: Axes) -> Term | None:
        """A sum of products as einsum; None where it is none."""
        factors = _factors(body)
        if len(factors) < 2:
            return None
        terms = [self.term(factor) for factor in factors]
        traced = [term for term in terms if isinstance(term, Traced)]
        covered = {axis for term in traced for axis in term.axes}
        if len(traced) < 2 or not covered >= set(names):
            return None
        if any(term.kind != "real" for term in terms if isinstance(term, Traced) or term.axes):
            return None
        if any(not term.axes for term in terms):
            return None
        axes = self.union(terms)
        letters = {axis: _LETTERS[i] for i, axis in enumerate(axes)}
        kept = tuple(axis for axis in axes if axis not in names)
        spec = ",".join("".join(letters[axis] for axis in term.axes) for term in terms)
        spec += "->" + "".join(letters[axis] for axis in kept)
        values = [self.over(term, term.axes, self.real) for term in terms]
        return Traced(self.builder.einsum(spec, values), kept)

    def _the(self, body: Term, mask: Term, names: Axes) -> Term:
        """The body at the first place where the mask holds."""
        axes = self.union([body, mask, Known(np.zeros(()), names)])
        kept = tuple(axis for axis in axes if axis not in names)
        full = tuple(self.extents[axis] for axis in (*kept, *names))
        count = math.prod(self.extents[name] for name in names)
        ordered = tuple(axes.index(axis) for axis in (*kept, *names))
        flat = (*full[: len(kept)], count)
        place = "".join(names)
        self.extents[place] = count
        self.order.append(place)

        def lined(term: Term, dtype: str) -> Term:
            if isinstance(term, Known):
                array = np.broadcast_to(self.array(term, self._limited(axes)), tuple(self.extents[a] for a in axes))  # fmt: skip
                return Known(array.transpose(ordered).reshape(flat), (*kept, place))
            value = self.builder.expand(self.over(term, axes, dtype), tuple(self.extents[a] for a in axes))  # fmt: skip
            if ordered != tuple(range(len(ordered))):
                value = self.builder.transpose(value, ordered)
            return Traced(self.reshaped(value, flat), (*kept, place))

        found = self._first(lined(mask, "bool"), kept)
        if isinstance(body, Known) and body.axes == names and len(names) == 1:
            if np.array_equal(body.array, np.arange(count)):
                return found
        here = self.applied("==", [Known(np.arange(count), (place,)), found])
        line = lined(body, self.dtype(body.kind))
        wanted = "int" if line.kind == "bool" else line.kind
        chosen = self.applied("select", [here, self._as_kind(line, wanted), number(0)])
        if isinstance(chosen, Known):
            return Known(chosen.array.sum(axis=-1), kept)
        return self._as_bool(Traced(self.builder.reduce("sum", chosen.value, (len(chosen.axes) - 1,)), kept), line.kind)  # fmt: skip

    def _as_bool(self, term: Term, kind: str) -> Term:
        return self.applied("!=", [term, number(0)]) if kind == "bool" else term

    def _first(self, mask: Term, kept: Axes) -> Term:
        if isinstance(mask, Known):
            return Known(mask.array.argmax(axis=-1), kept)
        value = self.builder.cast(mask.value, "i32")
        return Traced(self.builder.position("argmax", value, len(kept)), kept)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _empty(kind: str, of: str) -> Any:
    """The value of a reduction over nothing; the extremes of integers are those of 64 bits."""
    if kind in ("max", "min") and of == "int":
        return -(2**63) if kind == "max" else 2**63 - 1
    return EMPTY[kind]


def _factors(expr: eq.Expr) -> list[eq.Expr]:
    if isinstance(expr, eq.Apply) and expr.function == "*":
        return [*_factors(expr.args[0]), *_factors(expr.args[1])]
    return [expr]


def _simplified(function: str, args: Sequence[Term], kind: str | None) -> Term | None:
    """`x + 0`, `0 + x`, `x * 1`, … without the number: what an absent bias leaves behind."""
    neutral = {"+": 0, "-": 0, "*": 1, "/": 1, "and": 1, "or": 0}.get(function)
    if neutral is None or len(args) != 2:
        return None
    for own, other in ((0, 1), (1, 0)) if function not in ("-", "/") else ((0, 1),):
        number = args[other]
        if isinstance(number, Known) and not number.axes and number.array == neutral:
            if args[own].kind == kind or kind == "real":
                return args[own]
    return None
