"""QoS classes equal those in upstream's test table."""

from typing import Any

import pytest

from kschedd.api.qos import qos_of_spec


def both(**amounts: str) -> dict[str, Any]:
    return {"resources": {"requests": amounts, "limits": amounts}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{}]}, "BestEffort", id="nothing-asked"),
        pytest.param({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}, "BestEffort", id="zero-is-nothing"),
        pytest.param({"containers": [both(cpu="1", memory="1Gi")]}, "Guaranteed", id="limits-equal-requests"),
        pytest.param({"containers": [both(cpu="1")]}, "Burstable", id="memory-is-not-limited"),
        pytest.param({"containers": [both(cpu="1", memory="1Gi"), {}]}, "Burstable", id="one-container-without"),
        pytest.param(
            {"containers": [both(cpu="1", memory="1Gi")], "initContainers": [{}]}, "Burstable", id="init-counts"
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}}]},
            "Burstable",
            id="requests-below-limits",
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"example.com/gpu": "1"}}}]}, "BestEffort", id="devices-do-not"
        ),
        pytest.param({"containers": [{}], **both(cpu="1", memory="1Gi")}, "Guaranteed", id="the-pod-as-a-whole"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1000m"}, "limits": {"cpu": "1"}}}]},
            "Burstable",
            id="spelling-does-not-matter-but-memory-does",
        ),
    ],
)
def test_classes(spec: dict[str, Any], expected: str) -> None:
    assert qos_of_spec(spec) == expected
