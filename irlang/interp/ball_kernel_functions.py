"""The rules of `ball_functions` for one number at a time, as text that numba compiles.

A rule takes values and radii and gives a value and a radius. What it knows of the arithmetic comes
as numbers: `place` and `absolute` (twice the unit roundoff times an allowance), `least` (what is
added whatever the size), `tiny`, `largest`, `grid` and `reach` (multiples of 1 / grid below reach
are added and multiplied exactly). An element is exact where its radius is 0. Nothing branches: a
loop over these is done for as many numbers at a time as a register holds.
"""

from __future__ import annotations

from irlang.interp.kernel_functions import HELPERS as PLAIN
from irlang.interp.kernel_functions import ON_REALS
from irlang.scalar import SCALARS
from irlang.scalar_row import Scalar

# The slope, and how fast it grows: |f''| <= c |f'|, so that |f'(a + t)| <= |f'(a)| exp(c t), and
# f moves by no more than f' r (1 + c r) while c r <= 1. That of erf is the largest in the ball.
_SLOPES = {
    "exp": ("v", 1.0),
    "tanh": ("(1.0 - v) * (1.0 + v) + 2.0**-50", 2.0),
    "sigmoid": ("v * (1.0 - v + 2.0**-50)", 1.0),
    "erf": ("1.1283791670955126 * exp_of(-square(larger(abs(a) - r, 0.0)))", 0.0),
}
_STEEPEST = {"tanh": 1.0, "sigmoid": 0.25, "erf": 1.1283791670955126}

_RULES = {
    "larger": "def larger(a, b):\n    return a if a >= b else b\n",
    "smaller": "def smaller(a, b):\n    return a if a <= b else b\n",
    "finite": "def finite(a):\n    return abs(a) < np.inf\n",
    "gap": "def gap(a, b):\n    return 0.0 if a == b else abs(a - b)\n",
    "spread": (
        "def spread(v, low, high):\n"
        "    above, below = gap(high, v), gap(v, low)\n"
        "    return larger(above, below) if above + below == above + below else np.inf\n"
    ),
    "bounded": (
        "def bounded(v, r, size, largest):\n"
        "    return r if (size + r <= largest) | ((r == r) & (not finite(v))) else np.inf\n"
    ),
    # finite operands, an infinite result: a program may scale, fuse or associate otherwise
    "overflown": (
        "def overflown(v, r, a, b):\n"
        "    return np.inf if (abs(v) == np.inf) & finite(a) & finite(b) else r\n"
    ),
    "own": (
        "def own(v, place, absolute, least):\n"
        "    return larger(place * abs(v), absolute) + least if finite(v) else 0.0\n"
    ),
    # 1 minus the unit roundoff times a number falls on the next smaller one, of half the distance,
    # just below a power of two
    "power_of_two": (
        "def power_of_two(a):\n"
        "    rest = a - a * (1.0 - 2.0**-53)\n"
        "    return (rest == a * 2.0**-53) & (a != 0.0) & (abs(a) != 1.0) & finite(a)\n"
    ),
    "simple": (
        "def simple(a, grid, reach):\n"
        "    return (abs(a) < reach) & (np.floor(a * grid) == a * grid)\n"
    ),
    # for sure no number, whoever computes it
    "no_number": (
        "def no_number(a, ra, b, rb):\n"
        "    return ((ra == 0.0) & (a != a)) | ((rb == 0.0) & (b != b))\n"
    ),
    # for sure infinite, beside a finite number; and one that is surely not zero
    "beside": (
        "def beside(a, ra, b, rb):\n"
        "    return (ra == 0.0) & (abs(a) == np.inf) & finite(b) & finite(rb)\n"
    ),
    "endless": (
        "def endless(a, ra, b, rb):\n"
        "    return (ra == 0.0) & (abs(a) == np.inf) & finite(b) & finite(rb) & (abs(b) > rb)\n"
    ),
    "added": (
        "def added(a, ra, b, rb, place, absolute, least, tiny, largest, grid, reach):\n"
        "    v, r = a + b, ra + rb\n"
        "    plain = simple(a, grid, reach) & simple(b, grid, reach) & simple(v, grid, reach)\n"
        "    zero = ((ra == 0.0) & (a == 0.0)) | ((rb == 0.0) & (b == 0.0))\n"
        "    free = zero | ((r == 0.0) & plain)\n"
        "    r += 0.0 if free else own(abs(v) + r, place, absolute, least)\n"
        "    sure = no_number(a, ra, b, rb) | beside(a, ra, b, rb) | beside(b, rb, a, ra)\n"
        "    r = 0.0 if sure else bounded(v, r, abs(v), largest)\n"
        "    return v, overflown(v, r, a, b)\n"
    ),
    "times": (
        "def times(a, ra, b, rb, place, absolute, least, tiny, largest, grid, reach):\n"
        "    v = a * b\n"
        "    r = abs(a) * rb + abs(b) * ra + ra * rb if ra + rb != 0.0 else 0.0\n"
        "    sure = no_number(a, ra, b, rb) | endless(a, ra, b, rb) | endless(b, rb, a, ra)\n"
        "    plain = simple(a, grid, reach) & simple(b, grid, reach) & simple(v, grid, reach)\n"
        "    free = (ra == 0.0) & (rb == 0.0) & plain\n"
        "    free = free | ((ra == 0.0) & ((a == 0.0) | power_of_two(a)))\n"
        "    free = free | ((rb == 0.0) & ((b == 0.0) | power_of_two(b)))\n"
        "    free = free & ((a == 0.0) | (b == 0.0) | (abs(v) - r >= tiny))\n"
        "    r += 0.0 if free else own(abs(v) + r, place, absolute, least)\n"
        "    r = 0.0 if sure else bounded(v, r, abs(v), largest)\n"
        "    return v, overflown(v, r, a, b)\n"
    ),
    "over": (
        "def over(a, ra, b, rb, place, absolute, least, tiny, largest, grid, reach, floor):\n"
        "    v = a / b\n"
        "    sure = no_number(a, ra, b, rb) | endless(a, ra, b, rb)\n"
        "    low = floor if floor > abs(b) - rb else abs(b) - rb\n"
        "    pole = (rb > 0.0) | ((ra > 0.0) & (abs(a) <= ra)) | (low != low)\n"
        "    r = (ra + abs(v) * rb) / low if low > 0.0 else (np.inf if pole else 0.0)\n"
        "    r = r if ra + rb != 0.0 else 0.0\n"
        "    free = ((ra == 0.0) & (a == 0.0)) | ((rb == 0.0) & power_of_two(b))\n"
        "    free = free & ((a == 0.0) | (b == 0.0) | (abs(v) - r >= tiny))\n"
        "    r += 0.0 if free else own(abs(v) + r, place, absolute, least)\n"
        "    far = ((abs(b) + rb) * tiny > 1.0) & finite(b) & finite(v)\n"
        "    r += (abs(a) + ra) * tiny if far else 0.0\n"
        "    r = 0.0 if sure else bounded(v, r, abs(v), largest)\n"
        "    return v, overflown(v, r, a, b) if b != 0.0 else r\n"
    ),
    "any_order": (
        "def any_order(v, r, slack, total, growth, largest, exact):\n"
        "    most = (total + abs(v) + slack) / 2.0\n"
        "    if finite(total):\n"
        "        r = larger(r, slack + growth * most)\n"
        "        r = 0.0 if exact & (most <= largest) else r\n"
        "        r = r if most + growth * most <= largest else np.inf\n"
        "    return bounded(v, r, abs(v), largest)\n"
    ),
    # whether it is a multiple of what `far` has the last digit of (`ball.unrounded_sum`)
    "kept": "def kept(a, ra, far):\n    return (ra == 0.0) & ((a + far) - far == a)\n",
    "greater": (
        "def greater(a, ra, b, rb):\n"
        "    v = largest_of(a, b)\n"
        "    sure = ((ra == 0.0) & (rb == 0.0)) | no_number(a, ra, b, rb)\n"
        "    r = spread(v, largest_of(a - ra, b - rb), largest_of(a + ra, b + rb))\n"
        "    return v, 0.0 if sure else r\n"
    ),
    "lesser": (
        "def lesser(a, ra, b, rb):\n"
        "    v = smallest_of(a, b)\n"
        "    sure = ((ra == 0.0) & (rb == 0.0)) | no_number(a, ra, b, rb)\n"
        "    r = spread(v, smallest_of(a - ra, b - rb), smallest_of(a + ra, b + rb))\n"
        "    return v, 0.0 if sure else r\n"
    ),
    "largest_of": "def largest_of(a, b):\n    return a if (a >= b) | (a != a) else b\n",
    "smallest_of": "def smallest_of(a, b):\n    return a if (a <= b) | (a != a) else b\n",
    "near": (
        "def near(a, ra, b, rb):\n"
        "    reach = ra + rb\n"
        "    return (reach == np.inf) | ((reach > 0.0) & (gap(a, b) <= reach))\n"
    ),
    "held": (
        "def held(v, r, most):\n"
        "    return np.inf if (r != r) | (finite(v) & (abs(v) + r > most)) else r\n"
    ),
}


def _overflown(row: Scalar) -> str:
    """The radius of a value, nothing being known where it has overflowed."""
    poles = [f"(a != {end!r})" for end in row.domain if abs(end) != float("inf")]
    found = "overflown(v, slack, a, a)"
    return f"({found} if {' & '.join(poles)} else slack)" if poles else found


def _compiled(name: str) -> str:
    """The rule of a function of one argument: its slope, or its values at both ends."""
    row = SCALARS[name]
    value = ON_REALS[name]
    known = "(r != 0.0)"  # where rounding has a say
    lines = [
        f"def ball_{name}(a, r, place, absolute, least, largest, floor):",
        f"    v = {value.format('a')}",
    ]
    if name in _SLOPES:
        slope, growth = _SLOPES[name]
        lines.append(f"    slack = ({slope}) * (1.0 + 2.0**-40) * r * (1.0 + {growth} * r)")
        if growth:
            far = f"smaller({_STEEPEST[name]} * r, 2.0)" if name in _STEEPEST else "v * expm1_of(r)"
            lines.append(f"    far = {far} * (1.0 + 2.0**-40)")
            lines.append(f"    slack = slack if {growth} * r <= 1.0 else far")
    else:
        ends = [
            "low, high = a - r, a + r",
            "low = floor if floor > low else low",
            f"below, above = {value.format('low')}, {value.format('high')}",
        ]
        if "math." in value and "sqrt" not in value:  # a call, which not every number needs
            lines += ["    low = high = a", "    below = above = v", "    if r != 0.0:"]
            ends = [f"    {line}" for line in ends]
        lines += [f"    {line}" for line in ends]
        lines += ["    slack = larger(abs(above - v), abs(below - v))"]
        for turn in row.monotone or ():
            at = float(row.numpy(turn))
            lines += [f"    inside = (low < {turn!r}) & ({turn!r} < high)"]
            lines += [f"    slack = larger(slack, abs({at!r} - v)) if inside else slack"]
        doubt = max(4.0, 2 * row.ulps) * 2.0**-53
        lines += [f"    slack += {doubt!r} * larger(abs(below), abs(above))"]
        edges = [("low", "high", "<", row.domain[0]), ("high", "low", ">", row.domain[1])]
        edges = [edge for edge in edges if abs(edge[-1]) != float("inf")]
        outside = [f"({side} {sign} {edge!r})" for side, _, sign, edge in edges]
        never = [f"({side} {sign} {edge!r})" for _, side, sign, edge in edges]
        if outside:
            lines += [f"    slack = np.inf if {' | '.join(outside)} else slack"]
            known += f" & ~((v != v) & ({' | '.join(never)}))"
    lines += [
        "    slack = np.inf if (r == np.inf) | (slack != slack) | (v != v) else slack",
        f"    slack = slack if {known} else 0.0",
        "    sure = (r == 0.0) & ((a == 0.0) | (abs(a) == np.inf)) & (v == 0.0)",
        "    slack += own(abs(v) + slack, place, absolute, least)",
        "    slack = 0.0 if sure else bounded(v, slack, abs(v), largest)",
        f"    return v, {_overflown(row)}",
    ]
    return "\n".join(lines) + "\n"


ARITHMETIC = {"+": "added", "-": "added", "*": "times", "/": "over"}
FUNCTIONS = frozenset(
    name
    for name, row in SCALARS.items()
    if row.arity == 1 and row.kind in ("real", "same") and row.monotone is not None and row.ulps
    if name in ON_REALS
)

HELPERS: dict[str, str] = {
    **PLAIN,
    **_RULES,
    **{f"ball_{name}": _compiled(name) for name in sorted(FUNCTIONS)},
}
