"""The gradient of a call, as equations of the same language (reverse accumulation on equations).

From the equations of a call, `adjoint` makes those of its vector-Jacobian product. There is one
rule for each kind of reduction and one derivative text for each scalar function (`irlang.scalar`);
the rest is index algebra: `x[f(i)]` inside an equation over `i` gives
`d_x[s] = sum over i with f(i) == s`, which `irlang.adjoint_solve` solves for as many of the indices
as can be. The result holds what it needs of the forward equations. Being equations, it has an
adjoint itself.

Where a max, a min or a choice is not differentiable, one of its allowed gradients is given: that of
the first among equals, or with `ties="even"` equal shares. With `ties="any"` it is the first's too,
but what decides is written so that rounding leaves it open at a tie: evaluated as balls, the
gradient then encloses all that lies in the hull of the one-sided ones. With `ties="others"` all is
chosen that `first` does not choose, and equals have equal shares; with `ties="shared"` equals of a
reduction have such shares, and every other kink is open, as kinks may be chosen apart. What is the
same of all these gradients is so of all that are allowed (`irlang.diff.totals`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

from irlang import ast
from irlang import equations as eq
from irlang.adjoint_forward import (
    Context,
    Workspace,
    cleaned,
    reaching,
    reading,
    renamed,
    stops,
)
from irlang.adjoint_hoist import hoisted
from irlang.adjoint_terms import Term, contribution
from irlang.equation_rules import TRUE, apply, is_number, is_true, negation, simplify
from irlang.evaluate import Evaluator
from irlang.kinds import kind
from irlang.parser import parse_expr
from irlang.scalar import SCALARS
from irlang.scope import Scope

_evaluate = Evaluator()
_ARGUMENTS = ("a", "b", "c")
_WIDE = ("any", "others", "shared")  # what is chosen at a kink is told as one of several
_OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}  # what differs at a tie
_BELOW, _LEVEL = eq.Const(-1.0), eq.Const(0.0)  # what is decided, and a tie
_LARGE = 2.0**14  # what is as far apart as a number from that may be none of f16


def adjoint(
    expansion: eq.Expansion,
    wanted: Iterable[str] | None = None,
    seeds: Iterable[str] | None = None,
    *,
    ties: str = "first",
    prefix: str = "d_",
    stopping: bool = True,
) -> eq.Expansion:
    """The equations of the vector-Jacobian product of a call.

    wanted: inputs to differentiate by (all real ones unless said); seeds: outputs whose cotangent
    is given (all real ones). The result's inputs are those of the call and `d_y` for every seed
    `y`; its outputs are `d_x` for every wanted `x`, in that order. ties: `first`, `even`,
    `any`, `others`. A second adjoint needs another `prefix`, since its tensors are beside those of
    the first. stopping: whether nothing flows through `constant(x)`, as gradients have it; errors
    do.
    """
    real = {name for name, info in expansion.tensors.items() if info.kind == "real"}
    sources = [n for n in (expansion.inputs if wanted is None else wanted) if n in real]
    given = [n for n in (expansion.outputs if seeds is None else seeds) if n in real]
    clash = [n for n in expansion.tensors if prefix + n in expansion.tensors]
    if clash:
        raise ValueError(f"`{prefix}{clash[0]}` is a tensor already: use another prefix")
    return _Adjoint(expansion, sources, given, ties, prefix, stopping).result()


class _Adjoint:
    """One adjoint in the making: the workspace, and what flows back to each tensor."""

    def __init__(
        self,
        expansion: eq.Expansion,
        sources: Sequence[str],
        seeds: Sequence[str],
        ties: str,
        prefix: str,
        stopping: bool,
    ) -> None:
        self.expansion = expansion
        self.sources = sources
        self.seeds = seeds
        self.ties = ties
        self.prefix = prefix
        self.stopping = stopping
        self.work = Workspace(expansion)
        self.terms: dict[str, list[Term]] = {}
        self.plain: dict[eq.Expr, eq.Expr] = {}  # of what decides at a kink, as it is written
        self.needs = {e.target: eq.reads(e.body) for e in expansion.equations}
        self.origins: dict[str, frozenset[str]] = {}
        self.read: frozenset[str] = frozenset()  # by the equations that something flows through
        self.active: set[str] = self._reaching(expansion.equations)

    def _reaching(self, equations: Iterable[eq.Equation]) -> set[str]:
        return reaching(self.sources, equations, self.work.tensors, stopping=self.stopping)

    def cotangent(self, tensor: str) -> str:
        """The tensor in which a seed is given, or all that flows back to `tensor` is summed."""
        return f"{self.prefix}{tensor}"

    # ---- the result

    def result(self) -> eq.Expansion:
        """Forward equations that are needed, backward equations, and their types."""
        pending = [e.target for e in self.expansion.equations if e.target in self.active]
        done: set[str] = set()
        while pending:
            name = pending.pop(0)
            before = set(self.work.equations)
            self.work.equations[name] = self.work.parted(self.work.equations[name])
            done.add(name)
            new = [n for n in self.work.equations if n not in before]
            self.active = self._reaching(self.work.equations.values())
            pending += [n for n in new if n in self.active and n not in done]
        needed = reading(self.seeds, self.work.equations, stopping=self.stopping)
        flowing = [n for n in self.work.equations if n in self.active and n in needed]
        self.read = frozenset().union(*(eq.reads(self.work.equations[n].body) for n in flowing))
        for name in (*self.seeds, *self.sources, *flowing):
            for tensor in (self.cotangent(name), self._total(name)):
                self.work.tensors[tensor] = self.work.tensors[name]
        for name in flowing:
            self._pull_equation(self.work.equations[name])
        backward: dict[str, eq.Equation] = {}
        for name in dict.fromkeys((*flowing, *self.sources)):
            equation = self._gathered(name)
            if equation is not None:
                backward[equation.target] = equation
        outputs = [self._outcome(name, backward) for name in self.sources]
        equations = cleaned(outputs, {**self.work.equations, **backward}, self.work.tensors)
        equations = hoisted(equations, self.work, backward)
        inputs = (*self.expansion.inputs, *(self.cotangent(name) for name in self.seeds))
        drawn = self.expansion.drawn  # constants: the gradient is that through the values drawn
        present = {*inputs, *(e.target for e in equations), *(d.tensor for d in drawn)}
        tensors = {name: info for name, info in self.work.tensors.items() if name in present}
        return eq.Expansion(inputs, tuple(outputs), equations, tensors, drawn=drawn)

    def _total(self, name: str) -> str:
        """Where the whole cotangent of a tensor stands: apart from the seed where there is more."""
        if name in self.seeds and (name in self.read or name in self.sources):
            return f"{self.cotangent(name)}'"
        return self.cotangent(name)

    def _outcome(self, name: str, backward: dict[str, eq.Equation]) -> str:
        target = self._total(name)
        if target not in backward:  # nothing flows here
            info = self.work.tensors[name]
            binders = tuple((self.work.fresh("i"), eq.Const(extent)) for extent in info.shape)
            backward[target] = eq.Equation(target, binders, eq.Const(0), info)
        self.work.tensors[target] = self.work.tensors[name]
        return target

    def _gathered(self, name: str) -> eq.Equation | None:
        """The equation of a cotangent: the sum of its contributions."""
        info = self.work.tensors[name]
        target = self._total(name)
        parts: list[eq.Expr] = []
        indices: list[tuple[str, int]] = []
        terms = self.terms.get(name, [])
        for axis, extent in enumerate(info.shape):
            plain = [t.index[axis] for t in terms if isinstance(t.index[axis], eq.Index)]
            base = plain[0].name if plain and isinstance(plain[0], eq.Index) else f"i{axis}"
            indices.append((self.work.fresh(base), extent))
        if name in self.seeds:
            if target == self.cotangent(name):
                return None
            parts.append(eq.Read(self.cotangent(name), tuple(eq.Index(n) for n, _ in indices)))
        for term in terms:
            part = contribution(term, dict(indices), self.work)
            if part is not None:
                parts.append(part)
        body: eq.Expr = parts[0] if parts else eq.Const(0)
        for part in parts[1:]:
            body = apply("+", body, part)
        self.work.tensors[target] = info
        return eq.Equation(target, tuple((n, eq.Const(e)) for n, e in indices), body, info)

    # ---- what flows back

    def _pull_equation(self, equation: eq.Equation) -> None:
        binders = tuple(
            (name, extent)
            for (name, _), extent in zip(equation.binders, equation.info.shape, strict=True)
        )
        index = tuple(eq.Index(name) for name, _ in binders)
        seed = eq.Read(self._total(equation.target), index)
        self._pull(equation.body, Context(binders, (), (seed,)), equation, equation.body)

    def _pull(self, expr: eq.Expr, context: Context, equation: eq.Equation, whole: eq.Expr) -> None:
        """Collects what flows from `expr` to the tensors that it reads."""
        if not self._active(expr) or kind(expr, self.work.tensors) != "real":
            return
        if isinstance(expr, eq.Read):
            if expr.tensor in self.active:
                held = self._settled(context.conditions, expr.tensor)
                term = Term(context.binders, held, expr.index, context.factors)
                self.terms.setdefault(expr.tensor, []).append(term)
            if expr.default is not None:
                outside = negation(eq.Inside(expr.tensor, expr.index))
                self._pull(expr.default, context.under(outside), equation, whole)
        elif isinstance(expr, eq.Reduce):
            self._pull_reduction(expr, context, equation, whole)
        elif isinstance(expr, eq.Apply):
            if expr.function == "select":
                condition, yes, no = expr.args
                for holds, branch in ((condition, yes), (negation(condition), no)):
                    decided = self._decided(holds)
                    self.plain[decided] = holds
                    inner = context.under(decided)
                    self._pull(branch, inner, equation, branch if expr is whole else whole)
                return
            for argument, derivative in zip(
                expr.args, self._slopes(expr, equation, whole), strict=True
            ):
                if derivative is not None:  # 0 is kept: times what is infinite it has no value
                    self._pull(argument, _scaled(context, derivative), equation, whole)

    def _settled(self, conditions: Iterable[eq.Expr], tensor: str) -> tuple[eq.Expr, ...]:
        """Conditions of what flows to a tensor. A choice that hangs on nothing that the tensor does
        is no kink of it: one of the branches has all, at a tie as well.
        """
        own = self._origins(tensor)
        return tuple(
            plain
            if (plain := self.plain.get(held)) is not None
            and own.isdisjoint(chain.from_iterable(map(self._origins, eq.reads(plain))))
            else held
            for held in conditions
        )

    def _origins(self, tensor: str) -> frozenset[str]:
        """What a tensor hangs on, of all that is differentiated by."""
        if tensor not in self.origins:
            met, pending = {tensor}, [tensor]
            while pending:
                name = pending.pop()
                if name in self.needs and self.work.tensors[name].kind == "real":
                    new = self.needs[name] - met
                    met |= new
                    pending += new
            self.origins[tensor] = frozenset(met.intersection(self.sources))
        return self.origins[tensor]

    def _active(self, expr: eq.Expr) -> bool:
        """Whether an expression depends on what is differentiated by."""
        if isinstance(expr, eq.Read) and expr.tensor in self.active:
            return True
        if stops(expr, self.stopping):
            return False
        return any(map(self._active, eq.children(expr)))

    def _slopes(
        self, expr: eq.Apply, equation: eq.Equation, whole: eq.Expr
    ) -> list[eq.Expr | None]:
        """The derivative by every argument; None where it is zero."""
        value: eq.Expr = expr
        if expr is whole:  # under conditions that hold here, the target has this value
            value = eq.Read(equation.target, tuple(eq.Index(name) for name, _ in equation.binders))
        names = dict(zip(_ARGUMENTS, expr.args, strict=False))
        texts = SCALARS[expr.function].derivative or ("",) * len(expr.args)
        slopes = [_derivative(text, {**names, "y": value}) if text else None for text in texts]
        if self.ties in _WIDE and expr.function in ("max", "min"):
            slopes = [
                self._beyond(slope) if slope is not None and self._bounded(argument) else slope
                for slope, argument in zip(slopes, expr.args, strict=True)
            ]
        return [None if slope is None else self._decided(slope) for slope in slopes]

    def _bounded(self, argument: eq.Expr) -> bool:
        return isinstance(argument, eq.Read) and argument.tensor in self.expansion.bounded

    def _beyond(self, slope: eq.Expr) -> eq.Expr:
        """Of an argument of a max or a min: 1 where it is taken, anything from 0 to 1 elsewhere."""
        if self.ties == "others":
            return eq.Const(1)
        taken = apply("select", apply("==", slope, eq.Const(1)), _BELOW, _LEVEL)
        open_ = apply("<", apply("about", taken), eq.Const(0))
        return apply("select", open_, eq.Const(1), eq.Const(0))

    def _decided(self, expr: eq.Expr) -> eq.Expr:
        """What decides at a kink, open at the kink itself if any gradient is allowed there.

        The difference of two equal numbers is exact; what is only known about it is its sign where
        it is no tie.
        """
        if self.ties not in _WIDE or not isinstance(expr, eq.Apply):
            return expr
        if expr.function == "sign" and self.ties == "others":
            right = apply(">=", *expr.args, eq.Const(0))
            return apply("select", right, eq.Const(1), eq.Const(-1))
        if expr.function == "sign":
            return apply("sign", apply("about", *expr.args))
        if expr.function in ("and", "or", "not", "select"):
            return eq.rebuild(expr, self._decided)
        if expr.function not in _OTHER or not eq.reads(expr):
            return expr
        if "real" not in {kind(arg, self.work.tensors) for arg in expr.args}:
            return expr
        if self.ties == "others":
            return apply(_OTHER[expr.function], *expr.args)
        args = expr.args
        if any(map(_is_large, args)):  # so that the difference does not overflow
            args = tuple(apply("*", arg, eq.Const(0.25)) for arg in args)
        return apply(expr.function, apply("about", apply("-", *args)), eq.Const(0))

    def _pull_reduction(
        self, expr: eq.Reduce, context: Context, equation: eq.Equation, whole: eq.Expr
    ) -> None:
        if expr.body is None:
            return
        inner = self.work.inside(expr, context)
        if expr.kind == "prod":
            inner = inner.times(self._others(expr, inner))
        elif expr.kind in ("max", "min"):
            if self.ties in ("even", "others", "shared") or not self._flat(expr):
                value = self._value(expr, context, equation, whole)
                equal = apply("==", expr.body, value)
                counted = apply("==", self.work.refreshed(expr.body), value)
                number = self._number(expr, context, counted, equation)
                if self.ties == "any":  # all of it where it is alone, else anything up to that
                    alone = apply("select", apply("==", number, eq.Const(1)), _BELOW, _LEVEL)
                    inner = inner.under(apply("<", apply("about", alone), eq.Const(0)))
                else:
                    inner = inner.times(apply("/", eq.Const(1), number))
                inner = inner.under(equal)
            else:
                chosen = self._chosen(f"arg{expr.kind}", expr, context, equation)
                if self.ties == "any":
                    value = self._value(expr, context, equation, whole)
                    chosen = self._contending(expr, chosen, value, context, equation)
                inner = inner.under(chosen)
        elif expr.kind == "the":
            inner = inner.under(self._chosen("the", expr, context, equation))
        self._pull(expr.body, inner, equation, eq.Const(0))

    @staticmethod
    def _flat(expr: eq.Reduce) -> bool:
        """Whether the position of the extreme element can be asked for: there surely is one."""
        known = [b.value for _, b in expr.binders if isinstance(b, (eq.Const, eq.Size))]
        return len(known) == len(expr.binders) and all(v > 0 for v in known)

    def _value(
        self, expr: eq.Reduce, context: Context, equation: eq.Equation, whole: eq.Expr
    ) -> eq.Expr:
        """What a reduction comes to."""
        if expr is whole:
            return eq.Read(equation.target, tuple(eq.Index(name) for name, _ in equation.binders))
        moved = self.work.moved(expr, context, equation.target, equation.info.dtype)
        assert isinstance(moved, eq.Read)
        return moved

    def _guarded(self, body: eq.Expr, context: Context) -> eq.Expr:
        for condition in reversed(context.conditions):
            body = apply("select", self.work.refreshed(condition), body, eq.Const(0))
        return body

    def _number(
        self, expr: eq.Reduce, context: Context, equal: eq.Expr, equation: eq.Equation
    ) -> eq.Expr:
        """The number of elements that are the largest."""
        where = equal if expr.where is None else apply("and", expr.where, equal)
        counted = self.work.refreshed(eq.Reduce("count", expr.binders, where, None))
        body = self._guarded(counted, context)
        return self.work.define(equation.target, body, context.binders, "i64")

    def _chosen(
        self, choice: str, expr: eq.Reduce, context: Context, equation: eq.Equation
    ) -> eq.Expr:
        """That the indices of a reduction are those of the element that it gives."""
        extents = [dict(self.work.inside(expr, context).binders)[name] for name, _ in expr.binders]
        units = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
        position: eq.Expr = eq.Const(0)
        for (name, _), unit in zip(expr.binders, units, strict=True):
            position = apply("+", position, apply("*", eq.Const(unit), eq.Index(name)))
        bounds = {name: eq.Const(e) for (name, _), e in zip(expr.binders, extents, strict=True)}
        position = simplify(position, bounds, self.work.tensors)
        if choice == "the":
            found: eq.Expr = eq.Reduce("the", expr.binders, expr.where or TRUE, position)
        else:
            assert expr.body is not None
            flat = self.work.fresh("p")
            parts = {
                name: apply("%", apply("//", eq.Index(flat), eq.Const(unit)), eq.Const(extent))
                for (name, _), unit, extent in zip(expr.binders, units, extents, strict=True)
            }
            total = eq.Const(math.prod(extents))
            ranges = {**context.extents, flat: total}
            body, where = (
                part and simplify(eq.substitute(part, dict(parts)), ranges, self.work.tensors)
                for part in (expr.body, expr.where)
            )
            found = eq.Reduce(choice, ((flat, total),), where, body)
            if where is not None:  # there may be none: then nothing flows to any
                some = eq.Reduce("any", ((flat, total),), None, where)
                found = apply("select", some, found, eq.Const(0))
        body = self._guarded(self.work.refreshed(found), context)
        return apply(
            "==", position, self.work.define(equation.target, body, context.binders, "i64")
        )

    def _contending(
        self,
        expr: eq.Reduce,
        chosen: eq.Expr,
        value: eq.Expr,
        context: Context,
        equation: eq.Equation,
    ) -> eq.Expr:
        """That an element is no less than all others, which is open where another equals it.

        Infinities may be equal as well; one that stands for no other element is not there.
        """
        assert expr.body is not None
        if all(isinstance(b, (eq.Const, eq.Size)) and b.value == 1 for _, b in expr.binders):
            return chosen
        others = negation(chosen)
        if expr.where is not None:
            others = apply("and", expr.where, others)
        rest = eq.Reduce(expr.kind, expr.binders, others, expr.body)
        body = self._guarded(self.work.refreshed(rest), context)
        second = self.work.define(equation.target, body, context.binders, equation.info.dtype)
        rival = apply("select", chosen, second, value)
        order = apply(">=" if expr.kind == "max" else "<=", expr.body, rival)
        return self._decided(order)

    def _others(self, expr: eq.Reduce, inner: Context) -> eq.Expr:
        """The product of all other elements, which no division gives where one is zero."""
        assert expr.body is not None
        own = {name: self.work.fresh(name) for name, _ in expr.binders}
        same: eq.Expr = TRUE
        for name, other in own.items():
            equal = apply("==", eq.Index(name), eq.Index(other))
            same = equal if is_true(same) else apply("and", same, equal)
        product = renamed(expr, own)
        assert isinstance(product, eq.Reduce)
        where = negation(same)
        if product.where is not None:
            where = apply("and", product.where, where)
        others = eq.Reduce("prod", product.binders, where, product.body)
        known = all(isinstance(bound, (eq.Const, eq.Size)) for _, bound in expr.binders)
        used = eq.indices(others)
        context = Context(tuple(b for b in inner.binders if b[0] in used), inner.conditions)
        if not known or not self.work.harmless(others, context):
            return self.work.refreshed(others)
        return self.work.define("others", self.work.refreshed(others), context.binders, "f64")


def _is_large(expr: eq.Expr) -> bool:
    value = expr.value if isinstance(expr, (eq.Const, eq.Size)) else 0
    return isinstance(value, (int, float)) and _LARGE < abs(value) < math.inf


def _scaled(context: Context, derivative: eq.Expr) -> Context:
    """The context with a derivative in it: a factor, or what decides between 0 and 1."""
    if is_number(derivative, 1):
        return context
    if isinstance(derivative, eq.Apply) and derivative.function == "select":
        condition, yes, no = derivative.args
        if is_number(yes, 1) and is_number(no, 0):
            return context.under(condition)
    return context.times(derivative)


@cache
def _parsed(text: str) -> ast.Expr:
    return parse_expr(text)


def _derivative(text: str, names: dict[str, eq.Expr]) -> eq.Expr:
    return _evaluate.scalar(_parsed(text), Scope(dict(names), {}, set()))
