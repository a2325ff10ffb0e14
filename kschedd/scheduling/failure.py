"""Failed scheduling attempts and bindings: the data about the failure for the queue, the API server and the user.

Source: Kubernetes v1.34, scheduler/schedule_one.go (bindingCycle, handleSchedulingFailure, updatePod),
pkg/api/v1/pod/util.go (UpdatePodCondition, CalculatePodConditionObservedGeneration).
"""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import MergePatch, Write
from kschedd.queue.entry import NO_PLUGINS, QueuedPod

_COMPARED: Final = ("status", "reason", "message", "lastProbeTime")


@attrs.frozen(eq=False)
class FailedAttempt:
    """A failed attempt or binding. `reason` is the reason of the condition: Unschedulable or SchedulerError."""

    entry: QueuedPod
    reason: str
    message: str
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    nominated_node: str | None  # None: keep the pod's nomination; "": clear it
    writes: tuple[Write, ...] = ()  # PostFilter's writes: nominations to clear, victims to evict
    victims: tuple[Pod, ...] = ()  # victims to evict now; a victim that is already terminating is not evicted again
    # uids of waiting victims whose binding is rejected instead of deleting them
    in_memory: frozenset[str] = frozenset()
    evicts: bool = False  # true if the victims' deletion will requeue the pod


def failed_by_error(entry: QueuedPod, message: str) -> FailedAttempt:
    return FailedAttempt(entry, "SchedulerError", message, NO_PLUGINS, NO_PLUGINS, "")


def failed_on_one_node(entry: QueuedPod, status: Status) -> FailedAttempt:
    """Return the failure of a pod whose selected node a plugin rejected, although the filters had passed it."""
    if not status.rejected:
        return failed_by_error(entry, status.message)
    reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
    blamed = frozenset({status.plugin}) if status.plugin else NO_PLUGINS
    pending = status.code == Code.PENDING
    return FailedAttempt(
        entry,
        "Unschedulable",
        f"0/1 nodes are available: {reasons}." if reasons else "0/1 nodes are available:",
        NO_PLUGINS if pending else blamed,
        blamed if pending else NO_PLUGINS,
        "",
    )


def failed_after_permit(entry: QueuedPod, status: Status) -> FailedAttempt:
    """Return the failure of a binding at PreBind or Bind. The failure names no plugin, so the pod always backs off."""
    reason = "Unschedulable" if status.rejected else "SchedulerError"
    return FailedAttempt(entry, reason, status.message, NO_PLUGINS, NO_PLUGINS, "")


def stamped(writes: Iterable[Write], at: str) -> tuple[Write, ...]:
    """Add this time (RFC 3339) to new conditions in the writes.

    Plugins leave the time out, because they have no clock.
    """
    return tuple(_stamped(write, at) if isinstance(write, MergePatch) else write for write in writes)


def _stamped(patch: MergePatch, at: str) -> MergePatch:
    status = patch.patch.get("status") or {}
    conditions = status.get("conditions")
    if not conditions:
        return patch
    known = [] if patch.seen is None else patch.seen.status.get("conditions") or []
    dated = [one if one in known else {"lastTransitionTime": at, **one} for one in conditions]
    whole = {**patch.patch, "status": {**status, "conditions": dated}}
    return attrs.evolve(patch, patch=whole)


def failure_status(pod: Pod, failed: FailedAttempt, at: str) -> MergePatch | None:
    """Return the status patch with the PodScheduled condition, or None if the pod already has that condition.

    `at` is the time of the condition's transition (RFC 3339).
    Source: schedule_one.go, updatePod.
    """
    conditions = list(pod.status.get("conditions") or ())
    place = next((n for n, c in enumerate(conditions) if c.get("type") == "PodScheduled"), None)
    known: Raw = {} if place is None else conditions[place]
    since = known.get("lastTransitionTime") if known.get("status") == "False" else None
    wanted = {
        "type": "PodScheduled",
        "status": "False",
        "reason": failed.reason,
        "message": failed.message,
        "lastProbeTime": None,
        "lastTransitionTime": since or at,
    }
    if generation := pod.metadata.get("generation"):
        wanted["observedGeneration"] = generation
    renominated = failed.nominated_node is not None and failed.nominated_node != pod.nominated_node_name
    changed: dict[str, Any] = {}
    # As in kube-scheduler, a new generation of the pod does not by itself cause a write.
    if any(known.get(field) != wanted[field] for field in (wanted if renominated else _COMPARED)):
        changed["conditions"] = [*conditions, wanted] if place is None else conditions
        if place is not None:
            conditions[place] = wanted
    if renominated:
        changed["nominatedNodeName"] = failed.nominated_node or None
    if not changed:
        return None
    patch = {"metadata": {"uid": pod.uid}, "status": changed}
    return MergePatch("Pod", pod.namespace, pod.name, patch, "status", pod)
