"""What operators of sliding windows share in TensorFlow: padding, layout and what there are kernels
for.
"""

from __future__ import annotations

from irlang.lower.call import Call
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.legalise import Windows, all_are, windows
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
MOST_SPACE = 3
PLANE = 2  # axes of an image
_POOL3D_TYPES = ("f32", "bf16")  # for which there are kernels


def framed(
    call: Tf, x: Value, number: float = 0.0, told: bool = False
) -> tuple[Value, Windows, str]:
    """The input, padded unless TensorFlow pads alike, its windows, and the word for the padding.

    told: whether the operator takes the padding itself, of images.
    """
    frame = windows(call)
    if call["pad"] == "same":
        return x, frame, '"SAME"'
    if told and call.build.pads and frame.rank == PLANE and call["pad"] == "given":
        pairs = [list(pair) for pair in zip(frame.before, frame.after, strict=True)]
        return x, frame, str([[0, 0], *pairs, [0, 0]])
    x, frame = surrounded(call, x, frame, number)
    return x, frame, '"VALID"'


def surrounded(call: Tf, x: Value, frame: Windows, number: float = 0.0) -> tuple[Value, Windows]:
    """As `around`, with the padding right in front of the operator, where its channels are last."""
    if not frame.padded:
        return x, frame
    inner = channels_last(call, x)
    before, after = (0, *frame.before, 0), (0, *frame.after, 0)
    padded = call.build.pad(inner, before, after, number)
    return channels_first(call, padded), frame.bare()


def biased(call: Tf, text: str) -> str:
    """With the bias, as layers add it: what optimisers look for behind a product."""
    return invoke("tf.nn.bias_add", text, call.input("b")) if call.has("b") else text


def result(call: Tf, text: str, shape: tuple[int, ...]) -> Value:
    """A result with channels last, turned to channels first."""
    n, c, *space = shape
    inner = Value(text, (n, *space, c), call.out.dtype, atom=False)
    return channels_first(call, call.build.let(inner, f"{call.node.name}_last"))


def listed(sizes: tuple[int, ...]) -> str:
    """Sizes as a list."""
    return str(list(sizes))


def number_or_list(sizes: tuple[int, ...]) -> str:
    """One size as a number, several as a list."""
    return str(sizes[0]) if len(sizes) == 1 else listed(sizes)


def is_plane(frame: Windows) -> bool:
    """Two axes of one stride, and dilation only where that is 1."""
    strides = set(frame.stride)
    return (
        frame.rank == PLANE and len(strides) == 1 and (all_are(frame.dilation, 1) or strides == {1})
    )


def poolable(frame: Windows, dtype: str) -> bool:
    """Whether there is a kernel that pools so."""
    if frame.rank == MOST_SPACE and dtype not in _POOL3D_TYPES:
        return False
    return 1 <= frame.rank <= MOST_SPACE and all_are(frame.dilation, 1)
