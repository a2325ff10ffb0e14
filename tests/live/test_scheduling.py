"""Tests that the pods of a real cluster are scheduled: here of a cluster of kschedd served over HTTP."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from kschedd.live.rate_limit import RateLimit
from kschedd.live.writer import RemoteWriter, Written
from kschedd.store.errors import Mirrored
from kschedd.store.writes import Delete, Write
from tests.apiserver.asking import node, pod
from tests.live.real_cluster import Real, bound, real_cluster, scheduler_of
from tests.live.test_mirror import runs, until

Raw = dict[str, Any]


def large(name: str, cpu: str, priority: int | None = None) -> Raw:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    if priority is not None:
        made["spec"]["priorityClassName"] = f"p{priority}"
    return made


def priority_class(value: int) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"p{value}"},
        "value": value,
    }


async def reported(real: Real, reason: str, name: str) -> Raw:
    """Wait for an Event with this reason about this pod in the real cluster, and return it."""
    found: list[Raw] = []

    async def is_there() -> bool:
        found[:] = [
            event for event in await real.events() if event["reason"] == reason and event["regarding"]["name"] == name
        ]
        return bool(found)

    await until(is_there)
    return found[0]


async def condition(real: Real, name: str, sort: str) -> Raw | None:
    conditions = (await real.pod(name)).status.get("conditions") or ()
    return next((dict(each) for each in conditions if each["type"] == sort), None)


async def test_a_pod_is_bound_there_and_runs(tmp_path: Path) -> None:
    async with real_cluster() as real:
        await real.cluster.store.create(pod("before"))
        async with scheduler_of(tmp_path, real.port) as scheduler:
            await real.cluster.store.create(pod("after"))
            await bound(real, "before", "after")
            await until(lambda: runs(scheduler.cluster, "after"))
            event = await reported(real, "Scheduled", "after")
            assert event["note"] == "Successfully assigned default/after to n1"
            assert event["reportingController"] == "default-scheduler"
            with pytest.raises(Mirrored):
                await scheduler.cluster.store.create(pod("mine"))


async def test_pods_of_other_schedulers_are_left_to_them(tmp_path: Path) -> None:
    other = pod("other")
    other["spec"]["schedulerName"] = "volcano"
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        await real.cluster.store.create(other)
        await real.cluster.store.create(pod("own"))
        await bound(real, "own")
        assert not await real.is_bound("other")


async def test_what_fits_nowhere_is_told_there(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port) as scheduler:
        await real.cluster.store.create(large("a", "1000"))
        event = await reported(real, "FailedScheduling", "a")
        assert event["note"].startswith("0/1 nodes are available: 1 Insufficient cpu.")

        async def is_told() -> bool:  # by a request of its own, apart from the event
            notices = await condition(real, "a", "PodScheduled")
            return notices is not None and (notices["status"], notices["reason"]) == ("False", "Unschedulable")

        await until(is_told)
        held = await scheduler.cluster.store.get("Pod", "default", "a")
        assert not held.metadata.get("annotations"), "what this scheduler says is not kept as another's"
        await real.cluster.store.create(node("n2"))
        await real.cluster.store.patch(
            "Node", "", "n2", {"status": {"allocatable": {"cpu": "2000"}}}, subresource="status"
        )
        await bound(real, "a")


async def test_conditions_of_others_stay(tmp_path: Path) -> None:
    other = {"type": "example.com/ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
    async with real_cluster() as real:
        await real.cluster.store.create(large("a", "1000"))
        await real.cluster.store.patch("Pod", "default", "a", {"status": {"conditions": [other]}}, subresource="status")
        async with scheduler_of(tmp_path, real.port):
            await reported(real, "FailedScheduling", "a")

            async def is_told() -> bool:
                return await condition(real, "a", "PodScheduled") is not None

            await until(is_told)
            assert await condition(real, "a", "example.com/ready") is not None


async def test_a_victim_is_deleted_there(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for value in (1, 1000):
            await real.cluster.store.create(priority_class(value))
        small = large("small", "6", 1)
        small["spec"]["terminationGracePeriodSeconds"] = 0
        await real.cluster.store.create(small)
        await until(lambda: runs(real.cluster, "small"))
        await real.cluster.store.create(large("great", "6", 1000))
        event = await reported(real, "Preempted", "small")
        assert event["related"]["name"] == "great"
        await bound(real, "great")
        assert await real.cluster.store.find("Pod", "default", "small") is None


async def test_a_preemptor_waits_until_a_slow_server_has_evicted_its_victims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    write = RemoteWriter.write

    async def slow(writer: RemoteWriter, wanted: Write, written: Written) -> None:
        if isinstance(wanted, Delete):
            deleted.append(wanted.name)
            await trio.sleep(0.4 * len(deleted))  # the victims disappear one after the other
        await write(writer, wanted, written)

    monkeypatch.setattr(RemoteWriter, "write", slow)
    names = [f"small-{number}" for number in range(8)]
    async with real_cluster() as real, scheduler_of(tmp_path, real.port) as scheduler:
        for value in (1, 1000):
            await real.cluster.store.create(priority_class(value))
        for name in names:
            small = large(name, "1", 1)
            small["spec"]["terminationGracePeriodSeconds"] = 0
            await real.cluster.store.create(small)
        for name in names:
            await until(partial(runs, real.cluster, name))
        await real.cluster.store.create(large("great", "6", 1000))
        await bound(real, "great")
        decisions = await scheduler.cluster.log.query(lambda log: [one.pod for one in log.attempts()])
    assert len(deleted) == len(set(deleted)) == 6
    assert decisions.count("default/great") == 2, "one attempt that preempts, and one that places the pod"


async def test_victims_are_evicted_while_bindings_are_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let each binding wait for the eviction: as many bindings as there may be requests at the same time."""
    evicted = trio.Event()
    ask = ApiServer.ask

    async def late(server: ApiServer, request: ServerRequest, pace: RateLimit | None = None) -> Raw:
        if request.path.endswith("/binding") and "/waiting-" in request.path:
            await evicted.wait()
        answer = await ask(server, request, pace)
        if request.method == "DELETE":
            evicted.set()
        return answer

    monkeypatch.setattr(ApiServer, "ask", late)
    names = [f"waiting-{number}" for number in range(40)]
    async with real_cluster() as real, scheduler_of(tmp_path, real.port) as scheduler:
        for value in (1, 1000):
            await real.cluster.store.create(priority_class(value))
        small = large("small", "6", 1)
        small["spec"]["terminationGracePeriodSeconds"] = 0
        await real.cluster.store.create(small)
        await until(lambda: runs(real.cluster, "small"))
        await real.cluster.store.create_many([large(name, "1m") for name in names])

        async def all_are_on_the_way() -> bool:
            return await scheduler.cluster.scheduler.query(lambda driver: len(driver.bindings.cycles)) == len(names)

        await until(all_are_on_the_way)
        await real.cluster.store.create(large("great", "6", 1000))
        await bound(real, "great", *names)
    assert evicted.is_set()


async def test_many_pods_are_bound_once_each(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(60)]
    async with real_cluster() as real, scheduler_of(tmp_path, real.port) as scheduler:
        for name in names:
            await real.cluster.store.create(pod(name))
        await bound(real, *names)
        failed = await scheduler.cluster.log.query(lambda log: log.failed)
        assert not failed


async def test_a_server_that_is_away_for_a_while_is_scheduled_again(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port) as scheduler:
        await real.cluster.store.create(pod("a"))
        await bound(real, "a")
        real.stop.set()

        async def lost() -> bool:
            return scheduler.mirror.describe().unreachable is not None

        await until(lost)
        async with real_cluster(real.port) as other:
            await other.cluster.store.create(pod("b"))
            await bound(other, "b")
