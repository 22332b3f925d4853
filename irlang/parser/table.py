"""The LALR table of `grammar/nnir.lark`, as plain data.

lark reads the grammar, refuses conflicts and computes the table, in about 200 ms; importing lark
takes 40 ms more. The table is therefore kept, as JSON and never as pickle, in the user's own cache
directory under the hash of the grammar. A missing, foreign or damaged cache is no more than slow.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import irlang

if TYPE_CHECKING:
    import lark

STARTS = ("start", "expr", "tensor")
END = "$END"
_FORMAT = "3"


@dataclass(frozen=True, slots=True)
class Rule:
    """A production: how many symbols it takes off the stack and what becomes of them.

    method: the method of `Builder` that makes the node; "" where the rule only gathers a list
    (the repetitions that lark names `__…`) or hands on its only child. kept: (position, whether it
    is a list to splice, how many absent optional parts stand before it). absent: those at the end.
    """

    origin: str
    size: int
    method: str
    gathers: bool
    single: bool
    kept: tuple[tuple[int, bool, int], ...]
    absent: int


@dataclass(frozen=True, slots=True)
class Table:
    """States map a symbol to the next state, or a terminal to `-1 - rule`.

    others: what else a text may be where the grammar has no use for its first meaning (`ties` and
    `nnir` are names elsewhere, `-` is a sign or an operator). literals: terminals of one spelling.
    """

    scanner: re.Pattern[str]
    others: dict[str, str]
    literals: dict[str, str]
    states: list[dict[str, int]]
    starts: dict[str, int]
    accepting: frozenset[int]
    rules: list[Rule]


def grammar_text() -> str:
    """The grammar: inside an installed package, or at the root of a checkout."""
    package = Path(irlang.__file__).parent
    inside = package / "grammar" / "nnir.lark"
    return (inside if inside.exists() else package.parent / "grammar" / "nnir.lark").read_text(
        "utf-8"
    )


@cache
def table() -> Table:
    """The table of the language, from the cache where that is possible."""
    grammar = grammar_text()
    place = _cache_file(grammar)
    if place is not None:
        # Whatever is wrong with the file, the grammar itself is at hand.
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, re.error):
            if _is_ours(place):
                return _load(json.loads(place.read_text("utf-8")))
    data = compile_grammar(grammar)
    if place is not None:
        with suppress(OSError):
            _store(place, json.dumps(data, separators=(",", ":")))
    return _load(data)


def _cache_file(grammar: str) -> Path | None:
    """Where the table of this grammar is kept; None where the user has no directory for it."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # A relative path is to be ignored, says the XDG specification.
        base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    digest = hashlib.sha256(f"{_FORMAT}\n{grammar}".encode()).hexdigest()[:24]
    return base / "irlang" / f"grammar-{digest}.json"


def _is_ours(place: Path) -> bool:
    """Whether nobody but the user can have written the file."""
    if not hasattr(os, "getuid"):
        return True
    status = place.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _store(place: Path, text: str) -> None:
    """Write so that a reader sees the whole file or none."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(place)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def compile_grammar(grammar: str) -> dict[str, Any]:
    """The table as JSON-able data; raises lark's GrammarError where the grammar is not LALR(1)."""
    import lark
    from lark.grammar import Rule as LarkRule
    from lark.lexer import TerminalDef

    parser = lark.Lark(
        grammar, parser="lalr", strict=True, start=list(STARTS), maybe_placeholders=True
    )
    data, memo = parser.memo_serialize([TerminalDef, LarkRule])
    lalr = data["parser"]["parser"]
    symbols: dict[int, str] = lalr["tokens"]
    numbers = {old: new for new, old in enumerate(lalr["states"])}
    rules: dict[int, int] = {}
    states = []
    for actions in lalr["states"].values():
        state = {}
        for symbol, (kind, target) in actions.items():
            if kind == 0:
                state[symbols[symbol]] = numbers[target]
            else:
                state[symbols[symbol]] = -1 - rules.setdefault(target["@"], len(rules))
        states.append(state)
    terminals = sorted(
        (t for t in parser.terminals if t.name != "WS"),
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    literals = {t.name: t.pattern.value for t in terminals if t.pattern.type == "str"}
    scanner = _scanner(terminals)
    first = re.compile(scanner)
    others = {}
    for kind, text in literals.items():
        match = first.fullmatch(text)
        if match and match.lastgroup != kind:
            others[text] = kind
    return {
        "scanner": scanner,
        "others": others,
        "literals": literals,
        "states": states,
        "starts": {start: numbers[state] for start, state in lalr["start_states"].items()},
        "accepting": [numbers[state] for state in lalr["end_states"].values()],
        "rules": [_rule(memo[key]) for key in rules],
    }


def _scanner(terminals: list[lark.lexer.TerminalDef]) -> str:
    ignored = ("COMMENT",)  # comments are taken out before
    return "|".join(
        f"(?P<{t.name}>{t.pattern.to_regexp()})"
        for t in terminals
        if t.name not in ignored and not t.pattern.value.isspace() and t.pattern.value != r"\s+"
    )


def _rule(rule: dict[str, Any]) -> list[Any]:
    """What lark's tree builder would do with a production, worked out once."""
    options = rule["options"]
    origin, expansion = rule["origin"]["name"], rule["expansion"]
    pattern = options["empty_indices"] or (False,) * len(expansion)
    gaps = [len(run) for run in "".join(str(int(absent)) for absent in pattern).split("0")]
    kept = []
    absent = 0
    for position, symbol in enumerate(expansion):
        absent += gaps[position]
        if options["keep_all_tokens"] or not symbol.get("filter_out", False):
            repeated = symbol["__type__"] == "NonTerminal" and symbol["name"].startswith("__")
            kept.append([position, repeated, absent])
            absent = 0
    absent += gaps[len(expansion)]
    gathers = origin.startswith("__")
    single = bool(options["expand1"]) and not rule["alias"]
    return [origin, len(expansion), rule["alias"] or origin, gathers, single, kept, absent]


def _load(data: dict[str, Any]) -> Table:
    rules = [
        Rule(origin, size, method, gathers, single, tuple((p, s, a) for p, s, a in kept), absent)
        for origin, size, method, gathers, single, kept, absent in data["rules"]
    ]
    return Table(
        re.compile(data["scanner"]),
        data["others"],
        data["literals"],
        data["states"],
        data["starts"],
        frozenset(data["accepting"]),
        rules,
    )
