"""What the documentation says of `irlang analyze` is what it prints, but for times and versions."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from irlang.analysis.rules import smalls
from irlang.cli import status
from irlang.dtypes import DTYPES
from tests.test_docs import COMMAND, README, ROOT, blocks

ANALYSIS = ROOT / "docs" / "analysis.md"
VARYING = re.compile(r"\d+\.\d+ s\b|\b\d+\.\d+\.\d+\S*")


def test_the_tour_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for title, text in blocks(README, "nnir"):
        (tmp_path / title).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    compared = 0
    for _, text in blocks(README, "console"):
        for command, shown in COMMAND.findall(text):
            arguments = shlex.split(command)[1:]
            if "analyze" not in arguments:
                continue
            status(arguments)
            lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
            if os.environ.get("IRLANG_REWRITE"):
                new = f"$ {command}\n" + "".join(f"{line}\n" for line in lines)
                whole = README.read_text("utf-8")
                README.write_text(whole.replace(f"$ {command}\n{shown}", new), "utf-8")
                continue
            told = [VARYING.sub("#", line) for line in shown.rstrip().splitlines()]
            assert [VARYING.sub("#", line) for line in lines] == told, command
            compared += 1
    assert compared == 2 or os.environ.get("IRLANG_REWRITE")


def test_the_numbers_of_guards_are_those_in_the_page() -> None:
    text = ANALYSIS.read_text("utf-8")
    told = {name: [f"{n:.0e}".replace("e-0", "e-") for n in smalls(DTYPES[name])] for name in DTYPES
            if name in ("f16", "f32")}  # fmt: skip
    assert told == {"f32": ["1e-6"], "f16": ["1e-4", "1e-3", "1e-2"]}
    assert "1e-6 in f32 is 1e-4, 1e-3 or 1e-2 in f16" in text
