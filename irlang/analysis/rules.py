"""Rewriting of calls by rules that are written in the language (`guards.nnir`).

A rule is a block with two calls, `before` and `after`. A call of a model matches where it is that
of `before`, its operands being made by the calls inside it; in the text, `after` takes its place.
The function `call` stands for any operator, its operand for each real one, and its attributes for
those of the same name.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from irlang import ast
from irlang.catalog import builtin
from irlang.diagnostics import Edit, Span
from irlang.dtypes import DTYPES, DType
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.graph import Graph, Node
from irlang.interp.range import Range
from irlang.parser import parse
from irlang.parser.printer import print_expr
from irlang.scope import Scope

ANY = "call"  # the function of a rule that is about every operator
_LISTED = 1e7  # a whole number that is smaller is written with all of its digits
_TINY = 1e-6  # what a logarithm may start at in a type whose numbers are that small
_ROUNDED = 64  # roundings by which a value may be out of a range that a rule asks for
_ROUNDINGS = 2, 8  # next to 1, that a small number is
_SMALL, _ONE = "small", "one"
_MOST = "most"  # the setting that stands for as large a number as can be proved to do


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewriting. tensors, settings: the names that stand for operands and for attributes.

    within: between what an operand must lie, by its name, where that is said.
    """

    why: str
    before: ast.Call
    after: ast.Call
    tensors: frozenset[str]
    settings: frozenset[str]
    within: Mapping[str, tuple[float, float]]


@cache
def rules() -> tuple[Rule, ...]:
    """The rules of `guards.nnir`, in their order."""
    text = Path(__file__).with_name("guards.nnir").read_text("utf-8")
    return tuple(map(_rule, parse(text).blocks))


def _rule(block: ast.Block) -> Rule:
    sides = {s.targets[0]: s.value for s in block.body if isinstance(s, ast.Assign)}
    return Rule(
        " ".join(block.doc.split()), sides["before"], sides["after"],
        frozenset(item.name for item in block.inputs), frozenset(a.name for a in block.attrs),
        {item.name: _ends(*item.within) for item in block.inputs if item.within is not None},
    )  # fmt: skip


def _ends(low: ast.Expr, high: ast.Expr) -> tuple[float, float]:
    evaluate, scope = Evaluator(), Scope({}, {}, set())
    return float(evaluate.known(low, scope)), float(evaluate.known(high, scope))


def numbers(dtype: DType) -> dict[str, float]:
    """What names of numbers stand for in an element type.

    small: a few roundings next to 1, so that it shows when it is added there. one: the number so
    far below 1. large: an exponent that leaves room for a sum of exponentials. far: a score so far
    from all others that its exponential is 0 beside theirs.
    """
    far = 10.0 ** min(16, math.floor(math.log10(dtype.largest)))
    large = math.floor(0.9 * math.log(dtype.largest))
    small = smalls(dtype)[-1]
    return {_SMALL: small, _ONE: 1 - small, "large": large, "far": far}


def smalls(dtype: DType) -> tuple[float, ...]:
    """What `small` may stand for in an element type, the least first, as that changes least: a
    number that may be lost beside 1, one that is two roundings there at least, and eight.
    """
    least = max(_TINY, _power_of_ten(dtype.tiny))
    shown = [_power_of_ten(times * dtype.unit) for times in _ROUNDINGS]
    return (*(one for one in (least,) if one < shown[0]), *dict.fromkeys(shown))


def _power_of_ten(number: float) -> float:
    """The least that is no less than a number."""
    return 10.0 ** math.ceil(math.log10(number))


def bounds(dtype: DType) -> tuple[float, ...]:
    """The numbers 1, 2, 5, 10, … that an element type has."""
    powers = range(int(math.log10(dtype.largest)) + 1)
    found = (float(f"{first}e{power}") for power in powers for first in (1, 2, 5))
    return tuple(number for number in found if number < dtype.largest)


@dataclass(slots=True)
class Written:
    """The calls of a graph in its text, who makes which value, and who reads it.

    readers: the names of calls; an empty one where the value is a result of the model.
    """

    graph: Graph
    calls: dict[Span, ast.Call]
    statements: dict[Span, ast.Assign]
    makers: dict[str, Node]
    readers: dict[str, set[str]]

    def call(self, node: Node) -> ast.Call | None:
        """The text of a call."""
        return self.calls.get(_place(node.span))


def written(graph: Graph, file: ast.File) -> Written:
    """Finds the calls of a graph in the file that it comes from."""
    calls: dict[Span, ast.Call] = {}
    statements: dict[Span, ast.Assign] = {}
    for part in (p for item in file.items for p in ast.walk(item)):
        if isinstance(part, ast.Call):
            calls[_place(part.span)] = part
        elif isinstance(part, ast.Assign):
            calls[_place(part.span)] = part.value
            statements[_place(part.span)] = part
    makers = {value: node for node in graph.nodes for value in node.outputs}
    readers: dict[str, set[str]] = {value: {""} for value in graph.outputs.values()}
    for node in graph.nodes:
        for value in node.operands():
            readers.setdefault(value, set()).add(node.name)
    return Written(graph, calls, statements, makers, readers)


def _place(span: Span) -> Span:
    return span._replace(file="")


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A rule that fits. text: the new call. edits: what writes it. met: the calls that matched.

    looser: the same with larger bounds, from the next larger one on; the largest that is proved
    changes least.
    """

    rule: Rule
    text: str
    edits: tuple[Edit, ...]
    met: tuple[Node, ...]
    looser: Sequence[Rewriting] = ()


@dataclass(frozen=True, slots=True)
class _Looser(Sequence[Rewriting]):
    """A rewriting with one bound after the other, each written when it is asked for."""

    rewritten: Callable[[float], Rewriting | None]
    bounds: tuple[float, ...]  # those with which it changes anything

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, at: Any) -> Any:
        return self.rewritten(self.bounds[at])


@dataclass(slots=True)
class _Match:
    """What the names of a rule stand for; the calls that were met; those with a statement apart.

    moved: those of the last whose operands are calls, which only one statement may hold. unsaid:
    the names of attributes that no call says, so that they stand for defaults.
    """

    names: dict[str, ast.Expr] = field(default_factory=dict)
    unsaid: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    met: list[Node] = field(default_factory=list)
    inner: list[Node] = field(default_factory=list)
    moved: list[Node] = field(default_factory=list)


def rewritings(
    node: Node, text: Written, dtype: DType, values: Mapping[str, Range], unsafe: bool = True
) -> Iterator[Rewriting]:
    """The rules that fit a call.

    values: between what every value of the graph lies. unsafe: whether the call itself needs one;
    else only what mends a call inside it is of use. Calls that only the replaced one has read are
    taken out of the text.
    """
    call = text.call(node)
    if call is None:
        return
    for rule in rules():
        if rule.before.function != node.op.name and not (unsafe and rule.before.function == ANY):
            continue
        ladder = bounds(dtype) if _MOST in rule.settings else (0.0,)
        for known in _tried(rule, dtype):
            made = partial(_rewriting, rule, node, call, text, known, values)
            first = made(ladder[0])
            if first is not None:
                # what fits with no bound but a wider one changes nothing
                ends = bisect_left(ladder, True, key=partial(_is_idle, made))
                yield replace(first, looser=_Looser(made, ladder[1:ends]))


def _is_idle(made: Callable[[float], Rewriting | None], most: float) -> bool:
    """Whether nothing changes with a bound."""
    return made(most) is None


def _tried(rule: Rule, dtype: DType) -> Iterator[dict[str, float]]:
    """What the names of numbers in a rule stand for, one choice after the other."""
    usual, choices = numbers(dtype), smalls(dtype)
    near = [small for small in choices if 1 - small != 1 and small >= 2 * dtype.unit]
    if _SMALL in rule.settings:
        for small in choices:
            yield {**usual, _SMALL: small, _ONE: 1 - max(small, near[0])}
    elif _ONE in rule.settings:
        for small in near:
            yield {**usual, _ONE: 1 - small}
    else:
        yield usual


def _rewriting(
    rule: Rule,
    node: Node,
    call: ast.Call,
    text: Written,
    known: Mapping[str, float],
    values: Mapping[str, Range],
    most: float,
) -> Rewriting | None:
    """A call after a rule, with a number for `most`; None where the rule does not fit.

    known: what the other names of numbers stand for.
    """
    settings = {**known, _MOST: most}
    match = _Match({n: _number(v) for n, v in settings.items() if n in rule.settings})
    if rule.before.function == ANY:
        made = _any(rule, node, call, text.graph, values, match, most)
        if made is None:
            return None
        new = print_expr(made)
        return Rewriting(rule, new, (Edit(call.span, new),), (node,))
    if not _fits(rule.before, node, call, text, rule, match):
        return None
    if not all(_fit(match.values[n], ends, values, text) for n, ends in rule.within.items()):
        return None
    new = print_expr(_filled(rule.after, match.names, match.unsaid))
    unread = _unread(match, text)
    if any(_place(one.span) not in unread for one in match.moved):
        return None
    edits = [Edit(call.span, new), *(Edit(lines, "") for lines in unread.values())]
    return Rewriting(rule, new, tuple(edits), tuple(match.met))


def _any(
    rule: Rule,
    node: Node,
    call: ast.Call,
    graph: Graph,
    values: Mapping[str, Range],
    match: _Match,
    most: float,
) -> ast.Call | None:
    """A call of any operator after a rule about all; None where nothing of it would change.

    An operand changes where it is real, no number of the text, and not inside the bound anyway.
    """
    (formal,), (new,) = rule.tensors, rule.after.args
    ends = rule.within.get(formal, (-math.inf, math.inf))
    arguments = list(call.args)
    for place, (argument, value) in enumerate(zip(call.args, node.operands(), strict=False)):
        real = graph.values[value].kind == "real" and not isinstance(argument, ast.Number)
        if real and not _within(values[value], (-most, most)):
            if not _within(values[value], ends):
                return None
            arguments[place] = _filled(new, {**match.names, formal: argument})
    attributes = dict(call.attrs)
    for key, wanted in rule.after.attrs:
        if not any(attr.name == key for attr in node.op.attrs):
            return None
        attributes[key] = _filled(wanted, match.names)
    made = ast.Call(call.function, tuple(arguments), tuple(attributes.items()))
    same = made.args == call.args and made.attrs == call.attrs
    return None if same else made


def _within(found: Range, ends: tuple[float, float], slack: float = 0.0) -> bool:
    """Whether a value lies between two numbers, or so little beside them."""
    return ends[0] - slack <= found.low and found.high <= ends[1] + slack


def _fit(value: str, ends: tuple[float, float], values: Mapping[str, Range], text: Written) -> bool:
    """Whether a value lies where a rule asks for it, but for rounding."""
    return _within(values[value], ends, _rounding(values[value], text.graph.values[value]))


def _rounding(found: Range, info: TensorInfo) -> float:
    """By how much rounding may have brought a value out of where it should lie: what is left of 1
    when a mean of numbers up to 1 is taken away is negative by that alone.
    """
    if info.kind != "real" or not math.isfinite(found.high - found.low):
        return 0.0
    return _ROUNDED * DTYPES[info.dtype].unit * max(abs(found.low), abs(found.high))


def _fits(
    pattern: ast.Call, node: Node, call: ast.Call, text: Written, rule: Rule, match: _Match
) -> bool:
    if node.op.name != pattern.function or len(call.args) != len(pattern.args):
        return False
    match.met.append(node)
    operands = list(node.operands())
    for wanted, argument, value in zip(pattern.args, call.args, operands, strict=False):
        if not _operand(wanted, argument, value, text, rule, match):
            return False
    given = dict(call.attrs)
    return all(_setting(w, given.get(key), node, key, rule, match) for key, w in pattern.attrs)


def _operand(
    wanted: ast.Expr, argument: ast.Expr, value: str, text: Written, rule: Rule, match: _Match
) -> bool:
    if isinstance(wanted, ast.Name) and wanted.id in rule.tensors:
        if wanted.id in match.names:
            return match.values[wanted.id] == value
        match.names[wanted.id] = argument
        match.values[wanted.id] = value
        return True
    if isinstance(wanted, ast.Number):
        return bool(_constant(text.graph, value) == wanted.value)
    if not isinstance(wanted, ast.Call):
        return False
    maker = text.makers.get(value)
    made = None if maker is None else text.call(maker)
    if maker is None or made is None:
        return False
    apart = not isinstance(argument, ast.Call)
    if apart and not all(_plain(part, text.graph) for part in made.args):
        return False  # its operands may mean something else where the new call stands
    if apart:
        match.inner.append(maker)
        if not all(isinstance(part, ast.Name) for part in made.args):
            match.moved.append(maker)
    return _fits(wanted, maker, made, text, rule, match)


def _constant(graph: Graph, value: str) -> Any:
    """The number that a parameter is everywhere, or None."""
    initial = graph.params[value].initial if value in graph.params else None
    return initial.args[0] if initial is not None and initial.kind == "constant" else None


def _plain(argument: ast.Expr, graph: Graph) -> bool:
    """Whether an operand means the same all over the model: it has values of the outermost body."""
    if isinstance(argument, ast.Call):
        return all(_plain(part, graph) for part in argument.args)
    return isinstance(argument, ast.Number) or (
        isinstance(argument, ast.Name) and argument.id in graph.values
    )


def _setting(
    wanted: ast.Expr, given: ast.Expr | None, node: Node, key: str, rule: Rule, match: _Match
) -> bool:
    if given is None:  # not said in the call: its default
        given = _default(node.op, key)
        if isinstance(wanted, ast.Name) and wanted.id not in match.names:
            match.unsaid.add(wanted.id)
    if given is None:
        return False
    if isinstance(wanted, ast.ListOf) and isinstance(given, ast.ListOf):
        pairs = zip(wanted.items, given.items, strict=False)
        same = len(wanted.items) == len(given.items)
        return same and all(_setting(w, g, node, key, rule, match) for w, g in pairs)
    if isinstance(wanted, ast.Name) and wanted.id in rule.settings:
        return match.names.setdefault(wanted.id, given) == given
    return wanted == given


def _default(op: ast.Op | None, key: str) -> ast.Expr | None:
    """What an attribute is by default."""
    attrs = () if op is None else op.attrs
    return next((attr.default for attr in attrs if attr.name == key), None)


def _filled(expr: Any, names: Mapping[str, ast.Expr], unsaid: Set[str] = frozenset()) -> Any:
    """The expression with what its names stand for; unsaid: which need not be said either, where
    they are the default again.
    """
    if isinstance(expr, ast.Name):
        return names.get(expr.id, expr)
    if isinstance(expr, ast.Call):
        op = builtin().op(expr.function)
        attrs = tuple(
            (key, filled)
            for key, value in expr.attrs
            if (filled := _filled(value, names)) != _default(op, key)
            or not (isinstance(value, ast.Name) and value.id in unsaid)
        )
        args = tuple(_filled(arg, names, unsaid) for arg in expr.args)
        return ast.Call(expr.function, args, attrs)
    if isinstance(expr, ast.Unary):
        return ast.Unary(expr.op, _filled(expr.operand, names))
    if isinstance(expr, ast.Binary):
        return ast.Binary(expr.op, _filled(expr.left, names), _filled(expr.right, names))
    return expr


def _number(value: float) -> ast.Number:
    whole = value == int(value) and abs(value) < _LISTED
    text = str(int(value)) if whole else f"{value:g}".replace("e-0", "e-").replace("e+", "e")
    return ast.Number(int(text) if text.isdigit() else float(text), text)


def _unread(match: _Match, text: Written) -> dict[Span, Span]:
    """The statements of calls that nobody reads any more, each with the lines that it takes."""
    gone = {one.name for one in match.met}
    found: dict[Span, Span] = {}
    for one in match.inner:
        statement = text.statements.get(_place(one.span))
        readers = set[str]().union(*(text.readers.get(value, ()) for value in one.outputs))
        if statement is not None and readers <= gone:
            first = statement.span.line - len(statement.comments)
            file, last = statement.span.file, statement.span.end_line + 1
            found[_place(one.span)] = Span(file, first, 1, last, 1)
    return found
