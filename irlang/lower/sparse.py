"""How TensorFlow and PyTorch spell matrices of which some elements are said, each by its place."""

from __future__ import annotations

from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

_WIDE = ("f32", "f64")
_COUNTED = ("i32", "i64")
_CHECKED = (2, 0)  # the release of PyTorch from which on places may be looked at


def _tf_matrix(call: Call[Any], columns: int) -> str:
    ids, values = call.input("ids"), call.input("values")
    return invoke("tf.SparseTensor", ids, values, str([call["rows"], columns]))


def _torch_matrix(call: Call[Any], columns: int) -> str:
    """Which is told to look at the places, as it does not by itself."""
    ids, values = call.input("ids"), call.input("values")
    return invoke(
        "torch.sparse_coo_tensor",
        f"{ids.text}.t()",
        values,
        (call["rows"], columns),
        check_invariants=True,
    )


def _tf_product(call: Call[Any]) -> Value | None:
    b = call.input("b")
    if b.dtype not in _WIDE:
        return None
    return call.value(invoke("tf.sparse.sparse_dense_matmul", _tf_matrix(call, b.shape[0]), b))


def _tf_dense(call: Call[Any]) -> Value | None:
    if call.out.dtype not in (*_WIDE, *_COUNTED):
        return None
    whole = call.out.dtype in _COUNTED
    value = int(call["value"]) if whole else float(call["value"])
    if value != call["value"]:
        return None
    matrix = _tf_matrix(call, call["columns"])
    return call.value(invoke("tf.sparse.to_dense", matrix, default_value=value or None))


def _tf_reduced(call: Call[Any]) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    function = f"tf.sparse.reduce_{call['reduction']}"
    return call.value(invoke(function, _tf_matrix(call, call["columns"]), axis=1))


def _tf_softmax(call: Call[Any]) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    return call.value(f"{invoke('tf.sparse.softmax', _tf_matrix(call, call['columns']))}.values")


def _tf_segments(call: Call[Any]) -> Value | None:
    x, ids, segment = (call.input(name) for name in ("x", "ids", "segment"))
    if x.dtype not in _WIDE or ids.dtype not in _COUNTED:
        return None
    function = f"tf.sparse.segment_{call['reduction']}"
    return call.value(invoke(function, x, ids, segment, num_segments=call["segments"]))


def _tf_stitch(call: Call[Any]) -> Value:
    """Of two halves, if there are."""
    values = call.build.cast(call.input("ids"), "i32"), call.input("x")
    half = values[0].shape[0] // 2
    listed = [f"[{v.text}[:{half}], {v.text}[{half}:]]" if half else f"[{v.text}]" for v in values]
    return call.value(invoke("tf.dynamic_stitch", *listed))


def _torch_product(call: Call[Any]) -> Value | None:
    b = call.input("b")
    if b.dtype not in _WIDE:
        return None
    return call.value(invoke("torch.sparse.mm", _torch_matrix(call, b.shape[0]), b))


def _torch_dense(call: Call[Any]) -> Value | None:
    if call["value"] or call.out.dtype not in (*_WIDE, *_COUNTED):
        return None
    return call.value(f"{_torch_matrix(call, call['columns'])}.to_dense()")


def _torch_sum(call: Call[Any]) -> Value | None:
    if call["reduction"] != "sum" or call.out.dtype not in _WIDE:
        return None
    found = invoke("torch.sparse.sum", _torch_matrix(call, call["columns"]), dim=1)
    return call.value(f"{found}.to_dense()")


def _torch_softmax(call: Call[Any]) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    found = invoke("torch.sparse.softmax", _torch_matrix(call, call["columns"]), 1)
    return call.value(f"{found}.coalesce().values()")


_GRADIENTS = {"sum": "Sum", "mean": "Mean", "sqrt_n": "SqrtN"}
_SUMMED = (2, 7)  # the release of TensorFlow that has a kernel for sums


def _tf_segments_gradient(call: Call[Any]) -> Value | None:
    g, ids, segment = (call.input(name) for name in ("g", "ids", "segment"))
    known = call["reduction"] != "sum" or (call.build.release or _SUMMED) >= _SUMMED
    if not call.build.raw or not known or g.dtype not in _WIDE or ids.dtype not in _COUNTED:
        return None
    kernel = f"tf.raw_ops.SparseSegment{_GRADIENTS[call['reduction']]}Grad"
    given = {"grad": g, "indices": ids, "segment_ids": segment, "output_dim0": call["rows"]}
    return call.value(invoke(kernel, **given))


_ARITHMETIC = {"multiply": "Mul", "divide": "Div", "add": "Add"}


def _tf_arithmetic(call: Call[Any]) -> Value | None:
    """What flows back looks for the places in the tensor, which is to have an axis."""
    values, dense = call.input("values"), call.input("dense")
    if call.build.sloped and not dense.rank:
        return None
    if not call.build.raw or call.out.dtype not in (*_WIDE, *_COUNTED):
        return None
    kernel = f"tf.raw_ops.SparseDenseCwise{_ARITHMETIC[call['kind']]}"
    given = {"sp_indices": call.input("ids"), "sp_values": values, "dense": dense}
    return call.value(invoke(kernel, **given, sp_shape=str([call["rows"], call["columns"]])))


_TF_SEGMENTS = "tf.sparse.segment_sum, tf.sparse.segment_mean, tf.sparse.segment_sqrt_n"
TF_SPARSE: dict[str, Native] = {
    "sparse_matmul": Native("tf.sparse.sparse_dense_matmul", _tf_product),
    "sparse_to_dense": Native("tf.sparse.to_dense", _tf_dense),
    "sparse_reduce": Native(
        "tf.sparse.reduce_sum, tf.sparse.reduce_max", _tf_reduced, constant=("values",)
    ),
    "sparse_softmax": Native("tf.sparse.softmax", _tf_softmax),
    "sparse_segment_reduce": Native(_TF_SEGMENTS, _tf_segments),
    "dynamic_stitch": Native("tf.dynamic_stitch", _tf_stitch),
    "sparse_segment_gradient": Native(
        "tf.raw_ops.SparseSegmentMeanGrad, tf.raw_ops.SparseSegmentSqrtNGrad, "
        "tf.raw_ops.SparseSegmentSumGrad",
        _tf_segments_gradient,
        constant=("g",),
    ),
    "sparse_dense_arithmetic": Native(
        "tf.raw_ops.SparseDenseCwiseMul, tf.raw_ops.SparseDenseCwiseDiv, "
        "tf.raw_ops.SparseDenseCwiseAdd",
        _tf_arithmetic,
        constant=("dense", "values"),
    ),
}
TORCH_SPARSE: dict[str, Native] = {
    "sparse_matmul": Native("torch.sparse.mm", _torch_product, since=_CHECKED),
    "sparse_to_dense": Native("torch.sparse_coo_tensor", _torch_dense, since=_CHECKED),
    "sparse_reduce": Native("torch.sparse.sum", _torch_sum, since=_CHECKED),
    "sparse_softmax": Native("torch.sparse.softmax", _torch_softmax, since=_CHECKED),
}
