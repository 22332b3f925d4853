"""ONNX's layers: products, convolutions, pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irlang.importers.onnx_node import Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]


# ---- products


def _matmul(n: Node) -> Value:
    """Vectors count as matrices of one row, or of one column, and lose that axis again."""
    a, b = n.input(0), n.input(1)
    if a.rank >= 2 and b.rank >= 2:
        return _whole_product(n, a, b) if a.info.kind == "int" else n.call("matmul", a, b)
    left = a if a.rank >= 2 else n.step("row", "expand_dims", a, axes=[0])
    right = b if b.rank >= 2 else n.step("column", "expand_dims", b, axes=[1])
    product = n.step("product", "matmul", left, right)
    axes = [-1] if a.rank >= 2 else [-2] if b.rank >= 2 else [-2, -1]
    return n.call("squeeze", product, axes=axes)


def _whole_product(n: Node, a: Value, b: Value) -> Value:
    """Of whole numbers, by labels: a product of matrices is one of reals."""
    rank = max(a.rank, b.rank) - 2
    labels = [*range(rank + 2 - a.rank, rank + 2), *range(rank + 2 - b.rank, rank)]
    labels += [rank + 1, rank + 2]
    return n.call("einsum", a, b, labels=labels, output=[*range(rank), rank, rank + 2])


def _gemm(n: Node) -> Value:
    """The product alpha * a' b' + beta * c, c broadcasting."""
    n.ignore("broadcast")
    a, b, c = n.input(0), n.input(1), n.optional(2)
    alpha, beta = n.real("alpha", 1.0), n.real("beta", 1.0)
    flip_a, flip_b = n.flag("transA"), n.flag("transB")
    plain = alpha == 1 and beta == 1 and not flip_a and a.info.kind == "real"
    if plain and a.rank == 2 and not flip_b and (c is None or c.shape == (b.shape[1],)):
        return n.call("dense", a, b, *([] if c is None else [c]))
    attrs: dict[str, Any] = {
        name: True for name, flip in (("transpose_a", flip_a), ("transpose_b", flip_b)) if flip
    }
    attrs |= {name: value for name, value in (("alpha", alpha), ("beta", beta)) if value != 1}
    if c is None:
        attrs.pop("beta", None)
    return n.call("gemm", a, b, *([] if c is None else [c]), **attrs)


# ---- windows


def window(n: Node, kernel: Sequence[int], x: Value) -> dict[str, Any]:
    """Stride, dilation and padding of a window as attributes. `kernel`: its sizes."""
    rank = len(kernel)
    stride = n.ints("strides") or [1] * rank
    dilation = n.ints("dilations") or [1] * rank
    auto, pads = n.word("auto_pad", "NOTSET") or "NOTSET", n.ints("pads") or [0] * (2 * rank)
    attrs: dict[str, Any] = {}
    if any(s != 1 for s in stride):
        attrs["stride"] = stride
    if any(d != 1 for d in dilation):
        attrs["dilation"] = dilation
    if auto == "SAME_UPPER":
        attrs["pad"] = "same"
    elif auto == "SAME_LOWER":
        before, after = [], []
        for k, s, d, size in zip(kernel, stride, dilation, x.shape[2:], strict=True):
            need = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            after.append(need // 2)
            before.append(need - need // 2)
        attrs.update(pad="given", before=before, after=after)
    elif auto == "NOTSET" and any(pads):
        attrs.update(pad="given", before=list(pads[:rank]), after=list(pads[rank:]))
    elif auto not in ("NOTSET", "VALID"):
        raise Unsupported(f"auto_pad is {auto}")
    return attrs


def _conv(n: Node) -> Value:
    x, w = n.input(0), n.input(1)
    n.ignore("kernel_shape")
    attrs = window(n, w.shape[2:], x)
    if n.int("group", 1) != 1:
        attrs["groups"] = n.int("group")
    return n.call("conv", *n.x[: 3 if n.optional(2) else 2], **attrs)


def _conv_transpose(n: Node) -> Value:
    """`output_shape` says the padding; where it is odd, `auto_pad` says on which side is more."""
    x, w = n.input(0), n.input(1)
    n.ignore("kernel_shape")
    rank = x.rank - 2
    stride, dilation = n.ints("strides") or [1] * rank, n.ints("dilations") or [1] * rank
    extra, pads = n.ints("output_padding") or [0] * rank, n.ints("pads") or [0] * (2 * rank)
    auto, wanted = n.word("auto_pad", "NOTSET") or "NOTSET", n.ints("output_shape")
    if auto.startswith("SAME") and wanted is None:
        wanted = [size * s for size, s in zip(x.shape[2:], stride, strict=True)]
    steps = (("stride", stride), ("dilation", dilation))
    attrs: dict[str, Any] = {name: items for name, items in steps if any(i != 1 for i in items)}
    if n.int("group", 1) != 1:
        attrs["groups"] = n.int("group")
    before, after = list(pads[:rank]), list(pads[rank:])
    if wanted is not None:
        for d, target in enumerate(wanted[-rank:]):
            span = (w.shape[2 + d] - 1) * dilation[d] + 1
            total = stride[d] * (x.shape[2 + d] - 1) + extra[d] + span - target
            if total < 0:  # ONNX leaves a gap at the end
                extra[d], total = extra[d] - total, 0
            less = total // 2
            before[d], after[d] = less, total - less
            if auto != "SAME_UPPER":
                before[d], after[d] = after[d], before[d]
    if any(before) or any(after):
        attrs.update(pad="given", before=before, after=after)
    if any(extra):
        attrs["output_padding"] = extra
    return n.call("conv_transpose", *n.x[: 3 if n.optional(2) else 2], **attrs)


def _pool(op: str) -> Row:
    def row(n: Node) -> Value | list[Value]:
        x, kernel = n.input(0), n.ints("kernel_shape")
        if kernel is None or len(kernel) != x.rank - 2:
            raise Unsupported("kernel_shape does not fit the input")
        if not n.wants(1):
            n.ignore("storage_order")  # of the positions, which nobody wants
        attrs = window(n, kernel, x)
        if op == "lp_pool":
            attrs["p"] = n.real("p", 2.0) if n.version < 2 else n.int("p", 2)
        attrs.setdefault("stride", [1] * len(kernel))
        if n.flag("ceil_mode"):
            attrs["ceil_mode"] = True
        if op == "avg_pool" and n.flag("count_include_pad"):
            attrs["count_include_pad"] = True
        if op == "max_pool" and n.wants(1):
            order = "column" if n.flag("storage_order") else "row"
            attrs.update(order=order, whole=True)
            return n.calls(2, "max_pool_with_argmax", x, window=kernel, **attrs)
        if x.info.kind == "int" and op != "max_pool":
            real = n.step("real", "cast", x, to="f64")
            return n.call("cast", n.step("pooled", op, real, window=kernel, **attrs), to=x.dtype)
        return n.call(op, x, window=kernel, **attrs)

    return row


def _global_lp(n: Node) -> Value:
    p = n.real("p", 2.0) if n.version < 2 else n.int("p", 2)
    return n.call("global_lp_pool", n.input(0), p=p)


def _global(op: str) -> Row:
    def row(n: Node) -> Value:
        return n.call(op, n.input(0), keepdims=True)

    return row


ROWS: dict[str, Row] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "LpPool": _pool("lp_pool"),
    "MaxPool": _pool("max_pool"),
    "AveragePool": _pool("avg_pool"),
    "GlobalLpPool": _global_lp,
    "GlobalMaxPool": _global("global_max_pool"),
    "GlobalAveragePool": _global("global_avg_pool"),
}
