"""Recurrent layers of Keras written step by step, where no definition has their activation.

The activations of a definition are functions of one element; Keras's may be any function of a
step's units (`softmax`), or a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irlang.importers.keras_activations import activation
from irlang.importers.keras_arguments import Arguments, Uncovered
from irlang.importers.keras_call import Call, same
from irlang.importers.keras_weights import Weights

_LONGEST = 256  # steps that are written out


@dataclass(frozen=True, slots=True)
class Loop:
    """How a layer goes through its steps.

    time: the axis of the steps. zero: a masked step gives 0, not what the step before gave.
    """

    time: int
    reverse: bool
    mask: str | None
    zero: bool


class _Cell:
    """A cell that is being written, its kernels in Keras's own order."""

    def __init__(self, c: Call, cell: Arguments, weights: Weights, tag: str) -> None:
        self.c, self.cell, self.tag = c, cell, tag
        self.kind = cell.kind.removesuffix("Cell")
        self.units = cell.integer("units")
        self.gates = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}[self.kind]
        width = self.gates * self.units
        self.after = self.kind == "GRU" and cell.flag("reset_after")
        self.w = c.weight(f"{tag}w", 0, [None, width], same, weights)
        self.r = c.weight(f"{tag}r", 1, [self.units, width], same, weights)
        self.b: list[str] = []
        self.rb: list[str] = []
        if cell.flag("use_bias") and self.after:
            shape = [2, width]
            self.b = [c.weight(f"{tag}b", 2, shape, lambda both: both[0], weights)]
            self.rb = [c.weight(f"{tag}rb", 2, shape, lambda both: both[1], weights)]
        elif cell.flag("use_bias"):
            self.b = [c.weight(f"{tag}b", 2, [width], same, weights)]
        if self.kind == "GRU" and not self.after:
            sizes = [2 * self.units, self.units]
            parts = [f"{tag}r_gates", f"{tag}r_candidate"]
            self.parts = c.several(parts, "split", self.r, axis=1, sizes=sizes)

    def act(self, value: str, name: str, which: str = "activation") -> str:
        """An activation of the cell."""
        return activation(self.c, self.cell[which], value, self.tag + name)

    def write(self, name: str, op: str, *operands: str, **attrs: int | list[int]) -> str:
        """A call for this cell."""
        return self.c.write(self.tag + name, op, *operands, **attrs)

    def split(self, value: str, name: str, count: int) -> list[str]:
        """The gates of a product, side by side in its last axis."""
        names = [f"{self.tag}{name}{number}" for number in range(count)]
        return self.c.several(names, "split", value, axis=-1, sizes=[self.units] * count)

    def step(self, x: str, states: Sequence[str], t: int) -> list[str]:
        """The states after a step; x: its product with the kernel, and the bias."""
        write = {"SimpleRNN": self._simple, "GRU": self._gru, "LSTM": self._lstm}
        return write[self.kind](x, states, f"{t}_")

    def _simple(self, x: str, states: Sequence[str], t: str) -> list[str]:
        z = self.write(f"{t}z", "add", x, self.write(f"{t}rh", "matmul", states[0], self.r))
        return [self.act(z, f"{t}h")]

    def _lstm(self, x: str, states: Sequence[str], t: str) -> list[str]:
        h, cell = states
        z = self.write(f"{t}z", "add", x, self.write(f"{t}rh", "matmul", h, self.r))
        i, f, g, o = self.split(z, f"{t}z", 4)
        i, f, o = (
            self.act(v, f"{t}{n}", "recurrent_activation")
            for v, n in ((i, "i"), (f, "f"), (o, "o"))
        )
        kept = self.write(f"{t}kept", "multiply", f, cell)
        new = self.write(f"{t}new", "multiply", i, self.act(g, f"{t}g"))
        cell = self.write(f"{t}c", "add", kept, new)
        return [self.write(f"{t}h", "multiply", o, self.act(cell, f"{t}a")), cell]

    def _gru(self, x: str, states: Sequence[str], t: str) -> list[str]:
        (h,) = states
        xs = self.split(x, f"{t}x", 3)
        count = 3 if self.after else 2
        r = self.r if self.after else self.parts[0]
        hs = self.split(self.write(f"{t}rh", "dense", h, r, *self.rb), f"{t}s", count)
        z, reset = (
            self.act(self.write(f"{t}{n}s", "add", a, b), f"{t}{n}", "recurrent_activation")
            for a, b, n in ((xs[0], hs[0], "u"), (xs[1], hs[1], "r"))
        )
        if self.after:
            back = self.write(f"{t}back", "multiply", reset, hs[2])
        else:
            seen = self.write(f"{t}seen", "multiply", reset, h)
            back = self.write(f"{t}back", "matmul", seen, self.parts[1])
        new = self.act(self.write(f"{t}g", "add", xs[2], back), f"{t}n")
        # z * h + (1 - z) * new
        change = self.write(f"{t}change", "subtract", h, new)
        return [self.write(f"{t}h", "add", new, self.write(f"{t}keep", "multiply", z, change))]


def stepwise(
    c: Call,
    cell: Arguments,
    tag: str,
    weights: Weights,
    x: str,
    states: Sequence[str],
    loop: Loop,
) -> list[str]:
    """What the definition of the cell would give: all outputs in the order of x, and the states."""
    one = _Cell(c, cell, weights, tag)
    product = one.write("x", "dense", x, one.w, *one.b)
    shape = c.info(product).shape
    if len(shape) != 3 or not 1 <= int(shape[loop.time]) <= _LONGEST:
        raise Uncovered(cell.kind, f"its activation, over {list(shape[:2])}")
    start = [int(shape[1 - loop.time]), one.units]
    zero = c.param(f"{tag}zero", 0.0, start)
    now = list(states) or [zero] * (2 if one.kind == "LSTM" else 1)
    order = list(range(int(shape[loop.time])))
    given: dict[int, str] = {}
    output = zero
    for t in reversed(order) if loop.reverse else order:
        xt = _at(one, f"{t}_x", product, loop.time, t)
        new = one.step(xt, now, t)
        if loop.mask is None:
            now, output = new, new[0]
        else:
            used = one.write(f"{t}_used", "slice", loop.mask, axes=[1], begin=[t], end=[t + 1])
            pairs = list(zip(new, now, strict=True))
            now = [one.write(f"{t}_state", "where", used, a, b) for a, b in pairs]
            past = zero if loop.zero else output
            output = one.write(f"{t}_y", "where", used, new[0], past)
        given[t] = output
    y = one.write("y", "stack", *(given[t] for t in order), axis=loop.time)
    return [y, *now]


def _at(cell: _Cell, name: str, value: str, axis: int, t: int) -> str:
    part = cell.write(f"{name}t", "slice", value, axes=[axis], begin=[t], end=[t + 1])
    return cell.write(name, "squeeze", part, axes=[axis])
