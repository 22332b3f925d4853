"""Edits of a model's text that make a faulty call fit: the generator's repair, in source terms.

Takes a file and what its check found; gives, for a diagnostic of a call, edits after which that
call is valid, and the same in words. What may change: attributes of the call, the literal sizes
of parameters, and, where an operand is computed, a call put before it. Non-goals: calls inside
blocks and repetitions, whose text serves several calls, and inputs of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import Diagnostic, Edit, InvalidInput, Span
from irlang.equations import TensorInfo
from irlang.gen.adapt import Adapters
from irlang.gen.draft import Nested
from irlang.gen.judge import judge, score
from irlang.gen.moves import Move, Retype, SetAttr
from irlang.gen.pattern import pattern
from irlang.gen.repair import mend
from irlang.graph import Graph
from irlang.graph_text import to_expr, to_type
from irlang.interp.call import attributes, pair
from irlang.interp.frame import Frame
from irlang.interp.shape import check
from irlang.parser.printer import print_expr, print_type
from irlang.signature import Given

_ROUNDS = 4
_TRIALS = 400  # calls that are judged in a round
_LONGEST = 256  # numbers of a list in a call that is still worth repairing
_SEARCHES = 24  # types that an adapter is looked for, in one call
_INSERTED = 8.0  # what inserting a call costs, in sizes changed by one
_SITES = 20  # calls of a file that are repaired
_PASSES = 20  # faulty statements that are taken out to learn the types of the others


def with_suggestions(
    file: ast.File, catalog: Catalog, diagnostics: Sequence[Diagnostic]
) -> list[Diagnostic]:
    """The diagnostics, with edits and help where a repair was found and none was known before."""
    found = []
    done: set[tuple[str, Span]] = set()
    for diagnostic in diagnostics:
        if not diagnostic.edits and diagnostic.severity == "error" and len(done) < _SITES:
            site = _site(file, catalog, diagnostic)
            if site is not None and (diagnostic.node, site.statement.span) not in done:
                done.add((diagnostic.node, site.statement.span))
                edits, words = site.repair()
                if edits:
                    diagnostic = replace(diagnostic, edits=edits, help=diagnostic.help or words)
        found.append(diagnostic)
    return found


def _site(file: ast.File, catalog: Catalog, diagnostic: Diagnostic) -> _Site | None:
    """The call that a diagnostic is about, if it is one that can be repaired."""
    own = catalog.with_file(file)
    op = own.op(diagnostic.code.partition(".")[0])
    if op is None:
        return None
    for model in file.models:
        for position, statement in enumerate(model.body):
            if isinstance(statement, ast.Assign) and _within(diagnostic.span, statement.span):
                if statement.value.function != op.name or diagnostic.node != statement.targets[0]:
                    return None
                known = _known(file, catalog, model, position)
                return None if known is None else _make(own, op, model, statement, *known)
    return None


def _within(inner: Span, outer: Span) -> bool:
    start, end = (inner.line, inner.column), (inner.end_line, inner.end_column)
    first, last = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return first <= start and end <= last


def _known(
    file: ast.File, catalog: Catalog, model: ast.Model, position: int
) -> tuple[Graph, Frame] | None:
    """What stands before a statement and is valid: the types of its values, and its constants."""
    body = list(model.body[:position])
    others = tuple(item for item in file.items if not isinstance(item, ast.Model))
    for _ in range(_PASSES):
        cut = replace(model, body=tuple(body), outputs=())
        checked = check(replace(file, items=(*others, cut)), catalog)
        if checked.graphs:
            frame = Frame(dict(checked.graphs[0].sizes), {})
            lets = [s for s in (*others, *body) if isinstance(s, ast.Let)]
            for statement in lets:
                try:
                    frame.names[statement.name] = frame.setting(statement.value)
                except InvalidInput:
                    return None
            return checked.graphs[0], frame
        errors = [d.span for d in checked.diagnostics if d.severity == "error"]
        kept = [s for s in body if not any(_within(span, s.span) for span in errors)]
        if len(kept) == len(body):
            return None
        body = kept
    return None


@dataclass(slots=True)
class _Site:
    """A faulty call.

    given, attrs: as `instantiate` takes them. operands, nodes: where inputs and attributes are
    written. taken: names that are in use. tried: adapters looked for.
    """

    catalog: Catalog
    op: ast.Op
    statement: ast.Assign
    params: dict[str, ast.Param]
    taken: set[str]
    given: dict[str, Given]
    attrs: dict[str, Any]
    operands: dict[str, list[ast.Expr]]
    nodes: dict[str, ast.Expr]
    tried: dict[tuple[str, TensorInfo], Nested | None] = field(default_factory=dict)

    def repair(self) -> tuple[tuple[Edit, ...], str]:
        """Edits after which the call fits, and what they do; nothing where none are found."""
        instance = judge(self.op, self.given, self.attrs)
        if instance is None or score(instance) == 0 or any(map(_endless, self.attrs.values())):
            return (), ""
        course = mend(instance, self.attrs, self.expressible, _ROUNDS, _TRIALS, self.price)
        if not course.fits:
            return (), ""
        edits: list[Edit] = []
        words: list[str] = []
        for move in _last_of_each(course.kept):
            made = self.edits(move)
            if made is None:
                return (), ""
            edits += made[0]
            words.append(made[1])
        gathered = self.gathered(edits)
        return gathered, "; ".join(dict.fromkeys(words)) if gathered else ""

    def expressible(self, move: Move) -> bool:
        """Whether a move can be written as edits of this text."""
        return isinstance(move, SetAttr) or self.edits(move) is not None

    def price(self, move: Move) -> float:
        """Beside how much it changes: a call more is dearer than another number."""
        named = isinstance(move, Retype) and self.operands[move.name][move.member or 0]
        return _INSERTED if isinstance(named, ast.Name) and named.id not in self.params else 0.0

    def edits(self, move: Move) -> tuple[list[Edit], str] | None:
        """A move in source terms: the edits, and the words for them."""
        if isinstance(move, SetAttr):
            text = print_expr(to_expr(move.value))
            words = f"set {move.name} = {text}"
            if move.name in self.nodes:
                return [Edit(self.nodes[move.name].span, text)], words
            return [Edit(_before_end(self.statement.value.span), f"{move.name} = {text}")], words
        node = self.operands[move.name][move.member or 0]
        if not isinstance(node, ast.Name):
            return None
        param = self.params.get(node.id)
        if param is not None:
            return self.declared(node.id, param, move)
        return self.adapted(node, move)

    def declared(self, name: str, param: ast.Param, move: Retype) -> tuple[list[Edit], str] | None:
        """Another type of a parameter, as far as its sizes are written as numbers."""
        written, wanted = param.type, to_type(move.info)
        words = f"declare {name}: {print_type(wanted)}"
        if param.value is not None and not isinstance(param.value, ast.Number):
            return None
        if len(written.dims) != len(wanted.dims) or written.dtype != wanted.dtype:
            if not all(isinstance(dim.size, ast.Number) for dim in written.dims):
                return None
            return [Edit(written.span, print_type(wanted))], words
        old = self.info(move)
        edits = []
        for dim, before, after in zip(written.dims, old.shape, move.info.shape, strict=True):
            if before != after:
                if not isinstance(dim.size, ast.Number):
                    return None
                edits.append(Edit(dim.span, str(after)))
        return edits, words

    def info(self, move: Retype) -> TensorInfo:
        """The type that an operand has now."""
        given = self.given[move.name]
        info = given[move.member or 0] if isinstance(given, tuple) else given
        assert info is not None
        return info

    def adapted(self, node: ast.Name, move: Retype) -> tuple[list[Edit], str] | None:
        """A call before the statement that gives an operand the type that is wanted."""
        key = (node.id, move.info)
        if key not in self.tried:
            if len(self.tried) >= _SEARCHES:
                return None
            adapters = _adapters(self.catalog)
            self.tried[key] = adapters.adapt(node.id, self.info(move), move.info)
        nested = self.tried[key]
        if nested is None:
            return None
        draft = nested.draft
        named = tuple((key, to_expr(value)) for key, value in draft.attrs.items())
        call = print_expr(ast.Call(draft.op.name, (ast.Name(node.id),), named))
        name = node.id + "_"
        while name in self.taken:
            name += "_"
        span = self.statement.span
        line = f"{name} = {call}\n{' ' * (span.column - 1)}"
        return [Edit(_start(span), line), Edit(node.span, name)], f"insert {name} = {call}"

    def gathered(self, edits: list[Edit]) -> tuple[Edit, ...]:
        """One edit a place, with the punctuation that added attributes need; none where two
        moves want different texts in one place.
        """
        texts: dict[Span, dict[str, None]] = {}
        for edit in edits:
            texts.setdefault(edit.span, {})[edit.text] = None
        found: list[Edit] = []
        for span, wanted in texts.items():
            text = "".join(wanted)
            if span == _before_end(self.statement.value.span):
                mark = ", " if self.statement.value.attrs else "; "
                text = mark + ", ".join(wanted)
            elif len(wanted) > 1:
                names = [line.partition(" =")[0] for line in wanted]
                if span != _start(self.statement.span) or len(set(names)) < len(names):
                    return ()
            found.append(Edit(span, text))
        return tuple(found)


def _start(span: Span) -> Span:
    """The empty place before a statement."""
    return Span(span.file, span.line, span.column, span.line, span.column)


def _before_end(span: Span) -> Span:
    """The empty place before the parenthesis that closes a call."""
    return Span(span.file, span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)


def _endless(value: object) -> bool:
    """Whether a list is so long that hundreds of calls with it take longer than anybody waits."""
    return isinstance(value, (list, tuple)) and len(value) > _LONGEST


def _last_of_each(moves: Iterable[Move]) -> list[Move]:
    """The last move for every attribute and operand: it replaces those before."""
    found: dict[tuple[str, int | None], Move] = {}
    for move in moves:
        found[move.name, move.member if isinstance(move, Retype) else None] = move
    return list(found.values())


@lru_cache(maxsize=4)
def _adapters(catalog: Catalog) -> Adapters:
    return Adapters(list(map(pattern, catalog)))


def _make(
    catalog: Catalog,
    op: ast.Op,
    model: ast.Model,
    statement: ast.Assign,
    graph: Graph,
    frame: Frame,
) -> _Site | None:
    """A site, if its operands are values with a name, and its attributes known."""
    call = statement.value
    pairs, faults = pair(op, call)
    settings, more, known = attributes(op, call, frame)
    if faults or more or not known:
        return None
    families = {item.name for item in op.inputs if item.family}
    given: dict[str, Given] = {}
    operands: dict[str, list[ast.Expr]] = {}
    for formal, node in pairs:
        nodes = node.items if isinstance(node, ast.ListOf) else (node,)
        for one in nodes:
            info = graph.values.get(one.id) if isinstance(one, ast.Name) else None
            if info is None:
                return None
            operands.setdefault(formal.name, []).append(one)
            earlier = given.get(formal.name, ())
            members = earlier if isinstance(earlier, tuple) else ()
            given[formal.name] = (*members, info) if formal.name in families else info
    params = {s.name: s for s in model.body if isinstance(s, ast.Param)}
    taken = {n.id for n in ast.walk(model) if isinstance(n, ast.Name)} | set(graph.values)
    taken |= {t for s in model.body if isinstance(s, ast.Assign) for t in s.targets}
    attrs = {name: value for name, (value, _) in settings.items()}
    nodes_ = {name: node for name, (_, node) in settings.items()}
    return _Site(catalog, op, statement, params, taken, given, attrs, operands, nodes_)
