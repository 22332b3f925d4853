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
from irlang.diff.weighing import weighed
from irlang.dtypes import CLASSES, DTYPES


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
        own[formal.removeprefix(PREFIX)]: fed[name]
        for formal, name in pulled.feeds().items()
        if formal.startswith(PREFIX) and formal.removeprefix(PREFIX) in own
    }
    infos = [alone.graph.values[name] for name in flowing]
    if len({info.dtype for info in infos}) != 1 or infos[0].dtype not in CLASSES["float"]:
        return None
    bare = replace(alone.graph, outputs={})
    graph, catalog = weighed(bare, case.catalog, list(flowing))
    weights = list(graph.inputs)[len(alone.graph.inputs) :]
    inputs = {
        name: np.asarray(array, DTYPES[info.dtype].numpy).reshape(info.shape)
        for name, array, info in zip(weights, flowing.values(), infos, strict=True)
    }
    given = {**alone.inputs, **inputs}
    return replace(alone, graph=graph, inputs=given, catalog=catalog)
