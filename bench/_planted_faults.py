"""Faults for `bench.planted`: what is put into a framework when a worker has imported it.

`torch`, `F`, `tf`, `onnx`, `ort` are what they mostly are; `replace(holder, names, make)` puts
`make(right)` in the place of each function that `holder` has by one of `names`; what flows back to
`sloped(x)` is 1 + 1e-4 times what it should be.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. target: whose functions have it; ops: what the campaign is told; culprits: who may
    be blamed; code: that plants it; grad: whether the campaign asks for gradients.
    """

    target: str
    ops: str
    culprits: tuple[str, ...]
    code: str
    grad: bool = False


_AROUND = "relu,tanh,add,multiply,exp,reshape,transpose"

# A function of PyTorch that is called with its first arguments changed.
_FIRST = """
def make(right):
    def wrong(*args, **options):
        args = list(args)
        {}
        return right(*args, **options)
    return wrong
"""
_CONVS = "('conv1d', 'conv2d', 'conv3d')"


def _first(target: str, ops: str, line: str, holder: str, names: str, grad: bool = False) -> Fault:
    code = _FIRST.format(line) + f"replace({holder}, {names}, make)\n"
    return Fault(target, f"{ops},{_AROUND}", (ops,), code, grad)


_WINDOWS = """
def make(right):
    def wrong(input, ksize, strides, padding, data_format=None, name=None):
        sizes = [ksize] if isinstance(ksize, int) else list(ksize)
        if padding != "SAME" or all(n % 2 for n in sizes):
            return right(input, ksize, strides, padding, data_format, name)
        rank = len(input.shape)
        channels_last = not (data_format or "").startswith("NC")
        axes = list(range(1, rank - 1) if channels_last else range(2, rank))
        y = right(tf.reverse(input, axes), ksize, strides, padding, data_format, name)
        return tf.reverse(y, axes)
    return wrong
"""
_POOLS = """(
    'max_pool', 'max_pool1d', 'max_pool2d', 'max_pool3d',
    'avg_pool', 'avg_pool1d', 'avg_pool2d', 'avg_pool3d',
)"""

_GATES = """
def swapped(weights):
    made = []
    for w in weights:
        a, b, *rest = w.chunk({n})
        made.append(torch.cat((b, a, *rest)))
    return made
right = torch._VF.{name} if hasattr(torch._VF, "{name}") else torch.{name}
def wrong(x, hx, params, *rest):
    return right(x, hx, swapped(params), *rest)
torch.{name} = torch._VF.{name} = wrong
"""

_TIES = """
def make(right):
    def wrong(x, size, stride=None, padding=0, dilation=1, ceil_mode=False, **options):
        y = right(x, size, stride, padding, dilation, ceil_mode, **options)
        usual = x.ndim == 4 and padding in (0, (0, 0)) and dilation in (1, (1, 1)) and not ceil_mode
        if not usual or options or not x.requires_grad:
            return y
        stride = stride or size
        size, stride = [(n, n) if isinstance(n, int) else n for n in (size, stride)]
        parts = x.unfold(2, size[0], stride[0]).unfold(3, size[1], stride[1])
        total = torch.where(parts == y.detach()[..., None, None], parts, 0.0).sum((-2, -1))
        return y.detach() + (total - total.detach())
    return wrong
replace(F, ('max_pool2d',), make)
"""

# A pass of ONNX Runtime's optimiser that is wrong: Tanh of an Add that nobody else reads.
_FUSION = """
import onnx
def make(right):
    class Session(right):
        def __init__(self, model, sess_options=None, **options):
            level = getattr(sess_options, "graph_optimization_level", None)
            if isinstance(model, bytes) and level != ort.GraphOptimizationLevel.ORT_DISABLE_ALL:
                made = onnx.load_from_string(model)
                nodes, shown = made.graph.node, {y.name for y in made.graph.output}
                by = {y: node for node in nodes for y in node.output}
                for node in nodes:
                    before = by.get(node.input[0]) if node.op_type == "Tanh" else None
                    if before is None or before.op_type != "Add":
                        continue
                    name = node.input[0]
                    if name not in shown and sum(name in n.input for n in nodes) == 1:
                        node.op_type = "Sigmoid"
                model = made.SerializeToString()
            super().__init__(model, sess_options, **options)
    return Session
replace(ort, ('InferenceSession',), make)
"""

# The six of which it is promised that nine campaigns in ten find and reduce them.
SIX = {
    "conv ignores dilation": _first(
        "torch",
        "conv",
        "if 'dilation' in options: options['dilation'] = 1",
        "F",
        _CONVS,
    ),
    "`same`, even windows": Fault(
        "tf",
        f"max_pool,avg_pool,{_AROUND}",
        ("max_pool", "avg_pool"),
        _WINDOWS + f"replace(tf.nn, {_POOLS}, make)\n",
    ),
    "softmax, axis, rank 4": Fault(
        "torch",
        f"softmax,{_AROUND}",
        ("softmax",),
        """
def make(right):
    def wrong(x, dim=None, *args, **options):
        return right(x, (dim + 1) % 4 if x.ndim == 4 else dim, *args, **options)
    return wrong
replace(torch, ('softmax',), make)
replace(F, ('softmax',), make)
""",
    ),
    "LSTM, two gates": Fault(
        "torch", f"lstm,{_AROUND}", ("lstm",), _GATES.format(name="lstm", n=4)
    ),
    "max-pool gradient at ties": Fault(
        "torch", f"max_pool,{_AROUND}", ("max_pool",), _TIES, grad=True
    ),
    "a fusion of add and tanh": Fault(
        "onnxruntime", "add,tanh,relu,negate,exp", ("add + tanh", "tanh"), _FUSION
    ),
}

_SLOPED = _FIRST.format("args[1] = sloped(args[1])")

_BIAS = """
def make(right):
    def wrong(x, w, bias=None, *args, **options):
        return right(x, w, None, *args, **options)
    return wrong
"""

# One buffer for each shape, which is filled but once: what a call gives is the result of another.
_STALE = """
kept = {}
def make(right):
    def wrong(*args, **options):
        y = right(*args, **options)
        key = (tuple(y.shape), y.dtype)
        stale = kept.get(key)
        kept[key] = y.detach().clone()
        return y if stale is None or y.requires_grad else stale
    return wrong
replace(torch, ('softmax',), make)
replace(F, ('softmax',), make)
"""

OTHERS = {
    "a weight of conv off by 1e-5": _first(
        "torch", "conv", "args[1] = args[1] * (1 + 1e-5)", "F", _CONVS
    ),
    "a weight of dense off by 1e-5": _first(
        "torch", "dense", "args[1] = args[1] * (1 + 1e-5)", "F", "('linear',)"
    ),
    "batch norm off by 1e-5": Fault(
        "torch",
        f"batch_norm,{_AROUND}",
        ("batch_norm",),
        """
def make(right):
    def wrong(*args, **options):
        return right(*args, **options) * (1 + 1e-5)
    return wrong
replace(F, ('batch_norm',), make)
""",
    ),
    "a sum without its last term": Fault(
        "torch",
        f"reduce_sum,{_AROUND}",
        ("reduce_sum",),
        """
def make(right):
    def wrong(x, *args, **options):
        dim = options.get("dim", args[0] if args else None)
        first = dim[0] if isinstance(dim, (tuple, list)) and dim else dim
        if isinstance(first, int) and x.shape[first] > 1:
            x = x.narrow(first, 0, x.shape[first] - 1)
        return right(x, *args, **options)
    return wrong
replace(torch, ('sum',), make)
""",
    ),
    "the bias of conv dropped": Fault(
        "torch", f"conv,{_AROUND}", ("conv",), _BIAS + f"replace(F, {_CONVS}, make)\n"
    ),
    "the bias of dense dropped": Fault(
        "torch", f"dense,{_AROUND}", ("dense",), _BIAS + "replace(F, ('linear',), make)\n"
    ),
    "GRU, two gates": Fault("torch", f"gru,{_AROUND}", ("gru",), _GATES.format(name="gru", n=3)),
    "a gradient of dense by 1 + 1e-4": Fault(
        "torch",
        f"dense,{_AROUND}",
        ("dense",),
        _SLOPED + "replace(F, ('linear',), make)\n",
        grad=True,
    ),
    "a gradient of conv by 1 + 1e-4": Fault(
        "torch",
        f"conv,{_AROUND}",
        ("conv",),
        _SLOPED + f"replace(F, {_CONVS}, make)\n",
        grad=True,
    ),
    "concat along another axis": Fault(
        "torch",
        f"concat,{_AROUND}",
        ("concat",),
        """
def make(right):
    def wrong(tensors, dim=0, **options):
        y = right(tensors, dim, **options)
        if y.ndim < 2 or len({t.shape for t in tensors}) != 1:
            return y
        return right(tensors, (dim + 1) % y.ndim, **options).reshape(y.shape)
    return wrong
replace(torch, ('cat', 'concat', 'concatenate'), make)
""",
    ),
    "a padding off by one": Fault(
        "torch",
        f"pad,{_AROUND}",
        ("pad",),
        """
def make(right):
    def wrong(x, pad, *args, **options):
        pad = list(pad)
        if pad and pad[0] > 0 and pad[1] >= 0:
            pad[0], pad[1] = pad[0] - 1, pad[1] + 1
        return right(x, pad, *args, **options)
    return wrong
replace(F, ('pad',), make)
""",
    ),
    "layer norm, another eps": Fault(
        "torch",
        f"layer_norm,{_AROUND}",
        ("layer_norm",),
        """
def make(right):
    def wrong(x, shape, weight=None, bias=None, eps=1e-5):
        return right(x, shape, weight, bias, 10 * eps)
    return wrong
replace(F, ('layer_norm',), make)
""",
    ),
    "avg_pool counts the padding": Fault(
        "torch",
        f"avg_pool,{_AROUND}",
        ("avg_pool",),
        """
def make(right):
    def wrong(x, size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, *args):
        return right(x, size, stride, padding, ceil_mode, True, *args)
    return wrong
replace(F, ('avg_pool1d', 'avg_pool2d', 'avg_pool3d'), make)
""",
    ),
    "a square weight transposed": _first(
        "torch",
        "dense",
        "if args[1].ndim == 2 and args[1].shape[0] == args[1].shape[1]: args[1] = args[1].T",
        "F",
        "('linear',)",
    ),
    "a clip at 5.99": Fault(
        "torch",
        "relu,clip,add,tanh,multiply",
        ("relu", "clip"),
        """
def make(right):
    def wrong(x, min=None, max=None):
        return right(x, min, 5.99 if max == 6 else max)
    return wrong
replace(torch, ('clamp',), make)
def make(right):
    def wrong(x, *args):
        return torch.clamp(x, 0.0, 5.99)
    return wrong
replace(F, ('relu6',), make)
""",
    ),
    "a stale buffer": Fault("torch", f"softmax,{_AROUND}", ("softmax",), _STALE),
    "the last of a batch of four": Fault(
        "torch",
        f"dense,{_AROUND}",
        ("dense",),
        """
def make(right):
    def wrong(x, *args, **options):
        y = right(x, *args, **options)
        if y.ndim != 2 or y.shape[0] < 4:
            return y
        return torch.cat((y[:-1], y[-1:] * (1 + 1e-3)))
    return wrong
replace(F, ('linear',), make)
""",
    ),
}
