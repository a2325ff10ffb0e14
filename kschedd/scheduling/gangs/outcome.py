"""Results of a PodGroup's cycle: the failures of the pods that were not placed, and the group's condition.

Source: Kubernetes v1.36 and v1.37, scheduler/schedule_one_podgroup.go (submitPodGroupAlgorithmResult).
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.cache.pod_groups import KIND
from kschedd.config.versions.rules import Rules
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.framework.writes import MergePatch
from kschedd.queue.entry import NO_PLUGINS, QueuedPod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.failure import FailedAttempt, failed_by_error
from kschedd.scheduling.gangs.trial import TriedGroup, TriedMember
from kschedd.scheduling.verdicts import Diagnosis

UNSCHEDULABLE: Final = "pod group is unschedulable"
SCHEDULED: Final = "PodGroupScheduled"
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"


def failed_in_counted_group(group: TriedGroup, entry: QueuedPod, member: TriedMember | None) -> FailedAttempt:
    """Return the failure of a pod that returns to the queue, with the rule gangs_counted.

    `member` is None if the pod was not tried.
    """
    own = None if member is None else member.failed
    if group.status.code is Code.ERROR:
        if own is not None and own.reason != "Unschedulable":
            return own
        return failed_by_error(entry, group.status.message)
    preemption = group.preemption
    nominated = None if preemption is None else preemption.nominated.get(entry.uid)
    if own is not None:
        return own if nominated is None else attrs.evolve(own, nominated_node=nominated)
    if member is None:
        untried = group.untried or group.status
        return FailedAttempt(entry, "Unschedulable", untried.message, NO_PLUGINS, NO_PLUGINS, nominated)
    if group.waits_for_preemption:
        return FailedAttempt(entry, "Unschedulable", group.status.message, NO_PLUGINS, NO_PLUGINS, nominated)
    return _unschedulable(entry, f"{UNSCHEDULABLE}, {group.status.message}", "")


def failed_with_group(group: TriedGroup, entry: QueuedPod, member: TriedMember | None) -> FailedAttempt:
    """Return the failure of a pod that returns to the queue. `member` is None if the pod was not tried."""
    if group.status.code is Code.ERROR:
        if member is not None and member.failed is not None and member.failed.reason != "Unschedulable":
            return member.failed
        return failed_by_error(entry, group.status.message)
    assert member is not None, "without an error every pod is tried"
    if member.failed is None:
        if group.waits_for_preemption:
            return _unschedulable(entry, group.status.message, member.node_name)
        return _unschedulable(entry, _words(member), "")
    if member.preempts and not group.waits_for_preemption:
        return attrs.evolve(
            member.failed,
            message=_words(member),
            unschedulable_plugins=NO_PLUGINS,
            pending_plugins=NO_PLUGINS,
            nominated_node="",
        )
    return member.failed


def _words(member: TriedMember) -> str:
    return ", ".join([UNSCHEDULABLE, *([] if member.permit is None else member.permit.reasons)])


def _unschedulable(entry: QueuedPod, message: str, node_name: str) -> FailedAttempt:
    return FailedAttempt(entry, "Unschedulable", message, NO_PLUGINS, NO_PLUGINS, node_name)


def not_placed(entry: QueuedPod, failed: FailedAttempt) -> FitError:
    """Return the result of a pod that fits on a node but is not placed because its group is not placed."""
    return FitError(entry.pod, unschedulable(failed.message), Diagnosis(0), CycleState())


def condition_type(rules: Rules) -> str:
    """Return the name of a PodGroup's condition."""
    return INITIALLY_SCHEDULED if rules.groups_initially_scheduled else SCHEDULED


def group_condition(group: Object, status: Status, at: str, named: str = SCHEDULED) -> MergePatch | None:
    """Return the write of the PodGroup's condition; None if it is unchanged, or the group was scheduled before."""
    wanted: dict[str, Any] = {
        "type": named,
        "status": "True" if status.code is Code.SUCCESS else "False",
        "reason": _REASONS.get(status.code, "SchedulerError"),
        "message": status.message,
    }
    if generation := group.metadata.get("generation"):
        wanted["observedGeneration"] = generation
    conditions = list(group.status.get("conditions") or ())
    place = next((n for n, one in enumerate(conditions) if one.get("type") == named), None)
    before: Mapping[str, Any] = {} if place is None else conditions[place]
    if before.get("status") == "True" and wanted["status"] != "True":
        return None
    since = before.get("lastTransitionTime") if before.get("status") == wanted["status"] else None
    wanted["lastTransitionTime"] = since or at
    if before == wanted:
        return None
    if place is None:
        conditions.append(wanted)
    else:
        conditions[place] = wanted
    return MergePatch(KIND, group.namespace, group.name, {"status": {"conditions": conditions}}, "status")


_REASONS: Final[Mapping[Code, str]] = {Code.SUCCESS: "Scheduled", Code.UNSCHEDULABLE: "Unschedulable"}
