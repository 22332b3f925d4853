"""Element types, and tensors of constants: what makes elements without reading any."""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.sizes import is_open
from irlang.importers.torch_call import Call, Rule, Uncovered, Value


def _to(c: Call) -> Value:
    return c.cast(c.tensor("self"), c.out)


def _filled(value: Any = None, name: str = "fill_value") -> Rule:
    """zeros, ones, full and their like: one number everywhere."""

    def rule(c: Call) -> Value:
        number = c.get(name) if value is None else value
        if isinstance(number, Value):
            return c.broadcast(c.reshape(c.cast(number, c.out), []), c.result().shape)
        return c.param(number, c.result().shape, c.out)

    return rule


def _undefined(c: Call) -> Value:
    if 0 in c.result().shape:
        return c.param(0, c.result().shape, c.out)
    raise Uncovered("its elements are whatever was in memory")


def counted(c: Call, size: int, dtype: str) -> Value:
    """0, 1, 2, …"""
    if is_open(size):
        ones = c.param(1, (size,), dtype)
        return c("cumsum", ones, axis=0, exclusive=True)
    return c.param(np.arange(int(size)).astype(DTYPES[dtype].numpy))


def _arange(c: Call) -> Value:
    first, step = c.get("start", 0), c.get("step", 1)
    size = c.result().shape[0]
    if is_open(size) or is_open(first) or is_open(step):
        places = counted(c, size, c.out)
        if step != 1:
            places = c("multiply", places, step)
        return c("add", places, first) if first != 0 else places
    numbers = np.array([first + i * step for i in range(int(size))])
    return c.param(numbers.astype(DTYPES[c.out].numpy))


def _spaced(base: bool) -> Rule:
    def rule(c: Call) -> Value:
        first, last = c.number("start"), c.number("end")
        size = int(c.result().shape[0])
        step = (last - first) / (size - 1) if size > 1 else 0.0
        if c.out[0] in "iu" and not base:
            step_ = step
            half = size // 2
            values = [
                first + step_ * i if i < half else last - step_ * (size - 1 - i)
                for i in range(size)
            ]
            return c.param(np.trunc(np.array(values)).astype(DTYPES[c.out].numpy))
        values = [first + i * step for i in range(size)]
        if base:
            values = [float(c.number("base", 10.0)) ** v for v in values]
        array = np.array(values, np.float64)
        return c.param((np.trunc(array) if c.out[0] in "iu" else array).astype(DTYPES[c.out].numpy))

    return rule


def _eye(c: Call) -> Value:
    rows, columns = (int(n) for n in c.result().shape)
    return c.param(np.eye(rows, columns).astype(DTYPES[c.out].numpy))


def _triangle_places(upper: bool) -> Rule:
    def rule(c: Call) -> Value:
        shape = (c.whole("row"), c.whole("col"))
        if max(shape) > 4096:
            raise Uncovered("it is too large to be written out")
        full = np.ones(shape, bool)
        k = c.whole("offset", 0)
        found = np.nonzero(np.triu(full, k) if upper else np.tril(full, k))
        return c.param(np.stack(found).astype(DTYPES[c.out].numpy))

    return rule


def _size(c: Call) -> Any:
    x = c.tensor("self")
    return x.shape[c.axis("dim", x.rank)]


def _item(c: Call) -> Any:
    return c.number("self")


def _fill(c: Call) -> Value:
    x, value = c.tensor("self"), c.get("value")
    if isinstance(value, Value):
        return c.broadcast(c.cast(value, x.dtype), x.shape)
    return c.param(value, x.shape, x.dtype)


def _copy(c: Call) -> Value:
    x = c.tensor("self")
    return c.broadcast(c.cast(c.tensor("src"), x.dtype), x.shape)


CONSTANTS: dict[str, Rule] = {
    "to": _to,
    "_to_copy": _to,
    "type_as": _to,
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero"), _filled(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _filled(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), _filled()),
    "scalar_tensor": _filled(None, "s"),
    **dict.fromkeys(
        (
            *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"),
            "empty_permuted",
        ),
        _undefined,
    ),
    "fill": _fill,
    "copy": _copy,
    "arange": _arange,
    "linspace": _spaced(False),
    "logspace": _spaced(True),
    "eye": _eye,
    "tril_indices": _triangle_places(False),
    "triu_indices": _triangle_places(True),
    "sym_size": _size,
    "item": _item,
    "_local_scalar_dense": _item,
}
