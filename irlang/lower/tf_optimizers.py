"""How TensorFlow and Keras spell steps of optimizers: theirs, fed with what was kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_FIRST = 2  # of an optimizer's variables: before it stand the count of steps and the rate


@dataclass(frozen=True, slots=True)
class _Row:
    """An optimizer.

    name: in `keras.optimizers`. settings: its arguments, of a call; None where it has not these
    attributes. kept: what it keeps with them, in the order of its variables.
    """

    name: str
    settings: Callable[[Tf], Mapping[str, object] | None]
    kept: Callable[[Tf], tuple[str, ...]]


def _sgd(call: Tf) -> Mapping[str, object] | None:
    if call["dampening"] or (call["momentum"] and call["velocity_of"] != "steps"):
        return None
    if not 0 <= call["momentum"] <= 1:  # which Keras refuses
        return None
    return {"momentum": float(call["momentum"]), "nesterov": call["nesterov"]}


def _rmsprop(call: Tf) -> Mapping[str, object] | None:
    if call["eps_to"] != "square" or (call["momentum"] and call["velocity_of"] != "steps"):
        return None
    return {
        "rho": float(call["rho"]), "epsilon": float(call["eps"]),
        "momentum": float(call["momentum"]), "centered": call["centered"],
    }  # fmt: skip


def _adagrad(call: Tf) -> Mapping[str, object] | None:
    if call["eps_to"] != "square" or call["lr_decay"]:
        return None
    return {"initial_accumulator_value": 0.0, "epsilon": float(call["eps"])}


def _adadelta(call: Tf) -> Mapping[str, object]:
    return {"rho": float(call["rho"]), "epsilon": float(call["eps"])}


def _betas(call: Tf) -> dict[str, object]:
    names = {"beta_1": "beta_1", "beta_2": "beta_2", "epsilon": "eps"}
    return {name: float(call[own]) for name, own in names.items()}


def _adam(call: Tf) -> Mapping[str, object] | None:
    if call["eps_to"] != "raw" or not call["bias_correction"]:
        return None
    return {**_betas(call), "amsgrad": call["amsgrad"]}


def _adamax(call: Tf) -> Mapping[str, object] | None:
    return None if call["eps_to"] != "largest" else _betas(call)


def _number(call: Tf, name: str) -> float | None:
    """An input that is a number in the text, or is left out; None where it is computed."""
    if call.has(name):
        literal = call.values[name].literal
        return None if literal is None else float(literal)
    default = next((item.default for item in call.node.op.inputs if item.name == name), 1)
    return float(getattr(default, "value", default))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Words:
    """Where the optimizers are, and what makes a variable of a tensor, and a tensor of it."""

    optimizers: str
    variable: str
    tensor: str


_TF = _Words("tf.keras.optimizers", "tf.Variable", "tf.convert_to_tensor")
_KERAS = _Words("keras.optimizers", "keras.Variable", "ops.convert_to_tensor")


def _step(row: _Row, words: _Words) -> Callable[[Tf], list[Value] | None]:
    """The lines of one step."""

    def rule(call: Tf) -> list[Value] | None:
        count, rate, settings = _number(call, "step"), _number(call, "lr"), row.settings(call)
        decays = call["weight_decay"] != 0
        if call.out.dtype != "f32" or settings is None or rate is None or count is None:
            return None  # the rate is kept in f32
        if count < 1 or (decays and not call["decoupled"]):
            return None
        decay = {"weight_decay": float(call["weight_decay"])} if decays else {}
        build = call.build
        x = build.once(f"{words.variable}({call.text('x')})", call.out.shape, "f32", "p")
        made = invoke(
            f"{words.optimizers}.{row.name}",
            learning_rate=float(np.float32(rate)), **decay, **settings,
        )  # fmt: skip
        optimizer = build.names.fresh("optimizer")
        build.lines += [f"{optimizer} = {made}", f"{optimizer}.build([{x.text}])"]
        build.lines.append(f"{optimizer}.iterations.assign({int(count) - 1})")
        kept = {own: f"{optimizer}.variables[{i}]" for i, own in enumerate(row.kept(call), _FIRST)}
        for own, variable in kept.items():
            if call.has(own):
                build.lines.append(f"{variable}.assign({call.text(own)})")
        build.lines.append(f"{optimizer}.apply([{call.text('gradient')}], [{x.text}])")
        results = [build.once(f"{words.tensor}({x.text})", x.shape, "f32", "y")]
        for out, info in zip(call.node.op.outputs[1:], call.outputs[1:], strict=True):
            own = out.name.removeprefix("new_")
            if own in kept:
                kept_value = f"{words.tensor}({kept[own]})"
                results.append(build.once(kept_value, info.shape, "f32", out.name))
            elif call.has(own):  # it is not used, and stays
                results.append(build.once(call.text(own), info.shape, "f32", out.name))
            else:
                results.append(build.expand(build.scalar(0.0, "f32"), info.shape))
        return results

    return rule


def _kept_by_rmsprop(call: Tf) -> tuple[str, ...]:
    return ("square", *["velocity"] * bool(call["momentum"]), *["mean"] * bool(call["centered"]))


_ROWS = {
    "sgd": _Row("SGD", _sgd, lambda call: ("velocity",) if call["momentum"] else ()),
    "rmsprop": _Row("RMSprop", _rmsprop, _kept_by_rmsprop),
    "adagrad": _Row("Adagrad", _adagrad, lambda _: ("square",)),
    "adadelta": _Row("Adadelta", _adadelta, lambda _: ("square", "step_square")),
    "adam": _Row(
        "Adam", _adam, lambda call: ("mean", "square", *["largest"] * bool(call["amsgrad"]))
    ),
    "adamax": _Row("Adamax", _adamax, lambda _: ("mean", "largest")),
}

_INPUTS = ("x", "gradient", "mean", "square", "largest", "velocity", "step_square", "lr")


def _table(words: _Words, since: tuple[int, ...]) -> dict[str, Native]:
    return {
        name: Native(
            f"{words.optimizers}.{row.name}", _step(row, words), constant=_INPUTS, eager=True,
            since=since,
        )
        for name, row in _ROWS.items()
    }  # fmt: skip


OPTIMIZERS = _table(_TF, since=(2, 16))
KERAS = _table(_KERAS, since=(3,))
