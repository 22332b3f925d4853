"""What a model declares: types, ranges of values, and where a parameter's value comes from.

Every function gives what is declared, or raises `InvalidInput` with what is wrong about it.
"""

from __future__ import annotations

import math
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput, Span, fail
from irlang.dtypes import DTYPES, holds, integer_range
from irlang.equations import TensorInfo
from irlang.graph import Initial
from irlang.interp.frame import Frame, at
from irlang.scope import show

DEFAULT_SIZE = 2
_INITIALISERS = {"uniform": 2, "normal": 2, "data": 2}


def tensor_type(kind: ast.TensorType, frame: Frame, *, symbolic: bool = False) -> TensorInfo:
    """The type that is written, with its sizes known; `symbolic`: a new name binds a size."""
    if kind.dtype not in DTYPES:
        message = f"there is no element type `{kind.dtype}`"
        raise fail("type.dtype", message, kind.span, help=f"one of {', '.join(DTYPES)}")
    shape: list[int] = []
    for dim in kind.dims:
        if dim.kind != "size" or dim.broadcast or dim.at is not None:
            message = (
                "`..`, `~` and `@` belong to definitions; a model's sizes are numbers or names"
            )
            raise fail("type.axis", message, dim.span)
        if symbolic and isinstance(dim.size, ast.Name) and dim.size.id not in frame.names:
            frame.names[dim.size.id] = DEFAULT_SIZE
        try:
            size = frame.number(dim.size)
        except InvalidInput as error:
            raise at(error, dim.span) from None
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            message = f"a size is a whole number, 0 or more, not {show(size)}"
            raise fail("type.size", message, dim.span)
        shape.append(size)
    info = TensorInfo(tuple(shape), kind.dtype)
    if info.too_large:
        raise fail("type.size", info.too_large, kind.span)
    return info


def interval(within: tuple[ast.Expr, ast.Expr] | None, frame: Frame) -> tuple[float, float] | None:
    """The range `in [a, b]`."""
    if within is None:
        return None
    ends = []
    for node in within:
        value = frame.number(node)
        if isinstance(value, (str, tuple)):
            raise fail(
                "model.range", f"an end of a range is a number, not {show(value)}", node.span
            )
        try:
            ends.append(float(value))
        except OverflowError:
            raise fail("model.range", "an end of the range is too large", node.span) from None
    if not ends[0] <= ends[1]:
        message = f"the range [{ends[0]:g}, {ends[1]:g}] holds no value"
        raise fail("model.range", message, within[0].span)
    return ends[0], ends[1]


def initial(node: ast.Expr, info: TensorInfo, frame: Frame) -> Initial:
    """What a parameter starts with: a number, nested lists, or an initialiser."""
    if isinstance(node, ast.Call) and node.function in _INITIALISERS:
        return _initialiser(node, frame)
    if isinstance(node, ast.Call) and not _is_function(node):
        message = f"there is no initialiser `{node.function}`"
        raise fail(
            "param.initialiser", message, node.span, help=f"one of {', '.join(_INITIALISERS)}"
        )
    value = frame.number(node)
    if isinstance(value, tuple):
        shape = _nested_shape(value, node.span)
        if 0 in shape and info.shape[: len(shape)] == shape:
            shape = info.shape  # a list of nothing says nothing of the axes inside it
        if shape != info.shape:
            message = f"the values have shape {list(shape)}; the parameter is {info}"
            raise fail("param.value", message, node.span)
        require_range(value, info, node.span)
        return Initial("literal", value)
    if isinstance(value, str):
        raise fail("param.value", "a value is a number, a list, or an initialiser", node.span)
    require_range(value, info, node.span)
    return Initial("constant", (value,))


def require_range(value: Any, info: TensorInfo, span: Span) -> None:
    """Raises `param.value` where a number does not fit the integers of a type."""
    if isinstance(value, tuple):
        for item in value:
            require_range(item, info, span)
    elif not holds(info.dtype, value):
        low, high = integer_range(info.dtype)
        message = f"{value} does not fit {info.dtype}, which holds {low} to {high}"
        raise fail("param.value", message, span)


def _is_function(node: ast.Call) -> bool:
    from irlang.known import BUILTINS, PRELUDE
    from irlang.scalar import SCALARS

    return node.function in {*BUILTINS, *PRELUDE, *SCALARS}


def _initialiser(node: ast.Call, frame: Frame) -> Initial:
    args = tuple(frame.number(arg) for arg in node.args)
    attrs = {key: frame.number(value) for key, value in node.attrs}
    seed = attrs.pop("seed", None)
    textual = node.function == "data"
    right = str if textual else (int, float)
    fit = all(isinstance(a, right) and not isinstance(a, bool) for a in map(_real, args))
    whole = seed is None or (isinstance(seed, int) and not isinstance(seed, bool))
    if len(args) != _INITIALISERS[node.function] or attrs or not fit or not whole:
        usage = f"{node.function}(0, 1; seed = 1)"
        usage = 'data("file.safetensors", "name")' if textual else usage
        raise fail("param.initialiser", f"`{node.function}` is written {usage}", node.span)
    if textual:
        return Initial(node.function, args)
    numbers = tuple(_real(a) for a in args)
    if not all(map(_finite, numbers)):
        raise fail("param.initialiser", "an initialiser takes finite numbers", node.span)
    if numbers[1] < (numbers[0] if node.function == "uniform" else 0):
        what = "ends before it begins" if node.function == "uniform" else "has a negative deviation"
        raise fail("param.initialiser", f"`{node.function}` {what}", node.span)
    return Initial(node.function, numbers, seed)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _real(value: Any) -> Any:
    """A quotient of whole numbers as a float."""
    whole = not hasattr(value, "denominator") or isinstance(value, int)
    return value if whole else float(value)


def _nested_shape(value: Any, span: Span) -> tuple[int, ...]:
    """The shape of nested lists, which must be regular and of numbers."""
    if not isinstance(value, tuple):
        if isinstance(value, str):
            raise fail("param.value", f"a value is a number, not {show(value)}", span)
        return ()
    shapes = {_nested_shape(item, span) for item in value}
    if len(shapes) > 1:
        raise fail("param.value", "the lists have different lengths", span)
    return (len(value), *(shapes.pop() if shapes else ()))
