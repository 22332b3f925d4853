"""Expressions of definitions as mathematics: one walk over the syntax tree.

Which parentheses are needed is decided here, by levels as in the grammar. What a name stands for
decides its looks: a list (one entry an axis) is bold, an element of a list is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irlang import ast
from irlang.dtypes import DTYPES
from irlang.mathematics.form import (
    Big,
    Cases,
    Element,
    Form,
    Fraction,
    Noted,
    Number,
    Row,
    Script,
    Sign,
    Space,
    Symbol,
    Tilde,
    Words,
    listed,
    row,
    width,
)
from irlang.mathematics.functions import SPECIAL
from irlang.mathematics.notation import (
    AND,
    ATOM,
    COMPARISON,
    FACTOR,
    MODULO,
    NOT,
    OR,
    PRODUCT,
    SUM,
    Made,
    fenced,
    infix,
    mark,
    symbol,
)
from irlang.parser.printer import print_number

# What a scalar function is called where mathematics has a name for it.
_NAMES = {"log": "ln", "sigmoid": "σ", "sign": "sgn"}
_COMPARED = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "=", "!=": "≠"}
_BIG = {"sum": "∑", "prod": "∏", "max": "max", "min": "min", "argmax": "arg max",
        "argmin": "arg min"}  # fmt: skip
_QUANTIFIED = {"all": "∀", "any": "∃"}
_WIDEST_BOUND = 32  # of what stands under a sum
_MOST_NAMED = 4  # choices of one value that are listed
_OTHERWISE = Words("otherwise")


def lists_of(op: ast.Op) -> frozenset[str]:
    """The names in a definition that stand for one number an axis."""
    found = {attr.name for attr in op.attrs if attr.type.kind == "vector"}
    for node in ast.walk(op):
        if isinstance(node, ast.Dim) and node.kind == "rest" and isinstance(node.size, ast.Name):
            found.add(node.size.id)
        elif isinstance(node, ast.Let) and (node.rest or _is_list(node.value)):
            found.add(node.name)
    return frozenset(found)


def _is_list(value: ast.Expr) -> bool:
    if isinstance(value, ast.Match):
        return any(_is_list(arm) for _, arm in value.arms)
    if isinstance(value, ast.Call):
        return value.function in ("join", "strides", "range", "sorted")
    return isinstance(value, (ast.ListOf, ast.Comprehension))


# What an index is less than, and whether it is one for every axis of a list.
Bound = tuple[ast.Expr, bool]


class Builder:
    """Expressions of one definition.

    lists: the names that are bold. places: for every value that an equation gives, by its name, the
    bounds of its indices; bounds: those of the indices in scope. Together they say when a reading
    of an earlier element is inside. macros: the functions that the definition has itself. notes:
    conditions that are too long to stand under a sum, in the order of their marks (`mark`).
    """

    def __init__(
        self,
        lists: Iterable[str] = (),
        places: Mapping[str, tuple[Bound, ...]] | None = None,
        macros: Iterable[str] = (),
    ) -> None:
        self.lists = frozenset(lists)
        self.places = places or {}
        self.macros = frozenset(macros)
        self.bounds: dict[str, Bound] = {}
        self.notes: list[Form] = []

    def scope(self, bounds: Mapping[str, Bound]) -> Builder:
        """Inside binders: their names are lists or not."""
        bold = {name for name, (_, rest) in bounds.items() if rest}
        inner = self.function(bold, bounds.keys() - bold)
        inner.bounds.update(bounds)
        return inner

    def function(self, bold: Iterable[str], plain: Iterable[str]) -> Builder:
        """Inside a function: nothing is known of what its parameters are less than."""
        plain = set(plain)
        inner = Builder((self.lists | set(bold)) - plain, self.places, self.macros)
        hidden = plain | set(bold)
        inner.bounds = {name: b for name, b in self.bounds.items() if name not in hidden}
        inner.notes = self.notes
        return inner

    def form(self, node: ast.Expr, level: int = OR) -> Form:
        """An expression, in parentheses where it holds together less tightly than `level`."""
        made, own = self.made(node)
        return made if own >= level else fenced(made)

    def name(self, name: str) -> Symbol:
        """A name."""
        return symbol(name, bold=name in self.lists)

    def made(self, node: ast.Expr) -> Made:
        """An expression, and how tightly it holds together."""
        match node:
            case ast.Number():
                return _number(node.value)
            case ast.Text():
                return Words(node.value), ATOM
            case ast.Name():
                return self.name(node.id), ATOM
            case ast.Unary():
                return self._unary(node)
            case ast.Binary():
                return self._binary(node)
            case ast.Chain():
                return self._chain(node), COMPARISON
            case ast.If():
                return self._if(node)
            case ast.Match():
                return self._match(node), ATOM
            case ast.Call():
                return self._call(node)
            case ast.Read():
                return self._read(node)
            case ast.Reduce():
                return self._reduce(node)
            case ast.Arity():
                return row(Sign("#", "prefix"), symbol(node.name)), ATOM
            case ast.ListOf():
                return fenced(listed([self.form(item) for item in node.items])), ATOM
            case ast.Comprehension():
                return self._comprehension(node), ATOM
        raise TypeError(f"{type(node).__name__} is no expression")

    # ---- arithmetic and logic

    def operand(self, node: ast.Expr, level: int, *, last: bool = True) -> Form:
        """A part of an operation: nothing open at its end unless it is the last."""
        form = self.form(node, level)
        if isinstance(form, Cases):
            return Cases(form.rows, closed=True)
        if not last and _is_open(form):
            return fenced(form)
        return form

    def _unary(self, node: ast.Unary) -> Made:
        if node.op == "not":
            return row(Sign("¬", "prefix"), self.operand(node.operand, ATOM)), NOT
        return row(Sign("−", "prefix"), self.operand(node.operand, PRODUCT)), SUM

    def _binary(self, node: ast.Binary) -> Made:
        left, right = node.left, node.right
        match node.op:
            case "+":
                parts = self.operand(left, SUM, last=False), self.operand(right, PRODUCT)
                return row(parts[0], infix("+"), parts[1]), SUM
            case "-":
                parts = self.operand(left, SUM, last=False), self.operand(right, PRODUCT)
                return row(parts[0], infix("−"), parts[1]), SUM
            case "*":
                return self._product(node)
            case "/":
                return Fraction(self.form(left), self.form(right)), FACTOR
            case "//":
                return fenced(Fraction(self.form(left), self.form(right)), "⌊", "⌋"), ATOM
            case "%":
                parts = self.operand(left, FACTOR, last=False), self.operand(right, FACTOR)
                return row(parts[0], infix("mod", "word"), parts[1]), MODULO
            case "in":
                parts = self.operand(left, SUM), self.operand(right, SUM)
                return row(parts[0], infix("∈", "relation"), parts[1]), COMPARISON
        sign, own = ("∧", AND) if node.op == "and" else ("∨", OR)
        # `and` inside `or` is put in parentheses: not everyone knows which binds tighter
        first, second = (
            self.operand(part, own if _is_same(part, node.op) else NOT, last=False)
            for part in (left, right)
        )
        return row(first, infix(sign, "break"), second), own

    def _product(self, node: ast.Binary) -> Made:
        negative = isinstance(node.left, ast.Unary) and node.left.op == "-"
        left = self.operand(node.left, SUM if negative else PRODUCT, last=False)
        right = self.operand(node.right, FACTOR)
        return row(left, infix("·", "times"), right), SUM if negative else PRODUCT

    def _chain(self, node: ast.Chain) -> Form:
        parts = [self.operand(node.operands[0], MODULO, last=False)]
        for op, operand in zip(node.ops, node.operands[1:], strict=True):
            parts.append(infix(_COMPARED[op], "relation"))
            parts.append(self.operand(operand, MODULO))
        return row(*parts)

    # ---- cases

    def _if(self, node: ast.If) -> Made:
        if _is_number(node.yes, 1) and _is_number(node.no, 0):
            return row(Symbol("1", bold=True), fenced(self.form(node.condition), "[", "]")), ATOM
        rows: list[tuple[Form, Form]] = []
        rest: ast.Expr = node
        while isinstance(rest, ast.If):
            rows.append((self.form(rest.yes), row(Words("if "), self.form(rest.condition))))
            rest = rest.no
        last = self.form(rest)
        if isinstance(last, Cases) and last.rows[-1][1] == _OTHERWISE:
            rows += last.rows
        else:
            rows.append((last, _OTHERWISE))
        return Cases(tuple(rows)), ATOM

    def _match(self, node: ast.Match) -> Form:
        """Cases; choices of equal value share one, and the largest of those comes last."""
        choices: dict[Form, list[Form]] = {}
        for choice, value in node.arms:
            choices.setdefault(self.form(value), []).append(Words(choice))
        if len(choices) == 1:
            return next(iter(choices))
        most = max(choices.items(), key=lambda item: len(item[1]))
        subject = self.name(node.subject)
        rows: list[tuple[Form, Form]] = []
        for form, names in choices.items():
            if names is most[1] and len(names) > _MOST_NAMED:
                continue
            equal = row(infix("=", "relation"), names[0])
            among = row(infix("∈", "relation"), fenced(listed(names), "{", "}"))
            rows.append((form, row(Words("if "), subject, equal if len(names) == 1 else among)))
        if len(most[1]) > _MOST_NAMED:
            rows.append((most[0], _OTHERWISE))
        return Cases(tuple(rows))

    # ---- functions

    def _call(self, node: ast.Call) -> Made:
        name, args = node.function, node.args
        special = SPECIAL.get(name)
        if special is not None and name not in self.macros:
            return special(self, args)
        given = listed([self.form(arg) for arg in args])
        if node.attrs:
            named = [self._attribute(key, value) for key, value in node.attrs]
            given = row(given, Sign(";", "comma"), listed(named))
        known = name if name in self.macros else _NAMES.get(name, name)
        return row(symbol(known), fenced(given)), ATOM

    def _attribute(self, name: str, value: ast.Expr) -> Form:
        """An attribute of a call; one that is passed on under its own name is that name."""
        if isinstance(value, ast.Name) and value.id == name:
            return self.name(name)
        return row(self.name(name), infix("=", "relation"), self.form(value))

    # ---- tensors and reductions

    def subscript(self, node: ast.Subscript) -> Form:
        """An index."""
        if isinstance(node, ast.Rest):
            return symbol(node.id, bold=True)
        if isinstance(node, ast.Each):
            return self.form(node.body)
        return self.form(node)

    def _read(self, node: ast.Read) -> Made:
        index = tuple(self.subscript(part) for part in node.index)
        whole = any(isinstance(part, Symbol) and part.bold for part in index)
        base = symbol(node.name, bold=whole and node.name in self.lists)
        member = None if node.member is None else self.subscript(node.member)
        form: Form = base
        if index or member is not None:
            form = Element(base, index, member)
        if node.default is None:
            return form, ATOM
        within = self._inside(node)
        return Cases(((form, within), (self.form(node.default), _OTHERWISE))), ATOM

    def _inside(self, node: ast.Read) -> Form:
        """When an element exists: told by the index that may be too small, if one."""
        places = self.places.get(node.name, ())
        moved: list[ast.Binary] = []
        if len(places) == len(node.index):
            for bound, part in zip(places, node.index, strict=True):
                if isinstance(part, ast.Binary) and self._is_earlier(part, bound):
                    moved.append(part)
                elif self._bound(part) != bound:
                    break
            else:
                if len(moved) == 1:
                    least = self.form(moved[0].right)
                    at_least = row(self.form(moved[0].left), infix("≥", "relation"), least)
                    return row(Words("if "), at_least)
        return row(Words("inside "), symbol(node.name))

    def _bound(self, part: ast.Subscript) -> Bound | None:
        return self.bounds.get(part.id) if isinstance(part, (ast.Name, ast.Rest)) else None

    def _is_earlier(self, part: ast.Binary, bound: Bound) -> bool:
        """Whether an index is `i - 1`, i below the bound, or the bound itself less something."""
        steps = part.right.value if isinstance(part.right, ast.Number) else 0
        if part.op != "-" or steps < 1:
            return False
        return self._bound(part.left) == bound or (part.left, False) == bound

    def binder(self, node: ast.Binder) -> Form:
        """`k < K`."""
        left = symbol(node.name, bold=node.rest)
        return row(left, infix("<", "relation"), self.operand(node.bound, MODULO))

    def _reduce(self, node: ast.Reduce) -> Made:
        bounds: list[Form] = []
        inner = self
        for binder in node.binders:  # a bound may use the binders before it
            bounds.append(inner.binder(binder))
            inner = inner.scope({binder.name: (binder.bound, binder.rest)})
        where = None if node.where is None else inner.form(node.where)
        if node.kind == "count":
            such = [Words(" such that "), where] if where is not None else []
            return row(Sign("#", "prefix"), fenced(row(listed(bounds), *such), "{", "}")), ATOM
        assert node.body is not None
        if node.kind in _QUANTIFIED:
            such = [Words(" with "), where] if where is not None else []
            head = row(Sign(_QUANTIFIED[node.kind], "prefix"), listed(bounds), *such)
            return row(head, Sign(":", "comma"), inner.form(node.body, NOT)), OR
        if node.kind == "the":
            such = [Words(" with "), where] if where is not None else []
            body = inner.operand(node.body, PRODUCT, last=False)
            return row(body, Words(" for the "), listed(bounds), *such), OR
        if where is not None and width(where) > _WIDEST_BOUND:
            self.notes.append(where)
            where = mark(len(self.notes))
        under = (listed(bounds), *([where] if where is not None else []))
        body = inner.form(node.body, PRODUCT)
        return Big(_BIG[node.kind], under, body), PRODUCT

    def _comprehension(self, node: ast.Comprehension) -> Form:
        bound = self.binder(node.binder)
        inner = self.scope({node.binder.name: (node.binder.bound, False)})
        under = [bound]
        if node.condition is not None:
            under.append(inner.form(node.condition))
        return Script(fenced(inner.form(node.body)), sub=listed(under))

    # ---- types

    def dim(self, node: ast.Dim) -> Form:
        """A size in a type."""
        form = self.form(node.size)
        if node.kind == "rest" and isinstance(form, Symbol):
            form = Symbol(form.text, bold=True, sub=form.sub)
        if node.broadcast:
            form = Tilde(form)
        return form if node.at is None else Noted(form, self.form(node.at))

    def space(self, node: ast.TensorType) -> Form:
        """A type of tensors."""
        dtype = Words(node.dtype) if node.dtype in DTYPES else symbol(node.dtype)
        return Space(dtype, tuple(self.dim(dim) for dim in node.dims))


def _is_same(node: ast.Expr, op: str) -> bool:
    return isinstance(node, ast.Binary) and node.op == op


def _is_number(node: ast.Expr, value: int) -> bool:
    return isinstance(node, ast.Number) and node.value == value


def _is_open(form: Form) -> bool:
    """Whether what stands behind a form looks as if it belonged to it."""
    return isinstance(form.parts[-1] if isinstance(form, Row) else form, (Big, Words))


def _number(value: int | float) -> Made:
    if isinstance(value, bool):
        return Words("true" if value else "false"), ATOM
    text = print_number(value)
    if text.startswith("-"):
        return row(Sign("−", "prefix"), _number(-value)[0]), SUM
    digits, e, exponent = text.partition("e")
    if not e:
        return Number(text), ATOM
    power = Script(Number("10"), sup=Number(exponent.lstrip("+")))
    if digits == "1":
        return power, FACTOR
    return row(Number(digits), infix("·", "times"), power), PRODUCT
