"""How ONNX spells operators on elements, shapes and axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import filling
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_kernels import AXES_NAMED
from irlang.lower.spelling import left_open
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
# Reductions that leave an element by itself as it is: that ONNX says of those of no axes. Of the
# others it does not say whether the element is squared, say, all the same.
_IDENTITIES = frozenset({"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin"})


def simple(op: str, **attributes: str) -> Native:
    """An operator of the inputs in their order; attributes under ONNX's names, as floats."""

    def rule(call: Onnx) -> Value:
        given = {key: float(call[name]) for key, name in attributes.items()}
        return call.build.op(op, list(call.values.values()), call.out.shape, **given)

    return Native(op, rule)


def only(op: str, **attributes: Any) -> Native:
    """The same, where attributes have the only values that the operator has."""

    def rule(call: Onnx) -> Value | None:
        if any(float(call[name]) != float(value) for name, value in attributes.items()):
            return None
        return call.build.op(op, list(call.values.values()), call.out.shape)

    return Native(op, rule)


def on_axis(op: str) -> Native:
    """An operator along one axis."""

    def rule(call: Onnx) -> Value | None:
        x = call.input("x")
        if call.build.runtime.spans_axes(op) and call.axis("axis", x.rank) != x.rank - 1:
            return None
        return call.build.op(op, [x], call.out.shape, axis=call.axis_said("axis", x.rank))

    return Native(op, rule)


def _relu(call: Onnx) -> Value | None:
    x = call.input("x")
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    if shape[1:] != (0, 0):
        return None
    if shape[0] == math.inf:
        return call.build.op("Relu", [x], x.shape)
    return _clipped(call, x, 0.0, shape[0])


def _clipped(call: Onnx, x: Value, low: float, high: float) -> Value:
    bounds = [call.build.number(low, x), call.build.number(high, x)]
    return call.build.op("Clip", [x, *bounds], x.shape)


def _clip(call: Onnx) -> Value | None:
    low, high = call["low"], call["high"]
    return _clipped(call, call.input("x"), low, high) if low <= high else None


def _gelu(call: Onnx) -> Value:
    x = call.input("x")
    return call.build.op("Gelu", [x], x.shape, approximate=call["approximate"])


def _shrink(soft: bool) -> Native:
    def rule(call: Onnx) -> Value:
        x, threshold = call.input("x"), float(call["threshold"])
        bias = threshold if soft else 0.0
        return call.build.op("Shrink", [x], x.shape, lambd=threshold, bias=bias)

    return Native("Shrink", rule)


def _modulo(call: Onnx) -> Value | None:
    """`Mod` of reals has the sign of the dividend only."""
    values = list(call.values.values())
    dividend = call["sign_of"] == "dividend"
    if DTYPES[call.out.dtype].kind == "real" and not dividend:
        return None
    return call.build.op("Mod", values, call.out.shape, fmod=int(dividend))


def _isinf(call: Onnx) -> Value:
    x = call.input("x")
    options = {"detect_negative": int(call["negative"]), "detect_positive": int(call["positive"])}
    return call.build.op("IsInf", [x], x.shape, **options)


def _where(call: Onnx) -> Value:
    return call.build.where(*(call.input(name) for name in ("condition", "a", "b")))


def _cast(call: Onnx) -> Value:
    return call.build.converted(call.input("x"), call.out.dtype)


# ---- reductions


def _reduction(op: str) -> Native:
    """Of all axes where the program names none; of no axes where it says so."""

    def rule(call: Onnx) -> Value | None:
        x, build = call.input("x"), call.build
        options = {"keepdims": int(call["keepdims"])}
        if "axes" not in call.node.attrs:
            return build.op(op, [x], call.out.shape, **options)
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes and op not in _IDENTITIES:
            return None
        which = [build.integers(axes)] if axes else []
        options |= {} if axes else {"noop_with_empty_axes": 1}
        return build.op(op, [x], call.out.shape, *which, **options)

    return Native(op, rule)


def _position(op: str) -> Native:
    def rule(call: Onnx) -> Value:
        x = call.input("x")
        carried = call.build.cast(x, call.build.runtime.carrier(op, x.dtype))
        options = {
            "axis": call.axis_said("axis", x.rank),
            "keepdims": int(call["keepdims"]),
            "select_last_index": int(call["select_last"]),
        }
        return call.build.node(op, [carried.text], [call.out], **options)[0]

    return Native(op, rule)


def _scan(op: str) -> Native:
    def rule(call: Onnx) -> Value:
        x = call.input("x")
        axis = call.build.constant(call.axis_said("axis", x.rank), "i64")
        options = {"exclusive": int(call["exclusive"]), "reverse": int(call["reverse"])}
        return call.build.op(op, [x], x.shape, axis, **options)

    return Native(op, rule)


def _top_k(call: Onnx) -> list[Value] | None:
    x = call.input("x")
    if x.dtype not in call.build.runtime.kernels.get("TopK", ()) or call["nans"] == "largest":
        return None
    count = call.build.integers([call["k"]])
    options = {"axis": call.axis_said("axis", x.rank), "largest": int(call["largest"])}
    options["sorted"] = int(call["sorted"])
    return call.build.node("TopK", [x.text, count.text], call.outputs, **options)


# ---- indexing


def _indices(call: Onnx) -> Value:
    ids = call.input("ids")
    return ids if ids.dtype in ("i32", "i64") else call.build.cast(ids, "i64")


def _embedding(call: Onnx) -> Value:
    return call.build.op("Gather", [call.input("table")], call.out.shape, _indices(call), axis=0)


def _gather(op: str) -> Native:
    """Negative positions count from the end."""

    def rule(call: Onnx) -> Value:
        x = call.input("x")
        axis = call.axis_said("axis", x.rank)
        return call.build.op(op, [x], call.out.shape, _indices(call), axis=axis)

    return Native(op, rule)


def _gather_nd(call: Onnx) -> Value | None:
    x, batch = call.input("x"), call["batch_dims"]
    if not x.rank:
        return None  # ONNX asks for one axis at least
    ids = call.build.cast(call.input("ids"), "i64")
    options = {"batch_dims": batch} if batch else {}
    return call.build.op("GatherND", [x], call.out.shape, ids, **options)


def _one_hot(call: Onnx) -> Value | None:
    """Negative positions count from the end."""
    if call["negative"] != "from_end" or call.out.dtype not in ("f32", "i64"):
        return None
    build, ids = call.build, call.build.cast(call.input("ids"), "i64")
    pair = build.constant(np.asarray([float(call["off"]), float(call["on"])]), call.out.dtype)
    depth = build.constant(call["depth"], "i64")
    axis = call.axis_said("axis", ids.rank + 1)
    return build.node("OneHot", [ids.text, depth.text, pair.text], [call.out], axis=axis)[0]


# ---- shapes


def _reshape(call: Onnx) -> Value:
    """To what is said, but for -1 beside a size of 0: ONNX has no name for both."""
    said = tuple(call["shape"])
    known = 0 in said and -1 in said and not call.node.instance.faults
    shape = call.out.shape if known else said
    zero = {"allowzero": 1} if 0 in shape else {}
    build = call.build
    return build.op("Reshape", [call.input("x")], call.out.shape, build.integers(shape), **zero)


def _reshape_kept(call: Onnx) -> Value | None:
    """As exporters write it: 0 for a size that stays, and -1 for what is left."""
    before, shape = call.input("x").shape, left_open(call)
    if shape is None:
        return None
    kept = [0 if before[n : n + 1] == (size,) else size for n, size in enumerate(shape)]
    build = call.build
    return build.op("Reshape", [call.input("x")], call.out.shape, build.integers(kept))


def _with_axes(op: str) -> Native:
    def rule(call: Onnx) -> Value | None:
        axes = call["axes"]
        if not axes:
            return None
        return call.build.op(op, [call.input("x")], call.out.shape, call.build.integers(axes))

    return Native(op, rule)


def _transpose(call: Onnx) -> Value:
    return call.build.op("Transpose", [call.input("x")], call.out.shape, perm=list(call["order"]))


def _concat(call: Onnx) -> Value:
    values = call.family("xs")
    axis = call.axis_said("axis", values[0].rank)
    return call.build.op("Concat", values, call.out.shape, axis=axis)


def _shared_out(size: int, parts: int) -> list[int]:
    """What sizes parts have of which the number is said: alike, and what is left for the last."""
    each = -(-size // parts)
    return [each] * (parts - 1) + [size - each * (parts - 1)]


def _split(call: Onnx) -> list[Value]:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    sizes = [info.shape[axis] for info in call.outputs]
    if call.build.runtime.opset >= 18 and sizes == _shared_out(x.shape[axis], len(sizes)):
        return call.build.node("Split", [x.text], call.outputs, axis=axis, num_outputs=len(sizes))
    given = call.build.integers(sizes)
    return call.build.node("Split", [x.text, given.text], call.outputs, axis=axis)


def _slice(call: Onnx) -> Value:
    """Backwards from in front of the first element ONNX begins with that one, where there is
    nothing to take. What goes along all axes in their order need not name them.
    """
    x = call.input("x")
    axes, begin, end = call.axes_said("axes", x.rank), [*call["begin"]], [*call["end"]]
    for place, (axis, step) in enumerate(zip(axes, call["step"], strict=True)):
        if step < 0 < -x.shape[axis] - begin[place] and x.shape[axis]:
            begin[place] = end[place] = 0
    integers = call.build.integers
    named = Value("", (0,), "i64") if [*axes] == [*range(x.rank)] else integers(axes)
    bounds = [integers(begin), integers(end), named, integers(call["step"])]
    return call.build.op("Slice", [x], call.out.shape, *bounds)


def _pad(call: Onnx) -> Value | None:
    x, mode, build = call.input("x"), call["mode"], call.build
    if mode == "symmetric" or x.dtype not in build.runtime.kernels.get("Pad", ()):
        return None
    before, after = list(call["before"]), list(call["after"])
    around = build.number(filling(call), x).text if mode == "constant" else ""
    padded = [axis for axis, both in enumerate(zip(before, after, strict=True)) if any(both)]
    last = [*range(x.rank - len(padded), x.rank)]  # of images, which passes expect in full
    if build.runtime.opset >= AXES_NAMED and padded and padded != last:  # others are not spoken of
        amounts = [side[axis] for side in (before, after) for axis in padded]
        inputs = [x.text, build.integers(amounts).text, around, build.integers(padded).text]
    else:
        inputs = [x.text, build.integers([*before, *after]).text, *([around] if around else [])]
    return build.node("Pad", inputs, [call.out], mode=mode)[0]


def _tile(call: Onnx) -> Value:
    repeats = call.build.integers(call["repeats"])
    return call.build.op("Tile", [call.input("x")], call.out.shape, repeats)


def _expand(call: Onnx) -> Value:
    shape = call.build.integers(call.out.shape)
    return call.build.op("Expand", [call.input("x")], call.out.shape, shape)


def _trilu(call: Onnx) -> Value:
    k = call.build.constant(call["k"], "i64")
    return call.build.op("Trilu", [call.input("x")], call.out.shape, k, upper=int(call["upper"]))


def _blocks(op: str) -> Native:
    def rule(call: Onnx) -> Value | None:
        x, mode = call.input("x"), call["mode"]
        options: dict[str, Any] = {"blocksize": call["block_size"]}
        if op == "DepthToSpace":
            options["mode"] = mode.upper()
        elif mode != "dcr":
            return None
        return call.build.op(op, [x], call.out.shape, **options)

    return Native(op, rule)


_ARITHMETIC = (
    "add=Add subtract=Sub multiply=Mul divide=Div maximum=Max minimum=Min equal=Equal "
    "less=Less less_equal=LessOrEqual greater=Greater greater_equal=GreaterOrEqual "
    "logical_and=And logical_or=Or logical_xor=Xor logical_not=Not negate=Neg abs=Abs sign=Sign "
    "reciprocal=Reciprocal floor=Floor ceil=Ceil round=Round sqrt=Sqrt exp=Exp log=Log sin=Sin "
    "cos=Cos tan=Tan asin=Asin acos=Acos atan=Atan sinh=Sinh cosh=Cosh tanh=Tanh asinh=Asinh "
    "acosh=Acosh atanh=Atanh erf=Erf isnan=IsNaN sigmoid=Sigmoid softsign=Softsign mish=Mish "
    "prelu=PRelu add_n=Sum maximum_n=Max minimum_n=Min average_n=Mean"
)
_REDUCTIONS = (
    "sum=Sum mean=Mean prod=Prod max=Max min=Min l1=L1 l2=L2 logsumexp=LogSumExp "
    "sum_square=SumSquare log_sum=LogSum"
)

ELEMENTS: dict[str, Native] = {
    **{name: simple(op) for name, op in (item.split("=") for item in _ARITHMETIC.split())},
    **{
        f"reduce_{name}": _reduction(f"Reduce{op}")
        for name, op in (item.split("=") for item in _REDUCTIONS.split())
    },
    "modulo": Native("Mod", _modulo),
    "clip": Native("Clip", _clip),
    "isinf": Native("IsInf", _isinf),
    "where": Native("Where", _where),
    "cast": Native("Cast", _cast),
    "relu": Native("Relu, Clip", _relu),
    "leaky_relu": simple("LeakyRelu", alpha="alpha"),
    "thresholded_relu": simple("ThresholdedRelu", alpha="theta"),
    "elu": simple("Elu", alpha="alpha"),
    "selu": simple("Selu", alpha="alpha", gamma="gamma"),
    "celu": simple("Celu", alpha="alpha"),
    "gelu": Native("Gelu", _gelu),
    "softplus": only("Softplus", beta=1),
    "hard_sigmoid": simple("HardSigmoid", alpha="alpha", beta="beta"),
    "hard_swish": only("HardSwish", alpha=1 / 6, beta=0.5),
    "soft_shrink": _shrink(soft=True),
    "hard_shrink": _shrink(soft=False),
    "softmax": on_axis("Softmax"),
    "log_softmax": on_axis("LogSoftmax"),
    "argmax": _position("ArgMax"),
    "argmin": _position("ArgMin"),
    "cumsum": _scan("CumSum"),
    "cumprod": _scan("CumProd"),
    "top_k": Native("TopK", _top_k),
    "embedding": Native("Gather", _embedding),
    "gather": _gather("Gather"),
    "take_along_axis": _gather("GatherElements"),
    "gather_nd": Native("GatherND", _gather_nd),
    "one_hot": Native("OneHot", _one_hot),
    "reshape": Native("Reshape", _reshape, others=(Native("Reshape", _reshape_kept),)),
    "squeeze": _with_axes("Squeeze"),
    "expand_dims": _with_axes("Unsqueeze"),
    "transpose": Native("Transpose", _transpose),
    "concat": Native("Concat", _concat),
    "split": Native("Split", _split),
    "slice": Native("Slice", _slice),
    "pad": Native("Pad", _pad),
    "tile": Native("Tile", _tile),
    "broadcast_to": Native("Expand", _expand),
    "trilu": Native("Trilu", _trilu),
    "space_to_depth": _blocks("SpaceToDepth"),
    "depth_to_space": _blocks("DepthToSpace"),
}
