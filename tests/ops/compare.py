"""Evaluates an operator in every meaning that gives values, and holds the values to others'.

The bound is derived: an evaluation in float64 with n operations on numbers of size `magnitude` is
off by at most n units of 4 ulp each (libraries' functions are that good) from the true value; two
such evaluations by twice that.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from irlang import equations as eq
from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import exact, reference

Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Array | tuple[Array, ...]]
ULP = 2.0**-52
_TINY = 2.0**-1000  # below it float64 loses digits, which no definition is about
_NAMES = {dtype.numpy: name for name, dtype in DTYPES.items()}


def exactly(expansion: eq.Expansion, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """The exact meaning, its reals rounded once."""
    return {name: t.numpy() for name, t in exact.evaluate(expansion, inputs).items()}


MEANINGS: dict[str, Callable[..., dict[str, Array]]] = {
    "exact": exactly,
    "reference": reference.evaluate,
}


def info(array: Array) -> TensorInfo:
    """The type of an array."""
    return TensorInfo(array.shape, _NAMES[array.dtype])


def expansion(op: str, inputs: Tensors, **attrs: Any) -> eq.Expansion:
    """The equations of a call, which must fit."""
    catalog = builtin()
    definition = catalog.op(op)
    assert definition is not None, f"there is no operator {op}"
    given = {
        name: tuple(map(info, value)) if isinstance(value, tuple) else info(value)
        for name, value in inputs.items()
    }
    instance = instantiate(definition, given, attrs)
    assert not instance.faults, instance.faults
    return expand(instance, catalog)


def feeds(inputs: Tensors) -> dict[str, Array]:
    """The inputs by the names that an expansion has for them."""
    found: dict[str, Array] = {}
    for name, value in inputs.items():
        if isinstance(value, tuple):
            found.update({f"{name}[{i}]": member for i, member in enumerate(value)})
        else:
            found[name] = value
    return found


def results(op: str, inputs: Tensors, **attrs: Any) -> dict[str, list[Array]]:
    """The results of a call in every meaning."""
    equations = expansion(op, inputs, **attrs)
    values = feeds(inputs)
    found = {}
    for name, evaluate in MEANINGS.items():
        tensors = evaluate(equations, values)
        found[name] = [tensors[output] for output in equations.outputs]
    return found


def agrees(
    op: str,
    inputs: Tensors,
    expected: Any,
    *,
    operations: int = 1,
    magnitude: Any = 0.0,
    **attrs: Any,
) -> None:
    """Every meaning gives the expected results (a list for several).

    operations: how many roundings an element may have seen; magnitude: the size of the numbers that
    were rounded, where that is larger than the result. Integers and booleans must be equal.
    """
    wanted = expected if isinstance(expected, list) else [expected]
    for meaning, got in results(op, inputs, **attrs).items():
        assert len(got) == len(wanted)
        for actual, right in zip(got, wanted, strict=True):
            right = np.asarray(right)
            told = f"{op} {attrs}, {meaning}: {actual} is not {right}"
            assert actual.shape == right.shape, told
            assert _close(actual, right, operations, magnitude), told


def _close(actual: Array, right: Array, operations: int, magnitude: Any) -> bool:
    if right.dtype.kind != "f":
        if right.dtype == np.uint64:  # the oracle keeps the 64 bits as a signed number
            actual = actual.astype(np.uint64)
        return bool(np.array_equal(actual, right))
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(right), np.abs(magnitude))
        bound = 8 * operations * ULP * size + _TINY
        same = (actual == right) | (np.isnan(actual) & np.isnan(right))
        near = np.isfinite(right) & (np.abs(actual - right) <= bound)
        return bool(np.all(same | near))


def left_open(op: str, inputs: Tensors, **attrs: Any) -> Array | None:
    """Where the definition gives no verdict on its only result; None if it does everywhere."""
    masks = all_left_open(op, inputs, **attrs)
    if not masks:
        return None
    (mask,) = masks
    return mask


def all_left_open(op: str, inputs: Tensors, **attrs: Any) -> list[Array]:
    """The same of each result of which the definition leaves something open."""
    equations = expansion(op, inputs, **attrs)
    found = []
    for mask in equations.unspecified:
        asked = eq.Equation("mask", mask.binders, mask.body, mask.info)
        tensors = {**equations.tensors, "mask": mask.info}
        inner = eq.Expansion(equations.inputs, ("mask",), (*equations.equations, asked), tensors)
        found.append(exactly(inner, feeds(inputs))["mask"])
    return found


# ---- what is drawn ----------------------------------------------------------------------------

SPECIAL = (np.nan, np.inf, -np.inf)


def shapes(least: int = 0, most: int = 3, low: int = 0, high: int = 3) -> st.SearchStrategy[Any]:
    """Shapes of `least` to `most` axes, sizes from `low` to `high`."""
    return hnp.array_shapes(min_dims=least, max_dims=most, min_side=low, max_side=high)


def reals(
    shape: Any, low: float = -6.0, high: float = 6.0, special: bool = False
) -> st.SearchStrategy[Any]:
    """Arrays of float64, ties and whole numbers among them; one zero, as in the reals.

    None so small that its square underflows: what float64 loses there no definition is about.
    """
    steps = st.integers(int(np.ceil(4 * low)), int(np.floor(4 * high))).map(lambda n: n / 4)
    values = st.floats(low, high).map(lambda v: v if abs(v) > 1e-60 else 0.0)
    both = steps | values | st.sampled_from(SPECIAL) if special else steps | values
    return hnp.arrays(np.float64, shape, elements=both)


def integers(shape: Any, dtype: Any, low: int, high: int) -> st.SearchStrategy[Any]:
    """Arrays of an integer type, `high` included."""
    return hnp.arrays(dtype, shape, elements=st.integers(low, high))


def booleans(shape: Any) -> st.SearchStrategy[Any]:
    """Arrays of booleans."""
    return hnp.arrays(np.bool_, shape)


def broadcasting(count: int, most: int = 3) -> st.SearchStrategy[Any]:
    """Shapes that broadcast, and what they broadcast to."""
    return hnp.mutually_broadcastable_shapes(
        num_shapes=count, min_dims=0, max_dims=most, min_side=0, max_side=3
    )
