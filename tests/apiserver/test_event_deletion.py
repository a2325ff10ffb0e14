"""Tests that clients can delete Events that exist only in memory: by name, and as a collection."""

from typing import Any

import trio

from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.controllers.embedded import embedded_controllers
from tests.apiserver.asking import PODS, Asker, asking, node, pod

EVENTS = "/api/v1/namespaces/default/events"


async def started(api: Asker) -> None:
    """Run pod `a` on a node; pod `b` is too large for it."""
    await api.cluster.store.do(lambda store: store.simulate_pods(PodBehavior()))
    await api.create("/api/v1/nodes", node("n1"))
    await api.create(PODS, pod("a"))
    large = pod("b")
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    await api.create(PODS, large)
    await trio.sleep(5)


async def reasons(api: Asker) -> set[tuple[str, str]]:
    listed = (await api.get(EVENTS))["items"]
    return {(each["involvedObject"]["name"], each["reason"]) for each in listed}


async def test_each_event_can_be_deleted_by_its_name(autojump_clock: Any) -> None:
    async with asking(controllers=embedded_controllers(), scheduler=True) as api:
        await started(api)
        assert {("a", "Scheduled"), ("a", "Started"), ("b", "FailedScheduling")} <= await reasons(api)
        names = [each["metadata"]["name"] for each in (await api.get(EVENTS))["items"]]
        for name in names:
            tried = await api.ask("DELETE", f"{EVENTS}/{name}?dryRun=All")
            assert tried.status == 200
            assert (await api.get(f"{EVENTS}/{name}"))["metadata"]["name"] == name
            assert (await api.ask("DELETE", f"{EVENTS}/{name}")).json["status"] == "Success"
            assert (await api.ask("GET", f"{EVENTS}/{name}")).status == 404
            assert (await api.ask("DELETE", f"{EVENTS}/{name}")).status == 404
        assert await reasons(api) == set()


async def test_a_collection_is_deleted_by_its_selectors(autojump_clock: Any) -> None:
    async with asking(controllers=embedded_controllers(), scheduler=True) as api:
        await started(api)
        only = f"{EVENTS}?fieldSelector=involvedObject.name%3Da"
        assert (await api.ask("DELETE", f"{only}&dryRun=All")).status == 200
        assert ("a", "Started") in await reasons(api)
        deleted = (await api.ask("DELETE", only)).json["items"]
        assert {each["involvedObject"]["name"] for each in deleted} == {"a"}
        assert {name for name, _ in await reasons(api)} == {"b"}
        await api.ask("DELETE", EVENTS)
        assert await reasons(api) == set()


async def test_an_event_that_occurs_again_is_another_event(autojump_clock: Any) -> None:
    async with asking(controllers=embedded_controllers(), scheduler=True) as api:
        await started(api)
        [before] = [each for each in (await api.get(EVENTS))["items"] if each["reason"] == "FailedScheduling"]
        await api.ask("DELETE", EVENTS)
        await trio.sleep(400)  # unschedulable pods are retried after five minutes
        [after] = [each for each in (await api.get(EVENTS))["items"] if each["reason"] == "FailedScheduling"]
        assert after["message"] == before["message"]
        assert after["metadata"]["name"] != before["metadata"]["name"]
