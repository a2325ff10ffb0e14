"""Tests of the effects that the scheduling driver requests after each event."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.framework.status import Code, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Plan
from kschedd.queue.operations import Activate, AssumedPodForgotten, AttemptFailed, EventsObserved, EvictionEnded
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import (
    BeginAttempt,
    CompleteAttempt,
    EvictionFailed,
    Observe,
    PlansExecuted,
    PluginCalled,
    PodsNominated,
    PodsPopped,
    Resume,
    ResumeDecided,
    ResumeReady,
    ResumeStopped,
    Tick,
)
from kschedd.scheduling.popped import MOST_POPPED
from kschedd.scheduling.records import AttemptRecord, PodBound, PodPreempted
from tests.scheduling.driven import NOW, Driven, Raw, node, pod


def names(pods: Sequence[Pod]) -> list[str]:
    return [one.name for one in pods]


def operations(effects: Effects) -> list[str]:
    return [type(operation).__name__ for operation in effects.queue]


# -- an attempt that finds a node ------------------------------------------------------------------------------


def test_a_pod_that_has_its_node_is_released_and_its_plan_is_to_be_executed() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    assert isinstance(run.attempt("p"), AssumedPod)
    effects = run.driver.take_effects()
    assert effects.released == ["uid-p"]
    [wanted] = effects.plans
    assert (wanted.uid, wanted.plan.writes) == ("uid-p", (Bind("default", "p", "uid-p", "n"),))
    assert list(run.driver.bindings.cycles) == ["uid-p"]
    [record] = effects.happened
    assert isinstance(record, AttemptRecord)
    assert (record.node, record.feasible, record.visited, record.message) == ("n", 1, 1, "")

    run.driver.step(PlansExecuted((("uid-p", None),)), NOW + 1)
    effects = run.driver.take_effects()
    [bound] = effects.happened
    assert isinstance(bound, PodBound)
    assert (bound.pod, bound.uid, bound.node) == ("default/p", "uid-p", "n")
    assert run.driver.bindings.cycles == {}
    assert not effects.queue


@pytest.mark.parametrize("flushed", [True, False])
def test_a_bound_pod_that_no_event_had_woken_is_counted(flushed: bool) -> None:
    run = Driven()
    run.see(node(), pod("p"))
    entry = run.entry("p")
    entry.was_flushed = flushed
    attempt = run.driver.step(BeginAttempt(entry))
    run.driver.step(CompleteAttempt(entry, drive(attempt)), NOW)
    run.driver.step(PlansExecuted((("uid-p", None),)), NOW)
    [family] = [each for each in run.driver.metrics() if each.metric.name.endswith("pod_scheduled_after_flush_total")]
    assert family.samples == {(): int(flushed)}


def test_effects_are_handed_out_once() -> None:
    run = Driven()
    run.see(node())
    assert run.driver.take_effects()
    assert not run.driver.take_effects()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"deletionTimestamp": "2025-01-01T00:00:00Z"}, "deleted", id="that-is-being-deleted"),
        pytest.param({"uid": "another"}, "replaced", id="whose-name-is-anothers-by-now"),
    ],
)
def test_a_popped_pod_is_passed_over(change: Raw, why: str) -> None:
    run = Driven()
    run.see(node(), pod("p"))
    entry = run.entry("p")
    run.see(pod("p", **{"resourceVersion": "2", **change}))
    run.driver.take_effects()
    assert run.driver.step(BeginAttempt(entry)) is None, why
    effects = run.driver.take_effects()
    assert effects.released == ["uid-p"]
    assert not effects.happened


def test_a_popped_pod_whose_profile_is_gone_is_passed_over() -> None:
    run = Driven()
    raw = pod("p")
    raw["spec"]["schedulerName"] = "other"
    run.see(node(), raw)
    assert run.driver.step(BeginAttempt(run.entry("p"))) is None


# -- one that does not -----------------------------------------------------------------------------------------


def test_a_pod_that_fits_nowhere_goes_back_and_is_told_why() -> None:
    run = Driven()
    run.see(node(cpu="1"), pod("p", cpu="2"))
    failed = run.attempt("p")
    assert isinstance(failed, FailedAttempt)
    effects = run.driver.take_effects()
    [back] = effects.queue
    assert isinstance(back, AttemptFailed)
    assert (back.pod.name, back.unschedulable_plugins, back.evicting) == ("p", {"NodeResourcesFit"}, False)
    [patch] = effects.writes
    assert isinstance(patch, MergePatch)
    assert patch.patch["status"]["conditions"][0]["message"] == failed.message
    assert failed.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    [record] = effects.happened
    assert isinstance(record, AttemptRecord)
    assert (record.node, record.visited, record.message) == ("", 1, failed.message)
    assert effects.released == []


def test_a_pod_that_is_gone_by_then_is_released_and_its_status_written_as_upstream_tries_to() -> None:
    run = Driven()
    run.see(node(cpu="1"), pod("p", cpu="2"))
    entry = run.entry("p")
    attempt = run.driver.step(BeginAttempt(entry))
    assert attempt is not None
    result = drive(attempt)
    run.goes("p")
    run.driver.take_effects()
    run.driver.step(CompleteAttempt(entry, result), NOW)
    effects = run.driver.take_effects()
    assert effects.released == ["uid-p"]
    assert effects.queue == []
    [patch] = effects.writes
    assert isinstance(patch, MergePatch)
    assert patch.patch["metadata"] == {"uid": "uid-p"}


def test_a_preemptor_is_handed_back_before_its_victims_are_evicted() -> None:
    run = Driven()
    run.see(node(cpu="1"), pod("victim", on="n"), pod("p", priority=9))
    failed = run.attempt("p")
    assert isinstance(failed, FailedAttempt)
    effects = run.driver.take_effects()
    [back] = effects.queue
    assert isinstance(back, AttemptFailed)
    assert back.evicting
    assert back.victims == {"uid-victim"}
    [eviction] = effects.evictions
    assert eviction.pod.name == "p"
    assert [type(write) for write in eviction.writes] == [MergePatch, Delete]
    assert [type(entry) for entry in effects.happened] == [AttemptRecord, PodPreempted]
    assert names(run.driver.nominator.on_node("n")) == ["p"]

    run.driver.step(EvictionFailed(eviction.pod))
    [ended, again] = run.driver.take_effects().queue
    assert isinstance(ended, EvictionEnded)
    assert isinstance(again, Activate)
    assert names(again.pods) == ["p"]


# -- nominations -----------------------------------------------------------------------------------------------


def preempting() -> Driven:
    """Return a run in which the pod `p` is nominated to the node `n`, whose victim is still running."""
    run = Driven()
    run.see(node(cpu="1"), pod("victim", on="n"), pod("p", priority=9))
    run.attempt("p")
    return run


def test_the_next_attempt_sees_the_nomination_of_the_one_before() -> None:
    run = preempting()
    run.goes("victim")
    run.see(pod("q"))
    assert isinstance(run.attempt("q"), FailedAttempt)
    assert isinstance(run.attempt("p"), AssumedPod)
    assert not run.driver.nominator


@pytest.mark.parametrize(
    ("then", "nominated"),
    [
        pytest.param(lambda run: run.goes("p"), [], id="ends-when-the-pod-goes"),
        pytest.param(lambda run: run.see(pod("p", priority=9, on="n", resourceVersion="2")), [], id="or-has-a-node"),
        pytest.param(
            lambda run: run.see(pod("p", priority=9, resourceVersion="2", labels={"a": "b"})),
            ["p"],
            id="survives-an-update-by-those-who-do-not-know-of-it-yet",
        ),
        pytest.param(
            lambda run: run.see(pod("p", priority=9, resourceVersion="2", nominated="other")),
            [],
            id="gives-way-to-the-api-servers-word",
        ),
    ],
)
def test_a_nomination(then: Any, nominated: list[str]) -> None:
    run = preempting()
    then(run)
    assert names(run.driver.nominator.on_node("n")) == nominated


def test_a_nomination_that_a_pod_comes_with_counts_once_the_queue_says_that_it_is_active() -> None:
    run = Driven()
    run.see(node(), pod("p", nominated="n"))
    assert not run.driver.nominator
    found = run.objects["Pod", "default/p"]
    assert isinstance(found, Pod)
    run.driver.step(PodsNominated((found,)))
    assert names(run.driver.nominator.on_node("n")) == ["p"]


def test_a_nomination_of_a_pod_that_went_meanwhile_does_not_count() -> None:
    run = Driven()
    run.see(node(), pod("p", nominated="n"))
    found = run.objects["Pod", "default/p"]
    assert isinstance(found, Pod)
    run.goes("p")
    run.driver.step(PodsNominated((found,)))
    assert not run.driver.nominator


def test_a_nomination_written_during_an_attempt_does_not_count_in_it() -> None:
    run = Driven()
    run.see(node(), pod("p", cpu="9"))
    entry = run.entry("p")
    attempt = run.driver.step(BeginAttempt(entry))
    run.see(pod("p", cpu="9", nominated="n", resourceVersion="2"))
    assert not run.driver.nominator
    assert isinstance(run.driver.step(CompleteAttempt(entry, drive(attempt)), NOW), FailedAttempt)


def test_as_many_pods_are_wanted_while_some_are_nominated_and_none_when_no_attempt_is_allowed() -> None:
    run = Driven()
    assert run.driver.popped.wanted == MOST_POPPED
    assert preempting().driver.popped.wanted == MOST_POPPED
    run.driver.popped.attempts_allowed = 3
    assert run.driver.popped.wanted == 3
    run.see(node(), pod("p"))
    run.attempt("p")
    assert run.driver.popped.wanted == 2


def test_no_pod_is_tried_while_no_attempt_is_allowed() -> None:
    run = Driven()
    run.see(node(), pod("p"), pod("q"))
    run.driver.step(PodsPopped([run.entry("p")]))
    run.driver.popped.attempts_allowed = 0
    assert (run.driver.popped.take(), run.driver.popped.has_next, run.driver.popped.wanted) == (None, False, 0)
    run.driver.popped.attempts_allowed = 2
    assert run.driver.popped.wanted == 0  # one pod is waiting for an attempt
    assert run.driver.popped.take() is not None
    assert run.driver.popped.wanted == 2


def test_the_queue_hears_which_observations_a_failed_attempt_saw() -> None:
    run = Driven()
    run.see(node(cpu="1"), pod("p", cpu="2"))
    entry = run.entry("p")
    attempt = run.driver.step(BeginAttempt(entry))
    assert attempt is not None
    run.see(pod("of another"))  # while the attempt waits for a plugin
    run.driver.step(CompleteAttempt(entry, drive(attempt)), NOW)
    *_, seen, unseen, failed = run.driver.take_effects().queue
    assert isinstance(seen, EventsObserved)
    assert isinstance(unseen, EventsObserved)
    assert isinstance(failed, AttemptFailed)
    assert (seen.number, unseen.number, failed.seen) == (2, 3, 2)


def test_pods_handed_out_later_overtake_less_important_ones_that_wait() -> None:
    run = Driven()
    run.see(node(), *(pod(name, priority=value) for name, value in (("a", 5), ("b", 1), ("c", 9), ("d", 3))))
    run.driver.step(PodsPopped([run.entry("a"), run.entry("b")]))
    run.driver.step(PodsPopped([run.entry("c")]))
    run.driver.step(PodsPopped([run.entry("d")]))
    order = []
    while (entry := run.driver.popped.take()) is not None:
        order.append(entry.pod.name)
    assert order == ["c", "a", "d", "b"]


def test_active_pods_overtake_those_popped_before_their_backoff_expired() -> None:
    run = Driven()
    run.see(node(), *(pod(name, priority=value) for name, value in (("a", 5), ("b", 4), ("c", 9), ("d", 3))))
    early = [run.entry(name) for name in ("a", "b", "c")]
    for entry, expires in zip(early, (7, 7, 8), strict=True):
        entry.popped_early = expires
    run.driver.step(PodsPopped(early))
    run.driver.step(PodsPopped([run.entry("d")]))
    order = []
    while (entry := run.driver.popped.take()) is not None:
        order.append(entry.pod.name)
    assert order == ["d", "a", "b", "c"]


def test_a_popped_pod_that_has_returned_to_the_queue_is_dropped() -> None:
    run = Driven()
    run.see(node(), *(pod(name) for name in "abc"))
    run.driver.step(PodsPopped([run.entry(name) for name in "abc"]))
    run.driver.popped.hand_back("uid-b")
    assert [entry.pod.name for entry in run.driver.popped.entries] == ["a", "c"]


def test_pods_of_a_group_are_attempted_one_by_one_in_releases_without_groups() -> None:
    run = Driven()
    raw = pod("p")
    raw["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    run.see(raw)
    assert run.driver.popped.in_group(run.entry("p")) is False


@pytest.mark.parametrize("attempted", [0, 1, MOST_POPPED - 1])
def test_the_queues_head_waits_for_no_attempt_of_the_batch_that_was_popped_before_it(attempted: int) -> None:
    run = Driven()
    low = [f"low{number}" for number in range(MOST_POPPED)]
    run.see(node(), *(pod(name, priority=1) for name in low), pod("head", priority=9))
    run.driver.step(PodsPopped([run.entry(name) for name in low]))
    for _ in range(attempted):
        assert run.driver.popped.take() is not None
    run.driver.step(PodsPopped([run.entry("head")]))
    entry = run.driver.popped.take()
    assert entry is not None
    assert entry.pod.name == "head"
    assert len(run.driver.popped.entries) == MOST_POPPED - attempted


# -- binding cycles --------------------------------------------------------------------------------------------


class Recording:
    """A plugin class for one test, which records calls of Unreserve."""

    undone: ClassVar[list[str]]

    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        return None

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        type(self).undone.append(pod.name)


class Holds(Recording):
    name: ClassVar = "Holds"
    undone: ClassVar[list[str]] = []

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return Status(Code.WAIT), 30.0


class Plans(Recording):
    name: ClassVar = "Plans"
    undone: ClassVar[list[str]] = []

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        def ready(cluster: SchedulerCache) -> Status | None:
            found = cluster.get("ConfigMap", "default/p")
            if found is None:
                return None
            if found.raw["data"]["word"] == "raise":
                raise ValueError("no such word")
            return Status(Code.SUCCESS) if found.raw["data"]["word"] == "yes" else error("it said no")

        return Plan((Create(answer("", "asked")),), ready, 10.0, error("nobody said anything"))


def answer(word: str, name: str = "p") -> Raw:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"word": word}}


@pytest.fixture(autouse=True)
def _nothing_undone() -> None:
    Holds.undone.clear()
    Plans.undone.clear()


def held() -> Driven:
    run = Driven(Holds)
    run.see(node(), pod("p"))
    run.attempt("p")
    return run


# -- where a pod is going, before it is bound ----------------------------------------------------------------------


class WorksBefore:
    name: ClassVar[str] = "WorksBefore"

    def pre_bind_pre_flight(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        word: str = pod.metadata.get("labels", {}).get("work", "some")
        answers = {"none": Status(Code.SKIP), "broken": error("cannot say"), "sure": Status(Code.SUCCESS)}
        return answers.get(word)

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan | None:
        return None


def nominated_writes(run: Driven) -> list[Any]:
    plans = run.driver.take_effects().plans
    return [write.patch["status"] for plan in plans for write in plan.plan.writes if isinstance(write, MergePatch)]


def test_a_pod_is_told_where_it_goes_before_work_in_pre_bind_and_bound_even_if_that_is_refused() -> None:
    run = Driven(WorksBefore, version=V1_36)
    run.see(node(), pod("p"))
    run.attempt("p")
    assert nominated_writes(run) == [{"nominatedNodeName": "n"}]
    run.driver.step(PlansExecuted((("uid-p", error("no")),)), NOW)
    assert run.called() == "WorksBefore"
    [wanted] = run.driver.take_effects().plans
    assert wanted.plan.writes == (Bind("default", "p", "uid-p", "n"),)


@pytest.mark.parametrize(
    ("version", "meta"),
    [
        pytest.param(V1_34, {}, id="before-1.35"),
        pytest.param(V1_36, {"labels": {"work": "none"}}, id="without-work"),
    ],
)
def test_a_pod_is_bound_without_that(version: KubernetesVersion, meta: Raw) -> None:
    run = Driven(WorksBefore, version=version)
    run.see(node(), pod("p", **meta))
    run.attempt("p")
    assert run.called() == "WorksBefore"
    assert nominated_writes(run) == []


@pytest.mark.parametrize("word", ["some", "sure"])
def test_a_preflight_that_succeeds_has_work(word: str) -> None:
    run = Driven(WorksBefore, version=V1_36)
    run.see(node(), pod("p", labels={"work": word}))
    run.attempt("p")
    assert nominated_writes(run) == [{"nominatedNodeName": "n"}]


def test_a_plugin_without_a_preflight_is_assumed_to_have_work() -> None:
    run = Driven(Binds, version=V1_36)
    run.see(node(), pod("p"))
    run.attempt("p")
    assert nominated_writes(run) == [{"nominatedNodeName": "n"}]


def test_a_pod_that_was_told_already_is_not_told_again() -> None:
    run = Driven(WorksBefore, version=V1_36)
    run.see(node(), pod("p", nominated="n"))
    run.attempt("p")
    assert run.called() == "WorksBefore"
    assert nominated_writes(run) == []


def test_a_plugin_that_cannot_say_whether_it_has_work_fails_the_binding() -> None:
    run = Driven(WorksBefore, version=V1_36)
    run.see(node(), pod("p", labels={"work": "broken"}))
    run.attempt("p")
    [failed] = run.driver.take_effects().failures
    assert failed.message == 'running PreBindPreFlight "WorksBefore": cannot say'


def test_a_pod_that_waits_at_permit_is_told_where_it_goes() -> None:
    run = Driven(Holds, version=V1_36)
    run.see(node(), pod("p"))
    run.attempt("p")
    assert nominated_writes(run) == [{"nominatedNodeName": "n"}]
    run.driver.step(PlansExecuted((("uid-p", None),)), NOW)
    assert list(run.driver.bindings.permit_waits) == ["uid-p"]


def test_a_pod_deleted_before_it_waits_at_permit_is_rejected() -> None:
    run = Driven(Holds, version=V1_36)
    run.see(node(), pod("p"))
    run.attempt("p")
    run.goes("p")
    run.driver.step(PlansExecuted((("uid-p", None),)), NOW)
    assert run.driver.bindings.cycles == {}


def test_a_pod_at_permit_waits_in_flight_and_goes_on_when_it_is_allowed() -> None:
    run = held()
    effects = run.driver.take_effects()
    assert [cycle.uid for cycle in effects.permit_waits] == ["uid-p"]
    assert (effects.released, effects.plans) == ([], [])
    assert list(run.driver.bindings.deadlines()) == [NOW + 30.0]
    run.driver.step(ResumeDecided(), NOW + 1)
    assert not run.driver.take_effects()

    assert run.machine.waiting.allow("uid-p", "Holds")
    assert run.driver.bindings.any_decided
    assert list(run.driver.bindings.deadlines()) == []
    run.driver.step(ResumeDecided(), NOW + 1)
    effects = run.driver.take_effects()
    assert (effects.resumed, effects.released, len(effects.plans)) == (["uid-p"], ["uid-p"], 1)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        pytest.param(
            lambda run: run.driver.step(Tick(), NOW + 30.0),
            "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Holds.",
            id="when-time-is-up",
        ),
        pytest.param(
            lambda run: run.machine.waiting.reject("uid-p", "Holds", "not today"),
            "0/1 nodes are available: 1 not today.",
            id="when-it-is-rejected",
        ),
    ],
)
def test_a_pod_at_permit_leaves_its_node(end: Any, message: str) -> None:
    run = held()
    end(run)
    run.driver.take_effects()
    run.driver.step(ResumeDecided(), NOW + 30.0)
    effects = run.driver.take_effects()
    assert [failed.message for failed in effects.failures] == [message]
    assert operations(effects) == ["AttemptFailed", "AssumedPodForgotten"]
    left = effects.queue[1]
    assert isinstance(left, AssumedPodForgotten)
    assert not left.for_itself  # it was rejected, so its own removal must not wake it
    [record] = effects.happened
    assert isinstance(record, AttemptRecord)
    assert (record.node, record.of_binding) == ("", True)
    assert Holds.undone == ["p"]
    assert run.machine.cluster.pod_count == 0


def test_a_pod_at_permit_before_its_time_keeps_waiting() -> None:
    run = held()
    run.driver.step(Tick(), NOW + 29.9)
    assert not run.driver.bindings.any_decided


def test_a_pod_deleted_at_permit_is_rejected_and_the_queue_hears_of_it_with_the_event() -> None:
    run = held()
    run.driver.take_effects()
    run.goes("p")
    [observed] = run.driver.take_effects().queue
    assert isinstance(observed, EventsObserved)
    assert observed.rejected == {"uid-p"}
    run.driver.step(ResumeDecided(), NOW + 1)
    effects = run.driver.take_effects()
    assert effects.released == ["uid-p"]
    assert operations(effects) == ["AssumedPodForgotten"]


def planned() -> Driven:
    """Return a run with a pod whose plan has been written and is not ready."""
    run = Driven(Plans)
    run.see(node(), pod("p"))
    run.attempt("p")
    assert run.called() == "Plans"
    [wanted] = run.driver.take_effects().plans
    assert wanted.plan.ready is not None
    run.driver.step(PlansExecuted((("uid-p", None),)), NOW)
    run.driver.step(ResumeReady(), NOW + 1)
    assert not run.driver.take_effects()
    return run


def test_a_plan_that_is_ready_lets_the_binding_go_on() -> None:
    run = planned()
    [cycle] = run.driver.bindings.cycles.values()
    assert list(run.driver.bindings.deadlines()) == [NOW + 10.0]
    assert not run.driver.step(Resume(cycle), NOW + 1), "it waits on"
    run.see(answer("yes"))
    run.driver.take_effects()
    run.driver.step(ResumeReady(), NOW + 2)
    effects = run.driver.take_effects()
    assert effects.resumed == ["uid-p"]
    assert [wanted.plan.writes for wanted in effects.plans] == [(Bind("default", "p", "uid-p", "n"),)]


@pytest.mark.parametrize(
    ("word", "at", "why"),
    [
        pytest.param("no", NOW + 1, "it said no", id="it-says-so"),
        pytest.param("raise", NOW + 1, "ValueError: no such word", id="its-plugin-raises"),
        pytest.param("", NOW + 10, "nobody said anything", id="time-is-up"),
    ],
)
def test_a_plan_that_will_not_be_ready_fails_the_binding_if(word: str, at: float, why: str) -> None:
    run = planned()
    if word:
        run.see(answer(word))
    run.driver.take_effects()
    run.driver.step(ResumeReady(), at)
    effects = run.driver.take_effects()
    [failed] = effects.failures
    assert failed.reason == "SchedulerError"
    assert failed.message.startswith(f'running PreBind plugin "Plans": {why}')
    assert operations(effects) == ["AssumedPodForgotten", "AttemptFailed"]
    left = effects.queue[0]
    assert isinstance(left, AssumedPodForgotten)
    assert left.for_itself
    assert Plans.undone == ["p"]


class Binds:
    """A plugin that binds by a plan; `seen` has the arguments of its other methods."""

    name: ClassVar = "Binds"
    seen: ClassVar[list[str]] = []

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        self.seen.append(f"pre_bind {pod.name}")
        return unschedulable("not now") if pod.name == "unlucky" else None

    def post_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        self.seen.append(f"post_bind {pod.name}")


def test_a_call_of_an_out_of_tree_plugin_is_a_step_of_its_binding_cycle_alone() -> None:
    Binds.seen.clear()
    run = Driven(Binds)
    run.see(node(cpu="4"), pod("p"), pod("q"))
    run.attempt("p")
    [p] = run.driver.take_effects().calls
    run.attempt("q")
    [q] = run.driver.take_effects().calls
    assert Binds.seen == []  # no method was called yet, and another pod has been attempted meanwhile
    run.driver.step(PluginCalled(q.uid, q.run()), NOW)
    [wanted] = run.driver.take_effects().plans
    assert wanted.uid == "uid-q"
    run.driver.step(PlansExecuted((("uid-q", None),)), NOW)
    assert run.called() == "Binds"
    assert [(type(entry), entry.pod) for entry in run.driver.take_effects().happened] == [(PodBound, "default/q")]
    assert Binds.seen == ["pre_bind q", "post_bind q"]
    run.driver.step(PluginCalled(p.uid, p.run()), NOW)
    assert [wanted.uid for wanted in run.driver.take_effects().plans] == ["uid-p"]


class RaisesAtBind:
    name: ClassVar = "RaisesAtBind"

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        raise OverflowError("too much")


def test_an_exception_in_a_call_of_a_binding_cycle_fails_the_binding() -> None:
    run = Driven(RaisesAtBind)
    run.see(node(), pod("p"))
    run.attempt("p")
    assert run.called() == "RaisesAtBind"
    [failed] = run.driver.take_effects().failures
    assert failed.reason == "SchedulerError"
    assert failed.message.startswith('running PreBind plugin "RaisesAtBind": ')
    assert "too much" in failed.message


def test_a_binding_that_fails_within_an_attempt_is_undone_after_it() -> None:
    run = Driven(Binds)
    run.see(node(cpu="4"), pod("unlucky"), pod("q"))
    run.attempt("unlucky")
    [wanted] = run.driver.take_effects().calls
    entry = run.entry("q")
    attempt = run.driver.step(BeginAttempt(entry))
    assert attempt is not None
    requested = run.machine.cluster.table.requested.copy()
    run.driver.step(PluginCalled(wanted.uid, wanted.run()), NOW)
    assert not run.driver.take_effects()
    assert (run.machine.cluster.table.requested == requested).all()  # as the attempt found it
    run.driver.step(CompleteAttempt(entry, drive(attempt)), NOW)
    effects = run.driver.take_effects()
    assert [failed.message for failed in effects.failures] == ["not now"]
    assert operations(effects) == ["AttemptFailed", "AssumedPodForgotten"]


class RefusesToBind(Binds):
    """A plugin that rejects the pod at the extension point in its name: PreBind or Bind."""

    name: ClassVar = "RefusesToBind"

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        return unresolvable("no license", "no seat") if pod.name == "at-pre-bind" else None

    def bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        return unresolvable("no license", "no seat") if pod.name == "at-bind" else None


@pytest.mark.parametrize("name", ["at-pre-bind", "at-bind"])
def test_a_rejection_after_permit_is_told_as_it_is_and_the_pod_backs_off(name: str) -> None:
    """Check that RunPreBindPlugins and RunBindPlugins return a rejection unchanged.

    Only errors get the prefix "running PreBind plugin". A rejection after Permit is no FitError, so no plugin is
    recorded for it, and the pod's own removal does not wake it.
    """
    bind = {"disabled": [{"name": "DefaultBinder"}]}
    run = Driven(RefusesToBind, plugins={"multiPoint": {"enabled": [{"name": "RefusesToBind"}]}, "bind": bind})
    run.see(node(cpu="4"), pod(name))
    run.attempt(name)
    effects = run.driver.take_effects()
    while effects.calls:
        [wanted] = effects.calls
        run.driver.step(PluginCalled(wanted.uid, wanted.run()), NOW)
        effects = run.driver.take_effects()
    [failed] = effects.failures
    assert (failed.reason, failed.message) == ("Unschedulable", "no license, no seat")
    assert (failed.unschedulable_plugins, failed.pending_plugins) == (frozenset(), frozenset())
    assert operations(effects) == ["AttemptFailed", "AssumedPodForgotten"]
    assert not run.machine.cluster.assumed_pods()


def test_a_refused_write_fails_the_binding_and_takes_everything_back() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    run.attempt("p")
    run.driver.take_effects()
    run.driver.step(PlansExecuted((("uid-p", error('pods "p" not found')),)), NOW + 1)
    effects = run.driver.take_effects()
    [failed] = effects.failures
    assert failed.message == 'running Bind plugin "DefaultBinder": pods "p" not found'
    assert run.machine.cluster.pod_count == 0
    assert run.driver.bindings.cycles == {}


class SlowToUndo(Recording):
    """A plugin during whose Unreserve the driver requests effects, as it does while it waits for a plugin."""

    name: ClassVar = "SlowToUndo"
    undone: ClassVar[list[str]] = []
    meanwhile: ClassVar[Callable[[], object]]

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        type(self).meanwhile()


def test_effects_taken_while_a_plugin_is_waited_for_are_never_added_to() -> None:
    run = Driven(SlowToUndo)
    run.see(node(), pod("p"))
    run.attempt("p")
    taken: list[Effects] = [run.driver.take_effects()]
    SlowToUndo.meanwhile = staticmethod(lambda: taken.append(run.driver.take_effects()))
    run.driver.step(PlansExecuted((("uid-p", error("not now")),)), NOW)
    meanwhile, after = taken[1], run.driver.take_effects()
    assert not meanwhile
    assert operations(after) == ["AssumedPodForgotten", "AttemptFailed"]


class Refuses(Recording):
    name: ClassVar = "Refuses"
    undone: ClassVar[list[str]] = []

    def permit(self, state: Any, pod: Pod, node_name: str) -> Status:
        return unschedulable("never")


def test_a_pod_that_permit_refuses_is_never_bound() -> None:
    run = Driven(Refuses)
    run.see(node(), pod("p"))
    failed = run.attempt("p")
    assert isinstance(failed, FailedAttempt)
    assert failed.unschedulable_plugins == {"Refuses"}
    assert run.driver.take_effects().plans == []
    assert Refuses.undone == ["p"]


# -- the cluster -----------------------------------------------------------------------------------------------


def test_an_update_of_an_assumed_pod_is_told_to_the_queue_as_such() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    run.attempt("p")
    run.driver.take_effects()
    run.see(pod("p", resourceVersion="2", labels={"a": "b"}))
    [observed] = run.driver.take_effects().queue
    assert isinstance(observed, EventsObserved)
    assert (observed.assumed, observed.rejected) == ({"uid-p"}, set())


# -- what the driver's owner reads -----------------------------------------------------------------------------


def test_pods_that_a_plugin_activates_are_an_effect_once() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    run.driver.take_effects()
    assert not run.driver.has_effects
    assert run.machine.handle.activate is not None
    run.machine.handle.activate([run.entry("p").pod])
    assert run.driver.has_effects
    [again] = run.driver.take_effects().queue
    assert isinstance(again, Activate)
    assert names(again.pods) == ["p"]
    assert not run.driver.has_effects


def test_the_driver_works_while_a_pod_is_popped_attempted_or_bound() -> None:
    run = Driven()
    assert run.driver.working is False
    assert (run.driver.observer.version, run.driver.observer.count) == (0, 0), "nothing is observed yet"
    run.see(node(), pod("p"))
    run.driver.step(PodsPopped([run.entry("p")]))
    assert run.driver.working is True
    entry = run.driver.popped.take()
    assert entry is not None
    attempt = run.driver.step(BeginAttempt(entry))
    assert run.driver.working is True
    run.driver.debugger.pause(NOW)
    assert run.driver.working is False, "an attempt that the debugger has stopped does not end by itself"
    run.driver.debugger.resume()
    run.driver.step(CompleteAttempt(entry, drive(attempt)), NOW)
    assert run.driver.working is True, "the binding is being written"
    run.driver.step(PlansExecuted((("uid-p", None),)), NOW)
    assert run.driver.working is False


def test_a_stopped_binding_continues_once_the_debugger_lets_it() -> None:
    run = Driven(Binds)
    run.see(node(), pod("p"))
    run.driver.debugger.add(BreakpointSpec(plugin="Binds", point="preBind"))
    run.attempt("p")
    [stopped] = run.driver.bindings.stopped.values()
    assert stopped.stopped_at is not None
    assert (stopped.uid, stopped.stopped_at.point, stopped.stopped_at.plugin) == ("uid-p", "preBind", "Binds")
    assert not run.driver.any_to_resume
    run.driver.step(ResumeStopped(), NOW)
    assert list(run.driver.bindings.stopped) == ["uid-p"]
    run.driver.debugger.resume()
    assert run.driver.any_to_resume
    run.driver.step(ResumeStopped(), NOW)
    assert not run.driver.any_to_resume
    assert run.called() == "Binds"


def test_the_steps_of_the_latest_attempt_have_durations() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    run.attempt("p")
    steps = run.driver.steps_of("default-scheduler")
    assert (steps["PreFilter"], steps["Filter"]) == (0.001, 0.001)


class Listens:
    """A listener that lists the inputs and their times, the effects, and the times of completed attempts."""

    def __init__(self) -> None:
        self.seen: list[tuple[type[Any], float]] = []
        self.effects: list[Effects] = []
        self.completed: list[tuple[float, float]] = []

    def given(self, given: Any, now: float, step: Callable[[Any, float], Any]) -> Any:
        self.seen.append((type(given), now))
        return step(given, now)

    def completing(self, work: Any, now: float, took_s: float) -> Any:
        self.completed.append((now, took_s))
        return work

    def taken(self, effects: Effects) -> None:
        self.effects.append(effects)


def test_a_listener_observes_inputs_with_their_times_and_effects() -> None:
    run = Driven()
    listener = Listens()
    run.driver.listener = listener
    run.see(node(), pod("p"))
    entry = run.entry("p")
    attempt = run.driver.step(BeginAttempt(entry), NOW)
    outcome = drive(run.driver.completing(entry, drive(attempt), NOW + 1, 0.25))
    assert isinstance(outcome, AssumedPod)
    effects = run.driver.take_effects()
    assert listener.seen == [(Observe, 0.0), (Observe, 0.0), (BeginAttempt, NOW)]
    assert listener.completed == [(NOW + 1, 0.25)]
    assert listener.effects == [effects]


def test_attempts_and_failures_are_counted_once_even_if_the_binding_fails() -> None:
    run = Driven()
    run.see(node(cpu="2"), pod("p"), pod("q", cpu="9"))
    records = run.driver.attempts.records
    assert (records.attempts, records.failures) == (0, 0)
    run.attempt("p")
    assert (records.attempts, records.failures) == (1, 0)
    run.driver.take_effects()
    run.driver.step(PlansExecuted((("uid-p", error("no")),)), NOW)
    assert (records.attempts, records.failures) == (1, 0)
    run.attempt("q")
    assert (records.attempts, records.failures) == (2, 1)
    name = "scheduler_scheduling_algorithm_duration_seconds"
    [algorithm] = [one for one in run.driver.metrics() if one.metric.name == name]
    assert [sample.count for sample in algorithm.samples.values()] == [2]


def test_the_lead_of_a_node_is_recorded_on_request_if_another_node_was_feasible() -> None:
    run = Driven()
    run.see(node("a", cpu="2"), node("b", cpu="4"), pod("p"), pod("q"), pod("r", cpu="3"))

    def record(name: str) -> AttemptRecord:
        run.attempt(name)
        [found] = [one for one in run.driver.take_effects().happened if isinstance(one, AttemptRecord)]
        return found

    assert record("p").lead is None
    run.driver.record_leads()
    of_q = record("q")
    assert of_q.lead is not None
    assert of_q.score is not None
    assert of_q.node != of_q.lead.runner_up
    assert 0 <= of_q.lead.margin < of_q.score
    assert record("r").lead is None, "only b has 3 CPUs"
