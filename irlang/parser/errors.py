"""Syntax errors in the user's words.

`explain` turns the state in which the parser stopped into a diagnostic: the special cases below
first, each a function that knows one common slip; else what was expected and what was found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from irlang.diagnostics import Diagnostic, Edit, Note, Span
from irlang.parser.lex import ERROR, Source, Tokens
from irlang.parser.recover import ITEMS, STATEMENTS, first_on_line, skip
from irlang.parser.table import END, Table

MOST_ERRORS = 20

_OPEN = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_CLOSE = {close: opening for opening, close in _OPEN.items()}

# Groups of terminals that have one name together; the first that fits wins.
_GROUPS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("NUMBER", "LPAR", "IF", "QUANTIFIER", "NOT")), "an expression"),
    (frozenset(("NUMBER", "LPAR", "MINUS")), "a value"),
    (frozenset(("NUMBER", "LPAR")), "a value"),
    (frozenset(("PARAM", "FOR", "NAME")), "a statement"),
    (frozenset(("REQUIRE", "LET", "NAME")), "a statement"),
    (frozenset(("OP", "MODEL", "BLOCK", "LET")), "`model`, `block`, `op` or `let`"),
    (frozenset(("OP", "MODEL", "BLOCK")), "`model`, `block` or `op`"),
    (frozenset(("ADD", "MUL", "CMP")), "an operator"),
    (frozenset(("ADD", "MUL")), "an operator"),
    (frozenset(("CMP", "LT")), "a comparison"),
)
_BEGINS_VALUE = frozenset(
    ("NAME", "NUMBER", "STRING", "LPAR", "LSQB", "MINUS", "HASH", "COUNT", "MATCH", "IF", "NOT",
     "REDUCER", "QUANTIFIER")
)  # fmt: skip
_MEMBERS = {
    "an expression": _BEGINS_VALUE,
    "a value": _BEGINS_VALUE,
    "a statement": STATEMENTS | {"NAME"},
    "`model`, `block`, `op` or `let`": ITEMS | {"LET"},
    "`model`, `block` or `op`": ITEMS,
    "an operator": frozenset(("ADD", "MUL", "CMP", "LT", "AND", "OR", "IN", "__ANON_1")),
    "a comparison": frozenset(("CMP", "LT", "IN")),
}
_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a message in quotes",
    "DOC": "a docstring",
    "REST": "a rest (`S..`)",
    "ADD": "`+` or `-`",
    "MUL": "`*` or `/`",
    "CMP": "a comparison",
    "REDUCER": "a reduction",
    "QUANTIFIER": "`all` or `any`",
    "COUNT": "`count`",
    END: "the end of the file",
}
# What other languages write.
_FOREIGN = {
    "&&": "write `and`",
    "||": "write `or`",
    "!": "write `not`",
    "**": "write `pow(x, n)` for a power",
    "^": "write `pow(x, n)` for a power",
    "'": 'texts stand in double quotes, "like this"',
    "\\": "a statement goes on to the next line by itself",
    ".": "a number has digits on both sides of its point: 0.5, 2.0",
    "?": "write `if condition then a else b`, or `x[i] ?? a` for what is read outside",
    "&": "write `and`",
    "$": "a name is letters, digits and `_`",
    "`": "a name is letters, digits and `_`, without quotes",
}


@dataclass(slots=True)
class _Slot:
    """A bracket that is open: its token, and whether a `;` has been seen inside."""

    index: int
    kind: str
    semicolon: bool = False


@dataclass
class _Stop:
    """Where the parser stopped, and what could have stood there."""

    grammar: Table
    tokens: Tokens
    index: int
    states: list[int]
    source: Source

    @property
    def kind(self) -> str:
        return self.tokens.kinds[self.index]

    @property
    def text(self) -> str:
        return self.tokens.texts[self.index]

    def kind_at(self, offset: int) -> str:
        """The kind of a token counted from here, "" before the first."""
        at = self.index + offset
        return self.tokens.kinds[at] if 0 <= at < len(self.tokens.kinds) else ""

    def span(self, first: int | None = None, last: int | None = None) -> Span:
        """The place of the tokens `first` to `last`; of this one by default."""
        first = self.index if first is None else first
        last = first if last is None else last
        start, end = self.tokens.starts[first], self.tokens.ends[last]
        return self.source.span(start, end)

    @cached_property
    def accepted(self) -> frozenset[str]:
        """The terminals that can be shifted here, after whatever reductions they cause."""
        actions = self.grammar.states[self.states[-1]]
        return frozenset(
            kind for kind in actions if (kind.isupper() or kind == END) and self._shifts(kind)
        )

    def _shifts(self, kind: str) -> bool:
        stack = list(self.states)
        while True:
            action = self.grammar.states[stack[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = self.grammar.rules[-1 - action]
            if rule.size:
                del stack[-rule.size :]
            stack.append(self.grammar.states[stack[-1]][rule.origin])
            if kind == END and stack[-1] in self.grammar.accepting:
                return True

    @cached_property
    def open(self) -> list[_Slot]:
        """The brackets that are open before this token, outermost first."""
        slots: list[_Slot] = []
        for index in range(self.index):
            kind = self.tokens.kinds[index]
            if kind in _OPEN:
                slots.append(_Slot(index, kind))
            elif kind in _CLOSE and slots:
                slots.pop()
            elif kind == "SEMICOLON" and slots:
                slots[-1].semicolon = True
        return slots

    @property
    def item(self) -> str:
        """The keyword of the item that this token stands in."""
        for index in range(self.index, -1, -1):
            if self.tokens.kinds[index] in ("OP", "MODEL", "BLOCK"):
                return self.tokens.kinds[index]
        return ""

    def fault(
        self, code: str, message: str, span: Span | None = None, *, label: str = "", help: str = "",
        notes: tuple[Note, ...] = (), edits: tuple[Edit, ...] = (),
    ) -> Diagnostic:  # fmt: skip
        return Diagnostic(
            f"syntax.{code}", message, span or self.span(), label=label, help=help, notes=notes,
            edits=edits,
        )  # fmt: skip


def explain(
    grammar: Table, tokens: Tokens, index: int, states: list[int], source: Source
) -> tuple[Diagnostic, Tokens | None]:
    """What is wrong at token `index` (the parser's stack is `states`), and what to try next."""
    stop = _Stop(grammar, tokens, index, states, source)
    complete = bool(stop.accepted & {"RBRACE", END})
    return _explain(stop), skip(tokens, index, source, complete=complete)


def _explain(stop: _Stop) -> Diagnostic:
    for slip in _SLIPS:
        if diagnostic := slip(stop):
            return diagnostic
    return stop.fault("unexpected", f"expected {expected(stop)}, found {found(stop)}")


def expected(stop: _Stop) -> str:
    """What could have stood here, most telling first: "`)`, `,` or an operator"."""
    accepted = set(stop.accepted)
    if stop.kind_at(-1) == "SEMICOLON" or (
        stop.kind_at(-1) == "COMMA" and stop.open and stop.open[-1].semicolon
    ):
        return "an attribute"
    phrases = []
    for members, phrase in _GROUPS:
        if members <= accepted:
            accepted -= _MEMBERS[phrase]
            phrases.append(phrase)
    if "an operator" in phrases:
        accepted -= {"AND", "OR", "IN"}
    if not phrases and {"NAME", "REST"} <= accepted:
        accepted.discard("REST")
    if phrases or accepted - {END}:
        accepted -= {"NNIR", END}
    literal = stop.grammar.literals
    words = [
        _WORDS.get(kind) or f"`{literal.get(kind, kind.lower())}`" for kind in sorted(accepted)
    ]
    # A closing bracket says most, then other signs; expressions and operators come last.
    words.sort(key=lambda word: (word not in ("`)`", "`]`", "`}`"), word[0] != "`", word))
    shown = list(dict.fromkeys(words))[:5] + phrases
    if not shown:
        return "something else"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" or {shown[-1]}"


def found(stop: _Stop) -> str:
    """What stands here instead."""
    if stop.kind == END:
        return "the end of the file"
    if stop.kind == "DOC":
        return "a docstring"
    if stop.kind == "STRING":
        return "a text in quotes"
    if stop.kind in stop.grammar.literals and stop.text.isalpha():
        return f"the reserved word `{stop.text}`"
    text = stop.text if len(stop.text) <= 40 else stop.text[:39] + "…"
    return f"`{text}`"


# ---- slips: each gives a diagnostic, or None where it does not apply ----------------------------


def _unreadable(stop: _Stop) -> Diagnostic | None:
    start = stop.tokens.starts[stop.index]
    quotes = stop.source.text.startswith('"""', start) and stop.kind != "DOC"
    if stop.kind not in (ERROR, "VBAR") and not quotes:
        return None
    if stop.kind == "VBAR" and stop.kind_at(1) == "VBAR":
        return stop.fault(
            "character", "`||` is no part of the language", stop.span(None, stop.index + 1),
            help=_FOREIGN["||"],
        )  # fmt: skip
    if quotes:
        place = stop.source.span(start, start + 3)
        return stop.fault(
            "string", 'this docstring is never closed: `"""` is missing', place,
            label="it starts here",
        )  # fmt: skip
    if stop.text.startswith('"'):
        text = stop.text.rstrip()
        place = stop.source.span(start, start + len(text))
        return stop.fault("string", 'this text is not closed on its line: `"` is missing', place)
    if stop.kind == "VBAR":
        return None
    if stop.text == "." and stop.kind_at(-1) not in ("NUMBER", "NAME"):
        advice = _FOREIGN["."]
    elif stop.text == "." and stop.kind_at(-1) == "NAME":
        advice = "values have no parts; write a call, `f(x)`"
    else:
        advice = _FOREIGN.get(stop.text, "")
    kind = "name" if stop.text[0].isalpha() else "character"
    if kind == "name":
        advice = "names are made of letters of the Latin alphabet, digits and `_`"
    return stop.fault("character", f"`{stop.text[:40]}` is no part of the language", help=advice)


def _glued_comment(stop: _Stop) -> Diagnostic | None:
    if stop.kind != "HASH":
        return None
    after = stop.source.span(stop.tokens.ends[stop.index], stop.tokens.ends[stop.index])
    return stop.fault(
        "comment", "a comment needs a blank after its `#`", help="write `# …`",
        edits=(Edit(after, " "),),
    )  # fmt: skip


def _attributes(stop: _Stop) -> Diagnostic | None:
    """`f(x, k = 1)` and `op f(x: T[N], k: int = 1)`: `;` comes before the attributes."""
    slot = stop.open[-1] if stop.open else None
    if slot is None or slot.kind != "LPAR" or stop.kind not in ("EQUAL", "LBRACE", "COMMA", "RPAR"):
        return None
    call = stop.kind == "EQUAL" and stop.kind_at(-1) == "NAME" and "EQUAL" not in stop.accepted
    name = stop.index - 1
    if not call or stop.kind_at(-2) == "COLON":
        typed = {"NAME": 3, "COLON": 2}.get(stop.kind_at(-1))
        if (
            typed is None
            or stop.kind_at(-typed + 1) != "COLON"
            or "LSQB" not in stop.accepted | ({"LSQB"} if stop.kind == "LBRACE" else set())
        ):
            return None
        name = stop.index - typed
    before = name - 1
    if slot.semicolon or before < slot.index or stop.tokens.kinds[name] != "NAME":
        return None
    if before > slot.index and stop.tokens.kinds[before] != "COMMA":
        return None
    comma = before > slot.index
    place = stop.span(before) if comma else stop.span(name)
    edit = Edit(place if comma else stop.source.span(*[stop.tokens.starts[name]] * 2),
                ";" if comma else "; ")  # fmt: skip
    named = stop.tokens.texts[name]
    return stop.fault(
        "attributes",
        f"expected `;` before the first attribute, `{named}`" + (", found `,`" if comma else ""),
        place,
        help="tensors come first, attributes after a semicolon: `f(x; k = 1)`",
        edits=(edit,),
    )


def _second_semicolon(stop: _Stop) -> Diagnostic | None:
    if stop.kind != "SEMICOLON":
        return None
    if stop.open and stop.open[-1].kind == "LPAR" and stop.open[-1].semicolon:
        return stop.fault(
            "attributes", "a second `;`: attributes are separated by `,`",
            edits=(Edit(stop.span(), ","),),
        )  # fmt: skip
    if not stop.open or stop.open[-1].kind == "LBRACE":
        return stop.fault(
            "semicolon", "a statement ends without `;`", help="remove it",
            edits=(Edit(stop.span(), ""),),
        )  # fmt: skip
    return None


def _equals(stop: _Stop) -> Diagnostic | None:
    if stop.kind == "EQUAL" and "CMP" in stop.accepted:
        return stop.fault(
            "equals", "expected a comparison, found `=`", help="equality is written `==`",
            edits=(Edit(stop.span(), "=="),),
        )  # fmt: skip
    if stop.text == "==" and "EQUAL" in stop.accepted:
        return stop.fault(
            "equals", "expected `=`, found `==`", help="`==` compares; a definition has one `=`",
            edits=(Edit(stop.span(), "="),),
        )  # fmt: skip
    return None


def _reserved(stop: _Stop) -> Diagnostic | None:
    word = stop.kind in stop.grammar.literals and stop.text.isalpha()
    # The keyword that starts the next statement or item means that this one is unfinished.
    if not word or "NAME" not in stop.accepted or stop.text in ("nnir", "ties"):
        return None
    if stop.kind in STATEMENTS | ITEMS and first_on_line(stop.tokens, stop.index, stop.source):
        return None
    return stop.fault(
        "reserved", f"expected a name, found the reserved word `{stop.text}`",
        help="choose another name",
    )  # fmt: skip


def _unclosed(stop: _Stop) -> Diagnostic | None:
    if not stop.open:
        if stop.kind in _CLOSE:
            return stop.fault("unopened", f"`{stop.text}` closes nothing")
        return None
    slot = stop.open[-1]
    closing = stop.grammar.literals[_OPEN[slot.kind]]
    opening = stop.grammar.literals[slot.kind]
    if slot.kind == "LBRACE":
        nested = stop.kind in ITEMS
        if not nested and stop.kind != END:
            return None
    elif (
        not (
            stop.kind in (END, "LBRACE", "RBRACE", "RPAR", "RSQB", "EQUAL")
            or stop.kind in ITEMS | STATEMENTS
            or first_on_line(stop.tokens, stop.index, stop.source)
        )
        or not ({_OPEN[slot.kind]} & stop.accepted)
        or (stop.kind == "EQUAL" and not first_on_line(stop.tokens, stop.index - 1, stop.source))
    ):
        return None
    return stop.fault(
        "unclosed",
        f"expected `{closing}`, found {found(stop)}: this `{opening}` is never closed",
        stop.span(slot.index),
        label=f"`{closing}` is missing",
        notes=(Note(f"`{closing}` was expected before this", stop.span()),),
    )


def _no_call(stop: _Stop) -> Diagnostic | None:
    """`y = x + 1` in a model."""
    if stop.accepted != {"LPAR"} or stop.kind_at(-2) != "EQUAL" or stop.item == "OP":
        return None
    return stop.fault(
        "call", f"expected `(`, found {found(stop)}: a value of a model is the result of a call",
        help="write `y = f(x)`; numbers have a name by `let`",
    )  # fmt: skip


def _no_index(stop: _Stop) -> Diagnostic | None:
    """`y = x[i] + 1` in a definition."""
    if stop.item != "OP" or [slot.kind for slot in stop.open] != ["LBRACE"]:
        return None
    # what the line lacks is seen at the first token of the next
    last = stop.index - first_on_line(stop.tokens, stop.index, stop.source)
    first = last
    while first > 0 and not first_on_line(stop.tokens, first, stop.source):
        first -= 1
    if stop.tokens.kinds[first : first + 2] != ["NAME", "EQUAL"]:
        return None
    name = stop.tokens.texts[first]
    return stop.fault(
        "index",
        f"expected {expected(stop)}, found {found(stop)}: without indices `{name}` is the result "
        "of a call",
        stop.span(last),
        help=f"an equation says its indices: `{name}[i] = …`, or `{name}[] = …` of a single number",
    )


_SLIPS: tuple[Callable[[_Stop], Diagnostic | None], ...] = (
    _unreadable, _glued_comment, _attributes, _second_semicolon, _equals, _reserved, _no_call,
    _unclosed, _no_index,
)  # fmt: skip
