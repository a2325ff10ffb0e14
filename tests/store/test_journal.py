import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kschedd.api.pods import Pod
from kschedd.object_faults import ObjectRef
from kschedd.store.errors import Gone
from kschedd.store.journal.format import RESERVED
from kschedd.store.journal.journal import Journal, JournalDamaged, JournalError
from kschedd.store.journal.salvage import open_journal
from kschedd.store.leases import RENEWED_EVERY
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.store.descriptors import open_files
from tests.store.manifests import Clock, config_map, node, pod


def everything(store: Store) -> list[Any]:
    return [obj.raw for kind in store.kinds() for obj in store.list(kind)]


def in_order(store: Store, kind: str) -> list[Any]:
    return [obj.raw for part in store.present(kind) for obj in part]


def busy(store: Store) -> None:
    store.create(node())
    for name in ("a", "b", "c"):
        store.create(pod(name))
    store.bind("default", "a", "node-1")
    store.delete("Pod", "default", "b")
    store.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 1})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def written(path: Path) -> Store:
    """Return a store, after writing all its events to a journal."""
    store = Store(now=Clock(), seed=5)
    watch = store.watch(None, 0)
    busy(store)
    journal = Journal(path)
    journal.append(watch.take())
    journal.close()
    return store


def loaded(path: Path) -> Store:
    opened = open_journal(path, now=Clock(), seed=5, admission=None, drop_damaged=False)
    opened.journal.close()
    assert opened.store is not None
    return opened.store


def salvaged(path: Path) -> tuple[Store, str]:
    """Salvage a journal and return the store and the reported losses."""
    opened = open_journal(path, now=Clock(), seed=5, admission=None, drop_damaged=True)
    opened.journal.close()
    assert not open_files(path.parent), "neither the damaged journal nor a copy stays open"
    assert opened.store is not None
    return opened.store, "; ".join(opened.lost)


def test_an_empty_journal_holds_no_store(path: Path) -> None:
    journal = Journal(path)
    assert journal.load() is None
    assert journal.version == 0
    journal.close()


@pytest.mark.parametrize("compacted", [False, True])
def test_what_was_written_comes_back(path: Path, compacted: bool) -> None:
    store = written(path)
    if compacted:
        journal = Journal(path)
        journal.compact()
        assert (journal.version, journal.tail) == (store.version, 0)
        journal.close()
    again = loaded(path)
    assert everything(again) == everything(store)
    assert again.version == store.version
    assert [p.name for p in again.pods_on("node-1")] == ["a"]
    assert again.get("Pod", "default", "c").spec is again.create(pod("d")).spec


def test_a_watch_resumes_across_a_restart(path: Path) -> None:
    store = written(path)
    since = store.version - 3
    before = [(e.type, e.version, e.new.raw, e.old and e.old.raw) for e in store.watch(None, since).take()]
    again = loaded(path)
    assert [(e.type, e.version, e.new.raw, e.old and e.old.raw) for e in again.watch(None, since).take()] == before


def test_uids_after_a_restart_are_new_ones(path: Path) -> None:
    store = written(path)
    used = {obj.uid for kind in store.kinds() for obj in store.list(kind)}
    assert loaded(path).create(pod("new")).uid not in used


def test_a_journal_goes_on_after_a_restart_and_a_compaction(path: Path) -> None:
    written(path)
    journal = Journal(path)
    store = journal.load(now=Clock())
    assert store is not None
    for round_ in range(3):
        watch = store.watch()
        store.create(config_map(f"c{round_}"))
        store.merge_patch("ConfigMap", "default", f"c{round_}", {"data": {"a": "1"}})
        store.delete("ConfigMap", "default", f"c{round_ - 1}") if round_ else None
        journal.append(watch.take())
        if round_ == 1:
            journal.compact()
    journal.close()
    assert everything(loaded(path)) == everything(store)


@pytest.mark.parametrize("history", [0, 1, 17, 60, 10_000])
@pytest.mark.parametrize("compacted", [0, 20])
def test_what_is_older_than_the_history_is_merged_and_comes_to_the_same(
    path: Path, history: int, compacted: int
) -> None:
    store = written(path)
    before = store.version
    chance = random.Random(history + compacted)
    for number in range(80):
        name = f"c{chance.randrange(9)}"
        if store.find("ConfigMap", "default", name) is None:
            store.create(config_map(name, number=str(number)))
        elif chance.random() < 0.5:
            store.merge_patch("ConfigMap", "default", name, {"data": {"number": str(number)}})
        else:
            store.delete("ConfigMap", "default", name)
    journal = Journal(path)
    journal.append(store.written_after(before))
    if compacted:
        journal.compact_some(compacted)
    plain, merged = journal.load(history=1_000_000), journal.load(history=history)
    journal.close()
    assert plain is not None
    assert merged is not None
    # Check the order as well, since controllers process all objects of a kind in this order.
    assert [in_order(merged, kind) for kind in merged.kinds()] == [in_order(plain, kind) for kind in plain.kinds()]
    assert everything(merged) == everything(store)
    since = max(compacted, store.version - history)
    assert [(event.type, event.version, event.new.raw) for event in merged.watch(None, since).take()] == [
        (event.type, event.version, event.new.raw) for event in plain.watch(None, since).take()
    ]


@pytest.mark.parametrize("events", [3, 1_000])
def test_a_snapshot_replaces_the_one_before_and_begins_another_history(path: Path, events: int) -> None:
    written(path)
    journal = Journal(path)
    journal.compact_some(events)
    epoch = journal.epoch
    other = Store(now=Clock())
    for raw in (node(), pod("p"), config_map("c")):
        other.create(raw)
    journal.snapshot(other)
    there = sum(other.count(kind) for kind in other.kinds())
    assert (journal.state.count, journal.version, journal.tail) == (there, other.version, 0)
    assert journal.epoch != epoch
    assert journal.head_flushed
    journal.close()
    again = loaded(path)
    assert everything(again) == everything(other)
    assert again.version == other.version


def test_an_object_that_is_left_out_or_cannot_be_read_is_set_aside_and_the_rest_is_there(path: Path) -> None:
    store = written(path)
    journal = Journal(path)
    journal.write([(store.version + 1, 0, "Node", "", "odd", b"\xc1")])
    with capture_logs() as logs:
        some = journal.load(leave_out=[ObjectRef("Pod", "default", "c")])
        odd = journal.load()
    journal.close()
    assert some is not None
    assert odd is not None
    assert [each.ref.name for each in some.set_aside] == ["c", "odd"]
    assert [each.ref.name for each in odd.set_aside] == ["odd"]
    assert some.version == odd.version == store.version + 1
    assert everything(odd) == everything(store)
    assert [each["event"] for each in logs] == ["object_unreadable"]
    assert "an object of kind Node cannot be read" in logs[0]["why"]


def damage(path: Path, sql: str, *values: Any) -> None:
    with sqlite3.connect(path) as db:
        db.execute(sql, values)
    db.close()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param("UPDATE events SET raw = x'00' WHERE version = 9", "version 9 is damaged", id="payload"),
        pytest.param("UPDATE events SET name = 'z' WHERE version = 9", "version 9 is damaged", id="key"),
        pytest.param("UPDATE events SET type = 7 WHERE version = 9", "version 9 is damaged", id="type"),
        pytest.param("UPDATE events SET raw = NULL WHERE version = 9", "version 9 is damaged", id="nothing-there"),
        pytest.param("DELETE FROM events WHERE version = 9", r"version 9 is missing \(the next version", id="hole"),
    ],
)
def test_a_damaged_tail_is_found_and_can_be_dropped(path: Path, sql: str, words: str) -> None:
    written(path)
    damage(path, sql)
    with pytest.raises(JournalDamaged, match=words) as damaged:
        loaded(path)
    assert damaged.value.good_version == 8
    whole = Store(now=Clock(), seed=5)
    whole.create(node())
    whole.create(pod("a"))
    store, lost = salvaged(path)
    assert everything(store) == everything(whole)
    assert "the writes from version 9 to version 14" in lost
    with pytest.raises(Gone):
        store.watch(None, 8)
    assert everything(loaded(path)) == everything(store)


def test_a_file_that_is_no_journal_is_refused_with_its_name(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(JournalError, match=r"journal\.db: cannot be opened: file is not a database"):
        Journal(path)
    with pytest.raises(JournalError, match=r"nothing can be read from it \(file is not a database\)"):
        salvaged(path)


def test_a_snapshot_that_cannot_be_read_is_refused(path: Path) -> None:
    written(path)
    journal = Journal(path)
    journal.compact()
    journal.close()
    damage(path, "UPDATE objects SET raw = x'c1' WHERE kind = 'Pod' AND name = 'a'")
    with pytest.raises(JournalError, match='the snapshot is damaged at Pod "default/a"'):
        loaded(path)


WRITER = """
import sys
from kschedd.store.journal.journal import Journal
from kschedd.store.store import Store
journal = Journal(sys.argv[1])
store = Store(seed=1)
watch = store.watch(None, 0)
for number in range(10**6):
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}})
    journal.append(watch.take())
    if number % 7 == 0:
        journal.compact()
    print(number, flush=True)
"""


def test_what_was_answered_survives_kill_9(path: Path) -> None:
    root = Path(__file__).parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert writer.stdout is not None
    answered = [int(writer.stdout.readline()) for _ in range(40)]
    writer.send_signal(signal.SIGKILL)
    answered += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    writer.stdout.close()
    writer.wait()
    store = loaded(path)
    assert {f"c{number}" for number in answered} <= {obj.name for obj in store.list("ConfigMap")}


def test_pods_come_back_typed_and_share_their_specs(path: Path) -> None:
    written(path)
    store = loaded(path)
    one, two = store.get("Pod", "default", "a"), store.get("Pod", "default", "c")
    assert isinstance(one, Pod)
    assert isinstance(two, Pod)
    assert one.signature is two.signature
    assert one.node_name == one.raw["spec"]["nodeName"] == "node-1"


def test_a_damaged_page_is_found_although_nothing_was_written(path: Path) -> None:
    Journal(path).close()
    with sqlite3.connect(path) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'objects'").fetchone()
    db.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(JournalDamaged, match="the database is damaged"):
        open_journal(path, now=Clock(), seed=5, admission=None, drop_damaged=False)


def lease(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "kube-node-lease", "annotations": {RENEWED_EVERY: "10"}}
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2023-11-14T22:13:20.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def renewing(journal: Journal, clock: Clock) -> Store:
    """Fill a journal with two Leases that are renewed a hundred times, and with a write after each 40 renewals."""
    store = Store(now=clock, seed=5)
    watch = store.watch(None, 0)
    for name in ("n1", "n2"):
        store.create(lease(name))
    for turn in range(50):
        clock.now += 10
        run_steps(store.renewing_leases())
        if turn % 20 == 0:
            store.create(config_map(f"c{turn}"))
        journal.append(watch.take())
    return store


@pytest.mark.parametrize("compacted", [0, 9, 1000])
def test_renewals_are_not_persisted_and_their_versions_are_not_used_again(path: Path, compacted: int) -> None:
    clock = Clock(1_700_000_000.0)
    journal = Journal(path)
    store = renewing(journal, clock)
    maps = [obj.raw for obj in store.list("ConfigMap")]
    written = journal.tail
    assert written == store.version - 100
    assert journal.state.reserved >= store.version
    journal.compact_some(compacted)
    assert journal.tail == max(0, written - compacted)
    base = journal.state.base
    journal.close()
    again = loaded(path)
    assert again.version >= store.version
    assert [obj.raw for obj in again.list("ConfigMap")] == maps
    assert again.create(config_map("later")).resource_version > store.version
    assert again.log.oldest == base


def test_a_watch_that_resumes_after_a_restart_gets_each_renewed_lease_once(path: Path) -> None:
    clock = Clock(1_700_000_000.0)
    journal = Journal(path)
    store = renewing(journal, clock)
    seen, resumed = store.version, store.version - 50
    journal.close()
    again = loaded(path)
    again.set_clock(clock)
    again.renew_all_leases()
    for since in (seen, resumed):
        events = again.watch(("Lease",), since).take()
        assert [event.new.name for event in events] == ["n1", "n2"]
        assert all(event.version > seen for event in events)
        shown = {event.new.name: event.new.raw for event in events}
        assert {obj.name: obj.raw for obj in again.list("Lease")} == shown
    missed = [event.new.name for event in again.watch(("ConfigMap",), resumed).take()]
    assert missed == [event.new.name for event in store.watch(("ConfigMap",), resumed).take()] == ["c40"]


def test_one_reservation_covers_many_renewals(path: Path) -> None:
    journal = Journal(path)
    store = renewing(journal, Clock(1_700_000_000.0))
    first = next(event.version for event in store.written_after(0) if event.renewal)
    assert first < journal.state.reserved == first + 1 + RESERVED  # the first batch had two renewals
    journal.close()


def test_a_salvaged_journal_continues_after_the_reserved_versions(path: Path) -> None:
    journal = Journal(path)
    renewing(journal, Clock(1_700_000_000.0))
    journal.reserve(1_999_999)
    journal.close()
    damage(path, "UPDATE events SET raw = x'00' WHERE version = (SELECT max(version) FROM events)")
    assert salvaged(path)[0].version == 2_000_000


def test_a_write_that_changes_a_lease_is_persisted(path: Path) -> None:
    clock = Clock(1_700_000_000.0)
    journal = Journal(path)
    store = renewing(journal, clock)
    before = store.version
    changed = store.merge_patch("Lease", "kube-node-lease", "n1", {"metadata": {"labels": {"a": "b"}}})
    journal.append(store.written_after(before))
    journal.close()
    assert loaded(path).get("Lease", "kube-node-lease", "n1").labels == changed.labels == {"a": "b"}
