"""A campaign on disk: one SQLite file in its directory, a transaction for every finished batch.

What was finished when a process was killed is there afterwards; `--resume` goes on behind it.
Several processes may work on one campaign: each claims the batches that it runs, and what a dead
process had claimed is free again. A process is alive as long as it holds the lock on its file.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any, TextIO, get_args, get_origin

from irlang.diagnostics import fail
from irlang.diff.verdict import FINDINGS

_SCHEMA = """
create table if not exists settings (key text primary key, value text not null);
create table if not exists batches (number integer primary key, result text not null);
create table if not exists findings
    (id text primary key, signature text unique, result text not null);
create table if not exists claims (number integer primary key, owner text not null);
create table if not exists pending (id text primary key, signature text unique, owner text);
"""
# What is read back by its key, and its types.
_SETTINGS: dict[str, Any] = {
    "targets": list[str], "seed": int, "programs": (int, NoneType), "ops": list[str], "grad": bool,
    "seconds": (int, float, NoneType), "jobs": int, "known": str, "profile": str,
}  # fmt: skip
_FINDING: dict[str, Any] = {
    **dict.fromkeys(("id", "verdict", "target", "operator", "message", "signature"), str),
    "attributes": dict[str, str], "operators": int,
}  # fmt: skip
_MORE: dict[str, Any] = {  # and what one need not have
    **dict.fromkeys(("title", "version", "reduced", "script", "report"), str),
    **dict.fromkeys(("others", "expected", "got", "inputs"), dict[str, str]),
    "outside": dict[str, list[int]], "repeated": bool, "elements": int, "seed": int,
}  # fmt: skip
_NAME = re.compile(r"f-[0-9]+")  # of a finding, and of its folder
_PATIENCE = 60.0  # seconds that one process waits for another's transaction
_RUNNING = ".running-"


class Store:
    """The store of one campaign; `settings` are fixed when it is made.

    A campaign in a folder that cannot be written to can be read, as for its report.
    """

    def __init__(self, folder: Path, settings: dict[str, Any] | None) -> None:
        self.folder = folder
        path = folder / "campaign.sqlite"
        if settings is None and not path.is_file():
            raise fail("file.campaign", f"{folder} holds no campaign to resume")
        self.owner = uuid.uuid4().hex
        self._lock: TextIO | None = None
        try:
            if settings is None and not os.access(folder, os.W_OK):
                self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(path, timeout=_PATIENCE)
                self._db.executescript(_SCHEMA)
                self._lock = (folder / f"{_RUNNING}{self.owner}").open("w", encoding="utf-8")
                fcntl.flock(self._lock, fcntl.LOCK_EX)
        except (OSError, sqlite3.Error, UnicodeError) as error:
            raise fail("file.campaign", f"{folder} cannot hold a campaign: {error}") from None
        if settings is None:
            self._require_whole()
        else:
            if any(True for _ in self.batches()):
                raise fail(
                    "file.campaign", f"{folder} holds a campaign already", help=f"--resume {folder}"
                )
            with self._written(), self._db:
                for key, value in settings.items():
                    self._db.execute(
                        "replace into settings values (?, ?)", (key, json.dumps(value))
                    )

    def _require_whole(self) -> None:
        """Raises `file.campaign` where pages of the file are damaged: rows would be missing."""
        try:
            told = str(self._one("pragma quick_check(1)")[0])
        except (sqlite3.Error, UnicodeError) as error:
            told = str(error)
        if told != "ok":
            raise fail(
                "file.campaign",
                f"{self.folder / 'campaign.sqlite'} is damaged: {' '.join(told.split())}",
                help="its findings are in the folders beside it; start another campaign: "
                "irlang fuzz --out FOLDER",
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is not as a campaign writes it is the file's fault: raises `file.campaign`."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise fail(
                "file.campaign",
                f"{self.folder / 'campaign.sqlite'} cannot be read: {error}",
                help=f"what is finished is there; irlang fuzz --resume {self.folder} goes on",
            ) from None
        except (sqlite3.Error, AttributeError, LookupError, TypeError, ValueError) as error:
            raise fail(
                "file.campaign",
                f"{self.folder / 'campaign.sqlite'} is not what `irlang fuzz` writes: "
                f"{type(error).__name__}: {error}",
                help="start another: irlang fuzz --out FOLDER",
            ) from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A transaction in which no other process writes."""
        with self._written():
            self._db.execute("begin immediate")
            with self._db:
                yield

    @contextmanager
    def _written(self) -> Iterator[None]:
        """A disk that is full, or read only, is said: raises `file.campaign`. Nothing is lost."""
        try:
            yield
        except sqlite3.Error as error:
            raise fail(
                "file.campaign",
                f"{self.folder / 'campaign.sqlite'} cannot be written: {error}",
                help=f"what is finished is there; irlang fuzz --resume {self.folder} goes on",
            ) from None

    def _alive(self, owner: str) -> bool:
        """Whether a process still works on the campaign."""
        path = self.folder / f"{_RUNNING}{owner}"
        try:
            with path.open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        path.unlink(missing_ok=True)
        return False

    def claim(self, number: int) -> bool:
        """Whether a batch is this process's to run: none has finished it, and none is at it.

        One that was cut short is run again, from its start.
        """
        with self._alone():
            done = self._one("select result from batches where number = ?", number)
            if done is not None and not json.loads(done[0]).get("cut"):
                return False
            row = self._one("select owner from claims where number = ?", number)
            if row is not None and self._alive(row[0]):
                return False
            self._db.execute("replace into claims values (?, ?)", (number, self.owner))
        return True

    def _one(self, query: str, *values: object) -> Any:
        return self._db.execute(query, values).fetchone()

    @property
    def settings(self) -> dict[str, Any]:
        """Seed, targets and the like, as given when the campaign was started."""
        rows = self._db.execute("select key, value from settings")
        found = {key: json.loads(value) for key, value in rows}
        for key, kinds in _SETTINGS.items():
            if key in found and not _is(found[key], kinds):
                raise TypeError(f"`{key}` is {found[key]!r}")
        return found

    def batches(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Finished batches: number and result."""
        for number, text in self._db.execute("select number, result from batches order by number"):
            yield number, json.loads(text)

    def add_batch(self, number: int, result: dict[str, Any]) -> None:
        """Records a finished batch."""
        with self._written(), self._db:
            self._db.execute("replace into batches values (?, ?)", (number, json.dumps(result)))

    def findings(self) -> list[dict[str, Any]]:
        """All findings, in the order of their names."""
        rows = self._db.execute("select result from findings order by id")
        found = [json.loads(text) for (text,) in rows]
        for finding in found:
            given = {key: kinds for key, kinds in _MORE.items() if key in finding}
            for key, kinds in (_FINDING | given).items():
                if not _is(finding[key], kinds):
                    raise TypeError(f"`{key}` is {finding[key]!r:.80}")
            if finding["verdict"] not in FINDINGS or not _NAME.fullmatch(finding["id"]):
                raise ValueError(f"{finding['id']:.80} of verdict {finding['verdict']:.80}")
        return found

    def reserve(self, signature: str) -> str | None:
        """The name of a new finding; None where there is one of that signature already."""
        with self._alone():
            if self._one("select 1 from findings where signature = ?", signature):
                return None
            row = self._one("select owner from pending where signature = ?", signature)
            if row is not None:
                if self._alive(row[0]):
                    return None
                self._db.execute("delete from pending where signature = ?", (signature,))
            taken = "select id from findings union select id from pending"
            last = max((int(name[2:]) for (name,) in self._db.execute(taken)), default=0)
            identity = f"f-{last + 1:03d}"
            values = (identity, signature, self.owner)
            self._db.execute("insert into pending values (?, ?, ?)", values)
        return identity

    def add_finding(self, identity: str, signature: str, result: dict[str, Any]) -> None:
        """Records a finding whose name was reserved, once its files are written."""
        with self._written(), self._db:
            self._db.execute("delete from pending where id = ?", (identity,))
            self._db.execute(
                "insert into findings values (?, ?, ?)", (identity, signature, json.dumps(result))
            )

    def forget(self, identity: str) -> None:
        """Takes out a finding that another one tells."""
        with self._written(), self._db:
            self._db.execute("delete from findings where id = ?", (identity,))

    def close(self) -> None:
        """Releases the file, and what is claimed and not done."""
        self._db.close()
        if self._lock is None:
            return
        self._lock.close()
        (self.folder / f"{_RUNNING}{self.owner}").unlink(missing_ok=True)


def _is(value: object, kind: Any) -> bool:
    """Whether what was read is of a type, all that is in it included."""
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(_is(v, get_args(kind)[1]) for v in value.values())
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_is(v, get_args(kind)[0]) for v in value)
    return isinstance(value, kind)
