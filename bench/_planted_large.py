"""Faults that need something large, in PyTorch and ONNX Runtime: loops over blocks of 32 and 64
that end wrongly, more of what comes in lists than is unrolled (`bench.planted --large`).
"""

from __future__ import annotations

import textwrap

from bench._planted_faults import Fault
from bench._planted_made import on_onnx, on_torch

_AROUND = "relu,tanh,add,multiply"
# `long` is whether the axis that a function goes along has more elements than that.
_AXIS = """
x = args[0]
dim = options.get("dim", args[1] if len(args) > 1 else None)
dim = dim[0] if isinstance(dim, (tuple, list)) and len(dim) == 1 else dim
long = isinstance(dim, int) and torch.is_tensor(x) and x.ndim and x.shape[dim] > {most}
"""


def _along(op: str, where: str, most: int, body: str) -> Fault:
    return on_torch(op, _AROUND, where, _AXIS.format(most=most) + textwrap.dedent(body))


_ROLLED = """
y = right(*args, **options)
if not long: return y
return (y[0].roll(1, dim), y[1])
"""

LARGE = {
    "softmax of 65": _along(
        "softmax",
        "(torch,'softmax'),(F,'softmax')",
        64,
        """
y = right(*args, **options)
return y * (1 + 1e-4) if long else y
""",
    ),
    "a running sum of blocks of 64": _along(
        "cumsum",
        "(torch,'cumsum')",
        64,
        """
if not long: return right(*args, **options)
return torch.cat([right(p, dim) for p in x.split(64, dim)], dim)
""",
    ),
    "a running sum of blocks of 32": _along(
        "cumsum",
        "(torch,'cumsum')",
        32,
        """
if not long: return right(*args, **options)
return torch.cat([right(p, dim) for p in x.split(32, dim)], dim)
""",
    ),
    "a product without its last block of 64": on_torch(
        "matmul",
        _AROUND,
        "(torch,'matmul'),(torch,'mm'),(torch,'bmm'),(torch,'addmm')",
        """
a, b = args[:2]
k = a.shape[-1] if a.ndim else 0
if k <= 64 or b.ndim < 2: return right(*args, **options)
n = k // 64 * 64 if k % 64 else k
return right(a[..., :n], b[..., :n, :], *args[2:], **options)
""",
    ),
    "channels beyond 32": on_torch(
        "conv",
        _AROUND,
        "(F,'conv1d'),(F,'conv2d'),(F,'conv3d')",
        """
y = right(*args, **options)
x, w = args[:2]
if len(w) <= 32 or x.ndim != w.ndim: return y
return torch.cat((y[:, :32], 0 * y[:, 32:]), 1)
""",
    ),
    "a window of 5 and more": on_torch(
        "conv",
        _AROUND,
        "(F,'conv1d'),(F,'conv2d'),(F,'conv3d')",
        """
y = right(*args, **options)
w = args[1]
return y * (1 + 1e-3) if w.ndim > 2 and w.shape[-1] > 5 else y
""",
    ),
    "a stride of 4": on_torch(
        "max_pool",
        _AROUND,
        "(F,'max_pool1d'),(F,'max_pool2d'),(F,'max_pool3d')",
        """
y = right(*args, **options)
s = options.get('stride', args[2] if len(args) > 2 else None)
s = s[-1] if isinstance(s, (tuple, list)) else s
return y * (1 + 1e-3) if s and s > 3 else y
""",
    ),
    "more than eight at once": on_torch(
        "concat",
        _AROUND,
        "(torch,'cat'),(torch,'concat'),(torch,'concatenate')",
        """
parts = list(args[0])
if len(parts) > 8: parts[8] = 0 * parts[8]
return right(parts, *args[1:], **options)
""",
    ),
    "a sort of more than 16": _along(
        "sort",
        "(torch,'sort')",
        16,
        _ROLLED,
    ),
    "a sort of more than 64": _along(
        "sort",
        "(torch,'sort')",
        64,
        _ROLLED,
    ),
    "a table of more than 64 rows": on_torch(
        "embedding",
        _AROUND,
        "(F,'embedding')",
        """
ids, table = args[:2]
return right(ids.clamp(max=63), *args[1:], **options)
""",
    ),
    "a maximum of more than 512": on_torch(
        "reduce_max",
        _AROUND,
        "(torch,'amax')",
        """
x = args[0]
y = right(*args, **options)
return y * (1 + 1e-3) if x.numel() > 512 and y.numel() == 1 else y
""",
    ),
    "a row of more than 64": on_torch(
        "layer_norm",
        _AROUND,
        "(F,'layer_norm')",
        """
y = right(*args, **options)
return y * (1 + 1e-3) if args[0].ndim and args[0].shape[-1] > 64 else y
""",
    ),
    "more than 32 units": on_torch(
        "lstm",
        _AROUND,
        "(torch,'lstm'),(torch._VF,'lstm')",
        """
y = right(*args, **options)
return (y[0] * (1 + 1e-3), *y[1:]) if y[0].shape[-1] > 32 else y
""",
    ),
    "depth of more than 32": on_torch(
        "one_hot",
        _AROUND,
        "(F,'one_hot')",
        """
y = right(*args, **options)
return torch.cat((y[..., :32], 0 * y[..., 32:]), -1) if y.shape[-1] > 32 else y
""",
    ),
    "rows of more than 64": on_onnx(
        "softmax",
        _AROUND,
        "Softmax",
        """
if not shape or max(shape) <= 64: return None
return add("Mul", y, number(1.001, kind))
""",
    ),
    "a total of more than 64": on_onnx(
        "reduce_sum",
        _AROUND,
        "ReduceSum",
        """
there = known(x)[1]
if not there or max(there) <= 64: return None
return add("Mul", y, number(1.001, kind)) if kind in (1, 10, 11) else None
""",
    ),
    "a product of more than 64": on_onnx(
        "matmul",
        _AROUND,
        "MatMul",
        """
there = known(x)[1]
if not there or there[-1] <= 64: return None
return add("Mul", y, number(1.001, kind)) if kind in (1, 10, 11) else None
""",
    ),
    "columns of more than 64": on_onnx(
        "top_k",
        _AROUND,
        "TopK",
        """
there = known(x)[1]
if not there or max(there) <= 64 or kind not in (1, 10, 11): return None
return add("Mul", y, number(1.001, kind))
""",
    ),
}
