"""How calls of Keras's layers are written; the importers of Keras have the inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.keras_builder import KerasBuilder
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Keras = Call[KerasBuilder]
KERAS_3 = (3,)


def three(row: Native) -> Native:
    """A row for what came with Keras 3, and so for its further words."""
    return replace(row, since=KERAS_3, others=tuple(map(three, row.others)))


def made(call: Keras, kind: str, *arguments: Any, **options: Any) -> str:
    """The layer itself, of the type that is computed in."""
    info = call.out
    if info.kind == "real" and info.dtype != "f32":
        options["dtype"] = call.build.dtype(info.dtype)
    return invoke(f"{call.build.keras}.layers.{kind}", *arguments, **options)


def layer(call: Keras, kind: str, *values: Value, called: str = "", **options: Any) -> str:
    """A layer without weights, called on a tensor or on a list of several."""
    whole = made(call, kind, **options)
    if call.build.backend == "theano":
        return _applied(call, whole, (), values, called)
    texts = ", ".join(value.text for value in values)
    more = f", {called}" if called else ""
    return f"{whole}([{texts}]{more})" if len(values) > 1 else f"{whole}({texts}{more})"


def _applied(
    call: Keras, made: str, weights: Sequence[Value], values: Sequence[Value | str], called: str
) -> str:
    """A call of the program's own `applied`; with Theano tensors come with their shapes."""
    listed = ", ".join(call.build.full(weight) for weight in weights)
    texts = [value if isinstance(value, str) else value.text for value in values]
    if call.build.backend == "theano":
        pairs = zip(texts, values, strict=True)
        texts = [f"({text}, {v.shape})" for text, v in pairs if isinstance(v, Value)]
    texts += [called] if called else []
    return f"applied({made}, [{listed}], {', '.join(texts)})"


def weighted(
    call: Keras,
    kind: str,
    weights: Sequence[Value],
    *values: Value | str,
    called: str = "",
    **options: Any,
) -> str:
    """A layer with weights, called; called: what else stands in the call."""
    name = call.build.names.fresh(f"{call.node.name}_layer")
    call.build.lines.append(f"{name} = {made(call, kind, **options)}")
    return _applied(call, name, weights, values, called)


def quoted(word: str) -> str:
    """A string of the program."""
    return f'"{word}"'


def sizes(numbers: Sequence[int]) -> Any:
    """One number for one axis, a tuple for several."""
    return int(numbers[0]) if len(numbers) == 1 else tuple(map(int, numbers))


def bias(call: Keras, name: str = "b") -> list[Value]:
    """The bias, in a list that is empty where there is none."""
    return [call.input(name)] if call.has(name) else []


def positions(call: Keras, name: str) -> Value:
    """Positions in a type that every backend takes: in fewer bits they would be others."""
    ids = call.input(name)
    return ids if ids.dtype in ("i32", "i64") else call.build.cast(ids, "i64")


def simple(kind: str, **attributes: str) -> Native:
    """A layer of one input, its arguments by the attributes' names."""

    def rule(call: Keras) -> Value:
        options = {key: call[name] for key, name in attributes.items()}
        return call.value(layer(call, kind, call.input("x"), **options))

    return Native(f"keras.layers.{kind}", rule)
