"""Tests of plugins with threads that use the handle at any time."""

import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar

import pytest
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.daemon import cluster_actors
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.guard import PluginGuard
from kschedd.framework.guarding.views import HandleView
from kschedd.framework.handle import Handle
from kschedd.framework.status import Code, Status
from kschedd.recording.wiring import RecordOptions
from tests.actors.clusters import comes_to, node, placed, pod, rejected, with_plugins
from tests.simulation.replay.test_replay import replayed

Task = Callable[["Threaded"], object]


class Threaded:
    """A plugin that makes every pod wait at Permit; its threads execute the functions that they receive."""

    name: ClassVar = "Threaded"
    tasks: ClassVar[SimpleQueue[Task | None]]
    faults: ClassVar[list[BaseException]]

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        for _ in range(4):
            threading.Thread(target=self._work, args=(self.tasks, self.faults), daemon=True).start()

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "Threaded":
        return cls(handle)

    def permit(self, state: Any, pod: Pod, node_name: str) -> tuple[Status, float]:
        return Status(Code.WAIT), 600.0

    def _work(self, tasks: "SimpleQueue[Task | None]", faults: list[BaseException]) -> None:
        while (task := tasks.get()) is not None:
            try:
                task(self)
            except BaseException as fault:  # looked at in the end
                faults.append(fault)
        tasks.put(None)  # for the next one


@pytest.fixture
def tasks() -> Any:
    Threaded.tasks, Threaded.faults = SimpleQueue(), []
    yield Threaded.tasks
    Threaded.tasks.put(None)
    assert Threaded.faults == []


def waits(plugin: Threaded, name: str) -> str:
    [uid] = [waiting.uid for waiting, _ in plugin.handle.waiting_pods() if waiting.name == name]
    return uid


def allows(name: str) -> Task:
    return lambda plugin: plugin.handle.allow(waits(plugin, name), plugin.name)


def rejects(name: str) -> Task:
    return lambda plugin: plugin.handle.reject(waits(plugin, name), plugin.name, "no more of these")


async def _wait(cluster: LiveCluster, count: int) -> None:
    await comes_to(cluster.scheduler, lambda driver: len(driver.bindings.permit_waits), count)


async def test_a_thread_allows_a_pod_while_nothing_else_happens(tasks: SimpleQueue[Task | None]) -> None:
    config, registry = with_plugins(Threaded)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(pod("web"))
        await _wait(cluster, 1)
        tasks.put(allows("web"))
        assert await placed(cluster, "web") == {"web": "n1"}


async def test_a_thread_rejects_one(tasks: SimpleQueue[Task | None]) -> None:
    config, registry = with_plugins(Threaded)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(pod("web"))
        await _wait(cluster, 1)
        tasks.put(rejects("web"))
        assert await rejected(cluster, "web", "no more") == "0/1 nodes are available: 1 no more of these."


async def test_many_threads_at_once_lose_no_pod_and_a_recording_has_what_they_did(
    tasks: SimpleQueue[Task | None], tmp_path: Path
) -> None:
    config, registry = with_plugins(Threaded)
    first, second = [f"a{number}" for number in range(40)], [f"b{number}" for number in range(40)]
    async with cluster_actors(config, registry=registry, record=RecordOptions(tmp_path / "r")) as cluster:
        await cluster.store.create(node(cpu="100"))
        await cluster.store.create_many([pod(name) for name in first])
        await _wait(cluster, len(first))
        for name in first:
            tasks.put(allows(name))
        await cluster.store.create_many([pod(name) for name in second])  # attempted meanwhile
        await placed(cluster, *first)
        await _wait(cluster, len(second))
        for name in second:
            tasks.put(allows(name))
        await placed(cluster, *second)
        await _wait(cluster, 0)
    log, player = replayed(tmp_path / "r")
    assert player.ended
    assert log.count('"node":"n1"') == len(first) + len(second)


async def test_what_a_thread_does_after_the_end_concerns_nobody(tasks: SimpleQueue[Task | None]) -> None:
    config, registry = with_plugins(Threaded)
    done = threading.Event()

    def late(plugin: Threaded) -> None:
        assert not plugin.handle.allow("of nobody", plugin.name)
        plugin.handle.activate([])
        done.set()

    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
    tasks.put(late)
    assert await trio.to_thread.run_sync(done.wait, 30)


def test_a_call_that_was_given_up_takes_the_lock_itself() -> None:
    """The caller, which held the lock for the call, has released it."""
    driver_is_used = SchedulerLock()
    held: list[bool] = []

    def allow(uid: str, plugin: str) -> bool:
        other = threading.Thread(target=lambda: held.append(not driver_is_used._lock.acquire(blocking=False)))
        other.start()
        other.join()
        return True

    let_go, done = threading.Event(), threading.Event()
    handle: Any = HandleView(Handle(None, allow=allow, lock=driver_is_used))

    def work() -> None:
        let_go.wait()
        handle.allow("uid", "Late")
        done.set()

    guard = PluginGuard("Late", limit_s=0.01)
    with pytest.raises(Exception, match="did not return"), driver_is_used.held():
        guard.call("filter", work)
    let_go.set()
    assert done.wait(30)
    assert held == [True]
