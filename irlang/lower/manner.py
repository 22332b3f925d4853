"""How a program is written where a target has several ways of writing it."""

from __future__ import annotations

from dataclasses import dataclass

_FIRM = 7  # turns at which sizes are as they are


@dataclass(frozen=True, slots=True)
class Manner:
    """bold: forms that targets may refuse, though they are valid, are handed on as they are and not
    written otherwise. turn: which of its ways a target takes; at 0 all is as usual. A target that
    has one way alone takes that.
    """

    bold: bool = False
    turn: int = 0

    @property
    def older(self) -> bool:
        """Whether model files are of an older opset, and tensors lie in memory in another order."""
        return self.turn % 2 == 1

    @property
    def fixed(self) -> bool:
        """Whether parameters are constants of what is compiled, and not arguments of it."""
        return self.turn % 2 == 1

    @property
    def again(self) -> bool:
        """Whether gradients are added to what is there already."""
        return self.turn % 2 == 1

    @property
    def loose(self) -> bool:
        """Whether sizes are not known before a program is run."""
        return self.turn > _FIRM

    @property
    def words(self) -> int:
        """Which of several words for an operator is taken, counted round and round."""
        return self.turn // 2


USUAL = Manner()
