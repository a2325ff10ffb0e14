"""Tests of the loop in virtual time: when it ends, and when it gives up."""

from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, unschedulable
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.inputs import Input, Observe
from kschedd.simulation.engine import Engine, LivelockError, LoggedAttempt

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "110"}},
}


def pod(name: str, cpu: str = "100m") -> dict[str, Any]:
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def test_it_rests_when_only_retries_are_left_and_retries_if_time_passes() -> None:
    decisions: list[LoggedAttempt] = []
    engine = Engine(on_decision=decisions.append)
    engine.store.create(NODE)
    engine.store.create(pod("large", "2"))
    assert engine.run_to_rest()
    assert (engine.elapsed, len(decisions)) == (0.0, 1)
    engine.advance(engine.now + 400)
    assert [decision.time_s for decision in decisions] == [0.0, 330.0]
    assert engine.elapsed == 400


def test_a_failed_attempt_says_how_many_nodes_it_visited() -> None:
    decisions: list[LoggedAttempt] = []
    engine = Engine(on_decision=decisions.append)
    engine.store.create(NODE)
    engine.store.create(pod("large", "2"))
    engine.run_until_idle()
    assert (decisions[0].visited, decisions[0].feasible, decisions[0].node) == (1, 0, "")


class Restless:
    """A plugin that rejects every pod at Permit and wakes it at once."""

    name: ClassVar = "Restless"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "Restless":
        return cls(handle)

    def permit(self, state: Any, pod: Pod, node_name: str) -> tuple[Status, float]:
        self._handle.activate([pod])
        return unschedulable("not yet"), 0.0


def test_a_moment_without_end_is_told_and_ends() -> None:
    registry = Registry()
    registry.add(Restless, "test")
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Restless"}]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()})
    engine = Engine(config, registry=registry)
    engine.store.create(NODE)
    engine.store.create(pod("web"))
    with pytest.raises(LivelockError, match="default/web"):
        engine.run_until_idle()


def test_events_observed_together_lead_to_the_decisions_of_events_observed_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decided(observed: list[int]) -> list[LoggedAttempt]:
        decisions: list[LoggedAttempt] = []
        engine = Engine(seed=3, on_decision=decisions.append, on_happened=lambda entries: None)
        step = engine.driver.step

        def counted(given: Input, now: float = 0.0) -> Any:
            if isinstance(given, Observe):
                observed.append(len(given.events))
            return step(given, now)

        engine.driver.step = counted
        for number in range(40):
            engine.store.create({**NODE, "metadata": {"name": f"n{number}"}})
        for number in range(200):
            name = f"p{number}"
            raw = pod(name, f"{100 + number}m")
            if number % 5 < 4:
                raw["spec"]["nodeName"] = f"n{number % 40}"
            engine.store.create(raw)
        engine.store.delete("Pod", "default", "p0", grace_period_s=0)
        assert engine.run_to_rest()
        return decisions

    several: list[int] = []
    together = decided(several)
    assert max(several) > 40
    each: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(SchedulingQueue, "heeds_events", True)
        one_by_one = decided(each)
    assert len(each) > 240
    assert set(each) == {1}
    assert [one.line() for one in together] == [one.line() for one in one_by_one]
    assert {one.pod for one in together} == {f"default/p{number}" for number in range(4, 200, 5)}


def test_a_device_class_changes_how_pods_of_a_known_template_are_bound() -> None:
    engine = Engine()
    engine.store.create({**NODE, "metadata": {"name": "n1"}})
    engine.store.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n2"},
            "status": {"allocatable": {"cpu": "4", "pods": "110", "example.com/gpu": "4"}},
        }
    )
    binder = engine.machine.schedulers["default-scheduler"].profile.bound_by
    of_gpu = pod("p1", "100m")
    of_gpu["spec"]["containers"][0]["resources"] = {
        "requests": {"example.com/gpu": "1"},
        "limits": {"example.com/gpu": "1"},
    }
    first = engine.store.create(of_gpu)
    assert isinstance(first, Pod)
    versions = engine.machine.cluster.versions
    assert binder(first, versions) is not None
    engine.run_until_idle()
    engine.store.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        }
    )
    engine.run_until_idle()
    assert binder(first, versions) is None
    engine.store.delete("DeviceClass", "", "gpu")
    engine.run_until_idle()
    assert binder(first, versions) is not None


@pytest.mark.parametrize(
    ("volume", "alone"),
    [
        pytest.param({"projected": {"sources": []}}, True, id="token"),
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, False, id="claim"),
    ],
)
def test_only_volumes_that_must_be_bound_require_more_than_the_bind_plugin(volume: dict[str, Any], alone: bool) -> None:
    engine = Engine()
    raw = pod("p1", "100m")
    raw["spec"]["volumes"] = [{"name": "v", **volume}]
    created = engine.store.create(raw)
    assert isinstance(created, Pod)
    binder = engine.machine.schedulers["default-scheduler"].profile.bound_by
    assert (binder(created, engine.machine.cluster.versions) is not None) is alone
