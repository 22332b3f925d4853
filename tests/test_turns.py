"""Programs that are written otherwise than is usual: older opsets, further words, other strides.

What is written so is held to the oracle as ever, and says that it is another program.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from irlang.catalog import builtin
from irlang.commands.cases import load_case
from irlang.commands.lower import command as lower_command
from irlang.commands.run import command as run_command
from irlang.diff import calls as diff
from irlang.diff.batch import _in_turn
from irlang.diff.localise import Culprit, isolate
from irlang.diff.reduce_files import manner_of, save
from irlang.diff.runner import Session
from irlang.diff.unfold import unfolded
from irlang.diff.verdict import Verdict
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.call import Native, in_turn
from irlang.lower.lower import Lowered, lower, tables
from irlang.lower.manner import USUAL, Manner
from irlang.lower.onnx_file import CONTRIBUTED
from irlang.lower.pool import Program, Worker
from irlang.parser import parse
from tests.lower_calls import Case, case, every_case, operator
from tests.targets import usable
from tests.test_lower_calls import DEFECTS

_OPSETS = {1: 17, 3: 13, 5: 12}
_MATRIX = "x: f32[3, 4]", "softmax(x; axis = 0)"
# Keras's words are on its backend TensorFlow; a torch of other strides is at every odd turn.
_RUNS = [*(("onnxruntime", turn) for turn in _OPSETS), ("torch", 1), ("torch", 2), ("tf", 2)]
_RUNS += [("keras:tensorflow", 2), ("keras:tensorflow", 4), ("tf", 4), ("tf", 6), ("torch", 4)]

# docs/findings.md: a type that is said counts for nothing, where the ends are plain numbers; of a
# single operand without a result the axes stay in their order; the lower end of a range is moved to
# a whole number of steps.
_KNOWN_WORDS = {"tf": {"logspace", "dequantize_range"}, "keras:tensorflow": {"einsum"}}


def written(one: Case, target: str, turn: int) -> Lowered:
    manner = Manner(turn=turn)
    return lower(one.graph, target, one.catalog, one.params, manner=manner)


def opset(lowered: Lowered) -> int:
    assert isinstance(lowered.code, bytes)
    return int(onnx.load_from_string(lowered.code).opset_import[0].version)


_CONTRIBUTED = CONTRIBUTED.encode()


def half(turn: int) -> tuple[Case, ...]:
    """Every second call, for the time that they take: those of two neighbouring turns are all."""
    return every_case("f32")[turn // 2 % 2 :: 2]


def as_case(one: Case) -> diff.Case:
    return diff.Case(one.graph, one.inputs, one.params, one.catalog)


_WEIGHED = """
nnir 1
model m(x: f32[2, 3, 5] in [-1, 1]) -> y: f32[2, 4, 5], z: f32[2, 3, 5] {
  param w: f32[4, 3, 1] in [-1, 1]
  y = conv(x, w)
  z = relu(x)
}
"""


@pytest.mark.parametrize("target", [
    "torch", "torch:aot", "torch:compile", "torch:export", "tf", "tf:graph", "tf:xla", "tflite",
    "keras:tensorflow", "keras:jax", "keras:torch", "jax", "jax:jit",
])  # fmt: skip
def test_a_program_of_any_turn_defines_what_is_run(target: str) -> None:
    (graph,) = check(parse(_WEIGHED), builtin()).graphs
    params = initial_values(graph, 1)
    for turn in range(12):
        lowered = lower(graph, target, builtin(), params, manner=Manner(turn=turn))
        assert "\ndef run(" in str(lowered.code), (turn, lowered.unsupported)


@pytest.mark.parametrize(("target", "turn"), _RUNS)
def test_what_is_written_otherwise_computes_the_same(target: str, turn: int) -> None:
    known = usable(target)
    made = [(one, written(one, target, turn)) for one in half(turn)]
    turned = [(one, m) for one, m in made if m.turned and not m.unsupported]
    assert turned
    with Worker(known.worker) as worker:
        results = worker.submit([Program(m.kind, m.code, o.inputs, m.params) for o, m in turned])
    faults = {}
    for (one, _), result in zip(turned, results, strict=True):
        said = result.status == "refused" and known.says_no
        if said and re.search(said, result.error):
            continue  # it has no kernel
        if result.status != "ok":
            faults[one.call] = result.error
        else:
            faults.update((one.call, fault) for fault in one.faults(result.outputs))
    accepted = DEFECTS.get((target, "f32"), set()) | _KNOWN_WORDS.get(target, set())
    assert not {c: fault for c, fault in faults.items() if operator(c) not in accepted}


@pytest.mark.parametrize("turn", _OPSETS)
def test_model_files_are_of_older_opsets(turn: int) -> None:
    every = [(one, written(one, "onnxruntime", turn)) for one in half(turn)]
    # by the opset alone: not by words, whose turn it is, too
    made = [
        (one, m) for one, m in every if isinstance(m.code, bytes) and _CONTRIBUTED not in m.code
    ]
    turned = []
    for one, lowered in made:
        if lowered.turned:
            usual = written(one, "onnxruntime", 0)
            turned += [lowered] * (usual.code != lowered.code)
    assert len(turned) > 0.7 * sum(bool(lowered.native) for _, lowered in made)
    assert {opset(lowered) for lowered in turned} == {_OPSETS[turn]}
    for lowered in turned:
        onnx.checker.check_model(lowered.code, full_check=True)


def test_what_an_older_opset_lacks_is_written_as_ever() -> None:
    one = case("x: f32[1, 4, 3], g: f32[4], b: f32[4]", "group_norm(x, g, b; groups = 2)")
    usual, other = (written(one, "onnxruntime", turn) for turn in (0, 3))
    assert not other.turned
    assert usual.code == other.code


def test_axes_that_are_an_input_were_an_attribute() -> None:
    lowered = written(case("x: f32[3, 4]", "reduce_max(x; axes = [1])"), "onnxruntime", 1)
    assert isinstance(lowered.code, bytes)
    (node,) = onnx.load_from_string(lowered.code).graph.node
    assert len(node.input) == 1
    assert {a.name: list(a.ints) for a in node.attribute}["axes"] == [1]


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_once_took_all_axes_behind(axis: int) -> None:
    one = case("x: f32[3, 4]", f"softmax(x; axis = {axis})")
    assert [written(one, "onnxruntime", turn).turned for turn in (3, 5)] == [True, axis == 1]


def test_words_have_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def word(name: str, serves: bool = True) -> Native:
        return Native(name, lambda call: call.value(f"{name}()") if serves else None)

    row = replace(word("first"), others=(word("second"), word("third", serves=False)))
    monkeypatch.setitem(tables()["torch"], "softmax", row)
    said = {}
    for turn in range(0, 8, 2):
        code = written(case(*_MATRIX), "torch", turn).code
        assert isinstance(code, str)
        (said[turn],) = set(re.findall(r"(\w+)\(\)  #", code))
    assert said == {0: "first", 2: "second", 4: "first", 6: "first"}


def test_a_release_has_the_words_that_came_before_it() -> None:
    def word(name: str, *since: int) -> Native:
        return Native(name, lambda _: None, since=since)

    row = replace(word("first", 3), others=(word("second", 2), word("third", 1)))
    for release, turn, said in (
        ((), 0, "first, second, third"),
        ((), 2, "second, third, first"),
        ((), 5, "third, first, second"),
        ((2, 5), 0, "second, third"),
        ((2, 5), 3, "third, second"),
        ((1,), 10, "third"),
    ):
        kept = in_turn({"softmax": row}, {"softmax"}, Manner(turn=turn), release)["softmax"]
        assert kept.spellings == said
    assert in_turn({"softmax": row}, {"softmax"}, USUAL)["softmax"] is row
    assert not in_turn({"softmax": row}, {"softmax"}, USUAL, (0, 9))


def test_other_strides_are_said_in_a_line_and_gradients_go_through() -> None:
    usable("torch")
    one = replace(as_case(case(*_MATRIX)), manner=Manner(turn=1))
    lowered = lower(one.graph, "torch", one.catalog, {}, manner=one.manner)
    assert isinstance(lowered.code, str)
    assert "x = x.movedim(0, -1).contiguous().movedim(-1, 0)" in lowered.code
    with Session(["torch"]) as session:
        (outcome,) = session.compare([one])
    assert {v.verdict for v in outcome.verdicts["torch"]} == {"agrees"}


def test_a_manner_is_kept_in_files_and_in_calls(tmp_path: Path) -> None:
    manner = Manner(bold=True, turn=4)
    one = replace(as_case(case(*_MATRIX)), manner=manner)
    path = tmp_path / "finding.nnir"
    save(one, path, ("wrong: torch, softmax",))
    assert manner_of(path) == manner
    assert load_case(str(path), [], [], None, 0).manner == manner
    culprit = Culprit(one.graph.nodes[0], Verdict("y", "torch", "wrong"), one.inputs)
    assert isolate(one, culprit).manner == manner
    path.write_text("nnir 1\n", "utf-8")
    assert manner_of(path) == USUAL == manner_of(tmp_path / "no.nnir")


@pytest.mark.parametrize("edge", [True, False])
def test_values_at_edges_are_told_in_files(edge: bool, tmp_path: Path) -> None:
    """What is no number is judged otherwise where it was meant."""
    one = replace(as_case(case(*_MATRIX)), edge=edge, manner=Manner(turn=4))
    path = tmp_path / "finding.nnir"
    save(one, path, ("edge: torch, softmax",))
    found = load_case(str(path), [], [], None, 0)
    assert (found.edge, found.manner) == (edge, one.manner)


_BATCH = "x: f32[2, 1, 4], z: f32[3, 4]"
_ROWS_OF_A_BATCH = "einsum(x, z; labels = [0, 1, 2, 1, 2], output = [0, 1])"


@pytest.mark.parametrize(
    ("declared", "call", "turn", "said"),
    [
        (_BATCH, _ROWS_OF_A_BATCH, 0, "...c,...c->..."),
        ("x: f32[2, 3, 4], z: f32[2, 4]",
         "einsum(x, z; labels = [0, 1, 2, 0, 2], output = [0, 1])", 2, "...bc,...c->...b"),
        ("x: f32[2, 3], z: f32[3, 4]", "einsum(x, z; labels = [0, 1, 1, 2])", 4, '"ab,bc"'),
        ("x: f32[2, 3], z: f32[2, 4]", "einsum(x, z; labels = [0, 1, 0, 2])", 2, ""),
    ],
)  # fmt: skip
def test_an_equation_has_words(declared: str, call: str, turn: int, said: str) -> None:
    usable("torch")
    one = case(declared, call)
    lowered = written(one, "torch", turn)
    assert said in str(lowered.code)
    with Worker(usable("torch").worker) as worker:
        (result,) = worker.submit([Program(lowered.kind, lowered.code, one.inputs, lowered.params)])
    assert result.status == "ok"
    expected = one.oracle()["y"].value
    assert result.outputs["y"] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("target", "z", "labels", "said"), [
    ("onnxruntime", "2, 3, 4", "0, 1, 2, 0, 1, 2", True),
    ("onnxruntime", "3, 4", "0, 1, 2, 1, 2", False),  # two axes in one input, one in the other
    ("torch", "3, 4", "0, 1, 2, 1, 2", True),
    ("torch", "3, 1", "0, 1, 2, 1, 2", False),  # an axis of size 1 beside the ellipsis
])  # fmt: skip
def test_an_ellipsis_stands_where_a_framework_has_it(
    target: str, z: str, labels: str, said: bool
) -> None:
    """ONNX has one for the same number of axes everywhere; a letter has one size."""
    one = case(
        f"x: f32[2, 3, 4], z: f32[{z}]", f"einsum(x, z; labels = [{labels}], output = [0, 1])"
    )
    made = [written(one, target, turn).code for turn in range(8)]
    texts = [text.encode() if isinstance(text, str) else text for text in made]
    assert any(b"...c,...c->..." in text for text in texts) == said


def test_the_parts_of_a_call_are_written_in_its_manner() -> None:
    """What is composed is looked into as it was run."""
    one = as_case(case("x: f32[2, 3]", "log_cosh(x, x)"))
    manner = Manner(turn=3)
    parts = unfolded(replace(one, manner=manner), "onnxruntime")
    assert parts is not None
    assert parts.manner == manner


def test_a_finding_is_lowered_and_run_in_its_manner(tmp_path: Path) -> None:
    usable("onnxruntime")
    path, out = tmp_path / "finding.nnir", tmp_path / "model.onnx"
    save(replace(as_case(case(*_MATRIX)), manner=Manner(turn=1)), path)
    invoke = partial(CliRunner().invoke, catch_exceptions=False, standalone_mode=False)
    invoke(lower_command, [str(path), "--to", "onnxruntime", "-o", str(out)])
    assert onnx.load(out).opset_import[0].version == _OPSETS[1]
    shown = invoke(run_command, [str(path), "--on", "onnxruntime", "--format", "json"])
    assert "outputs" in shown.output


def test_one_in_three_programs_is_written_otherwise() -> None:
    usable("torch")
    one = as_case(case("x: f32[4, 3]", "glu(x; axis = 0)"))
    lone = as_case(case("x: f32[4]", "glu(x; axis = 0)"))
    with Session(["torch"]) as session:
        turns = [_in_turn(session, (n, 0, one))[2].manner.turn for n in range(15)]
        assert {_in_turn(session, (n, 0, lone))[2].manner.turn for n in range(15)} == {0}
    assert turns.count(0) == 12  # at even turns `F.glu` has no other word
    assert {*turns} == {0, 1, 3, 5}


@pytest.mark.parametrize("target", ["torch", "jax"])
def test_words_are_functions_that_there_are(target: str) -> None:
    usable(target)
    module = importlib.import_module(target)
    called: dict[str, str] = {}
    for one in every_case("f32"):
        row = tables()[target].get(operator(one.call))
        for turn in range(2 * len(row.words) + 2 if row is not None else 0):
            code = str(written(one, target, turn).code)
            named = re.findall(rf"\b{target}(?:\.\w+)+(?=\()|(?<=\.)[a-z]\w*_(?=\()", code)
            called.update(dict.fromkeys(named, one.call))
    holders = module, getattr(module, "Tensor", None)
    for name, call in called.items():
        found = attrgetter(name.removeprefix(f"{target}."))
        assert any(_has(holder, found) for holder in holders), (name, call)


def _has(holder: object, found: Callable[[object], object]) -> bool:
    try:
        return found(holder) is not None
    except AttributeError:
        return False


def test_another_view_begins_where_its_tensor_does() -> None:
    """`storage_offset` counts from where the memory begins: a view of a view is none of that."""
    text = """nnir 1
    model m(x: f32[5, 3]) -> y: f32[2, 2], z: f32[2, 3], u: f32[3, 3], v: f32[2, 3, 3],
        f: f32[3, 2, 2] {
      h = slice(x; axes = 0, begin = 1, end = 4)
      y = slice(h; axes = [0, 1], begin = [1, 1], end = [3, 3])
      t = slice(x; axes = 0, begin = 3, end = 4)
      z = broadcast_to(t; shape = [2, 3])
      w = slice(x; axes = [0, 1], begin = [1, 0], end = [2, 2])
      u = slice_update(h, w; begin = [1, 1])
      turned = transpose(h; perm = [1, 0])
      v = stack(h, turned; axis = 0)
      f = frames(h; length = 2, step = 1)
    }
    """
    (graph,) = check(parse(text, "model.nnir"), builtin()).graphs
    case = diff.Case(graph, inputs(graph, 1), {}, builtin())
    turns = [replace(case, manner=Manner(turn=turn)) for turn in range(0, 16, 2)]
    codes = [str(lower(graph, "torch", builtin(), {}, manner=one.manner).code) for one in turns]
    assert any("torch.as_strided(" in code for code in codes)
    assert any("torch.as_strided_scatter(" in code for code in codes)
    with Session(["torch"]) as session:
        outcomes = session.compare(turns)
    assert {v.verdict for one in outcomes for told in one.verdicts.values() for v in told} == {
        "agrees"
    }


def test_a_tensor_that_is_transposed_in_its_place_has_a_method_for_that() -> None:
    """Two axes are exchanged so; to move one there is a function alone."""
    text = """nnir 1
    model m(x: f32[2, 3, 4]) -> y: f32[3, 4, 2], z: f32[4, 3, 2] {
      y = transpose(x; perm = [1, 2, 0])
      z = transpose(x; perm = [2, 1, 0])
    }
    """
    (graph,) = check(parse(text, "model.nnir"), builtin()).graphs
    case = diff.Case(graph, inputs(graph, 1), {}, builtin())
    turns = [replace(case, manner=Manner(turn=turn)) for turn in range(0, 32, 2)]
    codes = [str(lower(graph, "torch", builtin(), {}, manner=one.manner).code) for one in turns]
    assert any(".swapaxes_(" in code for code in codes)
    with Session(["torch"]) as session:
        outcomes = session.compare(turns)
    told = [v for one in outcomes for found in one.verdicts.values() for v in found]
    assert {v.verdict for v in told} == {"agrees"}
