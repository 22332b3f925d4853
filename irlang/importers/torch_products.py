"""Products of vectors, matrices and batches of them, and distances."""

from __future__ import annotations

import math

import numpy as np

from irlang.importers.labels import Malformed, labels_of
from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_elementwise import plain
from irlang.importers.torch_matrices import diagonal
from irlang.importers.torch_pieces import piece
from irlang.importers.torch_reductions import norm


def matmul(c: Call, a: Value, b: Value) -> Value:
    """The product of torch.matmul: vectors count as a row on the left, a column on the right."""
    if a.dtype not in FLOATS:
        return _whole_product(c, a, b)
    left = c("expand_dims", a, axes=[0]) if a.rank == 1 else a
    right = c("expand_dims", b, axes=[1]) if b.rank == 1 else b
    y = c("matmul", left, right)
    gone = [y.rank - 2] * (a.rank == 1) + [y.rank - 1] * (b.rank == 1)
    return c("squeeze", y, axes=gone) if gone else y


def _whole_product(c: Call, a: Value, b: Value) -> Value:
    """A product of integers, by elements and their sum."""
    left = c("expand_dims", a, axes=[0]) if a.rank == 1 else a
    right = c("expand_dims", b, axes=[1]) if b.rank == 1 else b
    left = c("expand_dims", left, axes=[left.rank])
    right = c("expand_dims", right, axes=[right.rank - 2])
    dtype = a.dtype
    if dtype == "bool":
        left, right = c.cast(left, "i64"), c.cast(right, "i64")
    y = c("reduce_sum", c("multiply", left, right), axes=[-2])
    gone = [y.rank - 2] * (a.rank == 1) + [y.rank - 1] * (b.rank == 1)
    return c.cast(c("squeeze", y, axes=gone) if gone else y, dtype)


def _product(first: str, second: str) -> Rule:
    return lambda c: matmul(c, c.tensor(first), c.tensor(second))


def _linear(c: Call) -> Value:
    x, w = c.tensor("input"), c.tensor("weight")
    if x.dtype not in FLOATS:
        y = _whole_product(c, x, c("transpose", w)) if w.rank == 2 else _whole_product(c, x, w)
        return c("add", y, c.tensor("bias")) if c.has("bias") else y
    if w.rank == 1:
        y = matmul(c, x, w)
        return c("add", y, c.tensor("bias")) if c.has("bias") else y
    bias = [c.tensor("bias")] if c.has("bias") else []
    if bias and bias[0].shape != (w.shape[0],):
        return c("add", c("dense", x, _turned(c, w)), bias[0])
    return c("dense", x, _turned(c, w), *bias)


def _turned(c: Call, w: Value) -> Value:
    """A matrix transposed; a parameter once and for all."""
    return c.turned(w)


def _added(first: str, second: str, kind: str = "matmul") -> Rule:
    """The sum beta * self + alpha * (first second)"""

    def rule(c: Call) -> Value:
        x, a, b = c.tensor("self"), c.tensor(first), c.tensor(second)
        alpha, beta = plain(c.get("alpha", 1)), plain(c.get("beta", 1))
        product = _outer_product(c, a, b) if kind == "outer" else matmul(c, a, b)
        if kind == "sum":
            product = c("reduce_sum", product, axes=[0])
        if c.out == "bool":
            return c("logical_or", x, product)
        if alpha != 1:
            product = c("multiply", product, alpha)
        if beta == 0:
            return product
        x = x if beta == 1 else c("multiply", x, beta)
        return c("add", x, product)

    return rule


def _outer_product(c: Call, a: Value, b: Value) -> Value:
    left, right = c("expand_dims", a, axes=[1]), c("expand_dims", b, axes=[0])
    return c("logical_and" if a.dtype == "bool" else "multiply", left, right)


def _outer(c: Call) -> Value:
    return _outer_product(c, c.cast(c.tensor("self"), c.out), c.cast(c.tensor("vec2"), c.out))


def _inner(c: Call) -> Value:
    a, b = c.tensor("self"), c.tensor("other")
    if a.rank == 0 or b.rank == 0:
        return c("multiply", a, b)
    flat = c.reshape(b, [math.prod(b.shape[:-1]), b.shape[-1]])
    y = matmul(c, c.reshape(a, [math.prod(a.shape[:-1]), a.shape[-1]]), c("transpose", flat))
    return c.reshape(y, c.result().shape)


def _tensordot(c: Call) -> Value:
    a, b = c.tensor("self"), c.tensor("other")
    left = [int(d) % max(a.rank, 1) for d in c.numbers("dims_self")]
    right = [int(d) % max(b.rank, 1) for d in c.numbers("dims_other")]
    rows = [d for d in range(a.rank) if d not in left]
    columns = [d for d in range(b.rank) if d not in right]
    # an axis of size 1 stands for as many as the other has
    for i, j in zip(left, right, strict=True):
        if a.shape[i] == 1 and b.shape[j] != 1:
            b = c("reduce_sum", b, axes=[j], keepdims=True)
        elif b.shape[j] == 1 and a.shape[i] != 1:
            a = c("reduce_sum", a, axes=[i], keepdims=True)
    inner = math.prod(a.shape[d] for d in left)
    high = math.prod(a.shape[d] for d in rows)
    wide = math.prod(b.shape[d] for d in columns)
    a = c.reshape(c("transpose", a, perm=[*rows, *left]), [high, inner])
    b = c.reshape(c("transpose", b, perm=[*right, *columns]), [inner, wide])
    return c.reshape(matmul(c, a, b), c.result().shape)


def _chain(c: Call) -> Value:
    tensors: list[Value] = c.get("tensors")
    first, *rest = tensors
    for item in rest:
        first = matmul(c, first, item)
    return first


def _einsum(c: Call) -> Value:
    tensors = c.get("tensors")
    try:
        labels, output = labels_of(c.get("equation"), [t.rank for t in tensors])
    except Malformed as reason:
        raise Uncovered(str(reason)) from None
    return c("einsum", *tensors, labels=labels, output=output)


def _bilinear(c: Call) -> Value:
    a, b, w = c.tensor("input1"), c.tensor("input2"), c.tensor("weight")
    bias = [c.tensor("bias")] if c.has("bias") else []
    return c("bilinear", a, b, w, *bias)


def _dot(c: Call) -> Value:
    a = c.tensor("self")
    b = c.tensor("other" if "other" in c.node.args else "tensor")
    return c("reduce_sum", c("multiply", a, b))  # fmt: skip


def _vecdot(c: Call) -> Value:
    product = c("multiply", c.tensor("x"), c.tensor("y"))
    return c("reduce_sum", product, axes=[c.axis("dim", product.rank, -1)])


def _cdist(c: Call) -> Value:
    a, b = c.tensor("x1"), c.tensor("x2")
    gap = c(
        "subtract", c("expand_dims", a, axes=[a.rank - 1]), c("expand_dims", b, axes=[b.rank - 2])
    )
    if 0 in gap.shape:
        return c.param(0, c.result().shape, c.out)
    return norm(c, gap, c.number("p", 2.0), [gap.rank - 1], False)


def _pdist(c: Call) -> Value:
    x = c.tensor("self")
    rows, columns = np.triu_indices(int(x.shape[0]), 1)
    if not len(rows):
        return c.param(0, c.result().shape, c.out)
    a, b = (c("gather", x, c.param(i.astype(np.int64)), axis=0) for i in (rows, columns))
    return norm(c, c("subtract", a, b), c.number("p", 2.0), [1], False)


def _pair_distance(c: Call) -> Value:
    gap = c(
        "add",
        c("subtract", *[c.cast(c.tensor(n), c.out) for n in ("x1", "x2")]),
        c.number("eps", 1e-6),
    )
    return norm(c, gap, c.number("p", 2.0), [gap.rank - 1], c.flag("keepdim"))


def _dist(c: Call) -> Value:
    gap = c("subtract", c.tensor("self"), c.tensor("other"))
    return norm(c, gap, c.number("p", 2), list(range(gap.rank)), False)


def cosine(c: Call, a: Value, b: Value, axis: int, eps: float) -> Value:
    """The cosine of the angle along an axis; each length counts as eps at least."""
    lengths = [
        c("maximum", c("reduce_l2", t, axes=[axis % t.rank], keepdims=True), eps) for t in (a, b)
    ]
    unit = [c("divide", t, n) for t, n in zip((a, b), lengths, strict=True)]
    product = c("multiply", *unit)
    return c("reduce_sum", product, axes=[axis % product.rank])


def _cosine(c: Call) -> Value:
    a, b = (c.cast(c.tensor(n), c.out) for n in ("x1", "x2"))
    return cosine(c, a, b, c.whole("dim", 1), c.number("eps", 1e-8))


def _cross(c: Call) -> Value:
    a, b = c.cast(c.tensor("self"), c.out), c.cast(c.tensor("other"), c.out)
    rank = max(a.rank, b.rank)
    if c.has("dim") or "linalg" in c.node.target:
        axis = c.axis("dim", rank, -1)
    else:
        axis = next(d for d in range(a.rank) if a.shape[d] == 3)
    turn = [[1, 2, 0], [2, 0, 1]]
    parts = [
        [c("gather", t, c.param(np.array(i, np.int64)), axis=axis - (rank - t.rank)) for i in turn]
        for t in (a, b)
    ]
    (a1, a2), (b1, b2) = parts
    return c("subtract", c("multiply", a1, b2), c("multiply", a2, b1))


def _kron(c: Call) -> Value:
    a, b = c.cast(c.tensor("self"), c.out), c.cast(c.tensor("other"), c.out)
    rank = max(a.rank, b.rank)
    left = [1] * (rank - a.rank) + list(a.shape)
    right = [1] * (rank - b.rank) + list(b.shape)
    a = c.reshape(a, [n for pair in zip(left, [1] * rank, strict=True) for n in pair])
    b = c.reshape(b, [n for pair in zip([1] * rank, right, strict=True) for n in pair])
    product = c("logical_and" if c.out == "bool" else "multiply", a, b)
    return c.reshape(product, c.result().shape)


def _trace(c: Call) -> Value:
    return c("reduce_sum", c.cast(diagonal(c, c.tensor("self"), 0, 0, 1), c.out))


def _vander(c: Call) -> Value:
    x = c.cast(c.tensor("x"), c.out)
    if x.rank == 0:
        x = c.reshape(x, [1])
    count = int(c.result().shape[-1])
    rising = c.flag("increasing") or "linalg" in c.node.target
    powers = [c.broadcast(c.param(1, (), c.out), x.shape)]
    for _ in range(count - 1):
        powers.append(c("multiply", powers[-1], x))
    powers = powers[:count] if rising else powers[:count][::-1]
    if not count:
        return c.param(0, c.result().shape, c.out)
    return c("stack", *powers, axis=x.rank)


def _trapezoid(cumulative: bool) -> Rule:
    def rule(c: Call) -> Value:
        y = c.cast(c.tensor("y"), c.out)
        axis = c.axis("dim", y.rank, -1)
        size = y.shape[axis]
        if size == 0:
            return c.param(0, c.result().shape, c.out)
        pair = c("add", piece(c, y, axis, 1, size), piece(c, y, axis, 0, size - 1))
        if c.has("x"):
            x = c.cast(c.tensor("x"), c.out)
            if x.rank == 1 and y.rank > 1:
                x = c.reshape(x, [x.shape[0] if d == axis else 1 for d in range(y.rank)])
            inner = x.rank - (y.rank - axis)
            size = x.shape[inner]
            gap = c("subtract", piece(c, x, inner, 1, size), piece(c, x, inner, 0, size - 1))
            pair = c("multiply", pair, gap)
        elif c.get("dx", 1) != 1:
            pair = c("multiply", pair, plain(c.get("dx")))
        half = c("multiply", pair, 0.5) if c.out in FLOATS else pair
        if cumulative:
            return c("cumsum", half, axis=axis)
        return c("reduce_sum", half, axes=[axis])

    return rule


def _diff(c: Call) -> Value:
    x = c.tensor("self")
    axis = c.axis("dim", x.rank, -1)
    names = [name for name in ("prepend", "self", "append") if c.has(name)]
    parts = [c.cast(c.tensor(name), x.dtype) for name in names]
    x = parts[0] if len(parts) == 1 else c("concat", *parts, axis=axis)
    for _ in range(c.whole("n", 1)):
        size = x.shape[axis]
        if size == 0:
            break
        a, b = piece(c, x, axis, 1, size), piece(c, x, axis, 0, size - 1)
        x = c("logical_xor", a, b) if x.dtype == "bool" else c("subtract", a, b)
    return x


def _renorm(c: Call) -> Value:
    x, axis = c.tensor("self"), c.axis("dim", c.tensor("self").rank)
    most = c.number("maxnorm")
    axes = [d for d in range(x.rank) if d != axis]
    size = norm(c, x, c.number("p"), axes, True)
    factor = c("divide", most, c("add", size, 1e-7))
    factor = c("where", c("greater", size, most), factor, 1)
    return c("multiply", x, factor)


def _matrix_power(c: Call) -> Value:
    x, n = c.tensor("self"), c.whole("n")
    if n < 0:
        x, n = c("inverse", x), -n
    if n == 0:
        eye = np.eye(int(x.shape[-1])).astype({"f32": np.float32, "f64": np.float64}[x.dtype])
        return c.broadcast(c.param(eye), x.shape)
    result = x
    for _ in range(n - 1):
        result = matmul(c, result, x)
    return result


def _cartesian(c: Call) -> Value:
    tensors: list[Value] = c.get("tensors")
    if len(tensors) == 1:
        return tensors[0]
    shape = [t.shape[0] for t in tensors]
    columns = []
    for d, t in enumerate(tensors):
        lone = c.reshape(t, [n if e == d else 1 for e, n in enumerate(shape)])
        columns.append(c.reshape(c.broadcast(lone, shape), [math.prod(shape)]))
    return c("stack", *columns, axis=1)


PRODUCTS: dict[str, Rule] = {
    "matmul": _product("self", "other"),
    "mm": _product("self", "mat2"),
    "bmm": _product("self", "mat2"),
    "mv": _product("self", "vec"),
    "linear": _linear,
    "addmm": _added("mat1", "mat2"),
    "addmv": _added("mat", "vec"),
    "baddbmm": _added("batch1", "batch2"),
    "addbmm": _added("batch1", "batch2", "sum"),
    "addr": _added("vec1", "vec2", "outer"),
    "outer": _outer,
    "ger": _outer,
    "inner": _inner,
    "dot": _dot,
    "vdot": _dot,
    "linalg_vecdot": _vecdot,
    "tensordot": _tensordot,
    "linalg_multi_dot": _chain,
    "chain_matmul": _chain,
    "einsum": _einsum,
    "bilinear": _bilinear,
    "cdist": _cdist,
    "_cdist_forward": _cdist,
    "pdist": _pdist,
    "pairwise_distance": _pair_distance,
    "dist": _dist,
    "cosine_similarity": _cosine,
    "cross": _cross,
    "linalg_cross": _cross,
    "kron": _kron,
    "trace": _trace,
    "vander": _vander,
    "linalg_vander": _vander,
    "trapezoid": _trapezoid(False),
    "trapz": _trapezoid(False),
    "cumulative_trapezoid": _trapezoid(True),
    "diff": _diff,
    "renorm": _renorm,
    "linalg_matrix_power": _matrix_power,
    "matrix_power": _matrix_power,
    "cartesian_prod": _cartesian,
}
