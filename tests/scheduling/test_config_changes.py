"""Tests of changes of the configuration: their numbers, undoing them, and the part that the queue gets."""

import attrs
import pytest

from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34, V1_37
from kschedd.scheduling.config_changes import NothingToUndo
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import ChangeConfig, Reconfigure, UndoConfigChange
from kschedd.scheduling.machine import SchedulingMachine
from tests.scheduling.driven import Driven, Raw

SECOND = 1_000_000_000
GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def raw(**settings: object) -> Raw:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **settings}


def test_changes_are_numbered_and_undone_in_reverse_order() -> None:
    driver = Driven().driver
    changes, first = driver.config_changes, driver.machine.config
    with pytest.raises(NothingToUndo):
        driver.step(UndoConfigChange(), 1.0)
    made = []
    for number, wait_s in enumerate((2.0, 3.0), 1):
        config = attrs.evolve(driver.machine.config, pod_initial_backoff_s=wait_s)
        change = driver.step(ChangeConfig(config, f"change to {wait_s}"), 10.0 + number)
        assert (change.number, change.what, change.at_s) == (number, f"change to {wait_s}", 10.0 + number)
        made.append(change)
    assert list(changes.made) == made
    assert changes.latest is made[1]
    assert driver.step(UndoConfigChange(), 20.0) is made[1]
    assert driver.machine.config.pod_initial_backoff_s == 2.0
    assert driver.step(UndoConfigChange(), 21.0) is made[0]
    assert driver.machine.config is first
    assert (list(changes.made), changes.count) == ([], 2)


def test_a_new_configuration_replaces_the_one_before_without_a_number() -> None:
    driver = Driven().driver
    before = driver.machine.config
    config = attrs.evolve(before, pod_initial_backoff_s=2.0)
    assert driver.step(Reconfigure(config), 1.0) is before
    assert driver.machine.config is config
    assert not driver.config_changes.made


def test_the_queue_gets_its_times_in_nanoseconds_and_the_rules_of_the_version() -> None:
    config = config_from_raw(raw(podInitialBackoffSeconds=3, podMaxBackoffSeconds=40), version=V1_34)
    settings = SchedulingDriver(SchedulingMachine(config, seed=1)).config_changes.for_queue().settings
    assert (settings.initial_backoff, settings.max_backoff) == (3 * SECOND, 40 * SECOND)
    assert settings.max_in_unschedulable == 300 * SECOND
    assert settings.resizing is None
    config = config_from_raw(raw(), version=V1_37, feature_gates={GATE: True})
    settings = SchedulingDriver(SchedulingMachine(config, seed=1)).config_changes.for_queue().settings
    assert settings.resizing == config.rules.resize_rules
