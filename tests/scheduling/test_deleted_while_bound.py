"""Tests of a pod that is deleted while it is being bound: when its resources are free for other pods."""

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.queue.operations import AssumedPodForgotten, EventsObserved
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import PlansExecuted, ResumeDecided, ResumeReady
from tests.scheduling.driven import NOW, Driven, pod
from tests.scheduling.test_preempted_in_memory import HoldsLow, WaitsForever, low_in

VERSIONS = [pytest.param(V1_34, False, id="1.34"), pytest.param(V1_36, True, id="1.36")]
DELETING = {"deletionTimestamp": "2025-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30, "resourceVersion": "2"}


def others_place(run: Driven) -> str:
    """Return the node to which another pod of the same size is scheduled now, or "" if there is none."""
    run.see(pod("other"))
    outcome = run.attempt("other")
    return "" if isinstance(outcome, FailedAttempt) else outcome.pod.node_name


@pytest.mark.parametrize("how", ["is-being-deleted", "is-gone"])
@pytest.mark.parametrize(("version", "forgotten"), VERSIONS)
def test_it_counts_on_its_node_until(version: KubernetesVersion, forgotten: bool, how: str) -> None:
    """Forget the pod at once since v1.35 (handleAssumedPodDeletion); the queue gets an event of the assigned pod."""
    run = low_in(WaitsForever, version)
    run.driver.take_effects()
    if how == "is-gone":
        run.goes("low")
    else:
        run.see(pod("low", **DELETING))
    events, *freed = run.driver.take_effects().queue
    assert isinstance(events, EventsObserved)
    reported = [
        (one.pod.name, one.pod.node_name, one.for_itself) for one in freed if isinstance(one, AssumedPodForgotten)
    ]
    assert reported == ([("low", "n", True)] if forgotten else [])
    assert others_place(run) == ("n" if forgotten else "")


@pytest.mark.parametrize(("version", "forgotten"), VERSIONS)
def test_its_binding_goes_on_and_fails(version: KubernetesVersion, forgotten: bool) -> None:
    run = low_in(WaitsForever, version)
    run.goes("low")
    assert list(run.driver.bindings.plan_waits) == ["uid-low"]
    run.driver.take_effects()
    run.driver.step(ResumeReady(), NOW + 601)
    assert run.driver.bindings.cycles == {}
    assert run.machine.cluster.pod_count == 0
    assert others_place(run) == "n"


@pytest.mark.parametrize(("version", "rejected"), VERSIONS)
def test_one_that_is_being_deleted_is_turned_away_at_permit(version: KubernetesVersion, rejected: bool) -> None:
    run = low_in(HoldsLow, version)
    run.driver.take_effects()
    run.see(pod("low", **DELETING))
    assert run.driver.bindings.any_decided is rejected
    assert run.machine.cluster.pod_count == 1  # Unreserve comes first
    run.driver.step(ResumeDecided(), NOW + 1)
    assert run.machine.cluster.pod_count == (0 if rejected else 1)


def test_a_bound_one_is_none_of_these() -> None:
    run = Driven(version=V1_36)
    run.see({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}})
    run.see(pod("low", cpu="0"))
    assert isinstance(run.attempt("low"), AssumedPod)
    run.driver.step(PlansExecuted((("uid-low", None),)), NOW)
    run.see(pod("low", cpu="0", on="n"))
    run.driver.take_effects()
    run.see(pod("low", cpu="0", on="n", **DELETING))
    assert [type(one) for one in run.driver.take_effects().queue] == [EventsObserved]
    assert run.machine.cluster.pod_count == 1
