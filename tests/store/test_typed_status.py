"""Tests that cached parsed lists do not change the result for a status."""

import json
from random import Random
from typing import Any

import pytest

from kschedd.api.schemas.check import check_status_schema
from kschedd.api.schemas.codec import decoded, encoded
from kschedd.api.schemas.schema import Fields, type_named
from kschedd.registry.defaults import with_pod_ips
from kschedd.store.patches.typed_status import typed_status

_POD = type_named("PodStatus")
assert isinstance(_POD, Fields)
_READY = {"type": "Ready", "status": "True"}
_RUNNING = {"name": "c", "image": "i", "state": {"running": {"startedAt": "2023-11-14T22:13:20Z"}}}
# The identical lists that statuses share. A list that is empty, null, or printed differently from its input affects the
# outcome.
_PARTS: list[tuple[str, Any]] = [
    ("conditions", [_READY]),
    ("conditions", [{**_READY, "lastTransitionTime": None, "message": ""}]),
    ("conditions", [{**_READY, "lastTransitionTime": "2023-11-14T22:13:20.5+01:00"}]),
    ("conditions", []),
    ("conditions", None),
    ("conditions", [{**_READY, "status": True}]),
    ("containerStatuses", [_RUNNING]),
    ("containerStatuses", [{**_RUNNING, "ready": True, "resources": {"limits": {"cpu": 0.5}}}, None]),
    ("initContainerStatuses", [_RUNNING]),
    ("phase", "Running"),
    ("phase", ""),
    ("phase", [_READY]),
    ("podIP", "10.0.0.1"),
    ("podIP", "10.0.0.2"),
    ("podIPs", [{"ip": "10.0.0.1"}]),
    ("podIPs", [{"ip": "10.0.0.3"}, {"ip": "fd00::1"}]),
    ("startTime", "2023-11-14T22:13:20.5Z"),
    ("unknown", [_READY]),
    ("resize", None),
]


@pytest.mark.parametrize("seed", range(5))
def test_lists_that_were_seen_before_change_nothing(seed: int) -> None:
    dice = Random(seed)
    for _ in range(300):
        status = dict(dice.sample(_PARTS, dice.randint(0, 7)))
        done, printed, faults = typed_status("Pod", status, _POD, with_pod_ips)
        assert [(fault.path, fault.why) for fault in faults] == [
            (fault.path, fault.why) for fault in check_status_schema("Pod", status)
        ]
        if not faults:
            plain = with_pod_ips(decoded(status, _POD))
            assert json.dumps(done) == json.dumps(plain)
            assert json.dumps(printed) == json.dumps(encoded(plain, _POD))


def test_pods_share_what_a_list_comes_to() -> None:
    given = [{**_RUNNING, "state": None}]
    first, second = (typed_status("Pod", {"containerStatuses": given, "podIP": ip}, _POD)[1] for ip in ("a", "b"))
    assert first["containerStatuses"] is not given
    assert first["containerStatuses"] is second["containerStatuses"]


def test_a_list_is_known_for_its_own_field_only() -> None:
    given = [{"name": "c"}]
    printed = typed_status("Pod", {"containerStatuses": given}, _POD)[1]["containerStatuses"]
    assert printed != given
    assert typed_status("Pod", {"podIPs": given}, _POD)[1]["podIPs"] == given
    assert typed_status("Pod", {"qosClass": given}, _POD)[2]


def test_of_many_lists_the_latest_are_known() -> None:
    for number in range(1_000):
        lists = {"podIPs": [{"ip": str(number)}]}
        assert typed_status("Pod", lists, _POD)[1] == lists
        assert typed_status("Pod", {"podIPs": [{"ip": number}]}, _POD)[2]


def test_a_status_that_is_no_map_is_at_fault() -> None:
    assert typed_status("Pod", [], _POD)[2]
