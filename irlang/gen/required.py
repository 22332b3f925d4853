"""What a definition requires of its sizes and attributes, as the generator reads it: equations by
which one follows from others, conditions that a choice must meet, and what is asked for under some
condition.

Non-goal: judging a call, which `irlang.instance` does.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.evaluate import Evaluator
from irlang.scope import CONSTANTS, Macro, Scope

evaluate = Evaluator()
_RANKS = 5  # that are tried of axes yet to be drawn
_FIRST = ast.Number(0, "0")
_COUNTED = ("rank", "given")  # functions of an input that ask for none of its elements


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression of sizes and attributes. names: all that it goes back to; ranked: those of
    which only the number of axes counts. lists: the `let`s it reads entries of, in order;
    functions: those with parameters, if it calls any.
    """

    node: ast.Expr
    names: frozenset[str]
    ranked: frozenset[str]
    lists: tuple[ast.Let, ...]
    functions: tuple[ast.Let, ...]

    def value(self, names: dict[str, Any], known: bool = False) -> Any:
        """Its value; raises `InvalidInput` where it has none.

        known: whether it must be a number, not what is left to compute of one.
        """
        scope = Scope(names, {}, set())
        if self.lists or self.functions:
            scope = scope.inner()
        for let in self.functions:
            scope.names[let.name] = Macro(let.params, let.value, scope)
        for let in self.lists:
            scope.names[let.name] = evaluate(let.value, scope)
        return (evaluate.known if known else evaluate)(self.node, scope)


@dataclass(slots=True)
class Required:
    """What is required. Constants of the definition (`let`) are written out in all of it.

    equal: for a size, pairs (expression that contains it, expression of the same value), from
    `require`s of the form `a == b`; asked: the same where that is one of several ways to meet a
    condition. listed: for a list of sizes, what it may be asked to be. multiples: for a size, pairs
    (expression that contains it, what must divide that), from `F % groups == 0`; divisors: the same
    from the divisor's side. conditions: for a size or an attribute, all that is required of it,
    values of inputs apart. ranks: rests that have as many axes as one another. functions: the
    `let`s with parameters.
    """

    equal: dict[str, list[tuple[ast.Expr, ast.Expr]]] = field(default_factory=dict)
    asked: dict[str, list[tuple[ast.Expr, ast.Expr]]] = field(default_factory=dict)
    listed: dict[str, list[ast.Expr]] = field(default_factory=dict)
    multiples: dict[str, list[tuple[ast.Expr, ast.Expr]]] = field(default_factory=dict)
    divisors: dict[str, list[tuple[ast.Expr, ast.Expr]]] = field(default_factory=dict)
    conditions: dict[str, list[Formula]] = field(default_factory=dict)
    ranks: list[set[str]] = field(default_factory=list)
    lets: dict[str, ast.Expr] = field(default_factory=dict)
    functions: tuple[ast.Let, ...] = ()
    _formulas: dict[int, Formula] = field(default_factory=dict)

    def ranked_with(self, rest: str) -> set[str]:
        """The rests that must have as many axes as `rest`."""
        return next((group for group in self.ranks if rest in group), {rest})

    def behind(self, name: str) -> frozenset[str]:
        """What decides what a size may be asked to be."""
        asked = [other for one, other in self.asked.get(name, ()) if one == ast.Name(name)]
        formulas = map(self.formula, (*asked, *self.listed.get(name, ())))
        return frozenset().union(*(formula.names for formula in formulas)) - {name}

    def fails(self, condition: Formula, names: dict[str, Any]) -> bool:
        """Whether a condition is known to be false, however many axes one of its names will be."""
        unknown = condition.names - names.keys()
        if len(unknown) > 1 or not unknown <= condition.ranked:
            return False
        tried = [{**names, name: (1,) * rank} for name in unknown for rank in range(_RANKS)]
        try:
            return all(condition.value(given) is False for given in tried or (names,))
        except InvalidInput:
            return False

    def formula(self, node: ast.Expr) -> Formula:
        """An expression of the definition; made once for every `node` object."""
        found = self._formulas.get(id(node))
        if found is None or found.node is not node:
            found = self._formulas[id(node)] = _formula(node, self)
        return found


def required(op: ast.Op) -> Required:
    """What a definition requires."""
    lets = [statement for statement in op.body if isinstance(statement, ast.Let)]
    made = Required(functions=tuple(let for let in lets if let.params))
    inputs = {item.name for item in op.inputs}
    for statement in op.body:
        if isinstance(statement, ast.Let) and not statement.params:
            made.lets[statement.name] = written_out(statement.value, made.lets)
        elif isinstance(statement, ast.Require):
            for condition in _conjuncts(written_out(statement.condition, made.lets)):
                _relate(made, condition, inputs)
    return made


def written_out(node: ast.Expr, lets: Mapping[str, ast.Expr]) -> ast.Expr:
    """An expression with constants of the definition in place of their names.

    Lists are left as they are where single entries of them are read.
    """
    out = functools.partial(written_out, lets=lets)
    match node:
        case ast.Name():
            return lets.get(node.id, node)
        case ast.Unary():
            return ast.Unary(node.op, out(node.operand))
        case ast.Binary():
            return ast.Binary(node.op, out(node.left), out(node.right))
        case ast.Chain():
            return ast.Chain(tuple(map(out, node.operands)), node.ops)
        case ast.If():
            return ast.If(out(node.condition), out(node.yes), out(node.no))
        case ast.Match():
            return ast.Match(node.subject, tuple((name, out(arm)) for name, arm in node.arms))
        case ast.Call() if not node.attrs:
            return ast.Call(node.function, tuple(map(out, node.args)))
        case _:
            return node


_names: dict[int, tuple[ast.Node, frozenset[str]]] = {}


def names_in(node: ast.Node) -> frozenset[str]:
    """The names that an expression of a definition mentions."""
    known = _names.get(id(node))
    if known is None or known[0] is not node:
        known = _names[id(node)] = (node, frozenset(mentioned(ast.walk(node))))
    return known[1]


# The field of a node that is a name which a definition gives a value.
_NAMED = {ast.Name: "id", ast.Rest: "id", ast.Read: "name", ast.Arity: "name", ast.Match: "subject"}


def mentioned(parts: Iterable[ast.Node]) -> Iterator[str]:
    """The names that a definition gives a value, as often as they are said."""
    return (getattr(part, _NAMED[type(part)]) for part in parts if type(part) in _NAMED)


def _formula(node: ast.Expr, made: Required) -> Formula:
    used: dict[str, ast.Expr] = {}
    _lists(node, made.lets, used)
    parts = [part for one in (node, *used.values()) for part in ast.walk(one)]
    bound = {part.name for part in parts if isinstance(part, ast.Binder)}
    said = list(mentioned(parts))
    names = frozenset(said) - bound - CONSTANTS.keys() - used.keys()
    ranked = [_counted(part) for part in parts]
    alone = frozenset(n for n in ranked if n and ranked.count(n) == said.count(n))
    called = {part.function for part in parts if isinstance(part, ast.Call)}
    calls = any(let.name in called for let in made.functions)
    lists = tuple(ast.Let(name, value) for name, value in used.items())
    return Formula(node, names, alone & names, lists, made.functions if calls else ())


def _lists(node: ast.Expr, lets: Mapping[str, ast.Expr], used: dict[str, ast.Expr]) -> None:
    """The `let`s that an expression still mentions, those first that others go back to."""
    for name in sorted(names_in(node) & lets.keys() - used.keys()):
        _lists(lets[name], lets, used)
        used[name] = lets[name]


def _conjuncts(node: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _relate(made: Required, node: ast.Expr, inputs: Collection[str]) -> None:
    """Notes what a condition says of sizes."""
    condition = made.formula(node)
    if not condition.names & set(inputs) - condition.ranked:
        for name in condition.names:
            made.conditions.setdefault(name, []).append(condition)
    if not isinstance(node, ast.Chain):
        _ask(made, node)
        return
    for op, left, right in zip(node.ops, node.operands, node.operands[1:], strict=False):
        if op != "==":
            continue
        ranked = (_ranked(left), _ranked(right))
        if ranked[0] and ranked[1]:
            joined = set().union(*(made.ranked_with(name) for name in ranked))
            made.ranks = [g for g in made.ranks if not g & joined] + [joined]
            continue
        remainder = left if isinstance(left, ast.Binary) and left.op == "%" else None
        if remainder is not None and isinstance(right, ast.Number) and right.value == 0:
            pair = (remainder.left, remainder.right)
            for name in names_in(remainder.left):
                made.multiples.setdefault(name, []).append(pair)
            for name in names_in(remainder.right):
                made.divisors.setdefault(name, []).append((remainder.right, remainder.left))
            continue
        _pair(made.equal, left, right)


def _pair(
    found: dict[str, list[tuple[ast.Expr, ast.Expr]]], left: ast.Expr, right: ast.Expr
) -> None:
    for one, other in ((left, right), (right, left)):
        for name in names_in(one):
            found.setdefault(name, []).append((one, other))


def _ask(made: Required, node: ast.Expr) -> None:
    """Notes what sizes are to be in some way to meet a condition."""
    match node:
        case ast.Binary(op="and" | "or"):
            _ask(made, node.left)
            _ask(made, node.right)
        case ast.If():
            _ask(made, node.yes)
            _ask(made, node.no)
        case ast.Chain(ops=("==",), operands=(left, right)):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, ast.Read) and one.index == (_FIRST,):
                    made.listed.setdefault(one.name, []).append(ast.ListOf((other,)))
            _pair(made.asked, left, right)
        case ast.Reduce(binders=(binder,), where=None, body=body) if body is not None:
            entry = _entry(body, binder.name) if node.kind == "all" else None
            if entry is None:
                _ask(made, body)
            elif entry[2]:
                value = ast.Comprehension(entry[1], binder, None)
                made.listed.setdefault(entry[0], []).append(value)
        case _:
            pass


def _entry(node: ast.Expr, index: str) -> tuple[str, ast.Expr, bool] | None:
    """The list whose entry at `index` a condition compares, what that is at most, and whether it is
    just that, at some index.
    """
    match node:
        case ast.Chain(ops=("==" | "<=" as op,), operands=(ast.Read() as one, other)) if _at(
            one, index
        ):
            return one.name, other, op == "=="
        case ast.Chain(ops=("==",), operands=(other, ast.Read() as one)) if _at(one, index):
            return one.name, other, True
        case ast.If():
            yes, no = _entry(node.yes, index), _entry(node.no, index)
            if yes is not None and no is not None and yes[0] == no[0]:
                return yes[0], ast.If(node.condition, yes[1], no[1]), yes[2] or no[2]
    return None


def _at(node: ast.Read, index: str) -> bool:
    return node.index == (ast.Name(index),)


def _counted(node: ast.Node) -> str:
    """The input or list of sizes that is asked for its number of axes, or whether it is there."""
    if isinstance(node, ast.Call) and node.function in _COUNTED:
        return node.args[0].id if isinstance(node.args[0], ast.Name) else ""
    return ""


def _ranked(node: ast.Expr) -> str:
    return _counted(node) if isinstance(node, ast.Call) and node.function == "rank" else ""
