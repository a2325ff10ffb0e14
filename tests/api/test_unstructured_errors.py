"""Tests of the errors for merged objects that cannot be decoded."""

from typing import Any

import pytest

from kschedd.api.schemas.unstructured_errors import conversion_error


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


CONTAINER = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(pod(containers=[CONTAINER], priority=1.0), "", id="a-float-without-fraction"),
        pytest.param({"kind": "Other", "apiVersion": "x.y/v1", "spec": 5}, "", id="a-kind-without-a-type"),
        pytest.param(pod(containers="x"), "cannot restore slice from string", id="list-text"),
        pytest.param(pod(containers=5), "cannot restore slice from int64", id="list-number"),
        pytest.param(pod(containers={"name": "c"}), "cannot restore slice from map", id="list-map"),
        pytest.param(pod(containers=["x"]), "cannot restore struct from: string", id="item"),
        pytest.param(pod(nodeSelector=[]), "cannot restore map from slice", id="map-list"),
        pytest.param(pod(nodeSelector={"a": 5}), "cannot convert int64 to string", id="text-number"),
        pytest.param(pod(restartPolicy=5), "cannot convert int64 to v1.RestartPolicy", id="named-text"),
        pytest.param(pod(nodeName=True), "unrecognized type: string", id="text-flag"),
        pytest.param(pod(nodeName=1.5), "unrecognized type: string", id="text-float"),
        pytest.param(pod(nodeName={}), "unrecognized type: string", id="text-map"),
        pytest.param(pod(hostNetwork="yes"), "unrecognized type: bool", id="flag-text"),
        pytest.param(pod(hostNetwork=1), "unrecognized type: bool", id="flag-number"),
        pytest.param(pod(priority="5"), "unrecognized type: int32", id="number-text"),
        pytest.param(pod(priority=1.5), "cannot convert float64 to int32", id="number-fraction"),
        pytest.param(pod(activeDeadlineSeconds=[1]), "unrecognized type: int64", id="number-list"),
        pytest.param(pod(overhead={"cpu": "1KK"}), "unable to parse quantity's suffix", id="quantity"),
        pytest.param(
            {**pod(), "metadata": {"name": "p", "creationTimestamp": 5}},
            "json: cannot unmarshal number into Go value of type string",
            id="time-number",
        ),
        pytest.param(
            pod(containers=[{**CONTAINER, "readinessProbe": {"httpGet": {"port": True}}}]),
            "json: cannot unmarshal bool into Go value of type int32",
            id="integer-or-text",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "?"}},
            "error decoding from json: illegal base64 data at input byte 0",
            id="bytes",
        ),
        pytest.param(pod(hostNetwork="x", containers="x"), "cannot restore slice from string", id="order-of-the-type"),
    ],
)
def test_the_first_fault(raw: dict[str, Any], why: str) -> None:
    assert conversion_error(raw) == why
