"""Tests of GangScheduling: which pods enter the active queue, which wait at Permit, and which events wake a pod.

The cases are those of kube-scheduler 1.36's table test (gangscheduling_test.go).
"""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, QueueingHint, matches, object_event
from kschedd.framework.handle import Handle
from kschedd.framework.status import Code
from kschedd.plugins.gangscheduling import NOT_ENOUGH, NOT_SCHEDULED, GangScheduling


def pod(name: str, group: str = "", namespace: str = "ns1", node: str = "") -> Pod:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": namespace, "uid": name}
    made = parse({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    assert isinstance(made, Pod)
    return made


def group(
    name: str, min_count: int | None, namespace: str = "ns1", version: str = "scheduling.k8s.io/v1alpha2"
) -> Object:
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    meta = {"name": name, "namespace": namespace}
    return parse({"apiVersion": version, "kind": "PodGroup", "metadata": meta, "spec": {"schedulingPolicy": policy}})


class Gang:
    """The plugin in a cluster with these groups and pods."""

    def __init__(self, groups: list[Object], pods: list[Pod]) -> None:
        self.cluster = SchedulerCache()
        self.cluster.load(groups)
        self.handle = Handle(self.cluster)
        self.allowed: list[str] = []
        self.activated: list[str] = []
        self.handle.allow = lambda uid, plugin: bool(self.allowed.append(uid)) or True
        self.handle.activate = lambda those: self.activated.extend(each.name for each in those)
        self.groups = self.handle.shared(PodGroups)
        for each in pods:
            self.groups.put(each)
        self.plugin = GangScheduling.from_args(None, self.handle)

    def permit(self, tried: Pod) -> tuple[Code, str]:
        self.cluster.assume(tried, "n")
        answer = self.plugin.permit(CycleState(), tried, "n")
        status = answer[0] if isinstance(answer, tuple) else answer
        return (Code.SUCCESS, "") if status is None else (status.code, status.message)


GROUPS = [group("pg1", 3), group("pg2", 4), group("pg3", None)]
P1, P2, P3, P4 = pod("p1", "pg1"), pod("p2", "pg1"), pod("p3", "pg1"), pod("p4", "pg2")


@pytest.mark.parametrize(
    ("groups", "others", "tried", "why"),
    [
        pytest.param(GROUPS, [], pod("alone"), "", id="a-pod-of-no-group-passes"),
        pytest.param(GROUPS, [], pod("b", "pg3"), "", id="a-pod-of-a-basic-group-passes"),
        pytest.param(
            [],
            [P2, P3],
            P1,
            'waiting for pods\'s pod group "pg1" to appear in scheduling queue',
            id="a-pod-whose-group-is-not-there-waits",
        ),
        pytest.param(
            [group("pg1", 3, version="scheduling.example.com/v1")],
            [P2, P3],
            P1,
            'waiting for pods\'s pod group "pg1" to appear in scheduling queue',
            id="a-custom-resource-of-that-name-is-no-group",
        ),
        pytest.param(GROUPS, [P2, P4], P1, NOT_ENOUGH, id="a-pod-of-a-gang-that-lacks-pods-waits"),
        pytest.param(GROUPS, [P2, P3, P4], P1, "", id="a-pod-of-a-gang-with-all-its-pods-passes"),
        pytest.param([group("pg1", 0)], [], P1, "", id="a-pod-of-a-gang-that-needs-none-passes"),
        pytest.param(GROUPS, [P2, pod("done", "pg1", node="n")], P1, "", id="pods-that-run-count"),
    ],
)
def test_who_may_enter_the_active_queue(groups: list[Object], others: list[Pod], tried: Pod, why: str) -> None:
    status = Gang(groups, [*others, tried]).plugin.pre_enqueue(tried)
    assert ("" if status is None else status.message) == why
    assert status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_pod_that_is_being_removed_still_counts() -> None:
    gang = Gang(GROUPS, [P1, P2])
    gang.handle.leaving = lambda key: key == "ns1/pg1"
    assert gang.plugin.pre_enqueue(P1) is None


@pytest.mark.parametrize(
    ("min_count", "scheduled", "remaining", "answer"),
    [
        pytest.param(2, 2, 0, None, id="enough"),
        pytest.param(2, 1, 1, (Code.WAIT, "minCount (2) is not yet satisfied: 1 scheduled, 1 remaining"), id="not-yet"),
        pytest.param(
            3,
            1,
            1,
            (Code.UNSCHEDULABLE, "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"),
            id="no-longer",
        ),
        pytest.param(None, 1, 0, None, id="one-pod-of-a-basic-group"),
        pytest.param(
            None, 0, 1, (Code.WAIT, "minCount (1) is not yet satisfied: 0 scheduled, 1 remaining"), id="none-of-it"
        ),
    ],
)
def test_a_placement_is_feasible_with(
    min_count: int | None, scheduled: int, remaining: int, answer: tuple[Code, str] | None
) -> None:
    status = Gang([], []).plugin.placement_feasible(group("pg1", min_count), scheduled, remaining)
    assert (None if status is None else (status.code, status.message)) == answer


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(group("pg1", 3), group("pg1", 2), QUEUE, id="that-needs-fewer-pods"),
        pytest.param(group("pg1", 2), group("pg1", 2), QUEUE_SKIP, id="not-as-many"),
        pytest.param(group("pg1", 2), group("pg1", None), QUEUE_SKIP, id="not-one-that-is-no-gang"),
        pytest.param(group("pg2", 3), group("pg2", 2), QUEUE_SKIP, id="not-another-group"),
        pytest.param(None, group("pg1", 2), QUEUE_SKIP, id="not-a-new-one"),
        pytest.param(group("pg1", 2), None, QUEUE_SKIP, id="not-a-deleted-one"),
    ],
)
def test_a_pod_is_woken_by_a_group(old: Object | None, new: Object | None, hint: QueueingHint) -> None:
    gang = Gang(GROUPS, [])
    *_, after_update = GangScheduling(gang.handle, gang.groups, True).events_to_register()
    assert after_update.event.action is ActionType.UPDATE
    assert after_update.hint is not None
    assert after_update.hint(P1, old, new) is hint


def test_the_last_pod_that_a_gang_needs_lets_the_others_go() -> None:
    gang = Gang(GROUPS, [P1, P2, P3])
    assert gang.permit(P1) == (Code.WAIT, NOT_SCHEDULED)
    assert gang.activated == ["p2", "p3"]
    assert gang.permit(P2) == (Code.WAIT, NOT_SCHEDULED)
    assert gang.allowed == []
    assert gang.permit(P3) == (Code.SUCCESS, "")
    assert gang.allowed == ["p1", "p2", "p3"]


def test_a_pod_waits_five_minutes_for_its_gang() -> None:
    gang = Gang(GROUPS, [P1, P2, P3])
    gang.cluster.assume(P1, "n")
    answer = gang.plugin.permit(CycleState(), P1, "n")
    assert isinstance(answer, tuple)
    assert answer[1] == 300.0


@pytest.mark.parametrize("tried", [pod("alone"), pod("b", "pg3")], ids=["of-no-group", "of-a-basic-group"])
def test_others_do_not_wait_at_permit(tried: Pod) -> None:
    assert Gang(GROUPS, [tried]).permit(tried) == (Code.SUCCESS, "")


def test_permit_fails_where_the_group_is_gone() -> None:
    why = 'failed to get podGroup ns1/pg1: podgroup.scheduling.k8s.io "pg1" not found'
    assert Gang([], [P1]).permit(P1) == (Code.ERROR, why)


@pytest.mark.parametrize(
    ("came", "hint"),
    [
        pytest.param(pod("new", "pg1"), QUEUE, id="a-pod-of-the-same-group"),
        pytest.param(pod("new", "pg1", "ns2"), QUEUE_SKIP, id="of-a-group-elsewhere"),
        pytest.param(pod("new", "pg2"), QUEUE_SKIP, id="of-another-group"),
        pytest.param(pod("new"), QUEUE_SKIP, id="of-no-group"),
        pytest.param(group("pg1", 1), QUEUE, id="the-group"),
        pytest.param(group("pg2", 1), QUEUE_SKIP, id="another-group"),
        pytest.param(group("pg1", 1, "ns2"), QUEUE_SKIP, id="a-group-elsewhere"),
    ],
)
def test_what_wakes_a_pod(came: Object, hint: QueueingHint) -> None:
    after_pod, after_group = Gang(GROUPS, []).plugin.events_to_register()
    registered = after_pod if isinstance(came, Pod) else after_group
    assert registered.hint is not None
    assert registered.hint(P1, None, came) is hint


def test_a_custom_resource_of_that_name_wakes_nobody() -> None:
    _, after_group = Gang(GROUPS, []).plugin.events_to_register()
    for version, wakes in (("scheduling.k8s.io/v1alpha2", True), ("x.io/v1", False)):
        came = object_event(None, group("pg1", 1, version=version))
        assert came is not None
        assert matches(after_group.event, came) is wakes


def test_a_fork_has_groups_of_its_own() -> None:
    gang = Gang(GROUPS, [P1, P2])
    forked = gang.groups.fork(gang.cluster.fork())
    gang.groups.remove(P1)
    gang.groups.remove(P2)
    assert [each.name for each in forked.pods("ns1/pg1")] == ["p1", "p2"]
    assert gang.groups.keys() == []
