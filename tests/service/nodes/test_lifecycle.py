"""Tests of a lost zone in a live cluster in virtual time, and of the methods' answers about it."""

from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kschedd.access.users import Caller
from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.answers import plain
from kschedd.api.text.times import seconds
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.errors import KscheddError
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.nodes.lifecycle import LifecycleMethods
from kschedd.service.params import bind
from kschedd.service.table import Call, ClientServices, find_method
from kschedd.service.workers import AtOnce
from kschedd.store.store import Store
from tests.actors.clusters import deployment, node

START = 1_700_000_000.0
ZONE = "topology.kubernetes.io/zone"


class Talk:
    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self._methods = method_table(LifecycleMethods(cluster).table())

    async def __call__(self, method: str, **named: Any) -> Any:
        """Return the method's answer, called once all tasks are blocked."""
        await wait_all_tasks_blocked()
        declared = find_method(self._methods, method)
        nobody: Any = None
        services = SimpleNamespace(workers=AtOnce(), caller=Caller())
        call = Call(method, bind(method, declared.params, [named]), "test", cast(ClientServices, services), nobody)
        return plain(await declared.handler(call))


async def until(cluster: LiveCluster, true: Callable[[Store], Any]) -> None:
    """Wait for the condition on the store, for at most an hour of the cluster's time."""
    watch = await cluster.store.watch()
    with trio.fail_after(3600):
        while not await cluster.store.do(true):
            watch.take()
            assert await watch.wait(), "the cluster ended first"
    watch.close()


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    clock = Clock.started(START)
    async with cluster_actors(controllers=embedded_controllers(), clock=clock, seed=1) as cluster:
        yield Talk(cluster)


async def _outage(talk: Talk) -> None:
    """Run two zones of two nodes, four pods, and no working kubelet in zone a."""
    nodes = [node(name, labels={ZONE: name[0]}) for name in ("a1", "a2", "b1", "b2")]
    await talk.cluster.store.create_many(nodes)
    await talk.cluster.store.create(deployment(replicas=4))
    await until(talk.cluster, lambda store: sum(pod.status["phase"] == "Running" for pod in store.list("Pod")) == 4)
    for name in ("a1", "a2"):
        assert (await talk("nodes.stop", name=name))["changed"] == ["metadata.annotations"]


def _no_execute(store: Store) -> list[str]:
    nodes = store.list("Node")
    return [each.name for each in nodes if any(t["effect"] == "NoExecute" for t in each.spec.get("taints") or ())]


async def test_a_lost_zone_is_tainted_its_pods_leave_and_it_comes_back(autojump_clock: MockClock, talk: Talk) -> None:
    await _outage(talk)
    answer = await talk("nodes.zones")
    assert [(zone["zone"], zone["state"], zone["ready"]) for zone in answer["zones"]] == [
        ("a", "Normal", 2),
        ("b", "Normal", 2),
    ]
    assert [(each["node"], each["next"]) for each in answer["nodes"]] == [("a1", "Unknown"), ("a2", "Unknown")]
    await until(talk.cluster, lambda store: _no_execute(store) == ["a1"])
    answer = await talk("nodes.zones")
    (lost, well) = answer["zones"]
    assert (lost["state"], lost["not_ready"], lost["rate"], lost["waiting"]) == ("FullDisruption", 2, 0.1, ["a2"])
    assert (well["state"], well["waiting"]) == ("Normal", [])
    (waiting,) = answer["nodes"]
    assert (waiting["node"], waiting["next"]) == ("a2", "NoExecute")
    await until(talk.cluster, lambda store: _no_execute(store) == ["a1", "a2"])
    leaving = (await talk("nodes.leaving"))["pods"]
    assert {each["node"] for each in leaving} == {"a1", "a2"}
    assert {seconds(each["at"]) - seconds(each["since"]) for each in leaving} == {300}

    def moved(store: Store) -> bool:
        there = [pod for pod in store.list("Pod") if not pod.deleting]
        return len(there) == 4 and all(pod.spec.get("nodeName") in ("b1", "b2") for pod in there)

    await until(talk.cluster, moved)
    assert (await talk("nodes.leaving"))["pods"] == []
    for name in ("a1", "a2"):
        await talk("nodes.start", name=name)
    await until(talk.cluster, lambda store: _no_execute(store) == [] and store.count("Pod") == 4)
    assert (await talk("nodes.start", name="a1"))["changed"] == []


async def test_a_kubelet_that_nobody_simulates_is_not_stopped(autojump_clock: MockClock, talk: Talk) -> None:
    alone = node("real")
    alone["metadata"]["annotations"] = {"kschedd.io/kubelet": "none"}
    await talk.cluster.store.create(alone)
    with pytest.raises(KscheddError, match="its kubelet is not simulated"):
        await talk("nodes.stop", name="real")
    with pytest.raises(KscheddError, match='nodes "nowhere" not found'):
        await talk("nodes.start", name="nowhere")


async def test_without_controllers_there_are_no_zones(autojump_clock: MockClock) -> None:
    async with cluster_actors() as cluster:
        for method in ("nodes.zones", "nodes.leaving"):
            with pytest.raises(KscheddError, match="no controllers run in this cluster"):
                await Talk(cluster)(method)
