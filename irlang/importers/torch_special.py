"""Special functions: of gamma's family, of the normal distribution, and Bessel's."""

from __future__ import annotations

import math
from typing import Any

from irlang.importers.torch_call import Call, Rule, Value


def _argument(c: Call) -> Value:
    return c.cast(c.tensor("self" if c.has("self") else "x"), c.out)


def _function(op: str, **attrs: Any) -> Rule:
    return lambda c: c(op, _argument(c), **attrs)


def _of_two(op: str) -> Rule:
    return lambda c: c(op, c.cast(c.tensor("self"), c.out), c.cast(c.tensor("other"), c.out))


def _polygamma(c: Call) -> Value:
    return c("polygamma", _argument(c), n=c.whole("n"))


def _multivariate(c: Call) -> Value:
    """The gamma function of several dimensions: a sum of lgamma(x - j / 2), and a constant."""
    x, p = _argument(c), c.whole("p")
    parts = [c("lgamma", c("subtract", x, j / 2) if j else x) for j in range(p)]
    total = parts[0] if p == 1 else c("add_n", *parts)
    return c("add", total, p * (p - 1) / 4 * math.log(math.pi))


def _spherical(c: Call) -> Value:
    """sin(x) / x, 1 at 0 and 0 at infinity."""
    x = _argument(c)
    zero, endless = c("equal", x, 0), c("isinf", x)
    safe = c("where", c("logical_or", zero, endless), 1, x)
    found = c("where", endless, 0, c("divide", c("sin", safe), safe))
    return c("where", zero, 1, found)


_BESSEL = {
    "i0": ("bessel_i", "zero", False),
    "special_i0": ("bessel_i", "zero", False),
    "special_i0e": ("bessel_i", "zero", True),
    "special_i1": ("bessel_i", "one", False),
    "special_i1e": ("bessel_i", "one", True),
    "special_modified_bessel_i0": ("bessel_i", "zero", False),
    "special_modified_bessel_i1": ("bessel_i", "one", False),
    "special_modified_bessel_k0": ("bessel_k", "zero", False),
    "special_modified_bessel_k1": ("bessel_k", "one", False),
    "special_scaled_modified_bessel_k0": ("bessel_k", "zero", True),
    "special_scaled_modified_bessel_k1": ("bessel_k", "one", True),
}

_OSCILLATING = {
    f"special_bessel_{kind}{digit}": (f"bessel_{kind}", order)
    for kind in "jy"
    for digit, order in (("0", "zero"), ("1", "one"))
}

_FAMILIES = ("hermite_h", "hermite_he", "laguerre_l", "legendre_p")
_CHEBYSHEV = tuple(f"chebyshev_{kind}" for kind in "tuvw")
_POLYNOMIALS = {
    f"{'shifted_' * shifted}{family.replace('_', '_polynomial_')}": (family, shifted)
    for families, shifted in (((*_CHEBYSHEV, *_FAMILIES), False), (_CHEBYSHEV, True))
    for family in families
}


def _polynomial(family: str, shifted: bool) -> Rule:
    """Of a degree that is a number; where that is negative, 0."""

    def rule(c: Call) -> Value:
        x, n = _argument(c), c.whole("n")
        if n < 0:
            return c("subtract", x, x)
        return c("orthogonal_polynomial", x, n=n, family=family, shifted=shifted)

    return rule


SPECIAL: dict[str, Rule] = {
    **{
        prefix + name: _function(name)
        for name in ("erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "digamma")
        for prefix in ("", "special_")
    },
    "lgamma": _function("lgamma"),
    "special_gammaln": _function("lgamma"),
    "special_psi": _function("digamma"),
    "polygamma": _polygamma,
    "special_polygamma": _polygamma,
    "mvlgamma": _multivariate,
    "special_multigammaln": _multivariate,
    "special_spherical_bessel_j0": _spherical,
    **{
        name: _function(op, order=order, scaled=scaled)
        for name, (op, order, scaled) in _BESSEL.items()
    },
    "igamma": _of_two("gammainc"),
    "igammac": _of_two("gammaincc"),
    "special_gammainc": _of_two("gammainc"),
    "special_gammaincc": _of_two("gammaincc"),
    "special_zeta": _of_two("zeta"),
    **{f"special_{name}": _polynomial(*how) for name, how in _POLYNOMIALS.items()},
    **{name: _function(op, order=order) for name, (op, order) in _OSCILLATING.items()},
}
