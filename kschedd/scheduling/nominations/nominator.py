"""Nominator: the pending pods that preemption or a user has nominated to a node.

A nomination may be newer than `status.nominatedNodeName`, because preemption adds a nomination before it writes the
field. The scheduling cycle treats nominated pods of equal or higher priority as if they ran on their nominated node.

Source: Kubernetes v1.34, scheduler/backend/queue/nominator.go. One difference has no visible effect: a nomination of ""
is deleted instead of stored under an empty node name. Each attempt reads the Nominator; only the scheduling driver
changes it.
"""

from collections.abc import Callable, Mapping

import attrs

from kschedd.api.pods import Pod
from kschedd.scheduling.nominations.counted import Nominations

CurrentPod = Callable[[str], Pod | None]
"""Returns the stored pod with that key; None if it was deleted."""


@attrs.define(eq=False)
class Nominator:
    current_pod: CurrentPod | None = None  # None: nominated pods are not looked up
    version: int = 0  # incremented with every change
    _by_node: dict[str, dict[str, Pod]] = attrs.field(factory=dict, init=False)  # node -> uid -> pod
    _pods: Nominations = attrs.field(factory=Nominations, init=False)  # the same pods as tuples, and uid -> node

    def __bool__(self) -> bool:
        return bool(self._pods.node_of)

    def copy_of(self, other: "Nominator") -> None:
        """Copy the nominations of another instance."""
        self.version = other.version
        self._by_node = {node: pods.copy() for node, pods in other._by_node.items()}
        self._pods.copy_of(other._pods)

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate the pod to `node_name`; "" clears its nomination, and None uses the node in the pod's status."""
        self.remove(pod)
        node = pod.nominated_node_name if node_name is None else node_name
        if not node:
            return
        if self.current_pod is not None:
            stored = self.current_pod(pod.key)
            if stored is None or stored.node_name:
                return
        self.version += 1
        self._pods.node_of[pod.uid] = node
        self._by_node.setdefault(node, {})[pod.uid] = pod
        self._pods.change(node, tuple(self._by_node[node].values()))

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod's version.

        If neither version names a node, the nomination does not change, because it may be newer than the API server's
        version.
        """
        keep = None
        if not old.nominated_node_name and not new.nominated_node_name:
            if old.uid not in self._pods.node_of:
                return
            keep = self._pods.node_of[old.uid]
        self.remove(old)
        self.add(new, keep)

    def remove(self, pod: Pod) -> None:
        node = self._pods.node_of.pop(pod.uid, None)
        if node is None:
            return
        self.version += 1
        there = self._by_node[node]
        del there[pod.uid]
        if not there:
            del self._by_node[node]
        self._pods.change(node, tuple(there.values()))

    def left_queue(self, uid: str) -> None:
        """Mark a pod that was skipped because it is being deleted; no sub-queue contains it.

        Nominated pods are looked up in the queue, so only this pod's name is still available.
        """
        node = self._pods.node_of.get(uid)
        if node is not None:
            pod = self._by_node[node][uid]
            named = {"name": pod.name, "namespace": pod.namespace, "uid": uid}
            self._by_node[node][uid] = Pod.from_raw({"kind": "Pod", "metadata": named, "spec": {}})
            self._pods.change(node, tuple(self._by_node[node].values()))
            self.version += 1

    def node_of(self, uid: str) -> str:
        """Return the node to which the pod is nominated, or ""."""
        return self._pods.node_of.get(uid, "")

    def node_by_uid(self) -> dict[str, str]:
        """Return the node of every nominated pod by uid, in a new mapping."""
        return self._pods.node_of.copy()

    def on_node(self, node_name: str) -> tuple[Pod, ...]:
        """Return the pods nominated to the node, in the order of nomination."""
        return self._pods.get(node_name, ())

    @property
    def nominated(self) -> Nominations:
        """All nominated pods by node: a live view, read-only."""
        return self._pods

    def by_node(self) -> dict[str, tuple[Pod, ...]]:
        """Return all nominated pods by node, as a copy."""
        return self._pods.copy()

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Pod]]:
        """The nominated pods as node -> uid -> pod: a live view, read-only."""
        return self._by_node
