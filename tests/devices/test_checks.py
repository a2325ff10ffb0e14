"""Tests of claims and classes that are rejected on creation."""

from typing import Any

import pytest

from kschedd.devices.checks import ADMIN_LABEL, admin_faults, selector_faults
from tests.devices.made import claim_raw, class_raw, exact, first_of, subrequest

BAD = "device.driver =="


def template(*requests: dict[str, Any]) -> dict[str, Any]:
    spec = claim_raw("c", *requests)["spec"]
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": {"spec": spec}}


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        pytest.param(class_raw("c", "true", BAD), "spec.selectors[1].cel.expression", id="class"),
        pytest.param(
            claim_raw("c", exact("r", BAD)), "spec.devices.requests[0].exactly.selectors[0].cel.expression", id="claim"
        ),
        pytest.param(
            claim_raw("c", first_of("r", subrequest("a"), subrequest("b", BAD))),
            "spec.devices.requests[0].firstAvailable[1].selectors[0].cel.expression",
            id="alternative",
        ),
        pytest.param(
            template(exact("r", BAD)),
            "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression",
            id="template",
        ),
    ],
)
def test_selector_that_does_not_compile_is_named_by_its_path(raw: dict[str, Any], path: str) -> None:
    [fault] = selector_faults(raw)
    assert fault.path == path
    assert fault.why.startswith(f'Invalid value: "{BAD}": compilation failed: ERROR: <input>:1:17: Syntax error')


def test_expression_may_not_be_too_long() -> None:
    [fault] = selector_faults(class_raw("c", "true" + " " * 10_240))
    assert fault.why == "Too long: may not be more than 10240 bytes"


def test_admin_access_needs_the_label_of_the_namespace() -> None:
    raw = claim_raw("c", exact("r"), exact("s", adminAccess=True))
    assert [str(fault) for fault in admin_faults(raw, {})] == [
        "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the "
        "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
    ]
    assert admin_faults(raw, {ADMIN_LABEL: "true"}) == []
