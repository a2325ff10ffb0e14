"""Tests of `kschedd journal` and `kschedd snapshot` on a journal that no daemon uses."""

import errno
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from kschedd.object_faults import ObjectRef
from kschedd.store.journal import offline, state_dir
from kschedd.store.journal.format import JournalError
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.offline import (
    Verified,
    compacted,
    exported_events,
    exported_objects,
    removed,
    repaired,
    verified,
)
from kschedd.store.journal.snapshot_file import (
    SnapshotError,
    read_snapshot,
    restore_snapshot,
    snapshot_of_journal,
    write_snapshot,
)
from kschedd.store.journal.state_dir import lock_state_dir
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Create a state directory as a daemon leaves it: a snapshot and thirty writes after it."""
    folder = tmp_path / "state"
    with lock_state_dir(folder):
        store = Store(now=Clock(), seed=1)
        journal = Journal(folder / "journal.db")
        store.create(node())
        journal.append(store.written_after(0))
        journal.compact()
        for number in range(30):
            store.create(config_map(f"c{number}", text="x" * 500))
        store.delete("ConfigMap", "default", "c7")
        journal.append(store.written_after(journal.version))
        journal.close()
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def damage(folder: Path) -> None:
    """Change one byte of an object that was written after the snapshot."""
    file = folder / "journal.db"
    file.write_bytes(file.read_bytes().replace(b"x" * 500, b"x" * 100 + b"y" + b"x" * 399, 1))


def test_a_whole_journal_is_verified_by_folder_and_by_file_and_left_as_it_is(state: Path) -> None:
    before = content(state)
    found = verified(state)
    assert found.is_whole
    assert (found.version - found.snapshot_version, found.snapshot_objects) == (31, 7)
    assert list(found.lines())[-1] == "intact: every row has the checksum it was written with"
    assert verified(state / "journal.db") == found
    assert content(state) == before


def test_progress_is_told_of_a_long_journal(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kschedd.store.journal.reading._STEP", 10)
    answer: list[tuple[int, int]] = []
    verified(state, lambda done, total: answer.append((done, total)))
    assert answer == [(10, 38), (20, 38), (30, 38)]


def test_a_damaged_journal_is_told_of_left_as_it_is_and_repaired_in_words(state: Path) -> None:
    damage(state)
    before = content(state)
    found = verified(state)
    assert not found.is_whole
    assert "is damaged; everything up to version" in found.damage
    assert content(state) == before
    with pytest.raises(JournalError, match="is damaged"):
        snapshot_of_journal(state)
    lost = repaired(state)
    assert any(line.startswith("lost: the writes from version") for line in lost)
    assert any("are saved as journal.db.damaged-1" in line for line in lost)
    assert verified(state).is_whole
    assert repaired(state) == ()


def test_compaction_leaves_one_snapshot_and_a_small_file(state: Path) -> None:
    journal = Journal(state / "journal.db")
    store = journal.load(now=Clock())
    assert store is not None
    for number in range(30):
        if number != 7:
            store.delete("ConfigMap", "default", f"c{number}")
    journal.append(store.written_after(journal.version))
    journal.close()
    before, after = compacted(state)
    assert after < before
    found = verified(state)
    assert (found.snapshot_version, found.snapshot_objects) == (found.version, found.objects)
    assert list(exported_events(state)) == []


def test_objects_and_writes_are_exported(state: Path) -> None:
    names = [raw["metadata"]["name"] for raw in exported_objects(state) if raw["kind"] == "ConfigMap"]
    assert names == sorted(f"c{number}" for number in range(30) if number != 7)
    events = list(exported_events(state))
    assert [event["type"] for event in events] == ["ADDED"] * 30 + ["DELETED"]
    assert events[-1]["object"]["metadata"]["name"] == "c7"


def test_a_journal_that_a_daemon_uses_is_refused_in_words(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_dir, "_PATIENCE_S", 0.1)
    with lock_state_dir(state):
        for use in (verified, repaired, compacted, snapshot_of_journal):
            with pytest.raises(JournalError, match="in use by a daemon: stop it"):
                use(state)


@pytest.mark.parametrize("name", ["", "journal.db"])
def test_where_there_is_no_journal_none_is_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(JournalError, match="no journal found"):
        verified(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_whose_journal_is_missing_is_not_empty(state: Path) -> None:
    (state / "journal.db").unlink()
    with pytest.raises(JournalError, match=r"journal\.db: is missing, but journal\.db-head exists: restore a copy"):
        verified(state)


def test_a_journal_of_a_newer_format_is_refused_in_words(state: Path) -> None:
    journal = Journal(state / "journal.db")
    journal._db.execute("UPDATE meta SET value = 4 WHERE name = 'format'")
    journal.close()
    with pytest.raises(
        JournalError, match="has format 4 and was written by a newer one; this kschedd reads and writes formats 2 and 3"
    ):
        verified(state)


def test_a_snapshot_restored_is_the_cluster_as_it_was_in_a_new_history(state: Path, tmp_path: Path) -> None:
    version, objects = snapshot_of_journal(state)
    assert write_snapshot(tmp_path / "s", version, objects) == len(objects)
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
    restore_snapshot(tmp_path / "s", tmp_path / "new")
    journal = Journal(tmp_path / "new" / "journal.db")
    store = journal.load(now=Clock())
    assert store is not None
    assert [obj.raw for kind in store.kinds() for obj in store.list(kind)] == objects
    assert store.version == 1_000_000
    old = Journal(state / "journal.db")
    assert journal.epoch != old.epoch
    old.close()
    journal.close()
    before = content(tmp_path / "new")
    with pytest.raises(JournalError, match="already exists: give another directory"):
        restore_snapshot(tmp_path / "s", tmp_path / "new")
    assert content(tmp_path / "new") == before


def test_a_snapshot_that_is_cut_changed_newer_or_none_is_refused(state: Path, tmp_path: Path) -> None:
    version, objects = snapshot_of_journal(state)
    file = tmp_path / "s"
    write_snapshot(file, version, objects)
    packed = file.read_bytes()
    plain = gzip.decompress(packed)
    newer = msgpack.packb({"kschedd-snapshot": 2, "version": 1, "objects": 0})
    for data, words in (
        (packed[:-20], "damaged"),
        (packed[: len(packed) // 2], "damaged"),
        (b"hello", "is not a snapshot, or is damaged"),
        (gzip.compress(plain[:-1]), "damaged"),
        (gzip.compress(plain.replace(b"c11", b"c99", 1)), "wrong checksum"),
        (gzip.compress(newer), "has format 2, from a newer kschedd"),
        (gzip.compress(b"\x01"), "is not a kschedd snapshot"),
    ):
        file.write_bytes(data)
        with pytest.raises(SnapshotError, match=words):
            read_snapshot(file)
        with pytest.raises(SnapshotError):
            restore_snapshot(file, tmp_path / "new")
        assert not (tmp_path / "new").exists()


def test_a_journal_on_a_read_only_file_system_is_read(state: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    mount = f"mount -t tmpfs none {place} && cp -r {state} {place}/state && mount -o remount,ro {place}"
    enter = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*enter, mount], capture_output=True).returncode:
        pytest.skip("mounting a file system of one's own is not allowed here")
    done = {}
    for words in ("journal verify", "journal export", f"snapshot save {tmp_path}/s --state", "journal compact"):
        command = [*enter, f'{mount} && exec "$@"', "sh", sys.executable, "-m", "kschedd", *words.split()]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done[words] = subprocess.run([*command, f"{place}/state"], capture_output=True, text=True, env=env)
    assert [ran.returncode for ran in done.values()] == [0, 0, 0, 1]
    assert done["journal verify"].stdout.endswith("intact: every row has the checksum it was written with\n")
    assert done["journal export"].stdout.count('"kind": "ConfigMap"') == 29
    assert len(read_snapshot(tmp_path / "s").objects) == len(list(exported_objects(state)))
    assert done["journal compact"].stderr.endswith("journal.db: cannot be opened: Read-only file system\n")


def test_of_a_damaged_journal_nothing_but_the_damage_is_reported(state: Path) -> None:
    damage(state)
    found = verified(state)
    assert found == Verified(found.file, found.bytes, found.damage)
    assert list(found.lines()) == [
        f"{found.file}: {found.bytes:,} bytes",
        f"damaged: {found.damage}",
    ]
    assert (found.version, found.objects, found.snapshot_version, found.snapshot_objects) == (0, 0, 0, 0)


def test_a_damaged_journal_is_not_exported(state: Path) -> None:
    damage(state)
    for export in (exported_objects, exported_events):
        with pytest.raises(JournalError, match="is damaged"):
            list(export(state))


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda state: list(exported_objects(state)), id="export-objects"),
        pytest.param(lambda state: list(exported_events(state)), id="export-writes"),
        pytest.param(compacted, id="compact"),
        pytest.param(lambda state: removed(state, [ObjectRef("ConfigMap", "default", "c1")]), id="remove"),
    ],
)
def test_a_journal_whose_rows_are_intact_but_not_its_database_is_damaged(
    state: Path, use: Callable[[Path], Any]
) -> None:
    file = state / "journal.db"
    raw = bytearray(file.read_bytes())
    raw[36:40] = (7).to_bytes(4, "big")  # the number of unused pages
    file.write_bytes(raw)
    with pytest.raises(JournalError, match="the database is damaged"):
        use(state)
    assert file.read_bytes() == raw


def test_an_empty_journal_is_intact(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.db").close()
    found = verified(tmp_path)
    assert found.is_whole
    assert (found.version, found.objects, found.unreadable) == (0, 0, ())


def test_a_folder_with_the_name_of_a_journal_is_not_a_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.db" / "journal.db").mkdir(parents=True)
    with pytest.raises(JournalError, match="is not a regular file"):
        verified(tmp_path / "journal.db")


def test_removed_objects_are_kept_beside_the_journal_and_leave_no_write_behind(state: Path) -> None:
    refs = [ObjectRef("ConfigMap", "default", name) for name in ("c1", "c2", "c1")]
    before = verified(state)
    copies = removed(state, refs)
    assert [json.loads(copy.read_text())["metadata"]["name"] for copy in copies[:2]] == ["c1", "c2"]
    after = verified(state)
    assert (after.objects, after.version) == (before.objects - 2, before.version + 2)
    assert after.snapshot_version == after.version
    names = [raw["metadata"]["name"] for raw in exported_objects(state)]
    assert {"c0", "c3"} < set(names)
    assert not {"c1", "c2"} & set(names)
    with pytest.raises(JournalError, match=r"has no object .*c1.*; kschedd journal export"):
        removed(state, refs[:1])
    assert verified(state) == after


def test_a_journal_is_copied_to_another_folder_if_its_own_is_full_and_not_read_if_both_are(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [state]
    copy_into = offline._copy_into

    def copied(folder: Path, file: Path) -> Path:
        if any(folder.is_relative_to(each) for each in full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return copy_into(folder, file)

    monkeypatch.setattr(offline, "_copy_into", copied)
    before = content(state)
    assert verified(state).is_whole
    full.append(Path("/"))
    with pytest.raises(JournalError, match="cannot be copied for reading: No space left on device"):
        verified(state)
    assert content(state) == before


def test_a_snapshot_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "full").touch()
    with pytest.raises(SnapshotError, match="cannot be written: "):
        write_snapshot(tmp_path / "taken", 1, [])
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
    with pytest.raises(SnapshotError, match="cannot be written: No such file or directory"):
        write_snapshot(tmp_path / "none" / "s", 1, [])


def test_a_snapshot_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(sorted(file.name for file in tmp_path.iterdir()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    write_snapshot(tmp_path / "s", 1, [])
    assert synced == [[".s.part"]]
    assert read_snapshot(tmp_path / "s").objects == []


def test_a_snapshot_with_an_object_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"priority": float("inf")}}
    write_snapshot(tmp_path / "s", 1, [raw])
    with pytest.raises(SnapshotError, match="is damaged: an object of kind Pod cannot be read"):
        read_snapshot(tmp_path / "s")


def test_the_rest_of_a_restoration_that_was_killed_is_removed(state: Path, tmp_path: Path) -> None:
    version, objects = snapshot_of_journal(state)
    write_snapshot(tmp_path / "s", version, objects)
    new = tmp_path / "new"
    new.mkdir()
    for suffix in ("", "-wal", "-head"):
        (new / f"journal.db.new{suffix}").write_bytes(b"half")
    restore_snapshot(tmp_path / "s", new)
    assert verified(new).is_whole
    assert not [file.name for file in new.iterdir() if ".new" in file.name]
