"""How TensorFlow's kernels take steps of optimizers: `tf.raw_ops.ResourceApply…`, on variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
Numbers = Mapping[str, float | bool]
_FLOATS = ("f32", "f64")
INPUTS = (
    "x", "gradient", "mean", "square", "largest", "velocity", "step_square", "product", "linear",
    "lr",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel with its arguments. slots: what it keeps, by the definition's names, as its
    arguments. numbers: arguments that are numbers of the tensors' type, options: others. rate,
    gradient: the names of these arguments.
    """

    name: str
    slots: Mapping[str, str]
    numbers: Mapping[str, float]
    options: Mapping[str, bool] | None = None
    rate: str = "lr"
    gradient: str = "grad"


def results(call: Tf, x: str, kept: Mapping[str, str], tensor: str) -> list[Value]:
    """What variables hold after a step. kept: those of what is kept, by the definition's names.
    What a step does not use stays as it was.
    """
    build, dtype = call.build, call.out.dtype
    found = [build.once(f"{tensor}({x})", call.out.shape, dtype, "y")]
    for out, info in zip(call.node.op.outputs[1:], call.outputs[1:], strict=True):
        own = out.name.removeprefix("new_")
        if own in kept:
            found.append(build.once(f"{tensor}({kept[own]})", info.shape, dtype, out.name))
        elif call.has(own):
            found.append(build.once(call.text(own), info.shape, dtype, out.name))
        else:
            found.append(build.expand(build.scalar(call.number(own) or 0.0, dtype), info.shape))
    return found


def _sgd(call: Tf) -> _Kernel | None:
    if not call["momentum"]:
        named = "ResourceApplyGradientDescent"
        return None if call["dampening"] else _Kernel(named, {}, {}, rate="alpha", gradient="delta")
    kind = "Keras" if call["velocity_of"] == "steps" else ""
    if call["dampening"] and not kind:
        return None
    return _Kernel(
        f"ResourceApply{kind}Momentum", {"velocity": "accum"},
        {"momentum": call["momentum"]}, {"use_nesterov": call["nesterov"]},
    )  # fmt: skip


def _rmsprop(call: Tf) -> _Kernel | None:
    if call["eps_to"] != "square" or (call["momentum"] and call["velocity_of"] != "steps"):
        return None
    numbers = {"rho": call["rho"], "momentum": call["momentum"], "epsilon": call["eps"]}
    slots = {"square": "ms", "velocity": "mom"}
    if call["centered"]:
        return _Kernel("ResourceApplyCenteredRMSProp", {"mean": "mg", **slots}, numbers)
    return _Kernel("ResourceApplyRMSProp", slots, numbers)


def _adagrad(call: Tf) -> _Kernel | None:
    if call["eps_to"] != "root" or call["lr_decay"]:
        return None
    slots = {"square": "accum"}
    if not call["eps"]:
        return _Kernel("ResourceApplyAdagrad", slots, {})
    return _Kernel("ResourceApplyAdagradV2", slots, {"epsilon": call["eps"]})


def _adadelta(call: Tf) -> _Kernel:
    slots = {"square": "accum", "step_square": "accum_update"}
    return _Kernel("ResourceApplyAdadelta", slots, {"rho": call["rho"], "epsilon": call["eps"]})


def _adam(call: Tf) -> _Kernel | None:
    count = call.number("step", 1)
    if call["eps_to"] != "raw" or count is None:
        return None
    betas = {name: float(call[name]) for name in ("beta_1", "beta_2")}
    powers = {name: beta**count if call["bias_correction"] else 0.0 for name, beta in betas.items()}
    numbers = {
        "beta1_power": powers["beta_1"], "beta2_power": powers["beta_2"],
        "beta1": betas["beta_1"], "beta2": betas["beta_2"], "epsilon": call["eps"],
    }  # fmt: skip
    slots = {"mean": "m", "square": "v"}
    if call["amsgrad"]:
        return _Kernel("ResourceApplyAdamWithAmsgrad", {**slots, "largest": "vhat"}, numbers)
    return _Kernel("ResourceApplyAdam", slots, numbers)


def _adamax(call: Tf) -> _Kernel | None:
    count = call.number("step", 1)
    if call["eps_to"] != "largest" or count is None:
        return None
    beta = float(call["beta_1"])
    numbers = {
        "beta1_power": beta**count, "beta1": beta, "beta2": call["beta_2"], "epsilon": call["eps"],
    }  # fmt: skip
    return _Kernel("ResourceApplyAdaMax", {"mean": "m", "largest": "v"}, numbers)


def _ftrl(call: Tf) -> _Kernel | None:
    if call["beta"]:
        return None
    numbers = {"l1": call["l1"], "l2": call["l2"], "lr_power": call["lr_power"]}
    slots = {"square": "accum", "linear": "linear"}
    if call["shrinkage"]:
        return _Kernel("ResourceApplyFtrlV2", slots, {**numbers, "l2_shrinkage": call["shrinkage"]})
    return _Kernel("ResourceApplyFtrl", slots, numbers)


# Steps of some rows, which may be all.
_OF_ROWS = (
    "Adadelta", "Adagrad", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2", "KerasMomentum",
    "Momentum", "RMSProp",
)  # fmt: skip


def _step(
    made: Callable[[Tf], _Kernel | None], by_rows: bool = False
) -> Callable[[Tf], list[Value] | None]:
    """The lines of one step: variables, the kernel, and what they hold then. by_rows: of all rows,
    by the kernel that is told which.
    """

    def rule(call: Tf) -> list[Value] | None:
        kernel, count = made(call), call.number("step", 1)
        if kernel is None or call.out.dtype not in _FLOATS or call.get("weight_decay", 0):
            return None
        if count is not None and count < 1:
            return None
        name = kernel.name
        if by_rows:
            if name.removeprefix("ResourceApply") not in _OF_ROWS or not call.out.shape:
                return None
            name = name.replace("Apply", "SparseApply")
        build, dtype, shape = call.build, call.out.dtype, call.out.shape
        x = build.once(f"tf.Variable({call.text('x')})", shape, dtype, "p")
        idle = "velocity" if not call.get("momentum", 1) else ""
        slots = {}
        for own in kernel.slots:
            first = build.expand(
                build.scalar(0.0 if call.has(own) else call.number(own) or 0.0, dtype), shape
            )
            given = call.text(own) if call.has(own) and own != idle else first.text
            slots[own] = build.once(f"tf.Variable({given})", shape, dtype, own).text
        rate = call.input("lr") if call.has("lr") else build.scalar(call.number("lr") or 0, dtype)
        numbers = {n: build.scalar(float(v), dtype) for n, v in kernel.numbers.items()}
        given_ = {
            "var": f"{x.text}.handle",
            **{kernel.slots[own]: f"{text}.handle" for own, text in slots.items()},
            kernel.rate: build.solid(rate), kernel.gradient: call.input("gradient"),
            **{name: build.solid(value) for name, value in numbers.items()},
            **({"indices": f"tf.range({shape[0]})"} if by_rows else {}),
            **(kernel.options or {}),
        }  # fmt: skip
        build.lines.append(invoke(f"tf.raw_ops.{name}", **given_))
        kept = {own: text for own, text in slots.items() if own != idle}
        return results(call, x.text, kept, "tf.convert_to_tensor")

    return rule


_RULES = {
    "sgd": ("GradientDescent", _sgd),
    "rmsprop": ("RMSProp", _rmsprop),
    "adagrad": ("AdagradV2", _adagrad),
    "adadelta": ("Adadelta", _adadelta),
    "adam": ("Adam", _adam),
    "adamax": ("AdaMax", _adamax),
    "ftrl": ("FtrlV2", _ftrl),
}
KERNELS: dict[str, Native] = {
    name: Native(f"tf.raw_ops.ResourceApply{kernel}", _step(made), constant=INPUTS, eager=True)
    for name, (kernel, made) in _RULES.items()
}
ROW_KERNELS: dict[str, Native] = {
    name: Native(
        f"tf.raw_ops.ResourceSparseApply{kernel}", _step(made, True), constant=INPUTS, eager=True
    )
    for name, (kernel, made) in {**_RULES, "sgd": ("Momentum", _sgd)}.items()
    if kernel in _OF_ROWS
}
