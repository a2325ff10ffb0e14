"""Tests of the PodScheduled condition of a failed attempt: when it is written, and its content (updatePod)."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.framework.writes import Delete, MergePatch
from kschedd.queue.entry import NO_PLUGINS, QueuedPod
from kschedd.scheduling.failure import (
    FailedAttempt,
    failed_after_permit,
    failed_on_one_node,
    failure_status,
    stamped,
)
from tests.scheduling.driven import NOW, Driven, node, pod

AT, EARLIER = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
SAID = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available.",
    "lastProbeTime": None,
    "lastTransitionTime": AT,
}
KNOWN = {**SAID, "lastTransitionTime": EARLIER}
READY = {"type": "Ready", "status": "False"}


def written(
    *conditions: Mapping[str, Any], generation: int = 0, nominated: str | None = None, was: str = ""
) -> Mapping[str, Any] | None:
    """Return the status that is written for a pod with these conditions, nominated to `was`."""
    metadata = {"name": "p", "namespace": "default", "uid": "u", "generation": generation}
    status = {"conditions": list(conditions), "nominatedNodeName": was}
    pod = Pod.from_raw({"kind": "Pod", "metadata": metadata, "spec": {}, "status": status})
    entry = QueuedPod(pod, pod.key, 0)
    failed = FailedAttempt(entry, "Unschedulable", SAID["message"] or "", NO_PLUGINS, NO_PLUGINS, nominated)
    patch = failure_status(pod, failed, AT)
    if patch is None:
        return None
    answer: Mapping[str, Any] = patch.patch["status"]
    return answer


@pytest.mark.parametrize(
    ("conditions", "generation", "want"),
    [
        pytest.param([READY], 0, [READY, SAID], id="added"),
        pytest.param([], 3, [{**SAID, "observedGeneration": 3}], id="names-the-generation-of-the-pod"),
        pytest.param([KNOWN], 0, None, id="the-same-is-not-written-again"),
        pytest.param([{**KNOWN, "observedGeneration": 1}], 2, None, id="nor-for-another-generation-alone"),
        pytest.param([{**KNOWN, "message": "?"}], 0, [KNOWN], id="time-kept-while-the-status-is-the-same"),
        pytest.param([{**KNOWN, "status": "True"}], 0, [SAID], id="new-time-with-a-new-status"),
        pytest.param([{**KNOWN, "lastProbeTime": EARLIER}], 0, [KNOWN], id="a-probe-of-somebody-else-is-taken-back"),
    ],
)
def test_condition_written(
    conditions: list[dict[str, Any]], generation: int, want: list[dict[str, Any]] | None
) -> None:
    answer = written(*conditions, generation=generation)
    assert answer == (None if want is None else {"conditions": want})


def test_a_new_nomination_brings_the_generation_along() -> None:
    known = {**KNOWN, "observedGeneration": 1}
    assert written(known, generation=1, nominated="n1") == {"nominatedNodeName": "n1"}
    newer = {**known, "observedGeneration": 2}
    assert written(known, generation=2, nominated="n1") == {"conditions": [newer], "nominatedNodeName": "n1"}
    assert written(known, generation=2, was="n1") is None
    assert written(known, generation=2, nominated="", was="n1") == {"conditions": [newer], "nominatedNodeName": None}


def test_a_claim_is_deallocated_before_the_status_is_written_and_victims_are_evicted_after() -> None:
    driven = Driven()
    driven.see(node(cpu="1"), pod("p", cpu="2"))
    failed = driven.attempt("p")
    assert isinstance(failed, FailedAttempt)
    driven.driver.take_effects()
    claim = MergePatch("ResourceClaim", "default", "c", {"status": {"allocation": None}}, "status")
    victim = Delete("Pod", "default", "v", "uid-v")
    preempting = attrs.evolve(failed, writes=(claim, victim), evicts=True, message="another")
    driven.driver.attempts.failures.fail(preempting, NOW)
    effects = driven.driver.take_effects()
    assert [getattr(write, "kind", "") for write in effects.writes] == ["ResourceClaim", "Pod"]
    assert [eviction.writes for eviction in effects.evictions] == [(victim,)]


def _facts(failed: FailedAttempt) -> tuple[Any, ...]:
    return failed.reason, failed.message, failed.unschedulable_plugins, failed.pending_plugins, failed.nominated_node


FIT = frozenset({"Fit"})


@pytest.mark.parametrize(
    ("status", "facts"),
    [
        pytest.param(
            unschedulable("b", "a").by("Fit"),
            ("Unschedulable", "0/1 nodes are available: 1 a, 1 b.", FIT, NO_PLUGINS, ""),
            id="a-rejection-names-its-plugin",
        ),
        pytest.param(
            unschedulable(), ("Unschedulable", "0/1 nodes are available:", NO_PLUGINS, NO_PLUGINS, ""), id="or-none"
        ),
        pytest.param(
            Status(Code.PENDING, ("wait",)).by("Fit"),
            ("Unschedulable", "0/1 nodes are available: 1 wait.", NO_PLUGINS, FIT, ""),
            id="a-pending-plugin-is-named-as-pending",
        ),
        pytest.param(
            error("boom").by("Fit"), ("SchedulerError", "boom", NO_PLUGINS, NO_PLUGINS, ""), id="an-error-names-none"
        ),
    ],
)
def test_a_failure_on_the_selected_node(status: Status, facts: tuple[Any, ...]) -> None:
    entry = QueuedPod(Pod.from_raw({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}), "default/p", 0)
    failed = failed_on_one_node(entry, status)
    assert failed.entry is entry
    assert _facts(failed) == facts
    after = failed_after_permit(entry, status)
    assert (after.reason, after.message) == (facts[0], status.message)
    assert _facts(after)[2:] == (NO_PLUGINS, NO_PLUGINS, "")
    assert not failed.evicts


def test_new_conditions_get_the_time_and_others_keep_theirs() -> None:
    seen = Pod.from_raw({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}, "status": {"conditions": [READY]}})
    new, dated = {"type": "New"}, {"type": "Dated", "lastTransitionTime": EARLIER}
    status = {"phase": "Pending", "conditions": [READY, new, dated]}
    victim, nomination = (
        Delete("Pod", "d", "p", "u"),
        MergePatch("Pod", "d", "p", {"status": {"nominatedNodeName": ""}}),
    )
    whole = MergePatch("Pod", "d", "p", {"metadata": {"uid": "u"}, "status": status}, "status", seen=seen)
    writes = stamped([victim, nomination, whole, attrs.evolve(whole, seen=None)], AT)
    assert writes[:2] == (victim, nomination)
    conditions = [{"lastTransitionTime": AT, **new}, dated]
    for write, first in zip(writes[2:], (READY, {"lastTransitionTime": AT, **READY}), strict=True):
        assert isinstance(write, MergePatch)
        assert write.patch == {
            "metadata": {"uid": "u"},
            "status": {"phase": "Pending", "conditions": [first, *conditions]},
        }
