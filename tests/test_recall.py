"""Calls that are alike: what proofs brought in the first, and the verdicts on the others."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang.interp.proofs as proofs
import irlang.interp.range as meaning
from irlang.interp.interval import Numbers
from irlang.interp.proofs import Proofs
from irlang.interp.range import Analysis
from irlang.interp.recall import Site, narrower, together
from tests.test_range import analysed, possible

_LAYER = """block layer(x: f32[2, 8, 16]) -> y: f32[2, 8, 16] {{
  param g: f32[16] in [0.5, 1.5]
  param b: f32[16] in [-0.1, 0.1]
  n = {norm}
  param w: f32[16, 16] in [-0.1, 0.1]
  y = add(x, {inner}(dense(n, w)))
}}
model deep(x: f32[2, 8, 16] in [-1, 1]) -> y: f32[2, 8, 16] {{
  for i < {layers} {{ x = layer(x) }}
  y = softmax(x)
}}"""


def _of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes no call like another."""
    numbers = itertools.count()
    monkeypatch.setattr(meaning, "likeness", lambda *_: next(numbers))


def _unsafe(found: Analysis) -> list[tuple[str, str]]:
    return [(point.node, point.function) for point in found.points if point.status != "safe"]


@pytest.mark.parametrize(
    ("norm", "inner"),
    [("layer_norm(x, g, b)", "gelu"), ("rms_norm(x, g)", "relu"), ("softmax(x)", "relu")],
)
def test_the_layers_of_a_deep_model_are_judged_as_if_each_were_alone(
    norm: str, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what is not tried leaves more of a call's work to what is: enough here for all of it
    monkeypatch.setattr(proofs, "_WORK", 50_000)
    text = _LAYER.format(norm=norm, inner=inner, layers=3)
    alike = analysed(text, gradient=True)
    with monkeypatch.context() as patched:
        _of_its_own(patched)
        alone = analysed(text, gradient=True)
    assert _unsafe(alike) == _unsafe(alone)
    assert len(alike.points) == len(alone.points)
    for name, own in alone.values.items():
        found = alike.values[name]
        assert found == own or found.high - found.low <= 1.001 * (own.high - own.low)


def test_the_layers_of_a_deep_model_are_not_proved_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = _LAYER.format(norm="layer_norm(x, g, b)", inner="gelu", layers=8)
    work = [0]
    aside = Proofs.aside

    def counted(self: Proofs, *args: object) -> object:
        work[0] += 1
        return aside(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Proofs, "aside", counted)
    analysed(text)
    alike, work[0] = work[0], 0
    _of_its_own(monkeypatch)
    analysed(text)
    assert 2 * alike < work[0]


def test_what_any_call_has_tried_is_known_to_those_after_it() -> None:
    sites: list[Site] = [(("y", at), ((0, 3),), "related", ()) for at in (1, 2)]
    here, there = sites
    first, second = {here: False}, {here: True, there: False}
    assert together(first, second) == {here: True, there: False}
    assert together(second, first) == {here: True, there: False}


@pytest.mark.parametrize(
    ("made", "use"),
    [((-4.0, 4.0), False), ((-3.999, 4.0), False), ((-3.0, 4.0), True), ((0.0, 4.0), True)],
)
def test_a_proof_is_of_use_where_it_brings_more_than_the_last_digits(
    made: tuple[float, float], use: bool
) -> None:
    assert narrower(Numbers((made,)), Numbers(((-4.0, 4.0),))) is use


def test_a_proof_is_of_use_where_a_number_no_longer_passes_one() -> None:
    assert narrower(Numbers(((0.0, 1.0),)), Numbers(((0.0, 1.0000001),)))
    assert narrower(Numbers(((0.0, 1.0),)), Numbers(((0.0, 1.0),), nan=True))
    assert narrower(Numbers(((0.0, 1.0),)), Numbers(((0.0, 1.0),), above=True))


_END = st.sampled_from([0.25, 0.5, 0.999, 1.0, 1.5, 4.0])
_TERMS = st.sampled_from(
    [
        "subtract({a}, multiply({a}, {b}))",
        "subtract({a}, minimum({a}, {b}))",
        "subtract(maximum({a}, {b}), {a})",
        "multiply({a}, {a})",
    ]
)


@settings(max_examples=25, deadline=None)
@given(ends=st.lists(_END, min_size=2, max_size=3), term=_TERMS, more=st.sampled_from([0, 1e-3]))
def test_a_proof_that_was_of_no_use_before_is_tried_where_a_place_hangs_on_it(
    ends: list[float], term: str, more: float
) -> None:
    body = "".join(
        f"  a{at} = add(x{at}, 0)\n  b{at} = add(z{at}, 0)\n"
        f"  y{at} = log(add({term.format(a=f'a{at}', b=f'b{at}')}, {more}))\n"
        for at in range(len(ends))
    )
    inputs = ", ".join(
        f"x{at}: f32[3] in [0.001, {end}], z{at}: f32[3] in [0.001, {end}]"
        for at, end in enumerate(ends)
    )
    results = ", ".join(f"y{at}: f32[3]" for at in range(len(ends)))
    text = f"model m({inputs}) -> {results} {{\n{body}}}"
    alike = analysed(text)
    with pytest.MonkeyPatch.context() as patched:
        _of_its_own(patched)
        alone = analysed(text)
    assert possible(alike) == possible(alone)
    assert alike.values == alone.values
