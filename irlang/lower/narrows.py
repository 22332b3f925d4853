"""What a framework documents to be narrower than the definition of an operator requires.

A call that breaks such a condition has a value by the definition, yet the framework says that it
takes no such call: where it does, and says nothing, it has accepted what its own documentation
rules out. The opposite is `irlang.lower.admits`. Every entry is a statement of the framework's
documentation: a condition in the language of definitions, and the words behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from irlang import ast
from irlang.lower.target import describe
from irlang.parser import parse_expr

_SIGNS = "all({0}.. < {1}..) (target[{0}..] == 1 or target[{0}..] == -1)"
_SHARES = "all(s.. < S..) 0 <= target[s..] <= 1"
_CHANCES = _SHARES.replace("target", "probs")
_UNITS = ("units", "1 <= H", "units: positive integer, the dimensionality of the output")

# Keras refuses it in `Conv` itself, of which that is documented as well.
_STRIDES = "all(d < rank(S)) stride[d] == 1"
_ONE_OF_TWO = (
    "strides", f"({_STRIDES}) or ({_STRIDES.replace('stride', 'dilation')})",
    "strides > 1 is incompatible with dilation_rate > 1",
)  # fmt: skip

# By framework and operator: the name of a condition, itself, and what is written.
_NARROWS: Mapping[str, Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "keras": {
        "leaky_relu": (("slope", "0 <= alpha", "LeakyReLU: the slope is a float >= 0"),),
        "dense": (("units", "1 <= F", "Dense: units is a positive integer"),),
        "conv": (("filters", "1 <= F", "Conv: filters is the number of filters, at least 1"),),
        "conv_transpose": (("filters", "1 <= G", "ConvTranspose: as of Conv"),),
        "separable_conv": (("filters", "1 <= F", "SeparableConv: as of Conv"), _ONE_OF_TWO),
        "depthwise_conv": (
            ("multiplier", "1 <= M", "DepthwiseConv: depth_multiplier is a positive integer"),
            _ONE_OF_TWO,
        ),
        "conv_lstm": (("filters", "1 <= F", "ConvLSTM: as of Conv"),),
        "locally_connected": (("filters", "1 <= F", "LocallyConnected: as of Conv"),),
        "embedding": (("output_dim", "1 <= D", "Embedding: output_dim is a positive integer"),),
        "simple_rnn": (_UNITS,),
        "gru": (_UNITS,),
        "lstm": (_UNITS,),
        "simple_rnn_cell": (_UNITS,),
        "gru_cell": (_UNITS,),
        "lstm_cell": (_UNITS,),
    },
    "torch": {
        "margin_ranking": (("signs", _SIGNS.format("s", "S"), "MarginRankingLoss: y is 1 or -1"),),
        "hinge_embedding": (
            ("signs", _SIGNS.format("s", "S"), "HingeEmbeddingLoss: y contains 1 or -1"),
        ),
        "soft_margin": (("signs", _SIGNS.format("s", "S"), "SoftMarginLoss: y contains 1 or -1"),),
        "cosine_embedding": (
            ("signs", _SIGNS.format("a", "A"), "CosineEmbeddingLoss: y contains 1 or -1"),
            ("margin", "-1 <= margin <= 1", "CosineEmbeddingLoss: margin is from -1 to 1"),
        ),
        "binary_cross_entropy": (
            ("shares", _SHARES, "BCELoss: targets are numbers between 0 and 1"),
            ("chances", _CHANCES, "binary_cross_entropy: input is probabilities"),
        ),
        "binary_cross_entropy_logits": (
            ("shares", _SHARES, "BCEWithLogitsLoss: targets are numbers between 0 and 1"),
        ),
        "categorical_cross_entropy": (
            (
                "shares",
                "all(a.. < A.., k < K, b.. < B..) 0 <= target[a.., k, b..] <= 1",
                "CrossEntropyLoss: each probability of a class is between 0 and 1",
            ),
        ),
        "multilabel_soft_margin": (
            (
                "labels",
                "all(a.. < A.., k < K) (target[a.., k] == 0 or target[a.., k] == 1)",
                "MultiLabelSoftMarginLoss: a label is 0 or 1",
            ),
        ),
        "ctc": (
            (
                "no_blank",
                "all(n < N, s < S) s >= target_lengths[n] or labels[n, s] != blank",
                "CTCLoss: the target index cannot be blank",
            ),
        ),
    },
    "tf": {
        "binary_cross_entropy_logits": (
            ("shares", _SHARES, "sigmoid_cross_entropy_with_logits: labels are between 0 and 1"),
        ),
        "linspace": (("positive", "1 <= count", "tf.raw_ops.LinSpace: num is more than 0"),),
        "fake_quantize_range": (
            (
                "ordered",
                "all(z.. < Z..) low[z..] <= high[z..]",
                "fake_quant_with_min_max_vars: [min; max] define the clamping range",
            ),
        ),
    },
    "theano": {
        "one_hot": (
            (
                "classes",
                "all(s.. < S..) 0 <= ids[s..] < depth",
                "K.one_hot: num_classes is the number of classes to consider",
            ),
        ),
    },
    "keras 2": {
        "thresholded_relu": (("threshold", "0 <= theta", "ThresholdedReLU: theta is >= 0"),),
    },
}

# PyTorch, with which Keras may compute, refuses all else.
_IN_BETWEEN = (
    ("shares", _SHARES, "BinaryCrossentropy: y_true is either 0 or 1"),
    ("chances", _CHANCES, "BinaryCrossentropy: y_pred is a probability, a value in [0, 1]"),
)
_ROWS = "all(a.. < A.., b.. < B..) abs(sum(k < K) target[a.., k, b..] - 1) <= 1e-2"

_OF_NONE = (("elements", "1 <= size(R)", "ReduceMean: the mean of an empty set is undefined"),)
_NO_END = (
    ("elements", "1 <= size(R)", "ops.max, ops.min: as of NumPy, which refuses no elements"),
)

_PLACES = "all(n < N, c < C, o.. < O..)"

# The same of what is taken without a word, but of which nothing is promised.
_UNPROMISED: Mapping[str, Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "torch": {
        "max_unpool": (
            (
                "distinct",
                f"{_PLACES} count(p.. < O.. | indices[n, c, p..] == indices[n, c, o..]) == 1",
                "nn.MaxUnpool2d: what repeated indices give may be nondeterministic",
            ),
        ),
    },
    "tf": {
        "bit_shift": (
            (
                "width",
                "all(s.. < S..) 0 <= b[s..] < bits(T)",
                "tf.bitwise.left_shift: below 0, or by the width, it is implementation defined",
            ),
        ),
        **dict.fromkeys(
            ("gammainc", "gammaincc"),
            (
                (
                    "zeros",
                    "all(s.. < S..) not a[s..] < 0 and (a[s..] != 0 or x[s..] != 0)",
                    "tf.math.igamma: a quotient of integrals, of which a is above 0",
                ),
            ),
        ),
        "sparse_dense_arithmetic": (
            (
                "divisors",
                'kind != "divide" or (all(z.. < Z..) dense[z..] != 0)',
                "tf.raw_ops.SparseDenseCwiseDiv: no element of dense is 0, since 2.6",
            ),
        ),
        "pad": (
            (
                "mirror",
                'mode != "reflect" or (all(d < rank(S)) 1 <= S[d])',
                "tf.pad, REFLECT: paddings are no greater than the size less one, those of 0 too",
            ),
        ),
        "categorical_cross_entropy": (
            (
                "distributions",
                _ROWS,
                "softmax_cross_entropy_with_logits: each row of labels is a distribution",
            ),
        ),
    },
    "keras": {
        "categorical_cross_entropy": (
            ("distributions", _ROWS, "CategoricalCrossentropy: labels are one-hot"),
        ),
        "reduce_max": _NO_END,
        "reduce_min": _NO_END,
        "binary_cross_entropy": _IN_BETWEEN,
        "binary_focal_cross_entropy": _IN_BETWEEN,
    },
    "onnxruntime": {"reduce_mean": _OF_NONE},
    "openvino": {"reduce_mean": _OF_NONE},
}


def narrower(target: str) -> Mapping[str, tuple[ast.Require, ...]]:
    """By operator, the conditions that a target's documentation adds, as requirements of it."""
    described = describe(target)
    if "keras" not in (described.framework, described.mode):
        return _conditions(described.framework)
    old = described.framework != "keras" or described.release < (3,)
    on_theano = _conditions("theano") if described.mode == "theano" else {}
    return {**_conditions("keras"), **(_conditions("keras 2") if old else {}), **on_theano}


def unpromised(target: str) -> Mapping[str, tuple[ast.Require, ...]]:
    """The same with the conditions without which nothing is promised of a call, though it is taken.

    They are of a framework and of all that is built on it.
    """
    described = describe(target)
    found: dict[str, tuple[ast.Require, ...]] = dict(narrower(target))
    for layer in dict.fromkeys((described.framework, described.mode)):
        for operator, rows in _conditions(layer, promised=False).items():
            found[operator] = (*found.get(operator, ()), *rows)
    return found


@cache
def _conditions(framework: str, *, promised: bool = True) -> Mapping[str, tuple[ast.Require, ...]]:
    """Each made once: a requirement is known by its identity."""
    rows = _NARROWS if promised else _UNPROMISED
    return {
        operator: tuple(_condition(*row) for row in said)
        for operator, said in rows.get(framework, {}).items()
    }


def _condition(name: str, condition: str, message: str) -> ast.Require:
    return ast.Require(name, parse_expr(condition), message)
