"""How PyTorch spells images, columns, adaptive pools and transforms."""

from __future__ import annotations

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.spelling import invoke, named
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_MOST_SPACE = 3  # spatial axes
_WIDE = ("f32", "f64")  # in halves PyTorch computes places in halves


def _grid_sample(call: Torch) -> Value | None:
    x, grid = call.input("x"), call.input("grid")
    names = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    taken = (4,) if call["mode"] == "cubic" else (4, 5)
    if x.rank not in taken or grid.rank != x.rank or x.dtype not in _WIDE:
        return None
    text = invoke(
        "F.grid_sample",
        x,
        grid,
        f'"{names[call["mode"]]}"',
        f'"{call["padding"]}"',
        align_corners=call["align_corners"],
    )
    return call.value(text)


def _affine_grid(call: Torch) -> Value | None:
    theta, size = call.input("theta"), tuple(call["size"])
    if len(size) not in (2, 3) or theta.dtype not in _WIDE:
        return None
    shape = [theta.shape[0], 1, *size]
    align = call["align_corners"]
    return call.value(invoke("F.affine_grid", theta, str(shape), align_corners=align))


def _columns(call: Torch) -> dict[str, tuple[int, ...]] | None:
    """Stride, dilation and padding of `unfold` and `fold`: two axes, padded alike at both ends."""
    sizes = {name: tuple(call[name]) for name in ("stride", "dilation", "before", "after")}
    if len(sizes["stride"]) != 2 or sizes["before"] != sizes["after"]:
        return None
    return {
        "dilation": sizes["dilation"],
        "padding": sizes["before"],
        "stride": sizes["stride"],
    }


def _im2col(call: Torch) -> Value | None:
    x, options = call.input("x"), _columns(call)
    if options is None or DTYPES[x.dtype].kind != "real":
        return None
    return call.value(invoke("F.unfold", x, tuple(call["window"]), **options))


def _col2im(call: Torch) -> Value | None:
    x, options = call.input("x"), _columns(call)
    if options is None:
        return None
    return call.value(invoke("F.fold", x, tuple(call["size"]), tuple(call["window"]), **options))


def _adaptive(kind: str) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        space = x.rank - 2
        if not 1 <= space <= _MOST_SPACE:
            return None
        return call.value(invoke(f"F.adaptive_{kind}_pool{space}d", x, tuple(call["size"])))

    return Native(f"F.adaptive_{kind}_pool{{1,2,3}}d", rule)


def _max_pool(call: Torch) -> list[Value] | None:
    """Positions count the elements of a channel."""
    x, frame = call.input("x"), windows(call)
    half = all(2 * low <= k for low, k in zip(frame.before, frame.window, strict=True))
    own = call["order"] == "row" and not call["whole"] and frame.symmetric and half
    if not own or not 1 <= frame.rank <= _MOST_SPACE or DTYPES[x.dtype].kind != "real":
        return None
    if call["pad"] == "same" and call["ceil_mode"]:
        return None
    text = invoke(
        f"F.max_pool{frame.rank}d",
        x,
        frame.window,
        stride=frame.stride,
        padding=frame.before if frame.padded else None,
        dilation=frame.dilation if set(frame.dilation) != {1} else None,
        ceil_mode=True if call["ceil_mode"] else None,
        return_indices=True,
    )
    return named(call, text)


def _channel_shuffle(call: Torch) -> Value | None:
    x = call.input("x")
    if x.rank < 3:
        return None
    return call.value(invoke("F.channel_shuffle", x, call["groups"]))


def _dft(call: Torch) -> Value | None:
    """The halves that PyTorch has: of the spectrum of a real signal, and back to one."""
    x = call.input("x")
    half, back, real = call["onesided"], call["inverse"], x.shape[-1] == 1
    if x.dtype not in _WIDE or 0 in x.shape or (half and back == real):
        return None
    function = f"torch.fft.{'i' if back else ''}{'r' if half else ''}fft"
    numbers = (
        f"{call.build.inner(x)}[..., 0]"
        if real
        else f"torch.view_as_complex({call.build.inner(x)}.contiguous())"
    )
    text = invoke(function, numbers, call["N"], call.axis("axis", x.rank))
    if half and back:
        return call.value(f"{text}[..., None]")
    return call.value(f"torch.view_as_real({text}.resolve_conj())")


IMAGES: dict[str, Native] = {
    "grid_sample": Native("F.grid_sample", _grid_sample),
    "affine_grid": Native("F.affine_grid", _affine_grid),
    "im2col": Native("F.unfold", _im2col),
    "col2im": Native("F.fold", _col2im),
    "adaptive_avg_pool": _adaptive("avg"),
    "adaptive_max_pool": _adaptive("max"),
    "max_pool_with_argmax": Native("F.max_pool{1,2,3}d", _max_pool),
    "dft": Native("torch.fft.fft, ifft, rfft, irfft", _dft),
    "channel_shuffle": Native("F.channel_shuffle", _channel_shuffle),
}
