"""FailureHandler: handles all pods whose attempt or binding has failed.

The pod's PodScheduled condition is written, and the victims of preemption are evicted. A failed pod returns to the
queue before the eviction begins, so that the queue cannot miss the deletion events of the victims.

Source: Kubernetes v1.34, scheduler/schedule_one.go (handleSchedulingFailure).
"""

from typing import Final

import attrs

from kschedd.api.text.times import stamp
from kschedd.framework.writes import Delete, MergePatch
from kschedd.queue.operations import AttemptFailed
from kschedd.scheduling.binding_cycles import BindingCycles
from kschedd.scheduling.effects import Effects, Eviction
from kschedd.scheduling.failure import FailedAttempt, failure_status
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.records import PodPreempted

_NONE: Final[frozenset[str]] = frozenset()


class FailureHandler:
    """The handler of failed attempts and bindings."""

    def __init__(
        self, machine: SchedulingMachine, pending: PendingPods, effects: Effects, bindings: BindingCycles
    ) -> None:
        self._machine = machine
        self._pending = pending
        self._effects = effects
        self._bindings = bindings

    def fail(self, failed: FailedAttempt, now: float, seen: int = 0) -> None:
        """Return the pod to the queue and write the reason to its status.

        `seen` is the number of events observed before the attempt.
        """
        entry, effects, pending = failed.entry, self._effects, self._pending
        if failed.evicts:  # The release of a claim is written before the pod's status; evictions are written after it.
            claims = [one for one in failed.writes if isinstance(one, MergePatch) and one.kind == "ResourceClaim"]
            effects.writes.extend(claims)
            failed = attrs.evolve(failed, writes=tuple(one for one in failed.writes if one not in claims))
        else:
            effects.writes.extend(failed.writes)
        pod = pending.current(entry)
        if pod is None:
            effects.released.append(entry.uid)
            pending.release(entry.uid)
            is_gone = entry.key not in pending.pods and self._machine.cluster.pod(entry.uid) is None
            if is_gone and (patch := failure_status(entry.pod, failed, stamp(now))) is not None:
                effects.writes.append(patch)  # the API server rejects the patch if the pod no longer exists
        else:
            resizes = self._machine.resizes(entry.pod)
            if resizes:
                pending.release(entry.uid)
            else:
                pending.failed(pod, failed.nominated_node)
            effects.queue.append(
                AttemptFailed(
                    entry,
                    pod,
                    failed.unschedulable_plugins,
                    failed.pending_plugins,
                    failed.evicts,
                    self.victims(failed),
                    seen,
                )
            )
            if not resizes and (patch := failure_status(pod, failed, stamp(now))) is not None:
                effects.writes.append(patch)
        effects.failures.append(failed)
        self.evict(failed, now)

    def victims(self, failed: FailedAttempt) -> frozenset[str]:
        """Return the uids of the victims whose deletion has not begun."""
        machine = self._machine
        if not (failed.evicts and machine.holds_preemptors):
            return _NONE
        found = (machine.cluster.pod(write.uid) for write in failed.writes if isinstance(write, Delete))
        return frozenset(pod.uid for pod in found if pod is not None and not pod.deletion_timestamp)

    def evict(self, failed: FailedAttempt, now: float, group: str = "") -> None:
        """Evict the victims. `group` is the uid of the preempting PodGroup, or "" if the pod itself preempts."""
        pod, effects = failed.entry.pod, self._effects
        if failed.evicts:
            gone_fails = not self._machine.handle.rules.gone_victims_evicted
            effects.evictions.append(Eviction(pod, failed.writes, gone_fails, "podgroup" if group else "pod"))
        for victim in failed.victims:
            in_memory = victim.uid in failed.in_memory
            if in_memory:
                self._bindings.cancel(victim.uid)
            effects.happened.append(PodPreempted(now, victim.key, victim.uid, victim.node_name, pod, in_memory, group))
