"""Tests of a pod's requests: sums are exact, are rounded up once, and wrap around beyond int64."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.resources import pod_fit_score_requests, pod_nonzero_requests, pod_requests, states_cpu_and_memory

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


_amounts = st.sampled_from(["0", "1", "400u", "100m", "4e18", "8Ei"])
_requests = st.fixed_dictionaries({"cpu": _amounts, "memory": _amounts}, optional={"x.com/a": _amounts})


@given(
    st.lists(_requests, max_size=3),
    st.lists(st.tuples(_requests, st.sampled_from(["Always", None])), max_size=2),
    st.dictionaries(st.sampled_from(["cpu", "memory"]), _amounts),
)
def test_nothing_is_assumed_where_each_container_states_cpu_and_memory(
    requests: list[dict[str, str]], starting: list[tuple[dict[str, str], str | None]], overhead: dict[str, str]
) -> None:
    init_containers = [
        {"name": f"i{number}", "restartPolicy": policy, "resources": {"requests": wanted}}
        for number, (wanted, policy) in enumerate(starting)
    ]
    whole = spec(*requests, initContainers=init_containers, overhead=overhead)
    assert states_cpu_and_memory(whole)
    total = pod_requests(whole)
    assert pod_nonzero_requests(whole) == (total.get("cpu", 0), total.get("memory", 0))
    assert pod_fit_score_requests(whole) == total


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(spec({"cpu": "1"}), id="a-container-without-memory"),
        pytest.param({"containers": [{"name": "c"}]}, id="a-container-without-resources"),
        pytest.param(spec({"cpu": "1", "memory": "1"}, initContainers=[{"name": "i"}]), id="an-init-container"),
        pytest.param(
            spec({"cpu": "1", "memory": "1"}, resources={"requests": {"cpu": "2"}}), id="resources-of-the-pod-as-such"
        ),
    ],
)
def test_otherwise_something_may_be_assumed(whole: dict[str, Any]) -> None:
    assert not states_cpu_and_memory(whole)
