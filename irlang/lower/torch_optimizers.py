"""How PyTorch spells steps of optimizers: `torch.optim`, fed with what was kept before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
Setting = float | tuple[float, float]
Settings = Mapping[str, Setting]
_WIDE = ("f32", "f64")


@dataclass(frozen=True, slots=True)
class _Row:
    """An optimizer.

    name: in `torch.optim`. settings: its arguments, of a call; None where it has not these
    attributes. kept: what is kept, by the definition's names, in the order of its results.
    decoupled: its name where weight decay is taken from the parameter; empty where it has none.
    """

    name: str
    settings: Callable[[Torch], Settings | None]
    kept: Mapping[str, str]
    decoupled: str = ""


def _sgd(call: Torch) -> Settings | None:
    momentum, dampening = call["momentum"], call["dampening"]
    if call["velocity_of"] != "gradients" or (dampening and not momentum):
        return None
    if call["nesterov"] and (dampening or not momentum):
        return None
    if (
        call.has("velocity") and call.number("step", 1) == 1
    ):  # the first velocity is the gradient there
        return None
    return {"momentum": momentum, "dampening": dampening, "nesterov": call["nesterov"]}


def _rmsprop(call: Torch) -> Settings | None:
    if call["eps_to"] != "root" or call["velocity_of"] != "gradients":
        return None
    return {
        "alpha": call["rho"], "eps": call["eps"], "momentum": call["momentum"],
        "centered": call["centered"],
    }  # fmt: skip


def _adagrad(call: Torch) -> Settings | None:
    if call["eps_to"] != "root":
        return None
    return {"lr_decay": call["lr_decay"], "eps": call["eps"]}


def _adadelta(call: Torch) -> Settings:
    return {"rho": call["rho"], "eps": call["eps"]}


def _betas(call: Torch) -> dict[str, Setting]:
    return {"betas": (float(call["beta_1"]), float(call["beta_2"])), "eps": call["eps"]}


def _adam(call: Torch) -> Settings | None:
    if call["eps_to"] != "corrected" or not call["bias_correction"]:
        return None
    return {**_betas(call), "amsgrad": call["amsgrad"]}


def _adamax(call: Torch) -> Settings | None:
    return None if call["eps_to"] != "size" else _betas(call)


def _nadam(call: Torch) -> Settings:
    return {**_betas(call), "momentum_decay": call["momentum_decay"], **_apart(call)}


def _radam(call: Torch) -> Settings:
    return {**_betas(call), **_apart(call)}


def _apart(call: Torch) -> dict[str, Setting]:
    """What says that weight decay is taken from the parameter."""
    apart = call["weight_decay"] and call["decoupled"]
    return {"decoupled_weight_decay": True} if apart else {}


def _rprop(call: Torch) -> Settings:
    return {
        "etas": (float(call["shrinks"]), float(call["grows"])),
        "step_sizes": (float(call["least"]), float(call["most"])),
    }


def _rate(call: Torch) -> float | None:
    """The rate, as the number that it is in the parameter's type; None where it is computed."""
    rate = call.number("lr")
    return None if rate is None else float(np.asarray(rate, DTYPES[call.out.dtype].numpy))


def _taken(settings: Settings) -> bool:
    """Whether torch.optim takes the numbers: none negative, and below 1 what decays a mean."""
    below = {"betas": 1.0, "rho": math.nextafter(1.0, 2.0)}
    for name, setting in settings.items():
        for number in setting if isinstance(setting, tuple) else (setting,):
            if not 0 <= float(number) < below.get(name, math.inf):
                return False
    return True


def _step(row: _Row, way: str) -> Callable[[Torch], list[Value] | None]:
    """The lines of one step. way: which of its implementations is asked for, if not the usual."""

    def rule(call: Torch) -> list[Value] | None:
        count, rate, settings = call.number("step", 1), _rate(call), row.settings(call)
        decay = float(call.get("weight_decay", 0))
        decoupled = bool(decay and call["decoupled"])
        if call.out.dtype not in _WIDE or settings is None or rate is None or count is None:
            return None
        numbers = {**settings, "lr": rate, "weight_decay": decay}
        if count < 1 or not _taken(numbers) or (decoupled and not row.decoupled):
            return None  # which torch.optim refuses, or has not
        name = row.decoupled if decoupled else row.name
        build = call.build
        x = build.once(f"{call.text('x')}.detach().clone()", call.out.shape, call.out.dtype, "p")
        sign = "-" if way == "maximize" else ""
        build.lines.append(f"{x.text}.grad = {sign}{call.text('gradient')}.detach()")
        options = {**settings, way: True} if way else settings
        if any(item.name == "lr" for item in call.node.op.inputs):
            options = {"lr": rate, **options}
        if decay:
            options = {"weight_decay": decay, **options}
        made = invoke(f"torch.optim.{name}", f"[{x.text}]", **options)
        optimizer = build.names.fresh("optimizer")
        build.lines.append(f"{optimizer} = {made}")
        state = f"{optimizer}.state[{x.text}]"
        kept = {}
        for number, (own, key) in enumerate(row.kept.items(), 1):
            info = call.outputs[number]
            if call.has(own):
                text = f"{call.text(own)}.detach().clone()"
            else:
                dtype = build.dtype(info.dtype)
                text = f"torch.full({info.shape}, {call.number(own)}, dtype={dtype})"
            kept[key] = build.once(text, info.shape, info.dtype, own)
        if row.name != "SGD" or count > 1:
            items = ", ".join(f'"{key}": {value.text}' for key, value in kept.items())
            build.lines.append(f'{state} = {{"step": torch.tensor({count - 1}), {items}}}')
        build.lines.append(f"{optimizer}.step()")
        results = [x]
        for key, value in kept.items():
            text = f"{state}.get({key!r}, {value.text})".replace("'", '"')
            results.append(build.once(text, value.shape, value.dtype, f"new_{value.text}"))
        return results

    return rule


_MEANS = {"mean": "exp_avg", "square": "exp_avg_sq"}
_ROWS = {
    "sgd": _Row("SGD", _sgd, {"velocity": "momentum_buffer"}),
    "rmsprop": _Row(
        "RMSprop", _rmsprop,
        {"square": "square_avg", "mean": "grad_avg", "velocity": "momentum_buffer"},
    ),
    "adagrad": _Row("Adagrad", _adagrad, {"square": "sum"}),
    "adadelta": _Row("Adadelta", _adadelta, {"square": "square_avg", "step_square": "acc_delta"}),
    "adam": _Row("Adam", _adam, {**_MEANS, "largest": "max_exp_avg_sq"}, "AdamW"),
    "adamax": _Row("Adamax", _adamax, {"mean": "exp_avg", "largest": "exp_inf"}),
    "nadam": _Row("NAdam", _nadam, {**_MEANS, "product": "mu_product"}, "NAdam"),
    "radam": _Row("RAdam", _radam, _MEANS, "RAdam"),
    "rprop": _Row("Rprop", _rprop, {"previous": "prev", "length": "step_size"}),
}  # fmt: skip

_WAYS = ("foreach", "maximize", "fused")  # implementations of their own
_FUSED = ("SGD", "Adagrad", "Adam")


def _native(row: _Row, *others: Native, way: str = "") -> Native:
    """The step in one of its ways, and the words for it in others."""
    said = f"({way}=True)" if way else ""
    return Native(
        f"torch.optim.{row.name}{said}", _step(row, way),
        constant=("x", "gradient", *row.kept, "lr"), eager=True, others=others,
    )  # fmt: skip


def _others(row: _Row) -> Iterator[Native]:
    for way in _WAYS:
        if way != "fused" or row.name in _FUSED:
            yield _native(row, way=way)


OPTIMIZERS: dict[str, Native] = {name: _native(row, *_others(row)) for name, row in _ROWS.items()}
