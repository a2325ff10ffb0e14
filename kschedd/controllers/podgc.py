"""The pod garbage collector: deletes pods that no other component would delete.

    orphaned                  their node has been missing for 40 s (the quarantine): failed, with DisruptionTarget
    of a node out of service  terminating on a node that is not ready and has the taint out-of-service
    terminating, unscheduled  never bound, and kept only by a finalizer: failed
    terminated                more than `terminated_pod_threshold` are finished: evicted ones first, then the oldest

An unfinished pod becomes Failed before it is deleted, and has no grace period. kube-controller-manager checks all pods
every 20 s. In kschedd only finished pods are checked every 20 s; all other pods are deleted as soon as a rule applies.

At most `_MOST` pods are deleted per reconcile. Source: Kubernetes v1.34, controller/podgc/gc_controller.go.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from kschedd.api.conditions import is_true, with_condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.nodes.node_health import next_pass
from kschedd.controllers.options import TERMINATED_POD_THRESHOLD
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Delete, Write, status_of

PERIOD_S: Final = 20.0
QUARANTINE_S: Final = 40.0
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
ORPHANED: Final[Raw] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}
_MOST: Final = 50  # pods deleted per turn

Key = tuple[str, str]  # namespace, name


class PodGarbageCollector:
    name: Final = "pod-garbage-collector"
    kinds: Final = frozenset(("Node", "Pod"))

    def __init__(self, terminated_pod_threshold: int = TERMINATED_POD_THRESHOLD) -> None:
        self._threshold = terminated_pod_threshold  # maximum number of finished pods; 0: unlimited
        self._quarantine: Timers[str] = Timers()  # name of a missing node with pods -> end of the quarantine
        self._nodes: set[str] = set()
        self._terminated: dict[Key, None] = {}
        self._pass_at: float | None = None  # next check of finished pods; None if their number is below the limit
        self._going: dict[Key, bool] = {}  # pods to delete; True for pods of missing nodes
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        if self._going:
            return 0.0
        return min((at for at in (self._quarantine.next, self._pass_at) if at is not None), default=None)

    def concerns(self, event: WatchEvent) -> bool:
        """Return False for an unfinished pod that stays on its node, or is new on an existing node."""
        pod, old = event.new, event.old
        if not isinstance(pod, Pod) or pod.finished or pod.deletion_timestamp:
            return True
        if event.type == DELETED:
            return (pod.namespace, pod.name) in self._going
        moved = not isinstance(old, Pod) or old.node_name != pod.node_name
        return moved and pod.node_name != "" and pod.node_name not in self._nodes

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                self._pod_event(event, new, view, now)
            elif isinstance(new, Node):
                self._node_event(event, new, view, now)
        for name in self._quarantine.due(now):
            if view.find("Node", "", name) is None:
                self._going.update(dict.fromkeys(((pod.namespace, pod.name) for pod in view.pods_on(name)), True))
        self._collect_terminated(view, now)
        writes: list[Write] = []
        for key, orphan in list(islice(self._going.items(), _MOST)):
            del self._going[key]
            writes += self.faults.each("Pod", (key,), partial(self._delete, view, orphan), now)
        return writes

    def _pod_event(self, event: WatchEvent, pod: Pod, view: View, now: float) -> None:
        key = (pod.namespace, pod.name)
        if event.type == DELETED:
            self._terminated.pop(key, None)
            self._going.pop(key, None)
            return
        if pod.finished:
            self._terminated[key] = None
        name = pod.node_name
        if not name:
            if pod.deletion_timestamp and not pod.finished:
                self._going.setdefault(key, False)
            return
        old = event.old
        if not isinstance(old, Pod) or old.node_name != name:
            if name not in self._quarantine and view.find("Node", "", name) is None:
                self._quarantine.set(name, now + QUARANTINE_S)
        if pod.deletion_timestamp and not (isinstance(old, Pod) and old.deletion_timestamp):
            node = view.find("Node", "", name)
            if isinstance(node, Node) and _out_of_service(node):
                self._going.setdefault(key, False)

    def _node_event(self, event: WatchEvent, node: Node, view: View, now: float) -> None:
        if event.type == DELETED:
            self._nodes.discard(node.name)
            if view.find("Node", "", node.name) is None and view.pods_on(node.name):
                self._quarantine.set(node.name, now + QUARANTINE_S)
            return
        self._nodes.add(node.name)
        self._quarantine.clear(node.name)
        if _out_of_service(node):
            for pod in view.pods_on(node.name):
                if pod.deletion_timestamp:
                    self._going.setdefault((pod.namespace, pod.name), False)

    def _collect_terminated(self, view: View, now: float) -> None:
        surplus = len(self._terminated) - self._threshold
        if not self._threshold or surplus <= 0:
            self._pass_at = None
            return
        if self._pass_at is None:
            self._pass_at = next_pass(now, PERIOD_S)
        if self._pass_at > now:
            return
        self._pass_at = None
        pods = sorted(self._present(view), key=_order)
        for pod in pods[:surplus]:
            key = (pod.namespace, pod.name)
            self._terminated.pop(key)
            self._going.setdefault(key, False)

    def _present(self, view: View) -> Iterator[Pod]:
        for namespace, name in self._terminated:
            pod = view.find("Pod", namespace, name)
            if isinstance(pod, Pod):
                yield pod

    def _delete(self, view: View, orphan: bool, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        if not isinstance(pod, Pod):
            return []
        writes: list[Write] = []
        if not pod.finished:
            status: dict[str, object] = {"phase": "Failed"}
            if orphan:
                status["conditions"] = with_condition(pod.status.get("conditions"), ORPHANED, stamp(now))
            writes.append(status_of(pod, status))
        return [*writes, Delete("Pod", namespace, name, pod.uid, grace_period_s=0)]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes, because the pod was deleted meanwhile."""
        return []


def _out_of_service(node: Node) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in node.taints) and not is_true(node.status, "Ready")


def _order(pod: Pod) -> tuple[bool, str, str]:
    evicted = pod.phase == "Failed" and pod.status.get("reason") == "Evicted"
    return (not evicted, pod.metadata.get("creationTimestamp") or "", pod.name)
