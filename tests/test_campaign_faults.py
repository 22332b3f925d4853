"""Faults from outside: processes that are killed, disks that are full, folders that are closed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.cli import status
from irlang.commands.ends import asked_to_end
from irlang.commands.report import command as report_command
from irlang.diagnostics import InvalidInput, fail
from irlang.diff import guard
from irlang.diff.campaign import FAULTS, Campaign
from irlang.diff.programs import Settings
from irlang.diff.spread import Spread, tell
from irlang.diff.store import Store

SETTINGS = {"targets": ["torch"], "seed": 1, "programs": 32, "ops": [], "grad": False}


def square(folder: Path, fatal: int, number: int) -> int:
    """Work that once ends its process at 3, and always at `fatal`."""
    mark = folder / "mark"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == fatal:
        time.sleep(0.5)  # the others are done
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_work_whose_process_is_killed_is_run_again_and_at_last_left_out(tmp_path: Path) -> None:
    found: dict[int, int] = {}
    spread = Spread(2, functools.partial(square, tmp_path, 5), found.__setitem__)
    spread.run(iter(range(8)))
    assert (tmp_path / "mark").exists()
    assert 5 in spread.lost
    assert found == {n: n * n for n in range(8) if n not in spread.lost}
    assert len(spread.lost) <= 3, "of those beside it, at most one a process is charged"


def count(folder: Path, number: int) -> int:
    """Work that writes down that it was begun, and once ends its process at 2."""
    with (folder / str(number)).open("a", encoding="utf-8") as file:
        file.write(".")
    if number == 2 and not (folder / "mark").exists():
        time.sleep(0.5)  # 1 is over
        (folder / "mark").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_result_that_is_there_when_another_process_dies_is_kept(tmp_path: Path) -> None:
    found: dict[int, int] = {}

    def finished(number: int, result: int) -> None:
        until = time.monotonic() + 60
        while not (tmp_path / "mark").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        found[number] = result

    Spread(2, functools.partial(count, tmp_path), finished).run(iter(range(4)))
    assert found == {n: n for n in range(4)}
    begun = {n: len((tmp_path / str(n)).read_text("utf-8")) for n in range(4)}
    assert begun[1] == 1, "its result came before the process of 2 was killed"
    assert begun[2] == 2


def halt(folder: Path, number: int) -> int:
    """Work that once stops its process at 2."""
    mark = folder / "mark"
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return number


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not listed here")
def test_a_process_that_is_stopped_is_killed_and_its_work_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irlang.diff.spread._STOPPED", 2)
    found: dict[int, int] = {}
    spread = Spread(2, functools.partial(halt, tmp_path), found.__setitem__)
    spread.run(iter(range(5)))
    assert (tmp_path / "mark").exists()
    assert found == {n: n for n in range(5)}
    assert not spread.lost


def speak(folder: Path, number: int) -> int:
    """Work that says what it is at, and once ends its process while it speaks."""
    tell((number, "begun"))
    mark = folder / "mark"
    if number == 3 and not mark.exists():
        mark.touch()
        threading.Thread(target=tell, args=((number, bytes(1 << 26)),), daemon=True).start()
        os.kill(os.getpid(), signal.SIGKILL)
    tell((number, "done"))
    return number


def test_what_work_tells_is_heard_before_it_is_finished(tmp_path: Path) -> None:
    said: list[tuple[int, str]] = []
    looks: list[None] = []

    def finished(number: int, result: int) -> None:
        # Work whose process ends with another's, before its result is there, says it again.
        assert (number, "begun") in said[: said.index((number, "done"))]
        said.append((result, "finished"))

    work = functools.partial(speak, tmp_path)
    spread = Spread(2, work, finished, said.append, lambda: looks.append(None))
    spread.run(iter(range(6)))
    assert sorted(n for n, word in said if word == "finished") == list(range(6))
    assert not spread.lost
    assert looks


def test_a_fault_of_our_own_costs_its_batch_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written down with its place, and the batch is tried again by --resume."""
    ran: list[int] = []

    def batch(_: Settings, number: int, __: object) -> tuple[dict[str, Any], list[Any]]:
        ran.append(number)
        if number == 1 and ran.count(1) == 1:
            raise AssertionError("two shapes of one value")
        if number == 2 and ran.count(2) == 1:
            raise fail("lower.contract", "the emitted program is at fault")
        if number == 3 and ran.count(3) == 1:  # a definition by values that a reduction has made
            raise fail("definition.the", "no value satisfies the condition of `the`")
        empty = {"programs": 32, "valid": 32, "tried": 32, "targets": {}, "covered": {}}
        return empty, []

    monkeypatch.setattr(guard, "run_batch", batch)
    campaign = Campaign(tmp_path / "c", Settings(("torch",), 1, 4 * 32, jobs=1))
    campaign.run(lambda _: None)
    report = campaign.report()
    campaign.close()
    assert ran == [0, 1, 2, 3]
    assert report["faults"] == [1, 2, 3]
    assert report["programs"] == 32
    text = (tmp_path / "c" / FAULTS).read_text("utf-8")
    assert "batch 1 of seed 1\n" in text
    assert "AssertionError: two shapes of one value" in text
    assert "the emitted program is at fault" in text
    again = Campaign(tmp_path / "c", None)
    again.run(lambda _: None)
    assert ran == [0, 1, 2, 3, 1, 2, 3]
    assert again.report()["programs"] == 4 * 32
    assert again.report()["faults"] == []
    again.close()


def test_a_fault_of_what_is_around_ends_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def batch(*_: object) -> None:
        raise fail("file.campaign", "the disk is full")

    monkeypatch.setattr(guard, "run_batch", batch)
    campaign = Campaign(tmp_path / "c", Settings(("torch",), 1, 32, jobs=1))
    with pytest.raises(InvalidInput, match="the disk is full"):
        campaign.run(lambda _: None)
    campaign.close()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:6000])


def _scribble(path: Path) -> None:
    path.write_bytes(b"\xff" * 40_000)


def _remove(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("harm", [_cut, _scribble, _remove])
def test_a_store_that_is_harmed_meanwhile_is_said(
    harm: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever does that to a campaign that runs is told so, in a line."""

    def batch(_: Settings, number: int, __: object) -> tuple[dict[str, Any], list[Any]]:
        if number == 1:
            harm(tmp_path / "c" / "campaign.sqlite")
        return {"programs": 32, "valid": 32, "tried": 32, "targets": {}, "covered": {}}, []

    monkeypatch.setattr(guard, "run_batch", batch)
    campaign = Campaign(tmp_path / "c", Settings(("torch",), 1, 3 * 32, jobs=1))
    with pytest.raises(InvalidInput, match=r"campaign\.sqlite") as caught:
        campaign.run(lambda _: None)
    assert caught.value.diagnostics[0].code == "file.campaign"
    campaign.close()


SPREAD = """
import faulthandler, os, signal, time
from pathlib import Path
from irlang.diff.spread import processes, submit

def work(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    # a shell has what it starts in the background ignore ^C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with processes(2) as pool:
        for one in [submit(pool, work, {folder!r}) for _ in range(2)]:
            one.result()
"""


def _is_there(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not listed here")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_processes_end_with_the_one_that_gives_them_work(name: str, tmp_path: Path) -> None:
    """At once, without a word, and whatever they are at; ^C goes to all of a terminal's."""
    script = tmp_path / "spread.py"
    marks = tmp_path / "marks"
    marks.mkdir()
    script.write_text(SPREAD.replace("{folder!r}", repr(str(marks))))
    parent = subprocess.Popen(
        [sys.executable, script], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(list(marks.iterdir())) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    children = [int(mark.name) for mark in marks.iterdir()]
    if name == "SIGINT":
        os.killpg(parent.pid, signal.SIGINT)
    else:
        parent.send_signal(getattr(signal, name))
    try:
        said = parent.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        parent.send_signal(signal.SIGUSR1)  # it says where it hangs
        time.sleep(1)
        os.killpg(parent.pid, signal.SIGKILL)
        pytest.fail(parent.communicate()[1])
    while any(map(_is_there, children)):
        assert time.monotonic() < deadline + 60
        time.sleep(0.1)
    assert said.count("Traceback") == (name == "SIGINT"), "the parent's own"


def _store(folder: Path) -> Store:
    return Store(folder, SETTINGS)


class _Full:
    """A connection whose disk is full from some statement on."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self.real = real

    def execute(self, statement: str, *values: Any) -> object:
        if statement.split()[0] in ("insert", "replace", "begin"):
            raise sqlite3.OperationalError("database or disk is full")
        return self.real.execute(statement, *values)

    def __enter__(self) -> object:
        return self.real.__enter__()

    def __exit__(self, *error: object) -> object:
        return self.real.__exit__(*error)  # type: ignore[arg-type]

    def close(self) -> None:
        self.real.close()


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.add_batch(0, {"programs": 32})
    real = store._db
    store._db = _Full(real)  # type: ignore[assignment]
    for write in (
        lambda: store.add_batch(1, {}),
        lambda: store.claim(1),
        lambda: store.reserve("a"),
        lambda: store.add_finding("f-001", "a", {}),
    ):
        with pytest.raises(InvalidInput, match="disk is full") as caught:
            write()
        assert caught.value.diagnostics[0].code == "file.campaign"
        assert "--resume" in str(caught.value.diagnostics[0].help)
    store._db = real
    assert [number for number, _ in store.batches()] == [0]
    assert store.claim(1)
    store.close()


def test_a_campaign_that_cannot_be_written_to_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "c"
    store = Store(folder, {**SETTINGS, "seconds": None, "jobs": 1, "known": "", "profile": ""})
    store.close()
    before = sorted(path.name for path in folder.iterdir())
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)  # root may write anywhere
    out = tmp_path / "page.html"
    shown = CliRunner().invoke(report_command, [str(folder), "-o", str(out)], standalone_mode=False)
    assert shown.exception is None
    assert "Campaign 1" in out.read_text()
    told = CliRunner().invoke(report_command, [str(folder), "--format", "json"])
    assert json.loads(told.output)["page"] == ""
    assert sorted(path.name for path in folder.iterdir()) == before
    with pytest.raises(InvalidInput, match=r"readonly|read-only"):
        Store(folder, None).claim(0)


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 20000])
def test_a_store_cut_short_is_refused(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = _store(tmp_path)
    for number in range(40):
        store.add_batch(number, {"programs": 32, "text": "x" * 500})
    store.close()
    path = tmp_path / "campaign.sqlite"
    whole = path.read_bytes()
    assert len(whole) > 20000
    path.write_bytes(whole[:size])
    assert status(["report", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "file.campaign" in said.err + said.out
    assert "Traceback" not in said.err


@functools.cache
def _whole() -> bytes:
    """The file of a campaign of 40 batches."""
    with tempfile.TemporaryDirectory() as name, contextlib.closing(_store(Path(name))) as store:
        for number in range(40):
            store.add_batch(number, {"programs": 32, "text": "x" * 500})
        return (Path(name) / "campaign.sqlite").read_bytes()


@given(place=st.integers(0, len(_whole()) - 100), seed=st.integers(0, 1 << 20))
@settings(max_examples=100, deadline=None)
def test_a_store_with_a_damaged_page_is_refused_or_has_all_its_batches(
    place: int, seed: int
) -> None:
    """A page that is not read as a tree any more would be so many batches fewer."""
    damaged = bytearray(_whole())
    damaged[place : place + 100] = random.Random(seed).randbytes(100)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "campaign.sqlite").write_bytes(damaged)
        with (
            contextlib.suppress(InvalidInput),
            contextlib.closing(Store(Path(name), None)) as again,
            again.reading(),
        ):
            assert len(list(again.batches())) == 40


@functools.cache
def _finding() -> dict[str, Any]:
    """A finding as a campaign keeps it."""
    texts = dict.fromkeys(("id", "target", "operator", "message", "signature", "title"), "f-001")
    return {
        **texts, "verdict": "wrong", "attributes": {"a": "1"}, "operators": 1, "elements": 2,
        "others": {"tf": "agrees"}, "expected": {"y": "[1, 2]"}, "got": {"y": "[1, 3]"},
        "outside": {"y": [1]}, "inputs": {"x": "[1, 2]"}, "repeated": True, "seed": 1,
    }  # fmt: skip


_BATCH = {
    "programs": 32, "valid": 32, "tried": 33, "targets": {"torch": {"agrees": 32}},
    "covered": {"operators": {"relu": 2}}, "invalid": {"torch": {"refused": 3}},
}  # fmt: skip
_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1e300, "", "x", "<b>", "\x1b[31m", "../..", [], [1], {}, {"a": [{}]}, {"y": 5}]
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_store_that_says_other_things_is_refused_or_shown(data: st.DataObject) -> None:
    """Whatever its texts hold, no more comes of it than a diagnostic, or a page and a table."""
    finding, batch = dict(_finding()), {**_BATCH}
    saved = {**SETTINGS, "seconds": None, "jobs": 1, "known": "", "profile": ""}
    for part in (finding, batch, saved):
        if data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(part)))
            part[key] = data.draw(_ODD)
            if part is batch and isinstance(_BATCH[key], dict) and data.draw(st.booleans()):
                part[key] = {"torch": data.draw(_ODD) or {"agrees": data.draw(_ODD)}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.closing(Store(folder, saved)) as store:
            store.add_batch(0, batch)
            store.add_finding("f-001", "s", finding)
        for arguments in ([], ["--format", "json"]):
            shown = CliRunner().invoke(report_command, [str(folder), *arguments])
            assert shown.exception is None or isinstance(
                shown.exception, (InvalidInput, SystemExit)
            )
        page = folder / "report.html"
        assert not page.exists() or "\x1b" not in page.read_text("utf-8")


def test_who_is_asked_to_end_twice_in_a_moment_is_interrupted_once() -> None:
    """As `timeout` asks; the second would come while the first is being heeded."""
    with asked_to_end():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
