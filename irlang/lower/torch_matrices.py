"""How PyTorch spells products, systems of equations and distances."""

from __future__ import annotations

import math
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.numpy_words import inner, matrix_norm
from irlang.lower.spelling import invoke, of_wide, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.torch_places import two
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


def _log_determinant(call: Torch) -> list[Value]:
    return two(call, invoke("torch.linalg.slogdet", call.input("x")))


def _tensordot(call: Torch) -> Value:
    a, b = call.input("a"), call.input("b")
    axes = [list(call.axes_said("a_axes", a.rank)), list(call.axes_said("b_axes", b.rank))]
    return call.value(invoke("torch.tensordot", a, b, dims=str(axes)))


def _rot90(call: Torch) -> Value:
    x = call.input("x")
    return call.value(invoke("torch.rot90", x, call["k"], call.axes_said("axes", x.rank)))


def _vander(call: Torch) -> Value:
    """Of whole numbers it gives i64, whatever they are."""
    x, dtype = call.input("x"), call.out.dtype
    powers = invoke("torch.vander", x, N=call["columns"], increasing=call["increasing"])
    wider = dtype.startswith(("i", "u")) and dtype != "i64"
    return call.value(f"{powers}.to({call.build.dtype(dtype)})" if wider else powers)


def weights_of(call: Torch) -> Value | None:
    """What each id of a bag counts, if that is said."""
    return call.input("weights") if call.has("weights") else None


def bags(
    call: Torch, ids: Value, weights: Value | None, *begins: Value | str, **options: Any
) -> Value:
    """What PyTorch makes of bags of ids. begins: where each begins, of ids of one axis."""
    text = invoke(
        "F.embedding_bag", ids, call.input("table"), *begins, mode=f'"{call["mode"]}"',
        per_sample_weights=weights, **options,
    )  # fmt: skip
    return call.value(text)


def _bag(call: Torch) -> Value:
    return bags(call, call.build.cast(call.input("ids"), "i64"), weights_of(call))


def _bag_offsets(call: Torch) -> Value:
    ids, offsets = (call.build.cast(call.input(name), "i64") for name in ("ids", "offsets"))
    return bags(call, ids, weights_of(call), offsets)


def _multilabel(call: Torch) -> Value:
    values = call.input("x"), call.input("target")
    weight = call.input("weight") if call.has("weight") else None
    reduction = f'"{call["reduction"]}"'
    function = "F.multilabel_soft_margin_loss"
    return call.value(invoke(function, *values, weight=weight, reduction=reduction))


def _channel_shuffle(call: Torch) -> Value | None:
    x = call.input("x")
    if x.rank < 3:
        return None
    return call.value(invoke("torch.channel_shuffle", x, call["groups"]))


def _cosine_similarity(call: Torch) -> Value | None:
    """PyTorch's eps is a length, not its square."""
    a, b = call.input("prediction"), call.input("target")
    if call["eps"] < 0:
        return None
    options = {"dim": call.axis_said("axis", a.rank), "eps": math.sqrt(call["eps"])}
    text = invoke("F.cosine_similarity", a, b, **options)
    text = f"-{text}" if call["negative"] else text
    reduction = {"none": text, "sum": f"({text}).sum()", "mean": f"({text}).mean()"}
    return call.value(reduction[call["reduction"]])


def _max_unpool(call: Torch) -> Value | None:
    """With windows as small as PyTorch takes for the size."""
    x, size = call.input("x"), tuple(call["size"])
    space = x.rank - 2
    if not 1 <= space <= 3 or call["whole"] or 0 in x.shape or x.dtype not in _WIDE:
        return None
    window = tuple(-(-n // have) for n, have in zip(size, x.shape[2:], strict=True))
    spare = [have * w - n for n, have, w in zip(size, x.shape[2:], window, strict=True)]
    if 0 in window or any(more >= w for more, w in zip(spare, window, strict=True)):
        return None
    ids = call.build.cast(call.input("indices"), "i64")
    return call.value(invoke(f"F.max_unpool{space}d", x, ids, window, output_size=size))


def _set_diagonal(call: Torch) -> Value:
    values = call.input("x"), call.input("diagonal")
    return call.value(invoke("torch.diagonal_scatter", *values, call["offset"], dim1=-2, dim2=-1))


MATRICES: dict[str, Native] = {
    "set_diagonal": Native("torch.diagonal_scatter", _set_diagonal),
    "inner": inner("torch.inner"),
    "matrix_norm": of_wide(matrix_norm("torch.linalg.matrix_norm", keepdims="keepdim")),
    "cholesky": of_wide(plain("torch.linalg.cholesky")),
    "inverse": of_wide(plain("torch.linalg.inv")),
    "solve": of_wide(plain("torch.linalg.solve")),
    "log_determinant": of_wide(Native("torch.linalg.slogdet", _log_determinant)),
    "matrix_power": plain("torch.linalg.matrix_power", n="n"),
    "vander": Native("torch.vander", _vander),
    "cdist": of_wide(plain("torch.cdist", p="p")),
    "pairwise_distance": plain("F.pairwise_distance", p="p", eps="eps", keepdim="keepdims"),
    "tensordot": Native("torch.tensordot", _tensordot),
    "baddbmm": plain("torch.baddbmm", alpha="alpha", beta="beta"),
    "rot90": Native("torch.rot90", _rot90),
    "channel_shuffle": Native("torch.channel_shuffle", _channel_shuffle),
    "cosine_similarity": Native("F.cosine_similarity", _cosine_similarity),
    "max_unpool": Native("F.max_unpool{1,2,3}d", _max_unpool),
    "embedding_bag": Native("F.embedding_bag", _bag),
    "embedding_bag_offsets": Native("F.embedding_bag", _bag_offsets),
    "multilabel_soft_margin": Native("F.multilabel_soft_margin_loss", _multilabel),
}
