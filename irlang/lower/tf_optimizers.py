"""How TensorFlow and Keras spell steps of optimizers: theirs, fed with what was kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_steps import INPUTS, KERNELS, results
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


@dataclass(frozen=True, slots=True)
class _Row:
    """An optimizer.

    name: in `keras.optimizers`. settings: its arguments, of a call; None where it has not these
    attributes. kept: what it keeps with them, the last of its variables in their order.
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
    momentum = float(call["momentum"])
    if call["eps_to"] != "square" or (momentum and call["velocity_of"] != "steps") or momentum < 0:
        return None
    return {
        "rho": float(call["rho"]), "epsilon": float(call["eps"]),
        "momentum": momentum, "centered": call["centered"],
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


def _nadam(call: Tf) -> Mapping[str, object] | None:
    return None if call["momentum_decay"] != 1 else _betas(call)


def _lamb(call: Tf) -> Mapping[str, object] | None:
    return _betas(call) if call["bias_correction"] else None


def _lion(call: Tf) -> Mapping[str, object] | None:
    betas = float(call["beta_1"]), float(call["beta_2"])
    if not 0 < betas[0] <= 1:  # which Keras refuses
        return None
    return {"beta_1": betas[0], "beta_2": betas[1]}


def _ftrl(call: Tf) -> Mapping[str, object]:
    return {
        "learning_rate_power": float(call["lr_power"]), "initial_accumulator_value": 0.0,
        "l1_regularization_strength": float(call["l1"]),
        "l2_regularization_strength": float(call["l2"]),
        "l2_shrinkage_regularization_strength": float(call["shrinkage"]),
        "beta": float(call["beta"]),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Words:
    """Where the optimizers are, and what makes a variable of a tensor (in the place of `{}`), and a
    tensor of it. On PyTorch a variable of Keras shares the memory of its tensor, which a step would
    change with it.
    """

    optimizers: str
    variable: str
    tensor: str


_TF = _Words("tf.keras.optimizers", "tf.Variable({})", "tf.convert_to_tensor")
_KERAS = _Words("keras.optimizers", "keras.Variable(ops.copy({}))", "ops.convert_to_tensor")


def _step(row: _Row, words: _Words) -> Callable[[Tf], list[Value] | None]:
    """The lines of one step."""

    def rule(call: Tf) -> list[Value] | None:
        count, rate, settings = call.number("step", 1), call.number("lr"), row.settings(call)
        decay = float(call.get("weight_decay", 0))
        if call.out.dtype != "f32" or settings is None or rate is None or count is None:
            return None  # the rate is kept in f32
        if count < 1 or (decay and not call["decoupled"]):
            return None
        build = call.build
        x = build.once(words.variable.format(call.text("x")), call.out.shape, "f32", "p")
        made = invoke(
            f"{words.optimizers}.{row.name}",
            learning_rate=float(np.float32(rate)), **({"weight_decay": decay} if decay else {}),
            **settings,
        )  # fmt: skip
        optimizer = build.names.fresh("optimizer")
        build.lines += [f"{optimizer} = {made}", f"{optimizer}.build([{x.text}])"]
        build.lines.append(f"{optimizer}.iterations.assign({int(count) - 1})")
        names = row.kept(call)
        kept = {own: f"{optimizer}.variables[{i - len(names)}]" for i, own in enumerate(names)}
        for own, variable in kept.items():
            if call.has(own):
                build.lines.append(f"{variable}.assign({call.text(own)})")
        pairs = f"[({call.text('gradient')}, {x.text})]"
        build.lines.append(f"{optimizer}.apply_gradients({pairs})")
        return results(call, x.text, kept, words.tensor)

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
    "ftrl": _Row("Ftrl", _ftrl, lambda _: ("square", "linear")),
}
_LATER = {
    "nadam": _Row("Nadam", _nadam, lambda _: ("mean", "square", "product")),
    "lamb": _Row("Lamb", _lamb, lambda _: ("mean", "square")),
    "lion": _Row("Lion", _lion, lambda _: ("mean",)),
}


def _table(
    rows: Mapping[str, _Row], words: _Words, since: tuple[int, ...], kernels: Mapping[str, Native]
) -> dict[str, Native]:
    return {
        name: Native(
            f"{words.optimizers}.{row.name}", _step(row, words), constant=INPUTS, eager=True,
            since=since, others=(kernels[name],) if name in kernels else (),
        )
        for name, row in rows.items()
    }  # fmt: skip


OPTIMIZERS = {**_table(_ROWS, _TF, (2, 12), KERNELS), **_table(_LATER, _TF, (2, 16), {})}
KERAS = {**_table(_ROWS, _KERAS, (3,), {}), **_table(_LATER, _KERAS, (3,), {})}
