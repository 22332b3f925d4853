"""Loops of a TensorFlow graph, whose steps are counted while it is read, and written one by one.

A loop is a frame: what goes in passes an `Enter`; a `Merge` holds a variable of the loop, which is
the `Enter`'s at first and the `NextIteration`'s then; `LoopCond` says whether there is a step more,
in which a `Switch` hands the variable to the body, or else to an `Exit`. A loop is unrolled if its
condition can be told without the values of inputs, as that of a recurrent layer over a sequence of
known length.

A `TensorArray` is a list of tensors: what is read and written by a position that is known is seen
through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irlang.importers.tf_file import Attribute, NodeDef
from irlang.importers.value import Unsupported, Value

ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})
AGAIN = frozenset({"NextIteration", "RefNextIteration"})
HANDED = ENTERS | AGAIN | {"LoopCond"}  # what gives its input as it is
MOST_STEPS = 256
MOST_IN_ALL = 4096  # steps of all loops, those inside one another included
_MERGES = frozenset({"Merge", "RefMerge"})
_SWITCHES = frozenset({"Switch", "RefSwitch"})

Reference = tuple[str, int]


@dataclass(frozen=True, slots=True)
class List:
    """A list of tensors, by their positions. size: of all of it, None where that is not known."""

    size: int | None = None
    elements: Mapping[int, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a loop: its merge, what it is at first and after a step, and who reads it."""

    merge: str
    start: Reference
    again: str
    switches: tuple[str, ...]
    exits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A loop. changing: the nodes that are computed anew in every step. condition: its `LoopCond`.
    outside: what it is given.
    """

    condition: str
    variables: tuple[Variable, ...]
    changing: frozenset[str]
    outside: tuple[Reference, ...]


def frames(nodes: Mapping[str, NodeDef]) -> dict[str, Frame]:
    """The loops of a graph, by the names of their exits; none that is not built as loops are."""
    users: dict[str, list[NodeDef]] = {}
    for node in nodes.values():
        for name, _ in node.inputs:
            users.setdefault(name, []).append(node)
    found: dict[str, Frame] = {}
    by_name: dict[object, list[NodeDef]] = {}
    for node in nodes.values():
        if node.op in ENTERS:
            own = node.attributes.get("frame_name")
            by_name.setdefault(own.value if own is not None else b"", []).append(node)
    for enters in by_name.values():
        frame = _frame(nodes, users, enters)
        for variable in frame.variables if frame is not None else ():
            found.update((name, frame) for name in variable.exits if frame is not None)
    return found


def _frame(
    nodes: Mapping[str, NodeDef], users: Mapping[str, list[NodeDef]], enters: Sequence[NodeDef]
) -> Frame | None:
    variables = []
    conditions: set[str] = set()
    for enter in enters:
        for merge in users.get(enter.name, ()):
            if merge.op not in _MERGES or len(merge.inputs) != 2:
                continue
            again = [nodes.get(name) for name, _ in merge.inputs if name != enter.name]
            if len(again) != 1 or again[0] is None or again[0].op not in AGAIN:
                return None
            switches = [n for n in users.get(merge.name, ()) if n.op in _SWITCHES]
            switches = [n for n in switches if n.inputs[0][0] == merge.name and len(n.inputs) == 2]
            conditions.update(node.inputs[1][0] for node in switches)
            exits = [n.name for s in switches for n in users.get(s.name, ()) if n.op in EXITS]
            variables.append(
                Variable(
                    merge.name, (enter.name, 0), again[0].name,
                    tuple(node.name for node in switches), tuple(exits),
                )
            )  # fmt: skip
    if len(conditions) != 1 or nodes[min(conditions)].op != "LoopCond":
        return None
    (condition,) = conditions
    inside = _before(nodes, [condition, *(v.again for v in variables)], {e.name for e in enters})
    starts = {name for v in variables for name in (v.merge, *v.switches)}
    changing = _behind(users, starts, inside)
    # a gradient hands in stacks for what it needs of every step, which the loop itself never reads
    read = {name for one in inside for name, _ in nodes[one].inputs}
    read.update(v.start[0] for v in variables)
    outside = tuple(source for e in enters if e.name in read for source in e.inputs[:1])
    return Frame(condition, tuple(variables), frozenset(changing), outside)


def _before(nodes: Mapping[str, NodeDef], wanted: Iterable[str], ends: set[str]) -> frozenset[str]:
    """The nodes that some are computed from, up to the ends."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in found and name not in ends:
            found.add(name)
            waiting += [source for source, _ in nodes[name].inputs]
    return frozenset(found)


def _behind(
    users: Mapping[str, list[NodeDef]], starts: Iterable[str], inside: frozenset[str]
) -> set[str]:
    """The nodes inside a loop that hang on some of them, and these."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found and name in inside:
            found.add(name)
            waiting += [node.name for node in users.get(name, ())]
    return found


def conjuncts(nodes: Mapping[str, NodeDef], source: Reference) -> list[Reference]:
    """The conditions that all have to hold for one to hold."""
    found: dict[Reference, None] = {}
    waiting, seen = [source], {source}
    while waiting:
        one = waiting.pop()
        node = nodes.get(one[0])
        if node is None or node.op not in ("LogicalAnd", "Identity", "LoopCond"):
            found[one] = None
            continue
        waiting += [given for given in node.inputs if given not in seen]
        seen.update(node.inputs)
    return list(found)


# ---- loops of TensorFlow 2 ----------------------------------------------------------------------


def as_frame(
    node: NodeDef,
    free: Callable[[str], str],
    condition: Callable[[Sequence[Reference]], Sequence[Reference]],
    body: Callable[[Sequence[Reference]], Sequence[Reference]],
) -> tuple[list[NodeDef], list[Reference]]:
    """A `While` as a frame: its own nodes, and what gives its results.

    free: a name that is not taken. condition, body: write out the two functions for some arguments.
    """
    frame = {"frame_name": Attribute("s", node.name.encode())}
    names = [
        {
            kind: free(f"{node.name}/{kind}_{i}")
            for kind in ("Enter", "Merge", "Switch", "Next", "Exit")
        }
        for i in range(len(node.inputs))
    ]
    (holds, *_) = condition([(own["Merge"], 0) for own in names])
    test = free(f"{node.name}/LoopCond")
    made = [NodeDef(test, "LoopCond", [holds])]
    after = body([(own["Switch"], 1) for own in names])
    for own, source, then in zip(names, node.inputs, after, strict=True):
        made += [
            NodeDef(own["Enter"], "Enter", [source], [], frame),
            NodeDef(own["Merge"], "Merge", [(own["Enter"], 0), (own["Next"], 0)]),
            NodeDef(own["Switch"], "Switch", [(own["Merge"], 0), (test, 0)]),
            NodeDef(own["Next"], "NextIteration", [then]),
            NodeDef(own["Exit"], "Exit", [(own["Switch"], 0)]),
        ]
    return made, [(own["Exit"], 0) for own in names]


# ---- lists of tensors ---------------------------------------------------------------------------

Given = Sequence[Value | List]
Results = dict[int, Value | List]
# What writes a node of another operator: its name, its inputs, its attributes, how many results.
Write = Callable[[str, Sequence[Value], Mapping[str, Attribute], int], list[Value]]


def unknown(what: str) -> str:
    """That something would have to be known."""
    return (
        f"{what} is not known when the model is read; where it is a size that the graph leaves "
        "open, say it with --bind"
    )


def _number(value: Value | List, what: str) -> int:
    known = value.known() if isinstance(value, Value) else None
    if known is None or known.size != 1 or known.dtype == object:
        raise Unsupported(unknown(what))
    return int(known.reshape(-1)[0])


def _numbers(value: Value | List) -> list[int]:
    known = value.known() if isinstance(value, Value) else None
    if known is None or known.dtype == object:
        raise Unsupported(unknown("which of its elements are meant"))
    return [int(item) for item in known.reshape(-1)]


def _array(value: Value | List) -> List:
    if not isinstance(value, List):
        raise Unsupported("what it reads is no list of tensors")
    return value


def _tensor(value: Value | List) -> Value:
    if not isinstance(value, Value):
        raise Unsupported("a list of lists of tensors")
    return value


def _made(given: Given, write: Write) -> Results:  # noqa: ARG001 (as of the others)
    size = _number(given[0], "its size")
    return {0: List(size), 1: List(size)}


def _reserved(given: Given, write: Write) -> Results:  # noqa: ARG001
    return {0: List(_number(given[1], "its size"))}


def _element(array: List, place: int) -> Value:
    if place not in array.elements:
        raise Unsupported(f"element {place} is read, and none was written")
    return array.elements[place]


def _read(array: int, place: int) -> Callable[[Given, Write], Results]:
    def row(given: Given, write: Write) -> Results:  # noqa: ARG001
        return {0: _element(_array(given[array]), _number(given[place], "the position"))}

    return row


def _written(array: int, place: int, item: int) -> Callable[[Given, Write], Results]:
    def row(given: Given, write: Write) -> Results:  # noqa: ARG001
        own = _array(given[array])
        at = _number(given[place], "the position")
        return {0: replace(own, elements={**own.elements, at: _tensor(given[item])})}

    return row


def _parts(value: Value, write: Write) -> list[Value]:
    if not value.info.shape or not isinstance(value.info.shape[0], int):
        raise Unsupported(unknown("the number of its elements"))
    count = int(value.info.shape[0])
    attributes = {"num": Attribute("i", count), "axis": Attribute("i", 0)}
    return write("Unpack", [value], attributes, count)


def _scattered(given: Given, write: Write) -> Results:
    own, places = _array(given[3]), _numbers(given[1])
    parts = _parts(_tensor(given[2]), write)
    return {0: replace(own, elements={**own.elements, **dict(zip(places, parts, strict=True))})}


def _listed(given: Given, write: Write) -> Results:
    parts = _parts(_tensor(given[0]), write)
    return {0: List(len(parts), dict(enumerate(parts)))}


def _joined(items: list[Value], write: Write) -> Results:
    count = {"N": Attribute("i", len(items)), "axis": Attribute("i", 0)}
    return {0: write("Pack", items, count, 1)[0]}


def _gathered(given: Given, write: Write) -> Results:
    own = _array(given[2])
    return _joined([_element(own, place) for place in _numbers(given[1])], write)


def _stacked(given: Given, write: Write) -> Results:
    own = _array(given[0])
    return _joined([_element(own, place) for place in range(own.size or 0)], write)


def _counted(array: int) -> Callable[[Given, Write], Results]:
    def row(given: Given, write: Write) -> Results:
        size = _array(given[array]).size
        if size is None:
            raise Unsupported(unknown("its size"))
        return {0: write("", [], {"value": Attribute("i", size)}, 1)[0]}

    return row


LISTS: dict[str, Callable[[Given, Write], Results]] = {
    "TensorArrayV3": _made,
    "TensorArrayReadV3": _read(2, 1),
    "TensorArrayWriteV3": _written(3, 1, 2),
    "TensorArrayScatterV3": _scattered,
    "TensorArrayGatherV3": _gathered,
    "TensorArraySizeV3": _counted(1),
    "TensorListReserve": _reserved,
    "TensorListFromTensor": _listed,
    "TensorListGetItem": _read(0, 1),
    "TensorListSetItem": _written(0, 1, 2),
    "TensorListStack": _stacked,
    "TensorListLength": _counted(0),
}
