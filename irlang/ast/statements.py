"""Statements of definitions, models and blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from irlang.ast.expressions import AttrType, Call, Expr, Node, TensorType


@dataclass(slots=True, kw_only=True)
class Statement(Node):
    """Whatever stands on lines of its own, and so keeps comments.

    comments: the lines before it; an empty one is a blank line. trailing: the one on its last line.
    """

    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    trailing: str = field(default="", compare=False, repr=False)


@dataclass(slots=True)
class Input(Node):
    """An input of a definition: `x: T[N, C] = 0`, or `xs[i]: T[S..]` with `family` = `i`."""

    name: str
    type: TensorType
    default: Expr | None = None
    family: str = ""


@dataclass(slots=True)
class Output(Node):
    """A result: `y: T[N]`, or `ys[i < n]: T[N]` with `family` = `i` and `count` = `n`."""

    name: str
    type: TensorType
    family: str = ""
    count: Expr | None = None


@dataclass(slots=True)
class Attr(Node):
    """An attribute with its type and default (none: it must be given)."""

    name: str
    type: AttrType
    default: Expr | None = None


@dataclass(slots=True)
class Require(Statement):
    """A precondition; `name` is its diagnostic code."""

    name: str
    condition: Expr
    message: str


@dataclass(slots=True)
class Ensure(Statement):
    """What must hold of a value that the definition leaves open."""

    name: str
    condition: Expr
    message: str


@dataclass(slots=True)
class Some(Statement):
    """A value that the definition leaves open: a mask, noise, one of several right results.

    law: what the oracle draws it from. Without one, `name` is a result, and its equation gives one
    of those that are right.
    """

    name: str
    type: TensorType
    law: Call | None = None


@dataclass(slots=True)
class Let(Statement):
    """`let n = …`, `let f(a, b) = …`, `let O.. = …` (rest), or a constant of a model or file."""

    name: str
    value: Expr
    params: tuple[str, ...] = ()
    rest: bool = False


@dataclass(slots=True)
class Grad(Statement):
    """`grad x ties any`: which gradients are allowed at a tie; `beyond`: of an input, also where
    a bound holds it.
    """

    name: str
    ties: str

    @property
    def beyond(self) -> bool:
        """Whether a gradient may be that of what is not bounded."""
        return self.ties == "beyond"


@dataclass(slots=True)
class Index(Node):
    """An index on the left of an equation; `bound` where it is declared there (`k < K`)."""

    name: str
    bound: Expr | None = None
    rest: bool = False


@dataclass(slots=True)
class Unspecified(Statement):
    """`unspecified y[s..] when condition`: elements for which no verdict is given."""

    name: str
    index: tuple[Index, ...]
    condition: Expr


@dataclass(slots=True)
class Equation(Statement):
    """`y[n, s..] = …`; `member` is the index of an output family."""

    name: str
    index: tuple[Index, ...]
    value: Expr
    member: str = ""


@dataclass(slots=True)
class Assign(Statement):
    """`a, b = f(x; attr = 1)`: a call of an operator or block, in a model or a definition."""

    targets: tuple[str, ...]
    value: Call


@dataclass(slots=True)
class Param(Statement):
    """A parameter: type, range of values (`in [a, b]`) and value or initialiser."""

    name: str
    type: TensorType
    within: tuple[Expr, Expr] | None = None
    value: Expr | None = None


@dataclass(slots=True)
class For(Statement):
    """`for i < n { … }`: static repetition."""

    name: str
    bound: Expr
    body: tuple[Statement, ...]
    dangling: tuple[str, ...] = field(default=(), compare=False, repr=False)
