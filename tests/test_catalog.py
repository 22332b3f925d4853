"""Definitions are found under the names that other systems have for them."""

from __future__ import annotations

import pickle

import pytest

from irlang.catalog import builtin, ops_folder
from irlang.interp.shape import check
from irlang.parser import parse

# Layers of Keras 2.4, and losses and optimizers; what they are here. Those that wrap or join other
# layers, and those that change no value, are no operators.
NAMES = """
Add=add Multiply=multiply Average=average_n Minimum=minimum Maximum=maximum Subtract=subtract
Dot=dot Concatenate=concat ReLU=relu ThresholdedReLU=thresholded_relu LeakyReLU=leaky_relu ELU=elu
PReLU=prelu Softmax=softmax Dense=dense Embedding=embedding RepeatVector=repeat_vector
Permute=transpose Reshape=reshape Flatten=flatten Conv1D=conv Conv2D=conv Conv3D=conv
SeparableConv1D=separable_conv SeparableConv2D=separable_conv DepthwiseConv2D=depthwise_conv
Conv2DTranspose=conv_transpose Conv3DTranspose=conv_transpose LocallyConnected1D=locally_connected
LocallyConnected2D=locally_connected MaxPooling1D=max_pool MaxPooling2D=max_pool
AveragePooling3D=avg_pool GlobalMaxPooling2D=global_max_pool GlobalAveragePooling1D=global_avg_pool
SimpleRNN=simple_rnn GRU=gru LSTM=lstm SimpleRNNCell=simple_rnn_cell GRUCell=gru_cell
LSTMCell=lstm_cell ConvLSTM2D=conv_lstm BatchNormalization=batch_norm LayerNormalization=layer_norm
Cropping1D=crop Cropping2D=crop Cropping3D=crop ZeroPadding1D=pad ZeroPadding3D=pad
UpSampling2D=upsample Dropout=dropout AlphaDropout=alpha_dropout SpatialDropout2D=dropout
GaussianDropout=gaussian_dropout GaussianNoise=gaussian_noise Attention=attention
AdditiveAttention=additive_attention MultiHeadAttention=multi_head_attention
GroupNormalization=group_norm RMSNormalization=rms_norm UnitNormalization=l2_normalize
SpectralNormalization=spectral_norm EinsumDense=einsum MeanSquaredError=mse MeanAbsoluteError=mae
MeanAbsolutePercentageError=mape MeanSquaredLogarithmicError=msle Hinge=hinge
SquaredHinge=squared_hinge CategoricalHinge=categorical_hinge LogCosh=log_cosh Huber=huber
KLDivergence=kl_divergence Poisson=poisson CosineSimilarity=cosine_similarity SGD=sgd
RMSprop=rmsprop Adagrad=adagrad Adadelta=adadelta Adam=adam Adamax=adamax Nadam=nadam
torch.nn.functional.conv2d=conv F.gelu=gelu tf.nn.conv2d=conv MatMulInteger=matmul_integer
torch.nn.functional.scaled_dot_product_attention=attention ScatterElements=scatter_elements
"""


@pytest.mark.parametrize("pair", NAMES.split())
def test_a_name_of_another_system_is_found(pair: str) -> None:
    theirs, ours = pair.split("=")
    assert ours in builtin().called(theirs)


def test_what_nobody_calls_so_is_only_suggested() -> None:
    assert builtin().called("convv") == []
    assert builtin().nearest("convv")[0] == "conv"
    assert builtin().called("") == []


def test_another_process_is_sent_no_built_in_definition() -> None:
    """A finding that is sent holds its catalogue, and its calls their definitions."""
    own = "op twice[T: float](x: T[A..]) -> y: T[A..] { y[a..] = x[a..] + x[a..] }\n"
    relu = "op relu[T: float](x: T[A..]) -> y: T[A..] { y[a..] = x[a..] }\n"
    known = builtin()
    written = pickle.dumps(known)
    assert len(written) < 1000
    assert pickle.loads(written) is known  # noqa: S301
    for text in (own, relu):
        mine = known.with_file(parse(f"nnir 1\n{text}", "own.nnir"))
        read = pickle.loads(pickle.dumps(mine))  # noqa: S301
        assert [*read] == [*mine]
        assert read.functions == mine.functions
        assert read.families() == mine.families()
        (op,) = (op for op in mine if known.op(op.name) is not op)
        assert pickle.loads(pickle.dumps(op)) == op  # noqa: S301
        tanh = known.op("tanh")
        assert pickle.loads(pickle.dumps(tanh)) is tanh is read.op("tanh")  # noqa: S301


def test_a_definition_read_alone_is_the_one_that_its_file_has() -> None:
    """Text between two definitions would be lost, or shift the places of those that follow."""
    known = builtin()
    for path in sorted(ops_folder().glob("*.nnir")):
        whole = parse(path.read_text("utf-8"), f"irlang/ops/{path.name}")
        assert not whole.dangling
        assert known.families()[path.stem] == [op.name for op in whole.ops]
        for op in whole.ops:
            alone = known.op(op.name)
            assert alone is not None
            assert (alone.span, alone.doc, alone.outputs) == (op.span, op.doc, op.outputs)
            own = alone.body[len(alone.body) - len(op.body) :]
            assert [(it, it.span) for it in own] == [(it, it.span) for it in op.body]


def test_the_words_of_attributes_are_known_without_parsing() -> None:
    fresh = builtin.__wrapped__()
    told = fresh.choices()
    assert not any(entry.made for entry in fresh._entries.values())
    assert told == {word for op in builtin() for attr in op.attrs for word in attr.type.choices}


def test_a_model_is_checked_with_the_definitions_that_it_calls() -> None:
    text = "model m(x: f32[2, 3]) -> y: f32[2, 3] {\n  y = softmax(x)\n}\n"
    fresh = builtin.__wrapped__()
    assert check(parse(text, "m.nnir"), fresh).valid
    assert sum(entry.made is not None for entry in fresh._entries.values()) < 10
