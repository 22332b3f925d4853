"""Still more faults for `tests.planted_kinds`: ways back that are missing, doubled or misplaced,
ends of windows and blocks, an operand in the place of another, and digits that are left out.

`python -m tests.planted_paths [PROGRAMS [FAULTS]]` measures how many programs catch each.
"""

from __future__ import annotations

import textwrap

from tests.planted_kinds import Kind, of, report
from tests.planted_more import _named as named


def _of_two(operator: str, functions: tuple[str, ...], body: str, slope: bool = False) -> Kind:
    """A fault that says `x` and `y` of the first two operands, where both are tensors."""
    code = f"""
if len(args) < 2 or not all(torch.is_tensor(v) for v in args[:2]):
    return right(*args, **options)
x, y, *rest = args
{textwrap.dedent(body).strip()}
"""
    return Kind(operator, functions, textwrap.indent(code.strip(), "    "), slope)


def _slope(operator: str, functions: tuple[str, ...], body: str) -> Kind:
    """A fault of the way back alone: `x` is the first operand, `y` the right result, and `z` what
    is differentiated in its place.
    """
    code = f"""
x = args[0]
y = right(*args, **options)
if not y.requires_grad:
    return y
{textwrap.dedent(body).strip()}
return y.detach() + z - z.detach()
"""
    return Kind(operator, functions, textwrap.indent(code.strip(), "    "), slope=True)


def _late(operator: str, functions: tuple[str, ...]) -> Kind:
    """What flows back to the first operand lies an element late along the last axis."""
    code = """
args = list(args)
if args[0].requires_grad and args[0].ndim:
    args[0] = backward(args[0], lambda g: g.roll(1, -1))
return right(*args, **options)
"""
    return Kind(operator, functions, textwrap.indent(code.strip(), "    "), slope=True)


def _mean_of_rows(operator: str, functions: tuple[str, ...], rows: str) -> Kind:
    """A bias of which the gradient is a mean of what it should be the sum of."""
    return named(
        operator,
        functions,
        f"""
        b = a.get("bias")
        if b is None or not b.requires_grad:
            return right(**a)
        n = {rows}
        a["bias"] = backward(b, lambda g: g / n)
        return right(**a)
        """,
        slope=True,
    )


_SUM, _PRODUCT = ("torch.Tensor.__add__",), ("torch.Tensor.__mul__",)
# What flows back to a factor or a term that broadcasts, divided by how often that was used.
_MEAN = """
        n = max(x.numel(), y.numel()) // max(1, y.numel())
        return right(x, backward(y, lambda g: g / n) if n > 1 and y.requires_grad else y)
        """
_COARSE = "(v.view(torch.int32) & ~0x1fff).view(torch.float32)"

PATHS = {
    # ways back
    "of two factors but one is differentiated": _of_two(
        "multiply", _PRODUCT, "return right(x, y.detach() if x.requires_grad else y)", True
    ),
    "of a sum with itself but one term counts": _of_two(
        "add", _SUM, "return right(x, y.detach() if x is y else y)", True
    ),
    "what broadcasts gets the mean": _of_two("add", _SUM, _MEAN, True),
    "what broadcasts gets the mean of products": _of_two("multiply", _PRODUCT, _MEAN, True),
    "a bias of dense gets the mean": _mean_of_rows(
        "dense", ("F.linear",), 'max(1, a["input"].numel() // max(1, a["input"].shape[-1]))'
    ),
    "a bias of conv gets the mean": _mean_of_rows("conv", of("conv"), 'a["input"].shape[0]'),
    "a dilation ignored on the way back": named(
        "conv",
        of("conv"),
        """
        y = right(**a)
        if not y.requires_grad or a.get("dilation", 1) in (1, [1], (1,)):
            return y
        a["dilation"] = 1
        z = right(**a)[tuple(slice(0, n) for n in y.shape)]
        return y.detach() + z - z.detach()
        """,
        slope=True,
    ),
    "a clip that lets all flow back": _slope("clip", ("torch.clamp",), "z = x"),
    "a relu that lets all flow back": _slope("relu", ("torch.relu", "F.relu"), "z = x"),
    "a choice that flows back to both": Kind(
        "where",
        ("torch.where",),
        """
    c, a, b = args
    y = right(c, a, b)
    return y + (b - b.detach()) if torch.is_tensor(b) and b.requires_grad else y
""",
        slope=True,
    ),
    "an exclusive sum on the way back": _slope("cumsum", ("torch.cumsum",), "z = y - x"),
    "a slope without its square": _slope("tanh", ("torch.tanh",), "z = (1 - y.detach()) * x"),
    "a quotient by the divisor once": _slope(
        "divide",
        ("torch.div",),
        """
        b = args[1]
        if not torch.is_tensor(b) or options:
            return y
        z = x / b.detach() - y.detach() * b
        """,
    ),
    "parts in another order on the way back": _slope(
        "concat",
        ("torch.cat",),
        """
        if len({v.shape for v in x}) > 1:
            return y
        z = right(list(x)[::-1], *args[1:], **options)
        """,
    ),
    "the order of what is sorted forgotten": Kind(
        "sort",
        ("torch.sort",),
        """
    v, i = right(*args, **options)
    return (v.detach() + args[0] - args[0].detach(), i) if v.requires_grad else (v, i)
""",
        slope=True,
    ),
    "what is gathered twice counts once": Kind(
        "gather",
        ("torch.index_select",),
        """
    x, dim, ids = args
    if not x.requires_grad:
        return right(*args)
    n = torch.bincount(ids % x.shape[dim], minlength=x.shape[dim]).clamp(min=1)
    shape = [-1 if k == dim % x.ndim else 1 for k in range(x.ndim)]
    return right(backward(x, lambda g: g / n.reshape(shape)), dim, ids)
""",
        slope=True,
    ),
    "the first row of a table gets nothing": named(
        "embedding",
        ("F.embedding",),
        """
        def none(g):
            g = g.clone()
            g[0] = 0
            return g
        if a["weight"].requires_grad:
            a["weight"] = backward(a["weight"], none)
        return right(**a)
        """,
        slope=True,
    ),
    "late to the input of conv": _late("conv", of("conv")),
    "late to the windows": _late("max_pool", of("max_pool")),
    "late to the padded": _late("pad", ("F.pad",)),
    "late to the product": _late("matmul", ("torch.matmul",)),
    "late to the queries": _late("attention", ("F.scaled_dot_product_attention",)),
    "a variance that is constant in layer_norm": _slope(
        "layer_norm",
        ("F.layer_norm",),
        """
        dims = tuple(range(-len(args[1]), 0))
        s = (x.detach().var(dims, correction=0, keepdim=True) + 1e-5).rsqrt()
        w = args[2] if len(args) > 2 and args[2] is not None else options.get("weight")
        z = (x - x.mean(dims, keepdim=True)) * s * (1 if w is None else w.detach())
        """,
    ),
    # ends
    "the last block of a sum": Kind(
        "reduce_sum",
        ("torch.sum",),
        """
    dims = options.get("dim", args[1] if len(args) > 1 else None)
    first = dims[0] if isinstance(dims, tuple) else dims
    if first is None or args[0].shape[first] < 4:
        return right(*args, **options)
    n = args[0].shape[first]
    return right(args[0].narrow(first, 0, n - n % 4), *args[1:], **options)
""",
    ),
    "the last window one element short": named(
        "max_pool",
        of("max_pool"),
        """
        y = right(**a)
        x = a["input"]
        if x.shape[-1] < 2 or a.get("padding", 0) not in (0, [0], (0,)):
            return y
        low = x.clone()
        low[..., -1] = x.min()
        z = right(**{**a, "input": low})
        return torch.cat((y[..., :-1], z[..., -1:]), -1)
        """,
    ),
    "a part that is copied twice": Kind(
        "concat",
        ("torch.cat",),
        """
    parts = list(args[0])
    if len(parts) > 1 and parts[-1].shape == parts[-2].shape:
        parts[-1] = parts[-2]
    return right(parts, *args[1:], **options)
""",
    ),
    # what stands in another's place
    "beta for gamma": Kind(
        "layer_norm",
        ("F.layer_norm",),
        """
    x, shape, w, b, *rest = (*args, None, None)[:4]
    w, b = options.get("weight", w), options.get("bias", b)
    if w is None or b is None:
        return right(*args, **options)
    return right(x, shape, b, w, options.get("eps", args[4] if len(args) > 4 else 1e-5))
""",
    ),
    "mean for bias": named(
        "batch_norm",
        ("F.batch_norm",),
        """
        if a.get("bias") is None:
            return right(**a)
        a["running_mean"], a["bias"] = a["bias"].detach(), a["running_mean"]
        return right(**a)
        """,
    ),
    "a row for a column": _of_two(
        "add",
        _SUM,
        """
        if y.ndim == 1 and x.ndim > 1 and x.shape[-1] == x.shape[-2] == y.shape[0] > 1:
            y = y[:, None]
        return right(x, y)
        """,
    ),
    "an initial state that is dropped": Kind(
        "gru",
        ("torch.gru",),
        "return right(args[0], torch.zeros_like(args[1]), *args[2:], **options)",
    ),
    # digits
    "halves away from zero": Kind(
        "round",
        ("torch.round",),
        "return torch.sign(args[0]) * torch.floor(args[0].abs() + 0.5)",
    ),
    "a constant of four digits": Kind(
        "gelu",
        ("F.gelu",),
        """
    if options.get("approximate") != "tanh":
        return right(*args, **options)
    x = args[0]
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.0447 * x ** 3)))
""",
    ),
    "products of ten bits": Kind(
        "matmul",
        ("torch.matmul",),
        f"""
    if any(v.dtype != torch.float32 for v in args[:2]):
        return right(*args, **options)
    return right(*[{_COARSE} for v in args[:2]])
""",
    ),
    "a softmax in half precision": Kind(
        "softmax",
        ("torch.softmax",),
        "return right(args[0].half(), *args[1:], **options).to(args[0].dtype)",
    ),
    "a scale of one more": named(
        "attention",
        ("F.scaled_dot_product_attention",),
        """
        d = a["query"].shape[-1]
        a["scale"] = (a.get("scale") or d ** -0.5) * (d / (d + 1)) ** 0.5
        return right(**a)
        """,
    ),
}


def main() -> None:
    """Prints a line for every fault."""
    report(PATHS)


if __name__ == "__main__":
    main()
