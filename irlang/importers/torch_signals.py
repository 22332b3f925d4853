"""Spectra whose results are real; a complex result has no type in irlang."""

from __future__ import annotations

import math
from typing import Any

from irlang.importers.torch_call import Call, Rule, Uncovered, Value


def _scale(norm: str | None, size: int, hermitian: bool) -> float:
    """What PyTorch divides by, over what the inverse transform of the definition divides by."""
    if norm == "ortho":
        return math.sqrt(size)
    # backward is the default: the inverse divides; hfft is a forward transform, which does not
    return float(size) if (norm == "forward") != hermitian else 1.0


def _real_spectrum(hermitian: bool) -> Rule:
    """irfft, hfft, and their forms over several axes, of a real half spectrum: such a spectrum is
    its own conjugate, so that the two differ by a factor alone.
    """

    def rule(c: Call) -> Value:
        x = c.cast(c.tensor("self"), c.out)
        many = "dim" not in c.node.args or not isinstance(c.get("dim"), int)
        many = many and not c.node.target.split(".")[1].endswith("fft")
        if many:
            given = c.get("s")
            default = [-2, -1] if c.node.target.split(".")[1].endswith("2") else None
            axes = c.get("dim") or default or list(range(x.rank))[-len(given or x.shape) :]
            sizes = list(given) if given else [-1] * len(axes)
        else:
            axes, sizes = [c.whole("dim", -1)], [c.get("n") or -1]
        axes = [int(d) % x.rank for d in axes]
        z = c("expand_dims", x, axes=[x.rank])
        total = 1
        for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
            length = int(x.shape[axis]) if size == -1 else int(size)
            z = c("dft", z, axis=axis, inverse=True, length=length)
            total *= length
        length = 2 * (int(x.shape[axes[-1]]) - 1) if sizes[-1] == -1 else int(sizes[-1])
        if length < 1:
            raise Uncovered("a transform of nothing")
        z = c("dft", z, axis=axes[-1], inverse=True, onesided=True, length=length)
        y = c("squeeze", z, axes=[x.rank])
        factor = _scale(c.get("norm"), total * length, hermitian)
        return y if factor == 1 else c("multiply", y, factor)

    return rule


def _shift(inverse: bool) -> Rule:
    def rule(c: Call) -> Any:
        x = c.tensor("self")
        for d in c.axes("dim", x.rank):
            half = int(x.shape[d]) // 2
            x = c("roll", x, shift=[-half if inverse else half], axes=[d])
        return x

    return rule


SIGNALS: dict[str, Rule] = {
    **dict.fromkeys(("fft_irfft", "fft_irfft2", "fft_irfftn"), _real_spectrum(False)),
    **dict.fromkeys(("fft_hfft", "fft_hfft2", "fft_hfftn"), _real_spectrum(True)),
    "fft_fftshift": _shift(False),
    "fft_ifftshift": _shift(True),
}
