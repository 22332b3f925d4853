"""The syntax of `.nnir` files as plain data: what the parser gives and the printer takes.

Every node carries its source `span`, which takes no part in equality: two texts that differ in
layout alone have equal trees. Nodes are treated as immutable by everyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

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


# ---- statements -------------------------------------------------------------------------------


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
    """A value that the definition leaves open (a dropout mask)."""

    name: str
    type: TensorType


@dataclass(slots=True)
class Let(Statement):
    """`let n = …`, `let f(a, b) = …`, `let O.. = …` (rest), or a constant of a model or file."""

    name: str
    value: Expr
    params: tuple[str, ...] = ()
    rest: bool = False


@dataclass(slots=True)
class Grad(Statement):
    """`grad x ties any`: which gradients are allowed at a tie."""

    name: str
    ties: str


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


# ---- items of a file --------------------------------------------------------------------------


@dataclass(slots=True)
class Op(Statement):
    """A definition. `dtypes` pairs a type variable with its class (float, int, number, …)."""

    name: str
    dtypes: tuple[tuple[str, str], ...]
    inputs: tuple[Input, ...]
    attrs: tuple[Attr, ...]
    outputs: tuple[Output, ...]
    body: tuple[Statement, ...]
    doc: str = ""
    dangling: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(slots=True)
class ModelInput(Node):
    """An input of a model or block, with the range of values that it may take."""

    name: str
    type: TensorType
    within: tuple[Expr, Expr] | None = None


@dataclass(slots=True)
class ModelOutput(Node):
    """A result of a model or block: the name of a value in its body, and its type."""

    name: str
    type: TensorType


@dataclass(slots=True)
class Model(Statement):
    """A network."""

    name: str
    inputs: tuple[ModelInput, ...]
    outputs: tuple[ModelOutput, ...]
    body: tuple[Statement, ...]
    doc: str = ""
    dangling: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(slots=True)
class Block(Statement):
    """A reusable piece with parameters of its own, called like an operator."""

    name: str
    inputs: tuple[ModelInput, ...]
    attrs: tuple[Attr, ...]
    outputs: tuple[ModelOutput, ...]
    body: tuple[Statement, ...]
    doc: str = ""
    dangling: tuple[str, ...] = field(default=(), compare=False, repr=False)


Item = Op | Model | Block | Let


@dataclass(slots=True)
class File(Node):
    """A whole file. `version` is None where the header is absent.

    comments, trailing: those before the header and on its line.
    """

    items: tuple[Item, ...]
    version: int | None = None
    path: str = field(default="", compare=False)
    dangling: tuple[str, ...] = field(default=(), compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    trailing: str = field(default="", compare=False, repr=False)

    @property
    def ops(self) -> tuple[Op, ...]:
        """The definitions of the file, in order."""
        return tuple(item for item in self.items if isinstance(item, Op))

    @property
    def functions(self) -> tuple[Let, ...]:
        """The functions (`let f(a) = …`) that its definitions may use, in order."""
        return tuple(item for item in self.items if isinstance(item, Let) and item.params)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models of the file, in order."""
        return tuple(item for item in self.items if isinstance(item, Model))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of the file, in order."""
        return tuple(item for item in self.items if isinstance(item, Block))


_PARTS: dict[type[Node], tuple[str, ...]] = {}  # fields that can hold nodes, by class


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside `node`, in the order of its fields."""
    return iter(_inside(node))


def _inside(node: Node) -> list[Node]:
    names = _PARTS.get(type(node))
    if names is None:
        names = _PARTS[type(node)] = tuple(f.name for f in fields(node) if f.compare)
    found: list[Node] = []
    for name in names:
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _gather(value, found)
    return found


def _gather(items: tuple[object, ...], found: list[Node]) -> None:
    for item in items:
        if isinstance(item, Node):
            found.append(item)
        elif isinstance(item, tuple):
            _gather(item, found)


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(_inside(node))
