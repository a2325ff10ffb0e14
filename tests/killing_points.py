"""Points of the journal's work at which a process of a test kills itself.

This module imports only what the journal's process imports, because tests start this process for each point.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from kschedd.store.journal.disk import RealDisk

#: The points at which a daemon can kill itself.
POINTS = (
    "before-insert",
    "before-commit",
    "after-commit",
    "before-head",
    "within-head",
    "after-head",
    "before-compaction",
    "within-compaction",
    "after-compaction",
    "before-vacuum",
    "after-vacuum",
    "opening",
    "loading",
)
STARTING = {"PRAGMA journal_mode=WAL": "opening", "SELECT * FROM events ORDER BY version": "loading"}


@attrs.define(eq=False)
class KillingDatabase:
    """A database whose process kills itself at a point."""

    _db: Any
    _at: Callable[[str], None]
    _compacting: bool = False

    @property
    def in_transaction(self) -> bool:
        return bool(self._db.in_transaction)

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql in STARTING:
            self._at(STARTING[sql])
        if sql.startswith("PRAGMA synchronous=NORMAL"):
            self._compacting = True
        elif sql.startswith("PRAGMA synchronous=FULL"):
            self._compacting = False
        inserts, deletes = sql.startswith("INSERT INTO events"), sql.startswith("DELETE FROM events WHERE version <=")
        commit = sql == "COMMIT" or (inserts and not self._db.in_transaction)
        if inserts:
            self._at("before-insert")
        if commit:
            self._at("before-compaction" if self._compacting else "before-commit")
        if deletes:
            self._at("within-compaction")
        done = self._db.execute(sql, *parameters)
        if commit:
            self._at("after-compaction" if self._compacting else "after-commit")
        return done

    def executemany(self, sql: str, rows: Any) -> Any:
        return self._db.executemany(sql, rows)

    def executescript(self, sql: str) -> Any:
        vacuum = "vacuum" in sql
        if vacuum:
            self._at("before-vacuum")
        done = self._db.executescript(sql)
        if vacuum:
            self._at("after-vacuum")
        return done

    def close(self) -> None:
        self._db.close()


def install(point: str, count: int, note: Path) -> None:
    """Make this daemon kill itself, and record it, when it reaches the point for the `count`-th time."""
    left = count
    connect, pwrite = RealDisk.connect, RealDisk.pwrite

    def at(here: str) -> None:
        nonlocal left
        if here == point:
            left -= 1
            if left == 0:
                with note.open("a", encoding="utf-8") as reached:
                    reached.write(f"{point}\n")
                os.kill(os.getpid(), signal.SIGKILL)

    def killing_pwrite(self: RealDisk, descriptor: int, data: bytes, offset: int) -> int:
        at("before-head")
        if point == "within-head" and left == 1:
            pwrite(self, descriptor, data[:40], offset)
        at("within-head")
        written = pwrite(self, descriptor, data, offset)
        at("after-head")
        return written

    def killing_connect(self: RealDisk, path: Path) -> Any:
        return KillingDatabase(connect(self, path), at)

    RealDisk.connect, RealDisk.pwrite = killing_connect, killing_pwrite
