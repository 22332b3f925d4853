"""Functions inside a TensorFlow graph, written out where they are called.

`tf.function` leaves a library of functions beside the nodes, and nodes that call them; a choice of
TensorFlow 2 (`If`) calls one of two. Here every call becomes the nodes of the function's body that
its results hang on, under names that begin with that of the call; a choice becomes both bodies, and
a node that takes the one or the other for each result. Elements that a queue hands out are inputs,
as those of an iterator are.

In a body, `node:argument:2` is a result by the name of the operator's argument; a call has results
by their number alone (tensorflow/core/framework/function.proto).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from irlang.diagnostics import InvalidInput
from irlang.importers import tf_file
from irlang.importers.handed import compares
from irlang.importers.protobuf import Malformed, fields, text, view
from irlang.importers.tf_cond import told
from irlang.importers.tf_file import Attribute, NodeDef, malformed
from irlang.importers.tf_loops import as_frame
from irlang.importers.value import Unsupported

CHOICE = "If: taken"  # of a condition and two values; no operator of a file has a space in its name
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_CHOICES = frozenset({"If", "StatelessIf"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_DEEPEST = 32  # calls inside one another
_MOST = 200_000  # nodes that all calls are written out as

# The results, by name and in their order, of operators that have several: all others have one, or
# one list of them.
SEVERAL: dict[str, tuple[str, ...]] = {
    "TopKV2": ("values", "indices"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "LogMatrixDeterminant": ("sign", "log_abs_determinant"),
    "Switch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "BroadcastGradientArgs": ("r0", "r1"),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2",
         "reserve_space_3"),
    ),
}  # fmt: skip

Reference = tuple[str, int]  # a node, and which of its results


@dataclass(slots=True)
class Function:
    """A function: the names of its arguments and results, its body, and what gives each result."""

    name: str = ""
    arguments: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    body: dict[str, NodeDef] = field(default_factory=dict)
    given: dict[str, Reference] = field(default_factory=dict)


def read(path: Path) -> list[NodeDef]:
    """The nodes of a file, calls written out. Raises `InvalidInput` where it is no graph."""
    return message(tf_file.contents(path), str(path))


def message(data: bytes, shown: str) -> list[NodeDef]:
    """The nodes that bytes say, calls written out. Raises `InvalidInput` where they say none."""
    nodes = tf_file.message(data, shown)
    try:
        functions = _library(data)
        made = _Inlining(functions).run(nodes) if functions else nodes
    except Malformed as error:
        raise malformed(shown, str(error)) from None
    return _dequeued(made)


def _library(data: bytes) -> dict[str, Function]:
    found = {}
    for number, _, value in fields(tf_file.graph_of(data)):
        if number == 2:
            for inner, _, item in fields(view(value)):
                if inner == 1:
                    function = _function(view(item))
                    found[function.name] = function
    return found


def _function(data: memoryview) -> Function:
    made = Function()
    for number, _, value in fields(data):
        if number == 1:
            for inner, _, item in fields(view(value)):
                if inner == 1:
                    made.name = text(item)
                elif inner in (2, 3):
                    names = made.arguments if inner == 2 else made.results
                    names += [text(v) for n, _, v in fields(view(item)) if n == 1]
        elif number == 3:
            node = tf_file.node_of(view(value))
            made.body[node.name] = node
        elif number == 4:
            pair = {n: text(v) for n, _, v in fields(view(value)) if n in (1, 2)}
            made.given[pair.get(1, "")] = tf_file.reference(pair.get(2, ""))
    if not made.name:
        raise Malformed("a function has no name")
    return made


def called(node: NodeDef, name: str) -> str:
    """The name of the function in an attribute of a node; '' where there is none."""
    found = node.attributes.get(name)
    if found is None or found.kind != "func":
        return ""
    return next((text(value) for number, _, value in fields(found.value) if number == 1), "")


class _Inlining:
    """One graph in the making."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self.named: dict[str, NodeDef] = {}  # the nodes, and the first `seen` of those made
        self.seen = 0
        self.made: list[NodeDef] = []
        self.taken: set[str] = set()
        self.results: dict[Reference, Reference] = {}  # of calls: what gives them

    def run(self, nodes: Sequence[NodeDef]) -> list[NodeDef]:
        """The nodes, and those of all calls."""
        self.named = {node.name: node for node in nodes}
        self.taken.update(self.named)
        for node in nodes:
            self._add(node, ())
        for node in self.made:
            node.inputs = [self._final(source) for source in node.inputs]
        return self.made

    def _final(self, source: Reference) -> Reference:
        """What gives a result, calls being seen through."""
        seen = set()
        while source in self.results and source not in seen:
            seen.add(source)
            source = self.results[source]
        return source

    def _add(self, node: NodeDef, chain: tuple[str, ...]) -> None:
        """A node as it is, or as what it calls. chain: the functions that it stands in."""
        if node.op in _CHOICES:
            names = [called(node, "then_branch"), called(node, "else_branch")]
        elif node.op in _LOOPS:
            names = [called(node, "cond"), called(node, "body")]
        else:
            names = [called(node, "f") if node.op in _CALLS else node.op]
        bodies = [self.functions.get(name) for name in names]
        if not all(bodies) or any(name in chain for name in names) or len(chain) >= _DEEPEST:
            self.made.append(node)  # which the walk refuses where it is a call
            return
        if node.op in _LOOPS:
            test, body = (
                partial(self._written, function, f"{node.name}/{name}", chain=(*chain, name))
                for function, name in zip(bodies, names, strict=True)
                if function is not None
            )
            made, results = as_frame(
                node, self._free, lambda x: test(given=x), lambda x: body(given=x)
            )
            self.made += made
            self.results.update({(node.name, i): one for i, one in enumerate(results)})
            return
        condition = node.inputs[:1] if node.op in _CHOICES else []
        given = [(one, one) for one in node.inputs[len(condition) :]]
        if condition:
            given = self._handed(node, condition[0])
        ways = [
            self._written(body, node.name, [one[way] for one in given], (*chain, name))
            for way, (body, name) in enumerate(zip(bodies, names, strict=True))
            if body is not None
        ]
        if not condition:
            self.results.update({(node.name, i): one for i, one in enumerate(ways[0])})
            return
        for i, (yes, no) in enumerate(zip(*ways, strict=False)):
            own = self._free(f"{node.name}/output_{i}")
            self.made.append(NodeDef(own, CHOICE, [*condition, yes, no]))
            self.results[node.name, i] = own, 0

    def _handed(self, node: NodeDef, condition: Reference) -> list[tuple[Reference, Reference]]:
        """What a choice hands to its functions, where it is true and where it is false: by a switch
        where the condition is about it.
        """
        self.named.update((one.name, one) for one in self.made[self.seen :])
        self.seen = len(self.made)
        steps = partial(told, self.named)
        found = []
        for place, source in enumerate(node.inputs[1:]):
            if compares(steps, condition, source):
                own = self._free(f"{node.name}/handed_{place}")
                self.made.append(NodeDef(own, "Switch", [source, condition]))
                found.append(((own, 1), (own, 0)))
            else:
                found.append((source, source))
        return found

    def _free(self, wanted: str) -> str:
        found, count = wanted, 0
        while found in self.taken:
            count += 1
            found = f"{wanted}_{count}"
        self.taken.add(found)
        return found

    def _written(
        self,
        function: Function,
        prefix: str,
        given: Sequence[Reference],
        chain: tuple[str, ...],
    ) -> list[Reference]:
        """The nodes of a body that its results hang on; what gives each result."""
        arguments = dict(zip(function.arguments, given, strict=False))
        waiting = [function.given.get(name, ("", 0)) for name in function.results]
        needed: dict[str, None] = {}
        while waiting:
            name = waiting.pop()[0].partition(":")[0]
            if name in function.body and name not in needed:
                needed[name] = None
                waiting += function.body[name].inputs
        if len(self.made) + len(needed) > _MOST:
            raise Malformed(f"its functions, written out, are more than {_MOST} nodes")
        own = {name: self._free(f"{prefix}/{name}") for name in needed}

        def outside(source: Reference) -> Reference:
            name, _, argument = source[0].partition(":")
            if name not in own:
                return arguments.get(name, ("", 0))
            return own[name], source[1] + self._first(function.body[name], argument)

        for name in function.body:
            if name in own:
                node = function.body[name]
                inputs = [outside(source) for source in node.inputs]
                self._add(replace(node, name=own[name], inputs=inputs, after=[]), chain)
        return [outside(function.given.get(name, ("", 0))) for name in function.results]

    def _first(self, node: NodeDef, argument: str) -> int:
        """The number of the first result that an operator gives by a name."""
        inner = self.functions.get(node.op)
        names = inner.results if inner is not None else SEVERAL.get(node.op, ())
        return list(names).index(argument) if argument in names else 0


# ---- queues -----------------------------------------------------------------------------------


def _dequeued(nodes: list[NodeDef]) -> list[NodeDef]:
    """The nodes, what queues hand out being inputs like those of an iterator."""
    by_name = {node.name: node for node in nodes}
    return [_handed(node, by_name) if node.op in _HANDING else node for node in nodes]


def _handed(node: NodeDef, by_name: Mapping[str, NodeDef]) -> NodeDef:
    queue = by_name.get(node.inputs[0][0]) if node.inputs else None
    own = queue.attributes if queue is not None else {}
    shapes, kinds = own.get("shapes"), node.attributes.get("component_types")
    if shapes is None or kinds is None or shapes.kind != "list shape" or kinds.kind != "list type":
        return node
    lead = _HANDING[node.op](node, by_name)
    known = [None if shape is None else (*lead, *shape) for shape in shapes.value]
    told = {"output_types": kinds, "output_shapes": Attribute("list shape", known)}
    return NodeDef(node.name, "IteratorGetNext", [], [], told)


def _count(node: NodeDef, by_name: Mapping[str, NodeDef]) -> tuple[int | None, ...]:
    """How many elements are handed out at once; None where that is open."""
    source = by_name.get(node.inputs[1][0]) if len(node.inputs) > 1 else None
    value = source.attributes.get("value") if source is not None and source.op == "Const" else None
    if value is None or value.kind != "tensor":
        return (None,)
    try:
        return (int(tf_file.tensor(value.value, node.name)[0]),)
    except (Unsupported, InvalidInput, TypeError):  # the walk tells what it reads itself
        return (None,)


_HANDING: dict[str, Callable[[NodeDef, Mapping[str, NodeDef]], tuple[int | None, ...]]] = {
    "QueueDequeue": lambda node, by_name: (),  # noqa: ARG005 (one element)
    "QueueDequeueV2": lambda node, by_name: (),  # noqa: ARG005
    "QueueDequeueMany": _count,
    "QueueDequeueManyV2": _count,
    "QueueDequeueUpTo": lambda node, by_name: (None,),  # noqa: ARG005
    "QueueDequeueUpToV2": lambda node, by_name: (None,),  # noqa: ARG005
}
