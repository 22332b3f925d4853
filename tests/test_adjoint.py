"""Gradients of every definition against central differences of the exact meaning.

One random direction sees every partial derivative. The difference quotient is taken at 40 digits
with steps h and 2 h, whose difference bounds its own error (h² f''' / 6 against 4 h² f''' / 6);
the constants in derivative texts are doubles, so that a relative error of a few 2**-53 is theirs.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from irlang import ast
from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.catalog import builtin
from irlang.equation_text import definition, show
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import exact, rounding, vector
from irlang.interp.balls import Ball
from irlang.interp.draws import completed
from irlang.interp.plain import load
from irlang.interp.schedule import Recurrence, schedule
from irlang.parser import parse
from irlang.parser.printer import print_statement

DIGITS = 40
STEP = 12  # h = 10**-12

# A line: operator, inputs (`name=shape`, `i5:` integers below 5, `b:` booleans, members of a family
# with `/`), then attributes after `;`, then `in low,high` for the values of real inputs.
CASES = """
relu x=5
relu x=5; max_value=0.5 negative_slope=0.25
relu x=5; threshold=0.4 negative_slope=0.25
leaky_relu x=5; alpha=0.2
prelu x=2,3 slope=3
thresholded_relu x=5; theta=0.3
elu x=5; alpha=0.7
selu x=5
celu x=5; alpha=0.6
gelu x=4
sigmoid x=4
silu x=4; alpha=1.5
mish x=4
softplus x=4; beta=2
squareplus x=4; b=2
sparse_plus x=5; in -3,3
sparsemax x=2,4; axis=1
sparsemax x=3,2; axis=0
softsign x=4
hard_sigmoid x=5
hard_swish x=5
hard_tanh x=5
log_sigmoid x=4
tanh_shrink x=4
soft_shrink x=5
hard_shrink x=5
glu x=2,4
glu x=4,2; axis=0
add a=2,3 b=3
subtract a=2,1 b=1,3
multiply a=2,3 b=2,1
divide a=2,3 b=3 in 0.5,2
floor_divide a=3 b=3 in 0.5,2
modulo a=4 b=4 in 0.3,2
power a=2,2 b=2 in 0.4,2
maximum a=2,3 b=3
minimum a=2,3 b=3
squared_difference a=2,3 b=3
add_n xs=2,3/3/1,3
multiply_n xs=2,3/3/1,3
average_n xs=2,3/2,3
maximum_n xs=4/4/4
minimum_n xs=4/4/4
identity x=3
negate x=3
abs x=4
sign x=4
square x=4
reciprocal x=3 in 0.4,2
floor x=3
ceil x=3
round x=3
trunc x=3
sqrt x=3 in 0.3,2
rsqrt x=3 in 0.3,2
exp x=3
expm1 x=3
log x=3 in 0.3,2
log1p x=3 in -0.5,2
sin x=3
cos x=3
tan x=3 in -1,1
asin x=3 in -0.9,0.9
acos x=3 in -0.9,0.9
atan x=3
sinh x=3
cosh x=3
tanh x=3
asinh x=3
acosh x=3 in 1.2,3
atanh x=3 in -0.8,0.8
erf x=3
determinant x=2,3,3
inverse x=2,2
cholesky x=2,1,1 in 0.5,2
triangular_solve a=3,3 b=3,2 in 0.5,1
triangular_solve a=2,3,3 b=2,3,2; lower=false unit_diagonal=true in 0.5,1
lgamma x=3 in 0.5,3
digamma x=3 in 0.5,3
polygamma x=3; n=2 in 0.5,3
erfc x=3
erfcx x=3
erfinv x=3 in -0.8,0.8
erfcinv x=3 in 0.2,1.8
ndtr x=3
log_ndtr x=3 in -3,3
ndtri p=3 in 0.1,0.9
bessel_i x=3
bessel_i x=3; order=one
bessel_i x=3; scaled=true
bessel_i x=3; order=one scaled=true
bessel_k x=3 in 0.3,3
bessel_k x=3; order=one in 0.3,3
bessel_k x=3; scaled=true in 0.3,3
bessel_k x=3; order=one scaled=true in 0.3,3
clip x=5; min=-0.5 max=0.6
where condition=b:2,3 a=3 b=2,1
cast x=3; to=f32
embedding table=4,2 ids=i4:2,2
gather x=3,4 ids=i4:2; axis=1
take_along_axis x=2,4 ids=i4:2,3
gather_nd x=3,2,2 ids=i2:3,2
dense x=2,3 w=3,2 b=2
dense x=2,2,3 w=3,2
matmul a=2,2,2 b=2,2
dot a=2,3 b=2,3; axes=[1,1]
dot a=2,3,2 b=2,2; axes=[2,1]
outer a=2 b=3
bilinear a=2,2 b=2,3 w=2,2,3 c=2
mse prediction=2,3 target=2,3
mae prediction=2,3 target=2,3
mape prediction=2,3 target=2,3
msle prediction=2,3 target=2,3 in 0.1,2
huber prediction=2,3 target=2,3
log_cosh prediction=2,3 target=2,3
hinge prediction=2,3 target=2,3
squared_hinge prediction=2,3 target=2,3
poisson prediction=2,3 target=2,3 in 0.2,2
cross_entropy logits=2,3 labels=i3:2
cross_entropy logits=3,3 labels=i3:3 weight=3; label_smoothing=0.25 ignore_index=[1] in 0.5,2
nll log_probs=3,3 labels=i3:3 weight=3; ignore_index=[1] in 0.5,2
categorical_cross_entropy logits=2,3 target=2,3 weight=3; label_smoothing=0.25
binary_cross_entropy probs=2,3 target=2,3 weight=3; label_smoothing=0.25 in 0.2,0.8
binary_cross_entropy_logits logits=2,3 target=2,3 weight=3 pos_weight=2,1
binary_focal_cross_entropy probs=2,3 target=2,3; gamma=2.5 in 0.2,0.8
categorical_focal_cross_entropy probs=2,3 target=2,3 in 0.2,0.8
dice prediction=2,3 target=2,3 in 0.2,0.8
tversky prediction=2,3 target=2,3; axes=[1] in 0.2,0.8
smooth_l1 prediction=2,3 target=2,3; beta=0.5
gaussian_nll prediction=2,3 target=2,3 var=2,1 in 0.2,2
poisson prediction=2,3 target=2,3; full=true in 1.1,2
squared_hinge prediction=2,3 target=2,3; convert_binary=true
triplet_margin anchor=2,3 positive=2,3 negative=2,3; swap=true
triplet_margin anchor=2,3 positive=2,3 negative=2,3; p=3
cosine_embedding a=2,3 b=2,3 target=2
margin_ranking a=2,3 b=2,3 target=2,3
hinge_embedding distance=2,3 target=2,3
soft_margin prediction=2,3 target=2,3
multi_margin x=2,3 labels=i3:2 weight=3; p=2
multilabel_margin x=2,3 labels=i3:2,3
gemm a=2,3 b=2,2 c=3,1; alpha=0.5 beta=2 transpose_a=true
spectral_norm w=2,2,2 u=2; iterations=2
spectral_norm w=2,2 u=2 v=2; iterations=0
sgd x=3 gradient=3 velocity=3 lr=; momentum=0.5 dampening=0.25 in 0.2,1
rmsprop x=2 gradient=2 square=2 velocity=2; momentum=0.5 in 0.2,1
rmsprop x=2 gradient=2 square=2 mean=2; centered=true in 0.5,0.6
adagrad x=3 gradient=3 square=3 step=i5:; lr_decay=0.5 in 0.2,1
adadelta x=3 gradient=3 square=3 step_square=3 in 0.2,1
adam x=2 gradient=2 mean=2 square=2 largest=2; bias_correction=true in 0.2,1
adamax x=3 gradient=3 mean=3 largest=3 in 0.2,1
nadam x=3 gradient=3 mean=3 square=3 in 0.2,1
ctc log_probs=4,2,3 labels=i3:2,2 input_lengths=i5:2 target_lengths=i3:2; blank=0 zero_infinity=true
ctc_logits logits=4,2,3 labels=i3:2,2 input_lengths=i5:2 target_lengths=i3:2; blank=0
cross_entropy_probs probs=2,3 labels=i3:2 in 0.1,0.9
nll log_probs=2,3,2 labels=i3:2,2; axis=1
categorical_cross_entropy logits=2,3 target=2,3; label_smoothing=0.1
categorical_cross_entropy_probs probs=2,3 target=2,3 in 0.1,0.9
kl_divergence probs=2,3 target=2,3 in 0.1,0.9
kl_div log_probs=2,3 target=2,3 in 0.1,0.9
categorical_hinge prediction=2,3 target=2,3
cosine_similarity prediction=2,3 target=2,3
binary_cross_entropy probs=2,2 target=2,2 in 0.1,0.9
binary_cross_entropy_logits logits=2,2 target=2,2
dropout x=3,2; rate=0.4 training=true
dropout x=2,2; rate=0.4
alpha_dropout x=3,2; rate=0.4 training=true
gaussian_noise x=3; stddev=0.5 training=true
gaussian_dropout x=3; rate=0.3 training=true
bernoulli p=3; dtype=f64 in 0.1,0.9
batch_norm x=2,2,2 scale=2 bias=2 mean=2 var=2; axis=1 in 0.2,2
batch_norm_train x=3,2 scale=2 bias=2
layer_norm x=2,3 gamma=3 beta=3
layer_norm x=2,2,2; axes=[1,2]
group_norm x=2,4,2 gamma=4 beta=4; groups=2
instance_norm x=2,2,3 gamma=2
rms_norm x=2,3 gamma=3
normalize x=2,3; p=3 in 0.2,2
l2_normalize x=2,3
clip_by_norm x=2,3; limit=0.5
clip_by_norm x=2,3; limit=50 axes=[0,1]
local_response_norm x=1,4,2; size=3
softmax x=2,3
softmax x=2,3,2; axis=1
log_softmax x=2,3
max_pool x=1,1,4,4; window=2 stride=2
max_pool x=1,2,6; window=3 stride=2 before=1 after=1
max_pool x=1,1,7; window=2 dilation=2
avg_pool x=1,1,4,4; window=2 stride=1
avg_pool x=1,1,6; window=3 stride=2 before=1 after=1
lp_pool x=1,1,5; window=2 p=2 in 0.2,2
lp_pool x=1,1,5; window=2 p=3 in 0.2,2
global_max_pool x=1,2,2,2
global_avg_pool x=1,2,2,2
conv x=1,2,5 w=2,2,3 b=2; before=1 after=1
conv x=1,2,6 w=4,1,2; groups=2 stride=2
conv x=1,1,4,4 w=1,1,2,2; dilation=[2,1] stride=[1,2]
conv x=2,2,4 w=3,2,1
conv x=8,1,3 w=1,1,3
conv_transpose x=1,2,3 w=2,2,3 b=2; before=1 after=1
conv_transpose x=1,4,3 w=4,1,2 b=2; groups=2 stride=2
conv_transpose x=1,1,2,2 w=1,1,3,2; dilation=[2,1] stride=[1,3]
depthwise_conv x=1,2,5 w=2,2,3 b=4; stride=2
separable_conv x=1,2,4 w=2,1,2 p=2,2 b=2
locally_connected x=1,1,4 w=3,2,1,2 b=3,2
locally_connected x=1,1,4 w=4,1,1,2
locally_connected x=1,1,3,3 w=4,1,1,2,2
attention q=1,2,2,2 k=1,1,3,2 v=1,1,3,2 bias=2,1 mask=b:1,1
multi_head_attention q=1,2,2 k=1,2,2 v=1,2,2 wq=2,2,1 wk=2,2,1 wv=2,2,1 wo=2,1,2 bo=2
attention_scores q=1,2,2,2 k=1,1,3,2 bias=2,1; softcap=1.5 causal=false
attention_scores q=1,2,2,2 k=1,1,3,2 bias=2,1 mask=b:2,3; stage=softmax masked_rows=zero
attention q=1,1,2,2 k=1,1,3,2 v=1,1,3,1; past=1 left_window_size=1 masked_rows=zero
multi_head_attention q=1,2,2 k=1,2,2 v=1,2,2 wq=2,4,1 wk=2,2,1 wv=2,2,2 wo=4,2,1 bk=2,1
additive_attention q=1,2,2 k=1,3,2 v=1,3,1 scale=2
linear_attention q=1,2,2,2 k=1,1,2,2 v=1,1,2,1 decay=2,1 beta=1,1,2 state=1,1,2,1
alibi_bias slopes=2; queries=2 keys=3 past=1
swiglu gate=4 x=4; alpha=1.5
rotary_embedding x=2,2,4 cos=2,1,2 sin=2,2
rotary_embedding x=1,2,4 cos=2,2 sin=2,2
rotary_embedding x=1,2,5 cos=2,2 sin=2,2
simple_rnn x=2,2,2 w=2,2 r=2,2 b=2 h0=2,2
gru x=2,2,2 w=3,2,2 r=3,2,2 b=3,2 rb=3,2 h0=2,2
lstm x=2,2,2 w=4,2,2 r=4,2,2 b=4,2 h0=2,2 c0=2,2 in -0.4,0.4
lstm x=3,1,2 w=4,1,2 r=4,1,1 mask=b:3,1
lstm x=3,1,1 w=4,2,1 r=4,2,2
lstm x=2,24,1 w=4,1,1 r=4,1,1
lstm x=2,1,1 w=4,2,1 r=4,2,2 p=3,2; input_forget=true hidden_activation=softsign
gru x=2,1,2 w=3,1,2 r=3,1,1 mask=b:2,1; zero_output_for_mask=true activation=gelu
conv_lstm x=2,1,1,3 w=4,1,1,2 r=4,1,1,2 b=4,1
conv_lstm x=2,1,1,2,2 w=4,1,1,2,2 r=4,1,1,1,2 h0=1,1,2,2 c0=1,1,2,2 mask=b:2,1; pad=same
simple_rnn_cell x=1,2 w=2,2 r=2,2 b=2 h=1,2
gru_cell x=1,2 w=3,2,2 r=3,2,2 b=3,2 h=1,2
lstm_cell x=1,2 w=4,2,2 r=4,2,2 b=4,2 h=1,2 c=1,2
reduce_sum x=2,3; axes=[1]
reduce_mean x=2,3; axes=[0]
reduce_prod x=2,3; axes=[1]
reduce_prod x=2,2,2; axes=[0,2]
reduce_max x=2,3; axes=[1]
reduce_max x=2,3,2; axes=[0,2]
reduce_min x=2,3; axes=[0]
reduce_variance x=2,3; axes=[1] correction=1
reduce_std x=2,3; axes=[1]
reduce_logsumexp x=2,3; axes=[1]
reduce_l1 x=2,3; axes=[1]
reduce_l2 x=2,3; axes=[1]
reduce_sum_square x=2,3; axes=[1]
cumsum x=2,3
cumsum x=3,2; axis=0
cumprod x=2,3
top_k x=2,4; k=2
reshape x=2,3,4; shape=[4,6]
reshape x=2,6; shape=[3,-1]
reshape x=12; shape=[2,2,3]
flatten x=2,3,2
squeeze x=2,1,3; axes=[1]
expand_dims x=2,3; axes=[1]
transpose x=2,3,2; perm=[2,0,1]
sort x=2,4; axis=1
kth_value x=2,4; k=2
hardmax x=4
cummax x=2,4
cummin x=2,4
logcumsumexp x=2,4
power a=2,2 b=i3:2 in 0.4,2
gather_nd x=2,3,2 ids=i2:2,2,1; batch_dims=1
reverse_sequence x=2,4 lengths=i4:2
scatter_elements x=4,3 ids=i4:2,3 updates=2,3
scatter_elements x=3,4 ids=i4:3,2 updates=3,2; axis=1 reduction=mul
scatter_nd x=4,3 ids=i3:3,2 updates=3
scatter_nd x=4,3 ids=i3:2,1 updates=2,3
scatter_slices x=4,3 ids=i4:3 updates=3,3
segment_reduce x=5,2 ids=i2:5; segments=2
tensor_scatter x=2,4,2 update=2,2,2 start=i3:2
diagonal x=3,4; offset=1
diag_embed x=2,3; offset=-1
trace x=3,3
kron a=2,2 b=2,3
cross a=2,3 b=2,3
meshgrid xs=2/3
einsum xs=2,3/3,4; labels=[0,1,1,2] output=[0,2]
einsum xs=3,3; labels=[0,0] output=[0]
einsum xs=2,3,4/2,4,3/3; labels=[0,1,2,0,2,3,3]
concat xs=2,2/2,1/2,3; axis=1
stack xs=2,2/2,2; axis=1
split x=5,2; parts=2
split x=2,5; axis=1 sizes=[1,3,1]
slice x=5,4; begin=[1,0] end=[5,3] step=[2,1]
slice x=6; begin=[4] end=[0] step=[-2]
pad x=3,4; before=[1,2] after=[2,1]
crop x=4,4; before=[1,0] after=[1,2]
repeat x=2,3; repeats=2
tile x=2,3; repeats=[2,3]
repeat_vector x=2,2; n=3
reverse x=2,3; axes=[1]
roll x=2,5; shift=[1,2]
broadcast_to x=1,3; shape=[2,2,3]
trilu x=3,4; k=1
upsample x=1,1,2,3
resize x=1,1,3; size=[5]
resize x=1,1,5; size=[3]
resize x=1,1,3; size=[5] mode=linear
resize x=1,1,2,3; size=[3,2] mode=cubic
resize x=1,1,5; size=[2] mode=linear antialias=true exclude_outside=true coord=half_pixel
space_to_depth x=1,2,4,2; block_size=2
depth_to_space x=1,8,1,2; block_size=2
channel_shuffle x=1,4,2; groups=2
space_to_batch x=1,1,3,4; block_size=[2,2] before=[1,0]
batch_to_space x=4,1,2,2; block_size=[2,2] before=[1,0]
center_crop_pad x=5,2; size=[2,5]
grid_sample x=1,2,3,4 grid=1,2,2,2
grid_sample x=1,1,4 grid=1,3,1; mode=cubic
affine_grid theta=1,2,3; size=[2,3]
roi_align x=1,2,4,5 rois=2,4 batch=i1:2; size=[2,2] sampling_ratio=2 in 0,3
roi_align x=2,5,1 rois=8,2 batch=i2:8; size=[1] sampling_ratio=2 in 0,1
max_roi_pool x=1,2,4,5 rois=1,5; size=[2,2] in 0,0.9
crop_and_resize x=1,2,3,4 boxes=2,4 batch=i1:2; size=[2,3] in 0.1,0.9
deform_conv x=1,2,4,4 w=2,2,2,2 offset=1,8,3,3 b=2 mask=1,4,3,3
causal_conv x=2,2,3 w=2,1,3 b=2 past=2,2,2
im2col x=1,2,4,3; window=[2,2] stride=[2,1] before=[1,0]
col2im x=1,8,8; size=[4,3] window=[2,2] stride=[2,1] before=[0,1] after=[0,1]
max_pool_with_argmax x=1,2,4,5; window=[2,2] pad=same
max_unpool x=1,1,2,2 indices=i9:1,1,2,2; size=[3,3]
adaptive_avg_pool x=1,2,4,5; size=[3,2]
adaptive_max_pool x=1,2,4,5; size=[3,2]
quantize_linear x=3 scale= in 0.3,2
dequantize_linear x=i9:3 scale= in 0.3,2
fake_quantize x=3 scale= in 0.3,2
dynamic_quantize_linear x=4
dft x=2,5,2; axis=1
dft x=3,2; axis=0 length=4 inverse=true onesided=true
stft x=1,8,1 window=4; length=4 step=2
frames x=2,7; length=3 step=2
atan2 a=2,3 b=3
hypot a=2,3 b=3
log_add_exp a=2,3 b=3
fmax a=2,3 b=3
fmin a=2,3 b=3
heaviside x=4 at_zero=4
copysign a=2,3 b=3
ldexp x=4 n=i4:4
divide_no_nan a=2,3 b=3; in 0.3,2
multiply_no_nan a=2,3 b=3
xlogy x=4 y=4; in 0.3,2
xlog1py x=4 y=4; in -0.5,2
lerp a=2,3 b=3 w=2,1
addcmul x=2,3 a=3 b=2,1; value=0.5
addcdiv x=2,3 a=3 b=2,1; value=0.5 in 0.3,2
frac x=5
nan_to_num x=4
exp2 x=4
log2 x=4; in 0.3,2
log10 x=4; in 0.3,2
logit x=4; in 0.1,0.9
logit x=4; eps=0.25 in 0.1,0.9
cbrt x=4
sinc x=4
entr x=4; in 0.3,2
deg2rad x=4
rad2deg x=4
reduce_nansum x=2,3; axes=[1]
reduce_nanmean x=2,3; axes=[0]
reduce_nanmax x=2,3; axes=[1]
reduce_nanmin x=2,3; axes=[1]
quantile x=2,4; q=0.3
differences x=2,5; n=2
trapezoid x=2,4; dx=0.5
cov x=2,4
log_determinant x=2,3,3
solve a=2,2,2 b=2,2,2
matrix_power x=2,3,3; n=3
vander x=3; columns=4
band_part x=2,3,4; lower=1 upper=0
cdist a=2,3,2 b=2,2,2
cdist a=3,2 b=2,2; p=3
pairwise_distance a=3,2 b=3,2
tensordot a=2,3,2 b=2,2,3; a_axes=[2,0] b_axes=[0,1]
baddbmm c=2,2,3 a=2,2,2 b=2,2,3; alpha=0.5 beta=2
embedding_bag table=4,2 ids=i4:2,3
embedding_bag table=4,2 ids=i4:2,3 weights=2,3; mode=sum
rot90 x=2,3; k=3
grey_dilation x=1,1,3,4 w=1,2,2
grey_erosion x=1,1,3,4 w=1,2,2
crelu x=2,3; axis=0
l2_loss x=2,3
psnr a=1,2,2,2 b=1,2,2,2; in 0.1,1
total_variation x=1,3,2,2
adjust_contrast x=1,2,3,2; factor=1.7
image_standardization x=1,2,3,2
sobel_edges x=1,2,3,2
rgb_to_grayscale x=2,3; in 0.1,1
rgb_to_hsv x=2,3; in 0.1,1
hsv_to_rgb x=2,3; in 0.1,1
adjust_saturation x=2,3; factor=0.7 in 0.1,1
adjust_hue x=2,3; delta=0.3 in 0.1,1
reduce_log_sum x=2,3; axes=[1] in 0.1,1
global_lp_pool x=1,2,3
global_lp_pool x=1,2,3; p=3 in 0.1,1
mean_variance_norm x=2,3; axes=[1]
cumulative_trapezoid x=2,4; dx=0.5
corrcoef x=2,4
polyval p=3 x=2,2
compress x=4,2 keep=b:4; size=3
unique x=4; size=4
multilabel_soft_margin x=2,3 target=2,3 weight=3
"""
LINES = CASES.strip().splitlines()
CHOICES_LIMIT = 24
MANY = 6  # choices, of which one is tried with one line of an operator that has many combinations
TWICE = (
    "dense", "conv", "softmax", "gelu", "lstm", "cumsum", "layer_norm", "max_pool", "power",
    "reshape", "concat", "log_softmax",
)  # fmt: skip
_EACH = 10  # of so many others one is differentiated twice as well


def value(text: str) -> Any:
    if text.startswith("["):
        return tuple(int(part) for part in text[1:-1].split(","))
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def drawn(text: str, rng: np.random.Generator, ends: tuple[float, float]) -> tuple[str, Any]:
    kind, _, shape = text.rpartition(":")
    sizes = tuple(int(n) for n in shape.split(",") if n)
    if kind == "b":
        return "bool", np.asarray(rng.random(sizes) < 0.8)
    if kind:
        return "i64", rng.integers(0, int(kind[1:]), sizes)
    return "f64", rng.uniform(*ends, sizes)


def case(line: str) -> tuple[ast.Op, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Operator, types, values by name in the expansion, attributes."""
    rng = np.random.default_rng(zlib.crc32(line.encode()))
    head, _, ends = line.partition(" in ")
    call, _, attributes = head.partition(";")
    name, *inputs = call.split()
    low, high = (float(e) for e in ends.split(",")) if ends else (-1.5, 1.5)
    op = builtin().op(name)
    assert op is not None, name
    types: dict[str, Any] = {}
    values: dict[str, Any] = {}
    families = {i.name for i in op.inputs if i.family}
    for given in inputs:
        formal, _, text = given.partition("=")
        members = [drawn(part, rng, (low, high)) for part in text.split("/")]
        infos = tuple(eq.TensorInfo(array.shape, dtype) for dtype, array in members)
        types[formal] = infos if formal in families else infos[0]
        for position, (_, array) in enumerate(members):
            values[f"{formal}[{position}]" if formal in families else formal] = array
    attrs = {k: value(v) for k, _, v in (part.partition("=") for part in attributes.split())}
    return op, types, values, attrs


def smaller(line: str) -> list[str]:
    """The lines of the same operator that have fewer numbers, or come before."""

    def size(at: int) -> tuple[int, int]:
        return sum(np.size(array) for array in case(LINES[at])[2].values()), at

    same = [at for at, other in enumerate(LINES) if other.split()[0] == line.split()[0]]
    return [LINES[at] for at in same if size(at) < size(LINES.index(line))]


@functools.cache
def chosen(line: str) -> tuple[dict[str, Any], ...]:
    """Every choice of every enum and truth value that fits.

    Where there are many combinations each choice is tried by itself, and those of an enum that has
    many, as that of an activation, with the smallest call of the operator that they fit.
    """
    op, types, _, attrs = case(line)
    choices: list[list[tuple[str, Any]]] = []
    for attr in op.attrs:
        if attr.name not in attrs and attr.type.kind == "enum":
            choices.append([(attr.name, choice) for choice in attr.type.choices])
        elif attr.name not in attrs and attr.type.name == "bool":
            choices.append([(attr.name, False), (attr.name, True)])
    combined = [dict(pairs) for pairs in itertools.product(*choices)]
    if len(combined) > CHOICES_LIMIT:
        before = [one for other in smaller(line) for one in chosen(other)]
        combined = [
            dict([pair])
            for pairs in choices
            for place, pair in enumerate(pairs)
            if not place or len(pairs) <= MANY or dict([pair]) not in before
        ]
    return tuple(one for one in combined if not instantiate(op, types, {**attrs, **one}).faults)


def variants(line: str) -> Iterator[tuple[dict[str, Any], eq.Expansion]]:
    """The call with every choice of every enum and truth value."""
    op, types, _, attrs = case(line)
    for one in chosen(line):
        yield one, expand(instantiate(op, types, {**attrs, **one}), builtin())


def moved(array: Any, direction: Any, step: Any) -> Any:
    """`array + step * direction` in the precision at hand."""
    result = np.empty(array.shape, dtype=object)
    for at in np.ndindex(array.shape):
        result[at] = mpmath.mpf(float(array[at])) + step * mpmath.mpf(float(direction[at]))
    return result


def along(
    expansion: eq.Expansion,
    values: Mapping[str, Any],
    direction: Mapping[str, Any],
    weights: Mapping[str, Any],
) -> tuple[Any, Any]:
    """The derivative of the weighted sum of outputs along a direction, and a bound of its error."""
    found = []
    for times in (1, 2):
        sums = []
        for sign in (1, -1):
            step = sign * times * mpmath.mpf(10) ** -STEP
            there = {n: moved(values[n], direction[n], step) for n in direction}
            tensors = exact.evaluate(expansion, {**values, **there}, DIGITS)
            total = mpmath.mpf(0)
            for name, weight in weights.items():
                flat = np.asarray(weight).reshape(-1).tolist()
                for w, y in zip(flat, tensors[name].values, strict=True):
                    total += mpmath.mpf(w) * y
            sums.append(total)
        found.append((sums[0] - sums[1]) / (2 * times * mpmath.mpf(10) ** -STEP))
    return found[0], abs(found[1] - found[0]) + mpmath.mpf(10) ** (STEP - DIGITS + 4)


@dataclass(frozen=True)
class Quotient:
    """A call, and its derivative in one direction; weights: of the sum of its results."""

    expansion: eq.Expansion
    values: dict[str, Any]
    weights: dict[str, Any]
    direction: dict[str, Any]
    expected: Any
    error: Any


def quotient(expansion: eq.Expansion, values: dict[str, Any], rng: np.random.Generator) -> Quotient:
    real = [n for n in expansion.inputs if expansion.tensors[n].kind == "real"]
    results = [n for n in expansion.outputs if expansion.tensors[n].kind == "real"]
    weights = {n: rng.uniform(-1, 1, expansion.tensors[n].shape) for n in results}
    direction = {name: rng.uniform(-1, 1, values[name].shape) for name in real}
    with mpmath.workdps(DIGITS):
        found = along(expansion, values, direction, weights)
    return Quotient(expansion, values, weights, direction, *found)


@functools.cache
def first(line: str) -> Quotient:
    """Of the first variant of a line."""
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 1)
    return quotient(next(variants(line))[1], case(line)[2], rng)


def backward_of(one: Quotient, prefix: str, ties: str) -> tuple[eq.Expansion, dict[str, Any]]:
    """The adjoint, and values of its inputs."""
    given = {**one.values, **{prefix + name: weight for name, weight in one.weights.items()}}
    return adjoint(one.expansion, ties=ties, prefix=prefix), given


def checked(one: Quotient, prefix: str = "d_", ties: str = "first") -> None:
    """Holds the adjoint to the difference quotient."""
    backward, given = backward_of(one, prefix, ties)
    assert backward.outputs == tuple(prefix + n for n in one.direction)
    with mpmath.workdps(DIGITS):
        gradients = exact.evaluate(backward, given, DIGITS)
        terms = [
            mpmath.mpf(v) * g
            for name, along_it in one.direction.items()
            for v, g in zip(
                along_it.reshape(-1).tolist(), gradients[prefix + name].values, strict=True
            )
        ]
        bound = one.error + mpmath.mpf(2) ** -48 * sum(map(abs, terms))
        assert abs(sum(terms) - one.expected) <= bound
    feeds = {n: load(backward.tensors[n], a) for n, a in given.items()}
    plain = vector.evaluate(backward, feeds)
    balls = rounding.evaluate(backward, {n: Ball(a) for n, a in feeds.items()}, "f64")
    for name in backward.outputs:
        true = gradients[name].numpy()
        # twice: `plain` and the exact constants of derivative texts are each within a radius
        assert np.all(np.isfinite(balls[name].bound)), name
        assert np.all(np.abs(plain[name] - true) <= 2 * balls[name].bound), name


def call(
    name: str, types: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
) -> eq.Expansion:
    op = builtin().op(name)
    assert op is not None
    instance = instantiate(op, types, attrs or {})
    assert not instance.faults
    return expand(instance, builtin())


@pytest.mark.parametrize("line", LINES)
def test_gradients_are_difference_quotients(line: str) -> None:
    checked(first(line))
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 1)
    for _, expansion in itertools.islice(variants(line), 1, None):
        checked(quotient(expansion, case(line)[2], rng))


def test_every_differentiable_definition_has_a_case() -> None:
    """Real results of real inputs; every enum choice fits at least one of its cases."""
    covered = {line.split()[0] for line in LINES}
    tried: dict[tuple[str, str], set[Any]] = {}
    for line in LINES:
        for chosen, _ in variants(line):
            for attribute, choice in chosen.items():
                tried.setdefault((line.split()[0], attribute), set()).add(choice)
    for op in builtin():
        real = {name for name, among in op.dtypes if among in ("float", "number", "any")}
        sources = any(i.type.dtype in real for i in op.inputs)
        if not sources or not any(o.type.dtype in real for o in op.outputs):
            continue
        if op.name in ("stop_gradient", "fake_quantize_range"):  # no difference quotients
            continue
        assert op.name in covered
        for attr in op.attrs:
            if attr.type.kind == "enum" and (op.name, attr.name) in tried:
                assert tried[op.name, attr.name] == set(attr.type.choices), (op.name, attr.name)


@pytest.mark.parametrize(
    "line", [c for n, c in enumerate(LINES) if c.split()[0] in TWICE or n % _EACH == 3]
)
def test_second_derivatives_follow_by_applying_it_twice(line: str) -> None:
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 2)
    checked(quotient(*backward_of(first(line), "d_", "first"), rng), prefix="dd_")


@pytest.mark.parametrize("line", [c for c in LINES if c.startswith(("reduce_m", "max_pool"))])
def test_equal_shares_are_an_allowed_gradient_too(line: str) -> None:
    _, _, values, _ = case(line)
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 3)
    for _, expansion in variants(line):
        checked(quotient(expansion, values, rng), ties="even")


@pytest.mark.parametrize("line", LINES)
def test_away_from_ties_nothing_is_left_open(line: str) -> None:
    """Written to be open at ties, a gradient is the same elsewhere, and its radius is finite."""
    one = first(line)
    if adjoint(one.expansion, ties="any") != adjoint(one.expansion, ties="first"):
        checked(one, ties="any")


@pytest.mark.parametrize(
    ("ties", "expected"), [("first", [0.0, 1.0, 0.0, 0.0]), ("even", [0.0, 0.5, 0.0, 0.5])]
)
def test_which_gradient_is_given_at_a_tie(ties: str, expected: list[float]) -> None:
    x = np.array([1.0, 2.0, -1.0, 2.0])
    backward = adjoint(call("reduce_max", {"x": eq.TensorInfo((4,), "f64")}), ties=ties)
    gradient = vector.evaluate(backward, {"x": x, "d_y": np.array(1.0)})["d_x"]
    assert gradient.tolist() == expected


def test_a_product_with_zeros_has_its_true_gradient() -> None:
    backward = adjoint(call("reduce_prod", {"x": eq.TensorInfo((3,), "f64")}))
    given = {"x": np.array([2.0, 0.0, 3.0]), "d_y": np.array(1.0)}
    assert vector.evaluate(backward, given)["d_x"].tolist() == [0.0, 6.0, 0.0]


@pytest.mark.parametrize("rows", [[[0.0]], [[1.0, 2.0], [2.0, 4.0]]])
def test_the_gradient_of_a_singular_determinant_is_its_adjugate(rows: list[list[float]]) -> None:
    """What is read by `constant`, or compared, alone takes no part: it is infinite there."""
    x = np.array(rows)
    backward = adjoint(call("determinant", {"x": eq.TensorInfo(x.shape, "f64")}))
    assert not [e.target for e in backward.equations if e.target in ("d_spread", "d_rows")]
    gradient = vector.evaluate(backward, {"x": x, "d_y": np.array(1.0)})["d_x"]
    adjugate = [[1.0]] if len(rows) == 1 else [[x[1, 1], -x[0, 1]], [-x[1, 0], x[0, 0]]]
    assert gradient.tolist() == np.transpose(adjugate).tolist()


def test_only_what_is_wanted_is_computed() -> None:
    types = {"x": eq.TensorInfo((2, 3), "f64"), "w": eq.TensorInfo((3, 4), "f64")}
    backward = adjoint(call("dense", types), wanted=["w"])
    assert backward.outputs == ("d_w",)
    assert [e.target for e in backward.equations] == ["d_w"]


def test_the_gradient_of_a_convolution_is_a_sum_of_products_without_filters() -> None:
    types = {"x": eq.TensorInfo((2, 4, 9, 9), "f64"), "w": eq.TensorInfo((6, 2, 3, 3), "f64")}
    attributes = {"groups": 2, "stride": (2, 1), "pad": "same"}
    backward = adjoint(call("conv", types, attributes))
    for equation in backward.equations:
        if equation.target in backward.outputs:
            assert isinstance(equation.body, eq.Reduce)
            assert equation.body.where is None
            assert isinstance(equation.body.body, eq.Apply)
            assert equation.body.body.function == "*"
            assert all(isinstance(factor, eq.Read) for factor in equation.body.body.args)


def test_the_adjoint_of_a_recurrence_runs_backward() -> None:
    backward = adjoint(call("cumsum", {"x": eq.TensorInfo((5,), "f64")}))
    steps = [s for s in schedule(backward.equations) if isinstance(s, Recurrence)]
    assert [step.descending for step in steps] == [True]


def test_a_second_adjoint_needs_another_prefix() -> None:
    backward = adjoint(call("exp", {"x": eq.TensorInfo((5,), "f64")}))
    with pytest.raises(ValueError, match="prefix"):
        adjoint(backward)


def test_an_empty_tensor_has_a_gradient() -> None:
    for name in ("reduce_max", "reduce_sum", "softmax", "cumsum"):
        expansion = call(name, {"x": eq.TensorInfo((0,), "f64")})
        weights = {f"d_{n}": np.ones(expansion.tensors[n].shape) for n in expansion.outputs}
        found = vector.evaluate(adjoint(expansion), {"x": np.ones(0), **weights})
        assert found["d_x"].shape == (0,)


# ---- as text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("line", LINES)
def test_a_gradient_is_a_definition_of_the_language(line: str) -> None:
    """Printed, parsed and expanded again, it has the same values."""
    _, _, values, _ = case(line)
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 4)
    _, expansion = next(variants(line))
    backward = adjoint(expansion)
    text = "nnir 1\n" + print_statement(definition(backward, "gradient"))
    (op,) = parse(text).ops
    read = (*backward.inputs, *(one.tensor for one in backward.drawn))
    names = dict(zip(read, (i.name for i in op.inputs), strict=True))
    instance = instantiate(op, {names[n]: backward.tensors[n] for n in read}, {})
    assert not instance.faults
    again = expand(instance, builtin())
    given = {n: a for n, a in values.items() if n in backward.inputs}
    for name in backward.inputs:
        if name not in given:
            given[name] = rng.uniform(-1, 1, backward.tensors[name].shape)
    given = completed(backward, given)
    one = vector.evaluate(backward, given)
    other = vector.evaluate(again, {names[n]: array for n, array in given.items()})
    loaded = {n: Ball(load(backward.tensors[n], array)) for n, array in given.items()}
    balls = rounding.evaluate(backward, loaded, "f64")
    for before, after in zip(backward.outputs, again.outputs, strict=True):
        # the two differ in the order of additions, and in nothing else
        assert np.all(np.abs(one[before] - other[after]) <= 2 * balls[before].bound)


def test_the_text_of_a_gradient() -> None:
    types = {"x": eq.TensorInfo((2, 3), "f32"), "w": eq.TensorInfo((3, 4), "f32")}
    assert show(adjoint(call("dense", types))) == (
        "d_x[s0 < 2, c < 3] = sum(f < 4) d_y[s0, f] * w[c, f]\n"
        "d_w[c < 3, f < 4] = sum(s0 < 2) d_y[s0, f] * x[s0, c]\n"
    )


def test_a_sum_over_many_filters_comes_before_one_over_the_kernel() -> None:
    """One input channel and eight filters: summed over the filters first, and correctly."""
    types = {"x": eq.TensorInfo((1, 1, 7), "f64"), "w": eq.TensorInfo((8, 1, 3), "f64")}
    for stride in (1, 2):
        expansion = call("conv", types, {"stride": (stride,), "pad": "same"})
        rng = np.random.default_rng(stride)
        values = {n: rng.uniform(-1, 1, expansion.tensors[n].shape) for n in expansion.inputs}
        one = quotient(expansion, values, rng)
        checked(one)
        backward, _ = backward_of(one, "d_", "first")
        shapes = [
            e.info.shape
            for e in backward.equations
            if isinstance(e.body, eq.Reduce) and [b for _, b in e.body.binders] == [eq.Const(8)]
        ]
        assert shapes == [(1, 7 if stride == 1 else 4, 1, 3)]
