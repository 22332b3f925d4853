"""Repair: badness falls with every move, most broken calls become valid, and edits fix texts."""

import re
from dataclasses import replace

import pytest

from irlang.catalog import builtin
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.edits import apply
from irlang.equations import TensorInfo
from irlang.gen.adapt import Adapters
from irlang.gen.build import generate
from irlang.gen.choice import Chooser
from irlang.gen.judge import score
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.pattern import pattern
from irlang.gen.repair import mend
from irlang.gen.suggest import with_suggestions
from irlang.graph import Node
from irlang.instance import Instance, instantiate
from irlang.interp.shape import check
from irlang.parser import parse
from irlang.signature import Given


def broken(node: Node, chooser: Chooser) -> Instance | None:
    """A call with one number of its attributes or shapes changed, if that makes it invalid."""
    given: dict[str, Given] = dict(node.instance.binding.inputs)
    attrs = dict(node.attrs)
    numbers = [k for k, v in attrs.items() if type(v) is int]
    shaped = [k for k, v in given.items() if isinstance(v, TensorInfo) and v.shape]
    if numbers and chooser.below(2):
        name = chooser.pick(numbers)
        attrs[name] += chooser.pick((-3, -1, 1, 2, 5))
    elif shaped:
        name = chooser.pick(shaped)
        info = given[name]
        assert isinstance(info, TensorInfo)
        axis = chooser.below(len(info.shape))
        size = info.shape[axis] + chooser.between(1, 3)
        given[name] = replace(info, shape=(*info.shape[:axis], size, *info.shape[axis + 1 :]))
    try:
        instance = instantiate(node.op, given, attrs)
    except InvalidInput:
        return None
    return instance if instance.faults else None


def test_badness_falls_and_most_broken_calls_are_mended() -> None:
    chooser = Chooser("broken")
    courses = []
    for seed in range(120):
        for node in generate(builtin(), seed, size=(6, 12)).graph.nodes:
            instance = broken(node, chooser)
            if instance is not None:
                attrs = {
                    name: instance.binding.scope.names.get(name, value)
                    for name, value in node.attrs.items()
                }
                courses.append(mend(instance, attrs, lambda _: True))
    assert len(courses) > 150
    for course in courses:
        assert len(course.badness) == len(course.kept) + 1
        assert all(a > b for a, b in zip(course.badness, course.badness[1:], strict=False))
        if course.fits:
            assert course.badness[-1] == 0
            final = instantiate(course.instance.binding.op, course.given, course.attrs)  # type: ignore[union-attr]
            assert not final.faults
    assert sum(course.fits for course in courses) / len(courses) > 0.9


def test_moves_say_what_they_do() -> None:
    assert str(SetAttr("stride", (1, 2))) == "set stride = [1, 2]"
    assert str(Retype("w", None, TensorInfo((3, 4), "f32"))) == "make w f32[3, 4]"


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ((4, 6), (24,)),
        ((4, 6), (6, 4)),
        ((2, 3, 4), (2, 4, 3)),
        ((5,), (5, 1)),
        ((1, 3), (4, 3)),
        ((3, 5), (3, 8)),
        ((3, 8), (3, 5)),
    ],
)
def test_adapters_are_found_by_what_they_give(have: tuple[int, ...], want: tuple[int, ...]) -> None:
    adapters = Adapters([pattern(op) for op in builtin()])
    nested = adapters.adapt("x", TensorInfo(have, "f32"), TensorInfo(want, "f32"))
    assert nested is not None
    assert score(nested.instance) == 0
    assert nested.instance.outputs is not None
    assert nested.instance.outputs[0][1] == TensorInfo(want, "f32")


def test_an_adapter_converts_element_types() -> None:
    adapters = Adapters([pattern(op) for op in builtin()])
    have, want = TensorInfo((4, 6), "f32"), TensorInfo((4, 6), "i32")
    assert adapters.adapt("x", have, want) is not None


# ---- suggestions ------------------------------------------------------------------------------


def suggested(text: str) -> tuple[str, Diagnostic]:
    """The text after the edits of its one fault, and that fault."""
    file = parse(text)
    plain = [replace(d, edits=(), help="") for d in check(file, builtin()).diagnostics]
    (found,) = [d for d in with_suggestions(file, builtin(), plain) if d.severity == "error"]
    changed = apply(text, found.edits)
    assert changed is not None
    return changed, found


def model(body: str, result: str) -> str:
    head = f"nnir 1\n\nmodel m(x: f32[2, 6, 8, 8], v: f32[2, 12]) -> {result} {{\n"
    return head + "".join(f"  {line}\n" for line in body.splitlines()) + "}\n"


@pytest.mark.parametrize(
    ("body", "result", "expected"),
    [
        ("y = softmax(x; axis = 4)", "y: f32[2, 6, 8, 8]", "softmax(x; axis = 3)"),
        ("y = reshape(x; shape = [2, 383])", "y: f32[2, 384]", "shape = [2, 384]"),
        ("param w: f32[13, 3]\ny = dense(v, w)", "y: f32[2, 3]", "param w: f32[12, 3]"),
        ("param w: f32[4, 5, 3, 3]\ny = conv(x, w)", "y: f32[4]", "param w: f32[4, 6, 3, 3]"),
        ("param w: f32[4, 3, 3, 3]\ny = conv(x, w)", "y: f32[4]", "groups = 2"),
    ],
)
def test_edits_make_the_call_fit(body: str, result: str, expected: str) -> None:
    changed, found = suggested(model(body, result))
    assert expected in changed
    assert found.help
    codes = [d.code for d in check(parse(changed), builtin()).diagnostics]
    assert found.code not in codes


def test_a_computed_operand_gets_an_adapter() -> None:
    body = "a = relu(v)\nb = relu(x)\nf = flatten(b)\nparam w: f32[12, 384]\nd = dense(a, w)\n"
    text = model(body + "y = concat(d, b; axis = 1)", "y: f32[2, 768]")
    changed, found = suggested(text)
    assert len(found.edits) == 2
    assert "insert" in found.help
    assert not [d for d in check(parse(changed), builtin()).diagnostics if d.code == found.code]


def test_two_faults_of_one_call_are_mended_together() -> None:
    body = "param w: f32[4, 5, 3, 3]\ny = conv(x, w; stride = 0)"
    text = model(body, "y: f32[2, 4, 6, 6]")
    file = parse(text)
    plain = [replace(d, edits=()) for d in check(file, builtin()).diagnostics]
    found = with_suggestions(file, builtin(), plain)
    assert len([d for d in found if d.severity == "error"]) == 2
    edits = [d.edits for d in found if d.edits]
    assert len(edits) == 1
    changed = apply(text, edits[0])
    assert changed is not None
    assert check(parse(changed), builtin()).valid


def test_nothing_is_suggested_where_the_text_serves_several_calls() -> None:
    text = (
        "nnir 1\n\nmodel m(x: f32[4, 4]) -> y: f32[4, 4] {\n  for i < 2 {\n"
        "    x = softmax(x; axis = 5)\n  }\n  y = relu(x)\n}\n"
    )
    file = parse(text)
    plain = [replace(d, edits=()) for d in check(file, builtin()).diagnostics]
    assert plain
    assert all(not d.edits for d in with_suggestions(file, builtin(), plain))


def test_most_numbers_that_are_mistyped_are_mended() -> None:
    """One number of a generated text is changed; where that is a fault of a call, edits mend it."""
    chooser = Chooser("mistyped")
    faulty = mended = 0
    for seed in range(120):
        text = generate(builtin(), seed, size=(4, 10)).text
        start = text.index("{")
        numbers = [m for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", text) if m.start() > start]
        if not numbers:
            continue
        found = chooser.pick(numbers)
        changed = str(max(0, int(found.group()) + chooser.pick((-2, -1, 1, 2, 7))))
        text = text[: found.start()] + changed + text[found.end() :]
        file = parse(text)
        plain = [replace(d, edits=()) for d in check(file, builtin()).diagnostics]
        if not any(builtin().op(d.code.partition(".")[0]) for d in plain):
            continue
        faulty += 1
        for diagnostic in with_suggestions(file, builtin(), plain):
            if diagnostic.edits:
                after = apply(text, diagnostic.edits)
                assert after is not None
                codes = [(d.code, d.node) for d in check(parse(after), builtin()).diagnostics]
                mended += (diagnostic.code, diagnostic.node) not in codes
                break
    assert faulty > 20
    assert mended / faulty > 0.9
