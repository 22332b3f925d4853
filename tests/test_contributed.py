"""ONNX Runtime's own operators, which stand in the place of ONNX's where it is their turn."""

from __future__ import annotations

import pytest

from irlang.lower.lower import lower, tables
from irlang.lower.manner import USUAL, Manner
from irlang.lower.onnx_file import CONTRIBUTED
from irlang.lower.pool import Program, Worker
from tests.lower_calls import every_case, operator
from tests.targets import usable


def _turn(name: str) -> Manner | None:
    """At which its word has its turn; None where an operator has none."""
    words = tables()["onnxruntime"][name].words if name in tables()["onnxruntime"] else ()
    places = [i for i, one in enumerate(words) if one.spelling.startswith(CONTRIBUTED)]
    return Manner(turn=2 * (places[0] or len(words))) if places else None


def _is_in(code: str | bytes) -> bool:
    return isinstance(code, bytes) and CONTRIBUTED.encode() in code


# What a release does otherwise: a constant axis ends the process, as only typed data are read of
# it; the bias that is added before the norm is left out.
_OLD = frozenset({"expand_dims"})
DEFECTS = {
    "ort-1.15": _OLD,
    "ort-1.17": _OLD | {"skip_rms_norm"},
    "ort-1.20": _OLD,
    "ort-1.23": _OLD,
}


@pytest.mark.parametrize("target", ["onnxruntime", "ort-1.15", "ort-1.17", "ort-1.20", "ort-1.23"])
def test_its_own_operators_are_right(target: str) -> None:
    known = usable(target)
    programs, sent = [], []
    for one in (*every_case("f32"), *every_case("f64")):
        manner = _turn(operator(one.call))
        if manner is None:
            continue
        lowered = lower(one.graph, target, one.catalog, one.params, manner=manner)
        if not lowered.unsupported and _is_in(lowered.code):
            sent.append(one)
            programs.append(Program(lowered.kind, lowered.code, one.inputs, lowered.params))
    with Worker(known.worker) as worker:
        results = worker.submit(programs)
    for one, result in zip(sent, results, strict=True):
        if operator(one.call) not in DEFECTS.get(target, ()):
            assert result.status == "ok", (one.call, result.error)
            assert not list(one.faults(result.outputs)), one.call
    assert {"gelu", "matmul", "inverse", "trilu", "qlinear_add", "packed_attention"} <= {
        operator(one.call) for one in sent
    }


@pytest.mark.parametrize("target", ["onnxruntime", "onnx-reference"])
def test_usual_files_and_those_of_others_have_none(target: str) -> None:
    usable(target)
    for one in every_case("f32"):
        turn = _turn(operator(one.call))
        if turn is not None:
            manner = USUAL if target == "onnxruntime" else turn
            lowered = lower(one.graph, target, one.catalog, one.params, manner=manner)
            assert not _is_in(lowered.code), one.call
