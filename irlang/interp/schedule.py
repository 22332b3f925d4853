"""The order in which equations are evaluated, recurrences included.

Equations that read one another in a circle are a recurrence: they advance together along one axis,
each reading earlier steps of the others, or the same step of those evaluated before it. Shared by
every evaluator that goes through tensors rather than through single elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from irlang import equations as eq
from irlang.affine import Affine, affine, bounds_of, extreme
from irlang.diagnostics import fail
from irlang.dtypes import DEFAULT_OF_KIND
from irlang.kinds import kind

HOIST_LIMIT = 1 << 24  # elements of an equation that is evaluated before the loop


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Equations that advance together.

    equations: in the order of evaluation inside one step. axes: for each, the axis of its target
    along which it advances; extents may differ, an equation rests where its own is exceeded.
    descending: whether the steps go from the last to the first.
    """

    equations: tuple[eq.Equation, ...]
    axes: tuple[int, ...]
    descending: bool

    @property
    def length(self) -> int:
        """The number of steps."""
        pairs = zip(self.equations, self.axes, strict=True)
        return max(equation.info.shape[axis] for equation, axis in pairs)


Step = eq.Equation | Recurrence


def schedule(equations: Sequence[eq.Equation]) -> tuple[Step, ...]:
    """The equations in an order in which each reads only what is there.

    Raises `definition.recurrence` where a group advances along no axis.
    """
    by_target = {equation.target: equation for equation in equations}
    if len(by_target) < len(equations):
        names = [equation.target for equation in equations]
        twice = next(name for name in names if names.count(name) > 1)
        raise fail("definition.equation", f"`{twice}` is defined by more than one equation")
    needs = {
        equation.target: sorted(eq.reads(equation.body) & by_target.keys())
        for equation in equations
    }
    steps: list[Step] = []
    for group in components(needs):
        if len(group) == 1 and group[0] not in needs[group[0]]:
            steps.append(by_target[group[0]])
        else:
            inside = frozenset(group)
            steps.append(_recurrence([e for e in equations if e.target in inside]))
    return tuple(steps)


def components(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected components, each after those that it points to (Tarjan 1972)."""
    found: list[list[str]] = []
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()
    for root in graph:
        path: list[tuple[str, Iterator[str]]] = []
        following: str | None = None if root in number else root
        while path or following is not None:
            if following is not None:
                number[following] = low[following] = len(number)
                stack.append(following)
                waiting.add(following)
                path.append((following, iter(graph[following])))
                following = None
            node, rest = path[-1]
            for target in rest:
                if target not in number:
                    following = target
                    break
                if target in waiting:
                    low[node] = min(low[node], number[target])
            if following is not None:
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[node])
            if low[node] == number[node]:
                component = stack[stack.index(node) :]
                del stack[len(stack) - len(component) :]
                waiting.difference_update(component)
                found.append(component)
    return found


# ---- recurrences ------------------------------------------------------------------------------


def _recurrence(group: list[eq.Equation]) -> Recurrence:
    for descending in (False, True):
        for axes in _axes(group, descending, {}):
            ordered = _order(group, axes)
            if ordered is not None:
                return Recurrence(
                    tuple(ordered), tuple(axes[e.target] for e in ordered), descending
                )
    names = ", ".join(f"`{equation.target}`" for equation in group)
    raise fail(
        "definition.recurrence",
        f"{names}: no axis along which every element needs earlier elements only",
        help="read a smaller index of one axis, as h[t - 1], with `??` or `if` for the first step",
    )


def _axes(
    group: list[eq.Equation], descending: bool, chosen: dict[str, int]
) -> Iterator[dict[str, int]]:
    """All choices of one axis per equation that let every read within the group go backward."""
    if len(chosen) == len(group):
        yield chosen
        return
    equation = group[len(chosen)]
    for axis in range(len(equation.binders)):
        extended = {**chosen, equation.target: axis}
        if all(
            _distance(reader, read, extended, descending) is not None
            for reader in group[: len(extended)]
            for read in _reads_of(reader, extended)
            if equation.target in (reader.target, read.tensor)
        ):
            yield from _axes(group, descending, extended)


def _reads_of(equation: eq.Equation, names: Mapping[str, int]) -> list[eq.Read]:
    return [p for p in eq.walk(equation.body) if isinstance(p, eq.Read) and p.tensor in names]


def _distance(
    reader: eq.Equation, read: eq.Read, axes: Mapping[str, int], descending: bool
) -> int | None:
    """How many steps back a read reaches at least; None where it may not point backward.

    Other indices count with their whole range: `x[j]` with `sum(j < i)` lies before `i`.
    """
    form = affine(read.index[axes[read.tensor]])
    if form is None:
        return None
    own = reader.binders[axes[reader.target]][0]
    behind = form.plus(Affine({own: 1}), -1) if descending else Affine({own: 1}).plus(form, -1)
    bounds = {**dict(reader.binders), **bounds_of(reader.body)}
    del bounds[own]
    nearest = extreme(behind, bounds, least=True)
    if nearest is None or not nearest.known or nearest.constant < 0:
        return None
    return nearest.constant


def _order(group: list[eq.Equation], axes: Mapping[str, int]) -> list[eq.Equation] | None:
    """An order within one step, None where a step needs itself."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for equation in group:
        same = [
            read.tensor
            for read in _reads_of(equation, axes)
            if 0 in (_distance(equation, read, axes, d) for d in (False, True))
        ]
        if equation.target in same:
            return None
        sorter.add(equation.target, *same)
    by_target = {equation.target: equation for equation in group}
    try:
        return [by_target[name] for name in sorter.static_order()]
    except CycleError:
        return None


# ---- work that need not wait ------------------------------------------------------------------


def hoist(
    recurrence: Recurrence, tensors: Mapping[str, eq.TensorInfo]
) -> tuple[tuple[eq.Equation, ...], Recurrence]:
    """Reductions that read no member of the group, as equations evaluated before the loop.

    They are named after their equation (`g#1`), so that an LSTM's input projection is one product
    of matrices. What stands in a branch stays: there it may be guarded from reading outside.
    """
    members = frozenset(equation.target for equation in recurrence.equations)
    before: list[eq.Equation] = []
    changed: list[eq.Equation] = []
    for equation in recurrence.equations:
        bounds = dict(equation.binders)
        count = 0

        def taken(
            expr: eq.Reduce, equation: eq.Equation = equation, bounds: dict[str, eq.Expr] = bounds
        ) -> eq.Expr:
            nonlocal count
            shape = _hoisted_shape(expr, members, bounds)
            if shape is None:
                return expr
            count += 1
            name = f"{equation.target}#{count}"
            moved, read = _moved(expr, name, shape, bounds, tensors)
            before.append(moved)
            return read

        body = _lifted(equation.body, taken)
        changed.append(eq.Equation(equation.target, equation.binders, body, equation.info))
    return tuple(before), Recurrence(tuple(changed), recurrence.axes, recurrence.descending)


def separate(
    equation: eq.Equation, tensors: Mapping[str, eq.TensorInfo]
) -> tuple[tuple[eq.Equation, ...], eq.Equation]:
    """Reductions that need fewer indices than the equation has, as equations of their own.

    A loop nest would compute them again for every value of the indices that they do not have.
    """
    bounds = dict(equation.binders)
    before: list[eq.Equation] = []

    def taken(expr: eq.Reduce) -> eq.Expr:
        shape = _hoisted_shape(expr, frozenset(), bounds)
        if shape is None or len(shape) == len(bounds):
            return expr
        name = f"{equation.target}#{len(before) + 1}"
        moved, read = _moved(expr, name, shape, bounds, tensors)
        before.append(moved)
        return read

    body = _lifted(equation.body, taken)
    return tuple(before), eq.Equation(equation.target, equation.binders, body, equation.info)


def _lifted(expr: eq.Expr, taken: Callable[[eq.Reduce], eq.Expr]) -> eq.Expr:
    """`expr` with `taken` for its outermost reductions, but for those that may not be wanted."""
    if isinstance(expr, eq.Reduce):
        return taken(expr)
    if not isinstance(expr, eq.Apply):
        return expr
    if expr.function in ("select", "and", "or"):
        return eq.Apply(expr.function, (_lifted(expr.args[0], taken), *expr.args[1:]))
    return eq.rebuild(expr, lambda part: _lifted(part, taken))


def _hoisted_shape(
    expr: eq.Reduce, members: frozenset[str], bounds: Mapping[str, eq.Expr]
) -> tuple[int, ...] | None:
    """The extents of the free indices, in the order of the binders; None where it has to stay."""
    read = eq.reads(expr)
    if not read or read & members:
        return None
    shape: list[int] = []
    size = 1
    for name in bounds:
        if name in eq.indices(expr):
            bound = affine(bounds[name])
            if bound is None or not bound.known:
                return None
            shape.append(bound.constant)
            size *= max(bound.constant, 1)
    return tuple(shape) if size <= HOIST_LIMIT else None


def _moved(
    expr: eq.Reduce,
    name: str,
    shape: tuple[int, ...],
    bounds: Mapping[str, eq.Expr],
    tensors: Mapping[str, eq.TensorInfo],
) -> tuple[eq.Equation, eq.Read]:
    free = [index for index in bounds if index in eq.indices(expr)]
    fresh: dict[str, eq.Expr] = {index: eq.Index(f"{index}#{name}") for index in free}
    binders = tuple((f"{index}#{name}", bounds[index]) for index in free)
    info = eq.TensorInfo(shape, DEFAULT_OF_KIND[kind(expr, tensors)])
    equation = eq.Equation(name, binders, eq.substitute(expr, fresh), info)
    return equation, eq.Read(name, tuple(map(eq.Index, free)))
