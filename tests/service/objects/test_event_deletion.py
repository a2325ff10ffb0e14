"""Tests that `objects.delete` deletes stored Events, and those of the scheduler, which exist only in memory."""

from typing import Any

import pytest

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import daemon_methods
from kschedd.service.errors import RpcError

Raw = dict[str, Any]


def pod(name: str, cpu: str) -> Raw:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


@pytest.fixture
def daemon() -> VirtualDaemon:
    daemon = VirtualDaemon(VirtualCluster(seed=1), daemon_methods)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    node["status"] = {"allocatable": {"cpu": "4", "pods": "10"}}
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default"}
    stored = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "stored", "namespace": "default"}}
    daemon.call("objects.apply", manifests=[node, pod("a", "1"), pod("b", "8"), {**stored, "involvedObject": about}])
    return daemon


def present(daemon: VirtualDaemon) -> dict[str, str]:
    """Return the names of the Events by object and reason."""
    listed = daemon.call("objects.list", kind="Event")["items"]
    return {f"{each['involvedObject']['name']} {each.get('reason', '')}": each["metadata"]["name"] for each in listed}


def test_an_event_is_deleted_by_its_name(daemon: VirtualDaemon) -> None:
    name = present(daemon)["b FailedScheduling"]
    for dry_run in (True, False):
        answer = daemon.call("objects.delete", kind="events", name=name, dry_run=dry_run)
        assert [each["name"] for each in answer["deleted"]] == [name]
        assert ("b FailedScheduling" in present(daemon)) is dry_run
    with pytest.raises(RpcError, match=f'events "{name}" not found'):
        daemon.call("objects.delete", kind="Event", name=name)


def test_selected_events_are_deleted(daemon: VirtualDaemon) -> None:
    answer = daemon.call("objects.delete", kind="Event", field_selector="involvedObject.name=a")
    assert {each["name"] for each in answer["deleted"]} >= {"stored"}
    assert set(present(daemon)) == {"b FailedScheduling"}


def test_all_events_are_deleted(daemon: VirtualDaemon) -> None:
    before = present(daemon)
    assert {"a ", "a Scheduled", "b FailedScheduling"} <= set(before)
    answer = daemon.call("objects.delete", kind="Event", all=True)
    assert {each["name"] for each in answer["deleted"]} == set(before.values())
    assert present(daemon) == {}
    assert daemon.call("objects.delete", kind="Event", all=True)["deleted"] == []
