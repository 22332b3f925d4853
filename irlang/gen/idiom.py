"""Idioms: pieces of networks that compilers and optimisers look for.

A graph optimiser is wrong where it fires, which random wiring seldom makes it do. `idioms.txt`
beside this module is the list: an expression of the language a line, over `x`, a value that the
program has, or `x_i8`, one of that type, or `x3`, one of three axes; `_` and whatever else a call
lacks is drawn as for any call. `_row` is new as well, with a number for each place along the last
axis of what it meets, and `_channel` along the second: a bias, a scale; `_row_i32` is one of that
type, as the bias of a product of bytes is. `_i8` is new and of that type. `result(CALL, 1)` is the
second result of a call; a call alone is its first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from irlang import ast
from irlang.dtypes import DTYPES, holds
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.gen.choice import Chooser
from irlang.gen.draft import Fixed, Number, Settling, Value
from irlang.gen.pattern import Slot
from irlang.parser import parse_expr
from irlang.scope import CONSTANTS, Scope

GIVEN = -1  # the operand `x`
ROW = "_row"  # an operand of the last axis of what it meets
_GIVEN = re.compile(r"x(?P<rank>\d?)(_(?P<dtype>\w+))?")
_ALONG = re.compile(r"(?P<axis>_row|_channel)(_(?P<dtype>\w+))?")
_NEW = re.compile(r"_(?P<dtype>[a-z]+\d+|bool)")
_CALLED = re.compile(r"(\w+)\(")
_RESULT = "result"  # what is written as a call, but is a result of one
# The types of numbers where that of `x` cannot be: they say places, or scales of integers.
_PLACES, _SCALES = "i64", "f32"
_NUMBERS = (0.0, 1.0, -1.0, 2.0, 3.0, 0.5)  # what a number of an idiom may be instead
_NEAR = "{:.2g}"  # a number that passes may take for the one they look for, as 0.17 for a sixth
_LAST = ((-1,),)  # as idioms name the axis that layers work along
# Times as likely as other changes: there is one axis for many calls, and a difference the other way
# round, and an axis where a number is meant, are what those that look for patterns overlook.
_MOVED = 3


class Result(NamedTuple):
    """A result of an earlier step that is not its first."""

    step: int
    place: int


class New(NamedTuple):
    """What is yet to be drawn, of an element type."""

    dtype: str


# An earlier step or `GIVEN`, a result, a number, what is along an axis, what is yet to be drawn.
Operand = int | Result | New | float | str | None
Key = int | Result  # what is known by name in an idiom that is being added

_evaluate = Evaluator()


@dataclass(frozen=True, slots=True)
class Step:
    """A call. operands: in the order of the definition's inputs, as many as are said. dtype, rank:
    of `x`, where that is said.
    """

    op: str
    operands: tuple[Operand, ...]
    attrs: Mapping[str, Any]
    dtype: str = ""
    rank: int = 0

    @property
    def numbers(self) -> list[float]:
        """The operands that are numbers."""
        return [operand for operand in self.operands if isinstance(operand, float)]

    def names(self, dtypes: Collection[str]) -> bool:
        """Whether an attribute is one of some element types."""
        return any(isinstance(value, str) and value in dtypes for value in self.attrs.values())


Idiom = tuple[Step, ...]


def idioms(names: Collection[str]) -> tuple[Idiom, ...]:
    """The idioms whose operators are all among `names`."""
    return tuple(idiom(line) for called, line in _lines() if called.issubset(names))


def is_key(operand: Operand) -> TypeGuard[Key]:
    """Whether an operand is a value that an idiom knows by now, or will."""
    return type(operand) is int or isinstance(operand, Result)


def is_new(operand: Operand) -> bool:
    """Whether an operand is yet to be drawn."""
    return operand is None or isinstance(operand, New)


def is_call(steps: Idiom) -> bool:
    """Whether an idiom is one call with some attributes, of which optimisers know nothing."""
    return len(steps) == 1 and len(steps[0].operands) < 2


@cache
def _lines() -> list[tuple[frozenset[str], str]]:
    """The expressions, each with the operators that it calls."""
    lines = Path(__file__).with_name("idioms.txt").read_text("utf-8").splitlines()
    known = [line for line in lines if line and not line.startswith("#")]
    return [(frozenset(_CALLED.findall(line)) - {_RESULT}, line) for line in known]


@cache
def idiom(text: str) -> Idiom:
    """The steps of an expression, operands first; parts that are equal are one step."""
    steps: list[Step] = []
    seen: dict[str, int] = {}

    def operand(node: ast.Expr) -> Operand:
        if isinstance(node, ast.Call):
            return result(node) if node.function == _RESULT else step(node)
        if isinstance(node, ast.Name):
            if _ALONG.fullmatch(node.id):
                return node.id
            new = _NEW.fullmatch(node.id)
            return New(new["dtype"]) if new else None if node.id == "_" else GIVEN
        return float(_evaluate.known(node, Scope({}, {}, set())))

    def result(node: ast.Call) -> Result:
        call, place = node.args
        assert isinstance(call, ast.Call), text
        return Result(step(call), int(_evaluate.known(place, Scope({}, {}, set()))))

    def step(call: ast.Call) -> int:
        operands = tuple(operand(arg) for arg in call.args)
        names = [_GIVEN.fullmatch(arg.id) for arg in call.args if isinstance(arg, ast.Name)]
        given = next((name for name in names if name), None)
        dtype, rank = (given["dtype"] or "", int(given["rank"] or 0)) if given else ("", 0)
        attrs = {key: _attribute(value) for key, value in call.attrs}
        made = Step(call.function, operands, attrs, dtype, rank)
        lacks = any(map(is_new, operands))  # what is drawn anew is another call
        key = f"{made} {len(steps)}" if lacks else str(made)
        if key not in seen:
            seen[key] = len(steps)
            steps.append(made)
        return seen[key]

    expression = parse_expr(text)
    assert isinstance(expression, ast.Call), text
    step(expression)
    return tuple(steps)


def _attribute(node: ast.Expr) -> Any:
    """What is written as an attribute: a choice is its name."""
    if isinstance(node, ast.Name) and node.id not in CONSTANTS:
        return node.id
    return _evaluate.known(node, Scope({}, {}, set()))


def otherwise(
    steps: Idiom, chooser: Chooser, ordered: Callable[[Step], bool] = lambda _: True
) -> Idiom:
    """An idiom of which one thing is otherwise: an attribute that is not said, or the opposite; a
    number, or what is drawn in the place of the same one in all calls of an operator; the order of
    two operands; one `x` that is another value; the axis of all calls that name it.

    A pass that looks for the idiom has to see the difference. ordered: whether the order of two
    operands makes one in what is computed.
    """
    made = [
        (*steps[:at], one, *steps[at + 1 :])
        for at, step in enumerate(steps)
        for one in (*_other_attrs(step), *_other_operands(step, at > 0, chooser))
    ]
    often = [*_other_axes(steps), *_other_orders(steps, ordered), *_without_numbers(steps)]
    made += [one for one in often for _ in range(_MOVED)]
    return chooser.pick(made) if made else steps


def _other_attrs(step: Step) -> Iterator[Step]:
    for name, value in step.attrs.items():
        rest = {key: one for key, one in step.attrs.items() if key != name}
        yield replace(step, attrs={**rest, name: not value} if isinstance(value, bool) else rest)


def _other_axes(steps: Idiom) -> Iterator[Idiom]:
    """The axis before the one that calls name, and both; in all of them, as parts of one layer
    agree on where it is.
    """
    named = [(key, value) for step in steps for key, value in step.attrs.items() if value in _LAST]
    for name, last in dict.fromkeys(named):
        for other in (last[0] - 1,), (last[0] - 1, *last):
            yield tuple(
                replace(step, attrs={**step.attrs, name: other})
                if step.attrs.get(name) == last
                else step
                for step in steps
            )


def _without_numbers(steps: Idiom) -> Iterator[Idiom]:
    """What numbers an operator is given is drawn as for any call: a scale may run along an axis."""
    places = [
        (step.op, place)
        for step in steps
        for place, operand in enumerate(step.operands)
        if isinstance(operand, float)
    ]
    for op, place in dict.fromkeys(places):
        yield tuple(_without(step, place) if step.op == op else step for step in steps)


def _without(step: Step, place: int) -> Step:
    """A call that is given no number there."""
    operands = step.operands
    if place >= len(operands) or not isinstance(operands[place], float):
        return step
    return replace(step, operands=(*operands[:place], None, *operands[place + 1 :]))


def _other_orders(steps: Idiom, ordered: Callable[[Step], bool]) -> Iterator[Idiom]:
    """Two operands in the other order, where that is another value."""
    for at, step in enumerate(steps):
        turned = _turned(step)
        if turned is not None and ordered(step):
            yield (*steps[:at], turned, *steps[at + 1 :])


def _turned(step: Step) -> Step | None:
    operands = step.operands
    if len(operands) < 2 or operands[0] == operands[1]:
        return None
    return replace(step, operands=(operands[1], operands[0], *operands[2:]))


def _other_operands(step: Step, later: bool, chooser: Chooser) -> Iterator[Step]:
    """later: whether it is not the first call, of which another `x` is any `x`."""
    operands, turned = step.operands, _turned(step)
    if turned is not None:
        yield turned
    for place, operand in enumerate(operands):
        other: Operand = None
        if isinstance(operand, float):
            near = float(_NEAR.format(operand))
            numbers = (*_NUMBERS, near) if math.isfinite(near) else _NUMBERS
            others = [number for number in numbers if number != operand]
            other = chooser.pick((*others, -operand, operand * 4))
        elif operand != GIVEN or not later:
            continue
        yield replace(step, operands=(*operands[:place], other, *operands[place + 1 :]))


def fix(
    step: Step,
    slots: Sequence[Slot],
    values: Mapping[Key, Value],
    axes: int = 0,
    *,
    plain: bool = False,
) -> Fixed | None:
    """What an idiom says of a call; None where a number does not fit the type that is wanted.

    slots: of the definition's inputs. values: the results of earlier steps, and `GIVEN` if it is
    known by now; where it is not, it is drawn. axes: of size 1, that numbers have which broadcast.
    plain: whether what is not said of attributes is their default.
    """
    known = [values.get(o) if is_key(o) else None for o in step.operands]
    wide = [slots[min(position, len(slots) - 1)] for position in range(len(known))]
    sources: list[Settling | None] = []
    for operand, value, slot in zip(step.operands, known, wide, strict=True):
        if not isinstance(operand, float):
            sources.append(value)
            continue
        alike = [v for v, s in zip(known, wide, strict=True) if v and s.variable == slot.variable]
        peer = next(iter(alike), values.get(GIVEN))
        if peer is None:
            return None
        dtypes = [d for d in (peer.info.dtype, _PLACES, _SCALES) if d in slot.allowed]
        if not dtypes:
            return None
        dtype = dtypes[0]
        real = DTYPES[dtype].kind == "real"
        if not (real or (DTYPES[dtype].kind == "int" and operand.is_integer())):
            return None
        if not holds(dtype, operand) or (real and abs(operand) > DTYPES[dtype].largest):
            return None
        number = operand if real else int(operand)
        sizes = (1,) * (axes if slot.spreads else 0)
        sources.append(Number(number, TensorInfo(sizes, dtype)))
    inputs: dict[str, Settling | tuple[Settling, ...]] = {}
    for position, (slot, source) in enumerate(zip(slots, sources, strict=False)):
        if slot.item.family:
            members = tuple(one for one in sources[position:] if one is not None)
            if len(members) < len(sources) - position:
                return None
            inputs[slot.item.name] = members
        elif source is not None:
            inputs[slot.item.name] = source
    types = {
        slot.variable or slot.item.name: operand.dtype
        for operand, slot in zip(step.operands, wide, strict=True)
        if isinstance(operand, New)
    }
    return Fixed(inputs, dict(step.attrs), plain, dtypes=types)


def given_dtype(steps: Idiom) -> str:
    """The type that `x` has to have; empty where it is not said."""
    return next((step.dtype for step in steps if step.dtype), "")


def given_rank(steps: Idiom) -> int:
    """How many axes `x` has to have; 0 where it is not said."""
    return next((step.rank for step in steps if step.rank), 0)


def along(operand: str, met: TensorInfo) -> TensorInfo:
    """What an operand is that stands along an axis of a tensor that it meets: of that one's type,
    where none is said.
    """
    named = _ALONG.fullmatch(operand)
    assert named is not None, operand
    row = named["axis"] == ROW or len(met.shape) < 3
    sizes = met.shape[-1:] if row else (met.shape[1], *(1,) * (len(met.shape) - 2))
    return TensorInfo(sizes, named["dtype"] or met.dtype)


def operand_of(step: Step, slots: Sequence[Slot]) -> str:
    """The input that a step reads `x` as; empty where it reads it as none, or in a family."""
    formal = {o: s.item for o, s in zip(step.operands, slots, strict=False)}.get(GIVEN)
    return formal.name if formal is not None and not formal.family else ""
