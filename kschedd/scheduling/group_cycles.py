"""GroupCycles: runs the scheduling cycle of a PodGroup and acts on its result.

All popped pods of the group are tried in one cycle. If the cycle succeeds, each pod is assumed and its binding begins;
otherwise all pods fail. After the cycle, the group's condition is written, its victims are evicted, and the group
returns to the queue. The debugger may stop the cycle before each pod.

This class stores the results of the latest cycle.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kschedd.api.objects import Object
from kschedd.api.text.times import stamp
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, error
from kschedd.queue.entry import QueuedPod
from kschedd.queue.groups import order_in_group
from kschedd.queue.operations import GroupAttempted
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempts import Attempts
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import failed_by_error
from kschedd.scheduling.gangs.counted import group_fault, try_counted
from kschedd.scheduling.gangs.cycle import order_of_members, profile_fault, try_group
from kschedd.scheduling.gangs.outcome import (
    condition_type,
    failed_in_counted_group,
    failed_with_group,
    group_condition,
    not_placed,
)
from kschedd.scheduling.gangs.trial import MemberDone, TriedGroup, TriedMember
from kschedd.scheduling.inputs import BeginGroupCycle
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.popped import PoppedPods
from kschedd.scheduling.profiles.metrics import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITING_ON_PREEMPTION,
    SchedulingMetrics,
)
from kschedd.scheduling.verdicts import Diagnosis

_RESULTS: Final[Mapping[Code, str]] = {Code.SUCCESS: SCHEDULED, Code.UNSCHEDULABLE: UNSCHEDULABLE}


class GroupCycles:
    """The scheduling cycles of PodGroups."""

    def __init__(
        self,
        machine: SchedulingMachine,
        nominator: Nominator,
        effects: Effects,
        popped: PoppedPods,
        attempts: Attempts,
        debugger: Debugger,
    ) -> None:
        self._machine = machine
        self._nominator = nominator
        self._effects = effects
        self._popped = popped
        self._attempts = attempts
        self._debugger = debugger
        self.stops_within = True  # False in a replay, because one record covers the whole cycle
        self.latest: TriedGroup | None = None  # results of the group of the latest completed cycle

    def begin(self, given: BeginGroupCycle, now: float) -> Work[None]:
        """Return the cycle of all popped pods of the PodGroup, for the caller to run.

        The cycle yields the same kinds of work as attempts.
        """
        return self._cycle(given.entry, given.clock, given.on_result)

    def _cycle(self, entry: QueuedPod, clock: Callable[[], float], on_result: MemberDone) -> Work[None]:
        machine, attempts = self._machine, self._attempts
        group = entry.pod.pod_group
        entries = [entry, *self._popped.take_group(group)]
        began_s = 0.0 if machine.metrics is None else machine.metrics.timer()
        machine.batches.next_cycle()
        counted = machine.handle.rules.gangs_counted
        entries = sorted(entries, key=order_in_group) if counted else order_of_members(entries)
        fault = group_fault(machine, group, entries) if counted else ""
        entries = [one for one in entries if attempts.begins(one)]
        self._popped.count_attempt()
        if not entries:
            self._attempted(group, Code.SUCCESS)
            return
        attempts.start(entries)
        if self._debugger.engaged:
            self._debugger.began(entry.pod)
        if not counted:
            fault = profile_fault(entries)
        tried = TriedGroup(error(fault), ())
        if not fault:
            if self._debugger.engaged:
                attempts.keep_choices()
            pause, attempt = self._before_member, try_counted if counted else try_group
            tried = yield from attempt(machine, self._nominator, entries, clock(), attempts.broken, pause=pause)
        self._complete(group, entries, tried, clock(), on_result)
        if counted and machine.metrics is not None and machine.groups.object(group) is not None:
            self._count(machine.metrics, entries[0].pod.scheduler_name, tried, began_s)

    def _count(self, metrics: SchedulingMetrics, profile: str, tried: TriedGroup, began_s: float) -> None:
        """Count the cycle and its preemption."""
        result = _RESULTS.get(tried.status.code, ERROR)
        metrics.group_ended(
            WAITING_ON_PREEMPTION if tried.waits_for_preemption else result, profile, metrics.timer() - began_s
        )
        if (made := tried.preemption) is not None:
            metrics.group_preemptions.add(made.status.code.label)
            if made.evicted is not None:
                metrics.group_preempted(len(made.evicted.victims), made.disruptions, made.violations)

    def _before_member(self, entry: QueuedPod, tried: Sequence[TriedMember]) -> StopPoint | None:
        """Return the stop point of a PodGroup's cycle before this pod, or None if the cycle continues."""
        debugger, attempts = self._debugger, self._attempts
        at = StopPoint(debugger.cycle, entry.pod, entry.attempts, "", "")
        if not debugger.engaged or not self.stops_within:
            return None
        # otherwise out-of-tree Reserve plugins would be called again for the previous pods
        if self._machine.has_out_of_tree:
            return None
        if not debugger.before_member(at):
            return None
        attempts.group_tried = tuple(tried)
        return at

    def _complete(
        self, key: str, entries: Sequence[QueuedPod], tried: TriedGroup, now: float, on_result: MemberDone
    ) -> None:
        attempts, rules = self._attempts, self._machine.handle.rules
        placed = tried.status.code is Code.SUCCESS
        failed_in_group = failed_in_counted_group if rules.gangs_counted else failed_with_group
        attempts.running, attempts.group_tried, self.latest = False, (), tried
        for at, entry in enumerate(entries):
            member = tried.members[at] if at < len(tried.members) else None
            if placed and member is not None and member.failed is None:
                on_result(entry, member.result)
                attempts.complete(entry, member.result, now)
                continue
            failed = failed_in_group(tried, entry, member)
            result = FitError(entry.pod, tried.status, Diagnosis(0), CycleState()) if member is None else member.result
            on_result(entry, result if isinstance(result, FitError) else not_placed(entry, failed))
            attempts.fail(entry, result, failed, now, 0.0)
        attempts.undo_failed(now)
        group = self._machine.groups.object(key)
        condition = None if group is None else group_condition(group, tried.status, stamp(now), condition_type(rules))
        if condition is not None:
            self._effects.writes.append(condition)
        self._preempt(key, group, entries, tried, now)
        self._debugger.left_group(now)

    def _preempt(
        self, key: str, group: Object | None, entries: Sequence[QueuedPod], tried: TriedGroup, now: float
    ) -> None:
        """Return the group to the queue, and evict the victims of its preemption."""
        outcome = tried.status.code if tried.untried is None else tried.untried.code
        preemption = tried.preemption
        if preemption is not None:
            self._effects.writes.extend(preemption.writes)
        if group is None or preemption is None or preemption.evicted is None:
            self._attempted(key, outcome)
            return
        failed = self._machine.completion.evict(failed_by_error(entries[0], ""), preemption.evicted, now)
        self._attempted(key, outcome, group.uid if failed.evicts else "", self._attempts.failures.victims(failed))
        self._attempts.failures.evict(failed, now, group.uid)

    def _attempted(self, key: str, outcome: Code, evicting: str = "", victims: frozenset[str] = frozenset()) -> None:
        if self._machine.handle.rules.groups_queued:
            self._effects.queue.append(GroupAttempted(key, outcome, evicting, victims))
