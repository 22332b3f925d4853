"""Calls of TensorFlow's operators: what every row of the importer is tested with.

A case names the operator and its arguments, as `tf.raw_ops` has them. An array that is wrapped in
`Fed` is fed to a placeholder; all else is in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Fed:
    """An array that is fed. open: its first size is left open in the graph."""

    array: Array
    open: bool = False


def _draw(*shape: int, low: float = -2.0, high: float = 2.0, dtype: Any = np.float32) -> Fed:
    seed = sum(shape) + 31 * len(shape)
    return Fed(np.random.default_rng(seed).uniform(low, high, shape).astype(dtype))


def _whole(*shape: int, low: int = 0, high: int = 5, dtype: Any = np.int32) -> Fed:
    return Fed(np.random.default_rng(len(shape)).integers(low, high, shape).astype(dtype))


def _truth(*shape: int) -> Fed:
    return Fed(np.random.default_rng(7).random(shape) < 0.5)


X, Y = _draw(3, 4), _draw(2, 3, 4, low=-1)
POSITIVE, UNIT = _draw(3, 4, low=0.1), _draw(3, 4, low=-0.9, high=0.9)
INTS, MORE = _whole(3, 4, low=-7, high=8), _whole(3, 4, low=1, high=4)
ZEROS = Fed(np.array([[0, 1.5, 0, -2]] * 3, np.float32))
IMAGE, VOLUME = _draw(2, 7, 6, 4), _draw(1, 5, 4, 3, 2)
KERNEL = np.random.default_rng(3).normal(size=(3, 2, 4, 6)).astype(np.float32)
CORNERS = Fed(np.array([[0.1, 0.2, 0.85, 0.95], [0.9, 0.1, -0.2, 1.3]], np.float32))
HALVES = np.array([[0.5, 1.5, -0.5, -2.5]] * 3, np.float32)
CHANNELS = np.random.default_rng(5).uniform(0.5, 1.5, 4).astype(np.float32)

_OF_X = (
    "Neg", "Abs", "Sign", "Square", "Exp", "Expm1", "Reciprocal", "Inv", "Floor", "Ceil", "Sin",
    "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Erf", "Erfc", "Sigmoid", "Relu",
    "Relu6", "Elu", "Selu", "Softplus", "Softsign", "IsNan", "IsInf", "IsFinite", "Identity",
    "Snapshot", "StopGradient", "PreventGradient", "ZerosLike", "OnesLike",
)  # fmt: skip
_OF_POSITIVE = ("Log", "Log1p", "Sqrt", "Rsqrt", "Lgamma", "Digamma")
_OF_UNIT = ("Asin", "Acos", "Atanh", "Erfinv")
_OF_TWO = (
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "FloorDiv", "Maximum", "Minimum",
    "SquaredDifference", "Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual",
)  # fmt: skip
_NAMES = {
    "Relu": "features", "Relu6": "features", "Elu": "features", "Selu": "features",
    "Softplus": "features", "Softsign": "features", "Identity": "input", "Snapshot": "input",
    "StopGradient": "input", "PreventGradient": "input",
}  # fmt: skip

Case = tuple[str, dict[str, Any]]


def _elementwise() -> list[Case]:
    found: list[Case] = [(op, {_NAMES.get(op, "x"): X}) for op in _OF_X]
    found += [(op, {"x": POSITIVE}) for op in _OF_POSITIVE]
    found += [(op, {"x": UNIT}) for op in _OF_UNIT]
    found += [(op, {"x": X, "y": Y}) for op in _OF_TWO]
    found += [(op, {"x": INTS, "y": MORE}) for op in ("Div", "FloorDiv", "FloorMod", "Add", "Less")]
    found += [(op, {"x": INTS, "y": MORE}) for op in ("TruncateDiv", "TruncateMod", "Mod")]
    found += [(op, {"x": X, "y": POSITIVE}) for op in ("FloorMod", "TruncateMod")]
    found += [(op, {"x": _truth(3, 4), "y": _truth(4)}) for op in ("LogicalAnd", "LogicalOr")]
    found += [(op, {"x": INTS, "y": MORE}) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")]
    zeros = ("DivNoNan", {"x": X, "y": ZEROS}), ("MulNoNan", {"x": X, "y": ZEROS})
    mixed = [(op, {"x": ZEROS, "y": POSITIVE}) for op in ("Xdivy", "Xlogy", "Xlog1py")]
    return [
        *found, *zeros, *mixed,
        ("Pow", {"x": POSITIVE, "y": X}),
        ("Pow", {"x": INTS, "y": MORE}),
        ("Round", {"x": Fed(HALVES)}),
        ("Rint", {"x": Fed(HALVES)}),
        ("Acosh", {"x": _draw(3, 4, low=1.1)}),
        ("Ndtri", {"x": _draw(3, 4, low=0.1, high=0.9)}),
        *(
            (name, {"x": _draw(3, 4, low=0.1, high=9.0)})
            for name in (
                *("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselK0", "BesselK0e"),
                *("BesselK1", "BesselK1e", "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"),
                *("Expint", "Spence", "Dawsn", "FresnelSin", "FresnelCos"),
            )
        ),
        ("Igamma", {"a": POSITIVE, "x": _draw(3, 4, low=0.1, high=9.0)}),
        ("Igammac", {"a": POSITIVE, "x": _draw(3, 4, low=0.1, high=9.0)}),
        ("Zeta", {"x": _draw(3, 4, low=1.5, high=9.0), "q": POSITIVE}),
        ("LogicalNot", {"x": _truth(3)}),
        ("Invert", {"x": INTS}),
        ("AddN", {"inputs": [X, POSITIVE, UNIT]}),
        ("AccumulateNV2", {"inputs": [X, POSITIVE], "shape": [3, 4]}),
        ("LeakyRelu", {"features": X}),
        ("LeakyRelu", {"features": X, "alpha": 0.01}),
        ("Cast", {"x": X, "DstT": np.int32}),
        ("Cast", {"x": INTS, "DstT": np.float32}),
        ("Cast", {"x": _truth(3), "DstT": np.float64}),
        ("ClipByValue", {"t": X, "clip_value_min": -0.5, "clip_value_max": 0.25}),
        ("Select", {"condition": _truth(3, 4), "x": X, "y": POSITIVE}),
        ("Select", {"condition": _truth(3), "x": X, "y": POSITIVE}),
        ("SelectV2", {"condition": _truth(3, 1), "t": X, "e": POSITIVE}),
        ("IdentityN", {"input": [X, INTS]}),
        ("CheckNumerics", {"tensor": X, "message": "no"}),
        ("CheckNumericsV2", {"tensor": X, "message": "no"}),
        ("EnsureShape", {"input": X, "shape": [3, 4]}),
        ("Print", {"input": X, "data": [X], "first_n": 0}),
        ("GuaranteeConst", {"input": X}),
        ("DeepCopy", {"x": X}),
        ("Atan2", {"y": X, "x": POSITIVE}),
        ("Atan2", {"y": X, "x": ZEROS}),
        ("ApproximateEqual", {"x": X, "y": Fed(X.array + 0.125), "tolerance": 0.1}),
        ("ApproximateEqual", {"x": X, "y": Fed(X.array + 0.0625), "tolerance": 0.1}),
        ("Bucketize", {"input": X, "boundaries": [-1.0, 0.1, 0.5]}),
        ("Bucketize", {"input": INTS, "boundaries": [-2.0, 0.0, 3.0]}),
        ("FakeQuantWithMinMaxArgs", {"inputs": X, "min": -1.0, "max": 1.5, "num_bits": 4}),
        ("FakeQuantWithMinMaxVars", {"inputs": X, "min": -0.5, "max": 1.0, "narrow_range": True}),
        ("FakeQuantWithMinMaxVarsPerChannel", {"inputs": X, "min": -CHANNELS, "max": CHANNELS}),
        ("QuantizeAndDequantizeV2", {"input": X, "input_min": 0.0, "input_max": 0.0}),
        (
            "QuantizeAndDequantizeV4",
            {
                "input": X, "input_min": -CHANNELS, "input_max": CHANNELS, "num_bits": 4,
                "narrow_range": True, "axis": 1, "round_mode": "HALF_UP",
            },
        ),
        (
            "QuantizeAndDequantizeV3",
            {
                "input": X, "input_min": -0.5, "input_max": 1.0, "num_bits": 5,
                "signed_input": False, "range_given": True,
            },
        ),
        ("PlaceholderWithDefault", {"input": X, "shape": [3, 4]}),
    ]  # fmt: skip


def _shapes() -> list[Case]:
    strided = {"begin": [0, 0, 0], "end": [2, 3, 4], "strides": [1, 1, 1], "input": Y}
    blocks = {"block_shape": [2, 3], "paddings": [[1, 0], [0, 0]], "input": _draw(2, 5, 6, 3)}
    return [
        ("Shape", {"input": X}),
        ("ShapeN", {"input": [X, Y]}),
        ("Rank", {"input": Y}),
        ("Size", {"input": Y, "out_type": np.int64}),
        ("Fill", {"dims": [2, 3], "value": _draw()}),
        ("Fill", {"dims": [2, 3], "value": 0.1}),
        ("Range", {"start": 1, "limit": 10, "delta": 3}),
        ("Range", {"start": 1.0, "limit": -1.0, "delta": -0.25}),
        ("LinSpace", {"start": 0.0, "stop": 1.0, "num": 7}),
        ("Reshape", {"tensor": Y, "shape": [4, -1]}),
        ("ExpandDims", {"input": X, "axis": -1}),
        ("Squeeze", {"input": _draw(1, 3, 1, 2)}),
        ("Squeeze", {"input": _draw(1, 3, 1, 2), "axis": [-2]}),
        ("Transpose", {"x": Y, "perm": [2, 0, 1]}),
        ("BroadcastTo", {"input": _draw(3, 1), "shape": [2, 3, 4]}),
        ("Slice", {"input": Y, "begin": [0, 1, 1], "size": [2, -1, 2]}),
        ("StridedSlice", strided),
        ("StridedSlice", {**strided, "begin": [0, -2, 3], "end": [2, 3, 0], "strides": [1, 1, -2]}),
        ("StridedSlice", {**strided, "begin_mask": 4, "end_mask": 4, "strides": [1, 2, -1]}),
        ("StridedSlice", {**strided, "begin": [-1, 2, 0], "shrink_axis_mask": 3}),
        ("StridedSlice", {**strided, "begin": [1, 0, 1], "ellipsis_mask": 2,
                          "shrink_axis_mask": 1}),
        ("StridedSlice", {**strided, "new_axis_mask": 2, "shrink_axis_mask": 1}),
        ("StridedSlice", {**strided, "begin": [0, 9, -9], "end": [5, 9, 9]}),
        ("StridedSlice", {"input": Y, "begin": [-1], "end": [0], "strides": [1],
                          "shrink_axis_mask": 1}),
        ("StridedSlice", {"input": Y, "begin": [0, 0], "end": [0, 1], "strides": [1, 1],
                          "ellipsis_mask": 1, "new_axis_mask": 2}),
        ("Split", {"axis": -1, "value": Y, "num_split": 2}),
        ("SplitV", {"value": Y, "size_splits": [1, -1, 1], "axis": 2, "num_split": 3}),
        ("Unpack", {"value": Y, "num": 3, "axis": -2}),
        ("Pack", {"values": [X, POSITIVE], "axis": -1}),
        ("ConcatV2", {"values": [X, POSITIVE], "axis": 1}),
        ("ConcatV2", {"values": [X, _draw(1, 4)], "axis": -2}),
        ("Concat", {"concat_dim": 0, "values": [X, POSITIVE]}),
        ("Tile", {"input": X, "multiples": [2, 3]}),
        ("Pad", {"input": X, "paddings": [[1, 0], [2, 1]]}),
        ("PadV2", {"input": X, "paddings": [[1, 0], [2, 1]], "constant_values": 0.5}),
        ("MirrorPad", {"input": X, "paddings": [[1, 2], [0, 3]], "mode": "REFLECT"}),
        ("MirrorPad", {"input": X, "paddings": [[1, 3], [0, 4]], "mode": "SYMMETRIC"}),
        ("ReverseV2", {"tensor": Y, "axis": [-1, 0]}),
        ("DepthToSpace", {"input": _draw(1, 2, 3, 8), "block_size": 2}),
        ("SpaceToDepth", {"input": _draw(1, 4, 6, 3), "block_size": 2}),
        ("SpaceToBatchND", blocks),
        ("BatchToSpaceND", {"input": _draw(6, 2, 3, 2), "block_shape": [3], "crops": [[1, 2]]}),
        ("SpaceToBatch", {"input": _draw(2, 5, 6, 3), "paddings": [[1, 0], [0, 0]],
                          "block_size": 2}),
        ("BatchToSpace", {"input": _draw(8, 2, 3, 2), "crops": [[1, 0], [0, 1]],
                          "block_size": 2}),
        ("Reverse", {"tensor": Y, "dims": [True, False, True]}),
        ("ParallelConcat", {"values": [_draw(1, 4), _draw(1, 4, low=0)], "shape": [2, 4]}),
        ("BroadcastArgs", {"s0": [2, 1, 3], "s1": [4, 1]}),
        ("InvertPermutation", {"x": [2, 0, 1]}),
        ("DynamicStitch", {"indices": [[0, 1, 2], 1], "data": [[5, 6, 7], 8]}),
    ]  # fmt: skip


def _indexing() -> list[Case]:
    places = Fed(np.array([[0, 2], [1, 0]], np.int32))
    square = Fed(np.array([[4, 1, 0.5], [1, 3, 0], [0.5, 0, 2]], np.float32))
    tilted = Fed(np.array([[4, 1, 0.5], [2, 3, 0], [0.5, -1, 2]], np.float32))
    chosen = {
        "data": X,
        "indices": _whole(4, high=3),
        "segment_ids": np.array([0, 0, 2, 4], np.int32),
    }
    sparse = {
        "a_indices": Fed(np.array([[0, 2], [1, 0], [0, 2]], np.int64)), "a_values": _draw(3),
        "a_shape": np.array([3, 4], np.int64),
    }  # fmt: skip
    pixels = {"images": _draw(1, 4, 5, 2)}
    scattered = {"tensor": X, "indices": places, "updates": _draw(2)}
    return [
        ("Gather", {"params": X, "indices": _whole(2, 2, high=3)}),
        ("GatherV2", {"params": Y, "indices": _whole(2, 2, high=3), "axis": 1}),
        ("GatherV2", {"params": Y, "indices": _whole(2, 2, high=3), "axis": 1, "batch_dims": 1}),
        ("GatherNd", {"params": X, "indices": places}),
        ("OneHot", {"indices": _whole(2, 3, low=-1), "depth": 4, "on_value": 1.0,
                    "off_value": 0.0}),
        ("OneHot", {"indices": _whole(2, 3), "depth": 5, "on_value": 3, "off_value": -1,
                    "axis": 0}),
        ("ScatterNd", {"indices": places, "updates": _draw(2, 3), "shape": [2, 3, 3]}),
        *((f"TensorScatter{kind}", scattered) for kind in ("Update", "Add", "Sub", "Max", "Min")),
        ("ScatterNdNonAliasingAdd", {"input": X, "indices": places, "updates": _draw(2)}),
        ("ReverseSequence", {"input": Y, "seq_lengths": Fed(np.array([3, 1], np.int32)),
                             "seq_dim": 1, "batch_dim": 0}),
        ("MatrixDiag", {"diagonal": X}),
        ("MatrixDiagPart", {"input": Y}),
        ("MatrixBandPart", {"input": Y, "num_lower": 1, "num_upper": 0}),
        ("MatrixBandPart", {"input": Y, "num_lower": -1, "num_upper": 1}),
        ("MatrixDiagV2", {"diagonal": X, "k": 0, "num_rows": -1, "num_cols": -1,
                          "padding_value": np.float32(0)}),
        ("MatrixDiagV3", {"diagonal": X, "k": 0, "num_rows": -1, "num_cols": -1,
                          "padding_value": np.float32(0)}),
        ("MatrixDiagPartV2", {"input": Y, "k": 0, "padding_value": np.float32(1)}),
        ("MatrixDiagPartV3", {"input": Y, "k": 0, "padding_value": np.float32(1)}),
        ("MatrixSetDiag", {"input": square, "diagonal": _draw(3)}),
        ("MatrixSetDiagV2", {"input": square, "diagonal": _draw(3), "k": 0}),
        ("MatrixSetDiagV3", {"input": square, "diagonal": _draw(3), "k": 0}),
        ("Diag", {"diagonal": _draw(4)}),
        ("DiagPart", {"input": _draw(4, 4)}),
        ("Roll", {"input": Y, "shift": np.array([1, -2, 2], np.int32),
                  "axis": np.array([0, -1, 2], np.int32)}),
        ("Roll", {"input": X, "shift": 2, "axis": 1}),
        ("UnsortedSegmentSum", {"data": X, "segment_ids": _whole(3, high=4), "num_segments": 5}),
        ("UnsortedSegmentProd", {"data": X, "segment_ids": _whole(3, high=4), "num_segments": 5}),
        *(
            (f"UnsortedSegment{kind}", {"data": X, "segment_ids": np.array([1, 0, 1], np.int32),
                                        "num_segments": 2})
            for kind in ("Max", "Min")
        ),
        *(
            (f"UnsortedSegment{kind}", {"data": data, "segment_ids": _whole(3, high=4),
                                        "num_segments": 5})
            for kind in ("Max", "Min")
            for data in (X, np.array([[3, -4], [5, 6], [0, 2]], np.int32))
        ),
        ("UnsortedSegmentSum", {"data": Y, "segment_ids": _whole(2, 3, high=4),
                                "num_segments": 5}),
        *(
            (f"Segment{kind}", {"data": Y, "segment_ids": np.array([0, 1], np.int32)})
            for kind in ("Sum", "Mean", "Prod", "Max", "Min")
        ),
        ("SegmentMean", {"data": X, "segment_ids": np.array([0, 0, 2], np.int64)}),
        *((f"SparseSegment{kind}", chosen) for kind in ("Sum", "Mean", "SqrtN")),
        *(
            (f"SparseSegment{kind}WithNumSegments", {**chosen, "num_segments": 6})
            for kind in ("Sum", "Mean", "SqrtN")
        ),
        ("Bincount", {"arr": _whole(3, 4), "size": 5, "weights": np.zeros(0, np.float32)}),
        ("Bincount", {"arr": _whole(3, 4), "size": 6, "weights": X}),
        ("DenseBincount", {"input": _whole(7), "size": 5, "weights": np.zeros(0, np.int32)}),
        ("MatrixSolve", {"matrix": square, "rhs": _draw(3, 2)}),
        ("MatrixSolve", {"matrix": tilted, "rhs": _draw(3, 2), "adjoint": True}),
        ("MatrixTriangularSolve", {"matrix": tilted, "rhs": _draw(3, 2)}),
        ("TridiagonalSolve", {"diagonals": tilted, "rhs": _draw(3, 2)}),
        ("BandedTriangularSolve", {"matrix": _draw(2, 3, low=0.5, high=2.0), "rhs": _draw(3, 2)}),
        ("MatrixTriangularSolve", {"matrix": tilted, "rhs": _draw(3, 2), "lower": False}),
        ("MatrixTriangularSolve", {"matrix": tilted, "rhs": _draw(3, 2), "adjoint": True}),
        *(
            ("SparseTensorDenseMatMul", {**sparse, "b": b, "adjoint_b": adjoint})
            for b, adjoint in ((_draw(4, 2), False), (_draw(2, 4), True))
        ),
        ("SparseTensorDenseMatMul", {**sparse, "b": X, "adjoint_a": True}),
        ("SparseToDense", {"sparse_indices": _whole(3, high=5), "output_shape": [5],
                           "sparse_values": 2.5, "default_value": -1.0,
                           "validate_indices": False}),
        ("SparseToDense", {"sparse_indices": places, "output_shape": [2, 3],
                           "sparse_values": _draw(2), "default_value": 0.0,
                           "validate_indices": False}),
        ("LogMatrixDeterminant", {"input": square}),
        ("ExtractImagePatches", {"images": IMAGE, "ksizes": [1, 3, 2, 1], "strides": [1, 2, 1, 1],
                                 "rates": [1, 1, 2, 1], "padding": "SAME"}),
        ("ExtractImagePatches", {"images": IMAGE, "ksizes": [1, 2, 3, 1], "strides": [1, 1, 2, 1],
                                 "rates": [1, 2, 1, 1], "padding": "VALID"}),
        ("ExtractVolumePatches", {"input": VOLUME, "ksizes": [1, 2, 1, 3, 1],
                                  "strides": [1, 2, 1, 1, 1], "padding": "SAME"}),
        *(
            ("MaxPoolWithArgmax", {"input": IMAGE, "ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1],
                                   "padding": padding, "include_batch_in_index": padding == "SAME",
                                   "Targmax": kind})
            for padding, kind in (("SAME", np.int32), ("VALID", np.int64))
        ),
        ("CropAndResize", {"image": IMAGE, "boxes": CORNERS, "box_ind": [1, 0], "crop_size": [3, 4],
                           "extrapolation_value": 0.5}),
        ("CropAndResize", {"image": IMAGE, "boxes": CORNERS, "box_ind": [1, 0], "crop_size": [3, 2],
                           "method": "nearest"}),
        ("AdjustContrastv2", {"images": IMAGE, "contrast_factor": 1.5}),
        ("AdjustContrastv2", {"images": Y, "contrast_factor": _draw()}),
        ("CumulativeLogsumexp", {"x": Y, "axis": 1}),
        ("CumulativeLogsumexp", {"x": Y, "axis": -1, "reverse": True}),
        ("Polygamma", {"a": np.float32(2), "x": POSITIVE}),
        ("MatrixInverse", {"input": square}),
        ("MatrixDeterminant", {"input": square}),
        ("Cholesky", {"input": square}),
        ("Cross", {"a": _draw(2, 3), "b": _draw(4, 3, low=0).array[:2]}),
        ("ResizeBilinear", {**pixels, "size": [7, 3]}),
        ("ResizeBilinear", {**pixels, "size": [8, 10], "half_pixel_centers": True}),
        ("ResizeBilinear", {**pixels, "size": [7, 9], "align_corners": True}),
        ("ResizeNearestNeighbor", {**pixels, "size": [8, 10]}),
        ("ResizeNearestNeighbor", {**pixels, "size": [8, 10], "half_pixel_centers": True}),
        ("ResizeNearestNeighbor", {**pixels, "size": [7, 9], "align_corners": True}),
    ]  # fmt: skip


def _reductions() -> list[Case]:
    found: list[Case] = [
        (op, {"input": Y, "axis": axes, "keep_dims": keep})
        for op in ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm")
        for axes, keep in (([0, -1], False), (1, True), ([], False))
    ]
    found += [(op, {"input": INTS, "axis": [1]}) for op in ("Sum", "Mean", "Max")]
    found += [(op, {"input": _truth(3, 4), "axis": 0}) for op in ("All", "Any")]
    return [
        *found,
        ("ArgMax", {"input": Y, "dimension": 1}),
        ("ArgMin", {"input": Y, "dimension": -1, "output_type": np.int32}),
        ("Cumsum", {"x": Y, "axis": 1}),
        ("Cumsum", {"x": Y, "axis": -1, "exclusive": True, "reverse": True}),
        ("Cumprod", {"x": Y, "axis": 0, "reverse": True}),
        ("TopKV2", {"input": X, "k": 1, "sorted": False}),
        ("TopKV2", {"input": X, "k": 3}),
        ("NthElement", {"input": Y, "n": 1}),
        ("NthElement", {"input": Y, "n": 0, "reverse": True}),
        ("InTopK", {"predictions": X, "targets": _whole(3, high=4), "k": 2}),
        ("InTopKV2", {"predictions": X, "targets": _whole(3, high=4), "k": 1}),
    ]


def _layers() -> list[Case]:
    flat = {"a": X, "b": _draw(4, 2)}
    windows = {"strides": [1, 2, 1, 1], "padding": "SAME"}
    image = {"input": IMAGE, "filter": KERNEL}
    back = {"filter": KERNEL, "strides": [1, 2, 2, 1], "padding": "SAME"}
    norm = {
        "x": IMAGE, "scale": CHANNELS, "offset": CHANNELS - 1, "mean": CHANNELS * 2,
        "variance": CHANNELS, "is_training": False,
    }  # fmt: skip
    pool = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1]}
    deep = {"strides": [1, 2, 1, 1, 1], "padding": "SAME"}
    kernel3 = np.random.default_rng(6).normal(size=(2, 3, 1, 2, 3)).astype(np.float32)
    cube = {"ksize": [1, 2, 2, 2, 1], **deep}
    labels = Fed(np.full((3, 4), 0.25, np.float32))
    return [
        ("MatMul", flat),
        ("MatMul", {"a": X, "b": _draw(2, 4), "transpose_b": True}),
        ("MatMul", {"a": _draw(4, 3), "b": _draw(2, 4), "transpose_a": True, "transpose_b": True}),
        ("BatchMatMul", {"x": Y, "y": _draw(2, 5, 4), "adj_y": True}),
        ("BatchMatMulV2", {"x": Y, "y": _draw(4, 2)}),
        ("BatchMatMulV3", {"x": Y, "y": _draw(1, 4, 2), "Tout": np.float32}),
        ("Einsum", {"inputs": [Y, X], "equation": "bij,kj->bik"}),
        ("BiasAdd", {"value": X, "bias": CHANNELS}),
        ("BiasAdd", {"value": _draw(2, 4, 3, 3), "bias": CHANNELS, "data_format": "NCHW"}),
        ("BiasAddV1", {"value": IMAGE, "bias": CHANNELS}),
        ("Conv2D", {**image, **windows}),
        ("Conv2D", {**image, "strides": [1, 1, 1, 1], "padding": "VALID",
                    "dilations": [1, 2, 3, 1]}),
        ("Conv2D", {**image, "strides": [1, 1, 1, 1], "padding": "EXPLICIT",
                    "explicit_paddings": [0, 0, 2, 1, 0, 3, 0, 0]}),
        ("Conv3D", {"input": VOLUME, "filter": kernel3, **deep}),
        ("DepthwiseConv2dNative", {**image, "strides": [1, 2, 2, 1], "padding": "SAME"}),
        ("Conv2DBackpropInput", {**back, "input_sizes": [1, 7, 6, 4],
                                 "out_backprop": _draw(1, 4, 3, 6)}),
        ("Conv2DBackpropInput", {**back, "padding": "VALID", "input_sizes": [1, 8, 7, 4],
                                 "out_backprop": _draw(1, 3, 3, 6)}),
        ("Conv3DBackpropInputV2", {"filter": kernel3, "input_sizes": [1, 5, 4, 3, 2],
                                   "out_backprop": _draw(1, 3, 4, 3, 3), **deep}),
        ("MaxPool", {"input": IMAGE, **pool, "padding": "SAME"}),
        ("MaxPoolV2", {"input": IMAGE, **pool, "padding": "VALID"}),
        ("AvgPool", {"value": IMAGE, **pool, "padding": "SAME"}),
        ("MaxPool3D", {"input": VOLUME, **cube}),
        ("AvgPool3D", {"input": VOLUME, **cube}),
        ("FusedBatchNorm", norm),
        ("FusedBatchNormV2", {**norm}),
        ("FusedBatchNormV3", {**norm, "epsilon": 0.01}),
        ("FusedBatchNormV3", {**norm, "is_training": True, "mean": CHANNELS[:0],
                              "variance": CHANNELS[:0]}),
        ("LRN", {"input": IMAGE, "depth_radius": 1, "alpha": 0.3, "bias": 2.0}),
        ("Softmax", {"logits": Y.array.reshape(6, 4)}),
        ("Softmax", {"logits": X}),
        ("LogSoftmax", {"logits": X}),
        ("L2Loss", {"t": Y}),
        ("SoftmaxCrossEntropyWithLogits", {"features": X, "labels": labels}),
        ("SparseSoftmaxCrossEntropyWithLogits", {"features": X, "labels": _whole(3, high=4)}),
    ]  # fmt: skip


def _gradients() -> list[Case]:
    second = _draw(4, 3)
    flipped = Fed(np.ascontiguousarray(second.array.T))
    found: list[Case] = [
        (f"{name}Grad", {"gradients": X, "features": flipped})
        for name in ("Relu", "Relu6", "LeakyRelu", "Softplus", "Softsign")
    ]
    found += [(f"{name}Grad", {"gradients": X, "outputs": flipped}) for name in ("Elu", "Selu")]
    found += [
        (f"{name}Grad", {"y": POSITIVE, "dy": X})
        for name in ("Sigmoid", "Tanh", "Sqrt", "Rsqrt", "Reciprocal", "Inv")
    ]
    return [
        *found,
        ("BiasAddGrad", {"out_backprop": IMAGE}),
        ("BiasAddGrad", {"out_backprop": IMAGE, "data_format": "NCHW"}),
        ("BroadcastGradientArgs", {"s0": [2, 3, 1], "s1": [3, 4]}),
        ("ConcatOffset", {"concat_dim": 1, "shape": [[2, 3], [2, 1], [2, 4]]}),
    ]


CASES = [*_gradients(), *_elementwise(), *_shapes(), *_indexing(), *_reductions(), *_layers()]
