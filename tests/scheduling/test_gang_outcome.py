"""Tests of the failures of a PodGroup's pods that were not placed, and of numbers in the group's condition."""

from typing import Any

import pytest

from kschedd.api.objects import parse
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.queue.entry import NO_PLUGINS, QueuedPod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.gangs.outcome import (
    UNSCHEDULABLE,
    failed_in_counted_group,
    failed_with_group,
    group_condition,
    not_placed,
)
from kschedd.scheduling.gangs.trial import GroupPreemption, TriedGroup, TriedMember
from kschedd.scheduling.verdicts import Diagnosis
from tests.scheduling.test_scheduler import pod

ENTRY = QueuedPod(pod("a"), "default/a", 0)
FIT_ERROR = FitError(ENTRY.pod, unschedulable("x"), Diagnosis(1), CycleState())
OWN = FailedAttempt(ENTRY, "Unschedulable", "no cpu", frozenset({"Fit"}), frozenset({"Late"}), "")
BROKEN = FailedAttempt(ENTRY, "SchedulerError", "broken", NO_PLUGINS, NO_PLUGINS, "")
PREEMPTS = FailedAttempt(ENTRY, "Unschedulable", "no cpu", frozenset({"Fit"}), frozenset(), "n")
WAIT = Status(Code.WAIT, ("it waits",))
FAILED, REJECTED = error("another pod failed"), unschedulable(UNSCHEDULABLE)


def member(failed: FailedAttempt | None, permit: Status | None = None, preempts: bool = False) -> TriedMember:
    return TriedMember(ENTRY, FIT_ERROR, failed, permit, preempts)


def group(status: Status, **fields: Any) -> TriedGroup:
    return TriedGroup(status, [], **fields)


def shown(failed: FailedAttempt) -> tuple[str, str, str | None, set[str]]:
    return (
        failed.reason,
        failed.message,
        failed.nominated_node,
        {*failed.unschedulable_plugins, *failed.pending_plugins},
    )


BOTH = [
    pytest.param(group(FAILED), None, ("SchedulerError", "another pod failed", "", set()), id="not-tried"),
    pytest.param(group(FAILED), member(None), ("SchedulerError", "another pod failed", "", set()), id="it-fits"),
    pytest.param(group(FAILED), member(OWN), ("SchedulerError", "another pod failed", "", set()), id="it-does-not-fit"),
    pytest.param(group(FAILED), member(BROKEN), ("SchedulerError", "broken", "", set()), id="its-own-error"),
]


@pytest.mark.parametrize(
    ("tried", "of", "expected"),
    [
        *BOTH,
        pytest.param(
            group(REJECTED), member(OWN), ("Unschedulable", "no cpu", "", {"Fit", "Late"}), id="its-own-reasons"
        ),
        pytest.param(group(REJECTED), member(None), ("Unschedulable", UNSCHEDULABLE, "", set()), id="no-permit"),
        pytest.param(
            group(REJECTED),
            member(None, WAIT),
            ("Unschedulable", f"{UNSCHEDULABLE}, it waits", "", set()),
            id="permit-made-it-wait",
        ),
        pytest.param(
            group(REJECTED),
            member(PREEMPTS, WAIT, preempts=True),
            ("Unschedulable", f"{UNSCHEDULABLE}, it waits", "", set()),
            id="its-preemption-does-not-help-the-group",
        ),
        pytest.param(
            group(REJECTED, waits_for_preemption=True),
            member(PREEMPTS, WAIT, preempts=True),
            ("Unschedulable", "no cpu", "n", {"Fit"}),
            id="its-preemption-helps-the-group",
        ),
        pytest.param(
            group(REJECTED, waits_for_preemption=True),
            member(None),
            ("Unschedulable", UNSCHEDULABLE, "", set()),
            id="it-waits-for-the-preemption-of-another-pod",
        ),
    ],
)
def test_the_failure_of_a_pod_whose_group_is_not_placed(
    tried: TriedGroup, of: TriedMember | None, expected: Any
) -> None:
    assert shown(failed_with_group(tried, ENTRY, of)) == expected


PREEMPTION = GroupPreemption(Status(Code.SUCCESS), {"uid-a": "n"})
ELSEWHERE = GroupPreemption(Status(Code.SUCCESS), {"uid-b": "n"})


@pytest.mark.parametrize(
    ("tried", "of", "expected"),
    [
        *BOTH,
        pytest.param(
            group(REJECTED), member(OWN), ("Unschedulable", "no cpu", "", {"Fit", "Late"}), id="its-own-reasons"
        ),
        pytest.param(
            group(REJECTED, preemption=PREEMPTION),
            member(OWN),
            ("Unschedulable", "no cpu", "n", {"Fit", "Late"}),
            id="nominated-by-the-groups-preemption",
        ),
        pytest.param(
            group(REJECTED, preemption=ELSEWHERE),
            member(OWN),
            ("Unschedulable", "no cpu", "", {"Fit", "Late"}),
            id="not-nominated",
        ),
        pytest.param(group(REJECTED), None, ("Unschedulable", UNSCHEDULABLE, None, set()), id="not-tried-at-all"),
        pytest.param(
            group(REJECTED, untried=unschedulable("too few"), preemption=PREEMPTION),
            None,
            ("Unschedulable", "too few", "n", set()),
            id="not-tried-and-nominated",
        ),
        pytest.param(
            group(REJECTED, waits_for_preemption=True, preemption=PREEMPTION),
            member(None),
            ("Unschedulable", UNSCHEDULABLE, "n", set()),
            id="it-waits",
        ),
        pytest.param(
            group(REJECTED),
            member(None),
            ("Unschedulable", f"{UNSCHEDULABLE}, {UNSCHEDULABLE}", "", set()),
            id="it-fits-without-its-group",
        ),
    ],
)
def test_the_failure_of_a_pod_whose_counted_group_is_not_placed(
    tried: TriedGroup, of: TriedMember | None, expected: Any
) -> None:
    assert shown(failed_in_counted_group(tried, ENTRY, of)) == expected


def test_the_result_of_a_pod_that_fits_is_the_message_of_its_group() -> None:
    result = not_placed(ENTRY, BROKEN)
    assert (result.pod, result.message) == (ENTRY.pod, "broken")


def test_a_condition_has_the_generation_of_its_group_and_its_place_among_others() -> None:
    other, stale = {"type": "Other"}, {"type": "PodGroupScheduled", "status": "Unknown"}
    raw = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "generation": 3},
        "status": {"conditions": [stale, other]},
    }
    written = group_condition(parse(raw), REJECTED, "t")
    assert written is not None
    first, second = written.patch["status"]["conditions"]
    assert (first["status"], first["observedGeneration"], first["lastTransitionTime"]) == ("False", 3, "t")
    assert second == other
