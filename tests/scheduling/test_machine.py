"""Tests of the scheduling machine: its parts, the registrations of its plugins, and pods that are deleted."""

from random import Random
from typing import Any

import attrs
import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34, V1_37, KubernetesVersion
from kschedd.framework.events import ActionType, EventResource
from kschedd.framework.status import Code, Status
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.ties import NodeTies, by_name
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from kschedd.store.objects.log import ADDED, DELETED, EventType, WatchEvent
from tests.scheduling.test_scheduler import attempt, machine, node, plugin, pod


def seen(made: SchedulingMachine, of: EventType, obj: Any) -> None:
    made.observe([WatchEvent(of, None, obj, 1)])


def test_a_machine_uses_the_cluster_that_it_is_given() -> None:
    cluster = SchedulerCache()
    assert SchedulingMachine(default_config(version=V1_34), cluster=cluster).cluster is cluster


def test_extension_points_are_timed_with_metrics_only() -> None:
    config, metrics = default_config(version=V1_34), SchedulingMetrics(lambda: 0.0)
    timed, untimed = SchedulingMachine(config, metrics=metrics), SchedulingMachine(config)
    assert timed.times("default-scheduler") is metrics.times("default-scheduler")
    assert untimed.times("default-scheduler") is untimed.times("another")
    assert timed.times("default-scheduler") is not untimed.times("default-scheduler")


def test_a_copy_of_the_choices_is_independent() -> None:
    made = SchedulingMachine(default_config(version=V1_34), choose=NodeTies(Random(3)))
    made.start.index = 7
    copied = made.choices()
    assert (copied.start, copied.choose is made.choose) == (7, False)
    named = SchedulingMachine(default_config(version=V1_34), choose=by_name)
    assert named.choices().choose is by_name


@pytest.mark.parametrize(("version", "all_taints"), [(V1_34, True), (V1_37, False)])
def test_plugins_get_changes_of_taints_with_additions_of_nodes_before_the_rule(
    version: KubernetesVersion, all_taints: bool
) -> None:
    registrations = SchedulingMachine(default_config(version=version)).registrations()["default-scheduler"]
    actions = [one.event.action for one in registrations["NodePorts"] if one.event.resource is EventResource.NODE]
    assert any(action & ActionType.UPDATE_NODE_TAINT for action in actions) is all_taints


def test_pods_that_wait_at_permit_are_known_with_their_nodes() -> None:
    made = machine(plugin("Waits", permit=lambda state, pod, node: (Status(Code.WAIT), 30.0)), nodes=[node("a")])
    wanted = pod("p")
    made.completion.complete(QueuedPod(wanted, wanted.key, 0), attempt(made, wanted), 0.0)
    [(waiting, name)] = made.handle.waiting_pods()
    assert (waiting.name, name) == ("p", "a")


def test_an_assumed_pod_that_is_deleted_stays_on_its_node_until_its_binding_ends() -> None:
    made, wanted = machine(nodes=[node("a")]), pod("p")
    made.cluster.assume(wanted, "a")
    seen(made, DELETED, wanted)
    assert made.cluster.is_assumed(wanted)
    assert made.cluster.is_marked_deleted(wanted.uid)


def test_other_pods_that_are_deleted_are_removed() -> None:
    made = machine(nodes=[node("a")])
    bound = attrs.evolve(pod("bound"), node_name="a")
    seen(made, ADDED, bound)
    assert made.cluster.pod_count == 1
    for each in (bound, pod("pending")):
        seen(made, DELETED, each)
        assert not made.cluster.is_marked_deleted(each.uid)
    assert made.cluster.pod_count == 0


def test_an_object_that_cannot_be_read_is_a_fault_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine(nodes=[])
    bad = parse({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})

    def fails(self: SchedulerCache, obj: Any) -> None:
        raise ValueError("cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr(SchedulerCache, "put", fails)
        made.observe([WatchEvent(ADDED, None, bad, 1)], 5.0)
    assert len(made.faults.by_object) == 1
    made.observe([WatchEvent(ADDED, None, bad, 2)], 6.0)
    assert not made.faults.by_object
    assert made.cluster.get("Namespace", "n") is bad


@pytest.mark.parametrize(("of", "skips"), [(pod("p"), False), (pod("there"), True)])
def test_pods_that_are_assumed_already_are_skipped(of: Pod, skips: bool) -> None:
    made = machine(nodes=[node("a")])
    made.cluster.assume(pod("there"), "a")
    assert made.skips(of) is skips
    raw = {**of.raw, "metadata": {**of.raw["metadata"], "deletionTimestamp": "2025-01-01T00:00:00Z"}}
    assert made.skips(Pod.from_raw(raw))
