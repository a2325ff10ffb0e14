"""Controllers as actors: what they write goes through the store, and they hear of it as of everything else."""

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.store.store import Store
from tests.actors.clusters import deployment, node, pod, until


def running(store: Store) -> list[str]:
    return [found.name for found in store.list("Pod") if isinstance(found, Pod) and found.phase == "Running"]


async def test_a_deployment_becomes_pods_that_run_and_a_smaller_one_fewer() -> None:
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(deployment(replicas=5))
        await until(cluster, lambda store: len(running(store)) == 5)
        await cluster.store.do(
            lambda store: store.merge_patch("Deployment", "default", "web", {"spec": {"replicas": 2}})
        )
        await until(cluster, lambda store: sum(not found.deleting for found in store.list("Pod")) == 2)


async def test_a_node_that_is_cordoned_is_tainted_and_back() -> None:
    def taints(store: Store) -> list[str]:
        found = store.get("Node", "", "n1")
        assert isinstance(found, Node)
        return [taint.key for taint in found.taints]

    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create(node())
        for wanted, expected in ((True, ["node.kubernetes.io/unschedulable"]), (None, [])):
            patch = {"spec": {"unschedulable": wanted}}
            await cluster.store.do(lambda store, patch=patch: store.merge_patch("Node", "", "n1", patch))
            await until(cluster, lambda store, expected=expected: taints(store) == expected)


async def test_what_was_there_before_a_controller_is_looked_after_and_timers_ring() -> None:
    short = pod("short", nodeName="n1", restartPolicy="Never")
    short["metadata"]["annotations"] = {"kschedd.io/run-seconds": "0.05"}
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([short, node()])
        await until(cluster, lambda store: store.get("Pod", "default", "short").status.get("phase") == "Succeeded")


async def test_what_an_owner_leaves_behind_is_cleared_up() -> None:
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([node(), deployment(replicas=2)])
        await until(cluster, lambda store: len(running(store)) == 2)
        await cluster.store.do(lambda store: store.delete("Deployment", "default", "web"))
        await until(cluster, lambda store: store.count("ReplicaSet") == 0)
        await until(cluster, lambda store: all(found.deleting for found in store.list("Pod")))


async def test_what_is_written_of_a_large_node_is_worked_out_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    forks = 0
    plain = Store.fork

    def fork(store: Store) -> Store:
        nonlocal forks
        forks += 1
        return plain(store)

    def ready(store: Store) -> bool:
        found = store.get("Node", "", "large")
        return any(one["type"] == "Ready" for one in found.status.get("conditions") or ())

    monkeypatch.setattr(Store, "fork", fork)
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create(node("large", labels={f"l{number}": "" for number in range(1_500)}))
        await until(cluster, ready)
    assert forks
