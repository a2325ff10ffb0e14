"""Tests of the scheduler cache: pods on missing nodes, and assumed pods."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache


def node(name: str) -> Node:
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}})


def pod(name: str, on: str = "", phase: str = "Pending", **meta: Any) -> Pod:
    raw = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, **meta},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": phase},
    }
    return Pod.from_raw(raw)


def on(cluster: SchedulerCache, name: str) -> list[str]:
    """Return the names of the pods that are counted on a node."""
    return [each.name for each in cluster.table.pods[cluster.table.row_of[name]]]


@pytest.fixture
def cluster() -> SchedulerCache:
    made = SchedulerCache()
    made.put(node("a"))
    made.put(node("b"))
    return made


def test_a_pod_with_a_node_counts_there_and_one_without_does_not(cluster: SchedulerCache) -> None:
    cluster.load([pod("p", "a"), pod("q")])
    assert (on(cluster, "a"), on(cluster, "b"), cluster.pod_count) == (["p"], [], 1)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_takes_nothing_any_more(cluster: SchedulerCache, phase: str) -> None:
    cluster.put(pod("p", "a"))
    cluster.put(pod("p", "a", phase))
    assert (on(cluster, "a"), cluster.pod("p")) == ([], None)


def test_a_pod_waits_for_its_node(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "late"))
    assert cluster.pod("p") is not None
    cluster.put(node("late"))
    assert on(cluster, "late") == ["p"]


def test_a_pod_whose_node_went_counts_again_when_the_node_is_back(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "a"))
    cluster.remove(node("a"))
    assert (cluster.pod_count, "a" in cluster.table.row_of) == (1, False)
    cluster.put(node("a"))
    assert on(cluster, "a") == ["p"]


def test_a_pod_removed_while_its_node_is_away_does_not_come_back_with_it(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "a"))
    cluster.remove_node("a")
    cluster.remove(pod("p", "a"))
    cluster.put(node("a"))
    assert (on(cluster, "a"), cluster.pod_count) == ([], 0)


def test_removing_a_node_that_is_not_there_changes_nothing(cluster: SchedulerCache) -> None:
    cluster.remove_node("c")
    assert set(cluster.table.row_of) == {"a", "b"}


def test_an_assumed_pod_counts_until_it_is_forgotten(cluster: SchedulerCache) -> None:
    placed = cluster.assume(pod("p"), "a")
    assert (placed.node_name, on(cluster, "a"), cluster.assumed_pods()) == ("a", ["p"], [placed])
    assert cluster.forget(placed)
    assert (on(cluster, "a"), cluster.assumed_pods(), cluster.pod_count) == ([], [], 0)


def test_a_confirmed_pod_is_no_longer_assumed_and_cannot_be_forgotten(cluster: SchedulerCache) -> None:
    placed = cluster.assume(pod("p"), "a")
    cluster.put(placed)
    assert not cluster.is_assumed(placed)
    assert not cluster.forget(placed)
    assert on(cluster, "a") == ["p"]


def test_a_pod_confirmed_on_another_node_than_assumed_moves_there(cluster: SchedulerCache) -> None:
    cluster.assume(pod("p"), "a")
    cluster.put(pod("p", "b"))
    assert (on(cluster, "a"), on(cluster, "b")) == ([], ["p"])


def test_news_of_a_pod_without_a_node_leaves_its_assumption_alone(cluster: SchedulerCache) -> None:
    cluster.assume(pod("p"), "a")
    cluster.put(pod("p", labels={"new": "label"}))
    assert on(cluster, "a") == ["p"]


def test_an_assumed_pod_that_was_deleted_counts_until_its_binding_failed(cluster: SchedulerCache) -> None:
    placed = cluster.assume(pod("p"), "a")
    cluster.mark_deleted(placed)
    assert (cluster.is_marked_deleted("p"), on(cluster, "a")) == (True, ["p"])
    assert cluster.forget(placed)
    assert (cluster.is_marked_deleted("p"), on(cluster, "a")) == (False, [])


def test_forgetting_what_was_never_assumed_is_refused(cluster: SchedulerCache) -> None:
    assert not cluster.forget(pod("p"))


def test_a_changed_pod_is_counted_once(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "a"))
    cluster.put(pod("p", "a", labels={"app": "web"}))
    assert on(cluster, "a") == ["p"]
    found = cluster.pod("p")
    assert found is not None
    assert found.labels == {"app": "web"}


def test_other_objects_are_found_by_kind_and_key_and_each_change_counts(cluster: SchedulerCache) -> None:
    claim = parse(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
    )
    assert cluster.of_kind("PersistentVolumeClaim") == {}
    cluster.put(claim)
    before = cluster.versions.latest("PersistentVolumeClaim")
    assert cluster.get("PersistentVolumeClaim", "default/c") is claim
    cluster.remove(claim)
    assert cluster.get("PersistentVolumeClaim", "default/c") is None
    assert cluster.versions.changed(before, "PersistentVolumeClaim")
