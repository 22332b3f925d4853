"""Transforms of Fourier's kind, as frameworks with complex numbers spell them.

The language has the two parts of a complex number in an axis of their own, the last. The axis that
is transformed is put before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.legalise import moved
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

_WIDE = ("f32", "f64")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a framework spells transforms along the last axis.

    functions: by their names in NumPy, templates of a signal `x` and a `length`; a template without
    a length keeps that of the signal, and what a framework lacks is not there. pair: a complex
    number of its parts. parts: both, stacked, of one that has a name.
    """

    functions: Mapping[str, str]
    pair: str
    parts: str

    def signal(self, call: Call[Any], x: Value, whole: bool) -> str:
        """The signal whose parts are in the last axis; complex in any case, where it is `whole`."""
        text = call.build.inner(x)
        real = f"{text}[..., 0]"
        if x.shape[-1] == 2:
            return self.pair.format(real=real, imaginary=f"{text}[..., 1]")
        return self.pair.format(real=real, imaginary=f"0 * {real}") if whole else real

    def split(self, call: Call[Any], text: str) -> str:
        """The parts of a complex result."""
        name = call.build.names.fresh("spectrum")
        call.build.lines.append(f"{name} = {text}")
        return self.parts.format(name)


def transform(spelling: Spelling, name: str) -> Native:
    """A row for `dft`."""

    def rule(call: Call[Any]) -> Value | None:
        x, length = call.input("x"), int(call["length"])
        axis, last = call.axis("axis", x.rank), x.rank - 1
        if x.dtype not in _WIDE or not 0 <= axis < last:
            return None
        inverse, half = bool(call["inverse"]), bool(call["onesided"])
        if half and not inverse and x.shape[-1] == 2:
            return None  # half a spectrum says nothing of the rest
        which = f"{'i' * inverse}{'r' * half}fft"
        function = spelling.functions.get(which, "")
        if not function or ("{length}" not in function and length != x.shape[axis]):
            return None
        if axis != last - 1:
            x = call.build.let(moved(call, x, axis, last - 1), "signal")
        text = spelling.signal(call, x, whole=which != "rfft")
        text = function.format(x=text, length=length)
        found = f"{text}[..., None]" if which == "irfft" else spelling.split(call, text)
        sizes = list(call.out.shape)
        sizes.insert(last - 1, sizes.pop(axis))
        return moved(call, Value(found, tuple(sizes), x.dtype), last - 1, axis)

    return Native(name, rule)


def frames(
    name: str, spelling: Spelling, spell: Callable[[Call[Any], str, str], str | None]
) -> Native:
    """A row for `stft`. spell: the text of the function, of a signal and a window or nothing."""

    def rule(call: Call[Any]) -> Value | None:
        x = call.input("x")
        if x.dtype not in _WIDE or 0 in x.shape or (call["onesided"] and x.shape[-1] == 2):
            return None
        window = call.text("window", "")
        text = spell(call, spelling.signal(call, x, whole=False), window)
        return None if text is None else call.value(spelling.split(call, text))

    return Native(name, rule)


_TORCH = Spelling({}, "torch.complex({real}, {imaginary})", "torch.view_as_real({0})")
_JAX = Spelling(
    {name: f"jnp.fft.{name}({{x}}, {{length}})" for name in ("fft", "ifft", "rfft", "irfft")},
    "jax.lax.complex({real}, {imaginary})",
    "jnp.stack([{0}.real, {0}.imag], -1)",
)
_TF = Spelling(
    {
        "fft": "tf.signal.fft({x})",
        "ifft": "tf.signal.ifft({x})",
        "rfft": "tf.signal.rfft({x}, [{length}])",
        "irfft": "tf.signal.irfft({x}, [{length}])",
    },
    "tf.complex({real}, {imaginary})",
    "tf.stack([tf.math.real({0}), tf.math.imag({0})], -1)",
)


_KERAS = Spelling(
    {
        "fft": "ops.fft({x})",
        "rfft": "ops.rfft({x}, {length})",
        "irfft": "ops.irfft({x}, {length})",
    },
    "({real}, {imaginary})",
    "ops.stack({0}, -1)",
)


def _torch_frames(call: Call[Any], signal: str, window: str) -> str | None:
    """Of frames that are shorter than a transform PyTorch puts the window into the middle."""
    length = call["length"]
    if call["fft_length"] != length:
        return None
    dtype = call.build.dtype(call.out.dtype)
    return invoke(
        "torch.stft", signal, length, call["step"], length,
        window or f"torch.ones({length}, dtype={dtype})",
        center=False, onesided=bool(call["onesided"]), return_complex=True,
    ) + ".mT"  # fmt: skip


def _tf_frames(call: Call[Any], signal: str, window: str) -> str | None:
    if not call["onesided"]:
        return None
    sizes = [call[name] for name in ("length", "step", "fft_length")]
    made = f"lambda *_, **__: {window}" if window else "None"
    return f"{invoke('tf.signal.stft', signal, *sizes)[:-1]}, window_fn={made})"


def _keras_frames(call: Call[Any], signal: str, window: str) -> str | None:
    """Of frames that are shorter than a transform Keras puts the window into the middle."""
    length = call["length"]
    if call["fft_length"] != length or not call["onesided"]:
        return None
    options = {"window": window or "None", "center": False}
    return invoke("ops.stft", signal, length, call["step"], length, **options)


def _cosine(module: str, types: tuple[int, ...], unscaled: bool) -> Native:
    """Transforms of some types; unscaled: whether inverse ones, too, are where not orthogonal."""

    def rule(call: Call[Any]) -> Value | None:
        inverse, ortho = call["inverse"], call["ortho"]
        wide = call.out.dtype in ("f32", "f64")
        if call["type"] not in types or not wide or (inverse and unscaled and not ortho):
            return None
        function = f"{module}.{'idct' if inverse else 'dct'}"
        options = {"type": call["type"], "norm": '"ortho"' if ortho else None}
        return call.value(invoke(function, call.input("x"), **options))

    return Native(f"{module}.dct, idct", rule)


def _sequences(call: Call[Any]) -> Value:
    sizes = call["length"], call["step"]
    return call.value(invoke("ops.extract_sequences", call.input("x"), *sizes))


TORCH_SIGNALS = {
    "stft": frames("torch.stft", _TORCH, _torch_frames),
}
TF_SIGNALS = {
    "dft": transform(_TF, "tf.signal.fft, rfft, ifft, irfft"),
    "stft": frames("tf.signal.stft", _TF, _tf_frames),
    "dct": _cosine("tf.signal", (1, 2, 3, 4), unscaled=True),
}
JAX_SIGNALS = {
    "dft": transform(_JAX, "jnp.fft.fft, rfft, ifft, irfft"),
    "dct": _cosine("jax.scipy.fft", (2,), unscaled=False),
}
KERAS_SIGNALS = {
    name: replace(row, since=(3,))
    for name, row in {
        "dft": transform(_KERAS, "ops.fft, rfft, irfft"),
        "stft": frames("ops.stft", _KERAS, _keras_frames),
        "frames": Native("ops.extract_sequences", _sequences),
    }.items()
}
