"""Forms that targets may refuse: handed on where a call stands alone, held against none where they
are refused, and judged where they are not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import irlang
from irlang.catalog import builtin
from irlang.commands.cases import load_case
from irlang.diff.apart import cases_apart
from irlang.diff.finding import find
from irlang.diff.localise import Culprit, isolate
from irlang.diff.reduce_files import save
from irlang.diff.report_program import program_of
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import Verdict
from irlang.interp.values import inputs
from irlang.lower.lower import Lowered, lower, spelt
from irlang.lower.manner import Manner
from tests.targets import usable

_DILATED = "conv(x, w; pad = same, dilation = 2)"
_SPREAD = "depthwise_conv(x, w; stride = 2, dilation = 2, pad = same)"
_STILL = "gru(x, w, r; clip = 0)"
_IMAGE = "x: f32[1, 2, 5, 5] in [1, 2], w: f32[2, 2, 3, 3] in [1, 2]"
_ROWS = "x: f32[3, 2, 4] in [1, 2], w: f32[3, 5, 4] in [1, 2], r: f32[3, 5, 5] in [1, 2]"
# A call, what is said of a size by the form that is bold, and a target whose table has it.
_FORMS = [
    (_IMAGE, _DILATED, "onnxruntime"),
    (_IMAGE, _SPREAD, "tf"),
    ("x: f32[1, 4, 3, 3] in [1, 2]", "local_response_norm(x; size = 2)", "onnxruntime"),
    ("x: f32[1, 1, 6] in [1, 2]", "max_pool(x; window = 2, pad = given, before = 3, dilation = 4)",
     "onnxruntime"),
    ("x: f32[1, 4] in [1, 2]", "group_norm(x; groups = 4)", "torch"),
    ("x: f32[1, 1, 3] in [1, 2], w: f32[1, 1, 2] in [1, 2]",
     "conv_transpose(x, w; stride = 3, pad = same)", "onnxruntime"),
]  # fmt: skip


def case(declared: str, call: str) -> Case:
    """A call of which all results that come first are shown."""
    results = "y, h" if call.startswith("gru") else "y"
    first = declared.partition(" in")[0]  # as the result: nobody need write down that of the call
    text = f"nnir 1\nmodel m({declared}) -> {first} {{\n  {results} = {call}\n}}\n"
    graph = irlang.loads(text).graph
    graph = replace(graph, outputs={"y": "y"})
    return Case(graph, inputs(graph, 0), {}, builtin())


def written(case: Case, target: str) -> Lowered:
    return lower(case.graph, target, case.catalog, case.params, manner=case.manner)


@pytest.mark.parametrize(("declared", "call", "target"), _FORMS)
def test_a_form_is_handed_on_where_it_is_dared(declared: str, call: str, target: str) -> None:
    usable(target)
    usual = case(declared, call)
    plain, bold = written(usual, target), written(replace(usual, manner=Manner(bold=True)), target)
    assert not plain.dared
    assert bold.dared
    assert not bold.unsupported
    assert plain.code != bold.code
    assert "y" in bold.native


def test_what_is_always_handed_on_is_not_dared() -> None:
    usable("onnxruntime")
    usual = case(_IMAGE, "conv(x, w; pad = same)")
    manners = [Manner(bold=bold) for bold in (False, True)]
    plain, bold = (written(replace(usual, manner=one), "onnxruntime") for one in manners)
    assert not bold.dared
    assert plain.code == bold.code


def test_a_refusal_of_what_is_dared_is_held_against_none() -> None:
    usable("onnxruntime")
    usual = case(_ROWS, _STILL)
    with Session(["onnxruntime"]) as session:
        plain, bold = session.compare([usual, replace(usual, manner=Manner(bold=True))])
    assert [v.verdict for v in plain.verdicts["onnxruntime"]] == ["agrees"]
    assert [v.verdict for v in bold.verdicts["onnxruntime"]] == ["unsupported"]
    assert bold.results["onnxruntime"].status == "refused"


def test_a_wrong_result_of_what_is_dared_is_a_finding(tmp_path: Path) -> None:
    """TensorFlow documents one or the other, takes both and gives another shape."""
    usable("tf")
    usual = case("x: f32[1, 2, 5, 5] in [1, 2], w: f32[2, 1, 3, 3] in [1, 2]", _SPREAD)
    bold = replace(usual, manner=Manner(bold=True))
    with Session(["tf"]) as session:
        plain, daring = session.compare([usual, bold])
        assert plain.verdicts["tf"][0].verdict == "agrees"
        assert daring.verdicts["tf"][0].verdict == "wrong"
        found = find(session, bold, 0, "tf", daring)
        save(found.reduced, tmp_path / "finding.nnir", ("wrong: tf",))
        again = load_case(str(tmp_path), (), (), None, 0)  # as `irlang diff FOLDER` has it
        assert session.compare([again])[0].verdicts["tf"][0].verdict == "wrong"
    assert found.verdict.verdict == "wrong"
    assert found.reduced.manner.bold
    program = program_of(found, "tf")
    assert program is not None
    assert "tf.nn.depthwise_conv2d" in str(program.code)
    assert program.dared


def test_a_call_taken_alone_keeps_its_form() -> None:
    bold = replace(case(_IMAGE, _DILATED), manner=Manner(bold=True))
    culprit = Culprit(bold.graph.nodes[0], Verdict("y", "t", "wrong"), bold.inputs)
    assert isolate(bold, culprit).manner.bold


def test_calls_apart_have_their_turn_in_forms_that_are_dared() -> None:
    """Each by itself, beside the program that all targets take, and no call that has none."""
    usable("onnxruntime")
    catalog, target = builtin(), "onnxruntime"
    session = Session([target])
    ops = ["local_response_norm", "tanh"]
    own = partial(session.has_own, catalog=catalog)
    made = [
        one
        for _, _, one in cases_apart(
            catalog, 1, 0, ops, False, 8, session.can_run, spelt(target), own, dares=session.dares
        )
    ]
    daring = [one for one in made if one.manner.bold]
    assert daring
    assert len(daring) < len(made)
    for one in daring:
        (node,) = one.graph.nodes
        assert node.op.name == "local_response_norm"
        assert written(one, target).dared
        assert one.inputs.keys() == one.graph.inputs.keys()
        assert all(np.shape(a) == one.graph.inputs[n].info.shape for n, a in one.inputs.items())


@pytest.mark.parametrize("target", ["onnxruntime", "torch", "tf", "jax", "keras:tensorflow"])
def test_what_a_target_has_an_operator_for_may_have_numbers_written_in_it(target: str) -> None:
    usable(target)
    made = case("x: f32[4]", "multiply(x, 2.0)")
    with Session([target]) as session:
        assert session.has_own(made.graph, made.catalog)
