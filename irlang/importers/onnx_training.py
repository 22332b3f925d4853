"""ONNX's losses, and its optimizers: one step of each parameter of a node, which takes many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irlang.importers.onnx_node import Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]


def _of_classes(n: Node) -> dict[str, Any]:
    """The classes stand second."""
    attrs: dict[str, Any] = {"axis": 1, "reduction": n.word("reduction", "mean")}
    if n.has("ignore_index"):
        attrs["ignore_index"] = n.int("ignore_index")
    return attrs


def _nll(n: Node) -> Value:
    return n.call("nll", *n.x, **_of_classes(n))


def _cross_entropy(n: Node) -> list[Value | None]:
    loss = n.call("cross_entropy", *n.x, **_of_classes(n))
    if not n.wants(1):
        return [loss]
    return [loss, n.step("log_prob", "log_softmax", n.input(0), axis=1)]


def _steps(op: str, states: tuple[str, ...], attributes: Callable[[Node], dict[str, Any]]) -> Row:
    """Inputs: rate, number of the step, all parameters, all gradients, all of each state."""

    def row(n: Node) -> list[Value | None]:
        rate, count, *rest = n.x
        attrs = attributes(n)
        after = attrs.pop("after", 0.0)
        each = 2 + len(states)
        if not rest or len(rest) % each:
            raise Unsupported(f"{len(rest)} tensors, which are not {each} a parameter")
        many = len(rest) // each
        by_name = {"lr": _number(n, rate, "lr")}
        if op == "adam":
            # at step 0 nothing is corrected, which needs to be known
            attrs["bias_correction"] = int(n.known_number(1)) > 0
            by_name["step"] = _number(n, count, "step")
        else:
            by_name["step"] = _number(n, n.step("next", "add", count, 1), "step")
        found: list[list[Value]] = []
        for place in range(many):
            x, gradient, *state = rest[place::many]
            names = [f"{part}_{place}" for part in ("x", *states)]
            given = {**by_name, **dict(zip(states, state, strict=True))}
            results = n.steps(names, op, x, gradient, by_name=given, **attrs)
            if after:
                results[0] = n.step(f"shrunk_{place}", "multiply", results[0], 1 - after)
            found.append(results)
        return [results[part] for part in range(1 + len(states)) for results in found]

    return row


def _number(n: Node, value: Value, name: str) -> Value:
    """A tensor of one element as a single number."""
    return value if value.rank == 0 else n.step(name, "reshape", value, shape=[])


def _momentum(n: Node) -> dict[str, Any]:
    attrs = {
        "momentum": n.real("alpha"),
        "dampening": 1 - n.real("beta"),
        "weight_decay": n.real("norm_coefficient"),
    }
    if n.word("mode") == "nesterov":
        attrs["nesterov"] = True
    return attrs


def _adagrad(n: Node) -> dict[str, Any]:
    return {
        "lr_decay": n.real("decay_factor", 0.0),
        "eps": n.real("epsilon", 1e-6),
        "weight_decay": n.real("norm_coefficient", 0.0),
    }


def _adam(n: Node) -> dict[str, Any]:
    return {
        "beta_1": n.real("alpha", 0.9),
        "beta_2": n.real("beta", 0.999),
        "eps": n.real("epsilon", 1e-6),
        "eps_to": "raw",
        "weight_decay": n.real("norm_coefficient", 0.0),
        "after": n.real("norm_coefficient_post", 0.0),
    }


_DOMAIN = "ai.onnx.preview.training"
ROWS: dict[str, Row] = {
    "NegativeLogLikelihoodLoss": _nll,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    f"{_DOMAIN}.Momentum": _steps("sgd", ("velocity",), _momentum),
    f"{_DOMAIN}.Adagrad": _steps("adagrad", ("square",), _adagrad),
    f"{_DOMAIN}.Adam": _steps("adam", ("mean", "square"), _adam),
}
