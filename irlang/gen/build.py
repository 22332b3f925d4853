"""Programs: valid networks drawn from a seed, operator by operator.

A program is a chain with skips, a graph of cells, or something between, with idioms in it
(`irlang.gen.idiom`). Every call is solved backwards from the definition's signature
(`irlang.gen.solve`), judged by the definition itself, mended where it does not fit
(`irlang.gen.repair`), and given up where that does not help (`irlang.gen.calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from irlang import ast
from irlang.catalog import Catalog
from irlang.equations import TensorInfo
from irlang.gen.choice import Chooser
from irlang.gen.coverage import Coverage
from irlang.gen.draft import Fixed
from irlang.gen.draw import Limits
from irlang.gen.idiom import Idiom
from irlang.gen.idiomatic import Idioms
from irlang.gen.kit import Kit, kit_of
from irlang.gen.mark import mark
from irlang.gen.pattern import Pattern, pattern
from irlang.graph import Graph, Node, Port
from irlang.graph_text import to_ast
from irlang.parser.printer import print_file

_ATTEMPTS = 60  # calls that may fail in a row before a program ends early
_EAGER, _JOINED = 60, 95  # percent of inputs after the first that look for a computed value
_APART_TRIES = 16  # calls of an operator that is to be called apart, one of which is preferred
_SOLE = 33  # percent of calls apart whose first result alone is shown, whoever has the others
_APART_DRAWS = 48  # that are drawn for them, as some operators' mostly do not fit
_BARE_TRIES = 4  # one in so many may be told numbers for every axis where there is none
# Of these, before integers of all widths are drawn, before the usual real numbers are, by turns
# with the usual integers (of labels and places some frameworks have no others), before nothing
# is given that need not be, and before a word or two alone are said in every second: of what has
# many attributes frameworks have few combinations.
_OWN_INTS, _OWN_REALS, _OWN_LEAN, _OWN_FEW = 2, 10, 12, 4
_STEPS = 6  # from one such call to another, which differs in an attribute or two
_WIDTHS = ("u8", "i8", "i32", "i64", "i16")  # the first is the likeliest
# Percent of these that have attributes of an idiom or none, where there is an idiom, and of others
# whose attributes are all drawn, as few are odd together; of these, and of those of usual ones.
_SAID, _ALL_SAID = (60, 20), (60, 40)
_IDIOMS = 10  # percent of choices that are an idiom and not an operator
_ALL = 100


@dataclass(slots=True)
class Program:
    """A generated network.

    text: the `.nnir` file. choices: replay them to get the same program whatever coverage was in
    force. repaired: how many calls needed a repair; rejected: how many were given up.
    """

    graph: Graph
    model: ast.Model
    text: str
    seed: int
    choices: list[int]
    repaired: int = 0
    rejected: int = 0


def generate(
    catalog: Catalog,
    seed: int,
    *,
    ops: Iterable[str] | None = None,
    size: tuple[int, int] = (3, 30),
    limits: Limits | None = None,
    coverage: Coverage | None = None,
    replay: Sequence[int] = (),
    apart: Sequence[str] = (),
    preferred: Callable[[Graph], bool] = lambda _: True,
    pieces: int = _IDIOMS,
    piece: Idiom = (),
    beside: Sequence[Idiom] = (),
) -> Program:
    """The program of a seed.

    ops: names of the operators that may be used (all). size: least and most calls. coverage:
    what is preferred is what it lacks; the program then depends on it as well as on the seed.
    replay: choices to follow instead of drawing. apart: operators that are called instead, once
    each, none reading another's results; preferred: whether one is taken as it is, or another is
    drawn first, given as a program of its own. pieces: percent of choices that are an idiom.
    piece: an idiom that is the whole program, which has no call where that cannot be drawn, with
    others `beside` it that read nothing of one another.
    """
    kit = kit_of(catalog, None if ops is None else frozenset(ops))
    builder = _Builder(kit, Chooser(seed, replay), limits or Limits(), coverage or Coverage())
    if piece:
        graph = builder.piece(piece, beside)
    else:
        graph = builder.side_by_side(apart, preferred) if apart else builder.run(size, pieces)
    graph.name = f"generated_{seed}"
    model = to_ast(graph)
    text = print_file(ast.File((model,), 1))
    return Program(
        graph, model, text, seed, builder.chooser.trace, builder.repaired, builder.rejected
    )


def _lone(graph: Graph, results: int) -> Graph:
    """The last call of a graph as a program of its own, read from its inputs and the numbers that
    are written in it, of so many of its results.
    """
    node = graph.nodes[-1]
    operands = dict.fromkeys(node.operands())
    written = {
        n: graph.params[n] for n in operands if n in graph.params and graph.params[n].literal
    }
    return Graph(
        graph.name,
        inputs={name: Port(graph.values[name], None) for name in operands if name not in written},
        params=written,
        nodes=[node],
        outputs={name: name for name in node.outputs[:results]},
        values={name: graph.values[name] for name in (*operands, *node.outputs)},
    )


def _has_no_axes(node: Node) -> bool:
    """Whether a call has a list of a number for every axis, of no axes: windows in no direction, a
    size along none. Hardly any framework has it.
    """
    known = {**node.instance.binding.scope.names, **node.attrs}
    lists = (attr.name for attr in pattern(node.op).attrs.values() if attr.type.rest)
    return any(known.get(name) == () for name in lists)


class _Builder(Idioms):
    def __init__(self, kit: Kit, chooser: Chooser, limits: Limits, coverage: Coverage) -> None:
        super().__init__(kit, chooser, limits)
        self.made = kit.made
        self.joiners = [p for p in kit.made if p.joins]
        self.cell = 0
        self.cell_calls = self.cell_values = 0  # at the start of the cell
        self.coverage = coverage
        self.rejected = 0
        self.weights = coverage.weights(p.op.name for p in kit.made)
        self.joiner_weights = coverage.weights(p.op.name for p in self.joiners)

    def run(self, size: tuple[int, int], pieces: int) -> Graph:
        """Calls until there are as many as were drawn."""
        chooser = self.chooser
        # The lesser of two: radii grow with depth, so that short programs say more about each call.
        self.wanted = min(chooser.between(*size), chooser.between(*size))
        self.cell = chooser.pick((0, 0, 3, 5))  # calls a cell; 0 is a chain
        skips = chooser.pick((5, 20, 40))  # percent of calls that reach back
        joins = chooser.pick((5, 15, 30))  # percent that bring two branches together
        failures = 0
        while len(self.graph.nodes) < self.wanted and failures < _ATTEMPTS:
            if self.cell and len(self.graph.nodes) - self.cell_calls >= self.cell:
                self.cell_calls, self.cell_values = len(self.graph.nodes), len(self.live)
            if self.idioms and (self.live or pieces == _ALL) and chooser.chance(pieces):
                # All alike: the operators of the longest ones are those that are met most.
                steps = chooser.pick(self.idioms)
                done = len(steps) <= self.wanted - len(self.graph.nodes) and self.idiom(
                    steps, self.order(self.kit.patterns[steps[0].op], skips)
                )
                failures += not done
                continue
            branches = self.branches() if chooser.chance(joins) else []
            if branches:
                made = self.joiners[chooser.weighted(self.joiner_weights)]
                done = self.call(made, branches, _JOINED)
            else:
                made = self.made[chooser.weighted(self.weights)]
                done = self.call(made, self.order(made, skips), _EAGER)
            failures = 0 if done else failures + 1
            self.rejected += not done
        self.finish()
        return self.graph

    def side_by_side(self, names: Sequence[str], preferred: Callable[[Graph], bool]) -> Graph:
        """A call of each operator, of new tensors only; those that cannot be drawn are left out.

        Where none of several calls is preferred, the last is taken.
        """
        self.wanted = 0  # no room for what would adapt a tensor to a call
        usual = self.limits
        for name in names:
            tries = drawn = 0
            put_back: Callable[[], None] | None = None
            while tries < _APART_DRAWS and drawn < _APART_TRIES:
                wide = tries >= _OWN_INTS and (tries < _OWN_REALS or tries % 2 == 1)
                self.limits = replace(
                    usual,
                    ints=_WIDTHS if wide else usual.ints,
                    reals=usual.reals if tries < _OWN_REALS else Limits().reals,
                )
                fixed = self.known(name)
                lean = tries >= _OWN_LEAN
                undo = mark(self.graph, self.live, self.by_name)
                tries += 1
                few = self.few(name) if tries > _OWN_FEW and tries % 2 else frozenset()
                fixed = replace(
                    fixed, plain=fixed.plain or lean, said=fixed.said and not lean, few=few,
                    lean=lean,
                )  # fmt: skip
                if not self.call(self.kit.patterns[name], [], 0, fixed):
                    continue
                if tries % _BARE_TRIES and _has_no_axes(self.graph.nodes[-1]):
                    put_back = undo()
                    continue
                drawn += 1
                shown = self.preferably(preferred)
                if shown is not None:
                    if tries > 1:
                        shown = self.walked(name, undo, preferred, shown)
                    node = self.graph.nodes[-1]
                    self.sole |= {node.name} if shown < len(node.outputs) else set()
                    break
                put_back = undo()
            else:
                if put_back is not None:
                    put_back()
            self.limits = usual
        self.finish()
        return self.graph

    def walked(
        self,
        name: str,
        undo: Callable[[], Callable[[], None]],
        preferred: Callable[[Graph], bool],
        shown: int,
    ) -> int:
        """Goes from the last call, of which few are preferred, to others that are, an attribute or
        two at a time; gives how many results the last of them shows.

        What is drawn at once is preferred where it says least: two attributes that have to be said
        together are hardly ever. undo: takes the last call out.
        """
        for _ in range(_STEPS):
            node = self.graph.nodes[-1]
            attrs = self.kit.patterns[name].attrs
            few = frozenset(self.chooser.shuffled(list(attrs))[: self.chooser.between(1, 2)])
            if not few:
                break
            kept = {one: value for one, value in node.attrs.items() if one not in few}
            lean = self.chooser.below(2) == 0
            back = undo()
            if self.call(self.kit.patterns[name], [], 0, Fixed(attrs=kept, few=few, lean=lean)):
                seen = self.preferably(preferred)
                if seen is not None and self.graph.nodes[-1].attrs != node.attrs:
                    shown = seen
                    continue
                undo()
            back()
        return shown

    def preferably(self, preferred: Callable[[Graph], bool]) -> int | None:
        """How many results the last call shows where it is one that is preferred, or else None."""
        found = self.shown(self.graph.nodes[-1])
        return next((n for n in found if preferred(_lone(self.graph, n))), None)

    def shown(self, node: Node) -> tuple[int, ...]:
        """How many results a call apart may show: many operators of targets have the first alone,
        which no target would be handed if the others were always asked for.
        """
        every = len(node.outputs)
        if every == 1:
            return (1,)
        return (1,) if self.chooser.chance(_SOLE) else (every, 1)

    def known(self, name: str) -> Fixed:
        """Attributes that an idiom of one call says of an operator, or none; the others may be
        their defaults: frameworks have many operators for such attributes alone.
        """
        said = [one[0].attrs for one in self.idioms if len(one) == 1 and one[0].op == name]
        attrs = (
            self.chooser.pick([{}, *said])
            if said and self.chooser.chance(_SAID[self.limits.usual])
            else {}
        )
        plain = self.chooser.chance(self.limits.plain)
        return Fixed(
            attrs=dict(attrs),
            plain=plain,
            said=not plain and self.chooser.chance(_ALL_SAID[self.limits.usual]),
        )

    def few(self, name: str) -> frozenset[str]:
        """One or two attributes of an operator, in half of the cases choices between words."""
        attrs = self.kit.patterns[name].attrs.values()
        words = [attr.name for attr in attrs if attr.type.kind == "enum"]
        some = words if words and self.chooser.below(2) else [attr.name for attr in attrs]
        return frozenset(self.chooser.shuffled(some)[: self.chooser.between(1, 2)])

    # ---- which operand

    def order(self, made: Pattern, skips: int) -> list[int]:
        """Positions of live values, those to be read first in front.

        In a chain the newest comes first; in a cell, values of the cell (and the two before it)
        that nothing reads yet. Pairs of producer and consumer that were not met are preferred.
        """
        live = self.live
        if not live:
            return []
        newest = len(live) - 1
        chooser = self.chooser
        if not self.cell and not chooser.chance(skips):
            return list(range(newest, -1, -1))
        pairs = self.coverage.pairs
        name = made.op.name
        first = max(0, min(self.cell_values - 2, newest)) if self.cell else 0
        weights = [
            (4.0 if value.uses == 0 else 1.0) / (1 + pairs.get((value.producer, name), 0))
            for value in live[first:]
        ]
        chosen = first + chooser.weighted(weights)
        loose = [i for i in range(newest, -1, -1) if live[i].uses == 0 and i != chosen]
        used = [i for i in range(newest, -1, -1) if live[i].uses and i != chosen]
        return [chosen, *loose, *used]

    def branches(self) -> list[int]:
        """Positions of live values of one type, the newest first, and then all others.

        The type is that of several values of which something is still to be read; empty if there
        is none.
        """
        groups: dict[TensorInfo, list[int]] = {}
        for position in range(len(self.live) - 1, -1, -1):
            groups.setdefault(self.live[position].info, []).append(position)
        several = [
            group
            for group in groups.values()
            if len(group) > 1 and any(self.live[i].uses == 0 for i in group)
        ]
        if not several or not self.joiners:
            return []
        group = self.chooser.pick(several)
        loose = [i for i in group if self.live[i].uses == 0]
        front = [*loose, *(i for i in group if self.live[i].uses)]
        return [*front, *(i for i in range(len(self.live)) if i not in group)]
