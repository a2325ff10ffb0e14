"""Tests of pods that wait at Permit in a daemon: allowed, rejected and timed out."""

from typing import Any, ClassVar

import pytest
import trio
import trio.testing

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.actors.mailbox import Doorbell
from kschedd.actors.scheduler.permit import Expired, PermitWaiter
from kschedd.api.pods import Pod
from kschedd.daemon import cluster_actors
from kschedd.framework.handle import Handle
from kschedd.framework.status import Code, Status
from kschedd.scheduling.binding.waiting import WaitingPod
from kschedd.scheduling.driver import SchedulingDriver
from tests.actors.clusters import comes_to, node, placed, pod, rejected, until, with_plugins

WAIT = Status(Code.WAIT)
undone: list[str] = []


class Hold:
    """A plugin that lets every pod wait at Permit for the seconds in its label `hold`."""

    name: ClassVar = "Hold"

    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        return None

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        undone.append(f"{self.name} {pod.name}")

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return (WAIT, float(pod.labels["hold"])) if "hold" in pod.labels else None


class HoldToo(Hold):
    name: ClassVar = "HoldToo"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return (WAIT, 30.0) if "hold" in pod.labels else None


class Gang:
    """A plugin that allows the pods of a group of three together."""

    name: ClassVar = "Gang"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "Gang":
        return cls(handle)

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        group = pod.labels.get("group")
        if group is None:
            return None
        others = [other for other, _ in self.handle.waiting_pods() if other.labels.get("group") == group]
        if len(others) < 2:
            return WAIT, 30.0
        for other in others:
            self.handle.allow(other.uid, self.name)
        return None


def held(name: str, seconds: float = 30.0, cpu: str = "100m") -> dict[str, Any]:
    raw = pod(name, cpu=cpu)
    raw["metadata"]["labels"] = {"hold": str(seconds)}
    return raw


async def waits(cluster: LiveCluster, *names: str) -> dict[str, list[str]]:
    """Wait until these pods wait at Permit; return the plugins."""

    def plugins(owner: SchedulingDriver) -> dict[str, list[str]]:
        return {waiting.pod.name: sorted(waiting.pending) for waiting in owner.machine.waiting.pods.values()}

    await comes_to(cluster.scheduler, lambda owner: set(plugins(owner)), set(names))
    return await cluster.scheduler.query(plugins)


@pytest.fixture(autouse=True)
def _nothing_undone() -> None:
    undone.clear()


async def test_a_waiting_pod_goes_on_when_every_plugin_has_let_go() -> None:
    config, registry = with_plugins(Hold, HoldToo)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(held("a"))
        assert await waits(cluster, "a") == {"a": ["Hold", "HoldToo"]}

        def allow(plugin: str) -> Any:
            def let_go(owner: SchedulingDriver) -> bool:
                [waiting] = owner.machine.waiting.pods.values()
                waiting.allow(plugin)
                return waiting.decided

            return let_go

        assert not await cluster.scheduler.query(allow("Hold"))
        await cluster.store.create(pod("b"))  # others go on meanwhile
        await placed(cluster, "b")
        assert await waits(cluster, "a") == {"a": ["HoldToo"]}
        assert await cluster.scheduler.query(allow("HoldToo"))
        assert await placed(cluster, "a") == {"a": "n1"}
        assert undone == []


async def test_patience_that_ends_rejects_the_pod_and_unreserves_the_last_plugin_first() -> None:
    config, registry = with_plugins(Hold, HoldToo)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(held("a", 0.05))
        message = await rejected(cluster, "a")
        assert "rejected due to timeout after waiting 50ms at plugin Hold" in message
        assert undone[:2] == ["HoldToo a", "Hold a"]

        def assumed(owner: SchedulingDriver) -> int:
            return owner.machine.cluster.pod_count

        assert await cluster.scheduler.query(assumed) == 0


async def test_a_waiter_rings_at_the_deadline_and_again_at_a_later_one(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    clock = Clock.started(100.0)
    later, later_in = trio.open_memory_channel[float](1)
    expired, expired_in = trio.open_memory_channel[Expired](1)
    bell = Doorbell()
    nursery.start_soon(PermitWaiter("uid", 105.0, clock, later_in, expired, bell).run)
    assert await expired_in.receive() == Expired("uid")
    assert clock.now() == 105.0
    await bell.wait()
    later.send_nowait(109.0)  # the plugin with this timeout has allowed the pod, and another plugin has a later one
    await expired_in.receive()
    assert clock.now() == 109.0
    later.close()


async def test_a_plugin_that_let_go_no_longer_limits_the_wait() -> None:
    waiting = WaitingPod(Pod.from_raw(pod()), "n1", {"Hold": 1.0, "HoldToo": 30.0}, {"Hold": 1.0, "HoldToo": 30.0})
    waiting.allow("Hold")
    waiting.expire(2.0)
    assert not waiting.decided
    assert waiting.deadline == 30.0


async def test_a_rejected_pod_leaves_its_room_to_others() -> None:
    config, registry = with_plugins(Hold)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node(cpu="1"))
        await cluster.store.create(held("a", cpu="800m"))
        await waits(cluster, "a")
        await cluster.store.create(pod("b", cpu="800m"))
        await rejected(cluster, "b")

        def reject(owner: SchedulingDriver) -> None:
            [waiting] = owner.machine.waiting.pods.values()
            waiting.reject("Hold", "not today")

        await cluster.scheduler.query(reject)
        assert await rejected(cluster, "a") == "0/1 nodes are available: 1 not today."
        assert await placed(cluster, "b") == {"b": "n1"}


async def test_a_waiting_pod_that_is_deleted_waits_no_more() -> None:
    config, registry = with_plugins(Hold)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node(cpu="1"))
        await cluster.store.create(held("a", cpu="800m"))
        await waits(cluster, "a")
        await cluster.store.do(lambda store: store.delete("Pod", "default", "a"))
        await cluster.store.create(pod("b", cpu="800m"))
        assert await placed(cluster, "b") == {"b": "n1"}
        assert await waits(cluster) == {}


async def test_a_gang_goes_together_or_not_at_all() -> None:
    config, registry = with_plugins(Gang)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        for name in ("a", "b"):
            await cluster.store.create(with_group(name))
        await waits(cluster, "a", "b")
        bound = await cluster.store.do(lambda store: len(store.pods_on("n1")))
        assert bound == 0
        await cluster.store.create(with_group("c"))
        assert set((await placed(cluster, "a", "b", "c")).values()) == {"n1"}


async def test_ending_does_not_wait_for_those_who_wait() -> None:
    config, registry = with_plugins(Hold)
    with trio.fail_after(90):
        async with cluster_actors(config, registry=registry) as cluster:
            await cluster.store.create(node())
            await cluster.store.create(held("a", 600.0))
            await waits(cluster, "a")
            await until(cluster, lambda store: store.count("Pod") == 1)


def with_group(name: str) -> dict[str, Any]:
    raw = pod(name)
    raw["metadata"]["labels"] = {"group": "g"}
    return raw
