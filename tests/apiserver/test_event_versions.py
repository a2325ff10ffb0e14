"""Tests that Events of the core group and of events.k8s.io are the same objects with different field names."""

import pytest

from tests.apiserver.asking import asking

CORE = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    "reason": "Scheduled",
    "message": "m",
    "type": "Normal",
}


@pytest.mark.parametrize(
    ("path", "selector", "found"),
    [
        pytest.param(CORE, "involvedObject.name=p", 1, id="core-by-involved-object"),
        pytest.param(EVENTS, "regarding.name=p,reason=Scheduled", 1, id="events-by-regarding"),
        pytest.param(EVENTS, "regarding.name=q", 0, id="events-of-another-object"),
        pytest.param(EVENTS, "involvedObject.name=p", None, id="events-do-not-have-core-fields"),
        pytest.param(CORE, "regarding.name=p", None, id="core-does-not-have-fields-of-events"),
    ],
)
async def test_each_group_selects_by_its_own_fields(path: str, selector: str, found: int | None) -> None:
    async with asking() as api:
        await api.create(CORE, EVENT)
        answered = await api.ask("GET", f"{path}?fieldSelector={selector}")
    if found is None:
        assert answered.status == 400
        assert "field label not supported" in answered.json["message"]
    else:
        assert len(answered.json["items"]) == found


async def test_an_event_of_nobody_in_particular_has_no_reporting_controller_in_events() -> None:
    async with asking() as api:
        await api.create(CORE, EVENT)
        shown = await api.get(f"{EVENTS}/e")
        core = await api.get(f"{CORE}/e")
    assert "reportingController" not in shown
    assert core["reportingComponent"] == ""


async def test_a_watch_of_events_selects_as_a_list_does() -> None:
    async with asking() as api:
        watch = await api.watch(f"{EVENTS}?watch=true&fieldSelector=regarding.name%3Dp")
        await api.create(CORE, {**EVENT, "metadata": {"name": "other"}, "involvedObject": {"name": "q"}})
        await api.create(CORE, EVENT)
        event = await watch.event()
    assert event["object"]["metadata"]["name"] == "e"
    assert event["object"]["regarding"]["name"] == "p"
