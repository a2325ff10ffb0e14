"""Tests of reading a journal: objects of the snapshot and of later writes, at any version, and the progress."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs
import msgspec
import pytest

from kschedd.store.journal import reading as module
from kschedd.store.journal.format import JournalDamaged
from kschedd.store.journal.journal import Journal
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod


@attrs.frozen(eq=False)
class Made:
    journal: Journal
    store: Store
    at: dict[str, int]  # the version of each named event

    def names(self, kind: str = "ConfigMap") -> list[str]:
        return [found.name for found in self.store.list(kind)]


@pytest.fixture(params=[0, 4, 9], ids=lambda many: f"{many}-compacted")
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Made:
    """Create a journal whose snapshot includes this many writes after the built-in objects."""
    store = Store(now=Clock())
    built_in, at = store.version, {}

    def note(name: str, write: Callable[[], object]) -> None:
        write()
        at[name] = store.version

    note("a", lambda: store.create(config_map("a")))
    note("b", lambda: store.create(config_map("b", x="1")))
    note("pod", lambda: store.create(pod("p")))
    note("a-changed", lambda: store.merge_patch("ConfigMap", "default", "a", {"data": {"x": "2"}}))
    note("b-gone", lambda: store.delete("ConfigMap", "default", "b"))
    note("b-again", lambda: store.create(config_map("b", x="3")))
    note("node", lambda: store.create(node("n")))
    note("p-gone", lambda: store.delete("Pod", "default", "p"))
    note("c", lambda: store.create(config_map("c")))
    journal = Journal(tmp_path / "journal.db")
    journal.append(store.watch(None, 0).take())
    if request.param:
        journal.compact_some(built_in + request.param)
    return Made(journal, store, at)


def test_the_latest_state_of_each_object(made: Made) -> None:
    rows = {(row.ref.kind, row.ref.namespace, row.ref.name): row.packed for row in made.journal.reading().latest()}
    there = {(obj.kind, obj.namespace, obj.name): obj for kind in made.store.kinds() for obj in made.store.list(kind)}
    assert rows.keys() == there.keys()
    for key, raw in rows.items():
        assert module.read_object(key[0], raw).raw == there[key].raw


def test_the_objects_as_they_were_at_a_version_and_the_writes_after_it(made: Made) -> None:
    for name, version in made.at.items():
        begins = max(version, made.journal.state.base)
        objects, events = made.journal.reading().since(version)
        old = Store(now=Clock(), objects=objects, version=begins)
        expected = Store(now=Clock(), objects=(), version=0)
        expected.replay(
            (event.type, event.new) for event in made.store.watch(None, 0).take() if event.version <= begins
        )
        for kind in {*old.kinds(), *expected.kinds()}:
            assert [found.raw for found in old.list(kind)] == [found.raw for found in expected.list(kind)], name
        left = [(kind, obj.name) for kind, obj in events]
        assert left == [(event.type, event.new.name) for event in made.store.watch(None, begins).take()], name


def test_each_write_has_its_type_and_names_its_object(made: Made) -> None:
    base = made.journal.state.base
    rows = [(row.version, row.type, row.kind, row.name) for row in made.journal.reading().rows()]
    assert rows == [
        (event.version, event.type, event.new.kind, event.new.name) for event in made.store.watch(None, base).take()
    ]
    assert {kind for _, kind, *_ in rows} <= {ADDED, MODIFIED, DELETED}


def test_a_snapshot_of_which_a_row_is_missing_is_damaged(made: Made) -> None:
    if not made.journal.state.count:
        made.journal.compact()
    many = made.journal.state.count
    made.journal._db.execute("DELETE FROM objects WHERE name = 'default'")
    with pytest.raises(JournalDamaged, match=f"the snapshot is damaged: only {many - 1} of {many} objects are present"):
        list(made.journal.reading().latest())


@pytest.mark.parametrize("made", [0, 4], indirect=True)
def test_a_write_that_is_missing_is_named(made: Made) -> None:
    last = made.journal.version
    made.journal._db.execute("DELETE FROM events WHERE version = ?", (last - 1,))
    with pytest.raises(JournalDamaged, match=f"version {last - 1} is missing ") as missing:
        list(made.journal.reading().rows())
    assert missing.value.good_version == last - 2


def test_progress_is_told_of_all_rows(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STEP", 2)
    reported: list[tuple[int, int]] = []
    total = made.journal.state.count + made.journal.tail
    list(made.journal.reading(lambda done, of: reported.append((done, of))).latest())
    assert reported == [(done, total) for done in range(2, total + 1, 2)]


def test_a_damaged_database_says_what_the_database_found(made: Made) -> None:
    made.journal._db.execute("PRAGMA writable_schema=ON")
    made.journal._db.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name IN ('objects', 'events')")
    made.journal._db.execute("PRAGMA writable_schema=RESET")
    with pytest.raises(JournalDamaged, match=r"the database is damaged: .*in database main"):
        made.journal.reading().check()


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "named"),
    [
        pytest.param("ConfigMap", "default", "odd", 'ConfigMap "default/odd"', id="in-a-namespace"),
        pytest.param("Node", "", "a", 'Node "a"', id="without-namespace"),
        pytest.param(b"Node", "", "a", "an object whose name cannot be read", id="kind-of-bytes"),
        pytest.param("Node", "", b"a", "an object whose name cannot be read", id="name-of-bytes"),
    ],
)
def test_a_damaged_row_of_the_snapshot_is_named(
    made: Made, kind: object, namespace: object, name: object, named: str
) -> None:
    made.journal.compact()
    row = (kind, namespace, name, b"raw", 7)
    made.journal._db.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", row)
    with pytest.raises(JournalDamaged, match=f"the snapshot is damaged at {named}"):
        list(made.journal.reading().latest())


DEEP: Final = b"\x91" * 5_000 + b"\xc0"  # arrays within arrays


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"a": {"b": [1, float("nan")]}}, r"spec\.a\.b\[1\]: nan is not a JSON number", id="not-a-number"),
        pytest.param({"a": -math.inf, "b": 1}, r"spec\.a: -inf is not a JSON number", id="infinite"),
        pytest.param([[b"x"]], r"spec\[0\]\[0\]: a value of type bytes is not JSON", id="bytes"),
        pytest.param({"a": datetime(2026, 1, 1, tzinfo=UTC)}, r"spec\.a: a value of type datetime", id="time"),
    ],
)
def test_a_stored_value_that_is_no_json_is_named(spec: object, why: str) -> None:
    raw = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    with pytest.raises(module.UnreadableObject, match=f"an object of kind Widget cannot be read: {why}"):
        module.read_object("Widget", msgspec.msgpack.encode(raw))


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(b"\xc1", id="no-message"),
        pytest.param(DEEP, id="too-deep"),
        pytest.param(msgspec.msgpack.encode([]), id="no-map"),
        pytest.param(msgspec.msgpack.encode(node("n") | {"status": {"allocatable": {"cpu": "x"}}}), id="no-quantity"),
    ],
)
def test_bytes_that_are_no_object_are_the_objects_fault(packed: bytes) -> None:
    with pytest.raises(module.UnreadableObject, match="an object of kind Node cannot be read: "):
        module.read_object("Node", packed)


def test_values_whose_bytes_look_like_those_that_are_no_json_are_read() -> None:
    raw = {**config_map("a", x="\u0100\u01ff" * 20), "number": 0.5, "null": None, "more": [True, {"a": -0.25}, "\xe9"]}
    assert module.read_object("ConfigMap", msgspec.msgpack.encode(raw)).raw == raw


def test_an_object_is_of_the_kind_that_its_row_names() -> None:
    raw = {"apiVersion": "example.com/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "default"}}
    for kind in ("Lease.example.com", "Lease"):
        found = module.read_object(kind, msgspec.msgpack.encode(raw))
        assert (found.kind, found.raw) == (kind, raw)


@pytest.mark.parametrize("made", [0], indirect=True)
@pytest.mark.parametrize("change", ["raw = x'00'", "sum = sum + 1", "chain = chain + 1", "type = 0"])
def test_a_write_that_is_damaged_is_named(made: Made, change: str) -> None:
    last = made.journal.version
    made.journal._db.execute(f"UPDATE events SET {change} WHERE version = ?", (last - 1,))
    with pytest.raises(JournalDamaged, match=f"version {last - 1} is damaged") as damaged:
        list(made.journal.reading().rows())
    assert damaged.value.good_version == last - 2
