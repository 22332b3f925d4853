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

    code: of the wrong function. grad: whether it is in a gradient. harmless: whether it is none.
    """

    ops: tuple[str, ...]
    culprit: str
    code: str
    grad: bool = False
    harmless: bool = False


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


# What the value is, and what flows back through it.
_PULLED = """
if not hasattr(torch, "_planted"):
    torch._planted = True
    class _Pulled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value, slope, *args):
            ctx.slope = slope
            ctx.save_for_backward(*args)
            return value.clone()
        @staticmethod
        def backward(ctx, g):
            return (None, None, *ctx.slope(g, *ctx.saved_tensors))
    def _pulled(right, slope):
        def wrong(*args, **options):
            with torch.no_grad():
                value = right(*args, **options)
            return _Pulled.apply(value, lambda g, *a: slope(g, *a, **options), *args)
        return wrong
"""


def _gradient(ops: tuple[str, ...], culprit: str, code: str, harmless: bool = False) -> Fault:
    """A fault in a gradient; the code may use `_pulled(function, slope)`."""
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    return Fault((*ops, *_OTHERS), culprit, _PULLED + lines, grad=True, harmless=harmless)


# What flows back to the elements of a window that equal its largest: `share` of the number of them.
_TIES = """
_right = F.max_pool2d
def _pool(x, size, stride=None, padding=0, dilation=1, ceil_mode=False):
    y = _right(x, size, stride, padding, dilation, ceil_mode)
    simple = x.ndim == 4 and padding in (0, (0, 0)) and dilation in (1, (1, 1)) and not ceil_mode
    if not simple or not x.requires_grad:
        return y
    parts = x.unfold(2, size[0], (stride or size)[0]).unfold(3, size[1], (stride or size)[1])
    equal = parts == y.detach()[..., None, None]
    count = equal.sum((-2, -1), keepdim=True)
    slopes = torch.where(equal, parts, 0.0) * torch.where(count > 1, SHARE, 1.0)
    total = slopes.sum((-2, -1))
    return y.detach() + (total - total.detach())
F.max_pool2d = torch.nn.functional.max_pool2d = _pool
"""

FAULTS |= {
    "a gradient off by one in ten thousand": _gradient(
        ("tanh",),
        "tanh",
        """
_right = torch.tanh
torch.tanh = _pulled(_right, lambda g, x: (g * (1 - _right(x) ** 2) * (1 + 1e-4),))
""",
    ),
    "the gradient of a bias is dropped": _gradient(
        ("conv",),
        "conv",
        """
def _dropped(right):
    def conv(x, w, b=None, *rest, **options):
        return right(x, w, b if b is None else b.detach(), *rest, **options)
    return conv
for _name in ("conv1d", "conv2d", "conv3d"):
    setattr(F, _name, _dropped(getattr(F, _name)))
""",
    ),
    "two gates are swapped on the way back": _gradient(
        ("lstm",),
        "lstm",
        """
_right = torch.lstm
def _lstm(x, hx, params, *rest):
    made = []
    for w in params:
        i, f, g, o = w.chunk(4)
        made.append(torch.cat((f, i, g, o)))
    swapped = _right(x, hx, made, *rest)
    right = _right(x, hx, params, *rest)
    return tuple(r.detach() + (s - s.detach()) for r, s in zip(right, swapped))
torch.lstm = _lstm
""",
    ),
    "at a tie each of the largest has all that flows back": _gradient(
        ("max_pool",), "max_pool", _TIES.replace("SHARE", "1.0")
    ),
    "at a tie the largest share what flows back": _gradient(
        ("max_pool",), "max_pool", _TIES.replace("SHARE", "1.0 / count"), harmless=True
    ),
    "a power divides by its base on the way back": _gradient(
        ("power", "square"),
        "power",
        """
_right = torch.pow
def _slope(g, x, n):
    whole = _right(x, n)
    return g * whole * n / x, g * whole * torch.log(x)
def _pow(x, n):
    if not isinstance(n, torch.Tensor):
        n = torch.tensor(float(n), dtype=x.dtype)
    if not isinstance(x, torch.Tensor):
        x = torch.tensor(float(x), dtype=n.dtype)
    shape = torch.broadcast_shapes(x.shape, n.shape)
    return _pulled(_right, _slope)(x.expand(shape), n.expand(shape))
torch.pow = _pow
""",
    ),
    "a running product divides by its elements on the way back": _gradient(
        ("cumprod",),
        "cumprod",
        """
_right = torch.cumprod
def _slope(g, x, dim):
    return (torch.flip(torch.cumsum(torch.flip(g * _right(x, dim), (dim,)), dim), (dim,)) / x,)
def _product(x, dim, dtype=None):
    if not x.is_floating_point():
        return _right(x, dim, dtype=dtype)
    return _pulled(lambda x: _right(x, dim), lambda g, x: _slope(g, x, dim))(x)
torch.cumprod = _product
""",
    ),
    "labels are taken to have the sum 1": _gradient(
        ("categorical_cross_entropy",),
        "categorical_cross_entropy",
        """
_right = F.cross_entropy
def _entropy(x, t, weight=None, reduction="mean", label_smoothing=0.0):
    if weight is not None or label_smoothing or not t.is_floating_point() or x.ndim < 2:
        return _right(x, t, weight, reduction=reduction, label_smoothing=label_smoothing)
    count = x[:, :1].numel() if reduction == "mean" else 1
    def slope(g, x, t):
        g = g if reduction != "none" else g.unsqueeze(1)
        return g * (x.softmax(1) - t) / count, -g * x.log_softmax(1) / count
    return _pulled(lambda x, t: _right(x, t, reduction=reduction), slope)(x, t)
F.cross_entropy = torch.nn.functional.cross_entropy = _entropy
""",
    ),
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
