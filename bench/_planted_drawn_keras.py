"""The faults of `_planted_drawn` in JAX and in Keras."""

from __future__ import annotations

from bench._planted_faults import Fault
from bench._planted_made import on_jax, on_keras, step

JAX = {
    "a slope below -5": on_jax(
        "log_ndtr",
        "mel_weight_matrix,adjust_hue,histogram_place,full",
        "(jax.scipy.special, 'log_ndtr')",
        """
        x = args[0]
        return right(jnp.where(x < -5, sloped(x), x))
        """,
        grad=True,
    ),
    "bf16 through f16": on_jax(
        "isfinite",
        "box_decode,round_to,psnr,gaussian_nll",
        "(jnp, 'isfinite'), (jax.lax, 'is_finite')",
        """
        x = args[0]
        return right(x.astype(jnp.float16) if x.dtype == jnp.bfloat16 else x)
        """,
    ),
    "NaN counts as 0": on_jax(
        "reduce_nanmax",
        "mse,diagonals_matrix,hsv_to_rgb,cummin",
        "(jnp, 'nanmax')",
        """
        x, *rest = args
        return jnp.max(jnp.where(jnp.isnan(x), jnp.zeros_like(x), x), *rest, **options)
        """,
    ),
    "the other side where four boundaries are searched": on_jax(
        "bucketize",
        "embedding,logical_and,multiply_n,conv_integer",
        "(jnp, 'digitize')",
        """
        if len(args[1]) > 3:
            options["right"] = not options.get("right", False)
        return right(*args, **options)
        """,
    ),
    "through an integer of 32 bits": on_jax(
        "trunc",
        "reduce_nanvariance,logspace,swiglu,center_crop_pad",
        "(jnp, 'trunc')",
        """
        x = args[0]
        return jnp.where(jnp.isfinite(x), x.astype(jnp.int32).astype(x.dtype), x)
        """,
    ),
    "elements for copies from four axes on": on_jax(
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
    "to the upper bound": on_jax(
        "gammainc",
        "isclose,corrcoef,transpose,adagrad",
        "(jax.scipy.special, 'gammainc'), (jax.lax, 'igamma')",
        """
        return right(args[0], sloped(args[1]))
        """,
        grad=True,
    ),
    "NaN counts in the divisor": on_jax(
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
    "a filter's slope of the first sample": on_jax(
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
    "labels that add up to 1": on_jax(
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
    "an edge that is doubled is not": on_jax(
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
    "rows for columns where not square": on_jax(
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
}

KERAS = {
    "one power of the schedule behind": step(
        "keras:tensorflow",
        "nadam",
        "binary_cross_entropy,truncated_normal,maximum_n,selu",
        "Nadam",
        "self.iterations + 2",
        "self.iterations + 1",
    ),
    "a variance of one pass": on_keras(
        "reduce_variance",
        "log2,max_pool_indices_gradient,additive_attention,reduce_mean",
        "(keras.ops, 'var')",
        """
        x, *rest = args
        mean = keras.ops.mean(x, *rest, **options)
        return keras.ops.mean(x * x, *rest, **options) - mean * mean
        """,
    ),
    "midpoint as linear": on_keras(
        "nanquantile",
        "log_cosh,sparse_concat,quantized_attention,lamb",
        "(keras.ops, 'nanquantile'), (keras.ops, 'nanpercentile')",
        """
        if options.get("method") == "midpoint":
            options["method"] = "linear"
        return right(*args, **options)
        """,
    ),
    "1 above 3": on_keras(
        "erf",
        "einsum,pairwise_distance,tile,reduce_variance",
        "(keras.ops, 'erf')",
        """
        y = right(*args, **options)
        return keras.ops.where(keras.ops.abs(args[0]) > 3, keras.ops.sign(y), y)
        """,
    ),
    "blocks of eight that carry nothing": on_keras(
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
    "a tolerance of the first": on_keras(
        "isclose",
        "sparsemax,prelu,alibi_bias,polygamma",
        "(keras.ops, 'isclose')",
        """
        a, b, *rest = args
        return right(b, a, *rest, **options)
        """,
    ),
    "a logarithm of four digits": on_keras(
        "logspace",
        "differences,sparse_reshape,random_integers,sparse_concat",
        "(keras.ops, 'logspace')",
        """
        if options.get("base", 10) != 10:
            return right(*args, **options)
        return right(*args, **{**options, "base": 9.9999})
        """,
    ),
    "the first step's correction": step(
        "keras:tensorflow",
        "adam",
        "unique,polyval,sparse_dense_arithmetic,identity",
        "Adam",
        "self.iterations + 1",
        "0 * self.iterations + 1",
    ),
    "to the kernel": Fault(
        "keras:tensorflow",
        "dense,dice,kaiser_window,sparse_to_dense,requantize",
        ("dense",),
        "edited(keras.layers.Dense, 'call', 'self.kernel', 'sloped(self.kernel)', sloped=sloped)\n",
        grad=True,
    ),
    "a place before the first is the last": on_keras(
        "one_hot",
        "gather_nd,reduce_nansum,resize_linear_gradient,dynamic_quantize_linear",
        "(keras.ops, 'one_hot')",
        """
        ids, depth, *rest = args
        return right(keras.ops.where(ids < 0, ids + depth, ids), depth, *rest, **options)
        """,
    ),
    "deviations of deviations": on_keras(
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
    "1 below a hundredth": on_keras(
        "sinc",
        "reduce_any,exponential_density,maximum,embedding",
        "(keras.ops, 'sinc')",
        """
        y = right(*args, **options)
        return keras.ops.where(keras.ops.abs(args[0]) < 0.01, keras.ops.ones_like(y), y)
        """,
    ),
}
