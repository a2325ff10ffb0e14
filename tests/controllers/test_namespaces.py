"""Tests that built-in namespaces are created again after their deletion."""

from collections.abc import Sequence

from kschedd.api.conditions import condition
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.kubelets.heartbeats import NODE_LEASES, Heartbeats
from kschedd.controllers.namespaces import SystemNamespaces
from kschedd.controllers.nodes.nodelifecycle import NodeLifecycle
from kschedd.controllers.nodes.nodetaints import NodeTaints
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.store.store import Store
from tests.store.manifests import Clock, node

START = 1_700_000_000.0


def cluster(store: Store) -> ControllerRunner:
    controllers: Sequence[Controller] = (
        SystemNamespaces(),
        Heartbeats(),
        NodeTaints(),
        NodeLifecycle(),
        GarbageCollector(),
    )
    runner = ControllerRunner(store, controllers)
    runner.run_until_idle()
    return runner


def test_nodes_stay_ready_when_the_namespace_of_their_leases_is_deleted() -> None:
    clock = Clock(START)
    store = Store(now=clock)
    for name in ("a", "b"):
        store.create(node(name, conditions={"Ready": "True"}))
    runner = cluster(store)
    store.delete("Namespace", "", NODE_LEASES)
    runner.run_until_idle()
    while (due := runner.next_deadline) is not None and due <= START + 600:
        clock.now = due
        runner.run_until_idle()
    assert [lease.name for lease in store.list("Lease", NODE_LEASES)] == ["a", "b"]
    ready = [condition(each.status, "Ready") for each in store.list("Node")]
    assert [(each or {}).get("status") for each in ready] == ["True", "True"]
    assert [each.spec.get("taints") for each in store.list("Node")] == [None, None]


def test_a_cluster_that_starts_without_one_gets_it() -> None:
    store = Store(now=Clock(START))
    store.delete("Namespace", "", NODE_LEASES)
    store.finalize_namespace(NODE_LEASES)
    assert store.find("Namespace", "", NODE_LEASES) is None
    cluster(store)
    assert store.get("Namespace", "", NODE_LEASES).status["phase"] == "Active"
