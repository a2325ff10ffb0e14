"""Tests of victims that are not bound yet: by the rules of 1.36 their binding fails, and they are not deleted."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Create, Delete, Plan
from kschedd.log.events import event_of
from kschedd.queue.operations import AssumedPodForgotten
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import PlansExecuted, PluginCalled, ResumeDecided
from kschedd.scheduling.records import PodPreempted
from tests.scheduling.driven import NOW, Driven, node, pod

MEMORY = "Preempted by pod uid-p on node n (in kube-scheduler memory)."


class _Reserves:
    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        return None


class HoldsLow(_Reserves):
    name: ClassVar = "HoldsLow"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return (Status(Code.WAIT), 30.0) if pod.name == "low" else (None, 0.0)


class WaitsForever(_Reserves):
    """A plugin whose plan is a write, and is never ready."""

    name: ClassVar = "WaitsForever"

    def pre_bind_pre_flight(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        return None

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        def ready(cluster: SchedulerCache) -> Status | None:
            return None

        requests = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": pod.name, "namespace": "default"}}
        return Plan((Create(requests),), ready, 600.0)


def low_in(plugin: type[Any], version: KubernetesVersion, steps: int = 9, **gates: bool) -> Driven:
    """Return a run in which the pod `low` is on the only node, after this many steps of its binding."""
    run = Driven(plugin, version=version, gates=gates)
    run.see(node(), pod("low"), pod("p", priority=10))
    run.attempt("low")
    for _ in range(steps):
        effects = run.driver.take_effects()
        for call in effects.calls:
            run.driver.step(PluginCalled(call.uid, call.run()), NOW)
        for plan in effects.plans:
            run.driver.step(PlansExecuted(((plan.uid, None),)), NOW)
        if not effects:
            break
    return run


def preempt(run: Driven) -> Effects:
    """Attempt the pod `p`, which preempts, and return the requested effects."""
    failed = run.attempt("p")
    assert isinstance(failed, FailedAttempt)
    assert (failed.nominated_node, [victim.name for victim in failed.victims]) == ("n", ["low"])
    return run.driver.take_effects()


def deleted(effects: Effects) -> list[str]:
    return [write.name for each in effects.evictions for write in each.writes if isinstance(write, Delete)]


def reported(effects: Effects) -> list[str]:
    events = [event_of(entry) for entry in effects.happened if isinstance(entry, PodPreempted)]
    return [event.message for event in events if event is not None]


def ended(run: Driven) -> Effects:
    assert run.driver.bindings.any_decided
    run.driver.step(ResumeDecided(), NOW + 1)
    assert not run.driver.bindings.any_decided
    return run.driver.take_effects()


@pytest.mark.parametrize(
    ("version", "event", "message", "for_itself"),
    [
        pytest.param(
            V1_34, "Preempted by pod uid-p on node n", "0/1 nodes are available: 1 preempted.", False, id="1.34"
        ),
        pytest.param(V1_36, MEMORY, "waiting on permit for pod: preempted", True, id="1.36-it-backs-off"),
    ],
)
def test_a_victim_at_permit(version: KubernetesVersion, event: str, message: str, for_itself: bool) -> None:
    run = low_in(HoldsLow, version)
    effects = preempt(run)
    assert (deleted(effects), reported(effects)) == ([], [event])
    effects = ended(run)
    assert [failed.message for failed in effects.failures] == [message]
    [left] = [one for one in effects.queue if isinstance(one, AssumedPodForgotten)]
    assert left.for_itself is for_itself
    assert "uid-low" not in run.driver.bindings.cycles


@pytest.mark.parametrize(
    ("version", "gone"),
    [pytest.param(V1_34, [], id="1.34-goes-on"), pytest.param(V1_36, ["low"], id="1.36-is-deleted")],
)
@pytest.mark.parametrize("decide", ["allow", "reject"])
def test_a_victim_at_permit_whose_case_is_decided_already(
    version: KubernetesVersion, gone: list[str], decide: str
) -> None:
    run = low_in(HoldsLow, version)
    waiting = run.machine.waiting.pods["uid-low"]
    waiting.allow("HoldsLow") if decide == "allow" else waiting.reject("HoldsLow", "no")
    effects = preempt(run)
    assert (deleted(effects), reported(effects)) == (gone, ["Preempted by pod uid-p on node n"])


def test_a_victim_whose_binding_waits_in_pre_bind_is_deleted_in_1_34() -> None:
    run = low_in(WaitsForever, V1_34)
    effects = preempt(run)
    assert (deleted(effects), reported(effects)) == (["low"], ["Preempted by pod uid-p on node n"])
    assert not run.driver.bindings.any_decided
    assert list(run.driver.bindings.plan_waits) == ["uid-low"]


@pytest.mark.parametrize("nominated", [True, False])
def test_a_victim_whose_binding_waits_in_pre_bind_leaves_it_in_1_36(nominated: bool) -> None:
    run = low_in(WaitsForever, V1_36, NominatedNodeNameForExpectation=nominated)
    effects = preempt(run)
    assert (deleted(effects), reported(effects)) == ([], [MEMORY])
    [failed] = ended(run).failures
    assert failed.reason == "SchedulerError"
    assert failed.message == 'running PreBind plugin "WaitsForever": context canceled'
    assert (run.driver.bindings.cycles, run.driver.bindings.plan_waits, run.machine.cluster.pod_count) == ({}, {}, 0)


def _answer(run: Driven) -> None:
    run.driver.step(PlansExecuted((("uid-low", None),)), NOW)


def _call(run: Driven) -> None:
    cycle = run.driver.bindings.cycles["uid-low"]
    assert cycle.call is not None
    run.driver.step(PluginCalled("uid-low", cycle.call.run()), NOW)
    if cycle.plan is not None:
        _answer(run)


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        pytest.param(2, _answer, id="its-writes-are-being-done"),
        pytest.param(1, _call, id="its-plugin-is-being-called"),
    ],
)
def test_what_a_cancelled_binding_asked_for_comes_first(steps: int, answer: Callable[[Driven], None]) -> None:
    run = low_in(WaitsForever, V1_36, steps)
    effects = preempt(run)
    assert (deleted(effects), reported(effects)) == ([], [MEMORY])
    assert ended(run).failures == []
    answer(run)
    [failed] = ended(run).failures
    assert failed.message == 'running PreBind plugin "WaitsForever": context canceled'
    assert run.driver.bindings.cycles == {}


class DoneAtOnce(WaitsForever):
    name: ClassVar = "DoneAtOnce"

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        return Plan()


def test_a_victim_past_pre_bind_is_deleted() -> None:
    run = low_in(DoneAtOnce, V1_36, steps=2)
    [cycle] = run.driver.bindings.cycles.values()
    assert cycle.plan is not None, "the write that binds it is being done"
    effects = preempt(run)
    assert (deleted(effects), reported(effects)) == (["low"], ["Preempted by pod uid-p on node n"])
