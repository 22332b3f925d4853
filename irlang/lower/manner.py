"""How a program is written where a target has several ways of writing it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Manner:
    """bold: forms that targets may refuse, though they are valid, are handed on as they are and not
    written otherwise. turn: which of its ways a target takes, counted round and round: the usual
    one is 0, others are the opsets of older model files, further words for an operator, and how
    tensors lie in memory. A target that has one way alone takes that.
    """

    bold: bool = False
    turn: int = 0


USUAL = Manner()
