"""Sizes and attributes of a call that is being drawn: those that are settled, those that follow
from them by the definition's `require`s, and new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.gen import draw
from irlang.gen.choice import Chooser
from irlang.gen.draw import Context, Limits
from irlang.gen.pattern import Pattern, rest_of
from irlang.gen.required import names_in
from irlang.scope import CONSTANTS

Weights = Mapping[str, Sequence[float]]  # of the recipes for each attribute
_MULTIPLE = 8  # the largest of what is to be a multiple, mostly
_AGAIN = 3  # times that what is to be said, and is the default all the same, is drawn anew
_ANEW = 4  # times that an attribute is drawn anew which is not allowed


class Stuck(Exception):
    """The choices so far leave no value for something that is needed."""


class Settled:
    """What is settled so far.

    names: sizes and attributes (one number an axis) by name, as the definition sees them. dtypes:
    what type variables stand for. attrs: the attributes that are given, as they are written.
    recipes: which recipe gave an attribute. primary: the shape of the first tensor.
    """

    def __init__(self, made: Pattern, chooser: Chooser, limits: Limits, weights: Weights) -> None:
        self.made = made
        self.chooser = chooser
        self.limits = limits
        self.weights = weights
        self.names: dict[str, Any] = {}
        self.dtypes: dict[str, str] = {}
        self.attrs: dict[str, Any] = {}
        self.recipes: dict[str, int] = {}
        self.primary: tuple[int, ...] = ()
        self.plain = False  # whether attributes have their defaults where they can
        self.said = False  # whether they have what is drawn
        self.few: frozenset[str] = frozenset()  # those that alone have, if any do
        self.begun = False  # whether there is a tensor by now
        self.asking = False  # whether it is looked for what some sizes are asked to be
        self.deriving: set[str] = set()  # attributes that are being derived, lest it go in circles

    @property
    def least(self) -> int:
        """Of a size: what is as long as an axis of nothing is so as well."""
        return 0 if self.limits.empty else 1

    def invert(self, node: ast.Expr, value: Any, unknown: str) -> int | None:
        """What `unknown` must be for `node` to have that value, by arithmetic alone."""
        if isinstance(node, ast.Name):
            fits = node.id == unknown and type(value) is int and value >= self.least
            return value if fits else None
        if isinstance(node, ast.If):
            condition = self.known(node.condition)
            branch = node.yes if condition else node.no
            return None if condition is None else self.invert(branch, value, unknown)
        if isinstance(node, ast.Call) and node.function == "max":  # max(n, 1): a guarded divisor
            return self.invert(node.args[0], value, unknown)
        if not isinstance(node, ast.Binary):
            return None
        left = unknown in names_in(node.left)
        if left == (unknown in names_in(node.right)):
            return None
        inner, other = (node.left, node.right) if left else (node.right, node.left)
        known = self.known(other)
        if type(known) is not int or type(value) is not int:
            return None
        if node.op == "*":
            if (
                isinstance(other, ast.Name)
                and other.id in self.made.attrs
                and (known == 0 or value % known)
            ):
                known = self.divisor(value)
                self.put(self.made.attrs[other.id], known)
            return (
                self.invert(inner, value // known, unknown)
                if known and value % known == 0
                else None
            )
        if node.op == "+":
            return self.invert(inner, value - known, unknown)
        if node.op == "-":
            return self.invert(inner, value + known if left else known - value, unknown)
        if node.op == "//" and left:
            return self.invert(inner, value * known, unknown)
        return None

    def divisor(self, value: int) -> int:
        """One of the divisors of `value`."""
        return self.chooser.pick(draw.divisors(value))

    @contextmanager
    def derives(self, name: str) -> Iterator[None]:
        """While what an attribute hangs on is looked for, which may hang on the attribute."""
        self.deriving.add(name)
        try:
            yield
        finally:
            self.deriving.remove(name)

    def derived(self, name: str) -> Any:
        """The value that the `require`s give a size or an attribute; None where they give none."""
        value = next(self._solved(name, self.made.required.equal), None)
        if value is not None:
            return value
        for whole, part in self.made.required.multiples.get(name, ()):
            factor = self.known(part)
            if type(factor) is int and factor > 0:
                most = _MULTIPLE
                if self.limits.length >= draw.LONG and self.chooser.below(2):
                    most = self.limits.length
                multiple = factor * self.chooser.between(1, max(1, most // factor))
                value = self.invert(whole, multiple, name)
                if value is not None:
                    return value
        for part, whole in self.made.required.divisors.get(name, ()):
            multiple = self.known(whole)
            if type(multiple) is int and multiple > 0:
                return self.invert(part, self.divisor(multiple), name)
        return None

    def _solved(
        self, name: str, pairs: Mapping[str, Sequence[tuple[ast.Expr, ast.Expr]]]
    ) -> Iterator[Any]:
        """What a size or an attribute must be for two expressions to be equal, by each pair."""
        for one, other in pairs.get(name, ()):
            known = self.known(other)
            if type(known) is int and known >= self.least:
                value = self.invert(one, known, name)
                if value is not None:
                    yield value
            elif isinstance(known, str) and one == ast.Name(name):
                yield known

    def asked(self, name: str) -> list[Any]:
        """What `require`s ask a size, a list of sizes or an attribute to be in some of the ways to
        meet them, as far as that is known; attributes that this depends on are drawn, but for
        lists that are made to go with a tensor, before there is one.
        """
        kept, self.asking = self.asking, True
        try:
            lists = map(self.known, self.made.required.listed.get(name, ()))
            sizes = [tuple(one) for one in lists if isinstance(one, tuple) and self._sizes(one)]
            return [*self._solved(name, self.made.required.asked), *sizes]
        finally:
            self.asking = kept

    def waits(self, name: str) -> bool:
        """Whether an attribute waits for a tensor: a list of any length, which is drawn by that."""
        kind = self.made.attrs[name].type
        return self.asking and not self.begun and kind.kind == "vector" and kind.dims is None

    def _sizes(self, given: tuple[Any, ...]) -> bool:
        return all(type(size) is int and size >= self.least for size in given)

    def ready(self, name: str) -> None:
        """Draws what is still open of the attributes of one value that decide, with what is known
        so far, what is required of some sizes. Numbers along axes wait until the axes are known.
        """
        for condition in self.made.required.conditions.get(name, ()):
            missing = condition.names - condition.ranked - {name, *self.names, *self.dtypes}
            attrs = [self.made.attrs[one] for one in sorted(missing) if one in self.made.attrs]
            if len(attrs) == len(missing) and not any(map(rest_of, attrs)):
                for attr in attrs:
                    self.attribute(attr.name)

    def consistent(self, before: Set[str]) -> bool:
        """Whether the equations hold that what was settled since `before` decides."""
        for name in sorted(self.names.keys() - before):
            for one, other in self.made.required.equal.get(name, ()):
                wanted = (names_in(one) | names_in(other)) - CONSTANTS.keys()
                if wanted <= self.names.keys() and self.known(one) != self.known(other):
                    return False
        return True

    def moderated(self, name: str, size: int) -> int:
        """A drawn size; where that is not allowed, one that is asked for, or a smaller one."""
        asked = [one for one in self.asked(name) if type(one) is int]
        if asked and not self.allows(name, size):
            asked = [one for one in asked if self.allows(name, one)]
            size = self.chooser.pick(asked) if asked else size
        while size > 1 and not self.allows(name, size):
            size = size // 2
        return size

    def allows(self, name: str, value: Any) -> bool:
        """Whether nothing that is required of `name`, as far as it is known, speaks against it."""
        names = {**self.dtypes, **self.names, name: value}
        required = self.made.required
        return not any(required.fails(one, names) for one in required.conditions.get(name, ()))

    def known(self, node: ast.Expr) -> Any:
        """The value of an expression, drawing the attributes that it mentions; None if unknown."""
        for name in self.open(node):
            if name not in self.made.attrs or self.waits(name) or not self.attribute(name):
                return None
        try:
            return self.value(node)
        except InvalidInput:
            return None

    def open(self, node: ast.Expr) -> list[str]:
        """What an expression goes back to and is not settled."""
        names = self.made.required.formula(node).names
        return sorted(names - self.names.keys() - self.dtypes.keys())

    def attrs_alone(self, node: ast.Expr) -> bool:
        """Whether no size is open that an expression goes back to."""
        return self.made.attrs.keys() >= set(self.open(node))

    def value(self, node: ast.Expr, known: bool = False) -> Any:
        """The value of an expression; raises `InvalidInput` where it is not known by now."""
        return self.made.required.formula(node).value({**self.dtypes, **self.names}, known)

    # ---- attributes

    def axis(self, name: str, rank: int) -> None:
        """Draws an attribute that says where an axis is, or where several are, or on which that
        depends.
        """
        attr = self.made.attrs[name]
        if attr.type.kind != "vector" and attr.type.name != "int":
            self.attribute(name)
            return
        if attr.default is not None and self.usual(attr.name) and self.default(attr):
            return
        if attr.type.kind == "vector":
            axes = [a for a in range(rank) if self.chooser.below(2)]
            if not axes and rank and self.chooser.below(4):  # none at all is an edge case
                axes = [self.chooser.below(rank)]
            self.put(attr, tuple(a - rank if self.chooser.below(4) == 0 else a for a in axes))
        elif rank:
            self.put(attr, self.chooser.between(-rank, rank - 1))
        else:
            raise Stuck

    def usual(self, name: str) -> bool:
        """Whether an attribute is to have its default."""
        if self.few:
            return name not in self.few
        return self.plain or (not self.said and self.chooser.below(2) == 1)

    def unusual(self, attr: ast.Attr) -> ast.AttrType:
        """The type of an attribute, mostly without its default if it is a choice: that is met where
        nothing is said, and what other attributes mean may hang on a choice.
        """
        kind, usual = attr.type, attr.default
        if kind.kind != "enum" or not isinstance(usual, ast.Name) or self.chooser.below(2):
            return kind
        others = tuple(choice for choice in kind.choices if choice != usual.id)
        return replace(kind, choices=others) if others else kind

    def default(self, attr: ast.Attr) -> bool:
        """Takes the default of an attribute, if it is known by now."""
        assert attr.default is not None
        if attr.type.kind == "enum" or attr.type.name == "dtype":
            if isinstance(attr.default, ast.Name):
                self.names[attr.name] = attr.default.id
            return True
        if attr.name not in self.deriving:  # what the default goes back to is drawn before it
            with self.derives(attr.name):
                for name in self.open(attr.default):
                    if name in self.made.attrs:
                        self.attribute(name)
        try:
            value = self.unsaid(attr)
        except InvalidInput:
            return False
        self.names[attr.name] = self.full(attr, value)
        return True

    def unsaid(self, attr: ast.Attr) -> Any:
        """The default of an attribute; raises `InvalidInput` where it is not known by now."""
        assert attr.default is not None
        return self.value(attr.default, known=True)

    def put(self, attr: ast.Attr, value: Any) -> None:
        """Settles an attribute."""
        self.attrs[attr.name] = value
        self.names[attr.name] = self.full(attr, value)

    def count(self, attr: ast.Attr) -> int | None:
        """How many numbers an attribute has, where its type says so."""
        if attr.type.kind != "vector" or attr.type.dims is None:
            return None
        value = self.known(attr.type.dims)
        if value is None:
            raise Stuck
        return len(value) if isinstance(value, tuple) else int(value)

    def full(self, attr: ast.Attr, value: Any) -> Any:
        """One number an axis, where one serves all."""
        if attr.type.kind != "vector" or isinstance(value, tuple):
            return value
        return (value,) * (self.count(attr) or 1)

    def attribute(self, name: str) -> bool:
        """Draws an attribute; False where that has to wait for a size."""
        attr = self.made.attrs[name]
        if name in self.made.required.equal and name not in self.deriving:
            with self.derives(name):
                follows = self.derived(name)
            if follows is not None and attr.type.kind == "scalar":
                if follows != draw.default_number(attr) or not self.default(attr):
                    self.put(attr, follows)
                return True
        if attr.default is not None and self.usual(name):
            if self.allowed_default(attr):
                return True
            if not self.attrs_alone(attr.default):
                return False
        try:
            count = self.count(attr)
        except Stuck:
            return False
        sizes = self.primary
        if not self.made.slots:  # as if there were a tensor
            least = 0 if attr.type.kind == "vector" else 1
            sizes = draw.shape(self.chooser, self.chooser.between(least, 3), self.limits)
        if count is not None and isinstance(attr.type.dims, ast.Name):
            named = self.names.get(attr.type.dims.id)
            sizes = named if isinstance(named, tuple) else sizes
        compared = self.made.compared.get(name, ())
        context = Context(sizes, self.names, count, draw.default_number(attr), compared)
        value = self.drawn_attribute(attr, context)
        for _ in range(_AGAIN if not self.limits.usual and self.chooser.below(2) else 0):
            if not self.is_default(attr, value):
                break
            value = self.drawn_attribute(attr, context)
        for _ in range(_ANEW):
            if self.allows(name, self.full(attr, value)):
                break
            asked = self.asked_of(attr)
            value = self.chooser.pick(asked) if asked else self.drawn_attribute(attr, context)
        if count is not None and isinstance(value, tuple) and len(set(value)) == 1:
            value = value[0] if self.chooser.below(2) else value
        self.put(attr, value)
        return True

    def allowed_default(self, attr: ast.Attr) -> bool:
        """Takes the default of an attribute, if it is known and nothing speaks against it: what is
        computed from others, and comes to 0 of them all, is what one of them is there to say.
        """
        if attr.default is None or not self.default(attr):
            return False
        if attr.name not in self.names:
            return True
        value = self.names[attr.name]
        idle = names_in(attr.default) & self.made.attrs.keys() and _is_nothing(value)
        if not idle and self.allows(attr.name, value):
            return True
        del self.names[attr.name]
        return False

    def asked_of(self, attr: ast.Attr) -> list[Any]:
        """What is asked of an attribute of one value, and allowed; for a type, any that is."""
        if attr.name in self.deriving or attr.type.kind == "vector":
            return []
        with self.derives(attr.name):
            asked = [*self.asked(attr.name), *(DTYPES if attr.type.name == "dtype" else ())]
        return [one for one in asked if self.allows(attr.name, one)]

    def drawn_attribute(self, attr: ast.Attr, context: Context) -> Any:
        """A value of an attribute, by a recipe that is noted."""
        options = draw.recipes(attr)
        recipe = None
        if options:
            weights = self.weights.get(attr.name) or (1.0,) * len(options)
            number = self.chooser.weighted(weights)
            self.recipes[attr.name] = number
            recipe = options[number]
        return draw.attribute(self.chooser, self.unusual(attr), context, self.limits, recipe)

    def is_default(self, attr: ast.Attr, value: Any) -> bool:
        """Whether an attribute is as it would be if it were not said, as far as that is known."""
        if attr.default is None or isinstance(value, str):  # of choices see `unusual`
            return False
        try:
            return bool(self.full(attr, self.unsaid(attr)) == self.full(attr, value))
        except (InvalidInput, Stuck):
            return False


def _is_nothing(value: Any) -> bool:
    """Whether an attribute is 0 everywhere."""
    if isinstance(value, tuple):
        return bool(value) and not any(value)
    return type(value) is int and value == 0
