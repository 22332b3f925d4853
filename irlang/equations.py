"""Flat equations: what a call of an operator means, with no macro, attribute or `..` left.

`expand` makes them; every meaning (reference, exact, rounding, …) reads nothing else. A size or a
numeric attribute is a `Size`: a label (its source text) and the value of this call, so that calls
which differ in sizes only have equations of equal `structure` and share one compiled kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter, is_
from typing import Any, TypeVar

from irlang.dtypes import DTYPES

Scalar = int | float | Fraction | bool
_KEPT = 1 << 14  # expressions of which it is remembered what is in them
_C = TypeVar("_C", bound=type)


class _Compound:
    """An expression with others inside. Its hash and, of an index, its affine form are kept: they
    are asked for again and again, and would be found anew from all that is inside. So is a mark
    that expressions share which were found to be the same.
    """

    __slots__ = ("_hash", "_mark", "kept_form")
    kept_form: Any  # see `irlang.affine.affine`

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Without what is kept: a hash is another in another process."""
        own: Any = fields(self)  # type: ignore[arg-type]
        return type(self), tuple(getattr(self, one.name) for one in own)


def _same_number(one: Scalar, other: Scalar) -> bool:
    return (one is other or one == other) and type(one) is type(other)


_PARTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {}  # fields, of what is hashed once


def _alike(one: object, other: object) -> bool:
    """Whether two expressions are the same, one pair of parts after the other: gradients of splines
    are deeper than Python compares.
    """
    pending = [(one, other)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if a.__class__ is not b.__class__:
            return False
        parts = _PARTS.get(a.__class__)
        if parts is not None:
            if hash(a) != hash(b):
                return False
            pending += zip(parts(a), parts(b), strict=True)
        elif isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b):
                return False
            pending += zip(a, b, strict=True)
        elif a != b:
            return False
    return True


def _hashed_once(cls: _C) -> _C:
    """A class of expressions whose hash is found once, and tells most of those apart that differ:
    two may be alike for many steps down.
    """
    anew: Any = cls.__hash__
    _PARTS[cls] = attrgetter(*(one.name for one in fields(cls)))

    def kept(self: Any) -> int:
        try:
            return self._hash  # type: ignore[no-any-return]
        except AttributeError:
            found: int = anew(self)
            self._hash = found
            return found

    def same(self: Any, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not cls or hash(self) != hash(other):
            return False
        mark = getattr(self, "_mark", None)
        if mark is not None and mark is getattr(other, "_mark", None):
            return True  # few pairs are asked for very often
        if not _alike(self, other):
            return False
        one: Any = other
        self._mark = one._mark = mark or object()
        return True

    cls.__hash__ = kept  # type: ignore[assignment]
    cls.__eq__ = same  # type: ignore[method-assign,assignment]
    return cls


@dataclass(slots=True, eq=False)
class Const:
    """A number written in the definition. Of the same value, 1 is not 1.0: `n + 1` is exact."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and _same_number(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.value,))


@dataclass(slots=True, eq=False)
class Size:
    """A number known at the call: a size, a numeric attribute, or arithmetic on them."""

    label: str
    value: Scalar

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Size) or self.label != other.label:
            return False
        return _same_number(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.label, self.value))


@dataclass(slots=True, unsafe_hash=True)
class Index:
    """A bound index."""

    name: str


@_hashed_once
@dataclass(slots=True, unsafe_hash=True)
class Read(_Compound):
    """An element of a tensor; `default` is what stands outside it (None: outside is an error)."""

    tensor: str
    index: tuple[Expr, ...]
    default: Expr | None = None


@_hashed_once
@dataclass(slots=True, unsafe_hash=True)
class Inside(_Compound):
    """Whether an index lies inside a tensor."""

    tensor: str
    index: tuple[Expr, ...]


@_hashed_once
@dataclass(slots=True, unsafe_hash=True)
class Apply(_Compound):
    """A scalar function or operator of `irlang.scalar`, by name."""

    function: str
    args: tuple[Expr, ...]


@_hashed_once
@dataclass(slots=True, unsafe_hash=True)
class Reduce(_Compound):
    """`kind` over all values of the binders that satisfy `where`.

    kind: sum, prod, max, min, all, any, argmax, argmin, the, count (whose body is None).
    argmax and argmin have one binder and give its value, the first among equals.
    """

    kind: str
    binders: tuple[tuple[str, Expr], ...]
    where: Expr | None
    body: Expr | None


Expr = Const | Size | Index | Read | Inside | Apply | Reduce


MOST_ELEMENTS = 2**59  # no array has 2**63 bytes, and some elements are of 16
_AXES = 64  # NumPy has no more


@dataclass(slots=True, frozen=True)
class TensorInfo:
    """Shape and element type (a name of `irlang.dtypes`)."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def kind(self) -> str:
        """What the equations see: `real`, `int` or `bool`."""
        return DTYPES[self.dtype].kind

    @property
    def too_large(self) -> str:
        """Why no array is of this shape; nothing where one can be, be there memory or not."""
        if len(self.shape) > _AXES:
            return f"a tensor has at most {_AXES} axes, not {len(self.shape)}"
        fits = math.prod(max(size, 1) for size in self.shape) <= MOST_ELEMENTS
        return "" if fits else "a tensor has at most 2^59 elements"

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(slots=True, frozen=True)
class Equation:
    """`target[binders] = body` for every value of the binders.

    Reading the target itself, or an equation further down, makes a recurrence: the group of
    equations that read one another advances together along one axis.
    """

    target: str
    binders: tuple[tuple[str, Expr], ...]
    body: Expr
    info: TensorInfo


@dataclass(slots=True, frozen=True)
class Check:
    """A precondition on values: `condition` (a scalar of kind bool) must hold, or `message`."""

    code: str
    condition: Expr
    message: str


@dataclass(slots=True, frozen=True)
class Draw:
    """A tensor that the definition leaves open; the oracle draws every element from a law.

    law: a name of `irlang.laws`; params: its numbers, in their order.
    """

    tensor: str
    law: str
    params: tuple[Scalar, ...]


@dataclass(slots=True, frozen=True)
class Ensure:
    """What holds of a right result where values are left open: `parts` must all hold.

    A part is a condition (a scalar of kind bool), or an `Apply` of a law of `irlang.laws` to a
    statistic and the law's numbers: the statistic follows that law.
    """

    code: str
    parts: tuple[Expr, ...]
    message: str


@dataclass(slots=True, frozen=True)
class Expansion:
    """All that a call means.

    tensors: every tensor by name, inputs and outputs among them. unspecified: (target, mask)
    pairs, mask being an equation of kind bool that is true where no verdict is given. drawn: values
    left open, by the law that they follow. chosen: outputs of which the equation gives one right
    value among others. Where either is there, `ensures` say what a right result is. bounded: inputs
    of which it is open whether they have a gradient where a max or a min does not take them. notes:
    what evaluators have found out about the equations, under a key of their own.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    equations: tuple[Equation, ...]
    tensors: dict[str, TensorInfo]
    checks: tuple[Check, ...] = ()
    unspecified: tuple[Equation, ...] = ()
    drawn: tuple[Draw, ...] = ()
    chosen: tuple[str, ...] = ()
    ensures: tuple[Ensure, ...] = ()
    bounded: frozenset[str] = frozenset()
    notes: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether there is more than one right result."""
        return bool(self.drawn or self.chosen)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside."""
    if isinstance(expr, Apply):
        return expr.args
    if isinstance(expr, Read):
        return expr.index if expr.default is None else (*expr.index, expr.default)
    if isinstance(expr, Inside):
        return expr.index
    if isinstance(expr, Reduce):
        bounds = tuple(bound for _, bound in expr.binders)
        return bounds + tuple(part for part in (expr.where, expr.body) if part is not None)
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything inside it, parents first."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        stack += children(part)[::-1]


def rebuild(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `f` applied to the expressions directly inside; itself where `f` changes none."""
    if isinstance(expr, Apply):
        args = tuple(map(f, expr.args))
        return expr if _same(args, expr.args) else Apply(expr.function, args)
    if isinstance(expr, Read):
        index = tuple(map(f, expr.index))
        default = None if expr.default is None else f(expr.default)
        unchanged = default is expr.default and _same(index, expr.index)
        return expr if unchanged else Read(expr.tensor, index, default)
    if isinstance(expr, Inside):
        index = tuple(map(f, expr.index))
        return expr if _same(index, expr.index) else Inside(expr.tensor, index)
    if isinstance(expr, Reduce):
        binders = tuple((name, f(bound)) for name, bound in expr.binders)
        where = None if expr.where is None else f(expr.where)
        body = None if expr.body is None else f(expr.body)
        bounds = all(one is own for (_, one), (_, own) in zip(binders, expr.binders, strict=True))
        if bounds and where is expr.where and body is expr.body:
            return expr
        return Reduce(expr.kind, binders, where, body)
    return expr


def _same(made: tuple[Expr, ...], parts: tuple[Expr, ...]) -> bool:
    """Whether these are the very same expressions: then nothing is made, or hashed, anew."""
    return all(map(is_, made, parts))


def substitute(expr: Expr, values: dict[str, Expr]) -> Expr:
    """`expr` with indices replaced; binders are unique in an expansion, so nothing is captured."""
    if isinstance(expr, Index):
        return values.get(expr.name, expr)
    return rebuild(expr, lambda part: substitute(part, values))


@lru_cache(_KEPT)
def indices(expr: Expr) -> frozenset[str]:
    """The names of the free indices."""
    if isinstance(expr, Index):
        return frozenset((expr.name,))
    found = frozenset[str]().union(*map(indices, children(expr)))
    if isinstance(expr, Reduce):
        found -= {name for name, _ in expr.binders}
    return found


@lru_cache(_KEPT)
def reads(expr: Expr) -> frozenset[str]:
    """The names of the tensors that are read."""
    return frozenset(part.tensor for part in walk(expr) if isinstance(part, Read))


@lru_cache(_KEPT)
def parts(expr: Expr) -> frozenset[Expr]:
    """`expr` and everything inside it, to ask whether something stands in it."""
    return frozenset(walk(expr))


@lru_cache(_KEPT)
def reduces(expr: Expr) -> bool:
    """Whether there is a reduction in it."""
    return any(isinstance(part, Reduce) for part in walk(expr))
