"""Recurrent layers: several of them stacked, in one or both directions, and their cells.

PyTorch has the gates in the order input, forget, cell, output (LSTM) and reset, update, new (GRU);
the definitions have input, output, forget, cell and update, reset, new.
"""

from __future__ import annotations

from typing import Any

from irlang.importers.torch_call import Call, Rule, Uncovered, Value
from irlang.importers.torch_pieces import at

# of each kind: the definition, its cell, and where its gates stand in PyTorch's weights
_KINDS: dict[str, tuple[str, list[int]]] = {
    "lstm": ("lstm", [0, 3, 1, 2]),
    "gru": ("gru", [1, 0, 2]),
    "rnn_tanh": ("simple_rnn", []),
    "rnn_relu": ("simple_rnn", []),
}


def _weights(c: Call, kind: str, given: list[Value]) -> tuple[list[Value], dict[str, Value]]:
    """The two kernels, and the biases by their names."""
    op, order = _KINDS[kind]
    kernels, biases = [c.gates(item, order) for item in given[:2]], given[2:]
    if not biases:
        return kernels, {}
    if op == "gru":
        names = dict(zip(("b", "rb"), biases, strict=True))
        return kernels, {key: c.gates(value, order) for key, value in names.items()}
    return kernels, {"b": c.gates(c.total(*biases), order)}


def _layers(kind: str) -> Rule:
    def rule(c: Call) -> list[Value]:
        if "batch_sizes" in c.node.args:
            raise Uncovered("packed sequences")
        x, hx = c.tensor("input"), c.get("hx")
        states = hx if isinstance(hx, list) else [hx]
        params, layers = c.get("params"), c.whole("num_layers", 1)
        if c.flag("train") and c.number("dropout", 0.0) and layers > 1:
            raise Uncovered("dropout is random: call model.eval() before the export")
        directions = 2 if c.flag("bidirectional") else 1
        each = len(params) // (layers * directions)
        if each not in (2, 4) or each != (4 if c.flag("has_biases", True) else 2):
            raise Uncovered("projections of the state")
        op, _ = _KINDS[kind]
        fixed: dict[str, Any] = {"activation": "relu"} if kind == "rnn_relu" else {}
        if c.flag("batch_first"):
            fixed["batch_first"] = True
        last: list[list[Value]] = [[] for _ in states]
        for layer in range(layers):
            sides = []
            for side in range(directions):
                number = layer * directions + side
                given = params[number * each : (number + 1) * each]
                kernels, by_name = _weights(c, kind, given)
                for name, state in zip(("h0", "c0"), states, strict=False):
                    by_name[name] = at(c, state, 0, number)
                more = {"reverse": True} if side else {}
                y, *ends = c.several(op, x, *kernels, by_name=by_name, **fixed, **more)
                sides.append(y)
                for found, end in zip(last, ends, strict=True):
                    found.append(end)
            x = sides[0] if directions == 1 else c("concat", *sides, axis=2)
        return [x, *[c("stack", *ends, axis=0) for ends in last]]

    return rule


def _cell(kind: str) -> Rule:
    def rule(c: Call) -> Any:
        x, hx = c.tensor("input"), c.get("hx")
        states = hx if isinstance(hx, list) else [hx]
        names = [n for n in ("w_ih", "w_hh", "b_ih", "b_hh") if c.has(n)]
        kernels, by_name = _weights(c, kind, [c.tensor(n) for n in names])
        by_name |= dict(zip(("h0", "c0"), states, strict=False))
        op, _ = _KINDS[kind]
        fixed = {"activation": "relu"} if kind == "rnn_relu" else {}
        _, *ends = c.several(op, c("expand_dims", x, axes=[0]), *kernels, by_name=by_name, **fixed)
        return ends if len(ends) > 1 else ends[0]

    return rule


RECURRENT: dict[str, Rule] = {
    **{kind: _layers(kind) for kind in _KINDS},
    **{f"{kind}_cell": _cell(kind) for kind in _KINDS},
}
