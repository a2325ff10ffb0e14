"""Tests of forks of a driver while pods are being bound: each binding continues at its current stage."""

from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Bind, Create, MergePatch, Plan
from kschedd.queue.snapshot import EntryCopies
from kschedd.scheduling.binding.cycle import Stage
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import Allow, PlansExecuted, PluginCalled, ResumeDecided
from kschedd.scheduling.snapshots.fork import DriverSnapshot
from tests.scheduling.driven import NOW, Driven, node, pod


class Slow:
    """A plugin that makes the pod wait at Permit, then writes in PreBind."""

    name: ClassVar[str] = "Slow"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return Status(Code.WAIT), 30.0

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        meta = {"name": pod.name, "namespace": "default"}
        return Plan((Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}),))


class Last:
    """A plugin that writes in PreBind, and after the binding."""

    name: ClassVar[str] = "Last"

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> None: ...

    def post_bind(self, state: Any, pod: Pod, node_name: str) -> None: ...


def forked(driver: SchedulingDriver) -> SchedulingDriver:
    taken = DriverSnapshot.of(driver)
    return taken.restored(EntryCopies(taken.states), None, lambda pod: False, NOW)


def answered(driver: SchedulingDriver, effects: Effects) -> str:
    """Answer the one effect for which the binding waits; return it."""
    if effects.calls:
        [called] = effects.calls
        driver.step(PluginCalled(called.uid, called.run()), NOW)
        return f"call of {called.plugin}"
    if effects.plans:
        [wanted] = effects.plans
        driver.step(PlansExecuted(((wanted.uid, None),)), NOW)
        [write] = wanted.plan.writes
        return {MergePatch: "nomination", Create: "write of Slow", Bind: "binding"}[type(write)]
    driver.step(Allow("uid-p", "Slow"))
    driver.step(ResumeDecided(), NOW)
    return "permit"


def steps(driver: SchedulingDriver) -> list[str]:
    done = []
    while driver.bindings.cycles:
        done.append(answered(driver, driver.take_effects()))
    return done


ALL = ["nomination", "permit", "call of Slow", "write of Slow", "call of Last", "binding", "call of Last"]


def begun() -> SchedulingDriver:
    run = Driven(Slow, Last, version=V1_36)
    run.see(node(), pod("p"))
    run.attempt("p")
    return run.driver


def test_a_binding_cycle_passes_all_stages() -> None:
    assert steps(begun()) == ALL


@pytest.mark.parametrize("place", range(len(ALL)))
def test_a_fork_takes_the_steps_that_the_original_has_left(place: int) -> None:
    driver = begun()
    for _ in range(place):
        answered(driver, driver.take_effects())
    fork = forked(driver)
    left = ALL[place:]
    if left[0] == "write of Slow":  # the plugin repeats the plan
        left = ["call of Slow", *left]
    assert steps(fork) == left
    assert fork.bindings.pods_bound == 1
    assert steps(driver) == ALL[place:]


def test_a_fork_taken_while_the_nomination_is_written_still_waits_at_permit() -> None:
    driver = begun()
    fork = forked(driver)
    answered(fork, fork.take_effects())
    assert list(fork.bindings.permit_waits) == ["uid-p"]
    assert list(driver.bindings.permit_waits) == []


@pytest.mark.parametrize("place", range(len(ALL) - 1))
def test_a_binding_may_fail_in_each_stage_but_the_last(place: int) -> None:
    driver = begun()
    for _ in range(place):
        answered(driver, driver.take_effects())
    cycle = driver.bindings.cycles["uid-p"]
    effects = driver.take_effects()
    if effects.calls:
        driver.step(PluginCalled("uid-p", error("no")), NOW)
    elif effects.plans:
        driver.step(PlansExecuted((("uid-p", error("no")),)), NOW)
    else:
        driver.machine.waiting.reject("uid-p", "Slow", "no")
        driver.step(ResumeDecided(), NOW)
    if cycle.progress.stage is Stage.PERMIT and place == 0:  # a rejected write of the nomination is not a failure
        assert list(driver.bindings.cycles) == ["uid-p"]
    else:
        assert driver.bindings.cycles == {}
        assert driver.bindings.pods_bound == 0
