"""Tests of the pods that belong to a PodGroup, and of the fields of a PodGroup that scheduling reads."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND, PodGroups, disrupted_as_a_whole, min_count, priority_of, topology_key
from kschedd.cache.scheduler_cache import SchedulerCache


def group(**spec: Any) -> Object:
    return Object.from_raw({"kind": KIND, "metadata": {"name": "g", "namespace": "d"}, "spec": spec})


def pod(name: str, group: str = "g", phase: str = "Pending", node: str = "", priority: int = 1) -> Pod:
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "nodeName": node, "priority": priority}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    meta = {"name": name, "namespace": "d", "uid": name}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}})


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        pytest.param({}, (0, "", 0, False), id="empty"),
        pytest.param({"schedulingPolicy": None, "schedulingConstraints": None}, (0, "", 0, False), id="null"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, (0, "", 0, False), id="basic"),
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 3}}, "priority": 7}, (3, "", 7, False), id="gang"),
        pytest.param({"schedulingPolicy": {"gang": {}}, "priority": None}, (0, "", 0, False), id="gang-of-none"),
        pytest.param({"schedulingConstraints": {"topology": [{"key": "zone"}]}}, (0, "zone", 0, False), id="topology"),
        pytest.param({"schedulingConstraints": {"topology": []}}, (0, "", 0, False), id="no-topology"),
        pytest.param({"disruptionMode": {"all": {}}}, (0, "", 0, True), id="disrupted-as-a-whole"),
        pytest.param({"disruptionMode": {"single": {}}}, (0, "", 0, False), id="disrupted-one-by-one"),
    ],
)
def test_the_fields_of_a_pod_group(spec: dict[str, Any], facts: tuple[int, str, int, bool]) -> None:
    made = group(**spec)
    assert (min_count(made), topology_key(made), priority_of(made), disrupted_as_a_whole(made)) == facts


def test_a_pod_belongs_to_its_group_until_it_is_gone_or_finished() -> None:
    groups = PodGroups(SchedulerCache())
    for name in "abc":
        groups.put(pod(name))
    groups.put(pod("other", "h"))
    assert [each.name for each in groups.pods("d/g")] == ["a", "b", "c"]
    groups.remove(pod("a"))
    groups.put(pod("b", phase="Succeeded"))
    assert ([each.name for each in groups.pods("d/g")], groups.keys()) == (["c"], ["d/g", "d/h"])
    for name in "cc":
        groups.remove(pod(name))
    assert (groups.pods("d/g"), groups.keys()) == ([], ["d/h"])


def test_a_pod_of_a_group_has_a_node_when_it_is_assumed_or_bound() -> None:
    cluster = SchedulerCache()
    groups = PodGroups(cluster)
    for each in (pod("bound", node="n"), pod("assumed"), pod("waiting")):
        groups.put(each)
    cluster.assume(pod("assumed"), "m")
    assert [each.name for each in groups.scheduled("d/g")] == ["bound", "assumed"]
    assert [(each.name, each.node_name) for each in groups.placed("d/g")] == [("bound", "n"), ("assumed", "m")]
    assert [each.name for each in groups.waiting_for_node("d/g")] == ["waiting"]


def test_the_priority_of_a_pod_is_that_of_its_group_if_the_group_exists() -> None:
    cluster = SchedulerCache()
    groups = PodGroups(cluster)
    assert (groups.priority(pod("a")), groups.of(pod("a"))) == (1, None)
    cluster.put(group(priority=9))
    assert [groups.priority(each) for each in (pod("a"), pod("b", "h"), pod("c", ""))] == [9, 1, 1]
    assert groups.of(pod("a")) is groups.object("d/g") is not None


def test_a_fork_has_pods_of_its_own() -> None:
    groups = PodGroups(SchedulerCache())
    groups.put(pod("a"))
    cluster = SchedulerCache()
    forked = groups.fork(cluster)
    groups.put(pod("b"))
    groups.remove(pod("a"))
    assert ([each.name for each in forked.pods("d/g")], forked.cluster) == (["a"], cluster)
