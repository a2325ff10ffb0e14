"""Tests of bindings that wait for others, are rejected, or are interrupted."""

from typing import Any, ClassVar

import trio

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.daemon import cluster_actors
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Create, MergePatch, Plan
from kschedd.scheduling.driver import SchedulingDriver
from tests.actors.clusters import comes_to, node, placed, pod, rejected, until, with_plugins

undone: list[str] = []


def wish(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}


class Wishes:
    """A PreBind plugin that writes a pod's request to an object, and waits until another client has granted it."""

    name: ClassVar = "Wishes"

    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        return None

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        undone.append(pod.name)

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan | None:
        if "wish" not in pod.labels:
            return None

        def ready(cluster: SchedulerCache) -> Status | None:
            granted = cluster.get("ConfigMap", f"default/{pod.name}")
            if granted is None or "granted" not in granted.raw.get("data", {}):
                return None
            good = granted.raw["data"]["granted"] == "yes"
            return Status(Code.SUCCESS) if good else error("the wish was refused")

        patience = float(pod.labels["wish"])
        return Plan((Create(wish(pod.name)),), ready, patience, error("nobody granted the wish"))


def wishing(name: str, patience_s: float = 30.0, cpu: str = "100m") -> dict[str, Any]:
    raw = pod(name, cpu=cpu)
    raw["metadata"]["labels"] = {"wish": str(patience_s)}
    return raw


async def grant(cluster: Any, name: str, word: str) -> None:
    await until(cluster, lambda store: store.find("ConfigMap", "default", name))
    await cluster.store.do(lambda store: store.merge_patch("ConfigMap", "default", name, {"data": {"granted": word}}))


async def test_a_binding_waits_for_what_it_wrote_while_others_go_on() -> None:
    config, registry = with_plugins(Wishes)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([wishing("a"), pod("b")])
        await placed(cluster, "b")
        waiting = await cluster.store.find("Pod", "default", "a")
        assert isinstance(waiting, Pod)
        assert waiting.node_name == ""
        await grant(cluster, "a", "yes")
        assert await placed(cluster, "a") == {"a": "n1"}


class AlreadyGranted:
    """A PreBind plugin that writes an unchanged object and waits for a true condition, so that no event follows."""

    name: ClassVar = "AlreadyGranted"

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan | None:
        same = MergePatch("ConfigMap", "default", "there", {"data": {"a": "b"}})
        return Plan((same,), lambda cluster: Status(Code.SUCCESS), 30.0)


async def test_what_has_settled_before_anybody_waits_is_noticed() -> None:
    config, registry = with_plugins(AlreadyGranted)
    async with cluster_actors(config, registry=registry) as cluster:
        there = {**wish("there"), "data": {"a": "b"}}
        await cluster.store.create_many([node(), there])
        await cluster.store.create(pod("a"))
        assert await placed(cluster, "a") == {"a": "n1"}


async def test_what_is_refused_while_it_waits_takes_everything_back() -> None:
    undone.clear()
    config, registry = with_plugins(Wishes)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node(cpu="1"))
        await cluster.store.create(wishing("a", cpu="800m"))
        await grant(cluster, "a", "no")
        assert await rejected(cluster, "a") == 'running PreBind plugin "Wishes": the wish was refused'
        assert undone[0] == "a"


async def test_patience_with_a_plan_ends() -> None:
    config, registry = with_plugins(Wishes)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(wishing("a", 0.05))
        assert await rejected(cluster, "a") == 'running PreBind plugin "Wishes": nobody granted the wish'


async def test_a_write_that_is_refused_fails_the_binding() -> None:
    config, registry = with_plugins(Wishes)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create_many([node(), wish("a")])
        await cluster.store.create(wishing("a"))
        answer = await rejected(cluster, "a")
        assert answer == 'running PreBind plugin "Wishes": configmaps "a" already exists'


async def test_a_pod_that_is_gone_when_it_is_to_be_bound_leaves_nothing_behind() -> None:
    config, registry = with_plugins(Wishes)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node(cpu="1"))
        await cluster.store.create(wishing("a", cpu="800m"))
        await until(cluster, lambda store: store.find("ConfigMap", "default", "a"))
        await cluster.store.do(lambda store: store.delete("Pod", "default", "a"))
        await grant(cluster, "a", "yes")
        await cluster.store.create(pod("b", cpu="800m"))
        assert await placed(cluster, "b") == {"b": "n1"}

        def left(owner: SchedulingDriver) -> tuple[int, int]:
            return owner.machine.cluster.pod_count, len(owner.bindings.cycles)

        await comes_to(cluster.scheduler, left, (1, 0))


async def test_ending_gives_up_what_waits() -> None:
    config, registry = with_plugins(Wishes)
    with trio.fail_after(90):
        async with cluster_actors(config, registry=registry) as cluster:
            await cluster.store.create(node())
            await cluster.store.create(wishing("a", 600.0))
            await until(cluster, lambda store: store.find("ConfigMap", "default", "a"))
