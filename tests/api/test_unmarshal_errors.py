"""Tests of Go's errors for values of a wrong type; recorded cases are in tests/apiserver/test_recorded.py."""

from typing import Any

import pytest

from kschedd.api.schemas.unmarshal_errors import unmarshal_error
from kschedd.api.text.time_errors import time_error


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        pytest.param(pod(containers=[{"name": "c"}]), "", id="decoded"),
        pytest.param(
            pod(priority=1.5),
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
            id="a-fraction",
        ),
        pytest.param(
            pod(priority="x", containers=[{"resources": {"limits": {"cpu": "x"}}}]),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a-type's-own-decoder-goes-before",
        ),
        pytest.param(
            pod(priority="x", hostNetwork="y"),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32",
            id="else-the-first",
        ),
        pytest.param(
            pod(containers=[{"imagePullPolicy": 7}]),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type "
            "v1.PullPolicy",
            id="a-named-type",
        ),
        pytest.param(
            pod(containers=[{"ports": [{"containerPort": True}]}]),
            "json: cannot unmarshal bool into Go struct field ContainerPort.spec.containers.ports.containerPort of "
            "type int32",
            id="in-lists",
        ),
        pytest.param(
            pod(containers=[{"livenessProbe": {"httpGet": {"port": 1.5}}}]),
            "json: cannot unmarshal number 1.5 into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32",
            id="an-integer-or-a-string",
        ),
        pytest.param(pod(overhead={"cpu": "1kk"}), "unable to parse quantity's suffix", id="a-suffix-that-is-none"),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"a": "x!"}},
            "illegal base64 data at input byte 1",
            id="no-base64",
        ),
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            id="metadata-of-a-custom-resource",
        ),
    ],
)
def test_the_fault_that_is_told(raw: dict[str, Any], error: str) -> None:
    assert unmarshal_error(raw) == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("2025-01-02T03:04:05Z", ""),
        ("2024-02-29T03:04:05.5+01:00", ""),
        ("x", ' as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2025-1-02T03:04:05Z", ' as "2006-01-02T15:04:05Z07:00": cannot parse "1-02T03:04:05Z" as "01"'),
        ("2025-01-02 03:04:05Z", ' as "2006-01-02T15:04:05Z07:00": cannot parse " 03:04:05Z" as "T"'),
        ("2025-01-02T03:04:05", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2025-13-02T03:04:05Z", ": month out of range"),
        ("2025-02-29T03:04:05Z", ": day out of range"),
        ("2025-01-02T24:04:05Z", ": hour out of range"),
        ("2025-01-02T03:04:05Zx", ': extra text: "x"'),
    ],
)
def test_what_is_no_time(text: str, error: str) -> None:
    assert time_error(text, micro=False) == (f'parsing time "{text}"{error}' if error else "")


def test_a_micro_time_needs_six_digits() -> None:
    layout = "2006-01-02T15:04:05.000000Z07:00"
    text = "2025-01-02T03:04:05Z"
    assert time_error(text, micro=True) == f'parsing time "{text}" as "{layout}": cannot parse "Z" as ".000000"'
    assert time_error("2025-01-02T03:04:05.123456Z", micro=True) == ""
