"""Layers of Keras 3 with their arguments: the input shapes, and the call that makes a model."""

# ruff: noqa: PLW0108
# (a layer is made for every model anew)
# mypy: disable-error-code="misc"
# (it infers no lambda whose defaults take what a comprehension is at)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers as L  # noqa: N812
from keras import ops

Shape = tuple[int | None, ...]
Case = tuple[list[Shape], Callable[..., Any]]


def one(shape: Shape, layer: Callable[[], Any]) -> Case:
    """A layer on a single tensor."""
    return [shape], lambda x: layer()(x)


def ids(vocabulary: int, units: int) -> Any:
    """Word vectors of tensors whose integers are drawn; zero is masked."""
    return L.Embedding(vocabulary, units, mask_zero=True)


IMAGE = (6, 7, 4)
CASES: dict[str, Case] = {
    "dense": one((4, 3), lambda: L.Dense(5)),
    "dense flat": one((3,), lambda: L.Dense(5, use_bias=False, activation="relu")),
    "einsum dense": one((4, 3), lambda: L.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d")),
    "einsum heads": one(
        (4, 3), lambda: L.EinsumDense("...x,xyz->...yz", (2, 5), activation="tanh")
    ),
    "einsum mixing": one((4, 3), lambda: L.EinsumDense("abc,bd->adc", (5, 3), bias_axes="dc")),
    **{
        f"conv{rank}d {name}": one(
            (*(6, 7, 5)[:rank], 4), lambda rank=rank, kw=kw: getattr(L, f"Conv{rank}D")(**kw)
        )
        for rank in (1, 2, 3)
        for name, kw in {
            "valid": {"filters": 3, "kernel_size": 2},
            "same": {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"},
            "stride over window": {"filters": 2, "kernel_size": 2, "strides": 3},
            "dilated": {"filters": 2, "kernel_size": 2, "dilation_rate": 2, "padding": "same"},
            "groups": {"filters": 4, "kernel_size": 2, "groups": 2, "activation": "relu"},
            "one": {"filters": 1, "kernel_size": 1, "use_bias": False},
        }.items()
    },
    "conv1d causal": one((7, 3), lambda: L.Conv1D(2, 3, padding="causal", dilation_rate=2)),
    "conv1d causal stride": one((7, 3), lambda: L.Conv1D(2, 3, padding="causal", strides=2)),
    **{
        f"transpose{rank}d {name}": one(
            (*(3, 4, 2)[:rank], 3),
            lambda rank=rank, kw=kw: getattr(L, f"Conv{rank}DTranspose")(**kw),
        )
        for rank in (1, 2, 3)
        for name, kw in {
            "valid": {"filters": 2, "kernel_size": 3, "strides": 2},
            "same": {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same"},
            "gaps": {"filters": 2, "kernel_size": 1, "strides": 3},
            "wide": {"filters": 2, "kernel_size": 4, "padding": "same"},
        }.items()
    },
    "transpose2d padded": one(
        (3, 4, 3), lambda: L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1)
    ),
    "transpose2d padded less": one(
        (3, 4, 3), lambda: L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=0)
    ),
    "transpose2d valid padded": one(
        (3, 4, 3), lambda: L.Conv2DTranspose(2, 3, strides=2, output_padding=1)
    ),
    "depthwise1d": one((6, 3), lambda: L.DepthwiseConv1D(3, depth_multiplier=2, padding="same")),
    "depthwise2d": one(IMAGE, lambda: L.DepthwiseConv2D((2, 3), strides=2, padding="same")),
    "depthwise2d more": one(IMAGE, lambda: L.DepthwiseConv2D(2, depth_multiplier=3)),
    "depthwise2d dilated": one(IMAGE, lambda: L.DepthwiseConv2D(2, dilation_rate=2)),
    "separable1d": one((6, 3), lambda: L.SeparableConv1D(4, 3, depth_multiplier=2, strides=2)),
    "separable2d": one(IMAGE, lambda: L.SeparableConv2D(5, 3, padding="same", activation="elu")),
    **{
        f"{kind}{rank}d {name}": one(
            (*(6, 5, 4)[:rank], 2),
            lambda kind=kind, rank=rank, kw=kw: getattr(L, f"{kind}Pooling{rank}D")(**kw),
        )
        for kind in ("Max", "Average")
        for rank in (1, 2, 3)
        for name, kw in {
            "default": {"pool_size": 2},
            "same": {"pool_size": 3, "strides": 2, "padding": "same"},
            "stride over window": {"pool_size": 1, "strides": 3},
            "overlapping": {"pool_size": 3, "strides": 1},
        }.items()
    },
    **{
        f"global {kind}{rank}d {keep}": one(
            (*(6, 5, 4)[:rank], 2),
            lambda kind=kind, rank=rank, keep=keep: getattr(L, f"Global{kind}Pooling{rank}D")(
                keepdims=keep
            ),
        )
        for kind in ("Max", "Average")
        for rank in (1, 2, 3)
        for keep in (False, True)
    },
    "up1d": one((3, 2), lambda: L.UpSampling1D(3)),
    "up2d": one((3, 2, 2), lambda: L.UpSampling2D((1, 3))),
    "up2d bilinear": one((3, 2, 2), lambda: L.UpSampling2D((2, 3), interpolation="bilinear")),
    "up3d": one((3, 2, 2, 2), lambda: L.UpSampling3D(2)),
    "pad1d": one((3, 2), lambda: L.ZeroPadding1D((0, 2))),
    "pad2d": one((3, 2, 2), lambda: L.ZeroPadding2D(((1, 0), (2, 1)))),
    "pad3d": one((3, 2, 2, 2), lambda: L.ZeroPadding3D((1, 0, 2))),
    "crop1d": one((5, 2), lambda: L.Cropping1D((1, 2))),
    "crop2d": one((5, 4, 2), lambda: L.Cropping2D(((1, 2), (0, 1)))),
    "crop3d": one((5, 4, 4, 2), lambda: L.Cropping3D(1)),
    "center crop": one((5, 4, 2), lambda: L.CenterCrop(2, 3)),
    "resizing": one((5, 4, 2), lambda: L.Resizing(3, 7)),
    **{
        f"resizing {mode} {name} {size}": one(
            (6, 7, 4),
            lambda mode=mode, kw=kw, size=size: L.Resizing(*size, interpolation=mode, **kw),
        )
        for mode, name, kw in [
            ("bilinear", "antialias", {"antialias": True}),
            ("bicubic", "antialias", {"antialias": True}),
            ("bilinear", "crop", {"crop_to_aspect_ratio": True}),
            ("nearest", "crop", {"crop_to_aspect_ratio": True}),
            ("bilinear", "pad", {"pad_to_aspect_ratio": True, "fill_value": 2.0}),
            ("nearest", "pad", {"pad_to_aspect_ratio": True}),
        ]
        for size in [(3, 9), (8, 5)]
    },
    # TensorFlow has places between elements in steps of 1 / 1024: these are such
    "resizing bicubic": one((5, 4, 2), lambda: L.UpSampling2D((2, 4), interpolation="bicubic")),
    **{
        f"adaptive {kind.lower()} pool{rank}d": one(
            (*(6, 7, 5)[:rank], 3),
            lambda kind=kind, rank=rank: getattr(L, f"Adaptive{kind}Pooling{rank}D")(4),
        )
        for kind in ("Max", "Average")
        for rank in (1, 2, 3)
    },
    "adaptive pool larger": one((6, 7, 3), lambda: L.AdaptiveAveragePooling2D((4, 9))),
    "resizing nearest": one((5, 4, 2), lambda: L.Resizing(3, 7, interpolation="nearest")),
    "rescaling": one((5, 2), lambda: L.Rescaling(1 / 127.5, offset=-1.0)),
    "rescaling channels": one((5, 2), lambda: L.Rescaling([2.0, 3.0], offset=[1.0, -1.0])),
    "normalization": one((5, 2), lambda: L.Normalization(mean=[1.0, 2.0], variance=[4.0, 0.25])),
    "normalization back": one(
        (5, 2), lambda: L.Normalization(mean=[1.0, 2.0], variance=[4.0, 0.25], invert=True)
    ),
    "normalization one": one((5, 2), lambda: L.Normalization(axis=None, mean=0.5, variance=4.0)),
    "normalization learnt": one((5, 2), lambda: L.Normalization()),
    "reshape": one((4, 6), lambda: L.Reshape((3, -1, 2))),
    "reshape same": one((4, 6), lambda: L.Reshape((4, 6))),
    "flatten": one((4, 6), lambda: L.Flatten()),
    "flatten vector": one((4,), lambda: L.Flatten()),
    "flatten nothing": one((), lambda: L.Flatten()),
    "permute": one((4, 6, 2), lambda: L.Permute((3, 1, 2))),
    "repeat": one((4,), lambda: L.RepeatVector(3)),
    **{
        kind.lower(): ([(3, 2), (3, 2)], lambda x, y, kind=kind: getattr(L, kind)()([x, y]))
        for kind in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum")
    },
    "add three": ([(3, 2), (3, 2), (1, 2)], lambda *xs: L.Add()(list(xs))),
    "add ranks": ([(3, 2), (2,)], lambda *xs: L.Add()(list(xs))),
    "add twice": ([(3, 2)], lambda x: L.Add()([x, x])),
    "concatenate": ([(3, 2), (3, 1)], lambda *xs: L.Concatenate()(list(xs))),
    "concatenate steps": ([(3, 2), (1, 2)], lambda *xs: L.Concatenate(axis=1)(list(xs))),
    "dot": ([(3, 2), (4, 2)], lambda *xs: L.Dot(axes=(2, -1))(list(xs))),
    "dot normal": ([(3,), (3,)], lambda *xs: L.Dot(axes=1, normalize=True)(list(xs))),
    **{
        f"activation {name}": one((3, 4), lambda name=name: L.Activation(name))
        for name in (
            "relu",
            "relu6",
            "leaky_relu",
            "softmax",
            "log_softmax",
            "elu",
            "selu",
            "celu",
            "gelu",
            "softplus",
            "softsign",
            "squareplus",
            "soft_shrink",
            "sparse_plus",
            "silu",
            "swish",
            "glu",
            "tanh",
            "tanh_shrink",
            "sigmoid",
            "sparse_sigmoid",
            "exponential",
            "mish",
            "hard_sigmoid",
            "hard_silu",
            "hard_swish",
            "hard_tanh",
            "hard_shrink",
            "linear",
            "log_sigmoid",
            "sparsemax",
        )
    },
    "relu": one((3, 4), lambda: L.ReLU(max_value=0.5, negative_slope=0.25, threshold=0.125)),
    "relu slope": one((3, 4), lambda: L.ReLU(negative_slope=0.1)),
    "leaky relu": one((3, 4), lambda: L.LeakyReLU(negative_slope=0.2)),
    "prelu": one((3, 4), lambda: L.PReLU()),
    "prelu shared": one((3, 4, 2), lambda: L.PReLU(shared_axes=[1, 2])),
    "elu": one((3, 4), lambda: L.ELU(alpha=0.5)),
    "softmax": one((3, 4), lambda: L.Softmax()),
    "softmax axis": one((3, 4), lambda: L.Softmax(axis=1)),
    "softmax axes": one((3, 4), lambda: L.Softmax(axis=(1, 2))),
    "layer as activation": one((3, 4), lambda: L.Dense(2, activation=L.LeakyReLU())),
    "batch norm": one((3, 4), lambda: L.BatchNormalization()),
    "batch norm axis": one((3, 4, 2), lambda: L.BatchNormalization(axis=1, scale=False)),
    "batch norm plain": one((3, 4), lambda: L.BatchNormalization(center=False, epsilon=0.1)),
    "layer norm": one((3, 4), lambda: L.LayerNormalization()),
    "layer norm axes": one((3, 4, 2), lambda: L.LayerNormalization(axis=[1, 3])),
    "layer norm bare": one((3, 4), lambda: L.LayerNormalization(center=False, scale=False)),
    "group norm": one((3, 4), lambda: L.GroupNormalization(groups=2)),
    "group norm each": one((3, 4), lambda: L.GroupNormalization(groups=-1)),
    "group norm axis": one((4, 3), lambda: L.GroupNormalization(groups=2, axis=1)),
    "rms norm": one((3, 4), lambda: L.RMSNormalization()),
    "unit norm": one((3, 4), lambda: L.UnitNormalization()),
    "unit norm axis": one((3, 4), lambda: L.UnitNormalization(axis=1)),
    "spectral norm": one((3, 4), lambda: L.SpectralNormalization(L.Dense(2))),
    **{
        name: one((3, 4), layer)
        for name, layer in {
            "dropout": lambda: L.Dropout(0.5),
            "alpha dropout": lambda: L.AlphaDropout(0.5),
            "gaussian dropout": lambda: L.GaussianDropout(0.5),
            "gaussian noise": lambda: L.GaussianNoise(0.5),
            "spatial dropout": lambda: L.SpatialDropout1D(0.5),
            "activity": lambda: L.ActivityRegularization(l1=0.5),
            "identity": lambda: L.Identity(),
        }.items()
    },
    # ---- recurrent
    **{
        f"{kind.lower()} {name}": one((5, 3), lambda kind=kind, kw=kw: getattr(L, kind)(2, **kw))
        for kind in ("SimpleRNN", "GRU", "LSTM")
        for name, kw in {
            "last": {},
            "all": {"return_sequences": True},
            "back": {"go_backwards": True, "return_sequences": True},
            "state": {"return_state": True, "use_bias": False},
            "both": {"return_state": True, "return_sequences": True, "go_backwards": True},
            "unrolled": {"unroll": True, "activation": "relu"},
            "gelu": {"activation": "gelu"},
        }.items()
    },
    "gru before": one((5, 3), lambda: L.GRU(2, reset_after=False, return_sequences=True)),
    "gru hard": one((5, 3), lambda: L.GRU(2, recurrent_activation="hard_sigmoid")),
    "lstm hard": one((5, 3), lambda: L.LSTM(2, recurrent_activation="hard_sigmoid")),
    "rnn cell": one((5, 3), lambda: L.RNN(L.GRUCell(2), return_sequences=True)),
    "rnn stacked": one(
        (5, 3), lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2), L.SimpleRNNCell(4)], return_state=True)
    ),
    "rnn stacked back": one(
        (5, 3),
        lambda: L.RNN([L.LSTMCell(3), L.LSTMCell(2)], go_backwards=True, return_sequences=True),
    ),
    "lstm started": (
        [(5, 3), (2,), (2,)],
        lambda x, h, c: L.LSTM(2)(x, initial_state=[h, c]),
    ),
    "lstm cell": ([(3,), (2,), (2,)], lambda x, h, c: L.LSTMCell(2)(x, [h, c])),
    "gru cell": ([(3,), (2,)], lambda x, h: L.GRUCell(2)(x, [h])),
    **{
        f"bidirectional {mode}": one(
            (5, 3), lambda mode=mode: L.Bidirectional(L.LSTM(2), merge_mode=mode)
        )
        for mode in ("concat", "sum", "mul", "ave", None)
    },
    "bidirectional all": one((5, 3), lambda: L.Bidirectional(L.GRU(2, return_sequences=True))),
    "bidirectional state": one((5, 3), lambda: L.Bidirectional(L.LSTM(2, return_state=True))),
    "bidirectional other": one(
        (5, 3),
        lambda: L.Bidirectional(
            L.SimpleRNN(2), backward_layer=L.SimpleRNN(2, activation="relu", go_backwards=True)
        ),
    ),
    "bidirectional cells": one((5, 3), lambda: L.Bidirectional(L.RNN(L.LSTMCell(2)))),
    **{
        f"convlstm{rank}d {name}": one(
            (3, *(4, 5, 3)[:rank], 2),
            lambda rank=rank, kw=kw: getattr(L, f"ConvLSTM{rank}D")(2, **kw),
        )
        for rank in (1, 2, 3)
        for name, kw in {
            "last": {"kernel_size": 2},
            "all": {"kernel_size": 3, "padding": "same", "return_sequences": True},
            "back": {"kernel_size": 2, "strides": 2, "go_backwards": True, "return_state": True},
            "dilated": {
                "kernel_size": 2,
                "dilation_rate": 2,
                "recurrent_activation": "hard_sigmoid",
            },
        }.items()
    },
    # ---- wrappers
    "time dense": one((5, 3), lambda: L.TimeDistributed(L.Dense(2))),
    "time conv": one((3, 5, 4, 2), lambda: L.TimeDistributed(L.Conv2D(2, 2))),
    "time flatten": one((3, 5, 4), lambda: L.TimeDistributed(L.Flatten())),
    "time lstm": one((3, 5, 4), lambda: L.TimeDistributed(L.LSTM(2))),
    "time model": one(
        (3, 4),
        lambda: L.TimeDistributed(keras.Sequential([keras.Input((4,)), L.Dense(3), L.Dense(2)])),
    ),
    # ---- attention
    "attention": ([(4, 3), (5, 3)], lambda *xs: L.Attention()(list(xs))),
    "attention key": ([(4, 3), (5, 2), (5, 3)], lambda *xs: L.Attention()(list(xs))),
    "attention scaled": ([(4, 3), (5, 3)], lambda *xs: L.Attention(use_scale=True)(list(xs))),
    "attention sum": (
        [(4, 3), (5, 3)],
        lambda *xs: L.Attention(use_scale=True, score_mode="concat")(list(xs)),
    ),
    "attention causal": (
        [(4, 3), (5, 3)],
        lambda *xs: L.Attention()(list(xs), use_causal_mask=True, return_attention_scores=True),
    ),
    "additive": ([(4, 3), (5, 3)], lambda *xs: L.AdditiveAttention()(list(xs))),
    "additive plain": (
        [(4, 3), (5, 3)],
        lambda *xs: L.AdditiveAttention(use_scale=False)(list(xs)),
    ),
    "heads": ([(4, 3), (5, 2)], lambda q, v: L.MultiHeadAttention(2, 3)(q, v)),
    "heads key": (
        [(4, 3), (5, 2), (5, 4)],
        lambda q, v, k: L.MultiHeadAttention(2, 3, value_dim=4, output_shape=5)(q, v, k),
    ),
    "heads bare": ([(4, 3)], lambda q: L.MultiHeadAttention(2, 3, use_bias=False)(q, q)),
    "heads causal": (
        [(4, 3)],
        lambda q: L.MultiHeadAttention(2, 3)(q, q, use_causal_mask=True),
    ),
    "heads scores": (
        [(4, 3), (5, 2)],
        lambda q, v: L.MultiHeadAttention(2, 3, dropout=0.1)(
            q, v, return_attention_scores=True, use_causal_mask=True
        ),
    ),
    "heads gate": ([(4, 3)], lambda q: L.MultiHeadAttention(2, 3, use_gate=True)(q, q)),
    "heads window": (
        [(6, 3)],
        lambda q: L.MultiHeadAttention(2, 3, sliding_window=2)(q, q, use_causal_mask=True),
    ),
    "heads shaped": (
        [(4, 3)],
        lambda q: L.MultiHeadAttention(2, 3, output_shape=(2, 5))(q, q),
    ),
    "heads axes": (
        [(4, 5, 3)],
        lambda q: L.MultiHeadAttention(2, 3, attention_axes=(2,))(q, q),
    ),
    "heads both axes": ([(2, 5, 3)], lambda q: L.MultiHeadAttention(2, 3)(q, q)),
    "heads masked": (
        [(4, 3), (5, 2), (4, 5)],
        lambda q, v, m: L.MultiHeadAttention(2, 3)(q, v, attention_mask=ops.greater(m, -0.5)),
    ),
    "grouped": ([(4, 3)], lambda q: L.GroupQueryAttention(2, 4, 2)(q, q)),
    "grouped causal": (
        [(4, 3)],
        lambda q: L.GroupQueryAttention(2, 4, 2, use_gate=True)(q, q, use_causal_mask=True),
    ),
}
