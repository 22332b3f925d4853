"""The primitives as ONNX operators, and the model file that they make up.

Names are those of the source: a model file has no syntax that a name could break out of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.listed import Number, handed, plain
from irlang.lower.onnx_composed import COMPOSED
from irlang.lower.onnx_file import CONTRIBUTED, File, OnnxNode, code_of, serialized
from irlang.lower.onnx_kernels import OPSET, Gone, Runtime, older_form
from irlang.lower.onnx_measured import with_measured
from irlang.lower.value import (
    Array,
    Sizes,
    Unsupported,
    Value,
    broadcast,
    einsum_shape,
    enlarged,
    reduced,
)

_FUNCTIONS = {
    "+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "neg": "Neg", "<": "Less", "<=": "LessOrEqual",
    ">": "Greater", ">=": "GreaterOrEqual", "==": "Equal", "and": "And", "or": "Or", "not": "Not",
    "max": "Max", "min": "Min", "abs": "Abs", "sign": "Sign", "floor": "Floor", "ceil": "Ceil",
    "round": "Round", "sqrt": "Sqrt", "pow": "Pow", "exp": "Exp", "log": "Log",
    "sigmoid": "Sigmoid", "tanh": "Tanh", "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "isnan": "IsNaN", "isinf": "IsInf",
    "softplus": "Softplus", "bit_and": "BitwiseAnd", "bit_or": "BitwiseOr",
    "bit_xor": "BitwiseXor", "bit_not": "BitwiseNot",
}  # fmt: skip
_TRUTH = frozenset(
    {
        "Less",
        "LessOrEqual",
        "Greater",
        "GreaterOrEqual",
        "Equal",
        "And",
        "Or",
        "Not",
        "IsNaN",
        "IsInf",
        "Xor",
    }
)
# What decides by their values how many elements there are: fewer than a definition has.
_COUNTING = frozenset(("NonMaxSuppression", "NonZero", "Unique", "Compress"))
_REDUCE = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}


def _holds(dtype: str, array: Array) -> bool:
    """Whether a type holds numbers, rounded; of an integer type real ones may be beyond its ends,
    and what becomes of these is the framework's to say.
    """
    if DTYPES[dtype].kind != "int" or array.dtype.kind in "iub":
        return True
    low, high = integer_range(dtype)
    whole = np.trunc(array.astype(np.float64))
    return bool(((low <= whole) & (whole < high + 1)).all())


def _require_fits(numbers: Sequence[int]) -> None:
    """Refuses whole numbers that no model file holds: theirs are those of 64 bits."""
    least, greatest = integer_range("i64")
    beyond = [number for number in numbers if not least <= number <= greatest]
    if beyond:
        raise Unsupported(f"{beyond[0]} has more than 64 bits")


class OnnxBuilder:
    """Implements `irlang.lower.value.Builder`; a value's text is its name."""

    def __init__(
        self,
        given: Mapping[str, Value],
        outputs: Sequence[str],
        runtime: Runtime,
        bold: bool = False,
        loose: bool = False,
        measures: bool = False,
    ) -> None:
        """given: the inputs and parameters, by name. loose: whether the sizes of inputs are not
        known before the file is run. measures: whether numbers that equal a size of a tensor are
        read from it.
        """
        self.runtime = runtime
        self.bold, self.dared = bold, False
        self.loose, self.measures = loose, measures
        self.measured = 0  # how many sizes are read from tensors
        self.gone = False  # whether an operator was wanted that an older opset has
        self._taken = {*given, *outputs}
        self._given = list(given.values())
        # of what is given, and follows from it and constants by operators that count no elements
        self._shapes = {value.text: value.shape for value in given.values()}
        self._nodes: list[OnnxNode] = []
        self._count = 0
        self._made: set[str] = set()
        self._names: dict[str, str] = {}
        self._constants: dict[str, tuple[str, Array]] = {}
        self._by_content: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    # ---- names and nodes

    def fresh(self, wanted: str) -> str:
        """A name that is not taken."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def _temporary(self) -> str:
        self._count += 1
        return self.fresh(f"value.{self._count}")

    def node(
        self, op: str, inputs: Sequence[str], types: Sequence[TensorInfo], **attributes: Any
    ) -> list[Value]:
        """Any operator as it is; one value for every type."""
        inputs, attributes = self._as_of_the_opset(op, list(inputs), attributes)
        if self.measures:
            inputs = with_measured(self, op, inputs)
        try:
            self.runtime.require(op, attributes)
        except Gone:
            self.gone = True
            raise
        return self._noted(OnnxNode(op, list(inputs), [], attributes), types)

    def contributed(
        self, op: str, inputs: Sequence[str], types: Sequence[TensorInfo], **attributes: Any
    ) -> list[Value]:
        """An operator that is not ONNX's, but ONNX Runtime's own."""
        return self._noted(OnnxNode(op, list(inputs), [], attributes, CONTRIBUTED), types)

    def _noted(self, node: OnnxNode, types: Sequence[TensorInfo]) -> list[Value]:
        for key, given in node.attributes.items():
            numbers = given if isinstance(given, (list, tuple)) else [given]
            _require_fits([n for n in numbers if isinstance(n, int)])
            lost = [n for n in numbers if isinstance(n, float) and float(np.float32(n)) != n]
            if lost and any(info.dtype == "f64" for info in types):
                raise Unsupported(f"{node.op}'s {key} is a float32, which {lost[0]} is not")
        node.outputs.extend(self._temporary() for _ in types)
        self._nodes.append(node)
        self._made.update(node.outputs)
        pairs = list(zip(node.outputs, types, strict=True))
        if node.op not in _COUNTING and all(n in self._shapes for n in filter(None, node.inputs)):
            self._shapes.update((name, info.shape) for name, info in pairs)
        return [Value(name, info.shape, info.dtype) for name, info in pairs]

    def _as_of_the_opset(
        self, op: str, inputs: list[str], attributes: dict[str, Any]
    ) -> tuple[list[str], dict[str, Any]]:
        """What an operator is given where the opset is an older one: some inputs were attributes,
        and attributes that came later are left out where they say nothing.
        """
        form = older_form(op, self.runtime.opset) if self.runtime.opset < OPSET else None
        if form is None:
            return inputs, attributes
        told = {k: v for k, v in attributes.items() if k not in form.unsaid or v != form.unsaid[k]}
        for place, (name, several) in form.moved.items():
            if place < len(inputs) and inputs[place]:
                held = self.held(inputs[place])
                if held is None:
                    raise Unsupported(f"opset {self.runtime.opset} has no {op} whose {name} vary")
                told[name] = held.tolist() if several else int(held)
                inputs[place] = ""
        while inputs and not inputs[-1]:
            inputs.pop()
        if len(inputs) > form.inputs:
            raise Unsupported(f"opset {self.runtime.opset} has no {op} of {len(inputs)} inputs")
        return inputs, told

    def op(
        self,
        op: str,
        values: Sequence[Value],
        shape: tuple[int, ...],
        *others: Value,
        **attributes: Any,
    ) -> Value:
        """An operator whose inputs `values` have one type, which is the result's too.

        others: further inputs, which keep their types. Computed in the type that there is a kernel
        for, and converted back.
        """
        dtype = values[0].dtype
        carried = self.runtime.carrier(op, dtype)
        inputs = [self.cast(value, carried).text for value in values]
        inputs += [other.text for other in others]
        result = "bool" if op in _TRUTH else carried
        (value,) = self.node(op, inputs, [TensorInfo(shape, result)], **attributes)
        return value if op in _TRUTH else self.cast(value, dtype)

    def computes(self, value: Value) -> bool:
        """Whether a value is the result of a node, and no input, parameter or constant."""
        return value.text in self._made

    def held(self, value: Value | str) -> Array | None:
        """The numbers of a value, or of one of that name, where it is a constant."""
        found = self._constants.get(value if isinstance(value, str) else value.text)
        return None if found is None else found[1]

    def tensors(self, beside: Sequence[str]) -> list[Value]:
        """Those of some names whose sizes are known, and that are no constants; then what the file
        is given.
        """
        own = [n for n in beside if n in self._shapes and n not in self._constants]
        return [Value(n, self._shapes[n], "") for n in own] + self._given

    def let(self, value: Value, hint: str) -> Value:
        """A better name for what was just made."""
        if value.text in self._made and value.text not in self._names:
            self._names[value.text] = self.fresh(hint)
        return value

    def result(self, value: Value, name: str) -> Value:
        """The same; a node's result."""
        return self.let(value, name)

    def solid(self, value: Value) -> Value:
        """Itself: every number is a tensor here."""
        return value

    # ---- constants and conversion

    def constant(self, array: Array | Number, dtype: str) -> Value:
        """An initializer; equal ones are one, and a number has no axes. What the type cannot hold
        is infinite in it, and any number where it is one of integers. Raises `Unsupported` of whole
        numbers beyond 64 bits.
        """
        array = np.asarray(plain(array))
        if dtype == "i64" and array.dtype in (np.uint64, np.object_):
            _require_fits(array.ravel().tolist())
        with np.errstate(over="ignore", invalid="ignore"):
            stored = np.asarray(array, order="C").astype(DTYPES[dtype].numpy)
        sizes = dtype == "i64" and stored.ndim == 1  # a shape without axes is one
        if not (stored.size or sizes or self.runtime.holds_nothing):
            raise Unsupported(f"{self.runtime.name} takes an array without elements for a number")
        key = dtype, stored.shape, stored.tobytes()
        if key not in self._by_content:
            name = self.fresh("constant")
            self._by_content[key] = name
            self._constants[name] = (dtype, stored)
            self._shapes[name] = stored.shape
        return Value(self._by_content[key], stored.shape, dtype)

    def detach(self, value: Value) -> Value:
        """`value`: nothing is differentiated here."""
        return value

    def cast(self, value: Value, dtype: str) -> Value:
        """`Cast`; of a constant, here and now, where the type holds all of its numbers."""
        if value.dtype == dtype:
            return value
        array = self.held(value)
        if array is not None and _holds(dtype, array):
            return self.constant(array != 0 if dtype == "bool" else array, dtype)
        return self.converted(value, dtype)

    def converted(self, value: Value, dtype: str) -> Value:
        """`Cast`, be there something to convert or not."""
        info = TensorInfo(value.shape, dtype)
        return self.node("Cast", [value.text], [info], to=code_of(dtype))[0]

    def number(self, number: float, like: Value) -> Value:
        """A number of the type of `like`."""
        return self.constant(number, like.dtype)

    def integers(self, numbers: Sequence[int]) -> Value:
        """A vector of i64."""
        numbers = [int(n) for number in numbers for n in handed(number)]
        _require_fits(numbers)
        return self.constant(np.asarray(numbers, dtype=np.int64), "i64")

    # ---- element by element

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function; those that ONNX lacks are composed of others."""
        if function in COMPOSED:
            return COMPOSED[function](self, *args)
        if function not in _FUNCTIONS:
            raise Unsupported(f"ONNX has no function `{function}`")
        return self.op(_FUNCTIONS[function], args, broadcast(args))

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`Where`."""
        dtype = yes.dtype
        carried = self.runtime.carrier("Where", dtype)
        inputs = [condition.text, self.cast(yes, carried).text, self.cast(no, carried).text]
        shape = broadcast((condition, yes, no))
        (value,) = self.node("Where", inputs, [TensorInfo(shape, carried)])
        return self.cast(value, dtype)

    # ---- shape

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`Reshape`."""
        zero = {"allowzero": 1} if 0 in shape else {}
        return self.op("Reshape", [value], shape, self.integers(shape), **zero)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`Transpose`."""
        shape = tuple(value.shape[axis] for axis in axes)
        return self.op("Transpose", [value], shape, perm=list(axes))

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`Expand`."""
        if value.shape == shape:
            return value
        return self.op("Expand", [value], shape, self.integers(shape))

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """`Slice`."""
        count = len(range(start, stop, step))
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        end = stop if stop >= 0 else -(2**62)
        bounds = [self.integers([number]) for number in (start, end, axis, step)]
        return self.op("Slice", [value], shape, *bounds)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """`Gather` at a single index."""
        where = self.constant(np.asarray(index), "i64")
        return self.op("Gather", [value], reduced(value.shape, (axis,)), where, axis=axis)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """`Gather`."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        return self.op("Gather", [value], shape, indices, axis=axis)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`Concat` of what got an axis more."""
        shape = (*values[0].shape[:axis], 1, *values[0].shape[axis:])
        return self.concat([self.reshape(value, shape) for value in values], axis)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`Concat`."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        return self.op("Concat", values, shape, axis=axis)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`Pad`."""
        dtype = value.dtype
        carried = self.cast(value, self.runtime.carrier("Pad", dtype))
        inputs = [carried.text, self.integers([*before, *after]).text]
        inputs.append(self.number(number, carried).text)
        info = TensorInfo(enlarged(value.shape, before, after), carried.dtype)
        return self.cast(self.node("Pad", inputs, [info])[0], dtype)

    # ---- reductions

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`ReduceSum`, …; all and any as the extremes of truth values."""
        if not axes:
            return value
        op = _REDUCE[{"all": "min", "any": "max"}.get(kind, kind)]
        shape = reduced(value.shape, axes)
        return self.op(op, [value], shape, self.integers(axes), keepdims=0)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`ArgMax` or `ArgMin`."""
        op = {"argmax": "ArgMax", "argmin": "ArgMin"}[kind]
        carried = self.cast(value, self.runtime.carrier(op, value.dtype))
        info = TensorInfo(reduced(value.shape, (axis,)), "i64")
        return self.node(op, [carried.text], [info], axis=axis, keepdims=0)[0]

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`RandomUniform` or `RandomNormal`, in a type that the runtime has a kernel for."""
        if law == "bernoulli":
            number = self.constant(np.asarray(params[0]), "f32")
            return self.apply("<", [self.draw("uniform", (0.0, 1.0), shape, "f32"), number])
        names = {"uniform": ("low", "high"), "normal": ("mean", "scale")}.get(law)
        if names is None:
            raise Unsupported(f"ONNX draws nothing from the law `{law}`")
        kernel = dtype if dtype == "f64" else "f32"
        if law == "uniform" and dtype not in ("f32", "f64") and tuple(params) == (0.0, 1.0):
            # to the next smaller number of the type: rounded, some would be 1
            places = self.draw(law, (0.0, 1.0 / DTYPES[dtype].unit), shape, "f32")
            whole = self.apply("floor", [places])
            part = self.apply("*", [whole, self.number(DTYPES[dtype].unit, whole)])
            return self.cast(part, dtype)
        with np.errstate(over="ignore"):  # what f32 does not hold is infinite in it
            held = all(float(np.float32(number)) == number for number in params)
        if not held:
            return self._moved_draw(law, params, shape, dtype)  # its attributes are float32
        info = TensorInfo(shape or (1,), kernel)
        numbers = dict(zip(names, params, strict=True))
        (value,) = self.node(
            f"Random{law.capitalize()}",
            [],
            [info],
            shape=list(info.shape),
            dtype=code_of(kernel),
            **numbers,
        )
        return self.cast(value if shape else self.reshape(value, ()), dtype)

    def _moved_draw(
        self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str
    ) -> Value:
        """A draw from [0, 1], or of mean 0 and deviation 1, brought to where it should be."""
        start, extent = params if law == "normal" else (params[0], params[1] - params[0])
        drawn = self.draw(law, (0.0, 1.0), shape, dtype)
        wide = self.apply("*", [drawn, self.number(extent, drawn)])
        return self.apply("+", [wide, self.number(start, drawn)])

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """`Einsum`."""
        return self.op("Einsum", values, einsum_shape(spec, values), equation=spec)

    # ---- the file

    def model(
        self,
        name: str,
        doc: str,
        inputs: Mapping[str, TensorInfo],
        params: Mapping[str, tuple[str, Array]],
        outputs: Mapping[str, Value],
    ) -> bytes:
        """The model file; parameters and constants are initializers."""
        ends, named = [], set[str]()
        for output, value in outputs.items():
            if value.text in self._made and value.text not in named:
                named.add(value.text)
                self._names[value.text] = output
            elif value.text != output:  # an input, a constant, or the result under two names
                ends.append(OnnxNode("Identity", [value.text], [output]))
        nodes = [*self._nodes, *ends]
        results = {n: TensorInfo(value.shape, value.dtype) for n, value in outputs.items()}
        held = {**params, **self._constants}
        file = File(name, doc, inputs, results, held, nodes, self._names, self.loose)
        return serialized(file, self.runtime)
