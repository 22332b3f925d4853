"""What functions that are neither monotone nor of one argument do to intervals.

Every function takes the ends of its arguments' intervals and gives those of an interval that holds
all values between them, in double precision; None where nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from irlang import special, special_gamma

Ends = tuple[float, float]
_TURN_OF_LGAMMA = 1.4616321449683622  # where digamma is 0


def always(low: float, high: float) -> Callable[[float, float], Ends]:
    """Of a function whose values all lie between two numbers, whatever the interval."""
    return lambda *_: (low, high)


_QUARTER = 1.57  # of a turn, a little less


def cosine(low: float, high: float) -> Ends:
    """Between the turns at the multiples of pi."""
    if not (math.isfinite(low) and math.isfinite(high)) or max(-low, high) > 1e15:
        return -1.0, 1.0
    first, last = math.ceil(low / math.pi), math.floor(high / math.pi)
    values = [math.cos(low), math.cos(high)]
    values += [(-1.0) ** turn for turn in range(first, min(last, first + 1) + 1)]
    return min(values), max(values)


def sine(low: float, high: float) -> Ends:
    """As the cosine a quarter of a turn before, a little wider for that; where it rises from end
    to end, by these: it is as small as its argument is.
    """
    if -_QUARTER <= low <= high <= _QUARTER:
        return math.sin(low), math.sin(high)
    least, largest = cosine(low - math.pi / 2, high - math.pi / 2)
    slack = 4e-16 * max(1.0, min(max(-low, high), 1e15))
    return max(least - slack, -1.0), min(largest + slack, 1.0)


def tangent(low: float, high: float) -> Ends:
    """Over a pole, what numbers of double precision beside it give: none hits it."""
    largest = 1.7e16
    if not (math.isfinite(low) and math.isfinite(high)) or high - low >= math.pi:
        return -largest, largest
    ends = math.tan(low), math.tan(high)
    crossed = math.floor(low / math.pi + 0.5) != math.floor(high / math.pi + 0.5)
    near = max(map(abs, ends)) > 1e12 or max(-low, high) > 1e12
    return (-largest, largest) if crossed or near else ends


def log_gamma(low: float, high: float) -> Ends:
    """For positive numbers by its one turn; infinite at 0 and at the negative integers."""
    if low <= 0:
        if low < 0:  # by reflection: log(pi / |sin(pi x)|) - log(gamma(1 - x))
            below = 1.14 - math.lgamma(1.0 - low) if low > -1e300 else -math.inf
            return min(below, -0.125), math.inf
        low = 5e-324
        return log_gamma(low, max(high, low))[0], math.inf
    values = [math.lgamma(end) if end < 1e305 else math.inf for end in (low, high)]
    least = math.lgamma(_TURN_OF_LGAMMA) if low <= _TURN_OF_LGAMMA <= high else min(values)
    return least, max(values)


def rounded(value: Ends, digits: Ends, finest: Ends) -> Ends | None:
    """A number moves by half a unit of its last digit at most."""
    ends = []
    for end, sign in zip(value, (-1, 1), strict=True):
        if not math.isfinite(end):
            return None
        unit = max(math.ldexp(1.0, math.frexp(end)[1] + 1 - int(digits[0])), finest[1])
        ends.append(end + sign * unit / 2)
    return ends[0], ends[1]


def incomplete_gamma(order: Ends, value: Ends, upper: bool = False) -> Ends | None:
    """By two corners: the lower function falls in the order and rises in the other argument."""
    if order[0] < 0 or value[0] < 0 or order[0] == value[0] == 0:
        return None
    function = special_gamma.gammaincc if upper else special_gamma.gammainc
    corners = ((order[1], value[0]), (order[0], value[1]))
    found = sorted(float(function(*corner)) for corner in corners)
    return None if math.isnan(sum(found)) else (found[0], found[1])


def zeta(order: Ends, value: Ends) -> Ends | None:
    """By two corners, where it falls in both arguments."""
    if order[0] <= 1 or value[0] < 1:
        return None
    ends = ((order[1], value[1]), (order[0], value[0]))
    least, largest = (float(special_gamma.zeta(*end)) for end in ends)
    return least, largest


def polygamma(order: Ends, value: Ends) -> Ends | None:
    """For positive numbers, where it is monotone."""
    if value[0] <= 0 or order[0] != order[1]:
        return None
    at = [float(special.polygamma(order[0], end)) for end in value]
    return min(at), max(at)
