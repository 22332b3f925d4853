"""How MXNet spells steps of optimizers: `mx.optimizer`, fed with what was kept before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.tf_steps import INPUTS
from irlang.lower.value import Value

Mx = Call[MxBuilder]


@dataclass(frozen=True, slots=True)
class _Made:
    """An optimizer of a call. kept: its state in order, by the definition's names, and whether it
    keeps it with the other sign. decay: the argument that is weight decay, empty where it has none
    of the call's kind.
    """

    name: str
    settings: Mapping[str, object]
    kept: Mapping[str, int]
    decay: str = "wd"


def _of_kind(call: Mx, *, decoupled: bool) -> str:
    """The argument for weight decay where the call's is of the kind that the optimizer has."""
    return "wd" if bool(call["decoupled"]) == decoupled else ""


def _sgd(call: Mx) -> _Made | None:
    momentum = float(call["momentum"])
    if call["dampening"]:
        return None
    kept = {"velocity": 1} if momentum else {}
    within = _of_kind(call, decoupled=False)
    if momentum and call["velocity_of"] != "steps":
        return None
    name = "NAG" if momentum and call["nesterov"] else "SGD"
    return _Made(name, {"momentum": momentum}, kept, within)


def _rmsprop(call: Mx) -> _Made | None:
    momentum, centered = float(call["momentum"]), bool(call["centered"])
    if call["eps_to"] != "square" or (momentum and call["velocity_of"] != "steps"):
        return None
    settings = {"gamma1": float(call["rho"]), "epsilon": float(call["eps"])}
    within = _of_kind(call, decoupled=False)
    if centered:
        kept = {"square": 1, "mean": 1, "velocity": -1}
        settings = {**settings, "gamma2": momentum}
        return _Made("RMSProp", {**settings, "centered": True}, kept, within)
    return None if momentum else _Made("RMSProp", settings, {"square": 1}, within)


def _adagrad(call: Mx) -> _Made | None:
    if call["eps_to"] != "square" or call["lr_decay"]:
        return None
    apart = _of_kind(call, decoupled=True)
    return _Made("AdaGrad", {"eps": float(call["eps"])}, {"square": 1}, apart)


def _adadelta(call: Mx) -> _Made | None:
    """It has no rate."""
    settings = {"rho": float(call["rho"]), "epsilon": float(call["eps"])}
    kept = {"square": 1, "step_square": 1}
    if call.number("lr") != 1:
        return None
    return _Made("AdaDelta", settings, kept, _of_kind(call, decoupled=True))


def _betas(call: Mx) -> dict[str, object]:
    return {name.replace("_", ""): float(call[name]) for name in ("beta_1", "beta_2")}


def _adam(call: Mx) -> _Made | None:
    if call["eps_to"] != "raw" or not call["bias_correction"] or call["amsgrad"]:
        return None
    settings = {**_betas(call), "epsilon": float(call["eps"])}
    return _Made("Adam", settings, {"mean": 1, "square": 1}, _of_kind(call, decoupled=False))


def _adamax(call: Mx) -> _Made | None:
    if call["eps"]:
        return None
    kept = {"mean": 1, "largest": 1}
    return _Made("Adamax", _betas(call), kept, _of_kind(call, decoupled=False))


def _nadam(call: Mx) -> _Made:
    settings = {
        **_betas(call), "epsilon": float(call["eps"]),
        "schedule_decay": float(call["momentum_decay"]),
    }  # fmt: skip
    return _Made("Nadam", settings, {"mean": 1, "square": 1}, _of_kind(call, decoupled=False))


def _lamb(call: Mx) -> _Made:
    settings = {
        **_betas(call), "epsilon": float(call["eps"]),
        "bias_correction": bool(call["bias_correction"]),
    }  # fmt: skip
    return _Made("LAMB", settings, {"mean": 1, "square": 1}, _of_kind(call, decoupled=False))


def _signum(call: Mx) -> _Made | None:
    momentum = float(call["momentum"])
    if momentum <= 0:  # another optimizer, signSGD
        return None
    decay = "wd_lh" if call["decoupled"] else "wd"
    return _Made("Signum", {"momentum": momentum}, {"mean": -1}, decay)


def _ftrl(call: Mx) -> _Made | None:
    if call["shrinkage"] or call["lr_power"] != -0.5:
        return None
    settings = {
        "lamda1": float(call["l1"]), "beta": float(call["beta"]), "wd": 2 * float(call["l2"]),
    }  # fmt: skip
    return _Made("Ftrl", settings, {"linear": 1, "square": 1})


def _step(made: Callable[[Mx], _Made | None]) -> Callable[[Mx], list[Value] | None]:
    """The lines of one step."""

    def rule(call: Mx) -> list[Value] | None:
        count, rate, row = call.number("step", 1), call.number("lr"), made(call)
        decay = float(call.get("weight_decay", 0))
        if row is None or call.out.dtype != "f32" or rate is None or count is None:
            return None
        product = call.number("product") if row.name == "Nadam" else 1.0
        if count < 1 or (decay and not row.decay) or product is None:
            return None
        settings = {**row.settings, **({row.decay: decay} if decay else {})}
        build, shape = call.build, call.out.shape
        made_ = invoke(
            f"mx.optimizer.{row.name}", learning_rate=float(np.float32(rate)),
            begin_num_update=int(count) - 1, **settings,
        )  # fmt: skip
        optimizer = build.names.fresh("optimizer")
        build.lines.append(f"{optimizer} = {made_}")
        if row.name == "Nadam":
            build.lines.append(f"{optimizer}.m_schedule = {product}")
        x = _copied(call, "x", 1)
        state = {own: _copied(call, own, sign) for own, sign in row.kept.items()}
        gradient, held = _copied(call, "gradient", 1), ", ".join(state.values()) or "None"
        if len(state) > 1 or row.name == "RMSProp":  # others with one state have it bare
            held = f"({held},)"
        build.lines.append(f"{optimizer}.update(0, {x}, {gradient}, {held})")
        found = [build.once(f"{x}.as_np_ndarray()", shape, "f32", "y")]
        for out, info in zip(call.node.op.outputs[1:], call.outputs[1:], strict=True):
            own = out.name.removeprefix("new_")
            idle = own == "velocity" and not call["momentum"]
            if own in state and not idle:
                sign = "-" if row.kept[own] < 0 else ""
                text = f"{sign}{state[own]}.as_np_ndarray()"
            elif own == "product":
                text = f"mx.np.array({optimizer}.m_schedule, dtype=np.float32)"
            else:
                text = build.expand(_first(call, own), info.shape).text
            found.append(build.once(text, info.shape, "f32", out.name))
        return found

    return rule


def _first(call: Mx, own: str) -> Value:
    """What was kept; what it begins with where the call leaves it out."""
    return call.input(own) if call.has(own) else call.build.scalar(call.number(own) or 0.0, "f32")


def _copied(call: Mx, own: str, sign: int) -> str:
    """An array of its own, which the step changes."""
    build, shape = call.build, call.out.shape
    value = build.receiver(build.expand(_first(call, own), shape))
    text = f"{'-' if sign < 0 else ''}{value}.copy().as_nd_ndarray()"
    return build.once(text, shape, "f32", own).text


_RULES: dict[str, tuple[str, Callable[[Mx], _Made | None]]] = {
    "sgd": ("SGD, mx.optimizer.NAG", _sgd),
    "rmsprop": ("RMSProp", _rmsprop),
    "adagrad": ("AdaGrad", _adagrad),
    "adadelta": ("AdaDelta", _adadelta),
    "adam": ("Adam", _adam),
    "adamax": ("Adamax", _adamax),
    "nadam": ("Nadam", _nadam),
    "lamb": ("LAMB", _lamb),
    "signum": ("Signum", _signum),
    "ftrl": ("Ftrl", _ftrl),
}
OPTIMIZERS: dict[str, Native] = {
    name: Native(f"mx.optimizer.{spelt}", _step(made), constant=INPUTS, eager=True)
    for name, (spelt, made) in _RULES.items()
}
