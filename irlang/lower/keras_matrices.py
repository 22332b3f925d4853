"""How Keras 3 spells products, systems of equations and distances: `keras.ops`."""

from __future__ import annotations

from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

_WIDE = ("f32", "f64")


def _log_determinant(call: Keras) -> list[Value] | None:
    if call.out.dtype not in _WIDE:
        return None
    names = [call.build.names.fresh(name) for name in call.node.outputs]
    call.build.lines.append(f"{', '.join(names)} = ops.slogdet({call.input('x').text})")
    pairs = zip(names, call.outputs, strict=True)
    return [Value(name, info.shape, info.dtype) for name, info in pairs]


def _solve(call: Keras) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    return call.value(invoke("ops.solve", call.input("a"), call.input("b")))


def _vander(call: Keras) -> Value | None:
    if call.out.kind == "int":
        return None
    options = {"N": call["columns"], "increasing": call["increasing"]}
    return call.value(invoke("ops.vander", call.input("x"), **options))


def _cdist(call: Keras) -> Value | None:
    if call["p"] != 2:
        return None
    return call.value(invoke("ops.cdist", call.input("a"), call.input("b")))


def _tensordot(call: Keras) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if call.out.kind == "int":
        return None
    axes = [list(call.axes("a_axes", a.rank)), list(call.axes("b_axes", b.rank))]
    return call.value(invoke("ops.tensordot", a, b, axes=str(axes)))


def _rot90(call: Keras) -> Value | None:
    x = call.input("x")
    return call.value(invoke("ops.rot90", x, k=call["k"], axes=call.axes("axes", x.rank)))


MATRICES: dict[str, Native] = {
    "log_determinant": Native("ops.slogdet", _log_determinant, since=KERAS_3),
    "solve": Native("ops.solve", _solve, since=KERAS_3),
    "vander": Native("ops.vander", _vander, since=KERAS_3),
    "cdist": Native("ops.cdist", _cdist, since=KERAS_3),
    "tensordot": Native("ops.tensordot", _tensordot, since=KERAS_3),
    "rot90": Native("ops.rot90", _rot90, since=KERAS_3),
}
