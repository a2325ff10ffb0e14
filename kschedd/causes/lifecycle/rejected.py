"""Causes at the node: the kubelet rejects pods whose template contains the node's name."""

from kschedd.api.pods import Pod
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.demands.selecting import node_named
from kschedd.causes.findings import FoundCause, named
from kschedd.causes.words import counted
from kschedd.causes.workload import ExaminedWorkload, pods_below
from kschedd.store.cluster_api import ClusterReader


def rejected_by_kubelet(store: ClusterReader, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause, or None: the kubelet of `nodeName` rejects the workload's pods."""
    wanted = str(workload.pod_spec.get("nodeName") or "")
    if not wanted or workload.wanted <= len(workload.scheduled):
        return None
    own = workload.obj
    failed = [
        pod
        for pod in ([own] if isinstance(own, Pod) else pods_below(store, own))
        if pod.phase == "Failed" and pod.node_name == wanted and not pod.status.get("containerStatuses")
    ]
    if not failed:
        return None
    last = max(failed, key=lambda pod: pod.resource_version)
    reason, why = str(last.status.get("reason") or ""), str(last.status.get("message") or "")
    return FoundCause(
        "KubeletRejects",
        f"spec.nodeName binds the pods to {wanted} without the scheduler, and its kubelet rejects them: {reason}",
        [named(last), ObjectNamed("Node", "", wanted)],
        [f"{'.'.join(workload.path)}.nodeName"],
        [why, f"rejected so far: {counted(len(failed), 'pod')}, such as {last.key}"],
        node_named(None),
    )
