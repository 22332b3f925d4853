"""The gradient of a model as a graph: its calls, then the adjoints of its calls, as calls.

A `Pullback` is a call whose equations are the adjoint of another's, so that all that is done to
calls (evaluating, lowering, judging one by one) is done to those of a gradient as well. What is
differentiated is the loss; where a model has none, the sum of all elements of its real results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from irlang import ast
from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.adjoint_forward import reaching, stops
from irlang.graph import Graph, Node, Operand
from irlang.instance import Definitions, instantiate

PREFIX = "d_"
_TERMS = 32  # of one expression that adds up
_EXTREMES = ("max", "min", "argmax", "argmin")  # reductions


@dataclass(frozen=True, slots=True)
class Step:
    """The adjoint of one call.

    seeds: the value whose cotangent is given, for every input that is one; gradients: the value
    that every output adds to.
    """

    node: Node
    expansion: eq.Expansion
    seeds: dict[str, str]
    gradients: dict[str, str]


@dataclass(frozen=True, slots=True)
class Backward:
    """All that it takes to differentiate a graph, made once: steps in the order of evaluation.

    seeds: the values that are summed up to be differentiated; wanted: real inputs and parameters.
    """

    graph: Graph
    steps: tuple[Step, ...]
    seeds: tuple[str, ...]
    wanted: tuple[str, ...]


def prepare(
    graph: Graph, definitions: Definitions, of: str | None = None, ties: str = "first"
) -> Backward:
    """The adjoint equations of every call that lies between a parameter or input and `of`.

    of: the name of a value (the loss unless said). ties: see `irlang.adjoint.adjoint`; that of
    definitions which do not say `grad x ties first` or `even` themselves.
    """
    real = {name for name, info in graph.values.items() if info.kind == "real"}
    of = of or graph.loss
    roots = (of,) if of else tuple(graph.outputs.values())
    seeds = tuple(dict.fromkeys(name for name in roots if name in real))
    given = (*graph.inputs, *(n for n, param in graph.params.items() if not param.literal))
    wanted = tuple(name for name in given if name in real)
    active = set(wanted)
    for node in graph.nodes:
        if active.intersection(node.operands()):
            active.update(name for name in node.outputs if name in real)
    flowing = set(seeds)
    steps = []
    for node in reversed(graph.nodes):
        outputs = {f: v for f, v in node.results().items() if v in flowing and v in active}
        sources = {f: v for f, v in node.feeds().items() if v in active}
        expansion = node.expansion(definitions)
        sources = {f: v for f, v in sources.items() if _passes(expansion, f, outputs)}
        if not outputs or not sources:
            continue
        own = {s.ties for s in node.op.body if isinstance(s, ast.Grad)} - {"any", "beyond"}
        prefix = free_prefix(expansion.tensors)
        backward = _adjoint(
            expansion, tuple(sources), tuple(outputs), min(own, default=ties), prefix
        )
        flowing.update(sources.values())
        steps.append(
            Step(
                node,
                backward,
                {prefix + formal: value for formal, value in outputs.items()},
                dict(zip(backward.outputs, sources.values(), strict=True)),
            )
        )
    return Backward(graph, tuple(steps), seeds, wanted)


def leaves_choice(backward: Backward) -> bool:
    """Whether anything may be chosen at a tie or a kink in equations of `ties="any"`: these say
    `about` of what is open at a kink, and seek the elements that are extreme. Where nothing may,
    the equations of every other way to choose are the same.
    """
    return any(_is_open(step.expansion) for step in backward.steps)


def _is_open(expansion: eq.Expansion) -> bool:
    key = f"{__name__} open"
    if key not in expansion.notes:
        parts = (part for equation in expansion.equations for part in eq.walk(equation.body))
        expansion.notes[key] = any(
            (isinstance(part, eq.Apply) and part.function == "about")
            or (isinstance(part, eq.Reduce) and part.kind in _EXTREMES)
            for part in parts
        )
    return bool(expansion.notes[key])


def _passes(expansion: eq.Expansion, source: str, outputs: Iterable[str]) -> bool:
    """Whether a gradient may flow from an output to an input: not where `constant` parts them."""
    if not any(stops(part) for e in expansion.equations for part in eq.walk(e.body)):
        return True
    found = reaching([source], expansion.equations, expansion.tensors, stopping=True)
    return not found.isdisjoint(outputs)


def free_prefix(names: Iterable[str]) -> str:
    """What cotangents are named by: another prefix where a call is an adjoint itself."""
    taken, prefix = set(names), PREFIX
    while any(prefix + name in taken for name in taken):
        prefix = f"d{prefix}"
    return prefix


def _adjoint(
    expansion: eq.Expansion,
    wanted: tuple[str, ...],
    seeds: tuple[str, ...],
    ties: str,
    prefix: str,
) -> eq.Expansion:
    """The adjoint equations of a call, which its expansion remembers."""
    key = f"{__name__} {wanted} {seeds} {ties}"
    if key not in expansion.notes:
        expansion.notes[key] = adjoint(expansion, wanted, seeds, ties=ties, prefix=prefix)
    found: eq.Expansion = expansion.notes[key]
    return found


# ---- as a graph -------------------------------------------------------------------------------


@dataclass(slots=True)
class Pullback(Node):
    """A call with equations of its own.

    forward: the call whose adjoint it is; None where it adds up what flows back to a value.
    """

    equations: eq.Expansion = field(default_factory=lambda: eq.Expansion((), (), (), {}))
    forward: Node | None = None

    def expansion(self, definitions: Definitions) -> eq.Expansion:  # noqa: ARG002 (as of any call)
        """Its own equations."""
        return self.equations

    def results(self) -> dict[str, str]:
        """The value name of every output of the equations."""
        return dict(zip(self.equations.outputs, self.outputs, strict=True))


@dataclass(slots=True)
class GradientGraph:
    """A graph that computes the gradient too.

    cotangents: the name of what flows back to a value, by the value's name. ones: the names of
    that which every gradient starts from.
    """

    graph: Graph
    cotangents: dict[str, str]
    ones: frozenset[str] = frozenset()


def gradient_graph(backward: Backward, forks: Iterable[str] = ()) -> GradientGraph:
    """The graph of a gradient: the calls of the model, then a `Pullback` for each, and for each
    value to which more than one thing flows back. Its results are those of the model and the
    gradients, as `d_NAME`; as `dd_NAME` where values of the model have such names.

    forks: calls that hand their operand on as it is (`split`): what flows back to them is what
    they give back.
    """
    graph = backward.graph
    prefix = free_prefix(graph.values)
    made = replace(
        graph, nodes=list(graph.nodes), values=dict(graph.values), outputs=dict(graph.outputs)
    )
    counts: dict[str, int] = dict.fromkeys(backward.seeds, 1)
    for step in backward.steps:
        for name in step.gradients.values():
            counts[name] = counts.get(name, 0) + 1
    parts: dict[str, list[str]] = {}
    cotangents: dict[str, str] = {}
    ones: list[str] = []
    skipped = frozenset(forks)

    def part(name: str) -> str:
        """The name of one more thing that flows back to a value."""
        own = f"{prefix}{name}"
        called = own if counts[name] == 1 else f"{own}.{len(parts.get(name, ()))}"
        parts.setdefault(name, []).append(called)
        made.values[called] = graph.values[name]
        return called

    def total(name: str) -> str:
        """The name of all that flows back to a value, added up."""
        own = cotangents.setdefault(name, f"{prefix}{name}")
        if own not in made.values:
            made.values[own] = graph.values[name]
            operands = tuple(parts.get(name, ()))
            made.nodes.append(_accumulation(own, operands, graph.values[name]))
        return own

    for name in backward.seeds:
        ones.append(part(name))
        made.nodes.append(_accumulation(ones[-1], (), graph.values[name], 1))
    for step in backward.steps:
        inputs: dict[str, Operand] = {f: total(name) for f, name in step.seeds.items()}
        if step.node.name in skipped:
            (source,) = step.gradients.values()
            parts.setdefault(source, []).extend(map(str, inputs.values()))
            continue
        named = {**step.node.feeds(), **inputs}
        outputs = tuple(part(name) for name in step.gradients.values())
        op = replace(step.node.op, name=f"{step.node.op.name}_gradient")
        own = f"{prefix}{step.node.name}"
        made.nodes.append(
            Pullback(
                own, op, named, {}, outputs, step.node.instance, step.node.span,
                equations=step.expansion, forward=step.node,
            )
        )  # fmt: skip
    for name in backward.wanted:
        made.outputs[total(name)] = total(name)
    return GradientGraph(made, cotangents, frozenset(ones))


def _accumulation(
    own: str, parts: tuple[str, ...], info: eq.TensorInfo, empty: int = 0
) -> Pullback:
    """The sum of values of one type, from the first to the last; `empty` everywhere where there
    are none. A value that very many calls read is added up by several equations: one expression
    would be as deep as they are many.
    """
    binders = tuple((f"i{axis}", eq.Const(size)) for axis, size in enumerate(info.shape))
    index = tuple(eq.Index(name) for name, _ in binders)
    inputs = tuple(f"x{number}" for number in range(len(parts)))
    equations: list[eq.Equation] = []
    body: eq.Expr = eq.Read(inputs[0], index) if inputs else eq.Const(empty)
    for number, name in enumerate(inputs[1:], 1):
        if number % _TERMS == 0:
            equations.append(eq.Equation(f"y{len(equations)}", binders, body, info))
            body = eq.Read(equations[-1].target, index)
        body = eq.Apply("+", (body, eq.Read(name, index)))
    equations.append(eq.Equation("y", binders, body, info))
    tensors = {**dict.fromkeys(inputs, info), **{e.target: info for e in equations}}
    expansion = eq.Expansion(inputs, ("y",), tuple(equations), tensors)
    operands: dict[str, Operand] = dict(zip(inputs, parts, strict=True))
    instance = instantiate(_ACCUMULATED, {}, {})
    return Pullback(own, _ACCUMULATED, operands, {}, (own,), instance, equations=expansion)


_ACCUMULATED = ast.Op("accumulated", (), (), (), (), ())  # its equations are those of the call


def split(graph: Graph, identity: ast.Op) -> tuple[Graph, frozenset[str]]:
    """The graph with a value of its own for every use of a real value that has several.

    identity: the definition of a call that gives its operand. So it can be told what flows back
    from each use. Gives the graph and the names of the calls that were added.
    """
    uses: dict[str, int] = {}
    for node in graph.nodes:
        for name in node.operands():
            uses[name] = uses.get(name, 0) + 1
    for name in (graph.loss,) if graph.loss is not None else graph.outputs.values():
        uses[name] = uses.get(name, 0) + 1
    literals = {name for name, param in graph.params.items() if param.literal}
    forked = {
        name
        for name, count in uses.items()
        if count > 1 and graph.values[name].kind == "real" and name not in literals
    }
    made = replace(graph, nodes=[], values=dict(graph.values))
    forks: list[str] = []

    def use(name: str) -> str:
        if name not in forked:
            return name
        own = f"{name}.use{len(forks)}"
        while own in made.values:
            own += "_"
        info = graph.values[name]
        made.values[own] = info
        instance = instantiate(identity, {"x": info}, {})
        made.nodes.append(Node(own, identity, {"x": name}, {}, (own,), instance))
        forks.append(own)
        return own

    for node in graph.nodes:
        operands: dict[str, Operand] = {
            formal: use(o) if isinstance(o, str) else tuple(map(use, o))
            for formal, o in node.inputs.items()
        }
        made.nodes.append(replace(node, inputs=operands))
    return made, frozenset(forks)
