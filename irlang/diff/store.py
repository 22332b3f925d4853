"""A campaign on disk: one SQLite file in its directory, a transaction for every finished batch.

What was finished when a process was killed is there afterwards; `--resume` goes on behind it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irlang.diagnostics import fail

_SCHEMA = """
create table if not exists settings (key text primary key, value text not null);
create table if not exists batches (number integer primary key, result text not null);
create table if not exists findings
    (id text primary key, signature text unique, result text not null);
"""


class Store:
    """The store of one campaign; `settings` are fixed when it is made."""

    def __init__(self, folder: Path, settings: dict[str, Any] | None) -> None:
        self.folder = folder
        path = folder / "campaign.sqlite"
        if settings is None and not path.is_file():
            raise fail("file.campaign", f"{folder} holds no campaign to resume")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path)
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise fail("file.campaign", f"{folder} cannot hold a campaign: {error}") from None
        if settings is not None:
            if any(True for _ in self.batches()):
                raise fail(
                    "file.campaign", f"{folder} holds a campaign already", help=f"--resume {folder}"
                )
            with self._db:
                for key, value in settings.items():
                    self._db.execute(
                        "replace into settings values (?, ?)", (key, json.dumps(value))
                    )

    @property
    def settings(self) -> dict[str, Any]:
        """Seed, targets and the like, as given when the campaign was started."""
        rows = self._db.execute("select key, value from settings")
        return {key: json.loads(value) for key, value in rows}

    def batches(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Finished batches: number and result."""
        for number, text in self._db.execute("select number, result from batches order by number"):
            yield number, json.loads(text)

    def add_batch(self, number: int, result: dict[str, Any]) -> None:
        """Records a finished batch."""
        with self._db:
            self._db.execute("replace into batches values (?, ?)", (number, json.dumps(result)))

    def findings(self) -> list[dict[str, Any]]:
        """All findings, in the order of their names."""
        rows = self._db.execute("select result from findings order by id")
        return [json.loads(text) for (text,) in rows]

    def known(self, signature: str) -> bool:
        """Whether a finding of that signature is there."""
        row = self._db.execute(
            "select 1 from findings where signature = ?", (signature,)
        ).fetchone()
        return row is not None

    def add_finding(self, identity: str, signature: str, result: dict[str, Any]) -> None:
        """Records a finding."""
        with self._db:
            self._db.execute(
                "insert into findings values (?, ?, ?)", (identity, signature, json.dumps(result))
            )

    def close(self) -> None:
        """Releases the file."""
        self._db.close()
