"""Pending pods grouped by cause: one pod of each workload is examined; those with one cause are told together."""

from collections.abc import Callable, Sequence

from kschedd.api.pods import Pod
from kschedd.causes.answers import ObjectNamed, PendingGroup
from kschedd.causes.case import case_of
from kschedd.causes.diagnosis import causes
from kschedd.causes.findings import named
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.clusters.virtual import VirtualCluster


def pending_groups(cluster: VirtualCluster, pods: Sequence[Pod], check: Callable[[], None]) -> list[PendingGroup]:
    """The groups of those of these pods that have no node; the largest first."""
    workloads: dict[str, ExaminedWorkload] = {}
    counts: dict[str, int] = {}
    by_owner: dict[str, str] = {}  # what a pod's own controller belongs to
    for pod in pods:
        if pod.node_name or pod.deleting or pod.finished:
            continue
        owner = pod.owner
        near = pod.uid if owner is None else owner.uid
        if near not in by_owner:
            workload = workload_of(cluster.engine.store, pod)
            by_owner[near] = workload.obj.uid
            workloads[workload.obj.uid] = workload
        counts[by_owner[near]] = counts.get(by_owner[near], 0) + 1
    groups: dict[tuple[str, str], tuple[list[ObjectNamed], int, bool]] = {}
    for uid, workload in workloads.items():
        check()
        pod = workload.pending[0]
        known = pod.scheduler_name in cluster.engine.machine.schedulers
        first = next(causes(cluster, workload, pod, case_of(cluster.engine, workload, pod) if known else None))
        those, count, certain = groups.get((first.code, first.message), ([], 0, True))
        groups[first.code, first.message] = (
            [*those, named(workload.obj)],
            count + counts[uid],
            certain and first.certain,
        )
    found = [
        PendingGroup(code, message, count, those, "certain" if certain else "likely")
        for (code, message), (those, count, certain) in groups.items()
    ]
    return sorted(found, key=lambda group: (-group.count, group.code, group.message))
