"""One cause is one finding, whatever the operators that show it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.found import Found
from irlang.diff.report_issue import _what
from irlang.diff.verdict import Verdict, judge
from irlang.equations import TensorInfo
from irlang.interp.balls import Ball
from irlang.interp.shape import check
from irlang.parser import parse


def _found(operator: str, given: int, expected: int, got: float, target: str = "openvino") -> Found:
    """Of an operator of one operand and zero."""
    text = f"nnir 1\nmodel m(x: i64[], z: i64[]) -> y: i64[] {{ y = {operator}(x, z) }}"
    graph = check(parse(text, "m"), builtin()).graphs[0]
    case = Case(graph, {"x": np.array(given), "z": np.array(0)}, {}, builtin())
    verdict = Verdict("y", target, "edge", None, None, (), float(expected), got)
    ball = Ball(np.array(expected, np.int64))
    return Found(0, target, verdict, operator, {}, "", case, case, expected={"y": ball})


def test_what_does_not_fit_into_fewer_bits_is_one_finding() -> None:
    long = 2**31 + 1
    found = _found("add", long, long, 1.0)
    assert found.cause
    assert found.signature == _found("bit_or", long, long, 1.0).signature
    assert "add" not in found.signature


@pytest.mark.parametrize(
    ("given", "got", "target"),
    [
        (5, 4.0, "openvino"),  # it fits
        (2**31 + 1, 9e13, "openvino"),  # 32 bits do not hold what came of it
        (2**31 + 1, np.nan, "openvino"),
        (2**31 + 1, 1.0, "onnxruntime"),  # which has 64
    ],
)
def test_what_fewer_bits_do_not_explain_is_the_operators(
    given: int, got: float, target: str
) -> None:
    found = _found("add", given, given, got, target)
    assert not found.cause
    assert "add" in found.signature
    assert found.signature != _found("bit_or", given, given, got, target).signature


def test_the_largest_number_in_the_place_of_infinity_is_one_finding() -> None:
    largest = float(np.finfo(np.float32).max)
    found = [_found(op, 1, 1, -largest, "tflite") for op in ("add", "multiply", "subtract")]
    for one in found:
        one.verdict = replace(one.verdict, expected=-math.inf)
    assert len({one.signature for one in found}) == 1
    for target, expected in (("tflite", 1.0), ("tf", -math.inf)):
        other = _found("add", 1, 1, -largest, target)
        other.verdict = replace(other.verdict, expected=expected)
        assert not other.cause


def test_a_type_of_fewer_bits_is_held_against_numbers_that_do_not_fit() -> None:
    """Keras gives i32 for i64 on PyTorch and JAX, as it documents."""
    info = TensorInfo((2,), "i64")
    right = np.array([1, -7])
    got = right.astype(np.int32)
    assert judge("y", "keras:torch", info, Ball(right), got).verdict == "agrees"
    assert judge("y", "torch", info, Ball(right), got).verdict == "wrong"
    assert judge("y", "keras:torch", info, Ball(np.array([1, 2**33])), got).verdict == "wrong"


def test_what_modes_do_as_their_framework_does_is_one_finding() -> None:
    found = [_found("add", 1, 1, 3.0, target) for target in ("torch:vmap", "torch:forward")]
    assert found[0].signature != found[1].signature
    same = [replace(one, others={"torch": "wrong"}) for one in found]  # the class of an edge
    assert same[0].signature == same[1].signature == _found("add", 1, 1, 3.0, "torch").signature
    assert [one.origin for one in same] == ["torch", "torch"]
    assert same[0].identity()["target"] == "torch:vmap"
    right = [replace(one, others={"torch": "agrees"}) for one in found]
    assert right[0].signature != right[1].signature


def test_what_backends_of_a_framework_do_alike_is_one_finding() -> None:
    names = ("keras:tensorflow", "keras:torch")
    found = [_found("add", 1, 1, 3.0, target) for target in names]
    assert found[0].signature != found[1].signature
    same = [
        replace(one, others={other: "wrong"})
        for one, other in zip(found, reversed(names), strict=True)
    ]
    assert same[0].signature == same[1].signature
    assert [one.alike for one in same] == [*reversed(names)]
    assert "the same so that the backend has not made it" in " ".join(_what(same[0]))
    versions = replace(
        found[0], others={"ort-1.17": "wrong", "tf": "wrong", "keras:shapes": "edge"}
    )
    assert versions.origin == "keras:tensorflow"


def test_what_is_wrong_with_optimisation_and_without_is_one_finding() -> None:
    plain, usual = "onnxruntime:plain", "onnxruntime"
    found = [
        replace(_found("add", 1, 1, 3.0, target), others={other: "wrong"})
        for target, other in ((plain, usual), (usual, plain))
    ]
    assert [one.origin for one in found] == [usual, usual]
    assert "so that the optimiser has not made it" in " ".join(_what(found[1]))
    alone = [replace(one, others={}) for one in found]
    assert [one.origin for one in alone] == [plain, usual]
