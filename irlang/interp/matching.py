"""Whether a term is another's pattern: for which values of its free indices it is the same.

Indices are affine forms, or the quotients and remainders that a reshape makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.equation_rules import linear
from irlang.interp.regions import Ends
from irlang.interp.unfolding import Limits, canonical, ends_of


def match(
    pattern: eq.Expr,
    target: eq.Expr,
    free: Limits,
    found: dict[str, eq.Expr],
    box: Limits | None = None,
) -> bool:
    """Whether a pattern is the target for some values of its free indices, put into `found`.

    box: between which numbers the target's indices lie; with it an element is also found by what
    place it has in axes that are joined to one.
    """
    if isinstance(pattern, eq.Index):
        return _index_match(pattern, target, free, found)
    if type(pattern) is not type(target):
        return False
    if isinstance(pattern, eq.Read) and isinstance(target, eq.Read):
        if pattern.tensor != target.tensor or pattern.default != target.default:
            return False
        pairs = list(zip(pattern.index, target.index, strict=True))
        if box is not None:
            pairs = _joined(pairs, box)
        return all(_index_match(a, b, free, found) for a, b in pairs)
    if isinstance(pattern, eq.Apply) and isinstance(target, eq.Apply):
        if pattern.function != target.function or len(pattern.args) != len(target.args):
            return False
        pairs = list(zip(pattern.args, target.args, strict=True))
        return all(match(a, b, free, found, box) for a, b in pairs)
    if isinstance(pattern, (eq.Const, eq.Size)) and isinstance(target, (eq.Const, eq.Size)):
        return pattern.value == target.value
    return pattern == target


def _index_match(
    pattern: eq.Expr, target: eq.Expr, free: Limits, found: dict[str, eq.Expr]
) -> bool:
    pattern = canonical(eq.substitute(pattern, found))
    left, right = affine(pattern), affine(target)
    if right is None and isinstance(pattern, eq.Index) and pattern.name in free.keys() - found:
        found[pattern.name] = target  # an index that is read from data
        return True
    if left is None or right is None:
        if isinstance(pattern, eq.Read) and isinstance(target, eq.Read):  # from data, as well
            return match(pattern, target, free, found)
        return pattern == target or _parts_match(pattern, target, free, found)
    unknown = [name for name in left.coefficients if name in free and name not in found]
    if not unknown:
        return left == right
    known = Affine({n: c for n, c in left.coefficients.items() if n not in unknown}, left.constant)
    rest = right.plus(known, -1)
    if len(unknown) > 1:
        return _digits(rest, {name: left.coefficients[name] for name in unknown}, found)
    name = unknown[0]
    times = left.coefficients[name]
    if any(count % times for count in (rest.constant, *rest.coefficients.values())):
        return False
    shares = {other: count // times for other, count in rest.coefficients.items()}
    found[name] = linear(Affine(shares, rest.constant // times))
    return True


def _digits(target: Affine, times: Mapping[str, int], found: dict[str, eq.Expr]) -> bool:
    """Several free indices as the digits of an index, as those of an axis that is reshaped into
    more: the one that counts most first, what is left is the last. Whether each of them lies within
    its bounds is for others to ask.
    """
    order = sorted(times, key=lambda name: -times[name])
    if times[order[-1]] != 1:
        return False
    rest = linear(target)
    for name in order[:-1]:
        by = eq.Const(times[name])
        found[name] = canonical(eq.Apply("//", (rest, by)))
        rest = canonical(eq.Apply("%", (rest, by)))
    found[order[-1]] = rest
    return True


def _joined(pairs: list[tuple[eq.Expr, eq.Expr]], box: Limits) -> list[tuple[eq.Expr, eq.Expr]]:
    """Pairs of indices, own and others, two axes as one where the own are quotient and remainder of
    one index, and the other is less than the divisor where the own is the remainder.
    """
    for at in range(1, len(pairs)):
        own, its = pairs[at]
        if not isinstance(own, eq.Apply) or own.function != "%":
            continue
        by, ends = affine(own.args[1]), ends_of(its, box)
        if by is None or not by.known or ends is None or not 0 <= ends[0] <= ends[1] < by.constant:
            continue
        one, other = (
            canonical(eq.Apply("+", (eq.Apply("*", (eq.Const(by.constant), high)), low)))
            for high, low in zip(pairs[at - 1], pairs[at], strict=True)
        )
        if one == own.args[0]:
            return _joined([*pairs[: at - 1], (one, other), *pairs[at + 1 :]], box)
    return pairs


def _parts_match(
    pattern: eq.Expr, target: eq.Expr, free: Limits, found: dict[str, eq.Expr]
) -> bool:
    """The same of quotients and remainders, as a reshape makes them: part by part."""
    if not isinstance(pattern, eq.Apply) or not isinstance(target, eq.Apply):
        return False
    if pattern.function != target.function or len(pattern.args) != len(target.args):
        return False
    pairs = zip(pattern.args, target.args, strict=True)
    return all(_index_match(a, b, free, found) for a, b in pairs)


def within(
    found: Mapping[str, eq.Expr],
    free: Limits,
    box: Limits,
    read: Callable[[eq.Expr], Ends | None] = lambda _: None,
) -> bool:
    """Whether the values of free indices lie within their bounds for all indices of a box.

    read: between which numbers those lie that are read from data; None where nothing is known.
    """
    for name, value in found.items():
        ends = ends_of(value, box) or read(value)
        if ends is None or ends[0] < free[name][0] or ends[1] > free[name][1]:
            return False
    return True
