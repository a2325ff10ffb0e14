"""Tests of a start that sets aside objects which it cannot load or is told to omit, and reports them."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from kschedd.api.objects import Object
from kschedd.daemon import cluster_actors
from kschedd.object_faults import ObjectRef
from kschedd.startup.state import StateOptions
from kschedd.store.journal.journal import Journal
from kschedd.store.objects.indexes import Indexes
from kschedd.store.set_aside import LEFT_OUT, LeaveOutError, read_ref
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod, workload

GOOD = (config_map("good"), node("n1"), pod("web"))


def kept(path: Path, *manifests: dict[str, Any], compacted: bool) -> int:
    """Write a journal of a store with these objects and an invalid node that an API server would have rejected."""
    store = Store(now=Clock())
    for raw in manifests:
        store.create(raw)
    bad = store.create(node("bad"))
    store._objects.commit(
        "MODIFIED",
        bad,
        Object.from_raw(
            {
                **bad.raw,
                "metadata": {**bad.raw["metadata"], "resourceVersion": str(store.version + 1)},
                "status": {"allocatable": {"cpu": "plenty"}},
            }
        ),
    )
    journal = Journal(path)
    journal.append(store.written_after(0))
    if compacted:
        journal.compact()
    journal.close()
    return store.version


@pytest.mark.parametrize("compacted", [False, True], ids=["in-the-events", "in-the-snapshot"])
def test_an_object_that_cannot_be_read_back_is_set_aside_and_the_rest_is_there(tmp_path: Path, compacted: bool) -> None:
    path = tmp_path / "journal.db"
    version = kept(path, *GOOD, compacted=compacted)
    for _ in range(2):  # the next start has the same result
        journal = Journal(path)
        store = journal.load()
        assert store is not None
        assert [obj.name for kind in ("ConfigMap", "Node", "Pod") for obj in store.list(kind)] == ["good", "n1", "web"]
        assert store.version == version
        (aside,) = store.set_aside
        assert aside.ref == ObjectRef("Node", "", "bad")
        assert "plenty" in aside.why
        assert aside.file == tmp_path / "set-aside" / "Node.bad.json"
        assert json.loads(aside.file.read_text())["status"] == {"allocatable": {"cpu": "plenty"}}
        assert stat.S_IMODE(aside.file.stat().st_mode) == 0o600
        journal.append([])
        journal.close()


def test_its_name_may_be_taken_by_a_new_object(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    kept(path, *GOOD, compacted=True)
    journal = Journal(path)
    store = journal.load()
    assert store is not None
    before = store.version
    store.create(node("bad"))
    journal.append(store.written_after(before))
    journal.compact()
    journal.close()
    again = Journal(path)
    found = again.load()
    again.close()
    assert found is not None
    assert found.find("Node", "", "bad") is not None
    assert found.set_aside == ()


def test_an_object_that_no_index_takes_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.db"
    store = Store(now=Clock())
    for raw in (*GOOD, pod("odd")):
        store.create(raw)
    journal = Journal(path)
    journal.append(store.written_after(0))
    move = Indexes.move

    def trips(self: Indexes, old: Object | None, new: Object | None) -> None:
        if new is not None and new.name == "odd":
            raise AttributeError("of an owner that is none")
        move(self, old, new)

    monkeypatch.setattr(Indexes, "move", trips)
    loaded = journal.load()
    journal.close()
    assert loaded is not None
    assert [str(aside.ref) for aside in loaded.set_aside] == ["Pod/default/odd"]
    assert loaded.find("Pod", "default", "odd") is None
    assert loaded.find("Pod", "default", "web") is not None


async def test_a_cluster_starts_without_what_it_is_told_to_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with cluster_actors(state=StateOptions(journal=path)) as cluster:
        for raw in (*GOOD, workload("Deployment")):
            await cluster.store.create(raw)
    leave_out = [ObjectRef("Deployment", "default", "web"), ObjectRef("Node", "", "none-such")]
    with capture_logs() as logs:
        async with cluster_actors(state=StateOptions(journal=path, leave_out=leave_out)) as cluster:
            assert await cluster.store.find("Deployment", "default", "web") is None
            assert await cluster.store.find("Pod", "default", "web") is not None
            (fault,) = await cluster.faults()
            assert (str(fault.ref), fault.component, fault.retry_s) == ("Deployment/default/web", "journal", None)
            assert LEFT_OUT in fault.why
            with trio.fail_after(90):
                await cluster.store.create(config_map("more"))  # and it goes on
    answer = [(line["event"], line["object"]) for line in logs if "object" in line]
    assert answer == [
        ("object_set_aside", "Deployment/default/web"),
        ("nothing_to_leave_out", "Node/none-such"),
    ]
    async with cluster_actors(state=StateOptions(journal=path)) as cluster:
        assert await cluster.store.find("Deployment", "default", "web") is not None
        assert await cluster.store.find("ConfigMap", "default", "more") is not None


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("pod/default/web", ObjectRef("Pod", "default", "web")),
        ("deployments.apps/team/web", ObjectRef("Deployment", "team", "web")),
        ("node/n1", ObjectRef("Node", "", "n1")),
        ("Widget/default/w", ObjectRef("Widget", "default", "w")),
        ("Widget/w", ObjectRef("Widget", "", "w")),
    ],
)
def test_how_an_object_is_named(text: str, ref: ObjectRef) -> None:
    assert read_ref(text) == ref


@pytest.mark.parametrize("text", ["", "pod", "pod/web", "node/default/n1", "pod//web", "pod/a/b/c"])
def test_what_names_no_object_is_refused(text: str) -> None:
    with pytest.raises(LeaveOutError, match=r"must be KIND/NAMESPACE/NAME"):
        read_ref(text)
