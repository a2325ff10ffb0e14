"""Events of both groups."""

from typing import Any

import pytest

from kschedd.registry.validation_events import validate_event

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
        pytest.param({**CORE, **_REPORT}, ["reportingComponent"] * 3, id="a-new-one-of-the-core-group"),
        pytest.param({**STRICT, "action": "", "reason": ""}, ["action", "reason"], id="what-and-why"),
        pytest.param({**STRICT, "reason": "x" * 129, "note": "x" * 1025}, ["reason", "message"], id="too-long"),
        pytest.param({**STRICT, "type": "Loud"}, ["type"], id="type"),
        pytest.param(
            {**STRICT, "series": {"count": 1}}, ["series.count", "series.lastObservedTime"], id="a-series-of-one"
        ),
        pytest.param({**STRICT, "eventTime": None}, ["eventTime"], id="without-a-time"),
        pytest.param({**STRICT, "deprecatedCount": 2}, ["count"], id="fields-of-old-events"),
    ],
)
def test_faults(event: dict[str, Any], wrong: list[str]) -> None:
    faults: list[Any] = []
    validate_event(event, faults)
    assert [fault.path for fault in faults] == wrong
