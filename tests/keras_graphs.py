"""Models of Keras 3 of more than one layer: shared, nested, masked, with functions between."""

# ruff: noqa: PLW0108
# (a layer is made for every model anew)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers as L  # noqa: N812
from keras import ops

Build = Callable[[], Any]


def _masked(layer: Callable[[Any], Any]) -> Build:
    """What a layer makes of steps of which some are masked, and what is done with its own mask."""

    def build() -> Any:
        words = keras.Input((5,), dtype="int32", name="words")
        x = L.Embedding(4, 3, mask_zero=True)(words)
        y = layer(x)
        seen = [y] if not isinstance(y, (list, tuple)) else list(y)
        if len(seen[0].shape) == 3:
            seen.append(L.GlobalAveragePooling1D()(seen[0]))
        return keras.Model(words, seen)

    return build


def _masking() -> Any:
    x = keras.Input((4, 2), name="x")
    y = L.Masking(mask_value=0.0)(L.ReLU()(x))
    return keras.Model(x, [y, L.LSTM(2)(y), L.Bidirectional(L.GRU(2, return_sequences=True))(y)])


def _two_masks(merge: Callable[[list[Any]], Any]) -> Build:
    def build() -> Any:
        words = [keras.Input((4,), dtype="int32", name=name) for name in ("a", "b")]
        table = L.Embedding(4, 3, mask_zero=True)
        y = merge([table(item) for item in words])
        return keras.Model(words, [y, L.GlobalAveragePooling1D()(y)])

    return build


def _one_masked(merge: Callable[[list[Any]], Any]) -> Build:
    def build() -> Any:
        words = keras.Input((4,), dtype="int32", name="a")
        other = keras.Input((4, 3), name="b")
        y = merge([L.Embedding(4, 3, mask_zero=True)(words), other])
        return keras.Model([words, other], [y, L.GlobalAveragePooling1D()(y)])

    return build


def _shared() -> Any:
    a, b = keras.Input((4, 3), name="a"), keras.Input((4, 3), name="b")
    dense = L.Dense(2, activation="tanh", name="shared")
    lstm = L.LSTM(2, name="lstm")
    return keras.Model([a, b], [L.Subtract()([dense(a), dense(b)]), lstm(a), lstm(b), dense(a)])


def _nested() -> Any:
    a, b = keras.Input((4, 3), name="a"), keras.Input((4, 3), name="b")
    p, q = keras.Input((4, 3), name="p"), keras.Input((4, 3), name="q")
    inner = keras.Model(
        [p, q], [L.Dense(2, name="dense")(p), L.Add(name="sum")([p, q])], name="inner"
    )
    last = keras.Sequential([L.Dense(2, name="dense"), L.ReLU(), L.Flatten()], name="last")
    y, z = inner([a, b])
    u, v = inner([b, z])
    return keras.Model([a, b], [last(y), last(u), L.Add()([z, v])])


def _deep() -> Any:
    inner = keras.Sequential([keras.Input((3,)), L.Dense(2)], name="one")
    middle = keras.Sequential([keras.Input((3,)), inner, L.Dense(4)], name="two")
    return keras.Sequential([keras.Input((3,)), middle, L.BatchNormalization()], name="three")


def _named_inputs() -> Any:
    x = {"b": keras.Input((3,), name="b"), "a": keras.Input((2,), name="a")}
    y = L.Concatenate()([x["b"], x["a"]])
    return keras.Model(x, {"z": L.Dense(2)(y), "y": L.Dense(3)(x["a"])})


def _image() -> Any:
    x = keras.Input((8, 8, 3), name="x")
    y = L.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(x)
    y = L.ReLU(max_value=6)(L.BatchNormalization()(y))
    z = L.DepthwiseConv2D(3, padding="same")(L.ZeroPadding2D(1)(y))
    z = L.Cropping2D(1)(L.Activation("softmax")(z))
    y = L.Concatenate()([y, L.Add()([y, z]), L.Dropout(0.5)(L.PReLU(shared_axes=[1, 2])(z))])
    s = L.GlobalAveragePooling2D(keepdims=True)(y)
    s = L.Conv2D(12, 1, activation="hard_sigmoid")(L.Conv2D(3, 1, activation="silu")(s))
    y = L.Multiply()([y, s])
    y = L.LayerNormalization()(L.GroupNormalization(groups=3)(y))
    return keras.Model(x, [L.Dense(2)(L.Flatten()(L.MaxPooling2D()(y))), L.UpSampling2D()(y)])


def _first() -> Any:
    x = keras.Input((3, 8, 6), name="x")
    form = {"data_format": "channels_first"}
    y = L.ZeroPadding2D(1, **form)(x)
    y = L.Cropping2D(((1, 0), (0, 1)), **form)(y)
    return keras.Model(x, [L.Permute((2, 3, 1))(y), L.Flatten(**form)(y)])


def _open_sizes() -> Any:
    x = keras.Input((None, 3), name="x")
    y = L.Bidirectional(L.LSTM(2, return_sequences=True))(x)
    y = L.TimeDistributed(L.Dense(3, activation="relu"))(y)
    y = L.MultiHeadAttention(2, 2)(y, y, use_causal_mask=True)
    y = L.Conv1D(2, 3, padding="same", strides=2)(y)
    return keras.Model(x, L.GlobalMaxPooling1D()(y))


def _half() -> Any:
    x = keras.Input((4,), name="x")
    y = L.Dense(3, activation="relu", dtype="mixed_float16")(x)
    return keras.Model(x, L.Dense(2, dtype="float32")(y))


def _functions() -> Any:
    x, y = keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    found = [
        *(x + y, x - 1.0, 2.0 * y, x / 3, -x, abs(x), 1.0 - x, x @ ops.transpose(y, (0, 2, 1))),
        *(x[:, 1:3], x[..., 0], x[:, -1], x[:, ::2, ::-1], x[:, None], x[:, :, 2:]),
        *(ops.mean(x, axis=-1, keepdims=True), ops.sum(x, axis=(1, 2)), ops.max(x, axis=1)),
        *(ops.var(x, axis=1), ops.logsumexp(x, axis=1), ops.clip(x, -0.5, 0.25)),
        *(ops.softmax(x, axis=1), ops.relu(x), ops.leaky_relu(x, 0.1), ops.exp(x), ops.tanh(x)),
        *(ops.expand_dims(x, 1), ops.squeeze(ops.expand_dims(x, 1), 1), ops.swapaxes(x, 1, 2)),
        *(ops.moveaxis(x, 1, 2), ops.reshape(x, (-1, 24)), ops.reshape(x, (-1, 2, 12))),
        *(*ops.split(x, [2, 3], axis=2), *ops.split(x, 2, axis=1), ops.stack([x, y], 1)),
        *(ops.concatenate([x, y], axis=-1), ops.pad(x, ((0, 0), (1, 2), (0, 0))), ops.flip(x, 1)),
        *(ops.repeat(x, 2, axis=1), ops.tile(x, (1, 2, 1)), ops.take(x, [1, 2], axis=1)),
        *(ops.where(x > 0, x, 0.0), ops.maximum(x, y), ops.minimum(x, 0.5), ops.square(x)),
        *(ops.argmax(x, axis=-1), ops.one_hot(ops.argmax(x, axis=-1), 6), ops.cumsum(x, axis=1)),
        *(ops.logical_and(x > 0, y > 0), ops.cast(x > 0, "float32"), ops.normalize(x, axis=-1)),
        ops.add(x, ops.convert_to_tensor([1.0, 2, 3, 4, 5, 6], dtype=x.dtype)),
    ]
    return keras.Model([x, y], found)


def _drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def _windows(rank: int) -> Build:
    """Functions that convolve and pool, over any number of axes."""

    def build() -> Any:
        x = keras.Input((*(6, 7, 5)[:rank], 4), name="x")
        y = ops.relu(ops.conv(x, _drawn(*[2] * rank, 4, 3), padding="same", strides=2))
        found = [y, ops.conv(x, _drawn(*[2] * rank, 4, 3), dilation_rate=2)]
        found += [ops.max_pool(x, 2), ops.average_pool(x, 2, strides=3, padding="same")]
        found += [ops.adaptive_average_pool(x, (3,) * rank), ops.adaptive_max_pool(x, (3,) * rank)]
        found += [ops.conv(x, _drawn(*[2] * rank, 4, 3), strides=3)]
        if rank < 3:
            found += [ops.depthwise_conv(x, _drawn(*[2] * rank, 4, 3), padding="same")]
            point = _drawn(*[1] * rank, 12, 5)
            found += [ops.separable_conv(x, _drawn(*[2] * rank, 4, 3), point)]
        return keras.Model(x, found)

    return build


def _resized() -> Any:
    x = keras.Input((6, 7, 4), name="x")
    cubic = ops.image.resize(ops.relu(x), (3, 9), interpolation="bicubic", antialias=True)
    return keras.Model(x, [cubic, ops.image.resize(x, (4, 3), crop_to_aspect_ratio=True)])


def _reversed(**arguments: Any) -> Build:
    def build() -> Any:
        words, x = keras.Input((4,), dtype="int32", name="words"), keras.Input((4, 3), name="x")
        table = L.ReversibleEmbedding(5, 3, **arguments)
        return keras.Model([words, x], [table(words), table(x, reverse=True)])

    return build


GRAPHS: dict[str, Build] = {
    "masking": _masking,
    **{
        f"masked {name}": _masked(layer)
        for name, layer in {
            "lstm": lambda x: L.LSTM(2, return_sequences=True)(x),
            "gru last": lambda x: L.GRU(2)(x),
            "rnn back": lambda x: L.SimpleRNN(2, return_sequences=True, go_backwards=True)(x),
            "rnn unrolled": lambda x: L.SimpleRNN(2, return_sequences=True, unroll=True)(x),
            "state": lambda x: L.LSTM(2, return_state=True)(x),
            "stacked": lambda x: L.RNN([L.GRUCell(2), L.LSTMCell(3)], return_sequences=True)(x),
            "zero": lambda x: L.LSTM(2, return_sequences=True, zero_output_for_mask=True)(x),
            "zero last": lambda x: L.LSTM(2, zero_output_for_mask=True)(x),
            "both ways": lambda x: L.Bidirectional(L.LSTM(2, return_sequences=True))(x),
            "both last": lambda x: L.Bidirectional(L.GRU(2), merge_mode="sum")(x),
            "time": lambda x: L.TimeDistributed(L.Dense(2))(x),
            "dense": lambda x: L.Dense(2)(x),
            "relu": lambda x: L.ReLU()(x),
            "norm": lambda x: L.LayerNormalization()(L.BatchNormalization()(x)),
            "dropout": lambda x: L.Dropout(0.5)(x),
            "conv": lambda x: L.Conv1D(3, 2)(x),
            "heads": lambda x: L.MultiHeadAttention(2, 2)(x, x),
            "heads causal": lambda x: L.MultiHeadAttention(2, 2)(x, x, use_causal_mask=True),
            "grouped": lambda x: L.GroupQueryAttention(2, 4, 2)(x, x),
            "attention": lambda x: L.Attention()([x, x]),
            "additive": lambda x: L.AdditiveAttention()([x, x, x]),
            "causal": lambda x: L.Attention(use_scale=True)([x, x], use_causal_mask=True),
            "functions": lambda x: ops.multiply(x, 2.0),
            "reshape": lambda x: L.Reshape((5, 3))(x),
        }.items()
    },
    **{
        f"{kind} {name}": make(merge)
        for kind, make in (("two masks", _two_masks), ("one masked", _one_masked))
        for name, merge in {
            "add": lambda xs: L.Add()(xs),
            "multiply": lambda xs: L.Multiply()(xs),
            "concatenate": lambda xs: L.Concatenate()(xs),
            "concatenate steps": lambda xs: L.Concatenate(axis=1)(xs),
            "attention": lambda xs: L.Attention()(xs),
        }.items()
    },
    "shared": _shared,
    "nested": _nested,
    "deep": _deep,
    "named inputs": _named_inputs,
    "image": _image,
    "channels first": _first,
    "open sizes": _open_sizes,
    "half": _half,
    "functions": _functions,
    "sequential": lambda: keras.Sequential([keras.Input((4, 3)), L.Conv1D(2, 2), L.Flatten()]),
    "without input": lambda: _built(keras.Sequential([L.Dense(3), L.Dense(2)]), (None, 4)),
    "input as output": lambda: _through(),
    **{f"windows {rank}d": _windows(rank) for rank in (1, 2, 3)},
    "resized": _resized,
    "reversible": _reversed(),
    "reversible of two": _reversed(tie_weights=False, mask_zero=True),
    "reversible capped": _reversed(logit_soft_cap=2.0),
}


def _built(model: Any, shape: tuple[int | None, ...]) -> Any:
    model.build(shape)
    return model


def _through() -> Any:
    x = keras.Input((3,), name="x")
    y = L.Dense(2)(x)
    return keras.Model(x, [x, y, y])
