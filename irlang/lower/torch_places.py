"""How PyTorch spells order, scattering and bits."""

from __future__ import annotations

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.labels import native
from irlang.lower.spelling import invoke, named, plain, powered
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_REDUCED = {"add": '"sum"', "mul": '"prod"', "max": '"amax"', "min": '"amin"'}


def two(call: Torch, text: str) -> list[Value]:
    """A call that gives values and where they were."""
    names = [call.build.names.fresh("v") for _ in range(2)]
    call.build.lines.append(f"{', '.join(names)} = {text}")
    infos = call.outputs
    return [Value(n, info.shape, info.dtype) for n, info in zip(names, infos, strict=True)]


# ---- order


def _sort(call: Torch) -> list[Value]:
    x = call.input("x")
    options = {"dim": call.axis_said("axis", x.rank), "descending": call["descending"] or None}
    return two(call, invoke("torch.sort", x, stable=True, **options))


def _kth_value(call: Torch) -> list[Value]:
    x = call.input("x")
    options = {"dim": call.axis_said("axis", x.rank), "keepdim": call["keepdims"] or None}
    return two(call, invoke("torch.kthvalue", x, call["k"], **options))


def _running(function: str) -> Native:
    def rule(call: Torch) -> list[Value] | None:
        x = call.input("x")
        if call["reverse"]:
            return None
        return two(call, invoke(function, x, dim=call.axis_said("axis", x.rank)))

    return Native(function, rule)


def _logcumsumexp(call: Torch) -> Value | None:
    x = call.input("x")
    if call["reverse"]:
        return None
    return call.value(invoke("torch.logcumsumexp", x, dim=call.axis_said("axis", x.rank)))


# ---- scattering


def _scatter_elements(call: Torch) -> Value | None:
    x, updates, reduction = call.input("x"), call.input("updates"), call["reduction"]
    if call["negative"] != "refused" or (reduction != "none" and x.dtype == "bool"):
        return None
    ids, axis = call.build.cast(call.input("ids"), "i64"), call.axis_said("axis", x.rank)
    if reduction == "none":
        return call.value(invoke("torch.scatter", x, axis, ids, updates))
    text = invoke("torch.scatter_reduce", x, axis, ids, updates, _REDUCED[reduction])
    return call.value(text)


def _scatter_slices(call: Torch) -> Value | None:
    x, updates, reduction = call.input("x"), call.input("updates"), call["reduction"]
    if call["negative"] != "refused" or (reduction != "none" and x.dtype == "bool"):
        return None
    ids, axis = call.build.cast(call.input("ids"), "i64"), call.axis_said("axis", x.rank)
    function = {"none": "torch.index_copy", "add": "torch.index_add"}.get(reduction)
    if function is not None:
        return call.value(invoke(function, x, axis, ids, updates))
    kind = {**_REDUCED, "mul": '"prod"'}[reduction]
    return call.value(invoke("torch.index_reduce", x, axis, ids, updates, kind))


def _scatter_nd(call: Torch) -> Value | None:
    """`index_put` counts negative positions from the end."""
    x, ids = call.input("x"), call.build.cast(call.input("ids"), "i64")
    adds = call["reduction"] == "add"
    if call["reduction"] not in ("none", "add") or ids.rank < 1 or not ids.shape[-1]:
        return None
    if adds and x.dtype == "bool":
        return None
    places = f"{call.build.inner(ids)}.unbind(-1)"
    accumulate = adds or None
    text = invoke("torch.index_put", x, places, call.input("updates"), accumulate=accumulate)
    return call.value(text)


# ---- numbers


def _shift(call: Torch) -> Value | None:
    logical = call["logical"] and call["direction"] == "right"
    if (logical and not call.out.dtype.startswith("u")) or call["too_far"] != "open":
        return None
    function = f"torch.bitwise_{call['direction']}_shift"
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _bits(name: str) -> Native:
    return plain(f"torch.bitwise_{name}")


# ---- matrices


def _diagonal(function: str, more: int) -> Native:
    """more: how many axes the result has above the input, where it is the result's that count."""

    def rule(call: Torch) -> Value:
        x = call.input("x")
        first, second = call.axes_said("axes", x.rank + more)
        options = {"offset": call["offset"] or None, "dim1": first, "dim2": second}
        return call.value(invoke(function, x, **options))

    return Native(function, rule)


def _trace(call: Torch) -> Value | None:
    x = call.input("x")
    if x.rank != 2 or call["offset"] or x.dtype in ("f16", "bf16"):
        return None
    cast = DTYPES[x.dtype].kind == "int"
    text = invoke("torch.trace", x)
    return call.build.cast(Value(text, (), "i64"), x.dtype) if cast else call.value(text)


def _cross(call: Torch) -> Value:
    a, b = call.input("a"), call.input("b")
    return call.value(invoke("torch.linalg.cross", a, b, dim=call.axis_said("axis", a.rank)))


def _meshgrid(call: Torch) -> list[Value]:
    listed = ", ".join(call.build.full(value) for value in call.family("xs"))
    text = invoke("torch.meshgrid", listed, indexing=f'"{call["indexing"]}"')
    return named(call, text)


def _kron(call: Torch) -> Value:
    """It takes no tensor whose axes lie in another order in memory."""
    inputs = (call.build.inner(call.build.solid(value)) for value in call.values.values())
    return call.value(invoke("torch.kron", *(f"{text}.contiguous()" for text in inputs)))


PLACES: dict[str, Native] = {
    "einsum": native("torch.einsum", repeats=True),
    "sort": Native("torch.sort", _sort),
    "kth_value": Native("torch.kthvalue", _kth_value),
    "cummax": _running("torch.cummax"),
    "cummin": _running("torch.cummin"),
    "logcumsumexp": Native("torch.logcumsumexp", _logcumsumexp),
    "scatter_elements": Native("torch.scatter, torch.scatter_reduce", _scatter_elements),
    "scatter_slices": Native(
        "torch.index_copy, torch.index_add, torch.index_reduce", _scatter_slices
    ),
    "scatter_nd": Native("torch.index_put", _scatter_nd),
    **{f"bit_{name}": _bits(name) for name in ("and", "or", "xor", "not")},
    "bit_shift": Native("torch.bitwise_left_shift, torch.bitwise_right_shift", _shift),
    "power": powered("torch.pow", lambda call, value: call.build.beside(value)),
    "isfinite": plain("torch.isfinite"),
    "diagonal": _diagonal("torch.diagonal", 0),
    "diag_embed": _diagonal("torch.diag_embed", 1),
    "trace": Native("torch.trace", _trace),
    "kron": Native("torch.kron", _kron),
    "cross": Native("torch.linalg.cross", _cross),
    "meshgrid": Native("torch.meshgrid", _meshgrid),
}
