"""How PyTorch spells products, systems of equations and distances."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.torch_places import two
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


def _of_wide(row: Native) -> Native:
    """For the types that libraries of linear algebra have."""
    return Native(row.spelling, lambda call: row.rule(call) if call.out.dtype in _WIDE else None)


def _log_determinant(call: Torch) -> list[Value]:
    return two(call, invoke("torch.linalg.slogdet", call.input("x")))


def _tensordot(call: Torch) -> Value:
    a, b = call.input("a"), call.input("b")
    axes = [list(call.axes("a_axes", a.rank)), list(call.axes("b_axes", b.rank))]
    return call.value(invoke("torch.tensordot", a, b, dims=str(axes)))


def _rot90(call: Torch) -> Value:
    x = call.input("x")
    return call.value(invoke("torch.rot90", x, call["k"], call.axes("axes", x.rank)))


def _bag(call: Torch) -> Value:
    ids = call.build.cast(call.input("ids"), "i64")
    weights = call.input("weights") if call.has("weights") else None
    options = {"mode": f'"{call["mode"]}"', "per_sample_weights": weights}
    return call.value(invoke("F.embedding_bag", ids, call.input("table"), **options))


def _multilabel(call: Torch) -> Value:
    values = call.input("x"), call.input("target")
    weight = call.input("weight") if call.has("weight") else None
    reduction = f'"{call["reduction"]}"'
    function = "F.multilabel_soft_margin_loss"
    return call.value(invoke(function, *values, weight=weight, reduction=reduction))


MATRICES: dict[str, Native] = {
    "cholesky": _of_wide(plain("torch.linalg.cholesky")),
    "inverse": _of_wide(plain("torch.linalg.inv")),
    "solve": _of_wide(plain("torch.linalg.solve")),
    "log_determinant": _of_wide(Native("torch.linalg.slogdet", _log_determinant)),
    "matrix_power": plain("torch.linalg.matrix_power", n="n"),
    "vander": plain("torch.vander", N="columns", increasing="increasing"),
    "cdist": _of_wide(plain("torch.cdist", p="p")),
    "pairwise_distance": plain("F.pairwise_distance", p="p", eps="eps", keepdim="keepdims"),
    "tensordot": Native("torch.tensordot", _tensordot),
    "baddbmm": plain("torch.baddbmm", alpha="alpha", beta="beta"),
    "rot90": Native("torch.rot90", _rot90),
    "embedding_bag": Native("F.embedding_bag", _bag),
    "multilabel_soft_margin": Native("F.multilabel_soft_margin_loss", _multilabel),
}
