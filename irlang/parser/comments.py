"""Comments and blank lines, which the grammar ignores, given to the statements they belong to.

A comment on the line where a statement ends trails it; any other belongs to the statement that
follows, or in which it stands; what follows the last statement dangles at the end of its body. In
the tuples of lines an empty one is a blank line. Non-goal: to keep a comment's column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irlang import ast
from irlang.parser.lex import Comment, Source, Tokens

_CONTAINERS = (ast.Op, ast.Model, ast.Block, ast.For)


class _Attacher:
    """Walks comments and statements together, in the order of the text."""

    def __init__(self, comments: list[Comment], source: Source) -> None:
        self.comments = comments
        self.source = source
        self.next = 0

    def take(self, before: int) -> list[Comment]:
        first = self.next
        while self.next < len(self.comments) and self.comments[self.next].start < before:
            self.next += 1
        return self.comments[first : self.next]

    def trailing_of(self, end: int, limit: int) -> str:
        """The comment on the line where something ends, if nothing else stands between."""
        if self.next == len(self.comments):
            return ""
        comment = self.comments[self.next]
        between = self.source.text[end : comment.start]
        if comment.start >= limit or between.strip(" \t\f\v,") or comment.own_line:
            return ""
        self.next += 1
        return comment.text

    def lines_of(self, comments: list[Comment], after: int, start: int | None) -> list[str]:
        """Comments as lines, with one empty line wherever the text has some; `after` is a line."""
        lines: list[str] = []
        for comment in comments:
            line = self.source.line(comment.start)
            if line > after + 1 and (lines or after):
                lines.append("")
            lines.append(comment.text)
            after = line
        if start is not None and start > after + 1 and (lines or after):
            lines.append("")
        return lines

    def body(
        self, statements: tuple[Any, ...], start: int, end: int
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Statements with their comments, and those that dangle; `start` and `end` are offsets."""
        source = self.source
        after = source.line(start) if start else 0
        first = True
        done = []
        for position, statement in enumerate(statements):
            span = statement.span
            begins = source.offset(span.line, span.column)
            ends = source.offset(span.end_line, span.end_column)
            lines = self.lines_of(self.take(begins), after, span.line)
            if first and lines and not lines[0]:
                del lines[0]
            first = False
            parts: dict[str, Any] = {}
            if isinstance(statement, _CONTAINERS):
                opens = self._opening(statement)
                lines += [comment.text for comment in self.take(opens)]
                parts["body"], parts["dangling"] = self.body(statement.body, opens, ends)
            else:
                lines += [comment.text for comment in self.take(ends)]
            following = statements[position + 1].span if position + 1 < len(statements) else None
            limit = source.offset(following.line, following.column) if following else end
            trailing = self.trailing_of(ends, limit)
            after = span.end_line
            if lines or trailing or parts:
                statement = replace(statement, comments=tuple(lines), trailing=trailing, **parts)
            done.append(statement)
        lines = self.lines_of(self.take(end), after, None)
        if not done and lines and not lines[0]:
            del lines[0]
        return tuple(done), tuple(lines)

    def _opening(self, statement: ast.Op | ast.Model | ast.Block | ast.For) -> int:
        """Where the header of a container ends."""
        last = statement.bound if isinstance(statement, ast.For) else statement.outputs[-1]
        return self.source.offset(last.span.end_line, last.span.end_column)


def attach(file: ast.File, tokens: Tokens, source: Source) -> ast.File:
    """`file` with its comments and blank lines in place."""
    attacher = _Attacher(tokens.comments, source)
    comments: tuple[str, ...] = ()
    trailing = ""
    start = 0
    if file.version is not None:
        # A header is two tokens, and has no node of its own.
        header = source.line(tokens.starts[0])
        comments = tuple(attacher.lines_of(attacher.take(tokens.starts[0]), 0, header))
        inside = attacher.take(tokens.ends[1])
        comments += tuple(comment.text for comment in inside)
        limit = tokens.starts[2] if tokens.texts[2] else len(source.text) + 1
        trailing = attacher.trailing_of(tokens.ends[1], limit)
        start = tokens.ends[1]
    items, dangling = attacher.body(file.items, start, len(source.text) + 1)
    return replace(file, items=items, dangling=dangling, comments=comments, trailing=trailing)
