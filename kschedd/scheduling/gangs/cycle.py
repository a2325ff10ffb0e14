"""The cycle of a PodGroup: its pods are tried one after the other on one state of the cluster, which is then restored.

Each pod is tried as if the previous pods were on their nodes: a pod that fits on a node is assumed there and reserved,
and Permit is called. A pod that would fit after a preemption is treated as placed on its nominated node, without the
victims. A pod that fits on no node does not end the trial: the group is schedulable as soon as Permit allows a pod.
The GangScheduling plugin makes this decision (`kschedd.plugins.gangscheduling`). An error ends it.

Results, by the group's status:

    Success                     each pod that fits is placed for good, in this order; the others go back to the queue
    Unschedulable               all go back to the queue: those that fit with Permit's message, others with their own
    ... waits for a preemption  all go back, nominated to the nodes where they would be
    Error                       all go back with the error

During the trial Permit activates no pods, because all available pods of the group are already being tried.

The cycle may stop between two pods. The trial changes for the previous pods are then undone. When the cycle continues,
the trial changes are repeated with the stored results. Pods on trial are therefore never visible, not even in a fork.

The cycle has no I/O, and yields the same kinds of work as attempts. After the cycle, the machine's cluster is
unchanged. Source: Kubernetes v1.36, scheduler/schedule_one_podgroup.go.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.gangs.outcome import UNSCHEDULABLE
from kschedd.scheduling.gangs.trial import Broken, MemberTrial, TriedGroup, TriedMember, activates_nobody
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator

WAITS_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"

_SUCCESS: Final = Status(Code.SUCCESS)


def order_of_members(entries: Sequence[QueuedPod]) -> list[QueuedPod]:
    """Return the entries sorted by descending priority, then by time in the active queue."""
    return sorted(entries, key=lambda one: (-one.pod.priority, one.initial_attempt or 0, one.timestamp, one.key))


def profile_fault(entries: Sequence[QueuedPod]) -> str:
    """Return why these pods cannot be tried together, or "" if they can."""
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
    pause: Callable[[QueuedPod, Sequence[TriedMember]], StopPoint | None] = lambda entry, tried: None,
) -> Work[TriedGroup]:
    """Try the pods in this order, and undo all trial changes in the machine's cluster.

    `pause` is called before each pod except the first, with the results so far. If `pause` returns a stop point, the
    cycle yields this point and stops there.
    """
    trial = MemberTrial(machine, nominator, now)
    activate, machine.handle.activate = machine.handle.activate, activates_nobody
    members: list[TriedMember] = []
    status = unschedulable(UNSCHEDULABLE)
    preempts = waits = False
    try:
        for entry in entries:
            if members and (at := pause(entry, members)) is not None:
                trial.undo()
                machine.handle.activate = activate
                yield at
                machine.handle.activate = activates_nobody
                for earlier in members:
                    trial.again(earlier)
            try:
                result = yield from machine.begin(entry.pod, nominator.nominated, cycle=machine.batches.cycle)
            except Exception as fault:  # a fault of a plugin or of the pod
                result = broken(entry, fault)
            member = trial.place(entry, result)
            members.append(member)
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
