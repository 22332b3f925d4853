"""A node of an exported PyTorch program that is being translated: its arguments and its calls.

Calls are made first and written later, so that what only served to find out a constant is not
written at all. The type of a value follows from the definitions (`Writer.instance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.importers.sizes import Dim, is_open
from irlang.importers.torch_program import Dtype, Meta, Node, Opaque, Program, Ref
from irlang.importers.writer import Array, Writer
from irlang.interp import reference
from irlang.interp.plain import load

_LARGEST_KNOWN = 2**20  # elements of a value that is computed for the sake of an attribute
FLOATS = ("f16", "bf16", "f32", "f64")


class Uncovered(Exception):
    """What a node asks for has no translation; says why."""


class Hole(Exception):
    """A node reads what another node, which is reported itself, did not give."""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor. made: the call that gives it, at `position` of its results; without one it is an
    input, or a parameter with `data`. name: once it is written; wanted: what it should be called.
    """

    info: TensorInfo
    made: Made | None = None
    position: int = 0
    data: Array | float | None = None
    wanted: str = ""
    name: str = ""
    known: Array | None = None
    turned: Value | None = None

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.info.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.info.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.info.shape)


@dataclass(eq=False, slots=True)
class Made:
    """A call. results: one value each."""

    op: str
    operands: tuple[Any, ...]
    by_name: Mapping[str, Value]
    attrs: Mapping[str, Any]
    results: list[Value] = field(default_factory=list)


Rule = Callable[["Call"], Any]


class Call:
    """A node: its arguments by name, its recorded results, and the calls that it becomes."""

    def __init__(
        self, node: Node, program: Program, values: Mapping[str, Any], writer: Writer
    ) -> None:
        self.node = node
        self.program = program
        self._values = values
        self._writer = writer
        self.extra: dict[str, Value] = {}  # inputs of the node that it changes, by argument

    # ---- what the node says

    def has(self, name: str) -> bool:
        """Whether an argument is given and not None."""
        return self.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """An argument; lists are lists of values or numbers."""
        if name not in self.node.args:
            return default
        return self._resolve(self.node.args[name])

    def _resolve(self, raw: Any) -> Any:
        if isinstance(raw, Ref):
            if raw.name in self._values:
                found = self._values[raw.name]
                if found is None:
                    raise Hole
                return found
            if raw.name in self.program.symbols:
                return self._resolve(self.program.symbols[raw.name])
            raise Uncovered(f"`{raw.name}` is not there yet")
        if isinstance(raw, list):
            return [self._resolve(item) for item in raw]
        if isinstance(raw, Opaque) and raw.kind not in ("memory_format", "layout", "device"):
            raise Uncovered(f"an argument is {raw.kind}")
        return raw

    def tensor(self, name: str) -> Value:
        """An argument that is a tensor."""
        found = self.get(name)
        if not isinstance(found, Value):
            raise Uncovered(f"`{name}` is no tensor")
        return found

    def whole(self, name: str, default: int | None = None) -> int:
        """An argument that is an integer."""
        found = self.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int):
            raise Uncovered(f"`{name}` is no integer")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """An argument that is a truth value."""
        found = self.get(name, default)
        return default if found is None else bool(found)

    def number(self, name: str, default: float | None = None) -> Any:
        """An argument that is a number; a tensor of one known element serves."""
        found = self.get(name, default)
        if isinstance(found, Value):
            array = self.known(found)
            if array is None or array.size != 1:
                raise Uncovered(f"`{name}` is no number that is known")
            return array.reshape(-1)[0].item()
        if not isinstance(found, (int, float)):
            raise Uncovered(f"`{name}` is no number")
        return found

    def numbers(self, name: str, default: Sequence[int] | None = None, rank: int = 0) -> list[Any]:
        """An argument that is a list of integers; a lone one stands for `rank` of them."""
        found = self.get(name, default)
        if found is None:
            raise Uncovered(f"`{name}` is not given")
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if rank and len(found) == 1:
            found = found * rank
        return found

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """An argument that is an axis, counted from the front."""
        return self.whole(name, default) % max(rank, 1)

    def axes(self, name: str, rank: int) -> list[int]:
        """An argument that is axes, all of them where there are none."""
        found = self.get(name)
        if found is None or found == []:
            return list(range(rank))
        found = found if isinstance(found, list) else [found]
        return [int(axis) % max(rank, 1) for axis in found if rank]

    def dtype(self, name: str = "dtype") -> str | None:
        """An argument that is an element type."""
        found = self.get(name)
        if found is None:
            return None
        if not isinstance(found, Dtype) or not found.name:
            raise Uncovered("the element type has no place in irlang (complex or float8)")
        return found.name

    def result(self, position: int = 0) -> Meta:
        """The recorded type of a result."""
        flat = [
            item
            for part in self.node.results
            for item in (part if isinstance(part, list) else [part])
        ]
        if position >= len(flat) or not isinstance(flat[position], Ref):
            raise Uncovered("it gives no tensor")
        meta = self.program.metas.get(flat[position].name)
        if meta is None:
            raise Uncovered("it gives no tensor")
        if not meta.dtype:
            raise Uncovered("its result is complex or of 8-bit floats, which irlang has not")
        if any(isinstance(size, Opaque) for size in meta.shape):
            raise Uncovered("its result has a size that depends on values")
        return meta

    @property
    def out(self) -> str:
        """The element type of the first result."""
        return self.result().dtype

    # ---- what becomes of it

    def __call__(self, op: str, *operands: Any, by_name: Any = None, **attrs: Any) -> Value:
        """A call of a definition with one result."""
        (found,) = self.several(op, *operands, by_name=by_name, **attrs)
        return found

    def several(self, op: str, *operands: Any, by_name: Any = None, **attrs: Any) -> list[Value]:
        """A call: the list of its results."""
        by_name = {key: value for key, value in (by_name or {}).items() if value is not None}
        if not all(isinstance(item, (Value, int, float)) for item in operands):
            raise Uncovered("an argument is neither a tensor nor a number")
        if op == "where":  # a number takes the type of the other choice, not of the condition
            dtype = next((i.dtype for i in operands[1:] if isinstance(i, Value)), "f32")
            operands = tuple(
                item if isinstance(item, Value) else self.as_tensor(item, dtype)
                for item in operands
            )
        values = [item for item in operands if isinstance(item, Value)]
        lone = values[0].dtype if values else "f32"
        infos = [
            item.info if isinstance(item, Value) else TensorInfo((), lone) for item in operands
        ]
        named = {key: value.info for key, value in by_name.items()}
        instance = self._writer.instance(op, infos, named, attrs)
        made = Made(op, tuple(operands), by_name, attrs)
        for position, (_, info) in enumerate(instance.outputs or ()):
            made.results.append(Value(info, made, position))
        return made.results

    def defined(self, op: str) -> bool:
        """Whether there is a definition of that name."""
        return self._writer.catalog.op(op) is not None

    # ---- weights, which are rearranged once and for all where they are parameters

    def turned(self, value: Value) -> Value:
        """A matrix transposed."""
        if isinstance(value.data, np.ndarray) and value.made is None:
            turned = value.turned or self._like(value, np.ascontiguousarray(value.data.T))
            value.turned = turned
            return turned
        return self("transpose", value)

    def gates(self, value: Value, order: Sequence[int]) -> Value:
        """Weights of gates one after another: an axis of gates before them, in another order."""
        if not order:
            return value
        count = len(order)
        shape = (count, value.shape[0] // count, *value.shape[1:])
        if isinstance(value.data, np.ndarray) and value.made is None:
            array = value.data.reshape(tuple(int(n) for n in shape))
            return self._like(value, np.ascontiguousarray(array[list(order)]))
        split = self.reshape(value, shape)
        places = self.param(np.array(order, np.int64))
        return self("gather", split, places, axis=0)

    def total(self, *values: Value) -> Value:
        """The sum of weights."""
        return self("add", *values)

    def _like(self, value: Value, data: Array) -> Value:
        return Value(TensorInfo(tuple(data.shape), value.dtype), data=data, wanted=value.wanted)

    def first(self, op: str, *operands: Any, **attrs: Any) -> Value:
        """A call of which the first result is wanted."""
        return self.several(op, *operands, **attrs)[0]

    def param(
        self, data: Array | float, shape: Sequence[int] | None = None, dtype: str = ""
    ) -> Value:
        """A constant: an array, or one number for every element of a shape."""
        if isinstance(data, np.ndarray):
            names = {row.numpy: name for name, row in DTYPES.items()}
            if not data.size:
                return Value(TensorInfo(tuple(data.shape), names[data.dtype]), data=0.0)
            return Value(TensorInfo(tuple(data.shape), names[data.dtype]), data=data)
        kind = DTYPES[dtype].kind
        made = bool(data) if kind == "bool" else int(data) if kind == "int" else float(data)
        return Value(TensorInfo(tuple(shape or ()), dtype), data=made)

    @overload
    def cast(self, value: Value, dtype: str) -> Value: ...
    @overload
    def cast(self, value: Any, dtype: str) -> Any: ...
    def cast(self, value: Any, dtype: str) -> Any:
        """In another element type; numbers have none of their own."""
        if not isinstance(value, Value):
            return value
        return value if value.dtype == dtype else self("cast", value, to=dtype)

    def as_tensor(self, value: Any, dtype: str) -> Value:
        """A value in a type, a number as a constant."""
        if isinstance(value, Value):
            found: Value = self.cast(value, dtype)
            return found
        numbers: dict[tuple[str, str], Value] = self.program.numbers
        key = (dtype, repr(value))
        if key not in numbers:
            numbers[key] = self.param(value, (), dtype)
        return numbers[key]

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """In another shape."""
        if tuple(shape) == value.shape:
            return value
        return self("reshape", value, shape=list(shape))

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Along axes of size 1 and new leading axes."""
        if tuple(shape) == value.shape:
            return value
        return self("broadcast_to", value, shape=list(shape))

    def common(self, *values: Any) -> str:
        """The element type that operands are brought to (torch.result_type)."""
        return promoted(values)

    def known(self, value: Value) -> Array | None:
        """The elements of a value that depends on no input; None for others."""
        if value.known is None and not any(is_open(size) for size in value.shape):
            if int(np.prod(value.shape, dtype=object)) > _LARGEST_KNOWN:
                return None
            if value.made is None and value.data is not None:
                numpy = DTYPES[value.dtype].numpy
                value.known = np.asarray(
                    np.broadcast_to(np.asarray(value.data, numpy), value.shape)
                )
            elif value.made is not None:
                self._evaluate(value.made)
        return value.known

    def _evaluate(self, made: Made) -> None:
        """Computes a call whose operands are known."""
        operands = [
            item for item in (*made.operands, *made.by_name.values()) if isinstance(item, Value)
        ]
        if any(self.known(item) is None for item in operands):
            return
        lone = operands[0].dtype if operands else "f32"
        infos = [i.info if isinstance(i, Value) else TensorInfo((), lone) for i in made.operands]
        named = {key: value.info for key, value in made.by_name.items()}
        instance = self._writer.instance(made.op, infos, named, made.attrs)
        definition = instance.binding.op
        feeds: dict[str, Any] = {key: value.known for key, value in made.by_name.items()}
        for position, item in enumerate(made.operands):
            formal = definition.inputs[min(position, len(definition.inputs) - 1)]
            key = formal.name
            if formal.family:
                key = f"{formal.name}[{position - len(definition.inputs) + 1}]"
            feeds[key] = item.known if isinstance(item, Value) else np.asarray(item)
        expansion = expand(instance, self._writer.catalog)
        loaded = {key: load(expansion.tensors[key], np.asarray(v)) for key, v in feeds.items()}
        try:
            found = reference.evaluate(expansion, loaded)
        except InvalidInput:
            return
        for result, name in zip(made.results, expansion.outputs, strict=True):
            numpy = DTYPES[result.dtype].numpy
            result.known = np.asarray(found[name]).astype(numpy)


def _category(dtype: str) -> int:
    return 0 if dtype == "bool" else 2 if dtype in FLOATS else 1


def _wider(a: str, b: str) -> str:
    """The smallest type of a category that holds both (torch.promote_types)."""
    if a == b:
        return a
    if _category(a) != _category(b):
        return a if _category(a) > _category(b) else b
    if _category(a) == 2:
        if {a, b} == {"f16", "bf16"}:
            return "f32"
        return max(a, b, key=lambda name: DTYPES[name].bits)
    rows = sorted((DTYPES[a], DTYPES[b]), key=lambda row: row.bits)
    if a[0] == b[0]:
        return rows[1].name
    signed = next(row for row in rows if row.name[0] == "i")
    unsigned = next(row for row in rows if row.name[0] == "u")
    if signed.bits > unsigned.bits:
        return signed.name
    if unsigned.bits > 8:
        raise Uncovered(f"{a} with {b}")
    return {8: "i16"}[unsigned.bits]


def promoted(values: Sequence[Any]) -> str:
    """The type of a computation: tensors with axes decide before those without, and these before
    numbers, unless a later one is of a higher kind (torch.result_type).
    """
    ranks: list[list[str]] = [[], [], []]
    for item in values:
        if isinstance(item, Value):
            ranks[0 if item.rank else 1].append(item.dtype)
        elif isinstance(item, bool):
            ranks[2].append("bool")
        elif isinstance(item, (int, float)):
            ranks[2].append("f32" if isinstance(item, float) else "i64")
    best = ""
    for names in ranks:
        joined = ""
        for name in names:
            joined = _wider(joined, name) if joined else name
        if joined and (not best or _category(joined) > _category(best)):
            best = joined
    return best


__all__ = ["Call", "Dim", "Hole", "Made", "Rule", "Uncovered", "Value", "promoted"]
