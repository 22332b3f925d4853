"""Expressions of equations over sets of numbers, at all indices of a box at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.assumptions import OPPOSITE, Facts, assume, within
from irlang.interp.interval import (
    NOTHING,
    Numbers,
    Origin,
    hull,
    interval,
    join,
    may,
    meet,
    number,
    truth,
)
from irlang.interp.reductions import Part, reduced
from irlang.interp.regions import Borders, Ends, Tensor, borders, cuts, form_ends, pieces
from irlang.kinds import kind

Limits = Mapping[str, Ends]  # of every index, both included
# what comparisons say of a number and itself
OF_ITSELF = {"==": True, "<=": True, ">=": True, "!=": False, "<": False, ">": False}
_INNER = 8  # pieces that a reduction is cut into


@dataclass(slots=True)
class Place:
    """An operation of an equation that may make NaN or Inf out of finite numbers, or cannot.

    operand: of the argument that decides, or of all. args: of each of them, of a function.
    threatens: whether it makes one, inside the call. possible: whether a result shows it.
    """

    target: str
    function: str
    operand: Numbers = NOTHING
    args: tuple[Numbers, ...] = ()
    threatens: bool = False
    possible: bool = False
    reasons: list[str] = field(default_factory=list)
    box: tuple[tuple[int, int], ...] = ()


Note = Callable[[eq.Expr, str, Numbers, bool, Sequence[Numbers]], None]


class Infos(Mapping[str, eq.TensorInfo]):
    """The types of tensors."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors

    def __getitem__(self, name: str) -> eq.TensorInfo:
        return self.tensors[name].info

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


# An index of a sum or maximum that the box leaves out: what is inside is looked at by itself.
_ANYWHERE = (0, 2**53)


class Evaluator:
    """Evaluates expressions. tensors: what is known, by name; grows as equations are evaluated.

    stepping: whether a recurrence is under way, whose proofs know its steps as they are written.
    note: told of every operation that may be a point: the expression, its function, what reaches
    it, and whether it makes NaN or Inf of that.
    """

    _level = 0  # proofs under way, one inside another

    def __init__(
        self,
        tensors: dict[str, Tensor],
        own: Arithmetic,
        note: Note | None = None,
        split: bool = True,
    ) -> None:
        self.tensors = tensors
        self.infos = Infos(tensors)
        self.own = own
        self.note = note
        self.split = split
        self.stepping = False
        self.origins: dict[int, Origin] = {}
        self.reasons: list[str] = []  # relations that were of use
        self._kinds: dict[int, tuple[eq.Expr, str]] = {}  # with the expression, kept for its id
        self._boxes: dict[tuple[tuple[str, Ends], ...], Limits] = {}
        self._borders: dict[eq.Expr, Borders] = {}

    def value(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """What an expression may be at the indices of a box, where the facts hold."""
        if isinstance(expr, eq.Apply):
            found = self._apply(expr, box, facts)
        elif isinstance(expr, eq.Read):
            found = self._read(expr, box, facts)
        elif isinstance(expr, eq.Reduce):
            found = self._reduce(expr, box, facts)
        elif isinstance(expr, eq.Index):
            return interval(*box.get(expr.name, _ANYWHERE), whole=True)
        elif isinstance(expr, eq.Inside):
            return self._inside(expr, box, facts)
        else:
            return self._number(expr)
        return self.known(expr, found, box, facts) if facts else found

    def one_box(self, box: Limits) -> Limits:
        """The one box that has these ends: what is known of expressions in it is kept by its id."""
        return self._boxes.setdefault(tuple(box.items()), box)

    def plainly(self, expr: eq.Expr, box: Limits) -> Numbers:
        """What an expression may be by the values of elements alone."""
        return self.value(expr, box, {})

    def both_zero(self, one: eq.Expr, other: eq.Expr, box: Limits) -> bool:  # noqa: ARG002
        """Whether two expressions may be 0 at once."""
        return True

    def known(self, expr: eq.Expr, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A value, less what the facts exclude, for a comparison by the difference of its sides."""
        if isinstance(expr, eq.Apply) and expr.function in OPPOSITE:
            gap = facts.get(eq.Apply("-", expr.args))
            if gap is not None and not any(self.value(a, box, facts).nan for a in expr.args):
                told = self.own.apply(expr.function, [gap, number(0)], "bool")[0]
                found = meet(found, told)
        return meet(found, facts[expr]) if expr in facts else found

    def meaning(self, expr: eq.Expr, box: Limits) -> eq.Expr:  # noqa: ARG002
        """What an element is computed as; itself where that is not known."""
        return expr

    def total_of_run(self, tensor: str) -> Numbers | None:  # noqa: ARG002
        """What the last of sums so far may be by what is added up; None where nothing is known."""
        return None

    def forget(self) -> None:
        """Tensors have become others: what is known of their elements is looked up anew."""
        self._borders.clear()

    def kind(self, expr: eq.Expr) -> str:
        """Whether an expression is `real`, `int` or `bool`."""
        found = self._kinds.get(id(expr))
        if found is None:
            found = self._kinds[id(expr)] = expr, kind(expr, self.infos)
        return found[1]

    def decided(self, condition: eq.Expr, box: Limits) -> bool | None:
        """Whether a condition holds everywhere in a box, None where it depends."""
        told, self.note = self.note, None
        found = self.value(condition, box, {})
        self.note = told
        return None if may(found, True) == may(found, False) else may(found, True)

    # ---- leaves

    def _number(self, expr: eq.Const | eq.Size) -> Numbers:
        value = expr.value
        if isinstance(value, (bool, int)):
            return number(value)
        real = float(value)
        if math.isinf(real):
            self._noted(expr, "inf", number(real), True)
            found = number(real)
            origin = self.origins.get(id(expr))
            return (
                Numbers(below=real < 0, above=real > 0, origins=frozenset((origin,)))
                if origin
                else found
            )
        return self.own.real(number(real))

    def ends(self, expr: eq.Expr, box: Limits, facts: Facts) -> Ends | None:
        """Between which integers an index expression lies; None for none."""
        if isinstance(expr, eq.Index) and expr.name in box:  # what most are
            return box[expr.name]
        form = affine(expr)
        if form is not None:
            found = form_ends(form, box)
            if found is not None:
                return found
        numbers = self.value(expr, box, facts)
        if not numbers.pieces:
            return None
        found = int(numbers.pieces[0][0]), int(numbers.pieces[-1][1])
        return within(expr, found, box, facts) if facts else found

    def _read(self, expr: eq.Read, box: Limits, facts: Facts) -> Numbers:
        tensor = self.tensors.get(expr.tensor)
        ends: list[Ends] = []
        outside = sure = False
        for axis, part in enumerate(expr.index):
            found = self.ends(part, box, facts)
            if found is None:
                return NOTHING
            extent = self.infos[expr.tensor].shape[axis]
            sure = sure or found[1] < 0 or found[0] >= extent
            if found[0] < 0 or found[1] >= extent:
                outside = True
                if expr.default is None and eq.reads(part):
                    self._noted(part, "index", interval(*found, whole=True), True)
            ends.append((max(found[0], 0), min(found[1], extent - 1)))
        there = NOTHING if sure or tensor is None else tensor.at(ends)
        if not outside or expr.default is None:
            return there
        default = self.value(expr.default, box, facts)
        if self.kind(expr) == "real" and self.kind(expr.default) != "real":
            default = self.own.real(default)
        return join(there, default)

    def _inside(self, expr: eq.Inside, box: Limits, facts: Facts) -> Numbers:
        can = {True}
        for axis, part in enumerate(expr.index):
            found = self.ends(part, box, facts)
            extent = self.infos[expr.tensor].shape[axis]
            if found is None or found[1] < 0 or found[0] >= extent:
                return truth([False])
            if found[0] < 0 or found[1] >= extent:
                can.add(False)
        return truth(can)

    # ---- functions

    def _apply(self, expr: eq.Apply, box: Limits, facts: Facts) -> Numbers:
        function = expr.function
        if function == "select":
            return self._select(expr, box, facts)
        if function in ("and", "or"):
            return self._connective(expr, box, facts)
        form = affine(expr) if function in ("+", "-", "*", "neg") else None
        if form is not None:
            ends = form_ends(form, box)
            if ends is not None:
                return interval(*ends, whole=True)
        if function in ("<", "<=", ">", ">=", "==", "!=") and self.kind(expr.args[0]) != "real":
            decided = self._compared(expr, box)
            if decided is not None:
                return decided
        args = [self.value(arg, box, facts) for arg in expr.args]
        if function in OF_ITSELF and expr.args[0] == expr.args[1] and not args[0].nan:
            return truth([OF_ITSELF[function]])
        own_kind, beyond = self.kind(expr), False
        origin = self.origins.get(id(expr))
        if own_kind == "real":
            for at, part in enumerate(expr.args):
                if self.kind(part) != "real":
                    whole, args[at] = args[at], self.own.real(args[at])
                    if isinstance(part, eq.Const) and whole.finite and not args[at].finite:
                        beyond = True  # a number that the definition writes, and the type has not
                        args[at] = replace(args[at], origins=frozenset((origin,) if origin else ()))
        fused = any(isinstance(a, eq.Apply) and a.function in ("*", "sq") for a in expr.args)
        found, originates = self.own.apply(function, args, own_kind, origin, fused)
        result = self.related(expr, found, args, box, facts)
        if not self._level and result.finite and not found.finite:
            result = self._with_infinite(result, function, args, own_kind, fused)
        originates = (originates or beyond) and not result.finite
        if own_kind == "real":
            self._noted(expr, function, _deciding(function, args), originates, args)
        return result

    def _with_infinite(
        self, found: Numbers, function: str, args: list[Numbers], kind: str, fused: bool
    ) -> Numbers:
        """A result, and what becomes of operands that have overflowed: relations hold of finite
        numbers, and what is no more than another may be infinite before that is. Proofs are about
        the finite numbers, too.
        """
        for at, arg in enumerate(args):
            if arg.above or arg.below:
                beyond = [*args[:at], replace(arg, pieces=(), nan=False), *args[at + 1 :]]
                made, _ = self.own.apply(function, beyond, kind, None, fused)
                if not made.finite:
                    found = join(found, replace(made, pieces=()))
        return found

    def related(
        self,
        expr: eq.Apply,  # noqa: ARG002
        found: Numbers,
        args: list[Numbers],  # noqa: ARG002
        box: Limits,  # noqa: ARG002
        facts: Facts,  # noqa: ARG002
    ) -> Numbers:
        """A result, given those of its arguments, less what relations between them exclude."""
        return found

    def _compared(self, expr: eq.Apply, box: Limits) -> Numbers | None:
        """A comparison of indices by their difference, None where they are no affine forms."""
        left, right = affine(expr.args[0]), affine(expr.args[1])
        if left is None or right is None:
            return None
        ends = form_ends(left.plus(right, -1), box)
        if ends is None:
            return None
        gap = interval(*ends, whole=True)
        return self.own.apply(expr.function, [gap, number(0)], "bool")[0]

    def _select(self, expr: eq.Apply, box: Limits, facts: Facts) -> Numbers:
        condition = self.value(expr.args[0], box, facts)
        arms = []
        for which, arm in ((True, expr.args[1]), (False, expr.args[2])):
            if not may(condition, which):
                continue
            known = assume(self, expr.args[0], which, box, facts)
            if known is None:
                continue
            found = self.value(arm, box, known)
            if self.kind(expr) == "real" and self.kind(arm) != "real":
                found = self.own.real(found)
            arms.append(found)
        return join(*arms)

    def _connective(self, expr: eq.Apply, box: Limits, facts: Facts) -> Numbers:
        """`and` and `or`; what the first settles the second is not asked."""
        settles = expr.function == "or"
        first = self.value(expr.args[0], box, facts)
        if not may(first, not settles):
            return truth([settles] if may(first, settles) else [])
        known = assume(self, expr.args[0], not settles, box, facts)
        second = NOTHING if known is None else self.value(expr.args[1], box, known)
        can = [one for one in (True, False) if may(second, one)]
        return truth([*can, *([settles] if may(first, settles) else [])])

    # ---- reductions

    def _reduce(self, expr: eq.Reduce, box: Limits, facts: Facts) -> Numbers:
        facts = outside(expr, box, facts)
        inner = dict(box)
        names, fixed = [], True
        least = most = 1
        for name, bound in expr.binders:
            ends = self.ends(bound, inner, facts) or (0, 0)
            ends = max(ends[0], 0), max(ends[1], 0)
            least, most, fixed = least * ends[0], most * ends[1], fixed and ends[0] == ends[1]
            inner[name] = (0, ends[1] - 1)
            names.append(name)
        parts = []
        if most:
            own = {name: inner[name] for name in names}
            inside = (
                eq.Apply("and", (expr.where, expr.body))
                if expr.where and expr.body
                else (expr.where or expr.body or eq.Const(True))
            )
            places = cuts(self._borders_of(inside), inner, names) if self.split else {}
            boxes = pieces(own, places, _INNER)
            for one in boxes:
                count = prod(high - low + 1 for low, high in one.values())
                sure = count if fixed else least if len(boxes) == 1 else 0
                part = self._part(expr, self.one_box({**box, **one}), facts, sure, count)
                if part is not None:
                    parts.append(part)
        own_kind = self.kind(expr)
        found, originates = reduced(
            expr.kind, parts, own_kind, self.own, self.origins.get(id(expr))
        )
        summed = self.summed(expr, found, box, facts)
        if expr.kind == "sum" and not self._level and summed.finite and not found.finite:
            beyond = [part.body for part in parts if not part.body.finite]
            summed = join(summed, *(replace(one, pieces=()) for one in beyond))
        found = summed
        if originates and found.finite:
            originates = False
        if own_kind == "real":
            operand = join(*(part.body for part in parts))
            self._noted(expr, expr.kind, operand, originates)
        return found

    def _borders_of(self, expr: eq.Expr) -> Borders:
        found = self._borders.get(expr)
        if found is None:
            found = self._borders[expr] = borders(expr, self.tensors)
        return found

    def summed(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:  # noqa: ARG002
        """A reduction, less what relations between its terms exclude."""
        return found

    def _part(
        self, expr: eq.Reduce, box: Limits, facts: Facts, least: int, most: int
    ) -> Part | None:
        """The terms of a reduction in one box of its indices; None where there are none."""
        if expr.where is not None:
            condition = self.value(expr.where, box, facts)
            known = assume(self, expr.where, True, box, facts)
            if not may(condition, True) or known is None:
                return None
            facts = self.where(expr, box, known)
            if may(condition, False):
                least = 0
        if expr.body is None:
            body = truth([True])
        else:
            body = self.value(expr.body, box, facts)
            if self.kind(expr) == "real" and self.kind(expr.body) != "real":
                body = self.own.real(body)
        if expr.kind in ("argmax", "argmin"):
            ends = box[expr.binders[0][0]]
            return Part(body, least, most, interval(*ends, whole=True))
        return Part(body, least, most, number(0))

    def where(self, expr: eq.Reduce, box: Limits, facts: Facts) -> Facts:  # noqa: ARG002
        """The facts for the terms of a reduction that a condition holds for, and that it holds."""
        return facts

    def _noted(
        self,
        expr: eq.Expr,
        function: str,
        operand: Numbers,
        makes: bool,
        args: Sequence[Numbers] = (),
    ) -> None:
        if self.note is not None:
            self.note(expr, function, operand, makes, args)


def _deciding(function: str, args: list[Numbers]) -> Numbers:
    """What reaches an operation: a divisor, or all of its arguments."""
    return args[1] if function == "/" else hull(join(*args)) if len(args) > 1 else args[0]


def shadows(expr: eq.Reduce, box: Limits) -> bool:
    """Whether an index of a reduction has the name of one around it, as where a step of a
    recurrence is written out by the one before.
    """
    return any(name in box for name, _ in expr.binders)


def outside(expr: eq.Reduce, box: Limits, facts: Facts) -> Facts:
    """The facts that hold inside a reduction, too: none about an index around it of the same name
    as one of its own.
    """
    if not facts or not shadows(expr, box):
        return facts
    names = {name for name, _ in expr.binders}
    return {one: known for one, known in facts.items() if names.isdisjoint(eq.indices(one))}
