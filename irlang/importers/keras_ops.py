"""Functions of `keras.ops` in saved functional models, as calls of the definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Sheet, Value, element
from irlang.importers.keras_text import Config
from irlang.importers.labels import Malformed, labels_of

_MISSING = object()


class Node:
    """A function that is being written: its arguments by position, by name and as saved."""

    def __init__(
        self, sheet: Sheet, name: str, config: Config, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.sheet = sheet
        self.writer = sheet.writer
        self.name = name
        self.kind = config.kind
        self.args = list(args)
        self.given = {**config.kwargs, **{k: v for k, v in kwargs.items() if v is not None}}

    def uncovered(self, reason: str) -> Uncovered:
        """The exception for what has no translation."""
        return Uncovered(f"keras.ops {self.kind}", reason)

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """An argument that is no tensor."""
        value = self.given.get(key, default)
        if value is _MISSING:
            raise self.uncovered(f"`{key}` is not given")
        return value

    def x(self, position: int = 0) -> str:
        """A tensor that is an argument; numbers become a parameter."""
        if position >= len(self.args):
            raise self.uncovered("an argument is not there")
        found = self.operand(self.args[position], position)
        if isinstance(found, str):
            return found
        array = np.asarray(found, dtype=np.float32 if isinstance(found, float) else np.int32)
        return self.param(position, array)

    def operand(self, item: Any, position: int) -> Any:
        """A tensor by the name of its value, or a number."""
        if isinstance(item, Value):
            return self.sheet.last(item.name)
        if isinstance(item, tuple):
            try:
                item = np.array(item)
            except ValueError:
                raise self.uncovered("an argument is no tensor of numbers") from None
            item = item.astype({"f": np.float32, "i": np.int32}.get(item.dtype.kind, item.dtype))
        if isinstance(item, np.ndarray):
            return self.param(position, item)
        if isinstance(item, (int, float)):
            return item
        raise self.uncovered(f"an argument is {item!r}")

    def param(self, position: int, array: Any) -> str:
        """Numbers as a parameter."""
        known = (key for key, item in DTYPES.items() if item.numpy == array.dtype)
        dtype = next(known, None)
        if dtype is None:
            raise self.uncovered("an argument is no tensor of numbers")
        info = TensorInfo(array.shape, dtype)
        return self.writer.param(f"{self.name}_{position}", info, array)

    def info(self, value: str) -> TensorInfo:
        """The type of a value."""
        return self.writer.types[value]

    def rank(self, value: str) -> int:
        """The number of axes of a value."""
        return len(self.info(value).shape)

    def write(self, op: str, *operands: Any, suffix: str = "", **attrs: Any) -> str:
        """A call; the result of the function has no suffix."""
        wanted = f"{self.name}_{suffix}" if suffix else self.name
        return self.writer.call([wanted], op, *operands, **attrs)[0]

    def alike(self, operands: Sequence[Any]) -> list[Any]:
        """Tensors of one type, as Keras promotes them: reals before integers, then the wider."""
        infos = [self.info(item) for item in operands if isinstance(item, str)]
        reals = [info.dtype for info in infos if info.kind == "real"]
        fraction = any(isinstance(item, float) for item in operands)
        if reals:
            wanted = max(reals, key=lambda name: (DTYPES[name].bits, name == "f16"))
        elif fraction:
            wanted = "f32"
        else:
            wanted = max((info.dtype for info in infos), key=lambda name: DTYPES[name].bits)
        return [self.cast(item, wanted) if isinstance(item, str) else item for item in operands]

    def cast(self, value: str, dtype: str) -> str:
        """A value in another type, if it is not in that one."""
        if self.info(value).dtype == dtype:
            return value
        return self.write("cast", value, suffix=f"as_{dtype}", to=dtype)

    def real(self, value: str) -> str:
        """A value as reals."""
        return value if self.info(value).kind == "real" else self.cast(value, "f32")

    def axes(self, value: str) -> list[int]:
        """The axes that are reduced: all of them unless said."""
        axis = self.get("axis", None)
        if axis is None:
            return list(range(self.rank(value)))
        return list(axis) if isinstance(axis, tuple) else [axis]


Write = Callable[[Node], "str | list[str]"]


def _unary(op: str, **attrs: Any) -> Write:
    return lambda n: n.write(op, n.real(n.x()), **attrs)


def _exact(op: str) -> Write:
    """A function of integers too."""
    return lambda n: n.write(op, n.x())


def _binary(op: str, real: bool = False) -> Write:
    def write(n: Node) -> str:
        operands = [n.operand(item, number) for number, item in enumerate(n.args[:2])]
        operands = n.alike(operands)
        if real:
            operands = [n.real(item) if isinstance(item, str) else item for item in operands]
        return n.write(op, *operands)

    return write


def _logical(op: str) -> Write:
    return lambda n: n.write(op, *(n.cast(n.x(i), "bool") for i in range(len(n.args[:2]))))


def _reduce(op: str, real: bool = False) -> Write:
    def write(n: Node) -> str:
        x = n.real(n.x()) if real else n.x()
        keep = {"keepdims": True} if n.get("keepdims", False) else {}
        if n.get("initial", None) is not None or n.get("where", None) is not None:
            raise n.uncovered("`initial` or `where` is given")
        return n.write(op, x, axes=n.axes(x), **keep)

    return write


def _place(op: str) -> Write:
    """Where the largest or smallest is, as Keras counts: in int32."""

    def write(n: Node) -> str:
        x, axis = n.x(), n.get("axis", None)
        if axis is None:
            x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
        keep = {"keepdims": True} if n.get("keepdims", False) else {}
        return n.write("cast", n.write(op, x, suffix="place", axis=axis, **keep), to="i32")

    return write


def _axis(op: str, **names: str) -> Write:
    """One tensor and attributes by the names that Keras has for them."""

    def write(n: Node) -> str:
        attrs = {key: n.get(name) for key, name in names.items()}
        return n.write(op, n.x(), **{key: _listed(value) for key, value in attrs.items()})

    return write


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _axes_list(op: str) -> Write:
    def write(n: Node) -> str:
        axis = n.get("axis", None)
        if axis is None and op == "squeeze":
            x = n.x()
            axis = tuple(d for d, size in enumerate(n.info(x).shape) if size == 1)
        axes = list(axis) if isinstance(axis, tuple) else [axis]
        if axis is None:
            axes = list(range(n.rank(n.x())))
        return n.write(op, n.x(), axes=axes)

    return write


def _reshape(n: Node) -> str:
    shape = n.get("newshape")
    shape = list(shape) if isinstance(shape, tuple) else [shape]
    x = n.x()
    own = n.info(x).shape
    if -1 not in shape or shape[0] != -1 or len(own) == 0:
        return n.write("reshape", x, shape=[-1 if size is None else size for size in shape])
    return n.write("reshape", x, shape=shape)


def _transpose(n: Node) -> str:
    axes = n.get("axes", None)
    x = n.x()
    return n.write("transpose", x, **({} if axes is None else {"perm": list(axes)}))


def _swap(n: Node) -> str:
    x = n.x()
    order = list(range(n.rank(x)))
    first, second = n.get("axis1") % len(order), n.get("axis2") % len(order)
    order[first], order[second] = order[second], order[first]
    return n.write("transpose", x, perm=order)


def _move(n: Node) -> str:
    x = n.x()
    rank = n.rank(x)
    source, target = n.get("source"), n.get("destination")
    sources = [s % rank for s in (source if isinstance(source, tuple) else (source,))]
    targets = [t % rank for t in (target if isinstance(target, tuple) else (target,))]
    left = iter(d for d in range(rank) if d not in sources)
    by_place = dict(zip(targets, sources, strict=True))
    order = [by_place[d] if d in by_place else next(left) for d in range(rank)]
    return n.write("transpose", x, perm=order)


def _together(op: str) -> Write:
    def write(n: Node) -> str:
        items = n.args[0] if isinstance(n.args[0], tuple) else tuple(n.args)
        operands = n.alike([n.operand(item, number) for number, item in enumerate(items)])
        return n.write(op, *operands, axis=n.get("axis", 0))

    return write


def _split(n: Node) -> list[str]:
    x, axis = n.x(), n.get("axis", 0)
    parts = n.get("indices_or_sections")
    size = n.info(x).shape[axis]
    if isinstance(parts, int):
        sizes = [size // max(1, parts)] * parts
    else:
        ends = [0, *parts, size]
        sizes = [b - a for a, b in pairwise(ends)]
    names = [f"{n.name}_{number}" for number in range(len(sizes))]
    return n.writer.call(names, "split", x, axis=axis, sizes=sizes)


def _item(n: Node) -> str:
    """x[...]: slices, positions, new axes and what is left out."""
    x, given = n.x(), n.args[1] if len(n.args) > 1 else n.get("key")
    keys = list(given) if isinstance(given, tuple) else [given]
    known = (int, slice, type(None), type(...))
    if any(not isinstance(key, known) or isinstance(key, bool) for key in keys):
        raise n.uncovered("an index is no number and no slice")
    used = sum(key is not None and key is not ... for key in keys)
    if used > n.rank(x) or keys.count(...) > 1:
        raise n.uncovered("there are more indices than axes")
    if ... not in keys:
        keys.append(...)
    at = keys.index(...)
    keys[at : at + 1] = [slice(None)] * (n.rank(x) - used)
    axes, begin, end, step, dropped, added = [], [], [], [], [], []
    source = place = 0
    for key in keys:
        if key is None:
            added.append(place)
            place += 1
            continue
        if isinstance(key, int):
            # the last element ends where the axis does
            key, single = slice(key, None if key == -1 else key + 1), True
            dropped.append(source)
        else:
            single = False
        if key != slice(None):
            size = n.info(x).shape[source]
            back = key.step is not None and key.step < 0
            ends = (size - 1, -size - 1) if back else (0, size)
            axes.append(source)
            begin.append(ends[0] if key.start is None else key.start)
            end.append(ends[1] if key.stop is None else key.stop)
            step.append(key.step or 1)
        source += 1
        place += not single
    last = len(axes) > 0, len(dropped) > 0, len(added) > 0
    stages = [
        stage for stage, there in zip(("part", "dropped", "added"), last, strict=True) if there
    ]
    suffix = {stage: "" if stage == stages[-1] else stage for stage in stages}
    if not stages:
        return n.write("identity", x)
    if axes:
        steps = {} if set(step) == {1} else {"step": step}
        x = n.write("slice", x, suffix=suffix["part"], axes=axes, begin=begin, end=end, **steps)
    if dropped:
        x = n.write("squeeze", x, suffix=suffix["dropped"], axes=dropped)
    if added:
        x = n.write("expand_dims", x, suffix=suffix["added"], axes=added)
    return x


def _where(n: Node) -> str:
    condition = n.cast(n.x(0), "bool")
    a, b = n.alike([n.operand(item, number + 1) for number, item in enumerate(n.args[1:3])])
    return n.write("where", condition, a, b)


def _clip(n: Node) -> str:
    low, high = n.get("x_min"), n.get("x_max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise n.uncovered("a bound is no number")
    return n.write("clip", n.x(), min=low, max=high)


def _pad(n: Node) -> str:
    x, pairs = n.x(), n.get("pad_width")
    if isinstance(pairs, int):
        pairs = ((pairs, pairs),)
    pairs = pairs * n.rank(x) if len(pairs) == 1 else pairs
    attrs: dict[str, Any] = {"before": [p[0] for p in pairs], "after": [p[1] for p in pairs]}
    mode = n.get("mode", "constant")
    if mode not in ("constant", "reflect", "symmetric"):
        raise n.uncovered(f"`mode` is {mode!r}")
    if mode != "constant":
        attrs["mode"] = mode
    elif n.get("constant_values", 0):
        attrs["value"] = n.get("constant_values")
    return n.write("pad", x, **attrs)


def _take(n: Node) -> str:
    x, ids, axis = n.x(0), n.x(1), n.get("axis", None)
    if axis is None:
        x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
    return n.write("gather", x, ids, axis=axis, negative="from_end")


def _one_hot(n: Node) -> str:
    to = element(n.get("dtype", "float32") or "float32")
    return n.write("one_hot", n.x(), depth=n.get("num_classes"), axis=n.get("axis", -1), to=to)


def _normalize(n: Node) -> str:
    eps = n.get("epsilon", None)
    x = n.real(n.x())
    order = float(n.get("order", 2))
    return n.write("normalize", x, axes=n.axes(x), p=order, eps=1e-7 if eps is None else eps)


def _matmul(n: Node) -> str:
    a, b = n.alike([n.x(0), n.x(1)])
    a, b = n.real(a), n.real(b)
    if min(n.rank(a), n.rank(b)) < 2:
        raise n.uncovered("a product with a vector")
    return n.write("matmul", a, b)


def _einsum(n: Node) -> str:
    operands = n.alike([n.x(number) for number in range(len(n.args))])
    try:
        labels, output = labels_of(str(n.get("subscripts")), [n.rank(item) for item in operands])
    except Malformed as reason:
        raise n.uncovered(str(reason)) from None
    return n.write("einsum", *operands, labels=labels, output=output)


def _softmax(op: str) -> Write:
    def write(n: Node) -> str:
        axis = n.get("axis", -1)
        if not isinstance(axis, int):
            raise n.uncovered(f"`axis` is {axis!r}")
        return n.write(op, n.real(n.x()), axis=axis)

    return write


def _slope(n: Node) -> str:
    return n.write("leaky_relu", n.x(), alpha=float(np.float32(n.get("negative_slope", 0.2))))


def _cumulative(op: str) -> Write:
    def write(n: Node) -> str:
        x, axis = n.x(), n.get("axis", None)
        if n.get("dtype", None) is not None:
            raise n.uncovered("`dtype` is given")
        if axis is None:
            x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
        return n.write(op, x, axis=axis)

    return write


def _repeat(n: Node) -> str:
    x, axis, repeats = n.x(), n.get("axis", None), n.get("repeats")
    if not isinstance(repeats, int):
        raise n.uncovered("`repeats` is no number")
    if axis is None:
        x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
    return n.write("repeat", x, repeats=repeats, axis=axis)


def _tile(n: Node) -> str:
    x, repeats = n.x(), n.get("repeats")
    repeats = list(repeats) if isinstance(repeats, tuple) else [repeats]
    missing = n.rank(x) - len(repeats)
    if missing < 0:
        x = n.write("expand_dims", x, suffix="wide", axes=list(range(-missing)))
    return n.write("tile", x, repeats=[1] * missing + repeats)


def _scaled(base: float) -> Write:
    """A logarithm to another base."""
    return lambda n: n.write("divide", n.write("log", n.real(n.x()), suffix="log"), base)


def _threshold(n: Node) -> str:
    above = n.write("greater", n.x(), float(n.get("threshold")), suffix="above")
    return n.write("where", above, n.x(), float(n.get("default_value")))


def _like(value: float) -> Write:
    """A tensor of one number, of the shape of another."""

    def write(n: Node) -> str:
        x = n.x()
        given = n.get("dtype", None)
        dtype = n.info(x).dtype if given is None else element(given)
        info = TensorInfo((), dtype)
        number = bool(value) if dtype == "bool" else value
        filled = n.writer.param(f"{n.name}_value", info, number)
        return n.write("broadcast_to", filled, shape=list(n.info(x).shape))

    return write


OPERATIONS: dict[str, Write] = {
    **{
        kind: _unary(op)
        for kind, op in {
            "Sqrt": "sqrt",
            "Exp": "exp",
            "Log": "log",
            "Log1p": "log1p",
            "Expm1": "expm1",
            "Sin": "sin",
            "Cos": "cos",
            "Tan": "tan",
            "Arcsin": "asin",
            "Arccos": "acos",
            "Arctan": "atan",
            "Sinh": "sinh",
            "Cosh": "cosh",
            "Tanh": "tanh",
            "Arcsinh": "asinh",
            "Arccosh": "acosh",
            "Arctanh": "atanh",
            "Reciprocal": "reciprocal",
            "Rsqrt": "rsqrt",
            "Erf": "erf",
            "Floor": "floor",
            "Ceil": "ceil",
            "Trunc": "trunc",
            "Isnan": "isnan",
            "Isinf": "isinf",
            "Sigmoid": "sigmoid",
            "Relu": "relu",
            "Softplus": "softplus",
            "Softsign": "softsign",
            "Silu": "silu",
            "LogSigmoid": "log_sigmoid",
            "Selu": "selu",
            "HardTanh": "hard_tanh",
            "TanhShrink": "tanh_shrink",
            "HardSilu": "hard_swish",
            "SparsePlus": "sparse_plus",
            "Mish": "mish",
        }.items()
    },
    "Relu6": _unary("relu", max_value=6),
    "HardSigmoid": _unary("hard_sigmoid", alpha=1 / 6),
    "SparseSigmoid": _unary("hard_sigmoid", alpha=0.5),
    **{kind: _exact("abs") for kind in ("Absolute", "Abs", "Fabs")},
    "Negative": _exact("negate"),
    "Sign": _exact("sign"),
    "Square": _exact("square"),
    **dict.fromkeys(("StopGradient", "Copy", "ConvertToTensor"), _exact("identity")),
    "Log2": _scaled(float(np.log(2))),
    "Log10": _scaled(float(np.log(10))),
    "Add": _binary("add"),
    "Subtract": _binary("subtract"),
    "Multiply": _binary("multiply"),
    "Divide": _binary("divide", real=True),
    "TrueDivide": _binary("divide", real=True),
    "FloorDivide": _binary("floor_divide"),
    "Mod": _binary("modulo"),
    "Power": _binary("power"),
    "Maximum": _binary("maximum"),
    "Minimum": _binary("minimum"),
    "Equal": _binary("equal"),
    "NotEqual": _binary("not_equal"),
    "Less": _binary("less"),
    "LessEqual": _binary("less_equal"),
    "Greater": _binary("greater"),
    "GreaterEqual": _binary("greater_equal"),
    "LogicalAnd": _logical("logical_and"),
    "LogicalOr": _logical("logical_or"),
    "LogicalXor": _logical("logical_xor"),
    "LogicalNot": lambda n: n.write("logical_not", n.cast(n.x(), "bool")),
    "Sum": _reduce("reduce_sum"),
    "Mean": _reduce("reduce_mean", real=True),
    "Prod": _reduce("reduce_prod"),
    **dict.fromkeys(("Max", "Amax"), _reduce("reduce_max")),
    **dict.fromkeys(("Min", "Amin"), _reduce("reduce_min")),
    "Var": _reduce("reduce_variance", real=True),
    "Std": _reduce("reduce_std", real=True),
    "All": _reduce("reduce_all"),
    "Any": _reduce("reduce_any"),
    "Logsumexp": _reduce("reduce_logsumexp", real=True),
    "Argmax": _place("argmax"),
    "Argmin": _place("argmin"),
    "Cumsum": _cumulative("cumsum"),
    "Cumprod": _cumulative("cumprod"),
    "Reshape": _reshape,
    "Ravel": lambda n: n.write("reshape", n.x(), shape=[-1]),
    "Transpose": _transpose,
    "Swapaxes": _swap,
    "Moveaxis": _move,
    "ExpandDims": _axes_list("expand_dims"),
    "Squeeze": _axes_list("squeeze"),
    "Flip": _axes_list("reverse"),
    "BroadcastTo": _axis("broadcast_to", shape="shape"),
    "Tile": _tile,
    "Repeat": _repeat,
    "Concatenate": _together("concat"),
    "Stack": _together("stack"),
    "Split": _split,
    "GetItem": _item,
    "Where": _where,
    "Clip": _clip,
    "Cast": lambda n: n.write("cast", n.x(), to=element(n.get("dtype"))),
    "Pad": _pad,
    "Take": _take,
    "TakeAlongAxis": lambda n: n.write(
        "take_along_axis", n.x(0), n.x(1), axis=n.get("axis"), negative="from_end"
    ),
    "ZerosLike": _like(0),
    "OnesLike": _like(1),
    "Tril": lambda n: n.write("trilu", n.x(), k=n.get("k", 0), upper=False),
    "Triu": lambda n: n.write("trilu", n.x(), k=n.get("k", 0)),
    "OneHot": _one_hot,
    "Matmul": _matmul,
    "Einsum": _einsum,
    "Normalize": _normalize,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "Sparsemax": _softmax("sparsemax"),
    "Glu": _softmax("glu"),
    "LeakyRelu": _slope,
    "Elu": lambda n: n.write("elu", n.x(), alpha=float(n.get("alpha", 1.0))),
    "Celu": lambda n: n.write("celu", n.x(), alpha=float(n.get("alpha", 1.0))),
    "Gelu": lambda n: n.write(
        "gelu", n.x(), approximate="tanh" if n.get("approximate", True) else "none"
    ),
    "Squareplus": lambda n: n.write("squareplus", n.x(), b=float(n.get("b", 4))),
    "SoftShrink": lambda n: n.write("soft_shrink", n.x(), threshold=float(n.get("threshold", 0.5))),
    "HardShrink": lambda n: n.write("hard_shrink", n.x(), threshold=float(n.get("threshold", 0.5))),
    "Threshold": _threshold,
}


def write_operation(
    sheet: Sheet, name: str, config: Config, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Value]:
    """Writes a function; what it gives. Raises `Uncovered` for what has no translation."""
    results = OPERATIONS[config.kind](Node(sheet, name, config, args, kwargs))
    names = [results] if isinstance(results, str) else results
    return [Value(found) for found in names]
