"""Items of a file: definitions, models, blocks; and the file itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from irlang.ast.expressions import Expr, Node, TensorType
from irlang.ast.statements import Attr, Input, Let, Output, Statement


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
