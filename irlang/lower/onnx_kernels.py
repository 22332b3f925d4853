"""Which element types ONNX Runtime computes an operator in: its CPU provider's kernels at opset 26.

ONNX allows more. Where a kernel is missing, a narrower type is carried in a wider one (`carrier`);
float64 has none wider, so such a call is not supported. Read from the runtime's own registry
(`get_all_opkernel_def`) at version 1.31.1, less GRU and LSTM in float64, which are registered and
refuse to run. Older releases have fewer, and read older opsets: `runtime`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from irlang.lower.value import Unsupported

OPSET = 26
# The first release of ONNX Runtime that has an opset's kernels, and the file format of its day.
# (1.15 reads opset 19 and lacks most of what that changed.)
_READ_SINCE = {
    26: ((1, 31), 13), 23: ((1, 23), 11), 21: ((1, 18), 10), 20: ((1, 17), 9), 18: ((1, 14), 8)
}  # fmt: skip
# Opsets of files from elsewhere, which passes of optimisers were written for, newest first; and the
# format of the files of their day.
_ELDER = {17: 8, 13: 7, 12: 7}
# The opset that gave an operator the meaning, the attributes or the inputs that are written here.
_MEANT_SINCE = {
    "Attention": 23, "Gelu": 20, "GroupNormalization": 21, "RoiAlign": 16, "QuantizeLinear": 13,
    "DequantizeLinear": 13,
}  # fmt: skip
AXES_NAMED = 18  # the opset since which Pad and Resize may name axes
_ALONG_AN_AXIS = 13  # the opset since which Softmax and its like do not take all axes behind
_OF_ONE_AXIS = frozenset({"Hardmax", "LogSoftmax", "Softmax"})
_SCATTERS = ("ScatterElements", "ScatterND")
_VALUES_SINCE = {
    **{(op, "reduction", how): 18 for op in _SCATTERS for how in ("max", "min")},
    ("Pad", "mode", "wrap"): 19,
    ("Resize", "coordinate_transformation_mode", "half_pixel_symmetric"): 19,
}

# What has kernels at that opset, and none later, or none at one of those that are written.
_GONE = frozenset(
    {
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomUniform"),
        *("GlobalLpPool", "MaxRoiPool", "RoiAlign"),
    }
)
# Types that ONNX allows of an operator in opsets before the first that has kernels for them. (Found
# with a session of every operator in every type at 18 and 17.)
_TYPED_SINCE = {"IsNaN": ("bf16", 20)}
_GONE_AT = {23: frozenset({"LpNormalization", "QuantizeLinear"})}
_BEFORE = 21
# The opset of PyTorch's exporter. Passes name the opsets that they take, and lag behind; kernels
# are there for the types that networks are made of.
_USUAL = 18
_EXPANDED = frozenset({"f32"})  # in which all has kernels that an operator is made of
_WIDENED = frozenset({"f16"})  # what ONNX Runtime itself converts where there is no kernel
PLAIN = frozenset({"f32", "f16", "i32", "i64", "bool"})

_EVERY = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool"
_ARITHMETIC = "f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"
_REDUCED = "f32 f64 i32 i64"
_REAL = "f32 f64"
_GROUPS = {
    _EVERY: "Concat Flatten Gather GatherElements GatherND Identity Reshape Slice Split Transpose "
    "Squeeze TensorScatter Unsqueeze",
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
    "f32 f64 i32 i64 u32 u64": "CumProd MatMul",
    "f32 f64 i32 i64 bool": "Trilu",
    "f32 f64 i8 i32": "Relu",
    "f32 f64 i8 u8": "DepthToSpace SpaceToDepth MaxPool",
    "f32 f64 f16 bf16": "IsInf IsNaN LayerNormalization",
    "f32 f64 f16": "Round",
    "f32 i32 i64": "OneHot",
    "f32 f16": "Attention RMSNormalization RotaryEmbedding",
    _REDUCED: "CumSum Einsum Pow ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean "
    "ReduceProd ReduceSum ReduceSumSquare",
    _REAL: "BatchNormalization Ceil Cos DeformConv Exp Floor Gemm Log LogSoftmax LpNormalization "
    "Dropout Reciprocal Sigmoid Sin Softmax Sqrt Sum Tanh",
    "f32": "Acos Acosh Asin Asinh Atan Atanh AveragePool Celu Conv ConvTranspose Cosh Elu Erf "
    "Gelu Det GRU LSTM Hardmax GlobalAveragePool GlobalMaxPool GlobalLpPool "
    "GroupNormalization HardSigmoid HardSwish InstanceNormalization LRN LeakyRelu LpPool "
    "MaxUnpool Mean MeanVarianceNormalization Mish PRelu RNN Resize Selu Sinh Softplus "
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

# What the usual opset has no kernels for in releases before the one that is named; and what it has
# more than the newest, as a release expands these there for any type. Found by making a session of
# every operator in every type, as of opset 18, on 1.15.0, 1.17.0, 1.20.1, 1.23.2 and 1.31.1.
_ORDER = "Equal Greater GreaterOrEqual Less LessOrEqual"
_LATER: dict[tuple[int, int], dict[str, str]] = {
    (1, 20): {
        "ArgMax": "i64", "ArgMin": "i8 i64 u8", "ReduceMean": "i64", "ReduceProd": "f64",
        "Trilu": "bool",
    },
    (1, 23): {
        **dict.fromkeys((*_ORDER.split(), "Add", "Sub", "Mul", "Div"), "i8 i16 u8 u16 u32 u64"),
        "TopK": "i8 i16 u8", "DepthToSpace": "u8", "Neg": "i16",
    },
    (1, 31): {
        "Cos": "f64", "DepthToSpace": "i8", "LayerNormalization": "bf16", "Max": "i8 u8",
        "Min": "i8 u8", "SpaceToDepth": "i8 u8", "Trilu": "i32", "Where": "i8 u32",
    },
}  # fmt: skip
_FOR_ANY: dict[tuple[int, int], dict[str, str]] = {
    (1, 14): {"LeakyRelu": "f64", "PRelu": "f64 i32 i64", "Resize": "i8 i32 u8"},
    (1, 17): {
        "Relu": "i64",
        **dict.fromkeys(
            ("Elu", "HardSigmoid", "Mish", "Selu", "Softplus", "Softsign", "ThresholdedRelu"), "f64"
        ),
    },
}  # fmt: skip
# The first release whose Python interface takes bfloat16 (`ortvalue_from_numpy_with_onnx_type`).
_FED_SINCE = (1, 20)
_UNFED = {"bf16": "ONNX Runtime takes no bfloat16 from Python before 1.20"}


class Gone(Unsupported):
    """An operator that an older opset has kernels for."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a release of ONNX Runtime, or another, reads, and the element types of its kernels.

    lacks: element types that it does not compute in at all, with the reason. holds_nothing: whether
    a model may hold an array without elements. older: an older opset for what this one lacks.
    usual: the opset that most files have, which passes of optimisers are written for. elder: those
    of older files. declares: whether a file says the shapes of its results. loosens:
    whether there are files that do not say those of their inputs. release: that of
    ONNX Runtime, if it is one, which has operators of its own.
    """

    opset: int = OPSET
    ir_version: int = _READ_SINCE[OPSET][1]
    kernels: Mapping[str, frozenset[str]] = field(default_factory=lambda: KERNELS)
    lacks: Mapping[str, str] = field(default_factory=dict)
    name: str = "ONNX Runtime"
    holds_nothing: bool = True
    older: Runtime | None = None
    usual: Runtime | None = None
    elder: tuple[Runtime, ...] = ()
    declares: bool = True
    loosens: bool = True
    release: tuple[int, ...] | None = None

    def contributes(self, since: tuple[int, ...]) -> bool:
        """Whether it has operators beside ONNX's that stand in ONNX Runtime since a release."""
        return self.release is not None and since <= (self.release or since)

    def require(self, op: str, attributes: Mapping[str, Any]) -> None:
        """Raises `Unsupported` for an operator or an attribute that the opset does not have."""
        gone = _GONE | _GONE_AT.get(self.opset, frozenset())
        if op in gone and self.older is not None:
            raise Gone(f"{self.name} has no kernel of {op} at opset {self.opset}")
        if self.opset == OPSET:
            return
        known = _schema(op, self.opset)
        given = {key for key, value in attributes.items() if value != []}
        values = [since for (o, key, value), since in _VALUES_SINCE.items()
                  if o == op and attributes.get(key) == value]  # fmt: skip
        since = max([_MEANT_SINCE.get(op, 0), *values])
        if known is None or since > self.opset or not given <= set(known.attributes):
            raise Unsupported(f"opset {self.opset} has no such {op}")

    @property
    def is_elder(self) -> bool:
        """Whether its opset is one of older files."""
        return self.opset in _ELDER

    def spans_axes(self, op: str) -> bool:
        """Whether an operator along an axis takes all those behind it with that, in this opset."""
        return op in _OF_ONE_AXIS and self.opset < _ALONG_AN_AXIS

    def carrier(self, op: str, dtype: str) -> str:
        """The type in which `op` is to be computed for elements of `dtype`.

        Raises `Unsupported` where there is none. What is not in the table has its kernels.
        """
        if op not in self.kernels:
            return dtype
        own = self.kernels[op]
        others = ("i64",) if dtype == "u64" and op in _MOVES else _CARRIERS.get(dtype, ())
        for candidate in (dtype, *others):
            if candidate in own:
                return candidate
        raise Unsupported(f"{self.name} has no {dtype} kernel of {op}")


def with_elder(
    newest: Runtime, kernels: Callable[[int], Mapping[str, frozenset[str]]] | None = None
) -> Runtime:
    """The same, with the opsets of older files.

    kernels: those at an opset; without them it has those of the newest, in the types that the opset
    allows.
    """

    def allowed(opset: int) -> dict[str, frozenset[str]]:
        schemas = {op: _schema(op, opset) for op in newest.kernels}
        return {
            op: newest.kernels[op] & _types(known) if known is not None else frozenset()
            for op, known in schemas.items()
        }

    def lacks(opset: int) -> dict[str, str]:
        """Types that an opset knows no conversion of are none of its own."""
        there = _types(_schema("Cast", opset))
        missing = {dtype for dtype in _NAMES.values() if dtype not in there}
        return {**dict.fromkeys(missing, f"opset {opset} has no such type"), **newest.lacks}

    elder = tuple(
        replace(
            newest, opset=opset, ir_version=version, kernels=(kernels or allowed)(opset),
            older=None, usual=None, lacks=lacks(opset),
        )
        for opset, version in _ELDER.items()
    )  # fmt: skip
    return replace(newest, elder=elder)


@dataclass(frozen=True, slots=True)
class Form:
    """How an older opset has an operator. moved: by place, the inputs that are attributes there,
    and whether these are lists. unsaid: attributes that it has not, with the value that says
    nothing. inputs: how many it takes at most.
    """

    moved: Mapping[int, tuple[str, bool]]
    unsaid: Mapping[str, Any]
    inputs: int


@cache
def older_form(op: str, opset: int) -> Form | None:
    """The form of an operator in an opset; None where that has no such operator."""
    from onnx import defs, helper

    new, old = _schema(op, OPSET), _schema(op, opset)
    if new is None or old is None:
        return None
    moved = {
        place: (one.name, old.attributes[one.name].type == defs.OpSchema.AttrType.INTS)
        for place, one in enumerate(new.inputs)
        if place >= len(old.inputs) and one.name in old.attributes
    }
    unsaid = {
        name: helper.get_attribute_value(own.default_value)
        for name, own in new.attributes.items()
        if name not in old.attributes and own.default_value.type
    }
    return Form(moved, unsaid, old.max_input)


_UNCONVERTED = ("Det", "MaxUnpool")  # which OpenVINO's reader of model files does not know
# What OpenVINO's plugin for processors converts to something narrower.
_CONVERTED = {"f64": "f32", "u64": "i32", "u32": "i32", "u16": "i32"}
OPENVINO = Runtime(
    21,
    _READ_SINCE[21][1],
    kernels={
        op: frozenset() if op in _UNCONVERTED else types - frozenset(_CONVERTED)
        for op, types in KERNELS.items()
    },
    lacks={dtype: f"OpenVINO computes {dtype} in {in_}" for dtype, in_ in _CONVERTED.items()},
    name="OpenVINO",
    holds_nothing=False,
)


def runtime(release: tuple[int, ...], kernels: Mapping[str, frozenset[str]]) -> Runtime:
    """That of a release; kernels: what it says it has, if it was asked."""
    read = [(o, ir) for o, (first, ir) in _READ_SINCE.items() if release >= first]
    opset, ir_version = read[0] if read else (min(_READ_SINCE), 9)
    lacks = _UNFED if release < _FED_SINCE else {}
    usual = Runtime(
        _USUAL, _READ_SINCE[_USUAL][1], _unasked(_USUAL, release), lacks, release=release
    )
    if opset == OPSET:
        found = Runtime(kernels=_narrowed(opset, kernels or KERNELS), release=release)
    else:
        own = _narrowed(opset, kernels) if kernels else _unasked(opset, release)
        found = Runtime(opset, ir_version, own, lacks, release=release)
    if opset > _BEFORE:
        older = replace(found, opset=_BEFORE, ir_version=_READ_SINCE[_BEFORE][1])
        found = replace(found, older=older)
    found = found if opset <= _USUAL else replace(found, usual=usual)
    return with_elder(found, lambda older: _unasked(older, release))


def _unasked(opset: int, release: tuple[int, ...]) -> dict[str, frozenset[str]]:
    """What a release computes at an opset that it was not asked about: the usual one, or its own
    where it cannot be (1.15), or is not, as the one beside irlang.
    """
    found = _narrowed(opset, KERNELS)
    for first, rows in _LATER.items():
        for op, types in rows.items() if release < first else ():
            found[op] -= frozenset(types.split())
    for first, rows in _FOR_ANY.items():
        for op, types in rows.items() if release >= first and opset == _USUAL else ():
            found[op] |= frozenset(types.split())
    return found


def _narrowed(opset: int, kernels: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The table of kernels, less what an opset does not allow and a release does not have."""
    nothing: frozenset[str] = frozenset()
    found = {}
    for op, types in KERNELS.items():
        known = _schema(op, opset)
        allowed = _types(known) if known is not None else nothing
        there = kernels.get(op, nothing)
        if known is not None and there is nothing and _is_composed(known):
            there = _EXPANDED
        found[op] = types & allowed & there
        dtype, since = _TYPED_SINCE.get(op, ("", 0))
        if opset < since:
            found[op] -= {dtype}
        if "f32" in found[op]:  # around whose kernel a runtime puts conversions of its own
            found[op] |= _WIDENED & allowed
    return found


@cache
def _schema(op: str, opset: int) -> Any:
    """What ONNX says of an operator as of an opset; None where it has none."""
    from onnx import defs

    try:
        return defs.get_schema(op, opset)
    except defs.SchemaError:
        return None


def _is_composed(schema: Any) -> bool:
    """Whether ONNX says what an operator is made of, which a runtime without a kernel expands."""
    return bool(schema.has_function or schema.has_context_dependent_function)


def _types(schema: Any) -> frozenset[str]:
    texts = {text for row in schema.type_constraints for text in row.allowed_type_strs}
    return frozenset(_NAMES[text] for text in texts if text in _NAMES)


def read_registry(
    registry: Sequence[Sequence[Any]], release: tuple[int, ...]
) -> dict[str, frozenset[str]]:
    """The element types of every operator at the opset that a release is given.

    registry: name, first and last opset, and the constraints on types of every kernel, as the
    release tells them.
    """
    opset = runtime(release, {}).opset
    found: dict[str, set[str]] = {}
    for op, first, last, constraints in registry:
        if first <= opset <= last:
            types = {text for texts in constraints.values() for text in texts}
            known = {_NAMES[text] for text in types if text in _NAMES}
            found.setdefault(op, set()).update(known)
    return {op: frozenset(types) for op, types in found.items()}


_NAMES = {
    "tensor(float)": "f32", "tensor(double)": "f64", "tensor(float16)": "f16",
    "tensor(bfloat16)": "bf16", "tensor(int8)": "i8", "tensor(int16)": "i16",
    "tensor(int32)": "i32", "tensor(int64)": "i64", "tensor(uint8)": "u8", "tensor(uint16)": "u16",
    "tensor(uint32)": "u32", "tensor(uint64)": "u64", "tensor(bool)": "bool",
}  # fmt: skip
