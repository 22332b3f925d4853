"""What the generator reads off a definition, once: which tensors its signature takes, which sizes
follow from others, where its attributes are axes, and which of its inputs have a fan-in.

Non-goal: judging a call, which `irlang.expand.instantiate` does.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.dtypes import CLASSES, DTYPES
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.gen.domain import domain
from irlang.gen.required import Required, mentioned, names_in, required, written_out
from irlang.parser.printer import print_expr
from irlang.scope import CONSTANTS, Scope

evaluate = Evaluator()


@dataclass(slots=True)
class Slot:
    """One input.

    allowed: element types. variable: the type variable, if it has one. fixed: how many entries
    are single axes; rests: names of those that are any number. placed: some entry has `@`.
    spreads: some entry has `~`. axis_attrs: attributes on which it depends where axes are.
    fan: declared entries that sums run over, whose sizes multiply to the fan-in. domain: the open
    interval of values for which the result is defined, None for all.
    """

    item: ast.Input
    allowed: frozenset[str]
    variable: str
    fixed: int
    rests: tuple[str, ...]
    placed: bool
    spreads: bool
    axis_attrs: tuple[str, ...]
    fan: tuple[int, ...] = ()
    domain: tuple[float, float] | None = None

    def takes(self, info: TensorInfo) -> bool:
        """Whether a tensor of that type can match at all."""
        return info.dtype in self.allowed and self.may_have_rank(len(info.shape))

    def may_have_rank(self, rank: int) -> bool:
        """Whether a tensor of so many axes can match at all."""
        if self.spreads:
            return bool(self.rests) or rank <= self.fixed
        return rank >= self.fixed if self.rests else rank == self.fixed


@dataclass(slots=True)
class Pattern:
    """A definition as the generator sees it.

    required: what it asks of sizes and attributes. compared: for an attribute that is a number,
    the numbers that the definition compares it with, by which it may mean something else.
    moves: whether results' elements may be elements of the one input; see `only_moves`. joins:
    whether it takes several tensors of one type. orders: the requirements that read a tensor in two
    places, and so may be on the order of its elements. ordered: the tensors that these read.
    """

    op: ast.Op
    slots: tuple[Slot, ...]
    attrs: dict[str, ast.Attr]
    required: Required
    compared: dict[str, tuple[float, ...]] = field(default_factory=dict)
    moves: bool = False
    orders: tuple[ast.Require, ...] = ()
    ordered: frozenset[str] = frozenset()
    joins: bool = False
    summed: frozenset[str] = frozenset()

    @property
    def by_axis(self) -> bool:
        """Whether an attribute has a number for each of some axes."""
        return any(rest_of(attr) for attr in self.attrs.values())

    def lengths(self, attrs: Mapping[str, Any]) -> dict[str, int]:
        """How many axes rests have by attributes that are given with a number for each."""
        given = {name: value for name, value in attrs.items() if isinstance(value, tuple)}
        named = {rest_of(self.attrs[name]): len(value) for name, value in given.items()}
        return {rest: length for rest, length in named.items() if rest}

    def rank(self, attrs: Mapping[str, Any]) -> int | None:
        """How many axes the first input has by such attributes; None where they do not say."""
        if not self.slots:
            return None
        dims = self.slots[0].item.type.dims
        rests = [dim.size for dim in dims if dim.kind == "rest"]
        named = [size.id for size in rests if isinstance(size, ast.Name)]
        lengths = self.lengths(attrs)
        if len(rests) != 1 or not lengths.keys() & set(named):
            return None
        return len(dims) - 1 + lengths[named[0]]


def rest_of(attr: ast.Attr) -> str:
    """The axes for each of which an attribute has a number, if it has."""
    dims = attr.type.dims
    return dims.id if attr.type.kind == "vector" and isinstance(dims, ast.Name) else ""


_patterns: dict[int, Pattern] = {}


def pattern(op: ast.Op) -> Pattern:
    """The pattern of a definition; made once for every `op` object."""
    found = _patterns.get(id(op))
    if found is None or found.op is not op:
        found = _patterns[id(op)] = _make(op)
    return found


def _make(op: ast.Op) -> Pattern:
    attrs = {attr.name: attr for attr in op.attrs}
    asked = required(op)
    made = Pattern(op, tuple(_slot(op, item, attrs) for item in op.inputs), attrs, asked)
    made.compared = _compared(op)
    made.moves = _moves(made)
    made.joins = _joins(op)
    stated = (one for one in op.body if isinstance(one, ast.Require))
    made.orders = tuple(one for one in stated if _reads_twice(op, one))
    made.ordered = frozenset(n for one in made.orders for n in _read(op, one))
    results = (written_out(dim.size, asked.lets) for item in op.outputs for dim in item.type.dims)
    given = (dim.size for item in op.inputs for dim in item.type.dims)
    sizes = {size.id for size in given if isinstance(size, ast.Name)} - made.attrs.keys()
    made.summed = frozenset(sizes.difference(*map(names_in, results)))
    return made


def _read(op: ast.Op, wanted: ast.Require) -> dict[str, set[str]]:
    """The elements that a requirement reads of each tensor, as they are written."""
    found: dict[str, set[str]] = {}
    formals = {item.name for item in op.inputs}
    for part in ast.walk(wanted.condition):
        if isinstance(part, ast.Read) and part.name in formals:
            found.setdefault(part.name, set()).add(print_expr(part))
    return found


def _reads_twice(op: ast.Op, wanted: ast.Require) -> bool:
    return any(len(elements) > 1 for elements in _read(op, wanted).values())


def has_slopes(op: ast.Op) -> bool:
    """Whether there may be a derivative: of a result that may be real, by an input that may be."""
    return all(
        any(map(_may_be_real, (_allowed(op, item.type.dtype) for item in items)))
        for items in (op.inputs, op.outputs)
    )


def _may_be_real(dtypes: frozenset[str]) -> bool:
    return not dtypes or any(DTYPES[dtype].kind == "real" for dtype in dtypes)


def _allowed(op: ast.Op, dtype: str) -> frozenset[str]:
    """The types that a word for a type stands for; none where an attribute says the type."""
    return CLASSES.get(dict(op.dtypes).get(dtype, dtype), frozenset({dtype} & DTYPES.keys()))


def _slot(op: ast.Op, item: ast.Input, attrs: dict[str, ast.Attr]) -> Slot:
    classes = dict(op.dtypes)
    dtype = item.type.dtype
    allowed = _allowed(op, dtype)
    dims = item.type.dims
    at = [name for dim in dims if dim.at for name in mentioned(ast.walk(dim.at))]
    return Slot(
        item,
        allowed,
        dtype if dtype in classes else "",
        sum(dim.kind == "size" for dim in dims),
        tuple(
            dim.size.id if isinstance(dim.size, ast.Name) else dim.size.name
            for dim in dims
            if dim.kind == "rest" and isinstance(dim.size, (ast.Name, ast.Read))
        ),
        any(dim.at is not None for dim in dims),
        any(dim.broadcast for dim in dims),
        tuple(name for name in at if name in attrs),
        _fan(op, item),
        domain(op, item),
    )


def _equations(op: ast.Op) -> list[ast.Equation]:
    return [s for s in op.body if isinstance(s, ast.Equation)]


def _fan(op: ast.Op, item: ast.Input) -> tuple[int, ...]:
    """Declared entries of an input that a sum of the body runs over."""
    for equation in _equations(op):
        for reduce in ast.walk(equation.value):
            if not isinstance(reduce, ast.Reduce) or reduce.kind != "sum" or reduce.body is None:
                continue
            summed = {binder.name for binder in reduce.binders}
            for read in ast.walk(reduce.body):
                if isinstance(read, ast.Read) and read.name == item.name:
                    return tuple(i for i, s in enumerate(read.index) if names_in(s) & summed)
    return ()


def _compared(op: ast.Op) -> dict[str, tuple[float, ...]]:
    """For each attribute the numbers that it is compared with, wherever that is."""
    attrs = {attr.name for attr in op.attrs}
    found: dict[str, set[float]] = {}
    for chain in ast.walk(op):
        if not isinstance(chain, ast.Chain):
            continue
        for pair in itertools.pairwise(chain.operands):
            for one, other in (pair, pair[::-1]):
                if isinstance(one, ast.Name) and one.id in attrs and _is_number(other):
                    number = evaluate(other, Scope({}, {}, set()))
                    found.setdefault(one.id, set()).add(number)
    return {name: tuple(sorted(numbers)) for name, numbers in found.items()}


def _is_number(node: ast.Expr) -> bool:
    if isinstance(node, ast.Unary) and node.op == "-":
        return _is_number(node.operand)
    return isinstance(node, ast.Number) or (isinstance(node, ast.Name) and node.id in CONSTANTS)


def _joins(op: ast.Op) -> bool:
    required = [item for item in op.inputs if item.default is None]
    types = [item.type for item in required]
    return any(item.family or types.count(item.type) > 1 for item in required)


def _moves(made: Pattern) -> bool:
    required = [slot for slot in made.slots if slot.item.default is None]
    if len(required) != 1 or required[0].item.family or len(made.op.outputs) != 1:
        return False
    if made.op.outputs[0].family or required[0].item.type.dtype not in dict(made.op.dtypes):
        return False
    equations = _equations(made.op)
    return len(equations) == 1 and _may_move(equations[0].value, required[0].item.name)


def _may_move(node: ast.Expr, source: str) -> bool:
    """Whether some choice of an expression is an element of a tensor."""
    match node:
        case ast.Read():
            return node.name == source
        case ast.If():
            return _may_move(node.yes, source) or _may_move(node.no, source)
        case ast.Match():
            return any(_may_move(arm, source) for _, arm in node.arms)
        case _:
            return False


def only_moves(made: Pattern, scope: Scope) -> bool:
    """Whether every element of the result of a call is an element of the one input, or a constant.

    made: one that `moves`. scope: that of the call, which decides what hangs on attributes and
    types.
    """
    source = next(slot.item.name for slot in made.slots if slot.item.default is None)
    return _only_moves(_equations(made.op)[0].value, source, scope)


def _only_moves(node: ast.Expr, source: str, scope: Scope) -> bool:
    match node:
        case ast.Read():
            return node.name == source
        case ast.If():
            decided = _decided(node.condition, scope)
            return (decided is False or _only_moves(node.yes, source, scope)) and (
                decided is True or _only_moves(node.no, source, scope)
            )
        case ast.Match():
            chosen = scope.names.get(node.subject)
            return all(
                _only_moves(arm, source, scope)
                for name, arm in node.arms
                if not isinstance(chosen, str) or name == chosen
            )
        case _:
            return isinstance(node, (ast.Number, ast.Name))


def _decided(node: ast.Expr, scope: Scope) -> bool | None:
    """The value of a condition; None where it depends on the element."""
    try:
        value = evaluate(node, scope)
    except InvalidInput:
        return None
    return value if isinstance(value, bool) else None
