"""Saved Keras models: every layer, and models of several, against what Keras itself computes."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from keras import layers as L  # noqa: N812

from irlang.importers.keras_layers import LAYERS
from irlang.importers.keras_left_out import LEFT_OUT
from irlang.importers.keras_model import load
from irlang.importers.keras_signatures import ALIASES, AUGMENTING
from tests.keras_cases import CASES, Case, one
from tests.keras_graphs import GRAPHS
from tests.keras_models import agrees, graph, imported, randomised, within

DATA = Path(__file__).parent / "data" / "keras"
DOCUMENT = Path(__file__).parents[1] / "docs" / "import.md"

ATTEMPTS = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# TensorFlow rounds constants of these to single precision, has no kernel for them in double
# precision, or computes them in single precision whatever it is given.
_SINGLE = ("gelu", "heads", "grouped", "rescaling", "Max3d", "Average3d", "bilinear", "resizing")
# The sums of Keras's sparsemax are not 1: it adds up the sums of the largest, not the largest.
_DEFECTS = {"activation sparsemax"}


def _computing_in(precision: str) -> Iterator[None]:
    before = keras.config.floatx()
    keras.config.set_floatx(precision)
    keras.config.set_dtype_policy(precision)
    keras.utils.set_random_seed(1)
    yield
    keras.config.set_floatx(before)
    keras.config.set_dtype_policy(before)


@pytest.fixture
def single() -> Iterator[None]:
    yield from _computing_in("float32")


@pytest.fixture
def double() -> Iterator[None]:
    yield from _computing_in("float64")


def built(case: Case) -> Any:
    shapes, call = case
    inputs = [keras.Input(shape, name=f"x{number}") for number, shape in enumerate(shapes)]
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], call(*inputs))


@pytest.mark.parametrize("name", sorted(CASES.keys() - _DEFECTS))
@pytest.mark.usefixtures("single")
def test_layer(name: str, tmp_path: Path) -> None:
    model = built(CASES[name])
    randomised(model, np.random.default_rng(1))
    agrees(model, tmp_path)


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if "d " in name or "lstm" in name])
@pytest.mark.usefixtures("double")
def test_layer_in_double_precision(name: str, tmp_path: Path) -> None:
    if any(word in name for word in _SINGLE):
        pytest.skip("TensorFlow computes it in single precision")
    model = built(CASES[name])
    randomised(model, np.random.default_rng(1))
    assert "f64[" in agrees(model, tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.usefixtures("single")
def test_model(name: str, tmp_path: Path) -> None:
    model = GRAPHS[name]()
    randomised(model, np.random.default_rng(1))
    agrees(model, tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["shared", "image", "deep", "both ways", "sequential"])
def test_model_of_the_older_format(name: str, tmp_path: Path) -> None:
    model = GRAPHS.get(name, GRAPHS.get(f"masked {name}", GRAPHS["shared"]))()
    randomised(model, np.random.default_rng(1))
    agrees(model, tmp_path, suffix=".h5")


@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data())
@ATTEMPTS
def test_windows(rank: int, data: st.DataObject, tmp_path: Path) -> None:
    draw = data.draw
    size = [draw(st.integers(1, 6)) for _ in range(rank)]
    window = [draw(st.integers(1, 3)) for _ in range(rank)]
    stride = draw(st.integers(1, 4))
    padding = draw(st.sampled_from(["valid", "same"]))
    kind = draw(st.sampled_from(["Conv", "Max", "Average", "Transpose", "Depthwise", "Separable"]))
    dilation = draw(st.integers(1, 2)) if stride == 1 else 1
    assume(rank < 3 or kind not in ("Depthwise", "Separable"))
    assume(kind not in ("Max", "Average", "Transpose") or dilation == 1)
    spans = [dilation * (k - 1) + 1 for k in window]
    assume(padding == "same" or kind == "Transpose" or all(np.less_equal(spans, size)))
    common = {"strides": stride, "padding": padding}
    steps = {**common, "dilation_rate": dilation}
    layer: Callable[[], Any] = {
        "Conv": lambda: getattr(L, f"Conv{rank}D")(2, window, **steps),
        "Max": lambda: getattr(L, f"MaxPooling{rank}D")(window, **common),
        "Average": lambda: getattr(L, f"AveragePooling{rank}D")(window, **common),
        "Transpose": lambda: getattr(L, f"Conv{rank}DTranspose")(2, window, **common),
        "Depthwise": lambda: getattr(L, f"DepthwiseConv{rank}D")(
            window if rank == 1 else window[:1] * 2, depth_multiplier=2, **steps
        ),
        "Separable": lambda: getattr(L, f"SeparableConv{rank}D")(3, window[0], **steps),
    }[kind]
    if kind in ("Depthwise", "Separable"):
        same_spans = [dilation * (window[0] - 1) + 1] * rank
        assume(padding == "same" or all(np.less_equal(same_spans, size)))
    model = built(one((*size, 2), layer))
    randomised(model, np.random.default_rng(2))
    agrees(model, tmp_path)


@given(data=st.data())
@ATTEMPTS
def test_merging_broadcasts(data: st.DataObject, tmp_path: Path) -> None:
    rank = data.draw(st.integers(1, 3))
    whole = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    shapes = [
        tuple(size if data.draw(st.booleans()) else 1 for size in whole)
        for _ in range(data.draw(st.integers(2, 3)))
    ]
    kind = data.draw(st.sampled_from(["Add", "Multiply", "Average", "Maximum", "Minimum"]))
    model = built((list(shapes), lambda *xs: getattr(L, kind)()(list(xs))))
    agrees(model, tmp_path)


def test_names_are_kept_and_channels_stay_first(tmp_path: Path) -> None:
    x = keras.Input((8, 8, 3), name="image")
    y = L.Conv2D(4, 3, name="conv2_block1_1_conv")(x)
    y = L.BatchNormalization(name="conv2_block1_1_bn")(y)
    y = L.MaxPooling2D(name="pool")(L.ReLU(name="conv2_block1_1_relu")(y))
    model = keras.Model(x, L.GlobalAveragePooling2D(name="average")(y), name="net")
    text = imported(model, tmp_path).text
    assert "model net(image: f32[N, 8, 8, 3])" in text
    assert text.count("transpose(") == 1
    assert "  conv2_block1_1_relu = relu(conv2_block1_1_bn)\n" in text
    assert "  average = global_avg_pool(pool)\n" in text


def test_shared_layers_share_parameters(tmp_path: Path) -> None:
    made = imported(GRAPHS["shared"](), tmp_path)
    assert made.text.count("param shared_w") == 1
    assert made.text.count("dense(") == 2 + 1  # `shared` is also asked for alone
    assert sorted(name for name in made.writer.tensors if name.startswith("shared")) == []


def test_open_sizes_have_names(tmp_path: Path) -> None:
    made = imported(GRAPHS["open sizes"](), tmp_path)
    assert "x: f32[N, D1, 3]" in made.text
    found = graph(made, tmp_path, {"N": 3, "D1": 9})
    assert [found.values[found.outputs[name]].shape for name in made.outputs] == [(3, 2)]


def test_a_file_of_tensorflow_2_4(tmp_path: Path) -> None:
    """What it saved and predicted: masks, two directions, a model inside, a shared layer."""
    made = load(DATA / "keras_2_4.h5", "weights.safetensors")
    with np.load(DATA / "keras_2_4.npz") as recorded:
        words, *wanted = [recorded[name] for name in recorded.files]
    found = graph(made, tmp_path, {"N": len(words)})
    given = {next(iter(made.inputs.values())): words.astype(np.float32)}
    within(found, made, given, wanted)


@pytest.mark.parametrize("name", AUGMENTING)
@pytest.mark.usefixtures("single")
def test_images_are_changed_in_training_only(name: str, tmp_path: Path) -> None:
    arguments: dict[str, tuple[Any, ...]] = {"RandomPosterization": (4,)}
    arguments |= dict.fromkeys(("RandomFlip", "Solarization", "RandAugment", "AugMix"), ())
    arguments |= dict.fromkeys(("MixUp", "CutMix", "RandomGrayscale", "RandomErasing"), ())
    arguments |= dict.fromkeys(("RandomGaussianBlur", "RandomInvert", "RandomColorJitter"), ())
    arguments |= dict.fromkeys(("RandomElasticTransform", "RandomPerspective", "RandomShear"), ())
    arguments["RandomTranslation"] = (0.25, 0.25)
    model = built(one((4, 5, 3), lambda: getattr(L, name)(*arguments.get(name, (0.25,)))))
    made = imported(model, tmp_path)
    x = np.random.default_rng(1).integers(0, 255, (2, 4, 5, 3)).astype(np.float32)
    within(graph(made, tmp_path, {"N": 2}), made, {"x0": x}, [model.predict(x, verbose=0)])


def test_every_layer_is_translated_or_left_out() -> None:
    known = {name for name in dir(L) if isinstance(getattr(L, name), type)}
    known = {name for name in known if issubclass(getattr(L, name), keras.Layer)}
    inside = {"InputLayer", "StackedRNNCells"}  # read by those that they belong to
    translated = LAYERS.keys() | ALIASES.keys() | inside
    assert known - translated - LEFT_OUT.keys() == set()
    assert translated & LEFT_OUT.keys() == set()
    assert LEFT_OUT.keys() <= known


def test_the_document_lists_the_layers_that_are_left_out() -> None:
    reasons: dict[str, list[str]] = {}
    for name, reason in LEFT_OUT.items():
        reasons.setdefault(reason, []).append(name)
    rows = [f"| {', '.join(sorted(names))} | {reason} |" for reason, names in reasons.items()]
    table = "\n".join(["| layer | why it is left out |", "| --- | --- |", *rows])
    text = DOCUMENT.read_text("utf-8")
    start, end = "<!-- layers left out -->\n", "\n<!-- end of layers -->"
    before, rest = text.split(start)
    if os.environ.get("IRLANG_REWRITE"):
        DOCUMENT.write_text(before + start + table + end + rest.split(end)[1], "utf-8")
    assert rest.split(end)[0] == table
