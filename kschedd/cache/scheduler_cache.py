"""The scheduler cache: nodes and pods as columns, and every other object by kind and name.

Watch events are applied between two cycles. The scheduler's own decisions are applied immediately (`assume`), before
the API server has confirmed them. An assumed pod is counted like any other pod. The watch event with the pod's node
confirms the pod, and `forget` removes it. Pods on a node that the cache does not contain are stored under the node's
name, and are counted after the node is added.

Source: Kubernetes v1.34, scheduler/backend/cache/cache.go.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature
from kschedd.cache.counts import PodCounts
from kschedd.cache.forked_counts import ForkedCounts
from kschedd.cache.table import NodeTable
from kschedd.cache.versions import Versions

_EMPTY: Mapping[str, Object] = {}


@attrs.define(eq=False)
class _Known:
    """A pod, and whether it is assumed. Instances are replaced, never changed, because forks share them."""

    pod: Pod
    assumed: bool


def counted_as(signature: PodSignature) -> Hashable:
    """Return a key for the pod's effect on its node; pods with equal keys have the same effect."""
    spec = signature.spec
    more_than_requests = bool(spec.has_pod_affinity or spec.host_ports or spec.restricting_volumes)
    return signature.group_key, spec.resource_requests, more_than_requests


@attrs.define(eq=False)
class SchedulerCache:
    table: NodeTable = attrs.field(factory=NodeTable)
    counts: PodCounts = attrs.field(init=False)
    objects: dict[str, dict[str, Object]] = attrs.field(factory=dict)  # kind -> key -> object
    _pods: dict[str, _Known] = attrs.field(factory=dict)  # by uid
    _marked_deleted: set[str] = attrs.field(factory=set)  # uids of assumed pods deleted before they were bound
    _pods_of_unknown_nodes: dict[str, dict[str, Pod]] = attrs.field(factory=dict)  # node name -> uid -> pod

    def __attrs_post_init__(self) -> None:
        self.counts = PodCounts(self.table)

    @property
    def versions(self) -> Versions:
        """The change counters and change logs."""
        return self.table.versions

    # -- forks ------------------------------------------------------------------------------------------------

    def fork(self) -> "SchedulerCache":
        """Return a separate cache equal to this one except for its pod counts, which need a `recount`.

        A fork takes a few milliseconds for 5,000 nodes. After this call, another thread may work on the fork while the
        original changes.
        """
        forked = SchedulerCache(
            self.table.fork(),
            {kind: objects.copy() for kind, objects in self.objects.items()},
            self._pods.copy(),
            self._marked_deleted.copy(),
            {node: pods.copy() for node, pods in self._pods_of_unknown_nodes.items()},
        )
        forked.counts = ForkedCounts(forked.table, self.counts.namespaces.copy(), any_terms=self.counts.carries_terms)
        return forked

    def recount(self) -> None:
        """Count all pods again; the counts then equal those of a cache that received each pod as an event."""
        self.counts = PodCounts(self.table, self.counts.namespaces)
        for row in self.table:
            for pod in self.table.pods[row]:
                self.counts.add(row, pod, 1)

    # -- objects ----------------------------------------------------------------------------------------------

    def of_kind(self, kind: str) -> Mapping[str, Object]:
        """Return all objects of a kind by key (`namespace/name`; for cluster-scoped objects, the name)."""
        return self.objects.get(kind, _EMPTY)

    def get(self, kind: str, key: str) -> Object | None:
        return self.objects.get(kind, _EMPTY).get(key)

    def put(self, obj: Object) -> None:
        """Add or update an object of any kind; if the object is a pod, it must have a node.

        If the object is unreadable, raise an exception and store nothing.
        """
        try:
            if isinstance(obj, Pod):
                if obj.node_name and not obj.finished:
                    self.put_pod(obj)
                elif obj.uid in self._pods and not self._pods[obj.uid].assumed:
                    self.remove_pod(obj)
            elif isinstance(obj, Node):
                self.put_node(obj)
            else:
                key = obj.key
                self.objects.setdefault(obj.kind, {})[key] = obj
                self.versions.touch_object(obj.kind, (key, obj))
                if obj.kind == "Namespace":
                    self.counts.set_namespace(obj.name, obj.labels)
        except Exception:
            self.remove(obj)
            raise

    def remove(self, obj: Object) -> None:
        if isinstance(obj, Pod):
            self.remove_pod(obj)
        elif isinstance(obj, Node):
            self.remove_node(obj.name)
        else:
            self.objects.get(obj.kind, {}).pop(obj.key, None)
            self.versions.touch_object(obj.kind, (obj.key, None))
            if obj.kind == "Namespace":
                self.counts.set_namespace(obj.name, None)

    def load(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            self.put(obj)

    # -- nodes ------------------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        new = node.name not in self.table.row_of
        row = self.table.put_node(node)
        if new:
            for pod in self._pods_of_unknown_nodes.pop(node.name, {}).values():
                self._arrive(row, pod)

    def remove_node(self, name: str) -> None:
        row = self.table.row_of.get(name)
        if row is None:
            return
        pods = list(self.table.pods[row])
        for pod in pods:
            self._leave(row, pod)
        self.table.remove_node(name)
        if pods:
            self._pods_of_unknown_nodes[name] = {pod.uid: pod for pod in pods}

    # -- pods -------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
        """Add, confirm or update a pod that has a node."""
        known = self._pods.get(pod.uid)
        if known is None:
            self._pods[pod.uid] = _Known(pod, assumed=False)
            self._put_on_node(pod)
            return
        old = known.pod
        self._pods[pod.uid] = _Known(pod, assumed=False)
        row = self.table.row_of.get(pod.node_name)
        if old.node_name != pod.node_name or row is None:
            self._take_off_node(old)
            self._put_on_node(pod)
        elif old.signature is pod.signature and old.deletion_timestamp == pod.deletion_timestamp:
            self.table.replace_pod(row, old, pod)
        else:
            self.counts.add(row, old, -1)
            self.table.replace_pod(row, old, pod)
            self.counts.add(row, pod, 1)

    def remove_pod(self, pod: Pod) -> None:
        known = self._pods.pop(pod.uid, None)
        if known is not None:
            self._marked_deleted.discard(pod.uid)
            self._take_off_node(known.pod)

    def assume(self, pod: Pod, node_name: str) -> Pod:
        """Count the pod on the node; return the pod with its node set."""
        assert pod.uid not in self._pods, f"pod {pod.key} is expected not to be on a node yet"
        placed = pod.on_node(node_name)
        self._pods[pod.uid] = _Known(placed, assumed=True)
        self._put_on_node(placed)
        return placed

    def assume_each(self, pods: Sequence[Pod], node_names: Sequence[str]) -> list[Pod] | None:
        """Assume each of these pods on one of these distinct nodes; the pods must have equal effects (`counted_as`).

        Return None, and change nothing, if the pods must be assumed one by one.
        """
        rows = [self.table.row_of[name] for name in node_names]
        placed = [pod.on_node(name) for pod, name in zip(pods, node_names, strict=True)]
        if placed[0].signature.spec.has_pod_affinity:
            return None
        self.counts.prepare(placed[0])  # raises an exception for an invalid pod before any change
        if not self.table.add_each(rows, placed):
            return None
        known = self._pods
        for pod in placed:
            known[pod.uid] = _Known(pod, assumed=True)
        self.counts.add_each(rows, placed[0])
        return placed

    def forget(self, pod: Pod) -> bool:
        """Remove an assumed pod; return False if it has been confirmed or removed."""
        known = self._pods.get(pod.uid)
        if known is None or not known.assumed:
            return False
        del self._pods[pod.uid]
        self._marked_deleted.discard(pod.uid)
        self._take_off_node(known.pod)
        return True

    def take_out(self, pod: Pod) -> Callable[[], None] | None:
        """Take the pod off its node temporarily; return a function that restores it.

        Returns None if the pod has no node.
        """
        known = self._pods.pop(pod.uid, None)
        if known is None:
            return None
        self._take_off_node(known.pod)

        def put_back() -> None:
            self._pods[pod.uid] = known
            self._put_on_node(known.pod)

        return put_back

    def mark_deleted(self, pod: Pod) -> None:
        """Mark an assumed pod as deleted.

        The pod is counted until it is forgotten (in 1.34, after its binding has failed).
        """
        assert self.is_assumed(pod), f"pod {pod.key} is expected to be assumed"
        self._marked_deleted.add(pod.uid)

    def is_marked_deleted(self, uid: str) -> bool:
        return uid in self._marked_deleted

    def is_assumed(self, pod: Pod) -> bool:
        known = self._pods.get(pod.uid)
        return known is not None and known.assumed

    def assumed_pods(self) -> list[Pod]:
        """Return the pods whose binding is not confirmed yet, with their node set."""
        return [known.pod for known in self._pods.values() if known.assumed]

    def pod(self, uid: str) -> Pod | None:
        """Return the pod with this uid if it has a node, assumed or confirmed."""
        known = self._pods.get(uid)
        return None if known is None else known.pod

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    def _put_on_node(self, pod: Pod) -> None:
        row = self.table.row_of.get(pod.node_name)
        if row is None:
            self._pods_of_unknown_nodes.setdefault(pod.node_name, {})[pod.uid] = pod
        else:
            self._arrive(row, pod)

    def _take_off_node(self, pod: Pod) -> None:
        waiting = self._pods_of_unknown_nodes.get(pod.node_name)
        if waiting is not None and pod.uid in waiting:
            del waiting[pod.uid]
            if not waiting:
                del self._pods_of_unknown_nodes[pod.node_name]
            return
        self._leave(self.table.row_of[pod.node_name], pod)

    def _arrive(self, row: int, pod: Pod) -> None:
        self.table.add_pod(row, pod)
        self.counts.add(row, pod, 1)

    def _leave(self, row: int, pod: Pod) -> None:
        self.table.remove_pod(row, pod)
        self.counts.add(row, pod, -1)
