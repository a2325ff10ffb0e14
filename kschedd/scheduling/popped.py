"""PoppedPods: the pods that the driver has popped from the queue and not attempted yet, in attempt order.

This class stores the attempt order, and the number of attempts that the caller currently allows.
"""

from bisect import insort
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from kschedd.queue.entry import QueuedPod
from kschedd.queue.groups import order_in_group
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.gangs.cycle import order_of_members
from kschedd.scheduling.inputs import PodsPopped
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods

MOST_POPPED: Final = 128  # number of pods popped together, because a message between actors costs more than a pop


class PoppedPods:
    """The popped pods, in the order of their attempts."""

    def __init__(self, machine: SchedulingMachine, pending: PendingPods, debugger: Debugger) -> None:
        self._machine = machine
        self._pending = pending
        self._debugger = debugger
        self._entries: deque[QueuedPod] = deque()
        self.attempts_allowed: int | None = None  # number of attempts left; None: unlimited

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[QueuedPod, ...]:
        return tuple(self._entries)

    @property
    def wanted(self) -> int:
        """The maximum number of pods to pop now: 0 until all popped pods have been attempted.

        Nominations do not reduce this number. An attempt uses the nominations of all earlier attempts. Events observed
        before the attempt cause no retry (`AttemptFailed.seen`).
        """
        if self._entries or self._debugger.stop is not None:
            return 0
        most = 1 if self._debugger.engaged else MOST_POPPED
        return most if self.attempts_allowed is None else min(most, self.attempts_allowed)

    @property
    def has_next(self) -> bool:
        """True if `take` would return a pod."""
        return bool(self._entries) and self.attempts_allowed != 0 and self._debugger.stop is None

    @property
    def head(self) -> QueuedPod | None:
        """The pod of the next attempt."""
        return self._entries[0] if self._entries else None

    @property
    def first_tried(self) -> QueuedPod | None:
        """The pod that is tried next; for a PodGroup, the first pod in the order of the group's cycle."""
        head = self.head
        if head is None or not self.in_group(head):
            return head
        members = [entry for entry in self._entries if entry.pod.pod_group == head.pod.pod_group]
        if self._machine.handle.rules.gangs_counted:
            return min(members, key=order_in_group)
        return order_of_members(members)[0]

    def in_group(self, entry: QueuedPod) -> bool:
        """Return whether the pod is tried in one cycle with the other pods of its PodGroup."""
        return self._machine.handle.rules.pod_groups and bool(entry.pod.pod_spec.pod_group_name)

    def skips(self, entry: QueuedPod) -> bool:
        """Return whether the pod is skipped: it was deleted, is being deleted, or is assumed."""
        pod = self._pending.current(entry)
        if pod is None or self._machine.skips(pod):
            return True
        return not self._machine.responsible(pod.scheduler_name)  # the pod's profile was removed meanwhile

    def lets_begin(self, now: float) -> bool:
        """Return whether the debugger lets the next attempt, or the next cycle of a PodGroup, begin."""
        head = self.head
        if not self._debugger.lets_begin(now):
            return False
        if head is None or self.attempts_allowed == 0 or not self.in_group(head):
            return True
        group = head.pod.pod_group
        pods = {entry.pod: entry.attempts for entry in self._entries if entry.pod.pod_group == group}
        return self._debugger.enters_group(group, pods, now)

    def add(self, given: PodsPopped, now: float) -> None:
        """Add pods that were popped from the queue."""
        if not self._entries:
            self._entries.extend(given.entries)
            return
        sort_key = self._machine.sort_key()
        for entry in given.entries:
            insort(self._entries, entry, key=lambda popped: (popped.popped_early, sort_key(popped)))

    def take(self, now: float = 0.0) -> QueuedPod | None:
        """Remove and return the pod to attempt next; None if there is none, or if no attempt is allowed."""
        if self._debugger.engaged and not self.lets_begin(now):
            return None
        self._machine.handle.now_s = now
        return self._entries.popleft() if self._entries and self.attempts_allowed != 0 else None

    def take_head(self) -> QueuedPod:
        """Remove and return the head after it was attempted as part of a run."""
        return self._entries.popleft()

    def take_group(self, group: str) -> list[QueuedPod]:
        """Remove and return the pods of a PodGroup."""
        taken = [entry for entry in self._entries if entry.pod.pod_group == group]
        self._entries = deque(entry for entry in self._entries if entry.pod.pod_group != group)
        return taken

    def hand_back(self, uid: str) -> None:
        """Drop a pod that has returned to the queue."""
        self._entries = deque(entry for entry in self._entries if entry.uid != uid)

    def count_attempt(self) -> None:
        """Count an attempt, or a cycle of a PodGroup, against the allowed number."""
        if self.attempts_allowed is not None:
            self.attempts_allowed -= 1

    def for_run(self) -> Sequence[QueuedPod]:
        """Return the current versions of the first pods that may be attempted together; empty if only one pod may."""
        popped, machine = self._entries, self._machine
        if len(popped) < 2 or self.attempts_allowed is not None or self.in_group(popped[0]):
            return ()
        most = machine.longest_run(popped[0].pod)
        if most < 2:
            return ()
        known, profile, signatures = machine.cluster.pod, popped[0].pod.scheduler_name, set()
        entries = []
        for entry in islice(popped, most):
            pod = self._pending.current(entry)
            if pod is None or pod.nominated_node_name or pod.deletion_timestamp or known(pod.uid) is not None:
                break
            signature = pod.signature
            if signature not in signatures:
                if pod.scheduler_name != profile or self.in_group(entry) or not machine.may_run(pod):
                    break
                signatures.add(signature)
            entry.pod = pod
            entries.append(entry)
        return entries if len(entries) > 1 else ()
