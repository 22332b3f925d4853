"""Expressions of the language, and types of tensors and attributes."""

from __future__ import annotations

from dataclasses import dataclass, field

from irlang.diagnostics import NOWHERE, Span


@dataclass(slots=True, kw_only=True)
class Node:
    """Base of all nodes: where it stands in its file."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# ---- expressions ------------------------------------------------------------------------------


@dataclass(slots=True)
class Number(Node):
    """A literal; an `int` and a `float` of equal value are different numbers."""

    value: int | float
    text: str = field(default="", compare=False)


@dataclass(slots=True)
class Text(Node):
    """A string literal, without its quotes."""

    value: str


@dataclass(slots=True)
class Name(Node):
    """A name: size, attribute, index, enum choice, tensor, `true`, `inf`, …"""

    id: str


@dataclass(slots=True)
class Unary(Node):
    """`-x` or `not x`."""

    op: str
    operand: Expr


@dataclass(slots=True)
class Binary(Node):
    """Arithmetic, `and`, `or`, or `in` (membership of a list)."""

    op: str
    left: Expr
    right: Expr


@dataclass(slots=True)
class Chain(Node):
    """A chain of comparisons, `0 <= a < n`: operands one more than operators."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


@dataclass(slots=True)
class If(Node):
    """`if condition then yes else no`."""

    condition: Expr
    yes: Expr
    no: Expr


@dataclass(slots=True)
class Match(Node):
    """`match attribute { choice: expression, … }`; every choice has an arm."""

    subject: str
    arms: tuple[tuple[str, Expr], ...]


@dataclass(slots=True)
class Call(Node):
    """A function of scalars in a definition, an operator in a model, an initialiser of a param.

    `attrs` are the pairs after the semicolon: attributes, or optional inputs by name.
    """

    function: str
    args: tuple[Expr, ...]
    attrs: tuple[tuple[str, Expr], ...] = ()


@dataclass(slots=True)
class Rest(Node):
    """`s..` as an index: all the axes of a rest at once."""

    id: str


@dataclass(slots=True)
class Each(Node):
    """`(expression)..` as an index: the expression taken at every axis."""

    body: Expr


@dataclass(slots=True)
class Read(Node):
    """`x[i, s..]`, `xs[p][i]` (one of a variadic family), or an element `S[d]` of a list.

    `default` is what is read outside the tensor (`??`).
    """

    name: str
    index: tuple[Subscript, ...]
    member: Expr | None = None
    default: Expr | None = None


@dataclass(slots=True)
class Binder(Node):
    """`k < K` or `k.. < K..` of a reduction or an equation."""

    name: str
    bound: Expr
    rest: bool = False


@dataclass(slots=True)
class Reduce(Node):
    """`sum(k < K | filter) body`; `count` has a filter and no body."""

    kind: str
    binders: tuple[Binder, ...]
    where: Expr | None
    body: Expr | None


@dataclass(slots=True)
class Arity(Node):
    """`#xs`: how many members a variadic family or a list has."""

    name: str


@dataclass(slots=True)
class ListOf(Node):
    """`[a, b, c]`."""

    items: tuple[Expr, ...]


@dataclass(slots=True)
class Comprehension(Node):
    """`[body for i < n if condition]`."""

    body: Expr
    binder: Binder
    condition: Expr | None


Expr = (
    Number
    | Text
    | Name
    | Unary
    | Binary
    | Chain
    | If
    | Match
    | Call
    | Read
    | Reduce
    | Arity
    | ListOf
    | Comprehension
)
Subscript = Expr | Rest | Each

# ---- types ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Dim(Node):
    """One entry of a tensor type.

    kind `size`: an expression; `rest`: `S..`, whose `size` is `Name(S)`. `broadcast`: `~`.
    `at`: the axis (or list of axes) where it stands, from an attribute.
    """

    kind: str
    size: Expr
    at: Expr | None = None
    broadcast: bool = False


@dataclass(slots=True)
class TensorType(Node):
    """`f32[N, 3]`, or `T[N, S..]` in a definition."""

    dtype: str
    dims: tuple[Dim, ...]


@dataclass(slots=True)
class AttrType(Node):
    """The type of an attribute.

    `scalar`: int, real, bool, dtype. `vector`: `int[S..]`, `int[2]`, `int[]` with `dims` the
    rest or size. `enum`: `choices`.
    """

    kind: str
    name: str = ""
    dims: Expr | None = None
    rest: bool = False
    choices: tuple[str, ...] = ()
