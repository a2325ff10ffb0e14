"""Tests of which Events are written."""

from typing import Any

import attrs

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.live.event_series import EventCorrelator
from kschedd.log.events import NORMAL, WARNING, SchedulerEvent

Raw = dict[str, Any]

FAILED = SchedulerEvent(1000.5, WARNING, "FailedScheduling", "default", "a", "0/1 nodes", "u-a", "kschedd")


def preemptor() -> Pod:
    meta = {"name": "great", "namespace": "default", "uid": "u-great"}
    found = parse({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}})
    assert isinstance(found, Pod)
    return found


def test_the_first_is_created() -> None:
    written = EventCorrelator("host").take(FAILED)
    assert written is not None
    event = written.request.body
    assert (written.request.method, written.request.path) == ("POST", "apis/events.k8s.io/v1/namespaces/default/events")
    assert event["metadata"]["name"].startswith("a.")
    assert event["eventTime"] == "1970-01-01T00:16:40.500000Z"
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "a",
        "uid": "u-a",
    }
    answer = ("reportingController", "reportingInstance", "action", "reason", "type", "note")
    assert [event[field] for field in answer] == [
        "kschedd",
        "kschedd-host",
        "Scheduling",
        "FailedScheduling",
        "Warning",
        "0/1 nodes",
    ]


def test_the_second_makes_a_series_and_further_ones_are_counted() -> None:
    correlator = EventCorrelator("host")
    first = correlator.take(FAILED)
    second = correlator.take(attrs.evolve(FAILED, at_s=1010.0))
    assert first is not None
    assert second is not None
    assert second.request.method == "PATCH"
    assert second.request.path.endswith("/" + first.request.body["metadata"]["name"])
    assert second.request.body["series"]["count"] == 2
    assert second.anew is not None
    assert second.anew.body == {**first.request.body, **second.request.body}
    assert correlator.take(attrs.evolve(FAILED, at_s=1020.0)) is None
    assert correlator.sweep(1030.0) == []
    (ended,) = correlator.sweep(1500.0)
    assert ended.request.body["series"] == {"count": 3, "lastObservedTime": "1970-01-01T00:17:00.000000Z"}
    anew = correlator.take(attrs.evolve(FAILED, at_s=2000.0))
    assert anew is not None
    assert anew.request.method == "POST"


def test_another_message_is_another_event() -> None:
    correlator = EventCorrelator("host")
    correlator.take(FAILED)
    other = correlator.take(attrs.evolve(FAILED, message="0/2 nodes"))
    assert other is not None
    assert other.request.method == "POST"


def test_a_victim_is_reported_with_its_preemptor() -> None:
    event = SchedulerEvent(1.0, NORMAL, "Preempted", "default", "a", "by", "u-a", "kschedd", preemptor())
    written = EventCorrelator("host").take(event)
    assert written is not None
    assert written.request.body["related"]["uid"] == "u-great"
    assert written.request.body["action"] == "Preempting"


def test_names_of_events_are_none_that_a_server_refuses() -> None:
    correlator = EventCorrelator("h" * 300)
    names = set()
    for number in range(3):
        written = correlator.take(attrs.evolve(FAILED, name="a" * 235 + ".-" + "b" * 16, message=str(number)))
        assert written is not None
        names.add(written.request.body["metadata"]["name"])
        assert len(written.request.body["reportingInstance"]) == 128
    assert len(names) == 3, "of one moment too"
    assert all(len(name) <= 253 and ".-" not in name and "-." not in name for name in names)
