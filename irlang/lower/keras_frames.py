"""What layers of sliding windows share in Keras: their layout, padding and steps.

Channels are last there, as is usual. Keras 3 has a layout with channels first beside it, which
every layer takes: an even number of samples is written in that one, so that both are under test,
and what is reduced to one sample is as people write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irlang.lower.channels import channels_first, channels_last
from irlang.lower.keras_call import Keras, quoted, sizes
from irlang.lower.legalise import Windows, all_are, around, windows
from irlang.lower.value import Value

MOST_SPACE = 3
FOR_POOL_3D = ("f32", "bf16")  # for which TensorFlow has kernels
_FOR_CHANNELS_FIRST = ("f32",)  # and, on any processor, with channels first


def alike(numbers: Sequence[int]) -> bool:
    """Whether all numbers are the same."""
    return len(set(numbers)) == 1


def is_first(call: Keras) -> bool:
    """Whether channels come first here."""
    if call.build.backend == "tensorflow" and call.out.dtype not in _FOR_CHANNELS_FIRST:
        return False
    return call.build.version == 3 and call.input("x").shape[0] % 2 == 0


def layout(call: Keras) -> dict[str, Any]:
    """The layout, as an argument; the usual one is left out."""
    return {"data_format": quoted("channels_first")} if is_first(call) else {}


def laid(call: Keras, x: Value) -> Value:
    """What a layer is given."""
    return x if is_first(call) else channels_last(call, x)


def result(call: Keras, text: str, shape: tuple[int, ...]) -> Value:
    """What a layer gives, channels first."""
    if is_first(call):
        return call.build.let(Value(text, shape, call.out.dtype), f"{call.node.name}_first")
    n, c, *space = shape
    inner = Value(text, (n, *space, c), call.out.dtype)
    return channels_first(call, call.build.let(inner, f"{call.node.name}_last"))


def either_steps(frame: Windows) -> dict[str, Any] | None:
    """As `steps_of`, but of what Keras has one or the other."""
    both = not all_are(frame.stride, 1) and not all_are(frame.dilation, 1)
    return None if both else steps_of(frame)


def steps_of(frame: Windows) -> dict[str, Any]:
    """Strides and dilation; those that are 1 are left out."""
    return {
        "strides": None if all_are(frame.stride, 1) else sizes(frame.stride),
        "dilation_rate": None if all_are(frame.dilation, 1) else sizes(frame.dilation),
    }


def framed(call: Keras, causal: bool = False) -> tuple[Value, Windows, str | None]:
    """The input, padded unless Keras pads alike, its windows, and the word for the padding."""
    x, frame = call.input("x"), windows(call)
    # On Theano that is another padding where windows stride, as Keras 2 documents.
    fits = call.build.backend != "theano" or all_are(frame.stride, 1)
    if call["pad"] == "same" and fits:
        return x, frame, quoted("same")
    past = tuple(span - 1 for span in frame.span)
    if causal and frame.padded and frame.before == past and not any(frame.after):
        return x, frame, quoted("causal")
    x, frame = around(call, x, frame)
    return x, frame, None


def spaced(frame: Windows) -> bool:
    """Whether there are as many axes as Keras has layers for."""
    return 1 <= frame.rank <= MOST_SPACE
