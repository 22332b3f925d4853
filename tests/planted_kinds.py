"""Faults of many kinds planted into PyTorch's functions: what is commonly got wrong of each.

`python -m tests.planted_kinds [PROGRAMS [FAULTS]]` measures how many programs of a few calls catch
each: by the verdict on the whole, or by that on one of its calls, given what the target fed it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from irlang.catalog import builtin
from irlang.diff import gradients, runner
from irlang.diff.calls import Case
from irlang.diff.programs import fed
from irlang.diff.runner import Session
from irlang.gen.build import generate
from irlang.interp.program import precision
from irlang.lower.lower import Lowered, lower
from tests.planted_forward import OTHERS, REPLACED
from tests.planted_params import _moved as moved
from tests.planted_params import _shown as shown
from tests.planted_params import caught

_TRIES = 2000
_SIGNS = {"torch.Tensor.__add__": " + ", "torch.Tensor.__mul__": " * "}  # what calls them
_COUNTER = 8  # seeds that only differ in the count of attempts (`irlang.diff.programs`)


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault. operator: that a program is to have; functions: of PyTorch that are replaced.

    code: of `wrong(right, *args, **options)`, which is called in the place of each of them. slope:
    whether the fault is on the way back alone.
    """

    operator: str
    functions: tuple[str, ...]
    code: str
    slope: bool = False


def of(name: str, ranks: Sequence[int] = (1, 2, 3)) -> tuple[str, ...]:
    return tuple(f"F.{name}{rank}d" for rank in ranks)


# A value as it is, what flows back to one argument being another.
_BACK = """
def backward(x, slope):
    return _Slope.apply(x, slope)
class _Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return ctx.slope(g), None
"""
_OFF = "lambda g: g * (1 + 1e-4)"


def scaled(operator: str, functions: tuple[str, ...], at: int) -> Kind:
    """What flows back to one operand is off by one part in ten thousand."""
    code = f"""
    args = list(args)
    if len(args) > {at} and torch.is_tensor(args[{at}]) and args[{at}].requires_grad:
        args[{at}] = backward(args[{at}], {_OFF})
    return right(*args, **options)
"""
    return Kind(operator, functions, code, slope=True)


FAULTS = {
    "an operand off by 1e-5": Kind(
        "einsum", ("torch.einsum",), "return right(args[0], args[1] * (1 + 1e-5), *args[2:])"
    ),
    "a weight off by 1e-5": Kind(
        "bilinear",
        ("F.bilinear",),
        "return right(args[0], args[1], args[2] * (1 + 1e-5), *args[3:])",
    ),
    "a weight off by 1e-5 for one channel": Kind(
        "conv",
        of("conv"),
        """
    w = args[1].clone()
    w[0] *= 1 + 1e-5
    return right(args[0], w, *args[2:], **options)
""",
    ),
    "a bias dropped for one channel": Kind(
        "conv",
        of("conv"),
        """
    if len(args) < 3 or args[2] is None:
        return right(*args, **options)
    b = args[2].clone()
    b[-1] = 0
    return right(args[0], args[1], b, *args[3:], **options)
""",
    ),
    "a bias dropped for one feature": Kind(
        "dense",
        ("F.linear",),
        """
    if len(args) < 3 or args[2] is None:
        return right(*args, **options)
    b = args[2].clone()
    b[0] = 0
    return right(args[0], args[1], b)
""",
    ),
    "windows that lie an element early": Kind(
        "conv",
        of("conv"),
        """
    x, w, *rest = args
    y = right(x, w, *rest, **options)
    return torch.cat((torch.zeros_like(y[..., :1]), y[..., :-1]), -1) if y.shape[-1] > 1 else y
""",
    ),
    "the last term of a sum": Kind(
        "reduce_sum",
        ("torch.sum",),
        """
    y = right(*args, **options)
    dims = options.get("dim", args[1] if len(args) > 1 else None)
    if dims is None:
        return y
    first = dims[0] if isinstance(dims, tuple) else dims
    x = args[0].narrow(first, 0, args[0].shape[first] - 1)
    return right(x, *args[1:], **options)
""",
    ),
    "a running sum that leaves out its own element": Kind(
        "cumsum",
        ("torch.cumsum",),
        "y = right(*args, **options)\n    return y - args[0].to(y.dtype)",
    ),
    "a wrong axis": Kind(
        "log_softmax",
        ("torch.log_softmax",),
        "return right(args[0], dim=(options['dim'] + 1) % max(1, args[0].ndim))",
    ),
    "epsilon outside of the root": Kind(
        "layer_norm",
        ("F.layer_norm",),
        """
    x, shape, w, b, *rest = (*args, None, None)[:4]
    w, b = options.get("weight", w), options.get("bias", b)
    eps = options.get("eps", args[4] if len(args) > 4 else 1e-5)
    dims = tuple(range(-len(shape), 0))
    m = x.mean(dims, keepdim=True)
    y = (x - m) / ((x - m).square().mean(dims, keepdim=True).sqrt() + eps)
    y = y if w is None else y * w
    return y if b is None else y + b
""",
    ),
    "epsilon left out": Kind(
        "batch_norm",
        ("F.batch_norm",),
        "options['eps'] = 0.0\n    return right(*args[:7], **options)",
    ),
    "a mean square that is centred": Kind(
        "rms_norm",
        ("F.rms_norm",),
        """
    x, shape, *rest = args
    dims = tuple(range(-len(shape), 0))
    return right(x - x.mean(dims, keepdim=True), shape, *rest, **options)
""",
    ),
    "the variance of a sample": Kind(
        "instance_norm",
        ("F.instance_norm",),
        """
    x = args[0]
    n = x[0, 0].numel()
    return right(*args, **options) * ((n - 1) / n) ** 0.5
""",
    ),
    "the variance of the whole": Kind(
        "reduce_variance",
        ("torch.var",),
        "options['correction'] = 1 - options.get('correction', 0)\n"
        "    return right(*args, **options)",
    ),
    "groups of channels that are interleaved": Kind(
        "group_norm",
        ("F.group_norm",),
        """
    x, n, *rest = args
    places = torch.arange(x.shape[1]).reshape(n, -1).T.reshape(-1)
    back = torch.argsort(places)
    return right(x[:, places], n, *rest, **options)[:, back]
""",
    ),
    "align_corners": Kind(
        "resize",
        ("F.interpolate",),
        """
    if options.get("mode") in ("linear", "bilinear", "trilinear", "bicubic"):
        options["align_corners"] = not options.get("align_corners")
    return right(*args, **options)
""",
    ),
    "a dilation that is left out": Kind(
        "max_pool",
        of("max_pool"),
        """
    y = right(*args, **options)
    if options.get("dilation", 1) == 1 or "dilation" not in options:
        return y
    options["dilation"] = 1
    z = right(*args, **options)
    return z[tuple(slice(0, n) for n in y.shape)]
""",
    ),
    "a mean that counts the padding": Kind(
        "avg_pool",
        of("avg_pool"),
        "options['count_include_pad'] = not options.get('count_include_pad', True)\n"
        "    return right(*args, **options)",
    ),
    "bounds that are swapped": Kind(
        "clip",
        ("torch.clamp",),
        """
    low, high = options.get("min"), options.get("max")
    if not all(isinstance(end, float) for end in (low, high)):
        return right(*args, **options)
    return right(args[0], min=-high, max=-low)
""",
    ),
    "tanh for erf": Kind(
        "gelu",
        ("F.gelu",),
        """
    options["approximate"] = "none" if options.get("approximate") == "tanh" else "tanh"
    return right(*args, **options)
""",
    ),
    "a logarithm to a base of four digits": Kind(
        "log2", ("torch.log2",), "return torch.log(*args) / 0.6931"
    ),
    "smoothing left out for one class": Kind(
        "cross_entropy",
        ("F.cross_entropy",),
        """
    s = options.get("label_smoothing", 0.0)
    y = right(*args, **options)
    if not s or options.get("weight") is not None or options.get("reduction") == "none":
        return y
    count = args[0].shape[1]
    return y + s / count * args[0].log_softmax(1)[:, 0].mean()
""",
    ),
    "a threshold of 5": Kind(
        "softplus",
        ("F.softplus",),
        """
    x = args[0]
    b = options.get("beta", 1.0)
    return torch.where(x * b > 5, x, right(*args, **options))
""",
    ),
    "a sixth of four digits": Kind(
        "hard_swish", ("F.hardswish",), "return args[0] * torch.clamp(args[0] + 3, 0, 6) * 0.1667"
    ),
    "the slope of another channel": Kind(
        "prelu",
        ("F.prelu",),
        "return right(args[0], args[1].roll(1))",
    ),
    "a bound off by 1e-4": Kind(
        "huber",
        ("F.huber_loss",),
        "options['delta'] = options.get('delta', 1.0) * (1 + 1e-4)\n"
        "    return right(*args, **options)",
    ),
    "channels of a block in another order": Kind(
        "depth_to_space",
        ("F.pixel_shuffle",),
        """
    x, n = args
    c = x.shape[-3] // n // n
    y = x.reshape(*x.shape[:-3], n * n, c, *x.shape[-2:]).transpose(-3, -4)
    return right(y.reshape(x.shape), n)
""",
    ),
    "a window of one channel more": Kind(
        "local_response_norm",
        ("F.local_response_norm",),
        "return right(args[0], args[1] + 1, *args[2:], **options)",
    ),
    "an error function of seven digits": Kind(
        "erf",
        ("torch.erf",),
        """
    x = args[0]
    t = 1 / (1 + 0.3275911 * x.abs())
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (
        -1.453152027 + t * 1.061405429))))
    return torch.sign(x) * (1 - p * torch.exp(-x * x))
""",
    ),
    "an end that counts too much": Kind(
        "trapezoid",
        ("torch.trapezoid",),
        """
    dim = options.get("dim", -1)
    return right(*args, **options) + 0.001 * args[0].select(dim, 0)
""",
    ),
    "a bag without its last": Kind(
        "embedding_bag",
        ("F.embedding_bag",),
        """
    ids, table, *rest = args
    if ids.ndim != 2 or ids.shape[1] < 2:
        return right(*args, **options)
    options = {k: v[:, :-1] if k == "per_sample_weights" and v is not None else v
               for k, v in options.items()}
    return right(ids[:, :-1], table, *rest, **options)
""",
    ),
    "a loss off by 1e-5": Kind(
        "kl_div",
        ("F.kl_div",),
        """
    y = right(*args, **options)
    return y * (1 + 1e-5)
""",
    ),
    "a result off by 2e-5": Kind(
        "normalize",
        ("F.normalize",),
        "return right(args[0] * (1 + 1e-5), *args[1:], **options) * (1 + 1e-5)",
    ),
    "one row behind": Kind(
        "embedding",
        ("F.embedding",),
        "return right(torch.clamp(args[0] - 1, min=0), *args[1:], **options)",
    ),
    # on the way back
    "to the first factor": scaled("matmul", ("torch.matmul",), 0),
    "to the second factor": scaled("matmul", ("torch.matmul",), 1),
    "to the input of conv": scaled("conv", of("conv"), 0),
    "to the kernel of conv": scaled("conv", of("conv"), 1),
    "to the bias of conv": scaled("conv", of("conv"), 2),
    "to the weight of dense": scaled("dense", ("F.linear",), 1),
    "to the softmax": scaled("softmax", ("torch.softmax",), 0),
    "to the layer norm": scaled("layer_norm", ("F.layer_norm",), 0),
    "to the pool": scaled("avg_pool", of("avg_pool"), 0),
    "to the einsum": scaled("einsum", ("torch.einsum",), 1),
    "to the entropy": scaled("cross_entropy", ("F.cross_entropy",), 0),
    "to the similarity": scaled("cosine_similarity", ("F.cosine_similarity",), 0),
    "a softmax without its sum": Kind(
        "softmax",
        ("torch.softmax",),
        """
    x = args[0]
    y = right(x.detach(), *args[1:], **options)
    d = y * (1 - y)
    return y + d * (x - x.detach())
""",
        slope=True,
    ),
    "a norm whose mean is constant": Kind(
        "layer_norm",
        ("F.layer_norm",),
        """
    x, shape = args[:2]
    dims = tuple(range(-len(shape), 0))
    if not x.requires_grad:
        return right(*args, **options)
    m = x.mean(dims, keepdim=True)
    return right(x + (m - m.detach()), *args[1:], **options)\\
        + 0 * x + (x - x.detach()).mean(dims, keepdim=True)
""",
        slope=True,
    ),
}

_CODE = (
    """
if not hasattr(torch, "_planted"):
    torch._planted = True
    def _wrong(right):
        def call(*args, **options):
            return wrong(right, *args, **options)
        return call
"""
    + REPLACED
)


def planted(kind: Kind) -> Callable[..., Lowered]:
    """`lower`, with a fault in what it makes for PyTorch."""
    body = kind.code.strip("\n")
    body = body if body.startswith(" ") else f"    {body}"
    wrong = f"def wrong(right, *args, **options):\n{body}\n"
    code = _BACK + wrong + _CODE.replace("{functions}", str(list(kind.functions)))

    def made(*args: Any, **options: Any) -> Lowered:
        lowered = lower(*args, **options)
        if not isinstance(lowered.code, str) or not lowered.code:
            return lowered
        head, mark, tail = lowered.code.partition("\n\n\nINPUTS")
        head = head if "functional as F" in head else f"{head}\nimport torch.nn.functional as F"
        return replace(lowered, code=f"{head}\n{code}{mark}{tail}")

    return made


@contextmanager
def lowered_by(made: Callable[..., Lowered]) -> Iterator[None]:
    """Programs and gradients are lowered by another function meanwhile."""
    holders = [vars(runner), vars(gradients)]
    try:
        for holder in holders:
            holder["lower"] = made
        yield
    finally:
        for holder in holders:
            holder["lower"] = lower


def programs(kind: Kind, session: Session) -> Iterator[Case]:
    """Programs in f32 that call what a fault is in, as the generator draws them."""
    catalog = builtin()
    for number in range(_TRIES):
        seed = number * _COUNTER
        graph = generate(catalog, seed, ops=[kind.operator, *OTHERS], size=(3, 8)).graph
        single = all(i.dtype == "f32" for i in graph.values.values() if i.kind == "real")
        if not single or all(node.op.name != kind.operator for node in graph.nodes):
            continue
        case = fed(graph, catalog, seed, kind.slope, False, session.can_run)
        if case is None or precision(case.graph) != "f32":
            continue
        text = str(lower(case.graph, "torch", case.catalog, case.params).code)
        if any(_SIGNS.get(function, f"{function}(") in text for function in kind.functions):
            yield case


def measure(kind: Kind, most: int) -> list[tuple[Case, str]]:
    """How each of some programs in which a fault moves a number catches it."""
    found: list[tuple[Case, str]] = []
    with Session(["torch"]) as sound, Session(["torch"]) as faulty:
        for case in programs(kind, sound):
            before = shown(sound, case, "torch", kind.slope)
            with lowered_by(planted(kind)):
                after = shown(faulty, case, "torch", kind.slope)
                if moved(before, after):
                    found.append((case, caught(faulty, case, "torch", kind.slope)))
            if len(found) == most:
                break
    return found


def report(faults: Mapping[str, Kind]) -> None:
    """Prints a line for every fault, or for those that the command line names."""
    most = int(sys.argv[1]) if sys.argv[1:] else 5
    chosen = sys.argv[2].split(",") if sys.argv[2:] else faults
    for name in chosen:
        kind = faults[name]
        found = [how for _, how in measure(kind, most)]
        whole, call = found.count("whole"), found.count("call")
        sys.stdout.write(
            f"{name:48} {kind.operator:20} {whole + call:3} of {len(found):3}  whole {whole}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    report(FAULTS)
