"""What operators of sliding windows need before a target can take them: padding, layout, types.

Frameworks pad the same amount at both ends, or not at all; the language pads as much before and
after as is said. What does not fit is put around the input first, with the element that changes
nothing: zero under a sum, minus infinity under a maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from irlang.dtypes import DTYPES, holds
from irlang.lower.call import Call
from irlang.lower.value import Builder, Unsupported, Value

Sizes = tuple[int, ...]
B = TypeVar("B", bound=Builder)
_WHOLE = 2**53  # up to which a whole number beside a real one is written as it is


# The release of TensorFlow since which convolutions on a processor are oneDNN's, which has groups.
_GROUPED = (2, 9)


def groupable(release: tuple[int, ...], rank: int) -> bool:
    """Whether a release of TensorFlow takes convolutions in groups along so many axes, on a
    processor; none says that it is the current one.
    """
    return rank != 3 and (not release or release >= _GROUPED)


def all_are(numbers: Sequence[int], number: int) -> bool:
    """Whether all numbers are this one."""
    return all(size == number for size in numbers)


def is_whole(number: float) -> bool:
    """Whether a number, which may be infinite, is a whole one that 64 bits hold."""
    return math.isfinite(number) and number == int(number) and -(2**63) <= number < 2**63


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a call, a number for every spatial axis.

    before, after: what lies around the input under them. size: of the input; out: how many windows.
    """

    size: Sizes
    window: Sizes
    stride: Sizes
    dilation: Sizes
    before: Sizes
    after: Sizes
    out: Sizes

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.size)

    @property
    def span(self) -> Sizes:
        """The extent of a window, along as many axes as it has dilations: in an invalid call these
        may be another number.
        """
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.window, strict=False))

    @property
    def symmetric(self) -> bool:
        """Whether as much is padded after as before."""
        return self.before == self.after

    @property
    def padded(self) -> bool:
        """Whether anything is."""
        return any(self.before) or any(self.after)

    def reaching(self) -> Windows:
        """The same with so much after the input that the last window ends inside."""
        ends = zip(self.out, self.stride, self.span, self.size, self.before, strict=True)
        needed = tuple((o - 1) * s + span - n - lo for o, s, span, n, lo in ends)
        return replace(self, after=tuple(map(max, self.after, needed, [0] * self.rank)))

    def bare(self) -> Windows:
        """The same over an input that has been padded."""
        size = tuple(map(sum, zip(self.before, self.size, self.after, strict=True)))
        return replace(self, size=size, before=(0,) * self.rank, after=(0,) * self.rank)


def windows(call: Call[Any]) -> Windows:
    """The windows of a convolution or a pool, read from the names of its definition; of an invalid
    call some lists may have other lengths, for a target to refuse.
    """
    names = call.node.instance.binding.scope.names
    size, need = tuple(call["S"]), tuple(call["need"])
    halves = {
        "valid": (0,) * len(size),
        "same": tuple(n // 2 for n in need),
        "given": call["before"],
    }
    lo = tuple(halves[call["pad"]])
    after = tuple(n - low for n, low in zip(need, lo, strict=False))
    dilation = tuple(names.get("dilation", (1,) * len(size)))
    return Windows(
        size, tuple(call["K"]), tuple(call["stride"]), dilation, lo, after, tuple(call["O"])
    )


def around(call: Call[B], x: Value, frame: Windows, number: float = 0.0) -> tuple[Value, Windows]:
    """The input with its padding made part of it, and the windows over that."""
    if not frame.padded:
        return x, frame
    none = (0,) * (x.rank - frame.rank)
    padded = call.build.pad(x, (*none, *frame.before), (*none, *frame.after), number)
    return padded, frame.bare()


def filling(call: Call[Any]) -> float:
    """The number around a tensor, of a kind that Python hands over in its type.

    Raises `Unsupported` for what a type of whole numbers does not hold: such a call is not valid.
    """
    number, dtype = call["fill"], call.out.dtype
    if not holds(dtype, number):
        raise Unsupported(f"{number} is no number of {dtype}")
    return float(number) if DTYPES[dtype].kind == "real" and abs(number) > _WHOLE else number


def moved(call: Call[B], x: Value, source: int, target: int) -> Value:
    """`x` with one axis at another place, the others in their order."""
    if source == target:
        return x
    order = [axis for axis in range(x.rank) if axis != source]
    order.insert(target, source)
    return call.build.transpose(x, tuple(order))


def trailing(axes: Sequence[int], rank: int) -> bool:
    """Whether axes are the last ones, in their order."""
    return tuple(axes) == tuple(range(rank - len(axes), rank))


def parts(call: Call[Any], x: Value) -> int | list[int]:
    """How many parts, where they are alike and no sizes are said; else their sizes.

    Both as the call says them: what a target makes of them is under test.
    """
    count, length = int(call["parts"]), x.shape[call.axis("axis", x.rank)] if x.rank else 0
    alike = "sizes" not in call.node.attrs and (count < 1 or (length and length % count == 0))
    return count if alike else list(call["sizes"])


def replaced(call: Call[Any]) -> tuple[int, ...] | None:
    """Where an update of neighbours begins along every axis; None of others, and where it reaches
    beyond an end, which frameworks move back, or take each in its way.
    """
    x, update = call.input("x"), call.input("update")
    if x.rank != update.rank or not all_are(call["step"], 1):
        return None
    begin = tuple(map(int, call["begin"]))
    ends = zip(begin, update.shape, x.shape, strict=True)
    return begin if all(b >= 0 and b + count <= size for b, count, size in ends) else None


def spatial(call: Call[Any], x: Value) -> bool:
    """Whether all axes behind batch and channels are resized, to sizes that say the scale."""
    return (
        call.axes("axes", x.rank) == tuple(range(2, x.rank))
        and not any(call["scale"])
        and call["aspect"] == "stretch"
        and 0 not in call.out.shape
    )
