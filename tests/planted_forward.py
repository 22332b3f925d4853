"""Small numeric faults planted into PyTorch's functions, in whole programs of five to ten calls.

`python -m tests.planted_forward [SEEDS]` measures how many programs catch each: by the verdict on
the whole, or by that on one of its calls, given what the target itself fed it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.diff import runner
from irlang.diff.calls import Case
from irlang.diff.localise import localise
from irlang.diff.runner import Session
from irlang.diff.verdict import FINDINGS, gravest
from irlang.gen.build import generate
from irlang.graph import Graph, Node
from irlang.interp.ball import Ball
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.parser import parse

OTHERS = ("relu", "tanh", "add", "multiply", "negate", "sigmoid", "reshape", "transpose")
_TRIES = 400  # programs that are drawn for those of one measurement


@dataclass(frozen=True, slots=True)
class Layer:
    """Where a fault goes.

    functions: of PyTorch that compute the operator, `F.linear` say. weight, bias: the positions of
    these among the arguments. last: the axis of the weight along which is summed. gates: how many
    lie one after another in the weights of a recurrent layer. means: whether its results are means
    of numbers of either sign, whose rounding may be more than a fault of the small rest.
    """

    operator: str
    functions: tuple[str, ...]
    weight: int | None = None
    bias: int | None = None
    last: int = -1
    gates: int = 0
    means: bool = False


def _of(name: str) -> tuple[str, ...]:
    return tuple(f"F.{name}{rank}d" for rank in (1, 2, 3))


LAYERS = {
    layer.operator: layer
    for layer in (
        Layer("dense", ("F.linear",), 1, 2),
        Layer("conv", _of("conv"), 1, 2),
        Layer("conv_transpose", _of("conv_transpose"), 1, 2, 0),
        Layer("depthwise_conv", _of("conv"), 1, 2),
        Layer("matmul", ("torch.matmul",), 1, None, -2),
        Layer("embedding", ("F.embedding",), 1),
        Layer("batch_norm", ("F.batch_norm",), 3, 4),
        Layer("layer_norm", ("F.layer_norm",), 2, 3),
        Layer("gru", ("torch.gru",), 2, gates=3),
        Layer("lstm", ("torch.lstm",), 2, gates=4),
        Layer("softmax", ("torch.softmax",)),
        Layer("reduce_mean", ("torch.mean",), means=True),
        Layer("tanh", ("torch.tanh",)),
    )
}

# What becomes of the arguments, or of the result; each gives back what it was given if it has none.
_EDITS = {
    "a weight is off by 1e-5": """
    def edit(args):
        w = args[{weight}]
        args[{weight}] = [w[0] * (1 + 1e-5), *w[1:]] if {gates} else w * (1 + 1e-5)
""",
    "the last term is not summed": """
    def edit(args):
        w = args[{weight}]
        first = (w[0] if {gates} else w).clone()
        first.select({last}, -1).zero_()
        args[{weight}] = [first, *w[1:]] if {gates} else first
""",
    "the bias is dropped": """
    def edit(args):
        if len(args) > {bias}:
            args[{bias}] = None
""",
    "two gates are swapped": """
    def edit(args):
        made = []
        for w in args[{weight}]:
            parts = list(w.chunk({gates}))
            parts[0], parts[1] = parts[1], parts[0]
            made.append(torch.cat(parts))
        args[{weight}] = made
""",
    "a result is off by 1e-5": """
    def edit(args):
        pass
    def after(y):
        flat = y.clone()
        flat.view(-1)[flat.abs().argmax()] *= 1 + 1e-5
        return flat
""",
}
FAULTS = tuple(_EDITS)

# Puts `_wrong` of a function in the place of each of some functions of PyTorch.
REPLACED = """
    for _name in {functions}:
        _path, _, _name = _name.rpartition(".")
        _holder = {
            "F": F, "torch": torch, "torch.optim": torch.optim, "torch.Tensor": torch.Tensor
        }[_path]
        setattr(_holder, _name, _wrong(getattr(_holder, _name)))
"""

_CODE = (
    """
if not hasattr(torch, "_planted"):
    torch._planted = True
    def after(y):
        return y
{edit}
    def _wrong(right):
        def call(*args, **options):
            args = list(args)
            edit(args)
            return after(right(*args, **options))
        return call
"""
    + REPLACED
)


def applies(fault: str, layer: Layer) -> bool:
    """Whether a layer can have a fault."""
    if fault == "the bias is dropped":
        return layer.bias is not None
    if fault == "two gates are swapped":
        return layer.gates > 0
    if fault == "a result is off by 1e-5":
        return not layer.gates
    if fault == "the last term is not summed":
        return layer.weight is not None and not layer.operator.endswith(("norm", "embedding"))
    return layer.weight is not None


def planted(fault: str, layer: Layer) -> Callable[..., Lowered]:
    """`lower`, with a fault in what it makes for PyTorch."""
    numbers = {"weight": layer.weight, "bias": layer.bias, "last": layer.last, "gates": layer.gates}
    edit = _EDITS[fault]
    for key, number in numbers.items():
        edit = edit.replace("{" + key + "}", str(number))
    code = _CODE.replace("{edit}", edit).replace("{functions}", str(list(layer.functions)))

    def made(*args: Any, **options: Any) -> Lowered:
        lowered = lower(*args, **options)
        if not isinstance(lowered.code, str) or not lowered.code:
            return lowered
        head, mark, tail = lowered.code.partition("\n\n\nINPUTS")
        return replace(lowered, code=f"{head}\n{code}{mark}{tail}")

    return made


# Drawn attributes of a recurrent layer are seldom all those that PyTorch has: one is written out.
_RECURRENT = """nnir 1
model m(x: f32[{steps}, {batch}, {features}] in [-1, 1]) -> y: f32[{batch}, 2] {{
  param w: f32[{gates}, {hidden}, {features}] in [-0.5, 0.5]
  param r: f32[{gates}, {hidden}, {hidden}] in [-0.5, 0.5]
  param b: f32[{gates}, {hidden}] in [-0.2, 0.2]
  param v: f32[{hidden}, 2] in [-1, 1]
  a = multiply(relu(x), 1.5)
  s, {last} = {operator}(a, w, r, b)
  d = dense(add(reduce_mean(s; axes = 0), last), v)
  y = sigmoid(d)
}}
"""


def drawn_graph(layer: Layer, seed: int) -> Graph:
    """A program with a layer among its calls."""
    if not layer.gates:
        return generate(builtin(), seed, ops=[layer.operator, *OTHERS], size=(5, 10)).graph
    random = np.random.default_rng(seed)
    sizes = {n: int(random.integers(1, 9)) for n in ("steps", "batch", "features", "hidden")}
    last = "last, state" if layer.gates == 4 else "last"
    text = _RECURRENT.format(gates=layer.gates, operator=layer.operator, last=last, **sizes)
    return check(parse(text, "planted"), builtin()).graphs[0]


def programs(fault: str, layer: Layer, seeds: range, most: int) -> Iterator[Case]:
    """Programs of five to ten calls in f32, each with the fault in a call of PyTorch's own."""
    catalog = builtin()
    found = 0
    for seed in seeds:
        graph = drawn_graph(layer, seed)
        nodes = [node for node in graph.nodes if node.op.name == layer.operator]
        single = all(i.dtype == "f32" for i in graph.values.values() if i.kind == "real")
        if not nodes or not single or not 5 <= len(graph.nodes) <= 10:
            continue
        params = initial_values(graph, seed)
        text = str(lower(graph, "torch", catalog, params).code)
        lines = [
            line for line in text.splitlines() if any(f"{f}(" in line for f in layer.functions)
        ]
        if fault == "the bias is dropped":
            biased = [
                n for n in nodes if "b" in n.inputs or "bias" in n.inputs or "beta" in n.inputs
            ]
            lines = lines if biased else []
        if not lines:
            continue
        case = Case(graph, inputs(graph, seed), params, catalog)
        try:
            case.balls = balls(graph, case.values, catalog, precision(graph))
        except InvalidInput:
            continue
        hidden = fault == "a result is off by 1e-5" and layer.means
        if hidden and not all(_is_plain(node, case.balls) for node in nodes):
            continue
        found += 1
        yield case
        if found == most:
            return


def _is_plain(node: Node, values: Mapping[str, Ball]) -> bool:
    """Whether a mean's largest element is known to half of 1e-5 in any order of addition: the error
    is at most the number of terms, times the unit roundoff, times the mean of their sizes (Higham,
    Accuracy and Stability of Numerical Algorithms, 4.2).
    """
    (read, *_) = node.operands()
    terms = np.asarray(values[read].value, np.float64)
    means = np.abs(np.asarray(values[node.outputs[0]].value, np.float64))
    if not means.size or not np.all(np.isfinite(terms)):
        return False
    count = terms.size / means.size
    return bool(count * 2.0**-24 * np.abs(terms).max() < 0.5e-5 * means.max())


def shown(session: Session, case: Case) -> dict[str, Any] | None:
    """What PyTorch gives for every call of a program; None where it does not run."""
    result = session.compare([case], exposed=True)[0].results["torch"]
    return result.outputs if result.status == "ok" else None


def moved(right: dict[str, Any] | None, wrong: dict[str, Any] | None) -> bool:
    """Whether a fault shows in any number of a program: none can be caught that does not."""
    if right is None or wrong is None:
        return False
    return any(not np.array_equal(right[n], wrong[n], equal_nan=True) for n in right)


def caught(session: Session, case: Case) -> str:
    """How a fault is caught: by the verdict on the `whole`, on a `call`, or not at all."""
    verdicts = session.compare([case])[0].verdicts["torch"]
    if gravest([v.verdict for v in verdicts]) in FINDINGS:
        return "whole"
    return "call" if localise(session, case, "torch") is not None else ""


def measure(fault: str, layer: Layer, cases: list[Case]) -> list[str]:
    """How each of some programs catches a fault, of those in which it moves a number."""
    right = vars(runner)["lower"]
    with Session(["torch"]) as session:
        before = [shown(session, case) for case in cases]
    vars(runner)["lower"] = planted(fault, layer)
    try:
        with Session(["torch"]) as session:
            after = [shown(session, case) for case in cases]
            there = zip(cases, before, after, strict=True)
            return [caught(session, case) for case, a, b in there if moved(a, b)]
    finally:
        vars(runner)["lower"] = right


def main() -> None:
    """Prints a line for every fault of every layer."""
    most = int(sys.argv[1]) if sys.argv[1:] else 10
    chosen = sys.argv[2].split(",") if sys.argv[2:] else LAYERS
    for fault in FAULTS:
        for name in chosen:
            layer = LAYERS[name]
            if applies(fault, layer):
                found = measure(fault, layer, list(programs(fault, layer, range(_TRIES), most)))
                whole, call = found.count("whole"), found.count("call")
                line = f"{fault:30} {name:16} {whole + call:3} of {len(found):3}  whole {whole}\n"
                sys.stdout.write(line)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
