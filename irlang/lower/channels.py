"""Channels last, as TensorFlow and Keras have them, and second, as the language has them.

A program that turns every result of a convolution back is one that nobody writes, and no optimiser
finds in it what it looks for: behind the convolution stands a transposition and not the activation.
So a builder remembers what it has with its channels last: the next operator of windows reads that,
and a call that goes element by element, or says of every axis what it does with that, is made of
it, or made anew where such an operator alone reads it. What nothing reads in the language's own
order is then not put into it (`PythonBuilder.needed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from irlang import equations as eq
from irlang.catalog import Catalog
from irlang.equations import Expansion, TensorInfo
from irlang.graph import Node
from irlang.instance import instantiate
from irlang.lower.call import Call
from irlang.lower.legalise import moved
from irlang.lower.python_builder import PythonBuilder
from irlang.lower.value import Value
from irlang.signature import Given

B = TypeVar("B", bound=PythonBuilder)
T = TypeVar("T")
Order = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def channels_last(call: Call[B], x: Value) -> Value:
    """Axes in the order batch, space, channels."""
    known = call.build.pulled(x)
    if known is not None:
        return known
    return call.build.let(call.build.transpose(x, (0, *range(2, x.rank), 1)), f"{x.text}_last")


def channels_first(call: Call[B], x: Value) -> Value:
    """Axes in the order batch, channels, space."""
    return call.build.first(x, f"{call.node.name}_last")


def axis_last(call: Call[B], x: Value, axis: int) -> Value:
    """`x` with one axis last, the others in their order."""
    return channels_last(call, x) if axis == 1 else moved(call, x, axis, x.rank - 1)


def axis_back(call: Call[B], x: Value, axis: int) -> Value:
    """`x` with its last axis where it was."""
    return channels_first(call, x) if axis == 1 else moved(call, x, x.rank - 1, axis)


def goes_by_place(expansion: Expansion) -> bool:
    """Whether every result is made of what stands at its own place in each operand, places counted
    from the last axis, or of the only element along an axis; and is the same in any place. What is
    drawn is not: axes in another order have other numbers.
    """
    if expansion.drawn or expansion.chosen:
        return False
    return all(_at_own_place(e) for e in (*expansion.equations, *expansion.unspecified))


def _at_own_place(equation: eq.Equation) -> bool:
    own = [name for name, _ in equation.binders]

    def fits(part: eq.Expr) -> bool:
        if isinstance(part, eq.Read):
            if len(part.index) > len(own):
                return False
            along = zip(reversed(part.index), reversed(own), strict=False)
            return all(place in (eq.Index(name), eq.Const(0)) for place, name in along)
        if isinstance(part, (eq.Reduce, eq.Inside, eq.Index)):
            return False
        return all(map(fits, eq.children(part)))

    return fits(equation.body)


def inside(call: Call[Any], catalog: Catalog, asked: bool = False) -> Call[Any] | None:
    """The call with the channels of its operands last, where it goes element by element and the
    program has one of them so already, or it is asked for; None of others.
    """
    build = call.build
    if not isinstance(build, PythonBuilder) or call.node.instance.faults:
        return None
    rank, *others = {len(info.shape) for info in call.outputs}
    known = any(v.rank == rank and build.last(v) is not None for v in call.values.values())
    if others or not (known or asked):
        return None
    if not goes_by_place(call.node.expansion(catalog)):
        return _turned(call, catalog, rank)
    # of numbers for every channel alone a result would have no other axes
    flat = known or any(not _is_row(v, rank) for v in call.values.values() if v.shape)
    values = {name: _last(call, value, rank, flat) for name, value in call.values.items()}
    node = _anew(call.node, values, call.node.attrs)
    if node is None or not _is_same(call.node, node, catalog):
        return None
    return replace(call, node=node, values=values)


def _turned(call: Call[PythonBuilder], catalog: Catalog, rank: int) -> Call[PythonBuilder] | None:
    """The call with channels last, of which every tensor has all axes, as has what it says of each
    of them (a padding); None where its equations are not the same then, but for the order of axes.
    """
    if any(v.literal is not None or v.rank != rank for v in call.values.values()):
        return None
    node = call.node
    attrs = {
        name: _order(value) if isinstance(value, tuple) and len(value) == rank else value
        for name, value in node.attrs.items()
    }
    shapes = {name: replace(v, shape=_order(v.shape)) for name, v in call.values.items()}
    inner = _anew(node, shapes, attrs)
    if inner is None or not _is_turned(node.expansion(catalog), inner.expansion(catalog), rank):
        return None
    values = {name: channels_last(call, value) for name, value in call.values.items()}
    return replace(call, node=inner, values=values)


def _is_turned(outer: Expansion, inner: Expansion, rank: int) -> bool:
    """Whether the equations of two calls are the same, but for the order of axes."""
    if outer.drawn or outer.chosen or outer.unspecified or inner.unspecified:
        return False
    found = [_in_order(one, rank, _order) for one in outer.equations]
    return found == [_in_order(one, rank, tuple) for one in inner.equations]


def _in_order(equation: eq.Equation, rank: int, order: Order) -> object:
    """An equation whose axes are in another order, and named by that."""
    binders = order(equation.binders) if len(equation.binders) == rank else equation.binders
    names = {name: f"axis.{place}" for place, (name, _) in enumerate(binders)}

    def bare(part: eq.Expr) -> eq.Expr:
        part = eq.rebuild(part, bare)
        if isinstance(part, eq.Index):
            return eq.Index(names.get(part.name, part.name))
        if isinstance(part, eq.Size):  # its label says which axis it is of
            return eq.Const(part.value)
        if isinstance(part, (eq.Read, eq.Inside)) and len(part.index) == rank:
            return replace(part, index=order(part.index))
        return part

    return equation.target, [bare(size) for _, size in binders], bare(equation.body)


def _is_same(outer: Node, inner: Node, catalog: Catalog) -> bool:
    """Whether a call makes the same of tensors whose channels are last: what is said of an axis, as
    of one of a single element that is turned round, may be said of another then.
    """
    expected = [_order(info.shape) for _, info in outer.instance.outputs or ()]
    if expected != [info.shape for _, info in inner.instance.outputs or ()]:
        return False
    expansion = inner.expansion(catalog)
    return goes_by_place(expansion) and _formulas(expansion) == _formulas(outer.expansion(catalog))


def _order(axes: tuple[T, ...]) -> tuple[T, ...]:
    return (*axes[:1], *axes[2:], *axes[1:2])


def _formulas(expansion: Expansion) -> list[tuple[str, eq.Expr]]:
    """What every tensor is made of, wherever that stands."""

    def bare(part: eq.Expr) -> eq.Expr:
        if isinstance(part, eq.Read):
            return replace(part, index=())
        return eq.rebuild(part, bare)

    every = (*expansion.equations, *expansion.unspecified)
    return [(equation.target, bare(equation.body)) for equation in every]


def _whole(value: Value, rank: int) -> tuple[int, ...]:
    return (1,) * (rank - value.rank) + value.shape


def _is_row(value: Value, rank: int) -> bool:
    """Whether an operand has a number for every channel, and no more."""
    return all(size == 1 for axis, size in enumerate(_whole(value, rank)) if axis != 1)


def _last(call: Call[PythonBuilder], value: Value, rank: int, flat: bool) -> Value:
    """An operand with its channels last. flat: whether a number for every channel has one axis
    then.
    """
    build = call.build
    if value.literal is not None or not value.shape:
        return value
    if build.last(value) is not None:
        return channels_last(call, value)
    whole = _whole(value, rank)
    if flat and _is_row(value, rank):
        return build.let(build.reshape(value, (whole[1],)), f"{value.text}_last")
    return channels_last(call, value if value.shape == whole else build.reshape(value, whole))


def _anew(node: Node, values: Mapping[str, Value], attrs: Mapping[str, Any]) -> Node | None:
    """The call on other operands; None where they do not fit, or nobody knows whether they do."""
    instance = instantiate(node.op, _types(node, values), attrs)
    if instance.faults or instance.deferred or instance.outputs is None:
        return None
    return replace(node, attrs=dict(attrs), instance=instance)


def _types(node: Node, values: Mapping[str, Value]) -> dict[str, Given]:
    """What an instance is told of the operands, by the definition's names."""

    def info(name: str) -> TensorInfo:
        return TensorInfo(values[name].shape, values[name].dtype)

    return {
        formal: info(formal)
        if isinstance(operand, str)
        else tuple(info(f"{formal}[{place}]") for place in range(len(operand)))
        for formal, operand in node.inputs.items()
    }
