"""Losses. PyTorch numbers its reductions: 0 none, 1 the mean, 2 the sum."""

from __future__ import annotations

import math
from typing import Any

from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_reductions import norm

_NAMES = ("none", "mean", "sum")


def how(c: Call) -> str:
    """The reduction by its name."""
    return _NAMES[c.whole("reduction", 1)]


def reduced(c: Call, x: Value, reduction: str = "") -> Value:
    """A loss of every element, reduced."""
    reduction = reduction or how(c)
    x = c.cast(x, c.out)
    if reduction == "none":
        return x
    return c("reduce_sum" if reduction == "sum" else "reduce_mean", x)


def pair(c: Call, first: str = "self", second: str = "target") -> list[Value]:
    """Prediction and target in one type and one shape."""
    import numpy as np

    found = [c.cast(c.tensor(name), c.out) for name in (first, second)]
    shape = np.broadcast_shapes(*[tuple(int(n) for n in x.shape) for x in found])
    if any(x.shape != shape for x in found):
        found = [c.broadcast(x, shape) for x in found]
    return found


def _simple(op: str) -> Rule:
    return lambda c: c(op, *pair(c), reduction=how(c))


def _huber(c: Call) -> Value:
    return c("huber", *pair(c), delta=c.number("delta", 1.0), reduction=how(c))


def _smooth(c: Call) -> Value:
    beta = c.number("beta", 1.0)
    if beta == 0:
        return c("mae", *pair(c), reduction=how(c))
    loss = c("huber", *pair(c), delta=beta, reduction=how(c))
    return loss if beta == 1 else c("divide", loss, beta)


def _kl(c: Call) -> Value:
    return c("kl_div", *pair(c), log_target=c.flag("log_target"), reduction=how(c))


def _binary(c: Call) -> Value:
    if not c.has("weight"):
        return c("binary_cross_entropy", *pair(c), eps=0, floor=-100, reduction=how(c))
    loss = c("binary_cross_entropy", *pair(c), eps=0, floor=-100, reduction="none")
    return reduced(c, c("multiply", loss, c.tensor("weight")))


def _binary_logits(c: Call) -> Value:
    x, t = pair(c)
    if c.has("pos_weight"):
        factor = c("add", c("multiply", c("subtract", c.tensor("pos_weight"), 1), t), 1)
        low = c("multiply", factor, c("softplus", c("negate", x)))
        loss = c("add", c("multiply", c("subtract", 1, t), x), low)
    elif c.has("weight"):
        loss = c("binary_cross_entropy_logits", x, t, reduction="none")
    else:
        return c("binary_cross_entropy_logits", x, t, reduction=how(c))
    if c.has("weight"):
        loss = c("multiply", loss, c.tensor("weight"))
    return reduced(c, loss)


# ---- classes


def _labelled(c: Call, op: str, x: Value, target: Value, **attrs: Any) -> Value:
    """A loss of labelled classes, weighted; ignored labels count for nothing."""
    by_name = {"weight": c.tensor("weight")} if c.has("weight") else {}
    attrs |= {"axis": max(x.rank - target.rank - 1, 0) if x.rank == 1 else 1, "reduction": how(c)}
    ignored = [c.whole("ignore_index", -100)]
    return c(op, x, c.cast(target, "i64"), by_name=by_name, ignore_index=ignored, **attrs)


def _nll(c: Call) -> Any:
    x, target = c.tensor("self"), c.tensor("target")
    if 0 in x.shape or 0 in target.shape:
        raise Uncovered("a loss of nothing")
    loss = _labelled(c, "nll", x, target)
    if len(c.node.results) == 1:
        return loss
    raise Uncovered("the total weight as a result")


def _cross_entropy(c: Call) -> Value:
    x, target = c.tensor("self"), c.tensor("target")
    smoothing = c.number("label_smoothing", 0.0)
    axis = 0 if x.rank == 1 else 1
    if target.dtype not in FLOATS:
        attrs: dict[str, Any] = {"label_smoothing": smoothing} if smoothing else {}
        return _labelled(c, "cross_entropy", x, target, **attrs)
    target = c.cast(target, x.dtype)
    if smoothing:
        share = smoothing / int(x.shape[axis])
        target = c("add", c("multiply", target, 1 - smoothing), share)
    terms = c("multiply", c("negate", c("log_softmax", x, axis=axis)), target)
    if c.has("weight"):
        shape = [x.shape[axis], *[1] * (x.rank - 1 - axis)]
        terms = c("multiply", terms, c.reshape(c.tensor("weight"), shape))
    loss = c("reduce_sum", terms, axes=[axis])
    return reduced(c, loss)


# ---- margins


def _soft_margin(c: Call) -> Value:
    x, t = pair(c)
    return reduced(c, c("softplus", c("negate", c("multiply", t, x))))


def _ranking(c: Call) -> Value:
    a, b, t = (c.cast(c.tensor(n), c.out) for n in ("input1", "input2", "target"))
    gap = c("multiply", c("negate", t), c("subtract", a, b))
    return reduced(c, c("maximum", c("add", gap, _fit(c, c.number("margin", 0.0))), 0))


def _fit(c: Call, value: float) -> Any:
    return value if c.out in FLOATS else int(value)


def _hinge_embedding(c: Call) -> Value:
    x, t = pair(c)
    apart = c("maximum", c("subtract", c.number("margin", 1.0), x), 0)
    first = c("where", c("equal", t, 1), 0, apart)
    second = c("where", c("equal", t, -1), 0, x)
    return reduced(c, c("add", first, second))


def _poisson(c: Call) -> Value:
    x, t = pair(c, "input", "target")
    if c.flag("log_input"):
        loss = c("subtract", c("exp", x), c("multiply", t, x))
    else:
        loss = c("subtract", x, c("multiply", t, c("log", c("add", x, c.number("eps", 1e-8)))))
    if c.flag("full"):
        more = c("add", c("subtract", c("multiply", t, c("log", t)), t),
                 c("multiply", c("log", c("multiply", t, 2 * math.pi)), 0.5))  # fmt: skip
        loss = c("add", loss, c("where", c("greater", t, 1), more, 0))
    return reduced(c, loss)


def _gap(c: Call, a: Value, b: Value) -> Value:
    apart = c("add", c("subtract", a, b), c.number("eps", 1e-6))
    return norm(c, apart, c.number("p", 2.0), [apart.rank - 1], False)


def _triplet(c: Call) -> Value:
    a, p, n = (c.cast(c.tensor(name), c.out) for name in ("anchor", "positive", "negative"))
    near, far = _gap(c, a, p), _gap(c, a, n)
    if c.flag("swap"):
        far = c("minimum", far, _gap(c, p, n))
    gap = c("add", c("subtract", near, far), c.number("margin", 1.0))
    return reduced(c, c("maximum", gap, 0))


def _cosine_embedding(c: Call) -> Value:
    """PyTorch adds a small number to the squares before it takes the root."""
    a, b = (c.cast(c.tensor(n), c.out) for n in ("input1", "input2"))
    t = c.tensor("target")
    axis = a.rank - 1
    squares = [c("add", c("reduce_sum_square", x, axes=[axis]), 1e-12) for x in (a, b)]  # fmt: skip
    product = c("reduce_sum", c("multiply", a, b), axes=[axis])
    angle = c("divide", product, c("sqrt", c("multiply", *squares)))
    apart = c("maximum", c("subtract", angle, c.number("margin", 0.0)), 0)
    first = c("where", c("equal", t, 1), c("subtract", 1, angle), 0)
    return reduced(c, c("add", first, c("where", c("equal", t, -1), apart, 0)))


def _multi_margin(c: Call) -> Value:
    x, labels = c.tensor("self"), c.cast(c.tensor("target"), "i64")
    p, margin = c.number("p", 1), c.number("margin", 1)
    if x.rank <= 1:
        x, labels = c.reshape(x, [1, math.prod(x.shape)]), c.reshape(labels, [1])
    own = c("expand_dims", labels, axes=[1])
    right = c("take_along_axis", x, own, axis=1)
    gap = c("maximum", c("add", c("subtract", x, right), float(margin)), 0)
    gap = c("square", gap) if p == 2 else gap
    if c.has("weight"):
        gap = c(
            "multiply", gap, c("expand_dims", c("gather", c.tensor("weight"), labels), axes=[1])
        )
    here = c("one_hot", labels, depth=x.shape[1], to=x.dtype)
    gap = c("where", c("equal", here, 1), 0, gap)
    loss = c("divide", c("reduce_sum", gap, axes=[1]), int(x.shape[1]))
    found = reduced(c, loss)
    return c.reshape(found, c.result().shape)


def _multilabel_margin(c: Call) -> Value:
    x, labels = c.tensor("self"), c.cast(c.tensor("target"), "i64")
    if x.rank == 0:
        x, labels = c.reshape(x, [1]), c.reshape(labels, [1])
    found = c("multilabel_margin", x, labels, reduction=how(c))
    return c.reshape(found, c.result().shape)


LOSSES: dict[str, Rule] = {
    "mse_loss": _simple("mse"),
    "l1_loss": _simple("mae"),
    "huber_loss": _huber,
    "smooth_l1_loss": _smooth,
    "kl_div": _kl,
    "binary_cross_entropy": _binary,
    "binary_cross_entropy_with_logits": _binary_logits,
    "nll_loss": _nll,
    "nll_loss_nd": _nll,
    "nll_loss2d": _nll,
    "cross_entropy_loss": _cross_entropy,
    "soft_margin_loss": _soft_margin,
    "margin_ranking_loss": _ranking,
    "hinge_embedding_loss": _hinge_embedding,
    "poisson_nll_loss": _poisson,
    "triplet_margin_loss": _triplet,
    "cosine_embedding_loss": _cosine_embedding,
    "multi_margin_loss": _multi_margin,
    "multilabel_margin_loss": _multilabel_margin,
}
