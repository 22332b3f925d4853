"""Exponentials and their kin as text that numba compiles, without branches and calls.

A loop over a library's function calls it for one number after the other; one over these is done
for as many numbers at a time as a register holds. They are off by two and a half units in the
last place at most (tests/test_kernel_elementary.py). The polynomials are Chebyshev interpolants: of
(exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2; of erf(x) / x in x**2 up to 1; of exp(x**2) erfc(x)
in 14.4 / (x + 3) - 2.6, which goes from 1 to -1 as x goes from 1 to 6.
"""

from __future__ import annotations

from collections.abc import Sequence

# highest power first
_EXPONENTIAL = (
    2.0914679376583935e-09, 2.510520637395701e-08, 2.7557273661348637e-07, 2.7557255425746435e-06,
    2.4801587325533363e-05, 0.00019841269874800493, 0.0013888888888883752, 0.008333333333326141,
    0.04166666666666667, 0.1666666666666667, 0.5,
)  # fmt: skip
_NEAR = (
    -7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07, 1.6447424703317362e-06,
    -1.492473690741966e-05, 0.00012055294904839707, -0.0008548325975389692, 0.0052239776071164225,
    -0.02686617064323777, 0.11283791670945006, -0.37612638903183543, 1.1283791670955126,
)  # fmt: skip
_FAR = (
    6.0857915906870915e-12, -6.047405945991704e-12, -2.571511429603255e-10, 2.6381508985080735e-10,
    1.1339538061744706e-08, 4.526700764248741e-09, -5.541274478467714e-07, -2.4255574719050315e-06,
    1.9563583246137112e-05, 0.0003316029605764125, 0.002479314697078186, 0.012713147695692198,
    0.04969844540339464, 0.15436117429436919, 0.20798329133342885,
)  # fmt: skip


def _polynomial(name: str, at: str, coefficients: Sequence[float]) -> str:
    """Statements that evaluate a polynomial, by Horner's rule."""
    first, *others = coefficients
    lines = [f"{name} = {first!r}", *(f"{name} = {name} * {at} + {c!r}" for c in others)]
    return "".join(f"    {line}\n" for line in lines)


HELPERS = {
    # e**a, or e**a - 1 where that is asked for: a is a multiple of log(2), in two parts of which
    # the first has few digits, and a rest. What is added and taken away again rounds to a whole
    # number, which is then in the lowest bits. The exponent is applied in two halves, so that a
    # result may lie below the normal numbers.
    "power_of_e": (
        "def power_of_e(a, less):\n"
        "    x = 710.0 if a > 710.0 else (-746.0 if a < -746.0 else a)\n"
        "    shifted = x * 1.4426950408889634 + 6755399441055744.0\n"
        "    whole = shifted - 6755399441055744.0\n"
        "    rest = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10\n"
        "    k = np.float64(shifted).view(np.int64) - np.int64(4843621399236968448)\n"
        "    half = k >> 1\n"
        "    first = np.int64((half + 1023) << 52).view(np.float64)\n"
        "    second = np.int64((k - half + 1023) << 52).view(np.float64)\n"
        + _polynomial("p", "rest", _EXPONENTIAL)
        + "    p = rest + rest * rest * p\n"
        "    if less:\n"
        "        back = np.int64((half - k + 1023) << 52).view(np.float64)\n"
        "        return (p * first + (first - back)) * second\n"
        "    return (p + 1.0) * first * second\n"
    ),
    "exp_of": "def exp_of(a):\n    return power_of_e(a, False)\n",
    "expm1_of": (
        "def expm1_of(a):\n"
        "    v = power_of_e(-60.0 if a < -60.0 else a, True)\n"
        "    return a if a == 0.0 else v\n"
    ),
    "tanh_of": (
        "def tanh_of(a):\n"
        "    size = 20.0 if abs(a) > 20.0 else abs(a)\n"
        "    e = power_of_e(2.0 * size, True)\n"
        "    return math.copysign(e / (e + 2.0), a)\n"
    ),
    "sigmoid": (
        "def sigmoid(a):\n"
        "    small = power_of_e(-abs(a), False)\n"
        "    return (1.0 if a >= 0.0 else small) / (1.0 + small)\n"
    ),
    "erf_of": (
        "def erf_of(a):\n"
        "    x = 6.0 if abs(a) > 6.0 else abs(a)\n"
        "    square = x * x\n"
        + _polynomial("near", "square", _NEAR)
        + "    u = 14.4 / (x + 3.0) - 2.6\n"
        + _polynomial("far", "u", _FAR)
        + "    far = 1.0 - power_of_e(-square, False) * far\n"
        "    return math.copysign(far if x > 1.0 else x * near, a)\n"
    ),
}
