"""Rules that are one call of a function: what tables of Python targets are mostly made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from irlang.dtypes import DTYPES
from irlang.listed import is_listed
from irlang.lower.call import Call, Native
from irlang.lower.python_builder import literal
from irlang.lower.value import Value

_WIDE = ("f32", "f64")


def text_of(value: Any) -> str:
    """An argument of a call as Python text; values by their expressions."""
    if isinstance(value, Value):
        return value.text
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(text_of, value))}{',' * (len(value) == 1)})"
    if value is None or isinstance(value, bool) or is_listed(value):
        return str(value)
    return literal(value if isinstance(value, int) else float(value))


def invoke(function: str, *arguments: Any, **options: Any) -> str:
    """`function(a, b, option=c)`; options that are None are left out."""
    given = [text_of(argument) for argument in arguments]
    given += [f"{key}={text_of(value)}" for key, value in options.items() if value is not None]
    return f"{function}({', '.join(given)})"


def named(call: Call[Any], text: str) -> list[Value]:
    """What gives all results at once, each under its name."""
    names = call.build.several(text, *call.node.outputs)
    return [Value(n, info.shape, info.dtype) for n, info in zip(names, call.outputs, strict=True)]


def plain(function: str, **attributes: str) -> Native:
    """A function of the inputs in their order, with attributes under the framework's names."""

    def rule(call: Call[Any]) -> Value:
        options = {key: call[name] for key, name in attributes.items()}
        values = [call.build.full(value) for value in call.values.values()]
        return call.value(invoke(function, *values, **options))

    return Native(function, rule)


def with_words(
    table: Mapping[str, Native], *words: Mapping[str, Native | tuple[Native, ...]]
) -> dict[str, Native]:
    """A table with further words for its operators, and rows for those that it has none for."""
    found = dict(table)
    for name, given in ((name, given) for one in words for name, given in one.items()):
        first, *rest = given if isinstance(given, tuple) else (given,)
        own = found.get(name)
        kept = (first, *rest) if own is None else (own, *own.others, first, *rest)
        found[name] = replace(kept[0], others=kept[1:])
    return found


def with_others(row: Native, *others: Native) -> Native:
    """A row with further words."""
    return replace(row, others=(*row.others, *others))


def functions(listed: str) -> list[tuple[str, str]]:
    """Operators, each with the name of its function: `negate=neg abs`; mostly it is the same."""
    pairs = (item.partition("=") for item in listed.split())
    return [(name, function or name) for name, _, function in pairs]


def of_vectors(function: str) -> Native:
    """A function of `a` and `b`, which takes tensors of other ranks for long vectors."""

    def rule(call: Call[Any]) -> Value | None:
        a, b = call.input("a"), call.input("b")
        return call.value(invoke(function, a, b)) if a.rank == b.rank == 1 else None

    return Native(function, rule)


def turned(function: str) -> Native:
    """A rotation by quarters, in a plane of two axes."""

    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        return call.value(invoke(function, x, k=call["k"], axes=call.axes_said("axes", x.rank)))

    return Native(function, rule)


def exchanged(swap: str, move: str = "") -> Native:
    """A transposition of two axes that are exchanged, or of one that is moved, if there is a
    function for that.
    """

    def rule(call: Call[Any]) -> Value | None:
        x, order = call.input("x"), tuple(call["order"])
        changed = [axis for axis, source in enumerate(order) if axis != source]
        if not changed or len(order) != x.rank:  # of other axes it is another exchange
            return None
        first, last = changed[0], changed[-1]
        if len(changed) == 2:
            return call.value(invoke(swap, x, first, last - x.rank))
        for source, target in ((first, last), (last, first)) if move else ():
            rest = [axis for axis in range(x.rank) if axis != source]
            rest.insert(target, source)
            if tuple(rest) == order:
                return call.value(invoke(move, x, source, target))
        return None

    return Native(f"{swap}, {move}" if move else swap, rule)


def joined_as_numpy(module: str) -> Native:
    """Along the first axis or the second, by functions of NumPy's that know which."""

    def rule(call: Call[Any]) -> Value | None:
        values = call.family("xs")
        rank, axis = values[0].rank, call.axis("axis", values[0].rank)
        function = {0: "vstack" if rank > 1 else "hstack", 1: "hstack", 2: "dstack"}.get(axis)
        if function is None or (axis == 2 and rank < 3) or len({v.dtype for v in values}) > 1:
            return None
        listed = ", ".join(map(call.build.full, values))
        return call.value(f"{module}.{function}([{listed}])")

    return Native(f"{module}.hstack, {module}.vstack, {module}.dstack", rule)


def differences(function: str, axis: str = "axis") -> Native:
    """Differences of neighbours, `n` times. axis: the name of the function's argument."""

    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        return call.value(
            invoke(function, x, n=call["n"], **{axis: call.axis_said("axis", x.rank)})
        )

    return Native(function, rule)


def log_add_exp(module: str) -> Native:
    """The logarithm of a sum of powers, of which a module has one function for each base."""
    found = {"e": f"{module}.logaddexp", "two": f"{module}.logaddexp2"}

    def rule(call: Call[Any]) -> Value:
        values = map(call.build.full, call.values.values())
        return call.value(invoke(found[call["base"]], *values))

    return Native(", ".join(found.values()), rule)


def default(function: str, **attributes: Any) -> Native:
    """The same, where attributes have the only values that the function has."""

    def rule(call: Call[Any]) -> Value | None:
        if any(float(call[name]) != float(value) for name, value in attributes.items()):
            return None
        return call.value(invoke(function, *call.values.values()))

    return Native(function, rule)


def powered(
    function: str, written: Callable[[Call[Any], Value], str] = lambda _, value: value.text
) -> Native:
    """A power whose type is the base's unless the exponent's is of a wider kind.

    written: how an exponent is, beside a base that is an array.

    A number stays one beside an array, as it is written, since frameworks have ways of their own
    for numbers: `torch.pow` takes a root for 0.5, `jnp.power` multiplies for a whole exponent that
    is written without a point.
    """

    def rule(call: Call[Any]) -> Value | None:
        a, b = (call.values[name] for name in "ab")
        if a.dtype != b.dtype and (DTYPES[a.dtype].kind, DTYPES[b.dtype].kind) != ("real", "int"):
            return None
        base = a.text if a.dtype == b.dtype and b.literal is None else call.build.full(a)
        exponent = written(call, b) if a.literal is None else call.build.full(b)
        return call.value(invoke(function, base, exponent))

    return Native(function, rule)


def left_open(call: Call[Any]) -> tuple[int, ...] | None:
    """What a tensor is reshaped to, the first size that is another than before being -1, for what
    is left; None where that says nothing.
    """
    before, shape = call.input("x").shape, call.out.shape
    changed = [n for n, size in enumerate(shape) if before[n : n + 1] != (size,)]
    if not changed or 0 in shape or call.node.instance.faults:
        return None
    return (*shape[: changed[0]], -1, *shape[changed[0] + 1 :])


def reshaped(function: str, listed: Callable[[tuple[int, ...]], Any] = tuple) -> Native:
    """A function of a tensor and its new shape, in which -1 is what is left: as the program has
    it, and with a size left open, as a further word. listed: how the function takes a shape.
    """

    def said(call: Call[Any]) -> Value:
        return call.value(invoke(function, call.input("x"), listed(tuple(call["shape"]))))

    def opened(call: Call[Any]) -> Value | None:
        shape = left_open(call)
        if shape is None:
            return None
        return call.value(invoke(function, call.input("x"), listed(shape)))

    return Native(function, said, others=(Native(function, opened),))


def of_rows(function: str, **attributes: str) -> Native:
    """A function of rows, two by two, that gives a number of one row."""

    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        found = invoke(function, x, **{key: call[name] for key, name in attributes.items()})
        flat = x.shape[0] == 1
        return call.build.reshape(Value(found, (), x.dtype), (1, 1)) if flat else call.value(found)

    return Native(function, rule)


def of_wide(row: Native) -> Native:
    """A row for the types that libraries of linear algebra have."""
    return replace(row, rule=lambda call: row.rule(call) if call.out.dtype in _WIDE else None)


def over_axes(
    function: str, since: tuple[int, ...] = (), axis: str = "axis", keepdims: str = "keepdims"
) -> Native:
    """A reduction over `axes`; none is named where all are meant.

    axis, keepdims: the names of the function's arguments.
    """

    def rule(call: Call[Any]) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes:
            return None
        which: Any = axes[0] if len(axes) == 1 else axes
        if not call.says("axes") and not (call["keepdims"] and axis == "dim"):
            which = None  # of all, which PyTorch keeps where they are named
        return call.value(invoke(function, x, **{axis: which, keepdims: call["keepdims"] or None}))

    return Native(function, rule, since=since)


def labelled_sequences(call: Call[Any]) -> tuple[Value, Value, Value, Value] | None:
    """Labels, logits and the lengths of both, as losses of sequences take them: f32 and i32."""
    logits = call.input("logits")
    if logits.dtype != "f32":
        return None
    labels, steps, lengths = (
        call.build.cast(call.input(name), "i32")
        for name in ("labels", "input_lengths", "target_lengths")
    )
    return labels, logits, lengths, steps
