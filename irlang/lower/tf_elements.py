"""How TensorFlow spells elements that are said by their places, rows one behind the other,
sequences, and several diagonals at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.selections import TF_ROOM
from irlang.lower.spelling import invoke, named
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import listed
from irlang.lower.tf_words import NUMBERS, raw, word
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")
_PLACES = ("i32", "i64")
_BYTES = ("u8", "i8", "i16", *_PLACES)  # and what they are that sets have


def _long(sizes: Sequence[int]) -> str:
    """Sizes as a tensor."""
    return f"tf.constant({list(sizes)}, tf.int64)"


def _shape(call: Tf) -> str:
    return _long([call["rows"], call["columns"]])


# ---- elements by their places


def _reorder(call: Tf, kernel: str) -> list[Value] | None:
    if call.input("values").dtype not in NUMBERS:
        return None
    given = {"input_indices": call.input("ids"), "input_values": call.input("values")}
    return named(call, invoke(kernel, **given, input_shape=_shape(call)))


def _joined(call: Tf, kernel: str) -> list[Value] | None:
    if call.input("a").dtype not in NUMBERS:
        return None
    text = invoke(
        kernel, indices=f"[{call.text('a_ids')}, {call.text('b_ids')}]",
        values=f"[{call.text('a')}, {call.text('b')}]",
        shapes=f"[{_long(call['a_shape'])}, {_long(call['b_shape'])}]", concat_dim=call["axis"],
    )  # fmt: skip
    return named(call, f"{text}[:2]")


def _counted(call: Tf, kernel: str) -> Value | None:
    values = call.input("values")
    if values.dtype not in _PLACES:
        return None
    text = invoke(
        kernel, indices=call.input("ids"), values=values, dense_shape=_shape(call),
        size=f"tf.constant({call['size']}, {call.build.dtype(values.dtype)})",
        weights="tf.constant([], tf.int64)", binary_output=call["once"] or None,
    )  # fmt: skip
    return call.value(text)


def _filled(call: Tf, kernel: str) -> list[Value] | None:
    if call.input("g").dtype not in _WIDE:
        return None
    given = {"reverse_index_map": call.input("at"), "grad_values": call.input("g")}
    return named(call, invoke(kernel, **given))


def _distinct(call: Tf, kernel: str) -> Value | None:
    values = call.input("values")
    if values.dtype not in _BYTES:
        return None
    given = {"set_indices": call.input("ids"), "set_values": values}
    return call.value(invoke(kernel, **given, set_shape=_shape(call)))


# ---- rows one behind the other


def _to_sparse(call: Tf, kernel: str) -> list[Value] | None:
    if call.input("x").dtype not in NUMBERS:
        return None
    given = {"rt_nested_splits": f"[{call.text('splits')}]", "rt_dense_values": call.input("x")}
    return named(call, invoke(kernel, **given))


def _gathered(call: Tf, kernel: str) -> list[Value] | None:
    if call.input("x").dtype not in NUMBERS or call.input("ids").dtype not in _PLACES:
        return None
    text = invoke(
        kernel, params_nested_splits=f"[{call.text('splits')}]",
        params_dense_values=call.input("x"), indices=call.input("ids"), OUTPUT_RAGGED_RANK=1,
    )  # fmt: skip
    splits, found = call.build.several(text, "splits", "found")
    return [call.value(f"{splits}[0]"), TF_ROOM.room(call, found, 1)]


# ---- sequences


def _ascending(call: Tf) -> Value | None:
    x = call.input("x")
    function = "is_strictly_increasing" if call["strict"] else "is_non_decreasing"
    return call.value(invoke(f"tf.math.{function}", x)) if x.dtype in NUMBERS else None


def _inverse(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    return call.value(invoke(function, x)) if x.dtype in _PLACES else None


_LETTERS = "ABCDE"


def _formats(call: Tf) -> dict[str, str] | None:
    """Orders of axes by letters, which are one for an axis of its own."""
    order = [int(axis) for axis in call["order"]]
    if len(set(order)) != len(order) or not 4 <= len(order) <= 5 or {*order} - {*range(5)}:
        return None
    first = _LETTERS[: len(order)]
    if max(order) >= len(order):
        return None
    return {"src": first, "dst": "".join(first[axis] for axis in order)}


def _formatted(call: Tf, kernel: str, there: str, back: str) -> Value | None:
    """there, back: which of the two orders of axes the kernel is told first, and which second."""
    x, formats = call.input("x"), _formats(call)
    if formats is None or x.dtype not in _PLACES:
        return None
    given = {"src_format": f'"{formats[there]}"', "dst_format": f'"{formats[back]}"'}
    return call.value(invoke(kernel, x=x, **given))


def _mapped(call: Tf, kernel: str) -> Value | None:
    """By where an axis of the one order is in the other."""
    return _formatted(call, kernel, "dst", "src")


def _permuted(call: Tf, kernel: str) -> Value | None:
    return _formatted(call, kernel, "src", "dst")


def _difference(call: Tf, kernel: str) -> list[Value] | None:
    x, y = call.input("x"), call.input("y")
    if x.dtype not in NUMBERS:
        return None
    found, places = call.build.several(
        invoke(kernel, x=x, y=y, out_idx="tf.int64"), "found", "places"
    )
    return [TF_ROOM.room(call, found), TF_ROOM.room(call, places, 1, -1)]


def _isotonic(call: Tf, function: str) -> Value | None:
    x = call.input("x")
    if x.dtype not in _WIDE or not x.rank:
        return None
    return call.value(f"{invoke(function, x, decreasing=call['decreasing'])}[0]")


# ---- several diagonals


def _ends(call: Tf) -> dict[str, Any]:
    align = f'"{call["above"].upper()}_{call["below"].upper()}"'
    return {"k": listed((call["lower"], call["upper"])), "align": align}


def _number(call: Tf) -> str | None:
    dtype = call.out.dtype
    number = float(call["value"])
    if dtype in _PLACES and not number.is_integer():
        return None
    if dtype in _PLACES:
        return f"tf.constant({int(number)}, {call.build.dtype(dtype)})"
    shown = repr(number) if abs(number) < float("inf") else f'float("{number}")'
    return f"tf.constant({shown}, {call.build.dtype(dtype)})"


def _parts(call: Tf, kernel: str) -> Value | None:
    number, x = _number(call), call.input("x")
    if number is None or x.dtype not in NUMBERS:
        return None
    found = call.value(invoke(kernel, input=x, **_ends(call), padding_value=number))
    return call.build.reshape(found, call.out.shape) if call["lower"] == call["upper"] else found


def _lone(call: Tf, diagonals: Value) -> Value | None:
    """Diagonals, of which one that is alone has no axis for which it is; None where it has more."""
    if call["lower"] != call["upper"]:
        return diagonals
    if diagonals.rank < 2 or diagonals.shape[-2] != 1:
        return None
    return call.build.reshape(diagonals, (*diagonals.shape[:-2], *diagonals.shape[-1:]))


def _whole(call: Tf, kernel: str) -> Value | None:
    number, x = _number(call), _lone(call, call.input("x"))
    if number is None or x is None or x.dtype not in NUMBERS:
        return None
    given = {"num_rows": call["rows"], "num_cols": call["columns"], "padding_value": number}
    return call.value(invoke(kernel, diagonal=x, **_ends(call), **given))


def _set(call: Tf, kernel: str) -> Value | None:
    x, diagonals = call.input("x"), _lone(call, call.input("diagonals"))
    if x.dtype not in NUMBERS or diagonals is None:
        return None
    return call.value(invoke(kernel, input=x, diagonal=diagonals, **_ends(call)))


ROWS_BY_PLACES: dict[str, Native] = {
    "sparse_reorder": raw("SparseReorder", _reorder),
    "sparse_concat": raw("SparseConcat", _joined, constant=("a", "b")),
    "sparse_bincount": raw("SparseBincount", _counted),
    "sparse_fill_gradient": raw("SparseFillEmptyRowsGrad", _filled, constant=("g",)),
    "set_size": raw("SetSize", _distinct, eager=True),
    "ragged_to_sparse": raw("RaggedTensorToSparse", _to_sparse),
    "ragged_gather": raw("RaggedGather", _gathered, eager=True),
    "is_ascending": Native("tf.math.is_non_decreasing, tf.math.is_strictly_increasing", _ascending),
    "invert_permutation": word("tf.math.invert_permutation", _inverse),
    "axis_map": raw("DataFormatDimMap", _mapped),
    "axis_permute": raw("DataFormatVecPermute", _permuted),
    "list_difference": raw("ListDiff", _difference, eager=True, constant=("x",)),
    "isotonic_regression": word("tf.nn.isotonic_regression", _isotonic),
    "matrix_diagonals": raw("MatrixDiagPartV3", _parts),
    "diagonals_matrix": raw("MatrixDiagV3", _whole),
    "set_diagonals": raw("MatrixSetDiagV3", _set),
}
