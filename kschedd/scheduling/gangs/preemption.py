"""Preemption for a PodGroup: all pods of lower priority are removed on trial, and as many as possible are put back.

The group's cycle runs again with all these pods removed. If the group can then be placed, its pods are nominated to
their nodes. Each victim is put back, in descending order of importance, if all pods of the group still fit on their
nodes. The victims that cannot be put back are evicted. A group has one preemption, which is part of its cycle.

After the preemption, the machine's cluster is unchanged; the result is a `GroupPreemption`.

Source: Kubernetes v1.37, scheduler/framework/preemption/podgrouppreemption.go.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import priority_of
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.interface import POST_FILTER
from kschedd.framework.status import Code, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Write
from kschedd.plugins.defaultpreemption import DefaultPreemption, goes_for_another
from kschedd.plugins.devices.dynamicresources import DynamicResources
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.gangs.trial import GroupPreemption, TriedGroup
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.counted import NominatedPods
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.preemption.victims import TakenOut, Victim, reprieved, victims_among
from kschedd.scheduling.profiles.profile import Framework

_PREFIX: Final = "pod group preemption: "
_NEVER: Final = unschedulable(f"{_PREFIX}not eligible due to preemptionPolicy=Never.")
_NOBODY: Final = unresolvable(f"{_PREFIX}No preemption victims found for incoming preemptor")
_ONGOING: Final = Status(Code.SUCCESS, (f"{_PREFIX}ongoing preemption on nominated nodes",))
_DEALLOCATED: Final = "deallocation and deletion of ResourceClaims completed"


def post_filtered(
    machine: SchedulingMachine,
    nominator: Nominator,
    group: Object,
    entries: Sequence[QueuedPod],
    tried: TriedGroup,
    again: Callable[[], Work[TriedGroup]],
) -> Work[GroupPreemption]:
    """Call the PostFilter plugins for a group that was not placed. `again` runs the group's cycle once more."""
    framework = machine.schedulers[entries[0].pod.scheduler_name].profile
    reasons, writes = list[str](), list[Write]()
    for plugin in framework.at(POST_FILTER):
        if isinstance(plugin, DefaultPreemption):
            made = yield from _Preemption(machine, nominator, group, entries, again).made(plugin)
        elif isinstance(plugin, DynamicResources):
            if machine.handle.rules.groups_in_domains and group.spec.get("schedulingConstraints") is not None:
                continue  # upstream keeps this group's claims
            made = _deallocated(plugin, framework, tried, machine.cluster)
        else:
            continue
        writes += made.writes
        if made.status.code not in (Code.UNSCHEDULABLE, Code.ERROR):
            return attrs.evolve(made, writes=tuple(writes))
        if made.status.code is Code.ERROR:
            why = f'error in "{plugin.name}" PodGroupPostFilter plugins: {made.status.message}'
            return GroupPreemption(error(why), writes=tuple(writes))
        reasons += made.status.reasons
    return GroupPreemption(unschedulable(", ".join(reasons)), writes=tuple(writes))


def _deallocated(
    plugin: DynamicResources, framework: Framework, tried: TriedGroup, cluster: SchedulerCache
) -> GroupPreemption:
    """Release claims that prevent pods of the group from being placed, as DynamicResources does for single pods."""
    seen = [member for member in tried.members if plugin.seen_by(member.result.state)]
    if not seen:
        return GroupPreemption(error("not found"))
    writes = list[Write]()
    for member in seen:
        made = plugin.post_filter(member.result.state, member.entry.pod, cluster, None)
        writes += made.writes
    return GroupPreemption(unschedulable(_DEALLOCATED), writes=tuple(writes))


@attrs.frozen(eq=False)
class _Preemption:
    machine: SchedulingMachine
    nominator: Nominator
    group: Object
    entries: Sequence[QueuedPod]
    again: Callable[[], Work[TriedGroup]]

    @property
    def priority(self) -> int:
        return priority_of(self.group)

    def made(self, plugin: DefaultPreemption) -> Work[GroupPreemption]:
        """Return the result of the preemption: nominated nodes and victims."""
        machine, entries = self.machine, self.entries
        among = self.all_victims()
        if isinstance(among, Status):
            return GroupPreemption(error(f"{_PREFIX}failed to create domain: {among.message}"))
        if any(entry.pod.pod_spec.preemption_policy == "Never" for entry in entries):
            return GroupPreemption(_NEVER)
        if self.is_ongoing():
            return GroupPreemption(_ONGOING, {entry.uid: entry.pod.nominated_node_name for entry in entries})
        victims = [victim for victim in among if victim.priority < self.priority]
        profile = machine.schedulers[entries[0].pod.scheduler_name].profile
        began = profile.times.start()
        made = (yield from self._searched(plugin, victims)) if victims else GroupPreemption(_NOBODY)
        profile.plugin_metrics.searched_victims("podgroup", made.status.code.label, profile.times.start() - began)
        return made

    def _searched(self, plugin: DefaultPreemption, victims: Sequence[Victim]) -> Work[GroupPreemption]:
        """Return the preemption of the victims that are needed, among the given possible victims."""
        machine, entries = self.machine, self.entries
        with TakenOut(machine.cluster) as taken:
            for victim in victims:
                taken.take(victim)
            tried = yield from self.again()
            if tried.status.code is not Code.SUCCESS:
                failed = error if tried.status.code is Code.ERROR else unschedulable
                return GroupPreemption(failed(f"{_PREFIX}{tried.status.message}"))
            results = [(member.entry, member.placed) for member in tried.members if member.placed is not None]
            budgets = machine.schedulers[entries[0].pod.scheduler_name].candidates.budgets
            evicted, violations = yield from reprieved(victims, budgets, taken, partial(self.fit, results))
        pods: list[Pod] = [pod for victim in evicted for pod in victim.pods]
        message = f"{_PREFIX}found a placement for podgroup, preempting {len(pods)} victims"
        nominated = {entry.uid: result.node_name for entry, result in results}
        how = plugin.evicting(pods, entries[0].pod.scheduler_name, "podgroup")
        disruptions = sum(victim.of_group for victim in evicted)
        return GroupPreemption(Status(Code.SUCCESS, (message,)), nominated, how, (), disruptions, violations)

    def is_ongoing(self) -> bool:
        """Return whether pods that were evicted for the group are still terminating on its nominated nodes."""
        table, priority = self.machine.cluster.table, self.machine.groups.priority
        nodes = {entry.pod.nominated_node_name for entry in self.entries} & table.row_of.keys()
        there = [pod for node in nodes for pod in table.pods[table.row_of[node]]]
        return any(goes_for_another(pod) and priority(pod) < self.priority for pod in there)

    def all_victims(self) -> Sequence[Victim] | Status:
        """Return all potential victims in the cluster."""
        table = self.machine.cluster.table
        return victims_among([pod for row in table.order.tolist() for pod in table.pods[row]], self.machine.groups)

    def fit(self, results: Sequence[tuple[QueuedPod, ScheduleResult]]) -> Work[bool]:
        """Return whether each pod fits on its node together with the previous pods."""
        machine, assumed = self.machine, list[AssumedPod]()
        try:
            for entry, result in results:
                scheduler = machine.schedulers[entry.pod.scheduler_name]
                counted = NominatedPods(machine.cluster.table, entry.pod, self.nominator.nominated)
                # Upstream reuses the state of a cycle without victims. a filter that PreFilter skipped stays skipped,
                # even if the filter would reject the pod after a victim is restored
                why = yield from scheduler.one_node.why_not(
                    entry.pod, result.node_name, counted.at(result.node_name), result.state.skip_filter
                )
                if why is not None:
                    return False
                reserved = machine.completion.complete(entry, result, 0.0, permits=False)
                if isinstance(reserved, AssumedPod):
                    assumed.append(reserved)
            return True
        finally:
            for reserved in reversed(assumed):
                machine.completion.end_trial(reserved, 0.0)
