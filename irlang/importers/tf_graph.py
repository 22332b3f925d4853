"""Walks a TensorFlow graph and writes what its results are computed from, node by node.

What cannot be translated does not end the walk: all of it is reported at once, by operator and
place. What depends on it is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.handed import allowed
from irlang.importers.sizes import Dim
from irlang.importers.tf_cond import LOOPS, MERGES, SWITCHES, Choices, told
from irlang.importers.tf_declared import attribute, declared, shape_of, size_name, told_shape
from irlang.importers.tf_file import NodeDef, dtype, tensor
from irlang.importers.tf_functions import CHOICE
from irlang.importers.tf_initial import assignments, initial
from irlang.importers.tf_left_out import LEFT_OUT
from irlang.importers.tf_loops import HANDED, LISTS, List
from irlang.importers.tf_node import Node, Row, Twins
from irlang.importers.tf_select import INPUTS, VARIABLES, live, results
from irlang.importers.tf_table import ROWS
from irlang.importers.tf_unroll import Broken, Reference, Unrolling
from irlang.importers.value import Unsupported, Value, check_shape, constant
from irlang.importers.writer import Fault, Writer

_MOST_SHOWN = 6  # nodes of a circle


class Walk(Unrolling):
    """One pass over a graph.

    sizes: the example of every open size, by its name; fixed sizes as plain integers. Problems are
    collected in `problems`.
    """

    def __init__(
        self,
        nodes: Sequence[NodeDef],
        writer: Writer,
        sizes: Mapping[str, int],
        *,
        beside: bool = True,
    ) -> None:
        super().__init__(nodes)
        self.nodes = nodes
        self.writer = writer
        self.sizes = sizes
        found = results(nodes, beside=beside)
        # what a loop leaves over, and nothing reads, is a result where there is no other
        self.wanted = [name for name in found if not self._left_over(name)] or found
        self.live = live(self.by_name, self.wanted)
        self.problems: list[Diagnostic] = []
        self.values: dict[Reference, Value | List | Broken] = {}
        self.inputs: dict[str, str] = {}  # names in the text, by those in the graph
        self._starts = assignments(self.by_name)
        self._choices = Choices(self.by_name)
        self._symbols: dict[str, int] = {}
        self._twins: Twins = {}
        self._used = self._results_used()
        writer.results.update(self.wanted)

    def run(self) -> list[str]:
        """Writes everything; the names of the results in the text."""
        if len(self.by_name) != len(self.nodes):
            names = [node.name for node in self.nodes]
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            self.problem("file.duplicate", f"the node `{twice}` is there twice", twice)
            return []
        if not self.wanted:
            self._without_results()
            return []
        for node in self.nodes:
            if node.name in self.live and node.op in INPUTS:
                self._guarded(node, self._inputs)
        for node in self.nodes:
            if node.name in self.live and node.name not in self._inside:
                self._reach(node)
        return self._outputs()

    @property
    def missing(self) -> int:
        """How many of the nodes that were to be written are not there."""
        return sum(isinstance(self.values.get((name, 0)), Broken) for name in self.live)

    def problem(self, code: str, message: str, place: str = "") -> None:
        """Records what is wrong, or not supported."""
        self.problems.append(Diagnostic(code, message, node=place))

    def _results_used(self) -> dict[str, set[int]]:
        """Which results of a node something reads, or are results of the graph."""
        used: dict[str, set[int]] = {name: {0} for name in self.wanted}
        for name in self.live:
            for source, place in self.by_name[name].inputs:
                used.setdefault(source, set()).add(place)
        return used

    # ---- what is there before the first call

    def _inputs(self, node: NodeDef) -> None:
        given = list(declared(node, self._size, self.sizes))
        for place in sorted(self._used[node.name]):
            if place >= len(given):
                self.problem("file.missing", f"`{node.name}` has no result {place}", node.name)
        for place, (name, info) in enumerate(given):
            check_shape(info.shape, f"the input `{name}`")
            if place not in self._used[node.name]:
                continue
            own = self.inputs[name] = self.writer.input(name, info)
            sources = frozenset((name,))
            value = Value(info, lambda: "", sources=sources, name=own)
            self.values[node.name, place] = value

    def _size(self, name: str) -> int:
        """An open size: what it is bound to, or a symbol of the signature."""
        said = self.sizes[name]
        if not isinstance(said, Dim):
            return said
        key = str(said)
        if key not in self._symbols:
            self._symbols[key] = self.writer.size(key, said)
        return self._symbols[key]

    def _variable(self, node: NodeDef) -> None:
        """A parameter, with the values that the graph gives it, if any."""
        kind, shape = attribute(node, "dtype", "type"), shape_of(node)
        if kind is None:
            raise Unsupported("its type is not declared")
        own = size_name(node.name)
        if shape is None or None in shape:
            shape = told_shape(own, self.sizes)
        if shape is None:
            raise Unsupported(f"its shape is not declared: say it, like --bind {own}=3,4")
        sizes = tuple(size for size in shape if size is not None)
        check_shape(sizes, f"the variable `{node.name}`")
        info = TensorInfo(sizes, dtype(kind))
        start = initial(self.by_name, self._starts.get(node.name), info)
        write = self.writer.param
        self.values[node.name, 0] = Value(
            info, lambda: write(node.name, info, start), origin=node.name
        )

    def _constant(self, node: NodeDef) -> None:
        given = attribute(node, "value", "tensor")
        if given is None:
            raise Unsupported("its value is missing")
        found, info = tensor(given, f"the constant `{node.name}`")
        self.values[node.name, 0] = constant(self.writer, found, node.name, info)

    # ---- nodes

    def _reach(self, node: NodeDef) -> None:
        """Writes a node, and before it those that it is computed from."""
        path: list[tuple[NodeDef, int]] = [(node, 0)]
        open_ = {node.name}
        while path:
            at, place = path.pop()
            if (at.name, 0) in self.values:
                open_.discard(at.name)
                continue
            frame = self._frames.get(at.name)
            inputs = at.inputs if frame is None else frame.outside
            if place == len(inputs):
                open_.discard(at.name)
                if frame is None:
                    self._node(at)
                else:
                    self._guarded(at, self._loop)
                continue
            path.append((at, place + 1))
            source = self.by_name.get(inputs[place][0])
            if source is None or (source.name, 0) in self.values:
                continue
            if source.name in open_:
                if not any(self.by_name[name].op in LOOPS for name in open_):
                    self._circle(source.name, [one.name for one, _ in path])
                self.values[source.name, 0] = Broken()
                continue
            open_.add(source.name)
            path.append((source, 0))

    def _circle(self, name: str, path: Sequence[str]) -> None:
        """Tells which nodes a node that is computed from itself is computed from on the way."""
        way = path[path.index(name) :]
        shown = " from ".join(f"`{one}`" for one in (*way[:_MOST_SHOWN], name))
        rest = f" ({len(way) - _MOST_SHOWN} more between)" if len(way) > _MOST_SHOWN else ""
        self.problem("file.circle", f"a node is computed from itself: {shown}{rest}", name)

    def _without_results(self) -> None:
        """Tells why nothing hangs on an input: nodes are missing, or computed from themselves."""
        for node in self.nodes:
            for name in dict.fromkeys(name for name, _ in node.inputs):
                if name not in self.by_name:
                    why = f"`{name}` is read, and nothing gives it"
                    self.problem("file.missing", why, node.name)
        waits = {node.name: {n for n, _ in node.inputs if n in self.by_name} for node in self.nodes}
        readers: dict[str, list[str]] = {}
        for name, sources in waits.items():
            for source in sources:
                readers.setdefault(source, []).append(name)
        done = [name for name, sources in waits.items() if not sources]
        for name in done:
            for reader in readers.get(name, ()):
                waits[reader].discard(name)
                done += [reader] * (not waits[reader])
        left = {name: sources for name, sources in waits.items() if sources}
        if left and not self.problems:
            path = [next(iter(left))]
            while path[-1] not in path[:-1]:
                path.append(min(left[path[-1]]))
            self._circle(path[-1], path[:-1])
        if not self.problems:
            self.problem("file.tf", "nothing in the graph is computed from an input or a variable")

    def _node(self, node: NodeDef) -> None:
        self.values[node.name, 0] = Broken()
        if node.op in INPUTS:
            return
        if node.op in VARIABLES:
            self._guarded(node, self._variable)
        elif node.op == "Const":
            self._guarded(node, self._constant)
        elif node.op in SWITCHES and len(node.inputs) == 2:
            data = self._read(node, node.inputs[0])
            self.values[node.name, 0] = self.values[node.name, 1] = data
            if isinstance(data, Value) and data.info.kind != "bool":
                self._guarded(node, lambda node: self._handed(node, data))
        elif node.op in MERGES:
            self._guarded(node, self._choice)
        elif node.op in HANDED and node.inputs:
            self.values[node.name, 0] = self._read(node, node.inputs[0])
        elif node.op in LISTS:
            self._guarded(node, self._list)
        elif node.op == CHOICE and len(node.inputs) == 3:
            self._guarded(node, lambda node: self._chosen(node, node.inputs))
        elif node.op not in ROWS:
            why = LEFT_OUT.get(node.op, "this operator is not translated")
            self._refuse(node, why)
        else:
            given = [self._read(node, source) for source in node.inputs]
            values = [value for value in given if isinstance(value, Value)]
            if any(isinstance(value, List) for value in given):
                if node.op != "Identity":
                    self._refuse(node, "it reads a list of tensors")
                    return
                self.values[node.name, 0] = given[0]
            elif len(values) == len(given):
                self._guarded(node, lambda node: self._call(node, ROWS[node.op], values))

    def _handed(self, node: NodeDef, data: Value) -> None:
        """What branches are handed that their condition is about: a number that it allows, where
        they are not taken.
        """
        condition = self._read(node, node.inputs[1])
        if not isinstance(condition, Value) or condition.known() is not None:
            return
        source, test = node.inputs
        steps = partial(told, self.by_name)
        for place in sorted(self._used[node.name] & {0, 1}):
            spare = allowed(steps, test, source, bool(place), self._number)
            if spare is None:
                continue
            name = f"{node.name}:{place}" if place else node.name
            self.writer.owner = node.name
            made = Node(self.writer, node.op, [condition, data], [name], {}, self._twins)
            other = made.const(np.full((), spare, DTYPES[data.dtype].numpy), f"{name}_spare")
            pair = (data, other) if place else (other, data)
            self.values[node.name, place] = made.call("where", condition, *pair)

    def _number(self, source: Reference) -> float | None:
        """The value of a tensor, where that is one number and known."""
        value = self.values.get(source)
        return value.number() if isinstance(value, Value) else None

    def _choice(self, node: NodeDef) -> None:
        """One of two values, by a condition: chosen here if that is known, else in the text."""
        found = self._choices.branches(node)
        if found is None or 1 in self._used[node.name]:
            raise Unsupported("control flow is not supported, unless it is a choice of two")
        self._chosen(node, found)

    def _chosen(self, node: NodeDef, sources: Sequence[Reference]) -> None:
        """sources: a condition, what is taken where it holds, and else."""
        condition, yes, no = (self._read(node, source) for source in sources)
        if not isinstance(condition, Value):
            return
        known = condition.known()
        if known is not None and known.size == 1:
            self.values[node.name, 0] = yes if known.reshape(-1)[0] else no
        elif isinstance(yes, Value) and isinstance(no, Value):
            self._call(node, ROWS["SelectV2"], [condition, yes, no])

    def _read(self, node: NodeDef, source: Reference) -> Value | List | Broken:
        name, place = source
        if source in self.values:
            return self.values[source]
        if name not in self.by_name:
            self.problem("file.missing", f"`{name}` is read, and nothing gives it", node.name)
        elif not isinstance(self.values.get((name, 0)), Broken):
            self.problem("file.missing", f"`{name}` has no result {place}", node.name)
        return Broken()

    def _call(self, node: NodeDef, row: Row, values: Sequence[Value]) -> None:
        """Writes a node by its row."""
        self.writer.owner = node.name
        used = self._used[node.name]
        outputs = [
            (f"{node.name}:{place}" if place else node.name) if place in used else ""
            for place in range(max(used) + 1)
        ]
        made = Node(self.writer, node.op, values, outputs, node.attributes, self._twins)
        found = row(made)
        made.finish()
        several = [found] if isinstance(found, Value) else list(found)
        for place, value in enumerate(several):
            if value is not None:
                self.values[node.name, place] = value

    def _guarded(self, node: NodeDef, write: Callable[[NodeDef], None]) -> None:
        """What is wrong with a node is told, and its results are left out."""
        self.values.setdefault((node.name, 0), Broken())
        try:
            write(node)
        except Unsupported as error:
            self._refuse(node, error.reason)
        except Fault as error:
            for code, message in error.faults:
                self.problem(code, f"{node.op} `{node.name}`: {message}", node.name)
        except InvalidInput as error:
            for found in error.diagnostics:
                message = f"{node.op} `{node.name}`: {found.message}"
                self.problem(found.code, message, node.name)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # A row takes a node for what TensorFlow accepts; its inputs and attributes may still
            # contradict one another.
            why = f"its inputs and attributes do not fit together ({error})"
            self.problem("file.node", f"{node.op} `{node.name}`: {why}", node.name)

    def _refuse(self, node: NodeDef, reason: str) -> None:
        self.problem("import.operator", f"{node.op} `{node.name}`: {reason}", node.name)

    # ---- results

    def _outputs(self) -> list[str]:
        """The results under their own names; a result that is an input too needs a name."""
        found: list[str] = []
        for wanted in self.wanted:
            value = self.values.get((wanted, 0))
            if not isinstance(value, Value):
                continue
            self.writer.owner = wanted
            name = value.text()
            own = self.writer.original(name) == wanted and name not in self.writer.params
            if name in found or name in self.writer.inputs or not own:
                name = self.writer.call([wanted], "identity", name)[0]
            found.append(name)
        return found
