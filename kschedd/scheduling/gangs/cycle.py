"""The cycle of a PodGroup: its pods are tried one after the other in one state of the cluster, then all that is undone.

Each pod sees those before it as if they were on their nodes: a pod that fits somewhere is assumed there, reserved, and
Permit is asked. A pod that would fit after a preemption counts as placed on its nominated node, without the victims.
A pod that fits nowhere does not end the trial: the group is schedulable as soon as Permit says so of any pod, which is
GangScheduling's matter (`kschedd.plugins.gangscheduling`). An error ends it.

What comes out, by the group's status:

    Success                     each pod that fits is placed for good, in this order; the others go back to the queue
    Unschedulable               all go back to the queue: those that fit with Permit's words, the others with their own
    ... waits for a preemption  all go back, nominated to the nodes where they would be
    Error                       all go back with the error

On trial Permit activates nobody: all pods of the group that could be are being tried.

Between two pods the cycle may be stopped. Nothing is on trial then: what was done for the pods before is undone and, as
the cycle goes on, done again by the same results; so nobody sees pods that are not there, a fork least of all.

Pure, as an attempt is: it yields what attempts yield. The machine's cluster is as before when it ends.
Source: Kubernetes v1.36, scheduler/schedule_one_podgroup.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.framework.writes import MergePatch
from kschedd.queue.entry import NO_PLUGINS, QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.failure import FailedAttempt, failed_by_error
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.verdicts import Diagnosis

UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITS_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"
SCHEDULED: Final = "PodGroupScheduled"

_SUCCESS: Final = Status(Code.SUCCESS)
Broken = Callable[[QueuedPod, Exception], FitError]
"""What an attempt comes to that an exception ended."""

MemberDone = Callable[[QueuedPod, ScheduleResult | FitError], None]
"""Told of what came of one pod of a group, before that is acted on."""


@attrs.frozen(eq=False)
class TriedMember:
    """What came of one pod on trial."""

    entry: QueuedPod
    result: ScheduleResult | FitError
    failed: FailedAttempt | None = None
    """None: it fits, and Permit let it go or had it wait."""
    permit: Status | None = None
    """Permit's words where it has it wait."""
    preempts: bool = False
    """It would be on `result`'s node once the victims of `failed` are gone."""
    placed: ScheduleResult | None = None
    """By which it is on its node while others are tried; None if it is on none."""

    @property
    def node_name(self) -> str:
        """Where it would be; "" for nowhere."""
        if self.preempts:
            assert self.failed is not None, "a preemption is of an attempt that failed"
            return self.failed.nominated_node or ""
        return self.result.node_name if self.failed is None and isinstance(self.result, ScheduleResult) else ""


@attrs.frozen(eq=False)
class TriedGroup:
    """What came of a group on trial. `members`: in the order of the trial; fewer than its pods after an error."""

    status: Status
    members: Sequence[TriedMember]
    waits_for_preemption: bool = False


def order_of_members(entries: Sequence[QueuedPod]) -> list[QueuedPod]:
    """Higher priority first, then who was in the active queue earlier."""
    return sorted(entries, key=lambda one: (-one.pod.priority, one.initial_attempt or 0, one.timestamp, one.key))


def profile_fault(entries: Sequence[QueuedPod]) -> str:
    """Why these cannot be tried together; "" if they can."""
    names = list(dict.fromkeys(entry.pod.scheduler_name for entry in entries))
    if len(names) < 2:
        return ""
    same = "all pods in a single pod group should have the same .spec.schedulerName set"
    return f'{same}, got: "{names[0]}" and "{names[1]}"'


def try_group(
    machine: SchedulingMachine,
    nominator: Nominator,
    entries: Sequence[QueuedPod],
    now: float,
    broken: Broken,
    look: Callable[[TriedMember], None] = lambda member: None,
    pause: Callable[[QueuedPod, Sequence[TriedMember]], StopPoint | None] = lambda entry, tried: None,
) -> Work[TriedGroup]:
    """Try the pods in this order. Nothing of it is left in the machine's cluster.

    `look` is called with what came of each, while those before it are on their nodes; `pause` before each but the
    first, with what came of those before: a point is where the cycle is stopped, and yielded.
    """
    trial = _Trial(machine, nominator, now)
    activate, machine.handle.activate = machine.handle.activate, _nobody
    members: list[TriedMember] = []
    status = unschedulable(UNSCHEDULABLE)
    preempts = waits = False
    try:
        for entry in entries:
            if members and (at := pause(entry, members)) is not None:
                trial.undo()
                machine.handle.activate = activate
                yield at
                machine.handle.activate = _nobody
                for earlier in members:
                    trial.again(earlier)
            try:
                result = yield from machine.begin(entry.pod, nominator.nominated, cycle=machine.batches.cycle)
            except Exception as fault:  # a plugin's, or the pod's
                result = broken(entry, fault)
            member = trial.place(entry, result)
            members.append(member)
            look(member)
            if member.failed is not None and not member.preempts:
                if member.failed.reason == "Unschedulable":
                    continue
                why = f"failed to schedule other pod from a pod group: {member.failed.message}"
                return TriedGroup(error(why), members)
            preempts |= member.preempts
            if member.permit is None:
                waits = preempts
                status = unschedulable(UNSCHEDULABLE, WAITS_FOR_PREEMPTION) if preempts else _SUCCESS
    finally:
        machine.handle.activate = activate
        trial.undo()
    return TriedGroup(status, members, waits)


@attrs.define(eq=False)
class _Trial:
    """What is assumed meanwhile, to be undone in the end."""

    machine: SchedulingMachine
    nominator: Nominator
    now: float
    _undo: list[Callable[[], object]] = attrs.field(factory=list, init=False)

    def place(self, entry: QueuedPod, result: ScheduleResult | FitError) -> TriedMember:
        """Assume the pod on the node that it would get."""
        failed: FailedAttempt | None = None
        if isinstance(result, ScheduleResult):
            placed = result
        else:
            outcome = self.machine.complete_attempt(entry, result, self.now)
            assert isinstance(outcome, FailedAttempt), "what fits nowhere is not assumed"
            failed = outcome
            if not failed.nominated_node or failed.reason != "Unschedulable":
                return TriedMember(entry, result, failed)
            self._without(_victims(result, failed))
            placed = self.machine.result_on(entry.pod, failed.nominated_node, result)
        reserved = self._assume(entry, placed)
        if isinstance(reserved, FailedAttempt):
            return TriedMember(entry, result, reserved)
        return TriedMember(entry, result, failed, self._permit(reserved), failed is not None, placed)

    def again(self, member: TriedMember) -> None:
        """As `place` did for this pod, by the same result."""
        if member.placed is None:
            return
        if member.failed is not None and isinstance(member.result, FitError):
            self._without(_victims(member.result, member.failed))
        reserved = self._assume(member.entry, member.placed)
        if isinstance(reserved, AssumedPod):
            self._permit(reserved)

    def _assume(self, entry: QueuedPod, placed: ScheduleResult) -> AssumedPod | FailedAttempt:
        node = self.nominator.node_of(entry.uid)
        if node:
            self.nominator.remove(entry.pod)
            self._undo.append(lambda: self.nominator.add(entry.pod, node))
        reserved = self.machine.complete_attempt(entry, placed, self.now)
        if isinstance(reserved, AssumedPod):
            self._undo.append(lambda: self.machine.end_trial(reserved, self.now))
        return reserved

    def _permit(self, reserved: AssumedPod) -> Status | None:
        """What Permit said; on trial nobody waits."""
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


def _nobody(pods: Sequence[Pod]) -> None:
    """In place of `Handle.activate` while pods are tried."""


def _victims(result: FitError, failed: FailedAttempt) -> Sequence[Pod]:
    return failed.victims if result.post_filter is None else result.post_filter.victims


def failed_with_group(group: TriedGroup, entry: QueuedPod, member: TriedMember | None) -> FailedAttempt:
    """What a pod is told that goes back to the queue. `member`: None if it was not tried."""
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
    """The result of a pod that fitted somewhere, and is on no node for what came of the others."""
    return FitError(entry.pod, unschedulable(failed.message), Diagnosis(0), CycleState())


def group_condition(group: Object, status: Status, at: str) -> MergePatch | None:
    """The write of the PodGroup's condition; None where nothing changes, or the group was scheduled before."""
    wanted: dict[str, Any] = {
        "type": SCHEDULED,
        "status": "True" if status.code is Code.SUCCESS else "False",
        "reason": _REASONS.get(status.code, "SchedulerError"),
        "message": status.message,
    }
    if generation := group.metadata.get("generation"):
        wanted["observedGeneration"] = generation
    conditions = list(group.status.get("conditions") or ())
    place = next((n for n, one in enumerate(conditions) if one.get("type") == SCHEDULED), None)
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
