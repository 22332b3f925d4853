"""What a definition requires, as the generator reads it, and that drafts keep to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from irlang import ast
from irlang.catalog import builtin
from irlang.gen import calls
from irlang.gen.build import generate
from irlang.gen.judge import judge, score
from irlang.gen.required import Required, required
from irlang.instance import Instance
from irlang.parser import parse
from irlang.parser.printer import print_expr
from irlang.signature import Given


def _of(text: str) -> Required:
    (op,) = parse(f"nnir 1\n{text}", "f.nnir").ops
    return required(op)


def test_what_one_way_to_meet_a_condition_asks_for_is_no_equation() -> None:
    made = _of(
        "op f[T: any](x: T[S..], z: T[Z..]; axis: int = 0) -> y: T[S..] {\n"
        '  require fits: rank(Z) == 0 or Z[0] == S[axis] else "no"\n'
        "  y[s..] = x[s..]\n}\n"
    )
    assert not made.equal
    assert [print_expr(node) for node in made.listed["Z"]] == ["[S[axis]]"]
    assert made.behind("Z") == {"S", "axis"}


def test_a_list_may_be_asked_for_entry_by_entry() -> None:
    made = _of(
        "op f[T: any](x: T[S..], z: T[Z..]; step: int = 1) -> y: T[S..] {\n"
        "  let O.. = S // max(step, 1)\n"
        '  require fits: rank(Z) == rank(O) and (all(d < rank(O)) Z[d] == O[d] + 1) else "no"\n'
        "  y[s..] = x[s..]\n}\n"
    )
    (node,) = made.listed["Z"]
    formula = made.formula(node)
    assert formula.names == {"S", "step"}  # the list between them is none of its own
    assert formula.value({"S": (9, 4), "step": 3}) == (4, 2)


def test_conditions_on_elements_of_inputs_say_nothing_of_sizes() -> None:
    made = _of(
        "op f[T: any, I: int](x: T[S..], n: I[], m: I[M]) -> y: T[S..] {\n"
        '  require lone: n[] == 3 or m[0] == n[] else "no"\n'
        "  y[s..] = x[s..]\n}\n"
    )
    assert not made.conditions


def test_what_is_at_most_something_is_asked_for_only_where_others_must_be_equal() -> None:
    made = _of(
        "op f[T: any](x: T[S..], u: T[U..], k: T[K..]; axis: int = 0) -> y: T[S..] {\n"
        "  require sizes: rank(U) != rank(S)\n"
        "      or (all(d < rank(S)) if d == axis then U[d] <= S[d] else U[d] == S[d])\n"
        '      else "no"\n'
        '  require fits: all(d < rank(S)) K[d] <= S[d] else "no"\n'
        "  y[s..] = x[s..]\n}\n"
    )
    assert made.listed.keys() == {"U"}


def test_a_formula_calls_the_functions_of_its_definition() -> None:
    made = _of(
        "op f[T: any](x: T[S..]; kind: {a, b} = a, n: int = half(rank(x), kind)) -> y: T[S..] {\n"
        "  let half(v, kind) = match kind { a: v // 2, b: v }\n"
        "  y[s..] = x[s..] + n\n}\n"
    )
    node = ast.Call("half", (ast.Name("m"), ast.Name("kind")))
    assert made.formula(node).value({"m": 7, "kind": "a"}) == 3
    assert made.formula(node).value({"m": 7, "kind": "b"}) == 7


@pytest.mark.parametrize(
    "name",
    [
        "quantize_linear",
        "fake_quantize",
        "locally_connected",
        "deform_conv",
        "reverse_sequence",
        "conv_lstm",
        "gather_nd",
        "lstm",
        "conv",
    ],
)
def test_most_drafts_fit_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn in vain is what a campaign has no calls of."""
    fits: list[bool] = []

    def judged(op: ast.Op, inputs: Mapping[str, Given], attrs: Mapping[str, Any]) -> Any:
        found = judge(op, inputs, attrs)
        if op.name == name:
            fits.append(score(found) == 0)
        return found

    monkeypatch.setattr(calls, "judge", judged)
    for seed in range(30):
        generate(builtin(), seed, ops=[name], apart=[name])
    assert sum(fits) >= len(fits) / 2


def _drawn(name: str, seeds: int) -> list[Instance]:
    return [
        node.instance
        for seed in range(seeds)
        for node in generate(builtin(), seed, ops=[name], apart=[name]).graph.nodes
    ]


def test_a_truth_value_on_which_a_place_depends_is_drawn_as_one() -> None:
    """It was drawn as the number of an axis, and all but those that were mended fitted nowhere."""
    first = [one.binding.scope.names["batch_first"] for one in _drawn("lstm", 60)]
    assert first.count(True) >= 12
    assert first.count(False) >= 12


@pytest.mark.parametrize(
    ("name", "attr"),
    [("lstm", "alpha"), ("gru", "recurrent_beta"), ("split", "sizes"), ("resize", "size")],
)
def test_defaults_that_go_back_to_others_are_drawn(name: str, attr: str) -> None:
    nodes = [
        node
        for seed in range(180)
        for node in generate(builtin(), seed, ops=[name], apart=[name]).graph.nodes
    ]
    said = sum(attr in node.attrs for node in nodes)
    assert 3 <= said <= len(nodes) - 3


def test_a_word_on_which_a_place_depends_is_one_of_its_choices() -> None:
    text = (
        "nnir 1\n"
        "op f[T: float](x: T[N, C @ (match layout { first: 1, last: rank(x) - 1 }), S..];\n"
        "    layout: {first, last} = first) -> y: T[N, S..] {\n"
        "  y[n, s..] = sum(c < C) x[n, c, s..]\n}\n"
    )
    catalog = builtin().with_file(parse(text, "f.nnir"))
    nodes = [
        node for seed in range(20) for node in generate(catalog, seed, apart=["f"]).graph.nodes
    ]
    assert {node.attrs.get("layout", "first") for node in nodes} == {"first", "last"}
