"""More faults for `tests.planted_kinds`: of weights, epsilons, windows, axes, places and losses.

`python -m tests.planted_more [PROGRAMS [FAULTS]]` measures how many programs catch each.
"""

from __future__ import annotations

import textwrap

from tests.planted_kinds import Kind, of, report, scaled

# The arguments of functions of PyTorch, in their order.
_NAMES = {
    "F.scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal",
    "F.linear": "input weight bias",
    "F.embedding": "input weight",
    "F.batch_norm": "input running_mean running_var weight bias training momentum eps",
    "F.group_norm": "input num_groups weight bias eps",
    "F.instance_norm": "input running_mean running_var weight bias use_input_stats momentum eps",
    "F.rms_norm": "input normalized_shape weight eps",
    "F.prelu": "input weight",
    "F.embedding_bag": "input weight offsets",
    "F.pad": "input pad mode value",
    "F.interpolate": "input size scale_factor mode align_corners",
    "F.grid_sample": "input grid mode padding_mode align_corners",
    "F.mse_loss": "input target",
    "F.l1_loss": "input target",
    "F.nll_loss": "input target weight",
    "F.cross_entropy": "input target weight",
    "F.kl_div": "input target",
    "F.binary_cross_entropy_with_logits": "input target",
    "F.poisson_nll_loss": "input target",
    "F.huber_loss": "input target",
    **dict.fromkeys(of("conv"), "input weight bias stride padding dilation groups"),
    **dict.fromkeys(
        of("conv_transpose"), "input weight bias stride padding output_padding groups dilation"
    ),
    **dict.fromkeys(of("avg_pool"), "input kernel_size stride padding ceil_mode count_include_pad"),
    **dict.fromkeys(of("max_pool"), "input kernel_size stride padding dilation ceil_mode"),
}


def _named(operator: str, functions: tuple[str, ...], body: str, slope: bool = False) -> Kind:
    """A fault that says `a["weight"]` of an argument, and `right(**a)` of what is right."""
    names = _NAMES[functions[0]].split()
    code = f"a = dict(zip({names}, args)) | options\n{textwrap.dedent(body).strip()}\n"
    return Kind(operator, functions, textwrap.indent(code, "    "), slope)


def _positional(operator: str, functions: tuple[str, ...], body: str, slope: bool = False) -> Kind:
    """A fault that says `a[1]` of an argument, and `right(*a, **options)` of what is right."""
    code = f"a = list(args)\n{textwrap.dedent(body).strip()}\n"
    return Kind(operator, functions, textwrap.indent(code, "    "), slope)


def _heavier(operator: str, function: tuple[str, ...], name: str = "weight") -> Kind:
    """The largest of some weights is off by one part in a hundred thousand."""
    return _named(
        operator,
        function,
        f"""
        w = a.get("{name}")
        if w is not None and w.numel() and w.is_floating_point():
            off = torch.zeros_like(w).reshape(-1)
            off[w.detach().abs().argmax()] = 1e-5
            a["{name}"] = w * (1 + off.reshape(w.shape))
        return right(**a)
        """,
    )


def _recurrent(operator: str, function: str, at: int) -> Kind:
    """A matrix of a recurrent layer is off by one part in a hundred thousand."""
    return _positional(
        operator,
        (function,),
        f"""
        at = next(n for n, v in enumerate(a) if isinstance(v, (list, tuple)) and len(v) > 1)
        w = list(a[at])
        w[{at}] = w[{at}] * (1 + 1e-5)
        a[at] = w
        return right(*a, **options)
        """,
    )


MORE = {
    # weights
    "a value of attention": _heavier("attention", ("F.scaled_dot_product_attention",), "value"),
    "a key of attention": _heavier("attention", ("F.scaled_dot_product_attention",), "key"),
    "a weight of conv_transpose": _heavier("conv_transpose", of("conv_transpose")),
    "a weight of depthwise_conv": _heavier("depthwise_conv", of("conv")),
    "a weight of embedding": _heavier("embedding", ("F.embedding",)),
    "a scale of batch_norm": _heavier("batch_norm", ("F.batch_norm",)),
    "a scale of group_norm": _heavier("group_norm", ("F.group_norm",)),
    "a scale of instance_norm": _heavier("instance_norm", ("F.instance_norm",)),
    "a scale of rms_norm": _heavier("rms_norm", ("F.rms_norm",)),
    "a slope of prelu": _heavier("prelu", ("F.prelu",)),
    "a weight of embedding_bag": _heavier("embedding_bag", ("F.embedding_bag",)),
    "a matrix of gru for x": _recurrent("gru", "torch.gru", 0),
    "a matrix of gru for h": _recurrent("gru", "torch.gru", 1),
    "a matrix of lstm for h": _recurrent("lstm", "torch.lstm", 1),
    "a matrix of simple_rnn for h": _recurrent("simple_rnn", "torch.rnn_tanh", 1),
    # epsilons
    "eps outside of the root of batch_norm": _named(
        "batch_norm",
        ("F.batch_norm",),
        """
        v, e = a["running_var"], a.get("eps", 1e-5)
        a["running_var"] = (v.sqrt() + e).square()
        a["eps"] = 0.0
        return right(**a)
        """,
    ),
    "eps outside of the root of group_norm": _named(
        "group_norm",
        ("F.group_norm",),
        """
        x, n, e = a["input"], a["num_groups"], a.get("eps", 1e-5)
        g = x.reshape(x.shape[0], n, -1)
        m = g.mean(-1, keepdim=True)
        y = (g - m) / ((g - m).square().mean(-1, keepdim=True).sqrt() + e)
        y = y.reshape(x.shape)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        y = y if a.get("weight") is None else y * a["weight"].reshape(shape)
        return y if a.get("bias") is None else y + a["bias"].reshape(shape)
        """,
    ),
    "eps twice in instance_norm": _named(
        "instance_norm",
        ("F.instance_norm",),
        """
        a["eps"] = 2 * a.get("eps", 1e-5)
        return right(**a)
        """,
    ),
    "eps left out of rms_norm": _named(
        "rms_norm",
        ("F.rms_norm",),
        """
        a["eps"] = 0.0
        return right(**a)
        """,
    ),
    # windows
    "padding at the other side": _named(
        "pad",
        ("F.pad",),
        """
        p = a["pad"]
        if a.get("mode", "constant") != "constant":
            return right(**a)
        a["pad"] = [n for i in range(0, len(p), 2) for n in (p[i + 1], p[i])]
        return right(**a)
        """,
    ),
    "a dilation ignored in one axis": _named(
        "conv",
        of("conv"),
        """
        d = a.get("dilation", 1)
        y = right(**a)
        if not isinstance(d, (tuple, list)) or max(d) == 1:
            return y
        first = next(n for n, k in enumerate(d) if k > 1)
        a["dilation"] = [1 if n == first else k for n, k in enumerate(d)]
        z = right(**a)
        return z[tuple(slice(0, n) for n in y.shape)]
        """,
    ),
    "a mean of windows over the edge that counts what is beyond": _named(
        "avg_pool",
        of("avg_pool"),
        """
        y = right(**a)
        if not a.get("ceil_mode"):
            return y
        k = a["kernel_size"]
        n = k if isinstance(k, int) else k[-1]
        y = y.clone()
        y[..., -1] *= (n - 1) / n if n > 1 else 1
        return y
        """,
    ),
    "what is left over at the other end": _named(
        "conv_transpose",
        of("conv_transpose"),
        """
        y = right(**a)
        o = a.get("output_padding", 0)
        if o == 0 or isinstance(o, (tuple, list)) and o[-1] == 0:
            return y
        return torch.cat((y[..., 1:], y[..., :1] * 0), -1)
        """,
    ),
    "the nearest of halves": _named(
        "resize",
        ("F.interpolate",),
        """
        m = a.get("mode", "nearest")
        a["mode"] = {"nearest": "nearest-exact", "nearest-exact": "nearest"}.get(m, m)
        return right(**a)
        """,
    ),
    "halves of a pixel left out": _named(
        "grid_sample",
        ("F.grid_sample",),
        """
        a["align_corners"] = not a.get("align_corners")
        return right(**a)
        """,
    ),
    # axes and places
    "another axis of the same size": Kind(
        "reduce_mean",
        ("torch.mean",),
        """
    x = args[0]
    dims = options.get("dim", args[1] if len(args) > 1 else None)
    if not isinstance(dims, int):
        return right(*args, **options)
    other = next(
        (n for n in range(x.ndim) if n != dims % x.ndim and x.shape[n] == x.shape[dims]), None
    )
    return right(x if other is None else x.transpose(dims, other), *args[1:], **options)
""",
    ),
    "places of the next largest": Kind(
        "top_k",
        ("torch.topk",),
        """
    v, i = right(*args, **options)
    return v, i.roll(1, options.get("dim", -1))
""",
    ),
    "a running maximum of all but the first": Kind(
        "cummax",
        ("torch.cummax",),
        """
    v, i = right(*args, **options)
    dim = args[1] if len(args) > 1 else options["dim"]
    n = args[0].shape[dim]
    return v, torch.clamp(i, max=max(n - 2, 0))
""",
    ),
    "a logarithm of a sum off by 1e-5": Kind(
        "reduce_logsumexp",
        ("torch.logsumexp",),
        "return right(*args, **options) * (1 + 1e-5)",
    ),
    "a norm off by 1e-5": Kind(
        "cdist", ("torch.cdist",), "return right(*args, **options) * (1 + 1e-5)"
    ),
    # losses
    "a mean over the batch alone": _named(
        "mse",
        ("F.mse_loss",),
        """
        y = right(**a)
        if a.get("reduction", "mean") != "mean":
            return y
        return y * (a["input"].numel() / max(1, a["input"].shape[0] if a["input"].ndim else 1))
        """,
    ),
    "a mean over all, whatever they weigh": _named(
        "nll",
        ("F.nll_loss",),
        """
        if a.get("reduction", "mean") != "mean" or a.get("weight") is None:
            return right(**a)
        return right(**{**a, "reduction": "none"}).mean()
        """,
    ),
    "an entropy off by 1e-5": _named(
        "binary_cross_entropy_logits",
        ("F.binary_cross_entropy_with_logits",),
        "return right(**a) * (1 + 1e-5)",
    ),
    "the constant of a loss": _named(
        "poisson",
        ("F.poisson_nll_loss",),
        """
        a["full"] = not a.get("full", False)
        return right(**a)
        """,
    ),
    # on the way back
    "to the queries": scaled("attention", ("F.scaled_dot_product_attention",), 0),
    "to the keys": scaled("attention", ("F.scaled_dot_product_attention",), 1),
    "to the values": scaled("attention", ("F.scaled_dot_product_attention",), 2),
    "to the kernel of conv_transpose": scaled("conv_transpose", of("conv_transpose"), 1),
    "to the table": scaled("embedding", ("F.embedding",), 1),
    "to the batch norm": scaled("batch_norm", ("F.batch_norm",), 0),
    "to the group norm": scaled("group_norm", ("F.group_norm",), 0),
    "to the instance norm": scaled("instance_norm", ("F.instance_norm",), 0),
    "to the resized": scaled("resize", ("F.interpolate",), 0),
    "to the windows": scaled("max_pool", of("max_pool"), 0),
    "to the sampled": scaled("grid_sample", ("F.grid_sample",), 0),
    "to the grid": scaled("grid_sample", ("F.grid_sample",), 1),
    "to the slope of prelu": scaled("prelu", ("F.prelu",), 1),
    "to the running sum": scaled("cumsum", ("torch.cumsum",), 0),
    "to the running product": scaled("cumprod", ("torch.cumprod",), 0),
    "to the logarithm of a sum": scaled("reduce_logsumexp", ("torch.logsumexp",), 0),
    "to the variance": scaled("reduce_variance", ("torch.var",), 0),
    "to the squared error": scaled("mse", ("F.mse_loss",), 0),
    "to the divergence": scaled("kl_div", ("F.kl_div",), 0),
    "to the likelihood": scaled("nll", ("F.nll_loss",), 0),
    "to the distances": scaled("cdist", ("torch.cdist",), 0),
    "to the sorted": scaled("sort", ("torch.sort",), 0),
    "to the largest": scaled("top_k", ("torch.topk",), 0),
    "to the gathered": scaled("gather_elements", ("torch.gather",), 0),
    "to the gelu": scaled("gelu", ("F.gelu",), 0),
    "to the silu": scaled("silu", ("F.silu",), 0),
    "a row that is asked for twice counts once": _named(
        "embedding",
        ("F.embedding",),
        """
        ids = a["input"].reshape(-1)
        if not a["weight"].requires_grad:
            return right(**a)
        n = torch.bincount(ids, minlength=a["weight"].shape[0]).clamp(min=1)
        a["weight"] = backward(a["weight"], lambda g: g / n.reshape(-1, *(1,) * (g.ndim - 1)))
        return right(**a)
        """,
        slope=True,
    ),
    "a variance that is constant": _named(
        "group_norm",
        ("F.group_norm",),
        """
        x = a["input"]
        if not x.requires_grad:
            return right(**a)
        y = right(**a)
        z = right(**{**a, "input": x.detach()})
        g = x.reshape(x.shape[0], a["num_groups"], -1)
        s = (g.detach().var(-1, correction=0, keepdim=True) + a.get("eps", 1e-5)).rsqrt()
        w = 1 if a.get("weight") is None else a["weight"].detach().reshape(
            (1, -1) + (1,) * (x.ndim - 2))
        d = ((g - g.mean(-1, keepdim=True)) * s).reshape(x.shape) * w
        return z + d - d.detach()
        """,
        slope=True,
    ),
}


def main() -> None:
    """Prints a line for every fault."""
    report(MORE)


if __name__ == "__main__":
    main()
