"""PyTorch's further words: functions beside those that people write, with kernels, decompositions
or checks of their own.
"""

from __future__ import annotations

import math

from irlang.lower.call import Call, Native, Rule
from irlang.lower.legalise import is_whole, windows
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


def word(name: str, rule: Rule) -> Native:
    """A word of PyTorch from 2.0 on."""
    return Native(name, rule, since=(2,))


# ---- elements


def _one_sided(call: Torch) -> Value | None:
    """A bound on one side."""
    low, high, x = call["low"], call["high"], call.input("x")
    if (low == -math.inf) == (high == math.inf):
        return None
    if high == math.inf:
        return call.value(invoke("torch.clamp_min", x, low))
    return call.value(invoke("torch.clamp_max", x, high))


def _relu(call: Torch) -> Value | None:
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    x = call.input("x")
    return call.value(invoke("torch.clamp_min", x, 0)) if shape == (math.inf, 0.0, 0.0) else None


def _float_power(call: Torch) -> Value | None:
    """In 64 bits, whatever it is given."""
    a, b = call.values["a"], call.values["b"]
    if call.out.dtype != "f64" or a.dtype != "f64":
        return None
    return call.value(invoke("torch.float_power", call.build.full(a), b))


def _true_divide(call: Torch) -> Value | None:
    values = map(call.build.solid, call.values.values())
    return call.value(invoke("torch.true_divide", *values)) if call.out.kind == "real" else None


def _lerp(call: Torch) -> Value | None:
    """With a weight that is a number."""
    weight = call.values["w"]
    if weight.literal is None:
        return None
    return call.value(invoke("torch.lerp", call.input("a"), call.input("b"), weight.text))


def _masked_fill(call: Torch) -> Value | None:
    condition, a, b = (call.values[name] for name in ("condition", "a", "b"))
    if a.shape or condition.literal is not None or b.literal is not None:
        return None
    return call.value(invoke("torch.masked_fill", b, condition, a.text))


# ---- along axes


def _softmin(call: Torch) -> Value:
    x = call.input("x")
    return call.value(invoke("F.softmin", f"-{call.build.inner(x)}", dim=call["axis"]))


def _norm(order: float | None) -> Native:
    """order: None where the program says it."""

    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        p = call["p"] if order is None else order
        if not axes or call.out.kind != "real":
            return None
        said = int(p) if is_whole(p) else float(p)
        return call.value(invoke("torch.norm", x, said, axes, call["keepdims"]))

    return word("torch.norm", rule)


def _norm_except(call: Torch) -> Value | None:
    """Of all axes but the first, or but the last."""
    x = call.input("x")
    axes = sorted(call.axes("axes", x.rank)) if x.rank > 1 else []
    left = [axis for axis in range(x.rank) if axis not in axes]
    if not call["keepdims"] or left not in ([0], [x.rank - 1]) or call.out.kind != "real":
        return None
    return call.value(invoke("torch.norm_except_dim", x, 2, left[0]))


def _matrix_norm(call: Torch) -> Value | None:
    orders = {"frobenius": '"fro"', "columns": 1, "rows": math.inf, "least_column": -1}
    order = orders.get(call["order"], -math.inf)
    options = {"ord": order, "dim": (-2, -1), "keepdim": call["keepdims"] or None}
    return call.value(invoke("torch.linalg.norm", call.input("x"), **options))


def _flipped(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if axes not in ((0,), (1,)):
        return None
    return call.value(invoke("torch.fliplr" if axes[0] else "torch.flipud", x))


def _trapezoid(call: Torch) -> Value:
    x = call.input("x")
    options = {"dx": float(call["dx"]), "dim": call.axis_said("axis", x.rank)}
    return call.value(invoke("torch.trapz", x, **options))


def _sorter(call: Torch) -> Value | None:
    """With an order that says that there is nothing to sort."""
    row, x = call.input("row"), call.input("x")
    if not row.rank:
        return None
    order = f"torch.arange({row.shape[-1]}).expand({tuple(row.shape)}).contiguous()"
    side = '"right"' if call["right"] else '"left"'
    return call.value(invoke("torch.searchsorted", row, x, side=side, sorter=order))


# ---- products and systems of equations


def _sides(call: Torch) -> list[str]:
    texts = ((call.build.inner(call.input(name)), call[f"transpose_{name}"]) for name in "ab")
    return [f"{text}.mT" if turned else text for text, turned in texts]


def _matmul(function: str, rank: int, listed: bool = False) -> Native:
    """Of so many axes, nothing broadcast."""

    def rule(call: Torch) -> Value | None:
        a, b = call.input("a"), call.input("b")
        if a.rank != rank or b.rank != rank or a.shape[: rank - 2] != b.shape[: rank - 2]:
            return None
        sides = _sides(call)
        return call.value(invoke(function, f"[{', '.join(sides)}]" if listed else sides[0],
                                 *([] if listed else sides[1:])))  # fmt: skip

    return word(function, rule)


def _inner(call: Torch) -> Value | None:
    """Of vectors, or of the rows of a matrix and a vector."""
    a, b = call.input("a"), call.input("b")
    function = {(1, 1): "torch.vdot", (2, 1): "torch.mv"}.get((a.rank, b.rank))
    return call.value(invoke(function, a, b)) if function is not None else None


def _vecdot(call: Torch) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if b.rank != 1 or call.out.kind != "real":
        return None
    return call.value(invoke("torch.linalg.vecdot", a, b))


def _rank_one(call: Torch) -> Value | None:
    """A matrix to which a column by a row is added."""
    a, b = call.input("a"), call.input("b")
    if not call.has("c") or (a.shape[1], b.shape[0]) != (1, 1) or call.out.dtype not in _WIDE:
        return None
    if call["transpose_a"] or call["transpose_b"]:
        return None
    options = {key: None if call[key] == 1 else call[key] for key in ("beta", "alpha")}
    pair = f"{call.build.inner(a)}[:, 0]", f"{call.build.inner(b)}[0]"
    return call.value(invoke("torch.addr", call.input("c"), *pair, **options))


def _by_vector(call: Torch) -> Value | None:
    """A matrix by a column, to which one is added."""
    if not call.has("c") or call.out.shape[1] != 1 or call.out.dtype not in _WIDE:
        return None
    c = call.input("c")
    if c.shape != call.out.shape:
        return None
    left, right = _sides(call)
    options = {key: None if call[key] == 1 else call[key] for key in ("beta", "alpha")}
    given = f"{call.build.inner(c)}[:, 0]", left, f"{right}[:, 0]"
    return call.value(f"{invoke('torch.addmv', *given, **options)}[:, None]")


def _firstword(function: str, *more: bool) -> Native:
    """What says besides whether it is right."""

    def rule(call: Torch) -> Value | None:
        values = [call.build.solid(value) for value in call.values.values()]
        if call.out.dtype not in _WIDE:
            return None
        return call.value(f"{invoke(function, *values, *more)}[0]")

    return word(function, rule)


def _of_tensor(function: str, **options: int) -> Native:
    """Of tensors, of which the only matrix is one."""

    def rule(call: Torch) -> Value | None:
        values = [call.build.solid(value) for value in call.values.values()]
        matrices = all(value.rank == 2 for value in values)
        if not matrices or call.out.dtype not in _WIDE or any(0 in v.shape for v in values):
            return None
        return call.value(invoke(function, *values, **options))

    return word(function, rule)


def _by_factors(call: Torch) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.dtype not in _WIDE or a.shape[:-2] != b.shape[:-2]:
        return None
    factors = call.build.several(invoke("torch.linalg.lu_factor", a), "factors", "pivots")
    return call.value(invoke("torch.linalg.lu_solve", *factors, b))


def _from_right(call: Torch) -> Value | None:
    """Of the transposed equation."""
    a, b = (call.build.inner(call.input(name)) for name in "ab")
    if call.out.dtype not in _WIDE:
        return None
    options = {"upper": call["lower"], "unitriangular": call["unit_diagonal"] or None}
    text = invoke("torch.linalg.solve_triangular", f"{a}.mT", f"{b}.mT", left=False, **options)
    return call.value(f"{text}.mT")


# ---- windows, norms


def _convolution(call: Torch) -> Value | None:
    """The function that all convolutions are."""
    frame = windows(call)
    if not 1 <= frame.rank <= 3 or not frame.symmetric:
        return None
    if {len(frame.stride), len(frame.dilation), len(frame.before)} != {frame.rank}:
        return None  # of an invalid call: here ones are always said
    bias = call.text("b")
    given = (list(frame.stride), list(frame.before), list(frame.dilation), False)
    none = [0] * frame.rank
    text = invoke("torch.convolution", call.input("x"), call.input("w"), bias,
                  *map(str, given), str(none), call["groups"])  # fmt: skip
    return call.value(text)


def _averages(call: Torch) -> Value | None:
    """Divided by a number that is said."""
    x, frame = call.input("x"), windows(call)
    if frame.rank not in (2, 3) or call["ceil_mode"] or call["pad"] == "same":
        return None
    if not frame.symmetric or not call["count_include_pad"] or set(frame.dilation) != {1}:
        return None
    if any(2 * low > k for low, k in zip(frame.before, frame.window, strict=True)):
        return None
    options = {
        "stride": frame.stride, "padding": frame.before if frame.padded else None,
        "divisor_override": math.prod(frame.window),
    }  # fmt: skip
    return call.value(invoke(f"F.avg_pool{frame.rank}d", x, frame.window, **options))


def _adaptive_maximum(call: Torch) -> Value | None:
    x = call.input("x")
    if not 1 <= x.rank - 2 <= 3:
        return None
    function = f"F.adaptive_max_pool{x.rank - 2}d"
    text = invoke(function, x, tuple(call["size"]), return_indices=True)
    return call.value(f"{text}[0]")


def _layer_norm(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if not axes or axes != tuple(range(x.rank - len(axes), x.rank)):
        return None
    if call["eps_to"] != "variance":
        return None
    shape = tuple(x.shape[axis] for axis in axes)
    given = [call.text(name) for name in ("gamma", "beta")]
    return call.value(f"{invoke('torch.native_layer_norm', x, shape, *given, call['eps'])}[0]")


def _affine_grid(call: Torch) -> Value | None:
    theta, size = call.input("theta"), tuple(call["size"])
    if len(size) not in (2, 3) or theta.dtype not in _WIDE:
        return None
    shape = [theta.shape[0], 1, *size]
    text = invoke("torch.affine_grid_generator", theta, str(shape), call["align_corners"])
    return call.value(text)


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "clip": word("torch.clamp_min, torch.clamp_max", _one_sided),
    "relu": word("torch.clamp_min", _relu),
    "power": word("torch.float_power", _float_power),
    "divide": word("torch.true_divide", _true_divide),
    "lerp": word("torch.lerp by a number", _lerp),
    "where": word("torch.masked_fill", _masked_fill),
    "softmax": word("F.softmin", _softmin),
    "reduce_l1": _norm(1),
    "reduce_l2": (_norm(2), word("torch.norm_except_dim", _norm_except)),
    "reduce_lp": _norm(None),
    "matrix_norm": word("torch.linalg.norm", _matrix_norm),
    "reverse": word("torch.flipud, torch.fliplr", _flipped),
    "trapezoid": word("torch.trapz", _trapezoid),
    "searchsorted": word("torch.searchsorted with a sorter", _sorter),
    "matmul": (_matmul("torch.bmm", 3), _matmul("torch.linalg.multi_dot", 2, listed=True)),
    "inner": (word("torch.vdot, torch.mv", _inner), word("torch.linalg.vecdot", _vecdot)),
    "gemm": (word("torch.addr", _rank_one), word("torch.addmv", _by_vector)),
    "cholesky": _firstword("torch.linalg.cholesky_ex"),
    "inverse": (_firstword("torch.linalg.inv_ex"), _of_tensor("torch.linalg.tensorinv", ind=1)),
    "solve": (
        _firstword("torch.linalg.solve_ex"),
        word("torch.linalg.lu_solve", _by_factors),
    ),
    "triangular_solve": word("torch.linalg.solve_triangular from the right", _from_right),
    "conv": word("torch.convolution", _convolution),
    "avg_pool": word("F.avg_pool{2,3}d with a divisor", _averages),
    "adaptive_max_pool": word("F.adaptive_max_pool{1,2,3}d with places", _adaptive_maximum),
    "layer_norm": word("torch.native_layer_norm", _layer_norm),
    "affine_grid": word("torch.affine_grid_generator", _affine_grid),
}
