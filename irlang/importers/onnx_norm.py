"""ONNX's normalisations, softmax among them, and dropout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irlang.equations import TensorInfo
from irlang.importers.onnx_node import ByFunction, Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]


def _batch_norm(n: Node) -> Value | list[Value | None]:
    """By given statistics; in training by those of the batch, which update the given ones."""
    n.ignore("consumed_inputs", "spatial")
    momentum, eps = n.real("momentum", 0.9), n.real("epsilon", 1e-5)
    training = not n.flag("is_test") if n.version < 7 else n.flag("training_mode")
    if n.version >= 7 and n.version < 14 and any(n.outputs[1:]):
        training = True
    x, scale, bias, mean, var = n.x
    if not training:
        return n.call("batch_norm", x, scale, bias, mean, var, eps=eps)
    if n.version < 14:
        raise Unsupported("training, before version 14")
    y, own_mean, own_var = n.steps(["", "mean", "var"], "batch_norm_train", x, scale, bias, eps=eps)
    found: list[Value | None] = [y]
    for place, (given, own) in enumerate(((mean, own_mean), (var, own_var)), 1):
        if not n.wants(place):
            found.append(None)
            continue
        old = n.step(f"old_{place}", "multiply", given, momentum)
        new = n.step(f"new_{place}", "multiply", own, 1 - momentum)
        found.append(n.step(f"running_{place}", "add", old, new))
    return found


def _softmax(op: str) -> Row:
    """Before version 13 the axes from `axis` on count as one."""

    def row(n: Node) -> Value:
        x, axis = n.input(0), n.int("axis", -1 if n.version >= 13 else 1)
        if n.version >= 13 or axis in (-1, x.rank - 1):
            return n.call(op, x, axis=axis)
        axis = axis % max(x.rank, 1)
        flat = n.step("flat", "flatten", x, axis=axis)
        return n.call("reshape", n.step("rows", op, flat, axis=axis), shape=list(x.shape))

    return row


def _layer_norm(op: str, names: tuple[str, ...]) -> Row:
    """Over all axes from `axis` on; scale and shift may broadcast to these."""

    def row(n: Node) -> Value:
        n.ignore("stash_type")
        if any(n.outputs[1:]):
            raise ByFunction
        x, axis = n.input(0), n.int("axis", -1)
        axes = list(range(axis % max(x.rank, 1), x.rank))
        attrs: dict[str, Any] = {"eps": n.real("epsilon", 1e-5)}
        if axes != [x.rank - 1]:
            attrs["axes"] = axes
        sizes = tuple(x.shape[axis] for axis in axes)
        given = [v for v in (n.optional(i + 1) for i in range(len(names))) if v is not None]
        if all(value.shape == sizes for value in given):
            return n.call(op, x, *given, **attrs)
        y = n.step("normal", op, x, **attrs)
        if len(given) == 1:
            return n.call("multiply", y, given[0])
        return n.call("add", n.step("scaled", "multiply", y, given[0]), given[1])

    return row


def _group_norm(n: Node) -> Value:
    """Before version 21 scale and shift have a number a group."""
    n.ignore("stash_type")
    x, scale, bias = n.x
    groups = n.int("num_groups", 1)
    if n.version < 21:
        each = x.shape[1] // groups
        scale = n.step("scale", "repeat", scale, repeats=each, axis=0)
        bias = n.step("bias", "repeat", bias, repeats=each, axis=0)
    return n.call("group_norm", x, scale, bias, groups=groups, eps=n.real("epsilon", 1e-5))


def _instance_norm(n: Node) -> Value:
    n.ignore("consumed_inputs")
    return n.call("instance_norm", *n.x, eps=n.real("epsilon", 1e-5))


def _lp_norm(n: Node) -> Value:
    """Zero where all is zero, as ONNX has it: no other norm is below the least number."""
    attrs = {"axes": [n.int("axis", -1)], "p": n.int("p", 2)}
    return n.call("normalize", n.input(0), **attrs, eps=_TINY)


_TINY = 1e-45


def _mean_variance(n: Node) -> Value:
    axes = n.ints("axes", [0, 2, 3])
    return n.call("mean_variance_norm", n.input(0), axes=axes)


def _local_response(n: Node) -> Value:
    return n.call(
        "local_response_norm",
        n.input(0),
        size=n.int("size"),
        alpha=n.real("alpha", 0.0001),
        beta=n.real("beta", 0.75),
        bias=n.real("bias", 1.0),
    )


def _dropout(n: Node) -> Sequence[Value | None]:
    """Of no effect unless in training; then what is kept is left open."""
    n.ignore("seed", "is_test", "consumed_inputs")
    x = n.input(0)
    training = n.version < 7 and not n.flag("is_test")
    rate = n.real("ratio", 0.5)
    if n.version >= 12:
        training = n.optional(2) is not None and bool(n.known_number(2))
        if training and n.optional(1) is not None:
            rate = n.single(n.known_number(1))
    if training and rate != 0:
        if n.wants(1) and n.version < 10:
            raise Unsupported("in training with a mask of numbers")
        return n.calls(2 if n.wants(1) else 1, "dropout", x, rate=rate, training=True)
    kind = "bool" if n.version >= 10 else x.dtype
    if not n.wants(1):
        return [x]
    all_kept = True if kind == "bool" else 1
    return [x, n.const(all_kept, n.outputs[1], TensorInfo(x.shape, kind))]


ROWS: dict[str, Row] = {
    "BatchNormalization": _batch_norm,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "LayerNormalization": _layer_norm("layer_norm", ("gamma", "beta")),
    "RMSNormalization": _layer_norm("rms_norm", ("gamma",)),
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
    "LRN": _local_response,
    "Dropout": _dropout,
}
