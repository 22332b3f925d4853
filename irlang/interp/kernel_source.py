"""Equations as the text of a numba kernel: a loop nest an equation, reductions as accumulators.

The text depends on the structure of the equations alone (and on which reads are proved to lie
inside); sizes and shapes are arguments, so one compiled kernel serves every shape. Every name in
it is made here (`i0`, `n0`, `t0`): nothing of a definition's text gets into it but numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from irlang import equations as eq
from irlang.affine import interval
from irlang.dtypes import DTYPES
from irlang.interp.kernel_functions import HELPERS, MATHEMATICS, ON_INTEGERS, ON_REALS
from irlang.interp.schedule import Recurrence
from irlang.kinds import join, kind
from irlang.scalar import SCALARS

_NUMBA = {"real": "float64", "int": "int64", "bool": "boolean"}
_LEAST, _LARGEST = -(2**63), 2**63 - 1
OUTSIDE, NONE, EMPTY = 1, 2, 3  # what a kernel reports; 0 is success


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a module that defines `kernel`, and what its arguments are.

    kernel(first, last, whole, real, status, *tensors): steps of a recurrence to go through; the
    sizes; what went wrong: (kind, number of the read, index…); the tensors, targets among them.
    """

    text: str
    tensors: tuple[str, ...]
    whole: tuple[int, ...]
    real: tuple[float, ...]
    reads: tuple[eq.Read, ...]


def generate(step: eq.Equation | Recurrence, infos: Mapping[str, eq.TensorInfo]) -> Source:
    """The kernel of an equation, or of a recurrence: `infos` has every tensor that takes part."""
    writer = Writer(infos)
    if isinstance(step, Recurrence):
        writer.recurrence(step)
    else:
        writer.equation(step, None)
    return writer.source()


@dataclass(slots=True)
class Writer:
    """Writes a kernel statement by statement; `helpers` may be called in it."""

    infos: Mapping[str, eq.TensorInfo]
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    indices: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, eq.Expr] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    whole: dict[tuple[str, int], str] = field(default_factory=dict)
    real: dict[tuple[str, float], str] = field(default_factory=dict)
    reads: list[eq.Read] = field(default_factory=list)
    extents: set[tuple[str, int]] = field(default_factory=set)
    count: int = 0
    helpers: Mapping[str, str] = field(default_factory=lambda: HELPERS)

    # ---- text

    def put(self, line: str) -> None:
        """One more line."""
        self.lines.append("    " * self.depth + line)

    def fresh(self, letter: str) -> str:
        """A name that is not there yet."""
        self.count += 1
        return f"{letter}{self.count}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is written inside is indented."""
        self.put(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.put("pass")
        self.depth -= 1

    def tensor(self, name: str) -> str:
        """The name of a tensor in the text."""
        return self.tensors.setdefault(name, f"t{len(self.tensors)}")

    def extent(self, name: str, axis: int) -> str:
        """The extent of a tensor's axis."""
        self.extents.add((name, axis))
        return f"{self.tensor(name)}_{axis}"

    def source(self) -> Source:
        """The whole module."""
        body = "\n".join(self.lines)
        arguments = ", ".join(["first, last, whole, real, status", *self.tensors.values()])
        types = ["int64", "int64", "int64[::1]", "float64[::1]", "int64[::1]"]
        for name in self.tensors:
            rank = max(1, len(self.infos[name].shape))
            types.append(f"{_NUMBA[self.infos[name].kind]}[{':, ' * (rank - 1)}::1]")
        head = [f"    {var} = whole[{i}]" for i, var in enumerate(self.whole.values())]
        head += [f"    {var} = real[{i}]" for i, var in enumerate(self.real.values())]
        head += [
            f"    {self.tensors[name]}_{axis} = {self.tensors[name]}.shape[{axis}]"
            for name, axis in sorted(self.extents, key=lambda e: (self.tensors[e[0]], e[1]))
        ]
        option = 'error_model="numpy", boundscheck=False'
        inline = f"{option}, forceinline=True"  # loops that call nothing do many numbers at a time
        helpers = [
            f"\n@njit({inline}, fastmath={MATHEMATICS.get(name, False)})\n{helper}"
            for name, helper in called(body, self.helpers).items()
        ]
        text = "\n".join(
            [
                "import math",
                "",
                "import numpy as np",
                "from numba import njit",
                "",
                *helpers,
                "",
                f'@njit("void({", ".join(types)})", cache=True, {option})',
                f"def kernel({arguments}):",
                *head,
                body,
                "",
            ]
        )
        return Source(
            text,
            tuple(self.tensors),
            tuple(value for _, value in self.whole),
            tuple(value for _, value in self.real),
            tuple(self.reads),
        )

    # ---- loops

    def recurrence(self, step: Recurrence) -> None:
        """The loop over the steps."""
        way = "range(last - 1, first - 1, -1)" if step.descending else "range(first, last)"
        variable = self.fresh("i")
        with self.block(f"for {variable} in {way}:"):
            for equation, axis in zip(step.equations, step.axes, strict=True):
                extent = self.extent(equation.target, axis)
                with self.block(f"if {variable} < {extent}:"):
                    self.equation(equation, (axis, variable))

    def equation(self, equation: eq.Equation, fixed: tuple[int, str] | None) -> None:
        """The loops of one equation; fixed: an axis that is at a step, and the step's variable."""
        depth = self.depth
        position = self.loops(equation, fixed)
        value = self.stored(equation.body, equation.info)
        self.put(f"{self.tensor(equation.target)}[{', '.join(position) or '0'}] = {value}")
        self.depth = depth

    def loops(self, equation: eq.Equation, fixed: tuple[int, str] | None) -> list[str]:
        """Opens the loops over an equation's indices; their variables."""
        position: list[str] = []
        for axis, (name, _) in enumerate(equation.binders):
            self.bounds[name] = eq.Const(equation.info.shape[axis])
            if fixed is not None and axis == fixed[0]:
                variable = fixed[1]
            else:
                self.ahead(equation.body)
                variable = self.fresh("i")
                self.put(f"for {variable} in range({self.extent(equation.target, axis)}):")
                self.depth += 1
            self.indices[name] = variable
            position.append(variable)
        return position

    def ahead(self, body: eq.Expr) -> None:
        """What may be written before one more loop over `body` is opened."""

    def stored(self, expr: eq.Expr, info: eq.TensorInfo) -> str:
        """The value of an expression as a tensor of that type holds it."""
        value = self.convert(self.value(expr), self.kind(expr), info.kind)
        dtype = DTYPES[info.dtype]
        if info.kind != "int" or dtype.bits == 64:
            return value
        mask = 2**dtype.bits - 1
        if info.dtype.startswith("u"):
            return f"({value} & {mask})"
        half = 2 ** (dtype.bits - 1)
        return f"((({value} + {half}) & {mask}) - {half})"

    # ---- expressions

    def kind(self, expr: eq.Expr) -> str:
        """`real`, `int` or `bool`."""
        return kind(expr, self.infos)

    @staticmethod
    def convert(text: str, have: str, want: str) -> str:
        """An expression's text turned from one kind into another."""
        if have == want:
            return text
        if have == "bool":
            return f"(1.0 if {text} else 0.0)" if want == "real" else f"(1 if {text} else 0)"
        if want == "bool":
            return f"({text} != 0)"
        return f"float({text})" if want == "real" else f"to_integer({text})"

    def value(self, expr: eq.Expr) -> str:
        """The text of an expression of its own kind; statements it needs are written before."""
        match expr:
            case eq.Const():
                return _literal(expr.value)
            case eq.Size():
                return self.size(expr)
            case eq.Index():
                return self.indices[expr.name]
            case eq.Inside():
                tests = self.tests(expr, self.positions(expr.index))
                return f"({' and '.join(tests)})" if tests else "True"
            case eq.Read():
                return self.read(expr)
            case eq.Apply():
                return self.apply(expr)
            case eq.Reduce():
                return self.reduce(expr)

    def size(self, expr: eq.Size) -> str:
        """A number of the call."""
        if isinstance(expr.value, (int, bool)) and _LEAST <= expr.value <= _LARGEST:
            key = expr.label, int(expr.value)
            text = self.whole.setdefault(key, f"n{len(self.whole)}")
            return f"({text} != 0)" if isinstance(expr.value, bool) else text
        return self.real.setdefault((expr.label, float(expr.value)), f"r{len(self.real)}")

    def aside(self, expr: eq.Expr, want: str) -> tuple[str, list[str]]:
        """An expression's text in kind `want`, and the statements that must run before it."""
        kept, self.lines = self.lines, []
        self.depth += 1
        text = self.convert(self.value(expr), self.kind(expr), want)
        self.depth -= 1
        lines, self.lines = self.lines, kept
        return text, lines

    def choose(self, condition: str, yes: eq.Expr, no: eq.Expr, want: str) -> str:
        """`yes` or `no`, of which only the one that is chosen is evaluated."""
        arms = [self.aside(arm, want) for arm in (yes, no)]
        if not any(lines for _, lines in arms):
            return f"({arms[0][0]} if {condition} else {arms[1][0]})"
        result = self.fresh("v")
        for head, (text, lines) in zip((f"if {condition}:", "else:"), arms, strict=True):
            with self.block(head):
                self.lines += lines
                self.put(f"{result} = {text}")
        return result

    def apply(self, expr: eq.Apply) -> str:
        """A function's text."""
        if expr.function == "select":
            condition = self.convert(self.value(expr.args[0]), self.kind(expr.args[0]), "bool")
            return self.choose(condition, expr.args[1], expr.args[2], self.kind(expr))
        if expr.function in ("and", "or"):
            first = self.convert(self.value(expr.args[0]), self.kind(expr.args[0]), "bool")
            if expr.function == "and":
                return self.choose(first, expr.args[1], eq.Const(False), "bool")
            return self.choose(first, eq.Const(True), expr.args[1], "bool")
        if expr.function == "not":
            return (
                f"(not {self.convert(self.value(expr.args[0]), self.kind(expr.args[0]), 'bool')})"
            )
        meeting = join(*map(self.kind, expr.args)) or "real"
        if SCALARS[expr.function].kind == "real" or expr.function not in ON_INTEGERS:
            meeting = "real"
        elif meeting == "bool":
            meeting = "int"
        template = (ON_REALS if meeting == "real" else ON_INTEGERS)[expr.function]
        args = [self.convert(self.value(arg), self.kind(arg), meeting) for arg in expr.args]
        text = template.format(*args)
        have = {"same": meeting}.get(SCALARS[expr.function].kind, SCALARS[expr.function].kind)
        return self.convert(text, have, self.kind(expr))

    # ---- reads

    def positions(self, index: Sequence[eq.Expr]) -> list[str]:
        """The names of what is read at."""
        found = []
        for part in index:
            text = self.convert(self.value(part), self.kind(part), "int")
            if not text.isalnum():
                name = self.fresh("j")
                self.put(f"{name} = {text}")
                text = name
            found.append(text)
        return found

    def tests(self, expr: eq.Read | eq.Inside, position: Sequence[str]) -> list[str]:
        """What must hold for an index to lie inside, but for what is proved."""
        found = []
        for axis, (part, extent) in enumerate(
            zip(expr.index, self.infos[expr.tensor].shape, strict=True)
        ):
            within = interval(part, self.bounds, self.infos) or (-math.inf, math.inf)
            if within[0] > within[1]:
                continue  # no element is ever read
            if within[0] < 0:
                found.append(f"{position[axis]} >= 0")
            if within[1] >= extent:
                found.append(f"{position[axis]} < {self.extent(expr.tensor, axis)}")
        return found

    def read(self, expr: eq.Read) -> str:
        """An element's text."""
        position = self.positions(expr.index)
        tests = self.tests(expr, position)
        at = ", ".join(f"np.uint64({p})" for p in position) or "0"
        element = f"{self.tensor(expr.tensor)}[{at}]"
        if not tests:
            return self.convert(element, self.infos[expr.tensor].kind, self.kind(expr))
        inside = " and ".join(tests)
        if expr.default is None:
            self.reads.append(expr)
            with self.block(f"if not ({inside}):"):
                self.report(OUTSIDE, len(self.reads) - 1, position)
            return element
        want = self.kind(expr)
        element = self.convert(element, self.infos[expr.tensor].kind, want)
        default, lines = self.aside(expr.default, want)
        if not lines:
            return f"({element} if {inside} else {default})"
        result = self.fresh("v")
        with self.block(f"if {inside}:"):
            self.put(f"{result} = {element}")
        with self.block("else:"):
            self.lines += lines
            self.put(f"{result} = {default}")
        return result

    def report(self, what: int, number: int, position: Sequence[str] = ()) -> None:
        """The end of a kernel that fails."""
        self.put(f"status[0] = {what}")
        self.put(f"status[1] = {number}")
        for axis, text in enumerate(position):
            self.put(f"status[{axis + 2}] = {text}")
        self.put("return")

    # ---- reductions

    def reduce(self, expr: eq.Reduce) -> str:
        """The name that a reduction's loops fill."""
        own = self.kind(expr)
        body_kind = "bool" if expr.kind in ("all", "any") else "int"
        if expr.body is not None and expr.kind not in ("all", "any"):
            body_kind = join(self.kind(expr.body), "int") or "int"
        result, found = self.fresh("a"), self.fresh("f")
        self.put(f"{result} = {_start(expr.kind, own)}")
        if expr.kind in ("argmax", "argmin", "the") or (expr.kind == "min" and own == "int"):
            self.put(f"{found} = False")
        best = self.fresh("b")
        if expr.kind in ("argmax", "argmin"):
            self.put(f"{best} = {'0.0' if body_kind == 'real' else '0'}")
        depth = self.depth
        loops: list[int] = []
        for name, bound in expr.binders:
            limit = self.convert(self.value(bound), self.kind(bound), "int")
            variable = self.fresh("i")
            self.indices[name] = variable
            self.bounds[name] = bound
            self.put(f"for {variable} in range({limit}):")
            loops.append(self.depth)
            self.depth += 1
        inner = self.depth
        if expr.where is not None:
            condition = self.convert(self.value(expr.where), self.kind(expr.where), "bool")
            self.put(f"if {condition}:")
            self.depth += 1
        self.term(expr, result, found, best, body_kind)
        if expr.kind in ("all", "any", "the"):
            stop = {"all": f"not {result}", "any": result, "the": found}[expr.kind]
            self.depth = inner
            for level in reversed(loops):  # each loop ends as soon as the answer is there
                self.depth = level + 1
                self.put(f"if {stop}:")
                self.depth += 1
                self.put("break")
        self.depth = depth
        if expr.kind in ("argmax", "argmin", "the"):
            with self.block(f"if not {found}:"):
                self.report(NONE if expr.kind == "the" else EMPTY, 0)
        elif expr.kind == "min" and own == "int":
            with self.block(f"if not {found}:"):
                self.put(f"{result} = {_literal(_LEAST)}")
        return result

    def term(self, expr: eq.Reduce, result: str, found: str, best: str, body_kind: str) -> None:
        """What one round of the innermost loop does."""
        if expr.body is None:
            self.put(f"{result} += 1")
            return
        own = self.kind(expr)
        have = self.kind(expr.body)
        text = self.convert(self.value(expr.body), have, body_kind)
        match expr.kind:
            case "sum":
                self.put(
                    f"{result} = plus({result}, {text})" if own == "real" else f"{result} += {text}"
                )
            case "count":
                self.put(f"{result} += 1 if {self.convert(text, body_kind, 'bool')} else 0")
            case "prod":
                self.put(f"{result} *= {text}")
            case "max" | "min":
                template = (ON_REALS if own == "real" else ON_INTEGERS)[expr.kind]
                self.put(f"{result} = {template.format(result, text)}")
                if expr.kind == "min" and own == "int":
                    self.put(f"{found} = True")
            case "all" | "any":
                self.put(f"{result} = {text}")
            case "the":
                self.put(f"{result} = {self.convert(text, body_kind, own)}")
                self.put(f"{found} = True")
            case _:
                value = self.fresh("v")
                self.put(f"{value} = {text}")
                sign = ">" if expr.kind == "argmax" else "<"
                nan = f" or ({value} != {value} and {best} == {best})"
                condition = (
                    f"not {found} or {value} {sign} {best}{nan if body_kind == 'real' else ''}"
                )
                with self.block(f"if {condition}:"):
                    self.put(f"{best} = {value}")
                    self.put(f"{result} = {self.indices[expr.binders[0][0]]}")
                    self.put(f"{found} = True")


def called(body: str, helpers: Mapping[str, str]) -> dict[str, str]:
    """The helpers that are called in a text, or by one another, in their own order."""
    wanted: set[str] = set()
    waiting = [body]
    while waiting:
        names = helpers.keys() & set(re.findall(r"\b(\w+)\(", waiting.pop())) - wanted
        wanted |= names
        waiting += [helpers[name] for name in names]
    return {name: text for name, text in helpers.items() if name in wanted}


def _start(reduction: str, own: str) -> str:
    if reduction in ("all", "any"):
        return str(reduction == "all")
    if reduction in ("max", "min"):
        if own == "real":
            return "-np.inf" if reduction == "max" else "np.inf"
        return _literal(_LEAST if reduction == "max" else _LARGEST)
    start = 1 if reduction == "prod" else 0
    if own == "bool":
        return "False"
    return f"{start}.0" if own == "real" else str(start)


def _literal(value: eq.Scalar) -> str:
    """A number as text; integers beyond 64 bits are reals."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and _LEAST <= value <= _LARGEST:
        return (
            f"np.int64({value})"
            if abs(value) >= 2**31
            else (f"({value})" if value < 0 else str(value))
        )
    number = float(value) if isinstance(value, (int, Fraction)) else value
    if math.isnan(number):
        return "np.nan"
    if math.isinf(number):
        return "np.inf" if number > 0 else "(-np.inf)"
    return f"({number!r})" if number < 0 else repr(number)
