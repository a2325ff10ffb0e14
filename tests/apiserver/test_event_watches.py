"""Tests of watches of Events, which also send those that are not stored: of the scheduler and of kubelets."""

from typing import Any

import pytest
import trio

from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.controllers.kubelets.kubelets import Kubelets
from tests.apiserver.asking import MERGE, PODS, asking, node, pod

EVENTS = "/api/v1/namespaces/default/events"
STARTED = [("ADDED", reason) for reason in ("Pulling", "Pulled", "Created", "Started")]


async def changes(*, simulated: bool = True, query: str = "") -> list[dict[str, Any]]:
    """Return the changes of Events while a pod is scheduled, started and deleted, and another one is unschedulable."""
    async with asking(scheduler=True, controllers=[Kubelets()]) as api:
        await api.cluster.store.do(lambda store: store.simulate_pods(PodBehavior() if simulated else None))
        await api.create("/api/v1/nodes", node("n1"))
        version = (await api.get(EVENTS))["metadata"]["resourceVersion"]
        watch = await api.watch(f"{EVENTS}?watch=true&resourceVersion={version}&timeoutSeconds=5{query}")
        await api.create(PODS, pod("web"))
        large = pod("large")
        large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "99"}}
        await api.create(PODS, large)
        await trio.sleep(1)
        await api.ask("PATCH", f"{PODS}/web", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
        await api.ask("DELETE", f"{PODS}/web")
        return await watch.rest()


def reasons(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["reason"]) for event in events]


async def test_a_watch_sends_the_events_of_scheduler_and_kubelets(autojump_clock: Any) -> None:
    events = await changes()
    about = [event for event in events if event["object"]["involvedObject"]["name"] == "web"]
    assert sorted(reasons(about)) == sorted([("ADDED", "Scheduled"), *STARTED, ("ADDED", "Killing")])
    assert [each for each in reasons(about) if each in STARTED] == STARTED, "in order, and only once"
    assert ("ADDED", "FailedScheduling") in reasons(events)
    for event in events:
        assert int(event["object"]["metadata"]["resourceVersion"]) > 0, "a client resumes its watch from there"
        assert event["object"]["involvedObject"]["uid"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("reason=Started", [("ADDED", "Started")], id="kubelets"),
        pytest.param("reason=Scheduled", [("ADDED", "Scheduled")], id="scheduler"),
    ],
)
async def test_selectors_apply(selector: str, expected: list[tuple[str, str]], autojump_clock: Any) -> None:
    assert reasons(await changes(query=f"&fieldSelector={selector}")) == expected


async def test_pods_that_are_not_simulated_have_no_events_of_kubelets(autojump_clock: Any) -> None:
    assert {reason for _, reason in reasons(await changes(simulated=False))} == {"Scheduled", "FailedScheduling"}
