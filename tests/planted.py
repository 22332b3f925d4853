"""Faults planted into a worker: what a framework might get wrong, in the functions that it has.

Each is a piece of Python that stands at the top of every program that the worker is sent, and puts
a wrong function in the place of the framework's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from irlang.lower.lower import Lowered, lower


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. ops: what a campaign is restricted to; culprit: the operators that it is in.

    code: of the wrong function; call: what a program must hold for it to be put in.
    """

    ops: tuple[str, ...]
    culprit: str
    code: str
    targets: tuple[str, ...] = ("torch",)


_OTHERS = ("relu", "tanh", "add", "multiply", "negate", "exp", "reshape", "transpose")

FAULTS = {
    "dilation is ignored": Fault(
        ("conv", *_OTHERS),
        "conv",
        """
if not hasattr(torch, "_planted"):
    torch._planted = True
    def _wrong(right):
        def conv(*args, **options):
            if "dilation" in options:
                options["dilation"] = 1
            return right(*args, **options)
        return conv
    for _name in ("conv1d", "conv2d", "conv3d"):
        setattr(F, _name, _wrong(getattr(F, _name)))
""",
    ),
    "the wrong axis of four": Fault(
        ("softmax", *_OTHERS),
        "softmax",
        """
if not hasattr(torch, "_planted"):
    torch._planted = True
    _right = torch.softmax
    def _softmax(x, dim, **options):
        return _right(x, (dim + 1) % 4 if x.ndim == 4 else dim, **options)
    torch.softmax = F.softmax = _softmax
""",
    ),
    "two gates are swapped": Fault(
        ("lstm", *_OTHERS),
        "lstm",
        """
if not hasattr(torch, "_planted"):
    torch._planted = True
    _right = torch.lstm
    def _swapped(weights):
        made = []
        for w in weights:
            i, f, g, o = w.chunk(4)
            made.append(torch.cat((f, i, g, o)))
        return made
    def _lstm(x, hx, params, *rest):
        return _right(x, hx, _swapped(params), *rest)
    torch.lstm = _lstm
""",
    ),
    "even windows are padded at the wrong end": Fault(
        ("max_pool", *_OTHERS),
        "max_pool",
        """
if not hasattr(torch, "_planted"):
    torch._planted = True
    _right = F.pad
    def _pad(x, pad, mode="constant", value=None):
        pad = list(pad)
        if value == float("-inf"):
            for i in range(0, len(pad), 2):
                pad[i], pad[i + 1] = pad[i + 1], pad[i]
        return _right(x, pad, mode, value)
    F.pad = torch.nn.functional.pad = _pad
""",
    ),
    "a fusion of two": Fault(("add", "tanh", "relu", "negate", "exp"), "add + tanh", ""),
}


# An addition right before a tanh of it, which is no result itself.
_ADJACENT = re.compile(
    r"(\w+) = (\w+ \+ \w+)( +#[^\n]*)\n( +\w+ = )torch\.tanh\(\1\)"
    r"(?=(?:(?!return [^\n]*\b\1\b).)*\Z)",
    re.DOTALL,
)


def planted(fault: Fault) -> Callable[..., Lowered]:
    """`lower`, with the fault in what it makes for PyTorch."""

    def made(*args: Any, **options: Any) -> Lowered:
        lowered = lower(*args, **options)
        if not isinstance(lowered.code, str) or not lowered.code:
            return lowered
        if not fault.code:
            code = _ADJACENT.sub(r"\1 = \2\3\n\4torch.sin(\1)", lowered.code)
            return replace(lowered, code=code)
        head, mark, tail = lowered.code.partition("\n\n\nINPUTS")
        return replace(lowered, code=f"{head}\n{fault.code}{mark}{tail}")

    return made
