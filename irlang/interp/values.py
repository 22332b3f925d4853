"""Values for a model's inputs and parameters: drawn, initialised, or read from files.

Random values depend on the seed and the name alone, so that removing one parameter leaves the
others as they were. Where a text declares no range, floats are drawn from [-1, 1], integers are 0
or 1. Files are untrusted: `.npy` and safetensors only (never pickle), inside the model's folder,
checked for shape, type and range before use.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from irlang.diagnostics import Span, fail
from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.graph import Graph, Param, Port
from irlang.interp.draws import generator
from irlang.laws import even

Array = np.ndarray[Any, np.dtype[Any]]
DEFAULT_RANGE = {"real": (-1.0, 1.0), "int": (0.0, 1.0), "bool": (0.0, 1.0)}
_ARRAY, _ARCHIVE = b"\x93NUMPY", b"PK\x03\x04"  # how a file of one array begins, and one of several
# What NumPy says of a header that is none, beside `ValueError`: it is parsed as Python's text.
_BROKEN = (OSError, ValueError, TypeError, EOFError, MemoryError, OverflowError, RecursionError,
           SyntaxError, TokenError)  # fmt: skip
_SAID = 200  # letters of it: it may show the whole header
_SHARE = 0.5  # of the machine's memory that a model's tensors may take


def require_memory(graph: Graph) -> None:
    """Raises `run.memory` where the tensors of a model do not fit, before any is allocated."""
    needed = sum(8 * math.prod(info.shape) for info in graph.values.values())
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > _SHARE * available:
        largest = max(graph.values, key=lambda name: math.prod(graph.values[name].shape))
        raise fail(
            "run.memory",
            f"the tensors of `{graph.name}` need {needed / 2**30:.1f} GiB; this machine has "
            f"{available / 2**30:.1f} GiB",
            help=f"the largest is `{largest}`, {graph.values[largest]}",
        )


def draw(info: TensorInfo, within: tuple[float, float] | None, seed: int, name: str) -> Array:
    """A tensor of values drawn evenly from a range, in its own type."""
    low, high = within or DEFAULT_RANGE[info.kind]
    numbers = generator(seed, name)
    dtype = DTYPES[info.dtype]
    if info.kind == "real":
        finite = (max(low, -dtype.largest), min(high, dtype.largest))
        if finite[0] > finite[1]:
            raise fail("model.range", f"[{low}, {high}] holds no finite {info.dtype}")
        drawn = even(numbers, *finite, info.shape).astype(dtype.numpy)
        ends = (_inward(end, dtype.numpy, i) for i, end in enumerate(finite))
        inside: Array = np.clip(drawn, *ends).astype(dtype.numpy)
        return inside
    least, greatest = (0, 1) if info.kind == "bool" else integer_range(info.dtype)
    if low > greatest or high < least:
        raise fail("model.range", f"[{low}, {high}] holds no {info.dtype}")
    # The type's own ends first: a range may be infinite, and no whole number is.
    whole = (math.ceil(max(low, least)), math.floor(min(high, greatest)))
    if whole[0] > whole[1]:
        raise fail("model.range", f"[{low}, {high}] holds no {info.dtype}")
    if info.kind == "bool":
        return numbers.integers(*whole, size=info.shape, endpoint=True).astype(bool)
    wide = np.uint64 if greatest > 2**63 - 1 else np.int64
    counted = numbers.integers(whole[0], whole[1], size=info.shape, endpoint=True, dtype=wide)
    return counted.astype(dtype.numpy)


def _inward(end: float, dtype: np.dtype[Any], upper: int) -> Any:
    """The last number of a type that is still inside a range's end."""
    number = np.asarray(end).astype(dtype)
    beyond = float(number) > end if upper else float(number) < end
    return (
        np.nextafter(number, np.asarray(0 if abs(end) else (-1 if upper else 1), dtype))
        if beyond
        else number
    )


def inputs(graph: Graph, seed: int, given: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """A value for every input: the given ones, checked, and drawn ones for the rest."""
    given = dict(given or {})
    for name in given:
        if name not in graph.inputs:
            known = ", ".join(graph.inputs) or "none"
            raise fail("run.input", f"the model has no input `{name}`", help=f"its inputs: {known}")
    found = {}
    for name, port in graph.inputs.items():
        if name in given:
            found[name] = accept(name, port, given[name])
        else:
            found[name] = draw(port.info, port.within, seed, name)
    return found


def accept(name: str, port: Port | Param, array: Array) -> Array:
    """An array from outside as the value of `name`; raises where it does not fit."""
    info = port.info
    dtype = DTYPES[info.dtype]
    if array.shape != info.shape:
        message = f"`{name}` is {info}; the array has shape {list(array.shape)}"
        raise fail("run.shape", message, port.span)
    if array.dtype != dtype.numpy:
        if not np.can_cast(array.dtype, dtype.numpy, "same_kind") and array.dtype.kind not in "iub":
            raise fail("run.dtype", f"`{name}` is {info}; the array is {array.dtype}", port.span)
        with np.errstate(over="ignore", invalid="ignore"):
            cast = array.astype(dtype.numpy)
        before, after = array.astype(np.float64), cast.astype(np.float64)
        if dtype.kind == "real":  # which rounds what it has no number for
            fits = np.array_equal(np.isinf(before), np.isinf(after))
        else:
            fits = np.array_equal(before, after, equal_nan=True)
        if not fits:
            raise fail(
                "run.dtype", f"`{name}` is {info}; values of {array.dtype} do not fit", port.span
            )
        array = cast
    if port.within is not None and array.size:
        low, high = port.within
        outside = beyond(array, port.within)
        if outside.any():
            at = tuple(int(i) for i in np.argwhere(outside)[0])
            message = (
                f"`{name}` is declared in [{low:g}, {high:g}]; element {list(at)} is {array[at]}"
            )
            raise fail("run.range", message, port.span)
    return array


def beyond(array: Array, within: tuple[float, float]) -> Array:
    """Where numbers are outside a range; NaN is. A range of one number that a type does not have is
    the nearest that it has.
    """
    low, high = within
    numbers = array.astype(np.float64)
    found = ~((numbers >= low) & (numbers <= high))
    if low == high and array.dtype.kind not in "iub":
        found &= numbers != np.float64(array.dtype.type(low))
    return found


def initial_values(graph: Graph, seed: int) -> dict[str, Array]:
    """A value for every parameter, in its own type."""
    return {name: _initial(graph, name, param, seed) for name, param in graph.params.items()}


def _initial(graph: Graph, name: str, param: Param, seed: int) -> Array:
    info, initial = param.info, param.initial
    if initial is None:
        return draw(info, param.within, seed, name)
    dtype = DTYPES[info.dtype].numpy
    own = seed if initial.seed is None else initial.seed
    with np.errstate(over="ignore", invalid="ignore"):
        if initial.kind == "constant":
            value = np.full(info.shape, _number(initial.args[0]), dtype=dtype)
        elif initial.kind == "literal":
            value = np.array(_numbers(initial.args), dtype=dtype).reshape(info.shape)
        elif initial.kind == "uniform":
            low, high = map(float, initial.args)
            value = even(generator(own, name), low, high, info.shape).astype(dtype)
        elif initial.kind == "normal":
            mean, deviation = map(float, initial.args)
            value = generator(own, name).normal(mean, deviation, size=info.shape).astype(dtype)
        elif initial.kind == "array":
            value = initial.args[0]
        else:
            value = stored(graph.folder, *initial.args, span=param.span)
    return accept(name, param, value)


def _number(value: Any) -> Any:
    return value if isinstance(value, (bool, int)) else float(value)


def _numbers(value: Any) -> Any:
    return [_numbers(item) for item in value] if isinstance(value, tuple) else _number(value)


def stored(folder: str, file: str, key: str, *, span: Span) -> Array:
    """A tensor of a safetensors file in the model's folder."""
    from safetensors import SafetensorError, safe_open

    root = Path(folder).resolve()
    try:
        path = (root / file).resolve()
        there = path.is_file()
    except (OSError, RuntimeError, ValueError):  # too long a name, a circle of links
        raise fail("data.path", f'"{file[:80]}" is no name of a file', span) from None
    if not path.is_relative_to(root):
        raise fail("data.path", f'"{file}" lies outside the folder of the model', span)
    if not there:
        raise fail("data.file", f'there is no file "{file}" beside the model', span)
    try:
        with safe_open(str(path), framework="numpy") as tensors:
            if key not in tensors.keys():  # noqa: SIM118 -- not a mapping
                raise fail("data.key", f'"{file}" has no tensor "{key}"', span)
            array: Array = tensors.get_tensor(key)
            return array
    # AttributeError: a type, as those of eight bits, that NumPy has not
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise fail("data.file", f'"{file}" cannot be read: {error}', span) from None


def load_npy(path: str) -> Array:
    """An array from a `.npy` file."""
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(6)
            if start.startswith(_ARCHIVE):
                raise fail("file.npy", f"{path} holds an archive, not one array")
            if start != _ARRAY:
                raise fail("file.npy", f"{path} is no .npy file: it does not begin like one")
            stream.seek(0)
            array: Array = np.load(stream, allow_pickle=False)
            return array
    except _BROKEN as error:
        said = str(error).partition("\n")[0][:_SAID]
        raise fail("file.npy", f"{path} cannot be read as a .npy file: {said}") from None
