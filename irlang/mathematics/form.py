"""Mathematics as data: what a definition says, before it is Unicode, LaTeX or MathML.

Forms say what is meant (a fraction, a sum with its bounds, cases), never how it is drawn. They hold
no parentheses but those that the meaning needs, each a `Fence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Symbol:
    """A letter or a word that names something.

    bold: it stands for a list, one entry an axis. sub: digits that the name ends in.
    """

    text: str
    bold: bool = False
    sub: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, as it is to be read."""

    text: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign between, or before, what it joins.

    kind: `plus` and `times` join numbers, `relation` compares, `prefix` stands before, `comma`
    separates, `break` is where a new line of an equation may begin, `open` and `close` are
    parentheses on different lines.
    """

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Words:
    """Text of the language we speak, in the middle of mathematics."""

    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One thing after another."""

    parts: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Fence:
    """`(body)`, `⌊body⌋`, `|body|`, …"""

    left: str
    body: Form
    right: str


@dataclass(frozen=True, slots=True)
class Fraction:
    """`above / below`."""

    above: Form
    below: Form


@dataclass(frozen=True, slots=True)
class Root:
    """A square root."""

    body: Form


@dataclass(frozen=True, slots=True)
class Script:
    """A base with what stands lower and higher on its right."""

    base: Form
    sub: Form | None = None
    sup: Form | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor or a list; `member` is that of a family of tensors."""

    base: Form
    index: tuple[Form, ...]
    member: Form | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """The tensors of an element type and of sizes."""

    dtype: Form
    sizes: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Noted:
    """A size with the name of the attribute that says which axis it is."""

    base: Form
    note: Form


@dataclass(frozen=True, slots=True)
class Tilde:
    """Sizes that broadcast."""

    base: Form


@dataclass(frozen=True, slots=True)
class Big:
    """`∑`, `max`, … with lines of bounds under it, and the body."""

    sign: str
    under: tuple[Form, ...]
    body: Form


@dataclass(frozen=True, slots=True)
class Cases:
    """Values, each with its condition. closed: with a brace on both sides, as a part of more."""

    rows: tuple[tuple[Form, Form], ...]
    closed: bool = False


Form = (
    Symbol
    | Number
    | Sign
    | Words
    | Row
    | Fence
    | Fraction
    | Root
    | Script
    | Element
    | Space
    | Noted
    | Tilde
    | Big
    | Cases
)


@dataclass(frozen=True, slots=True)
class Line:
    """`left relation right`, and for which indices (`None`: for those that the types give)."""

    left: Form
    relation: str
    right: Form
    over: Form | None = None


@dataclass(frozen=True, slots=True)
class Mathematics:
    """A definition: types of its tensors, equations, what is abbreviated, and remarks."""

    types: tuple[Line, ...]
    equations: tuple[Line, ...]
    where: tuple[Line, ...]
    remarks: tuple[Form, ...]


def row(*parts: Form) -> Form:
    """The parts in a row; rows inside are dissolved, and a row of one is that one."""
    flat: list[Form] = []
    for part in parts:
        flat += part.parts if isinstance(part, Row) else (part,)
    return flat[0] if len(flat) == 1 else Row(tuple(flat))


def listed(parts: Sequence[Form]) -> Form:
    """The parts with commas between them."""
    found: list[Form] = []
    for part in parts:
        found += [Sign(",", "comma"), part] if found else [part]
    return row(*found)


def inside(form: Form) -> Iterator[Form]:
    """The form and all forms in it."""
    yield form
    for item in fields(form):
        yield from _forms(getattr(form, item.name))


def _forms(value: object) -> Iterator[Form]:
    if isinstance(value, tuple):
        for part in value:
            yield from _forms(part)
    elif isinstance(value, Form):
        yield from inside(value)


def width(form: Form) -> int:
    """About how many letters a form is wide."""
    match form:
        case Symbol() | Number() | Sign() | Words():
            return len(form.text)
        case Fraction():
            return max(width(form.above), width(form.below))
        case Cases():
            return 4 + max(width(value) + width(condition) for value, condition in form.rows)
        case Big():
            return max(2, *map(width, form.under)) + width(form.body)
    return 1 + sum(width(part) for part in _direct(form))


def _direct(form: Form) -> Iterator[Form]:
    for item in fields(form):
        value = getattr(form, item.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Form):
                yield part


def is_plain(index: Form) -> bool:
    """Whether an index is simple enough to be set small: names, numbers, and sums of two."""
    parts = index.parts if isinstance(index, Row) else (index,)
    return len(parts) <= 3 and all(
        isinstance(part, (Symbol, Number)) or (isinstance(part, Sign) and part.kind == "plus")
        for part in parts
    )


def lines(form: Form, limit: int, measure: Callable[[Form], int] = width) -> list[Form]:
    """What is wider than `limit`, on lines: before the signs of a sum, behind commas of a call."""
    if measure(form) <= limit:
        return [form]
    terms: list[list[Form]] = [[]]
    for part in form.parts if isinstance(form, Row) else (form,):
        if isinstance(part, Sign) and part.kind in ("plus", "break") and terms[-1]:
            terms.append([])
        terms[-1].append(part)
    found: list[Form] = []
    for line in _filled(terms, limit, measure):
        found += [line] if measure(line) <= limit else _filled(_spread(line), limit, measure)
    return found


def _filled(terms: list[list[Form]], limit: int, measure: Callable[[Form], int]) -> list[Form]:
    """Terms on as few lines as they fit on."""
    found: list[Form] = []
    for term in terms:
        joined = row(*found[-1:], *term)
        if found and measure(joined) <= limit:
            found[-1] = joined
        else:
            found.append(row(*term))
    return found


def _spread(form: Form) -> list[list[Form]]:
    """A call at the end of a line, by its arguments, so that lines may end between them."""
    parts = form.parts if isinstance(form, Row) else (form,)
    call = parts[-1]
    if not (isinstance(call, Fence) and call.left == "(" and isinstance(call.body, Row)):
        return [[form]]
    terms: list[list[Form]] = [[*parts[:-1], Sign("(", "open")]]
    for part in call.body.parts:
        terms[-1].append(part)
        if isinstance(part, Sign) and part.kind == "comma":
            terms.append([])
    terms[-1].append(Sign(")", "close"))
    return terms
