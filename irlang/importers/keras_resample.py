"""Layers of Keras that resample images or cut them out, and the function `resize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.importers.keras_activations import plain
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call
from irlang.importers.keras_node import Node
from irlang.importers.keras_signatures import AUGMENTING

_MODES: dict[str, dict[str, Any]] = {
    "nearest": {"rounding": "round_prefer_ceil"},
    "bilinear": {"mode": "linear"},
    "bicubic": {"mode": "cubic", "cubic_coeff": -0.5, "exclude_outside": True},
}


@dataclass(frozen=True, slots=True)
class Target:
    """What an image, channels first, is resampled to. crop, pad: to its ratio of sides first."""

    size: tuple[int, int]
    mode: Mapping[str, Any]
    crop: bool = False
    pad: bool = False
    value: float = 0.0

    def write(self, write: Callable[..., str], info: Callable[[str], TensorInfo], x: str) -> str:
        """The calls; `write` takes a suffix, the definition, its operands and attributes.

        TensorFlow's kernels compute in single precision, but for `nearest`.
        """
        height, width = (int(n) for n in info(x).shape[2:])
        # the sides of the same ratio that go with the other side, as Keras rounds them
        tall = int(np.float32(width * self.size[0]) / np.float32(self.size[1]))
        wide = int(np.float32(height * self.size[1]) / np.float32(self.size[0]))
        if self.crop:
            part = [max(1, min(height, tall)), max(1, min(width, wide))]
            begin = [(height - part[0]) // 2, (width - part[1]) // 2]
            end = [b + n for b, n in zip(begin, part, strict=True)]
            x = write("part", "slice", x, axes=[2, 3], begin=begin, end=end)
        elif self.pad:
            edge = [0, 0, (max(height, tall) - height) // 2, (max(width, wide) - width) // 2]
            x = write("framed", "pad", x, before=edge, after=edge, value=self.value)
        dtype = info(x).dtype
        if dtype == "f32" or "mode" not in self.mode:
            return write("", "resize", x, size=list(self.size), **self.mode)
        single = write("single", "cast", x, to="f32")
        found = write("y", "resize", single, size=list(self.size), **self.mode)
        return write("", "cast", found, to=dtype)


def _mode(name: str, antialias: bool = False) -> dict[str, Any]:
    if antialias and name != "nearest":
        return {**_MODES[name], "antialias": True, "exclude_outside": True}
    return _MODES[name]


def _upsample(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        scale = c.a.ints("size", rank)
        mode = c.a.choice("interpolation", *_MODES) if rank == 2 else "nearest"
        x = c.first(rank)
        if mode == "nearest" or len(c.info(x).shape) != 4:  # which the definition will say
            return c.last(c.write("", "upsample", x, scale=scale))
        height, width = (n * s for n, s in zip(c.info(x).shape[2:], scale, strict=True))
        return c.last(Target((height, width), _mode(mode)).write(c.write, c.info, x))

    return write


def _resizing(c: Call) -> str:
    _ = c.a["fill_mode"]  # there is only one
    target = Target(
        (c.a.integer("height"), c.a.integer("width")),
        _mode(c.a.choice("interpolation", *_MODES), c.a.flag("antialias")),
        c.a.flag("crop_to_aspect_ratio"),
        c.a.flag("pad_to_aspect_ratio"),
        c.a.real("fill_value"),
    )
    return c.last(target.write(c.write, c.info, c.first(2)))


def resize(n: Node) -> str:
    """The function `keras.ops.image.resize` of a batch of images."""
    size, mode = n.get("size"), n.get("interpolation", "bilinear")
    if mode not in _MODES or n.rank(n.x()) != 4:
        raise n.uncovered(f"`interpolation` is {mode!r}, of {n.rank(n.x())} axes")
    target = Target(
        (int(size[0]), int(size[1])),
        _mode(mode, bool(n.get("antialias", False))),
        bool(n.get("crop_to_aspect_ratio", False)),
        bool(n.get("pad_to_aspect_ratio", False)),
        float(n.get("fill_value", 0.0)),
    )

    def write(suffix: str, op: str, *operands: Any, **attrs: Any) -> str:
        return n.write(op, *operands, suffix=suffix, **attrs)

    return n.last(target.write(write, n.info, n.first()))


def _center_crop(c: Call) -> str:
    """The middle of an image that is large enough."""
    x = c.first(2)
    wanted = [c.a.integer("height"), c.a.integer("width")]
    spare = [n - w for n, w in zip(c.info(x).shape[2:], wanted, strict=True)]
    if min(spare) < 0:
        raise Uncovered(c.a.kind, "the image is smaller than what is cut out of it")
    before: Sequence[int] = [s // 2 for s in spare]
    end = [b + w for b, w in zip(before, wanted, strict=True)]
    return c.last(c.write("", "slice", x, axes=[2, 3], begin=before, end=end))


def _untouched(c: Call) -> str:
    """Images as they are: the layer changes those of training only.

    Its `training` is true unless said, and is written into every model; Keras overrules it.
    """
    c.a.pass_over()
    return plain("identity")(c)


RESAMPLE: dict[str, Callable[[Call], str]] = {
    **{f"UpSampling{rank}D": _upsample(rank) for rank in (1, 2, 3)},
    "Resizing": _resizing,
    "CenterCrop": _center_crop,
    **dict.fromkeys(AUGMENTING, _untouched),
}
