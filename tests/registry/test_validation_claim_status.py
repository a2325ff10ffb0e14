"""Tests of upstream's message for each invalid field of a ResourceClaim's status."""

import pytest

from kschedd.registry.validation_update import validate_status_update
from tests.api.objects import Raw, named

RESULT = {"request": "r", "driver": "d.e", "pool": "p", "device": "x"}
ALLOCATED = {"devices": {"results": [RESULT]}}
DEVICE = {"driver": "d.e", "pool": "p", "device": "x"}
UNNAMED = '{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}'
CONDITION = {"type": "Ready", "status": "True", "reason": "Ok", "lastTransitionTime": "2025-01-01T00:00:00Z"}
NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def answer(status: Raw, before: Raw | None = None, **meta: str) -> list[str]:
    requests = [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]
    old = named("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": requests}}, status=before or {})
    new = {**old, "metadata": {**old["metadata"], **meta}, "status": status}
    return [str(fault) for fault in validate_status_update(old, new)]


def device(**fields: object) -> Raw:
    return {"allocation": ALLOCATED, "devices": [{**DEVICE, **fields}]}


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        pytest.param(device(conditions=[CONDITION], data={"a": 1}, networkData={"ips": ["10.0.0.1/8"]}), [], id="good"),
        pytest.param(
            device(device="y"),
            [f"status.devices[0]: Invalid value: {UNNAMED}: must be an allocated device in the claim"],
            id="of-another-device",
        ),
        pytest.param(
            {"allocation": ALLOCATED, "devices": [DEVICE, DEVICE]},
            ["status.devices[1].deviceID: Duplicate value: d.e/p/x"],
            id="one-device-twice",
        ),
        pytest.param(
            device(data=["a"]),
            ['status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object'],
            id="data-that-is-no-map",
        ),
        pytest.param(
            device(conditions=[{**CONDITION, "reason": ""}]),
            ["status.devices[0].conditions[0].reason: Required value"],
            id="condition-without-a-reason",
        ),
        pytest.param(
            device(networkData={"interfaceName": "x" * 257}),
            ["status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes"],
            id="name-of-an-interface",
        ),
        pytest.param(
            {"allocation": {"devices": {"results": [{**RESULT, "request": "r/t"}]}}},
            [f'status.allocation.devices.results[0].request: Invalid value: "r/t": {NO_REQUEST}'],
            id="unknown-subrequest",
        ),
        pytest.param(
            {"allocation": {"devices": {"results": [{**RESULT, "driver": ""}]}}},
            ["status.allocation.devices.results[0].driver: Required value"],
            id="result-without-a-driver",
        ),
        pytest.param(
            {"allocation": {"devices": {"config": [{"source": "Own"}]}}},
            [
                'status.allocation.devices.config[0].source: Unsupported value: "Own": supported values: "FromClaim", '
                '"FromClass"',
                "status.allocation.devices.config[0].opaque: Required value",
            ],
            id="config-of-an-unknown-source",
        ),
        pytest.param(
            {"allocation": ALLOCATED, "reservedFor": [{"resource": "pods", "name": name} for name in "ab"]},
            [
                "status.reservedFor[0].uid: Required value",
                "status.reservedFor[1].uid: Required value",
                'status.reservedFor[1].uid: Duplicate value: ""',
            ],
            id="users-without-a-uid",
        ),
    ],
)
def test_a_status_is_refused_for(status: Raw, faults: list[str]) -> None:
    found = answer(status)
    assert [text for text in found if "RFC 1123" not in text] == faults


def test_nobody_is_added_to_a_claim_that_is_being_deleted() -> None:
    user = {"resource": "pods", "name": "p", "uid": "u"}
    before = {"allocation": ALLOCATED, "reservedFor": [user]}
    deleted = "2025-01-01T00:00:00Z"
    assert answer(before, before, deletionTimestamp=deleted) == []
    more = {**before, "reservedFor": [user, {**user, "uid": "v"}]}
    why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
    assert answer(more, before, deletionTimestamp=deleted) == [f"status.reservedFor: Forbidden: {why}"]
