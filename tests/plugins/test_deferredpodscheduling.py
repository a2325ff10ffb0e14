"""Tests of DeferredPodScheduling: a pod with a deferred resize fits only on its node, unless the node forbids it."""

from typing import Any

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.in_tree import IN_TREE
from kschedd.config.versions.kube_versions import V1_36, V1_37
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, EventResource, QueueingHint
from kschedd.framework.status import unresolvable
from kschedd.plugins.deferredpodscheduling import DeferredPodScheduling

PLUGIN = DeferredPodScheduling()


def node(name: str, forbids: bool = False) -> Node:
    spec = {"podPreemptionPolicy": {"disableResizePreemption": ["PodResize"]}} if forbids else {}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "spec": spec})


def pod(node_name: str = "a", deferred: bool = True) -> Pod:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred" if deferred else "Infeasible"}
    return Pod.from_raw(
        {
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": node_name, "containers": [{"name": "c"}]},
            "status": {"conditions": [pending]},
        }
    )


def statuses(wanted: Pod, *nodes: Node) -> Any:
    cache = SchedulerCache()
    for each in nodes:
        cache.put(each)
    table = cache.table
    rows = np.array([table.row_of[each.name] for each in nodes], dtype=np.int64)
    codes = PLUGIN.filter_rows(CycleState(), wanted, table, rows)
    if codes is None:
        return None
    return [PLUGIN.code_status(CycleState(), wanted, code) if code else None for code in codes.tolist()]


def test_only_the_pods_node_is_feasible_unless_it_forbids_preemption() -> None:
    elsewhere, forbidden = (
        unresolvable("pod assigned to different node"),
        unresolvable("node had resize preemption disabled"),
    )
    assert statuses(pod("a"), node("a"), node("b")) == [None, elsewhere]
    assert statuses(pod("a"), node("a", forbids=True), node("b", forbids=True)) == [forbidden, elsewhere]


def test_the_plugin_has_no_extension_point_in_releases_that_do_not_preempt_for_resizes() -> None:
    info = IN_TREE[PLUGIN.name]
    assert not info.points_under(V1_36.rules)
    assert info.points_under(V1_37.rules) == info.points


@pytest.mark.parametrize(("wanted", "idle"), [(pod(), ()), (pod(deferred=False), ("filter",))])
def test_other_pods_are_ignored(wanted: Pod, idle: tuple[str, ...]) -> None:
    assert PLUGIN.idle_for(wanted) == idle
    assert (statuses(wanted, node("b")) is None) == bool(idle)
    assert PLUGIN.idle_points == {"pre_filter", "permit"}


@pytest.mark.parametrize(
    ("wanted", "old", "new", "hint"),
    [
        pytest.param(pod(), None, node("a"), QUEUE, id="its-node-is-added"),
        pytest.param(pod(), node("a", forbids=True), node("a"), QUEUE, id="its-node-allows-it-now"),
        pytest.param(pod(), node("a"), node("a"), QUEUE_SKIP, id="its-node-allowed-it-before"),
        pytest.param(pod(), None, node("a", forbids=True), QUEUE_SKIP, id="its-node-forbids-it"),
        pytest.param(pod(), None, node("b"), QUEUE_SKIP, id="another-node"),
        pytest.param(pod(deferred=False), None, node("a"), QUEUE_SKIP, id="no-deferred-resize"),
    ],
)
def test_events_of_nodes(wanted: Pod, old: Node | None, new: Node, hint: QueueingHint) -> None:
    [registered] = PLUGIN.events_to_register()
    assert registered.event.resource is EventResource.NODE
    assert registered.event.action == ActionType.ADD | ActionType.UPDATE_NODE_PREEMPTION_POLICY
    assert registered.hint is not None
    assert registered.hint(wanted, old, new) is hint
