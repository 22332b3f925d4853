"""The rules of `ball_functions` for one number at a time, as text that numba compiles.

A rule takes values and radii and gives a value and a radius. What it knows of the arithmetic comes
as numbers: `place` and `absolute` (twice the unit roundoff times an allowance), `least` (what is
added whatever the size), `tiny`, `largest` and `unit`. An element is exact where its radius is 0.
"""

from __future__ import annotations

from irlang.interp.kernel_functions import HELPERS as PLAIN
from irlang.interp.kernel_functions import ON_REALS
from irlang.scalar import SCALARS

# The slope, and how fast it grows: |f''| <= c |f'|, so that |f'(a + t)| <= |f'(a)| exp(c t), and
# f moves by no more than f' r (1 + c r) while c r <= 1. That of erf is the largest in the ball.
_SLOPES = {
    "exp": ("v", 1.0),
    "tanh": ("(1.0 - v) * (1.0 + v) + 2.0**-50", 2.0),
    "sigmoid": ("v * (1.0 - v + 2.0**-50)", 1.0),
    "erf": ("1.1283791670955126 * math.exp(-max(abs(a) - r, 0.0) ** 2)", 0.0),
}
_STEEPEST = {"tanh": 1.0, "sigmoid": 0.25, "erf": 1.1283791670955126}

_RULES = {
    "gap": "def gap(a, b):\n    return 0.0 if a == b else abs(a - b)\n",
    "spread": (
        "def spread(v, low, high):\n"
        "    above, below = gap(high, v), gap(v, low)\n"
        "    return max(above, below) if above + below == above + below else np.inf\n"
    ),
    "bounded": (
        "def bounded(v, r, size, largest):\n"
        "    if size + r <= largest:\n"
        "        return r\n"
        "    return r if r == r and not math.isfinite(v) else np.inf\n"
    ),
    "own": (
        "def own(v, place, absolute, least):\n"
        "    return max(place * abs(v), absolute) + least if math.isfinite(v) else 0.0\n"
    ),
    # 1 minus the unit roundoff times a number falls on the next smaller one, of half the distance,
    # just below a power of two
    "power_of_two": (
        "def power_of_two(a):\n"
        "    rest = a - a * (1.0 - 2.0**-53)\n"
        "    return rest == a * 2.0**-53 and a != 0.0 and abs(a) != 1.0 and math.isfinite(a)\n"
    ),
    "simple": (
        "def simple(a, unit):\n"
        "    grid = 2.0 ** (-math.log2(unit) // 3.0)\n"
        "    return abs(a) * unit * grid * 4.0 < 1.0 and np.floor(a * grid) == a * grid\n"
    ),
    # for sure no number, whoever computes it
    "no_number": (
        "def no_number(a, ra, b, rb):\n"
        "    return (ra == 0.0 and a != a) or (rb == 0.0 and b != b)\n"
    ),
    # for sure infinite, beside a finite number that is surely not zero
    "endless": (
        "def endless(a, ra, b, rb):\n"
        "    finite = math.isfinite(b) and math.isfinite(rb)\n"
        "    return ra == 0.0 and math.isinf(a) and finite and abs(b) > rb\n"
    ),
    "added": (
        "def added(a, ra, b, rb, place, absolute, least, tiny, largest, unit):\n"
        "    v, r = a + b, ra + rb\n"
        "    if no_number(a, ra, b, rb):\n"
        "        return v, 0.0\n"
        "    free = (ra == 0.0 and a == 0.0) or (rb == 0.0 and b == 0.0)\n"
        "    if not free and r == 0.0:\n"
        "        free = simple(a, unit) and simple(b, unit) and simple(v, unit)\n"
        "    if not free:\n"
        "        r += own(abs(v) + r, place, absolute, least)\n"
        "    return v, bounded(v, r, abs(v), largest)\n"
    ),
    "times": (
        "def times(a, ra, b, rb, place, absolute, least, tiny, largest, unit):\n"
        "    v = a * b\n"
        "    r = abs(a) * rb + abs(b) * ra + ra * rb if ra + rb != 0.0 else 0.0\n"
        "    if no_number(a, ra, b, rb) or endless(a, ra, b, rb) or endless(b, rb, a, ra):\n"
        "        return v, 0.0\n"
        "    free = False\n"
        "    if ra == 0.0:\n"
        "        free = a == 0.0 or power_of_two(a)\n"
        "    if rb == 0.0 and not free:\n"
        "        free = b == 0.0 or power_of_two(b)\n"
        "        if not free and ra == 0.0:\n"
        "            free = simple(a, unit) and simple(b, unit) and simple(v, unit)\n"
        "    if not (free and (a == 0.0 or b == 0.0 or abs(v) >= tiny)):\n"
        "        r += own(abs(v) + r, place, absolute, least)\n"
        "    return v, bounded(v, r, abs(v), largest)\n"
    ),
    "over": (
        "def over(a, ra, b, rb, place, absolute, least, tiny, largest, unit, floor):\n"
        "    v = a / b\n"
        "    r = 0.0\n"
        "    if no_number(a, ra, b, rb) or endless(a, ra, b, rb):\n"
        "        return v, 0.0\n"
        "    if ra + rb != 0.0:\n"
        "        low = abs(b) - rb\n"
        "        if floor > low:\n"
        "            low = floor\n"
        "        if low > 0.0:\n"
        "            r = (ra + abs(v) * rb) / low\n"
        "        elif rb > 0.0 or (ra > 0.0 and abs(a) <= ra) or low != low:\n"
        "            r = np.inf\n"
        "    free = (ra == 0.0 and a == 0.0) or (rb == 0.0 and power_of_two(b))\n"
        "    if not (free and (a == 0.0 or b == 0.0 or abs(v) >= tiny)):\n"
        "        r += own(abs(v) + r, place, absolute, least)\n"
        "    return v, bounded(v, r, abs(v), largest)\n"
    ),
    "any_order": (
        "def any_order(v, r, slack, total, growth, largest):\n"
        "    if r > slack:\n"
        "        r = max(r, slack + growth * total)\n"
        "    return bounded(v, r, abs(v), largest)\n"
    ),
    "greater": (
        "def greater(a, ra, b, rb):\n"
        "    v = largest_of(a, b)\n"
        "    if (ra == 0.0 and rb == 0.0) or no_number(a, ra, b, rb):\n"
        "        return v, 0.0\n"
        "    return v, spread(v, largest_of(a - ra, b - rb), largest_of(a + ra, b + rb))\n"
    ),
    "lesser": (
        "def lesser(a, ra, b, rb):\n"
        "    v = smallest_of(a, b)\n"
        "    if (ra == 0.0 and rb == 0.0) or no_number(a, ra, b, rb):\n"
        "        return v, 0.0\n"
        "    return v, spread(v, smallest_of(a - ra, b - rb), smallest_of(a + ra, b + rb))\n"
    ),
    "largest_of": "def largest_of(a, b):\n    return a if a >= b or a != a else b\n",
    "smallest_of": "def smallest_of(a, b):\n    return a if a <= b or a != a else b\n",
    "near": (
        "def near(a, ra, b, rb):\n"
        "    reach = ra + rb\n"
        "    return reach == np.inf or (reach > 0.0 and gap(a, b) <= reach)\n"
    ),
    "held": (
        "def held(v, r, most):\n"
        "    if r != r:\n"
        "        return np.inf\n"
        "    return np.inf if math.isfinite(v) and abs(v) + r > most else r\n"
    ),
}


def _compiled(name: str) -> str:
    """The rule of a function of one argument: its slope, or its values at both ends."""
    row = SCALARS[name]
    value = ON_REALS[name]
    lines = [
        f"def ball_{name}(a, r, place, absolute, least, largest, floor):",
        f"    v = {value.format('a')}",
    ]
    lines += ["    slack = 0.0", "    if r != 0.0:"]
    if name in _SLOPES:
        slope, growth = _SLOPES[name]
        lines.append(f"        slope = ({slope}) * (1.0 + 2.0**-40)")
        lines.append(f"        slack = slope * r * (1.0 + {growth} * r)")
        lines.append(f"        if not {growth} * r <= 1.0:")
        far = f"min({_STEEPEST[name]} * r, 2.0)" if name in _STEEPEST else "v * math.expm1(r)"
        lines.append(f"            slack = {far} * (1.0 + 2.0**-40)")
    else:
        lines += ["        low, high = a - r, a + r"]
        lines += ["        if floor > low:", "            low = floor"]
        lines += [f"        below, above = {value.format('low')}, {value.format('high')}"]
        lines += ["        slack = max(abs(above - v), abs(below - v))"]
        for turn in row.monotone or ():
            at = float(row.numpy(turn))
            lines += [f"        if low < {turn!r} and {turn!r} < high:"]
            lines += [f"            slack = max(slack, abs({at!r} - v))"]
        doubt = max(4.0, 2 * row.ulps) * 2.0**-53
        lines += [f"        slack += {doubt!r} * max(abs(below), abs(above))"]
        outside = [
            f"{side} {sign} {edge!r}"
            for side, sign, edge in (("low", "<", row.domain[0]), ("high", ">", row.domain[1]))
            if abs(edge) != float("inf")
        ]
        if outside:
            lines += [f"        if {' or '.join(outside)}:", "            slack = np.inf"]
    lines += [
        "        if r == np.inf or slack != slack or v != v:",
        "            slack = np.inf",
        "    elif a == 0.0 and v == 0.0:",
        "        return v, 0.0",
        "    slack += own(abs(v) + slack, place, absolute, least)",
        "    return v, bounded(v, slack, abs(v), largest)",
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
