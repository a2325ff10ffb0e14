"""Tests of the device capacity that a request takes, and of the requests that a policy rejects."""

from fractions import Fraction
from typing import Any

import pytest

from kschedd.devices.pools.capacity import consumed_capacity, fits

STEPS = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "2Gi", "max": "6Gi"}}
RANGE = {"default": "2Gi", "validRange": {"min": "2Gi", "max": "4Gi"}}
VALUES = {"default": "4Gi", "validValues": ["2Gi", "4Gi", "8Gi"]}


@pytest.mark.parametrize(
    ("policy", "requested", "consumed"),
    [
        pytest.param(None, None, "10Gi", id="without-policy-and-request-all"),
        pytest.param(None, "3Gi", "3Gi", id="without-policy-what-is-requested"),
        pytest.param(STEPS, None, "1Gi", id="without-request-the-default"),
        pytest.param(STEPS, "500Mi", "1Gi", id="at-least-the-minimum"),
        pytest.param(STEPS, "1025Mi", "3Gi", id="rounded-up-to-the-next-step-above-the-minimum"),
        pytest.param(STEPS, "3Gi", "3Gi", id="a-step-itself"),
        pytest.param(STEPS, "5500Mi", None, id="the-next-step-is-above-the-maximum"),
        pytest.param(RANGE, "2500Mi", "2500Mi", id="no-steps-in-the-range"),
        pytest.param(RANGE, "5Gi", None, id="above-the-range"),
        pytest.param(VALUES, "3Gi", "4Gi", id="rounded-up-to-the-next-value"),
        pytest.param(VALUES, "9Gi", None, id="above-all-values"),
        pytest.param(VALUES, None, "4Gi", id="default-among-values"),
    ],
)
def test_policy_decides_what_a_request_consumes(policy: Any, requested: str | None, consumed: str | None) -> None:
    capacity: dict[str, Any] = {"value": "10Gi"} | ({} if policy is None else {"requestPolicy": policy})
    requests = {} if requested is None else {"memory": requested}
    assert consumed_capacity(requests, {"memory": capacity}) == (None if consumed is None else {"memory": consumed})


def test_capacities_that_are_not_requested_are_consumed_too() -> None:
    capacities: Any = {"memory": {"value": "10Gi"}, "bandwidth": {"value": "5", "requestPolicy": {"default": "1"}}}
    assert consumed_capacity({"memory": "2Gi"}, capacities) == {"memory": "2Gi", "bandwidth": "1"}


def test_a_device_without_the_requested_capacity_cannot_serve() -> None:
    assert consumed_capacity({"bandwidth": "1"}, {"memory": {"value": "10Gi"}}) is None


@pytest.mark.parametrize(("used", "fit"), [(0, True), (6, True), (7, False)])
def test_shares_together_stay_within_the_value(used: int, fit: bool) -> None:
    assert fits({"slots": "4"}, {"slots": Fraction(used)}, {"slots": {"value": "10"}}) is fit
