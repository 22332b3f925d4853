"""Which element types ONNX Runtime computes an operator in: its CPU provider's kernels at opset 21.

ONNX allows more. Where a kernel is missing, a narrower type is carried in a wider one (`carrier`);
float64 has none wider, so such a call is not supported. Read from the runtime's own registry
(`get_all_opkernel_def`) at version 1.31.1, less GRU and LSTM in float64, which are registered and
refuse to run.
"""

from __future__ import annotations

from irlang.lower.value import Unsupported

OPSET = 21
IR_VERSION = 10  # that of opset 21; any runtime since 2024 reads it

_EVERY = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool"
_ARITHMETIC = "f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"
_REDUCED = "f32 f64 i32 i64"
_REAL = "f32 f64"
_GROUPS = {
    _EVERY: "Concat Flatten Gather GatherElements GatherND Identity Reshape Slice Split Transpose "
    "Squeeze Unsqueeze",
    _ARITHMETIC: "Abs Add Div Mul Sub Greater GreaterOrEqual Less LessOrEqual",
    f"{_ARITHMETIC} bool": "Equal Tile",
    f"{_ARITHMETIC} f16 bf16": "Sign",
    f"{_ARITHMETIC} f16": "Mod Shrink",
    f"{_ARITHMETIC} f16 bool": "Expand",
    "f32 f64 f16 i8 i32 i64 u8 u32 u64": "Clip Max Min",
    "f32 f64 i8 i16 i32 i64": "Neg",
    "f32 f64 i8 i32 i64 u8": "ArgMax ArgMin",
    "f32 f64 i8 i16 i32 i64 u8": "TopK",
    "f32 f64 i8 i32 i64 u8 u32": "Where",
    "f32 f64 i8 i32 i64 u8 bool": "ReduceMax ReduceMin",
    "f32 f64 i8 i32 i64 u8 u32 u64 bool": "Pad",
    "f32 f64 i32 i64 u32 u64": "MatMul",
    "f32 f64 i32 i64 bool": "Trilu",
    "f32 f64 i8 i32": "Relu",
    "f32 f64 i8 u8": "DepthToSpace SpaceToDepth MaxPool",
    "f32 f64 f16 bf16": "IsInf IsNaN LayerNormalization",
    "f32 f64 f16": "Round",
    "f32 i32 i64": "OneHot",
    _REDUCED: "CumSum Einsum Pow ReduceL1 ReduceL2 ReduceLogSumExp ReduceMean ReduceProd ReduceSum "
    "ReduceSumSquare",
    _REAL: "BatchNormalization Ceil Cos Exp Floor Gemm Log LogSoftmax LpNormalization "
    "Dropout Reciprocal Sigmoid Sin Softmax Sqrt Sum Tanh",
    "f32": "Acos Acosh Asin Asinh Atan Atanh AveragePool Celu Conv ConvTranspose Cosh Elu Erf Gelu "
    "GRU LSTM Hardmax GlobalAveragePool GlobalMaxPool GroupNormalization HardSigmoid HardSwish "
    "InstanceNormalization LRN LeakyRelu LpPool Mean Mish PRelu RNN Resize Selu Sinh Softplus "
    "Softsign Tan ThresholdedRelu",
    "bool": "And Not Or Xor",
    "i8 i16 i32 i64 u8 u16 u32 u64": "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor",
    "u8 u32 u64": "BitShift",
}  # fmt: skip
KERNELS: dict[str, frozenset[str]] = {
    op: frozenset(types.split()) for types, ops in _GROUPS.items() for op in ops.split()
}

# In what a type may be carried without changing the result, best first. An operator that only
# moves elements may carry u64 as i64.
_CARRIERS = {
    "f16": ("f32",), "bf16": ("f32",), "bool": ("u8", "i32", "i64"), "i8": ("i32", "i64"),
    "i16": ("i32", "i64"), "u8": ("i32", "i64"), "u16": ("i32", "i64"), "i32": ("i64",),
    "u32": ("i64",),
}  # fmt: skip
_MOVES = frozenset({"Where", "Pad", "Expand", "Trilu", "Tile"})


def carrier(op: str, dtype: str) -> str:
    """The type in which `op` is to be computed for elements of `dtype`.

    Raises `Unsupported` where there is none.
    """
    own = KERNELS[op]
    others = ("i64",) if dtype == "u64" and op in _MOVES else _CARRIERS.get(dtype, ())
    for candidate in (dtype, *others):
        if candidate in own:
            return candidate
    raise Unsupported(f"ONNX Runtime has no {dtype} kernel of {op}")
