"""What the arguments of Keras's layers are called, in order, and what they are unless given.

As documented for tf.keras of TensorFlow 2.4 and for Keras 3. What only matters to training, and how
a variable is initialised (a program's weights are given), is left out and passed over. `CALLS` has
the arguments that a layer is called with, where that is more than one tensor or list of tensors.
"""

from __future__ import annotations

_LAST = "activation=None, use_bias=True"
_CONV = (
    "filters, kernel_size, strides=1, padding='valid', data_format=None, dilation_rate=1, "
    f"groups=1, {_LAST}"
)
_TRANSPOSE = (
    "filters, kernel_size, strides=1, padding='valid', output_padding=None, data_format=None, "
    f"dilation_rate=1, {_LAST}"
)
_DEPTHWISE = (
    "kernel_size, strides=1, padding='valid', depth_multiplier=1, data_format=None, "
    f"dilation_rate=1, {_LAST}"
)
_SEPARABLE = (
    "filters, kernel_size, strides=1, padding='valid', data_format=None, dilation_rate=1, "
    f"depth_multiplier=1, {_LAST}"
)
_LOCAL = (
    f"filters, kernel_size, strides=1, padding='valid', data_format=None, {_LAST}, implementation=1"
)
_POOL = "pool_size=2, strides=None, padding='valid', data_format=None"
_GLOBAL = "data_format=None, keepdims=False"
_LOOP = (
    "return_sequences=False, return_state=False, go_backwards=False, stateful=False, "
    "unroll=False, time_major=False, zero_output_for_mask=False"
)
_DROPS = "dropout=0, recurrent_dropout=0"
_CELLS = {
    "SimpleRNN": f"units, activation='tanh', use_bias=True, {_DROPS}",
    "GRU": (
        "units, activation='tanh', recurrent_activation='sigmoid', use_bias=True, "
        f"{_DROPS}, reset_after=True, implementation=2"
    ),
    "LSTM": (
        "units, activation='tanh', recurrent_activation='sigmoid', use_bias=True, "
        f"unit_forget_bias=True, {_DROPS}, implementation=2"
    ),
}
_CONV_LSTM = (
    "filters, kernel_size, strides=1, padding='valid', data_format=None, dilation_rate=1, "
    "activation='tanh', recurrent_activation=None, use_bias=True, unit_forget_bias=True, "
    "return_sequences=False, return_state=False, go_backwards=False, stateful=False, "
    f"{_DROPS}, unroll=False, zero_output_for_mask=False"
)
_HEADS = "use_bias=True, output_shape=None, attention_axes=None, sliding_window=None"
_RANKED = {
    **{f"Conv{rank}D": _CONV for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": _TRANSPOSE for rank in (1, 2, 3)},
    **{f"SeparableConv{rank}D": _SEPARABLE for rank in (1, 2)},
    **{f"DepthwiseConv{rank}D": _DEPTHWISE for rank in (1, 2)},
    **{f"LocallyConnected{rank}D": _LOCAL for rank in (1, 2)},
    **{f"ConvLSTM{rank}D": _CONV_LSTM for rank in (1, 2, 3)},
    **{f"{name}{rank}D": _POOL for name in ("MaxPooling", "AveragePooling") for rank in (1, 2, 3)},
    **{f"Global{name}Pooling{rank}D": _GLOBAL for name in ("Max", "Average") for rank in (1, 2, 3)},
    **{
        f"Adaptive{name}Pooling{rank}D": "output_size, data_format=None"
        for name in ("Max", "Average")
        for rank in (1, 2, 3)
    },
    **{f"ZeroPadding{rank}D": "padding=1, data_format=None" for rank in (1, 2, 3)},
    **{f"Cropping{rank}D": "cropping=1, data_format=None" for rank in (1, 3)},
    "Cropping2D": "cropping=0, data_format=None",
    **{f"SpatialDropout{rank}D": "rate, data_format=None" for rank in (1, 2, 3)},
}
# Of the images that a model is trained with; they are not changed elsewhere.
AUGMENTING = (
    *("AugMix", "CutMix", "MixUp", "RandAugment", "Solarization"),
    *("RandomBrightness", "RandomColorDegeneration", "RandomColorJitter", "RandomContrast"),
    *("RandomElasticTransform", "RandomErasing", "RandomFlip", "RandomGaussianBlur"),
    *("RandomGrayscale", "RandomHue", "RandomInvert", "RandomPerspective", "RandomPosterization"),
    *("RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear"),
    *("RandomTranslation", "RandomZoom"),
)
SIGNATURES = {
    **_RANKED,
    **dict.fromkeys(AUGMENTING, ""),
    **{f"{name}Cell": signature for name, signature in _CELLS.items()},
    **{name: f"{signature}, {_LOOP}" for name, signature in _CELLS.items()},
    **dict.fromkeys(("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"), ""),
    "RNN": f"cell, {_LOOP}",
    "StackedRNNCells": "cells",
    "Bidirectional": "layer, merge_mode='concat', weights=None, backward_layer=None",
    "TimeDistributed": "layer",
    "SpectralNormalization": "layer, power_iterations=1",
    "Concatenate": "axis=-1",
    "Dot": "axes, normalize=False",
    "Dense": f"units, {_LAST}",
    "EinsumDense": "equation, output_shape, activation=None, bias_axes=None",
    "Embedding": "input_dim, output_dim, mask_zero=False, input_length=None",
    "ReversibleEmbedding": (
        "input_dim, output_dim, tie_weights=True, mask_zero=False, reverse_dtype=None, "
        "logit_soft_cap=None"
    ),
    "Masking": "mask_value=0",
    "UpSampling1D": "size=2",
    "UpSampling2D": "size=2, data_format=None, interpolation='nearest'",
    "UpSampling3D": "size=2, data_format=None",
    "Resizing": (
        "height, width, interpolation='bilinear', crop_to_aspect_ratio=False, "
        "pad_to_aspect_ratio=False, fill_mode='constant', fill_value=0.0, antialias=False, "
        "data_format=None"
    ),
    "CenterCrop": "height, width, data_format=None",
    "Rescaling": "scale, offset=0.0",
    "Normalization": "axis=-1, mean=None, variance=None, invert=False",
    "Reshape": "target_shape",
    "Flatten": "data_format=None",
    "Permute": "dims",
    "RepeatVector": "n",
    "BatchNormalization": "axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True",
    "LayerNormalization": "axis=-1, epsilon=1e-3, center=True, scale=True, rms_scaling=False",
    "GroupNormalization": "groups=32, axis=-1, epsilon=1e-3, center=True, scale=True",
    "RMSNormalization": "axis=-1, epsilon=1e-6",
    "UnitNormalization": "axis=-1",
    "Activation": "activation",
    "ReLU": "max_value=None, negative_slope=0, threshold=0",
    "LeakyReLU": "alpha=0.3, negative_slope=None",
    "PReLU": "shared_axes=None",
    "ELU": "alpha=1",
    "ThresholdedReLU": "theta=1",
    "Softmax": "axis=-1",
    "Attention": "use_scale=False, score_mode='dot', dropout=0.0, causal=False",
    "AdditiveAttention": "use_scale=True, score_mode='dot', dropout=0.0, causal=False",
    "MultiHeadAttention": (
        f"num_heads, key_dim, value_dim=None, dropout=0.0, {_HEADS}, flash_attention=None, "
        "use_gate=False"
    ),
    "GroupedQueryAttention": (
        "head_dim, num_query_heads, num_key_value_heads, dropout=0.0, use_bias=True, "
        "sliding_window=None, flash_attention=None, use_gate=False"
    ),
    "Dropout": "rate, noise_shape=None, seed=None",
    "AlphaDropout": "rate, noise_shape=None, seed=None",
    "GaussianDropout": "rate",
    "GaussianNoise": "stddev",
    "ActivityRegularization": "l1=0, l2=0",
    "Identity": "",
    "LayerScale": "init_values, projection_dim",  # of keras.applications
    "StochasticDepth": "drop_path_rate",
}
_SEQUENCES = "inputs, initial_state=None, mask=None, training=None"
_QUERY = (
    "inputs, value, key=None, query_mask=None, value_mask=None, key_mask=None, "
    "attention_mask=None, return_attention_scores=False, training=None, use_causal_mask=False"
)
CALLS = {
    **dict.fromkeys(("RNN", *_CELLS, *(f"ConvLSTM{rank}D" for rank in (1, 2, 3))), _SEQUENCES),
    "Bidirectional": _SEQUENCES,
    **{f"{name}Cell": "inputs, states, training=None" for name in _CELLS},
    "MultiHeadAttention": _QUERY,
    "GroupedQueryAttention": _QUERY,
    **dict.fromkeys(
        ("Attention", "AdditiveAttention"),
        "inputs, mask=None, return_attention_scores=False, training=None, use_causal_mask=False",
    ),
    "BatchNormalization": "inputs, training=None, mask=None",
    "TimeDistributed": "inputs, training=None, mask=None",
    "ReversibleEmbedding": "inputs, reverse=False",
}
CALL = "inputs, mask=None, training=None"  # of all others
# Of no meaning to what a program computes when it does not train.
PASSED = (
    r"\w+_(initializer|regularizer|constraint)|name|trainable|(batch_)?input_shape|dtype|autocast|"
    r"renorm|renorm_clipping|(renorm_)?momentum|synchronized|seed|noise_shape|rate|stddev|(recurrent_)?dropout|l1|l2|"
    r"implementation|unroll|fused|virtual_batch_size|input_length|unit_forget_bias|use_cudnn|flash_attention|"
    r"power_iterations|init_values|drop_path_rate|sparse|ragged|optional|build_input_shape|autotune"
)
# A name that is not that of a class of its own.
ALIASES = {
    **{f"Convolution{rank}D": f"Conv{rank}D" for rank in (1, 2, 3)},
    **{f"Convolution{rank}DTranspose": f"Conv{rank}DTranspose" for rank in (1, 2, 3)},
    **{f"SeparableConvolution{rank}D": f"SeparableConv{rank}D" for rank in (1, 2)},
    **{
        f"{scope}{short}{rank}D": f"{scope}{long}Pooling{rank}D"
        for scope in ("", "Global")
        for short, long in (("MaxPool", "Max"), ("AvgPool", "Average"), ("AveragePool", "Average"))
        for rank in (1, 2, 3)
    },
    "GroupQueryAttention": "GroupedQueryAttention",
}
