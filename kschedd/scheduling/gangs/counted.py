"""The cycle of a PodGroup with the rule gangs_counted: its pods are tried as long as enough pods may fit.

Each pod is tried as if the previous pods were on their nodes: a pod that fits on a node is assumed there and reserved.
Before the first pod and after each one, GangScheduling is called (`placement_feasible`). `placement_feasible` returns
whether the group is placed, can still be placed, or can no longer be placed. The cycle ends if the group can no longer
be placed. A single pod never preempts: if the group is unschedulable, the whole group preempts
(`kschedd.scheduling.gangs.preemption`).

Results, by the group's status:

    Success                     each pod that fits is placed for good, in this order; the others go back to the queue
    Unschedulable               all go back to the queue: those that fit with the group's message, others with their own
    ... waits for a preemption  all go back, nominated to the nodes where they would be
    Error                       all go back with the error

With the rule groups_in_domains, the group is tried in every placement, and is scheduled in the best feasible placement
(`kschedd.scheduling.gangs.placing`).

The cycle may stop between two pods; the assumptions on trial are undone first (`kschedd.scheduling.gangs.cycle`).
Source: Kubernetes v1.37, scheduler/schedule_one_podgroup.go.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.cache.pod_groups import KIND, priority_of
from kschedd.framework.interface import PERMIT
from kschedd.framework.placements import Placement
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.queue.entry import QueuedPod
from kschedd.queue.groups import order_in_group
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.gangs.outcome import UNSCHEDULABLE
from kschedd.scheduling.gangs.placing import placed
from kschedd.scheduling.gangs.preemption import post_filtered
from kschedd.scheduling.gangs.trial import Broken, MemberTrial, TriedGroup, TriedMember
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.profiles.profile import Framework

Pause = Callable[[QueuedPod, Sequence[TriedMember]], StopPoint | None]
"""Returns a stop point before this pod, given the results so far, or None."""

_SUCCESS = Status(Code.SUCCESS)
_SAME = "all pods in a single pod group should have the same"


def group_fault(machine: SchedulingMachine, key: str, entries: Sequence[QueuedPod]) -> str:
    """Return why these pods cannot be tried as one group, or "" if they can."""
    group = machine.groups.object(key)
    if group is None:
        return f'{KIND.partition(".")[0].lower()}.{KIND.partition(".")[2]} "{key.partition("/")[2]}" not found'
    priority, first = priority_of(group), entries[0].pod
    policy = first.pod_spec.preemption_policy
    for pod in (*(entry.pod for entry in entries), *machine.groups.scheduled(key)):
        if pod.scheduler_name != first.scheduler_name:
            return f'{_SAME} .spec.schedulerName set, got: "{pod.scheduler_name}" and "{first.scheduler_name}"'
        if pod.priority != priority:
            return f"{_SAME} priority as the pod group's priority, got {pod.priority} and {priority}"
        if pod.pod_spec.preemption_policy != policy:
            return f"{_SAME} preemption policy, got {pod.pod_spec.preemption_policy} and {policy}"
    return ""


def try_counted(
    machine: SchedulingMachine,
    nominator: Nominator,
    entries: Sequence[QueuedPod],
    now: float,
    broken: Broken,
    pause: Pause = lambda entry, tried: None,
) -> Work[TriedGroup]:
    """Try the pods of one group, which must have no `group_fault`, then undo all trial changes in the cluster."""
    entries = sorted(entries, key=order_in_group)
    group = machine.groups.object(entries[0].pod.pod_group)
    assert group is not None, "group_fault reports a missing group"
    for entry in entries:
        nominator.left_queue(entry.uid)
    try:
        return (yield from _tried(_Cycle(machine, nominator, group, entries, now, broken), pause))
    finally:
        for entry in entries:
            if node := nominator.node_of(entry.uid):
                nominator.add(entry.pod, node)


def _tried(cycle: "_Cycle", pause: Pause) -> Work[TriedGroup]:
    """Try the pods, and preempt for the group if its pods do not fit."""
    metrics = cycle.machine.metrics
    began_s = 0.0 if metrics is None else metrics.timer()
    tried = yield from cycle.run(pause)
    if metrics is not None:
        metrics.group_algorithm_s.observe(metrics.timer() - began_s)
    if tried.status.code is not Code.UNSCHEDULABLE:
        return tried
    made = yield from post_filtered(cycle.machine, cycle.nominator, cycle.group, cycle.entries, tried, cycle.again)
    if made.status.code is Code.ERROR:
        return TriedGroup(made.status, tried.members, untried=tried.status, preemption=made)
    return attrs.evolve(
        tried,
        status=unschedulable(*tried.status.reasons, made.status.message),
        waits_for_preemption=made.status.code is Code.SUCCESS,
        untried=tried.status,
        preemption=made,
    )


@attrs.frozen(eq=False)
class _Cycle:
    machine: SchedulingMachine
    nominator: Nominator
    group: Object
    entries: Sequence[QueuedPod]
    now: float
    broken: Broken

    @property
    def profile(self) -> Framework:
        return self.machine.schedulers[self.entries[0].pod.scheduler_name].profile

    def again(self) -> Work[TriedGroup]:
        """Try all pods again in the current cluster, without stops."""
        return (yield from self.run(lambda entry, tried: None))

    def run(self, pause: Pause) -> Work[TriedGroup]:
        """Try all pods, in each placement if there are several."""
        if self.machine.handle.rules.groups_in_domains:
            tried = yield from placed(self.machine, self.profile, self.group, partial(self._tried_in, pause))
        else:
            tried = yield from self._tried_in(pause, None)
        nobody = all(member.failed is not None for member in tried.members)
        if tried.status.code is Code.SUCCESS and nobody:
            return attrs.evolve(tried, status=unschedulable(UNSCHEDULABLE))
        return tried

    def _tried_in(self, pause: Pause, placement: Placement | None) -> Work[TriedGroup]:
        """Try all pods on the nodes of a placement; None: on all nodes."""
        machine, members = self.machine, list[TriedMember]()
        rows = None if placement is None or len(placement.rows) == machine.cluster.table.node_count else placement.rows
        scheduled = len(machine.groups.scheduled(self.entries[0].pod.pod_group))
        status = self._feasible(scheduled, len(self.entries))
        if status.code is Code.UNSCHEDULABLE:
            return TriedGroup(unschedulable(UNSCHEDULABLE, *status.reasons), ())
        trial, fitting = MemberTrial(machine, self.nominator, self.now, counted=True), 0
        try:
            for number, entry in enumerate(self.entries, 1):
                if members and (at := pause(entry, members)) is not None:
                    trial.undo()
                    yield at
                    for earlier in members:
                        trial.again(earlier)
                try:
                    result = yield from machine.begin(
                        entry.pod,
                        self.nominator.nominated,
                        cycle=machine.batches.cycle,
                        post_filters=False,
                        placement=rows,
                    )
                except Exception as fault:  # a fault of a plugin or of the pod
                    result = self.broken(entry, fault)
                member = trial.place(entry, result)
                members.append(member)
                if member.failed is None:
                    fitting += 1
                elif member.failed.reason != "Unschedulable":
                    why = f"failed to schedule other pod from a pod group: {member.failed.message}"
                    return TriedGroup(error(why), members)
                status = self._feasible(scheduled + fitting, len(self.entries) - number)
                if status.code is Code.UNSCHEDULABLE:
                    break
        finally:
            trial.undo()
        if status.code is Code.WAIT:
            status = unschedulable(UNSCHEDULABLE, *status.reasons)
        return TriedGroup(status, members)

    def _feasible(self, scheduled: int, remaining: int) -> Status:
        for plugin in self.profile.at(PERMIT):
            ask: Any = getattr(plugin, "placement_feasible", None)
            if ask is not None and (status := ask(self.group, scheduled, remaining)) is not None:
                found: Status = status
                return found
        return _SUCCESS
