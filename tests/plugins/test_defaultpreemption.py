"""Tests of DefaultPreemption: which pods may preempt, how many candidates it examines, and its writes.

The tests of the dry run cover the choice of victims.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34, V1_34_1, V1_36, V1_37, KubernetesVersion
from kschedd.framework.events import QUEUE_SKIP, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code
from kschedd.framework.writes import Delete, MergePatch
from kschedd.plugins.defaultpreemption import DefaultPreemption, DefaultPreemptionArgs
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.profiles.profile import build_profile

FITS_NOWHERE = "no new claims to deallocate, preemption: "
BY_PREEMPTION = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def node(name: str, tainted: bool = False) -> Node:
    taints = [{"key": "k", "effect": "NoSchedule"}] if tainted else []
    return Node.from_raw(
        {
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"taints": taints},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "8"}},
        }
    )


def pod(
    name: str,
    priority: int = 0,
    cpu: int = 4,
    *,
    on: str = "",
    nominated: str = "",
    going: bool = False,
    conditions: Sequence[Any] = (),
    generation: int = 0,
    **spec: Any,
) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if going:
        meta["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    if generation:
        meta["generation"] = generation
    wanted = {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}], "priority": priority, **spec}
    if on:
        wanted["nodeName"] = on
    status: dict[str, Any] = {"conditions": list(conditions)}
    if nominated:
        status["nominatedNodeName"] = nominated
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": wanted, "status": status})


def preempt(
    nodes: list[Node],
    pods: list[Pod],
    preemptor: Pod,
    nominated: dict[str, list[Pod]] | None = None,
    prepare: Callable[[Handle], None] = lambda handle: None,
    seed: int = 0,
    percentage: int = 10,
    absolute: int = 100,
    version: KubernetesVersion = V1_34,
) -> PostFilterResult:
    cluster = SchedulerCache()
    cluster.load([*nodes, *pods])
    config = default_config(version=version)
    profile = config.profiles[0]
    args = {**profile.plugin_args, "DefaultPreemption": DefaultPreemptionArgs(percentage, absolute)}
    handle = Handle(cluster, config.feature_gates, seed, config.rules)
    prepare(handle)
    running = build_profile(config, attrs.evolve(profile, plugin_args=args), Registry(), handle)
    result = drive(Scheduler(running, cluster, by_name, StartNode()).attempt(preemptor, nominated or {}))
    assert isinstance(result, FitError)
    assert result.post_filter is not None
    return result.post_filter


# -- who may preempt ----------------------------------------------------------------------------------------------


def test_a_pod_that_must_not_preempt_keeps_its_nomination_and_says_so() -> None:
    post = preempt([node("n")], [pod("a", on="n")], pod("p", 5, preemptionPolicy="Never"))
    assert post.status.code == Code.UNSCHEDULABLE
    assert post.status.message == FITS_NOWHERE + "not eligible due to preemptionPolicy=Never."
    assert post.nominated_node is None
    assert not post.writes


@pytest.mark.parametrize(
    ("there", "waits"),
    [
        pytest.param(pod("a", on="n", going=True, conditions=[BY_PREEMPTION]), True, id="a-victim-still-goes"),
        pytest.param(pod("a", on="n", going=True), False, id="it-goes-for-another-reason"),
        pytest.param(pod("a", on="n", conditions=[BY_PREEMPTION]), False, id="it-is-not-going-yet"),
        pytest.param(
            pod("a", on="n", going=True, conditions=[{**BY_PREEMPTION, "status": "False"}]),
            False,
            id="the-condition-is-false",
        ),
        pytest.param(pod("a", 5, on="n", going=True, conditions=[BY_PREEMPTION]), False, id="it-is-no-victim-of-ours"),
    ],
)
def test_a_nominated_pod_waits_for_its_victims(there: Pod, waits: bool) -> None:
    post = preempt([node("n"), node("m")], [there, pod("b", on="m")], pod("p", 5, nominated="n"))
    if waits:
        why = "not eligible due to a terminating pod on the nominated node."
        assert (post.status.message, post.nominated_node) == (FITS_NOWHERE + why, None)
    else:
        assert post.status.code == Code.SUCCESS


@pytest.mark.parametrize("gone", [pytest.param(False, id="tainted"), pytest.param(True, id="gone")])
def test_a_nominated_node_that_can_no_longer_do_is_not_waited_for(gone: bool) -> None:
    there = [pod("b", on="m")]
    nodes = [node("m")]
    if not gone:
        nodes.append(node("n", tainted=True))
        there.append(pod("a", on="n", going=True, conditions=[BY_PREEMPTION]))
    assert preempt(nodes, there, pod("p", 5, nominated="n")).nominated_node == "m"


def test_a_pod_that_is_gone_preempts_nobody() -> None:
    def prepare(handle: Handle) -> None:
        handle.current_pod = lambda key: None

    post = preempt([node("n")], [pod("a", on="n")], pod("p", 5), prepare=prepare)
    assert post.status.code == Code.ERROR
    assert post.status.message == 'preemption: pod "p" not found'


# -- where it looks -----------------------------------------------------------------------------------------------


def test_only_nodes_that_preemption_may_help_on_are_tried() -> None:
    there = [pod("a", 5, on="same"), pod("b", on="tainted"), pod("c", 0, 2, on="small")]
    nodes = [node("same"), node("tainted", tainted=True), node("small")]
    post = preempt(nodes, there, pod("p", 5, 4, nodeSelector={"no": "where"}))
    assert post.status.message == FITS_NOWHERE + (
        "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    post = preempt(nodes[:2], there[:2], pod("p", 5))
    assert post.status.message == FITS_NOWHERE + (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert post.nominated_node == ""


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "wanted"),
    [
        pytest.param(10, 100, 5000, 500, id="a-share-of-many"),
        pytest.param(10, 100, 500, 100, id="but-at-least-so-many"),
        pytest.param(10, 100, 50, 50, id="and-no-more-than-there-are"),
        pytest.param(33, 0, 10, 3, id="rounded-down"),
        pytest.param(5, 0, 10, 0, id="even-to-none"),
    ],
)
def test_how_many_candidates_are_enough(percentage: int, absolute: int, nodes: int, wanted: int) -> None:
    handle = Handle(SchedulerCache(), rules=V1_34.default_rules)
    plugin = DefaultPreemption.from_args(DefaultPreemptionArgs(percentage, absolute), handle)
    assert plugin.wanted(nodes) == wanted


def test_a_share_that_rounds_down_to_none_finds_none() -> None:
    names = ("a", "b", "c")
    there = [pod(f"on-{name}", on=name) for name in names]
    post = preempt([node(name) for name in names], there, pod("p", 5), percentage=10, absolute=0)
    assert post.status.message == FITS_NOWHERE + (
        "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_pods_begin_at_different_nodes_and_the_same_seed_chooses_the_same() -> None:
    names = [f"n{number}" for number in range(20)]
    there = [pod(f"on-{name}", on=name) for name in names]

    def chosen(preemptor: str, seed: int) -> str | None:
        nodes = [node(name) for name in names]
        return preempt(nodes, there, pod(preemptor, 5), seed=seed, percentage=1, absolute=1).nominated_node

    assert len({chosen(f"p{number}", 0) for number in range(10)}) > 3
    assert len({chosen("p", seed) for seed in range(10)}) > 3
    assert chosen("p", 3) == chosen("p", 3)


# -- what is to be written ----------------------------------------------------------------------------------------


def test_nominations_are_cleared_first_then_each_victim_is_told_and_deleted() -> None:
    waiting = {"n": [pod("low", 1, 1, nominated="n"), pod("high", 9, 1, nominated="n"), pod("unsaid", 1, 1)]}
    ready = {"type": "Ready", "status": "True"}
    there = [pod("a", 0, 2, on="n", conditions=[ready]), pod("b", 1, 2, on="n", generation=3)]
    post = preempt([node("n")], there, pod("p", 5, 3), waiting)
    assert post.nominated_node == "n"
    assert [victim.name for victim in post.victims] == ["b", "a"]
    assert [other.name for other in post.details.cleared] == ["low"]
    condition = {
        **BY_PREEMPTION,
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    }
    clear, tell_b, delete_b, tell_a, delete_a = post.writes
    assert isinstance(clear, MergePatch)
    assert (clear.kind, clear.namespace, clear.name, clear.subresource) == ("Pod", "default", "low", "status")
    assert clear.patch == {"metadata": {"uid": "uid-low"}, "status": {"nominatedNodeName": None}}
    assert tell_b.patch == {
        "metadata": {"uid": "uid-b"},
        "status": {"conditions": [{**condition, "observedGeneration": 3}]},
    }
    assert tell_a.patch == {"metadata": {"uid": "uid-a"}, "status": {"conditions": [ready, condition]}}
    assert isinstance(tell_a, MergePatch)
    assert tell_a.subresource == "status"
    assert (delete_b, delete_a) == tuple(Delete("Pod", "default", name, f"uid-{name}") for name in "ba")


def test_a_condition_said_already_is_not_said_again() -> None:
    answer = {
        **BY_PREEMPTION,
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "2025-01-01T00:00:00Z",
    }
    post = preempt([node("n")], [pod("a", on="n", conditions=[answer])], pod("p", 5))
    assert [type(write) for write in post.writes] == [Delete]
    other = {**answer, "message": "other-scheduler: preempting"}
    post = preempt([node("n")], [pod("a", on="n", conditions=[other])], pod("p", 5))
    assert post.writes[0].patch["status"]["conditions"] == [answer]
    false = {**answer, "status": "False"}
    post = preempt([node("n")], [pod("a", on="n", conditions=[false])], pod("p", 5))
    [condition] = post.writes[0].patch["status"]["conditions"]
    assert "lastTransitionTime" not in condition, "the status changes now"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        pytest.param(V1_36, "", id="1.36"),
        pytest.param(
            V1_37,
            "preemption: found a potential placement for pod on node n, preempting 2 victims",
            id="1.37-names-the-node-and-counts-the-victims",
        ),
    ],
)
def test_the_message_of_a_preemption(version: KubernetesVersion, message: str) -> None:
    there = [pod("a", 0, 2, on="n"), pod("b", 0, 2, on="n")]
    assert preempt([node("n")], there, pod("p", 5), version=version).status.message == message


@pytest.mark.parametrize(
    ("version", "again"),
    [
        pytest.param(V1_34_1, False, id="1.34.1-leaves-them"),
        pytest.param(V1_34, True, id="1.34.9-deletes-them-again-and-clears-nominations"),
        pytest.param(V1_36, False, id="1.36-leaves-them"),
    ],
)
def test_victims_that_are_terminating_already(version: KubernetesVersion, again: bool) -> None:
    waiting = {"n": [pod("low", 1, 1, nominated="n")]}
    post = preempt([node("n")], [pod("a", on="n", going=True)], pod("p", 5), waiting, version=version)
    assert post.nominated_node == "n"
    assert [victim.name for victim in post.victims] == ["a"]
    assert [type(write).__name__ for write in post.writes] == (["Patch", "Patch", "Delete"] if again else [])
    assert [each.name for each in post.details.deleted] == (["a"] if again else [])
    assert [each.name for each in post.details.cleared] == (["low"] if again else [])


def test_a_victim_that_waits_at_permit_is_rejected_instead() -> None:
    waiting = pod("a", 0, 2, on="n")

    def prepare(handle: Handle) -> None:
        handle.waiting_pods = lambda: [(waiting, "n")]

    post = preempt([node("n")], [waiting, pod("b", 0, 2, on="n")], pod("p", 5), prepare=prepare)
    assert [victim.name for victim in post.rejected] == ["a"]
    assert [write.name for write in post.writes] == ["b", "b"]


# -- while it is carried out --------------------------------------------------------------------------------------


def plugin(asynchronous: bool, evicting: set[str]) -> DefaultPreemption:
    handle = Handle(SchedulerCache(), {"SchedulerAsyncPreemption": asynchronous})
    handle.evicting = evicting.__contains__
    return DefaultPreemption.from_args(DefaultPreemptionArgs(), handle)


def test_a_pod_waits_while_its_victims_are_being_evicted() -> None:
    evicting = {"uid-p"}
    gate = plugin(True, evicting)
    status = gate.pre_enqueue(pod("p"))
    assert status is not None
    assert status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for the preemption for this pod to be finished"
    assert gate.pre_enqueue(pod("q")) is None
    evicting.clear()
    assert gate.pre_enqueue(pod("p")) is None


def test_pods_that_go_do_not_wake_it_by_this_plugin() -> None:
    (registered,) = plugin(True, set()).events_to_register()
    assert registered.event.resource is EventResource.ASSIGNED_POD
    assert registered.hint is not None
    assert registered.hint(pod("p"), pod("a", on="n"), None) is QUEUE_SKIP


def test_where_eviction_is_part_of_the_cycle_nobody_waits() -> None:
    gate = plugin(False, {"uid-p"})
    assert gate.pre_enqueue(pod("p")) is None
    assert gate.events_to_register() == ()
