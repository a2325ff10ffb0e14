"""Tests of the controllers' options in the format of flags."""

from typing import Any

import pytest

from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.controllers.options import OPTIONS, ControllerOptions, OptionError, controller_options, read_option


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.default])
def test_each_default_is_what_the_help_says(name: str) -> None:
    assert controller_options({name: read_option(name, OPTIONS[name].default)}) == ControllerOptions()


def test_options_come_where_they_belong() -> None:
    options = controller_options({"node-eviction-rate": 2.0, "terminated-pod-gc-threshold": 7})
    assert (options.lifecycle.node_eviction_rate, options.terminated_pod_gc_threshold) == (2.0, 7)
    assert options.lifecycle.secondary_node_eviction_rate == 0.01


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("node-monitor-period", "1m30s", 90.0, id="duration"),
        pytest.param("node-monitor-grace-period", "0s", 0.0, id="no-grace"),
        pytest.param("node-eviction-rate", "0", 0.0, id="rate-zero"),
        pytest.param("unhealthy-zone-threshold", "1", 1.0, id="whole-share"),
        pytest.param("large-cluster-size-threshold", "500", 500, id="count"),
    ],
)
def test_values(name: str, text: str, value: Any) -> None:
    assert read_option(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        pytest.param("node-monitor-period", "0s", "must be longer than 0", id="no-period"),
        pytest.param("node-monitor-period", "5", "must be a duration", id="without-a-unit"),
        pytest.param("node-monitor-grace-period", "-5s", "must not be negative", id="negative-duration"),
        pytest.param("node-eviction-rate", "-0.1", "must be a number of at least 0", id="negative-rate"),
        pytest.param("cloud-provider", "gce", 'must be "external" or empty', id="a-cloud-of-ours"),
        pytest.param("node-eviction-rate", "nan", "must be a number of at least 0", id="no-number-rate"),
        pytest.param("node-eviction-rate", "fast", "must be a number", id="a-word"),
        pytest.param("unhealthy-zone-threshold", "1.1", "from 0 to 1", id="more-than-all"),
        pytest.param("large-cluster-size-threshold", "1.5", "must be a whole number", id="half-a-node"),
        pytest.param("terminated-pod-gc-threshold", "-1", "must be a whole number", id="negative-count"),
    ],
)
def test_values_that_cannot_be_used(name: str, text: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        read_option(name, text)


def test_pods_wait_for_configuration_as_a_part_of_their_behavior() -> None:
    assert controller_options({"missing-configuration": True}).pod_behavior == PodBehavior(waits_for_configuration=True)
    both = controller_options({"missing-configuration": True, "pod-behavior": PodBehavior(5.0)}).pod_behavior
    assert both == PodBehavior(5.0, waits_for_configuration=True)
    assert controller_options({}).pod_behavior is None
