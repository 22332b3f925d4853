"""The command line over texts: `check`, `fmt`, exit statuses, and no traceback whatever comes."""

import json
import os
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import irlang
from irlang.cli import status

GOOD = "let a = 1\n"
UGLY = "let   a=1 # one\r\n"
BROKEN = "model m(x: f32[2]) -> y: f32[2] { y = softmax(x, axis = 0); }\nlet b == 3\n"
MENDED = "model m(x: f32[2]) -> y: f32[2] { y = softmax(x; axis = 0) }\nlet b = 3\n"


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "irlang", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **more},
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.nnir"


def test_version() -> None:
    assert run("--version").stdout == f"irlang {irlang.__version__}\n"


def imported(*arguments: str) -> set[str]:
    """The first names of all that an interpreter imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}


def test_version_is_told_at_once() -> None:
    """Of packages it imports click alone: what takes time is left to the command that needs it."""
    more = imported("-m", "irlang", "--version") - imported("-c", "")
    assert more & {*metadata.packages_distributions(), "irlang"} == {"click", "irlang"}


def test_check(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GOOD)
    assert status(["check", str(file)]) == 0
    assert "valid" in capsys.readouterr().out
    file.write_text(BROKEN)
    assert status(["check", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "error[syntax.attributes]" in shown
    assert "2 errors in" in shown


def test_check_as_json_and_sarif(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BROKEN)
    assert status(["check", str(file), "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["valid"] is False
    assert [(d["line"], d["column"]) for d in data["diagnostics"]] == [(1, 48), (2, 7)]
    assert status(["check", str(file), "--format", "sarif"]) == 1
    assert json.loads(capsys.readouterr().out)["version"] == "2.1.0"


def test_check_fix_mends_what_is_plain(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BROKEN)
    assert status(["check", "--fix", str(file)]) == 0
    assert file.read_text() == MENDED
    shown = capsys.readouterr().out
    assert shown.count("fixed[") == 3
    assert status(["check", "--fix", str(file)]) == 0
    assert "fixed" not in capsys.readouterr().out


def test_check_fix_keeps_line_breaks(file: Path) -> None:
    file.write_bytes(BROKEN.replace("\n", "\r\n").encode())
    assert status(["check", "--fix", str(file)]) == 0
    assert file.read_bytes() == MENDED.replace("\n", "\r\n").encode()


def test_fmt(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(UGLY.encode())
    file.chmod(0o640)
    assert status(["fmt", "--check", str(file)]) == 1
    assert str(file) in capsys.readouterr().out
    assert file.read_bytes() == UGLY.encode()
    assert status(["fmt", str(file)]) == 0
    assert file.read_bytes() == b"let a = 1  # one\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert status(["fmt", "--check", str(file)]) == 0
    assert [path.name for path in file.parent.iterdir()] == ["m.nnir"]


def test_fmt_leaves_a_broken_file_alone_and_goes_on(file: Path) -> None:
    other = file.with_name("other.nnir")
    file.write_text(BROKEN)
    other.write_text(UGLY)
    assert status(["fmt", str(file), str(other)]) == 1
    assert file.read_text() == BROKEN
    assert other.read_text() == "let a = 1  # one\n"


def test_fmt_writes_through_a_link(file: Path) -> None:
    link = file.with_name("link.nnir")
    file.write_text(UGLY)
    link.symlink_to(file)
    assert status(["fmt", str(link)]) == 0
    assert link.is_symlink()
    assert file.read_text() == "let a = 1  # one\n"


@pytest.mark.parametrize("verb", ["check", "fmt"])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xfel\x00", "file.encoding"),
        (b"let a = 1 # \xe9\n", "file.encoding"),
        (b"\x7fELF\x00\x01", "file.binary"),
        (None, "file.unreadable"),
    ],
)
def test_what_is_no_text_is_refused(
    verb: str, data: bytes | None, code: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        file.write_bytes(data)
    assert status([verb, str(file)]) == 2
    shown = capsys.readouterr()
    assert code in shown.out + shown.err


@pytest.mark.parametrize("verb", ["check", "fmt"])
def test_a_folder_and_an_impossible_name_are_refused(verb: str, tmp_path: Path) -> None:
    assert status([verb, str(tmp_path)]) == 2
    assert status([verb, "a\0b"]) == 2
    assert status([verb, "x" * 5000]) == 2


def test_a_huge_file_is_refused_before_it_is_read(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    assert status(["check", str(file)]) == 2


def test_the_place_of_a_wrong_byte_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"\xef\xbb\xbflet a = 1\n# \xe9\n")
    assert status(["check", str(file)]) == 2
    assert "line 2, column 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["check"], ["fmt"], ["nonsense"], ["check", "--format", "xml", "f"], ["--x"]]
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert status(arguments) == 2


def test_a_broken_pipe_is_quiet(file: Path) -> None:
    file.write_text("let a = f(x;)\n" * 2000)
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "irlang", "check", str(file)], stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        _, errors = process.communicate(timeout=60)
    assert errors == b""


def test_help_names_the_verbs() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "check" in done.stdout
    assert "fmt" in done.stdout


def test_hash_order_changes_nothing(file: Path) -> None:
    """What is expected at an error is a set; it is told in the same order in every run."""
    file.write_text("let a = 3 +\nmodel m(x: f32[1]) -> y: f32[1] {\n  y = f(x\n")
    runs = [run("check", str(file), PYTHONHASHSEED=str(seed)).stdout for seed in range(3)]
    assert runs[0]
    assert len(set(runs)) == 1
