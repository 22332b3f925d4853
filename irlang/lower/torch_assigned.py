"""PyTorch's further words that assign parts of a tensor, or copy into a view of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irlang.lower.call import Call, Native, Rule
from irlang.lower.legalise import filling
from irlang.lower.spelling import invoke, text_of
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def room(call: Torch, number: int = 0) -> str:
    """A tensor of a result's type, whose axes lie in memory in another order where tensors do."""
    info = call.outputs[number]
    shape, rank = info.shape, len(info.shape)
    dtype = call.build.dtype(info.dtype)
    if not call.build.strided or rank < 2:
        return invoke("torch.empty", shape, dtype=dtype)
    made = invoke("torch.empty", tuple(reversed(shape)), dtype=dtype)
    return f"{made}.permute({', '.join(map(str, reversed(range(rank))))})"


def _place(shape: Sequence[int], axis: int, text: str) -> str:
    """A subscript at one axis."""
    return ", ".join((*[":"] * axis, text)) if shape else "..."


def valid(rule: Rule) -> Rule:
    """Of valid calls alone: what is copied or assigned is broadcast, and would make of others
    another program.
    """
    return lambda call: None if call.node.instance.faults else rule(call)


def _made(call: Torch, number: float | None = None) -> Value:
    """A tensor for the result, of some number or of none in particular."""
    text = room(call)
    if number is not None:
        text = f"{text}.fill_({text_of(number)})"
    return call.build.once(text, call.out.shape, call.out.dtype, "y")


def _filled(call: Torch, lines: Sequence[str], y: Value) -> Value:
    call.build.lines += lines
    return y


def _joined(call: Torch) -> Value:
    """Part after part."""
    values = [call.build.solid(value) for value in call.family("xs")]
    axis, y = call.axis("axis", values[0].rank), _made(call)
    lines, first = [], 0
    for value in values:
        end = first + value.shape[axis]
        place = _place(value.shape, axis, f"{first}:{end}")
        lines.append(f"{y.text}[{place}] = {value.text}")
        first = end
    return _filled(call, lines, y)


def _stacked(call: Torch) -> Value:
    values = [call.build.solid(value) for value in call.family("xs")]
    axis, y = call.axis("axis", len(call.out.shape)), _made(call)
    pairs = enumerate(values)
    return _filled(
        call, [f"{y.text}.select({axis}, {n}).copy_({value.text})" for n, value in pairs], y
    )


def _padded(call: Torch) -> Value | None:
    """Into the middle of a tensor of the number that is around it."""
    x, before, after = call.input("x"), call["before"], call["after"]
    below = any(amount < 0 for amount in (*before, *after))
    if call["mode"] != "constant" or below or not x.rank:
        return None
    number = filling(call)
    y = _made(call, bool(number) if call.out.dtype == "bool" else number)
    ends = zip(before, x.shape, strict=True)
    place = ", ".join(f"{first}:{first + size}" for first, size in ends)
    return _filled(call, [f"{y.text}[{place}] = {x.text}"], y)


def _slices(call: Torch) -> Value | None:
    """Any of them, as they are written to."""
    x, update = call.input("x"), call.input("update")
    if x.rank != update.rank or not x.rank:
        return None
    places = []
    for first, step, size in zip(call["begin"], call["step"], update.shape, strict=True):
        end = first + (size - 1) * step + 1 if size else first
        places.append(f"{first}:{end}" + (f":{step}" if step != 1 else ""))
    y = call.build.apart(x, "y")
    return _filled(call, [f"{y.text}[{', '.join(places)}] = {update.text}"], y)


def _diagonal(call: Torch) -> Value:
    y = call.build.apart(call.input("x"), "y")
    where = invoke("diagonal", call["offset"], -2, -1)
    return _filled(call, [f"{y.text}.{where}.copy_({call.text('diagonal')})"], y)


def _embedded(call: Torch) -> Value:
    """On a diagonal of zeros."""
    x, y = call.input("x"), _made(call, 0)
    first, second = call.axes_said("axes", x.rank + 1)
    where = invoke("diagonal", call["offset"], first, second)
    return _filled(call, [f"{y.text}.{where}.copy_({x.text})"], y)


def _band(call: Torch) -> Value | None:
    x = call.input("x")
    if call["lower"] < 0 and call["upper"] < 0:
        return None
    text = f"{call.build.inner(x)}.clone()"
    text += f".tril_({call['upper']})" if call["upper"] >= 0 else ""
    return call.value(text + (f".triu_({-call['lower']})" if call["lower"] >= 0 else ""))


def masked(call: Torch) -> Value | None:
    """What holds a place where a condition holds gets one number."""
    condition, a, b = (call.values[name] for name in ("condition", "a", "b"))
    b = call.build.solid(b)
    if a.shape or b.shape != call.out.shape or condition.literal is not None:
        return None
    return call.value(f"{call.build.inner(b)}.clone().masked_fill_({condition.text}, {a.text})")


def scattered(call: Torch) -> Value | None:
    """From those that are told, one after the other, where the condition holds."""
    condition, a, b = (call.build.solid(call.values[name]) for name in ("condition", "a", "b"))
    if not call.out.shape == condition.shape == a.shape == b.shape or not a.rank:
        return None
    text = f"{call.build.inner(b)}.clone()"
    picked = invoke("torch.masked_select", a, condition)
    return call.value(f"{text}.masked_scatter_({condition.text}, {picked})")


def _copied(view: Callable[[Torch, Value], str | None]) -> Callable[[Torch], Value | None]:
    """Into a tensor, by a view of it; None where there is none."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        seen = view(call, x)
        if seen is None:
            return None
        y = _made(call)
        return _filled(call, [f"{y.text}{seen}.copy_({x.text})"], y)

    return rule


def _turned(call: Torch, _: Value) -> str | None:
    order = tuple(call["order"])
    back = tuple(order.index(axis) for axis in range(len(order)))
    return f".permute({back})" if order else None


def _reshaped(call: Torch) -> Value:
    """Into a view that has the shape that was."""
    x = call.input("x")
    dtype = call.build.dtype(x.dtype)
    y = call.build.once(
        invoke("torch.empty", call.out.shape, dtype=dtype), call.out.shape, x.dtype, "y"
    )
    return _filled(call, [f"{y.text}.view({tuple(x.shape)}).copy_({x.text})"], y)


def _reversed(call: Torch) -> Value | None:
    """From the other end, element by element along one axis of few."""
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if len(axes) != 1 or not 1 <= x.shape[axes[0]] <= _FEW:
        return None
    (axis,), y, size = axes, _made(call), x.shape[axes[0]]
    inner = call.build.inner(x)
    lines = [
        f"{y.text}.select({axis}, {n}).copy_({inner}.select({axis}, {size - 1 - n}))"
        for n in range(size)
    ]
    return _filled(call, lines, y)


def _rolled(call: Torch) -> Value | None:
    """In two parts, along one axis."""
    x = call.input("x")
    axes, shifts = call.axes("axes", x.rank), tuple(call["shift"])
    if len(axes) != 1 or not x.shape[axes[0]]:
        return None
    (axis,), size, y = axes, x.shape[axes[0]], _made(call)
    by = shifts[0] % size
    inner = call.build.inner(x)
    lines = [
        f"{y.text}.narrow({axis}, {to}, {many}).copy_({inner}.narrow({axis}, {source}, {many}))"
        for to, source, many in ((by, 0, size - by), (0, size - by, by))
        if many
    ]
    return _filled(call, lines, y)


_FEW = 8  # elements that are written one after the other
ASSIGNED: dict[str, Native] = {
    "concat": Native("y[...] = x", _joined),
    "stack": Native("Tensor.copy_", _stacked),
    "pad": Native("y[...] = x", _padded),
    "slice_update": Native("y[...] = x", _slices),
    "set_diagonal": Native("Tensor.copy_", _diagonal),
    "diag_embed": Native("Tensor.copy_", _embedded),
    "band_part": Native("Tensor.tril_, Tensor.triu_", _band),
    "broadcast_to": Native("Tensor.copy_", _copied(lambda _call, _x: "")),
    "cast": Native("Tensor.copy_", _copied(lambda _call, _x: "")),
    "transpose": Native("Tensor.copy_", _copied(_turned)),
    "reshape": Native("Tensor.copy_", _reshaped),
    "reverse": Native("Tensor.copy_", _reversed),
    "roll": Native("Tensor.copy_", _rolled),
}
