"""A number as a list: what rules compute with is the number, what they hand on is the list."""

from __future__ import annotations

import functools

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.diff.handed import Programs, is_telling
from irlang.diff.rounds import Rarest
from irlang.gen.moves import SetAttr
from irlang.gen.spoil import breakable, spoils
from irlang.gen.spoilt import Spoilt
from irlang.graph_text import to_expr
from irlang.listed import is_listed, listed, plain
from irlang.lower.admits import admitted
from irlang.lower.spelling import invoke
from irlang.parser.printer import print_expr

NUMBERS = st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False)


def _listed(operator: str, target: str, seeds: int = 8) -> list[tuple[Spoilt, str | bytes]]:
    """The calls of an operator with a number as a list that tell something of a target."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, target)
    tells = functools.partial(is_telling, programs, target)
    found = []
    for seed in range(seeds):
        for one in spoils(builtin(), seed, [operator], (operator, None), able, tells):
            if one.fault.code == f"{operator}.form":
                lowered = programs.own(target, one.graph)
                assert lowered is not None
                found.append((one, lowered.code))
    return found


@given(NUMBERS, st.integers(0, 3))
def test_it_is_the_number_but_for_its_text(number: float, times: int) -> None:
    made = listed(number, times)
    assert made == number
    assert made + 0 == number
    assert not is_listed(made + 0)
    assert plain(made) == (number,) * times
    assert str(made) == f"{made}" == repr(made) == str([number] * times)
    assert invoke("f", made) == f"f({[number] * times})"
    assert (made or None) is made  # a rule that leaves out 0 does not leave it out
    assert print_expr(to_expr(made)) == print_expr(to_expr((number,) * times))


@pytest.mark.parametrize(
    ("operator", "text"), [("diag_embed", "k=[]"), ("set_diagonal", "k=[]"), ("linspace", ", [])")]
)
def test_frameworks_are_handed_a_list(operator: str, text: str) -> None:
    codes = [str(code) for _, code in _listed(operator, "tf")]
    assert any(text in code for code in codes)


@pytest.mark.parametrize(("operator", "name"), [("cumsum", "axis"), ("one_hot", "depth")])
def test_model_files_hold_a_tensor_of_the_form(operator: str, name: str) -> None:
    shapes = set()
    for one, code in _listed(operator, "onnxruntime"):
        assert isinstance(code, bytes)
        assert isinstance(one.changed, SetAttr)
        held = onnx.load_from_string(code).graph.initializer
        shapes |= {(one.changed.name, tuple(array.dims)) for array in held}
    assert {(name, (0,)), (name, (2,))} <= shapes


def test_another_number_of_axes_is_no_exchange_of_two() -> None:
    """An order of two axes of three is nothing that `swapaxes` is told."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, "mxnet")
    wanted = next(want for name, want in breakable(builtin(), ["transpose"]) if want is not None)
    orders = 0
    for seed in range(6):
        for one in spoils(builtin(), seed, ["transpose"], ("transpose", wanted), able):
            lowered = programs.own("mxnet", one.graph)
            (x,) = (port.info.shape for port in one.graph.inputs.values())
            order = one.graph.nodes[0].attrs.get("perm", ())
            if lowered is not None and len(order) != len(x):
                orders += 1
                assert "SwapAxis" not in str(lowered.code)
                assert "swapaxes" not in str(lowered.code)
    assert orders


def test_a_function_of_few_turns_is_looked_for_until_there_is_none() -> None:
    rarest = Rarest()
    assert not rarest.is_due("op")  # nothing is known of it
    rarest.had("op", "usual", looked=False)
    assert rarest.is_rare("op", "other")
    assert not rarest.is_rare("op", "usual")
    waits = []
    for _ in range(4):
        waits.append(0)
        while not rarest.is_due("op"):
            waits[-1] += 1
        rarest.had("op", "usual", looked=True)
    assert waits == [0, 1, 3, 7]
    while not rarest.is_due("op"):
        pass
    rarest.had("op", "other", looked=True)
    assert rarest.is_due("op")  # one was found


@pytest.mark.parametrize("kernel", ["fused_batch_norm", "FusedBatchNorm", "FusedBatchNormV3"])
def test_fused_normalisations_have_one_number_a_channel(kernel: str) -> None:
    assert admitted("tf", "batch_norm", "batch_norm.mean", ["batch_normalization"])
    assert not admitted("tf", "batch_norm", "batch_norm.mean", [kernel])
