"""Sizes that a model file reads from its tensors when it is run, as files do whose sizes are not
known when they are written: PyTorch's exporter writes `x.reshape(x.shape[0], 6)` as `Shape`,
`Gather`, `Unsqueeze`, `Concat` and `Reshape`. Of these chains optimisers make constants, or zeros
and -1 of a `Reshape`.

A number that equals the size of a tensor by chance is read from it as well, and a bound that is one
less than a size: the file is run with the tensors that it was written for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.value import Value

if TYPE_CHECKING:
    from irlang.lower.onnx_builder import OnnxBuilder

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# By operator, the inputs that are sizes, or places that may be one.
_SIZES = {
    "Reshape": (1,), "Expand": (1,), "ConstantOfShape": (0,), "Slice": (1, 2), "Tile": (1,),
    "Resize": (3,), "TopK": (1,), "Split": (1,), "Range": (0, 1, 2), "OneHot": (1,), "Pad": (1,),
    "CenterCropPad": (1,), "AffineGrid": (1,), "MaxUnpool": (2,),
}  # fmt: skip
_FORMS = 3
_PARTS = 15  # the opset from which on `Shape` gives a part of itself


def with_measured(onnx: OnnxBuilder, op: str, inputs: list[str]) -> list[str]:
    """The inputs of an operator, with sizes that are read from tensors in place of constants."""
    places = [place for place in _SIZES.get(op, ()) if place < len(inputs)]
    found = list(inputs)
    for place in places:
        numbers = onnx.held(inputs[place])
        if numbers is None or numbers.dtype != np.int64 or numbers.ndim > 1 or not numbers.size:
            continue
        sources = onnx.tensors([name for at, name in enumerate(inputs) if at != place])
        onnx.measures = False  # what reads sizes has places of its own
        data = next((one for one in sources if one.text == inputs[0]), None)
        turn = op == "Reshape" and onnx.measured % 2 == 1
        rest = turn and data is not None and _may_be_left(numbers, data)
        found[place] = _measured(onnx, numbers, inputs[place], sources, rest)
        onnx.measures = True
        onnx.measured += found[place] != inputs[place]
    return found


def _measured(
    onnx: OnnxBuilder,
    numbers: Numbers,
    constant: str,
    sources: Sequence[Value],
    rest: bool,
) -> str:
    """The name of what gives the numbers; that of their constant where no tensor has one of them.

    rest: whether one number may be what is left of the elements.
    """
    sizes = [int(number) for number in np.atleast_1d(numbers)]
    whole = next((one for one in sources if list(one.shape) == sizes), None)
    form = onnx.measured % _FORMS
    if whole is not None and numbers.ndim and form:
        return _shape(onnx, whole).text
    places = [_place(size, at, sources) for at, size in enumerate(sizes)]
    if not any(places):
        last = None if numbers.ndim else _place(sizes[0] + 1, 0, sources)
        return constant if last is None else _before(onnx, _scalar(onnx, *last)).text
    if not numbers.ndim and places[0] is not None:
        return _scalar(onnx, *places[0]).text
    parts = []
    for size, place in zip(sizes, places, strict=True):
        if place is not None:
            parts.append(_part(onnx, *place, form))
        else:
            parts.append(onnx.integers([-1 if rest else size]))
            rest = False
    if len(parts) == 1:
        return parts[0].text
    info = TensorInfo((len(parts),), "i64")
    return onnx.node("Concat", [part.text for part in parts], [info], axis=0)[0].text


def _may_be_left(numbers: Numbers, value: Value) -> bool:
    """Whether one size of what a tensor is reshaped to may be what is left of its elements."""
    count = math.prod(value.shape)
    return count > 0 and math.prod(numbers.tolist()) == count and min(numbers.tolist()) > 0


def _place(size: int, at: int, sources: Sequence[Value]) -> tuple[Value, int] | None:
    """A tensor and its axis of some size: the axis of the same number if one is as long."""
    for source in sources:
        if at < len(source.shape) and source.shape[at] == size:
            return source, at
        if size in source.shape:
            return source, source.shape.index(size)
    return None


def _shape(onnx: OnnxBuilder, value: Value, **part: int) -> Value:
    count = part["end"] - part["start"] if part else len(value.shape)
    return onnx.node("Shape", [value.text], [TensorInfo((count,), "i64")], **part)[0]


def _scalar(onnx: OnnxBuilder, value: Value, axis: int) -> Value:
    which = onnx.constant(np.asarray(axis), "i64")
    inputs = [_shape(onnx, value).text, which.text]
    return onnx.node("Gather", inputs, [TensorInfo((), "i64")], axis=0)[0]


def _before(onnx: OnnxBuilder, size: Value) -> Value:
    """The last place along an axis of some size, as what goes backwards begins with."""
    return onnx.apply("-", [size, onnx.constant(np.asarray(1), "i64")])


def _part(onnx: OnnxBuilder, value: Value, axis: int, form: int) -> Value:
    """A vector of the size of one axis."""
    info = TensorInfo((1,), "i64")
    if form == 0 or (onnx.runtime.opset < _PARTS and form == 1):
        inputs = [_scalar(onnx, value, axis).text, onnx.integers([0]).text]
        return onnx.node("Unsqueeze", inputs, [info])[0]
    if form == 1:
        return _shape(onnx, value, start=axis, end=axis + 1)
    bounds = [onnx.integers([n]).text for n in (axis, axis + 1, 0, 1)]
    return onnx.node("Slice", [_shape(onnx, value).text, *bounds], [info])[0]
