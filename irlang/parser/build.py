"""Syntax tree from parse tree: one method a rule of `grammar/nnir.lark`, named like it."""

from __future__ import annotations

import math
from typing import Any

from irlang import ast
from irlang.diagnostics import Diagnostic, Span


def _some(value: Any) -> tuple[Any, ...]:
    """An absent list is an empty one."""
    return () if value is None else tuple(value)


def _doc(token: str | None) -> str:
    return "" if token is None else token[3:-3].strip()


# Python converts no more digits than these at once, by default.
_LONGEST_NUMBER = 4000


class Builder:
    """Builds `irlang.ast` nodes from a span and the children that the grammar keeps.

    Faults that the grammar cannot see are gathered in `faults`, so that one run shows them all.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Diagnostic] = []

    def _fault(self, code: str, message: str, span: Span, help: str = "") -> None:
        self.faults.append(Diagnostic(code, message, span, help=help))

    # ---- files and models

    def start(self, span: Span, c: list[Any]) -> ast.File:
        header, *items = c
        return ast.File(tuple(items), header, self.file, span=span)

    def header(self, span: Span, c: list[Any]) -> int:
        if c[0] != "1":
            message = f"this file is in version {c[0][:20]} of the language; irlang reads version 1"
            self._fault("syntax.version", message, span)
        return 1

    def model(self, span: Span, c: list[Any]) -> ast.Model:
        doc, name, inputs, outputs, *body = c
        return ast.Model(name, _some(inputs), outputs, tuple(body), _doc(doc), span=span)

    def block(self, span: Span, c: list[Any]) -> ast.Block:
        doc, name, inputs, attrs, outputs, *body = c
        return ast.Block(
            name, _some(inputs), _some(attrs), outputs, tuple(body), _doc(doc),
            span=span,
        )  # fmt: skip

    def minput(self, span: Span, c: list[Any]) -> ast.ModelInput:
        return ast.ModelInput(c[0], c[1], c[2], span=span)

    def moutput(self, span: Span, c: list[Any]) -> ast.ModelOutput:
        return ast.ModelOutput(c[0], c[1], span=span)

    def within(self, span: Span, c: list[Any]) -> tuple[Any, ...]:
        return tuple(c)

    def param(self, span: Span, c: list[Any]) -> ast.Param:
        return ast.Param(c[0], c[1], c[2], c[3], span=span)

    def const(self, span: Span, c: list[Any]) -> ast.Let:
        return ast.Let(c[0], c[1], span=span)

    def function(self, span: Span, c: list[Any]) -> ast.Let:
        return ast.Let(c[0], c[2], c[1], span=span)

    def assign(self, span: Span, c: list[Any]) -> ast.Assign:
        *targets, value = c
        return ast.Assign(tuple(targets), value, span=span)

    def repeat(self, span: Span, c: list[Any]) -> ast.For:
        name, _, bound, *body = c
        return ast.For(name, bound, tuple(body), span=span)

    # ---- definitions

    def op(self, span: Span, c: list[Any]) -> ast.Op:
        doc, name, dtypes, inputs, attrs, outputs, *body = c
        return ast.Op(
            name, _some(dtypes), _some(inputs), _some(attrs), outputs, tuple(body), _doc(doc),
            span=span,
        )  # fmt: skip

    def dtype(self, span: Span, c: list[Any]) -> tuple[str, str]:
        return c[0], c[1]

    def input(self, span: Span, c: list[Any]) -> ast.Input:
        name, family, type_, default = c
        return ast.Input(name, type_, default, family or "", span=span)

    def family(self, span: Span, c: list[Any]) -> Any:
        return c[0]

    def output(self, span: Span, c: list[Any]) -> ast.Output:
        name, family, type_ = c
        index, count = family or ("", None)
        return ast.Output(name, type_, index, count, span=span)

    def ofamily(self, span: Span, c: list[Any]) -> tuple[str, Any]:
        return c[0], c[2]

    def tensor(self, span: Span, c: list[Any]) -> ast.TensorType:
        dtype, *dims = c
        kept = tuple(dim for dim in dims if dim is not None)
        return ast.TensorType(str(dtype), kept, span=span)

    def size(self, span: Span, c: list[Any]) -> ast.Dim:
        return ast.Dim("size", c[0], c[1], span=span)

    def rest_axis(self, span: Span, c: list[Any]) -> ast.Dim:
        return ast.Dim("rest", ast.Name(c[0][:-2], span=span), c[1], span=span)

    def rests_axis(self, span: Span, c: list[Any]) -> ast.Dim:
        return ast.Dim("rest", c[0], None, span=span)

    def broadcast_axis(self, span: Span, c: list[Any]) -> ast.Dim:
        text = c[0]
        kind = "rest" if text.endswith("..") else "size"
        return ast.Dim(kind, ast.Name(text.removesuffix(".."), span=span), None, True, span=span)

    def attr(self, span: Span, c: list[Any]) -> ast.Attr:
        return ast.Attr(c[0], c[1], c[2], span=span)

    def scalar_type(self, span: Span, c: list[Any]) -> ast.AttrType:
        return ast.AttrType("scalar", c[0], span=span)

    def vector_type(self, span: Span, c: list[Any]) -> ast.AttrType:
        if isinstance(c[1], str):
            rest = ast.Name(c[1][:-2], span=span)
            return ast.AttrType("vector", c[0], rest, True, span=span)
        return ast.AttrType("vector", c[0], c[1], span=span)

    def enum_type(self, span: Span, c: list[Any]) -> ast.AttrType:
        return ast.AttrType("enum", choices=tuple(c), span=span)

    def require(self, span: Span, c: list[Any]) -> ast.Require:
        return ast.Require(c[0], c[1], c[2][1:-1], span=span)

    def ensure(self, span: Span, c: list[Any]) -> ast.Ensure:
        return ast.Ensure(c[0], c[1], c[2][1:-1], span=span)

    def some(self, span: Span, c: list[Any]) -> ast.Some:
        return ast.Some(c[0], c[1], c[2], span=span)

    def let(self, span: Span, c: list[Any]) -> ast.Let:
        return ast.Let(c[0], c[2], _some(c[1]), span=span)

    def let_rest(self, span: Span, c: list[Any]) -> ast.Let:
        return ast.Let(c[0][:-2], c[1], rest=True, span=span)

    def params(self, span: Span, c: list[Any]) -> tuple[str, ...]:
        return tuple(c)

    def grad(self, span: Span, c: list[Any]) -> ast.Grad:
        return ast.Grad(c[0], c[1], span=span)

    def unspecified(self, span: Span, c: list[Any]) -> ast.Unspecified:
        return ast.Unspecified(c[0], _some(c[1]), c[2], span=span)

    def equation(self, span: Span, c: list[Any]) -> ast.Equation:
        name, first, second, value = c
        if second is None:
            return ast.Equation(name, first, value, span=span)
        if len(first) != 1 or first[0].rest or first[0].bound is not None:
            message = "the first brackets of an equation hold the name of one index"
            self._fault("syntax.family", message, span)
            return ast.Equation(name, second, value, span=span)
        return ast.Equation(name, second, value, first[0].name, span=span)

    def lhs_name(self, span: Span, c: list[Any]) -> ast.Index:
        return ast.Index(c[0], span=span)

    def lhs_fresh(self, span: Span, c: list[Any]) -> ast.Index:
        return ast.Index(c[0], c[2], span=span)

    def lhs_rest(self, span: Span, c: list[Any]) -> ast.Index:
        return ast.Index(c[0][:-2], None, True, span=span)

    def lhs_fresh_rest(self, span: Span, c: list[Any]) -> ast.Index:
        return ast.Index(c[0][:-2], ast.Name(c[2][:-2], span=span), True, span=span)

    def left(self, span: Span, c: list[Any]) -> tuple[Any, ...]:
        return _some(c[0])

    compose = assign
    subscripts = left

    # ---- expressions

    def if_(self, span: Span, c: list[Any]) -> ast.If:
        return ast.If(c[0], c[1], c[2], span=span)

    def reduce(self, span: Span, c: list[Any]) -> ast.Reduce:
        kind, binders, where, body = c
        return ast.Reduce(kind, binders, where, body, span=span)

    def count(self, span: Span, c: list[Any]) -> ast.Reduce:
        return ast.Reduce("count", c[1], c[2], None, span=span)

    def or_(self, span: Span, c: list[Any]) -> ast.Binary:
        return ast.Binary("or", c[0], c[1], span=span)

    def and_(self, span: Span, c: list[Any]) -> ast.Binary:
        return ast.Binary("and", c[0], c[1], span=span)

    def not_(self, span: Span, c: list[Any]) -> ast.Unary:
        return ast.Unary("not", c[0], span=span)

    def chain(self, span: Span, c: list[Any]) -> ast.Chain:
        return ast.Chain(tuple(c[::2]), tuple(c[1::2]), span=span)

    def compared(self, span: Span, c: list[Any]) -> Any:
        return c[0]

    def member_of(self, span: Span, c: list[Any]) -> ast.Binary:
        return ast.Binary("in", c[0], c[1], span=span)

    def binary(self, span: Span, c: list[Any]) -> ast.Binary:
        return ast.Binary(c[1], c[0], c[2], span=span)

    def negate(self, span: Span, c: list[Any]) -> ast.Unary:
        return ast.Unary("-", c[0], span=span)

    def bind(self, span: Span, c: list[Any]) -> ast.Binder:
        return ast.Binder(c[0], c[2], span=span)

    def bind_rest(self, span: Span, c: list[Any]) -> ast.Binder:
        bound = ast.Name(c[2][:-2], span=span)
        return ast.Binder(c[0][:-2], bound, True, span=span)

    def number(self, span: Span, c: list[Any]) -> ast.Number:
        text: str = c[0]
        if len(text) > _LONGEST_NUMBER:
            self._fault("syntax.number", f"a number of {len(text)} digits is too long", span)
            return ast.Number(0, "0", span=span)
        if text.isdigit():
            return ast.Number(int(text), text, span=span)
        value = float(text)
        if math.isinf(value):
            message = f"{text[:40]} is larger than any float64"
            self._fault("syntax.number", message, span, help="write `inf` for infinity")
        return ast.Number(value, text, span=span)

    def name(self, span: Span, c: list[Any]) -> ast.Name:
        return ast.Name(c[0], span=span)

    def text(self, span: Span, c: list[Any]) -> ast.Text:
        return ast.Text(c[0][1:-1], span=span)

    def arity(self, span: Span, c: list[Any]) -> ast.Arity:
        return ast.Arity(c[0], span=span)

    def match(self, span: Span, c: list[Any]) -> ast.Match:
        subject, *arms = c
        return ast.Match(subject, tuple(arms), span=span)

    def arm(self, span: Span, c: list[Any]) -> tuple[str, Any]:
        return c[0], c[1]

    kwarg = arm

    def list_(self, span: Span, c: list[Any]) -> ast.ListOf:
        return ast.ListOf(_some(c[0]), span=span)

    def comprehension(self, span: Span, c: list[Any]) -> ast.Comprehension:
        body, name, _, bound, condition = c
        return ast.Comprehension(body, ast.Binder(name, bound, span=span), condition, span=span)

    def call(self, span: Span, c: list[Any]) -> ast.Call:
        return ast.Call(c[0], _some(c[1]), _some(c[2]), span=span)

    def read(self, span: Span, c: list[Any]) -> ast.Read:
        name, first, second = c
        if second is None:
            return ast.Read(name, first, span=span)
        if len(first) != 1 or isinstance(first[0], (ast.Rest, ast.Each)):
            message = "the first brackets of a read choose one member of a family"
            self._fault("syntax.family", message, span)
            return ast.Read(name, second, span=span)
        return ast.Read(name, second, first[0], span=span)

    def read_or(self, span: Span, c: list[Any]) -> ast.Read:
        read, default = c
        return ast.Read(read.name, read.index, read.member, default, span=span)

    def rest(self, span: Span, c: list[Any]) -> ast.Rest:
        return ast.Rest(c[0][:-2], span=span)

    def each(self, span: Span, c: list[Any]) -> ast.Each:
        return ast.Each(c[0], span=span)

    def _list(self, span: Span, c: list[Any]) -> tuple[Any, ...]:
        return tuple(c)

    minputs = moutputs = dtypes = inputs = outputs = attrs = _list
    binders = exprs = kwargs = indices = lhss = _list
