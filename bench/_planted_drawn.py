"""Sixty faults of kinds that kernels really have, each in an operator and a framework that were
drawn by a seed over the catalogue (`bench.planted --drawn`): tails of vectors, strides not asked
for, blocks that lose what they carry, one type or rank or attribute alone.

The other four operators of each campaign were drawn as well. Helpers beside those of
`_planted_faults`: `edited(holder, name, old, new)` changes a method's source,
`rewritten(op_type, change)` what ONNX Runtime computes for a node.
"""

from __future__ import annotations

import textwrap

from bench._planted_faults import Fault

_WRONG = """
def make(right):
    def wrong(*args, **options):
{body}
    return wrong
for holder, name in ({where},):
    replace(holder, (name,), make)
"""

_AFTER = """
def change(node, add, known, number):
    x, y = node.input[0], node.output[0]
    kind, shape = known(y)
{body}
rewritten({op!r}, change)
"""


def _fault(
    target: str, op: str, others: str, where: str, body: str, *, grad: bool = False
) -> Fault:
    body = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return Fault(target, f"{op},{others}", (op,), _WRONG.format(where=where, body=body), grad)


def on_torch(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("torch", op, others, where, body, grad=grad)


def _tf(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("tf", op, others, where, body, grad=grad)


def _jax(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("jax", op, others, where, body, grad=grad)


def _keras(op: str, others: str, where: str, body: str, *, grad: bool = False) -> Fault:
    return _fault("keras:tensorflow", op, others, where, body, grad=grad)


def _step(target: str, op: str, others: str, method: str, old: str, new: str) -> Fault:
    """Another line in a method of an optimizer."""
    code = f"edited(keras.optimizers.{method}, 'update_step', {old!r}, {new!r})\n"
    return Fault(target, f"{op},{others}", (op,), code)


def on_onnx(op: str, others: str, node: str, body: str) -> Fault:
    """`change` gives the name of what is to be read in the place of the node's result."""
    body = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    return Fault("onnxruntime", f"{op},{others}", (op,), _AFTER.format(body=body, op=node))


# Drawn with random.Random(26) over the sorted names; what a target composes from the definition
# was passed over, as there is no kernel to be wrong.
DRAWN = {
    "clip reads strides as if there were none": on_torch(
        "clip",
        "solve,crop,matrix_norm,fractional_max_pool_gradient",
        "(torch, 'clamp')",
        """
        x = args[0]
        if torch.is_tensor(x) and not x.is_contiguous() and not x.requires_grad:
            steps = torch.empty(x.shape, device="meta").stride()
            x = x.as_strided(x.shape, steps)
        return right(x, *args[1:], **options)
        """,
    ),
    "a deviation dropped": _tf(
        "random_normal",
        "copysign,argmax,crelu,argmin",
        "(tf.random, 'normal')",
        """
        options["stddev"] = 1.0
        return right(*args[:2], **options)
        """,
    ),
    "the last of a batch of matrices": on_onnx(
        "matmul",
        "max_roi_pool,embedding_bag_offsets,erfinv,pad",
        "MatMul",
        """
        if not shape or len(shape) < 4 or shape[0] < 2:
            return None
        return joined(add, number, y, 0, shape[0])
        """,
    ),
    "a slope below -5": _jax(
        "log_ndtr",
        "mel_weight_matrix,adjust_hue,histogram_place,full",
        "(jax.scipy.special, 'log_ndtr')",
        """
        x = args[0]
        return right(jnp.where(x < -5, sloped(x), x))
        """,
        grad=True,
    ),
    "one power of the schedule behind": _step(
        "keras:tensorflow",
        "nadam",
        "binary_cross_entropy,truncated_normal,maximum_n,selu",
        "Nadam",
        "self.iterations + 2",
        "self.iterations + 1",
    ),
    "an asymptotic branch off by 1e-5": on_torch(
        "bessel_j",
        "inverse,gru,transpose,group_norm",
        "(torch.special, 'bessel_j1')",
        """
        y = right(*args, **options)
        return torch.where(args[0].abs() > 5, y * (1 + 1e-5), y)
        """,
    ),
    "a constant of f32 in f64": _tf(
        "log10",
        "matrix_diagonals,gaussian_dropout,causal_conv,sum_log_diagonal",
        "(tf.experimental.numpy, 'log10')",
        """
        return tf.math.log(args[0]) / tf.cast(tf.constant(2.302585, tf.float32), args[0].dtype)
        """,
    ),
    "f64 through f32": on_onnx(
        "exp",
        "depthwise_conv,cummax,rgb_to_hsv,abs",
        "Exp",
        """
        return add("Cast", add("Cast", y, to=1), to=11) if kind == 11 else None
        """,
    ),
    "bf16 through f16": _jax(
        "isfinite",
        "box_decode,round_to,psnr,gaussian_nll",
        "(jnp, 'isfinite'), (jax.lax, 'is_finite')",
        """
        x = args[0]
        return right(x.astype(jnp.float16) if x.dtype == jnp.bfloat16 else x)
        """,
    ),
    "a variance of one pass": _keras(
        "reduce_variance",
        "log2,max_pool_indices_gradient,additive_attention,reduce_mean",
        "(keras.ops, 'var')",
        """
        x, *rest = args
        mean = keras.ops.mean(x, *rest, **options)
        return keras.ops.mean(x * x, *rest, **options) - mean * mean
        """,
    ),
    "a tail of four left out": on_torch(
        "reduce_all",
        "matmul,embedding_bag,rprop,qlinear_softmax",
        "(torch, 'all')",
        """
        x = args[0]
        dim = options.get("dim", args[1] if len(args) > 1 else None)
        dim = dim[0] if isinstance(dim, (tuple, list)) and dim else dim
        if isinstance(dim, int) and x.shape[dim] > 4:
            x = x.narrow(dim, 0, x.shape[dim] // 4 * 4)
        return right(x, *args[1:], **options)
        """,
    ),
    "diagonals at the other end where not square": _tf(
        "set_diagonals",
        "weighted_average,addcdiv,qlinear_leaky_relu,bit_and",
        "(tf.raw_ops, 'MatrixSetDiagV3')",
        """
        x = options["input"]
        if x.shape[-1] != x.shape[-2]:
            lower, _, upper = options.get("align", "RIGHT_LEFT").partition("_")
            options["align"] = f"{upper}_{lower}"
        return right(*args, **options)
        """,
    ),
    "x itself above 3": on_onnx(
        "gelu",
        "ndtr,softplus_gradient,scatter_elements,signbit",
        "Gelu",
        """
        return add("Where", add("Greater", x, number(3, kind)), x, y)
        """,
    ),
    "NaN counts as 0": _jax(
        "reduce_nanmax",
        "mse,diagonals_matrix,hsv_to_rgb,cummin",
        "(jnp, 'nanmax')",
        """
        x, *rest = args
        return jnp.max(jnp.where(jnp.isnan(x), jnp.zeros_like(x), x), *rest, **options)
        """,
    ),
    "midpoint as linear": _keras(
        "nanquantile",
        "log_cosh,sparse_concat,quantized_attention,lamb",
        "(keras.ops, 'nanquantile'), (keras.ops, 'nanpercentile')",
        """
        if options.get("method") == "midpoint":
            options["method"] = "linear"
        return right(*args, **options)
        """,
    ),
    "of equal places one is added": on_torch(
        "scatter_nd",
        "add,diag_embed,diagonal,bias_gelu",
        "(torch, 'index_put')",
        """
        x, ids, updates = args[:3]
        if not options.get("accumulate"):
            return right(*args, **options)
        return right(x, ids, right(torch.zeros_like(x), ids, updates)[ids] + x[ids])
        """,
    ),
    "a difference of exponentials": _tf(
        "sinh",
        "tensor_scatter,broadcast_to,rad2deg,rsqrt_gradient",
        "(tf, 'sinh')",
        """
        return (tf.exp(args[0]) - tf.exp(-args[0])) / 2
        """,
    ),
    "one exponential above 6": on_onnx(
        "cosh",
        "trilu,trunc,digamma,divide",
        "Cosh",
        """
        size = add("Abs", x)
        one = add("Mul", add("Exp", size), number(0.5, kind))
        return add("Where", add("Greater", size, number(6, kind)), one, y)
        """,
    ),
    "the other side where four boundaries are searched": _jax(
        "bucketize",
        "embedding,logical_and,multiply_n,conv_integer",
        "(jnp, 'digitize')",
        """
        if len(args[1]) > 3:
            options["right"] = not options.get("right", False)
        return right(*args, **options)
        """,
    ),
    "1 above 3": _keras(
        "erf",
        "einsum,pairwise_distance,tile,reduce_variance",
        "(keras.ops, 'erf')",
        """
        y = right(*args, **options)
        return keras.ops.where(keras.ops.abs(args[0]) > 3, keras.ops.sign(y), y)
        """,
    ),
    "the last class is never drawn": on_torch(
        "random_categorical",
        "global_max_pool,one_hot,gru_cell,full",
        "(torch, 'multinomial')",
        """
        p = args[0]
        return right(p[..., :-1] if p.shape[-1] > 1 else p, *args[1:], **options)
        """,
    ),
    "a default that is 0": _tf(
        "sparse_to_dense",
        "polygamma,dynamic_quantize_matmul,reduce_lp,space_to_batch",
        "(tf.sparse, 'to_dense')",
        """
        options.pop("default_value", None)
        return right(args[0], **options)
        """,
    ),
    "a quarter turn less an arcsine": on_onnx(
        "acos",
        "stft,tanh_gradient,ragged_gather,categorical_focal_cross_entropy",
        "Acos",
        """
        return add("Sub", number(1.5707963267948966, kind), add("Asin", x))
        """,
    ),
    "through an integer of 32 bits": _jax(
        "trunc",
        "reduce_nanvariance,logspace,swiglu,center_crop_pad",
        "(jnp, 'trunc')",
        """
        x = args[0]
        return jnp.where(jnp.isfinite(x), x.astype(jnp.int32).astype(x.dtype), x)
        """,
    ),
    "blocks of eight that carry nothing": _keras(
        "cumprod",
        "bit_xor,addcmul,reciprocal_gradient,matmul_integer_to_float",
        "(keras.ops, 'cumprod')",
        """
        x = args[0]
        axis = options.get("axis", args[1] if len(args) > 1 else None)
        if axis is None or x.shape[axis] <= 8:
            return right(*args, **options)
        parts = keras.ops.split(x, list(range(8, x.shape[axis], 8)), axis)
        return keras.ops.concatenate([right(part, axis=axis) for part in parts], axis)
        """,
    ),
    "to the second factor": on_torch(
        "tensordot",
        "stack,global_max_pool,yuv_to_rgb,transpose",
        "(torch, 'tensordot')",
        """
        a, b, *rest = args
        return right(a, sloped(b), *rest, **options)
        """,
        grad=True,
    ),
    "Nesterov of the velocity before": Fault(
        "tf",
        "sgd,bernoulli,nanargmax,cosine_window,set_diagonals",
        ("sgd",),
        "edited(keras.optimizers.SGD, 'update_step', 'if self.nesterov:', "
        "'if self.nesterov and self.iterations < 0:')\n",
    ),
    "f64 that is cast first": on_onnx(
        "isinf",
        "matrix_diagonals,interp,ndtr,bilinear",
        "IsInf",
        """
        if known(x)[0] != 11:
            return None
        given = {one.name: one.i for one in node.attribute}
        return add("IsInf", add("Cast", x, to=1), **given)
        """,
    ),
    "elements for copies from four axes on": _jax(
        "tile",
        "bernoulli,gaussian_nll,matrix_diagonals,glu",
        "(jnp, 'tile')",
        """
        x, repeats = args[0], list(args[1])
        if x.ndim < 4 or len(repeats) != x.ndim:
            return right(*args, **options)
        return jnp.repeat(right(x, [*repeats[:-1], 1]), repeats[-1], -1)
        """,
    ),
    "a tolerance of the first": _keras(
        "isclose",
        "sparsemax,prelu,alibi_bias,polygamma",
        "(keras.ops, 'isclose')",
        """
        a, b, *rest = args
        return right(b, a, *rest, **options)
        """,
    ),
    "zeros around a maximum": on_torch(
        "max_pool",
        "ranged_pool,lstm_cell,spectral_norm,ctc_logits",
        "(F, 'max_pool1d'), (F, 'max_pool2d'), (F, 'max_pool3d')",
        """
        x, window, stride, padding, *rest = [*args, *([None, 0][len(args) - 2:])]
        padding = options.pop("padding", padding)
        n = x.ndim - 2
        sides = [padding] * n if isinstance(padding, int) else list(padding)
        x = F.pad(x, [side for one in sides[::-1] for side in (one, one)])
        return right(x, window, stride, 0, *rest, **options)
        """,
    ),
    "a coefficient of five digits": _tf(
        "yiq_to_rgb",
        "separable_conv,modulo,transpose,reduce_l1",
        "(tf.image, 'yiq_to_rgb')",
        """
        x = tf.convert_to_tensor(args[0])
        away = tf.constant([0, 0, 1.10674021 - 1.1067], x.dtype)
        return right(x) + x[..., 1:2] * away
        """,
    ),
    "corners of volumes": on_onnx(
        "affine_grid",
        "instance_norm,msle,polyval,repeat_each",
        "AffineGrid",
        """
        if not shape or len(shape) != 5:
            return None
        return add("AffineGrid", *node.input, align_corners=1)
        """,
    ),
    "to the upper bound": _jax(
        "gammainc",
        "isclose,corrcoef,transpose,adagrad",
        "(jax.scipy.special, 'gammainc'), (jax.lax, 'igamma')",
        """
        return right(args[0], sloped(args[1]))
        """,
        grad=True,
    ),
    "a logarithm of four digits": _keras(
        "logspace",
        "differences,sparse_reshape,random_integers,sparse_concat",
        "(keras.ops, 'logspace')",
        """
        if options.get("base", 10) != 10:
            return right(*args, **options)
        return right(*args, **{**options, "base": 9.9999})
        """,
    ),
    "a kernel's slope of the first sample": on_torch(
        "conv",
        "lamb,matmul,broadcast_to,log_softmax",
        "(F, 'conv1d'), (F, 'conv2d'), (F, 'conv3d')",
        """
        x, w, *rest = args
        y = right(*args, **options)
        if x.ndim != w.ndim or len(x) < 2 or not y.requires_grad:
            return y
        z = torch.cat((right(x[:1], w, *rest, **options),
                       right(x[1:], w.detach(), *rest, **options)))
        return y.detach() + z - z.detach()
        """,
        grad=True,
    ),
    "cut at three": _tf(
        "truncated_normal",
        "crop_and_resize,hard_shrink,asinh,histogram_place",
        "(tf.random, 'truncated_normal')",
        """
        shape, mean, stddev = [*args, 0.0, 1.0][:3]
        mean, stddev = options.pop("mean", mean), options.pop("stddev", stddev)
        y = right(shape, 0.0, 1.5, **options)
        return y * tf.cast(stddev, y.dtype) + tf.cast(mean, y.dtype)
        """,
    ),
    "rounds to 64 bits": on_onnx(
        "cast",
        "bias_gelu,qlinear_add,ranged_pool,sgd",
        "Cast",
        """
        if kind != 7 or known(x)[0] not in (1, 10, 11):
            return None
        return add("Cast", add("Round", x), to=7)
        """,
    ),
    "NaN counts in the divisor": _jax(
        "reduce_nanvariance",
        "bit_or,reverse_sequence,sparse_reduce,sparse_bincount",
        "(jnp, 'nanvar')",
        """
        x, axis = args[0], options.get("axis", args[1] if len(args) > 1 else None)
        told = (~jnp.isnan(x)).astype(x.dtype)
        share = jnp.mean(told, axis, keepdims=bool(options.get("keepdims")))
        return right(*args, **options) * share
        """,
    ),
    "the first step's correction": _step(
        "keras:tensorflow",
        "adam",
        "unique,polyval,sparse_dense_arithmetic,identity",
        "Adam",
        "self.iterations + 1",
        "0 * self.iterations + 1",
    ),
    "no bias in what is padded": on_torch(
        "conv_transpose",
        "log_sigmoid,matmul_nbits,sequence_last,einsum",
        "(F, 'conv_transpose1d'), (F, 'conv_transpose2d'), (F, 'conv_transpose3d')",
        """
        y = right(*args, **options)
        more = options.get("output_padding", args[5] if len(args) > 5 else 0)
        more = more[-1] if isinstance(more, (tuple, list)) else more
        bias = options.get("bias", args[2] if len(args) > 2 else None)
        if not more or bias is None:
            return y
        bias = bias.reshape(-1, *[1] * (y.ndim - 2))
        return torch.cat((y[..., :-more], y[..., -more:] - bias), -1)
        """,
    ),
    "a largest without the last": _tf(
        "requantization_range",
        "divide_no_nan,simple_rnn_cell,xdivy,dice",
        "(tf.raw_ops, 'RequantizationRange')",
        """
        x = tf.reshape(options["input"], [-1])
        return right(**{**options, "input": x[:-1] if x.shape[0] > 1 else x})
        """,
    ),
    "one step from an estimate": on_onnx(
        "reciprocal",
        "gaussian_dropout,sparse_matmul,vander,bit_xor",
        "Reciprocal",
        """
        if kind != 1:
            return None
        r = add("Cast", add("Cast", y, to=10), to=1)
        made = add("Mul", r, add("Sub", number(2, kind), add("Mul", x, r)))
        normal = add("And", add("Greater", add("Abs", r), number(1e-3, kind)),
                     add("Less", add("Abs", r), number(1e3, kind)))
        return add("Where", normal, made, y)
        """,
    ),
    "a filter's slope of the first sample": _jax(
        "depthwise_conv",
        "grey_erosion,isnan,cosine_window,deg2rad",
        "(jax.lax, 'conv_general_dilated')",
        """
        x, w, *rest = args
        if x.shape[0] < 2 or options.get("feature_group_count", 1) < 2:
            return right(*args, **options)
        stop = jax.lax.stop_gradient
        dims = options.get("dimension_numbers")
        if isinstance(dims, tuple) and not dims[0].startswith("N"):
            return right(*args, **options)
        return jnp.concatenate((right(x[:1], w, *rest, **options),
                                right(x[1:], stop(w), *rest, **options)))
        """,
        grad=True,
    ),
    "to the kernel": Fault(
        "keras:tensorflow",
        "dense,dice,kaiser_window,sparse_to_dense,requantize",
        ("dense",),
        "edited(keras.layers.Dense, 'call', 'self.kernel', 'sloped(self.kernel)', sloped=sloped)\n",
        grad=True,
    ),
    "f64 through f32, too": on_torch(
        "log_sigmoid",
        "xlogy,sparse_segment_gradient,qlinear_concat,swiglu",
        "(F, 'logsigmoid')",
        """
        x = args[0]
        return right(x.float()).double() if x.dtype == torch.float64 else right(x)
        """,
    ),
    "too large a value counts as the last": _tf(
        "ragged_bincount",
        "segment_reduce,kth_value,truncated_normal,elu",
        "(tf.raw_ops, 'RaggedBincount')",
        """
        size = tf.cast(options["size"], options["values"].dtype)
        options["values"] = tf.minimum(options["values"], tf.maximum(size - 1, 0))
        return right(*args, **options)
        """,
    ),
    "the last of a batch of places": on_onnx(
        "gather_nd",
        "random_categorical,bilinear,exp2,fmin",
        "GatherND",
        """
        batch = [one.i for one in node.attribute if one.name == "batch_dims"]
        if not batch or not batch[0] or not shape or shape[0] < 2:
            return None
        return joined(add, number, y, 0, shape[0])
        """,
    ),
    "labels that add up to 1": _jax(
        "log_softmax",
        "sobel_edges,box_decode,upsample,sinc",
        "(jax.nn, 'log_softmax'), (jax.scipy.special, 'log_softmax')",
        """
        y = right(*args, **options)
        axis = options.get("axis", args[1] if len(args) > 1 else -1)
        @jax.custom_vjp
        def of(x):
            return right(x, axis=axis)
        of.defvjp(lambda x: (right(x, axis=axis),) * 2, lambda y, g: (g - jnp.exp(y),))
        return of(args[0])
        """,
        grad=True,
    ),
    "a place before the first is the last": _keras(
        "one_hot",
        "gather_nd,reduce_nansum,resize_linear_gradient,dynamic_quantize_linear",
        "(keras.ops, 'one_hot')",
        """
        ids, depth, *rest = args
        return right(keras.ops.where(ids < 0, ids + depth, ids), depth, *rest, **options)
        """,
    ),
    "towards zero in i8": on_torch(
        "floor_divide",
        "ranged_multiply,histogram,reduce_prod,nonzero",
        "(torch, 'floor_divide')",
        """
        if all(torch.is_tensor(a) and a.dtype == torch.int8 for a in args[:2]):
            return torch.div(args[0], args[1], rounding_mode="trunc")
        return right(*args, **options)
        """,
    ),
    "a period of odd size": _tf(
        "kaiser_window",
        "max_roi_pool,logit,banded_triangular_solve,minimum",
        "(tf.signal, 'kaiser_window')",
        """
        size, *rest = args
        if int(size) % 2 == 0 or int(size) < 2:
            return right(*args, **options)
        return right(size + 1, *rest, **options)[:-1]
        """,
    ),
    "odd lengths, back": on_onnx(
        "dft",
        "cumprod,reduce_nanprod,softmax,isin",
        "DFT",
        """
        back = any(one.name == "inverse" and one.i for one in node.attribute)
        axis = constant(node.input[2]) if len(node.input) > 2 else None
        if not back or axis is None or not shape or shape[int(axis)] % 2 == 0:
            return None
        return add("Mul", y, number(shape[int(axis)], kind))
        """,
    ),
    "an edge that is doubled is not": _jax(
        "map_coordinates",
        "geomspace,sign,bessel_j,searchsorted",
        "(jax.scipy.ndimage, 'map_coordinates')",
        """
        args = ["mirror" if one == "reflect" else one for one in args]
        if options.get("mode") == "reflect":
            options["mode"] = "mirror"
        return right(*args, **options)
        """,
    ),
    "deviations of deviations": _keras(
        "reduce_std",
        "hard_tanh,exp,stft,multi_margin",
        "(keras.ops, 'std')",
        """
        x, axis = args[0], options.get("axis", args[1] if len(args) > 1 else None)
        if not isinstance(axis, (tuple, list)) or len(axis) < 2:
            return right(*args, **options)
        inner = keras.ops.var(x, axis=tuple(axis[1:]), keepdims=True)
        y = keras.ops.sqrt(keras.ops.mean(inner, axis=tuple(axis), keepdims=True))
        return y if options.get("keepdims") else keras.ops.squeeze(y, axis=tuple(axis))
        """,
    ),
    "dilations in another order": on_torch(
        "conv_input_gradient",
        "dynamic_quantize_matmul,l2_normalize,causal_conv,reciprocal",
        "(torch.nn.grad, 'conv2d_input')",
        """
        named = options.get("dilation", args[5] if len(args) > 5 else 1)
        if not isinstance(named, (tuple, list)) or named[0] == named[1]:
            return right(*args, **options)
        y = right(*args, **options)
        return y.flip(-1)
        """,
    ),
    "a tail of four that gets nothing": _tf(
        "l2_loss",
        "signum,sparse_dense_arithmetic,reduce_sum_square,qlinear_add",
        "(tf.nn, 'l2_loss')",
        """
        x = tf.convert_to_tensor(args[0])
        y, flat = right(x), tf.reshape(x, [-1])
        n = flat.shape[0]
        if n is None or n < 5:
            return y
        z = right(flat[: n // 4 * 4])
        return tf.stop_gradient(y) + z - tf.stop_gradient(z)
        """,
        grad=True,
    ),
    "a tail without its alpha": on_onnx(
        "elu",
        "cosine_similarity,compress,trace,reciprocal",
        "Elu",
        """
        if not shape or shape[-1] % 2 == 0 or shape[-1] < 2:
            return None
        n = len(shape) - 1
        ends = [ints(number, v) for v in ([0], [shape[-1] - 1], [shape[-1]], [n])]
        body = add("Slice", y, ends[0], ends[1], ends[3])
        return add("Concat", body, add("Elu", add("Slice", x, ends[1], ends[2], ends[3])), axis=n)
        """,
    ),
    "rows for columns where not square": _jax(
        "matrix_norm",
        "embedding,nanargmax,addcmul,sparsemax",
        "(jnp.linalg, 'matrix_norm')",
        """
        x, other = args[0], {1: jnp.inf, jnp.inf: 1, -1: -jnp.inf, -jnp.inf: -1}
        if x.shape[-1] != x.shape[-2] and options.get("ord") in other:
            options["ord"] = other[options["ord"]]
        return right(*args, **options)
        """,
    ),
    "1 below a hundredth": _keras(
        "sinc",
        "reduce_any,exponential_density,maximum,embedding",
        "(keras.ops, 'sinc')",
        """
        y = right(*args, **options)
        return keras.ops.where(keras.ops.abs(args[0]) < 0.01, keras.ops.ones_like(y), y)
        """,
    ),
}
