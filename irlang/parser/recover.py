"""Where to go on after a syntax error, so that one run tells all of them and no cascade.

The statement or item with the fault is left out, and the rest is parsed anew. Non-goal: to guess
what was meant.
"""

from __future__ import annotations

import re

from irlang.parser.lex import Source, Tokens
from irlang.parser.table import END

ITEMS = frozenset(("OP", "MODEL", "BLOCK", "DOC"))
STATEMENTS = frozenset(("PARAM", "LET", "FOR", "REQUIRE", "ENSURE", "SOME", "GRAD", "UNSPECIFIED"))

_HEADED = ITEMS | {"FOR"}


def first_on_line(tokens: Tokens, index: int, source: Source) -> bool:
    """Whether a token is the first of its line."""
    if index <= 0:
        return True
    return source.line(tokens.ends[index - 1]) < source.line(tokens.starts[index])


def _starts_statement(tokens: Tokens, index: int, source: Source) -> bool:
    kind = tokens.kinds[index]
    if kind in STATEMENTS or kind in ITEMS:
        return first_on_line(tokens, index, source)
    if not re.fullmatch("NAME|COUNT|REDUCER|QUANTIFIER", kind):
        return False
    if not first_on_line(tokens, index, source):
        return False
    following = tokens.kinds[index + 1]
    return following in ("EQUAL", "LSQB", "COMMA") or (following == "CMP")


def skip(tokens: Tokens, index: int, source: Source, *, complete: bool) -> Tokens | None:
    """`tokens` without the statement, or item, around token `index`; None if nothing is left.

    complete: what stands before the token is whole, so that the fault is not of the statement
    before. Braces stay in balance: what follows is not reported for this fault again.
    """
    kinds = tokens.kinds
    if kinds[index] == END:
        return None
    if kinds[index] in ITEMS and index > 0 and not complete:
        return _closed(tokens, index)
    first = _statement_start(tokens, index, source)
    if first == index and not complete and index > 0 and kinds[index - 1] != "LBRACE":
        first = _statement_start(tokens, index - 1, source)
        return (
            tokens.without(first, index) if kinds[first] not in _HEADED else _closed(tokens, index)
        )
    last = max(_statement_end(tokens, first, index, source), first + 1)
    rest = tokens.without(first, last)
    return rest if len(rest.kinds) > 1 else None


def _statement_start(tokens: Tokens, index: int, source: Source) -> int:
    """The token that the statement around `index` starts with."""
    kinds = tokens.kinds
    first = index
    while first > 0 and not _starts_statement(tokens, first, source):
        # After a name or a colon, `{` opens a match or a list of choices.
        body = kinds[first - 1] == "LBRACE" and kinds[first - 2] not in ("NAME", "COLON")
        if body or (kinds[first - 1] == "RBRACE" and kinds[index] == "RBRACE"):
            break
        first -= 1
    if first > 0 and kinds[first - 1] == "DOC":
        first -= 1
    return first


def _statement_end(tokens: Tokens, first: int, index: int, source: Source) -> int:
    """The token after the statement that starts at `first` and has a fault at `index`."""
    kinds = tokens.kinds
    if kinds[first] in ITEMS:
        last = index + 1
        while kinds[last] != END and not (
            kinds[last] in ITEMS and first_on_line(tokens, last, source)
        ):
            last += 1
        return last
    depth = 0
    for last in range(first, len(kinds)):
        kind = kinds[last]
        if kind == END:
            return last
        if kind == "LBRACE":
            depth += 1
        elif kind == "RBRACE":
            if depth == 0:
                return last
            depth -= 1
            if depth == 0 and kinds[first] == "FOR":
                return last + 1
        elif (
            last > index
            and _starts_statement(tokens, last, source)
            and (kinds[first] != "FOR" or kind in ITEMS)
        ):
            return last
    return len(kinds) - 1


def _closed(tokens: Tokens, index: int) -> Tokens:
    place = tokens.ends[index - 1]
    rest = tokens.without(index, index)
    rest.kinds.insert(index, "RBRACE")
    rest.texts.insert(index, "}")
    rest.starts.insert(index, place)
    rest.ends.insert(index, place)
    return rest
