"""Incremental compaction of the journal: events are merged into the snapshot, and free pages are released.

Each step is one short transaction, so that a write waits for at most one step. The caller chooses the size and the time
of each step.

The journal calls these functions inside a transaction or pragma. Raises sqlite3's errors, which the journal
converts.
"""

import attrs

from kschedd.store.journal.disk import Database
from kschedd.store.journal.format import CODES, State
from kschedd.store.objects.log import DELETED

_TOUCHED = "(kind, namespace, name) IN (SELECT kind, namespace, name FROM events WHERE version <= ?)"


def move_events(db: Database, state: State, most: int) -> tuple[State, int]:
    """Merge at most `most` of the oldest events into the snapshot. Return the new State and the number of events."""
    oldest = "SELECT version, chain FROM events ORDER BY version LIMIT ?"
    count, up_to, chain = db.execute(f"SELECT count(*), max(version), chain FROM ({oldest})", (most,)).fetchone()
    if not count:
        return state, 0
    add_up = "SELECT count(*), coalesce(sum(sum), 0)"
    lost, lost_total = db.execute(f"{add_up} FROM objects WHERE {_TOUCHED}", (up_to,)).fetchone()
    db.execute(f"DELETE FROM objects WHERE {_TOUCHED}", (up_to,))
    latest = (
        "FROM events WHERE type != ? AND version IN"
        " (SELECT max(version) FROM events WHERE version <= ? GROUP BY kind, namespace, name)"
    )
    which = (CODES[DELETED], up_to)
    new, new_total = db.execute(f"{add_up} {latest}", which).fetchone()
    db.execute(f"INSERT INTO objects SELECT kind, namespace, name, raw, sum {latest}", which)
    db.execute("DELETE FROM events WHERE version <= ?", (up_to,))
    total = state.total - lost_total + new_total
    return attrs.evolve(state, base=up_to, chain=chain, count=state.count - lost + new, total=total), count


def vacuum(db: Database, pages: int) -> bool:
    """Release at most `pages` free pages to the file system. Return whether any free pages are left."""
    # The pragma frees one page per (empty) result row; `execute` would only free one page.
    db.executescript(f"PRAGMA incremental_vacuum({pages})")
    return bool(db.execute("PRAGMA freelist_count").fetchone()[0])
