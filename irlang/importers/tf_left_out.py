"""TensorFlow's operators that are left out, and why."""

from __future__ import annotations

_CONTROL = "control flow is not supported"
_SIZE = "the size of its result depends on the values of elements"
_STRING = "strings are not numbers"
_COMPLEX = "irlang has no complex numbers"
_DRAWN = "no definition says yet what holds of what is drawn"
_QUANTIZED = "numbers of its types are not read"
_UNDEFINED = "irlang has no definition of it"
_SPARSE = "sparse tensors are not supported"

_REASONS: dict[str, tuple[str, ...]] = {
    _CONTROL: (
        "Exit", "While", "StatelessWhile", "Case", "StatelessCase", "For",
    ),
    _SIZE: (
        "Where", "Unique", "UniqueV2", "NonMaxSuppression", "NonMaxSuppressionV2",
        "NonMaxSuppressionV3", "DynamicPartition", "ListDiff",
    ),
    _STRING: (
        "StringJoin", "StringSplit", "StringToNumber", "AsString", "DecodeRaw", "ParseExample",
        "DecodeJpeg", "DecodePng", "ReadFile", "LookupTableFindV2",
    ),
    _COMPLEX: ("FFT", "FFT2D", "IFFT", "RFFT", "IRFFT", "Complex", "Real", "Imag", "ComplexAbs"),
    _DRAWN: (
        "ParameterizedTruncatedNormal", "RandomShuffle", "RandomGamma", "RandomPoissonV2",
    ),
    _QUANTIZED: ("QuantizeV2", "Dequantize", "QuantizedConv2D", "QuantizedMatMul"),
    _UNDEFINED: (
        "Betainc", "NextAfter", "Qr", "Svd", "SelfAdjointEigV2", "Eig",
        "Lu", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot", "ResizeArea",
        "ResizeBicubic", "EditDistance", "AdjustHue", "AdjustSaturation",
    ),
    _SPARSE: ("SparseReduceSum", "SparseSoftmax", "SparseTensorDenseAdd"),
    "the function that it calls is Python": ("PyFunc", "EagerPyFunc", "PyFuncStateless"),
    "the function that it calls is not in the file": (
        "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "If", "StatelessIf",
    ),
    "it keeps a state of its own": ("StackPopV2",),
    "the queue does not say the shapes of its elements": (
        "QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2",
    ),
}  # fmt: skip

LEFT_OUT: dict[str, str] = {name: why for why, names in _REASONS.items() for name in names}
