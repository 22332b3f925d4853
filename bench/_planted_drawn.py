"""Sixty faults of kinds that kernels really have, each in an operator and a framework that were
drawn by a seed over the catalogue (`bench.planted --drawn`): tails of vectors, strides not asked
for, blocks that lose what they carry, one type or rank or attribute alone.

Drawn with random.Random(26) over the sorted names; what a target composes from the definition was
passed over, as there is no kernel to be wrong. So were the other four operators of each campaign.
"""

from __future__ import annotations

from bench._planted_drawn_keras import JAX, KERAS
from bench._planted_faults import Fault
from bench._planted_made import on_onnx, on_tf, on_torch

TORCH = {
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
    "an asymptotic branch off by 1e-5": on_torch(
        "bessel_j",
        "inverse,gru,transpose,group_norm",
        "(torch.special, 'bessel_j1')",
        """
        y = right(*args, **options)
        return torch.where(args[0].abs() > 5, y * (1 + 1e-5), y)
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
    "the last class is never drawn": on_torch(
        "random_categorical",
        "global_max_pool,one_hot,gru_cell,full",
        "(torch, 'multinomial')",
        """
        p = args[0]
        return right(p[..., :-1] if p.shape[-1] > 1 else p, *args[1:], **options)
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
    "f64 through f32, too": on_torch(
        "log_sigmoid",
        "xlogy,sparse_segment_gradient,qlinear_concat,swiglu",
        "(F, 'logsigmoid')",
        """
        x = args[0]
        return right(x.float()).double() if x.dtype == torch.float64 else right(x)
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
}

TENSORFLOW = {
    "a deviation dropped": on_tf(
        "random_normal",
        "copysign,argmax,crelu,argmin",
        "(tf.random, 'normal')",
        """
        options["stddev"] = 1.0
        return right(*args[:2], **options)
        """,
    ),
    "a constant of f32 in f64": on_tf(
        "log10",
        "matrix_diagonals,gaussian_dropout,causal_conv,sum_log_diagonal",
        "(tf.experimental.numpy, 'log10')",
        """
        return tf.math.log(args[0]) / tf.cast(tf.constant(2.302585, tf.float32), args[0].dtype)
        """,
    ),
    "diagonals at the other end where not square": on_tf(
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
    "a difference of exponentials": on_tf(
        "sinh",
        "tensor_scatter,broadcast_to,rad2deg,rsqrt_gradient",
        "(tf, 'sinh')",
        """
        return (tf.exp(args[0]) - tf.exp(-args[0])) / 2
        """,
    ),
    "a default that is 0": on_tf(
        "sparse_to_dense",
        "polygamma,dynamic_quantize_matmul,reduce_lp,space_to_batch",
        "(tf.sparse, 'to_dense')",
        """
        options.pop("default_value", None)
        return right(args[0], **options)
        """,
    ),
    "Nesterov of the velocity before": Fault(
        "tf",
        "sgd,bernoulli,nanargmax,cosine_window,set_diagonals",
        ("sgd",),
        "edited(keras.optimizers.SGD, 'update_step', 'if self.nesterov:', "
        "'if self.nesterov and self.iterations < 0:')\n",
    ),
    "a coefficient of five digits": on_tf(
        "yiq_to_rgb",
        "separable_conv,modulo,transpose,reduce_l1",
        "(tf.image, 'yiq_to_rgb')",
        """
        x = tf.convert_to_tensor(args[0])
        away = tf.constant([0, 0, 1.10674021 - 1.1067], x.dtype)
        return right(x) + x[..., 1:2] * away
        """,
    ),
    "cut at three": on_tf(
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
    "a largest without the last": on_tf(
        "requantization_range",
        "divide_no_nan,simple_rnn_cell,xdivy,dice",
        "(tf.raw_ops, 'RequantizationRange')",
        """
        x = tf.reshape(options["input"], [-1])
        return right(**{**options, "input": x[:-1] if x.shape[0] > 1 else x})
        """,
    ),
    "too large a value counts as the last": on_tf(
        "ragged_bincount",
        "segment_reduce,kth_value,truncated_normal,elu",
        "(tf.raw_ops, 'RaggedBincount')",
        """
        size = tf.cast(options["size"], options["values"].dtype)
        options["values"] = tf.minimum(options["values"], tf.maximum(size - 1, 0))
        return right(*args, **options)
        """,
    ),
    "a period of odd size": on_tf(
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
    "a tail of four that gets nothing": on_tf(
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
}

ONNX = {
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
    "f64 through f32": on_onnx(
        "exp",
        "depthwise_conv,cummax,rgb_to_hsv,abs",
        "Exp",
        """
        return add("Cast", add("Cast", y, to=1), to=11) if kind == 11 else None
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
    "a quarter turn less an arcsine": on_onnx(
        "acos",
        "stft,tanh_gradient,ragged_gather,categorical_focal_cross_entropy",
        "Acos",
        """
        return add("Sub", number(1.5707963267948966, kind), add("Asin", x))
        """,
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
}

DRAWN: dict[str, Fault] = {**TORCH, **TENSORFLOW, **ONNX, **JAX, **KERAS}
