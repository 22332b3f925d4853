"""The Python interface says what the command line says."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

import irlang

TEXT = """nnir 1

model line(x: f32[N, 3] in [-1, 1]) -> y: f32[N, 2] {
  param w: f32[3, 2] = [[1, 2], [3, 4], [5, 6]]
  y = dense(x, w)
}
"""


def test_a_model_runs_on_given_values() -> None:
    model = irlang.loads(TEXT, bind={"N": 1})
    given = {"x": np.array([[1.0, 0.5, 0.25]], dtype=np.float32)}
    assert np.array_equal(model.run(given)["y"], [[3.75, 5.5]])
    assert model.run(given)["y"].dtype == np.float32


def test_values_follow_the_seed() -> None:
    model = irlang.loads(TEXT)
    assert np.array_equal(model.run(seed=1)["y"], model.run(seed=1)["y"])
    assert not np.array_equal(model.run(seed=1)["y"], model.run(seed=2)["y"])


def test_faults_are_data_or_an_exception() -> None:
    broken = TEXT.replace("dense(x, w)", "dens(x, w)")
    assert [d.code for d in irlang.check(broken)] == ["model.operator"]
    with pytest.raises(irlang.InvalidInput):
        irlang.loads(broken)


def test_values_out_of_range_are_refused() -> None:
    model = irlang.loads(TEXT, bind={"N": 1})
    with pytest.raises(irlang.InvalidInput, match=r"run\.range"):
        model.run({"x": np.full((1, 3), 7, dtype=np.float32)})


def test_a_notebook_shows_the_text_escaped() -> None:
    shown = irlang.loads(TEXT.replace("model line", '"""<b>"""\nmodel line'))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_lowering_gives_a_program() -> None:
    assert "torch" in str(irlang.loads(TEXT).lower("torch").code)


def test_a_notebook_shows_a_model_as_mathematics() -> None:
    shown = irlang.loads(TEXT)._repr_html_()
    root = ET.fromstring(shown)
    mathematics = "".join("".join(part.itertext()) for part in root.iter("math"))
    assert "y=dense(x,w)∈f322×2" in mathematics
    assert "w∈f323×2(parameter)" in mathematics
    assert "<script" not in shown


def test_an_operator_shows_itself() -> None:
    conv = irlang.op("conv")
    assert conv.name == "conv"
    assert "∑" in str(conv)
    assert conv.text.rstrip().endswith("}")
    root = ET.fromstring(conv._repr_html_())
    assert root.find(".//munder") is not None
    assert {"d_x", "d_w"} <= set(conv.gradient().outputs)
    assert conv.facts()["name"] == "conv"
    with pytest.raises(irlang.InvalidInput, match="convv"):
        irlang.op("convv")


def test_an_operator_of_ones_own() -> None:
    text = "op twice(x: f32[N]) -> y: f32[N] {\n  y[n] = 2 * x[n]\n}"
    assert "2 · x[n]" in str(irlang.op("twice", text))


def test_values_are_drawn_in_the_order_that_a_definition_wants() -> None:
    call = "sparse_to_dense(places, v; rows = 4, columns = 4)"
    text = (
        "nnir 1\n\nmodel m(places: i64[5, 2] in [0, 3], v: f32[5]) -> y: f32[4, 4] {\n"
        f"  y = {call}\n}}\n"
    )
    model = irlang.loads(text)
    for seed in range(5):
        assert np.count_nonzero(model.run(seed=seed)["y"]) == 5
    with pytest.raises(irlang.InvalidInput, match="ascend"):
        model.run({"places": np.zeros((5, 2), np.int64)})
