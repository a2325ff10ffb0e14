"""Victims of preemption in a cluster with PodGroups: a single pod, or all pods of a group that is disrupted as a whole.

A pod of a group has its group's priority. Among victims of the same priority, groups are more important than single
pods, larger groups than smaller groups, and earlier starts than later starts.

Source: Kubernetes v1.37, scheduler/framework/preemption/types.go, util.go (MoreImportantVictim).
Units: start times are microseconds since the epoch.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Self

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups, disrupted_as_a_whole, priority_of
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.postfilter import Candidate
from kschedd.framework.status import Status, error
from kschedd.scheduling.debug.work import Work, drive
from kschedd.scheduling.nominations.counted import NominatedByRow
from kschedd.scheduling.preemption.budgets import Budgets
from kschedd.scheduling.preemption.dry_run import NO_VICTIMS, DryRunResult, earliest_start
from kschedd.scheduling.preemption.row_pods import started


@attrs.frozen(eq=False)
class Victim:
    """Pods that are evicted together or not at all."""

    pods: Sequence[Pod]
    priority: int
    of_group: bool

    @property
    def importance(self) -> tuple[int, bool, int, int]:
        """Sort key; more important victims come first."""
        return -self.priority, not self.of_group, -len(self.pods), min(map(started, self.pods))


def victims_among(pods: Iterable[Pod], groups: PodGroups) -> list[Victim] | Status:
    """Return the victims to which these pods belong, in the pods' order. Each pod must be on a node."""
    found, whole = list[Victim](), set[str]()
    for pod in pods:
        group = groups.of(pod)
        if group is None or not disrupted_as_a_whole(group):
            found.append(Victim((pod,), groups.priority(pod), bool(pod.pod_group)))
        elif group.key not in whole:
            whole.add(group.key)
            members = groups.placed(group.key)
            for member in members:
                if member.node_name not in groups.cluster.table.row_of:
                    unknown = f'nodeinfo not found for node name "{member.node_name}"'
                    return error(f'failed to get node info for node "{member.node_name}" from snapshot: {unknown}')
            found.append(Victim(members, priority_of(group), True))
    return found


@attrs.define(eq=False)
class TakenOut:
    """A context during which victims are removed from their nodes."""

    cluster: SchedulerCache
    _undo: dict[str, Callable[[], object]] = attrs.field(factory=dict, init=False)  # by uid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for put_back in reversed(self._undo.values()):
            put_back()
        self._undo.clear()

    def take(self, victim: Victim) -> None:
        """Remove all pods of a victim from their nodes."""
        for pod in victim.pods:
            put_back = self.cluster.take_out(pod)
            if put_back is not None:
                self._undo[pod.uid] = put_back

    def put_back(self, victim: Victim) -> None:
        """Put all pods of a victim back on their nodes."""
        for pod in victim.pods:
            if (put_back := self._undo.pop(pod.uid, None)) is not None:
                put_back()


def reprieved(
    victims: Sequence[Victim], budgets: Budgets, taken: TakenOut, fits: Callable[[], Work[bool]]
) -> Work[tuple[list[Victim], int]]:
    """Put back the removed victims that need not be evicted, beginning with the victims protected by a budget.

    Returns the victims to evict, most important first, and the number of their pods whose eviction violates a budget.
    """
    ordered = sorted(victims, key=lambda victim: victim.importance)
    budgets.refresh()
    charges = budgets.charges()
    violations = {id(victim): sum([charges.breaks(pod) for pod in victim.pods]) for victim in ordered}
    gone, violating = list[Victim](), 0
    for victim in sorted(ordered, key=lambda victim: not violations[id(victim)]):
        taken.put_back(victim)
        if not (yield from fits()):
            taken.take(victim)
            gone.append(victim)
            violating += violations[id(victim)]
    return sorted(gone, key=lambda victim: victim.importance), violating


def select_among_groups(
    groups: PodGroups,
    pod: Pod,
    row: int,
    budgets: Budgets,
    counted: NominatedByRow,
    judged_on: Callable[[Pod, str, NominatedByRow], Work[Status | None]],
) -> DryRunResult:
    """Try preemption on a row with pods of PodGroups; pods of a group on other rows may have to be evicted as well."""
    table = groups.cluster.table
    name, among = table.names[row], victims_among(list(table.pods[row]), groups)
    if isinstance(among, Status):
        return DryRunResult(among)
    lesser = [victim for victim in among if victim.priority < pod.priority]
    if not lesser:
        return DryRunResult(NO_VICTIMS)

    def fits() -> Work[bool]:
        return (yield from judged_on(pod, name, counted)) is None

    with TakenOut(groups.cluster) as taken:
        for victim in lesser:
            taken.take(victim)
        why = drive(judged_on(pod, name, counted))
        if why is not None:
            return DryRunResult(why)
        gone, violations = drive(reprieved(lesser, budgets, taken, fits))
    victims = [one for victim in gone for one in victim.pods]
    if not victims:
        return DryRunResult(error(f'expected at least one victim pod on node "{name}"'))
    total = sum(one.priority for one in victims)
    found = Candidate(name, tuple(victims), violations)
    return DryRunResult(found, frozenset(), victims[0].priority, total, earliest_start(victims))
