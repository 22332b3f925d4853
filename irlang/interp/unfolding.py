"""What an element of a tensor is made of: terms over elements of other tensors.

A region of a tensor has a term, over the indices `#0`, `#1`, … of the tensor. A term that is an
element of another tensor says that the region is a copy, so that slices, joins, transpositions and
reshapes are seen through. Indices are brought into one form: equal elements are equal terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeGuard

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.equation_rules import linear
from irlang.interp.regions import Ends, Region, Tensor, form_ends

Limits = Mapping[str, Ends]
Store = Mapping[str, Tensor]
Decide = Callable[[eq.Expr, Limits], bool | None]  # whether a condition holds all over a box
_KEPT = 1 << 14  # terms of which it is remembered what they are elsewhere
_LONGEST = 400  # parts of a term
_EXTREMES = {"argmax": "max", "argmin": "min"}


def own_index(axis: int) -> str:
    """The name of an index of a region's term."""
    return f"#{axis}"


def index_form(expr: eq.Expr) -> tuple[Affine, dict[str, eq.Expr]] | None:
    """An affine form over indices and quotients; `q * (e // q) + e % q` becomes `e`, and
    `(q * a + e) // q` becomes `a + e // q`.

    Gives the form, and the quotients by the names that they have in it. None where there is none.
    """
    parts: dict[str, eq.Expr] = {}

    def replaced(part: eq.Expr) -> eq.Expr:
        if isinstance(part, eq.Apply) and part.function in ("//", "%"):
            inner, divisor = index_form(part.args[0]), affine(part.args[1])
            if inner is None or divisor is None or not divisor.known or divisor.constant < 1:
                return part
            rest, taken = _divided(inner[0], divisor.constant)
            parts.update(inner[1])
            if rest.known:
                if part.function == "%":
                    return eq.Const(rest.constant % divisor.constant)
                return linear(taken.plus(Affine({}, rest.constant // divisor.constant)))
            made = eq.Apply(part.function, (_written(rest, inner[1]), eq.Const(divisor.constant)))
            made = _of_quotient(made)
            name = _name(made)
            parts[name] = made
            whole = part.function == "//" and (taken.coefficients or taken.constant)
            return eq.Apply("+", (eq.Index(name), linear(taken))) if whole else eq.Index(name)
        return eq.rebuild(part, replaced) if isinstance(part, eq.Apply) else part

    form = affine(replaced(expr))
    if form is None:
        return None
    for name in list(parts):
        kind, rest = name[0], name[1:]
        if kind != "%" or name not in form.coefficients:
            continue
        part = parts[name]
        assert isinstance(part, eq.Apply)
        divisor_ = int(rest.split(" ", 1)[0])
        quotient = _name(_of_quotient(eq.Apply("//", part.args)))
        whole = next((n for n in form.coefficients if n == quotient), None)
        times = form.coefficients[name]
        if whole is None or form.coefficients[whole] != times * divisor_:
            continue
        inner = index_form(part.args[0])
        if inner is None:
            continue
        kept = {n: c for n, c in form.coefficients.items() if n not in (name, whole)}
        form = Affine(kept, form.constant).plus(inner[0], times)
        parts.update(inner[1])
    return form, {name: part for name, part in parts.items() if name in form.coefficients}


def _name(part: eq.Apply) -> str:
    """What a quotient or remainder is called in an affine form."""
    by = affine(part.args[1])
    return f"{part.function}{0 if by is None else by.constant} {part.args[0]!r}"


def _of_quotient(part: eq.Apply) -> eq.Apply:
    """A quotient of a quotient as one: `(e // a) // b` is `e // (a * b)`."""
    inner, by = part.args
    if part.function != "//" or not isinstance(inner, eq.Apply) or inner.function != "//":
        return part
    first, second = affine(inner.args[1]), affine(by)
    if first is None or second is None or not (first.known and second.known):
        return part
    return eq.Apply("//", (inner.args[0], eq.Const(first.constant * second.constant)))


def _divided(form: Affine, divisor: int) -> tuple[Affine, Affine]:
    """What is left of a form without whole multiples of a number, and how often it has that."""
    every = {**form.coefficients, "": form.constant}
    taken = {name: abs(n) // divisor * (1 if n > 0 else -1) for name, n in every.items()}
    times = taken.pop("")
    whole = Affine({name: n for name, n in taken.items() if n}, times)
    return form.plus(whole, -divisor), whole


def _written(form: Affine, parts: Mapping[str, eq.Expr]) -> eq.Expr:
    return eq.substitute(linear(form), dict(parts)) if parts else linear(form)


def canonical(index: eq.Expr) -> eq.Expr:
    """The one way in which an index is written."""
    if isinstance(index, (eq.Index, eq.Const)):
        return index
    found = index_form(index)
    return index if found is None else _written(*found)


def ends_of(index: eq.Expr, box: Limits) -> Ends | None:
    """Between which integers an index lies; None where it is read from data."""
    if isinstance(index, eq.Index):  # what most are
        return box.get(index.name)
    form = affine(index)
    if form is not None:
        return form_ends(form, box)
    if isinstance(index, eq.Apply) and index.function in ("//", "%", "+", "-", "*"):
        args = [ends_of(arg, box) for arg in index.args]
        if args[0] is None or args[1] is None:
            return None
        (a, b), (c, d) = args[0], args[1]
        if index.function == "+":
            return a + c, b + d
        if index.function == "-":
            return a - d, b - c
        if index.function == "*":
            ends = [x * y for x in (a, b) for y in (c, d)]
            return min(ends), max(ends)
        if c != d or c <= 0:
            return None
        if index.function == "//":
            return a // c, b // c
        return (a % c, b % c) if a // c == b // c else (0, c - 1)
    return None


def source(read: eq.Read, box: Limits, store: Store) -> tuple[eq.Read, Region | None]:
    """The element that a read comes to, through copies, and the region that it lies in."""
    while True:
        tensor = store.get(read.tensor)
        ends = [ends_of(index, box) for index in read.index]
        known = [one for one in ends if one is not None]
        if tensor is None or len(known) < len(ends):
            return read, None
        region = tensor.only(known)
        # of a copy that lies in several regions it is told what it is wherever it lies
        term = tensor.body if region is None else region.term
        if not isinstance(term, eq.Read) or term.default is not None:
            return read, region
        if region is None and term.tensor == read.tensor:
            return read, None
        made = instance(term, read)
        assert isinstance(made, eq.Read)
        read = eq.Read(made.tensor, tuple(_without_pinned(index, box) for index in made.index))


def _without_pinned(index: eq.Expr, box: Limits) -> eq.Expr:
    """A sum of indices without those that are one number in a box, as along an axis of one."""
    form = affine(index) if isinstance(index, eq.Apply) else None
    if form is None:
        return index
    ends = {name: box[name] for name in form.coefficients if name in box}
    pinned = {name: low for name, (low, high) in ends.items() if low == high}
    if not pinned or len(pinned) == len(form.coefficients):
        return index
    kept = {name: times for name, times in form.coefficients.items() if name not in pinned}
    more = sum(form.coefficients[name] * at for name, at in pinned.items())
    return linear(Affine(kept, form.constant + more))


@lru_cache(_KEPT)
def instance(term: eq.Expr, read: eq.Read) -> eq.Expr:
    """A region's term for the element that is read."""
    values = {own_index(axis): index for axis, index in enumerate(read.index)}
    taken = frozenset[str]().union(*map(eq.indices, read.index))
    if taken & _bound(term):
        term = _apart(term, taken, taken | _bound(term) | eq.indices(term))
    return settled(eq.substitute(term, values))


@lru_cache(_KEPT)
def _bound(term: eq.Expr) -> frozenset[str]:
    """The names of all indices that are bound in a term."""
    reductions = (part for part in eq.walk(term) if isinstance(part, eq.Reduce))
    return frozenset(name for part in reductions for name, _ in part.binders)


def _apart(term: eq.Expr, taken: frozenset[str], known: frozenset[str]) -> eq.Expr:
    """A term whose bound indices have none of the names that are taken, and no known one in its
    place: one step of a recurrence reads another, whose sum has the same indices.
    """
    if isinstance(term, eq.Reduce):
        names = {name: _fresh(name, known) for name, _ in term.binders if name in taken}
        if names:
            new: dict[str, eq.Expr] = {name: eq.Index(other) for name, other in names.items()}
            binders = tuple(
                (names.get(name, name), eq.substitute(size, new)) for name, size in term.binders
            )
            where, body = (
                None if part is None else eq.substitute(part, new)
                for part in (term.where, term.body)
            )
            term = eq.Reduce(term.kind, binders, where, body)
    return eq.rebuild(term, lambda part: _apart(part, taken, known))


def _fresh(name: str, known: frozenset[str]) -> str:
    while name in known:
        name += "'"
    return name


def settled(expr: eq.Expr) -> eq.Expr:
    """An expression with the indices of its reads in canonical form."""
    if isinstance(expr, eq.Read):
        default = None if expr.default is None else settled(expr.default)
        return eq.Read(expr.tensor, tuple(map(canonical, expr.index)), default)
    return eq.rebuild(expr, settled)


def pinned(expr: eq.Expr, box: Limits) -> eq.Expr:
    """An expression with the indices that are one number in a box as that."""
    pins: dict[str, eq.Expr] = {n: eq.Const(low) for n, (low, high) in box.items() if low == high}
    return settled(eq.substitute(expr, pins)) if pins else expr


def without_lone(expr: eq.Expr) -> eq.Expr:
    """An expression in which a reduction of a single term is that term."""
    if (
        isinstance(expr, eq.Reduce)
        and expr.kind in ("sum", "prod", "max", "min")
        and expr.body is not None
        and expr.where is None
        and all(isinstance(n, (eq.Const, eq.Size)) and n.value == 1 for _, n in expr.binders)
    ):
        return without_lone(eq.substitute(expr.body, {n: eq.Const(0) for n, _ in expr.binders}))
    return eq.rebuild(expr, without_lone)


def anonymous(term: eq.Reduce) -> eq.Expr:
    """A reduction whose indices have no names of their own."""
    names = {name: f"%{place}" for place, (name, _) in enumerate(term.binders)}
    values: dict[str, eq.Expr] = {name: eq.Index(new) for name, new in names.items()}
    binders = tuple(
        (names[name], eq.Const(bound.value) if isinstance(bound, eq.Size) else bound)
        for name, bound in term.binders
    )
    body, where = (
        None if part is None else settled(eq.substitute(part, values))
        for part in (term.body, term.where)
    )
    return eq.Reduce(term.kind, binders, where, body)


def inner_box(expr: eq.Reduce, box: Limits) -> dict[str, Ends] | None:
    """The box with the indices of a reduction; None where their bounds are not known."""
    inner = dict(box)
    for name, bound in expr.binders:
        ends = ends_of(bound, inner)
        if ends is None or ends[0] != ends[1] or ends[1] <= 0:
            return None
        inner[name] = (0, ends[1] - 1)
    return inner


def _branch(expr: eq.Expr, box: Limits, decided: Decide) -> eq.Expr | None:
    """The branch of a choice that is taken all over a box; None where there is none."""
    if not (isinstance(expr, eq.Apply) and expr.function == "select"):
        return None
    which = decided(expr.args[0], box)
    return None if which is None else expr.args[1 if which else 2]


def taken(expr: eq.Expr, box: Limits, decided: Decide) -> eq.Expr:
    """An expression with the branches that are taken all over a box: no position is below 0.

    decided: as of `specialised`.
    """
    branch = _branch(expr, box, decided)
    if branch is not None:
        return taken(branch, box, decided)
    if isinstance(expr, eq.Apply) and expr.function == "constant":  # of the same value
        return taken(expr.args[0], box, decided)
    if isinstance(expr, eq.Reduce):
        return expr
    return eq.rebuild(expr, lambda part: taken(part, box, decided))


def specialised(expr: eq.Expr, box: Limits, store: Store, decided: Decide) -> eq.Expr:
    """An expression of the same value in a box: branches taken, defaults dropped, copies resolved.

    decided: the truth value of a condition on indices, None for either.
    """
    branch = _branch(expr, box, decided)
    if branch is not None:
        return specialised(branch, box, store, decided)
    if isinstance(expr, eq.Read):
        return _read(expr, box, store, decided)
    if isinstance(expr, eq.Reduce):
        inner = inner_box(expr, box)
        if inner is None:
            return expr
        box = inner
    return eq.rebuild(expr, lambda part: specialised(part, box, store, decided))


def _read(expr: eq.Read, box: Limits, store: Store, decided: Decide) -> eq.Expr:
    pinned = (_pinned(taken(part, box, decided), box, store, decided) for part in expr.index)
    index = tuple(_in_box(canonical(part), box) for part in pinned)
    default = expr.default
    if default is not None:
        shape = store[expr.tensor].info.shape
        ends = [ends_of(part, box) for part in index]
        inside = [
            one is not None and one[0] >= 0 and one[1] < size
            for one, size in zip(ends, shape, strict=True)
        ]
        outside = [
            one is not None and (one[1] < 0 or one[0] >= size)
            for one, size in zip(ends, shape, strict=True)
        ]
        if any(outside):
            return specialised(default, box, store, decided)
        lies = zip(inside, index, shape, strict=True)
        if not all(sure or _read_inside(at, size, box, decided) for sure, at, size in lies):
            return eq.Read(expr.tensor, index, default)
    read, _ = source(eq.Read(expr.tensor, index), box, store)
    return _extreme(read, box, store, decided) or read


def _read_inside(index: eq.Expr, size: int, box: Limits, decided: Decide) -> bool:
    """Whether an index that is read from data, as a label, lies inside an axis all over a box."""
    if not eq.reads(index):
        return False
    ends = eq.Apply("<=", (eq.Const(0), index)), eq.Apply("<", (index, eq.Const(size)))
    return all(decided(end, box) is True for end in ends)


def is_place(body: eq.Expr | None) -> TypeGuard[eq.Reduce]:
    """Whether a whole number says where the largest element is, or the least."""
    if not isinstance(body, eq.Reduce) or body.where is not None:
        return False
    return body.kind in _EXTREMES and small(body)


def _extreme(read: eq.Read, box: Limits, store: Store, decided: Decide) -> eq.Expr | None:
    """The largest of some elements, or the least, for one that is read where that is."""
    for axis, part in enumerate(read.index):
        if not isinstance(part, eq.Read):
            continue
        at, region = source(part, box, store)
        place = None if region is None else region.term or store[at.tensor].body
        if not is_place(place) or place.body is None or len(place.binders) != 1:
            continue
        found = instance(place, at)
        inner = inner_box(found, box) if isinstance(found, eq.Reduce) else None
        if inner is None or not isinstance(found, eq.Reduce) or found.body is None:
            continue
        index = eq.Index(found.binders[0][0])
        any_one = eq.Read(read.tensor, (*read.index[:axis], index, *read.index[axis + 1 :]))
        if specialised(found.body, inner, store, decided) == source(any_one, inner, store)[0]:
            return eq.Reduce(_EXTREMES[found.kind], found.binders, None, any_one)
    return None


def _pinned(index: eq.Expr, box: Limits, store: Store, decided: Decide) -> eq.Expr:
    """An index with the number in place of each position that is read and is the same all over a
    box, as where an element is gathered whose position is a constant of the model.
    """

    def replaced(part: eq.Expr) -> eq.Expr:
        if not isinstance(part, eq.Read):
            return eq.rebuild(part, replaced)
        read, region = source(part, box, store)
        if region is None:
            return part
        if isinstance(region.term, eq.Index):  # it counts
            return instance(region.term, read)
        only = region.numbers.only
        return part if only is None else eq.Const(int(only))

    if not eq.reads(index):
        return index
    return specialised(replaced(index), box, store, decided)


def _in_box(index: eq.Expr, box: Limits) -> eq.Expr:
    """An index without the remainders that leave everything as it is there."""
    if isinstance(index, eq.Apply) and index.function == "%":
        ends, by = ends_of(index.args[0], box), affine(index.args[1])
        if (
            ends is not None
            and by is not None
            and by.known
            and 0 <= ends[0] <= ends[1] < by.constant
        ):
            return index.args[0]
    return index


@lru_cache(_KEPT)
def small(expr: eq.Expr) -> bool:
    """Whether a term is short enough to be kept."""
    return sum(1 for _ in zip(range(_LONGEST), eq.walk(expr), strict=False)) < _LONGEST
