"""Names and words of a file stay data: in the programs that are written, and after any damage."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from irlang.catalog import builtin
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs, require_memory
from irlang.lower.target import usual
from irlang.parser import parse

ROOT = Path(__file__).parents[1]
INSTALLED = usual()
TOKEN = re.compile(
    r'"""(?:.|\n)*?"""|"[^"\n]*"|[A-Za-z_]\w*(?:\.\.)?|[0-9.]+|\s+|\?\?|->|[<>=!]=|.'
)

EVIL = '''"""Ends: \'\'\' "" import os; os.system("touch TRACE") \\N{DASH} {0} %s \\x41 \\"" " \\"""
model lambda(class: f32[2, 3], torch: f32[2, 3], np: f32[3, 2], run: f32[2, 3],
    __class__: f32[2, 3])
    -> import: f32[2, 2], None: f32[2, 3] {
  param self: f32[2, 3]
  param exec: f32[2, 3] = 1
  param tf: f32[2, 3] = 2
  param onnxruntime: f32[2, 3] = 0.5
  F = add(class, torch)
  sys = add(F, add(run, __class__))
  v = multiply(sys, add(self, add(exec, add(tf, onnxruntime))))
  import = matmul(v, np)
  None = relu(v)
  loss = reduce_mean(None)
}
'''  # fmt: skip
ALIKE = """model m(x: f32[2], xﬁ: f32[2], xfi: f32[2]) -> y: f32[2] {
  y = add(add(xﬁ, x), multiply(2, xfi))
}
"""


@pytest.mark.skipif(not INSTALLED, reason="no framework is installed")
@pytest.mark.parametrize("text", [EVIL, ALIKE], ids=["words of Python", "alike to Python"])
def test_names_and_texts_are_data_in_programs(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    file = tmp_path / "evil.nnir"
    file.write_text(text.replace("TRACE", str(trace)), "utf-8")
    gradients = ["--grad"] if "loss" in text else []
    assert status(["diff", str(file), *gradients, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {found["target"] for found in told["outputs"]} == set(INSTALLED)
    assert {found["verdict"] for found in told["outputs"]} <= {"agrees", "rounding"}
    assert not trace.exists()


def damaged(text: str, chance: random.Random) -> str:
    """A text with a few of its words left out, doubled, exchanged, or replaced by others of it."""
    tokens = TOKEN.findall(text)
    for _ in range(chance.randint(1, 3)):
        i, j = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                del tokens[i]
            case 1:
                tokens.insert(i, tokens[j])
            case 2:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case 3:
                tokens[i] = tokens[j]
            case _:
                tokens[i] = chance.choice(
                    ["0", "-1", "inf", "nan", "true", '"a"', "[]", "x", "1/0", "1e99"]
                )
    return "".join(tokens)


SOURCES = [
    *sorted((ROOT / "examples").glob("*.nnir")),
    *sorted((ROOT / "irlang/ops").glob("*.nnir")),
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_damage_is_refused_or_harmless(path: Path) -> None:
    """No exception but `InvalidInput`, whatever words stand where."""
    text = path.read_text("utf-8")
    chance = random.Random(path.stem)
    if path.parent.name == "ops":  # a definition at a time, called by nobody or by its own file
        pieces = [piece + "\n}\n" for piece in text.split("\n}\n") if "op " in piece]
    else:
        pieces = [text]
    refused = 0
    for _ in range(60):
        piece = damaged(chance.choice(pieces), chance)
        try:
            found = check(parse(piece, "damaged.nnir"), builtin())
        except InvalidInput as error:
            refused += bool(error.diagnostics)
            continue
        refused += not found.valid
        for graph in found.graphs:
            try:
                require_memory(graph)
                run(graph, {**inputs(graph, 0), **initial_values(graph, 0)}, found.catalog)
            except InvalidInput as error:
                refused += bool(error.diagnostics)
    assert refused > 10
