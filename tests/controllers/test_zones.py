"""Tests of zone disruption, and of the rate at which nodes are tainted.

Expected results are from upstream's node_lifecycle_controller.go.
"""

import pytest

from kschedd.controllers.nodes.zones import (
    FULL,
    NORMAL,
    PARTIAL,
    NodeLifecycleConfig,
    TaintRate,
    Zone,
    ZoneState,
    compute_zone_state,
    eviction_rate,
)


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        pytest.param(0, 0, NORMAL, id="empty"),
        pytest.param(1, 0, NORMAL, id="one-ready"),
        pytest.param(100, 0, NORMAL, id="all-ready"),
        pytest.param(0, 1, FULL, id="the-only-node"),
        pytest.param(0, 2, FULL, id="both"),
        pytest.param(0, 100, FULL, id="all-of-many"),
        pytest.param(1, 1, NORMAL, id="one-of-two"),
        pytest.param(1, 2, NORMAL, id="two-of-three-are-too-few"),
        pytest.param(1, 3, PARTIAL, id="three-of-four"),
        pytest.param(2, 2, NORMAL, id="two-of-four"),
        pytest.param(2, 3, PARTIAL, id="three-of-five"),
        pytest.param(3, 3, NORMAL, id="half-of-six"),
        pytest.param(2, 4, PARTIAL, id="four-of-six"),
        pytest.param(9, 11, PARTIAL, id="exactly-the-threshold"),
        pytest.param(10, 10, NORMAL, id="half-of-twenty"),
        pytest.param(46, 54, NORMAL, id="just-below-the-threshold"),
        pytest.param(45, 55, PARTIAL, id="the-threshold-of-a-hundred"),
        pytest.param(450, 550, PARTIAL, id="the-threshold-of-a-thousand"),
        pytest.param(451, 549, NORMAL, id="one-node-below-it"),
        pytest.param(1, 99, PARTIAL, id="one-left"),
        pytest.param(4, 1, NORMAL, id="one-of-five"),
    ],
)
def test_the_state_of_a_zone(ready: int, not_ready: int, state: ZoneState) -> None:
    assert compute_zone_state(ready, not_ready, 0.55) == state


@pytest.mark.parametrize(
    ("ready", "not_ready", "threshold", "state"),
    [
        pytest.param(7, 3, 0.3, PARTIAL, id="lower-threshold"),
        pytest.param(1, 9, 0.95, NORMAL, id="higher-threshold"),
        pytest.param(0, 9, 1.0, FULL, id="all-whatever-the-threshold"),
        pytest.param(97, 3, 0.0, PARTIAL, id="threshold-zero-still-needs-three"),
        pytest.param(98, 2, 0.0, NORMAL, id="threshold-zero-two-are-too-few"),
    ],
)
def test_the_threshold_is_an_option(ready: int, not_ready: int, threshold: float, state: ZoneState) -> None:
    assert compute_zone_state(ready, not_ready, threshold) == state


@pytest.mark.parametrize(
    ("state", "size", "rate"),
    [
        pytest.param(NORMAL, 3, 0.1, id="normal"),
        pytest.param(FULL, 3, 0.1, id="full-as-normal"),
        pytest.param(FULL, 500, 0.1, id="full-and-large-as-normal"),
        pytest.param(PARTIAL, 3, 0.0, id="partial-and-small-stops"),
        pytest.param(PARTIAL, 50, 0.0, id="as-large-as-the-threshold-is-small"),
        pytest.param(PARTIAL, 51, 0.01, id="partial-and-large-slows-down"),
        pytest.param(PARTIAL, 5000, 0.01, id="partial-and-very-large"),
    ],
)
def test_the_rate_of_a_zone(state: ZoneState, size: int, rate: float) -> None:
    assert eviction_rate(state, size, NodeLifecycleConfig()) == rate


def _accepted(rate: TaintRate, until: int) -> list[int]:
    return [second for second in range(until) if rate.try_accept(float(second))]


def test_a_rate_lets_the_first_through_at_once_and_then_one_by_one() -> None:
    rate = TaintRate(0.1)
    assert _accepted(rate, 35) == [0, 10, 20, 30]
    assert rate.next_s() == 40


def test_what_was_not_used_is_not_saved_up() -> None:
    rate = TaintRate(0.5)
    assert rate.try_accept(0)
    assert [rate.try_accept(100), rate.try_accept(100), rate.try_accept(102)] == [True, False, True]


def test_a_rate_of_zero_lets_nobody_through() -> None:
    rate = TaintRate(0.0)
    assert _accepted(rate, 1000) == []
    assert rate.next_s() is None


def test_a_swapped_rate_is_full_only_if_the_old_one_was() -> None:
    full = TaintRate(0.1).swapped(0.01, 50)
    assert full.try_accept(50)
    used = TaintRate(0.1)
    assert used.try_accept(45)
    slower = used.swapped(0.01, 50)
    assert [slower.try_accept(50), slower.next_s()] == [False, 150]
    stopped = TaintRate(0.0).swapped(0.1, 50)
    assert [stopped.try_accept(50), stopped.next_s()] == [False, 60]
    assert used.swapped(0.1, 99) is used


def test_the_options_have_the_defaults_of_kube_controller_manager() -> None:
    assert NodeLifecycleConfig() == NodeLifecycleConfig(
        node_monitor_period_s=5,
        node_monitor_grace_period_s=50,
        node_startup_grace_period_s=60,
        node_eviction_rate=0.1,
        secondary_node_eviction_rate=0.01,
        large_cluster_size_threshold=50,
        unhealthy_zone_threshold=0.55,
    )
    assert compute_zone_state(9, 11) == PARTIAL


def test_a_new_zone_is_empty() -> None:
    zone = Zone(TaintRate(0.1))
    assert (zone.state, zone.ready, zone.not_ready, zone.members, zone.size) == (NORMAL, 0, 0, 0, 0)
    assert Zone(TaintRate(0.1), ready=3, not_ready=2).size == 5
