"""Calls of every definition (`adjoint_calls.txt`) and their derivatives as central differences of
the exact meaning, to which adjoints are held.

One random direction sees every partial derivative. The difference quotient is taken at 40 digits
with steps h and 2 h, whose difference bounds its own error (h² f''' / 6 against 4 h² f''' / 6);
the constants in derivative texts are doubles, so that a relative error of a few 2**-53 is theirs.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from irlang import ast
from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.catalog import builtin
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import exact, rounding, vector
from irlang.interp.balls import Ball
from irlang.interp.plain import load

DIGITS = 40
STEP = 12  # h = 10**-12
_TEXT = Path(__file__).with_name("adjoint_calls.txt").read_text("utf-8")
LINES = [line for line in _TEXT.splitlines() if not line.startswith("#")]
CHOICES_LIMIT = 24
MANY = 6  # choices, of which one is tried with one line of an operator that has many combinations


def value(text: str) -> Any:
    if text.startswith("["):
        return tuple(int(part) for part in text[1:-1].split(","))
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def drawn(text: str, rng: np.random.Generator, ends: tuple[float, float]) -> tuple[str, Any]:
    kind, _, shape = text.rpartition(":")
    sizes = tuple(int(n) for n in shape.split(",") if n)
    if kind == "b":
        return "bool", np.asarray(rng.random(sizes) < 0.8)
    if kind:
        numbers = rng.integers(0, int(kind[1:]), sizes)
        return ("u8", numbers.astype(np.uint8)) if kind[0] == "u" else ("i64", numbers)
    return "f64", rng.uniform(*ends, sizes)


def case(line: str) -> tuple[ast.Op, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Operator, types, values by name in the expansion, attributes."""
    rng = np.random.default_rng(zlib.crc32(line.encode()))
    head, _, ends = line.partition(" in ")
    call, _, attributes = head.partition(";")
    name, *inputs = call.split()
    low, high = (float(e) for e in ends.split(",")) if ends else (-1.5, 1.5)
    op = builtin().op(name)
    assert op is not None, name
    types: dict[str, Any] = {}
    values: dict[str, Any] = {}
    families = {i.name for i in op.inputs if i.family}
    for given in inputs:
        formal, _, text = given.partition("=")
        members = [drawn(part, rng, (low, high)) for part in text.split("/")]
        infos = tuple(eq.TensorInfo(array.shape, dtype) for dtype, array in members)
        types[formal] = infos if formal in families else infos[0]
        for position, (_, array) in enumerate(members):
            values[f"{formal}[{position}]" if formal in families else formal] = array
    attrs = {k: value(v) for k, _, v in (part.partition("=") for part in attributes.split())}
    return op, types, values, attrs


def smaller(line: str) -> list[str]:
    """The lines of the same operator that have fewer numbers, or come before."""

    def size(at: int) -> tuple[int, int]:
        return sum(np.size(array) for array in case(LINES[at])[2].values()), at

    same = [at for at, other in enumerate(LINES) if other.split()[0] == line.split()[0]]
    return [LINES[at] for at in same if size(at) < size(LINES.index(line))]


@functools.cache
def chosen(line: str) -> tuple[dict[str, Any], ...]:
    """Every choice of every enum and truth value that fits.

    Where there are many combinations each choice is tried by itself, and those of an enum that has
    many, as that of an activation, with the smallest call of the operator that they fit.
    """
    op, types, _, attrs = case(line)
    choices: list[list[tuple[str, Any]]] = []
    for attr in op.attrs:
        if attr.name not in attrs and attr.type.kind == "enum":
            choices.append([(attr.name, choice) for choice in attr.type.choices])
        elif attr.name not in attrs and attr.type.name == "bool":
            choices.append([(attr.name, False), (attr.name, True)])
    combined = [dict(pairs) for pairs in itertools.product(*choices)]
    if len(combined) > CHOICES_LIMIT:
        before = [one for other in smaller(line) for one in chosen(other)]
        combined = [
            dict([pair])
            for pairs in choices
            for place, pair in enumerate(pairs)
            if not place or len(pairs) <= MANY or dict([pair]) not in before
        ]
    return tuple(one for one in combined if not instantiate(op, types, {**attrs, **one}).faults)


def variants(line: str) -> Iterator[tuple[dict[str, Any], eq.Expansion]]:
    """The call with every choice of every enum and truth value."""
    op, types, _, attrs = case(line)
    for one in chosen(line):
        yield one, expand(instantiate(op, types, {**attrs, **one}), builtin())


def moved(array: Any, direction: Any, step: Any) -> Any:
    """`array + step * direction` in the precision at hand."""
    result = np.empty(array.shape, dtype=object)
    for at in np.ndindex(array.shape):
        result[at] = mpmath.mpf(float(array[at])) + step * mpmath.mpf(float(direction[at]))
    return result


def along(
    expansion: eq.Expansion,
    values: Mapping[str, Any],
    direction: Mapping[str, Any],
    weights: Mapping[str, Any],
) -> tuple[Any, Any]:
    """The derivative of the weighted sum of outputs along a direction, and a bound of its error."""
    found = []
    for times in (1, 2):
        sums = []
        for sign in (1, -1):
            step = sign * times * mpmath.mpf(10) ** -STEP
            there = {n: moved(values[n], direction[n], step) for n in direction}
            tensors = exact.evaluate(expansion, {**values, **there}, DIGITS)
            total = mpmath.mpf(0)
            for name, weight in weights.items():
                flat = np.asarray(weight).reshape(-1).tolist()
                for w, y in zip(flat, tensors[name].values, strict=True):
                    total += mpmath.mpf(w) * y
            sums.append(total)
        found.append((sums[0] - sums[1]) / (2 * times * mpmath.mpf(10) ** -STEP))
    return found[0], abs(found[1] - found[0]) + mpmath.mpf(10) ** (STEP - DIGITS + 4)


@dataclass(frozen=True)
class Quotient:
    """A call, and its derivative in one direction; weights: of the sum of its results."""

    expansion: eq.Expansion
    values: dict[str, Any]
    weights: dict[str, Any]
    direction: dict[str, Any]
    expected: Any
    error: Any


def quotient(expansion: eq.Expansion, values: dict[str, Any], rng: np.random.Generator) -> Quotient:
    real = [n for n in expansion.inputs if expansion.tensors[n].kind == "real"]
    results = [n for n in expansion.outputs if expansion.tensors[n].kind == "real"]
    weights = {n: rng.uniform(-1, 1, expansion.tensors[n].shape) for n in results}
    direction = {name: rng.uniform(-1, 1, values[name].shape) for name in real}
    with mpmath.workdps(DIGITS):
        found = along(expansion, values, direction, weights)
    return Quotient(expansion, values, weights, direction, *found)


@functools.cache
def first(line: str) -> Quotient:
    """Of the first variant of a line."""
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 1)
    return quotient(next(variants(line))[1], case(line)[2], rng)


def backward_of(one: Quotient, prefix: str, ties: str) -> tuple[eq.Expansion, dict[str, Any]]:
    """The adjoint, and values of its inputs."""
    given = {**one.values, **{prefix + name: weight for name, weight in one.weights.items()}}
    return adjoint(one.expansion, ties=ties, prefix=prefix), given


def checked(
    one: Quotient, prefix: str = "d_", ties: str = "first", *, rounded: bool = True
) -> None:
    """Holds the adjoint to the difference quotient, and what it is in f64 to its radius."""
    backward, given = backward_of(one, prefix, ties)
    assert backward.outputs == tuple(prefix + n for n in one.direction)
    with mpmath.workdps(DIGITS):
        gradients = exact.evaluate(backward, given, DIGITS)
        terms = [
            mpmath.mpf(v) * g
            for name, along_it in one.direction.items()
            for v, g in zip(
                along_it.reshape(-1).tolist(), gradients[prefix + name].values, strict=True
            )
        ]
        bound = one.error + mpmath.mpf(2) ** -48 * sum(map(abs, terms))
        assert abs(sum(terms) - one.expected) <= bound
    if not rounded:
        return
    feeds = {n: load(backward.tensors[n], a) for n, a in given.items()}
    plain = vector.evaluate(backward, feeds)
    balls = rounding.evaluate(backward, {n: Ball(a) for n, a in feeds.items()}, "f64")
    for name in backward.outputs:
        true = gradients[name].numpy()
        # twice: `plain` and the exact constants of derivative texts are each within a radius
        assert np.all(np.isfinite(balls[name].bound)), name
        assert np.all(np.abs(plain[name] - true) <= 2 * balls[name].bound), name


def call(
    name: str, types: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
) -> eq.Expansion:
    op = builtin().op(name)
    assert op is not None
    instance = instantiate(op, types, attrs or {})
    assert not instance.faults
    return expand(instance, builtin())
