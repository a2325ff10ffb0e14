"""Tests that writing Events to a real cluster delays nothing."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import wait_all_tasks_blocked

from kschedd.actors.clock import Clock
from kschedd.live.api_server import ApiServer
from kschedd.live.event_series import EventCorrelator
from kschedd.live.events import RemoteEventsActor
from kschedd.live.rate_limit import RateLimit
from kschedd.log.events import WARNING, SchedulerEvent
from tests.live.real_cluster import scheduler_of
from tests.live.scripted_server import ServedRequest, scripted
from tests.live.test_adverse_servers import kubeconfig
from tests.live.test_mirror import until
from tests.live.test_refusals import OnePod, is_held_as_bound


async def forbid(request: ServedRequest) -> None:
    await request.refuse(403, "events is forbidden")


async def break_down(request: ServedRequest) -> None:
    await request.refuse(500)


async def cut(request: ServedRequest) -> None:
    await request.stream.aclose()


async def hang(request: ServedRequest) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("answer", [forbid, break_down, cut, hang])
async def test_a_pod_is_bound_and_the_end_comes_though_no_event_is_taken(
    tmp_path: Path, answer: Callable[[ServedRequest], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedd.live.events._ENDING_S", 0.1)
    cluster, asked_for = OnePod([]), trio.Event()

    async def script(request: ServedRequest) -> None:
        if request.plural == "events":
            asked_for.set()
            await answer(request)
        else:
            await cluster.script(request)

    with trio.fail_after(90):
        async with scripted(script) as url, scheduler_of(tmp_path, int(url.rpartition(":")[2])) as scheduler:
            await until(is_held_as_bound(scheduler.cluster))
            await asked_for.wait()
    assert cluster.bound_to == ["n1"]


def event(number: int) -> SchedulerEvent:
    return SchedulerEvent(float(number), WARNING, "FailedScheduling", "default", "a", str(number), "u-a", "kschedd")


async def test_the_oldest_are_dropped_while_the_server_is_behind(tmp_path: Path) -> None:
    taken: list[str] = []
    go_on = trio.Event()

    async def script(request: ServedRequest) -> None:
        await go_on.wait()
        taken.append(request.body["note"])
        await request.answer(request.body, 201)

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        send, receive = trio.open_memory_channel[list[SchedulerEvent]](0)
        actor = RemoteEventsActor(receive, server, Clock.started(10.0), RateLimit(-1, 1), EventCorrelator("host"))
        with capture_logs() as logged:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(actor.run)
                await send.send([event(0)])
                await wait_all_tasks_blocked(0.1)
                for number in range(1, 1500, 10):
                    await send.send([event(number + more) for more in range(10)])
                go_on.set()

                async def all_are_taken() -> bool:
                    return len(taken) >= 1004

                await until(all_are_taken)
                await send.aclose()
    assert sorted(map(int, taken)) == [*range(4), *range(501, 1501)]  # the first four were sent at once
    assert [entry["event"] for entry in logged] == ["events_dropped"]


async def test_an_event_is_changed_only_after_it_was_created(tmp_path: Path) -> None:
    done: list[str] = []

    async def script(request: ServedRequest) -> None:
        if request.method == "POST":
            await trio.sleep(0.2)
        done.append(request.method)
        await request.answer(request.body, 201)

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        send, receive = trio.open_memory_channel[list[SchedulerEvent]](0)
        actor = RemoteEventsActor(receive, server, Clock.started(10.0), RateLimit(-1, 1), EventCorrelator("host"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            await send.send([event(1), event(1)])
            await send.aclose()
    assert done == ["POST", "PATCH"]


async def test_an_event_that_has_expired_there_is_created_again(tmp_path: Path) -> None:
    asked_for: list[tuple[str, int]] = []

    async def script(request: ServedRequest) -> None:
        count = request.body.get("series", {"count": 1})["count"]
        asked_for.append((request.method, count))
        if request.method == "PATCH":
            await request.refuse(404)
        else:
            await request.answer(request.body, 201)

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        send, receive = trio.open_memory_channel[list[SchedulerEvent]](0)
        actor = RemoteEventsActor(receive, server, Clock.started(10.0), RateLimit(-1, 1), EventCorrelator("host"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            await send.send([event(1), event(1), event(1)])
            await send.aclose()
    assert asked_for == [("POST", 1), ("PATCH", 2), ("POST", 2)]
