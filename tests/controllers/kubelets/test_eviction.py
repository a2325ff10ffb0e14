"""Tests of when thresholds are met and evict pods, with cases from helpers_test.go and eviction_manager_test.go."""

import attrs
import pytest

from kschedd.api.simulation.eviction_thresholds import MEMORY, NODEFS, PID, EvictionConfig, Threshold, ThresholdValue
from kschedd.controllers.kubelets.eviction import (
    EvictionManager,
    Observation,
    eviction_message,
    thresholds_met,
)
from kschedd.controllers.kubelets.ranking import ContainerUsage
from tests.controllers.kubelets.pods import mib, pod

GIB = mib(1024)
HARD = Threshold(MEMORY, ThresholdValue(GIB), 0.0, ThresholdValue(mib(500)))
SOFT = Threshold(MEMORY, ThresholdValue(2 * GIB), 120.0)
SHARES = (
    Threshold(MEMORY, ThresholdValue(share=0.2), 0.0, ThresholdValue(share=0.05)),
    Threshold(NODEFS, ThresholdValue(share=0.3)),
)


def seen(available: float, capacity: float = 0, at: float = 0.0) -> Observation:
    """Return an observation with these amounts in MiB."""
    return Observation(mib(available), mib(capacity), at)


@pytest.mark.parametrize(
    ("thresholds", "observations", "with_reclaim", "met"),
    [
        pytest.param((), {}, False, (), id="none"),
        pytest.param((HARD,), {MEMORY: seen(500)}, False, (HARD,), id="met"),
        pytest.param((HARD,), {MEMORY: seen(2048)}, False, (), id="not-met"),
        pytest.param((HARD,), {MEMORY: seen(1024)}, False, (), id="exactly-the-threshold-is-not-met"),
        pytest.param((HARD,), {}, False, (), id="nothing-seen"),
        pytest.param((HARD,), {MEMORY: seen(1075)}, True, (HARD,), id="less-than-the-minimum-reclaim"),
        pytest.param((HARD,), {MEMORY: seen(2048)}, True, (), id="reclaimed-enough"),
        pytest.param(SHARES, {MEMORY: seen(100, 1000), NODEFS: seen(100, 1000)}, False, SHARES, id="both-shares"),
        pytest.param(SHARES, {MEMORY: seen(300, 1000), NODEFS: seen(400, 1000)}, False, (), id="neither-share"),
        pytest.param(
            SHARES, {MEMORY: seen(300, 1000), NODEFS: seen(100, 1000)}, False, (SHARES[1],), id="the-disks-share"
        ),
        pytest.param(
            SHARES, {MEMORY: seen(100, 1000), NODEFS: seen(400, 1000)}, False, (SHARES[0],), id="the-memorys-share"
        ),
        pytest.param(SHARES, {MEMORY: seen(225, 1000)}, True, (SHARES[0],), id="less-than-the-share-to-reclaim"),
        pytest.param(SHARES, {MEMORY: seen(300, 1000)}, True, (), id="more-than-the-share-to-reclaim"),
    ],
)
def test_thresholds_met(
    thresholds: tuple[Threshold, ...], observations: dict[str, Observation], with_reclaim: bool, met: tuple[Threshold]
) -> None:
    assert thresholds_met(thresholds, observations, with_reclaim=with_reclaim) == list(met)


class Watched:
    """A manager, with observations about a minute apart."""

    def __init__(self, *thresholds: Threshold) -> None:
        self.manager = EvictionManager()
        self.config = EvictionConfig(thresholds, 300.0, 5)
        self.now = 1000.0

    def after(self, minutes: float, available: float, *, hold: bool = False) -> tuple[tuple[str, ...], list[Threshold]]:
        self.now += minutes * 60
        outcome = self.manager.synchronize(self.config, {MEMORY: seen(available, 4096, self.now)}, self.now, hold=hold)
        return outcome.conditions, list(outcome.acting)


def test_a_soft_threshold_acts_after_its_grace_period_and_states_pressure_from_the_beginning() -> None:
    hard = attrs.evolve(HARD, min_reclaim=None)
    watched = Watched(hard, SOFT)
    pressure = ("MemoryPressure",)
    assert watched.after(0, 2048 + 100) == ((), [])
    assert watched.after(1, 1500) == (pressure, [])
    assert watched.after(3, 1500) == (pressure, [SOFT])
    assert watched.after(0, 3000) == (pressure, [])
    assert watched.after(20, 3000) == ((), [])  # the transition period
    assert watched.after(1, 500) == (pressure, [hard])
    assert watched.after(1, 2100) == (pressure, [])  # the transition period
    assert watched.after(4.9, 2100) == (pressure, [])
    assert watched.after(0.1, 2100) == ((), [])


def test_pressure_that_goes_meanwhile_begins_the_grace_period_anew() -> None:
    watched = Watched(SOFT)
    watched.after(0, 1500)
    watched.after(1, 3000)
    assert watched.after(1, 1500)[1] == []
    assert watched.after(1.9, 1500)[1] == []
    assert watched.after(0.1, 1500)[1] == [SOFT]


def test_what_was_met_acts_until_the_minimum_is_reclaimed() -> None:
    watched = Watched(HARD)
    assert watched.after(0, 500)[1] == [HARD]
    assert watched.after(1, 1200)[1] == [HARD]  # above the threshold, but by less than the minimum reclaim of 500 Mi
    assert watched.after(1, 2048) == (("MemoryPressure",), [])
    assert watched.after(1, 1200) == (("MemoryPressure",), [])  # not met again


def test_an_observation_is_acted_upon_once_and_not_before_the_evicted_pod_has_ended() -> None:
    watched = Watched(HARD)
    assert watched.after(0, 500)[1] == [HARD]
    assert watched.after(0, 500)[1] == []
    assert watched.after(0.1, 500, hold=True)[1] == []
    assert watched.after(0, 500)[1] == [HARD]


def test_when_to_look_again() -> None:
    manager, config = EvictionManager(), EvictionConfig((SOFT,), 300.0, 0)
    assert manager.synchronize(config, {MEMORY: seen(100, 4096)}, 50.0).next_at == 170.0
    assert manager.synchronize(config, {MEMORY: seen(3000, 4096)}, 60.0).next_at == 360.0
    assert manager.synchronize(config, {MEMORY: seen(3000, 4096)}, 360.0).next_at is None
    assert manager.idle


def test_memory_is_reclaimed_before_everything_else() -> None:
    disk = Threshold(NODEFS, ThresholdValue(GIB))
    config = EvictionConfig((disk, HARD), 300.0, 0)
    low = {NODEFS: seen(1, 9), MEMORY: seen(1, 9)}
    outcome = EvictionManager().synchronize(config, low, 0.0)
    assert outcome.acting == (HARD, disk)
    assert outcome.conditions == ("MemoryPressure", "DiskPressure")


@pytest.mark.parametrize(
    ("resource", "signal", "usage", "message"),
    [
        pytest.param(
            "memory",
            MEMORY,
            ContainerUsage("app", memory=mib(700)),
            "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. "
            "Container app was using 700Mi, request is 100Mi, has larger consumption of memory. ",
            id="memory",
        ),
        pytest.param(
            "memory",
            MEMORY,
            ContainerUsage("app", memory=mib(100)),
            "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. ",
            id="nothing-is-said-of-a-container-within-its-request",
        ),
        pytest.param(
            "ephemeral-storage",
            NODEFS,
            ContainerUsage("app", storage=mib(2)),
            "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 500Mi. "
            "Container app was using 2Mi, request is 0, has larger consumption of ephemeral-storage. ",
            id="disk",
        ),
        pytest.param(
            "pids",
            PID,
            ContainerUsage("app", pids=900),
            "The node was low on resource: pids. Threshold quantity: 1Gi, available: 524288k. ",
            id="process-ids",
        ),
    ],
)
def test_what_an_evicted_pod_is_told(resource: str, signal: str, usage: ContainerUsage, message: str) -> None:
    acting = [Threshold(signal, ThresholdValue(GIB, written="1Gi"))]
    there = {signal: Observation(524_288_000 if resource == "pids" else mib(500), 4 * GIB, 0.0)}
    requests = pod("p", {"memory": "100Mi"})
    assert eviction_message(requests, (usage,), resource, acting, there) == message
