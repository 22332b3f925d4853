"""What a framework documents to be wider than the definition of an operator requires.

A requirement that is broken there makes another program, not an invalid one. Every entry is a
statement of the framework's own documentation, in the words behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from irlang.lower.modes import ROWS
from irlang.lower.target import Description, describe

_BROADCASTS = "sizes broadcast"
_TYPES = "dtype may be that of whole numbers"
_PLACES = "is given places to cut at; behind the last there may be nothing"
_FILLED = "jnp.fill_diagonal: flattened; what is too much is cut off, what is too little repeated"
_STATISTICS = ("scale.rank", "bias.rank", "mean.rank", "var.rank", "scale", "bias", "mean", "var")
_NUMBERS = ("a.rank", "b.rank")
_FACTORS = ("a", "b", "a.rank", "b.rank")

_WRAPS = {"quotient": "the least integer by -1 wraps around, as other sums and products do"}

# padding is any integers there, so that an amount that is asked for in other terms may be, too
_WINDOWS = "StableHLO, reduce_window: of a window wider than what it moves over there are none"
_PADDING = "StableHLO, pad: amounts are any integers; below 0 they take away"
_MOVED = {"fits": _WINDOWS, "padding": _PADDING}


# By framework, or framework and mode.
_OF_ONE_AXIS = "torch: a tensor of no axes is taken for one of a single axis, and dim is 0 or -1"
_SCALARS: Mapping[str, str] = {"torch": _OF_ONE_AXIS, "keras:torch": _OF_ONE_AXIS}


def _counts(admitted: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Of the functions that count, with weights or without."""
    return dict.fromkeys(("bincount", "weighted_bincount"), admitted)


_AS_MANY = "mx.gluon.loss: label and pred of any shapes that have the same number of elements"
_LOSSES_OF_MXNET = (
    *("mse", "mae", "huber", "smooth_l1", "binary_cross_entropy_logits"),
    *("hinge", "squared_hinge", "poisson"),
)
_LEFTMOST = "mx.nd.random_pdf_*: parameters have the leftmost sizes of sample, or all of them"
_LAWS_OF_MXNET = {
    "normal": ("mean", "deviation"), "uniform": ("low", "high"), "exponential": ("rate",),
    "gamma": ("shape", "rate"), "poisson": ("rate",),
}  # fmt: skip

# Of quantised tensors in ONNX Runtime's own domain (com.microsoft).
_LONE = "a scale or zero point is a scalar, or a vector of one element"
_ONE = dict.fromkeys(
    (f"{name}_{part}.rank" for name in ("a", "b", "x", "y") for part in ("scale", "zero")), _LONE
)
_MATRICES = dict.fromkeys(_NUMBERS, "of N dimensions, as MatMul's: an operand may have one axis")
_QUANTISED = (
    *("add", "multiply", "sigmoid", "leaky_relu", "softmax", "where", "concat", "avg_pool"),
    *("global_avg_pool", "gemm"),
)


# By framework, or framework and mode, and operator, `*` for all: the requirements, and what is
# documented instead; under `onnx` what holds of all that read its files. A mode that compiles is
# held to what its framework documents: XLA promises less of a place out of bounds and of a divisor
# of 0 than TensorFlow, which refuses both, and whoever compiles a function loses that refusal.
_ADMITS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "torch": {
        "*": _WRAPS,
        "take_along_axis": {"ids": "torch.gather: index may be smaller than input on other axes"},
        "scatter_elements": {"updates": "Tensor.scatter_: index may be smaller than src"},
        "tile": {"repeats": "torch.tile: the shorter of shape and dims gets ones in front"},
        "roll": {"x.rank": "torch.roll: shifts along an axis that is named twice add up"},
        "cross": {"b": _BROADCASTS, "b.rank": _BROADCASTS},
        "ctc": dict.fromkeys(
            ("input_lengths.rank", "target_lengths.rank"),
            "nn.CTCLoss: lengths are a tensor of size (N) or ()",
        ),
        "cov": {"x.rank": "torch.cov: a vector is one row"},
        "corrcoef": {"x.rank": "torch.corrcoef: a vector is one row"},
        "kron": {"ranks": "torch.kron: the smaller rank gets axes in front"},
        "inner": dict.fromkeys(_NUMBERS, "torch.inner: with a number it is multiplied"),
        "searchsorted": {"x.rank": "torch.searchsorted: a sequence of one axis serves all values"},
        "cdist": dict.fromkeys(
            ("b", "b.rank"), "torch.cdist: axes of a batch need not be the same"
        ),
        "unique": {"x.rank": "torch.unique: of a tensor of any rank, flattened"},
        "unravel_index": {"ids.rank": "torch.unravel_index: every result has the shape of indices"},
        "squeeze": {"ones": "torch.squeeze: an axis that is not of size 1 stays"},
        "adaptive_avg_pool": {"size": "output_size may be 0, as in other operators with no batch"},
        "adaptive_max_pool": {"size": "output_size may be 0, as in other operators with no batch"},
        "margin_ranking": {"b": _BROADCASTS, "target": _BROADCASTS},
        "dense": {
            "w.rank": "F.linear: weight may have one axis",
            "b.rank": "F.linear: bias may have none",
        },
        "alpha_dropout": {"rate": "F.alpha_dropout: p may be 1"},
        "matmul": dict.fromkeys(_FACTORS, "torch.matmul: an operand may have one axis"),
        "meshgrid": {"xs.rank": "torch.meshgrid: scalars count as one element"},
        "prelu": {"slope": "F.prelu: one slope for an input of any rank"},
        "cosine_similarity": dict.fromkeys(
            ("target", "target.rank"), "F.cosine_similarity: what broadcasts to a common shape"
        ),
        "gaussian_nll": {
            "target": "nn.GaussianNLLLoss: one dimension of the target may be 1, to broadcast",
            **dict.fromkeys(
                ("var", "var.rank"),
                "nn.GaussianNLLLoss: a dimension of var may be 1, or the last one left out",
            ),
        },
        "linspace": {"type": f"torch.linspace: {_TYPES}"},
        **_counts({"in_range": "torch.bincount: size is the least number of places"}),
        "histogram": {"range": "torch.histc: where min and max are 0, the data's own are taken"},
        "polygamma": {"order": "torch.polygamma: n is any nonnegative integer"},
        "multilabel_soft_margin": {"weight": _BROADCASTS, "weight.rank": _BROADCASTS},
        "pairwise_distance": {"order": "nn.PairwiseDistance: p is real, and may be negative"},
        "matrix_power": {"power": "torch.linalg.matrix_power: below 0 the inverse is raised"},
        "solve": dict.fromkeys(_FACTORS, "torch.linalg.solve: B is broadcast to the batch of A"),
        "tensordot": {"b": "torch.tensordot: sizes of 1 broadcast where both are summed"},
        "triangular_solve": dict.fromkeys(_FACTORS, "torch.linalg: batches broadcast"),
        "depth_to_space": {"x.rank": "F.pixel_shuffle: any number of axes of batches"},
        "space_to_depth": {"x.rank": "F.pixel_unshuffle: any number of axes of batches"},
        "normalize": {"order": "torch.linalg.vector_norm: ord is any real number"},
        "triplet_margin": {"order": "nn.PairwiseDistance: p is real, and may be negative"},
        "logit": {"eps": "torch.logit: below eps it counts as eps, above 1 - eps as that"},
    },
    "tf": {
        "*": _WRAPS,
        "unravel_index": {"ids.rank": "tf.unravel_index: indices are a 0-D or 1-D Tensor"},
        "ragged_to_dense": {"columns": "tf.raw_ops.RaggedTensorToTensor: -1 is the longest row's"},
        "sparse_reduce": {"order": "tf.raw_ops.SparseReduceSum: possibly not in canonical order"},
        "compress": {"keep.rank": "tf.boolean_mask: a mask of as many axes as it has"},
        "embedding": {"table.rank": "tf.nn.embedding_lookup: params of any rank from 1"},
        "take_along_axis": {"ids.rank": "tf.gather: indices of any rank beyond batch_dims"},
        "mse": {"target": _BROADCASTS, "target.rank": _BROADCASTS},
        "polygamma": {"order": "tf.math.polygamma: a is real, and the result may be NaN"},
        "split": {"sizes": "tf.raw_ops.SplitV: one size may be -1, for what is left"},
        "isclose": {"tolerance": "tf.experimental.numpy.isclose as numpy.isclose: any tolerances"},
        "stft": {"fft_length": "tf.signal.rfft: an inner dimension that is longer is cropped"},
        "slice_update": {"begin": "tf.strided_slice: a beginning below 0 counts from the end"},
        "ftrl": dict.fromkeys(
            ("power", "penalties"), "tf.raw_ops.ResourceApplyFtrl: nothing is said of their signs"
        ),
        "roll": {"x.rank": "tf.roll: shifts along an axis that is named twice add up"},
        "meshgrid": {"xs.rank": "tf.meshgrid flattens what has more axes"},
        "batch_norm": dict.fromkeys(_STATISTICS, "tf.nn.batch_normalization: sizes broadcast"),
        "dense": {"w.rank": "tf.matmul: further axes in front are those of a batch"},
        **_counts(
            {
                "in_range": "tf.math.bincount: integers from maxlength on are left out",
                "ids.rank": "tf.math.bincount: where axis is None, all axes are flattened",
            }
        ),
        "tridiagonal_solve": {"b.rank": "tf.linalg.tridiagonal_solve: rhs may be one column"},
        "banded_triangular_solve": {
            "b.rank": "tf.linalg.banded_triangular_solve: rhs may be one column"
        },
        "dynamic_stitch": {"last": "tf.dynamic_stitch: as long as the largest place says"},
        "segment_reduce": {"ids.rank": "tf.math.unsorted_segment_sum: ids of any rank, from 0"},
        "image_standardization": {
            "x.rank": "tf.image.per_image_standardization: images of three axes or more"
        },
        "adjust_contrast": {"x.rank": "tf.image.adjust_contrast: images of three axes or more"},
        "total_variation": {"x.rank": "tf.image.total_variation: one image of three axes"},
        "kron": {
            "ranks": "tf.experimental.numpy.kron as numpy.kron: ones before the smaller shape"
        },
        "inner": dict.fromkeys(
            _NUMBERS, "tf.experimental.numpy.inner as numpy.inner: with a number it is multiplied"
        ),
        "psnr": dict.fromkeys(_FACTORS, "tf.image.psnr: images of shapes that broadcast"),
        "conv": {"channels": "Conv2D: the input's depth is a multiple of the filter's, in groups"},
        "global_max_pool": {"x.rank": "tf.reduce_max over no axis"},
        "global_avg_pool": {"x.rank": "tf.reduce_mean over no axis"},
    },
    "jax": {
        "matrix_power": {"power": "jnp.linalg.matrix_power: below 0 the inverse is raised"},
        "divide": {"divisor": "jax.lax.div: by 0 the result is -1"},
        "modulo": {"divisor": "jnp.remainder, jnp.fmod as NumPy's: by 0 the result is 0"},
        "*": {
            **_WRAPS,
            "in_range": "jax.numpy: an index out of bounds is clamped, or what is read NaN",
            "in_vocab": "jax.numpy: an index out of bounds is clamped, or what is read NaN",
        },
        "take_along_axis": {"ids": f"jnp.take_along_axis as NumPy's: on other axes {_BROADCASTS}"},
        "unique": {"x.rank": "jnp.unique as numpy.unique: flattened where no axis is said"},
        "set_diagonal": dict.fromkeys(("sizes", "diagonal", "diagonal.rank"), _FILLED),
        "split": {"total": f"jnp.split {_PLACES}"},
        "cov": {"x.rank": "jnp.cov as numpy.cov: a vector is one row"},
        "corrcoef": {"x.rank": "jnp.corrcoef as numpy.corrcoef: a vector is one row"},
        "linspace": {"type": f"jnp.linspace as NumPy's: {_TYPES}"},
        **_counts(
            {
                "in_range": "jnp.bincount: integers from length on are left out",
                "positive": "jnp.bincount: what is below 0 counts as 0",
            }
        ),
        "isclose": {"tolerance": "jnp.isclose as numpy.isclose: any tolerances"},
        "cross": {
            "size": "jnp.cross: vectors of two elements as well",
            **dict.fromkeys(("b", "b.rank"), "jnp.cross: all other axes are broadcast compatible"),
        },
        "kron": {"ranks": "jnp.kron as numpy.kron: arrays of any shape, ones before the smaller"},
        "inner": dict.fromkeys(
            _NUMBERS, "jnp.inner as numpy.inner: with a number it is multiplied"
        ),
        "matmul": dict.fromkeys(_FACTORS, "jnp.matmul as numpy.matmul: one axis may be all"),
        "searchsorted": {"x.rank": "jnp.searchsorted: v is an array of any shape"},
        "embedding": {"table.rank": "jnp.take as numpy.take: an array of any rank"},
        "pad": {"reach": "jnp.pad as numpy.pad: what is reflected is reflected again"},
        "conv": _MOVED,
        "depthwise_conv": _MOVED,
        "conv_transpose": {**_MOVED, "output_padding": _PADDING},
        "max_pool": {**_MOVED, "halo": _PADDING},
        "avg_pool": {**_MOVED, "halo": _PADDING},
    },
    "keras": {
        "*": _WRAPS,
        "unique": {"x.rank": "ops.unique: flattened where no axis is said"},
        "take_along_axis": {"ids": f"ops.take_along_axis as NumPy's: on other axes {_BROADCASTS}"},
        "split": {"total": f"ops.split {_PLACES}"},
        "linspace": {"type": f"ops.linspace as NumPy's: {_TYPES}"},
        "tile": {"repeats": "ops.tile as numpy.tile: the shorter of the two gets ones in front"},
        "prelu": {"slope": "sizes broadcast"},
        "group_norm": {"groups": "GroupNormalization: groups = -1 is one for every channel"},
        **_counts({"in_range": "ops.bincount: minlength is the least number of places"}),
        "isclose": {"tolerance": "ops.isclose as numpy.isclose: any tolerances"},
        "kron": {"ranks": "ops.kron as numpy.kron: ones are put before the smaller shape"},
        "inner": dict.fromkeys(
            _NUMBERS, "ops.inner as numpy.inner: with a number it is multiplied"
        ),
        "cross": {"size": "ops.cross: vectors of two elements as well"},
        "searchsorted": {"x.rank": "ops.searchsorted: values are a tensor of any shape"},
        "gaussian_blur": {"x.rank": "ops.image.gaussian_blur: of one image, too"},
        "affine_transform": {"x.rank": "ops.image.affine_transform: of one image, too"},
    },
    "keras:theano": {
        "transpose": {"permutation": "dimshuffle: an axis that is known to be of size 1 may go"},
    },
    "mxnet": {
        "*": _WRAPS,
        "ftrl": {"penalties": "mx.optimizer.Ftrl: lamda1 and wd are any numbers"},
        "unique": {"x.rank": "mx.np.unique as NumPy's: flattened where no axis is said"},
        "split": {"total": f"mx.np.split {_PLACES}"},
        "linspace": {"type": f"mx.np.linspace as NumPy's: {_TYPES}"},
        "embedding": {"in_vocab": "mx.npx.embedding: what is too large stands for the last vector"},
        "gather": {"in_range": "mx.np.take, mode wrap: an index goes round the axis"},
        "tile": {"repeats": "mx.np.tile: the shorter of A and reps gets ones in front"},
        "cosine_window": {"size": "mx.np.hanning and others: of zero or less there are no points"},
        **dict.fromkeys(_LOSSES_OF_MXNET, dict.fromkeys(("target", "target.rank"), _AS_MANY)),
        **{
            f"{law}_density": {f"{name}.rank": _LEFTMOST for name in ("x", *parameters)}
            for law, parameters in _LAWS_OF_MXNET.items()
        },
    },
    "onnxruntime": {f"qlinear_{name}": _ONE for name in _QUANTISED}
    | dict.fromkeys(("matmul_integer_to_float", "dynamic_quantize_matmul"), _ONE | _MATRICES)
    | {"packed_attention": {"mask.rank": "Attention: mask_index may be a length for each sample"}},
    "openvino": {
        "tile": {"repeats": "Tile: the shorter of data's shape and repeats gets ones in front"},
    },
    "onnx": {
        "*": _WRAPS,
        "prelu": {"slope": "tensors that broadcast in both directions are accepted"},
        "power": {"exponent": "Pow: whole numbers to the power of any whole number"},
        "soft_shrink": {"threshold": "Shrink: lambd and bias are any numbers"},
        "broadcast_to": {"fits": "Expand: broadcasts in both directions"},
        "matmul": dict.fromkeys(_FACTORS, "MatMul as numpy.matmul: an operand may have one axis"),
        **dict.fromkeys(
            ("qlinear_matmul", "matmul_integer"),
            dict.fromkeys(("a.rank", "b.rank"), "as numpy.matmul: an operand may have one axis"),
        ),
        "dense": {
            "w.rank": "MatMul: further axes in front are those of a batch",
            "b.rank": "Gemm: C broadcasts",
        },
        "layer_norm": dict.fromkeys(
            ("gamma", "beta", "gamma.rank", "beta.rank"),
            "LayerNormalization: Scale and B broadcast to X",
        ),
        "rms_norm": dict.fromkeys(
            ("gamma", "gamma.rank"), "RMSNormalization: Scale broadcasts to X"
        ),
        "relu": {"max_value": "Clip: where min is above max, all is max"},
        "embedding": {
            "table.rank": "Gather: data of any rank from 1",
            "in_vocab": "Gather: index values lie within [-s, s-1]",
        },
        "unique": {"x.rank": "Unique: flattened where no axis is said"},
        "compress": {"keep": "Compress: a condition may be shorter, and the rest is left out"},
        "take_along_axis": {"ids": "GatherElements: other axes may be smaller"},
        "roi_align": {"sampling_ratio": "RoiAlign: 0 is the default, by the size of the region"},
    },
}

# Of these, by framework and operator, what holds of some numbers alone.
_ONLY_OF: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("torch", "histogram"): {"low": 0, "high": 0},
}

# By framework or kind of program, and operator: attributes of which its own operator has one value,
# as documented. A call that is invalid by another value, and valid by that one, is valid there.
_FROM_END = {"negative": "from_end"}
_FIXED: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "onnx": {
        "gather": _FROM_END,  # Gather: all index values lie within [-s, s-1]
        "gather_nd": _FROM_END,  # GatherND: as of Gather
        "take_along_axis": _FROM_END,  # GatherElements: as of Gather
        "scatter_elements": _FROM_END,  # ScatterElements: as of Gather
        "scatter_nd": _FROM_END,  # ScatterND: index values may be negative, as is usual
    },
    "keras": {
        "gather": _FROM_END,  # ops.take as numpy.take
        "take_along_axis": _FROM_END,  # ops.take_along_axis as numpy.take_along_axis
    },
}

# Operators of a target's own that take no more than the definition, where another of them does:
# tf.compat.v1.nn.fused_batch_norm, and the kernels by themselves, have a scale, an offset and
# statistics of one element a channel;
# gamma and beta of ONNX Runtime's norms of sums are 1D tensors of hidden_size elements.
_STRICTER = {
    ("tf", "batch_norm"): {"fused_batch_norm", "FusedBatchNorm", "FusedBatchNormV3"},
    ("onnxruntime", "layer_norm"): {"SkipLayerNormalization"},
    ("onnxruntime", "rms_norm"): {"SkipSimplifiedLayerNormalization"},
}


def admitted(
    target: str,
    operator: str,
    code: str,
    called: Collection[str] = (),
    names: Mapping[str, Any] | None = None,
) -> str:
    """Why a call that breaks the requirement `operator.name` is valid there; empty where it is not.

    code: of the fault. called: the target's own operators that the program has, if it is known.
    names: the values of the call's attributes, likewise.
    """
    told = describe(target)
    if not _STRICTER.get((told.framework, operator), set()).isdisjoint(called):
        return ""
    only = _ONLY_OF.get((told.framework, operator), {})
    if names is not None and any(names.get(name) != value for name, value in only.items()):
        return ""
    name = code.partition(".")[2]
    keys = (f"{told.framework}:{told.mode}", told.framework, _kind(told))
    rows = (_ADMITS.get(key, {}) for key in keys)
    said = (by.get(one, {}).get(name, "") for by in rows for one in (operator, "*"))
    return next(filter(None, said), "")


def admits_scalars(target: str) -> str:
    """Why a call whose tensors have no axes may name one; empty where it may not."""
    told = describe(target)
    return _SCALARS.get(f"{told.framework}:{told.mode}") or _SCALARS.get(told.framework, "")


def fixed(target: str, operator: str) -> Mapping[str, str]:
    """The attributes of an operator of which a target's own has one value, with that value."""
    told = describe(target)
    return {**_FIXED.get(_kind(told), {}), **_FIXED.get(told.framework, {})}.get(operator, {})


def _kind(told: Description) -> str:
    return ROWS[told.framework].kind
