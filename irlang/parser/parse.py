"""Text to syntax tree: a table-driven LALR(1) parser without recursion.

The table is lark's (see `table`); the loop is our own because it makes the tree at once, with exact
spans, several times faster than by way of lark's, and because an error's state says what would have
been right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from irlang import ast
from irlang.diagnostics import Diagnostic, InvalidInput, Span, fail
from irlang.parser.build import Builder
from irlang.parser.comments import attach
from irlang.parser.errors import MOST_ERRORS, explain
from irlang.parser.lex import Source, Tokens, scan
from irlang.parser.table import END, Rule, Table, table

# Every meaning walks the tree by recursion; both limits keep that far from Python's own.
DEEPEST = 200
_DEEPEST_STACK = 4000

# Bidirectional controls can make a text read otherwise than it is; the others have no use here.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


class Unexpected(Exception):
    """The parser stopped at a token that no rule allows in this state."""

    def __init__(self, index: int, states: list[int]) -> None:
        super().__init__(f"token {index}")
        self.index = index
        self.states = states


def parse(text: str, file: str = "") -> ast.File:
    """The file that `text` is; raises `InvalidInput` with every syntax error that can be told."""
    tree = _parse(text, "start", file)
    assert isinstance(tree, ast.File)
    return tree


@cache
def parse_expr(text: str) -> ast.Expr:
    """A single expression, as in the messages of `require`."""
    return _parse(text, "expr", "")  # type: ignore[return-value]


def parse_type(text: str) -> ast.TensorType:
    """A tensor type on its own, `f32[N, 3]`."""
    tree = _parse(text, "tensor", "")
    assert isinstance(tree, ast.TensorType)
    return tree


def _parse(text: str, start: str, file: str) -> object:
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    source = Source(text, file)
    if match := _FORBIDDEN.search(text):
        raise fail(
            "syntax.character",
            f"the character U+{ord(match.group()):04X} may not stand in a .nnir file",
            source.span(*match.span()),
        )
    grammar = table()
    tokens = scan(text, grammar)
    builder = Builder(file)
    try:
        tree = run(grammar, tokens, start, builder, source)
    except Unexpected as error:
        faults = _faults(grammar, tokens, start, source, error)
        raise InvalidInput(*sorted(faults, key=lambda fault: fault.span)) from None
    if builder.faults:
        raise InvalidInput(*sorted(builder.faults, key=lambda fault: fault.span))
    if isinstance(tree, ast.File):
        return attach(tree, tokens, source)
    return tree


def _faults(
    grammar: Table, tokens: Tokens, start: str, source: Source, error: Unexpected
) -> list[Diagnostic]:
    """The error, and those found after leaving out the statement or item that it stands in."""
    faults: list[Diagnostic] = []
    while True:
        fault, rest = explain(grammar, tokens, error.index, error.states, source)
        # What is left open by an earlier fault is no fault of its own.
        if not faults or (fault.code != "syntax.unopened" and "`}`" not in fault.label):
            faults.append(fault)
        if rest is None or start != "start" or len(faults) >= MOST_ERRORS:
            return faults
        tokens = rest
        builder = Builder(source.file)
        try:
            run(grammar, tokens, start, builder, source)
        except Unexpected as another:
            error = another
        except InvalidInput as deep:
            return [*faults, *deep.diagnostics]
        else:
            return [*faults, *builder.faults]


def run(grammar: Table, tokens: Tokens, start: str, builder: Builder, source: Source) -> object:
    """The tree of `tokens`; raises `Unexpected`, or `InvalidInput` where it nests too deeply."""
    table_states, rules, accepting = grammar.states, grammar.rules, grammar.accepting
    make: list[Callable[[Span, list[Any]], Any] | None] = [
        None if rule.gathers else getattr(builder, rule.method, None) for rule in rules
    ]
    span = source.span
    states = [grammar.starts[start]]
    values: list[Any] = []
    starts: list[int] = []
    ends: list[int] = []
    depths: list[int] = []
    for index, kind in enumerate(tokens.kinds):
        while True:
            actions = table_states[states[-1]]
            action = actions.get(kind)
            if action is None:
                kind = _otherwise(grammar, kind, tokens.texts[index], actions)
                action = actions.get(kind)
                if action is None:
                    raise Unexpected(index, states)
            if action >= 0:
                break
            rule = rules[-1 - action]
            size = rule.size
            if rule.single and size == 1:  # the commonest: `factor` is a `unary`
                states[-1] = table_states[states[-2]][rule.origin]
                if kind == END and states[-1] in accepting:
                    return values[-1]
                continue
            if size:
                first, last, depth = starts[-size], ends[-1], max(depths[-size:])
                children = _children(rule, values[-size:])
                del states[-size:], values[-size:], starts[-size:], ends[-size:], depths[-size:]
            else:
                first = last = ends[-1] if ends else 0
                depth, children = 0, [None] * rule.absent
            method = make[-1 - action]
            if rule.gathers:
                value: Any = children
            elif rule.single and len(children) == 1:
                value = children[0]
            else:
                assert method is not None, rule.method
                value = method(span(first, last), children)
                depth += 1
                if depth > DEEPEST:
                    raise _too_deep(span(first, last))
            states.append(table_states[states[-1]][rule.origin])
            if kind == END and states[-1] in accepting:
                return value
            values.append(value)
            starts.append(first)
            ends.append(last)
            depths.append(depth)
        states.append(action)
        values.append(tokens.texts[index])
        starts.append(tokens.starts[index])
        ends.append(tokens.ends[index])
        depths.append(0)
        if len(states) > _DEEPEST_STACK:
            raise _too_deep(span(tokens.starts[index], tokens.ends[index]))
    raise AssertionError("the last token is $END")


def _too_deep(place: Span) -> InvalidInput:
    return fail(
        "syntax.depth",
        f"this nests more than {DEEPEST} levels deep",
        place,
        help="name a part of it in a statement of its own",
    )


def _children(rule: Rule, symbols: list[Any]) -> list[Any]:
    """What a node is made of: kept symbols, lists spliced, None for what is absent."""
    kept = rule.kept
    if kept and kept[0][1] and not kept[0][2]:
        # A left-recursive list grows in place; copying it would make long files quadratic.
        children: list[Any] = symbols[kept[0][0]]
        kept = kept[1:]
    else:
        children = []
    for position, spliced, absent in kept:
        if absent:
            children.extend([None] * absent)
        if spliced:
            children.extend(symbols[position])
        else:
            children.append(symbols[position])
    if rule.absent:
        children.extend([None] * rule.absent)
    return children


_NAMES_ELSEWHERE = frozenset(("COUNT", "QUANTIFIER", "REDUCER"))


def _otherwise(grammar: Table, kind: str, text: str, actions: dict[str, int]) -> str:
    """What else a token may be: `ties`, `count` and `sum` are names where no keyword can stand."""
    other = grammar.others.get(text, "")
    return other if other in actions else "NAME" if kind in _NAMES_ELSEWHERE else ""
