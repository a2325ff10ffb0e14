"""Events of both groups."""

from typing import Any

import pytest

from kschedd.registry.validation_events import validate_event, validate_event_changes, validate_updated_event

_REPORT = {
    "eventTime": "2020-01-01T00:00:01.000000Z",
    "reportingInstance": "k-0",
    "action": "Binding",
    "reason": "Scheduled",
    "type": "Normal",
}
STRICT = {
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "e", "namespace": "default"},
    "reportingController": "example.com/k",
    "regarding": {"kind": "Pod", "namespace": "default"},
    **_REPORT,
}
CORE = {
    "apiVersion": "v1",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "namespace": "default"},
}


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        pytest.param(STRICT, [], id="whole"),
        pytest.param(CORE, [], id="an-old-one-says-little"),
        pytest.param({**CORE, "involvedObject": {"kind": "Node"}}, [], id="about-a-node"),
        pytest.param({**CORE, "metadata": {"namespace": "x"}}, ["involvedObject.namespace"], id="elsewhere"),
        pytest.param(
            {**STRICT, "metadata": {"namespace": "kube-system"}, "regarding": {"kind": "Node"}},
            [],
            id="new-about-a-node",
        ),
        pytest.param(
            {**STRICT, "metadata": {"namespace": "x"}, "regarding": {}},
            ["involvedObject.namespace"],
            id="new-elsewhere",
        ),
        pytest.param({**CORE, **_REPORT}, ["reportingController"] * 3, id="a-new-one-of-the-core-group"),
        pytest.param({**STRICT, "action": "", "reason": ""}, ["action", "reason"], id="what-and-why"),
        pytest.param({**STRICT, "reason": "x" * 129, "note": "x" * 1025}, ["reason", "message"], id="too-long"),
        pytest.param({**STRICT, "type": "Loud"}, ["type"], id="type"),
        pytest.param(
            {**STRICT, "series": {"count": 1}}, ["series.count", "series.lastObservedTime"], id="a-series-of-one"
        ),
        pytest.param({**STRICT, "eventTime": None}, ["eventTime"], id="without-a-time"),
        pytest.param({**STRICT, "deprecatedCount": 2}, ["count"], id="fields-of-old-events"),
        pytest.param({**STRICT, "deprecatedSource": {"component": ""}}, [], id="a-source-that-says-nothing"),
    ],
)
def test_faults(event: dict[str, Any], wrong: list[str]) -> None:
    faults: list[Any] = []
    validate_event(event, faults)
    assert [fault.path for fault in faults] == wrong


@pytest.mark.parametrize(
    ("old", "changes", "wrong"),
    [
        pytest.param(STRICT, {}, [], id="nothing-changes"),
        pytest.param({**CORE, "reason": "r"}, {"reason": "r"}, [], id="an-old-one-as-one-of-the-new-group"),
        pytest.param(
            STRICT,
            {"reason": "Other", "note": "n", "deprecatedCount": 2},
            [
                'reason: Invalid value: "Other": field is immutable',
                'message: Invalid value: "n": field is immutable',
                "count: Invalid value: 2: field is immutable",
                'reason: Invalid value: "Other": field is immutable',
            ],
            id="what-was-reported",
        ),
        pytest.param(
            STRICT,
            {"deprecatedSource": {"host": "a"}, "reportingController": "k"},
            [
                'source: Invalid value: {"Component":"","Host":"a"}: field is immutable',
                'reportingController: Invalid value: "k": field is immutable',
            ],
            id="who-reported-it",
        ),
        pytest.param(
            STRICT,
            {"related": {"kind": "Node", "uid": "u"}},
            [
                'related: Invalid value: {"Kind":"Node","Namespace":"","Name":"","UID":"u","APIVersion":"",'
                '"ResourceVersion":"","FieldPath":""}: field is immutable'
            ],
            id="what-it-is-about",
        ),
        pytest.param(
            STRICT,
            {"series": {"count": 1}},
            [
                'series.count: Invalid value: "": should be at least 2',
                "series.lastObservedTime: Required value",
            ],
            id="a-new-series",
        ),
        pytest.param({**STRICT, "series": {"count": 1}}, {"series": {"count": 1}}, [], id="a-series-that-was-so"),
    ],
)
def test_an_update_in_the_group_of_events(old: dict[str, Any], changes: dict[str, Any], wrong: list[str]) -> None:
    faults: list[Any] = []
    base = old if old["apiVersion"] != "v1" else {"regarding": old["involvedObject"], "metadata": old["metadata"]}
    new = {**base, **changes, "apiVersion": STRICT["apiVersion"]}
    validate_event_changes(old, new, faults)
    validate_updated_event(new, faults)
    assert [str(fault) for fault in faults] == wrong


def test_an_update_in_the_core_group_may_change_anything() -> None:
    faults: list[Any] = []
    validate_event_changes(STRICT, {**CORE, "reason": "Other", "series": {"count": 1}}, faults)
    assert faults == []
