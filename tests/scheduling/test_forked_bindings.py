"""Tests of forks of a driver while pods are being bound: each binding continues at its current stage."""

from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.forked_counts import ForkedCounts
from kschedd.config.changing.changes import with_profile_removed, with_weight
from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.framework.writes import Bind, Create, MergePatch, Plan
from kschedd.queue.snapshot import EntryCopies
from kschedd.scheduling.binding.cycle import AssumedPod, Stage
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import (
    Allow,
    BeginAttempt,
    CompleteAttempt,
    PlansExecuted,
    PluginCalled,
    PodsPopped,
    Reconfigure,
    ResumeDecided,
)
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


def forked(driver: SchedulingDriver, *, is_bound: bool = False, **options: bool) -> SchedulingDriver:
    taken = DriverSnapshot.of(driver)
    return taken.restored(EntryCopies(taken.states), None, lambda pod: is_bound, NOW, **options)


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
    assert ("uid-p" in fork.machine.waiting.pods) is ("permit" in left)
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


def test_a_binding_that_succeeded_meanwhile_is_counted_and_not_repeated() -> None:
    fork = forked(begun(), is_bound=True)
    assert (fork.bindings.cycles, fork.bindings.pods_bound) == ({}, 1)
    assert not fork.has_effects


def stopped_in_pre_bind() -> SchedulingDriver:
    """Return a driver whose only binding cycle the debugger has stopped before a PreBind plugin."""
    run = Driven(Last)
    run.see(node(), pod("p"))
    run.driver.debugger.add(BreakpointSpec(point="preBind", plugin="Last"))
    run.attempt("p")
    assert list(run.driver.bindings.stopped) == ["uid-p"]
    return run.driver


def test_only_a_fork_that_copies_the_debugger_stops_a_binding_where_it_is_stopped() -> None:
    driver = stopped_in_pre_bind()
    copied = forked(driver, stopped=True)
    assert list(copied.bindings.stopped) == ["uid-p"]
    assert copied.debugger.stop is not None
    assert copied.debugger.stop.point is copied.bindings.cycles["uid-p"].stopped_at
    assert driver.debugger.stop is not None
    assert driver.debugger.stop.point is not copied.debugger.stop.point
    running = forked(driver)
    assert (running.bindings.stopped, running.debugger.stop) == ({}, None)
    assert steps(running) == ["call of Last", "binding", "call of Last"]


def test_a_stop_elsewhere_stays_where_it_is() -> None:
    driver = stopped_in_pre_bind()
    driver.debugger.resume()
    driver.debugger.pause(NOW)
    copied = forked(driver, stopped=True)
    assert copied.debugger.stop is not None
    assert copied.debugger.stop.point is None
    assert list(copied.bindings.stopped) == ["uid-p"]


def test_a_stopped_binding_that_succeeded_meanwhile_is_no_longer_stopped() -> None:
    copied = forked(stopped_in_pre_bind(), is_bound=True, stopped=True)
    assert (copied.bindings.cycles, copied.bindings.stopped) == ({}, {})


def test_a_snapshot_is_stopped_where_its_attempt_is_stopped() -> None:
    run = Driven(Last)
    run.see(node(), pod("p"))
    assert not DriverSnapshot.of(run.driver).is_stopped
    run.driver.debugger.next()
    attempt = run.driver.step(BeginAttempt(run.entry("p")))
    assert attempt is not None
    next(attempt)
    taken = DriverSnapshot.of(run.driver)
    assert taken.debugger.stop is None, "the repeated attempt stops again"
    assert taken.is_stopped
    assert DriverSnapshot.of(stopped_in_pre_bind()).is_stopped


def test_popped_pods_are_attempted_in_the_fork_in_their_order_with_entries_of_its_own() -> None:
    run = Driven()
    run.see(node(), pod("p"), pod("q"))
    popped = [run.entry("p"), run.entry("q")]
    run.driver.step(PodsPopped(popped))
    fork = forked(run.driver)
    copies = list(fork.popped.entries)
    assert [entry.key for entry in copies] == ["default/p", "default/q"]
    assert not any(copy is entry for copy, entry in zip(copies, popped, strict=True))
    assert list(run.driver.popped.entries) == popped


def test_pods_are_counted_again_only_in_a_fork_that_schedules() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    run = Driven()
    labeled = node(cpu="4")
    labeled["metadata"]["labels"] = {"kubernetes.io/hostname": "n"}
    shy = pod("q", labels={"app": "web"})
    shy["spec"]["affinity"] = apart
    run.see(labeled, pod("p", labels={"app": "web"}, on="n"), shy)
    assert isinstance(forked(run.driver, reading=True).machine.cluster.counts, ForkedCounts)
    fork = forked(run.driver)
    assert not isinstance(fork.machine.cluster.counts, ForkedCounts)
    entry = run.entry("q")
    outcome = fork.step(CompleteAttempt(entry, drive(fork.step(BeginAttempt(entry)))), NOW)
    assert isinstance(outcome, FailedAttempt)
    assert "anti-affinity" in outcome.message


def test_a_binding_that_failed_during_an_attempt_fails_in_the_fork_after_the_attempt() -> None:
    run = Driven(Last)
    run.see(node(cpu="2"), pod("p"), pod("q"))
    assert isinstance(run.attempt("p"), AssumedPod)
    [called] = run.driver.take_effects().calls
    entry = run.entry("q")
    assert run.driver.step(BeginAttempt(entry)) is not None
    run.driver.step(PluginCalled(called.uid, unschedulable("no")), NOW)
    fork = forked(run.driver)
    assert [(assumed.pod.name, failure.message) for assumed, failure in fork.attempts.to_undo] == [("p", "no")]
    assert [each.name for each in fork.machine.cluster.assumed_pods()] == ["p"]
    [again] = fork.popped.entries
    fork.step(CompleteAttempt(again, drive(fork.step(BeginAttempt(again)))), NOW)
    assert [each.name for each in fork.machine.cluster.assumed_pods()] == ["q"]


def test_a_binding_keeps_the_profile_of_its_attempt() -> None:
    run = Driven(Last, profiles=("default-scheduler", "other"))
    run.see(node(), pod("p"))
    run.attempt("p")
    before = run.machine.config
    profile = run.machine.schedulers["default-scheduler"].profile.profile
    for config, same in (
        (before, True),
        (with_weight(before, "default-scheduler", "NodeResourcesFit", 7), False),
        (with_profile_removed(before, "default-scheduler"), False),
    ):
        run.driver.step(Reconfigure(config))
        fork = forked(run.driver)
        kept = fork.bindings.cycles["uid-p"].assumed.framework
        assert kept.profile == profile
        assert (kept in [scheduler.profile for scheduler in fork.machine.schedulers.values()]) is same
        assert steps(fork) == ["call of Last", "binding", "call of Last"]
