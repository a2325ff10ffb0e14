"""PodGroups: the pods of each PodGroup that the scheduler knows, wherever each is on its way.

A pod is of a group from its creation until it is deleted or has finished, whether it waits, is assumed on a node, or
runs there. Which of these it is, is not kept here: the scheduler cache knows (`scheduled`, `waiting_for_node`).
A group may have pods before its PodGroup object is there, and the other way round.

Owned by the scheduling machine, which has it follow the watch; plugins read it (`Handle.shared`).
Source: Kubernetes v1.36, scheduler/backend/cache/podgroupstate.go.
"""

from typing import Final, Self

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache

KIND: Final = "PodGroup.scheduling.k8s.io"


def min_count(group: Object) -> int:
    """How many pods the group needs to be placed at once; 0 where its policy is not gang."""
    gang = (group.spec.get("schedulingPolicy") or {}).get("gang")
    return 0 if gang is None else int(gang.get("minCount") or 0)


def priority_of(group: Object) -> int:
    """Return the priority of a PodGroup."""
    return int(group.spec.get("priority") or 0)


def disrupted_as_a_whole(group: Object) -> bool:
    """Return whether all pods of the group are evicted if one is."""
    return (group.spec.get("disruptionMode") or {}).get("all") is not None


@attrs.define(eq=False)
class PodGroups:
    """See the module. `cluster`: the cache that knows which pods are assumed."""

    cluster: SchedulerCache
    _pods: dict[str, dict[str, Pod]] = attrs.field(factory=dict, init=False)  # by the group's key, then by uid

    def fork(self, cluster: SchedulerCache) -> Self:
        forked = type(self)(cluster)
        forked._pods = {key: pods.copy() for key, pods in self._pods.items()}
        return forked

    def put(self, pod: Pod) -> None:
        """The pod is there, or has changed."""
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
        """The PodGroup itself, if there is one."""
        return self.cluster.get(KIND, key)

    def of(self, pod: Pod) -> Object | None:
        """The PodGroup of a pod; None if it is of none, or of one that does not exist."""
        return self.object(pod.pod_group) if pod.signature.spec.pod_group_name else None

    def priority(self, pod: Pod) -> int:
        """The priority of the pod's PodGroup, its own if there is none."""
        group = self.of(pod)
        return pod.priority if group is None else priority_of(group)

    def pods(self, key: str) -> list[Pod]:
        """All pods of the group, in the order in which they came."""
        return list(self._pods.get(key, {}).values())

    def keys(self) -> list[str]:
        """The groups that have pods."""
        return list(self._pods)

    def scheduled(self, key: str) -> list[Pod]:
        """Those that are assumed or bound."""
        return [pod for pod in self.pods(key) if self._has_node(pod)]

    def placed(self, key: str) -> list[Pod]:
        """Those that are assumed or bound, as they are on their nodes."""
        known = ((pod, self.cluster.pod(pod.uid)) for pod in self.scheduled(key))
        return [pod if on_node is None else on_node for pod, on_node in known]

    def waiting_for_node(self, key: str) -> list[Pod]:
        """Those that are not."""
        return [pod for pod in self.pods(key) if not self._has_node(pod)]

    def _has_node(self, pod: Pod) -> bool:
        return bool(pod.node_name) or self.cluster.is_assumed(pod)
