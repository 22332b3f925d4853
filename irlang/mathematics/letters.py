"""Letters and signs that the printers share."""

from __future__ import annotations

_BOLD_CAPITAL, _BOLD_SMALL, _BOLD_DIGIT = 0x1D400, 0x1D41A, 0x1D7CE
_SMALL = "₀₁₂₃₄₅₆₇₈₉"
_RAISED = dict(zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True))


def bold(text: str) -> str:
    """The text in the bold letters of Unicode, which need no font of their own."""
    return "".join(map(_bold, text))


def _bold(letter: str) -> str:
    for first, start in (("A", _BOLD_CAPITAL), ("a", _BOLD_SMALL)):
        place = ord(letter) - ord(first)
        if 0 <= place < 26:
            return chr(start + place)
    return chr(_BOLD_DIGIT + int(letter)) if letter in "0123456789" else letter


def lowered(digits: str) -> str:
    """Digits below the line."""
    return "".join(_SMALL[int(digit)] for digit in digits)


def raised(number: str) -> str | None:
    """A whole number above the line; None where Unicode has no such letters."""
    return "".join(_RAISED[digit] for digit in number) if set(number) <= _RAISED.keys() else None
