"""PodGroups: the pods of each PodGroup that this scheduler schedules, in any state.

A pod belongs to its group from its creation until it is deleted or has finished, whether it is waiting, assumed on a
node, or running. The state of a pod is not stored here; it is looked up in the scheduler cache (`scheduled`,
`waiting_for_node`). A group may have pods before its PodGroup object exists, and an object may exist without pods.

The scheduling machine updates the groups from the watch; plugins read them (`Handle.shared`). Source:
Kubernetes v1.36, scheduler/backend/cache/podgroupstate.go.
"""

from typing import Final, Self

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache

KIND: Final = "PodGroup.scheduling.k8s.io"


def min_count(group: Object) -> int:
    """Return the number of pods that must be placed together; 0 if the group's policy is not `gang`."""
    gang = (group.spec.get("schedulingPolicy") or {}).get("gang")
    return 0 if gang is None else int(gang.get("minCount") or 0)


def topology_key(group: Object) -> str:
    """Return the node label whose value the nodes of the group's pods must share; "" if there is none."""
    constraints = (group.spec.get("schedulingConstraints") or {}).get("topology") or ()
    return str(constraints[0].get("key") or "") if constraints else ""


def priority_of(group: Object) -> int:
    """Return the priority of a PodGroup."""
    return int(group.spec.get("priority") or 0)


def disrupted_as_a_whole(group: Object) -> bool:
    """Return whether the eviction of one pod of the group requires the eviction of all its pods."""
    return (group.spec.get("disruptionMode") or {}).get("all") is not None


@attrs.define(eq=False)
class PodGroups:
    """The PodGroups of a cluster, with their pods. `cluster` is the cache that contains the assumed pods."""

    cluster: SchedulerCache
    _pods: dict[str, dict[str, Pod]] = attrs.field(factory=dict, init=False)  # group key -> uid -> pod

    def fork(self, cluster: SchedulerCache) -> Self:
        forked = type(self)(cluster)
        forked._pods = {key: pods.copy() for key, pods in self._pods.items()}
        return forked

    def put(self, pod: Pod) -> None:
        """Add or update a pod."""
        if pod.finished:
            self.remove(pod)
        else:
            self._pods.setdefault(pod.pod_group, {})[pod.uid] = pod

    def remove(self, pod: Pod) -> None:
        key = pod.pod_group
        pods = self._pods.get(key)
        if pods is not None and pods.pop(pod.uid, None) is not None and not pods:
            del self._pods[key]

    def object(self, key: str) -> Object | None:
        """Return the PodGroup object, if there is one."""
        return self.cluster.get(KIND, key)

    def of(self, pod: Pod) -> Object | None:
        """Return the PodGroup of a pod; None if the pod names no PodGroup or its PodGroup does not exist."""
        return self.object(pod.pod_group) if pod.signature.spec.pod_group_name else None

    def priority(self, pod: Pod) -> int:
        """Return the priority of the pod's PodGroup; the pod's own priority if it has no PodGroup."""
        group = self.of(pod)
        return pod.priority if group is None else priority_of(group)

    def pods(self, key: str) -> list[Pod]:
        """Return all pods of the group, in the order in which they were added."""
        return list(self._pods.get(key, {}).values())

    def keys(self) -> list[str]:
        """Return the keys of the groups that have pods."""
        return list(self._pods)

    def scheduled(self, key: str) -> list[Pod]:
        """Return the group's pods that are assumed or bound."""
        return [pod for pod in self.pods(key) if self._has_node(pod)]

    def placed(self, key: str) -> list[Pod]:
        """Return the group's pods that are assumed or bound, with their nodes."""
        known = ((pod, self.cluster.pod(pod.uid)) for pod in self.scheduled(key))
        return [pod if on_node is None else on_node for pod, on_node in known]

    def waiting_for_node(self, key: str) -> list[Pod]:
        """Return the group's pods that are neither assumed nor bound."""
        return [pod for pod in self.pods(key) if not self._has_node(pod)]

    def _has_node(self, pod: Pod) -> bool:
        return bool(pod.node_name) or self.cluster.is_assumed(pod)
