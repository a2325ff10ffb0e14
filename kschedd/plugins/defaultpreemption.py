"""DefaultPreemption: if no node is feasible, evicts pods of lower priority to make room for the pod.

Only nodes that were rejected as Unschedulable are tried; eviction does not help on UnschedulableAndUnresolvable nodes.
In large clusters only some of these nodes are tried, starting at a seeded offset for each pod. The candidate is chosen
by kube-scheduler's criteria in order: fewest violated PodDisruptionBudgets, lowest priority of the most important
victim, lowest sum of priorities, fewest victims, latest start. The pod is nominated to the chosen node; the victims get
a DisruptionTarget condition and are deleted. Until these writes are done, PreEnqueue keeps the pod out of the active
queue. The plugin returns writes as data; the driver's caller executes them.

A victim that waits at Permit is rejected there instead of being deleted.

Rules: terminating_victims_deleted, victims_preempted_in_memory, placement_in_message, groups_preempt.

Source: Kubernetes v1.34, plugins/defaultpreemption/default_preemption.go, scheduler/framework/preemption/preemption.go;
v1.36, scheduler/framework/preemption/executor.go.
The plugin raises no errors itself. If a filter returns an error for every candidate, the result is an Error.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Self
from zlib import crc32

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.args import ArgsContext, arg
from kschedd.config.parsing.reading import INT32, ConfigFields
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.postfilter import PostFilterView, Preemption
from kschedd.framework.status import Code, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Delete, MergePatch, Write

_DISRUPTION: Final = "DisruptionTarget"
_BY_SCHEDULER: Final = "PreemptionByScheduler"
_SUCCESS: Final = Status(Code.SUCCESS)
_WAITING: Final = unresolvable("waiting for the preemption for this pod to be finished")
_GROUP_WAITS: Final = unresolvable("waiting for the preemption for this pod group to be finished")


@attrs.frozen
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = arg(10, bounds=(0, 100))
    min_candidate_nodes_absolute: int = arg(100, bounds=(0, INT32[1]))

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        share, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
        if fields.place.value.get(share) == 0 == fields.place.value.get(absolute):
            fields.place.reading.report(fields.path(share), 0, f"{share} and {absolute} must not both be 0")


@attrs.frozen(eq=False)
class DefaultPreemption:
    name: ClassVar = "DefaultPreemption"
    args_type: ClassVar = DefaultPreemptionArgs
    args: DefaultPreemptionArgs
    _seed: int
    _deletes: Callable[[Pod], bool]  # returns whether this victim must be deleted
    _gates: bool  # True if preemption is asynchronous: evictions run while other pods are scheduled
    _evicting: Callable[[str], bool]
    _waiting: Callable[[], Sequence[tuple[Pod, str]]]
    _cancels: Callable[[str], bool]  # cancels the victim's binding (by uid), if it has begun
    _latest: Callable[[Pod], Pod | None]  # returns the pod's current version, or None if it is deleted
    success: Callable[[str, int], Status]  # returns the status for the node and the number of victims of a preemption
    _groups: PodGroups | None  # PodGroups that preempt or are evicted as a whole; None if the version has none

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        return cls(
            args if isinstance(args, DefaultPreemptionArgs) else DefaultPreemptionArgs(),
            handle.seed,
            every_victim if handle.rules.terminating_victims_deleted else unless_terminating,
            handle.feature_gates.get("SchedulerAsyncPreemption", True),
            lambda uid: handle.evicting(uid),
            (lambda: _undecided(handle)) if handle.rules.victims_preempted_in_memory else lambda: handle.waiting_pods(),
            (lambda uid: handle.in_pre_bind(uid)) if handle.rules.victims_preempted_in_memory else lambda uid: False,
            lambda pod: pod if handle.current_pod is None else handle.current_pod(pod.key),
            found_placement if handle.rules.placement_in_message else plain_success,
            handle.shared(PodGroups) if handle.rules.groups_preempt else None,
        )

    # -- PreEnqueue: hold the pod while its victims are being evicted -------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if self._groups is not None and pod.pod_group:
            group = self._groups.object(pod.pod_group)
            return _GROUP_WAITS if self._gates and group is not None and self._evicting(group.uid) else None
        return _WAITING if self._gates and self._evicting(pod.uid) else None

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        if not self._gates:
            return ()
        return (on(EventResource.ASSIGNED_POD, ActionType.DELETE, _after_pod_deleted, by_signature=True),)

    # -- preempting ---------------------------------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, pod: Pod, cluster: SchedulerCache, view: PostFilterView
    ) -> PostFilterResult:
        latest = self._latest(pod)
        if latest is None:
            return PostFilterResult(error(f'preemption: pod "{pod.name}" not found'))
        # If the pod was deleted and recreated under the same name, filters still use the version of the attempt.
        tried_for, pod = (latest if latest.uid == pod.uid else pod), latest
        why = ineligible(pod, cluster, view, pod_priority if self._groups is None else self._groups.priority)
        if why:
            return PostFilterResult(unschedulable(f"preemption: {why}"))
        rows = view.rows_with(Code.UNSCHEDULABLE)
        offset = crc32(f"{self._seed}/{pod.uid}".encode()) % len(rows) if len(rows) else 0
        tried = view.dry_run(state, tried_for, rows, offset, self.wanted(len(rows)))
        best = tried.best
        if best is None:
            if tried.fault:
                return PostFilterResult(error(f"preemption: {tried.fault}"))
            return PostFilterResult(unschedulable(f"preemption: {tried.message}"), nominated_node=tried.nominated_node)
        cleared = cleared_nominations(pod, view.nominated_on(best.node_name))
        made = self.evicting(best.victims, pod.scheduler_name, "pod", cleared)
        return attrs.evolve(
            made,
            status=self.success(best.node_name, len(best.victims)),
            nominated_node=best.node_name,
            details=attrs.evolve(made.details, candidates=tried.candidates, ties=tried.ties),
        )

    def evicting(
        self, victims: Sequence[Pod], scheduler_name: str, preemptor: str, cleared: Sequence[Pod] = ()
    ) -> PostFilterResult:
        """Return the evictions of these victims for a `pod` or a `podgroup`, with the nominations to clear."""
        evicted = tuple(victim for victim in victims if self._deletes(victim))
        waiting = {uid for uid in (other.uid for other, _ in self._waiting())} if evicted else set()
        rejected = tuple(victim for victim in evicted if victim.uid in waiting)
        cancelled = tuple(victim for victim in evicted if victim.uid not in waiting and self._cancels(victim.uid))
        writes: list[Write] = [_no_nomination(other) for other in cleared] if evicted else []
        for victim in evicted:
            if victim not in rejected and victim not in cancelled:
                writes += evict(victim, scheduler_name, preemptor)
        details = Preemption((), (), tuple(cleared) if evicted else (), evicted)
        return PostFilterResult(_SUCCESS, None, tuple(victims), tuple(writes), rejected, cancelled, details)

    def wanted(self, nodes: int) -> int:
        """Return the number of candidates at which the search ends, given the number of eligible nodes."""
        share = nodes * self.args.min_candidate_nodes_percentage // 100
        return min(max(share, self.args.min_candidate_nodes_absolute), nodes)


def _undecided(handle: Handle) -> list[tuple[Pod, str]]:
    """Return the pods that wait at Permit and can still be rejected."""
    return [one for one in handle.waiting_pods() if not handle.decided_at_permit(one[0].uid)]


def found_placement(node_name: str, victims: int) -> Status:
    text = f"found a potential placement for pod on node {node_name}, preempting {victims} victims"
    return Status(Code.SUCCESS, (f"preemption: {text}",))


def plain_success(node_name: str, victims: int) -> Status:
    return _SUCCESS


def every_victim(victim: Pod) -> bool:
    return True


def unless_terminating(victim: Pod) -> bool:
    return not victim.deletion_timestamp


def pod_priority(pod: Pod) -> int:
    return pod.priority


def ineligible(
    pod: Pod, cluster: SchedulerCache, view: PostFilterView, priority: Callable[[Pod], int] = pod_priority
) -> str:
    """Return why the pod must not preempt other pods now, or "" if it may."""
    if pod.pod_spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    node_name = pod.nominated_node_name
    row = cluster.table.row_of.get(node_name) if node_name else None
    if row is None or view.code_on(node_name) == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    if any(priority(other) < pod.priority and goes_for_another(other) for other in cluster.table.pods[row]):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def goes_for_another(pod: Pod) -> bool:
    """Return whether the pod is terminating because it was preempted."""
    if not pod.deletion_timestamp:
        return False
    for condition in pod.status.get("conditions") or ():
        if condition.get("type") == _DISRUPTION:
            return bool(condition.get("status") == "True" and condition.get("reason") == _BY_SCHEDULER)
    return False


def cleared_nominations(pod: Pod, nominated: Sequence[Pod]) -> tuple[Pod, ...]:
    """Return the pods of lower priority nominated to this node, whose nominations are cleared."""
    return tuple(other for other in nominated if other.priority < pod.priority and other.nominated_node_name)


def _no_nomination(pod: Pod) -> MergePatch:
    patch = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": None}}
    return MergePatch("Pod", pod.namespace, pod.name, patch, "status")


def evict(victim: Pod, scheduler_name: str, preemptor: str) -> list[Write]:
    """Return the writes that set the victim's DisruptionTarget condition, if it is missing, and delete the victim.

    The condition has no lastTransitionTime, because plugins have no clock; the scheduling machine adds it.
    """
    wanted = {
        "type": _DISRUPTION,
        "status": "True",
        "reason": _BY_SCHEDULER,
        "message": f"{scheduler_name}: preempting to accommodate a higher priority {preemptor}",
    }
    generation = victim.metadata.get("generation")
    if generation:
        wanted["observedGeneration"] = generation
    deletion = Delete("Pod", victim.namespace, victim.name, victim.uid)
    conditions = list(victim.status.get("conditions") or ())
    place = next((n for n, known in enumerate(conditions) if known.get("type") == _DISRUPTION), None)
    if place is None:
        conditions.append(wanted)
    else:
        known = conditions[place]
        if all(known.get(field) == value for field, value in wanted.items()):
            return [deletion]
        since = known.get("lastTransitionTime") if known.get("status") == "True" else None
        conditions[place] = {**wanted, "lastTransitionTime": since} if since else wanted
    patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": conditions}}
    return [MergePatch("Pod", victim.namespace, victim.name, patch, "status", victim), deletion]


def _after_pod_deleted(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Never requeue the pod: for this event, only the hints of the plugins that rejected the pod decide."""
    return QUEUE_SKIP
