"""How a target computes: what its results may differ by, as data that radii are made from.

`STANDARD` is the arithmetic that every target is held to unless something else is said of it: sums
in any order and association, with or without fused multiply-add, denormal numbers kept or flushed
to zero, scalar functions within the allowance of `irlang.scalar`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from irlang.scalar import SCALARS

# Unit roundoffs of the formats that the factors of a sum of products may be rounded to, or that
# such a sum may be accumulated in. tf32 has the digits of f16 and the range of f32; some of cuDNN's
# kernels cut off what it has not instead of rounding, which is a unit more.
FORMATS = {"tf32": 2.0**-10, "f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
# Their exponents end here: what is no less than it, less half a unit, is rounded to infinity.
# Their least normal numbers: below them digits are lost, or all of a number.
_LEAST = {"tf32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 0.0}
_ENDS = {"tf32": 2.0**128, "f16": 2.0**16, "bf16": 2.0**128, "f32": 2.0**128, "f64": math.inf}


@dataclass(frozen=True, slots=True)
class Allowance:
    """How far a value of a scalar function may be off: in units in its last place, or absolutely.

    ulps: relative to the value. absolute: whatever its size, in units in the last place of 1
    (2**-23 in f32), so that one number serves every type. What is larger counts.
    """

    ulps: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What is said of a target's arithmetic beyond `STANDARD`.

    functions: allowances of scalar functions in the place of those of `irlang.scalar`. flush:
    whether denormal numbers may become zero. factors: the format of `FORMATS` that factors of sums
    of products are rounded to first, "" if to none. sums: that in which they are added up, "" if
    in the type of the program. fast: by how much the error of a sum of products may be larger than
    that of a plain one, when it is bounded by the largest elements, not by the terms (Winograd,
    FFT, Strassen: Higham, chapter 23); 0 for plain sums. distributes: whether factors may be
    multiplied into the terms of a sum (fused and folded calls).
    folds: whether a call may be given what another has made before that multiplied it, so that it
    reads what is rounded otherwise than what is shown.
    carries: whether what a call gives may be kept in f32 for the calls that read it, though it is
    shown in a type of fewer digits.
    reorders: whether what several calls add up may be added up in another order.
    far: whether nothing overflows that f64 holds. No target is held to that; it tells where nothing
    is known because of the equations from where that is so because of the range of a type.
    halved: whether half of the digits are enough. No target is held to that; it tells a formula
    that loses digits, as a variance in one pass does, from a wrong one (`irlang.diff.verdict`).
    """

    functions: Mapping[str, Allowance] = field(default_factory=dict, hash=False)
    flush: bool = True
    factors: str = ""
    sums: str = ""
    fast: float = 0.0
    distributes: bool = False
    folds: bool = False
    carries: bool = False
    reorders: bool = False
    far: bool = False
    halved: bool = False

    def rougher(self, terms: int, factors: int, unit: float) -> float:
        """What formats that are coarser than `unit` add to the error of a sum of products.

        Relative to the sum of magnitudes; infinite where the format has no digit to spare. Several
        factors are multiplied two at a time, and what two come to is rounded as a factor of others.
        """
        found = 0.0
        coarse = FORMATS[self.sums] if self.sums else 0.0
        if coarse > unit:
            steps = (terms + factors) * coarse
            found = steps / (1 - steps) if steps < 1 else math.inf
        coarse = FORMATS[self.factors] if self.factors else 0.0
        if coarse > unit:
            rounded = max(factors, 2 * (factors - 1))
            found += (1 + found) * ((1 + coarse) ** rounded - 1)
        return found

    def held(self, unit: float) -> float:
        """What no factor may exceed that is rounded to a format which is coarser than `unit`."""
        coarse = FORMATS[self.factors] if self.factors else 0.0
        return _ENDS[self.factors] * (1 - 2 * coarse) if coarse > unit else math.inf

    def added(self, unit: float) -> float:
        """What no partial sum may exceed in a format that is coarser than `unit`."""
        coarse = FORMATS[self.sums] if self.sums else 0.0
        return _ENDS[self.sums] * (1 - 2 * coarse) if coarse > unit else math.inf

    def vanishing(self, name: str, unit: float, tiny: float) -> tuple[float, float]:
        """Below which numbers lose digits in a format that is coarser than `unit`, and not in a
        type whose least normal number is `tiny`, and how much is lost; 0 and 0 for no such format.
        """
        coarse = FORMATS[name] if name else 0.0
        if coarse <= unit or _LEAST[name] <= tiny:
            return 0.0, 0.0
        return _LEAST[name], _LEAST[name] * (1.0 if self.flush else coarse)

    @property
    def narrower(self) -> bool:
        """Whether less is allowed than by `STANDARD`: its radii are then too wide for this one."""
        return not self.flush

    def allowance(self, function: str) -> Allowance:
        """Of a scalar function."""
        found = self.functions.get(function)
        row = SCALARS[function]
        return found or Allowance(row.ulps, row.ulps * row.least)


STANDARD = Arithmetic()


@cache
def half(of: Arithmetic) -> Arithmetic:
    """The same with half of the digits; one object, by which evaluators know what they prepared."""
    return replace(of, halved=True)
