"""What a pod asks of its node: sums are exact, rounded up once, and fit a column, be it by wrapping around."""

from typing import Any

import pytest

from kschedd.api.resources import pod_fit_score_requests, pod_nonzero_requests, pod_requests

MOST = 2**63 - 1


def spec(*requests: dict[str, str], **more: Any) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "resources": {"requests": wanted}} for number, wanted in enumerate(requests)]
    return {"containers": containers, **more}


@pytest.mark.parametrize(
    ("amounts", "name", "total"),
    [
        pytest.param(["400u", "400u"], "cpu", 1, id="two-shares-of-a-millicore-make-one"),
        pytest.param(["400u", "700u"], "cpu", 2, id="more-than-one-makes-two"),
        pytest.param(["1.1Gi", "1.1Gi"], "memory", 2362232013, id="not-one-byte-more-than-the-exact-sum-needs"),
        pytest.param(["500m", "500m"], "memory", 1, id="halves-of-a-byte"),
        pytest.param(["8Ei"], "memory", MOST, id="as-much-as-a-column-holds"),
        pytest.param(["8Ei", "8Ei"], "memory", -2, id="a-sum-that-does-not-fit-wraps-around"),
        pytest.param(["9223372036854775807", "1Gi"], "memory", 2**30 - 2**63 - 1, id="to-less-than-nothing"),
        pytest.param(["4e18", "1"], "cpu", (4 * 10**21 + 1000 + 2**63) % 2**64 - 2**63, id="a-sum-is-held-otherwise"),
        pytest.param(["4e18", "0"], "cpu", 0, id="with-nothing-added-it-is-not"),
        pytest.param(["0", "4e18"], "cpu", 0, id="nor-if-added-to-nothing"),
    ],
)
def test_containers_are_added_exactly_and_rounded_up_once(amounts: list[str], name: str, total: int) -> None:
    assert pod_requests(spec(*({name: amount} for amount in amounts))) == {name: total}


def test_overhead_is_added_before_rounding() -> None:
    assert pod_requests(spec({"cpu": "1500u"}, overhead={"cpu": "500u"})) == {"cpu": 2}


def test_assumed_amounts_count_for_each_container_that_names_none() -> None:
    mixed = spec({"cpu": "250u"}, {"memory": "1"}, {})
    assert pod_nonzero_requests(mixed) == (201, 1 + 2 * 200 * 2**20)
    assert pod_fit_score_requests(mixed) == {"cpu": 201, "memory": 1 + 2 * 200 * 2**20}
