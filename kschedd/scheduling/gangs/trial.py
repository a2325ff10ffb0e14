"""Pods of a PodGroup on trial: each pod is assumed on its candidate node while other pods of its group are tried.

Undoing the trial restores the cluster. The cycle returns the results of each pod, of the group, and of a preemption for
the group.

Source: Kubernetes v1.36 and v1.37, scheduler/schedule_one_podgroup.go (assumeAndReserveWithRevert).
"""

from collections.abc import Callable, Mapping, Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Write
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator

Broken = Callable[[QueuedPod, Exception], FitError]
"""Returns the result of an attempt that an exception ended."""

MemberDone = Callable[[QueuedPod, ScheduleResult | FitError], None]
"""Called with the result of one pod of a group, before it is acted on."""


@attrs.frozen(eq=False)
class TriedMember:
    """The result of the trial placement of one pod."""

    entry: QueuedPod
    result: ScheduleResult | FitError
    failed: FailedAttempt | None = None
    """None: it fits, and Permit allowed it or made it wait."""
    permit: Status | None = None
    """Permit's status if it makes the pod wait."""
    preempts: bool = False
    """True if the pod would be on `result`'s node once the victims of `failed` are gone."""
    placed: ScheduleResult | None = None
    """The result with which the pod is on its node during the trial; None if it is on none."""

    @property
    def node_name(self) -> str:
        """The node on which the pod would run, or ""."""
        if self.preempts:
            assert self.failed is not None, "a preemption is of an attempt that failed"
            return self.failed.nominated_node or ""
        return self.result.node_name if self.failed is None and isinstance(self.result, ScheduleResult) else ""


@attrs.frozen(eq=False)
class GroupPreemption:
    """The result of a preemption for a whole group.

    `status` is Success if the preemption was started or is in progress.
    """

    status: Status
    nominated: Mapping[str, str] = attrs.field(factory=dict)
    """The nominated node by pod uid."""
    evicted: PostFilterResult | None = None
    """The victims, and how they are evicted; None if there are none."""
    writes: tuple[Write, ...] = ()
    """Other writes."""
    disruptions: int = 0
    """Number of victims that belong to PodGroups; a group that is disrupted as a whole counts once."""
    violations: int = 0
    """Number of evicted pods whose budget does not allow it."""


@attrs.frozen(eq=False)
class TriedGroup:
    """The result of a group on trial.

    `members` are in the order of the trial. After an error, `members` has fewer entries than the group has pods.
    """

    status: Status
    members: Sequence[TriedMember]
    waits_for_preemption: bool = False
    untried: Status | None = None
    """The status of the pods that were not tried; None: `status`."""
    preemption: "GroupPreemption | None" = None
    """The preemption for the group as a whole, if one was tried (`kschedd.scheduling.gangs.preemption`)."""


@attrs.define(eq=False)
class MemberTrial:
    """The assumptions made during a trial, which are undone at its end."""

    machine: SchedulingMachine
    nominator: Nominator
    now: float
    counted: bool = False
    """The rule gangs_counted.

    Permit is not called for pods on trial. Only the names of nominated pods are known meanwhile, because they are in no
    queue (`Nominator.left_queue`).
    """
    _undo: list[Callable[[], object]] = attrs.field(factory=list, init=False)

    def place(self, entry: QueuedPod, result: ScheduleResult | FitError) -> TriedMember:
        """Assume the pod on its candidate node."""
        failed: FailedAttempt | None = None
        if isinstance(result, ScheduleResult):
            placed = result
        else:
            outcome = self.machine.completion.complete(entry, result, self.now)
            assert isinstance(outcome, FailedAttempt), "what fits nowhere is not assumed"
            failed = outcome
            if not failed.nominated_node or failed.reason != "Unschedulable":
                return TriedMember(entry, result, failed)
            self._without(_victims(result))
            placed = self.machine.result_on(entry.pod, failed.nominated_node, result)
        reserved = self._assume(entry, placed)
        if isinstance(reserved, FailedAttempt):
            return TriedMember(entry, result, reserved)
        return TriedMember(entry, result, failed, self._permit(reserved), failed is not None, placed)

    def again(self, member: TriedMember) -> None:
        """Repeat the assumption of a pod with the same result."""
        if member.placed is None:
            return
        if isinstance(member.result, FitError):
            self._without(_victims(member.result))
        reserved = self._assume(member.entry, member.placed)
        if isinstance(reserved, AssumedPod):
            self._permit(reserved)

    def _assume(self, entry: QueuedPod, placed: ScheduleResult) -> AssumedPod | FailedAttempt:
        node = self.nominator.node_of(entry.uid)
        if node:
            self.nominator.remove(entry.pod)
            self._undo.append(lambda: self._nominate_again(entry, node))
        reserved = self.machine.completion.complete(entry, placed, self.now, permits=not self.counted)
        if isinstance(reserved, AssumedPod):
            self._undo.append(lambda: self.machine.completion.end_trial(reserved, self.now))
        return reserved

    def _nominate_again(self, entry: QueuedPod, node: str) -> None:
        self.nominator.add(entry.pod, node)
        if self.counted:
            self.nominator.left_queue(entry.uid)

    def _permit(self, reserved: AssumedPod) -> Status | None:
        """Return Permit's status; during a trial no pod waits."""
        self.machine.waiting.pods.pop(reserved.pod.uid, None)
        if reserved.waiting is None:
            return None
        name = reserved.pod.name
        return Status(Code.WAIT, (f'one or more plugins asked to wait and no plugin rejected pod "{name}"',))

    def _without(self, victims: Sequence[Pod]) -> None:
        cluster = self.machine.cluster
        for victim in victims:
            removed = cluster.take_out(victim)
            if removed is not None:
                self._undo.append(removed)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


def activates_nobody(pods: Sequence[Pod]) -> None:
    """Replace `Handle.activate` during a trial; activate no pods."""


def _victims(result: FitError) -> Sequence[Pod]:
    """Return the victims of a pod that preempts, including those that are already terminating."""
    assert result.post_filter is not None, "only PostFilter nominates a node"
    return result.post_filter.victims
