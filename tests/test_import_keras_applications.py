"""Two networks of `keras.applications`; `tests.conformance.keras_applications` runs all six."""

from __future__ import annotations

import keras
import pytest

from tests.conformance.keras_applications import judged


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["MobileNetV2", "EfficientNetB0"])
def test_network(name: str) -> None:
    before = keras.config.floatx()
    try:
        assert list(judged(name, 38, "float64", ())) == []
    finally:
        keras.config.set_floatx(before)
        keras.config.set_dtype_policy(before)
