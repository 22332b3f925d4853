"""Partial evaluation of the expressions of a definition.

Everything that is known at the call (sizes, attributes, the rank of `S..`) is computed; what
depends on indices or on elements of tensors becomes an equation expression. Arithmetic on lists
goes element by element, and a lone number serves all. Where a known value enters an equation it
becomes a `Size` labelled with its source text, so that the equations of two calls which differ in
sizes only have the same structure. What a value can be is said in `irlang.scope`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irlang import ast
from irlang import equations as eq
from irlang.diagnostics import Span, fail
from irlang.evaluate_scalar import apply, apply_one, conjunction, folded
from irlang.known import BUILTINS, EMPTY, KNOWN, PRELUDE
from irlang.laws import LAWS
from irlang.parser import parse_expr
from irlang.parser.printer import print_expr
from irlang.scalar import SCALARS, VARIADIC
from irlang.scope import (
    CONSTANTS,
    FamilyRef,
    Macro,
    Scope,
    TensorRef,
    Unbound,
    Value,
    is_residual,
    label,
    lift,
    plain,
)
from irlang.unroll import LIMIT, Labelled, combine, is_written_out

_MOST_NESTED = 64  # functions of `let` inside one another
_MOST_MACROS = 10_000  # of them written out for one expression
_DECIDES = {"any": True, "all": False}  # one term of which says what the whole is


def _extent(bound: Value, span: Span) -> Value:
    """A bound of an index; one below zero leaves the index no value, as zero does."""
    if is_residual(bound):
        return bound
    if not isinstance(bound, int) or isinstance(bound, bool):
        raise fail("definition.size", "the bound of an index is a whole number", span)
    return max(bound, 0)


class Evaluator:
    """Evaluates expressions of one definition; faults are placed in the definition's text."""

    def __init__(self) -> None:
        self._nested = 0  # functions that we are in
        self._written = 0  # and those written out since the outermost
        self._dispatch: dict[type, Callable[[Any, Scope], Value]] = {
            ast.Number: self._literal,
            ast.Text: self._literal,
            ast.Name: self._name,
            ast.Unary: self._unary,
            ast.Binary: self._binary,
            ast.Chain: self._chain,
            ast.If: self._if,
            ast.Match: self._match,
            ast.Call: self._call,
            ast.Read: self._read,
            ast.Reduce: self._reduce,
            ast.Arity: self._arity,
            ast.ListOf: lambda node, scope: tuple(self(item, scope) for item in node.items),
            ast.Comprehension: self._comprehension,
        }

    def __call__(self, node: ast.Expr, scope: Scope) -> Value:
        """The value of an expression in a scope."""
        return self._dispatch[type(node)](node, scope)

    def known(self, node: ast.Expr, scope: Scope) -> Value:
        """A value that must not depend on indices or elements."""
        value = self(node, scope)
        if isinstance(value, eq.Apply):
            value = folded(value)
        if is_residual(value):
            raise fail(
                "definition.static",
                f"`{print_expr(node)}` must be known from sizes and attributes alone",
                node.span,
            )
        return value

    def scalar(self, node: ast.Expr, scope: Scope) -> eq.Expr:
        """The expression that `node` is in an equation."""
        value = self(node, scope)
        if isinstance(value, tuple):
            raise fail(
                "definition.list",
                f"`{print_expr(node)}` is a list of {len(value)}; a single value is needed",
                node.span,
            )
        return lift(value, label(node, scope), node.span)

    # ---- leaves

    def _literal(self, node: ast.Number | ast.Text, scope: Scope) -> Value:  # noqa: ARG002
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        try:
            return scope.names[node.id]
        except KeyError:
            pass
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        raise Unbound(
            *fail("definition.name", f"`{node.id}` is not defined", node.span).diagnostics
        )

    def _arity(self, node: ast.Arity, scope: Scope) -> int:
        value = self._name(ast.Name(node.name, span=node.span), scope)
        if isinstance(value, FamilyRef):
            return len(value.members)
        if isinstance(value, tuple):
            return len(value)
        raise fail("definition.arity", f"`{node.name}` is neither a list nor variadic", node.span)

    # ---- application

    def _unary(self, node: ast.Unary, scope: Scope) -> Value:
        function = "neg" if node.op == "-" else "not"
        operand = self(node.operand, scope)
        if isinstance(operand, eq.Const):
            return eq.Const(KNOWN[function](operand.value))
        return apply(function, (node.operand,), (operand,), scope, node.span)

    def _binary(self, node: ast.Binary, scope: Scope) -> Value:
        left = self(node.left, scope)
        if node.op in ("and", "or"):
            left = plain(left)
        if (node.op == "and" and left is False) or (node.op == "or" and left is True):
            return left
        right = self(node.right, scope)
        if node.op in ("and", "or"):
            right = plain(right)
        if node.op == "in":
            return self._in(node, left, right, scope)
        if node.op in ("and", "or"):
            neutral = node.op == "and"
            if left is neutral:
                return right
            if right is neutral:
                return left
            if right is (not neutral):
                return right
        return apply(node.op, (node.left, node.right), (left, right), scope, node.span)

    def _in(self, node: ast.Binary, left: Value, right: Value, scope: Scope) -> Value:
        if not isinstance(right, tuple):
            raise fail("definition.list", "`in` needs a list on its right", node.span)
        if not is_residual(left) and not is_residual(right):
            return left in right
        result: Value = False
        for item in right:
            same = apply_one(
                "==", (left, item), lambda i: label(node.left, scope) if i == 0 else "", node.span
            )
            result = same if result is False else eq.Apply("or", (result, same))
        return result

    def _chain(self, node: ast.Chain, scope: Scope) -> Value:
        values = [self(operand, scope) for operand in node.operands]
        result: Value = True
        for i, op in enumerate(node.ops):
            pair = (node.operands[i], node.operands[i + 1])
            step = apply(op, pair, (values[i], values[i + 1]), scope, node.span)
            result = conjunction((result, *(step if isinstance(step, tuple) else (step,))))
            if result is False:
                return False
        return result

    def _if(self, node: ast.If, scope: Scope) -> Value:
        condition = plain(self(node.condition, scope))
        if not is_residual(condition):
            return self(node.yes if condition else node.no, scope)
        nodes = (node.condition, node.yes, node.no)
        values = (condition, self(node.yes, scope), self(node.no, scope))
        return apply("select", nodes, values, scope, node.span)

    def _match(self, node: ast.Match, scope: Scope) -> Value:
        subject = self._name(ast.Name(node.subject, span=node.span), scope)
        key = (
            {True: "true", False: "false"}.get(subject, subject)
            if isinstance(subject, bool)
            else subject
        )
        for choice, arm in node.arms:
            if choice == key:
                return self(arm, scope)
        raise fail("definition.match", f"`match {node.subject}` has no arm for {key}", node.span)

    # ---- calls

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        macro = scope.names.get(node.function)
        if macro is None and node.function in PRELUDE:
            params, body = PRELUDE[node.function]
            macro = Macro(params, parse_expr(body), Scope({}, {}, scope.used))
        if isinstance(macro, Macro):
            return self._expand_macro(node, macro, scope)
        if node.function == "inside":
            return self._inside(node, scope)
        values = tuple(self(arg, scope) for arg in node.args)
        builtin = BUILTINS.get(node.function)
        if builtin is not None:
            return self._builtin(node, builtin, values)
        if node.function in LAWS:  # what it is applied to is judged, not computed
            parts = zip(node.args, values, strict=True)
            return eq.Apply(
                node.function, tuple(lift(v, label(arg, scope), arg.span) for arg, v in parts)
            )
        row = SCALARS.get(node.function)
        if row is None or row.symbol:
            raise fail("definition.function", f"there is no function `{node.function}`", node.span)
        if node.function in VARIADIC and len(values) >= 2:
            result, first = values[0], node.args[0]
            for value, arg in zip(values[1:], node.args[1:], strict=True):
                result = apply(node.function, (first, arg), (result, value), scope, node.span)
                first = node
            return result
        if len(values) != row.arity:
            raise fail(
                "definition.arguments",
                f"`{node.function}` takes {row.arity} argument{'s' * (row.arity != 1)}, "
                f"not {len(values)}",
                node.span,
            )
        return apply(node.function, node.args, values, scope, node.span)

    def _builtin(
        self, node: ast.Call, builtin: Callable[..., Value], values: tuple[Value, ...]
    ) -> Value:
        try:
            return builtin(*values)
        except (TypeError, ValueError, AttributeError, LookupError, OverflowError):
            shown = ", ".join(map(print_expr, node.args))
            raise fail(
                "definition.value", f"`{node.function}({shown})` has no value", node.span
            ) from None

    def _expand_macro(self, node: ast.Call, macro: Macro, scope: Scope) -> Value:
        if len(node.args) != len(macro.params):
            raise fail(
                "definition.arguments",
                f"`{node.function}` takes {len(macro.params)} arguments, not {len(node.args)}",
                node.span,
            )
        inner = macro.scope.inner()
        for param, arg in zip(macro.params, node.args, strict=True):
            value = self(arg, scope)
            inner.names[param] = value
            inner.labels[param] = label(arg, scope)
        self._written = self._written + 1 if self._nested else 0
        if self._nested >= _MOST_NESTED or self._written >= _MOST_MACROS:
            message = f"`{node.function}` uses itself, or too many functions inside one another"
            raise fail("definition.depth", message, node.span)
        self._nested += 1
        try:
            return self(macro.body, inner)
        finally:
            self._nested -= 1

    def _inside(self, node: ast.Call, scope: Scope) -> eq.Expr:
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Read):
            raise fail(
                "definition.inside", "`inside` takes one element, as `inside(x[i])`", node.span
            )
        read = self(node.args[0], scope)
        if isinstance(read, eq.Read):
            return eq.Inside(read.tensor, read.index)
        return eq.Const(True)

    # ---- elements

    def _read(self, node: ast.Read, scope: Scope) -> Value:
        source = self._name(ast.Name(node.name, span=node.span), scope)
        if isinstance(source, FamilyRef):
            source = self._member(node, source, scope)
        elif node.member is not None and isinstance(source, tuple):  # a list of lists
            source = self._item(node, source, self.known(node.member, scope))
        elif node.member is not None:
            raise fail("definition.family", f"`{node.name}` is not variadic", node.span)
        if isinstance(source, TensorRef):
            return self._element(node, source, scope)
        if isinstance(source, tuple) and len(node.index) == 1:
            position = node.index[0]
            if not isinstance(position, (ast.Rest, ast.Each)):
                return self._item(node, source, self.known(position, scope))
        raise fail("definition.read", f"`{node.name}` cannot be indexed like this", node.span)

    def _item(self, node: ast.Read, source: tuple[Value, ...], position: Value) -> Value:
        if isinstance(position, tuple):
            return tuple(self._item(node, source, p) for p in position)
        if isinstance(position, int) and -len(source) <= position < len(source):
            return source[position]
        raise fail(
            "definition.item",
            f"`{node.name}` has {len(source)} entries, none at {position}",
            node.span,
        )

    def _member(self, node: ast.Read, family: FamilyRef, scope: Scope) -> TensorRef:
        if node.member is None:
            raise fail(
                "definition.family", f"`{node.name}` is variadic: say which member", node.span
            )
        which = self.known(node.member, scope)
        if isinstance(which, int) and 0 <= which < len(family.members):
            return family.members[which]
        raise fail("definition.family", f"`{node.name}` has no member {which}", node.span)

    def positions(self, subscripts: tuple[ast.Subscript, ...], scope: Scope) -> list[eq.Expr]:
        """Subscripts as one expression an axis, in declared order."""
        found: list[eq.Expr] = []
        for subscript in subscripts:
            node = subscript.body if isinstance(subscript, ast.Each) else subscript
            if isinstance(node, ast.Rest):
                node = ast.Name(node.id, span=node.span)
            elif not isinstance(subscript, ast.Each):
                found.append(self.scalar(node, scope))
                continue
            value = self(node, scope)
            if not isinstance(value, tuple):
                raise fail(
                    "definition.each", f"`{print_expr(node)}` has no axes to go along", node.span
                )
            text = label(node, scope)
            found += [lift(v, f"({text})[{d}]", node.span) for d, v in enumerate(value)]
        return found

    def _element(self, node: ast.Read, tensor: TensorRef, scope: Scope) -> Value:
        if tensor.constant is not None:
            return tensor.constant
        index = self.positions(node.index, scope)
        if len(index) != len(tensor.sizes):
            raise fail(
                "definition.rank",
                f"`{node.name}` has {len(tensor.sizes)} axes; {len(index)} indices are given",
                node.span,
            )
        absent = len(tensor.sizes) - len(tensor.shape)
        actual: list[eq.Expr] = [eq.Const(0)] * len(tensor.shape)
        for declared, (expression, axis) in enumerate(zip(index, tensor.placement, strict=True)):
            if declared < absent:
                continue
            size = tensor.shape[axis]
            if not (tensor.broadcast and size == 1 and tensor.sizes[declared] != 1):
                actual[axis] = expression
        default = None if node.default is None else self.scalar(node.default, scope)
        return eq.Read(tensor.name, tuple(actual), default)

    # ---- reductions and lists

    def _reduce(self, node: ast.Reduce, scope: Scope) -> Value:
        if len(node.binders) == 1 and not node.binders[0].rest:
            binder = node.binders[0]
            bound = self(binder.bound, scope)
            if isinstance(bound, int) and is_written_out(node, binder.bound, scope):
                return self._unroll(node, bound, scope)
        inner = scope.inner()
        binders = self.bind(node.binders, inner)
        where = None if node.where is None else self(node.where, inner)
        if where is False:
            return eq.Const(EMPTY.get(node.kind, 0))
        condition = None if where in (None, True) else lift(where, "", node.span)
        if node.kind == "count" and condition is None:
            return eq.Reduce("sum", binders, None, eq.Const(1))
        body = None if node.body is None else self.scalar(node.body, inner)
        if node.kind in ("all", "any") and isinstance(body, eq.Const):
            neutral = node.kind == "all"
            over = [bound.value for _, bound in binders if isinstance(bound, (eq.Const, eq.Size))]
            nowhere_empty = condition is None and len(over) == len(binders) and all(over)
            if bool(body.value) is neutral or nowhere_empty:
                return bool(body.value)  # the same for every value of the binders
        return eq.Reduce(node.kind, binders, condition, body)

    def bind(
        self, binders: tuple[ast.Binder, ...], inner: Scope
    ) -> tuple[tuple[str, eq.Expr], ...]:
        """Adds the indices of `binders` to `inner`; gives (name, bound) pairs."""
        found: list[tuple[str, eq.Expr]] = []
        for binder in binders:
            bound = self(binder.bound, inner)
            text = label(binder.bound, inner)
            if not binder.rest:
                name = inner.fresh(binder.name)
                found.append((name, lift(_extent(bound, binder.span), text, binder.span)))
                inner.names[binder.name] = eq.Index(name)
            else:
                if not isinstance(bound, tuple):
                    raise fail("definition.rest", f"`{text}` is not a list of sizes", binder.span)
                names = [inner.fresh(f"{binder.name}.{d}") for d in range(len(bound))]
                found += [
                    (n, lift(_extent(b, binder.span), f"{text}[{d}]", binder.span))
                    for d, (n, b) in enumerate(zip(names, bound, strict=True))
                ]
                inner.names[binder.name] = tuple(map(eq.Index, names))
            inner.labels.pop(binder.name, None)
        return tuple(found)

    def _unroll(self, node: ast.Reduce, bound: int, scope: Scope) -> Value:
        if bound > LIMIT:
            raise fail("definition.unroll", f"{bound} terms are too many to write out", node.span)
        terms: list[tuple[Value, Value]] = []
        name, decides = node.binders[0].name, _DECIDES.get(node.kind)
        for i in range(bound):
            inner = scope.inner()
            inner.names[name] = i
            inner.labels[name] = str(i)
            where = True if node.where is None else self(node.where, inner)
            if where is False:
                continue
            body: Value = i if node.kind in ("argmax", "argmin") else 1
            if node.body is not None:
                body = self(node.body, inner)
                if decides is not None and body is decides and where is True:
                    return decides
                if not is_residual(body) and not isinstance(body, tuple):
                    body = Labelled(body, label(node.body, inner))
            terms.append((where, body))
        return combine(node, terms)

    def _comprehension(self, node: ast.Comprehension, scope: Scope) -> tuple[Value, ...]:
        bound = self.known(node.binder.bound, scope)
        if not isinstance(bound, int) or bound > LIMIT:
            raise fail("definition.list", "a list needs a small known length", node.span)
        items: list[Value] = []
        for i in range(bound):
            inner = scope.inner()
            inner.names[node.binder.name] = i
            inner.labels[node.binder.name] = str(i)
            if node.condition is None or self.known(node.condition, inner):
                items.append(self(node.body, inner))
        return tuple(items)
