"""A call whose gradient is wrong by itself, as a program: the call, and a sum that is its loss.

What flowed back to the results of the call becomes the weights of that sum, so that the program's
own gradient is what was judged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irlang.adjoint_graph import PREFIX, Pullback
from irlang.diff.calls import Array, Case
from irlang.diff.localise import Culprit, isolate
from irlang.diff.verdict import Verdict
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Node, Port
from irlang.instance import instantiate
from irlang.parser import parse

_NAME = "weighted_sum"


def isolate_gradient(case: Case, pulled: Pullback, fed: dict[str, Array]) -> Case | None:
    """The call with a loss of its own; None where what flows back has several types.

    case: whose graph has the call; fed: every operand of the adjoint by name.
    """
    call = pulled.forward
    assert call is not None
    forward = {name: fed[name] for name in call.operands() if name in fed}
    if len(forward) < len(set(call.operands())):
        return None
    alone = isolate(case, Culprit(call, Verdict(call.outputs[0], "", "agrees"), forward))
    (node,) = alone.graph.nodes
    own = dict(zip(call.results(), node.outputs, strict=True))
    flowing = {
        formal.removeprefix(PREFIX): fed[name]
        for formal, name in pulled.feeds().items()
        if formal.startswith(PREFIX) and formal.removeprefix(PREFIX) in own
    }
    infos = [alone.graph.values[own[formal]] for formal in flowing]
    if len({info.dtype for info in infos}) != 1:
        return None
    file = parse(_definition(infos))
    (op,) = file.ops
    graph = replace(alone.graph, values=dict(alone.graph.values), inputs=dict(alone.graph.inputs))
    inputs = dict(alone.inputs)
    operands: dict[str, str] = {}
    for number, (formal, weights) in enumerate(flowing.items()):
        info = graph.values[own[formal]]
        name = f"{_NAME}.{number}"
        graph.inputs[name] = Port(info)
        graph.values[name] = info
        inputs[name] = np.asarray(weights, DTYPES[info.dtype].numpy).reshape(info.shape)
        operands |= {f"y{number}": own[formal], f"c{number}": name}
    made = instantiate(op, {formal: graph.values[v] for formal, v in operands.items()}, {})
    graph.values[_NAME] = TensorInfo((), infos[0].dtype)
    graph.nodes = [node, Node(_NAME, op, dict(operands), {}, (_NAME,), made)]
    graph.outputs, graph.loss = {_NAME: _NAME}, _NAME
    return Case(graph, inputs, alone.params, case.catalog.with_file(file), edge=case.edge)


def _definition(infos: list[TensorInfo]) -> str:
    """The sum of several tensors' elements, each with a weight."""
    inputs = [f"y{i}: T[S{i}..], c{i}: T[S{i}..]" for i in range(len(infos))]
    sums = [f"(sum(s.. < S{i}..) y{i}[s..] * c{i}[s..])" for i in range(len(infos))]
    head = f"op {_NAME}[T: float]({', '.join(inputs)}) -> loss: T[]"
    doc = '"""What is differentiated: the sum of all elements, each with its weight."""'
    return f"nnir 1\n{doc}\n{head} {{\n  loss[] = {' + '.join(sums)}\n}}\n"
